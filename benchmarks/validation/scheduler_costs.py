"""Measure the costs of the scheduler on this device, for the emulator's model of it.

Input: a device. Output: `SchedulerCosts`: the time from a task to the next by each of three ways,
how much longer kernels take in the scheduler than alone, and what an epoch takes for each group.

The time of a link is a slope: the difference between chains of two lengths. The slowdown of kernels
is a ratio of slopes over the work of their work-items, so that no launch is in it. It is the
geometric mean over three kinds of kernels, which no workload has: dependent operations, independent
ones, and loads. A ratio below one counts as one. A GPU's scheduler has fewer and larger groups than
a kernel by itself. So the slowdown also depends on whether these are enough for the kernel.

On a CPU the clock is the time that the process used of its cores. Other programs and idle threads
are not in it.

Invariant: nothing of a workload is measured. The least sample counts, because anything else on the
machine only adds time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import geometric_mean
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl import DeviceError, devices
from acs_cl.benchmarks.suite.timing import interleave

ITEMS = 64
"""Of a group of the kernels alone."""
FEW_GROUPS = 64
LINKS = (64, 1088)
GANG_TILES = 16
LEAST_S = 500e-6
"""Of what the longer one of two kernels takes more; then it is long enough."""
MOST_ROUNDS = 1 << 22
"""None is shorter than half a nanosecond, so these last long enough by far."""
LOADED = 1 << 22
"""Numbers that the kernel of loads has, a power of two."""

SOURCE = """
kernel void tick(global uint *y) { y[get_global_id(0)] += 1u; }
kernel void join(global const uint *a, global const uint *b, global uint *y)
{ y[get_global_id(0)] = a[get_global_id(0)] + b[get_global_id(0)]; }
kernel void steps(global const float *x, global float *y, uint rounds) {
    uint v = (uint)y[get_global_id(0)] + (uint)get_global_id(0) + 1u;
    for (uint i = 0; i < rounds; ++i) { v ^= v << 13; v ^= v >> 17; v ^= v << 5; }
    y[get_global_id(0)] = (float)(v & 255u);
}
kernel void sums(global const float *x, global float *y, uint rounds) {
    float a = y[get_global_id(0)], b = a + 1.0f, c = a + 2.0f, d = a + 3.0f;
    for (uint i = 0; i < rounds; ++i) {
        a = fma(a, 0.999f, 1.0f); b = fma(b, 0.998f, 1.0f);
        c = fma(c, 0.997f, 1.0f); d = fma(d, 0.996f, 1.0f);
    }
    y[get_global_id(0)] = a + b + c + d;
}
kernel void loads(global const float *x, global float *y, uint rounds) {
    uint n = (uint)get_global_size(0), at = (uint)get_global_id(0);
    float sum = 0.0f;
    for (uint i = 0; i < rounds; ++i) { sum += x[at & MASK]; at += n; }
    y[get_global_id(0)] = sum;
}
"""
KINDS = ("steps", "sums", "loads")


class SchedulerCosts(NamedTuple):
    """Nanoseconds, and shares in thousandths. `group`: work-items of its groups."""

    group: int
    groups: int
    """On the device at the same time."""
    fused_ns: int
    gang_ns: int
    queue_ns: int
    begin_ns: int
    """Of an epoch, for each group that it is launched with; 0 on a CPU, where few are."""
    slower_few: int
    """A kernel takes so much of the time that it takes alone: one with few groups,"""
    slower_full: int
    """and one with more than the scheduler has."""
    kinds: dict[str, dict[str, int]]
    """The same by kind of kernel, `few` and `full`."""


def measured(device: cl.Device, samples: int) -> SchedulerCosts:
    """Measure all costs, which takes some seconds."""
    loops = devices.kind(device) == "CPU"
    with (
        acs.Runtime(device, backend="device", predict=False) as ours,
        acs.Runtime(device, backend="serial") as alone,
    ):
        clock = process_time if loops else perf_counter
        sides = {"ours": _Side(ours, clock), "alone": _Side(alone, clock)}
        there = ours.stats()["scheduler"]["schedulers"][0]
        group, groups = there["group"], there["resident_groups"]
        kinds: dict[str, dict[str, int]] = {}
        sizes = {"few": FEW_GROUPS * ITEMS, "full": max(4 * groups * group, 1 << 16)}
        for kind in KINDS:
            kinds[kind] = {
                name: _slower(sides, kind, items, samples) for name, items in sizes.items()
            }
        few, full = (
            round(geometric_mean(max(1000, one[name]) for one in kinds.values())) for name in sizes
        )
        tasks = ours.stats()["scheduler"]["tasks"]
        if tasks < len(KINDS) * len(sizes) * 2 * samples:
            raise DeviceError(f"the scheduler ran {tasks} kernels that were to be measured in it")
        side = sides["ours"]
        crossed = _link(side, _crossed(side), samples)
        return SchedulerCosts(
            group, groups,
            fused_ns=_link(side, partial(side.tick, 1), samples),
            gang_ns=0 if loops else _link(side, partial(side.tick, GANG_TILES * group), samples),
            queue_ns=max(1, crossed // 2 if loops else crossed),  # on a CPU that of both tasks
            begin_ns=0 if loops else _begin(side, group, groups, samples),
            slower_few=few, slower_full=full, kinds=kinds,
        )  # fmt: skip


class _Side:
    """A runtime with all that is launched on it."""

    def __init__(self, runtime: acs.Runtime, clock: Callable[[], float]) -> None:
        self.runtime = runtime
        self.clock = clock
        self.prog: Any = runtime.build(SOURCE, options=[f"-DMASK={LOADED - 1}"])
        kernels = [getattr(self.prog, name) for name in ("tick", "join", *KINDS)]
        self.x = runtime.zeros(LOADED)
        self.counts = runtime.zeros(1 << 20, np.uint32)
        self.values: dict[int, acs.Array] = {}
        runtime.prebuild(*kernels)

    def tick(self, items: int, _: int) -> None:
        """Launch a link of a chain."""
        self.prog.tick((items,), None, self.counts[:items])

    def once(self, kind: str, items: int, rounds: int) -> float:
        """Return seconds of one launch, to its end."""
        if items not in self.values:
            self.values[items] = self.runtime.zeros(items)
        self.runtime.finish()
        start = self.clock()
        getattr(self.prog, kind)((items,), (ITEMS,), self.x, self.values[items], rounds)
        self.runtime.finish()
        return self.clock() - start


def _begin(side: _Side, group: int, groups: int, samples: int) -> int:
    """Return nanoseconds that each tile adds to an epoch of one task."""

    def once(tiles: int) -> float:
        side.runtime.finish()
        start = side.clock()
        side.tick(tiles * group, 0)
        side.runtime.finish()
        return side.clock() - start

    found = interleave({"one": partial(once, 1), "all": partial(once, groups)}, 10 * samples)
    return max(0, round((min(found["all"]) - min(found["one"])) * 1e9 / max(1, groups - 1)))


def _slower(sides: dict[str, _Side], kind: str, items: int, samples: int) -> int:
    """Return the time in the scheduler, in thousandths of the time alone."""
    rounds = 16
    while rounds <= MOST_ROUNDS:
        if _more(sides, kind, items, rounds, 3)["alone"] > LEAST_S:
            more = _more(sides, kind, items, rounds, samples)
            if more["alone"] > LEAST_S / 2:  # else something else ran beside the few samples
                return round(1000 * max(0.0, more["ours"]) / more["alone"])
        rounds *= 2
    raise DeviceError(f"a kernel ({kind}) of {rounds} rounds is too short to be measured")


def _more(
    sides: dict[str, _Side], kind: str, items: int, rounds: int, samples: int
) -> dict[str, float]:
    """Return for each side the seconds that twice as many rounds add."""
    samplers = {
        f"{name} {n}": partial(side.once, kind, items, n)
        for name, side in sides.items()
        for n in (rounds, 2 * rounds)
    }
    found = interleave(samplers, samples)
    least = {name: min(times) for name, times in found.items()}
    return {name: least[f"{name} {2 * rounds}"] - least[f"{name} {rounds}"] for name in sides}


def _crossed(side: _Side) -> Callable[[int], None]:
    """Make steps of two tasks that both wait for both tasks of the step before. So each hand-over
    goes through the queue."""
    arrays = [[side.runtime.zeros(1, np.uint32) for _ in range(2)] for _ in range(2)]

    def launch(step: int) -> None:
        before, after = arrays[step % 2], arrays[1 - step % 2]
        for place in range(2):
            side.prog.join((1,), None, before[place], before[1 - place], after[place])

    return launch


def _link(side: _Side, launch: Callable[[int], None], samples: int) -> int:
    """Return nanoseconds from a link to the next."""
    runtime = side.runtime
    graphs = []
    for length in LINKS:
        with runtime.record() as graph:
            for step in range(length):
                launch(step)
        graphs.append(graph)

    def once(graph: acs.Graph) -> float:
        runtime.finish()
        start = side.clock()
        graph.replay()
        runtime.finish()
        return side.clock() - start

    samplers = {
        str(length): partial(once, graph) for length, graph in zip(LINKS, graphs, strict=True)
    }
    for sample in samplers.values():
        sample()
    found = interleave(samplers, 3 * samples)
    short, long = (min(found[str(length)]) for length in LINKS)
    return max(1, round((long - short) * 1e9 / (LINKS[1] - LINKS[0])))
