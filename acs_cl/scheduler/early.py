"""Early parts: which launches of a segment to cut, since a part of them may begin much earlier.

Input: recorded launches with their tasks, and a function that cuts one of them. Output: their
tasks, a few of which have bands. Pure.

A program may use memory again, or read the results of many launches at once. Such a launch waits
for the last of those that it shares bytes with, and what follows waits for it, though most of its
bytes are ready long before. In bands only a part of it waits. All other launches stay whole: with
bands they would cost more, and end no earlier.

A *level* of a task is the length of the longest chain of tasks that ends with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .. import core
from ..records import Access
from .task import Task

MAY_BEGIN_EARLY = "a part of it may begin early"
"""Why a launch has bands."""

LEAST_LEVELS = 8
"""A launch is cut if some of its bytes may be ready at least this many levels before others."""

SHARE = 8
"""The same, as a part of all levels."""

MOST = 64
"""Launches that are cut at most."""

LEAST_GAIN = 1.1
"""Without cuts there have to be this many times as many levels, or nothing is cut."""


def cut_early(
    accesses: Sequence[Access], tasks: Sequence[Task], cut: Callable[[int], Task | None]
) -> list[Task]:
    """Return the tasks of launches with these accesses. `cut`: returns the task of a launch in
    bands, or without if there are none, or None."""
    levels, may_gain = _whole(accesses)
    depth = max(levels, default=0)
    if depth <= LEAST_LEVELS:  # no two are so many levels apart
        return [*tasks]
    least = max(LEAST_LEVELS, depth // SHARE)
    found, hazards = [*tasks], core.native.Hazards()
    levels = []  # of each number of the hazards, less one: launches, or their bands
    cuts = 0
    for at, access in enumerate(accesses):
        task, first = tasks[at], len(levels) + 1
        if at in may_gain and cuts < MOST and task.tiles > 1 and not task.cuts.bands:
            its = [levels[other - 1] for other in hazards.sharers(access.reads, access.writes)]
            parts = cut(at) if its and max(its) - min(its) >= least else None
            if parts is not None and parts.cuts.bands:
                found[at] = task = marked(parts)
                cuts += 1
        if bands := [band.access for band in task.cuts.bands]:
            edges = hazards.enter_many(first, bands)
        else:
            edges = [hazards.enter(first, access.reads, access.writes)]
        levels += [_behind(levels, one) for one in edges]
    return found if cuts and depth >= LEAST_GAIN * max(levels) else [*tasks]


def marked(task: Task) -> Task:
    """Return the task with the reason for its bands."""
    if not task.cuts.bands:
        return task
    return task._replace(cuts=task.cuts._replace(reason=MAY_BEGIN_EARLY))


def _whole(accesses: Sequence[Access]) -> tuple[list[int], set[int]]:
    """Return the level of each launch, if all are whole, and which of them are in one of the
    longest chains."""
    hazards = core.native.Hazards()
    levels: list[int] = []
    upstream: list[int] = []
    downstream: list[int] = []
    for at, access in enumerate(accesses):
        edges = hazards.enter(at + 1, access.reads, access.writes)
        levels.append(_behind(levels, edges))
        upstream += [number - 1 for number in edges]
        downstream += [at] * len(edges)
    chains = core.native.heights(upstream, downstream, [1.0] * len(levels), 0.0)
    least = max(levels, default=0) / LEAST_GAIN
    return levels, {at for at, level in enumerate(levels) if level - 1 + chains[at] >= least}


def _behind(levels: Sequence[int], numbers: Iterable[int]) -> int:
    """Return the level of a task that waits for the tasks with these numbers."""
    return 1 + max([levels[number - 1] for number in numbers], default=0)
