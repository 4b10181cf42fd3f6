"""Ranges: the closed forms against sets of bytes, strided views against NumPy's own addresses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acs_cl.core import native
from acs_cl.emu.reference import ranges
from acs_cl.ranges import (
    Rows,
    covers,
    first_shared,
    intervals,
    overlap,
    rows_of,
    shared_bytes,
    without,
)
from acs_cl.records import Span

MANY = settings(max_examples=400, deadline=None)
FEWER = settings(max_examples=200, deadline=None)


def bytes_of(span: Span) -> set[int]:
    """The bytes of a span, one by one: what all closed forms are measured against."""
    rows = (span.start + row * span.pitch for row in range(span.rows))
    return {start + byte for start in rows for byte in range(span.width)}


@st.composite
def spans(draw: st.DrawFn, pitch: int | None = None) -> Span:
    """Small rectangles, so that they often meet; rows never overlap one another."""
    start = draw(st.integers(0, 40))
    rows = draw(st.integers(1, 6))
    if rows == 1:
        width = draw(st.integers(1, 30))
        return Span(1, start, width, 1, width)
    pitch = pitch or draw(st.integers(1, 12))
    return Span(1, start, pitch, rows, draw(st.integers(1, pitch)))


@st.composite
def pairs_of_equal_pitch(draw: st.DrawFn) -> tuple[Span, Span]:
    pitch = draw(st.integers(1, 12))
    return draw(spans(pitch)), draw(spans(pitch))


@MANY
@given(spans(), spans())
def test_overlap_is_exactly_a_shared_byte(a: Span, b: Span) -> None:
    assert overlap(a, b) == ranges.overlap(a, b) == bool(bytes_of(a) & bytes_of(b))
    assert overlap(a, b) == overlap(b, a)


@MANY
@given(pairs_of_equal_pitch())
def test_overlap_of_equal_pitches_is_exact(pair: tuple[Span, Span]) -> None:
    a, b = pair
    assert overlap(a, b) == bool(bytes_of(a) & bytes_of(b))


@MANY
@given(spans(), spans())
def test_covers_never_says_yes_wrongly(a: Span, b: Span) -> None:
    assert covers(a, b) == ranges.covers(a, b)
    if covers(a, b):
        assert bytes_of(a) >= bytes_of(b)


@MANY
@given(pairs_of_equal_pitch())
def test_covers_of_equal_pitches_misses_only_merged_rows(pair: tuple[Span, Span]) -> None:
    a, b = pair
    if a.rows == 1 or a.width < a.pitch:
        assert covers(a, b) == (bytes_of(a) >= bytes_of(b))


@MANY
@given(spans())
def test_a_span_covers_and_meets_itself(a: Span) -> None:
    assert covers(a, a)
    assert overlap(a, a)
    assert shared_bytes(a, a) == intervals(a)[0]


@MANY
@given(spans(), spans())
def test_shared_bytes_is_a_real_interval_of_both(a: Span, b: Span) -> None:
    common = bytes_of(a) & bytes_of(b)
    shared = shared_bytes(a, b)
    if shared is None:
        assert not common
    else:
        low, high = shared
        assert low < high
        assert set(range(low, high)) <= common


@FEWER
@given(spans())
def test_intervals_are_the_rows(a: Span) -> None:
    assert {byte for low, high in intervals(a) for byte in range(low, high)} == bytes_of(a)
    assert a.nbytes == len(bytes_of(a))
    assert a.end == max(bytes_of(a)) + 1


@pytest.mark.parametrize("rows", [3, 70_000])
def test_rows_are_never_their_hull_however_many_there_are(rows: int) -> None:
    even, odd = Span(1, 0, 8, rows, 4), Span(1, 4, 8, rows, 4)
    assert len(intervals(even)) == rows
    assert shared_bytes(even, odd) is None
    last = (even.end - 2, even.end)
    assert shared_bytes(even, Span(1, last[0], 4, 1, 4)) == last


@MANY
@given(st.lists(spans(), min_size=1, max_size=4), st.lists(spans(), min_size=1, max_size=4))
def test_bytes_without_others_are_exact(given: list[Span], taken: list[Span]) -> None:
    rows, others = rows_of(given), rows_of(taken)
    assert bytes_of_rows(rows) == set().union(*map(bytes_of, given))
    left, source = without(rows, others)
    assert bytes_of_rows(left) == bytes_of_rows(rows) - bytes_of_rows(others)
    for low, high, index in zip(*left, source, strict=True):
        assert rows.lows[index] <= low < high <= rows.highs[index]
    first = first_shared(taken[0], rows)
    shared = [bool(bytes_of_rows(Rows(*map(np.atleast_1d, row))) & bytes_of(taken[0]))
              for row in zip(*rows, strict=True)]  # fmt: skip
    assert first == (shared.index(True) if any(shared) else None)


def bytes_of_rows(rows: Rows) -> set[int]:
    """The bytes of rows, which are in order and do not overlap."""
    assert (rows.lows < rows.highs).all()
    assert (rows.highs[:-1] <= rows.lows[1:]).all()
    return {byte for low, high in zip(*rows, strict=True) for byte in range(low, high)}


@pytest.mark.parametrize("rows", [ranges.EXACT_ROWS, ranges.EXACT_ROWS + 1])
def test_beyond_exact_rows_different_pitches_meet_by_hull(rows: int) -> None:
    even, odd = Span(1, 0, 4, rows, 1), Span(1, 1, 2, 2 * rows, 1)
    assert overlap(even, odd) == ranges.overlap(even, odd) == (rows > ranges.EXACT_ROWS)


@st.composite
def views(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """A NumPy array of bytes and a view of it, made by slicing, transposing and new axes."""
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    itemsize = draw(st.sampled_from((1, 2, 3, 4, 8)))
    base = np.zeros(shape, dtype=f"V{itemsize}")
    view = base
    index = []
    for length in shape:
        kind = draw(st.sampled_from(("all", "one", "slice", "reverse")))
        if kind == "all":
            index.append(slice(None))
        elif kind == "one":
            position = draw(st.integers(0, length - 1))
            index.append(slice(position, position + 1))
        else:
            start = draw(st.integers(0, length - 1))
            stop = draw(st.integers(start, length))
            step = draw(st.integers(1, 3))
            index.append(
                slice(start, stop, step)
                if kind == "slice"
                else slice(stop - 1 if stop else None, start - 1 if start else None, -step)
            )
    view = base[tuple(index)]
    axes = draw(st.permutations(range(view.ndim)))
    return base, view.transpose(axes)


def addresses(base: np.ndarray, view: np.ndarray) -> set[int]:
    """Byte offsets that a view touches, from NumPy's own arithmetic."""
    offset = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    found = set()
    for index in np.ndindex(*view.shape):
        start = offset + sum(i * s for i, s in zip(index, view.strides, strict=True))
        found |= set(range(start, start + view.dtype.itemsize))
    return found


def spans_as_bytes(found: tuple[Span, ...]) -> set[int]:
    return {byte for span in found for byte in bytes_of(span)}


def spans_in(base: np.ndarray, view: np.ndarray) -> tuple[Span, ...]:
    offset = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return native.spans_of_view(7, offset, view.shape, view.strides, view.itemsize)


@MANY
@given(views())
def test_spans_of_a_view_are_the_bytes_numpy_touches(pair: tuple[np.ndarray, np.ndarray]) -> None:
    base, view = pair
    found = spans_in(base, view)
    touched = addresses(base, view)
    assert spans_as_bytes(found) >= touched
    assert all(span.base == 7 for span in found)
    assert all(span.rows == 1 or span.width <= span.pitch for span in found)
    if len(found) > 1 or not touched:  # never a hull then
        assert spans_as_bytes(found) == touched
    elif spans_as_bytes(found) != touched:
        # a hull is given only where rectangles would be too many
        lengths = [n for n in view.shape if n > 1]
        assert np.prod(lengths) > 16 * min(lengths)


@FEWER
@given(views())
def test_spans_of_a_view_do_not_share_bytes(pair: tuple[np.ndarray, np.ndarray]) -> None:
    found = spans_in(*pair)
    assert sum(span.nbytes for span in found) == len(spans_as_bytes(found))


def test_columns_and_tiles_of_a_matrix_are_one_exact_rectangle_each() -> None:
    matrix = np.zeros((64, 32), np.float32)
    for view in (matrix[:, 3], matrix[8:16, 4:12], matrix[5], matrix[:], matrix[::2, 1:3]):
        found = spans_in(matrix, view)
        assert len(found) == 1
        assert spans_as_bytes(found) == addresses(matrix, view)
    columns = [spans_in(matrix, matrix[:, i])[0] for i in range(32)]
    assert not any(overlap(a, b) for a in columns for b in columns if a is not b)


def test_a_repeated_view_touches_its_bytes_once() -> None:
    found = native.spans_of_view(1, 8, (5, 3), (0, 4), 4)
    assert found == (Span(1, 8, 12, 1, 12),)


def test_an_empty_view_touches_nothing() -> None:
    assert native.spans_of_view(1, 0, (0, 4), (16, 4), 4) == ()
    assert native.spans_of_view(1, 0, (4,), (0,), 0) == ()


@FEWER
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(-9, 9)), min_size=1, max_size=3),
    st.sampled_from((1, 2, 4)),
)
def test_spans_of_any_strides_cover_every_byte(
    dimensions: list[tuple[int, int]], itemsize: int
) -> None:
    shape = [length for length, _ in dimensions]
    strides = [stride for _, stride in dimensions]
    found = spans_as_bytes(native.spans_of_view(1, 200, shape, strides, itemsize))
    for index in np.ndindex(*shape):
        start = 200 + sum(i * s for i, s in zip(index, strides, strict=True))
        assert set(range(start, start + itemsize)) <= found
