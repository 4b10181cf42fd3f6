"""Describe networks as layers over values: the launches for one image, in program order.

Input: calls of a `Net`, one for each layer, and a seed for its weights. Output: `layers`. Each is a
launch of a kernel of `kernels_cl/networks.cl` on values, with the gate that decides whether it
runs. `inference` runs them on a platform, `layer_twins` in NumPy.

Invariant: a value is written by one layer, unless a layer says that it updates the value. Parts of
one buffer for different layers do not overlap. A part that begins at no multiple of `ALIGNED` is
given as the whole buffer and its first word, to kernels that take that.
"""

# Long because: a method for each kernel, and each needs little more than its arguments.

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from acs_cl import UsageError
from acs_cl.benchmarks.workloads.values import ALIGNED, F4, Gate, Layer, Value

GROUP = 64
MOST_GROUPS = 192
"""Groups of a launch at most: kernels loop over what is left."""
WIDE = 1024
"""Work-items that a convolution has to have left if each is to have four pixels."""

LINEAR, RELU, RELU6, SIGMOID, SWISH, GELU = range(6)
MAXIMUM, AVERAGE = range(2)


class Net:
    """A network that is being put together. Every method that adds a layer gives the value that the
    layer writes: a new one, or `out`, a part of one. `gate` decides whether it runs."""

    def __init__(self, seed: int, images: int = 1) -> None:
        self.images = images
        self.random = np.random.default_rng(seed)
        self.layers: list[Layer] = []
        self.sizes: list[tuple[int, np.dtype[Any]]] = []
        self.constants: dict[int, np.ndarray[Any, Any]] = {}

    # ---- values ------------------------------------------------------------------------------

    def image(self, channels: int, rows: int, columns: int) -> Value:
        """Make a value for all images, one below the other, each with so many rows."""
        return self.value(channels, self.images * rows, columns)

    def value(self, *shape: int, dtype: np.dtype[Any] = F4) -> Value:
        """Make a value with a buffer of its own."""
        self.sizes.append((prod(shape), dtype))
        return Value(len(self.sizes) - 1, 0, shape)

    def constant(self, values: Any) -> Value:
        """Make a buffer that is filled beforehand."""
        host = np.asarray(values, F4)
        made = self.value(*host.shape)
        self.constants[made.buffer] = host.ravel()
        return made

    def gate(self, flags: Value, index: int) -> Gate:
        """Make a gate that one of these flags opens. A host reads them together."""
        flag = Value(flags.buffer, flags.first + index, (1,))
        return Gate(flag, (flag,), (flags,))

    def part(self, value: Value, first: int, count: int) -> Value:
        """Return some channels of an image, or rows of anything. Values that are concatenated are
        written to parts."""
        row = prod(value.shape[1:])
        if not 0 <= first < first + count <= value.shape[0]:
            raise UsageError(f"rows {first} to {first + count} of a value of {value.shape}")
        return Value(value.buffer, value.first + first * row, (count, *value.shape[1:]))

    def weights(self, *shape: int, inputs: int, gain: float = 2.0) -> Value:
        """Draw random weights that keep the size of sums over `inputs`. A gain of 2 is for ReLU."""
        return self.constant(self.random.normal(0, np.sqrt(gain / inputs), shape))

    def bias(self, count: int) -> Value:
        """Draw random biases."""
        return self.constant(self.random.normal(0, 0.1, count))

    def first(self, count: int) -> Net:
        """Return a network of the first layers alone, over the same values."""
        net = Net(0, self.images)
        net.layers, net.sizes, net.constants = self.layers[:count], self.sizes, self.constants
        return net

    # ---- layers ------------------------------------------------------------------------------

    def layer(
        self,
        kernel: str,
        items: int,
        *args: Any,
        outputs: Sequence[int],
        gate: Gate | None = None,
        on_device: bool = False,
    ) -> None:
        """Add a launch of any kernel."""
        found = tuple(outputs)
        for number, arg in enumerate(args):
            apart = isinstance(arg, Value) and arg.first % ALIGNED
            if apart and kernel not in PLACED.get(number, ()):
                raise UsageError(
                    f"{kernel} is given a part that begins at word {arg.first}, expected a "
                    f"multiple of {ALIGNED}"
                )
        self.layers.append(Layer(kernel, items, args, found, gate, on_device))

    def convolve(
        self,
        x: Value,
        channels: int,
        size: int = 3,
        stride: int = 1,
        after: int = RELU,
        *,
        high: int | None = None,
        before: bool = False,
        pad: int | None = None,
        weights: Value | None = None,
        bias: Value | None = None,
        out: Value | None = None,
        gate: Gate | None = None,
    ) -> Value:
        """Add a convolution of `high` x `size`, which are usually the same, with bias. `before`:
        apply a ReLU to `x` first. `channels` is a multiple of four. `pad` below zero begins so many
        pixels further in."""
        inputs, height, width = x.shape
        if channels % 4:
            raise UsageError(f"a convolution to {channels} channels: have a multiple of four")
        high = size if high is None else high
        shape = self.shape(x, (high, size), stride, pad)
        out = out or self.value(channels, *shape)
        _expect(out, channels, *shape)
        weights = weights or self.weights(
            channels // 4, inputs, high, size, 4, inputs=inputs * high * size
        )
        bias = bias or self.bias(channels)
        rows, columns = shape[0] // self.images, shape[1]
        area = self.images * rows * columns
        padded = size // 2 if pad is None else pad
        wide = columns % 4 == 0 and channels * area // 16 >= WIDE
        name, pixels = ("_four", 4) if wide else ("", 1)
        args: tuple[int, ...]
        if size == high == stride == 1 and not padded:
            kernel, args = "pointwise", (inputs, area, channels, int(before), after)
        else:
            above = high // 2 if pad is None else pad
            kernel = "convolve"
            args = (
                inputs, height // self.images, width, channels, rows, columns, size, stride,
                padded, int(before), after, high, above, self.images,
            )  # fmt: skip
        self.layer(
            kernel + name, channels // 4 * (area // pixels),
            x, weights, bias, out, *args, place(out), outputs=[3], gate=gate,
        )  # fmt: skip
        return out

    def depthwise(
        self,
        x: Value,
        size: int = 3,
        stride: int = 1,
        after: int = RELU,
        *,
        before: bool = False,
        weights: Value | None = None,
        gate: Gate | None = None,
    ) -> Value:
        """Add a convolution of each channel by itself, with bias."""
        channels, height, width = x.shape
        shape = self.shape(x, (size, size), stride)
        out = self.value(channels, *shape)
        weights = weights or self.weights(channels, size, size, inputs=size * size)
        many, (rows, columns) = self.images, shape
        self.layer(
            "depthwise", channels * rows * (-(-columns // 4)),
            x, weights, self.bias(channels), out, channels, height // many, width, rows // many,
            columns, size, stride, size // 2, int(before), after, many, outputs=[3], gate=gate,
        )  # fmt: skip
        return out

    def pool(
        self,
        x: Value,
        size: int = 3,
        stride: int = 1,
        how: int = MAXIMUM,
        *,
        pad: int | None = None,
        out: Value | None = None,
    ) -> Value:
        """Add the largest or the mean of a window. Pixels outside of the image do not count."""
        channels, height, width = x.shape
        shape = self.shape(x, (size, size), stride, pad)
        out = out or self.value(channels, *shape)
        _expect(out, channels, *shape)
        many, (rows, columns) = self.images, shape
        padded = size // 2 if pad is None else pad
        self.layer(
            "pool", out.length,
            x, out, channels, height // many, width, rows // many, columns, size, stride, padded,
            how, many, place(out), outputs=[1],
        )  # fmt: skip
        return out

    def combine(
        self,
        values: Sequence[Value],
        weights: Sequence[float] | None = None,
        after: int = LINEAR,
        *,
        out: Value | None = None,
        gate: Gate | None = None,
    ) -> Value:
        """Add a weighted sum of one to four values of one shape; of one value it is a copy. Without
        `weights` it is the sum."""
        if not 1 <= len(values) <= 4 or len({value.shape for value in values}) != 1:
            raise UsageError(f"a sum of {[value.shape for value in values]}")
        out = out or self.value(*values[0].shape)
        _expect(out, *values[0].shape)
        factors = [1.0] * len(values) if weights is None else [float(w) for w in weights]
        if len(factors) != len(values):
            raise UsageError(f"{len(factors)} weights for {len(values)} values")
        spare = 4 - len(values)
        self.layer(
            "combine", out.length,
            *values, *[values[0]] * spare, out, *factors, *[0.0] * spare,
            len(values), out.length, after, outputs=[4], gate=gate,
        )  # fmt: skip
        return out

    def means(self, x: Value, gate: Gate | None = None) -> Value:
        """Add the mean of each channel of each image. Many pixels are summed by rows first."""
        channels, rows, columns = x.shape
        area = rows * columns // self.images
        runs = [(channels * rows, columns), (channels * self.images, rows // self.images)]
        for count, length in runs if area > GROUP else [(channels * self.images, area)]:
            out = self.value(count)
            self.layer("means", count, x, out, count, length, outputs=[1], gate=gate)
            x = out
        return x

    def dense(
        self,
        x: Value,
        count: int,
        after: int = LINEAR,
        *,
        weights: Value | None = None,
        out: Value | None = None,
        gate: Gate | None = None,
    ) -> Value:
        """Compute every output from every input of an image, with bias."""
        many = self.images
        out, inputs = out or self.value(count * many), x.length // many
        weights = weights or self.weights(inputs, count, inputs=inputs, gain=1.0)
        self.layer(
            "dense", count * many, x, weights, self.bias(count), out, inputs, count, after, many,
            outputs=[3], gate=gate,
        )  # fmt: skip
        return out

    def scale_channels(self, x: Value, factors: Value) -> Value:
        """Multiply each channel by its own factor."""
        out = self.value(*x.shape)
        self.layer(
            "scale_channels", x.length, x, factors, out, x.shape[0], x.length // x.shape[0],
            outputs=[2],
        )  # fmt: skip
        return out

    def keep(self, x: Value, out: Value) -> None:
        """Copy words as they are."""
        self.layer("keep", x.length, x, out, x.length, place(x), place(out), outputs=[1])

    # ---- sequences ---------------------------------------------------------------------------

    def lookup(self, numbers: Value, table: Value, out: Value | None = None) -> Value:
        """Look up a row of the table for each number, as a column."""
        width, many = table.shape[1], numbers.length
        shape = (width, self.images, many // self.images)
        out = out or self.value(*shape)
        _expect(out, *shape)
        self.layer(
            "lookup", out.length, numbers, table, out, width, many, place(numbers), place(out),
            outputs=[2],
        )  # fmt: skip
        return out

    def normalise(self, x: Value, centred: bool) -> Value:
        """Bring every token to one size. `centred`: and to a mean of zero."""
        channels, *rest = x.shape
        area, out = prod(rest), self.value(*x.shape)
        scale = self.constant(self.random.normal(1, 0.1, channels))
        shift = self.constant(self.random.normal(0, 0.1 * centred, channels))
        self.layer(
            "normalise", area, x, scale, shift, out, channels, area, int(centred), outputs=[3]
        )
        return out

    def attend(
        self, query: Value, key: Value, values: Value, heads: int, bias: Value | None = None
    ) -> Value:
        """Add attention of several heads: scores, shares, and the result for each token."""
        channels, many = query.shape[0], self.images
        width, queries, keys = channels // heads, query.shape[2], key.shape[2]
        found, shared = (self.value(heads * many, keys, queries) for _ in range(2))
        sizes = (heads, width, many, queries, keys)
        self.layer(
            "scores", found.length, query, key, bias or query, found, *sizes,
            width**-0.5, int(bias is not None), outputs=[3],
        )  # fmt: skip
        self.layer(
            "shares", heads * many * queries, found, shared, heads * many, queries, keys,
            outputs=[1],
        )  # fmt: skip
        out = self.value(*query.shape)
        self.layer("gather", out.length, shared, values, out, *sizes, outputs=[2])
        return out

    def interact(self, x: Value, fields: int) -> Value:
        """Compute the interaction of each two of the rows that were looked up."""
        width = x.shape[0] // fields
        out = self.value(self.images)
        self.layer("interact", self.images, x, out, fields, width, self.images, outputs=[1])
        return out

    def shape(
        self, x: Value, size: tuple[int, int], stride: int, pad: int | None = None
    ) -> tuple[int, int]:
        """Return rows of all images, and columns of the result, as many as with the usual
        padding."""
        _, rows, columns = x.shape
        sides = (rows // self.images, columns)
        if pad is None or pad < 0:
            high, wide = (-(-side // stride) for side in sides)
        else:
            high, wide = ((s + 2 * pad - k) // stride + 1 for s, k in zip(sides, size, strict=True))
        return self.images * high, wide


PLACED = {
    0: {"lookup", "keep"},
    1: {"pool", "keep"},
    2: {"lookup"},
    3: {"convolve", "convolve_four", "pointwise", "pointwise_four"},
}
"""Kernels that are told where a part begins, by the position of what it is a part of."""


def place(value: Value) -> int:
    """Return the word where a part begins that is given as the whole buffer; else 0."""
    return value.first if value.first % ALIGNED else 0


def four(channels: float) -> int:
    """Return channels at a reduced width: a multiple of four."""
    return max(4, 4 * round(channels / 4))


def _expect(out: Value, *shape: int) -> None:
    if out.shape != shape:
        raise UsageError(f"the output has shape {out.shape}, expected {shape}")
