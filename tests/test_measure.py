"""Measuring a block: phases, explanations, advice with its figures, files that viewers open."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from ctrl_c import interrupted

import acs_cl as acs
from acs_cl import testing
from acs_cl.emu.convert import from_timeline
from acs_cl.emu.trace import resolved
from acs_cl.errors import StalledError
from acs_cl.observe.advice import findings
from acs_cl.observe.record import record

SOURCE = """
kernel void add(global const uint *x, global uint *y)
{ y[get_global_id(0)] += x[get_global_id(0)]; }
kernel void spin(global uint *y, uint rounds)
{
    uint v = y[get_global_id(0)] + 1;
    for (uint i = 0; i < rounds; ++i) { v ^= v << 13; v ^= v >> 17; v ^= v << 5; }
    y[get_global_id(0)] = v;
}
kernel void count(global int *x) { x[get_global_id(0)] += 1; }
struct both { global uint *from, *to; };
kernel void opaque(global uint *table, global uint *y)
{
    struct both v;
    v.from = table;
    v.to = y;
    v.to[get_global_id(0)] = v.from[0];
}
"""
ITEMS = 64
BACKENDS = ["serial", "out_of_order", "lanes", "device", "auto", "emulated"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_phases_have_their_launches_on_every_backend(backend: str) -> None:
    with acs.Runtime(backend=backend) as rt:
        prog = rt.build(SOURCE)
        x, y = rt.zeros(ITEMS, np.uint32), rt.zeros(ITEMS, np.uint32)
        for turn in range(2):
            with rt.measure() as m:
                with rt.phase("spins"):
                    for _ in range(5):
                        prog.spin((ITEMS,), (16,), x, 100)
                        prog.spin((ITEMS,), (16,), y, 100)
                    with rt.phase("inside"):
                        prog.add((ITEMS,), (16,), x, y)
                prog.add((ITEMS,), (16,), x, y)
                values = y.get()
            found = {one.name: one for one in m.phases}
            assert list(found) == ["spins", "inside", ""]
            assert (found["spins"].launches, found["inside"].launches) == (10, 1)
            assert found["spins"].edges == 8
            assert found["spins"].device_ms > 0
            assert found["spins"].host_us > 0
            assert sum(found["spins"].where.values()) == 10
            assert "spins" in str(m)
            # outside of a block nothing is recorded, and everything works as before
            prog.add((ITEMS,), (16,), x, y)
            assert len(m.slices) == 13
            np.testing.assert_array_equal(y.get(), values + x.get(), err_msg=str(turn))
        with pytest.raises(acs.UsageError, match="nothing was traced"):
            rt.trace.clear()


def test_explain_names_the_bytes_and_the_argument() -> None:
    with acs.Runtime() as rt:
        prog = rt.build(SOURCE)
        x, y = rt.zeros(ITEMS, np.uint32), rt.zeros(ITEMS, np.uint32)
        with rt.measure() as m:
            prog.spin((ITEMS,), None, x, 3)
            prog.spin((ITEMS,), None, y, 3)
            handle = prog.add((16,), None, x[:16], y[:16])
        said = m.explain("add")
        assert said == m.explain("add#1") == m.explain(handle.number)
        assert "behind spin#1" in said
        assert "RAW on bytes 0..64" in said
        assert "(x)" in said
        assert "behind spin#2" in said
        assert "behind nothing" in m.explain("spin#2")
        with pytest.raises(acs.UsageError, match="add was launched 1 times"):
            m.explain("add#2")
        with pytest.raises(acs.UsageError, match="its launches: add, spin"):
            m.explain("sub")


def test_a_block_is_asked_after_it_and_measured_once() -> None:
    with acs.Runtime() as rt:
        with rt.measure() as m:
            with pytest.raises(acs.UsageError, match="has not ended"):
                m.advice()
            with (
                pytest.raises(acs.UsageError, match="measure inside measure: end the first"),
                rt.measure(),
            ):
                pass
        assert m.advice() == []
        assert m.phases == []
        with pytest.raises(acs.UsageError, match="measured once"), m:
            pass


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_block_that_an_error_cuts_off_leaves_the_runtime_as_it_was(
    backend: str, environment: Callable[..., None]
) -> None:
    """A launch waits for an event that nobody has set, and the watchdog ends the block."""
    environment(ACS_CL_WATCHDOG=None)  # which is stronger than `watchdog_s`
    with acs.Runtime(backend=backend, watchdog_s=0.2) as rt:
        engine = rt.engine
        prog = rt.build(SOURCE)
        x, y = rt.zeros(ITEMS, np.uint32), rt.array(np.ones(ITEMS, "u4"))
        prog.add((ITEMS,), (16,), y, x).wait()
        rt.finish()
        before = engine.table.usable, engine.backend, engine.backend.profiling, engine.tracer
        gate = cl.UserEvent(rt.context)
        with pytest.raises(StalledError), rt.measure():
            prog.add((ITEMS,), (16,), y, x, wait_for=[gate])
        gate.set_status(cl.command_execution_status.COMPLETE)
        rt.finish()
        after = engine.table.usable, engine.backend, engine.backend.profiling, engine.tracer
        assert after == before
        with rt.measure() as m:
            prog.add((ITEMS,), (16,), y, x)
        assert sum(one.launches for one in m.phases) == 1
        assert (x.get() == 3).all()


def advice(m: Any, kind: str) -> str:
    found: list[str] = [sentence for sentence in m.advice() if kind in sentence]
    return found[0] if found else ""


@pytest.mark.parametrize("backend", ["lanes", "out_of_order", "device"])
def test_threads_launch_while_one_measures(backend: str) -> None:
    """A block exchanges the queues. What another thread had launched meanwhile never ended."""
    with acs.Runtime(backend=backend) as rt:
        prog = rt.build(SOURCE)
        x, others = rt.zeros(64, "i4"), [rt.zeros(64, "i4") for _ in range(2)]
        made, leaves = [0, 0], threading.Event()

        def launch(which: int) -> None:
            while not leaves.is_set():
                prog.count((64,), None, others[which])
                made[which] += 1
                if made[which] % 8 == 0:
                    rt.call(lambda: None)
                    rt.stats()
                    others[which].get()

        threads = [threading.Thread(target=launch, args=(which,), daemon=True) for which in (0, 1)]
        for thread in threads:
            thread.start()
        for _ in range(40):
            with rt.measure() as block:
                prog.count((64,), None, x)
            assert "count" in {one.name for one in block.slices}
        leaves.set()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a launch has not ended"
        assert [one.get()[5] for one in (x, *others)] == [40, *made]


def test_launches_of_replays_in_a_block_are_counted() -> None:
    with acs.Runtime(backend="lanes") as rt:
        prog, x = rt.build(SOURCE), rt.zeros(ITEMS, np.uint32)
        with rt.record() as graph:
            for _ in range(3):
                prog.spin((ITEMS,), (ITEMS,), x, 1)
        graph.replay()
        with rt.measure() as m:
            graph.replay()
            graph.replay()
            prog.spin((ITEMS,), (ITEMS,), x, 1)
        assert m.record().about.replayed == 6


def test_a_chain_is_told_with_its_length() -> None:
    with acs.Runtime(backend="out_of_order") as rt:
        prog = rt.build(SOURCE)
        x = rt.zeros(ITEMS, np.uint32)
        prog.spin((ITEMS,), (ITEMS,), x, 1)
        with rt.measure() as m:
            for _ in range(8):
                prog.spin((ITEMS,), (ITEMS,), x, 2_000_000)
        assert "no more than 1.0 launches" in advice(m, "chain-bound")
        assert not advice(m, "host-bound")


@pytest.mark.parametrize(("device_us", "idle"), [(5, "90%"), (30, "40%"), (48, "")])
def test_a_host_that_is_too_slow_is_told(device_us: int, idle: str) -> None:
    """The launches are real ones. Their times are those of a host that takes 50 us for each."""
    with acs.Runtime(backend="serial") as rt:
        prog = rt.build(SOURCE)
        arrays = [rt.zeros(1, np.uint32) for _ in range(16)]
        with rt.measure() as m:
            for _ in range(40):
                for x in arrays:
                    prog.spin((1,), (1,), x, 1)
    slices = []
    for at, one in enumerate(m.slices, 1):
        times = dict.fromkeys(("handed_ns", "start_ns"), 50_000 * at)
        times |= {"called_ns": 50_000 * at - 9_000, "hazards_ns": 2_000, "submit_ns": 7_000}
        end_ns = 50_000 * at + 1_000 * device_us
        slices.append(one._replace(end_ns=end_ns, seen_ns=end_ns, program_ns=0, **times))
    about = m.record().about._replace(began_ns=50_000, ended_ns=50_000 * 641)
    said = [one.text for one in findings(record("", slices, [], about)) if one.kind == "host-bound"]
    if idle:
        assert (
            f"the device is idle {idle} of the time; the program takes 50.0 us for each of"
            in (said[0])
        )
        assert "640 launches, 9.0 us of it in hazards and handing over: record what" in said[0]
        replayed = record("", slices, [], about._replace(replayed=600))
        said = [one.text for one in findings(replayed) if one.kind == "host-bound"]
        assert "over: most are replayed already: record more at a time, or make" in said[0]
    else:
        assert not said


@pytest.mark.parametrize("backend", ["auto", "serial", "lanes"])
def test_launches_on_lanes_are_counted_by_lane(backend: str) -> None:
    with acs.Runtime(backend=backend) as rt:
        prog = rt.build(SOURCE)
        x = rt.zeros(ITEMS, np.uint32)
        prog.spin((ITEMS,), (ITEMS,), x, 1)
        rt.finish()
        stats = rt.stats()
        on_device = stats.get("scheduler", {}).get("tasks", 0)
        elsewhere = on_device + stats["by_host"]
        assert sum(stats["lanes"].values()) == stats["launches"] - elsewhere
        assert stats["launches"] == 2


def test_a_full_window_is_told() -> None:
    with acs.Runtime(backend="out_of_order", window=2, issue="ready_first") as rt:
        prog = rt.build(SOURCE)
        arrays = [rt.zeros(ITEMS, np.uint32) for _ in range(8)]
        with rt.measure() as m:
            for x in arrays:
                prog.spin((ITEMS,), (ITEMS,), x, 100_000)
        assert "found the window of 2 full" in advice(m, "window-bound")
        with acs.Runtime(backend="out_of_order") as free, free.measure() as n:
            free.zeros(4)
        assert not advice(n, "window-bound")


def test_few_lanes_are_told() -> None:
    with acs.Runtime(backend="lanes", lanes=1) as rt:
        prog = rt.build(SOURCE)
        arrays = [rt.zeros(ITEMS, np.uint32) for _ in range(8)]
        prog.spin((ITEMS,), (ITEMS,), arrays[0], 1)
        with rt.measure() as m:
            for x in arrays:
                prog.spin((ITEMS,), (ITEMS,), x, 1_000_000)
        said = advice(m, "lane-bound")
        assert "lanes=2" in said, str(m)


def test_arguments_that_only_count_as_written_are_told() -> None:
    with acs.Runtime() as rt:
        prog = rt.build(SOURCE)
        table, outs = rt.zeros(ITEMS, np.uint32), [rt.zeros(ITEMS, np.uint32) for _ in range(5)]
        assert prog.opaque.signature.parameters[0].mode == "rw"
        with rt.measure() as m:
            for out in outs:
                prog.opaque((ITEMS,), None, table, out)
        said = advice(m, "never is")
        assert said.startswith("table of opaque")
        assert "4 of 4 edges" in said
        prog.opaque.access(table="r")
        with rt.measure() as m:
            for out in outs:
                prog.opaque((ITEMS,), None, table, out)
        assert not advice(m, "never is")
        assert not any(m.edges.values())


def test_a_saved_block_is_a_trace_of_viewers_and_of_the_emulator(tmp_path: Path) -> None:
    with acs.Runtime(backend="out_of_order") as rt:
        prog = rt.build(SOURCE)
        arrays = [rt.zeros(ITEMS, np.uint32) for _ in range(4)]
        with rt.measure() as m, rt.phase("one"):
            for _ in range(4):
                for x in arrays:
                    prog.spin((ITEMS,), (16,), x, 20_000)
            rt.call(lambda a: None, reads=arrays[0])
        m.save(tmp_path / "step.json")
    document = json.loads((tmp_path / "step.json").read_text("utf-8"))
    events = [one for one in document["traceEvents"] if one["ph"] == "X"]
    named = {(one["pid"], one["tid"]) for one in document["traceEvents"] if one["ph"] == "M"}
    assert sum(len(one["args"]["launches"]) for one in events) == 17
    tracks: dict[Any, list[Any]] = {}
    for one in events:
        assert one["cat"] == "one"
        assert one["dur"] >= 0
        tracks.setdefault((one["pid"], one["tid"]), []).append((one["ts"], one["ts"] + one["dur"]))
    assert set(tracks) <= named
    for spans in tracks.values():  # a viewer needs slices of a track one after another
        spans.sort()
        assert all(a[1] <= b[0] + 1e-6 for a, b in pairwise(spans))
    trace, _ = from_timeline(tmp_path / "step.json", 16)
    assert [len(entry.upstream) for entry in resolved(trace).entries] == [0] * 4 + [1] * 13
    assert {entry.items for entry in trace.entries if entry.kind == "kernel"} == {16}


@pytest.mark.parametrize("backend", ["lanes", "device"])
@pytest.mark.parametrize("function", ["come_to_rest", "retime", "_end", "_leave"])
def test_ctrl_c_at_an_end_of_a_block_ends_the_block(
    device: cl.Device, scheduler: None, backend: str, function: str
) -> None:
    """No other block could begin, and all launches were traced from then on."""
    with acs.Runtime(device, backend=backend) as rt:
        count, x = rt.build(SOURCE).count, rt.zeros(64, "i4")
        for turn in itertools.count(1):
            with interrupted(function, turn) as turns, suppress(KeyboardInterrupt), rt.measure():
                count((64,), None, x)
            with rt.measure() as block:
                count((64,), None, x)
            assert [one.name for one in block.slices] == ["count"]
            rt.finish()
            before = testing.made_by_core(rt)
            count((64,), None, x)
            count((64,), None, x)
            assert testing.made_by_core(rt) > before
            if len(turns) < turn:
                break
