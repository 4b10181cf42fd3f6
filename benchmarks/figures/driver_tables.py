"""The table of test results by driver.

Input: `results/drivers/`, as `make drivers` writes it, a file a driver. Output: Markdown: how many
tests of each suite ended how, of which commit, and the known limits of each driver with their
cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from acs_cl.benchmarks.figures.markdown import table
from acs_cl.benchmarks.suite import documents
from acs_cl.benchmarks.suite.documents import ResultError

KIND, VERSION = "acs_cl_drivers", 1
ENDS = {"passed": "passed", "limit": "of a known limit", "skipped": "skipped"}
FAULTS = ("failed", "crashed", "timed out")

Document = Mapping[str, Any]


def drivers(results: Path) -> str:
    """Return the whole table."""
    found = [_document(path) for path in sorted((results / "drivers").glob("*.json"))]
    suites = list(dict.fromkeys(suite for one in found for suite in one["suites"]))
    rows = [
        [
            f"{one['platform']}, {one['driver']}",
            f"{one['device']}, {one['units']} compute units",
            f"{one['date']}, {one['commit']}",
            *(_counts(one["suites"][name]) if name in one["suites"] else "" for name in suites),
        ]
        for one in found
    ]
    heads = ["driver", "device", "of", *suites]
    return "\n".join([table(heads, rows, "l" * len(heads)), "", *_limits(found)])


def _document(path: Path) -> Document:
    document: Document = documents.read(path)
    if document.get(KIND) != VERSION:
        raise ResultError(f"{path.name}: expected {KIND!r} of version {VERSION}")
    return document


def _counts(report: Mapping[str, Any]) -> str:
    """Return how many tests ended how; failures stand out."""
    right = [f"{report[how]:,} {word}" for how, word in ENDS.items() if how in report]
    wrong = [f"**{report[how]:,} {how}**" for how in FAULTS if how in report]
    return ", ".join([*right, *wrong, *([f"**{report['note']}**"] if "note" in report else [])])


def _limits(found: list[Document]) -> Iterator[str]:
    for one in found:
        for test, cause in one["limits"]:
            yield f"- {one['name']}, `{test}`: {cause}"
