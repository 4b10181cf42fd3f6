"""Chains: which launches of a segment to cut, since each follows the one before part by part.

Input: the tasks of launches, and what each launch waits for. Output: their tasks, some of which
have bands. Pure.

A launch waits until all groups of the launch before it have ended. Often a part of it needs only
what the same part of that launch made. In bands, whoever has run a part goes on with the same part
of the next launch, and looks nothing up in between. Long chains gain by it. At their ends it costs:
what they wait for, and what waits for them, has an edge to each band.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from .. import core
from ..access.cuts import EACH_TILE, TILES
from .bands import Band
from .task import Task

FOLLOWS_IN_PARTS = "each part of it follows one part of the launch before"
"""Why a launch has bands."""

LEAST_LINKS = 3
"""A chain is cut if it has so many links, and as many more for each edge to a launch outside it but
the first."""

MOST_BROKEN = 3
"""Where a chain cannot be cut so often, the rest of it stays whole."""

MOST_TILES = 128
"""Each tile of a launch with more is no band of its own: recording would take long."""

MOST_BANDS = 1 << 17
"""Bands of all chains of a segment."""


def cut_chains(
    tasks: Sequence[Task],
    edges: Sequence[Sequence[int]],
    cut: Callable[[int, int], Task | None],
    groups: int,
) -> list[Task]:
    """Return the tasks of launches, of which each waits for those at the places in `edges`. `cut`:
    returns the task of a launch in so many bands, or without if there are none, or None. `groups`:
    how many groups the device runs at a time."""
    found, room = [*tasks], MOST_BANDS
    for chain, least in _chains(tasks, edges, groups):
        broken = 0
        while len(chain) > least and broken < MOST_BROKEN:
            tiles = tasks[chain[0]].tiles
            many = EACH_TILE if tiles <= MOST_TILES and tiles * len(chain) <= room else TILES
            parts = _in_bands(chain, cut, many, room)
            if len(parts) > least:
                for at, task in zip(chain, parts, strict=False):
                    found[at] = task
                    room -= len(task.cuts.bands)
            broken += len(parts) < len(chain)
            chain = chain[max(1, len(parts)) :]
    return found


def _chains(
    tasks: Sequence[Task], edges: Sequence[Sequence[int]], groups: int
) -> Iterator[tuple[list[int], int]]:
    """Yield the places of launches of which each waits for the one before it and for no other, and
    how many links it takes to gain by bands."""
    followers = Counter(above for each in edges for above in each)
    by_end: dict[int, list[int]] = {}
    for at, task in enumerate(tasks):
        if not 1 < task.tiles <= groups or task.cuts.bands:
            continue
        above = edges[at]
        chain: list[int] = []
        if len(above) == 1 and above[0] in by_end and tasks[above[0]].tiles == task.tiles:
            chain = by_end.pop(above[0])
        chain.append(at)
        by_end[at] = chain
    for chain in by_end.values():
        links = len(chain) - 1
        outside = len(edges[chain[0]]) + sum(followers[at] for at in chain) - links
        yield chain, LEAST_LINKS * max(1, outside)


def _in_bands(
    chain: Sequence[int], cut: Callable[[int, int], Task | None], many: int, most: int
) -> list[Task]:
    """Return the tasks of the first launches of a chain in bands, as long as each band waits for
    the same band of the launch before, and for no other of it."""
    found: list[Task] = []
    known: set[tuple[int, int]] = set()  # bands of two launches; those that are alike share theirs
    left = most
    for at in chain:
        task = cut(at, many)
        left -= len(task.cuts.bands) if task is not None else 0
        if task is None or not task.cuts.bands or left < 0:
            break
        if found:
            both = found[-1].cuts.bands, task.cuts.bands
            pair = id(both[0]), id(both[1])
            if pair not in known and not _follow_one_by_one(*both):
                break
            known.add(pair)
        found.append(task.because(FOLLOWS_IN_PARTS))
    return found


def _follow_one_by_one(before: Sequence[Band], bands: Sequence[Band]) -> bool:
    """Tell whether each band waits for the band before that has the same place, and for no
    other."""
    if len(before) != len(bands):
        return False
    hazards, many = core.native.Hazards(), len(before)
    hazards.enter_many(1, [band.access for band in before])
    edges = hazards.enter_many(1 + many, [band.access for band in bands])
    return all([*each] == [number] for number, each in enumerate(edges, 1))
