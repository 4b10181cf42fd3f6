"""Signatures on disk, so that a program started again does not parse its sources again.

In: a key made of everything that a signature follows from, and a record of plain data; the kernels
of one program have a file together. Out: the record, or None. Invariant: a file that is missing,
damaged or somebody else's (`own_files`) is the same as no file; nothing here raises, and nobody but
the user can read what is kept.
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

_FORMAT = 11  # raise it when the analysis or the record changes
_KIND = "signatures"

Record: TypeAlias = dict[str, Any]
"""Plain data, as JSON has it. Who reads one looks at what is in it."""

ENTRIES_MAX = 2000
_stores_until_trim = 1  # the first one of a process looks


def folder() -> Path | None:
    """Where signatures are kept, None if they are not."""
    return files.folder(_KIND)


def key(source: str, what: str, options: Sequence[str], facts: DeviceFacts) -> str:
    """The name of an entry: a hash of all that it depends on."""
    facts_text = [sorted(value) if isinstance(value, frozenset) else value for value in facts]
    parts = [_FORMAT, __version__, source, what, options, facts_text]
    return digest(json.dumps(parts))


def load(name: str) -> Record | None:
    """The record kept under a key, None if there is none that is whole."""
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
    """What `add_line` kept under a key: for each name the record, as text."""
    lines = (files.read(_KIND, f"{name}.lines") or "").split("\n")
    found = {}
    for line in lines:
        check, _, rest = line.partition(" ")
        if check and check == _check(rest):
            one, _, text = rest.partition(" ")
            found[one] = text
    return found


def add_line(name: str, one: str, record: Record) -> None:
    """Keep a record under a key and a name without spaces, beside the others of the key. A process
    that adds to the same file at the same time, or that ends while it does, may lose a line: then
    it does not fit its check."""
    rest = f"{one} {json.dumps(record)}"
    # the first end of line is that of a line before that has none
    if files.append(_KIND, f"{name}.lines", f"\n{_check(rest)} {rest}\n"):
        _trim_sometimes()


def store(name: str, record: Record) -> None:
    """Keep a record; other processes see the old file or the new one, never a part."""
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
