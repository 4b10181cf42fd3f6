"""The kernels of networks in NumPy, in double precision.

Input: the arguments of a kernel, with flat arrays in the place of memory. Output: its output
arrays, written as the kernel would.

Invariant: `TWINS` has a function for every kernel that a layer may name, with the same arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from acs_cl import UsageError
from acs_cl.benchmarks.workloads.layers import GELU, MAXIMUM, RELU, RELU6, SIGMOID, SWISH

Array = np.ndarray[Any, Any]

FLOOR = 0.35
"""Of `route`."""
MARGIN = 5e-5
"""How far from its threshold a decision has to be, for single precision to decide alike."""


def activated(values: Array, how: int) -> Array:
    """Apply the activation behind a layer."""
    if how == RELU:
        return np.maximum(values, 0)
    if how == RELU6:
        return np.clip(values, 0, 6)
    if how == SIGMOID:
        return np.asarray(1 / (1 + np.exp(-values)))
    if how == SWISH:
        return np.asarray(values / (1 + np.exp(-values)))
    if how == GELU:
        return np.asarray(values / 2 * (1 + np.tanh(0.79788456 * (values + 0.044715 * values**3))))
    return values


def windows(
    image: Array, rows: int, columns: int, size: tuple[int, int], stride: int, pad: tuple[int, int],
    fill: float,
) -> Array:  # fmt: skip
    """Return the window of each output pixel: channels x rows x columns x size."""
    padding, start = [(0, 0)], []
    for side, count, wide, before in zip(image.shape[1:], (rows, columns), size, pad, strict=True):
        padding.append((max(0, before), max(0, (count - 1) * stride - before + wide - side)))
        start.append(max(0, -before))
    padded = np.pad(image, padding, constant_values=fill)
    seen = np.lib.stride_tricks.sliding_window_view(padded, size, axis=(1, 2))
    return seen[:, start[0] :: stride, start[1] :: stride][:, :rows, :columns]


def convolve(
    x: Array, weights: Array, bias: Array, out: Array, inputs: int, height: int, width: int,
    outputs: int, rows: int, columns: int, size: int, stride: int, pad: int, before: int,
    after: int, high: int, above: int, images: int, to: int,
) -> None:  # fmt: skip
    """Convolve, as a product of matrices."""
    image = activated(x.reshape(inputs * images, height, width), before)
    seen = windows(image, rows, columns, (high, size), stride, (above, pad), 0)
    of_images = seen.reshape(inputs, images, rows, columns, high, size).transpose(0, 4, 5, 1, 2, 3)
    columns_of = of_images.reshape(inputs * high * size, images * rows * columns)
    _product(columns_of, weights, bias, out, outputs, after)


def pointwise(
    x: Array, weights: Array, bias: Array, out: Array, inputs: int, area: int, outputs: int,
    before: int, after: int, to: int,
) -> None:  # fmt: skip
    """Multiply matrices."""
    _product(activated(x.reshape(inputs, area), before), weights, bias, out, outputs, after)


def _product(
    columns: Array, weights: Array, bias: Array, out: Array, outputs: int, after: int
) -> None:
    rows = weights.reshape(outputs // 4, -1, 4).transpose(0, 2, 1).reshape(outputs, -1)
    out[:] = activated(rows @ columns + bias[:, None], after).ravel()


def depthwise(
    x: Array, weights: Array, bias: Array, out: Array, channels: int, height: int, width: int,
    rows: int, columns: int, size: int, stride: int, pad: int, before: int, after: int, images: int,
) -> None:  # fmt: skip
    """Convolve each channel by itself."""
    image = activated(x.reshape(channels * images, height, width), before)
    seen = windows(image, rows, columns, (size, size), stride, (pad, pad), 0)
    seen = seen.reshape(channels, images * rows, columns, size, size)
    sums = np.einsum("cyxij,cij->cyx", seen, weights.reshape(channels, size, size))
    out[:] = activated(sums + bias[:, None, None], after).ravel()


def pool(
    x: Array, out: Array, channels: int, height: int, width: int, rows: int, columns: int,
    size: int, stride: int, pad: int, how: int, images: int, to: int,
) -> None:  # fmt: skip
    """Pool a window. Pixels outside of the image do not count."""
    image, sizes = x.reshape(-1, height, width), ((size, size), stride, (pad, pad))
    if how == MAXIMUM:
        out[:] = windows(image, rows, columns, *sizes, -np.inf).max((3, 4)).ravel()
        return
    sums = windows(image, rows, columns, *sizes, 0).sum((3, 4))
    inside = windows(np.ones((1, height, width)), rows, columns, *sizes, 0).sum((3, 4))
    out[:] = (sums / inside).ravel()


def combine(
    a: Array, b: Array, c: Array, d: Array, out: Array, weight_a: float, weight_b: float,
    weight_c: float, weight_d: float, count: int, length: int, after: int,
) -> None:  # fmt: skip
    """Add the first `count` values by weights."""
    weights = (weight_a, weight_b, weight_c, weight_d)
    out[:] = activated(np.dot(weights[:count], np.stack((a, b, c, d)[:count])), after)


def means(x: Array, out: Array, runs: int, length: int) -> None:
    """Return means of stretches."""
    out[:] = x.reshape(runs, length).mean(1)


def dense(
    x: Array, weights: Array, bias: Array, out: Array, inputs: int, outputs: int, after: int,
    images: int,
) -> None:  # fmt: skip
    """Compute every output from every input."""
    sums = weights.reshape(inputs, outputs).T @ x.reshape(inputs, images) + bias[:, None]
    out[:] = activated(sums, after).ravel()


def scale_channels(x: Array, factors: Array, out: Array, channels: int, area: int) -> None:
    """Multiply each channel by its factor."""
    out[:] = (x.reshape(channels, area) * factors[:, None]).ravel()


def keep(x: Array, out: Array, length: int, start: int, to: int) -> None:
    """Copy a value."""
    out[:] = x


def lookup(
    numbers: Array, table: Array, out: Array, width: int, many: int, start: int, to: int
) -> None:
    """Copy rows of a table into columns."""
    out[:] = table.reshape(-1, width)[numbers.astype(int)].T.ravel()


def normalise(
    x: Array, scale: Array, shift: Array, out: Array, channels: int, area: int, centred: int
) -> None:
    """Bring all columns to one size."""
    rows = x.reshape(channels, area)
    mean = rows.mean(0) * centred
    sizes = np.sqrt(np.maximum((rows**2).mean(0) - mean**2, 0) + 1e-6)
    out[:] = ((rows - mean) / sizes * scale[:, None] + shift[:, None]).ravel()


def scores(
    query: Array, key: Array, bias: Array, out: Array, heads: int, width: int, images: int,
    queries: int, keys: int, scale: float, biased: int,
) -> None:  # fmt: skip
    """Multiply queries and keys."""
    a, b = query.reshape(heads, width, images, -1), key.reshape(heads, width, images, -1)
    found = scale * np.einsum("hdiq,hdik->hikq", a, b, optimize=True)
    if biased:
        found += bias.reshape(heads, 1, keys, queries)
    out[:] = found.ravel()


def shares(x: Array, out: Array, many: int, queries: int, keys: int) -> None:
    """Turn scores into shares, which sum to one for each query."""
    found = x.reshape(many, keys, queries)
    found = np.exp(found - found.max(1, keepdims=True))
    out[:] = (found / found.sum(1, keepdims=True)).ravel()


def gather(
    share: Array, values: Array, out: Array, heads: int, width: int, images: int, queries: int,
    keys: int,
) -> None:  # fmt: skip
    """Sum values by shares."""
    a, b = share.reshape(heads, images, keys, -1), values.reshape(heads, width, images, -1)
    out[:] = np.einsum("hikq,hdik->hdiq", a, b, optimize=True).ravel()


def interact(x: Array, out: Array, fields: int, width: int, images: int) -> None:
    """Return half of the difference between the square of the sum and the sum of squares."""
    rows = x.reshape(fields, width, images)
    out[:] = (rows.sum(0) ** 2 - (rows**2).sum(0)).sum(0) / 2


def clear(out: Array, length: int) -> None:
    """Fill with zeros."""
    out[:] = 0


def pick(
    features: Array, weights: Array, thresholds: Array, flags: Array, shares: Array, stages: int,
    inputs: int,
) -> None:  # fmt: skip
    """Pick branches. Sums are exact in single precision too, so that no margin is needed."""
    sums = (weights.reshape(-1, inputs) @ features - thresholds).reshape(stages, -1)
    opened = (sums > 0) | ((sums == sums.max(1)[:, None]) & (sums.max(1) <= 0)[:, None])
    flags[:] = opened.ravel()
    shares[:] = (opened / opened.sum(1)[:, None]).ravel()


def mean_of_open(
    a: Array, b: Array, c: Array, d: Array, e: Array, shares: Array, out: Array, stage: int,
    length: int, residual: int,
) -> None:  # fmt: skip
    """Average the open branches of one stage."""
    of_stage = shares.reshape(-1, 5)[stage].copy()
    if residual:
        of_stage[4] = 1
    out[:] = sum(share * x for share, x in zip(of_stage, (a, b, c, d, e), strict=True) if share)


def decide(
    features: Array, weights: Array, bias: Array, values: Array, flags: Array, inputs: int, may: int
) -> None:
    """Decide where a node sends to. Refuse images whose decisions are too close for devices to
    agree."""
    sums = (bias + features @ weights.reshape(inputs, 4))[:3]
    there = np.array([may >> k & 1 for k in range(3)])
    _apart(sums[there > 0], 0)
    values[:3] = there * np.maximum(np.tanh(sums), 0)
    flags[:3] = values[:3] > 0
    flags[3] = flags[:3].any()


def any_of(same: Array, below: Array, above: Array, out: Array, may: int) -> None:
    """Tell whether anything arrives."""
    out[0] = any(may >> k & 1 and flags[k] for k, flags in enumerate((same, below, above)))


def join(
    same: Array, below: Array, above: Array, of_same: Array, of_below: Array, of_above: Array,
    out: Array, channels: int, rows: int, columns: int, may: int,
) -> None:  # fmt: skip
    """Add everything that arrives, by weights."""
    image = np.zeros((channels, rows, columns))
    if may & 1 and of_same[0] > 0:
        image += of_same[0] * same.reshape(image.shape)
    if may & 2 and of_below[1] > 0:
        half = below.reshape(channels, rows // 2, columns // 2)
        image += of_below[1] * half.repeat(2, 1).repeat(2, 2)
    if may & 4 and of_above[2] > 0:
        image += of_above[2] * above.reshape(image.shape)
    out[:] = activated(image, RELU6).ravel()


def route(
    features: Array, weights: Array, bias: Array, routing: Array, flags: Array, inputs: int
) -> None:
    """Choose experts. Refuse images whose decisions are too close for devices to agree."""
    found = activated(bias + features @ weights.reshape(inputs, 4), SIGMOID)
    _apart(found, FLOOR)
    flags[:] = found >= min(FLOOR, found.max())
    routing[:5] = *found, np.flatnonzero(flags)[0]


def add_expert(weights: Array, routing: Array, out: Array, expert: int, length: int) -> None:
    """Add an expert's weights."""
    begun = 0 if int(routing[4]) == expert else out
    out[:] = begun + routing[expert] * weights


def _apart(values: Array, threshold: float) -> None:
    near = np.abs(values - threshold).min(initial=np.inf)
    if near < MARGIN:
        raise UsageError(
            f"a decision is {near:.1e} from its threshold, where devices may differ; expected "
            f"{MARGIN:.0e} at least: take another seed"
        )


_ALL: tuple[Callable[..., None], ...] = (
    convolve, pointwise, depthwise, pool, combine, means, dense, scale_channels, keep, clear,
    lookup, normalise, scores, shares, gather, interact,
    pick, mean_of_open, decide, any_of, join, route, add_expert,
)  # fmt: skip
TWINS: dict[str, Callable[..., None]] = {
    **{one.__name__: one for one in _ALL},
    "convolve_four": convolve,
    "pointwise_four": pointwise,
}
