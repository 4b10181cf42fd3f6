"""Hazards against brute force: every pair of launches compared byte by byte.

The model remembers the exact byte set of each live launch. What must hold after every entry: each
conflict is ordered by a path of edges, each edge is a conflict, no kept edge repeats what another
one already says. Launches retire in random legal order (nothing before its upstream).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import on_both, on_core

from acs_cl import core
from acs_cl.emu.reference.hazards import (
    ANY,
    RAW,
    REMEMBERED,
    REUSE,
    WAR,
    WAW,
    Hazards,
)
from acs_cl.errors import UsageError
from acs_cl.ranges import overlap
from acs_cl.records import EVERYTHING, Access, Span

Bytes = frozenset[tuple[int, int]]

ALL = Span(EVERYTHING, 0, 1, 1, 1)


def plain(base: int, start: int, width: int) -> Span:
    return Span(base, start, width, 1, width)


def bytes_of(spans: Iterable[Span]) -> Bytes:
    return frozenset(
        (span.base, span.start + row * span.pitch + byte)
        for span in spans
        for row in range(span.rows)
        for byte in range(span.width)
    )


class Entered(NamedTuple):
    """A launch as the model knows it. `after`: everything it waits for, directly or not."""

    number: int
    reads: Bytes
    writes: Bytes
    anything: bool
    reused: frozenset[int]
    after: frozenset[int]
    bases: frozenset[int]


class Model:
    """Feeds `Hazards` and checks each answer against byte sets."""

    def __init__(self, kind: type[Hazards]) -> None:
        self.hazards = kind()
        self.number = 0
        self.live: dict[int, Entered] = {}
        self.after: dict[int, frozenset[int]] = {}
        self.heirs: dict[int, frozenset[int]] = {}
        self.bases = [1, 2, 3]
        self.newest_base = 3

    def launch(self, reads: Sequence[Span], writes: Sequence[Span], gap: int = 0) -> dict[int, str]:
        self.number += 1 + gap
        number = self.number
        anything = ALL in (*reads, *writes)
        read, written = bytes_of(reads), bytes_of(writes)
        bases = frozenset(span.base for span in (*reads, *writes))
        reused = frozenset().union(*(self.heirs.get(base, frozenset()) for base in bases))
        kinds = {
            other.number: kinds
            for other in self.live.values()
            if (kinds := self.conflict(other, read, written, anything, reused))
        }
        edges = self.hazards.enter(number, reads, writes)
        for upstream, kind in edges.items():
            assert kind in kinds.get(upstream, ()), f"edge {number}->{upstream} {kind}: no conflict"
        after = frozenset(edges).union(*(self.after[upstream] for upstream in edges))
        missing = kinds.keys() - after
        assert not missing, f"launch {number} is not ordered after {missing}"
        for upstream in edges:
            if number - upstream <= REMEMBERED:
                repeated = [v for v in edges if upstream in self.after[v]]
                assert not repeated, f"edge {number}->{upstream} is implied by {repeated}"
        self.after[number] = after
        self.live[number] = Entered(number, read, written, anything, reused, after, bases)
        assert self.hazards.live == len(self.live)
        return edges

    @staticmethod
    def conflict(
        other: Entered, read: Bytes, written: Bytes, anything: bool, reused: frozenset[int]
    ) -> set[str]:
        kinds = set()
        if other.writes & read:
            kinds.add(RAW)
        if other.reads & written:
            kinds.add(WAR)
        if other.writes & written:
            kinds.add(WAW)
        if other.anything or anything:
            kinds.add(ANY)
        if other.number in reused:
            kinds.add(REUSE)
        return kinds

    def retire_one(self, choice: int) -> None:
        """One of the launches whose upstream has retired."""
        able = [n for n, entered in self.live.items() if not entered.after & self.live.keys()]
        if able:
            number = able[choice % len(able)]
            del self.live[number]
            self.hazards.retire(number)
            assert not self.hazards.is_live(number)

    def recycle(self, choice: int) -> None:
        """A base is dropped while launches may still use it; another one gets its memory."""
        base = self.bases[choice % len(self.bases)]
        users = self.hazards.users(base)
        really = {n for n, e in self.live.items() if base in e.bases or e.anything}
        really |= self.heirs.pop(base, frozenset()) & self.live.keys()
        waited = frozenset(users).union(*(self.after[user] for user in users))
        assert really <= waited, f"users of base {base}: {really - waited} are missing"
        assert set(users) <= really
        self.hazards.forget(base)
        self.newest_base += 1
        self.bases[self.bases.index(base)] = self.newest_base
        self.hazards.inherit(self.newest_base, users)
        self.heirs[self.newest_base] = frozenset(users)


@st.composite
def spans(draw: st.DrawFn) -> tuple[int, int, int, int, int]:
    """(which base, start, pitch, rows, width), small enough to meet often."""
    base = draw(st.integers(0, 2))
    start = draw(st.integers(0, 24))
    rows = draw(st.sampled_from((1, 1, 1, 2, 4)))
    if rows == 1:
        width = draw(st.sampled_from((1, 2, 4, 8, 8, 16, 32)))
        return base, start, width, 1, width
    pitch = draw(st.sampled_from((4, 4, 6, 8)))
    return base, start, pitch, rows, draw(st.integers(1, pitch))


accesses = st.tuples(st.lists(spans(), max_size=3), st.lists(spans(), max_size=2))
steps = st.one_of(
    st.tuples(st.just("launch"), accesses, st.sampled_from((0, 0, 0, 0, 1, 5))),
    st.tuples(st.just("launch"), accesses, st.just(0)),
    st.tuples(st.just("launch"), accesses, st.just(0)),
    st.tuples(st.just("retire"), st.integers(0, 30)),
    st.tuples(st.just("recycle"), st.integers(0, 2)),
    st.tuples(st.just("anything"), st.booleans()),
)


@on_both
@settings(max_examples=400, deadline=None)
@given(st.lists(steps, max_size=40))
def test_edges_are_brute_force_on_bytes(kind: type[Hazards], program: list[tuple]) -> None:
    model = Model(kind)
    for step in program:
        if step[0] == "launch":
            reads, writes = (
                [Span(model.bases[base], *rest) for base, *rest in side] for side in step[1]
            )
            model.launch(reads, writes, step[2])
        elif step[0] == "retire":
            model.retire_one(step[1])
        elif step[0] == "recycle":
            model.recycle(step[1])
        else:
            model.launch([ALL] if step[1] else [], [] if step[1] else [ALL])


@on_both
@pytest.mark.parametrize("seed", range(4))
def test_edges_stay_right_over_long_programs_and_sweeps(kind: type[Hazards], seed: int) -> None:
    rng = random.Random(seed)
    model = Model(kind)
    for _ in range(700):
        choice = rng.random()
        if choice < 0.5:
            base = rng.choice(model.bases)
            # many distinct spans, so that idle ones are swept away in between
            spans = [plain(base, rng.randrange(400), rng.randint(1, 12)) for _ in range(3)]
            gap = REMEMBERED + 7 if rng.random() < 0.01 else 0
            model.launch(spans[: rng.randint(0, 2)], spans[2:], gap)
        elif choice < 0.98 or rng.random() < 0.5:
            model.retire_one(rng.randrange(1 << 20))
        else:
            model.recycle(rng.randrange(3))
    assert model.hazards.spans < 1024, f"seed {seed}"


MATRICES = ((0, 64, 8), (64 * 8, 48, 6), (-77, 40, 9), (5, 64, 8), (300, 7, 30))
"""Where matrices begin, their pitches and rows: of one base, one over another, out of line."""

Rng = random.Random


def tile(rng: Rng) -> tuple[int, int, int, int]:
    """(start, pitch, rows, width): a part of a matrix, a row or some, a column, or what lies
    across the end of a row."""
    start, pitch, rows = rng.choice(MATRICES)
    row, column = rng.randrange(rows), rng.randrange(pitch)
    kind = rng.random()
    if kind < 0.4:
        width = min(rng.choice((1, 4, 8, 16)), pitch - column)
        return start + row * pitch + column, pitch, min(rng.choice((2, 4, 5)), rows - row), width
    if kind < 0.55:
        return start + row * pitch + column, pitch, 2, rng.randint(1, pitch + 3)
    width = rng.choice((1, 4, 16, pitch, 2 * pitch, 3 * pitch + 5))
    return start + row * pitch + (column if kind < 0.9 else 0), width, 1, width


@on_both
@pytest.mark.parametrize("seed", range(6))
def test_tiles_of_matrices_of_several_pitches_in_one_base(kind: type[Hazards], seed: int) -> None:
    rng = random.Random(seed)
    model = Model(kind)
    for _ in range(600):
        choice = rng.random()
        if choice < 0.55:
            base = rng.choice(model.bases)
            spans = [Span(base, *tile(rng)) for _ in range(4)]
            model.launch(spans[: rng.randint(0, 3)], spans[3:])
        elif choice < 0.97:
            model.retire_one(rng.randrange(1 << 20))
        elif choice < 0.99:
            model.recycle(rng.randrange(3))
        else:
            model.launch([], [ALL])


def wavefront(per_row: int, rows: int, side: int = 64) -> Iterator[tuple[list[Span], list[Span]]]:
    """Tiles of a matrix, diagonal by diagonal; each needs the row above, the column to its left
    and the corner between them."""
    pitch = 4 * (side * per_row + 1)
    for diagonal in range(rows + per_row - 1):
        for i in range(max(0, diagonal - per_row + 1), min(rows, diagonal + 1)):
            at = (1 + side * i) * pitch + 4 * (1 + side * (diagonal - i))
            corner, above = plain(1, at - pitch - 4, 4), plain(1, at - pitch, 4 * side)
            left, own = Span(1, at - 4, pitch, side, 4), Span(1, at, pitch, side, 4 * side)
            yield [above, left, corner, own], [own]


def test_a_tile_is_compared_with_few_however_many_a_row_has() -> None:
    compared = {}
    for per_row in (8, 32, 256):
        hazards = core.native.Hazards()
        for number, access in enumerate(wavefront(per_row, 1024 // per_row), 1):
            hazards.enter(number, *access)
        compared[per_row] = hazards.compared / number
    assert max(compared.values()) < 30, compared
    assert compared[256] <= 1.2 * compared[8], compared


def test_a_launch_on_a_whole_matrix_looks_at_the_tiles_in_use_only() -> None:
    hazards, whole = core.native.Hazards(), plain(1, 0, 64 * 1024)
    tiles = [
        Span(1, 4096 * row + 64 * column, 1024, 4, 64) for row in range(16) for column in range(16)
    ]
    hazards.enter(1, [], [whole])
    for number, tile in enumerate(tiles, 2):
        assert hazards.enter(number, [], [tile]) == {1: WAW}
    last = 1 + len(tiles)
    assert len(hazards.enter(last + 1, [whole], [])) == len(tiles)
    assert hazards.looks_at(whole) == len(tiles)
    for number in range(1, last + 2):
        hazards.retire(number)
    for number in range(last + 2, last + 8):
        hazards.enter(number, [whole], [])
        hazards.retire(number)
    assert hazards.looks_at(whole) == 0
    for number, tile in enumerate(tiles[:3], last + 8):
        hazards.enter(number, [], [tile])
    assert hazards.looks_at(whole) == 3
    assert hazards.enter(last + 11, [], [whole]) == dict.fromkeys(range(last + 8, last + 11), WAW)


@on_both
def test_a_wavefront_waits_for_its_neighbours_only(kind: type[Hazards]) -> None:
    hazards = kind()
    places = [(i, d - i) for d in range(11) for i in range(max(0, d - 5), min(6, d + 1))]
    for number, (access, (i, j)) in enumerate(zip(wavefront(6, 6), places, strict=True), 1):
        wanted = {(i - 1, j), (i, j - 1)} & set(places)
        assert set(hazards.enter(number, *access)) == {places.index(one) + 1 for one in wanted}


@on_both
def test_an_upstream_too_far_back_is_kept_rather_than_lost(kind: type[Hazards]) -> None:
    model = Model(kind)
    x, y = plain(1, 0, 4), plain(2, 0, 4)
    first = model.launch([], [x, y])
    assert not first
    model.launch([x], [], gap=2 * REMEMBERED)
    edges = model.launch([y], [x])
    assert set(edges) <= {1, model.number - 1}
    assert 1 in edges or 1 in model.after[model.number - 1]


@on_both
@pytest.mark.parametrize("gap", [REMEMBERED - 2, 20 * REMEMBERED, 1 << 40])
def test_a_launch_that_outlives_many_is_waited_for(kind: type[Hazards], gap: int) -> None:
    model = Model(kind)
    x, y, z = plain(1, 0, 4), plain(2, 0, 4), plain(3, 0, 4)
    model.launch([z], [x, y])
    assert set(model.launch([x], [], gap)) == {1}
    assert set(model.launch([y], [])) == {1}
    assert set(model.launch([], [z])) == {1}
    model.retire_one(0)
    assert not model.launch([x, y], [])


@on_both
def test_readers_of_a_whole_do_not_pile_up_while_its_parts_are_written(
    kind: type[Hazards],
) -> None:
    hazards, parts = kind(), [plain(1, 64 * part, 64) for part in range(8)]
    steps = []
    for step in range(3 * REMEMBERED // 9):  # nothing ends meanwhile
        first = 9 * step + 1
        edges = [hazards.enter(first + at, [], [part]) for at, part in enumerate(parts)]
        edges.append(hazards.enter(first + 8, [plain(1, 0, 512)], []))
        steps.append([sorted((first - up, kind) for up, kind in one.items()) for one in edges])
    assert steps[1] == [[(1, WAR)]] * 8 + [[(-at, RAW) for at in range(7, -1, -1)]]
    assert steps[1:] == [steps[1]] * (len(steps) - 1)


@on_both
def test_two_reads_are_never_ordered(kind: type[Hazards]) -> None:
    hazards = kind()
    for number in range(1, 50):
        assert hazards.enter(number, [plain(1, 0, 8), plain(1, number % 5, 3)], []) == {}


@on_both
def test_retired_launches_are_not_waited_for(kind: type[Hazards]) -> None:
    hazards = kind()
    hazards.enter(1, [], [plain(1, 0, 8)])
    hazards.retire(1)
    assert hazards.enter(2, [plain(1, 0, 8)], [plain(1, 4, 8)]) == {}


@on_both
def test_each_kind_of_edge_is_named_and_counted(kind: type[Hazards]) -> None:
    hazards = kind()
    hazards.enter(1, [], [plain(1, 0, 8)])
    assert hazards.enter(2, [plain(1, 7, 2)], []) == {1: RAW}
    assert hazards.enter(3, [], [plain(1, 8, 4)]) == {2: WAR}
    assert hazards.enter(4, [], [plain(1, 11, 4)]) == {3: WAW}
    hazards.inherit(9, (4,))
    assert hazards.enter(5, [plain(9, 100, 1)], []) == {4: REUSE}
    assert hazards.enter(6, [ALL], []) == {5: ANY}
    assert hazards.enter(7, [plain(33, 0, 1)], []) == {6: ANY}
    assert hazards.edges == {RAW: 1, WAR: 1, WAW: 1, REUSE: 1, ANY: 2}
    assert hazards.pruned == 4  # 6 waits for 1 to 4 through 5


@on_both
def test_columns_and_tiles_of_one_matrix_are_independent(kind: type[Hazards]) -> None:
    hazards = kind()
    columns = [Span(1, 4 * i, 64, 16, 4) for i in range(16)]
    for number, column in enumerate(columns, 1):
        assert hazards.enter(number, [column], [column]) == {}
    row = plain(1, 64 * 3, 64)
    assert hazards.enter(17, [row], []) == dict.fromkeys(range(1, 17), RAW)


SWEPT_AT = 16384
"""Spans of all bases at which the core drops those that are not used, at first."""


@on_core
def test_memory_is_bounded_by_what_is_live(kind: type[core.native.Hazards]) -> None:
    """Distinct spans without end, on few and on many bases, with 64 launches live at a time."""
    hazards = kind()
    rng = random.Random(5)
    fixed = plain(7, 0, 1 << 20)
    live: deque[int] = deque()
    most_live = 0
    for number in range(1, 100_001):
        base = 1 if number % 2 else 10 + number % 999
        start = rng.randrange(1 << 30)
        reads = [plain(base, start, 64), fixed]
        hazards.enter(number, reads, [plain(base, start + 64, 64)])
        live.append(number)
        if len(live) > 64:
            hazards.retire(live.popleft())
        most_live = max(most_live, 2 * len(live) + 1)
        assert hazards.spans <= 2 * most_live + SWEPT_AT + 8
    assert hazards.live == len(live)
    assert hazards._held < 8 * hazards.spans


@on_both
def test_a_forgotten_base_leaves_nothing_behind(kind: type[Hazards]) -> None:
    hazards = kind()
    for number in range(1, 200):
        hazards.enter(number, [plain(number, 0, 4)], [plain(number, 4, 4)])
        hazards.forget(number)
    assert hazards.spans == 0


# ---- the published algorithm ---------------------------------------------------------------------


class Published:
    """Algorithm 1 of the paper as printed: only the *writes* of the new kernel are compared, with
    the reads and the writes of every kernel in the window."""

    def __init__(self) -> None:
        self.window: dict[int, tuple[Sequence[Span], Sequence[Span]]] = {}

    def enter(self, number: int, reads: Sequence[Span], writes: Sequence[Span]) -> set[int]:
        upstream = {
            other
            for other, (their_reads, their_writes) in self.window.items()
            for span in writes
            for theirs in (*their_reads, *their_writes)
            if span.base == theirs.base and overlap(span, theirs)
        }
        self.window[number] = (reads, writes)
        return upstream


@on_both
def test_the_published_algorithm_misses_a_read_after_write_that_ours_finds(
    kind: type[Hazards],
) -> None:
    x, y, z = plain(1, 0, 64), plain(2, 0, 64), plain(3, 0, 64)
    published, ours = Published(), kind()
    produce, consume = ([y], [x]), ([x], [z])
    assert published.enter(1, *produce) == set()
    assert ours.enter(1, *produce) == {}
    assert published.enter(2, *consume) == set()  # 2 reads what 1 writes, and does not wait for it
    assert ours.enter(2, *consume) == {1: RAW}


@on_both
@settings(max_examples=200, deadline=None)
@given(st.lists(accesses, max_size=14))
def test_the_published_algorithm_misses_nothing_but_reads_after_writes(
    kind: type[Hazards], program: list
) -> None:
    published, ours = Published(), kind()
    after: dict[int, frozenset[int]] = {}
    for number, access in enumerate(program, 1):
        reads, writes = ([Span(base + 1, *rest) for base, *rest in side] for side in access)
        theirs = published.enter(number, reads, writes)
        edges = ours.enter(number, reads, writes)
        after[number] = frozenset(edges).union(*(after[upstream] for upstream in edges))
        assert theirs <= after[number]
        assert all(edges[upstream] == RAW for upstream in edges if upstream not in theirs)


# ---- bands ----


@on_both
def test_bands_of_a_launch_follow_others_and_never_each_other(kind: type[Hazards]) -> None:
    """Against byte sets: all that conflicts is ordered by a path, but within a launch."""
    for seed in range(120):
        rng = random.Random(seed)
        hazards = kind()
        entered: list[tuple[int, Bytes, Bytes]] = []  # launch, bytes read and written, by number
        after: dict[int, frozenset[int]] = {}
        for launch in range(25):
            accesses = []
            for _ in range(rng.choice((1, 1, 2, 3, 5))):
                spans = [plain(1, rng.randrange(60), rng.randint(1, 12)) for _ in range(3)]
                many = rng.randrange(3)
                taken = {one for _, theirs in accesses for one in theirs}
                written = [one for one in spans[many:] if one not in taken]
                accesses.append((spans[:many], written[: rng.randrange(2)]))
            first = len(entered) + 1
            found = hazards.enter_many(first, accesses)
            for number, (edges, (reads, writes)) in enumerate(
                zip(found, accesses, strict=True), first
            ):
                read, written = bytes_of(reads), bytes_of(writes)
                conflicts = {
                    other
                    for other, (own, has_read, has_written) in enumerate(entered, 1)
                    if own != launch
                    and (has_written & read or has_read & written or has_written & written)
                }
                assert edges.keys() <= conflicts, f"seed {seed}: {number} follows {edges}"
                waits = frozenset(edges).union(*(after[one] for one in edges))
                assert conflicts <= waits, f"seed {seed}: {number} misses {conflicts - waits}"
                after[number] = waits
                entered.append((launch, read, written))


def test_what_may_touch_any_memory_has_no_bands() -> None:
    with pytest.raises(UsageError, match="not cut into bands"):
        Hazards().enter_many(1, [((ALL,), ()), ((), ())])
    with pytest.raises(ValueError, match="not cut into bands"):
        core.native.Hazards().enter_many(1, [Access((ALL,), ()), Access((), ())])


def test_bands_that_write_one_span_are_refused_before_anything_is_entered() -> None:
    hazards, one = core.native.Hazards(), plain(1, 0, 8)
    hazards.enter(1, (), (one,))
    with pytest.raises(ValueError, match="two bands of a launch write the same bytes"):
        hazards.enter_many(2, [Access((), (one,)), Access((), (one,))])
    assert hazards.live == 1
    assert hazards.enter_many(2, [Access((one,), ()), Access((), (one,))]) == [{1: RAW}, {1: WAW}]
