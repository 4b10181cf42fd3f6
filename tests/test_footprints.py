"""Footprints against brute force: replays among ordinary launches, every pair byte by byte."""

from __future__ import annotations

import random

import pytest
from models import on_both

from acs_cl.emu.reference.footprints import Footprint, ReplayHazards
from acs_cl.ranges import merged, overlap
from acs_cl.records import EVERYTHING, Span


def plain(base: int, start: int, width: int) -> Span:
    return Span(base, start, width, 1, width)


def spans(rng: random.Random, most: int) -> list[Span]:
    return [
        plain(rng.randint(1, 4), 4 * rng.randint(0, 9), 4 * rng.randint(1, 4))
        for _ in range(rng.randint(0, most))
    ]


def conflict(a: tuple[list[Span], list[Span]], b: tuple[list[Span], list[Span]]) -> bool:
    return any(
        one.base == other.base and overlap(one, other)
        for ours, theirs in ((a[1], b[0]), (a[1], b[1]), (a[0], b[1]))
        for one in ours
        for other in theirs
    )


@pytest.mark.parametrize("seed", range(60))
@on_both
def test_replays_and_launches_are_ordered_where_they_conflict_and_nowhere_else(
    kind: type[ReplayHazards], seed: int
) -> None:
    rng = random.Random(seed)
    hazards = kind()
    kinds = [(spans(rng, 5), spans(rng, 5)) for _ in range(3)]
    footprints: list[Footprint | None] = [hazards.footprint(*each) for each in kinds]
    touched: dict[int, tuple[list[Span], list[Span]]] = {}
    replay_of: dict[int, int] = {}
    series = [0, 1, 2]
    """What `replay_of` calls the footprints: replays of one are ordered, whatever they touch."""
    after: dict[int, set[int]] = {}
    live: list[int] = []
    for number in range(1, 300):
        which = rng.randrange(-3, 4)
        if 0 <= which < 3:
            footprint = footprints[which]
            assert footprint is not None
            if rng.random() < 0.05:  # another one takes its place
                kinds[which] = spans(rng, 5), spans(rng, 5)
                before = footprint if rng.random() < 0.5 else None
                footprint = footprints[which] = hazards.footprint(*kinds[which], before)
                series[which] += 3 if before is None else 0
            elif rng.random() < 0.1:  # an array takes the place of another one, as in a swap
                base, by = rng.randint(1, 3), 4 * rng.randint(0, 9)
                moved = [
                    [plain(4, one.start + by, one.width) for one in some if one.base == base]
                    for some in kinds[which]
                ]
                reads, writes = (
                    [one for one in some if one.base != base] + new
                    for some, new in zip(kinds[which], moved, strict=True)
                )
                kinds[which] = reads, writes
                new = [(one, False) for one in merged(moved[0])]
                hazards.move(footprint, base, new + [(one, True) for one in merged(moved[1])])
            touched[number] = kinds[which]
            replay_of[number] = series[which]
            edges = hazards.enter_footprint(number, footprint)
        else:
            touched[number] = spans(rng, 2), spans(rng, 2)
            if rng.random() < 0.02:
                touched[number] = [Span(EVERYTHING, 0, 1, 1, 1)], []
            edges = hazards.enter(number, *touched[number])
        anything = any(span.base == EVERYTHING for span in touched[number][0])
        for upstream in edges:
            same = number in replay_of and replay_of.get(upstream) == replay_of[number]
            barrier = anything or any(s.base == EVERYTHING for s in touched[upstream][0])
            assert upstream in live
            assert same or barrier or conflict(touched[upstream], touched[number])
        after[number] = set(edges).union(*(after[upstream] for upstream in edges))
        for other in live:
            if anything or conflict(touched[other], touched[number]):
                assert other in after[number], (other, number)
        live.append(number)
        while live and rng.random() < 0.45:
            oldest = next(n for n in live if not after[n] & set(live))
            live.remove(oldest)
            hazards.retire(oldest)
        assert hazards.live == len(live)


@on_both
def test_memory_of_a_dropped_footprint_is_used_until_its_last_replay_has_ended(
    kind: type[ReplayHazards],
) -> None:
    hazards = kind()
    footprint = hazards.footprint([], [plain(1, 0, 64)])
    hazards.enter_footprint(1, footprint)
    assert hazards.users(1) == (1,)
    del footprint
    assert hazards.users(1) == (1,)
    assert list(hazards.enter(2, [plain(1, 0, 4)], [])) == [1]
    hazards.retire(1)
    hazards.retire(2)
    assert hazards.users(1) == ()
    assert hazards.live == 0
    hazards.footprint([], [])
    assert hazards.live == 0


@on_both
def test_the_hull_of_a_dropped_footprint_is_not_looked_at_for_ever(
    kind: type[ReplayHazards],
) -> None:
    """Launches on the tiles below it find no mark any more, and none has the hull beside it."""
    hazards = kind()
    footprint = hazards.footprint([], [plain(1, 0, 4096)])
    hazards.enter_footprint(1, footprint)
    hazards.retire(1)
    del footprint
    hazards.enter(2, [], [plain(1, 0, 4)])
    assert hazards.live == 1
    assert hazards.spans == 1
    assert list(hazards.enter(3, [plain(1, 0, 4096)], [])) == [2]


def test_spans_are_merged_and_many_of_one_base_become_its_hull() -> None:
    assert merged([plain(1, 8, 8), plain(1, 0, 8), plain(2, 0, 4)]) == [
        plain(1, 0, 16), plain(2, 0, 4),
    ]  # fmt: skip
    rows = Span(1, 0, 32, 4, 8)
    assert merged([rows, plain(1, 0, 128)]) == [plain(1, 0, 128)]
    assert merged([rows, plain(1, 4, 8)]) == [plain(1, 4, 8), rows]
    assert merged(plain(1, 8 * n, 4) for n in range(100)) == [plain(1, 0, 796)]
