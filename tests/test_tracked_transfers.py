"""Blocking reads and writes on an `acs.Queue` that the core launches, beside those of Python.

A queue whose launches Python makes (`by_python`) does the same, and a plain queue is the oracle.
"""

from __future__ import annotations

import ctypes
import gc
import random
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from fuzz.threads import in_threads
from pyopencl.characterize import has_coarse_grain_buffer_svm

import acs_cl as acs
from acs_cl import core, testing
from acs_cl.devices import driver
from acs_cl.queue.calls import TRACKED
from acs_cl.queue.events import QueueEvent
from tests.test_queue import READ_WRITE, ROUNDS, N, buffer, edges, kernels_of, values_of
from tests.test_tracked_kernels import by_python

pytestmark = pytest.mark.usefixtures("without_bypass")


@pytest.fixture
def long_way() -> Iterator[list[str]]:
    """The transfers that Python planned."""
    with inside.planned_commands() as found:
        yield found.transfers


SPIN = """
kernel void spin(global uint *x, volatile global uint *count, uint many)
{ for (uint i = 0; i < many; i++) count[0] = i; x[get_global_id(0)] += 1; }
kernel void spin_all(PLACES, volatile global uint *count, uint many)
{ for (uint i = 0; i < many; i++) count[0] = i; ALL }
"""
MANY = 28
"""Arrays of a kernel: nodes of their bytes, more than a sweep of the test drops."""


@contextmanager
def as_on_a_gpu() -> Iterator[None]:
    """Have the core take each device for one that is not the host's processor."""
    functions, place = driver.functions(), driver.FUNCTIONS.index("clGetDeviceInfo")
    kinds = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)
    real = kind(functions[place])

    def info(device: int, what: int, size: int, value: int, told: int) -> int:
        failed = int(real(device, what, size, value, told))
        if what == cl.device_info.TYPE and value:
            ctypes.c_uint64.from_address(value).value = cl.device_type.GPU
        return failed

    own = kind(info)
    functions[place] = ctypes.cast(own, ctypes.c_void_p).value or 0
    core.native.open_driver(functions)
    try:
        yield
    finally:
        core.native.open_driver(driver.functions())


def test_a_read_waits_for_nothing_that_took_the_place_of_its_neighbours(
    context: cl.Context,
) -> None:
    """Where the driver's blocking read is quickest, what is ahead of it is waited for first. What
    its bytes met before may be swept meanwhile, and other bytes have its place in memory then."""
    if context.devices[0].max_compute_units < 2:
        pytest.skip("two kernels run at one time")
    places = ", ".join(f"global uint *x{at}" for at in range(MANY))
    every = " ".join(f"x{at}[0] += 1;" for at in range(MANY))
    source = SPIN.replace("PLACES", places).replace("ALL", every)
    program = cl.Program(context, source).build()
    spin, spin_all = cl.Kernel(program, "spin"), cl.Kernel(program, "spin_all")
    with as_on_a_gpu():
        queue = acs.Queue(context, backend="lanes")
        engine = queue.runtime.engine
        engine.backend.core_queues.place_by(0, 2)  # each lane in turn
        wide, small, counts = (buffer(queue, np.zeros(4096, np.int32)) for _ in range(3))
        held = cl.Buffer(context, READ_WRITE, 64)
        near, read = np.zeros(64, np.int32), np.zeros(4, np.int32)
        known, fresh = ([cl.Buffer(context, READ_WRITE, 4) for _ in range(MANY)] for _ in range(2))
        for _ in range(3):
            spin(queue, (1,), None, wide, counts, np.uint32(1))
            spin_all(queue, (1,), None, *known, held, np.uint32(1))
            cl.enqueue_copy(queue, near, wide)
            queue.finish()
        others: list[cl.Event] = []

        def other() -> None:
            time.sleep(0.1)  # so that the read waits
            for at in range(2048, 4096, 4):
                before = engine.hazards.spans
                cl.enqueue_copy(queue, wide, small, byte_count=16, dst_offset=4 * at)
                if engine.hazards.spans <= before:
                    break  # the bytes of the read were swept
            others.append(spin_all(queue, (1,), None, *fresh, held, np.uint32(2**32 - 1)))
            queue.flush()

        spin(queue, (1,), None, wide, counts, np.uint32(2**30))
        thread = threading.Thread(target=other)
        thread.start()
        cl.enqueue_copy(queue, read, wide)
        thread.join()
        assert engine.table.state(others[0].acs_number) == "executing"
        queue.finish()
        assert read.tolist() == [4, 0, 0, 0]


@pytest.mark.parametrize(("size", "error"), [("much", TypeError), (-1, OverflowError)])
def test_memory_whose_class_tells_no_size(
    context: cl.Context, size: object, error: type[Exception]
) -> None:
    """A program may inherit from PyOpenCL's classes. What such a class says wrongly is an error of
    the call, and the queue goes on."""
    if not has_coarse_grain_buffer_svm(context.devices[0]):
        pytest.skip("the device has no shared virtual memory")

    class Odd(cl.SVM):
        size = property(lambda self: size)

    array = cl.svm_empty(context, cl.svm_mem_flags.READ_WRITE, N, np.int32)
    queue, read = acs.Queue(context), np.zeros(N, np.int32)
    with pytest.raises(error):
        cl.enqueue_copy(queue, np.ones(N, np.int32), Odd(array))
    cl.enqueue_copy(queue, cl.SVM(array), np.arange(N, dtype=np.int32))
    cl.enqueue_copy(queue, read, cl.SVM(array))
    assert np.array_equal(read, np.arange(N))


# ---- launches ------------------------------------------------------------------------------------


def random_transfers(queue: Any, kernels: Any, seed: int) -> list[bytes]:
    """Whole buffers and parts of them, with kernels in between; all that was read."""
    choose = random.Random(seed)
    rows = [buffer(queue, np.arange(N) + step) for step in range(4)]
    wide = cl.Buffer(queue.context, READ_WRITE, 4 * N)
    rows.append(wide.get_sub_region(2 * N, 2 * N))  # whose half is a buffer of its own
    cl.enqueue_copy(queue, wide, np.zeros(N, np.int32))
    found = []
    for step in range(150):
        which, row = choose.randrange(7), choose.choice(rows)
        room = row.size // 4
        first = choose.randrange(room)
        many = choose.choice([room, choose.randrange(1, room - first + 1)])
        first = 0 if many == room else first
        host = np.full(many, step, np.int32)
        if which == 0:
            cl.enqueue_copy(queue, row, host, dst_offset=4 * first)
            host[:] = -1  # which is the program's own again
        elif which == 1:
            cl.enqueue_copy(queue, host, row, src_offset=4 * first)
            found.append(host.tobytes())
        elif which == 2:
            cl.enqueue_copy(queue, host, row, src_offset=4 * first, is_blocking=False).wait()
            found.append(host.tobytes())
        elif which == 3:
            pairs = np.asfortranarray(np.arange(2 * (room // 2)).reshape(2, -1).astype(np.int32))
            cl.enqueue_copy(queue, row, pairs)
        elif which == 4:
            cl.enqueue_copy(queue, wide, np.full(N, step, np.int32))
        else:
            x, y = choose.sample(rows[:4], 2)
            kernels["mix_in"](queue, (N,), None, x, y, step)
    return [*found, *(values_of(queue, row, row.size // 4).tobytes() for row in rows)]


@pytest.mark.parametrize("backend", ["auto", "out_of_order", "lanes", "serial"])
@pytest.mark.parametrize("seed", range(4))
def test_random_transfers(
    context: cl.Context, long_way: list[str], backend: str, seed: int
) -> None:
    kernels = kernels_of(context)
    expected = random_transfers(cl.CommandQueue(context), kernels, seed)
    del long_way[:]
    ours = acs.Queue(context, backend=backend)
    assert random_transfers(ours, kernels, seed) == expected
    short = len(long_way)
    assert not testing.in_flight(ours.runtime) or ours.finish() is None
    assert random_transfers(by_python(context, backend=backend), kernels, seed) == expected
    assert short < len(long_way) - short, (short, len(long_way))


def test_edges_are_those_of_python(context: cl.Context) -> None:
    """While nothing ends, so that both see the same."""
    kernels, found = kernels_of(context), []
    for make in (acs.Queue, by_python):
        queue = make(context, backend="lanes", lanes=4)
        rows = [buffer(queue, np.zeros(N)) for _ in range(4)]
        kernels["slow"](queue, (N,), None, rows[0], np.int32(0), np.int32(1))
        kernels["mix_in"](queue, (N,), None, rows[0], rows[1], 0)
        queue.finish()
        before = queue.runtime.stats()["edges"]
        choose = random.Random(3)
        with inside.held_by_driver(queue.runtime):
            for row in rows:
                kernels["slow"](queue, (N,), None, row, np.int32(0), np.int32(1))
            for step in range(40):
                first = choose.randrange(N // 2)
                host = np.full(N // 2, step, np.int32)
                cl.enqueue_copy(queue, choose.choice(rows), host, dst_offset=4 * first)
            after = queue.runtime.stats()["edges"]
        found.append({kind: after[kind] - before[kind] for kind in after})
        queue.finish()
    assert found[0] == found[1]
    assert found[0]["WAW"] > 20


def test_a_write_does_not_wait_for_the_device(context: cl.Context, long_way: list[str]) -> None:
    """What it copies is kept until the device has it."""
    queue, kernels = acs.Queue(context, backend="lanes"), kernels_of(context)
    a = buffer(queue, np.zeros(N))
    kernels["slow"](queue, (1,), None, a, np.int32(1), np.int32(1))
    queue.finish()
    del long_way[:]
    with inside.held_by_driver(queue.runtime):
        slow = kernels["slow"](queue, (1,), None, a, np.int32(7), np.int32(1))
        for step in range(50):  # each behind the kernel, with other bytes
            cl.enqueue_copy(queue, a, np.full(N, step, np.int32))
            junk = [np.full(N, -1, np.int32) for _ in range(4)]
        assert testing.in_flight(queue.runtime) == 51
    assert not long_way
    del junk
    assert (values_of(queue, a) == 49).all()
    slow.wait()
    assert testing.is_at_rest(queue.runtime)


def test_offsets_are_numbers_of_any_kind(context: cl.Context, long_way: list[str]) -> None:
    queue, host = acs.Queue(context, backend="lanes"), np.empty(4, np.int32)
    a = buffer(queue, np.zeros(N))
    del long_way[:]
    for kind in (int, np.int32, np.int64, np.uint8):
        cl.enqueue_copy(queue, a, np.full(4, 7, np.int32), dst_offset=kind(8))
        cl.enqueue_copy(queue, host, a, src_offset=kind(12))
        assert host.tolist() == [7, 7, 7, 0]
    assert not long_way


def test_a_long_write_is_copied_only_where_it_would_wait(context: cl.Context) -> None:
    queue, kernels = acs.Queue(context, backend="lanes"), kernels_of(context)
    a, large = buffer(queue, np.zeros(N)), cl.Buffer(context, READ_WRITE, 512 << 10)
    host = np.arange(128 << 10, dtype=np.int32)
    for _ in range(2):
        queue.finish()
        assert cl.enqueue_copy(queue, large, host).get_ward() is host
        assert np.array_equal(values_of(queue, large, host.size), host)
        with inside.held_by_driver(queue.runtime):
            slow = kernels["slow"](queue, (1,), None, a, np.int32(7), np.int32(1))
            assert cl.enqueue_copy(queue, large, host).get_ward() is not host
            assert testing.in_flight(queue.runtime) == 2
            host += 1  # whose old values the device gets
        assert np.array_equal(values_of(queue, large, host.size) + 1, host)
        slow.wait()


def test_events_are_those_of_python(context: cl.Context, long_way: list[str]) -> None:
    queue = acs.Queue(context)
    a, host = buffer(queue, np.arange(N)), np.empty(N, np.int32)
    del long_way[:]
    read = cl.enqueue_copy(queue, host, a)
    written = cl.enqueue_copy(queue, a, host)
    assert not long_way
    for event, kind in (
        (read, cl.command_type.READ_BUFFER),
        (written, cl.command_type.WRITE_BUFFER),
    ):
        assert type(event) is QueueEvent
        assert (event.command_type, event.command_queue) == (kind, queue)
        assert event.command_execution_status == cl.command_execution_status.COMPLETE
    assert read.get_ward() is host
    assert written.get_ward() is None
    assert inside.seen_complete(queue) == testing.launched(queue.runtime)
    cl.enqueue_copy(queue, host, a, wait_for=[read, written])
    cl.enqueue_copy(queue, host, a, src_offset=0, wait_for=None, is_blocking=True)
    assert not long_way


def test_longer_ones_and_those_that_go_on_are_the_cores(
    context: cl.Context, long_way: list[str]
) -> None:
    """Every one that is right; what is wrong with another one, PyOpenCL says."""
    queue = acs.Queue(context)
    large, other = (cl.Buffer(context, READ_WRITE, 128 << 10) for _ in range(2))
    host = np.arange(32 << 10, dtype=np.int32)
    back, by_core = np.empty_like(host), testing.made_by_core(queue.runtime)
    launched = testing.launched(queue.runtime)
    assert cl.enqueue_copy(queue, large, host).get_ward() is host
    cl.enqueue_copy(queue, back, large)
    assert np.array_equal(back, host)
    host += 1
    cl.enqueue_copy(queue, large, host, is_blocking=False).wait()
    cl.enqueue_copy(queue, back, large, is_blocking=False).wait()
    assert np.array_equal(back, host)
    cl.enqueue_copy(queue, other, large)
    cl.enqueue_fill_buffer(queue, large, np.int32(3), 0, large.size)
    assert np.array_equal(values_of(queue, other, host.size), host)
    assert (values_of(queue, large, host.size) == 3).all()
    assert not long_way
    assert testing.launched(queue.runtime) == launched + 8
    assert testing.made_by_core(queue.runtime) == by_core + 8
    back.flags.writeable = False
    kept = back.copy()
    for made in (cl.CommandQueue(context), queue):
        with pytest.raises(ValueError, match="read-only"):
            cl.enqueue_copy(made, back, large)
    assert np.array_equal(back, kept)
    for wrong in ({"src_offset": 64 << 10}, {"src_offset": 1 << 40}):
        with pytest.raises(cl.LogicError):
            cl.enqueue_copy(queue, np.empty(32 << 10, np.int32), large, **wrong)
    assert long_way == ["_enqueue_read_buffer"] * 3
    assert testing.made_by_core(queue.runtime) == by_core + 8


def test_what_the_driver_refuses_is_raised_in_its_call(context: cl.Context) -> None:
    """No lane took it, so that the core has put it into the table, and it goes on from there."""
    queue = acs.Queue(context, backend="out_of_order")
    hidden = cl.Buffer(context, READ_WRITE | cl.mem_flags.HOST_NO_ACCESS, 4 * N)
    host = np.zeros(N, np.int32)
    for transfer in ((host, hidden), (hidden, host)):
        with pytest.raises(cl.LogicError):
            cl.enqueue_copy(cl.CommandQueue(context), *transfer)
        number = testing.launched(queue.runtime)
        with pytest.raises(cl.LogicError):
            cl.enqueue_copy(queue, *transfer)
        assert testing.launched(queue.runtime) == number + 1
    assert testing.is_at_rest(queue.runtime)
    assert values_of(queue, buffer(queue, np.ones(N)))[0] == 1


# ---- what they wait for --------------------------------------------------------------------------


def test_reads_that_go_on_are_waited_for(context: cl.Context) -> None:
    """Once a blocking call came back, so have all before it that the host can look at."""
    queue, kernels = acs.Queue(context, backend="lanes", lanes=4), kernels_of(context)
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.ones(N))
    for transfer in ("read", "write"):
        host = np.zeros(N, np.int32)
        kernels["slow"](queue, (N,), None, a, np.int32(5), np.int32(ROUNDS // 10))
        cl.enqueue_copy(queue, host, a, is_blocking=False)
        if transfer == "read":
            assert values_of(queue, b)[0] == 1
        else:
            cl.enqueue_copy(queue, b, np.ones(N, np.int32))
        assert host[0] == 5
        kernels["slow"](queue, (N,), None, a, np.int32(0), np.int32(1))


@pytest.mark.parametrize("writes", [False, True])
def test_behind_a_command_that_is_held(context: cl.Context, writes: bool) -> None:
    """Another queue's, of the same runtime."""
    first, second = acs.Queue(context), acs.Queue(context)
    assert first.runtime is second.runtime
    kernels = kernels_of(context)
    a = buffer(second, np.zeros(N))
    second.finish()
    gate = cl.UserEvent(context)
    kernels["add"](first, (N,), None, a, np.int32(3), wait_for=[gate])
    opener = threading.Timer(0.05, lambda: gate.set_status(cl.command_execution_status.COMPLETE))
    opener.start()
    if writes:
        cl.enqueue_copy(second, a, np.full(N, 7, np.int32))  # does not wait
    found = values_of(second, a)
    opener.join()
    assert found.tolist() == [7 if writes else 3] * N
    first.finish()
    assert testing.is_at_rest(first.runtime)


def test_a_host_task_may_not_read(context: cl.Context) -> None:
    """It could wait for itself."""
    queue, kernels = acs.Queue(context, backend="lanes"), kernels_of(context)
    a = buffer(queue, np.zeros(N))
    told: list[str] = []
    kernels["slow"](queue, (1,), None, a, np.int32(5), np.int32(ROUNDS))

    def task() -> None:
        try:
            values_of(queue, a)
        except cl.LogicError as error:
            told.append(str(error))

    queue.runtime.call(task).wait()
    assert len(told) == 1
    assert "inside a host task" in told[0]
    queue.finish()


def test_it_is_told_what_failed(context: cl.Context) -> None:
    """Behind an event that failed, a read fails as on a plain queue."""
    queue, kernels = acs.Queue(context, backend="lanes"), kernels_of(context)
    a = buffer(queue, np.zeros(N))
    gate = cl.UserEvent(context)
    kernels["add"](queue, (N,), None, a, np.int32(3), wait_for=[gate])
    gate.set_status(-5)
    with pytest.raises(cl.Error):
        values_of(queue, a)
    b = buffer(queue, np.ones(N))
    assert values_of(queue, b)[0] == 1


def test_memory_of_the_program_meets_itself(context: cl.Context) -> None:
    """A read into memory that a buffer stands on, in either order."""
    if "NVIDIA" in context.devices[0].platform.name:
        pytest.skip("its calls wait for a kernel on such memory, which is held here")
    queue, kernels = acs.Queue(context, backend="lanes", lanes=4), kernels_of(context)
    host = np.zeros(N, np.int32)
    shared = cl.Buffer(context, READ_WRITE | cl.mem_flags.USE_HOST_PTR, hostbuf=host)
    a = buffer(queue, np.full(N, 9))
    for step in range(1, 6):
        with inside.held_by_driver(queue.runtime) as gate:
            kernels["slow"](queue, (N,), None, shared, np.int32(step), np.int32(1))
            before = edges(queue)
            opens = threading.Thread(target=open_behind_an_edge, args=(gate, queue, before))
            opens.start()
            cl.enqueue_copy(queue, host, a)
            opens.join()
        assert edges(queue) > before  # behind the kernel
        assert host[0] == 9


def open_behind_an_edge(gate: testing.Gate, queue: acs.Queue, before: int) -> None:
    """Open a gate once a launch follows another one."""
    testing.wait_until(lambda: edges(queue) > before)
    gate.open()


def test_threads(context: cl.Context) -> None:
    queue = acs.Queue(context)
    wrong: list[int] = []

    def work(which: int) -> None:
        a, host = buffer(queue, np.zeros(N)), np.empty(N, np.int32)
        for step in range(200):
            cl.enqueue_copy(queue, a, np.full(N, which * 1000 + step, np.int32))
            cl.enqueue_copy(queue, host, a)
            if not (host == which * 1000 + step).all():
                wrong.append(step)

    in_threads(work)
    assert not wrong
    queue.finish()
    assert testing.is_at_rest(queue.runtime)


def test_nothing_is_kept(context: cl.Context) -> None:
    """Neither memory of the program, nor what was copied of it."""
    queue = acs.Queue(context)
    a = buffer(queue, np.zeros(N))
    gone = []
    for _ in range(5):
        host = np.arange(N, dtype=np.int32)
        gone.append(weakref.ref(host))
        cl.enqueue_copy(queue, a, host)
        cl.enqueue_copy(queue, host, a)
        del host
    queue.finish()
    gc.collect()
    assert not any(one() is not None for one in gone)
    assert not testing.in_flight(queue.runtime)


@pytest.mark.parametrize("flags", [0, cl.mem_flags.USE_HOST_PTR])
def test_a_short_write_is_looked_behind_only_where_the_program_has_the_memory(
    context: cl.Context, flags: int
) -> None:
    """Its values are copied, and it's not waited for; what the host sees is the target at most."""
    memory = np.zeros(N, np.int32)
    target = cl.Buffer(context, READ_WRITE | flags, memory.nbytes, memory if flags else None)
    arguments = None, target, np.ones(N, np.int32), 0, None, True
    store = acs.Queue(context).runtime.engine.store.reserved
    write = TRACKED["_enqueue_write_buffer"]
    original = SimpleNamespace(__name__="_enqueue_write_buffer")
    bound = core.native.bind_transfer(write, original, arguments, None, store, False, True)
    assert bound is not None
    *_, is_shown, waits, keeps, is_copied = bound
    assert (is_shown, waits, keeps, is_copied) == (bool(flags), False, None, True)
