"""Task Bench: the cost of an empty task with dependencies, end to end.

Input: a device. Output: for each pattern, 64 wide and 16 deep, microseconds per task from the first
launch to the end of `finish`. The contestants are backends `device`, `auto` and `lanes`, hand-made
events, and bare PyOpenCL in order; on a GPU with a CUDA compiler also CUDA's streams and graphs in
the same run. A task is one launch of one group, which only reads the data it depends on. Everything
is launched anew in each sample; results are compared with the reference.

The limit is CUDASTF's own figures, which are of tasks without any kernel: 3.0 to 7.5 us by pattern,
64 wide.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

import acs_cl as acs
from acs_cl.benchmarks.peers import cuda_graphs
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import ratios, spread, spreads
from acs_cl.benchmarks.suite.timing import interleave, timed
from acs_cl.benchmarks.workloads.bare import InOrder
from acs_cl.benchmarks.workloads.expert import Queues
from acs_cl.benchmarks.workloads.graphs import computed
from acs_cl.benchmarks.workloads.shapes import PATTERNS, TaskBench
from acs_cl.benchmarks.workloads.synthetic import Synthetic, SyntheticByHand
from acs_cl.benchmarks.workloads.workload import building_once

BACKENDS = ("device", "auto", "lanes")
ROUNDS = {False: 15, True: 3}  # by "is quick"
WIDTH = {False: 64, True: 8}
CUDASTF_US = (3.0, 7.5)
"""Times of its fastest and of its slowest pattern."""

LEAST_OVER_BARE = 3.0
SEED = 1


def measure(settings: Settings) -> dict[str, Any]:
    """Measure all patterns on everything there is."""
    sizes = {pattern: TaskBench(pattern, WIDTH[settings.quick]) for pattern in PATTERNS}
    cuda: dict[str, dict[str, Any]] = {}
    if not settings.on_cpu:
        graphs = {pattern: size.graph(SEED) for pattern, size in sizes.items()}
        cuda = cuda_graphs.measure(graphs, ROUNDS[settings.quick])
    context = settings.context()
    rows = {}
    with ExitStack() as stack:
        platforms: dict[str, tuple[Any, Any]] = {
            backend: (stack.enter_context(acs.Runtime(context=context, backend=backend)), Synthetic)
            for backend in BACKENDS
        }
        platforms["hand"] = Queues(settings.device, context), SyntheticByHand
        platforms["bare"] = InOrder(settings.device, context), Synthetic
        for platform, _ in platforms.values():
            building_once(platform)
        for pattern, size in sizes.items():
            rows[pattern] = _row(platforms, size, ROUNDS[settings.quick])
            if pattern in cuda:
                took = spreads(cuda[pattern]["us_per_task"], 4)
                rows[pattern]["cuda"] = cuda[pattern] | {"us_per_task": took}
    return {"rows": rows}


def _row(platforms: dict[str, tuple[Any, Any]], size: TaskBench, rounds: int) -> dict[str, Any]:
    expected = np.concatenate(computed(size.graph(SEED)))
    samplers = {}
    runs = {}
    for name, (platform, make) in platforms.items():
        run = runs[name] = make(platform, size, SEED)
        if isinstance(platform, acs.Runtime):
            platform.prebuild(*run.kernels())
        samplers[name] = timed(run.step, platform.finish, 1e6 / len(run.calls))
    for sampler in samplers.values():
        sampler()
    samples = interleave(samplers, rounds)
    for name, run in runs.items():
        if not np.array_equal(run.results()["arrays"], expected):
            raise RuntimeError(f"{name!r} computed something else than NumPy for {size}")
    row: dict[str, Any] = {
        "tasks": len(runs["bare"].calls),
        "us_per_task": spreads(samples),
        "over_bare": {},
    }
    for name in samples.keys() - {"bare"}:
        row["over_bare"][name] = spread(ratios(samples["bare"], samples[name]))
    return row


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare the results with their bars."""
    rows = result["rows"]
    if machine["kind"] == "CPU":
        ratio = rows["trivial"]["over_bare"]["device"]
        what = "new graphs of trivial launches over bare PyOpenCL in order, `device`"
        return [target(what, ratio, "at least", LEAST_OVER_BARE, "x")]
    found = []
    for backend in ("device", "auto"):
        took = sorted(
            (row["us_per_task"][backend] for row in rows.values()), key=lambda one: one["median"]
        )
        for which, one, limit in zip(
            ("quickest", "slowest"), (took[0], took[-1]), CUDASTF_US, strict=True
        ):
            what = f"Task Bench, end to end per task, the {which} pattern, `{backend}`"
            found.append(target(what, one, "below", limit, "us"))
    return found
