"""Which core serves: the native one where it was built, Python wherever it was not.

In: what was installed, and the environment. Out: `hazards()` and `recorder()`, whether they are
native, and what to say about it. Both give the same answers, edge by edge and word by word; nobody
else asks which one there is.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from . import epochs
from .footprints import ReplayHazards

INTERFACE = 4
"""What this module expects of the native core; a core of other sources is not used."""


def _load() -> tuple[Any, str]:
    """The native core, or None; and why."""
    if os.environ.get("ACS_CL_PURE", "") not in ("", "0"):
        return None, "ACS_CL_PURE is set"
    try:
        native: Any = import_module("acs_cl._core")
        interface = native.INTERFACE
    except (ImportError, AttributeError) as error:
        why = "it was not built" if isinstance(error, ModuleNotFoundError) else str(error)
        return None, why
    if interface != INTERFACE:
        return None, f"it was built from other sources (interface {interface}, not {INTERFACE})"
    return native, "it was built"


native, WHY = _load()
NATIVE = native is not None
ABOUT = "native" if NATIVE else f"pure Python ({WHY})"


def hazards() -> ReplayHazards:
    """A new index of live accesses."""
    made: ReplayHazards = native.Hazards() if NATIVE else ReplayHazards()
    return made


def queues() -> Any:
    """What keeps the queues of a host backend, or None: then the backend does."""
    return native.Queues if NATIVE else None


def _recorder() -> type[epochs.Recorder]:
    """Takes tasks as the core does, and makes images of them as Python does."""
    if not NATIVE:
        return epochs.Recorder

    def image(self: Any, *arguments: Any, **options: Any) -> epochs.Image:
        return epochs.Recorder.image(self, *arguments, **options)

    made: Any = type("Recorder", (native.Recorder,), {"image": image})
    made._assemble = epochs.Recorder._assemble
    native_recorder: type[epochs.Recorder] = made
    return native_recorder


recorder = _recorder()
"""A new recorder of an epoch."""
