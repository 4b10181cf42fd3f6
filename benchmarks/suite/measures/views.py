"""Launches on many views of few arrays, for the scheduler, from Python: a part of `native`.

Input: a device. Output: microseconds per launch, hazards included, of graphs as in real programs,
recorded with the epoch kept open:

- `contiguous`: 64 chains on arrays of their own, for comparison with the others;
- `wavefront, n a row`: tiles of 64 x 64 elements of one matrix, n in a row. Each needs the row
  above it, the column to its left and the corner between;
- `cells`: eight layers of cells over 64 steps, two kernels a cell, on rows of arrays;
- `six sizes`: a random series-parallel graph on views of one array, of six sizes.

There are three cases. `kept`: the program keeps its views and launches the graph again and again.
Between two times come all other graphs, so the caches have nothing of it any more. `again`: it is
launched once before, as if the program did nothing else. `anew`: views are made before each launch,
outside of the timed part. Each launch does the least possible work. Its results are not compared,
since other tests do that.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np

import acs_cl as acs
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.measures.recording import kept_open
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import ratios, spread
from acs_cl.benchmarks.suite.timing import interleave

SOURCE = """
kernel void tile(global float *own, global const float *above, global const float *left,
                 global const float *corner)
{ if (get_global_id(0) == 0) own[0] += above[0] + left[0] + corner[0]; }
kernel void add(global const float *x, global const float *y, global float *z)
{ size_t i = get_global_id(0); z[i] = x[i] + y[i]; }
kernel void copy(global const float *x, global float *y)
{ size_t i = get_global_id(0); y[i] = x[i]; }
"""
GROUP = (64,)
LAUNCHES = 1024
SIDE = 64
PER_ROW = (8, 32, 256)
LAYERS, STEPS = 8, 64
SIZES = (64, 128, 256, 512, 1024, 2048)
ELEMENTS = 1 << 20
TOGETHER = 16
"""Launches whose views are made before the clock starts."""

ROUNDS = {False: 15, True: 2}  # by "is quick"
LAUNCH_US = 1.0
FLAT = 1.2
"""Most times as long for a launch on a tile with the most tiles in a row, against the fewest."""

Launch = tuple[Any, tuple[Any, ...]]
"""A kernel and its arguments."""

Graph = Callable[[], Iterator[Launch]]
"""Makes the launches of a graph, with their views."""


def measure(settings: Settings) -> dict[str, Any]:
    """Measure all graphs in all cases, interleaved; or return why the device has no scheduler."""
    try:
        runtime = acs.Runtime(context=settings.context(), backend="device", predict=False)
    except acs.UsageError as error:
        return {"refused": str(error)}
    with runtime:
        program = runtime.build(SOURCE)
        runtime.prebuild(program.tile, program.add, program.copy)
        samplers: dict[str, Callable[[], float]] = {}
        for name, graph in graphs(runtime, program).items():
            samplers[f"{name}, kept"] = kept = _kept(runtime, graph)
            samplers[f"{name}, again"] = _again(kept)
            samplers[f"{name}, anew"] = _anew(runtime, graph)
        for sampler in samplers.values():
            sampler()
        samples = interleave(samplers, ROUNDS[settings.quick])
    plain = samples["contiguous, kept"]
    return {
        name: {"launch_us": spread(took), "over_contiguous": spread(ratios(took, plain))}
        for name, took in samples.items()
    }


def graphs(runtime: acs.Runtime, program: Any) -> dict[str, Graph]:
    """Return the measured graphs, by name."""
    found = {"contiguous": contiguous(runtime, program)}
    for per_row in PER_ROW:
        found[f"wavefront, {per_row} a row"] = wavefront(runtime, program, per_row)
    return found | {"cells": cells(runtime, program), "six sizes": six_sizes(runtime, program)}


def contiguous(runtime: acs.Runtime, program: Any) -> Graph:
    """Return chains on whole arrays, which are kept."""
    pairs = [tuple(runtime.zeros(GROUP, np.float32) for _ in "xy") for _ in range(64)]

    def graph() -> Iterator[Launch]:
        for number in range(LAUNCHES):
            yield program.copy, pairs[number % 64]

    return graph


def wavefront(runtime: acs.Runtime, program: Any, per_row: int) -> Graph:
    """Return tiles with the ones above and to the left, diagonal by diagonal."""
    rows = LAUNCHES // per_row
    matrix = runtime.zeros((rows * SIDE + 1, per_row * SIDE + 1), np.float32)

    def graph() -> Iterator[Launch]:
        for diagonal in range(rows + per_row - 1):
            for i in range(max(0, diagonal - per_row + 1), min(rows, diagonal + 1)):
                top, left = 1 + SIDE * i, 1 + SIDE * (diagonal - i)
                down, across = slice(top, top + SIDE), slice(left, left + SIDE)
                corner = matrix[top - 1 : top, left - 1]
                halo = matrix[top - 1, across], matrix[down, left - 1], corner
                yield program.tile, (matrix[down, across], *halo)

    return graph


def cells(runtime: acs.Runtime, program: Any) -> Graph:
    """Return cells: each one needs the results of the layer below and of the previous step."""
    shape = (STEPS + 1, GROUP[0])
    inner, outer = ([runtime.zeros(shape, np.float32) for _ in range(LAYERS + 1)] for _ in "io")

    def graph() -> Iterator[Launch]:
        for step in range(1, STEPS + 1):
            for layer in range(1, LAYERS + 1):
                below, before = outer[layer - 1][step], outer[layer][step - 1]
                yield program.add, (below, before, inner[layer][step])
                yield program.copy, (inner[layer][step], outer[layer][step])

    return graph


def six_sizes(runtime: acs.Runtime, program: Any) -> Graph:
    """Return branches of random lengths from earlier ones, and their joins."""
    pool = runtime.zeros(ELEMENTS, np.float32)
    chance = random.Random(1)
    plan: list[list[slice]] = []

    def place() -> slice:
        size = chance.choice(SIZES)
        start = chance.randrange(0, ELEMENTS - size, GROUP[0])
        return slice(start, start + size)

    known = [place() for _ in range(8)]
    while len(plan) < LAUNCHES:
        ends = []
        for _ in range(chance.randint(2, 8)):
            end = chance.choice(known)
            for _ in range(chance.randint(1, 4)):
                plan.append([end, place()])
                end = plan[-1][-1]
            ends.append(end)
        while len(ends) > 1:
            plan.append([ends.pop(), ends.pop(), place()])
            ends.insert(0, plan[-1][-1])
        known = (known + ends)[-8:]

    def graph() -> Iterator[Launch]:
        for places in plan[:LAUNCHES]:
            kernel = program.copy if len(places) == 2 else program.add
            yield kernel, tuple(pool[one] for one in places)

    return graph


def _kept(runtime: acs.Runtime, graph: Graph) -> Callable[[], float]:
    launches = list(graph())
    return lambda: _recorded(runtime, iter([launches]))


def _again(kept: Callable[[], float]) -> Callable[[], float]:
    def twice() -> float:
        kept()
        return kept()

    return twice


def _anew(runtime: acs.Runtime, graph: Graph) -> Callable[[], float]:
    def batches() -> Iterator[list[Launch]]:
        launches = graph()
        while some := list(islice(launches, TOGETHER)):
            yield some

    return lambda: _recorded(runtime, batches())


def _recorded(runtime: acs.Runtime, batches: Iterator[list[Launch]]) -> float:
    """Return microseconds per launch, without the time to make them."""
    runtime.finish()
    took_s = 0.0
    with kept_open(runtime):
        for batch in batches:
            start = perf_counter()
            for kernel, arguments in batch:
                kernel(GROUP, GROUP, *arguments)
            took_s += perf_counter() - start
        runtime.finish()
    return took_s * 1e6 / LAUNCHES


def targets_of(rows: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the figures with their bars."""
    if "refused" in rows or not rows:
        return []
    targets: list[dict[str, Any]] = []
    for name, row in rows.items():
        took = row["launch_us"]
        what = f"to record a launch on views, {name}"
        targets.append(target(what, took, "at most", LAUNCH_US, "us"))
    for way in ("kept", "anew"):
        fewest, most = (
            rows[f"wavefront, {PER_ROW[at]} a row, {way}"]["launch_us"]["median"] for at in (0, -1)
        )
        what = f"a launch on a tile, {PER_ROW[-1]} a row over {PER_ROW[0]}, {way}"
        targets.append(target(what, most / fewest, "at most", FLAT, "x"))
    return targets
