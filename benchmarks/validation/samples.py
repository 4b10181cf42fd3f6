"""Take samples of what launches cost the host: a runtime's work for kernels that do nothing.

Input: a runtime. Output: nanoseconds by name, from one sample at a time.

Invariant: a call is timed only after many such calls, so that it is as fast as in a long run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import starmap
from time import perf_counter
from typing import Any

import numpy as np

import acs_cl as acs
from acs_cl.benchmarks.suite.measures.overlap import SOURCE as WORK_SOURCE
from acs_cl.benchmarks.suite.statistics import quantile
from acs_cl.benchmarks.suite.tiny import ONE
from acs_cl.benchmarks.validation.queue_edges import LINK
from acs_cl.emu.machines import machine

FEW, MANY = 2, 10
"""Arrays of the two kernels."""
ARRAYS = 16
"""Launches that are independent of each other."""
AMONG = (32, 256)
"""A launch is timed from the first to the last of these."""
WIDE = 1 << 19
"""Work-items of a task of many tiles."""
RECORDS = machine("cpu2").scheduler.first_look - 8
"""Launches that are one epoch."""
SENT = 8
"""Epochs that are sent one behind another."""
QUEUED = (2, 10)
"""Epochs behind one that lasts."""
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
kernel void wide(global uint *y, uint v) { y[get_global_id(0)] = v; }
kernel void join(global const uint *a, global const uint *b, global uint *y) { y[0] = a[0] + b[0]; }
"""

Sample = Mapping[str, float]
"""Nanoseconds, by what they are of."""


class Side:
    """A runtime with all that is launched on it; the core knows how."""

    def __init__(self, runtime: acs.Runtime) -> None:
        self.runtime = runtime
        self.rounds = ROUNDS
        self.prog: Any = runtime.build(SOURCE + WORK_SOURCE)

        def arrays(count: int, items: int = 64) -> list[acs.Array]:
            return [runtime.zeros(items, np.uint32) for _ in range(count)]

        self.x, self.held, *sources = arrays(MANY)
        self.zeros = np.zeros(64, np.uint32)
        self.outs = arrays(HELD)
        self.pairs = arrays(2), arrays(2)
        self.work = partial(self.prog.work, LINK, LINK, self.held)
        wide = arrays(1, WIDE)[0]
        self.wide = [partial(self.prog.wide, (WIDE,), None, wide)]
        outs = self.outs[:ARRAYS]
        self.few = [partial(self.prog.few, ONE, ONE, self.x, y) for y in outs]
        self.many = [partial(self.prog.many, ONE, ONE, self.x, *sources, y) for y in outs]
        for turn in range(4):
            for calls in (self.few, self.many, self.wide):
                for number in range(AMONG[1]):
                    calls[number % len(calls)](number)
            self.work(1)
            runtime.finish()
            if not turn:
                runtime.prebuild()

    def among(self, calls: Sequence[Callable[[int], Any]], first: int, last: int) -> float:
        """Return nanoseconds of a launch, over all of them from the first to the last."""
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
        """Return nanoseconds of some launches and a wait while nothing else is under way: of the
        first time, and of later times."""
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
        """Time one launch and its wait at the beginning of a step, when arrays were set, and behind
        that. Return the second of two such times, as steps are timed."""
        for _ in range(2):
            self.x.set(self.zeros)
            first, wait = self.cycles(self.few, 1, self.runtime.finish)
        return {"first": first, "wait": wait}


def eager(side: Side) -> dict[str, float]:
    """Time launches that go to the driver at once, and a wait."""
    return {
        **side.stepped(),
        "few": side.among(side.few, *AMONG),
        "many": side.among(side.many, *AMONG),
    }


def with_events(side: Side) -> dict[str, float]:
    """Time the same, and what each event of another lane adds to a launch."""
    found = eager(side)
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
    side: Side, calls: Sequence[Callable[[], Any]], before: Sequence[tuple[Any, ...]]
) -> tuple[float, float]:
    """Return nanoseconds of a launch while another kernel runs, and the events that it waits for.
    The launches of `before` wait for that kernel, too."""
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


def _sending(side: Side, calls: Sequence[Callable[[int], Any]]) -> Callable[[int], None]:
    """Time a launch that is an epoch by itself."""

    def send(number: int) -> None:
        calls[number % len(calls)](number)
        side.runtime.flush()

    return send


def epochs(side: Side) -> dict[str, float]:
    """Time epochs of one task, and what each further task adds: recorded, sent, and seen ended. On
    a GPU also measure what one of many tiles adds to sending, and to an epoch on the device. A CPU
    device runs tiles on the cores that send them."""
    runtime, found = side.runtime, side.stepped()
    few, many = (
        (side.cycles(calls, RECORDS, runtime.finish)[1] - found["wait"]) / (RECORDS - 1)
        for calls in (side.few, side.many)
    )
    scheduler = runtime.stats()["scheduler"]["schedulers"][0]
    sent = side.cycles([_sending(side, side.few)], SENT, runtime.flush)[1] / SENT
    on_gpu = scheduler["group"] > 1
    return {
        **found,
        "few": max(1.0, few),
        "many": many,
        "sent": sent,
        "wide": _wide(side) if on_gpu else sent,
        "tiles": float(_tiles(scheduler)) if on_gpu else 1.0,
        "queued": _queued(side) if on_gpu else 0.0,
        "read": side.cycles(side.few, 1, side.outs[0].get)[1],
        "holds": _holds(side),
    }


def _wide(side: Side) -> float:
    """Return nanoseconds of one of several epochs of a task of many tiles."""
    return side.cycles([_sending(side, side.wide)], SENT, side.runtime.flush)[1] / SENT


def _tiles(scheduler: Mapping[str, Any]) -> int:
    """Return the tiles of that task, as a GPU's scheduler cuts it."""
    group, rule = int(scheduler["group"]), machine("h200-acs_cl").scheduler
    most = rule.most_tiles * int(scheduler["resident_groups"])
    return -(-WIDE // max(rule.least_items, -(-WIDE // (most * group)) * group))


def _queued(side: Side) -> float:
    """Return nanoseconds from the end of an epoch of one task to the end of the next one, which was
    sent long before. They wait behind one that lasts until all are sent. The difference between
    many and few counts."""
    send = _sending(side, side.few)

    def takes(count: int) -> float:
        for last in reversed(range(DOUBLINGS)):
            side.runtime.finish()
            start = perf_counter()
            held = side.work(side.rounds)
            side.runtime.flush()
            for number in range(count):
                send(number)
            is_early = not held.done
            side.runtime.finish()
            took = perf_counter() - start
            if is_early or not last:
                break
            side.rounds *= 2
        return took * 1e9

    takes(QUEUED[1])  # long enough from here on
    few, many = (takes(count) for count in QUEUED)
    return (many - few) / (QUEUED[1] - QUEUED[0])


def _holds(side: Side) -> float:
    """Return the share of a long epoch for which sending it holds the program. The least of several
    samples counts, because a busy core holds the program, too."""
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
