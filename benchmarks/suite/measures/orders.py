"""Gain by the order of a replay: recorded graphs in every order, beside one queue and by hand.

Input: a device. Output: milliseconds of a replay in each order on each backend, for pairs of
kernels that compute and that wait for memory, and for networks. They are compared with the same
replay in program order, with a replay on one in-order queue, and with the best of an expert's
queues. A graph that was tuned, which may choose an order and cuts, is there too, and so are Opara's
and GrCUDA's ways to choose lanes, in program order. Then comes the time to sort 1,000 launches.

Every graph is profiled before. Results are compared with the reference once in each order; a wrong
one is reported, and not timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from random import Random
from time import perf_counter
from typing import Any

import pyopencl as cl

import acs_cl as acs
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.contestants import experts
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import ratios, spread
from acs_cl.benchmarks.suite.timing import Deadline, interleave, timed
from acs_cl.benchmarks.workloads import catalogue
from acs_cl.benchmarks.workloads.expert import Queues
from acs_cl.benchmarks.workloads.workload import (
    Results,
    Run,
    Workload,
    building_once,
    differences,
)
from acs_cl.devices import kind
from acs_cl.scheduler.orders import ORDERS, Tasks, Work, sequence

PAIRS = ("pair_product", "pair_convolve")
NETWORKS = ("googlenet", "nasnet", "squeezenet")
PLACED = (("disjoint", "always"), ("disjoint", "reuse"), ("same", "reuse"))
"""Policies of lanes: Opara's, and two of GrCUDA's."""
HOSTS = {"CPU": "out_of_order", "GPU": "lanes"}
ROUNDS = {False: 15, True: 3}  # by "is quick"
WITHIN_S = 160.0
TUNED, TUNING_S = "tuned", 3.0
SORTED = 1000
"""Launches to sort."""

BARRED = (", opara", ", opara_critical", f", {TUNED}")
"""What has a bar; the others are for comparison."""

LEAST_OF_PAIRS, LEAST_OF_NETWORKS, LEAST_OVER_ONE_QUEUE, MOST_SORT_US = 1.10, 0.98, 1.68, 300.0


def measure(settings: Settings) -> dict[str, Any]:
    """Measure every workload, as far as time allows, and the sorting."""
    rows: dict[str, Any] = {}
    deadline = Deadline(WITHIN_S)
    for name in (*PAIRS, *NETWORKS):
        if not deadline.has_time():
            break
        rows[name] = _row(settings, catalogue()[name])
    return {"rows": rows, "sorting_us": {name: _sorting_us(name) for name in ORDERS}}


def _row(settings: Settings, workload: Workload) -> dict[str, Any]:
    device = settings.device
    size = workload.presets[settings.preset]
    expected = workload.reference(size, 0)
    failed: dict[str, str] = {}
    samplers: dict[str, Callable[[], float]] = {}
    profile: list[str] = []
    with ExitStack() as stack:
        for name, step, finish, results in _contestants(device, workload, size, stack, profile):
            sample = timed(step, finish)
            sample()
            if wrong := differences(workload, results(), expected):
                failed[name] = wrong
            else:
                samplers[name] = sample
        samples = interleave(samplers, ROUNDS[settings.quick])
    found = {
        "preset": settings.preset,
        "failed": failed,
        "profile": profile,
        "ms": {name: spread(times, 4) for name, times in samples.items()},
        "over_serial": {name: spread(ratios(samples["serial"], s)) for name, s in samples.items()},
        "over_first_in": dict(_over_first_in(samples)),
    }
    best = min((n for n in samples if n.startswith("expert")), key=lambda n: _median(found, n))
    return {**found, "expert": best}


def _contestants(
    device: cl.Device, workload: Workload, size: Any, stack: ExitStack, profile: list[str]
) -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any], Callable[[], Results]]]:
    """Yield names with a step, a wait for it, and its results. `profile` gets that on one queue."""

    def on(backend: str, **options: Any) -> tuple[acs.Runtime, Run]:
        made = acs.Runtime(device, backend=backend, **options)
        runtime = building_once(stack.enter_context(made))
        run = workload.make(runtime, size, 0)
        runtime.finish()
        return runtime, run

    for backend in ("serial", HOSTS.get(kind(device), "lanes"), "auto", "device"):
        runtime, run = on(backend)
        for order in ("first_in",) if backend == "serial" else (*ORDERS, TUNED):
            with runtime.record() as graph:
                run.step()
            profiled = graph.profile()
            if backend == "serial":
                profile += str(profiled).splitlines()
            if order == TUNED:
                graph.tune(TUNING_S)
            else:
                graph.arrange(order)
            name = backend if backend == "serial" else f"{backend}, {order}"
            yield name, graph.replay, runtime.finish, run.results
    for after, new in PLACED:
        runtime, run = on("lanes", lane_after=after, lane_new=new)
        with runtime.record() as graph:
            run.step()
        yield f"lanes, {after} {new}", graph.replay, runtime.finish, run.results
    for name, lanes in experts(device).items():
        platform = Queues(device, lanes=lanes)
        assert workload.expert is not None
        run = workload.expert(platform, size, 0)
        yield name, run.step, platform.finish, run.results


def _median(row: Mapping[str, Any], name: str) -> float:
    found: float = row["ms"][name]["median"]
    return found


def _over_first_in(samples: Mapping[str, list[float]]) -> Iterator[tuple[str, Any]]:
    """Compare each order with program order on the same backend, sample by sample."""
    for name, times in samples.items():
        backend, _, order = name.partition(", ")
        base = samples.get(f"{backend}, first_in")
        if base is not None and order != "first_in":
            yield name, spread(ratios(base, times), 3)


def _sorting_us(order: str) -> dict[str, float]:
    """Sort layers of launches, each behind up to three of the previous layer."""
    rng = Random("sorting")
    width = 25
    edges = [
        (above, task)
        for task in range(width, SORTED)
        for above in sorted(
            rng.sample(range((task // width - 1) * width, task // width * width), 3)
        )
    ]
    work = [Work(rng.uniform(5, 50), rng.random(), rng.random() < 0.5) for _ in range(SORTED)]
    tasks = Tasks([a for a, _ in edges], [b for _, b in edges], [1] * SORTED, work)
    taken = []
    for _ in range(9):
        start = perf_counter()
        sequence(tasks, ORDERS[order])
        taken.append((perf_counter() - start) * 1e6)
    return spread(taken)


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare the results with their bars."""
    found = []
    for name, row in result["rows"].items():
        for contestant, over in row["over_first_in"].items():
            is_to_gain = name in PAIRS and not contestant.endswith(TUNED)
            least = LEAST_OF_PAIRS if is_to_gain else LEAST_OF_NETWORKS
            if contestant.endswith(BARRED):
                what = f"{name}: order over program order, {contestant}"
                found.append(target(what, over, "at least", least, "x"))
        if name in NETWORKS:
            ours = {n: s for n, s in row["over_serial"].items() if "expert" not in n}
            best = max(ours, key=lambda one: ours[one]["median"])
            what = f"{name}: the best replay over one on one queue ({best})"
            found.append(target(what, ours[best], "at least", LEAST_OVER_ONE_QUEUE, "x"))
    for name, taken in result["sorting_us"].items():
        what = f"{SORTED:,} launches in order {name}"
        found.append(target(what, taken, "at most", MOST_SORT_US, "us"))
    return found
