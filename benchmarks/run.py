"""The benchmarks' command: `python benchmarks/run.py overhead --json out.json`, or `all`.

In: which benchmark, on which device. Out: a table of what was measured beside what it has to reach
and, with `--json`, everything measured with the machine it was measured on. The exit code is 0 when
it ran: whether targets were met is for the reader, since a busy machine misses them too.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from acs_cl import AcsError, UsageError, devices
from acs_cl.benchmarks.documents import FIGURES, VERSION, Run, number
from acs_cl.benchmarks.harness import OVERRIDES, Settings
from acs_cl.benchmarks.machine import machine, noise

BENCHMARKS = {
    "overhead": "host cost of a launch, against a bare PyOpenCL call",
    "overlap": "independent chains on every backend, over serial",
    "enqueue": "a launch on the host backends, beside the same enqueue from C",
    "memory": "what piles up over a million launches",
    "latency": "one launch and a read-back of four bytes, against bare PyOpenCL",
    "scheduler": "graphs of small tasks on the device's own scheduler, beside CUDA Graphs",
    "taskbench": "patterns of Task Bench, end to end per task, beside CUDA",
    "reductions": "small elementwise kernels and sums in turns, on every backend",
    "builds": "launches beside builds of schedulers, and the first result of 100 kernels",
    "replay": "replays of recorded graphs, against bare PyOpenCL and launching anew",
    "native": "hazard checks, launches for the scheduler and on the host backends, from Python",
    "queue": "unmodified programs on acs.Queue, against their own in-order queue",
    "checking": "what checks cost, over the same program without",
    "startup": "time to the first result of a fresh process, against plain PyOpenCL",
}
MODULES = {"queue": "adoption"}
"""Those that are not called like their benchmark: a `queue.py` beside a script hides Python's."""


def module_of(name: str) -> str:
    """The module of this package that measures a benchmark."""
    return MODULES.get(name, name)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="benchmarks/run.py", description=__doc__.split("\n")[0])
    commands = top.add_subparsers(dest="benchmark", metavar="BENCHMARK", required=True)
    for name, text in [*BENCHMARKS.items(), ("all", "all of them")]:
        one = commands.add_parser(name, help=text, description=text)
        one.add_argument(
            "--device", metavar="SPEC", help="index, or a part of 'platform name / device name'"
        )
        one.add_argument("--json", metavar="FILE", help="write everything measured there")
        one.add_argument("--quick", action="store_true", help="few samples: a look, not a figure")
        if name in ("overlap", "all"):
            one.add_argument(
                "--kernel-us", type=float, metavar="US", help="length of the kernels of overlap"
            )
        if name in ("memory", "all"):
            one.add_argument(
                "--launches", type=int, metavar="N", help="launches of memory (1,000,000)"
            )
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    args = parser().parse_args(argv)
    try:
        document = measure(args)
    except AcsError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    if args.json:
        path = Path(args.json)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """The document of one run; the tables are printed as they come."""
    overridden = [name for name in OVERRIDES if os.environ.get(name)]
    if overridden:
        raise UsageError(f"unset {', '.join(overridden)}: the benchmarks choose for themselves")
    settings = Settings(
        devices.choose(args.device),
        args.quick,
        getattr(args, "kernel_us", None),
        getattr(args, "launches", None),
    )
    there = machine(settings.device)
    print(f"{there['device']}, driver {there['driver']}, {there['cpus']} CPUs ({there['cpu']})")
    names = list(BENCHMARKS) if args.benchmark == "all" else [args.benchmark]
    results: dict[str, Any] = {}
    unrest = [noise()]
    for name in names:
        start = perf_counter()
        module = importlib.import_module(f"acs_cl.benchmarks.{module_of(name)}")
        results[name] = module.measure(settings)
        if hasattr(module, "bars"):
            results[name]["targets"] = module.bars(results[name], there)
        results[name]["took_s"] = round(perf_counter() - start, 1)
        unrest.append(noise())
        around = max(one["unrest"] for one in unrest[-2:])
        run = Run(there["commit"], there["sources"], there["date"], around)
        results[name]["run"] = run._asdict()
        _print(name, results[name])
    there["noise"] = unrest
    print(f"\nunrest of the machine: {max(one['unrest'] for one in unrest):.0%} (quiet: below 5%)")
    return {
        FIGURES: VERSION,
        "quick": settings.quick,
        "machine": there,
        "benchmarks": results,
    }


def _print(name: str, result: dict[str, Any]) -> None:
    print(f"\n{name}, {result['took_s']} s")
    for row in result["targets"]:
        where = f" ({row['where']})" if "where" in row else ""
        around = ""
        if row["quartiles"] is not None:
            low, high = row["quartiles"]
            around = f"  quartiles {low:.2f} .. {high:.2f}"
        value = number(row["value"]) if isinstance(row["value"], (int, float)) else row["value"]
        said, judged = f" ({row['sense']} {row['limit']})", "met" if row["met"] else "MISSED"
        if row["limit"] is None:
            said = judged = ""
        print(f"  {judged:6} {row['what']}{where}: {value} {row['unit']}{said}{around}")


if __name__ == "__main__":
    raise SystemExit(main())
