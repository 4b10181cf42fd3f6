"""One runtime, several threads: each keeps its own program order; what they share they only read.

What threads with random programs of their own do to one another is in test_random_programs.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from fuzz.threads import THREADS, in_threads

import acs_cl as acs
from acs_cl import closing
from acs_cl.host import threads

SOURCE = """
kernel void blend(global const uint *shared, global uint *x, uint a)
{ size_t i = get_global_id(0); x[i] = x[i] * a + shared[i]; }
"""


def chain(program: acs.Program, shared: acs.Array, index: int) -> None:
    """A dependent chain with read-backs, and arrays that come and go."""
    rt = shared.runtime
    values = np.arange(64, dtype="u4")
    constant = shared.get()
    x = rt.array(values)
    for step in range(40):
        a = 2 * index + step
        program.blend((64,), None, shared, x, a)
        values = values * np.uint32(a) + constant
        if step % 7 == index:
            y = rt.empty(64, "u4")
            y.copy_from(x)
            x = y
        if step % 9 == 0:
            assert (x[index:].get() == values[index:]).all()
        if step % 11 == 0:
            rt.call(lambda a: np.add(a, 1, out=a), reads=[x], writes=[x])
            values = values + np.uint32(1)
    assert (x.get() == values).all()


def test_each_thread_keeps_its_order_beside_shared_arrays(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    shared = rt.array(np.arange(64, dtype="u4") * 77)
    in_threads(lambda index: chain(program, shared, index))


def test_each_thread_keeps_its_order_in_a_narrow_runtime(
    device: cl.Device, configuration: tuple[str, str]
) -> None:
    backend, issue = configuration
    with acs.Runtime(device, backend=backend, issue=issue, window=3, backlog=8) as rt:
        program = rt.build(SOURCE)
        shared = rt.array(np.arange(64, dtype="u4") * 77)
        in_threads(lambda index: chain(program, shared, index))


@pytest.mark.parametrize("several", [False, True])
def test_threads_that_need_the_same_variant_at_once_share_one(
    device: cl.Device, several: bool
) -> None:
    """Each builds it. What is then made of it, for `when=` or for parts, has the offset, too."""
    options: dict[str, Any] = {"memory": "buffers", "backend": "lanes"}
    which: dict[str, Any] = (
        {"devices": [device] * 2, "spread": True} if several else {"device": device}
    )
    with acs.Runtime(**which, **options) as rt, inside.kernels_of_two_threads():
        program = rt.build("kernel void put(global uint *x) { x[get_global_id(0)] = 7; }")
        flag, arrays = rt.array([1], "u4"), [rt.zeros(256, "u4") for _ in range(2)]

        def work(index: int) -> None:
            when = {} if several else {"when": flag}
            program.put((128,), None, arrays[index][128:], **when)

        in_threads(work, 2)
        for array in arrays:
            assert array.get().tolist() == [0] * 128 + [7] * 128


def test_a_kernel_is_the_same_for_threads_that_ask_at_once(device: cl.Device) -> None:
    """What one of them declares holds for all."""
    found = dict[int, acs.Kernel]()
    with acs.Runtime(device) as rt, inside.kernels_of_two_threads():
        prog = rt.build(SOURCE)
        in_threads(lambda index: found.update({index: prog.blend}), 2)
        assert found[0] is found[1] is prog.blend is prog["blend"]


def test_launches_of_threads_that_take_turns_are_ordered(rt: acs.Runtime) -> None:
    """What one thread launches before it hands over comes before what the next one launches."""
    program = rt.build(SOURCE)
    x, ones = rt.zeros(64, "u4"), rt.array(np.ones(64, "u4"))
    turn = threading.Condition()
    turns: list[int] = []

    def work(index: int) -> None:
        for _ in range(10):
            with turn:
                turn.wait_for(lambda: len(turns) % THREADS == index)
                program.blend((64,), None, ones, x, index + 2)
                turns.append(index)
                turn.notify_all()

    in_threads(work)
    expected = np.uint32(0)
    for _ in range(10):
        for index in range(THREADS):
            expected = np.uint32((int(expected) * (index + 2) + 1) & 0xFFFFFFFF)
    assert (x.get() == expected).all()


def test_closing_while_others_launch_refuses_them_and_hangs_nobody(
    device: cl.Device, configuration: tuple[str, str]
) -> None:
    backend, issue = configuration
    rt = acs.Runtime(device, backend=backend, issue=issue)
    program = rt.build(SOURCE)
    shared = rt.array(np.ones(64, "u4"))
    started = threading.Event()

    def launch_for_ever() -> None:
        while True:
            program.blend((64,), None, shared, rt.zeros(64, "u4"), 3)
            started.set()

    def work(index: int) -> None:
        if index == 0:
            started.wait()
            rt.close()
            return
        with pytest.raises(acs.UsageError, match="closed"):
            launch_for_ever()

    in_threads(work)
    with pytest.raises(acs.UsageError, match="closed"):
        rt.finish()


def test_what_a_host_task_launches_while_closing_is_finished_too(
    device: cl.Device, configuration: tuple[str, str]
) -> None:
    backend, issue = configuration
    result = np.zeros(64, "u4")
    closing = threading.Event()
    with acs.Runtime(device, backend=backend, issue=issue) as rt:
        program = rt.build(SOURCE)
        x, ones = rt.zeros(64, "u4"), rt.array(np.ones(64, "u4"))

        def task() -> None:
            closing.wait()
            program.blend((64,), None, ones, x, 3)
            x.get(out=result, wait=False)

        rt.call(task)
        closing.set()
    assert (result == 1).all()


# ---- threads of the library that cannot start, or that an error ends -----------------------------


def soon(claim: Callable[[], bool]) -> bool:
    """Whether it holds before long."""
    until = time.perf_counter() + 30
    while not claim():
        if time.perf_counter() > until:
            return False
        time.sleep(0.001)
    return True


@pytest.fixture
def startless(
    monkeypatch: pytest.MonkeyPatch, environment: Callable[..., None]
) -> pytest.MonkeyPatch:
    """No thread can be started, as on a machine with too many. A watchdog would need one."""
    environment(ACS_CL_WATCHDOG=None)

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    return monkeypatch


def test_host_tasks_run_where_they_are_waited_for_if_no_thread_starts(
    device: cl.Device, startless: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []

    def task(values: Any) -> None:
        ran.append(threading.get_ident())
        values += 1
        with pytest.raises(acs.UsageError, match="inside a host task"):
            x.get()

    with acs.Runtime(device, backend="lanes") as rt:
        x = rt.zeros(4)
        for _ in range(3):
            rt.call(task, reads=[x], writes=[x])
        assert (x.get() == 3).all()
        rt.call(task, reads=[x], writes=[x])
    assert ran == [threading.get_ident()] * 4
    assert not threads.on_host_task()


@pytest.mark.parametrize("backend", ["auto", "device"])
def test_kernels_run_on_lanes_if_no_thread_starts_that_would_build_their_scheduler(
    device: cl.Device, backend: str, startless: pytest.MonkeyPatch
) -> None:
    with acs.Runtime(device, backend=backend) as rt:
        program = rt.build(SOURCE)
        x, ones = rt.zeros(64, "u4"), rt.array(np.ones(64, "u4"))
        for _ in range(100):  # the first ones of a kernel go to lanes in any case
            last = program.blend((64,), None, ones, x, 1)
        assert (x.get() == 100).all()
        if rt.stats()["backend"] == "device":
            assert "no thread can start" in str(rt.explain(last))
            with rt.measure():  # which would wait for the timed form of a scheduler
                program.blend((64,), None, ones, x, 1)


WITHOUT_THREADS = """
import sys, threading, types
import pyopencl as cl
import acs_cl as acs

sys.modules["{module}"] = types.SimpleNamespace({question}=lambda name: name == "{name}")
with acs.Runtime(backend="lanes") as rt:
    prog = rt.build("kernel void one(global int *x) {{ x[get_global_id(0)] = 1; }}")
    x, gate = rt.zeros(4, "i4"), cl.UserEvent(rt.context)
    prog.one((4,), None, x, wait_for=[gate])  # a thread would move it along
    try:
        rt.call(lambda values: None, writes=x)
    except acs.UsageError as error:
        print(error)
    print([one.name for one in threading.enumerate()])
    gate.set_status(cl.command_execution_status.COMPLETE)
    print(x.get())
try:
    acs.Runtime(watchdog_s=5)
except acs.UsageError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("module", "question", "name"),
    [
        ("gevent.monkey", "is_module_patched", "threading"),
        ("eventlet.patcher", "is_monkey_patched", "thread"),
    ],
)
def test_tasks_of_one_thread_are_not_taken_for_threads(
    module: str, question: str, name: str
) -> None:
    """As after gevent's monkey.patch_all(), which makes `threading.Thread.start` run others."""
    words = WITHOUT_THREADS.format(module=module, question=question, name=name)
    done = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, timeout=300, check=False,
        env=os.environ | {"ACS_CL_WATCHDOG": ""},
    )  # fmt: skip
    assert (done.stderr, done.returncode) == ("", 0)
    task, alive, values, clock = done.stdout.splitlines()
    assert task.startswith(f"rt.call: it needs a thread, and {module.split('.')[0]} has replaced")
    assert (alive, values) == ("['MainThread']", "[1 1 1 1]")
    assert "has replaced those of Python; write " in clock
    assert "thread=False" in clock


AT_THE_END = """
import atexit, threading
import acs_cl as acs

def refuse(thread):
    raise RuntimeError("can't create new thread at interpreter shutdown")

@atexit.register
def no_more_threads():
    threading.Thread.start = refuse

rt = acs.Runtime(backend="lanes")
prog = rt.build("kernel void slow(global uint *x, uint n) { uint a = x[get_global_id(0)];"
                "for (uint i = 0; i < n; ++i) { a ^= a << 13; a ^= a >> 17; a ^= a << 5; }"
                "x[get_global_id(0)] = a; }")
x = rt.zeros(64, "u4")
prog.slow((64,), None, x, 1).wait()
prog.slow((64,), None, x, 10_000_000)
rt.call(lambda values: print("the task ran", flush=True), writes=x)
"""


def test_a_host_task_pending_at_exit_runs_although_no_thread_starts_then() -> None:
    """As from Python 3.12 on."""
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("the task ran\n", "", 0)


ENDS_MEANWHILE = """
import threading, time
from acs_cl import core

class Late:
    def __del__(self, sleep=time.sleep):
        sleep(0.2)  # the interpreter has begun to end, and the thread asks for the GIL

late, lock = Late(), core.native.Lock()
lock.acquire()
threading.Thread(target=lock.acquire, daemon=True).start()
"""


def test_a_thread_that_waits_in_the_core_ends_with_the_interpreter() -> None:
    """Sanitizers have nothing to say of it either."""
    done = subprocess.run(
        [sys.executable, "-c", ENDS_MEANWHILE],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.stderr, done.returncode) == ("", 0)


def test_launches_are_moved_along_once_threads_can_start_again(
    device: cl.Device, startless: pytest.MonkeyPatch
) -> None:
    with acs.Runtime(device, backend="lanes") as rt:
        program = rt.build(SOURCE)
        x, ones = rt.zeros(64, "u4"), rt.array(np.ones(64, "u4"))
        rt.finish()
        gates = [cl.UserEvent(rt.context) for _ in range(2)]
        program.blend((64,), None, ones, x, 3, wait_for=[gates[0]])
        startless.undo()
        last = program.blend((64,), None, ones, x, 3, wait_for=[gates[1]])
        for gate in gates:
            gate.set_status(cl.command_execution_status.COMPLETE)
        assert soon(lambda: rt.engine.table.state(last.number) != "held")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What errors that ended a thread said."""
    found: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: found.append(str(args.exc_value)))
    return found


def test_launches_are_moved_along_after_an_error_of_the_driver(
    device: cl.Device, told: list[str]
) -> None:
    with acs.Runtime(device, backend="lanes") as rt:
        program = rt.build(SOURCE)
        x, ones = rt.zeros(64, "u4"), rt.array(np.ones(64, "u4"))
        rt.finish()
        gates = [cl.UserEvent(rt.context) for _ in range(2)]
        backend, main = rt.engine.backend, threading.get_ident()
        poll = backend.poll

        def fail(most: int = 64) -> Any:
            if threading.get_ident() != main and not told:
                raise cl.LogicError("refused for the test")
            return poll(most)

        backend.poll = fail  # type: ignore[method-assign]
        program.blend((64,), None, ones, x, 3, wait_for=[gates[0]])
        assert soon(lambda: bool(told))
        last = program.blend((64,), None, ones, x, 3, wait_for=[gates[1]])
        for gate in gates:
            gate.set_status(cl.command_execution_status.COMPLETE)
        assert soon(lambda: rt.engine.table.state(last.number) != "held")
        backend.poll = poll  # type: ignore[method-assign]
    assert len(told) == 1


class Watch:
    """Something that is called now and then, at first with an error."""

    def __init__(self) -> None:
        self.calls = 0

    def look(self) -> bool:
        self.calls += 1
        if self.calls < 3:
            raise ValueError(f"call {self.calls}")
        return self.calls < 5


def test_a_clock_tells_errors_and_goes_on(told: list[str]) -> None:
    watch = Watch()
    threads.Clock("clock of the test", 0.001, watch.look).start()
    assert soon(lambda: watch.calls == 5)
    assert told == ["call 1", "call 2"]


def test_closing_goes_on_where_an_earlier_call_had_no_time_left(device: cl.Device) -> None:
    """What others launched until the runtime took no more calls may take too long."""
    rt = acs.Runtime(device, backend="lanes")
    engine, released, has_time = rt.engine, list[bool](), iter([True, False])
    drain, close = engine.drain, engine.backend.close

    def cut_off(*args: Any, **more: Any) -> bool:
        return drain(*args, **more) and next(has_time, True)

    def release() -> None:
        released.append(True)
        close()

    engine.drain = cut_off  # type: ignore[method-assign]
    engine.backend.close = release  # type: ignore[method-assign]
    assert not closing.close(engine, quiet=True)
    with pytest.raises(acs.UsageError, match="closed"):
        rt.finish()
    assert not released
    assert closing.close(engine, quiet=True)
    assert closing.close(engine, quiet=True)
    assert released == [True]
