"""Intervals of time: how many are open, and rows in which none covers another.

Input: starts and ends, of one clock. Output: numbers and lists. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")

Intervals = Sequence[tuple[int, int]]


def in_flight(intervals: Intervals) -> float:
    """Return how many intervals are open on average while any is: summed durations over their
    union."""
    covered = length(union(intervals))
    return length(intervals) / covered if covered else 0.0


def packed(ordered: Iterable[T], interval: Callable[[T], tuple[int, int]]) -> list[list[T]]:
    """Pack items into the fewest rows in which none covers another. They come in the order of their
    starts."""
    rows: list[list[T]] = []
    ends: list[int] = []
    for item in ordered:
        start, end = interval(item)
        free = next((number for number, before in enumerate(ends) if before <= start), None)
        if free is None:
            rows.append([item])
            ends.append(end)
        else:
            rows[free].append(item)
            ends[free] = end
    return rows


def union(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join intervals that touch, in order.

    >>> union([(5, 7), (0, 3), (2, 4), (6, 6)])
    [(0, 4), (5, 7)]
    """
    found: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            if end > found[-1][1]:
                found[-1] = found[-1][0], end
        elif end > start:
            found.append((start, end))
    return found


def single(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return when exactly one of the intervals is open.

    >>> single([(0, 5), (3, 8), (10, 12)])
    [(0, 3), (5, 8), (10, 12)]
    """
    ends = sorted(
        place for start, end in intervals if end > start for place in ((start, 1), (end, -1))
    )
    found: list[tuple[int, int]] = []
    open_ = 0
    for (at, change), (then, _) in pairwise(ends):
        open_ += change
        if open_ == 1 and then > at:
            found.append((at, then))
    return union(found)


def minus(ours: Intervals, others: Intervals) -> list[tuple[int, int]]:
    """Return our time without the others' time. Both are unions.

    >>> minus([(0, 10)], [(2, 3), (5, 20)])
    [(0, 2), (3, 5)]
    """
    found = []
    at = 0
    for start, end in ours:
        while at < len(others) and others[at][1] <= start:
            at += 1
        look = at
        while look < len(others) and others[look][0] < end:
            if others[look][0] > start:
                found.append((start, others[look][0]))
            start = max(start, others[look][1])
            look += 1
        if start < end:
            found.append((start, end))
    return found


def within(ours: Intervals, others: Intervals) -> list[tuple[int, int]]:
    """Return the time in both. Both are unions.

    >>> within([(0, 10)], [(2, 3), (5, 20)])
    [(2, 3), (5, 10)]
    """
    return minus(ours, minus(ours, others))


def length(intervals: Intervals) -> int:
    """Return the total length."""
    return sum(end - start for start, end in intervals)
