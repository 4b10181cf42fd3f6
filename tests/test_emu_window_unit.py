"""The window unit against the library's own window, its blocking rule, its ids, its costs."""

from __future__ import annotations

from random import Random

import pytest

from acs_cl.emu.machines import CUDA
from acs_cl.emu.reference.window import Window
from acs_cl.emu.spec import WindowSpec, check_ns
from acs_cl.emu.window_unit import StaleList, WindowUnit, cycles_ns, estimate
from acs_cl.errors import InternalError, UsageError

LAUNCHES = 200


def program(rng: Random) -> dict[int, list[int]]:
    """Upstream lists of any length and distance, by launch."""
    lists = {1: list[int]()}
    for number in range(2, LAUNCHES + 1):
        near = rng.random() < 0.7
        least = max(1, number - 6) if near else 1
        lists[number] = sorted({rng.randrange(least, number) for _ in range(rng.randrange(5))})
    return lists


@pytest.mark.parametrize("seed", range(60))
def test_it_hands_out_what_the_librarys_window_hands_out(seed: int) -> None:
    """The unit has the stale list, M and narrow ids; the window is told all upstream. What each
    lets run is the same after every insertion and completion, in any order of completions."""
    rng = Random(seed)
    slots, distance = rng.randint(1, 9), rng.randint(1, 15)
    unit = WindowUnit(WindowSpec(slots, distance, rng.choice((distance.bit_length(), 8))))
    window, stale = Window(slots), StaleList(distance)
    upstream = program(rng)
    known = {number: stale.send(number, upstream[number]) for number in upstream}
    coming = list(upstream)
    running: list[int] = []
    ended: set[int] = set()
    while coming or running:
        if coming and unit.admits(coming[0]):
            number = coming.pop(0)
            ready = [number] if unit.insert(number, known[number]) else []
            assert ready == window.insert(number, upstream[number], blocks_on_host=True)
        else:
            number = running.pop(rng.randrange(len(running)))
            ready = unit.complete(number)
            assert ready == window.done(number)
            ended.add(number)
        assert all(ended.issuperset(upstream[number]) for number in ready)
        running += ready
        assert len(unit) == len(window) <= slots
        oldest = min(set(upstream) - ended, default=0)
        assert (
            not coming or not oldest or unit.sees_all(coming[0]) == (coming[0] - oldest <= distance)
        )
    assert len(ended) == LAUNCHES


def test_m_counts_the_launch_that_is_to_be_inserted() -> None:
    """The CPU looked at the M before it: the oldest unfinished has to be one of them."""
    unit = WindowUnit(WindowSpec(slots=8, distance=3))
    for number in (1, 2, 3):
        unit.insert(number, [])
    assert unit.admits(4)
    unit.insert(4, [])
    assert not unit.admits(5)
    unit.complete(3)
    assert not unit.admits(5)
    unit.complete(1)
    assert unit.admits(5)


def test_the_list_is_stale() -> None:
    """Nobody tells the CPU what has ended, and only the last M are in it."""
    stale = StaleList(2)
    assert stale.send(1, []) == []
    assert stale.send(2, [1]) == [1]
    assert stale.send(3, [1, 2]) == [1, 2]
    assert stale.send(4, [1, 2, 3]) == [2, 3]
    assert len(stale) == 2
    with pytest.raises(InternalError, match="launch 7 was sent behind 4"):
        stale.send(7, [])


def test_ids_of_the_window_differ() -> None:
    """With the rule of M taken away two launches would have one id, which does not go unnoticed."""
    unit = WindowUnit(WindowSpec(slots=8, distance=3, id_bits=2))
    for number in (1, 2, 3, 4):
        unit.insert(number, [])
    assert not unit.admits(5)
    with pytest.raises(InternalError, match="id of launch 5 is in the window already"):
        unit.insert(5, [])


@pytest.mark.parametrize("spec", [WindowSpec(slots=0), WindowSpec(distance=0)])
def test_a_unit_without_room_is_refused(spec: WindowSpec) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        WindowUnit(spec)


def test_ids_of_bits_name_two_to_that_many_less_one_behind() -> None:
    WindowUnit(WindowSpec(distance=255, id_bits=8))
    with pytest.raises(UsageError, match="M = 256 needs 9 bits"):
        WindowUnit(WindowSpec(distance=256, id_bits=8))


def test_the_papers_sizes_and_delays() -> None:
    """About 1 KB at N = 32 with ids of 8 bits, 8 KB were they 8 bytes; 64 cycles at N = 64 are
    within 50 to 100 ns from 0.64 to 1.28 GHz, and a little less at the simulated 1.4 GHz."""
    assert estimate(WindowSpec(slots=32, id_bits=8)).sram_bytes == 1032
    assert estimate(WindowSpec(slots=32, id_bits=64)).sram_bytes == 8200
    assert estimate(WindowSpec(slots=32, id_bits=8)).cells_um2 == 405  # 8,256 bits of 0.049 um2
    at_64 = estimate(WindowSpec(slots=64, distance=64))
    assert (at_64.insert_cycles, at_64.update_cycles) == (64, 63)
    assert (at_64.insert_ns, at_64.update_ns) == (46, 45)
    assert cycles_ns(64, 640) == 100
    assert cycles_ns(64, 1280) == 50
    assert cycles_ns(64, 0) == 0


@pytest.mark.parametrize(
    ("kernels", "segments", "ns"),
    [(16, 6, 410), (16, 10, 700), (32, 6, 510), (32, 10, 1640), (0, 10, 0), (16, 3, 205),
     (48, 6, 610), (24, 6, 460)],
)  # fmt: skip
def test_checks_cost_what_was_published(kernels: int, segments: int, ns: int) -> None:
    assert check_ns(CUDA, kernels, segments) == ns


def test_checks_get_dearer_with_kernels_and_segments() -> None:
    for kernels in range(64):
        for segments in range(1, 20):
            here = check_ns(CUDA, kernels, segments)
            assert here <= check_ns(CUDA, kernels + 1, segments)
            assert here <= check_ns(CUDA, kernels, segments + 1)
