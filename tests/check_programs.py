"""Small programs for the checks: wrong ones, each with what has to be named, and right ones.

A program is a function of a runtime and the kernels of `SOURCE`. `WRONG` says which check finds it,
which launch and argument it has to name, and from which byte on; `RIGHT` programs do unusual things
that are no fault, and must not be accused by any check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array

import acs_cl as acs

SOURCE = """
kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }
kernel void add(global const float *x, global float *y)
{ int i = get_global_id(0); y[i] = x[i] + 1; }
kernel void accumulate(global const float *x, global float *y)
{ int i = get_global_id(0); y[i] += x[i]; }
kernel void stencil(global const float *x, global float *y)
{ int i = get_global_id(0); y[i] = x[i - 1] + x[i] + x[i + 1]; }
kernel void shift(global const float *x, global float *y, int by)
{ int i = get_global_id(0); y[i] = x[i + by]; }
kernel void guarded(global const float *x, global float *y, int n)
{ int i = get_global_id(0); if (i < n) y[i] = 3 * x[i]; }
kernel void gather(global const int *which, global const float *x, global float *y)
{ int i = get_global_id(0); y[i] = x[which[i]]; }
kernel void scatter(global const int *which, global int *cells)
{ cells[which[get_global_id(0)]] += 1; }
kernel void count(global const int *which, global int *cells)
{ atomic_inc(&cells[which[get_global_id(0)]]); }
kernel void append(global const int *x, global uint *size, global int *found)
{ int i = get_global_id(0); if (x[i] > 2) found[atomic_inc(size)] = i; }
uint place(global uint *size) { return atomic_add(size, 1); }
kernel void append_if(global const int *x, global uint *size, global int *found)
{ int i = get_global_id(0); if (x[i] > 2) { uint at = place(size); found[at] = x[i] * 1000 + i; } }
kernel void peak(global const int *x, global int *most, global int *sum)
{ int i = get_global_id(0); atomic_max(most, x[i]); atomic_add(sum, x[i]); }
kernel void evens(global float *y)
{ int i = get_global_id(0); if (i % 2 == 0) y[i] = i; }
kernel void constant_one(global float *y) { y[get_global_id(0)] = 1; }
kernel void total(global const float *x, global float *y, int n)
{ float sum = 0; for (int i = 0; i < n; ++i) sum += x[i]; y[0] = sum; }
kernel void tree(global const float *x, global float *y, local float *part)
{ int l = get_local_id(0), n = get_local_size(0);
  part[l] = x[get_global_id(0)];
  for (int step = n / 2; step; step /= 2)
  { barrier(CLK_LOCAL_MEM_FENCE); if (l < step) part[l] += part[l + step]; }
  if (l == 0) y[get_group_id(0)] = part[0]; }
kernel void tile(global float *x, int pitch)
{ x[get_global_id(1) * pitch + get_global_id(0)] += 1; }
kernel void column(global const float *x, global float *y, int pitch)
{ int i = get_global_id(0); y[i] = x[i * pitch]; }
kernel void threshold(global const int *flag, global float *y)
{ int i = get_global_id(0); if (flag[0] > 10) y[i] = 1; else y[i] = 2; }
kernel void bytes(global const uchar *x, global uchar *y)
{ int i = get_global_id(0); y[i] = x[i] + 7; }
kernel void quads(global const float4 *x, global float4 *y)
{ int i = get_global_id(0); y[i] = x[i] * 2.0f; }
kernel void longs(global const long *x, global long *y)
{ int i = get_global_id(0); y[i] = x[i] >> 1; }
kernel void copy_word(global const int *x, global int *y)
{ int i = get_global_id(0); y[i] = x[i]; }
kernel void double_buffer(global float *a, global float *b)
{ int i = get_global_id(0); b[i] = a[i]; a[i] = 0; }
kernel void last(global float *x, int n)
{ int i = get_global_id(0); x[i] = i; if (i == n - 1) x[n] = 5; }
kernel void flip(global const float *x, global float *y, int n)
{ int i = get_global_id(0); y[n - 1 - i] = x[i]; }
kernel void next(global const int *links, global int *out, int steps)
{ int at = 0; for (int i = 0; i < steps; ++i) at = links[at]; out[0] = at; }
"""


class Wrong(NamedTuple):
    """A wrong program. `kernel` and what follows is what has to be named."""

    name: str
    topic: str
    body: Callable[[acs.Runtime, Any], None]
    check: str
    kind: str
    kernel: str
    launch: int | None = None
    argument: int | None = None
    byte: int | None = None


class Right(NamedTuple):
    """A right program."""

    name: str
    body: Callable[[acs.Runtime, Any], None]


WRONG: list[Wrong] = []
RIGHT: list[Right] = []

Body = Callable[[acs.Runtime, Any], None]


def wrong(topic: str, check: str, kind: str, kernel: str, *rest: int | None) -> Any:
    """`rest`: launch, argument, first byte."""

    def note(body: Body) -> Body:
        WRONG.append(Wrong(body.__name__, topic, body, check, kind, kernel, *rest))
        return body

    return note


def right(body: Body) -> Body:
    RIGHT.append(Right(body.__name__, body))
    return body


def ramp(rt: acs.Runtime, n: int = 64) -> acs.Array:
    return rt.array(np.arange(1, n + 1), "f4")


def buffer_of(rt: acs.Runtime, host: Any, flags: int = 0) -> cl.Buffer:
    return cl.Buffer(rt.context, cl.mem_flags.READ_WRITE | flags, hostbuf=host)


COPIED = cl.mem_flags.COPY_HOST_PTR
IN_PLACE = cl.mem_flags.USE_HOST_PTR

# ---- wrong: beside kernels whose outcome is open, or with atomics that commute


@wrong("missing", "order", "read", "add", 8, 0, 128)
def missing_reads_beside_atomics_of_open_order(rt: acs.Runtime, k: Any) -> None:
    x, size, found = rt.array(np.arange(256) % 5, "i4"), rt.zeros(1, "u4"), rt.zeros(256, "i4")
    k.append((256,), (1,), x, size, found)
    a, b = ramp(rt), rt.zeros(64)
    k.twice((32,), None, a[32:])
    k.add((64,), None, a, b, reads=a[:32])


@wrong("missing", "access", "read", "count", 3, 0, 64)
def missing_reads_of_a_kernel_whose_atomics_commute(rt: acs.Runtime, k: Any) -> None:
    which, cells = rt.array(np.full(64, 3), "i4"), rt.zeros(8, "i4")
    k.count((64,), (1,), which, cells, reads=[which[:16], cells], writes=cells)


@wrong("short", "access", "write", "append", 4, 2, 1024)
def stray_writes_of_a_kernel_of_open_order(rt: acs.Runtime, k: Any) -> None:
    x, size = rt.array(np.full(64, 5), "i4"), rt.array([240], "u4")
    found = rt.zeros(512, "i4")
    k.append((64,), (1,), x, size, found[:256])


# ---- wrong: a range too short --------------------------------------------------------------------


@wrong("short", "access", "write", "twice", 2, 0, 128)
def view_is_shorter_than_the_launch(rt: acs.Runtime, k: Any) -> None:
    k.twice((48,), None, ramp(rt)[:32])


@wrong("short", "access", "read", "add", 2, 0, 64)
def reads_names_half(rt: acs.Runtime, k: Any) -> None:
    x = ramp(rt)
    k.add((32,), None, x, rt.empty(32), reads=x[:16])


@wrong("short", "access", "write", "add", 2, 1, 64)
def writes_names_half(rt: acs.Runtime, k: Any) -> None:
    x, y = ramp(rt), rt.empty(32)
    k.add((32,), None, x, y, writes=y[:16])


@wrong("short", "access", "read", "stencil", 2, 0, -4)
def stencil_reads_before_its_view(rt: acs.Runtime, k: Any) -> None:
    x = ramp(rt)
    k.stencil((30,), None, x[1:33], rt.empty(30))


@wrong("short", "access", "read", "stencil", 2, 0, 120)
def stencil_reads_behind_its_view(rt: acs.Runtime, k: Any) -> None:
    x = ramp(rt)
    k.stencil((30,), None, x[2:34], rt.empty(30), reads=x[1:32])


@wrong("short", "access", "read", "shift", 2, 0, 128)
def shift_reads_behind_its_view(rt: acs.Runtime, k: Any) -> None:
    x = ramp(rt)
    k.shift((32,), None, x[:32], rt.empty(32), 4)


@wrong("short", "access", "write", "flip", 2, 1, 128)
def output_is_turned_round(rt: acs.Runtime, k: Any) -> None:
    x, y = ramp(rt), rt.empty(64)
    k.flip((32,), None, x, y[:32], 64)


@wrong("short", "access", "read", "total", 2, 0, 252)
def one_element_is_missing(rt: acs.Runtime, k: Any) -> None:
    x = ramp(rt)
    k.total((1,), None, x[:63], rt.empty(1), 64)


@wrong("short", "access", "write", "last", 1, 0, 128)
def guard_element_behind_a_view(rt: acs.Runtime, k: Any) -> None:
    x = rt.empty(64)
    k.last((32,), None, x[:32], 32)


@wrong("short", "access", "write", "tile", 2, 0, 32)
def tile_leaves_its_columns(rt: acs.Runtime, k: Any) -> None:
    x = rt.zeros((8, 16))
    k.tile((9, 8), None, x[:, :8], 16)


@wrong("short", "access", "read", "column", 2, 0, 68)
def column_is_not_the_one_it_was_given(rt: acs.Runtime, k: Any) -> None:
    x = rt.array(np.arange(128).reshape(8, 16), "f4")
    k.column((8,), None, x[:, 0], rt.empty(8), 17)


@wrong("short", "access", "read", "quads", 2, 0, 64)
def vectors_are_counted_as_scalars(rt: acs.Runtime, k: Any) -> None:
    x, y = ramp(rt), rt.empty(64)
    k.quads((16,), None, x[:16], y)


@wrong("short", "access", "write", "bytes", 2, 1, 5)
def odd_bytes(rt: acs.Runtime, k: Any) -> None:
    x, y = rt.array(np.arange(64), "u1"), rt.empty(64, "u1")
    k.bytes((8,), None, x[3:11], y[3:11], writes=y[3:8])


@wrong("short", "access", "write", "add", 2, 1, 64)
def standing_declaration_is_too_short(rt: acs.Runtime, k: Any) -> None:
    k.add.access(y="w[0:16]")
    k.add((32,), None, ramp(rt), rt.empty(32))


@wrong("short", "access", "read", "longs", 2, 0, 128)
def longs_are_two_words(rt: acs.Runtime, k: Any) -> None:
    x = rt.array(np.arange(64) * 1001, "i8")
    k.longs((32,), None, x[:16], rt.empty(32, "i8"))


# ---- wrong: off by one group ---------------------------------------------------------------------


@wrong("group", "access", "write", "add", 2, 1, 256)
def one_group_too_many(rt: acs.Runtime, k: Any) -> None:
    k.add((64 + 16,), (16,), ramp(rt, 80), rt.empty(64))


@wrong("group", "access", "write", "constant_one", 1, 0, 256)
def one_group_too_many_writes_constants(rt: acs.Runtime, k: Any) -> None:
    k.constant_one((96,), (32,), rt.empty(64))


@wrong("group", "access", "write", "constant_one", 2, 0, 256)
def one_group_too_many_writes_what_was_there(rt: acs.Runtime, k: Any) -> None:
    x = rt.empty(128)
    x.fill(1)
    k.constant_one((96,), (32,), x[:64])


@wrong("group", "access", "write", "tree", 2, 1, 16)
def one_group_of_a_reduction_too_many(rt: acs.Runtime, k: Any) -> None:
    y = rt.empty(8)
    k.tree((80,), (16,), ramp(rt, 80), y[:4], cl.LocalMemory(64))


@wrong("group", "access", "write", "twice", 2, 0, 0)
def global_offset_is_forgotten(rt: acs.Runtime, k: Any) -> None:
    x = ramp(rt)
    k.twice((16,), None, x, writes=x[16:32], reads=x)


@wrong("group", "access", "write", "twice", 2, 0, 128)
def global_offset_is_one_group_on(rt: acs.Runtime, k: Any) -> None:
    x = ramp(rt)
    k.twice((16,), (16,), x, offset=(32,), writes=x[16:32], reads=x)


# ---- wrong: reads= is missing --------------------------------------------------------------------


@wrong("missing", "access", "read", "accumulate", 3, 1, 0)
def writes_alone_drops_the_read(rt: acs.Runtime, k: Any) -> None:
    x, y = ramp(rt), rt.zeros(64)
    k.accumulate((64,), None, x, y, writes=y)


@wrong("missing", "access", "write", "twice", 2, 0, 0)
def reads_alone_drops_the_write(rt: acs.Runtime, k: Any) -> None:
    x = ramp(rt)
    k.twice((64,), None, x, reads=x)


@wrong("missing", "access", "read", "gather", 3, 1, 32)
def indices_leave_the_range(rt: acs.Runtime, k: Any) -> None:
    which, x = rt.array([0, 3, 8, 63], "i4"), ramp(rt)
    k.gather((4,), None, which, x, rt.empty(4), reads=[which, x[:8]])


@wrong("missing", "access", "read", "gather", 3, 0, 8)
def half_of_the_indices_are_declared(rt: acs.Runtime, k: Any) -> None:
    which, x = rt.array([5, 3, 8, 60], "i4"), ramp(rt)
    k.gather((4,), None, which, x, rt.empty(4), reads=[which[:2], x])


@wrong("missing", "access", "write", "scatter", 3, 1, 60)
def scatter_leaves_the_range(rt: acs.Runtime, k: Any) -> None:
    which, cells = rt.array([0, 15], "i4"), rt.zeros(64, "i4")
    k.scatter((2,), None, which, cells, reads=cells[:8], writes=cells[:8])


@wrong("missing", "access", "read", "threshold", 2, 0, 0)
def condition_is_not_declared(rt: acs.Runtime, k: Any) -> None:
    flag = rt.array([12], "i4")
    k.threshold.access(flag="r[0:0]")
    k.threshold((8,), None, flag, rt.empty(8))


@wrong("missing", "access", "read", "double_buffer", 3, 0, 0)
def rotated_buffers_are_declared_the_other_way(rt: acs.Runtime, k: Any) -> None:
    a, b = ramp(rt), rt.zeros(64)
    k.double_buffer((64,), None, a, b, reads=b, writes=[a, b])


@wrong("missing", "access", "read", "add", 2, 0, 0)
def access_function_forgets_the_input(rt: acs.Runtime, k: Any) -> None:
    k.add.access(lambda size, local, x, y: ([x[:0]], [y, x[:0]]))
    x = ramp(rt)
    k.add((64,), None, x, rt.empty(64), reads=x[32:])


@wrong("missing", "access", "read", "next", 2, 0, 4)
def linked_list_is_longer_than_declared(rt: acs.Runtime, k: Any) -> None:
    links = rt.array([1, 2, 3, 0], "i4")
    k.next((1,), None, links, rt.empty(1, "i4"), 3, reads=links[:1])


# ---- wrong: aliases ------------------------------------------------------------------------------


@wrong("alias", "access", "alias", "add", 2, 0, 0)
def two_buffers_on_one_host_array(rt: acs.Runtime, k: Any) -> None:
    host = np.arange(64, dtype="f4")
    one, other = buffer_of(rt, host, IN_PLACE), buffer_of(rt, host, IN_PLACE)
    rt.launch(k.twice.native, (64,), None, one)
    rt.launch(k.add.native, (64,), None, other, rt.empty(64))


@wrong("alias", "access", "alias", "twice", 3, 0, 0)
def reader_and_writer_of_one_host_array(rt: acs.Runtime, k: Any) -> None:
    host = np.arange(64, dtype="f4")
    one, other = buffer_of(rt, host, IN_PLACE), buffer_of(rt, host, IN_PLACE)
    y = rt.zeros(64)
    rt.launch(k.add.native, (64,), None, one, y)
    rt.launch(k.twice.native, (64,), None, other)


@wrong("alias", "access", "alias", "twice", 2, 0, 0)
def two_buffers_on_overlapping_host_arrays(rt: acs.Runtime, k: Any) -> None:
    host = np.arange(2048, dtype="f4")
    one, other = buffer_of(rt, host[:1025], IN_PLACE), buffer_of(rt, host[1024:], IN_PLACE)
    rt.launch(k.twice.native, (1025,), None, one)
    rt.launch(k.twice.native, (8,), None, other)


@wrong("alias", "access", "write", "twice", 1, 0, 256)
def foreign_buffer_is_larger_than_the_range(rt: acs.Runtime, k: Any) -> None:
    whole = cl.array.to_device(rt_queue(rt), np.arange(128, dtype="f4"))
    rt.launch(k.twice.native, (128,), None, whole[:64])


@wrong("alias", "access", "read", "add", 1, 0, 64)
def foreign_buffer_is_read_beyond_reads(rt: acs.Runtime, k: Any) -> None:
    whole = cl.array.to_device(rt_queue(rt), np.arange(1, 65, dtype="f4"))
    rt.launch(k.add.native, (64,), None, whole, rt.empty(64), reads=whole[:16])


@wrong("alias", "access", "write", "twice", 1, 0, 512)
def sub_buffer_is_left(rt: acs.Runtime, k: Any) -> None:
    parent = buffer_of(rt, np.arange(1024, dtype="f4"), COPIED)
    rt.launch(k.twice.native, (256,), None, parent.get_sub_region(1024, 512))


def rt_queue(rt: acs.Runtime) -> Any:
    return cl.CommandQueue(rt.context, rt.device)


# ---- wrong: racing host tasks --------------------------------------------------------------------


def store(rt: acs.Runtime, array: Any, value: float) -> None:
    """What a program does that goes past the runtime."""
    host = np.full(array.shape, value, array.dtype)
    queue = rt_queue(rt)
    data = array.data
    cl.enqueue_copy(queue, data, host)
    queue.finish()


@wrong("host task", "access", "write", "task", 3, None, 0)
def host_task_stores_past_the_runtime(rt: acs.Runtime, k: Any) -> None:
    x, y = rt.zeros(64), rt.zeros(8)

    def task(read: Any) -> None:
        store(rt, x, 4)

    rt.call(task, reads=y)


@wrong("host task", "access", "write", "task", 2, None, 0)
def host_task_stores_into_a_foreign_buffer(rt: acs.Runtime, k: Any) -> None:
    foreign = buffer_of(rt, np.zeros(64, "f4"), COPIED)
    rt.launch(k.twice.native, (64,), None, foreign).wait()

    def task() -> None:
        queue = rt_queue(rt)
        cl.enqueue_copy(queue, foreign, np.ones(64, "f4"))
        queue.finish()

    rt.call(task)


@wrong("host task", "access", "read", "task", 2, None, None)
def host_task_reads_past_the_runtime(rt: acs.Runtime, k: Any) -> None:
    x = rt.zeros(64)
    host = np.empty(64, "f4")

    def task() -> None:
        cl.enqueue_copy(rt_queue(rt), host, x.data)

    rt.call(task)


@wrong("host task", "access", "host memory", "task", 2, None, None)
def host_task_changes_what_set_was_promised(rt: acs.Runtime, k: Any) -> None:
    host = np.zeros(64, "f4")
    rt.empty(64).set(host, copy=False)

    def task() -> None:
        host[:] = 1

    rt.call(task)


@wrong("host task", "access", "write", "task", 3, None, 0)
def host_task_names_what_it_writes_as_read(rt: acs.Runtime, k: Any) -> None:
    x, y = rt.zeros(64), rt.zeros(8)

    def task(read: Any, read_too: Any) -> None:
        store(rt, x, 4)

    rt.call(task, reads=[x, y])


@wrong("host task", "order", "write", "twice", 2, 0, 128)
def order_finds_a_write_that_a_later_launch_overlaps(rt: acs.Runtime, k: Any) -> None:
    x, y = ramp(rt), rt.empty(64)
    k.twice((48,), None, x[:32])
    k.add((32,), None, x[32:], y[32:])


# ---- wrong: too early ----------------------------------------------------------------------------


@wrong("too early", "access", "freed", "add", 2, 0, 0)
def data_of_an_array_that_was_freed(rt: acs.Runtime, k: Any) -> None:
    x = ramp(rt)
    data = x.data
    x.free()
    rt.launch(k.add.native, (64,), None, data, rt.empty(64))


@wrong("too early", "access", "freed", "twice", 2, 0, 0)
def data_of_an_array_that_was_dropped(rt: acs.Runtime, k: Any) -> None:
    data = ramp(rt).data
    rt.launch(k.twice.native, (64,), None, data)


@wrong("too early", "access", "freed", "twice", 1, 0, 0)
def buffer_is_released_before_anybody_waited(rt: acs.Runtime, k: Any) -> None:
    foreign = buffer_of(rt, np.zeros(64, "f4"), COPIED)
    rt.launch(k.twice.native, (64,), None, foreign)
    foreign.release()
    rt.finish()


@wrong("too early", "access", "freed", "twice", 1, 0, 0)
def buffer_is_released_while_the_driver_holds_it(rt: acs.Runtime, k: Any) -> None:
    foreign = buffer_of(rt, np.zeros(64, "f4"), COPIED)
    held = cl.Buffer.from_int_ptr(foreign.int_ptr, retain=True)  # as a driver's thread does
    rt.launch(k.twice.native, (64,), None, foreign)
    foreign.release()
    rt.finish()
    held.release()


@wrong("too early", "access", "freed", "add", 1, 0, 0)
def input_is_released_before_the_result_is_there(rt: acs.Runtime, k: Any) -> None:
    foreign, y = buffer_of(rt, np.zeros(64, "f4"), COPIED), rt.empty(64)
    rt.launch(k.add.native, (64,), None, foreign, y)
    foreign.release()
    y.get()


@wrong("too early", "access", "host memory", "write", 1, None, None)
def host_memory_changes_before_the_transfer_is_done(rt: acs.Runtime, k: Any) -> None:
    host = np.zeros(64, "f4")
    x = rt.empty(64)
    x.set(host, copy=False)
    host[:] = 1
    x.get()


# ---- wrong: nobody wrote it ----------------------------------------------------------------------


@wrong("unwritten", "uninitialised", "uninitialised", "accumulate", 2, 1, 0)
def sum_into_an_empty_array(rt: acs.Runtime, k: Any) -> None:
    k.accumulate((64,), None, ramp(rt), rt.empty(64))


@wrong("unwritten", "uninitialised", "uninitialised", "add", 1, 0, 0)
def input_was_never_set(rt: acs.Runtime, k: Any) -> None:
    k.add((64,), None, rt.empty(64), rt.empty(64))


@wrong("unwritten", "uninitialised", "uninitialised", "add", 2, 0, 128)
def second_half_was_never_set(rt: acs.Runtime, k: Any) -> None:
    x = rt.empty(64)
    x[:32].fill(1)
    k.add((64,), None, x, rt.empty(64))


@wrong("unwritten", "uninitialised", "uninitialised", "read", 2, None, None)
def half_of_what_is_read_back_was_never_set(rt: acs.Runtime, k: Any) -> None:
    x = rt.empty(64)
    x[:32].fill(1)
    x.get()


@wrong("unwritten", "uninitialised", "uninitialised", "add", 2, 0, 4)
def every_other_element_was_set_by_a_kernel(rt: acs.Runtime, k: Any) -> None:
    x = rt.empty(64)
    k.evens((64,), None, x)
    k.add((64,), None, x, rt.empty(64))


@wrong("unwritten", "uninitialised", "uninitialised", "twice", 3, 0, 0)
def memory_of_a_former_array(rt: acs.Runtime, k: Any) -> None:
    x = ramp(rt)
    k.twice((64,), None, x)
    x.free()
    k.twice((64,), None, rt.empty(64))


@wrong("unwritten", "uninitialised", "uninitialised", "total", 2, 0, 240)
def padding_is_summed_up(rt: acs.Runtime, k: Any) -> None:
    x = rt.empty(64)
    x[:60].set(np.ones(60, "f4"))
    k.total((1,), None, x, rt.empty(1), 64)


# ---- right ---------------------------------------------------------------------------------------


@right
def halves_and_the_whole(rt: acs.Runtime, k: Any) -> None:
    x = ramp(rt)
    k.twice((32,), None, x[:32])
    k.twice((32,), None, x[32:])
    k.twice((64,), None, x)
    assert (x.get() == 4 * np.arange(1, 65)).all()


@right
def stencil_within_its_view(rt: acs.Runtime, k: Any) -> None:
    x, y = ramp(rt), rt.zeros(64)
    k.stencil((62,), None, x[1:], y[1:63], reads=x)
    assert y.get()[1] == 6


@right
def output_is_written_in_part(rt: acs.Runtime, k: Any) -> None:
    y = rt.zeros(64)
    k.evens((64,), None, y)
    assert y.get()[3] == 0


@right
def declared_write_is_not_complete(rt: acs.Runtime, k: Any) -> None:
    y = rt.zeros(64)
    k.evens((64,), None, y, writes=y)
    k.guarded((64,), None, ramp(rt), y, 10, writes=y)
    assert y.get()[12] == 12


@right
def guarded_launch_is_larger_than_its_array(rt: acs.Runtime, k: Any) -> None:
    y = rt.zeros(50)
    k.guarded((64,), (16,), ramp(rt, 50), y, 50)
    assert y.get()[49] == 150


@right
def unused_work_items(rt: acs.Runtime, k: Any) -> None:
    y = rt.zeros(64)
    k.guarded((1024,), None, ramp(rt)[:8], y[:8], 8)
    assert y.get()[9] == 0


@right
def same_values_are_written_again(rt: acs.Runtime, k: Any) -> None:
    y = rt.zeros(64)
    for _ in range(4):
        k.constant_one((64,), None, y)
    assert y.get().all()


@right
def copies_of_equal_arrays(rt: acs.Runtime, k: Any) -> None:
    x, y = rt.zeros(64, "i4"), rt.zeros(64, "i4")
    for _ in range(3):
        k.copy_word((64,), None, x, y)
    assert not y.get().any()


@right
def indices_within_the_declared_rows(rt: acs.Runtime, k: Any) -> None:
    which, cells = rt.array([0, 3, 7, 3], "i4"), rt.zeros((2, 100), "i4")
    k.count((4,), None, which, cells, reads=cells[0], writes=cells[0])
    k.count((4,), None, which, cells[1])
    assert cells.get().sum() == 8


@right
def gathered_from_a_part(rt: acs.Runtime, k: Any) -> None:
    which, x, y = rt.array([9, 3, 8, 5], "i4"), ramp(rt), rt.empty(4)
    k.gather((4,), None, which, x, y, reads=[which, x[:10]])
    assert y.get().tolist() == [10, 4, 9, 6]


@right
def tiles_of_a_matrix(rt: acs.Runtime, k: Any) -> None:
    x = rt.zeros((16, 16))
    for row in (0, 8):
        for column in (0, 8):
            k.tile((8, 8), None, x[row : row + 8, column : column + 8], 16)
    assert (x.get() == 1).all()


@right
def columns_of_a_matrix(rt: acs.Runtime, k: Any) -> None:
    x, y = rt.array(np.arange(128).reshape(8, 16), "f4"), rt.zeros((16, 8))
    for column in range(16):
        k.column((8,), None, x[:, column], y[column], 16)
    assert (y.get() == x.get().T).all()


@right
def views_at_odd_bytes(rt: acs.Runtime, k: Any) -> None:
    x, y = rt.array(np.arange(64), "u1"), rt.zeros(64, "u1")
    k.bytes((13,), None, x[3:16], y[1:14])
    k.bytes((7,), None, x[30:37], y[14:21])
    assert y.get()[1] == 10


@right
def vectors(rt: acs.Runtime, k: Any) -> None:
    x, y = ramp(rt), rt.zeros(64)
    k.quads((8,), None, x[:32], y[32:])
    assert y.get()[32] == 2


@right
def long_integers(rt: acs.Runtime, k: Any) -> None:
    x, y = rt.array(np.arange(64) * 7, "i8"), rt.zeros(64, "i8")
    k.longs((64,), None, x, y)
    assert y.get()[2] == 7


@right
def reduction_in_groups(rt: acs.Runtime, k: Any) -> None:
    y = rt.zeros(4)
    k.tree((64,), (16,), ramp(rt), y, cl.LocalMemory(64))
    assert y.get().sum() == 64 * 65 / 2


@right
def order_of_atomics_is_open(rt: acs.Runtime, k: Any) -> None:
    x, size, found = rt.array(np.arange(256) % 5, "i4"), rt.zeros(1, "u4"), rt.zeros(256, "i4")
    k.append((256,), (1,), x, size, found)
    assert size.get()[0] == 102


@right
def order_of_atomics_in_a_helper(rt: acs.Runtime, k: Any) -> None:
    x, size, found = rt.array(np.arange(256) % 5, "i4"), rt.zeros(1, "u4"), rt.zeros(256, "i4")
    k.append_if((256,), (2,), x, size, found)
    size.fill(0)
    k.append_if((256,), (1,), x, size, found[128:])
    assert size.get()[0] == 102


@right
def order_of_atomics_goes_on(rt: acs.Runtime, k: Any) -> None:
    """What follows from such a launch is not the same each time either."""
    x, size, found = rt.array(np.arange(64) % 5, "i4"), rt.zeros(1, "u4"), rt.zeros(64, "i4")
    y, z = rt.zeros(25), rt.zeros(25)
    k.append((64,), (1,), x, size, found)
    k.gather((25,), None, found, ramp(rt), y)
    z.copy_from(y)
    k.twice((25,), None, z)
    assert z.get().sum() == 2 * sum(i + 1 for i in range(64) if i % 5 > 2)


@right
def atomics_that_commute_are_checked(rt: acs.Runtime, k: Any) -> None:
    which, cells = rt.array(np.arange(256) % 8, "i4"), rt.zeros(8, "i4")
    most, total = rt.zeros(1, "i4"), rt.zeros(1, "i4")
    k.count((256,), (1,), which, cells)
    k.peak((256,), (1,), which, most, total)
    assert cells.get().tolist() == [32] * 8
    assert (most.get()[0], total.get()[0]) == (7, 896)


@right
def linked_list_is_declared(rt: acs.Runtime, k: Any) -> None:
    links, out = rt.array([1, 2, 3, 0], "i4"), rt.empty(1, "i4")
    k.next((1,), None, links, out, 3)
    assert out.get()[0] == 3


@right
def two_outputs(rt: acs.Runtime, k: Any) -> None:
    a, b = ramp(rt), rt.zeros(64)
    k.double_buffer((64,), None, a, b)
    k.double_buffer((64,), None, b, a)
    assert a.get()[5] == 6


@right
def standing_declarations(rt: acs.Runtime, k: Any) -> None:
    k.add.access(x="r[gid]", y="w[gid]")
    k.twice.access(x="rw[gid]")
    x, y = ramp(rt), rt.zeros(64)
    k.add((16,), None, x, y)
    k.add((16,), None, x, y, offset=(16,))
    k.twice((16,), None, y, offset=(16,))
    assert y.get()[16] == 36


@right
def access_functions(rt: acs.Runtime, k: Any) -> None:
    k.add.access(lambda size, local, x, y: ([x[: size[0]]], [y[: size[0]]]))
    x, y = ramp(rt), rt.zeros(64)
    k.add((16,), None, x, y)
    assert y.get()[15] == 17


@right
def global_offsets(rt: acs.Runtime, k: Any) -> None:
    x = ramp(rt)
    k.twice((16,), (16,), x, offset=(16,), reads=x[16:32], writes=x[16:32])
    assert x.get()[16] == 34


@right
def work_that_is_skipped(rt: acs.Runtime, k: Any) -> None:
    x, flags = ramp(rt), rt.array([0, 1], "u4")
    k.twice((64,), None, x, when=flags[0:1])
    k.twice((32,), None, x[:32], when=flags[1:2])
    assert x.get()[0] == 2


@right
def sizes_from_the_device(rt: acs.Runtime, k: Any) -> None:
    x, size = ramp(rt), rt.array([10], "u4")
    k.twice((acs.size(size, upto=64),), None, x)
    assert x.get()[10] == 11


@right
def transfers_of_all_kinds(rt: acs.Runtime, k: Any) -> None:
    x, y = ramp(rt), rt.empty(64)
    y.copy_from(x)
    y[::2].fill(3)
    y[1:5] = x[5:9]
    k.twice((64,), None, y)
    y[60:].set(np.zeros(4, "f4"))
    assert y[0:3].get().tolist() == [6, 12, 14]


@right
def strided_transfers(rt: acs.Runtime, k: Any) -> None:
    x = rt.array(np.arange(64).reshape(8, 8), "f4")
    y = rt.zeros((8, 8))
    y.copy_from(x.T)
    k.twice((64,), None, y)
    assert (y.T.get() == 2 * x.get()).all()


@right
def host_tasks(rt: acs.Runtime, k: Any) -> None:
    x, y = ramp(rt), rt.zeros(64)
    seen: list[float] = []

    def task(read: Any, written: Any) -> None:
        seen.append(float(read[0]))
        written[:] = read + 1

    k.twice((64,), None, x)
    rt.call(task, reads=x, writes=y)
    k.twice((64,), None, y)
    assert y.get()[0] == 6
    assert seen == [2]


@right
def host_tasks_on_views(rt: acs.Runtime, k: Any) -> None:
    x = rt.zeros((8, 8))

    def task(both: Any) -> None:
        both += 1

    rt.call(task, reads=x[:, 2], writes=x[:, 2])
    k.twice((64,), None, x)
    assert x.get()[:, 2].tolist() == [2] * 8


@right
def host_tasks_that_launch(rt: acs.Runtime, k: Any) -> None:
    x, y = rt.zeros(64), rt.zeros(64)

    def task(read: Any) -> None:
        x.fill(2)

    rt.call(task, reads=y).wait()
    rt.finish()
    assert x.get()[0] == 2


@right
def host_task_stores_what_it_declares(rt: acs.Runtime, k: Any) -> None:
    x = rt.zeros(64)

    def task(both: Any) -> None:
        both[:] = 3
        x.data  # noqa: B018  it may look

    rt.call(task, reads=x, writes=x)
    assert x.get()[0] == 3


@right
def arrays_come_and_go(rt: acs.Runtime, k: Any) -> None:
    total = rt.zeros(64)
    for number in range(20):
        x = rt.empty(64)
        x.fill(number)
        k.accumulate((64,), None, x, total)
    assert total.get()[0] == 190


@right
def arrays_are_freed_while_in_use(rt: acs.Runtime, k: Any) -> None:
    x, y = ramp(rt), rt.empty(64)
    view = x[10:20]
    k.add((64,), None, x, y)
    x.free()
    k.twice((10,), None, view)
    assert y.get()[0] == 2


@right
def foreign_buffers(rt: acs.Runtime, k: Any) -> None:
    foreign, y = buffer_of(rt, np.arange(64, dtype="f4"), COPIED), rt.empty(64)
    rt.launch(k.twice.native, (64,), None, foreign)
    rt.launch(k.add.native, (64,), None, foreign, y)
    assert y.get()[1] == 3
    foreign.release()


@right
def another_object_for_a_foreign_buffer_is_released(rt: acs.Runtime, k: Any) -> None:
    foreign = buffer_of(rt, np.zeros(64, "f4"), COPIED)
    other = cl.Buffer.from_int_ptr(foreign.int_ptr, retain=True)
    rt.launch(k.twice.native, (64,), None, foreign)
    other.release()
    rt.finish()


@right
def foreign_buffers_are_dropped(rt: acs.Runtime, k: Any) -> None:
    y = rt.zeros(64)
    for _ in range(4):
        rt.launch(k.accumulate.native, (64,), None, buffer_of(rt, np.ones(64, "f4"), COPIED), y)
    assert y.get()[0] == 4


@right
def parts_of_foreign_arrays(rt: acs.Runtime, k: Any) -> None:
    whole = cl.array.to_device(rt_queue(rt), np.arange(128, dtype="f4"))
    rt.launch(k.twice.native, (64,), None, whole[:64])
    rt.launch(k.twice.native, (64,), None, whole[64:])
    rt.finish()
    assert whole.get()[127] == 254


@right
def sub_buffers(rt: acs.Runtime, k: Any) -> None:
    parent = buffer_of(rt, np.arange(1024, dtype="f4"), COPIED)
    low, high = parent.get_sub_region(0, 2048), parent.get_sub_region(2048, 2048)
    y = rt.empty(512)
    rt.launch(k.twice.native, (512,), None, low)
    rt.launch(k.add.native, (512,), None, high, y)
    assert y.get()[0] == 513


@right
def two_readers_of_one_host_array(rt: acs.Runtime, k: Any) -> None:
    host = np.arange(64, dtype="f4")
    one, other = buffer_of(rt, host, IN_PLACE), buffer_of(rt, host, IN_PLACE)
    y, z = rt.empty(64), rt.empty(64)
    rt.launch(k.add.native, (64,), None, one, y)
    rt.launch(k.add.native, (64,), None, other, z)
    assert (y.get() == z.get()).all()


@right
def waits_between_two_names_of_one_host_array(rt: acs.Runtime, k: Any) -> None:
    host = np.arange(64, dtype="f4")
    one, other = buffer_of(rt, host, IN_PLACE), buffer_of(rt, host, IN_PLACE)
    y = rt.empty(64)
    rt.launch(k.twice.native, (64,), None, one)
    rt.finish()
    rt.launch(k.add.native, (64,), None, other, y)
    assert y.get()[1] == (3 if rt.device.host_unified_memory else 2)  # else each has a copy


@right
def shared_memory_and_a_buffer_on_it(rt: acs.Runtime, k: Any) -> None:
    if not rt.device.svm_capabilities & cl.device_svm_capabilities.COARSE_GRAIN_BUFFER:
        return
    shared = cl.SVMAllocation(rt.context, 256, 64, cl.svm_mem_flags.READ_WRITE)
    cl.enqueue_svm_memfill(rt_queue(rt), shared, np.ones(1, "f4")).wait()
    y = rt.empty(64)
    rt.launch(k.twice.native, (64,), None, shared)
    rt.launch(k.twice.native, (64,), None, shared.as_buffer(rt.context))
    rt.launch(k.add.native, (64,), None, shared, y)
    assert y.get()[0] == 5


@right
def another_queue_writes_in_between(rt: acs.Runtime, k: Any) -> None:
    foreign, y = buffer_of(rt, np.zeros(64, "f4"), COPIED), rt.empty(64)
    rt.launch(k.twice.native, (64,), None, foreign)
    rt.finish()
    event = cl.enqueue_copy(rt_queue(rt), foreign, np.full(64, 5, "f4"), is_blocking=False)
    rt.launch(k.add.native, (64,), None, foreign, y, wait_for=[event])
    assert y.get()[0] == 6


@right
def behind_a_user_event(rt: acs.Runtime, k: Any) -> None:
    gate, x = cl.UserEvent(rt.context), ramp(rt)
    rt.finish()
    k.twice((64,), None, x, wait_for=[gate])
    gate.set_status(cl.command_execution_status.COMPLETE)
    rt.finish()
    k.twice((64,), None, x)
    assert x.get()[0] == 4


@right
def events_for_others(rt: acs.Runtime, k: Any) -> None:
    x = ramp(rt)
    k.twice((64,), None, x).event.wait()
    handle = k.twice((64,), None, x)
    while not handle.done:
        pass
    assert x.get()[0] == 4


@right
def another_queue_writes_an_array(rt: acs.Runtime, k: Any) -> None:
    x, y = ramp(rt), rt.empty(64)
    rt.finish()
    store(rt, x, 7)
    k.add((64,), None, x, y)
    assert y.get()[0] == 8


@right
def host_memory_is_left_alone_until_done(rt: acs.Runtime, k: Any) -> None:
    host, x = np.zeros(64, "f4"), rt.empty(64)
    x.set(host, copy=False).wait()
    host[:] = 1
    x.set(host)
    host[:] = 2
    assert x.get()[0] == 1


@right
def a_failed_task_poisons(rt: acs.Runtime, k: Any) -> None:
    x, y = ramp(rt), rt.empty(64)
    rt.call(lambda both: 1 / 0, reads=x, writes=x)
    k.add((64,), None, x, y)
    try:
        y.get()
    except acs.PoisonedError:
        y.fill(0)
    assert y.get()[0] == 0
    x.fill(0)
    k.add((64,), None, x, y)
    assert y.get()[0] == 1


@right
def only_the_written_part_is_used(rt: acs.Runtime, k: Any) -> None:
    x, y = rt.empty(64), rt.empty(64)
    x[:32].fill(1)
    k.add((32,), None, x, y)
    k.twice((32,), None, y)
    assert y[:32].get()[0] == 4


@right
def scratch_is_written_before_it_is_read(rt: acs.Runtime, k: Any) -> None:
    x = ramp(rt)
    for _ in range(5):
        scratch = rt.empty(64)
        k.add((64,), None, x, scratch)
        k.add((64,), None, scratch, x)
    assert x.get()[0] == 11


@right
def long_chain_and_wide_rows(rt: acs.Runtime, k: Any) -> None:
    x = rt.zeros((8, 64))
    for _ in range(3):
        for row in range(8):
            k.accumulate((64,), None, x[row], x[(row + 1) % 8])
            k.twice((64,), None, x[row])
    assert not x.get().any()


@right
def recorded_and_replayed(rt: acs.Runtime, k: Any) -> None:
    x, y = ramp(rt), rt.zeros(64)
    with rt.record() as graph:
        k.twice((32,), None, x[:32])
        k.accumulate((32,), None, x[32:], y[:32])
        k.accumulate((64,), None, x, y)
    for _ in range(3):
        graph.replay()
    assert y.get()[0] == 2 + 4 + 8 + 3 * 33
