"""The page: data, style and scripts in one file that needs nothing else.

Input: a record. Output: a file. Texts of the program, such as names of kernels and phases, are data
of the page and never markup. So no name can break the page.
"""

from __future__ import annotations

import html
import json
import re
from importlib.resources import files
from pathlib import Path

from ...host import output
from ..advice import findings
from ..record import Record
from .columns import columns
from .what_if import MOST, MOST_GROUPS, estimates, is_of_several, is_too_long

SCRIPTS = (
    "data.js", "dom.js", "why.js", "timeline.js", "rows.js", "folded.js", "tables.js", "main.js"
)  # fmt: skip
"""The scripts in the order of their dependencies."""


def write(record: Record, path: str | Path, what_if: bool = True) -> None:
    """Write the page. `what_if`: ask the emulator what would help, which takes some seconds."""
    output.write(path, page(record, what_if), "report")


def page(record: Record, what_if: bool = True) -> str:
    """Return the page as text."""
    found = findings(record)
    tried = estimates(record, found) if what_if else []
    data = columns(record, found, tried, _notes(record, what_if))
    parts = {
        "TITLE": html.escape(record.title or "acs_cl report"),
        "STYLE": _file("page.css"),
        "DATA": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        "SCRIPT": "\n".join(map(_file, SCRIPTS)),
    }
    # in one pass, because a part may contain the placeholder of another one
    return re.sub("@([A-Z]+)@", lambda found: parts[found[1]], _file("page.html"))


def _inside(record: Record) -> list[str]:
    """Return sentences about the insides of epochs."""
    noted, found = record.about.noted, []
    tasks = [one.epoch for one in record.slices if one.epoch]
    replays = sum(bool(one.parts) for one in record.slices)
    if tasks:
        found.append(f"{len(tasks)} launches ran in {len(set(tasks))} epochs of the scheduler.")
    if replays:
        found.append(f"The scheduler ran {replays} replays, each with all of its launches.")
    if noted.clock == "order":
        found.append(
            "The device has no clock that its groups could read. Inside of an epoch the page shows "
            "the order of tasks, not their times: they are spread evenly."
        )
    elif noted.clock:
        found.append(
            "Each group of the scheduler noted when it began and ended a tile: off by at most "
            f"{noted.error_ns / 1e3:.1f} µs. To note a tile takes a group some "
            f"{max(1, round(noted.cost_ns))} ns, which these times have in them."
        )
    elif tasks:
        found.append("Only the times of whole epochs are known: when a task began nobody knows.")
    if noted.dropped:
        found.append(f"There was no room to note {noted.dropped} more tiles: they are not shown.")
    found += [f"Tasks of {name} have no times: {why}." for name, why in noted.untimed]
    return found


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _notes(record: Record, what_if: bool) -> list[str]:
    """Return the notes that a reader needs to understand the figures."""
    clocks, slices = record.clocks, record.slices
    notes = []
    if clocks.clock == "model":
        notes.append("Times are those of the emulator's model: simulated, and not the host's.")
    elif not clocks.comparable:
        notes.append("The device's clock cannot be put beside the host's: threads are not shown.")
    elif clocks.clock == "device":
        notes.append(
            "Times of the device are shown on the host's clock, off by at most "
            f"{clocks.error_ns / 1e3:.1f} µs."
        )
    notes += _inside(record)
    passed = sum(one.passed for one in slices)
    if passed:
        notes.append(f"{passed} commands bypassed the runtime. Their rows have the host's times.")
    if what_if and is_too_long(record):
        notes.append(
            f"The emulator was not asked: more than {MOST:,} launches, or {MOST_GROUPS:,} groups "
            "of them, take it too long."
        )
    if what_if and is_of_several(record):
        notes.append("The emulator was not asked: it knows one device.")
    return notes
