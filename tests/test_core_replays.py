"""Replays of segments that the core makes, sends and ends without Python."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from inside.scheduler import Scheduler, launching

import acs_cl as acs
from acs_cl.graph.graph import Graph

SOURCE = """
kernel void add(global const uint *x, global uint *y, uint a)
{ size_t i = get_global_id(0); y[i] += a * x[i]; }
kernel void count(global uint *x) { x[get_global_id(0)] += 1; }
"""
MANY = 64
"""Launches of a graph, enough for a segment on every backend."""


@pytest.fixture(params=["device", "auto"])
def rt(request: pytest.FixtureRequest, device: cl.Device) -> Iterator[acs.Runtime]:
    with acs.Runtime(device, backend=request.param) as made:
        yield made


@pytest.fixture
def prog(rt: acs.Runtime) -> acs.Program:
    return rt.build(SOURCE)


@contextmanager
def made_by_core(graph: Graph) -> Iterator[list[bool]]:
    """Collect, for each replay of a segment, whether the core made it."""
    engine, found = graph.engine, list[bool]()
    replay = engine.replay_segment

    def noted(*what: Any) -> int:
        found.append(bool(made := replay(*what)))
        return made

    engine.replay_segment = noted  # type: ignore[method-assign]
    try:
        yield found
    finally:
        del engine.replay_segment  # type: ignore[method-assign]


def counting(rt: acs.Runtime, prog: acs.Program, x: acs.Array) -> Graph:
    """Record a graph that counts in each row of an array. It is one segment."""
    with rt.record() as graph:
        for row in range(MANY):
            prog.count((x.shape[1],), None, x[row])
    graph.replay().wait()  # the scheduler is built by now
    with rt.record() as graph:
        for row in range(MANY):
            prog.count((x.shape[1],), None, x[row])
    x.fill(0)
    return graph


def test_the_core_makes_replays(rt: acs.Runtime, prog: acs.Program) -> None:
    x = rt.zeros((MANY, 8), "u4")
    graph = counting(rt, prog, x)
    with made_by_core(graph) as found:
        for times in range(1, 100):
            handle = graph.replay()
            if times % 3 == 0:
                handle.wait()
                assert handle.done
            if times % 10 == 0:
                assert (x.get() == times).all()
    assert found == [True] * 99
    assert (x.get() == 99).all()
    assert not len(rt.engine.table)


def test_many_replays_need_no_wait(rt: acs.Runtime, prog: acs.Program) -> None:
    x = rt.zeros((MANY, 8), "u4")
    graph = counting(rt, prog, x)
    with made_by_core(graph) as found:
        for _ in range(1000):
            graph.replay()
    assert found == [True] * 1000
    assert (x.get() == 1000).all()


def test_changes_hold_from_the_next_replay_on(rt: acs.Runtime, prog: acs.Program) -> None:
    x, y, other = rt.array([1] * 8, "u4"), rt.zeros((MANY, 8), "u4"), rt.array([100] * 8, "u4")
    counting(rt, prog, y)
    with rt.record() as graph:
        steps = [prog.add((8,), None, x, y[row], 1) for row in range(MANY)]
    graph.replay().wait()
    want = np.ones(MANY)
    with made_by_core(graph) as found:
        for turn in range(20):
            graph.update(steps[turn], a=turn + 2)
            graph.replay()
            want += 1
            want[: turn + 1] += 1 + np.arange(turn + 1)
        graph.swap(x, other)
        graph.replay()
        factors = np.ones(MANY)
        factors[:20] = 2 + np.arange(20)
        want += 100 * factors
    assert found == [True] * 21
    assert (y.get() == want[:, None]).all()


def test_replays_keep_their_place_among_other_launches(rt: acs.Runtime, prog: acs.Program) -> None:
    """Launches of the open epoch, on lanes, of tasks of the host, and of transfers."""
    x, y = rt.zeros((MANY, 8), "u4"), rt.zeros((MANY, 8), "u4")
    graph = counting(rt, prog, x)
    want_x, want_y = np.zeros((MANY, 8), "u4"), np.zeros((MANY, 8), "u4")

    def double(x: np.ndarray) -> None:
        x *= 2

    for turn in range(30):
        prog.count((8,), None, x[turn])  # in the open epoch
        graph.replay()
        prog.add((MANY * 8,), None, x.reshape(-1), y.reshape(-1), 1)
        want_x[turn] += 1
        want_x += 1
        want_y += want_x
        if turn % 5 == 0:
            rt.call(double, reads=x, writes=x)
            want_x *= 2
            graph.replay()
            want_x += 1
        if turn % 7 == 0:
            x[3].fill(turn)
            graph.replay()
            want_x[3] = turn
            want_x += 1
    assert (x.get() == want_x).all()
    assert (y.get() == want_y).all()


def test_behind_a_task_of_the_host_they_go_the_usual_way(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    """What the task fails to write, a part of the replay must not use."""
    x = rt.zeros((MANY, 8), "u4")
    graph, may_end = counting(rt, prog, x), threading.Event()

    def fails(row: np.ndarray) -> None:
        may_end.wait()
        raise ValueError("planted")

    rt.call(fails, writes=x[5])
    with made_by_core(graph) as found:
        handle = graph.replay()
    assert found == [False]
    may_end.set()
    with pytest.raises(acs.PoisonedError, match="planted"):
        handle.wait()
    with made_by_core(graph) as found:
        graph.replay()
    assert found == [False]
    x[5].fill(2)
    with made_by_core(graph) as found:
        graph.replay().wait()
    assert found == [True]
    want = np.full((MANY, 8), 3)
    assert (x.get() == want).all()


def test_a_refused_replay_fails_and_the_next_one_works(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device") as rt:
        prog, x, y = rt.build(SOURCE), rt.zeros((MANY, 8), "u4"), rt.zeros(8, "u4")
        graph = counting(rt, prog, x)
        with made_by_core(graph) as found, Scheduler(rt).refusing():
            handle = graph.replay()
            behind = prog.add((8,), None, x[0], y, 1)
            with pytest.raises(acs.AcsError, match="replay of 64 launches"):
                handle.wait()
            with pytest.raises(acs.PoisonedError, match="replay of 64 launches"):
                behind.wait()
        assert found == [True]
        x.fill(7)
        y.fill(0)
        with made_by_core(graph) as found:
            graph.replay()
            prog.add((8,), None, x[0], y, 1)
        assert found == [True]
        assert (x.get() == 8).all()
        assert y.get().tolist() == [8] * 8


def two_that_have_run(rt: acs.Runtime) -> tuple[Graph, Graph, acs.Array]:
    """Return graphs that count the same rows, whose blocks are in use, and the rows of zeros."""
    prog, x = rt.build(SOURCE), rt.zeros((MANY, 8), "u4")
    graph, others = counting(rt, prog, x), counting(rt, prog, x)
    for _ in range(2):
        graph.replay()
        others.replay()
    x[0].fill(5)
    x.fill(0)
    rt.finish()
    return graph, others, x


def test_replays_behind_a_refused_one_are_not_lost(device: cl.Device) -> None:
    """A refused run has not cleaned the other block. The next run found nothing to do there, and
    ended well. Nobody had looked: the row was filled behind another replay."""
    with acs.Runtime(device, backend="device") as rt:
        graph, others, x = two_that_have_run(rt)
        own, row = Scheduler(rt).backend.queues[0].int_ptr, x[0]
        seen: list[int] = []

        def refuses_first(real: Callable[..., int]) -> Callable[..., int]:
            def launch(queue: int, *rest: Any) -> int:
                if queue == own:
                    seen.append(queue)
                    if len(seen) == 1:
                        return int(cl.status_code.OUT_OF_RESOURCES)
                return int(real(queue, *rest))

            return launch

        with launching(refuses_first):
            graph.replay()
            others.replay()
            row.fill(7)
            graph.replay()
            with pytest.raises(acs.PoisonedError, match="OUT_OF_RESOURCES"):
                rt.finish()
        assert row.get().tolist() == [8] * 8
        with pytest.raises(acs.PoisonedError):
            x[1].get()
        x.fill(0)
        graph.replay()
        assert (x.get() == 1).all()


def test_nor_are_those_behind_one_that_an_error_kept_from_the_driver(device: cl.Device) -> None:
    """Its run has not cleaned the other block either."""
    with acs.Runtime(device, backend="device") as rt:
        graph, others, x = two_that_have_run(rt)
        row = x[0]

        def fail() -> Any:
            raise RecursionError("no stack is left")

        Scheduler(rt).sender.land_in(fail)
        graph.replay()
        others.replay()
        row.fill(7)
        graph.replay()
        with pytest.raises(acs.PoisonedError, match="no stack is left"):
            rt.finish()
        assert row.get().tolist() == [8] * 8
        x.fill(0)
        graph.replay()
        assert (x.get() == 1).all()


def test_a_replay_outlives_its_graph_and_lets_go_of_it(rt: acs.Runtime, prog: acs.Program) -> None:
    x = rt.zeros((MANY, 8), "u4")
    for _ in range(3):
        graph = counting(rt, prog, x)
        graph.replay()
        pieces = [weakref.ref(piece) for piece in graph.pieces]
        again = counting(rt, prog, rt.zeros((MANY, 8), "u4"))
        graph.close()
        del graph
        assert (x.get() == 1).all()
        rt.finish()
        gc.collect()
        assert [piece() for piece in pieces] == [None]
        again.close()


def test_what_is_in_flight_can_be_told(device: cl.Device) -> None:
    """The core keeps the record that Python would have made."""
    with acs.Runtime(device, backend="device") as rt:
        prog, x = rt.build(SOURCE), rt.zeros((MANY, 8), "u4")
        graph = counting(rt, prog, x)
        rt.finish()
        with made_by_core(graph) as found:
            handle = graph.replay()
        assert found == [True]
        launch = rt.engine.table.launch(handle.number)
        if launch is not None:  # it is in flight still
            assert launch.command.name == "replay of 64 launches"
            assert len(launch.command.accesses) == MANY
            assert {span.base for span in launch.access.writes} == {x.spans[0].base}
        handle.wait()
        assert rt.engine.table.launch(handle.number) is None
        assert "scheduler" in str(rt.explain(handle)) or "segments: 1" in str(rt.explain(handle))


def test_threads_replay_their_own_graphs(rt: acs.Runtime, prog: acs.Program) -> None:
    arrays = [rt.zeros((MANY, 8), "u4") for _ in range(4)]
    graphs = [counting(rt, prog, x) for x in arrays]

    def replay(graph: Graph) -> None:
        for _ in range(50):
            graph.replay()

    threads = [threading.Thread(target=replay, args=(graph,)) for graph in graphs]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for x in arrays:
        assert (x.get() == 50).all()
