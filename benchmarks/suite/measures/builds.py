"""Cost of background builds of schedulers for the program.

Input: a device. Output: times of launches during a background build of a scheduler, and of as many
without one. Also the time to the first result of a program with 100 kernels, ours over plain
PyOpenCL, in fresh processes, interleaved.

A launch is one call of a kernel that was launched before, on backend 'auto', which mixes lanes and
schedulers. The longest of some hundred thousand calls shows how long the system once took the
thread off its core, with a build or without. So the longest call of a build is compared with the
longest of as many calls beside a process that keeps as many cores busy, in rounds. A build has
processes of its own, and some drivers block all launches while another process opens the device. So
it is also compared with the longest beside as many processes that only do that.
`test_no_launch_waits_for_a_build_however_long_it_takes` holds the compiler, and shows that no
launch ever waits.

Invariants: while launches of a round are timed, all its kernels get into a scheduler, and none was
in one before, or the round is an error. Drivers take 0.3 to 10 s for such a build, so there are as
many rounds as the time allows, and at least `LEAST`.
"""

import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from time import perf_counter, sleep
from typing import Any, NamedTuple

import numpy as np

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.measures.first_results import LEAST, MANY, first_results
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import spread
from acs_cl.benchmarks.suite.timing import no_collection, rounds_in_time

KERNELS = {False: 15, True: 4}  # by "is quick"
"""New kernels that become hot while launches are timed: with the earlier one, all that a scheduler
takes, unless it is a quick run."""

CHUNK = 2000
"""Launches between two polls of the build."""

PAUSE_S = {False: 0.0, True: 0.05}
"""Pause between chunks beside a build, so that a quick run has few of them."""

LAUNCHES_BEFORE = 40
"""Launches that make a new kernel hot."""

LONGEST_BUILD_S = 60.0
"""Time limit of a round."""

DELAYS, DELAYS_S = {False: 9, True: 1}, 34.0
"""Most rounds, and their time."""


QUIET_CHUNKS = {False: 50, True: 5}
EDGES_US = np.geomspace(0.01, 1e8, 2001)
"""Edges between which times are counted: each is 1.2 % above the previous one."""

MOST_DELAY_MS = 1.0
MOST_RATIO = 1.1

OPENS = """
import pyopencl as cl, sys
cl.Context([[one for of in cl.get_platforms() for one in of.get_devices()][int(sys.argv[1])]])
"""
PROCESSES = 2
"""Processes of a build that open the device: one translates, one compiles."""

WARM = "kernel void warm(global float *x, float a) { x[get_global_id(0)] += a; }"


def measure(settings: Settings) -> dict[str, Any]:
    """Measure launches beside builds, and the first result of many kernels."""
    delays = _delays(settings)
    first = first_results(settings)
    return {"delays": delays, "first_result": first}


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare the results with their bars. The longest of all rounds shows whether any launch was
    delayed; the median of the rounds is for comparison."""
    delays, ratio = result["delays"], result["first_result"]["ratio"]
    found = [
        target(f"first result of {MANY[False]} kernels over plain PyOpenCL", ratio,
               "at most", MOST_RATIO, "x"),
    ]  # fmt: skip
    if delays is None:
        return found
    longest, above = delays["longest_us"], delays["above_loaded_ms"]
    built_us = longest["building"]["max"]
    own_us = max(longest[name]["max"] for name in ("loaded", "quiet"))
    if "opening" in longest:  # results from before 2026-11-23 have none
        opening_us = max(own_us, longest["opening"]["max"])
        found.insert(0, target(
            "the same, above the longest beside processes that only open the device, too",
            (built_us - opening_us) / 1e3, "at most", MOST_DELAY_MS, "ms",
        ))  # fmt: skip
    return [
        target("longest launch of all while a scheduler is built, above the longest of all without",
               (built_us - own_us) / 1e3, "at most", MOST_DELAY_MS, "ms"),
        target("longest launch while a scheduler is built, above the longest of as many beside a "
               "busy process, middle of the rounds", above, "at most", None, "ms"),
        *found,
    ]  # fmt: skip


class _Took:
    """Times of launches, and of the wait behind each chunk of them."""

    def __init__(self) -> None:
        self.launches = 0
        self.longest_us = 0.0
        self.longest_wait_us = 0.0
        self.counts = np.zeros(len(EDGES_US) + 1, np.int64)

    def add(self, calls_us: list[float], wait_us: float) -> None:
        """Add a chunk."""
        self.launches += len(calls_us)
        self.longest_us = max(self.longest_us, *calls_us)
        self.longest_wait_us = max(self.longest_wait_us, wait_us)
        places = np.searchsorted(EDGES_US, calls_us)
        self.counts += np.bincount(places, minlength=len(self.counts))


class _Round(NamedTuple):
    """One build and its time: launches beside it, a busy process, and processes that open the
    device."""

    building: _Took
    loaded: _Took
    opening: _Took
    build_s: float


def _delays(settings: Settings) -> dict[str, Any] | None:
    """Measure microseconds of launches beside a build, beside a busy process, and alone. None: no
    scheduler."""
    rounds: list[_Round] = []
    for number in rounds_in_time(LEAST[settings.quick], DELAYS[settings.quick], DELAYS_S):
        one = _one_round(settings)
        if one is None:
            return None
        rounds.append(one)
        print(
            f"  round {number + 1}: a build of {one.build_s:.1f} s, {one.building.launches:,} "
            f"launches, the longest {one.building.longest_us / 1e3:.2f} ms, beside a busy process "
            f"{one.loaded.longest_us / 1e3:.2f} ms, beside such as open the device "
            f"{one.opening.longest_us / 1e3:.2f} ms",
            flush=True,
        )
    took = {
        "building": [one.building for one in rounds],
        "loaded": [one.loaded for one in rounds],
        "opening": [one.opening for one in rounds],
        "quiet": [_quiet(settings)],
    }
    above = [one.building.longest_us - one.loaded.longest_us for one in rounds]
    return {
        "build_s": spread([one.build_s for one in rounds]),
        "launches": {name: sum(one.launches for one in ones) for name, ones in took.items()},
        "us": {name: _quantiles(sum(one.counts for one in ones)) for name, ones in took.items()},
        "longest_us": {
            name: spread([one.longest_us for one in ones], 1) for name, ones in took.items()
        },
        "longest_wait_ms": {
            name: spread([one.longest_wait_us / 1e3 for one in ones]) for name, ones in took.items()
        },
        "above_loaded_ms": spread([us / 1e3 for us in above]),
    }


def _quantiles(counts: Any) -> dict[str, float]:
    """Return quantiles of times counted between edges: the edge above, in microseconds."""
    upto = np.cumsum(counts)
    return {
        f"p{100 * q:g}": round(float(EDGES_US[np.searchsorted(upto, q * upto[-1])]), 3)
        for q in (0.5, 0.99, 0.999, 0.9999)
    }


class _Warm:
    """A runtime with one kernel in a scheduler, which is launched and timed."""

    def __init__(self, runtime: acs.Runtime) -> None:
        self.runtime = runtime
        self.x = runtime.zeros(64)
        self.kernel = runtime.build(WARM).warm
        for _ in range(200):
            self.kernel((64,), None, self.x, 0.5)
        runtime.prebuild(self.kernel)
        runtime.finish()

    def timed(self, is_enough: Callable[[int], bool], pause_s: float = 0.0) -> _Took:
        """Time launches until `is_enough` says so after a number of chunks, with pauses between
        these. Waits for the backlog count separately."""
        took, runtime, kernel, x = _Took(), self.runtime, self.kernel, self.x
        with no_collection():
            for chunk in count(1):
                calls = []
                for _ in range(CHUNK):
                    start = perf_counter()
                    kernel((64,), None, x, 0.5)
                    calls.append((perf_counter() - start) * 1e6)
                start = perf_counter()
                runtime.finish()
                took.add(calls, (perf_counter() - start) * 1e6)
                if is_enough(chunk):
                    break
                if pause_s:
                    sleep(pause_s)
        return took


def _quiet(settings: Settings) -> _Took:
    """Time launches with nothing beside."""
    with acs.Runtime(settings.device) as runtime:
        return _Warm(runtime).timed(lambda chunk: chunk == QUIET_CHUNKS[settings.quick])


def _one_round(settings: Settings) -> _Round | None:
    with acs.Runtime(settings.device) as runtime:
        if "scheduler" not in runtime.stats():
            return None
        # a new program each time, so that no cache has it
        mark = uuid.uuid4().hex
        text = "\n".join(
            f"kernel void k{i}(global float *x, float a) {{ /* {mark} */ int n = get_global_id(0);"
            f" for (int j = 0; j < {i} + 2; ++j) x[n] = x[n] * a + {i}.5f / (x[n] + 2.0f); }}"
            for i in range(KERNELS[settings.quick])
        )
        program = runtime.build(text)
        fresh = {name: getattr(program, name) for name in program.kernels}
        warm = _Warm(runtime)
        for kernel in fresh.values():  # compiled as kernels, signatures known
            kernel((64,), None, warm.x, 0.5)
        runtime.finish()
        warm.timed(lambda chunk: chunk == 10)
        start = perf_counter()
        for _ in range(LAUNCHES_BEFORE):  # interleaved, so that one build takes them all
            for kernel in fresh.values():
                kernel((64,), None, warm.x, 0.5)
        runtime.finish()
        backend: Any = runtime.engine.backend
        for kernel in fresh.values():  # one that took long, beside others, would not be asked for
            backend.schedulers.ask(kernel.native.origin, 0)

        def is_built(chunk: int) -> bool:
            if perf_counter() - start > LONGEST_BUILD_S:
                raise RuntimeError(
                    f"{sorted(_missing(runtime, fresh))} were in no scheduler after "
                    f"{LONGEST_BUILD_S:.0f} s: {runtime.stats()['scheduler']['on_lanes']}"
                )
            return not _missing(runtime, fresh)

        if not _missing(runtime, fresh):
            raise RuntimeError("the scheduler was built before launches were timed")
        building = warm.timed(is_built, PAUSE_S[settings.quick])
        build_s = perf_counter() - start
        chunks = building.launches // CHUNK
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            loaded = warm.timed(lambda chunk: chunk == chunks)
        finally:
            busy.kill()
            busy.wait()
        opening = _while_opened(warm, devices.devices().index(runtime.device), chunks)
    return _Round(building, loaded, opening, build_s)


def _while_opened(warm: _Warm, place: int, chunks: int) -> _Took:
    """Time as many launches while processes open the device one after another."""
    order = [sys.executable, "-c", OPENS, str(place)]
    left, process = PROCESSES - 1, subprocess.Popen(order)

    def is_enough(chunk: int) -> bool:
        nonlocal left, process
        if process.poll() is not None and left:
            left, process = left - 1, subprocess.Popen(order)
        return chunk >= chunks and process.poll() is not None

    try:
        return warm.timed(is_enough)
    finally:
        process.kill()
        process.wait()


def _missing(runtime: acs.Runtime, names: Iterable[str]) -> set[str]:
    """Return the kernels that are in no scheduler."""
    there = runtime.stats()["scheduler"]["schedulers"]
    return set(names).difference(*(one["kernels"] for one in there))
