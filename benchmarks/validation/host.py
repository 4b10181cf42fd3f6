"""What launches cost the host, in samples that take turns with the runs they are to predict.

In: a device. Out: `Host`, whose samplers (`samples`) take some milliseconds each; and
what samples say together (`told`), as constants by the names that `costs.Costs` has.

A host may change its speed by the second. So each workload has figures of its own, from samples
between its runs; none is of a kernel of a workload.

What a launch takes is that of one among many. What one launch and the wait for it take more than
that, and than its kernel takes in a queue, counts as the wait: the first call after a wait takes
longer than others, and after something else, as a step begins, longer still (`cold_ns`). For the
scheduler on the device that is a wait for an epoch; a record is what an epoch of many tasks takes
more than one of one task, so that its sending and its end are in it, and no epoch; an epoch is one
of some that are sent one behind another, and whether sending holds the program until the epoch has
ended is told from one that takes long.
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
