"""Measure whether kernels overlap: in an out-of-order queue, on several in-order queues, in a slab.

Input: a bench, and a time limit. Output: the overlap fields of a probe.

Invariant: gains compare the best bursts of interleaved turns, since other programs only add time. A
result that other programs may have caused does not count as settled.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence

import pyopencl as cl

from acs_cl.devices.probe.bench import KERNELS, PART_BYTES, Bench, burst_us, deal
from acs_cl.devices.probe.choice import enough
from acs_cl.devices.probe.record import Gain
from acs_cl.host.intervals import in_flight
from acs_cl.records import HostArray, Report

LANES = (1, 2, 4, 8, 16)

_TURNS = 4  # at least
_MOST_TURNS = 100
_DOUBT_S = 1.5  # how long a surprising result is measured again
_CLEAR_GAIN = 1.5
_BUSY = 0.2  # share of the processors used by others, above which they may cause a surprise

_Setup = tuple[str, int]  # kind of memory; in-order queues, or 0 for the out-of-order one
_BASE: _Setup = ("buffers", 1)


def measure_overlap(bench: Bench, *, svm: bool, until: float, notes: list[str]) -> Report:
    """Measure how much faster than on one in-order queue the same kernels run on others."""
    single = bench.out_of_order()
    lanes = {count: bench.lanes(count) for count in LANES}
    setups: dict[_Setup, tuple[list[cl.Kernel], list[cl.CommandQueue]]] = {}
    slab = _slab(bench, notes) if svm else []
    for memory, places in (("buffers", bench.buffers), ("slab", slab)):
        if not places:
            continue
        kernels = bench.work(places)
        if single is not None:
            setups[memory, 0] = (kernels, [single])
        for count, queues in lanes.items():
            setups[memory, count] = (kernels, queues)
    best, settled = _take_turns(bench, setups, until, notes)

    gain = {setup: round(best[_BASE] / took, 3) for setup, took in best.items()}
    figures: Report = {
        "settled": settled,
        "out_of_order_accepted": single is not None,
        "out_of_order_gain": gain.get(("buffers", 0)),
        "out_of_order_slab_gain": gain.get(("slab", 0)),
        "lane_gains": tuple(Gain(n, gain["buffers", n]) for n in LANES if ("buffers", n) in gain),
        "lane_slab_gains": tuple(Gain(n, gain["slab", n]) for n in LANES if ("slab", n) in gain),
    }
    if time.monotonic() < until:
        figures.update(_profiled(bench, figures["lane_gains"], notes))
    return figures


def expected(best: dict[_Setup, float], units: int) -> bool:
    """Tell whether the times fit a device whose queues all overlap, or one that cannot overlap."""
    several = [took for (_, lanes), took in best.items() if lanes != 1]
    if not several:
        return True
    overlaps = best[_BASE] / min(several)
    alike = max(several) <= 1.1 * min(several)
    return alike and (units == 1 or _CLEAR_GAIN <= overlaps <= 1.2 * units)


def _take_turns(
    bench: Bench,
    setups: dict[_Setup, tuple[list[cl.Kernel], list[cl.CommandQueue]]],
    until: float,
    notes: list[str],
) -> tuple[dict[_Setup, float], bool]:
    """Return the best time of each setup, and whether they can be relied on.

    Another program that takes a core for a moment makes concurrent queues look like one. So an
    expected result is believed after a few turns. Any other result needs many turns, and on a CPU
    no other programs.
    """
    best: dict[_Setup, float] = {}
    units = bench.device.max_compute_units
    patience = time.monotonic() + _DOUBT_S
    before = _clock()
    for turn in range(_MOST_TURNS):
        for setup, (kernels, queues) in setups.items():
            if time.monotonic() > until and _BASE in best:
                notes.append(f"out of time after {turn} turns of the overlap measurement")
                return best, False
            took = burst_us(kernels, queues)
            # The first turn opens the queues; it counts only if there is no other.
            best[setup] = took if turn < 2 else min(best[setup], took)
        if turn >= _TURNS:
            if expected(best, units):
                return best, True
            if time.monotonic() > patience:
                break
    others = _others(before)
    if bench.cpu and others > _BUSY:
        notes.append(
            f"other programs used {others:.0%} of the processors meanwhile; the figures are not "
            "kept, measure again"
        )
        return best, False
    return best, True


def _clock() -> tuple[float, float, float] | None:
    """Return seconds of real time, of all processors and of this process; Linux only."""
    try:
        with open("/proc/stat", encoding="ascii") as lines:
            # user, nice, system, idle, iowait, irq, softirq, steal
            ticks = [int(word) for word in lines.readline().split()[1:9]]
        work = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
    return time.monotonic(), work, time.process_time()


def _others(before: tuple[float, float, float] | None) -> float:
    """Return the share of all processors that other programs used since then. 0: not known."""
    after = _clock()
    if before is None or after is None:
        return 0.0
    real, work, own = (late - early for early, late in zip(before, after, strict=True))
    return max(0.0, work - own) / max(1e-3, real * (os.cpu_count() or 1))


def _slab(bench: Bench, notes: list[str]) -> list[cl.SVM[HostArray]]:
    """Return parts of one SVM allocation, one for each kernel."""
    try:
        # Alignment 0 is the driver's own; PoCL refuses large ones.
        whole = cl.SVMAllocation(bench.context, KERNELS * PART_BYTES, 0, 0)
        parts = [
            cl.SVM(whole.buf[start : start + PART_BYTES])
            for start in range(0, KERNELS * PART_BYTES, PART_BYTES)
        ]
        bench.work(parts[:1])
    except cl.Error as error:
        notes.append(f"SVM is declared and cannot be used: {error}")
        return []
    return parts


def _profiled(bench: Bench, gains: Sequence[Gain], notes: list[str]) -> Report:
    """Return the kernels in flight by the device's own clock: the median of a few bursts."""
    kernels = bench.work(bench.buffers)
    figures: Report = {}
    best = enough(gains)
    setups = {"lane_overlap": bench.lanes(max(2, best.lanes if best else 1), profiled=True)}
    single = bench.out_of_order(profiled=True)
    if single is not None:
        setups["out_of_order_overlap"] = [single]
    try:
        for name, queues in setups.items():
            seen = []
            for _ in range(_TURNS + 1):
                events = deal(kernels, queues)
                seen.append(in_flight([(e.profile.start, e.profile.end) for e in events]))
            figures[name] = round(statistics.median(seen), 3)
    except cl.Error as error:
        notes.append(f"no profiling intervals: {error}")
    return figures
