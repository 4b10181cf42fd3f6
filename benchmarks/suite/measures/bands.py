"""Recorded launches in bands, beside whole launches and one queue.

In: a device. Out: for two dependent kernels of one and a half waves, and for longer rows of them,
milliseconds of a replay with bands, without, and of the same launches on one queue in order. For
chains of small kernels of several groups, microseconds a link, with bands and without; beside them
CUDA Graphs, where there is a compiler for them.

The kernel of the waves computes so long that what lies between two launches is little. Results are
compared with NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl.benchmarks.peers import cuda_graphs
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import quantile, ratios, spread, spreads
from acs_cl.benchmarks.suite.timing import interleave, no_collection
from acs_cl.benchmarks.suite.tiny import typed_kernel
from acs_cl.benchmarks.workloads.graphs import GROUP
from acs_cl.benchmarks.workloads.shapes import Chains

SOURCE = """
kernel void work(global const uint *x, global uint *y, uint n)
{
    int i = get_global_id(0);
    uint v = x[i];
    for (uint k = 0; k < n; k++) v = v * 1664525u + k;
    y[i] = v;
}
kernel void tick(global uint *x, uint a) { size_t i = get_global_id(0); x[i] = x[i] * 3u + a; }
"""
ITEMS = 256
"""Of a group."""
WAVES = 1.5
STEPS = {"pair": 2, "row of 8": 8}
CHAINS = (16, 64)
"""Groups of a link."""
LINKS = {False: 1024, True: 32}  # by "is quick"
ROUNDS = {False: 25, True: 3}
TURNS = {True: 10_000, False: 60_000}  # by "is a CPU"

LEAST_PAIR = 1.30
MOST_LINK_US = {16: 0.45, 64: 0.55}


def measure(settings: Settings) -> dict[str, Any]:
    """Waves and chains on this device."""
    with acs.Runtime(settings.device, backend="device") as runtime:
        program = runtime.build(SOURCE)
        runtime.prebuild(program.work, program.tick)
        groups = runtime.stats()["scheduler"]["schedulers"][0]["resident_groups"]
        at_once = settings.device.max_compute_units if settings.on_cpu else groups
        rows = {
            name: _wave(settings, runtime, program, steps, at_once) for name, steps in STEPS.items()
        }
        chains = {str(groups): _chain(settings, runtime, program, groups) for groups in CHAINS}
    for groups, row in () if settings.on_cpu else _beside_cuda(LINKS[settings.quick]).items():
        chains[groups]["cuda_us"] = row
    return {"rows": rows, "chains": chains}


def _wave(
    settings: Settings, runtime: acs.Runtime, program: Any, steps: int, at_once: int
) -> dict[str, Any]:
    turns = TURNS[settings.on_cpu]
    groups = max(2, round(WAVES * at_once))
    size, local = (groups * ITEMS,), (ITEMS,)
    first = np.arange(*size, dtype=np.uint32)
    sides: dict[str, Callable[[], float]] = {}
    lasts = {}
    for name, bands in (("whole", "off"), ("bands", min(groups, 1024))):
        arrays = [runtime.array(first), *(runtime.zeros(size, "u4") for _ in range(steps))]
        with runtime.record() as graph:
            for x, y in pairwise(arrays):
                handle = program.work(size, local, x, y, turns, bands=bands)
        sides[name], lasts[name] = _replayed(graph), arrays[-1]
    told = str(runtime.explain(handle))
    sides["queue"] = _queued(runtime.context, first, steps, turns)
    with no_collection():
        samples = interleave(sides, 1 + ROUNDS[settings.quick])
    samples = {name: times[1:] for name, times in samples.items()}  # the first one uploads
    factor, term = 1, 0
    for turn in [*range(turns)] * steps:
        factor, term = factor * 1664525 & 0xFFFFFFFF, (term * 1664525 + turn) & 0xFFFFFFFF
    expected = first * np.uint32(factor) + np.uint32(term)
    for name, array in lasts.items():
        if not (array.get() == expected).all():
            raise RuntimeError(f"{name}: the scheduler computed something else than NumPy")
    return {
        "groups": groups,
        "at_once": at_once,
        "steps": steps,
        "bands": told.splitlines()[1],
        "ms": spreads(samples, 4),
        "over_whole": spread(ratios(samples["whole"], samples["bands"])),
        "over_queue": spread(ratios(samples["queue"], samples["bands"])),
    }


def _replayed(graph: acs.Graph) -> Callable[[], float]:
    """Milliseconds of a replay, to the end."""

    def sample() -> float:
        start = perf_counter()
        graph.replay().wait()
        return (perf_counter() - start) * 1e3

    return sample


def _queued(context: Any, first: Any, steps: int, turns: int) -> Callable[[], float]:
    """Milliseconds of the same launches on one queue in order, by PyOpenCL alone."""
    queue = cl.CommandQueue(context)
    kernel = typed_kernel(queue, SOURCE, "work", None, None, np.uint32)
    flags = cl.mem_flags.READ_WRITE
    buffers = [cl.Buffer(context, flags, first.nbytes) for _ in range(steps + 1)]
    cl.enqueue_copy(queue, buffers[0], first).wait()

    def sample() -> float:
        start = perf_counter()
        for x, y in pairwise(buffers):
            kernel(queue, first.shape, (ITEMS,), x, y, turns)
        queue.finish()
        return (perf_counter() - start) * 1e3

    return sample


def _chain(settings: Settings, runtime: acs.Runtime, program: Any, groups: int) -> dict[str, Any]:
    """Microseconds a link, from the call of a replay to its end."""
    links = LINKS[settings.quick]
    size = (groups * ITEMS,)
    sides: dict[str, Callable[[], float]] = {}
    arrays = {}
    for name, bands in (("whole", "off"), ("bands", groups)):
        array = arrays[name] = runtime.zeros(size, "u4")
        with runtime.record() as graph:
            for link in range(links):
                program.tick(size, (ITEMS,), array, link, bands=bands)
        sides[name] = _replayed(graph)
    rounds = 1 + ROUNDS[settings.quick]
    with no_collection():  # between two replays it would let a GPU rest
        samples = interleave(sides, rounds)
    value = 0
    for _ in range(rounds):
        for link in range(links):
            value = (value * 3 + link) & 0xFFFFFFFF
    for name, array in arrays.items():
        if not (array.get() == value).all():
            raise RuntimeError(f"{name}: the scheduler computed something else than NumPy")
    us = {name: [1e3 * ms / links for ms in times[1:]] for name, times in samples.items()}
    return {
        "groups": groups,
        "links": links,
        "us": spreads(us, 4),
        "over_whole": spread(ratios(us["whole"], us["bands"])),
    }


def _beside_cuda(links: int) -> dict[str, dict[str, float]]:
    """Microseconds a link of CUDA on the same card; nothing where there is no compiler for it."""
    made = {str(n): Chains(1, links, n * ITEMS // GROUP).graph(0) for n in CHAINS}
    measured = cuda_graphs.measure(made, group=ITEMS)
    return {
        name: {way: round(quantile(times, 0.5), 4) for way, times in found["us_per_task"].items()}
        for name, found in measured.items()
    }


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Hold what was measured against what it has to reach."""
    found = []
    for name, row in result["rows"].items():
        least = LEAST_PAIR if name == "pair" and machine["kind"] == "CPU" else None
        what = f"{name} of {row['groups']} groups, {row['at_once']} at a time: bands over"
        for side in ("whole", "queue"):
            over = row[f"over_{side}"]
            found.append(target(f"{what} {side}", over["median"], "at least", least, "x", over))
    for row in result["chains"].values():
        most = None if machine["kind"] == "CPU" else MOST_LINK_US[row["groups"]]
        for side, limit in (("bands", most), ("whole", None)):
            us, what = row["us"][side], f"a link of {row['groups']} groups, {side}"
            found.append(target(what, us["median"], "at most", limit, "us", us))
        for way, cuda_us in row.get("cuda_us", {}).items():
            what = f"a link of {row['groups']} groups, CUDA, {way}"
            found.append(target(what, cuda_us, "at most", None, "us"))
    return found
