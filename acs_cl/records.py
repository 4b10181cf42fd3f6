"""Records that pass between the stages: frozen records and a few numbers.

A `Span` says which bytes of which base. An `Access` says which spans a launch reads and writes. A
`Launch` is one command in program order with its upstream. `Options`, `Modes` and `Plan` say how a
runtime works. Records are named tuples: cheap to make on the hot path, compared by value, never
changed after they are made.
"""

# Long because: it has the records that all stages share, and what named tuples are made of.

from __future__ import annotations

from collections import _tuplegetter  # type: ignore[attr-defined]
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

CHECKS = ("access", "order", "uninitialised", "leaks")
"""The names of checks, in the order of `Modes`."""

HostArray: TypeAlias = np.ndarray[Any, Any]
"""A NumPy array of any shape and type."""

DType: TypeAlias = np.dtype[Any]
"""The type of elements, which is known only when a program runs."""

Report: TypeAlias = dict[str, Any]
"""Names with numbers, texts, and lists and tables of these, for users or as JSON."""

Sizes: TypeAlias = tuple[int, ...]
"""A number for each axis of a launch, and other short tuples of numbers."""

Key: TypeAlias = tuple[str, Sizes, Sizes | None]
"""A kernel's name, and global and local size: launches that share it count as alike."""

EVERYTHING = 0
"""Base number of memory that cannot be named. A launch that uses it conflicts with all others."""


APART = 1 << 40
"""With several devices: the distance between the numbers of a base on two of them."""

STAGING = 1 << 60
"""The first number of staging memory, through which copies between devices go."""


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
    from typing import Protocol as Protocol
else:

    class Protocol:
        """Stands for the protocols of `typing`, which only a type checker asks. Classes of those
        take ten times as long to make."""

    class _Record(tuple):
        """What all named tuples share."""

        __slots__ = ()

        @classmethod
        def _make(cls, values: Iterable[object]) -> _Record:
            return cls(*values)

        def _asdict(self) -> dict[str, object]:
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, /, **changes: object) -> _Record:
            made = _new(type(self), map(changes.pop, self._fields, self))
            if changes:
                raise ValueError(f"{type(self).__name__} has no fields {sorted(changes)}")
            return made

        def __repr__(self) -> str:
            values = map("{}={!r}".format, self._fields, self)
            return f"{type(self).__name__}({', '.join(values)})"

        def __getnewargs__(self) -> tuple[object, ...]:
            return tuple(self)

    class _RecordMaker(type):
        """Makes the class of a named tuple of what its body says.

        The classes of `typing.NamedTuple` do the same. But each of them compiles its annotations
        and its methods anew, which takes fifteen times as long. A program imports a hundred.
        """

        def __new__(kind, name: str, bases: object, body: dict[str, object]) -> type:
            fields = tuple(body.get("__annotations__", ()))
            defaults = {field: body[field] for field in fields if field in body}
            if tuple(defaults) != fields[len(fields) - len(defaults) :]:
                raise TypeError(f"{name}: fields without a default come first")
            made = FunctionType(
                _code_for(len(fields)).replace(co_varnames=("_cls", *fields)),
                {"_new": _new},
                "__new__",
                tuple(defaults.values()),
            )
            made.__qualname__ = f"{name}.__new__"
            places = {field: _place(at) for at, field in enumerate(fields)}
            own = {"__new__": made, "__slots__": (), "_fields": fields, "__match_args__": fields}
            return type(name, (_Record,), body | places | own)

    _new = tuple.__new__

    @cache
    def _place(at: int) -> object:
        """Return what reads the field at a place. Classes share it."""
        return _tuplegetter(at, None)

    @cache
    def _code_for(count: int) -> CodeType:
        """Compile the `__new__` of a tuple of `count` fields, whose names are put in later."""
        words = "".join(f"_{at}, " for at in range(count))
        return eval(f"lambda _cls, {words}: _new(_cls, ({words}))").__code__

    NamedTuple = type.__new__(_RecordMaker, "NamedTuple", (), {})


def base_text(base: int) -> str:
    """Name a base."""
    if base >= STAGING:
        return "staging memory"
    if base >= APART:
        return f"base {base % APART} on device {base // APART}"
    return f"base {base}"


class Span(NamedTuple):
    """A rectangle of bytes of one base: `rows` rows of `width` bytes, `pitch` bytes apart.

    A plain interval is one row. Rows do not overlap: `width <= pitch` where `rows > 1`.
    """

    base: int
    start: int
    pitch: int
    rows: int
    width: int

    @property
    def end(self) -> int:
        """Return the place behind the last byte."""
        return self.start + (self.rows - 1) * self.pitch + self.width

    @property
    def nbytes(self) -> int:
        """Return how many bytes it has."""
        return self.rows * self.width

    def __str__(self) -> str:
        if self.base == EVERYTHING:
            return "all memory"
        text = f"bytes {self.start}..{self.end} of {base_text(self.base)}"
        if self.rows > 1:
            text += f" ({self.rows} rows of {self.width}, {self.pitch} apart)"
        return text


def interval(base: int, start: int, nbytes: int) -> Span:
    """Make a plain interval."""
    return Span(base, start, nbytes, 1, nbytes)


class Access(NamedTuple):
    """The bytes that a launch reads, those that it writes, and those that it writes completely."""

    reads: tuple[Span, ...]
    writes: tuple[Span, ...]
    overwrites: tuple[Span, ...] = ()

    def moved(self, to: Callable[[Span], Span]) -> Access:
        """Return the access after each of its spans has moved."""
        return Access(*(tuple(map(to, spans)) for spans in self))


class Command(Protocol):
    """The work of a launch."""

    @property
    def name(self) -> str:
        """Return the name that users see."""

    @property
    def on_host(self) -> bool:
        """Tell whether a thread of ours runs it, not the device."""

    def enqueue(self, queue: Any, wait_for: Sequence[Any] | None) -> Any:
        """Put it on `queue` behind the events in `wait_for`, and return its event."""


Pair = tuple[Command, Access]
"""A recorded launch, as orders, cutters and profiles take it."""


class Launch(NamedTuple):
    """One command in program order. `number` counts from 1 in its runtime."""

    number: int
    command: Command
    access: Access
    upstream: tuple[int, ...]


class Run(NamedTuple):
    """Tiles of a launch that a group of the scheduler ran one after another."""

    number: int
    """The launch."""
    part: int
    """For a replay: which of its tasks. -1: the launch is one task."""
    group: int
    start_ns: int
    end_ns: int
    tiles: int
    is_child: bool
    """Whether the launch spawned it."""


class ReplayTask(NamedTuple):
    """A task of a replay: a launch of the graph, or a band of one."""

    name: str
    launch: int
    """The launch of the graph, from 1 on. 0: a joint task."""
    band: int
    """The band of its launch. -1: the launch is not cut."""
    reads: tuple[Span, ...]
    writes: tuple[Span, ...]
    upstream: tuple[int, ...]
    """Tasks that it waits for."""


class Found(NamedTuple):
    """The notes of timed schedulers."""

    runs: Sequence[Run] = ()
    parts: tuple[tuple[int, tuple[ReplayTask, ...]], ...] = ()
    """Of replays, by launch."""
    clock: str = ""
    """'ns', 'ticks', 'order' (no clock: times follow from the order), '': nothing was noted."""
    error_ns: int = 0
    """How far times may be off against those of events."""
    dropped: int = 0
    """Tiles for which there was no room."""
    cost_ns: float = 0.0
    """About how long a group takes to note a tile."""
    untimed: tuple[tuple[str, str], ...] = ()
    """Kernels whose tasks have no times, and the reason."""

    def and_those(self, other: Found) -> Found:
        """Join both. The less exact clock stands for both."""
        return Found(
            (*self.runs, *other.runs),
            (*self.parts, *other.parts),
            max(self.clock, other.clock, key=("", "ns", "ticks", "order").index),
            max(self.error_ns, other.error_ns),
            self.dropped + other.dropped,
            max(self.cost_ns, other.cost_ns),
            tuple(dict.fromkeys((*self.untimed, *other.untimed))),
        )


class Modes(NamedTuple):
    """The checks that are on."""

    access: bool = False
    order: bool = False
    uninitialised: bool = False
    leaks: bool = False
    seed: int = 0
    """Seed of the random orders."""
    every: int = 0
    """1: check every launch. N: check one in N. 0: check all that are not proven."""

    def __bool__(self) -> bool:
        return any(self[:4])

    def __str__(self) -> str:
        words = [name for name, on in zip(CHECKS, self[:4], strict=True) if on]
        words = [f"order={self.seed}" if name == "order" else name for name in words]
        return ",".join([*words, f"every={self.every}"] if self.every else words)


class Options(NamedTuple):
    """The options that a program gave. The device decides about None and 'auto'."""

    backend: str
    issue: str
    window: int | None
    lanes: int | None
    backlog: int
    memory: str | None
    trace: bool
    trace_file: str | None = None
    overruled: str | None = None
    """The program's own choice, if `ACS_CL_BACKEND` overrules it."""
    check: Modes = Modes()
    plans: bool = True
    """Whether the core may make launches by itself, from plans of earlier ones."""
    proofs_file: str | None = None
    """File where graphs write what was proven when they were recorded."""
    order: str = "first_in"
    """Which of several ready launches of a graph goes first."""
    watchdog_s: float | None = None
    """How long nothing may end before the runtime reports what runs. None: forever."""
    predict: bool = True
    """Whether epochs may be foreseen."""
    tune_file: str | None = None
    """File where graphs write the results of tuning, before their first replay."""
    prefetch: str = "off"
    """Whether long uploads go ahead of launches that use their targets."""
    dependencies: str = "exact"
    """Which of its arguments a launch is taken to touch."""
    bands: object = "early"
    """How launches are cut into bands: a number, a word, or a policy of `access.policies`."""


class Placing(NamedTuple):
    """How launches are placed on lanes: names of `LANE_AFTER` and `LANE_NEW`."""

    after: str = "tail"
    """Which lane of its upstream a launch takes."""
    new: str = "least"
    """Which lane it takes if it takes none of these."""
    uploads: bool = False
    """Whether long uploads have a lane of their own."""


LANE_AFTER = ("tail", "same", "disjoint")
LANE_NEW = ("least", "reuse", "always")


class Plan(NamedTuple):
    """The parts that a runtime uses, and a sentence that says why."""

    backend: str
    lanes: int
    memory: str
    why: str
    host: str
    """The host backend: the backend itself, or the one beside the scheduler on the device."""
    tier: str
    """The device's memory model for order between groups: 'c11', 'ptx' or 'none'."""
    scheduler: str
    """'all': everything that can goes to the scheduler on the device. 'mix': launches that gain by
    it. 'no': none."""
    placing: Placing = Placing()
    """How lanes are chosen if the program did not say."""
