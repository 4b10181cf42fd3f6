"""Generated traces: graphs of known shapes, with random sizes and durations from a seed.

Input: the name of a graph, its width and steps, a seed, and limits of the sizes. Output: a trace
whose durations are on the model's clock. The graphs are chains, random layers, and those of Task
Bench (trivial, stencil, FFT, sweep, tree, random), written anew from their descriptions.

Invariant: equal arguments give equal traces, on every machine and Python. Only `random()` of a
seeded generator is used, whose values Python promises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from acs_cl.emu.trace import Entry, Trace
from acs_cl.errors import UsageError
from acs_cl.records import Span, interval

MOST_LAUNCHES = 1 << 24
"""Most launches of a graph: each takes half a kilobyte."""
Rows = Iterator[list[tuple[int, ...]]]
"""For each step a list of tasks. A task is the positions of its upstream in the previous step."""


class Sizes(NamedTuple):
    """Limits of a launch's numbers. Groups are drawn by their logarithm, since most are small,
    durations evenly."""

    groups: tuple[int, int] = (1, 64)
    items: int = 128
    group_ns: tuple[int, int] = (2_000, 20_000)
    registers: int = 32
    local_bytes: int = 0
    segments: int = 6


def trivial(width: int, steps: int, rng: Random) -> Rows:
    """Make tasks without upstream."""
    for _ in range(steps):
        yield [()] * width


def chains(width: int, steps: int, rng: Random) -> Rows:
    """Make `width` chains."""
    yield [()] * width
    for _ in range(steps - 1):
        yield [(place,) for place in range(width)]


def layers(width: int, steps: int, rng: Random) -> Rows:
    """Make layers of 1 to `width` tasks, each behind 1 to 3 of the previous layer."""
    before = 0
    for _ in range(steps):
        here = 1 + int(rng.random() * width)
        if not before:
            yield [()] * here
        else:
            yield [_some(1 + int(rng.random() * 3), before, rng) for _ in range(here)]
        before = here


def stencil(width: int, steps: int, rng: Random) -> Rows:
    """Put each task behind its position and both neighbours."""
    yield [()] * width
    for _ in range(steps - 1):
        yield [tuple(range(max(0, place - 1), min(width, place + 2))) for place in range(width)]


def fft(width: int, steps: int, rng: Random) -> Rows:
    """Make butterflies: behind its position and the positions 1, 2, 4, … away, in turn."""
    yield [()] * width
    distance = 1
    for _ in range(steps - 1):
        yield [
            tuple(p for p in (place - distance, place, place + distance) if 0 <= p < width)
            for place in range(width)
        ]
        distance = distance * 2 if distance * 2 < width else 1


def sweep(width: int, steps: int, rng: Random) -> Rows:
    """Make a wavefront: behind its position and the one to the left."""
    yield [()] * width
    for _ in range(steps - 1):
        yield [(place - 1, place) if place else (0,) for place in range(width)]


def tree(width: int, steps: int, rng: Random) -> Rows:
    """Go from one task to `width`, twice as many in each step, and back; again until the end."""
    here, grows = 1, True
    yield [()]
    for _ in range(steps - 1):
        grows = here == 1 or (grows and here * 2 <= width)
        if grows and width > 1:
            here *= 2
            yield [(place // 2,) for place in range(here)]
        elif here > 1:
            here //= 2
            yield [(2 * place, 2 * place + 1) for place in range(here)]
        else:
            yield [(0,)]


def random(width: int, steps: int, rng: Random) -> Rows:
    """Put each task behind each one of the step before with a chance that gives two on average."""
    yield [()] * width
    for _ in range(steps - 1):
        yield [
            tuple(place for place in range(width) if rng.random() * width < 2) for _ in range(width)
        ]


def _some(count: int, among: int, rng: Random) -> tuple[int, ...]:
    return tuple(sorted({int(rng.random() * among) for _ in range(count)}))


GRAPHS: dict[str, Callable[[int, int, Random], Rows]] = {
    "trivial": trivial,
    "chains": chains,
    "layers": layers,
    "stencil": stencil,
    "fft": fft,
    "sweep": sweep,
    "tree": tree,
    "random": random,
}


def generate(
    graph: str,
    width: int,
    steps: int,
    seed: int = 0,
    sizes: Sizes | None = None,
    spans: bool = False,
) -> Trace:
    """Generate a trace. With `spans` each launch writes bytes of its own and reads those of its
    upstream, so that hazards give the same edges.

    >>> trace = generate("sweep", 3, 2, seed=1)
    >>> [entry.upstream for entry in trace.entries]
    [(), (), (), (1,), (1, 2), (2, 3)]
    """
    if graph not in GRAPHS:
        raise UsageError(f"no graph is called {graph!r}; there are {', '.join(GRAPHS)}")
    if width < 1 or steps < 1:
        raise UsageError(f"a graph has a width and steps of at least 1, got {width} and {steps}")
    if width * steps > MOST_LAUNCHES:
        raise UsageError(f"a graph has at most {MOST_LAUNCHES:,} launches, got {width} x {steps}")
    sizes = sizes or Sizes()
    shape_rng, size_rng = Random(f"{graph} shape {seed}"), Random(f"{graph} sizes {seed}")
    entries: list[Entry] = []
    first = 1
    for row in GRAPHS[graph](width, steps, shape_rng):
        here = len(entries) + 1
        for places in row:
            upstream = tuple(first + place for place in places)
            entries.append(_entry(len(entries) + 1, graph, upstream, sizes, size_rng, spans))
        first = here
    name = f"{graph}, width {width}, {steps} steps, seed {seed}"
    return Trace(name, entries, edges="spans" if spans else "upstream")


def _entry(
    number: int, name: str, upstream: tuple[int, ...], sizes: Sizes, rng: Random, spans: bool
) -> Entry:
    least, most = sizes.group_ns
    entry = Entry(
        number,
        name,
        upstream=upstream,
        groups=_by_size(*sizes.groups, rng),
        items=sizes.items,
        registers=sizes.registers,
        local_bytes=sizes.local_bytes,
        group_ns=least + int(rng.random() * (most - least + 1)),
        segments=sizes.segments,
    )
    if spans:
        reads = tuple(_own_bytes(other) for other in upstream)
        return entry._replace(upstream=(), reads=reads, writes=(_own_bytes(number),))
    return entry


def _by_size(least: int, most: int, rng: Random) -> int:
    """Return a number of a random octave: powers of floats are not the same on every machine."""
    octaves = (most // least).bit_length()
    low = least << int(rng.random() * octaves)
    high = min(most, 2 * low - 1)
    return low + int(rng.random() * (high - low + 1))


def _own_bytes(number: int) -> Span:
    return interval(1, 256 * number, 256)
