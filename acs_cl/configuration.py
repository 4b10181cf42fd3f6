"""The plan of a runtime: which backend, how many lanes, which memory, and why.

Input: a device and options. Output: a `Plan`, and the backend of that name. 'auto' takes the cached
probe of the device (`acs-cl doctor` measures and caches it), or a static guess for its driver. A
measurement would slow down the start of a program.
"""

from __future__ import annotations

import pyopencl as cl

from .backends.queues import HOST, HostQueues
from .devices import probe
from .errors import UsageError, refuse_unknown
from .launch.backend import Backend
from .options import placing
from .records import Options, Placing, Plan

NAMES = (*HOST, "device", "emulated")
"""Names of backends."""

ORDERED = ("c11", "ptx")
"""Memory models by which groups of one launch see each other's writes."""


BACKENDS = ("auto", *NAMES)
"""Names that a program gives."""


def plan(device: cl.Device, options: Options, lanes_by: tuple[str, str]) -> Plan:
    """Take the options that are given, and for the others what is known of the device. `lanes_by`:
    how launches choose lanes, if asked for."""
    where = " in ACS_CL_BACKEND" if options.overruled else ""
    refuse_unknown("backend", options.backend, BACKENDS, where)
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
    if on_device and known.memory_model not in ORDERED:
        raise UsageError(
            f"backend='device': {device.name.strip()} orders nothing between the groups of a "
            "launch, which a scheduler on it needs; use another backend"
        )
    if on_device and memory != "svm":
        raise UsageError("backend='device' needs memory='svm': buffers have no addresses that last")
    lanes = options.lanes or max(known.lanes, 1)
    if host == "lanes" and not options.lanes and lanes < 2:
        lanes = max(2, min(8, device.max_compute_units))
    if options.backend == "auto" and not without_scheduler(options.issue, known, memory):
        scheduler = "mix"
        why += " Small kernels that are launched often go to a scheduler on the device."
    placed = placing(*lanes_by, Placing(known.lane_after, known.lane_new))
    if host == "lanes" and set(lanes_by) == {"auto"}:
        why = f"{why.rstrip('.')}; {probe.about_policy(known)}."
    return Plan(
        backend, lanes if host == "lanes" else 1, memory, why, host, known.memory_model, scheduler,
        placed,
    )  # fmt: skip


def without_scheduler(issue: str, known: probe.Probe, memory: str) -> str:
    """Say why 'auto' has no scheduler beside its queues. '': it has one. `ready_first` is an order
    in which launches go to queues, which epochs do not use."""
    if known.memory_model not in ORDERED:
        return "the device orders nothing between the groups of a launch"
    if memory != "svm":
        return "arrays are buffers, whose addresses do not last"
    return "" if issue == "eager" else f"issue={issue!r} is an order for queues"


def about_scheduler(known: probe.Probe) -> str:
    """Say whether 'auto' has a scheduler on a device, with all other options as they are by
    default."""
    why = without_scheduler("eager", known, known.memory)
    if why:
        return f"auto has no scheduler there: {why}."
    return "auto has a scheduler there, too, for small kernels that are launched often."


def create(
    name: str,
    context: cl.Context,
    device: cl.Device,
    lanes: int,
    placing: Placing,
    profiling: bool,
) -> Backend:
    """Make the host backend called `name` on one device."""
    return HostQueues(name, context, device, lanes, profiling, placing)


def create_emulated(context: cl.Context, device: cl.Device, options: object) -> Backend:
    """Make the backend 'emulated'. Nothing else loads the emulator."""
    from .emu.emulate import emulate
    from .emu.emulated import Emulated

    return Emulated(context, device, emulate(options))
