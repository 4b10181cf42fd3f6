"""Launches with `offset=`, and with `wait_for=` where all has ended: the core makes them by itself,
and they are what Python makes of them."""

from __future__ import annotations

import re
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl import testing

SOURCE = """
kernel void add(global const int *x, global int *y, int a)
{ int i = get_global_id(0); y[i] += x[i] + a; }
kernel void flat(global int *y)
{ y[get_global_id(1) * 8 + get_global_id(0)] += 1 + get_global_offset(1); }
"""
LAUNCHES = 40
BACKENDS = ["serial", "out_of_order", "lanes", "device", "auto"]


def made_on(device: cl.Device, backend: str, **options: Any) -> acs.Runtime:
    try:
        return acs.Runtime(device, backend=backend, **options)
    except acs.UsageError as why:
        pytest.skip(str(why))


@pytest.mark.parametrize("backend", BACKENDS)
def test_launches_with_an_offset_go_the_short_way(device: cl.Device, backend: str) -> None:
    with made_on(device, backend) as rt, inside.calls_by_python() as long_way:
        program = rt.build(SOURCE)
        rt.prebuild(program.add, program.flat)
        x, y, z = rt.array(np.arange(32), "i4"), rt.zeros(32, "i4"), rt.zeros((4, 8), "i4")
        flag = rt.array([0], "i4")

        def step() -> list[Any]:
            made = [program.add((8,), None, x, y, 1, offset=(8 * at,)) for at in range(4)]
            made.append(program.add((8,), None, x, y, 1, offset=[24], when=flag))
            made.append(program.add((8,), None, x, y, 1))
            made.append(program.flat((4, 2), None, z, offset=(4, 2)))
            return made

        for _ in range(3):
            step()
        rt.finish()
        before = len(long_way)
        for _ in range(LAUNCHES):
            made = step()
            for at in range(4):
                assert made[at].access.writes == y[8 * at : 8 * at + 8].spans
            assert made[5].access.writes == y[:8].spans
        # on `auto` Python decides now and then where launches go
        assert len(long_way) - before < LAUNCHES * (4 if backend == "auto" else 0.5)
        turns = LAUNCHES + 3
        times = np.where(np.arange(32) < 8, 2 * turns, turns)
        assert y.get().tolist() == ((np.arange(32) + 1) * times).tolist()
        expected = np.zeros((4, 8), "i4")
        expected[2:, 4:] = 3 * turns
        assert z.get().tolist() == expected.tolist()


def test_wrong_offsets_are_refused_after_right_ones_as_before(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        program = rt.build(SOURCE)
        x, y = rt.array(np.arange(32), "i4"), rt.zeros(32, "i4")
        wrong: list[Any] = [(-1,), (1, 2), (2**64 - 1,), "a", (1.5,), (), (30,), (2**70,)]
        said = []
        for _ in range(2):
            for offset in wrong:
                with pytest.raises(acs.UsageError) as caught:
                    program.add((8,), None, x, y, 1, offset=offset)
                said.append(re.sub(r"launch \d+", "launch", str(caught.value)))
            for _ in range(3):
                program.add((8,), None, x, y, 0, offset=(24,))
        assert said[: len(wrong)] == said[len(wrong) :]
        assert y.get().tolist() == [0] * 24 + [6 * i for i in range(24, 32)]


@pytest.mark.parametrize("backend", ["lanes", "device"])
def test_launches_in_bands_keep_their_offset(device: cl.Device, backend: str) -> None:
    """Those with an offset are Python's where others go in bands."""
    with made_on(device, backend, bands=2) as rt:
        program = rt.build(SOURCE)
        x, y = rt.array(np.arange(32), "i4"), rt.zeros(32, "i4")
        for _ in range(4):
            program.add((8,), (4,), x, y, 1)
            program.add((8,), (4,), x, y, 2, offset=(16,))
        expected = np.zeros(32, "i4")
        expected[:8] = 4 * (np.arange(8) + 1)
        expected[16:24] = 4 * (np.arange(16, 24) + 2)
        assert y.get().tolist() == expected.tolist()


@pytest.mark.parametrize("backend", BACKENDS[:-1])
def test_events_that_have_ended_cost_no_long_way(device: cl.Device, backend: str) -> None:
    with made_on(device, backend) as rt, inside.calls_by_python() as long_way:
        program = rt.build(SOURCE)
        rt.prebuild(program.add)
        x, y = rt.array(np.arange(8), "i4"), rt.zeros(8, "i4")
        queue = cl.CommandQueue(rt.context)
        ended = cl.UserEvent(rt.context)
        ended.set_status(cl.command_execution_status.COMPLETE)
        marker = cl.enqueue_marker(queue)
        marker.wait()
        asked: list[Any] = [[], (), [ended], (ended, marker), None]

        def step() -> None:
            for wait_for in asked:
                program.add((8,), None, x, y, 1, wait_for=wait_for)

        for _ in range(3):
            step()
        before = len(long_way)
        for _ in range(LAUNCHES):
            step()
        assert len(long_way) - before < LAUNCHES // 4
        made = testing.made_by_core(rt)
        program.add.launch_many((8,), None, x, y, 1, count=10, wait_for=[ended])
        assert testing.made_by_core(rt) - made >= 9
        assert y.get().tolist() == [(LAUNCHES + 3) * 5 * (i + 1) + 10 * (i + 1) for i in range(8)]


def test_events_that_are_open_or_failed_are_heeded_after_others(device: cl.Device) -> None:
    with acs.Runtime(device, backend="lanes") as rt:
        program = rt.build(SOURCE)
        x, y = rt.array(np.arange(8), "i4"), rt.zeros(8, "i4")
        gate, ended = cl.UserEvent(rt.context), cl.UserEvent(rt.context)
        ended.set_status(cl.command_execution_status.COMPLETE)
        for _ in range(3):
            program.add((8,), None, x, y, 1, wait_for=[ended])
        rt.finish()
        held = program.add((8,), None, x, y, 1, wait_for=[ended, gate])
        assert not held.done
        gate.set_status(cl.command_execution_status.COMPLETE)
        program.add((8,), None, x, y, 1, wait_for=[gate])
        assert y.get().tolist() == [5 * (i + 1) for i in range(8)]
        for wrong in (3, [3], [held], [None]):
            with pytest.raises(acs.UsageError, match="wait_for= takes"):
                program.add((8,), None, x, y, 1, wait_for=wrong)
        failed = cl.UserEvent(rt.context)
        failed.set_status(-5)
        program.add((8,), None, x, y, 1, wait_for=[ended, failed])
        with pytest.raises(acs.PoisonedError):
            y.get()
