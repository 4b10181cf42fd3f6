"""ML and DL: an ensemble of two classifiers, and a small network of two branches.

In: sizes and seeds. Out: the workloads `ml` and `dl`. In both two chains run side by side and are
brought together at the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads.expert import Queues
from acs_cl.benchmarks.workloads.pipelines import GROUP, across
from acs_cl.benchmarks.workloads.workload import Results, Workload
from acs_cl.kernel_files import kernel_source

# ---- ML: ridge regression beside naive Bayes -----------------------------------------------------

CLASSES = 10
FEATURES = 200


class MlSize(NamedTuple):
    """Rows, each with as many features as all."""

    rows: int


class Ml:
    """Scores of two classifiers; the class with the largest sum is chosen."""

    def __init__(self, platform: Any, size: MlSize, seed: int) -> None:
        self.size = size
        self.program = platform.build(kernel_source("pipelines.cl"))
        data = MlData.made_up(size, seed)
        self.x = platform.array(np.ascontiguousarray(data.x.T))
        self.coefficients = platform.array(data.coefficients)
        self.intercept = platform.array(data.intercept)
        self.likelihood = platform.array(data.likelihood)
        rows = size.rows
        self.even = platform.empty((FEATURES, rows))
        self.ridge, self.bayes = (platform.empty((CLASSES, rows)) for _ in range(2))
        self.largest, self.total = (platform.empty(rows) for _ in range(2))
        self.chosen = platform.empty(rows, np.int32)

    def reset(self) -> None:
        """Nothing is changed that a step reads."""

    def step(self) -> None:
        """Ten launches: four, five, and the choice."""
        program, flat, one, rows = self.program, across(self.size.rows), (GROUP,), self.size.rows
        ridge, bayes = self.ridge, self.bayes
        program.product_of_counts(flat, one, self.x, self.likelihood, bayes, rows, FEATURES)
        program.normalise(flat, one, self.x, self.even, rows, FEATURES)
        program.product_of_numbers(flat, one, self.even, self.coefficients, ridge, rows, FEATURES)
        program.largest_of_row(flat, one, bayes, self.largest, rows)
        program.log_sum_exp(flat, one, bayes, self.largest, self.total, rows)
        program.exponentiate(flat, one, bayes, self.total, rows)
        program.add_intercept(flat, one, ridge, self.intercept, rows)
        program.softmax(flat, one, ridge, rows)
        program.softmax(flat, one, bayes, rows)
        program.choose_class(flat, one, ridge, bayes, self.chosen, rows)

    def results(self) -> Results:
        """Both scores, and the sum for the class chosen: where two are as good, either will do."""
        ridge, bayes = self.ridge.get(), self.bayes.get()
        chosen = self.chosen.get()[np.newaxis]
        best = np.take_along_axis(ridge + bayes, chosen, 0)[0]
        return {"ridge": ridge, "bayes": bayes, "best": best}


class MlByHand(Ml):
    """The same with events: a queue for each classifier."""

    def __init__(self, queues: Queues, size: MlSize, seed: int) -> None:
        super().__init__(queues, size, seed)
        self.queues = queues

    def step(self) -> None:
        """The first launch of each chain first."""
        launch, program, rows = self.queues.launch, self.program, self.size.rows
        flat, one, ridge, bayes = across(rows), (GROUP,), self.ridge, self.bayes
        b = launch(
            program.product_of_counts, flat, one, self.x, self.likelihood, bayes, rows, FEATURES
        )
        r = launch(program.normalise, flat, one, self.x, self.even, rows, FEATURES, on=1)
        b = launch(program.largest_of_row, flat, one, bayes, self.largest, rows, after=[b])
        r = launch(
            program.product_of_numbers, flat, one,
            self.even, self.coefficients, ridge, rows, FEATURES, after=[r], on=1,
        )  # fmt: skip
        b = launch(program.log_sum_exp, flat, one, bayes, self.largest, self.total, rows, after=[b])
        r = launch(program.add_intercept, flat, one, ridge, self.intercept, rows, after=[r], on=1)
        b = launch(program.exponentiate, flat, one, bayes, self.total, rows, after=[b])
        r = launch(program.softmax, flat, one, ridge, rows, after=[r], on=1)
        b = launch(program.softmax, flat, one, bayes, rows, after=[b])
        launch(program.choose_class, flat, one, ridge, bayes, self.chosen, rows, after=[b, r])


class MlData(NamedTuple):
    """Counts by row and feature; weights by feature and class."""

    x: Any
    coefficients: Any
    intercept: Any
    likelihood: Any

    @classmethod
    def made_up(cls, size: MlSize, seed: int) -> MlData:
        """Likelihoods are multiples of 1/256, so that their sums are exact in any order."""
        random = np.random.default_rng(seed)
        return cls(
            random.integers(0, 10, (size.rows, FEATURES), dtype=np.int32),
            random.standard_normal((FEATURES, CLASSES)).astype(np.float32) / 16,
            random.standard_normal(CLASSES).astype(np.float32),
            random.integers(0, 16, (FEATURES, CLASSES)).astype(np.float32) / -256,
        )


def softmax(scores: Any) -> Any:
    """By row, of scores by class and row."""
    powers = np.exp(scores)
    return powers / powers.sum(axis=0)


def ml_reference(size: MlSize, seed: int) -> Results:
    """In double precision."""
    data = MlData.made_up(size, seed)
    x = data.x.astype(np.float64)
    product = (x @ data.likelihood.astype(np.float64)).T
    largest = product.max(axis=0)
    total = np.log(np.exp(product - largest).sum(axis=0)) + largest
    bayes = softmax(np.exp(product - total))
    x -= x.mean(axis=1, keepdims=True)
    x /= np.sqrt(np.square(x).mean(axis=1, keepdims=True))
    ridge = softmax((x @ data.coefficients.astype(np.float64) + data.intercept).T)
    return {"ridge": ridge, "bayes": bayes, "best": (ridge + bayes).max(axis=0)}


# ---- DL: two branches of convolutions ------------------------------------------------------------

FIRST, SECOND, POOL = 8, 16, 5
"""Planes after each convolution, and the side of what is averaged between them."""


class DlSize(NamedTuple):
    """The side of each branch's image, and groups that add up the end."""

    side: int
    groups: int

    def sides(self) -> tuple[int, int, int]:
        """The sides after convolution, pooling and convolution."""
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


class Dl:
    """A number from two images."""

    def __init__(self, platform: Any, size: DlSize, seed: int) -> None:
        self.size = size
        self.program = platform.build(kernel_source("pipelines.cl"))
        images, weights, dense = dl_data(size, seed)
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

    def reset(self) -> None:
        """Nothing is changed that a step reads."""

    def step(self) -> None:
        """Nine launches."""
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

    def results(self) -> Results:
        """The number, and what it was made from."""
        return {"total": self.total.get(), "features": self.features.get()}


class DlByHand(Dl):
    """The same with events: a queue for each branch."""

    def __init__(self, queues: Queues, size: DlSize, seed: int) -> None:
        super().__init__(queues, size, seed)
        self.queues = queues

    def step(self) -> None:
        """Branches take turns, so that neither begins late."""
        side, groups = self.size
        launch, program, row, one = self.queues.launch, self.program, (GROUP, 1, 1), (GROUP,)
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


def dl_data(size: DlSize, seed: int) -> tuple[Any, Any, Any]:
    """Images and weights by branch, and the weights of the end, which sum to about one."""
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
    """3x3, every second pixel, ReLU."""
    out = (image.shape[1] - 3) // 2 + 1
    result = np.zeros((len(weights), out, out))
    for v in range(3):
        for u in range(3):
            part = image[:, v : v + 2 * out - 1 : 2, u : u + 2 * out - 1 : 2]
            result += np.tensordot(weights[:, :, v, u].astype(np.float64), part, axes=1)
    return np.maximum(result, 0)


def dl_reference(size: DlSize, seed: int) -> Results:
    """In double precision."""
    images, weights, dense = dl_data(size, seed)
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
        name="ml",
        family="pipelines",
        about="ridge regression beside naive Bayes, and the class that both prefer",
        presets={"tiny": MlSize(300), "small": MlSize(1 << 14), "paper": MlSize(1 << 18)},
        make=Ml,
        reference=ml_reference,
        expert=MlByHand,
    ),
    Workload(
        name="dl",
        family="pipelines",
        about="a network of two branches, each with two convolutions",
        presets={"tiny": DlSize(70, 4), "small": DlSize(1400, 16), "paper": DlSize(6000, 256)},
        make=Dl,
        reference=dl_reference,
        expert=DlByHand,
    ),
]
