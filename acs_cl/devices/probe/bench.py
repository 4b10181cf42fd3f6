"""The bench on which a device is measured: kernels of a known length, queues, a clock.

Input: a device and a context. Output: kernels ready to be enqueued, and the time of a burst of
them.

Invariant: every loop is bounded, and no loop waits for another command. The kernels do integer work
in one group, so several fit on a device with several compute units. Each writes memory of its own,
so only the driver orders them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyopencl as cl

from acs_cl.devices.driver import CommandQueue, run
from acs_cl.devices.probe.facts import build

KERNELS = 32  # in a burst
ITEMS = 32  # in a group: one warp of the narrowest GPUs, a short loop on a CPU
PART_BYTES = 1024  # of memory, for each kernel
_LENGTH_US = {True: 200.0, False: 50.0}  # by "is a CPU": long against the launch itself
_MOST_ROUNDS = 1 << 24

_SOURCE = """
kernel void acs_probe_work(global uint *out, uint rounds) {
    uint x = (uint)get_local_id(0) + 1u;
    for (uint i = 0; i < rounds; ++i) {  /* shifts: no compiler has a closed form for this */
        x ^= x << 13; x ^= x >> 17; x ^= x << 5;
    }
    out[get_local_id(0)] = x;
}
kernel void acs_probe_tiny(global const uint *in, global uint *out, uint value) {
    if (get_global_id(0) == 0) out[0] = in[0] + value;
}
"""


class Bench:
    """One context, its program, and kernels that are ready to be enqueued."""

    def __init__(self, device: cl.Device, context: cl.Context) -> None:
        self.device = device
        self.context = context
        self.cpu = bool(device.type & cl.device_type.CPU)
        self.program = build(device, context, _SOURCE)
        self.rounds = 256
        self.buffers = [self.buffer() for _ in range(KERNELS)]
        self.queue = CommandQueue(context, device)

    def buffer(self) -> cl.Buffer:
        return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, PART_BYTES)

    def out_of_order(self, *, profiled: bool = False) -> cl.CommandQueue | None:
        """Return an out-of-order queue. ``None``: the driver refuses one."""
        wish = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
        try:
            if not self.device.queue_properties & wish:
                return None
            return self._queue(wish, profiled)
        except cl.Error:
            return None

    def lanes(self, count: int, *, profiled: bool = False) -> list[cl.CommandQueue]:
        return [self._queue(0, profiled) for _ in range(count)]

    def _queue(self, properties: Any, profiled: bool) -> cl.CommandQueue:
        if profiled:
            properties |= cl.command_queue_properties.PROFILING_ENABLE
        return CommandQueue(self.context, self.device, properties)

    def work(self, places: Sequence[Any]) -> list[cl.Kernel]:
        """Return one kernel for each place, with its arguments set, ready to be enqueued."""
        kernels = []
        for place in places:
            kernel = cl.Kernel(self.program, "acs_probe_work")
            kernel.set_args(place, np.uint32(self.rounds))
            kernels.append(kernel)
        return kernels

    def calibrate(self, until: float) -> float:
        """Find the rounds for a kernel of the wanted length; return its length in microseconds."""
        wanted_us = _LENGTH_US[self.cpu]
        self._length_us()  # the first launch includes the end of the compilation
        length_us = self._length_us()
        for _ in range(16):
            if length_us >= 0.8 * wanted_us or self.rounds >= _MOST_ROUNDS:
                break
            if time.monotonic() > until:
                break
            # Short kernels are mostly launch costs, so their length means little: small steps.
            factor = min(4.0, max(1.5, wanted_us / length_us))
            self.rounds = min(_MOST_ROUNDS, int(self.rounds * factor))
            length_us = self._length_us()
        return length_us

    def _length_us(self) -> float:
        kernels = self.work(self.buffers[:4])
        return min(burst_us(kernels, [self.queue]) for _ in range(3)) / len(kernels)


def burst_us(kernels: Sequence[cl.Kernel], queues: Sequence[cl.CommandQueue]) -> float:
    """Return the host time from the first enqueue to the last end. The queues get kernels in
    turns."""
    start = time.perf_counter()
    deal(kernels, queues)
    return (time.perf_counter() - start) * 1e6


def deal(kernels: Sequence[cl.Kernel], queues: Sequence[cl.CommandQueue]) -> list[cl.Event]:
    count = len(queues)
    events = [run(queues[i % count], kernel, ITEMS, ITEMS) for i, kernel in enumerate(kernels)]
    finish(queues)
    return events


def finish(queues: Sequence[cl.CommandQueue]) -> None:
    """Wait for all queues. Each of them has begun before the first one is waited for."""
    for queue in queues:
        queue.flush()
    for queue in queues:
        queue.finish()
