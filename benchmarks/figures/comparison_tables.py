"""Compare with others on the same work: CUDA, PyTorch, GrCUDA's sizes, and foreign kernels.

Input: documents of `suite.beside_cuda`, `suite.beside_torch`, `suite.few_groups` and
`validation.corpus`. Output: text for a terminal, or Markdown.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acs_cl.benchmarks.figures import bench_tables
from acs_cl.benchmarks.peers.published import GRCUDA, GRCUDA_MEAN
from acs_cl.benchmarks.suite import documents
from acs_cl.benchmarks.suite.contestants import BASELINES

STYLE = "github"

WAYS = {
    "stream": "CUDA, one stream",
    "streams": "CUDA, streams",
    "new_graph": "CUDA Graph, new",
    "replay": "CUDA Graph, again",
}
"""Contestants of `graphs.cu` that the table shows."""


def beside_cuda_block(results: Path) -> str:
    """Return microseconds per task of the synthetic graphs, ours and in CUDA C++."""
    return "\n\n".join(
        cuda_text(documents.read(path), STYLE) for path in sorted(results.glob("peers/cuda-*.json"))
    )


def cuda_text(document: Mapping[str, Any], style: str = "simple") -> str:
    """Return microseconds per task, medians."""
    names = bench_tables.contestants(document)
    rows = []
    for workload, entry in document["workloads"].items():
        there = document["cuda"][workload].get("us_per_task")
        cuda = [there[way]["median"] if there else "failed" for way in WAYS]
        ours = [_per_task(entry, name) for name in names]
        rows.append([workload, f"{entry['bound']['launches']}", *cuda, *ours])
    table = bench_tables.table(rows, ["us per task", "tasks", *WAYS.values(), *names], style)
    return "\n\n".join([table, *cuda_failures(document), bench_tables.footer(document)])


def cuda_failures(document: Mapping[str, Any]) -> list[str]:
    """Return failures here and there, a line each."""
    there = document["cuda"].items()
    wrong = [f"{name}, CUDA: {one['failed']}" for name, one in there if "failed" in one]
    return [*bench_tables.failures(document), *wrong]


def _per_task(entry: Mapping[str, Any], name: str) -> float | str | None:
    """Return microseconds; 'failed', or None: it was not run."""
    if name not in entry["rows"]:
        return bench_tables.speedup(entry, name)
    return float(entry["rows"][name]["ms"]["median"] * 1e3 / entry["bound"]["launches"])


def few_groups_block(results: Path) -> str:
    """Return GrCUDA's six in as many groups as GrCUDA launches."""
    return "\n\n".join(
        few_groups_text(documents.read(path), STYLE)
        for path in sorted(results.glob("few-groups-*.json"))
    )


def few_groups_text(document: Mapping[str, Any], style: str = "simple") -> str:
    """Return times of the baseline, and speed-ups of the others, by number."""
    rows: list[list[Any]] = []
    parts = []
    for number, one in document["per_unit"].items():
        names = [name for name in bench_tables.contestants(one) if name not in BASELINES]
        for name, entry in one["workloads"].items():
            base = entry["rows"].get(entry["baseline"])
            took = base["ms"]["median"] if base else None
            least_ms = bench_tables.bound_ms(entry)
            most = took / least_ms if took and isinstance(least_ms, float) else None
            speed = [bench_tables.speedup(entry, other) for other in names]
            rows.append([number, name, took, most, *speed])
        means = [bench_tables.mean_of(one, GRCUDA, name) for name in names]
        rows.append([number, f"mean, published {GRCUDA_MEAN}", None, None, *means])
        parts = [*bench_tables.failures(one), bench_tables.footer(one)]
    head = ["groups for a unit", "workload", "baseline ms", "bound", *names]
    return "\n\n".join([bench_tables.table(rows, head, style), *parts])


def beside_pytorch_block(results: Path) -> str:
    """Return a network in PyTorch and ours, on the same card."""
    parts = []
    for path in sorted(results.glob("torch-*.json")):
        document = documents.read(path)
        rows = [
            [name, row["ms"]["median"], row.get("over_eager", {}).get("median")]
            for name, row in document["rows"].items()
        ]
        there = document["machine"]
        unrest = max(one["unrest"] for one in document["noise"])
        run = documents.Run(there["commit"], "", there["date"], unrest)
        head = [f"`{document['network']}`, size `{document['preset']}`", "ms", "over eager PyTorch"]
        parts += [bench_tables.table(rows, head, STYLE), f"{there['device']}: {run}."]
    return "\n\n".join(parts)


def torch_text(document: Mapping[str, Any]) -> str:
    """Return text for a terminal."""
    rows = [
        [
            name,
            row["ms"]["median"],
            f"{row['ms']['p25']} to {row['ms']['p75']}",
            row["launching_ms"],
            row.get("over_eager", {}).get("median"),
            document["build_ms"].get(name),
        ]
        for name, row in document["rows"].items()
    ]
    headers = ["", "ms", "quartiles", "launching ms", "over eager", "building ms"]
    lines = [f"{document['network']} at {document['preset']}, {document['runs']} interleaved runs"]
    lines.append(bench_tables.table(rows, headers))
    lines += [f"{name} failed: {why}" for name, why in document["failed"].items()]
    return "\n".join(lines)


def corpus_block(results: Path) -> str:
    """Return how many foreign kernels become functions, and why the rest does not."""
    found = documents.read(results / "corpus.json")
    rows = [
        ["kernels that nobody here wrote", f"{found['kernels']}"],
        ["translated, and then built by PoCL", f"{found['translated_and_built']}"],
        ["their share", f"{found['share']:.1%}"],
        *[[f"not: {reason}", f"{count}"] for reason, count in found["misses_by_cause"].items()],
    ]
    return bench_tables.table(rows, ["what", "how many"], STYLE)
