"""What a modelled machine is made of: what launches cost there, and what kernels take in a queue.

In: a device. Out: `Costs`, and a machine of the emulator for each backend, made of a preset with
these in place of its own. What the host takes comes from `validation_host`, what the scheduler on
the device takes from `validation_scheduler`; here is what a kernel takes in a queue beside what its
profile says.

A queue without profiles runs kernels otherwise than one with them: a GPU has them begin sooner, and
a profile there has more in it than the kernel; on a CPU what lies between two kernels depends on
how long they last. So a chain of kernels is timed with profiles and without, for some lengths.

Invariant: only kernels that do nothing, or a known chain, are measured: none of a workload.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks import validation_scheduler
from acs_cl.benchmarks.harness import interleave, quantile
from acs_cl.benchmarks.validation_host import LINK, SOURCE, Host, told
from acs_cl.benchmarks.validation_scheduler import SchedulerCosts
from acs_cl.emu.spec import Machine
from acs_cl.emu.spec import machine as preset

LENGTHS_US = (0, 4, 12, 25, 50, 150)
"""Of the links of a chain, about."""
LINKS = (32, 160)
"""Of the chains; what the longer one takes more is that of the links between."""
MARGIN = 4
"""A kernel that they are launched behind lasts so many times as long as that took, so that the
queue is full."""
WARM = 3
ROUNDS = 5_000
"""Of a link that tells how long a round is."""


class Costs(NamedTuple):
    """Nanoseconds."""

    kind: str
    units: int
    shared: int
    """Cores that run both the kernels and the program."""
    launch_ns: dict[str, int]
    """By backend, of a launch with FEW arrays."""
    argument_ns: dict[str, int]
    """By backend, of each array more."""
    own_ns: int
    """What a timeline has for the program's own time between such launches, where there is none:
    the beginning of a call, which is in `launch_ns`, too."""
    event_ns: int
    """More for a launch on a lane that waits for one of another."""
    sync_ns: int
    """What a launch and the wait for it take more than a launch, the kernel included."""
    epoch_ns: int
    epoch_wait_ns: int
    """The same of an epoch with one task; more than the record and the epoch."""
    epoch_read_ns: int
    """What a blocking read of what it wrote takes more than that."""
    edges: list[tuple[int, int]]
    """How long a kernel lasts by its profile, and what it takes more in a full queue that has none,
    which may be less than nothing; by length."""
    scheduler: SchedulerCosts

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return self._asdict() | {"scheduler": self.scheduler._asdict()}

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Costs:
        """From JSON."""
        return cls(**{**found, "scheduler": SchedulerCosts(**found["scheduler"])})

    @property
    def empty_ns(self) -> int:
        """A kernel that does nothing, by its profile: what a queue puts around one."""
        return self.edges[0][0]

    def edge_ns(self, lasts_ns: int) -> int:
        """What a kernel takes more in a full queue than by its profile."""
        lengths, more = zip(*self.edges, strict=True)
        return round(float(np.interp(lasts_ns, lengths, more)))


def measured(host: Host, quick: bool) -> Costs:
    """Some seconds. What the host takes is a first look: each workload has its own."""
    device, samples = host.device, 5 if quick else 15
    taken = interleave(host.samplers(), samples)
    own = [host.own() for _ in range(samples)]
    return Costs(
        kind=devices.kind(device),
        units=device.max_compute_units,
        shared=device.max_compute_units if devices.kind(device) == "CPU" else 0,
        edges=_edges(device, samples),
        scheduler=validation_scheduler.measured(device, samples),
        **told(taken, own),
    )


def middle(costs: Costs, rows: Sequence[Mapping[str, Any]]) -> Costs:
    """With what the host took in the median of some rows."""

    def between(values: Sequence[Any]) -> Any:
        if isinstance(values[0], dict):
            return {key: between([value[key] for value in values]) for key in values[0]}
        return round(quantile(values, 0.5))

    return costs._replace(**{key: between([row[key] for row in rows]) for key in rows[0]})


def machine_of(costs: Costs, backend: str, edge_ns: int) -> Machine:
    """The model of a backend on that device: measured on the host, else from the nearest preset.
    `edge_ns`: from one kernel to the next in a queue."""
    base = preset("cpu2" if costs.kind == "CPU" else "h200-acs_cl")
    gpu = base.gpu._replace(units=costs.units)
    empty = costs.empty_ns + costs.edge_ns(costs.empty_ns)
    launch, sync = costs.launch_ns[backend], max(1, costs.sync_ns - max(0, empty))
    if backend == "device":  # what is launched there by itself is a transfer
        launch, sync = costs.epoch_read_ns, costs.epoch_wait_ns
    host = base.host._replace(
        launch_ns=launch, latency_ns=0, event_ns=costs.event_ns, sync_ns=sync, edge_ns=edge_ns
    )
    ours, each = costs.scheduler, max(1, costs.scheduler.groups // costs.units)
    scheduler = base.scheduler._replace(
        record_ns=costs.launch_ns["device"], epoch_ns=costs.epoch_ns, fused_ns=ours.fused_ns,
        begin_ns=ours.begin_ns, gang_ns=ours.gang_ns, queue_ns=ours.queue_ns,
        slower_few=ours.slower_few, slower_full=ours.slower_full, group=ours.group, launched=each,
        groups=1 if base.scheduler.leaves else each,
    )  # fmt: skip
    return base._replace(name="as measured", gpu=gpu, host=host, scheduler=scheduler)


# ---- kernels in a queue --------------------------------------------------------------------------


class _Chain:
    """Links one behind another on `serial`, with profiles or without."""

    def __init__(self, runtime: acs.Runtime) -> None:
        self.runtime = runtime
        self.link: Any = runtime.build(SOURCE).link
        self.y, self.z = (runtime.zeros(64, np.uint32) for _ in range(2))
        self.hold = 0
        self.launching = 0.0

    def lasts(self, rounds: int) -> float:
        """Nanoseconds of a link, by its profile."""
        self.runtime.finish()
        self.runtime.trace.clear()
        for _ in range(LINKS[1]):
            self.link(LINK, LINK, self.y, rounds)
        self.runtime.finish()
        slices = sorted(self.runtime.trace.slices, key=lambda one: one.number)
        return quantile([one.end_ns - one.start_ns for one in slices[LINKS[0] :]], 0.5)

    def takes(self, links: int, rounds: int) -> float:
        """Nanoseconds of some links behind a kernel that lasts until all are launched, and of that
        one."""
        self.runtime.finish()
        start = perf_counter()
        self.link(LINK, LINK, self.z, self.hold)
        for _ in range(links):
            self.link(LINK, LINK, self.y, rounds)
        self.launching = (perf_counter() - start) * 1e9
        self.runtime.finish()
        return (perf_counter() - start) * 1e9


def _edges(device: cl.Device, samples: int) -> list[tuple[int, int]]:
    with (
        acs.Runtime(device, backend="serial") as plain,
        acs.Runtime(device, backend="serial", trace=True) as profiled,
    ):
        chain, beside = _Chain(plain), _Chain(profiled)
        beside.lasts(ROUNDS)
        a_round = beside.lasts(ROUNDS) / ROUNDS
        for _ in range(WARM):
            chain.takes(LINKS[1], 0)
        chain.hold = round(MARGIN * chain.launching / a_round)
        found = []
        for length_us in LENGTHS_US:
            rounds = round(length_us * 1000 / a_round)
            samplers = {str(links): partial(chain.takes, links, rounds) for links in LINKS} | {
                "profile": partial(beside.lasts, rounds)
            }
            taken = interleave(samplers, samples // 2 + 1)
            short, long, lasts = (quantile(times, 0.5) for times in taken.values())
            found.append((round(lasts), round((long - short) / (LINKS[1] - LINKS[0]) - lasts)))
    return sorted(found)
