"""Probe: measure once how a device runs concurrent launches, and choose settings by that.

Input: a ``pyopencl.Device``. Output: a frozen :class:`Probe` with figures, a choice of backend,
lanes and memory, and a sentence that gives the reasons.

Invariant: a probe that says ``measured`` was measured on this device with this driver, this acs_cl
and this PyOpenCL. Any other probe has no figure. ``quick`` and ``assume`` run nothing on the
device, so the default backend does not slow down the start of a program.

    record   the frozen record, to and from JSON
    facts    declarations of the driver, and test compiles
    bench    kernels of a known length, queues, a clock
    overlap  what runs together, on which queues and memory
    policies the best policy of lanes
    cost     times of a launch and a read
    choice   figures to backend, lanes, memory and the sentence; pure
    store    the files in the user's cache folder
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable

import pyopencl as cl

from acs_cl.devices import advice, full_name, key, kind, repair
from acs_cl.devices.probe import choice, facts, store
from acs_cl.devices.probe.choice import about_policy
from acs_cl.devices.probe.record import Gain, Probe
from acs_cl.errors import DeviceError
from acs_cl.records import Report

__all__ = [
    "Gain", "Probe", "about_policy", "assume", "check_build", "measure", "probe", "quick",
]  # fmt: skip


Say = Callable[[str, float], None]
"""Gets the present step, and the share that is done."""


def _silent(what: str, share: float) -> None:
    """Ignore progress."""


def probe(
    device: cl.Device, *, fresh: bool = False, budget_s: float = 10.0, say: Say = _silent
) -> Probe:
    """Return the cached probe of *device*. If there is none, or if *fresh*, measure.

    A new measurement is cached, unless other programs disturbed it too much.
    """
    cached = None if fresh else quick(device)
    if cached is not None:
        return cached
    measured = measure(device, budget_s=budget_s, say=say)
    if measured.settled:
        store.save(key(device), measured)
    return measured


def quick(device: cl.Device) -> Probe | None:
    """Return the cached probe, or ``None``; never measure."""
    return store.load(key(device))


def check_build(device: cl.Device) -> None:
    """Raise an error if this process can build no kernel for *device*. A cached probe does not
    tell: another process may have repaired the driver."""
    repair(device)
    try:
        facts.check_build(device)
    except cl.Error as error:
        raise _unusable(device, error) from error


def _unusable(device: cl.Device, error: cl.Error) -> DeviceError:
    said = f"{error}{advice(str(error))}"
    return DeviceError(f"{full_name(device)} cannot be measured: {said}")


def assume(device: cl.Device) -> Probe:
    """Return general knowledge about such drivers, without measuring: see :func:`choice.guess`."""
    return choice.guess(_declared(device))


def measure(device: cl.Device, *, budget_s: float = 10.0, say: Say = _silent) -> Probe:
    """Measure *device* now, usually in one to three seconds.

    Steps that do not fit into *budget_s* are left out, and ``notes`` says so.
    """
    # Here, because most programs find a cached probe and should not load these modules.
    from acs_cl.devices.probe.bench import Bench
    from acs_cl.devices.probe.cost import measure_cost
    from acs_cl.devices.probe.overlap import measure_overlap
    from acs_cl.devices.probe.policies import measure_policies

    say("what it declares", 0.0)
    repair(device)
    start = time.monotonic()
    until = start + budget_s
    notes: list[str] = []
    try:
        declared = _declared(device)
        context = cl.Context([device])
        declared = declared._replace(
            memory_model=facts.memory_model(device, context),
            argument_info=facts.argument_info(device, context),
        )
        say("how long a kernel lasts", 0.1)
        bench = Bench(device, context)
        figures: Report = {"kernel_us": round(bench.calibrate(until), 1)}
        say("what a launch costs", 0.3)
        figures |= measure_cost(bench, until=until, notes=notes)
        say("what overlaps", 0.5)
        figures |= measure_overlap(bench, svm=declared.svm != "none", until=until, notes=notes)
        best = choice.enough(figures["lane_gains"])
        if best is not None and best.lanes > 1:
            figures["lane_policies"] = measure_policies(bench, best.lanes, until, notes)
    except cl.Error as error:
        raise _unusable(device, error) from error
    return choice.decide(
        declared._replace(
            measured=True,
            measured_on=datetime.date.today().isoformat(),
            took_s=round(time.monotonic() - start, 3),
            notes=tuple(notes),
            **figures,
        )
    )


def _declared(device: cl.Device) -> Probe:
    may_poll, note = facts.may_poll(device)
    return Probe(
        device=full_name(device),
        driver=device.driver_version.strip(),
        kind=kind(device),
        compute_units=device.max_compute_units,
        memory_model=facts.declared_memory_model(device),
        may_poll=may_poll,
        may_poll_note=note,
        svm=facts.svm(device),
        command_buffers="cl_khr_command_buffer" in device.extensions.split(),
        sub_buffer_align_bytes=max(1, device.mem_base_addr_align // 8),
    )
