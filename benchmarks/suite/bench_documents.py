"""Documents of ``acs-cl bench`` as files: read and check them, one or a whole folder.

Input: paths of JSON files, which may have been changed by hand. Output: documents as
`contest.measure` makes them, or a `UsageError` that names the file and the place in it.

Invariant: a document that was read has every value that tables and pictures use, of the right type.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from acs_cl import UsageError
from acs_cl.benchmarks.suite import contest

Document = dict[str, Any]

NUMBER = (int, float)


class Each(NamedTuple):
    """The shape of each value of an object with any names."""

    shape: Any


SPREAD = {"p25": NUMBER, "median": NUMBER, "p75": NUMBER}
SHAPE = {
    "preset": str,
    "runs": int,
    "seed": int,
    "machine": {
        **dict.fromkeys(("device", "driver", "cpu", "date", "commit"), str),
        **dict.fromkeys(("acs_cl", "pyopencl", "python"), str),
        "compute_units": int,
        "cpus": (int, type(None)),
        "noise": [{"unrest": NUMBER}],
    },
    "workloads": Each(
        {
            "family": str,
            "baseline": str,
            "overlap": (*NUMBER, type(None)),
            "bound": {
                **dict.fromkeys(("launches", "edges", "depth"), int),
                **dict.fromkeys(("critical_ms", "work_ms", "busy_ms"), NUMBER),
                "least_ms": (*NUMBER, type(None)),
                "limit": str,
                "groups": Each(NUMBER),
            },
            "rows": Each(
                {
                    "ms": SPREAD,
                    "speedup": SPREAD,
                    "host_us_per_launch": NUMBER,
                    "launches_per_s": NUMBER,
                }
            ),
            "failed": Each(str),
        }
    ),
}
"""The least contents of a document: types, objects with these names, or lists of such values."""


def load(path: Path) -> Document:
    """Read a document; raise `UsageError` for anything else."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path.name}: cannot be read: {error}") from None
    version = document.get("acs_cl_bench") if isinstance(document, dict) else None
    if version != contest.VERSION:
        raise UsageError(
            f"{path.name}: expected what acs-cl bench --json writes, with 'acs_cl_bench': "
            f"{contest.VERSION}, got {version!r}"
        )
    assert isinstance(document, dict)
    complaint = _wrong(document, SHAPE, "it") or _without_baseline(document)
    if complaint:
        raise UsageError(f"{path.name}: {complaint}")
    return document


def collected(folder: Path) -> list[Document]:
    """Return all results in a folder. Other and broken files are named and left out."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder")
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            found.append(load(path))
        except UsageError as error:
            print(f"passed over {error}", file=sys.stderr)
    if not found:
        raise UsageError(f"{folder}: no results of acs-cl bench in there")
    return found


def check_alike(old: Document, preset: str, seed: int, workloads: list[str]) -> None:
    """Raise `UsageError` if a new result cannot be compared with an old one, because sizes or
    inputs differ."""
    for what, value in (("preset", preset), ("seed", seed)):
        if old[what] != value:
            raise UsageError(f"--compare: the old result has {what} {old[what]}, not {value}")
    if not set(workloads) & set(old["workloads"]):
        raise UsageError(
            f"--compare: the old result has none of {', '.join(workloads)}; it has "
            f"{', '.join(old['workloads']) or 'no workload at all'}"
        )


def _wrong(value: Any, shape: Any, where: str) -> str:
    """Describe the first wrong value. Empty: there is none."""
    if isinstance(shape, list):
        if not isinstance(value, list) or not value:
            return f"{where}: expected a list of at least one, got {value!r:.40}"
        parts = [(one, shape[0], f"{where}[{place}]") for place, one in enumerate(value)]
    elif isinstance(shape, (dict, Each)):
        if not isinstance(value, dict):
            return f"{where}: expected an object, got {value!r:.40}"
        below = "" if where == "it" else f"{where}."
        if isinstance(shape, Each):
            parts = [(one, shape.shape, f"{below}{name}") for name, one in value.items()]
        else:
            lacks = sorted(set(shape) - set(value))
            if lacks:
                return f"{where} lacks {', '.join(lacks)}"
            parts = [(value[name], one, f"{below}{name}") for name, one in shape.items()]
    else:
        right = isinstance(value, shape) and not isinstance(value, bool)
        return "" if right else f"{where}: got {value!r:.40}, a {type(value).__name__}"
    return next(filter(None, (_wrong(*part) for part in parts)), "")


def _without_baseline(document: Document) -> str:
    for name, entry in document["workloads"].items():
        if entry["rows"] and entry["baseline"] not in entry["rows"]:
            return f"workloads.{name}: there is no row of its baseline {entry['baseline']!r}"
    return ""
