"""Spawning: the cost of a child, and programs of uneven size by several methods.

Input: a device. Output: microseconds that a child adds to its launch, where 1, 64 or 1,024
work-items spawn one each. For each program of `workloads.spawning`, microseconds of a replay by
each method. The methods are `queue` (the flat program, each launch by the driver), `never` (the
flat program in the scheduler) and the controllers. `cuda` is the same by launches from the device,
with CUDA's own flat program. Every method has to have NumPy's results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

import acs_cl as acs
from acs_cl.benchmarks.peers import cuda_spawn
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import differences, geomean, ratios, spread, spreads
from acs_cl.benchmarks.suite.timing import interleave, timed
from acs_cl.benchmarks.workloads.spawning import SPAWNS, UNEVEN, build

ROUNDS = {False: 15, True: 3}  # by "is quick"
PARENTS = (1, 64, 1024)
LAUNCHES, TASKS = 50, 2048
"""Most launches of a graph, and parents in it."""
ITEMS = 256
"""Items of a child."""
CONTROLLERS = ("hungry", "ccqs", "always")
CHILD_US, LONE_CHILD_US, GAIN, LEAST_GAIN, OVER_CUDA = 0.1, 2.0, 1.69, 0.97, 10.0
SOURCE = """
#include <acs_spawn.h>
void fill(uint item, global uint *out, uint at) { out[256u * at + item] = item; }
kernel void give(global uint *out, uint n) {
    const uint at = get_global_id(0);
    ACS_SPAWN(fill, n, out, at);
}
"""


def growing(settings: Settings) -> Iterator[dict[str, Any]]:
    """Return all results so far, after each row."""
    context = settings.context()
    found: dict[str, Any] = {"children": {}, "rows": {}}
    try:
        with acs.Runtime(context=context, backend="device", spawn=acs.Spawn("always", 1)) as rt:
            prog = rt.build(SOURCE)
            rt.prebuild(prog.give)
            for parents in PARENTS:
                found["children"][str(parents)] = child(rt, prog, parents, ROUNDS[settings.quick])
                yield found
    except acs.UsageError as error:
        yield {"refused": str(error)}
        return
    with ExitStack() as stack:
        peer = None if settings.on_cpu else cuda_spawn.opened()
        if peer is not None:
            stack.enter_context(peer)
            samples = peer.children(PARENTS, LAUNCHES, ROUNDS[settings.quick])
            found["cuda"] = {
                parents: per_child(int(parents), us) for parents, us in samples.items()
            }
            yield found
        for name in UNEVEN:  # each has a scheduler of its own, with only its registers
            with (
                acs.Runtime(context=context, backend="lanes") as queue,
                acs.Runtime(context=context, backend="device") as device,
            ):
                row = found["rows"][name] = uneven(name, queue, device, settings)
            if peer is not None:
                ways = peer.uneven(name, row["size"], ROUNDS[settings.quick])
                row["cuda"] = {
                    way: spread(us) if isinstance(us, list) else f"{us} words are wrong"
                    for way, us in ways.items()
                }
            yield found


def child(rt: acs.Runtime, prog: acs.Program, parents: int, rounds: int) -> dict[str, Any]:
    """Compare a launch whose items spawn one child each with one whose items spawn nothing."""
    launches = max(1, min(LAUNCHES, TASKS // parents))
    out = rt.zeros(ITEMS * parents, "u4")

    def recorded(n: int) -> Callable[[], float]:
        with rt.record() as graph:
            for _ in range(launches):
                prog.give((parents,), None, out, n)

        sample = timed(graph.replay, rt.finish, 1e6 / launches)
        sample()
        return sample

    samplers = {"spawning": recorded(ITEMS), "nothing": recorded(0)}
    if not np.array_equal(out.get(), np.tile(np.arange(ITEMS, dtype="u4"), parents)):
        raise RuntimeError("items of children have not run")
    before = spawned(rt)
    us = interleave(samplers, rounds)
    share = (spawned(rt) - before) / (rounds * launches * parents * ITEMS)
    return {**per_child(parents, us), "spawned": share}


def per_child(parents: int, us: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return the time of a launch with children, without, and the difference for a child."""
    each = [one / parents for one in differences(us["spawning"], us["nothing"])]
    return {"us": spreads(us), "child_us": spread(each, 4)}


def spawned(rt: acs.Runtime) -> int:
    """Return how many items became children until now."""
    found: int = rt.stats()["scheduler"]["children"]["spawned"]
    return found


class Spawning:
    """A program whose launches have a controller."""

    def __init__(self, program: acs.Program) -> None:
        self._program = program
        self.controller = "never"

    def __getattr__(self, name: str) -> Callable[..., acs.Handle]:
        kernel = getattr(self._program, name)
        return partial(kernel, spawn=self.controller) if name in SPAWNS else kernel


def uneven(
    name: str, queue: acs.Runtime, device: acs.Runtime, settings: Settings
) -> dict[str, Any]:
    """Measure one program by all methods."""
    make, sizes, kernels = UNEVEN[name]
    size = sizes.tiny if settings.quick else sizes.cpu if settings.on_cpu else sizes.gpu
    flat, spawning = build(queue, kernels), Spawning(build(device, kernels))
    program_of: Any = spawning
    sides = [(queue, make(queue, flat, size)), (device, make(device, program_of, size))]
    firsts = [[array.get() for array, _ in program.results] for _, program in sides]
    samplers, items = {}, {}
    for way in ("queue", "never", *CONTROLLERS):
        side = int(way != "queue")
        runtime, program = sides[side]
        for (array, _), first in zip(program.results, firsts[side], strict=True):
            array.set(first)
        spawning.controller = way
        with runtime.record() as graph:
            program.launch()
        graph.replay()
        program.check()
        samplers[way] = timed(graph.replay, runtime.finish, 1e6)
        samplers[way]()
        if way in CONTROLLERS:
            before = spawned(runtime)
            samplers[way]()
            items[way] = spawned(runtime) - before
    us = interleave(samplers, ROUNDS[settings.quick])
    return {
        "size": size, "us": spreads(us),
        "gain": {
            f"{way} over {flat}": spread(ratios(us[flat], us[way]))
            for way in CONTROLLERS for flat in ("queue", "never")
        },
        "spawned": items,
    }  # fmt: skip


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the bars of a child's cost, and of the programs' gains."""
    found = []
    for parents, row in result.get("children", {}).items():
        most, took = LONE_CHILD_US if parents == "1" else CHILD_US, row["child_us"]
        what = f"a child, where {parents} work-items spawn one each"
        found.append(target(what, took, "at most", most, "us"))
    gains = []
    for name, row in result.get("rows", {}).items():
        for gain, took in row["gain"].items():
            if gain.startswith(CONTROLLERS[0]):
                gains.append(took["median"])
                found.append(target(f"{name}, {gain}", took, "at least", LEAST_GAIN, "x"))
        ours = row["us"][CONTROLLERS[0]]["median"]
        cuda = [
            one["median"] for way, one in row.get("cuda", {}).items()
            if way != "flat" and isinstance(one, dict)
        ]  # fmt: skip
        if cuda:
            what = f"{name}, {CONTROLLERS[0]} over CUDA's launches from the device"
            found.append(target(what, min(cuda) / ours, "at least", OVER_CUDA, "x"))
    if gains:
        what = f"mean of all, {CONTROLLERS[0]} over the queue"
        found.append(target(what, geomean(gains[::2]), "at least", GAIN, "x"))
    return found
