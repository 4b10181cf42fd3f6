"""What the program reads and waits for at once: one call of the core, and where that does not take
it a launch as all others."""

from __future__ import annotations

import contextlib
import random
import threading
from typing import Any

import endless
import inside
import numpy as np
import pyopencl as cl
import pytest
from endless import ENDED, End
from fuzz.threads import in_threads

import acs_cl as acs
from acs_cl import testing, transfers

SOURCE = (
    endless.SOURCE
    + """
kernel void add(global uint *x, uint a) { x[get_global_id(0)] += a; }
"""
)
LASTS_S = 0.5
"""How long an endless kernel lasts, about, where it does not hear of its end."""


class Asked:
    """How many reads were launches as all others."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.launches = 0
        read = transfers.read

        def launched(*args: Any) -> Any:
            self.launches += 1
            return read(*args)

        monkeypatch.setattr(transfers, "read", launched)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, core_reads: None) -> Asked:
    return Asked(monkeypatch)


HOST = ("serial", "out_of_order", "lanes")


@pytest.mark.parametrize("memory", ["svm", "buffers"])
@pytest.mark.parametrize("backend", HOST)
def test_values_are_those_that_were_written_last(
    device: cl.Device, backend: str, memory: str, asked: Asked
) -> None:
    with acs.Runtime(device, backend=backend, memory=memory) as rt:
        add = rt.build(SOURCE).add
        x = rt.zeros((4, 16), "u4")
        out = np.empty((2, 16), "u4")
        strided = np.empty((4, 32), "u4")
        for turn in range(1, 40):
            add((64,), None, x, 1)
            assert x[1, 3:5].get().tolist() == [turn] * 2
            assert x[2:].get(out=out) is out
            assert out.tolist() == [[turn] * 16] * 2
        assert asked.launches == 0
        assert x[:, 2].get().tolist() == [39] * 4  # with gaps
        x.get(out=strided[:, ::2])
        assert strided[:, ::2].tolist() == [[39] * 16] * 4
        assert asked.launches == 2
        assert rt.zeros(()).get().shape == ()
        rt.finish()
        assert testing.is_at_rest(rt)


def test_a_second_wait_leaves_the_memory_of_the_program_alone(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        x, memory = rt.array(range(4), "i4"), np.zeros((4, 2), "i4")
        for out in (memory[:, 0], memory.ravel()[:4]):
            handle = x.get(out=out, wait=False)
            assert handle.wait() is out
            assert out.tolist() == [0, 1, 2, 3]
            out[:] = -1
            assert handle.wait() is out
            assert out.tolist() == [-1] * 4


@pytest.mark.parametrize("backend", HOST)
def test_what_would_overwrite_it_waits(device: cl.Device, backend: str) -> None:
    """Another thread writes while it lasts."""
    with acs.Runtime(device, backend=backend) as rt:
        program = rt.build(SOURCE)
        x = rt.zeros(1, "u4")
        for _ in range(2):  # so that launches are the core's
            x.fill(0)
            program.add((1,), None, x, 1)
        for _ in range(3):
            x.fill(0)
            end = End(rt.device, LASTS_S)
            program.spin((1,), None, x, end.rounds, end.address, writes=x)
            before, found = testing.launched(rt), list[Any]()
            thread = threading.Thread(target=lambda into=found: into.append(x.get()))
            thread.start()
            testing.wait_until(lambda before=before: testing.launched(rt) > before)
            program.add((1,), None, x, 5)
            x.fill(9)
            end.set()
            assert x.get().tolist() == [9]
            thread.join()
            assert found[0].view("i4").tolist() == [ENDED]
        rt.finish()
        assert testing.is_at_rest(rt)


def test_a_read_waits_for_the_writers_of_its_bytes_alone(device: cl.Device) -> None:
    with acs.Runtime(device, backend="lanes") as rt:
        add = rt.build(SOURCE).add
        x = rt.zeros(32, "u4")
        gate = cl.UserEvent(rt.context)
        held = add((16,), None, x[16:], 1, wait_for=[gate])
        add((16,), None, x[:16], 2)
        assert x[:16].get().tolist() == [2] * 16
        assert not held.done
        gate.set_status(cl.command_execution_status.COMPLETE)
        assert x.get().tolist() == [2] * 16 + [1] * 16


def test_behind_a_scheduler_it_is_a_launch(device: cl.Device) -> None:
    try:
        rt = acs.Runtime(device, backend="device")
    except acs.UsageError as error:
        pytest.skip(str(error))
    with rt:
        add = rt.build(SOURCE).add
        rt.prebuild(add)
        x = rt.zeros(16, "u4")
        for turn in range(1, 20):
            add((16,), None, x, 1)
            assert x.get().tolist() == [turn] * 16
        assert rt.stats()["scheduler"]["tasks"] == 19


@pytest.mark.parametrize("backend", HOST)
def test_what_failed_says_why(device: cl.Device, backend: str) -> None:
    with acs.Runtime(device, backend=backend) as rt:
        x, y = rt.zeros(16, "u4"), rt.zeros(16, "u4")
        rt.call(lambda values: 1 / 0, writes=x)
        assert y.get().tolist() == [0] * 16
        with pytest.raises(acs.PoisonedError):
            x.get()
        assert y.get().tolist() == [0] * 16


def test_what_the_core_does_not_take(device: cl.Device, asked: Asked) -> None:
    with acs.Runtime(device, backend="lanes") as rt, acs.Runtime(device) as other:
        queues: Any = rt.engine.backend.core_queues
        x = rt.array(np.arange(4, dtype="u4"))
        host = np.zeros(4, "u4")
        assert queues.read_now(rt.engine, x, host) is True
        assert host.tolist() == [0, 1, 2, 3]
        assert queues.read_now(rt.engine, x, np.zeros(3, "u4")) is None
        assert queues.read_now(rt.engine, x, np.zeros(8, "u4")[::2]) is None
        assert queues.read_now(rt.engine, host, host) is None
        assert queues.read_now(rt.engine, other.zeros(4, "u4"), host) is None
        host.flags.writeable = False
        assert queues.read_now(rt.engine, x, host) is None
        assert asked.launches == 0
        with inside.planned_by_python(rt):
            assert x.get().tolist() == [0, 1, 2, 3]
        assert asked.launches == 1


def test_behind_what_is_held_it_is_a_launch(device: cl.Device) -> None:
    with acs.Runtime(device, backend="lanes") as rt:
        x, y = rt.zeros(4, "u4"), rt.zeros(4, "u4")
        go = threading.Event()
        rt.call(lambda values: go.wait(30) and values.fill(7), writes=x)
        assert y.get().tolist() == [0] * 4
        queues: Any = rt.engine.backend.core_queues
        host = np.zeros(4, "u4")
        found: list[int] = []

        def reads() -> bool:
            number = queues.read_now(rt.engine, x, host)
            found.extend([] if number is None else [number])
            return bool(found)

        testing.wait_until(reads)  # the worker may have the lock
        (number,) = found
        assert type(number) is int
        assert not rt.engine.is_done(number)
        go.set()
        rt.engine.wait(number, "read")
        assert host.tolist() == [7] * 4


@pytest.mark.parametrize("backend", HOST)
def test_threads_read_and_write(device: cl.Device, backend: str) -> None:
    with acs.Runtime(device, backend=backend, window=6) as rt:
        program = rt.build(SOURCE)
        arrays = [rt.zeros(16, "u4") for _ in range(4)]

        def work(which: int) -> None:
            mine, next_one = arrays[which], arrays[(which + 1) % 4]
            for turn in range(1, 60):
                program.add((8,), None, mine[:8], 1)
                next_one[8:].fill(turn)
                assert mine[:8].get().tolist() == [turn] * 8

        in_threads(work, 4)
        for array in arrays:
            assert array.get().tolist() == [59] * 16


def test_one_thread_reads_while_others_launch(device: cl.Device) -> None:
    with acs.Runtime(device, backend="lanes", lanes=2) as rt:
        program = rt.build(SOURCE)
        x, y = rt.zeros(1, "u4"), rt.zeros(16, "u4")
        for _ in range(2):
            program.add((16,), None, y, 1)
        rt.finish()
        end = End(rt.device, LASTS_S)
        program.spin((1,), None, x, end.rounds, end.address, writes=x)
        before, found = testing.launched(rt), list[Any]()
        thread = threading.Thread(target=lambda: found.append(x.get()))
        thread.start()
        testing.wait_until(lambda: testing.launched(rt) > before)
        for _ in range(50):
            program.add((16,), None, y, 1)
        assert not found
        end.set()
        assert y.get().tolist() == [52] * 16
        thread.join()
        assert found[0].view("i4").tolist() == [ENDED]


@pytest.mark.parametrize("backend", HOST)
@pytest.mark.parametrize("memory", ["svm", "buffers"])
@pytest.mark.parametrize("limits", [{}, {"window": 5}, {"issue": "ready_first"}], ids=str)
def test_transfers_of_the_core_are_those_of_python(
    device: cl.Device, backend: str, memory: str, limits: dict[str, Any]
) -> None:
    """Behind host tasks too, of views at any place, and with memory that is dropped meanwhile."""
    for seed in range(4):
        found = []
        for by_core in (True, False):
            rng = random.Random(seed)
            with acs.Runtime(device, backend=backend, memory=memory, **limits) as rt:
                program = rt.build(SOURCE)
                rows = rt.array(np.arange(6 * 16, dtype="u4").reshape(6, 16))
                seen: list[Any] = []
                read: list[acs.Handle] = []
                made = testing.made_by_core(rt)
                with contextlib.nullcontext() if by_core else inside.planned_by_python(rt):
                    for step in range(120):
                        if step % 30 == 15:  # what waits for a host task is not the core's
                            rt.finish()
                        x, y = (
                            rows[rng.randrange(6), at : at + 8]
                            for at in (rng.choice([0, 4, 8]), rng.choice([0, 4, 8]))
                        )
                        kind = rng.randrange(8)
                        if kind == 0:
                            host = np.arange(step, step + 8, dtype="u4")
                            x.set(host)
                            host[:] = 7  # it was copied
                        elif kind == 1:
                            x.set(np.full(8, step, "u4"), copy=False)
                        elif kind == 2:
                            x.fill(step)
                        elif kind == 3:
                            y.copy_from(x)
                        elif kind == 4:
                            read.append(x.get(wait=False))
                        elif kind == 5:
                            apart = rt.empty(8, "u4")
                            apart.copy_from(x)
                            y.copy_from(apart)
                        elif kind == 6:
                            program.add((8,), None, x, step)
                        elif rng.random() < 0.5:
                            rt.call(lambda a, seen=seen: seen.append(a.tolist()), reads=[x])
                made = testing.made_by_core(rt) - made
                assert made if by_core and not limits else made >= 0
                values = rows.get().tolist(), [one.wait().tolist() for one in read]
                rt.finish()
                assert testing.is_at_rest(rt)
                found.append((*values, sorted(seen)))
        assert found[0] == found[1], f"seed {seed}"


@pytest.mark.parametrize("backend", HOST)
def test_what_the_core_overwrites_is_good_again(device: cl.Device, backend: str) -> None:
    with acs.Runtime(device, backend=backend) as rt:
        x, y = rt.zeros(4, "u4"), rt.zeros(4, "u4")
        rt.finish()
        go = threading.Event()
        rt.call(lambda values: go.wait(30) and 1 / 0, writes=x)
        handles = [x.fill(3), y.fill(4)]
        launches = [rt.engine.table.launch(handle.number) for handle in handles]
        for handle, launch in zip(handles, launches, strict=True):
            if launch is not None:  # it has not ended
                assert launch.access == handle.access
                assert launch.access.overwrites == launch.access.writes
        go.set()
        assert x.get().tolist() == [3] * 4
        with pytest.raises(acs.PoisonedError, match="division"):
            rt.finish()
