"""Count what the kernels of the paper's workloads ask of a modelled device.

Input: the name of a kernel, its work-items, its arguments. Output: a `Work`: the floating-point
operations of the whole launch, and the dependent work of one work-item: `steps` of arithmetic and
`rounds` of loads.

Networks are counted from the source. Arguments give the lengths of loops. A multiply-add counts as
two operations and one step, sums side by side as one step. Loads of one iteration are one round,
and so are the loads of `UNROLLED` iterations of an innermost loop. Activations and edges of images
are left out.

Rigid bodies are counted by Oclgrind (`oclgrind --inst-counts`, preset `tiny`, unoptimised LLVM IR):
arithmetic, comparisons and selections on floats. An operation on a vector counts as one step,
because most are on vectors of three. Built-in functions count as in `BUILT_IN`. Rounds are counted
by hand.

Invariant: nothing here depends on a device or on published figures. A kernel without an entry is an
error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from acs_cl import UsageError

UNROLLED = 4
"""Iterations of an innermost loop whose loads a compiler lets overlap: the usual factor for loops
of unknown length."""
BUILT_IN = {
    "cross": 2, "dot": 3, "length": 11, "clamp": 2, "max": 1, "min": 1, "divide": 8, "sqrt": 8,
    "sin": 20, "cos": 20, "asin": 25, "atan2": 40, "hypot": 12,
}  # fmt: skip
"""Steps: the length of the usual code for each in single precision, which is an estimate."""
LANES = 3
"""Operations of a step of rigid bodies: vectors of three."""


class Work(NamedTuple):
    """Of a launch, and of one of its work-items."""

    flops: int
    steps: int
    rounds: int


class _Loop(NamedTuple):
    """What a kernel of networks does for each of its outputs."""

    outputs: int
    flops: int
    steps: int
    rounds: int


def work(kernel: str, items: int, args: Sequence[Any]) -> Work:
    """Of one launch; arrays among the arguments have a length.

    >>> work("dense", 64, [0, 0, 0, 0, 128, 10, 0, 1])
    Work(flops=2560, steps=128, rounds=32)
    """
    if kernel in RIGID:
        steps, rounds = RIGID[kernel]
        if kernel == "accumulate":
            table, parts = args[0], args[5]
            entries = -(-(len(table) - parts - 1) // 2 // parts)
            steps, rounds = steps + 2 * entries, rounds + 3 * entries
        return Work(LANES * steps * items, steps, rounds)
    if kernel not in NETWORKS:
        raise UsageError(f"nobody has counted what kernel {kernel} does")
    one = NETWORKS[kernel](args)
    turns = -(-one.outputs // items)
    return Work(one.flops * one.outputs, one.steps * turns, one.rounds * turns)


def _unrolled(length: int) -> int:
    return -(-length // UNROLLED)


def _convolve(args: Sequence[Any], pixels: int) -> _Loop:
    inputs, _, _, outputs, rows, columns, size = args[4:11]
    high, images = args[15], args[17]
    loop = inputs * high * size
    rounds = inputs * high * _unrolled(size)
    return _Loop(outputs // 4 * images * rows * columns // pixels, 8 * pixels * loop, loop, rounds)


def _pointwise(args: Sequence[Any], pixels: int) -> _Loop:
    inputs, area, outputs = args[4:7]
    steps = inputs if pixels > 1 else -(-inputs // 4)  # four sums at a time
    return _Loop(outputs // 4 * area // pixels, 8 * pixels * inputs, steps, _unrolled(inputs))


def _depthwise(args: Sequence[Any]) -> _Loop:
    channels, _, _, rows, columns, size = args[4:10]
    area = size * size
    outputs = channels * args[14] * rows * -(-columns // 4)
    return _Loop(outputs, 8 * area, area, size * _unrolled(size))


def _pool(args: Sequence[Any]) -> _Loop:
    channels, _, _, rows, columns, size = args[2:8]
    area = size * size
    return _Loop(channels * args[11] * rows * columns, 2 * area, area, size * _unrolled(size))


def _row(inputs: int, outputs: int, sums: int = 1, more: int = 0) -> _Loop:
    """Sum over `inputs`, side by side, and take some more steps."""
    return _Loop(outputs, 2 * sums * inputs, inputs + more, _unrolled(inputs) + bool(more))


def _each(outputs: int, steps: int, rounds: int) -> _Loop:
    return _Loop(outputs, 2 * steps, steps, rounds)


NETWORKS: Mapping[str, Callable[[Sequence[Any]], _Loop]] = {
    "convolve": lambda args: _convolve(args, 1),
    "convolve_four": lambda args: _convolve(args, 4),
    "pointwise": lambda args: _pointwise(args, 1),
    "pointwise_four": lambda args: _pointwise(args, 4),
    "depthwise": _depthwise,
    "pool": _pool,
    "combine": lambda args: _each(args[10], args[9], 1),
    "means": lambda args: _row(args[3], args[2]),
    "dense": lambda args: _row(args[4], args[5] * args[7]),
    "scale_channels": lambda args: _each(args[3] * args[4], 1, 1),
    "keep": lambda args: _each(args[2], 0, 1),
    "clear": lambda args: _each(args[1], 1, 0),
    "pick": lambda args: _each(args[5], 5 * args[6], 5 * _unrolled(args[6]) + 5),
    "mean_of_open": lambda args: _each(args[8], 5, 2),
    "decide": lambda args: _row(args[5], 1, 4, 60),
    "any_of": lambda args: _each(1, 3, 1),
    "join": lambda args: _each(args[7] * args[8] * args[9], 3, 2),
    "route": lambda args: _row(args[5], 1, 4, 40),
    "add_expert": lambda args: _each(args[4], 2, 2),
}

RIGID: Mapping[str, tuple[int, int]] = {
    "act": (24, 2),
    "judge": (24, 1),
    "begin_again": (1, 2),
    "near_plane": (28, 1),
    "near_pair": (67, 2),
    "joint_1": (296, 1),
    "joint_2": (296, 1),
    "joint_3": (296, 1),
    "actuator_1": (234, 1),
    "actuator_2": (237, 1),
    "actuator_3": (240, 1),
    "sphere_plane": (65, 1),
    "capsule_plane": (128, 1),
    "box_plane": (562, 1),
    "capsule_capsule": (200, 2),
    "accumulate": (8, 1),
    "integrate": (34, 1),
}
"""Steps and rounds. `accumulate` has more for each entry of its table: a slot, its flag, and what
lies there, one after another."""
