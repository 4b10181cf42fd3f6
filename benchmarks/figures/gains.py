"""The few figures of README: where a program gains, and where it loses.

Input: a folder of results. Output: one small table, a column for each device. Every figure is also
in docs/measurements.md; a cell is empty if a device has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from acs_cl.benchmarks.figures import bench_tables
from acs_cl.benchmarks.figures.markdown import table
from acs_cl.benchmarks.peers.published import TWELVE
from acs_cl.benchmarks.suite import documents

Parts = Mapping[str, Any]
"""Benchmarks by name, and `workloads`: the document of these."""

CHAINS = 1
"""Among the graphs of `scheduler`: 64 chains of 64."""


def gains(results: Path) -> str:
    """Return the table."""
    columns: dict[tuple[str, str], dict[str, Any]] = {}
    heads: dict[tuple[str, str], str] = {}
    for document in documents.of_kind(results, documents.FIGURES).values():
        key = documents.where(document["machine"])
        heads[key] = documents.short_name(document["machine"])
        columns.setdefault(key, {}).update(document["benchmarks"])
    for document in documents.of_kind(results, documents.SUITE).values():
        key = documents.where(document["machine"])
        if key in columns:
            columns[key]["workloads"] = document
    rows = [
        [what, *(_found(find, parts) for parts in columns.values())] for what, find in ROWS.items()
    ]
    return table(["", *heads.values()], rows)


def _found(find: Callable[[Parts], float | None], parts: Parts) -> str:
    try:
        value = find(parts)
    except KeyError:  # it was not measured there
        return ""
    return "" if value is None else f"{documents.number(value)}x"


def _queue(program: str) -> Callable[[Parts], float]:
    """Return a function that finds the speed of a program of `queue` on ours."""
    return lambda parts: float(parts["queue"]["rows"][program]["ratio"]["median"])


def _mean(name: str) -> Callable[[Parts], float | None]:
    return lambda parts: bench_tables.mean_of(parts["workloads"], TWELVE, name)


ROWS: dict[str, Callable[[Parts], float | None]] = {
    "64 chains of small kernels, launched anew, over PyOpenCL in order": lambda parts: parts[
        "scheduler"
    ]["graphs"][CHAINS]["over_bare"]["median"],
    "the same, recorded once and replayed": lambda parts: parts["scheduler"]["graphs"][CHAINS][
        "replay_over_bare"
    ]["median"],
    "rigid bodies and networks, launched anew, over the best plain queue, mean of twelve": (
        _mean("auto")
    ),
    "an unmodified program with 8 independent chains, on `acs.Queue`": _queue("chains"),
    "an unmodified `pyopencl.array` program, one long chain, on `acs.Queue`": _queue("array"),
    "an unmodified program with chains of very short kernels, on `acs.Queue`": _queue("short"),
}
