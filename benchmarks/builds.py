"""What builds of schedulers cost the program beside which they happen.

In: a device. Out: how long launches took while schedulers were built in the background and while
none were, in one process; and the time to the first result of a program with 100 kernels, ours over
plain PyOpenCL, in fresh processes in turns.

A launch is one call of a kernel that was launched before, on backend 'auto', which mixes lanes and
schedulers. The delay by a build is the longest such call while builds run, less the longest while
none do: on a busy machine a thread may lose its core for milliseconds without any build.
"""

from __future__ import annotations

import json
import tempfile
import uuid
from pathlib import Path
from time import perf_counter
from typing import Any

import acs_cl as acs
from acs_cl.benchmarks.harness import (
    Settings,
    fresh_python,
    no_collection,
    quantile,
    spread,
    target,
)
from acs_cl.benchmarks.startup import PLAIN_BEGIN, caches

KERNELS = 20
"""New kernels that become hot while launches are timed."""

LAUNCHES = {False: 60_000, True: 5_000}  # by "is quick"
ROUNDS = {False: 7, True: 1}
MOST_DELAY_MS = 1.0
MOST_RATIO = 1.1
MANY = 100

WARM = "kernel void warm(global float *x, float a) { x[get_global_id(0)] += a; }"


def measure(settings: Settings) -> dict[str, Any]:
    """Launches beside builds, and the first result of many kernels."""
    delays = [_delays(settings) for _ in range(1 if settings.quick else 3)]
    best = min(delays, key=lambda one: one["delay_ms"])
    first = _first_results(settings)
    return {
        "delays": delays,
        "first_result": first,
        "targets": [
            target("longest launch while schedulers are built, above the longest while none are",
                   best["delay_ms"], "at most", MOST_DELAY_MS, "ms"),
            target(f"first result of {MANY} kernels over plain PyOpenCL", first["ratio"]["median"],
                   "at most", MOST_RATIO, "x", first["ratio"]),
        ],
    }  # fmt: skip


def _delays(settings: Settings) -> dict[str, Any]:
    count = LAUNCHES[settings.quick]
    with acs.Runtime(settings.device) as runtime:
        x = runtime.zeros(64)
        warm = runtime.build(WARM).warm
        # a new program each time, so that no cache has it
        mark = uuid.uuid4().hex
        text = "\n".join(
            f"kernel void k{i}(global float *x, float a) {{ /* {mark} */ int n = get_global_id(0);"
            f" for (int j = 0; j < {i} + 2; ++j) x[n] = x[n] * a + sin(x[n]) * {i}.5f; }}"
            for i in range(KERNELS)
        )
        program = runtime.build(text)
        fresh = [getattr(program, f"k{i}") for i in range(KERNELS)]
        for kernel in (warm, *fresh):  # compiled as kernels, signatures known
            kernel((64,), None, x, 0.5)
        for _ in range(200):
            warm((64,), None, x, 0.5)
        runtime.prebuild(warm)
        runtime.finish()
        quiet = _timed(runtime, warm, x, count)
        builds = runtime.stats().get("scheduler", {}).get("builds", 0)
        for kernel in fresh:
            for _ in range(40):
                kernel((64,), None, x, 0.5)
        busy = _timed(runtime, warm, x, count)
        runtime.finish()
        scheduler = runtime.stats().get("scheduler", {})
    return {
        "builds_before": builds,
        "builds_after": scheduler.get("builds", 0),
        "quiet_us": {"p99.9": quantile(quiet, 0.999), "max": max(quiet)},
        "building_us": {"p99.9": quantile(busy, 0.999), "max": max(busy)},
        "delay_ms": round((max(busy) - max(quiet)) / 1e3, 3),
    }


def _timed(runtime: acs.Runtime, kernel: Any, x: Any, count: int) -> list[float]:
    """Microseconds of each launch; what waits for the backlog is not a launch's own."""
    took = []
    with no_collection():
        for index in range(count):
            if index % 2000 == 0:
                runtime.finish()
            start = perf_counter()
            kernel((64,), None, x, 0.5)
            took.append((perf_counter() - start) * 1e6)
    return took


_SOURCE = f"""
from time import perf_counter
begin = perf_counter()
SOURCE = chr(10).join(
    f"kernel void k{{i}}(global float *x, float a) {{{{ x[get_global_id(0)] += a + {{i}}.0f; }}}}"
    for i in range({MANY})
)
"""

_PLAIN = f"""
x = cl.Buffer(context, cl.mem_flags.READ_WRITE, 256)
host = np.zeros(64, np.float32)
cl.enqueue_copy(queue, x, host)
for i in range({MANY}):
    kernel = getattr(program, f"k{{i}}")
    kernel.set_scalar_arg_dtypes([None, np.float32])
    kernel(queue, (64,), None, x, 1)
cl.enqueue_copy(queue, host, x)
result = host
"""

_OURS = f"""
import sys
import numpy as np
import acs_cl as acs
excluded = 0.0
rt = acs.Runtime(int(sys.argv[1]))
x = rt.zeros(64)
program = rt.build(SOURCE)
for i in range({MANY}):
    getattr(program, f"k{{i}}")((64,), None, x, 1)
result = x.get()
"""

_END = f"""
took = perf_counter() - begin - excluded
assert abs(result[0] - {MANY} - sum(range({MANY}))) < 1, result[0]
import json
print(json.dumps({{"took_s": took, "excluded_s": excluded}}))
"""


def _first_results(settings: Settings) -> dict[str, Any]:
    took: dict[str, list[float]] = {"plain": [], "ours": []}
    programs = {"plain": _SOURCE + PLAIN_BEGIN + _PLAIN + _END, "ours": _SOURCE + _OURS + _END}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(ROUNDS[settings.quick] + 1):
            for name in list(programs)[:: 1 if turn % 2 else -1]:
                words = caches(Path(folder, name))
                printed, wall_s = fresh_python(
                    ["-c", programs[name], str(settings.position)], **words
                )
                if turn:  # the first one fills the caches
                    took[name].append(wall_s - json.loads(printed)["excluded_s"])
    ratios = [a / b for a, b in zip(took["ours"], took["plain"], strict=True)]
    return {
        "ours_s": spread(took["ours"], 4),
        "plain_s": spread(took["plain"], 4),
        "ratio": spread(ratios),
    }
