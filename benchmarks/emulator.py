"""``acs-cl emu``: the emulator's own commands (`acs_cl.emu.cli`), and traces of the workloads.

Input: options. Output: that of the emulator's commands, and for ``dry`` a trace file for each
workload, made without a device.

Invariant: files are written only after every trace could be made.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from acs_cl import UsageError
from acs_cl.benchmarks.validation.dry import traced
from acs_cl.benchmarks.workloads import chosen
from acs_cl.benchmarks.workloads.workload import PRESETS
from acs_cl.emu import cli
from acs_cl.emu.trace import save


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    dry = cli.options(parser).add_parser(
        "dry", help="a trace of a step of the workloads of acs-cl bench, without a device"
    )
    add = dry.add_argument
    add("workloads", nargs="+", metavar="WORKLOAD", help="names or families, as acs-cl bench has")
    add("--preset", choices=PRESETS, default="paper", help="how large (paper)")
    add("--seed", type=int, default=0, help="of inputs and weights (0)")
    add(
        "--group-ns", type=int, default=0, metavar="NS",
        help="of a group of each kernel, for workloads whose kernels nobody has counted",
    )  # fmt: skip
    add("--out", metavar="PLACE", required=True, help="a file, or a folder for NAME.jsonl of each")


def main(args: argparse.Namespace) -> int:
    """Do what the options say; the exit code."""
    if args.what != "dry":
        return cli.main(args)
    if args.seed < 0 or args.group_ns < 0:
        raise UsageError(f"--seed and --group-ns are from 0, got {args.seed} and {args.group_ns}")
    wanted = chosen(args.workloads)
    place = Path(args.out)
    if len(wanted) > 1 and not place.is_dir():
        raise UsageError(f"{args.out}: {len(wanted)} traces need a folder that is there")
    if not place.resolve().parent.is_dir():
        raise UsageError(f"{args.out}: there is no such folder")
    traces = {
        workload.name: traced(workload, args.preset, args.seed, args.group_ns)
        for workload in wanted
    }
    for name, trace in traces.items():
        path = place / f"{name}.jsonl" if place.is_dir() else place
        save(trace, path)
        print(f"{path}: {len(trace.entries)} launches, {trace.name}")
    return 0
