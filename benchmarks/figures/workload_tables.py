"""The tables of `acs-cl bench` for the documents: one for each committed result.

Input: documents as `contest.measure` makes them. Output: Markdown.
"""

from __future__ import annotations

from pathlib import Path

from acs_cl.benchmarks.figures import bench_tables, bench_targets
from acs_cl.benchmarks.suite import documents
from acs_cl.benchmarks.suite.documents import ResultError

SHOWN = ("serial", "out_of_order", "lanes", "device", "auto", "replay", "expert")
"""Contestants to show, if they were measured."""
WHY = "design/workloads.md#the-bound-and-where-it-is-not-reached"


def workloads(results: Path) -> str:
    """Return one section for each device."""
    parts: list[str] = []
    for name, document in documents.of_kind(results, documents.SUITE).items():
        wrong = bench_tables.failures(document)
        if wrong:
            raise ResultError(f"{name}: {wrong[0]}")
        there = bench_tables.contestants(document)
        shown = [contestant for contestant in SHOWN if contestant in there]
        parts += [f"### {documents.short_name(document['machine'])}"]
        parts += [bench_tables.overview(document, "github", shown)]
        parts += filter(None, [bench_targets.text(document, "github")])
        parts += [bench_tables.footer(document)]
    if parts:
        parts.append(f"Why workloads fall short is in [workloads]({WHY}).")
    return "\n\n".join(parts)
