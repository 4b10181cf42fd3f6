"""Early parts: which launches of a segment to cut, since a part of them may begin earlier.

Input: recorded launches with their tasks, and a function that cuts one of them. Output: their
tasks, some of which have bands. Pure.

A program may use memory again, or read the results of many launches at once. Such a launch waits
for the last of those that it shares bytes with, and what follows waits for it, though most of its
bytes are ready long before. In bands only a part of it waits. All other launches stay whole: with
bands they would cost more, and end no earlier.

A *level* of a task is the length of the longest chain of tasks that ends with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .. import core
from ..access.cuts import TILES
from ..records import Access
from .chains import FOLLOWS_IN_PARTS, cut_chains
from .task import Task

MAY_BEGIN_EARLY = "a part of it may begin early"
"""Why a launch has bands."""

CHOSEN = {MAY_BEGIN_EARLY, FOLLOWS_IN_PARTS}
"""Reasons of bands that nobody asked for."""

LEAST_LEVELS = 8
"""A launch is cut if some of its bytes may be ready at least this many levels before others."""

SHARE = 8
"""The same, as a part of all levels."""

MOST = 64
"""Launches that are cut at most."""

LEAST_GAIN = 1.1
"""Without cuts there have to be this many times as many levels, or nothing is cut."""


def cut_early(
    accesses: Sequence[Access],
    tasks: Sequence[Task],
    cut: Callable[[int, int], Task | None],
    groups: int,
) -> list[Task]:
    """Return the tasks of launches with these accesses. `cut`: returns the task of a launch in
    so many bands, or without if there are none, or None. `groups`: how many run at a time."""
    edges, levels = _whole(accesses)
    depth = max(levels, default=0)
    found = _cut_unready(accesses, tasks, edges, levels, cut)
    if sum(task.tiles for task in tasks) <= groups * depth:
        found = cut_chains(found, edges, cut, groups)
    return found


def _cut_unready(
    accesses: Sequence[Access],
    tasks: Sequence[Task],
    edges: Sequence[Sequence[int]],
    whole: Sequence[int],
    cut: Callable[[int, int], Task | None],
) -> list[Task]:
    """Cut launches of which a part is ready many levels before the rest. `edges`, `whole`: what
    each launch waits for, and its level, if all are whole."""
    depth = max(whole, default=0)
    if depth <= LEAST_LEVELS:  # no two are so many levels apart
        return [*tasks]
    may_gain = _on_longest(edges, whole)
    if all(tasks[at].tiles == 1 or tasks[at].cuts.bands for at in may_gain):
        return [*tasks]
    least = max(LEAST_LEVELS, depth // SHARE)
    found, hazards = [*tasks], core.native.Hazards()
    levels: list[int] = []  # of each number of the hazards, less one: launches, or their bands
    cuts = 0
    for at, access in enumerate(accesses):
        task, first = tasks[at], len(levels) + 1
        if at in may_gain and cuts < MOST and task.tiles > 1 and not task.cuts.bands:
            its = [levels[other - 1] for other in hazards.sharers(access.reads, access.writes)]
            parts = cut(at, TILES) if its and max(its) - min(its) >= least else None
            if parts is not None and parts.cuts.bands:
                found[at] = task = parts.because(MAY_BEGIN_EARLY)
                cuts += 1
        if bands := [band.access for band in task.cuts.bands]:
            behind = hazards.enter_many(first, bands)
        else:
            behind = [hazards.enter(first, access.reads, access.writes)]
        levels += [_behind(levels, one) for one in behind]
    return found if cuts and depth >= LEAST_GAIN * max(levels) else [*tasks]


def _whole(accesses: Sequence[Access]) -> tuple[list[list[int]], list[int]]:
    """Return the places of those that each launch waits for, and its level, if all are whole."""
    hazards = core.native.Hazards()
    edges: list[list[int]] = []
    levels: list[int] = []
    for at, access in enumerate(accesses):
        numbers = hazards.enter(at + 1, access.reads, access.writes)
        levels.append(_behind(levels, numbers))
        edges.append([number - 1 for number in numbers])
    return edges, levels


def _on_longest(edges: Sequence[Sequence[int]], levels: Sequence[int]) -> set[int]:
    """Return the launches that are in one of the longest chains, or nearly."""
    upstream = [above for each in edges for above in each]
    downstream = [at for at, each in enumerate(edges) for _ in each]
    chains = core.native.heights(upstream, downstream, [1.0] * len(levels), 0.0)
    least = max(levels, default=0) / LEAST_GAIN
    return {at for at, level in enumerate(levels) if level - 1 + chains[at] >= least}


def _behind(levels: Sequence[int], numbers: Iterable[int]) -> int:
    """Return the level of a task that waits for the tasks with these numbers."""
    return 1 + max([levels[number - 1] for number in numbers], default=0)
