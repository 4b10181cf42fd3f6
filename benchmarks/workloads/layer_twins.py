"""The kernels of networks in NumPy, in double precision.

In: the arguments of a kernel, with flat arrays in the place of memory. Out: its output arrays,
written as the kernel would.

Invariant: `TWINS` has a function for every kernel that a layer may name, with the same arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from acs_cl.benchmarks.workloads.layers import MAXIMUM, RELU, RELU6, SIGMOID, SWISH

Array = np.ndarray[Any, Any]


def activated(values: Array, how: int) -> Array:
    """What follows a layer."""
    if how == RELU:
        return np.maximum(values, 0)
    if how == RELU6:
        return np.clip(values, 0, 6)
    if how == SIGMOID:
        return np.asarray(1 / (1 + np.exp(-values)))
    if how == SWISH:
        return np.asarray(values / (1 + np.exp(-values)))
    return values


def windows(
    image: Array, rows: int, columns: int, size: int, stride: int, pad: int, fill: float
) -> Array:
    """The window of each output pixel: channels x rows x columns x size x size."""
    _, height, width = image.shape
    below = max(0, (rows - 1) * stride - pad + size - height)
    right = max(0, (columns - 1) * stride - pad + size - width)
    inner = max(0, pad)
    padded = np.pad(image, ((0, 0), (inner, below), (inner, right)), constant_values=fill)
    start = inner - pad
    seen = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(1, 2))
    return seen[:, start::stride, start::stride][:, :rows, :columns]


def convolve(
    x: Array, weights: Array, bias: Array, out: Array, inputs: int, height: int, width: int,
    outputs: int, rows: int, columns: int, size: int, stride: int, pad: int, before: int,
    after: int,
) -> None:  # fmt: skip
    """As a product of matrices."""
    image = activated(x.reshape(inputs, height, width), before)
    seen = windows(image, rows, columns, size, stride, pad, 0)
    columns_of = seen.transpose(0, 3, 4, 1, 2).reshape(inputs * size * size, rows * columns)
    _product(columns_of, weights, bias, out, outputs, after)


def pointwise(
    x: Array, weights: Array, bias: Array, out: Array, inputs: int, area: int, outputs: int,
    before: int, after: int,
) -> None:  # fmt: skip
    """A product of matrices."""
    _product(activated(x.reshape(inputs, area), before), weights, bias, out, outputs, after)


def _product(
    columns: Array, weights: Array, bias: Array, out: Array, outputs: int, after: int
) -> None:
    rows = weights.reshape(outputs // 4, -1, 4).transpose(0, 2, 1).reshape(outputs, -1)
    out[:] = activated(rows @ columns + bias[:, None], after).ravel()


def depthwise(
    x: Array, weights: Array, bias: Array, out: Array, channels: int, height: int, width: int,
    rows: int, columns: int, size: int, stride: int, pad: int, before: int, after: int,
) -> None:  # fmt: skip
    """Each channel by itself."""
    image = activated(x.reshape(channels, height, width), before)
    seen = windows(image, rows, columns, size, stride, pad, 0)
    sums = np.einsum("cyxij,cij->cyx", seen, weights.reshape(channels, size, size))
    out[:] = activated(sums + bias[:, None, None], after).ravel()


def pool(
    x: Array, out: Array, channels: int, height: int, width: int, rows: int, columns: int,
    size: int, stride: int, pad: int, how: int,
) -> None:  # fmt: skip
    """What is outside of the image is left out."""
    image = x.reshape(channels, height, width)
    if how == MAXIMUM:
        out[:] = windows(image, rows, columns, size, stride, pad, -np.inf).max((3, 4)).ravel()
        return
    sums = windows(image, rows, columns, size, stride, pad, 0).sum((3, 4))
    inside = windows(np.ones((1, height, width)), rows, columns, size, stride, pad, 0).sum((3, 4))
    out[:] = (sums / inside).ravel()


def combine(
    a: Array, b: Array, c: Array, d: Array, out: Array, weight_a: float, weight_b: float,
    weight_c: float, weight_d: float, count: int, length: int, after: int,
) -> None:  # fmt: skip
    """A weighted sum of the first `count`."""
    weights = (weight_a, weight_b, weight_c, weight_d)
    out[:] = activated(np.dot(weights[:count], np.stack((a, b, c, d)[:count])), after)


def means(x: Array, out: Array, runs: int, length: int) -> None:
    """Means of stretches."""
    out[:] = x.reshape(runs, length).mean(1)


def dense(
    x: Array, weights: Array, bias: Array, out: Array, inputs: int, outputs: int, after: int
) -> None:
    """Every output from every input."""
    out[:] = activated(x @ weights.reshape(inputs, outputs) + bias, after)


def scale_channels(x: Array, factors: Array, out: Array, channels: int, area: int) -> None:
    """Each channel times its factor."""
    out[:] = (x.reshape(channels, area) * factors[:, None]).ravel()


def keep(source: Array, out: Array, length: int) -> None:
    """A copy."""
    out[:] = source


def clear(out: Array, length: int) -> None:
    """Zeros."""
    out[:] = 0


TWINS: dict[str, Callable[..., None]] = {
    "convolve": convolve,
    "pointwise": pointwise,
    "pointwise_four": pointwise,
    "depthwise": depthwise,
    "pool": pool,
    "combine": combine,
    "means": means,
    "dense": dense,
    "scale_channels": scale_channels,
    "keep": keep,
    "clear": clear,
}
