"""Orders: which of the tasks that are ready at the same time goes first.

In: the edges of a graph, the tiles of each task and, where somebody measured it, what each asks of
the device. Out: a `Ranking`, and from it the tasks one after another. Values in, values out: the
scheduler on the device writes epochs by it, graphs are replayed by it, and the emulator asks it
what would be. The core does what costs time.

Opara (arXiv 2312.10351) gives the two orders of its name. Kernels that wait for memory leave
arithmetic idle, and the other way round, so the two classes alternate. Small tasks go first: they
leave room for others beside them.

Invariant: a sequence holds each task once, behind all of its upstream.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from .. import core


class Work(NamedTuple):
    """What a task asks of the device. Zero and None are 'not known'."""

    us: float = 0.0
    """How long it takes alone."""
    demand: float = 0.0
    """Share of the device that its groups take; above 1 where they come in several turns."""
    is_memory_bound: bool | None = None


class Tasks(NamedTuple):
    """A graph, as orders see it."""

    upstream: Sequence[int]
    """Of each edge: the task that is waited for. Edges come in the order of `downstream`."""
    downstream: Sequence[int]
    tiles: Sequence[int]
    """Of each task: how many groups may run it at a time."""
    work: Sequence[Work] = ()
    """Of each task, or of none."""


class Ranking(NamedTuple):
    """What an order says: of tasks that are ready, the one with the smallest key goes first. With
    `classes`, two queues take turns."""

    keys: Sequence[float]
    classes: Sequence[int] | None = None


class Order(Protocol):
    """A dispatch order. It sees who waits for whom, how many groups each task has, and what each
    asks of the device, where that was measured."""

    def __call__(self, tasks: Tasks) -> Ranking | None:
        """A ranking; None for program order."""


def first_in(tasks: Tasks) -> Ranking | None:
    """Program order."""
    return None


def critical_path(tasks: Tasks) -> Ranking | None:
    """The task with the longest way to the end goes first: in microseconds where they are known,
    else in tasks."""
    return Ranking(_keys_of_heights(tasks))


def narrow_first(tasks: Tasks) -> Ranking | None:
    """Tasks that one group runs go before those that take several, so that a chain of them gets
    under way while wide tasks fill the other groups."""
    return Ranking([float(tiles != 1) for tiles in tasks.tiles])


def opara(tasks: Tasks) -> Ranking | None:
    """Opara's order: classes alternate, the smallest demand first. Where no demand is known, fewer
    tiles count as less."""
    return Ranking(_demands(tasks), _classes(tasks))


def opara_critical(tasks: Tasks) -> Ranking | None:
    """Classes alternate, the longest way to the end first."""
    return Ranking(_keys_of_heights(tasks), _classes(tasks))


ORDERS: dict[str, Order] = {
    "first_in": first_in,
    "critical_path": critical_path,
    "narrow_first": narrow_first,
    "opara": opara,
    "opara_critical": opara_critical,
}


def sequence(tasks: Tasks, order: Order) -> list[int]:
    """All tasks, one after another: always the first by the ranking of those whose upstream is
    there already."""
    ranking = order(tasks)
    n = len(tasks.tiles)
    if ranking is None:
        return list(range(n))
    classes = ranking.classes or [0] * n
    return core.native.sequence(tasks.upstream, tasks.downstream, ranking.keys, classes)


def priorities(tasks: Tasks, order: Order) -> Sequence[float] | None:
    """A priority for each task, higher first; None for program order. Of two classes that take
    turns it is the place in the sequence."""
    ranking = order(tasks)
    if ranking is None:
        return None
    if ranking.classes is None:
        return [-key for key in ranking.keys]
    found = [0.0] * len(tasks.tiles)
    for place, task in enumerate(sequence(tasks, order)):
        found[task] = -float(place)
    return found


def _keys_of_heights(tasks: Tasks) -> list[float]:
    took, edge = [work.us for work in tasks.work], 0.0
    if not any(took):
        took, edge = [0.0] * len(tasks.tiles), 1.0
    return [-one for one in core.native.heights(tasks.upstream, tasks.downstream, took, edge)]


def _demands(tasks: Tasks) -> list[float]:
    demands = [work.demand for work in tasks.work]
    return demands if any(demands) else [float(tiles) for tiles in tasks.tiles]


def _classes(tasks: Tasks) -> list[int] | None:
    """0 for what computes, which begins, and 1 for what waits for memory; None where all are of
    one class, or nobody knows."""
    found = [work.is_memory_bound for work in tasks.work]
    if None in found or len(set(found)) < 2:
        return None
    return list(map(int, found))  # type: ignore[arg-type]
