"""Narrower accesses: of each view that a launch is given, the bytes that its body can reach.

In: a kernel's signature with the outline of its body, the access that a launch would have with all
of its views, its sizes and arguments. Out: an access that is never more than that. Invariant: what
is not proven stays all of the view; nothing is ever said to be overwritten for sure, since a
condition may skip it. An outline is run once for the same sizes and numbers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import pyopencl as cl
from pyopencl import _cl

from acs_cl import core

from ..host.environment import variable
from ..memory.array import Array
from ..ranges import Rectangle
from ..records import Access, Sizes, Span
from .needed import needed
from .reach import Groups, Launch, Reached, reach
from .signature import Signature

MOST_KEPT = 4096
"""Launches whose outcome is kept, for each kernel."""

_Key = tuple[Any, ...]
_T = TypeVar("_T")
Parts = list[tuple[Sequence[Rectangle] | None, Sequence[Rectangle] | None]]
"""Of each argument in memory what is read, and what is written; None: all of it."""
_Given: TypeAlias = Sequence[Any]
"""Arguments as a call has them."""


class Outcome(NamedTuple):
    """What was inferred for a launch, and from what: `sizes` are its global and local one and its
    offset, `numbers` those that matter, `whole` what it would have with all of its views."""

    sizes: tuple[Sizes | None, ...]
    numbers: tuple[int, ...]
    whole: Access
    reached: dict[int, Reached]


def turned_off() -> bool:
    """Whether nothing is inferred in this process."""
    return variable("ACS_CL_RANGES") == "off"


def narrow(signature: Signature) -> Narrow | None:
    """What narrows the launches of a kernel; None where nothing can, or ACS_CL_RANGES=off."""
    if signature.outline is None or turned_off():
        return None
    if signature.anywhere or signature.program_globals:
        return None
    if any(parameter.space in ("image", "pipe", "") for parameter in signature.parameters):
        return None
    return Narrow(signature)


class Narrow:
    """Narrows the launches of one kernel."""

    def __init__(self, signature: Signature) -> None:
        functions = (signature.outline or {})["functions"]
        self._outline: core.native.Outline | None = None
        with contextlib.suppress(ValueError):  # operations that are nested too deeply
            self._outline = core.native.Outline(functions)
        self._group = signature.group_size
        self.numbers = sorted(needed(functions))
        """The parameters whose numbers matter."""
        memory = [
            (index, parameter)
            for index, parameter in enumerate(signature.parameters)
            if parameter.is_pointer and parameter.space in ("global", "constant")
        ]
        self.memory = [index for index, _ in memory]
        """The parameters that are memory."""
        self._reads = [index for index, parameter in memory if "r" in parameter.mode]
        self._writes = [index for index, parameter in memory if "w" in parameter.mode]
        self._reached: dict[_Key, dict[int, Reached]] = {}
        self._accesses: dict[_Key, Access] = {}

    @property
    def runs(self) -> int:
        """How often the outline was run."""
        return 0 if self._outline is None else self._outline.runs

    def body(self, most: int) -> tuple[list[int], core.native.Outline, Sizes | None, int] | None:
        """What the core runs for launches by itself, `most` times (below 0: without a limit), and
        the parameters that this depends on."""
        return None if self._outline is None else (self.numbers, self._outline, self._group, most)

    def access(
        self, whole: Access, global_size: Sizes, local_size: Sizes | None, offset: Sizes | None,
        args: _Given, most: int | None = None,
    ) -> Access:  # fmt: skip
        """The access of a launch whose arguments, as they are, are all that `whole` says. What is
        not known after `most` runs of the outline stays whole."""
        if not self._is_known(whole, args):
            return whole
        key = (global_size, local_size, offset, whole, *[args[i] for i in self.numbers])
        try:
            return self._accesses[key]
        except (KeyError, TypeError):  # a TypeError: a number that is an array
            pass
        if most is not None and self.runs >= most:
            return whole
        try:
            reached = self.reached(global_size, local_size, offset, args)
        except (TypeError, ValueError):  # sizes and numbers that are none: the launch says so
            return whole
        found = self._narrowed(whole, reached)
        found = whole if found == whole else found
        _keep(self._accesses, key, found)
        return found

    def of_bands(
        self, whole: Access, global_size: Sizes, offset: Sizes | None, args: _Given
    ) -> Callable[[Groups, Sizes], Access] | None:
        """What any box of groups of a launch touches, in groups of a given size. None if that is
        not known of an argument."""
        if not self._is_known(whole, args):
            return None
        numbers = dict(zip(self.numbers, self.numbers_of(args), strict=True))

        def touched(groups: Groups, local_size: Sizes) -> Access:
            reached = self.reached(global_size, local_size, offset, numbers, groups)
            return self._narrowed(whole, reached)

        return touched

    def numbers_of(self, args: _Given) -> list[int]:
        """The numbers among the arguments that decide what a launch touches."""
        return [int(args[index]) for index in self.numbers]

    def _is_known(self, whole: Access, args: Sequence[object]) -> bool:
        """Whether each argument in memory is one span, and all of `whole` is in these."""
        if not all(_is_one_span(args[index]) for index in self.memory):
            return False
        return len(whole.reads) == len(self._reads) and len(whole.writes) == len(self._writes)

    def _narrowed(self, whole: Access, reached: dict[int, Reached]) -> Access:
        return Access(
            _cut(whole.reads, [reached.get(i, _UNTOUCHED).reads for i in self._reads]),
            _cut(whole.writes, [reached.get(i, _UNTOUCHED).writes for i in self._writes]),
            whole.overwrites,
        )

    def _parts(self, reached: dict[int, Reached]) -> Parts:
        return [
            (
                reached.get(index, _UNTOUCHED).reads if index in self._reads else None,
                reached.get(index, _UNTOUCHED).writes if index in self._writes else None,
            )
            for index in self.memory
        ]

    def reached(
        self, global_size: Sizes, local_size: Sizes | None, offset: Sizes | None,
        args: _Given | Mapping[int, int], groups: Groups | None = None,
    ) -> dict[int, Reached]:  # fmt: skip
        """What a launch may touch of each parameter; of those that are missing, nothing. With
        `groups`, what a band of its groups may touch (`bands`)."""
        numbers = {index: int(args[index]) for index in self.numbers}
        key = (
            global_size,
            local_size,
            offset,
            *numbers.values(),
            *(() if groups is None else (groups,)),
        )
        found = self._reached.get(key)
        if found is None:
            found = self._run(global_size, local_size, offset, numbers, groups)
            _keep(self._reached, key, found)
        return found

    def outcomes(self, access: Access) -> list[Outcome]:
        """What launches that have this access were narrowed by; several if it came of several sizes
        or numbers, none if it is kept no longer. Looks through all that is kept."""
        self._hear()
        found = [
            self._outcome(key[:3], key[4:], key[3])
            for key, narrowed in list(self._accesses.items())
            if narrowed == access
        ]
        if len(access.reads) == len(self._reads) and len(access.writes) == len(self._writes):
            views = self.views(access)
            widths = [views[index].width if index in views else 0 for index in self.memory]
            found += [
                self._outcome(key[:3], key[3:], access)
                for key, reached in list(self._reached.items())
                if len(key) == 3 + len(self.numbers) and self._are_covered(widths, reached)
            ]
        return list({one[:2]: one for one in found if one is not None}.values())

    def _hear(self) -> None:
        """Keep what the core found out by itself, as for launches that came here."""
        for sizes, local, numbers, spans in () if self._outline is None else self._outline.tell():
            views = {index: Span(*span) for index, span in zip(self.memory, spans, strict=True)}
            whole = Access(
                tuple(views[index] for index in self._reads),
                tuple(views[index] for index in self._writes),
                (),
            )
            values = [numbers[index] for index in self.numbers]
            found = self._narrowed(whole, self.reached(sizes, local, None, numbers))
            _keep(self._accesses, (sizes, local, None, whole, *values), found)

    def _are_covered(self, widths: list[int], reached: dict[int, Reached]) -> bool:
        """Whether all of some views is touched."""
        return all(
            part is None or width <= _from_the_start(part)
            for width, parts in zip(widths, self._parts(reached), strict=True)
            for part in parts
        )

    def _outcome(self, sizes: _Key, values: _Key, whole: Access) -> Outcome | None:
        numbers = tuple(map(int, values))
        reached = self._reached.get((*sizes, *numbers))
        return None if reached is None else Outcome(sizes, numbers, whole, reached)

    def views(self, whole: Access) -> dict[int, Span]:
        """The view of each parameter of which a launch has one span."""
        return {
            **dict(zip(self._reads, whole.reads, strict=True)),
            **dict(zip(self._writes, whole.writes, strict=True)),
        }

    def _run(
        self, global_size: Sizes, local_size: Sizes | None, offset: Sizes | None,
        numbers: dict[int, int], groups: Groups | None,
    ) -> dict[int, Reached]:  # fmt: skip
        group = local_size or self._group
        axes = len(global_size)  # of the launch: the kernel's attribute names three groups always
        launch = Launch(
            tuple(int(size) for size in global_size),
            None if group is None else _of_axes(group, axes, 1),
            None if offset is None else _of_axes(offset, axes, 0),
            numbers,
            groups,
        )
        found = None if self._outline is None else reach(self._outline, launch)
        return dict.fromkeys(self.memory, _TOO_LONG) if found is None else found


_ONE_SPAN = (cl.Buffer, _cl.PooledBuffer, cl.SVMPointer, cl.SVMAllocation, _cl.PooledSVM)
"""PyOpenCL's memory that begins where its bytes do."""

_UNTOUCHED = Reached((), ())
_TOO_LONG = Reached(None, None, "the body is too long to run")


def _from_the_start(rectangles: Sequence[Rectangle]) -> int:
    """How many bytes are covered from the first one on."""
    return max((s + w for s, _, rows, w in rectangles if rows == 1 and s <= 0), default=0)


def _cut(spans: Sequence[Span], reached: Sequence[Sequence[Rectangle] | None]) -> tuple[Span, ...]:
    pairs = zip(spans, reached, strict=True)
    return tuple(part for span, rectangles in pairs for part in core.native.cut(span, rectangles))


def _is_one_span(value: object) -> bool:
    if type(value) is Array:
        return value.span is not None or len(value.spans) == 1
    return type(value) in _ONE_SPAN


def _of_axes(sizes: Sequence[int], axes: int, missing: int) -> tuple[int, ...]:
    return (*(int(size) for size in sizes[:axes]), *[missing] * (axes - len(sizes)))


def _keep(kept: dict[_Key, _T], key: _Key, value: _T) -> None:
    if len(kept) >= MOST_KEPT:
        kept.clear()
    with contextlib.suppress(TypeError):
        kept[key] = value
