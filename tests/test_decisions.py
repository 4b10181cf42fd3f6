"""Decisions on the device: `when=` and `acs.size`, on every backend, in both kinds of memory.

The oracle is NumPy, which decides on the host, in program order.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from pyopencl.characterize import has_coarse_grain_buffer_svm
from wrong_counts import WRONG_COUNTS

import acs_cl as acs
from acs_cl.devices.pocl import compiles_late
from acs_cl.launch.decision import DecidedCommand
from acs_cl.opencl_c import cache
from acs_cl.opencl_c.parse.clang import CannotParse
from acs_cl.opencl_c.variants.guards import MOST_TOGETHER, with_guards
from acs_cl.opencl_c.variants.offsets import with_byte_offsets
from acs_cl.opencl_c.variants.parts import of_parts
from acs_cl.testing import is_at_rest, span_of

pytestmark = pytest.mark.rotate("make", 3)

SOURCE = """
#define INDEX get_global_id(0)
uint width(uint dimension);
float scaled(float x, float by) { return x * by; }
uint asked(void) { return width(0); }
uint width(uint dimension) { return get_global_size(dimension) + 1000 * get_num_groups(dimension); }

kernel void add(global const float *x, global float *y, float a)
{ size_t i = INDEX; y[i] = scaled(x[i], 2) + a; }
kernel void mark(global uint *y, uint value) { y[get_global_id(0) - get_global_offset(0)] = value; }
kernel void ask(global uint *y) { y[INDEX] = asked(); }
kernel void grid(global uint *y, uint pitch)
{ y[get_global_id(1) * pitch + get_global_id(0)] = get_global_size(0) + 100 * get_global_size(1); }
kernel void gate(global const uint *x, global uint *flag, uint bit) { *flag = *x >> bit & 1; }
kernel void collatz(global uint *x, global uint *go)
{ *x = *x % 2 ? 3 * *x + 1 : *x / 2; *go = *x != 1; }
kernel void until(global uint *left, global uint *x)
{ x[INDEX] += 1; if (!INDEX) *left = 0; }
kernel void sums(global const int *x, global int *y, local int *shared)
{
    local int tile[8];
    size_t i = get_local_id(0), most = get_local_size(0);
    tile[i] = x[INDEX];
    barrier(CLK_LOCAL_MEM_FENCE);
    while (most > 1) {
        most /= 2;
        if (i < most) tile[i] += tile[i + most];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (!i) shared[0] = tile[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i == get_local_size(0) - 1) y[get_group_id(0)] = shared[0];
}
kernel void copies(global int *y)
{
    local int tile[4];
    tile[get_local_id(0)] = 3;
    barrier(CLK_LOCAL_MEM_FENCE);
    event_t copy = async_work_group_copy(y + 4 * get_group_id(0), tile, 4, 0);
    wait_group_events(1, &copy);
}
kernel void layer(global const int *x, global int *y, global const int *weights, uint n)
{
    size_t i = INDEX;
    int sum = 0;
    for (uint j = 0; j < n; ++j) sum += weights[i * n + j] * x[j];
    y[i] = max(sum, 0) % 8;
}
kernel void choose(global const int *y, global uint *flag) { *flag = y[0] > y[1]; }
"""

Setting = tuple[acs.Runtime, acs.Program]


@pytest.fixture(params=["svm", "buffers"])
def setting(make: Callable[..., acs.Runtime], request: pytest.FixtureRequest) -> Setting:
    runtime = make(memory=request.param)
    return runtime, runtime.build(SOURCE)


@pytest.fixture
def plain(device: cl.Device) -> Any:
    with acs.Runtime(device) as runtime:
        yield runtime, runtime.build(SOURCE)


# ---- when ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u4", "i4"])
def test_launch_runs_if_its_flag_is_not_zero_and_else_leaves_all_as_it_was(
    setting: Setting, dtype: str
) -> None:
    rt, prog = setting
    values = np.array([0, 1, 3, 0, 2**31 - 1, -(2**31)], "i4").astype(dtype)
    flags, x = rt.array(values), rt.array(np.arange(96), "f4")
    y = rt.array(np.full(96, -1), "f4")
    for i in range(6):
        part = slice(16 * i, 16 * i + 16)
        prog.add((16,), (4,) if i % 2 else None, x[part], y[part], i, when=flags[i])
    runs = np.repeat(values != 0, 16)
    want = np.where(runs, 2 * np.arange(96) + np.repeat(np.arange(6), 16), -1)
    assert (y.get() == want).all()


def test_kernel_with_barriers_and_local_memory_is_skipped_or_run_whole(setting: Setting) -> None:
    rt, prog = setting
    x, flags = rt.array(np.arange(64), "i4"), rt.array([0, 1], "u4")
    y = rt.zeros(8, "i4")
    shared = cl.LocalMemory(4)
    prog.sums((64,), (8,), x, y, shared, when=flags[0])
    assert not y.get().any()
    prog.sums((64,), (8,), x, y, shared, when=flags[1])
    assert (y.get() == np.arange(64).reshape(8, 8).sum(1)).all()


def test_a_kernel_may_end_with_a_copy_of_its_group(setting: Setting) -> None:
    """PoCL crashes where a kernel returns early and ends with a call of its group."""
    rt, prog = setting
    y, flags = rt.zeros(24, "i4"), rt.array([0, 1], "u4")
    prog.copies((8,), (4,), y[9:17], when=flags[0])
    assert not y.get().any()
    prog.copies((8,), (4,), y[9:17], when=flags[1])
    assert y.get().nonzero()[0].tolist() == list(range(9, 17))


def test_kernels_decide_about_the_next_without_the_host(setting: Setting) -> None:
    rt, prog = setting
    starts = range(1, 30)
    x = rt.array(list(starts), "u4")
    go = rt.array(np.ones(len(starts), "u4"))
    steps = 40
    for i in range(len(starts)):
        for _ in range(steps):
            prog.collatz((1,), None, x[i], go[i], when=go[i])
    want = []
    for value in starts:
        for step in range(steps):
            if step and value == 1:
                break
            value = 3 * value + 1 if value % 2 else value // 2
        want.append(value)
    assert x.get().tolist() == want


def test_dynamic_network_of_64_gates_gives_what_numpy_gives(setting: Setting) -> None:
    rt, prog = setting
    random_ = np.random.default_rng(1)
    n, gates = 8, 64
    weights = random_.integers(-2, 4, (2, gates, n, n)).astype("i4")
    start = random_.integers(0, 5, (4, n)).astype("i4")
    on_device = rt.array(weights)
    paths = rt.array(start)
    flags = rt.zeros((4, gates), "u4")
    spare = rt.zeros((4, n), "i4")
    want = start.copy()
    for path in range(4):
        for g in range(gates):
            chosen = weights[int(want[path, 0] > want[path, 1]), g]
            want[path] = np.maximum(chosen @ want[path], 0) % 8
            now, new, flag = paths[path], spare[path], flags[path, g]
            prog.choose((1,), None, now, flag)
            prog.layer((n,), None, now, new, on_device[0, g], n)
            prog.layer((n,), None, now, new, on_device[1, g], n, when=flag)
            now.copy_from(new)
    assert np.array_equal(paths.get(), want)
    assert want.any()


def test_kernel_that_writes_its_own_flag_runs_whole_or_not_at_all(setting: Setting) -> None:
    rt, prog = setting
    left, x = rt.array([7, 1, 9], "u4"), rt.zeros(20000, "u4")
    for _ in range(3):
        prog.until((20000,), (8,), left[1], x, when=left[1])
    prog.until(acs.size(left[1], 20000), (8,), left[1], x)  # none
    left.fill(16)
    prog.until(acs.size(left[2], 20000), (8,), left[2], x)
    assert left.get().tolist() == [16, 16, 0]
    assert (x.get() == 1 + (np.arange(20000) < 16)).all()


def test_flag_of_a_kernel_in_flight_waits_for_a_foreign_event(setting: Setting) -> None:
    rt, prog = setting
    flags, y = rt.array([1, 0], "u4"), rt.zeros(4, "u4")
    event = cl.UserEvent(rt.context)
    prog.mark((1,), None, flags[1:], 1, wait_for=[event])
    handle = prog.mark((4,), None, y, 5, when=flags[1])
    assert not handle.done
    event.set_status(cl.command_execution_status.COMPLETE)
    assert (y.get() == 5).all()


def test_writer_of_flag_or_count_is_upstream_and_readers_are_independent(plain: Setting) -> None:
    rt, prog = plain
    flags, y = rt.zeros(3, "u4"), rt.zeros(64, "u4")
    writer = prog.mark((1,), None, flags[1], 1)
    other = prog.mark((1,), None, flags[2], 1)
    first = prog.mark((16,), None, y[:16], 1, when=flags[1])
    second = prog.mark((16,), None, y[16:32], 1, when=flags[1])
    third = prog.mark(acs.size(flags[1], 16), None, y[32:48], 1)
    later = flags.fill(0)
    for launch in (first, second, third):
        assert [meeting.kind for meeting in rt.explain(writer, launch).meetings] == ["RAW"]
        assert [meeting.kind for meeting in rt.explain(launch, later).meetings] == ["WAR"]
        assert not rt.explain(other, launch).ordered
    assert not rt.explain(first, second).ordered
    assert not rt.explain(first, third).ordered
    assert y.get().tolist() == [1] * 33 + [0] * 31


def test_poison_does_not_vanish_by_a_launch_that_may_be_skipped(setting: Setting) -> None:
    rt, prog = setting
    flags, y = rt.array([0, 1], "u4"), rt.zeros((4, 8), "u4")

    def fails(*arrays: Any) -> None:
        raise ArithmeticError

    rt.call(fails, writes=[y])
    prog.mark((8,), None, y[0], 1, reads=[], writes=y[0])  # a full overwrite heals
    prog.mark((8,), None, y[1], 1, reads=[], writes=y[1], when=flags[0])
    prog.mark((8,), None, y[2], 1, reads=[], writes=y[2], when=flags[1])
    prog.mark(acs.size(flags[1], 8), None, y[3], 1, reads=[], writes=y[3])
    assert (y[0].get() == 1).all()
    for row in (y[1], y[2], y[3]):
        with pytest.raises(acs.PoisonedError):
            row.get()
    y.fill(0)
    rt.call(fails, writes=[flags])
    handle = prog.mark((8,), None, y[0], 1, when=flags[1])
    with pytest.raises(acs.PoisonedError):
        handle.wait()
    with pytest.raises(acs.PoisonedError):
        y[0].get()
    assert not y[1].get().any()


# ---- size ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("local", [None, 4])
def test_every_count_up_to_the_bound_runs_as_many_and_tells_the_kernel(
    setting: Setting, local: int | None
) -> None:
    rt, prog = setting
    upto = 20
    counts = rt.array(np.arange(upto + 1), "u4")
    y = rt.zeros((upto + 1, 32), "u4")
    local_size = None if local is None else (local,)
    for count in range(0, upto + 1, local or 1):
        prog.ask(acs.size(counts[count], upto), local_size, y[count])
    got = y.get()
    for count in range(0, upto + 1, local or 1):
        assert (got[count, :count] % 1000 == count).all()
        assert not got[count, count:].any()
        if local:
            assert (got[count, :count] // 1000 == count // local).all()


def test_size_may_be_the_first_of_several_and_comes_with_an_offset(setting: Setting) -> None:
    rt, prog = setting
    count = rt.array([5], "i4")
    y, z = rt.zeros((4, 8), "u4"), rt.zeros(16, "u4")
    prog.grid((acs.size(count, 8), 3), None, y, 8)
    prog.mark((acs.size(count, 8),), None, z, 7, offset=(100,))
    want = np.zeros((4, 8), "u4")
    want[:3, :5] = 5 + 300
    assert (y.get() == want).all()
    assert z.get().tolist() == [7] * 5 + [0] * 11


def test_only_whole_groups_leave_a_kernel_with_barriers(setting: Setting) -> None:
    rt, prog = setting
    x, shared = rt.array(np.arange(64), "i4"), cl.LocalMemory(4)
    counts, flags = rt.array([0, 8, 40, 64], "u4"), rt.array([1, 0], "u4")
    y = rt.zeros((5, 8), "i4")
    for row in range(4):
        prog.sums(acs.size(counts[row], 64), (8,), x, y[row], shared, when=flags[0])
    prog.sums(acs.size(counts[3], 64), (8,), x, y[4], shared, when=flags[1])
    sums = np.arange(64).reshape(8, 8).sum(1)
    want = [np.where(np.arange(8) < count // 8, sums, 0) for count in (0, 8, 40, 64, 0)]
    assert np.array_equal(y.get(), np.array(want))
    wrong = r"^launch \d+ of kernel 'sums': the kernel calls barrier.*local size"
    with pytest.raises(acs.UsageError, match=wrong):
        prog.sums(acs.size(counts[1], 64), None, x, y[0], shared)


def test_a_replay_names_its_own_launch_where_a_kernel_has_no_variant(device: cl.Device) -> None:
    """The variant is made long after the call, where a lane gets the launch of a scheduler."""
    with acs.Runtime(device, backend="device") as rt:
        prog = rt.build(SOURCE)
        x, y, count = rt.array(np.arange(64), "i4"), rt.zeros(8, "i4"), rt.array([8], "u4")
        with rt.record() as graph:
            prog.sums(acs.size(count, 64), None, x, y, cl.LocalMemory(4))
        own = rt.zeros(4, "u4").fill(1).number + 1
        wrong = rf"^launch {own} of kernel 'sums \(1 in its graph\)': the kernel calls barrier"
        with pytest.raises(acs.UsageError, match=wrong):
            graph.replay()
        assert not y.get().any()


def test_count_is_taken_from_the_kernel_before(setting: Setting) -> None:
    rt, _ = setting
    x = np.random.default_rng(3).integers(0, 100, 500)
    data, found, count = rt.array(x, "i4"), rt.zeros(500, "i4"), rt.zeros(1, "u4")
    more = rt.build("""
        kernel void find(global const int *x, global uint *count, global int *found)
        { int i = get_global_id(0); if (x[i] > 60) found[atomic_inc(count)] = i; }
        kernel void clear(global int *x, global const int *found)
        { x[found[get_global_id(0)]] = 0; }""")
    more.find((500,), None, data, count, found)
    more.clear(acs.size(count, upto=500), None, data, found)
    assert (data.get() == np.where(x > 60, 0, x)).all()


@pytest.mark.parametrize(("dtype", "count", "local", "expected"), WRONG_COUNTS)
def test_wrong_count_is_an_error_that_names_the_launch_and_poisons_what_follows(
    setting: Setting, dtype: str, count: int, local: tuple[int, ...] | None, expected: str
) -> None:
    rt, prog = setting
    number = rt.array([count], dtype)
    right = rt.array([8], dtype)
    y, z, other = rt.zeros(64, "u4"), rt.zeros(64, "u4"), rt.zeros(64, "u4")
    prog.mark(acs.size(right, 32), local, other, 1)
    wrong = prog.mark(acs.size(number, 32), local, y, 1)
    z.copy_from(y)
    prog.mark(acs.size(right, 32), local, other[32:], 2)
    want = [1] * 8 + [0] * 24 + [2] * 8 + [0] * 24
    assert other.get().tolist() == want
    with pytest.raises(acs.PoisonedError) as caught:
        z.get()
    assert isinstance(caught.value.__cause__, acs.DeviceError)
    assert f"launch {wrong.number} of kernel 'mark'" in str(caught.value)
    assert expected in str(caught.value)
    with pytest.raises(acs.PoisonedError, match=r"poisoned|failed"):
        wrong.wait()
    z.fill(0)
    y.fill(0)
    assert not y.get().any()
    prog.mark(acs.size(right, 32), local, y, 3)
    assert y.get().tolist() == [3] * 8 + [0] * 56


def test_a_get_of_what_a_wrong_count_did_not_write_is_an_error(setting: Setting) -> None:
    rt, prog = setting
    y, numbers = rt.zeros(64, "u4"), rt.array([8, 33], "u4")
    for _ in range(3):  # the quick ways to launch and to read have been taken
        prog.mark(acs.size(numbers[0], 32), None, y, 1)
        assert y.get().tolist() == [1] * 8 + [0] * 56
    prog.mark(acs.size(numbers[1], 32), None, y, 2)
    with pytest.raises(acs.PoisonedError, match="is 33, expected 0 to 32"):
        y.get()
    y.fill(0)
    assert not y.get().any()


def test_what_follows_a_wrong_count_is_poisoned_however_it_was_launched(setting: Setting) -> None:
    rt, prog = setting
    x, y, numbers = rt.zeros(64, "f4"), rt.zeros(64, "f4"), rt.array([8, 33], "u4")

    def both(count: acs.Array) -> acs.Handle:
        prog.mark(acs.size(count, 32), None, x.view("u4"), 1)
        return prog.add((64,), None, x, y, 1)

    for _ in range(5):  # the quick ways have been taken
        both(numbers[0]).wait()
    with rt.record() as graph:
        prog.mark(acs.size(numbers[0], 32), None, x.view("u4"), 1)
    for _ in range(3):
        handle = both(numbers[1])
        for wait in (y.get, handle.wait):
            with pytest.raises(acs.PoisonedError, match="is 33, expected 0 to 32"):
                wait()
        x.fill(0)
        y.fill(0)
        graph.replay()
        prog.add((64,), None, x, y, 1)
        assert (y[9:].get() == 1).all()
    numbers[0].fill(40)
    graph.replay()
    prog.add((64,), None, x, y, 1)
    with pytest.raises(acs.PoisonedError, match="40"):
        y.get()
    x.fill(0)
    y.fill(0)
    rt.finish()
    assert is_at_rest(rt)


def test_wrong_count_nobody_asked_about_surfaces_at_the_end(device: cl.Device) -> None:
    rt = acs.Runtime(device)
    rt.build(SOURCE).mark(acs.size(rt.array([9], "u4"), 4), None, rt.zeros(16, "u4"), 1)
    with pytest.raises(acs.PoisonedError, match="expected 0 to 4"):
        rt.close()


def test_wrong_count_of_a_skipped_launch_does_not_matter(setting: Setting) -> None:
    rt, prog = setting
    numbers, y = rt.array([0, 99], "u4"), rt.zeros(8, "u4")
    prog.mark(acs.size(numbers[1], 4), None, y, 1, when=numbers[0])
    assert not y.get().any()
    rt.finish()


def test_declarations_see_the_bound(plain: Setting) -> None:
    rt, prog = plain
    count, y = rt.array([3], "u4"), rt.zeros(64, "u4")
    prog.mark.access(y="w[0:gsize0]")
    handle = prog.mark(acs.size(count, 16), None, y, 1)
    assert [(span.start, span.nbytes) for span in handle.access.writes] == [(0, 64)]
    assert handle.access.overwrites == ()
    sizes = []

    def touched(global_size: Any, local_size: Any, y: acs.Array, value: int) -> Any:
        sizes.append(global_size)
        return [], [y[:16]]

    prog.mark.access(touched)
    prog.mark((acs.size(count, 16),), None, y, 1)
    assert sizes == [(16,)]
    assert y.get().tolist() == [1] * 3 + [0] * 61


# ---- for backends --------------------------------------------------------------------------------


def test_command_says_what_a_backend_needs_to_decide_itself(plain: Setting) -> None:
    rt, prog = plain
    flags, y = rt.array([0, 1, 24], "u4"), rt.zeros(64, "u4")
    seen: list[Any] = []
    submit = rt.engine.backend.submit

    def spy(launch: Any) -> None:
        seen.append(launch.command)
        submit(launch)

    rt.engine.backend.submit = spy  # type: ignore[method-assign]
    prog.mark((acs.size(flags[2], 30),), (8,), y, 1, when=flags[1])
    command = seen[-1]
    assert isinstance(command, DecidedCommand)
    assert command.plain.kernel is prog.mark.native
    assert (command.plain.global_size, command.plain.local_size) == ((30,), (8,))
    when, count, upto, group = command.decision
    assert (when.span, count.span) == (span_of(flags[1]), span_of(flags[2]))
    assert (upto, group) == (30, 8)
    assert command.guarded.global_size == (32,)
    assert y.get().tolist() == [1] * 24 + [0] * 40


# ---- what is wrong -------------------------------------------------------------------------------

Bad = Callable[[acs.Program, acs.Array, acs.Array], object]

BAD_CALLS: dict[str, tuple[Bad, str]] = {
    "a Python truth value": (lambda p, y, f: p.mark((8,), None, y, 1, when=True), "bool True"),
    "a NumPy array": (lambda p, y, f: p.mark((8,), None, y, 1, when=np.ones(1, "u4")), "ndarray"),
    "several flags": (lambda p, y, f: p.mark((8,), None, y, 1, when=f), r"\(8,\) uint32.*one"),
    "no flag": (lambda p, y, f: p.mark((8,), None, y, 1, when=f[:0]), r"\(0,\)"),
    "a float": (lambda p, y, f: p.mark((8,), None, y, 1, when=f[0].view("f4")), "float32"),
    "a byte": (lambda p, y, f: p.mark((8,), None, y, 1, when=f.view("u1")[0]), "uint8"),
    "a word between words": (
        lambda p, y, f: p.mark((8,), None, y, 1, when=f.view("u1")[1:5].view("u4")),
        "byte 1, between words",
    ),
    "a count of several": (lambda p, y, f: p.mark(acs.size(f, 8), None, y, 1), "count of acs.size"),
    "no bound": (lambda p, y, f: acs.size(f[0], 0), "upto=int 0"),
    "a bound of text": (lambda p, y, f: acs.size(f[0], "8"), "upto=str '8'"),  # type: ignore[arg-type]
    "a second size": (lambda p, y, f: p.mark((8, acs.size(f[0], 8)), None, y, 1), r"launch \d+"),
}


@pytest.mark.parametrize("what", BAD_CALLS)
def test_bad_decision_is_a_usage_error_and_loses_nothing(what: str, plain: Setting) -> None:
    rt, prog = plain
    y, flags = rt.zeros(8, "u4"), rt.array(np.ones(8, "u4"))
    call, message = BAD_CALLS[what]
    with pytest.raises(acs.UsageError, match=message):
        call(prog, y, flags)
    prog.mark((8,), None, y, 4, when=flags[0])
    assert (y.get() == 4).all()


def test_flag_of_another_runtime_or_freed_is_refused(plain: Setting, device: cl.Device) -> None:
    rt, prog = plain
    y, gone = rt.zeros(8, "u4"), rt.zeros(1, "u4")
    gone.free()
    with acs.Runtime(device) as other:
        theirs = other.zeros(1, "u4")
        for call in (
            lambda: prog.mark((8,), None, y, 1, when=theirs),
            lambda: prog.mark(acs.size(theirs, 8), None, y, 1),
        ):
            with pytest.raises(acs.UsageError, match=r"kernel 'mark', .*another runtime"):
                call()
    with pytest.raises(acs.UsageError, match="given back"):
        prog.mark((8,), None, y, 1, when=gone)


def runtime_of(context: cl.Context, memory: str) -> acs.Runtime:
    """A runtime of a program's own context."""
    try:
        return acs.Runtime(context=context, memory=memory)
    except acs.UsageError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_flags_and_kernels_of_pyopencl_are_taken(device: cl.Device, memory: str) -> None:
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    with runtime_of(context, memory) as rt:
        # drivers forget the source of what came from a cache, and of what is gone
        program = cl.Program(context, SOURCE).build(cache_dir=False)
        kernel = program.mark
        flags = pyopencl.array.to_device(queue, np.array([0, 1, 6], np.uint32))
        single = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=np.array([1], np.int32))
        queue.finish()
        y = rt.zeros(32, "u4")
        rt.launch(kernel, (8,), None, y[:8], np.uint32(1), when=flags[0])
        rt.launch(kernel, (8,), None, y[8:16], np.uint32(2), when=flags[1])
        rt.launch(kernel, (8,), None, y[16:24], np.uint32(3), when=single)
        rt.launch(kernel, acs.size(flags[2], 8), None, y[24:], np.uint32(4))
        assert y.get().tolist() == [0] * 8 + [2] * 8 + [3] * 8 + [4] * 6 + [0] * 2


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_a_kernel_without_a_source_has_no_variant(device: cl.Device, memory: str) -> None:
    context = cl.Context([device])
    with runtime_of(context, memory) as rt:
        built = cl.Program(context, SOURCE).build(cache_dir=False)
        binary = cl.Program(context, [device], [built.binaries[0]]).build()
        if binary.get_info(cl.program_info.SOURCE):
            pytest.skip("the driver keeps sources with binaries")
        y = rt.zeros(8, "u4")
        with pytest.raises(acs.UsageError, match="does not give its source"):
            rt.launch(binary.mark, (8,), None, y, np.uint32(1), when=rt.array([1], "u4"))
        assert not y.get().any()


OWN = """
kernel void count(global uint *y, uint rounds)
{ uint x = rounds; for (uint i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u;
  *y += x == 1 ? 2 : 1; }
"""


@pytest.mark.parametrize("kind", ["buffer", "svm"])
@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_a_kernel_may_write_foreign_memory_that_decides(
    device: cl.Device, memory: str, kind: str
) -> None:
    """It is copied first, also where no command copies it into an array."""
    if not has_coarse_grain_buffer_svm(device) and "svm" in (memory, kind):
        pytest.skip("no shared virtual memory")
    context = cl.Context([device])
    start = np.full(1, 0xFFFFFFFE, np.uint32)
    with acs.Runtime(context=context, memory=memory) as rt:
        queue, kernel = cl.CommandQueue(context), rt.build(OWN).count
        flags = cl.mem_flags.READ_WRITE
        cell: Any
        if kind == "buffer":
            cell = cl.Buffer(context, flags | cl.mem_flags.COPY_HOST_PTR, hostbuf=start)
        else:
            cell = cl.SVMAllocation(context, 4, 4, flags)
            cl.enqueue_copy(queue, cell, start)
        for _ in range(5):
            rt.launch(kernel, (1,), None, cell, 300_000, when=cell)
        rt.launch(kernel, acs.size(cell, 4), None, cell, 300_000)
        rt.finish()
        found = np.empty(1, np.uint32)
        cl.enqueue_copy(queue, found, cell)
        assert found[0] == 0


def test_what_cannot_be_rewritten_says_why(plain: Setting) -> None:
    rt, _ = plain
    y, flag = rt.zeros(8, "u4"), rt.array([1], "u4")
    odd = rt.build(
        "kernel void mark(global uint *y) { __typeof__(1u) one = 1; y[get_global_id(0)] = one; }"
    )
    odd.mark((8,), None, y)
    with pytest.raises(acs.UsageError, match=r"launch \d+ of kernel 'mark'.*cannot be rewritten"):
        odd.mark((8,), None, y, when=flag)
    assert (y.get() == 1).all()


HELPERS = """
size_t all_of(void) { return get_global_size( 0 ) * get_global_size(1); }
static inline size_t nested(size_t a, size_t b) { return a * 1000 + b; }
kernel void inner(global ulong *y) { y[get_global_id(0)] = nested(all_of(), get_num_groups(0)); }
kernel void outer(global ulong *y) { inner(y); }
kernel void empty() { }
kernel void nothing(void) { }
"""


def test_helpers_and_kernels_that_ask_get_the_count(plain: Setting) -> None:
    rt, _ = plain
    try:
        cl.Program(rt.context, HELPERS).build()
    except cl.Error:  # NVIDIA's, which builds each kernel alone
        pytest.skip("the driver does not build these kernels together")
    prog, y, count = rt.build(HELPERS), rt.zeros(16, "u8"), rt.array([6, 1], "u4")
    prog.outer(acs.size(count[0], 16), (2,), y)
    assert y.get().tolist() == [6003] * 6 + [0] * 10
    prog.empty(acs.size(count[0], 16), None, when=count[1])
    prog.nothing(acs.size(count[0], 16), None)
    rt.finish()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("", "no kernel k"),
        ("kernel void k(global int *a) { oops }", "undeclared|expected"),
        ("__attribute__((overloadable)) int f(int a) { return get_global_size(0); }\n"
         "kernel void k(global int *a) { a[0] = f(1); }", "f asks for the global size"),
        ("__attribute__((overloadable)) int f(int a) { return get_global_size(0); }\n"
         "__attribute__((overloadable)) int f(float a) { return 5; }\n"
         "kernel void k(global int *a) { a[0] = f(1) + f(1.0f); }", "f asks for the global size"),
    ],
)  # fmt: skip
def test_guards_refuse_what_they_cannot_read(source: str, reason: str) -> None:
    with pytest.raises(CannotParse, match=reason):
        with_guards(source, [], None, "k", True, True)


def test_a_variant_is_read_from_disk_by_another_process(own_cache: Path) -> None:
    source = "kernel void k(global int *a) { a[get_global_id(0)] = get_global_size(0); }"
    made = with_guards(source, [], None, "k", True, True)
    records = {file: cache.load(file.stem) for file in own_cache.rglob("*.json")}
    ((file, record),) = [
        one for one in records.items() if (one[1] or {}).get("source") == made.source
    ]
    cache.store(file.stem, {**record, "collective": {"k": "another"}})
    assert with_guards(source, [], None, "k", True, True).collective == "another"
    file.write_text(file.read_text()[:-9])
    assert with_guards(source, [], None, "k", True, True) == made


def test_guards_tell_of_calls_that_a_whole_group_has_to_reach() -> None:
    source = """
    void all_together(void) { barrier(CLK_LOCAL_MEM_FENCE); }
    kernel void k(global int *a) { all_together(); a[0] = 1; }
    kernel void l(global int *a) { a[0] = 1; }"""
    assert with_guards(source, [], None, "k", True, False).collective == "barrier"
    assert with_guards(source, [], None, "l", False, True).collective == ""


def test_every_function_of_an_overloaded_name_is_looked_at() -> None:
    source = """
    __attribute__((overloadable)) size_t f(int i)
    { barrier(CLK_LOCAL_MEM_FENCE); return get_global_size(0); }
    __attribute__((overloadable)) size_t f(float i) { return i; }
    kernel void k(global int *a) { a[0] = f(1) + f(1.0f); }"""
    assert with_guards(source, [], None, "k", True, False).collective == "barrier"
    assert of_parts(source, [], None, "k").reason == "it calls get_global_size"


KEEPS = """
#define TWICE(x) (2 * (x))
typedef struct { int x; } one;
constant int table[2] = {3, 4};
int seven(one o) { return o.x + table[1]; }
kernel void other(global int *a) { a[0] = 77777; }
__attribute__((reqd_work_group_size(1, 1, 1)))
kernel void k(global int *a) { one o = {table[0]}; a[get_global_id(0)] += TWICE(seven(o)); }
"""
"""A kernel that needs a macro, a type, a constant and a function, and one that it does not need."""


@pytest.mark.parametrize("counted", [False, True])
def test_a_variant_is_built_without_the_kernels_that_it_does_not_need(counted: bool) -> None:
    made = with_guards(KEEPS, [], None, "k", True, counted)
    assert made.source.count("kernel void") == 1
    assert with_byte_offsets(KEEPS, [], None, "k", (0,))[0].count("kernel void") == 1
    named = KEEPS + "kernel void l(global int *a) { k(a); }"
    assert with_guards(named, [], None, "k", True, counted).source.count("kernel void") == 2


@pytest.mark.parametrize("together", [False, True])
def test_a_variant_has_what_its_kernel_uses_of_the_program(
    device: cl.Device, together: bool
) -> None:
    made = with_guards(KEEPS, [], device, "k", True, False, together)
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    kernel = cl.Kernel(cl.Program(context, made.source).build(), made.kernel)
    flags = cl.mem_flags.COPY_HOST_PTR
    host = np.array([1, 2, 3], np.int32)
    x = cl.Buffer(context, flags, hostbuf=host)
    when = cl.Buffer(context, flags, hostbuf=np.array([0, 1], np.uint32))
    for at in range(2):
        kernel(queue, (3,), (1,), x, when, np.uint64(4 * at))
        cl.enqueue_copy(queue, found := np.empty_like(host), x)
        assert found.tolist() == [one + 14 * at for one in host]


def test_kernels_with_a_condition_are_in_one_source() -> None:
    source = """
    kernel void k(global int *a) { a[0] = 1; }
    __attribute__((reqd_work_group_size(1, 1, 1))) kernel void called(global int *a) { a[0] = 2; }
    kernel void l(global int *a) { called(a); }"""
    first, called, last = (
        with_guards(source, [], None, name, True, False, True) for name in ("k", "called", "l")
    )
    assert first.source == last.source
    assert [one.kernel for one in (first, last)] == ["k__acs_when", "l__acs_when"]
    assert "called__acs_when" not in first.source
    assert "called__acs_when" in called.source
    many = "".join(
        f"kernel void k{i}(global int *a) {{ a[0] = {i}; }}\n" for i in range(MOST_TOGETHER + 1)
    )
    assert "k1__acs_when" not in with_guards(many, [], None, "k0", True, False, True).source


def test_only_kernels_that_need_a_variant_are_built_where_a_build_makes_machine_code(
    device: cl.Device,
) -> None:
    with acs.Runtime(context=cl.Context([device]), backend="serial") as rt:
        program = rt.build("""
        kernel void k(global int *a) { a[get_global_id(0)] += 1; }
        kernel void l(global int *a) { a[get_global_id(0)] += 2; }
        kernel void other(global int *a) { a[get_global_id(0)] += 3; }""")
        x, flags = rt.zeros(4, "i4"), rt.array([0, 1], "u4")
        for kernel in (program.k, program.l):
            for at in range(2):
                kernel((4,), None, x, when=flags[at : at + 1])
        assert x.get().tolist() == [3] * 4
        assert len(rt.engine.guarded) == (1 if compiles_late(device) else 2)
        sources = [source for source, _ in rt.engine.guarded]
        assert compiles_late(device) or not any("other" in source for source in sources)


# ---- random programs -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_random_programs_of_decisions_give_what_numpy_gives(setting: Setting, seed: int) -> None:
    """Flags and counts are computed by launches, all over one array; nothing is read in between."""
    print("seed", seed)
    rt, prog = setting
    choose = random.Random(seed)
    host = np.random.default_rng(seed).integers(0, 3, 64).astype("u4")
    x = rt.array(host)
    for _ in range(150):
        what = choose.randrange(4)
        at, value = choose.randrange(48), choose.randrange(40)
        flag, start = choose.randrange(64), choose.randrange(48)
        when = None if choose.random() < 0.3 else x[flag]
        runs = when is None or host[flag] != 0
        if what == 0:
            bit = value % 3
            if start != at:
                prog.gate((1,), None, x[start], x[at], bit, when=when)
                if runs:
                    host[at] = host[start] >> bit & 1
        elif what == 1:
            prog.mark((16,), None, x[at : at + 16], value % 3, when=when)
            if runs:
                host[at : at + 16] = value % 3
        elif what == 2 and host[start] <= 16:
            prog.mark(acs.size(x[start], 16), None, x[at : at + 16], value, when=when)
            if runs:
                host[at : at + int(host[start])] = value
        elif host[start] <= 16 and host[start] % 4 == 0:
            prog.mark(acs.size(x[start], 16), (4,), x[at:], value % 9, when=when)
            if runs:
                host[at : at + int(host[start])] = value % 9
    assert x.get().tolist() == host.tolist()
