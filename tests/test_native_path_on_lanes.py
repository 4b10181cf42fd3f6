"""Launches that the native core makes itself for the host backends, against the same made by
Python: values, edges, what waits for what, and what becomes of errors.

`ACS_CL_FUZZ=n` asks for n programs in all.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import threading
from collections.abc import Iterator
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from fuzz.declared import declared, declaring, shifted
from fuzz.threads import in_threads

import acs_cl as acs
from acs_cl import core, testing
from acs_cl.devices.driver import OwnKernel, functions
from acs_cl.launch.backend import ALL, Lease
from acs_cl.opencl_c.variants.guards import with_guards
from acs_cl.scheduler.policy import Choice

FUZZ = int(os.environ.get("ACS_CL_FUZZ", "12"))
PARTS = 4
HOST = ("serial", "out_of_order", "lanes")

SOURCE = """
kernel void add(global const uint *x, global uint *y, uint a)
{ size_t i = get_global_id(0); y[i] += x[i] + a; }
kernel void put(global uint *y, long a, ushort b, char c)
{ y[get_global_id(0)] = (uint)a + b * 3 + c; }
kernel void some(global uint *y, int n)
{ int i = get_global_id(0); if (i < n) y[i] = y[i] * 7 + n; }
kernel void turn(global uint *x, local uint *one)
{ int i = get_local_id(0); one[i] = x[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE);
  x[get_global_id(0)] = one[3 - i]; }
kernel void flip(global uint *x) { x[get_global_id(0)] ^= 1; }
kernel void flat(global uint *x)
{ size_t i = get_global_id(1) * get_global_size(0) + get_global_id(0); x[i] = x[i] * 5 + i; }
"""
ROW = 16
ENOUGH = {
    "add": {"x": ["r", "r[gid]", "r[0:4], r[gid]"], "y": ["rw", "rw[gid]", "r[gid], w[gid:gid+1]"]},
    "put": {"y": ["w", "rw", "w[gid]", "w[gid:gid+1], w[0:8]"]},
    "some": {"y": ["rw", "rw[0:n]", "r[0:n], w[gid]"]},
    "turn": {"x": ["rw", "rw[gid]"]},
    "flip": {"x": ["rw", "rw[gid]"]},
    "flat": {"x": ["rw", "rw[gid0 + gsize0*gid1]"]},
}
"""Declarations of kernels, by parameter."""


@pytest.fixture(params=HOST)
def backend(request: pytest.FixtureRequest, device: cl.Device) -> str:
    mode = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    if request.param == "out_of_order" and not device.queue_properties & mode:
        pytest.skip("the device has no out-of-order queues")
    name: str = request.param
    return name


@pytest.fixture
def long_way() -> Iterator[list[str]]:
    """The kernels whose calls went to Python."""
    with inside.calls_by_python() as found:
        yield found


def steps(rng: random.Random, rows: acs.Array) -> list[Any]:
    """Random launches on some rows, as functions of a program; words decide whether some of them
    run, and some say themselves which bytes they touch."""
    views = [rows[i, a:b] for i in range(len(rows)) for a, b in ((0, 16), (0, 8), (8, 16))]
    flags = rows.runtime.array(np.arange(8) % 2, "i4")
    words = [flags[i] for i in range(8)]

    def pick(size: int) -> acs.Array:
        return rng.choice([view for view in views if view.size == size])

    def one() -> Any:
        size = rng.choice((8, 16))
        name = rng.choice(("add", "put", "some", "turn", "flat", "flip"))
        when = None
        if rng.random() < 0.4:  # seldom a word that others write, or the launch itself
            when = pick(8)[3:4] if rng.random() < 0.1 else rng.choice(words)
        args: tuple[Any, ...] = {
            "add": lambda: (pick(size), pick(size), rng.choice((0, 7, np.uint8(9), 2**32 - 1))),
            "put": lambda: (pick(size), rng.randint(-(2**63), 2**63 - 1), np.int64(65535), -128),
            "some": lambda: (pick(size), rng.choice((0, 3, 8, 16, 20))),
            "turn": lambda: (pick(size), cl.LocalMemory(16)),
            "flat": lambda: (pick(size),),
            "flip": lambda: (flags[4:],),
        }[name]()
        if name == "flip":
            size = 4
        shape, keywords = shifted(rng, name, size)
        if name == "flat":
            shape, keywords = (4, size // 4), {}
        local = {"turn": (4,), "flat": rng.choice(((2, 2), None))}.get(name)
        keywords |= {} if when is None else {"when": when}
        if rng.random() < 0.3 and name != "flip":
            arrays = [arg for arg in args if isinstance(arg, acs.Array)]
            reads = [] if name == "put" else arrays
            keywords |= declared(rng, reads, arrays[-1:], views)
        return lambda program: getattr(program, name)(shape, local, *args, **keywords)

    return [one() for _ in range(80)]


@pytest.mark.parametrize("memory", ["svm", "buffers"])
@pytest.mark.parametrize("declares", [False, True])
@pytest.mark.parametrize("part", range(PARTS))
def test_they_are_what_python_makes(
    device: cl.Device, backend: str, memory: str, declares: bool, part: int, long_way: list[str]
) -> None:
    """Most views start inside their memory. That takes another form of a kernel with buffers."""
    for seed in range(part, FUZZ, PARTS):
        made = []
        for is_native in (True, False):
            with contextlib.ExitStack() as stack:
                rt = stack.enter_context(acs.Runtime(device, backend=backend, memory=memory))
                program = rt.build(SOURCE)
                if declares:
                    stack.enter_context(declaring(random.Random(seed), program, ENOUGH))
                rows = rt.array(np.arange(4 * ROW, dtype="u4").reshape(4, ROW))
                program_steps = steps(random.Random(seed), rows)
                handles: list[Any] = []
                for turn in range(2):
                    before = len(long_way)
                    with contextlib.nullcontext() if is_native else inside.planned_by_python(rt):
                        handles = [step(program) for step in program_steps]
                    took = len(long_way) - before
                    if turn:
                        assert (took < 24) is is_native, (seed, took)
                spans = [(h.number, h.name, h.access) for h in handles]
                values = rows.get()
                stats = rt.stats()
                rt.finish()
                assert testing.is_at_rest(rt)
                kept = {k: stats[k] for k in ("launches",)}
                # every array of a runtime has the number of its base in its spans
                made.append((values.tolist(), kept, spans))
        assert made[0] == made[1], f"seed {seed}"


def test_an_array_inside_a_buffer_is_passed_where_the_kernel_takes_its_first_byte(
    device: cl.Device, backend: str, long_way: list[str]
) -> None:
    """Which is not for `constant` memory, and not for an array of another runtime."""
    source = """
    kernel void scale(constant int *by, global const int *x, global int *y)
    { int i = get_global_id(0); y[i] = x[i] * by[0]; }
    """
    with (
        acs.Runtime(device, backend=backend, memory="buffers") as rt,
        acs.Runtime(device, memory="buffers") as other,
    ):
        scale = rt.build(source).scale
        by, x, y = rt.array([3, 5], "i4"), rt.array(np.arange(12), "i4"), rt.zeros(12, "i4")
        scale((4,), None, by, x[4:8], y[:4])
        before = len(long_way)
        scale((4,), None, by, x[:4], y[4:8])
        scale((4,), None, by[:1], x[8:], y[8:])
        scale((4,), None, by, x[:4], y[:4])  # the kernel itself
        assert len(long_way) == before
        for wrong in ((by[1:], x[:4], y[:4]), (by, x[4:8], other.zeros(12, "i4")[4:8])):
            with pytest.raises(acs.UsageError, match="argument"):
                scale((4,), None, *wrong)
        assert y.get().tolist() == [0, 3, 6, 9, 0, 3, 6, 9, 24, 27, 30, 33]


def test_edges_are_those_of_python(device: cl.Device, backend: str) -> None:
    """While nothing ends: everything waits for a gate that Python holds."""
    made = []
    for is_native in (True, False):
        with acs.Runtime(device, backend=backend) as rt:
            program = rt.build(SOURCE)
            rows = rt.zeros((4, ROW), "u4")
            chosen = steps(random.Random(5), rows)
            for step in chosen:
                step(program)
            rt.finish()
            before = dict(rt.engine.hazards.edges)
            retire, by_core = rt.engine.backend.poll, testing.made_by_core(rt)
            rt.engine.backend.poll = lambda most=64: []  # type: ignore[method-assign]
            with contextlib.nullcontext() if is_native else inside.planned_by_python(rt):
                for step in chosen:
                    step(program)
            if is_native:
                assert testing.made_by_core(rt) - by_core > 40
            made.append({k: v - before[k] for k, v in rt.engine.hazards.edges.items()})
            rt.engine.backend.poll = retire  # type: ignore[method-assign]
    assert made[0] == made[1]


def test_of_a_view_only_what_a_launch_touches_counts(
    device: cl.Device, long_way: list[str]
) -> None:
    with acs.Runtime(device, backend="lanes") as rt:
        program = rt.build(SOURCE)
        x = rt.zeros(ROW, "u4")
        for _ in range(3):
            program.some((8,), None, x, 8)
        before = len(long_way)
        handle = program.some((8,), None, x, 8)
        assert [span.nbytes for span in handle.access.reads] == [32]
        assert [span.nbytes for span in handle.access.writes] == [32]
        half = x[:8]
        for _ in range(2):
            handle = program.some((8,), None, half, 8)
        assert len(long_way) == before  # it is known that all of so much is touched
        assert [span.nbytes for span in handle.access.writes] == [32]
        for view in (half, x[:8], x[4:12], x[4:12]):  # others of the same bytes, too
            handle = program.some((8,), None, view, 7)
            assert [span.nbytes for span in handle.access.writes] == [28]
        assert len(long_way) == before  # for new numbers, too, the core finds out what is touched
        program.some.infer_ranges = False
        program.some((8,), None, x, 7)
        before = len(long_way)
        handle = program.some((8,), None, x, 8)
        assert len(long_way) == before
        assert [span.nbytes for span in handle.access.writes] == [64]


def test_what_is_known_of_some_arrays_holds_for_others(
    device: cl.Device, long_way: list[str]
) -> None:
    with acs.Runtime(device, backend="lanes") as rt:
        program = rt.build(SOURCE)
        program.add((8,), None, rt.zeros(16, "u4"), rt.zeros(16, "u4"), 1)
        rt.finish()
        kept = []
        for _ in range(4):
            one, two, whole = rt.zeros(16, "u4"), rt.zeros(16, "u4"), rt.zeros(64, "u4")
            kept += [one, two, whole]
            pairs = [(one, two), (one, one), (whole[:16], whole[40:56]), (whole[:32], two)]
            for x, y in pairs:
                before = len(long_way)
                handle = program.add((8,), None, x, y, 1)
                assert len(long_way) == before
                with inside.planned_by_python(rt):
                    access = program.add((8,), None, x, y, 1).access
                assert handle.access == access
                assert {type(span) for span in handle.access.reads} == {acs.records.Span}
                assert [span.nbytes for span in access.reads] == [32, 32]
            assert one.get().tolist() == [3] * 8 + [0] * 8
            rt.finish()


def test_host_tasks_reads_and_events_find_them(device: cl.Device, backend: str) -> None:
    with acs.Runtime(device, backend=backend) as rt:
        program = rt.build(SOURCE)
        x, y = rt.zeros(8, "u4"), rt.zeros(8, "u4")
        program.add((8,), None, x, y, 1)
        handle = program.add((8,), None, x, y, 1)
        seen: list[int] = []
        rt.call(lambda values: seen.append(int(values[0])), reads=[y])
        last = program.add((8,), None, x, y, 1)
        last.event.wait()
        assert y.get().tolist() == [3] * 8
        handle.wait()
        assert handle.done
        assert last.done
        rt.finish()
        assert seen == [2]


def test_what_the_driver_refuses_is_raised_where_it_was_launched(
    device: cl.Device, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The core has it in the hazards already; Python finishes it, and finds the driver's error."""
    with acs.Runtime(device, backend=backend) as rt:
        program = rt.build(SOURCE)
        x, y = rt.zeros(8, "u4"), rt.zeros(8, "u4")
        for _ in range(2):
            program.add((8,), None, x, y, 1)
        # a group size that no device has, as if Python had launched it before
        acs.core.native.plan_sizes(program.add, (8,), (1 << 20,), None, (), Lease(ALL))
        number = testing.launched(rt)
        with pytest.raises(acs.AcsError, match=f"launch {number + 1} \\(add\\)"):
            program.add((8,), (1 << 20,), x, y, 1)
        program.add((8,), None, x, y, 1)
        assert testing.launched(rt) == number + 2
        assert y.get().tolist() == [3] * 8


def test_of_many_launches_the_one_that_the_driver_refuses_is_named(
    device: cl.Device, backend: str
) -> None:
    with acs.Runtime(device, backend=backend) as rt:
        program = rt.build(SOURCE)
        x, y = rt.zeros(8, "u4"), rt.zeros(8, "u4")
        for _ in range(2):
            program.add((8,), None, x, y, 1)
        acs.core.native.plan_sizes(program.add, (8,), (1 << 20,), None, (), Lease(ALL))
        number, made = testing.launched(rt), testing.made_by_core(rt)
        with pytest.raises(
            acs.AcsError, match=f"launch {number + 1} \\(add\\).*launch 1 of 3 of one"
        ):
            program.add.launch_many((8,), (1 << 20,), x, y, [1, 2, 3])
        rt.finish()
        program.add.launch_many((8,), None, x, y, [1, 2, 3])
        assert testing.made_by_core(rt) == made + 3
        assert testing.launched(rt) == number + 4
        assert y.get().tolist() == [8] * 8
        rt.finish()
        assert testing.is_at_rest(rt)


@pytest.mark.parametrize("limits", [{}, {"window": 16}, {"issue": "ready_first"}, {"backlog": 8}])
def test_many_launches_are_the_loop_of_calls(
    device: cl.Device, backend: str, limits: dict[str, Any]
) -> None:
    """Behind host tasks too, where words decide, and where arrays overlap."""
    for seed in range(max(1, FUZZ // 24)):
        found = []
        for is_native in (True, False):
            rng = random.Random(seed)
            with acs.Runtime(device, backend=backend, **limits) as rt:
                program = rt.build(SOURCE)
                rows = rt.array(np.arange(4 * ROW, dtype="u4").reshape(4, ROW))
                flags = rt.array(np.arange(4) % 2, "i4")
                views = [rows[i, a:b] for i in range(4) for a, b in ((0, 8), (8, 16))]
                seen: list[int] = []
                made = testing.made_by_core(rt)
                for _ in range(12):
                    many = rng.randrange(1, 40)
                    x, y = ([rng.choice(views) for _ in range(many)] for _ in range(2))
                    values: Any = [rng.randrange(100) for _ in range(many)]
                    if rng.random() < 0.5:
                        values = np.array(values, rng.choice(["u4", "i8", "u1"]))
                    when = rng.choice([None, [flags[rng.randrange(4)] for _ in range(many)]])
                    if rng.random() < 0.3:
                        rt.call(lambda one, seen=seen: seen.append(int(one[0])), reads=[y[0]])
                    with contextlib.nullcontext() if is_native else inside.planned_by_python(rt):
                        before = testing.launched(rt)
                        handle = program.add.launch_many((8,), None, x, y, values, when=when)
                        assert handle.number == before + many == testing.launched(rt)
                made = testing.made_by_core(rt) - made
                assert made if is_native and limits.get("issue") is None else made >= 0
                values = rows.get().tolist()
                rt.finish()
                assert testing.is_at_rest(rt)
                found.append((values, sorted(seen)))
        assert found[0] == found[1], f"seed {seed}"


def test_they_are_refused_what_is_not_plain(device: cl.Device, backend: str) -> None:
    with acs.Runtime(device, backend=backend) as rt, acs.Runtime(device) as other:
        program = rt.build(SOURCE)
        x, y, theirs = rt.zeros(8, "u4"), rt.zeros(8, "u4"), other.zeros(8, "u4")
        for _ in range(2):
            program.add((8,), None, x, y, 1)
        number = testing.launched(rt)
        for wrong in ((x, y), (x, theirs, 1), (x, y, 1 << 40), (x, 3, 1), (x, y, None)):
            with pytest.raises(acs.UsageError, match=f"launch {number + 1}"):
                program.add((8,), None, *wrong)
        x.free()
        with pytest.raises(acs.UsageError):
            program.add((8,), None, x, y, 1)
        assert y.get().tolist() == [2] * 8


def test_a_runtime_that_looks_closely_has_none(device: cl.Device) -> None:
    for options in ({"trace": True}, {"check": "access"}):
        with acs.Runtime(device, backend="lanes", **options) as rt:  # type: ignore[arg-type]
            program = rt.build(SOURCE)
            x, y = rt.zeros(8, "u4"), rt.zeros(8, "u4")
            for _ in range(4):
                program.add((8,), None, x, y, 1)
            assert testing.made_by_core(rt) == 0
            assert y.get().tolist() == [4] * 8


LIMITS: tuple[dict[str, Any], ...] = (
    {},
    {"window": 1},
    {"window": 3},
    {"window": 64},
    {"issue": "ready_first"},
    {"issue": "ready_first", "window": 5},
)


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_beside_host_tasks_events_and_limits(
    device: cl.Device, backend: str, limits: dict[str, Any]
) -> None:
    """What is held, and what may not enter yet, holds back what follows it, and nothing else."""
    for seed in range(max(1, FUZZ // 24)):
        made = []
        for is_native in (True, False):
            rng = random.Random(seed)
            with acs.Runtime(device, backend=backend, **limits) as rt:
                program = rt.build(SOURCE)
                rows = rt.array(np.arange(4 * ROW, dtype="u4").reshape(4, ROW))
                chosen = steps(rng, rows)
                seen: list[Any] = []
                gates: list[cl.UserEvent] = []
                most = 0
                for turn in range(2):
                    with contextlib.nullcontext() if is_native else inside.planned_by_python(rt):
                        for step in chosen:
                            step(program)
                            most = max(most, rt.stats()["window"]["occupied"])
                            chance = rng.random()
                            row = rows[rng.randrange(4)]
                            if chance < 0.04:
                                rt.call(lambda x, seen=seen: seen.append(int(x[0])), reads=[row])
                            elif chance < 0.08:
                                rt.call(lambda x: x.__iadd__(np.uint32(1)), reads=[row], writes=row)
                            elif chance < 0.1:
                                gates.append(cl.UserEvent(rt.context))
                                program.add((16,), None, row, rows[0], 1, wait_for=gates[-1:])
                            elif gates and (chance < 0.15 or len(gates) > 1):
                                gates.pop().set_status(cl.command_execution_status.COMPLETE)
                        for gate in gates:
                            gate.set_status(cl.command_execution_status.COMPLETE)
                        gates.clear()
                    assert turn == 0 or limits.get("window", 1 << 20) >= most
                values = rows.get()
                rt.finish()
                assert testing.is_at_rest(rt)
                made.append((values.tolist(), sorted(seen)))
        assert made[0] == made[1], f"seed {seed}"


@pytest.mark.parametrize("limits", [{}, {"window": 16}, {"issue": "ready_first"}], ids=str)
def test_only_what_follows_a_host_task_takes_the_long_way(
    device: cl.Device, limits: dict[str, Any]
) -> None:
    with acs.Runtime(device, backend="lanes", **limits) as rt:
        program = rt.build(SOURCE)
        x, y, z = (rt.zeros(8, "u4") for _ in range(3))
        for _ in range(2):
            program.add((8,), None, x, y, 1)
            rt.finish()
        go = threading.Event()
        task = rt.call(lambda values: go.wait(30) and None, reads=[y])
        with inside.calls_by_python() as others:
            for _ in range(100):  # independent of the task
                program.add((8,), None, x, z, 1).wait()
        before = len(others)
        assert before < 20  # at which another thread was inside the runtime
        made = testing.made_by_core(rt)
        assert made >= 100 - before
        behind = program.add((8,), None, z, y, 1)
        assert testing.made_by_core(rt) == made  # it is kept, for later
        assert not behind.done
        assert not task.done
        go.set()
        assert y.get().tolist() == [2 + 101] * 8


def test_a_full_backlog_waits(device: cl.Device, backend: str) -> None:
    with acs.Runtime(device, backend=backend, backlog=16) as rt:
        program = rt.build(SOURCE)
        x, y = rt.zeros(8, "u4"), rt.zeros(8, "u4")
        for _ in range(500):
            program.add((8,), None, x, y, 1)
            assert testing.in_flight(rt) <= 16
        assert y.get().tolist() == [500] * 8


def test_threads_keep_their_order(device: cl.Device, backend: str) -> None:
    with acs.Runtime(device, backend=backend) as rt:
        program = rt.build(SOURCE)
        arrays = [rt.zeros(8, "u4") for _ in range(4)]
        source = rt.zeros(8, "u4")

        def work(which: int) -> None:
            for step in range(300):
                program.some((8,), None, arrays[which], 8)
                program.add((8,), None, source, arrays[which], step % 7)

        in_threads(work, 4)
        expected = 0
        for step in range(300):
            expected = (expected * 7 + 8 + step % 7) % 2**32
        for array in arrays:
            assert array.get().tolist() == [expected] * 8


def test_a_kernel_may_be_taught_anew_while_others_launch_it(
    device: cl.Device, backend: str
) -> None:
    """A crowded queue's driver is called without the GIL, and another thread may come then."""
    with acs.Runtime(device, backend=backend) as rt:
        program = rt.build(SOURCE)
        slow = rt.zeros(1 << 14, "u4")
        arrays = [rt.zeros(ROW, "u4") for _ in range(3)]
        on = rt.array([1], "u4")[0]

        def work(which: int) -> None:
            array = arrays[which]
            for step in range(1000):
                if step % 250 == 0:
                    program.some((1 << 14,), None, slow, 1 << 14)
                program.some((8,), None, array, 8, when=on)
                program.put((8,), None, array[8:], step, 0, 0)
                program.some.infer_ranges = None

        in_threads(work, 3)
        expected = 0
        for _ in range(1000):
            expected = (expected * 7 + 8) % 2**32
        for array in arrays:
            assert array.get().tolist() == [expected] * 8 + [999] * 8


def test_a_launch_that_the_driver_refuses_keeps_its_own_variant(
    device: cl.Device, backend: str
) -> None:
    """While a driver is called without the GIL, another thread may give the plan another variant.
    Here the driver's call does that itself."""
    source = """
    kernel void one(global uint *x) { x[get_global_id(0)] += 1; }
    kernel void two(global uint *x) { x[get_global_id(0)] += 2; }"""
    addresses = functions()
    with acs.Runtime(device, backend=backend) as rt:
        program = rt.build(source)
        x, on = rt.zeros(8, "u4"), rt.array([1], "u4")
        for _ in range(2):
            program.one((8,), None, x, when=on)
        made = with_guards(source, [], device, "two", True, False)
        other = OwnKernel(cl.Program(rt.context, made.source).build(), made.kernel)
        refused: list[int] = []

        def refuse(*_: object) -> int:
            refused.append(len(refused))
            core.native.plan_variant(program.one, other, (), True)
            return -5  # CL_OUT_OF_RESOURCES

        several = [ctypes.c_void_p] * 9
        enqueue = ctypes.CFUNCTYPE(ctypes.c_int32, *several)(refuse)
        addresses[2] = ctypes.cast(enqueue, ctypes.c_void_p).value or 0
        core.native.open_driver(addresses)
        try:
            program.one((8,), None, x, when=on)
        finally:
            core.native.open_driver(functions())
        assert len(refused) > 0
        assert x.get().tolist() == [3] * 8


def test_beside_a_scheduler_lanes_go_by_the_native_path_too(device: cl.Device) -> None:
    """What the scheduler cannot take goes to lanes for a while without asking, and is counted."""
    with contextlib.ExitStack() as stack:
        try:
            rt = stack.enter_context(acs.Runtime(device, backend="device"))
        except acs.UsageError as error:
            pytest.skip(str(error))
        program = rt.build(
            """kernel void say(global uint *x) { x[get_global_id(0)] += 1;
               if (x[0] == 12345678) printf("no"); }
               kernel void add(global uint *x) { x[get_global_id(0)] += 1; }"""
        )
        rt.prebuild(program.add)
        x = rt.zeros(8, "u4")
        handles = []
        for _ in range(100):
            handles.append(program.say((8,), None, x))
            rt.engine.backend.schedulers.wait()  # so that it is known why
            if len(handles) % 10 == 0:
                program.add((8,), None, x)
        assert x.get().tolist() == [110] * 8
        lanes = rt.stats()["scheduler"]["on_lanes"]
        ours = {why: many for why, many in lanes.items() if "runs on a lane" not in why}
        assert sum(ours.values()) == 100
        assert ours["prints"] > 50
        assert "on a lane: prints" in str(rt.explain(handles[57]))


def test_while_the_scheduler_rests_lanes_go_by_the_native_path(
    device: cl.Device, long_way: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `when=` and without; Python is asked again where the rest ends."""
    with acs.Runtime(device) as rt:
        if rt.plan.scheduler != "mix":
            pytest.skip("no scheduler beside lanes")
        # on a busy machine it may seem long, and belong to lanes for good
        timed = Choice.timed_on_lane
        monkeypatch.setattr(Choice, "timed_on_lane", lambda self, key, us: timed(self, key, 1.0))
        program = rt.build(SOURCE)
        rt.prebuild(program.flip)
        x, y, flags = rt.zeros(8, "u4"), rt.zeros(8, "u4"), rt.array([1, 0], "u4")
        for _ in range(50):  # until its time on a lane is known
            program.flip((8,), None, x)
            program.flip((8,), None, y, when=flags[0])
            rt.finish()
        y.fill(0)
        choice: Any = rt.engine.backend.choice
        rt.engine.backend.schedulers.wait()
        program.flip._forget()  # what it was taught for other reasons
        choice.built_anew(rt.engine.backend.schedulers.builds)
        end = choice.resting_until = rt.engine.number + 200
        before = len(long_way)
        handles = [program.flip((8,), None, x)]
        while rt.engine.number < end - 2:
            which = len(handles) % 2
            program.flip((8,), None, y, when=flags[which])
            handles.append(program.flip((8,), None, x))
        # now and then another thread is inside the runtime
        assert len(long_way) - before <= 2 + 200 // 32 + 20
        assert all("were too small" in str(rt.explain(one)) for one in handles)
        while rt.engine.number < end:
            last = program.flip((8,), None, x)
        before = len(long_way)
        program.flip((8,), None, x)
        assert len(long_way) == before + 1  # by itself none goes to a lane any more
        assert last.number == end
        assert y.get().tolist() == [sum(i % 2 == 0 for i in range(1, len(handles))) % 2] * 8


def test_kernels_that_wait_for_a_scheduler_ask_ever_more_rarely(
    device: cl.Device, long_way: list[str]
) -> None:
    """With `when=` as without it. Few launches are in flight here, so no scheduler is built."""
    with acs.Runtime(device) as rt:
        if rt.plan.scheduler != "mix":
            pytest.skip("no scheduler beside lanes")
        program = rt.build(SOURCE)
        x, y, flags = rt.zeros(8, "u4"), rt.zeros(8, "u4"), rt.array([1, 0], "u4")
        for turn in range(301):
            program.flip((8,), None, x)
            for one in range(4):
                handle = program.some((8,), None, y, turn, when=flags[one % 2])
            rt.finish()
        assert "on a lane" in str(rt.explain(handle))
        # leases of 32, 64, 128 and so on; now and then another thread is inside the runtime
        assert long_way.count("some") <= 6 + 10
        assert not rt.stats()["scheduler"]["builds"]
        expected = np.zeros(8, "u4")
        for turn in np.repeat(np.arange(301, dtype="u4"), 2):
            expected = np.where(np.arange(8) < turn, expected * np.uint32(7) + turn, expected)
        assert x.get().tolist() == [1] * 8
        assert y.get().tolist() == expected.tolist()


# ---- what decides --------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_flags_at_any_place_decide_without_python(
    device: cl.Device, backend: str, memory: str, long_way: list[str]
) -> None:
    """Set by launches of the native path; of a view that starts inside a buffer, too."""
    rng = random.Random(3)
    with acs.Runtime(device, backend=backend, memory=memory) as rt:
        program = rt.build(SOURCE)
        x, y = rt.array(np.arange(8), "u4"), rt.zeros(8, "u4")
        flags = rt.zeros(9, "u4")
        want, on = np.zeros(8, "u4"), np.zeros(9, "u4")

        def turn(which: int, is_native: bool) -> None:
            before = len(long_way)
            if rng.random() < 0.5:
                program.flip((9,), None, flags)
                on[:] ^= 1
            handle = program.add((8,), None, x, y, 3, when=flags[which])
            assert handle.access.reads[-1] == flags[which].spans[0]
            if on[which]:
                want[:] += np.arange(8, dtype="u4") + 3
            assert not is_native or len(long_way) == before

        for _ in range(3):
            program.flip((9,), None, flags)
            on[:] ^= 1
        turn(0, False)
        for step in range(100):
            turn(step % 9, True)
        assert y.get().tolist() == want.tolist()
        program.add((8,), None, x, y, 1)  # the kernel without a decision is as it was
        assert y.get().tolist() == (want + np.arange(8, dtype="u4") + 1).tolist()


def test_a_flag_that_is_not_plain_takes_the_long_way(
    device: cl.Device, backend: str, long_way: list[str]
) -> None:
    with acs.Runtime(device, backend=backend) as rt, acs.Runtime(device) as other:
        program = rt.build(SOURCE)
        x, y = rt.array(np.arange(8), "u4"), rt.zeros(8, "u4")
        flags = rt.array([1, 0, 1], "i4")
        for _ in range(2):
            program.add((8,), None, x, y, 1, when=flags[0])
        freed = flags[1]
        freed.free()
        odd = rt.zeros(8, "u1")[1:5].view("u4")
        wrong = (flags[:2], rt.zeros(1, "f4"), freed, other.zeros(1, "u4"), odd, 1)
        for one in wrong:
            with pytest.raises(acs.UsageError, match="when="):
                program.add((8,), None, x, y, 1, when=one)
        number = testing.launched(rt)
        before = len(long_way)
        program.add((8,), None, x, y, 1, when=y[:1])  # which it writes: a copy decides
        assert testing.launched(rt) == number + 2
        assert len(long_way) == before + 1
        assert y.get().tolist() == [3 * i + 3 for i in range(8)]


def test_poison_of_a_flag_reaches_what_it_decides(device: cl.Device, backend: str) -> None:
    with acs.Runtime(device, backend=backend) as rt:
        program = rt.build(SOURCE)
        x, y, z = (rt.zeros(8, "u4") for _ in range(3))
        flags = rt.array([1, 1], "u4")
        for _ in range(2):
            program.add((8,), None, x, y, 1, when=flags[0])
        rt.finish()

        def fails(values: Any) -> None:
            raise ValueError("no")

        rt.call(fails, writes=[flags[:1]])
        spoiled = program.add((8,), None, x, y, 1, when=flags[0])
        sound = program.add((8,), None, x, z, 1, when=flags[1])
        sound.wait()
        with pytest.raises(acs.PoisonedError):
            spoiled.wait()
        with pytest.raises(acs.PoisonedError):
            y.get()
        assert z.get().tolist() == [1] * 8
        y.fill(5)  # which ends its poison; a launch that may be skipped does not
        with pytest.raises(acs.PoisonedError):
            program.add((8,), None, x, y, 1, when=flags[0]).wait()
        flags.fill(0)
        y.fill(5)
        for _ in range(2):
            program.add((8,), None, x, y, 1, when=flags[0]).wait()
        assert y.get().tolist() == [5] * 8


def test_what_decides_is_waited_for_on_the_host_too(device: cl.Device, backend: str) -> None:
    """Behind a host task that sets the flag, the core hands the launch over, decision and all."""
    with acs.Runtime(device, backend=backend) as rt:
        program = rt.build(SOURCE)
        x, y = rt.zeros(ROW, "u4"), rt.zeros(ROW, "u4")
        flags = rt.array([1, 1], "u4")
        for _ in range(2):
            program.some((ROW,), None, y, 3, when=flags[0])
        y.fill(0)
        go = threading.Event()

        def clear(flag: Any) -> None:
            go.wait(30)
            flag[:] = 0

        rt.call(clear, writes=[flags[:1]])
        held = [program.some((ROW,), None, y, 3, when=flags[0]) for _ in range(3)]
        rest = y[3:]
        free = program.add((ROW - 3,), None, x[3:], rest, 4)
        if backend != "serial":
            free.wait()
        go.set()
        assert y.get().tolist() == [0] * 3 + [4] * (ROW - 3)
        assert [span.nbytes for span in held[-1].access.writes] == [12]
        assert held[-1].access.reads[-1] == flags[0].span


def test_what_the_driver_refuses_of_a_gated_launch_is_raised_there(
    device: cl.Device, backend: str
) -> None:
    with acs.Runtime(device, backend=backend) as rt:
        program = rt.build(SOURCE)
        x, y, flags = rt.zeros(8, "u4"), rt.zeros(8, "u4"), rt.array([1, 0], "u4")
        for _ in range(2):
            program.add((8,), None, x, y, 1, when=flags[0])
        acs.core.native.plan_sizes(program.add, (8,), (1 << 20,), None, (), Lease(ALL))
        number = testing.launched(rt)
        with pytest.raises(acs.AcsError, match=f"launch {number + 1} \\(add\\)"):
            program.add((8,), (1 << 20,), x, y, 1, when=flags[0])
        for which in (0, 1):
            program.add((8,), None, x, y, 1, when=flags[which])
        assert testing.launched(rt) == number + 3
        assert y.get().tolist() == [3] * 8
