"""Ctrl-C: heard while the device works, without a launch or a value lost, and the program can end.

Signals come at random moments, by a timer, since that is what is tested. `make signals` sends many
more (`interrupts.py`).
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import uuid4

import endless
import inside
import pyopencl as cl
import pytest
from endless import ENDED, End
from interrupted_programs import SOURCE
from interrupts import BACKENDS, interrupted
from sampling import EVERY, SAMPLE

import acs_cl as acs
from acs_cl import at_exit, core, testing
from acs_cl.launch import waits
from acs_cl.launch.books import Books
from acs_cl.opencl_c.modes import bodies
from acs_cl.testing.changing import changed

CALLS_EVERY = 3
"""One call in so many is interrupted in a sample; `make signals` takes all, and often."""

LASTS_S = 1.0
"""How long an endless kernel lasts, about, where it does not hear of its end."""

NEVER_S = 1e6
"""Longer than any test."""

ENDLESS = """
import sys
import acs_cl as acs
from acs_cl import at_exit
at_exit.GRACE_S = {grace_s}
rt = acs.Runtime(backend="{backend}", watchdog_s={watchdog_s})
program = rt.build("kernel void spin(global volatile int *x) {{ while (x[0] == 0) ; x[1] = 1; }}")
x = rt.zeros(64, "i4")
x.fill(1)
program.spin((1,), None, x).wait()
x.fill(0).wait()
program.spin((1,), None, x)
print("runs", flush=True)
{then}
"""


@contextmanager
def interrupt() -> Iterator[None]:
    """Send SIGINT to this process once its main thread waits inside the library."""

    def send() -> None:
        inside.wait_until_it_stands_still(threading.main_thread())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        with suppress(KeyboardInterrupt):  # too late for the block, and nothing to end the suite by
            thread.join()


@pytest.mark.parametrize("backend", BACKENDS)
def test_everything_goes_on_after_ctrl_c_at_random_moments(backend: str) -> None:
    every = 1 if EVERY else CALLS_EVERY
    found, said = interrupted(backend, signals=1, seed=SAMPLE, every=every)
    bad = [one for one in found if one.wrong or one.errors or one.hangs]
    assert not bad, said[-3000:]
    assert sum(one.signals for one in found) >= 10 // every


@pytest.mark.rotate("call", 2)
@pytest.mark.parametrize("call", ["get", "wait", "finish", "close"])
@pytest.mark.parametrize("backend", BACKENDS[:-1])
def test_ctrl_c_is_heard_while_a_kernel_runs(device: cl.Device, backend: str, call: str) -> None:
    rt, end = acs.Runtime(device, backend=backend), End(device, LASTS_S)
    spin, x = rt.build(endless.SOURCE).spin, rt.zeros(1, "i4")
    spin((1,), None, x, 1, 0, writes=x).wait()
    handle = spin((1,), None, x, end.rounds, end.address, writes=x)
    calls = {"get": x.get, "wait": handle.wait, "finish": rt.finish, "close": rt.close}
    with pytest.raises(KeyboardInterrupt) as caught, interrupt():
        calls[call]()
    is_done = handle.done
    end.set()
    assert not is_done
    assert sys.version_info < (3, 11) or "(spin)" in str(caught.value.__notes__)  # 3.10 has none
    assert x.get().tolist() == [ENDED]
    rt.close()


@pytest.mark.parametrize("backend", ["lanes", "device"])
def test_what_is_under_way_is_named_under_the_lock(device: cl.Device, backend: str) -> None:
    """Otherwise other threads may change the table meanwhile."""
    named, held = waits.under_way, list[bool]()

    def noted(books: Books) -> str:
        held.append(books.lock.is_owned())
        return named(books)

    rt, end = acs.Runtime(device, backend=backend), End(device, LASTS_S)
    spin, x = rt.build(endless.SOURCE).spin, rt.zeros(1, "i4")
    spin((1,), None, x, 1, 0, writes=x).wait()
    handle = spin((1,), None, x, end.rounds, end.address, writes=x)
    with changed(waits, "under_way", noted), pytest.raises(KeyboardInterrupt), interrupt():
        handle.wait()
    end.set()
    assert all(held)
    assert held or sys.version_info < (3, 11)  # which has no notes
    assert x.get().tolist() == [ENDED]
    rt.close()


@pytest.mark.parametrize(
    ("backend", "then", "watchdog_s"),
    [
        ("lanes", "x.get()", None),
        ("device", "with rt:\n    x.get()", None),
        ("lanes", "with rt:\n    x.get()", 600),
    ],
)
def test_a_kernel_that_never_ends_can_be_interrupted(
    backend: str, then: str, watchdog_s: float | None
) -> None:
    code, said = end_of(backend, then, signals=1, watchdog_s=watchdog_s)
    assert code in (-signal.SIGINT, at_exit.INTERRUPTED)
    assert "acs_cl: interrupted; still running: launch 5 (spin)" in said


def test_another_ctrl_c_ends_at_once() -> None:
    """Without waiting for the kernel any more."""
    _, said = end_of("serial", "x.get()", signals=2, grace_s=NEVER_S)
    assert "still running" in said


def test_a_program_that_catches_ctrl_c_ends_too() -> None:
    then = "try:\n    x.get()\nexcept KeyboardInterrupt:\n    print('caught', flush=True)"
    code, said = end_of("serial", then, signals=2)
    assert code in (-signal.SIGINT, at_exit.INTERRUPTED)
    assert "still running" in said


def test_a_command_that_runs_a_program_ends_too(tmp_path: Path) -> None:
    """The program's runtime is collected while the command says that it was interrupted."""
    code, said = end_of("lanes", "x.get()", signals=2, path=tmp_path / "program.py")
    assert code in (-signal.SIGINT, at_exit.INTERRUPTED)
    assert said.startswith("acs-cl run: interrupted\n")
    assert "still running: launch 5 (spin)" in said


def test_ctrl_c_before_the_first_line_of_what_is_called_at_exit_is_not_lost() -> None:
    told = []

    def call(again: bool) -> None:
        told.append(again)
        if len(told) < 3:
            raise KeyboardInterrupt

    core.native.call_to_the_end(call)
    assert told == [False, True, True]
    with pytest.raises(ZeroDivisionError):
        core.native.call_to_the_end(lambda again: 1 / 0)


def end_of(
    backend: str,
    then: str,
    signals: int,
    path: Path | None = None,
    watchdog_s: float | None = None,
    grace_s: float = at_exit.GRACE_S,
) -> tuple[int, str]:
    """How a program with an endless kernel ends that gets SIGINT: its status, and what it says.
    `path`: where it is written, for `acs-cl run`. `grace_s`: how long it waits for the kernel.
    Another signal is sent when it has shown that it heard the first one, and then every few
    seconds: while an interpreter ends, code of others may drop one."""
    text = ENDLESS.format(backend=backend, then=then, watchdog_s=watchdog_s, grace_s=grace_s)
    command = ["-c", text]
    if path is not None:
        path.write_text(text, "utf-8")
        command = ["-m", "acs_cl", "run", str(path)]
    process = subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"ACS_PLANTED": "(spin)"},  # a suite under a watchdog counts it apart
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    said = ""
    try:
        for turn in range(signals):
            if turn and "caught" in then:
                process.stdout.readline()
            elif turn:
                while "another Ctrl-C" not in (line := process.stderr.readline()) and line:
                    said += line
            process.send_signal(signal.SIGINT)
        for _ in range(12):
            with suppress(subprocess.TimeoutExpired):
                _, rest = process.communicate(timeout=5)
                break
            if signals > 1:
                process.send_signal(signal.SIGINT)
        else:
            raise AssertionError(f"it did not end; stderr: {said}")
    finally:
        process.kill()
    return process.returncode, said + rest


GIVEN_UP = """
import sys
import acs_cl as acs
from acs_cl.errors import StalledError
rt = acs.Runtime(backend="out_of_order", watchdog_s=0.3)
program = rt.build("kernel void spin(global volatile int *x) { while (x[0] == 0) ; x[1] = 1; }")
x = rt.zeros(64, "i4")
program.spin((1,), None, x)
print("said", end="")
try:
    x.get()
except StalledError:
    sys.exit(3)
"""


def test_a_program_with_a_kernel_that_was_given_up_ends_with_its_own_status() -> None:
    """While the interpreter ended, PoCL's kernel lost the memory that it used, and crashed."""
    done = subprocess.run(
        [sys.executable, "-c", GIVEN_UP], capture_output=True, text=True, timeout=300, check=False,
        env=os.environ | {"ACS_CL_WATCHDOG": ""},
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert done.stdout == "said"
    assert "acs_cl: given up; still running: launch 2 (spin)" in done.stderr


def test_a_signal_waits_until_the_lock_was_given_back() -> None:
    lock, seen = core.native.Lock(), []

    def signalled() -> None:
        with lock:
            signal.raise_signal(signal.SIGINT)
            seen.append("inside")
            with lock:
                seen.append("inside twice")

    with pytest.raises(KeyboardInterrupt):
        signalled()
    assert seen == ["inside", "inside twice"]
    assert not lock.is_owned()


def ended(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, to its end."""
    words = [sys.executable, "-c", program]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)


BEFORE_THE_CORE = """
import signal
import pyopencl as cl
context = cl.create_some_context(interactive=False)  # LLVM may put a handler before Python's
from acs_cl import core
lock = core.native.Lock()
try:
    with lock:
        signal.raise_signal(signal.SIGINT)
        print("inside")
except KeyboardInterrupt:
    print("after")
"""


def test_the_first_signal_waits_too_where_the_driver_came_before_the_core() -> None:
    done = ended(BEFORE_THE_CORE)
    assert (done.stdout.split(), done.returncode) == (["inside", "after"], 0), done.stderr


def test_no_python_runs_as_graphs_and_their_kernels_go() -> None:
    """A signal that comes in Python code that a finalizer runs would be lost."""
    source = "kernel void put(global int *x, int a) { x[get_global_id(0)] = a; }"
    with acs.Runtime(backend="lanes") as rt:
        x, file = rt.zeros(4, "i4"), io.BytesIO()
        with rt.record() as graph:
            rt.build(source).put((4,), None, x, 7)
        graph.save(file, x=x)
        loaded = [graph, rt.load(file), rt.load(file)]
        del graph
        for one in loaded:
            one.replay()
        rt.finish()
        ran: list[str] = []

        def note(frame: FrameType, what: str, of: object) -> None:
            if what == "call":
                ran.append(frame.f_code.co_name)

        sys.setprofile(note)
        try:
            loaded.clear()
        finally:
            sys.setprofile(None)
    assert not ran


def test_a_new_handler_of_another_signal_waits_too() -> None:
    class ToldError(Exception):
        pass

    def tell(*_: object) -> None:
        raise ToldError

    def signalled() -> None:
        with lock:
            signal.raise_signal(signal.SIGUSR1)
            seen.append("inside")

    lock, seen = core.native.Lock(), []
    before = signal.signal(signal.SIGUSR1, tell)
    try:
        assert signal.getsignal(signal.SIGUSR1) is tell
        with pytest.raises(ToldError):
            signalled()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == ["inside"]


LAUNCHES_IN_A_HANDLER = """
import signal
import acs_cl as acs

rt = acs.Runtime(backend="serial")
inc = rt.build("kernel void inc(global int *x) { x[get_global_id(0)]++; }").inc
x, launches = rt.zeros(64, "i4"), 0

def launch(*_):
    global launches
    launches += 1
    inc((64,), None, x)

signal.signal(signal.SIGALRM, launch)
signal.setitimer(signal.ITIMER_REAL, 1e-5, 5e-4)
for _ in range(40):
    inc((64,), None, x)
    x.get()
signal.setitimer(signal.ITIMER_REAL, 0)
values = set(x.get().tolist())
assert launches and values == {launches + 40}, (launches, values)
"""


def test_a_handler_may_launch_what_is_launched_for_the_first_time(own_cache: Path) -> None:
    done = ended(LAUNCHES_IN_A_HANDLER)
    assert done.returncode == 0, done.stderr


@contextmanager
def interrupted_readings() -> Iterator[list[str]]:
    """Send SIGINT while a body is read. Yield what was done then: `sent`, and `read` at its end."""
    done, analyse = [], bodies.analyse

    def analysed(*about: Any) -> Any:
        if not done:
            done.append("sent")
            signal.raise_signal(signal.SIGINT)
        found = analyse(*about)
        done.append("read")
        return found

    with changed(bodies, "analyse", analysed):
        yield done


def read_anew() -> str:
    """A source that nobody has read."""
    return f"kernel void put(global int *x, int a) {{ x[get_global_id(0)] = a; }} // {uuid4()}"


def test_ctrl_c_is_heard_while_a_source_is_read(device: cl.Device) -> None:
    with acs.Runtime(device, backend="lanes") as rt:
        put, x = rt.build(read_anew()).put, rt.zeros(8, "i4")
        with interrupted_readings() as done, pytest.raises(KeyboardInterrupt):
            put((8,), None, x, 3)
        assert done == ["sent"]
        assert not x.get().any()
        put((4,), None, x[:4], 5)
        assert x.get().tolist() == [5] * 4 + [0] * 4


def test_a_handler_that_raises_nothing_has_a_source_read_anew(device: cl.Device) -> None:
    with acs.Runtime(device, backend="lanes") as rt:
        put, x = rt.build(read_anew()).put, rt.zeros(8, "i4")

        def launch(*_: object) -> None:
            put((4,), None, x[4:], 7)

        before = signal.signal(signal.SIGINT, launch)
        try:
            with interrupted_readings() as done:
                put((4,), None, x[:4], 5)
        finally:
            signal.signal(signal.SIGINT, before)
        assert done == ["sent", "read", "read"]  # by the handler first
        assert x.get().tolist() == [5] * 4 + [7] * 4


def test_waits_on_a_cpu_need_no_thread_of_ours_and_may_be_left(device: cl.Device) -> None:
    if "PoCL" not in device.opencl_c_version:
        pytest.skip("a driver may run no command for which nobody waits, or call back late")
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    before = set(os.listdir("/proc/self/task"))
    for turn in range(3):
        gate = cl.UserEvent(context)
        event = cl.enqueue_marker(queue, wait_for=[gate])
        queue.flush()
        for _ in range(4):
            assert not core.native.wait_for_event(event.int_ptr, 0.01 * turn)
        assert set(os.listdir("/proc/self/task")) <= before, "a thread was started"
        gate.set_status(cl.command_execution_status.COMPLETE)
        assert core.native.wait_for_event(event.int_ptr)
        assert event.command_execution_status == cl.command_execution_status.COMPLETE


def test_a_bounded_wait_ends_on_each_thread(device: cl.Device) -> None:
    """On any but the main one it ended only with the event."""
    context = cl.Context([device])
    queue, gate, found = cl.CommandQueue(context), cl.UserEvent(context), list[bool]()
    event = cl.enqueue_marker(queue, wait_for=[gate])
    queue.flush()
    thread = threading.Thread(
        target=lambda: found.append(core.native.wait_for_event(event.int_ptr, 0.01))
    )
    thread.start()
    thread.join(30)
    gate.set_status(cl.command_execution_status.COMPLETE)
    thread.join()
    assert found == [False]


def test_a_wait_with_a_lock_ends_by_a_signal_and_has_the_lock_again() -> None:
    lock = core.native.Lock()
    timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))
    with lock:  # for which a signal waits that comes before the wait
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            lock.wait(0, 30)
        assert lock.is_owned()
    timer.join()
    assert not lock.is_owned()


@pytest.mark.parametrize(
    ("call", "moment"),
    [
        ("finish", "before an end is noted"),
        ("get", "before an end is noted"),
        ("get", "before ends are told"),
    ],
)
@pytest.mark.parametrize("backend", ["lanes", "out_of_order"])
def test_what_ended_is_kept_when_noting_it_fails(
    backend: str, call: str, moment: str, request: pytest.FixtureRequest
) -> None:
    """Python asks what has ended, or the core has seen it in a call of its own, and tells it."""
    if moment == "before ends are told":
        request.getfixturevalue("core_reads")
    with acs.Runtime(backend=backend) as rt:
        add, x = rt.build(SOURCE).add, rt.zeros(16, "i4")
        add((16,), None, x, 10)  # the first of its kind is made by Python, which is told of its end
        with testing.interrupted(moment, MemoryError()) as raised:
            with pytest.raises(MemoryError):
                {"finish": rt.finish, "get": x.get}[call]()
            rt.finish()
        assert raised
        assert testing.is_at_rest(rt)
        assert (x.get() == 1).all()


@pytest.mark.parametrize("moment", ["before an end is noted", "before ends are told"])
def test_ends_of_the_cores_own_launches_need_nobody_to_note_them(moment: str) -> None:
    with acs.Runtime(backend="lanes") as rt:
        x = rt.zeros(16, "i4")
        with testing.interrupted(moment, MemoryError()) as raised:
            x.fill(1)
            rt.finish()
            assert (x.get() == 1).all()
            rt.finish()
        assert not raised
        assert testing.is_at_rest(rt)


def test_the_tool_is_interrupted_in_the_background_of_a_shell_too() -> None:
    ignoring = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    tool = os.path.join(os.path.dirname(__file__), "interrupts.py")
    some = ["--backends", "serial", "--signals", "4", "--every", "12"]
    done = subprocess.run([*ignoring, sys.executable, tool, *some], capture_output=True, text=True)
    assert json.loads(done.stdout.splitlines()[-1])["inside"] > 0, done.stdout + done.stderr
