"""Synthetic graphs here and in CUDA C++, on one card, in one run.

In: names of synthetic workloads and a preset. Out: microseconds per task of every contestant of
`acs-cl bench` beside those of `graphs.cu`: one stream, several streams with events, a CUDA Graph
that is new each time (its parts are in the JSON), and one that is launched again.

    python -m acs_cl.benchmarks.peers.beside_cuda --preset paper --json out.json

Needs a CUDA compiler, `nvcc`, and a card that both CUDA and OpenCL know.

Invariant: who computes something else than the reference is not timed, here as there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from acs_cl import UsageError, devices
from acs_cl.benchmarks import suite, suite_tables
from acs_cl.benchmarks.harness import host_backends
from acs_cl.benchmarks.peers import cuda_graphs
from acs_cl.benchmarks.workloads.synthetic import WORKLOADS
from acs_cl.benchmarks.workloads.workload import PRESETS

WAYS = {
    "stream": "CUDA, one stream",
    "streams": "CUDA, streams",
    "new_graph": "CUDA Graph, new",
    "replay": "CUDA Graph, again",
}
"""Those of `graphs.cu` that the table shows."""


def measure(
    names: Sequence[str], preset: str, device: Any, runs: int = 7, seed: int = 0
) -> dict[str, Any]:
    """The document of `acs-cl bench`, with `cuda` beside it."""
    there = {workload.name: workload for workload in WORKLOADS}
    wrong = [name for name in names if name not in there]
    if wrong:
        raise UsageError(f"no synthetic workload is called {wrong[0]!r}: {', '.join(there)}")
    if cuda_graphs.compiler() is None:
        raise UsageError(cuda_graphs.NO_COMPILER)
    some = [there[name] for name in names or there]
    graphs = {workload.name: workload.presets[preset].graph(seed) for workload in some}
    found = cuda_graphs.measure(graphs, runs)
    backends = [*host_backends(device), "device", "auto"]
    plan = suite.Plan(device, some, preset, backends, runs, seed)
    return {**suite.measure(plan, lambda text, share: None), "cuda": found}


def text(document: Mapping[str, Any]) -> str:
    """Microseconds per task, medians."""
    names = suite_tables.contestants(document)
    rows = []
    for workload, entry in document["workloads"].items():
        tasks = entry["bound"]["launches"]
        there = document["cuda"][workload]["us_per_task"]
        ours = [
            None if row is None else row["ms"]["median"] * 1e3 / tasks
            for row in map(entry["rows"].get, names)
        ]
        rows.append([workload, f"{tasks}", *[there[way]["median"] for way in WAYS], *ours])
    table = suite_tables.table(rows, ["us per task", "tasks", *WAYS.values(), *names])
    return "\n".join([table, *suite_tables.failures(document), suite_tables.footer(document)])


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="synthetic graphs in CUDA C++, beside acs_cl")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="without any: all")
    parser.add_argument("--preset", choices=PRESETS, default="paper")
    parser.add_argument("--device", metavar="SPEC", help="of acs_cl")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args(argv)
    try:
        device = devices.choose(args.device)
        document = measure(args.workloads, args.preset, device, args.runs, args.seed)
    except UsageError as error:
        parser.exit(2, f"{error}\n")
    if args.json:
        args.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(text(document))


if __name__ == "__main__":
    main()
