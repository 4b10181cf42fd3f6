"""Epochs that come again: which are foreseen, and that every value is as without.

The model of `emu/reference/forecast.py` is held to what was launched, and the core to the model.
Random programs that nearly repeat their steps run beside NumPy. `ACS_CL_FUZZ=n` asks for n of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, pairwise
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from fuzz import repeats

import acs_cl as acs
from acs_cl import testing
from acs_cl.emu.reference import forecast
from acs_cl.emu.reference.forecast import Forecast, Launch

FUZZ = int(os.environ.get("ACS_CL_FUZZ", "60"))
PARTS = 4
SOURCE = """
kernel void add(global uint *x, uint a) { x[get_global_id(0)] += a; }
kernel void twice(global const uint *x, global uint *y, uint a)
{ size_t i = get_global_id(0); y[i] = 2 * y[i] + x[i] + a; }
"""
ROWS = 12
REST = 256
"""Epochs that begin like a slow one, and are collected as if nothing was known."""
OFTEN_AT_MOST = 64
"""Times that a step comes before it is foreseen, where nothing came again before."""
STEP = 10
"""Launches of a step that stays on the device once it came often."""


class Case:
    """A runtime with rows to launch on, and what NumPy has of them."""

    def __init__(self, runtime: acs.Runtime) -> None:
        self.runtime = runtime
        self.made = runtime.build(SOURCE)
        runtime.prebuild(self.made.add, self.made.twice)
        self.rows = [runtime.zeros(4, "u4") for _ in range(ROWS)]
        self.host = np.zeros((ROWS, 4), "u4")
        for _ in range(2):  # which the core learns from
            self.add(0, 0)
            runtime.finish()

    def add(self, row: int, number: int) -> acs.Handle:
        """A launch."""
        self.host[row] += np.uint32(number)
        handle: acs.Handle = self.made.add((4,), None, self.rows[row], number)
        return handle

    def step(self, number: int = 1, rows: int = STEP) -> list[acs.Handle]:
        """Launches that make an epoch."""
        return [self.add(row, number) for row in range(rows)]

    def settle(self) -> None:
        """The same step until it is foreseen."""
        for _ in range(forecast.OFTEN + 1):
            self.step()
            self.runtime.finish()

    @property
    def counted(self) -> dict[str, int]:
        """What was foreseen so far."""
        found: dict[str, int] = self.runtime.stats()["scheduler"]["predicted"]
        return found

    def check(self) -> None:
        """Every value."""
        for row, host in zip(self.rows, self.host, strict=True):
            np.testing.assert_array_equal(row.get(), host)


@contextmanager
def opened(device: cl.Device, tasks: int = 1 << 30) -> Iterator[acs.Runtime]:
    """A runtime whose epochs stay open, and whose lock no thread of ours takes meanwhile."""
    with (
        inside.unattended(),
        testing.open_epochs(tasks=tasks),
        acs.Runtime(device, backend="device", predict=True) as runtime,
    ):
        yield runtime


@pytest.fixture
def case(device: cl.Device) -> Iterator[Case]:
    with opened(device) as runtime:
        made = Case(runtime)
        inside.Scheduler(runtime).foresee_without_a_clock()
        yield made
        made.check()


# ---- the model -----------------------------------------------------------------------------------


def near_repeats(chance: random.Random) -> Iterator[tuple[str, Launch]]:
    """Launches that nearly repeat, and what comes between."""
    step = [Launch(chance.randrange(ROWS), (1,)) for _ in range(chance.randrange(4, 24))]
    for _ in range(chance.randrange(4, 24)):
        now = list(step)
        for _ in range(chance.choice([0, 0, 0, 1, 2])):
            at = chance.randrange(len(now))
            how = chance.randrange(4)
            if how == 0:
                now[at] = now[at]._replace(numbers=(chance.randrange(9),))
            elif how == 1:
                now[at] = Launch(chance.randrange(ROWS), (1,))
            elif how == 2:
                now.insert(at, Launch(chance.randrange(ROWS), (2,)))
            elif len(now) > 1:
                del now[at]
        for launch in now:
            if chance.random() < 0.01:
                yield chance.choice(("lock", "wait", "foreign")), launch
            yield "launch", launch
        if chance.random() < 0.2:
            step = now
        yield "wait", step[0]


@pytest.mark.parametrize("part", range(PARTS))
def test_epochs_of_the_model_are_what_was_launched(part: int) -> None:
    foreseen = given_up = 0
    for seed in range(part, 10 * FUZZ, PARTS):
        model, expected = Forecast(), []
        for what, launch in near_repeats(random.Random(seed)):
            if what in ("launch", "foreign"):
                expected.append(launch)
            if what == "launch":
                model.launch(launch)
            elif what == "foreign":
                model.foreign(launch)
            else:
                model.settle()
            if what == "wait":
                model.send()
        model.send()
        got = list(chain.from_iterable(one.launches for one in model.sent))
        assert got == expected, f"seed {seed}"
        foreseen += sum(len(one.launches) for one in model.sent if one.foreseen)
        given_up += model.given_up
    assert foreseen > given_up > 0


@pytest.mark.parametrize("part", range(PARTS))
def test_the_core_foresees_what_the_model_does(part: int, device: cl.Device) -> None:
    for seed in range(part, FUZZ // 2, PARTS):
        with opened(device) as runtime:
            case, model = Case(runtime), Forecast()
            inside.Scheduler(runtime).foresee_without_a_clock()  # as the model
            model.send()
            for what, launch in near_repeats(random.Random(f"core {seed}")):
                if what == "launch":
                    case.add(int(str(launch.kind)), int(launch.numbers[0]))
                    sent = len(model.sent)
                    model.launch(launch)
                    if len(model.sent) > sent:  # a busy device would have longer epochs tried
                        runtime.finish()
                elif what == "wait":
                    runtime.finish()
                    model.settle()
                    model.send()
                elif what == "lock":
                    assert runtime.stats()["launches"] > 0
                    model.settle()
            got = case.counted
            runtime.finish()
            model.settle()
            model.send()
            kept = [one for one in model.sent if one.foreseen]
            expected = {
                "epochs": len(kept),
                "launches": sum(len(one.launches) for one in kept),
                "given_up": model.given_up,
                "patched": sum(one.patched for one in kept),
            }
            assert {name: got[name] for name in expected} == expected, f"seed {seed}"
            case.check()


# ---- programs ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ways(device: cl.Device) -> Iterator[repeats.Ways]:
    made = repeats.Ways(device)
    yield made
    made.close()


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_that_nearly_repeat_their_steps(part: int, ways: repeats.Ways) -> None:
    foreseen = 0
    for seed in range(part, 2 * FUZZ, PARTS):
        try:
            counted = ways.one(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}, {repeats.configuration_of(seed)}") from error
        foreseen += sum(value for name, value in counted.items() if name.endswith("foreseen"))
    assert foreseen > 0


# ---- one thing at a time -------------------------------------------------------------------------


def test_a_step_that_repeats_is_only_counted(case: Case) -> None:
    case.settle()
    before = case.counted
    assert before["kept"] == 1
    handles = case.step()
    assert [after.number - one.number for one, after in pairwise(handles)] == [1] * (STEP - 1)
    handles[3].wait()
    assert "came as foreseen" in str(case.runtime.explain(handles[3]))
    assert all(one.done for one in handles)
    after = case.counted
    assert after["launches"] - before["launches"] == STEP
    assert after["epochs"] - before["epochs"] == 1


def test_numbers_that_differ_are_written_in_front(case: Case) -> None:
    case.settle()
    for numbers in ([1] * STEP, [1] * 4 + [5] + [1] * (STEP - 5), list(range(STEP)), [1] * STEP):
        before = case.counted
        for row, number in enumerate(numbers):
            case.add(row, number)
        case.runtime.finish()
        assert case.counted["epochs"] == before["epochs"] + 1
        case.check()
    assert case.counted["patched"] == 1 + 2 * (STEP - 1)


def test_more_numbers_than_are_written_one_by_one(device: cl.Device) -> None:
    with opened(device) as runtime:
        case = Case(runtime)
        for step in range(8):
            for at in range(40):
                case.add(at % ROWS, step * at)
            runtime.finish()
        assert case.counted["epochs"] == 8 - forecast.OFTEN
        case.check()


def test_only_epochs_with_slow_footprints_are_not_foreseen(case: Case) -> None:
    scheduler = inside.Scheduler(case.runtime)

    def foreseen(first: int) -> bool:
        before = case.counted["epochs"]
        for row in range(first, first + STEP):
            case.add(row, 1)
        case.runtime.finish()
        return case.counted["epochs"] > before

    scheduler.allow_footprints(-1)
    while not case.counted["slow"]:
        foreseen(0)
    assert case.counted["kept"] == 0
    scheduler.allow_footprints(10**9)
    assert not any(foreseen(0) for _ in range(2 * forecast.OFTEN))
    assert [foreseen(1) for _ in range(forecast.OFTEN + 1)] == [False] * forecast.OFTEN + [True]
    assert not foreseen(0)
    assert any(foreseen(0) for _ in range(REST)), "a slow one is tried again some day"
    assert case.counted["slow"] == 1


def test_without_prediction_nothing_is_remembered(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device", predict=False) as runtime:
        case = Case(runtime)
        case.settle()
        case.settle()
        assert set(case.counted.values()) == {0}
        case.check()


@pytest.mark.parametrize("place", [0, 1, 5, STEP - 1])
def test_another_launch_has_those_before_it_recorded(case: Case, place: int) -> None:
    case.settle()
    before = case.counted
    for row in range(STEP):
        case.add(ROWS - 1 if row == place else row, 1)
    case.runtime.finish()
    after = case.counted
    assert after["launches"] == before["launches"]
    assert after["given_up"] - before["given_up"] == place


def test_a_wait_for_a_launch_in_the_middle(case: Case) -> None:
    case.settle()
    for row in range(STEP):
        handle = case.add(row, 1)
        if row == 4:
            handle.wait()
            assert case.rows[4].get()[0] == case.host[4][0]
    case.runtime.finish()
    assert case.counted["given_up"] == 5


def test_launches_that_are_only_counted_are_in_flight(case: Case) -> None:
    case.settle()
    table = case.runtime.engine.table
    handles = [case.add(row, 1) for row in range(STEP - 1)]
    assert table.counts
    assert len(table) == STEP - 1
    assert all(one.number in table and table.state(one.number) == "ready" for one in handles)
    assert case.counted["given_up"] == STEP - 1  # to ask takes the lock
    assert not table.counts
    assert len(table) == STEP - 1


def test_nobody_asks_and_yet_what_was_counted_runs(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device", predict=True) as runtime:
        case = Case(runtime)
        case.settle()
        handle = case.step(rows=STEP - 1)[-1]
        testing.wait_until(lambda: handle.number not in runtime.engine.table)
        case.check()


def test_memory_that_another_array_got_is_another_array(case: Case) -> None:
    case.settle()
    address = case.rows[3].base.block.address if case.rows[3].base else 0
    del case.rows[3]
    case.runtime.finish()
    case.rows.insert(3, case.runtime.array(case.host[3]))
    again = case.rows[3].base
    assert again is not None
    assert again.block.address == address
    before = case.counted
    case.step()
    case.runtime.finish()
    assert case.counted["launches"] == before["launches"]


def test_what_the_host_writes_between_two_steps_is_seen(case: Case) -> None:
    case.settle()
    before = case.counted
    for value in range(3):
        case.host[2] = value
        case.rows[2].set(case.host[2])
        case.step()
    case.runtime.finish()
    assert case.counted["epochs"] == before["epochs"] + 3


def test_what_follows_an_epoch_on_a_lane_waits_for_it(case: Case) -> None:
    case.settle()
    for number in range(20):
        case.step(number)
        case.rows[0].copy_from(case.rows[1])
        case.host[0] = case.host[1]
    case.check()


def test_rows_are_told_apart_where_each_launch_is_asked_for(case: Case) -> None:
    case.settle()
    table = case.runtime.engine.table
    handles = case.step()
    with case.runtime.engine.lock:
        later = [one for one in table.later(0) if one.number >= handles[0].number]
        if not later:  # the device was faster
            return
        assert [one.number for one in later] == [one.number for one in handles]
        for one, handle in zip(later, handles, strict=True):
            assert (one.command.name, one.access) == (handle.name, handle.access)
            assert table.launch(one.number) == one
            assert table.task(one.number, table.epoch(one.number)) == one.number - later[0].number
        assert len(table) == len(later)
        assert table.of_epoch(table.epoch(later[0].number)) == [one.number for one in later]
    case.runtime.finish()
    assert not len(table)
    case.settle()


def test_each_launch_of_an_epoch_that_the_driver_refuses_has_failed(case: Case) -> None:
    case.settle()
    sender = inside.Scheduler(case.runtime)
    before = case.counted["epochs"]
    with sender.refusing():
        handles = case.step(0)
        case.runtime.flush()
    assert case.counted["epochs"] == before + 1
    for row, handle in enumerate(handles):
        with pytest.raises(acs.PoisonedError, match="was not launched"):
            handle.wait()
        case.rows[row].set(case.host[row])
    case.runtime.finish()
    assert case.counted["kept"] == 0
    case.settle()
    case.step()
    case.runtime.finish()
    assert case.counted["epochs"] > before + 1


def test_an_epoch_that_the_driver_refuses_is_forgotten_at_once(case: Case) -> None:
    """The next one like it was sent before anybody looked at the outcome."""
    case.settle()
    scheduler, engine = inside.Scheduler(case.runtime), case.runtime.engine
    case.step(0)
    with scheduler.refusing(), engine.lock:
        scheduler.backend.send()
        assert len(engine.table) == STEP, "nobody has looked yet"
        assert engine.table.forecasts()["kept"] == 0
    for row in range(STEP):
        case.rows[row].set(case.host[row])
    with pytest.raises(acs.PoisonedError):
        case.runtime.finish()


def test_a_closed_runtime_keeps_no_epoch_on_the_device(device: cl.Device) -> None:
    with testing.open_epochs(), acs.Runtime(device, backend="device", predict=True) as runtime:
        case = Case(runtime)
        case.settle()
        assert case.counted["kept"] == 1
    assert runtime.engine.table.forecasts()["kept"] == 0


def test_a_failure_before_an_epoch_reaches_the_launches_that_read_it(case: Case) -> None:
    def breaks(x: Any) -> None:
        raise RuntimeError("on purpose")

    case.settle()
    bad = case.runtime.zeros(4, "u4")
    case.runtime.call(breaks, writes=[bad])
    handles = case.step()
    with pytest.raises(acs.PoisonedError):
        case.made.twice((4,), None, bad, case.rows[ROWS - 1], 1).wait()
    for handle in handles:
        handle.wait()
    bad.set(np.zeros(4, "u4"))
    case.rows[ROWS - 1].set(case.host[ROWS - 1])
    case.settle()


def test_a_shorter_step_takes_the_place_of_a_longer_one(case: Case) -> None:
    case.settle()
    assert case.counted["kept"] == 1
    for _ in range(forecast.OFTEN):
        case.step(rows=STEP - 1)
        case.runtime.finish()
    assert case.counted["given_up"] >= STEP - 1
    before = case.counted
    case.step(rows=STEP - 1)
    case.runtime.finish()
    assert case.counted["launches"] - before["launches"] == STEP - 1


def test_a_wait_ends_a_longer_epoch_as_a_shorter_one(case: Case) -> None:
    case.settle()
    for _ in range(forecast.OFTEN + 1):
        case.step(rows=STEP - 1)
        case.runtime.finish()
    before = case.counted
    order = [0, 0, 1, 1, 0, 1, 1, 1, 0, 0]
    for less in order:
        case.step(rows=STEP - less)
        case.runtime.finish()
    after = case.counted
    assert after["given_up"] == before["given_up"]
    assert after["launches"] - before["launches"] == STEP * len(order) - sum(order)


def test_one_that_stays_on_the_device_is_not_collected_as_a_longer_one(device: cl.Device) -> None:
    with opened(device, tasks=STEP) as runtime:
        case = Case(runtime)
        case.settle()
        before = case.counted
        inside.Scheduler(runtime).backend.keep_open(1000)
        for _ in range(3):
            case.step()
        runtime.finish()
        assert case.counted["epochs"] - before["epochs"] == 3
        assert case.counted["given_up"] == before["given_up"]
        case.check()


def test_a_footprint_is_slow_if_it_takes_longer_than_its_launches(device: cl.Device) -> None:
    with opened(device) as runtime:
        case = Case(runtime)
        inside.Scheduler(runtime).allow_footprints(0)
        case.rows = [runtime.zeros(4, "u4") for _ in range(100)]
        case.host = np.zeros((100, 4), "u4")
        for _ in range(4 * forecast.OFTEN):
            for rows in (99, 100):  # each has to look at what the other one touched
                for _ in range(4):
                    case.step(rows=rows)
                runtime.finish()
        assert case.counted["slow"] <= 1  # a busy machine may delay three in a row
        assert case.counted["epochs"] > 0
        case.check()


def test_epochs_that_lose_again_and_again_rest(case: Case) -> None:
    for _ in range(12 * forecast.OFTEN):
        case.step(rows=STEP // 2)
        assert case.runtime.stats()["launches"] > 0
        case.step(rows=STEP // 2)
        case.runtime.finish()
    assert case.counted["given_up"] == forecast.MOST_LOST * STEP


def test_where_nothing_comes_again_little_is_remembered(case: Case) -> None:
    chance = random.Random(1)
    for _ in range(forecast.MOST_EPOCHS):
        for row in chance.sample(range(ROWS), STEP):
            case.add(row, 1)
        case.runtime.finish()
    case.settle()
    assert case.counted["kept"] == 0
    for _ in range(OFTEN_AT_MOST):
        case.step()
        case.runtime.finish()
    assert case.counted["launches"] > 0, "what does come again is found"


def test_what_is_on_the_device_is_foreseen_where_nothing_else_comes_again(case: Case) -> None:
    case.settle()
    chance = random.Random(1)
    for steps in range(3 * forecast.MOST_EPOCHS):
        for row in chance.sample(range(1, ROWS), STEP):
            case.add(row, 1)
        case.runtime.finish()
        if not steps % 8:
            before = case.counted["epochs"]
            case.step()
            case.runtime.finish()
            assert case.counted["epochs"] == before + 1


def test_a_loop_without_waits_gets_longer_epochs(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device", predict=True) as runtime:
        case = Case(runtime)
        for _ in range(100):  # on a busy machine time ends some epochs
            for _ in range(400):
                case.step()
            if case.counted["launches"] > 5_000:
                break
        runtime.finish()
        assert case.counted["launches"] > 5_000
        case.check()


def test_many_by_one_call_are_foreseen_too(case: Case) -> None:
    for step in range(6):
        case.made.add.launch_many((4,), None, case.rows[:STEP], step)
        case.host[:STEP] += np.uint32(step)
        case.runtime.finish()
    assert case.counted["launches"] >= STEP


def test_settings_that_change_forget_what_was_compiled_with_others(case: Case) -> None:
    case.settle()
    backend = inside.Scheduler(case.runtime).backend
    backend.settings = backend.settings._replace(groups=1)
    assert case.counted["remembered"] == 0
    case.step()
    case.runtime.finish()
