"""Compare the emulator with reality: real runs of the suite, and the model's figures for them.

Input: workloads, a device. Output: for each workload the time of a step on `serial`, and the
speed-ups of `lanes` and `device` over it, real and modelled. `report` makes
`docs/measurements/emulator-validation.md` from the JSON.

The time of a kernel is its median over several runs on `serial`, where it runs alone. The program's
own work between launches comes from the same runs, and so do its waits. Samples between the runs of
a workload measure what a launch, an argument, a wait and an epoch cost the host (`host`), and what
a queue adds to each kernel (`queue_edges`). The costs of the scheduler on the device are measured
once (`scheduler_costs`). No sample runs a kernel of a workload. The model knows no time of the runs
that it is compared with. It only knows which kernels the scheduler took, and in which groups,
because the library decides that.

Invariant: a modelled time stands beside a real one only here, under its name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acs_cl import devices
from acs_cl.benchmarks.suite.machine import machine, noise
from acs_cl.benchmarks.suite.statistics import quantile, spread
from acs_cl.benchmarks.suite.timing import Deadline
from acs_cl.benchmarks.validation import runs, scheduler_costs
from acs_cl.benchmarks.validation.costs import Costs, middle
from acs_cl.benchmarks.validation.host import Host, opened
from acs_cl.benchmarks.validation.model import (
    POLICIES,
    VERSION,
    errors,
    known,
    marked,
    modelled,
)
from acs_cl.benchmarks.validation.queue_edges import chains, edges
from acs_cl.benchmarks.validation.runs import Plan
from acs_cl.benchmarks.workloads.workload import Workload
from acs_cl.emu.trace import Trace, save

FIRST_LOOK = 3
"""Samples of queues before the first workload; each workload has one more behind it."""


def measure(plan: Plan, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure all workloads of a plan; return the document."""
    deadline = Deadline(plan.within_s)
    devices.repair(plan.device)
    there = machine(plan.device)
    unrest = [noise()]
    rows: dict[str, Any] = {}
    traces: dict[str, Trace] = {}
    left_out = []
    with opened(plan.device) as host, chains(plan.device) as queue:
        say("the scheduler")
        scheduler = scheduler_costs.measured(plan.device, 5 if plan.quick else 15)
        queued = [queue.sample() for _ in range(FIRST_LOOK)]
        for workload in plan.workloads:
            if not deadline.has_time():
                left_out.append(workload.name)
                continue
            say(workload.name)
            rows[workload.name], traces[workload.name] = one(plan, workload, scheduler.group, host)
            queued.append(queue.sample())
            unrest.append(noise())
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
    """Return the row of a workload, and its trace. Speed-ups are over `serial`."""
    found = runs.measured(plan, workload, host)
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
