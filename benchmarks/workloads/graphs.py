"""Describe synthetic graphs: a made-up program, the order of its tasks, and their results.

Input: a `Graph`, which says in program order which elements each task reads and writes. Output:
`edges`, the least order that is needed, and `computed`, the contents of its arrays afterwards.
Pure: it uses no device, and not the library's own hazards, which are tested against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

GROUP = 64
"""Work-items of a group; a task has one for each element that it writes."""

Words = np.ndarray[Any, np.dtype[np.uint32]]


class Region(NamedTuple):
    """`rows` rows of `width` elements of an array, `pitch` apart; a plain interval is one row."""

    array: int
    start: int
    width: int
    rows: int = 1
    pitch: int = 1

    @property
    def size(self) -> int:
        """Return the number of its elements."""
        return self.rows * self.width

    @property
    def end(self) -> int:
        """Return the place behind the last element."""
        return self.start + (self.rows - 1) * self.pitch + self.width

    def places(self) -> np.ndarray[Any, Any]:
        """Return the places of its elements, in order."""
        rows = self.start + self.pitch * np.arange(self.rows)
        return (rows[:, None] + np.arange(self.width)).reshape(-1)


class Task(NamedTuple):
    """A launch of `groups` groups, each item of which does `rounds` rounds. It overwrites what it
    writes or, if it `updates`, reads it too, item by item. Of what else it reads it needs the first
    `span` elements. `lane`: a queue that suits it, for who chooses queues by hand."""

    reads: tuple[Region, ...]
    writes: Region
    updates: bool
    groups: int
    rounds: int
    lane: int

    @property
    def span(self) -> int:
        """Return how many elements of each region are read."""
        return min((region.size for region in self.reads), default=1)


class Graph(NamedTuple):
    """A program: `arrays` are lengths in elements, `tasks` are in program order."""

    arrays: tuple[int, ...]
    tasks: tuple[Task, ...]
    seed: int

    def contents(self) -> list[Words]:
        """Return the contents of the arrays at the beginning."""
        dice = np.random.RandomState(self.seed)  # its numbers are the same in every version
        return [dice.randint(1, 1 << 32, size=length, dtype=np.uint32) for length in self.arrays]


# ---- what orders them ----------------------------------------------------------------------------


def edges(graph: Graph) -> list[tuple[int, ...]]:
    """Return the upstream of each task, without tasks that another upstream task waits for."""
    live: dict[int, list[_Use]] = {}
    ancestors: list[int] = []
    found: list[tuple[int, ...]] = []
    for number, task in enumerate(graph.tasks):
        upstream = {
            use.task
            for region in task.reads
            for use in _users(live.get(region.array, ()), region)
            if use.wrote
        }
        into = task.writes
        mine = live.setdefault(into.array, [])
        met = _users(mine, into)
        upstream |= {use.task for use in met}
        kept, known = [], 0
        for other in sorted(upstream, reverse=True):
            if not known >> other & 1:
                kept.append(other)
                known |= ancestors[other] | 1 << other
        found.append(tuple(sorted(kept)))
        ancestors.append(known)
        gone = {id(use) for use in met if _covers(into, use.region)}
        if gone:
            mine[:] = [use for use in mine if id(use) not in gone]
        mine.append(_Use(number, into, into.start, into.end, True))
        for region in task.reads:
            use = _Use(number, region, region.start, region.end, False)
            live.setdefault(region.array, []).append(use)
    return found


class _Use(NamedTuple):
    """A task and a region that it reads or writes."""

    task: int
    region: Region
    start: int
    end: int
    wrote: bool


def _users(uses: Sequence[_Use], region: Region) -> list[_Use]:
    """Return the uses that share an element with a region."""
    start, end = region.start, region.end
    near = [use for use in uses if use.start < end and start < use.end]
    return [use for use in near if meet(use.region, region)]


def meet(a: Region, b: Region) -> bool:
    """Tell whether two regions of one array share an element."""
    if a.start >= b.end or b.start >= a.end:
        return False
    return a.rows == b.rows == 1 or not _elements(a).isdisjoint(_elements(b))


def _covers(a: Region, b: Region) -> bool:
    if a.start > b.start or a.end < b.end:
        return False
    return a.rows == 1 or _elements(b) <= _elements(a)


@lru_cache(maxsize=4096)
def _elements(region: Region) -> frozenset[int]:
    return frozenset(region.places().tolist())


# ---- what they compute ---------------------------------------------------------------------------


def computed(graph: Graph) -> list[Words]:
    """Return the arrays after all tasks, one after another."""
    arrays = graph.contents()
    for number, task in enumerate(graph.tasks):
        run(task, number, arrays)
    return arrays


def run(task: Task, number: int, arrays: list[Words]) -> None:
    """Run one task, the `number`-th of the program."""
    into = task.writes.places()
    values = np.arange(number, number + into.size, dtype=np.uint32)
    if task.updates:
        values = values * np.uint32(5) + arrays[task.writes.array][into]
    mirrored = task.span - 1 - np.arange(into.size) % task.span
    for region in task.reads:
        values = values * np.uint32(5) + arrays[region.array][region.places()[mirrored]]
    arrays[task.writes.array][into] = stir(values, task.rounds)


def stir(values: Words, rounds: int) -> Words:
    """Do `rounds` rounds of xorshift. A round is linear, so 1, 2, 4, … rounds at once are look-ups
    of the four bytes of a word."""
    power = 0
    while rounds:
        if rounds & 1:
            low, second, third, high = _rounds(power)
            values = (
                low[values & 255] ^ second[values >> 8 & 255]
                ^ third[values >> 16 & 255] ^ high[values >> 24]
            )  # fmt: skip
        rounds >>= 1
        power += 1
    return values


def stir_once(values: Words) -> Words:
    """Do one round."""
    values = values ^ values << np.uint32(13)
    values = values ^ values >> np.uint32(17)
    return values ^ values << np.uint32(5)


@lru_cache(maxsize=32)
def _rounds(power: int) -> Sequence[Words]:
    """Return the result of `2 ** power` rounds for each value of each byte."""
    tables = [np.arange(256, dtype=np.uint32) << np.uint32(8 * byte) for byte in range(4)]
    if not power:
        return [stir_once(table) for table in tables]
    half = 1 << power - 1
    return [stir(stir(table, half), half) for table in tables]
