"""Model whether spans of bytes meet: closed forms, or a short loop over rows.

Input: two spans of one base. Output: whether they share a byte, whether one is in the other.
`overlap` never says no when they share one. It is exact unless both have many rows and different
pitches: then it compares up to `EXACT_ROWS` rows, or else hulls. The core's functions are
`acs_cl.ranges`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from acs_cl.records import Span, interval

EXACT_ROWS = 4096
"""Rows compared one by one when two pitches differ; beyond that the hulls decide."""

MOST_APART = 64
"""Spans of one base that `merged` keeps apart; above, their hull replaces them."""


def overlap(a: Span, b: Span) -> bool:
    """Tell whether the two share a byte. `a` and `b` are of the same base."""
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
    """Compare two rectangles of one pitch, or with a single row in one of them.

    Rows i of a and j of b meet where -b.width < d - k * pitch < a.width, with d = b.start - a.start
    and k = i - j. So ask whether an integer k lies in both intervals.
    """
    pitch = a.pitch if a.rows > 1 else b.pitch
    distance = b.start - a.start
    least = max((distance - a.width) // pitch + 1, 1 - b.rows)
    most = min(-(-(distance + b.width) // pitch) - 1, a.rows - 1)
    return least <= most


def covers(a: Span, b: Span) -> bool:
    """Tell whether every byte of `b` is in `a`. May wrongly say no, never wrongly yes."""
    if a.start > b.start or a.end < b.end:
        return False
    if a.rows == 1:
        return True
    if b.rows == 1:
        return (b.start - a.start) % a.pitch + b.width <= a.width
    if a.pitch != b.pitch:
        return False
    return (b.start - a.start) % a.pitch + b.width <= a.width


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return the same bytes in fewer spans; the hull of a base with many spans."""
    by_base: dict[int, list[Span]] = {}
    for span in dict.fromkeys(spans):
        by_base.setdefault(span.base, []).append(span)
    return list(chain.from_iterable(map(_merged, by_base.values())))


def _merged(spans: list[Span]) -> list[Span]:
    """Merge the spans of one base."""
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
