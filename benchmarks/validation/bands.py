"""Simulate what bands would gain: launches in parts that are ordered by their own bytes.

    python -m acs_cl.benchmarks bands                  # all programs, write the JSON
    python -m acs_cl.benchmarks bands pair nasnet      # these, and print the table only

Input: steps of workloads, and the rows of launches that `run bands` measures, as traces with and
without bands. Output: `results/bands.json`, from which `report` makes `docs/measurements/bands.md`,
beside what was measured. Everything here is simulated, on the model's clock.

The policy `ideal` has no host and shows the gain of the device alone. `on_device` adds the measured
costs of our scheduler: a record for each band, and the hand-over between bands. So it shows whether
bands are worth that.

Invariant: with and without bands, a launch has the same groups, the same work, and edges by the
bytes that its body reaches.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from acs_cl import UsageError
from acs_cl.benchmarks.suite.documents import write
from acs_cl.benchmarks.suite.measures.bands import ITEMS, SOURCE, STEPS
from acs_cl.benchmarks.validation.dry import Dry, traced
from acs_cl.benchmarks.workloads import catalogue
from acs_cl.emu.machines import machine
from acs_cl.emu.policies import simulate
from acs_cl.emu.spec import Machine
from acs_cl.emu.trace import KERNEL, Trace

VERSION = 2
RESULT = Path(__file__).resolve().parents[1] / "results" / "bands.json"
POLICIES = ("ideal", "on_device")
BANDS = (1, 4, 16)
GROUP_NS = 20_000
"""How long a group of a workload takes if nobody has counted what the kernel does."""


class Measured(NamedTuple):
    """The launches of `run bands` on a machine: groups of each, and how long one group takes."""

    groups: int
    group_ns: int


MACHINES = {"h200-acs_cl": Measured(792, 1_190_000), "cpu2": Measured(3, 2_470_000)}
"""Times are those of one queue, where all groups of the H200 find room, and two of the CPU."""


def row_trace(steps: int, like: Measured, bands: int) -> Trace:
    """Make the trace of a row of launches, each of which needs the one before."""
    dry = Dry(group_ns=like.group_ns, bands=bands)
    work = dry.build(SOURCE).work
    size = (like.groups * ITEMS,)
    for x, y in pairwise([dry.empty(size) for _ in range(steps + 1)]):
        work(size, (ITEMS,), x, y, 1)
    return dry.trace(f"{steps} launches of {like.groups} groups")


def gains(make: Callable[[int], Trace], on: Machine, cuts: Sequence[int] = BANDS) -> dict[str, Any]:
    """Return the time of each cut by policy, and how many times as fast it is as whole launches."""
    runs: dict[str, Any] = {}
    whole: dict[str, int] = {}
    for bands in cuts:
        trace = make(bands)
        kernels = sum(one.kind == KERNEL for one in trace.entries)
        edges = sum(len(one.upstream) for one in trace.entries)
        run: dict[str, Any] = {"tasks": kernels, "edges": edges}
        for policy in POLICIES:
            took = simulate(policy, trace, on).makespan_ns
            whole.setdefault(policy, took)
            run[policy] = {"us": round(took / 1e3, 1), "gain": round(whole[policy] / took, 3)}
        runs[str(bands)] = run
    return runs


def rows(names: Sequence[str], on: Machine) -> dict[str, Any]:
    """Simulate rows of launches, cut into bands of one group if that gives few bands."""
    like = MACHINES[on.name]
    cuts = 1, min(like.groups, BANDS[-1])
    return {
        name: gains(lambda bands, name=name: row_trace(STEPS[name], like, bands), on, cuts)  # type: ignore[misc]
        for name in names
    }


def workloads(names: Sequence[str], on: Machine, preset: str) -> dict[str, Any]:
    """Simulate steps of workloads. If no trace can be made without a device, say why."""
    found: dict[str, Any] = {}
    there = catalogue()
    for name in names:
        try:
            found[name] = gains(
                lambda bands, name=name: traced(  # type: ignore[misc]
                    there[name],
                    preset,
                    group_ns=GROUP_NS,
                    bands=bands,
                    counted=bool(on.gpu.flops_per_cycle),  # else it has no roofline
                ),
                on,
            )
        except UsageError as error:
            found[name] = {"left out": str(error)}
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Simulate, print, and write the JSON where all were asked for."""
    there = [*STEPS, *catalogue()]
    parser = argparse.ArgumentParser(prog="python -m acs_cl.benchmarks bands", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(there)}")
    parser.add_argument("--preset", default="small", help="of the workloads")
    options = parser.parse_args(words)
    unknown = [name for name in options.names if name not in there]
    if unknown:
        parser.error(f"there is no {unknown[0]!r}; there are {', '.join(there)}")
    names = options.names or there
    document: dict[str, Any] = {
        "what": "bands, simulated", "version": VERSION, "preset": options.preset,
        "group_ns": GROUP_NS, "machines": {},
    }  # fmt: skip
    for name in MACHINES:
        on = machine(name)
        document["machines"][name] = {
            "rows": rows([one for one in names if one in STEPS], on),
            "workloads": workloads([one for one in names if one not in STEPS], on, options.preset),
        }
        for programs in document["machines"][name].values():
            for label, runs in programs.items():
                print(f"{name:12} {label:32} {line(runs)}", flush=True)
    if not options.names:
        write(RESULT, document)
    return 0


def line(runs: dict[str, Any]) -> str:
    """Write the gains of one program on one line."""
    if "left out" in runs:
        return f"left out: {runs['left out']}"
    return "  ".join(
        f"{policy}: " + " ".join(f"{cut}:{run[policy]['gain']:.2f}" for cut, run in runs.items())
        for policy in POLICIES
    )
