"""Arithmetic on rectangles of bytes: whether two spans meet, and where.

Input: strides and offsets in bytes, or spans. Output: spans and truth values. `overlap`, `covers`
and `merged` are the core's (`_core/hazards/span.hpp`); emu/reference/ranges.py is their model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from . import core
from .records import EVERYTHING, NamedTuple, Span

Rectangle = tuple[int, int, int, int]
"""Start, pitch, rows and width, without a base."""

overlap, covers, merged = core.native.overlap, core.native.covers, core.native.merged


def meet(a: Span, b: Span) -> bool:
    """Tell whether launches that touch these bytes are ordered, if one of them writes."""
    return EVERYTHING in (a.base, b.base) or (a.base == b.base and overlap(a, b))


def overlapping(some: Iterable[Span], others: Collection[Span]) -> bool:
    """Tell whether spans of the one kind share bytes of a base with spans of the other."""
    return any(a.base == b.base and overlap(a, b) for a in some for b in others)


def intervals(span: Span) -> list[tuple[int, int]]:
    """Return all rows of a span as (start, end): exactly its bytes, however many rows it has."""
    return [
        (span.start + row * span.pitch, span.start + row * span.pitch + span.width)
        for row in range(span.rows)
    ]


def shared_bytes(a: Span, b: Span) -> tuple[int, int] | None:
    """Return the first interval of bytes that both contain, or None."""
    low = max(a.start, b.start)
    while True:
        one, other = _row_behind(a, low), _row_behind(b, low)
        if one is None or other is None:
            return None
        low, high = max(one[0], other[0]), min(one[1], other[1])
        if low < high:
            return low, high


def _row_behind(span: Span, place: int) -> tuple[int, int] | None:
    """Return the first row of a span that ends behind a place."""
    row = max(0, (place - span.start - span.width) // max(1, span.pitch) + 1)
    if row >= span.rows:
        return None
    start = span.start + row * span.pitch
    return start, start + span.width


Ints = npt.NDArray[np.int64]


class Rows(NamedTuple):
    """Intervals of bytes of one base, exact, in order and without overlaps. Millions of them are
    handled at once, where lists of pairs would take seconds."""

    lows: Ints
    highs: Ints


def rows_of(spans: Sequence[Span]) -> Rows:
    """Return the bytes of spans of one base. There is at least one span."""
    lows = np.concatenate(
        [span.start + span.pitch * np.arange(span.rows, dtype=np.int64) for span in spans]
    )
    highs = lows + np.repeat([span.width for span in spans], [span.rows for span in spans])
    if len(spans) == 1:
        return Rows(lows, highs)
    order = np.argsort(lows, kind="stable")
    lows, ends = lows[order], np.maximum.accumulate(highs[order])
    first = np.append(True, lows[1:] > ends[:-1])
    last = np.append(first[1:], True)
    return Rows(lows[first], ends[last])


def without(rows: Rows, taken: Rows) -> tuple[Rows, Ints]:
    """Return the bytes of `rows` that are not in `taken`, and for each interval of the result the
    one of `rows` that it comes from."""
    ends = np.iinfo(np.int64)
    gaps = Rows(np.append(ends.min, taken.highs), np.append(taken.lows, ends.max))
    first = np.searchsorted(gaps.highs, rows.lows, side="right")
    counts = np.searchsorted(gaps.lows, rows.highs, side="left") - first
    source = np.repeat(np.arange(len(counts)), counts)
    gap = np.arange(len(source)) + np.repeat(first - np.cumsum(counts) + counts, counts)
    lows = np.maximum(rows.lows[source], gaps.lows[gap])
    highs = np.minimum(rows.highs[source], gaps.highs[gap])
    some = lows < highs
    return Rows(lows[some], highs[some]), source[some]


def first_shared(span: Span, rows: Rows) -> int | None:
    """Return the first of `rows` that has bytes of a span, or None."""
    row = np.maximum(0, (rows.lows - span.start - span.width) // max(1, span.pitch) + 1)
    shared = (row < span.rows) & (span.start + row * span.pitch < rows.highs)
    return int(np.argmax(shared)) if shared.any() else None


def exact_rectangle(first: int, width: int, steps: Sequence[tuple[int, int]]) -> Rectangle | None:
    """Return the rectangle of runs of `width` bytes that begin at `first` plus sums of steps
    `(distance, count)`. None: one rectangle does not do."""
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
            return None
    return first, pitch, rows, width
