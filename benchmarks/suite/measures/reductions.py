"""Two sorts of small kernels in turns: elementwise ones, and sums that work in groups.

Input: a device. Output: 16 vectors are added to and summed up four times, as in solvers: the time
of a launch on each backend and with bare PyOpenCL in order, interleaved.

The elementwise kernel may be cut anywhere. The sum has groups of 64 with local memory as an
argument. So the two belong to different schedulers. On a GPU they share one, and on a CPU an epoch
ends at each change.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from time import perf_counter
from typing import Any

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import quantile, ratios, spread, spreads
from acs_cl.benchmarks.suite.timing import interleave

VECTORS, TURNS, ITEMS, GROUP = 16, 4, 4096, 64
LAUNCHES = 2 * VECTORS * TURNS
ROUNDS = {False: 31, True: 5}  # by "is quick"
WARM, SETTLED = 50, 20
"""Runs before the timed ones: kernels are built in after some use. `SETTLED` of them come after the
wait for that."""
LEAST_GAIN = 1.0

SOURCE = """
kernel void add(global const float *x, global float *y, float a)
{ size_t i = get_global_id(0); y[i] += a * x[i]; }
kernel void sum(global const float *x, global float *y, local float *part) {
    uint i = get_local_id(0);
    part[i] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = get_local_size(0) / 2; step; step /= 2) {
        if (i < step) part[i] += part[i + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i == 0) y[get_group_id(0)] = part[0];
}
"""


def measure(settings: Settings) -> dict[str, Any]:
    """Measure each backend, and bare PyOpenCL."""
    names = [*settings.backends(), "device", "auto"]
    with ExitStack() as stack:
        context = settings.context()
        sides: dict[str, _Bare | _Ours] = {"bare": _Bare(context)}
        runtimes = {}
        for name in names:
            with suppress(acs.UsageError):  # a device without shared memory has no scheduler
                runtimes[name] = stack.enter_context(acs.Runtime(context=context, backend=name))
                sides[name] = _Ours(runtimes[name])
        for turns in (WARM - SETTLED, SETTLED):
            for run in sides.values():
                for _ in range(turns):
                    run()
            for runtime in runtimes.values():
                runtime.prebuild()
        samples = interleave(sides, ROUNDS[settings.quick])
        runs = WARM + ROUNDS[settings.quick]
        for name, run in sides.items():
            if not run.is_right(runs):
                raise RuntimeError(f"{name} computed something else than NumPy")
        epochs = {
            name: runtime.stats()["scheduler"]["epochs"]
            for name, runtime in runtimes.items()
            if "scheduler" in runtime.stats()
        }
    best = min(("bare", "serial"), key=lambda name: quantile(samples[name], 0.5))
    return {
        "launches": LAUNCHES,
        "rows": spreads(samples, 2),
        "baseline": best,
        "gain": spread(ratios(samples[best], samples["auto"])),
        "epochs_of_all_runs": {**epochs, "runs": runs},
    }


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare the results with their bars."""
    best, gain = result.get("baseline"), result.get("gain")
    if gain is None:  # in results until 2026-11-22 these have a row of their own
        (row,) = result["targets"]
        best, (low, high) = row["what"].split()[-1], row["quartiles"]
        gain = {"median": row["value"], "p25": low, "p75": high}
    what = f"sums and elementwise kernels in turns, `auto` over {best}"
    return [target(what, gain, "at least", LEAST_GAIN, "x")]


class _Ours:
    """Returns microseconds of a launch, to the end of all."""

    def __init__(self, runtime: acs.Runtime) -> None:
        self.runtime = runtime
        prog = runtime.build(SOURCE)
        self.add, self.sum = prog.add, prog.sum
        self.x = [runtime.array(np.ones(ITEMS, np.float32)) for _ in range(VECTORS)]
        self.y = [runtime.zeros(ITEMS) for _ in range(VECTORS)]
        self.sums = [runtime.zeros(ITEMS // GROUP) for _ in range(VECTORS)]

    def __call__(self) -> float:
        part = cl.LocalMemory(4 * GROUP)
        start = perf_counter()
        for _ in range(TURNS):
            for x, y, sums in zip(self.x, self.y, self.sums, strict=True):
                self.add((ITEMS,), None, x, y, 1.0)
                self.sum((ITEMS,), (GROUP,), y, sums, part)
        self.runtime.finish()
        return (perf_counter() - start) * 1e6 / LAUNCHES

    def is_right(self, runs: int) -> bool:
        """Tell whether all sums are those of this many runs."""
        return all((sums.get() == GROUP * TURNS * runs).all() for sums in self.sums)


class _Bare:
    """The kernels in PyOpenCL, with typed arguments and one in-order queue."""

    def __init__(self, context: cl.Context) -> None:
        self.queue = cl.CommandQueue(context)
        program = cl.Program(context, SOURCE).build()
        self.add, self.sum = program.add, program.sum
        self.add.set_scalar_arg_dtypes([None, None, np.float32])

        def buffers(value: float, items: int) -> list[cl.Buffer]:
            host = np.full(items, value, np.float32)
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            return [cl.Buffer(context, flags, hostbuf=host) for _ in range(VECTORS)]

        self.x, self.y = buffers(1, ITEMS), buffers(0, ITEMS)
        self.sums = buffers(0, ITEMS // GROUP)

    def __call__(self) -> float:
        part = cl.LocalMemory(4 * GROUP)
        start = perf_counter()
        for _ in range(TURNS):
            for x, y, sums in zip(self.x, self.y, self.sums, strict=True):
                self.add(self.queue, (ITEMS,), None, x, y, 1.0)
                self.sum(self.queue, (ITEMS,), (GROUP,), y, sums, part)
        self.queue.finish()
        return (perf_counter() - start) * 1e6 / LAUNCHES

    def is_right(self, runs: int) -> bool:
        """Tell whether all sums are those of this many runs."""
        found = np.empty(ITEMS // GROUP, np.float32)
        for sums in self.sums:
            cl.enqueue_copy(self.queue, found, sums)
            if not (found == GROUP * TURNS * runs).all():
                return False
        return True
