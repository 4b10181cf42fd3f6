"""Failures and refusals beside one another: what one leaves behind must not change what follows."""

from __future__ import annotations

import contextlib
import gc
import inspect
import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import inside
import numpy as np
import pyopencl as cl
import pytest
from fuzz.threads import in_threads

import acs_cl as acs
from acs_cl import testing
from acs_cl.errors import BuildError, CheckError, Finding, OutOfMemory, StalledError
from acs_cl.launch.commands import NoVariantError
from acs_cl.launch.decision import WrongCountError

SOURCE = """
kernel void put(global int *x, int value) { x[get_global_id(0)] = value; }
kernel void add(global const int *x, global int *y, int a)
{ int i = get_global_id(0); y[i] = x[i] + a; }
kernel void spin(global int *x, int rounds)
{ int v = x[0]; for (int i = 0; i < rounds; ++i) v = v * 3 + 1; x[0] = v; }
"""

ROOT = Path(__file__).resolve().parent.parent


def fail(*arrays: np.ndarray) -> None:
    raise LookupError("this task fails on purpose")


def test_a_failed_task_leaves_everything_else_as_it_would_be(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    x, y, z = (rt.zeros(8, "i4") for _ in range(3))
    event = cl.UserEvent(rt.context)
    gated = program.put((8,), None, x, 4, wait_for=[event])
    failed = rt.call(fail, reads=[x], writes=[x[:4]])
    dependant = program.add((8,), None, x, y, 1)
    beside = program.add((4,), None, x[4:], z, 2)
    event.set_status(cl.command_execution_status.COMPLETE)
    beside.wait()
    gated.wait()
    for handle, text in ((failed, "on purpose"), (dependant, r"launch \d+ \(add\) is poisoned")):
        with pytest.raises(acs.PoisonedError, match=text) as caught:
            handle.wait()
        assert isinstance(caught.value.__cause__, LookupError)
        assert handle.done
    assert z.get().tolist() == [6] * 4 + [0] * 4
    assert x[4:].get().tolist() == [4] * 4
    with pytest.raises(acs.PoisonedError, match="fail"):
        x.get()


def test_launches_may_fail_while_one_asks_for_the_event_of_all(rt: acs.Runtime) -> None:
    x, y, go = rt.zeros((2, 4), "i4"), rt.zeros((2, 4), "i4"), threading.Event()

    def wait_and_fail(*_: object) -> None:
        go.wait()
        raise LookupError("on purpose")

    failed = rt.call(wait_and_fail, writes=[x])
    many = rt.build(SOURCE).add.launch_many((4,), None, [x[0], x[1]], [y[0], y[1]], 1)

    def fail() -> None:
        go.set()
        testing.wait_until(lambda: many.done)

    with inside.refused_markers(fail):
        event = many.event
    assert event.command_execution_status == -14  # which a driver says of what waits for it
    with pytest.raises(acs.PoisonedError):
        failed.wait()
    for one in (x, y):
        one.fill(0)
    rt.finish()


def test_the_event_of_a_launch_that_failed_says_so(rt: acs.Runtime) -> None:
    x = rt.zeros(4, "i4")
    failed = rt.call(fail, writes=[x])
    early = rt.build(SOURCE).put((4,), None, x, 1).event
    with pytest.raises(acs.PoisonedError):
        failed.wait()
    assert failed.event.command_execution_status < 0
    x.fill(0)
    rt.finish()
    assert early.command_execution_status == cl.command_execution_status.COMPLETE


def test_a_refused_launch_heals_no_poison(rt: acs.Runtime) -> None:
    if rt.plan.backend == "emulated":
        pytest.skip("the driver sees a launch when the model begins it")
    program = rt.build(SOURCE)
    x = rt.zeros(8, "i4")
    with pytest.raises(acs.PoisonedError):
        rt.call(fail, writes=[x]).wait()
    with pytest.raises(acs.UsageError, match="local size"):
        program.put((8,), (3,), x, 1, writes=[x])
    with pytest.raises(acs.PoisonedError):
        x.get()
    program.put((8,), None, x, 1, writes=[x])
    assert x.get().tolist() == [1] * 8


def test_refused_launches_between_others_cost_no_edge(rt: acs.Runtime) -> None:
    if rt.options.issue == "ready_first" or rt.plan.backend == "emulated":
        pytest.skip("the driver sees a launch when it is ready, after its call has returned")
    program = rt.build(SOURCE)
    x, y = rt.zeros(1, "i4"), rt.zeros(1, "i4")
    value = 0
    for rounds in range(20_000, 20_010):
        program.spin((1,), None, x, rounds)
        with pytest.raises(acs.UsageError):
            program.add((1,), (7,), x, y, 0)  # stands between the two that need each other
        program.add((1,), None, x, y, 0)
        with pytest.raises(acs.UsageError):
            program.put((1,), (7,), x, 0)
        for _ in range(rounds):
            value = (value * 3 + 1) & 0xFFFFFFFF
        assert int(y.get()[0]) & 0xFFFFFFFF == value


def test_a_failing_task_behind_another_failure_never_runs(rt: acs.Runtime) -> None:
    ran = []
    x = rt.zeros(4, "i4")
    rt.call(fail, writes=[x])
    second = rt.call(lambda a: ran.append(1), reads=[x])
    with pytest.raises(acs.PoisonedError, match=r"launch 2 .*fail"):
        second.wait()
    assert not ran
    rt.finish()  # it was told


def test_poison_ends_where_memory_is_given_back(rt: acs.Runtime) -> None:
    for _ in range(20):
        x = rt.empty(64, "i4")
        rt.call(fail, writes=[x])
        del x
        fresh = rt.zeros(64, "i4")
        assert not fresh.get().any()
    with pytest.raises(acs.PoisonedError, match="19 more failed"):
        rt.finish()
    rt.finish()


def test_a_result_already_computed_survives_a_later_failure(rt: acs.Runtime) -> None:
    x = rt.array(np.arange(4, dtype="i4"))
    before = x.get(wait=False)
    rt.call(fail, writes=[x])
    assert before.wait().tolist() == [0, 1, 2, 3]
    with pytest.raises(acs.PoisonedError):
        x.get(wait=False).wait()


def test_handles_tell_after_close_what_came_of_their_launches(rt: acs.Runtime) -> None:
    x, lost = rt.array(np.arange(4, dtype="i4")), rt.zeros(4, "i4")
    values, total = x.get(wait=False), rt.call(lambda x: int(x.sum()), reads=x)
    with rt.record() as graph:
        x.fill(1)
    replay, failed = graph.replay(), rt.call(fail, writes=[lost])
    with pytest.raises(acs.PoisonedError):
        failed.wait()
    rt.close()
    assert values.wait().tolist() == [0, 1, 2, 3]
    assert total.wait() == 6
    replay.wait()
    assert replay.done
    with pytest.raises(acs.PoisonedError):
        failed.wait()
    assert repr(rt).endswith(", closed>")


def test_a_large_set_behind_an_event_returns_at_once(rt: acs.Runtime) -> None:
    """It could be this very thread that sets the event."""
    program = rt.build(SOURCE)
    x = rt.zeros(1 << 19, "i4")
    event = cl.UserEvent(rt.context)
    program.put((1 << 19,), None, x, 1, wait_for=[event])
    source = np.full(1 << 19, 2, "i4")
    x.set(source)
    source[:] = 3
    event.set_status(cl.command_execution_status.COMPLETE)
    assert (x.get() == 2).all()


def test_concurrent_failures_are_all_accounted_for(rt: acs.Runtime) -> None:
    arrays = [rt.zeros(4, "i4") for _ in range(12)]

    def work(which: int) -> None:
        for x in arrays[which::3]:
            rt.call(fail, writes=[x])

    in_threads(work, 3)
    for x in arrays:
        with pytest.raises(acs.PoisonedError):
            x.get()
    rt.finish()
    assert rt.stats()["failed"] == 12


FORKED = """
import gc, os, signal, sys, threading
import pyopencl as cl, pyopencl.array
import acs_cl as acs
from acs_cl import testing
rt = acs.Runtime()
program = rt.build("kernel void put(global int *x, int v) { x[get_global_id(0)] = v; }")
x = rt.zeros((8, 8), "i4")
handle = program.put((8,), None, x, 1)
x.get()
queue = acs.Queue(rt.context, runtime=rt)
y, gate = cl.array.zeros(queue, 8, "i4"), cl.UserEvent(rt.context)
inc = cl.Program(rt.context, "kernel void inc(global int *x) { ++*x; }").build().inc
live = program.put((8,), None, rt.zeros(8, "i4"), 1, wait_for=[gate])
event = inc(queue, (1,), None, y.data, wait_for=[gate])
locked, leave = threading.Event(), threading.Event()
def hold():
    with rt.engine.lock:
        locked.set()
        leave.wait()
threading.Thread(target=hold, daemon=True).start()
locked.wait()
pid = os.fork()  # another thread holds the lock, as the library's own may
if pid == 0:
    calls = dict(
        launch=lambda: program.put((8,), None, x, 2), get=x.get, columns=x[:, 1].get,
        empty=lambda: rt.empty(3), build=lambda: rt.build(""), call=lambda: rt.call(print),
        finish=rt.finish, flush=rt.flush, wait=handle.wait, fill=lambda: x[:, 2].fill(1),
        event=lambda: handle.event, live=live.wait, done=lambda: live.done,
        queue=queue.finish, command=event.wait, commands=lambda: cl.wait_for_events([event]),
        status=lambda: event.command_execution_status, pointer=lambda: queue.int_ptr,
        enqueue=lambda: inc(queue, (1,), None, y.data),
        quiet=lambda: rt.engine.wait_quietly(live.number),
        several=lambda: rt.engine.wait_for_all([live.number]),
    )
    signal.alarm(60)
    for name, call in calls.items():
        try:
            call()
        except (acs.UsageError, cl.Error) as error:
            assert "fork" in str(error), error
        else:
            print(name, "did not refuse", flush=True)
    del queue, event
    gc.collect()
    rt.close()
    os._exit(0)
_, status = os.waitpid(pid, 0)
leave.set()
gate.set_status(0)
program.put((8,), None, x, 3)
print(status, x.get().sum())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_refuses_even_where_the_lock_was_held(device: cl.Device) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout == "0 24\n", done.stdout + done.stderr


def test_out_of_memory_leaves_the_runtime_usable(rt: acs.Runtime) -> None:
    x = rt.zeros(4, "i4")
    with pytest.raises(MemoryError, match="bytes") as caught:
        rt.empty(1 << 60, "u1")
    assert isinstance(caught.value, acs.DeviceError)
    assert x.get().tolist() == [0] * 4


def test_calls_that_are_not_plain_are_counted(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    x = rt.zeros(8, "i4")
    program.put((8,), None, x, 3)
    before = rt.stats()["calls_not_plain"]
    with pytest.raises(acs.UsageError, match="argument 1"):
        program.put((8,), None, x, "three")
    assert rt.stats()["calls_not_plain"] > before
    assert x.get().tolist() == [3] * 8


def deep(frames: int, call: Callable[[], object]) -> object:
    """Call something with so many frames more on the stack."""
    return call() if frames <= 0 else deep(frames - 1, call)


@pytest.mark.parametrize("what", ["launch", "replay", "task", "fill"])
def test_a_call_for_which_there_is_no_stack_leaves_nothing_behind(
    rt: acs.Runtime, what: str
) -> None:
    """It may have made its launch or not. What follows goes on, and nothing waits for ever."""
    if rt.plan.backend == "emulated":
        pytest.skip("the emulator is in Python, and does not mend what it was stopped in")
    program, x, y = rt.build(SOURCE), rt.zeros(8, "i4"), rt.zeros(8, "i4")
    with rt.record() as graph:
        program.put((8,), None, x, 1)
    calls: dict[str, Callable[[], object]] = {
        "launch": lambda: program.put((8,), None, x, 1),
        "replay": graph.replay,
        "task": lambda: rt.call(lambda x: x.fill(1), writes=[x]),
        "fill": lambda: x.fill(1),
    }
    free = sys.getrecursionlimit() - len(inspect.stack())
    came_through = 0
    for frames in range(free - 70, free):
        x.fill(0)
        try:
            deep(frames, calls[what])
        except (RecursionError, acs.AcsError):
            continue
        came_through += 1
        program.add((8,), None, x, y, 0)
        assert y.get().tolist() == [1] * 8
    assert 0 < came_through < 70
    with contextlib.suppress(acs.PoisonedError):  # a held launch may have failed for want of stack
        rt.finish()
    program.put((8,), None, x, 5)
    assert x.get().tolist() == [5] * 8


def test_failures_do_not_keep_the_inputs_of_tasks(rt: acs.Runtime) -> None:
    x = rt.zeros(1000)
    copies = list[weakref.ref[np.ndarray]]()

    def fails(x: np.ndarray) -> None:
        copies.append(weakref.ref(x))
        raise LookupError("this task fails on purpose")

    for _ in range(40):
        handle = rt.call(fails, reads=[x])
        with pytest.raises(acs.PoisonedError, match="on purpose"):
            handle.wait()
    del handle
    gc.collect()
    assert sum(one() is not None for one in copies) <= 17


def test_failures_that_nobody_asks_for_are_counted(rt: acs.Runtime) -> None:
    many, x = 4100, rt.zeros(8)
    for _ in range(many):
        rt.call(fail, writes=[x])
        x.fill(0)
    with pytest.raises(acs.PoisonedError, match=f"on purpose.*; {many - 1} more failed"):
        rt.finish()
    rt.finish()


def test_errors_go_from_one_process_to_another() -> None:
    """As a pool of processes sends them: the same class, text and fields."""
    finding = Finding("access", 3, "k", None, "x", 8, "here", "it writes outside", (1,))
    for error in (
        CheckError(finding.text, finding), BuildError("no", "log", 4), OutOfMemory("no"),
        WrongCountError(7), acs.PoisonedError("lost"), acs.UsageError("wrong"),
        StalledError("late"), NoVariantError("add", "it does not parse"), acs.DeviceError("no"),
    ):  # fmt: skip
        found = pickle.loads(pickle.dumps(error))
        assert type(found) is type(error)
        assert (str(found), vars(found)) == (str(error), vars(error))
