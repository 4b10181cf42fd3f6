"""The protocol of the device-side scheduler: every interleaving of small epochs, and of mutants.

In: all task graphs of up to a few tasks, with one to three tiles each, under launches of one to
three groups. Out: nothing, or the shortest trace to what went wrong. Invariant: every mutant, the
protocol with one rule broken, is found out; so what the explorer finds nothing in has been looked
at. What is modelled, and what is checked, is told in `protocol_model.py`.

`ACS_CL_FUZZ`, whatever its value, adds the larger sets. `-s` shows how much was explored, and how
each mutant fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import pytest
from protocol_model import Model, ProtocolError, explore

Edges = tuple[tuple[int, int], ...]

larger = pytest.mark.skipif("ACS_CL_FUZZ" not in os.environ, reason="larger: set ACS_CL_FUZZ")

FORK: Edges = ((0, 1), (0, 2), (0, 3))
JOIN: Edges = ((0, 3), (1, 3), (2, 3))
DIAMOND: Edges = ((0, 1), (0, 2), (1, 3), (2, 3))
CHAIN: Edges = ((0, 1), (1, 2), (2, 3))


def graphs(n: int) -> Iterator[Edges]:
    """All task graphs of n tasks in program order."""
    pairs = list(combinations(range(n), 2))
    for chosen in range(1 << len(pairs)):
        yield tuple(pair for i, pair in enumerate(pairs) if chosen >> i & 1)


def explore_all(n: int, tiles: tuple[int, ...], launches: tuple[int, ...], **options: Any) -> None:
    """Every graph of n tasks with every choice of their tiles."""
    models = states = longest = 0
    for edges in graphs(n):
        for each in product(tiles, repeat=n):
            try:
                found = explore(Model(each, edges, launches, **options))
            except ProtocolError as error:
                pytest.fail(f"tiles {each}, edges {edges}, launches {launches}: {error}")
            models, states = models + 1, states + found.states
            longest = max(longest, found.longest)
    print(f"{models} graphs, {states:,} states, up to {longest} accesses")


LAUNCHES = [(1,), (2,), (3,), (1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (1, 1, 1)]


@pytest.mark.parametrize("launches", LAUNCHES, ids=str)
def test_all_graphs_of_three_tasks_are_run_by_any_groups(launches: tuple[int, ...]) -> None:
    for n in (1, 2, 3):
        explore_all(n, (1, 2, 3), launches)


@pytest.mark.parametrize("launches", [(3, 1), (3, 3), (2, 2, 2), (3, 3, 3)], ids=str)
def test_three_groups_may_leave_and_be_replaced(launches: tuple[int, ...]) -> None:
    explore_all(2, (1, 2, 3), launches)
    explore_all(3, (1, 2), launches)


@pytest.mark.parametrize("launches", [(1,), (2,), (3,), (2, 2), (3, 3)], ids=str)
def test_all_graphs_of_four_small_tasks(launches: tuple[int, ...]) -> None:
    explore_all(4, (1,), launches)


def test_all_graphs_of_four_tasks_by_two_groups() -> None:
    explore_all(4, (1, 2), (2,))


@pytest.mark.parametrize("edges", [FORK, JOIN, DIAMOND, CHAIN, ()], ids=str)
@pytest.mark.parametrize("launches", [(3,), (2, 2)], ids=str)
def test_four_tasks_of_several_tiles(edges: Edges, launches: tuple[int, ...]) -> None:
    for tiles in ((2, 1, 2, 3), (1, 3, 2, 3), (3, 2, 3, 1)):
        print(explore(Model(tiles, edges, launches)))


@pytest.mark.parametrize(
    "options",
    [{"polls": False}, {"ranks": 2}],
    ids=["groups that do not wait", "more tiles than ranks"],
)
def test_other_settings(options: dict[str, Any]) -> None:
    explore_all(3, (1, 2, 3), (3,), **options)
    explore_all(3, (1, 2), (2, 2), **options)


def test_a_completion_makes_more_ready_than_it_can_keep() -> None:
    for launches in ((3,), (2, 2)):
        explore_all(4, (1,), launches, keeps=1)
        for keeps in (0, 1):
            print(explore(Model((1, 2, 2, 2), FORK, launches, keeps=keeps)))


@pytest.mark.parametrize("polls", [True, False])
def test_groups_may_give_away_what_they_hold(polls: bool) -> None:
    for launches in ((1,), (2,), (1, 2)):
        explore_all(2, (1, 2, 3), launches, gives=True, polls=polls)
    explore_all(3, (1, 2), (3,), gives=True, polls=polls)
    explore_all(3, (1, 2), (2,), gives=True, polls=polls)


@larger
@pytest.mark.parametrize("launches", [(3,), (2, 2)], ids=str)
def test_more_that_is_given_away(launches: tuple[int, ...]) -> None:
    explore_all(3, (1, 2), launches, gives=True)
    explore_all(2, (1, 2), launches, gives=True, rounds=2)


@larger
@pytest.mark.parametrize("launches", [(3, 1), (2, 2, 2), (3, 2, 1)], ids=str)
def test_more_of_three_tasks(launches: tuple[int, ...]) -> None:
    explore_all(3, (1, 2, 3), launches)


@larger
@pytest.mark.parametrize("launches", [(3,), (2, 2), (3, 1)], ids=str)
def test_more_of_four_tasks(launches: tuple[int, ...]) -> None:
    explore_all(4, (1, 2), launches)


@larger
def test_four_tasks_of_up_to_three_tiles() -> None:
    explore_all(4, (1, 2, 3), (2,))


@larger
def test_five_tasks() -> None:
    explore_all(5, (1,), (3,))
    explore_all(5, (1,), (2, 2))


# ---- the window ----------------------------------------------------------------------------------

WINDOWS = 1, 2, 3


@pytest.mark.parametrize("slots", WINDOWS)
def test_a_window_takes_all_tasks_in_and_never_too_many(slots: int) -> None:
    for launches in ((1,), (2,), (2, 2)):
        explore_all(3, (1,), launches, window=slots)
    for edges in (FORK, JOIN, DIAMOND, CHAIN, ()):
        print(explore(Model((1, 2, 1, 1), edges, (2,), window=slots)))


@larger
@pytest.mark.parametrize("slots", WINDOWS)
def test_more_windows(slots: int) -> None:
    explore_all(3, (1, 2), (2, 2), window=slots)
    explore_all(4, (1,), (2,), window=slots)
    explore_all(3, (1,), (3,), window=slots)


# ---- mutants -------------------------------------------------------------------------------------

PAIR: Edges = ((0, 1),)
MEET: Edges = ((0, 2), (1, 2))

MUTANTS = [
    ("abandons with a plain store", (1, 2), PAIR, (2,), "B1 is ready and in no slot"),
    ("publishes without a look at what was there", (1, 2), PAIR, (2,), "nobody comes to B1"),
    ("a rank does not wait", (2, 2), PAIR, (2,), "starts before its upstream has ended"),
    ("a rank waits without bound", (2, 2), PAIR, (1,), "waits, and for ever"),
    ("the last finisher ignores marks", (2, 2), PAIR, (2,), "B1 is ready and in no slot"),
    ("a rank that marked goes in any case", (2, 2), PAIR, (2,), "B1 is ready and in no slot"),
    ("all tiles of an heir count as held", (2, 3), PAIR, (2,), "B2 is ready and in no slot"),
    ("the first finisher counts down", (2, 1), PAIR, (1,), "starts before its upstream"),
    ("leaves with what it holds", (1, 1), PAIR, (1, 1), "B0 is ready and in no slot"),
    ("leaves without its count", (1,), (), (1, 1), "unfinished is 1, but 0 tasks are"),
    ("leaves the last launch early", (1, 1), (), (1,), "B0 is unfinished when the last"),
    (
        "leaves for good and drops its ticket",
        (1, 2),
        PAIR,
        (2,),
        "B1 is ready and in no slot|nobody",
    ),
    ("takes what a relaxed look found", (1, 2), PAIR, (2,), "B1 need not see"),
    ("publishes without a release", (1, 2), PAIR, (2,), "B1 need not see"),
    ("a rank goes on after a relaxed look", (2, 2), PAIR, (2,), "B1 need not see"),
    ("ends a tile without a release", (2, 1), PAIR, (2,), "B0 need not see"),
    ("counts down without a release", (1, 1, 1), MEET, (2,), "C0 need not see"),
    ("the ring has slots for the tickets of one launch", (1,), (), (2, 2, 2), "finds the mark"),
]


@pytest.mark.parametrize(
    ("broken", "tiles", "edges", "launches", "finds"), MUTANTS, ids=[m[0] for m in MUTANTS]
)
def test_mutant_is_found_out(
    broken: str, tiles: tuple[int, ...], edges: Edges, launches: tuple[int, ...], finds: str
) -> None:
    explore(Model(tiles, edges, launches))
    with pytest.raises(ProtocolError, match=finds) as found:
        explore(Model(tiles, edges, launches, broken=broken))
    print(f"{broken}: {found.value}")


@pytest.mark.parametrize(
    ("broken", "finds"),
    [
        ("gives away without an entry", "B0 is ready and in no slot"),
        ("runs what it gave away", "B0 is run twice"),
    ],
)
def test_mutant_of_giving_away_is_found_out(broken: str, finds: str) -> None:
    explore(Model((1, 1), PAIR, (2,), gives=True))
    with pytest.raises(ProtocolError, match=finds) as found:
        explore(Model((1, 1), PAIR, (2,), gives=True, broken=broken))
    print(f"{broken}: {found.value}")


@pytest.mark.parametrize(
    "broken", ["drops requests that came meanwhile", "asks before it tells that a task has ended"]
)
def test_mutant_of_the_window_is_found_out(broken: str) -> None:
    explore(Model((1,) * 4, (), (2, 2), window=2))
    with pytest.raises(ProtocolError, match="D0 is not in, but the window has room") as found:
        explore(Model((1,) * 4, (), (2, 2), broken=broken, window=2))
    print(f"{broken}: {found.value}")


# ---- rounds --------------------------------------------------------------------------------------

ROUNDS = (0, 1, 2, 3)


@pytest.mark.parametrize("launches", [(1,), (2,), (3,), (1, 1), (2, 1), (2, 2), (1, 1, 1)], ids=str)
def test_loops_have_their_rounds_whoever_comes_and_leaves(launches: tuple[int, ...]) -> None:
    for rounds in ROUNDS:
        explore_all(1, (1, 2, 3), launches, rounds=rounds)
        explore_all(2, (1, 2), launches, rounds=rounds)
    explore_all(2, (1, 2, 3), launches, rounds=2)


@pytest.mark.parametrize("launches", [(2,), (1, 2)], ids=str)
def test_loops_of_three_tasks(launches: tuple[int, ...]) -> None:
    for rounds in (1, 2):
        explore_all(3, (1, 2), launches, rounds=rounds)
    explore_all(3, (1,), launches, rounds=3)


@pytest.mark.parametrize(
    "options",
    [{"polls": False}, {"ranks": 2}, {"keeps": 0}, {"gives": True}],
    ids=["groups that do not wait", "more tiles than ranks", "nothing is kept", "bands"],
)
def test_loops_with_other_settings(options: dict[str, Any]) -> None:
    explore_all(2, (1, 2, 3), (2, 1), rounds=2, **options)


@larger
@pytest.mark.parametrize("launches", [(3,), (2, 2), (3, 1)], ids=str)
def test_more_loops(launches: tuple[int, ...]) -> None:
    explore_all(3, (1, 2), launches, rounds=2)
    explore_all(2, (1, 2, 3), launches, rounds=3)


LOOP_MUTANTS = [
    ("opens without an exchange", (1,), (), (2,), "closed in the middle|run twice"),
    ("counts without a release", (1, 1), (), (2,), "round 2 need not see"),
    ("who leaves does not close", (1,), (), (1, 1), "round 1 when the last launch|unfinished is"),
    (
        "the ring begins anew with a round",
        (1, 2),
        PAIR,
        (2,),
        "ready and in no slot|mark of|nobody",
    ),
    (
        "opens before its counts are back",
        (1, 1, 1),
        MEET,
        (2,),
        "below zero|starts before|ready and in no slot",  # which is met first differs
    ),
    ("counts tasks behind entries", (1, 1), (), (2,), "unfinished|closed before|round"),
    ("tiles that were left are not put back", (2,), (), (1,), "more tiles have ended"),
    ("counts are not put back", (1, 1, 1), MEET, (1,), "below zero"),
]


@pytest.mark.parametrize(
    ("broken", "tiles", "edges", "launches", "finds"),
    LOOP_MUTANTS,
    ids=[m[0] for m in LOOP_MUTANTS],
)
def test_mutant_of_rounds_is_found_out(
    broken: str, tiles: tuple[int, ...], edges: Edges, launches: tuple[int, ...], finds: str
) -> None:
    explore(Model(tiles, edges, launches, rounds=2))
    with pytest.raises(ProtocolError, match=finds) as found:
        explore(Model(tiles, edges, launches, rounds=2, broken=broken))
    print(f"{broken}: {found.value}")


REFUSED = [((1, 0),), ((2, 0),), ((2, 1),), ((1, 0), (1, 1)), ((1, 1), (2, 0)), ((2, 0), (2, 1))]


@pytest.mark.parametrize("launches", [(1,), (2,), (3,), (1, 1), (2, 1), (1, 1, 1)], ids=str)
def test_a_refused_count_ends_a_loop_behind_its_round(launches: tuple[int, ...]) -> None:
    for refused in REFUSED:
        explore_all(2, (1, 2), launches, rounds=2, refused=refused)
    for refused in REFUSED[:4]:
        explore_all(2, (1, 2), launches, rounds=3, refused=refused)


@pytest.mark.parametrize("launches", [(1,), (2,), (1, 2)], ids=str)
def test_a_refused_count_of_three_tasks(launches: tuple[int, ...]) -> None:
    for refused in (((1, 2),), ((2, 1),), ((2, 1), (2, 2))):
        explore_all(3, (1, 2), launches, rounds=2, refused=refused)


@pytest.mark.parametrize(
    ("broken", "finds"),
    [
        ("counts are put back in any case", "nobody finds that the count of B0 is wrong"),
        ("a refused count ends no loop", "round 2 follows a refused count"),
    ],
)
def test_mutant_of_refused_counts_is_found_out(broken: str, finds: str) -> None:
    options: dict[str, Any] = {"rounds": 2, "refused": ((1, 1),)}
    explore(Model((1, 1), PAIR, (2,), **options))
    with pytest.raises(ProtocolError, match=finds) as found:
        explore(Model((1, 1), PAIR, (2,), broken=broken, **options))
    print(f"{broken}: {found.value}")


# ---- children ------------------------------------------------------------------------------------

Children = tuple[tuple[int, int], ...]
FAMILIES: list[tuple[tuple[int, ...], Edges, Children]] = [
    ((1,), (), ((0, 1),)),
    ((1,), (), ((0, 2), (0, 1))),
    ((1,), (), ((0, 1), (1, 1), (2, 1))),
    ((1,), (), ((0, 2), (1, 1), (2, 2))),
    ((2,), (), ((0, 1), (1, 2))),
    ((1, 1), PAIR, ((0, 2),)),
    ((1, 1), PAIR, ((0, 1), (1, 1))),
    ((2, 1), PAIR, ((1, 1), (3, 2))),
    ((2, 2), PAIR, ((0, 1), (4, 1))),
    ((1, 1, 1), MEET, ((0, 1), (1, 2))),
    ((2, 2), (), ((0, 1), (2, 2))),
    ((1, 2, 1), CHAIN[:2], ((1, 1), (4, 1))),
]
"""Tiles and edges of tasks, and children: the tile that spawns each, and its own tiles."""


def explore_families(launches: tuple[int, ...], **options: Any) -> None:
    """Every family, each child of it spawned or run at once."""
    states = longest = 0
    for tiles, edges, children in FAMILIES:
        try:
            found = explore(Model(tiles, edges, launches, children=children, **options))
        except ProtocolError as error:
            pytest.fail(f"{tiles}, {edges}, children {children}, {launches}: {error}")
        states, longest = states + found.states, max(longest, found.longest)
    print(f"{len(FAMILIES)} families, {states:,} states, up to {longest} accesses")


@pytest.mark.parametrize("launches", [(1,), (2,), (3,), (1, 1), (2, 1), (1, 2)], ids=str)
def test_a_task_ends_when_all_of_its_children_have(launches: tuple[int, ...]) -> None:
    explore_families(launches)


@pytest.mark.parametrize("room", [0, 1, 2])
def test_children_without_a_slot_are_run_at_once(room: int) -> None:
    explore_families((1,), room=room)
    explore_families((2,), room=room)


@pytest.mark.parametrize("rounds", [1, 2])
def test_loops_spawn_in_every_round(rounds: int) -> None:
    explore_families((1,), rounds=rounds)
    explore_families((2,), rounds=rounds)
    explore_families((2,), rounds=rounds, room=2)


@larger
@pytest.mark.parametrize("launches", [(2, 2), (1, 1, 1), (3, 1)], ids=str)
def test_more_children(launches: tuple[int, ...]) -> None:
    explore_families(launches)
    explore_families(launches, rounds=2)


SPAWN_MUTANTS = [
    ("counts children behind entries", 6, (2,), {}, "twice|before its upstream"),
    ("children are not counted", 5, (1,), {}, "starts before its upstream|more tiles"),
    ("one tile is not counted", 5, (1,), {}, "starts before its upstream|more tiles"),
    ("a child counts nothing down", 0, (1,), {}, "unfinished is 1"),
    ("takes slots that are not there", 3, (1,), {"room": 1}, "ticket .* on a ring"),
    ("the ring has no slots for children", 3, (1,), {}, "ticket .* on a ring"),
    ("publishes without a release", 0, (2,), {}, "need not see"),
    ("ends a tile without a release", 5, (2,), {}, "need not see"),
    ("a task that spawns hands its tiles over", 8, (3,), {}, "twice|waits|before its upstream"),
    ("the room begins anew with a round", 1, (1,), {"rounds": 3, "room": 3}, "ticket .* on a ring"),
    ("tiles that were left are not put back", 0, (1,), {"rounds": 2}, "more tiles have ended"),
]


@pytest.mark.parametrize(
    ("broken", "family", "launches", "options", "finds"),
    SPAWN_MUTANTS,
    ids=[m[0] for m in SPAWN_MUTANTS],
)
def test_mutant_of_spawning_is_found_out(
    broken: str, family: int, launches: tuple[int, ...], options: dict[str, Any], finds: str
) -> None:
    tiles, edges, children = FAMILIES[family]
    options = {"children": children, **options}
    explore(Model(tiles, edges, launches, **options))
    with pytest.raises(ProtocolError, match=finds) as found:
        explore(Model(tiles, edges, launches, broken=broken, **options))
    print(f"{broken}: {found.value}")
