"""The launch table of the core against its model, driven by a fake device.

The device keeps what a driver keeps (a launch ends after those that it waits for by event) and
nothing else: launches end in any order, well or not; some never run, some wait for foreign events,
some hold others back, as host tasks do. After every step both say the same of every launch.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from acs_cl import core
from acs_cl.emu.reference.table import STEPS
from acs_cl.emu.reference.table import Table as Model
from acs_cl.launch.commands import TransferCommand
from acs_cl.records import Access, Launch

COMMAND: Any = TransferCommand("write", None, None)


def launch(number: int, upstream: tuple[int, ...]) -> Launch:
    return Launch(number, COMMAND, Access((), ()), upstream)


def new_table(window: int | None = None) -> core.native.Table:
    table = core.native.Table()
    table.join(core.native.Hazards(), core.native.Lock(), 1 << 20, window, False, False)
    table.log()
    return table


class Device(RuleBasedStateMachine):
    """Inserts, starts, ends; the invariants compare the table with the model."""

    @initialize(size=st.one_of(st.none(), st.integers(1, 6)))
    def begin(self, size: int | None) -> None:
        self.table, self.model, self.size = new_table(size), Model(size), size
        self.number = 0
        self.upstream: dict[int, tuple[int, ...]] = {}
        self.foreign: list[int] = []
        self.ready: list[int] = []
        self.executing: list[int] = []

    @rule(
        back=st.lists(st.integers(1, 8), max_size=4, unique=True),
        blocks_on_host=st.booleans(),
        has_foreign=st.sampled_from((False, False, False, True)),
        waits_on_host=st.sampled_from((False, False, True)),
        skip=st.sampled_from((0, 0, 0, 3, 300)),
    )
    def insert(
        self,
        back: list[int],
        blocks_on_host: bool,
        has_foreign: bool,
        waits_on_host: bool,
        skip: int,
    ) -> None:
        """Upstream may be live, over, or a number that was never there."""
        self.number += 1 + skip
        number = self.number
        seen = [one for step in back if (one := number - step) > 0]
        upstream = self.model.expand(seen)
        assert self.table.expand(tuple(seen)) == upstream
        self.upstream[number] = upstream
        if has_foreign:
            self.foreign.append(number)
        ready = self.table.insert(
            launch(number, upstream), blocks_on_host, has_foreign, waits_on_host
        )
        assert ready == self.model.insert(
            number, upstream, blocks_on_host, has_foreign, waits_on_host
        )
        if ready:
            self.ready.append(number)

    def take(self) -> None:
        """What became ready, in order."""
        while number := self.model.next_ready():
            assert self.table.next_ready() == number
            self.ready.append(number)
        assert self.table.next_ready() == 0

    @precondition(lambda self: self.ready)
    @rule(choice=st.integers(0, 1 << 16), runs=st.sampled_from((True, True, True, False)))
    def dispatch(self, choice: int, runs: bool) -> None:
        """A launch goes where it runs, or is refused and never runs."""
        number = self.ready.pop(choice % len(self.ready))
        if runs:
            self.executing.append(number)
            self.table.start(number)
            self.model.start(number)
            return
        upstream = list(self.upstream[number])
        self.table.never_ran(number, upstream)
        self.model.never_ran(number, upstream)
        self.take()

    def able_to_end(self) -> list[int]:
        return [
            number
            for number in self.executing
            if not any(one in self.model for one in self.upstream[number])
        ]

    @precondition(lambda self: self.able_to_end())
    @rule(choice=st.integers(0, 1 << 16), failed=st.sampled_from((False, False, True)))
    def end(self, choice: int, failed: bool) -> None:
        able = self.able_to_end()
        number = able[choice % len(able)]
        self.executing.remove(number)
        self.table.end(number, failed)
        self.model.end(number, failed)
        self.take()

    @precondition(lambda self: len(self.model))
    @rule(choice=st.integers(0, 1 << 16))
    def reach_with_a_failure(self, choice: int) -> None:
        numbers = list(self.model.states)
        self.table.lose(numbers[choice % len(numbers)])
        self.model.lose(numbers[choice % len(numbers)])

    @precondition(lambda self: self.foreign)
    @rule(choice=st.integers(0, 1 << 16))
    def foreign_ended(self, choice: int) -> None:
        number = self.foreign.pop(choice % len(self.foreign))
        self.table.foreign_ended(number)
        self.model.foreign_ended(number)
        self.take()

    @rule(number=st.integers(0, 40), step=st.sampled_from(("start", "end", "insert", "never ran")))
    def step_that_may_not_follow(self, number: int, step: str) -> None:
        """It raises, and nothing has changed."""
        state, table = self.model.state(number), self.table
        refused: dict[str, tuple[bool, Callable[[], object]]] = {
            "start": (state != "ready", lambda: table.start(number)),
            "end": (state != "executing", lambda: table.end(number, False)),
            "never ran": (state != "ready", lambda: table.never_ran(number, ())),
            "insert": (number in self.model, lambda: table.insert(launch(number, ()))),
        }
        is_wrong, take = refused[step]
        if is_wrong:
            with pytest.raises((RuntimeError, KeyError, ValueError)):
                take()

    @invariant()
    def both_say_the_same(self) -> None:
        table, model = self.table, self.model
        live = list(model.states)
        assert len(table) == len(live)
        assert table.live() == live
        window = model.window
        assert (table.occupied, table.outside, table.held) == (
            window.occupied, window.outside, window.held,
        )  # fmt: skip
        assert (table.most, table.full, table.ended) == (window.most, window.full, model.ended)
        assert table.oldest() == (live[0] if live else 0)
        for last in (0, self.number // 2, self.number):
            assert table.newest(last) == max((one for one in live if one <= last), default=0)
        assert [table.nth(place) for place in range(len(live) + 1)] == [*live, 0]
        for number in self.upstream:
            assert table.state(number) == model.state(number)
            assert (number in table) == (number in model)
        assert [one.number for one in table.later(self.number // 2)] == [
            one for one in live if one > self.number // 2
        ]

    @invariant()
    def each_went_only_where_it_may(self) -> None:
        told = [
            (number, before, after)
            for number in self.upstream
            for before, after, _ in self.table.transitions(number)
        ]
        assert sorted(told) == sorted(self.model.log)
        assert all(after in STEPS[before] for _, before, after in told)

    def teardown(self) -> None:
        """Once foreign events have ended and all that runs has ended, nothing is left."""
        if not hasattr(self, "table"):
            return
        while self.foreign:
            self.foreign_ended(0)
        while self.ready or self.executing:
            while self.ready:
                self.dispatch(0, True)
            self.end(0, False)
        assert len(self.table) == len(self.model) == self.table.held == 0
        assert all(self.table.state(number) is None for number in self.upstream)


TestTable = Device.TestCase
TestTable.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)


def test_the_steps_of_the_core_are_those_of_the_model() -> None:
    assert core.native.STEPS == STEPS
    reached, new = {"none"}, {"none"}
    while new:
        new = {after for state in new for after in STEPS[state]} - reached
        reached |= new
    assert reached == STEPS.keys()


def test_a_launch_that_stays_costs_no_room_for_those_that_pass() -> None:
    """Rows are kept by number: one that is never over must not make them grow for ever."""
    table = new_table()
    assert not table.insert(launch(1, ()), has_foreign=True)
    for number in range(2, 100_000):
        table.insert(launch(number, ()))
        table.start(number)
        if number % 1000 == 0:
            table.insert(launch(100_000 + number, ()), has_foreign=True)
            table.foreign_ended(100_000 + number)
            assert table.next_ready() == 100_000 + number
            table.start(100_000 + number)
            table.end(100_000 + number, False)
        table.end(number, False)
        assert len(table) == 1
    assert table.live() == [1]
    assert table.newest(1 << 40) == table.oldest() == 1
    assert table.state(1) == "pending"


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_found_wherever_their_numbers_are(seed: int) -> None:
    rng, table = random.Random(seed), new_table()
    there: set[int] = set()
    number = 0
    for _ in range(4000):
        if there and rng.random() < 0.48:
            one = rng.choice(sorted(there)[-50:] if rng.random() < 0.9 else sorted(there))
            table.end(one, False)
            there.discard(one)
        else:
            number += rng.choice((1, 1, 1, 7, 400))
            table.insert(launch(number, ()))
            table.start(number)
            there.add(number)
        probe = rng.randint(0, number + 9)
        assert (probe in table) == (probe in there)
        assert len(table) == len(there)
    assert table.live() == sorted(there)


def test_a_window_without_slots_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one slot, got 0"):
        new_table(0)


def test_what_a_held_launch_waits_for_is_told() -> None:
    table = new_table()
    for number in (1, 2):
        assert table.insert(launch(number, ()))
        table.start(number)
    assert not table.insert(launch(3, (1, 2)), blocks_on_host=True, waits_on_host=True)
    assert not table.insert(launch(4, (3,)))
    assert [table.blockers(number) for number in (1, 3, 4)] == [[], [1, 2], [3]]
    assert [table.state(number) for number in (1, 3, 4)] == ["executing", "pending", "pending"]
    steps = table.transitions(1)
    assert [step[:2] for step in steps] == [("none", "ready"), ("ready", "executing")]
    assert steps[0][2] <= steps[1][2]


def test_an_epoch_gives_its_launches_back_one_by_one() -> None:
    table = new_table()
    for number in (1, 2, 3):
        table.insert(launch(number, ()))
        table.start(number)
        table.put(number, 7, number - 1)
    assert table.in_epochs == 3
    assert [table.epoch(2), table.task(2, 7), table.task(2, 8)] == [7, 1, -1]
    assert table.of_epoch(7) == [1, 2, 3]
    assert table.leave(7) == [1, 2, 3]
    assert (table.in_epochs, table.epoch(2), table.of_epoch(7)) == (0, 0, [])
    table.end_epoch(7)  # none of them was the core's own
    assert table.live() == [1, 2, 3]
    table.put(2, 8, 0)  # it may come to another one
    assert table.task(2, 8) == 0


def test_launches_of_a_queue_are_told_from_those_of_others() -> None:
    table = new_table()
    ours, others = table.new_queue(), table.new_queue()
    for number in range(1, 9):
        table.insert(launch(number, ()))
        table.assign(number, ours if number % 2 else others, number in (3, 4, 7))
    assert table.of_queue(ours, 8, False) == [1, 3, 5, 7]
    assert table.of_queue(ours, 6, True) == [3]
    table.start(3)
    table.end(3, False)
    assert table.of_queue(ours, 8, True) == [7]
    assert table.of_queue(others, 8, True) == [4]
    table.assign(3, ours, True)  # which has ended: it counts as the newest, and is not in flight
    assert (table.newest_of(ours), table.newest_of(others)) == (3, 8)
    assert table.of_queue(ours, 8, False) == [1, 5, 7]


def test_reasons_of_the_newest_launches_are_known_and_all_are_counted() -> None:
    reasons = core.native.Reasons()
    assert reasons.counts() == {}
    assert reasons.of(1) is None
    assert reasons.reaches(1)
    for number in range(1, 20_001):
        reasons.note(number, f"why {number % 40}")  # equal, and not the same object
    assert reasons.counts() == {f"why {one}": 500 for one in range(40)}
    reasons.keep(20_001, "elsewhere")
    reasons.note(20_003, "why 0")
    assert reasons.counts()["why 0"] == 501
    assert [reasons.of(one) for one in (20_001, 20_002, 20_003)] == ["elsewhere", None, "why 0"]
    assert (reasons.of(19_999), reasons.of(1)) == ("why 39", None)
    assert (reasons.reaches(20_002), reasons.reaches(1)) == (True, False)
