"""Orders: which of several ready tasks goes first.

Input: the edges of a graph, the tiles of each task and, if measured, its demand of the device.
Output: a `Ranking`, and from it the tasks one after another. Pure. The scheduler on the device
writes epochs by it, graphs are replayed by it, and the emulator predicts by it. The core does the
slow part.

Opara (arXiv 2312.10351) gives the two orders of its name. Kernels that wait for memory leave
arithmetic idle, and the other way round, so the two classes alternate. Small tasks go first,
because they leave room for others beside them.

Invariant: a sequence holds each task once, behind all of its upstream.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import core
from ..records import NamedTuple, Protocol


class Work(NamedTuple):
    """What a task asks of the device. Zero and None mean 'not known'."""

    us: float = 0.0
    """How long it takes alone."""
    demand: float = 0.0
    """Share of the device that its groups take. It is above 1 if they come in several turns."""
    is_memory_bound: bool | None = None


class Tasks(NamedTuple):
    """A graph, as orders see it."""

    upstream: Sequence[int]
    """The upstream task of each edge. Edges come in the order of `downstream`."""
    downstream: Sequence[int]
    tiles: Sequence[int]
    """How many groups may run each task at one time."""
    work: Sequence[Work] = ()
    """One for each task, or empty."""


class Ranking(NamedTuple):
    """The result of an order: the ready task with the smallest key goes first. With `classes`, two
    queues take turns."""

    keys: Sequence[float]
    classes: Sequence[int] | None = None


class Order(Protocol):
    """A dispatch order. It sees edges, the groups of each task, and measured demands, if any."""

    def __call__(self, tasks: Tasks) -> Ranking | None:
        """Return a ranking. None: program order."""


def first_in(tasks: Tasks) -> Ranking | None:
    """Keep program order."""
    return None


def critical_path(tasks: Tasks) -> Ranking | None:
    """Put the task with the longest way to the end first: in microseconds, or else in tasks."""
    return Ranking(_keys_of_heights(tasks))


def narrow_first(tasks: Tasks) -> Ranking | None:
    """Put tasks that one group runs first. So a chain of them starts while wide tasks fill the
    other groups."""
    return Ranking([float(tiles != 1) for tiles in tasks.tiles])


def opara(tasks: Tasks) -> Ranking | None:
    """Alternate classes, the smallest demand first. If no demand is known, tiles count."""
    return Ranking(_demands(tasks), _classes(tasks))


def opara_critical(tasks: Tasks) -> Ranking | None:
    """Alternate classes, with the longest way to the end first."""
    return Ranking(_keys_of_heights(tasks), _classes(tasks))


ORDERS: dict[str, Order] = {
    "first_in": first_in,
    "critical_path": critical_path,
    "narrow_first": narrow_first,
    "opara": opara,
    "opara_critical": opara_critical,
}


def sequence(tasks: Tasks, order: Order) -> list[int]:
    """Put all tasks one after another, always the best-ranked task whose upstream is there."""
    ranking = order(tasks)
    n = len(tasks.tiles)
    if ranking is None:
        return list(range(n))
    classes = ranking.classes or [0] * n
    return core.native.sequence(tasks.upstream, tasks.downstream, ranking.keys, classes)


def priorities(tasks: Tasks, order: Order) -> Sequence[float] | None:
    """Return a priority for each task, higher first. None: program order. With two classes that
    take turns it is the place in the sequence."""
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
    """Return 0 for tasks that compute, which begin, and 1 for tasks that wait for memory. None: all
    are of one class, or it is unknown."""
    found = [work.is_memory_bound for work in tasks.work]
    if set(found) != {False, True}:
        return None
    return [1 if one else 0 for one in found]
