"""Arithmetic on rectangles of bytes: strided views to spans, and do two spans meet.

In: shapes, strides and offsets in bytes, or spans. Out: spans and truth values. Everything is
closed form or a short loop over rows. `overlap` never says no when the spans share a byte; it is
exact unless both have many rows and different pitches (then it looks at `EXACT_ROWS` rows, else at
hulls).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from .records import Span, interval

Rectangle = tuple[int, int, int, int]
"""Start, pitch, rows and width, of whatever base."""

EXACT_ROWS = 4096
"""Rows compared one by one when two pitches differ; beyond that the hulls decide."""

MOST_APART = 64
"""Spans of one base that `merged` keeps apart; beyond that their hull stands for them."""


def overlap(a: Span, b: Span) -> bool:
    """Whether the two share a byte. `a` and `b` are of the same base."""
    if a.start >= b.end or b.start >= a.end:
        return False
    if a.rows == 1 and b.rows == 1:
        return True
    if a.rows == 1 or b.rows == 1 or a.pitch == b.pitch:
        return _meet(a, b)
    if a.rows > b.rows:
        a, b = b, a
    if a.rows > EXACT_ROWS:
        return True
    return any(
        _meet(interval(a.base, a.start + row * a.pitch, a.width), b) for row in range(a.rows)
    )


def _meet(a: Span, b: Span) -> bool:
    """Two rectangles of one pitch, or of which one has a single row.

    Rows i of a and j of b meet where -b.width < d - k * pitch < a.width, with d = b.start - a.start
    and k = i - j. So ask whether an integer k lies in both intervals.
    """
    pitch = a.pitch if a.rows > 1 else b.pitch
    distance = b.start - a.start
    least = max((distance - a.width) // pitch + 1, 1 - b.rows)
    most = min(-(-(distance + b.width) // pitch) - 1, a.rows - 1)
    return least <= most


def covers(a: Span, b: Span) -> bool:
    """Whether every byte of `b` is in `a`. May say no for exotic pairs, never a wrong yes."""
    if a.start > b.start or a.end < b.end:
        return False
    if a.rows == 1:
        return True
    if b.rows == 1:
        return (b.start - a.start) % a.pitch + b.width <= a.width
    if a.pitch != b.pitch:
        return False
    return (b.start - a.start) % a.pitch + b.width <= a.width


def intervals(span: Span, most: int = 65536) -> list[tuple[int, int]]:
    """The rows of a span as (start, end); its hull where there are more rows than `most`."""
    if span.rows > most:
        return [(span.start, span.end)]
    return [
        (span.start + row * span.pitch, span.start + row * span.pitch + span.width)
        for row in range(span.rows)
    ]


def shared_bytes(a: Span, b: Span) -> tuple[int, int] | None:
    """The first interval of bytes that both contain, or None."""
    for start, end in intervals(a):
        for other_start, other_end in intervals(b):
            low, high = max(start, other_start), min(end, other_end)
            if low < high:
                return low, high
    return None


def rectangle(first: int, last: int, width: int, steps: Sequence[tuple[int, int]]) -> Rectangle:
    """The rectangle that runs of `width` cover, which lie at all sums of some of the steps
    `(distance, count)` from `first` on and end at `last`; their hull where it takes more."""
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


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same bytes in fewer spans; the hull of a base where they are many."""
    by_base: dict[int, list[Span]] = {}
    for span in dict.fromkeys(spans):
        by_base.setdefault(span.base, []).append(span)
    return list(chain.from_iterable(map(_merged, by_base.values())))


def _merged(spans: list[Span]) -> list[Span]:
    """Of one base."""
    flat: list[Span] = []
    for span in sorted(span for span in spans if span.rows == 1):
        if flat and span.start <= flat[-1].end:
            base, start = span.base, flat[-1].start
            width = max(span.end, flat[-1].end) - start
            flat[-1] = interval(base, start, width)
        else:
            flat.append(span)
    whole = flat + [
        span
        for span in spans
        if span.rows > 1 and not (len(flat) <= MOST_APART and any(covers(f, span) for f in flat))
    ]
    if len(whole) <= MOST_APART:
        return whole
    start, end = min(span.start for span in whole), max(span.end for span in whole)
    return [interval(whole[0].base, start, end - start)]
