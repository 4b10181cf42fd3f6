"""Spans in the core: numbers of 64 bits are enough, and what is no span is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acs_cl import core
from acs_cl.emu.reference import ranges
from acs_cl.records import Span

CORE = Path(__file__).resolve().parent.parent / "acs_cl" / "_core"
FARTHEST = 1 << 60
BASE = 7

near = st.integers(-64, 64)
far = st.sampled_from(
    [1 << 59, FARTHEST - 1, FARTHEST, FARTHEST + 1, 1 << 62, (1 << 63) - 1, 1 << 63]
)
places = st.one_of(near, far.map(int.__neg__), far)
sizes = st.one_of(st.integers(1, 64), far)
few = st.one_of(st.integers(1, 6), far)


@st.composite
def spans(draw: st.DrawFn) -> Span:
    rows, width = draw(few), draw(sizes)
    return Span(BASE, draw(places), width if rows == 1 else draw(sizes), rows, width)


def meets(first: Span, second: Span) -> bool:
    """Whether a launch that writes `second` follows one that wrote `first`."""
    hazards = core.native.Hazards()
    hazards.enter(1, [], [first])
    return 1 in hazards.enter(2, [], [second])


def is_near(span: Span) -> bool:
    return span.start >= -FARTHEST and span.end <= FARTHEST


@example(Span(BASE, 0, 1 << 63, 1, 1 << 63), Span(BASE, 1 << 62, 4, 3, 4))
@example(Span(BASE, FARTHEST - 4, 4, 1, 4), Span(BASE, -FARTHEST, 1, 1, 1))
@given(spans(), spans())
def test_no_span_is_too_large_for_the_core(first: Span, second: Span) -> None:
    found, expected = meets(first, second), ranges.overlap(first, second)
    assert found or not expected, "an overlap is lost"
    if is_near(first) and is_near(second):
        assert found == expected


@pytest.mark.parametrize(
    "span",
    [(BASE, 0, 0, 2, 4), (BASE, 0, -8, 2, 4), (BASE, 0, 4, 0, 4), (BASE, 0, 4, 1, -4)],
    ids=str,
)
def test_what_describes_no_bytes_is_refused(span: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected rows, a width, and a pitch above 0"):
        core.native.Hazards().enter(1, [], [span])


NOT_OF_THE_STANDARD = re.compile(
    r"\b(__(?:builtin|sync|atomic)_\w+|__u?int128|__(?:attribute|extension|typeof|asm)__"
    r"|__PRETTY_FUNCTION__|__declspec|_BitScan\w+|_mm_\w+|ssize_t|typeof|u?int128_t)\b"
    r"|<(?:unistd|pthread|dlfcn|sys/\w+|windows|intrin|x86intrin|immintrin)\.h>"
)
OF_ONE_SYSTEM = {"bits.hpp", "clock.hpp", "signals.cpp", "turns.cpp"}
"""Each has a branch for the others."""


def test_the_core_is_standard_cxx_but_in_four_files() -> None:
    """Every compiler has to take it, and only some of them are at hand."""
    strays = [
        f"{path.name}:{number}: {found[0]}"
        for path in sorted(CORE.rglob("*.[ch]pp"))
        if path.name not in OF_ONE_SYSTEM
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if (found := NOT_OF_THE_STANDARD.search(line))
    ]
    assert not strays, strays


@given(st.lists(st.builds(
    lambda base, start, rows, width, gap: Span(base, start, width + gap * (rows > 1), rows, width),
    st.integers(1, 3), st.integers(0, 400), st.integers(1, 3), st.integers(1, 8), st.integers(0, 9),
), max_size=200))  # fmt: skip
def test_the_core_merges_spans_as_python_does(made: list[Span]) -> None:
    assert set(core.native.merged(made)) == set(ranges.merged(made))
