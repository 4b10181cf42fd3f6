"""Unmodified programs of PyOpenCL, on `acs.Queue` against their own in-order queue.

Input: a device. Output: times of five programs on either queue, interleaved, as ratios. Three have
nearly empty kernels, so that only the host's work counts: `array`, arithmetic of `pyopencl.array`;
`calls`, kernels with typed arguments, called; `enqueues`, one with the same arguments, enqueued.
`chains`: independent chains of one-group kernels, which can gain. `short`: the same with kernels of
a fortieth of the time. Both sides have to give equal results.

Each side has processes of its own. In a shared process the plain queue would also pay for ours,
since memory and drivers keep earlier state. The plain queue is timed by two groups of processes.
Their ratio (`control`) shows the machine's part: processes differ, and with empty kernels the
driver's threads dominate. Hence several processes and many turns.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.processes import Served
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import ratios, spread
from acs_cl.benchmarks.suite.timing import no_collection
from acs_cl.benchmarks.suite.tiny import typed_kernel

PROCESSES = {False: 3, True: 1}  # of a side, by "is quick"
TURNS = {False: 21, True: 3}
CHAIN_TURNS = {False: 7, True: 3}
WARM = 3
"""Runs of each process that do not count."""

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
"""Least ratio of each program."""
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
    """Measure all programs."""
    turns, few = TURNS[settings.quick], CHAIN_TURNS[settings.quick]
    many = {"array": turns, "calls": turns, "enqueues": turns, "chains": few, "short": few}
    return {"rows": {name: _row(settings, name, count) for name, count in many.items()}}


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare the results with their bars."""
    return [
        target(what + _where(result["rows"][name]), result["rows"][name]["ratio"],
               "at least", least, "x")
        for name, (what, least) in BARS.items()
    ]  # fmt: skip


def _where(row: Mapping[str, Any]) -> str:
    """Say that earlier results are of one process, which favours the side that replaces
    functions."""
    return ", in processes of their own" if "processes" in row else ""


Program = Callable[[Any], Any]
PROGRAM = "from acs_cl.benchmarks.suite.measures.queue import serve; serve()"


def _row(settings: Settings, name: str, turns: int) -> dict[str, Any]:
    """Measure one program, by interleaved processes of each side."""
    each = PROCESSES[settings.quick]
    words = [name, str(int(settings.quick)), str(settings.position)]
    made: dict[str, list[Served]] = {"plain": [], "ours": [], "again": []}
    took: dict[str, list[float]] = {side: [] for side in made}
    results = set()
    try:
        for _ in range(each):
            for side, group in made.items():
                group.append(Served(["-c", PROGRAM, side, *words]))
                group[-1].answer()
        for turn in range(turns):
            for at in range(each):
                for side in list(made) if (turn + at) % 2 else list(reversed(made)):
                    ms, result = made[side][at].ask()
                    took[side].append(ms)
                    results.add(result)
    finally:
        for one in (one for group in made.values() for one in group):
            one.end()
    assert len(results) == 1, "results differ"
    return {
        "processes": each,
        "plain_ms": spread(took["plain"], 2),
        "ours_ms": spread(took["ours"], 2),
        "ratio": spread(ratios(took["plain"], took["ours"])),
        "control": spread(ratios(took["plain"], took["again"])),
    }


def serve() -> None:
    """Serve as a side: run a program once for each line, and print its time and its results."""
    side, name, quick, position = sys.argv[1:]
    device = devices.devices()[int(position)]
    devices.repair(device)
    context = cl.Context([device])
    program = _programs(context, bool(int(quick)))[name]()
    queue = acs.Queue(context) if side == "ours" else cl.CommandQueue(context)
    for _ in range(WARM):  # kernels are built, signatures known
        program(queue)
    print(json.dumps("ready"), flush=True)
    for _ in sys.stdin:
        with no_collection():
            start = perf_counter()
            found = program(queue)
            took_ms = (perf_counter() - start) * 1e3
        print(json.dumps([took_ms, hashlib.sha256(found.tobytes()).hexdigest()]), flush=True)


def _programs(context: cl.Context, quick: bool) -> dict[str, Callable[[], Program]]:
    """Return functions that make the programs, by name."""
    return {
        "array": lambda: _array(context, STEPS[quick]),
        "calls": lambda: _calls(context, CALLS[quick], called=True),
        "enqueues": lambda: _calls(context, CALLS[quick], called=False),
        "chains": lambda: _chains(context, ROUNDS),
        "short": lambda: _chains(context, SHORT),
    }


def _array(context: cl.Context, steps: int) -> Program:
    """Return arithmetic of small arrays, so that kernels take no time."""
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
    """Return a chain of one kernel, each launch of which needs the previous one."""
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
    """Return chains that a GPU or a CPU of several cores can run side by side."""
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
