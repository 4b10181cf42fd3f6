"""Generate synthetic graphs with exact parameters.

Input: sizes, which are records with a `graph(seed)`. Output: graphs: regular ones, those of Task
Bench, random layers, and some that are hard for a search for dependencies.

Invariant: equal sizes and seeds give equal graphs, on every machine and Python. Only `random()` of
a seeded generator is used, whose values Python promises.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from acs_cl import UsageError
from acs_cl.benchmarks.workloads.graphs import GROUP, Graph, Region, Task
from acs_cl.emu import generate

MOST_READS = 4
"""What kernels of the synthetic graphs take."""

PATTERNS = ("trivial", "stencil", "fft", "sweep", "tree", "random")
"""Of Task Bench."""

Range = tuple[int, int]


class Chains(NamedTuple):
    """Independent chains, a link of each in turn; every chain updates one array."""

    chains: int
    length: int
    groups: int = 1
    rounds: int = 0

    def graph(self, seed: int) -> Graph:
        """Make `chains * length` tasks."""
        whole = [Region(chain, 0, self.groups * GROUP) for chain in range(self.chains)]
        links = [
            Task((), region, True, self.groups, self.rounds, chain)
            for chain, region in enumerate(whole)
        ]
        return Graph((self.groups * GROUP,) * self.chains, tuple(links * self.length), seed)


class Layers(NamedTuple):
    """Random layers: each task reads `fan_in` arrays of the layer before. `groups` (of a column)
    and `rounds` (of a task) are drawn evenly from what is between their two numbers. Layers take
    turns with two sets of arrays, so that a task also waits for those who read what it overwrites.
    """

    width: int
    depth: int
    fan_in: int
    groups: Range = (1, 1)
    rounds: Range = (0, 0)

    def graph(self, seed: int) -> Graph:
        """Make `width * depth` tasks."""
        if not 1 <= self.fan_in <= min(self.width, MOST_READS):
            raise UsageError(
                f"a fan-in of 1 to {min(self.width, MOST_READS)} is possible, got {self.fan_in}"
            )
        rng = Random(f"layers {seed}")
        groups = [_between(self.groups, rng) for _ in range(self.width)]
        sizes = [GROUP * count for count in groups]
        tasks = []
        for layer in range(self.depth):
            here, before = layer % 2 * self.width, (layer + 1) % 2 * self.width
            for column, size in enumerate(sizes):
                sources = _distinct(self.fan_in, self.width, rng) if layer else []
                span = min((size, *(sizes[source] for source in sources)))
                reads = tuple(Region(before + source, 0, span) for source in sources)
                tasks.append(
                    Task(reads, Region(here + column, 0, size), False, groups[column],
                         _between(self.rounds, rng), column)
                )  # fmt: skip
        return Graph((*sizes, *sizes), tuple(tasks), seed)


class TaskBench(NamedTuple):
    """A pattern of Task Bench. Every task has an array of its own, so that the pattern is all
    that orders them. As in CUDASTF's version, `random` reads two tasks of the step before."""

    pattern: str
    width: int = 64
    steps: int = 16
    groups: int = 1
    rounds: int = 0

    def graph(self, seed: int) -> Graph:
        """Make `width * steps` tasks; of a tree, fewer."""
        if self.pattern not in PATTERNS:
            raise UsageError(
                f"no pattern is called {self.pattern!r}; there are {', '.join(PATTERNS)}"
            )
        rng = Random(f"{self.pattern} {seed}")
        make = _random if self.pattern == "random" else generate.GRAPHS[self.pattern]
        size = self.groups * GROUP
        tasks: list[Task] = []
        first = 0
        for row in make(self.width, self.steps, rng):
            here = len(tasks)
            for column, places in enumerate(row):
                reads = tuple(Region(first + place, 0, size) for place in places)
                tasks.append(
                    Task(reads, Region(len(tasks), 0, size), False, self.groups, self.rounds,
                         column)
                )  # fmt: skip
            first = here
        return Graph((size,) * len(tasks), tuple(tasks), seed)


class OneArray(NamedTuple):
    """All tasks update one array: what is overwritten unread would tell of no missed edge."""

    tasks: int
    groups: int = 1
    rounds: int = 0

    def graph(self, seed: int) -> Graph:
        """Make `tasks` tasks."""
        whole = Region(0, 0, self.groups * GROUP)
        task = Task((), whole, True, self.groups, self.rounds, 0)
        return Graph((whole.size,), (task,) * self.tasks, seed)


class ReadMany(NamedTuple):
    """Turns of many that read one array and one that writes it."""

    readers: int
    turns: int
    groups: int = 1
    rounds: int = 0

    def graph(self, seed: int) -> Graph:
        """Make `(readers + 1) * turns` tasks. Array 0 is the one that all read."""
        size = self.groups * GROUP
        one = Region(0, 0, size)
        tasks = []
        for _ in range(self.turns):
            for reader in range(1, self.readers + 1):
                into = Region(reader, 0, size)
                tasks.append(Task((one,), into, True, self.groups, self.rounds, reader))
            tasks.append(Task((), one, True, self.groups, self.rounds, 0))
        return Graph((size,) * (self.readers + 1), tuple(tasks), seed)


class FullWindow(NamedTuple):
    """A chain that fills the window, and only then, each `turns` times, what is independent."""

    chain: int
    others: int
    turns: int
    groups: int = 1
    rounds: int = 0

    def graph(self, seed: int) -> Graph:
        """Make `(chain + others) * turns` tasks. Array 0 is the chain's."""
        size = self.groups * GROUP
        tasks: list[Task] = []
        for _ in range(self.turns):
            places = [0] * self.chain + list(range(1, self.others + 1))
            tasks += [
                Task((), Region(place, 0, size), True, self.groups, self.rounds, place)
                for place in places
            ]
        return Graph((size,) * (self.others + 1), tuple(tasks), seed)


class Strided(NamedTuple):
    """Views of one matrix: tasks update a band of columns each, half of them from another band, and
    one in each step a row. Bands share no byte, though their hulls overlap; a row meets them all.
    """

    bands: int
    steps: int
    width: int = 4
    rounds: int = 0

    def graph(self, seed: int) -> Graph:
        """Make `(bands + 1) * steps` tasks. A band has `GROUP` elements, a row whole groups."""
        rng = Random(f"strided {seed}")
        rows, pitch = GROUP // self.width, self.bands * self.width
        if GROUP % self.width or pitch < 2 * GROUP:
            raise UsageError(
                f"bands have to be a part of {GROUP} wide, and {2 * GROUP} together; "
                f"got {self.bands} of {self.width}"
            )
        tasks = []
        for _ in range(self.steps):
            for band in range(self.bands):
                into = Region(0, band * self.width, self.width, rows, pitch)
                source = (band + 1 + int(rng.random() * (self.bands - 1))) % self.bands
                reads = (into._replace(start=source * self.width),) if rng.random() < 0.5 else ()
                tasks.append(Task(reads, into, True, 1, self.rounds, band))
            groups = pitch // GROUP
            row = Region(0, int(rng.random() * rows) * pitch, groups * GROUP)
            tasks.append(Task((), row, True, groups, self.rounds, self.bands))
        return Graph((rows * pitch,), tuple(tasks), seed)


class Aliasing(NamedTuple):
    """Views of one array that begin anywhere: a task updates one, three of four from another. They
    overlap those of other tasks by any number of elements, never each other."""

    tasks: int
    length: int
    rounds: int = 0

    def graph(self, seed: int) -> Graph:
        """Make `tasks` tasks on an array of `length` elements."""
        if self.length < 4 * GROUP:
            raise UsageError(f"a length of at least {4 * GROUP} is needed, got {self.length}")
        rng = Random(f"aliasing {seed}")
        half = self.length // 2
        tasks = []
        for _ in range(self.tasks):
            low = int(rng.random() * (half - GROUP + 1))
            high = half + int(rng.random() * (self.length - half - GROUP + 1))
            source, place = (low, high) if rng.random() < 0.5 else (high, low)
            reads = (Region(0, source, GROUP),) if rng.random() < 0.75 else ()
            into = Region(0, place, GROUP)
            tasks.append(Task(reads, into, True, 1, self.rounds, place // GROUP))
        return Graph((self.length,), tuple(tasks), seed)


def _between(least_and_most: Range, rng: Random) -> int:
    least, most = least_and_most
    return least + int(rng.random() * (most - least + 1))


def _distinct(count: int, among: int, rng: Random) -> list[int]:
    """Draw `count` different numbers below `among`, in order."""
    left = list(range(among))
    return sorted(left.pop(int(rng.random() * len(left))) for _ in range(count))


def _random(width: int, steps: int, rng: Random) -> Iterator[list[tuple[int, ...]]]:
    yield [()] * width
    for _ in range(steps - 1):
        yield [
            tuple(sorted({int(rng.random() * width), int(rng.random() * width)}))
            for _ in range(width)
        ]
