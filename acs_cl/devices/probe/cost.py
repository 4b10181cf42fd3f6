"""Measure the host's cost of a launch, and the time of a launch and a small read.

Input: a bench, and a time limit. Output: the cost fields of a probe, in microseconds.

Invariant: the calls are typed, as the library makes them. Launch costs are the best of a few
batches, since other programs only add time. The read has a median and a 99th percentile, because
users notice those.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import pyopencl as cl

from acs_cl.devices.probe.bench import ITEMS, PART_BYTES, Bench, finish
from acs_cl.records import Report

_LAUNCHES = 40  # in one batch
_BATCHES = 7
_READS = 200


def measure_cost(bench: Bench, *, until: float, notes: list[str]) -> Report:
    """Measure launches in order, behind events, out of order; a launch and a blocking read."""
    source, target = bench.buffer(), bench.buffer()
    kernel = cl.Kernel(bench.program, "acs_probe_tiny")
    kernel.set_scalar_arg_dtypes([None, None, np.uint32])
    first, other = bench.lanes(2)
    single = bench.out_of_order()
    for array in (source, target):
        cl.enqueue_copy(first, array, np.zeros(PART_BYTES, np.uint8))

    def launch(queue: cl.CommandQueue, wait_for: list[cl.Event] | None = None) -> cl.Event:
        return kernel(queue, (ITEMS,), (ITEMS,), source, target, 3, wait_for=wait_for)

    def many(queue: cl.CommandQueue) -> None:
        for _ in range(_LAUNCHES):
            launch(queue)

    def chain() -> None:
        event = launch(first)
        for i in range(_LAUNCHES - 1):  # alternate between the queues: no wait is void
            event = launch(first if i % 2 else other, [event])

    figures: Report = {
        "launch_us": _best_us(lambda: many(first), [first], until),
        "launch_with_event_us": _best_us(chain, [first, other], until),
    }
    if single is not None:
        figures["launch_out_of_order_us"] = _best_us(lambda: many(single), [single], until)

    host = np.zeros(1, np.uint32)
    reads: list[float] = []
    for _ in range(_READS):
        start = time.perf_counter()
        launch(first)
        cl.enqueue_copy(first, host, target)
        reads.append((time.perf_counter() - start) * 1e6)
        if time.monotonic() > until:
            notes.append(f"out of time after {len(reads)} reads")
            break
    reads.sort()
    figures["read_us"] = round(statistics.median(reads), 3)
    figures["read_p99_us"] = round(reads[int((len(reads) - 1) * 0.99)], 3)
    return figures


def _best_us(batch: Callable[[], None], queues: list[cl.CommandQueue], until: float) -> float:
    """Return the host time per launch of the best batch, without remaining work of the device."""
    times = []
    for _ in range(_BATCHES):
        start = time.perf_counter()
        batch()
        times.append((time.perf_counter() - start) * 1e6 / _LAUNCHES)
        finish(queues)
        if time.monotonic() > until:
            break
    return round(min(times), 3)
