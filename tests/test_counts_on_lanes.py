"""Launches with `acs.size` that the core makes for lanes: values, wrong counts, what follows them.

The oracle is NumPy, which decides on the host, in program order. Where the host does not see the
device's memory without a transfer, Python makes these launches, with the same results.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Iterator

import inside
import numpy as np
import pyopencl as cl
import pytest
from wrong_counts import WRONG_COUNTS

import acs_cl as acs
from acs_cl import core, testing
from acs_cl.devices.driver import functions
from acs_cl.launch.decision import has_words
from acs_cl.scheduler.policy import COUNTED, COUNTED_REST, Choice

SOURCE = """
kernel void mark(global uint *y, uint value) { y[get_global_id(0)] = value; }
kernel void slow(global uint *y, uint n) { volatile uint i = 0; while (i < n) i++; *y = i; }
kernel void sizes(global uint *y) { y[get_global_id(0)] = get_global_size(0); }
kernel void moved(global uint *y)
{ y[get_global_id(0) - get_global_offset(0)] = get_global_size(0); }
kernel void copy(global const uint *x, global uint *y)
{ size_t i = get_global_id(0); y[i] = x[i]; }
kernel void table(global uint *y, uint pitch)
{ y[get_global_id(1) * pitch + get_global_id(0)] = get_global_size(0) + 100 * get_global_size(1); }
"""
MOST = 32


@pytest.fixture(params=["serial", "out_of_order", "lanes"])
def backend(request: pytest.FixtureRequest, device: cl.Device) -> str:
    mode = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    if request.param == "out_of_order" and not device.queue_properties & mode:
        pytest.skip("the device has no out-of-order queues")
    name: str = request.param
    return name


@pytest.fixture(params=["svm", "buffers"])
def rt(request: pytest.FixtureRequest, device: cl.Device, backend: str) -> Iterator[acs.Runtime]:
    try:
        runtime = acs.Runtime(device, backend=backend, memory=request.param)
    except acs.UsageError as error:
        pytest.skip(str(error))
    with runtime:
        yield runtime


def sees_words(rt: acs.Runtime) -> bool:
    return has_words(rt.device)


def test_the_core_makes_them_and_what_follows(rt: acs.Runtime) -> None:
    prog, steps = rt.build(SOURCE), 40
    counts = rt.array(np.arange(MOST + 1), "u4")
    y, z = rt.zeros((steps, MOST), "u4"), rt.zeros((steps, MOST), "u4")
    cells, rows, others = ([a[i] for i in range(len(a))] for a in (counts, y, z))
    flags = rt.array([0, 1], "i4")
    on = [flags[0], flags[1]]
    for row in (0, 1):  # a view that starts inside its buffer takes another kernel
        prog.sizes(acs.size(cells[4], MOST), None, rows[row])
        prog.sizes((acs.size(cells[4], MOST),), (4,), rows[row])
        prog.sizes(acs.size(cells[4], MOST), None, rows[row], when=on[1])
        prog.moved(acs.size(cells[4], MOST), None, rows[row], offset=(7,))
        prog.copy((MOST,), None, rows[row], others[row])
    y.fill(0)
    rt.finish()
    assert testing.is_at_rest(rt)
    before, number = testing.made_by_core(rt), rt.engine.number
    want = np.zeros((steps, MOST), "u4")
    for step in range(steps):
        count = step % 9 * 4 if step % 2 else step % (MOST + 1)
        size = acs.size(cells[count], MOST)
        if step % 3 == 2:
            prog.sizes(size, None, rows[step], when=on[step % 4 == 1])
            count = count if step % 4 == 1 else 0
        elif step % 2:
            prog.sizes((size,), (4,), rows[step])
        elif step % 4:
            prog.moved(size, None, rows[step], offset=(7,))
        else:
            prog.sizes(size, None, rows[step])
        prog.copy((MOST,), None, rows[step], others[step])
        want[step, :count] = count
    assert rt.engine.number - number == 2 * steps  # no copy, and no read behind it
    if sees_words(rt):
        assert testing.made_by_core(rt) - before == 2 * steps
    assert np.array_equal(y.get(), want)
    assert np.array_equal(z.get(), want)


def test_a_size_of_several_and_views_inside_arrays(rt: acs.Runtime) -> None:
    prog = rt.build(SOURCE)
    numbers, y = rt.array([9, 5, 8], "i4"), rt.zeros(100, "u4")
    for _ in range(3):
        prog.table((acs.size(numbers[1:2], 8), 3), None, y[10:34], 8)
        prog.table((acs.size(numbers[2:], 8), 3), (4, 1), y[50:74], 8)
    want = np.zeros(100, "u4")
    want[10:34].reshape(3, 8)[:, :5] = 305
    want[50:74] = 308
    assert y.get().tolist() == want.tolist()


@pytest.mark.parametrize(("dtype", "count", "local", "expected"), WRONG_COUNTS)
def test_a_wrong_count_names_its_launch_and_poisons_what_the_core_launched_behind_it(
    rt: acs.Runtime, dtype: str, count: int, local: tuple[int, ...] | None, expected: str
) -> None:
    prog = rt.build(SOURCE)
    numbers = rt.array([8, count], dtype)
    x, y, z, other = (rt.zeros(64, "u4") for _ in range(4))
    for _ in range(3):
        prog.mark(acs.size(numbers[0], MOST), local, x, 1)
        prog.copy((64,), None, x, y)
        prog.copy((64,), None, y, z)
    assert z.get().tolist() == [1] * 8 + [0] * 56
    before = testing.made_by_core(rt)
    for turn in range(2, 5):
        wrong = prog.mark(acs.size(numbers[1], MOST), local, x, turn)
        follows = [prog.copy((64,), None, x, y), prog.copy((64,), None, y, z)]
        prog.mark(acs.size(numbers[0], MOST), local, other, turn)
        if sees_words(rt) and turn == 2:
            assert testing.made_by_core(rt) - before == 4
        for wait in (*(one.wait for one in (*follows, wrong)), x.get, y.get, z.get):
            with pytest.raises(acs.PoisonedError) as caught:
                wait()
            assert f"launch {wrong.number} of kernel 'mark' did not run" in str(caught.value)
            assert expected in str(caught.value)
            assert isinstance(caught.value.__cause__, acs.DeviceError)
        assert other.get().tolist() == [turn] * 8 + [0] * 56
        for array in (x, y, z):
            array.fill(0)
        prog.mark(acs.size(numbers[0], MOST), local, x, 1)
        prog.copy((64,), None, x, y)
        prog.copy((64,), None, y, z)
        assert z.get().tolist() == [1] * 8 + [0] * 56
    rt.finish()
    assert testing.is_at_rest(rt)


def test_a_wrong_count_nobody_asked_about_surfaces(rt: acs.Runtime) -> None:
    prog = rt.build(SOURCE)
    numbers, y = rt.array([4, 9], "u4"), rt.zeros(16, "u4")
    for _ in range(3):
        prog.mark(acs.size(numbers[0], 4), None, y, 1)
    prog.mark(acs.size(numbers[1], 4), None, y, 1)
    with pytest.raises(acs.PoisonedError, match="is 9, expected 0 to 4"):
        rt.finish()


def test_more_in_flight_than_there_are_words(rt: acs.Runtime) -> None:
    prog, many = rt.build(SOURCE), 300
    number, y = rt.array([3], "u4"), rt.zeros((many, 8), "u4")
    rows = [y[i] for i in range(many)]
    for turn in (1, 2):
        event = cl.UserEvent(rt.context)
        prog.mark((1,), None, number, 3 + turn, wait_for=[event])  # all others are held
        for row in rows:
            prog.mark(acs.size(number, 8), None, row, turn)
        event.set_status(cl.command_execution_status.COMPLETE)
        want = [turn] * (3 + turn) + [0] * (5 - turn)
        assert (y.get() == want).all()


def test_a_held_one_has_a_wrong_count_or_never_runs(rt: acs.Runtime) -> None:
    prog = rt.build(SOURCE)
    number, y = rt.array([3], "u4"), rt.zeros(8, "u4")
    for _ in range(3):
        prog.mark(acs.size(number, 8), None, y, 1)
    rt.finish()
    for status in (cl.command_execution_status.COMPLETE, -1) * 3:
        event = cl.UserEvent(rt.context)
        prog.mark((1,), None, number, 70, wait_for=[event])
        wrong = prog.mark(acs.size(number, 8), None, y, 1)
        event.set_status(status)
        why = "is 70, expected" if status == 0 else "foreign"
        with pytest.raises(acs.PoisonedError, match=why):
            wrong.wait()
        for _ in range(100):  # words come back
            number.fill(3)
            y.fill(0)
            prog.mark(acs.size(number, 8), None, y, 2)
        assert y.get().tolist() == [2] * 3 + [0] * 5


@pytest.mark.parametrize("is_counted", [True, False])
def test_a_wait_tells_of_a_launch_that_was_held_behind_later_ones(
    rt: acs.Runtime, is_counted: bool
) -> None:
    prog = rt.build(SOURCE)
    number, y, z = rt.array([70], "u4"), rt.zeros(8, "u4"), rt.zeros(1, "u4")
    for _ in range(3):
        event = cl.UserEvent(rt.context)
        size = acs.size(number, 8) if is_counted else (8,)
        held = prog.mark(size, None, y, 1, wait_for=[event])
        prog.slow((1,), None, z, 10_000_000)  # in flight when the other one has ended
        event.set_status(cl.command_execution_status.COMPLETE)
        if is_counted:
            with pytest.raises(acs.PoisonedError, match="is 70, expected"):
                held.wait()
        else:
            held.wait()
        assert held.number not in rt.engine.table
        y.fill(0)


def test_a_kernel_that_may_write_its_count_is_left_to_python(rt: acs.Runtime) -> None:
    prog, x = rt.build(SOURCE), rt.array([2, 0, 0, 0], "u4")
    for turn in (1, 2, 3):
        x[:1].fill(2)
        prog.mark(acs.size(x[:1], 4), None, x, turn)
        assert x.get().tolist() == [turn, turn, 0, 0]


def test_one_that_the_driver_refuses_goes_on_in_python(rt: acs.Runtime) -> None:
    prog = rt.build(SOURCE)
    numbers, y = rt.array([2, 9], "u4"), rt.zeros(4, "u4")
    addresses, refused = functions(), list[int]()
    for _ in range(3):
        prog.mark(acs.size(numbers[0], 4), None, y, 1)
    rt.finish()

    def refuse(*_: object) -> int:
        refused.append(len(refused))
        return -5  # CL_OUT_OF_RESOURCES

    enqueue = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 9)(refuse)
    addresses[2] = ctypes.cast(enqueue, ctypes.c_void_p).value or 0
    core.native.open_driver(addresses)
    try:
        prog.mark(acs.size(numbers[0], 4), None, y, 5)
        wrong = prog.mark(acs.size(numbers[1], 4), None, y, 6)
    finally:
        core.native.open_driver(functions())
    assert bool(refused) == sees_words(rt)
    with pytest.raises(acs.PoisonedError, match=r"launch \d+ of kernel 'mark'.* is 9, expected"):
        wrong.wait()
    y.fill(0)
    prog.mark(acs.size(numbers[0], 4), None, y, 7)
    assert y.get().tolist() == [7, 7, 0, 0]


def test_beside_a_scheduler_lanes_take_them_and_what_is_between(device: cl.Device) -> None:
    """As tasks they would go through Python, and so would all others until their epoch ends."""
    with acs.Runtime(device) as rt:
        if not sees_words(rt) or "scheduler" not in rt.stats() or rt.stats()["backend"] == "device":
            pytest.skip("there are no lanes beside a scheduler, or no words")
        prog, steps = rt.build(SOURCE), 400
        rt.prebuild(prog.mark, prog.copy)
        number, x, y = rt.array([5], "u4"), rt.zeros(MOST, "u4"), rt.zeros(MOST, "u4")
        # Python makes the first one, and all others until that has ended
        prog.mark(acs.size(number, MOST), None, x, 0).wait()
        before = testing.made_by_core(rt)
        for step in range(steps):
            last = prog.mark(acs.size(number, MOST), None, x, step)
            prog.copy((MOST,), None, x, y)
            if not step % 16:  # fewer are in flight than there are words
                rt.finish()
        assert testing.made_by_core(rt) - before > 1.8 * steps
        assert rt.stats()["scheduler"]["tasks"] < steps / 4
        assert COUNTED in str(rt.explain(last))
        assert y.get().tolist() == [steps - 1] * 5 + [0] * (MOST - 5)


def test_launches_near_a_count_go_to_lanes_for_a_while() -> None:
    choice = Choice(on_cpu=True)
    assert choice.on_lanes_until(9, "any") == (0, "")
    choice.counted(10)
    end = 10 + COUNTED_REST
    for number in (11, end - 1):
        assert choice.on_lanes_until(number, "any") == (end, COUNTED)
    assert choice.on_lanes_until(end, "any") == (0, "")


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_poison_exactly_what_follows_wrong_counts(
    rt: acs.Runtime, seed: int
) -> None:
    """The host notes which arrays are poisoned. Some are asked for now and then."""
    print("seed", seed)
    prog, choose = rt.build(SOURCE), random.Random(seed)
    many, width, bad = 12, 16, set[int]()
    counts = rt.array([0, 5, 16, 17], "u4")
    arrays = [rt.zeros(width, "u4") for _ in range(many)]
    host = np.zeros((many, width), "u4")
    with inside.calls_by_python() as long_way:
        for step in range(400):
            at, other, which = choose.randrange(many), choose.randrange(many), choose.randrange(4)
            what = choose.random()
            if what < 0.4:
                if which == 3 and choose.random() < 0.8:
                    continue
                prog.mark(acs.size(counts[which], width), None, arrays[at], step)
                if which == 3:
                    bad.add(at)
                else:
                    host[at, : (0, 5, 16)[which]] = step
            elif what < 0.8 and at != other:
                source, target = arrays[at], arrays[other]
                if which:  # without a declaration a kernel heals nothing
                    prog.copy((width,), None, source, target, reads=source, writes=target)
                else:
                    prog.copy((width,), None, source, target)
                    if other in bad:
                        continue
                host[other] = host[at]
                (bad.add if at in bad else bad.discard)(other)
            elif what < 0.9:
                arrays[at].fill(step)
                host[at] = step
                bad.discard(at)
            elif at in bad:
                with pytest.raises(acs.PoisonedError, match="is 17, expected 0 to 16"):
                    arrays[at].get()
            else:
                assert arrays[at].get().tolist() == host[at].tolist()
    assert len(long_way) < 400
    for at, array in enumerate(arrays):
        if at in bad:
            with pytest.raises(acs.PoisonedError):
                array.get()
        else:
            assert array.get().tolist() == host[at].tolist()
    with pytest.raises(acs.PoisonedError):  # of failures that nobody has seen
        rt.finish()
