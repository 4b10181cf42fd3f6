"""Launch pairs: kernels that compute beside kernels that wait for memory, as in Opara's evaluation.

Input: sizes and seeds. Output: two workloads. `pair_product` has matrix products beside
activations, as transformers do. `pair_convolve` has convolutions beside pooling, as GoogLeNet does.
No launch waits for another. The program launches all kernels that compute first, as in a network
whose branches are written one after another. The order decides which of them run together.

Invariant: each kernel of a pair takes a part of the device, so that some of them fit on it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads.workload import Results, Workload
from acs_cl.opencl_c.kernel_files import kernel_source

GROUP, TILE = 256, 64
SCALE, SHIFT = 0.75, 0.125
SAMPLED = 997
"""Every so many-th element is compared: reading all of it back takes longer than all the rest."""

Launch = tuple[Any, tuple[int, ...], tuple[int, ...], tuple[Any, ...]]


class ProductSize(NamedTuple):
    """`many` of each kind: products of matrices of this side, activations of `length` elements in
    so many groups."""

    many: int
    side: int
    length: int
    groups: int


class ConvolveSize(NamedTuple):
    """`many` of each kind: convolutions of so many channels, pooling to `length` elements."""

    many: int
    channels: int
    side: int
    length: int
    groups: int


class Pair:
    """Launches that compute, and launches that wait for memory."""

    computing: Sequence[Launch]
    waiting: Sequence[Launch]
    outputs: Sequence[Any]

    def __init__(self, platform: Any) -> None:
        self.platform = platform
        self.program = platform.build(kernel_source("pairs.cl"))

    def reset(self) -> None:
        """Do nothing: what a step reads is never written."""

    def step(self) -> None:
        """Launch all kernels that compute, then all that wait for memory."""
        for kernel, items, group, args in (*self.computing, *self.waiting):
            kernel(items, group, *args)

    def results(self) -> Results:
        """Return a sample of everything that was written."""
        return {"sample": np.concatenate([one.get().ravel()[::SAMPLED] for one in self.outputs])}


class Products(Pair):
    """Matrix products beside activations."""

    def __init__(self, platform: Any, size: ProductSize, seed: int) -> None:
        super().__init__(platform)
        many, side, length, groups = size
        a, b, x = product_data(size, seed)
        left, right, from_ = (platform.array(one) for one in (a, b, x))
        products = [platform.empty((side, side)) for _ in range(many)]
        activated = [platform.empty(length) for _ in range(many)]
        tiles = (side // TILE * 16, side // TILE * 16)
        multiply, activate = self.program.multiply, self.program.activate
        self.computing = [(multiply, tiles, (16, 16), (left, right, out, side)) for out in products]
        self.waiting = [
            (activate, (groups * GROUP,), (GROUP,), (from_, out, length // 4, SCALE, SHIFT))
            for out in activated
        ]
        self.outputs = [*products, *activated]


class Convolutions(Pair):
    """Convolutions beside pooling."""

    def __init__(self, platform: Any, size: ConvolveSize, seed: int) -> None:
        super().__init__(platform)
        many, channels, side, length, groups = size
        image, weights, x = (platform.array(one) for one in convolve_data(size, seed))
        pixels = (side - 2) ** 2
        convolved = [platform.empty((channels, pixels)) for _ in range(many)]
        pooled = [platform.empty(length) for _ in range(many)]
        items = (-(-pixels // GROUP) * GROUP, channels // 4)
        convolve, pool = self.program.convolve_3, self.program.pool_pairs
        self.computing = [
            (convolve, items, (GROUP, 1), (image, weights, out, channels, side, channels))
            for out in convolved
        ]
        self.waiting = [
            (pool, (groups * GROUP,), (GROUP,), (x, out, length // 4)) for out in pooled
        ]
        self.outputs = [*convolved, *pooled]


def by_hand(pair: type[Pair]) -> Callable[[Any, Any, int], Any]:
    """Make the expert's run: one of each kind in turns, each on a queue of its own."""

    class ByHand(pair):  # type: ignore[misc,valid-type]
        def step(self) -> None:
            """Compute, wait for memory, compute, and so on."""
            both = zip(self.computing, self.waiting, strict=True)
            for on, (kernel, items, group, args) in enumerate(one for two in both for one in two):
                self.platform.launch(kernel, items, group, *args, on=on)

    return ByHand


@lru_cache(1)  # for all platforms
def product_data(size: ProductSize, seed: int) -> tuple[Any, Any, Any]:
    """Return two matrices and a vector."""
    random = np.random.default_rng(seed)
    a, b = (random.standard_normal((size.side, size.side), np.float32) for _ in range(2))
    return a, b, random.standard_normal(size.length, np.float32)


@lru_cache(1)  # for all platforms
def convolve_data(size: ConvolveSize, seed: int) -> tuple[Any, Any, Any]:
    """Return an image, weights, and a vector twice as long as the pooled one."""
    random = np.random.default_rng(seed)
    image = random.standard_normal((size.channels, size.side, size.side), np.float32)
    weights = random.standard_normal((size.channels, 9, size.channels), np.float32)
    return image, weights, random.standard_normal(2 * size.length, np.float32)


def product_reference(size: ProductSize, seed: int) -> Results:
    """Compute it in double precision."""
    a, b, x = product_data(size, seed)
    product = (a.astype(np.float64) @ b.astype(np.float64)).ravel()[::SAMPLED]
    activated = np.maximum(x[::SAMPLED].astype(np.float64) * SCALE + SHIFT, 0)
    return {"sample": np.concatenate([product] * size.many + [activated] * size.many)}


def convolve_reference(size: ConvolveSize, seed: int) -> Results:
    """Compute it in double precision."""
    image, weights, x = convolve_data(size, seed)
    wide = size.side - 2
    found = np.zeros((size.channels, wide * wide))
    for place in range(9):
        row, column = divmod(place, 3)
        part = image[:, row : row + wide, column : column + wide].astype(np.float64)
        found += weights[:, place].T.astype(np.float64) @ part.reshape(size.channels, -1)
    convolved = np.maximum(found, 0).ravel()[::SAMPLED]
    quads = x.reshape(-1, 2, 4)
    pooled = quads.max(axis=1).ravel()[::SAMPLED]
    return {"sample": np.concatenate([convolved] * size.many + [pooled] * size.many)}


WORKLOADS = [
    Workload(
        name="pair_product",
        family="opara",
        about="matrix products beside activations",
        presets={
            "tiny": ProductSize(2, 64, 1 << 12, 2),
            "small": ProductSize(4, 256, 1 << 22, 1),
            "paper": ProductSize(6, 1024, 1 << 25, 528),
        },
        make=Products,
        reference=product_reference,
        expert=by_hand(Products),
        atol=1e-3,
    ),
    Workload(
        name="pair_convolve",
        family="opara",
        about="convolutions beside pooling",
        presets={
            "tiny": ConvolveSize(2, 8, 10, 1 << 12, 2),
            "small": ConvolveSize(4, 32, 30, 1 << 21, 1),
            "paper": ConvolveSize(6, 64, 98, 1 << 25, 528),
        },
        make=Convolutions,
        reference=convolve_reference,
        expert=by_hand(Convolutions),
        atol=1e-3,
    ),
]
