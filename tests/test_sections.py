"""Epochs that are cut into sections: where, what the clock decides, and that every value stays."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from inside import launching

import acs_cl as acs
from acs_cl import testing
from acs_cl.core import native
from acs_cl.emu.reference import forecast, sections

SOURCE = """
kernel void add(global uint *x, uint a) { x[get_global_id(0)] = 3 * x[get_global_id(0)] + a; }
kernel void flat(global uint *x, uint a)
{ x[get_global_id(1) * get_global_size(0) + get_global_id(0)] = a + get_global_size(0); }
"""
ROWS, LINKS = 8, 12
LAUNCHES = ROWS * LINKS
LEAST = 16
"""Tasks of a section, in programs."""
ALWAYS, NEVER = -99.0, 2.0
"""Gains that every cut has, and none."""


# ---- where an epoch is cut -----------------------------------------------------------------------


def chains(rows: int, links: int) -> list[sections.Edge]:
    """Edges of chains whose first links are launched first, then the second ones."""
    return [(task - rows, task) for task in range(rows, rows * links)]


def chains_in_turn(rows: int, links: int) -> list[sections.Edge]:
    """Edges of chains that are launched one after another."""
    return [(task - 1, task) for task in range(1, rows * links) if task % links]


def cut(tasks: int, edges: list[sections.Edge], host_s: float, device_s: float,
        least: int = 32, gain: float = 0.05) -> list[int]:  # fmt: skip
    """Where the core cuts an epoch."""
    return native.best_sections(tasks, edges, host_s, device_s, least, gain)


def test_links_that_are_launched_in_turn_are_cut_and_chains_are_not() -> None:
    assert len(cut(480, chains(16, 30), 250e-6, 500e-6)) > 1
    assert cut(480, chains_in_turn(16, 30), 250e-6, 500e-6) == [480]


def test_what_the_host_launches_at_once_stays_whole() -> None:
    assert cut(480, chains(16, 30), 25e-6, 500e-6) == [480]
    assert cut(480, chains(16, 30), 250e-6, 5e-6) == [480]


def test_short_epochs_stay_whole() -> None:
    assert cut(63, chains(7, 9), 1e-3, 1e-3) == [63]


@pytest.mark.parametrize("seed", range(60))
def test_sections_gain_what_they_have_to_by_the_model(seed: int) -> None:
    chance = random.Random(seed)
    tasks, least, gain = chance.randrange(8, 240), chance.choice([4, 16, 32]), chance.random() / 5
    near = chance.choice([3, 20, tasks])
    edges = sorted(
        {(chance.randrange(max(0, task - near), task), task)
         for task in range(1, tasks) for _ in range(chance.randrange(3))},
        key=lambda edge: edge[1],
    )  # fmt: skip
    host_s, device_s = chance.uniform(0, 1e-3), chance.uniform(0, 1e-3)
    ends = cut(tasks, edges, host_s, device_s, least, gain)
    assert ends[-1] == tasks
    whole_s = sections.takes_s([tasks], edges, host_s, device_s)
    got_s = sections.takes_s(ends, edges, host_s, device_s)
    if len(ends) > 1:
        assert all(end - first >= least for first, end in pairwise([0, *ends]))
        assert got_s < whole_s * (1 - gain)
    most_s = got_s if len(ends) > 1 else whole_s * (1 - gain)
    for many in (2, 3, 4):
        if tasks // many >= least:
            even = [*(tasks // many * at for at in range(1, many)), tasks]
            assert most_s <= sections.takes_s(even, edges, host_s, device_s) * (1 + 1e-9)


# ---- programs ------------------------------------------------------------------------------------


class Steps:
    """A runtime with a step of many launches, and what NumPy has of it."""

    def __init__(self, runtime: acs.Runtime) -> None:
        self.runtime = runtime
        self.made = runtime.build(SOURCE)
        runtime.prebuild(self.made.add, self.made.flat)
        self.rows = [runtime.zeros(4, "u4") for _ in range(ROWS)]
        self.host = np.zeros((ROWS, 4), "u4")

    def launch(self, number: int, many: int = LAUNCHES) -> list[acs.Handle]:
        """The first launches of a step."""
        handles: list[acs.Handle] = []
        for at in range(many):
            row = at % ROWS
            self.host[row] = 3 * self.host[row] + np.uint32(number + at)
            handles.append(self.made.add((4,), None, self.rows[row], number + at))
        return handles

    def step(self, number: int = 1) -> None:
        """A whole one."""
        self.launch(number)
        self.runtime.finish()

    @property
    def counted(self) -> dict[str, int]:
        """What was foreseen so far."""
        found: dict[str, int] = self.runtime.stats()["scheduler"]["predicted"]
        return found

    def until(self, name: str) -> None:
        """Steps until a count is no longer zero. On a busy machine not each of them is timed."""
        for _ in range(1000):
            if self.counted[name]:
                return
            self.step()
        raise AssertionError(f"nothing was {name}: {self.counted}")

    def check(self) -> None:
        """Every value."""
        for row, host in zip(self.rows, self.host, strict=True):
            np.testing.assert_array_equal(row.get(), host)


@pytest.fixture
def steps(device: cl.Device) -> Iterator[Steps]:
    """No time, no other thread and no idle device ends an epoch: the waits of the program do."""
    with (
        inside.unattended(),
        testing.open_epochs(),
        acs.Runtime(device, backend="device", predict=True) as runtime,
    ):
        made = Steps(runtime)
        inside.Scheduler(runtime).foresee_without_a_clock()
        yield made
        made.check()


def test_a_step_in_sections_is_foreseen_with_other_numbers(steps: Steps) -> None:
    inside.Scheduler(steps.runtime).cut_epochs(LEAST, ALWAYS, ALWAYS)
    steps.until("cut")
    for number in range(20):
        steps.step(number)
    before = steps.counted
    steps.step(99)
    steps.step(99)
    after = steps.counted
    assert after["launches"] - before["launches"] == 2 * LAUNCHES
    assert after["epochs"] - before["epochs"] > 2
    assert after["patched"] - before["patched"] == LAUNCHES, "each section has its own numbers"
    assert after["joined"] == 0
    assert after["cut"] == 1, "sections are not cut again"


def test_a_busy_host_is_foreseen_too(steps: Steps) -> None:
    """Python looks after some milliseconds of counting, and what was counted was recorded then."""
    steps.until("kept")
    steps.step()
    before = steps.counted
    steps.launch(2, LAUNCHES - 4 * ROWS)
    time.sleep(0.01)
    steps.launch(3, 4 * ROWS)
    steps.runtime.finish()
    after = steps.counted
    assert after["launches"] - before["launches"] == LAUNCHES
    assert after["given_up"] == before["given_up"]


def test_sections_that_take_longer_are_joined_for_good(steps: Steps) -> None:
    inside.Scheduler(steps.runtime).cut_epochs(LEAST, ALWAYS, NEVER)
    steps.until("cut")
    steps.until("joined")
    for number in range(20):
        before = steps.counted
        steps.step(number)
        after = steps.counted
    assert after["launches"] - before["launches"] == LAUNCHES
    assert after["epochs"] - before["epochs"] == 1
    assert after["cut"] == 1


def test_the_whole_epoch_is_back_if_the_footprint_of_a_section_is_slow(steps: Steps) -> None:
    scheduler = inside.Scheduler(steps.runtime)
    scheduler.cut_epochs(LEAST, ALWAYS, ALWAYS, 3)
    steps.until("cut")
    scheduler.cut_epochs(LEAST, ALWAYS, ALWAYS, 1000)  # the clock decides nothing
    epochs = 0
    for number in range(20):
        before = steps.counted
        steps.step(number)
        epochs = steps.counted["epochs"] - before["epochs"]
        if number > 6 and epochs == 1:
            break  # so that it is the turn of the sections
    assert epochs == 1
    scheduler.allow_footprints(-1)
    steps.until("joined")
    assert steps.counted["slow"] == 0
    scheduler.allow_footprints(1 << 40)
    steps.step()
    before = steps.counted
    steps.step()
    assert steps.counted["epochs"] - before["epochs"] == 1


def test_what_should_not_gain_is_never_cut(steps: Steps) -> None:
    inside.Scheduler(steps.runtime).cut_epochs(LEAST, NEVER, ALWAYS)
    for number in range(40):
        steps.step(number)
    assert steps.counted["epochs"] > 20
    assert steps.counted["cut"] == 0


def test_a_step_that_ends_within_a_section(steps: Steps) -> None:
    inside.Scheduler(steps.runtime).cut_epochs(LEAST, ALWAYS, ALWAYS)
    steps.until("cut")
    for number in range(12):
        steps.step(number)
    for many in (1, LEAST - 1, LEAST, LEAST + 1, LAUNCHES // 2, LAUNCHES - 1, LAUNCHES):
        steps.launch(5, many)
        steps.runtime.finish()
        steps.check()
        steps.step(6)


def test_a_wait_for_a_launch_of_each_section(steps: Steps) -> None:
    inside.Scheduler(steps.runtime).cut_epochs(LEAST, ALWAYS, ALWAYS)
    steps.until("cut")
    for number in range(12):
        steps.step(number)
    for at in range(0, LAUNCHES, 7):
        handles = steps.launch(at)
        handles[at].wait()
        assert handles[at].done
        steps.check()
    assert "came as foreseen" in str(steps.runtime.explain(steps.launch(3)[0]))


@pytest.mark.parametrize("gone", ["the first", "the last"])
def test_an_array_is_dropped_while_sections_are_tried(steps: Steps, gone: str) -> None:
    inside.Scheduler(steps.runtime).cut_epochs(LEAST, ALWAYS, ALWAYS)
    steps.until("cut")
    steps.step()
    at = 0 if gone == "the first" else ROWS - 1
    del steps.rows[at]
    steps.runtime.finish()
    steps.rows.insert(at, steps.runtime.array(steps.host[at]))
    for number in range(30):
        steps.step(number)
        steps.check()


@pytest.mark.parametrize("bands", [3, 5, 7])
def test_a_launch_in_bands_is_not_cut_across(steps: Steps, bands: int) -> None:
    """Its bands come at once, so that no section would end between them: each step was collected
    as new, and cut again."""
    inside.Scheduler(steps.runtime).cut_epochs(LEAST, ALWAYS, ALWAYS)
    items = 8 * bands
    x, host = steps.runtime.zeros(items, "u4"), np.zeros(items, "u4")
    for number in range(40):
        before = steps.counted
        for at in range(25):
            host = 3 * host + np.uint32(number + at)
            steps.made.add((items,), (8,), x, number + at, bands=bands)
        steps.runtime.finish()
    after = steps.counted
    assert after["cut"] == 1
    assert after["launches"] - before["launches"] == 25 * bands
    assert after["epochs"] - before["epochs"] > 1
    np.testing.assert_array_equal(x.get(), host)


@pytest.mark.parametrize("many", [LEAST // 2, LAUNCHES // 2, LAUNCHES])
def test_launches_that_were_only_counted_outlast_what_is_remembered(
    steps: Steps, many: int
) -> None:
    steps.until("epochs")
    steps.launch(1, many)
    steps.runtime.engine.table.forget_epochs()
    steps.runtime.finish()
    steps.check()
    assert steps.counted["remembered"] <= 1


@pytest.mark.parametrize("after", range(8))
def test_what_is_forgotten_while_sections_are_tried_does_not_come_back(
    steps: Steps, after: int
) -> None:
    scheduler = inside.Scheduler(steps.runtime)
    scheduler.cut_epochs(LEAST, ALWAYS, NEVER, 1)
    steps.until("cut")
    for _ in range(after):
        steps.step()
    before = steps.counted["launches"]
    steps.launch(1)
    with steps.runtime.engine.lock:
        is_open = testing.Scheduler(steps.runtime).has_open_epoch
        scheduler.set(turns=scheduler.sender.settings.turns + 1)
    steps.runtime.finish()
    # where the clock chose another way, launches of the open epoch were recorded: it is a new one
    is_new = is_open and steps.counted["launches"] - before < LAUNCHES
    assert steps.counted["remembered"] == is_new


def test_an_epoch_that_broke_does_not_come_back_from_a_trial(steps: Steps) -> None:
    """The state of its blocks on the device is unknown."""
    scheduler = inside.Scheduler(steps.runtime)
    scheduler.cut_epochs(LEAST, ALWAYS, NEVER)
    sent: list[Any] = []

    def noting(real: Callable[..., int]) -> Callable[..., int]:
        def launch(*args: Any) -> int:
            newest = scheduler.sender.newest
            if newest is not None and newest.resident is not None:
                sent.append(newest.resident)
            return int(real(*args))

        return launch

    with launching(noting):
        steps.until("cut")
        whole = sent[-1]
        assert len(whole) == LAUNCHES
        steps.runtime.engine.table.drop(whole)
        sent.clear()
        for number in range(60):
            steps.step(number)
    assert len(sent) > 60
    assert whole not in sent


@pytest.mark.parametrize("after", [0, 1, 2])
def test_sections_are_forgotten_together(steps: Steps, after: int) -> None:
    """Without one of them the trial would never end, and the whole epoch never be back."""
    scheduler = inside.Scheduler(steps.runtime)
    scheduler.cut_epochs(LEAST, ALWAYS, NEVER)
    steps.until("cut")
    for number in range(3):
        steps.step(number)
    with pytest.raises(acs.AcsError), scheduler.refusing(after):
        steps.step()
    for row, host in zip(steps.rows, steps.host, strict=True):
        row.set(host)
    steps.until("joined")


def test_newer_epochs_take_the_place_of_all_sections_that_are_tried(steps: Steps) -> None:
    """One of them went after another. Those that were left counted as remembered, and nobody could
    follow them any more."""
    scheduler = inside.Scheduler(steps.runtime)
    scheduler.cut_epochs(LEAST, ALWAYS, NEVER)
    steps.until("cut")
    scheduler.cut_epochs(LEAST, ALWAYS, NEVER, 1000)  # the clock decides nothing
    sections = 0
    for number in range(4):
        before = steps.counted["epochs"]
        steps.step(number)
        sections = max(sections, steps.counted["epochs"] - before)
    assert sections > 1
    remembered = []
    for many in range(8, 8 + forecast.MOST_EPOCHS):
        for at in range(many):
            steps.host[many % ROWS] = 3 * steps.host[many % ROWS] + np.uint32(at)
            steps.made.add((4,), None, steps.rows[many % ROWS], at)
        steps.runtime.finish()
        remembered.append(steps.counted["remembered"])
    full = remembered.index(forecast.MOST_EPOCHS)
    assert forecast.MOST_EPOCHS + 1 - sections in remembered[full:]


def test_a_section_is_kept_with_the_words_of_its_own_launches(steps: Steps) -> None:
    """Another epoch begins with a launch of the same bytes in another shape, and goes on like the
    first section. It was taken for that, and its words ran in the section's place."""
    inside.Scheduler(steps.runtime).cut_epochs(LEAST, ALWAYS, ALWAYS)
    x = steps.runtime.zeros(16, "u4")

    def step(width: int, number: int, many: int = LAUNCHES - 1) -> None:
        steps.made.flat((width, 16 // width), None, x, number)
        steps.launch(number, many)
        steps.runtime.finish()
        assert x.get().tolist() == [number + width] * 16

    def another() -> None:
        steps.made.flat((4, 4), None, x, 7)
        for at in range(9):
            steps.host[-1] = 3 * steps.host[-1] + np.uint32(at)
            steps.made.add((4,), None, steps.rows[-1], at)
        steps.runtime.finish()

    another()
    another()
    for number in range(1000):
        step(8, number)
        if steps.counted["cut"]:
            break
    assert steps.counted["cut"] == 1
    step(4, 5)
    for number in range(8):
        step(8, number)
    assert steps.counted["kept"] > 1


def test_an_epoch_is_timed_only_from_its_first_launch(steps: Steps) -> None:
    """One that is foreseen only behind some launches was timed from long before."""
    inside.Scheduler(steps.runtime).cut_epochs(LEAST, ALWAYS, ALWAYS)
    short = steps.rows[0]

    def other() -> None:
        steps.launch(1, 3)
        for at in range(20):
            steps.host[0] = 3 * steps.host[0] + np.uint32(at)
            steps.made.add((4,), None, short, at)
        steps.runtime.finish()

    for _ in range(20):
        other()
        other()
        steps.step()
    assert steps.counted["launches"] > 10 * LAUNCHES
    assert steps.counted["cut"] == 0
