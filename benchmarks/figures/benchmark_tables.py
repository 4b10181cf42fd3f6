"""The table of all figures of `run.py`, beside their bars.

Input: committed documents. Output: Markdown, a section for each benchmark and a column for each
device.

A bar must not depend on the day of the measurement. So the function `bars` of each benchmark judges
the results again. A bar without a measurement says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from acs_cl.benchmarks.figures.markdown import table
from acs_cl.benchmarks.suite import documents
from acs_cl.benchmarks.suite.documents import Document, ResultError, number
from acs_cl.benchmarks.suite.run import BENCHMARKS, module_of

NOT_MEASURED = "not measured"


class Column(NamedTuple):
    """One benchmark on one device."""

    machine: Mapping[str, Any]
    run: documents.Run
    rows: list[dict[str, Any]]


def figures(results: Path) -> str:
    """Return the tables of all benchmarks."""
    found = documents.of_kind(results, documents.FIGURES)
    machines = {documents.where(one["machine"]): one["machine"] for one in found.values()}
    lines = [f"- {documents.described(machine)}" for machine in machines.values()]
    for name, about in BENCHMARKS.items():
        columns = of_benchmark(found, name)
        if columns:
            lines += ["", f"### {about[0].upper()}{about[1:]}", "", *_table(columns)]
    return "\n".join(lines)


def one(results: Path, name: str) -> str:
    """Return the table of one benchmark."""
    columns = of_benchmark(documents.of_kind(results, documents.FIGURES), name)
    return "\n".join(_table(columns))


def of_benchmark(found: Mapping[str, Document], name: str) -> list[Column]:
    """Return one benchmark on each device; two results of one device are an error."""
    columns: dict[tuple[str, str], Column] = {}
    for file, document in found.items():
        if name in document["benchmarks"]:
            key = documents.where(document["machine"])
            if key in columns:
                raise ResultError(f"{file}: {name} on {key[0]} is in another file, too: merge them")
            result = document["benchmarks"][name]
            run = documents.run_of(document, result)
            columns[key] = Column(document["machine"], run, rows_of(document, name))
    return list(columns.values())


def rows_of(document: Document, name: str) -> list[dict[str, Any]]:
    """Return the figures of a benchmark with their present bars."""
    result = document["benchmarks"][name]
    rows: list[dict[str, Any]] = module_of(name).bars(result, document["machine"])
    return rows


def _table(columns: list[Column]) -> list[str]:
    heads = [documents.short_name(column.machine) for column in columns]
    cells: dict[str, dict[int, str]] = {}
    for place, column in enumerate(columns):
        for row in column.rows:
            cells.setdefault(_what(row), {})[place] = cell(row)
    rows = [
        [what, *(found.get(at, "") for at in range(len(columns)))] for what, found in cells.items()
    ]
    runs = [f"{head}: {column.run}.  " for head, column in zip(heads, columns, strict=True)]
    return [table(["figure, and what it has to be", *heads], rows), "", *runs]


def _what(row: Mapping[str, Any]) -> str:
    if row["limit"] is None:
        return str(row["what"])
    return f"{row['what']}: {row['sense']} {_amount(row['limit'], row['unit'])}"


def cell(row: Mapping[str, Any]) -> str:
    """Return the figure, and whether it missed its bar."""
    if row["value"] is None:
        return NOT_MEASURED
    text = _amount(row["value"], row["unit"])
    return text if row["met"] else f"**{text}** (missed)"


def _amount(value: float | str, unit: str) -> str:
    text = value if isinstance(value, str) else number(value)
    return f"{text}{unit}" if unit in ("", "x") else f"{text} {unit}"
