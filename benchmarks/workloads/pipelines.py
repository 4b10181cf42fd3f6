"""Pipelines of image, finance, graph and learning programs: the six of GrCUDA's benchmarks.

Input: sizes and seeds. Output: the workloads `vec` and `bs`; `images`, `links` and `learning` have
the others. Each is a few dozen launches at most, over large arrays: what is gained comes from
running branches side by side.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads.workload import Results, Workload, in_parts
from acs_cl.opencl_c.kernel_files import kernel_source

GROUP = 64


def across(length: int) -> tuple[int]:
    """Return the global size with a work-item for each of `length`, in whole groups."""
    return (-(-length // GROUP) * GROUP,)


class Pipeline:
    """What all six have: a platform, their kernels, and nothing that a step changes and reads."""

    def __init__(self, platform: Any, size: Any) -> None:
        self.platform = platform
        self.size = size
        self.program = platform.build(kernel_source("pipelines.cl"))

    def reset(self) -> None:
        """Do nothing: what a step reads is never written."""

    def outputs(self) -> list[Any]:
        """Return the arrays that a step is run for."""
        raise NotImplementedError


# ---- VEC: the sum of differences of squares ------------------------------------------------------


class VecSize(NamedTuple):
    """Elements, and groups that add them up."""

    length: int
    groups: int


class Vec(Pipeline):
    """`sum(x * x - y * y)`: two squares side by side, then a reduction."""

    def __init__(self, platform: Any, size: VecSize, seed: int) -> None:
        super().__init__(platform, size)
        count = np.arange(1, size.length + 1, dtype=np.float32)
        self.x, self.y = platform.array(1 / count), platform.array(2 / count)
        self.xx = platform.empty(size.length)
        self.yy = platform.empty(size.length)
        self.partial = platform.empty(size.groups)
        self.total = platform.zeros(1)

    def step(self) -> None:
        """Make four launches."""
        length, groups = self.size
        program = self.program
        program.square(across(length), (GROUP,), self.x, self.xx, length)
        program.square(across(length), (GROUP,), self.y, self.yy, length)
        program.partial_sums((groups * GROUP,), (GROUP,), self.xx, self.yy, self.partial, length)
        program.sum_of((GROUP,), (GROUP,), self.partial, self.total, groups)

    def outputs(self) -> list[Any]:
        """Return the sum."""
        return [self.total]

    def results(self) -> Results:
        """Return the sum."""
        return {"total": self.total.get()}


class VecByHand(Vec):
    """The same with events."""

    def step(self) -> None:
        """Launch the two squares on two queues."""
        length, groups = self.size
        launch, program = self.platform.launch, self.program
        one = launch(program.square, across(length), (GROUP,), self.x, self.xx, length)
        two = launch(program.square, across(length), (GROUP,), self.y, self.yy, length, on=1)
        parts = launch(
            program.partial_sums, (groups * GROUP,), (GROUP,),
            self.xx, self.yy, self.partial, length, after=[one, two],
        )  # fmt: skip
        launch(program.sum_of, (GROUP,), (GROUP,), self.partial, self.total, groups, after=[parts])


def vec_reference(size: VecSize, seed: int) -> Results:
    """Compute it in double precision."""

    def some(part: slice) -> float:
        count = np.arange(part.start + 1, part.stop + 1, dtype=np.float32)
        x, y = (1 / count).astype(np.float64), (2 / count).astype(np.float64)
        return float(np.sum(x * x - y * y))

    return {"total": np.array([sum(in_parts(some, size.length))])}


# ---- B&S: prices of options ----------------------------------------------------------------------

STRIKE, RATE, VOLATILITY, YEARS = 60.0, 0.08, 0.3, 1.0
PRICINGS = 10


class BsSize(NamedTuple):
    """Prices of the share, for each of the pricings."""

    length: int


class Bs(Pipeline):
    """Independent pricings by Black and Scholes, in double precision."""

    def __init__(self, platform: Any, size: BsSize, seed: int) -> None:
        super().__init__(platform, size)
        self.shares = [platform.array(one) for one in shares(size, seed)]
        self.calls = [platform.empty(size.length, np.float64) for _ in range(PRICINGS)]

    def step(self) -> None:
        """Launch each pricing."""
        length = self.size.length
        for share, call in zip(self.shares, self.calls, strict=True):
            self.program.price(
                across(length), (GROUP,), share, call, length, STRIKE, RATE, VOLATILITY, YEARS
            )

    def outputs(self) -> list[Any]:
        """Return all prices."""
        return self.calls

    def results(self) -> Results:
        """Return all prices."""
        return {"calls": np.stack([call.get() for call in self.calls])}


class BsByHand(Bs):
    """The same with a queue for each."""

    def step(self) -> None:
        """Launch all pricings, which are independent."""
        length = self.size.length
        for on, (share, call) in enumerate(zip(self.shares, self.calls, strict=True)):
            self.platform.launch(
                self.program.price, across(length), (GROUP,),
                share, call, length, STRIKE, RATE, VOLATILITY, YEARS, on=on,
            )  # fmt: skip


@lru_cache(1)  # for all platforms
def shares(size: BsSize, seed: int) -> Any:
    """Draw prices of the share, around the strike."""
    return np.random.default_rng(seed).uniform(30, 90, (PRICINGS, size.length))


def normal(d: Any) -> Any:
    """Compute the normal distribution by Abramowitz and Stegun 26.2.17."""
    k = 1 / (1 + 0.2316419 * np.abs(d))
    terms = np.polyval([1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.31938153, 0], k)
    tail = np.exp(-0.5 * d * d) / np.sqrt(2 * np.pi) * terms
    return np.where(d > 0, 1 - tail, tail)


def prices(share: Any) -> Any:
    """Return the prices of calls on a share."""
    spread = VOLATILITY * np.sqrt(YEARS)
    d = (np.log(share / STRIKE) + (RATE + 0.5 * VOLATILITY**2) * YEARS) / spread
    return share * normal(d) - STRIKE * np.exp(-RATE * YEARS) * normal(d - spread)


def bs_reference(size: BsSize, seed: int) -> Results:
    """Compute one pricing after another."""
    given = shares(size, seed)
    calls = np.empty(given.shape)

    def some(part: slice) -> None:
        for share, call in zip(given, calls, strict=True):
            call[part] = prices(share[part])

    in_parts(some, size.length)
    return {"calls": calls}


WORKLOADS = [
    Workload(
        name="vec",
        family="pipelines",
        about="the sum of differences of squares of two vectors",
        presets={
            "tiny": VecSize(1000, 4),
            "small": VecSize(1 << 22, 64),
            "paper": VecSize(1 << 26, 2048),
        },
        make=Vec,
        reference=vec_reference,
        expert=VecByHand,
    ),
    Workload(
        name="bs",
        family="pipelines",
        about="ten independent pricings of options",
        presets={"tiny": BsSize(300), "small": BsSize(1 << 16), "paper": BsSize(1 << 22)},
        make=Bs,
        reference=bs_reference,
        expert=BsByHand,
        rtol=1e-9,
        atol=1e-9,
    ),
]
