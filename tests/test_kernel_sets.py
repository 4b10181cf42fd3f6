"""Which kernels are together in one scheduler, and when they are gathered: pure rules."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from acs_cl.scheduler.kernel_sets import (
    MOST_ALIKE,
    MOST_BODIES,
    MOST_LOOPED_BODIES,
    MOST_SCHEDULERS,
    OFTEN,
    CutCount,
    KernelSet,
    KernelSets,
    Step,
)
from acs_cl.scheduler.task import Unfit

TILED, GROUPS = 256, 64


def origin(name: str) -> Any:
    return ("source", (), name)


def enter(
    sets: KernelSets, name: str, group: int, tiled: bool = False, program: str | None = None
) -> None:
    text = name if program is None else program
    translated: Any = (SimpleNamespace(tiled=tiled, local_bytes=0), text)
    sets.enter(origin(name), translated, group, (), tiled)


def build(sets: KernelSets, groups: int = 528) -> None:
    for one in sets:
        limits = SimpleNamespace(groups=groups, group=one.group)
        one.built = SimpleNamespace(bodies=dict(one.functions), limits=limits)  # type: ignore[assignment]
        one.stale = False


def names(one: KernelSet) -> list[str]:
    return [known[2] for known in one.functions]


def homes(sets: KernelSets, name: str, group: int | None) -> list[list[str]]:
    found = sets.bodies(origin(name), (), group)
    return [[known[2] for known in scheduler.bodies] for scheduler, _ in found]


def test_what_is_full_gets_a_second_set_and_no_third_one() -> None:
    sets = KernelSets(False)
    for i in range(MOST_ALIKE * MOST_BODIES):
        enter(sets, f"k{i}", GROUPS)
    assert [len(one.functions) for one in sets] == [MOST_BODIES] * MOST_ALIKE
    with pytest.raises(Unfit, match="its schedulers have 32 kernels already"):
        enter(sets, "one more", GROUPS)
    enter(sets, "k0", GROUPS)  # which is there


def test_a_second_set_runs_all_kernels_of_a_program() -> None:
    sets = KernelSets(False)
    for i in range(10):
        enter(sets, f"k{i}", GROUPS)
    for i in range(12):
        enter(sets, f"own{i}", GROUPS, program="one")
    first, second = sets
    assert names(first) == [f"k{i}" for i in range(10)] + [f"own{i}" for i in range(6)]
    assert names(second) == [f"own{i}" for i in range(12)]
    build(sets)
    assert homes(sets, "own0", GROUPS) == [names(first), names(second)]  # where it is at home
    for i in range(5):
        enter(sets, f"more{i}", GROUPS, program="one")
    assert names(second) == [f"own{i}" for i in (0, 1, 2, 3, 4, *range(6, 12))] + [
        f"more{i}" for i in range(5)
    ]


def test_there_are_so_many_sets_at_most() -> None:
    sets = KernelSets(False)
    for group in range(1, MOST_SCHEDULERS + 1):
        enter(sets, "turn", group)
    with pytest.raises(Unfit, match="8 schedulers already"):
        enter(sets, "turn", 64)


def test_sets_are_smaller_where_items_of_a_group_are_loops() -> None:
    sets = KernelSets(True)
    for i in range(MOST_LOOPED_BODIES + 1):
        enter(sets, f"k{i}", GROUPS)
        enter(sets, f"one{i}", 1)
    assert [(one.group, len(one.functions)) for one in sets] == [(64, 6), (1, 7), (64, 1)]


def test_what_may_be_cut_anywhere_is_a_guest_elsewhere_and_makes_room() -> None:
    sets = KernelSets(False)
    enter(sets, "inc", TILED, tiled=True)
    enter(sets, "turn", GROUPS)
    tiled, grouped = sets
    assert names(tiled) == ["inc"]
    assert names(grouped) == ["turn", "inc"]
    for i in range(MOST_BODIES - 1):
        enter(sets, f"k{i}", GROUPS)
    assert "inc" not in names(grouped)
    assert len(grouped.functions) == MOST_BODIES
    build(sets)
    assert homes(sets, "inc", None) == [["inc"]]


def test_others_are_brought_to_a_home_as_far_as_there_is_room() -> None:
    sets = KernelSets(False)
    enter(sets, "elsewhere", TILED)
    enter(sets, "home", GROUPS)

    def bring(at: str, name: str, is_guest: bool = False) -> None:
        translated: Any = (SimpleNamespace(tiled=False, local_bytes=0), name)
        sets.bring(origin(at), origin(name), translated, GROUPS, (), is_guest)

    bring("home", "home")
    bring("home", "guest", is_guest=True)
    for i in range(20):
        bring("home", f"k{i}")
    _, home = sets
    assert names(home) == ["home", "guest", *(f"k{i}" for i in range(MOST_BODIES - 2))]
    assert home.guests == {origin("guest")}
    assert sets.are_home(origin("k0"), GROUPS, ())
    assert not sets.are_home(origin("guest"), GROUPS, ())
    bring("nowhere", "k20")
    assert [len(one.functions) for one in sets] == [1, MOST_BODIES]


def test_one_that_took_long_takes_no_more() -> None:
    sets = KernelSets(False)
    enter(sets, "k0", GROUPS)
    next(iter(sets)).is_slow = True
    enter(sets, "k1", GROUPS)
    assert [names(one) for one in sets] == [["k0"], ["k1"]]


def full(many: int) -> KernelSets:
    sets = KernelSets(False)
    for i in range(many):
        enter(sets, f"k{i}", GROUPS)
    build(sets)
    return sets


def launched(*numbers: int) -> list[tuple[Any, int, tuple[str, ...]]]:
    return [(origin(f"k{i}"), GROUPS, ()) for i in numbers]


def test_kernels_of_several_sets_are_gathered_and_then_found_there_first() -> None:
    sets = full(20)
    sets.gather(launched(3, 17, 1))
    assert [names(one) for one in sets][2:] == [["k3", "k17", "k1"]]
    assert len(homes(sets, "k3", GROUPS)) == 1  # it is not built yet
    build(sets)
    assert homes(sets, "k3", GROUPS)[0] == ["k3", "k17", "k1"]
    sets.gather(launched(17, 3))  # which are together already
    enter(sets, "k20", GROUPS)  # which has its home in another
    assert [len(one.functions) for one in sets] == [16, 5, 3]


@pytest.mark.parametrize("numbers", [(0, 1, 2), range(20), (3, 99), ()])
def test_nothing_is_gathered_where_that_brings_nothing(numbers: tuple[int, ...]) -> None:
    """They are together, too many, or one is in no scheduler."""
    sets = full(20)
    sets.gather(launched(*numbers))
    assert len(list(sets)) == 2


def test_the_oldest_gathered_set_goes_where_there_are_too_many() -> None:
    sets = full(20)
    for first in range(MOST_SCHEDULERS - 2):
        sets.gather(launched(first, 16))
        build(sets)
    sets.gather(launched(9, 17))
    assert len(list(sets)) == MOST_SCHEDULERS
    assert [names(one) for one in sets][2:4] == [["k1", "k16"], ["k2", "k16"]]
    assert [names(one) for one in sets][-1] == ["k9", "k17"]


def test_cuts_are_looked_into_where_every_second_epoch_is_cut() -> None:
    count = CutCount()
    assert count.step_after(OFTEN - 1, OFTEN) is Step.NOTHING
    assert count.step_after(OFTEN, 3 * OFTEN) is Step.NOTHING  # of many
    assert count.step_after(2 * OFTEN, 4 * OFTEN) is Step.WATCH
    assert count.step_after(2 * OFTEN + 1, 4 * OFTEN + 1) is Step.NOTHING
    assert count.step_after(3 * OFTEN, 5 * OFTEN) is Step.GATHER
    for at in range(4, 3 + 2 * (MOST_SCHEDULERS - 1), 2):
        assert count.step_after(at * OFTEN, at * OFTEN) is Step.WATCH
        assert count.step_after((at + 1) * OFTEN, (at + 1) * OFTEN) is Step.GATHER
    assert count.step_after((at + 2) * OFTEN, (at + 2) * OFTEN) is Step.NOTHING  # twice as many now
    assert count.step_after((at + 3) * OFTEN, (at + 3) * OFTEN) is Step.WATCH
