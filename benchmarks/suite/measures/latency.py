"""Latency of one launch and a read-back of four bytes, against bare PyOpenCL.

Input: a device. Output: microseconds from the call to the value, by backend, interleaved with a
typed PyOpenCL call and a blocking copy on the same kind of queue. Both make a new NumPy array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import quantile, spread
from acs_cl.benchmarks.suite.timing import no_collection
from acs_cl.benchmarks.suite.tiny import ONE, Bare, Ours

READS = {False: 3000, True: 150}  # by "is quick"
BLOCK = 50
MOST_RATIO = 1.3
MOST_TAIL = 2.0


def measure(settings: Settings) -> dict[str, Any]:
    """Measure every backend that the device has, and `auto`."""
    context = settings.context()
    rows = {
        name: _row(context, name, READS[settings.quick]) for name in [*settings.backends(), "auto"]
    }
    return {"rows": rows}


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare the results with their bars."""
    auto = result["rows"]["auto"]
    return [
        target("launch and `get` of 4 bytes over bare PyOpenCL, `auto`",
               auto["ratio"], "at most", MOST_RATIO, "x"),
        target("its 99th percentile over its median", auto["ours"]["tail"], "at most",
               MOST_TAIL, "x"),
    ]  # fmt: skip


def _row(context: cl.Context, backend: str, reads: int) -> dict[str, Any]:
    with acs.Runtime(context=context, backend=backend) as runtime:
        taken = runtime.stats()["backend"]
        bare = Bare(context, runtime.device, taken, 1)
        pair = (_ours(Ours(runtime)), _bare(bare))
        for _ in range(20):
            for once in pair:
                once()
        times: tuple[list[float], list[float]] = ([], [])
        with no_collection():
            for turn in range(reads):
                for which in (0, 1) if turn % 2 else (1, 0):
                    times[which].append(pair[which]())
    ours, theirs = times
    blocks = [slice(first, first + BLOCK) for first in range(0, reads, BLOCK)]
    ratios = [quantile(ours[part], 0.5) / quantile(theirs[part], 0.5) for part in blocks]
    return {
        "backend": taken,
        "ours": _figures(ours),
        "bare": _figures(theirs),
        "ratio": spread(ratios),
    }


def _figures(times_us: list[float]) -> dict[str, Any]:
    middle, tail = quantile(times_us, 0.5), quantile(times_us, 0.99)
    return spread(times_us, 2) | {"p99": round(tail, 2), "tail": round(tail / middle, 3)}


def _ours(ours: Ours) -> Callable[[], float]:
    kernel = ours.kernel
    x, y = ours.array(), ours.array()[:1]
    ours.runtime.finish()

    def once() -> float:
        start = perf_counter()
        kernel(ONE, ONE, x, y, 3)
        value = y.get()
        took = perf_counter() - start
        assert value[0] == 3
        return took * 1e6

    return once


def _bare(bare: Bare) -> Callable[[], float]:
    kernel, queue = bare.kernel, bare.queues[0]
    x, y = bare.array(), bare.array()
    ordered = not bare.out_of_order

    def once() -> float:
        start = perf_counter()
        event = kernel(queue, ONE, ONE, x, y, 3)
        value = np.empty(1, np.uint32)
        cl.enqueue_copy(queue, value, y, wait_for=None if ordered else [event])
        took = perf_counter() - start
        assert value[0] == 3
        return took * 1e6

    return once
