"""From committed results to the figures in the README and in docs/native.md.

In: `benchmarks/results/*.json`, as `run.py --json` and `acs-cl bench --json` write them. Out:
tables between marks of the README, `<!-- figures -->` to `<!-- /figures -->`, and `workloads`, and
in docs/native.md `figures` of the native core alone. With `--check` nothing is written, and the
exit code is 1 if one of the two says something else than the results.

Invariant: no figure in the table was typed by hand, each names device, driver and date, and what
missed its target says so.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acs_cl.benchmarks import suite, suite_tables, suite_targets
from acs_cl.benchmarks.run import VERSION

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
FIGURES, WORKLOADS = "figures", "workloads"
"""What the marks are called."""
WHY = "docs/workloads.md#the-bound-and-where-it-is-not-reached"

OF_THE_CORE = ("native", "queue", "taskbench", "overlap", "memory")
"""Benchmarks whose figures docs/native.md shows."""

NOT_IN_README = ("native", "checking")
"""Benchmarks of many figures, which docs/native.md and docs/checks.md show."""

SHOWN = ("serial", "out_of_order", "lanes", "device", "auto", "replay", "expert")
"""Contestants of the workloads that the README shows, where they were measured."""


class ReportError(Exception):
    """Results or a README that cannot be used, and why."""


def load(folder: Path) -> list[dict[str, Any]]:
    """The results in a folder, by file name."""
    documents = []
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict) or "acs_cl_benchmarks" not in document:
            continue  # results of other kinds may lie here too
        if document["acs_cl_benchmarks"] != VERSION:
            raise ReportError(f"{path.name}: version {document['acs_cl_benchmarks']} of the format")
        if document["quick"]:
            raise ReportError(f"{path.name}: a run with --quick is a look, not a figure")
        documents.append(document)
    if not documents:
        raise ReportError(f"there are no results in {folder.name}/")
    return documents


def render(documents: Sequence[dict[str, Any]], names: Sequence[str] | None = None) -> str:
    """One table: a row for each figure, a column for each machine, then what the machines are.
    `names`: of these benchmarks only.

    Several files of one machine, driver and day are one column.
    """
    columns: dict[tuple[str, ...], dict[str, str]] = {}
    machines: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    limits: dict[str, str] = {}
    for document in documents:
        results = [
            result
            for name, result in document["benchmarks"].items()
            if names is None or name in names
        ]
        if not results:
            continue
        there = document["machine"]
        key = (there["device"], there["driver"], str(there["compute_units"]), there["date"])
        machines.setdefault(key, []).append(there)
        column = columns.setdefault(key, {})
        for result in results:
            for row in result["targets"]:
                what = f"{row['what']}: {row['sense']} {_number(row['limit'])}{_unit(row)}"
                limits.setdefault(what, row["what"])
                column[what] = _cell(row)
    heads = [_head(runs[0]) for runs in machines.values()]
    lines = [
        f"| figure, and what it has to be | {' | '.join(heads)} |",
        f"| :-- |{' --: |' * len(heads)}",
    ]
    for what in limits:
        cells = [column.get(what, "") for column in columns.values()]
        lines.append(f"| {what} | {' | '.join(cells)} |")
    lines.append("")
    lines += [f"- {_described(runs)}" for runs in machines.values()]
    return "\n".join(lines)


def _cell(row: dict[str, Any]) -> str:
    text = f"{_number(row['value'])}{_unit(row)}"
    return text if row["met"] else f"**{text}** (missed)"


def _number(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.2f}"


def _unit(row: dict[str, Any]) -> str:
    if not row["unit"]:
        return ""
    return "x" if row["unit"] == "x" else f" {row['unit']}"


def _head(machine: dict[str, Any]) -> str:
    return str(machine["device"]).split(" / ")[-1]


def _described(runs: Sequence[dict[str, Any]]) -> str:
    """Of one machine on one day."""
    machine = runs[0]
    said = [one for run in runs for one in run["commit"].split(", ") if one]
    commits = list(dict.fromkeys(said))
    commit = f", commit {', '.join(commits)}" if commits else ""
    unrest = max(one["unrest"] for run in runs for one in run["noise"])
    return (
        f"{machine['device']}, driver {machine['driver']}, "
        f"{machine['compute_units']} compute units, {machine['cpus']} CPUs "
        f"({machine['cpu']}), {machine['date']}{commit}; "
        f"Python {machine['python']}, PyOpenCL {machine['pyopencl']}; "
        f"unrest of the machine meanwhile {unrest:.0%}"
    )


def workloads(folder: Path) -> str:
    """The tables of `acs-cl bench`, one for each result in a folder."""
    parts = []
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(document, dict) and document.get("acs_cl_bench") == suite.VERSION:
            wrong = suite_tables.failures(document)
            if wrong:
                raise ReportError(f"{path.name}: {wrong[0]}")
            there = suite_tables.contestants(document)
            shown = [name for name in SHOWN if name in there]
            parts += [suite_tables.overview(document, "github", shown), ""]
            if reached := suite_targets.text(document, "github"):
                parts += [reached, ""]
            parts += [suite_tables.footer(document), ""]
    if parts:
        parts.append(f"Why workloads fall short is in [docs/workloads.md]({WHY}).")
    return "\n".join(parts).strip()


def updated(text: str, table: str, name: str = FIGURES) -> str:
    """The page with this table between its marks."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ReportError(f"the page needs {begin} and, after it, {end}, once each")
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/report.py", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--check", action="store_true", help="write nothing, only compare")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md", metavar="FILE")
    parser.add_argument("--native", type=Path, metavar="FILE", help="docs/native.md by default")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    args = parser.parse_args(argv)
    native = args.native or args.readme.parent / "docs" / "native.md"
    try:
        documents = load(args.results)
        texts = {args.readme: args.readme.read_text(encoding="utf-8")}
        names = {name for document in documents for name in document["benchmarks"]}
        table = render(documents, sorted(names.difference(NOT_IN_README)))
        new = {args.readme: updated(texts[args.readme], table)}
        if table := workloads(args.results):
            new[args.readme] = updated(new[args.readme], table, WORKLOADS)
        if args.native or native.exists():
            texts[native] = native.read_text(encoding="utf-8")
            new[native] = updated(texts[native], render(documents, OF_THE_CORE))
    except (ReportError, OSError) as error:
        print(f"report: {error}", file=sys.stderr)
        return 1
    for path, text in new.items():
        if args.check and text != texts[path]:
            print(
                f"report: the figures in {path.name} are not those of the results", file=sys.stderr
            )
        elif not args.check:
            path.write_text(text, encoding="utf-8")
    return int(args.check and new != texts)


if __name__ == "__main__":
    raise SystemExit(main())
