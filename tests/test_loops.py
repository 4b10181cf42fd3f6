"""Loops over recorded launches, on every backend: rounds, results, what fails and what is refused.

The oracle is a loop of the host, in program order.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import sys
from collections.abc import Callable
from typing import Any

import inside
import numpy as np
import pytest
from ctrl_c import interrupted
from random_loops import SOURCE as RANDOM
from random_loops import differs, programs

import acs_cl as acs
from acs_cl.launch.decision import has_words

pytestmark = pytest.mark.rotate("make", 3)

SOURCE = """
kernel void count(global uint *x) { x[get_global_id(0)] += 1; }
kernel void below(global const uint *x, global uint *go, uint most) { *go = *x < most; }
kernel void early(global uint *x, global uint *go) { *go = 0; *x += 1; }
kernel void late(global const uint *x, global uint *go, uint most) { *go = *x < most; }
kernel void up(global uint *x, global const uint *by) { *x += *by; }
kernel void sure(global uint *x, global uint *n) { *n = *x; }
kernel void copy(global const uint *x, global uint *y)
{ size_t i = get_global_id(0); y[i] = x[i]; }
"""
FUZZ = int(os.environ.get("ACS_CL_FUZZ") or 0)


@pytest.fixture
def prog(rt: acs.Runtime) -> acs.Program:
    return rt.build(SOURCE)


def counted(
    rt: acs.Runtime, prog: acs.Program, most: int, start: int = 0, wide: int = 1
) -> tuple[acs.Graph, acs.Array, acs.Array]:
    """A graph that counts `x` up by one and goes on while it is below `most`."""
    x, go = rt.array(np.full(wide, start, "u4")), rt.array([1], "u4")
    with rt.record() as graph:
        prog.count((wide,), None, x)
        prog.below((1,), None, x[0:1], go, most)
    return graph, x, go


# ---- rounds --------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 3, 17, 100])
def test_a_graph_runs_as_long_as_the_word_is_not_zero(
    rt: acs.Runtime, prog: acs.Program, most: int
) -> None:
    graph, x, go = counted(rt, prog, most)
    handle = graph.replay(while_=go, at_most=1000)
    assert handle.rounds == most
    assert handle.done
    assert x.get().tolist() == [most]
    assert go.get().tolist() == [0]


def test_there_is_no_round_if_the_word_is_zero_at_first(rt: acs.Runtime, prog: acs.Program) -> None:
    graph, x, go = counted(rt, prog, 5)
    go.fill(0)
    assert graph.replay(while_=go, at_most=10).rounds == 0
    assert x.get().tolist() == [0]
    assert graph.replay(while_=go, at_most=10).rounds == 0
    go.fill(7)
    assert graph.replay(while_=go, at_most=10).rounds == 5


@pytest.mark.parametrize("at_most", [1, 2, 9])
def test_a_loop_ends_after_as_many_rounds_as_it_may_have(
    rt: acs.Runtime, prog: acs.Program, at_most: int
) -> None:
    graph, x, go = counted(rt, prog, 10)
    handle = graph.replay(while_=go, at_most=at_most)
    assert handle.rounds == at_most
    assert x.get().tolist() == [at_most]
    assert go.get().tolist() == [1]
    assert graph.replay(while_=go, at_most=100).rounds == 10 - at_most


def test_a_replay_without_a_loop_is_one_round(rt: acs.Runtime, prog: acs.Program) -> None:
    graph, x, _ = counted(rt, prog, 10)
    assert graph.replay().rounds == 1
    assert x.get().tolist() == [1]


def test_loops_replays_and_launches_alternate_in_program_order(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    graph, x, go = counted(rt, prog, 4, wide=1000)
    kept = []
    for _ in range(5):
        handle = graph.replay(while_=go, at_most=100)
        y = rt.empty(1000, "u4")
        prog.copy((1000,), None, x, y)
        kept.append((handle, y))
        x.fill(1)
        go.fill(1)
        graph.replay()
    for i, (handle, y) in enumerate(kept):
        assert handle.rounds == (4 if i == 0 else 2)
        assert (y.get() == 4).all()
    assert (x.get() == 2).all()


def test_a_word_that_is_zero_for_a_while_within_a_round_ends_nothing(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x, y, go = rt.zeros(1, "u4"), rt.zeros(5000, "u4"), rt.array([1], "u4")
    with rt.record() as graph:
        prog.early((1,), None, x, go)
        prog.count((5000,), None, y)
        prog.late((1,), None, x, go, 30)
    assert graph.replay(while_=go, at_most=100).rounds == 30
    assert (y.get() == 30).all()


def test_the_word_may_be_any_element_of_an_array(rt: acs.Runtime, prog: acs.Program) -> None:
    x, words = rt.zeros(1, "u4"), rt.zeros(100, "i4")
    go = words[37:38]
    go.fill(-1)
    with rt.record() as graph:
        prog.count((1,), None, x)
        prog.below((1,), None, x, go, 6)
    assert graph.replay(while_=go, at_most=50).rounds == 6


def test_another_word_may_decide_in_another_replay(rt: acs.Runtime, prog: acs.Program) -> None:
    x, one, two = rt.zeros(1, "u4"), rt.array([1], "u4"), rt.array([1], "u4")
    with rt.record() as graph:
        prog.count((1,), None, x)
        prog.below((1,), None, x, one, 3)
        prog.below((1,), None, x, two, 8)
    assert graph.replay(while_=one, at_most=50).rounds == 3
    assert graph.replay(while_=two, at_most=50).rounds == 5


def test_ctrl_c_as_a_loop_is_told_its_word_loses_nothing(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x, both = rt.zeros(1, "u4"), (rt.array([1], "u4"), rt.array([1], "u4"))
    with rt.record() as graph:
        prog.count((1,), None, x)
        for go in both:
            prog.below((1,), None, x, go, 3)
    for turn in itertools.count(1):
        go = both[turn % 2]  # another address, which the device has to hear of
        go.fill(1)
        x.fill(0)
        with interrupted("_change", turn) as turns, contextlib.suppress(KeyboardInterrupt):
            graph.replay(while_=go, at_most=50)
        go.fill(1)
        x.fill(0)
        assert graph.replay(while_=go, at_most=50).rounds == 3
        if len(turns) < turn:
            break
    assert x.get() == 3


def test_update_and_swap_reach_the_rounds_of_later_loops(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x, go, other = rt.zeros(1, "u4"), rt.array([1], "u4"), rt.zeros(1, "u4")
    with rt.record() as graph:
        prog.count((1,), None, x)
        below = prog.below((1,), None, x, go, 3)
    assert graph.replay(while_=go, at_most=50).rounds == 3
    graph.update(below, most=9)
    go.fill(1)
    assert graph.replay(while_=go, at_most=50).rounds == 6
    graph.swap(x, other)
    go.fill(1)
    assert graph.replay(while_=go, at_most=50).rounds == 9
    assert x.get().tolist() == [9]


@pytest.mark.parametrize("function", ["swap", "_change"])
def test_ctrl_c_in_a_swap_leaves_the_old_arrays_or_the_new_ones(
    rt: acs.Runtime, prog: acs.Program, function: str
) -> None:
    """Calls had the new word, and the loop the old one."""
    x, words = rt.zeros(1, "u4"), [rt.zeros(1, "u4"), rt.zeros(1, "u4")]
    with rt.record() as graph:
        words[0].fill(1)
        with acs.loop(words[0], at_most=50):
            prog.count((1,), None, x)
            prog.below((1,), None, x, words[0], 3)
    for turn in itertools.count(1):
        with interrupted(function, turn) as turns, contextlib.suppress(KeyboardInterrupt):
            graph.swap(*words)
        has_come = len(turns) < turn
        x.fill(0)
        graph.replay()
        assert x.get() == 3
        with contextlib.suppress(acs.UsageError):  # it may have been swapped
            graph.swap(*words)
            assert not has_come
        graph.swap(*reversed(words))
        if has_come:
            break


# ---- loops in a recording ------------------------------------------------------------------------


def test_loops_nest(rt: acs.Runtime, prog: acs.Program) -> None:
    i, j, n = (rt.zeros(1, "u4") for _ in range(3))
    outer, inner = rt.array([1], "u4"), rt.zeros(1, "u4")
    with rt.record() as graph:
        with acs.loop(outer, at_most=50):
            j.fill(0)
            inner.fill(1)
            with acs.loop(inner, at_most=50):
                prog.count((1,), None, j)
                prog.count((1,), None, n)
                prog.below((1,), None, j, inner, 7)
            prog.count((1,), None, i)
            prog.below((1,), None, i, outer, 5)
        prog.count((1,), None, n)
    handle = graph.replay()
    assert handle.rounds == 1
    assert (i.get()[0], j.get()[0], n.get()[0]) == (5, 7, 36)
    said = str(handle.explain())
    assert re.search("the word of loop 1 in each round: .*the word of loop 2", said)


def test_loops_beside_one_another_and_at_the_ends(rt: acs.Runtime, prog: acs.Program) -> None:
    x, go = rt.zeros(1, "u4"), rt.array([1], "u4")
    with rt.record() as graph:
        for most in (3, 8):
            with acs.loop(go, at_most=20):
                prog.count((1,), None, x)
                prog.below((1,), None, x, go, most)
            if most == 3:
                go.fill(1)
    graph.replay()
    assert x.get().tolist() == [8]


def test_the_word_of_a_loop_moves_with_a_swap(rt: acs.Runtime, prog: acs.Program) -> None:
    x, go, other = rt.zeros(1, "u4"), rt.array([1], "u4"), rt.array([1], "u4")
    with rt.record() as graph, acs.loop(go, at_most=20):
        prog.count((1,), None, x)
        prog.below((1,), None, x, go, 4)
    graph.replay()
    graph.swap(go, other)
    x.fill(0)
    graph.replay()
    assert x.get().tolist() == [4]
    assert (go.get()[0], other.get()[0]) == (0, 0)


def test_a_host_task_may_be_in_the_body(rt: acs.Runtime, prog: acs.Program) -> None:
    x, go, seen = rt.zeros(1, "u4"), rt.array([1], "u4"), []
    with rt.record() as graph:
        prog.count((1,), None, x)
        rt.call(lambda value: seen.append(int(value[0])), reads=x)
        prog.below((1,), None, x, go, 3)
    assert graph.replay(while_=go, at_most=20).rounds == 3
    assert seen == [1, 2, 3]


def test_the_host_asks_for_the_word_before_it_waits_for_the_round(
    make: Callable[..., acs.Runtime],
) -> None:
    """One way to the device and back for each round, not one for the round and one for the word."""
    rt = make(trace=True)
    prog = rt.build(SOURCE)
    x, go = rt.zeros(1, "u4"), rt.array([1], "u4")
    with rt.record() as graph:
        prog.count((1,), None, x)
        prog.below((1,), None, x, go, 3)
        rt.call(lambda _: None, reads=x)  # so that the host reads the word on every backend
    rt.finish()
    rt.trace.clear()
    assert graph.replay(while_=go, at_most=20).rounds == 3
    rt.finish()
    reads = [launch for launch in rt.trace.slices if launch.name == "read"]
    assert [tuple(read.waits) for read in reads] == [()] * 4


@pytest.mark.parametrize("is_counted", [False, True])
def test_the_core_reads_the_word_of_a_loop_that_the_host_drives(
    rt: acs.Runtime, prog: acs.Program, is_counted: bool
) -> None:
    if rt.plan.backend not in ("serial", "out_of_order", "lanes"):
        pytest.skip("elsewhere the device reads, or an emulator")
    if rt.options.issue == "ready_first":
        pytest.skip("the core makes no launches that wait in Python for their turn")
    if is_counted and not has_words(rt.device):
        pytest.skip("the host does not see memory of the device without a transfer")
    x, y, go = rt.zeros(1, "u4"), rt.zeros(64, "u4"), rt.array([1], "u4")
    with rt.record() as graph:
        prog.count((1,), None, x)
        prog.below((1,), None, x, go, 20)
        prog.count((acs.size(x, upto=64) if is_counted else 64,), None, y)
    rt.finish()
    with inside.reads_by_python() as reads:
        assert graph.replay(while_=go, at_most=50).rounds == 20
    assert reads == []
    expected = np.arange(20, -44, -1).clip(0) if is_counted else np.full(64, 20)
    assert (y.get() == expected).all()


def test_a_replay_says_who_reads_the_word(rt: acs.Runtime, prog: acs.Program) -> None:
    graph, x, go = counted(rt, prog, 3)
    with rt.record() as filled:
        prog.below((1,), None, x, go, 0)
        x.set(np.zeros(1, "u4"), copy=False)  # which reads the program's memory in each round
    said = [str(one.replay(while_=go, at_most=9).explain()) for one in (graph, filled)]
    if rt.plan.backend == "device":
        assert "the device itself reads the word of a loop" in said[0]
        assert "the host reads the word of a loop in each round: a write runs" in said[1]
    else:
        for one in said:
            assert "in each round: only the scheduler on the device runs rounds" in one


# ---- what fails ----------------------------------------------------------------------------------


def test_a_word_that_is_lost_ends_the_loop_with_its_error(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    graph, x, go = counted(rt, prog, 5)
    y = rt.zeros(1, "u4")
    rt.call(lambda go: 1 / 0, writes=go)
    handle = graph.replay(while_=go, at_most=50)
    with pytest.raises(acs.PoisonedError, match="division"):
        handle.wait()
    with pytest.raises(acs.PoisonedError):  # which rounds wrote it is not known
        x.get()
    assert y.get().tolist() == [0]
    x.fill(0)
    go.fill(1)
    assert graph.replay(while_=go, at_most=50).rounds == 5


def test_a_word_that_was_lost_long_before_is_no_error_of_the_call(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    graph, x, go = counted(rt, prog, 5)
    with rt.record() as inner, acs.loop(go, at_most=9):
        prog.count((1,), None, x)
        prog.below((1,), None, x, go, 5)
    for replay in (lambda: graph.replay(while_=go, at_most=50), inner.replay):
        failed = rt.call(lambda go: 1 / 0, writes=go)
        with pytest.raises(acs.PoisonedError):
            failed.wait()
        handle = replay()
        with pytest.raises(acs.PoisonedError, match="division"):
            handle.wait()
        with pytest.raises(acs.PoisonedError):
            x.get()
        x.fill(0)
        go.fill(1)


def test_a_launch_of_the_body_that_fails_ends_the_loop_behind_its_round(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x, y, go = rt.zeros(1, "u4"), rt.zeros(1, "u4"), rt.array([1], "u4")

    def task(value: Any, out: Any) -> None:
        out[0] = 10 // (3 - int(value[0]))

    with rt.record() as graph:
        prog.count((1,), None, x)
        rt.call(task, reads=x, writes=y)
        prog.below((1,), None, x, go, 9)
    handle = graph.replay(while_=go, at_most=50)
    with pytest.raises(acs.PoisonedError, match="division"):
        handle.wait()
    assert x.get().tolist() == [3]
    with pytest.raises(acs.PoisonedError):
        y.get()


def test_a_count_that_is_refused_ends_the_loop(rt: acs.Runtime, prog: acs.Program) -> None:
    x, y, n, go = rt.zeros(1, "u4"), rt.zeros(64, "u4"), rt.zeros(1, "u4"), rt.array([1], "u4")
    with rt.record() as graph:
        prog.count((1,), None, x)
        prog.sure((1,), None, x, n)
        prog.count((acs.size(n, upto=4),), None, y)
        prog.below((1,), None, x, go, 9)
    handle = graph.replay(while_=go, at_most=50)
    with pytest.raises(acs.PoisonedError):
        handle.wait()
    assert x.get().tolist() == [5]
    with pytest.raises(acs.PoisonedError):
        y.get()


def test_bodies_with_counts_run_where_others_run(rt: acs.Runtime, prog: acs.Program) -> None:
    x, y, n, go = rt.zeros(1, "u4"), rt.zeros(64, "u4"), rt.zeros(1, "u4"), rt.array([1], "u4")
    with rt.record() as graph:
        prog.count((acs.size(n, upto=64),), None, y)
        prog.count((1,), None, x)
        prog.sure((1,), None, x, n)
        prog.below((1,), None, x, go, 40)
    handle = graph.replay(while_=go, at_most=100)
    assert handle.rounds == 40
    assert (y.get() == np.arange(39, -25, -1).clip(0)).all()
    if rt.plan.backend == "device":
        assert "the device itself reads the word of a loop" in str(handle.explain())


@pytest.mark.parametrize("at_most", [50, 5])
def test_a_wrong_count_is_told_with_its_launch_and_only_what_follows_it_is_lost(
    rt: acs.Runtime, prog: acs.Program, at_most: int
) -> None:
    x, n, go = rt.zeros(1, "u4"), rt.zeros(1, "u4"), rt.array([1], "u4")
    y, copied, other = (rt.zeros(64, "u4") for _ in range(3))
    with rt.record() as graph:
        prog.count((1,), None, x)
        prog.sure((1,), None, x, n)
        prog.count((64,), None, other)
        prog.copy((64,), None, other, y)  # so that the next one waits for two launches
        prog.count((acs.size(n, upto=4),), None, y)
        prog.copy((64,), None, y, copied)
        prog.below((1,), None, x, go, 9)
    for _ in range(3):
        handle = graph.replay(while_=go, at_most=at_most)
        with pytest.raises(acs.PoisonedError, match=r"'count.*count on the device is 5, expected"):
            handle.wait()
        with pytest.raises(acs.PoisonedError, match=r"launch 5 of kernel|\(5 in its graph\)"):
            y[:4].get()
        with pytest.raises(acs.PoisonedError):
            copied.get()
        assert (x.get()[0], n.get()[0], go.get()[0]) == (5, 5, 1)
        assert (other.get() == 5).all()
        for array in (x, y, copied, other):
            array.fill(0)
    x.fill(6)
    n.fill(0)
    with pytest.raises(acs.PoisonedError, match="count on the device is 7, expected 0 to 4"):
        graph.replay(while_=go, at_most=at_most).wait()
    assert x.get()[0] == 7


def test_a_loop_in_flight_is_lost_if_it_reads_what_a_launch_before_it_loses(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x, n, go = rt.zeros(1, "u4"), rt.array([9], "u4"), rt.array([1], "u4")
    y, copied, other = (rt.zeros(64, "u4") for _ in range(3))
    with rt.record() as graph:
        prog.count((acs.size(n, upto=4),), None, y)
        with acs.loop(go, at_most=20):
            prog.count((64,), None, other)
            prog.copy((64,), None, y, copied)
            prog.count((1,), None, x)
            prog.below((1,), None, x, go, 9)
    with pytest.raises(acs.PoisonedError, match="count on the device is 9, expected 0 to 4"):
        graph.replay().wait()
    with pytest.raises(acs.PoisonedError):
        copied.get()
    if rt.plan.backend == "device":  # nobody knows which of its rounds would have been
        for array in (x, other, go):
            with pytest.raises(acs.PoisonedError):
                array.get()


# ---- what is refused -----------------------------------------------------------------------------


def test_a_loop_says_what_is_wrong_with_what_it_was_given(
    rt: acs.Runtime, prog: acs.Program, make: Callable[..., acs.Runtime]
) -> None:
    graph, x, go = counted(rt, prog, 5)
    with pytest.raises(acs.UsageError, match="at_most=None, expected 1 to"):
        graph.replay(while_=go)
    with pytest.raises(acs.UsageError, match="at_most=0"):
        graph.replay(while_=go, at_most=0)
    with pytest.raises(acs.UsageError, match=r"at_most=2\.5"):
        graph.replay(while_=go, at_most=2.5)  # type: ignore[arg-type]
    with pytest.raises(acs.UsageError, match="at_most= bounds the rounds of while_=flag"):
        graph.replay(at_most=3)
    for wrong in (rt.zeros(1, "f4"), rt.zeros(2, "u4"), rt.zeros(1, "u8"), 1, np.ones(1, "u4")):
        with pytest.raises(acs.UsageError, match="expected one uint32 or int32"):
            graph.replay(while_=wrong, at_most=3)  # type: ignore[arg-type]
    with pytest.raises(acs.UsageError, match="another runtime"):
        graph.replay(while_=make().zeros(1, "u4"), at_most=3)
    with pytest.raises(acs.UsageError, match="no launch of the body writes the word"):
        graph.replay(while_=rt.zeros(1, "u4"), at_most=3)
    with pytest.raises(acs.UsageError, match="outside of a recording of the runtime that"):
        acs.loop(go, at_most=3)
    assert x.get().tolist() == [0]
    assert graph.replay(while_=go, at_most=9).rounds == 5


def test_a_loop_whose_word_nothing_writes_ends_the_recording(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x, go = rt.zeros(1, "u4"), rt.array([1], "u4")
    graph = rt.record()
    with pytest.raises(acs.UsageError, match="no launch of the body writes the word"):  # noqa: SIM117
        with graph, acs.loop(go, at_most=3):
            prog.count((1,), None, x)
    with pytest.raises(acs.UsageError, match="discarded"):
        graph.replay()


def test_a_body_that_is_not_whole_is_not_recorded(rt: acs.Runtime, prog: acs.Program) -> None:
    x, y, go = rt.zeros(1, "u4"), rt.zeros(1, "u4"), rt.array([1], "u4")
    with rt.record() as graph:
        prog.count((1,), None, y)
        with contextlib.suppress(ZeroDivisionError), acs.loop(go, at_most=3):
            prog.count((1,), None, x)
            1 / 0  # noqa: B018
        with contextlib.suppress(acs.UsageError), acs.loop(go, at_most=3):
            prog.count((1,), None, x)  # nothing writes the word
        handle = prog.count((1,), None, y)
    assert (len(graph), handle.number) == (2, 2)
    graph.replay()
    assert (x.get()[0], y.get()[0]) == (0, 2)
    with pytest.raises(acs.UsageError, match="does not use"):
        graph.swap(x, rt.zeros(1, "u4"))


def test_loops_around_the_same_calls_stay_two_loops(
    make: Callable[..., acs.Runtime], rt: acs.Runtime
) -> None:
    prog = rt.build(
        """kernel void up(global uint *x, global uint *in, global uint *out)
           { *x += 1; *in = *x % 3 != 0; *out = *x < 8; }"""
    )
    x, inner, outer = rt.zeros(1, "u4"), rt.array([1], "u4"), rt.array([1], "u4")
    with rt.record() as graph, acs.loop(inner, at_most=9):
        prog.up((1,), None, x, inner, outer)
    graph.replay()  # the device may keep the inner loop
    assert x.get()[0] == 3
    inner.fill(1)
    handle = graph.replay(while_=outer, at_most=20)
    assert (handle.rounds, x.get()[0], inner.get()[0]) == (20, 6, 0)


def test_a_recording_that_ends_inside_a_loop_is_discarded(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x, go = rt.zeros(1, "u4"), rt.array([1], "u4")
    graph, later = rt.record(), contextlib.ExitStack()
    graph.__enter__()
    later.enter_context(acs.loop(go, at_most=3))
    prog.early((1,), None, x, go)
    with pytest.raises(acs.UsageError, match="ended inside a loop"):
        graph.__exit__(None, None, None)
    later.close()
    with pytest.raises(acs.UsageError, match="discarded"):
        graph.replay()
    assert x.get()[0] == 0


def test_a_loop_that_is_never_entered_is_an_error_at_its_line(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x, go = rt.zeros(1, "u4"), rt.array([1], "u4")
    graph, line = rt.record(), sys._getframe().f_lineno

    def record() -> None:
        with graph:
            acs.loop(go, at_most=3)
            with acs.loop(go, at_most=3):
                prog.early((1,), None, x, go)

    wrong = rf"acs\.loop, made at .*test_loops\.py:{line + 4}, was never entered"
    with pytest.raises(acs.UsageError, match=wrong):
        record()
    with pytest.raises(acs.UsageError, match="discarded"):
        graph.replay()
    assert x.get()[0] == 0


def test_what_ends_a_recording_inside_a_loop_is_not_hidden(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    def fail() -> None:
        with contextlib.ExitStack() as later, rt.record():  # the recording ends before the loop
            later.enter_context(acs.loop(rt.array([1], "u4"), at_most=3))
            1 / 0  # noqa: B018

    with pytest.raises(ZeroDivisionError):
        fail()


def test_loops_end_in_the_order_of_their_beginnings(rt: acs.Runtime, prog: acs.Program) -> None:
    x, go = rt.zeros(1, "u4"), rt.array([1], "u4")
    with rt.record():
        outer, inner = acs.loop(go, at_most=3), acs.loop(go, at_most=3)
        with outer, inner:
            prog.early((1,), None, x, go)
            with pytest.raises(acs.UsageError, match="end the inner one first"):
                outer.__exit__(None, None, None)
            outer.__enter__()
            prog.early((1,), None, x, go)
            outer.__exit__(None, None, None)
    with pytest.raises(acs.UsageError, match="the recording in which it was made has ended"):
        outer.__enter__()


# ---- random programs -----------------------------------------------------------------------------


def test_random_loop_programs_end_as_numpy_says(rt: acs.Runtime) -> None:
    with acs.Runtime(rt.device, backend="serial") as serial:
        way, oracle = (rt, rt.build(RANDOM)), (serial, serial.build(RANDOM))
        for seed, program in programs(0, 12 + FUZZ):
            found = differs(way, oracle, program)
            assert not found, f"seed {seed}: {found}"


@pytest.mark.parametrize("order", ["critical_path", "narrow_first", "opara"])
def test_no_order_moves_a_launch_across_the_end_of_a_loop(
    make: Callable[..., acs.Runtime], order: str
) -> None:
    rt = make(order=order)
    with acs.Runtime(rt.device, backend="serial") as serial:
        way, oracle = (rt, rt.build(RANDOM)), (serial, serial.build(RANDOM))
        for seed, program in programs(100, 8 + FUZZ):
            found = differs(way, oracle, program)
            assert not found, f"seed {seed}: {found}"
