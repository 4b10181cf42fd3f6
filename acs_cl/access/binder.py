"""The binder of a kernel: it makes driver arguments and touched bytes of a launch's arguments.

Input: a kernel's signature, with the outline of its body. Output: a binder of the core, which
returns a `Bound` for the sizes and arguments of a launch. A view counts with only the bytes that
the body can reach for these sizes and numbers (`_core/access/reach.cpp` says how).

Invariant: without a proof all of the view counts. Nothing is ever surely overwritten, since a
condition may skip it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from acs_cl import core
from acs_cl.opencl_c.outlines import Outline

from ..host.environment import variable
from ..ranges import Rectangle
from ..records import Access, NamedTuple, Sizes, Span
from . import scalars
from .signature import Parameter, Signature

Ranges: TypeAlias = Callable[
    [Sizes, Sizes, Mapping[int, int]],
    Mapping[int, tuple[Sequence[Rectangle], Sequence[Rectangle], Sequence[Rectangle]]],
]
"""Returns what a launch reads, writes and surely overwrites of each argument for which the program
declares ranges. Takes its sizes and offset, and the numbers and bytes of arguments."""

MOST_RECTANGLES = 4
"""Rectangles of one argument, read or written. More of them are taken as their hull."""

MOST_RUNS = 1024
"""Sizes and numbers for which the reached bytes of a kernel are worked out, unless the program
wants all. That takes as long as many launches. So a kernel that is called with ever new numbers
ends up counting all of its views. A network's kernel has hundreds."""

MOST_NUMBERS = 64
"""Numbers that the ranges of a kernel depend on. Others may be any."""

_CODES = {8: "b", 16: "h", 32: "i", 64: "q", -8: "B", -16: "H", -32: "I", -64: "Q"}
IMAGE_BYTES = 16
"""Bytes of the sizes of an image, which stand for it where a launch's numbers are told apart."""

_NUMBERS = frozenset("bBhHiIqQfd")
"""Codes of `struct` for the numbers that the core packs."""


class Number(NamedTuple):
    """A number of a launch."""

    parameter: int
    offset: int  # in a structure or a vector, in bytes
    bits: int  # negative if unsigned
    name: str  # of a part, with that of the parameter


class Outside(NamedTuple):
    """An access of some work-item that has no byte in its argument."""

    parameter: int
    byte: int
    """Where it begins, counted from the argument."""
    writes: bool
    is_sure: bool
    """Whether it is surely made. If not, the argument has no memory, and `byte` means nothing."""


class Bound(NamedTuple):
    """The arguments of a launch, bound. The core makes these."""

    pointers: tuple[object, ...]
    """Index and object in turn, in the form for the driver."""
    values: tuple[object, ...]
    """Index and bytes in turn."""
    access: Access
    spans: tuple[tuple[Span, ...] | None, ...]
    """Of each argument. None: it is no memory."""
    numbers: tuple[int, ...] | None
    """The numbers that ranges depend on. None: the access is to all of its memory."""
    outside: Outside | None = None
    """An access that leaves its argument, if one is known."""


class Reached(NamedTuple):
    """What a launch may do to one argument. None: all of it, for the reason given."""

    reads: tuple[Rectangle, ...] | None
    writes: tuple[Rectangle, ...] | None
    why: str = ""


class Outcome(NamedTuple):
    """What was inferred for a launch, and from what."""

    sizes: tuple[Sizes, Sizes | None, Sizes | None]
    """Its global and local size, and its offset."""
    numbers: tuple[int, ...]
    """The numbers that matter."""
    views: Mapping[int, Span]
    """By parameter."""
    reached: Mapping[int, Reached]
    """By parameter. A missing one is not touched."""


def turned_off() -> bool:
    """Tell whether nothing is inferred in this process."""
    return variable("ACS_CL_RANGES") == "off"


def binder(
    signature: Signature,
    ranges: bool = True,
    more: Sequence[Span] = (),
    declared: Sequence[int] = (),
) -> core.native.Binder:
    """Make the binder of a kernel. `more`: what it reads and writes besides its arguments.
    `ranges`: whether any are wanted. `declared`: the parameters for which the program declares
    ranges, and those that these depend on."""
    outline = signature.outline if ranges and _has_ranges(signature) else None
    parameters = [parameter_of(one) for one in signature.parameters]
    # a number of a type that the driver names differently may be anything
    found = [
        (one.parameter, one.offset, _code_of(parameters[one.parameter], one))
        for one in needed(outline)
    ]
    numbers = [(one, 0, parameters[one][0]) for one in declared] or [one for one in found if one[2]]
    return core.native.Binder(
        parameters,
        None if outline is None else outline["functions"],
        numbers[:MOST_NUMBERS],
        signature.group_size,
        tuple(more),
    )


def names(signature: Signature, numbers: Sequence[tuple[int, int, str]]) -> list[str]:
    """Return what a kernel calls the numbers of its binder."""
    parts = {(one.parameter, one.offset): one.name for one in needed(signature.outline)}
    return [parts.get((at, offset)) or signature.parameters[at].name for at, offset, _ in numbers]


def needed(outline: Outline | None) -> list[Number]:
    """Return the numbers of a launch that decide where its kernel touches memory: those that the
    body of its outline begins with. One that is missing is any of its type."""
    if outline is None:
        return []
    _, body, *_ = outline["functions"][0]
    given = [operation[2] for operation in body if operation[0] == "new"]
    numbers = [Number(one[1], 0, one[2], "") for one in given if one[0] == "a"]
    return sorted(numbers + [Number(*one[1:]) for one in given if one[0] == "part"])


def _code_of(parameter: tuple[str, str, int, int], number: Number) -> str:
    """Return the `struct` code of a number. '': the core does not know it."""
    code, _, nbytes, _ = parameter
    if code in _NUMBERS:
        return code
    size = abs(number.bits) // 8
    return _CODES.get(number.bits, "") if code in "vM" and number.offset + size <= nbytes else ""


def _has_ranges(signature: Signature) -> bool:
    """Tell whether the bytes that launches of a kernel reach can be worked out."""
    return not (
        signature.outline is None
        or turned_off()
        or signature.anywhere
        or signature.program_globals
        or any(parameter.space == "" for parameter in signature.parameters)
    )


def parameter_of(one: Parameter) -> tuple[str, str, int, int]:
    """Return the core's code, the use, the bytes and the alignment of a parameter. 'M': memory that
    is no pointer; '?': the argument tells. The last is what the address of an argument is a
    multiple of."""
    if one.is_pointer:
        code = {"global": "P", "constant": "P", "local": "L"}.get(one.space, "?")
        return code, one.mode, 4 if code == "L" else 8, scalars.alignment_of(one.element)
    number = scalars.code(one) or ""
    if number in _NUMBERS:
        return number, "", struct.calcsize(f"={number}"), 1
    if one.space == "private" and not number and one.size_bytes:
        return "v", "", one.size_bytes, 1
    if one.space in ("image", "pipe"):
        return "M", one.mode, IMAGE_BYTES, 1
    return "?", one.mode or "rw", 0, 1
