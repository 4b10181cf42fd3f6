"""Schedulers are built behind the program's back: what is in them, what is refused and why, and
that nothing a compiler does reaches the results."""

from __future__ import annotations

import faulthandler
import gc
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import time_ns
from types import SimpleNamespace
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from conftest import Environment
from fuzz.threads import in_threads
from inside import Scheduler

import acs_cl as acs
from acs_cl.errors import BuildError
from acs_cl.host import isolated
from acs_cl.host.environment import variable
from acs_cl.kernel import origin_of
from acs_cl.opencl_c import cache, registers
from acs_cl.scheduler import builds as schedulers
from acs_cl.scheduler import compiling, homes, kernel_sets
from acs_cl.scheduler.builds import Schedulers
from acs_cl.scheduler.built import Facts
from acs_cl.scheduler.maker import Maker
from acs_cl.scheduler.policy import FEW_ON_CPU, HOT, SAMPLES

SOURCE = """
kernel void inc(global uint *x, uint a) { x[get_global_id(0)] += a; }
kernel void twice(global const uint *x, global uint *y)
{ size_t i = get_global_id(0); y[i] = 2 * x[i]; }
kernel void say(global uint *x) { x[get_global_id(0)] += 1; if (x[0] == 12345678) printf("no"); }
kernel void draw(global uint *x, write_only image2d_t i)
{ x[0] += 1; write_imageui(i, (int2)(0, 0), (uint4)(x[0])); }
kernel void turn(global uint *x)
{ local uint t[64]; uint l = get_local_id(0); t[l] = x[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE); x[get_global_id(0)] = t[get_local_size(0) - 1 - l]; }
kernel void swap(global uint *x, local uint *t)
{ uint l = get_local_id(0); t[l] = x[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE); x[get_global_id(0)] = t[get_local_size(0) - 1 - l] + 1; }
"""


ODD = """
kernel void pick(global uint *x, sampler_t s, read_only image2d_t i)
{ x[0] = read_imageui(i, s, (int2)(0, 0)).x; }
uint again(uint n) { return n ? again(n - 1) : 0; }
kernel void recurse(global uint *x) { x[0] = again(3); }
kernel void huge(global uint *x)
{ local uint t[HUGE]; t[get_local_id(0)] = 1; barrier(CLK_LOCAL_MEM_FENCE); x[0] = t[0]; }
typedef struct { uint v[300]; } more;
kernel void fat(global uint *x, more f) { x[0] = f.v[7]; }
"""


def many(count: int, at: int = 0) -> str:
    return "\n".join(
        f"kernel void k{i}(global uint *x) {{ x[get_global_id(0)] += {i + 1}; }}"
        for i in range(at, at + count)
    )


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """End the process rather than wait for ever."""
    faulthandler.dump_traceback_later(400, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def rt(device: cl.Device, scheduler: None) -> Iterator[acs.Runtime]:
    """A runtime on backend 'device'."""
    with acs.Runtime(device, backend="device") as runtime:
        yield runtime


def tasks(rt: acs.Runtime) -> int:
    return Scheduler(rt).tasks


def kernels_by_group(rt: acs.Runtime) -> dict[int, set[str]]:
    return Scheduler(rt).kernels_by_group()


# ---- what is asked for ---------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["inc", None, 3, "inc()", ("inc", 4), object()])
def test_prebuild_takes_kernels_and_nothing_else(rt: acs.Runtime, what: Any) -> None:
    with pytest.raises(acs.UsageError, match="prebuild takes kernels"):
        rt.prebuild(what)


def test_prebuild_takes_no_kernel_of_another_runtime(device: cl.Device, rt: acs.Runtime) -> None:
    with acs.Runtime(device) as other:
        program = other.build(SOURCE)
        with pytest.raises(acs.UsageError, match="this runtime"):
            rt.prebuild(program.inc)
        other.prebuild(program.inc)  # which it may not have a use for


def test_prebuild_without_kernels_and_twice_is_nothing_more(rt: acs.Runtime) -> None:
    scheduler = Scheduler(rt)
    rt.prebuild()
    program = rt.build(SOURCE)
    rt.prebuild(program.inc)
    rt.prebuild(program.inc, program.inc)
    assert scheduler.builds.builds == 1


def test_a_kernel_that_is_built_is_not_asked_for_again(rt: acs.Runtime) -> None:
    """A recording asks for all of its kernels and waits. It took 3 ms, as did `graph.update`."""
    builds, program = Scheduler(rt).builds, rt.build(SOURCE)
    kernels = program.inc, program.turn  # no group size for the second one: nothing to build yet
    rt.prebuild(*kernels)
    for kernel in kernels:
        builds.ask(*origin_of(rt.engine, kernel))
        assert not builds.has_work


def test_a_kernel_that_works_in_groups_needs_their_size(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    rt.prebuild(program.turn)
    assert kernels_by_group(rt) == {}
    x = rt.array(np.arange(8, dtype="u4"))
    rt.prebuild((program.turn, (4,)))
    program.turn((8,), (4,), x)
    assert tasks(rt) == 1
    assert x.get().tolist() == [3, 2, 1, 0, 7, 6, 5, 4]


# ---- what is refused -----------------------------------------------------------------------------


def test_what_cannot_be_translated_runs_on_lanes_and_says_why(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    rt.prebuild(program.say, program.draw, program.inc)
    scheduler = Scheduler(rt)
    x = rt.zeros(8, "u4")
    kind = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNSIGNED_INT32)
    image = cl.create_image(rt.context, cl.mem_flags.READ_WRITE, kind, shape=(1, 1))
    program.inc((8,), None, x, 1)
    program.say((8,), None, x)
    program.draw((1,), None, x, image)
    program.inc((8,), None, x, 1)
    assert x.get().tolist() == [4] + [3] * 7
    assert tasks(rt) == 2
    assert scheduler.reasons["prints"] == 1
    assert sum("a buffer or an image" in reason for reason in scheduler.reasons) == 1


def test_a_buffer_and_foreign_memory_go_to_lanes_and_say_why(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    rt.prebuild(program.inc, program.twice)
    x = rt.array(np.arange(8, dtype="u4"))
    host = np.zeros(8, np.uint32)
    buffer = cl.Buffer(rt.context, cl.mem_flags.READ_WRITE, 32)
    other = cl.csvm_empty(rt.context, 8, np.uint32)
    handles = [
        program.twice((8,), None, x, buffer),
        program.twice((8,), None, buffer, cl.SVM(other)),
        program.twice((8,), None, cl.SVM(other), x),
    ]
    why = ("a buffer or an image", "a buffer or an image", "memory of another library")
    for handle, reason in zip(handles, why, strict=True):
        assert reason in str(rt.explain(handle))
    assert x.get().tolist() == [8 * i for i in range(8)]
    assert tasks(rt) == 0
    assert host.sum() == 0


REFUSED: dict[str, tuple[Callable[[acs.Program, Any], Any], str]] = {
    "prints": (lambda p, x: p.say((8,), None, x), "prints"),
    "draws": (lambda p, x: p.draw((1,), None, x, image(x)), "a buffer or an image"),
    "samples": (
        lambda p, x: p.pick((1,), None, x, sampler(x), image(x)),
        "a buffer or an image",
    ),
    "recurses": (lambda p, x: p.recurse((1,), None, x), r"calls itself \(in again\)"),
    "has too much local memory": (
        lambda p, x: p.huge((4,), (4,), x),
        "its __local variables take [0-9,]+ bytes, which would halve the groups",
    ),
    "has too many arguments": (
        lambda p, x: p.fat((1,), None, x, np.zeros((), [("v", "u4", 300)])),
        "its arguments take 1,[0-9]{3} bytes",
    ),
    "was given no local size": (lambda p, x: p.turn((8,), None, x), "no local size was given"),
    "has groups of a new size": (lambda p, x: p.turn((32,), (32,), x), "is not built yet"),
    "is a fill": (lambda p, x: x.fill(1), "a fill runs on a lane"),
    "is a copy": (lambda p, x: x[:4].copy_from(x[4:8]), "a copy runs on a lane"),
    "is a write": (lambda p, x: x.set(np.zeros(64, "u4")), "a write runs on a lane"),
}


def image(x: acs.Array) -> cl.Image:
    kind = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNSIGNED_INT32)
    flags = cl.mem_flags.READ_WRITE
    return cl.create_image(x.home.context, flags, kind, shape=(1, 1))


def sampler(x: acs.Array) -> cl.Sampler:
    modes = cl.addressing_mode.CLAMP, cl.filter_mode.NEAREST
    return cl.Sampler(x.home.context, False, *modes)


def test_explain_gives_the_reason_of_each_refusal(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE + ODD, macros={"HUGE": int(rt.device.local_mem_size) // 4})
    alone = (program.say, program.draw, program.pick, program.recurse, program.fat, program.inc)
    rt.prebuild(*alone, (program.huge, (4,)), (program.turn, (4,)))
    by_host = {"is a fill", "is a copy", "is a write"} if rt.engine.store.is_seen else set()
    for name, (launch, why) in REFUSED.items():
        said = str(rt.explain(launch(program, rt.zeros(64, "u4"))))
        where = "on the host; " if name in by_host else f"on a lane: .*{why}"
        assert re.search(where, said), f"what {name}: {said}"
    x = rt.zeros(64, "u4")
    assert "on the host; " in str(rt.explain(rt.call(lambda values: None, writes=[x])))
    y = rt.zeros(64, "u4")  # nothing holds launches on it, so that they have a route
    assert "in the scheduler on the device; " in str(rt.explain(program.inc((8,), None, y, 1)))
    assert "in the scheduler on the device; " in str(rt.explain(program.turn((8,), (4,), y)))


def test_what_schedulers_take_of_the_device_is_told(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    rt.prebuild(program.inc, (program.turn, (4,)), (program.swap, (16,)))
    x = rt.zeros(64, "u4")
    program.inc((64,), None, x, 1)
    told = {one["group"]: one for one in rt.stats()["scheduler"]["schedulers"]}
    tiled = Scheduler(rt).builds.tiled_group
    kernels = {tiled: {"inc"}, 4: {"inc", "turn"}, 16: {"inc", "swap"}}
    assert {group: set(one["kernels"]) for group, one in told.items()} == kernels
    units = rt.device.max_compute_units
    for group, one in told.items():
        assert set(one) == set(Facts._fields)
        native = next(one.native for one in Scheduler(rt).built if one.facts.group == group)
        field = cl.kernel_work_group_info.LOCAL_MEM_SIZE
        assert one["local_bytes"] == native.get_work_group_info(field, rt.device) > 0
        assert one["registers"] is None or 0 < one["registers"] < 256
        assert units <= one["resident_groups"] <= 2048 * units
        assert one["build_s"] > 0


def test_more_kernels_than_a_scheduler_takes_have_a_second_one(rt: acs.Runtime) -> None:
    program = rt.build(many(20))
    rt.prebuild(*(getattr(program, f"k{i}") for i in range(20)))
    scheduler = Scheduler(rt)
    assert [len(one.bodies) for one in scheduler.built] == [kernel_sets.MOST_BODIES] * 2
    x = rt.zeros(100, "u4")
    for _ in range(3):
        for i in range(20):
            getattr(program, f"k{i}")((100,), None, x)
    assert (x.get() == 3 * 210).all()
    assert tasks(rt) == 3 * 20
    assert not any("kernel" in reason for reason in scheduler.reasons)


def test_kernels_launched_in_turn_come_to_be_in_one_scheduler(rt: acs.Runtime) -> None:
    """Four, of another program, are in a second one, and cut an epoch in each step."""
    kernels = {}
    for first, count in ((0, 16), (16, 4)):
        program = rt.build(many(count, first))
        kernels |= {f"k{i}": getattr(program, f"k{i}") for i in range(first, first + count)}
    rt.prebuild(*kernels.values())
    scheduler = Scheduler(rt)
    x = rt.zeros(100, "u4")
    used = sorted(["k0", "k1", *next(one.facts.kernels for one in scheduler.built[1:])])
    steps, cuts = 0, []
    while len(scheduler.built) < 3 and steps < 1000:
        for name in used:
            kernels[name]((100,), None, x)
        rt.finish()
        rt.prebuild()
        steps += 1
    assert [sorted(one.facts.kernels) for one in scheduler.built[2:]] == [used]
    for _ in range(6):
        for name in used:
            kernels[name]((100,), None, x)
        rt.finish()
        cuts.append(scheduler.counters["cuts"])
    assert cuts[1:] == cuts[1:2] * 5
    weights = {f"k{i}": i + 1 for i in range(20)}
    assert (x.get() == (steps + 6) * sum(weights[name] for name in used)).all()


def test_a_scheduler_that_takes_long_to_build_takes_no_more_kernels(
    rt: acs.Runtime,
) -> None:
    program, x = rt.build(many(3)), rt.zeros(8, "u4")
    with inside.limit("seconds of a build", 0.0):
        rt.prebuild(program.k0, program.k1)
        rt.prebuild(program.k2)
    assert [one.facts.kernels for one in Scheduler(rt).built] == [("k0", "k1"), ("k2",)]
    for i in range(3):
        getattr(program, f"k{i}")((8,), None, x)
    assert (x.get() == 6).all()
    assert tasks(rt) == 3


def test_what_another_process_has_compiled_is_compiled_once(
    rt: acs.Runtime, environment: Environment, tmp_path: Path
) -> None:
    """The program launches on while a build is under way; who waits for one has it made here."""
    if "Portable" not in rt.device.platform.name:
        pytest.skip("its driver lets others launch while it compiles")
    environment(ACS_CL_CACHE=str(tmp_path))
    text = many(1).replace("+= 1", f"+= {time_ns() & 0xFFFF}")
    kernels = [rt.build(text).k0, rt.build(many(1, 1)).k1]
    with inside.helpers() as apart:
        rt.prebuild(kernels[1])
    assert apart == []
    scheduler = Scheduler(rt)

    with inside.helpers() as apart:
        assert inside.built_beside(scheduler.builds, rt, *kernels) == [{"k0", "k1"}]
        watched = bool(variable("ACS_CL_WATCHDOG"))
        other = Schedulers(Maker(rt.context, rt.device, rt.plan.tier, watched=watched))
        assert inside.built_beside(other, rt, *kernels) == [{"k0", "k1"}]
        other.close()
    assert apart == [("translate", True), ("compile", True)]
    x = rt.zeros(8, "u4")
    kernels[0]((8,), None, x)
    rt.finish()
    assert tasks(rt) == 1


def see(builds: Schedulers, rt: acs.Runtime, *kernels: acs.Kernel) -> None:
    """Have kernels launched that are not hot."""
    for kernel in kernels:
        builds.launched.see(origin_of(rt.engine, kernel)[0])


@pytest.fixture
def another(rt: acs.Runtime) -> Iterator[Callable[[], Schedulers]]:
    """Make the schedulers of another process that runs the same program."""
    made: list[Schedulers] = []

    def make() -> Schedulers:
        watched = bool(variable("ACS_CL_WATCHDOG"))
        made.append(Schedulers(Maker(rt.context, rt.device, rt.plan.tier, watched=watched)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_kernels_that_were_together_come_together_when_the_program_runs_again(
    rt: acs.Runtime, own_cache: Path, another: Callable[[], Schedulers]
) -> None:
    first, second = rt.build(many(3)), rt.build(many(2, 3))
    before, again = another(), another()
    for kernels in ([first.k0], [first.k1], [second.k3]):
        see(before, rt, *kernels, second.k4)  # the last one is launched, and never hot
        found = inside.built_beside(before, rt, *kernels)
    assert found == [{"k0", "k1", "k3"}]
    see(again, rt, second.k4, first.k1, second.k3)
    with inside.helpers() as apart:
        assert inside.built_beside(again, rt, first.k1) == [{"k0", "k1", "k3"}]
        assert inside.built_beside(again, rt, first.k0, second.k3) == [{"k0", "k1", "k3"}]
    assert apart == []  # nothing was translated or compiled anew
    assert again.builds == 1


def test_a_set_of_another_use_of_a_source_does_not_count(
    rt: acs.Runtime, own_cache: Path, another: Callable[[], Schedulers]
) -> None:
    program = rt.build(many(6))
    one, other, few = another(), another(), another()
    see(one, rt, program.k0, program.k1, program.k2, program.k3)
    assert inside.built_beside(one, rt, program.k0, program.k1, program.k2) == [{"k0", "k1", "k2"}]
    see(other, rt, program.k0, program.k4)  # k4 was not launched with that set
    assert inside.built_beside(other, rt, program.k0) == [{"k0"}]
    assert inside.built_beside(other, rt, program.k4) == [{"k0", "k4"}]
    assert inside.built_beside(few, rt, program.k1) == [{"k1"}]  # less than half of that set
    see(again := another(), rt, program.k4, program.k0)
    assert inside.built_beside(again, rt, program.k0) == [{"k0", "k4"}]
    see(again := another(), rt, program.k3, program.k2)
    assert inside.built_beside(again, rt, program.k1) == [{"k0", "k1", "k2"}]


def test_what_somebody_waits_for_is_built_as_it_was_asked_for(
    rt: acs.Runtime, own_cache: Path, another: Callable[[], Schedulers]
) -> None:
    program = rt.build(many(3))
    rt.prebuild(program.k0, program.k1)
    see(again := another(), rt, program.k0, program.k1)
    assert inside.built_beside(again, rt, program.k1) == [{"k1"}]
    see(again := another(), rt, program.k1, program.k2)
    assert inside.built_beside(again, rt, program.k1, program.k2) == [{"k1", "k2"}]
    with acs.Runtime(rt.device, backend="device") as other:
        other.prebuild(other.build(many(3)).k1)
        assert [set(one.facts.kernels) for one in Scheduler(other).built] == [{"k1"}]


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"sets": 3}',
        '{"sets": [[["a", 1, 0]]]}',
        '{"sets": [[["a", "k0"]]]}',
        '{"sets": [3]}',
    ],
)
def test_a_set_on_disk_that_makes_no_sense_counts_as_none(
    rt: acs.Runtime,
    own_cache: Path,
    another: Callable[[], Schedulers],
    text: str,
) -> None:
    program = rt.build(many(2))
    assert inside.built_beside(another(), rt, program.k0, program.k1) == [{"k0", "k1"}]
    see(again := another(), rt, program.k0, program.k1)
    names = [path.stem for path in own_cache.rglob("*.json") if '"sets"' in path.read_text()]
    assert names
    for name in names:
        cache.store(name, json.loads(text))
    assert inside.built_beside(again, rt, program.k0) == [{"k0"}]


def test_kernels_asked_for_during_a_translation_are_in_the_build_behind_it(
    rt: acs.Runtime, own_cache: Path, another: Callable[[], Schedulers]
) -> None:
    program, builds = rt.build(many(2)), another()
    with inside.during_translations(lambda: builds.ask(*origin_of(rt.engine, program.k1))):
        assert inside.built_beside(builds, rt, program.k0) == [{"k0", "k1"}]
    assert builds.builds == 1


def test_guests_make_room_for_kernels_that_are_at_home(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE + many(8))
    rt.prebuild(*(getattr(program, f"k{i}") for i in range(8)))
    rt.prebuild((program.turn, (4,)), (program.swap, (4,)))
    x = rt.array(np.arange(8, dtype="u4"))
    program.turn((8,), (4,), x)
    program.swap((8,), (4,), x, cl.LocalMemory(16))
    program.k7((8,), None, x)
    assert x.get().tolist() == [i + 9 for i in range(8)]
    assert tasks(rt) == 3
    assert kernels_by_group(rt)[4] >= {"turn", "swap"}


def test_sources_with_the_same_names_share_a_scheduler(rt: acs.Runtime) -> None:
    text = """#define A {0}
    typedef struct {{ uint v; }} pair;
    constant uint table[2] = {{ {0}, {0} }};
    uint f(pair p) {{ return p.v + A + table[1]; }}
    kernel void k(global uint *x)
    {{ pair p = {{ x[get_global_id(0)] }}; x[get_global_id(0)] = f(p); }}
    """
    programs = [rt.build(text.format(n)) for n in (1, 10, 100)]
    rt.prebuild(*(program.k for program in programs))
    x = rt.zeros(4, "u4")
    for program in programs * 2:
        program.k((4,), None, x)
    assert x.get().tolist() == [2 * 2 * 111] * 4
    assert tasks(rt) == 6


def test_options_of_code_generation_have_schedulers_of_their_own(rt: acs.Runtime) -> None:
    text = "kernel void k(global uint *x) { x[get_global_id(0)] += A; }"
    programs = [
        rt.build(text, options) for options in (["-DA=1"], ["-DA=2"], ["-DA=4", "-cl-mad-enable"])
    ]
    rt.prebuild(*(program.k for program in programs))
    scheduler = Scheduler(rt)
    assert scheduler.builds.builds == 2
    x = rt.zeros(4, "u4")
    for program in programs:
        program.k((4,), None, x)
    assert x.get().tolist() == [7] * 4
    assert tasks(rt) == 3


# ---- local memory --------------------------------------------------------------------------------


def test_more_local_memory_than_there_is_room_for_builds_a_larger_scheduler(
    rt: acs.Runtime,
) -> None:
    program = rt.build(SOURCE)
    rt.prebuild((program.swap, (4,)))
    scheduler = Scheduler(rt)
    x = rt.array(np.arange(8, dtype="u4"))
    program.swap((8,), (4,), x, cl.LocalMemory(16))
    assert tasks(rt) == 1
    program.swap((8,), (4,), x, cl.LocalMemory(kernel_sets.ARENA_BYTES + 1))
    assert tasks(rt) == 1
    scheduler.builds.wait()
    program.swap((8,), (4,), x, cl.LocalMemory(kernel_sets.ARENA_BYTES + 1))
    assert tasks(rt) == 2
    program.swap((8,), (4,), x, cl.LocalMemory(int(rt.device.local_mem_size) - 16))
    assert tasks(rt) == 2
    assert x.get().tolist() == [i + 4 for i in range(8)]
    assert sum("halve" in reason for reason in scheduler.reasons) == 1
    program.swap((8,), (4,), x, cl.LocalMemory(16))
    assert tasks(rt) == 3


# ---- builds that fail ----------------------------------------------------------------------------


def test_a_translator_that_breaks_leaves_the_kernel_to_lanes_and_builds_go_on(
    rt: acs.Runtime,
) -> None:
    program = rt.build(SOURCE)
    x = rt.zeros(8, "u4")

    def broken(*arguments: Any) -> Any:
        raise ValueError("on purpose")

    with inside.build_step("translation", lambda _: broken):
        rt.prebuild(program.inc)
    program.inc((8,), None, x, 1)
    assert x.get().tolist() == [1] * 8
    scheduler = Scheduler(rt)
    assert sum("on purpose" in reason for reason in scheduler.reasons) == 1
    rt.prebuild(program.say, rt.build(many(1)).k0)
    assert kernels_by_group(rt)


@pytest.mark.parametrize(
    "error", [BuildError("the program does not build:\non purpose", "", None), cl.RuntimeError("x")]
)
def test_the_kernel_that_a_compiler_cannot_take_is_left_out(
    rt: acs.Runtime, error: Exception
) -> None:
    kernels = [getattr(rt.build(many(1, i)), f"k{i}") for i in range(3)]

    def refuse(source: str) -> None:
        if "acs_entry_k1" in source:
            raise error

    x = rt.zeros(8, "u4")
    with inside.new_process(), inside.compiling(refuse):
        for kernel in kernels:
            rt.prebuild(kernel)
    for kernel in kernels:
        kernel((8,), None, x)
    assert x.get().tolist() == [6] * 8
    scheduler = Scheduler(rt)
    assert sum("does not build" in reason for reason in scheduler.reasons) == 1
    assert tasks(rt) == 2


def test_a_fault_of_ours_while_building_keeps_nobody_waiting(
    rt: acs.Runtime,
) -> None:
    program, x = rt.build(SOURCE + many(2)), rt.zeros(64, "u4")
    with inside.build_step("renewal", lambda _: lambda *_: 1 / 0):
        rt.prebuild(program.k0)
        handle = program.k0((64,), None, x)
        assert "ZeroDivisionError" in str(rt.explain(handle))
    rt.prebuild(program.k1)
    program.k1((64,), None, x)
    assert (x.get() == 1 + 2).all()
    assert tasks(rt) == 1


@pytest.mark.parametrize("is_enough", [False, True])
def test_a_kernel_that_halves_the_groups_that_run_at_once_stays_on_lanes(
    rt: acs.Runtime, is_enough: bool
) -> None:
    """It came with others, in the middle, and they are not made to pay for it. Where those that are
    left are enough it may come."""
    enough = schedulers.ENOUGH_GROUPS * int(rt.device.max_compute_units)

    def made(real: Callable[..., Any]) -> Callable[..., Any]:
        def limits(self: Schedulers, group: int, registers: Any, there: Any) -> Any:
            heavy = any(origin[2] == "k1" for origin in there.functions)
            groups = enough - (not is_enough) if heavy else 4 * enough
            return real(self, group, registers, there)._replace(groups=groups)

        return limits

    program, x = rt.build(SOURCE + many(4)), rt.zeros(64, "u4")
    with inside.build_step("limits", made):
        rt.prebuild(program.inc)
        rt.prebuild(program.k0, program.k1, program.k2)
    alone = set() if is_enough else {"k1"}
    (together,) = kernels_by_group(rt).values()
    assert together == {"inc", "k0", "k1", "k2"} - alone
    for _ in range(2):
        for name in ("inc", "k0", "k1", "k2"):
            arguments = (x, 5) if name == "inc" else (x,)
            handle = getattr(program, name)((64,), None, *arguments)
            where = str(rt.explain(handle))
            assert ("half of them at most" in where) == (name in alone), where
    assert (x.get() == 2 * (5 + 1 + 2 + 3)).all()
    assert tasks(rt) == 8 - 2 * len(alone)
    with inside.build_step("limits", made):
        rt.prebuild(program.k1, program.k3)
    (together,) = kernels_by_group(rt).values()
    assert together == {"inc", "k0", "k1", "k2", "k3"} - alone


def test_a_guest_that_does_not_build_stays_where_it_is_at_home(
    rt: acs.Runtime,
) -> None:
    guest, host = rt.build(many(1)), rt.build(SOURCE)

    def refuse(source: str) -> None:
        if "acs_entry_k0" in source and "acs_entry_turn" in source:
            raise BuildError("the program does not build:\non purpose", "", None)

    with inside.new_process(), inside.compiling(refuse):
        rt.prebuild((host.turn, (4,)))
        rt.prebuild(guest.k0)
    x = rt.array(np.arange(8, dtype="u4"))
    host.turn((8,), (4,), x)
    guest.k0((8,), None, x)
    assert x.get().tolist() == [4, 3, 2, 1, 8, 7, 6, 5]
    assert tasks(rt) == 2


# ---- while it goes on ----------------------------------------------------------------------------


def test_results_are_right_before_during_and_after_a_build(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE + many(4))
    x = rt.array(np.arange(64, dtype="u4"))
    y = rt.zeros(64, "u4")
    host, doubled = np.arange(64, dtype="u4"), np.zeros(64, "u4")
    # what somebody waits for is built in this process, however busy the machine is with others
    kernels = program.inc, program.twice, (program.turn, (4,))
    waits = threading.Thread(target=rt.prebuild, args=kernels)
    step = inside = 0
    while inside < 300:
        before = tasks(rt)
        if step == 30:
            waits.start()
        elif step == 500:
            waits.join()
        assert step < 2000, "what is built is not used"
        program.inc((64,), None, x, step)
        host += np.uint32(step)
        getattr(program, f"k{step % 4}")((64,), None, x)
        host += np.uint32(step % 4 + 1)
        program.turn((64,), (4,), x)
        host = host.reshape(-1, 4)[:, ::-1].reshape(-1).copy()
        program.twice((64,), None, x, y)
        doubled[:] = 2 * host
        if step % 23 == 0:
            assert (y.get() == doubled).all(), step
        step += 1
        inside += tasks(rt) - before
    waits.join()
    assert (x.get() == host).all()


@pytest.mark.parametrize("backend", ["device", "auto"])
@pytest.mark.parametrize("stuck", ["translation", "build"])
def test_no_launch_waits_for_a_build_however_long_it_takes(
    device: cl.Device, backend: str, stuck: str
) -> None:
    """The compiler is held until all is launched, read and asked: a call that waited for it would
    never come back."""
    begun, go = threading.Event(), threading.Event()

    def made(real: Callable[..., Any]) -> Callable[..., Any]:
        def held(*arguments: Any) -> Any:
            begun.set()
            assert go.wait(90)
            return real(*arguments)

        return held

    with inside.build_step(stuck, made), acs.Runtime(device, backend=backend) as rt:
        try:
            Scheduler(rt)
        except acs.UsageError as error:
            pytest.skip(str(error))
        program = rt.build(SOURCE + many(4))
        x, y = rt.zeros(64, "u4"), rt.zeros(64, "u4")
        try:
            for step in range(200):
                program.inc((64,), None, x, step)
                getattr(program, f"k{step % 4}")((64,), None, y)
            assert begun.wait(60), "no build was begun"
            for step in range(200):
                handle = program.inc((64,), None, x, step)
                getattr(program, f"k{step % 4}")((64,), None, y)
            assert (x.get() == 2 * 19900).all()
            assert (y.get() == 100 * (1 + 2 + 3 + 4)).all()
            handle.wait()
            assert "not built yet" in str(rt.explain(handle))
            assert tasks(rt) == 0
            rt.finish()
        finally:
            go.set()
        rt.prebuild(program.inc)
        assert rt.stats()["scheduler"]["builds"] >= 1


def test_the_programs_turns_of_the_interpreter_are_left_alone_while_a_scheduler_is_built(
    rt: acs.Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_by_us: list[float] = []
    monkeypatch.setattr(sys, "setswitchinterval", set_by_us.append)
    rt.prebuild(rt.build(many(1, 0)).k0)
    assert rt.stats()["scheduler"]["builds"] >= 1
    assert set_by_us == []


def test_threads_that_launch_while_schedulers_are_built_get_right_results(rt: acs.Runtime) -> None:
    def work(index: int) -> None:
        program = rt.build(many(2, 10 * index) + SOURCE)
        kernels = [getattr(program, f"k{10 * index + i}") for i in range(2)]
        x = rt.zeros(32, "u4")
        for step in range(200):
            kernels[step % 2]((32,), None, x)
            program.inc((32,), None, x, step)
            if step == 100:
                rt.prebuild(*kernels)
        assert (x.get() == 100 * (20 * index + 3) + 19900).all()

    in_threads(work, 3)


def test_a_runtime_that_is_dropped_while_building_goes_away(device: cl.Device) -> None:
    rt = acs.Runtime(device, backend="device")
    program = rt.build(SOURCE)
    x = rt.zeros(8, "u4")
    program.inc((8,), None, x, 1)
    assert x.get().tolist() == [1] * 8
    del rt, program, x
    gc.collect()


LEAVING = {
    "while a scheduler is built": "p.inc((8,), None, x, 1)",
    "in the middle of a build": "p.turn((8,), (4,), x); p.inc((8,), None, x, 1); x.get()\n"
    "while not Scheduler(rt).is_building: pass",
    "after closing in the middle of a build": "p.turn((8,), (8,), x); x.get()\n"
    "while not Scheduler(rt).is_building: pass\nrt.close()",
    "with an open epoch": "rt.prebuild(p.inc); p.inc((8,), None, x, 1)",
    "with an epoch sent": "rt.prebuild(p.inc)\n"
    "for i in range(500): p.inc((8,), None, x, 1)\nrt.flush()",
}


@pytest.mark.parametrize("when", LEAVING)
def test_the_interpreter_leaves_in_good_order(device: cl.Device, when: str) -> None:
    salt = time_ns() & 0x7FFFFFFF  # or the driver has it built already
    source = SOURCE.replace("get_local_id(0);", f"get_local_id(0) ^ ({salt} % 1);")
    print(f"salt {salt}")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import acs_cl as acs\nfrom acs_cl.testing import Scheduler\n"
            f"rt = acs.Runtime(backend='device')\np = rt.build({source!r})\n"
            f"x = rt.zeros(8, 'u4')\n{LEAVING[when]}\nprint('left')\n",
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "left\n"), done.stderr
    assert "Traceback" not in done.stderr


LOG = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_90'
ptxas info    : Function properties for one
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 72 registers, 400 bytes cmem[0]
ptxas info    : Compiling entry function 'two' for 'sm_90'
ptxas info    : Used 8 registers, 328 bytes cmem[0]
"""


def test_registers_are_known_although_the_driver_has_the_program_in_its_cache(
    device: cl.Device, monkeypatch: pytest.MonkeyPatch, environment: Environment, tmp_path: Path
) -> None:
    """NVIDIA's driver tells them when it compiles, and says nothing when it need not."""
    environment(ACS_CL_CACHE=str(tmp_path))
    compiled: set[str] = set()
    builds = []

    class Program:
        def __init__(self, log: str) -> None:
            self.log = log

        def get_build_info(self, device: Any, what: Any) -> str:
            return self.log

    def fake_build(context: Any, device: Any, source: str, words: Any) -> Program:
        log = "" if source in compiled else LOG
        if mark := re.search(r"kernel void (acs_mark_\w+)", source):
            told = f"info: Compiling entry function '{mark[1]}'\ninfo: Used 4 registers\n"
            log = told + LOG
        compiled.add(source)
        builds.append(source)
        if source == "wrong":
            raise BuildError("no", "", None)
        return Program(log)

    monkeypatch.setattr(registers, "build", fake_build)

    def of(source: str) -> int | None:
        return compiling.build_told(None, device, source, [], "ptx")[1]

    assert of("a") == 72  # compiled: told
    assert of("a") == 72  # from the driver's cache: remembered
    assert builds == ["a", "a"]
    compiled.add("b")
    assert of("b") == 72  # never heard of: compiled again
    assert builds[2] == "b"
    assert builds[3].startswith("b\nkernel void acs_mark_")
    assert of("b") == 72
    assert len(builds) == 5
    ask: Any = registers.of_program
    there = SimpleNamespace(extensions="cl_nv_compiler_options", name="it", driver_version="1")
    assert ask(None, there, "c", ("-DN=1",)) == {"one": 72, "two": 8}
    assert ask(None, there, "wrong", ()) == {}
    there.extensions = "cl_khr_fp64"
    assert ask(None, there, "c", ()) == {}
    assert builds[5:] == ["c", "wrong"]


@pytest.mark.parametrize(
    "change", [("executable", ""), ("executable", None), ("frozen", True)], ids=str
)
def test_a_program_that_is_its_own_executable_is_not_started_again(
    monkeypatch: pytest.MonkeyPatch, change: tuple[str, Any]
) -> None:
    monkeypatch.setattr(sys, *change, raising=False)
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("it was"))
    assert not isolated.Helper("acs_cl.scheduler.apart", isolated.POLITE).ask({})


def test_nothing_is_built_for_a_program_that_waits_for_each_launch(device: cl.Device) -> None:
    with acs.Runtime(device) as runtime:
        kernel = runtime.build("kernel void up(global int *x) { x[get_global_id(0)]++; }").up
        x = runtime.zeros(4, "i4")
        for _ in range(4 * HOT):
            kernel((4,), None, x)
            x.get()
        report = runtime.stats()
        assert "its scheduler is not built yet" not in report["scheduler"]["on_lanes"]
        for _ in range(8 * HOT):
            kernel((4,), None, x)
        runtime.prebuild()
        assert runtime.stats()["scheduler"]["builds"] == 1
        assert x.get().tolist() == [12 * HOT] * 4


LONG = """
kernel void work(global float *x, int turns)
{ float v = x[0]; for (int t = 0; t < turns; ++t) v = v * 0.999f + 0.5f; x[0] = v; }
"""


def test_nothing_is_built_for_a_kernel_that_takes_long(device: cl.Device) -> None:
    if not device.type & cl.device_type.CPU:
        pytest.skip("there the host is what limits, not the time of a kernel")
    with acs.Runtime(device) as runtime:
        kernel = runtime.build(LONG).work
        arrays = [runtime.zeros(1, "f4") for _ in range(2 * FEW_ON_CPU)]
        for _ in range(SAMPLES):
            kernel((1,), None, arrays[0], 1 << 16).wait()
        for _ in range(4):
            for x in arrays:
                kernel((1,), None, x, 1 << 16)
        runtime.prebuild()
        report = runtime.stats()["scheduler"]
        assert report["builds"] == 0
        assert any(why.startswith("it takes") for why in report["on_lanes"])
        assert "its scheduler is not built yet" not in report["on_lanes"]
        before = runtime.engine.table.by_core
        for _ in range(4):
            for x in arrays:
                kernel((1,), None, x, 1 << 16)
        assert runtime.engine.table.by_core - before == 4 * len(arrays), "nobody asks again"


def test_a_kernel_that_stays_on_lanes_is_thought_of_less_and_less(device: cl.Device) -> None:
    with acs.Runtime(device) as runtime:
        kernel = runtime.build("kernel void up(global int *x) { x[get_global_id(0)]++; }").up
        x = runtime.zeros(4, "i4")
        before, by_core = runtime.stats()["launches"], runtime.engine.table.by_core
        for _ in range(64 * HOT):
            kernel((4,), None, x)
            x.get()
        by_python = runtime.stats()["launches"] - before - (runtime.engine.table.by_core - by_core)
        assert by_python <= HOT, by_python


def test_nothing_is_built_for_a_few_short_launches_among_long_ones(device: cl.Device) -> None:
    if not device.type & cl.device_type.CPU:
        pytest.skip("there a scheduler loses nothing by tasks that take long")
    with acs.Runtime(device) as runtime:
        program = runtime.build("""
        kernel void brief(global int *x) { x[get_global_id(0)]++; }
        kernel void lengthy(global float *y) {
            float at = y[get_global_id(0)];
            for (int i = 0; i < 20000; i++) at = at * 0.9f + 1.0f;
            y[get_global_id(0)] = at;
        }""")
        x, y = runtime.zeros(4, "i4"), runtime.zeros((4, 4), "f4")
        for _ in range(HOT):  # its time is known when it has been launched often
            program.lengthy((4,), None, y[0])
            runtime.finish()
        for _ in range(2 * HOT):
            for i in range(36):
                program.lengthy((4,), None, y[i % 4])
            for _ in range(4):
                program.brief((4,), None, x)
            runtime.finish()
        found = runtime.stats()["scheduler"]
        assert "its scheduler is not built yet" not in found["on_lanes"]
        assert homes.FEW_COME in found["on_lanes"]
        assert x.get().tolist() == [8 * HOT] * 4
