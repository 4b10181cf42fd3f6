"""Arithmetic on rectangles of bytes: whether two spans meet, and where.

Input: strides and offsets in bytes, or spans. Output: spans and truth values. `overlap`, `covers`
and `merged` are the core's (`_core/hazards/span.hpp`); emu/reference/ranges.py is their model.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import core
from .records import EVERYTHING, Span

Rectangle = tuple[int, int, int, int]
"""Start, pitch, rows and width, without a base."""

overlap, covers, merged = core.native.overlap, core.native.covers, core.native.merged


def meet(a: Span, b: Span) -> bool:
    """Tell whether launches that touch these bytes are ordered, if one of them writes."""
    return EVERYTHING in (a.base, b.base) or (a.base == b.base and overlap(a, b))


def intervals(span: Span, most: int = 65536) -> list[tuple[int, int]]:
    """Return the rows of a span as (start, end). With more rows than `most`, return its hull."""
    if span.rows > most:
        return [(span.start, span.end)]
    return [
        (span.start + row * span.pitch, span.start + row * span.pitch + span.width)
        for row in range(span.rows)
    ]


def shared_bytes(a: Span, b: Span) -> tuple[int, int] | None:
    """Return the first interval of bytes that both contain, or None."""
    for start, end in intervals(a):
        for other_start, other_end in intervals(b):
            low, high = max(start, other_start), min(end, other_end)
            if low < high:
                return low, high
    return None


def rectangle(first: int, last: int, width: int, steps: Sequence[tuple[int, int]]) -> Rectangle:
    """Return the rectangle of runs of `width` bytes that begin at sums of steps `(distance,
    count)`. They lie from `first` on and end at `last`. Return their hull if one rectangle does not
    do."""
    pitch, rows = width, 1
    for step, count in sorted(steps):
        if rows == 1 and step <= width:
            width += step * (count - 1)
            pitch = width
        elif rows == 1:
            pitch, rows = step, count
        elif step % pitch == 0 and step // pitch <= rows:
            rows += step // pitch * (count - 1)
        else:
            return first, last - first, 1, last - first
    return first, pitch, rows, width
