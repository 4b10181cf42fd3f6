"""Run workloads for real, to compare the emulator with them.

Input: a plan, a workload, samplers of the host's costs. Output: the launches of a step with the
time of each one alone; the time of a step on each backend, and what the scheduler on the device
took of it; samples of the host.

Invariant: everything is measured interleaved, after every kernel has found its place, and after one
run of each that does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pyopencl as cl

import acs_cl as acs
from acs_cl import UsageError
from acs_cl.benchmarks.suite.contestants import Contestant, timer
from acs_cl.benchmarks.suite.timing import going_on, interleave
from acs_cl.benchmarks.validation.host import LANES, Host, told
from acs_cl.benchmarks.validation.model import POLICIES, Taken
from acs_cl.benchmarks.workloads.workload import Workload
from acs_cl.emu.trace import ALL_BEFORE, HOST, KERNEL, Entry, Trace, resolved
from acs_cl.observe.slices import Slice

TRACED = 5
"""Steps of which the median of the scheduler's time is taken."""
SETTLED, MOST_UNSETTLED = 6, 100
"""Runs before those that count: at least, and at most. Kernels have to be used some times to be
built in, and some more until the core of the library looks again where they run."""
NOT_BUILT = "its scheduler is not built yet"


class Plan(NamedTuple):
    """What is to be measured."""

    device: cl.Device
    workloads: Sequence[Workload]
    preset: str
    runs: int
    quick: bool
    within_s: float = float("inf")
    """No workload but the first is begun that may end later."""
    traces: Path | None = None
    """A folder for what was recorded, which `--again` models without a device."""


class Measured(NamedTuple):
    """A workload as it ran."""

    trace: Trace
    """With times by profiles, and the program's own as a timeline has it."""
    real_ms: dict[str, list[float]]
    taken: Taken
    host: dict[str, Any]
    """What the host took meanwhile."""


def measured(plan: Plan, workload: Workload, host: Host) -> Measured:
    """Measure a workload."""
    with ExitStack() as open_ones:
        ready = {name: open_ones.enter_context(made(plan, workload, name)) for name in POLICIES}
        profiled = open_ones.enter_context(made(plan, workload, "serial", trace=True))
        for one in (*ready.values(), profiled):
            _settle(one)
        samplers: dict[str, Callable[[], Any]] = {
            **{f"run {name}": going_on(timer(one)) for name, one in ready.items()},
            **{f"host {name}": sampler for name, sampler in host.samplers().items()},
            "step": going_on(partial(step, profiled)),
            "own": host.own,
        }
        stats = ready["device"].platform.stats
        before = stats()["scheduler"]
        samples = interleave(samplers, plan.runs)
        taken = _taken(before, stats()["scheduler"], 2 * plan.runs)
    return Measured(
        recorded(workload.name, [second for _, second in samples["step"]]),
        {name: [one.total * 1e3 for _, one in samples[f"run {name}"]] for name in POLICIES},
        taken._replace(busy_ms=_busy_ms(plan, workload)),
        told({name: samples[f"host {name}"] for name in POLICIES}, samples["own"]),
    )


@contextmanager
def made(plan: Plan, workload: Workload, backend: str, trace: bool = False) -> Iterator[Contestant]:
    """Make a workload on a runtime of its own. All runs here make it in the same way."""
    lanes = LANES if backend == "lanes" else None
    with acs.Runtime(
        plan.device, backend=backend, lanes=lanes, trace=trace, predict=False
    ) as runtime:
        make = workload.host_decided or workload.make
        yield Contestant(runtime, make(runtime, workload.presets[plan.preset], 0))


def step(one: Contestant) -> list[Slice]:
    """Run a step; return its slices of the timeline, by number."""
    runtime, run, _ = one
    run.reset()
    runtime.finish()
    runtime.trace.clear()
    run.step()
    runtime.finish()
    return sorted(runtime.trace.slices, key=lambda one: one.number)


def _settle(one: Contestant) -> None:
    """Run until every kernel is where it stays."""
    runtime, run, _ = one

    def unbuilt() -> int:
        found = runtime.stats().get("scheduler", {}).get("on_lanes", {})
        return int(found.get(NOT_BUILT, 0))

    for turn in range(MOST_UNSETTLED):
        before = unbuilt()
        run.reset()
        run.step()
        runtime.finish()
        if turn >= SETTLED and unbuilt() == before:
            return
        runtime.prebuild()


def _taken(before: dict[str, Any], after: dict[str, Any], runs: int) -> Taken:
    """Return what the scheduler took of one run, by the backend's counts before and after some
    runs."""
    lanes = {
        reason: round((count - before["on_lanes"].get(reason, 0)) / runs)
        for reason, count in after["on_lanes"].items()
        if count > before["on_lanes"].get(reason, 0)
    }
    tasks, epochs = (round((after[key] - before[key]) / runs) for key in ("tasks", "epochs"))
    return Taken(tasks, epochs, lanes, after["schedulers"], None)


def _busy_ms(plan: Plan, workload: Workload) -> float | None:
    """Return how long the scheduler ran in a step, by the device's clock."""
    times = []
    with made(plan, workload, "device", trace=True) as one:
        _settle(one)
        for _ in range(TRACED):
            tasks = [task for task in step(one) if task.groups and task.lane < 0]
            epochs = {(task.start_ns, task.end_ns) for task in tasks}
            times.append(sum(end - start for start, end in epochs) / 1e6)
        done = one.platform.stats()["scheduler"]
    return round(median(times), 4) if done["launches"] == done["epochs"] else None


def recorded(name: str, runs: Sequence[Sequence[Slice]]) -> Trace:
    """Return the launches of a step. The time of each is the median over several runs."""
    names = [[one.name for one in slices] for slices in runs]
    if any(other != names[0] for other in names[1:]):
        raise UsageError(f"{name} does not launch the same at every step")
    first = runs[0][0].number if runs[0] else 1
    entries = [
        _entry(number, first, same) for number, same in enumerate(zip(*runs, strict=True), 1)
    ]
    return resolved(Trace(name, entries, "device", "spans"))


def _entry(number: int, start: int, same: Sequence[Slice]) -> Entry:
    """Make a launch of its slices in several runs. The first of these runs began at `start`."""
    first = same[0]
    waits = tuple(max(ALL_BEFORE, other - start + 1) for other in first.waits)
    total_ns = max(1, round(median(one.end_ns - one.start_ns for one in same)))
    kind = KERNEL if first.groups else HOST if first.clock == "host" else first.name
    entry = Entry(
        number, first.name, kind, total_ns=total_ns, reads=first.reads, writes=first.writes,
        host_ns=round(median(one.program_ns for one in same)), waits=tuple(dict.fromkeys(waits)),
    )  # fmt: skip
    if kind == KERNEL:
        entry = entry._replace(groups=first.groups, items=first.items)
    return entry
