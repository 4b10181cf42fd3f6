"""Intervals of time: how many are open, and rows in which none covers another.

In: starts and ends, of one clock. Out: numbers and lists. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def in_flight(intervals: Sequence[tuple[int, int]]) -> float:
    """How many of the intervals are open on average, over the time in which any is: summed
    durations over their union."""
    covered = 0
    reached: int | None = None
    for start, end in sorted(intervals):
        if reached is None or start >= reached:
            covered += end - start
            reached = end
        elif end > reached:
            covered += end - reached
            reached = end
    return sum(end - start for start, end in intervals) / covered if covered else 0.0


def packed(ordered: Iterable[T], interval: Callable[[T], tuple[int, int]]) -> list[list[T]]:
    """Items by row, as few rows as keep them from covering one another. They come in the order of
    their starts."""
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
