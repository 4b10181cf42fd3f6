"""Real runs of workloads, for the emulator to be held against.

In: a plan, a workload. Out: the launches of a step with their times alone (`recorded`); the time of
a step on each backend, and what the scheduler on the device took of it (`timed`).

Invariant: runs that are compared take turns, and begin when every kernel is where it stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pyopencl as cl

import acs_cl as acs
from acs_cl import UsageError
from acs_cl.benchmarks.harness import interleave
from acs_cl.benchmarks.suite import Contestant, timer
from acs_cl.benchmarks.validation_costs import FEW as FEW_ARRAYS
from acs_cl.benchmarks.validation_costs import LANES, Costs
from acs_cl.benchmarks.validation_model import POLICIES, Taken
from acs_cl.benchmarks.workloads.workload import Workload
from acs_cl.emu.trace import ALL_BEFORE, HOST, KERNEL, Entry, Trace, resolved
from acs_cl.trace import Slice

TRACED = 5
"""Runs on `serial` of which a kernel's median is taken, as it is of real runs."""
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


def recorded(plan: Plan, workload: Workload, costs: Costs) -> Trace:
    """The launches of a step, each with its time alone."""
    size = workload.presets[plan.preset]
    make = workload.host_decided or workload.make
    runs: list[list[Slice]] = []
    with acs.Runtime(plan.device, backend="serial", trace=True) as runtime:
        run = make(runtime, size, 0)
        for _ in range(1 + TRACED):  # the first is cold
            run.reset()
            runtime.finish()
            runtime.trace.clear()
            run.step()
            runtime.finish()
            runs.append(sorted(runtime.trace.slices, key=lambda one: one.number))
    names = [[one.name for one in slices] for slices in runs]
    if any(other != names[1] for other in names[2:]):
        raise UsageError(f"{workload.name} does not launch the same at every step")
    first = runs[1][0].number if runs[1] else 1
    entries = [
        _entry(number, first, same, costs)
        for number, same in enumerate(zip(*runs[1:], strict=True), 1)
    ]
    return resolved(Trace(workload.name, entries, "device", "spans"))


def _entry(number: int, start: int, same: Sequence[Slice], costs: Costs) -> Entry:
    """A launch from its slices of several runs; in the first of them launches begin at `start`.
    What a timeline takes for the program's own time where it has none is part of a launch's."""
    first = same[0]
    waits = tuple(max(ALL_BEFORE, other - start + 1) for other in first.waits)
    total_ns = max(1, round(median(one.end_ns - one.start_ns for one in same)))
    kind = KERNEL if first.groups else HOST if first.clock == "host" else first.name
    more = max(0, len(first.reads) + len(first.writes) - FEW_ARRAYS)
    own_ns = round(median(one.program_ns for one in same))
    own_ns -= costs.own_ns + costs.own_argument_ns * more
    entry = Entry(
        number, first.name, kind, total_ns=total_ns, reads=first.reads, writes=first.writes,
        host_ns=max(0, own_ns) + costs.argument_ns * more, waits=tuple(dict.fromkeys(waits)),
    )  # fmt: skip
    if kind == KERNEL:
        entry = entry._replace(groups=first.groups, items=first.items)
    return entry


def timed(plan: Plan, workload: Workload) -> tuple[dict[str, list[float]], Taken]:
    """Milliseconds of a step on each backend, in turns; and what the scheduler on the device ran of
    the last one."""
    size = workload.presets[plan.preset]
    make = workload.host_decided or workload.make
    with ExitStack() as open_ones:
        timers = {}
        for backend in POLICIES:
            lanes = LANES if backend == "lanes" else None
            runtime = open_ones.enter_context(
                acs.Runtime(plan.device, backend=backend, lanes=lanes)
            )
            run = make(runtime, size, 0)
            _settle(runtime, run)
            timers[backend] = timer(Contestant(runtime, run))
        before = runtime.stats()["scheduler"]
        samples = interleave(timers, plan.runs)
        after = runtime.stats()["scheduler"]
    times = {name: [one.total * 1e3 for one in taken] for name, taken in samples.items()}
    taken = _taken(before, after, plan.runs)
    return times, taken._replace(busy_ms=_busy_ms(plan, workload))


def _settle(runtime: acs.Runtime, run: Any) -> None:
    """Run until every kernel is where it stays."""

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
    """Of one run; from what the backend tells before some and after."""
    lanes = {
        reason: round((count - before["on_lanes"].get(reason, 0)) / runs)
        for reason, count in after["on_lanes"].items()
        if count > before["on_lanes"].get(reason, 0)
    }
    tasks, epochs = (round((after[key] - before[key]) / runs) for key in ("tasks", "epochs"))
    return Taken(tasks, epochs, lanes, after["schedulers"], None)


def _busy_ms(plan: Plan, workload: Workload) -> float | None:
    """How long the scheduler ran in a step, by the device's clock."""
    make = workload.host_decided or workload.make
    times = []
    with acs.Runtime(plan.device, backend="device", trace=True) as runtime:
        run = make(runtime, workload.presets[plan.preset], 0)
        _settle(runtime, run)
        for _ in range(TRACED):
            run.reset()
            runtime.finish()
            runtime.trace.clear()
            run.step()
            runtime.finish()
            tasks = [one for one in runtime.trace.slices if one.groups and one.lane < 0]
            epochs = {(one.start_ns, one.end_ns) for one in tasks}
            times.append(sum(end - start for start, end in epochs) / 1e6)
        done = runtime.stats()["scheduler"]
    return round(median(times), 4) if done["launches"] == done["epochs"] else None
