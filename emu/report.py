"""Reports of simulated runs: comparisons, sweeps, and their tables.

Input: a trace, a machine, and policies, or a policy with one number that varies. Output: records,
plain values for JSON, and text. Speedups are over the serial stream on the same machine.

Invariant: every run here says that it is simulated, of what trace, and on what machine. Times are
on the model's clock, and no measured time stands beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tabulate import tabulate

from acs_cl.emu.fields import MOST
from acs_cl.emu.model import Outcome
from acs_cl.emu.policies import ALL, POLICIES, bounds, parsed, simulate, whole
from acs_cl.emu.policies import MOST as MOST_OF_A_POLICY
from acs_cl.emu.spec import Machine, WindowSpec
from acs_cl.emu.trace import Trace, resolved
from acs_cl.emu.window_unit import Estimate
from acs_cl.errors import UsageError

VERSION = 1
SWEPT = {
    "units": "gpu",
    "latency_ns": "host", "launch_ns": "host", "sync_ns": "host", "build_node_ns": "host",
    "clock_mhz": "window",
    "record_ns": "scheduler", "epoch_ns": "scheduler", "wait_ns": "scheduler",
    "begin_ns": "scheduler", "queue_ns": "scheduler", "slower_few": "scheduler",
    "slower_full": "scheduler",
}  # fmt: skip
"""Numbers that a sweep can vary besides a policy's own, and the part of a machine that has each."""


class Comparison(NamedTuple):
    """Runs of one trace on one machine. The first is the serial stream."""

    trace: str
    machine: str
    complete: bool
    clock: str
    """The clock of the durations in the trace."""
    whole: tuple[str, int]
    """The unit of `occupied`, and how many the device has."""
    bounds_ns: dict[str, int]
    outcomes: tuple[Outcome, ...]


class Sweep(NamedTuple):
    """One policy at several values of one number."""

    trace: str
    machine: str
    policy: str
    axis: str
    values: tuple[int, ...]
    outcomes: tuple[Outcome, ...]
    serial: tuple[Outcome, ...]
    """The serial stream at the same values, which a machine's number changes, too."""


def compare(trace: Trace, machine: Machine, policies: Sequence[str] = ALL) -> Comparison:
    """Run a trace under policies, each once, and first under the serial stream.

    >>> from acs_cl.emu.generate import generate
    >>> from acs_cl.emu.machines import MACHINES
    >>> found = compare(generate("chains", 4, 4), MACHINES["paper"], ["ideal"])
    >>> [outcome.policy for outcome in found.outcomes]
    ['serial', 'ideal']
    """
    trace = resolved(trace)
    runs: list[tuple[str, dict[str, int]]] = []
    outcomes = []
    for text in ("serial", *policies):
        if whole(text) not in runs:
            runs.append(whole(text))
            outcomes.append(simulate(text, trace, machine))
    return Comparison(
        trace.name, machine.name, trace.complete, trace.clock, machine.gpu.whole,
        bounds(trace, machine), tuple(outcomes),
    )  # fmt: skip


def sweep(
    trace: Trace,
    machine: Machine,
    policy: str,
    axis: str,
    values: Sequence[int],
    say: Callable[[str, float], None] = lambda text, share: None,
) -> Sweep:
    """Run a trace under one policy with one number at several values. `say` gets the progress.
    After Ctrl-C the finished values remain."""
    trace = resolved(trace)
    outcomes: list[Outcome] = []
    serial: list[Outcome] = []
    try:
        for turn, value in enumerate(values):
            say(f"{axis}={value}", turn / len(values))
            here, text = _at(machine, policy, axis, value)
            outcome = simulate(text, trace, here)
            same = bool(serial) and here is machine
            beside = serial[0] if same else simulate("serial", trace, here)
            outcomes.append(outcome)
            serial.append(beside)
    except KeyboardInterrupt:
        if not outcomes:
            raise
    done = tuple(values[: len(outcomes)])
    return Sweep(trace.name, machine.name, policy, axis, done, tuple(outcomes), tuple(serial))


def _at(machine: Machine, policy: str, axis: str, value: int) -> tuple[Machine, str]:
    """Return the machine and the policy at a value of the axis."""
    name, given = parsed(policy)
    if axis in POLICIES[name].numbers:
        given[axis] = value
        return machine, f"{name}({', '.join(f'{key}={number}' for key, number in given.items())})"
    if axis not in SWEPT:
        known = ", ".join([*POLICIES[name].numbers, *SWEPT])
        raise UsageError(f"{policy} has no {axis!r}; vary {known}")
    least, most = (1, MOST_OF_A_POLICY) if axis == "units" else (0, MOST)
    if not least <= value <= most:
        raise UsageError(f"{axis} has to be from {least} to {most:,}, got {value}")
    part = getattr(machine, SWEPT[axis])._replace(**{axis: value})
    changed: dict[str, Any] = {SWEPT[axis]: part}
    return machine._replace(**changed), policy


# ---- text ----------------------------------------------------------------------------------------

LEGEND = """occupancy: threads in use over all; achieved: the same while a unit has something to do
in flight: kernels, while there is one; window: launches in it, or in the batch on the device"""


def comparison_text(found: Comparison) -> str:
    """Return tables of a comparison."""
    serial = found.outcomes[0]
    rows = [_row(outcome, serial, outcome.policy) for outcome in found.outcomes]
    least = max(found.bounds_ns.values())
    for name, ns in found.bounds_ns.items():
        rows.append([f"bound: {name}", _ms(ns), _over(serial.makespan_ns, ns)])
    lines = [_title(found.trace, found.machine), "", _table(rows), "", LEGEND, ""]
    lines.append("Host threads and window unit, ms (simulated):")
    lines += ["", _overheads(found.outcomes), ""]
    lines.append(f"No run on this device can be shorter than {_ms(least)} ms.")
    if not found.complete:
        lines.append(
            "Edges are known to be missing in this trace: real runs have more to wait for."
        )
    if found.clock != "model":
        lines.append("Kernels are taken to last as long here as where the trace was measured.")
    return "\n".join(lines)


def sweep_text(found: Sweep) -> str:
    """Return the table of a sweep."""
    rows = [
        _row(outcome, serial, value)
        for value, outcome, serial in zip(found.values, found.outcomes, found.serial, strict=True)
    ]
    title = _title(found.trace, found.machine)
    return f"{title}\n{found.policy}, by {found.axis}\n\n{_table(rows, found.axis)}\n\n{LEGEND}"


def _title(trace: str, machine: str) -> str:
    return f"Simulated (model clock): {trace}, on machine {machine!r}"


def _row(outcome: Outcome, serial: Outcome, label: object) -> list[object]:
    return [
        label,
        _ms(outcome.makespan_ns),
        _over(serial.makespan_ns, outcome.makespan_ns),
        f"{outcome.achieved_occupancy:.0%}",
        f"{outcome.occupancy:.0%}",
        f"{outcome.units_busy:.0%}",
        f"{outcome.kernels_in_flight:.1f}",
        f"{outcome.window_slots:.1f}" if outcome.window_slots else "",
    ]


def _table(rows: list[list[object]], first: str = "policy") -> str:
    heads = [first, "ms", "speedup", "achieved occupancy", "occupancy", "units busy", "in flight"]
    heads.append("window")
    right = ["right"] * (len(heads) - 1)
    return str(tabulate(rows, heads, disable_numparse=True, colalign=("left", *right)))


def _overheads(outcomes: Sequence[Outcome]) -> str:
    spent = [outcome.overheads_ns for outcome in outcomes]
    names = sorted({name for one in spent for name in one})
    if not names:
        return "none"
    rows = [
        [outcome.policy, *(_ms(ns) if (ns := one.get(name, 0)) else "" for name in names)]
        for outcome, one in zip(outcomes, spent, strict=True)
    ]
    right = ["right"] * len(names)
    heads = ["policy", *names]
    return str(tabulate(rows, heads, disable_numparse=True, colalign=("left", *right)))


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.3f}"


def _over(serial_ns: int, ns: int) -> str:
    return f"{serial_ns / ns:.2f}x" if ns else ""


def units_text(units: Sequence[tuple[WindowSpec, Estimate]]) -> str:
    """Return a table of window units of some sizes."""
    rows = [
        [
            *(f"{value}" for value in spec[:3]),
            f"{unit.slot_bits:,}",
            f"{unit.sram_bytes:,}",
            f"{unit.cells_um2:,}",
            f"{unit.comparators:,}",
            f"{unit.sent_bits:,}",
            f"{unit.insert_cycles} ({unit.insert_ns} ns)",
            f"{unit.update_cycles} ({unit.update_ns} ns)",
        ]
        for spec, unit in units
    ]
    heads = ["N", "M", "id bits", "slot bits", "SRAM bytes", "cells um2", "comparators"]
    heads += ["sent bits", "insert cycles", "update cycles"]
    table = tabulate(rows, heads, disable_numparse=True, stralign="right")
    clocks = ", ".join(sorted({f"{spec.clock_mhz:,} MHz" for spec, _ in units}))
    return (
        f"Estimated: window units at {clocks}\n\n{table}\n\nThe area is that of the memory's cells"
        " alone, so the least it can be; a launch is sent\nwith its id and up to M others."
    )


# ---- plain values --------------------------------------------------------------------------------


def plain(found: Comparison | Sweep) -> dict[str, Any]:
    """Return plain values for JSON: the same bytes for the same run."""
    document: dict[str, Any] = {"acs_cl_emu": VERSION, "simulated": True, "clock": "model"}
    for name, value in found._asdict().items():
        if name in ("outcomes", "serial"):
            document[name] = [_plain(outcome) for outcome in value]
        else:
            document[name] = list(value) if isinstance(value, tuple) else value
    return document


def plain_units(units: Sequence[tuple[WindowSpec, Estimate]]) -> dict[str, Any]:
    """Return plain values of window units."""
    found = [{**spec._asdict(), **unit._asdict()} for spec, unit in units]
    return {"acs_cl_emu": VERSION, "estimated": True, "units": found}


def _plain(outcome: Outcome) -> dict[str, Any]:
    values = outcome._asdict()
    del values["occupied"], values["window"]  # a thousand numbers each, for pictures
    return values
