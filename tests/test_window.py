"""The window as a state machine, driven by a fake backend that completes launches in any order.

The model recomputes from scratch, after every step, which launches are inside and which must have
been handed out. The fake backend keeps what a driver keeps (a launch ends after those it waits for
by event) and nothing else: it completes in any order, fails some, and never completes others.
"""

from __future__ import annotations

from typing import NamedTuple

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

from acs_cl.emu.reference.window import Window


class Inserted(NamedTuple):
    """A launch as the model knows it."""

    upstream: frozenset[int]
    blocks_on_host: bool
    waits_on_host: bool


class FakeBackend(RuleBasedStateMachine):
    """Inserts, ends foreign events, completes; the invariants compare the window with the model."""

    @initialize(
        size=st.one_of(st.none(), st.integers(1, 6)),
        policy=st.sampled_from(("eager", "ready_first", "mixed")),
    )
    def start(self, size: int | None, policy: str) -> None:
        self.window = Window(size)
        self.policy = policy
        self.number = 0
        self.launches: dict[int, Inserted] = {}
        self.done: set[int] = set()
        self.shut: set[int] = set()
        self.stuck: set[int] = set()
        self.handed_out: list[int] = []
        self.most = 0

    def take(self, handed_out: list[int]) -> None:
        """What the window hands out; each rule of the module's docstring, launch by launch."""
        for number in handed_out:
            launch = self.launches[number]
            assert number not in self.handed_out, f"{number} was handed out twice"
            assert number not in self.shut, f"{number} was handed out through a closed gate"
            for other in launch.upstream:
                assert other in self.handed_out or other in self.done
                if self.launches[other].blocks_on_host or launch.waits_on_host:
                    assert other in self.done, f"{number} was handed out before {other} was done"
            self.handed_out.append(number)

    @rule(
        back=st.lists(st.integers(1, 8), max_size=4),
        blocks_on_host=st.booleans(),
        has_foreign=st.sampled_from((False, False, False, True)),
        waits_on_host=st.sampled_from((False, False, True)),
        skip=st.sampled_from((0, 0, 0, 3)),
    )
    def insert(
        self,
        back: list[int],
        blocks_on_host: bool,
        has_foreign: bool,
        waits_on_host: bool,
        skip: int,
    ) -> None:
        """Upstream may be live, done, or a number that was never in the window."""
        self.number += 1 + skip
        if self.policy != "mixed":
            blocks_on_host = self.policy == "ready_first" or has_foreign or waits_on_host
        upstream = {self.number - step for step in back}
        known = frozenset(upstream & self.launches.keys())
        self.launches[self.number] = Inserted(known, blocks_on_host, waits_on_host)
        if has_foreign:
            self.shut.add(self.number)
        self.take(
            self.window.insert(
                self.number, sorted(upstream), blocks_on_host, has_foreign, waits_on_host
            )
        )

    def able_to_end(self) -> list[int]:
        """Handed out, and everything it waits for by event has ended."""
        return [
            number
            for number in self.handed_out
            if number not in self.done | self.stuck and self.launches[number].upstream <= self.done
        ]

    @precondition(lambda self: self.able_to_end())
    @rule(choice=st.integers(0, 1 << 16))
    def complete_or_fail(self, choice: int) -> None:
        """To the window a failure is an end like any other."""
        able = self.able_to_end()
        number = able[choice % len(able)]
        self.done.add(number)
        self.take(self.window.done(number))

    @precondition(lambda self: self.able_to_end())
    @rule(choice=st.integers(0, 1 << 16))
    def never_complete(self, choice: int) -> None:
        able = self.able_to_end()
        self.stuck.add(able[choice % len(able)])

    @precondition(lambda self: self.shut)
    @rule(choice=st.integers(0, 1 << 16))
    def foreign_ended(self, choice: int) -> None:
        number = sorted(self.shut)[choice % len(self.shut)]
        self.shut.discard(number)
        self.take(self.window.foreign_ended(number))

    @invariant()
    def the_oldest_are_inside(self) -> None:
        live = [number for number in self.launches if number not in self.done]
        size = len(live) if self.window.size is None else self.window.size
        inside = live[:size]
        assert [number for number in live if number in self.window] == inside
        assert self.window.occupied == len(inside)
        assert self.window.outside == len(live) - len(inside)
        assert len(self.window) == len(live)
        self.most = max(self.most, len(inside))
        assert self.window.most == self.most

    @invariant()
    def nothing_is_held_without_a_reason(self) -> None:
        expected: set[int] = set()
        for number, launch in self.launches.items():  # upstream has lower numbers
            if number in self.done:
                expected.add(number)
            elif number in self.window and number not in self.shut:
                open_upstream = launch.upstream - self.done
                held = launch.waits_on_host and open_upstream
                held = held or any(self.launches[other].blocks_on_host for other in open_upstream)
                if not held and open_upstream <= expected:
                    expected.add(number)
        assert set(self.handed_out) == expected
        assert self.window.held == len(self.launches) - len(expected)

    def teardown(self) -> None:
        """Once foreign events and whatever was stuck ends, everything drains."""
        if not hasattr(self, "window"):
            return
        for number in sorted(self.shut):
            self.shut.discard(number)
            self.take(self.window.foreign_ended(number))
        self.stuck.clear()
        while self.able_to_end():
            number = self.able_to_end()[-1]
            self.done.add(number)
            self.take(self.window.done(number))
        assert self.done == self.launches.keys()
        assert len(self.window) == self.window.held == 0


TestWindow = FakeBackend.TestCase
TestWindow.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def test_eager_launches_go_out_before_their_upstream_is_done() -> None:
    window = Window()
    assert window.insert(1, ()) == [1]
    assert window.insert(2, (1,)) == [2]


def test_ready_first_keeps_dependants_until_their_upstream_is_done() -> None:
    window = Window()
    assert window.insert(1, (), blocks_on_host=True) == [1]
    assert window.insert(2, (1,), blocks_on_host=True) == []
    assert window.insert(3, (), blocks_on_host=True) == [3]
    assert window.done(1) == [2]


def test_a_patient_launch_waits_for_what_the_driver_would_wait_for() -> None:
    window = Window()
    window.insert(1, ())
    window.insert(2, (1,))
    assert window.insert(3, (1, 2), blocks_on_host=True, waits_on_host=True) == []
    assert window.insert(4, (2,)) == [4]
    assert window.done(1) == []
    assert window.done(2) == [3]


def test_one_slot_runs_one_after_another() -> None:
    window = Window(1)
    assert window.insert(1, ()) == [1]
    assert window.insert(2, ()) == []
    assert window.insert(3, ()) == []
    assert window.done(1) == [2]
    assert window.done(2) == [3]


def test_a_gate_may_open_outside_the_window() -> None:
    window = Window(1)
    window.insert(1, ())
    window.insert(2, (), has_foreign=True)
    assert window.foreign_ended(2) == []
    assert window.done(1) == [2]
    with pytest.raises(KeyError):
        window.foreign_ended(9)


def test_a_window_without_slots_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one slot, got 0"):
        Window(0)
