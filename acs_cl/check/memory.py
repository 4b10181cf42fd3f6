"""Memory: every byte that a check compares, and its value after the previous launch.

Input: bases as they come and go, and memory arguments of launches. Output: `Region` objects, one
for each allocation of the driver, and intervals of bytes in them for the spans of a launch.

Behind each array is a guard of `GUARD` bytes, which no launch may touch. The `mirror` of a region
has the expected bytes. Its `other` has replacements for bytes that should not matter. Transfers of
several regions start one after another, on one in-order queue, and share one wait. Invariant:
nothing else is in flight while memory is loaded or stored.
"""

# Long because: own slabs, own buffers and foreign memory have to look the same from here on.

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from ..access.arguments import ADDRESS_SPACE, host_address, parent_of
from ..devices import driver
from ..devices.driver import Place
from ..memory.blocks import Block
from ..ranges import intervals
from ..records import EVERYTHING, Access, NamedTuple, Span
from .patterns import Bytes, swapped

Each = TypeVar("Each", np.uint8, np.bool_)

GUARD = 4096
"""Bytes behind each array."""


Underway = list[tuple[cl.Event, Bytes | None]]
"""Events of commands on the queue of a `Memory`, in order, with the host's bytes that they need.
The list lives until all are done: PyOpenCL waits when an event without an owner is dropped."""


def wait_for_all(underway: Underway) -> None:
    """Wait until all of it is done."""
    driver.wait_for_events([event for event, _ in underway])


class MemoryPart:
    """An array's memory, or a whole foreign object: bytes `low` to `high` of a region, and the
    guard behind them up to `end`."""

    __slots__ = ("end", "high", "kind", "live", "low", "number", "region", "site")

    def __init__(
        self, number: int, region: Region, low: int, high: int, end: int, kind: str, site: str
    ) -> None:
        self.number = number
        self.region = region
        self.low = low
        self.high = high
        self.end = end
        self.kind = kind
        self.site = site
        self.live = True


def _longer(values: npt.NDArray[Each], top: int, most: int) -> npt.NDArray[Each]:
    """Give values with room behind them. What is moved gets room for as much again, so that a
    thousand small arrays do not move a slab a thousand times."""
    room = values.base
    if room is None or len(room) < top:
        room = np.empty(max(top, min(most, 2 * len(values))), values.dtype)
        room[: len(values)] = values
    longer: npt.NDArray[Each] = room[:top]
    return longer


class Region:
    """One allocation."""

    def __init__(self, queue: cl.CommandQueue, size: int, address: int, foreign: bool) -> None:
        self.queue = queue
        self.size = size
        self.address = address
        """Address on the host. 0: none."""
        self.foreign = foreign
        self.parts: list[MemoryPart] = []
        self.mirror: Bytes = np.empty(0, np.uint8)
        self.other: Bytes = np.empty(0, np.uint8)
        self.unwritten: npt.NDArray[np.bool_] = np.empty(0, bool)

    @property
    def top(self) -> int:
        """Return how many of its bytes are compared."""
        return len(self.mirror)

    def place(self, low: int, high: int) -> Place:
        """Return these bytes in the form for the driver."""
        raise NotImplementedError

    def begin_load(self, low: int, high: int, underway: Underway) -> Bytes:
        """Start loading these bytes, behind commands under way. May return the memory itself."""
        host: Bytes = np.empty(high - low, np.uint8)
        if high > low:
            event = driver.read(self.queue, host, self.place(low, high), None)
            underway.append((event, host))
        return host

    def begin_store(self, low: int, values: Bytes, underway: Underway) -> None:
        """Start overwriting bytes, behind commands under way. `values` must not change till
        then."""
        if len(values):
            place, values = self.place(low, low + len(values)), np.ascontiguousarray(values)
            underway.append((driver.write(self.queue, place, values, None), values))

    def load(self, low: int, high: int) -> Bytes:
        """Return these bytes. This may be the memory itself: copy it to keep it."""
        return load_all([Interval(self, low, high)])[0]

    def store(self, low: int, values: Bytes) -> None:
        """Overwrite bytes."""
        store_all([(self, low, values)])

    def grow(self, top: int) -> None:
        """Compare more of its bytes."""
        old = self.top
        if top > old:
            self.mirror = _longer(self.mirror, top, self.size)
            self.other = _longer(self.other, top, self.size)
            self.unwritten = _longer(self.unwritten, top, self.size)
            self.mirror[old:] = self.load(old, top)
            self.other[old:] = swapped(self.mirror[old:], "i4")
            self.unwritten[old:] = False

    def take_over(self, now: Bytes) -> None:
        """Take these bytes over, after a write from outside the checks."""
        if not np.array_equal(now, self.mirror):
            changed = np.flatnonzero(now != self.mirror)
            self.mirror[:] = now
            self.changed(int(changed[0]), int(changed[-1]) + 1)

    def changed(self, low: int, high: int) -> None:
        """Note that the mirror has changed there."""
        for part in self._parts_in(low, high):
            step = int(part.kind[1])
            first = max(low, part.low)
            first -= (first - part.low) % step
            last = min(part.end, high + (-(high - part.low)) % step)
            self.other[first:last] = swapped(self.mirror[first:last], part.kind)

    def retype(self, part: MemoryPart, kind: str) -> None:
        """Change the kind of a part's elements."""
        part.kind = kind
        self.other[part.low : part.end] = swapped(self.mirror[part.low : part.end], kind)

    def part_at(self, offset: int) -> MemoryPart | None:
        """Return the part that a byte, or the guard around it, belongs to."""
        at = bisect_right(self.parts, offset, key=attrgetter("low")) - 1
        return self.parts[at] if at >= 0 and offset < self.parts[at].end else None

    def _parts_in(self, low: int, high: int) -> list[MemoryPart]:
        at = max(0, bisect_right(self.parts, low, key=attrgetter("low")) - 1)
        found = []
        for part in self.parts[at:]:
            if part.low >= high:
                break
            if part.end > low:
                found.append(part)
        return found

    def add(self, part: MemoryPart) -> None:
        """Add a part, in place of earlier parts of these bytes."""
        over = self._parts_in(part.low, part.end)
        self.parts = sorted(
            [one for one in self.parts if one not in over] + [part], key=attrgetter("low")
        )


class SvmRegion(Region):
    """Shared virtual memory. On a CPU it is the host's own memory, so nothing is copied."""

    def __init__(
        self,
        queue: cl.CommandQueue,
        memory: object,
        size: int,
        address: int,
        foreign: bool,
        direct: bool,
    ) -> None:
        super().__init__(queue, size, address, foreign)
        self._kept = memory
        array = (ctypes.c_uint8 * size).from_address(address)
        self._bytes: Bytes = np.ctypeslib.as_array(array)
        self._direct = direct

    def place(self, low: int, high: int) -> Place:
        return Place(cl.SVM(self._bytes[low:high]), 0, high - low)

    def begin_load(self, low: int, high: int, underway: Underway) -> Bytes:
        return self._bytes[low:high] if self._direct else super().begin_load(low, high, underway)

    def begin_store(self, low: int, values: Bytes, underway: Underway) -> None:
        if not self._direct:
            super().begin_store(low, values, underway)
            return
        if self.foreign:  # a command under way may use the same bytes by another object
            wait_for_all(underway)
        self._bytes[low : low + len(values)] = values


class BufferRegion(Region):
    """A buffer. It is retained, so it stays valid whatever the program does to it."""

    def __init__(
        self, queue: cl.CommandQueue, buffer: cl.MemoryObjectHolder, size: int, foreign: bool
    ) -> None:
        super().__init__(queue, size, host_address(buffer), foreign)
        self.buffer: cl.Buffer = cl.Buffer.from_int_ptr(  # type: ignore[assignment]
            buffer.int_ptr, retain=True
        )

    @property
    def released(self) -> bool:
        """Tell whether this region is its only owner."""
        return self.buffer.reference_count <= 1

    def place(self, low: int, high: int) -> Place:
        return Place(self.buffer, low, high - low)


class Interval(NamedTuple):
    """Bytes `low` to `high` of a region."""

    region: Region
    low: int
    high: int


def load_all(given: Sequence[Interval], underway: Underway | None = None) -> list[Bytes]:
    """Load these bytes after the commands under way, and wait for all of it. The result may be the
    memory itself: copy it to keep it."""
    underway = [] if underway is None else underway
    try:
        return [region.begin_load(low, high, underway) for region, low, high in given]
    finally:  # also if the driver refuses one: the others still write
        wait_for_all(underway)


def store_all(given: Iterable[tuple[Region, int, Bytes]]) -> None:
    """Overwrite bytes from these places on, one after another."""
    wait_for_all(begin_store_all(given))


def begin_store_all(given: Iterable[tuple[Region, int, Bytes]]) -> Underway:
    """Start `store_all`, without waiting."""
    underway: Underway = []
    try:
        for region, low, values in given:
            region.begin_store(low, values, underway)
    except BaseException:  # the driver refuses one: the others still read
        wait_for_all(underway)
        raise
    return underway


class Memory:
    """All regions of a runtime."""

    def __init__(self, queue: cl.CommandQueue, direct: bool) -> None:
        self.queue = queue
        self._direct = direct
        self.parts: dict[int, MemoryPart] = {}
        """Live bases, and foreign memory by its number in spans."""
        self._svm: list[Region] = []
        self._buffers: dict[int, BufferRegion] = {}
        self.changes = 0
        """Counts bytes that are compared for the first time."""

    def settle(self) -> None:
        """Wait for the commands under way, which may be some after an error or a signal. Stores by
        the host itself do not wait for them."""
        marker = driver.marker(self.queue, None)
        self.queue.flush()
        driver.wait_for_event(marker)

    @property
    def nbytes(self) -> int:
        """Return the number of all compared bytes."""
        return sum(region.top for region in self.regions)

    @property
    def regions(self) -> list[Region]:
        """Return own and foreign regions."""
        return [*self._svm, *self._buffers.values()]

    def beside(self, used: Iterable[Region]) -> list[Region]:
        """Return the regions to compare around launches that use these. Foreign memory that they do
        not use is left alone: others may be writing to it."""
        near = set(map(id, used))
        return [one for one in self.regions if not one.foreign or id(one) in near]

    def allocated(self, number: int, block: Block, nbytes: int, kind: str, site: str) -> MemoryPart:
        """Add a base of the runtime's own."""
        if isinstance(block.memory, cl.Buffer):
            region: Region | None = self._buffers.get(block.memory.int_ptr)
            if region is None:
                region = BufferRegion(self.queue, block.memory, block.size, False)
                self._buffers[block.memory.int_ptr] = region
        else:
            start = block.address - block.offset
            region = next((one for one in self._svm if one.address == start), None)
            if region is None:
                size = len(block.memory)
                region = SvmRegion(self.queue, block.memory, size, start, False, self._direct)
                self._svm.append(region)
        self.changes += 1
        low, end = block.offset, block.offset + block.size
        region.grow(end)
        part = MemoryPart(number, region, low, low + nbytes, end, kind, site)
        region.add(part)
        region.unwritten[low:end] = True
        region.mirror[low:end] = region.load(low, end)
        region.retype(part, kind)
        self.parts[number] = part
        return part

    def freed(self, number: int) -> None:
        """Note that a base is gone. Its bytes belong to no array until another one gets them."""
        part = self.parts.pop(number, None)
        if part is not None:
            part.live = False

    def dropped(self, block: Block) -> None:
        """Note that the driver may free the memory of a block that is gone."""
        if isinstance(block.memory, cl.Buffer):
            self._buffers.pop(block.memory.int_ptr, None)
        elif block.alone:
            start = block.address - block.offset
            self._svm = [region for region in self._svm if region.address != start]

    def argument(self, memory: object, kind: str) -> tuple[Region, int] | None:
        """Return where an argument begins. Foreign memory is compared from its first launch on."""
        if isinstance(memory, cl.SVMPointer):
            return self._svm_argument(memory, kind)
        if not isinstance(memory, cl.Buffer):
            return None
        try:
            parent = parent_of(memory)
        except cl.Error:  # Intel's driver, for a part of a buffer that the program has released
            return None
        start = memory.offset if parent is not None else 0
        buffer = memory if parent is None else parent
        region = self._buffers.get(buffer.int_ptr)
        if region is None:
            region = BufferRegion(self.queue, buffer, int(buffer.size), True)
            self._buffers[buffer.int_ptr] = region
            self._whole(region, -int(buffer.int_ptr), kind)
        return region, int(start)

    def _svm_argument(self, memory: cl.SVMPointer, kind: str) -> tuple[Region, int] | None:
        address, size = int(memory.svm_ptr), memory.size
        for region in self._svm:
            if region.address <= address < region.address + region.size and (
                not region.foreign or address + (size or 0) <= region.address + region.size
            ):
                return region, address - region.address
        if not size:
            return None
        end = address + int(size)
        near = [one for one in self._svm if one.foreign and one.address < end
                and address < one.address + one.size]  # fmt: skip
        start = min([address, *(one.address for one in near)])
        end = max([end, *(one.address + one.size for one in near)])
        self._svm = [one for one in self._svm if one not in near]
        kept = (memory, *(one._kept for one in near if isinstance(one, SvmRegion)))
        region = SvmRegion(self.queue, kept, end - start, start, True, self._direct)
        self._svm.append(region)
        self._whole(region, ADDRESS_SPACE, kind)
        return region, address - start

    def _whole(self, region: Region, number: int, kind: str) -> None:
        self.changes += 1
        region.grow(region.size)
        part = MemoryPart(number, region, 0, region.size, region.size, kind, "")
        region.add(part)
        region.retype(part, kind)
        if number != ADDRESS_SPACE:
            self.parts[number] = part

    def forget_released(self) -> None:
        """Forget buffers that have no other owner."""
        for handle, region in list(self._buffers.items()):
            if region.foreign and region.released:
                del self._buffers[handle]
                self.parts.pop(-handle, None)

    def read(self, access: Access) -> list[Interval]:
        """Return the bytes that a launch may read: everything, if it may write everything."""
        anywhere = [span for span in access.writes if span.base == EVERYTHING]
        return self.intervals((*access.reads, *anywhere))

    def intervals(self, spans: Iterable[Span]) -> list[Interval]:
        """Return the bytes of spans, in order and without overlaps. Unknown bytes are left out."""
        found: list[Interval] = []
        for span in spans:
            if span.base == EVERYTHING:
                found += [
                    Interval(region, part.low, part.high)
                    for region in self.regions
                    for part in region.parts
                    if part.live
                ]
                continue
            for low, high in intervals(span):
                if span.base == ADDRESS_SPACE:
                    found += self._at_address(low, high)
                    continue
                place = self._place(span.base)
                if place is not None:
                    region, by = place
                    found.append(Interval(region, max(0, low + by), min(high + by, region.top)))
        return merged(found)

    def _at_address(self, low: int, high: int) -> list[Interval]:
        """Return the regions of an address range on the host, which may be in several objects."""
        found = []
        for region in self.regions:
            start = region.address
            if region.foreign and start and low < start + region.size and start < high:
                first, last = max(0, low - start), min(high - start, region.top)
                found.append(Interval(region, first, last))
        return found

    def place(self, span: Span) -> tuple[Region, int] | None:
        """Return the region of a span, and the start of its base there."""
        found = self._place(span.base)
        return None if found is None else (found[0], span.start + found[1])

    def _place(self, base: int) -> tuple[Region, int] | None:
        part = self.parts.get(base)
        return None if part is None else (part.region, part.low)

    def refresh(self, foreign_only: bool = False) -> None:
        """Take over writes from outside this runtime."""
        regions = [one for one in self.regions if one.foreign or not foreign_only]
        now = load_all([Interval(one, 0, one.top) for one in regions])
        for region, values in zip(regions, now, strict=True):
            region.take_over(values)

    def written(self, given: Sequence[Interval]) -> None:
        """Take over the writes of launches."""
        for (region, low, high), values in zip(given, load_all(given), strict=True):
            region.mirror[low:high] = values
            region.changed(low, high)


def merged(given: Sequence[Interval]) -> list[Interval]:
    """Merge intervals, so that each byte is in one."""
    if len(given) < 2:
        return [one for one in given if one.low < one.high]
    found: list[Interval] = []
    for one in sorted(given, key=_order):
        if one.low >= one.high:
            continue
        if found and found[-1].region is one.region and one.low <= found[-1].high:
            found[-1] = found[-1]._replace(high=max(found[-1].high, one.high))
        else:
            found.append(one)
    return found


def without(given: Sequence[Interval], taken: Sequence[Interval]) -> list[Interval]:
    """Return the bytes of `given` that are not in `taken`, in the order of `given`."""
    found: list[Interval] = []
    taken = merged(taken)  # in the order that is searched
    for one in given:
        low = one.low
        at = bisect_right(taken, _order(one), key=_order)
        if at > 0 and taken[at - 1].region is one.region:  # may begin before and reach into it
            low = max(low, taken[at - 1].high)
        while low < one.high and at < len(taken) and taken[at].region is one.region:
            if taken[at].low > low:
                found.append(Interval(one.region, low, min(taken[at].low, one.high)))
            low = taken[at].high
            at += 1
        if low < one.high:
            found.append(Interval(one.region, low, one.high))
    return found


def common(given: Sequence[Interval], others: Sequence[Interval]) -> list[Interval]:
    """Return the bytes in both."""
    return without(given, without(given, others))


def _order(one: Interval) -> tuple[int, int]:
    return id(one.region), one.low
