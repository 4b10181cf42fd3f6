"""Steps of a program: they go several ways in turn, and the quickest one stays."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

import acs_cl as acs
from acs_cl.scheduler import policy, steps
from acs_cl.scheduler import ways as trying
from acs_cl.scheduler.policy import AS_RULED, FEW_ON_CPU, FILLS, IN_SCHEDULER, ON_LANES, Choice
from acs_cl.scheduler.steps import BY_RULES, FIRST_US, MOST, RESTS, TURNS, Steps
from acs_cl.scheduler.ways import Turns, Ways
from acs_cl.testing.changing import changed
from acs_cl.testing.queues import bypass, is_bypassing

# ---- ways ----------------------------------------------------------------------------------------


def tried(ways: Ways, took: Callable[[int, int], float], kinds: int = 1) -> list[int]:
    """Do pieces until a way is chosen. `took`: time of a piece by its way and kind. Return the way
    of each piece."""
    went = []
    while not ways.is_over and len(went) < 1000:
        kind = len(went) % kinds
        went.append(ways.way)
        ways.took(took(ways.way, kind), kind + 1, kind)
    return went


@pytest.mark.parametrize(
    ("times", "stays"),
    [((9, 8, 7), 2), ((9, 7, 8), 1), ((9, 10, 11), 0), ((100, 98, 99), 0), ((100, 96, 98), 1)],
)
def test_the_quickest_way_stays_if_it_is_clearly_quicker(
    times: tuple[float, ...], stays: int
) -> None:
    ways = Ways(3, Turns(rounds=2, pieces=4, settles=2, learns=3))
    went = tried(ways, lambda way, _: times[way])
    assert ways.way == stays
    first, later = ([way for way in range(3) for _ in range(many)] for many in (9, 6))
    assert went == first + later


def test_a_way_without_hope_has_no_further_turn() -> None:
    ways = Ways(3, Turns(rounds=4, pieces=4))
    went = tried(ways, lambda way, _: (10, 9, 20)[way])
    assert ways.way == 1
    assert went.count(2) == 4
    assert went.count(0) == went.count(1) == 16


def test_a_way_that_is_far_slower_is_left_at_once() -> None:
    """Before what is kept for it has been made anew, as it may take seconds each time."""
    ways = Ways(3, Turns(rounds=2, pieces=4, learns=8))
    went = tried(ways, lambda way, _: (10, 25, 9)[way])
    assert ways.way == 2
    assert went.count(1) == 4
    ways, first = Ways(2, Turns(rounds=2, pieces=4, learns=8)), iter([30, 30, 30, 9] * 2)
    tried(ways, lambda way, _: next(first, 9) if way else 10)
    assert ways.way == 1  # to begin with it was slow now and then


def test_the_first_pieces_of_a_turn_and_single_slow_ones_do_not_count() -> None:
    noise, since = random.Random(3), dict.fromkeys(range(2), 0)
    before = [0]

    def took(way: int, _: int) -> float:
        since[way] = 0 if before[0] != way else since[way] + 1
        before[0] = way
        if since[way] < 2 and way:
            return 1000.0
        return 500.0 if noise.random() < 0.1 else (10.0, 9.0)[way]

    ways = Ways(2, Turns(rounds=4, pieces=6, settles=2))
    tried(ways, took)
    assert ways.way == 1
    assert ways.ratio(1) == pytest.approx(0.9)


def test_pieces_are_compared_with_their_own_kind() -> None:
    """A program that does short and long work in turn, in which no way is quicker."""
    ways = Ways(2, Turns(rounds=3, pieces=5, least=3))
    tried(ways, lambda way, kind: (1.0, 50.0)[kind] * (1.0, 0.99)[way], kinds=2)
    assert ways.is_over
    assert ways.way == 0
    assert ways.ratio(1) == pytest.approx(0.99)


def test_kinds_that_look_alike_are_compared_as_a_whole() -> None:
    """Such as uploads and kernels, as many of each. Only kernels are quicker in another way."""
    ways, step = Ways(2, Turns(rounds=2, pieces=12, settles=1)), 0
    while not ways.is_over:
        ways.took(5.0 if step % 2 else (20.0, 18.0)[ways.way], 40, 7)
        step += 1
    assert ways.way == 1
    assert ways.ratio(1) == pytest.approx((6 * 5 + 3 * 18) / (6 * 5 + 3 * 20))


def test_kinds_count_by_what_there_is_of_them() -> None:
    """One way does much small work slowly and little large work fast."""
    ways = Ways(2, Turns(rounds=4, pieces=6, least=3))
    tried(ways, lambda way, kind: ((1.0, 1.2), (100.0, 50.0))[kind][way], kinds=2)
    assert ways.way == 1


def test_kinds_that_do_not_come_again_tell_nothing() -> None:
    ways, kind = Ways(2, Turns(rounds=2, pieces=3)), 0
    while not ways.is_over:
        kind += 1
        ways.took(100.0 - 90 * ways.way, 1, kind)
    assert ways.way == 0
    assert ways.ratio(1) is None


def test_one_way_is_no_choice() -> None:
    ways = Ways(1, Turns(rounds=2))
    ways.took(1.0)
    assert ways.is_over
    assert ways.way == 0


# ---- steps ---------------------------------------------------------------------------------------


class Program:
    """A program that makes steps. `took_us`: what one takes each way."""

    def __init__(
        self, took_us: tuple[float, float, float], refuses: bool = True, on_cpu: bool = True
    ) -> None:
        self.took_us = took_us
        self.choice = Choice(on_cpu)
        self.choice.has_refused = refuses
        self.builds: Any = SimpleNamespace(has_work=False)
        self.steps = Steps(self.choice, self.builds)
        self.tasks = 0
        self.uses = True

    def step(self, launches: int = 40, us: float | None = None) -> int:
        """Make a step. Return its way."""
        way = self.choice.way
        self.tasks += launches if self.uses and way != ON_LANES else 0
        changed = self.steps.ended(us or self.took_us[way], launches, self.tasks)
        assert changed == (self.choice.way != way)
        return way

    def until_over(self, most: int = 3000) -> list[int]:
        went = []
        while not (went and any(went) and not self.is_trying) and len(went) < most:
            went.append(self.step())
        return went

    @property
    def is_trying(self) -> bool:
        return self.steps.told.startswith("tried: ")


@pytest.mark.parametrize(
    ("took_us", "stays", "told"),
    [
        ((9e3, 6e3, 8e3), IN_SCHEDULER, "all in the scheduler"),
        ((9e3, 9e3, 8e3), ON_LANES, "all on lanes"),
        ((9e3, 9e3, 9e3), AS_RULED, "by the rules"),
    ],
)
def test_steps_go_the_quickest_way(
    took_us: tuple[float, float, float], stays: int, told: str
) -> None:
    program = Program(took_us)
    went = program.until_over()
    assert program.choice.way == stays
    assert program.steps.told == told
    first = next(at for at, way in enumerate(went) if way)
    # a short-lived program keeps the rules
    assert (first - TURNS.settles - TURNS.learns) * 9e3 >= FIRST_US
    assert {AS_RULED, IN_SCHEDULER, ON_LANES} == set(went)
    assert program.choice.gained == pytest.approx(min(1.0, took_us[stays] / took_us[0]))


def test_only_ways_that_differ_are_tried() -> None:
    program = Program((9e3, 1e3, 8e3), refuses=False)
    assert set(program.until_over(400)) == {AS_RULED, ON_LANES}
    program = Program((9e3, 8e3, 1e3))
    program.uses = False
    assert set(program.until_over(400)) == {AS_RULED, IN_SCHEDULER}
    program = Program((9e3, 8e3, 1e3), refuses=False)
    program.uses = False
    assert set(program.until_over(400)) == {AS_RULED}


@pytest.mark.parametrize(
    ("uses", "refuses", "ways"),
    [
        (True, True, {AS_RULED, IN_SCHEDULER}),
        (False, True, {AS_RULED, IN_SCHEDULER}),
        (False, False, {AS_RULED, IN_SCHEDULER}),
        (True, False, {AS_RULED}),
    ],
)
def test_on_a_gpu_what_the_rules_keep_on_lanes_is_tried_elsewhere(
    uses: bool, refuses: bool, ways: set[int]
) -> None:
    program = Program((9e3, 7e3, 1e3), refuses, on_cpu=False)
    program.uses = uses
    assert set(program.until_over(400)) == ways
    assert program.choice.way == max(ways)


def test_on_a_gpu_the_scheduler_is_tried_again_where_it_was_chosen() -> None:
    """The rules had refused nothing, as all had gone there since the first trial. So every second
    trial took it for a program that uses the scheduler anyway."""
    program = Program((9e3, 7e3, 1e3), refuses=False, on_cpu=False)
    program.uses = False
    program.until_over(400)
    program.uses = True  # in the way that was chosen
    while not program.is_trying:
        assert program.step() == IN_SCHEDULER
    assert IN_SCHEDULER in program.until_over()
    assert program.choice.way == IN_SCHEDULER


def test_steps_during_builds_are_not_timed() -> None:
    program = Program((9e3, 6e3, 20e3))
    while program.choice.way != IN_SCHEDULER:
        program.step()
    program.builds.has_work = True
    went = [program.step(us=100e3) for _ in range(100)]
    assert went == [IN_SCHEDULER] + 99 * [AS_RULED]  # until then that way would have them on lanes
    program.builds.has_work = False
    program.until_over()
    assert program.choice.gained == pytest.approx(6 / 9)


def test_builds_that_do_not_end_are_not_waited_for() -> None:
    program = Program((9e3, 6e3, 8e3))
    while program.choice.way != IN_SCHEDULER:
        program.step()
    program.builds.has_work = True
    for _ in range(MOST + 1):
        program.step()
    program.builds.has_work = False
    went = program.until_over()
    assert IN_SCHEDULER not in went
    assert program.choice.way == ON_LANES


def test_a_choice_is_made_again_when_the_program_has_changed() -> None:
    program = Program((9e3, 6e3, 8e3))
    trial = len(program.until_over())
    assert program.choice.way == IN_SCHEDULER
    program.took_us = (6e3, 9e3, 8e3)
    rest = 0
    while not program.is_trying:
        program.step()
        rest += 1
    assert rest > RESTS * trial // 4  # so seldom that ways that are slower cost little
    program.until_over()
    assert program.choice.way == AS_RULED


def test_steps_of_all_lengths_are_tried() -> None:
    """The number of launches depends on the input."""
    choose, program = random.Random(5), Program((0, 0, 0))
    while program.choice.way == AS_RULED or program.is_trying:
        launches, way = choose.randrange(20, 300), program.choice.way
        program.step(launches, launches * (200.0, 150.0, 220.0)[way] * choose.uniform(0.9, 1.1))
    assert program.choice.way == IN_SCHEDULER


# ---- the rules each way --------------------------------------------------------------------------


def test_each_way_has_its_answers() -> None:
    choice, key = Choice(on_cpu=True), ("dense", (64,), (1,))
    assert not choice.has_refused
    assert choice.refusal(1, key, 99, 8) == FILLS
    assert choice.has_refused
    for _ in range(3):
        choice.timed_on_lane(key, 100.0)
    assert "takes 100 us" in str(choice.takes_long(key))
    choice.way = IN_SCHEDULER
    assert choice.refusal(1, key, 99, 8) is choice.takes_long(key) is None
    assert choice.on_lanes_until(1, "dense") == (0, "")
    choice.way = ON_LANES
    until, why = choice.on_lanes_until(1, "dense")
    assert until > 1 << 60
    assert "are tried" in why
    choice.gained = 0.9
    assert choice.refusal(1, key, 1, 8) == "steps take 0.90 of the time with all launches on lanes"
    assert choice.ruled(1, key, 99, 8) == FILLS  # recorded graphs have trials of their own


def test_all_in_the_scheduler_is_what_the_backend_without_lanes_does() -> None:
    choice = Choice(on_cpu=True)
    choice.resting_until = choice.counting_until = 100
    assert choice.on_lanes_until(1, "dense")[0] == 100
    choice.way = IN_SCHEDULER
    assert choice.on_lanes_until(1, "dense") == (0, "")
    assert choice.epoch(1, 1, is_sent_anyway=False)  # however small
    assert choice.last_was_large
    choice.way = AS_RULED
    assert choice.on_lanes_until(1, "dense")[0] == 100
    assert not choice.epoch(1, 1, is_sent_anyway=False)


# ---- programs ------------------------------------------------------------------------------------

SOURCE = """
kernel void add(global const uint *x, global uint *y, uint a)
{ size_t i = get_global_id(0); y[i] += a * x[i]; }
kernel void slow(global const uint *x, global uint *y, uint many)
{
    size_t i = get_global_id(0);
    uint sum = x[i];
    for (uint at = 0; at < many; ++at) sum = sum * 3u + 1u;
    y[i] ^= sum;
}
"""
N = 1024


@pytest.fixture
def never_long() -> Iterator[None]:
    """No kernel takes so long that it belongs on a lane, as it may on a busy machine."""
    with changed(policy, "SLOWDOWN", 0.0):
        yield


@pytest.fixture
def rt(device: cl.Device) -> Iterator[acs.Runtime]:
    """It goes another way at each step, however slow that is on a busy machine."""
    if not device.type & cl.device_type.CPU:
        pytest.skip("only steps on CPUs are tried")
    turns = Turns(rounds=1 << 20)
    with (
        changed(steps, "FIRST_US", 0.0),
        changed(steps, "TURNS", turns),
        changed(trying, "HOPELESS", 1e9),
        changed(trying, "FAR", 1e9),
        acs.Runtime(device) as runtime,
    ):
        yield runtime


@pytest.mark.parametrize("seed", range(8))
def test_each_way_gives_the_same_values(rt: acs.Runtime, seed: int) -> None:
    choose, prog = random.Random(seed), rt.build(SOURCE)
    rows = [rt.array(np.arange(N) % (7 + row), "u4") for row in range(4)]
    want = [row.get() for row in rows]
    flag = rt.array([1], "u4")
    order = [(*choose.sample(range(4), 2), choose.randrange(4)) for _ in range(24)]
    ways = set[str]()
    for turn in range(120):
        for x, y, what in order:
            if what == 0:
                prog.slow((N,), (64,), rows[x], rows[y], 200)
                sums = want[x].copy()
                for _ in range(200):
                    sums = sums * np.uint32(3) + np.uint32(1)
                want[y] ^= sums
            else:
                a = choose.randrange(1, 9)
                prog.add((N,), (64,), rows[x], rows[y], a, when=flag if what == 1 else None)
                want[y] += np.uint32(a) * want[x]
        if turn == 10:
            rt.prebuild()
        if choose.random() < 0.9:
            rt.finish()
        ways.add(rt.stats()["scheduler"]["steps"])
        if turn % 7 == 0:
            for array, values in zip(rows, want, strict=True):
                assert np.array_equal(array.get(), values), turn
    assert {"tried: all in the scheduler", "tried: by the rules"} <= ways


def test_a_step_that_several_threads_end_is_one(rt: acs.Runtime) -> None:
    """What is left of it for the other one has no launches, and no time of each."""
    prog, x, y = rt.build(SOURCE), rt.array(np.ones(64, "u4")), rt.zeros(64, "u4")
    ended: list[int] = []

    class Least(int):
        """While it is compared with a step's launches, another thread ends that step."""

        def __le__(self, launches: int) -> bool:
            is_long = launches >= int(self)
            if is_long and rt.engine.number not in ended:
                ended.append(rt.engine.number)
                rt.finish()
            return is_long

    backend = rt.engine.backend
    backend.least_step = Least(backend.least_step)
    ways = set[str]()
    for turn in range(40):
        for _ in range(20):
            handle = prog.add((64,), (64,), x, y, 1)
        handle.wait()
        ways.add(rt.stats()["scheduler"]["steps"])
        if turn == 10:
            rt.prebuild()
    assert len(ended) == 40
    assert "tried: by the rules" in ways
    assert (y.get() == 40 * 20).all()


def ways_of(rt: acs.Runtime, step: Callable[[], None]) -> list[str]:
    """Make a step ten times, and 80 times once all is built; what is said of its way after each."""
    for _ in range(10):
        step()
    rt.prebuild()
    ways = []
    for _ in range(80):
        step()
        ways.append(rt.stats()["scheduler"]["steps"])
    return ways


@pytest.mark.usefixtures("never_long")
def test_a_program_that_waits_by_reading_has_steps(rt: acs.Runtime) -> None:
    prog, x, y = rt.build(SOURCE), rt.array(np.ones(64, "u4")), rt.zeros(64, "u4")
    out = np.empty(64, "u4")

    def step() -> None:
        for _ in range(20):
            prog.add((64,), (64,), x, y, 1)
        y.get(out)

    ways = ways_of(rt, step)
    assert (out == 90 * 20).all()
    assert sum(one != other for one, other in pairwise(ways)) > 40


WAITS: dict[str, Callable[[acs.Queue, cl.Event, Any, Any], Any]] = {
    "a blocking read": lambda queue, event, y, out: cl.enqueue_copy(queue, out, y.data),
    "finish": lambda queue, event, y, out: queue.finish(),
    "an event": lambda queue, event, y, out: event.wait(),
    "several events": lambda queue, event, y, out: cl.wait_for_events([event]),
    "a blocking map": lambda queue, event, y, out: y.data.map_ro(queue).release(queue),
}


@pytest.mark.usefixtures("never_long")
@pytest.mark.parametrize("how", WAITS)
def test_a_program_that_waits_on_a_queue_has_steps(rt: acs.Runtime, how: str) -> None:
    """Its memory is the runtime's, so that the scheduler may have its launches."""
    queue = acs.Queue(rt.context, runtime=rt)
    add = cl.Program(rt.context, SOURCE).build().add
    x, y = (cl.array.zeros(queue, 64, "u4", allocator=queue.allocator) for _ in range(2))
    x.fill(1)
    out = np.empty(64, "u4")
    add.set_args(x.data, y.data, np.uint32(1))

    def step() -> None:
        for _ in range(20):
            event = cl.enqueue_nd_range_kernel(queue, add, (64,), (64,))
        WAITS[how](queue, event, y, out)

    ways = ways_of(rt, step)
    assert (y.get() == 90 * 20).all()
    assert sum(one != other for one, other in pairwise(ways)) > 40


def test_what_is_in_bypass_is_of_no_step(device: cl.Device) -> None:
    """The runtime hears of no wait meanwhile, so that a step would seem to have lasted as long."""
    if not device.type & cl.device_type.CPU:
        pytest.skip("only steps on CPUs are tried")
    took: list[float] = []

    def ended(self: Steps, us: float, launches: int, tasks: int) -> bool:
        took.append(us)
        return False

    with changed(Steps, "ended", ended), bypass(always=True):
        queue = acs.Queue(cl.Context([device]))
        rt, now_us = queue.runtime, [0.0]
        rt.engine.now_us = lambda: now_us[0]
        add = cl.Program(rt.context, SOURCE).build().add
        x, y = (cl.array.zeros(queue, 64, "u4") for _ in range(2))
        own = rt.zeros(64, "u4")
        rt.finish()
        for _ in range(4):
            for _ in range(20):
                add(queue, (64,), None, x.data, y.data, np.uint32(1))
            queue.finish()
        assert is_bypassing(queue)
        del took[:]
        now_us[0] = 1e7
        for turn in range(20):  # which end the bypass
            own.fill(turn)
        rt.finish()
        assert not took
        now_us[0] = 3e7
        for turn in range(20):
            own.fill(turn)
        rt.finish()
        assert took == [2e7]


@pytest.mark.usefixtures("never_long")
def test_launches_say_which_way_they_went(rt: acs.Runtime) -> None:
    prog, x, y = rt.build(SOURCE), rt.array(np.ones(64, "u4")), rt.zeros(64, "u4")
    said = set[str]()
    for turn in range(80):
        handles = [prog.add((64,), (64,), x, y, 1) for _ in range(20)]
        rt.finish()
        said.add(str(rt.explain(handles[-1])))
        if turn == 10:
            rt.prebuild()
    assert (y.get() == 80 * 20).all()
    assert any("are tried with all launches on lanes" in one for one in said)
    assert any("in the scheduler on the device" in one for one in said)


def test_small_steps_are_not_tried(rt: acs.Runtime) -> None:
    prog, x, y = rt.build(SOURCE), rt.array(np.ones(64, "u4")), rt.zeros(64, "u4")
    for _ in range(60):
        for _ in range(FEW_ON_CPU - 1):
            prog.add((64,), (64,), x, y, 1)
        rt.finish()
        assert rt.stats()["scheduler"]["steps"] == BY_RULES


@pytest.mark.usefixtures("never_long")
def test_a_graph_is_recorded_by_the_rules(rt: acs.Runtime) -> None:
    """Whatever way launches go meanwhile."""
    prog, x, y = rt.build(SOURCE), rt.array(np.ones(64, "u4")), rt.zeros(64, "u4")
    found = set[bool]()
    for turn in range(60):
        for _ in range(20):
            prog.add((64,), (64,), x, y, 1)
        if turn == 10:
            rt.prebuild()
        if turn > 20:
            with rt.record() as graph:
                for _ in range(20):
                    prog.add((64,), (64,), x, y, 1)
            graph.replay()
            found.add("segments: 0," in str(graph.explain()))
            graph.close()
        rt.finish()
    assert found == {False}
    assert (y.get() == 60 * 20 + 39 * 20).all()
