"""One runtime, several threads: each keeps its own program order; what they share they only read.

What threads with random programs of their own do to one another is in test_random_programs.py.
"""

from __future__ import annotations

import threading

import numpy as np
import pyopencl as cl
import pytest
from fuzz.threads import THREADS, in_threads

import acs_cl as acs

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
