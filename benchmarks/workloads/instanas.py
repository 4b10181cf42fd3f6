"""Make InstaNAS: 17 stages of branches. A controller picks some of them for each image.

Input: sizes and a seed for images. Output: a `Model`. Stages have MobileNet-V2's shape. A branch is
an inverted residual with its own kernel size and expansion, or skips the stage. The open branches
are averaged. Weights are random.

Invariant: the controller computes with multiples of small powers of two, without any rounding, so
that every device decides as the reference does.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads import inference
from acs_cl.benchmarks.workloads.inference import Model
from acs_cl.benchmarks.workloads.layers import LINEAR, RELU6, Net, four
from acs_cl.benchmarks.workloads.pictures import images
from acs_cl.benchmarks.workloads.values import U4, Gate, Value

CLASSES = 10
STAGES = (
    [(16, 1)]
    + [(24, 1)] * 2
    + [(32, 2), (32, 1), (32, 1)]
    + [(64, 2), (64, 1), (64, 1), (64, 1)]
    + [(96, 1)] * 3
    + [(160, 2), (160, 1), (160, 1)]
    + [(320, 1)]
)  # fmt: skip
"""MobileNet-V2's 17 for images of 32 x 32: channels, stride."""
BRANCHES = ((3, 3), (3, 6), (5, 3), (5, 6))
"""Kernel size and expansion; the fifth branch skips the stage."""
CALIBRATION = 16
"""Images whose medians are the controller's thresholds."""


class InstaNasSize(NamedTuple):
    """Images in a row, their side, a factor for all channels, stages."""

    images: int
    side: int
    width: float
    stages: int


@lru_cache(maxsize=4)
def instanas(size: InstaNasSize, seed: int) -> Model:
    """Make the network, with images for a seed. Its weights are always the same."""
    net = Net(17)
    image = net.value(3, size.side, size.side)
    flags, shares, thresholds = _controller(net, image, size.stages)
    x = net.convolve(image, four(32 * size.width), after=RELU6)
    for stage, (channels, stride) in enumerate(STAGES[: size.stages]):
        gates = [net.gate(flags, 5 * stage + branch) for branch in range(5)]
        x = _stage(net, x, four(channels * size.width), stride, gates, shares, stage)
    features = net.means(net.convolve(x, four(1280 * size.width), 1, after=RELU6))
    logits = net.dense(features, CLASSES)
    _calibrate(Model(net, image, {}, images(CALIBRATION, size.side, 17)), thresholds)
    return Model(net, image, {"logits": logits, "open": flags}, images(*size[:2], seed))


def _controller(net: Net, image: Value, stages: int) -> tuple[Value, Value, Value]:
    """Add two small convolutions and a decision for each branch. Weights are -1, 0 and 1, over four
    for convolutions, so that no sum is rounded."""

    def exact(*shape: int, scale: int) -> Value:
        return net.constant(net.random.integers(-1, 2, shape) / scale)

    x = image
    for channels in (8, 16):
        x = net.convolve(
            x, channels, 3, 2, bias=net.constant(np.zeros(channels)),
            weights=exact(channels // 4, x.shape[0], 3, 3, 4, scale=4),
        )  # fmt: skip
    features = net.means(x)
    flags, shares = net.value(stages, 5, dtype=U4), net.value(stages, 5)
    weights = exact(stages * 5, features.length, scale=1)
    thresholds = net.constant(np.zeros(stages * 5))
    net.layer(
        "pick", stages, features, weights, thresholds, flags, shares, stages, features.length,
        outputs=[3, 4],
    )  # fmt: skip
    return flags, shares, thresholds


def _calibrate(model: Model, thresholds: Value) -> None:
    """Have every branch open for about half of the images: thresholds are medians."""
    net = model.net
    last = next(n for n, layer in enumerate(net.layers) if layer.kernel == "pick")
    features, weights = net.layers[last].args[:2]
    probe = model._replace(net=net.first(last), kept={"features": features})
    seen = inference.reference(probe)["features"]
    rows = net.constants[weights.buffer].reshape(-1, features.length)
    medians = np.median(seen @ rows.T.astype(np.float64), axis=0)
    net.constants[thresholds.buffer] = (np.rint(medians * 64) / 64).astype(np.float32)


def _stage(
    net: Net, x: Value, channels: int, stride: int, gates: list[Gate], shares: Value, stage: int
) -> Value:
    """Add inverted residuals side by side, and the mean of those that are open."""
    branches = []
    for gate, (size, expansion) in zip(gates, BRANCHES, strict=False):
        wide = net.convolve(x, expansion * x.shape[0], 1, after=RELU6, gate=gate)
        deep = net.depthwise(wide, size, stride, RELU6, gate=gate)
        branches.append(net.convolve(deep, channels, 1, after=LINEAR, gate=gate))
    residual = stride == 1 and x.shape[0] == channels
    skip = x if residual else net.convolve(x, channels, 1, stride, LINEAR, gate=gates[4])
    out = net.value(*branches[0].shape)
    net.layer(
        "mean_of_open", out.length, *branches, skip, shares, out, stage, out.length, int(residual),
        outputs=[6],
    )  # fmt: skip
    return out
