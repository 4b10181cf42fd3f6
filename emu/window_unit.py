"""The window of ACS-HW as a circuit: slots, the upstream-load module, ids that wrap, costs.

Input: launches in program order with the upstream ids from the CPU's stale list (`insert`), and
completions (`complete`). Output: the launches that may run, and cycles. The unit knows no events or
time; `StaleList` is the CPU's side.

A launch's id is its number modulo 2 ** id_bits; the circuit sees nothing else of it. Upstream ids
that are in no slot belong to launches that have ended, and are dropped.

Invariant: the CPU compares a launch with the last M sent. No launch is inserted while one before
these M is unfinished, so none ever runs beside its upstream. That needs unique ids among M + 1
launches, which is checked when a unit is made.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from acs_cl.emu.spec import WindowSpec
from acs_cl.errors import InternalError, UsageError

MOST_BITS = 64
STATE_BITS = 2  # free, pending, ready, executing

CELL_NM2 = 49_000
"""Area of a bit: 0.049 um2, the faster cell of Samsung's 10 nm (Song and others, "A 10 nm FinFET
128 Mb SRAM", IEEE JSSC 52(1), 2017). The 8 nm of an RTX 3070 is a later version of it."""


class Estimate(NamedTuple):
    """Memory, area and delays of a unit."""

    slot_bits: int
    sram_bytes: int
    cells_um2: int
    """Area of that memory's cells alone. It is a lower bound, since the area of comparators, wires
    and the rest is not published."""
    comparators: int
    """Comparators of one id each, so that the N slots are updated in parallel."""
    insert_cycles: int
    update_cycles: int
    insert_ns: int
    update_ns: int
    sent_bits: int
    """Bits that come with a launch: its id, and up to M upstream ids."""


def estimate(spec: WindowSpec) -> Estimate:
    """Return memory, area and delays of a unit. Raise `UsageError` for an impossible unit.

    >>> estimate(WindowSpec(slots=32, id_bits=8)).sram_bytes
    1032
    >>> estimate(WindowSpec(slots=64, distance=64)).insert_cycles
    64
    """
    check(spec)
    slot_bits = spec.id_bits * spec.slots + STATE_BITS  # the id, N - 1 upstream ids, the state
    insert = spec.slots if spec.insert_cycles < 0 else spec.insert_cycles
    update = spec.slots - 1 if spec.update_cycles < 0 else spec.update_cycles
    return Estimate(
        slot_bits,
        -(-slot_bits * spec.slots // 8),
        -(-slot_bits * spec.slots * CELL_NM2 // 1_000_000),
        spec.slots,
        insert,
        update,
        cycles_ns(insert, spec.clock_mhz),
        cycles_ns(update, spec.clock_mhz),
        spec.id_bits * (spec.distance + 1),
    )


def check(spec: WindowSpec) -> None:
    """Check that ids can tell M + 1 launches apart, and that all numbers make sense."""
    if spec.slots < 1 or spec.distance < 1:
        raise UsageError(f"N and M are at least 1, got {spec.slots} and {spec.distance}")
    if not 1 <= spec.id_bits <= MOST_BITS:
        raise UsageError(f"an id has 1 to {MOST_BITS} bits, got {spec.id_bits}")
    if 1 << spec.id_bits <= spec.distance:
        raise UsageError(
            f"ids of {spec.id_bits} bits name {1 << spec.id_bits} launches; M ="
            f" {spec.distance} needs {spec.distance.bit_length()} bits"
        )


def cycles_ns(cycles: int, clock_mhz: int) -> int:
    """Return whole nanoseconds, rounded up; a clock of 0 takes no time."""
    return -(-cycles * 1000 // clock_mhz) if clock_mhz else 0


class StaleList:
    """The CPU's `scheduled_list`: the last M launches sent. It does not show which have ended."""

    def __init__(self, distance: int) -> None:
        self.distance = distance
        self._sent = 0

    def __len__(self) -> int:
        return min(self._sent, self.distance)

    def send(self, number: int, upstream: Sequence[int]) -> list[int]:
        """Return the part of a launch's upstream that the CPU still knows, in the same order."""
        if number != self._sent + 1:
            raise InternalError(f"launch {number} was sent behind {self._sent}")
        self._sent = number
        return list(upstream[bisect_left(upstream, number - self.distance) :])


class _Slot:
    __slots__ = ("dependants", "number", "upstream")

    def __init__(self, number: int) -> None:
        self.number = number
        self.upstream = 0
        """Ids in the slot's list; 0: ready."""
        self.dependants: list[_Slot] = []
        """Slots whose lists hold this id. The circuit compares all lists at once instead."""


class WindowUnit:
    """N slots behind an upstream-load module that looks M launches back.

    >>> unit = WindowUnit(WindowSpec(slots=2, distance=2))
    >>> unit.admits(1), unit.insert(1, []), unit.insert(2, [1]), unit.admits(3)
    (True, True, False, False)
    >>> unit.complete(1)
    [2]
    """

    def __init__(self, spec: WindowSpec) -> None:
        check(spec)
        self.slots = spec.slots
        self.distance = spec.distance
        self.insert_ns = estimate(spec).insert_ns
        self.update_ns = estimate(spec).update_ns
        self._mask = (1 << spec.id_bits) - 1
        self._by_id: dict[int, _Slot] = {}
        self._unfinished: deque[int] = deque()
        """Inserted launches, in order; the first one has never ended."""
        self._ended: set[int] = set()

    def __len__(self) -> int:
        return len(self._by_id)

    def admits(self, number: int) -> bool:
        """Tell whether launch `number` may be inserted now: a slot is free, and all launches that
        its CPU no longer compares have ended."""
        return len(self._by_id) < self.slots and self.sees_all(number)

    def sees_all(self, number: int) -> bool:
        """Tell whether the oldest unfinished launch is one of the M before `number`."""
        return not self._unfinished or number - self._unfinished[0] <= self.distance

    def insert(self, number: int, upstream: Iterable[int]) -> bool:
        """Load a launch with its upstream ids; return whether it is ready."""
        mask, by_id = self._mask, self._by_id
        slot = _Slot(number)
        for other in upstream:
            parent = by_id.get(other & mask)
            if parent is not None:  # else it has ended: the id is dropped
                parent.dependants.append(slot)
                slot.upstream += 1
        if slot.upstream >= self.slots:
            raise InternalError(f"a slot has room for {self.slots - 1} ids, got {slot.upstream}")
        if by_id.setdefault(number & mask, slot) is not slot:
            raise InternalError(f"the id of launch {number} is in the window already")
        self._unfinished.append(number)
        return not slot.upstream

    def complete(self, number: int) -> list[int]:
        """Note that a launch has ended: its slot is free, and its id leaves all lists. Return the
        launches that are ready by that."""
        slot = self._by_id.pop(number & self._mask)
        self._ended.add(number)
        unfinished = self._unfinished
        while unfinished and unfinished[0] in self._ended:
            self._ended.discard(unfinished.popleft())
        ready = []
        for dependant in slot.dependants:
            dependant.upstream -= 1
            if not dependant.upstream:
                ready.append(dependant.number)
        return ready
