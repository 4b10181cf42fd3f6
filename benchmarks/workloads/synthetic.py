"""Run synthetic graphs on a device: one program for all of them, and an expert's version.

Input: sizes of `shapes` and seeds. Output: workloads whose results are exact, so that any missed
edge shows. A run launches the tasks of a graph one after another. Only the expert's uses `edges`.

Tasks are prepared beforehand with their arguments, on every platform. So a step consists of
launches alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from acs_cl.benchmarks.workloads.bare import BareArray
from acs_cl.benchmarks.workloads.expert import Queues, Token
from acs_cl.benchmarks.workloads.graphs import GROUP, Graph, Region, Task, computed, edges
from acs_cl.benchmarks.workloads.shapes import (
    PATTERNS,
    Aliasing,
    Chains,
    FullWindow,
    Layers,
    OneArray,
    ReadMany,
    Strided,
    TaskBench,
)
from acs_cl.benchmarks.workloads.workload import Results, Workload, ready
from acs_cl.opencl_c.kernel_files import kernel_source

SOURCE = "synthetic.cl"


class Synthetic:
    """A graph on a platform."""

    def __init__(self, platform: Any, size: Any, seed: int) -> None:
        self.graph: Graph = size.graph(seed)
        self.program = platform.build(kernel_source(SOURCE))
        self.contents = self.graph.contents()
        self.arrays = [platform.array(values) for values in self.contents]
        self.calls = [self._call(number, task) for number, task in enumerate(self.graph.tasks)]
        self.launches = [ready(*sizes, *arguments) for *sizes, arguments in self.calls]

    def reset(self) -> None:
        """Restore the arrays."""
        for array, values in zip(self.arrays, self.contents, strict=True):
            array.set(values)

    def step(self) -> None:
        """Launch every task, in program order."""
        for launch in self.launches:
            launch()

    def results(self) -> Results:
        """Return all arrays, one behind another."""
        return {"arrays": np.concatenate([array.get() for array in self.arrays])}

    def kernels(self) -> list[Any]:
        """Return the kernels that the graph launches."""
        return list(dict.fromkeys(kernel for kernel, *_ in self.calls))

    def _call(self, number: int, task: Task) -> tuple[Any, tuple[int], tuple[int], list[Any]]:
        regions = [*task.reads, task.writes]
        placed = [self._place(region) for region in regions]
        arguments = [argument for argument, _ in placed] + [number, task.rounds]
        if all(region.rows == 1 and not region.start for region in regions):
            arguments += [task.span] if task.reads else []
        else:
            arguments += [placed[-1][1], task.writes.width, task.writes.pitch]
            for region, (_, lead) in zip(task.reads, placed, strict=False):
                arguments += [task.span, lead, region.width, region.pitch]
        kernel = getattr(self.program, kernel_name(task))
        return kernel, (task.groups * GROUP,), (GROUP,), arguments

    def _place(self, region: Region) -> tuple[Any, int]:
        """Return the region as a view, and how many elements of it a kernel has to skip. That is 0,
        except on platforms that pass all of the array. Sub-buffers begin at few places, and
        NVIDIA's driver (580) crashes when 1,491 of them that kernels have used are released."""
        array = self.arrays[region.array]
        if isinstance(array, BareArray):
            return array, region.start
        if not region.start and region.rows == 1:
            return (array if region.size == len(array) else array[: region.size]), 0
        if region.rows == 1:
            return array[region.start : region.end], 0
        row, column = divmod(region.start, region.pitch)
        matrix = array.reshape(-1, region.pitch)
        return matrix[row : row + region.rows, column : column + region.width], 0


class SyntheticByHand(Synthetic):
    """The same with events: the graph's own edges, and the queues that its tasks name."""

    def __init__(self, queues: Queues, size: Any, seed: int) -> None:
        super().__init__(queues, size, seed)
        self.queues = queues
        lanes = [task.lane for task in self.graph.tasks]
        self.plan = list(zip(self.launches, edges(self.graph), lanes, strict=True))

    def step(self) -> None:
        """Launch every task behind its upstream."""
        tokens: list[Token] = []
        go = self.queues.go
        for launch, upstream, lane in self.plan:
            tokens.append(go(launch, [tokens[other] for other in upstream], lane))


def kernel_name(task: Task) -> str:
    """Name the kernel of a task, by whether it updates, and how much it reads."""
    plain = all(region.rows == 1 and not region.start for region in (*task.reads, task.writes))
    return f"{'mix' if task.updates else 'put'}{len(task.reads)}{'' if plain else '_at'}"


def reference(size: Any, seed: int) -> Results:
    """Compute the tasks in NumPy."""
    return {"arrays": np.concatenate(computed(size.graph(seed)))}


def _workload(name: str, about: str, tiny: Any, small: Any, paper: Any) -> Workload:
    return Workload(
        name=name,
        family="synthetic",
        about=about,
        presets={"tiny": tiny, "small": small, "paper": paper},
        make=Synthetic,
        reference=reference,
        expert=SyntheticByHand,
        rtol=0.0,
        atol=0.0,
    )


WORKLOADS = [
    _workload(
        "chains", "independent chains of one-group kernels",
        Chains(4, 6, rounds=20), Chains(64, 16, rounds=400), Chains(64, 64, rounds=1500),
    ),
    _workload(
        "layers", "random layers, three arrays read by each task",
        Layers(6, 5, 3, (1, 4), (0, 50)), Layers(32, 16, 3, (1, 20), (0, 400)),
        Layers(64, 16, 3, (1, 200), (0, 12000)),
    ),
    *(
        _workload(
            pattern, f"Task Bench's pattern {pattern}",
            TaskBench(pattern, 8, 5, rounds=20), TaskBench(pattern, rounds=400),
            TaskBench(pattern, rounds=1500),
        )
        for pattern in PATTERNS
    ),
    _workload(
        "one-array", "all tasks write one array",
        OneArray(20, rounds=20), OneArray(256, rounds=400), OneArray(1024, rounds=1500),
    ),
    _workload(
        "read-many", "many read what one writes, again and again",
        ReadMany(6, 4, rounds=20), ReadMany(64, 8, rounds=400), ReadMany(128, 16, rounds=1500),
    ),
    _workload(
        "full-window", "a chain that fills the window, then what is independent of it",
        FullWindow(8, 8, 2, rounds=20), FullWindow(64, 64, 4, rounds=400),
        FullWindow(256, 256, 4, rounds=1500),
    ),
    _workload(
        "strided", "bands of columns of one matrix, and rows across them",
        Strided(32, 2, rounds=20), Strided(64, 8, rounds=400), Strided(128, 16, rounds=1500),
    ),
    _workload(
        "aliasing", "views of one array that begin anywhere",
        Aliasing(30, 512, rounds=20), Aliasing(512, 16384, rounds=400),
        Aliasing(2048, 65536, rounds=1500),
    ),
]  # fmt: skip
