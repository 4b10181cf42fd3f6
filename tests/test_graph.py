"""Record and replay, on every backend and policy, against the same launches made one by one.

Where the device's scheduler runs segments, these have to be as many as they can be.
"""

from __future__ import annotations

import gc
import random
import re
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from ctrl_c import Ctrl
from fuzz.kernels import MODES
from fuzz.kernels import SOURCE as STEPS
from fuzz.machine import AcsMachine
from fuzz.oracle import NumpyMachine
from fuzz.steps import Launch, Step, run
from fuzz.threads import in_threads
from fuzz.views import BYTES, SHAPES, View

import acs_cl as acs
from acs_cl.graph.graph import Graph
from acs_cl.launch.moves import SHORT_BYTES
from acs_cl.records import Access
from acs_cl.scheduler.orders import ORDERS

pytestmark = pytest.mark.rotate("make", 3)

SOURCE = """
kernel void add(global const float *x, global float *y, float a)
{ size_t i = get_global_id(0); y[i] += a * x[i]; }
kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }
kernel void count(global uint *x) { x[get_global_id(0)] += 1; }
kernel void down(global uint *left, global uint *go) { *left -= 1; *go = *left != 0; }
kernel void copy(global const uint *x, global uint *y)
{ size_t i = get_global_id(0); y[i] = x[i]; }
kernel void reach(global uint *x, global ulong *any) { printf(""); x[get_global_id(0)] += any[0]; }
kernel void sums(global const uint *x, global uint *y, local uint *part)
{
    size_t i = get_local_id(0);
    part[i] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!i) { uint all = 0; for (uint k = 0; k < get_local_size(0); ++k) all += part[k];
              y[get_group_id(0)] += all; }
}
kernel void wide(global uint *y, ulong a, ulong b, ulong c, ulong d, ulong e, ulong f, ulong g,
                 ulong h) { y[0] += a + b + c + d + e + f + g + h; }
"""


@pytest.fixture
def prog(rt: acs.Runtime) -> acs.Program:
    return rt.build(SOURCE)


def on_device(rt: acs.Runtime) -> bool:
    return rt.plan.backend == "device"


def segments(graph: acs.Graph) -> int:
    found = re.search(r"segments: (\d+)", repr(graph))
    assert found, graph
    return int(found[1])


# ---- replays are the launches --------------------------------------------------------------------


def test_recording_runs_nothing_and_a_replay_runs_all_in_order(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x, y = rt.array([1, 2, 3], "f4"), rt.zeros(3)
    with rt.record() as graph:
        prog.add((3,), None, x, y, 1)
        prog.twice((3,), None, y)
        prog.add((3,), None, y, x, 0.5)
    assert len(graph) == 3
    assert segments(graph) == on_device(rt)
    assert not y.get().any()
    want_x, want_y = np.array([1, 2, 3], "f4"), np.zeros(3, "f4")
    for _ in range(4):
        handle = graph.replay()
        want_y = (want_y + want_x) * 2
        want_x = want_x + want_y / 2
        assert y.get().tolist() == want_y.tolist()
    handle.wait()
    assert handle.done
    assert x.get().tolist() == want_x.tolist()
    assert isinstance(handle, acs.Handle)
    assert rt.stats()["replays"] == 4
    assert rt.stats()["segments"] == (4 if on_device(rt) else 0)


def test_contents_change_between_replays(rt: acs.Runtime, prog: acs.Program) -> None:
    x, y = rt.zeros(8), rt.zeros(8)
    with rt.record() as graph:
        y.fill(1)
        prog.add((8,), None, x, y, 2)
    for value in range(5):
        x.fill(value)
        graph.replay()
        assert (y.get() == 1 + 2 * value).all()


def test_a_graph_that_is_dropped_gives_back_its_memory_at_once(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    """No cycle keeps it until the garbage collector comes."""
    x, y = rt.zeros(8), rt.zeros(8)
    with rt.record() as graph:
        prog.add((8,), None, x, y, 2)
        x[::2].copy_from(y[::2])
    graph.replay().wait()
    left = weakref.ref(graph), weakref.ref(x)
    gc.disable()
    try:
        del graph, x
        assert [one() for one in left] == [None, None]
    finally:
        gc.enable()


def test_transfers_and_host_tasks_are_recorded(rt: acs.Runtime, prog: acs.Program) -> None:
    seen: list[int] = []

    def host(x: Any, y: Any) -> None:
        seen.append(int(x[0]))
        y[...] = x + 1

    x, y, z = rt.zeros((4, 4), "u4"), rt.zeros((4, 4), "u4"), rt.zeros(4, "u4")
    values = np.arange(4, dtype="u4")
    shared = np.full(4, 7, "u4")
    with rt.record() as graph:
        prog.count((16,), None, x)
        rt.call(host, reads=x[:, 0], writes=y[:, 1])
        y[0].copy_from(x[0])
        y[:, 3] = x[:, 3]
        y[1:3, 1:3].fill(9)
        z.set(values)
        prog.count((4,), None, z)
        y[3].set(shared, copy=False)
    values[...] = 100  # it was copied
    graph.replay()
    second = graph.replay()
    second.wait()
    assert seen == [1, 2]
    want = np.array([[2, 2, 2, 2], [0, 9, 9, 2], [0, 9, 9, 2], [7, 7, 7, 7]])
    want[0, 1] = 2
    assert (y.get() == want).all()
    assert z.get().tolist() == [1, 2, 3, 4]
    shared[...] = 8  # it was not
    graph.replay()
    assert y.get()[3].tolist() == [8, 8, 8, 8]


def test_kernels_of_several_group_sizes_and_long_arguments(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x, y = rt.array(np.arange(64), "u4"), rt.zeros(8, "u4")
    with rt.record() as graph:
        prog.count((64,), None, x)
        prog.sums((64,), (8,), x, y, cl.LocalMemory(32))
        last = prog.wide((1,), None, y, 1, 1 << 33, 1, 1, 1, 1, 1, 1)
        prog.count((64,), (4,), x)
    graph.replay()
    graph.update(last, h=100)
    graph.replay()
    want = (np.arange(64) + 1).reshape(8, 8).sum(1) + (np.arange(64) + 3).reshape(8, 8).sum(1)
    want[0] += 7 + 106
    assert y.get().tolist() == want.tolist()


@pytest.mark.parametrize("turns", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 3, None])
def test_replays_in_a_row_are_right_where_groups_leave_early(
    device: cl.Device, turns: int, groups: int | None
) -> None:
    with acs.Runtime(device, backend="device", groups=groups) as rt:
        backend = inside.Scheduler(rt)
        backend.set(turns=turns)
        prog = rt.build(SOURCE)
        x = rt.zeros((40, 700), "u4")
        order = random.Random(turns).choices(range(40), k=400)
        with rt.record() as graph:
            for row in order:
                prog.count((700,), None, x[row])
        assert segments(graph) == 1
        launches = backend.counters["launches"]
        for times in range(1, 7):
            graph.replay()
            if times % 2:
                assert (x.get() == times * np.bincount(order, minlength=40)[:, None]).all()
        assert backend.counters["launches"] >= launches + 12


def test_loop_on_the_device_ends_without_a_read(rt: acs.Runtime, prog: acs.Program) -> None:
    """The body is replayed until its flag is zero, and further replays do nothing."""
    left, go, next_, done = (rt.array([n], "u4") for n in (7, 1, 1, 0))
    with rt.record() as graph:
        prog.count((1,), None, done, when=go)
        prog.down((1,), None, left, next_, when=go)
        prog.copy((1,), None, next_, go)
    for _ in range(12):
        graph.replay()
    assert (left.get().tolist(), go.get().tolist(), done.get().tolist()) == ([0], [0], [7])
    assert segments(graph) == on_device(rt)


def test_size_on_the_device(rt: acs.Runtime, prog: acs.Program) -> None:
    n, x = rt.zeros(1, "u4"), rt.zeros(16, "u4")
    with rt.record() as graph:
        prog.count((acs.size(n, upto=16),), None, x)
        prog.count((1,), None, n)
    for _ in range(6):
        graph.replay()
    assert x.get().tolist() == [5, 4, 3, 2, 1] + 11 * [0]


def test_wrong_count_names_the_launch_in_its_graph(rt: acs.Runtime, prog: acs.Program) -> None:
    n, x, y, z = rt.array([3], "u4"), rt.zeros(8, "u4"), rt.zeros(8, "u4"), rt.zeros(8, "u4")
    with rt.record() as graph:
        prog.count((8,), None, z)
        prog.count((acs.size(n, upto=8),), None, x)
        prog.copy((8,), None, x, y)
    graph.replay().wait()
    n.fill(9)
    handle = graph.replay()
    with pytest.raises(acs.PoisonedError) as caught:
        handle.wait()
    text = str(caught.value.__cause__)
    assert "'count" in text, text
    assert ("launch 2 " in text) if on_device(rt) else ("2 in its graph" in text), text
    assert "is 9, expected 0 to 8" in text, text
    for array in (x, y):
        with pytest.raises(acs.PoisonedError):
            array.get()
    assert z.get().tolist() == 8 * [2]  # has nothing to do with it
    n.fill(2)
    x.fill(0)
    y.fill(0)
    graph.replay().wait()
    assert y.get().tolist() == [1, 1, 0, 0, 0, 0, 0, 0]


def test_graphs_of_nothing_and_of_lanes_alone(rt: acs.Runtime) -> None:
    with rt.record() as empty:
        pass
    handle = empty.replay()
    assert len(empty) == 0
    assert handle.wait() is None
    assert handle.done
    handle.event.wait()
    x, y = rt.zeros(SHORT_BYTES), rt.zeros(SHORT_BYTES)  # the driver's, since they are long
    with rt.record() as graph:
        x.fill(3)
        y.copy_from(x)
        x.fill(4)
    for _ in range(3):
        graph.replay()
    assert (y.get() == 3).all()
    assert (x.get() == 4).all()
    assert segments(graph) == 0


def test_events_of_replays_complete_with_all_of_it(rt: acs.Runtime, prog: acs.Program) -> None:
    x, y = rt.zeros(64, "u4"), rt.zeros(64, "u4")
    open_ = threading.Event()
    with rt.record() as graph:
        prog.count((64,), None, x)
        rt.call(lambda: open_.wait(20) and None)
        y.fill(1)
    handle = graph.replay()
    event = handle.event
    assert event.get_info(cl.event_info.COMMAND_EXECUTION_STATUS) > 0
    assert not handle.done
    open_.set()
    event.wait()
    handle.wait()
    assert handle.done
    handle.event.wait()


# ---- among others --------------------------------------------------------------------------------


def test_replays_interleave_with_launches_on_the_same_arrays(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    rng = random.Random(5)
    rows = 12
    x = rt.zeros((rows, 32), "u4")
    want = np.zeros((rows, 32), "u4")
    graphs: list[tuple[acs.Graph, list[int]]] = []
    for _ in range(3):
        order = rng.choices(range(rows), k=20)
        with rt.record() as graph:
            for row in order:
                prog.count((32,), None, x[row])
        graphs.append((graph, order))
    for _ in range(120):
        choice = rng.randrange(6)
        row = rng.randrange(rows)
        if choice < 3:
            graph, order = rng.choice(graphs)
            graph.replay()
            want += np.bincount(order, minlength=rows)[:, None].astype("u4")
        elif choice == 3:
            prog.count((16,), None, x[row, :16])
            want[row, :16] += 1
        elif choice == 4:
            x[row].fill(row)
            want[row] = row
        else:
            other = (row + 1) % rows
            x[row].copy_from(x[other])
            want[row] = want[other]
    assert (x.get() == want).all()


class Recording(AcsMachine):
    """Launches inside a recording, where nothing can be read."""

    def kernel(self, launch: Launch, gated: bool) -> None:
        super().kernel(launch, False)

    def host(self, source: View, target: View, both: bool, fails: bool) -> None:
        super().host(source, target, both, fails)
        self.promised.pop()
        self.results.pop()

    def get(self, view: View, wait: bool) -> None:
        pass

    def end(self) -> None:
        pass


class Expected(NumpyMachine):
    """Results are those of the gets alone."""

    def host(self, source: View, target: View, both: bool, fails: bool) -> None:
        super().host(source, target, both, fails)
        self.results.pop()

    def end(self) -> None:
        pass


@pytest.fixture(scope="module")
def kept(device: cl.Device) -> Iterator[Callable[[str, str], tuple[acs.Runtime, acs.Program]]]:
    """Runtimes with the kernels of random programs built, for all seeds."""
    made: dict[tuple[str, str], tuple[acs.Runtime, acs.Program]] = {}

    def one(backend: str, issue: str) -> tuple[acs.Runtime, acs.Program]:
        if (backend, issue) not in made:
            rt = acs.Runtime(device, backend=backend, issue=issue)
            made[backend, issue] = rt, rt.build(STEPS)
        return made[backend, issue]

    yield one
    for rt, _ in made.values():
        rt.close()


def random_program(rng: random.Random, most: int) -> list[Step]:
    names = [*MODES, *MODES, "copy", "host", "fill", "set"]
    return [(rng.choice(names), rng.randbytes(11)) for _ in range(rng.randint(1, most))]


def whole_state(machine: NumpyMachine | AcsMachine) -> list[Any]:
    machine.results.clear()
    for slot in range(len(SHAPES)):
        (NumpyMachine if isinstance(machine, NumpyMachine) else AcsMachine).get(
            machine, View(slot, "whole"), True  # type: ignore[arg-type]
        )  # fmt: skip
    return list(machine.results)


@pytest.mark.rotate("configuration", 3)
@pytest.mark.parametrize("failing", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_replayed_between_others_give_what_numpy_gives(
    kept: Callable[[str, str], tuple[acs.Runtime, acs.Program]],
    configuration: tuple[str, str],
    seed: int,
    failing: bool,
) -> None:
    rng = random.Random(f"{seed} {failing}")
    recorded, between = random_program(rng, 40), random_program(rng, 8)
    rt, program = kept(*configuration)
    expected, got = Expected(failing), Recording(rt, program, failing)
    with rt.record() as graph:
        run(recorded, got)
    for times in range(3):
        run(recorded, expected)
        graph.replay()
        graph.arrange(rng.choice(list(ORDERS)))
        if times != 1:
            for one, other in zip(whole_state(expected), whole_state(got), strict=True):
                assert np.array_equal(one, other), (times, recorded, between)
        if times < 2:
            run(between, expected)
            run(between, got)
    graph.close()
    try:
        rt.finish()
    except acs.PoisonedError:
        assert failing
    rt.finish()


@pytest.mark.rotate("configuration", 3)
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_whose_arrays_are_swapped_between_replays(
    kept: Callable[[str, str], tuple[acs.Runtime, acs.Program]],
    configuration: tuple[str, str],
    seed: int,
) -> None:
    """New arrays are views inside larger ones, at any row."""
    rng = random.Random(f"swaps {seed}")
    rt, program = kept(*configuration)
    expected, got = Expected(), Recording(rt, program)
    recorded, between = random_program(rng, 30), random_program(rng, 5)
    with rt.record() as graph:
        run(recorded, got)
    larger: list[tuple[acs.Array, Any]] = []
    for _ in range(5):
        for slot in rng.sample(range(len(SHAPES)), 3):
            rows, first = SHAPES[slot][0], rng.randrange(5)
            if slot == BYTES:  # of which there are views as uint32
                first = 4 * rng.randrange(2)
            host = np.zeros((rows + 5, *SHAPES[slot][1:]), expected.arrays[slot].dtype)
            host[...] = rng.randrange(100)
            whole = rt.array(host)
            larger.append((whole, host))
            new = whole[first : first + rows]
            used = [array.base for call in graph._recording.calls for array in call.arrays()]
            if got.arrays[slot].base not in used:
                with pytest.raises(acs.UsageError, match="does not use"):
                    graph.swap(got.arrays[slot], new)
                continue
            graph.swap(got.arrays[slot], new)
            got.arrays[slot] = new
            expected.arrays[slot] = host[first : first + rows]
        run(recorded, expected)
        graph.replay()
        if rng.random() < 0.5:
            run(between, expected)
            run(between, got)
    for one, other in zip(whole_state(expected), whole_state(got), strict=True):
        assert np.array_equal(one, other), recorded
    for array, host in larger:
        assert np.array_equal(array.get(), host)


def test_swaps_keep_views_of_other_types_aligned(rt: acs.Runtime, prog: acs.Program) -> None:
    octets, others = rt.zeros(64, "u1"), rt.zeros(72, "u1")
    with rt.record() as graph:
        prog.twice((8,), None, octets[32:].view("f4"))
    with pytest.raises(acs.UsageError, match=r"would start at byte 33, between elements"):
        graph.swap(octets, others[1:65])
    graph.swap(octets, others[4:68])
    others[36:].view("f4").fill(3)
    graph.replay()
    assert others[36:68].view("f4").get().tolist() == [6] * 8


@pytest.mark.parametrize("issue", ["eager", "ready_first"])
def test_a_replay_behind_a_count_in_flight_loses_only_what_follows_it(
    device: cl.Device, scheduler: None, issue: str
) -> None:
    source = """
    kernel void up(global uint *x) { x[get_global_id(0)] += 1; }
    kernel void slow(global uint *x, uint n) { volatile uint i = 0; while (i < n) i++; *x = i; }
    kernel void copy(global const uint *x, global uint *y)
    { size_t i = get_global_id(0); y[i] = x[i]; }
    """
    with acs.Runtime(device, backend="device", issue=issue) as rt:
        prog, wrong = rt.build(source), rt.array([9], "u4")
        x, y, z, last = (rt.zeros(8, "u4") for _ in range(4))
        with rt.record() as first:
            prog.up((acs.size(wrong, upto=8),), None, x)
            prog.slow((1,), None, last, 1_000_000)  # so the replay is in flight for a while
        with rt.record() as second:
            prog.copy((8,), None, x, y)
            prog.up((8,), None, z)
        for turn in range(1, 4):
            first.replay()
            second.replay()
            assert z.get().tolist() == [turn] * 8
            with pytest.raises(acs.PoisonedError, match="its count on the device is 9"):
                y.get()
            x.fill(0)
            y.fill(0)
            last.fill(0)


@pytest.mark.parametrize("options", [{}, {"issue": "ready_first"}, {"window": 3}], ids=str)
def test_what_would_be_held_may_be_lost_with_counts_in_flight(
    device: cl.Device, options: dict[str, Any]
) -> None:
    source = """
    kernel void slow(global uint *x, uint n)
    { uint v = n; for (uint i = 0; i < n; i++) v = v * 1664525 ^ i; x[get_global_id(0)] = v; }
    kernel void copy(global const uint *x, global uint *y)
    { size_t i = get_global_id(0); y[i] = x[i]; }
    """
    with acs.Runtime(device, backend="lanes", **options) as rt:
        prog, count = rt.build(source), rt.array([1], "u4")
        x, y, z = (rt.zeros(8, "u4") for _ in range(3))
        prog.slow(acs.size(count, upto=8), None, x, 1)
        prog.copy((8,), None, x, y)  # both are built before anything has to be in flight
        rt.finish()
        for _ in range(3):  # by Python, and by the core
            prog.slow(acs.size(count, upto=8), None, x, 40_000_000)
            prog.copy((8,), None, x, y)
            may = [rt.engine.may_be_poisoned(Access(one.spans, ())) for one in (x, y, z)]
            assert may == [bool(options), bool(options), False]
            rt.finish()
            assert not rt.engine.may_be_poisoned(Access(x.spans, ()))


def test_poison_goes_through_a_replay_and_nowhere_else(rt: acs.Runtime, prog: acs.Program) -> None:
    a, b, c, d = (rt.zeros(8) for _ in range(4))
    with rt.record() as graph:
        prog.add((8,), None, a, b, 1)
        prog.twice((8,), None, c)
        d.fill(2)
    rt.call(lambda a: 1 / 0, writes=a)
    c.fill(1)
    handle = graph.replay()
    with pytest.raises(acs.PoisonedError):
        handle.wait()
    with pytest.raises(acs.PoisonedError):
        b.get()
    assert (c.get() == 2).all()
    assert (d.get() == 2).all()
    b.fill(0)
    a.fill(3)
    graph.replay().wait()
    assert (b.get() == 3).all()


# ---- changing ------------------------------------------------------------------------------------


def test_update_changes_numbers_from_the_next_replay_on(rt: acs.Runtime, prog: acs.Program) -> None:
    x, y = rt.array(np.ones(4), "f4"), rt.zeros(4)
    with rt.record() as graph:
        steps = [prog.add((4,), None, x, y, 1) for _ in range(60)]
    want = 0
    for times in range(1, 5):
        graph.replay()
        want += 60 if times == 1 else 59 + 10**times
        graph.update(steps[7], a=10 ** (times + 1))
    assert (y.get() == want).all()
    for step in steps:
        graph.update(step, a=2)
    graph.replay()
    graph.replay()
    assert (y.get() == want + 240).all()


def test_update_of_what_a_declaration_depends_on_finds_hazards_anew(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    program = rt.build(
        "kernel void set(global uint *x, uint at, uint value) { x[at] = value; }"
        "kernel void get(global const uint *x, global uint *y, uint at) { *y = x[at]; }"
    )
    program.set.access(x="w[at]")
    program.get.access(x="r[at]", y="w[0]")
    x, y = rt.zeros(64, "u4"), rt.zeros(1, "u4")
    with rt.record() as graph:
        step = program.set((1,), None, x, 5, 1)
        program.get((1,), None, x, y, 9)
    assert rt.explain(step).text.startswith("launch 1 (set) of a graph")
    graph.replay()
    assert y.get().tolist() == [0]
    graph.update(step, at=9, value=3)
    graph.replay()
    assert y.get().tolist() == [3]


def test_handles_name_their_launches_after_swaps_that_add_some(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x, y, z, other = rt.zeros(8), rt.array(range(8), "f4"), rt.zeros(4), rt.zeros(4)
    with rt.record() as graph:
        copied = x[:4].copy_from(y[4:])
        first = prog.add((4,), None, y[:4], z, 1)
        last = prog.add((4,), None, y[4:], other, 2)
    assert len(graph) == 3
    graph.swap(x, y)  # within one array, a copy goes by way of another one
    assert len(graph) == 4
    graph.update(last, a=3)
    with pytest.raises(acs.UsageError, match="update: copy is no kernel"):
        graph.update(copied, a=1)
    assert "launch 3 (add) of a graph" in str(rt.explain(last))
    graph.replay()
    assert z.get().tolist() == [4, 5, 6, 7]
    assert other.get().tolist() == [12, 15, 18, 21]
    graph.swap(y, x)
    graph.update(first, a=0)
    graph.update(graph.handles[-1], a=0)
    x.fill(1)
    graph.replay()
    assert z.get().tolist() == [4, 5, 6, 7]
    assert other.get().tolist() == [12, 15, 18, 21]


def test_swap_moves_views_along(rt: acs.Runtime, prog: acs.Program) -> None:
    x, y = rt.zeros((4, 8), "u4"), rt.zeros((4, 8), "u4")
    spare = rt.zeros((6, 8), "u4")
    with rt.record() as graph:
        prog.count((32,), None, x)
        prog.count((8,), None, x[2])
        prog.count((4,), None, x[3, 4:])
        x[0].fill(7)
    want = np.ones((4, 8))
    want[2] += 1
    want[3, 4:] += 1
    want[0] = 7
    graph.replay()
    graph.swap(x, y)
    graph.replay()
    assert (x.get() == want).all()
    assert (y.get() == want).all()
    graph.swap(y[1], spare[3])  # by the views of one row
    graph.replay()
    assert (spare.get()[2:] == want).all()
    assert not spare.get()[:2].any()
    assert (y.get() == want).all()
    with pytest.raises(acs.UsageError, match="same memory"):
        graph.swap(spare[3], x[0])
    del x, y
    gc.collect()
    spare.fill(0)
    graph.replay()
    assert (spare.get()[2:] == want).all()


def test_swap_of_arrays_that_then_overlap_finds_hazards_anew(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    """Independent before, dependent after, and back."""
    x, y, z = (rt.array(np.full(16, n), "u4") for n in (1, 2, 3))
    with rt.record() as graph:
        prog.count((16,), None, x)
        prog.copy((16,), None, y, z)
        prog.count((16,), None, y)
    graph.replay()
    assert [array.get()[0] for array in (x, y, z)] == [2, 3, 2]
    graph.swap(y, x)
    graph.replay()
    assert [array.get()[0] for array in (x, y, z)] == [4, 3, 3]
    other = rt.zeros(16, "u4")
    graph.swap(x, other)  # all uses of it
    graph.replay()
    assert [array.get()[0] for array in (x, z, other)] == [4, 1, 2]


def test_swap_within_a_base_leaves_the_graph_its_user(rt: acs.Runtime, prog: acs.Program) -> None:
    halves, y, z = rt.zeros((2, 4), "u4"), rt.zeros(4, "u4"), rt.zeros(4, "u4")
    with rt.record() as graph:
        prog.count((4,), None, halves[0])
        prog.copy((4,), None, y, z)
    graph.swap(halves[0], halves[1])
    graph.swap(y, halves[1])  # which the launch before writes from now on
    graph.replay()
    assert z.get().tolist() == [1] * 4
    graph.swap(halves[1], rt.array([7] * 4, "u4"))
    graph.replay()
    assert z.get().tolist() == [8] * 4


def test_swap_by_turns_is_a_double_buffer(rt: acs.Runtime, prog: acs.Program) -> None:
    x, y, z = rt.array([1, 2, 3, 4], "u4"), rt.zeros(4, "u4"), rt.zeros(4, "u4")
    with rt.record() as graph:
        prog.copy((4,), None, x, y)
        prog.count((4,), None, y)
    now, other = x, z
    for _ in range(9):
        graph.replay()
        now.copy_from(y)
        other.copy_from(now)
        graph.swap(now, other)
        now, other = other, now
    assert now.get().tolist() == [10, 11, 12, 13]


def test_changes_do_not_reach_back_to_replays_that_are_held(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x, y = rt.array(np.ones(4), "f4"), rt.zeros(4)
    open_ = threading.Event()
    with rt.record() as graph:
        step = prog.add((4,), None, x, y, 1)
    rt.call(lambda y: open_.wait(20) and None, reads=y)
    graph.replay()
    graph.update(step, a=10)
    graph.replay()
    other = rt.array(np.ones(4), "f4")
    graph.swap(y, other)
    graph.update(step, a=100)
    graph.replay()
    open_.set()
    assert (y.get() == 11).all()
    assert (other.get() == 101).all()


# ---- memory --------------------------------------------------------------------------------------


def test_the_graph_owns_its_temporaries(rt: acs.Runtime, prog: acs.Program) -> None:
    out = rt.zeros((64, 8), "u4")
    before = rt.stats()["memory"]["in_use_bytes"]
    with rt.record() as graph:
        inside = rt.array(np.arange(8), "u4")
        between = rt.empty(8, "u4")
        prog.count((8,), None, inside)
        prog.copy((8,), None, inside, between)
        out[:, 0].fill(3)  # needs an array with one element
        out[1].copy_from(between)
    inside.free()
    del inside, between
    gc.collect()
    for times in range(4):
        others = [rt.array(np.full(8, 99), "u4") for _ in range(50)]
        graph.replay()
        want = np.arange(8) + 1
        assert out.get()[1].tolist() == want.tolist(), times
        assert (out.get()[2:, 0] == 3).all()
        del others
    assert rt.stats()["memory"]["in_use_bytes"] > before
    graph.close()
    gc.collect()
    rt.zeros(1)
    assert rt.stats()["memory"]["in_use_bytes"] <= before + 256
    with pytest.raises(acs.UsageError, match="closed"):
        graph.replay()


def test_closed_and_dropped_graphs_finish_their_replays(rt: acs.Runtime, prog: acs.Program) -> None:
    x = rt.zeros(512, "u4")
    with rt.record() as graph:
        temporary = rt.zeros(512, "u4")
        for _ in range(40):
            prog.count((512,), None, temporary)
        prog.copy((512,), None, temporary, x)
    del temporary
    for _ in range(3):
        graph.replay()
    graph.close()
    graph.close()
    del graph
    gc.collect()
    others = [rt.array(np.full(512, 1000), "u4") for _ in range(20)]
    assert (x.get() == 40).all()
    assert all((other.get() == 1000).all() for other in others)


def test_graphs_do_not_keep_and_are_not_kept(device: cl.Device) -> None:
    rt = acs.Runtime(device)
    prog = rt.build(SOURCE)
    x = rt.zeros(4, "u4")
    with rt.record() as graph:
        handle = prog.count((4,), None, x)
    replay = graph.replay()
    ref = weakref.ref(graph)
    graph.replay()
    rt.close()
    with pytest.raises(acs.UsageError, match="closed"):
        graph.replay()
    del graph
    gc.collect()
    assert ref() is None
    assert "gone" in rt.explain(replay).text
    with pytest.raises(acs.UsageError, match="recorded"):
        handle.wait()


# ---- misuse --------------------------------------------------------------------------------------


def test_nothing_can_be_waited_for_in_a_recording(rt: acs.Runtime, prog: acs.Program) -> None:
    x = rt.zeros(4, "u4")
    event = cl.UserEvent(rt.context)
    with rt.record() as graph:
        handle = prog.count((4,), None, x)
        for wrong in (
            handle.wait,
            lambda: handle.done,
            lambda: handle.event,
            x.get,
            lambda: x.get(wait=False),
            rt.finish,
            rt.close,
            graph.replay,
            graph.close,
            lambda: graph.update(handle),
            lambda: prog.count((4,), None, x, wait_for=[event]),
            lambda: rt.call(print, wait_for=[event]),
            lambda: rt.record().__enter__(),
            lambda: prog.count((4,), None, 1.5),
        ):
            with pytest.raises(acs.UsageError):
                wrong()
    event.set_status(0)
    assert len(graph) == 1
    with pytest.raises(acs.UsageError, match="replay"):
        handle.wait()
    graph.replay()
    assert x.get().tolist() == [1, 1, 1, 1]


def test_an_exception_discards_the_graph(rt: acs.Runtime, prog: acs.Program) -> None:
    x = rt.zeros(4, "u4")

    def record() -> acs.Graph:
        graph = rt.record()
        with graph:
            prog.count((4,), None, x)
            assert x.get() is None  # which is an error
        return graph

    with pytest.raises(acs.UsageError, match="get inside"):
        record()
    graph = rt.record()
    error = ZeroDivisionError()
    graph.__enter__()
    prog.count((4,), None, x)
    graph.__exit__(type(error), error, None)
    with pytest.raises(acs.UsageError, match="discarded"):
        graph.replay()
    prog.count((4,), None, x)  # runs
    assert x.get().tolist() == [1, 1, 1, 1]
    with pytest.raises(acs.UsageError, match="once"):
        graph.__enter__()


def test_wrong_updates_and_swaps_change_nothing(rt: acs.Runtime, prog: acs.Program) -> None:
    x, y = rt.array(np.ones(4), "f4"), rt.zeros(4)
    with rt.record() as graph:
        step = prog.add((4,), None, x, y, 1)
        filled = x.fill(1)
    with rt.record() as other:
        foreign = prog.add((4,), None, x, y, 1)
    graph.replay()
    wrongs: tuple[tuple[Callable[[], Any], str], ...] = (
        (lambda: graph.update(step, b=1), "no parameter 'b'"),
        (lambda: graph.update(step, x=1), "swap"),
        (lambda: graph.update(step, a="text"), "'a|float a"),
        (lambda: graph.update(filled, value=1), "no kernel"),
        (lambda: graph.update(foreign, a=1), "while this graph"),
        (lambda: graph.update(graph.replay(), a=1), "while this graph"),
        (lambda: graph.swap(x, rt.zeros(5)), "expected"),
        (lambda: graph.swap(x, rt.zeros(4, "u4")), "expected"),
        (lambda: graph.swap(x, rt.zeros(8)[::2]), "strides"),
        (lambda: graph.swap(x, np.zeros(4)), "expected arrays"),  # type: ignore[arg-type]
        (lambda: graph.swap(rt.zeros(4), x), "does not use"),
        (lambda: graph.swap(step, x), "expected arrays"),  # type: ignore[arg-type]
    )
    for wrong, text in wrongs:
        with pytest.raises(acs.UsageError, match=text):
            wrong()
    other.replay()
    graph.replay()
    assert (y.get() == 4).all()


def test_other_threads_launch_while_one_records(rt: acs.Runtime, prog: acs.Program) -> None:
    x, y = rt.zeros(4, "u4"), rt.zeros(4, "u4")

    def launch() -> None:
        prog.count((4,), None, y)

    with rt.record() as graph:
        prog.count((4,), None, x)
        thread = threading.Thread(target=launch)
        thread.start()
        thread.join()
    assert len(graph) == 1
    assert y.get().tolist() == [1, 1, 1, 1]
    assert not x.get().any()


def test_threads_replay_the_same_graph(rt: acs.Runtime, prog: acs.Program) -> None:
    x = rt.zeros(64, "u4")
    with rt.record() as graph:
        temporary = rt.empty(64, "u4")
        for _ in range(5):
            prog.copy((64,), None, x, temporary)
            prog.count((64,), None, temporary)
            prog.copy((64,), None, temporary, x)

    def replay(which: int) -> None:
        for _ in range(10):
            graph.replay()

    in_threads(replay, 3)
    assert (x.get() == 150).all()


def test_a_graph_that_is_closed_as_another_thread_replays_it_is_an_error_there(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x = rt.zeros(64, "u4")
    with rt.record() as graph:
        prog.count((64,), None, x)
    begun, closed, said = threading.Event(), threading.Event(), list[str]()

    def called() -> None:
        begun.set()
        assert closed.wait(60)

    def replay() -> None:
        with pytest.raises(acs.UsageError, match="the graph is closed") as error:
            graph.replay()
        said.append(str(error.value))

    rt.engine.called = called  # type: ignore[method-assign]  # behind the first look at the graph
    thread = threading.Thread(target=replay)
    thread.start()
    assert begun.wait(60)
    graph.close()
    closed.set()
    thread.join()
    del rt.engine.called
    assert said
    assert not x.get().any()


# ---- segments ------------------------------------------------------------------------------------


def test_explain_says_how_many_segments_and_why_it_was_cut(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x, y = rt.zeros(16, "u4"), rt.zeros(SHORT_BYTES, "u4")
    with rt.record() as graph:
        for _ in range(5):
            prog.count((16,), None, x)
        y.fill(1)  # of so many that the driver does it
        for _ in range(4):
            prog.count((16,), None, y)
    text = rt.explain(graph.replay()).text
    assert "10 launches" in text
    if on_device(rt):
        assert "segments: 2, of 9 launches; by themselves: 1; a fill runs by itself: 1" in text
    else:
        assert "launch by launch" in text


def test_a_replay_in_a_row_costs_one_launch_and_no_upload(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device") as rt:
        prog = rt.build(SOURCE)
        x = [rt.zeros(16, "u4") for _ in range(256)]
        with rt.record() as graph:
            for _ in range(16):
                for array in x:
                    prog.count((16,), None, array)
        assert segments(graph) == 1
        graph.replay().wait()
        numbers = rt.stats()["launches"]
        for _ in range(20):
            graph.replay()
        assert rt.stats()["launches"] == numbers + 20
        assert {int(array.get()[0]) for array in x} == {16 * 21}


def test_local_memory_of_any_size_cuts_nothing(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device") as rt:
        prog = rt.build(SOURCE)
        x, y = rt.array(np.arange(64), "u4"), rt.zeros(8, "u4")
        with rt.record() as graph:
            for nbytes in (32, 64, 8192, 32):
                prog.sums((64,), (8,), x, y, cl.LocalMemory(nbytes))
                prog.count((64,), None, x)
        assert segments(graph) == 1
        graph.replay()
        assert (y.get() == 4 * np.arange(64).reshape(8, 8).sum(1) + 8 * (0 + 1 + 2 + 3)).all()


@pytest.mark.parametrize("length", [3, 40])
def test_auto_makes_segments_of_what_is_long_enough(device: cl.Device, length: int) -> None:
    with acs.Runtime(device, trace=length == 3) as rt:
        prog = rt.build(SOURCE)
        x = rt.zeros(16, "u4")
        with rt.record() as graph:
            for _ in range(length):
                prog.count((16,), None, x)
        for _ in range(3):
            graph.replay()
        assert (x.get() == 3 * length).all()
        assert segments(graph) == (length > 12 and rt.plan.scheduler == "mix")


def test_replays_are_in_the_timeline(rt: acs.Runtime) -> None:
    with acs.Runtime(rt.device, backend=rt.plan.backend, trace=True) as traced:
        prog = traced.build(SOURCE)
        x = traced.zeros(16, "u4")
        with traced.record() as graph:
            for _ in range(3):
                prog.count((16,), None, x)
        graph.replay()
        graph.replay().wait()
        names = [one.name for one in traced.trace.slices]
        if on_device(traced):
            assert names.count("replay of 3 launches") == 2
        else:
            assert names.count("count") == 6


def test_host_tasks_must_not_replay(rt: acs.Runtime, prog: acs.Program) -> None:
    x = rt.zeros(4, "u4")
    with rt.record() as graph:
        prog.count((4,), None, x)
    task = rt.call(graph.replay)
    with pytest.raises(acs.PoisonedError, match="inside a host task"):
        task.wait()


def test_graph_of_many_launches(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device") as rt:
        prog = rt.build(SOURCE)
        x = rt.zeros((100, 4), "u4")
        rows = [x[row] for row in range(100)]
        with rt.record() as graph:
            for number in range(100_000):
                prog.count((4,), None, rows[number % 100])
        assert (len(graph), segments(graph)) == (100_000, 1)
        graph.replay()
        graph.replay()
        assert (x.get() == 2000).all()


def test_ctrl_c_as_a_recording_ends_ends_it(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        x, ctrl, heard = rt.zeros(4, np.uint32), Ctrl(), list[None]()
        graph = rt.record()

        def recorded() -> None:
            nonlocal heard
            with graph:
                x.fill(2)
                heard += [-ctrl]

        with pytest.raises(KeyboardInterrupt):
            recorded()
        assert heard
        assert not rt.engine.recorders
        with pytest.raises(acs.UsageError, match="discarded: its recording ended with an exc"):
            graph.replay()
        x.fill(3)
        assert x.get().tolist() == [3] * 4


def test_ctrl_c_while_a_recording_begins_ends_it(device: cl.Device) -> None:
    def at_the_end(frame: FrameType, what: str, value: object) -> Any:
        if frame.f_code is not Graph.__enter__.__code__:
            return None
        if what == "line" and threading.get_ident() in rt.engine.recorders:
            behind.append(frame.f_lineno)
        if len(behind) == 2:  # the table knows, too: signals come behind calls
            sys.settrace(None)
            raise KeyboardInterrupt
        return at_the_end

    behind: list[int] = []
    with acs.Runtime(device) as rt:
        x = rt.zeros(4, np.uint32)
        before = sys.gettrace()
        sys.settrace(at_the_end)
        try:
            with pytest.raises(KeyboardInterrupt), rt.record():
                pass
        finally:
            sys.settrace(before)
        assert x.get().tolist() == [0] * 4
        with rt.record() as graph:
            x.fill(3)
        graph.replay()
        assert x.get().tolist() == [3] * 4
