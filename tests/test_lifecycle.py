"""Failures, foreign events, threads, closing: what is promised beside the order of bytes."""

from __future__ import annotations

import gc
import mmap
import os
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytest
from fuzz.threads import in_threads

import acs_cl as acs
from acs_cl import testing
from acs_cl.devices import contexts

pytestmark = pytest.mark.rotate("make", 3)

SOURCE = """
kernel void add(global const int *x, global int *y) { int i = get_global_id(0); y[i] += x[i]; }
kernel void put(global int *y, int a) { y[get_global_id(0)] = a; }
kernel void spin(global int *y, int n)
{ int i = get_global_id(0), v = y[i]; for (int k = 0; k < n; ++k) v = v * 5 + 1; y[i] = v; }
kernel void roam(global const int *x, global int *y)
{ global int *z = (global int *)((uintptr_t)y ^ 0); z[0] += x[0]; }
"""


def spin(values: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    """Compute so many turns of `x = 5 * x + 1`, without going through all of them."""
    values, by, more = values.astype("u8"), 1, 0
    each_by, each_more = 5, 1
    while count:
        if count % 2:
            by, more = by * each_by % 2**32, (more * each_by + each_more) % 2**32
        each_by, each_more = each_by**2 % 2**32, each_more * (each_by + 1) % 2**32
        count //= 2
    return (values * np.uint64(by) + np.uint64(more)).astype("u4").view("i4")


def failing(*arrays: Any) -> None:
    raise RuntimeError("no such luck")


def test_failed_host_task_poisons_its_dependants_only(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    a, b, c, d = (rt.zeros(16, "i4") for _ in range(4))
    task = rt.call(failing, writes=[a])
    dependant = program.add((16,), None, a, b)
    independent = program.put((16,), None, c, 7)
    later = program.add((16,), None, b, d)
    for handle in (task, dependant, later):
        with pytest.raises(acs.PoisonedError) as caught:
            handle.wait()
        assert isinstance(caught.value.__cause__, RuntimeError)
        assert "failing" in str(caught.value)
        assert "test_lifecycle" in str(caught.value), "the user's line"
    independent.wait()
    assert (c.get() == 7).all()
    with pytest.raises(acs.PoisonedError):
        d.get()
    rt.finish()


def test_poison_stays_until_overwritten_or_freed(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    x, y = rt.zeros(16, "i4"), rt.zeros(16, "i4")
    rt.call(failing, writes=[x[4:8]])
    with pytest.raises(acs.PoisonedError):
        rt.finish()
    assert (x[8:].get() == 0).all()
    with pytest.raises(acs.PoisonedError):
        x.get()
    x[4:6].fill(1)
    with pytest.raises(acs.PoisonedError):
        program.add((16,), None, x, y).wait()
    x[6:8].set(np.ones(2, "i4"))
    y.fill(0)
    program.add((16,), None, x, y)
    assert y.get().tolist() == [0] * 4 + [1] * 4 + [0] * 8


def test_memory_that_was_freed_before_its_launch_fails_is_not_poisoned(rt: acs.Runtime) -> None:
    free = threading.Event()

    def fails(values: Any) -> None:
        assert free.wait(60)
        raise ValueError(values.shape)

    x, other = rt.zeros(16, "i4"), rt.zeros(16, "i4")
    rt.call(fails, writes=x)
    del x
    rt.zeros(16, "i4")  # by now the memory has come back
    free.set()
    with pytest.raises(acs.PoisonedError):
        rt.finish()
    assert not rt.engine.failures.poison
    assert not rt.engine.table.poisoned
    other.fill(1)
    assert other.get().tolist() == [1] * 16


def test_a_launch_that_may_touch_any_memory_does_not_run_while_any_is_poisoned(
    rt: acs.Runtime,
) -> None:
    program = rt.build(SOURCE)
    assert program.roam.signature.anywhere
    bad, good, flag = rt.zeros(1, "i4"), rt.array([5], "i4"), rt.array([1], "i4")
    for poisoned, given in ((bad, bad), (flag, good), (bad, good)):
        y = rt.zeros(1, "i4")
        rt.call(failing, writes=[poisoned])
        when = flag if poisoned is flag else None
        roams = program.roam((1,), None, given, y, when=when)
        for call in (roams.wait, y.get):
            with pytest.raises(acs.PoisonedError, match="no such luck"):
                call()
        poisoned.fill(1)
        y.fill(2)
        program.roam((1,), None, good, y, when=when).wait()
        assert y.get().tolist() == [7]
    rt.finish()


def test_a_get_behind_a_refused_launch_waits_for_what_that_would_have_waited_for(
    rt: acs.Runtime,
) -> None:
    """The driver has never seen the launch that wrote last, and what it was to wait for still
    runs."""
    if rt.options.issue != "eager" or rt.plan.backend == "emulated":
        pytest.skip("what the driver refuses is told later")
    program = rt.build(SOURCE)
    x, spun = rt.zeros(16, "i4"), spin(np.zeros(16), 300_000)
    rt.finish()
    for turn in range(3):
        x.fill(0)
        program.spin((16,), None, x, 300_000)
        with pytest.raises(acs.UsageError, match="local size"):
            program.put((16,), (5,), x, turn)
        assert (x.get() == spun).all()
        program.put((16,), None, x, turn)
        assert (x.get() == turn).all()


def test_finish_tells_the_first_failure_once(rt: acs.Runtime) -> None:
    rt.call(failing, writes=[rt.zeros(4)])
    with pytest.raises(acs.PoisonedError, match="no such luck"):
        rt.finish()
    rt.finish()


def test_close_tells_what_nobody_was_told_and_may_be_called_twice(device: cl.Device) -> None:
    rt = acs.Runtime(device)
    rt.call(failing, writes=[rt.zeros(4)])
    with pytest.raises(acs.PoisonedError):
        rt.close()
    rt.close()
    with pytest.raises(acs.UsageError, match="closed"):
        rt.zeros(4)


def test_launch_waits_for_a_foreign_event(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    x, y = rt.zeros(16, "i4"), rt.zeros(16, "i4")
    gate = cl.UserEvent(rt.context)
    gated = program.put((16,), None, x, 3, wait_for=[gate])
    free = program.put((16,), None, y, 4)
    behind = program.add((16,), None, x, y)
    if rt.stats()["backend"] != "serial":
        free.wait()
    assert not gated.done
    assert not behind.done
    gate.set_status(cl.command_execution_status.COMPLETE)
    assert (y.get() == 7).all()


@pytest.mark.parametrize("bands", ["off", 2])
def test_events_may_come_from_an_iterator(rt: acs.Runtime, bands: int | str) -> None:
    program, x, task = rt.build(SOURCE), rt.zeros(16, "i4"), rt.zeros(1, "i4")
    gate = cl.UserEvent(rt.context)
    handles = [
        program.put((16,), None, x, 3, wait_for=iter([gate]), bands=bands),
        program.put.launch_many((16,), None, x, [4, 5], wait_for=iter([gate])),
        rt.call(lambda value: value.fill(6), writes=task, wait_for=iter([gate])),
    ]
    assert not any(handle.done for handle in handles)
    gate.set_status(cl.command_execution_status.COMPLETE)
    assert x.get().tolist() == [5] * 16
    assert task.get().tolist() == [6]


def test_failed_foreign_event_poisons_its_dependants_only(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    x, y, z = rt.zeros(16, "i4"), rt.zeros(16, "i4"), rt.zeros(16, "i4")
    gate = cl.UserEvent(rt.context)
    gated = program.put((16,), None, x, 3, wait_for=[gate])
    behind = program.add((16,), None, x, y)
    free = program.put((16,), None, z, 4)
    gate.set_status(-5)
    for handle in (gated, behind):
        with pytest.raises(acs.PoisonedError, match="foreign event"):
            handle.wait()
    free.wait()
    assert (z.get() == 4).all()


@pytest.mark.parametrize("kind", ["buffer", "svm"])
def test_poison_of_foreign_memory_is_not_passed_on_to_what_comes_after(
    device: cl.Device, kind: str
) -> None:
    if kind == "svm" and not device.svm_capabilities:
        pytest.skip("no shared virtual memory")
    with acs.Runtime(device) as rt:
        program = rt.build(SOURCE)

        def memory() -> Any:
            if kind == "buffer":
                return cl.Buffer(rt.context, cl.mem_flags.READ_WRITE, 64)
            return cl.SVMAllocation(rt.context, 64, 0, cl.svm_mem_flags.READ_WRITE)

        y = rt.zeros(16, "i4")
        for _ in range(8):
            old = memory()
            gate = cl.UserEvent(rt.context)
            gated = program.put((16,), None, old, 3, wait_for=[gate])
            gate.set_status(-5)
            with pytest.raises(acs.PoisonedError):
                gated.wait()
            if kind == "buffer":
                old.release()
            del old, gated
            new = memory()
            program.put((16,), None, new, 4)
            program.add((16,), None, new, y).wait()
        assert (y.get() == 32).all()


def test_closing_gives_up_what_waits_for_an_event_that_never_comes(device: cl.Device) -> None:
    rt = acs.Runtime(device)
    program = rt.build(SOURCE)
    x = rt.zeros(16, "i4")
    gate = cl.UserEvent(rt.context)
    program.put((16,), None, x, 3, wait_for=[gate])
    with pytest.raises(acs.PoisonedError, match="closed before"):
        rt.close()
    gate.set_status(cl.command_execution_status.COMPLETE)


def test_handle_event_completes_with_the_launch(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    x = rt.zeros(16, "i4")
    host = rt.call(lambda x: x.__iadd__(1), reads=[x], writes=[x])
    kernel = program.put((16,), None, x, 3)
    for handle in (host, kernel):
        handle.event.wait()
        handle.wait()
        status = handle.event.command_execution_status
        assert status == cl.command_execution_status.COMPLETE
        assert handle.done


def test_host_task_gets_what_it_reads_and_stores_what_it_writes(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    x = rt.array(np.arange(64, dtype="i4").reshape(8, 8))
    y = rt.zeros(8, "i4")
    program.spin((64,), None, x, 2000)
    expected = spin(np.arange(64), 2000).reshape(8, 8)

    def column_sums(column: Any, total: Any) -> str:
        total[...] = column
        return "done"

    handle = rt.call(column_sums, reads=[x[:, 3]], writes=[y])
    x.fill(0)
    assert handle.wait() == "done"
    assert (y.get() == expected[:, 3]).all()


@pytest.mark.parametrize("of", [slice(None), slice(None, None, 2)])
def test_what_a_host_task_reads_comes_behind_events_too(rt: acs.Runtime, of: slice) -> None:
    x, gate, seen = rt.zeros(8, "i4"), cl.UserEvent(rt.context), []
    rt.finish()
    task = rt.call(lambda values: seen.append(values.copy()), reads=x[of], wait_for=[gate])
    queue = cl.CommandQueue(rt.context)
    cl.enqueue_copy(queue, x.data, np.full(8, 5, "i4"))
    queue.finish()
    gate.set_status(cl.command_execution_status.COMPLETE)
    task.wait()
    assert (seen[0] == 5).all()


def test_a_host_task_has_ended_when_its_views_have_what_it_stored(rt: acs.Runtime) -> None:
    x = rt.zeros(8, "i4")

    def store(values: Any) -> int:
        values[...] = 3
        return 4

    task = rt.call(store, writes=x[::2])
    assert task.number == testing.launched(rt), "the launch that puts the values into the view"
    assert rt.explain(task, x.fill(0)).ordered
    assert task.wait() == 4
    assert task.done
    task = rt.call(failing, writes=x[::2])
    with pytest.raises(acs.PoisonedError, match=r"failing.* failed: RuntimeError"):
        task.wait()


def test_host_task_may_not_wait_for_launches(rt: acs.Runtime) -> None:
    x = rt.zeros(4)
    with pytest.raises(acs.PoisonedError, match="host task"):
        rt.call(lambda: rt.finish()).wait()
    with pytest.raises(acs.PoisonedError) as caught:
        rt.call(lambda y: x.get() and None, writes=[x]).wait()
    assert isinstance(caught.value.__cause__, (acs.UsageError, ValueError))


def test_host_task_may_not_wait_for_what_has_ended_either(rt: acs.Runtime) -> None:
    """How quick the device was does not decide whether a program is right."""
    x = rt.zeros(4)
    done = x.fill(1)
    with rt.record() as graph:
        x.fill(2)
    replayed = graph.replay()
    rt.finish()
    waits = [x.get, x[::2].get, done.wait, replayed.wait, rt.finish, rt.close]
    refused: list[Any] = []

    def task() -> None:
        for one in waits:
            with pytest.raises(acs.UsageError, match="inside a host task"):
                one()
            refused.append(one)

    rt.call(task).wait()
    assert refused == waits


def test_foreign_memory_meets_itself_by_every_name(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    queue = cl.CommandQueue(rt.context)
    array = cl_array.to_device(queue, np.arange(256, dtype="i4"))
    queue.finish()
    align = rt.device.mem_base_addr_align // 8 // 4
    part = array.base_data.get_sub_region(4 * align, 4 * align)
    own = rt.zeros(256, "i4")
    want = np.arange(256, dtype="i4")
    want_own = np.zeros(256, "i4")
    for step in range(20):
        program.put((align,), None, part, step)
        want[align : 2 * align] = step
        first = program.add((256,), None, array, own)
        second = program.put((4,), None, array[8:12], -step)
        want_own += want
        want[8:12] = -step
        assert rt.explain(first, second).ordered
    rt.finish()
    assert (own.get() == want_own).all()
    assert (array.get(queue) == want).all()


def test_foreign_kernel_is_launched_with_its_own_arguments_left_alone(rt: acs.Runtime) -> None:
    native = cl.Program(rt.context, SOURCE).build(cache_dir=False)  # type: ignore[arg-type]
    kernel = cl.Kernel(native, "add")
    kernel.set_scalar_arg_dtypes([None, None])
    x, y = rt.array(np.arange(16, dtype="i4")), rt.zeros(16, "i4")
    try:
        handle = rt.launch(kernel, (16,), None, x, y)
    except acs.DeviceError as error:
        pytest.skip(str(error))
    assert [span.base for span in handle.access.writes] == [y.base.number]  # type: ignore[union-attr]
    assert (y.get() == np.arange(16)).all()
    with pytest.raises(acs.UsageError, match="kernel 'add'"):
        rt.launch(kernel, (16,), None, x)


def test_backlog_bounds_what_is_in_flight(device: cl.Device) -> None:
    with acs.Runtime(device, backlog=8) as rt:
        program = rt.build(SOURCE)
        x = rt.zeros(16, "i4")
        for _ in range(60):
            program.spin((16,), None, x, 2000)
            stats = rt.stats()
            assert stats["launches"] - stats["retired"] <= 8
        assert (x.get() == spin(np.zeros(16), 60 * 2000)).all()


@pytest.fixture
def impatient() -> Iterator[None]:
    """A wait for room gives up soon."""
    with inside.limit("seconds without room", 0.05):
        yield


def test_full_backlog_behind_a_user_event_is_an_error(
    make: Callable[..., acs.Runtime], impatient: None
) -> None:
    rt = make(backlog=8)
    program = rt.build(SOURCE)
    x, y = rt.zeros(16, "i4"), rt.zeros(16, "i4")
    rt.finish()
    event = cl.UserEvent(rt.context)
    first = program.put((16,), None, x, 3, wait_for=[event])
    for _ in range(7):
        program.add((16,), None, x, y)
    with pytest.raises(
        acs.UsageError, match=rf"launch {first.number + 8}, .*: launch {first.number} \(put\)"
    ):
        program.add((16,), None, x, y)
    assert not first.done
    event.set_status(cl.command_execution_status.COMPLETE)
    last = program.add((16,), None, x, y)
    assert last.number == first.number + 8, "the refused one never was"
    assert (y.get() == 24).all()


def test_backlog_with_room_beside_held_launches_does_not_wait(
    make: Callable[..., acs.Runtime],
) -> None:
    rt = make(backlog=8)
    if rt.stats()["backend"] == "serial":
        pytest.skip("on one in-order queue everything is behind the event")
    program = rt.build(SOURCE)
    x, y = rt.zeros(16, "i4"), rt.zeros(16, "i4")
    rt.finish()
    event = cl.UserEvent(rt.context)
    for _ in range(6):
        program.spin((16,), None, x, 1, wait_for=[event])
    for _ in range(40):
        program.spin((16,), None, y, 1)
    assert (y.get() == spin(np.zeros(16), 40)).all()
    event.set_status(cl.command_execution_status.COMPLETE)
    assert (x.get() == spin(np.zeros(16), 6)).all()


def test_full_backlog_waits_for_an_event_that_another_thread_sets(
    make: Callable[..., acs.Runtime],
) -> None:
    rt = make(backlog=8)
    program = rt.build(SOURCE)
    x = rt.zeros(16, "i4")
    rt.finish()
    event = cl.UserEvent(rt.context)

    def set_once_somebody_waits() -> None:
        while not rt.stats()["backlog_waits"]:
            pass
        event.set_status(cl.command_execution_status.COMPLETE)

    thread = threading.Thread(target=set_once_somebody_waits)
    thread.start()
    for _ in range(20):
        program.spin((16,), None, x, 1, wait_for=[event])
    thread.join()
    assert (x.get() == spin(np.zeros(16), 20)).all()


def test_full_backlog_waits_for_commands_of_other_queues_and_runtimes(
    make: Callable[..., acs.Runtime], impatient: None
) -> None:
    rt = make(backlog=8)
    program = rt.build(SOURCE)
    x = rt.zeros(16, "i4")
    rt.finish()
    waits: list[None] = []

    def after_a_while(end: Callable[[], object]) -> AbstractContextManager[None]:
        def counted() -> None:
            waits.append(None)
            if len(waits) % 20 == 0:  # several times the patience
                end()

        return testing.at("before a wait for room goes on", counted)

    release = threading.Event()
    with after_a_while(release.set), acs.Runtime(rt.device, context=rt.context) as other:
        task = other.call(release.wait)
        for _ in range(20):
            program.spin((16,), None, x, 1, wait_for=[task.event])
        assert (x.get() == spin(np.zeros(16), 20)).all()
    queue = cl.CommandQueue(rt.context, rt.device)
    event = cl.UserEvent(rt.context)
    foreign = cl.enqueue_barrier(queue, wait_for=[event])
    queue.flush()
    with after_a_while(lambda: event.set_status(cl.command_execution_status.COMPLETE)):
        for _ in range(20):
            program.spin((16,), None, x, 1, wait_for=[foreign])
    assert (x.get() == spin(np.zeros(16), 40)).all()
    assert len(waits) >= 40


def test_allocation_behind_a_user_event_is_an_error(device: cl.Device, impatient: None) -> None:
    with acs.Runtime(device) as rt:
        program = rt.build(SOURCE)
        x = rt.zeros(16, "i4")
        rt.finish()
        event = cl.UserEvent(rt.context)
        program.put((16,), None, x, 3, wait_for=[event])
        with (
            inside.no_memory(rt),
            pytest.raises(acs.UsageError, match=r"allocation of 64 bytes .*\(put\)"),
        ):
            rt.empty(16, "i4")
        event.set_status(cl.command_execution_status.COMPLETE)
        assert (x.get() == 3).all()


def test_runtimes_of_a_device_share_a_context(device: cl.Device) -> None:
    with acs.Runtime(device) as one, acs.Runtime(device) as two:
        assert one.context == two.context
        own = cl.Context([device])
        with acs.Runtime(context=own) as three:
            assert three.context == own != one.context
        contexts.forget_context(own)
        x = two.zeros(4)
        with pytest.raises(acs.UsageError, match="another runtime"):
            one.build(SOURCE).put((4,), None, x, 1)
        contexts.forget_context(one.context)
        with acs.Runtime(device) as four:
            assert four.context != one.context, "a command failed on the device"


def test_many_runtimes_need_one_context(device: cl.Device) -> None:
    contexts = set()
    for step in range(200):
        with acs.Runtime(device) as rt:
            x = rt.zeros(16, "i4")
            x.fill(step)
            contexts.add(rt.context.int_ptr)
            if step % 20 == 0:
                assert (x.get() == step).all()
    assert len(contexts) == 1


def test_finish_wakes_up_seldom(make: Callable[..., acs.Runtime]) -> None:
    rt = make()
    if rt.stats()["backend"] == "device":
        pytest.skip("launches are handed over many at a time")
    program = rt.build(SOURCE)
    arrays = [rt.zeros(16, "i4") for _ in range(64)]
    rt.finish()
    stopped = cl.UserEvent(rt.context)
    for queue in inside.driver_queues(rt):
        cl.enqueue_barrier(queue, wait_for=[stopped])
    for x in arrays:
        program.spin((16,), (16,), x, 20_000)  # long enough for a wait of its own
    found: list[None] = []

    def counted() -> None:
        if not found:
            stopped.set_status(cl.command_execution_status.COMPLETE)
        found.append(None)

    with testing.at("before a wait for one of several", counted):
        rt.finish()
    assert 1 <= len(found) <= len(arrays) // 4, "not once for each launch"
    assert testing.is_at_rest(rt)


def test_independent_kernels_overlap_and_chains_do_not(device: cl.Device) -> None:
    if device.max_compute_units < 2:
        pytest.skip("one compute unit")
    with acs.Runtime(device, trace=True) as rt:
        if rt.stats()["backend"] == "serial":
            pytest.skip("auto chose serial: " + rt.stats()["why"])
        program = rt.build(SOURCE)
        arrays = [rt.zeros(16, "i4") for _ in range(16)]
        program.spin((16,), (16,), arrays[0], 1)
        seen = []
        while len(seen) < 8 and max(seen, default=0) <= 1.3:  # others can take overlap away
            rt.finish()
            rt.trace.clear()
            for x in arrays:
                program.spin((16,), (16,), x, 100_000)
            rt.finish()
            seen.append(rt.trace.overlap())
        assert max(seen) > 1.3, seen
        rt.trace.clear()
        for _ in range(8):
            program.spin((16,), (16,), arrays[0], 20_000)
        rt.finish()
        assert rt.trace.overlap() < 1.05


def test_threads_keep_their_own_order(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    shared = rt.array(np.arange(64, dtype="i4"))
    results: dict[int, Any] = {}

    def work(me: int) -> None:
        mine = rt.zeros(64, "i4")
        for step in range(60):
            program.add((64,), None, shared, mine)
            if step % 7 == me % 7:
                mine.get()
            program.spin((64,), None, mine, 3)
        results[me] = mine.get()

    in_threads(work)
    want = np.zeros(64, "i4")
    for _ in range(60):
        want = spin(want + np.arange(64, dtype="i4"), 3)
    assert sorted(results) == [0, 1, 2, 3]
    assert all((result == want).all() for result in results.values())


def test_get_in_one_thread_does_not_block_launches_in_another(rt: acs.Runtime) -> None:
    if rt.stats()["backend"] == "serial":
        pytest.skip("on one in-order queue everything is behind the gate")
    program = rt.build(SOURCE)
    gate = cl.UserEvent(rt.context)
    x, y = rt.zeros(16, "i4"), rt.zeros(16, "i4")
    program.put((16,), None, x, 3, wait_for=[gate])
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.append(x.get()))
    thread.start()
    program.put((16,), None, y, 5)
    assert (y.get() == 5).all(), "while the other thread waits"
    assert not got
    gate.set_status(cl.command_execution_status.COMPLETE)
    thread.join()
    assert (got[0] == 3).all()


def run_script(body: str) -> subprocess.CompletedProcess[str]:
    script = (
        "import numpy as np, os, gc, pyopencl as cl\nimport acs_cl as acs\n"
        f"SOURCE = {SOURCE!r}\n{body}\n"
    )
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )


LEAVING = {
    "work in flight": "rt = acs.Runtime(); p = rt.build(SOURCE); x = rt.zeros(64, 'i4')\n"
    "for _ in range(50): p.spin((64,), None, x, 100000)",
    "a host task pending": "rt = acs.Runtime(); x = rt.zeros(4)\n"
    "rt.call(lambda a: a.fill(1), writes=[x])",
    "a gate that never opens": "rt = acs.Runtime(); p = rt.build(SOURCE); x = rt.zeros(64, 'i4')\n"
    "e = cl.UserEvent(rt.context); p.put((64,), None, x, 1, wait_for=[e])",
    "a runtime collected": "rt = acs.Runtime(); p = rt.build(SOURCE); x = rt.zeros(64, 'i4')\n"
    "p.spin((64,), None, x, 100000); del rt, p, x; gc.collect()",
    "arrays that outlive it": "rt = acs.Runtime(); x = rt.zeros(64, 'i4'); rt.close(); del rt",
    "a thread that waits": "import threading, time\n"
    "rt = acs.Runtime(backend='serial'); p = rt.build(SOURCE); x = rt.zeros(64, 'i4')\n"
    "def wait():\n"
    "    try:\n"
    "        while True: p.spin((1,), None, x, 10_000_000); first.set(); x.get()\n"
    "    except acs.UsageError: pass  # it came when the runtime was closed\n"
    "first = threading.Event(); threading.Thread(target=wait, daemon=True).start(); first.wait()",
}


@pytest.mark.parametrize("what", LEAVING)
def test_interpreter_leaves_without_noise(what: str, device: cl.Device) -> None:
    done = run_script(LEAVING[what])
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("is_collected", [False, True])
def test_a_failure_that_nobody_was_told_is_a_line_where_nobody_can_catch_it(
    is_collected: bool, device: cl.Device
) -> None:
    done = run_script(
        "rt = acs.Runtime(); x = rt.zeros(4); gate = cl.UserEvent(rt.context)\n"
        "p = rt.build(SOURCE); y = rt.zeros(16, 'i4'); p.put((16,), None, y, 1, wait_for=[gate])\n"
        "for _ in range(2): rt.call(lambda a: 1 / 0, writes=[x])\n"
        f"if {is_collected}: del rt, x, p, y; gc.collect(); print('collected')"
    )
    said = r"launch \d+ \(<lambda>, .*\) failed: ZeroDivisionError\(.*\); 1 more failed\n"
    assert re.fullmatch(f"acs_cl: PoisonedError: {said}", done.stderr), done.stderr
    assert done.returncode == 1  # the launch behind the gate keeps it until then
    assert done.stdout == "collected\n" * is_collected


FAILING = "rt = acs.Runtime(); x = rt.zeros(4); rt.call(lambda a: 1 / 0, writes=[x])\n"
LATER = "try: x.get()\nexcept acs.PoisonedError: pass\n"


@pytest.mark.parametrize(
    ("ending", "code"),
    [("", 1), ("import sys; sys.exit(7)", 7), ("rt.close()", 1), (LATER, 0)],
    ids=["nothing", "its own status", "closed", "caught"],
)
def test_a_program_fails_with_a_host_task_that_it_never_asked_for(
    ending: str, code: int, device: cl.Device
) -> None:
    """Also without a `with` block or any wait. stderr names the line of the task."""
    done = run_script(FAILING + ending)
    assert done.returncode == code, done.stderr
    assert ("ZeroDivisionError" in done.stderr) is (code != 0)
    if code:
        assert re.search(r"launch 2 \(<lambda>, launched at <string>:\d+\) failed", done.stderr)


def test_a_timeline_that_cannot_be_written_at_the_end_hides_nothing(
    tmp_path: Path, device: cl.Device
) -> None:
    """All runtimes are closed, and what failed in each is told."""
    more = FAILING.replace("rt", "other").replace("x", "y")
    folder = tmp_path / "gone"
    folder.mkdir()
    begins = f"os.environ['ACS_CL_TRACE'] = {str(folder / 'trace.json')!r}\n"
    done = run_script(f"{begins}{FAILING}{more}os.rmdir({str(folder)!r})")
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("the timeline cannot be written") == 2
    assert done.stderr.count("ZeroDivisionError") == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("gone", ["os.close(2)", "sys.stderr.close()", "sys.stderr = None"])
def test_a_program_without_stderr_fails_as_well_and_closes_all(
    gone: str, device: cl.Device
) -> None:
    more = FAILING.replace("rt", "other").replace("x", "y")
    done = run_script(f"import sys\n{FAILING}{more}{gone}")
    assert (done.returncode, done.stdout) == (1, "")


def test_forked_child_refuses_every_call(device: cl.Device) -> None:
    done = run_script(
        "rt = acs.Runtime(); x = rt.zeros(4); x.get()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    try: x.fill(1)\n"
        "    except acs.UsageError as error: print('child:', error, flush=True)\n"
        "    try: acs.Runtime()\n"
        "    except acs.UsageError as error: print('new:', error, flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(pid, 0); x.fill(2); print('parent:', x.get()[0])"
    )
    assert "child: the runtime is of another process" in done.stdout
    assert "new: the process that this one was forked from had used OpenCL" in done.stdout
    assert "parent: 2.0" in done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("acs.Runtime(context=cl.Context([devices.choose()])).close()", "acs.Runtime()"),
        ("acs.Queue(cl.Context([devices.choose()])).finish()", "acs.Runtime()"),
        ("try: acs.Runtime('no such device')\nexcept acs.UsageError: pass", "acs.Runtime()"),
        ("acs.Runtime().close()", "acs.Runtime(devices=[0, 0])"),
    ],
    ids=["a context of its own", "a queue", "a refused runtime", "several devices"],
)
def test_a_fork_of_a_process_that_asked_a_driver_for_anything_is_refused(
    before: str, after: str, device: cl.Device
) -> None:
    """The driver's threads are not there, whatever has become of the first runtime."""
    done = run_script(
        f"from acs_cl import devices\n{before}\ngc.collect()\npid = os.fork()\n"
        "if pid == 0:\n"
        "    import signal; signal.alarm(60)\n"
        f"    try: {after}.zeros(4).get()\n"
        "    except acs.UsageError as error: print('child:', error, flush=True)\n"
        "    os._exit(0)\n"
        "assert os.waitpid(pid, 0)[1] == 0"
    )
    assert done.returncode == 0, done.stderr
    assert "child: the process that this one was forked from had used OpenCL" in done.stdout


def test_explain_names_no_route_of_a_launch_that_has_none_yet(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device") as rt, testing.hold(rt) as gate:
        prog = rt.build(SOURCE)
        held = prog.put((64,), None, rt.zeros(64, "i4"), 1, wait_for=[gate.event])
        route = re.compile("backend device: (on a lane|in the scheduler)")
        assert not route.search(str(rt.explain(held)))
        task = rt.call(lambda: None, wait_for=[gate.event])
        assert "backend device: on the host; " in str(rt.explain(task))
        gate.open()
        held.wait()
        assert route.search(str(rt.explain(held)))


def test_explain_says_what_a_launch_that_does_not_run_waits_for(device: cl.Device) -> None:
    with acs.Runtime(device, backend="lanes", trace=True) as rt, testing.hold(rt) as gate:
        prog = rt.build(SOURCE)
        x = rt.zeros(64, "i4")
        rt.finish()
        first = prog.put((64,), None, x, 1, wait_for=[gate.event])
        second = prog.put((64,), None, x, 1)
        assert "it waits on the host for foreign events: 1" in str(rt.explain(first))
        waits = f"it does not run yet: it waits on the host for launch {first.number} (put)"
        assert waits in str(rt.explain(second))
        gate.open()
        second.wait()
        told = str(rt.explain(second))
        assert "does not run" not in told
        way = re.search(r"on the host's clock: (.*)", told)
        assert way is not None
        assert re.findall(r"([a-z]+) after [\d.]+ us", way[1]) == [
            "pending", "ready", "executing", "ended",
        ]  # fmt: skip
    with acs.Runtime(device, backend="lanes", window=1) as rt, testing.hold(rt) as gate:
        prog = rt.build(SOURCE)
        x, y = rt.zeros(64, "i4"), rt.zeros(64, "i4")
        prog.put((64,), None, x, 1, wait_for=[gate.event])
        outside = prog.put((64,), None, y, 1)
        assert "the window of 1 launches is full" in str(rt.explain(outside))
        gate.open()
        outside.wait()
        assert "host's clock" not in str(rt.explain(outside))  # nobody asked for it


def test_an_array_gives_the_runtime_that_the_program_has(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        assert rt.zeros(2, "f4").runtime is rt
        assert rt.zeros(0, "f4").runtime is rt


@pytest.mark.parametrize("options", [{}, {"backend": "device"}, {"trace": True}])
def test_what_is_left_of_a_runtime_keeps_its_engine_and_nothing_else_does(
    device: cl.Device, options: dict[str, Any]
) -> None:
    """No circle of references keeps an engine, so that queues and memory go back at once."""
    gc.disable()
    try:
        rt = acs.Runtime(device, **options)
        engine = weakref.ref(rt.engine)
        x = rt.array([1, 2], "i4")
        kernel = rt.build(SOURCE).put
        del rt
        again = x.runtime
        assert again is x.runtime
        assert again.engine is engine()
        kernel((2,), None, x, 7)
        again.finish()
        del again, x
        assert engine() is not None, "a kernel launches on it still"
        del kernel
        assert engine() is None
    finally:
        gc.enable()


AT_THE_END = """
import atexit, threading

@atexit.register  # before the library's own, and so behind them
def say():
    print([one.name for one in threading.enumerate() if one.name.startswith("acs_cl")])

import acs_cl as acs

rt = acs.Runtime(backend="lanes")
x = rt.zeros(4, "f4")
rt.call(lambda values: values.fill(2), writes=[x])
print(x.get())
"""


def test_no_thread_polls_while_the_interpreter_ends(device: cl.Device) -> None:
    """One that it ended inside the core would take the process with it."""
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[2. 2. 2. 2.]", "[]"]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="nothing says how much is in use")
def test_sizes_that_change_do_not_fill_the_memory(device: cl.Device) -> None:
    """The index drops the nodes of both arrays again and again, and with them what was found."""

    def pages() -> int:
        gc.collect()
        return int(Path("/proc/self/statm").read_text("ascii").split()[1])

    with acs.Runtime(device=device, backend="serial") as rt:
        prog = rt.build("kernel void up(global uint *x) { x[get_global_id(0)] += 1; }")
        x = rt.zeros(64, "u4")
        half = x[4:]

        def launches(rounds: int) -> None:
            for size in range(rounds):
                prog.up((1 + size % 64,), None, x)
                prog.up((1 + size % 60,), None, half)
                if size % 16 == 0:
                    rt.finish()

        launches(2_000)
        before = pages()
        launches(8_000)
        more = (pages() - before) * mmap.PAGESIZE
        assert more < 4 << 20, f"{more:,} bytes more"


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_an_array_by_its_address_is_lost_with_the_kernel_that_writes_it(
    device: cl.Device, memory: str
) -> None:
    """On a queue such a kernel may touch any memory. It did not run, and `get` had old values."""
    if memory == "svm" and not device.svm_capabilities:
        pytest.skip("no shared virtual memory")
    context = cl.Context([device])
    source = "kernel void add(global int *x) { x[get_global_id(0)]++; }"
    with acs.Runtime(context=context, memory=memory) as rt:
        queue = acs.Queue(context, runtime=rt)
        add = cl.Program(context, source).build().add
        x, y = rt.zeros(8, "i4"), rt.zeros(8, "i4")
        add(queue, (8,), None, x.data)
        assert x.get().tolist() == [1] * 8
        rt.call(lambda values: 1 / 0, writes=y)
        add(queue, (8,), None, x.data)
        with pytest.raises(acs.PoisonedError):
            x.get()
        x.fill(3)
        assert x.get().tolist() == [3] * 8
