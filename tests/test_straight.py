"""Sections: commands of an `acs.Queue` that go to the driver's own queue, and come back.

Looks are made short and their verdict fixed, so that programs pass in and out of sections all the
time; a plain queue is the oracle.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

import acs_cl as acs
from acs_cl import core, testing
from acs_cl.queue import sampling
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
    found: int = queue.runtime.stats()["straight"]
    return found


def test_levels_are_those_of_the_longest_chain() -> None:
    chain, apart, late = (core.native.Look() for _ in range(3))
    for number in range(8):
        chain.note(number, (number - 1,), range(8))
        apart.note(number, (), range(8))
        late.note(number, (), (number,))  # the one before had ended when it came
    assert (chain.overlap, apart.overlap, late.overlap) == (1, 8, 1)
    two = core.native.Look()
    for number in range(8):
        two.note(number, (number - 2,), range(8))
    assert two.overlap == 2


def test_the_rest_between_looks_is_bounded_however_long_a_program_runs(
    context: cl.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []
    monkeypatch.setattr(sampling.Section, "rest", lambda self, seconds: rests.append(seconds))
    queue = acs.Queue(context)
    policy = queue._section
    assert policy is not None
    for look in range(2000):  # all of them in vain, and each of a millisecond
        clock = iter([look, look + 0.001])
        monkeypatch.setattr(sampling, "perf_counter", lambda clock=clock: next(clock))
        policy.wanted, policy.began = sampling.LOOKED, sampling.perf_counter()
        assert policy.decides()
    assert rests[:3] == pytest.approx([0.1, 0.2, 0.4])
    assert rests[10:] == [sampling.LONGEST_S] * (len(rests) - 10)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_that_pass_in_and_out(context: cl.Context, often: None, seed: int) -> None:
    expected = random_program(cl.CommandQueue(context), kernels_of(context), seed)
    queue = acs.Queue(context)
    found = random_program(queue, kernels_of(context), seed)
    assert passed(queue)
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert np.array_equal(one, other), index


def test_a_chain_goes_straight(context: cl.Context) -> None:
    queue = acs.Queue(context)
    x = cl.array.zeros(queue, N, np.int32)
    for _ in range(4 * sampling.LOOKED):
        x += 1
    assert passed(queue) > sampling.LOOKED
    assert (x.get() == 4 * sampling.LOOKED).all()


def test_other_queues_that_idle_are_no_hindrance(context: cl.Context) -> None:
    queues = [acs.Queue(context) for _ in range(3)]
    for turn, queue in enumerate(queues, 1):
        x = cl.array.zeros(queue, N, np.int32)
        for _ in range(4 * sampling.LOOKED):
            x += turn
        assert passed(queue) > turn * sampling.LOOKED
        assert (x.get() == 4 * sampling.LOOKED * turn).all()


def test_queues_in_turns_soon_stay_launches(
    context: cl.Context, whole_samples: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands of two queues may overlap, and each ends the section of the other."""
    begun: list[sampling.Section] = []
    begin = sampling.Section.begin
    monkeypatch.setattr(
        sampling.Section, "begin", lambda self, runtime: (begun.append(self), begin(self, runtime))
    )
    queues = [acs.Queue(context) for _ in range(2)]
    arrays = [cl.array.zeros(queue, N, np.int32) for queue in queues]
    turns = 40
    for _ in range(turns):
        for x in arrays:
            for _ in range(2 * sampling.LOOKED):
                x += 1
    assert all((x.get() == turns * 2 * sampling.LOOKED).all() for x in arrays)
    assert 0 < len(begun) < turns / 2


def test_a_backend_by_name_sees_every_command(context: cl.Context, often: None) -> None:
    queue = acs.Queue(context, backend="out_of_order")
    x = cl.array.zeros(queue, N, np.int32)
    for _ in range(100):
        x += 1
    assert not passed(queue)


def test_another_queue_and_the_runtime_come_behind_a_section(
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


def test_user_events_and_recordings_end_a_section(context: cl.Context, stays: None) -> None:
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


def test_an_exception_while_looking_leaves_no_read_under_way(
    context: cl.Context, whole_samples: None
) -> None:
    """Ctrl-C may come in the Python of a look, when the core has enqueued a blocking read: the
    program gets its memory back when that is over, not before."""
    with testing.endless_sample():
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
