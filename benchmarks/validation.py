"""The emulator beside reality: real runs of the suite, and what the model says of them.

    python -m acs_cl.benchmarks.validation --json benchmarks/results/validation-pocl.json
    python -m acs_cl.benchmarks.validation --device NVIDIA --within 180   # seconds, at most
    python -m acs_cl.benchmarks.validation --device NVIDIA --quick     # a look, not a figure
    python -m acs_cl.benchmarks.validation --again FILE --traces FOLDER   # the model alone
    python -m acs_cl.benchmarks.validation --render                    # the tables of what there is

In: workloads, a device. Out: for each workload the time of a step on `serial` and the speed-ups of
`lanes` and `device` over it, real and modelled; as JSON, and as `docs/emulator-validation.md`.

How long a kernel takes is its median in several runs on `serial`, where it is alone; so is what the
program does by itself between launches, and what it waits for is what it waited for there. What a
launch, an argument, a wait and an epoch cost the host, and what the scheduler on the device adds,
is measured in the same run with kernels of no workload (`validation_costs`). The model knows
nothing else of the runs that it is compared with.

Invariant: real runs take turns; a modelled time stands beside a real one only here, under its name.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import pyopencl as cl

import acs_cl as acs
from acs_cl import UsageError, devices
from acs_cl.benchmarks.harness import interleave, quantile, spread
from acs_cl.benchmarks.machine import machine, noise
from acs_cl.benchmarks.suite import Contestant, timer
from acs_cl.benchmarks.validation_costs import FEW as FEW_ARRAYS
from acs_cl.benchmarks.validation_costs import LANES, Costs, measured
from acs_cl.benchmarks.validation_model import POLICIES, again, modelled
from acs_cl.benchmarks.validation_tables import VERSION, errors, render
from acs_cl.benchmarks.workloads import catalogue
from acs_cl.benchmarks.workloads.workload import PRESETS, Workload
from acs_cl.emu.trace import ALL_BEFORE, HOST, KERNEL, Entry, Trace, resolved, save
from acs_cl.trace import Slice

ROOT = Path(__file__).resolve().parent
TABLES = ROOT.parent / "docs" / "emulator-validation.md"

FEW = ("chains", "stencil", "layers", "ant", "squeezenet", "vec")
"""With `--quick`."""
TRACED = 5
"""Runs on `serial` of which a kernel's median is taken, as it is of real runs."""
SETTLED = 6
"""Runs before those that count: kernels have to be used some times to be built in."""


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


def measure(plan: Plan, say: Callable[[str], None]) -> dict[str, Any]:
    """The document of a run."""
    start = perf_counter()
    devices.repair(plan.device)
    there = machine(plan.device)
    unrest = [noise()]
    say("what launches cost")
    costs = measured(plan.device, plan.quick)
    rows: dict[str, Any] = {}
    left_out = []
    longest = 0.0
    for workload in plan.workloads:
        began = perf_counter()
        if rows and began - start + longest > plan.within_s:
            left_out.append(workload.name)
            continue
        say(workload.name)
        rows[workload.name] = one(plan, workload, costs)
        unrest.append(noise())
        longest = max(longest, perf_counter() - began)
    there["noise"] = unrest
    return {
        "acs_cl_validation": VERSION,
        "quick": plan.quick,
        "preset": plan.preset,
        "runs": plan.runs,
        "machine": there,
        "costs": costs.plain(),
        "rows": rows,
        "left_out": left_out,
        "errors": errors(rows),
    }


def one(plan: Plan, workload: Workload, costs: Costs) -> dict[str, Any]:
    """A workload, real and modelled. Speed-ups are over `serial`."""
    trace = recorded(plan, workload, costs.argument_ns)
    real, tasks = timed(plan, workload)
    medians = {backend: quantile(times, 0.5) for backend, times in real.items()}
    if plan.traces is not None:
        save(trace, plan.traces / f"{workload.name}.jsonl")
    return {
        "family": workload.family,
        "launches": len(trace.entries),
        "kernels_ms": round(sum(entry.total_ns for entry in trace.entries) / 1e6, 4),
        "tasks_on_device": tasks,
        "real_ms": {backend: spread(times, 4) for backend, times in real.items()},
        "real": {name: round(medians["serial"] / medians[name], 3) for name in POLICIES},
        **modelled(trace, costs),
    }


# ---- real runs -----------------------------------------------------------------------------------


def recorded(plan: Plan, workload: Workload, argument_ns: int) -> Trace:
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
        _entry(number, first, same, argument_ns)
        for number, same in enumerate(zip(*runs[1:], strict=True), 1)
    ]
    return resolved(Trace(workload.name, entries, "device", "spans"))


def _entry(number: int, start: int, same: Sequence[Slice], argument_ns: int) -> Entry:
    """A launch from its slices of several runs; in the first of them launches begin at `start`."""
    first = same[0]
    waits = tuple(max(ALL_BEFORE, other - start + 1) for other in first.waits)
    total_ns = max(1, round(median(one.end_ns - one.start_ns for one in same)))
    kind = KERNEL if first.groups else HOST if first.clock == "host" else first.name
    more = max(0, len(first.reads) + len(first.writes) - FEW_ARRAYS)
    entry = Entry(
        number, first.name, kind, total_ns=total_ns, reads=first.reads, writes=first.writes,
        host_ns=round(median(one.program_ns for one in same)) + argument_ns * more,
        waits=tuple(dict.fromkeys(waits)),
    )  # fmt: skip
    if kind == KERNEL:
        entry = entry._replace(groups=first.groups, items=first.items)
    return entry


def timed(plan: Plan, workload: Workload) -> tuple[dict[str, list[float]], int]:
    """Milliseconds of a step on each backend, in turns; and how many launches of the last one the
    scheduler on the device ran."""
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
            for turn in range(SETTLED):
                run.reset()
                run.step()
                runtime.finish()
                if turn == SETTLED // 2:
                    runtime.prebuild()
            timers[backend] = timer(Contestant(runtime, run))
        before = runtime.stats()["scheduler"]["tasks"]
        samples = interleave(timers, plan.runs)
        tasks = runtime.stats()["scheduler"]["tasks"] - before
    times = {name: [one.total * 1e3 for one in taken] for name, taken in samples.items()}
    return times, round(tasks / plan.runs)


# ---- the command ---------------------------------------------------------------------------------


def chosen(names: Sequence[str], quick: bool) -> list[Workload]:
    """Workloads by name or family; all of them where none is named, or a few."""
    there = catalogue()
    families = {workload.family for workload in there.values()}
    for name in names:
        if name not in there and name not in families:
            raise UsageError(f"no workload or family is called {name!r}")
    wanted = names or [name for name in FEW if name in there] if quick else names
    return [
        workload
        for name, workload in there.items()
        if not wanted or name in wanted or workload.family in wanted
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks/validation.py", description="Real and model.")
    add = parser.add_argument
    add("workloads", nargs="*", metavar="WORKLOAD", help="names or families; without any: all")
    add("--device", metavar="SPEC", help="index, or a part of 'platform name / device name'")
    add("--preset", choices=PRESETS, default="small")
    add("--runs", type=int, default=9, metavar="N", help="real runs of each backend")
    add("--within", type=float, metavar="S", help="leave out workloads that would end later")
    add("--quick", action="store_true", help="few workloads and samples: a look, not a figure")
    add("--json", metavar="FILE", help="write everything measured there")
    add("--traces", metavar="FOLDER", help="keep there what was recorded")
    add("--again", metavar="FILE", help="measure nothing: model what is in FILE and --traces again")
    add("--render", action="store_true", help="measure nothing: the tables of committed results")
    add("--check", action="store_true", help="write nothing: are the tables those of the results?")
    args = parser.parse_args(argv)
    if args.render or args.check:
        return _tables(args.check)
    if args.again:
        return _again(args)
    runs = min(args.runs, 3) if args.quick else args.runs
    start = perf_counter()
    try:
        workloads = chosen(args.workloads, args.quick)
        within_s = args.within if args.within is not None else float("inf")
        device = devices.choose(args.device)
        traces = Path(args.traces) if args.traces else None
        if traces is not None:
            traces.mkdir(parents=True, exist_ok=True)
        plan = Plan(device, workloads, args.preset, runs, args.quick, within_s, traces)
        document = measure(plan, lambda text: print(text, file=sys.stderr))
    except acs.AcsError as error:
        print(f"validation: {error}", file=sys.stderr)
        return 1
    document["took_s"] = round(perf_counter() - start, 1)
    if args.json:
        Path(args.json).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(render([document]))
    return 0


def _again(args: argparse.Namespace) -> int:
    try:
        if not args.traces:
            raise UsageError("--again needs --traces: where the traces of that run are")
        document = again(Path(args.again), Path(args.traces))
    except acs.AcsError as error:
        print(f"validation: {error}", file=sys.stderr)
        return 1
    if args.json:
        Path(args.json).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(render([document]))
    return 0


def _tables(check: bool) -> int:
    paths = sorted((ROOT / "results").glob("validation-*.json"))
    text = render([json.loads(path.read_text(encoding="utf-8")) for path in paths])
    if not check:
        TABLES.write_text(text, encoding="utf-8")
    elif not TABLES.exists() or TABLES.read_text(encoding="utf-8") != text:
        print(f"{TABLES.name} is not what the results say", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
