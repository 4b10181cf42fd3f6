"""Committed results: read, checked, and each figure with the run that it is of.

In: folders of JSON files, as `run.py --json` and `acs-cl bench --json` write them and `merge` joins
them. Out: documents, and for each benchmark or workload in them the `Run` it was measured in.

Results of several runs may stand in one file. A reader has to see then which commit each figure is
of, so each part may carry a run of its own; without one it is of the document's.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

VERSION = 1
FIGURES, SUITE = "acs_cl_benchmarks", "acs_cl_bench"
"""The key by which the two kinds of documents are known; its value is the version."""
PARTS = {FIGURES: "benchmarks", SUITE: "workloads"}

INTERRUPTED = 130
"""Exit status of a command that Ctrl-C has ended, as shells have it."""

Document = dict[str, Any]


class ResultError(Exception):
    """Results or pages that cannot be used, and why."""


class Run(NamedTuple):
    """When a part of a document was measured, of which sources, and on how steady a machine."""

    commit: str
    sources: str
    date: str
    unrest: float

    def __str__(self) -> str:
        commit = f"commit {self.commit}" if self.commit else "commit not known"
        return f"{self.date}, {commit}, machine noise {self.unrest:.0%}"


def read(path: Path) -> Document:
    """Read a document."""
    document: Document = json.loads(path.read_text(encoding="utf-8"))
    return document


def write(path: str | Path, document: Mapping[str, Any]) -> None:
    """Write a document, in a folder that is made where it is not there."""
    path, text = Path(path), json.dumps(document, indent=1) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not (path.is_file() and os.access(path.parent, os.W_OK)):
        path.write_text(text, encoding="utf-8")
        return
    whole = path.resolve()
    new = whole.with_name(f"{whole.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(whole)  # so that there is always a whole one


def last_written(growing: Iterable[Document], place: str | Path | None) -> Document:
    """Write each document as soon as it is there, so that a run that is cut off has left what it
    measured; give the last one. Ctrl-C ends the run, and keeps what there is."""
    document: Document | None = None
    try:
        for document in growing:
            if place:
                write(place, document)
    except KeyboardInterrupt:
        if document is None:
            raise
        document["interrupted"] = True
        kept = f"; {place} has it" if place else ""
        print(f"\ninterrupted: what was measured until then follows{kept}", file=sys.stderr)
        if place:
            write(place, document)
    assert document is not None, "a run that measures has a document"
    return document


def exit_code(document: Document, code: int) -> int:
    """That of a command which has told of a document."""
    return INTERRUPTED if document.get("interrupted") else code


def of_kind(folder: Path, kind: str) -> dict[str, Document]:
    """The documents of one kind in a folder, by file name."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        document = read(path)
        if isinstance(document, dict) and kind in document:
            found[path.name] = checked(document, path.name)
    return found


def checked(document: Document, name: str) -> Document:
    """The document, if it is of this version and was no mere look."""
    version = document[kind_of(document)]
    if version != VERSION:
        raise ResultError(f"{name}: version {version!r} of the format, expected {VERSION}")
    if document.get("quick"):
        raise ResultError(f"{name}: a run with --quick is a look, not a figure")
    return document


def kind_of(document: Mapping[str, Any]) -> str:
    """Which of the two it is; `ResultError` for anything else."""
    for kind in PARTS:
        if kind in document:
            return kind
    raise ResultError(f"expected one of {', '.join(PARTS)} in it")


def parts_of(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Its benchmarks, or its workloads."""
    parts: dict[str, dict[str, Any]] = document[PARTS[kind_of(document)]]
    return parts


def run_of(document: Mapping[str, Any], part: Mapping[str, Any]) -> Run:
    """The run that a part of it was measured in."""
    if "run" in part:
        return Run(**part["run"])
    there = document["machine"]
    unrest = max((one["unrest"] for one in there["noise"]), default=0.0)
    return Run(there["commit"], there.get("sources", ""), there["date"], unrest)


def where(machine: Mapping[str, Any]) -> tuple[str, str]:
    """What has to be equal for figures to be of one device: its name and its driver."""
    return machine["device"], machine["driver"]


def short_name(machine: Mapping[str, Any]) -> str:
    """Of a device, for the head of a column."""
    platform, _, device = str(machine["device"]).rpartition(" / ")
    if platform == "Portable Computing Language":
        return f"PoCL, {machine['compute_units']} CPU threads"
    return device


def described(machine: Mapping[str, Any]) -> str:
    """The device in a line, without what differs from run to run."""
    return (
        f"{machine['device']}, driver {machine['driver']}, {machine['compute_units']} compute "
        f"units, {machine['cpus']} CPUs ({machine['cpu']}); Python {machine['python']}, PyOpenCL "
        f"{machine['pyopencl']}"
    )


def number(value: float) -> str:
    """A figure with as many digits as tell it from zero and from its limit."""
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.2f}" if abs(value) >= 0.1 else f"{value:.2g}"
