"""Programs of PyOpenCL's on `acs.Queue`: as on an in-order queue, on every backend.

A plain queue on the same device is the oracle. What only an in-order queue promises (an event that
is complete stands for all before it) is asked for where a kernel that takes long makes it tell.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import subprocess
import sys
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import inside
import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from fuzz.threads import in_threads
from pyopencl import _cl
from pyopencl.characterize import has_coarse_grain_buffer_svm

import acs_cl as acs
from acs_cl import testing
from acs_cl.program import LOOKED_AT, RELEASED
from acs_cl.queue import kernel_arguments, patch
from acs_cl.queue.runtimes import with_queues
from acs_cl.testing.changing import changed
from acs_cl.tools import cli

pytestmark = pytest.mark.rotate("make", 3)

N = 256
SOURCE = """
kernel void mix_in(global const int *x, global int *y, int a)
{ int i = get_global_id(0); y[i] = y[i] * 3 + x[i] * a + i; }
kernel void add(global int *y, int a) { y[get_global_id(0)] += a; }
kernel void slow(global int *y, int a, int rounds)
{
  uint x = a;
  for (int i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u;
  y[get_global_id(0)] = x == 1u ? 1 : a;
}
kernel void follow(global int *y, constant int *c, local int *l)
{
  int i = get_local_id(0);
  l[i] = y[get_global_id(0)] + c[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  y[get_global_id(0)] = l[get_local_size(0) - 1 - i];
}
"""
ROUNDS = 20_000_000  # some tens of milliseconds on a CPU
READ_WRITE = cl.mem_flags.READ_WRITE
PROFILING = cl.command_queue_properties.PROFILING_ENABLE
COMPLETE = cl.command_execution_status.COMPLETE

Kernels = dict[str, cl.Kernel]


def kernels_of(context: cl.Context) -> Kernels:
    """The kernels, from source, with their program: drivers forget what came from a cache, and
    what was released."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = cl.Program(context, SOURCE).build(cache_dir=False)
    kernels: Any = {kernel.function_name: kernel for kernel in program.all_kernels()}
    for kernel in kernels.values():
        kernel.kept = program
    kernels["mix_in"].set_scalar_arg_dtypes([None, None, np.int32])
    return cast(Kernels, kernels)


@pytest.fixture
def queue(rt: acs.Runtime) -> acs.Queue:
    """A queue on each backend and policy."""
    return acs.Queue(rt.context, runtime=rt)


@pytest.fixture
def kernels(queue: acs.Queue) -> Kernels:
    return kernels_of(queue.context)


def buffer(queue: Any, values: Any) -> cl.Buffer:
    values = np.asarray(values, np.int32)
    found = cl.Buffer(queue.context, READ_WRITE, values.nbytes)
    cl.enqueue_copy(queue, found, values)
    return found


def values_of(queue: Any, memory: Any, count: int = N) -> np.ndarray[Any, Any]:
    host = np.empty(count, np.int32)
    cl.enqueue_copy(queue, host, memory)
    return host


def edges(queue: acs.Queue) -> int:
    return sum(queue.runtime.stats()["edges"].values())


# ---- what it is ----------------------------------------------------------------------------------


def test_it_is_a_command_queue(queue: acs.Queue) -> None:
    assert isinstance(queue, cl.CommandQueue)
    assert queue.context == queue.runtime.context
    assert queue.device == queue.runtime.device
    assert acs.Queue.from_int_ptr(queue.int_ptr) is queue


def test_commands_are_refused_alike_once_its_runtime_is_closed(
    queue: acs.Queue, kernels: Kernels
) -> None:
    y = buffer(queue, np.zeros(N))
    queue.runtime.close()
    for call in (
        queue.flush,
        lambda: cl.enqueue_marker(queue),
        lambda: cl.enqueue_copy(queue, np.empty(N, np.int32), y),
        lambda: kernels["add"](queue, (N,), None, y, np.int32(1)),
    ):
        with pytest.raises(cl.LogicError, match="the runtime is closed"):
            call()


def test_a_source_that_is_built_again_is_not_studied_again(context: cl.Context) -> None:
    """As programs do that generate their kernels, such as PyOpenCL's random numbers."""
    steps = " ".join(f"if (n > {number}) y[n * {number} % 64] = {number};" for number in range(200))
    # new to PyOpenCL's cache, which changes a source that it has not seen yet
    source = f"// {uuid4()}\nkernel void many(global int *y, int n) {{ {steps} }}"
    queue = acs.Queue(context, bypass=False)
    y = buffer(queue, np.zeros(64))
    calls = []
    for _ in range(2):
        kernel = cl.Program(context, source).build().many
        called: Counter[str] = Counter()
        sys.setprofile(lambda frame, event, _: called.update([event]))  # noqa: B023
        try:
            kernel(queue, (1,), None, y, np.int32(70))
        finally:
            sys.setprofile(None)
        calls.append(called["call"])
    assert calls[1] < 1000 < calls[0], calls


def test_arrays_of_pyopencl(queue: acs.Queue) -> None:
    host = np.arange(1000, dtype=np.float32)
    x = cl.array.to_device(queue, host)
    y = 2 * x + 1
    y[10:20] = 7
    y += x
    z = cl.array.zeros(queue, 1000, np.float32)
    z[:] = y
    expected = 2 * host + 1
    expected[10:20] = 7
    expected += host
    assert np.array_equal(z.get(), expected)
    assert np.array_equal(y.reshape(10, 100)[3].get(), expected.reshape(10, 100)[3])
    assert queue.runtime.stats()["launches"] >= 5


def test_arrays_in_memory_of_the_runtime(queue: acs.Queue) -> None:
    host = np.arange(1000, dtype=np.float32)
    for _ in range(20):  # memory comes back, and is given out again
        x = cl.array.to_device(queue, host, allocator=queue.allocator)
        y = cl.array.zeros(queue, 1000, np.float32, allocator=queue.allocator)
        y += x * x
    assert np.array_equal(y.get(), host * host)
    assert queue.runtime.stats()["memory"]["in_use_bytes"] < 20 * 4096
    assert queue.allocator(0) is None


def test_memory_of_an_array_that_another_runtime_saw_first(context: cl.Context) -> None:
    """What that runtime found of it holds for others only. Commands on its own queue were not seen
    to touch the array."""
    ours, other = (acs.Queue(context, backend=name) for name in ("lanes", "out_of_order"))
    assert ours.runtime is not other.runtime
    kernels = kernels_of(context)
    x = ours.runtime.zeros(N, "i4")
    kernels["add"](other, (N,), None, x.data, np.int32(1))
    other.finish()
    with inside.held_by_driver(ours.runtime):
        kernels["add"](ours, (N,), None, x.data, np.int32(1))
        before = edges(ours)
        x.fill(5)
        assert edges(ours) > before
    assert x.get().tolist() == [5] * N


def test_independent_commands_have_no_edges_and_dependent_ones_do(
    queue: acs.Queue, kernels: Kernels
) -> None:
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.zeros(N))
    queue.finish()
    before = edges(queue)
    with inside.held_by_driver(queue.runtime):
        kernels["slow"](queue, (1,), None, a, np.int32(1), np.int32(1))
        kernels["add"](queue, (N,), None, b, np.int32(1))
        assert edges(queue) == before
        kernels["mix_in"](queue, (N,), None, a, b, 1)
        assert edges(queue) > before or queue.runtime.plan.backend == "serial"
    assert values_of(queue, b)[0] == 4


# ---- arguments -----------------------------------------------------------------------------------


PARTS = """
kernel void add_from(global int *y, int from, int a) { y[from + get_global_id(0)] += a; }
kernel void move(global const int *x, global int *y, int from, int to)
{ int i = get_global_id(0); y[to + i] = x[from + i] * 3 + y[to + i]; }
"""


def test_launches_on_parts_of_one_buffer_are_independent(context: cl.Context) -> None:
    """By the numbers that they are given, however a launch is made."""
    queue = acs.Queue(context, bypass=False)
    if queue.runtime.plan.backend == "serial":
        pytest.skip("one queue in order")
    add: Any = cl.Program(context, PARTS).build(cache_dir=False).add_from
    add.set_scalar_arg_dtypes([None, np.int32, np.int32])
    y = buffer(queue, np.zeros(16 * N))
    halves = [y.get_sub_region(8 * N * at, 32 * N) for at in range(2)]
    found = []
    for _ in range(3):  # in the second, `auto` asks once more whether the kernel is launched often
        queue.finish()
        before, made = edges(queue), testing.made_by_core(queue.runtime)
        for at in range(16):
            add(queue, (N,), None, y, N * at, 1)
        found.append((edges(queue) - before, testing.made_by_core(queue.runtime) - made))
        queue.finish()
        before = edges(queue)
        add(queue, (N,), None, halves[0], N, 1)  # of the second N
        add(queue, (N,), None, halves[1], 0, 1)  # behind these
        assert edges(queue) == before
        add(queue, (N,), None, halves[1], 1 - N, 1)
        add(queue, (N,), None, y, N, 1)
        assert edges(queue) > before
    assert [one for one, _ in found] == [0, 0, 0]
    assert found[2][1] == 16
    expected = np.full(16 * N, 1, np.int32)
    expected[N : 2 * N] += 2
    expected[2 * N : 3 * N] += 1
    expected[N + 1 : 2 * N + 1] += 1
    assert np.array_equal(values_of(queue, y, 16 * N), 3 * expected)


def test_the_core_makes_launches_of_kernels_that_live_for_one_call(context: cl.Context) -> None:
    """As in `program.kernel(queue, …)`, which makes a kernel each time."""
    queue = acs.Queue(context, bypass=False)
    program = cl.Program(context, PARTS).build(cache_dir=False)
    y, other = buffer(queue, np.zeros(2 * N)), buffer(queue, np.zeros(2 * N))
    for _ in range(4):  # the core finds out what the kernel reaches
        cl.Kernel(program, "add_from")(queue, (N,), None, y, np.int32(0), np.int32(1))
    before = testing.made_by_core(queue.runtime)
    for at in range(20):
        kernel = cl.Kernel(program, "add_from")
        kernel(queue, (N,), None, (y, other)[at % 2], np.int32(at % 2 * N), np.int32(at))
    assert testing.made_by_core(queue.runtime) == before + 20
    expected = np.zeros((2, 2 * N), np.int32)
    expected[0, :N] = 4 + sum(range(0, 20, 2))
    expected[1, N:] = sum(range(1, 20, 2))
    assert np.array_equal(values_of(queue, y, 2 * N), expected[0])
    assert np.array_equal(values_of(queue, other, 2 * N), expected[1])


def test_a_new_kernel_has_no_arguments_of_an_older_one(context: cl.Context) -> None:
    queue = acs.Queue(context, bypass=False)
    program = cl.Program(context, PARTS).build(cache_dir=False)
    y = buffer(queue, np.zeros(2 * N))
    for _ in range(4):
        cl.Kernel(program, "add_from")(queue, (N,), None, y, np.int32(0), np.int32(1))
    kernel = cl.Kernel(program, "add_from")
    kernel.set_arg(0, y)
    kernel.set_arg(2, np.int32(1))
    with pytest.raises(cl.Error, match="INVALID_KERNEL_ARGS"):
        cl.enqueue_nd_range_kernel(queue, kernel, (N,), None)
    kernel.set_arg(1, np.int32(N))
    cl.enqueue_nd_range_kernel(queue, kernel, (N,), None)
    assert values_of(queue, y, 2 * N).tolist() == [4] * N + [1] * N


def test_a_kernel_of_the_same_name_in_another_program_is_another_one(context: cl.Context) -> None:
    """A program may get the address of one that is gone."""
    queue = acs.Queue(context, bypass=False)
    y = buffer(queue, np.zeros(N))
    source = "kernel void put(global int *y, int by) {{ y[get_global_id(0)] {} by; }}"
    for turn in range(6):
        program = cl.Program(context, source.format("=+"[turn % 2] + "=" * (turn % 2))).build()
        for _ in range(3):
            cl.Kernel(program, "put")(queue, (N,), None, y, np.int32(turn + 1))
        assert values_of(queue, y)[0] == (turn + 3 * (turn + 1) if turn % 2 else turn + 1)
        queue.finish()
        del program
        gc.collect()


def test_ever_new_numbers_end_the_search_for_parts(context: cl.Context) -> None:
    """A kernel that is called with them is soon made by the core, and its bytes are right."""
    queue = acs.Queue(context, bypass=False)
    add: Any = cl.Program(context, PARTS).build(cache_dir=False).add_from
    add.set_scalar_arg_dtypes([None, np.int32, np.int32])
    y = buffer(queue, np.zeros(2 * N))
    made = testing.made_by_core(queue.runtime)
    for step in range(N):
        add(queue, (N,), None, y, step, 1)
    assert testing.made_by_core(queue.runtime) - made > N // 2
    index = np.arange(2 * N)
    expected = np.minimum(np.minimum(index + 1, 2 * N - 1 - index), N)
    assert np.array_equal(values_of(queue, y, 2 * N), expected)


@pytest.mark.parametrize("seed", range(4))
def test_random_parts_have_the_outcome_of_an_in_order_queue(context: cl.Context, seed: int) -> None:
    outcomes = []
    for where in (acs.Queue(context, bypass=False), cl.CommandQueue(context)):
        choose = random.Random(seed)
        program: Any = cl.Program(context, PARTS).build(cache_dir=False)
        add, move = program.add_from, program.move
        add.set_scalar_arg_dtypes([None, np.int32, np.int32])
        move.set_scalar_arg_dtypes([None, None, np.int32, np.int32])
        whole = [buffer(where, np.arange(4 * N) % 100) for _ in range(2)]
        parts = [one.get_sub_region(4 * N, 8 * N) for one in whole]
        for step in range(200):
            x, y = choose.choice(whole + parts), choose.choice(whole)
            some, size = 32 * choose.randrange(0, N // 32), 32 * choose.randrange(1, 5)
            what = choose.randrange(4)
            if what == 0:
                add(where, (size,), None, x, some, step)
            elif what == 1 and x is not y:
                move(where, (size,), None, whole[y is whole[0]], y, some, choose.choice((0, 160)))
            elif what == 2:
                cl.enqueue_fill_buffer(where, x, np.int32(step), 4 * some, 4 * size)
            elif what == 3:
                host = np.full(size, step, np.int32)
                cl.enqueue_copy(where, x, host, dst_offset=4 * some, is_blocking=step % 3 > 0)
        outcomes.append([values_of(where, one, 4 * N) for one in whole])
    assert all(map(np.array_equal, *outcomes))


def test_arguments_are_those_at_the_time_of_the_call(queue: acs.Queue, kernels: Kernels) -> None:
    add = kernels["add"]
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.zeros(N))
    gate = cl.UserEvent(queue.context)
    add.set_args(a, np.int32(1))
    cl.enqueue_nd_range_kernel(queue, add, (N,), None, wait_for=[gate])
    add.set_arg(1, np.int32(10))
    cl.enqueue_nd_range_kernel(queue, add, (N,), None)
    add.set_arg(0, b)
    cl.enqueue_nd_range_kernel(queue, add, (N,), None)
    a.release()  # as a program may: it is in use
    gate.set_status(COMPLETE)
    assert values_of(queue, b)[5] == 10
    add.set_args(b, np.int32(3))
    cl.enqueue_nd_range_kernel(queue, add, (N // 2,), None, (N // 2,))
    assert list(values_of(queue, b)[[0, N - 1]]) == [10, 13]


def test_several_objects_may_set_arguments_of_one_kernel(
    queue: acs.Queue, kernels: Kernels
) -> None:
    add = kernels["add"]
    other = cl.Kernel.from_int_ptr(add.int_ptr, retain=True)
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.zeros(N))
    for step in range(1, 4):
        add.set_args(a, np.int32(step))
        cl.enqueue_nd_range_kernel(queue, add, (N,), None)
        other.set_arg(0, b)
        cl.enqueue_nd_range_kernel(queue, add, (N,), None)
        cl.enqueue_nd_range_kernel(queue, other, (N,), None)
    assert [values_of(queue, a)[5], values_of(queue, b)[5]] == [6, 12]


def test_a_wait_list_may_be_an_iterator(queue: acs.Queue) -> None:
    source, target = buffer(queue, np.arange(N)), buffer(queue, np.zeros(N))
    gate = cl.UserEvent(queue.context)
    event = cl.enqueue_copy(queue, target, source, wait_for=iter([gate]))
    assert event.command_execution_status != COMPLETE
    gate.set_status(COMPLETE)
    assert values_of(queue, target)[5] == 5


@pytest.mark.parametrize("wrong", [[None], [5], "x", [cl.UserEvent]], ids=str)
def test_a_command_that_is_refused_leaves_nothing_to_wait_for(
    context: cl.Context, options: dict[str, Any], wrong: Any
) -> None:
    queue, values = acs.Queue(context, **options), np.ones(N, "i4")
    target = buffer(queue, np.zeros(N))
    for refused in (
        lambda: cl.enqueue_fill_buffer(queue, target, np.int32(7), 0, 4, wait_for=wrong),
        lambda: cl.enqueue_copy(queue, target, values, wait_for=wrong),
        lambda: cl.enqueue_marker(queue, wait_for=wrong),
        lambda: cl.enqueue_barrier(queue, wait_for=wrong),
    ):
        with pytest.raises(RuntimeError, match="bad_cast"):  # as PyOpenCL says it
            refused()
    cl.enqueue_fill_buffer(queue, target, np.int32(3), 0, 4)
    assert list(values_of(queue, target)[:2]) == [3, 0]


def test_a_kernel_that_was_given_arguments_before_there_was_a_queue(rt: acs.Runtime) -> None:
    plain = cl.CommandQueue(rt.context)
    kernels = kernels_of(rt.context)
    target = buffer(plain, np.zeros(N))
    kernels["add"].set_args(target, np.int32(4))
    queue = acs.Queue(rt.context, runtime=rt)
    cl.enqueue_nd_range_kernel(queue, kernels["add"], (N,), None)
    gate = cl.UserEvent(queue.context)
    cl.enqueue_nd_range_kernel(queue, kernels["add"], (N,), None, wait_for=[gate])
    gate.set_status(COMPLETE)
    assert values_of(queue, target)[3] == 8
    assert queue.not_understood["a kernel with arguments from before"] == 2


TRANSFERS_OF_PARTS: dict[str, Callable[[Any, Any, Any, Any, Any], Any]] = {
    "from a longer buffer": lambda q, few, many, svm, part: cl.enqueue_copy(q, few, many),
    "from a part of it": lambda q, few, many, svm, part: cl.enqueue_copy(
        q, few, many, src_offset=4
    ),
    "from a shorter buffer": lambda q, few, many, svm, part: cl.enqueue_copy(q, many, few),
    "from longer shared memory": lambda q, few, many, svm, part: cl.enqueue_copy(q, part, svm),
    "from shorter shared memory": lambda q, few, many, svm, part: cl.enqueue_copy(q, svm, part),
    "some bytes, no whole number": lambda q, few, many, svm, part: cl.enqueue_copy(
        q, many, few, byte_count=8.0
    ),
    "a fill of some bytes": lambda q, few, many, svm, part: cl.enqueue_svm_memfill(
        q, svm, np.int32(7), byte_count=8
    ),
    "a fill of no whole number": lambda q, few, many, svm, part: cl.enqueue_svm_memfill(
        q, svm, np.int32(7), byte_count=8.0
    ),
    "a fill of too many": lambda q, few, many, svm, part: cl.enqueue_svm_memfill(
        q, svm, np.int32(7), byte_count=1 << 70
    ),
}
"""With a buffer of a quarter of the bytes, one of all, shared memory, and a quarter of that."""


@pytest.mark.parametrize("which", TRANSFERS_OF_PARTS)
def test_bytes_of_transfers_are_those_on_a_plain_queue(
    context: cl.Context, options: dict[str, Any], which: str
) -> None:
    uses_svm = which.startswith("a fill") or "shared memory" in which
    if uses_svm and not has_coarse_grain_buffer_svm(context.devices[0]):
        pytest.skip("no shared virtual memory")

    def outcome(queue: cl.CommandQueue) -> object:
        few, many = buffer(queue, np.zeros(N // 4)), buffer(queue, np.arange(N))
        svm = part = None
        if uses_svm:
            svm = cl.SVMAllocation(context, 4 * N, 0, cl.svm_mem_flags.READ_WRITE)
            cl.enqueue_svm_memfill(queue, svm, np.int32(5)).wait()
            part = cl.SVM(svm.buf[:N])
        try:
            TRANSFERS_OF_PARTS[which](queue, few, many, svm, part)
        except (cl.Error, RuntimeError, TypeError) as error:
            return type(error)
        queue.finish()
        found = [values_of(queue, few, N // 4).tolist(), values_of(queue, many).tolist()]
        return found if svm is None else [*found, *svm.buf]

    assert outcome(acs.Queue(context, **options)) == outcome(cl.CommandQueue(context))


SIZES: dict[str, tuple[Any, Any, Any]] = {
    "NumPy's integers": ((np.int64(8), np.uint8(2)), (np.int32(4), np.int64(1)), None),
    "an array of NumPy's": (np.array([8]), np.array([2]), np.array([4])),
    "lists": ([8, 2], [4, 2], [np.int64(4), 0]),
    "a truth": ((True,), None, None),
    "none": ((), None, None),
    "too many": ((1, 1, 1, 1), None, None),
    "of other lengths": ((8, 8), (4,), None),
    "an offset of another length": ((8,), None, (1, 2)),
    "no whole number": ((8.5,), None, None),
    "below zero": ((-1,), None, None),
    "beyond every number": ((1 << 65,), None, None),
    "that do not divide": ((8,), (3,), None),
}


@pytest.mark.parametrize("which", SIZES)
def test_sizes_mean_what_they_mean_on_a_plain_queue(
    context: cl.Context, options: dict[str, Any], which: str
) -> None:
    queue, kernels = acs.Queue(context, **options), kernels_of(context)

    def outcome(queue: cl.CommandQueue) -> object:
        target = buffer(queue, np.zeros(N))
        kernels["add"].set_args(target, np.int32(3))
        global_size, local_size, offset = SIZES[which]
        try:
            for _ in range(3):  # the core may make those that come again
                cl.enqueue_nd_range_kernel(queue, kernels["add"], global_size, local_size, offset)
        except (cl.Error, RuntimeError) as error:
            return type(error), str(error).partition("-")[0]
        return values_of(queue, target).tolist()

    assert outcome(queue) == outcome(cl.CommandQueue(context))
    assert values_of(queue, buffer(queue, np.ones(N)))[0] == 1


def test_one_kernel_on_our_queue_and_on_a_plain_one(queue: acs.Queue, kernels: Kernels) -> None:
    plain = cl.CommandQueue(queue.context)
    a, b = buffer(queue, np.zeros(N)), buffer(plain, np.zeros(N))
    for step in range(5):
        kernels["add"](queue, (N,), None, a, np.int32(step))
        kernels["add"](plain, (N,), None, b, np.int32(2 * step))
        cl.enqueue_nd_range_kernel(queue, kernels["add"], (N,), None)
    assert values_of(queue, a)[0] == 10
    assert values_of(plain, b)[0] == 40


def test_local_constant_and_group_sizes(queue: acs.Queue, kernels: Kernels) -> None:
    a, c = buffer(queue, np.arange(N)), buffer(queue, np.arange(16))
    local = cl.LocalMemory(64)
    kernels["follow"](queue, (N // 16,), (16, 1), a, c, local, g_times_l=True)
    expected = (np.arange(N) + np.arange(N) % 16).reshape(-1, 16)[:, ::-1].ravel()
    assert np.array_equal(values_of(queue, a), expected)
    event = kernels["follow"](queue, (0,), None, a, c, local, allow_empty_ndrange=True)
    event.wait()
    assert np.array_equal(values_of(queue, a), expected)


# ---- random programs -----------------------------------------------------------------------------


def takes_sources_at_once(context: cl.Context, kernels: Kernels) -> bool:
    """Whether a write that does not block takes the bytes of the host when it is enqueued, even
    behind a read that is to bring others, as NVIDIA's driver does."""
    plain = cl.CommandQueue(context)
    a, b = buffer(plain, np.zeros(N)), buffer(plain, np.zeros(N))
    host = np.zeros(N, np.int32)
    kernels["slow"](plain, (N,), None, a, np.int32(7), np.int32(ROUNDS // N))
    read = cl.enqueue_copy(plain, host, a, is_blocking=False)
    cl.enqueue_copy(plain, b, host, is_blocking=False, wait_for=[read])
    plain.finish()
    return bool(values_of(plain, b)[N - 1] != 7)


def random_program(queue: Any, kernels: Kernels, seed: int, steps: int = 60) -> list[Any]:
    """Some program of PyOpenCL's; everything that its host sees."""
    choose = random.Random(seed)
    waits_for_reads = takes_sources_at_once(queue.context, kernels)
    reads: dict[int, Any] = {}
    numbers = np.random.default_rng(seed)
    buffers = [buffer(queue, numbers.integers(0, 1000, 2 * N)) for _ in range(4)]
    half = [one.get_sub_region(0, 4 * N) for one in buffers]
    half += [one.get_sub_region(4 * N, 4 * N) for one in buffers]
    hosts = [np.zeros(N, np.int32) for _ in range(4)]
    out: list[Any] = []
    events: list[Any] = []

    def some(of: list[Any]) -> Any:
        return of[choose.randrange(len(of))]

    def two(of: list[Any]) -> tuple[Any, Any]:
        first, second = choose.sample(range(len(of)), 2)
        return of[first], of[second]

    def waits() -> Any:
        return choose.sample(events, min(len(events), 2)) if choose.random() < 0.3 else None

    for step in range(steps):
        what = choose.randrange(14)
        if what <= 4:
            x, y = two(half)
            events.append(kernels["mix_in"](queue, (N,), None, x, y, step, wait_for=waits()))
        elif what == 5:
            rounds = np.int32(choose.choice([10, 100_000]))
            target = some(half)
            events.append(kernels["slow"](queue, (N,), None, target, np.int32(step), rounds))
        elif what == 6:
            x, y = two(buffers)
            where = 4 * choose.randrange(N)
            events.append(
                cl.enqueue_copy(
                    queue, x, y, byte_count=256, src_offset=where, dst_offset=4 * 17,
                    wait_for=waits(),
                )
            )  # fmt: skip
        elif what == 7:
            size = 16 * choose.randrange(1, N // 4)
            pattern = np.int32([step, -step])
            events.append(cl.enqueue_fill_buffer(queue, some(buffers), pattern, 64, size))
        elif what == 8:
            host = some(hosts)
            events.append(cl.enqueue_copy(queue, host, some(half), is_blocking=False))
            reads[id(host)] = events[-1]
        elif what == 9:
            host = some(hosts)
            if waits_for_reads and id(host) in reads:
                reads[id(host)].wait()
            events.append(cl.enqueue_copy(queue, some(half), host, is_blocking=False))
        elif what == 10:
            values = np.full(50, step, np.int32)
            cl.enqueue_copy(queue, some(buffers), values, dst_offset=4 * choose.randrange(N))
            values[:] = -1
        elif what == 11:
            cl.enqueue_copy(queue, some(hosts), some(half))
            out += [one.copy() for one in hosts]
        elif what == 12 and events:
            some(events).wait()
            if choose.random() < 0.5:
                events.append(cl.enqueue_marker(queue, wait_for=waits()))
            else:
                events.append(cl.enqueue_barrier(queue, wait_for=waits()))
        elif what == 13:
            both: Any = cl.map_flags.READ | cl.map_flags.WRITE
            mapped, _ = cl.enqueue_map_buffer(queue, some(buffers), both, 64, (20,), np.int32)
            out.append(mapped.copy())
            mapped += step
            mapped.base.release(queue) if choose.random() < 0.5 else mapped.base.release()
    if events:
        events[-1].wait()
        assert events[-1].command_execution_status == COMPLETE
    queue.finish()
    out += [one.copy() for one in hosts]
    out += [values_of(queue, one, 2 * N) for one in buffers]
    return out


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_have_the_outcome_of_an_in_order_queue(
    queue: acs.Queue, kernels: Kernels, seed: int
) -> None:
    expected = random_program(cl.CommandQueue(queue.context), kernels, seed)
    found = random_program(queue, kernels, seed)
    assert len(found) == len(expected)
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert np.array_equal(one, other), index


def test_random_programs_of_kernels_of_which_the_driver_tells_nothing(
    queue: acs.Queue, kernels: Kernels
) -> None:
    expected = random_program(cl.CommandQueue(queue.context), kernels, 1)
    with inside.untold_programs(arguments=True):
        found = random_program(queue, kernels, 1)
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert np.array_equal(one, other), index


def test_kernels_of_a_released_program_from_the_cache_are_understood(
    queue: acs.Queue, tmp_path: Path
) -> None:
    """As `pyopencl.array` has them: the program is gone at once, and is in PyOpenCL's cache of
    binaries the second time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            mix_in = cl.Program(queue.context, SOURCE).build(cache_dir=str(tmp_path)).mix_in
    mix_in.set_scalar_arg_dtypes([None, None, np.int32])
    x, *rest = [buffer(queue, np.ones(N)) for _ in range(4)]
    queue.finish()
    before = edges(queue)
    for y in rest:
        mix_in(queue, (N,), None, x, y, 2)
    assert edges(queue) == before  # all of them only read x
    assert [values_of(queue, y)[1] for y in rest] == [6] * 3


BY_OPTIONS = """
kernel void put(global int *x, global int *y, int a)
{
#ifdef INTO_X
  x[get_global_id(0)] = y[get_global_id(0)] + a;
#else
  y[get_global_id(0)] = x[get_global_id(0)] + a;
#endif
}
"""


@pytest.mark.parametrize("told", [True, False])
def test_options_of_a_program_from_the_cache_say_what_a_kernel_writes(
    context: cl.Context, tmp_path: Path, told: bool
) -> None:
    """Some drivers, such as Rusticl, tell no options of a program from a binary."""
    queue = acs.Queue(context, backend="lanes", lanes=2)
    with contextlib.nullcontext() if told else inside.untold_options():
        for _ in range(2):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program = cl.Program(context, BY_OPTIONS)
                put = program.build(iter(["-D", "INTO_X"]), cache_dir=str(tmp_path)).put
        x, y, z = (buffer(queue, np.full(N, value)) for value in range(3))
        queue.finish()
        before = queue.runtime.stats()["edges"]["WAW"]
        with testing.hold(queue.runtime):
            put(queue, (N,), None, x, y, np.int32(10))
            put(queue, (N,), None, x, z, np.int32(10))
        assert queue.runtime.stats()["edges"]["WAW"] == before + 1
    assert [values_of(queue, one)[1] for one in (x, y, z)] == [12, 1, 2]


# ---- events --------------------------------------------------------------------------------------


def test_events_are_events(queue: acs.Queue, kernels: Kernels) -> None:
    a = buffer(queue, np.zeros(N))
    event = kernels["add"](queue, (N,), None, a, np.int32(1))
    assert isinstance(event, cl.Event)
    assert event.command_queue is queue
    assert event.context == queue.context
    assert event.command_type == cl.command_type.NDRANGE_KERNEL
    assert event.command_execution_status in range(4)
    told = threading.Event()
    event.set_callback(COMPLETE, lambda status: told.set())
    cl.wait_for_events([event])
    assert event.command_execution_status == COMPLETE
    assert told.wait(60)
    assert cl.Event.from_int_ptr(event.int_ptr).command_execution_status == COMPLETE
    assert event.reference_count >= 1
    with pytest.raises(cl.RuntimeError):
        _ = event.profile.start


def test_an_event_that_is_complete_stands_for_all_before_it(
    queue: acs.Queue, kernels: Kernels
) -> None:
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.ones(N))
    host = np.zeros(N, np.int32)
    first = kernels["slow"](queue, (1,), None, a, np.int32(7), np.int32(ROUNDS))
    cl.enqueue_copy(queue, host, a, is_blocking=False)
    last = kernels["add"](queue, (N,), None, b, np.int32(1))
    last.wait()
    assert host[0] == 7
    assert first.command_execution_status == COMPLETE


def test_a_status_is_that_of_an_in_order_queue(queue: acs.Queue, kernels: Kernels) -> None:
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.ones(N))
    host = np.zeros(N, np.int32)
    kernels["slow"](queue, (1,), None, a, np.int32(7), np.int32(ROUNDS))
    cl.enqueue_copy(queue, host, a, is_blocking=False)
    last = kernels["add"](queue, (N,), None, b, np.int32(1))
    queue.flush()
    while last.command_execution_status != COMPLETE:
        assert last.command_execution_status >= 0
    assert host[0] == 7


def test_a_blocking_read_waits_for_earlier_reads(queue: acs.Queue, kernels: Kernels) -> None:
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.ones(N))
    host = np.zeros(N, np.int32)
    kernels["slow"](queue, (1,), None, a, np.int32(7), np.int32(ROUNDS))
    cl.enqueue_copy(queue, host, a, is_blocking=False)
    assert values_of(queue, b)[0] == 1
    assert host[0] == 7


def reads_beside_a_kernel(context: cl.Context, kernels: Kernels, in_one: bool) -> bool:
    """Whether a read on one plain queue ends while a kernel runs on another, or `in_one` without
    order. Intel's CPU runtime has it wait, unless another thread has begun with the kernel. On
    NVIDIA's one queue nothing overlaps, but now and then."""
    mode = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE if in_one else 0
    one = cl.CommandQueue(context, properties=mode)
    other = one if in_one else cl.CommandQueue(context)
    a, b = buffer(one, np.zeros(N)), buffer(other, np.ones(N))
    values_of(one, a)
    slow: Any = kernels["slow"](one, (1,), None, a, np.int32(7), np.int32(20 * ROUNDS))
    one.flush()
    # PoCL's blocking read finishes its queue
    cl.enqueue_copy(other, np.zeros(N, np.int32), b, is_blocking=False).wait()
    beside: bool = slow.command_execution_status != COMPLETE
    one.finish()
    return beside


def test_a_blocking_read_does_not_wait_for_what_it_does_not_need(
    make: Callable[..., acs.Runtime],
) -> None:
    runtime = make()
    if runtime.plan.backend == "serial" or runtime.device.max_compute_units < 2:
        pytest.skip("one queue in order")
    kernels = kernels_of(runtime.context)
    in_one = runtime.plan.backend == "out_of_order"
    if not all(reads_beside_a_kernel(runtime.context, kernels, in_one) for _ in range(4)):
        pytest.skip("the driver itself lets a read wait for a kernel")
    queue = acs.Queue(runtime.context, runtime=runtime)
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.ones(N))
    kernels["add"](queue, (N,), None, b, np.int32(0))
    kernels["slow"](queue, (1,), None, a, np.int32(0), np.int32(1))
    queue.finish()
    slow = kernels["slow"](queue, (1,), None, a, np.int32(7), np.int32(20 * ROUNDS))
    assert values_of(queue, b)[0] == 1
    still = testing.is_in_flight(runtime, slow)
    runtime.flush()
    assert values_of(queue, a)[0] == 7
    assert still or runtime.plan.backend == "device"


def test_wait_for_of_a_user_event_holds_what_comes_later(
    queue: acs.Queue, kernels: Kernels
) -> None:
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.zeros(N))
    gate = cl.UserEvent(queue.context)
    first = kernels["add"](queue, (N,), None, a, np.int32(1), wait_for=[gate])
    second = kernels["add"](queue, (N,), None, b, np.int32(1))
    queue.flush()
    assert first.command_execution_status > 0
    assert second.command_execution_status > 0
    gate.set_status(COMPLETE)
    second.wait()
    assert first.command_execution_status == COMPLETE
    assert values_of(queue, a)[0] == values_of(queue, b)[0] == 1


def test_what_an_event_of_others_waits_for_is_begun_when_its_turn_comes(
    context: cl.Context,
) -> None:
    """Some drivers begin nothing before a flush. A callback polls nothing of ours."""
    queue = acs.Queue(context, backend="lanes", issue="ready_first")
    add, a = kernels_of(context)["add"], buffer(queue, np.zeros(N))
    for _ in range(20):
        gate, told = cl.UserEvent(context), threading.Event()
        add(queue, (N,), None, a, np.int32(1), wait_for=[gate])
        last: Any = add(queue, (N,), None, a, np.int32(1))
        last.set_callback(COMPLETE, lambda status, told=told: told.set())
        with inside.steps_of_lanes(queue.runtime) as steps:
            gate.set_status(COMPLETE)
            last.wait()
            with queue.runtime.engine.lock:
                assert steps[-1] == "flush"
            assert told.wait(30)
        queue.finish()
    assert values_of(queue, a)[0] == 40


def test_a_barrier_passes_its_wait_on(queue: acs.Queue, kernels: Kernels) -> None:
    a = buffer(queue, np.zeros(N))
    gate = cl.UserEvent(queue.context)
    cl.enqueue_barrier(queue, wait_for=[gate])
    event = kernels["add"](queue, (N,), None, a, np.int32(1))
    assert event.command_execution_status > 0
    gate.set_status(COMPLETE)
    assert values_of(queue, a)[0] == 1


def test_events_across_queues_ours_and_plain(queue: acs.Queue, kernels: Kernels) -> None:
    plain = cl.CommandQueue(queue.context)
    apart = acs.Queue(queue.context, backend="out_of_order")
    together = acs.Queue(queue.context, runtime=queue.runtime)
    assert apart.runtime is not queue.runtime
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.zeros(N))
    queue.finish()
    expected = 0
    event = None
    for step in range(12):
        where = (queue, plain, apart, together)[step % 4]
        waits = [event] if event is not None else None
        kernels["slow"](where, (1,), None, b, np.int32(step), np.int32(1000), wait_for=waits)
        kernels["add"](where, (N,), None, a, np.int32(step), wait_for=waits)
        # the last event stands for the one before it
        event = kernels["add"](where, (N,), None, b, np.int32(step))
        where.flush()
        expected += step
    assert event is not None
    event.wait()
    for where in (plain, apart, together, queue):
        assert values_of(where, a)[0] == expected
        assert values_of(where, b)[0] == 2 * 11


def test_what_was_waited_for_here_is_there_for_plain_queues(
    queue: acs.Queue, kernels: Kernels
) -> None:
    plain = cl.CommandQueue(queue.context)
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.zeros(N))
    kernels["slow"](queue, (1,), None, a, np.int32(7), np.int32(ROUNDS))
    kernels["add"](queue, (N,), None, b, np.int32(1)).wait()
    assert values_of(plain, a)[0] == 7


def test_commands_on_a_plain_queue_cost_nothing_in_python(
    queue: acs.Queue, kernels: Kernels
) -> None:
    """They took longer there than the driver does."""
    plain = cl.CommandQueue(queue.context)
    a, host = buffer(plain, np.zeros(N)), np.zeros(N, np.int32)
    first = kernels["add"](plain, (N,), None, a, np.int32(1))
    values_of(queue, a)
    kernels["add"](plain, (N,), None, a, np.int32(1))  # what the read above told is kept now
    entered: Counter[str] = Counter()

    def look(frame: Any, what: str, _: Any) -> None:
        if what == "call" and frame.f_globals.get("__name__", "").startswith("acs_cl."):
            entered[frame.f_code.co_name] += 1

    before = Counter(patch.seen_elsewhere)
    sys.setprofile(look)
    try:
        for waits in (None, [], [first]):
            kernels["add"](plain, (N,), None, a, np.int32(1), wait_for=waits)
            cl.enqueue_fill_buffer(plain, a, np.int32(waits is None), 0, 4, wait_for=waits)
            cl.enqueue_copy(plain, host, a, wait_for=waits)
    finally:
        sys.setprofile(None)
    assert not entered
    seen = Counter(patch.seen_elsewhere) - before
    assert seen["_enqueue_read_buffer"] == seen["_enqueue_fill_buffer"] == 3
    assert host[:2].tolist() == [0, 5]
    # another object for a queue of ours is ours
    twin = cl.CommandQueue.from_int_ptr(queue.int_ptr, True)
    assert type(kernels["add"](twin, (N,), None, a, np.int32(1))) is not cl.Event
    assert Counter(patch.seen_elsewhere) - before == seen


def test_profiling(make: Callable[..., acs.Runtime]) -> None:
    runtime = make(profiling=True)
    if runtime.plan.backend == "emulated":
        pytest.skip("its times are the model's: trace=True has them")
    queue = acs.Queue(runtime.context, properties=PROFILING, runtime=runtime)
    kernels = kernels_of(queue.context)
    a = buffer(queue, np.zeros(N))
    gate = cl.UserEvent(queue.context)
    first = kernels["slow"](queue, (1,), None, a, np.int32(1), np.int32(1000))
    second = kernels["add"](queue, (N,), None, a, np.int32(1), wait_for=[gate])
    gate.set_status(COMPLETE)
    second.wait()
    assert 0 < first.profile.start <= first.profile.end
    assert first.profile.end <= second.profile.end
    assert second.profile.queued <= second.profile.submit


def test_times_of_a_command_that_ends_before_anybody_asks(context: cl.Context) -> None:
    """Another thread may find it ended, and let go of its event: seen with silx, seldom."""
    queue = acs.Queue(context, backend="lanes", properties=PROFILING)
    engine, a = queue.runtime.engine, buffer(queue, np.zeros(N))
    launch, threads = engine.launch, []

    def launched(*how: Any, **more: Any) -> acs.Handle:
        handle = launch(*how, **more)
        threads.append(threading.Thread(target=queue.runtime.finish))
        threads[-1].start()
        threads[-1].join(0.3)
        return handle

    engine.launch = launched  # type: ignore[method-assign]
    event = kernels_of(context)["add"](queue, (N,), None, a, np.int32(1))
    del engine.launch
    threads[0].join()
    assert 0 < event.profile.start <= event.profile.end


# ---- host memory ---------------------------------------------------------------------------------


def test_host_memory_in_flight(queue: acs.Queue, kernels: Kernels) -> None:
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.zeros(N))
    host = np.zeros(N, np.int32)
    kernels["slow"](queue, (N,), None, a, np.int32(7), np.int32(ROUNDS // N))
    cl.enqueue_copy(queue, host, a, is_blocking=False)
    cl.enqueue_copy(queue, b, host, is_blocking=False)  # what the copy before this one brings
    cl.enqueue_copy(queue, a, np.full(N, 5, np.int32))  # blocking: the memory is free afterwards
    assert host[N - 1] == 7
    if not takes_sources_at_once(queue.context, kernels):
        assert values_of(queue, b)[N - 1] == 7
    assert values_of(queue, a)[N - 1] == 5


def test_a_long_write_waits_and_a_short_one_takes_a_copy(queue: acs.Queue) -> None:
    for count in (16, 1 << 19):
        target = cl.Buffer(queue.context, READ_WRITE, 4 * count)
        host = np.full(count, 3, np.int32)
        cl.enqueue_copy(queue, target, host)
        host[:] = 4
        assert values_of(queue, target, count)[count - 1] == 3


TRANSFERS: dict[str, Callable[[Any, cl.Buffer, cl.Buffer, np.ndarray[Any, Any]], Any]] = {
    "read": lambda q, x, y, host: cl.enqueue_copy(q, host, x),
    "read a part": lambda q, x, y, host: cl.enqueue_copy(q, host[:3], x, src_offset=np.int64(8)),
    "read without waiting": lambda q, x, y, host: cl.enqueue_copy(q, host, x, is_blocking=False),
    "write": lambda q, x, y, host: cl.enqueue_copy(q, x, host + 1),
    "write a part": lambda q, x, y, host: cl.enqueue_copy(q, x, host[:5] + 2, dst_offset=12),
    "write without waiting": lambda q, x, y, host: cl.enqueue_copy(
        q, x, host + 3, is_blocking=False
    ),
    "copy": lambda q, x, y, host: cl.enqueue_copy(q, y, x),
    "copy a part": lambda q, x, y, host: cl.enqueue_copy(
        q, y, x, byte_count=16, src_offset=4, dst_offset=40
    ),
    "fill": lambda q, x, y, host: cl.enqueue_fill_buffer(q, x, np.int32(7), 0, 4 * N),
    "fill a part": lambda q, x, y, host: cl.enqueue_fill(
        q, x, np.arange(4, dtype=np.int32), 32, offset=16
    ),
    "sub-buffer": lambda q, x, y, host: cl.enqueue_copy(
        q, y, x.get_sub_region(2 * N, 2 * N), dst_offset=4
    ),
}


@pytest.mark.parametrize("what", TRANSFERS)
def test_the_core_makes_transfers_and_they_leave_the_bytes_of_a_plain_queue(
    context: cl.Context, what: str
) -> None:
    queue = acs.Queue(context, bypass=False)
    found = []
    for where in (queue, cl.CommandQueue(context)):
        x, y = buffer(where, np.arange(N)), buffer(where, np.arange(N) * 2)
        host = np.full(N, 11, np.int32)
        before = testing.made_by_core(queue.runtime)
        events = [TRANSFERS[what](where, x, y, host) for _ in range(3)]
        if where is queue:
            assert testing.made_by_core(queue.runtime) == before + 3
        events[-1].wait()
        found.append([host.copy(), values_of(where, x), values_of(where, y)])
    assert all(map(np.array_equal, *found))


def test_the_core_makes_transfers_of_shared_memory(context: cl.Context) -> None:
    queue = acs.Queue(context, bypass=False)
    if not has_coarse_grain_buffer_svm(queue.device):
        pytest.skip("no shared virtual memory")
    flags = cl.svm_mem_flags.READ_WRITE
    one, other = (cl.SVMAllocation(context, 4 * N, 64, flags) for _ in range(2))
    host = np.arange(N, dtype=np.int32)
    cl.enqueue_copy(queue, one, host)
    before = testing.made_by_core(queue.runtime)
    cl.enqueue_svm_memfill(queue, other, np.int32(3))
    cl.enqueue_svm_memfill(queue, one, np.int32(5))
    cl.enqueue_copy(queue, other, one, byte_count=16)
    cl.enqueue_copy(queue, host, other)
    assert testing.made_by_core(queue.runtime) == before + 4
    assert host[:6].tolist() == [5, 5, 5, 5, 3, 3]
    queue.finish()


def test_memory_that_the_program_drops_lives_while_a_transfer_needs_it(
    queue: acs.Queue, kernels: Kernels
) -> None:
    a = buffer(queue, np.zeros(N))
    for step in range(4):
        kernels["slow"](queue, (N,), None, a, np.int32(step), np.int32(ROUNDS // N))
        cl.enqueue_copy(queue, a, np.full(N // 2, 50 + step, np.int32), is_blocking=False)
        cl.enqueue_copy(queue, np.empty(N, np.int32), a, is_blocking=False)
        gc.collect()
        np.full(N // 2, -1, np.int32)  # where the memory may have been
    assert values_of(queue, a).tolist() == [53] * (N // 2) + [3] * (N // 2)


def test_a_copy_that_follows_what_is_held_goes_on_when_its_turn_comes(
    queue: acs.Queue, kernels: Kernels
) -> None:
    a, b, c = (buffer(queue, np.full(N, value)) for value in (1, 2, 3))
    other = acs.Queue(queue.context, runtime=queue.runtime)
    gate = cl.UserEvent(queue.context)
    kernels["add"](other, (N,), None, a, np.int32(5), wait_for=[gate])
    copied = cl.enqueue_copy(queue, b, a)
    cl.enqueue_fill_buffer(queue, c, np.int32(9), 0, 2 * N)
    assert copied.command_execution_status != COMPLETE
    gate.set_status(COMPLETE)
    assert values_of(queue, b).tolist() == [6] * N
    assert values_of(queue, c).tolist() == [9] * (N // 2) + [3] * (N // 2)


def test_memory_in_fortran_order_and_scalars(queue: acs.Queue) -> None:
    host = np.asfortranarray(np.arange(12, dtype=np.int32).reshape(3, 4))
    target = cl.Buffer(queue.context, READ_WRITE, 48)
    cl.enqueue_copy(queue, target, host)
    assert np.array_equal(values_of(queue, target, 12), host.T.ravel())
    back = np.zeros((3, 4), np.int32, order="F")
    cl.enqueue_copy(queue, back, target)
    assert np.array_equal(back, host)
    cl.enqueue_copy(queue, target, bytearray(48))
    assert not values_of(queue, target, 12).any()


def test_maps(queue: acs.Queue, kernels: Kernels) -> None:
    a = buffer(queue, np.zeros(N))
    kernels["slow"](queue, (1,), None, a, np.int32(7), np.int32(ROUNDS))
    both: Any = cl.map_flags.READ | cl.map_flags.WRITE
    mapped, event = cl.enqueue_map_buffer(queue, a, both, 0, (N,), np.int32)
    assert isinstance(mapped.base, cl.MemoryMap)
    assert mapped[0] == 7
    event.wait()
    with mapped.base:
        mapped[:] = 1
    kernels["add"](queue, (N,), None, a, np.int32(1))
    mapped, _ = cl.enqueue_map_buffer(queue, a, both, 0, (N,), np.int32)
    mapped[:] += 5
    del mapped
    gc.collect()
    assert values_of(queue, a)[9] == 7
    if queue.runtime.plan.backend == "emulated":
        return  # it asks the driver later
    with pytest.raises(cl.LogicError):
        cl.enqueue_map_buffer(queue, a, both, 0, (1 << 20,), np.int32)


def test_a_map_that_is_given_up_is_unmapped_when_it_has_run(
    queue: acs.Queue, kernels: Kernels
) -> None:
    a = buffer(queue, np.zeros(N))
    gate = cl.UserEvent(queue.context)
    kernels["add"](queue, (N,), None, a, np.int32(1), wait_for=[gate])
    with pytest.raises(acs.UsageError, match="address at once"):
        cl.enqueue_map_buffer(queue, a, cl.map_flags.WRITE, 0, (N,), np.int32)
    gate.set_status(COMPLETE)
    queue.finish()
    assert a.map_count == 0
    assert values_of(queue, a)[9] == 1


def test_memory_that_is_mapped_when_a_queue_goes_is_unmapped_before_its_runtime(
    context: cl.Context,
) -> None:
    """Intel's CPU runtime begins nothing more once a queue without order goes before its unmap."""
    queue = acs.Queue(context)
    a, left = buffer(queue, np.zeros(N)), []
    kind = type(queue.runtime.engine.backend)
    close = kind.close

    def closed(backend: Any) -> None:
        close(backend)
        left.append(a.map_count)

    with changed(kind, "close", closed):
        mapped, event = cl.enqueue_map_buffer(queue, a, cl.map_flags.READ, 0, (N,), np.int32)
        assert not mapped.any()
        del queue, mapped, event
        gc.collect()
    assert left == [0]


def test_a_queue_that_could_not_begin_has_no_share_in_its_runtime(
    device: cl.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, before = cl.Context([device]), with_queues()

    def fail(*_: object) -> None:
        raise MemoryError("refused for the test")

    with monkeypatch.context() as within:
        within.setattr(patch, "enter", fail)
        with pytest.raises(MemoryError, match="refused"):
            acs.Queue(context)
    assert with_queues() == before
    queue = acs.Queue(context)
    assert len(with_queues()) == len(before) + 1
    queue.finish()


def test_rectangles(queue: acs.Queue) -> None:
    source, target = buffer(queue, np.arange(64)), buffer(queue, np.zeros(64))
    cl.enqueue_copy(
        queue, target, source, src_origin=(4, 1), dst_origin=(0, 0), region=(8, 3),
        src_pitches=(32,), dst_pitches=(32,),
    )  # fmt: skip
    expected = np.zeros((8, 8), np.int32)
    expected[:3, :2] = np.arange(64).reshape(8, 8)[1:4, 1:3]
    assert np.array_equal(values_of(queue, target, 64).reshape(8, 8), expected)
    host = np.zeros((8, 8), np.int32)
    cl.enqueue_copy(
        queue, host, source, buffer_origin=(0, 2), host_origin=(0, 0), region=(32, 1),
        buffer_pitches=(32,), host_pitches=(32,),
    )  # fmt: skip
    assert np.array_equal(host[0], np.arange(16, 24))


def test_sub_buffers(queue: acs.Queue, kernels: Kernels) -> None:
    whole = buffer(queue, np.zeros(4 * N))
    parts = [whole.get_sub_region(4 * N * k, 4 * N) for k in range(4)]
    queue.finish()
    before = edges(queue)
    for k, part in enumerate(parts):
        kernels["slow"](queue, (N,), None, part, np.int32(k + 1), np.int32(100))
    assert edges(queue) == before
    kernels["add"](queue, (4 * N,), None, whole, np.int32(10))
    assert values_of(queue, parts[2])[3] == 13
    assert list(values_of(queue, whole, 4 * N)[::N]) == [11, 12, 13, 14]


def test_shared_virtual_memory(queue: acs.Queue, kernels: Kernels) -> None:
    if not has_coarse_grain_buffer_svm(queue.device):
        pytest.skip("no shared virtual memory")
    memory = cl.SVM(cl.csvm_empty(queue.context, N, np.int32))
    # without queue=, whose clEnqueueSVMFree keeps the address of a list that PyOpenCL lets go of,
    # and crashes PoCL 3.0 on plain queues too; launches hold the memory anyway
    other = cl.SVMAllocation(queue.context, 4 * N, 64, cl.svm_mem_flags.READ_WRITE)
    cl.enqueue_svm_memfill(queue, other, np.int32(3))
    kernels["slow"](queue, (N,), None, memory, np.int32(2), np.int32(ROUNDS // N))
    kernels["mix_in"](queue, (N,), None, memory, other, 1)
    with memory.map_rw(queue) as mapped:
        assert mapped[5] == 2
        mapped[:] = 1
    kernels["mix_in"](queue, (N,), None, memory, other, 1)
    host = np.empty(N, np.int32)
    cl.enqueue_copy(queue, host, other)
    index = np.arange(N)
    assert np.array_equal(host, (9 + 2 + index) * 3 + 1 + index)
    del other
    gc.collect()


def test_shared_memory_is_not_freed_under_a_launch(queue: acs.Queue, kernels: Kernels) -> None:
    if not has_coarse_grain_buffer_svm(queue.device):
        pytest.skip("no shared virtual memory")
    flags = cl.svm_mem_flags.READ_WRITE
    one, other = (cl.SVMAllocation(queue.context, 4 * N, 64, flags, queue) for _ in range(2))
    gate = cl.UserEvent(queue.context)
    kernels["add"](queue, (N,), None, one, np.int32(1), wait_for=[gate])
    freed: Any = one.enqueue_release()
    cl.CommandQueue.finish(cl.CommandQueue.from_int_ptr(queue._pointer))  # the driver's own queue
    assert freed.command_execution_status != COMPLETE
    gate.set_status(COMPLETE)
    freed.wait()
    kernels["add"](queue, (N,), None, other, np.int32(1))
    other.release()
    queue.finish()


def test_objects_that_share_memory_of_the_host(queue: acs.Queue, kernels: Kernels) -> None:
    """Buffers on the program's memory, parts of them and SVM are the same bytes."""
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    context = queue.context
    host = np.zeros(1 << 10, np.int32)
    one, other = (cl.Buffer(context, flags, hostbuf=host) for _ in range(2))
    objects = [one, other, other.get_sub_region(0, 2048)]
    if queue.device.svm_capabilities & cl.device_svm_capabilities.COARSE_GRAIN_BUFFER:
        memory = cl.SVMAllocation(context, host.nbytes, 64, cl.svm_mem_flags.READ_WRITE)
        cl.enqueue_svm_memfill(queue, memory, np.zeros((), np.int32))
        objects = [memory, memory.as_buffer(context)]
        objects.append(objects[1].get_sub_region(0, 2048))
    before = edges(queue)
    with inside.held_by_driver(queue.runtime):
        for step in range(12):
            some = objects[step % len(objects)]
            kernels["slow"](queue, (1,), None, some, np.int32(step), np.int32(1))
        assert edges(queue) >= before + 11
    queue.finish()


def called(rt: acs.Runtime, own: Any, x: Any, y: acs.Array) -> None:
    own.mix_in((N,), None, x, y, 1)


def called_as_records(rt: acs.Runtime, own: Any, x: Any, y: acs.Array) -> None:
    with inside.planned_by_python(rt):
        own.mix_in((N,), None, x, y, 1)


def called_with_an_array(rt: acs.Runtime, own: Any, x: Any, y: acs.Array) -> None:
    with cl.CommandQueue(rt.context, rt.device) as other:
        own.mix_in((N,), None, cl.array.Array(other, N, np.int32, data=x), y, 1)


def called_many_times(rt: acs.Runtime, own: Any, x: Any, y: acs.Array) -> None:
    own.mix_in.launch_many((N,), None, x, y, 1, count=2)


def named_as_read(rt: acs.Runtime, own: Any, x: Any, y: acs.Array) -> None:
    own.mix_in((N,), None, x, y, 1, reads=[x, y])


def named_as_written(rt: acs.Runtime, own: Any, x: Any, y: acs.Array) -> None:
    own.add((N,), None, x, 1, writes=x)


def written(rt: acs.Runtime, own: Any, x: Any, y: acs.Array) -> None:
    own.add((N,), None, x, 1)


def deciding(rt: acs.Runtime, own: Any, x: Any, y: acs.Array) -> None:
    whole = x.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT) or x
    own.add((N,), None, y, 1, when=whole.get_sub_region(4 * N, 4))


def replayed(rt: acs.Runtime, own: Any, x: Any, y: acs.Array) -> None:
    with rt.record() as graph:
        own.mix_in((N,), None, x, y, 1)
        own.add((N,), None, x, 1)
    graph.replay()


@pytest.mark.parametrize("is_part", [False, True])
@pytest.mark.parametrize(
    "way",
    [
        called, called_as_records, called_with_an_array, called_many_times, named_as_read,
        named_as_written, written, deciding, replayed,
    ],
)  # fmt: skip
def test_memory_of_the_program_is_the_same_for_its_runtime(
    queue: acs.Queue, kernels: Kernels, way: Callable[..., None], is_part: bool
) -> None:
    """A launch of the runtime meets a command that uses the same host memory, and the reverse."""
    rt, flags = queue.runtime, READ_WRITE | cl.mem_flags.USE_HOST_PTR
    own, y = rt.build(SOURCE), rt.zeros(N, "i4")
    shared, apart = (
        cl.Buffer(queue.context, flags, hostbuf=np.ones(4 * N, np.int32)) for _ in range(2)
    )

    rt.finish()

    def command(memory: cl.Buffer) -> None:
        kernels["slow"](queue, (4 * N,), None, shared, np.int32(3), np.int32(1))

    def launch(memory: cl.Buffer) -> None:
        way(rt, own, memory.get_sub_region(4 * N, 4 * N) if is_part else memory, y)

    def edges_with(memory: cl.Buffer, is_first: bool) -> int:
        with inside.held_by_driver(rt):
            before = edges(queue)
            for step in (launch, command) if is_first else (command, launch):
                step(memory)
            found = edges(queue) - before
        rt.finish()
        return found

    for _ in range(3):
        for is_first in (True, False):
            assert edges_with(shared, is_first) > edges_with(apart, is_first)


def test_the_runtime_finds_what_a_slow_command_stored(queue: acs.Queue, kernels: Kernels) -> None:
    """In memory of the program, and the reverse."""
    own, flags = queue.runtime.build(SOURCE), READ_WRITE | cl.mem_flags.USE_HOST_PTR
    shared = cl.Buffer(queue.context, flags, hostbuf=np.zeros(1, np.int32))
    for step in range(1, 5):
        y = queue.runtime.zeros(1, "i4")
        kernels["slow"](queue, (1,), None, shared, np.int32(step), np.int32(ROUNDS // 10))
        own.mix_in((1,), None, shared, y, 1)
        assert y.get()[0] == step
        own.slow((1,), None, shared, -step, ROUNDS // 10)
        kernels["add"](queue, (1,), None, shared, np.int32(step))
        assert values_of(queue, shared, 1)[0] == 0


def test_buffers_on_memory_of_the_runtime(queue: acs.Queue, kernels: Kernels) -> None:
    """They meet the array that they stand on, or all arrays."""
    rt = queue.runtime
    if not rt.engine.store.is_svm:
        pytest.skip("its arrays are buffers")
    own, x, slab = rt.build(SOURCE), rt.zeros(N, "i4"), queue.allocator(4 * N)
    assert isinstance(slab, cl.SVMPointer)
    cl.enqueue_svm_memfill(queue, slab, np.zeros((), np.int32))
    for memory, array in ((x.data, x), (slab, slab)):
        for _ in range(3):
            part = memory.as_buffer(rt.context)
            rt.finish()
            with inside.held_by_driver(rt):
                before = edges(queue)
                own.add((N,), None, array, 1)
                kernels["add"](queue, (N,), None, part, np.int32(1))
                own.add((N,), None, array, 1)
                own.add((N,), None, part, 1)
                assert edges(queue) >= before + 3
    assert x.get().tolist() == [12] * N
    rt.finish()


def test_images(queue: acs.Queue) -> None:
    if not queue.device.image_support:
        pytest.skip("no images")
    source = """
    const sampler_t NEAR = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
    kernel void halve(read_only image2d_t from, write_only image2d_t to)
    {
      int2 at = (int2)(get_global_id(0), get_global_id(1));
      write_imageui(to, at, read_imageui(from, NEAR, at) / 2);
    }"""
    program = cl.Program(queue.context, source).build()
    halve = program.halve
    form = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNSIGNED_INT32)
    flags = cl.mem_flags.READ_WRITE
    images = [cl.create_image(queue.context, flags, form, (8, 4)) for _ in range(3)]
    host = np.arange(8 * 4 * 4, dtype=np.uint32).reshape(4, 8, 4)
    where: dict[str, Any] = {"origin": (0, 0), "region": (8, 4)}
    cl.enqueue_copy(queue, images[0], host, **where)
    halve(queue, (8, 4), None, images[0], images[1])
    cl.enqueue_copy(
        queue, images[2], images[1], src_origin=(0, 0), dest_origin=(0, 0), region=(8, 4)
    )
    flat = cl.Buffer(queue.context, flags, host.nbytes)
    cl.enqueue_copy(queue, flat, images[2], offset=0, **where)
    found = np.empty_like(host)
    cl.enqueue_copy(queue, found, flat)
    assert np.array_equal(found, host // 2)
    back = np.empty_like(host)
    cl.enqueue_copy(queue, back, images[2], **where)
    assert np.array_equal(back, host // 2)


# ---- errors --------------------------------------------------------------------------------------


def test_errors_are_those_of_pyopencl(queue: acs.Queue, kernels: Kernels) -> None:
    plain = cl.CommandQueue(queue.context)
    a = buffer(queue, np.zeros(N))
    add = kernels["add"]
    fresh = kernels_of(queue.context)["add"]

    def wrong_size(where: Any) -> None:
        add(where, (N,), (N - 1,), a, np.int32(1))

    def wrong_argument(where: Any) -> None:
        add(where, (N,), None, a, 1)

    def wrong_count(where: Any) -> None:
        add(where, (N,), None, a)

    def nothing_set(where: Any) -> None:
        cl.enqueue_nd_range_kernel(where, fresh, (N,), None)

    def no_kernel(where: Any) -> None:
        cl.enqueue_nd_range_kernel(where, None, (N,), None)  # type: ignore[arg-type]

    def too_long(where: Any) -> None:
        cl.enqueue_copy(where, np.zeros(2 * N, np.int32), a)

    def with_gaps(where: Any) -> None:
        cl.enqueue_copy(where, np.zeros(2 * N, np.int32)[::2], a)

    def overlapping(where: Any) -> None:
        cl.enqueue_copy(where, a, a, byte_count=16, src_offset=0, dst_offset=8)

    def no_such_keyword(where: Any) -> None:
        cl.enqueue_copy(where, a, np.zeros(N, np.int32), nonsense=1)

    wrongs = (wrong_size, wrong_argument, wrong_count, nothing_set, no_kernel, too_long, with_gaps)
    for wrong in (*wrongs, overlapping, no_such_keyword):
        if wrong is nothing_set and queue.runtime.plan.backend == "emulated":
            continue  # it asks the driver later, and only that knows which arguments are set
        expected: type[BaseException] | None = None
        try:
            wrong(plain)
        except Exception as error:
            expected = type(error)
        if expected is None:
            continue
        with pytest.raises(expected) as caught:
            wrong(queue)
        assert type(caught.value) is expected, wrong.__name__
        assert any(entry.name == wrong.__name__ for entry in caught.traceback)
    assert values_of(queue, a)[0] == values_of(plain, a)[0]


def test_a_failed_event_in_a_wait_list(queue: acs.Queue, kernels: Kernels) -> None:
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.zeros(N))
    gate = cl.UserEvent(queue.context)
    event = kernels["add"](queue, (N,), None, a, np.int32(1), wait_for=[gate])
    gate.set_status(-5)
    with pytest.raises(cl.RuntimeError):
        event.wait()
    assert event.command_execution_status < 0
    kernels["add"](queue, (N,), None, b, np.int32(1))
    assert values_of(queue, b)[0] == 1


@pytest.mark.parametrize("of", ["handle", "address"])
def test_memory_that_was_not_written_lives_while_it_is_poisoned(
    queue: acs.Queue, kernels: Kernels, of: str
) -> None:
    """Other memory would get its name, and be poisoned."""
    host = np.zeros(N, np.int32)
    if of == "address":
        flags = READ_WRITE | cl.mem_flags.USE_HOST_PTR
        memory = cl.Buffer(queue.context, flags, hostbuf=host)
    else:
        memory = buffer(queue, host)
    name, address = memory.int_ptr, host.ctypes.data
    lives = weakref.ref(host)
    gate = cl.UserEvent(queue.context)
    event = kernels["add"](queue, (N,), None, memory, np.int32(1), wait_for=[gate])
    gate.set_status(-5)
    with pytest.raises(cl.RuntimeError):
        event.wait()
    kernels["add"](queue, (N,), None, buffer(queue, host), np.int32(1)).wait()  # forgets memory
    del memory, host, event
    gc.collect()
    poison = queue.runtime.engine.failures.poison
    assert (-name in poison.bases) == (of == "handle")
    assert poison.kept
    if of == "handle":
        fresh = [cl.Buffer(queue.context, READ_WRITE, 4 * N) for _ in range(20)]
        assert name not in [one.int_ptr for one in fresh]
    else:
        assert lives() is not None
        assert lives().ctypes.data == address
    poison.overwrite(tuple(span for span, _ in poison.kept))
    assert not poison.kept
    gc.collect()
    assert of == "handle" or lives() is None


# ---- the interception ----------------------------------------------------------------------------


def test_nothing_is_replaced_without_a_queue_and_all_is_put_back(rt: acs.Runtime) -> None:
    gc.collect()
    if inside.are_calls_replaced():
        pytest.skip("another test's queue lives")
    names = [name for name in dir(_cl) if "enqueue" in name] + ["wait_for_events"]
    before = {name: getattr(_cl, name) for name in names}
    setters = {name: getattr(cl.Kernel, name) for name in patch.SETTERS}
    queue = acs.Queue(rt.context, runtime=rt)
    second = acs.Queue(rt.context, runtime=rt)
    assert all(getattr(_cl, name) is not before[name] for name in names)
    kept = cl.enqueue_nd_range_kernel
    del queue
    gc.collect()
    assert _cl.enqueue_nd_range_kernel is kept
    ours = cl._enqueue_marker_with_wait_list
    other: Any = lambda *args: ours(*args)  # noqa: E731  what some other library may do
    _cl._enqueue_marker_with_wait_list = other
    del second
    gc.collect()
    assert _cl._enqueue_marker_with_wait_list is other
    _cl._enqueue_marker_with_wait_list = before["_enqueue_marker_with_wait_list"]
    assert {name: getattr(_cl, name) for name in names} == before
    assert cl.enqueue_nd_range_kernel is before["enqueue_nd_range_kernel"]
    assert {name: getattr(cl.Kernel, name) for name in patch.SETTERS} == setters
    plain = cl.CommandQueue(rt.context)
    a = buffer(plain, np.zeros(N))
    add = kernels_of(rt.context)["add"]
    add.set_args(a, np.int32(2))
    kept(plain, add, (N,), None)  # somebody kept it: it is the original
    assert values_of(plain, a)[0] == 2


def test_arguments_are_not_remembered_across_queues(rt: acs.Runtime) -> None:
    add = kernels_of(rt.context)["add"]
    queue = acs.Queue(rt.context, runtime=rt)
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.zeros(N))
    add(queue, (N,), None, a, np.int32(1))
    queue.finish()
    del queue
    gc.collect()
    if not inside.are_calls_replaced():
        add.set_args(b, np.int32(2))  # not seen
    queue = acs.Queue(rt.context, runtime=rt)
    add.set_arg(1, np.int32(3))
    cl.enqueue_nd_range_kernel(queue, add, (N,), None)
    if kernel_arguments._generation:
        assert values_of(queue, a)[0] + values_of(queue, b)[0] == 4


def test_commands_by_the_handle_of_the_queue(queue: acs.Queue, kernels: Kernels) -> None:
    """What a library does that takes `queue.int_ptr`: PyOpenCL's originals stand in for it."""
    fill: Any = next(
        original
        for where, name, original, _ in patch._replaced
        if where is _cl and name == "_enqueue_fill_buffer"
    )
    a = buffer(queue, np.zeros(N))
    for step in range(3):
        kernels["slow"](queue, (1,), None, a, np.int32(step), np.int32(ROUNDS // 10))
        native = _cl.CommandQueue.from_int_ptr(queue.int_ptr)
        fill(native, a, np.int32(10), 0, 4 * N, None)
        kernels["add"](queue, (N,), None, a, np.int32(step))
    assert values_of(queue, a)[0] == 12
    event = cl.enqueue_marker(_cl.CommandQueue.from_int_ptr(queue.int_ptr))
    assert event.command_queue is queue


def test_the_block_of_a_queue(rt: acs.Runtime) -> None:
    kernels = kernels_of(rt.context)
    with acs.Queue(rt.context, runtime=rt) as queue:
        a = buffer(queue, np.zeros(N))
        event = kernels["slow"](queue, (1,), None, a, np.int32(7), np.int32(ROUNDS))
    assert not testing.is_in_flight(rt, event)
    with pytest.warns(cl.CommandQueueUsedAfterExit):
        assert values_of(queue, a)[0] == 7


def test_queues_of_one_context_share_a_runtime_and_drop_it(context: cl.Context) -> None:
    first, second = acs.Queue(context), acs.Queue(context)
    assert first.runtime is second.runtime
    kernels = kernels_of(context)
    a = buffer(first, np.zeros(N))
    for step in range(6):  # not ordered by events; ours keep their order all the same
        kernels["slow"](first, (1,), None, a, np.int32(step), np.int32(1000))
        kernels["add"](second, (N,), None, a, np.int32(1))
    second.finish()
    assert values_of(second, a)[0] == 6
    timed = acs.Queue(context, properties=PROFILING)
    assert timed.runtime is not first.runtime
    runtime = first.runtime
    del first, second, timed
    gc.collect()
    assert not any(user == id(runtime) for user in inside.users())


def test_queues_that_are_dropped_with_work_in_flight(context: cl.Context) -> None:
    kernels = kernels_of(context)
    plain = cl.CommandQueue(context)
    a = buffer(plain, np.zeros(N))

    def work() -> None:
        queue = acs.Queue(context)
        kernels["slow"](queue, (1,), None, a, np.int32(7), np.int32(ROUNDS))
        queue.flush()

    work()
    gc.collect()
    queue = acs.Queue(context)
    queue.finish()
    testing.wait_until(lambda: values_of(plain, a)[0] == 7)


def test_threads(queue: acs.Queue) -> None:
    results: dict[int, Any] = {}

    def work(index: int) -> None:
        kernels = kernels_of(queue.context)
        mine = acs.Queue(queue.context, runtime=queue.runtime) if index % 2 else queue
        a, b = buffer(mine, np.zeros(N)), buffer(mine, np.zeros(N))
        for step in range(40):
            kernels["add"](mine, (N,), None, a, np.int32(index))
            kernels["mix_in"](mine, (N,), None, a, b, step)
            if step % 10 == 0:
                mine.finish()
        results[index] = values_of(mine, b)

    in_threads(work)
    plain = cl.CommandQueue(queue.context)
    kernels = kernels_of(queue.context)
    for index, found in results.items():
        a, b = buffer(plain, np.zeros(N)), buffer(plain, np.zeros(N))
        for step in range(40):
            kernels["add"](plain, (N,), None, a, np.int32(index))
            kernels["mix_in"](plain, (N,), None, a, b, step)
        assert np.array_equal(found, values_of(plain, b)), index


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bypas": True}, "no option 'bypas'; did you mean 'bypass'"),
        ({"devices": "all"}, "no option 'devices'; did you mean 'device'"),
        ({"runtime": 3}, "runtime= takes an acs_cl.Runtime, got int 3"),
        ({"properties": 5}, "properties: a queue ON_DEVICE takes no commands of the host"),
    ],
)
def test_wrong_options_of_a_queue_are_refused(
    options: dict[str, Any], message: str, device: cl.Device
) -> None:
    with pytest.raises(acs.UsageError, match=message):
        acs.Queue(cl.Context([device]), **options)


def test_a_queue_takes_an_open_runtime_of_its_context_as_it_is(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        with pytest.raises(acs.UsageError, match=r"another context or device; .*runtime\.context"):
            acs.Queue(cl.Context([device]), runtime=rt)
        with pytest.raises(acs.UsageError, match="runtime= has its own options; leave out lanes"):
            acs.Queue(rt.context, runtime=rt, lanes=2)
    with pytest.raises(acs.UsageError, match="the runtime is closed"):
        acs.Queue(rt.context, runtime=rt)


def test_a_recording_refuses_queues(queue: acs.Queue, kernels: Kernels) -> None:
    a = buffer(queue, np.zeros(N))
    with pytest.raises(acs.UsageError, match="recording"), queue.runtime.record():
        kernels["add"](queue, (N,), None, a, np.int32(1))


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_is_told(device: cl.Device) -> None:
    code = """
import os, numpy as np, pyopencl as cl, pyopencl.array, acs_cl as acs
queue = acs.Queue(cl.create_some_context(interactive=False))
x = cl.array.to_device(queue, np.zeros(4, "f4"))
child = os.fork()
if child == 0:
    try:
        cl.enqueue_copy(queue, x.data, np.ones(4, "f4"))
    except cl.Error as error:
        os._exit(7 if "fork" in str(error) else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (x + 1).get()[0])
"""
    assert run_python(code).split() == ["7", "1.0"]


# ---- the command ---------------------------------------------------------------------------------

PROGRAM = """
import sys
import numpy as np, pyopencl as cl, pyopencl.array
queue = cl.CommandQueue(cl.create_some_context(interactive=False))
assert isinstance(queue, cl.CommandQueue)
x = cl.array.to_device(queue, np.arange(10, dtype="f4"))
print(__name__, sys.argv[1:], (x + x).get()[9])
sys.exit(int(sys.argv[1]))
"""


def test_a_run_from_outside_is_reported(tmp_path: Path, device: cl.Device) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "acs_cl", "run", str(program), "3", "--backend", "x"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 3, done.stderr
    assert done.stdout.split("\n")[0] == "__main__ ['3', '--backend', 'x'] 18.0"
    said = done.stderr
    assert "queues 1, launches 3, edges " in said
    assert "in flight on the device" in said
    assert "commands not understood, so ordered after all: none" in said


MEASURED = """
import numpy as np, pyopencl as cl, pyopencl.array
queue = cl.CommandQueue(cl.create_some_context(interactive=False))
x = cl.array.to_device(queue, np.arange(10, dtype="f4"))
with queue.runtime.measure() as m:
    y = x + x
assert y.get()[9] == 18
assert sum(one.launches for one in m.phases) == 1
print(queue.runtime.stats().get("check", {}).get("launches", 0))
"""


@pytest.mark.parametrize(("name", "value"), [("CHECK", "access,order"), ("BACKEND", "device")])
def test_a_run_from_outside_makes_queues_of_its_own(
    name: str, value: str, tmp_path: Path, device: cl.Device
) -> None:
    """Those that checks and measuring need are the driver's."""
    if value == "device" and not has_coarse_grain_buffer_svm(device):
        pytest.skip("no shared virtual memory")
    program = tmp_path / "program.py"
    program.write_text(MEASURED)
    done = subprocess.run(
        [sys.executable, "-m", "acs_cl", "run", str(program)], capture_output=True, text=True,
        check=False, timeout=300, env={**os.environ, f"ACS_CL_{name}": value},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (int(done.stdout.split()[0]) > 0) == (name == "CHECK")
    said = "checked (access,order=0): launches 3, kernels 1"
    assert (said in done.stderr) == (name == "CHECK"), done.stderr


def test_run_takes_a_program_that_makes_our_queues_itself() -> None:
    """They are queues to PyOpenCL's own tests, and are counted."""
    program = Path(__file__).parents[1] / "examples" / "existing_pyopencl_program.py"
    done = subprocess.run(
        [sys.executable, "-m", "acs_cl", "run", str(program)], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "acs-cl run: queues 1, " in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--report", "no/where/page.html"), "--report no/where/page.html: there is no folder"),
        (("--out", "no/where/said"), "--out no/where/said: there is no folder"),
        (("--report", os.curdir), "--report .: it is a folder; name a file"),
        (("--out", os.curdir), "--out .: it is a folder; name a file"),
        (("--backend", "lane"), "unknown backend 'lane'; there are: auto, serial"),
    ],
)
def test_run_refuses_before_the_program_runs(
    words: tuple[str, ...], said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text("print('ran')", "utf-8")
    assert cli.main(["run", *words, str(program)]) == 1
    out, err = capfd.readouterr()
    assert said in err
    assert not out


FORKS = """
import os, signal, numpy as np, pyopencl as cl
child = os.fork()
if not child:
    signal.alarm(60)
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    x, found = cl.Buffer(context, cl.mem_flags.READ_WRITE, 64), np.zeros(16, "i4")
    cl.enqueue_fill_buffer(queue, x, np.int32(5), 0, 64)
    cl.enqueue_copy(queue, found, x)
    os._exit(0 if (found == 5).all() else 3)
raise SystemExit(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_program_that_runs_may_fork_before_it_opens_a_driver(tmp_path: Path) -> None:
    """Threads of a driver that is open are not in the child, which would wait for them for ever."""
    program = tmp_path / "program.py"
    program.write_text(FORKS, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "acs_cl", "run", str(program)],
        env={**os.environ, "ACS_CL_POCL_CPU": "off"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_run_says_what_is_wrong(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "acs_cl", "run", str(tmp_path / "missing.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1
    assert "there is no file" in done.stderr
    failing = tmp_path / "failing.py"
    failing.write_text("raise ValueError('mine')")
    command[-1] = str(failing)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1
    assert "ValueError: mine" in done.stderr
    assert "made no queue" in done.stderr


def test_programs_that_are_built_again_and_again_are_let_go(device: cl.Device) -> None:
    """Kernels of programs that the program still has, or of which it has a kernel, stay right."""
    source = "kernel void add(global int *x, int by) { x[get_global_id(0)] += by; }"
    context = cl.Context([device])
    queue = acs.Queue(context, bypass=False)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 32)
    cl.enqueue_fill_buffer(queue, buffer, np.int32(0), 0, 32)
    kept = cl.Program(context, source).build()
    kernel = cl.Program(context, source).build().add
    for program in (kept.add, kernel):
        program(queue, (8,), None, buffer, np.int32(1000))
    engine = queue.runtime.engine
    for _ in range(RELEASED + 3 * LOOKED_AT):
        cl.Program(context, source).build().add(queue, (8,), None, buffer, np.int32(1))
        assert len(engine.programs) <= RELEASED + 2 * LOOKED_AT + 65
    for program in (kept.add, kernel):
        program(queue, (8,), None, buffer, np.int32(1000))
    got = np.empty(8, "i4")
    cl.enqueue_copy(queue, got, buffer)
    assert got.tolist() == [4000 + RELEASED + 3 * LOOKED_AT] * 8
