"""Run synthetic graphs in CUDA C++ on the same card: one stream, streams with events, CUDA Graphs.

Input: graphs by name. Output: for each, microseconds per task of every way that `graphs.cu`
measures. Without a CUDA compiler there is nothing, and a line that says so. The program gets a
graph as a file of words, with the arrays that the reference computed, and compares its own with
them to the bit.

Invariant: a run with other results is an error, not a figure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from acs_cl import UsageError
from acs_cl.benchmarks.workloads.graphs import GROUP, Graph, Region, Words, computed, edges

SOURCE = Path(__file__).resolve().parent / "graphs.cu"
MAGIC, VERSION = 0x47534341, 1
STREAMS = 32
ROUNDS = 7
LIMIT_S = 300
PLACES = ("/usr/local/cuda/bin/nvcc",)
"""Where a compiler is that is not on the path."""
NO_COMPILER = f"there is no CUDA compiler: no nvcc on the path, none at {', '.join(PLACES)}"


class PeerError(RuntimeError):
    """The compiler or the program failed, or computed something else."""


def compiler() -> str | None:
    """Return the path of the CUDA compiler. None: there is none."""
    return next(filter(None, map(shutil.which, ("nvcc", *PLACES))), None)


def measure(
    graphs: Mapping[str, Graph], rounds: int = ROUNDS, group: int = GROUP
) -> dict[str, dict[str, Any]]:
    """Give by name: tasks, streams, and for each way samples of its microseconds per task. Kernels
    run in groups of `group`."""
    if compiler() is None:
        print(f"nothing of CUDA is measured: {NO_COMPILER}", file=sys.stderr)
    if compiler() is None or not graphs:
        return {}
    with Program() as program:
        return program.measure(graphs, rounds, group)


class Program:
    """A program in CUDA, compiled in a folder of its own, which is gone after a `with`."""

    def __init__(self, source: Path = SOURCE, flags: Sequence[str] = ()) -> None:
        words = compiler()
        if words is None:
            raise UsageError(NO_COMPILER)
        self._folder = tempfile.TemporaryDirectory()
        self.path = str(Path(self._folder.name, "graphs"))
        try:
            common = (words, "-O2", "-std=c++17", "-arch=native", "-o", self.path)
            _run([*common, *flags, str(source)])
        except BaseException:
            self._folder.cleanup()
            raise

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *error: object) -> None:
        self._folder.cleanup()

    def run(self, *arguments: object, **environment: str) -> str:
        """Run the program; return its output."""
        return _run([self.path, *map(str, arguments)], **environment)

    def measure(
        self, graphs: Mapping[str, Graph], rounds: int = ROUNDS, group: int = GROUP
    ) -> dict[str, dict[str, Any]]:
        """Measure all graphs in one process."""
        files = []
        for number, graph in enumerate(graphs.values()):
            path = Path(self._folder.name, f"{number}.graph")
            path.write_bytes(as_file(graph, group))
            files.append(str(path))
        # as many connections as streams, or streams that share one wait for each other
        environment = {"CUDA_DEVICE_MAX_CONNECTIONS": str(STREAMS)}
        printed = self.run(rounds, STREAMS, *files, **environment)
        return parsed(printed, list(graphs))


def parsed(printed: str, names: list[str]) -> dict[str, dict[str, Any]]:
    """Read the output of the program for the graphs of these names."""
    rows = [json.loads(line) for line in printed.splitlines()]
    found = {}
    for name, row in zip(names, rows, strict=True):
        if any(row["wrong"].values()):
            raise PeerError(f"CUDA computed something else than NumPy for {name}: {row['wrong']}")
        found[name] = {key: row[key] for key in ("tasks", "streams", "us_per_task")}
    return found


def as_file(graph: Graph, group: int = GROUP) -> bytes:
    """Write a graph as words: its edges, and the contents of its arrays before and after."""
    parts: list[Words] = [
        _words(MAGIC, VERSION, group, len(graph.arrays), len(graph.tasks), *graph.arrays),
        *graph.contents(),
        *computed(graph),
    ]
    for task, upstream in zip(graph.tasks, edges(graph), strict=True):
        into, rounds, lane = task.writes, task.rounds, task.lane
        head = (task.updates, into.size, rounds, task.span, lane, len(task.reads), len(upstream))
        parts.append(_words(*head, *_region(into)))
        parts += [_words(*_region(region)) for region in task.reads]
        parts.append(_words(*upstream))
    return np.concatenate(parts).astype("<u4").tobytes()


def _region(region: Region) -> tuple[int, ...]:
    return region.array, region.start, region.width, region.rows, region.pitch


def _words(*values: int) -> Words:
    return np.array(values, np.uint32)


def _run(command: list[str], **environment: str) -> str:
    """Return the output of a command. Raise its complaint as an error."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True,
            check=False, timeout=LIMIT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise PeerError(f"{name} did not end within {LIMIT_S} s") from None
    if done.returncode:
        complaint = (done.stderr or done.stdout).strip()
        raise PeerError(f"{name} failed: {complaint}")
    return done.stdout
