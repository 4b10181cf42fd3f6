"""Networks as layers over values: what is launched for one image, in program order.

In: calls of a `Net`, one for each layer, and a seed for its weights. Out: `layers`, each a launch
of a kernel of `kernels_cl/networks.cl` on values, with the gate that decides whether it runs.
`inference` runs them on a platform, `layer_twins` in NumPy.

Invariant: a value is written by one layer, but for what a layer says that it updates. Parts of one
buffer that are given to different layers do not overlap, and begin at multiples of `ALIGNED`.
"""

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

LINEAR, RELU, RELU6, SIGMOID, SWISH = range(5)
MAXIMUM, AVERAGE = range(2)


class Net:
    """A network that is being put together. Every method that adds a layer gives the value that the
    layer writes: a new one, or `out`, a part of one. `gate` decides whether it runs."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.layers: list[Layer] = []
        self.sizes: list[tuple[int, np.dtype[Any]]] = []
        self.constants: dict[int, np.ndarray[Any, Any]] = {}

    # ---- values ------------------------------------------------------------------------------

    def value(self, *shape: int, dtype: np.dtype[Any] = F4) -> Value:
        """A buffer of its own."""
        self.sizes.append((prod(shape), dtype))
        return Value(len(self.sizes) - 1, 0, shape)

    def constant(self, values: Any) -> Value:
        """A buffer that is filled beforehand."""
        host = np.asarray(values, F4)
        made = self.value(*host.shape)
        self.constants[made.buffer] = host.ravel()
        return made

    def gate(self, flags: Value, index: int) -> Gate:
        """Opened by one of these flags, which a host reads together."""
        flag = Value(flags.buffer, flags.first + index, (1,))
        return Gate(flag, (flag,), (flags,))

    def part(self, value: Value, first: int, count: int) -> Value:
        """Channels of an image, or rows of anything: what is concatenated is written to parts."""
        row = prod(value.shape[1:])
        if not 0 <= first < first + count <= value.shape[0]:
            raise UsageError(f"rows {first} to {first + count} of a value of {value.shape}")
        start = value.first + first * row
        if start % ALIGNED:
            raise UsageError(f"a part begins at word {start}, expected a multiple of {ALIGNED}")
        return Value(value.buffer, start, (count, *value.shape[1:]))

    def weights(self, *shape: int, inputs: int, gain: float = 2.0) -> Value:
        """Random ones that keep the size of what comes from `inputs` sums; 2 is for ReLU."""
        return self.constant(self.random.normal(0, np.sqrt(gain / inputs), shape))

    def bias(self, count: int) -> Value:
        """Random ones."""
        return self.constant(self.random.normal(0, 0.1, count))

    def first(self, count: int) -> Net:
        """A network of the first layers alone, over the same values."""
        net = Net(0)
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
        """Any kernel."""
        found = tuple(outputs)
        self.layers.append(Layer(kernel, items, args, found, gate, on_device))

    def convolve(
        self,
        x: Value,
        channels: int,
        size: int = 3,
        stride: int = 1,
        after: int = RELU,
        *,
        before: bool = False,
        pad: int | None = None,
        weights: Value | None = None,
        bias: Value | None = None,
        out: Value | None = None,
        gate: Gate | None = None,
    ) -> Value:
        """A convolution with bias; `before` is for a ReLU of what it reads. `channels` is a
        multiple of four. `pad` below zero begins that many pixels further in."""
        inputs, height, width = x.shape
        if channels % 4:
            raise UsageError(f"a convolution to {channels} channels: have a multiple of four")
        out = out or self.value(channels, *_side(x, size, stride, pad))
        _expect(out, channels, *_side(x, size, stride, pad))
        weights = weights or self.weights(
            channels // 4, inputs, size, size, 4, inputs=inputs * size * size
        )
        bias = bias or self.bias(channels)
        rows, columns = out.shape[1:]
        area = rows * columns
        padded = size // 2 if pad is None else pad
        wide = columns % 4 == 0 and channels * area // 16 >= WIDE
        name, pixels = ("_four", 4) if wide else ("", 1)
        if size == stride == 1 and not padded:
            kernel, sizes = "pointwise", [inputs, area, channels]
        else:
            kernel = "convolve"
            sizes = [inputs, height, width, channels, rows, columns, size, stride, padded]
        self.layer(
            kernel + name, channels // 4 * (area // pixels),
            x, weights, bias, out, *sizes, int(before), after, outputs=[3], gate=gate,
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
        out: Value | None = None,
        gate: Gate | None = None,
    ) -> Value:
        """A convolution of each channel by itself, with bias."""
        channels, height, width = x.shape
        out = out or self.value(channels, *_side(x, size, stride))
        _expect(out, channels, *_side(x, size, stride))
        weights = weights or self.weights(channels, size, size, inputs=size * size)
        rows, columns = out.shape[1:]
        self.layer(
            "depthwise", channels * rows * (-(-columns // 4)),
            x, weights, self.bias(channels), out, channels, height, width, rows, columns,
            size, stride, size // 2, int(before), after, outputs=[3], gate=gate,
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
        gate: Gate | None = None,
    ) -> Value:
        """The largest or the mean of a window; what is outside of the image does not count."""
        channels, height, width = x.shape
        out = out or self.value(channels, *_side(x, size, stride, pad))
        _expect(out, channels, *_side(x, size, stride, pad))
        rows, columns = out.shape[1:]
        padded = size // 2 if pad is None else pad
        self.layer(
            "pool", out.length,
            x, out, channels, height, width, rows, columns, size, stride, padded, how,
            outputs=[1], gate=gate,
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
        """A weighted sum of one to four values of one shape; of one it is a copy. Without `weights`
        it is the sum."""
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
        """The mean of each channel: by rows first where there are many pixels."""
        channels, rows, columns = x.shape
        runs = [(channels * rows, columns), (channels, rows)]
        for count, length in runs if rows * columns > GROUP else [(channels, rows * columns)]:
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
        out: Value | None = None,
        gate: Gate | None = None,
    ) -> Value:
        """Every output from every input, with bias."""
        out = out or self.value(count)
        weights = self.weights(x.length, count, inputs=x.length, gain=1.0)
        self.layer(
            "dense", count, x, weights, self.bias(count), out, x.length, count, after,
            outputs=[3], gate=gate,
        )  # fmt: skip
        return out

    def scale_channels(self, x: Value, factors: Value, gate: Gate | None = None) -> Value:
        """Each channel times its own factor."""
        out = self.value(*x.shape)
        self.layer(
            "scale_channels", x.length, x, factors, out, x.shape[0], x.length // x.shape[0],
            outputs=[2], gate=gate,
        )  # fmt: skip
        return out

    def keep(self, x: Value, out: Value) -> None:
        """Copy words as they are."""
        self.layer("keep", x.length, x, out, x.length, outputs=[1])


def four(channels: float) -> int:
    """Channels at a reduced width: a multiple of four."""
    return max(4, 4 * round(channels / 4))


def _side(x: Value, size: int, stride: int, pad: int | None = None) -> tuple[int, int]:
    """Rows and columns of what comes out, as large as with the usual padding."""
    _, rows, columns = x.shape
    if pad is None or pad < 0:
        return -(-rows // stride), -(-columns // stride)
    return (rows + 2 * pad - size) // stride + 1, (columns + 2 * pad - size) // stride + 1


def _expect(out: Value, *shape: int) -> None:
    if out.shape != shape:
        raise UsageError(f"the output has shape {out.shape}, expected {shape}")
