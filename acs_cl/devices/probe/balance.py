"""Measure how much arithmetic and how much memory traffic a device does in a microsecond.

Input: a device and a context. Output: a `Balance`, kept beside the probes. It separates kernels
that compute from kernels that wait for memory: which would take longer at these rates.

Invariant: every loop is bounded. The arithmetic is multiply-adds in single precision, several under
way in each item. The memory is a copy larger than the caches.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyopencl as cl

from acs_cl.devices import key, kind
from acs_cl.devices.driver import CommandQueue, run, wait_for_event
from acs_cl.devices.probe.facts import build
from acs_cl.host import files

from ...records import NamedTuple, Report

FORMAT = 1
_KIND = "probe"

LEAST_RUNS, MOST_RUNS = 3, 16
SAME = 1.1
"""Two shortest runs that differ by less agree: both had the device to themselves."""
GROUP = 256
ROUNDS = 4096
"""Turns of the loop, each with `OPERATIONS`."""
OPERATIONS = 16
COPY_BYTES = {True: 1 << 25, False: 1 << 28}
"""By 'is a CPU'."""

_SOURCE = """
kernel void acs_balance_compute(global float *out, uint rounds, float by) {
    float a = get_global_id(0), b = a + 1, c = a + 2, d = a + 3;
    float e = a + 4, f = a + 5, g = a + 6, h = a + 7;
    for (uint i = 0; i < rounds; ++i) {
        a = a * by + b; b = b * by + c; c = c * by + d; d = d * by + e;
        e = e * by + f; f = f * by + g; g = g * by + h; h = h * by + a;
    }
    out[get_global_id(0)] = a + b + c + d + e + f + g + h;
}
kernel void acs_balance_copy(global const float4 *from, global float4 *to) {
    size_t i = get_global_id(0);
    to[i] = from[i];
}
"""


class Balance(NamedTuple):
    """Rates of a whole device."""

    operations_per_us: float
    bytes_per_us: float


def balance(device: cl.Device, context: cl.Context) -> Balance:
    """Return the kept rates of the device, or measure them now, in some tens of milliseconds."""
    found = kept(device)
    if found is None:
        found = measure(device, context)
        keep(device, found)
    return found


def keep(device: cl.Device, rates: Balance) -> None:
    """Keep the rates of a device for the programs to come."""
    files.keep(_KIND, _name(device), FORMAT, rates._asdict())


def kept(device: cl.Device) -> Balance | None:
    """Return the kept rates, if they can be believed."""

    def made(found: Report) -> Balance:
        return Balance(*(float(found[name]) for name in Balance._fields))

    rates = files.kept(_KIND, _name(device), FORMAT, made)
    return rates if rates is not None and min(rates) > 0 else None


def measure(device: cl.Device, context: cl.Context) -> Balance:
    """Measure both rates."""
    program = build(device, context, _SOURCE)
    queue = CommandQueue(context, device, cl.command_queue_properties.PROFILING_ENABLE)
    is_cpu = kind(device) == "CPU"
    items = GROUP * device.max_compute_units * (4 if is_cpu else 16)
    out = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * items)
    nbytes = min(COPY_BYTES[is_cpu], device.max_mem_alloc_size // 4) // 4096 * 4096
    one, two = (cl.Buffer(context, cl.mem_flags.READ_WRITE, nbytes) for _ in range(2))
    compute = cl.Kernel(program, "acs_balance_compute")
    rounds = ROUNDS // (8 if is_cpu else 1)
    compute.set_args(out, np.uint32(rounds), np.float32(0.5))
    copy = cl.Kernel(program, "acs_balance_copy")
    copy.set_args(one, two)
    compute_us = _shortest_us(queue, compute, items)
    copy_us = _shortest_us(queue, copy, nbytes // 16)
    return Balance(OPERATIONS * rounds * items / compute_us, 2 * nbytes / copy_us)


def _shortest_us(queue: cl.CommandQueue, kernel: cl.Kernel, items: int) -> float:
    def run_us() -> float:
        event = run(queue, kernel, items, GROUP)
        queue.flush()
        wait_for_event(event)
        return float(event.profile.end - event.profile.start) / 1e3

    run_us()  # the first run includes the end of the compilation
    return max(agreed_us(run_us), 1e-3)


def agreed_us(run_us: Callable[[], float]) -> float:
    """Return the shortest time of some runs: at least `LEAST_RUNS`, and as many until another one
    came near the shortest, since other programs may hold up each of a few. At most `MOST_RUNS`."""
    found = sorted(run_us() for _ in range(LEAST_RUNS))
    while found[1] > SAME * found[0] and len(found) < MOST_RUNS:
        found = sorted([*found, run_us()])
    return found[0]


def _name(device: cl.Device) -> str:
    return files.name_of(f"balance | {key(device)} | PyOpenCL {cl.VERSION_TEXT}")
