"""RandWire: a network whose stages are random graphs, by Watts and Strogatz.

Input: a size and a seed, which decides the wiring too. Output: a model for `static`. Xie and
others, 2019: 32 nodes a stage, linked with 4 neighbours on a ring, links rewired with probability
0.75.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads.blocks import STAGES, classified, separable
from acs_cl.benchmarks.workloads.inference import Model
from acs_cl.benchmarks.workloads.layers import LINEAR, Net
from acs_cl.benchmarks.workloads.values import Value

NEIGHBOURS, REWIRED = 4, 0.75
LAST = 16
"""Channels before the end, in multiples of the first stage's."""


class RandWireSize(NamedTuple):
    """Nodes of each stage, channels of the first, the side of the image."""

    nodes: int
    channels: int
    side: int


def randwire(size: RandWireSize, seed: int) -> Model:
    """Make three random graphs. Each has half the side and twice the channels of the previous
    one."""
    net, channels = Net(seed), size.channels
    image = net.value(3, size.side, size.side)
    x = net.convolve(image, channels // 2, 3, 1, LINEAR)
    for number in range(STAGES):
        inputs = watts_strogatz(size.nodes, np.random.default_rng((seed, number)))
        x = add_graph(net, x, channels << number, inputs)
    x = net.convolve(x, LAST * channels, 1, before=True)
    return classified(net, image, x, seed)


def watts_strogatz(nodes: int, random: np.random.Generator) -> list[list[int]]:
    """Return for each node the earlier nodes that it is linked with. Each node of a ring is linked
    with `NEIGHBOURS` others. Each link goes elsewhere with probability `REWIRED`. A graph that
    falls apart is drawn again."""
    while True:
        links = {
            (node, (node + step) % nodes)
            for step in range(1, NEIGHBOURS // 2 + 1)
            for node in range(nodes)
        }
        met = {node: {b if a == node else a for a, b in links if node in (a, b)}
               for node in range(nodes)}  # fmt: skip
        for a, b in sorted(links):
            free = [node for node in range(nodes) if node != a and node not in met[a]]
            if random.random() < REWIRED and free:
                other = free[int(random.integers(len(free)))]
                met[a].remove(b)
                met[b].remove(a)
                met[a].add(other)
                met[other].add(a)
        if _hangs_together(met):
            return [sorted(one for one in met[node] if one < node) for node in range(nodes)]


def _hangs_together(met: dict[int, set[int]]) -> bool:
    seen, fresh = {0}, [0]
    while fresh:
        fresh += (found := met[fresh.pop()] - seen)
        seen |= found
    return len(seen) == len(met)


def add_graph(net: Net, x: Value, channels: int, inputs: Sequence[Sequence[int]]) -> Value:
    """Add a graph whose nodes are weighted sums with a separable convolution. Nodes without inputs
    read `x` and halve its side. The output is the mean of the nodes that no other one reads."""
    values: list[Value] = []
    for those in inputs:
        if those:
            weights = 1 / (1 + np.exp(-net.random.normal(size=len(those))))
            weights /= np.sqrt(np.sum(weights**2))  # the sum is as large as what comes in
            summed = total(net, [values[one] for one in those], weights)
            values.append(separable(net, summed, channels))
        else:
            values.append(separable(net, x, channels, stride=2))
    read = {one for those in inputs for one in those}
    ends = [value for number, value in enumerate(values) if number not in read]
    return total(net, ends, np.full(len(ends), 1 / len(ends)))


def total(net: Net, values: Sequence[Value], weights: Any) -> Value:
    """Add a weighted sum of any number of values, four in a launch."""
    found = net.combine(values[:4], weights[:4])
    for first in range(4, len(values), 3):
        part = slice(first, first + 3)
        found = net.combine([found, *values[part]], [1.0, *weights[part]])
    return found
