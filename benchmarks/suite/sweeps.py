"""Speed-up over one number at a time: window, lanes, length of kernels, groups of kernels.

Input: a device, and the sweeps. Output: a row for each value and contestant. The graphs are random
layers of one-group kernels of a fixed length, and differ only in the swept number. The baseline is
the faster of `serial` and PyOpenCL by itself on one in-order queue, interleaved with the rest.

Invariant: all contestants of one value are interleaved in one process, and checked against the
reference before and after. A contestant with wrong results has a row that says so, and no figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from math import inf
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl import UsageError, devices
from acs_cl.benchmarks.suite.contestants import BARE, EXPERT, SERIAL, Contestant, Sample, timer
from acs_cl.benchmarks.suite.machine import machine, noise
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import quantile, ratios, spread
from acs_cl.benchmarks.suite.timing import Deadline, device_clock, interleave
from acs_cl.benchmarks.workloads.bare import InOrder
from acs_cl.benchmarks.workloads.expert import Queues
from acs_cl.benchmarks.workloads.graphs import GROUP
from acs_cl.benchmarks.workloads.shapes import Layers
from acs_cl.benchmarks.workloads.synthetic import SOURCE, Synthetic, SyntheticByHand, reference
from acs_cl.opencl_c.kernel_files import kernel_source

VERSION = 1
VALUES: dict[str, tuple[int, ...]] = {
    "window": (1, 2, 4, 8, 16, 32, 64, 128, 256),
    "lanes": (1, 2, 4, 8, 16, 32),
    "length": (0, 5, 10, 20, 50, 100, 200),
    "groups": (1, 2, 5, 10, 20, 50, 100, 200),
}
WIDTH, FAN_IN = 32, 3
DEPTH = {True: 8, False: 16}  # by "is a CPU"
LENGTH_US = {True: 50.0, False: 20.0}  # by "is a CPU"; unless it is swept
WIDE_US = {True: 5.0, False: 20.0}  # the same for kernels of many groups
ROUNDS = {False: 9, True: 3}  # by "is quick"
READY_FIRST = "lanes, ready_first"
"""The paper's ACS-SW: only ready launches are submitted."""

SEED = 1
MOST_ROUNDS = 1 << 22


class Pace(NamedTuple):
    """The time of one group of `mix0` on the device: without rounds, and for each round."""

    idle_us: float
    round_us: float

    def rounds(self, length_us: float) -> int:
        """Return the rounds for a kernel of this length. 0: an empty one is longer."""
        return max(0, min(MOST_ROUNDS, round((length_us - self.idle_us) / self.round_us)))


class Extent(NamedTuple):
    """The swept values, the width of graphs, and the rounds. `pace`: None: it is measured."""

    values: Mapping[str, tuple[int, ...]] = VALUES
    width: int = WIDTH
    rounds: int = 0
    pace: Pace | None = None


def measure(
    settings: Settings,
    which: Sequence[str],
    quick: bool,
    say: Callable[[str, float], None] = lambda text, share: None,
    extent: Extent = Extent(),  # noqa: B008  (which nobody changes)
) -> dict[str, Any]:
    """Return the sweeps of these names; by default all of them."""
    *_, found = growing(settings, which, quick, say, extent=extent)
    return found


def growing(
    settings: Settings,
    which: Sequence[str],
    quick: bool,
    say: Callable[[str, float], None],
    within_s: float = inf,
    extent: Extent = Extent(),  # noqa: B008
) -> Iterator[dict[str, Any]]:
    """Return the sweeps after each value, as long as there is time for another one. `say` gets the
    progress."""
    deadline = Deadline(within_s)
    for name in which:
        if name not in extent.values:
            raise UsageError(f"no sweep is called {name!r}; there are {', '.join(extent.values)}")
    devices.repair(settings.device)
    there = machine(settings.device)
    context = settings.context()
    pace = extent.pace or measured_pace(context, settings.device)
    there["noise"] = unrest = [noise()]
    rows: list[dict[str, Any]] = []
    names, stride = list(dict.fromkeys(which or extent.values)), 3 if quick else 1
    points = [(name, value) for name in names for value in extent.values[name][::stride]]
    left_out = [f"{name} {value}" for name, value in points]
    found = {
        "acs_cl_sweeps": VERSION,
        "quick": quick,
        "machine": there,
        "pace": pace._asdict(),
        "length_us": LENGTH_US[settings.on_cpu],
        "wide_us": WIDE_US[settings.on_cpu],
        "rows": rows,
        "left_out": left_out,
    }
    for turn, (name, value) in enumerate(points):
        if not deadline.has_time():
            return
        say(left_out[0], turn / len(points))
        size = graph_of(name, value, pace, settings.on_cpu, quick)._replace(width=extent.width)
        rounds = extent.rounds or ROUNDS[quick]
        rows += _rows(settings, context, name, value, size, rounds)
        unrest.append(noise())
        left_out.pop(0)
        yield found


def graph_of(name: str, value: int, pace: Pace, on_cpu: bool, quick: bool = False) -> Layers:
    """Return the graph for one value of a sweep."""
    depth = 4 if quick else DEPTH[on_cpu]
    groups = value if name == "groups" else 1
    length_us = (WIDE_US if name == "groups" else LENGTH_US)[on_cpu]
    rounds = pace.rounds(value if name == "length" else length_us)
    return Layers(WIDTH, depth, FAN_IN, (groups, groups), (rounds, rounds))


def measured_pace(context: cl.Context, device: cl.Device) -> Pace:
    """Measure by the device's own clock, with kernels of 100 us or more."""
    clock = device_clock(context, device, kernel_source(SOURCE), "mix0", GROUP, 1)

    def length_us(rounds: int) -> float:
        return min(clock(21, rounds))  # other programs only ever add time

    rounds = 64
    while length_us(rounds) < 100 and rounds < MOST_ROUNDS:
        rounds *= 2
    idle_us, long_us = length_us(0), length_us(rounds)
    return Pace(idle_us, max((long_us - idle_us) / rounds, 1e-6))


# ---- one value -----------------------------------------------------------------------------------


def contestants(settings: Settings, name: str, value: int) -> dict[str, dict[str, Any] | None]:
    """Return the contestants, with the options of their runtimes. None: PyOpenCL by itself."""
    host = [one for one in settings.backends() if one != SERIAL]
    there: dict[str, dict[str, Any] | None] = {BARE: None, SERIAL: {"backend": SERIAL}}
    if name == "lanes":
        there["lanes"] = {"backend": "lanes", "lanes": value}
        there[READY_FIRST] = {"backend": "lanes", "issue": "ready_first", "lanes": value}
    elif name == "window":
        for backend in [*host, "device"]:
            there[backend] = {"backend": backend, "window": value}
        there[READY_FIRST] = {"backend": "lanes", "issue": "ready_first", "window": value}
    else:
        there[EXPERT] = None
        for backend in [*host, "device", "auto"]:
            there[backend] = {"backend": backend}
    return there


def _rows(
    settings: Settings, context: cl.Context, name: str, value: int, size: Layers, rounds: int
) -> list[dict[str, Any]]:
    expected = reference(size, SEED)["arrays"]
    failed: dict[str, str] = {}
    samplers: dict[str, Callable[[], Sample]] = {}
    runs: dict[str, Any] = {}
    with ExitStack() as stack:
        for who, options in contestants(settings, name, value).items():
            try:
                platform, run = _made(stack, settings, context, who, options, size)
            except acs.AcsError as error:  # a device without what the backend needs
                failed[who] = str(error)
                continue
            samplers[who], runs[who] = timer(Contestant(platform, run)), run
        for who in list(samplers):
            samplers[who]()
            if not _is_right(runs[who], expected):
                failed[who] = "its results differ from the reference"
                del samplers[who]
        taken = interleave(samplers, rounds)
        samples = {who: [one.total for one in some] for who, some in taken.items()}
        for who in list(samples):
            if not _is_right(runs[who], expected):
                failed[who] = "its results differ from the reference"
                del samples[who]
    return list(_judged(name, value, size, samples, failed))


def _made(
    stack: ExitStack,
    settings: Settings,
    context: cl.Context,
    who: str,
    options: dict[str, Any] | None,
    size: Layers,
) -> tuple[Any, Any]:
    if options is not None:
        runtime = stack.enter_context(acs.Runtime(context=context, **options))
        run = Synthetic(runtime, size, SEED)
        runtime.prebuild(*run.kernels())
        return runtime, run
    if who == EXPERT:
        queues = Queues(settings.device, context)
        return queues, SyntheticByHand(queues, size, SEED)
    bare = InOrder(settings.device, context)
    return bare, Synthetic(bare, size, SEED)


def _is_right(run: Synthetic, expected: Any) -> bool:
    return np.array_equal(run.results()["arrays"], expected)


def _judged(
    name: str,
    value: int,
    size: Layers,
    samples: Mapping[str, Sequence[float]],
    failed: Mapping[str, str],
) -> Iterator[dict[str, Any]]:
    """Return a row for each contestant, the baseline included."""
    there = [who for who in (BARE, SERIAL) if who in samples]
    if not there:
        raise RuntimeError(f"there is no baseline: {dict(failed)}")
    baseline = min(there, key=lambda who: quantile(samples[who], 0.5))
    launches = size.width * size.depth
    common = {"parameter": name, "value": value, "baseline": baseline, "launches": launches}
    for who, why in failed.items():
        yield {**common, "backend": who, "failed": why}
    for who, times in samples.items():
        over = spread(ratios(samples[baseline], times))
        yield {
            **common,
            "backend": who,
            "speed_up": over["median"],
            "quartiles": [over["p25"], over["p75"]],
            "launches_per_s": round(launches / quantile(times, 0.5), 1),
            "ms": spread([took * 1e3 for took in times]),
        }
