"""Bands: a launch cut into runs of its groups, and the groups of each run.

Input: the numbers of groups of a launch and how to cut them. Output: a box of groups for each band.
Pure.

A band is a part of a launch that could be a task of its own. Bands of one launch are never ordered
among each other, since OpenCL promises nothing about the order of groups. Bands of different
launches are ordered by their own bytes. So the first bands of a consumer can begin while the last
ones of its producer run.

Invariant: the bands of a cut are disjoint and have all groups of the launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from ..errors import UsageError

Groups = tuple[tuple[int, int], ...]
"""For each axis: the first group that runs, and the one behind the last."""

MOST_BANDS = 1024
"""Bands of a launch at most: hazards know edges only so far back."""


def tiles(counts: Sequence[int], pieces: Sequence[int]) -> list[Groups]:
    """Cut each axis into a number of pieces of nearly equal length.

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


def run_length(counts: Sequence[int], bands: int) -> int:
    """Return how many groups in a row make a band, for at most `bands` bands of one length.

    The slowest axis is cut first, since kernels commonly give it the rows of their output. A faster
    axis is cut only if the slower ones have fewer groups than there should be bands. A band is some
    whole rows of groups, or one of the equal parts of a row, so that it is a box of groups.

    >>> run_length((4, 6), 3), run_length((4, 2), 4), run_length((10,), 4)
    (8, 2, 3)
    """
    length, left = prod(counts), bands
    for axis in reversed(range(len(counts))):
        length //= counts[axis]
        if left < counts[axis]:
            if length * counts[axis] == prod(counts):  # nothing is cut yet
                return length * -(-counts[axis] // left)
            equal = max(n for n in range(1, left + 1) if counts[axis] % n == 0)
            return length * (counts[axis] // equal)
        left //= counts[axis]
    return 1


def box_of(counts: Sequence[int], first: int, behind: int) -> Groups:
    """Return the smallest box with all groups of a run, in the order in which groups are numbered.

    >>> box_of((4, 6), 8, 16), box_of((4, 6), 1, 3), box_of((4, 6), 3, 5)
    (((0, 4), (2, 4)), ((1, 3), (0, 1)), ((0, 4), (0, 2)))
    """
    box: list[tuple[int, int]] = []
    last = behind - 1
    above = prod(counts)
    for count in reversed(counts):
        above //= count
        low, high = first // above, last // above
        box.append((low, high + 1))
        if low != high:
            box += [(0, n) for n in reversed(counts[: len(counts) - len(box)])]
            break
        first, last = first - low * above, last - high * above
    return tuple(reversed(box))
