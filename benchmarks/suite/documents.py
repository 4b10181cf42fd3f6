"""Committed results: read, checked, and each figure with its run.

Input: folders of JSON files, as `run.py --json` and `acs-cl bench --json` write them and `merge`
joins them. Output: documents, and the `Run` of each benchmark or workload in them.

One file may have results of several runs, and a reader has to see the commit of each figure. So
each part may have a run of its own; otherwise it belongs to the document's.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

VERSION = 1
FIGURES, SUITE = "acs_cl_benchmarks", "acs_cl_bench"
"""The key of each kind of document; its value is the version."""
PARTS = {FIGURES: "benchmarks", SUITE: "workloads"}

INTERRUPTED = 130
"""Exit status of a command that Ctrl-C has ended, as in shells."""

Document = dict[str, Any]


class ResultError(Exception):
    """Results or pages that cannot be used, with the reason."""


class Run(NamedTuple):
    """The run of a part: its time, its sources, and the machine noise."""

    commit: str
    sources: str
    date: str
    unrest: float
    loop_us: float = 0.0
    """How long the fixed piece of Python took by which noise is measured. 0: not kept."""

    def __str__(self) -> str:
        commit = f"commit {self.commit}" if self.commit else "commit not known"
        loop = f" of {self.loop_us:,.0f} us" if self.loop_us else ""
        return f"{self.date}, {commit}, machine noise {self.unrest:.0%}{loop}"

    def around(self, noises: Sequence[Mapping[str, float]]) -> Run:
        """Return the run with the worst noise before and after it."""
        unrest = max((one["unrest"] for one in noises), default=0.0)
        loop_us = max((one.get("loop_us", 0.0) for one in noises), default=0.0)
        return self._replace(unrest=unrest, loop_us=loop_us)


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
    new.replace(whole)  # so that there is always a complete file


def last_written(growing: Iterable[Document], place: str | Path | None) -> Document:
    """Write each document as soon as it exists, so that a run that is cut off keeps its results;
    return the last one. Ctrl-C ends the run and keeps the results."""
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
    """Return the exit code of a command that has reported a document."""
    return INTERRUPTED if document.get("interrupted") else code


def of_kind(folder: Path, kind: str) -> dict[str, Document]:
    """Return the documents of one kind in a folder, by file name."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        document = read(path)
        if isinstance(document, dict) and kind in document:
            found[path.name] = checked(document, path.name)
    return found


def checked(document: Document, name: str) -> Document:
    """Return the document, if it is of this version and not of a quick run."""
    version = document[kind_of(document)]
    if version != VERSION:
        raise ResultError(f"{name}: version {version!r} of the format, expected {VERSION}")
    if document.get("quick"):
        raise ResultError(f"{name}: a run with --quick is a look, not a figure")
    return document


def kind_of(document: Mapping[str, Any]) -> str:
    """Return the kind of a document; raise `ResultError` for anything else."""
    for kind in PARTS:
        if kind in document:
            return kind
    raise ResultError(f"expected one of {', '.join(PARTS)} in it")


def parts_of(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return its benchmarks, or its workloads."""
    parts: dict[str, dict[str, Any]] = document[PARTS[kind_of(document)]]
    return parts


def run_of(document: Mapping[str, Any], part: Mapping[str, Any]) -> Run:
    """Return the run that measured a part of it."""
    if "run" in part:
        return Run(**part["run"])
    there = document["machine"]
    run = Run(there["commit"], there.get("sources", ""), there["date"], 0.0)
    return run.around(there["noise"])


def where(machine: Mapping[str, Any]) -> tuple[str, str]:
    """Return the device's name and driver, which are equal for figures of one device."""
    return machine["device"], machine["driver"]


def short_name(machine: Mapping[str, Any]) -> str:
    """Return the short name of a device, for the head of a column."""
    platform, _, device = str(machine["device"]).rpartition(" / ")
    if platform == "Portable Computing Language":
        return f"PoCL, {machine['compute_units']} CPU threads"
    return device


def described(machine: Mapping[str, Any]) -> str:
    """Describe the device in a line, without values that differ between runs."""
    core = ", core of a wheel" if machine.get("profiled") else ""
    return (
        f"{machine['device']}, driver {machine['driver']}, {machine['compute_units']} compute "
        f"units, {machine['cpus']} CPUs ({machine['cpu']}); Python {machine['python']}, PyOpenCL "
        f"{machine['pyopencl']}{core}"
    )


def number(value: float) -> str:
    """Format a figure with enough digits to tell it from zero and from its limit."""
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.2f}" if abs(value) >= 0.1 else f"{value:.2g}"
