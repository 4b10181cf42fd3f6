"""Compare the paper's table with ours: its twelve workloads on its device, both simulated.

    python -m acs_cl.benchmarks paper      # run all of it, write the JSON
    python -m acs_cl.benchmarks report     # write the tables

Input: traces of `dry.traced` at preset `paper`, the machine `paper`, the values of `published`.
Output: `results/emulator.json`, from which `report` makes `docs/measurements/emulator.md`.

A variant of the machine changes one constant for all workloads alike. If a figure differs from the
published one, the variants tell which change brings it near.

Invariant: nothing is set for one workload, and equal sources give equal bytes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from acs_cl.benchmarks.peers.published import ACS, COLUMNS, FAMILY, GRAPH, HW, SW, TWELVE
from acs_cl.benchmarks.suite.documents import write
from acs_cl.benchmarks.validation.dry import traced
from acs_cl.benchmarks.workloads import catalogue
from acs_cl.emu.cost import Costs
from acs_cl.emu.machines import machine
from acs_cl.emu.model import Outcome
from acs_cl.emu.policies import bounds, simulate
from acs_cl.emu.spec import Machine
from acs_cl.emu.trace import KERNEL, Trace, resolved

VERSION = 1
ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "results" / "emulator.json"

POLICIES = {SW: "acs_sw(N=32, threads=8)", HW: "acs_hw(N=32, M=32)"}
LAUNCH_CYCLES = 5_000


class Variant(NamedTuple):
    """What is changed, for all workloads alike."""

    axis: str
    label: str
    machine: Machine
    policies: Mapping[str, str] = POLICIES
    """By column; others stay as they are."""
    columns: Sequence[str] = COLUMNS
    """Those that it changes."""
    wider: int = 1
    """Kernels have so many times as many groups."""


def variants(base: Machine) -> list[Variant]:
    """Return all variants. Each axis also has the machine's own value."""
    found = []

    def host(axis: str, key: str, values: Sequence[int], columns: Sequence[str] = COLUMNS) -> None:
        for value in values:
            change: dict[str, Any] = {key: value}
            where = base._replace(host=base.host._replace(**change))
            found.append(Variant(axis, f"{value / 1000:g} us", where, columns=columns))

    def policy(axis: str, column: str, texts: Mapping[str, str]) -> None:
        for label, text in texts.items():
            changed = {**POLICIES, column: text}
            found.append(Variant(axis, label, base, changed, (column,)))

    host("launch", "launch_ns", (500, 1_000, 3_000, 6_000))
    host("synchronisation", "sync_ns", (1_000, 3_000, 7_000, 15_000))
    for times in (1, 2, 3, 4, 6, 8, 16):
        found.append(Variant("device slower", f"{times} x", slower(base, times)))
    for times in (4, 16):
        quick = base._replace(host=base.host._replace(launch_ns=500))
        found.append(Variant("slower, launch 0.5 us", f"{times} x", slower(quick, times)))
    for times in (1, 2, 4, 8, 16):
        found.append(Variant("kernels wider", f"{times} x", base, wider=times))
    for times in (1, 2, 4, 8, 16):
        axis = "launches of Accel-Sim, kernels wider"
        found.append(Variant(axis, f"{times} x", simulated_launches(base), wider=times))
    nodes = (500, base.host.build_node_ns, 3_000, 4_000, 7_000, 13_000)
    host("a node built", "build_node_ns", nodes, (GRAPH,))
    counts = (4, 8, 16, 32, 64)
    policy("N", SW, {f"{n}": f"acs_sw(N={n}, threads=8)" for n in counts})
    policy("N", HW, {f"{n}": f"acs_hw(N={n}, M=32)" for n in counts})
    policy("N = M", HW, {f"{n}": f"acs_hw(N={n}, M={n})" for n in counts})
    policy("M", HW, {f"{m}": f"acs_hw(N=32, M={m})" for m in (8, 16, 32, 64, 128)})
    for n in counts:
        texts = {SW: f"acs_sw(N={n}, threads=8)", HW: f"acs_hw(N={n}, M={n})"}
        found.append(Variant("N = M, slower 4 x", f"{n}", slower(base, 4), texts, (SW, HW)))
    policy("threads", SW, {f"{n}": f"acs_sw(N=32, threads={n})" for n in (1, 2, 4, 8, 16, 32)})
    return found


def slower(base: Machine, times: int) -> Machine:
    """Slow everything down that the device does. Kernels take so many times as long."""
    gpu = base.gpu
    return base._replace(
        gpu=gpu._replace(clock_mhz=gpu.clock_mhz // times, bytes_per_ns=gpu.bytes_per_ns // times)
    )


def simulated_launches(base: Machine) -> Machine:
    """Launch as in Accel-Sim, which simulates the paper's device. The host takes no time for a
    launch, and each kernel begins so many cycles after it may. Several kernels wait beside each
    other (`-gpgpu_kernel_launch_latency` in its configuration SM86_RTX3070, counted down for all
    kernels at once in `decrement_kernel_latency`). The host's times of the two policies in
    software, for synchronisation and for building graphs, stay as they are."""
    host = base.host._replace(launch_ns=0, latency_ns=0, edge_ns=0, graph_edge_ns=0)
    return base._replace(host=host, gpu=base.gpu._replace(begin_cycles=LAUNCH_CYCLES))


def widened(trace: Trace, times: int) -> Trace:
    """Give every kernel so many times as many groups of the same kind."""
    if times == 1:
        return trace
    entries = [
        entry._replace(groups=entry.groups * times) if entry.kind == KERNEL else entry
        for entry in trace.entries
    ]
    return trace._replace(entries=entries)


# ---- runs ----------------------------------------------------------------------------------------


def measure(names: Sequence[str], say: Callable[[str], None]) -> dict[str, Any]:
    """Simulate all workloads, which takes some minutes; return the document."""
    base = machine("paper")
    there = catalogue()
    traces: dict[str, Trace] = {}
    for name in names:
        say(f"{name}: trace")
        traces[name] = resolved(traced(there[name], "paper"))
    found = {name: one(name, traces[name], base) for name in names}
    swept: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    full: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for variant in variants(base):
        say(f"{variant.axis}, {variant.label}")
        for name, trace in traces.items():
            figures, fullness = speedups(name, trace, variant)
            at = swept.setdefault(variant.axis, {}).setdefault(variant.label, {})
            at.setdefault(name, {}).update(figures)
            at = full.setdefault(variant.axis, {}).setdefault(variant.label, {})
            at.setdefault(name, {}).update(fullness)
    return {
        "acs_cl_emulated": VERSION,
        "simulated": True,
        "clock": "model",
        "machine": base.name,
        "gpu": base.gpu._asdict(),
        "host": base.host._asdict(),
        "preset": "paper",
        "seed": 0,
        "workloads": found,
        "real_card": {
            name: speedups(name, traces[name], Variant("", "", machine("paper-3060")))[0]
            for name in names
            if FAMILY[name] == "rigid"
        },
        "sweeps": swept,
        "occupancy": {axis: found for axis, found in full.items() if "wider" in axis},
    }


def one(name: str, trace: Trace, base: Machine) -> dict[str, Any]:
    """Simulate a workload on the machine as it is."""
    kernels = [entry for entry in trace.entries if entry.kind == KERNEL]
    costs = Costs(base.gpu)
    alone = [costs.alone_ns(entry) for entry in kernels]
    texts = {"serial": "serial", **POLICIES}
    texts |= {"graph built": "cuda_graph", "graph replayed": "cuda_replay", "ideal": "ideal"}
    outcomes = {column: simulate(text, trace, base) for column, text in texts.items()}
    serial = outcomes["serial"].makespan_ns
    return {
        "family": FAMILY[name],
        "launches": len(trace.entries),
        "waits": sum(bool(entry.waits) for entry in trace.entries),
        "median_groups": median(entry.groups for entry in kernels),
        "at_most_9_groups": round(sum(one.groups <= 9 for one in kernels) / len(kernels), 3),
        "median_kernel_ns": median(alone),
        "mean_kernel_ns": round(sum(alone) / len(alone)),
        "bounds_ns": bounds(trace, base),
        "runs": {column: _plain(outcome, serial) for column, outcome in outcomes.items()},
        "published": ACS[name],
    }


def _plain(outcome: Outcome, serial_ns: int) -> dict[str, Any]:
    return {
        "policy": outcome.policy,
        "makespan_ns": outcome.makespan_ns,
        "speedup": round(serial_ns / outcome.makespan_ns, 3),
        "achieved_occupancy": round(outcome.achieved_occupancy, 4),
        "kernels_in_flight": round(outcome.kernels_in_flight, 2),
        "window_slots": round(outcome.window_slots, 1),
        "overheads_ns": outcome.overheads_ns,
    }


def graph_of(name: str) -> str:
    """Return the policy of the graph, as in the paper: built for every input if that decides on it,
    else there already."""
    return "cuda_replay" if FAMILY[name] == "static" else "cuda_graph"


def speedups(
    name: str, trace: Trace, variant: Variant
) -> tuple[dict[str, float], dict[str, float]]:
    """Return speed-ups over the serial stream of the same machine, and achieved occupancy of each,
    including the stream."""
    trace = widened(trace, variant.wider)
    serial = simulate("serial", trace, variant.machine)
    texts = {**variant.policies, GRAPH: graph_of(name)}
    outcomes = {
        column: simulate(texts[column], trace, variant.machine) for column in variant.columns
    }
    over = {
        column: round(serial.makespan_ns / outcome.makespan_ns, 3)
        for column, outcome in outcomes.items()
    }
    fullness = {
        column: round(outcome.achieved_occupancy, 4)
        for column, outcome in {"serial": serial, **outcomes}.items()
    }
    return over, fullness


# ---- the command ---------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    argparse.ArgumentParser(
        prog="benchmarks paper", description="Simulate; `report` makes the tables."
    ).parse_args(argv)
    document = measure(TWELVE, lambda text: print(text, file=sys.stderr))
    write(RESULT, document)
    return 0
