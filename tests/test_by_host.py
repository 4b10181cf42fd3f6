"""Short transfers that the host makes by itself, where it sees the device's memory.

The oracle is NumPy in program order. What is in flight is held by a user event, so that the host
has to wait for it, or to leave the transfer to a lane.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import numpy as np
import pyopencl as cl
import pytest
from fuzz.threads import in_threads
from test_queues import held

import acs_cl as acs

SOURCE = """
kernel void put(global uint *x, uint a) { x[get_global_id(0)] = a; }
kernel void slow(global uint *x, uint n)
{ uint v = x[0]; for (uint i = 0; i < n; ++i) v = v * 1664525u + 1013904223u; x[0] = v % 2 + 5; }
kernel void add(global const uint *x, global uint *y) { size_t i = get_global_id(0); y[i] += x[i]; }
"""
N = 64
COMPLETE = cl.command_execution_status.COMPLETE


@pytest.fixture(params=["serial", "out_of_order", "lanes", "device"])
def rt(request: pytest.FixtureRequest, device: cl.Device) -> Iterator[acs.Runtime]:
    with acs.Runtime(device, backend=request.param) as made:
        if not made.engine.store.is_seen:
            pytest.skip("the host does not see this device's memory")
        yield made


def commands(rt: acs.Runtime) -> int:
    """Count the commands that lanes got."""
    return sum(rt.engine.backend.core_queues.used())  # type: ignore[union-attr]


def test_nothing_in_flight_uses_the_bytes_so_the_host_copies_them(rt: acs.Runtime) -> None:
    prog, x, y = rt.build(SOURCE), rt.zeros(N, "u4"), rt.zeros((4, N), "u4")
    rt.finish()
    before = commands(rt)
    assert x.set(np.arange(N)).wait() is None
    assert x.get().tolist() == list(range(N))
    y[1].fill(7)
    y[2, 8:16].set(9)
    y[3].copy_from(x)
    want = np.zeros((4, N), "u4")
    want[1], want[2, 8:16], want[3] = 7, 9, np.arange(N)
    assert (y.get() == want).all()
    z = rt.array(np.arange(N), "u4")
    assert commands(rt) == before
    prog.add((N,), None, x, z)
    assert z.get().tolist() == list(range(0, 2 * N, 2))


def test_what_is_in_flight_comes_first(rt: acs.Runtime) -> None:
    prog, x, y = rt.build(SOURCE), rt.zeros(N, "u4"), rt.zeros(N, "u4")
    for value in range(1, 20):
        gate = cl.UserEvent(rt.context)
        prog.put((N,), None, x, value, wait_for=[gate])
        prog.add((N,), None, x, y)
        x.set(np.full(N, 100 * value))  # behind both
        y[: N // 2].fill(3)
        threading.Timer(0.001, lambda gate=gate: gate.set_status(COMPLETE)).start()
        assert y.get().tolist() == [3] * (N // 2) + [value * (value + 1) // 2] * (N // 2)
        assert x.get().tolist() == [100 * value] * N


@pytest.mark.parametrize("transfers", [1, 2])
def test_a_host_task_waits_for_what_is_before_a_transfer(rt: acs.Runtime, transfers: int) -> None:
    """The transfer has ended before the launch that was made before it."""
    prog, x = rt.build(SOURCE), rt.zeros(N, "u4")
    for _ in range(3):
        x.fill(1)
        prog.slow((1,), None, x, 5_000_000)
        for _ in range(transfers):
            rt.array([1, 2], "u4")
        assert rt.call(lambda values: values[:2].tolist(), reads=x).wait() == [6, 1]


def test_memory_that_something_in_flight_still_uses_is_not_written(rt: acs.Runtime) -> None:
    prog = rt.build(SOURCE)
    for value in range(20):
        x, gate = rt.zeros(N, "u4"), cl.UserEvent(rt.context)
        prog.put((N,), None, x, 1, wait_for=[gate])
        del x  # the next array may get its bytes
        y = rt.array(np.full(N, value), "u4")
        gate.set_status(COMPLETE)
        rt.finish()
        assert y.get().tolist() == [value] * N


def test_foreign_memory_is_left_to_the_driver(rt: acs.Runtime) -> None:
    """The host may not look at coarse-grained memory of the program without a map."""
    memory = cl.SVMAllocation(rt.context, 4 * N, 0, cl.svm_mem_flags.READ_WRITE)
    prog, x = rt.build(SOURCE), rt.zeros(N, "u4")
    for value in (1, 2, 3):
        prog.put((N,), None, memory, value)
        prog.add((N,), None, memory, x)
    assert x.get().tolist() == [6] * N


@pytest.mark.parametrize("seed", range(4))
def test_random_programs_of_two_threads(rt: acs.Runtime, seed: int) -> None:
    """Each thread has arrays of its own in one slab, and knows their values."""
    prog = rt.build(SOURCE)

    def run(who: int) -> None:
        choose = random.Random(10 * seed + who)
        arrays, host = [rt.zeros(N, "u4") for _ in range(4)], np.zeros((4, N), "u4")
        for step in range(300):
            at, other = choose.sample(range(4), 2)
            begin = choose.randrange(N)
            match choose.randrange(6):
                case 0:
                    arrays[at][begin:].set(np.full(N - begin, step))
                    host[at, begin:] = step
                case 1:
                    arrays[at].fill(step)
                    host[at] = step
                case 2:
                    arrays[at].copy_from(arrays[other])
                    host[at] = host[other]
                case 3 | 4:
                    prog.add((N,), None, arrays[other], arrays[at])
                    host[at] += host[other]
                case _:
                    assert (arrays[at].get() == host[at]).all(), (seed, who, step)
        for array, values in zip(arrays, host, strict=True):
            assert (array.get() == values).all()

    in_threads(run, 2)


def test_a_host_task_copies_what_is_there_when_it_runs(rt: acs.Runtime) -> None:
    prog, x, y = rt.build(SOURCE), rt.zeros(N, "u4"), rt.zeros((2, N), "u4")

    def twice(values: np.ndarray, row: np.ndarray) -> None:
        row[:] = 2 * values

    for value in range(1, 10):
        prog.put((N,), None, x, value)
        task = rt.call(twice, reads=x, writes=y[1])
        prog.put((N,), None, x, 0)  # behind what the task reads
        prog.add((N,), None, y[1], y[0])
        task.wait()
    assert y.get().tolist() == [[90] * N, [18] * N]


def test_a_host_task_waits_for_more_than_the_transfer_before_it(device: cl.Device) -> None:
    """It followed the launch before it alone, and that had ended by the host."""
    with acs.Runtime(device, backend="serial") as rt:
        if not rt.engine.store.is_seen:
            pytest.skip("the host does not see this device's memory")
        prog, x, y = rt.build(SOURCE), rt.zeros(N, "u4"), rt.zeros(N, "u4")
        found: list[int] = []
        prog.put((N,), None, x, 1)
        rt.finish()
        before = rt.stats()["by_host"]
        with held(rt.engine.backend.queues):
            prog.put((N,), None, x, 2)
            y.fill(3)
            by_host = rt.stats()["by_host"] - before
            task = rt.call(lambda values: found.extend(values.tolist()), reads=x)
            state = rt.engine.table.state(task.number)
        rt.finish()
        assert (by_host, state, found) == (1, "pending", [2] * N)
