"""What a timeline keeps of the program itself: its own time between launches, and what it waited
for. Own time is told by a clock that only the program moves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from fuzz.threads import in_threads

import acs_cl as acs
from acs_cl.emu.convert import from_timeline
from acs_cl.emu.machines import machine
from acs_cl.emu.policies import simulate
from acs_cl.emu.trace import Trace, load, save
from acs_cl.observe.slices import ALL_BEFORE, Slice

SOURCE = "kernel void bump(global int *x) { x[get_global_id(0)] += 1; }"
BACKENDS = ("serial", "out_of_order", "lanes", "device", "emulated")


@pytest.fixture
def work() -> Iterator[Callable[[int], None]]:
    """So many nanoseconds of the program's own; calls of the library take none."""
    now = [1_000_000]

    def takes(ns: int) -> None:
        now[0] += ns

    with inside.host_clock(lambda: now[0]):
        yield takes


def launches(runtime: acs.Runtime) -> list[Slice]:
    runtime.finish()
    return sorted(runtime.trace.slices, key=lambda one: one.number)


@pytest.mark.parametrize("backend", BACKENDS)
def test_own_time_and_waits_go_to_the_next_launch(
    backend: str, work: Callable[[int], None]
) -> None:
    with acs.Runtime(backend=backend, trace=True) as rt:
        prog, x, y = rt.build(SOURCE), rt.zeros(64, "i4"), rt.zeros(64, "i4")
        rt.finish()
        rt.trace.clear()
        work(9_000)  # before the first launch: not known
        prog.bump((64,), (64,), x)
        work(700)
        other = prog.bump((64,), (64,), y)
        work(100)
        x.get()
        work(50)
        prog.bump((64,), (64,), x)
        work(10)
        other.wait()
        work(20)
        rt.finish()
        work(30)
        other.wait()
        prog.bump((64,), (64,), x)
        read = other.number + 1
        found = launches(rt)
        assert [(one.name, one.program_ns, one.waits) for one in found] == [
            ("bump", 0, ()),
            ("bump", 700, ()),
            ("read", 100, ()),
            ("bump", 50, (read,)),
            ("bump", 60, (ALL_BEFORE,)),
        ]
        assert {one.thread for one in found} == {0}


def test_polling_for_a_launch_is_waiting(work: Callable[[int], None]) -> None:
    goes_on = threading.Event()
    with acs.Runtime(backend="lanes", trace=True) as rt:
        prog, x, y = rt.build(SOURCE), rt.zeros(64, "i4"), rt.zeros(64, "i4")
        task = rt.call(lambda _: goes_on.wait(20), reads=[x])
        rt.trace.clear()
        first = prog.bump((64,), (64,), y)
        work(40)
        assert not task.done
        work(1_000)
        goes_on.set()
        while not task.done:
            work(5)
        work(70)
        prog.bump((64,), (64,), y)
        last = launches(rt)[-1]
        assert (last.program_ns, last.waits) == (110, (task.number,))
        assert last.number == first.number + 1


def test_a_poll_without_a_wait_is_work(work: Callable[[int], None]) -> None:
    goes_on = threading.Event()
    with acs.Runtime(backend="lanes", trace=True) as rt:
        prog, x, y = rt.build(SOURCE), rt.zeros(64, "i4"), rt.zeros(64, "i4")
        task = rt.call(lambda _: goes_on.wait(20), reads=[x])
        prog.bump((64,), (64,), y)
        assert not task.done
        work(300)
        prog.bump((64,), (64,), y)
        goes_on.set()
        last = launches(rt)[-1]
        assert (last.program_ns, last.waits) == (300, ())


def test_a_refused_call_is_not_the_programs_own(work: Callable[[int], None]) -> None:
    with acs.Runtime(backend="serial", trace=True) as rt:
        prog, x = rt.build(SOURCE), rt.zeros(64, "i4")
        work(5)
        with pytest.raises(acs.UsageError):
            prog.bump((64,), (64,), x, 1)
        work(7)  # nobody knows where the library ended
        prog.bump((64,), (64,), x)
        assert launches(rt)[-1].program_ns == 5


def test_a_replay_is_the_librarys_time(work: Callable[[int], None]) -> None:
    with acs.Runtime(backend="lanes", trace=True) as rt:
        prog, x = rt.build(SOURCE), rt.zeros(64, "i4")
        with rt.record() as graph:
            for _ in range(4):
                prog.bump((64,), (64,), x)
        rt.finish()
        rt.trace.clear()
        x.fill(1)
        work(25)
        graph.replay()
        assert [one.program_ns for one in launches(rt)] == [0, 25, 0, 0, 0]


def test_what_is_measured_apart_is_forgotten(work: Callable[[int], None]) -> None:
    with acs.Runtime(backend="serial", trace=True) as rt:
        prog, x = rt.build(SOURCE), rt.zeros(64, "i4")
        rt.finish()
        with rt.measure() as m:
            prog.bump((64,), (64,), x)
            work(15)
            prog.bump((64,), (64,), x)
        work(900)
        prog.bump((64,), (64,), x)
        assert [one.program_ns for one in m.slices] == [0, 15]
        assert [one.program_ns for one in launches(rt)][-3:] == [0, 15, 0]


def test_queues_of_pyopencl_tell_the_same(work: Callable[[int], None]) -> None:
    with acs.Runtime(backend="lanes", trace=True) as rt:
        queue = acs.Queue(rt.context, runtime=rt)
        values = np.zeros(64, "i4")
        buffer = cl.Buffer(rt.context, cl.mem_flags.READ_WRITE, values.nbytes)
        cl.enqueue_copy(queue, buffer, values)
        rt.finish()
        rt.trace.clear()
        cl.enqueue_copy(queue, values, buffer)  # blocks
        work(80)
        cl.enqueue_copy(queue, buffer, values)
        queue.finish()
        read, written = launches(rt)
        assert (written.program_ns, written.waits) == (80, (read.number,))


def test_every_thread_has_times_of_its_own(tmp_path: Path) -> None:
    with acs.Runtime(backend="lanes", trace=True) as rt:
        prog = rt.build(SOURCE)
        arrays = [rt.zeros(64, "i4") for _ in range(3)]
        prog.bump((64,), (64,), arrays[0])

        def launch(number: int) -> None:
            prog.bump((64,), (64,), arrays[1 + number])
            arrays[1 + number].get()

        in_threads(launch, 2)
        assert {one.thread for one in launches(rt)} == {0, 1, 2}
        rt.trace.save(tmp_path / "timeline.jsonl")
    trace, said = from_timeline(tmp_path / "timeline.jsonl", 64)
    assert "3 threads made launches, and the emulator has one" in " ".join(said)
    assert not any(one.host_ns or one.waits for one in trace.entries)


# ---- in the emulator -----------------------------------------------------------------------------


def recorded(tmp_path: Path, work: Callable[[int], None]) -> tuple[Trace, list[str]]:
    with acs.Runtime(backend="serial", trace=True) as rt:
        prog, x = rt.build(SOURCE), rt.zeros(64, "i4")
        rt.finish()
        rt.trace.clear()
        for _ in range(3):
            prog.bump((64,), (64,), x)
            work(2_000_000)
            x.get()
            work(1_000_000)
        rt.finish()
        prog.bump((64,), (64,), x)
        rt.finish()
        rt.trace.save(tmp_path / "timeline.jsonl")
    return from_timeline(tmp_path / "timeline.jsonl", 64)


def test_a_timeline_is_run_with_the_programs_time_and_waits(
    tmp_path: Path, work: Callable[[int], None]
) -> None:
    trace, said = recorded(tmp_path, work)
    assert "did between launches" not in " ".join(said)
    assert [one.host_ns for one in trace.entries] == [0, *[2_000_000, 1_000_000] * 3]
    assert [one.waits for one in trace.entries] == [(), (), (2,), (), (4,), (), (ALL_BEFORE,)]
    save(trace, tmp_path / "trace.jsonl")
    assert load(tmp_path / "trace.jsonl") == trace
    where = machine("cpu2")
    found = simulate("serial", trace, where)
    assert found.overheads_ns["program"] == 9_000_000
    bare = [one._replace(host_ns=0) for one in trace.entries]
    without = simulate("serial", trace._replace(entries=bare), where)
    assert found.makespan_ns > without.makespan_ns > 3 * where.host.sync_ns


def test_a_wait_for_what_is_not_in_the_timeline_is_dropped(
    tmp_path: Path, work: Callable[[int], None]
) -> None:
    recorded(tmp_path, work)
    path: Any = tmp_path / "timeline.jsonl"
    head, _, *others = path.read_text(encoding="utf-8").splitlines()
    head = head.replace('"launches": 7', '"launches": 5')
    path.write_text("\n".join([head, *others[1:]]) + "\n", encoding="utf-8")
    trace, _ = from_timeline(path, 64)
    assert [one.waits for one in trace.entries] == [(), (), (2,), (), (ALL_BEFORE,)]
