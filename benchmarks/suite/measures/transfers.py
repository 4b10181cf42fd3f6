"""Gains of GrCUDA's six with timed transfers, beside queues and events by hand.

Input: a device. Output: for each workload, in GrCUDA's own groups, milliseconds of a step: in one
plain queue, by an expert in several queues, and here. The step uploads all inputs from pinned
memory and reads an element of each output, as GrCUDA's do, or all of it. Beside them stand the same
from ordinary memory, which the program may change right after `set`, and a bound that includes the
transfers.

A step with wrong results is reported, and not timed. Every step is checked from inputs of zeros, so
that it has only its uploads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import acs_cl as acs
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.bounds import Bound
from acs_cl.benchmarks.suite.few_groups import Most
from acs_cl.benchmarks.suite.moved import ALL, ELEMENT, FULL, Moved, MovedByHand, Moving
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import geomean, ratios, spread
from acs_cl.benchmarks.suite.timing import Deadline, interleave, timed
from acs_cl.benchmarks.suite.traced_bounds import Program, bounded
from acs_cl.benchmarks.workloads import catalogue
from acs_cl.benchmarks.workloads.bare import InOrder
from acs_cl.benchmarks.workloads.expert import Queues, overlaps_in_one
from acs_cl.benchmarks.workloads.workload import Workload, differences

PER_UNIT = 4
"""Groups of 64 of a launch for a compute unit, GrCUDA's 8 blocks of 32."""
OWN: dict[str, Most] = {"bs": FULL, "ml": 32, "img": (16, 256)}
"""Other numbers of GrCUDA's: pricings fill the device. `ml` has 64 blocks of 32 and `img` has 32,
or 16 x 16 of 64, on each of its cards of that size."""
ORDER = ("hits", "dl", "img", "ml", "vec", "bs")
SHORTER = {
    "vec": {"length": 1 << 24}, "bs": {"length": 1 << 20}, "ml": {"rows": 1 << 17},
    "img": {"side": 2048}, "hits": {"nodes": 1 << 20}, "dl": {"side": 3000},
}  # fmt: skip
"""Sizes of which a step uploads some ten mebibytes or a hundred: all six fit into the time."""
ROUND, STREAM = 4, "stream"
"""Steps without a wait between them. An expert would have two arrays an input, ours has one."""
LANES = (2, 8)
"""Queues that an expert tries; more of them change nothing for these graphs."""
WARM, ROUNDS = 2, {False: 9, True: 3}  # by "is quick"
WITHIN_S = 80.0

LEAST_OF_EXPERT, LEAST_OVER_SERIAL, LEAST_OF_BOUND = 0.98, 1.62, 0.95
PLAIN, SERIAL, EXPERT, ORDINARY = "plain queue", "serial", "expert", "ordinary memory"
WITHOUT = ", no prefetch"


def growing(settings: Settings) -> Iterator[dict[str, Any]]:
    """Measure every workload with both ways to read, as far as time allows."""
    rows: dict[str, Any] = {}
    deadline = Deadline(WITHIN_S)
    for name in ORDER:
        if not deadline.has_time():
            break
        rows |= _rows(settings, catalogue()[name])
        yield {"rows": rows}


def _rows(settings: Settings, workload: Workload) -> dict[str, Any]:
    device = settings.device
    preset = settings.preset
    shorter = SHORTER.get(workload.name, {}) if preset == "paper" else {}
    most = OWN.get(workload.name, PER_UNIT * int(device.max_compute_units))
    size = workload.presets[preset]._replace(**shorter)
    if "groups" in size._fields:
        size = size._replace(groups=min(size.groups, most if isinstance(most, int) else most[0]))
    expected = workload.reference(size, 0)
    failed: dict[str, str] = {}
    found = {}
    with ExitStack() as stack:
        ready = {}
        for name, make in _contestants(settings, workload, size, most, stack):
            platform, run = make()
            wrong = differences(workload, run.checked(), expected)
            if wrong:
                failed[name] = wrong
            else:
                ready[name] = platform, run
        for reads, steps in ((ELEMENT, 1), (ALL, 1), (ALL, ROUND)):
            samplers = {
                name: timed(run.reading(reads).step, platform.finish, steps=steps)
                for name, (platform, run) in ready.items()
                if steps == 1 or not name.startswith(EXPERT)
            }
            interleave(samplers, WARM)
            samples = interleave(samplers, ROUNDS[settings.quick])
            limits = None
            if steps == 1:
                program = Program(_with_transfers(workload, most, reads), size, 0)
                limits, _ = bounded(device, program)
            said = reads if steps == 1 else STREAM
            found[f"{workload.name}, {said}"] = _row(preset, size, failed, samples, limits)
    return found


def _row(
    preset: str,
    size: Any,
    failed: Mapping[str, str],
    samples: Mapping[str, Any],
    limits: Bound | None,
) -> dict[str, Any]:
    times = {name: spread(taken, 4) for name, taken in samples.items()}
    base = min((name for name in (PLAIN, SERIAL) if name in times), key=_by_median(times))
    return {
        "preset": preset,
        "size": size._asdict(),
        "failed": dict(failed),
        "baseline": base,
        "ms": times,
        "over_serial": {n: spread(ratios(samples[base], s), 3) for n, s in samples.items()},
        "bound": limits and limits.held(min(one["median"] for one in times.values())),
    }


def _by_median(times: Mapping[str, Any]) -> Callable[[str], float]:
    return lambda name: float(times[name]["median"])


def _contestants(
    settings: Settings, workload: Workload, size: Any, most: Most, stack: ExitStack
) -> Iterator[tuple[str, Callable[[], tuple[Any, Moving]]]]:
    """Return names, and functions that make their platform and run."""
    device = settings.device

    def on(platform: Any, pinned: bool) -> tuple[Any, Moving]:
        moved = Moved(platform, most, pinned)
        return platform, Moving(moved, workload.make(moved, size, 0))

    def by_hand(lanes: int | None, apart: bool) -> tuple[Any, Moving]:
        platform = Queues(device, lanes=lanes and lanes + apart)
        moved = MovedByHand(platform, most, lanes or 1, apart)
        assert workload.expert is not None
        return platform, Moving(moved, workload.expert(moved, size, 0))

    def ours(backend: str, pinned: bool, prefetch: str = "auto") -> tuple[Any, Moving]:
        runtime = acs.Runtime(device, backend=backend, prefetch=prefetch)
        return on(stack.enter_context(runtime), pinned)

    host = "out_of_order" if overlaps_in_one(device) else "lanes"
    for pinned, said in ((True, ""), (False, f", {ORDINARY}")):
        yield PLAIN + said, partial(on, InOrder(device), pinned)
        for backend in (SERIAL, host, "auto") if pinned else (host,):
            yield backend + said, partial(ours, backend, pinned)
        yield f"{host}{WITHOUT}{said}", partial(ours, host, pinned, "off")
    for lanes in LANES:
        yield f"{EXPERT}, {lanes} lanes", partial(by_hand, lanes, False)
        yield f"{EXPERT}, {lanes} lanes, one for uploads", partial(by_hand, lanes, True)
    if host == "out_of_order":
        yield f"{EXPERT}, out of order", partial(by_hand, None, False)


def _with_transfers(workload: Workload, most: Most, reads: str) -> Workload:
    """Return the workload with transfers from pinned memory, for tracing."""

    def make(platform: Any, size: Any, seed: int) -> Any:
        moved = Moved(platform, most, True)
        return Moving(moved, workload.make(moved, size, seed), reads)

    return workload._replace(make=make)


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare the results with their bars: the mean over serial, or else most of the bound. Each is
    also compared with the best by hand."""
    found = []
    for reads in (ELEMENT, ALL, STREAM):
        gains = []
        for name, row in result["rows"].items():
            if not name.endswith(f", {reads}"):
                continue
            ours = _best(row["ms"], "lanes", "out_of_order", "auto")
            if ours is None:
                continue
            gains.append(row["over_serial"][ours]["median"])
            if reads == STREAM:
                continue
            took, hand = row["ms"][ours]["median"], _best(row["ms"], EXPERT)
            if hand is not None:
                what = f"{name}: beside the best by hand ({hand}), {ours}"
                over = row["ms"][hand]["median"] / took
                found.append(target(what, over, "at least", LEAST_OF_EXPERT, "x"))
            if row["bound"]["least_ms"] is not None:
                what = f"{name}: share of the bound ({row['bound']['limit']}), {ours}"
                share = row["bound"]["least_ms"] / took
                found.append(target(what, share, "at least", LEAST_OF_BOUND))
        if gains:
            what = f"mean over serial, {reads} read"
            found.append(target(what, geomean(gains), "at least", LEAST_OVER_SERIAL, "x"))
    return found


def _best(times: Mapping[str, Any], *names: str) -> str | None:
    """Return the fastest one from pinned memory whose name begins with one of `names`."""
    some = [one for one in times if one.startswith(names) and not one.endswith((ORDINARY, WITHOUT))]
    return min(some, key=_by_median(times), default=None)
