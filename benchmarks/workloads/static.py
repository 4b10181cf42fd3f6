"""Static networks that are irregular: NASNet-A, AmoebaNet-A, SqueezeNet and RandWire.

In: sizes and seeds. Out: workloads; a step is the inference of one image. The graph is the same for
each image, but regular in nothing: cells (`cells`), random wiring (`randwire`), and here modules
of two branches.

Invariant: the seed decides the weights, the image, and RandWire's wiring.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from acs_cl.benchmarks.workloads.blocks import classified
from acs_cl.benchmarks.workloads.cells import AMOEBANET, NASNET, CellsSize, cells
from acs_cl.benchmarks.workloads.inference import Inference, Model, reference
from acs_cl.benchmarks.workloads.layers import Net
from acs_cl.benchmarks.workloads.layers_by_hand import ByHand
from acs_cl.benchmarks.workloads.randwire import RandWireSize, randwire
from acs_cl.benchmarks.workloads.values import Value
from acs_cl.benchmarks.workloads.workload import Workload

# ---- SqueezeNet ----------------------------------------------------------------------------------

FIRES = (((16, 64), (16, 64)), ((32, 128), (32, 128)), ((48, 192),) * 2 + ((64, 256),) * 2)
"""Channels of the squeezing and of each expanding convolution, by stage: version 1.1."""


class SqueezeSize(NamedTuple):
    """The published channels are divided by `divisor`."""

    divisor: int
    side: int


def squeezenet(size: SqueezeSize, seed: int) -> Model:
    """Fire modules: two convolutions side by side, of what one has squeezed."""
    net = Net(seed)
    image = net.value(3, size.side, size.side)
    x = net.convolve(image, 64 // size.divisor)
    for fires in FIRES:
        x = net.pool(x, 3, 2)
        for squeezed, expanded in fires:
            x = fire(net, x, squeezed // size.divisor, expanded // size.divisor)
    return classified(net, image, x, seed)


def fire(net: Net, x: Value, squeezed: int, expanded: int) -> Value:
    """One module."""
    few = net.convolve(x, squeezed, 1)
    whole = net.value(2 * expanded, *x.shape[1:])
    net.convolve(few, expanded, 1, out=net.part(whole, 0, expanded))
    net.convolve(few, expanded, 3, out=net.part(whole, expanded, expanded))
    return whole


# ---- workloads -----------------------------------------------------------------------------------

MODELS: dict[str, Callable[[Any, int], Model]] = {
    "nasnet": lambda size, seed: cells(NASNET, size, seed),
    "amoebanet": lambda size, seed: cells(AMOEBANET, size, seed),
    "squeezenet": squeezenet,
    "randwire": randwire,
}
"""By name of the workload: (size, seed) -> model."""


def _workload(name: str, about: str, **presets: Any) -> Workload:
    model = MODELS[name]
    return Workload(
        name=name,
        family="static",
        about=about,
        presets=presets,
        make=lambda platform, size, seed: Inference(platform, model(size, seed)),
        reference=lambda size, seed: reference(model(size, seed)),
        expert=lambda queues, size, seed: ByHand(queues, model(size, seed)),
    )


WORKLOADS = [
    _workload(
        "nasnet",
        "NASNet-A: cells of separable convolutions and pooling",
        tiny=CellsSize(1, 4, 16),
        small=CellsSize(2, 16, 32),
        paper=CellsSize(6, 32, 32),
    ),
    _workload(
        "amoebanet",
        "AmoebaNet-A: the same with cells that evolution has found",
        tiny=CellsSize(1, 4, 16),
        small=CellsSize(2, 16, 32),
        paper=CellsSize(6, 36, 32),
    ),
    _workload(
        "squeezenet",
        "SqueezeNet: fire modules",
        tiny=SqueezeSize(4, 32),
        small=SqueezeSize(1, 32),
        paper=SqueezeSize(1, 32),
    ),
    _workload(
        "randwire",
        "RandWire: three random graphs of separable convolutions",
        tiny=RandWireSize(8, 8, 16),
        small=RandWireSize(32, 32, 32),
        paper=RandWireSize(32, 80, 32),
    ),
]
