"""Programs of PyOpenCL's, unmodified, on `acs.Queue` against their own in-order queue.

In: a device. Out: times of four programs on either queue, in turns, as ratios. Kernels that take no
time, so that only the host's work counts: `array`, arithmetic of `pyopencl.array`; `calls`, kernels
with typed arguments, called; `enqueues`, one with the same arguments, enqueued. `chains`:
independent chains of kernels of one group each, where there is something to gain; `short`: the same
with kernels of a fortieth. All have to give equal results. No queue of ours lives while the plain
one is timed, so that nothing is intercepted.

The plain queue is timed twice in each turn. What it is over itself (`control`) says how much of a
ratio is the machine's: with kernels that take no time it is the driver's threads that are timed,
and on two CPUs the quartiles of that are as far apart as 0.7 and 1.3. Hence the many turns.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array

import acs_cl as acs
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import ratios, spread
from acs_cl.benchmarks.suite.timing import no_collection
from acs_cl.benchmarks.suite.tiny import typed_kernel

TURNS = {False: 61, True: 3}  # by "is quick"
CHAIN_TURNS = {False: 15, True: 3}
STEPS = {False: 300, True: 40}
CALLS = {False: 2000, True: 200}
CHAINS, LENGTH = 8, 8
BARS = {
    "array": (
        "an unmodified `pyopencl.array` program on `acs.Queue`, speed over its own in-order queue",
        0.95,
    ),
    "calls": ("the same of one that calls a kernel", 0.95),
    "enqueues": ("the same of one that enqueues a kernel", 0.95),
    "chains": ("the same of one with 8 independent chains", 1.5),
    "short": ("the same of one with 8 chains of kernels of a fortieth", 0.95),
}
"""What each program has to reach at least."""
SOURCE = """
kernel void work(global uint *x, uint rounds)
{
  uint v = x[get_global_id(0)];
  for (uint i = 0; i < rounds; i++) v = v * 1664525u + 1013904223u;
  x[get_global_id(0)] = v;
}
"""
ROUNDS = 40_000  # some hundred microseconds on a CPU
SHORT = 1000


def measure(settings: Settings) -> dict[str, Any]:
    """All programs."""
    context = settings.context()
    turns, few = TURNS[settings.quick], CHAIN_TURNS[settings.quick]
    rows = {
        "array": _row(context, turns, _array(context, STEPS[settings.quick])),
        "calls": _row(context, turns, _calls(context, CALLS[settings.quick], called=True)),
        "enqueues": _row(context, turns, _calls(context, CALLS[settings.quick], called=False)),
        "chains": _row(context, few, _chains(context, ROUNDS)),
        "short": _row(context, few, _chains(context, SHORT)),
    }
    return {"rows": rows}


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Hold what was measured against what it has to reach."""
    return [
        target(what, result["rows"][name]["ratio"]["median"], "at least", least, "x",
               result["rows"][name]["ratio"])
        for name, (what, least) in BARS.items()
    ]  # fmt: skip


Program = Callable[[Any], Any]


def _row(context: cl.Context, turns: int, program: Program) -> dict[str, Any]:
    took: dict[str, list[float]] = {"plain": [], "ours": [], "again": []}
    for turn in range(turns):
        results = []
        for which in list(took) if turn % 2 else reversed(took):
            queue = acs.Queue(context) if which == "ours" else cl.CommandQueue(context)
            program(queue)  # kernels are built, signatures known
            with no_collection():
                start = perf_counter()
                results.append(program(queue))
                took[which].append((perf_counter() - start) * 1e3)
            del queue
            gc.collect()
        assert all(np.array_equal(one, results[0]) for one in results), "results differ"
    plain = took["plain"]
    return {
        "plain_ms": spread(plain, 2),
        "ours_ms": spread(took["ours"], 2),
        "ratio": spread(ratios(plain, took["ours"])),
        "control": spread(ratios(plain, took["again"])),
    }


def _array(context: cl.Context, steps: int) -> Program:
    """Small arrays, so that kernels take no time."""
    host = np.arange(256, dtype=np.float32)

    def program(queue: Any) -> Any:
        x = cl.array.to_device(queue, host)
        y = cl.array.zeros(queue, host.shape, host.dtype)
        for step in range(steps):
            y += x
            y[:8] = step
        return y.get()

    return program


def _calls(context: cl.Context, many: int, called: bool) -> Program:
    """A chain of one kernel, each of which needs the one before."""
    kernel = typed_kernel(cl.CommandQueue(context), SOURCE, "work", None, np.uint32)
    start = np.arange(32, dtype=np.uint32)

    def program(queue: Any) -> Any:
        buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, start.nbytes)
        cl.enqueue_copy(queue, buffer, start)
        if called:
            for _ in range(many):
                kernel(queue, (32,), (32,), buffer, 1)
        else:
            kernel.set_args(buffer, 1)
            for _ in range(many):
                cl.enqueue_nd_range_kernel(queue, kernel, (32,), (32,))
        found = np.empty_like(start)
        cl.enqueue_copy(queue, found, buffer)
        return found

    return program


def _chains(context: cl.Context, rounds: int) -> Program:
    """What a GPU or a CPU of several cores runs side by side, if it is allowed to."""
    queue = cl.CommandQueue(context)
    kernel = typed_kernel(queue, SOURCE, "work", None, np.uint32)
    starts = np.arange(CHAINS * 32, dtype=np.uint32).reshape(CHAINS, 32)

    def program(queue: Any) -> Any:
        flags = cl.mem_flags.READ_WRITE
        buffers = [cl.Buffer(context, flags, 128) for _ in range(CHAINS)]
        for buffer, start in zip(buffers, starts, strict=True):
            cl.enqueue_copy(queue, buffer, start)
        for _ in range(LENGTH):
            for buffer in buffers:
                kernel(queue, (32,), (32,), buffer, rounds)
        found = np.empty_like(starts)
        for buffer, row in zip(buffers, found, strict=True):
            cl.enqueue_copy(queue, row, buffer)
        return found

    return program
