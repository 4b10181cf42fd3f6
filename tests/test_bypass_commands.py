"""Commands that pass to the driver's queue, and what is noted of kernels, beside plain PyOpenCL."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from pyopencl import _cl

import acs_cl as acs
from acs_cl import testing
from acs_cl.backends import queues
from acs_cl.devices.driver import pinned_pieces
from acs_cl.queue import kernel_arguments
from tests.test_queue import ROUNDS, N, buffer, kernels_of, values_of


@pytest.fixture
def stays() -> Iterator[None]:
    """A queue bypasses the runtime after three launches, and takes no other sample."""
    with testing.bypass(always=True):
        yield


def opened(context: cl.Context) -> tuple[acs.Queue, Any, dict[str, Any]]:
    """A queue whose commands pass, a buffer of zeros and kernels."""
    queue, kernels = acs.Queue(context), kernels_of(context)
    a = buffer(queue, np.zeros(N))
    for _ in range(8):
        kernels["add"](queue, (N,), None, a, np.int32(0))
    assert testing.is_bypassing(queue)
    return queue, a, kernels


# ---- what kernels were given ---------------------------------------------------------------------

SOURCE = "kernel void f(global int *a, global int *b, int c, float d, long e, local int *l) {}"


def some_call(rng: random.Random, kernel: Any, buffers: list[Any]) -> tuple[str, tuple[Any, ...]]:
    """A setter and what it is called with."""
    values: dict[int, list[Any]] = {
        0: [*buffers, None],
        1: buffers,
        2: [np.int32(rng.randrange(9)), np.array(rng.randrange(9), np.int32)],
        3: [np.float32(rng.random())],
        4: [np.int64(rng.randrange(1 << 40))],
        5: [cl.LocalMemory(64), cl.LocalMemory(128)],
    }
    packed = {2: (b"i", rng.randrange(-9, 9)), 3: (b"f", rng.random()), 4: (b"l", 1 << 40)}
    which = rng.randrange(5)
    if which == 0:
        index = rng.choice(list(values))
        return "set_arg", (index, rng.choice(values[index]))
    if which == 1:
        chosen = sorted(rng.sample(sorted(values), rng.randrange(1, 6)))
        return "_set_arg_multi", (sum(((one, rng.choice(values[one])) for one in chosen), ()),)
    if which == 2:
        chosen = rng.sample([2, 3, 4], rng.randrange(1, 4))
        return "_set_arg_buf_pack_multi", (sum(((one, *packed[one]) for one in chosen), ()),)
    if which == 3:
        return "_set_arg_buf_multi", ((2, rng.randbytes(4), 4, rng.randbytes(8)),)
    return "_set_arg_buf", (3, rng.randbytes(4))


@pytest.mark.parametrize("seed", range(8))
def test_noted_arguments_are_those_read_at_once(context: cl.Context, seed: int) -> None:
    queue = acs.Queue(context)
    rng = random.Random(seed)
    program = cl.Program(context, SOURCE).build()
    buffers = [cl.Buffer(context, cl.mem_flags.READ_WRITE, 64) for _ in range(3)]
    kernels = [cl.Kernel(program, "f") for _ in range(3)]
    twins: dict[int, kernel_arguments.KernelArguments] = {}
    for step in range(400):
        which = rng.randrange(len(kernels))
        kernel: Any = kernels[which]
        name, args = some_call(rng, kernel, buffers)
        getattr(kernel, name)(*args)
        twin = twins.setdefault(which, kernel_arguments.KernelArguments(kernel))
        kernel_arguments.SETTERS[name](twin, *args)  # at once, as Python does it
        for one in args[0] if isinstance(args[0], tuple) else args:
            if isinstance(one, np.ndarray):
                one += 1  # the driver has what it was
        if step % 7 == 0:
            assert kernel_arguments.arguments_of(kernel) == (twin.pointers, twin.values)
    del queue


def test_a_setter_that_fails_leaves_nothing_known(context: cl.Context) -> None:
    queue = acs.Queue(context)
    kernel: Any = kernels_of(context)["add"]
    a = buffer(queue, np.zeros(N))
    kernel.set_args(a, np.int32(1))
    assert kernel_arguments.arguments_of(kernel) is not None
    with pytest.raises(cl.Error):
        kernel._set_arg_multi((0, a, 7, a))
    assert kernel_arguments.arguments_of(kernel) is None
    kernel.set_args(a, np.int32(1))
    assert kernel_arguments.arguments_of(kernel) is not None
    with pytest.raises(TypeError):
        kernel._set_arg_multi()
    assert kernel_arguments.arguments_of(kernel) is None
    del queue


def test_arguments_go_with_their_kernel(context: cl.Context) -> None:
    """Kernels take each other's place in memory, and not each other's arguments."""
    queue = acs.Queue(context)
    program = cl.Program(context, SOURCE).build()
    for step in range(300):
        kernel: Any = cl.Kernel(program, "f")
        assert kernel_arguments.arguments_of(kernel) is None
        kernel._set_arg_buf_pack_multi((2 + step % 2, b"i", step))
        known = kernel_arguments.arguments_of(kernel)
        assert known is not None
        assert known.many == 1
        assert list(known.values) == [2 + step % 2]
    del queue


# ---- commands that pass --------------------------------------------------------------------------


def test_calls_of_every_form_pass(context: cl.Context, stays: None) -> None:
    queue, a, kernels = opened(context)
    add: Any = kernels["add"]
    add.set_args(a, np.int32(1))
    before = testing.bypassed(queue)
    enqueue = cl.enqueue_nd_range_kernel
    events = [
        enqueue(queue, add, (N,), None),
        enqueue(queue, add, [N], None),
        enqueue(queue, add, (np.int64(N),), None),
        enqueue(queue, add, (N,), (N,), None, [], False, False),
        enqueue(queue, add, (N, 1), (N, 1), (0, 0)),
        enqueue(queue, add, (1,), (N,), g_times_l=True),
        enqueue(queue, kernel=add, global_work_size=(N,), local_work_size=None),
        enqueue(queue, add, (0,), None, allow_empty_ndrange=True),
        add(queue, (N,), None, a, np.int32(1)),
    ]
    assert [type(event) for event in events] == [cl.Event] * len(events)
    assert testing.bypassed(queue) == before + len(events)
    assert values_of(queue, a)[0] == 8
    with pytest.raises(cl.LogicError):
        enqueue(queue, add, (N,), (N + 1,))
    with pytest.raises(RuntimeError):  # as PyOpenCL has it
        enqueue(queue, add, "N", None)
    assert values_of(queue, a)[0] == 8
    assert testing.is_bypassing(queue)


def test_wait_lists_hold_where_commands_pass(context: cl.Context, stays: None) -> None:
    queue = acs.Queue(context)
    kernels = kernels_of(context)
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.zeros(N))
    early = [kernels["add"](queue, (N,), None, a, np.int32(1)) for _ in range(3)]
    assert testing.is_bypassing(queue)
    other = cl.CommandQueue(context)
    for step in range(6):
        slow = kernels["slow"](other, (1,), None, b, np.int32(step), np.int32(ROUNDS))
        own = kernels["add"](queue, (N,), None, a, np.int32(1))
        lists: list[Any] = [[slow], (slow,), [*early, slow, own], [own, slow], [slow, *early]]
        event = cl.enqueue_copy(queue, a, b, wait_for=lists[step % len(lists)])
        assert testing.is_bypassing(queue)
        slow.wait()
        found, expected = values_of(queue, a), values_of(other, b)
        assert np.array_equal(found, expected)
        event.wait()
    gate = cl.UserEvent(context)
    event = kernels["add"](queue, (N,), None, a, np.int32(1), wait_for=[own, gate])
    assert not testing.is_bypassing(queue)
    gate.set_status(int(cl.command_execution_status.COMPLETE))
    event.wait()


def test_events_of_others_are_waited_for_whatever_events_were_there_before(
    context: cl.Context, stays: None
) -> None:
    """Commands that come before anyway are left out of wait lists, and are known by their events.
    An event of another queue may get the address of one that is gone."""
    queue, a, kernels = opened(context)
    other, b = cl.CommandQueue(context), buffer(queue, np.zeros(N))
    kept: list[Any] = []
    for step in range(1, 9):
        for _ in range(100):  # more than are known at a time
            event = kernels["add"](queue, (N,), None, a, np.int32(1), wait_for=kept[-30:])
            if step % 2:
                kept.append(event)
        del event
        slow = kernels["slow"](other, (1,), None, b, np.int32(step), np.int32(ROUNDS))
        cl.enqueue_copy(queue, a, b, wait_for=[slow, *kept])
        assert np.array_equal(values_of(queue, a), values_of(other, b))
        if not step % 2:
            kept.clear()
    assert testing.is_bypassing(queue)


def test_transfers_pass_and_block(context: cl.Context, stays: None) -> None:
    queue, a, kernels = opened(context)
    assert queue.bypass is not None
    host = np.empty(N, np.int32)
    for step in range(10):
        queue.bypass.waits_first = step % 2 == 1
        cl.enqueue_copy(queue, a, np.full(N, step, np.int32))
        kernels["slow"](queue, (1,), None, a, np.int32(step), np.int32(ROUNDS // 10))
        cl.enqueue_copy(queue, host, a)
        plain = host.copy()
        _cl._enqueue_read_buffer(queue, a, host)
        assert np.array_equal(plain, host)
        assert plain[1] == step
        event = _cl._enqueue_read_buffer(queue, a, host, is_blocking=False)
        assert type(event) is cl.NannyEvent
        event.wait()
    assert testing.is_bypassing(queue)


@pytest.mark.parametrize("ends", [False, True])
def test_maps_pass_and_are_unmapped_by_the_queue(
    context: cl.Context, stays: None, ends: bool
) -> None:
    """Also if the bypass has ended meanwhile, or the array was dropped."""
    queue, a, kernels = opened(context)
    flags: Any = cl.map_flags.READ | cl.map_flags.WRITE
    passed = 0
    for step in range(1, 13):
        for _ in range(4):
            kernels["add"](queue, (N,), None, a, np.int32(0))
        kernels["add"](queue, (N,), None, a, np.int32(1))
        bypasses = testing.is_bypassing(queue)
        mapped, event = cl.enqueue_map_buffer(
            queue, a, flags, 0, (N,), np.int32, is_blocking=step % 2 == 0
        )
        event.wait()
        assert testing.is_bypassing(queue) >= bypasses
        passed += bypasses
        assert mapped[0] == 2 * step - 1
        if ends:
            queue.runtime.finish()
            assert not testing.is_bypassing(queue)
        mapped += 1
        if step % 3:
            mapped.base.release()
        del mapped
        assert values_of(queue, a)[0] == 2 * step
    assert passed >= 3
    queue.runtime.finish()
    assert testing.is_at_rest(queue.runtime)


@pytest.mark.parametrize("finishes", [False, True])
def test_arrays_that_are_dropped_are_unmapped_in_bypass(
    context: cl.Context, stays: None, finishes: bool
) -> None:
    queue, a, kernels = opened(context)
    flags: Any = cl.map_flags.READ | cl.map_flags.WRITE
    before = testing.launched(queue.runtime)
    for step in range(1, 9):
        kernels["add"](queue, (N,), None, a, np.int32(1))
        mapped, _ = cl.enqueue_map_buffer(queue, a, flags, 0, (N,), np.int32)
        again, _ = cl.enqueue_map_buffer(queue, a, flags, 0, (N,), np.int32)
        assert mapped[0] == again[0] == 2 * step - 1
        mapped += 1
        del mapped, again
        if finishes:
            queue.finish()
        kernels["add"](queue, (N,), None, a, np.int32(0))
        assert testing.is_bypassing(queue)
        assert not queue.unmaps
    assert testing.launched(queue.runtime) == before
    assert values_of(queue, a).tolist() == [16] * N


def test_a_bypass_that_was_ended_for_more_does_not_go_on_for_a_dropped_array(
    context: cl.Context, stays: None
) -> None:
    queue, a, kernels = opened(context)
    mapped, _ = cl.enqueue_map_buffer(queue, a, cl.map_flags.WRITE, 0, (N,), np.int32)
    mapped[:] = 3
    del mapped
    queue.stop_bypass()
    before = testing.launched(queue.runtime)
    kernels["add"](queue, (N,), None, a, np.int32(1))
    assert testing.launched(queue.runtime) > before
    assert values_of(queue, a).tolist() == [4] * N


def test_short_reads_land_in_pinned_memory_where_kernels_are_in_flight(
    context: cl.Context, stays: None
) -> None:
    queue, a, kernels = opened(context)
    assert queue.bypass is not None
    queue.bypass.waits_first = True
    lanes: Any = queue.runtime.engine.backend.core_queues
    pieces = partial(pinned_pieces, cl.CommandQueue(context), queues.PLACES, queues.LONGEST)
    lanes.land_in(pieces)
    host, back = np.empty(N, np.int32), np.empty((N, 2), np.int32)
    for step in range(1, 9):
        kernels["add"](queue, (N,), None, a, np.int32(1))
        event = cl.enqueue_copy(queue, host, a)
        assert host[0] == step
        assert event.get_ward() is host
        assert lanes.places == (0, queues.PLACES)
        kernels["add"](queue, (N,), None, a, np.int32(0))
        _cl._enqueue_read_buffer(queue, a, hostbuf=host[3:5], src_offset=12)
        assert host[3:5].tolist() == [step, step]
        kernels["add"](queue, (N,), None, a, np.int32(0))
        with pytest.raises(ValueError, match="contiguous"):
            _cl._enqueue_read_buffer(queue, a, back[:, 0])
        with pytest.raises(cl.LogicError, match="INVALID_VALUE"):
            _cl._enqueue_read_buffer(queue, a, host, src_offset=4 * N)
    assert testing.is_bypassing(queue)
    assert lanes.places == (0, queues.PLACES)


def test_a_bypass_dies_with_its_queue(context: cl.Context, stays: None) -> None:
    """Queues take each other's place in memory, and not each other's bypass."""
    for step in range(12):
        queue, a, _ = opened(context)
        runtime = queue.runtime
        del queue
        gc.collect()
        assert not testing.has_open_bypass(runtime)
        other = acs.Queue(context)
        assert not testing.is_bypassing(other)
        assert values_of(other, a)[0] == 0
        plain = cl.CommandQueue(context)
        assert values_of(plain, a)[0] == 0, step
        del other, plain


def test_threads_pass_while_a_bypass_ends(context: cl.Context, stays: None) -> None:
    queue, a, kernels = opened(context)
    many, errors = 300, []

    def work() -> None:
        try:
            add = kernels_of(context)["add"]
            for _ in range(many):
                add(queue, (N,), None, a, np.int32(1))
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        queue.runtime.launch(kernels["add"], (N,), None, a, 1)
    for thread in threads:
        thread.join(60)
    assert not errors
    queue.finish()
    assert values_of(queue, a)[0] == 2 * many + 20
