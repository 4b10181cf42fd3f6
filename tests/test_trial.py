"""Trials of graphs: replays go several ways in turn, and the quickest one stays."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from itertools import groupby
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.errors import OutOfMemory
from acs_cl.graph import pieces, trial
from acs_cl.graph.loop_trial import LoopTrial
from acs_cl.graph.trial import EACH, MOST, TURNS, Trial
from acs_cl.scheduler.cutting import Single
from acs_cl.scheduler.policy import IN_SCHEDULER
from acs_cl.scheduler.ways import FAR, HOPELESS, IN_A_ROW
from acs_cl.testing.changing import changed

SOURCE = """
kernel void add(global const uint *x, global uint *y, uint a)
{ size_t i = get_global_id(0); y[i] += a * x[i]; }
kernel void down(global uint *left) { *left -= 1; }
"""
N = 4096

# ---- which way stays -----------------------------------------------------------------------------


class Program:
    """A program that replays and waits, on a clock of its own. `took_s`: what a replay takes each
    way: by the policy, with all in segments, and with all on lanes. `singles`: launches by
    themselves in each."""

    def __init__(self, took_s: tuple[float, ...], singles: tuple[int, ...] = (5, 0, 9)) -> None:
        took_s += (1e3,) * (3 - len(took_s))
        self.now_s, self.took_s = 1000.0, took_s
        self.engine: Any = SimpleNamespace(
            lock=nullcontext(),
            table=[],
            number=0,
            waited_us=0.0,
            pump=lambda: None,
            now_us=lambda: self.now_s * 1e6,
        )
        self.pieces: list[Any] = [
            SimpleNamespace(
                all=[Single(at, "long") for at in range(many)],
                why="",
                awaits_builds=False,
                way=way,
            )
            for way, many in enumerate(singles)
        ]
        self.made = 0
        self.trial = Trial(self.engine, self.pieces[0])

    def make(self, way: int) -> Any:
        self.made += 1
        return self.pieces[way]

    def replay(self, waits: bool = True, others: int = 0, pause_s: float = 1.0) -> int:
        """Replay once. Return which way."""
        way = self.pieces.index(self.trial.begin(self.make))
        self.engine.number += 1 + len(self.pieces[way].all)
        self.trial.launched()
        self.engine.number += others
        self.now_s += self.took_s[way]
        self.engine.table = [] if waits else ["something"]
        if waits:
            self.engine.waited_us = self.now_s * 1e6
        self.now_s += pause_s
        return way

    def until_over(self, most: int = 200) -> list[int]:
        ways = []
        while not self.trial.is_over and len(ways) < most:
            ways.append(self.replay())
        return ways


@pytest.mark.parametrize(
    ("took_s", "stays"),
    [
        ((0.1, 0.05, 0.3), 1),
        ((0.1, 0.096, 0.098), 1),
        ((0.1, 0.099, 0.1), 0),
        ((0.1, 0.3, 0.3), 0),
        ((0.1, 0.3, 0.05), 2),
        ((0.1, 0.14, 0.3), 0),
        ((0.1, 0.08, 0.07), 2),
    ],
)
def test_the_quickest_way_stays(took_s: tuple[float, ...], stays: int) -> None:
    program = Program(took_s)
    ways = program.until_over()
    assert program.trial.is_over
    usual, others = ways[: EACH + 1], ways[EACH + 1 : -1]  # pauses of the program do not count
    assert usual == [0] * len(usual)
    turns = [len(list(turn)) for _, turn in groupby(others)]
    first, later = TURNS.learns + TURNS.settles + TURNS.pieces, TURNS.settles + TURNS.pieces
    assert turns == 3 * [first] + (len(turns) - 3) * [later]
    for way in (1, 2):
        # one that takes so much longer is over as soon as that is sure
        many = 2 if took_s[way] > HOPELESS * took_s[0] else TURNS.rounds
        far = took_s[way] > FAR * took_s[0]
        assert others.count(way) == (IN_A_ROW if far else first + (many - 1) * later)
    assert program.trial.pieces == [program.pieces[stays]]
    assert bool(program.pieces[stays].why) == bool(stays)
    assert program.replay() == stays


def test_other_programs_do_not_decide_which_way_stays() -> None:
    """Of replays on lanes on a shared H200, two of six took two thirds longer."""
    program, turn = Program((0.0766, 0.0765, 0.0667)), iter([1.0, 1.0, 1.0, 1.65, 1.0, 1.65] * 9)
    quiet = program.took_s
    while not program.trial.is_over:
        program.took_s = (*quiet[:2], quiet[2] * next(turn))
        program.replay()
    assert program.trial.pieces == [program.pieces[2]]


@pytest.mark.parametrize(
    ("singles", "ways"), [((3, 3, 9), {0, 2}), ((9, 4, 9), {0, 1}), ((0, 0, 9), {0})]
)
def test_ways_that_send_the_same_launches_are_tried_once(
    singles: tuple[int, int, int], ways: set[int]
) -> None:
    assert set(Program((0.1, 0.1, 0.1), singles).until_over()) == ways


def test_short_graphs_are_not_tried() -> None:
    """Until their replays have taken long enough altogether."""
    program = Program((0.001, 0.0005))
    for _ in range(100):
        assert program.replay() == 0
    assert not program.made
    assert 1 in program.until_over(400)


def test_what_has_no_other_way_is_not_tried() -> None:
    program = Program((0.1, 0.1), singles=(3, 3, 3))
    assert set(program.until_over()) == {0}
    assert program.made == 2
    assert program.trial.is_over


def test_another_way_is_not_tried_before_its_schedulers_are_built() -> None:
    program = Program((0.1, 0.05))
    program.pieces[1].awaits_builds = True
    assert {program.replay() for _ in range(3 * EACH)} == {0}
    assert program.made == 1
    assert not program.trial.is_over
    program.pieces[1].awaits_builds = False
    assert 1 in program.until_over()
    assert program.made == 3
    assert program.trial.pieces == [program.pieces[1]]


def test_a_way_for_which_there_is_no_memory_is_not_tried() -> None:
    class Full(Program):
        def make(self, way: int) -> Any:
            if way == IN_SCHEDULER:
                raise OutOfMemory("no memory left")
            return super().make(way)

    program = Full((0.1, 0.01, 0.2))
    assert set(program.until_over()) == {0, 2}
    assert program.trial.pieces == program.pieces[:1]


def test_a_program_that_never_waits_keeps_its_way() -> None:
    program = Program((0.1, 0.01))
    ways = {program.replay(waits=False) for _ in range(MOST + 3)}
    assert ways == {0}
    assert program.trial.is_over
    assert not program.made


def test_replays_with_other_launches_behind_them_do_not_count() -> None:
    program = Program((0.1, 0.01))
    for _ in range(EACH):
        program.replay(others=2)
        program.replay(others=3)
    assert not program.made
    for _ in range(EACH + 2):
        program.replay(others=3)
    assert program.made == 2


# ---- graphs --------------------------------------------------------------------------------------


@pytest.fixture
def rt(device: cl.Device) -> Iterator[acs.Runtime]:
    """Its graphs are tried as soon as one replay was timed."""
    with ExitStack() as stack:
        for name, value in (("EACH", 1), ("FIRST_US", 0.0)):
            stack.enter_context(changed(trial, name, value))
        yield stack.enter_context(acs.Runtime(device))


def segments_of(graph: acs.Graph) -> bool:
    return "segments: 0," not in str(graph.explain())


def ways_of(rt: acs.Runtime) -> set[bool]:
    """Return whether there are segments, in each way. On a GPU the rules send all such launches
    there, and no other way is tried."""
    return {False, True} if rt.device.type & cl.device_type.CPU else {True}


@pytest.mark.parametrize("seed", range(6))
def test_each_way_gives_the_same_values(rt: acs.Runtime, seed: int) -> None:
    """Whatever is changed meanwhile, and where a way was not used for a while."""
    choose, prog = random.Random(seed), rt.build(SOURCE)
    rows = [rt.array(np.arange(N) % (7 + row), "u4") for row in range(4)]
    other = rt.array(np.arange(N) % 5, "u4")
    want = [row.get() for row in (*rows, other)]
    factors, handles = [choose.randrange(1, 9) for _ in range(12)], list[acs.Handle]()
    flag, order = rt.array([1], "u4"), [choose.sample(range(4), 2) for _ in range(12)]
    with rt.record() as graph:
        for (x, y), a in zip(order, factors, strict=True):
            when = flag if choose.random() < 0.3 else None
            handles.append(prog.add((N,), (64,), rows[x], rows[y], a, when=when))
    names, ways = list(range(4)), set[bool]()
    for turn in range(48):
        what = choose.randrange(4)
        if what == 0:
            at = choose.randrange(12)
            factors[at] = choose.randrange(1, 9)
            graph.update(handles[at], a=factors[at])
        elif what == 1 and turn % 5 == 0:
            inside, outside = names[0], next(one for one in range(5) if one not in names)
            graph.swap((*rows, other)[inside], (*rows, other)[outside])
            names[0] = outside
        elif what == 2:
            graph.verify()
        graph.replay()
        for (x, y), a in zip(order, factors, strict=True):
            want[names[y]] += np.uint32(a) * want[names[x]]
        if choose.random() < 0.9:
            rt.finish()
        ways.add(segments_of(graph))
        if turn % 3 == 0:
            for array, values in zip((*rows, other), want, strict=True):
                assert np.array_equal(array.get(), values), turn
    assert ways == ways_of(rt)


def test_replays_are_timed_where_the_program_waits_by_reading(rt: acs.Runtime) -> None:
    prog, x, y = rt.build(SOURCE), rt.array(np.ones(N, "u4")), rt.zeros(N, "u4")
    with rt.record() as graph:
        for _ in range(12):
            prog.add((N,), (64,), x, y, 1)
    ways = set[bool]()
    for turn in range(1, 13):
        graph.replay()
        assert (y.get() == 12 * turn).all()
        ways.add(segments_of(graph))
    assert ways == ways_of(rt)


def test_a_graph_of_few_launches_is_tried_as_a_segment(rt: acs.Runtime) -> None:
    """The rules have too few launches for one."""
    prog, x, y = rt.build(SOURCE), rt.array(np.ones(N, "u4")), rt.zeros(N, "u4")
    with rt.record() as graph:
        prog.add((N,), (64,), x, y, 1)
        prog.add((N,), (64,), y, x, 1)
    assert "too few in a row" in str(graph.explain())
    want, ways = [1, 0], set[bool]()
    for _ in range(12):
        graph.replay().wait()
        rt.finish()
        want[1] += want[0]
        want[0] += want[1]
        assert (x.get()[0], y.get()[0]) == (want[0] % 2**32, want[1] % 2**32)
        ways.add(segments_of(graph))
    assert ways == {False, True}


def test_a_graph_of_loops_is_not_tried(rt: acs.Runtime) -> None:
    prog, x, y = rt.build(SOURCE), rt.array(np.ones(N, "u4")), rt.zeros(N, "u4")
    left = rt.zeros(1, "u4")
    with rt.record() as graph, acs.loop(left, at_most=9):
        prog.add((N,), (64,), x, y, 1)
        prog.down((1,), None, left)
    for _ in range(8):
        left.set([2])
        graph.replay().wait()
        rt.finish()
    assert (y.get() == 16).all()
    with rt.record() as step:
        prog.add((N,), (64,), x, y, 1)
        prog.down((1,), None, left)
    for _ in range(8):
        left.set([2])
        step.replay(while_=left, at_most=5).wait()
        rt.finish()
    assert (y.get() == 32).all()


def test_a_graph_may_be_closed_and_made_again_meanwhile(rt: acs.Runtime) -> None:
    prog, x, y = rt.build(SOURCE), rt.array(np.ones(N, "u4")), rt.zeros(N, "u4")
    for turn in range(1, 6):
        with rt.record() as graph:
            for _ in range(10):
                prog.add((N,), (64,), x, y, 1)
        for _ in range(turn):
            graph.replay().wait()
            rt.finish()
        graph.close()
    assert (y.get() == 10 * 15).all()


# ---- loops ---------------------------------------------------------------------------------------


class Looping:
    """A loop on a clock of its own. `round_us`: what a round takes on the device, and by the
    host."""

    def __init__(
        self, round_us: tuple[float, float], run_us: float = 40.0, disturbs: int = 0
    ) -> None:
        self.now_us, self.round_us, self.run_us = 5e6, round_us, run_us
        self.trial = LoopTrial(lambda: self.now_us)
        self.host_rounds = 0
        self.disturbs = disturbs
        """So many us after it had, another program has 10 ms again. 0: never."""

    def replay(self, rounds: int) -> None:
        """Run the loop as `drive` does."""
        trial = self.trial
        trial.begin()
        self.now_us += 500  # for what it has to follow
        while rounds:
            by_host, before_us = trial.by_host, self.now_us
            many = 1 if by_host else min(rounds, trial.left)
            self.now_us += many * self.round_us[by_host] + (0 if by_host else self.run_us)
            self.host_rounds += many * by_host
            if self.disturbs and before_us // self.disturbs != self.now_us // self.disturbs:
                self.now_us += 10_000
            rounds -= many
            if rounds:
                trial.had(many)


@pytest.mark.parametrize(
    ("round_us", "by_host"),
    [((3, 35), False), ((60, 30), True), ((4e3, 2e3), True), ((100, 100), False), ((70, 60), True)],
)
def test_who_is_quicker_drives_the_rounds_of_a_loop(
    round_us: tuple[float, float], by_host: bool
) -> None:
    loop = Looping(round_us)
    loop.replay(5000)
    assert loop.trial.is_over
    assert loop.trial.by_host is by_host
    tried = loop.host_rounds
    loop.replay(100)
    assert loop.host_rounds - tried == (99 + 1 if by_host else 0)


@pytest.mark.parametrize("disturbs", [70_000, 90_000, 110_000, 150_000])
def test_another_program_does_not_decide_who_drives_a_loop(disturbs: int) -> None:
    loop = Looping((3600, 1900), disturbs=disturbs)
    loop.replay(400)
    assert (loop.trial.is_over, loop.trial.by_host) == (True, True)


def test_the_trial_of_a_loop_goes_on_in_its_next_replay() -> None:
    """Waits for what a replay has to follow do not count as rounds of it."""
    loop = Looping((60, 30))
    loop.replay(70)
    assert not loop.trial.is_over
    for _ in range(40):
        loop.replay(70)
    assert (loop.trial.is_over, loop.trial.by_host) == (True, True)


def test_a_loop_of_few_rounds_stays_on_the_device() -> None:
    loop = Looping((60, 30))
    for _ in range(3 * MOST):
        loop.replay(3)
    assert (loop.trial.is_over, loop.trial.by_host) == (True, False)


@pytest.mark.parametrize("by_host", [False, True])
def test_rounds_of_a_loop_are_right_whoever_drives_them(by_host: bool) -> None:
    """On a CPU, by `auto`, in the trial and after it."""
    times = iter(np.cumsum(np.resize([1e3, 1e6] if by_host else [1e6, 1e3], 10_000)))
    loop_trial = LoopTrial(lambda: float(next(times)))
    with changed(pieces, "LoopTrial", lambda _: loop_trial), acs.Runtime() as rt:
        if not rt.engine.backend.tries_loops:
            pytest.skip("auto tries nothing on this device")
        prog, x, y = rt.build(SOURCE), rt.array([1], "u4"), rt.zeros(1, "u4")
        left = rt.zeros(1, "u4")
        with rt.record() as graph:
            prog.add((1,), None, x, y, 3)
            prog.down((1,), None, left)
        total = 0
        for rounds in (1, 2, 3, 50, 400, 1, 400, 0, 7):
            left.set([rounds])
            handle = graph.replay(while_=left, at_most=1000)
            total += rounds
            assert handle.rounds == rounds
            assert (y.get()[0], left.get()[0]) == (3 * total, 0)
        left.set([500])
        assert graph.replay(while_=left, at_most=100).rounds == 100
        assert left.get()[0] == 400
        said = str(handle.explain())
    assert loop_trial.is_over
    if loop_trial.by_host:
        assert "in each round: its rounds took" in said
    else:
        assert "the device itself reads the word of a loop" in said
