"""``acs-cl bench``: the workloads on every backend, beside PyOpenCL by itself and by hand.

In: which workloads, in which size, on which device and backends. Out: a table, one JSON document
that describes itself, and pictures.

All contestants of a workload are built first, and checked against the reference: one whose results
are wrong is reported as failed, and not timed. Those left take turns. The baseline is the faster of
`serial` and PyOpenCL by itself on one in-order queue. The expert is the best of several numbers of
queues by hand and of one plain queue. Time is that from the first launch of a step
to the end of the last.

Invariant: every ratio is one of times from the same run, taken in turns; slow-downs are printed
like speed-ups.
"""

# Long because: what is run, compared and timed of one workload is one sequence.

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf, prod
from time import perf_counter
from typing import Any, NamedTuple

import pyopencl as cl

import acs_cl as acs
from acs_cl import AcsError, devices
from acs_cl.benchmarks import documents
from acs_cl.benchmarks.bounds import Bound
from acs_cl.benchmarks.harness import Deadline, interleave, quantile, spread
from acs_cl.benchmarks.machine import machine, noise
from acs_cl.benchmarks.suite_bounds import Program, bounded, launch_cost
from acs_cl.benchmarks.workloads.bare import InOrder
from acs_cl.benchmarks.workloads.expert import TRIED, Queues, overlaps_in_one
from acs_cl.benchmarks.workloads.workload import Results, Run, Workload, differences

VERSION = 1

MORE = 4
"""Steps between those that are checked, where they are not long."""
LONG_S = 0.2
"""A long step: its kernels are not those that a scheduler is for."""

ABOUT = (
    "Times of irregular graphs of kernels on one OpenCL device, as acs-cl bench measured them. For "
    "each workload: what it consists of, how fast it could be, and for each contestant the time of "
    "a step in ms, and how many times faster than the baseline of the same run it is, with the "
    "quartiles over the runs."
)

BARE, SERIAL, EXPERT, REPLAY, HOST_GATES = "bare", "serial", "expert", "replay", "host gates"
BASELINES = (BARE, SERIAL)
ON_HOST = ("out_of_order", "lanes")
BY_HOST = {name: f"{name}, {HOST_GATES}" for name in ON_HOST}
"""Backends of the host, and what their run is called in which the host decides, as the expert's
does: it launches what is open alone."""


Say = Callable[[str, float], None]
"""Hears what is done at the moment, and which share of all has been done."""


class Plan(NamedTuple):
    """What is to be measured."""

    device: cl.Device
    workloads: Sequence[Workload]
    preset: str
    backends: Sequence[str]
    runs: int = 7
    seed: int = 0
    within_s: float = inf
    """After so many seconds no workload is begun that would probably end later."""


class Contestant(NamedTuple):
    """A workload on a platform."""

    platform: Any
    run: Run
    ready_s: float = 0.0
    """What it took to build and to check it."""


class Sample(NamedTuple):
    """Seconds of one step: until the last launch was made, and until all had ended."""

    launching: float
    total: float


def measure(plan: Plan, say: Say) -> dict[str, Any]:
    """The document of a run."""
    *_, document = growing(plan, say)
    return document


def growing(plan: Plan, say: Say) -> Iterator[dict[str, Any]]:
    """The document of a run, after each workload: what is cut off has measured something."""
    deadline = Deadline(plan.within_s)
    devices.repair(plan.device)
    there = machine(plan.device)
    there["noise"] = unrest = [noise()]
    launch_us = launch_cost(plan.device)
    found: dict[str, Any] = {}
    left_out = [workload.name for workload in plan.workloads]
    document = {
        "acs_cl_bench": VERSION,
        "about": ABOUT,
        "machine": there,
        "preset": plan.preset,
        "runs": plan.runs,
        "seed": plan.seed,
        "bare_launch_us": round(launch_us, 3),
        "workloads": found,
        "left_out": left_out,
    }
    for index, workload in enumerate(plan.workloads):
        if not deadline.has_time():
            return
        start = perf_counter()
        say_more = _within(say, workload.name, index, len(plan.workloads))
        found[workload.name] = one(plan, workload, say_more)
        found[workload.name]["took_s"] = round(perf_counter() - start, 1)
        unrest.append(noise())
        around = max(one["unrest"] for one in unrest[-2:])
        run = documents.Run(there["commit"], there["sources"], there["date"], around)
        found[workload.name]["run"] = run._asdict()
        left_out.remove(workload.name)
        yield document


def _within(say: Say, name: str, index: int, count: int) -> Say:
    """For one of `count` workloads."""
    return lambda text, share: say(f"{name}: {text}", (index + share) / count)


def one(plan: Plan, workload: Workload, say: Say) -> dict[str, Any]:
    """What there is to say of one workload."""
    size = workload.presets[plan.preset]
    say("reference", 0.0)
    start = perf_counter()
    expected = workload.reference(size, plan.seed)
    ready_s = {"reference": round(perf_counter() - start, 2)}
    failed: dict[str, str] = {}
    with contestants(plan, workload, expected, failed, say) as ready:
        say("bound", 0.8)
        limits, overlap = bounded(plan.device, Program(workload, size, plan.seed))
        samples: dict[str, list[Sample]] = {}
        if ready:
            say(f"{plan.runs} runs of {', '.join(ready)}", 0.9)
            timers = {name: timer(contestant) for name, contestant in ready.items()}
            samples = interleave(timers, plan.runs)
        for name, contestant in ready.items():
            wrong = differences(workload, contestant.run.results(), expected)
            if wrong:
                failed[name] = f"after it was timed: {wrong}"
                del samples[name]
        where = {name: _where(contestant) for name, contestant in ready.items()}
    ready_s |= {name: contestant.ready_s for name, contestant in ready.items()}
    return {
        "family": workload.family,
        "about": workload.about,
        "size": _plain(size),
        "bound": limits.held(fastest_ms(samples)),
        "overlap": overlap,
        **compared(samples, limits),
        "failed": failed,
        "ready_s": ready_s,
        "where": where,
    }


def compared(samples: Mapping[str, Sequence[Sample]], limits: Bound) -> dict[str, Any]:
    """Each contestant beside the baseline: the faster of those that may be it."""
    medians = {name: quantile([s.total for s in taken], 0.5) for name, taken in samples.items()}
    possible = [name for name in BASELINES if name in medians]
    if not possible:
        return {"baseline": "", "rows": {}}
    baseline = min(possible, key=medians.__getitem__)
    rows = {}
    for name, taken in samples.items():
        times = [sample.total * 1e3 for sample in taken]
        pairs = zip(samples[baseline], taken, strict=True)
        launching = quantile([sample.launching for sample in taken], 0.5)
        rows[name] = {
            "ms": spread(times, 4),
            "speedup": spread([base.total / sample.total for base, sample in pairs], 3),
            "host_us_per_launch": round(launching / max(limits.launches, 1) * 1e6, 3),
            "launches_per_s": round(limits.launches / medians[name]),
        }
    if best := best_expert(rows):
        rows[EXPERT] = {**rows[best], "is": best}
    return {"baseline": baseline, "rows": rows}


def best_expert(rows: Mapping[str, Mapping[str, Any]]) -> str | None:
    """What an expert would keep, of all that was tried: queues by hand, or one plain queue."""
    tried = [name for name in rows if name.startswith(EXPERT)]
    if not tried:
        return None
    there = [*tried, *([BARE] if BARE in rows else [])]
    return min(there, key=lambda name: rows[name]["ms"]["median"])


def fastest_ms(samples: Mapping[str, Sequence[Sample]]) -> float | None:
    """The best median of all contestants."""
    medians = [quantile([s.total for s in taken], 0.5) * 1e3 for taken in samples.values()]
    return min(medians, default=None)


# ---- contestants ---------------------------------------------------------------------------------


@contextmanager
def contestants(
    plan: Plan,
    workload: Workload,
    expected: Results,
    failed: dict[str, str],
    say: Say,
) -> Iterator[dict[str, Contestant]]:
    """All that give the right results; what is wrong with the others is in `failed`."""
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
    # serial is the baseline, so it gets whichever way to decide is better for it
    makers |= {name: on(name, plain if name == SERIAL else workload.make) for name in plan.backends}
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
    """What an expert tries, and in how many queues; None: in one out-of-order queue."""
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
        """All of it again."""
        self._graph.replay()


def _check(contestant: Contestant, workload: Workload, expected: Results) -> str:
    """Two steps from the same beginning, results compared; then what is built behind the back of
    the program is waited for, and a third one."""
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
            # a kernel has to be used some times to be built in, and the core learns it anew then
            for waits in (platform.prebuild, platform.finish):
                for _ in range(more):
                    run.reset()
                    run.step()
                platform.finish()
                waits()
    return ""


def timer(contestant: Contestant) -> Callable[[], Sample]:
    """Takes one sample."""
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


def _where(contestant: Contestant) -> dict[str, Any]:
    """What ran where, and why."""
    if not isinstance(contestant.platform, acs.Runtime):
        return {}
    stats = contestant.platform.stats()
    kept = {key: stats[key] for key in ("backend", "why", "core", "event_waits")}
    if "scheduler" in stats:
        kept["scheduler"] = stats["scheduler"]
    return _json(kept)  # type: ignore[no-any-return]


def _plain(size: Any) -> dict[str, Any]:
    return _json(size._asdict() if hasattr(size, "_asdict") else {"size": size})  # type: ignore[no-any-return]


def _json(value: Any) -> Any:
    """Plain values only."""
    if isinstance(value, Mapping):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(item) for item in value]
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    return str(value)


def geomean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return float(prod(values) ** (1 / len(values))) if values else 0.0
