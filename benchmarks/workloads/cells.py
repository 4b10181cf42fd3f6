"""NASNet-A and AmoebaNet-A: networks of cells that a search has found.

Input: sizes and seeds. Output: models for `static`. A cell is five pairs of operations, each on the
results of others, which nothing but the search explains.
"""

from __future__ import annotations

from typing import NamedTuple

from acs_cl.benchmarks.workloads.blocks import STAGES, classified, linear, separable
from acs_cl.benchmarks.workloads.inference import Model
from acs_cl.benchmarks.workloads.layers import AVERAGE, LINEAR, MAXIMUM, RELU, Net
from acs_cl.benchmarks.workloads.values import Value

Operation = tuple[str, int]
"""What is done (`sep5` is a separable convolution of size 5, twice), and with which state."""


class Cell(NamedTuple):
    """Pairs of operations whose results are added. State 0 is what came out of the cell before
    the last, 1 of the last, the others are the sums; the states `joined` are concatenated."""

    pairs: tuple[tuple[Operation, Operation], ...]
    joined: tuple[int, ...]


class Style(NamedTuple):
    """The cell that keeps the side of its image, and the one that halves it."""

    normal: Cell
    reduction: Cell


NASNET = Style(
    Cell(
        (
            (("sep5", 1), ("sep3", 0)),
            (("sep5", 0), ("sep3", 0)),
            (("avg3", 1), ("id", 0)),
            (("avg3", 0), ("avg3", 0)),
            (("sep3", 1), ("id", 1)),
        ),
        (0, 2, 3, 4, 5, 6),
    ),
    Cell(
        (
            (("sep5", 1), ("sep7", 0)),
            (("max3", 1), ("sep7", 0)),
            (("avg3", 1), ("sep5", 0)),
            (("id", 3), ("avg3", 2)),
            (("sep3", 2), ("max3", 1)),
        ),
        (3, 4, 5, 6),
    ),
)
"""Zoph and others, 2018, figure 4."""

AMOEBANET = Style(
    Cell(
        (
            (("avg3", 0), ("max3", 1)),
            (("sep3", 0), ("sep5", 2)),
            (("sep3", 0), ("avg3", 3)),
            (("sep3", 1), ("id", 1)),
            (("id", 0), ("avg3", 1)),
        ),
        (4, 5, 6),
    ),
    Cell(
        (
            (("avg3", 0), ("sep3", 1)),
            (("max3", 0), ("sep7", 2)),
            (("sep7", 0), ("avg3", 1)),
            (("max3", 0), ("max3", 1)),
            (("sep7", 0), ("sep3", 5)),
        ),
        (3, 4, 6),
    ),
)
"""Real and others, 2019, figure 2; `sep7` stands for its convolution 1x7 then 7x1 too."""


class CellsSize(NamedTuple):
    """Normal cells in each stage, channels of the first stage, the side of the image."""

    cells: int
    channels: int
    side: int


def cells(style: Style, size: CellsSize, seed: int) -> Model:
    """Make three stages. Channels double where the side is halved."""
    net, channels = Net(seed), size.channels
    image = net.value(3, size.side, size.side)
    before = last = net.convolve(image, 3 * channels, 3, 1, LINEAR)
    for stage in range(STAGES):
        if stage:
            channels *= 2
            before, last = last, add_cell(net, style.reduction, before, last, channels, 2)
        for _ in range(size.cells):
            before, last = last, add_cell(net, style.normal, before, last, channels)
    return classified(net, image, net.combine([last], after=RELU), seed)


def add_cell(
    net: Net, cell: Cell, before: Value, last: Value, channels: int, stride: int = 1
) -> Value:
    """Add one cell. Its inputs are brought to its channels and to the side of `last`."""
    side = last.shape[1] // stride
    whole = net.value(len(cell.joined) * channels, side, side)
    places = {
        state: net.part(whole, number * channels, channels)
        for number, state in enumerate(cell.joined)
    }
    states = [_fitted(net, before, last, channels, places.get(0))]
    states.append(linear(net, last, channels, True, out=places.get(1)))
    for number, pair in enumerate(cell.pairs, 2):
        both = [
            _operation(net, name, states[of], channels, stride if of < 2 else 1)
            for name, of in pair
        ]  # fmt: skip
        states.append(net.combine(both, out=places.get(number)))
    return whole


def _fitted(net: Net, before: Value, last: Value, channels: int, out: Value | None) -> Value:
    """Fit the older input of a cell. Behind a reduction its side is halved: half of the channels
    come from every second pixel, the others from the pixels between."""
    if before.shape[1] == last.shape[1]:
        return linear(net, before, channels, True, out=out)
    out = out or net.value(channels, *last.shape[1:])
    half, inputs = channels // 2, before.shape[0]
    for number, pad in enumerate((0, -1)):
        weights = net.weights(half // 4, inputs, 4, inputs=inputs, gain=1.0)
        net.convolve(
            before, half, 1, 2, LINEAR, before=True, pad=pad, weights=weights,
            out=net.part(out, number * half, half),
        )  # fmt: skip
    return out


def _operation(net: Net, name: str, x: Value, channels: int, stride: int) -> Value:
    if name == "id":
        return x
    size = int(name[-1])
    if name.startswith("sep"):
        return separable(net, separable(net, x, channels, size, stride), channels, size)
    return net.pool(x, size, stride, MAXIMUM if name.startswith("max") else AVERAGE)
