"""Threads that launch give turns to those of ours that work beside the program.

Python is asked not to switch threads by itself here, and a lock of ours stands for launches: who
takes it keeps the GIL. So another thread gets on by turns only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import pytest

import acs_cl as acs
from acs_cl import core
from acs_cl.host import threads

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="turns are for Linux")
LASTS_S = 0.3


@contextmanager
def no_switches() -> Iterator[None]:
    """Have Python leave the GIL to a thread until that gives it up."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(60)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def launch_for(seconds: float) -> None:
    """Take a lock of ours again and again."""
    lock, until = core.native.Lock(), perf_counter() + seconds
    while perf_counter() < until:
        with lock:
            pass


def done_beside(work: Callable[[], object], wanted: bool) -> int:
    """Return how often a thread did its work while this one launched."""
    done, at_work, ends = [0], threading.Event(), threading.Event()

    def run() -> None:
        with threads.turns(wanted):
            at_work.set()
            while not ends.is_set():
                work()
                done[0] += 1

    thread = threading.Thread(target=run)
    with no_switches():
        thread.start()
        at_work.wait()
        before = done[0]
        launch_for(LASTS_S)
        found = done[0] - before
        ends.set()
    thread.join()
    return found


def switches() -> int:
    """Return how often this thread has given up its processor."""
    status = Path(f"/proc/self/task/{threading.get_native_id()}/status").read_text()
    return int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])


def test_a_thread_that_reads_files_gets_on_by_turns_only(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(1 << 20))
    # a process of its own: beside a build that an earlier test has begun, every thread gets turns
    code = (
        "import pathlib, sys, test_turns\n"
        "read = pathlib.Path(sys.argv[1]).read_bytes\n"
        "print(*(test_turns.done_beside(read, wanted) for wanted in (False, True)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    without, with_turns = map(int, done.stdout.split())
    assert without <= 2
    assert with_turns >= 10


def test_a_thread_has_turns_until_its_block_ends() -> None:
    found = []

    def run() -> None:
        found.append(core.native.want_turns(False))
        with threads.turns():
            with threads.turns(wanted=False):
                found.append(core.native.want_turns(False))
            found.append(core.native.want_turns(True))
        found.append(core.native.want_turns(False))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [False, False, True, False]


def test_host_tasks_have_turns(rt: acs.Runtime) -> None:
    x, found = rt.zeros(4, "f4"), list[bool]()
    rt.call(lambda x: found.append(core.native.want_turns(True)), reads=[x]).wait()
    assert found == [True]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_gives_no_turns_to_threads_of_its_parent() -> None:
    ends, at_work = threading.Event(), threading.Event()

    def run() -> None:
        with threads.turns():
            at_work.set()
            ends.wait()

    thread = threading.Thread(target=run)
    thread.start()
    at_work.wait()
    child = os.fork()
    if not child:
        before = switches()
        launch_for(LASTS_S)
        os._exit(min(switches() - before, 255))
    _, status = os.waitpid(child, 0)
    ends.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) <= 3
