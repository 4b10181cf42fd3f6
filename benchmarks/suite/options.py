"""Options that commands for measuring workloads share, and their plan.

They are in one table, so an option has the same name and meaning in every command.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import inf
from typing import Any

from acs_cl import UsageError, devices
from acs_cl.benchmarks.suite.contestants import SERIAL, Plan
from acs_cl.benchmarks.suite.settings import host_backends
from acs_cl.benchmarks.workloads.workload import PRESETS, Workload

LEAST_RUNS = 7

OPTIONS: dict[str, dict[str, Any]] = {
    "workloads": {"nargs": "*", "metavar": "WORKLOAD", "help": "names or families (all)"},
    "--preset": {"choices": PRESETS, "help": "how large"},
    "--backend": {"action": "append", "metavar": "NAME", "help": "may be given several times"},
    "--device": {"metavar": "SPEC", "help": "index, or a part of 'platform name / device name'"},
    "--runs": {"type": int, "metavar": "N", "help": f"runs of each ({LEAST_RUNS}, the least)"},
    "--seed": {"type": int, "help": "of inputs and weights (0)"},
    "--within": {"type": float, "metavar": "S", "help": "seconds: leave out what would end later"},
    "--quick": {"action": "store_true", "help": "few samples: a look, not a figure"},
    "--json": {"metavar": "FILE", "help": "write everything measured there"},
}


def add_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add these of `OPTIONS`."""
    for name in names:
        parser.add_argument(name, **OPTIONS[name])


def plan_of(
    args: argparse.Namespace,
    workloads: Sequence[Workload],
    preset: str,
    backends: Sequence[str] = (),
) -> Plan:
    """Make the plan that the options ask for.

    `preset` and `backends` are defaults; without backends all take part. Backend `serial` always
    does, because it may be the baseline.
    """
    device = devices.choose(args.device)
    there = [*host_backends(device), "device", "auto"]
    asked = args.backend or backends or there
    for name in asked:
        if name not in there:
            raise UsageError(f"no backend {name!r} on this device: {', '.join(there)}")
    runs = LEAST_RUNS if args.runs is None else args.runs
    if runs < LEAST_RUNS:
        raise UsageError(f"--runs {runs}: a median needs {LEAST_RUNS} at least")
    seed = getattr(args, "seed", None) or 0
    if seed < 0:
        raise UsageError(f"--seed {seed}: expected 0 or more")
    chosen = [name for name in there if name in asked or name == SERIAL]
    return Plan(device, workloads, args.preset or preset, chosen, runs, seed, within_s(args))


def within_s(args: argparse.Namespace) -> float:
    """Return the seconds that a measurement may take. Without the option there is no limit."""
    if args.within is not None and not args.within > 0:
        raise UsageError(f"--within {args.within:g}: expected seconds, more than 0")
    return inf if args.within is None else float(args.within)
