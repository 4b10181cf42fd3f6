"""Profiles of graphs: what launches ask of a device, and what orders make of it."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from conftest import Environment

import acs_cl as acs
from acs_cl.devices.probe import balance
from acs_cl.devices.probe.balance import Balance, agreed_us
from acs_cl.graph.arranging import arranged, keeps_order
from acs_cl.graph.contents import Contents
from acs_cl.launch.commands import KernelCommand
from acs_cl.opencl_c.modes import bodies
from acs_cl.opencl_c.modes.operations import TURNS, Sizes, operations
from acs_cl.opencl_c.parse import clang
from acs_cl.records import Access, Span
from acs_cl.several.engine import SeveralEngine
from acs_cl.several.model import Parcel
from acs_cl.testing.changing import changed

SOURCE = """
kernel void heavy(global const float *x, global float *y, int rounds)
{
    int i = get_global_id(0);
    float a = x[i];
    for (int t = 0; t < rounds; ++t) a = a * 0.5f + 0.25f;
    y[i] = a;
}
kernel void stream(global const float *x, global float *y)
{ int i = get_global_id(0); y[i] = x[i] * 2; }
kernel void add(global float *y) { y[get_global_id(0)] += 1; }
"""
FEW, MANY = 256, 1 << 18


pytestmark = pytest.mark.usefixtures("known_rates")


@pytest.fixture
def known_rates(device: cl.Device, own_cache: Path) -> None:
    """Which class a kernel is of does not depend on what else the machine does."""
    del own_cache
    balance.keep(device, Balance(operations_per_us=20_000.0, bytes_per_us=10_000.0))


class Pair:
    """Two launches that compute, then two that wait for memory."""

    def __init__(self, rt: acs.Runtime) -> None:
        prog = rt.build(SOURCE)
        self.few = [rt.array(np.arange(FEW), "f4") for _ in range(4)]
        self.many = [rt.array(np.ones(MANY), "f4") for _ in range(4)]
        with rt.record() as self.graph:
            for x, y in (self.few[:2], self.few[2:]):
                prog.heavy((FEW,), (64,), x, y, 2000)
            for x, y in (self.many[:2], self.many[2:]):
                prog.stream((MANY,), (64,), x, y)

    def names(self, rt: acs.Runtime) -> list[str]:
        """Kernels of a replay in the order in which they were launched."""
        first = self.graph.replay().wait()
        del first
        rt.finish()
        slices = sorted(rt.trace.slices, key=lambda one: one.number)
        return [one.name for one in slices[-4:]]


def test_a_profile_tells_classes_by_bytes_and_operations(rt: acs.Runtime) -> None:
    pair = Pair(rt)
    found = pair.graph.profile()
    assert [one.is_memory_bound for one in found] == [False, False, True, True]
    assert [one.name for one in found] == ["heavy", "heavy", "stream", "stream"]
    assert found[0].operations == 2 * 2000 * FEW
    assert found[2].nbytes == 8 * MANY
    assert (found[2].groups, found[2].items) == (MANY // 64, 64)
    assert all(one.us > 0 for one in found)
    assert found[2].demand == MANY / FEW * found[0].demand
    assert repr(found) == "<acs_cl profile, launches: 4>"
    assert "memory" in str(found)
    assert "compute" in str(found)


def test_a_profile_leaves_arrays_as_they_were(rt: acs.Runtime) -> None:
    prog = rt.build(SOURCE)
    y = rt.array(np.arange(64), "f4")
    with rt.record() as graph:
        prog.add((64,), None, y)
        y[:8].fill(9)
        rt.call(lambda _, out: out.__setitem__(0, 5), reads=y[:4], writes=y[8:9])
    graph.profile()
    np.testing.assert_array_equal(y.get(), np.arange(64))
    graph.replay()
    np.testing.assert_array_equal(y.get()[:10], [9, 9, 9, 9, 9, 9, 9, 9, 5, 10])


def test_what_is_not_an_array_is_not_written_for_a_profile(rt: acs.Runtime) -> None:
    """Nobody could put it back."""
    prog = rt.build(SOURCE)
    values = np.arange(64, dtype="f4")
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffer = cl.Buffer(rt.context, flags, hostbuf=values)
    with rt.record() as graph:
        prog.add((64,), None, buffer)
    with pytest.raises(
        acs.UsageError, match=r"profile: launch 1 \(add\) writes memory that is not"
    ):
        graph.profile()
    found = np.empty_like(values)
    cl.enqueue_copy(cl.CommandQueue(rt.context), found, buffer)
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_a_profile_has_its_data_on_the_device_that_it_measures(
    device: cl.Device, memory: str
) -> None:
    """Kernels find indices there, not what was in that memory before."""
    source = """kernel void move(global float *x, global const int *at)
                { int i = get_global_id(0); x[at[i]] += i; }"""
    with acs.Runtime(devices=[device, device], memory=memory, placement="round_robin") as rt:
        prog = rt.build(source)
        arrays = [(rt.zeros(64), rt.array(np.arange(64)[::-1], "i4")) for _ in range(3)]
        with rt.record() as graph:
            for x, at in arrays:
                prog.move((64,), None, x, at)
        graph.replay()
        engine, seen = rt.engine, list[Parcel]()
        assert isinstance(engine, SeveralEngine)
        engine.copies.told = seen.append
        assert len(graph.profile(fresh=True)) == 3
        assert {one.target for one in seen} == {0}
        graph.replay()
        for x, _ in arrays:
            np.testing.assert_array_equal(x.get(), 2 * np.arange(64)[::-1])


def test_times_are_kept_by_kernel_size_and_device(
    device: cl.Device, environment: Environment
) -> None:
    with acs.Runtime(device) as rt:
        first = Pair(rt).graph.profile()
    with acs.Runtime(device) as rt:
        pair = Pair(rt)
        again = pair.graph.profile()
        assert list(again) == list(first)
        assert rt.stats()["launches"] == 8, "nothing but the arrays was launched"
        pair.graph.arrange("opara")
        assert "opara" in str(pair.graph.explain())
    environment(ACS_CL_CACHE="off")
    with acs.Runtime(device) as rt:
        assert Pair(rt).graph.profile()[0].us > 0


def test_what_the_compiler_says_of_our_kernels_is_no_warning(
    device: cl.Device, environment: Environment
) -> None:
    environment(ACS_CL_CACHE="off")  # so that the kernels of the measurement are built
    with warnings.catch_warnings(), acs.Runtime(device) as rt:
        warnings.simplefilter("error")
        assert Pair(rt).graph.profile()[0].us > 0


def test_what_was_planted_is_not_believed(device: cl.Device, own_cache: Path) -> None:
    with acs.Runtime(device) as rt:
        Pair(rt).graph.profile()
    for path in own_cache.rglob("*.json"):
        for text in ("{", "[]", '{"format": 1, "us": -1}', '{"format": 1, "us": "x"}'):
            path.write_text(text)
            assert balance.kept(device) is None or path.parent.name != "probe"
    with acs.Runtime(device) as rt:
        assert Pair(rt).graph.profile()[0].us > 0


@pytest.mark.parametrize("backend", ["serial", "lanes", "out_of_order"])
def test_orders_change_in_which_order_a_replay_launches(device: cl.Device, backend: str) -> None:
    with acs.Runtime(device, backend=backend, trace=True) as rt:
        pair = Pair(rt)
        assert pair.names(rt) == ["heavy", "heavy", "stream", "stream"]
        pair.graph.profile()
        pair.graph.arrange("opara")
        assert pair.names(rt) == ["heavy", "stream", "heavy", "stream"]
        pair.graph.arrange("first_in")
        assert pair.names(rt) == ["heavy", "heavy", "stream", "stream"]


def test_a_runtime_has_an_order_for_all_its_graphs(device: cl.Device) -> None:
    with acs.Runtime(device, backend="serial", trace=True, order="narrow_first") as rt:
        prog = rt.build(SOURCE)
        wide, narrow = rt.zeros(256), rt.zeros(64)
        with rt.record() as graph:
            prog.stream((256,), (64,), wide, rt.zeros(256))
            prog.add((64,), (64,), narrow)
        graph.replay().wait()
        slices = sorted(rt.trace.slices, key=lambda one: one.number)
        names = [one.name for one in slices if one.name != "fill"]  # of a new array
        assert names[-2:] == ["add", "stream"]


def test_an_order_that_breaks_program_order_is_found() -> None:
    spans = [Span(base, 0, 64, 1, 64) for base in (1, 2, 3)]
    accesses = [Access((spans[a],), (spans[b],)) for a, b in ((0, 1), (1, 2), (0, 2))]
    launches = [(KernelCommand("k", None, (64,), None, (), (), None), one) for one in accesses]
    assert keeps_order(launches, [0, 1, 2])
    for wrong in ([1, 0, 2], [0, 2, 1], [0, 1], [0, 1, 1]):
        assert not keeps_order(launches, wrong), wrong


def test_unknown_orders_are_named(rt: acs.Runtime) -> None:
    graph = Pair(rt).graph
    with pytest.raises(acs.UsageError, match="unknown order 'opera'; there are: auto, first_in"):
        graph.arrange("opera")
    with pytest.raises(acs.UsageError, match="unknown order 'opera'"):
        acs.Runtime(order="opera")


def test_an_update_reaches_its_launch_in_any_order(rt: acs.Runtime) -> None:
    prog = rt.build(SOURCE)
    x = rt.array(np.zeros(64), "f4")
    out = [rt.zeros(64) for _ in range(3)]
    with rt.record() as graph:
        handles = [
            prog.heavy((64,), (64,), x, y, rounds) for y, rounds in zip(out, (1, 2, 3), strict=True)
        ]
        prog.add((64,), None, out[2])
    graph.arrange("critical_path")
    assert arranged([], "critical_path") == []
    graph.update(handles[0], rounds=2)
    graph.swap(out[1], y := rt.zeros(64))
    graph.replay()
    assert [one.get()[0] for one in (*out, y)] == [0.375, 0, 1.4375, 0.375]


@pytest.mark.parametrize("what", ["profile", "tune"])
def test_what_is_in_flight_may_fail_and_is_waited_for(rt: acs.Runtime, what: str) -> None:
    """A host task, and a launch behind a foreign event, of which nobody knows yet how they end."""
    prog = rt.build(SOURCE)
    x, y = rt.zeros(FEW), rt.zeros(FEW)
    with rt.record() as graph:
        prog.add((FEW,), None, x)
    gate, event = threading.Event(), cl.UserEvent(rt.context)
    rt.call(lambda y: gate.wait(60) and None, writes=y)
    prog.add((FEW,), None, y, wait_for=[event])

    def open_both() -> None:
        gate.set()
        event.set_status(cl.command_execution_status.COMPLETE)

    threading.Timer(0.05, open_both).start()
    assert getattr(graph, what)() is not None
    graph.replay()
    assert (x.get() == 1).all()


class Interrupted(list[Any]):
    """A list whose items come with Ctrl-C."""

    def __iter__(self) -> Iterator[Any]:
        for one in super().__iter__():
            signal.raise_signal(signal.SIGINT)
            yield one


@pytest.mark.parametrize("size", [64, 1 << 22])
def test_arrays_have_their_contents_back_whatever_signals_come(rt: acs.Runtime, size: int) -> None:
    x, half = rt.zeros(size, "u1"), size // 2
    kept = Interrupted((x[at : at + half], np.full(half, (1 + at) % 256, "u1")) for at in (0, half))
    with pytest.raises(KeyboardInterrupt), Contents(rt.engine, kept):
        x.fill(9)
    values = x.get()
    assert (values[:half] == 1).all()
    assert (values[half:] == (1 + half) % 256).all()


def test_a_kernel_that_a_profile_left_ends_before_arrays_get_contents_back(
    rt: acs.Runtime,
) -> None:
    """Ctrl-C ends the wait for a kernel, not the kernel. It wrote what had just been put back."""
    prog, x = rt.build(SOURCE), rt.array(np.arange(64), "f4")
    with rt.record() as graph:
        prog.add((64,), None, x)
    graph.replay().wait()
    gate, enqueue = cl.UserEvent(rt.context), KernelCommand.enqueue

    def begins_later(command: KernelCommand, queue: cl.CommandQueue, wait_for: Any) -> Any:
        event = enqueue(command, queue, [gate])
        later.start()
        signal.raise_signal(signal.SIGINT)
        return event

    later = threading.Timer(0.05, gate.set_status, [cl.command_execution_status.COMPLETE])
    with changed(KernelCommand, "enqueue", begins_later), pytest.raises(KeyboardInterrupt):
        graph.profile(fresh=True)
    later.join()
    assert (x.get() == np.arange(64) + 1).all()
    graph.replay()
    assert (x.get() == np.arange(64) + 2).all()


def test_threads_launch_while_one_profiles(rt: acs.Runtime) -> None:
    pair = Pair(rt)
    prog = rt.build(SOURCE)
    mine = rt.zeros(64)

    def launch() -> None:
        for _ in range(50):
            prog.add((64,), None, mine)

    thread = threading.Thread(target=launch)
    thread.start()
    found = pair.graph.profile(fresh=True)
    thread.join()
    assert len(found) == 4
    np.testing.assert_array_equal(mine.get(), np.full(64, 50))


# ---- rates ---------------------------------------------------------------------------------------


def test_rates_are_measured_and_kept(device: cl.Device, own_cache: Path) -> None:
    for path in own_cache.rglob("*.json"):
        path.unlink()
    assert balance.kept(device) is None
    found = balance.balance(device, cl.Context([device]))
    assert min(found) > 0
    assert balance.kept(device) == found


@pytest.mark.parametrize(
    ("times", "runs"),
    [
        ([5, 5.1, 9], 3),
        ([9, 5, 7, 20, 5.4], 5),
        ([90, 40, 60, 5.4, 5, 80], 5),
        ([2.0**n for n in range(30, 0, -1)], balance.MOST_RUNS),
    ],
)
def test_a_time_is_believed_once_another_run_came_near(times: list[float], runs: int) -> None:
    left = iter(times)
    assert agreed_us(lambda: next(left)) == min(times[:runs])
    assert len(list(left)) == len(times) - runs


# ---- operations ----------------------------------------------------------------------------------

COUNTED = {
    "kernel void k(global float *x, float a) { int i = get_global_id(0); x[i] += a * x[i]; }": 2,
    "kernel void k(global float *x, int n) { for (int i = 0; i < n; ++i) x[0] += x[i]; }": 10,
    "kernel void k(global float *x, int n) { for (int i = n; i > 0; i -= 2) x[0] *= x[i]; }": 10,
    "kernel void k(global float *x, int n) { for (int i = 1; i <= n; i++) x[0] /= x[i]; }": 36,
    "kernel void k(global float *x, int n) { while (x[0] < 1) x[0] += 1; }": TURNS,
    "kernel void k(global float *x, int n) { if (n > 5) x[0] += 1; else x[0] = x[1] * 2 + 1; }": 1,
    "kernel void k(global float *x, int n) { if (x[0] > 5) x[0] += 1; else x[0] = 3 * x[1] + 1;"
    " }": 2,
    "float f(float a) { return a + a; } kernel void k(global float *x, int n) { x[0] = f(x[1]);"
    " }": 1,
    "kernel void k(global float *x, int n) { x[0] = sqrt(x[1]); }": 8,
    "kernel void k(global float4 *x, int n) { x[0] += x[1]; }": 4,
    "kernel void k(global float *x, int n) { x[n * 4 + 1] = x[n - 1]; }": 0,
    "kernel void k(global float *x, int n) { for (int i = 0; i < n; ++i)"
    " for (int j = 0; j < i; ++j) x[j] += 1; }": 50,
    "kernel void k(global float *x, int n) { for (int i = get_global_size(n - 20); i > 0; --i)"
    " x[0] += x[i]; }": 2,
    "kernel void k(global float *x, int n) { " + "n = n * n; " * 12 + "n /= 3; x[0] = n; }": 16,
    "kernel void k(global float *x, ulong n) { for (uint i = 1; i < 9; i <<= n << 40) x[i] += 1;"
    " }": 3 * TURNS,
}  # fmt: skip


def test_helpers_that_call_helpers_many_times_are_counted_soon() -> None:
    helpers = "float f0(float a) { return a * a; }"
    for level in range(1, 15):
        calls = " + ".join([f"f{level - 1}(a)"] * 8)
        helpers += f" float f{level}(float a) {{ return {calls}; }}"
    source = f"{helpers} kernel void k(global float *x) {{ x[0] = f14(x[1]); }}"
    unit = clang.parse(source, [], None)
    functions = bodies.analyse(unit, unit.kernels["k"]).functions
    assert operations(functions, {}, Sizes((64,), (8,))) >= 10_000


@pytest.mark.parametrize("source", COUNTED)
def test_operations_are_counted_in_the_body(source: str) -> None:
    unit = clang.parse(source, [], None)
    functions = bodies.analyse(unit, unit.kernels["k"]).functions
    sizes = Sizes((1024,), (64,))
    scalars = {} if "float a)" in source.split("{")[0] else {1: 10}
    assert operations(functions, scalars, sizes) == COUNTED[source]
