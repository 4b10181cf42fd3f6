"""Hold the emulator against a device: `python -m acs_cl.benchmarks validate --device NVIDIA`.

validate --json benchmarks/results/validation-pocl.json
validate --device NVIDIA --within 180       # seconds, at most
validate --device NVIDIA --quick            # a look, not a figure
validate --again FILE --traces FOLDER       # the model alone, of a run that is over
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from acs_cl import AcsError, UsageError, devices
from acs_cl.benchmarks.figures.validation_tables import render
from acs_cl.benchmarks.suite import documents
from acs_cl.benchmarks.suite.documents import Document
from acs_cl.benchmarks.suite.options import add_options, within_s
from acs_cl.benchmarks.validation import comparison
from acs_cl.benchmarks.validation.model import again
from acs_cl.benchmarks.validation.runs import Plan
from acs_cl.benchmarks.workloads import chosen

FEW = ("chains", "stencil", "layers", "ant", "squeezenet", "vec")
"""With `--quick`."""

RUNS, QUICK_RUNS = 9, 3
"""Real runs of each backend, unless the options say otherwise."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks validate", description="Real and modelled.")
    add_options(parser, "workloads", "--device", "--preset", "--within", "--quick", "--json")
    add = parser.add_argument
    add("--runs", type=int, default=RUNS, metavar="N", help="real runs of each backend")
    add("--traces", metavar="FOLDER", help="keep there what was recorded")
    add("--again", metavar="FILE", help="measure nothing: model what is in FILE and --traces again")
    args = parser.parse_args(argv)
    try:
        document = _again(args) if args.again else _measured(args)
    except AcsError as error:
        print(f"validate: {error}", file=sys.stderr)
        return 1
    if args.json:
        documents.write(args.json, document)
    print(render([document]))
    return 0


def _measured(args: argparse.Namespace) -> Document:
    start = perf_counter()
    workloads = chosen(args.workloads or (FEW if args.quick else ()))
    runs = min(args.runs, QUICK_RUNS) if args.quick else args.runs
    traces = Path(args.traces) if args.traces else None
    device = devices.choose(args.device)
    if traces is not None:
        traces.mkdir(parents=True, exist_ok=True)
    preset = args.preset or "small"
    plan = Plan(device, workloads, preset, runs, args.quick, within_s(args), traces)
    document = comparison.measure(plan, lambda text: print(text, file=sys.stderr))
    return document | {"took_s": round(perf_counter() - start, 1)}


def _again(args: argparse.Namespace) -> Document:
    if not args.traces:
        raise UsageError("--again needs --traces: where the traces of that run are")
    return again(Path(args.again), Path(args.traces))
