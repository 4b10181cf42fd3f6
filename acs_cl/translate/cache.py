"""Signatures on disk, so that a program started again does not parse its sources again.

In: a key made of everything that a signature follows from, and a record of plain data. Out: the
record, or None. Invariant: a file that is missing, unreadable or damaged is the same as no file;
nothing here raises, and nobody but the user can read what is kept. `ACS_CL_CACHE=off` turns it off,
any other value is the folder to use.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from acs_cl._version import __version__
from acs_cl.translate.prelude import DeviceFacts

_FORMAT = 4  # raise it when the analysis or the record changes
ENTRIES_MAX = 2000
_stores_until_trim = 1  # the first one of a process looks


def folder() -> Path | None:
    """Where signatures are kept, None if they are not."""
    wished = os.environ.get("ACS_CL_CACHE", "")
    if wished == "off":
        return None
    if wished:
        return Path(wished) / "signatures"
    import platformdirs

    return Path(platformdirs.user_cache_dir("acs_cl", appauthor=False)) / "signatures"


def key(source: str, kernel_name: str, options: list[str], facts: DeviceFacts) -> str:
    """The name of an entry: a hash of all that the signature depends on."""
    facts_text = [sorted(value) if isinstance(value, frozenset) else value for value in facts]
    parts = [_FORMAT, __version__, source, kernel_name, options, facts_text]
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()


def load(name: str) -> dict[str, Any] | None:
    """The record kept under a key, None if there is none that is whole."""
    where = folder()
    if where is None:
        return None
    try:
        text = (where / f"{name}.json").read_text("utf-8")
        envelope = json.loads(text)
        record = envelope["record"]
        whole = envelope["check"] == _check(record) and isinstance(record, dict)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return record if whole else None


def store(name: str, record: dict[str, Any]) -> None:
    """Keep a record; other processes see the old file or the new one, never a part."""
    global _stores_until_trim
    where = folder()
    if where is None:
        return
    with contextlib.suppress(OSError):
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=where, suffix=".part")  # mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"check": _check(record), "record": record}, file)
            os.replace(temporary, where / f"{name}.json")
        except OSError:
            os.unlink(temporary)
            raise
        _stores_until_trim -= 1
        if _stores_until_trim <= 0:
            _stores_until_trim = 100
            _trim(where)


def _check(record: Any) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]


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
