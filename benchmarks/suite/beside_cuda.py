"""Synthetic graphs here and in CUDA C++, on one card, in one run.

Input: names of synthetic workloads, a preset, backends. Output: microseconds per task of the
contestants of `acs-cl bench` beside those of `graphs.cu`. These are one stream, several streams
with events, a CUDA Graph that is new each time (its parts are in the JSON), and one that is
launched again.

Needs a CUDA compiler, `nvcc`, and a card that both CUDA and OpenCL know. Each workload is measured
there and here before the next one, and written to the JSON at once. So a run that is cut off keeps
its results.

Invariant: a contestant with wrong results is not timed, here or there.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any

from acs_cl.benchmarks.peers import cuda_graphs
from acs_cl.benchmarks.suite import contest
from acs_cl.benchmarks.suite.contestants import Plan
from acs_cl.benchmarks.suite.progress import say
from acs_cl.benchmarks.suite.statistics import spreads
from acs_cl.benchmarks.workloads.workload import Workload


def growing(plan: Plan) -> Iterator[dict[str, Any]]:
    """Return the document of `acs-cl bench` after each workload, with `cuda` added."""
    start = perf_counter()
    say("the program in CUDA is compiled", 0.0)
    with cuda_graphs.Program() as program:
        # without a card this is an error
        program.measure({"a try": plan.workloads[0].presets["tiny"].graph(0)}, 1)
        found: dict[str, Any] = {}
        left_s = plan.within_s - (perf_counter() - start)
        for document in contest.growing(plan._replace(within_s=left_s), say):
            share = len(found) / len(plan.workloads)
            workload = plan.workloads[len(found)]
            say(f"{workload.name}: CUDA", share)
            found[workload.name] = _in_cuda(program, workload, plan)
            yield {**document, "cuda": dict(found)}


def _in_cuda(program: cuda_graphs.Program, workload: Workload, plan: Plan) -> dict[str, Any]:
    graph = workload.presets[plan.preset].graph(plan.seed)
    try:
        found = program.measure({workload.name: graph}, plan.runs)[workload.name]
    except cuda_graphs.PeerError as error:
        return {"failed": str(error)}
    return found | {"us_per_task": spreads(found["us_per_task"], 4)}
