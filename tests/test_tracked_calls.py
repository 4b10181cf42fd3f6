"""Markers, barriers, wait lists, maps, images and shared memory on an `acs.Queue`, launched by the
core. A plain queue is the oracle, and a queue whose launches Python makes (`by_python`).
"""

# Long because: the random program has each form of each command.

from __future__ import annotations

import gc
import random
import threading
import weakref
from collections.abc import Callable
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from fuzz.threads import in_threads
from pyopencl.characterize import has_coarse_grain_buffer_svm

import acs_cl as acs
from acs_cl import testing
from tests.test_queue import COMPLETE, READ_WRITE, N, buffer, kernels_of, values_of
from tests.test_tracked_kernels import by_python

pytestmark = pytest.mark.usefixtures("without_bypass")

OUT_OF_ORDER = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
PROFILING = cl.command_queue_properties.PROFILING_ENABLE
FORM = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNSIGNED_INT32)
BOTH: Any = cl.map_flags.READ | cl.map_flags.WRITE
WIDTH, HEIGHT = 16, 4
WHERE: dict[str, Any] = {"origin": (0, 0), "region": (WIDTH, HEIGHT)}
EDGE = 16
"""Bytes of a row of a rectangle."""


def by_core(queue: acs.Queue) -> int:
    """How many launches the core has made."""
    return queue.runtime.engine.table.by_core


# ---- random programs -----------------------------------------------------------------------------


class RandomProgram:
    """Some program on some queues, and everything that its host sees. Commands on memory that
    another queue used last wait for that by an event. `orders`: so does every command, and a
    barrier comes now and then, as queues without order need it."""

    def __init__(self, queues: list[Any], kernels: Any, seed: int, orders: bool = False) -> None:
        self.queues, self.orders = queues, orders
        self.kernels: dict[Any, Any] = {(): kernels}
        self.choose = random.Random(seed)
        self.context = queues[0].context
        wide = [buffer(queues[0], np.arange(2 * N) * step) for step in range(3)]
        queues[0].finish()
        self.memory: list[Any] = [one.get_sub_region(0, 4 * N) for one in wide]
        self.memory += [one.get_sub_region(4 * N, 4 * N) for one in wide]
        # PoCL ends the process at copies of images and of rectangles to parts of a buffer
        self.flat = [buffer(queues[0], np.arange(N) - step) for step in range(2)]
        self.memory += self.flat
        self.has_svm = has_coarse_grain_buffer_svm(queues[0].device)
        if self.has_svm:
            for step in range(3):
                self.memory.append(self.shared(step))
        self.has_images = bool(queues[0].device.image_support)
        self.images = [
            cl.create_image(self.context, READ_WRITE, FORM, (WIDTH, HEIGHT))
            for _ in range(2 if self.has_images else 0)
        ]
        self.hosts = [np.zeros(N, np.int32) for _ in range(3)]
        self.last: dict[int, tuple[Any, Any]] = {}
        self.found: list[Any] = []
        for image in self.images:
            cl.enqueue_copy(queues[0], image, self.picture(0), **WHERE)

    def shared(self, step: int) -> Any:
        array = cl.svm_empty(self.context, cl.svm_mem_flags.READ_WRITE, N, np.int32)
        memory = cl.SVM(array)
        cl.enqueue_copy(self.queues[0], memory, np.full(N, step, np.int32))
        return memory

    def picture(self, step: int) -> Any:
        return np.arange(4 * WIDTH * HEIGHT, dtype=np.uint32).reshape(HEIGHT, WIDTH, 4) + step

    def some(self, of: list[Any]) -> Any:
        return of[self.choose.randrange(len(of))]

    def waits(self, queue: Any, *used: Any) -> Any:
        """The events that a command on this queue has to wait for, and some that it need not."""
        found = []
        for one in used:
            before, event = self.last.get(id(one), (queue, None))
            if event is not None and (self.orders or before is not queue):
                found.append(event)
        if self.last and self.choose.random() < 0.2:
            found.append(self.some(list(self.last.values()))[1])
        return found or (None if self.choose.random() < 0.5 else ())

    def kernel(self, name: str, *used: Any) -> Any:
        """A kernel for memory of these kinds: with NVIDIA's driver an argument that was shared
        memory takes no buffer any more."""
        kinds = tuple(isinstance(one, cl.SVM) for one in used)
        if not any(kinds):
            kinds = ()
        if kinds not in self.kernels:
            self.kernels[kinds] = kernels_of(self.context)
        return self.kernels[kinds][name]

    def note(self, queue: Any, event: Any, *used: Any) -> None:
        for one in used:
            self.last[id(one)] = queue, event

    def step(self, step: int) -> None:
        queue, what = self.some(self.queues), self.choose.randrange(12)
        x, y = self.choose.sample(self.memory, 2)
        host = self.some(self.hosts)
        if what <= 2:
            waits = self.waits(queue, x, y)
            mix_in = self.kernel("mix_in", x, y)
            event = mix_in(queue, (N,), None, x, y, step, wait_for=waits)
            self.note(queue, event, x, y)
        elif what == 3:
            waits = self.waits(queue, y)
            slow, rounds = self.kernel("slow", y), np.int32(self.choose.choice([10, 50_000]))
            event = slow(queue, (N,), None, y, np.int32(step), rounds, wait_for=waits)
            self.note(queue, event, y)
        elif what == 4:
            self.copy(queue, x, y)
        elif what == 5:
            waits = self.waits(queue, x, host)
            event = cl.enqueue_copy(queue, host, x, is_blocking=False, wait_for=waits)
            self.note(queue, event, x, host)
        elif what == 6:
            waits = self.waits(queue, x)
            values = np.full(N, step, np.int32)
            event = cl.enqueue_copy(queue, x, values, wait_for=waits)
            values[:] = -1
            self.note(queue, event, x)
        elif what == 7:
            self.mark(queue, y)
        elif what == 8 and self.has_svm and self.choose.random() < 0.5:
            self.map_shared(queue, step)
        elif what == 8:
            self.map(queue, step)
        elif what == 9 and self.has_images:
            self.image(queue, step)
        elif what == 10:
            self.rectangle(queue)
        elif what == 11:
            _, event = self.last.get(id(host), (queue, None))
            if event is not None:
                event.wait()
                self.found.append(host.copy())

    def copy(self, queue: Any, x: Any, y: Any) -> None:
        if isinstance(x, cl.SVM) != isinstance(y, cl.SVM):
            return
        waits = self.waits(queue, x, y)
        event = cl.enqueue_copy(queue, y, x, wait_for=waits)
        self.note(queue, event, x, y)

    def mark(self, queue: Any, y: Any) -> None:
        """A later command on `y` may wait for the marker instead, or comes behind the barrier."""
        waits = self.waits(queue, y)
        kind = self.some([cl.enqueue_marker, cl.enqueue_barrier])
        event = kind(queue, wait_for=waits)
        if waits:
            self.note(queue, event, y)
        if self.choose.random() < 0.2:
            event.wait()

    def map(self, queue: Any, step: int) -> None:
        y = self.some(self.memory[:6])
        at, blocks = 4 * self.choose.randrange(N - 20), self.choose.random() < 0.5
        flags = self.some([BOTH, cl.map_flags.READ])
        waits = self.waits(queue, y)
        mapped, event = cl.enqueue_map_buffer(
            queue, y, flags, at, (20,), np.int32, wait_for=waits, is_blocking=blocks
        )
        if not blocks:
            event.wait()
        self.found.append(mapped.copy())
        if flags is BOTH:
            mapped += step
        event = mapped.base.release(queue) if step % 2 else mapped.base.release()
        self.note(queue, event, y)

    def map_shared(self, queue: Any, step: int) -> None:
        y, blocks = self.some(self.memory[-3:]), self.choose.random() < 0.5
        flags = self.some([BOTH, cl.map_flags.READ])
        waits = self.waits(queue, y)
        mapped = y.map(queue, flags=flags, is_blocking=blocks, wait_for=waits)
        if not blocks:
            mapped.event.wait()
        self.found.append(mapped.array.copy())
        if flags is BOTH:
            mapped.array[step % N] += step
        self.note(queue, mapped.release(queue), y)

    def image(self, queue: Any, step: int) -> None:
        one, other = self.images if self.choose.random() < 0.5 else self.images[::-1]
        y, which = self.some(self.flat), self.choose.randrange(5)
        nowhere: dict[str, Any] = {"src_origin": (0, 0), "dest_origin": (0, 0)}
        if which == 0:
            waits = self.waits(queue, one, other)
            event = cl.enqueue_copy(
                queue, one, other, region=(WIDTH, HEIGHT), wait_for=waits, **nowhere
            )
            self.note(queue, event, one, other)
        elif which == 1:
            waits, picture = self.waits(queue, one), self.picture(step)
            blocks = self.choose.random() < 0.5
            event = cl.enqueue_copy(
                queue, one, picture, is_blocking=blocks, wait_for=waits, **WHERE
            )
            self.note(queue, event, one)
        elif which == 2:
            waits, back = self.waits(queue, one), self.picture(0)
            cl.enqueue_copy(queue, back, one, wait_for=waits, **WHERE)
            self.found.append(back)
        elif which == 3:
            waits, region = self.waits(queue, one, y), (WIDTH, 2)
            event = cl.enqueue_copy(
                queue, y, one, offset=0, origin=(0, 0), region=region, wait_for=waits
            )
            self.note(queue, event, one, y)
        else:
            waits, region = self.waits(queue, one, y), (WIDTH, 2)
            event = cl.enqueue_copy(
                queue, one, y, offset=0, origin=(0, 1), region=region, wait_for=waits
            )
            self.note(queue, event, one, y)

    def rectangle(self, queue: Any) -> None:
        x, y = self.choose.sample(self.flat, 2)
        how: dict[str, Any] = {"region": (EDGE, 5), "src_pitches": (32,), "dst_pitches": (64,)}
        waits = self.waits(queue, x, y)
        event = cl.enqueue_copy(
            queue, y, x, src_origin=(0, 1), dst_origin=(16, 2), wait_for=waits, **how
        )
        self.note(queue, event, x, y)

    def run(self, steps: int = 80) -> list[bytes]:
        for step in range(1, steps):
            self.step(step)
        for queue in self.queues:
            queue.finish()
        last = self.queues[0]
        for one in self.memory:
            back = np.empty(N, np.int32)
            cl.enqueue_copy(last, back, one)
            self.found.append(back)
        for image in self.images:
            back = self.picture(0)
            cl.enqueue_copy(last, back, image, **WHERE)
            self.found.append(back)
        return [one.tobytes() for one in (*self.found, *self.hosts)]


def compare(context: cl.Context, ours: list[Any], seed: int, orders: bool = False) -> None:
    kernels = kernels_of(context)
    plain = [cl.CommandQueue(context) for _ in ours]
    expected = RandomProgram(plain, kernels, seed, orders).run()
    found = RandomProgram(ours, kernels, seed, orders).run()
    assert len(found) == len(expected)
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one == other, index
    runtime = ours[0].runtime
    runtime.finish()
    assert testing.is_at_rest(runtime)


@pytest.mark.parametrize("backend", ["auto", "out_of_order", "lanes", "serial"])
@pytest.mark.parametrize("seed", range(4))
def test_random_programs(context: cl.Context, backend: str, seed: int) -> None:
    rt = acs.Runtime(context.devices[0], context=context, backend=backend)
    compare(context, [acs.Queue(context, runtime=rt)], seed)
    compare(context, [inside.plan_every_command(acs.Queue(context, runtime=rt))], seed)


@pytest.mark.parametrize("backend", ["auto", "out_of_order", "lanes", "serial"])
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_on_queues_of_one_runtime(
    context: cl.Context, backend: str, seed: int
) -> None:
    rt = acs.Runtime(context.devices[0], context=context, backend=backend)
    compare(context, [acs.Queue(context, runtime=rt) for _ in range(3)], seed)


@pytest.mark.parametrize("backend", ["auto", "out_of_order", "lanes"])
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_on_a_queue_without_order(
    context: cl.Context, backend: str, seed: int
) -> None:
    rt = acs.Runtime(context.devices[0], context=context, backend=backend)
    compare(context, [acs.Queue(context, properties=OUT_OF_ORDER, runtime=rt)], seed, orders=True)


@pytest.mark.parametrize("backend", ["auto", "out_of_order", "lanes", "serial", "device"])
@pytest.mark.parametrize("seed", range(3))
def test_random_programs_on_a_queue_that_keeps_times(
    context: cl.Context, backend: str, seed: int
) -> None:
    queue = acs.Queue(context, properties=PROFILING, backend=backend)
    compare(context, [queue], seed)
    assert by_core(queue) > 20


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_that_pass_in_and_out(context: cl.Context, seed: int) -> None:
    with testing.bypass(always=True, again=True):
        queue = acs.Queue(context)
        compare(context, [queue], seed)
    assert queue.runtime.stats()["bypassed"]


def test_threads(context: cl.Context) -> None:
    """Each has memory of its own, on one queue."""
    queue, plain = acs.Queue(context), cl.CommandQueue(context)
    expected = [RandomProgram([plain], kernels_of(context), seed).run(40) for seed in range(4)]
    found: list[list[bytes]] = [[] for _ in range(4)]

    def work(index: int) -> None:
        found[index] = RandomProgram([queue], kernels_of(context), index).run(40)

    in_threads(work)
    assert found == expected


# ---- who makes them ------------------------------------------------------------------------------


def test_the_core_makes_each_of_them(context: cl.Context) -> None:
    queue, kernels = acs.Queue(context, backend="out_of_order"), kernels_of(context)
    other = acs.Queue(context, runtime=queue.runtime)
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.zeros(N))
    for _ in range(4):
        kernels["mix_in"](queue, (N,), None, a, b, 0)
        kernels["mix_in"](other, (N,), None, a, b, 0)
    queue.finish()
    event = kernels["mix_in"](other, (N,), None, a, b, 0)
    made: list[Callable[[], Any]] = [
        lambda: cl.enqueue_marker(queue),
        lambda: cl.enqueue_barrier(queue),
        lambda: cl.enqueue_marker(queue, wait_for=[event]),
        lambda: cl.enqueue_barrier(queue, wait_for=[event]),
        lambda: kernels["mix_in"](queue, (N,), None, a, b, 0),
        lambda: kernels["mix_in"](queue, (N,), None, a, b, 0, wait_for=[event]),
        lambda: cl.enqueue_copy(queue, a, b, wait_for=(event,)),
        lambda: cl.enqueue_copy(queue, a, np.zeros(N, np.int32), wait_for=(event,)),
    ]
    kept = []
    for flags in (BOTH, cl.map_flags.READ):
        made += [
            lambda flags=flags: kept.append(  # type: ignore[misc]
                cl.enqueue_map_buffer(queue, a, flags, 0, (N,), np.int32)[0]
            ),
            lambda: kept.pop().base.release(),
        ]
    if has_coarse_grain_buffer_svm(context.devices[0]):
        own = kernels_of(context)["add"]
        memory = cl.SVM(cl.svm_empty(context, cl.svm_mem_flags.READ_WRITE, N, np.int32))
        allocation = cl.SVMAllocation(context, 4 * N, 0, cl.svm_mem_flags.READ_WRITE)
        for one in (memory, allocation):
            own(queue, (N,), None, one, np.int32(1))
        made += [
            lambda: own(queue, (N,), None, memory, np.int32(1)),
            lambda: own(queue, (N,), None, allocation, np.int32(1)),
            lambda: cl.enqueue_copy(queue, memory, allocation),
            lambda: kept.append(memory.map_rw(queue)),
            lambda: kept.pop().release(),
            lambda: kept.append(memory.map(queue, flags=BOTH, is_blocking=False)),
            lambda: kept.pop().release(queue, wait_for=[event]),
        ]
    if context.devices[0].image_support:
        one, two = (cl.create_image(context, READ_WRITE, FORM, (WIDTH, HEIGHT)) for _ in "ab")
        host, place = np.zeros((HEIGHT, WIDTH, 4), np.uint32), {"src_origin": (0, 0)}
        made += [
            lambda: cl.enqueue_copy(queue, one, host, **WHERE),
            lambda: cl.enqueue_copy(queue, host, one, **WHERE),
            lambda: cl.enqueue_copy(
                queue, two, one, dest_origin=(0, 0), region=(WIDTH, HEIGHT), **place
            ),
            lambda: cl.enqueue_fill_image(queue, one, np.zeros(4, np.uint32), (0, 0), (4, 4)),
        ]
    for turn, make in enumerate(made):
        queue.finish()  # a short write waits in Python for what the host can see end before it
        before = by_core(queue)
        make()
        assert by_core(queue) == before + 1, turn
    queue.finish()
    assert testing.is_at_rest(queue.runtime)


@pytest.mark.parametrize("backend", ["auto", "out_of_order", "lanes", "serial", "device"])
def test_the_core_keeps_times(context: cl.Context, backend: str) -> None:
    """Of each kind of command, also if the driver's own call has waited for it, and whoever asks
    after others came."""
    queue, kernels = acs.Queue(context, properties=PROFILING, backend=backend), kernels_of(context)
    a, b, host = buffer(queue, np.zeros(N)), buffer(queue, np.zeros(N)), np.zeros(N, np.int32)
    mapped = []

    def map_it() -> Any:
        array, event = cl.enqueue_map_buffer(queue, a, BOTH, 0, (N,), np.int32)
        mapped.append(array)
        return event

    made: list[Callable[[], Any]] = [
        lambda: kernels["add"](queue, (N,), None, a, np.int32(1)),
        lambda: cl.enqueue_copy(queue, b, a),
        lambda: cl.enqueue_copy(queue, host, a, is_blocking=False),
        lambda: cl.enqueue_copy(queue, host, b),
        lambda: cl.enqueue_copy(queue, a, np.ones(1 << 21, np.int32)[:N]),
        lambda: cl.enqueue_fill_buffer(queue, a, np.int32(1), 0, 4 * N),
        lambda: cl.enqueue_marker(queue),
        lambda: cl.enqueue_barrier(queue),
        map_it,
        lambda: mapped.pop().base.release(),
    ]
    for make in made:  # the first ones are planned
        make()
    queue.finish()
    events = []
    for turn, make in enumerate(made):
        queue.finish()
        before = by_core(queue)
        events.append(make())
        assert by_core(queue) == before + 1, turn
    queue.finish()
    for one in events:
        times = one.profile
        # Intel's runtime has zeros for what came before a marker's start, on a plain queue, too
        assert times.queued <= times.submit <= times.start <= times.end
        assert times.start > 0
    ends = [one.profile.end for one in events]
    assert ends == sorted(ends)


def test_kinds_and_wards_of_events_are_those_of_python(context: cl.Context) -> None:
    found = []
    for make in (acs.Queue, by_python):
        queue = make(context)
        a = buffer(queue, np.zeros(N))
        mapped, of_map = cl.enqueue_map_buffer(queue, a, BOTH, 0, (N,), np.int32)
        events = [
            of_map, mapped.base.release(), cl.enqueue_marker(queue), cl.enqueue_barrier(queue)
        ]  # fmt: skip
        if context.devices[0].image_support:
            image = cl.create_image(context, READ_WRITE, FORM, (WIDTH, HEIGHT))
            host = np.zeros((HEIGHT, WIDTH, 4), np.uint32)
            events.append(cl.enqueue_copy(queue, image, host, **WHERE))
            assert events[-1].get_ward() is host
            events.append(cl.enqueue_copy(queue, host, image, is_blocking=False, **WHERE))
            assert events[-1].get_ward() is host
        queue.finish()
        found.append([(one.command_type, one.command_execution_status) for one in events])
    assert found[0] == found[1]


# ---- order ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["out_of_order", "lanes"])
def test_a_marker_ends_behind_all_before_it(context: cl.Context, backend: str) -> None:
    """However many markers and launches came before, of its own queue alone."""
    queue, kernels = acs.Queue(context, backend=backend), kernels_of(context)
    other = acs.Queue(context, runtime=queue.runtime)
    memory = [buffer(queue, np.zeros(N)) for _ in range(5)]
    kernels["add"](queue, (N,), None, memory[0], np.int32(1))
    queue.finish()
    with inside.held_by_driver(queue.runtime):
        for one in memory[:4]:
            kernels["add"](queue, (N,), None, one, np.int32(1))
            cl.enqueue_marker(queue)
        launches = [kernels["add"](queue, (N,), None, one, np.int32(1)) for one in memory[:4]]
        marker = cl.enqueue_marker(queue)
        assert marker.command_execution_status != COMPLETE
        kernels["add"](other, (N,), None, memory[4], np.int32(1))
    marker.wait()
    statuses = [one.command_execution_status for one in launches]
    assert statuses == [COMPLETE] * 4
    assert values_of(queue, memory[3])[0] == 2


def test_markers_that_nobody_asks_for_are_behind_what_is_before_them(context: cl.Context) -> None:
    """On a lane in order they are no commands of the driver's then. Whoever asks gets the same."""
    queue, kernels = acs.Queue(context, backend="lanes", lanes=2), kernels_of(context)
    other = acs.Queue(context, runtime=queue.runtime)
    memory = [buffer(queue, np.zeros(N)) for _ in range(2)]
    for turn in range(3):
        for step in range(150):
            kernels["add"](queue, (N,), None, memory[step % 2], np.int32(1))
            if step % 3 == 0:
                cl.enqueue_barrier(queue)
        slow, how = kernels["slow"], (np.int32(turn), np.int32(300_000))
        before = [slow(queue, (N,), None, one, *how) for one in memory]
        marker = cl.enqueue_marker(queue)
        if turn == 1:
            marker.wait()
            assert [one.command_execution_status for one in before] == [COMPLETE] * 2
        kernels["add"](other, (N,), None, memory[0], np.int32(5), wait_for=[marker])
        assert values_of(other, memory[0])[0] == turn + 5
    queue.finish()
    assert testing.is_at_rest(queue.runtime)


@pytest.mark.parametrize("backend", ["out_of_order", "lanes"])
@pytest.mark.parametrize("listed", [False, True])
def test_a_barrier_holds_all_that_comes_on_a_queue_without_order(
    context: cl.Context, backend: str, listed: bool
) -> None:
    """A read behind it that shares no bytes with what is before it tells that all has ended."""
    rt = acs.Runtime(context.devices[0], context=context, backend=backend)
    queue = acs.Queue(context, properties=OUT_OF_ORDER, runtime=rt)
    kernels = kernels_of(context)
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.zeros(N))
    before, after = np.zeros(N, np.int32), np.zeros(N, np.int32)
    queue.finish()
    for step in range(1, 20):
        slow = kernels["slow"]
        last = slow(queue, (N,), None, a, np.int32(step), np.int32(300_000))
        read = cl.enqueue_copy(queue, before, a, is_blocking=False, wait_for=[last])
        made = by_core(queue)
        cl.enqueue_barrier(queue, wait_for=[read] if listed else None)
        cl.enqueue_copy(queue, after, b)
        assert by_core(queue) == made + 2 or step == 1
        assert before[0] == step
    queue.finish()


def test_a_short_write_with_a_wait_list_tells_that_the_list_has_ended(context: cl.Context) -> None:
    """Without one it copies the program's memory, and does not wait."""
    for make in (acs.Queue, by_python):
        first = make(context)
        second = acs.Queue(context, runtime=first.runtime)
        kernels = kernels_of(context)
        a, b = buffer(second, np.zeros(N)), buffer(second, np.zeros(N))
        host = np.zeros(N, np.int32)
        second.finish()
        for step in range(1, 10):
            kernels["slow"](second, (N,), None, a, np.int32(step), np.int32(300_000))
            read = cl.enqueue_copy(second, host, a, is_blocking=False)
            cl.enqueue_copy(first, b, np.full(N, step, np.int32), wait_for=[read])
            assert host[0] == step
        assert values_of(first, b)[0] == 9


@pytest.mark.parametrize("bypass", [False, True])
@pytest.mark.parametrize("backend", ["out_of_order", "lanes", "serial"])
def test_a_rectangle_that_is_written_is_read_in_its_turn(
    context: cl.Context, backend: str, bypass: bool
) -> None:
    """Intel's runtime reads it in a call that blocks, before what is ahead of that has run. So a
    plain queue writes what was there before."""
    with testing.bypass(always=bypass, again=True):
        queue, slow = acs.Queue(context, backend=backend), kernels_of(context)["slow"]
        source, target = buffer(queue, np.zeros(N)), buffer(queue, np.zeros(N))
        where: dict[str, Any] = {"buffer_origin": (16, 2), "host_origin": (16, 2)}
        where |= {"region": (EDGE, 5), "buffer_pitches": (64,), "host_pitches": (64,)}
        for turn in range(1, 9):
            host = np.zeros((N // 16, 16), np.int32)
            queue.finish()
            slow(queue, (N,), None, source, np.int32(turn), np.int32(50_000))
            read = cl.enqueue_copy(queue, host, source, is_blocking=False)
            cl.enqueue_copy(queue, target, host, is_blocking=True, wait_for=[read], **where)
            seen = host.copy()
            read.wait()
            assert (seen == host).all()
            found = values_of(queue, target).reshape(-1, 16)
            assert (found[2:7, 4:8] == host[2:7, 4:8]).all()
            assert host.any()


def test_a_user_event_holds_all_of_them(context: cl.Context) -> None:
    queue, kernels = acs.Queue(context), kernels_of(context)
    a = buffer(queue, np.zeros(N))
    kernels["add"](queue, (N,), None, a, np.int32(0)).wait()
    gate = cl.UserEvent(context)
    kernels["add"](queue, (N,), None, a, np.int32(5), wait_for=[gate])
    marker, barrier = cl.enqueue_marker(queue), cl.enqueue_barrier(queue)
    also = cl.enqueue_barrier(queue, wait_for=[gate, marker])
    assert {one.command_execution_status for one in (marker, barrier, also)} & {COMPLETE} == set()
    opener = threading.Timer(0.05, lambda: gate.set_status(COMPLETE))
    opener.start()
    mapped, _ = cl.enqueue_map_buffer(queue, a, cl.map_flags.READ, 0, (N,), np.int32)
    assert mapped[0] == 5
    mapped.base.release()
    opener.join()
    also.wait()
    queue.finish()
    assert testing.is_at_rest(queue.runtime)


def told_behind_what_failed(queue: acs.Queue) -> list[str]:
    """What a program is told, call by call."""
    context, kernels, told = queue.context, kernels_of(queue.context), list[str]()
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.ones(N))
    gate = cl.UserEvent(context)
    failed = kernels["add"](queue, (N,), None, a, np.int32(3), wait_for=[gate])
    gate.set_status(-5)
    calls: list[Callable[[], Any]] = [
        lambda: cl.enqueue_map_buffer(queue, a, BOTH, 0, (N,), np.int32),
        lambda: cl.enqueue_marker(queue).wait(),
        lambda: cl.enqueue_barrier(queue, wait_for=[failed]).wait(),
        lambda: kernels["add"](queue, (N,), None, b, np.int32(1), wait_for=[failed]).wait(),
        queue.finish,
        lambda: told.append(str(values_of(queue, b)[0])),
    ]
    for call in calls:
        try:
            call()
            told.append("well")
        except cl.Error as error:
            told.append(type(error).__name__)
    return told


def test_behind_what_failed(context: cl.Context) -> None:
    """As on a queue whose launches Python makes."""
    found = told_behind_what_failed(acs.Queue(context, backend="lanes"))
    assert found == told_behind_what_failed(by_python(context, backend="lanes"))


# ---- errors --------------------------------------------------------------------------------------


def test_errors_are_those_of_a_plain_queue(context: cl.Context) -> None:
    queue, plain, kernels = acs.Queue(context), cl.CommandQueue(context), kernels_of(context)
    a = buffer(queue, np.zeros(N))
    foreign = cl.Context([context.devices[0]])
    strange = cl.Buffer(foreign, READ_WRITE, 4 * N)
    wrongs: list[Callable[[Any], Any]] = [
        lambda on: cl.enqueue_marker(on, wait_for=[1]),  # type: ignore[list-item]
        lambda on: cl.enqueue_barrier(on, wait_for=3),  # type: ignore[arg-type]
        lambda on: cl.enqueue_barrier(on, wait_for=[None]),  # type: ignore[list-item]
        lambda on: kernels["add"](on, (N,), None, a, np.int32(1), wait_for=[2]),
        lambda on: cl.enqueue_map_buffer(on, a, BOTH, 0, (1 << 20,), np.int32),
        lambda on: cl.enqueue_map_buffer(on, a, BOTH, 0, (N,), "nonsense"),
        lambda on: cl.enqueue_map_buffer(on, None, BOTH, 0, (N,), np.int32),  # type: ignore[arg-type]
        lambda on: cl.enqueue_map_buffer(on, a, "read", 0, (N,), np.int32),  # type: ignore[arg-type]
        lambda on: cl.enqueue_map_buffer(on, a, BOTH, 0, (N,), np.int32, nonsense=1),  # type: ignore[call-arg]
        lambda on: cl.enqueue_map_buffer(on, strange, BOTH, 0, (N,), np.int32),
        lambda on: cl.enqueue_copy(
            on, a, a, src_origin=(0, 0), dst_origin=(0, 0), region=(8 * N, 9)
        ),
    ]
    if context.devices[0].image_support:
        image = cl.create_image(context, READ_WRITE, FORM, (WIDTH, HEIGHT))
        host = np.zeros((HEIGHT, WIDTH, 4), np.uint32)
        far: dict[str, Any] = {"origin": (0, 0), "region": (WIDTH + 1, HEIGHT)}
        wrongs += [
            lambda on: cl.enqueue_copy(on, image, host, **far),
            lambda on: cl.enqueue_copy(on, host, image, **far),
            lambda on: cl.enqueue_copy(on, host[::2], image, **WHERE),
            lambda on: cl.enqueue_copy(on, a, image, offset=8 * N, **WHERE),
            lambda on: cl.enqueue_copy(on, image, host, origin=(0, 0), region="all"),
        ]
    compared = 0
    for turn, wrong in enumerate(wrongs):
        try:
            wrong(plain)
        except Exception as error:
            expected = error
        else:
            continue
        with pytest.raises(type(expected)) as caught:
            wrong(queue)
        assert type(caught.value) is type(expected), turn
        assert getattr(caught.value, "code", 0) == getattr(expected, "code", 0), turn
        assert caught.traceback[1].path.name == "test_tracked_calls.py", turn
        compared += 1
    assert compared > 8
    queue.finish()
    assert a.map_count == 0
    assert not values_of(queue, a).any()
    assert testing.is_at_rest(queue.runtime)


def test_what_follows_a_held_command_is_refused_in_its_call(context: cl.Context) -> None:
    """The driver sees it later. Memory that was released meanwhile is still there then."""
    first = acs.Queue(context)
    second, kernels = acs.Queue(context, runtime=first.runtime), kernels_of(context)
    a, b = buffer(second, np.zeros(N)), buffer(second, np.zeros(N))
    for _ in range(3):
        kernels["mix_in"](second, (N,), None, a, b, 0)
    second.finish()
    gate = cl.UserEvent(context)
    kernels["add"](first, (N,), None, a, np.int32(3), wait_for=[gate])
    with pytest.raises(cl.LogicError):
        cl.enqueue_fill_buffer(second, a, np.int32(1), 2, 8)
    cl.enqueue_copy(second, b, a)
    part = a.get_sub_region(0, 4 * N)
    cl.enqueue_copy(second, b, part)
    part.release()
    gate.set_status(COMPLETE)
    second.finish()
    assert values_of(second, b)[0] == 3


def test_a_command_that_was_refused_keeps_the_order_of_the_others(context: cl.Context) -> None:
    """It had taken a number, and written nothing."""
    queue, kernels = acs.Queue(context, backend="lanes"), kernels_of(context)
    a = buffer(queue, np.zeros(N))
    add = kernels["add"]
    add(queue, (N,), None, a, np.int32(1)).wait()
    for step in range(1, 5):
        kernels["slow"](queue, (N,), None, a, np.int32(step), np.int32(300_000))
        with pytest.raises(cl.LogicError):
            cl.enqueue_map_buffer(queue, a, BOTH, 0, (1 << 20,), np.int32)
        add(queue, (N,), None, a, np.int32(1))
        assert values_of(queue, a)[0] == step + 1
    assert testing.is_at_rest(queue.runtime)


# ---- memory --------------------------------------------------------------------------------------


def test_shared_memory_lives_while_a_launch_needs_it(context: cl.Context) -> None:
    if not has_coarse_grain_buffer_svm(context.devices[0]):
        pytest.skip("no shared memory")
    queue, kernels = acs.Queue(context, backend="lanes"), kernels_of(context)
    add, flags = kernels["add"], cl.svm_mem_flags.READ_WRITE
    other = cl.SVM(cl.svm_empty(context, flags, N, np.int32))
    for _ in range(3):
        add(queue, (N,), None, other, np.int32(1))
    queue.finish()
    array = cl.svm_empty(context, flags, N, np.int32)
    lives = weakref.ref(array)
    with inside.held_by_driver(queue.runtime):
        before = by_core(queue)
        add(queue, (N,), None, cl.SVM(array), np.int32(1))
        add(queue, (N,), None, other, np.int32(1))
        assert by_core(queue) == before + 2
        del array
        gc.collect()
        assert lives() is not None
    queue.finish()
    gc.collect()
    assert lives() is None


def test_shared_memory_lives_while_a_map_of_it_is_in_flight(context: cl.Context) -> None:
    """And while it is unmapped, though the program has neither it nor an event any more."""
    if not has_coarse_grain_buffer_svm(context.devices[0]):
        pytest.skip("no shared memory")
    queue = acs.Queue(context, backend="lanes")
    array = cl.svm_empty(context, cl.svm_mem_flags.READ_WRITE, N, np.int32)
    memory, lives = cl.SVM(array), weakref.ref(array)
    with inside.held_by_driver(queue.runtime):
        before = by_core(queue)
        mapped = memory.map(queue, flags=BOTH, is_blocking=False)
        mapped.release(queue)
        assert by_core(queue) == before + 2
        del array, memory, mapped
        gc.collect()
        assert lives() is not None
    queue.finish()
    gc.collect()
    assert lives() is None


def test_maps_that_are_dropped_are_unmapped(context: cl.Context) -> None:
    queue, kernels = acs.Queue(context), kernels_of(context)
    a = buffer(queue, np.zeros(N))
    for step in range(20):
        mapped, event = cl.enqueue_map_buffer(queue, a, BOTH, 0, (N,), np.int32)
        mapped[:] = step
        if step % 2:
            mapped.base.release()
            with pytest.raises(cl.LogicError, match="unmapped before"):
                mapped.base.release()
        del mapped, event
        kernels["add"](queue, (N,), None, a, np.int32(1))
        assert values_of(queue, a)[7] == step + 1
    queue.finish()
    assert a.map_count == 0


def test_a_map_that_outlives_its_queue_is_unmapped_before_the_lane_goes(
    context: cl.Context,
) -> None:
    """PyOpenCL unmaps what is dropped. Intel's runtime waits for ever where a queue without order
    goes meanwhile."""
    plain = cl.CommandQueue(context)
    memory, mapped_still = buffer(plain, np.zeros(N)), []

    def told() -> None:
        mapped_still.append(memory.get_info(cl.mem_info.MAP_COUNT))

    for turn in range(20):
        queue = acs.Queue(context, backend="out_of_order")
        mapped, event = cl.enqueue_map_buffer(queue, memory, BOTH, 0, (N,), np.int32)
        mapped[:] = turn
        with inside.when_lanes_end(queue, told):
            del queue, event
            gc.collect()
            del mapped
            gc.collect()
        assert mapped_still == [0] * (turn + 1)
        assert (values_of(plain, memory) == turn).all()


def test_a_map_is_unmapped_on_any_queue(context: cl.Context) -> None:
    queue, plain = acs.Queue(context), cl.CommandQueue(context)
    other = acs.Queue(context, runtime=queue.runtime)
    a = buffer(queue, np.zeros(N))
    for step, on in enumerate((queue, other, plain, None), 1):
        mapped, _ = cl.enqueue_map_buffer(queue, a, BOTH, 0, (N,), np.int32)
        mapped += 1
        mapped.base.release(on).wait()
        assert values_of(queue, a)[3] == step
    assert a.map_count == 0


def test_sub_buffers_and_memory_of_the_program(context: cl.Context) -> None:
    """A map of a part follows what wrote the whole, by either name of the memory."""
    queue, kernels = acs.Queue(context, backend="lanes", lanes=4), kernels_of(context)
    host = np.zeros(2 * N, np.int32)
    shared = cl.Buffer(context, READ_WRITE | cl.mem_flags.USE_HOST_PTR, hostbuf=host)
    half = shared.get_sub_region(4 * N, 4 * N)
    for step in range(1, 8):
        kernels["slow"](queue, (2 * N,), None, shared, np.int32(step), np.int32(100_000))
        mapped, _ = cl.enqueue_map_buffer(queue, half, BOTH, 0, (N,), np.int32)
        assert mapped[0] == step
        mapped[:] = -step
        mapped.base.release(wait_for=[cl.enqueue_marker(queue)])
        assert values_of(queue, shared, 2 * N)[[0, N]].tolist() == [step, -step]
    queue.finish()
