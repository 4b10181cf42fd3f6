"""The insides of epochs: tasks as the page shows them, and the runs of each group.

Input: slices with the runs that groups noted. Output: columns. The tasks of a replay, bands
included, become items behind the launches. They have names, bytes, edges and times of their own.

Invariant: `Inside.left_out` tells what is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from ...records import Access, NamedTuple, ReplayTask, Run
from ..edges import meetings
from ..record import Record

MOST_ITEMS, MOST_RUNS = 20_000, 60_000
"""Most tasks of replays, and most runs, in a page: it stays small."""

UNKNOWN = -1


class Item(NamedTuple):
    """A task of a replay."""

    of: int
    """The position of the replay."""
    part: ReplayTask
    begin: int
    end: int
    tiles: int


class Inside(NamedTuple):
    """The known insides of epochs. Times are nanoseconds from the block's beginning."""

    items: list[Item]
    edges: list[tuple[int, int, str]]
    """Edges between items, by their positions behind the launches."""
    begin: list[int]
    end: list[int]
    """End of each launch, where its own times are known."""
    runs: dict[str, list[int]]
    left_out: int
    """Launches in epochs, and replays, without runs and tasks on the page."""


def inside(record: Record) -> Inside:
    """Return what the slices of a record tell about epochs."""
    zero, slices = record.whole[0], record.slices
    found = Inside([], [], [], [], {name: [] for name in RUN_COLUMNS}, 0)
    left_out = 0
    edges_of: dict[int, list[tuple[int, int, str]]] = {}
    for place, one in enumerate(slices):
        at = partial(record.clocks.on_host, one)
        runs = [(run, at(run.start_ns), at(run.end_ns)) for run in one.runs]
        own = not one.parts and bool(runs)
        found.begin.append(min(start for _, start, _ in runs) - zero if own else UNKNOWN)
        found.end.append(max(end for _, _, end in runs) - zero if own else UNKNOWN)
        if not runs:
            continue
        is_long = len(found.items) + len(one.parts) > MOST_ITEMS
        if is_long or len(found.runs["item"]) + len(runs) > MOST_RUNS:
            left_out += 1
            continue
        first = len(slices) + len(found.items)
        if one.parts:
            found.items.extend(_items(place, one.parts, runs, zero))
            made = edges_of.get(id(one.parts))
            if made is None:
                made = edges_of[id(one.parts)] = list(_edges(one.parts))
            found.edges.extend((first + up, first + down, kind) for up, down, kind in made)
        for run, start, end in runs:
            item = first + run.part if one.parts else place
            row = (item, run.group, start - zero, end - zero, run.tiles, int(run.is_child))
            for name, value in zip(RUN_COLUMNS, row, strict=True):
                found.runs[name].append(value)
    return found._replace(left_out=left_out)


RUN_COLUMNS = ("item", "group", "start", "end", "tiles", "child")


def _items(
    place: int, parts: Sequence[ReplayTask], runs: Sequence[tuple[Run, int, int]], zero: int
) -> Iterable[Item]:
    by_part: dict[int, list[tuple[Run, int, int]]] = {}
    for run in runs:
        by_part.setdefault(run[0].part, []).append(run)
    for number, part in enumerate(parts):
        mine = by_part.get(number, ())
        begin = min((start for _, start, _ in mine), default=zero + UNKNOWN)
        end = max((end for _, _, end in mine), default=zero + UNKNOWN)
        tiles = sum(run.tiles for run, _, _ in mine)
        yield Item(place, part, begin - zero, end - zero, tiles)


def _edges(parts: Sequence[ReplayTask]) -> Iterable[tuple[int, int, str]]:
    """Return edges as upstream, task and kind."""
    for task, part in enumerate(parts):
        for other in part.upstream:
            above = parts[other]
            met = meetings(Access(above.reads, above.writes), Access(part.reads, part.writes))
            kind = next((meeting.kind for meeting in met), "other")
            yield other, task, kind
