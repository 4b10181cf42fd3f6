"""The table of instructions that commands take on an `acs.Queue` in bypass.

Input: the JSON file of `make instructions` in a folder of results. Output: Markdown.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acs_cl.benchmarks.figures.markdown import table
from acs_cl.benchmarks.suite import documents

FILE = "instructions-pocl.json"
MOST = 1 / 0.95
"""A command takes at most so many times the instructions of the plain queue."""


def block(results: Path) -> str:
    """Return the table, and where it was measured."""
    document = documents.read(results / FILE)
    return f"{text(document)}\n\nPoCL: {document['date']}, commit {document['commit']}.  "


def text(document: Mapping[str, Any]) -> str:
    """Return the table."""
    heads = ["instructions of a command", "plain queue", "`acs.Queue`", "ratio"]
    return table(heads, [_row(name, one) for name, one in document["instructions"].items()])


def _row(name: str, one: Mapping[str, list[float]]) -> list[str]:
    ratio = min(one["acs"]) / min(one["plain"])
    told = f"{ratio:.2f}" if ratio <= MOST else f"**{ratio:.2f}** (more than {MOST:.2f})"
    return [name, _spread(one["plain"]), _spread(one["acs"]), told]


def _spread(counts: list[float]) -> str:
    return f"{min(counts):,.0f} (to {max(counts):,.0f})"
