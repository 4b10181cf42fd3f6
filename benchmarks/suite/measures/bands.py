"""Recorded launches in bands, beside whole launches and one queue.

Input: a device. Output: milliseconds of a replay with bands, without, and of the same launches on
one in-order queue. The launches are two dependent kernels of one and a half waves, and longer rows
of these. The same for two products as in GPT-3, with the cuts of tuning. For chains of small
kernels of several groups, microseconds a link, with bands, as the library cuts them by itself,
without, and in CUDA Graphs, if there is a compiler for them.

The kernel of the waves computes long enough to make gaps between launches small, in a way that no
compiler folds. Results are compared with NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl.benchmarks.peers import cuda_graphs
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import geomean, quantile, ratios, spread, spreads
from acs_cl.benchmarks.suite.timing import interleave, no_collection, timed
from acs_cl.benchmarks.suite.tiny import typed_kernel
from acs_cl.benchmarks.workloads import dense
from acs_cl.benchmarks.workloads.bare import InOrder
from acs_cl.benchmarks.workloads.graphs import GROUP
from acs_cl.benchmarks.workloads.shapes import Chains

SOURCE = """
kernel void work(global const uint *x, global uint *y, uint n)
{
    int i = get_global_id(0);
    uint v = x[i];
    for (uint k = 0; k < n; k++) v = v * v + k;
    y[i] = v;
}
kernel void tick(global uint *x, uint a) { size_t i = get_global_id(0); x[i] = x[i] * 3u + a; }
"""
ITEMS = 256
"""Work-items of a group."""
WAVES = 1.5
STEPS = {"pair": 2, "row of 8": 8}
CHAINS = (16, 64)
"""Groups of a link."""
LINKS = {False: 1024, True: 32}  # by "is quick"
ROUNDS = {False: 25, True: 3}
IN_A_ROW = 4
"""Replays of a chain, without counting the first one: CUDA's follow another replay."""
SEED = 1
TURNS = {True: 10_000, False: 60_000}  # by "is a CPU"

ROWS = {False: (512, 768, 1024, 1536, 2048, 3072), True: (256,)}
"""Rows of the two products."""
WIDTHS = {True: (1024, 512), False: (12288, 6144)}  # by "is a CPU"
TUNED_S = {False: 5.0, True: 1.0}
SHOWN = 8
"""Rows of a product that are compared with NumPy's, at both ends."""

LEAST_PAIR = 1.30
LEAST_TUNED, LEAST_BEST, LEAST_MEAN = 0.98, 1.25, 1.10
LEAST_SHARE = {True: 0.60, False: 0.40}  # by "is a CPU"
MOST_LINK_US = {16: 0.45, 64: 0.55}
SIDES = {"bands": "bands", "chosen": "as the library cuts it", "whole": "whole"}


def measure(settings: Settings) -> dict[str, Any]:
    """Measure waves and chains on this device."""
    with acs.Runtime(settings.device, backend="device") as runtime:
        program = runtime.build(SOURCE)
        runtime.prebuild(program.work, program.tick)
        groups = runtime.stats()["scheduler"]["schedulers"][0]["resident_groups"]
        at_once = settings.device.max_compute_units if settings.on_cpu else groups
        rows = {
            name: _wave(settings, runtime, program, steps, at_once) for name, steps in STEPS.items()
        }
        chains = {str(groups): _chain(settings, runtime, program, groups) for groups in CHAINS}
    products = {str(rows): _products(settings, rows) for rows in ROWS[settings.quick]}
    for groups, row in () if settings.on_cpu else _beside_cuda(LINKS[settings.quick]).items():
        chains[groups]["cuda_us"] = row
    return {"rows": rows, "products": products, "chains": chains}


def _wave(
    settings: Settings, runtime: acs.Runtime, program: Any, steps: int, at_once: int
) -> dict[str, Any]:
    turns = TURNS[settings.on_cpu]
    groups = max(2, round(WAVES * at_once))
    size, local = (groups * ITEMS,), (ITEMS,)
    first = np.resize(np.arange(ITEMS, dtype=np.uint32), size)
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
    expected = first[:ITEMS].copy()
    for turn in [*range(turns)] * steps:
        expected *= expected
        expected += np.uint32(turn)
    for name, array in lasts.items():
        if not (array.get().reshape(-1, ITEMS) == expected).all():
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
    """Return a function that measures milliseconds of a whole replay."""
    return timed(lambda: graph.replay().wait())


def _queued(context: Any, first: Any, steps: int, turns: int) -> Callable[[], float]:
    """Return a function that measures the launches on one in-order queue, by PyOpenCL."""
    queue = cl.CommandQueue(context)
    kernel = typed_kernel(queue, SOURCE, "work", None, None, np.uint32)
    flags = cl.mem_flags.READ_WRITE
    buffers = [cl.Buffer(context, flags, first.nbytes) for _ in range(steps + 1)]
    cl.enqueue_copy(queue, buffers[0], first).wait()

    def launch() -> None:
        for x, y in pairwise(buffers):
            kernel(queue, first.shape, (ITEMS,), x, y, turns)

    return timed(launch, queue.finish)


def _products(settings: Settings, rows: int) -> dict[str, Any]:
    """Measure two products of some rows: on a queue, whole, by rows of groups, and as tuned."""
    size = dense.Layer(rows, *WIDTHS[settings.on_cpu])
    sides: dict[str, Callable[[], float]] = {}
    plain = InOrder(settings.device)
    bare = dense.Mlp(plain, size, SEED)

    def queued() -> float:
        start = perf_counter()
        bare.step()
        plain.finish()
        return (perf_counter() - start) * 1e3

    sides["queue"] = queued
    with acs.Runtime(settings.device, backend="device") as runtime:
        made = dense.Mlp(runtime, size, SEED)
        runtime.prebuild(made.program.product)
        for name, bands in (("whole", "off"), ("rows", acs.Row(1)), ("tuned", "auto")):
            with runtime.record() as graph:
                handle = made.step(bands=bands)
            if name == "tuned":
                graph.tune(TUNED_S[settings.quick])
                told = str(runtime.explain(handle))
            sides[name] = _replayed(graph)
        with no_collection():
            samples = interleave(sides, 1 + ROUNDS[settings.quick] // 3)
        _compare(made)
    samples = {name: times[1:] for name, times in samples.items()}
    best = [min(both) for both in zip(samples["queue"], samples["whole"], strict=True)]
    flops = 4 * rows * size.width * size.inner
    peak = _peak(settings, made)
    return {
        "rows": rows,
        "groups": [one.size[0] // one.local[0] * one.size[1] for one in made.launches],
        "bands": [line for line in told.splitlines() if "bands" in line][:1],
        "ms": spreads(samples, 4),
        "over_best": spread(ratios(best, samples["tuned"])),
        "rows_over_best": spread(ratios(best, samples["rows"])),
        "gflops": {n: round(flops / quantile(t, 0.5) / 1e6, 1) for n, t in samples.items()},
        "peak_gflops": round(peak, 1),
    }


def _compare(made: dense.Dense) -> None:
    """Compare the first and the last rows of two products with NumPy's."""
    x, up, down, out = (made.arrays[name].get() for name in ("x", "up", "down", "out"))
    for some in (slice(0, SHOWN), slice(-SHOWN, None)):
        if not np.allclose(out[some], dense.gelu(x[some] @ up) @ down, rtol=1e-2, atol=1e-2):
            raise RuntimeError("products: the scheduler computed something else than NumPy")


def _peak(settings: Settings, made: dense.Dense) -> float:
    """Return the GFLOP/s for comparison: of NVIDIA's units by their clock, elsewhere of NumPy."""
    device = settings.device
    if not settings.on_cpu:
        units, mhz = device.max_compute_units, device.max_clock_frequency
        return float(2 * 128 * units * mhz / 1e3)
    a, b = (made.random.random((1024, 1024), np.float32) for _ in range(2))
    times = []
    for _ in range(1 + ROUNDS[settings.quick]):
        start = perf_counter()
        a @ b
        times.append(perf_counter() - start)
    return float(2 * 1024**3 / quantile(times[1:], 0.5) / 1e9)


def _chain(settings: Settings, runtime: acs.Runtime, program: Any, groups: int) -> dict[str, Any]:
    """Measure microseconds a link, from the call of a replay to its end."""
    links = LINKS[settings.quick]
    size = (groups * ITEMS,)
    sides: dict[str, Callable[[], list[float]]] = {}
    arrays = {}
    for name, bands in (("whole", "off"), ("bands", groups), ("chosen", "early")):
        array = arrays[name] = runtime.zeros(size, "u4")
        with runtime.record() as graph:
            for link in range(links):
                program.tick(size, (ITEMS,), array, link, bands=bands)
        replay = _replayed(graph)
        sides[name] = lambda replay=replay: [replay() for _ in range(IN_A_ROW)]  # type: ignore[misc]
    rounds = 1 + ROUNDS[settings.quick]
    with no_collection():
        samples = interleave(sides, rounds)
    value = 0
    for _ in range(rounds * IN_A_ROW):
        for link in range(links):
            value = (value * 3 + link) & 0xFFFFFFFF
    for name, array in arrays.items():
        if not (array.get() == value).all():
            raise RuntimeError(f"{name}: the scheduler computed something else than NumPy")
    us = {n: [1e3 * ms / links for t in rows[1:] for ms in t[1:]] for n, rows in samples.items()}
    return {
        "groups": groups,
        "links": links,
        "us": spreads(us, 4),
        "over_whole": spread(ratios(us["whole"], us["bands"])),
    }


def _beside_cuda(links: int) -> dict[str, dict[str, float]]:
    """Measure microseconds a link of CUDA on the same card. Empty: no compiler for it."""
    made = {str(n): Chains(1, links, n * ITEMS // GROUP).graph(0) for n in CHAINS}
    measured = cuda_graphs.measure(made, group=ITEMS)
    return {
        name: {way: round(quantile(times, 0.5), 4) for way, times in found["us_per_task"].items()}
        for name, found in measured.items()
    }


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare the results with their bars."""
    found = []
    on_cpu = machine["kind"] == "CPU"
    for name, row in result["rows"].items():
        least = LEAST_PAIR if name == "pair" and on_cpu else None
        what = f"{name} of {row['groups']} groups, {row['at_once']} at a time: bands over"
        for side in ("whole", "queue"):
            over = row[f"over_{side}"]
            found.append(target(f"{what} {side}", over, "at least", least, "x"))
    found += _bars_of_products(result["products"].values(), on_cpu)
    for row in result["chains"].values():
        most = None if on_cpu else MOST_LINK_US[row["groups"]]
        for side in [side for side in SIDES if side in row["us"]]:
            limit = None if side == "whole" else most
            us, what = row["us"][side], f"a link of {row['groups']} groups, {SIDES[side]}"
            found.append(target(what, us, "at most", limit, "us"))
        for way, cuda_us in row.get("cuda_us", {}).items():
            what = f"a link of {row['groups']} groups, CUDA, {way}"
            found.append(target(what, cuda_us, "at most", None, "us"))
    return found


def _bars_of_products(rows: Collection[Mapping[str, Any]], on_cpu: bool) -> list[dict[str, Any]]:
    found = []
    for row in rows:
        what = f"two products of {row['rows']} rows"
        over, share = row["over_best"], max(row["gflops"].values()) / row["peak_gflops"]
        text = f"{what}: tuned over queue or whole"
        found.append(target(text, over, "at least", LEAST_TUNED, "x"))
        least = LEAST_SHARE[on_cpu]
        found.append(target(f"{what}: share of the peak", share, "at least", least, ""))
    medians = [row["over_best"]["median"] for row in rows]
    what = "pairs of products, tuned over queue or whole"
    for which, value, bar in (
        ("best", max(medians), LEAST_BEST),
        ("mean", geomean(medians), LEAST_MEAN),
    ):
        found.append(target(f"{what}: {which}", value, "at least", None if on_cpu else bar, "x"))
    return found
