"""The engine of the emulator: order, ties, and that nothing is due in the past."""

from __future__ import annotations

import random

import pytest

from acs_cl.emu.engine import Engine, Server
from acs_cl.errors import InternalError


def test_actions_come_by_time_then_priority_then_sequence() -> None:
    rng = random.Random(7)
    engine = Engine()
    handed_in = [(rng.randrange(20), rng.randrange(3), index) for index in range(500)]
    seen: list[tuple[int, int, int]] = []
    for due in handed_in:
        engine.at(due[0], due[1], seen.append, due)
    engine.run()
    assert seen == sorted(handed_in)
    assert engine.steps == len(handed_in)


def test_what_an_action_hands_in_for_now_still_comes_now() -> None:
    engine = Engine()
    seen: list[str] = []

    def first(_: None) -> None:
        seen.append("first")
        engine.at(engine.now, 1, seen.append, "issue")
        engine.at(engine.now, 0, seen.append, "end")

    engine.at(5, 2, first, None)
    engine.at(5, 2, seen.append, "second")
    engine.run()
    assert seen == ["first", "end", "issue", "second"]
    assert engine.now == 5


def test_nothing_is_due_in_the_past() -> None:
    engine = Engine()
    engine.at(10, 0, lambda _: engine.at(9, 0, print, None), None)
    with pytest.raises(InternalError, match="9 ns, and it is 10"):
        engine.run()


def test_a_server_does_one_thing_after_another() -> None:
    engine = Engine()
    server = Server(engine)
    assert [server.serve(10), server.serve(5), server.serve(0)] == [10, 15, 15]
    engine.at(100, 0, lambda _: None, None)
    engine.run()
    assert server.serve(1) == 101
    assert server.busy_ns == 16
