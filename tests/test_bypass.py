"""Bypass: commands of an `acs.Queue` that go to the driver's own queue, and come back.

Samples are made short and their verdict fixed, so that programs begin and end a bypass all the
time; a plain queue is the oracle.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterator
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

import acs_cl as acs
from acs_cl import core, testing
from acs_cl.queue import bypass
from acs_cl.queue.trials import STRETCHES, Trials
from tests.test_queue import (
    COMPLETE,
    ROUNDS,
    N,
    buffer,
    edges,
    kernels_of,
    random_program,
    values_of,
)


@pytest.fixture
def often() -> Iterator[None]:
    """Whatever a queue does, it bypasses after three launches, and samples again after two."""
    with testing.bypass(always=True, again=True):
        yield


@pytest.fixture
def stays() -> Iterator[None]:
    """The same, and it takes no other sample."""
    with testing.bypass(always=True):
        yield


@pytest.fixture
def whole_samples() -> Iterator[None]:
    """Queues bypass after samples of the usual length."""
    with testing.bypass(always=True, short=False):
        yield


def passed(queue: acs.Queue) -> int:
    found: int = queue.runtime.stats()["bypassed"]
    return found


def test_levels_are_those_of_the_longest_chain() -> None:
    chain, apart, late = (core.native.Sample() for _ in range(3))
    for number in range(8):
        chain.note(number, (number - 1,), range(8))
        apart.note(number, (), range(8))
        late.note(number, (), (number,))  # the one before had ended when it came
    assert (chain.overlap, apart.overlap, late.overlap) == (1, 8, 1)
    two = core.native.Sample()
    for number in range(8):
        two.note(number, (number - 2,), range(8))
    assert two.overlap == 2


def test_the_rest_between_samples_is_bounded_however_long_a_program_runs(
    context: cl.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []
    monkeypatch.setattr(bypass.Bypass, "rest", lambda self, seconds: rests.append(seconds))
    queue = acs.Queue(context)
    policy = queue.bypass
    assert policy is not None
    for sample in range(2000):  # all of them in vain, and each of a millisecond
        clock = iter([sample, sample + 0.001])
        monkeypatch.setattr(bypass, "perf_counter", lambda clock=clock: next(clock))
        policy.wanted, policy.began = bypass.SAMPLED, bypass.perf_counter()
        assert policy.decides()
    assert rests[:3] == pytest.approx([0.1, 0.2, 0.4])
    assert rests[10:] == [bypass.LONGEST_S] * (len(rests) - 10)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_that_pass_in_and_out(context: cl.Context, often: None, seed: int) -> None:
    expected = random_program(cl.CommandQueue(context), kernels_of(context), seed)
    queue = acs.Queue(context)
    found = random_program(queue, kernels_of(context), seed)
    assert passed(queue)
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert np.array_equal(one, other), index


def test_a_chain_bypasses_the_runtime(context: cl.Context) -> None:
    queue = acs.Queue(context)
    x = cl.array.zeros(queue, N, np.int32)
    for _ in range(4 * bypass.SAMPLED):
        x += 1
    assert passed(queue) > bypass.SAMPLED
    assert (x.get() == 4 * bypass.SAMPLED).all()


def test_other_queues_that_idle_are_no_hindrance(context: cl.Context) -> None:
    queues = [acs.Queue(context) for _ in range(3)]
    for turn, queue in enumerate(queues, 1):
        x = cl.array.zeros(queue, N, np.int32)
        for _ in range(4 * bypass.SAMPLED):
            x += turn
        assert passed(queue) > turn * bypass.SAMPLED
        assert (x.get() == 4 * bypass.SAMPLED * turn).all()


def test_queues_in_turns_soon_stay_launches(context: cl.Context, whole_samples: None) -> None:
    """Commands of two queues may overlap, and each ends the bypass of the other."""
    begun: list[None] = []
    queues = [acs.Queue(context) for _ in range(2)]
    arrays = [cl.array.zeros(queue, N, np.int32) for queue in queues]
    turns = 40
    with testing.at("before a bypass", lambda: begun.append(None)):
        for _ in range(turns):
            for x in arrays:
                for _ in range(2 * bypass.SAMPLED):
                    x += 1
    assert all((x.get() == turns * 2 * bypass.SAMPLED).all() for x in arrays)
    assert 0 < len(begun) < turns / 2


@pytest.mark.parametrize("backend", ["auto", "out_of_order", "serial"])
def test_a_queue_that_may_not_bypass_tracks_every_command(
    context: cl.Context, often: None, backend: str
) -> None:
    for may_bypass in (False, True):
        queue = acs.Queue(context, backend=backend, bypass=may_bypass)
        x = cl.array.zeros(queue, N, np.int32)
        for _ in range(100):
            x += 1
        assert (passed(queue) > 0) == may_bypass
        assert (x.get() == 100).all()


TRACKED, BYPASS = False, True
COMMANDS, TRIAL = 20, STRETCHES

PROGRAMS: dict[str, tuple[bool, dict[bool, float], list[tuple[bool, int]]]] = {
    # tracking is tried, too; seconds of a stretch, by way; (way, trials' lengths) that come of it
    "tracking does not pay": (
        False, {TRACKED: 2.0, BYPASS: 1.0}, [(TRACKED, 2), (BYPASS, 100)]
    ),
    "tracking pays: trials come ever later": (
        False, {TRACKED: 1.0, BYPASS: 2.0},
        [(TRACKED, 2), (BYPASS, 1), (TRACKED, 4), (BYPASS, 1), (TRACKED, 8), (BYPASS, 1)],
    ),
    "no difference: the way is kept that was there": (
        False, {TRACKED: 1.0, BYPASS: 0.98}, [(TRACKED, 2), (BYPASS, 1), (TRACKED, 4)]
    ),
    "the scheduler may pay later, so that tracking is tried again": (
        True, {TRACKED: 2.0, BYPASS: 1.0},
        [(TRACKED, 2), (BYPASS, 3), (TRACKED, 1), (BYPASS, 4), (TRACKED, 1), (BYPASS, 8)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_trials_by_the_table(name: str) -> None:
    both, takes, expected = PROGRAMS[name]
    trials, way = Trials(both), TRACKED
    found: list[tuple[bool, int]] = []
    for of_way, lengths in expected:
        assert way == of_way, found
        verdict = None
        for number in range(1, TRIAL * lengths + 1):
            verdict = trials.stretch(way, COMMANDS, takes[way])
            found.append((way, number))
            assert verdict is None or number == TRIAL * lengths, found
        if lengths < 100:
            assert verdict is not way, found
            way = not way


def test_trials_compare_commands_and_not_stretches() -> None:
    """A long stretch of one way and a short one of the other."""
    trials = Trials()
    for _ in range(2 * TRIAL):
        verdict = trials.stretch(TRACKED, 100, 1.0)
    assert verdict is BYPASS
    for _ in range(TRIAL):
        verdict = trials.stretch(BYPASS, 10, 0.2)  # which is twice as long for a command
    assert verdict is TRACKED


def test_what_overlaps_much_is_tried_later_and_what_is_refused_too() -> None:
    def until(trials: Trials) -> int:
        return next(n for n in range(1, 1000) if trials.stretch(TRACKED, COMMANDS, 1.0) is BYPASS)

    little, much, refused = Trials(), Trials(), Trials()
    little.overlaps(1.5)
    much.overlaps(8.0)
    refused.refused()
    soon = until(little)
    assert until(refused) == 2 * soon
    assert until(much) >= 4 * soon


def test_tracking_that_overlap_asked_for_is_left_where_it_does_not_pay() -> None:
    """A sample ends a bypass; what follows is compared with what the bypass took."""
    for tracked, verdict in ((2.0, BYPASS), (0.95, BYPASS), (0.5, None)):
        trials = Trials()
        quiet = [trials.stretch(BYPASS, COMMANDS, 1.0) for _ in range(2 * TRIAL)]
        quiet += [trials.stretch(TRACKED, COMMANDS, tracked) for _ in range(TRIAL - 1)]
        assert not any(quiet)
        assert trials.stretch(TRACKED, COMMANDS, tracked) is verdict


@pytest.mark.parametrize("backend", ["auto", "serial", "lanes", "device"])
def test_random_programs_that_change_their_way_by_time(
    request: pytest.FixtureRequest, context: cl.Context, backend: str
) -> None:
    if backend == "device":
        request.getfixturevalue("scheduler")
    expected = random_program(cl.CommandQueue(context), kernels_of(context), 5)
    chance = random.Random(7)
    with inside.trials_say(lambda bypassed: chance.choice((None, not bypassed))):
        queue = acs.Queue(context, backend=backend)
        for _ in range(3):
            found = random_program(queue, kernels_of(context), 5)
            for index, (one, other) in enumerate(zip(found, expected, strict=True)):
                assert np.array_equal(one, other), index
    assert passed(queue)


@pytest.mark.usefixtures("scheduler")
def test_a_bypass_that_paid_goes_on_while_much_is_in_flight(context: cl.Context) -> None:
    """No sample says more there than the times did."""
    with inside.trials_say(lambda bypassed: None if bypassed else True):
        queue, kernels = acs.Queue(context, backend="device"), kernels_of(context)
        a = buffer(queue, np.zeros(N))
        for turn in range(1, 4):
            for _ in range(20):
                kernels["add"](queue, (N,), None, a, np.int32(1))
            assert values_of(queue, a)[0] == 20 * turn
        assert testing.is_bypassing(queue)
        for step in range(3 * bypass.BEHIND):
            kernels["slow"](queue, (1,), None, a, np.int32(step), np.int32(ROUNDS // 10))
        assert testing.is_bypassing(queue)
        queue.finish()


@pytest.mark.usefixtures("scheduler")
def test_a_trial_that_pays_is_kept(context: cl.Context) -> None:
    with inside.trials_say(lambda bypassed: None if bypassed else True):
        queue = acs.Queue(context, backend="device")
        x = cl.array.zeros(queue, N, np.int32)
        for step in range(1, 9):
            for _ in range(20):
                x += 1
            assert (x.get() == 20 * step).all()
        assert passed(queue) > 80
        assert testing.is_bypassing(queue)


def test_another_queue_and_the_runtime_come_behind_a_bypass(
    context: cl.Context, stays: None
) -> None:
    first = acs.Queue(context)
    kernels = kernels_of(context)
    a = buffer(first, np.zeros(N))
    for step in range(8):
        kernels["slow"](first, (1,), None, a, np.int32(step), np.int32(ROUNDS // 10))
    assert testing.has_open_bypass(first.runtime)
    second = acs.Queue(context)  # shares its runtime
    assert not testing.has_open_bypass(first.runtime)
    kernels["add"](second, (N,), None, a, np.int32(1))
    assert values_of(second, a)[0] == 8
    del second
    gc.collect()
    for step in range(8):
        kernels["slow"](first, (1,), None, a, np.int32(step), np.int32(ROUNDS // 10))
    assert testing.has_open_bypass(first.runtime)
    first.runtime.launch(kernels["add"], (N,), None, a, 5)
    first.runtime.finish()
    assert values_of(cl.CommandQueue(context), a)[0] == 12


def test_user_events_and_recordings_end_a_bypass(context: cl.Context, stays: None) -> None:
    queue = acs.Queue(context)
    kernels = kernels_of(context)
    a = buffer(queue, np.zeros(N))

    def some() -> None:
        for _ in range(8):
            kernels["add"](queue, (N,), None, a, np.int32(1))

    some()
    assert testing.has_open_bypass(queue.runtime)
    gate = cl.UserEvent(context)
    event: Any = kernels["add"](queue, (N,), None, a, np.int32(1), wait_for=[gate])
    assert not testing.has_open_bypass(queue.runtime)
    assert event.command_execution_status > 0
    gate.set_status(COMPLETE)
    some()
    assert values_of(queue, a)[0] == 17
    some()
    with pytest.raises(acs.UsageError, match="recording"), queue.runtime.record():
        kernels["add"](queue, (N,), None, a, np.int32(1))
    before = edges(queue)
    some()
    queue.finish()
    assert values_of(queue, a)[0] == 33
    assert edges(queue) >= before


def begin_bypass(queue: acs.Queue, add: Any, a: Any) -> int:
    """Add 1 until these commands bypass the runtime. Return how often."""
    for step in range(1000):
        if testing.is_bypassing(queue):
            return step
        add(queue, (N,), None, a, np.int32(1))
    raise AssertionError("no bypass begins")


def test_a_bypass_ends_without_a_launch_if_all_has_ended(context: cl.Context, stays: None) -> None:
    queue, kernels = acs.Queue(context), kernels_of(context)
    a, engine = buffer(queue, np.zeros(N)), queue.runtime.engine
    added = 0
    for turn in range(1, 6):
        added += begin_bypass(queue, kernels["add"], a)
        event = kernels["add"](queue, (N,), None, a, np.int32(1))
        [queue.finish, event.wait][turn % 2]()
        before, passed = engine.table.number, queue.runtime.stats()["bypassed"]
        with engine.lock:
            engine.end_bypasses()
        assert engine.table.number == before
        assert queue.runtime.stats()["bypassed"] == passed
        added += 1
        assert values_of(queue, a)[0] == added


def test_a_bypass_goes_on_when_all_behind_a_user_event_has_ended(
    context: cl.Context, stays: None
) -> None:
    """That takes no other sample, and no marker."""
    queue, kernels = acs.Queue(context), kernels_of(context)
    a = buffer(queue, np.zeros(N))
    assert queue.bypass is not None
    added = begin_bypass(queue, kernels["add"], a)
    queue.bypass.rest(60.0)
    for _ in range(3):
        for _ in range(bypass.GAINS):
            kernels["add"](queue, (N,), None, a, np.int32(1))
        gate = cl.UserEvent(context)
        kernels["add"](queue, (N,), None, a, np.int32(1), wait_for=[gate])
        assert not testing.is_bypassing(queue)
        gate.set_status(COMPLETE)
        queue.finish()
        assert testing.is_bypassing(queue)
        added += bypass.GAINS + 1
        assert values_of(queue, a)[0] == added


def test_an_exception_while_looking_leaves_no_read_under_way(
    context: cl.Context, whole_samples: None
) -> None:
    """Ctrl-C may come in the Python of a sample, when the core has enqueued a blocking read: the
    program gets its memory back when that is over, not before."""
    with inside.endless_sample():
        _read_while_a_sample_is_interrupted(context)


def _read_while_a_sample_is_interrupted(context: cl.Context) -> None:
    queue, kernels = acs.Queue(context), kernels_of(context)
    x, y = buffer(queue, np.zeros(N)), buffer(queue, np.zeros(N))
    for _ in range(4):  # the core learns all of it
        kernels["slow"](queue, (1,), None, x, np.int32(1), np.int32(100))
        values_of(queue, x)
    for turn in range(1, 101):
        host = np.full(N, -1, np.int32)
        kernels["slow"](queue, (1,), None, x, np.int32(turn), np.int32(ROUNDS))
        cl.enqueue_fill_buffer(queue, y, np.int32(turn), 0, y.size)  # which Python launches
        time.sleep(0.005)  # and which has ended, of which nobody was told
        with testing.interrupted("after ends are noted", KeyboardInterrupt()) as raised:
            try:
                cl.enqueue_copy(queue, host, x)
            except KeyboardInterrupt:
                break
    assert raised
    found = host.copy()
    queue.finish()
    assert np.array_equal(host, found)
    assert np.array_equal(found, values_of(queue, x))
