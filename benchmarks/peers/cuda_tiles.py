"""Run a wavefront and a Cholesky factorisation of tiles in CUDA C++, on the same card.

Input: a program of `tiles.cu`, and its size. Output: microseconds of one stream, of a new CUDA
Graph, and of its replay. Without a CUDA compiler there is nothing, and a line that says so.

Invariant: the program compares its runs with each other, and prints a sum of the result, which the
caller compares.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from acs_cl.benchmarks.peers.cuda_graphs import NO_COMPILER, Program, compiler

SOURCE = Path(__file__).resolve().parent / "tiles.cu"


def measure(sizes: dict[str, tuple[int, int]], rounds: int) -> dict[str, dict[str, Any]]:
    """Give launches, a sum of the result and samples for each of `sizes`: name, tiles in a row and
    passes over each."""
    if compiler() is None:
        print(f"nothing of CUDA is measured: {NO_COMPILER}", file=sys.stderr)
        return {}
    with Program(SOURCE) as program:
        return {
            name: json.loads(program.run(rounds, name, tiles, passes))
            for name, (tiles, passes) in sizes.items()
        }
