"""Backends: where launches run. One contract (`launch.backend`), a file each.

In: launches whose upstream was submitted before. Out: their completions. A backend keeps the order
that a launch's upstream asks for and may overlap everything else.
"""

from __future__ import annotations

from typing import Any

import pyopencl as cl

from .backends.queues import HOST, HostQueues
from .core import native
from .errors import UsageError
from .launch.backend import Backend
from .records import Placing
from .scheduler.backend import Device
from .scheduler.policy import Choice
from .scheduler.sender import Settings

__all__ = [
    "HOST",
    "NAMES",
    "Backend",
    "Device",
    "Settings",
    "create",
    "create_device",
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
    """The host backend called `name` on one device."""
    if name not in HOST:
        raise UsageError(f"unknown backend {name!r}; there are: auto, {', '.join(NAMES)}")
    return HostQueues(name, context, device, lanes, profiling, placing)


def create_emulated(context: cl.Context, device: cl.Device, options: object) -> Backend:
    """The backend 'emulated'; the emulator is loaded by nothing else."""
    from .backends.emulate import emulate
    from .backends.emulated import Emulated

    return Emulated(context, device, emulate(options))


def create_device(
    host: Backend,
    context: cl.Context,
    device: cl.Device,
    store: Any,
    tier: str,
    settings: Settings,
    choice: Choice | None,
    table: native.Table,
) -> Device:
    """The backend 'device', with `host` for what its scheduler does not run."""
    return Device(context, device, host, store, tier, settings, choice, table)
