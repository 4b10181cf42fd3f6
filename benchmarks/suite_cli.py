"""The options of ``acs-cl bench``, and what becomes of them.

In: a command line. Out: tables on stdout, progress on stderr, JSON and PNG files. The exit code is
1 if any result was wrong, or if something moved for the worse with `--compare`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any

from acs_cl import UsageError, devices
from acs_cl.benchmarks import (
    suite,
    suite_comparison,
    suite_documents,
    suite_plots,
    suite_tables,
    suite_targets,
)
from acs_cl.benchmarks.harness import OVERRIDES, Settings, host_backends
from acs_cl.benchmarks.workloads import catalogue
from acs_cl.benchmarks.workloads.workload import PRESETS, Workload

LEAST_RUNS = 7
BAR = 24
"""Signs of the bar that shows progress."""

WRITES = ("--json", "--export", "--plots")
TOGETHER = {
    "--list": (),
    "--collect": (),
    "--show": ("--plots", "--compare"),
    "--sweep": ("--device", "--within", *WRITES),
}
"""What changes the meaning of the command, and what else may be said with it."""


def options(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    add = parser.add_argument
    add("workloads", nargs="*", metavar="WORKLOAD", help="names or families; without any: all")
    add("--list", action="store_true", help="say which workloads there are")
    add("--preset", choices=PRESETS, help="how large (small)")
    add("--backend", action="append", metavar="NAME", help="may be given several times (all)")
    add("--device", metavar="SPEC", help="index, or a part of 'platform name / device name'")
    add("--runs", type=int, metavar="N", help=f"{LEAST_RUNS} at least, and unless said otherwise")
    add("--seed", type=int, help="of inputs and weights (0)")
    add("--within", type=float, metavar="S", help="seconds: leave out what would end later")
    add("--json", metavar="FILE", help="write everything measured there")
    add("--export", metavar="FILE", help="the same, for others to collect")
    add("--plots", metavar="FOLDER", help="draw PNG pictures there")
    add("--compare", metavar="OLD.json", help="say what moved beyond the spread")
    add("--collect", metavar="FOLDER", help="measure nothing: a table of the results in there")
    add("--show", metavar="FILE", help="measure nothing: tables of one result, or its pictures")
    add(
        "--sweep", action="append", choices=("window", "lanes", "length", "groups"), default=[],
        help="a synthetic graph over one of its numbers instead; may be given several times",
    )  # fmt: skip


def main(args: argparse.Namespace) -> int:
    """Do what the options say; the exit code."""
    _check_together(args)
    if args.list:
        return _list()
    if args.collect:
        print(suite_tables.collected(suite_documents.collected(Path(args.collect))))
        return 0
    _check_places(args)
    old = suite_documents.load(Path(args.compare)) if args.compare else None
    if args.show:
        document = suite_documents.load(Path(args.show))
        if old is not None:
            suite_documents.check_alike(
                old, document["preset"], document["seed"], list(document["workloads"])
            )
        return _told(document, old, args.plots)
    overridden = [name for name in OVERRIDES if os.environ.get(name)]
    if overridden:
        raise UsageError(f"unset {', '.join(overridden)}: the benchmarks choose for themselves")
    if args.sweep:
        return _sweep(args)
    plan = _plan(args)
    if old is not None:
        names = [workload.name for workload in plan.workloads]
        suite_documents.check_alike(old, plan.preset, plan.seed, names)
    return _told(_written(args, suite.growing(plan, say)), old, args.plots)


def _told(document: dict[str, Any], old: dict[str, Any] | None, plots: str | None) -> int:
    """All that there is to say of a document; the exit code."""
    code = _show(document)
    if plots:
        for path in suite_plots.draw(document, Path(plots)):
            print(path)
    if old is not None:
        print()
        print(suite_comparison.comparison(old, document))
        worse = {"slower", "fails"}
        code |= int(any(row[-1] in worse for row in suite_comparison.moved(old, document)))
    return code


def _check_together(args: argparse.Namespace) -> None:
    """Nothing that was said is passed over."""
    said = {
        "WORKLOAD": args.workloads, "--list": args.list, "--preset": args.preset,
        "--backend": args.backend, "--device": args.device, "--runs": args.runs is not None,
        "--seed": args.seed is not None, "--json": args.json, "--export": args.export,
        "--plots": args.plots, "--compare": args.compare, "--collect": args.collect,
        "--show": args.show, "--sweep": args.sweep, "--within": args.within is not None,
    }  # fmt: skip
    for first, may in TOGETHER.items():
        others = [name for name, value in said.items() if value and name not in (first, *may)]
        if said[first] and others:
            raise UsageError(f"{first} does not go with {', '.join(others)}")


def _check_places(args: argparse.Namespace) -> None:
    """All that will be written can be, as far as one can tell beforehand."""
    for target in filter(None, (args.json, args.export)):
        path = Path(target).resolve()
        if not path.parent.is_dir():
            raise UsageError(f"{target}: there is no such folder")
        if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            raise UsageError(f"{target}: expected a file that can be written")
    if args.plots:
        suite_plots.check()
        try:
            Path(args.plots).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--plots {args.plots}: expected a folder: {error.strerror}") from None


def _written(args: argparse.Namespace, growing: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The last of these documents. Each is written as soon as it is there."""
    for document in growing:
        for target in filter(None, (args.json, args.export)):
            Path(target).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    say("", 1.0)
    return document


def chosen(names: Sequence[str]) -> list[Workload]:
    """Workloads by name or family, in the order of the catalogue."""
    there = catalogue()
    families = {workload.family for workload in there.values()}
    wrong = [name for name in names if name not in there and name not in families]
    if wrong:
        raise UsageError(
            f"no workload or family is called {wrong[0]!r}; there are the families "
            f"{', '.join(sorted(families))} and the workloads {', '.join(there)}"
        )
    return [
        workload
        for name, workload in there.items()
        if not names or name in names or workload.family in names
    ]


def _plan(args: argparse.Namespace) -> suite.Plan:
    device = devices.choose(args.device)
    there = [*host_backends(device), "device", "auto"]
    asked = args.backend or there
    for name in asked:
        if name not in there:
            raise UsageError(f"no backend {name!r} on this device: {', '.join(there)}")
    runs, seed = args.runs if args.runs is not None else LEAST_RUNS, args.seed or 0
    if runs < LEAST_RUNS:
        raise UsageError(f"--runs {runs}: a median needs {LEAST_RUNS} at least")
    if seed < 0:
        raise UsageError(f"--seed {seed}: expected 0 or more")
    backends = [name for name in there if name in asked or name == suite.SERIAL]
    preset = args.preset or "small"
    return suite.Plan(device, chosen(args.workloads), preset, backends, runs, seed, _within_s(args))


def _within_s(args: argparse.Namespace) -> float:
    if args.within is not None and not args.within > 0:
        raise UsageError(f"--within {args.within:g}: expected seconds, more than 0")
    return inf if args.within is None else float(args.within)


def _show(document: dict[str, Any]) -> int:
    parts = (
        suite_tables.contenders(document),
        suite_tables.details(document),
        suite_tables.overview(document),
        suite_targets.text(document),
        suite_tables.footer(document),
    )
    for part in filter(None, parts):
        print(f"{part}\n")
    wrong = suite_tables.failures(document)
    for line in wrong:
        print(f"FAILED {line}")
    return int(bool(wrong))


def _sweep(args: argparse.Namespace) -> int:
    sweeps, sweep_plots = (
        import_module(f"acs_cl.benchmarks.{name}") for name in ("sweeps", "sweep_plots")
    )
    settings = Settings(devices.choose(args.device))
    found = _written(args, sweeps.growing(settings, args.sweep, False, say, _within_s(args)))
    print(sweeps.text(found))
    if args.plots:
        for path in sweep_plots.draw(found, Path(args.plots)):
            print(path)
    return 0


def _list() -> int:
    rows = [[one.name, one.family, one.about] for one in catalogue().values()]
    print(suite_tables.table(rows, ["workload", "family", "what"]))
    return 0


def say(text: str, share: float) -> None:
    """Progress: a bar in one line of a terminal, gone with an empty text; else a line each."""
    if sys.stderr.isatty():
        done = int(share * BAR)
        line = f"[{'#' * done}{'.' * (BAR - done)}] {share:4.0%} {text}" if text else ""
        wide = shutil.get_terminal_size().columns - 1
        print(f"\r{line[:wide]:<{wide}}\r", end="", file=sys.stderr, flush=True)
    elif text:
        print(f"[{share:4.0%}] {text}", file=sys.stderr, flush=True)
