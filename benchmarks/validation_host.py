"""What launches cost the host, in samples that take turns with the runs they are to predict.

In: a device. Out: `Host`, whose samplers time kernels that do nothing, a few milliseconds each; and
what samples say together (`told`), as constants by the names that `validation_costs.Costs` has.

A host may change its speed by the second. So each workload has figures of its own, from samples
between its runs; none is of a kernel of a workload.

What a launch takes is that of one among many. What one launch and the wait for it take more than
that, and than its kernel takes in a queue, counts as the wait: the first call after a wait takes
longer than others, and after something else, as a step begins, longer still (`cold_ns`). For the
scheduler on the device that is a wait for an epoch; a record is what an epoch of many tasks takes
more than one of one task, so that its sending and its end are in it, and no epoch; an epoch is one
of some that are sent one behind another, and whether sending holds the program until the epoch has
ended is told from one that takes long.

Invariant: a call is timed only when calls like it have been made often enough to be as quick as
those of a run that has gone on for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import starmap
from time import perf_counter
from typing import Any

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl.benchmarks.harness import ONE, quantile
from acs_cl.benchmarks.overlap import SOURCE as WORK_SOURCE
from acs_cl.benchmarks.validation_queue import LINK
from acs_cl.emu.spec import machine

LANES = 8
FEW, MANY = 2, 10
"""Arrays of the two kernels."""
ARRAYS = 16
"""Launches that are independent of each other."""
AMONG = (32, 256)
"""A launch is timed from the first to the last of these."""
RECORDS = machine("cpu2").scheduler.first_look - 8
"""Launches that are one epoch."""
SENT = 8
"""Epochs that are sent one behind another."""
WAITS = 10
"""Of a sample."""
HELD = 128
"""Launches behind a kernel that runs meanwhile."""
ROUNDS = 50_000
"""Of that one, to begin with."""
DOUBLINGS = 8
"""Until it lasts long enough, at most."""
LONG_S = 2e-3
"""An epoch beside which its sending is short."""

SOURCE = """
kernel void few(global const uint *a, global uint *y, uint v) { y[0] = a[0] + v; }
kernel void many(global const uint *a, global const uint *b, global const uint *c,
                 global const uint *d, global const uint *e, global const uint *f,
                 global const uint *g, global const uint *h, global const uint *i,
                 global uint *y, uint v)
{ y[0] = a[0] + b[0] + c[0] + d[0] + e[0] + f[0] + g[0] + h[0] + i[0] + v; }
kernel void join(global const uint *a, global const uint *b, global uint *y) { y[0] = a[0] + b[0]; }
"""

Sample = Mapping[str, float]
"""Nanoseconds, by what they are of."""


@contextmanager
def opened(device: cl.Device) -> Iterator[Host]:
    """Runtimes like those of the runs."""
    with ExitStack() as open_ones:

        def side(backend: str, **options: Any) -> _Side:
            runtime = acs.Runtime(device, backend=backend, **options)
            return _Side(open_ones.enter_context(runtime))

        sides = {"serial": side("serial"), "lanes": side("lanes", lanes=LANES)}
        yield Host(device, sides | {"device": side("device")}, side("serial", trace=True))


class Host:
    """Takes samples."""

    def __init__(self, device: cl.Device, sides: Mapping[str, _Side], traced: _Side) -> None:
        self.device = device
        self._sides, self._traced = sides, traced

    def samplers(self) -> dict[str, Callable[[], Sample]]:
        """By backend, what takes a sample of it."""
        return {
            "serial": partial(_eager, self._sides["serial"]),
            "lanes": partial(_with_events, self._sides["lanes"]),
            "device": partial(_epochs, self._sides["device"]),
        }

    def own(self) -> float:
        """What a timeline has for the program's own time between launches where there is none: the
        beginning of a call, which is in what a launch takes, too."""
        runtime, calls = self._traced.runtime, self._traced.few
        runtime.finish()
        runtime.trace.clear()
        for number in range(AMONG[1]):
            calls[number % ARRAYS](number)
        runtime.finish()
        slices = sorted(runtime.trace.slices, key=lambda one: one.number)
        return quantile([one.program_ns for one in slices[AMONG[0] :]], 0.5)


def told(samples: Mapping[str, Sequence[Sample]], own: Sequence[float]) -> dict[str, Any]:
    """Medians, as constants. `sync_ns` has the kernel in it that was waited for."""
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
        "epoch_holds": round(1000 * min(1.0, max(0.0, ours["holds"]))),
    }


# ---- one runtime ---------------------------------------------------------------------------------


class _Side:
    """A runtime with all that is launched on it; the core knows how."""

    def __init__(self, runtime: acs.Runtime) -> None:
        self.runtime = runtime
        self.rounds = ROUNDS
        self.prog: Any = runtime.build(SOURCE + WORK_SOURCE)

        def arrays(count: int) -> list[acs.Array]:
            return [runtime.zeros(64, np.uint32) for _ in range(count)]

        self.x, self.held, *sources = arrays(MANY)
        self.zeros = np.zeros(64, np.uint32)
        self.outs = arrays(HELD)
        self.pairs = arrays(2), arrays(2)
        self.work = partial(self.prog.work, LINK, LINK, self.held)
        outs = self.outs[:ARRAYS]
        self.few = [partial(self.prog.few, ONE, ONE, self.x, y) for y in outs]
        self.many = [partial(self.prog.many, ONE, ONE, self.x, *sources, y) for y in outs]
        for turn in range(4):
            for calls in (self.few, self.many):
                for number in range(AMONG[1]):
                    calls[number % ARRAYS](number)
            self.work(1)
            runtime.finish()
            if not turn:
                runtime.prebuild()

    def among(self, calls: Sequence[Callable[[int], Any]], first: int, last: int) -> float:
        """Nanoseconds of a launch, from the first of them to the last."""
        self.runtime.finish()
        for number in range(first):
            calls[number % ARRAYS](number)
        start = perf_counter()
        for number in range(first, last):
            calls[number % ARRAYS](number)
        return (perf_counter() - start) / (last - first) * 1e9

    def cycles(
        self, calls: Sequence[Callable[[int], Any]], count: int, wait: Callable[[], Any]
    ) -> tuple[float, float]:
        """Nanoseconds of some launches and a wait, where nothing else is under way: of the first
        time, and of those behind it."""
        times = []
        for _ in range(1 + WAITS):
            self.runtime.finish()
            start = perf_counter()
            for number in range(count):
                calls[number % len(calls)](number)
            wait()
            times.append((perf_counter() - start) * 1e9)
        return times[0], quantile(times[1:], 0.5)

    def stepped(self) -> dict[str, float]:
        """One launch and the wait for it where a step begins: something else ran before, and arrays
        were set; and those behind that."""
        self.x.set(self.zeros)
        first, wait = self.cycles(self.few, 1, self.runtime.finish)
        return {"first": first, "wait": wait}


def _eager(side: _Side) -> dict[str, float]:
    """Launches that go to the driver at once, and a wait."""
    return {
        **side.stepped(),
        "few": side.among(side.few, *AMONG),
        "many": side.among(side.many, *AMONG),
    }


def _with_events(side: _Side) -> dict[str, float]:
    """The same, and what a launch takes more for each event of another lane."""
    found = _eager(side)
    prog, (a, b), x = side.prog, side.pairs, side.x
    first = [(side.held, side.held, one) for one in a]
    turns = [(a, b), (b, a)] * (HELD // 4)
    crossed = [(old[place], old[1 - place], new[place]) for old, new in turns for place in (0, 1)]
    alone = [(x, x, one) for one in side.outs]
    (behind, events), (free, none) = (
        _while_held(side, [partial(prog.join, ONE, ONE, *arrays) for arrays in launches], before)
        for launches, before in ((crossed, first), (alone, ()))
    )
    event = (behind - free) / (events - none) if events > none else 0.0
    return {**found, "event": event}


def _while_held(
    side: _Side, calls: Sequence[Callable[[], Any]], before: Sequence[tuple[Any, ...]]
) -> tuple[float, float]:
    """Nanoseconds of a launch, and the events that it waits for, while another kernel runs; what
    comes `before` follows that."""
    runtime = side.runtime
    for last in reversed(range(DOUBLINGS)):
        runtime.finish()
        held = side.work(side.rounds)
        for _ in starmap(partial(side.prog.join, ONE, ONE), before):
            pass
        events = runtime.stats()["event_waits"]
        start = perf_counter()
        for call in calls:
            call()
        ns = (perf_counter() - start) * 1e9
        events = runtime.stats()["event_waits"] - events
        if not held.done or not last:
            break
        side.rounds *= 2
    return ns / len(calls), events / len(calls)


def _sending(side: _Side) -> Callable[[int], None]:
    """A launch that is an epoch by itself."""

    def send(number: int) -> None:
        side.few[number % ARRAYS](number)
        side.runtime.flush()

    return send


def _epochs(side: _Side) -> dict[str, float]:
    """Epochs of one task, and what each task more takes: to be recorded, sent, and seen ended."""
    runtime, found = side.runtime, side.stepped()
    few, many = (
        (side.cycles(calls, RECORDS, runtime.finish)[1] - found["wait"]) / (RECORDS - 1)
        for calls in (side.few, side.many)
    )
    return {
        **found,
        "few": max(1.0, few),
        "many": many,
        "sent": side.cycles([_sending(side)], SENT, runtime.flush)[1] / SENT,
        "read": side.cycles(side.few, 1, side.outs[0].get)[1],
        "holds": _holds(side),
    }


def _holds(side: _Side) -> float:
    """Of the time of an epoch that takes long: for how much of it sending it holds the program, at
    least, since a core that is not free holds it, too."""
    runtime, shares = side.runtime, [1.0]
    for _ in range(DOUBLINGS):
        runtime.finish()
        start = perf_counter()
        side.work(side.rounds)
        runtime.flush()
        sent = perf_counter() - start
        runtime.finish()
        took = perf_counter() - start
        if took > LONG_S:
            shares.append(sent / took)
        else:
            side.rounds *= 2
    return min(shares)
