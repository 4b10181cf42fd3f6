"""Probes on disk, in the user's cache folder.

Input: a device's key and a probe. Output: the same probe, or ``None``.

Invariant: a file is believed only if no other user can have written it (`host/files`), and if its
format matches; its name is that of the device and of PyOpenCL. Any other file counts as "not
cached". If the folder cannot be written, the next program measures again.
"""

from __future__ import annotations

import pyopencl as cl

from acs_cl.devices.probe.record import Probe
from acs_cl.host import files

FORMAT = 1  # of the file, and of the measurements
_KIND = "probe"


def load(key: str) -> Probe | None:
    """Return the probe saved for this key, if it can be believed."""
    probe = files.kept(_KIND, _name(key), FORMAT, lambda found: Probe.from_json(found["probe"]))
    return probe if probe is not None and probe.measured else None


def save(key: str, probe: Probe) -> bool:
    """Keep the probe; return whether that worked."""
    return files.keep(_KIND, _name(key), FORMAT, {"key": key, "probe": probe.to_json()})


def _name(key: str) -> str:
    return files.name_of(f"{key} | PyOpenCL {cl.VERSION_TEXT}")
