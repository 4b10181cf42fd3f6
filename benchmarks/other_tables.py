"""Tables of results that have a form of their own: sweeps, CUDA, few groups, foreign kernels.

In: a folder of results. Out: Markdown, each with the run that it is of.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from acs_cl.benchmarks import documents, few_groups, suite_tables, sweeps
from acs_cl.benchmarks.peers import beside_cuda

STYLE = "github"


def beside_cuda_block(results: Path) -> str:
    """Microseconds per task of the synthetic graphs, ours and in CUDA C++."""
    return "\n\n".join(
        beside_cuda.text(_read(path), STYLE) for path in sorted(results.glob("peers/cuda-*.json"))
    )


def few_groups_block(results: Path) -> str:
    """GrCUDA's six in as many groups as GrCUDA launches."""
    return "\n\n".join(
        few_groups.text(_read(path), STYLE) for path in sorted(results.glob("few-groups-*.json"))
    )


def sweeps_block(results: Path) -> str:
    """Speed-ups over one number of a graph, for each device."""
    parts = []
    for path in sorted(results.glob("sweeps-*.json")):
        document = _read(path)
        there = document["machine"]
        environment = there.get("environment", {})
        with_ = "".join(f", {name}={value}" for name, value in sorted(environment.items()))
        parts += [f"### {documents.short_name(there)}{with_}", sweeps.text(document, STYLE)]
        unrest = max(one["unrest"] for one in there["noise"])
        parts.append(f"{documents.Run(there['commit'], '', there['date'], unrest)}.")
    return "\n\n".join(parts)


def beside_pytorch_block(results: Path) -> str:
    """A network in PyTorch and ours, on the same card."""
    parts = []
    for path in sorted(results.glob("torch-*.json")):
        document = _read(path)
        rows = [
            [name, row["ms"]["median"], row.get("over_eager", {}).get("median")]
            for name, row in document["rows"].items()
        ]
        there = document["machine"]
        unrest = max(one["unrest"] for one in document["noise"])
        run = documents.Run(there["commit"], "", there["date"], unrest)
        head = [f"`{document['network']}`, size `{document['preset']}`", "ms", "over eager PyTorch"]
        parts += [suite_tables.table(rows, head, STYLE), f"{there['device']}: {run}."]
    return "\n\n".join(parts)


def corpus_block(results: Path) -> str:
    """How many kernels of other people become functions, and why the rest does not."""
    found = _read(results / "corpus.json")
    rows = [
        ["kernels that nobody here wrote", f"{found['kernels']}"],
        ["translated, and then built by PoCL", f"{found['translated_and_built']}"],
        ["their share", f"{found['share']:.1%}"],
        *[[f"not: {reason}", f"{count}"] for reason, count in found["misses_by_cause"].items()],
    ]
    return suite_tables.table(rows, ["what", "how many"], STYLE)


def _read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document
