"""Series: launches of a graph on lanes, which a replay has the core make in one call."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.graph.graph import Graph
from acs_cl.launch.decision import WORDS, has_words

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
    x, y, sevens = rt.array(np.arange(8), "u4"), rt.zeros(8, "u4"), np.full(4, 7, "u4")
    with rt.record() as graph:
        for _ in range(50):
            prog.add((8,), None, x, y, 1)
        y[:4].set(sevens, copy=False)  # no kernel, so it ends the series
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


def test_launches_with_a_count_are_in_a_series(rt: acs.Runtime, prog: acs.Program) -> None:
    """Each reads its count when it runs. A wrong one names its place in the graph."""
    if not has_words(rt.device):
        pytest.skip("Python makes such launches where the host does not see the device's memory")
    x, y, z = rt.array(np.arange(8), "u4"), rt.zeros(8, "u4"), rt.zeros(8, "u4")
    counts, flag = rt.array([3, 8], "i4"), rt.array([1], "u4")
    with rt.record() as graph:
        prog.add((acs.size(counts[0], 8),), None, x, y, 1)
        prog.count((8,), None, z)
        prog.add((acs.size(counts[1], 8),), (4,), x, y, 10, when=flag)
        prog.add((8,), None, x, z, 1)
    want_y, want_z, host = np.zeros(8, "u4"), np.zeros(8, "u4"), np.arange(8, dtype="u4")
    for first, second, runs in ((3, 8, 1), (0, 4, 1), (8, 0, 1), (5, 4, 0), (1, 5, 0), (2, 8, 1)):
        counts.set(np.array([first, second], "i4"))
        flag.fill(runs)
        assert made_in_one_call(graph) == [4]
        want_y[:first] += host[:first]
        want_y[: second * runs] += 10 * host[: second * runs]
        want_z += 1 + host
        assert y.get().tolist() == want_y.tolist()
        assert z.get().tolist() == want_z.tolist()
    for wrong, expected in ((-1, "is -1, expected 0 to 8"), (6, "a multiple of local size 4")):
        counts.set(np.array([1, wrong], "i4"))
        with pytest.raises(acs.PoisonedError, match=rf"'add \(3 in its graph\)'.*{expected}"):
            graph.replay().wait()
        with pytest.raises(acs.PoisonedError, match=expected):
            y.get()
        want_z += 1 + host
        assert z.get().tolist() == want_z.tolist()  # it has nothing to do with that
        y.fill(0)
    counts.set(np.array([2, 4], "i4"))
    assert made_in_one_call(graph) == [4]
    assert y.get().tolist() == [0, 11, 20, 30, 0, 0, 0, 0]


def test_more_launches_with_counts_than_there_are_words(rt: acs.Runtime, prog: acs.Program) -> None:
    if not has_words(rt.device):
        pytest.skip("there are no words")
    many = 3 * WORDS
    count, y = rt.array([2], "u4"), rt.zeros((many, 4), "u4")
    rows = [y[at] for at in range(many)]
    with rt.record() as graph:
        for row in rows:
            prog.count((acs.size(count, 4),), None, row)
    assert sum(made_in_one_call(graph)) == many
    gate = cl.UserEvent(rt.context)
    prog.count((1,), None, count, wait_for=[gate])  # from here on all are held
    for _ in range(3):
        graph.replay()
    gate.set_status(cl.command_execution_status.COMPLETE)
    assert (y.get() == [4, 4, 3, 0]).all()
    assert sum(made_in_one_call(graph)) == many
    assert (y.get() == [5, 5, 4, 0]).all()


@pytest.mark.parametrize("seed", range(3))
def test_random_replays_poison_what_follows_wrong_counts(
    rt: acs.Runtime, prog: acs.Program, seed: int
) -> None:
    """The host computes the same, and notes which arrays are lost."""
    choose, many, width = random.Random(seed), 5, 8
    arrays = [rt.array(np.full(width, at), "u4") for at in range(many)]
    counts = rt.zeros(3, "u4")
    plan = [
        (*choose.sample(range(many), 2), choose.randrange(4), choose.randrange(1, 9))
        for _ in range(12)
    ]
    with rt.record() as graph:
        for source, target, which, a in plan:
            size = width if which == 3 else acs.size(counts[which], width)
            prog.add((size,), None, arrays[source], arrays[target], a)
    host = [np.full(width, at, np.uint32) for at in range(many)]
    for turn in range(40):
        numbers = [choose.choice([0, 3, 8, 8] if turn % 4 else [3, 9]) for _ in range(3)]
        counts.set(np.array(numbers, "u4"))
        graph.replay()
        lost = set[int]()
        for source, target, which, a in plan:
            upto = width if which == 3 else numbers[which]
            if upto > width or source in lost or target in lost:
                lost.add(target)
            else:
                host[target][:upto] += np.uint32(a) * host[source][:upto]
        for at, array in enumerate(arrays):
            if at in lost:
                with pytest.raises(acs.PoisonedError, match="is 9, expected 0 to 8"):
                    array.get()
                host[at][:] = turn
                array.fill(turn)
            else:
                assert array.get().tolist() == host[at].tolist(), (seed, turn, at)
        with suppress(acs.PoisonedError):  # of launches about whose own values nobody asked
            rt.finish()


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
