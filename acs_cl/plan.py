"""The plan of a runtime: which backend, how many lanes, which memory, and why.

In: a device and options. Out: a `Plan`. 'auto' takes the cached probe of the device (`acs-cl
doctor` measures and caches it), else a static guess for its driver: a measurement would cost a
program its start-up.

Runtimes made without a context share one for each device, as long as the process lives: drivers
have room for few, and take long to make one.
"""

from __future__ import annotations

import os
import threading
from typing import Any, NamedTuple

import pyopencl as cl

from . import devices, probe
from .backends import NAMES
from .errors import UsageError
from .options import Options

_contexts: dict[int, Any] = {}
"""{device: the context that its runtimes share}."""

_lock = threading.Lock()


class Plan(NamedTuple):
    """What a runtime uses, and a sentence that says why."""

    backend: str
    lanes: int
    memory: str
    why: str
    host: str
    """The host backend: the backend itself, or what goes beside the scheduler on the device."""
    tier: str
    """What the device offers for order between groups: 'c11', 'ptx' or 'levels'."""
    scheduler: str
    """'all': everything that can goes to the scheduler on the device; 'mix': what gains by it;
    'no'."""


def plan(device: cl.Device, options: Options) -> Plan:
    """Options where they are given, else what is known of the device."""
    if options.backend != "auto" and options.backend not in NAMES:
        where = " in ACS_CL_BACKEND" if options.overruled else ""
        raise UsageError(
            f"unknown backend {options.backend!r}{where}; there are: auto, {', '.join(NAMES)}"
        )
    known = probe.quick(device) or probe.assume(device)
    backend = known.backend if options.backend == "auto" else options.backend
    why = known.sentence if options.backend == "auto" else f"backend={backend!r} was asked for"
    if options.overruled:
        why = f"ACS_CL_BACKEND={options.backend} overrules backend={options.overruled!r}" + (
            f"; {why}" if options.backend == "auto" else ""
        )
    on_device = backend == "device"
    scheduler = "all" if on_device else "no"
    host = known.backend if on_device else backend
    memory = options.memory or ("svm" if on_device else known.memory)
    if memory == "svm" and known.svm == "none":
        raise UsageError(
            f"backend='device': {device.name.strip()} has no shared virtual memory, which "
            "addresses in memory need; use another backend"
            if on_device
            else f"memory='svm': {device.name.strip()} has no shared virtual memory; use 'buffers'"
        )
    if on_device and memory != "svm":
        raise UsageError("backend='device' needs memory='svm': buffers have no addresses that last")
    lanes = options.lanes or max(known.lanes, 1)
    if host == "lanes" and not options.lanes and lanes < 2:
        lanes = max(2, min(8, device.max_compute_units))
    if options.backend == "auto" and _mixes(options, known, memory):
        scheduler = "mix"
        why += " Small kernels that are launched often go to a scheduler on the device."
    return Plan(
        backend, lanes if host == "lanes" else 1, memory, why, host, known.memory_model, scheduler
    )


def _mixes(options: Options, known: probe.Probe, memory: str) -> bool:
    """Whether 'auto' has a scheduler on the device beside its lanes: where there is order between
    groups and addresses last, unless the program asked for what belongs to lanes alone."""
    asked = options.window is not None or options.issue != "eager" or options.trace
    return known.memory_model != "levels" and memory == "svm" and not asked


def context_for(device: Any, context: Any) -> tuple[Any, Any]:
    """The context and device to use: the shared one of a device, or of a context given its only
    device or the one named."""
    if context is None:
        chosen = devices.choose(device)
        return _shared_context(chosen), chosen
    if not isinstance(context, cl.Context):
        raise UsageError(f"context= takes a pyopencl.Context, got {type(context).__name__}")
    there = context.devices
    if device is None and len(there) == 1:
        chosen = there[0]
    elif device is None:
        names = ", ".join(one.name.strip() for one in there)
        raise UsageError(f"the context has {len(there)} devices ({names}); say which by device=")
    else:
        chosen = devices.choose(device)
        if chosen not in there:
            raise UsageError(f"{chosen.name.strip()} is not a device of the context given")
    devices.repair(chosen)
    return context, chosen


def _shared_context(device: cl.Device) -> Any:
    with _lock:
        context = _contexts.get(device.int_ptr)
        if context is None:
            context = _contexts[device.int_ptr] = cl.Context([device])
        return context


def forget_context(context: Any) -> None:
    """A command failed on the device, which may have ended its context: runtimes to come share a
    new one."""
    with _lock:
        for device in [device for device, known in _contexts.items() if known == context]:
            del _contexts[device]


def _after_fork() -> None:
    """The driver's objects are the parent's: never used here, never let go of here."""
    global _contexts, _lock
    _inherited.append(_contexts)
    _contexts, _lock = {}, threading.Lock()


_inherited: list[dict[int, Any]] = []

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
