"""Kernels on an `acs.Queue` that the core launches, beside those that Python launches.

A queue whose launches Python makes (`by_python`) does the same, and a plain queue is the oracle.
"""

from __future__ import annotations

import gc
import itertools
import random
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools
import pytest
from fuzz.threads import in_threads

import acs_cl as acs
from acs_cl import core, testing
from acs_cl.launch.backend import ALL, Lease
from acs_cl.queue import commands
from acs_cl.queue.events import QueueEvent
from tests.test_queue import (
    READ_WRITE,
    ROUNDS,
    SOURCE,
    N,
    buffer,
    edges,
    kernels_of,
    random_program,
    values_of,
)

pytestmark = pytest.mark.usefixtures("without_bypass")


@pytest.fixture
def long_way() -> Iterator[list[str]]:
    """The kernels that Python planned."""
    with inside.planned_commands() as found:
        yield found.kernels


def by_python(context: cl.Context, **options: Any) -> acs.Queue:
    """A queue whose kernels Python launches."""
    queue = inside.plan_every_command(acs.Queue(context, **options))
    gc.collect()
    return queue


# ---- what overlaps -------------------------------------------------------------------------------


class ModelSample:
    """The longest chain among launches, of what was in flight when they came."""

    def __init__(self) -> None:
        self.many = self.steps = 0
        self._levels: dict[int, int] = {}
        self._past = 0

    def note(self, number: int, upstream: Sequence[int], live: Collection[int]) -> None:
        levels = self._levels
        for one in [one for one in levels if one not in live]:
            self._past = max(self._past, levels.pop(one))
        level = 1 + max((levels.get(one, 0) for one in upstream), default=0)
        level = levels[number] = max(level, self._past + 1)
        self.many += 1
        self.steps = max(self.steps, level)


@pytest.mark.parametrize("seed", range(20))
def test_steps_of_launches_are_those_of_the_model(seed: int) -> None:
    choose = random.Random(seed)
    model, found = ModelSample(), core.native.Sample()
    live: set[int] = set()
    for number in range(1, 200):
        upstream = choose.sample(
            range(max(1, number - 9), number), choose.randrange(min(number, 4))
        )
        live.add(number)
        live -= {one for one in live if choose.random() < 0.1}
        for sample in (model, found):
            sample.note(number, upstream, live)
        assert (found.many, found.steps) == (model.many, model.steps)
    assert found.overlap == model.many / model.steps


# ---- launches ------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["auto", "out_of_order", "lanes", "serial"])
def test_the_core_launches_what_python_did_once(
    context: cl.Context, long_way: list[str], backend: str
) -> None:
    kernels, found = kernels_of(context), []
    for make in (acs.Queue, by_python):
        queue = make(context, backend=backend)
        rows = [buffer(queue, np.zeros(N)) for _ in range(4)]
        del long_way[:]
        for step in range(30):
            for x, y in pairwise(rows):
                kernels["mix_in"](queue, (N,), None, x, y, step)
            kernels["add"].set_args(rows[step % 4], np.int32(step))
            cl.enqueue_nd_range_kernel(queue, kernels["add"], (N,), None)
        assert (len(long_way) < 20) == (make is acs.Queue), long_way
        assert edges(queue) > 0
        found.append([values_of(queue, row).tolist() for row in rows])
        queue.finish()
        assert testing.is_at_rest(queue.runtime)
    plain = cl.CommandQueue(context)
    rows = [buffer(plain, np.zeros(N)) for _ in range(4)]
    for step in range(30):
        for x, y in pairwise(rows):
            kernels["mix_in"](plain, (N,), None, x, y, step)
        kernels["add"](plain, (N,), None, rows[step % 4], np.int32(step))
    expected = [values_of(plain, row).tolist() for row in rows]
    assert found == [expected] * 2


def test_sizes_of_any_kind_are_no_long_way(context: cl.Context, long_way: list[str]) -> None:
    queue, kernel = acs.Queue(context, backend="lanes"), kernels_of(context)["add"]
    y = buffer(queue, np.zeros(N))
    sizes = [(np.int64(N), None), (np.uint8(N // 4), np.int16(4)), (np.uint64(N), np.int32(8))]
    several = [N // 2]
    for turn in range(4):
        if turn == 1:
            del long_way[:]
        for size, local in sizes:
            kernel(queue, (size,), None if local is None else (local,), y, np.int32(1))
        for several[0] in (N // 2, 1):  # of a list that changes
            kernel(queue, several, [1], y, np.int32(1))
    assert not long_way
    with testing.hold(queue.runtime):  # what is held is told to Python
        event = kernel(queue, (np.int64(N),), None, y, np.int32(1))
    event.wait()
    expected = np.full(N, 9)
    expected[: N // 4] += 4
    expected[: N // 2] += 4
    expected[0] += 4
    assert (values_of(queue, y) == expected).all()


def test_many_pointers_and_none_at_all(context: cl.Context, long_way: list[str]) -> None:
    """As in generated kernels: tables by the dozen, and no memory for what is left out."""
    names = [f"t{number}" for number in range(24)]
    tables = ", ".join(f"global const int *{name}" for name in names)
    source = f"""
    kernel void total(global int *sum, {tables}, global const int *more)
    {{ size_t i = get_global_id(0); sum[i] += (more ? more[i] : 0) + {" + ".join(f"{name}[i]" for name in names)}; }}
    """  # noqa: E501
    queue = acs.Queue(context, backend="lanes")
    kernel = cl.Program(context, source).build().total
    rows = [buffer(queue, np.full(N, number)) for number in range(len(names))]
    more, found = buffer(queue, np.ones(N)), buffer(queue, np.zeros(N))
    each = sum(range(len(names)))
    for extra in (None, more, None):
        kernel(queue, (N,), None, found, *rows, extra)
        del long_way[:]
        for _ in range(5):
            kernel(queue, (N,), None, found, *rows, extra)
        assert not long_way
    assert (values_of(queue, found) == 18 * each + 6).all()


def test_a_kernel_without_parameters_touches_nothing(
    context: cl.Context, long_way: list[str]
) -> None:
    """No setter is called for it, so that nothing is noted. It follows no launch, none follows it,
    and the core launches it."""
    source = "kernel void nothing() {} kernel void more(global int *x) { x[get_global_id(0)]++; }"
    program = cl.Program(context, source).build(cache_dir=False)
    nothing, more = program.nothing, program.more
    queue = acs.Queue(context, backend="lanes", lanes=4)
    rows = [buffer(queue, np.zeros(N)) for _ in range(4)]
    for row in rows:
        more(queue, (N,), None, row)
        nothing(queue, (1,), None)
    queue.finish()
    del long_way[:]
    before = queue.runtime.stats()["edges"]
    with inside.held_by_driver(queue.runtime):
        for row in rows:
            more(queue, (N,), None, row)
            nothing(queue, (1,), None)
        assert queue.runtime.stats()["edges"] == before
    assert not long_way
    assert not queue.not_understood
    assert all((values_of(queue, row) == 2).all() for row in rows)


OFFSETS = """
kernel void part(global char *base, long offset, global const int *from, int rounds)
{
  global int *to = (global int *) (base + offset);
  int i = get_global_id(0), a = from[i];
  for (int round = 0; round < rounds; round++) a = a * 3 + i;
  to[i] += a;
}
"""


def test_parts_of_one_buffer_are_independent(context: cl.Context, long_way: list[str]) -> None:
    """As arrays of PyOpenCL hand over views: a buffer and an offset. The core works out which bytes
    new numbers reach, also after a hundred of them."""
    queue = acs.Queue(context, backend="lanes", lanes=4)
    part = cl.Kernel(cl.Program(context, OFFSETS).build(), "part")
    parts = 128
    base, source = buffer(queue, np.zeros(8 * parts)), buffer(queue, np.ones(8))
    for at in range(2):
        part(queue, (8,), None, base, np.int64(32 * at), source, np.int32(0))
    queue.finish()
    del long_way[:]
    before = queue.runtime.stats()["edges"]
    for at in range(parts):
        part(queue, (8,), None, base, np.int64(32 * at), source, np.int32(ROUNDS // 100))
    after = queue.runtime.stats()["edges"]
    assert not long_way
    assert after == before
    part(queue, (8,), None, base, np.int64(16), source, np.int32(0))  # behind two of them
    found = values_of(queue, base, 8 * parts)
    plain = cl.CommandQueue(context)
    other = buffer(plain, np.zeros(8 * parts))
    for at, rounds in [(0, 0), (1, 0), *((at, ROUNDS // 100) for at in range(parts)), (0.5, 0)]:
        offset = np.int64(int(32 * at))
        part(plain, (8,), None, other, offset, buffer(plain, np.ones(8)), np.int32(rounds))
    assert np.array_equal(found, values_of(plain, other, 8 * parts))


def test_memory_of_the_allocator_is_no_long_way(context: cl.Context, long_way: list[str]) -> None:
    queue, kernel = acs.Queue(context, backend="lanes"), kernels_of(context)["add"]
    x = cl.array.zeros(queue, N, "i4", allocator=queue.allocator)
    for step in range(30):
        kernel(queue, (N,), None, x.data, np.int32(step))
    assert len(long_way) == 1
    assert (x.get() == sum(range(30))).all()


def test_arguments_of_kinds_that_alternate_are_no_long_way(
    context: cl.Context, long_way: list[str]
) -> None:
    """Each mixture of buffers and shared memory has a kernel of its own for queues. The plain queue
    has one that never gets shared memory: some drivers refuse buffers from then on."""
    queue, plain = acs.Queue(context, backend="lanes"), cl.CommandQueue(context)
    if not queue.runtime.engine.store.is_svm:
        pytest.skip("the runtime has no shared memory here")
    mix_in, by_hand = (kernels_of(context)["mix_in"] for _ in range(2))
    choose = random.Random(4)
    kinds = {"buffer": None, "svm": queue.allocator}
    for many, most in ((60, 4), (60, 0)):
        rows = {
            kind: [cl.array.zeros(queue, N, "i4", allocator=by) for _ in range(2)]
            for kind, by in kinds.items()
        }
        want = {kind: [cl.array.zeros(plain, N, "i4") for _ in range(2)] for kind in kinds}
        del long_way[:]
        for step in range(many):
            one, other = choose.choice([*kinds]), choose.choice([*kinds])
            mix_in(queue, (N,), None, rows[one][0].data, rows[other][1].data, step)
            by_hand(plain, (N,), None, want[one][0].data, want[other][1].data, step)
        assert len(long_way) <= most
        for kind, arrays in rows.items():
            for found, expected in zip(arrays, want[kind], strict=True):
                assert np.array_equal(found.get(), expected.get())


def test_kernels_for_many_kinds_of_arguments_are_not_all_kept(
    context: cl.Context, long_way: list[str]
) -> None:
    queue = acs.Queue(context, backend="lanes")
    if not queue.runtime.engine.store.is_svm:
        pytest.skip("the runtime has no shared memory here")
    source = "kernel void up(global int *x, global int *y, global int *z) { ++*x; ++*y; ++*z; }"
    up = cl.Program(context, source).build().up
    x, y, z = ([cl.array.zeros(queue, 1, "i4", allocator=by) for by in (None, queue.allocator)]
               for _ in range(3))  # fmt: skip
    for _ in range(5):
        for a, b, c in itertools.product(x, y, z):
            up(queue, (1,), None, a.data, b.data, c.data)
    assert all(one.get()[0] == 20 for one in (*x, *y, *z))
    assert 8 < len(long_way) <= 40


def test_edges_are_those_of_python(context: cl.Context) -> None:
    """While nothing ends, so that both see the same."""
    kernels = kernels_of(context)
    found = []
    for make in (acs.Queue, by_python):
        queue = make(context, backend="lanes", lanes=4)
        rows = [buffer(queue, np.zeros(N)) for _ in range(4)]
        for _ in range(4):
            kernels["mix_in"](queue, (N,), None, rows[0], rows[1], 0)
            kernels["slow"](queue, (N,), None, rows[0], np.int32(0), np.int32(1))
        queue.finish()
        before = queue.runtime.stats()["edges"]
        choose = random.Random(5)
        with inside.held_by_driver(queue.runtime):
            for row in rows:
                kernels["slow"](queue, (N,), None, row, np.int32(0), np.int32(1))
            for step in range(60):
                x, y = choose.sample(rows, 2)
                kernels["mix_in"](queue, (N,), None, x, y, step)
            after = queue.runtime.stats()["edges"]
        found.append({kind: after[kind] - before[kind] for kind in after})
        queue.finish()
    assert found[0] == found[1]
    assert found[0]["RAW"] > 20


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(context: cl.Context, seed: int) -> None:
    expected = random_program(cl.CommandQueue(context), kernels_of(context), seed, 120)
    found = random_program(acs.Queue(context), kernels_of(context), seed, 120)
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert np.array_equal(one, other), index


MANY_KINDS = """
kernel void tell(global int *to, global const int *from, int a, float b, long c, short d,
                 local int *l, uchar e, REAL f, int4 g)
{
  l[0] = from[0];
  to[0] = to[0] * 7 + l[0] + a + (int) b + (int) (c >> 20) + d + e + (int) f + g.y;
}
"""


def set_some(choose: random.Random, kernel: Any, memory: list[Any], real: bytes) -> None:
    """Some arguments anew, by some setter."""
    values = [
        (2, b"i", choose.randrange(-9, 9)), (3, b"f", choose.randrange(9) / 2),
        (4, b"l", choose.randrange(1 << 40)), (5, b"h", choose.randrange(-99, 99)),
        (7, b"B", choose.randrange(256)), (8, real, choose.randrange(9) / 4),
    ]  # fmt: skip
    four = np.array(choose.randbytes(16)).tobytes()[:16].ljust(16, b"\0")
    objects = [(0, choose.choice(memory)), (1, choose.choice(memory)), (6, cl.LocalMemory(64))]
    which = choose.randrange(8)
    if which == 0:
        kernel._set_arg_multi(sum(choose.sample(objects, 2), ()))
    elif which == 1:
        kernel._set_arg_buf_pack_multi(sum(choose.sample(values, 3), ()))
    elif which == 2:
        kernel._set_arg_buf_multi((9, four))
    elif which == 3:
        kernel.set_arg(2, np.int32(choose.randrange(99)))
    elif which == 4:
        kernel.set_arg(*choose.choice(objects))
    elif which > 5:  # a value that changes when it was set
        value = np.frombuffer(four, "i4").copy()
        given = value if which == 6 else value.view([("all", "i4", 4)])[0]
        if choose.random() < 0.5:
            kernel.set_arg(9, given)
        else:
            choose.choice((kernel._set_arg_multi, kernel._set_arg_buf_multi))((9, given))
        value += 1
    else:
        kernel._set_arg_buf_pack_multi((2, b"i", choose.randrange(9), 5, b"h", 3))


@pytest.mark.parametrize("seed", range(8))
def test_arguments_set_by_any_setter(context: cl.Context, long_way: list[str], seed: int) -> None:
    kind = "double" if context.devices[0].double_fp_config else "float"
    real = kind[:1].encode()
    # drivers forget the source of what came from a cache
    program = cl.Program(context, MANY_KINDS).build([f"-DREAL={kind}"], cache_dir=False)
    found: list[list[int]] = []
    for make in (cl.CommandQueue, acs.Queue):
        queue = make(context)
        choose = random.Random(seed)
        memory = [buffer(queue, np.arange(step, step + 4)) for step in range(4)]
        kernels: list[Any] = [cl.Kernel(program, "tell") for _ in range(2)]
        for kernel in kernels:
            kernel._set_arg_multi((0, memory[0], 1, memory[1], 6, cl.LocalMemory(64)))
            packed = 2, b"i", 1, 3, b"f", 1.0, 4, b"l", 1, 5, b"h", 1, 7, b"B", 1, 8, real, 1.0
            kernel._set_arg_buf_pack_multi(packed)
            kernel._set_arg_buf_multi((9, np.int32([1, 2, 3, 4]).tobytes()))
        for _ in range(200):
            kernel = choose.choice(kernels)
            if choose.random() < 0.6:
                set_some(choose, kernel, memory, real)
            cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,))
        found.append([values_of(queue, one, 4).tolist() for one in memory])
        del queue, kernels
        gc.collect()
    assert found[0] == found[1]
    assert len(long_way) < 100


@pytest.mark.parametrize("is_typed", [False, True])
def test_structures_and_vectors_by_value_are_no_long_way(
    context: cl.Context, long_way: list[str], is_typed: bool
) -> None:
    source = """typedef struct { int a; int b[5]; } some;
        kernel void add(global int *x, some s, int n, int4 v)
        { x[get_global_id(0)] += s.a * n + s.b[4] + v.y; }"""
    dtype = np.dtype([("a", "i4"), ("b", "i4", 5)])
    # it sees the program's source, which drivers forget of what comes from a cache
    queue, kernel = acs.Queue(context), cl.Program(context, source).build().add
    if is_typed:
        kernel.set_scalar_arg_dtypes([None, dtype, np.int32, cl.cltypes.int4])
    rows, many = [buffer(queue, np.zeros(N)) for _ in range(4)], 25
    value = np.zeros((), dtype)
    for step in range(many):
        for row in rows:
            value["a"], value["b"][4] = step, 3  # in place, before and after it is set
            vector = cl.cltypes.make_int4(0, 7, 0, 0)
            kernel(queue, (N,), None, row, value[()] if step % 2 else value, np.int32(2), vector)
    assert len(long_way) < 20
    want = sum(2 * step + 10 for step in range(many))
    assert [values_of(queue, row).tolist() for row in rows] == [[want] * N] * 4


def test_calls_of_every_form_join(context: cl.Context, long_way: list[str]) -> None:
    queue, kernels = acs.Queue(context), kernels_of(context)
    a = buffer(queue, np.zeros(N))
    add = kernels["add"]
    for _ in range(4):
        add(queue, (N,), (N,), a, np.int32(1))
        add(queue, (N,), None, a, np.int32(1))
    del long_way[:]
    add(queue, (N,), None, a, np.int32(1), wait_for=None)
    add(queue, [N], None, a, np.int32(1))
    event = cl.enqueue_nd_range_kernel(queue, add, (N,), None, wait_for=[])
    cl.enqueue_nd_range_kernel(queue, add, global_work_size=(N,), local_work_size=(N,))
    cl.enqueue_nd_range_kernel(queue, add, (N,), None, None, [event, event])
    assert not long_way
    assert type(event) is QueueEvent
    assert event.command_type == cl.command_type.NDRANGE_KERNEL
    assert event.command_queue is queue
    assert values_of(queue, a)[0] == 13
    assert event.command_execution_status == cl.command_execution_status.COMPLETE
    for _ in range(3):  # the first one of these sizes is Python's
        add(queue, (N // 2,), None, a, np.int32(1), global_offset=(N // 2,))
        cl.enqueue_nd_range_kernel(queue, add, (4,), (4,), None, None, True)
        # PyOpenCL counts groups in the offset, too
        cl.enqueue_nd_range_kernel(queue, add, [4], [np.int32(4)], [2], g_times_l=True)
        cl.enqueue_nd_range_kernel(queue, add, (N,), None, None, None, True, True)
    assert len(long_way) <= 3
    with pytest.raises(TypeError):
        cl.enqueue_nd_range_kernel(queue, add, (N,))
    queue.finish()
    expected = np.full(N, 16)
    for part in (slice(N // 2, N), slice(16), slice(8, 24)):
        expected[part] += 3
    assert (values_of(queue, a) == expected).all()
    add(queue, (0,), None, a, np.int32(1), allow_empty_ndrange=True)
    assert (values_of(queue, a) == expected).all()


def test_wait_lists_hold(context: cl.Context, long_way: list[str]) -> None:
    queue, kernels = acs.Queue(context), kernels_of(context)
    other = cl.CommandQueue(context)
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.zeros(N))
    for _ in range(8):
        kernels["mix_in"](queue, (N,), None, a, b, 0)
    queue.finish()
    del long_way[:]
    done = kernels["add"](other, (N,), None, b, np.int32(0))
    other.finish()
    kernels["mix_in"](queue, (N,), None, a, b, 0, wait_for=[done])  # complete: says nothing
    assert not long_way
    gate = cl.UserEvent(context)
    kernels["mix_in"](queue, (N,), None, a, b, 1, wait_for=[gate])
    kernels["mix_in"](queue, (N,), None, a, b, 1)  # behind it
    assert long_way == ["mix_in"] * 2
    queue.flush()
    gate.set_status(cl.command_execution_status.COMPLETE)
    queue.finish()
    expected = np.zeros(N, np.int64)
    for _ in range(9 + 2):
        expected = (expected * 3 + np.arange(N)).astype(np.int32)
    assert np.array_equal(values_of(queue, b), expected)


def test_what_the_driver_refuses_is_raised_in_its_call(
    context: cl.Context, long_way: list[str]
) -> None:
    """No lane took it, so that the core has put it into the table, and it goes on from there."""
    queue, kernels = acs.Queue(context, backend="out_of_order"), kernels_of(context)
    a = buffer(queue, np.zeros(N))
    add: Any = kernels["add"]
    for _ in range(4):
        add(queue, (N,), None, a, np.int32(1))
    own = commands.kernel_of(queue, add)
    assert own is not None
    # a group size that no device has, as if Python had launched it before
    core.native.plan_sizes(own, (N,), (1 << 20,), None, (), Lease(ALL))
    number = testing.launched(queue.runtime)
    del long_way[:]
    with pytest.raises(cl.LogicError):
        add(queue, (N,), (1 << 20,), a, np.int32(1))
    assert not long_way
    assert testing.launched(queue.runtime) == number + 1
    add(queue, (N,), None, a, np.int32(1))
    assert values_of(queue, a)[0] == 5
    assert testing.is_at_rest(queue.runtime)


# ---- memory --------------------------------------------------------------------------------------


def test_memory_of_the_program_is_looked_behind(context: cl.Context) -> None:
    queue, kernels = acs.Queue(context), kernels_of(context)
    host = np.zeros(N, np.int32)
    flags = READ_WRITE | cl.mem_flags.USE_HOST_PTR
    shared, other = cl.Buffer(context, flags, hostbuf=host), buffer(queue, np.zeros(N))
    for _ in range(6):
        kernels["slow"](queue, (N,), None, shared, np.int32(0), np.int32(1))
        kernels["add"](queue, (N,), None, other, np.int32(0))
    queue.finish()
    kernels["slow"](queue, (N,), None, shared, np.int32(7), np.int32(ROUNDS // 10))
    kernels["add"](queue, (N,), None, other, np.int32(1)).wait()
    # once an event was seen to be complete, so is all before it that the host can look at
    assert inside.seen_complete(queue) >= testing.launched(queue.runtime)
    mapped, _ = cl.enqueue_map_buffer(queue, shared, cl.map_flags.READ, 0, (N,), np.int32)
    assert mapped[0] == 7


@pytest.mark.parametrize("memory", ["runtime", "pool", "buffers", "svm"])
def test_arrays_that_come_and_go(context: cl.Context, memory: str) -> None:
    """Their memory is used again while launches that use it are in flight."""
    queue, kernels = acs.Queue(context), kernels_of(context)
    allocator: Any = None
    if memory == "runtime":
        allocator = queue.allocator
    elif memory == "pool":
        allocator = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))
    elif memory == "svm":
        if not queue.device.svm_capabilities:
            pytest.skip("the device has no shared virtual memory")
        allocator = cl.tools.SVMAllocator(context, alignment=64)
    out = []
    slow = np.int32(ROUNDS // 1000)
    for step in range(60):
        x = cl.array.empty(queue, N, np.int32, allocator=allocator)
        y = cl.array.zeros(queue, N, np.int32, allocator=allocator)
        kernels["slow"](queue, (N,), None, x.base_data, np.int32(step), slow)
        kernels["mix_in"](queue, (N,), None, x.base_data, y.base_data, 1)
        out.append(y)
        if len(out) > 3:
            found = out.pop(0).get()
            assert np.array_equal(found, step - 3 + np.arange(N)), step


def test_a_kernel_on_queues_of_two_runtimes(context: cl.Context) -> None:
    kernels = kernels_of(context)
    queues = [acs.Queue(context, backend="out_of_order"), acs.Queue(context, backend="lanes")]
    rows = [buffer(queue, np.zeros(N)) for queue in queues]
    for step in range(50):
        for queue, row in zip(queues, rows, strict=True):
            kernels["add"](queue, (N,), None, row, np.int32(1))
        if step == 25:  # its address may be another's
            values = values_of(queues[0], rows[0])
            queues[0] = acs.Queue(context, backend="out_of_order")
            gc.collect()
            assert values[0] == 26
    assert [values_of(*both)[0] for both in zip(queues, rows, strict=True)] == [50, 50]


def test_a_queue_that_goes_leaves_nothing(context: cl.Context) -> None:
    kernels, gone = kernels_of(context), []
    for _ in range(5):
        queue = acs.Queue(context)
        a = buffer(queue, np.zeros(N))
        for _ in range(10):
            kernels["add"](queue, (N,), None, a, np.int32(1))
        assert values_of(queue, a)[0] == 10
        gone.append((weakref.ref(queue), weakref.ref(queue.runtime)))
        del queue
        gc.collect()
    assert not any(one() is not None for pair in gone for one in pair)


def test_a_runtime_without_queues_is_given_to_no_other(context: cl.Context) -> None:
    """Another thread may be closing it."""
    first = acs.Queue(context)
    runtime = first.runtime
    assert acs.Queue(context).runtime is runtime
    del first
    gc.collect()
    second = acs.Queue(context)
    assert second.runtime is not runtime
    runtime.close()
    assert values_of(second, buffer(second, np.ones(N)))[0] == 1


def test_a_queue_that_was_left_or_given_away_takes_the_long_way(
    context: cl.Context, long_way: list[str]
) -> None:
    queue, kernels = acs.Queue(context), kernels_of(context)
    a = buffer(queue, np.zeros(N))
    for _ in range(8):
        kernels["add"](queue, (N,), None, a, np.int32(1))
    del long_way[:]
    assert queue.int_ptr  # somebody may have enqueued by it
    kernels["add"](queue, (N,), None, a, np.int32(1))
    assert long_way == ["add"]
    kernels["add"](queue, (N,), None, a, np.int32(1))
    assert long_way == ["add"]
    with queue:
        pass
    with pytest.warns(cl.CommandQueueUsedAfterExit):
        kernels["add"](queue, (N,), None, a, np.int32(1))
    queue.runtime.finish()
    assert values_of(cl.CommandQueue(context), a)[0] == 11


def test_a_recording_refuses_them(context: cl.Context) -> None:
    queue, kernels = acs.Queue(context), kernels_of(context)
    a = buffer(queue, np.zeros(N))
    for _ in range(8):
        kernels["add"](queue, (N,), None, a, np.int32(1))
    with queue.runtime.record() as graph:
        with pytest.raises(acs.UsageError, match="inside a recording"):
            kernels["add"](queue, (N,), None, a, np.int32(1))
        queue.runtime.launch(kernels["add"], (N,), None, a, 1)
    graph.replay()
    assert values_of(queue, a)[0] == 9


# ---- threads -------------------------------------------------------------------------------------


def test_threads_with_kernels_of_their_own(context: cl.Context) -> None:
    queue = acs.Queue(context)
    program = cl.Program(context, SOURCE).build()
    found: dict[int, int] = {}
    lock = threading.Lock()

    def work(which: int) -> None:
        with lock:  # PyOpenCL makes functions for kernels, which threads had better not share
            add = cl.Kernel(program, "add")
        a = buffer(queue, np.zeros(N))
        for step in range(300):
            add(queue, (N,), None, a, np.int32(which))
            if step % 50 == 0:
                queue.finish()
        found[which] = int(values_of(queue, a)[0])

    in_threads(work, 4)
    assert found == {which: 300 * which for which in range(4)}
    queue.finish()
    assert testing.is_at_rest(queue.runtime)


@pytest.mark.parametrize("make", [acs.Queue, by_python])
def test_a_command_has_the_arguments_of_its_call(
    context: cl.Context, make: Callable[[cl.Context], acs.Queue]
) -> None:
    """Another thread sets the kernel while the command waits for the runtime."""
    queue, kernels = make(context), kernels_of(context)
    a, b = buffer(queue, np.zeros(N)), buffer(queue, np.zeros(N))
    add: Any = kernels["add"]
    add.set_args(a, np.int32(1))
    thread = threading.Thread(target=lambda: cl.enqueue_nd_range_kernel(queue, add, (N,), None))
    with queue.runtime.engine.lock:
        thread.start()
        inside.wait_until_it_stands_still(thread)
        add.set_args(b, np.int32(2))
    thread.join()
    assert (values_of(queue, a)[0], values_of(queue, b)[0]) == (1, 0)


def test_threads_teach_one_kernel_while_others_launch_it(context: cl.Context) -> None:
    """What a launch reads may be made anew meanwhile; the arguments are always the same ones."""
    queue, kernels = acs.Queue(context), kernels_of(context)
    a = buffer(queue, np.zeros(N))
    add: Any = kernels["add"]
    add.set_args(a, np.int32(1))

    def work(which: int) -> None:
        for step in range(300):
            size = (N,) if step % 7 else (N, 1, 1)[: 1 + (step + which) % 3]
            cl.enqueue_nd_range_kernel(queue, add, size, None)
            if step % 31 == which:
                add.acs_arguments.settle()

    in_threads(work, 3)
    assert values_of(queue, a)[0] == 900
