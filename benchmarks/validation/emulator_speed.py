"""Measure how long a million launches take under each policy, and how much memory.

    python -m acs_cl.benchmarks emulator-speed --json benchmarks/results/emulator-speed.json
    python -m acs_cl.benchmarks emulator-speed acs_hw ideal --launches 100000
    python -m acs_cl.benchmarks emulator-speed --show benchmarks/results/emulator-speed.json

Input: policies, `bounds` for the bounds, or none for all. Output: seconds of processor and of clock
without the making of the trace, and the most memory of the process with it; as a table and JSON.

Each policy runs in a process of its own, one at a time. The graph is random layers, 1 to 64 wide,
of 1 to 64 groups with 2 to 20 us each. On a machine that others use, the processor's time is the
one that counts.

Invariant: the timed part is one call of `simulate` or `bounds`, and nothing is prepared for it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from tabulate import tabulate

from acs_cl import AcsError, UsageError
from acs_cl.benchmarks.suite import documents
from acs_cl.benchmarks.suite.machine import noise, processor
from acs_cl.benchmarks.suite.processes import fresh_python
from acs_cl.emu.generate import generate
from acs_cl.emu.machines import machine
from acs_cl.emu.policies import ALL, bounds, model, simulate
from acs_cl.emu.trace import Trace

VERSION = 1
LAUNCHES = 1_000_000
WIDTH = 64
BOUNDS = "bounds"
NAMES = (*ALL, BOUNDS)
MOST_S, MOST_MIB = 120, 2048


def one(policy: str, launches: int) -> dict[str, Any]:
    """Make a run in this process."""
    start = process_time()
    steps = -(-2 * launches // (WIDTH + 1))  # layers are (WIDTH + 1) / 2 wide on average
    trace = generate("layers", WIDTH, steps, seed=1)
    made_s = process_time() - start
    where = machine("paper")
    begun, start = perf_counter(), process_time()
    if policy == BOUNDS:
        engine_steps = 0
        bounds(trace, where)
    else:
        engine_steps = simulate(policy, trace, where).steps
    return {
        "launches": len(trace.entries),
        "steps": engine_steps,
        "processor_s": round(process_time() - start, 2),
        "clock_s": round(perf_counter() - begun, 2),
        "trace_s": round(made_s, 2),
        "most_mib": _most_mib(),
    }


def _most_mib() -> int:
    """Return the most memory that this process ever had. 0: the system does not count it."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // (1 << 20 if sys.platform == "darwin" else 1 << 10)


def measure(policies: Sequence[str], launches: int) -> dict[str, Any]:
    """Make each run in a fresh process."""
    unrest = [noise()["unrest"]]
    found: dict[str, Any] = {}
    for policy in policies:
        if policy != BOUNDS:
            model(policy, Trace("nothing", ()), machine("paper"))  # refuses what is none
        print(policy, file=sys.stderr)
        words = ["-m", "acs_cl.benchmarks", "emulator-speed", "--one", policy]
        text, _ = fresh_python([*words, "--launches", str(launches)])
        found[policy] = json.loads(text)
        unrest.append(noise()["unrest"])
    return {
        "acs_cl_emulator_speed": VERSION,
        "graph": f"layers, width {WIDTH}, seed 1",
        "machine": processor(),
        "unrest": max(unrest),
        "most_s": MOST_S,
        "most_mib": MOST_MIB,
        "runs": found,
    }


def table(document: dict[str, Any]) -> str:
    """Write the table in Markdown, and tell whether the targets are met."""
    rows = [
        [f"`{name}`", f"{run['launches']:,}", f"{run['processor_s']:.0f}", f"{run['clock_s']:.0f}",
         f"{run['most_mib']:,}"]
        for name, run in document["runs"].items()
    ]  # fmt: skip
    heads = ["policy", "launches", "s of processor", "s by the clock", "MiB at most"]
    right = ["right"] * (len(heads) - 1)
    text = str(
        tabulate(rows, heads, tablefmt="pipe", disable_numparse=True, colalign=("left", *right))
    )
    over = [
        name
        for name, run in document["runs"].items()
        if run["processor_s"] > document["most_s"] or run["most_mib"] > document["most_mib"]
    ]
    there = document["machine"]
    limits = f"at most {document['most_s']} s of processor and {document['most_mib']:,} MiB"
    met = f"MISSED by {', '.join(over)}" if over else "met"
    return (
        f"{text}\n\n{there['cpu']}, {there['cpus']} CPUs, Python {there['python']},"
        f" {there['date']}, commit {there['commit']}, load {there['load']}, machine noise"
        f" {document['unrest']:.0%}; {limits}: {met}"
    )


def block(results: Path) -> str:
    """Return the table of the committed result."""
    return table(documents.read(results / "emulator-speed.json"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(
        prog="benchmarks emulator-speed", description="How fast the emulator is."
    )
    add = parser.add_argument
    add("policies", nargs="*", metavar="POLICY", help=f"without any: all. {', '.join(NAMES)}")
    add("--launches", type=int, default=LAUNCHES, metavar="N", help=f"about so many ({LAUNCHES:,})")
    add("--json", metavar="FILE", help="write everything measured there")
    add("--show", metavar="FILE", help="measure nothing: the table of a result")
    add("--one", metavar="POLICY", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    try:
        if args.launches < 1:
            raise UsageError(f"--launches is at least 1, got {args.launches}")
        if args.one:
            print(json.dumps(one(args.one, args.launches)))
            return 0
        if args.show:
            document = documents.read(Path(args.show))
        else:
            document = measure(args.policies or NAMES, args.launches)
    except AcsError as error:
        print(f"emulator_speed: {error}", file=sys.stderr)
        return 1
    if args.json:
        documents.write(args.json, document)
    print(table(document))
    return 0
