"""Speed-up of independent chains that may overlap.

Input: a device, and a kernel length. Output: for 64 chains of 8 one-group kernels, how much faster
than `serial` each backend is, interleaved with it, and kernels in flight on average from profiling
intervals.

The kernel is integer work in one group, its rounds calibrated on the device's own clock. The
results of every backend are compared with those of `serial`, because figures of a wrong run mean
nothing.
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
from acs_cl.benchmarks.suite.statistics import quantile, ratios, spread
from acs_cl.benchmarks.suite.timing import device_clock, interleave

CHAINS, LINKS, ITEMS = 64, 8, 32
LENGTH_US = {True: 400.0, False: 50.0}  # by "is a CPU", where the host program needs a core too
ROUNDS = {False: 9, True: 3}  # by "is quick"
MOST_ROUNDS = 1 << 26
LEAST_ON_CPU, LEAST_ON_GPU, LEAST_OF_LANES = 1.85, 3.0, 6.0

SOURCE = """
kernel void work(global uint *out, uint rounds) {
    uint x = out[get_local_id(0)] + (uint)get_local_id(0) + 1u;
    for (uint i = 0; i < rounds; ++i) {  /* shifts: no compiler has a closed form for this */
        x ^= x << 13; x ^= x >> 17; x ^= x << 5;
    }
    out[get_local_id(0)] = x;
}
"""


def measure(settings: Settings) -> dict[str, Any]:
    """Measure speed-up and overlap of each backend that the device has."""
    wanted_us = settings.kernel_us or LENGTH_US[settings.on_cpu]
    if settings.quick and settings.kernel_us is None:
        wanted_us /= 4
    context = settings.context()
    rounds, kernel_us = calibrate(context, settings.device, wanted_us)
    names = [*settings.backends(), "auto"]
    runtimes = {name: acs.Runtime(context=context, backend=name) for name in names}
    runs = {name: _Run(runtime, rounds) for name, runtime in runtimes.items()}
    for run in runs.values():
        run()
    samples = interleave(runs, ROUNDS[settings.quick])
    expected = runs["serial"].results()
    for name, run in runs.items():
        if not np.array_equal(run.results(), expected):
            raise RuntimeError(f"backend {name!r} computed something else than serial")
    rows: dict[str, Any] = {}
    for name, runtime in runtimes.items():
        stats = runtime.stats()
        runtime.close()
        rows[name] = {
            "backend": stats["backend"],
            "why": stats["why"],
            "lanes": runtime.plan.lanes,
            "memory": stats["memory"]["kind"],
            "wall_ms": spread([took * 1e3 for took in samples[name]]),
            "speed_up": spread(ratios(samples["serial"], samples[name])),
            **_in_flight(context, name, rounds),
        }
    return {
        "chains": CHAINS,
        "links": LINKS,
        "kernel_us": round(kernel_us, 1),
        "rows": rows,
    }


class _Run:
    """All chains once, link by link, as a program would launch them; returns seconds."""

    def __init__(self, runtime: acs.Runtime, rounds: int) -> None:
        self._runtime = runtime
        self._work = runtime.build(SOURCE).work
        self._rounds = rounds
        self._arrays = [runtime.zeros(ITEMS, np.uint32) for _ in range(CHAINS)]
        runtime.finish()

    def __call__(self) -> float:
        start = perf_counter()
        for _ in range(LINKS):
            for array in self._arrays:
                self._work((ITEMS,), (ITEMS,), array, self._rounds)
        self._runtime.finish()
        return perf_counter() - start

    def results(self) -> np.ndarray[Any, Any]:
        """Return the present values of the chains."""
        return np.stack([array.get() for array in self._arrays])


def calibrate(context: cl.Context, device: cl.Device, wanted_us: float) -> tuple[int, float]:
    """Return rounds for a kernel of at least `wanted_us` on the device's clock, and its length."""
    clock = device_clock(context, device, SOURCE, "work", ITEMS)

    def length_us(rounds: int) -> float:
        return quantile(clock(7, rounds), 0.25)  # nearly the best: other programs only add time

    rounds = 256
    for _ in range(24):
        took_us = length_us(rounds)
        if took_us >= wanted_us or rounds >= MOST_ROUNDS:
            return rounds, took_us
        factor = min(4.0, max(1.02, 1.02 * wanted_us / max(took_us, 1e-3)))
        rounds = min(MOST_ROUNDS, int(rounds * factor) + 1)
    return rounds, length_us(rounds)


def _in_flight(context: cl.Context, backend: str, rounds: int) -> dict[str, Any]:
    """Return kernels in flight on average, and how long they took, from a traced run of its own.
    The times of kernels in epochs are not known, so an epoch counts as one; their number is
    returned, too."""
    with acs.Runtime(context=context, backend=backend, trace=True) as runtime:
        run: Callable[[], float] = _Run(runtime, rounds)
        run()
        overlaps, lengths, in_epochs = [], [], []
        for _ in range(3):
            runtime.trace.clear()
            run()
            overlaps.append(runtime.trace.overlap())
            slices = runtime.trace.slices
            lengths += [(s.end_ns - s.start_ns) * 1e-3 for s in slices if not s.epoch]
            in_epochs.append(sum(s.epoch > 0 for s in slices) / len(slices))
        found: dict[str, Any] = {"in_flight": spread(overlaps), "in_epochs": spread(in_epochs)}
        return found | ({"kernel_device_us": spread(lengths, 1)} if lengths else {})


def _flight_bars(name: str, row: Mapping[str, Any], least: float) -> list[dict[str, Any]]:
    """Return bars of kernels in flight. If some ran in epochs, there is only the share of these."""
    flight, share = row["in_flight"], row.get("in_epochs", {"median": 0.0})["median"]
    what = f"kernels in flight, by profiling intervals, `{name}`"
    if not share:
        return [target(what, flight, "at least", least, "")]
    said = f"share of `{name}`'s kernels in epochs of the scheduler, whose own times nobody knows"
    return [target(what, None, "at least", least), target(said, share, "at most", None)]


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare the results with their bars."""
    rows = result["rows"]
    if machine["kind"] == "CPU":
        wanted = {name: LEAST_ON_CPU for name in rows if name != "serial"}
    else:
        wanted = {"auto": LEAST_ON_GPU, "lanes": LEAST_OF_LANES}
    found = [
        target(
            f"64 chains of 8 kernels over `serial`, `{name}`",
            rows[name]["speed_up"], "at least", least, "x",
        )
        for name, least in wanted.items()
    ]  # fmt: skip
    for name, least in wanted.items():
        found += _flight_bars(name, rows[name], min(least, LEAST_ON_GPU))
    if "NVIDIA" in machine["device"]:
        found.append(target("`auto` picks", rows["auto"]["backend"], "is", "lanes"))
    return found
