"""The scheduler on the device: device time per task, and the cost of a new graph from Python.

Input: a device. Output: times per task, for graphs of chains. Device time is measured for a graph
that was recorded anew and is run once, and for epochs that are sent while the program goes on
launching. Host time is measured from the first launch to the end of `finish`, and for one replay.
Beside them stand bare PyOpenCL in order, and on NVIDIA, with a CUDA compiler, CUDA Graphs in the
same run (`peers`). Then: a network of 64 gates decided on the device, against bare PyOpenCL with a
read of each.

Everything uses the public interface. Eight kernels are in the switch, one of which works in groups
with local memory. Hazards are found anew for every graph, and the results are compared with
NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl.benchmarks.peers import cuda_graphs
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.measures.gates import bars_of, gates
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import quantile, ratios, spread
from acs_cl.benchmarks.suite.timing import interleave, no_collection
from acs_cl.benchmarks.workloads.graphs import GROUP
from acs_cl.benchmarks.workloads.shapes import Chains

GRAPHS = ((1, 1024, 1), (64, 64, 1), (1024, 16, 1), (64, 64, 16), (8, 512, 16), (1, 1024, 16))
"""Chains, tasks of a chain, groups of a task."""

ON_GPU = (0.35, 0.06, 0.02, 0.08, 0.25, 1.5)
"""Bars of device microseconds per task."""

ON_CPU = 0.6
NEW_GRAPH_US = 5.0
REPLAY_US, REPLAY_GAIN = 0.08, 5.0
ROUNDS = {False: 9, True: 3}  # by "is quick"


SOURCE = """
kernel void tick(global uint *x, uint a) { size_t i = get_global_id(0); x[i] = x[i] * 3u + a; }
kernel void tick2(global uint *x, uint a) { size_t i = get_global_id(0); x[i] = x[i] * 5u + a; }
kernel void tick3(global uint *x, uint a) { size_t i = get_global_id(0); x[i] = x[i] * 7u ^ a; }
kernel void fork(global const uint *x, global uint *y)
{ size_t i = get_global_id(0); y[i] += x[i]; }
kernel void wave(global float *x, float a) { size_t i = get_global_id(0); x[i] = sin(x[i]) * a; }
kernel void total(global const uint *x, global uint *y) {
    local uint sums[GROUP];
    uint l = get_local_id(0);
    sums[l] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = GROUP / 2; step; step /= 2) {
        if (l < step) sums[l] += sums[l + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0) y[get_group_id(0)] = sums[0];
}
"""


def measure(settings: Settings) -> dict[str, Any]:
    """Measure graphs on this device, and on CUDA beside them, if it is there."""
    group = 64 if settings.on_cpu else 256
    graphs = [graph for graph in GRAPHS if not settings.quick or graph[0] * graph[1] <= 4096]
    cuda = _beside_cuda(graphs, group) if not settings.on_cpu else {}
    rows = [_graph(settings, *graph, group) | cuda.get(graph, {}) for graph in graphs]
    return {"group": group, "graphs": rows, "gates": gates(settings)}


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare the results with their bars. Bars of device time are for graphs that a program makes
    anew; times of a recorded graph are for comparison."""
    on_cpu = machine["kind"] == "CPU"
    limits = {(64, 64, 1): ON_CPU} if on_cpu else dict(zip(GRAPHS, ON_GPU, strict=True))
    found = []
    for row in result["graphs"]:
        graph = row["chains"], row["length"], row["groups"]
        name = f"{row['chains']} x {row['length']} tasks of {row['groups']} groups"
        new, again = row["device_in_epochs_us"], row["device_us"]
        least = limits.get(graph)
        what = f"device time per task, {name}"
        found += [
            target(f"{what}, a new graph", new, "at most", least, "us"),
            target(f"{what}, recorded and replayed", again, "at most", None, "us"),
        ]
    chains = result["graphs"][1]
    new = chains["new_graph_us"]
    what = "a new graph of 64 chains, end to end, per launch"
    found.append(target(what, new, "at most", NEW_GRAPH_US, "us"))
    if on_cpu:
        over, what = chains["replay_over_bare"], "a replay of 64 chains over bare PyOpenCL in order"
        found.append(target(what, over, "at least", REPLAY_GAIN, "x"))
    else:
        took, what = chains["replay_us"], "a replay of 64 chains, end to end, per launch"
        found.append(target(what, took, "at most", REPLAY_US, "us"))
    return [*found, *bars_of(result["gates"])]


class _Graph:
    """One graph on one runtime."""

    def __init__(self, runtime: acs.Runtime, chains: int, length: int, groups: int, group: int):
        self.runtime = runtime
        self.chains, self.length = chains, length
        self.tasks = chains * length
        self.size, self.local = (groups * group,), (group,)
        program = runtime.build(SOURCE, macros={"GROUP": group})
        kernels = [getattr(program, name) for name in program.kernels if name != "total"]
        runtime.prebuild(*kernels, (program.total, (group,)))
        self.tick = program.tick
        self.arrays = [runtime.zeros(groups * group, "u4") for _ in range(chains)]

    def __call__(self) -> float:
        """Launch and finish; return microseconds per task."""
        start = perf_counter()
        tick, size, local, arrays = self.tick, self.size, self.local, self.arrays
        for link in range(self.length):
            for array in arrays:
                tick(size, local, array, link)
        self.runtime.finish()
        return (perf_counter() - start) * 1e6 / self.tasks

    def record(self) -> acs.Graph:
        """Record the same launches."""
        with self.runtime.record() as graph:
            for link in range(self.length):
                for array in self.arrays:
                    self.tick(self.size, self.local, array, link)
        return graph

    def is_right(self, runs: int) -> bool:
        """Tell whether every element is the result of this many runs."""
        value = 0
        for _ in range(runs):
            for link in range(self.length):
                value = (value * 3 + link) & 0xFFFFFFFF
        return all((array.get() == value).all() for array in self.arrays)


def _graph(settings: Settings, chains: int, length: int, groups: int, group: int) -> dict[str, Any]:
    shape = chains, length, groups, group
    rounds, context = ROUNDS[settings.quick], settings.context()
    with acs.Runtime(context=context, backend="device", predict=False) as runtime:
        graph, bare = _Graph(runtime, *shape), _Bare(context, *shape)
        graph()
        bare()
        sides: dict[str, Callable[[], float]] = {"device": graph, "bare": bare}
        samples = interleave(sides, rounds)
        if not graph.is_right(rounds + 1):
            raise RuntimeError("the scheduler computed something else than NumPy")
        replays = _replays(graph, rounds)
        in_scheduler = runtime.stats()["scheduler"]
    with acs.Runtime(context=context, backend="device", trace=True) as runtime:
        graph = _Graph(runtime, *shape)
        graph()
        in_epochs = _in_epochs(graph, rounds)
        device = _as_a_whole(graph, rounds)
        if not graph.is_right(1 + 2 * rounds):
            raise RuntimeError("replays computed something else than NumPy")
    return {
        "chains": chains,
        "length": length,
        "groups": groups,
        "device_us": spread(device, 4),
        "device_in_epochs_us": spread(in_epochs, 4),
        "replay_us": spread(replays, 4),
        "replay_over_bare": spread(ratios(samples["bare"], replays)),
        "new_graph_us": spread(samples["device"]),
        "bare_in_order_us": spread(samples["bare"]),
        "over_bare": spread(ratios(samples["bare"], samples["device"])),
        "schedulers": in_scheduler["schedulers"],
        "epochs": in_scheduler["epochs"],
    }


def _replays(graph: _Graph, rounds: int) -> list[float]:
    """Return microseconds per task of replays, from the call to the end."""
    recorded, times = graph.record(), []
    for _ in range(rounds + 1):
        with no_collection():
            start = perf_counter()
            recorded.replay().wait()
            times.append((perf_counter() - start) * 1e6 / graph.tasks)
    return times[1:]  # the first one uploads


def _in_epochs(graph: _Graph, rounds: int) -> list[float]:
    """Return device microseconds per task, with epochs sent while the program goes on."""
    trace, times = graph.runtime.trace, []
    for _ in range(rounds):
        trace.clear()
        with no_collection():
            graph()
        epochs = {(s.start_ns, s.end_ns) for s in trace.slices if s.name == "tick"}
        times.append(sum(end - start for start, end in epochs) / 1e3 / graph.tasks)
    return times


def _as_a_whole(graph: _Graph, rounds: int) -> list[float]:
    """Return device microseconds per task of a graph that is new each time, run as a whole."""
    runtime, times = graph.runtime, []
    for _ in range(rounds):
        recorded = graph.record()
        runtime.finish()
        runtime.trace.clear()
        recorded.replay().wait()
        runtime.finish()
        took_ns = sum(s.end_ns - s.start_ns for s in runtime.trace.slices)
        times.append(took_ns / 1e3 / graph.tasks)
        recorded.close()
    return times


class _Bare:
    """The graph in PyOpenCL, with typed arguments and one in-order queue."""

    def __init__(self, context: Any, chains: int, length: int, groups: int, group: int) -> None:
        program = cl.Program(context, SOURCE).build(f"-DGROUP={group}")
        self.kernel = program.tick
        self.kernel.set_scalar_arg_dtypes([None, np.uint32])
        self.queue = cl.CommandQueue(context)
        zeros = np.zeros(groups * group, np.uint32)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        self.buffers = [cl.Buffer(context, flags, hostbuf=zeros) for _ in range(chains)]
        self.size, self.local, self.length = (groups * group,), (group,), length

    def __call__(self) -> float:
        start = perf_counter()
        kernel, queue, size, local = self.kernel, self.queue, self.size, self.local
        for link in range(self.length):
            for buffer in self.buffers:
                kernel(queue, size, local, buffer, link)
        queue.finish()
        return (perf_counter() - start) * 1e6 / (len(self.buffers) * self.length)


def _beside_cuda(graphs: list[tuple[int, int, int]], group: int) -> dict[Any, dict[str, Any]]:
    """Return microseconds per task of CUDA on the same card, in chains of as many work-items.
    Empty: no compiler for it."""
    made = {
        str((chains, length, groups)): Chains(chains, length, groups * group // GROUP).graph(0)
        for chains, length, groups in graphs
    }
    measured = cuda_graphs.measure(made, group=group)
    found = {}
    for graph in graphs if measured else ():
        times = measured[str(graph)]["us_per_task"]
        ways = {"replay_us": "replay", "new_graph_us": "new_graph", "stream_us": "streams"}
        found[graph] = {
            "cuda": {key: round(quantile(times[way], 0.5), 4) for key, way in ways.items()}
        }
    return found
