"""Blocks that several static networks are made of, and the end of each.

Input: a `Net` and values. Output: values. What normalisation does is folded into weights, so that
values stay about as large as they come in.
"""

from __future__ import annotations

import numpy as np

from acs_cl.benchmarks.workloads.inference import Model
from acs_cl.benchmarks.workloads.layers import LINEAR, Net
from acs_cl.benchmarks.workloads.values import Value

CLASSES = 10
STAGES = 3


def linear(
    net: Net, x: Value, channels: int, before: bool, out: Value | None = None, after: int = LINEAR
) -> Value:
    """Add a convolution, usually of size 1, without an activation."""
    gain = 1.0 if after == LINEAR else 2.0
    weights = net.weights(channels // 4, x.shape[0], 4, inputs=x.shape[0], gain=gain)
    return net.convolve(x, channels, 1, 1, after, before=before, weights=weights, out=out)


def separable(net: Net, x: Value, channels: int, size: int = 3, stride: int = 1) -> Value:
    """Add a ReLU, a convolution of each channel by itself, and one over all channels of a pixel."""
    return linear(net, net.depthwise(x, size, stride, LINEAR, before=True), channels, before=False)


def classified(net: Net, image: Value, x: Value, seed: int) -> Model:
    """Add the end of every network: the mean of each channel, and a value for each class."""
    kept = {"classes": net.dense(net.means(x), CLASSES)}
    return Model(net, image, kept, np.random.default_rng(seed + 1).normal(size=(1, *image.shape)))
