"""Pipelines of image, finance, graph and learning programs: the six of GrCUDA's benchmarks.

In: sizes and seeds. Out: workloads. Each is a few dozen launches at most, over large arrays: what
is gained comes from running branches side by side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads.expert import Queues
from acs_cl.benchmarks.workloads.workload import Results, Workload
from acs_cl.kernel_files import kernel_source

GROUP = 64


# ---- VEC: the sum of differences of squares ------------------------------------------------------


class VecSize(NamedTuple):
    """Elements, and groups that add them up."""

    length: int
    groups: int


class Vec:
    """`sum(x * x - y * y)`: two squares side by side, then a reduction."""

    def __init__(self, platform: Any, size: VecSize, seed: int) -> None:
        self.size = size
        self.program = platform.build(kernel_source("pipelines.cl"))
        count = np.arange(1, size.length + 1, dtype=np.float32)
        self.x, self.y = platform.array(1 / count), platform.array(2 / count)
        self.xx = platform.empty(size.length)
        self.yy = platform.empty(size.length)
        self.partial = platform.empty(size.groups)
        self.total = platform.zeros(1)

    def reset(self) -> None:
        """Nothing is changed that a step reads."""

    def step(self) -> None:
        """Four launches."""
        length, groups = self.size
        program = self.program
        program.square((length,), (GROUP,), self.x, self.xx, length)
        program.square((length,), (GROUP,), self.y, self.yy, length)
        program.partial_sums((groups * GROUP,), (GROUP,), self.xx, self.yy, self.partial, length)
        program.sum_of((GROUP,), (GROUP,), self.partial, self.total, groups)

    def results(self) -> Results:
        """The sum."""
        return {"total": self.total.get()}


class VecByHand(Vec):
    """The same with events."""

    def __init__(self, queues: Queues, size: VecSize, seed: int) -> None:
        super().__init__(queues, size, seed)
        self.queues = queues

    def step(self) -> None:
        """The two squares go to two queues."""
        length, groups = self.size
        launch, program = self.queues.launch, self.program
        one = launch(program.square, (length,), (GROUP,), self.x, self.xx, length)
        two = launch(program.square, (length,), (GROUP,), self.y, self.yy, length, on=1)
        parts = launch(
            program.partial_sums, (groups * GROUP,), (GROUP,),
            self.xx, self.yy, self.partial, length, after=[one, two],
        )  # fmt: skip
        launch(program.sum_of, (GROUP,), (GROUP,), self.partial, self.total, groups, after=[parts])


def vec_reference(size: VecSize, seed: int) -> Results:
    """In double precision."""
    count = np.arange(1, size.length + 1, dtype=np.float32)
    x, y = (1 / count).astype(np.float64), (2 / count).astype(np.float64)
    return {"total": np.array([np.sum(x * x - y * y)])}


WORKLOADS = [
    Workload(
        name="vec",
        family="pipelines",
        about="the sum of differences of squares of two vectors",
        presets={
            "tiny": VecSize(1 << 10, 4),
            "small": VecSize(1 << 16, 16),
            "paper": VecSize(1 << 24, 256),
        },
        make=Vec,
        reference=vec_reference,
        expert=VecByHand,
    ),
]
