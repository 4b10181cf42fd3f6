"""Probes on disk, in the user's cache folder.

In: a device's key and a probe.  Out: the same probe, or ``None``.

Invariant: a file is believed only if it is the user's own, readable by nobody else, of this
format, of this PyOpenCL and of the very device asked for.  Everything else counts as "not cached",
and a folder that cannot be written only means that the next program measures again.
``ACS_CL_CACHE=off`` switches the cache off; any other value names the folder to use.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
from pathlib import Path

import pyopencl as cl

from acs_cl.digest import digest
from acs_cl.probe.record import Probe

FORMAT = 1  # of the file, and of the way in which things are measured


def folder() -> Path | None:
    """Where probes are kept, or ``None`` where the cache is switched off."""
    wish = os.environ.get("ACS_CL_CACHE", "").strip()
    if wish.lower() == "off":
        return None
    if wish:
        return Path(wish).expanduser() / "probe"
    import platformdirs  # here, because a program that never asks should not pay for it

    return Path(platformdirs.user_cache_dir("acs_cl", appauthor=False)) / "probe"


def path(key: str) -> Path | None:
    """The file of one device."""
    base = folder()
    if base is None:
        return None
    return base / (digest(_identity(key), 32) + ".json")


def load(key: str) -> Probe | None:
    """What was saved for this key, if it can be believed."""
    file = path(key)
    if file is None:
        return None
    try:
        # Asked of the open file, so that nobody can swap it between the question and the reading.
        with open(file, encoding="utf-8") as source:
            if not _private(os.fstat(source.fileno())):
                return None
            document = json.load(source)
        if document["format"] != FORMAT or document["key"] != _identity(key):
            return None
        probe = Probe.from_json(document["probe"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return probe if probe.measured else None


def save(key: str, probe: Probe) -> bool:
    """Keep the probe; whether that worked."""
    file = path(key)
    if file is None:
        return False
    document = {"format": FORMAT, "key": _identity(key), "probe": probe.to_json()}
    scratch = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.name == "posix":
            file.parent.chmod(0o700)
        # A scratch file (created 0600) and a rename: readers see the old text or the new one.
        handle, scratch = tempfile.mkstemp(dir=file.parent, prefix=".new-")
        with open(handle, "w", encoding="utf-8") as target:
            json.dump(document, target, indent=1, allow_nan=False)
        os.replace(scratch, file)
    except (OSError, ValueError):
        if scratch is not None:
            with contextlib.suppress(OSError):
                os.unlink(scratch)
        return False
    return True


def _identity(key: str) -> str:
    return f"{key} | PyOpenCL {cl.VERSION_TEXT}"


def _private(status: os.stat_result) -> bool:
    if os.name != "posix":  # elsewhere the folder of the user profile is the protection
        return True
    mode = stat.S_IMODE(status.st_mode)
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not mode & 0o077
