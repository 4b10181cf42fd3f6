"""What launches cost the host, measured on the spot, as constants of a modelled machine.

In: a device. Out: `Costs`, and a machine of the emulator for each backend, made of a preset with
these in place of its own: a launch, its arguments, a wait, from one kernel to the next in a queue,
and for the scheduler on the device a record, an epoch, a wait for one and for a read behind it, and
what `validation_scheduler` measures.

Invariant: only kernels that do nothing, or a known chain, are measured: none of a workload.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks import validation_scheduler
from acs_cl.benchmarks.harness import ONE, quantile
from acs_cl.benchmarks.validation_scheduler import SchedulerCosts
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
    own_ns: int
    """What a timeline has for the program's own time between such launches, where there is none:
    the beginning of a call, which is in `launch_ns`, too;"""
    own_argument_ns: int
    """and the same for each array more."""
    sync_ns: int
    edge_ns: int
    empty_ns: int
    """A kernel that does nothing, by its profile: what a queue puts around one."""
    epoch_ns: int
    epoch_wait_ns: int
    """From when an epoch of one task was sent to its end."""
    epoch_read_ns: int
    """What a blocking read of what it wrote takes more than that."""
    scheduler: SchedulerCosts

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return self._asdict() | {"scheduler": self.scheduler._asdict()}


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
                epoch, epoch_wait, epoch_read = _epoch(runtime, samples)
    edge, empty = _edge(device)
    own, own_many = _own(device)
    return Costs(
        kind=devices.kind(device),
        units=device.max_compute_units,
        shared=device.max_compute_units if devices.kind(device) == "CPU" else 0,
        launch_ns=launch,
        argument_ns=round(quantile(arguments, 0.5)),
        own_ns=round(own),
        own_argument_ns=max(0, round((own_many - own) / (MANY - FEW))),
        sync_ns=max(1, round(sync)),
        edge_ns=edge,
        empty_ns=empty,
        epoch_ns=max(1, round(epoch)),
        epoch_wait_ns=max(1, round(epoch_wait)),
        epoch_read_ns=max(1, round(epoch_read)),
        scheduler=validation_scheduler.measured(device, samples),
    )


def machine_of(costs: Costs, backend: str) -> Machine:
    """The model of a backend on that device: measured on the host, else from the nearest preset."""
    base = preset("cpu2" if costs.kind == "CPU" else "h200-acs_cl")
    gpu = base.gpu._replace(units=costs.units)
    launch, sync = costs.launch_ns[backend], costs.sync_ns
    if backend == "device":  # what is launched there by itself is a transfer
        launch, sync = costs.epoch_read_ns, costs.epoch_wait_ns
    host = base.host._replace(launch_ns=launch, latency_ns=0, sync_ns=sync, edge_ns=costs.edge_ns)
    ours, each = costs.scheduler, max(1, costs.scheduler.groups // costs.units)
    scheduler = base.scheduler._replace(
        record_ns=costs.launch_ns["device"], epoch_ns=costs.epoch_ns, fused_ns=ours.fused_ns,
        begin_ns=ours.begin_ns, gang_ns=ours.gang_ns, queue_ns=ours.queue_ns,
        slower_few=ours.slower_few, slower_full=ours.slower_full, group=ours.group, launched=each,
        groups=1 if base.scheduler.leaves else each,
    )  # fmt: skip
    return base._replace(name="as measured", gpu=gpu, host=host, scheduler=scheduler)


# ---- samples, in nanoseconds ---------------------------------------------------------------------

Calls = Sequence[Callable[[int], Any]]


def _calls(runtime: acs.Runtime) -> tuple[Calls, Calls]:
    """Launches of few and of many arrays, independent of each other."""
    prog = runtime.build(SOURCE)
    sources = [runtime.zeros(64, np.uint32) for _ in range(MANY - 1)]
    outs = [runtime.zeros(64, np.uint32) for _ in range(ARRAYS)]
    few = [partial(prog.few, ONE, ONE, sources[0], y) for y in outs]
    many = [partial(prog.many, ONE, ONE, *sources, y) for y in outs]
    return few, many


def _launches(runtime: acs.Runtime, samples: int) -> tuple[float, float]:
    """A launch of few and of many arrays, while the device keeps up."""
    few, many = _calls(runtime)
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


def _own(device: cl.Device) -> tuple[float, float]:
    """What a timeline has for the program's own time between the same launches."""
    with acs.Runtime(device, backend="serial", trace=True) as runtime:
        found = []
        for calls in _calls(runtime):
            runtime.finish()
            runtime.trace.clear()
            for number in range(COUNT):
                calls[number % ARRAYS](number)
            runtime.finish()
            own = [one.program_ns for one in runtime.trace.slices if one.program_ns]
            found.append(quantile(own[COUNT // 4 :], 0.5))
    return found[0], found[1]


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


def _epoch(runtime: acs.Runtime, samples: int) -> tuple[float, float, float]:
    """The host's time to send an epoch of a few tasks; to the end of one of one task, from then;
    and how much longer that takes with a read of what it wrote."""
    prog, x, y = runtime.build(SOURCE), *(runtime.zeros(64, np.uint32) for _ in range(2))
    sent: list[float] = []
    ended: list[float] = []
    read: list[float] = []

    def epoch(tasks: int, wait: Callable[[], Any]) -> tuple[float, float]:
        runtime.finish()
        for number in range(tasks):
            prog.few(ONE, ONE, x, y, number)
        start = perf_counter()
        runtime.flush()
        flushed = perf_counter()
        wait()
        return (flushed - start) * 1e9, (perf_counter() - flushed) * 1e9

    for _ in range(10 * samples):
        sent.append(epoch(8, runtime.finish)[0])
        ended.append(epoch(1, runtime.finish)[1])
        read.append(epoch(1, y.get)[1])
    flush, end, got = (quantile(times[samples:], 0.5) for times in (sent, ended, read))
    return flush, end, got - end


def _edge(device: cl.Device) -> tuple[int, int]:
    """From the end of a kernel to the start of the next in an in-order queue that is full; and how
    long a kernel that does nothing lasts."""
    with acs.Runtime(device, backend="serial", trace=True) as runtime:
        prog, y = runtime.build(SOURCE), runtime.zeros(64, np.uint32)
        found = {}
        for rounds in (ROUNDS, ROUNDS, 0, 0):
            runtime.finish()
            runtime.trace.clear()
            for _ in range(LINKS):
                prog.link((32,), (32,), y, rounds)
            runtime.finish()
            found[rounds] = sorted(runtime.trace.slices, key=lambda one: one.number)[LINKS // 2 :]
    gaps = [b.start_ns - a.end_ns for a, b in pairwise(found[ROUNDS])]
    lasts = [one.end_ns - one.start_ns for one in found[0]]
    return max(1, round(quantile(gaps, 0.5))), max(0, round(quantile(lasts, 0.5)))
