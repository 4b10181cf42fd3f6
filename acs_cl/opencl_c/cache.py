"""Signatures on disk, so that a program does not parse its sources again at the next start.

Input: a key of everything that a signature depends on, and a record of plain data. The kernels of
one program share a file. Output: the record, or None. Invariant: a file that is missing, damaged or
another user's (`own_files`) counts as no file. Nothing here raises, and only the user can read the
files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from acs_cl._version import __version__
from acs_cl.devices.facts import DeviceFacts
from acs_cl.host import files
from acs_cl.host.digest import digest

_FORMAT = 39  # raise it when the analysis or the record changes
_KIND = "signatures"

Record: TypeAlias = dict[str, Any]
"""Plain data, as JSON has it. The reader of a record checks its contents."""

ENTRIES_MAX = 2000
_stores_until_trim = 1  # the first store of a process trims


def folder() -> Path | None:
    """Return the folder of signatures. None: they are not kept."""
    return files.folder(_KIND)


def key(source: str, what: str, options: Sequence[str], facts: DeviceFacts) -> str:
    """Return the name of an entry: a hash of everything that it depends on."""
    facts_text = [sorted(value) if isinstance(value, frozenset) else value for value in facts]
    parts = [_FORMAT, __version__, source, what, options, facts_text]
    return digest(json.dumps(parts))


def load(name: str) -> Record | None:
    """Return the record kept under a key. None: there is no complete one."""
    whole = files.read(_KIND, f"{name}.json")
    if whole is None:
        return None
    check, _, text = whole.partition("\n")
    try:
        record = json.loads(text) if check == _check(text) else None
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def load_lines(name: str) -> dict[str, str]:
    """Return the records that `add_line` kept under a key, as texts by name."""
    lines = (files.read(_KIND, f"{name}.lines") or "").split("\n")
    found = {}
    for line in lines:
        check, _, rest = line.partition(" ")
        if check and check == _check(rest):
            one, _, text = rest.partition(" ")
            found[one] = text
    return found


def add_line(name: str, one: str, record: Record) -> None:
    """Add a record under a key and a name without spaces. If two processes add to one file at once,
    or one ends early, a line may be lost: its check then fails."""
    rest = f"{one} {json.dumps(record)}"
    # the first end of line completes an earlier line that has none
    if files.append(_KIND, f"{name}.lines", f"\n{_check(rest)} {rest}\n"):
        _trim_sometimes()


def store(name: str, record: Record) -> None:
    """Keep a record. Other processes see the old file or the new one, never a part."""
    text = json.dumps(record)
    if files.replace(_KIND, f"{name}.json", f"{_check(text)}\n{text}"):
        _trim_sometimes()


def _check(text: str) -> str:
    return digest(text, 16)


def _trim_sometimes() -> None:
    global _stores_until_trim
    _stores_until_trim -= 1
    if _stores_until_trim <= 0:
        _stores_until_trim = 100
        files.trim(_KIND, ENTRIES_MAX)
