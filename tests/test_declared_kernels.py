"""Kernels that declare what they touch: the core makes their launches by itself, from what they
declare at the time."""

from __future__ import annotations

from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from fuzz.threads import in_threads

import acs_cl as acs

SOURCE = """
kernel void copy(global const int *x, global int *y)
{ y[get_global_id(0)] = x[get_global_id(0)]; }
kernel void set(global int *y, int a) { y[get_global_id(0)] = a; }
kernel void pair(global int *y, global int *z, int a)
{ int i = get_global_id(0); y[i] = a; if (a > 0) z[i] = a; }
"""
LAUNCHES = 40
BACKENDS = ["serial", "out_of_order", "lanes", "device"]


def made_on(device: cl.Device, backend: str) -> acs.Runtime:
    try:
        return acs.Runtime(device, backend=backend)
    except acs.UsageError as why:
        pytest.skip(str(why))


@pytest.mark.parametrize("backend", BACKENDS)
def test_launches_of_kernels_that_declare_modes_go_the_short_way(
    device: cl.Device, backend: str
) -> None:
    """With what the declarations say, and `reads=`, `writes=` and `when=` on top of that."""
    with made_on(device, backend) as rt, inside.calls_by_python() as long_way:
        program = rt.build(SOURCE)
        rt.prebuild(program.copy)
        copy = program.copy.access(x="r", y="w")
        x, y, flag = rt.array(np.arange(16), "i4"), rt.zeros(16, "i4"), rt.array([1], "i4")
        whole = acs.records.Access(x.spans, y.spans, y.spans)
        asked: list[dict[str, Any]] = [{}, {"writes": y[:8]}, {"when": flag}]

        def step() -> list[Any]:
            return [copy((8,), None, x, y, **keywords).access for keywords in asked]

        for _ in range(3):
            step()
        rt.finish()
        before = len(long_way)
        for _ in range(LAUNCHES):
            plain, named, decided = step()
            assert plain == whole
            assert (named.reads, named.writes) == (x.spans, y[:8].spans)
            assert (set(decided.reads), decided.writes) == ({*x.spans, *flag.spans}, y.spans)
            assert decided.overwrites == ()
        assert len(long_way) - before < LAUNCHES // 4
        assert y.get().tolist() == [*range(8), *[0] * 8]


@pytest.mark.parametrize("backend", BACKENDS)
def test_launches_of_kernels_that_declare_ranges_go_the_short_way(
    device: cl.Device, backend: str
) -> None:
    """With each size, number and length of an argument that was there before. What is behind the
    end of an argument is cut off, what begins there is refused."""
    with made_on(device, backend) as rt, inside.calls_by_python() as long_way:
        program = rt.build(SOURCE)
        rt.prebuild(program.copy, program.set)
        copy = program.copy.access(x="r[gid:gid+2]", y="w[gid]")
        fill = program.set.access(y="w[a:a+gsize], r[4*gid]")
        x, y, z = rt.array(np.arange(16), "i4"), rt.zeros(16, "i4"), rt.zeros(32, "i4")
        rows = rt.zeros((4, 8), "i4")

        def step() -> None:
            made = copy((8,), None, x, y).access
            assert made == acs.records.Access(x[:9].spans, y[:8].spans, y[:8].spans)
            made = copy((8,), None, x[:8], y).access  # the last element of it is no more there
            assert made == acs.records.Access(x[:8].spans, y[:8].spans, y[:8].spans)
            made = copy((4,), None, x, y, offset=(8,)).access
            assert made == acs.records.Access(x[8:13].spans, y[8:12].spans, y[8:12].spans)
            for row in (rows[0], rows[2]):
                assert copy((4,), None, x, row).access.writes == row[:4].spans
            made = copy((8,), None, x, y, writes=y[8:]).access
            assert (made.reads, made.writes) == (x[:9].spans, y[8:].spans)
            for a in (0, 2, 5):
                made = fill((4,), None, z, a).access
                assert made.writes == z[a : a + 4].spans
                assert made.reads == z[:16:4].spans
                assert made.overwrites == made.writes

        for _ in range(3):
            step()
        rt.finish()
        before = len(long_way)
        for _ in range(LAUNCHES):
            step()
        assert len(long_way) - before < LAUNCHES
        for _ in range(2):
            with pytest.raises(acs.UsageError, match="starts at byte 128, the argument has 128"):
                fill((4,), None, z, 32)
        before = len(long_way)
        for _ in range(4):  # its rows are several pieces, which Python takes together
            made = fill((4,), None, rows[:, :4], 0).access
            assert made.writes == rows[0, :4].spans
        assert len(long_way) == before + 4


@pytest.mark.parametrize("backend", BACKENDS)
def test_another_declaration_holds_from_then_on(device: cl.Device, backend: str) -> None:
    with made_on(device, backend) as rt, inside.calls_by_python() as long_way:
        program = rt.build(SOURCE)
        rt.prebuild(program.copy)
        copy, signature = program.copy, program.copy.signature
        x, y = rt.array(np.arange(16), "i4"), rt.zeros(16, "i4")
        said: list[tuple[dict[str, str], Any, Any]] = [
            ({"x": "r", "y": "w"}, x.spans, y.spans),
            ({"x": "r", "y": "rw"}, (*x.spans, *y.spans), y.spans),
            ({"y": "r"}, (*x.spans, *y.spans), ()),
        ]
        for modes, reads, writes in said * 3:
            copy.access(**modes)
            before = len(long_way)
            for _ in range(8):
                access = copy((16,), None, x, y).access
                assert (access.reads, access.writes) == (reads, writes), modes
            assert len(long_way) - before < 4
        assert copy.signature is signature


def test_other_threads_may_declare_meanwhile(device: cl.Device) -> None:
    """Whoever has declared launches with that at once, whatever plan another thread was making."""
    with acs.Runtime(device, backend="lanes") as rt:
        program = rt.build(SOURCE)
        x, y = rt.array(np.arange(16), "i4"), rt.zeros(16, "i4")
        kernel, is_over = program.set, False
        found: list[tuple[str, Any]] = []

        def work(thread: int) -> None:
            nonlocal is_over
            if thread:
                while not is_over:
                    for _ in range(5):
                        kernel((16,), None, x, 1)
                return
            for turn in range(200):
                mode = ("w", "rw", "w[gid]", "rw[gid]")[turn % 4]
                kernel.access(y=mode)
                found.extend((mode, kernel((16,), None, y, 2).access) for _ in range(3))
            is_over = True

        in_threads(work, 3)
        for mode, access in found:
            assert access.reads == (y.spans if "rw" in mode else ())
        assert y.get().tolist() == [2] * 16


def test_declared_writes_end_poison_on_the_short_way(device: cl.Device) -> None:
    """Those of a whole argument, if all that is written is declared and has no gaps."""
    with acs.Runtime(device) as rt:
        program = rt.build(SOURCE)
        y, z, cube = rt.zeros(8, "i4"), rt.zeros((4, 4), "i4"), rt.zeros((20, 20, 20), "i4")
        asked: list[tuple[dict[str, str], Any, bool]] = [
            ({"y": "w"}, y, True),
            ({"y": "rw"}, y, False),
            ({"y": "r[0:0], w"}, y, True),
        ]
        for modes, array, ends in asked:
            program.set.access(**modes)
            for _ in range(3):
                handle = program.set((8,), None, array, 1)
            assert bool(handle.access.overwrites) is ends, modes
            rt.finish()
            gate = cl.UserEvent(rt.context)

            def fails(*of: object) -> None:
                raise ValueError("no")

            rt.call(fails, writes=array, wait_for=[gate])
            program.set((8,), None, array, 2)
            gate.set_status(cl.command_execution_status.COMPLETE)
            if ends:
                assert array.get().tolist() == [2] * 8
                with pytest.raises(acs.PoisonedError):
                    rt.finish()
            else:
                with pytest.raises(acs.PoisonedError):
                    array.get()
            array.fill(0)
        program.set.access(y="w")
        for view in (z, z[:2], z[:2, :2], cube[::2, ::2, ::2]):
            for _ in range(3):
                access = program.set((4,), None, view, 1).access
                assert bool(access.overwrites) is (view.ndim == 2)
        program.pair.access(y="w")
        for _ in range(3):  # of which the core makes none: a part of what is written is declared
            access = program.pair((8,), None, y, z, 1).access
            assert access.overwrites == y.spans
            assert access.writes == (*y.spans, *z.spans)
