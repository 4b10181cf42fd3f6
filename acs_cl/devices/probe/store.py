"""Probes on disk, in the user's cache folder.

Input: a device's key and a probe. Output: the same probe, or ``None``.

Invariant: a file is believed only if no other user can have written it (`own_files`), and if
format, PyOpenCL and device match. Any other file counts as "not cached". If the folder cannot be
written, the next program measures again.
"""

from __future__ import annotations

import pyopencl as cl

from acs_cl.devices.probe.record import Probe
from acs_cl.host import files
from acs_cl.records import Report

FORMAT = 1  # of the file, and of the measurements
_KIND = "probe"


def load(key: str) -> Probe | None:
    """Return the probe saved for this key, if it can be believed."""
    document = files.record(_KIND, files.name_of(_identity(key)), FORMAT)
    if document is None or document.get("key") != _identity(key):
        return None
    try:
        probe = Probe.from_json(document["probe"])
    except (ValueError, KeyError, TypeError):
        return None
    return probe if probe.measured else None


def save(key: str, probe: Probe) -> bool:
    """Keep the probe; return whether that worked."""
    values: Report = {"key": _identity(key), "probe": probe.to_json()}
    return files.keep(_KIND, files.name_of(values["key"]), FORMAT, values)


def _identity(key: str) -> str:
    return f"{key} | PyOpenCL {cl.VERSION_TEXT}"
