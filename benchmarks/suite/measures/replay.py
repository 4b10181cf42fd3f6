"""Cost of a replay of a recorded graph, against bare PyOpenCL and against launching it anew.

Input: a device. Output: for three shapes of graphs of trivial launches, each with one work-item:

- `host_us`: all of the host's work for a replay. The device is stopped by a user event while
  replays are made, and the runtime's work after their end is timed too;
- `end_us`: microseconds per launch from the first call of several replays to the end of all. Beside
  it stand the same launches made one by one through the runtime, and as typed PyOpenCL calls on one
  in-order queue.

All samples use the same arrays, as programs with replays do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

import pyopencl as cl

import acs_cl as acs
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import ratios, spread
from acs_cl.benchmarks.suite.timing import interleave, timed, while_held
from acs_cl.benchmarks.suite.tiny import ONE, Bare, Ours

SHAPES = {
    "64 chains of 64": (64, 64),
    "1 chain of 1,024": (1, 1024),
    "1,024 wide, 16 deep": (1024, 16),
}
"""Number of chains, and their length."""

REPLAYS = 8  # in one sample
ROUNDS = {False: 21, True: 3}  # by "is quick"
MOST_HOST_US = 150.0
LEAST_RATIO = 5.0


class _Side(NamedTuple):
    """How to make all launches of a shape, or `times` as many, and how to wait for them."""

    launch: Callable[[], Any]
    finish: Callable[[], None]
    queue: cl.CommandQueue
    launches: int
    times: int = 1


def measure(settings: Settings) -> dict[str, Any]:
    """Measure every shape, on the scheduler of the device."""
    context = settings.context()
    rows = {}
    for name, (chains, length) in SHAPES.items():
        with acs.Runtime(context=context, backend="device") as runtime:
            rows[name] = _row(runtime, chains, length, ROUNDS[settings.quick])
    return {"rows": rows}


def _row(runtime: acs.Runtime, chains: int, length: int, rounds: int) -> dict[str, Any]:
    ours, bare = Ours(runtime), Bare(runtime.context, runtime.device, "serial", 1)
    runtime.prebuild(ours.kernel)
    pairs = [(ours.array(), ours.array()) for _ in range(chains)]
    theirs = [(bare.array(), bare.array()) for _ in range(chains)]
    kernel, native, queue = ours.kernel, bare.kernel, bare.queues[0]

    def launch() -> None:
        for step in range(length):
            for pair in pairs:
                kernel(ONE, ONE, pair[step % 2], pair[1 - step % 2], 3)

    def launch_bare() -> None:
        for step in range(length):
            for pair in theirs:
                native(queue, ONE, ONE, pair[step % 2], pair[1 - step % 2], 3)

    start = perf_counter()
    with runtime.record() as graph:
        launch()
    recording_us = (perf_counter() - start) * 1e6 / len(graph)
    # No public function stops a runtime's device, so this uses private ones.
    device = runtime.engine.backend.queues[0]
    replays = _Side(graph.replay, runtime.finish, device, len(graph), REPLAYS)
    samplers = {
        "host": _held(replays),
        "replay": _free(replays),
        "anew": _free(_Side(launch, runtime.finish, device, len(graph))),
        "bare": _free(_Side(launch_bare, bare.finish, queue, len(graph))),
    }
    for once in samplers.values():
        once()
    samples = interleave(samplers, rounds)
    found: dict[str, Any] = {
        "launches": len(graph),
        "graph": repr(graph),
        "recording_us": round(recording_us, 2),
        "host_us": spread(samples.pop("host")),
    }
    for name, times_us in samples.items():
        found[f"{name}_end_us"] = spread(times_us)
    found["times_bare"] = spread(ratios(samples["bare"], samples["replay"]))
    return found


def _held(side: _Side) -> Callable[[], float]:
    """Return a function that measures microseconds of the host for one replay."""

    def all_launches() -> None:
        for _ in range(side.times):
            side.launch()

    def sample() -> float:
        side.launch()  # the first one after others finds where these have been
        side.finish()
        return sum(while_held([side.queue], all_launches, side.finish)) * 1e6 / side.times

    return sample


def _free(side: _Side) -> Callable[[], float]:
    """Return a function that measures microseconds for a launch, to the end of all."""
    return timed(side.launch, side.finish, 1e6 / side.launches, side.times)


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare the results with their bars."""
    found = []
    for name, row in result["rows"].items():
        host, ratio = row["host_us"], row["times_bare"]
        found += [
            target(f"host work of a replay, {name}", host, "at most", MOST_HOST_US, "us"),
            target(f"a replay over bare PyOpenCL in order, {name}", ratio, "at least",
                   LEAST_RATIO, "x"),
        ]  # fmt: skip
    return found
