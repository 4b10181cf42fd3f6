"""What launches cost the host, measured on the spot, as constants of a modelled machine.

In: a device. Out: `Costs`, and a machine of the emulator for each backend, made of a preset with
these in place of its own: a launch, its arguments, a wait, from one kernel to the next in a queue,
and for the scheduler on the device a record and an epoch.

Invariant: only kernels that do nothing, or a known chain, are measured: none of a workload.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks.harness import ONE, quantile
from acs_cl.emu.spec import Machine
from acs_cl.emu.spec import machine as preset

LANES = 8
FEW, MANY = 2, 10
"""Arrays of the two kernels."""
COUNT = 256
"""Launches of a sample; ARRAYS of them are independent of each other."""
ARRAYS = 16
LINKS = 64

SOURCE = """
kernel void few(global const uint *a, global uint *y, uint v) { y[0] = a[0] + v; }
kernel void many(global const uint *a, global const uint *b, global const uint *c,
                 global const uint *d, global const uint *e, global const uint *f,
                 global const uint *g, global const uint *h, global const uint *i,
                 global uint *y, uint v)
{ y[0] = a[0] + b[0] + c[0] + d[0] + e[0] + f[0] + g[0] + h[0] + i[0] + v; }
kernel void link(global uint *y, uint rounds) {
    uint x = y[get_local_id(0)] + (uint)get_local_id(0) + 1u;
    for (uint i = 0; i < rounds; ++i) {  /* shifts: no compiler has a closed form for this */
        x ^= x << 13; x ^= x >> 17; x ^= x << 5;
    }
    y[get_local_id(0)] = x;
}
"""
ROUNDS = 20_000
"""Of a link: some tens of microseconds, longer than a launch takes."""


class Costs(NamedTuple):
    """Nanoseconds. `launch_ns`: by backend, of a launch with FEW arrays."""

    kind: str
    units: int
    shared: int
    """Cores that run both the kernels and the program."""
    launch_ns: dict[str, int]
    argument_ns: int
    """Of each array more."""
    sync_ns: int
    edge_ns: int
    epoch_ns: int

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return self._asdict()


def measured(device: cl.Device, quick: bool) -> Costs:
    """Some seconds."""
    samples = 5 if quick else 15
    launch: dict[str, int] = {}
    arguments = []
    for backend in ("serial", "lanes", "device"):
        lanes = LANES if backend == "lanes" else None
        with acs.Runtime(device, backend=backend, lanes=lanes) as runtime:
            few, many = _launches(runtime, samples)
            launch[backend] = round(few)
            arguments.append(max(0.0, (many - few) / (MANY - FEW)))
            if backend == "serial":
                sync = _wait(runtime, samples)
            if backend == "device":
                epoch = _flush(runtime, samples)
    return Costs(
        kind=devices.kind(device),
        units=device.max_compute_units,
        shared=device.max_compute_units if devices.kind(device) == "CPU" else 0,
        launch_ns=launch,
        argument_ns=round(quantile(arguments, 0.5)),
        sync_ns=max(1, round(sync)),
        edge_ns=_edge(device),
        epoch_ns=max(1, round(epoch)),
    )


def machine_of(costs: Costs, device: cl.Device, backend: str) -> Machine:
    """The model of a backend on this device: measured on the host, else from the nearest preset."""
    base = preset("cpu2" if costs.kind == "CPU" else "h200-acs_cl")
    gpu = base.gpu._replace(name=device.name.strip(), units=costs.units)
    host = base.host._replace(
        launch_ns=costs.launch_ns[backend], latency_ns=0, sync_ns=costs.sync_ns,
        edge_ns=costs.edge_ns,
    )  # fmt: skip
    scheduler = base.scheduler._replace(
        record_ns=costs.launch_ns["device"], epoch_ns=costs.epoch_ns
    )
    return base._replace(name="as measured", gpu=gpu, host=host, scheduler=scheduler)


# ---- samples, in nanoseconds ---------------------------------------------------------------------


def _launches(runtime: acs.Runtime, samples: int) -> tuple[float, float]:
    """A launch of few and of many arrays, while the device keeps up."""
    prog = runtime.build(SOURCE)
    sources = [runtime.zeros(64, np.uint32) for _ in range(MANY - 1)]
    outs = [runtime.zeros(64, np.uint32) for _ in range(ARRAYS)]
    few = [partial(prog.few, ONE, ONE, sources[0], y) for y in outs]
    many = [partial(prog.many, ONE, ONE, *sources, y) for y in outs]
    found: list[list[float]] = [[], []]
    for turn in range(samples + 2):
        for calls, times in zip((few, many), found, strict=True):
            runtime.finish()
            start = perf_counter()
            for number in range(COUNT):
                calls[number % ARRAYS](number)
            times.append((perf_counter() - start) / COUNT * 1e9)
        runtime.finish()
        if turn == 0:
            runtime.prebuild()
    return quantile(found[0][2:], 0.5), quantile(found[1][2:], 0.5)


def _wait(runtime: acs.Runtime, samples: int) -> float:
    """The wait for one launch, from the end of its call: on the way to the device and back."""
    prog, x, y = runtime.build(SOURCE), *(runtime.zeros(64, np.uint32) for _ in range(2))
    times = []
    for number in range(20 * samples):
        runtime.finish()
        prog.few(ONE, ONE, x, y, number)
        start = perf_counter()
        runtime.finish()
        times.append((perf_counter() - start) * 1e9)
    return quantile(times[samples:], 0.5)


def _flush(runtime: acs.Runtime, samples: int) -> float:
    """The host's time to send an epoch of a few tasks."""
    prog, x, y = runtime.build(SOURCE), *(runtime.zeros(64, np.uint32) for _ in range(2))
    times = []
    for number in range(10 * samples):
        runtime.finish()
        for _ in range(8):
            prog.few(ONE, ONE, x, y, number)
        start = perf_counter()
        runtime.flush()
        times.append((perf_counter() - start) * 1e9)
    runtime.finish()
    return quantile(times[samples:], 0.5)


def _edge(device: cl.Device) -> int:
    """From the end of a kernel to the start of the next in an in-order queue that is full."""
    with acs.Runtime(device, backend="serial", trace=True) as runtime:
        prog, y = runtime.build(SOURCE), runtime.zeros(64, np.uint32)
        for _ in range(2):
            runtime.finish()
            runtime.trace.clear()
            for _ in range(LINKS):
                prog.link((32,), (32,), y, ROUNDS)
            runtime.finish()
        slices = sorted(runtime.trace.slices, key=lambda one: one.number)
        gaps = [b.start_ns - a.end_ns for a, b in pairwise(slices)]
    return max(1, round(quantile(gaps[LINKS // 2 :], 0.5)))
