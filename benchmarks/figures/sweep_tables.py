"""Show sweeps as tables: speed-ups over one number of a graph.

Input: documents of `suite.sweeps`. Output: text for a terminal, or Markdown.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acs_cl.benchmarks.figures.bench_tables import table
from acs_cl.benchmarks.suite import documents

UNITS = {"window": "launches", "lanes": "queues", "length": "us", "groups": "of a kernel"}


def sweeps_block(results: Path) -> str:
    """Return speed-ups over one number of a graph, for each device."""
    parts = []
    for path in sorted(results.glob("sweeps-*.json")):
        document = documents.read(path)
        there = document["machine"]
        environment = there.get("environment", {})
        with_ = "".join(f", {name}={value}" for name, value in sorted(environment.items()))
        parts += [f"### {documents.short_name(there)}{with_}", text(document, "github")]
        unrest = max(one["unrest"] for one in there["noise"])
        parts.append(f"{documents.Run(there['commit'], '', there['date'], unrest)}.")
    return "\n\n".join(parts)


def text(found: Mapping[str, Any], style: str = "simple") -> str:
    """Return a table for each sweep: a line for each value, a column for each contestant."""
    parts = []
    for parameter, by_value in grouped(found).items():
        names = list(dict.fromkeys(name for rows in by_value.values() for name in rows))
        lines = []
        for value, rows in by_value.items():
            cells = [_cell(rows.get(name)) for name in names]
            fastest = max(row.get("launches_per_s", 0.0) for row in rows.values())
            baseline = next(iter(rows.values()))["baseline"]
            lines.append([f"{value:,}", *cells, f"{fastest:,.0f}", baseline])
        head = [f"{parameter} ({UNITS[parameter]})", *names, "launches/s, best", "baseline"]
        parts.append(table(lines, head, style))
    if found.get("left_out"):
        parts.append(f"left out for want of time: {', '.join(found['left_out'])}")
    return "\n\n".join(parts)


def grouped(found: Mapping[str, Any]) -> dict[str, dict[int, dict[str, dict[str, Any]]]]:
    """Return rows by parameter, value and contestant."""
    by: dict[str, dict[int, dict[str, dict[str, Any]]]] = {}
    for row in found["rows"]:
        by.setdefault(row["parameter"], {}).setdefault(row["value"], {})[row["backend"]] = row
    return by


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    if "failed" in row:
        return "failed"
    low, high = row["quartiles"]
    return f"{row['speed_up']:.2f} ({low:.2f}..{high:.2f})"
