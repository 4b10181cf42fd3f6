"""Bands: a launch cut into runs of its groups, and what each run may touch.

In: the numbers of groups of a launch and how to cut them. Out: a box of groups for each band, and
its footprint. Pure.

A band is a part of a launch that could be a task of its own: bands of one launch are never ordered
among each other, since OpenCL promises nothing about the order of groups. Bands of different
launches are ordered by their own bytes, so that the first bands of a consumer can begin while the
last ones of its producer run.

Invariant: the bands of a cut are disjoint and are all groups of the launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from ..errors import UsageError
from .reach import Groups


def group_counts(global_size: Sequence[int], local_size: Sequence[int]) -> tuple[int, ...]:
    """Count the groups of a launch on each axis."""
    return tuple(-(-n // each) for n, each in zip(global_size, local_size, strict=True))


def rows(counts: Sequence[int], bands: int) -> list[Groups]:
    """Cut into at most `bands` runs of groups, in the order in which groups are numbered.

    The slowest axis is cut first, since kernels commonly give it the rows of what they write. A
    faster axis is cut only where the slower ones have fewer groups than there should be bands.

    >>> rows((4, 6), 3)
    [((0, 4), (0, 2)), ((0, 4), (2, 4)), ((0, 4), (4, 6))]
    >>> rows((4, 2), 4)
    [((0, 2), (0, 1)), ((2, 4), (0, 1)), ((0, 2), (1, 2)), ((2, 4), (1, 2))]
    """
    if bands < 1:
        raise UsageError(f"a launch is cut into 1 band or more, got {bands}")
    pieces = [1] * len(counts)
    left = bands
    for axis in reversed(range(len(counts))):
        pieces[axis] = min(counts[axis], left)
        left //= max(1, pieces[axis])
        if pieces[axis] < counts[axis]:
            break
    return tiles(counts, pieces)


def tiles(counts: Sequence[int], pieces: Sequence[int]) -> list[Groups]:
    """Cut each axis into so many pieces of nearly equal length.

    >>> tiles((5, 2), (2, 1))
    [((0, 3), (0, 2)), ((3, 5), (0, 2))]
    """
    fits = len(pieces) == len(counts)
    if not fits or any(not 1 <= n <= count for n, count in zip(pieces, counts, strict=True)):
        raise UsageError(f"{tuple(counts)} groups cannot be cut into {tuple(pieces)} pieces")
    axes = [
        [(-(-count * at // many), -(-count * (at + 1) // many)) for at in range(many)]
        for count, many in zip(counts, pieces, strict=True)
    ]
    return [tuple(reversed(box)) for box in product(*reversed(axes))]


def group_count(groups: Groups) -> int:
    """Count the groups of a band."""
    return prod(behind - first for first, behind in groups)
