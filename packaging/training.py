"""The programs that the core of a wheel is laid out for: the suite's, in every way.

    python packaging/training.py

Input: an installed core that counts its branches (`ACS_CL_PROFILE=count` of its CMakeLists.txt).
Output: the counts, when the process ends. `profiled.py` builds a wheel by them.

Each program runs for a moment on every backend, with prediction and without, recorded, and as a
program for PyOpenCL on an `acs.Queue`, tracked and in bypass. Nothing is timed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks.workloads import catalogue
from acs_cl.benchmarks.workloads.bare import InOrder
from acs_cl.benchmarks.workloads.tiles import PROGRAMS
from acs_cl.benchmarks.workloads.workload import Workload, building_once

SECONDS = 0.12
"""How long a program runs in each way. Steps are short at this preset."""

PRESET, SEED = "tiny", 0

RUNTIMES: dict[str, dict[str, Any]] = {
    "serial": {"backend": "serial"},
    "out_of_order": {"backend": "out_of_order"},
    "lanes": {"backend": "lanes"},
    "device": {"backend": "device", "predict": False},
    "device, predicted": {"backend": "device"},
    "auto": {},
}


def repeat(platform: Any, step: Callable[[], object]) -> None:
    """Take a step again and again, and wait for each as a program does."""
    end = perf_counter() + SECONDS
    while perf_counter() < end:
        step()
        platform.finish()


def on_runtimes(workload: Workload) -> Iterator[str]:
    """Run a program in every way that a runtime has."""
    for name, options in RUNTIMES.items():
        with acs.Runtime(**options) as runtime:
            run = workload.make(building_once(runtime), workload.presets[PRESET], SEED)
            run.step()
            runtime.prebuild()
            repeat(runtime, run.step)
            if workload.replayable:
                with runtime.record() as graph:
                    run.step()
                repeat(runtime, graph.replay)
        yield name


def on_queues(workload: Workload) -> Iterator[str]:
    """Run it as a program for PyOpenCL."""
    make = workload.host_decided or workload.make
    for name, bypass in (("acs.Queue, tracked", False), ("acs.Queue", True)):
        platform = InOrder(devices.choose())
        platform.queue = acs.Queue(platform.context, bypass=bypass)
        run = make(platform, workload.presets[PRESET], SEED)
        repeat(platform, run.step)
        platform.queue.runtime.close()
        yield name


def on_views() -> Iterator[str]:
    """Run programs whose arrays are views with gaps, and launches that one call makes."""
    for name, options in RUNTIMES.items():
        with acs.Runtime(**options) as runtime:
            for make in PROGRAMS:
                repeat(runtime, make(runtime, tiles=6, passes=1).launch)
            program = runtime.build(
                "kernel void add(global float *x, float a) { x[get_global_id(0)] += a; }"
            )
            rows = list(runtime.zeros((64, 64)))
            add = program.add.launch_many
            repeat(runtime, lambda: add((64,), (8,), rows, 0.5))  # noqa: B023  called at once
            repeat(runtime, lambda: program.add((64,), (8,), rows[0], 0.5, bands=4))  # noqa: B023
        yield name


def main() -> None:
    """Run all of them, and say what ran."""
    print(f"views: {', '.join(on_views())}", file=sys.stderr)
    for name, workload in catalogue().items():
        ran = []
        for ways in (on_runtimes, on_queues):
            ran += ways(workload)
        print(f"{name}: {', '.join(ran)}", file=sys.stderr)


if __name__ == "__main__":
    main()
