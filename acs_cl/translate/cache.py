"""Signatures on disk, so that a program started again does not parse its sources again.

In: a key made of everything that a signature follows from, and a record of plain data; the kernels
of one program have a file together. Out: the record, or None. Invariant: a file that is missing,
unreadable or damaged is the same as no file; nothing here raises, and nobody but the user can read
what is kept. `ACS_CL_CACHE=off` turns it off, any other value is the folder to use.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Sequence
from functools import cache as memo
from pathlib import Path
from typing import Any

from acs_cl._version import __version__
from acs_cl.digest import digest
from acs_cl.translate.facts import DeviceFacts

_FORMAT = 6  # raise it when the analysis or the record changes
ENTRIES_MAX = 2000
_ENVIRONMENT = ("ACS_CL_CACHE", "XDG_CACHE_HOME", "HOME")  # what the folder follows from
_stores_until_trim = 1  # the first one of a process looks


def folder() -> Path | None:
    """Where signatures are kept, None if they are not."""
    where = _folder(*map(os.environ.get, _ENVIRONMENT))
    return None if where is None else Path(where)


@memo
def _folder(wished: str | None, *_: str | None) -> str | None:
    """The folder as text: entries are asked for by the hundred when a program starts."""
    if wished == "off":
        return None
    if not wished:
        import platformdirs

        wished = platformdirs.user_cache_dir("acs_cl", appauthor=False)
    return os.path.join(wished, "signatures")


def key(source: str, what: str, options: Sequence[str], facts: DeviceFacts) -> str:
    """The name of an entry: a hash of all that it depends on."""
    facts_text = [sorted(value) if isinstance(value, frozenset) else value for value in facts]
    parts = [_FORMAT, __version__, source, what, options, facts_text]
    return digest(json.dumps(parts))


def load(name: str) -> dict[str, Any] | None:
    """The record kept under a key, None if there is none that is whole."""
    where = _folder(*map(os.environ.get, _ENVIRONMENT))
    if where is None:
        return None
    try:
        with open(os.path.join(where, f"{name}.json"), encoding="utf-8") as file:
            check, _, text = file.read().partition("\n")
        record = json.loads(text) if check == _check(text) else None
    except (OSError, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def load_lines(name: str) -> dict[str, str]:
    """What `add_line` kept under a key: for each name the record, as text."""
    where = _folder(*map(os.environ.get, _ENVIRONMENT))
    if where is None:
        return {}
    try:
        with open(os.path.join(where, f"{name}.lines"), encoding="utf-8") as file:
            lines = file.read().split("\n")
    except (OSError, ValueError):
        return {}
    found = {}
    for line in lines:
        check, _, rest = line.partition(" ")
        if check and check == _check(rest):
            one, _, text = rest.partition(" ")
            found[one] = text
    return found


def add_line(name: str, one: str, record: dict[str, Any]) -> None:
    """Keep a record under a key and a name without spaces, beside the others of the key. A process
    that adds to the same file at the same time, or that ends while it does, may lose a line: then
    it does not fit its check."""
    where = folder()
    if where is None:
        return
    rest = f"{one} {json.dumps(record)}"
    with contextlib.suppress(OSError):
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        file = os.open(where / f"{name}.lines", flags, 0o600)
        try:
            # the first end of line is that of a line before that has none
            os.write(file, f"\n{_check(rest)} {rest}\n".encode())
        finally:
            os.close(file)
        _trim_sometimes(where)


def store(name: str, record: dict[str, Any]) -> None:
    """Keep a record; other processes see the old file or the new one, never a part."""
    where = folder()
    if where is None:
        return
    text = json.dumps(record)
    with contextlib.suppress(OSError):
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=where, suffix=".part")  # mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(f"{_check(text)}\n{text}")
            os.replace(temporary, where / f"{name}.json")
        except OSError:
            os.unlink(temporary)
            raise
        _trim_sometimes(where)


def _check(text: str) -> str:
    return digest(text, 16)


def _trim_sometimes(where: Path) -> None:
    global _stores_until_trim
    _stores_until_trim -= 1
    if _stores_until_trim <= 0:
        _stores_until_trim = 100
        _trim(where)


def _trim(where: Path) -> None:
    """Drop the oldest entries above the bound."""
    entries = []
    with os.scandir(where) as listing:
        for entry in listing:
            with contextlib.suppress(OSError):
                entries.append((entry.stat().st_mtime_ns, entry.path))
    entries.sort()
    for _, path in entries[: max(len(entries) - ENTRIES_MAX, 0)]:
        with contextlib.suppress(OSError):
            os.unlink(path)
