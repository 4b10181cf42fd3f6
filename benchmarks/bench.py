"""Read the options of ``acs-cl bench``, and do what they ask for.

Input: a command line. Output: tables on stdout, progress on stderr, JSON and PNG files. The exit
code is 1 if any result was wrong, or if `--compare` finds something slower.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from acs_cl import UsageError, devices
from acs_cl.benchmarks.figures import (
    bench_changes,
    bench_plots,
    bench_tables,
    bench_targets,
    sweep_plots,
    sweep_tables,
)
from acs_cl.benchmarks.suite import bench_documents, contest, documents, sweeps
from acs_cl.benchmarks.suite.documents import Document, last_written
from acs_cl.benchmarks.suite.options import add_options, plan_of, within_s
from acs_cl.benchmarks.suite.progress import say
from acs_cl.benchmarks.suite.settings import Settings, refuse_overrides
from acs_cl.benchmarks.workloads import catalogue, chosen

WRITES = ("--json", "--plots")
TOGETHER = {
    "--list": (),
    "--collect": (),
    "--show": ("--plots", "--compare"),
    "--sweep": ("--device", "--within", *WRITES),
}
"""What changes the meaning of the command, and what else may be said with it."""

LEGEND = """speed-up: over the faster of bare and serial; quartiles: its spread
behind another: a step right behind one of another contestant, whose caches are cold
bare: PyOpenCL on one in-order queue; expert: PyOpenCL, with queues and events by hand
replay: recorded before; auto, later: auto when it knows which steps repeat
bound: what no schedule of these kernels can beat"""
"""What the names of contestants and columns mean."""


def options(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    names = [f"--{name}" for name in ("preset", "backend", "device", "runs", "seed", "within")]
    add_options(parser, "workloads", *names, "--json")
    add = parser.add_argument
    add("--list", action="store_true", help="say which workloads there are")
    add("--plots", metavar="FOLDER", help="draw PNG pictures there")
    add("--compare", metavar="OLD.json", help="say what moved beyond the spread")
    add("--collect", metavar="FOLDER", help="measure nothing: a table of the results in there")
    add("--show", metavar="FILE", help="measure nothing: tables of one result, or its pictures")
    add(
        "--sweep", action="append", choices=list(sweeps.VALUES), default=[],
        help="a synthetic graph over one of its numbers instead; may be given several times",
    )  # fmt: skip


def main(args: argparse.Namespace) -> int:
    """Do what the options say; the exit code."""
    _check_together(args)
    if args.list:
        return _list()
    if args.collect:
        print(bench_tables.collected(bench_documents.collected(Path(args.collect))))
        return 0
    _check_places(args)
    old = bench_documents.load(Path(args.compare)) if args.compare else None
    if args.show:
        document = bench_documents.load(Path(args.show))
        if old is not None:
            bench_documents.check_alike(
                old, document["preset"], document["seed"], list(document["workloads"])
            )
        return _told(document, old, args.plots)
    refuse_overrides()
    if args.sweep:
        return _sweep(args)
    plan = plan_of(args, chosen(args.workloads), "small")
    if old is not None:
        names = [workload.name for workload in plan.workloads]
        bench_documents.check_alike(old, plan.preset, plan.seed, names)
    return _told(_measured(args, contest.growing(plan, say)), old, args.plots)


def _told(document: dict[str, Any], old: dict[str, Any] | None, plots: str | None) -> int:
    """Print everything about a document; return the exit code."""
    code = documents.exit_code(document, _show(document))
    if plots:
        for path in bench_plots.draw(document, Path(plots)):
            print(path)
    if old is not None:
        print()
        print(bench_changes.comparison(old, document))
        worse = {"slower", "fails"}
        code = code or int(any(row[-1] in worse for row in bench_changes.moved(old, document)))
    return code


def _check_together(args: argparse.Namespace) -> None:
    """Refuse options that would be ignored."""
    said = {
        "WORKLOAD": args.workloads, "--list": args.list, "--preset": args.preset,
        "--backend": args.backend, "--device": args.device, "--runs": args.runs is not None,
        "--seed": args.seed is not None, "--json": args.json,
        "--plots": args.plots, "--compare": args.compare, "--collect": args.collect,
        "--show": args.show, "--sweep": args.sweep, "--within": args.within is not None,
    }  # fmt: skip
    for first, may in TOGETHER.items():
        others = [name for name, value in said.items() if value and name not in (first, *may)]
        if said[first] and others:
            raise UsageError(f"{first} does not go with {', '.join(others)}")


def _check_places(args: argparse.Namespace) -> None:
    """Check beforehand that everything can be written, as far as possible."""
    if args.json:
        path = Path(args.json).resolve()
        if not path.parent.is_dir():
            raise UsageError(f"{args.json}: there is no such folder")
        if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            raise UsageError(f"{args.json}: expected a file that can be written")
    if args.plots:
        bench_plots.check()
        try:
            Path(args.plots).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--plots {args.plots}: expected a folder: {error.strerror}") from None


def _show(document: dict[str, Any]) -> int:
    parts = (
        bench_tables.contenders(document),
        LEGEND,
        bench_tables.details(document),
        bench_tables.overview(document),
        bench_targets.text(document),
        bench_tables.footer(document),
        bench_tables.warning(document),
    )
    for part in filter(None, parts):
        print(f"{part}\n")
    wrong = bench_tables.failures(document)
    for line in wrong:
        print(f"FAILED {line}")
    return int(bool(wrong))


def _sweep(args: argparse.Namespace) -> int:
    settings = Settings(devices.choose(args.device))
    growing = sweeps.growing(settings, args.sweep, False, say, within_s(args))
    found = _measured(args, growing)
    print(sweep_tables.text(found))
    if args.plots:
        for path in sweep_plots.draw(found, Path(args.plots)):
            print(path)
    return documents.exit_code(found, 0)


def _measured(args: argparse.Namespace, growing: Iterable[Document]) -> Document:
    """Write each of these documents at once; return the last one."""
    try:
        return last_written(growing, args.json)
    finally:
        say("", 1.0)


def _list() -> int:
    rows = [[one.name, one.family, one.about] for one in catalogue().values()]
    print(bench_tables.table(rows, ["workload", "family", "what"]))
    return 0
