"""Measure how fast a workload could be on a device, from runs on it.

Input: a workload, a size, a seed. Output: its `Bound`, how many launches were in flight, and the
host's cost of a launch in bare PyOpenCL.

Every kernel is timed alone: on `serial`, on the whole device, and on a CPU device also on one of
its compute units. The shortest time of each launch counts, since other work of the machine only
adds time.
"""

from __future__ import annotations

from functools import lru_cache
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks.suite.bounds import Bound, Device, bound, fastest
from acs_cl.benchmarks.suite.statistics import quantile
from acs_cl.benchmarks.suite.tiny import ONE, TINY, typed_kernel, zeroed_buffer
from acs_cl.benchmarks.workloads.workload import Workload
from acs_cl.observe.slices import Slice

TRACED = 9
"""Traced steps."""
EMPTY = 200
"""Launches of an empty kernel."""
MOST_ON_A_UNIT = 32
"""Most groups that a compute unit of any present GPU runs at once."""
LAUNCHES = 285
"""In a sample of the cost of a launch."""
LONG_S = 0.2
"""A step of this length is traced once."""


class Program(NamedTuple):
    """The program to run."""

    workload: Workload
    size: Any
    seed: int


def bounded(device: cl.Device, program: Program) -> tuple[Bound, float]:
    """Return the bound, and how many launches are in flight on `lanes`, on average."""
    slices, _ = _traced(device, program, "serial")
    unit = one_unit(device) if devices.kind(device) == "CPU" else None
    narrow = [] if unit is None else _traced(unit, program, "serial")[0]
    if [one.name for one in narrow] != [one.name for one in slices]:
        narrow = []  # it did something else there, or there was no such unit
    limits = bound(slices, capacity_of(device), narrow)
    return limits, _traced(device, program, "lanes")[1]


@lru_cache(maxsize=1)
def capacity_of(device: cl.Device) -> Device:
    """Return the compute units, and the most groups that they run at once."""
    units = int(device.max_compute_units)
    on_unit = 1 if devices.kind(device) == "CPU" else MOST_ON_A_UNIT
    return Device(units, units * on_unit, _empty_us(device))


def _empty_us(device: cl.Device) -> float:
    """Return the time of a nearly empty kernel, by the clock of the traces: its median."""
    with acs.Runtime(device, backend="serial", trace=True) as runtime:
        tiny = runtime.build(TINY).tiny
        x, y = runtime.zeros(1, np.uint32), runtime.zeros(1, np.uint32)
        for _ in range(EMPTY):
            tiny(ONE, ONE, x, y, 1)
        runtime.finish()
        times = [one.end_ns - one.start_ns for one in runtime.trace.slices if one.name == "tiny"]
    return quantile(times, 0.5) / 1e3


def _traced(device: cl.Device, program: Program, backend: str) -> tuple[list[Slice], float]:
    """Return the launches of a step, each with its shortest time, and how many were in flight."""
    with acs.Runtime(device, backend=backend, trace=True) as runtime:
        run = program.workload.make(runtime, program.size, program.seed)
        runs: list[list[Slice]] = []
        for turn in range(1 + TRACED):  # the first is cold
            run.reset()
            runtime.finish()
            runtime.trace.clear()
            start = perf_counter()
            run.step()
            runtime.finish()
            runs.append(list(runtime.trace.slices))
            if turn and perf_counter() - start > LONG_S:
                break
        return fastest(runs[1:]), round(runtime.trace.overlap(), 3)


@lru_cache(maxsize=1)
def one_unit(device: cl.Device) -> cl.Device | None:
    """Return a device of one compute unit of this one. None: there is none."""
    equally: list[Any] = [cl.device_partition_property.EQUALLY, 1]
    if device.max_compute_units < 2:
        return None
    try:
        units = device.create_sub_devices(equally)
    except cl.Error:
        return None
    return next((unit for unit in units if unit.max_compute_units == 1), None)


def launch_cost(device: cl.Device) -> float:
    """Return the host's microseconds for a typed launch in bare PyOpenCL."""
    queue = cl.CommandQueue(cl.Context([device]), device)
    kernel: Any = typed_kernel(queue, TINY, "tiny", None, None, np.uint32)
    x, y = zeroed_buffer(queue, 256), zeroed_buffer(queue, 256)
    times = []
    for _ in range(7):
        queue.finish()
        start = perf_counter()
        for value in range(LAUNCHES):
            kernel(queue, ONE, ONE, x, y, value)
        times.append((perf_counter() - start) / LAUNCHES * 1e6)
    queue.finish()
    return quantile(times, 0.5)
