"""Measure which policy of lanes suits a device: branches that part and meet, placed by each policy.

Input: a bench, and the number of lanes. Output: by policy, how many times faster than by the
default the same launches ran.

Invariant: `lanes_of` returns the lanes that the core chooses while no launch has ended. So the
measured case is a program that launches ahead of the device.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import pyopencl as cl

from acs_cl.devices.driver import run
from acs_cl.devices.probe.bench import ITEMS, KERNELS, Bench, finish
from acs_cl.devices.probe.record import Suited
from acs_cl.records import Placing

POLICIES = (("disjoint", "reuse"), ("disjoint", "always"), ("same", "reuse"))
"""Besides the default: Opara's allocation, with idle lanes or with the next one, and GrCUDA's
`same-as-parent`."""

BRANCHES = (1, 2, 2, 2)
"""Launches in a row of each branch between two that join all branches: a module of GoogLeNet."""

_TURNS = 8
Policy = tuple[str, str]


def branching(kernels: int = KERNELS) -> list[tuple[int, ...]]:
    """Return the upstream of each launch: modules of branches, and a launch behind all branches."""
    found: list[tuple[int, ...]] = []
    start: tuple[int, ...] = ()
    while len(found) + sum(BRANCHES) < kernels:
        ends: list[int] = []
        for length in BRANCHES:
            above = start
            for _ in range(length):
                found.append(above)
                above = (len(found) - 1,)
            ends += above
        found.append(tuple(ends))
        start = (len(found) - 1,)
    return found


def lanes_of(upstream: Sequence[Sequence[int]], lanes: int, policy: Policy) -> list[int]:
    """Return the lane of each launch, while none has ended."""
    after, new = policy
    chosen: list[int] = []
    queued: list[list[int]] = [[] for _ in range(lanes)]
    continued: set[int] = set()
    latest = 0
    for number, above in enumerate(upstream):
        if after == "tail":
            behind = [one for one in reversed(above) if queued[chosen[one]][-1] == one]
        else:
            behind = [one for one in above if after == "same" or one not in continued]
        if behind:
            continued.add(behind[0])
            lane = chosen[behind[0]]
        else:
            turns = [(latest + step) % lanes for step in range(lanes)]
            idle = [one for one, launches in enumerate(queued) if not launches]
            if new == "least":
                latest = min(turns, key=lambda one: len(queued[one]))
            else:
                latest = idle[0] if new == "reuse" and idle else turns[1 % lanes]
            lane = latest
        chosen.append(lane)
        queued[lane].append(number)
    return chosen


def measure_policies(
    bench: Bench, lanes: int, until: float, notes: list[str]
) -> tuple[Suited, ...]:
    """Measure how much faster than by the default each policy was, by the best of some turns."""
    default: Policy = Placing()[:2]
    upstream, queues = branching(), bench.lanes(lanes)
    kernels = bench.work(bench.buffers[: len(upstream)])
    best: dict[Policy, float] = {}
    for turn in range(_TURNS):
        for policy in (default, *POLICIES):
            if time.monotonic() > until:
                notes.append(f"out of time after {turn} turns of the policies of lanes")
                return ()
            took = _burst_us(kernels, queues, upstream, lanes_of(upstream, lanes, policy))
            best[policy] = took if turn < 2 else min(best[policy], took)  # the first one is cold
    return tuple(Suited(*one, round(best[default] / best[one], 3)) for one in POLICIES)


def _burst_us(
    kernels: Sequence[cl.Kernel],
    queues: Sequence[cl.CommandQueue],
    upstream: Sequence[Sequence[int]],
    lanes: Sequence[int],
) -> float:
    """Return the host time until all have ended. Events are waited for across lanes only."""
    events: list[cl.Event] = []
    start = time.perf_counter()
    for kernel, above, lane in zip(kernels, upstream, lanes, strict=True):
        across = [one for one in above if lanes[one] != lane]
        for one in across:
            queues[lanes[one]].flush()
        events.append(
            run(queues[lane], kernel, ITEMS, ITEMS, [events[one] for one in across] or None)
        )
    finish(queues)
    return (time.perf_counter() - start) * 1e6
