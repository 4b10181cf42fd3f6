"""What builds of schedulers cost the program beside which they happen.

In: a device. Out: how long launches took while a scheduler was built in the background, and as many
while none was; and the time to the first result of a program with 100 kernels, ours over plain
PyOpenCL, in fresh processes in turns.

A launch is one call of a kernel that was launched before, on backend 'auto', which mixes lanes and
schedulers. The longest of some hundred thousand calls says how long the system once took the thread
off its core, with a build or without. So the longest call of a build is compared with the longest
of as many calls without one, in rounds: with nothing beside, and beside a process that keeps as
many cores busy as a build does. What is told is the middle of the differences; a launch that waited
for builds would be in each round. That none ever does, however long a build takes, is shown by
`test_no_launch_waits_for_a_build_however_long_it_takes`, which holds the compiler.
"""

import json
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

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

KERNELS = 15
"""New kernels that become hot while launches are timed: with the one before, all that a scheduler
takes."""

CHUNK = 2000
"""Launches between two looks whether the build has ended."""

MOST_CHUNKS = 2000
DELAY_ROUNDS = {False: 9, True: 1}  # by "is quick"
ROUNDS = {False: 7, True: 1}
MOST_DELAY_MS = 1.0
MOST_RATIO = 1.1
MANY = 100

WARM = "kernel void warm(global float *x, float a) { x[get_global_id(0)] += a; }"


def measure(settings: Settings) -> dict[str, Any]:
    """Launches beside builds, and the first result of many kernels."""
    delays = _delays(settings)
    first = _first_results(settings)
    return {
        "delays": delays,
        "first_result": first,
        "targets": [
            target("longest launch while a scheduler is built, above the longest of as many beside "
                   "a busy process, middle of the rounds", delays["above_loaded_ms"]["median"],
                   "at most", MOST_DELAY_MS, "ms", delays["above_loaded_ms"]),
            target(f"first result of {MANY} kernels over plain PyOpenCL", first["ratio"]["median"],
                   "at most", MOST_RATIO, "x", first["ratio"]),
        ],
    }  # fmt: skip


def _delays(settings: Settings) -> dict[str, Any]:
    """Microseconds of launches beside a build, with nothing beside, and beside a busy process."""
    rounds = [_one_round(settings) for _ in range(DELAY_ROUNDS[settings.quick])]
    longest = {name: [max(one[name].calls) for one in rounds] for name in rounds[0]}
    waits = {name: [max(one[name].waits) / 1e3 for one in rounds] for name in rounds[0]}
    all_of = {name: sorted(us for one in rounds for us in one[name].calls) for name in rounds[0]}

    def above(name: str) -> dict[str, Any]:
        pairs = zip(longest["building"], longest[name], strict=True)
        return spread([(building - other) / 1e3 for building, other in pairs])

    return {
        "launches": {name: len(took) for name, took in all_of.items()},
        "us": {
            name: {f"p{100 * q:g}": quantile(took, q) for q in (0.5, 0.99, 0.999, 0.9999)}
            for name, took in all_of.items()
        },
        "longest_us": {name: spread(took, 1) for name, took in longest.items()},
        "longest_wait_ms": {name: spread(took) for name, took in waits.items()},
        "above_quiet_ms": above("quiet"),
        "above_loaded_ms": above("loaded"),
    }


class _Took(NamedTuple):
    """Microseconds of each launch, and of the wait behind each chunk of them."""

    calls: list[float]
    waits: list[float]


def _one_round(settings: Settings) -> dict[str, _Took]:
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
        _timed(runtime, warm, x, lambda chunk: chunk == 10)
        scheduler = runtime.stats().get("scheduler")
        before = scheduler["builds"] if scheduler else 0
        for kernel in fresh:
            for _ in range(40):
                kernel((64,), None, x, 0.5)
        runtime.finish()

        def is_built(chunk: int) -> bool:
            if scheduler is None or chunk == MOST_CHUNKS:
                return True
            there: int = runtime.stats()["scheduler"]["builds"]
            return there > before

        building = _timed(runtime, warm, x, is_built)
        chunks = len(building.waits)
        quiet = _timed(runtime, warm, x, lambda chunk: chunk == chunks)
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            loaded = _timed(runtime, warm, x, lambda chunk: chunk == chunks)
        finally:
            busy.kill()
            busy.wait()
    return {"building": building, "quiet": quiet, "loaded": loaded}


def _timed(runtime: acs.Runtime, kernel: Any, x: Any, is_enough: Callable[[int], bool]) -> _Took:
    """Launches until it is enough after so many chunks; what waits for the backlog is not a
    launch's own."""
    took = _Took([], [])
    with no_collection():
        for chunk in count(1):
            for _ in range(CHUNK):
                start = perf_counter()
                kernel((64,), None, x, 0.5)
                took.calls.append((perf_counter() - start) * 1e6)
            start = perf_counter()
            runtime.finish()
            took.waits.append((perf_counter() - start) * 1e6)
            if is_enough(chunk):
                break
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
