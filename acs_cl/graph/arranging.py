"""Arranging: the order in which the launches of a graph are sent.

In: recorded launches, the name of an order, what is known of the work of each. Out: their places,
one after another. Who waits for whom follows from the bytes that they touch, as it does when they
are launched.

Invariant: whoever follows another one in program order over common bytes does so in every order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from .. import core
from ..observe.commands import sizes_of
from ..records import Access, Command
from ..scheduler.orders import ORDERS, Tasks, Work, sequence


def arranged(
    launches: Sequence[tuple[Command, Access]],
    order: str,
    work: Sequence[Work] = (),
    borders: Iterable[int] = (),
) -> list[int]:
    """Places of launches in the order in which they are sent. None goes across a border, which is
    a place where a loop begins or has ended."""
    n = len(launches)
    if order == "first_in":
        return list(range(n))
    found: list[int] = []
    for start, stop in pairwise(sorted({0, n, *borders})):
        tasks = tasks_of(launches[start:stop], work[start:stop])
        found += [start + place for place in sequence(tasks, ORDERS[order])]
    return found


def tasks_of(launches: Sequence[tuple[Command, Access]], work: Sequence[Work] = ()) -> Tasks:
    """A graph as orders see it. A launch whose size the driver chooses counts as one group."""
    upstream: list[int] = []
    downstream: list[int] = []
    hazards = core.native.Hazards()
    for place, (_, access) in enumerate(launches):
        found = hazards.enter(place + 1, access.reads, access.writes)
        upstream += [number - 1 for number in found]
        downstream += [place] * len(found)
    tiles = [sizes_of(command)[0] or 1 for command, _ in launches]
    return Tasks(upstream, downstream, tiles, work)


def keeps_order(launches: Sequence[tuple[Command, Access]], places: Sequence[int]) -> bool:
    """Say whether launches sent in the order of these places keep what they wait for."""
    turn_of = {place: turn for turn, place in enumerate(places)}
    if sorted(turn_of) != list(range(len(launches))):
        return False
    tasks = tasks_of(launches)
    edges = zip(tasks.upstream, tasks.downstream, strict=True)
    return all(turn_of[above] < turn_of[below] for above, below in edges)
