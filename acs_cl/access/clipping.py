"""Clipping: rectangles of bytes of an argument, as spans inside of its view.

In: the spans of a view, and rectangles from its first byte on. Out: spans. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ranges import Rectangle, covers
from ..records import EVERYTHING, Span, interval


def cut(spans: Sequence[Span], reached: Sequence[Rectangle] | None) -> list[Span]:
    """Of the bytes of an argument those that are reached, counted from its first byte."""
    if reached is None:
        return list(spans)
    if not reached or not spans:
        return []
    if len(spans) > 1 or spans[0].rows > 1 or spans[0].base == EVERYTHING:
        return list(spans)
    whole = spans[0]
    found: list[Span] = []
    for start, pitch, rows, width in reached:
        found += _clipped(whole, start, pitch, rows, width)
    if len(found) == 1 and covers(found[0], whole):
        return [whole]
    return found


def _clipped(whole: Span, start: int, pitch: int, rows: int, width: int) -> list[Span]:
    """A rectangle of bytes, without what is outside of the view."""
    limit = whole.width
    if rows == 1:
        low, high = max(start, 0), min(start + width, limit)
        return [interval(whole.base, whole.start + low, high - low)] if low < high else []
    if start < 0 or start + (rows - 1) * pitch + width > limit:
        first = max(0, -(start // pitch))  # rows that begin at 0 or later
        last = min(rows, (limit - width - start) // pitch + 1)  # and end in the view
        parts: list[Span] = []
        for row in {first - 1, last}:
            if 0 <= row < rows:
                parts += _clipped(whole, start + row * pitch, width, 1, width)
        if last > first:
            parts += _clipped(whole, start + first * pitch, pitch, last - first, width)
        return parts
    return [Span(whole.base, whole.start + start, pitch, rows, width)]
