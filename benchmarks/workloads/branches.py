"""DL: a small network of two branches.

Input: sizes and seeds. Output: the workload `dl`. Convolution, pooling and convolution of two
images side by side; a number is made from both.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads.pipelines import GROUP, Pipeline, across
from acs_cl.benchmarks.workloads.workload import Results, Workload, in_parts

FIRST, SECOND, POOL = 8, 16, 5
"""Planes after each convolution, and the side of what is averaged between them."""

ROWS = 16
"""Of planes, worked on at a time in NumPy."""


class DlSize(NamedTuple):
    """The side of each branch's image, and groups that add up the end."""

    side: int
    groups: int

    def sides(self) -> tuple[int, int, int]:
        """Return the sides after convolution, pooling and convolution."""
        first = (self.side - 3) // 2 + 1
        pooled = first // POOL
        return first, pooled, (pooled - 3) // 2 + 1


class Branch:
    """What one branch reads and writes."""

    def __init__(self, platform: Any, size: DlSize, image: Any, weights: Any) -> None:
        first, pooled, second = size.sides()
        self.image = platform.array(image)
        self.weights = [platform.array(one) for one in weights]
        self.first = platform.empty((FIRST, first, first))
        self.pooled = platform.empty((FIRST, pooled, pooled))
        self.second = platform.empty((SECOND, second, second))


class Dl(Pipeline):
    """A number from two images."""

    def __init__(self, platform: Any, size: DlSize, seed: int) -> None:
        super().__init__(platform, size)
        images, weights, dense = data(size, seed)
        self.branches = [
            Branch(platform, size, image, own)
            for image, own in zip(images, weights, strict=True)
        ]  # fmt: skip
        self.dense = platform.array(dense)
        self.features = platform.empty(dense.size)
        self.partial, self.total = platform.empty(size.groups), platform.empty(1)
        first, pooled, second = self.sides = size.sides()
        self.grids = (
            (*across(first), first, FIRST),
            (*across(pooled), pooled, FIRST),
            (*across(second), second, SECOND),
        )

    def step(self) -> None:
        """Make nine launches."""
        side, groups = self.size
        program, row, one = self.program, (GROUP, 1, 1), (GROUP,)
        first, pooled, second = self.sides
        grids, half, both = self.grids, self.features.shape[0] // 2, self.branches
        for b in both:
            program.convolve(grids[0], row, b.image, b.weights[0], b.first, 1, side, first)
        for b in both:
            program.mean_pool(grids[1], row, b.first, b.pooled, first, pooled, POOL)
        for b in both:
            program.convolve(grids[2], row, b.pooled, b.weights[1], b.second, FIRST, pooled, second)
        a, b = both
        program.concatenate(across(half), one, a.second, b.second, self.features, half)
        program.partial_dots(
            (groups * GROUP,), one, self.features, self.dense, self.partial, 2 * half
        )
        program.sum_of(one, one, self.partial, self.total, groups)

    def outputs(self) -> list[Any]:
        """Return the number."""
        return [self.total]

    def results(self) -> Results:
        """Return the number, and its two inputs."""
        return {"total": self.total.get(), "features": self.features.get()}


class DlByHand(Dl):
    """The same with events: a queue for each branch."""

    def step(self) -> None:
        """Launch from both branches in turn, so that neither begins late."""
        side, groups = self.size
        launch, program, row, one = self.platform.launch, self.program, (GROUP, 1, 1), (GROUP,)
        first, pooled, second = self.sides
        grids, half, both = self.grids, self.features.shape[0] // 2, self.branches
        last = [
            launch(
                program.convolve, grids[0], row,
                b.image, b.weights[0], b.first, 1, side, first, on=on,
            )
            for on, b in enumerate(both)
        ]  # fmt: skip
        last = [
            launch(
                program.mean_pool, grids[1], row,
                b.first, b.pooled, first, pooled, POOL, after=[last[on]], on=on,
            )
            for on, b in enumerate(both)
        ]  # fmt: skip
        last = [
            launch(
                program.convolve, grids[2], row,
                b.pooled, b.weights[1], b.second, FIRST, pooled, second, after=[last[on]], on=on,
            )
            for on, b in enumerate(both)
        ]  # fmt: skip
        a, b = both
        joined = launch(
            program.concatenate, across(half), one,
            a.second, b.second, self.features, half, after=last,
        )  # fmt: skip
        parts = launch(
            program.partial_dots, (groups * GROUP,), one,
            self.features, self.dense, self.partial, 2 * half, after=[joined],
        )  # fmt: skip
        launch(program.sum_of, one, one, self.partial, self.total, groups, after=[parts])


@lru_cache(1)  # for all platforms
def data(size: DlSize, seed: int) -> tuple[Any, Any, Any]:
    """Return images and weights by branch, and the weights of the end, which sum to about one."""
    random = np.random.default_rng(seed)
    features = 2 * SECOND * size.sides()[2] ** 2
    images = random.random((2, size.side, size.side), dtype=np.float32)
    weights = [
        (
            random.standard_normal((FIRST, 1, 3, 3)).astype(np.float32),
            random.standard_normal((SECOND, FIRST, 3, 3)).astype(np.float32) / 8,
        )
        for _ in range(2)
    ]
    return images, weights, random.random(features, dtype=np.float32) * 2 / features


def convolved(image: Any, weights: Any) -> Any:
    """Convolve by 3x3 at every second pixel, with ReLU."""
    out = (image.shape[1] - 3) // 2 + 1
    result = np.zeros((len(weights), out, out))
    weights = weights.astype(np.float64)

    def some(rows: slice) -> None:
        top, end = 2 * rows.start, 2 * rows.stop - 1
        for v in range(3):
            for u in range(3):
                part = image[:, top + v : end + v : 2, u : u + 2 * out - 1 : 2]
                result[:, rows] += np.tensordot(weights[:, :, v, u], part, axes=1)

    in_parts(some, out, ROWS)
    return np.maximum(result, 0)


def reference(size: DlSize, seed: int) -> Results:
    """Compute it in double precision."""
    images, weights, dense = data(size, seed)
    ends = []
    for image, (first, second) in zip(images, weights, strict=True):
        planes = convolved(image[np.newaxis].astype(np.float64), first)
        pooled = planes.shape[1] // POOL
        planes = planes[:, : pooled * POOL, : pooled * POOL]
        planes = planes.reshape(FIRST, pooled, POOL, pooled, POOL).mean(axis=(2, 4))
        ends.append(convolved(planes, second).reshape(-1))
    features = np.concatenate(ends)
    return {"total": np.array([features @ dense.astype(np.float64)]), "features": features}


WORKLOADS = [
    Workload(
        name="dl",
        family="pipelines",
        about="a network of two branches, each with two convolutions",
        presets={"tiny": DlSize(70, 4), "small": DlSize(1400, 16), "paper": DlSize(6000, 256)},
        make=Dl,
        reference=reference,
        expert=DlByHand,
    ),
]
