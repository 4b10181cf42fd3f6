"""What the program reads and waits for at once: the driver's blocking call, and where that is not
taken a launch."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from conftest import in_threads
from twins import needs_core

import acs_cl as acs
from acs_cl import reading

SOURCE = """
kernel void add(global uint *x, uint a) { x[get_global_id(0)] += a; }
kernel void slow(global uint *x, int turns)
{ uint v = x[get_global_id(0)] + 1;
  for (int i = 0; i < turns; i++) { v ^= v << 13; v ^= v >> 17; v ^= v << 5; }
  x[get_global_id(0)] = v; }
"""


class Asked:
    """How often a read was made at once, and how often as a launch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at_once = self.launches = 0
        at_once, read = reading._at_once, reading.read

        def counted(*args: Any) -> bool:
            done = at_once(*args)
            self.at_once += done
            return done

        def launched(*args: Any) -> Any:
            self.launches += 1
            return read(*args)

        monkeypatch.setattr(reading, "_at_once", counted)
        monkeypatch.setattr(reading, "read", launched)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


HOST = ("serial", "out_of_order", "lanes")


@needs_core
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
        assert asked.at_once == 78
        assert asked.launches == 0
        assert x[:, 2].get().tolist() == [39] * 4  # with gaps
        x.get(out=strided[:, ::2])
        assert strided[:, ::2].tolist() == [[39] * 16] * 4
        assert asked.at_once == 78
        assert asked.launches == 2
        assert rt.zeros(()).get().shape == ()
        rt.finish()
        assert rt._hazards.live == len(rt._launches) == len(rt._window) == 0


@needs_core
@pytest.mark.parametrize("backend", HOST)
def test_what_would_overwrite_it_waits(
    device: cl.Device, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread writes while it lasts, of which no queue knows."""
    inside, go = threading.Event(), threading.Event()
    plain = reading.driver.wait_for_read

    def late(*args: Any) -> Any:
        inside.set()
        assert go.wait(30)
        return plain(*args)

    with acs.Runtime(device, backend=backend) as rt:
        add = rt.build(SOURCE).add
        x, y = rt.zeros(16, "u4"), rt.zeros(16, "u4")
        for _ in range(3):  # so that launches are the core's
            add((16,), None, x, 1)
            add((16,), None, y, 1)
        rt.finish()
        with monkeypatch.context() as patch:
            patch.setattr(reading.driver, "wait_for_read", late)
            found: list[Any] = []
            thread = threading.Thread(target=lambda: found.append(x.get()))
            thread.start()
            assert inside.wait(30)
            patch.setattr(reading.driver, "wait_for_read", plain)
            behind = [add((16,), None, x, 5), x[:4].fill(9)]
            if backend != "serial":  # where everything is behind
                other = add((16,), None, y, 1)
                other.wait()
                assert y.get().tolist() == [4] * 16
            assert not any(one.done for one in behind)
            go.set()
            thread.join()
        assert found[0].tolist() == [3] * 16
        assert x.get().tolist() == [9] * 4 + [8] * 12
        rt.finish()
        assert rt._hazards.live == len(rt._launches) == 0


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


@needs_core
def test_a_refused_call_is_made_again_as_a_launch(
    device: cl.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading.driver, "wait_for_read", lambda *args: -5)
    with acs.Runtime(device, backend="lanes") as rt:
        x = rt.zeros(16, "u4")
        x.fill(3)
        assert x.get().tolist() == [3] * 16
        x.fill(4)
        assert x.get().tolist() == [4] * 16


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
            program.slow((1,), None, x, 1)
        rt.finish()
        program.slow((1,), None, x, 300_000_000)
        thread = threading.Thread(target=x.get)
        thread.start()
        time.sleep(0.02)
        for _ in range(50):
            program.add((16,), None, y, 1)
        assert thread.is_alive()
        assert y.get().tolist() == [52] * 16
        thread.join()
