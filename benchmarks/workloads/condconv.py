"""Make CondConv: convolutions whose weights are mixed for each image.

Input: sizes and a seed for images. Output: a `Model`. Blocks have the shape of EfficientNet-B4's.
The means of a block's input, through a sigmoid, weight four experts. The weights of the experts are
added up for the three convolutions of the block, side by side. An expert below a floor is left out,
and its weights are not even read. Weights are random.

Invariant: the reference refuses an image for which an expert comes close to the floor.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads.inference import Model
from acs_cl.benchmarks.workloads.layers import LINEAR, RELU6, SIGMOID, SWISH, Net, four
from acs_cl.benchmarks.workloads.pictures import images
from acs_cl.benchmarks.workloads.values import ALIGNED, U4, Value, record

CLASSES = 10
BLOCKS = (
    (1, 3, 1, 24, 2),
    (6, 3, 2, 32, 4),
    (6, 5, 2, 56, 4),
    (6, 3, 2, 112, 6),
    (6, 5, 1, 160, 6),
    (6, 5, 2, 272, 8),
    (6, 3, 1, 448, 2),
)
"""EfficientNet-B4's: expansion, kernel size, stride, channels, blocks in a row."""
EXPERTS = 4


class CondConvSize(NamedTuple):
    """Images in a row, their side, a factor for all channels, blocks at most in a row."""

    images: int
    side: int
    width: float
    repeat: int


@lru_cache(maxsize=4)
def condconv(size: CondConvSize, seed: int) -> Model:
    """Make the network, with images for a seed. Its weights are always the same."""
    net = Net(4)
    image = net.value(3, size.side, size.side)
    x = net.convolve(image, four(48 * size.width), after=RELU6)
    rows = sum(min(size.repeat, block[4]) for block in BLOCKS[1:])
    flags = net.value(rows, ALIGNED, dtype=U4)
    done = 0
    for expansion, kernel, stride, channels, repeat in BLOCKS:
        for number in range(min(size.repeat, repeat)):
            mixer = _Mixer(net, x, record(flags, done, EXPERTS)) if expansion > 1 else None
            done += mixer is not None
            shape = (expansion, kernel, 1 if number else stride, four(channels * size.width))
            x = _block(net, x, *shape, mixer)
    head = net.convolve(x, four(1792 * size.width), 1, after=RELU6)
    logits = net.dense(net.means(head), CLASSES)
    return Model(net, image, {"logits": logits, "open": flags}, images(*size[:2], seed))


class _Mixer:
    """Weights for one block, of experts that its input picks."""

    def __init__(self, net: Net, x: Value, flags: Value) -> None:
        self.net = net
        self.gates = [net.gate(flags, expert) for expert in range(EXPERTS)]
        features = net.means(x)
        weights = net.random.normal(0, np.sqrt(3 / features.length), (features.length, EXPERTS))
        self.routing = net.value(EXPERTS + 1)
        net.layer(
            "route", 1, features, net.constant(weights),
            net.constant(net.random.normal(0, 0.5, EXPERTS)), self.routing, flags, features.length,
            outputs=[3, 4],
        )  # fmt: skip

    def mixed(self, *shape: int, inputs: int, gain: float) -> Value:
        """Mix weights of this shape. Experts are added up one after the other."""
        out = self.net.value(*shape)
        for expert, gate in enumerate(self.gates):
            own = self.net.weights(*shape, inputs=inputs, gain=gain)
            self.net.layer(
                "add_expert", out.length, own, self.routing, out, expert, out.length,
                outputs=[2], gate=gate,
            )  # fmt: skip
        return out


def _block(
    net: Net, x: Value, expansion: int, size: int, stride: int, channels: int, mixer: _Mixer | None
) -> Value:
    """Add an inverted residual with squeeze and excitation."""
    inputs = x.shape[0]
    wide = expansion * inputs
    first = depth = last = None
    if mixer is not None:
        first = mixer.mixed(wide // 4, inputs, 4, inputs=inputs, gain=1.5)
        depth = mixer.mixed(wide, size, size, inputs=size * size, gain=2.5)
        last = mixer.mixed(channels // 4, wide, 4, inputs=wide, gain=10)
    y = net.convolve(x, wide, 1, after=RELU6, weights=first) if expansion > 1 else x
    y = net.depthwise(y, size, stride, RELU6, weights=depth)
    factors = net.dense(net.dense(net.means(y), four(inputs / 4), SWISH), wide, SIGMOID)
    y = net.convolve(net.scale_channels(y, factors), channels, 1, after=LINEAR, weights=last)
    return net.combine([x, y], [0.9, 0.2]) if x.shape == y.shape else y
