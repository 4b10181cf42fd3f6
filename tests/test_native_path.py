"""Launches that the native core makes itself, against the same made by Python.

The two ways are compared in one runtime, on the same arrays: the words of the epoch, edges among
them, what handles and statistics say, and every value. `ACS_CL_FUZZ=n` asks for n programs in all.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import re
import sys
import time
import tracemalloc
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from fuzz.declared import declared, declaring, shifted
from fuzz.threads import in_threads

import acs_cl as acs
from acs_cl import core, testing
from acs_cl.launch.backend import Lease

FUZZ = int(os.environ.get("ACS_CL_FUZZ", "40"))
PARTS = 4

SOURCE = """
kernel void add(global const uint *x, global uint *y, uint a)
{ size_t i = get_global_id(0); y[i] += x[i] + a; }
kernel void put(global uint *y, long a, ushort b, char c)
{ y[get_global_id(0)] = (uint)a + b * 3 + c; }
kernel void blend(global const uint *x, global const uint *y, global uint *z, float f, double d)
{ size_t i = get_global_id(0); z[i] = z[i] * 3 + x[i] + y[i] + (uint)(f * 8) + (uint)(d * 16); }
kernel void flat(global uint *x)
{ size_t i = get_global_id(1) * get_global_size(0) + get_global_id(0); x[i] = x[i] * 5 + i; }
kernel void turn(global uint *x)
{ local uint one[4]; int i = get_local_id(0); one[i] = x[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE); x[get_global_id(0)] = one[3 - i]; }
kernel void lend(global uint *x, local uint *one, uint a, local ushort *two)
{ int i = get_local_id(0); one[i] = x[get_global_id(0)]; two[i] = (ushort)(a + i);
  barrier(CLK_LOCAL_MEM_FENCE); x[get_global_id(0)] = one[3 - i] * 3 + two[3 - i]; }
kernel void say(global uint *x) { x[get_global_id(0)] += 1; if (x[0] == 12345678) printf("no"); }
kernel void none(uint a) { }
"""
IN_GROUPS = ("turn", "lend")
CUT = ("add", "put", "blend", "flat", "none")
ROW = 16
ENOUGH = {
    "add": {"x": ["r", "r[gid]", "r[0:2*gsize]"], "y": ["rw", "rw[gid]", "r[gid:gid + 1], w[gid]"]},
    "put": {"y": ["w", "rw", "w[gid]", "w[gid:gid + 1]", "w[gid:gid+1], w[gid]"]},
    "blend": {"x": ["r", "r[gid]"], "y": ["r"], "z": ["rw", "w[gid], r[gid]"]},
    "flat": {"x": ["rw", "rw[gid0 + gsize0*gid1]"]},
    "turn": {"x": ["rw", "rw[gid]"]},
    "lend": {"x": ["rw", "rw[gid]"]},
}
"""Declarations of kernels, by parameter."""


@pytest.fixture(scope="module")
def program(device: cl.Device) -> Iterator[acs.Program]:
    with contextlib.ExitStack() as stack:
        try:
            rt = stack.enter_context(acs.Runtime(device, backend="device"))
        except acs.UsageError as error:
            pytest.skip(str(error))
        made = rt.build(SOURCE)
        built = [getattr(made, name) for name in CUT]
        rt.prebuild(*built, *((getattr(made, name), (4,)) for name in IN_GROUPS))
        yield made


@pytest.fixture(autouse=True)
def kept_open(program: acs.Program) -> Iterator[None]:
    """Epochs stay open until something asks for them, and no thread of ours has the lock of their
    runtime meanwhile, so that every launch is the core's that can be."""
    testing.runtime_of(program).finish()
    with inside.unattended(), testing.open_epochs():
        inside.Scheduler(testing.runtime_of(program)).keep_open()
        yield


def warm(program: acs.Program) -> None:
    """Each kernel launched once at each size, so that the core knows them."""
    rt = testing.runtime_of(program)
    rows = rt.zeros((3, ROW), "u4")
    for step in Steps(random.Random(0), rows).each():
        step(program)
    rt.finish()


class Steps:
    """Random launches on some rows, by kernel."""

    def __init__(
        self, rng: random.Random, rows: acs.Array, flags: list[acs.Array] | None = None
    ) -> None:
        self.rng = rng
        self.flags = flags
        self.views = [rows[i, a:b] for i in range(len(rows)) for a, b in ((0, 16), (0, 8), (8, 16))]
        self.names = {view: view.size for view in self.views}

    def pick(self, size: int) -> acs.Array:
        return self.rng.choice([view for view in self.views if view.size == size])

    def number(self, least: int, most: int) -> Any:
        rng = self.rng
        value = rng.choice((least, most, rng.randint(least, most), 0, 1))
        kinds: list[Any] = [int, np.int64]
        if 0 <= value < 128:
            kinds += [np.int8, np.uint8, np.uint16, np.int32, np.uint64]
        return rng.choice(kinds)(value)

    def real(self) -> Any:
        kind = self.rng.choice((float, np.float32, np.float64, int, np.int32))
        return kind(self.rng.randrange(100) / 4)

    def step(self, name: str, size: int) -> Any:
        rng, pick = self.rng, self.pick
        args: tuple[Any, ...] = {
            "add": lambda: (pick(size), pick(size), self.number(0, (1 << 32) - 1)),
            "put": lambda: (
                pick(size), self.number(-(1 << 63), (1 << 63) - 1), self.number(0, 65535),
                self.number(-128, 127),
            ),
            "blend": lambda: (pick(size), pick(size), pick(size), self.real(), self.real()),
            "flat": lambda: (pick(size),),
            "turn": lambda: (pick(size),),
            "lend": lambda: (
                pick(size), cl.LocalMemory(rng.choice((16, 20, 128, 200))),
                self.number(0, (1 << 32) - 1), cl.LocalMemory(rng.choice((8, 14))),
            ),
            "none": lambda: (rng.randrange(9),),
        }[name]()  # fmt: skip
        shape, keywords = shifted(rng, name, size)
        if name == "flat":
            shape, keywords = (4, size // 4), {}
        local = {"turn": (4,), "lend": (4,), "flat": rng.choice(((2, 2), None))}.get(name)
        if self.flags is not None and rng.random() < 0.5:
            keywords["when"] = rng.choice(self.flags)
        arrays = [arg for arg in args if isinstance(arg, acs.Array)]
        if arrays and rng.random() < 0.2:
            reads = [] if name == "put" else arrays
            keywords |= declared(rng, reads, arrays[-1:], self.views)
        return lambda program: getattr(program, name)(shape, local, *args, **keywords)

    def each(self) -> list[Any]:
        return [
            self.step(name, size)
            for name in (*IN_GROUPS, *CUT)
            for size in (8, 16)
            for _ in range(8)
        ]

    def some(self, many: int) -> list[Any]:
        """All of one scheduler: another one has epochs of its own."""
        rng = self.rng
        names = IN_GROUPS if rng.random() < 0.2 else CUT
        return [self.step(rng.choice(names), rng.choice((8, 16))) for _ in range(many)]


def recorded(program: acs.Program, steps: list[Any], lane: acs.Array) -> dict[str, Any]:
    """What some launches leave in the open epoch, what is said of them, and where they got."""
    rt = testing.runtime_of(program)
    before, by_core = rt.stats(), testing.made_by_core(rt)
    first = rt.engine.number
    stop = cl.UserEvent(rt.context)
    for queue in rt.engine.backend.lanes.queues:
        cl.enqueue_barrier(queue, wait_for=[stop])
    program.say((lane.size,), None, lane)  # on a lane, which is held: some wait for it
    handles = [step(program) for step in steps]
    epoch: Any = rt.engine.backend.sender.open
    made = {
        "native": testing.made_by_core(rt) - by_core,
        "words": epoch.recorder.image(8).words.tolist(),
        "under way": [one.number - first for one in handles if testing.is_in_flight(rt, one)],
        "tasks": [rt.engine.table.task(handle.number, epoch.number) for handle in handles],
    }
    stop.set_status(cl.command_execution_status.COMPLETE)
    rt.finish()
    after = rt.stats()
    edges, others = after["edges"], ("launches", "retired", "edges_pruned")
    made["edges"] = {kind: edges[kind] - before["edges"][kind] for kind in edges}
    made["counts"] = [after[name] - before[name] for name in others]
    made["handles"] = [(one.number - first, one.name, one.access, one.done) for one in handles]
    made["live"] = testing.is_at_rest(rt)
    return made


@pytest.mark.parametrize("part", range(PARTS))
def test_they_are_what_python_makes_word_by_word(program: acs.Program, part: int) -> None:
    rt = testing.runtime_of(program)
    warm(program)
    compare_ways(program, range(part, FUZZ, PARTS))
    for seed in range(part, FUZZ, PARTS):
        with declaring(random.Random(seed), program, ENOUGH):
            warm(program)
            compare_ways(program, [seed])
    assert testing.is_at_rest(rt)


def compare_ways(program: acs.Program, seeds: Iterable[int]) -> None:
    """Launches of these random programs, by the core and by Python."""
    rt = testing.runtime_of(program)
    for seed in seeds:
        rng = random.Random(seed)
        rows = rt.zeros((3, ROW), "u4")
        steps = Steps(rng, rows).some(rng.choice((20, 200)))
        made = {}
        for way in ("native", "by_python"):
            rows.fill(7)
            rt.finish()
            with inside.planned_by_python(rt) if way == "by_python" else contextlib.nullcontext():
                made[way] = recorded(program, steps, rows[0] if seed % 2 else rows[1, :8])
            made[way]["values"] = rows.get().tolist()
        # not the first, which opens the epoch, nor where another thread of the runtime is inside
        assert made["native"].pop("native") > len(steps) * 0.7, seed
        assert made["by_python"].pop("native") == 0
        for what, value in made["by_python"].items():
            assert made["native"][what] == value, (seed, what)


@pytest.mark.parametrize("seed", range(8))
def test_those_that_decide_are_what_python_makes_word_by_word(
    program: acs.Program, seed: int
) -> None:
    """Flags that stay, in one of two types, and some that other launches of the program write."""
    rt, rng = testing.runtime_of(program), random.Random(seed)
    warm(program)
    rows, some = rt.zeros((4, ROW), "u4"), rt.zeros(8, "i4")
    flags = [rows[3, i] for i in range(4)] + [some[i : i + 1] for i in range(8)]
    source = Steps(rng, rows[:3], flags)  # all of one scheduler, or epochs would be cut
    steps = [source.step(rng.choice(CUT), rng.choice((8, 16))) for _ in range(150)]
    for bit in (0, 1):
        steps.append(lambda program, bit=bit: program.put((8,), None, rows[3, :8], bit, 0, 0))
    rng.shuffle(steps)
    made = {}
    for way in ("native", "by_python"):
        rows.fill(7)
        some.set(np.arange(8, dtype="i4") % 2 - np.arange(8, dtype="i4") % 3)
        rt.finish()
        with inside.planned_by_python(rt) if way == "by_python" else contextlib.nullcontext():
            made[way] = recorded(program, steps, rows[0])
        made[way]["values"] = rows.get().tolist()
    assert made["native"].pop("native") > len(steps) * 0.7
    assert made["by_python"].pop("native") == 0
    for what, value in made["by_python"].items():
        assert made["native"][what] == value, what


def test_those_that_decide_and_are_not_plain_go_the_long_way(program: acs.Program) -> None:
    rt = testing.runtime_of(program)
    x, y, flags = rt.zeros(8, "u4"), rt.zeros(8, "u4"), rt.array([0, 1], "u4")
    for _ in range(3):
        program.add((8,), None, x, y, 1)
    before = testing.made_by_core(rt)
    program.add((8,), None, x, y, 1, when=flags[0])
    program.add((8,), None, x, y, 1, when=flags[1])
    program.add((8,), None, x, y, 1, when=None)
    assert testing.made_by_core(rt) == before + 3
    program.add((8,), None, x, y, 1, when=y[0])  # which it writes
    wrong = (flags, 1, x, flags.view("f4")[0], flags.view("u1")[1:5].view("u4"))
    for when in wrong:
        said = []
        for _ in range(2):
            with pytest.raises(acs.UsageError) as caught:
                program.add((8,), None, x, y, 1, when=when)
            said.append(re.sub(r"launch \d+", "launch", str(caught.value)))
            rt.engine.table.usable = not rt.engine.table.usable
        assert said[0] == said[1]
    assert y.get().tolist() == [6] * 8


def test_a_kernel_that_always_decides_goes_by_the_native_path_too(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device") as rt:
        prog = rt.build(SOURCE)
        rt.prebuild(prog.add)
        x, y, flags = rt.zeros(8, "u4"), rt.zeros(8, "u4"), rt.array([0, 1], "u4")
        handles = [prog.add((8,), None, x, y, 1, when=flags[i % 2]) for i in range(50)]
        assert testing.made_by_core(rt) > 0
        assert handles[-1].access.reads == (x.span, y.span, flags[1].span)
        assert y.get().tolist() == [25] * 8


@pytest.mark.parametrize("seed", range(6))
def test_many_by_one_call_are_the_same_word_by_word(program: acs.Program, seed: int) -> None:
    rt, rng = testing.runtime_of(program), random.Random(seed)
    warm(program)
    rows = rt.zeros((3, ROW), "u4")
    steps, many = Steps(rng, rows), 200
    arrays = [[steps.pick(8) for _ in range(many)] for _ in range(3)]
    reals: list[Any] = [
        np.array([rng.randrange(90) / 8 for _ in range(many)], kind) for kind in ("f4", "f8")
    ]
    if seed % 2:
        reals = [reals[1], list(reals[0])]
    made = {}
    for way in ("loop", "many"):
        rows.fill(7)
        rt.finish()
        before = testing.made_by_core(rt)
        if way == "loop":
            for one in zip(*arrays, *reals, strict=True):
                program.blend((8,), None, *one)
        else:
            program.blend.launch_many((8,), None, *arrays, *reals)
            assert testing.made_by_core(rt) - before > many * 0.5
        epoch: Any = rt.engine.backend.sender.open
        made[way] = epoch.recorder.image(8).words.tolist(), rows.get().tolist()
    assert made["loop"] == made["many"]


@pytest.mark.parametrize("each", [False, True])
def test_many_that_decide_are_those_of_a_loop(program: acs.Program, each: bool) -> None:
    rt = testing.runtime_of(program)
    rows, flags = rt.zeros((3, ROW), "u4"), rt.array([0, 1, 3], "u4")
    views = [flags[i] for i in range(3)]
    when = [views[at % 3] for at in range(120)] if each else views[1]
    targets = [rows[at % 3] for at in range(120)]
    warm(program)
    made = {}
    for way in ("loop", "many"):
        rows.fill(1)
        rt.finish()
        before = testing.made_by_core(rt)
        if way == "loop":
            for at, target in enumerate(targets):
                flag = when[at] if isinstance(when, list) else when
                program.add((ROW,), None, rows[0], target, at, when=flag)
        else:
            handle = program.add.launch_many(
                (ROW,), None, rows[0], targets, list(range(120)), when=when
            )
            assert testing.made_by_core(rt) - before > 50
            assert {view.span for view in views[1:2]} <= set(handle.access.reads)
        epoch: Any = rt.engine.backend.sender.open
        made[way] = epoch.recorder.image(8).words.tolist(), rows.get().tolist()
    assert made["loop"] == made["many"]


def test_a_handle_says_what_any_other_does(program: acs.Program) -> None:
    rt = testing.runtime_of(program)
    warm(program)
    x, y = rt.zeros(8, "u4"), rt.zeros(8, "u4")
    with inside.planned_by_python(rt):
        handles = [program.add((8,), None, x, y, 1)]
    before = testing.made_by_core(rt)
    handles += [program.add((8,), None, x, y, 1) for _ in range(3)]
    assert testing.made_by_core(rt) == before + 3
    by_python, one = handles[0], handles[2]
    seen: list[Any] = []
    sys.setprofile(lambda *_: seen.append(one.access))  # another one asks meanwhile
    seen.append(one.access)
    sys.setprofile(None)
    assert all(access is one.access for access in seen)
    assert type(by_python) is type(one)
    assert (one.name, one.access, one.number) == (
        by_python.name,
        by_python.access,
        by_python.number + 2,
    )
    assert one.access is one.access
    assert repr(one) == f"<acs_cl.Handle {one.number} add>"
    assert "RAW" in str(rt.explain(handles[1], one)) or "WAW" in str(rt.explain(handles[1], one))
    assert "in the scheduler on the device" in str(rt.explain(one))
    assert one.wait() is None
    assert one.done
    assert y.get().tolist() == [4] * 8
    assert one.event.command_execution_status == cl.command_execution_status.COMPLETE


def test_events_waits_and_polls_find_them(program: acs.Program) -> None:
    rt = testing.runtime_of(program)
    warm(program)
    x = rt.zeros(8, "u4")
    rt.finish()
    for way in ("wait", "event", "done", "get", "flush"):
        before = testing.made_by_core(rt)
        handles = [program.put((8,), None, x, 1, 2, 3) for _ in range(5)]
        assert testing.made_by_core(rt) == before + 5
        assert not rt.engine.backend.sender.open.wait_for
        if way == "wait":
            handles[-1].wait()
        elif way == "event":
            handles[-1].event.wait()
        elif way == "done":
            while not handles[-1].done:
                pass
        elif way == "get":
            assert x.get().tolist() == [10] * 8
        else:
            rt.flush()
            handles[0].wait()
        handles[-1].wait()
        rt.finish()
        assert testing.is_at_rest(rt)


def test_what_is_not_plain_goes_the_long_way_and_says_the_same(program: acs.Program) -> None:
    rt = testing.runtime_of(program)
    x, y = rt.zeros(16, "u4"), rt.zeros(16, "u4")
    before = testing.made_by_core(rt)
    for _ in range(3):
        program.add((8,), None, x[:8], y[:8], 1)
    assert testing.made_by_core(rt) > before
    wrong = [
        ((8,), None, x[:8], y[:8]),
        ((8,), None, x[:8], y[:8], 1, 2),
        ((8,), None, x[:8], 3, 1),
        ((8,), None, 3, y[:8], 1),
        ((8,), None, x[:8], y[:8], "one"),
        ((8,), None, x[:8], y[:8], 1 << 32),
        ((8,), None, x[:8], y[:8], -1),
        ((8,), None, x[:8], y[:8], 1.5),
        ((8,), None, x[:8], y[:8], x),
        ((8,), None, x[:8], y[:8], np.float32(1)),
        ((8,), None, x[:8], np.zeros(8, "u4"), 1),
        (("a",), None, x[:8], y[:8], 1),
    ]
    for args in wrong:
        said = []
        for _ in range(2):
            with pytest.raises(acs.UsageError) as caught:
                program.add(*args)
            said.append(re.sub(r"launch \d+", "launch", str(caught.value)))
            rt.engine.table.usable = not rt.engine.table.usable
        assert said[0] == said[1]
    assert rt.engine.table.usable
    with pytest.raises(acs.UsageError, match="takes global size"):
        program.add((8,))
    freed = rt.zeros(8, "u4")
    freed.free()
    with pytest.raises(acs.UsageError, match="given back"):
        program.add((8,), None, freed, y[:8], 1)
    others = [
        lambda: program.add((8,), None, x[:8], y[:8], 1, reads=[]),
        lambda: program.add((8,), None, x[:8], y[:8], 1, wait_for=[]),
        lambda: program.add((8,), None, x[:8], y[:8], 1, offset=(0,)),
        lambda: program.add([8], None, x[:8], y[:8], 1),
        lambda: program.add((8,), None, x[:8], y[:8], True),
        lambda: program.add((7,), None, x[:8], y[:8], 1),
        lambda: rt.launch(program.add, (8,), None, x[:8], y[:8], 1),
    ]
    for other in others:
        other()
    rt.finish()
    assert int(y.get()[0]) == 3 + len(others)


def test_an_infinite_float_is_one_and_a_large_one_is_refused(program: acs.Program) -> None:
    rt = testing.runtime_of(program)
    x = rt.zeros(8, "u4")
    for _ in range(2):
        program.blend((8,), None, x, x, x, 1.0, 1.0)
    before = testing.made_by_core(rt)
    program.blend((8,), None, x, x, x, float("inf"), 1.0)
    assert testing.made_by_core(rt) == before + 1
    with pytest.raises(acs.UsageError, match="float"):
        program.blend((8,), None, x, x, x, 1e300, 1.0)


def test_kernels_of_other_runtimes_and_arrays_do_not_mix(
    program: acs.Program, device: cl.Device
) -> None:
    rt = testing.runtime_of(program)
    x = rt.zeros(8, "u4")
    for _ in range(2):
        program.put((8,), None, x, 1, 2, 3)
    with acs.Runtime(device, backend="device") as other:
        theirs = other.zeros(8, "u4")
        with pytest.raises(acs.UsageError, match="another runtime"):
            program.put((8,), None, theirs, 1, 2, 3)


def test_declared_kernels_are_left_to_python(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device") as rt:
        prog = rt.build(SOURCE)
        rt.prebuild(prog.put)
        x = rt.zeros(8, "u4")
        for _ in range(3):
            prog.put((8,), None, x, 1, 2, 3)
        prog.put.access(y="w[gid]")
        before = testing.made_by_core(rt)
        handle = prog.put((4,), None, x, 1, 2, 3)
        assert handle.access.writes[0].nbytes == 16
        assert testing.made_by_core(rt) == before


def test_recordings_take_them(program: acs.Program) -> None:
    rt = testing.runtime_of(program)
    x = rt.zeros(8, "u4")
    for _ in range(3):
        program.flat((4, 2), None, x)
    before = testing.made_by_core(rt)
    with rt.record() as graph:
        program.flat((4, 2), None, x)
    assert testing.made_by_core(rt) == before
    assert len(graph) == 1
    graph.replay().wait()
    expected = np.zeros(8, "u4")
    for _ in range(4):
        expected = expected * 5 + np.arange(8, dtype="u4")
    assert x.get().tolist() == expected.tolist()


def test_host_tasks_and_gates_wait_for_them(program: acs.Program) -> None:
    rt = testing.runtime_of(program)
    x = rt.zeros(8, "u4")
    seen: list[int] = []
    for step in range(6):
        for _ in range(5):
            program.flat((8, 1), None, x)
            program.put((8,), None, x, step, 0, 0)
        rt.call(lambda values: seen.append(int(values[0])), reads=x)
    event = cl.UserEvent(rt.context)
    y = rt.zeros(8, "u4")
    held = program.add((8,), None, x, y, 1, wait_for=[event])
    for _ in range(3):
        program.add((8,), None, y, x, 1)
    assert not held.done
    event.set_status(cl.command_execution_status.COMPLETE)
    rt.finish()
    assert seen == list(range(6))
    assert y.get().tolist() == [6] * 8
    assert x.get().tolist() == [5 + 3 * 7] * 8


def test_poison_follows_them(program: acs.Program) -> None:
    rt = testing.runtime_of(program)
    x, y, z = (rt.zeros(8, "u4") for _ in range(3))
    for _ in range(3):
        program.add((8,), None, z, z, 1)
    rt.call(lambda values: 1 / 0, writes=x)
    lost = [program.add((8,), None, x, y, 1) for _ in range(2)]
    fine = [program.add((8,), None, z, z, 1) for _ in range(3)]
    for handle in fine:
        handle.wait()
    for handle in lost:
        with pytest.raises(acs.PoisonedError):
            handle.wait()
    assert z.get().tolist() == [(1 << 6) - 1] * 8
    y.fill(0)
    x.fill(1)
    with contextlib.suppress(acs.PoisonedError):
        rt.finish()
    before = testing.made_by_core(rt)
    for _ in range(20):  # healed: the core makes them again
        program.add((8,), None, x, y, 1)
    assert testing.made_by_core(rt) > before
    assert y.get().tolist() == [2 * 20] * 8


def test_a_failed_epoch_fails_all_of_it(program: acs.Program) -> None:
    rt = testing.runtime_of(program)
    warm(program)
    x, y = rt.zeros(8, "u4"), rt.zeros(8, "u4")
    rt.finish()
    for _ in range(2):
        program.add((8,), None, x, x, 1)
    before = testing.made_by_core(rt)
    handles = [program.put((8,), None, y, step, 0, 0) for step in range(9)]
    assert testing.made_by_core(rt) >= before + 8

    with inside.Scheduler(rt).refusing():
        rt.flush()
    for handle in handles:
        with pytest.raises(acs.PoisonedError, match="OUT_OF_RESOURCES"):
            handle.wait()
    with pytest.raises(acs.PoisonedError):
        y.get()
    with contextlib.suppress(acs.PoisonedError):
        rt.finish()
    x.fill(0)
    y.fill(3)
    for _ in range(4):
        program.add((8,), None, y, x, 1)
    assert x.get().tolist() == [16] * 8
    rt.finish()
    assert testing.is_at_rest(rt)


def test_what_follows_a_failed_epoch_of_another_scheduler_is_told_behind_it(
    program: acs.Program,
) -> None:
    """The core goes from one scheduler to the other behind a failure that nobody has seen yet: what
    follows it there is lost, and what does not is right."""
    rt = testing.runtime_of(program)
    x, y, z = rt.zeros(8, "u4"), rt.zeros(8, "u4"), rt.array(np.arange(8), "u4")
    program.put((8,), None, y, 1, 0, 0)
    program.add((8,), None, y, x, 1)
    program.turn((8,), (4,), z)
    rt.finish()
    z.set(np.arange(8, dtype="u4"))
    program.put((8,), None, y, 1, 0, 0)
    with inside.Scheduler(rt).refusing():
        rt.flush()
    before = testing.made_by_core(rt)
    program.turn((8,), (4,), z)
    assert testing.made_by_core(rt) == before + 1
    for _ in range(3):
        program.add((8,), None, y, x, 1)
        program.turn((8,), (4,), x)
        program.turn((8,), (4,), z)
    with pytest.raises(acs.PoisonedError, match="OUT_OF_RESOURCES"):
        rt.finish()
    with pytest.raises(acs.PoisonedError):
        x.get()
    assert z.get().tolist() == list(range(8))
    x.fill(0)
    y.fill(0)
    rt.finish()
    assert testing.is_at_rest(rt)


def test_sizes_may_be_forgotten_while_an_epoch_is_sent(program: acs.Program) -> None:
    """Another scheduler's epoch is sent first, and meanwhile another thread may launch the kernel
    with so many sizes that the plan begins anew. The process ended there."""
    rt = testing.runtime_of(program)
    y, z = rt.zeros(8, "u4"), rt.array(np.arange(8), "u4")
    program.put((8,), None, y, 1, 0, 0)
    program.turn((8,), (4,), z)
    rt.finish()
    sent: list[int] = []

    def forget(*_: object) -> None:
        sent.append(len(sent))
        for many in range(4, 4200):
            core.native.plan_sizes(program.turn, (4 * many,), (4,), None, (), None)

    sender = inside.Scheduler(rt).sender
    program.put((8,), None, y, 2, 0, 0)
    sender.on_words = forget
    try:
        program.turn((8,), (4,), z)
    finally:
        sender.on_words = None
    assert sent
    assert y.get().tolist() == [2] * 8
    assert z.get().tolist() == list(range(8))


def goes_on(program: acs.Program, x: acs.Array, y: acs.Array) -> None:
    """What failed is over, and launches behind it are right."""
    rt = testing.runtime_of(program)
    with contextlib.suppress(acs.PoisonedError):
        rt.finish()
    y.fill(0)
    program.add((8,), None, x, y, 1)
    assert y.get().tolist() == [1] * 8
    rt.finish()
    assert testing.is_at_rest(rt)


def test_an_epoch_whose_words_cannot_be_written_fails_with_the_reason(
    program: acs.Program,
) -> None:
    """It was raised wherever the epoch happened to be sent, and its launches failed without one."""
    rt = testing.runtime_of(program)
    warm(program)
    x, y = rt.zeros(8, "u4"), rt.zeros(8, "u4")
    rt.finish()

    def fail(*_: object) -> None:
        raise RecursionError("no stack is left")

    handle = program.add((8,), None, x, y, 1)
    sender = inside.Scheduler(rt).sender
    sender.on_words = fail
    try:
        rt.flush()
    finally:
        sender.on_words = None
    with pytest.raises(acs.PoisonedError, match="no stack is left"):
        handle.wait()
    goes_on(program, x, y)


def test_so_does_one_whose_tasks_have_no_order(program: acs.Program) -> None:
    """Errors of the core itself were raised there, and launches failed with status -1."""
    rt = testing.runtime_of(program)
    warm(program)
    x, y = rt.zeros(8, "u4"), rt.zeros(8, "u4")
    rt.finish()
    with inside.Scheduler(rt).ordering_wrongly([0.5] * 7):
        handle = program.add((8,), None, x, y, 1)
        rt.flush()
    with pytest.raises(acs.PoisonedError, match="each task has a priority, or none has"):
        handle.wait()
    goes_on(program, x, y)


def test_numbers_of_epochs_begin_anew(program: acs.Program) -> None:
    """They have 32 bits. None may be 0, which says that a launch is in no epoch."""
    rt = testing.runtime_of(program)
    x = rt.zeros(8, "u4")
    inside.Scheduler(rt).number_epochs_from(2**32 - 2)
    for step in range(6):
        handle = program.add((8,), None, x, x, 1)
        assert rt.engine.table.epoch(handle.number)
        program.say((8,), None, x)  # on a lane
        rt.finish()
        assert x.get().tolist() == [2 ** (step + 2) - 2] * 8
    assert testing.is_at_rest(rt)


def test_what_follows_a_failed_epoch_is_told_behind_it(program: acs.Program) -> None:
    """The one behind it ends well, before anybody has looked at the first."""
    rt = testing.runtime_of(program)
    warm(program)
    x, y = rt.zeros(8, "u4"), rt.zeros(8, "u4")
    rt.finish()
    program.put((8,), None, y, 1, 0, 0)
    before = testing.made_by_core(rt)
    scheduler = inside.Scheduler(rt)
    with scheduler.refusing():
        rt.flush()
    program.add((8,), None, y, x, 1)
    assert testing.made_by_core(rt) == before + 1
    with rt.engine.lock:
        scheduler.backend.send()
    event = scheduler.last_epoch
    assert event is not None
    event.wait()
    with pytest.raises(acs.PoisonedError, match="OUT_OF_RESOURCES"):
        rt.finish()
    with pytest.raises(acs.PoisonedError):
        x.get()
    x.fill(0)
    y.fill(0)
    rt.finish()
    assert testing.is_at_rest(rt)


def test_behind_an_epoch_the_next_one_is_open(program: acs.Program) -> None:
    rt = testing.runtime_of(program)
    warm(program)
    backend: Any = rt.engine.backend
    scheduler = inside.Scheduler(rt)
    with scheduler.kept():
        scheduler.set(most_tasks=8)
        x, y = rt.array(np.arange(ROW), "u4"), rt.zeros(ROW, "u4")
        sent = backend.sender.epochs_sent
        with inside.calls_by_python() as long_way:
            for _ in range(24):
                program.add((ROW,), None, x, y, 1)
        assert (backend.sender.epochs_sent - sent, long_way) == (3, [])
        empty = backend.sender.open
        assert empty is not None
        assert not empty.recorder.tasks
        rt.finish()
        assert backend.sender.epochs_sent - sent == 3
        assert y.get().tolist() == [24 * (i + 1) for i in range(ROW)]

        with testing.open_epochs(0.001):
            with inside.calls_by_python() as long_way:
                for _ in range(9):  # nobody asks for the last one, which is alone behind a full one
                    handle = program.add((ROW,), None, x, y, 1)
            assert not long_way
            with inside.attended(rt):
                testing.wait_until(lambda: not backend.unsent)
        testing.wait_until(lambda: handle.done)
        assert backend.sender.sent == []
        assert y.get().tolist() == [33 * (i + 1) for i in range(ROW)]


def test_a_native_launch_behind_a_wait_is_sent_though_nobody_asks(program: acs.Program) -> None:
    """The thread that looks now and then has gone since: the first task of an epoch wakes one. The
    time that an epoch stays open begins with that task."""
    rt = testing.runtime_of(program)
    warm(program)
    backend: Any = rt.engine.backend
    x, y = rt.array(np.arange(ROW), "u4"), rt.zeros(ROW, "u4")
    with testing.open_epochs(0.02):
        for many in range(1, 4):
            with inside.attended(rt):  # until there is nothing to look after any more
                rt.finish()
            sent = backend.sender.epochs_sent
            with inside.unattended() as asked, inside.calls_by_python() as long_way:
                for _ in range(many):
                    program.add((ROW,), None, x, y, 1)
            assert (asked[:1], long_way) == ([rt.engine.progress], [])
            with inside.attended(rt):
                testing.wait_until(lambda: not backend.unsent)
            assert 1 <= backend.sender.epochs_sent - sent <= many
    assert y.get().tolist() == [6 * (i + 1) for i in range(ROW)]


def test_kernels_that_may_be_cut_anywhere_ride_with_those_of_groups(
    device: cl.Device, program: acs.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, where they are as quick in groups of any size. One that fills the device does
    not, and none does on a CPU."""
    with acs.Runtime(device, backend="device") as rt:
        if not device.type & cl.device_type.CPU:
            pytest.skip("too few work-items in groups of 4 run at one time")
        made, backend = rt.build(SOURCE), rt.engine.backend
        rt.prebuild(made.add, made.put, (made.turn, (4,)))
        x, y, wide = rt.array(np.arange(ROW), "u4"), rt.zeros(ROW, "u4"), rt.zeros(1 << 14, "u4")
        flags = rt.array([0, 1], "u4")

        def run() -> tuple[int, int]:
            """How many epochs that takes, and how many of them by a cut."""
            rt.finish()
            before = backend.counters
            y.fill(0)
            for at in range(30):
                made.add((ROW,), None, x, y, at, when=flags[(at + 1) % 2] if at % 7 == 3 else None)
                if at % 3 == 2:
                    made.turn((ROW,), (4,), y)
                if at % 5 == 4:
                    made.put((4,), None, x[:4], at, 1, 2)
            rt.finish()
            return tuple(backend.counters[what] - before[what] for what in ("epochs", "cuts"))

        assert run() == (21, 20)
        expected = x.get().tolist(), y.get().tolist()
        with inside.calls_by_python() as long_way:
            assert run() == (21, 20)
        assert not long_way  # the core goes from one scheduler to the other
        again = x.get().tolist(), y.get().tolist()
        x.set(np.arange(ROW, dtype="u4"))
        monkeypatch.setattr(backend.schedulers.maker, "loops", False)
        rt.engine.table.generation += 1
        assert run() == (2, 1)
        assert (x.get().tolist(), y.get().tolist()) == expected
        for _ in range(2):
            with inside.calls_by_python() as long_way:
                assert run() == (1, 0)
            assert (x.get().tolist(), y.get().tolist()) == again
        assert not long_way  # the core has learned where they are
        made.turn((ROW,), (4,), y)
        cuts = backend.counters["cuts"]
        made.add((1 << 14,), None, wide, wide, 1)
        assert backend.counters["cuts"] == cuts + 1
        assert wide.get().tolist() == [1] * (1 << 14)


def test_an_epoch_without_tasks_is_no_epoch(program: acs.Program) -> None:
    """It is neither sent nor waited for, whatever is asked for, and a closed runtime has none."""
    rt = testing.runtime_of(program)
    backend: Any = rt.engine.backend
    x = rt.zeros(8, "u4")
    program.put((8,), None, x, 1, 2, 3)
    rt.finish()
    sent, empty = backend.sender.epochs_sent, backend.sender.open
    assert empty is not None
    for ask in (rt.flush, rt.finish, x.get, lambda: x.fill(3), rt.finish):
        ask()
    assert backend.sender.open is empty
    assert (backend.sender.epochs_sent, backend.in_flight, backend.oldest()) == (sent, 0, None)
    with acs.Runtime(rt.device, backend="device") as other:
        made = other.build(SOURCE)
        other.prebuild(made.put)
        y = other.zeros(8, "u4")
        for _ in range(3):
            made.put((8,), None, y, 1, 2, 3)
        other.finish()
        assert other.engine.backend.sender.open is not None
    with pytest.raises(acs.UsageError, match="closed"):
        made.put((8,), None, y, 1, 2, 3)


def test_a_full_backlog_waits(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device", backlog=100) as rt:
        prog = rt.build(SOURCE)
        rt.prebuild(prog.add)
        x, y = rt.zeros(8, "u4"), rt.zeros(8, "u4")
        for _ in range(1000):
            prog.add((8,), None, x, y, 1)
        assert y.get().tolist() == [1000] * 8
        assert rt.stats()["backlog_waits"] > 0
        assert 50 < rt.stats()["window"]["most_occupied"] <= 100


def test_memory_given_back_between_them_keeps_its_order(program: acs.Program) -> None:
    rt = testing.runtime_of(program)
    total = rt.zeros(256, "u4")
    for step in range(200):
        x = rt.empty(256, "u4")
        program.put((256,), None, x, step, 0, 0)
        program.put((256,), None, x, step + 1, 0, 0)
        program.add((256,), None, x, total, 0)
    assert total.get().tolist() == [sum(range(1, 201))] * 256


def test_threads_share_them(program: acs.Program) -> None:
    rt = testing.runtime_of(program)
    rows = rt.zeros((4, 8), "u4")
    warm(program)
    rt.engine.backend.keep_open(64)  # so that epochs are sent meanwhile

    def work(index: int) -> None:
        row = rows[index]
        for _ in range(1500):
            program.add((8,), None, row, row, 1)
            program.put((8,), None, row, index, 0, 0)
        program.add((8,), None, row, row, 5)

    in_threads(work, 4)
    assert rows.get().tolist() == [[2 * index + 5] * 8 for index in range(4)]


def test_a_mixing_runtime_has_them_too(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        if "scheduler" not in rt.stats():
            pytest.skip("auto has no scheduler here")
        prog = rt.build(SOURCE)
        rt.prebuild(prog.add)
        x = rt.zeros((32, 8), "u4")
        rows = [x[i] for i in range(32)]
        for step in range(3000):
            prog.add((8,), None, rows[step % 32], rows[step % 32], 1)
        expected = np.zeros(8, "u8")
        for step in range(3000):
            if step % 32 == 0:
                expected = 2 * expected + 1 & 0xFFFFFFFF
        assert x.get()[0].tolist() == expected.tolist()
        assert testing.made_by_core(rt) > 0


def test_large_and_small_epochs_in_turns_beside_lanes(device: cl.Device) -> None:
    """An epoch after a large one is sent whatever comes, one after a small one may take lanes."""
    with acs.Runtime(device) as rt:
        if "scheduler" not in rt.stats():
            pytest.skip("auto has no scheduler here")
        choice: Any = rt.engine.backend.choice
        # whether they gain anything is not what is asked here
        choice.timed_by_device = lambda *_: False
        prog = rt.build(SOURCE)
        rt.prebuild(prog.add)
        one, x = rt.array(np.ones(8, "u4")), rt.zeros(8, "u4")
        flags = [rt.array([value], "u4") for value in (0, 1)]
        for _ in range(40):
            prog.add((8,), None, one, x, 0)
        expected = int(x.get()[0])
        rng = random.Random(3)
        for turn in range(60):
            many = rng.choice((1, 3, 11, 12, 13, 40, 90))
            for _ in range(many):
                way = rng.choice((0, 1, None))
                prog.add((8,), None, one, x, turn, when=None if way is None else flags[way])
                expected += 0 if way == 0 else 1 + turn
            assert x.get().tolist() == [expected] * 8, turn
        assert rt.stats()["scheduler"]["epochs"] > 10


def test_nothing_is_held_longer_than_it_has_to_be(program: acs.Program) -> None:
    rt = testing.runtime_of(program)
    rt.engine.table.predict(False)  # which holds the bytes of epochs that it remembers
    x, y, flag = rt.zeros(8, "u4"), rt.zeros(8, "u4"), rt.zeros(1, "u4")

    def launches(many: int) -> None:
        for _ in range(many):
            program.add((8,), None, x, y, 1)
            program.add((8,), None, x, y, 1, when=flag)
        rt.finish()

    launches(3000)
    held: tuple[Any, ...] = x, y, flag
    gc.collect()
    runtime = sys.getrefcount(rt)
    before = [one.holders for one in held]
    spans = [sys.getrefcount(one.span) for one in held]
    tracemalloc.start()
    try:
        start, _ = tracemalloc.get_traced_memory()
        launches(20_000)
        gc.collect()
        end, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert end - start < 50_000, f"{end - start} bytes more"
    assert [one.holders for one in held] == before
    handles = [program.add((8,), None, x, y, 1, when=flag) for _ in range(100)]
    accesses = [handle.access for handle in handles]
    rt.finish()
    assert all(one.holders > many + 90 for one, many in zip(held, before, strict=True))
    del handles, accesses
    assert abs(sys.getrefcount(rt) - runtime) < 10  # threads of its own hold it now and then
    assert [one.holders for one in held] == before
    assert [sys.getrefcount(one.span) for one in held] == spans


def test_bytes_of_arrays_that_live_are_not_looked_up_again(program: acs.Program) -> None:
    """An index that is swept keeps them, for the next launch would make them again; not for longer
    than the arrays live, nor where a launch would have to look at many for others' sake."""
    rt = testing.runtime_of(program)
    rt.engine.table.predict(False)  # which holds the bytes of epochs that it remembers

    def launches(views: Iterable[acs.Array]) -> int:
        for number, view in enumerate(views):
            program.add((8,), None, view, view, 1)
            if number % 16 == 0:
                rt.finish()
        rt.finish()
        spans: int = rt.stats()["live_spans"]
        return spans

    matrix, line = rt.zeros((400, 8), "u4"), rt.zeros(2000, "u4")
    rows: list[acs.Array] = [matrix[number] for number in range(400)]
    first = launches(rows)  # behind the one that made the matrix, which touches all of them
    assert launches(rows) == launches(rows) >= max(first, 400)
    nodes = [row.holders for row in rows]
    assert launches(line[first : first + 8] for first in range(1990)) < 400 + 200
    assert [row.holders for row in rows] == nodes
    overlapping = [line[first : first + 8] for first in range(1990)]
    assert launches(overlapping) < 400 + 200
    del rows
    assert launches(matrix[number] for number in range(400)) < 800


def test_a_runtime_and_its_kernels_are_collected(device: cl.Device) -> None:
    rt = acs.Runtime(device, backend="device")
    prog = rt.build(SOURCE)
    rt.prebuild(prog.add)
    x = rt.zeros(8, "u4")
    for _ in range(5):
        handle = prog.add((8,), None, x, x, 1)
    rt.finish()
    gone = weakref.ref(rt), weakref.ref(prog.add)
    del rt, prog, x, handle
    until = time.monotonic() + 10  # a thread of the runtime's holds it a little longer
    while any(one() is not None for one in gone) and time.monotonic() < until:
        gc.collect()
    assert [one() for one in gone] == [None, None]


def test_the_core_learns_at_once_how_long_an_epoch_is_kept_open(program: acs.Program) -> None:
    rt = testing.runtime_of(program)
    backend = inside.Scheduler(rt).backend
    x, y = rt.zeros(8, "u4"), rt.zeros(8, "u4")
    made = 0
    while made < 3 or testing.launched(rt) % 32:  # no look comes from the number of launches
        program.add((8,), None, x, y, 1)
        made += 1
    rt.finish()
    program.add((8,), None, x, y, 1)  # to an epoch that somebody looks at from now on
    sent = backend.counters["epochs"]
    backend.keep_open(10)
    for _ in range(12):
        program.add((8,), None, x, y, 1)
    assert backend.counters["epochs"] == sent + 1
    assert y.get().tolist() == [made + 13] * 8


def test_a_launch_that_goes_to_an_epoch_after_all_ends_the_stay_on_lanes(device: cl.Device) -> None:
    """On `auto` a kernel has its lanes for a number of launches. One that follows tasks is decided
    about by Python: where it becomes a task itself, the next ones are made by the core as tasks."""
    with acs.Runtime(device, backend="auto") as rt:
        made = rt.build(SOURCE)
        if not hasattr(rt.engine.backend, "schedulers"):
            pytest.skip("no scheduler beside the lanes")
        rt.prebuild(made.add, made.put)
        x, y = rt.zeros(ROW, "u4"), rt.zeros(ROW, "u4")
        for kernel in (made.add, made.put):
            kernel.native.launched = 1 << 20
        for _ in range(2):
            for _ in range(20):
                made.add((ROW,), None, y, x, 1)
            made.put((8,), None, x, 1, 2, 3)
            rt.finish()
        core.native.plan_sizes(made.put, (ROW,), None, None, (), Lease(1 << 20))
        for _ in range(20):
            made.add((ROW,), None, y, x, 1)
        with inside.calls_by_python() as long_way:
            for _ in range(6):
                made.put((ROW,), None, x, 1, 2, 3)
        assert long_way == ["put"]  # the second one, which learns where it is
        assert rt.engine.backend.unsent
        assert x.get().tolist() == [1 + 2 * 3 + 3] * ROW
