"""Spawned work, simulated: ways differ as their costs say, and none is quicker than the bound."""

from __future__ import annotations

import random

import pytest

from acs_cl.emu.cli import command_line
from acs_cl.emu.spawning import WAYS, Parts, simulated
from acs_cl.errors import UsageError

FEW = Parts(places=8, lanes=32)


@pytest.mark.parametrize("seed", range(20))
def test_no_way_ends_before_the_bound(seed: int) -> None:
    rng = random.Random(seed)
    calls = [int(rng.paretovariate(0.9)) % 20_000 for _ in range(rng.randrange(1, 600))]
    times = {way: simulated(calls, FEW, way) for way in WAYS}
    assert min(times.values()) == times["ideal"]


def test_one_long_call_is_shared_where_a_launch_costs_less_than_it() -> None:
    calls = [1] * 31 + [32 * 640]
    times = {way: simulated(calls, FEW, way) for way in WAYS}
    assert times["tasks"] < times["dynamic"] == times["ccqs"] < times["flat"]


def test_many_short_calls_are_worth_no_kernels() -> None:
    """The controller sees that as soon as children have begun, which takes a launch."""
    calls, quick = [100] * 4096, FEW._replace(launch=2000)
    times = {way: simulated(calls, quick, way) for way in WAYS}
    assert times["flat"] < times["ccqs"] < times["dynamic"]
    assert times["tasks"] < times["dynamic"]
    assert simulated(calls, FEW, "ccqs") == simulated(calls, FEW, "dynamic")


def test_even_work_is_the_same_in_all_ways() -> None:
    assert len({simulated([63] * 512, FEW, way) for way in WAYS[:-1]}) == 1
    assert simulated([], FEW, "tasks") == 0


def test_the_controller_begins_cold_as_published() -> None:
    """The first call is launched although the work-item itself would be quicker."""
    calls = [64, *[0] * 31]
    assert simulated(calls, FEW, "ccqs") == simulated(calls, FEW, "dynamic")
    assert simulated(calls, FEW, "flat") < simulated(calls, FEW, "ccqs")


def test_the_command_says_that_it_is_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["spawn", "--parents", "2000", "--skew", "1.2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(WAYS)
    assert all("us simulated" in line for line in lines)
    for skew in ("1", "nan", "inf"):
        assert command_line(["spawn", "--skew", skew]) == 1


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(UsageError, match="unknown way 'often'"):
        simulated([1], FEW, "often")
    with pytest.raises(UsageError, match="at least 1"):
        simulated([1], Parts(places=0), "flat")
