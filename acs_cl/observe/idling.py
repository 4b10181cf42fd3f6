"""Idling: why nothing ran, moment by moment.

Input: a record. Output: idle time by its reason: a wait of the program, the runtime, the driver, or
what is left, which is the host. The launch that ends an idle time decides.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from .record import Record
from .shares import idle
from .slices import ALL_BEFORE, Slice

BEGINS_NS = 1_000_000
"""A driver that takes longer to begin a launch, though the device is idle, does something else."""


class Idle(NamedTuple):
    """Reasons why nothing ran, in nanoseconds."""

    waits: Counter[str]
    """Idle time of the device behind a wait, by the launch or call that was waited for."""
    behind: int
    own: int
    """The part of that in which the program did its own work."""
    held: int
    """Idle time whose next launch had been called already: the runtime held it back."""
    begins: Counter[str]
    """Idle time in which the driver had the next launch and did not begin it, by its name."""
    left: int


def idle_of(record: Record) -> Idle:
    """Attribute the time in which nothing runs, by the launch that ends it. A wait is the cause if
    that launch was called later, and its thread had waited since its previous launch."""
    names: Counter[str] = Counter()
    begins: Counter[str] = Counter()
    behind = own = held = left = 0
    known = {one.number: one.name for one in record.slices}
    starts: dict[int, Slice] = {}
    for one in record.slices:
        starts.setdefault(record.interval(one)[0], one)
    for begin, end in idle(record):
        first = starts.get(end)
        if first is None or not first.called_ns or not record.clocks.comparable:
            left += end - begin
            continue
        handed = record.clocks.on_host(first, first.handed_ns) if first.handed_ns else end
        late = end - max(begin, handed)
        if late > BEGINS_NS:
            begins[first.name] += late
            end -= late
        if first.called_ns <= begin:
            waited = bool(first.handed_ns) and handed > begin
            held += end - begin if waited else 0
            left += 0 if waited else end - begin
        elif first.waits:
            last = first.waits[-1]
            names["all before" if last == ALL_BEFORE else known.get(last, "a launch")] += 1
            behind += end - begin
            own += min(end - begin, first.program_ns)
        else:
            left += end - begin
    return Idle(names, behind, own, held, begins, left)
