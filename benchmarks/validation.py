"""The emulator beside reality: real runs of the suite, and what the model says of them.

    python -m acs_cl.benchmarks.validation --json benchmarks/results/validation-pocl.json
    python -m acs_cl.benchmarks.validation --device NVIDIA --within 180   # seconds, at most
    python -m acs_cl.benchmarks.validation --device NVIDIA --quick     # a look, not a figure
    python -m acs_cl.benchmarks.validation --again FILE --traces FOLDER   # the model alone

In: workloads, a device. Out: for each workload the time of a step on `serial` and the speed-ups of
`lanes` and `device` over it, real and modelled; as JSON, of which
`report` makes `docs/measurements/emulator-validation.md`.

How long a kernel takes is its median in several runs on `serial`, where it is alone; so is what the
program does by itself between launches, and what it waits for is what it waited for there. What a
launch, an argument, a wait and an epoch cost the host is measured between the runs of each workload
(`validation_host`), what a queue adds behind each (`validation_queue`), what the scheduler on the
device adds, once (`validation_scheduler`); all of it with kernels of no workload. Of the runs that
it is compared with the model knows no time, and only which kernels the scheduler took, and in which
groups: what the library decides.

Invariant: a modelled time stands beside a real one only here, under its name.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import acs_cl as acs
from acs_cl import UsageError, devices
from acs_cl.benchmarks import validation_runs, validation_scheduler
from acs_cl.benchmarks.harness import quantile, spread
from acs_cl.benchmarks.machine import machine, noise
from acs_cl.benchmarks.validation_costs import Costs, middle
from acs_cl.benchmarks.validation_host import Host, opened
from acs_cl.benchmarks.validation_model import POLICIES, again, known, marked, modelled
from acs_cl.benchmarks.validation_queue import chains, edges
from acs_cl.benchmarks.validation_runs import Plan
from acs_cl.benchmarks.validation_tables import VERSION, errors, render
from acs_cl.benchmarks.workloads import catalogue
from acs_cl.benchmarks.workloads.workload import PRESETS, Workload
from acs_cl.emu.trace import Trace, save

FIRST_LOOK = 3
"""Samples of queues before the first workload; each workload has one more behind it."""
FEW = ("chains", "stencil", "layers", "ant", "squeezenet", "vec")
"""With `--quick`."""


def measure(plan: Plan, say: Callable[[str], None]) -> dict[str, Any]:
    """The document of a run."""
    start = perf_counter()
    devices.repair(plan.device)
    there = machine(plan.device)
    unrest = [noise()]
    rows: dict[str, Any] = {}
    traces: dict[str, Trace] = {}
    left_out = []
    longest = 0.0
    with opened(plan.device) as host, chains(plan.device) as queue:
        say("the scheduler")
        scheduler = validation_scheduler.measured(plan.device, 5 if plan.quick else 15)
        queued = [queue.sample() for _ in range(FIRST_LOOK)]
        for workload in plan.workloads:
            began = perf_counter()
            if rows and began - start + longest > plan.within_s:
                left_out.append(workload.name)
                continue
            say(workload.name)
            rows[workload.name], traces[workload.name] = one(plan, workload, scheduler.group, host)
            queued.append(queue.sample())
            unrest.append(noise())
            longest = max(longest, perf_counter() - began)
    costs = Costs(
        kind=devices.kind(plan.device),
        units=plan.device.max_compute_units,
        shared=plan.device.max_compute_units if devices.kind(plan.device) == "CPU" else 0,
        edges=edges(queued),
        scheduler=scheduler,
        **middle([row["host"] for row in rows.values()]),
    )
    for name, row in rows.items():
        row.update(modelled(traces[name], *known(row, costs)))
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


def one(plan: Plan, workload: Workload, group: int, host: Host) -> tuple[dict[str, Any], Trace]:
    """A workload as it ran, and its trace. Speed-ups are over `serial`."""
    found = validation_runs.measured(plan, workload, host)
    trace = marked(found.trace, found.taken, group)
    medians = {backend: quantile(times, 0.5) for backend, times in found.real_ms.items()}
    if plan.traces is not None:
        save(trace, plan.traces / f"{workload.name}.jsonl")
    row = {
        "family": workload.family,
        "launches": len(trace.entries),
        "kernels_ms": round(sum(entry.total_ns for entry in trace.entries) / 1e6, 4),
        "tasks_on_device": found.taken.tasks,
        "taken": found.taken._asdict(),
        "host": found.host,
        "real_ms": {backend: spread(times, 4) for backend, times in found.real_ms.items()},
        "real": {name: round(medians["serial"] / medians[name], 3) for name in POLICIES},
    }
    return row, trace


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
    args = parser.parse_args(argv)
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


if __name__ == "__main__":
    raise SystemExit(main())
