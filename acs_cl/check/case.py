"""Cases: one launch of a kernel, run alone several times, from chosen bytes.

Input: a command, its declarations, and the memory before it. Output: outcomes, and the bytes in
them that show a write or a read that was not declared.

A trial puts other values into bytes that should not matter, and runs the launch. Two outcomes are
equal if each byte that is declared as written is the same in both, or was left alone in both.
Invariant: the caller of trials restores the memory afterwards (`PutBack`).
"""

# Long because: the memory before a launch and its outcome are read together.

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from ..access.signature import Signature
from ..host.afterwards import Afterwards
from ..records import NamedTuple
from .memory import (
    Interval,
    Memory,
    MemoryPart,
    Region,
    Underway,
    begin_store_all,
    common,
    load_all,
    merged,
    store_all,
    wait_for_all,
    without,
)
from .patterns import Bytes, marked, rolled, word

FULL_BYTES = 2 << 20
"""Up to this much memory, all of it is compared around each launch. Above, only the memory of the
launch's arguments and declarations is, and the rest when the program waits."""

Spot = tuple[int, int, int]
"""Bytes `low` to `high` of a window."""

Values = list[Bytes]
"""The contents of each window."""


class Argument(NamedTuple):
    """A memory argument of a launch."""

    number: int
    parameter: str
    type_name: str
    region: Region
    offset: int
    kind: str
    nbytes: int | None = None
    """How much of the region was given, if the driver's object tells."""
    lead: int = 0
    """How far behind its pointer it begins: the bytes that the kernel adds."""


class Trial(NamedTuple):
    """The memory before a launch, and after it."""

    values: Values
    out: Values


Of = TypeVar("Of")


class PutBack(Afterwards, Generic[Of]):
    """Gives memory its bytes back at the end of a `with` block. `values`: these bytes. None: memory
    has them, which a block may set."""

    def __init__(self, put: Callable[[Of], object], values: Of | None) -> None:
        self._put, self.values = put, values

    def _steps(self) -> Iterable[Callable[[], object]]:
        return () if self.values is None else (partial(self._put, self.values),)


class Case:
    """One launch."""

    def __init__(
        self,
        memory: Memory,
        reads: Sequence[Interval],
        writes: Sequence[Interval],
        arguments: Sequence[Argument],
        run: Callable[[], cl.Event],
        signature: Signature | None = None,
    ) -> None:
        self.may_differ = signature.unsteady if signature is not None else ""
        """Why its outcome may differ between runs, as far as its body tells."""
        self.blind = signature is not None and not signature.origin.endswith("parsed")
        self.memory = memory
        self.arguments = arguments
        self.reads = reads
        self.writes = writes
        self._run = run
        """Starts the launch on the memory's queue; returns its event."""
        self.windows = _windows(memory, arguments, (*reads, *writes))
        self.before: Values = [one.region.mirror[one.low : one.high] for one in self.windows]
        self.in_reads = self.spots(reads)
        self.in_writes = self.spots(writes)

    # ---- the memory before it ------------------------------------------------------------------

    def other(self) -> Values:
        """Return other values for each byte that is not declared as read."""
        values = [one.region.other[one.low : one.high].copy() for one in self.windows]
        self._put_back_reads(values)
        return values

    def turned(self) -> Values:
        """Return other values as `other`; in arguments they come from the same array."""
        values = self.other()
        for one in self.arguments:
            part = one.region.part_at(one.offset)
            if part is None:
                continue
            for index, low, high in self.spots([Interval(one.region, part.low, part.high)]):
                values[index][low:high] = rolled(self.before[index][low:high], part.kind)
        self._put_back_reads(values)
        return values

    def _put_back_reads(self, values: Values) -> None:
        for index, low, high in self.in_reads:
            values[index][low:high] = self.before[index][low:high]
        for index, low, high in self._only_written:
            kind = self._kind(index, low, high)
            values[index][low:high] = marked(self.before[index][low:high], kind)

    def unwritten(self, values: Values | None) -> Values | None:
        """Put other values into unwritten bytes, on top of `values`. None: the launch uses no such
        bytes."""
        for (index, low, high), window in self._used_windows:
            start = window.low
            mask = window.region.unwritten[start + low : start + high]
            if mask.any():
                if values is None:
                    values = [one.copy() for one in self.before]
                new = window.region.other[start + low : start + high]
                values[index][low:high][mask] = new[mask]
        return values

    @cached_property
    def _used_windows(self) -> list[tuple[Spot, Interval]]:
        spots = self.spots(merged([*self.reads, *self.writes]))
        return [(spot, self.windows[spot[0]]) for spot in spots]

    @cached_property
    def _only_written(self) -> list[Spot]:
        return self.spots(without(self.writes, self.reads))

    # ---- running -------------------------------------------------------------------------------

    def put(self, values: Values) -> None:
        """Set the memory to these values, behind the commands under way."""
        self.memory.settle()
        store_all(self._places(values))

    def now(self) -> Values:
        """Return the present contents of the memory."""
        return [one.copy() for one in load_all(self.windows)]

    def trial(self, values: Values) -> Trial:
        """Run the launch from these values. Stores, launch and loads share one wait."""
        underway = self._begin(values, self._run)
        return Trial(values, [one.copy() for one in load_all(self.windows, underway)])

    def run(self, values: Values, start: Callable[[], cl.Event]) -> None:
        """Run something else from these values."""
        wait_for_all(self._begin(values, start))

    def _begin(self, values: Values, start: Callable[[], cl.Event]) -> Underway:
        underway = begin_store_all(self._places(values))
        try:
            underway.append((start(), None))
        except BaseException:
            wait_for_all(underway)
            raise
        return underway

    def _places(self, values: Values) -> list[tuple[Region, int, Bytes]]:
        return [(one.region, one.low, some) for one, some in zip(self.windows, values, strict=True)]

    # ---- comparing -----------------------------------------------------------------------------

    def strays(self, trial: Trial) -> list[Spot]:
        """Return the bytes that changed and are not declared as written."""
        found = []
        for index, (values, out) in enumerate(zip(*trial, strict=True)):
            rest = out.copy()
            for at, low, high in self.in_writes:
                if at == index:
                    rest[low:high] = values[low:high]
            if not np.array_equal(rest, values):
                found += [(index, low, high) for low, high in _runs(rest != values)]
        return found

    def differ(self, one: Trial, other: Trial) -> list[Spot]:
        """Return bytes declared as written that differ in two outcomes although the launch wrote
        them."""
        found = []
        for index, low, high in self.in_writes:
            first, second = one.out[index][low:high], other.out[index][low:high]
            if np.array_equal(first, second):
                continue
            alone = (first == one.values[index][low:high]) & (
                second == other.values[index][low:high]
            )
            wrong = (first != second) & ~alone
            if wrong.any():
                found += [(index, low + start, low + end) for start, end in _runs(wrong)]
        return found

    def left_alone(self, one: Trial, other: Trial) -> list[tuple[Spot, npt.NDArray[np.bool_]]]:
        """Tell which bytes declared as written belong to elements that the launch did not write. An
        element with one value before both trials counts as written."""
        found = []
        for index, low, high in self.in_writes:
            first, second = one.values[index][low:high], other.values[index][low:high]
            same = (one.out[index][low:high] == first) & (other.out[index][low:high] == second)
            step = word(self._kind(index, low, high))
            alone = same.reshape(-1, step).all(1) & (first != second).reshape(-1, step).any(1)
            found.append(((index, low, high), np.repeat(alone, step)))
        return found

    # ---- naming --------------------------------------------------------------------------------

    def undeclared(self) -> list[Spot]:
        """Return the bytes that are not declared as read, the ones of arguments first."""
        return self._in_order(without(self.windows, self.reads))

    def unwritten_reads(self) -> list[Spot]:
        """Return the bytes that are declared as read but were never written."""
        unwritten = [
            Interval(window.region, window.low + low, window.low + high)
            for window in self.windows
            for low, high in _runs(window.region.unwritten[window.low : window.high])
        ]
        return self._in_order(common(self.reads, unwritten))

    def first_of(self, spots: Sequence[Spot], trial: Trial, real: Trial) -> Spot | None:
        """Return the first element in `spots` whose value in `trial` matters. None: no element
        matters, in one of two runs."""
        pieces = [
            (index, low, high, word(self._kind(index, low, low))) for index, low, high in spots
        ]
        count = sum(-(-(high - low) // step) for _, low, high, step in pieces)

        def matters(most: int) -> bool:
            values = [one.copy() for one in self.before]
            for index, low, high, step in pieces:
                end = min(high, low + most * step)
                values[index][low:end] = trial.values[index][low:end]
                most -= -(-(high - low) // step)
                if most <= 0:
                    break
            again = self.trial(values)
            return bool(self.differ(real, again) or self.strays(again))

        if not count or not (matters(count) and matters(count)):
            return None
        least, enough = 0, count
        while enough - least > 1:
            middle = (least + enough) // 2
            if matters(middle):
                enough = middle
            else:
                least = middle
        for index, low, high, step in pieces:
            here = -(-(high - low) // step)
            if enough <= here:
                start = low + (enough - 1) * step
                return index, start, min(start + step, high)
            enough -= here
        raise AssertionError("the count of elements is that of the pieces")

    def first(self, spots: Sequence[Spot]) -> Spot:
        """Return the first of some bytes, bytes of arguments before others. It is extended to the
        start of its element, if that is not declared as written either."""
        index, low, high = self._in_order(self.global_of(spots))[0]
        window = self.windows[index]
        part = window.region.part_at(window.low + low)
        if part is not None:
            start = max(0, low - (window.low + low - part.low) % word(part.kind))
            if not any(
                at == index and one < low and start < two for at, one, two in self.in_writes
            ):
                low = start
        return index, low, high

    def global_of(self, spots: Sequence[Spot]) -> list[Interval]:
        """Convert spots to intervals."""
        return [
            Interval(self.windows[index].region, self.windows[index].low + low,
                     self.windows[index].low + high)
            for index, low, high in spots
        ]  # fmt: skip

    def _in_order(self, given: Sequence[Interval]) -> list[Spot]:
        left, found = merged(given), []
        for one in self.arguments:
            part = one.region.part_at(one.offset)
            if part is not None:
                own = [Interval(one.region, part.low, part.end)]
                found += self.spots(common(left, own))
                left = without(left, own)
        return found + self.spots(left)

    def _kind(self, index: int, low: int, high: int) -> str:
        """Return the kind of the elements, if bytes `low` to `high` are whole elements."""
        window = self.windows[index]
        part = window.region.part_at(window.low + low)
        if part is None:
            return "i4"
        step = word(part.kind)
        start = window.low + low - part.low
        return part.kind if start % step == 0 and (high - low) % step == 0 else "i1"

    def spots(self, given: Sequence[Interval]) -> list[Spot]:
        found = []
        for one in given:
            for index, window in enumerate(self.windows):
                low, high = max(one.low, window.low), min(one.high, window.high)
                if window.region is one.region and low < high:
                    found.append((index, low - window.low, high - window.low))
        return found


def _windows(
    memory: Memory, arguments: Sequence[Argument], used: Sequence[Interval]
) -> list[Interval]:
    """Return the bytes to compare."""
    needed = [*(one.region for one in arguments), *(one.region for one in used)]
    regions, near = memory.beside(needed), set(map(id, needed))
    regions = [one for one in regions if id(one) in near or not _meets_any(one, regions, near)]
    if sum(region.top for region in regions) <= FULL_BYTES:
        return [Interval(region, 0, region.top) for region in regions if region.top]
    parts: list[MemoryPart | None] = [one.region.part_at(one.offset) for one in arguments]
    for one in used:
        parts.append(one.region.part_at(one.low))
    return merged([Interval(part.region, part.low, part.end) for part in parts if part is not None])


def _meets_any(one: Region, regions: Sequence[Region], near: set[int]) -> bool:
    """Tell whether a region shares bytes of the host with a region that the launch uses."""
    return bool(one.address) and any(
        id(other) in near and other.address and other.address < one.address + one.size
        and one.address < other.address + other.size
        for other in regions
    )  # fmt: skip


def _runs(mask: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return where a mask is true, as (start, end)."""
    edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def first_unwritten(reads: Sequence[Interval]) -> tuple[Region, int] | None:
    """Return the first byte in `reads` that was never written."""
    for region, low, high in reads:
        unwritten = region.unwritten[low:high]
        if unwritten.any():
            return region, low + int(np.argmax(unwritten))
    return None


def note_written(case: Case, real: Trial, trials: Sequence[Trial]) -> None:
    """Mark a kernel's declared writes as written, except the bytes that it left alone."""
    if trials:
        for (index, low, high), alone in case.left_alone(real, trials[0]):
            window = case.windows[index]
            window.region.unwritten[window.low + low : window.low + high] &= alone
        return
    for one in case.writes:
        one.region.unwritten[one.low : one.high] = False
