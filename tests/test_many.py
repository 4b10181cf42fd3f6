"""`Kernel.launch_many` against the loop of calls that it stands for, on every backend."""

from __future__ import annotations

import ctypes
import re
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from pyopencl import cltypes

import acs_cl as acs
from acs_cl import core, testing
from acs_cl.devices.driver import functions
from acs_cl.testing import launched, runtime_of

pytestmark = pytest.mark.rotate("make", 3)

SOURCE = """
kernel void add(global const int *x, global int *y, int a, float f)
{ int i = get_global_id(0); y[i] = y[i] * 3 + x[i] + a + (int)(4 * f); }
kernel void spread(global int *x, short a, ulong b, char4 c)
{ x[get_global_id(0)] += a + (int)b + c.x + c.w; }
kernel void none(int a) { }
"""


def built(make: Callable[..., acs.Runtime]) -> acs.Program:
    program = make().build(SOURCE)
    runtime_of(program).prebuild(program.add, program.none)
    return program


def arguments(rt: acs.Runtime, many: int, seed: int) -> tuple[acs.Array, list[tuple[Any, ...]]]:
    """Arrays, and the arguments of many calls on views of them."""
    rng = np.random.default_rng(seed)
    rows = rt.array(np.arange(6 * 8, dtype="i4").reshape(6, 8))
    views = [rows[i, a : a + 4] for i in range(6) for a in (0, 2, 4)]
    return rows, [
        (
            views[rng.integers(18)], views[rng.integers(18)],
            int(rng.integers(-9, 9)), float(rng.integers(0, 9)) / 4,
        )
        for _ in range(many)
    ]  # fmt: skip


Column = Callable[[tuple[Any, ...]], Any]
WAYS: dict[str, tuple[Column, Column]] = {
    "lists": (list, list),
    "tuples": (tuple, tuple),
    "NumPy": (np.array, np.array),
    "other types": (lambda a: np.array(a, "i8"), lambda f: np.array(f, "f8")),
    "strides": (lambda a: np.repeat(np.array(a, "i2"), 3)[::3], lambda f: np.float32(f)[::1]),
    "backwards": (lambda a: np.array(a[::-1], "i4")[::-1], lambda f: np.array(f, "f2")),
}


@pytest.mark.parametrize("way", WAYS)
def test_it_is_the_loop(make: Callable[..., acs.Runtime], way: str) -> None:
    program = built(make)
    rt = runtime_of(program)
    values, edges, accesses = [], [], []
    for is_loop in (True, False):
        rows, calls = arguments(rt, 60, 3)
        rt.finish()
        before, first = rt.stats()["edges"], launched(rt)
        if is_loop:
            handles = [program.add((4,), None, *call) for call in calls]
            spans = [span for handle in handles for span in handle.access.writes]
            base = spans[0].base
        else:
            x, y, a, f = zip(*calls, strict=True)
            handle = program.add.launch_many((4,), None, list(x), y, *map_both(WAYS[way], a, f))
            assert len(handle) == 60
            assert (handle.number, handle.name) == (first + 60, "add")
            handle.wait()
            assert handle.done
            assert handle.event.command_execution_status == cl.command_execution_status.COMPLETE
            spans, base = list(handle.access.writes), handle.access.writes[0].base
        assert launched(rt) == first + 60
        accesses.append({span[1:] for span in spans if span.base == base})
        values.append(rows.get().tolist())
        after = rt.stats()["edges"]
        edges.append({kind: after[kind] - before[kind] for kind in after})
    assert values[0] == values[1]
    assert accesses[0] == accesses[1]
    assert edges[0].keys() == edges[1].keys()  # how many there are depends on what has ended


def map_both(columns: tuple[Column, Column], a: Any, f: Any) -> tuple[Any, Any]:
    return columns[0](a), columns[1](f)


def test_one_value_serves_for_all(make: Callable[..., acs.Runtime]) -> None:
    program = built(make)
    rt = runtime_of(program)
    x, y = rt.zeros(4, "i4"), rt.zeros(4, "i4")
    program.add.launch_many((4,), None, x, y, [1, 2, 3], 0.25)
    program.add.launch_many(4, None, x, y, 1, 0, count=2)
    expected = 0
    for a, f in ((1, 1), (2, 1), (3, 1), (1, 0), (1, 0)):
        expected = expected * 3 + a + f
    assert y.get().tolist() == [expected] * 4
    nothing = program.add.launch_many((4,), None, x, y, [], 0.0)
    assert len(nothing) == 0
    assert nothing.wait() is None
    assert nothing.done


def test_sizes_may_differ(make: Callable[..., acs.Runtime]) -> None:
    program = built(make)
    rt = runtime_of(program)
    x = rt.zeros(8, "i4")
    for sizes in ([8, 4, 2], [(8,), (4,), (2,)], np.array([8, 4, 2]), np.array([[8], [4], [2]])):
        x.fill(0)
        locals_ = [(2,), None, (1,)]
        program.spread.launch_many(
            sizes, locals_, x, np.array([1, 10, 100]), 0, cltypes.make_char4(0, 0, 0, 0)
        )
        assert x.get().tolist() == [111, 111, 11, 11, 1, 1, 1, 1]


def test_vectors_are_rows_or_items(make: Callable[..., acs.Runtime]) -> None:
    program = built(make)
    x = runtime_of(program).zeros(2, "i4")
    vectors = [cltypes.make_char4(1, 0, 0, 2), cltypes.make_char4(3, 0, 0, 4)]
    program.spread.launch_many((2,), None, x, 0, 0, vectors)
    program.spread.launch_many((2,), None, x, 0, 0, np.array([[1, 0, 0, 2], [3, 0, 0, 4]], "i1"))
    assert x.get().tolist() == [20, 20]


def test_it_waits_for_events_and_runs_where_flags_say(make: Callable[..., acs.Runtime]) -> None:
    program = built(make)
    rt = runtime_of(program)
    x, y, flags = rt.zeros(4, "i4"), rt.zeros(4, "i4"), rt.array([1, 0, 1], "u4")
    event = cl.UserEvent(rt.context)
    which = [flags[i : i + 1] for i in range(3)]
    handle = program.add.launch_many((4,), None, x, y, [1, 2, 3], 0.0, wait_for=[event], when=which)
    assert not handle.done
    event.set_status(cl.command_execution_status.COMPLETE)
    handle.wait()
    assert y.get().tolist() == [6] * 4


def test_a_recording_has_a_handle_for_each(make: Callable[..., acs.Runtime]) -> None:
    program = built(make)
    rt = runtime_of(program)
    x, y = rt.zeros(4, "i4"), rt.zeros(4, "i4")
    with rt.record() as graph:
        handles = program.add.launch_many((4,), None, x, y, [1, 2], 0.0)
    assert len(handles) == len(graph) == 2
    graph.update(handles[0], a=5)
    graph.replay()
    assert y.get().tolist() == [17] * 4


def test_poison_surfaces(make: Callable[..., acs.Runtime]) -> None:
    program = built(make)
    rt = runtime_of(program)
    x, y, z = (rt.zeros(4, "i4") for _ in range(3))
    rt.call(lambda values: 1 / 0, writes=x)
    handle = program.add.launch_many((4,), None, [z, x, z], [y, z, y], 1, 1.0)
    with pytest.raises(acs.PoisonedError, match=r"launch \d+ \(\w+\) is poisoned.*division"):
        handle.wait()


WRONG: dict[str, tuple[Callable[..., Any], str]] = {
    "lengths": (lambda k, x: k((4,), None, x, x, [1, 2], [1.0]), "argument 3 has 1 values, exp"),
    "sizes": (lambda k, x: k([4, 4, 4], None, x, x, [1, 2], 1.0), "argument 2 has 2 values, exp"),
    "count": (lambda k, x: k((4,), None, x, x, [1, 2], 1.0, count=3), "argument 2 has 2 values"),
    "no count": (lambda k, x: k((4,), None, x, x, 1, 1.0), "no argument is a sequence; count="),
    "a bad count": (
        lambda k, x: k((4,), None, x, x, 1, 1.0, count=-1),
        "count= takes a number of launches from 0 on, got int -1",
    ),
    "arguments": (lambda k, x: k((4,), None, x, x, [1]), "got 3 arguments, expected 4"),
    "a number": (lambda k, x: k((4,), None, x, x, [1, "a"], 1.0), r"int a.*\(launch 2 of 2 of one"),
    "range": (lambda k, x: k((4,), None, x, x, np.array([0, 1 << 40]), 1.0), "launch 2 of 2"),
    "float": (lambda k, x: k((4,), None, x, x, np.array([1.5, 2]), 1.0), "launch 1 of 2"),
    "an array": (lambda k, x: k((4,), None, [x, 3], x, 1, 1.0), "argument 0.*launch 2 of 2"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_said(make: Callable[..., acs.Runtime], what: str) -> None:
    program = built(make)
    rt = runtime_of(program)
    x = rt.zeros(4, "i4")
    for _ in range(2):  # the second time the core knows the kernel
        program.add((4,), None, x, x, 1, 1.0)
        call, message = WRONG[what]
        with pytest.raises(acs.UsageError, match=message) as caught:
            call(program.add.launch_many, x)
        assert re.search("add", str(caught.value))


@pytest.mark.parametrize("has_plan", [True, False])
def test_its_plan_may_be_forgotten_meanwhile(device: cl.Device, has_plan: bool) -> None:
    """By another thread, for instance. The call asked the plan that was gone for the table, and the
    process ended."""
    with acs.Runtime(device, backend="out_of_order") as rt:
        add = rt.build("kernel void add(global int *x, int a) { x[get_global_id(0)] += a; }").add
        gate, x = cl.UserEvent(rt.context), rt.zeros(4, "i4")
        add((4,), None, x, 1)
        add((4,), None, x, 1, wait_for=[gate])

        def forget() -> None:
            if not has_plan:
                add.infer_ranges = False

        with testing.at("before ends are told", forget):
            handle = add.launch_many((4,), None, x, [1, 2, 3])
        gate.set_status(cl.command_execution_status.COMPLETE)
        handle.wait()
        assert x.get().tolist() == [8] * 4


def test_it_tells_each_use_of_an_array(make: Callable[..., acs.Runtime]) -> None:
    """One launch reads an array, and the next one writes it."""
    rt = make()
    program = rt.build("""kernel void k(global int *x, global int *y, int n)
        { int i = get_global_id(0); if (i < n) y[i] = x[i]; else x[i] = 1; }""")
    x, y = rt.zeros(4, "i4"), rt.zeros(4, "i4")
    for n in (4, 0):
        program.k((4,), None, x, y, n)
    access = program.k.launch_many((4,), None, x, y, [4, 0]).access
    assert set(access.reads) == set(x.spans)
    assert set(access.writes) == {*x.spans, *y.spans}


def test_what_goes_meanwhile_goes_without_a_lock(device: cl.Device) -> None:
    """Another thread empties the sequence of arrays while a driver is called."""
    with acs.Runtime(device, backend="lanes") as rt:
        program = rt.build("kernel void add(global int *x, int n) { x[get_global_id(0)] += n; }")
        x = rt.zeros(32, "i4")
        for _ in range(2):
            program.add((4,), None, x[:4], 1)
        rt.finish()
        views = [x[at : at + 4] for at in range(0, 32, 4)]
        owned: list[bool] = []
        watched = [
            weakref.ref(view, lambda _: owned.append(rt.engine.lock.is_owned())) for view in views
        ]
        begun, gone = threading.Event(), threading.Event()

        def empty() -> None:
            begun.wait()
            views.clear()
            gone.set()

        thread = threading.Thread(target=empty)
        thread.start()
        addresses = functions()
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 9)
        driver = kind(addresses[2])

        def enqueue(*arguments: object) -> int:
            begun.set()
            gone.wait()
            status: int = driver(*arguments)
            return status

        own = kind(enqueue)
        addresses[2] = ctypes.cast(own, ctypes.c_void_p).value or 0
        core.native.open_driver(addresses)
        try:
            with pytest.raises(IndexError):
                program.add.launch_many((4,), None, views, 1)
        finally:
            core.native.open_driver(functions())
            thread.join()
        assert owned == [False] * len(watched)


@pytest.mark.parametrize("backend", ["lanes", "device"])
def test_few_launches_ask_no_more_often_for_ends_than_calls_do(
    device: cl.Device, backend: str
) -> None:
    asked = 0

    def see(frame: Any, event: str, what: object) -> None:
        nonlocal asked
        asked += event == "call" and frame.f_code.co_name == "pump"

    def asks(work: Callable[[], object]) -> int:
        nonlocal asked
        work()  # the kernel has a plan then
        rt.finish()
        asked = 0
        sys.setprofile(see)
        try:
            for _ in range(20):
                work()
        finally:
            sys.setprofile(None)
        rt.finish()
        return asked

    with acs.Runtime(device, backend=backend) as rt:
        program = rt.build(SOURCE)
        rt.prebuild(program.add)
        x, y = rt.zeros(4, "i4"), rt.zeros((2, 4), "i4")
        rows = [y[0], y[1]]
        by_calls = asks(lambda: [program.add((4,), None, x, row, 1, 0.5) for row in rows])
        by_one = asks(lambda: program.add.launch_many((4,), None, x, rows, 1, 0.5))
    assert by_one <= by_calls + 10
    assert by_one < 20
