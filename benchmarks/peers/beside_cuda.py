"""Synthetic graphs here and in CUDA C++, on one card, in one run.

In: names of synthetic workloads, a preset, backends. Out: microseconds per task of the contestants
of `acs-cl bench` beside those of `graphs.cu`: one stream, several streams with events, a CUDA Graph
that is new each time (its parts are in the JSON), and one that is launched again.

    python -m acs_cl.benchmarks.peers.beside_cuda --preset paper --within 140 --json out.json

Needs a CUDA compiler, `nvcc`, and a card that both CUDA and OpenCL know. Each workload is measured
there and here before the next one, and written to the JSON at once, so that a run that is cut off
has measured something.

Invariant: who computes something else than the reference is not timed, here as there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any

from acs_cl import UsageError, devices
from acs_cl.benchmarks import suite, suite_tables
from acs_cl.benchmarks.harness import host_backends
from acs_cl.benchmarks.peers import cuda_graphs
from acs_cl.benchmarks.suite_cli import say
from acs_cl.benchmarks.workloads.synthetic import WORKLOADS
from acs_cl.benchmarks.workloads.workload import PRESETS, Workload

WAYS = {
    "stream": "CUDA, one stream",
    "streams": "CUDA, streams",
    "new_graph": "CUDA Graph, new",
    "replay": "CUDA Graph, again",
}
"""Those of `graphs.cu` that the table shows."""


def growing(plan: suite.Plan) -> Iterator[dict[str, Any]]:
    """The document of `acs-cl bench` after each workload, with `cuda` beside it."""
    start = perf_counter()
    say("the program in CUDA is compiled", 0.0)
    with cuda_graphs.Program() as program:
        # without a card this is an error
        program.measure({"a try": plan.workloads[0].presets["tiny"].graph(0)}, 1)
        found: dict[str, Any] = {}
        left_s = plan.within_s - (perf_counter() - start)
        for document in suite.growing(plan._replace(within_s=left_s), say):
            share = len(found) / len(plan.workloads)
            workload = plan.workloads[len(found)]
            say(f"{workload.name}: CUDA", share)
            found[workload.name] = _in_cuda(program, workload, plan)
            yield {**document, "cuda": found}


def _in_cuda(program: cuda_graphs.Program, workload: Workload, plan: suite.Plan) -> dict[str, Any]:
    graph = workload.presets[plan.preset].graph(plan.seed)
    try:
        return program.measure({workload.name: graph}, plan.runs)[workload.name]
    except cuda_graphs.PeerError as error:
        return {"failed": str(error)}


def text(document: Mapping[str, Any], style: str = "simple") -> str:
    """Microseconds per task, medians."""
    names = suite_tables.contestants(document)
    rows = []
    for workload, entry in document["workloads"].items():
        there = document["cuda"][workload].get("us_per_task")
        cuda = [there[way]["median"] if there else "failed" for way in WAYS]
        ours = [_per_task(entry, name) for name in names]
        rows.append([workload, f"{entry['bound']['launches']}", *cuda, *ours])
    table = suite_tables.table(rows, ["us per task", "tasks", *WAYS.values(), *names], style)
    return "\n\n".join([table, *failures(document), suite_tables.footer(document)])


def failures(document: Mapping[str, Any]) -> list[str]:
    """What failed here and there, a line each."""
    there = document["cuda"].items()
    wrong = [f"{name}, CUDA: {one['failed']}" for name, one in there if "failed" in one]
    return [*suite_tables.failures(document), *wrong]


def _per_task(entry: Mapping[str, Any], name: str) -> float | str | None:
    """Microseconds; 'failed', or None for what was not run."""
    if name not in entry["rows"]:
        return suite_tables.speedup(entry, name)
    return float(entry["rows"][name]["ms"]["median"] * 1e3 / entry["bound"]["launches"])


def planned(args: argparse.Namespace) -> suite.Plan:
    """What the options ask for."""
    there = {workload.name: workload for workload in WORKLOADS}
    wrong = [name for name in args.workloads if name not in there]
    if wrong:
        raise UsageError(f"no synthetic workload is called {wrong[0]!r}: {', '.join(there)}")
    if cuda_graphs.compiler() is None:
        raise UsageError(cuda_graphs.NO_COMPILER)
    device = devices.choose(args.device)
    backends = [*host_backends(device), "device", "auto"]
    for name in args.backend or ():
        if name not in backends:
            raise UsageError(f"no backend {name!r} on this device: {', '.join(backends)}")
    asked = [name for name in backends if not args.backend or name in args.backend]
    some = [there[name] for name in args.workloads or there]
    return suite.Plan(device, some, args.preset, asked, args.runs, args.seed, args.within)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="synthetic graphs in CUDA C++, beside acs_cl")
    add = parser.add_argument
    add("workloads", nargs="*", metavar="WORKLOAD", help="without any: all")
    add("--preset", choices=PRESETS, default="paper")
    add("--device", metavar="SPEC", help="of acs_cl")
    add("--backend", action="append", metavar="NAME", help="may be given several times (all)")
    add("--runs", type=int, default=7)
    add("--seed", type=int, default=0)
    add("--within", type=float, default=inf, metavar="S", help="leave out what would end later")
    add("--json", type=Path, metavar="FILE", help="written after each workload")
    args = parser.parse_args(argv)
    try:
        for document in growing(planned(args)):
            if args.json:
                args.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    except (UsageError, cuda_graphs.PeerError) as error:
        parser.exit(2, f"{error}\n")
    say("", 1.0)
    print(text(document))


if __name__ == "__main__":
    main()
