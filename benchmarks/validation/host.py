"""Measure what launches cost the host, in samples interleaved with the runs that they predict.

Input: a device. Output: `Host`, whose samplers (`samples`) take some milliseconds each. `told`
makes constants of the samples, with the names of `costs.Costs`.

A host may change its speed within seconds. So each workload has figures of its own, from samples
between its runs. No sample runs a kernel of a workload.

The cost of a launch is that of one among many. A launch with a wait takes longer than such a launch
and its kernel in a queue; the rest counts as the wait. The first call after a wait takes longer
than others. After something else, as at the beginning of a step, it takes still longer (`cold_ns`).

For the scheduler on the device the wait is that for an epoch. A record is the difference between
epochs of many tasks and of one task. So it includes sending and ending, and no epoch. An epoch is
one of several that are sent one behind another. A long epoch tells whether sending it holds the
program until it has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import pyopencl as cl

import acs_cl as acs
from acs_cl.benchmarks.suite.statistics import quantile
from acs_cl.benchmarks.validation.samples import (
    AMONG,
    ARRAYS,
    FEW,
    MANY,
    Sample,
    Side,
    eager,
    epochs,
    with_events,
)

LANES = 8


@contextmanager
def opened(device: cl.Device) -> Iterator[Host]:
    """Open runtimes like those of the runs."""
    with ExitStack() as open_ones:

        def side(backend: str, **options: Any) -> Side:
            runtime = acs.Runtime(device, backend=backend, predict=False, **options)
            return Side(open_ones.enter_context(runtime))

        sides = {"serial": side("serial"), "lanes": side("lanes", lanes=LANES)}
        yield Host(device, sides | {"device": side("device")}, side("serial", trace=True))


class Host:
    """Takes samples."""

    def __init__(self, device: cl.Device, sides: Mapping[str, Side], traced: Side) -> None:
        self.device = device
        self._sides, self._traced = sides, traced

    def samplers(self) -> dict[str, Callable[[], Sample]]:
        """Return for each backend a function that takes a sample."""
        return {
            "serial": partial(eager, self._sides["serial"]),
            "lanes": partial(with_events, self._sides["lanes"]),
            "device": partial(epochs, self._sides["device"]),
        }

    def own(self) -> float:
        """Return the program's own time in a timeline of a program that does nothing between
        launches. It is the beginning of a call, which the time of a launch includes, too."""
        runtime, calls = self._traced.runtime, self._traced.few
        runtime.finish()
        runtime.trace.clear()
        for number in range(AMONG[1]):
            calls[number % ARRAYS](number)
        runtime.finish()
        slices = sorted(runtime.trace.slices, key=lambda one: one.number)
        return quantile([one.program_ns for one in slices[AMONG[0] :]], 0.5)


def told(samples: Mapping[str, Sequence[Sample]], own: Sequence[float]) -> dict[str, Any]:
    """Return medians as constants. `sync_ns` includes the kernel that was waited for."""
    middle = {
        backend: {name: quantile([one[name] for one in taken], 0.5) for name in taken[0]}
        for backend, taken in samples.items()
    }
    ours = middle["device"]
    return {
        "launch_ns": {name: round(found["few"]) for name, found in middle.items()},
        "argument_ns": {
            name: max(0, round((found["many"] - found["few"]) / (MANY - FEW)))
            for name, found in middle.items()
        },
        "cold_ns": {
            name: max(0, round(found["first"] - found["wait"])) for name, found in middle.items()
        },
        "own_ns": round(quantile(own, 0.5)),
        "event_ns": max(0, round(middle["lanes"]["event"])),
        "sync_ns": max(1, round(middle["serial"]["wait"] - middle["serial"]["few"])),
        "epoch_ns": max(1, round(ours["sent"] - ours["few"])),
        "epoch_wait_ns": max(1, round(ours["wait"] - ours["sent"])),
        "epoch_read_ns": max(1, round(ours["read"] - ours["wait"])),
        "epoch_tile_ps": max(0, round(1000 * (ours["wide"] - ours["sent"]) / ours["tiles"])),
        "epoch_behind_ns": max(0, round(ours["queued"])),
        "epoch_holds": round(1000 * min(1.0, max(0.0, ours["holds"]))),
    }
