"""Arranging: the order in which the launches of a graph are sent.

Input: recorded launches, the name of an order, and the work of each launch if known. Output: their
places, one after another. Edges follow from the bytes that launches touch, as usual.

Invariant: a launch that follows another one in program order over common bytes does so in every
order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from .. import core
from ..observe.commands import sizes_of
from ..records import Pair
from ..scheduler.orders import ORDERS, Tasks, Work, sequence


def arranged(
    launches: Sequence[Pair],
    order: str,
    work: Sequence[Work] = (),
    borders: Iterable[int] = (),
) -> list[int]:
    """Return the places of launches in the order in which they are sent. No launch crosses a
    border, which is a place where a loop begins or has ended."""
    n = len(launches)
    if order == "first_in":
        return list(range(n))
    found: list[int] = []
    for start, stop in pairwise(sorted({0, n, *borders})):
        tasks = tasks_of(launches[start:stop], work[start:stop])
        found += [start + place for place in sequence(tasks, ORDERS[order])]
    return found


def tasks_of(launches: Sequence[Pair], work: Sequence[Work] = ()) -> Tasks:
    """Return a graph in the form for orders. A launch without a local size counts as one group."""
    upstream: list[int] = []
    downstream: list[int] = []
    hazards = core.native.Hazards()
    for place, (_, access) in enumerate(launches):
        found = hazards.enter(place + 1, access.reads, access.writes)
        upstream += [number - 1 for number in found]
        downstream += [place] * len(found)
    tiles = [sizes_of(command)[0] or 1 for command, _ in launches]
    return Tasks(upstream, downstream, tiles, work)


def keeps_order(launches: Sequence[Pair], places: Sequence[int]) -> bool:
    """Tell whether launches sent in the order of these places still follow their upstream."""
    turn_of = {place: turn for turn, place in enumerate(places)}
    if sorted(turn_of) != list(range(len(launches))):
        return False
    tasks = tasks_of(launches)
    edges = zip(tasks.upstream, tasks.downstream, strict=True)
    return all(turn_of[above] < turn_of[below] for above, below in edges)
