"""GoogLeNet: nine modules of four branches each, as Opara's evaluation has it.

In: sizes and seeds. Out: the workload `googlenet`. Channels are those of Szegedy and others, 2015,
table 1, divided by a number; normalisation is folded into weights. Images have a side of 256, not
224, so that all that is concatenated is aligned.
"""

from __future__ import annotations

from itertools import permutations
from math import prod
from typing import NamedTuple

from acs_cl import UsageError
from acs_cl.benchmarks.workloads.blocks import classified
from acs_cl.benchmarks.workloads.inference import Inference, Model, reference
from acs_cl.benchmarks.workloads.layers import Net, four
from acs_cl.benchmarks.workloads.layers_by_hand import ByHand
from acs_cl.benchmarks.workloads.values import ALIGNED, Value
from acs_cl.benchmarks.workloads.workload import Workload


class Module(NamedTuple):
    """Channels: of the branch of size 1, of those that reduce, and of what comes out of each."""

    one: int
    before_three: int
    three: int
    before_five: int
    five: int
    pooled: int


STAGES = (
    (Module(64, 96, 128, 16, 32, 32), Module(128, 128, 192, 32, 96, 64)),
    (
        Module(192, 96, 208, 16, 48, 64),
        Module(160, 112, 224, 24, 64, 64),
        Module(128, 128, 256, 24, 64, 64),
        Module(112, 144, 288, 32, 64, 64),
        Module(256, 160, 320, 32, 128, 128),
    ),
    (Module(256, 160, 320, 32, 128, 128), Module(384, 192, 384, 48, 128, 128)),
)
"""Modules 3a and 3b, 4a to 4e, 5a and 5b."""


class GoogLeNetSize(NamedTuple):
    """The published channels are divided by `divisor`; so many stages of modules are there."""

    divisor: int
    side: int
    stages: int


def googlenet(size: GoogLeNetSize, seed: int) -> Model:
    """Stem, modules, and the end that all networks have here."""
    net, by = Net(seed), size.divisor
    image = net.value(3, size.side, size.side)
    x = net.pool(net.convolve(image, four(64 / by), 7, 2), 3, 2)
    x = net.convolve(net.convolve(x, four(64 / by), 1), four(192 / by))
    for modules in STAGES[: size.stages]:
        x = net.pool(x, 3, 2)
        for module in modules:
            x = inception(net, x, Module(*(four(channels / by) for channels in module)))
    return classified(net, image, x, seed)


def inception(net: Net, x: Value, module: Module) -> Value:
    """One module: four branches, concatenated in an order in which all parts are aligned."""
    sides = x.shape[1:]
    channels = {
        "one": module.one, "three": module.three, "five": module.five, "pooled": module.pooled,
    }  # fmt: skip
    whole = net.value(sum(channels.values()), *sides)
    first = _places(channels, prod(sides))
    out = {name: net.part(whole, at, channels[name]) for name, at in first.items()}
    net.convolve(x, module.one, 1, out=out["one"])
    net.convolve(net.convolve(x, module.before_three, 1), module.three, 3, out=out["three"])
    net.convolve(net.convolve(x, module.before_five, 1), module.five, 5, out=out["five"])
    net.convolve(net.pool(x, 3, 1), module.pooled, 1, out=out["pooled"])
    return whole


def _places(channels: dict[str, int], area: int) -> dict[str, int]:
    """The first channel of each branch."""
    for order in permutations(channels):
        at, found = 0, {}
        for name in order:
            found[name] = at
            at += channels[name]
        if all(first * area % ALIGNED == 0 for first in found.values()):
            return found
    raise UsageError(f"no order of {channels} is aligned in images of {area} pixels")


WORKLOADS = [
    Workload(
        name="googlenet",
        family="opara",
        about="GoogLeNet: nine modules of four branches",
        presets={
            "tiny": GoogLeNetSize(4, 64, 1),
            "small": GoogLeNetSize(2, 128, 2),
            "paper": GoogLeNetSize(1, 256, 3),
        },
        make=lambda platform, size, seed: Inference(platform, googlenet(size, seed)),
        reference=lambda size, seed: reference(googlenet(size, seed)),
        expert=lambda queues, size, seed: ByHand(queues, googlenet(size, seed)),
    ),
]
