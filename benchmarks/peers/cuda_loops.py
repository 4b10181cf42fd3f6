"""Run loops in CUDA C++ on the same card: a conditional node of a CUDA Graph.

Input: the numbers of kernels in a body. Output: microseconds of a round, by that number. Without a
CUDA compiler there is nothing, and a line that says so.

Invariant: a run with other results is an error, not a figure.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acs_cl.benchmarks.peers import cuda_graphs

SOURCE = Path(__file__).resolve().parent / "loops.cu"


def measure(bodies: Sequence[int], rounds: int, runs: int) -> dict[str, Any]:
    """Give samples of microseconds of a round, for each number of kernels; or what failed."""
    if cuda_graphs.compiler() is None:
        print(f"nothing of CUDA is measured: {cuda_graphs.NO_COMPILER}", file=sys.stderr)
        return {}
    try:
        with cuda_graphs.Program(SOURCE) as program:
            return parsed(program.run(rounds, runs, *bodies))
    except cuda_graphs.PeerError as error:
        return {"failed": str(error)}


def parsed(printed: str) -> dict[str, Any]:
    """Read the output of the program."""
    found = {}
    for line in printed.splitlines():
        row = json.loads(line)
        if row["wrong"]:
            raise cuda_graphs.PeerError(f"CUDA computed something else: {row['wrong']} words")
        found[str(row["kernels"])] = row["us_per_round"]
    return found
