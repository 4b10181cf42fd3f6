"""Steps that repeat, launched from Python, with prediction and without, interleaved.

Input: a device. Output: the cost of a launch for its thread, in microseconds of processor time, in
the steps of programs: a plain loop, tiles of one matrix with halos, stacked cells, a random graph
on views of six sizes, a tiled factorisation, a network of gates, and rigid bodies. Each step ends
with a wait, which counts, and epochs are sent as usual. `foreseen` is the share of launches that
were counted only. Other tests compare the results of the steps.

A timed step comes behind one of the other runtime, which leaves nothing in the caches. `again`: it
comes behind one of its own, as in a program that does nothing else. `before_the_wait`: of that,
without the wait. A driver may wait by asking again and again, so that the time of the device counts
as the thread's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from time import thread_time_ns
from typing import Any

import acs_cl as acs
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.measures import gates, views
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import ratios, spread
from acs_cl.benchmarks.suite.timing import interleave
from acs_cl.benchmarks.workloads.rigid import WORKLOADS as RIGID
from acs_cl.benchmarks.workloads.tiles import Cholesky

ROUNDS = {False: 15, True: 3}  # by "is quick"
WARM, MOST_WARM = 8, 6
"""Steps before the timed ones: an epoch that came three times stays on the device. They are
repeated at most this often, until no more schedulers are built, because kernels launched in turn
are joined in the background."""
TILES = 16
PLAIN_US, STEP_US = 0.15, 0.6

Step = Callable[[], object]


def measure(settings: Settings) -> dict[str, Any]:
    """Measure all programs, or return why the device has no scheduler of its own."""
    context = settings.context()
    try:
        runtimes = {
            name: acs.Runtime(context=context, backend="device", predict=name == "predicted")
            for name in ("predicted", "plain")
        }
    except acs.UsageError as error:
        return {"refused": str(error)}
    with runtimes["predicted"], runtimes["plain"]:
        both = {name: dict(steps(runtime, settings)) for name, runtime in runtimes.items()}
        rows = {}
        for name in both["plain"]:
            samplers = {
                way: _Sampler(runtime, both[way][name]) for way, runtime in runtimes.items()
            }
            for way, sampler in samplers.items():
                _settle(runtimes[way], sampler)
            before = _counts(runtimes["predicted"])
            behind = {
                "plain": _behind(samplers["predicted"], samplers["plain"]),
                "predicted": _behind(samplers["plain"], samplers["predicted"]),
                "again": _behind(samplers["predicted"], samplers["predicted"]),
            }
            before_waits = samplers["predicted"].before_waits
            before_waits.clear()
            samples = interleave(behind, ROUNDS[settings.quick])
            after = _counts(runtimes["predicted"])
            rows[name] = {
                "predicted_us": spread(samples["predicted"]),
                "again_us": spread(samples["again"]),
                "before_the_wait_us": spread(before_waits),
                "plain_us": spread(samples["plain"]),
                "gain": spread(ratios(samples["plain"], samples["predicted"])),
                "foreseen": (after[0] - before[0]) / max(1, after[1] - before[1]),
            }
    return {"rows": rows}


def steps(runtime: acs.Runtime, settings: Settings) -> Iterator[tuple[str, Step]]:
    """Return a step of each program, by name."""
    program = runtime.build(views.SOURCE)
    runtime.prebuild(program.tile, program.add, program.copy)
    for name, graph in (
        ("plain loop", views.contiguous(runtime, program)),
        ("wavefront", views.wavefront(runtime, program, 32)),
        ("cells", views.cells(runtime, program)),
        ("six sizes", views.six_sizes(runtime, program)),
    ):
        yield name, _launching(list(graph()))
    yield "cholesky", Cholesky(runtime, TILES, 1).launch
    yield "gates", gates.Gates(runtime).launch
    for workload in RIGID[:1] if settings.quick else RIGID:
        size = workload.presets["tiny" if settings.quick else "small"]
        yield f"rigid bodies, {workload.name}", workload.make(runtime, size, 0).step


def _launching(launches: list[views.Launch]) -> Step:
    def step() -> None:
        for kernel, arguments in launches:
            kernel(views.GROUP, views.GROUP, *arguments)

    return step


class _Sampler:
    """Times steps of a runtime."""

    def __init__(self, runtime: acs.Runtime, step: Step) -> None:
        self._runtime, self._step = runtime, step
        self.before_waits: list[float] = []

    def __call__(self) -> float:
        runtime = self._runtime
        runtime.finish()
        launched = runtime.engine.number
        began = thread_time_ns()
        self._step()
        waits = thread_time_ns()
        runtime.finish()
        ended, many = thread_time_ns(), runtime.engine.number - launched
        self.before_waits.append((waits - began) / 1e3 / many)
        return (ended - began) / 1e3 / many


def _behind(before: Callable[[], float], sample: Callable[[], float]) -> Callable[[], float]:
    def both() -> float:
        before()
        return sample()

    return both


def _settle(runtime: acs.Runtime, sampler: _Sampler) -> None:
    built = -1
    for _ in range(MOST_WARM):
        for _ in range(WARM):
            sampler()
        runtime.prebuild()
        before, built = built, runtime.stats()["scheduler"]["builds"]
        if built == before:
            break


def _counts(runtime: acs.Runtime) -> tuple[int, int]:
    found = runtime.stats()
    return found["scheduler"]["predicted"]["launches"], found["launches"]


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the bars of a launch in a repeated step."""
    found = []
    for name, row in result.get("rows", {}).items():
        most = PLAIN_US if name == "plain loop" else STEP_US
        what = f"a launch of repeated steps, {name}"
        found.append(target(what, row["predicted_us"], "at most", most, "us"))
        found.append(target(f"{what}, again", row.get("again_us"), "at most", most, "us"))
        if before := row.get("before_the_wait_us"):
            found.append(target(f"{what}, before the wait", before, "at most", most, "us"))
    return found
