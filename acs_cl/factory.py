"""Backends: where launches run. They have one contract (`launch.backend`), and a file each.

Input: launches whose upstream was submitted before. Output: their completions. A backend keeps the
order of upstream and may overlap everything else.
"""

from __future__ import annotations

import pyopencl as cl

from .backends.queues import HOST, HostQueues
from .errors import UsageError
from .launch.backend import Backend
from .records import Placing
from .scheduler.backend import Device
from .scheduler.sender import Settings

__all__ = [
    "HOST",
    "NAMES",
    "Backend",
    "Device",
    "Settings",
    "create",
    "create_emulated",
]

NAMES = (*HOST, "device", "emulated")


def create(
    name: str,
    context: cl.Context,
    device: cl.Device,
    lanes: int,
    placing: Placing,
    profiling: bool,
) -> Backend:
    """Make the host backend called `name` on one device."""
    if name not in HOST:
        raise UsageError(f"unknown backend {name!r}; there are: auto, {', '.join(NAMES)}")
    return HostQueues(name, context, device, lanes, profiling, placing)


def create_emulated(context: cl.Context, device: cl.Device, options: object) -> Backend:
    """Make the backend 'emulated'. Nothing else loads the emulator."""
    from .backends.emulate import emulate
    from .backends.emulated import Emulated

    return Emulated(context, device, emulate(options))
