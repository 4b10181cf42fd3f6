"""Probes on disk, in the user's cache folder.

Input: a device's key and a probe. Output: the same probe, or ``None``.

Invariant: a file is believed only if no other user can have written it (`own_files`), and if
format, PyOpenCL and device match. Any other file counts as "not cached". If the folder cannot be
written, the next program measures again.
"""

from __future__ import annotations

import json

import pyopencl as cl

from acs_cl.devices.probe.record import Probe
from acs_cl.host import files
from acs_cl.host.digest import digest

FORMAT = 1  # of the file, and of the measurements
_KIND = "probe"


def load(key: str) -> Probe | None:
    """Return the probe saved for this key, if it can be believed."""
    text = files.read(_KIND, _name(key))
    if text is None:
        return None
    try:
        document = json.loads(text)
        if document["format"] != FORMAT or document["key"] != _identity(key):
            return None
        probe = Probe.from_json(document["probe"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return probe if probe.measured else None


def save(key: str, probe: Probe) -> bool:
    """Keep the probe; return whether that worked."""
    document = {"format": FORMAT, "key": _identity(key), "probe": probe.to_json()}
    try:
        text = json.dumps(document, indent=1, allow_nan=False)
    except ValueError:
        return False
    return files.replace(_KIND, _name(key), text)


def _name(key: str) -> str:
    """Return the file name of one device."""
    return digest(_identity(key), 32) + ".json"


def _identity(key: str) -> str:
    return f"{key} | PyOpenCL {cl.VERSION_TEXT}"
