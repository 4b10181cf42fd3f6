"""What-if of orders: the same launches, sent as a recorded graph would send them.

Input: a trace, the name of an order, a device. Output: a trace in that order. The orders are the
library's own, with the costs of the modelled device: the time of a launch alone, its part of the
device, and whether it waits for memory.

Invariant: a launch stays between the same waits of the program, behind all of its upstream.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from acs_cl.emu.cost import Costs
from acs_cl.emu.spec import GpuSpec
from acs_cl.emu.trace import KERNEL, Entry, Trace, resolved
from acs_cl.errors import UsageError
from acs_cl.scheduler.orders import ORDERS, Tasks, Work, sequence


def in_order(trace: Trace, order: str, spec: GpuSpec) -> Trace:
    """Give the launches in the order of a name.

    >>> from acs_cl.emu.machines import MACHINES
    >>> one = Entry(1, "wide", groups=8, items=64, group_ns=100)
    >>> two = Entry(2, "narrow", groups=1, items=64, group_ns=100)
    >>> found = in_order(Trace("both", [one, two]), "narrow_first", MACHINES["paper"].gpu)
    >>> [entry.name for entry in found.entries]
    ['narrow', 'wide']
    """
    if order not in ORDERS:
        raise UsageError(f"unknown order {order!r}; there are: {', '.join(ORDERS)}")
    if order == "first_in":
        return trace
    trace = resolved(trace)
    entries, costs = trace.entries, Costs(spec)
    borders = {0, len(entries), *(one.number - 1 for one in entries if one.waits)}
    turns: list[int] = []
    for start, stop in pairwise(sorted(borders)):
        tasks = _tasks(entries[start:stop], start, costs)
        turns += [start + task for task in sequence(tasks, ORDERS[order])]
    number = {entries[place].number: turn for turn, place in enumerate(turns, 1)}
    number[0] = 0  # stands for everything before
    moved = [
        entries[place]._replace(
            number=turn,
            upstream=tuple(sorted(number[other] for other in entries[place].upstream)),
            waits=tuple(number[other] for other in entries[place].waits),
        )
        for turn, place in enumerate(turns, 1)
    ]
    # the program waits before the first launch of a stretch, whichever launch that is now
    for start, stop in pairwise(sorted(borders)):
        waits = next((one.waits for one in moved[start:stop] if one.waits), ())
        for turn in range(start, stop):
            moved[turn] = moved[turn]._replace(waits=waits if turn == start else ())
    return trace._replace(entries=moved)


def _tasks(entries: Sequence[Entry], start: int, costs: Costs) -> Tasks:
    """Return a stretch as orders see it, without upstream from earlier stretches."""
    edges = [
        (other - 1 - start, place)
        for place, entry in enumerate(entries)
        for other in sorted(entry.upstream)
        if other > start
    ]
    return Tasks(
        [above for above, _ in edges],
        [task for _, task in edges],
        [entry.groups or 1 for entry in entries],
        [_work(entry, costs) for entry in entries],
    )


def _work(entry: Entry, costs: Costs) -> Work:
    if entry.kind != KERNEL:
        return Work(entry.total_ns / 1e3, 0.0, True)
    need, spec = costs.need(entry), costs.spec
    room = need.fit * spec.units
    computes_ns = need.ns * entry.groups / room
    moves_ns = need.bytes * entry.groups / spec.bytes_per_ns if need.bytes else 0.0
    return Work(costs.alone_ns(entry) / 1e3, entry.groups / room, moves_ns > computes_ns)
