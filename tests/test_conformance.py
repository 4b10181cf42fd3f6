"""What every backend does alike on every device: transfers, views, foreign memory, kernels."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytest

import acs_cl as acs

SOURCE = """
kernel void put(global int *x, int value)
{ x[get_global_id(0)] = value; }

kernel void add(global const int *x, global int *y, int a)
{ int i = get_global_id(0); y[i] = x[i] + a; }

kernel void accumulate(global int *x, global int *y)
{ int i = get_global_id(0); y[i] += x[i]; }

kernel void octets(global const uchar *x, global uchar *y)
{ int i = get_global_id(0); y[i] = x[i] ^ 0x5a; }

kernel void spin(global int *x, int rounds)
{ int v = x[0]; for (int i = 0; i < rounds; ++i) v = v * 3 + 1; x[0] = v; }

kernel void reversed(global int *x, local int *scratch)
{
    int i = get_local_id(0), n = get_local_size(0), at = get_group_id(0) * n;
    scratch[i] = x[at + i];
    barrier(CLK_LOCAL_MEM_FENCE);
    x[at + i] = scratch[n - 1 - i];
}

kernel void sums(global const int *x, global int *y)
{
    local int partial[8];
    int i = get_local_id(0);
    partial[i] = x[get_global_id(0)];
    for (int step = 4; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < step) partial[i] += partial[i + step];
    }
    if (i == 0) y[get_group_id(0)] = partial[0];
}

struct pair { int first; float second; };

kernel void values(global float *y, struct pair p, float4 v, char c)
{ y[0] = p.first; y[1] = p.second; y[2] = v.z; y[3] = c; }

#ifndef STEP
#define STEP 1
#endif
kernel void macros(global int *x)
{ x[get_global_id(0) * STEP] = STEP; }
"""

IMAGE = """
kernel void put(global int *x, int value) { x[get_global_id(0)] = value; }
kernel void fetch(read_only image1d_buffer_t x, global int *y)
{ int i = get_global_id(0); vstore4(read_imagei(x, i), i, y); }
"""

ADDRESS = """
kernel void put(global int *x, int value) { x[get_global_id(0)] = value; }
kernel void poke(ulong address, int value) { *(global int *)address += value; }
"""

Make = Callable[..., acs.Runtime]


@pytest.fixture
def program(rt: acs.Runtime) -> acs.Program:
    return rt.build(SOURCE)


# ---- transfers -----------------------------------------------------------------------------------

DTYPES: list[Any] = [
    *("b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"),
    *("S3", "V5", "S16", "V32"),
    [("a", "i4"), ("b", "f8", 2)],
    [("x", "u1"), ("y", "u2")],
]


def example(dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Values of any type, all bytes different."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    if dtype.kind == "b":
        return (np.arange(count) % 3 == 0).reshape(shape)
    raw = (np.arange(count * dtype.itemsize) % 53 + 1).astype(np.uint8)
    return raw.view(dtype).reshape(shape)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Bit by bit, so that void and NaN compare too."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_every_dtype_comes_back_as_it_went(rt: acs.Runtime) -> None:
    for dtype in DTYPES:
        values = example(dtype, (3, 5))
        x = rt.array(values)
        assert same(x.get(), values), dtype
        y = rt.empty((5, 3), values.dtype)
        y.T.copy_from(x)
        assert same(y.get(), np.ascontiguousarray(values.T)), dtype
        y[1:4, 1].fill(values[2, 2])
        expected = values.T.copy()
        expected[1:4, 1] = values[2, 2]
        assert same(y.get(), expected), dtype
        y[::2].set(values.T[::-2])
        expected[::2] = values.T[::-2]
        assert same(y.get(), expected), dtype
        y.fill(values[0, 1])
        assert same(y.get(), np.full((5, 3), values[0, 1])), dtype


def test_get_into_an_array_of_ones_own(rt: acs.Runtime) -> None:
    values = example("f4", (6, 4))
    x = rt.array(values)
    out = np.zeros((6, 4), np.float32)
    assert x.get(out=out) is out
    assert same(out, values)
    wide = np.zeros((6, 8), np.float32)
    x[:, 1:3].get(out=wide[:, ::4])
    assert same(wide[:, ::4].copy(), values[:, 1:3].copy())
    assert not wide[:, 1].any()


def test_get_without_waiting_gives_the_values_of_that_moment(rt: acs.Runtime) -> None:
    x = rt.array(np.arange(64, dtype="i4"))
    handles = []
    for i in range(6):
        handles.append(x[i:].get(wait=False))
        x.fill(i)
    assert same(handles[0].wait(), np.arange(64, dtype="i4"))
    for i in range(1, 6):
        assert same(handles[i].wait(), np.full(64 - i, i - 1, "i4"))


def test_the_source_of_set_may_change_at_once_however_large(rt: acs.Runtime) -> None:
    for count in (7, 1 << 19):
        source = np.arange(count, dtype="i4")
        x = rt.array(source)
        source[:] = -1
        y = rt.empty(count, "i4")
        y.copy_from(x)
        x.set(source)
        source[:] = -2
        assert same(y.get(), np.arange(count, dtype="i4"))
        assert (x.get() == -1).all()


def test_set_broadcasts_and_converts_as_numpy_does(rt: acs.Runtime) -> None:
    x = rt.zeros((3, 4), "f4")
    x.set(np.arange(4))
    assert same(x.get(), np.broadcast_to(np.arange(4, dtype="f4"), (3, 4)).copy())
    x[1] = 7
    x[:, 0] = np.array([1, 2, 3])
    x[2, 1:] = x[0, 1:]
    expected = np.array([[1, 1, 2, 3], [2, 7, 7, 7], [3, 1, 2, 3]], "f4")
    assert same(x.get(), expected)
    assert x[1, 1].get() == 7


VIEWS: dict[str, Callable[[Any], Any]] = {
    "row": lambda m: m[3],
    "column": lambda m: m[:, 2],
    "tile": lambda m: m[1:5, 2:6],
    "every other": lambda m: m[::2, ::3],
    "backwards": lambda m: m[::-1],
    "both backwards": lambda m: m[::-1, ::-2],
    "turned": lambda m: m.T,
    "turned tile": lambda m: m.T[1:4, 2:7],
    "flat": lambda m: m.reshape(-1)[5:30],
    "reshaped": lambda m: m[2:6].reshape(8, 4)[1:3],
    "new axis": lambda m: m[:, None, 1:3],
    "last": lambda m: m[..., -1],
    "one element": lambda m: m[4, 4:5],
    "as bytes": lambda m: m[2:4].view(np.uint8)[:, 3:9],
    "as wide": lambda m: m.view(np.int64)[1:6],
    "nothing": lambda m: m[3:3],
    "nothing of a column, flat": lambda m: m[3:3, 2:5].reshape(-1),
    "nothing, turned, as bytes": lambda m: m[3:3].T[:, ::2].view("u4"),
}


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_views_mean_what_they_mean_in_numpy(make: Make, memory: str) -> None:
    rt = make(memory=memory)
    base = example("i4", (7, 8))
    x = rt.empty(base.shape, base.dtype)
    for name, view in VIEWS.items():
        expected = base.copy()
        x.set(base)
        ours, theirs = view(x), view(expected)
        assert (ours.shape, ours.dtype, ours.size) == (theirs.shape, theirs.dtype, theirs.size)
        assert same(ours.get(), theirs.copy()), name
        fresh = example(theirs.dtype, theirs.shape) if theirs.size else theirs.copy()
        ours.set(fresh)
        theirs[...] = fresh
        assert same(x.get(), expected), name
        ours.fill(9)
        theirs[...] = 9
        assert same(x.get(), expected), name
        y = rt.array(fresh)
        ours.copy_from(y)
        theirs[...] = fresh
        assert same(x.get(), expected), name
        y.copy_from(ours)
        assert same(y.get(), theirs.copy()), name
        assert [row.shape for row in ours] == [row.shape for row in theirs], name


def test_arguments_in_the_other_order_of_bytes_are_converted(rt: acs.Runtime) -> None:
    pair = np.dtype([("a", "i4"), ("b", "f4")])
    program = rt.build(
        "typedef struct { int a; float b; } Pair;\n"
        "kernel void more(global Pair *x, int2 by, Pair one) { int i = get_global_id(0);"
        " x[i].a += by.x + one.a; x[i].b += by.y + one.b; }"
    )
    x = rt.array(np.array([(1, 2.5), (3, 4.5)], pair))
    by = np.array([10, 20], np.dtype("i4").newbyteorder())
    one = np.array((3, 4.5), pair.newbyteorder())
    program.more((2,), None, x, by, one)
    program.more((2,), None, x, by, one[()])
    assert x.get().tolist() == [(27, 51.5), (29, 53.5)]


def test_integers_without_a_type_fit_where_their_values_do(rt: acs.Runtime) -> None:
    x = rt.zeros(3, "u4")
    x.set([1, 2, 2**32 - 1])
    assert same(x.get(), np.array([1, 2, 2**32 - 1], "u4"))
    x[1:].set(7)
    x[:1].set(range(1))
    assert same(x.get(), np.array([0, 7, 7], "u4"))
    y = rt.zeros(3, "i1")
    y.set(np.array([-128, 0, 127]))
    y[1].fill(np.int64(-1))
    assert same(y.get(), np.array([-128, -1, 127], "i1"))


class UnshownError(Exception):
    """An error that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("nothing to show")

    __str__ = __repr__


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (lambda x: cl.Event.from_int_ptr(0), r"failed: LogicError\('clRetainEvent failed: \w+'\)$"),
        (lambda x: (_ for _ in ()).throw(UnshownError()), "failed: UnshownError$"),
        (lambda x: 1 // 0, r"failed: ZeroDivisionError\('"),
    ],
)
def test_a_failed_task_says_what_its_error_says(rt: acs.Runtime, task: Any, said: str) -> None:
    x = rt.zeros(4)
    handle = rt.call(task, writes=x)
    with pytest.raises(acs.PoisonedError, match=said):
        handle.wait()
    with pytest.raises(acs.PoisonedError, match=said):
        x.get()


def test_kernels_from_binaries_take_what_has_a_size(rt: acs.Runtime) -> None:
    """They may touch all of their arrays. Most drivers forget the types of parameters, too."""
    made = cl.Program(rt.context, "kernel void add(global int *x, int a) { x[0] += a; }").build()
    binaries = made.get_info(cl.program_info.BINARIES)
    kernel = cl.Program(rt.context, [rt.device], binaries).build().add
    x = rt.zeros(4, "i4")
    handle = rt.launch(kernel, (1,), None, x, np.int32(3))
    assert handle.access.writes
    try:
        is_told = bool(kernel.get_arg_info(1, cl.kernel_arg_info.TYPE_NAME))
    except cl.Error:
        is_told = False
    if is_told:  # by Oclgrind
        rt.launch(kernel, (1,), None, x, 3)
    else:
        says = r"kernel 'add', argument 1: got int 3, .* its size"
        with pytest.raises(acs.UsageError, match=says):
            rt.launch(kernel, (1,), None, x, 3)
    with rt.record() as graph:
        rt.launch(kernel, (1,), None, x, np.int32(4))
    graph.replay()
    assert x.get()[0] == (10 if is_told else 7)


def test_overlapping_views_of_one_array_copy_like_numpy(rt: acs.Runtime) -> None:
    values = example("i4", (40,))
    x = rt.array(values)
    x[3:30].copy_from(x[0:27])
    values[3:30] = values[0:27].copy()
    x[0:10].copy_from(x[9::-1])
    values[0:10] = values[9::-1].copy()
    assert same(x.get(), values)


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_a_view_at_any_byte_offset_goes_to_a_kernel(make: Make, memory: str) -> None:
    rt = make(memory=memory)
    program = rt.build(SOURCE)
    values = example("u1", (400,))
    x, y = rt.array(values), rt.zeros(400, "u1")
    expected = np.zeros(400, np.uint8)
    for start in (0, 1, 3, 64, 127, 128, 255, 256, 300):
        program.octets((50,), None, x[start : start + 50], y[349 - start : 399 - start])
        expected[349 - start : 399 - start] = values[start : start + 50] ^ 0x5A
    assert same(y.get(), expected)
    wide = y.view("i4")
    program.put((3,), None, wide[33:36], -1)
    expected[132:144] = 255
    assert same(y.get(), expected)


def test_arrays_of_no_elements_are_fine_everywhere(rt: acs.Runtime, program: acs.Program) -> None:
    x, y = rt.empty((0, 3), "i4"), rt.array([])
    assert x.get().shape == (0, 3)
    assert y.get().shape == (0,)
    x.fill(1)
    x.set(np.zeros((0, 3)))
    x.copy_from(rt.zeros((0, 3), "i4"))
    assert x.get(wait=False).wait().shape == (0, 3)
    assert x.T[1:2].get().shape == (1, 0)
    whole = rt.zeros(4, "i4")
    program.put((4,), None, whole, 2)
    assert whole[2:2].get().size == 0
    seen: list[tuple[int, ...]] = []
    task = rt.call(lambda *a: seen.extend(b.shape for b in a), reads=[x, whole, x[:]], writes=[y])
    task.wait()
    assert seen == [(0, 3), (4,), (0, 3), (0,)]
    assert whole.get().tolist() == [2, 2, 2, 2]


def test_a_host_task_gets_one_argument_for_each_array_that_it_is_given(rt: acs.Runtime) -> None:
    """Two of them may be the same, as where the data chooses them; one that is also written comes
    once."""
    x, y = rt.array([1, 2], "i4"), rt.array([3, 4], "i4")
    task = rt.call(lambda a, b, c: (a + b + c).tolist(), reads=[x, x, y], writes=[y])
    assert task.wait() == [5, 8]
    with rt.record() as graph:
        rt.call(lambda a, b, c: np.copyto(c, a + b), reads=[x, x], writes=[y])
    graph.replay()
    assert y.get().tolist() == [2, 4]


def test_pinned_memory_serves_transfers_and_outlives_the_runtime(make: Make) -> None:
    rt = make()
    host = rt.pinned((4, 8), "i4")
    assert (host.shape, host.dtype) == ((4, 8), np.dtype("i4"))
    host[...] = 5
    x = rt.array(host)
    x[1].fill(6)
    x.get(out=host)
    assert host.sum() == 5 * 24 + 6 * 8
    assert rt.pinned(0).size == 0
    rt.close()
    assert host[1, 0] == 6


# ---- kernels -------------------------------------------------------------------------------------


def test_local_memory_by_argument_and_by_variable(rt: acs.Runtime, program: acs.Program) -> None:
    values = np.arange(64, dtype="i4")
    x, y = rt.array(values), rt.zeros(8, "i4")
    program.reversed((64,), (16,), x, cl.LocalMemory(64))
    program.sums((64,), (8,), x, y)
    expected = values.reshape(4, 16)[:, ::-1].reshape(-1)
    assert same(x.get(), expected)
    assert y.get().tolist() == expected.reshape(8, 8).sum(1).tolist()


def test_structs_vectors_and_numbers_are_passed_by_value(
    rt: acs.Runtime, program: acs.Program
) -> None:
    y = rt.zeros(4, "f4")
    pair = np.zeros((), [("first", "i4"), ("second", "f4")])
    pair["first"], pair["second"] = 3, 1.5
    vector = np.array([1, 2, 3, 4], "f4")
    program.values((1,), None, y, pair, vector, -7)
    assert y.get().tolist() == [3, 1.5, 3, -7]
    program.values((1,), None, y, pair.tobytes(), vector, np.int8(8))
    assert y.get().tolist() == [3, 1.5, 3, 8]


def test_macros_and_options_reach_the_compiler(rt: acs.Runtime) -> None:
    for program in (
        rt.build(SOURCE, macros={"STEP": 3}),
        rt.build(SOURCE, options=["-DSTEP=3"]),
    ):
        x = rt.zeros(9, "i4")
        program.macros((3,), None, x)
        assert x.get().tolist() == [3, 0, 0] * 3


def test_sizes_and_offset_as_pyopencl_takes_them(rt: acs.Runtime, program: acs.Program) -> None:
    x = rt.zeros(16, "i4")
    program.put(4, None, x, 1)
    program.put([2], 1, x[8:], 2)
    program.put((np.int64(2),), (1,), x, 3, offset=(12,))
    assert x.get().tolist() == [1] * 4 + [0] * 4 + [2] * 2 + [0] * 2 + [3] * 2 + [0] * 2


def test_one_array_for_two_arguments(rt: acs.Runtime, program: acs.Program) -> None:
    x = rt.array(np.arange(8, dtype="i4"))
    for _ in range(3):
        program.accumulate((8,), None, x, x)
        program.accumulate((4,), None, x[:4], x[4:])
    expected = np.arange(8, dtype="i4")
    for _ in range(3):
        expected += expected
        expected[4:] += expected[:4]
    assert same(x.get(), expected)


def test_images_are_ordered_like_arrays(rt: acs.Runtime) -> None:
    if not rt.device.image_support:
        pytest.skip(f"{rt.device.name} has no images")
    program = rt.build("""
        kernel void draw(write_only image2d_t image, int value)
        { write_imagei(image, (int2)(get_global_id(0), get_global_id(1)), (int4)(value)); }
        constant sampler_t exactly = CLK_NORMALIZED_COORDS_FALSE | CLK_FILTER_NEAREST;
        kernel void look(read_only image2d_t image, global int *y)
        { int i = get_global_id(0); y[i] += read_imagei(image, exactly, (int2)(i, 1)).x; }
    """)
    form = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.SIGNED_INT32)
    image = cl.create_image(rt.context, cl.mem_flags.READ_WRITE, form, shape=(8, 4))
    other = cl.create_image(rt.context, cl.mem_flags.READ_WRITE, form, shape=(8, 4))
    y = rt.zeros(8, "i4")
    for value in (1, 10, 100):
        drawn = program.draw((8, 4), None, image, value)
        apart = program.draw((8, 4), None, other, value)
        seen = program.look((8,), None, image, y)
    assert rt.explain(drawn, seen).ordered
    assert not rt.explain(drawn, apart).ordered
    assert y.get().tolist() == [111] * 8


def test_a_kernel_that_follows_an_address_waits_for_everything(make: Make) -> None:
    rt = make(memory="svm")
    program = rt.build(ADDRESS)
    assert program.poke.signature.anywhere
    x, y = rt.zeros(4, "i4"), rt.zeros(4, "i4")
    program.put((4,), None, x, 5)
    before = program.put((4,), None, y, 1)
    poke = program.poke((1,), None, int(x[2:].data.svm_ptr), 2)
    after = program.put((1,), None, x, 9)
    assert rt.explain(before, poke).ordered
    assert rt.explain(poke, after).ordered
    assert x.get().tolist() == [9, 5, 7, 5]


# ---- what comes from PyOpenCL --------------------------------------------------------------------


def test_foreign_buffers_and_their_parts_meet(rt: acs.Runtime, program: acs.Program) -> None:
    flags = cl.mem_flags.READ_WRITE
    align = max(128, rt.device.mem_base_addr_align // 8)
    parent = cl.Buffer(rt.context, flags, 4 * align)
    low, high = parent[0 : 2 * align], parent[2 * align : 4 * align]
    count = align // 2
    y = rt.zeros(2 * count, "i4")
    first = program.put((count,), None, low, 3)
    second = program.put((count,), None, high, 4)
    third = program.add((2 * count,), None, parent, y, 10)
    assert not rt.explain(first, second).ordered
    assert rt.explain(first, third).ordered
    assert rt.explain(second, third).ordered
    assert y.get().tolist() == [13] * count + [14] * count
    back = program.add((count,), None, y, low, 1)
    again = program.put((count,), None, parent, 0)
    assert rt.explain(third, back).ordered
    assert rt.explain(back, again).ordered
    rt.finish()


def test_pyopencl_arrays_and_their_views_are_adopted(rt: acs.Runtime, program: acs.Program) -> None:
    with cl.CommandQueue(rt.context, rt.device) as queue:
        theirs = cl_array.zeros(queue, 64, np.int32)
        queue.finish()
        ours = rt.array(np.arange(64, dtype="i4"))
        first = program.add((64,), None, ours, theirs, 1)
        second = program.put((16,), None, theirs[16:32], -1)
        third = program.put((16,), None, theirs[32:48], -2)
        fourth = program.add((64,), None, theirs, ours, 0)
        assert rt.explain(first, second).ordered
        assert not rt.explain(second, third).ordered
        assert rt.explain(second, fourth).ordered
        expected = np.arange(1, 65, dtype="i4")
        expected[16:32], expected[32:48] = -1, -2
        assert same(ours.get(), expected)
        rt.finish()
        assert same(theirs.get(), expected)


def test_foreign_shared_virtual_memory_meets_by_address(make: Make) -> None:
    rt = make(memory="svm")
    program = rt.build(SOURCE)
    memory = cl.SVMAllocation(rt.context, 256, 0, cl.svm_mem_flags.READ_WRITE)
    view = cl.SVM(memory.buf[128:256])
    y = rt.zeros(64, "i4")
    first = program.put((64,), None, memory, 2)
    second = program.put((32,), None, view, 3)
    third = program.add((64,), None, memory, y, 0)
    assert rt.explain(first, second).ordered
    assert rt.explain(second, third).ordered
    assert y.get().tolist() == [2] * 32 + [3] * 32


def test_memory_of_ours_given_out_as_theirs_is_still_ordered(
    rt: acs.Runtime, program: acs.Program
) -> None:
    x, y = rt.zeros(8, "i4"), rt.zeros(8, "i4")
    first = program.put((8,), None, x, 6)
    second = program.add((8,), None, x.data, y, 1)
    assert rt.explain(first, second).ordered
    assert y.get().tolist() == [7] * 8
    with cl.CommandQueue(rt.context, rt.device) as queue:
        theirs = cl_array.Array(queue, 8, np.int32, data=y.data)
    third = program.add((8,), None, theirs, x, 1)
    assert rt.explain(second, third).ordered
    assert x.get().tolist() == [8] * 8


def ordered(rt: acs.Runtime, *handles: acs.Handle) -> list[bool]:
    """Whether each launch is ordered after the first."""
    return [rt.explain(handles[0], other).ordered for other in handles[1:]]


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_standing_declarations_count_from_where_a_view_starts(make: Make, memory: str) -> None:
    rt = make(memory=memory)
    program = rt.build(SOURCE)
    program.put.access(x="w[gid]")
    program.add.infer_ranges = False
    x = rt.zeros(64, "i4")
    first = program.put((4,), None, x[16:], 1)  # bytes 64 to 80
    assert first.access.overwrites == first.access.writes
    assert [(span.start, span.end) for span in first.access.writes] == [(64, 80)]
    others = [program.add((4,), None, x[at:], rt.empty(4, "i4"), 0) for at in (0, 19)]
    program.add.access(x="r[gid]")
    others += [program.add((4,), None, x[at:], rt.empty(4, "i4"), 0) for at in (12, 13, 19, 20)]
    assert ordered(rt, first, *others) == [True, True, False, True, True, False]
    rt.finish()


def test_standing_declarations_hold_for_pyopencl_arrays(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    program.put.access(x="w[gid]")
    with cl.CommandQueue(rt.context, rt.device) as queue:
        theirs = cl_array.zeros(queue, 64, np.int32)
        queue.finish()
        first = program.put((4,), None, theirs[16:], 1)
        others = [program.put((4,), None, theirs[at:], 2) for at in (12, 13, 19, 20)]
        assert ordered(rt, first, *others) == [False, True, True, False]
        rt.finish()
        assert theirs.get().nonzero()[0].tolist() == list(range(12, 24))


def test_declarations_leave_alone_what_they_do_not_name(make: Make) -> None:
    rt = make(memory="svm")
    program = rt.build(ADDRESS.replace("int value) { *", "int value, global int *x) { x[0] = 1; *"))
    assert program.poke.signature.anywhere
    x, y = rt.zeros(4, "i4"), rt.zeros(4, "i4")
    program.poke.access(x="w[0:1]")
    before = program.put((4,), None, y, 1)
    poke = program.poke((1,), None, int(y.data.svm_ptr), 2, x)
    assert ordered(rt, before, poke) == [True]
    other = rt.build(SOURCE)
    named = other.accumulate((4,), None, x, y, reads=[x[:2]], writes=[])
    first, last = other.put((2,), None, x, 5), other.put((2,), None, x[2:], 6)
    assert ordered(rt, named, first, last, y.fill(0)) == [True, False, True]
    rt.finish()


def test_an_access_function_is_asked_for_each_launch(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    x = rt.zeros(64, "i4")
    program.put.access(lambda global_size, local_size, x, value: ([], [x[: global_size[0]]]))
    first = program.put((4,), None, x, 1)
    others = [program.put((2,), None, x[at:], 2) for at in (3, 4)]
    assert ordered(rt, first, *others) == [True, False]
    rt.finish()


@pytest.mark.parametrize("options", [[], ["-cl-kernel-arg-info"]])
def test_kernels_of_pyopencl_are_launched_with_their_hazards(
    rt: acs.Runtime, options: list[str]
) -> None:
    native = cl.Program(rt.context, SOURCE).build(options, cache_dir=False)
    put, add = native.put, native.add
    x, y = rt.zeros(8, "i4"), cl.Buffer(rt.context, cl.mem_flags.READ_WRITE, 32)
    z = rt.zeros(8, "i4")
    first = rt.launch(put, (8,), None, x, np.int32(5))
    second = rt.launch(add, (8,), None, x, y, np.int32(2))
    third = rt.launch(add, (8,), None, y, z, 3)
    apart = rt.launch(add, (8,), None, x, rt.empty(8, "i4"), 3)
    assert rt.explain(first, second).ordered
    assert rt.explain(second, third).ordered
    assert not rt.explain(second, apart).ordered  # both only read x
    assert z.get().tolist() == [10] * 8


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("built_from", ["source", "binary", "released program"])
def test_kernels_of_which_the_driver_tells_little_are_read_write(
    rt: acs.Runtime, built_from: str, told: bool
) -> None:
    """PyOpenCL's cache gives programs made of binaries, of which drivers tell less; Intel's does
    not tell the program of a kernel whose program was released."""
    with contextlib.nullcontext() if told else inside.untold_programs():
        native: Any = cl.Program(rt.context, SOURCE).build(cache_dir=False)
        if built_from == "binary":
            binaries = native.get_info(cl.program_info.BINARIES)
            native = cl.Program(rt.context, [rt.device], binaries).build()
        put, add = native.put, native.add
        if built_from == "released program":
            del native
        x, z = rt.zeros(8, "i4"), rt.zeros(8, "i4")
        y = cl.Buffer(rt.context, cl.mem_flags.READ_WRITE, 32)
        first = rt.launch(put, (8,), None, x, np.int32(5))
        second = rt.launch(add, (8,), None, x, y, np.int32(2))
        third = rt.launch(add, (8,), None, y, z, np.int32(3))
        assert rt.explain(first, second).ordered
        assert rt.explain(second, third).ordered
        assert z.get().tolist() == [10] * 8


def test_variables_of_a_program_that_is_not_known_order_its_kernels(rt: acs.Runtime) -> None:
    with inside.untold_programs():
        native = cl.Program(rt.context, SOURCE).build(cache_dir=False)
        x, y = rt.zeros(8, "i4"), rt.zeros(8, "i4")
        first = rt.launch(native.put, (8,), None, x, np.int32(5))
        second = rt.launch(native.add, (8,), None, y, rt.zeros(8, "i4"), np.int32(5))
        assert rt.explain(first, second).ordered  # there might be some


def test_parts_of_a_buffer_that_the_program_has_released_meet(
    rt: acs.Runtime, program: acs.Program
) -> None:
    if "NVIDIA" in rt.device.platform.name:
        pytest.skip("its driver crashes on parts of a buffer that overlap, on plain queues too")
    align = rt.device.mem_base_addr_align // 8
    whole = cl.Buffer(rt.context, cl.mem_flags.READ_WRITE, 4 * align)
    one, other = whole[: 2 * align], whole[align : 3 * align]
    del whole
    first = program.put((align // 2,), None, one, 5)
    second = program.add((align // 4,), None, other, rt.empty(align // 4, "i4"), 1)
    assert rt.explain(first, second).ordered
    y = rt.empty(align // 4, "i4")
    program.add((align // 4,), None, other, y, 1)
    assert y.get().tolist() == [6] * (align // 4)


def test_an_image_over_a_buffer_and_the_buffer_meet(make: Make) -> None:
    rt = make(memory="buffers")  # PoCL 3.0 crashes with such an image beside shared memory
    if not rt.device.image_support:
        pytest.skip("the device has no images")
    buffer = cl.Buffer(rt.context, cl.mem_flags.READ_WRITE, 256)
    form = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.SIGNED_INT32)
    try:
        image = cl.create_image(
            rt.context, cl.mem_flags.READ_ONLY, form, shape=(16,), buffer=buffer
        )  # fmt: skip
    except cl.Error as error:
        pytest.skip(f"no images over buffers: {error}")
    program, y = rt.build(IMAGE), rt.zeros(64, "i4")
    first = program.put((64,), None, buffer, 7)
    second = program.fetch((16,), None, image, y)
    assert rt.explain(first, second).ordered
    assert y.get().tolist() == [7] * 64


def test_events_order_us_and_other_queues(rt: acs.Runtime, program: acs.Program) -> None:
    buffer = cl.Buffer(rt.context, cl.mem_flags.READ_WRITE, 32)
    result = np.zeros(8, "i4")
    with cl.CommandQueue(rt.context, rt.device) as queue:
        filled = cl.enqueue_fill_buffer(queue, buffer, np.int32(4), 0, 32)
        handle = program.accumulate((8,), None, buffer, buffer, wait_for=[filled])
        queue.flush()
        cl.enqueue_copy(queue, result, buffer, wait_for=[handle.event])
        queue.finish()
    assert result.tolist() == [8] * 8
    assert handle.done


def test_the_local_size_that_a_kernel_requires_need_not_be_given(make: Make) -> None:
    """The first call goes through Python, later ones by their plan, others into a recording."""
    rt = make()
    program = rt.build("""
        kernel __attribute__((reqd_work_group_size(4, 2, 1))) void groups(global int *x)
        { x[get_global_id(1) * get_global_size(0) + get_global_id(0)] +=
              100 * get_local_size(0) + 10 * get_local_size(1) + get_local_size(2); }""")
    x = rt.zeros((4, 8), "i4")
    expected = 0
    for launches in (1, 3, 30):
        for _ in range(launches):
            program.groups((8, 4), None, x)
        expected += launches
    program.groups.launch_many((8, 4), None, x, count=5)
    program.groups((8, 4), (4, 2), x)
    with rt.record() as graph:
        program.groups((8, 4), None, x)
    graph.replay()
    assert np.array_equal(x.get(), np.full((4, 8), 421 * (expected + 7)))


# ---- memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_memory_of_a_dropped_array_is_reused_in_order(make: Make, memory: str) -> None:
    rt = make(memory=memory)
    program = rt.build(SOURCE)
    total = rt.zeros(64, "i4")
    for i in range(60):
        x = rt.empty(64, "i4")
        program.spin((1,), None, x, 2000)
        program.put((64,), None, x, i)
        program.accumulate((64,), None, x, total)
        del x
    assert total.get().tolist() == [sum(range(60))] * 64
    assert rt.stats()["memory"]["in_use_bytes"] <= 2 * 256


def test_independent_kernels_overlap_where_the_backend_can(make: Make) -> None:
    rt = make(trace=True)
    if rt.device.max_compute_units < 2:
        pytest.skip(f"{rt.device.name} has one compute unit")
    program = rt.build(SOURCE)
    arrays = [rt.zeros(4, "i4") for _ in range(16)]
    rt.finish()
    program.spin((1,), (1,), arrays[0], 1)
    best = 0.0
    for _ in range(5):  # whatever else the machine does can only keep kernels from overlapping
        rt.finish()
        rt.trace.clear()
        for x in arrays:
            program.spin((1,), (1,), x, 3_000_000)
        rt.finish()
        assert len(rt.trace.slices) == len(arrays)
        best = max(best, rt.trace.overlap())
        if rt.stats()["backend"] == "serial":
            assert best < 1.05
        elif best > 1.3:
            return
    if rt.stats()["backend"] == "out_of_order" and not overlaps_in_a_queue(rt.context):
        pytest.skip("the driver runs the kernels of one queue one after another")
    assert rt.stats()["backend"] == "serial", f"overlap {best:.2f}"


def overlaps_in_a_queue(context: cl.Context) -> bool:
    """Whether two kernels of one plain queue without order run at the same time."""
    kinds = cl.command_queue_properties
    kept = kinds.OUT_OF_ORDER_EXEC_MODE_ENABLE | kinds.PROFILING_ENABLE
    queue = cl.CommandQueue(context, properties=kept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = cl.Program(context, SOURCE).build()
    for _ in range(5):
        events = []
        for _ in range(2):
            spin, x = cl.Kernel(program, "spin"), cl.Buffer(context, cl.mem_flags.READ_WRITE, 16)
            events.append(spin(queue, (1,), (1,), x, np.int32(3_000_000)))
        queue.finish()
        first, second = sorted((one.profile.start, one.profile.end) for one in events)
        if second[0] < first[1]:
            return True
    return False
