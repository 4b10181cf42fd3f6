"""Make Dynamic Routing: a lattice of layers and scales whose nodes decide where they send to.

Input: sizes and a seed for images. Output: a `Model`. A node adds what arrives from its own scale,
the one below and the one above. A gate computed from the sum decides to which of these it sends.
Its cell is two separable convolutions beside the identity. A node that nothing is sent to does not
run. Weights are random.

Invariant: a gate weights what it sends, and is zero at its threshold. So results are continuous,
and only the decisions themselves need a margin, which the reference checks.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads.inference import Model
from acs_cl.benchmarks.workloads.layers import LINEAR, Net
from acs_cl.benchmarks.workloads.pictures import images
from acs_cl.benchmarks.workloads.values import ALIGNED, U4, Gate, Value, record

CLASSES = 10
SAME, UP, DOWN = range(3)
ALIVE = 3


class RoutingSize(NamedTuple):
    """Images in a row, their side, channels of the largest scale, layers, scales."""

    images: int
    side: int
    channels: int
    layers: int
    scales: int


class Node(NamedTuple):
    """What a node of the lattice sends, and its gate's weights and flags."""

    same: Value
    up: Value | None
    down: Value | None
    values: Value
    flags: Value


@lru_cache(maxsize=4)
def routing(size: RoutingSize, seed: int) -> Model:
    """Make the network, with images for a seed. Its weights are always the same."""
    net = Net(16)
    image = net.value(3, size.side, size.side)
    shape = (size.layers - 1, size.scales, ALIGNED)
    flags, values = net.value(*shape, dtype=U4), net.value(*shape)
    parts = net.value(size.scales, ALIGNED)
    for cleared in (flags, values, parts):  # nothing may be left of the image before
        net.layer("clear", cleared.length, cleared, cleared.length, outputs=[0])
    before: list[Node] = []
    for layer in range(size.layers):
        scales = range(min(layer + 1, size.scales))
        arrived: list[tuple[Value, Gate | None]]
        if layer == 0:
            arrived = [(net.convolve(image, size.channels), None)]
        else:
            arrived = [_join(net, before, scale, size, flags, layer - 1) for scale in scales]
        if layer == size.layers - 1:
            for scale, (x, gate) in enumerate(arrived):
                features = net.means(_cell(net, x, gate), gate=gate)
                net.dense(features, CLASSES, out=record(parts, scale, CLASSES), gate=gate)
            break
        of_layer = [
            _decide(net, x, gate, scale, size, (values, flags), layer)
            for scale, (x, gate) in enumerate(arrived)
        ]
        before = [
            _send(net, x, scale, size, of_node, _row(flags, layer))
            for scale, ((x, _), of_node) in enumerate(zip(arrived, of_layer, strict=True))
        ]
    logits = net.combine([record(parts, scale, CLASSES) for scale in range(size.scales)])
    return Model(net, image, {"logits": logits, "open": flags}, images(*size[:2], seed))


def _row(value: Value, layer: int) -> Value:
    """Return the part of a value that belongs to a layer of the lattice."""
    rest = value.shape[1:]
    return Value(value.buffer, layer * rest[0] * rest[1], rest)


def _directions(scale: int, size: RoutingSize) -> dict[int, int]:
    """Return where a node may send to: {direction: scale}."""
    there = {SAME: scale, UP: scale - 1, DOWN: scale + 1}
    return {way: other for way, other in there.items() if 0 <= other < size.scales}


def _join(
    net: Net, before: list[Node], scale: int, size: RoutingSize, flags: Value, layer: int
) -> tuple[Value, Gate | None]:
    """Add the sum of what arrives at a node, and whether anything does."""
    senders = {SAME: scale, UP: scale + 1, DOWN: scale - 1}
    come = {way: before[n] for way, n in senders.items() if 0 <= n < len(before)}
    sent = {way: (node.same, node.up, node.down)[way] for way, node in come.items()}
    some = next(iter(come))  # stands in where nobody can send
    may = sum(1 << way for way in come)
    nodes = [come.get(way, come[some]) for way in (SAME, UP, DOWN)]
    arrives = net.value(1, dtype=U4)
    net.layer(
        "any_of", 1, *(node.flags for node in nodes), arrives, may, outputs=[3], on_device=True
    )
    opened = tuple(Value(n.flags.buffer, n.flags.first + way, (1,)) for way, n in come.items())
    gate = Gate(arrives, opened, (_row(flags, layer),))
    channels, side = size.channels << scale, size.side >> scale
    x = net.value(channels, side, side)
    net.layer(
        "join", x.length, *(sent.get(way, sent[some]) for way in (SAME, UP, DOWN)),
        *(node.values for node in nodes), x, channels, side, side, may, outputs=[6], gate=gate,
    )  # fmt: skip
    return x, gate


def _decide(
    net: Net, x: Value, gate: Gate | None, scale: int, size: RoutingSize,
    records: tuple[Value, Value], layer: int,
) -> tuple[Value, Value]:  # fmt: skip
    """Add a node's decision where to send to. Return its records of weights and flags."""
    values, flags = (record(_row(whole, layer), scale) for whole in records)
    features = net.means(x, gate)
    weights = net.random.normal(0, 1, (features.length, 4))
    weights = (weights - weights.mean(0)) * np.sqrt(2 / features.length)
    bias = net.random.normal(0.5 if layer else 2, 0.3, 4)  # the first node sends to somebody
    net.layer(
        "decide", 1, features, net.constant(weights), net.constant(bias), values, flags,
        features.length, sum(1 << way for way in _directions(scale, size)),
        outputs=[3, 4], gate=gate,
    )  # fmt: skip
    return values, flags


def _send(
    net: Net, x: Value, scale: int, size: RoutingSize, records: tuple[Value, Value], read: Value
) -> Node:
    """Add the cell, which runs if anything is sent on, and the open ways to other scales."""
    values, flags = records
    gates = [
        Gate(flag, (flag,), (read,))
        for flag in (Value(flags.buffer, flags.first + way, (1,)) for way in range(4))
    ]
    y, ways, channels = _cell(net, x, gates[ALIVE]), _directions(scale, size), x.shape[0]
    up = net.convolve(y, channels // 2, 1, after=LINEAR, gate=gates[UP]) if UP in ways else None
    down = (
        net.convolve(y, channels * 2, 3, 2, LINEAR, gate=gates[DOWN]) if DOWN in ways else None
    )  # fmt: skip
    return Node(y, up, down, values, flags)


def _cell(net: Net, x: Value, gate: Gate | None) -> Value:
    """Add two separable convolutions, beside the identity."""
    y = x
    for _ in range(2):
        y = net.depthwise(y, 3, gate=gate)
        y = net.convolve(y, x.shape[0], 1, after=LINEAR, gate=gate)
    return net.combine([x, y], [0.7, 0.7], gate=gate)
