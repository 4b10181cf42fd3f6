"""Build the contestants of a workload: every backend, PyOpenCL by itself, and queues by hand.

A contestant with wrong results is reported as failed, and never timed. So each one is built first
and compared with the reference, before any is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

import pyopencl as cl

import acs_cl as acs
from acs_cl import AcsError
from acs_cl.benchmarks.workloads.bare import InOrder
from acs_cl.benchmarks.workloads.expert import TRIED, Queues, overlaps_in_one
from acs_cl.benchmarks.workloads.workload import Results, Run, Workload, differences

MORE = 4
"""Extra steps between the checked ones, unless steps are long."""

LONG_S = 0.2
"""A long step: its kernels are too long for a scheduler."""

SHORT_S = 0.02
"""A short step: what ran before it matters."""

BARE, SERIAL, EXPERT, REPLAY, HOST_GATES = "bare", "serial", "expert", "replay", "host gates"

LATER, LATER_S, LATEST_S = "auto, later", 0.75, 15.0
"""`auto` after so many seconds of steps, by when it knows which of them repeat."""

REPLAYED = 24
"""Replays in which a graph on a CPU has timed both ways (`graph/trial.py`)."""

BASELINES = (BARE, SERIAL)

ON_HOST = ("out_of_order", "lanes")

BY_HOST = {name: f"{name}, {HOST_GATES}" for name in ON_HOST}
"""Backends of the host, and their names in runs in which the host decides, as the expert's does: it
launches open gates only."""

Say = Callable[[str, float], None]
"""Gets the present step, and the share that is done."""


class Plan(NamedTuple):
    """The plan of a measurement."""

    device: cl.Device
    workloads: Sequence[Workload]
    preset: str
    backends: Sequence[str]
    runs: int = 7
    seed: int = 0
    within_s: float = inf
    """After this many seconds no workload is begun that would probably end later."""


class Contestant(NamedTuple):
    """A workload on a platform."""

    platform: Any
    run: Run
    ready_s: float = 0.0
    """The time to build and to check it."""


class Sample(NamedTuple):
    """Seconds of one step: until the last launch was made, and until all had ended."""

    launching: float
    total: float


def best_expert(rows: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the best of the expert's attempts: queues by hand, or one plain queue."""
    tried = [name for name in rows if name.startswith(EXPERT)]
    if not tried:
        return None
    there = [*tried, *([BARE] if BARE in rows else [])]
    return min(there, key=lambda name: rows[name]["ms"]["median"])


@contextmanager
def contestants(
    plan: Plan,
    workload: Workload,
    expected: Results,
    failed: dict[str, str],
    say: Say,
) -> Iterator[dict[str, Contestant]]:
    """Return all contestants with the right results; `failed` gets the errors of the others."""
    ready: dict[str, Contestant] = {}
    runtimes: list[acs.Runtime] = []
    makers = _makers(plan, workload, runtimes)
    try:
        for turn, (name, make) in enumerate(makers.items()):
            say(name, 0.1 + 0.7 * turn / len(makers))
            start = perf_counter()
            try:
                contestant = make()
                wrong = _check(contestant, workload, expected)
            except (AcsError, cl.Error, MemoryError) as error:
                wrong = f"{type(error).__name__}: {error}"
            if wrong:
                failed[name] = wrong
            else:
                if name == LATER:
                    _warm(contestant)
                if name == REPLAY:  # until its graph knows which way is quicker
                    _warm(contestant, REPLAYED)
                ready[name] = contestant._replace(ready_s=round(perf_counter() - start, 2))
        yield ready
    finally:
        for runtime in runtimes:
            try:
                runtime.close()
            except AcsError as error:
                failed.setdefault("close", str(error))


def _makers(
    plan: Plan, workload: Workload, runtimes: list[acs.Runtime]
) -> dict[str, Callable[[], Contestant]]:
    size, seed = workload.presets[plan.preset], plan.seed
    plain = workload.host_decided or workload.make

    def bare() -> Contestant:
        platform = InOrder(plan.device)
        return Contestant(platform, plain(platform, size, seed))

    def expert(lanes: int | None) -> Callable[[], Contestant]:
        def made() -> Contestant:
            platform = Queues(plan.device, lanes=lanes)
            assert workload.expert is not None
            return Contestant(platform, workload.expert(platform, size, seed))

        return made

    def on(backend: str, make: Any) -> Callable[[], Contestant]:
        def made() -> Contestant:
            runtime = acs.Runtime(plan.device, backend=backend)
            runtimes.append(runtime)
            return Contestant(runtime, make(runtime, size, seed))

        return made

    def replay() -> Contestant:
        found = on("auto", workload.make)()
        return Contestant(found.platform, Replay(found.platform, found.run))

    makers: dict[str, Callable[[], Contestant]] = {BARE: bare}
    # serial is the baseline, so it gets the better of both ways to decide
    makers |= {name: on(name, plain if name == SERIAL else workload.make) for name in plan.backends}
    if "auto" in plan.backends:
        makers[LATER] = on("auto", workload.make)
    if workload.host_decided is not None:
        for name in ("auto", *ON_HOST):
            if name in plan.backends:
                makers[BY_HOST.get(name, HOST_GATES)] = on(name, workload.host_decided)
    if workload.replayable and "auto" in plan.backends:
        makers[REPLAY] = replay
    if workload.expert is not None:
        makers |= {name: expert(lanes) for name, lanes in experts(plan.device).items()}
    return makers


def experts(device: cl.Device) -> dict[str, int | None]:
    """Return the expert's attempts with their queues. None: one out-of-order queue."""
    there: dict[str, int | None] = {
        f"{EXPERT}, {lanes} lane{'s' * (lanes > 1)}": lanes for lanes in TRIED
    }
    return there | ({f"{EXPERT}, out of order": None} if overlaps_in_one(device) else {})


class Replay:
    """A run whose step was recorded once."""

    def __init__(self, runtime: acs.Runtime, run: Run) -> None:
        self._run = run
        with runtime.record() as self._graph:
            run.step()
        self.reset, self.results = run.reset, run.results

    def step(self) -> None:
        """Replay the step."""
        self._graph.replay()


def _check(contestant: Contestant, workload: Workload, expected: Results) -> str:
    """Compare the results of two steps from the same beginning. Then wait for background builds,
    and check a third step."""
    platform, run, _ = contestant
    for turn in range(3):
        run.reset()
        platform.finish()
        start = perf_counter()
        run.step()
        platform.finish()
        more = MORE if perf_counter() - start < LONG_S else 1
        wrong = differences(workload, run.results(), expected)
        if wrong:
            return wrong
        if turn and isinstance(platform, acs.Runtime):
            # a kernel is built in after some launches, and then the core plans it again
            for waits in (platform.prebuild, platform.finish):
                for _ in range(more):
                    run.reset()
                    run.step()
                platform.finish()
                waits()
    return ""


def _warm(contestant: Contestant, least: int = 0) -> None:
    """Make steps for a while, and at least so many, as they are timed. While the runtime tries
    other ways for them, it gets longer."""
    sample = timer(contestant)
    began, made = perf_counter(), 0
    while (lasts := perf_counter() - began) < LATEST_S:
        if lasts >= LATER_S and made >= least and not _tries(contestant.platform):
            return
        sample()
        made += 1


def _tries(runtime: acs.Runtime) -> bool:
    scheduler = runtime.stats().get("scheduler")
    return scheduler is not None and str(scheduler["steps"]).startswith("tried")


def timer(contestant: Contestant) -> Callable[[], Sample]:
    """Return a function that takes one sample."""
    platform, run, _ = contestant

    def sample() -> Sample:
        run.reset()
        platform.finish()
        start = perf_counter()
        run.step()
        launched = perf_counter()
        platform.finish()
        return Sample(launched - start, perf_counter() - start)

    return sample
