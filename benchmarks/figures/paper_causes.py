"""Causes of differences between our figures of the paper's workloads and the published ones.

Input: the document of `validation.paper`. Output: Markdown. For each figure that differs by more
than `NEAR`, the changes that bring it near. Each change applies to all workloads alike.

Invariant: every figure comes from the document alone. A cause is named only if a sweep over it
reaches the published figure, or has it between two neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import mean
from typing import Any, NamedTuple

from acs_cl.benchmarks.figures.markdown import table
from acs_cl.benchmarks.peers.published import FAMILIES, OCCUPANCY

NEAR = 0.2
"""A difference to a published speed-up that needs no explanation."""


class Cause(NamedTuple):
    """A possible difference, and the sweeps over it."""

    name: str
    axes: tuple[str, ...]
    why: str


WIDER, SIMULATED = "kernels wider", "launches of Accel-Sim, kernels wider"
CAUSES = (
    Cause(
        "longer kernels",
        ("device slower", "slower, launch 0.5 us"),
        "Ours are short: sizes of batches, layers and channels are ours. A device that is slower"
        " so many times has kernels that take so many times as long. *quick*: with a launch of"
        " 0.5 us.",
    ),
    Cause(
        "wider kernels",
        (WIDER,),
        "Ours have few groups: every kernel gets so many times as many. The published occupancy of"
        " the serial stream, in which no launch overlaps another, says how wide theirs are, without"
        " any speed-up: see below.",
    ),
    Cause(
        "Accel-Sim's launches",
        (SIMULATED,),
        "What a launch costs on the simulator of the paper: nothing on the host, 5,000 cycles on"
        " the device before each kernel, which overlap. Its serial stream pays them one after"
        " another; a window with several kernels in it does not. Kernels so many times wider.",
    ),
    Cause(
        "the host",
        ("launch", "synchronisation"),
        "The paper says 5 to 20 us for a launch with its synchronisation; we take 3 and 7.",
    ),
    Cause(
        "a node built",
        ("a node built",),
        "2.25 us here, by our own measurement; on another host 7 to 13 us were read, and in the"
        " paper building a graph is 47 % of the time on rigid bodies.",
    ),
    Cause(
        "the window",
        ("N", "N = M", "M", "threads"),
        "The paper leaves M and the number of threads open.",
    ),
)
SHORT = {"device slower": "", "launch": "launch", "synchronisation": "sync"}
SHORT |= {"slower, launch 0.5 us": "quick"}

EXPLAINED = """Every figure that differs by more than 0.2 from the published one, and what brings it
within that, and at least half-way, made for all workloads alike; *a to b* where two neighbours of a
sweep have the published figure between them. Of several values that do, the nearest is named."""

ON_WIDTH = """Occupancy of the published runs and of ours, means of a family, by how wide kernels
are made. No speed-up goes into this: the serial stream says that published kernels have some eight
to sixteen times as many groups as ours, on rigid bodies more."""


def render(document: Mapping[str, Any], off: Sequence[tuple[str, str, float, float]]) -> list[str]:
    """Return the parts of the section. `off`: workload, column, our figure, the published one."""
    legend = [f"- **{cause.name}**: {cause.why}" for cause in CAUSES]
    rows, lost = [], []
    for name, column, here, there in off:
        near = min(NEAR, abs(here - there) / 2)
        cells = [_cell(document, cause, name, column, there, near) for cause in CAUSES]
        rows.append([name, column, f"{here:.2f}", f"{there:.2f}", *cells])
        if not any(cells):
            lost.append(f"{column} of {name} ({_nearest(document, name, column, there)})")
    heads = ["workload", "", "ours", "published", *(cause.name for cause in CAUSES)]
    return [
        EXPLAINED,
        "\n".join(legend),
        table(heads, rows),
        _left(lost),
        ON_WIDTH,
        _widths(document),
    ]


def _left(lost: Sequence[str]) -> str:
    if not lost:
        return "None is left without a cause."
    return f"Not reached by any of these: {'; '.join(lost)}."


def _cell(
    document: Mapping[str, Any], cause: Cause, name: str, column: str, there: float, near: float
) -> str:
    """Return the value of a cause that comes near the published figure. Empty: none does."""
    found = [_reached(document, axis, name, column, there, near) for axis in cause.axes]
    return ", ".join(text for text in found if text)


def _reached(
    document: Mapping[str, Any], axis: str, name: str, column: str, there: float, near: float
) -> str:
    points = _points(document, axis, name, column)
    said = "" if len(_axes_of(axis)) == 1 else f"{SHORT.get(axis, axis)} ".lstrip()
    apart = [(abs(value - there), label, value) for label, value in points]
    off, label, value = min(apart, default=(near + 1, "", 0.0))
    if off <= near:
        return f"{said}{label} ({value:.2f})"
    for (label, value), (further, beyond) in pairwise(points):
        if min(value, beyond) < there < max(value, beyond):
            return f"{said}{label} to {further} ({value:.2f} to {beyond:.2f})"
    return ""


def _axes_of(axis: str) -> tuple[str, ...]:
    return next(cause.axes for cause in CAUSES if axis in cause.axes)


def _points(
    document: Mapping[str, Any], axis: str, name: str, column: str
) -> list[tuple[str, float]]:
    swept = document["sweeps"][axis]
    return [(label, value[name][column]) for label, value in swept.items() if column in value[name]]


def _nearest(document: Mapping[str, Any], name: str, column: str, there: float) -> str:
    points = [
        (abs(value - there), f"{axis} {label}", value)
        for axis in document["sweeps"]
        for label, value in _points(document, axis, name, column)
    ]
    _, label, value = min(points)
    return f"nearest: {label}, {value:.2f}"


def _widths(document: Mapping[str, Any]) -> str:
    """Return occupancy by the width of kernels, beside the published means."""
    rows = []
    for family, names in FAMILIES.items():
        there = OCCUPANCY[family]
        for column in there:
            cells = []
            for found in document["occupancy"][WIDER].values():
                here = [found[name][column] for name in names if name in found]
                cells.append(f"{mean(here):.0%}" if here else "")
            rows.append([f"{family}, {column}", f"{there[column]:.0%}", *cells])
    labels = list(document["occupancy"][WIDER])
    return table(["occupancy", "published", *labels], rows)
