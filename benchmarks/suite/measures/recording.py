"""Launches for the device's own scheduler, from Python: a part of `native`.

Input: a device. Output: microseconds per launch of two arrays and two numbers, one group each, in
graphs that are new each time: independent launches, 64 chains, one chain. By a loop of calls and by
one `launch_many`:

- `record_us`: recording alone, hazards included, the epoch kept open meanwhile;
- `call_us`, `end_us`: with epochs sent as usual, until the last call has returned, and until all
  has run;
- `over_bare`: how many times faster to the end than PyOpenCL's typed calls on an in-order queue, in
  the same round.

The results are compared with those of as many launches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import ratios, spread
from acs_cl.benchmarks.suite.timing import interleave
from acs_cl.benchmarks.suite.tiny import typed_kernel
from acs_cl.scheduler import backend as device_backend
from acs_cl.scheduler import sender

SOURCE = """
kernel void add(global const uint *x, global uint *y, uint a, int b)
{ size_t i = get_global_id(0); y[i] += x[i] * a + b; }
"""
GROUP = (64,)
A, B = 3, 4
SHAPES = {"independent": 4096, "64 chains": 64, "one chain": 1}
"""Pairs of arrays that the launches use in turn."""

LAUNCHES = 4096
ROUNDS = {False: 31, True: 3}  # by "is quick"
LOOP_US, MANY_US = 0.5, 0.1
END_US, OVER_BARE = 1.0, 3.0
"""Bars of the time to the end: on a GPU, and on PoCL."""

Launch = Callable[[slice], None]
"""Makes some of the launches."""

Sample = tuple[float, float]
"""Microseconds per launch, until the last call has returned and until all has run."""


def measure(settings: Settings) -> dict[str, Any]:
    """Measure all shapes by all methods, interleaved; or return why the device has no scheduler."""
    context = settings.context()
    try:
        runtime = acs.Runtime(context=context, backend="device", predict=False)
    except acs.UsageError as error:
        return {"refused": str(error)}
    with runtime:
        samplers: dict[str, Callable[[], Sample]] = {}
        ours = {shape: Ours(runtime, pairs) for shape, pairs in SHAPES.items()}
        for shape, one in ours.items():
            for way, launch in (("loop", one.loop), ("many", one.many)):
                samplers[f"record {shape} {way}"] = one.recording(launch)
                samplers[f"run {shape} {way}"] = one.running(launch)
            samplers[f"run {shape} bare"] = Bare(context, settings.device, SHAPES[shape]).sample
        for sampler in samplers.values():
            sampler()
        samples = interleave(samplers, ROUNDS[settings.quick])
        for one in ours.values():
            one.check()
    return {shape: _row(samples, shape) for shape in SHAPES}


def _row(samples: dict[str, list[Sample]], shape: str) -> dict[str, Any]:
    row: dict[str, Any] = {}
    bare = [end for _, end in samples[f"run {shape} bare"]]
    for way in ("loop", "many", "bare"):
        calls, ends = zip(*samples[f"run {shape} {way}"], strict=True)
        row[way] = {"call_us": spread(calls), "end_us": spread(ends)}
        if way != "bare":
            row[way]["record_us"] = spread([took for took, _ in samples[f"record {shape} {way}"]])
            row[way]["over_bare"] = spread(ratios(bare, ends))
    return row


class Ours:
    """Launches on the scheduler, by a loop of calls or by one."""

    def __init__(self, runtime: acs.Runtime, pairs: int) -> None:
        self.runtime = runtime
        self.kernel = runtime.build(SOURCE).add
        runtime.prebuild(self.kernel)
        ones = np.ones(GROUP, np.uint32)
        arrays = [(runtime.array(ones), runtime.zeros(GROUP, np.uint32)) for _ in range(pairs)]
        self.arrays = arrays
        self.pairs = [arrays[number % pairs] for number in range(LAUNCHES)]
        columns = [list(column) for column in zip(*self.pairs, strict=True)]
        numbers = np.full(LAUNCHES, A, np.uint32), np.full(LAUNCHES, B, np.int32)
        self.columns: list[Any] = [*columns, *numbers]
        self.launched = 0

    def loop(self, some: slice) -> None:
        kernel = self.kernel
        for x, y in self.pairs[some]:
            kernel(GROUP, GROUP, x, y, A, B)

    def many(self, some: slice) -> None:
        self.kernel.launch_many(GROUP, GROUP, *(column[some] for column in self.columns))

    def recording(self, launch: Launch) -> Callable[[], Sample]:
        """Sample recording. The first launch opens the epoch; one after the last would send it."""

        def sample() -> Sample:
            self.runtime.finish()
            with kept_open(self.runtime):
                self.loop(slice(1))
                start = perf_counter()
                launch(slice(1, LAUNCHES - 1))
                took_s = perf_counter() - start
                self.runtime.finish()
            self.launched += LAUNCHES - 1
            return took_s * 1e6 / (LAUNCHES - 2), 0.0

        return sample

    def running(self, launch: Launch) -> Callable[[], Sample]:
        def sample() -> Sample:
            self.runtime.finish()
            start = perf_counter()
            launch(slice(LAUNCHES))
            called = perf_counter()
            self.runtime.finish()
            self.launched += LAUNCHES
            return _us(called - start), _us(perf_counter() - start)

        return sample

    def check(self) -> None:
        """Check that each launch was run once."""
        found = [y.get() for _, y in self.arrays]
        even = all((values == values[0]).all() for values in found)
        if not even or sum(int(values[0]) for values in found) != self.launched * (A + B):
            raise RuntimeError("the launches left something else than they should have")


class Bare:
    """The same launches with PyOpenCL's typed call on an in-order queue."""

    def __init__(self, context: cl.Context, device: cl.Device, pairs: int) -> None:
        self.queue = cl.CommandQueue(context, device)
        self.kernel = typed_kernel(self.queue, SOURCE, "add", None, None, np.uint32, np.int32)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        ones = np.ones(GROUP, np.uint32)
        buffers = [[cl.Buffer(context, flags, hostbuf=ones) for _ in "xy"] for _ in range(pairs)]
        self.pairs = [buffers[number % pairs] for number in range(LAUNCHES)]

    def sample(self) -> Sample:
        """Return the times of all launches."""
        kernel, queue = self.kernel, self.queue
        start = perf_counter()
        for x, y in self.pairs:
            kernel(queue, GROUP, GROUP, x, y, A, B)
        called = perf_counter()
        queue.finish()
        return _us(called - start), _us(perf_counter() - start)


@contextmanager
def kept_open(runtime: acs.Runtime) -> Iterator[None]:
    """Keep the epoch open until its results are needed. No public function does this."""
    backend: Any = runtime.engine.backend
    modules: Any = (device_backend, sender)
    before = device_backend.OPEN_S, sender.FIRST_LOOK
    modules[0].OPEN_S, modules[1].FIRST_LOOK = 1e9, 1 << 30
    backend.keep_open()
    try:
        yield
    finally:
        modules[0].OPEN_S, modules[1].FIRST_LOOK = before
        backend.keep_open(sender.FIRST_LOOK)


def _us(seconds: float) -> float:
    return seconds * 1e6 / LAUNCHES


def targets_of(on_cpu: bool, rows: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the figures with their bars."""
    targets: list[dict[str, Any]] = []
    if "refused" in rows:
        return targets
    for shape, row in rows.items():
        for way, limit in (("loop", LOOP_US), ("many", MANY_US)):
            took = row[way]["record_us"]
            how = "a loop of calls" if way == "loop" else "`launch_many`"
            what = f"to record a launch for the scheduler, {shape}, {how}"
            targets.append(target(what, took, "at most", limit, "us"))
    for shape, row in rows.items():
        if on_cpu:
            what = f"a new graph of {LAUNCHES:,} launches over typed PyOpenCL in order, {shape}"
            ratio = row["loop"]["over_bare"]
            targets.append(target(what, ratio, "at least", OVER_BARE, "x"))
        else:
            what = f"a new graph of {LAUNCHES:,} launches, end to end, per launch, {shape}"
            took = row["loop"]["end_us"]
            targets.append(target(what, took, "at most", END_US, "us"))
    return targets
