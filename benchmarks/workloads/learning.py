"""ML: an ensemble of two classifiers, ridge regression beside naive Bayes.

Input: sizes and seeds. Output: the workload `ml`. Two chains run side by side and are brought
together at the end.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads.pipelines import GROUP, Pipeline, across
from acs_cl.benchmarks.workloads.workload import Results, Workload

CLASSES = 10
FEATURES = 200


class MlSize(NamedTuple):
    """Rows, each with as many features as all."""

    rows: int


class Ml(Pipeline):
    """Scores of two classifiers; the class with the largest sum is chosen."""

    def __init__(self, platform: Any, size: MlSize, seed: int) -> None:
        super().__init__(platform, size)
        data = MlData.made_up(size, seed)
        self.x = platform.array(data.x)
        self.coefficients = platform.array(data.coefficients)
        self.intercept = platform.array(data.intercept)
        self.likelihood = platform.array(data.likelihood)
        rows = size.rows
        self.even = platform.empty((FEATURES, rows))
        self.ridge, self.bayes = (platform.empty((CLASSES, rows)) for _ in range(2))
        self.largest, self.total = (platform.empty(rows) for _ in range(2))
        self.chosen = platform.empty(rows, np.int32)

    def step(self) -> None:
        """Make ten launches: four, five, and the choice."""
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

    def outputs(self) -> list[Any]:
        """Return the chosen classes."""
        return [self.chosen]

    def results(self) -> Results:
        """Return both scores, and the sum for the chosen class. Of two classes that are as good,
        either is right."""
        ridge, bayes = self.ridge.get(), self.bayes.get()
        chosen = self.chosen.get()[np.newaxis]
        best = np.take_along_axis(ridge + bayes, chosen, 0)[0]
        return {"ridge": ridge, "bayes": bayes, "best": best}


class MlByHand(Ml):
    """The same with events: a queue for each classifier."""

    def step(self) -> None:
        """Make the first launch of each chain first."""
        launch, program, rows = self.platform.launch, self.program, self.size.rows
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
    """Counts by feature and row; weights by feature and class."""

    x: Any
    coefficients: Any
    intercept: Any
    likelihood: Any

    @classmethod
    @lru_cache(1)  # for all platforms
    def made_up(cls, size: MlSize, seed: int) -> MlData:
        """Draw the inputs. Likelihoods are multiples of 1/256, so that their sums are exact in any
        order."""
        random = np.random.default_rng(seed)
        return cls(
            np.ascontiguousarray(random.integers(0, 10, (size.rows, FEATURES), dtype=np.int32).T),
            random.standard_normal((FEATURES, CLASSES)).astype(np.float32) / 16,
            random.standard_normal(CLASSES).astype(np.float32),
            random.integers(0, 16, (FEATURES, CLASSES)).astype(np.float32) / -256,
        )


def softmax(scores: Any) -> Any:
    """Turn scores by class and row into shares, by row."""
    powers = np.exp(scores)
    return powers / powers.sum(axis=0)


def reference(size: MlSize, seed: int) -> Results:
    """Compute it in double precision."""
    data = MlData.made_up(size, seed)
    x = data.x.T.astype(np.float64, order="C")
    product = (x @ data.likelihood.astype(np.float64)).T
    largest = product.max(axis=0)
    total = np.log(np.exp(product - largest).sum(axis=0)) + largest
    bayes = softmax(np.exp(product - total))
    x -= x.mean(axis=1, keepdims=True)
    x /= np.sqrt(np.square(x).mean(axis=1, keepdims=True))
    ridge = softmax((x @ data.coefficients.astype(np.float64) + data.intercept).T)
    return {"ridge": ridge, "bayes": bayes, "best": (ridge + bayes).max(axis=0)}


WORKLOADS = [
    Workload(
        name="ml",
        family="pipelines",
        about="ridge regression beside naive Bayes, and the class that both prefer",
        presets={"tiny": MlSize(300), "small": MlSize(1 << 14), "paper": MlSize(1 << 18)},
        make=Ml,
        reference=reference,
        expert=MlByHand,
    ),
]
