"""Model a workload that was run for real, by the emulator.

Input: the recorded trace of a step, the costs measured beside it (`costs`), and what the scheduler
on the device took of it. Output: milliseconds and speed-ups by backend. `again` makes them anew for
a run that is over, without its device.

A trace has the times of kernels by their profiles, and the program's own time as a timeline counts
it. Before a trace is modelled, profiles become times on the backend (`queued`, `bare`). The time of
the calls is taken out of the program's own time (`own`).

On a CPU device the program runs on the cores that run the kernels. The emulator has no such device.
So the modelled time is never less than all cores need for both.

Invariant: equal traces and costs give equal figures, and nothing else goes into them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from acs_cl import UsageError
from acs_cl.benchmarks.validation.costs import Costs, machine_of
from acs_cl.benchmarks.validation.host import LANES
from acs_cl.benchmarks.validation.samples import FEW
from acs_cl.emu.cost import Costs as Needs
from acs_cl.emu.policies import simulate
from acs_cl.emu.spec import Machine
from acs_cl.emu.trace import KERNEL, Entry, Trace, load

POLICIES = {"serial": "serial", "lanes": f"streams(S={LANES})", "device": "on_device"}
"""Of the model, by backend."""


VERSION = 2


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
    """Mark kernels that no scheduler with groups of `group` runs. They are in a scheduler with
    groups of their own size, or in none."""
    found = {(name, one["group"]) for one in taken.schedulers for name in one["kernels"]}
    entries = []
    for entry in trace.entries:
        if entry.kind == KERNEL and (entry.name, group) not in found:
            whole = (entry.name, entry.items) in found
            entry = entry._replace(whole_groups=int(whole), on_lane=int(not whole))
        entries.append(entry)
    return trace._replace(entries=entries)


def machine_for(trace: Trace, costs: Costs, backend: str, taken: Taken) -> Machine:
    """Return the machine as measured for a workload. The time between two kernels is the mean over
    the workload's kernels. Its scheduler has as many groups as the workload's own. On `device` a
    kernel of the queue is a whole epoch, which is longer than any kernel that was measured."""
    lengths = [one.total_ns for one in trace.entries if one.kind == KERNEL]
    if backend == "device":
        lengths = [sum(lengths)]
    edges = [max(0, costs.edge_ns(lasts_ns)) for lasts_ns in lengths]
    where = machine_of(costs, backend, round(fmean(edges)) if edges else 0)
    for one in taken.schedulers:
        if one["group"] == costs.scheduler.group and not where.scheduler.leaves:
            each = max(1, one["resident_groups"] // costs.units)
            return where._replace(scheduler=where.scheduler._replace(groups=each, launched=each))
    return where


def modelled(trace: Trace, costs: Costs, taken: Taken) -> dict[str, Any]:
    """Return what the model says of a row."""
    ms = {}
    for backend in POLICIES:
        known = own(trace, costs, backend)
        known = bare(known, costs.empty_ns) if backend == "device" else queued(known, costs)
        where = machine_for(trace, costs, backend, taken)
        ms[backend] = predicted(known, where, backend, costs.shared)
    return {
        "model_ms": {backend: round(value, 4) for backend, value in ms.items()},
        "model": {backend: round(ms["serial"] / value, 3) for backend, value in ms.items()},
    }


def known(row: Mapping[str, Any], costs: Costs) -> tuple[Costs, Taken]:
    """Return what the model needs of a row besides its trace."""
    return costs._replace(**row["host"]), Taken(**row["taken"])


def again(path: Path, traces: Path) -> dict[str, Any]:
    """Return the document of a run with new figures of the model, made from the traces it kept."""
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if document["acs_cl_validation"] != VERSION:
            raise ValueError(f"version {document['acs_cl_validation']}, not {VERSION}")
        costs = Costs.of(document["costs"])
        rows: Mapping[str, Any] = document["rows"]
        for row in rows.values():
            known(row, costs)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path.name}: not what this version measures: {error!r}") from error
    for name, row in rows.items():
        row.update(modelled(load(traces / f"{name}.jsonl"), *known(row, costs)))
    document["errors"] = errors(rows)
    return document


def predicted(trace: Trace, where: Machine, backend: str, shared: int) -> float:
    """Return milliseconds. `shared`: how many cores run both the kernels and the program; 0:
    none."""
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
    """Take the time that a queue adds out of each kernel."""
    entries = [
        entry._replace(total_ns=max(1, entry.total_ns - empty_ns)) if entry.groups else entry
        for entry in trace.entries
    ]
    return trace._replace(entries=entries)


def queued(trace: Trace, costs: Costs) -> Trace:
    """Take out of each kernel what its profile counts and a queue without profiles does not
    take."""
    entries = []
    for entry in trace.entries:
        if entry.kind == KERNEL:
            less = min(0, costs.edge_ns(entry.total_ns))
            entry = entry._replace(total_ns=max(1, entry.total_ns + less))
        entries.append(entry)
    return trace._replace(entries=entries)


def own(trace: Trace, costs: Costs, backend: str) -> Trace:
    """Take the beginnings of calls out of the program's own time. Add the time of arguments and of
    the beginning of a step. A time below that of a beginning makes up for longer ones, until the
    program waits. Otherwise noise would add time."""
    entries: list[Entry] = []
    left = 0
    for entry in trace.entries:
        left = min(0, left) if not entry.waits else 0
        if entry.host_ns:
            left += entry.host_ns - costs.own_ns
        more = costs.argument_ns[backend] * max(0, entry.segments - FEW)
        more += 0 if entries else costs.cold_ns[backend]
        entries.append(entry._replace(host_ns=max(0, left) + more))
    return trace._replace(entries=entries)


def off(row: Mapping[str, Any], backend: str) -> float:
    """Return the error of the model as a share: of the time on `serial`, else of the speed-up."""
    if backend == "serial":
        return float(row["model_ms"]["serial"] / row["real_ms"]["serial"]["median"] - 1)
    return float(row["model"][backend] / row["real"][backend] - 1)


def errors(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the median of the absolute errors, by backend and of all."""
    found = {
        backend: [abs(off(row, backend)) for row in rows.values()]
        for backend in ("serial", "lanes", "device")
    }
    found["all"] = [value for values in found.values() for value in values]
    return {name: round(median(values), 4) for name, values in found.items() if values}
