"""What groups of the scheduler note of tiles: all of them, in order, inside of their epochs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import inside
import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.observe.record import load
from acs_cl.observe.trace import Slice
from acs_cl.records import Found
from acs_cl.scheduler import builds, notes

SOURCE = """
#include <acs_spawn.h>
kernel void add(global const int *x, global int *y) { int i = get_global_id(0); y[i] += x[i]; }
kernel void turn(global int *x, local int *own)
{ int l = get_local_id(0), n = get_local_size(0); own[l] = x[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE); x[get_global_id(0)] = own[n - 1 - l]; }
kernel void below(global const int *x, global int *go, int most) { *go = *x < most; }
void visit(uint item, global int *seen) { atomic_inc(&seen[item]); }
kernel void expand(global int *seen, uint n) { ACS_SPAWN(visit, n, seen); }
"""
N, ROWS = 256, 6


@pytest.fixture
def rt(device: cl.Device) -> Iterator[acs.Runtime]:
    with acs.Runtime(device, backend="device") as rt:
        yield rt


class Step:
    """Launches whose tasks have one tile or several, and follow each other across rows."""

    def __init__(self, rt: acs.Runtime) -> None:
        self.prog = rt.build(SOURCE)
        self.rows = [rt.array(np.full(N, r + 1, "i4")) for r in range(ROWS)]
        prog = self.prog
        prog.turn((N,), (16,), self.rows[0], cl.LocalMemory(64))
        rt.prebuild(prog.add, prog.turn, prog.below)
        prog.turn((N,), (16,), self.rows[0], cl.LocalMemory(64))
        rt.finish()

    def go(self) -> None:
        for _ in range(3):
            for upper, lower in pairwise(self.rows):
                self.prog.add((N,), None, upper, lower)
            self.prog.turn((N,), (16,), self.rows[-1], cl.LocalMemory(64))

    def values(self) -> list[list[int]]:
        return [row.get().tolist() for row in self.rows]


def bounds(one: Slice) -> tuple[int, int]:
    return min(run.start_ns for run in one.runs), max(run.end_ns for run in one.runs)


def test_each_task_has_its_times_inside_its_epoch_and_behind_what_it_follows(
    rt: acs.Runtime,
) -> None:
    step = Step(rt)
    with rt.measure() as m:
        step.go()
    kernels = {one.number: one for one in m.slices if one.epoch}
    assert len(kernels) == 3 * ROWS
    for one in kernels.values():
        assert one.runs, one
        first, last = bounds(one)
        assert one.start_ns <= first <= last <= one.end_ns
        assert sum(run.tiles for run in one.runs) <= max(1, one.groups)
        assert {(run.number, run.part) for run in one.runs} == {(one.number, -1)}
        assert m.explain(one.number).splitlines()[0].endswith(f", {(last - first) / 1e3:.1f} us")
    for number, edges in m.edges.items():
        for edge in edges:
            assert bounds(kernels[edge.upstream])[1] <= bounds(kernels[number])[0]
    by_group: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for one in kernels.values():
        for run in one.runs:
            by_group.setdefault((one.epoch, run.group), []).append((run.start_ns, run.end_ns))
    for runs in by_group.values():  # a group does one thing at a time
        assert all(a[1] <= b[0] for a, b in pairwise(sorted(runs)))
    noted = m.record().about.noted
    assert noted.clock in ("ns", "ticks", "order")
    assert (noted.dropped, noted.untimed) == (0, ())


def test_a_measured_program_computes_the_same_and_is_as_usual_afterwards(rt: acs.Runtime) -> None:
    step, plain = Step(rt), Step(rt)
    plain.go()
    with rt.measure():
        step.go()
        assert all(one.notes is not None for one in schedulers(rt))
    assert all(one.notes is None for one in schedulers(rt))
    assert step.values() == plain.values()
    step.go()
    plain.go()
    with rt.measure() as again:
        assert step.values() == plain.values()
    assert all(not one.runs for one in again.slices)


def schedulers(rt: acs.Runtime) -> list[builds.Scheduler]:
    found = rt.engine.backend.schedulers.built()  # type: ignore[attr-defined]
    assert found
    return list(found)


def test_a_replay_tells_of_each_task(rt: acs.Runtime) -> None:
    step = Step(rt)
    with rt.record() as graph:
        step.go()
    with rt.measure() as m:
        graph.replay()
        graph.replay()
    for one in m.slices:
        assert len(one.parts) == 3 * ROWS
        assert [part.launch for part in one.parts] == list(range(1, 3 * ROWS + 1))
        ran = {run.part: run for run in one.runs}
        assert set(ran) == set(range(3 * ROWS))
        for task, part in enumerate(one.parts):
            for other in part.upstream:
                last = max(run.end_ns for run in one.runs if run.part == other)
                assert last <= min(run.start_ns for run in one.runs if run.part == task)
    assert m.slices[0].parts is m.slices[1].parts


def test_bands_are_told_apart(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device", bands=4) as rt:
        step = Step(rt)
        with rt.record() as graph:
            step.go()
        with rt.measure() as m:
            graph.replay()
    (replay,) = m.slices
    bands = [part.band for part in replay.parts if part.name == "add"]
    assert set(bands) == {0, 1, 2, 3}
    assert {run.part for run in replay.runs} == set(range(len(replay.parts)))


def test_a_loop_tells_of_each_round(rt: acs.Runtime) -> None:
    step = Step(rt)
    x, one, go = rt.zeros(1, "i4"), rt.array([1], "i4"), rt.array([1], "i4")
    with rt.record() as graph:
        step.prog.add((1,), None, one, x)
        step.prog.below((1,), None, x, go, 5)
    graph.replay(while_=go, at_most=100)
    with rt.measure() as m:
        x.fill(0)
        go.fill(1)
        graph.replay(while_=go, at_most=100)
    (loop,) = [one for one in m.slices if one.parts]
    assert [sum(run.tiles for run in loop.runs if run.part == part) for part in (0, 1)] == [5, 5]


def test_what_was_spawned_is_told_with_its_launch(rt: acs.Runtime) -> None:
    prog = rt.build(SOURCE)
    seen = rt.zeros(20000, "i4")
    prog.expand((4,), None, seen, np.uint32(20000))
    rt.prebuild(prog.expand)
    with rt.measure() as m:
        prog.expand((4,), None, seen, np.uint32(20000))
    (one,) = [one for one in m.slices if one.epoch]
    assert any(not run.is_child for run in one.runs)
    assert {run.number for run in one.runs} == {one.number}


def test_a_traced_runtime_notes_from_the_beginning(device: cl.Device, tmp_path: Path) -> None:
    with acs.Runtime(device, backend="device", trace=True) as rt:
        step = Step(rt)
        rt.trace.clear()
        step.go()
        rt.finish()
        slices = rt.trace.slices
        assert len(slices) == 3 * ROWS
        assert all(one.runs for one in slices)
        with rt.measure() as m:
            step.go()
        assert all(one.runs for one in m.slices if one.epoch)
        rt.trace.save(tmp_path / "all.jsonl")
        found = rt.trace.slices
    again = load(tmp_path / "all.jsonl").slices
    assert [one.runs for one in again] == [one.runs for one in found]


def test_what_does_not_fit_is_counted(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device") as rt:
        rt.engine.backend.schedulers.maker.notes_room = 8  # type: ignore[attr-defined]
        step = Step(rt)
        with rt.record() as graph:
            step.go()
        with rt.measure() as m:
            graph.replay()  # one epoch, so nothing is read before its end
        noted, told = m.record().about.noted, sum(len(one.runs) for one in m.slices)
        assert noted.dropped > 0
        assert 0 < told <= 8
        with rt.measure() as m:
            step.prog.add((N,), None, *step.rows[:2])
        assert m.record().about.noted.dropped == 0
        assert all(one.runs for one in m.slices)


def test_a_long_trace_is_read_now_and_then(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device", trace=True) as rt:
        rt.engine.backend.schedulers.maker.notes_room = 1024  # type: ignore[attr-defined]
        step = Step(rt)
        rt.trace.clear()
        for _ in range(40):
            step.go()
            rt.finish()
        for _ in range(40):  # few tasks, of many tiles each
            step.prog.turn((N,), (16,), step.rows[0], cl.LocalMemory(64))
            rt.finish()
        assert all(one.runs for one in rt.trace.slices)
        assert rt.trace.found.dropped == 0


def test_a_timed_form_that_does_not_build_is_told(
    rt: acs.Runtime,
) -> None:
    step, plain = Step(rt), Step(rt)

    def fails(*arguments: object) -> None:
        raise cl.RuntimeError("out of patience")

    with inside.build_step("form", lambda _: fails), rt.measure() as m:
        step.go()
    noted = m.record().about.noted
    assert noted.clock == ""
    assert all("out of patience" in why for _, why in noted.untimed)
    assert noted.untimed
    plain.go()
    assert step.values() == plain.values()


# ---- clocks --------------------------------------------------------------------------------------


class Clock(notes.Notes):
    """What notes of one scheduler are, without a device."""

    def __init__(self, kind: int) -> None:
        self.kind, self.cost = kind, 10.0


def noted(kind: int, *epochs: tuple[int, int]) -> list[notes.Noted]:
    own = Clock(kind)
    return [
        notes.Noted(own, place, place + 1, start, end, [10 * place + 1, 10 * place + 2], None)
        for place, (start, end) in enumerate(epochs)
    ]


def entries(*rows: tuple[int, int, int, int, int]) -> np.ndarray:
    """Task, group, launch, begin and end."""
    found = [
        [task + 1, group, launch, 0, began & 0xFFFFFFFF, began >> 32, ended & 0xFFFFFFFF,
         ended >> 32]
        for task, group, launch, began, ended in rows
    ]  # fmt: skip
    return np.array(found, np.uint32).reshape(-1, notes.WORDS)


def times(found: Found) -> list[tuple[int, int, int, int]]:
    return [(run.number, run.group, run.start_ns, run.end_ns) for run in found.runs]


def test_ticks_become_times_by_two_looks_at_both_clocks() -> None:
    far = 1 << 40  # half a tick is a nanosecond
    anchors = [notes.Anchor(far, 990, 1010), notes.Anchor(far + 200_000, 100_990, 101_010)]
    rows = entries((0, 0, 0, far + 2_000, far + 4_000), (1, 1, 0, far + 4_000, far + 8_000))
    found = notes.found_in(noted(notes.TICKS, (1_995, 5_005)), rows, 3, anchors)
    assert times(found) == [(1, 0, 2000, 3000), (2, 1, 3000, 5000)]
    assert (found.clock, found.dropped, found.cost_ns) == ("ticks", 3, 5.0)
    assert found.error_ns <= 6


def test_nanoseconds_have_one_rate_and_an_offset() -> None:
    far = 1_763_000_000_000_000_000  # as NVIDIA's clock has it, with more digits than a float
    anchors = [notes.Anchor(5_000, far + 90, far + 110), notes.Anchor(5_001, far + 92, far + 112)]
    rows = entries((0, 0, 0, 6_000, 7_000), (0, 0, 1, 8_000, 9_500))
    epochs = noted(notes.NANOSECONDS, (far + 1_050, far + 2_200), (far + 3_000, far + 4_700))
    found = notes.found_in(epochs, rows, 0, anchors)
    shift = times(found)[0][2] - 6_000
    assert -4_910 <= shift - far <= -4_889
    assert times(found) == [
        (1, 0, 6_000 + shift, 7_000 + shift), (11, 0, 8_000 + shift, 9_500 + shift)
    ]  # fmt: skip


def test_an_order_is_spread_over_its_epoch() -> None:
    rows = entries((0, 0, 0, 4, 5), (1, 1, 0, 6, 8))
    found = notes.found_in(noted(notes.ORDER, (1_000, 2_000)), rows, 0, [notes.Anchor(0, 0, 1)])
    assert times(found) == [(1, 0, 1000, 1250), (2, 1, 1500, 2000)]
    assert (found.clock, found.error_ns) == ("order", 0)


def test_notes_of_an_epoch_that_nobody_knows_are_left_out() -> None:
    known = [notes.Noted(Clock(notes.ORDER), 3, 4, 0, 100, [7], None)]
    rows = entries((0, 0, 2, 1, 2), (0, 0, 3, 3, 4), (0, 0, 4, 5, 6))
    found = notes.found_in(known, rows, 0, [notes.Anchor(0, 0, 1)])
    assert [run.number for run in found.runs] == [7]
