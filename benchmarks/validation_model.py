"""What the emulator says of a workload that was run for real.

In: the trace of a step, what was measured beside it (`validation_costs`), and what the scheduler on
the device took of it. Out: milliseconds and speed-ups by backend. `again` does so for all of a run
that is over, without its device.

On a CPU device the program runs on the cores that run the kernels. The model has no such device, so
its time is never taken as less than all cores would need for both.

Invariant: equal traces and costs give equal figures, and nothing else goes into them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from acs_cl import UsageError
from acs_cl.benchmarks.validation_costs import LANES, Costs, machine_of
from acs_cl.benchmarks.validation_scheduler import SchedulerCosts
from acs_cl.benchmarks.validation_tables import errors
from acs_cl.emu.cost import Costs as Needs
from acs_cl.emu.policies import simulate
from acs_cl.emu.spec import Machine
from acs_cl.emu.trace import KERNEL, Trace, load

POLICIES = {"serial": "serial", "lanes": f"streams(S={LANES})", "device": "on_device"}
"""Of the model, by backend."""


class Taken(NamedTuple):
    """What the scheduler on the device took of a step."""

    tasks: int
    epochs: int
    on_lanes: dict[str, int]
    """How many launches ran on lanes, by the reason."""
    schedulers: list[dict[str, Any]]
    """Each with the size of its groups, how many of them are resident, and its kernels."""
    busy_ms: float | None
    """In which it ran, by the device's clock, in a run of its own; the rest of a step's time is the
    host's, and what lies between both. None where an epoch is more than one launch, of which only
    the first has times."""


def marked(trace: Trace, taken: Taken, group: int) -> Trace:
    """With what keeps kernels from being cut into groups of `group`, or from any scheduler: they
    are only in one with groups of their own, or in none."""
    found = {(name, one["group"]) for one in taken.schedulers for name in one["kernels"]}
    entries = []
    for entry in trace.entries:
        if entry.kind == KERNEL and (entry.name, group) not in found:
            whole = (entry.name, entry.items) in found
            entry = entry._replace(whole_groups=int(whole), on_lane=int(not whole))
        entries.append(entry)
    return trace._replace(entries=entries)


def machine_for(costs: Costs, backend: str, taken: Taken) -> Machine:
    """The machine as measured, with as many groups of the scheduler as the workload's own has."""
    where = machine_of(costs, backend)
    for one in taken.schedulers:
        if one["group"] == costs.scheduler.group and not where.scheduler.leaves:
            each = max(1, one["resident_groups"] // costs.units)
            return where._replace(scheduler=where.scheduler._replace(groups=each, launched=each))
    return where


def modelled(trace: Trace, costs: Costs, taken: Taken) -> dict[str, Any]:
    """What a row says of the model."""
    ms = {}
    for backend in POLICIES:
        known = bare(trace, costs.empty_ns) if backend == "device" else trace
        ms[backend] = predicted(known, machine_for(costs, backend, taken), backend, costs.shared)
    return {
        "model_ms": {backend: round(value, 4) for backend, value in ms.items()},
        "model": {backend: round(ms["serial"] / value, 3) for backend, value in ms.items()},
    }


def again(path: Path, traces: Path) -> dict[str, Any]:
    """The document of a run with the model's figures made anew, from the traces it kept."""
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found = document["costs"]
        costs = Costs(**{**found, "scheduler": SchedulerCosts(**found["scheduler"])})
        rows = document["rows"]
        taken = {name: Taken(**row["taken"]) for name, row in rows.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path.name}: not what this version measures: {error!r}") from error
    for name, row in rows.items():
        row.update(modelled(load(traces / f"{name}.jsonl"), costs, taken[name]))
    document["errors"] = errors(rows)
    return document


def predicted(trace: Trace, where: Machine, backend: str, shared: int) -> float:
    """Milliseconds. `shared`: how many cores run both the kernels and the program; 0: none do."""
    outcome = simulate(POLICIES[backend], trace, where)
    ns = outcome.makespan_ns
    if shared:
        needs = Needs(where.gpu)
        work = sum(
            needs.need(entry).ns * entry.groups if entry.kind == KERNEL else entry.total_ns
            for entry in trace.entries
        )
        busy = ("launch", "event", "record", "epoch", "program")
        host = sum(outcome.overheads_ns.get(name, 0) for name in busy)
        ns = max(ns, (work + host) // shared)
    return ns / 1e6


def bare(trace: Trace, empty_ns: int) -> Trace:
    """Without what a queue puts around each kernel."""
    entries = [
        entry._replace(total_ns=max(1, entry.total_ns - empty_ns)) if entry.groups else entry
        for entry in trace.entries
    ]
    return trace._replace(entries=entries)
