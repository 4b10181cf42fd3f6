"""IMG: an image whose edges are kept sharp while the rest is blurred.

Input: sizes and seeds. Output: the workload `img`. Three blurs of one image, edges of two of them,
the image sharpened with the third, and two combinations by the edges. Four launches can run side by
side, if it is known that the image is only read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads.expert import Token
from acs_cl.benchmarks.workloads.pipelines import GROUP, Pipeline, across
from acs_cl.benchmarks.workloads.workload import Results, Workload, in_parts

SMALL, LARGE, SHARP = (3, 1), (5, 10), (3, 5)
"""Diameter and sigma of each blur."""
ROWS = 16
"""Of an image, worked on at a time in NumPy."""


class ImgSize(NamedTuple):
    """The side of the image, and groups that look for its extremes."""

    side: int
    groups: int


class Img(Pipeline):
    """The pipeline."""

    def __init__(self, platform: Any, size: ImgSize, seed: int) -> None:
        super().__init__(platform, size)
        side, groups = size
        self.image = platform.array(made_up(size, seed))
        self.small_weights = platform.array(gauss(*SMALL))
        self.large_weights = platform.array(gauss(*LARGE))
        self.sharp_weights = platform.array(gauss(*SHARP))
        one = (side, side)
        self.small, self.large, self.soft = (platform.empty(one) for _ in range(3))
        self.small_mask, self.large_mask = (platform.empty(one) for _ in range(2))
        self.sharp, self.inner, self.result = (platform.empty(one) for _ in range(3))
        self.largest_parts, self.smallest_parts = (platform.empty(groups) for _ in range(2))
        self.largest, self.smallest = (platform.empty(1) for _ in range(2))
        self.all = (*across(side), side)
        self.flat = across(side * side)

    def step(self) -> None:
        """Make thirteen launches."""
        program, row, one, flat = self.program, (GROUP, 1), (GROUP,), self.flat
        side, groups = self.size
        pixels, many = side * side, (groups * GROUP,)
        program.blur(self.all, row, self.image, self.small, self.small_weights, side, SMALL[0])
        program.blur(self.all, row, self.image, self.large, self.large_weights, side, LARGE[0])
        program.blur(self.all, row, self.image, self.soft, self.sharp_weights, side, SHARP[0])
        program.sobel(self.all, row, self.small, self.small_mask, side)
        program.sobel(self.all, row, self.large, self.large_mask, side)
        program.extreme(many, one, self.large_mask, self.largest_parts, pixels, 1.0)
        program.extreme(one, one, self.largest_parts, self.largest, groups, 1.0)
        program.extreme(many, one, self.large_mask, self.smallest_parts, pixels, -1.0)
        program.extreme(one, one, self.smallest_parts, self.smallest, groups, -1.0)
        program.stretch(flat, one, self.large_mask, self.smallest, self.largest, pixels)
        program.unsharpen(flat, one, self.image, self.soft, self.sharp, pixels)
        program.combine(flat, one, self.sharp, self.large, self.large_mask, self.inner, pixels)
        program.combine(flat, one, self.inner, self.small, self.small_mask, self.result, pixels)

    def outputs(self) -> list[Any]:
        """Return the image."""
        return [self.result]

    def results(self) -> Results:
        """Return the image, and the mask that was stretched."""
        return {"image": self.result.get(), "mask": self.large_mask.get()}


class ImgByHand(Img):
    """The same with events: a queue for each blur, one more for the smallest."""

    def step(self) -> None:
        """Launch the longest chain first, which goes over the larger blur."""
        launch, program, flat = self.platform.launch, self.program, self.flat
        row, one = (GROUP, 1), (GROUP,)
        side = self.size.side
        pixels = side * side
        large = launch(
            program.blur, self.all, row,
            self.image, self.large, self.large_weights, side, LARGE[0],
        )  # fmt: skip
        small = launch(
            program.blur, self.all, row,
            self.image, self.small, self.small_weights, side, SMALL[0], on=1,
        )  # fmt: skip
        soft = launch(
            program.blur, self.all, row,
            self.image, self.soft, self.sharp_weights, side, SHARP[0], on=2,
        )  # fmt: skip
        edges = launch(
            program.sobel, self.all, row, self.large, self.large_mask, side, after=[large]
        )
        extremes = self._extremes(edges)
        faint = launch(
            program.sobel, self.all, row, self.small, self.small_mask, side, after=[small], on=1
        )
        sharp = launch(
            program.unsharpen, flat, one,
            self.image, self.soft, self.sharp, pixels, after=[soft], on=2,
        )  # fmt: skip
        stretched = launch(
            program.stretch, flat, one,
            self.large_mask, self.smallest, self.largest, pixels, after=extremes,
        )  # fmt: skip
        inner = launch(
            program.combine, flat, one,
            self.sharp, self.large, self.large_mask, self.inner, pixels, after=[stretched, sharp],
        )  # fmt: skip
        launch(
            program.combine, flat, one,
            self.inner, self.small, self.small_mask, self.result, pixels, after=[inner, faint],
        )  # fmt: skip

    def _extremes(self, edges: Token) -> list[Token]:
        """Find the largest and the smallest value of the large mask, side by side."""
        launch, program, one = self.platform.launch, self.program, (GROUP,)
        side, groups = self.size
        pixels, many = side * side, (groups * GROUP,)
        parts = launch(
            program.extreme, many, one,
            self.large_mask, self.largest_parts, pixels, 1.0, after=[edges],
        )  # fmt: skip
        others = launch(
            program.extreme, many, one,
            self.large_mask, self.smallest_parts, pixels, -1.0, after=[edges], on=3,
        )  # fmt: skip
        largest = launch(
            program.extreme, one, one, self.largest_parts, self.largest, groups, 1.0, after=[parts]
        )
        smallest = launch(
            program.extreme, one, one,
            self.smallest_parts, self.smallest, groups, -1.0, after=[others], on=3,
        )  # fmt: skip
        return [largest, smallest]


# ---- reference -----------------------------------------------------------------------------------


@lru_cache(1)  # for all platforms
def made_up(size: ImgSize, seed: int) -> Any:
    """Draw bright discs on a slope, with noise."""
    random = np.random.default_rng(seed)
    side = size.side
    y, x = np.mgrid[:side, :side].astype(np.float32) / side
    image = 0.3 * x + 0.1 * random.random((side, side), dtype=np.float32)
    for _ in range(5):
        at_x, at_y, radius = random.random(3)
        image += 0.12 * ((x - at_x) ** 2 + (y - at_y) ** 2 < (0.3 * radius) ** 2)
    return image.astype(np.float32)


def gauss(diameter: int, sigma: float) -> Any:
    """Return the weights of a blur. They sum to one."""
    line = np.exp(-((np.arange(diameter) - diameter // 2) ** 2) / (2 * sigma**2))
    weights = np.outer(line, line)
    return (weights / weights.sum()).astype(np.float32)


def filtered(image: Any, diameter: int, end: Callable[..., Any], *weights: Any) -> Any:
    """Sum over all places of a window, by each of the weights, and apply `end` to the sums. The
    image's border is continued."""
    side, wide = len(image), np.pad(image, diameter // 2, mode="edge")
    result = np.empty(image.shape)

    def some(rows: slice) -> None:
        sums = np.zeros((len(weights), rows.stop - rows.start, side))
        for v, u in product(range(diameter), repeat=2):
            moved = wide[rows.start + v : rows.stop + v, u : u + side]
            for own, total in zip(weights, sums, strict=True):
                if own[v, u]:
                    total += own[v, u] * moved
        result[rows] = end(*sums)

    in_parts(some, side, ROWS)
    return result


def blurred(image: Any, diameter: int, sigma: float) -> Any:
    """Blur an image."""
    return filtered(image, diameter, np.array, gauss(diameter, sigma))


def edges_of(image: Any) -> Any:
    """Return the steepness of an image."""
    rightward = np.outer((1, 2, 1), (-1, 0, 1))
    return filtered(image, 3, np.hypot, rightward, rightward.T)


def reference(size: ImgSize, seed: int) -> Results:
    """Compute it in double precision."""
    image = made_up(size, seed).astype(np.float64)
    small, large = blurred(image, *SMALL), blurred(image, *LARGE)
    sharp = np.clip(1.5 * image - 0.5 * blurred(image, *SHARP), 0, 1)
    small_mask, mask = edges_of(small), edges_of(large)
    mask = np.minimum(1, 5 * (mask - mask.min()) / (mask.max() - mask.min()))
    inner = sharp * mask + large * (1 - mask)
    return {"image": inner * small_mask + small * (1 - small_mask), "mask": mask}


WORKLOADS = [
    Workload(
        name="img",
        family="pipelines",
        about="an image blurred, but for its edges, which are sharpened",
        presets={
            "tiny": ImgSize(70, 4),
            "small": ImgSize(1024, 64),
            "paper": ImgSize(4096, 1024),
        },
        make=Img,
        reference=reference,
        expert=ImgByHand,
    ),
]
