"""Checks on an `acs.Queue`: its transfers are commands of PyOpenCL's, and its memory is foreign."""

from __future__ import annotations

import random
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

import acs_cl as acs
from acs_cl.errors import CheckError, CheckWarning
from tests.test_queue import COMPLETE, READ_WRITE, SOURCE, N, kernels_of

LAUNCHES = 700
"""Some batches of `order`."""

BACKENDS = "serial", "out_of_order", "lanes", "device", "auto", "emulated"


def program(queue: Any, kernels: Any, seed: int) -> list[bytes]:
    """Kernels, and transfers of all kinds between their buffers, others and memory of the program,
    which the program goes on with."""
    choose = random.Random(seed)
    rows = [cl.Buffer(queue.context, READ_WRITE, 4 * N) for _ in range(5)]
    aside = [cl.Buffer(queue.context, READ_WRITE, 4 * N) for _ in range(2)]
    for row in (*rows, *aside):
        cl.enqueue_copy(queue, row, np.arange(N, dtype=np.int32))
    found, host, given = [], np.zeros(N, np.int32), np.zeros(N, np.int32)
    for step in range(LAUNCHES):
        which, row = choose.randrange(12), choose.choice(rows)
        if which == 0:
            cl.enqueue_copy(queue, host, row)
            found.append(host.tobytes())
            host[:] = step  # the program's own again
        elif which == 1:
            host[:] = step
            cl.enqueue_copy(queue, row, host)
            host[:] = -1
        elif which == 2:
            given[:] = step
            cl.enqueue_copy(queue, choose.choice(aside), given, is_blocking=False).wait()
            given[:] = -1
        elif which == 3:
            cl.enqueue_copy(queue, row, choose.choice(aside))
        elif which == 4:
            cl.enqueue_copy(queue, choose.choice(aside), row)
        elif which == 5:
            cl.enqueue_fill_buffer(queue, choose.choice(aside), np.int32(step), 0, 4 * N)
        elif which == 6:
            mapped, _ = cl.enqueue_map_buffer(queue, row, cl.map_flags.WRITE, 0, (N,), np.int32)
            mapped[3] = step
            mapped.base.release(queue)
        else:
            x, y = choose.sample(rows, 2)
            kernels["mix_in"](queue, (N,), None, x, y, step)
        if which > 1:
            assert (host == host[0]).all(), "somebody wrote into memory of the program"
    for row in (*rows, *aside):
        cl.enqueue_copy(queue, host, row)
        found.append(host.tobytes())
    return found


@pytest.mark.parametrize("check", ["order=1", "access,order=2", "access,order,uninitialised"])
@pytest.mark.parametrize("backend", ["serial", "lanes", "auto"])
def test_a_right_program_is_not_accused(context: cl.Context, backend: str, check: str) -> None:
    """A launch that is run again finds what it found: nothing of the program's is written, and
    bytes that no kernel has had yet are put back, too."""
    kernels = kernels_of(context)
    expected = program(cl.CommandQueue(context), kernels, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckWarning)
        queue = acs.Queue(context, backend=backend, check=check)
        assert program(queue, kernels, 5) == expected
        queue.runtime.close()
    report = queue.runtime.stats()["check"]
    assert report["found"] == 0
    assert report["launches"] > LAUNCHES


def test_memory_of_the_program_stays_its_own(context: cl.Context) -> None:
    """A read was run again with the batch, some hundred launches later, into the same memory."""
    kernels = kernels_of(context)
    queue = acs.Queue(context, backend="serial", check="order=1")
    a, b = (cl.Buffer(context, READ_WRITE, 4 * N) for _ in range(2))
    host = np.arange(N, dtype=np.int32)
    cl.enqueue_copy(queue, a, host)
    cl.enqueue_copy(queue, b, host)
    cl.enqueue_copy(queue, host, a)
    host[:] = 77
    for step in range(LAUNCHES):
        kernels["mix_in"](queue, (N,), None, a, b, step)
        kernels["add"](queue, (N,), None, a, np.int32(1))
    queue.finish()
    queue.runtime.finish()
    assert (host == 77).all()


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_memory_of_a_queue_may_be_used_beside_arrays(context: cl.Context, memory: str) -> None:
    """Its allocator takes shared virtual memory from where arrays have theirs."""
    source = "kernel void add(global const int *x, global int *y) { int i = get_global_id(0); "
    source, check = source + "y[i] += x[i]; }", "access,order,uninitialised"
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckWarning)
        with acs.Runtime(context=context, memory=memory, check=check) as rt:
            queue, prog = acs.Queue(context, runtime=rt), rt.build(source)
            before, behind = rt.array(np.arange(N), "i4"), rt.zeros(N, "i4")
            theirs = cl.array.to_device(queue, np.arange(N, dtype="i4"), queue.allocator)
            prog.add((N,), None, before, theirs)
            theirs += 2
            prog.add((N,), None, theirs, behind)
            assert (theirs.get() == 2 * np.arange(N) + 2).all()
            assert (behind.get() == theirs.get()).all()


@pytest.mark.parametrize("is_ours", [False, True])
def test_two_buffers_on_the_same_memory_are_named(context: cl.Context, is_ours: bool) -> None:
    """On a queue, and where a launch of its runtime uses the other one."""
    kernels, flags = kernels_of(context), READ_WRITE | cl.mem_flags.USE_HOST_PTR
    host = np.zeros(2 * N, np.int32)
    queue = acs.Queue(context, backend="serial", check="access")
    own = queue.runtime.build(SOURCE)
    one, other = (cl.Buffer(context, flags, hostbuf=host) for _ in range(2))
    kernels["add"](queue, (N,), None, one, np.int32(1))
    kernels["add"](queue, (N,), None, one.get_sub_region(4 * N, 4 * N), np.int32(1))
    queue.finish()
    kernels["add"](queue, (N,), None, other, np.int32(1))
    again = partial(own.add, (N,), None, one, 1)
    if not is_ours:
        again = partial(kernels["add"], queue, (N,), None, one, np.int32(1))
    with pytest.raises((CheckError, cl.Error), match="uses by another buffer"):
        again()
    queue.finish()
    queue.runtime.close()
    if context.devices[0].host_unified_memory:
        assert (host[:N] == 2).all()
        assert (host[N:] == 1).all()


def wait_by_read(queue: acs.Queue, event: cl.Event) -> None:
    other = cl.Buffer(queue.context, READ_WRITE, 4 * N)
    cl.enqueue_copy(queue, np.empty(N, np.int32), other, wait_for=[event])


WAITS: list[Callable[[acs.Queue, cl.Event], None]] = [
    lambda queue, event: queue.finish(),
    lambda queue, event: event.wait(),
    lambda queue, event: cl.wait_for_events([event]),
    wait_by_read,
]


@pytest.mark.parametrize("wait", WAITS)
def test_a_buffer_may_be_released_behind_any_wait(
    context: cl.Context, wait: Callable[[acs.Queue, cl.Event], None]
) -> None:
    """Waits of a queue told the checks nothing, so that later ones accused the program."""
    kernels = kernels_of(context)
    queue = acs.Queue(context, backend="lanes", check="access")
    a, b = (cl.Buffer(context, READ_WRITE, 4 * N) for _ in range(2))
    for one in (a, b):
        cl.enqueue_copy(queue, one, np.zeros(N, np.int32))
    wait(queue, kernels["add"](queue, (N,), None, a, np.int32(1)))
    a.release()
    kernels["add"](queue, (N,), None, b, np.int32(1)).wait()
    queue.runtime.close()


def test_a_wait_of_a_queue_judges_what_it_waited_for(context: cl.Context) -> None:
    """Another queue may write the same buffers then. That was held against launches before."""
    kernels, plain = kernels_of(context), cl.CommandQueue(context)
    queue = acs.Queue(context, backend="lanes", check="order=1")
    a, b = (cl.Buffer(context, READ_WRITE, 4 * N) for _ in range(2))
    for _ in range(3):
        cl.enqueue_copy(queue, a, np.zeros(N, np.int32))
        cl.enqueue_copy(queue, b, np.ones(N, np.int32))
        kernels["add"](queue, (N,), None, a, np.int32(1))
        kernels["mix_in"](queue, (N,), None, a, b, 1)
        queue.finish()
        kernels["add"](plain, (N,), None, a, np.int32(7))
        plain.finish()
    queue.runtime.close()
    assert queue.runtime.stats()["check"]["found"] == 0


@pytest.mark.parametrize("count", [2, 18])
def test_a_look_waits_as_often_with_many_buffers(context: cl.Context, count: int) -> None:
    """Buffers are loaded or stored before anybody waits, and no event goes before that, since
    PyOpenCL would wait for it. First what the program left in all of them. Then those that the
    launch uses: what a trial is given and leaves, what was there before, what the launch leaves."""
    kernels = kernels_of(context)
    queue = acs.Queue(context, backend="serial", check="access")
    rows = [cl.Buffer(context, READ_WRITE, 4 * N) for _ in range(count)]
    for row in rows:
        cl.enqueue_copy(queue, row, np.arange(N, dtype=np.int32))
    for row in rows[1:]:
        for _ in range(3):  # the first two of a kernel are tried twice
            kernels["mix_in"](queue, (N,), None, rows[0], row, np.int32(2))
    queue.finish()
    with inside.own_transfers() as (begun, waits):
        kernels["mix_in"](queue, (N,), None, rows[0], rows[1], np.int32(2))
    assert len(begun) == count + 4 * 2
    assert [len(events) for events in waits] == [count, 2 * 2 + 1, 2, 2]
    waited = [event for events in waits for event in events]
    del waited[count + 2]  # the trial's launch, between its stores and loads
    assert waited == begun
    host, expected = np.empty(N, np.int32), np.arange(N)
    cl.enqueue_copy(queue, host, rows[1])
    for _ in range(4):
        expected = expected * 3 + np.arange(N) * 2 + np.arange(N)
    assert (host == expected).all()
    queue.runtime.close()


def at_once(call: Callable[[], Any], gate: cl.UserEvent) -> Any:
    """What a call returns that must not wait for the gate, which opens if it does."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join(30)
    waits = thread.is_alive()
    if waits:
        gate.set_status(COMPLETE)
        thread.join()
    assert not waits, "it waited for the user event"
    return found[0]


def held_launches(
    queue: acs.Queue, gate: cl.UserEvent, kernels: Any, behind: Sequence[cl.Event]
) -> tuple[list[cl.Event], np.ndarray[Any, Any]]:
    """Commands of each kind that stand behind these events, and what a read of them fills."""
    a, b = (cl.Buffer(queue.context, READ_WRITE, 4 * N) for _ in range(2))
    for one in (a, b):
        cl.enqueue_copy(queue, one, np.zeros(N, np.int32))
    host, given = np.zeros(N, np.int32), np.ones(N, np.int32)
    made: list[cl.Event] = []
    add = partial(kernels["add"], queue, (N,), None)
    calls: list[Callable[[], Any]] = [
        lambda: add(b, np.int32(1)),
        lambda: add(a, np.int32(1), wait_for=behind),
        lambda: add(a, np.int32(1)),
        lambda: add(b, np.int32(1), wait_for=made[-1:]),
        lambda: cl.enqueue_marker(queue),
        lambda: cl.enqueue_marker(queue, wait_for=made[-1:]),
        lambda: cl.enqueue_barrier(queue),
        lambda: cl.enqueue_barrier(queue, wait_for=made[1:2]),
        lambda: cl.enqueue_copy(queue, host, a, is_blocking=False),
        lambda: cl.enqueue_copy(queue, b, given, is_blocking=False),
        lambda: cl.enqueue_fill_buffer(queue, b, np.int32(3), 0, 4 * N),
    ]
    for call in calls:
        made.append(at_once(call, gate))
    return made, host


@pytest.mark.parametrize("check", ["order=3", "access,order=3"])
def test_others_may_write_to_memory_that_no_launch_of_a_batch_uses(
    context: cl.Context, check: str
) -> None:
    """Memory of another queue was compared, and put back, since a launch had used it long before.
    So a right program was accused, and lost what the other queue had written."""
    queue, plain = acs.Queue(context, backend="serial", check=check), cl.CommandQueue(context)
    kernels = kernels_of(context)
    ours, more, others = (cl.Buffer(context, READ_WRITE, 4 * N) for _ in range(3))
    for one in (ours, more, others):
        cl.enqueue_copy(queue, one, np.zeros(N, np.int32))
        kernels["add"](queue, (N,), None, one, np.int32(1))
    queue.finish()
    kernels["add"](queue, (N,), None, ours, np.int32(1))
    cl.enqueue_copy(plain, others, np.full(N, 7, np.int32))
    kernels["add"](queue, (N,), None, more, np.int32(2))
    queue.finish()
    found = np.empty((3, N), np.int32)
    for row, one in zip(found, (ours, more, others), strict=True):
        cl.enqueue_copy(plain, row, one)
    assert (found == [[2], [3], [7]]).all()


CHECKS = "access", "order=1", "uninitialised", "leaks"
HELD = [(backend, check, "a user event") for backend in BACKENDS for check in CHECKS]
HELD += [("lanes", check, "another queue") for check in CHECKS]


@pytest.mark.parametrize(("backend", "check", "through"), HELD)
def test_nothing_waits_for_a_user_event_that_pyopencl_would_not_wait_for(
    context: cl.Context, scheduler: None, backend: str, check: str, through: str
) -> None:
    """A callback on a command behind one never got set: checks waited for all launches before it.
    The command of another queue that a launch follows may stand behind one, too."""
    queue, plain = acs.Queue(context, backend=backend, check=check), cl.CommandQueue(context)
    gate = cl.UserEvent(context)
    behind: cl.Event = gate
    if through == "another queue":
        behind = cl.enqueue_marker(plain, wait_for=[gate])
        plain.flush()
    events, host = held_launches(queue, gate, kernels_of(context), [behind])
    told = [threading.Event() for _ in events]
    for event, has_told in zip(events, told, strict=True):
        at_once(
            lambda event=event, has_told=has_told: event.set_callback(
                COMPLETE, lambda status: has_told.set()
            ),
            gate,
        )
        at_once(lambda event=event: event.command_execution_status, gate)
        at_once(lambda event=event: event.get_info(cl.event_info.REFERENCE_COUNT), gate)
        at_once(queue.flush, gate)
    at_once(lambda: cl.enqueue_marker(plain, wait_for=events), gate)
    assert not any(one.is_set() for one in told[1:])
    gate.set_status(COMPLETE)
    assert all(one.wait(30) for one in told)
    plain.finish()
    queue.finish()
    assert (host == 2).all()
    queue.runtime.close()
