"""Several queues, and queues without order, that bypass their runtime together.

All their commands go to one queue of the driver in order. Plain queues are the oracle. The program
must not see the difference: a command holds no other one that need not wait for it, and whoever
leaves or comes finds all orders kept.
"""

from __future__ import annotations

import gc
import random
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from fuzz.threads import in_threads

import acs_cl as acs
from acs_cl import testing
from acs_cl.queue import bypass
from acs_cl.queue.members import Members
from acs_cl.testing.changing import changed
from tests.test_queue import COMPLETE, ROUNDS, N, buffer, edges, kernels_of, values_of

OUT_OF_ORDER = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
PROFILING = cl.command_queue_properties.PROFILING_ENABLE
READ_WRITE: Any = cl.map_flags.READ | cl.map_flags.WRITE

KINDS: dict[str, list[Any]] = {
    "two": [0, 0],
    "four": [0, 0, 0, 0],
    "without order": [OUT_OF_ORDER],
    "two without order": [OUT_OF_ORDER, OUT_OF_ORDER],
    "mixed": [0, OUT_OF_ORDER, 0],
    "with times": [PROFILING, PROFILING | OUT_OF_ORDER],
}


@pytest.fixture
def stays() -> Iterator[None]:
    """Queues bypass after three launches, and take no other sample."""
    with testing.bypass(always=True):
        yield


@pytest.fixture(params=["often", "stays", "as usual"])
def how(request: pytest.FixtureRequest) -> Iterator[str]:
    """Queues begin and end a bypass all the time, stay in it, or do as they see fit."""
    way: str = request.param
    if way == "as usual":
        yield way
        return
    with testing.bypass(always=True, again=way == "often"):
        yield way


def bypasses(queue: Any) -> int:
    found: int = queue.runtime.stats()["bypassed"]
    return found


class Opened:
    """Queues in a joint bypass, and buffers of zeros. `add` adds 1 to one on one of the queues,
    behind the newest command."""

    def __init__(self, context: cl.Context, kinds: list[Any]) -> None:
        self.queues: list[Any] = [acs.Queue(context, properties=kind) for kind in kinds]
        self.kernels = kernels_of(context)
        self.a, self.b = (buffer(self.queues[0], np.zeros(N)) for _ in range(2))
        self.queues[0].finish()
        self.newest: Any = None
        self.added = 0
        self.begin()

    def begin(self) -> None:
        """Add until these commands bypass the runtime."""
        for turn in range(3000):
            self.add(turn)
            if testing.is_bypassing(self.queues[0]):
                return
        raise AssertionError("no bypass begins")

    def add(self, which: int) -> Any:
        queue = self.queues[which % len(self.queues)]
        waits = [] if self.newest is None else [self.newest]
        kernel = self.kernels["add"]
        self.newest = kernel(queue, (N,), None, self.a, np.int32(1), wait_for=waits)
        self.added += 1
        return self.newest

    def slow(self, which: int, value: int, rounds: int = ROUNDS // 4) -> Any:
        """Set `b[0]` after a long time."""
        queue, kernel = self.queues[which], self.kernels["slow"]
        return kernel(queue, (1,), None, self.b, np.int32(value), np.int32(rounds))

    def sees(self, which: int) -> bool:
        """Whether all that was added is there, as a queue reads it."""
        queue = self.queues[which % len(self.queues)]
        host = np.empty(N, np.int32)
        cl.enqueue_copy(queue, host, self.a, wait_for=[self.newest])
        return bool((host == self.added).all())


# ---- random programs -----------------------------------------------------------------------------


class RandomProgram:
    """A program without races: each command waits for those that it has to follow, in its list."""

    def __init__(self, queues: list[Any], kernels: Any, seed: int) -> None:
        self.queues, self.kernels = queues, kernels
        self.choose = random.Random(seed)
        numbers = np.random.default_rng(seed)
        self.buffers = [buffer(queues[0], numbers.integers(0, 1000, N)) for _ in range(4)]
        queues[0].finish()
        self.writer: list[list[Any]] = [[] for _ in self.buffers]
        self.readers: list[list[Any]] = [[] for _ in self.buffers]
        self.events: list[Any] = []
        self.gates: list[Any] = []
        self.reads: list[tuple[Any, Any]] = []
        self.out: list[Any] = []
        self.other = cl.CommandQueue(queues[0].context)

    def open_gates(self) -> None:
        for gate in self.gates:
            gate.set_status(COMPLETE)
        self.gates.clear()

    def needs(self, reads: list[int], writes: list[int]) -> list[Any]:
        found = [one for index in reads for one in self.writer[index]]
        for index in writes:
            found += self.writer[index] + self.readers[index]
        if self.choose.random() < 0.4 and self.events:  # and one that says nothing new
            found.append(self.choose.choice(self.events))
        if self.choose.random() < 0.06:
            self.gates.append(cl.UserEvent(self.queues[0].context))
            found.append(self.gates[-1])
        self.choose.shuffle(found)
        return found

    def did(self, event: Any, reads: list[int], writes: list[int]) -> None:
        self.events.append(event)
        for index in reads:
            self.readers[index].append(event)
        for index in writes:
            self.writer[index], self.readers[index] = [event], []

    def command(self, step: int) -> None:
        choose = self.choose
        queue, (x, y) = choose.choice(self.queues), choose.sample(range(4), 2)
        one, two = self.buffers[x], self.buffers[y]
        what = choose.randrange(12)
        if what <= 4:
            waits = self.needs([x], [y])
            event = self.kernels["mix_in"](queue, (N,), None, one, two, step, wait_for=waits)
            self.did(event, [x], [y])
        elif what == 5:
            waits, rounds = self.needs([], [x]), np.int32(choose.choice([10, 200_000]))
            slow = self.kernels["slow"]
            event = slow(queue, (N,), None, one, np.int32(step), rounds, wait_for=waits)
            self.did(event, [], [x])
        elif what == 6:
            event = cl.enqueue_copy(queue, one, two, wait_for=self.needs([y], [x]))
            self.did(event, [y], [x])
        elif what == 7:
            waits, pattern = self.needs([], [x]), np.int32([step, -step])
            event = cl.enqueue_fill_buffer(queue, one, pattern, 0, 4 * N, wait_for=waits)
            self.did(event, [], [x])
        elif what == 8:
            host = np.zeros(N, np.int32)
            waits = self.needs([x], [])
            event = cl.enqueue_copy(queue, host, one, wait_for=waits, is_blocking=False)
            self.reads.append((event, host))
            self.did(event, [x], [])
        elif what == 9:
            waits, host = self.needs([], [x]), np.full(N, step, np.int32)
            blocks = choose.random() < 0.5
            if blocks:
                self.open_gates()
            event = cl.enqueue_copy(queue, one, host, wait_for=waits, is_blocking=blocks)
            self.did(event, [], [x])
        elif what == 10:
            waits = self.needs([x], [])
            self.did(cl.enqueue_marker(queue, wait_for=waits), [], [])
            waits = self.needs([x], [y])
            event = cl.enqueue_copy(self.other, two, one, wait_for=waits)  # on a plain queue
            self.other.flush()
            self.did(event, [x], [y])
        else:
            event = cl.enqueue_barrier(queue, wait_for=self.needs([], [x, y]))
            self.did(event, [], [x, y])

    def host(self, step: int) -> None:
        """Something that the host waits for."""
        choose = self.choose
        queue, x = choose.choice(self.queues), choose.randrange(4)
        what = choose.randrange(5)
        waits = self.needs([x], [x])
        self.open_gates()
        if what == 0:
            queue.finish()
        elif what == 1 and self.events:
            choose.choice(self.events).wait()
        elif what == 2:
            host = np.zeros(N, np.int32)
            cl.enqueue_copy(queue, host, self.buffers[x], wait_for=waits)
            self.out.append(host)
        elif what == 3:
            mapped, _ = cl.enqueue_map_buffer(
                queue, self.buffers[x], READ_WRITE, 0, (N,), np.int32, wait_for=waits
            )
            self.out.append(mapped.copy())
            mapped += step
            self.did(mapped.base.release(queue), [], [x])
        else:
            for one in self.queues:
                one.flush()

    def run(self, steps: int) -> list[Any]:
        for step in range(steps):
            self.host(step) if self.choose.random() < 0.12 else self.command(step)
            if self.choose.random() < 0.3:
                self.open_gates()
        self.open_gates()
        for queue in [*self.queues, self.other]:
            queue.finish()
        assert all(event.command_execution_status == COMPLETE for event in self.events)
        for event, host in self.reads:
            event.wait()
            self.out.append(host)
        self.out += [values_of(self.other, one) for one in self.buffers]
        return self.out


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_are_those_of_plain_queues(
    context: cl.Context, how: str, kinds: str, seed: int
) -> None:
    plain = [cl.CommandQueue(context, properties=kind) for kind in KINDS[kinds]]
    expected = RandomProgram(plain, kernels_of(context), seed).run(60)
    queues = [acs.Queue(context, properties=kind) for kind in KINDS[kinds]]
    found = RandomProgram(queues, kernels_of(context), seed).run(60)
    assert len(found) == len(expected)
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert np.array_equal(one, other), index
    if how != "as usual":
        assert bypasses(queues[0])


# ---- who bypasses --------------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", KINDS)
def test_a_chain_over_all_queues_bypasses_the_runtime(context: cl.Context, kinds: str) -> None:
    """With samples of the usual length, and the usual verdict."""
    queues: list[Any] = [acs.Queue(context, properties=kind) for kind in KINDS[kinds]]
    kernels, a, newest = kernels_of(context), buffer(queues[0], np.zeros(N)), []
    many = 6 * bypass.SAMPLED
    for turn in range(many):
        queue = queues[turn % len(queues)]
        newest = [kernels["add"](queue, (N,), None, a, np.int32(1), wait_for=newest)]
    newest[0].wait()
    assert bypasses(queues[0]) > 2 * bypass.SAMPLED
    assert (values_of(queues[0], a) == many).all()


def test_the_only_queue_in_order_keeps_its_own_driver_queue(
    context: cl.Context, stays: None
) -> None:
    queue, kernels = acs.Queue(context), kernels_of(context)
    a = buffer(queue, np.zeros(N))
    for _ in range(8):
        kernels["add"](queue, (N,), None, a, np.int32(1))
    assert testing.is_bypassing(queue)
    assert queue.bypass is not None
    assert not queue.bypass.is_joint


def test_where_the_driver_makes_no_more_queues_commands_stay_tracked(
    context: cl.Context, stays: None
) -> None:
    queues, kernels = [acs.Queue(context) for _ in range(2)], kernels_of(context)
    a = buffer(queues[0], np.zeros(N))
    with changed(Members, "_make", lambda _: False):
        for turn in range(100):
            kernels["add"](queues[turn % 2], (N,), None, a, np.int32(1))
    assert bypasses(queues[0]) == 0
    assert (values_of(queues[0], a) == 100).all()


@pytest.mark.parametrize("kinds", [[0, 0], [OUT_OF_ORDER]], ids=["two", "without order"])
def test_what_runs_at_the_same_time_never_bypasses(context: cl.Context, kinds: list[Any]) -> None:
    queues: list[Any] = [acs.Queue(context, properties=kind) for kind in kinds]
    kernels = kernels_of(context)
    memory = [buffer(queues[0], np.zeros(N)) for _ in range(2)]
    queues[0].finish()
    many = bypass.SAMPLED + 2 * bypass.BEHIND
    for turn in range(many):
        for which, one in enumerate(memory):
            queue = queues[which % len(queues)]
            kernels["slow"](queue, (1,), None, one, np.int32(turn), np.int32(ROUNDS // 40))
    for queue in queues:
        queue.finish()
    assert bypasses(queues[0]) == 0
    assert [values_of(queues[0], one)[0] for one in memory] == [many - 1] * 2


@pytest.mark.parametrize("kinds", [[0, 0], [OUT_OF_ORDER]], ids=["two", "without order"])
def test_a_program_that_begins_to_run_things_at_the_same_time_leaves(
    context: cl.Context, kinds: list[Any]
) -> None:
    """Although little is in flight at a time: two kernels, and the host waits for both."""
    with testing.bypass(always=True, short=False):
        queues: list[Any] = [acs.Queue(context, properties=kind) for kind in kinds]
        kernels, newest = kernels_of(context), []
        memory = [buffer(queues[0], np.zeros(N)) for _ in range(2)]
        queues[0].finish()
        assert queues[0].bypass is not None
        queues[0].bypass.most_apart = 3  # as without `testing.bypass`
        for turn in range(6 * bypass.SAMPLED):
            queue = queues[turn % len(queues)]
            newest = [kernels["add"](queue, (N,), None, memory[0], np.int32(1), wait_for=newest)]
            if turn % 4 == 3:
                newest[0].wait()
        assert testing.is_bypassing(queues[0])
        queues[0].bypass.rest(-1.0)  # the next sample is due
        for turn in range(bypass.BEHIND):
            events = [
                kernels["slow"](
                    queues[which % len(queues)], (1,), None, one, np.int32(turn),
                    np.int32(ROUNDS // 20),
                )
                for which, one in enumerate(memory)
            ]  # fmt: skip
            for event in events:
                event.wait()
            if not testing.is_bypassing(queues[0]):
                break
        assert not testing.is_bypassing(queues[0])


def test_a_chain_of_slow_commands_stays(context: cl.Context) -> None:
    """Although each comes from another queue while the one before it runs."""
    with testing.bypass(always=True, short=False):
        of = Opened(context, [0, 0])
        assert of.queues[0].bypass is not None
        of.queues[0].bypass.most_apart = 3
        of.queues[0].bypass.rest(-1.0)
        newest: Any = of.newest
        for turn in range(4 * bypass.BEHIND):
            newest = of.kernels["slow"](
                of.queues[turn % 2], (1,), None, of.b, np.int32(turn), np.int32(ROUNDS // 100),
                wait_for=[newest],
            )  # fmt: skip
            if turn % 4 == 3:
                newest.wait()
        assert testing.is_bypassing(of.queues[0])


# ---- what the program sees -----------------------------------------------------------------------


@pytest.mark.parametrize("kinds", ["two", "mixed", "without order"])
def test_an_event_knows_the_queue_of_its_command(
    context: cl.Context, stays: None, kinds: str
) -> None:
    of = Opened(context, KINDS[kinds])
    host, kept = np.empty(N, np.int32), []
    for turn in range(40):
        queue = of.queues[turn % len(of.queues)]
        kept.append((queue, of.add(turn)))
        kept.append((queue, cl.enqueue_copy(queue, host, of.a, is_blocking=False)))
        kept.append((queue, cl.enqueue_marker(queue)))
        del kept[: random.Random(turn).randrange(4)]  # the driver makes others in their place
    assert testing.is_bypassing(of.queues[0])
    for queue, event in kept:
        assert event.command_queue is queue
        assert event.get_info(cl.event_info.COMMAND_QUEUE) is queue
        again = cl.Event.from_int_ptr(event.int_ptr)
        assert again.command_queue == queue
    plain = cl.CommandQueue(context)
    assert cl.enqueue_marker(plain).command_queue == plain
    name = cl.Event.command_queue
    event = kept[-1][1]
    of.queues.clear()
    kept.clear()
    del queue
    gc.collect()
    assert isinstance(event.command_queue, cl.CommandQueue)
    del event, of, again
    gc.collect()
    assert cl.Event.command_queue is not name


def test_flush_in_bypass_is_no_call_of_python(context: cl.Context, stays: None) -> None:
    of = Opened(context, [0, 0])
    for queue in of.queues:
        of.add(0)
        calls: list[str] = []
        sys.setprofile(lambda frame, event, _: calls.append(event))  # noqa: B023
        try:
            queue.flush()
        finally:
            sys.setprofile(None)
        assert "call" not in calls, calls
    in_threads(lambda index: of.queues[index].flush(), 2)
    assert of.sees(0)


def test_times_are_those_of_the_driver(context: cl.Context, stays: None) -> None:
    of = Opened(context, [PROFILING, PROFILING | OUT_OF_ORDER])
    events = [of.add(turn) for turn in range(6)]
    of.queues[0].finish()
    ends = [event.profile.end for event in events]
    assert ends == sorted(ends)
    assert all(event.profile.start <= event.profile.end for event in events)


def test_a_command_that_waits_for_others_holds_no_other_queue(
    context: cl.Context, stays: None
) -> None:
    """It waits for a command on a plain queue, which waits for the program."""
    for kinds in ([0, 0], [OUT_OF_ORDER], [0, OUT_OF_ORDER]):
        of = Opened(context, kinds)
        plain, gate = cl.CommandQueue(context), cl.UserEvent(context)
        last_resort = threading.Timer(20, lambda gate=gate: gate.set_status(COMPLETE))
        last_resort.start()
        theirs = cl.enqueue_marker(plain, wait_for=[gate])
        plain.flush()
        one, two = of.queues[0], of.queues[-1]
        held = of.kernels["add"](one, (N,), None, of.b, np.int32(5), wait_for=[theirs])
        if one is two:
            of.add(0).wait()
        else:
            of.add(1)
            two.finish()
        assert gate.command_execution_status != COMPLETE
        assert held.command_execution_status != COMPLETE
        last_resort.cancel()
        gate.set_status(COMPLETE)
        held.wait()
        assert values_of(two, of.b)[0] == 5
        assert of.sees(0)
        of.queues.clear()
        gc.collect()


def test_lists_that_name_old_commands_and_those_of_plain_queues(
    context: cl.Context, stays: None
) -> None:
    of = Opened(context, [0, 0])
    plain = cl.CommandQueue(context)
    kept = [of.add(turn) for turn in range(100)]  # more than are known at a time
    theirs = cl.enqueue_marker(plain)
    theirs.wait()
    for turn in range(8):
        some = random.Random(turn).sample(kept, 5)
        of.newest = of.kernels["add"](
            of.queues[turn % 2], (N,), None, of.a, np.int32(1), wait_for=[theirs, *some, of.newest]
        )
        of.added += 1
    assert testing.is_bypassing(of.queues[0])
    assert of.sees(1)


# ---- orders, where a bypass ends -----------------------------------------------------------------


def launch_of_the_runtime(of: Opened) -> None:
    of.queues[0].runtime.launch(of.kernels["add"], (N,), None, of.a, 0)


def another_queue(of: Opened) -> None:
    of.queues.append(acs.Queue(of.queues[0].context))


def user_event(of: Opened) -> None:
    gate = cl.UserEvent(of.queues[0].context)
    of.kernels["add"](of.queues[0], (N,), None, of.a, np.int32(0), wait_for=[gate])
    gate.set_status(COMPLETE)


def another_thread(of: Opened) -> None:
    def work(_: int) -> None:
        of.kernels["add"](of.queues[0], (N,), None, of.a, np.int32(0))

    in_threads(work, 1)


def finish_of_the_runtime(of: Opened) -> None:
    of.queues[0].runtime.finish()


def recording(of: Opened) -> None:
    with of.queues[0].runtime.record():
        pass


ENDS = [
    launch_of_the_runtime, another_queue, user_event, another_thread, finish_of_the_runtime,
    recording,
]  # fmt: skip


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("kinds", ["two", "mixed", "without order"])
def test_all_that_comes_is_behind_a_bypass(
    context: cl.Context, stays: None, ends: Callable[[Opened], None], kinds: str
) -> None:
    for which in range(len(KINDS[kinds])):
        of = Opened(context, KINDS[kinds])
        event = of.slow(0, 7)
        ends(of)
        assert not testing.is_bypassing(of.queues[0])
        queue = of.queues[which]
        if which == 0:
            assert values_of(queue, of.b)[0] == 7
        elif which == 1:
            of.kernels["add"](queue, (N,), None, of.b, np.int32(1), wait_for=[event])
            queue.finish()
            assert values_of(cl.CommandQueue(context), of.b)[0] == 8
        else:
            mapped, _ = cl.enqueue_map_buffer(queue, of.b, READ_WRITE, 0, (N,), np.int32)
            assert mapped[0] == 7
            mapped.base.release()
        assert of.sees(which)
        of.queues.clear()
        gc.collect()


@pytest.mark.parametrize("kinds", [[0, 0, 0], [0, OUT_OF_ORDER, 0]], ids=["in order", "mixed"])
@pytest.mark.parametrize("way", ["finish", "marker", "read"])
def test_each_queue_waits_for_its_own_commands_when_the_bypass_has_ended(
    context: cl.Context, stays: None, kinds: list[Any], way: str
) -> None:
    """Its commands of the bypass are no launches, and one launch stands for those of all."""
    for which in range(3):
        of = Opened(context, kinds)
        for turn in range(3):
            of.add(turn)
        event = of.slow(which, 9)
        launch_of_the_runtime(of)
        queue = of.queues[which]
        if way == "finish":
            queue.finish()
        elif way == "marker":
            cl.enqueue_marker(queue).wait()
        else:
            cl.enqueue_copy(queue, np.empty(N, np.int32), of.b)
        assert event.command_execution_status == COMPLETE
        of.queues.clear()
        gc.collect()


def test_tracked_commands_are_before_a_bypass(context: cl.Context, stays: None) -> None:
    """Of any queue, whether lists name them or not."""
    queues = [acs.Queue(context) for _ in range(2)]
    kernels, a = kernels_of(context), buffer(queues[0], np.zeros(N))
    queues[0].finish()
    for turn in range(1, 6):
        queues[0].runtime.finish()  # it ends the bypass
        with inside.held_by_driver(queues[0].runtime):
            event = kernels["slow"](queues[0], (1,), None, a, np.int32(turn), np.int32(9))
            many = 0
            while not testing.is_bypassing(queues[0]):
                kernels["add"](queues[0], (1,), None, a, np.int32(10))
                many += 1
            last = kernels["add"](queues[1], (1,), None, a, np.int32(5), wait_for=[event])
            assert testing.is_bypassing(queues[1])
            assert last.command_execution_status != COMPLETE
        assert values_of(queues[1], a)[0] == turn + 10 * many + 5


@pytest.mark.parametrize("by_python", [False, True])
def test_a_tracked_command_that_waits_for_one_in_bypass_is_not_held(
    context: cl.Context, stays: None, by_python: bool
) -> None:
    """The launch that stands for the bypass orders them, and the host need not."""
    of = Opened(context, [0, OUT_OF_ORDER])
    queue, joint = of.queues[1], of.queues[0].bypass
    if by_python:
        inside.plan_every_command(queue)
    gate = cl.UserEvent(context)
    timer = threading.Timer(20, lambda: gate.set_status(COMPLETE))
    timer.start()
    cl.enqueue_barrier(joint.native, wait_for=[gate])
    event = of.slow(0, 3, 1)
    queue.runtime.launch(of.kernels["add"], (N,), None, of.a, 0)
    calls: list[str] = []
    before = edges(queue)
    sys.setprofile(lambda frame, *_: calls.append(frame.f_code.co_name))
    try:
        marker: Any = cl.enqueue_marker(queue, wait_for=[event])
    finally:
        sys.setprofile(None)
    assert ("_command" in calls) == by_python
    assert not queue.runtime.engine.foreign
    assert edges(queue) == before + 1
    assert event.command_execution_status != COMPLETE
    timer.cancel()
    gate.set_status(COMPLETE)
    marker.wait()
    assert event.command_execution_status == COMPLETE
    assert of.sees(1)


def test_markers_and_barriers_of_a_queue_without_order(context: cl.Context, stays: None) -> None:
    of = Opened(context, [OUT_OF_ORDER, 0])
    first = of.queues[0]
    for turn in range(1, 5):
        slow = of.slow(0, turn, ROUNDS // 10)
        event = cl.enqueue_marker(first) if turn % 2 else cl.enqueue_barrier(first)
        event.wait()
        assert slow.command_execution_status == COMPLETE
        of.slow(0, 10 * turn, ROUNDS // 10)
        cl.enqueue_barrier(first)
        last = of.kernels["add"](first, (1,), None, of.b, np.int32(1))
        last.wait()
        assert testing.is_bypassing(first)
        assert values_of(of.queues[1], of.b)[0] == 10 * turn + 1


# ---- queues that come and go ---------------------------------------------------------------------


def test_a_queue_that_is_gone_leaves_the_others_in_bypass(context: cl.Context, stays: None) -> None:
    of = Opened(context, [0, 0, OUT_OF_ORDER])
    while len(of.queues) > 1:
        of.slow(0, len(of.queues), ROUNDS // 10)
        of.queues.pop(0)
        gc.collect()
        assert testing.is_bypassing(of.queues[0])
        of.newest = of.kernels["add"](of.queues[0], (N,), None, of.a, np.int32(1))
        of.added += 1
        host = np.empty(1, np.int32)
        cl.enqueue_copy(of.queues[0], host, of.b)
        assert host[0] == len(of.queues) + 1
    runtime = of.queues[0].runtime
    assert of.sees(0)
    of.queues.clear()
    gc.collect()
    assert not testing.has_open_bypass(runtime)


def test_queues_that_are_made_and_dropped_take_no_others_place(
    context: cl.Context, stays: None
) -> None:
    of = Opened(context, [0, 0])
    for turn in range(12):
        more: Any = acs.Queue(context, properties=OUT_OF_ORDER if turn % 2 else 0)
        for _ in range(2 * bypass.GAINS):
            event = of.kernels["add"](more, (N,), None, of.a, np.int32(1), wait_for=[of.newest])
            of.newest, of.added = event, of.added + 1
        del more, event
        gc.collect()
        of.add(turn)
        assert of.sees(turn)
    assert bypasses(of.queues[0]) > 6 * 2 * bypass.GAINS


def test_a_queue_whose_block_has_ended_warns_and_the_others_go_on(
    context: cl.Context, stays: None
) -> None:
    of = Opened(context, [0, 0])
    with of.queues[0]:
        of.add(0)
    before = bypasses(of.queues[1])
    of.add(1)
    assert bypasses(of.queues[1]) == before + 1
    with pytest.warns(cl.CommandQueueUsedAfterExit):
        of.add(0)
    of.queues.pop(0)
    of.begin()
    assert of.sees(0)


def test_a_queue_whose_handle_was_given_out_comes_back(context: cl.Context, stays: None) -> None:
    """Another library may have put commands on its driver's queue, so the next one is tracked."""
    of = Opened(context, [0, 0])
    of.add(1)
    before = testing.launched(of.queues[0].runtime)
    assert of.queues[0].int_ptr
    of.add(1)
    assert testing.launched(of.queues[0].runtime) == before
    of.add(0)
    assert testing.launched(of.queues[0].runtime) > before
    of.begin()
    assert of.queues[0].bypass is not None
    assert of.queues[0].bypass.takes(of.queues[0])
    assert of.sees(0)


def test_a_bypass_that_begins_leaves_out_a_queue_whose_handle_was_given_out(
    context: cl.Context, stays: None
) -> None:
    of = Opened(context, [0, 0])
    first = of.queues.pop(0)
    assert first.int_ptr
    launch_of_the_runtime(of)
    of.begin()
    before = testing.launched(first.runtime)
    of.add(0)
    assert testing.launched(first.runtime) == before
    of.kernels["add"](first, (N,), None, of.a, np.int32(0))
    assert testing.launched(first.runtime) > before
    of.begin()
    before = testing.launched(first.runtime)
    of.kernels["add"](first, (N,), None, of.a, np.int32(0))
    assert testing.launched(first.runtime) == before
    assert of.sees(0)


def test_no_bypass_begins_beside_launches_of_the_runtime(context: cl.Context, stays: None) -> None:
    """Commands may overlap with these."""
    of = Opened(context, [0, 0])
    launch_of_the_runtime(of)
    of.queues[0].runtime.finish()
    with inside.held_by_driver(of.queues[0].runtime):
        of.queues[0].runtime.launch(of.kernels["add"], (N,), None, of.b, 0)
        for turn in range(50):
            of.add(turn)
            assert not testing.is_bypassing(of.queues[0])
    of.queues[0].runtime.finish()
    of.begin()
    assert of.sees(1)


@pytest.mark.parametrize("finishes", [False, True])
def test_arrays_that_are_dropped_are_unmapped_before_any_queues_next_command(
    context: cl.Context, stays: None, finishes: bool
) -> None:
    of = Opened(context, [0, 0])
    before = testing.launched(of.queues[0].runtime)
    for turn in range(1, 9):
        of.add(turn)
        mapped, _ = cl.enqueue_map_buffer(
            of.queues[turn % 2], of.a, READ_WRITE, 0, (N,), np.int32, wait_for=[of.newest]
        )
        assert mapped[0] == of.added
        mapped += 1
        of.added += 1
        del mapped
        if finishes:
            of.queues[1 - turn % 2].finish()
        of.add(turn + 1)
        assert testing.is_bypassing(of.queues[0])
        assert not any(queue.unmaps for queue in of.queues)
    assert testing.launched(of.queues[0].runtime) == before
    assert of.sees(1)


# ---- threads, runtimes and contexts --------------------------------------------------------------


def test_a_joint_bypass_takes_commands_of_one_thread(context: cl.Context, stays: None) -> None:
    """Threads with queues of their own are meant to run at the same time."""
    of = Opened(context, [0, 0])
    before = testing.launched(of.queues[0].runtime)
    another_thread(of)
    assert testing.launched(of.queues[0].runtime) > before
    assert not testing.is_bypassing(of.queues[0])
    assert of.sees(1)


def test_threads_that_have_queues_of_their_own(context: cl.Context, stays: None) -> None:
    threads, many = 3, 200
    queues = [acs.Queue(context) for _ in range(threads)]
    shared = buffer(queues[0], np.zeros(N))
    memory = [buffer(queues[0], np.zeros(N)) for _ in range(threads)]
    queues[0].finish()

    def work(index: int) -> None:
        add, queue, newest = kernels_of(context)["add"], queues[index], []
        for turn in range(many):
            newest = [add(queue, (N,), None, memory[index], np.int32(1), wait_for=newest)]
            if turn % 10 == 0:
                queue.flush()
                add(queue, (N,), None, shared, np.int32(1))  # hazards between queues are kept
        queue.finish()
        assert newest[0].command_execution_status == COMPLETE
        assert (values_of(queue, memory[index]) == many).all()

    in_threads(work, threads)
    assert (values_of(queues[1], shared) == threads * many // 10).all()


def test_queues_of_two_contexts_have_a_bypass_each(device: cl.Device, stays: None) -> None:
    both = [Opened(cl.Context([device]), [0, 0]) for _ in range(2)]
    assert both[0].queues[0].bypass is not both[1].queues[0].bypass
    for turn in range(20):
        for of in both:
            assert of.add(turn).command_queue is of.queues[turn % 2]
    assert all(testing.is_bypassing(of.queues[1]) for of in both)
    assert all(of.sees(1) for of in both)


def test_queues_of_two_runtimes_of_a_context_wait_for_each_other(
    context: cl.Context, stays: None
) -> None:
    of = Opened(context, [0, 0])
    other: Any = acs.Queue(context, backend="serial")
    for turn in range(12):
        of.slow(turn % 2, turn, ROUNDS // 20)
        event = of.kernels["add"](of.queues[turn % 2], (1,), None, of.b, np.int32(1))
        last = of.kernels["add"](other, (1,), None, of.b, np.int32(1), wait_for=[event])
        cl.enqueue_marker(of.queues[1 - turn % 2], wait_for=[last]).wait()
        assert values_of(cl.CommandQueue(context), of.b)[0] == turn + 2
        of.add(turn)
    assert of.sees(0)
    assert bypasses(of.queues[0])


def test_a_queue_that_may_not_bypass_ends_the_bypass_of_others(
    context: cl.Context, stays: None
) -> None:
    of = Opened(context, [0, 0])
    tracked: Any = acs.Queue(context, bypass=False)
    assert tracked.runtime is of.queues[0].runtime
    for turn in range(6):
        of.begin()
        of.slow(turn % 2, turn)
        of.kernels["add"](tracked, (1,), None, of.b, np.int32(1))
        assert not testing.is_bypassing(of.queues[1])
        assert values_of(tracked, of.b)[0] == turn + 1
    assert of.sees(0)


# ---- transfers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("waits_first", [False, True])
def test_transfers_of_several_queues(context: cl.Context, stays: None, waits_first: bool) -> None:
    of = Opened(context, [0, 0, OUT_OF_ORDER])
    assert of.queues[0].bypass is not None
    of.queues[0].bypass.waits_first = waits_first
    host, back = np.empty(N, np.int32), np.empty(N, np.int32)
    for turn in range(12):
        one, two, three = of.queues[turn % 3], of.queues[(turn + 1) % 3], of.queues[(turn + 2) % 3]
        host[:] = turn
        event = cl.enqueue_copy(one, of.b, host, is_blocking=turn % 2 == 0)
        if turn % 2:
            event.wait()
        host[:] = -1
        event = of.kernels["add"](two, (N,), None, of.b, np.int32(1), wait_for=[event])
        read = cl.enqueue_copy(three, back, of.b, wait_for=[event], is_blocking=turn % 4 < 2)
        if turn % 4 >= 2:
            read.wait()
        assert (back == turn + 1).all()
        assert read.command_queue is three
    assert testing.is_bypassing(of.queues[0])


def test_arrays_of_pyopencl_on_two_queues(context: cl.Context, stays: None) -> None:
    queues = [acs.Queue(context) for _ in range(2)]
    x = cl.array.to_device(queues[0], np.arange(N, dtype=np.int32))
    for turn in range(40):
        x = x.with_queue(queues[turn % 2])
        x += 1
        if turn % 8 == 0:
            assert (x.get() == np.arange(N) + turn + 1).all()
    assert bypasses(queues[0]) > 20
    assert (x.get() == np.arange(N) + 40).all()
