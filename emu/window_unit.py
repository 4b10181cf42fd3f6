"""The window of ACS-HW as a circuit: slots, the upstream-load module, ids that wrap, costs.

In: launches in program order with the upstream ids that the CPU's stale list gave them (`insert`),
and completions (`complete`). Out: which of them may run, and what that took in cycles. The unit
knows nothing of events or time; `StaleList` is the CPU's side.

A launch's id is its number modulo 2 ** id_bits: that is all the circuit ever sees of it. Upstream
ids that are in no slot belong to launches that have ended, and are dropped.

Invariant: no launch is inserted while one that its CPU did not look at any more, because more than
M were sent since, is unfinished; so none ever runs beside one that it follows. It rests on ids
being unique among M + 1 launches, which is checked when a unit is made.
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
"""Of a bit: 0.049 um2, the faster cell of Samsung's 10 nm (Song and others, "A 10 nm FinFET 128 Mb
SRAM", IEEE JSSC 52(1), 2017), of which the 8 nm of an RTX 3070 is a later version."""


class Estimate(NamedTuple):
    """What a unit of some size takes."""

    slot_bits: int
    sram_bytes: int
    cells_um2: int
    """Of that memory's cells alone: a lower bound, since nobody says what comparators, wires and
    what is around the cells take."""
    comparators: int
    """Of one id each, so that the N slots are updated in parallel."""
    insert_cycles: int
    update_cycles: int
    insert_ns: int
    update_ns: int
    sent_bits: int
    """That come with a launch: its id, and up to M upstream ids."""


def estimate(spec: WindowSpec) -> Estimate:
    """Memory, area and delays of a unit; `UsageError` where there is no such unit.

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
    """Whether ids can tell M + 1 launches apart, and all numbers are numbers of something."""
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
    """Whole nanoseconds, rounded up; a clock of 0 takes no time."""
    return -(-cycles * 1000 // clock_mhz) if clock_mhz else 0


class StaleList:
    """The CPU's `scheduled_list`: the last M launches sent, ended or not. The CPU is never told."""

    def __init__(self, distance: int) -> None:
        self.distance = distance
        self._sent = 0

    def __len__(self) -> int:
        return min(self._sent, self.distance)

    def send(self, number: int, upstream: Sequence[int]) -> list[int]:
        """Which of all that a launch (the next one) follows the CPU still knows: sorted, as
        `upstream` is."""
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
        """Slots whose lists hold this id. The circuit compares all lists instead, at once."""


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
        """Inserted, in order; its head is never one that has ended."""
        self._ended: set[int] = set()

    def __len__(self) -> int:
        return len(self._by_id)

    def admits(self, number: int) -> bool:
        """Whether launch `number` may be inserted now: there is a slot, and all that its CPU no
        longer looked at have ended."""
        return len(self._by_id) < self.slots and self.sees_all(number)

    def sees_all(self, number: int) -> bool:
        """Whether the oldest unfinished launch is one of the M before `number`."""
        return not self._unfinished or number - self._unfinished[0] <= self.distance

    def insert(self, number: int, upstream: Iterable[int]) -> bool:
        """Load a launch with the ids it follows; whether it is ready."""
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
        """A launch has ended: its slot is free, its id leaves all lists; who is ready by that."""
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
