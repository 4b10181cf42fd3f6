"""From committed results to the figures in the README.

In: `benchmarks/results/*.json`, as `run.py --json` writes them. Out: a table between the marks
`<!-- figures -->` and `<!-- /figures -->` of the README; with `--check` nothing is written, and the
exit code is 1 if the README says something else than the results.

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

from acs_cl.benchmarks.run import VERSION

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
BEGIN, END = "<!-- figures -->", "<!-- /figures -->"


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


def render(documents: Sequence[dict[str, Any]]) -> str:
    """One table: a row for each figure, a column for each machine, then what the machines are.

    Several files of one machine, driver and day are one column.
    """
    columns: dict[tuple[str, ...], dict[str, str]] = {}
    machines: dict[tuple[str, ...], dict[str, Any]] = {}
    limits: dict[str, str] = {}
    for document in documents:
        there = document["machine"]
        key = (there["device"], there["driver"], str(there["compute_units"]), there["date"])
        machines.setdefault(key, there)
        column = columns.setdefault(key, {})
        for result in document["benchmarks"].values():
            for row in result["targets"]:
                what = f"{row['what']}: {row['sense']} {_number(row['limit'])}{_unit(row)}"
                limits.setdefault(what, row["what"])
                column[what] = _cell(row)
    heads = [_head(machine) for machine in machines.values()]
    lines = [
        f"| figure, and what it has to be | {' | '.join(heads)} |",
        f"| :-- |{' --: |' * len(heads)}",
    ]
    for what in limits:
        cells = [column.get(what, "") for column in columns.values()]
        lines.append(f"| {what} | {' | '.join(cells)} |")
    lines.append("")
    lines += [f"- {_described(machine)}" for machine in machines.values()]
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


def _described(machine: dict[str, Any]) -> str:
    commit = f", commit {machine['commit']}" if machine["commit"] else ""
    unrest = max(one["unrest"] for one in machine["noise"])
    return (
        f"{machine['device']}, driver {machine['driver']}, "
        f"{machine['compute_units']} compute units, {machine['cpus']} CPUs "
        f"({machine['cpu']}), {machine['date']}{commit}; "
        f"Python {machine['python']}, PyOpenCL {machine['pyopencl']}; "
        f"unrest of the machine meanwhile {unrest:.0%}"
    )


def updated(text: str, table: str) -> str:
    """The README with this table between its marks."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ReportError(f"the README needs {BEGIN} and, after it, {END}, once each")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/report.py", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--check", action="store_true", help="write nothing, only compare")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md", metavar="FILE")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    args = parser.parse_args(argv)
    try:
        text = args.readme.read_text(encoding="utf-8")
        new = updated(text, render(load(args.results)))
    except (ReportError, OSError) as error:
        print(f"report: {error}", file=sys.stderr)
        return 1
    if args.check:
        if new != text:
            print("report: the figures in the README are not those of the results", file=sys.stderr)
        return int(new != text)
    args.readme.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
