"""Series: launches of a graph on lanes, which a replay has the core make in one call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.graph.graph import Graph

SOURCE = """
kernel void add(global const uint *x, global uint *y, uint a)
{ size_t i = get_global_id(0); y[i] += a * x[i]; }
kernel void count(global uint *x) { x[get_global_id(0)] += 1; }
kernel void down(global uint *left) { *left -= 1; }
"""
BACKENDS = "serial", "out_of_order", "lanes"


@pytest.fixture(params=BACKENDS)
def rt(request: pytest.FixtureRequest, device: cl.Device) -> Iterator[acs.Runtime]:
    with acs.Runtime(device, backend=request.param) as made:
        yield made


@pytest.fixture
def prog(rt: acs.Runtime) -> acs.Program:
    return rt.build(SOURCE)


def made_in_one_call(graph: Graph) -> list[int]:
    """Replay a graph, and return how many launches the core made in each call."""
    engine, calls = graph.engine, list[int]()
    launch = engine.launch_series

    def noted(series: Any, at: int, many: int) -> list[int]:
        calls.append(len(made := launch(series, at, many)))
        return made

    engine.launch_series = noted  # type: ignore[method-assign]
    try:
        graph.replay().wait()
    finally:
        del engine.launch_series  # type: ignore[method-assign]
    return calls


def test_consecutive_kernels_are_made_in_one_call(rt: acs.Runtime, prog: acs.Program) -> None:
    x, y = rt.array(np.arange(8), "u4"), rt.zeros(8, "u4")
    with rt.record() as graph:
        for _ in range(50):
            prog.add((8,), None, x, y, 1)
        y[:4].fill(7)  # no kernel, so it ends the series
        prog.count((2,), None, y[:2])
        prog.count((8,), None, x, writes=[x])
        prog.count((4,), None, x, offset=(4,))
    want_x, want_y = np.arange(8, dtype="u4"), np.zeros(8, "u4")
    for _ in range(3):
        assert made_in_one_call(graph) == [50, 3]
        want_y += 50 * want_x
        want_y[:4] = 8, 8, 7, 7
        want_x += 1
        want_x[4:] += 1
        assert x.get().tolist() == want_x.tolist()
        assert y.get().tolist() == want_y.tolist()


def test_other_values_and_arrays_hold_from_the_next_replay_on(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x, y, other = rt.array([1], "u4"), rt.zeros(1, "u4"), rt.array([100], "u4")
    with rt.record() as graph:
        first = prog.add((1,), None, x, y, 1)
        prog.add((1,), None, x, y, 10)
    assert made_in_one_call(graph) == [2]
    graph.update(first, a=5)
    assert made_in_one_call(graph) == [2]
    assert y.get().tolist() == [11 + 15]
    graph.swap(x, other)
    assert made_in_one_call(graph) == [2]
    assert y.get().tolist() == [11 + 15 + 1500]


def test_launches_with_a_flag_are_in_a_series(rt: acs.Runtime, prog: acs.Program) -> None:
    """Each looks at its flag when it runs: at that of the last replay, or of a launch before it."""
    x, y, left = rt.array([1], "u4"), rt.zeros(4, "u4"), rt.array([2], "u4")
    flags = rt.array([1, 0], "u4")
    with rt.record() as graph:
        first = prog.add((1,), None, x, y[:1], 1, when=flags[0])
        prog.add((1,), None, x, y[1:2], 1, when=flags[1])
        prog.add((1,), None, x, y[2:3], 1, when=left)
        prog.down((1,), None, left, when=left)  # it writes its flag, so it looks at a copy
        prog.count((1,), None, y[3:])
    want = [0] * 4
    for turn in range(4):
        flags.set(np.array([turn % 2, 1 - turn % 2], "u4"))
        made = made_in_one_call(graph)
        assert made[:1] == [3]
        assert sum(made) >= 4
        for at, runs in enumerate((turn % 2, 1 - turn % 2, turn < 2, 1)):
            want[at] += runs
        assert y.get().tolist() == want
        assert left.get().tolist() == [max(0, 1 - turn)]
    graph.update(first, a=7)
    flags.set(np.array([1, 0], "u4"))
    assert made_in_one_call(graph)[:1] == [3]
    assert y.get().tolist() == [want[0] + 7, want[1], want[2], want[3] + 1]
    other = rt.array([0, 1], "u4")
    graph.swap(flags, other)
    assert made_in_one_call(graph)[:1] == [3]
    assert y.get().tolist() == [want[0] + 7, want[1] + 1, want[2], want[3] + 2]


def test_a_launch_whose_flag_is_lost_does_not_run(rt: acs.Runtime, prog: acs.Program) -> None:
    def fails(flag: np.ndarray) -> None:
        raise ValueError("planted")

    x, y, flag = rt.array([1], "u4"), rt.zeros(1, "u4"), rt.array([1], "u4")
    with rt.record() as graph:
        prog.add((1,), None, x, y, 1, when=flag)
        prog.add((1,), None, x, y, 1, when=flag)
    assert made_in_one_call(graph) == [2]
    rt.call(fails, writes=flag)
    with pytest.raises(acs.PoisonedError):
        graph.replay().wait()
    flag.fill(1)
    y.fill(0)
    graph.replay().wait()
    assert y.get().tolist() == [2]


def test_a_flag_is_looked_at_beside_a_scheduler(device: cl.Device) -> None:
    """Few launches in a row are made by their calls, where a scheduler might take them."""
    with acs.Runtime(device) as rt:
        prog, wide = rt.build(SOURCE), rt.zeros(1 << 16, "u4")
        x, y, flags = rt.array([1], "u4"), rt.zeros(1, "u4"), rt.array([1, 0], "u4")
        rt.prebuild(prog.add, prog.count)
        with rt.record() as graph:
            for at in range(6):
                prog.count(wide.shape, None, wide, when=flags[at % 2])
                prog.add((1,), None, x, y, 1, when=flags[at % 2])
        for turn in range(1, 4):
            graph.replay().wait()
            assert y.get().tolist() == [3 * turn]
            assert (wide.get() == 3 * turn).all()
        assert len(graph.handles) == 12


def test_a_series_ends_at_the_border_of_a_loop(rt: acs.Runtime, prog: acs.Program) -> None:
    x, left = rt.zeros(1, "u4"), rt.array([3], "u4")
    with rt.record() as graph:
        prog.count((1,), None, x)
        with acs.loop(left, at_most=9):
            prog.count((1,), None, x)
            prog.down((1,), None, left)
        prog.count((1,), None, x)
    assert made_in_one_call(graph) == [1, 2, 2, 2, 1]
    assert x.get().tolist() == [5]


def test_a_small_window_gives_the_same_values(device: cl.Device) -> None:
    for window, backlog in ((1, 2), (2, 3), (3, 70)):
        with acs.Runtime(device, backend="lanes", window=window, backlog=backlog) as rt:
            prog, x = rt.build(SOURCE), rt.zeros((4, 8), "u4")
            with rt.record() as graph:
                for turn in range(100):
                    prog.count((8,), None, x[turn % 4])
            for _ in range(3):
                graph.replay()
            assert (x.get() == 75).all()


def test_launches_behind_a_failure_do_not_run(rt: acs.Runtime, prog: acs.Program) -> None:
    def fails(y: np.ndarray) -> None:
        raise ValueError("planted")

    x, y, z = rt.array([1], "u4"), rt.zeros(1, "u4"), rt.zeros(1, "u4")
    with rt.record() as graph:
        prog.add((1,), None, x, z, 1)
        prog.add((1,), None, y, z, 1)
    graph.replay().wait()
    rt.call(fails, writes=y)
    handle = graph.replay()
    with pytest.raises(acs.PoisonedError):
        handle.wait()
    with pytest.raises(acs.PoisonedError):
        z.get()
    y.fill(5)
    z.fill(0)
    graph.replay().wait()
    assert z.get().tolist() == [6]


def test_a_copy_heals_what_a_task_under_way_fails_to_write(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    """A copy of a view with gaps is a kernel, and overwrites all of its target."""
    may_end = threading.Event()

    def fails(y: np.ndarray) -> None:
        may_end.wait(20)
        raise ValueError("planted")

    x, y = rt.array(np.arange(16), "u4"), rt.zeros(8, "u4")
    with rt.record() as graph:
        y.copy_from(x[::2])
        prog.count((8,), None, y)
    graph.replay().wait()
    task = rt.call(fails, writes=y)
    graph.replay()
    may_end.set()
    with pytest.raises(acs.PoisonedError):
        task.wait()
    assert y.get().tolist() == [1, 3, 5, 7, 9, 11, 13, 15]


def test_a_timeline_and_checks_see_each_launch(device: cl.Device) -> None:
    with acs.Runtime(device, backend="lanes", trace=True) as rt:
        prog, x = rt.build(SOURCE), rt.zeros(8, "u4")
        with rt.record() as graph:
            for _ in range(5):
                prog.count((8,), None, x)
        assert made_in_one_call(graph) == [0] * 5
        assert (x.get() == 5).all()
    with acs.Runtime(device, backend="lanes", check="access") as rt:
        prog, x = rt.build(SOURCE), rt.zeros(8, "u4")
        with rt.record() as graph:
            for _ in range(5):
                prog.count((8,), None, x)
        graph.replay()
        assert (x.get() == 5).all()


def test_memory_that_was_dropped_is_no_longer_held(rt: acs.Runtime, prog: acs.Program) -> None:
    x = rt.zeros(1 << 20, "u4")
    with rt.record() as graph:
        prog.count((1 << 20,), None, x)
    graph.replay().wait()
    before = rt.stats()["memory"]["in_use_bytes"]
    graph.close()
    del x
    rt.finish()
    rt.zeros(1)  # memory that was dropped is taken back by the next call
    assert rt.stats()["memory"]["in_use_bytes"] < before
