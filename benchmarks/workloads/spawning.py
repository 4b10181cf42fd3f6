"""Programs whose kernels spawn work of uneven size: those of SPAWN, N-Queens and quicksort.

Input: a runtime and a size. Output: an `Uneven`: launches, and arrays with what NumPy has for them.

Invariants: launches begin from the same state each time. The flat twin of a program is the same
source where nothing is spawned, so that both do the same work, and all results are integers.
"""

# Long because: each program stands whole, its NumPy twin beside it.

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import acs_cl as acs
from acs_cl.opencl_c.kernel_files import kernel_source

Ints = npt.NDArray[np.int32]
Make = Callable[[acs.Runtime, acs.Program, int], "Uneven"]
FAR = 1 << 30
COLOURS = 12
"""Rounds of colouring: what is left then has no colour."""
PARTINGS = 8
TILE = 32
MOST = 256
BUCKETS = 1024
READ = 64


class Uneven(NamedTuple):
    """A program, and what comes of it."""

    launch: Callable[[], None]
    results: Sequence[tuple[acs.Array, Ints]]
    """Arrays, and what NumPy has for each."""

    def check(self) -> None:
        """Raise `RuntimeError` if a result differs."""
        for array, wanted in self.results:
            if not np.array_equal(array.get(), wanted):
                raise RuntimeError("a result differs from NumPy's")


class Graph(NamedTuple):
    """A graph by rows, symmetric."""

    row: Ints
    to: Ints

    @property
    def source(self) -> Ints:
        """Return where each edge begins."""
        return np.repeat(np.arange(len(self.row) - 1, dtype="i4"), np.diff(self.row))


def by_rows(source: Any, to: Any, vertices: int) -> Graph:
    """Make a graph of edges, in both directions and each once."""
    both = np.unique(
        np.concatenate((source, to)).astype("i8") * vertices + np.concatenate((to, source))
    )
    row = np.concatenate(([0], np.bincount(both // vertices, minlength=vertices).cumsum()))
    return Graph(row.astype("i4"), (both % vertices).astype("i4"))


@cache
def citations(vertices: int) -> Graph:
    """Draw papers that cite earlier ones. Some are cited by everybody."""
    rng = np.random.default_rng(1)
    source = np.repeat(np.arange(1, vertices), 6)
    popular = rng.random(len(source)) ** 4 * source
    return by_rows(source, popular.astype("i8"), vertices)


@cache
def graph500(vertices: int) -> Graph:
    """Draw edges that fall into quarters of quarters with the shares of the benchmark Graph500."""
    rng = np.random.default_rng(2)
    edges = 8 * vertices
    source, to = np.zeros(edges, "i8"), np.zeros(edges, "i8")
    for _ in range(vertices.bit_length() - 1):
        draw = rng.random(edges)
        source = 2 * source + (draw > 0.76)
        to = 2 * to + ((draw > 0.57) & (draw <= 0.76) | (draw > 0.95))
    return by_rows(source, to, vertices)


def _placed(rt: acs.Runtime, *arrays: Any) -> list[acs.Array]:
    return [rt.array(np.asarray(one, "i4")) for one in arrays]


def search(graph: Callable[[int], Graph]) -> Make:
    """Search breadth-first from the vertex with most neighbours."""

    def make(rt: acs.Runtime, prog: acs.Program, size: int) -> Uneven:
        found = graph(size)
        wanted = np.full(size, -1, "i4")
        wanted[np.diff(found.row).argmax()] = 0
        first, source, now = wanted.copy(), found.source, 0
        while (reached := found.to[wanted[source] == now]).size:
            wanted[reached[wanted[reached] < 0]] = now = now + 1
        row, to, start, level = _placed(rt, *found, first, first)

        def launch() -> None:
            prog.restore((size,), None, start, level)
            for step in range(now):
                prog.search((size,), None, row, to, level, step)

        return Uneven(launch, [(level, wanted)])

    return make


def shorten(graph: Callable[[int], Graph]) -> Make:
    """Find shortest paths from the vertex with most neighbours, by Bellman and Ford."""

    def make(rt: acs.Runtime, prog: acs.Program, size: int) -> Uneven:
        found = graph(size)
        weight = np.random.default_rng(3).integers(1, 50, len(found.to), dtype="i4")
        first = np.full(size, FAR, "i4")
        first[np.diff(found.row).argmax()] = 0
        wanted, source, rounds = first.copy(), found.source, 0
        while True:
            new = wanted.copy()
            np.minimum.at(new, found.to, wanted[source] + weight)
            rounds += 1
            if np.array_equal(new, wanted):
                break
            wanted = new
        far = np.full(size, FAR, "i4")
        row, to, weights, start, distance, never, seen = _placed(
            rt, *found, weight, first, first, far, far
        )

        def launch() -> None:
            prog.restore((size,), None, start, distance)
            prog.restore((size,), None, never, seen)
            for _ in range(rounds):
                prog.shorten((size,), None, row, to, weights, distance, seen)

        return Uneven(launch, [(distance, wanted)])

    return make


def colouring(graph: Callable[[int], Graph]) -> Make:
    """Colour by Jones and Plassmann: a vertex above all neighbours without a colour gets the next
    one."""

    def make(rt: acs.Runtime, prog: acs.Program, size: int) -> Uneven:
        found = graph(size)
        rank = np.random.default_rng(4).permutation(size).astype("i4")
        wanted, source = np.zeros(size, "i4"), found.source
        for now in range(1, COLOURS + 1):
            beaten = (wanted[found.to] == 0) & (rank[found.to] > rank[source])
            loses = np.bincount(source[beaten], minlength=size) > 0
            wanted[(wanted == 0) & ~loses] = now
        none = np.zeros(size, "i4")
        row, to, ranks, zero, colour, beats = _placed(rt, *found, rank, none, none, none)

        def launch() -> None:
            prog.restore((size,), None, zero, colour)
            prog.restore((size,), None, zero, beats)
            for now in range(1, COLOURS + 1):
                prog.contend((size,), None, row, to, colour, ranks, beats, now)
                prog.colour_rest((size,), None, colour, beats, now)

        return Uneven(launch, [(colour, wanted)])

    return make


def mandelbrot(rt: acs.Runtime, prog: acs.Program, size: int) -> Uneven:
    """Draw a picture of `size` tiles a side, of 32 by 32 pixels each."""
    side = size * TILE
    x = (np.arange(side, dtype="i8") * 3 << 26) // side - (2 << 26)
    y = (np.arange(side, dtype="i8") * 2 << 26) // side - (1 << 26)
    a, b = np.broadcast_arrays(x[None, :], y[:, None])
    u, v, wanted = (
        np.zeros((side, side), "i8"),
        np.zeros((side, side), "i8"),
        np.zeros((side, side), "i4"),
    )
    inside = np.ones((side, side), bool)
    for _ in range(MOST):
        uu, vv = u * u >> 26, v * v >> 26
        inside &= uu + vv <= 4 << 26
        wanted += inside
        v = np.where(inside, (u * v >> 25) + b, v)
        u = np.where(inside, uu - vv + a, u)
    out = rt.zeros((side, side), "i4")

    def launch() -> None:
        prog.mandelbrot((size * size,), None, out, side, TILE, MOST)

    return Uneven(launch, [(out, wanted)])


def refinement(rt: acs.Runtime, prog: acs.Program, size: int) -> Uneven:
    """Refine a grid of `size` cells a side twice, round a circle."""
    radius = 28 * size
    at = 32 * np.arange(size)

    def near(u: Any, v: Any, width: int) -> Any:
        return np.abs(u * u + v * v - radius * radius) < 2 * width * radius

    def inside(u: Any, v: Any) -> Any:
        return u * u + v * v < radius * radius

    y, x = (one.ravel() for one in np.meshgrid(at, at, indexing="ij"))
    item, last = np.arange(64), np.arange(16)
    u, v = x[:, None] + 4 * (item % 8), y[:, None] + 4 * (item // 8)
    finest = inside(u[..., None] + last % 4, v[..., None] + last // 4).sum(-1)
    finer = np.where(near(u, v, 8), finest, 16 * inside(u, v)).sum(-1)
    wanted = np.where(near(x, y, 48), finer, 1024 * inside(x, y)).astype("i4")
    out = rt.zeros(size * size, "i4")

    def launch() -> None:
        prog.refine((size * size,), None, out, size, radius)

    return Uneven(launch, [(out, wanted)])


def queens(rt: acs.Runtime, prog: acs.Program, size: int) -> Uneven:
    """Count the ways to set queens on a board, by those of the first two rows."""

    def ways(columns: int, falling: int, rising: int) -> int:
        if columns == (1 << size) - 1:
            return 1
        found, free = 0, ((1 << size) - 1) & ~(columns | falling | rising)
        while free:
            one = free & -free
            free ^= one
            found += ways(columns | one, (falling | one) << 1, (rising | one) >> 1)
        return found

    wanted = np.zeros(size * size, "i4")
    for at in range(size * size):
        a, b = 1 << at // size, 1 << at % size
        mirrored = (size - 1 - at // size) * size + size - 1 - at % size
        if mirrored < at:
            wanted[at] = wanted[mirrored]
        elif not b & (a | a << 1 | a >> 1):
            wanted[at] = ways(a | b, (a << 1 | b) << 1, (a >> 1 | b) >> 1)
    found = rt.zeros(size * size, "i4")

    def launch() -> None:
        prog.queens((size * size,), None, found, size)

    return Uneven(launch, [(found, wanted)])


def quicksort(rt: acs.Runtime, prog: acs.Program, size: int) -> Uneven:
    """Sort keys in some rounds of parting, and then segment by segment."""
    keys = (np.random.default_rng(5).random(size) ** 2 * FAR).astype("i4")
    first, one, other, out = _placed(rt, keys, keys, keys, keys)
    limits = [rt.zeros(2**r + 1, "i4") for r in range(PARTINGS + 1)]
    limits[0].set(np.array([0, size], "i4"))
    low, high = rt.zeros(2**PARTINGS, "i4"), rt.zeros(2**PARTINGS, "i4")

    def launch() -> None:
        prog.restore((size,), None, first, one)
        here, there = one, other
        for r in range(PARTINGS):
            prog.part_segments((2**r,), None, limits[r], here, there, low, high)
            prog.cut_segments((2**r,), None, limits[r], low, limits[r + 1])
            here, there = there, here
        prog.sort_segments((2**PARTINGS,), None, limits[PARTINGS], here, out)

    return Uneven(launch, [(out, np.sort(keys))])


def joining(gaussian: bool) -> Make:
    """Join two tables by key. Keys of a normal distribution crowd into few buckets."""

    def make(rt: acs.Runtime, prog: acs.Program, size: int) -> Uneven:
        rng, tables = np.random.default_rng(6), []
        for rows in (size, size // 4):
            drawn = rng.normal(0.5, 0.05, rows) % 1 if gaussian else rng.random(rows)
            keys = np.sort((drawn * BUCKETS * 16).astype("i4"))
            ends = np.bincount(keys // 16, minlength=BUCKETS).cumsum()
            tables.append((np.concatenate(([0], ends)), keys))
        (left_row, left), (right_row, right) = tables
        wanted = np.bincount(right, minlength=BUCKETS * 16)[left].astype("i4")
        arrays = _placed(rt, left_row, right_row, left, right, np.zeros(size))

        def launch() -> None:
            prog.join((BUCKETS,), None, *arrays)

        return Uneven(launch, [(arrays[-1], wanted)])

    return make


def products(depth: int) -> Make:
    """Multiply many matrices with one. Some are a hundred times as high as most."""

    def make(rt: acs.Runtime, prog: acs.Program, size: int) -> Uneven:
        rng = np.random.default_rng(7)
        row = np.concatenate(([0], np.minimum(rng.zipf(1.7, size), 400).cumsum()))
        a = rng.integers(-9, 9, (row[-1], depth), dtype="i4")
        b = rng.integers(-9, 9, (depth, 16), dtype="i4")
        rows, left, right, out = _placed(rt, row, a, b, np.zeros((row[-1], 16)))

        def launch() -> None:
            prog.products((size,), None, rows, left, right, out, depth)

        return Uneven(launch, [(out, (a.astype("f8") @ b).astype("i4"))])

    return make


def alignment(rt: acs.Runtime, prog: acs.Program, size: int) -> Uneven:
    """Align reads with candidate places in a genome: a few each, and hundreds where it repeats."""
    rng = np.random.default_rng(8)
    genome = rng.integers(0, 4, 1 << 16, dtype="u1")
    reads = rng.integers(0, 4, (size, READ), dtype="u1")
    row = np.concatenate(([0], np.minimum(rng.zipf(1.6, size), 2000).cumsum())).astype("i4")
    place = rng.integers(0, len(genome) - READ, row[-1], dtype="i4")
    of = np.repeat(np.arange(size), np.diff(row))
    same = np.zeros(len(place), "i4")
    for i in range(READ):
        same += genome[place + i] == reads[of, i]
    wanted = np.maximum.reduceat(same, row[:-1])
    rows, places, best = _placed(rt, row, place, np.zeros(size))
    letters, read = rt.array(genome), rt.array(reads)

    def launch() -> None:
        prog.align_reads((size,), None, rows, places, letters, read, best)

    return Uneven(launch, [(best, wanted)])


class Sizes(NamedTuple):
    """Of a program: for tests, for a CPU, for a GPU."""

    tiny: int
    cpu: int
    gpu: int


SPAWNS = (
    *("search", "shorten", "contend", "mandelbrot", "refine", "queens", "part_segments"),
    *("sort_segments", "join", "products", "align_reads"),
)
"""Kernels that spawn."""

_SEARCH, _PATHS = ("restore", "search"), ("restore", "shorten")
_COLOURS = ("restore", "contend", "colour_rest")
_SORT = ("restore", "part_segments", "cut_segments", "sort_segments")
UNEVEN: dict[str, tuple[Make, Sizes, Sequence[str]]] = {
    "refinement": (refinement, Sizes(8, 64, 128), ("refine",)),
    "search, citations": (search(citations), Sizes(300, 1 << 15, 1 << 18), _SEARCH),
    "search, Graph500": (search(graph500), Sizes(256, 1 << 15, 1 << 18), _SEARCH),
    "paths, citations": (shorten(citations), Sizes(200, 1 << 13, 1 << 15), _PATHS),
    "paths, Graph500": (shorten(graph500), Sizes(256, 1 << 13, 1 << 15), _PATHS),
    "colouring, citations": (colouring(citations), Sizes(300, 1 << 13, 1 << 16), _COLOURS),
    "colouring, Graph500": (colouring(graph500), Sizes(256, 1 << 13, 1 << 16), _COLOURS),
    "join, uniform": (joining(False), Sizes(4000, 1 << 16, 1 << 19), ("join",)),
    "join, gaussian": (joining(True), Sizes(4000, 1 << 16, 1 << 19), ("join",)),
    "mandelbrot": (mandelbrot, Sizes(2, 8, 32), ("mandelbrot",)),
    "products, small": (products(16), Sizes(60, 1 << 12, 1 << 15), ("products",)),
    "products, large": (products(128), Sizes(20, 1 << 9, 1 << 13), ("products",)),
    "alignment": (alignment, Sizes(100, 1 << 12, 1 << 16), ("align_reads",)),
    "queens": (queens, Sizes(6, 9, 11), ("queens",)),
    "quicksort": (quicksort, Sizes(5000, 1 << 15, 1 << 18), _SORT),
}
"""By name: how it is made, its sizes, its kernels."""


def build(rt: acs.Runtime, kernels: Sequence[str] = ()) -> acs.Program:
    """Build the program of all of them. A scheduler gets these kernels, if there is one."""
    prog = rt.build(kernel_source("spawning.cl"))
    rt.prebuild(*(getattr(prog, name) for name in kernels or prog.kernels))
    return prog
