"""Collect the measured costs of a modelled machine, by name.

Input: samples of the host (`host`), of queues (`queue_edges`) and of the scheduler on the device
(`scheduler_costs`). Output: `Costs`, and for each backend a machine of the emulator: a preset with
these costs in place of its own.

Invariant: no cost comes from a run that is predicted, or from a kernel of a workload.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from acs_cl.benchmarks.suite.statistics import quantile
from acs_cl.benchmarks.validation.scheduler_costs import SchedulerCosts
from acs_cl.emu.machines import machine as preset
from acs_cl.emu.spec import Machine


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
    cold_ns: dict[str, int]
    """By backend, of the first launch and wait of a step more than of others."""
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
    epoch_tile_ps: int = 0
    """Picoseconds that sending an epoch takes more for each tile in it."""
    epoch_behind_ns: int = 0
    """What an epoch of one task takes the device that follows another at once."""
    epoch_holds: int = 0
    """Thousandths of the time of an epoch for which sending it holds the program. Results of before
    these three were measured have none."""

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return self._asdict() | {"scheduler": self.scheduler._asdict()}

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Costs:
        """Make costs of plain values."""
        return cls(**{**found, "scheduler": SchedulerCosts(**found["scheduler"])})

    @property
    def empty_ns(self) -> int:
        """Return the time of a kernel that does nothing, by its profile. A queue adds it to each
        kernel."""
        return self.edges[0][0]

    def edge_ns(self, lasts_ns: int) -> int:
        """Return how much more a kernel takes in a full queue than its profile says."""
        lengths, more = zip(*self.edges, strict=True)
        return round(float(np.interp(lasts_ns, lengths, more)))


def middle(hosts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the median of the host's costs over some workloads."""

    def between(values: Sequence[Any]) -> Any:
        if isinstance(values[0], dict):
            return {key: between([value[key] for value in values]) for key in values[0]}
        return round(quantile(values, 0.5))

    return {key: between([one[key] for one in hosts]) for key in hosts[0]}


def machine_of(costs: Costs, backend: str, edge_ns: int) -> Machine:
    """Return the model of a backend on that device. Constants were measured on the host, or come
    from the nearest preset. `edge_ns`: from one kernel to the next in a queue."""
    base = preset("cpu2" if costs.kind == "CPU" else "h200-acs_cl")
    gpu = base.gpu._replace(units=costs.units)
    empty = costs.empty_ns + costs.edge_ns(costs.empty_ns)
    alone = backend == "device"  # what is launched there by itself is a transfer
    host = base.host._replace(
        launch_ns=costs.epoch_read_ns if alone else costs.launch_ns[backend], latency_ns=0,
        event_ns=costs.event_ns, sync_ns=max(1, costs.sync_ns - max(0, empty)), edge_ns=edge_ns,
    )  # fmt: skip
    ours, each = costs.scheduler, max(1, costs.scheduler.groups // costs.units)
    scheduler = base.scheduler._replace(
        record_ns=costs.launch_ns["device"], epoch_ns=costs.epoch_ns,
        tile_ps=costs.epoch_tile_ps, behind_ns=costs.epoch_behind_ns,
        wait_ns=costs.epoch_wait_ns, begin_ns=ours.begin_ns, fused_ns=ours.fused_ns,
        gang_ns=ours.gang_ns, queue_ns=ours.queue_ns, slower_few=ours.slower_few,
        slower_full=ours.slower_full, group=ours.group, launched=each,
        holds=costs.epoch_holds > 500,
        groups=1 if base.scheduler.leaves else each,
    )  # fmt: skip
    return base._replace(name="as measured", gpu=gpu, host=host, scheduler=scheduler)
