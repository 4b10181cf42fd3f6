"""Spawned items, on every backend: what they write, in trees too, and what a launch touches.

The oracle is the plain loop that the macro stands for, and NumPy.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from random_trees import ALWAYS, TINY, WAYS, random_trees, tree
from random_trees import SOURCE as TREES

import acs_cl as acs
from acs_cl.benchmarks.workloads import spawning
from acs_cl.errors import BuildError
from acs_cl.opencl_c.kernel_files import with_spawn_header
from acs_cl.scheduler.children import Room

FUZZ = int(os.environ.get("ACS_CL_FUZZ") or 0)
pytestmark = pytest.mark.rotate("make", 3)

SOURCE = (
    TREES
    + """
void visit(uint item, global const int *to, global int *seen, uint first)
{ atomic_inc(&seen[to[first + item]]); }
kernel void expand(global const int *row, global const int *to, global int *seen) {
    const uint from = get_global_id(0), first = row[from];
    ACS_SPAWN(visit, row[from + 1] - first, to, seen, first);
}
kernel void shrink(global uint *rest, global uint *go) { *rest -= 1; *go = *rest > 0; }
"""
)


def graph(vertices: int, seed: int) -> tuple[Any, Any]:
    """Vertices with up to 40 neighbours: where each row begins, and the neighbours."""
    rng = np.random.default_rng(seed)
    row = np.concatenate(([0], rng.integers(0, 40, vertices).cumsum())).astype("i4")
    return row, rng.integers(0, vertices, row[-1]).astype("i4")


@pytest.fixture
def prog(rt: acs.Runtime) -> acs.Program:
    built = rt.build(SOURCE)
    rt.prebuild(built.expand, built.rows, built.tree, built.shrink)
    return built


def test_items_are_run_once_each(rt: acs.Runtime, prog: acs.Program) -> None:
    row, to = graph(300, 1)
    seen = rt.zeros(300, "i4")
    prog.expand((300,), None, rt.array(row), rt.array(to), seen)
    assert seen.get().tolist() == np.bincount(to, minlength=300).tolist()


def test_launches_behind_see_what_items_wrote(rt: acs.Runtime, prog: acs.Program) -> None:
    out = rt.zeros((50, 16), "u4")
    for _ in range(5):
        prog.rows((50,), None, out, 16)
    at, item = np.indices((50, 16))
    assert (out.get() == 5 * (at + item + 3)).all()


@pytest.mark.parametrize(("items", "wide", "n"), [(1, 1, 1), (9, 2, 30), (500, 3, 4)])
def test_items_spawn_items(
    rt: acs.Runtime, prog: acs.Program, items: int, wide: int, n: int
) -> None:
    sums = rt.zeros(7, "u4")
    prog.tree((items,), None, sums, wide, n)
    assert sums.get().tolist() == tree(items, wide, n).tolist()


def test_a_launch_touches_what_its_items_touch(rt: acs.Runtime, prog: acs.Program) -> None:
    out = rt.zeros((64, 16), "u4")
    touched = prog.rows((8,), None, out, 16).access
    assert [(span.start, span.end) for span in touched.writes] == [(0, 8 * 64)]


def test_the_header_takes_one_line() -> None:
    source = '// one\n  # include "acs_spawn.h" // two\nint three;\n'
    given = with_spawn_header(source).splitlines()
    assert len(given) == 3
    assert given[1].startswith("#define ACS_SPAWN(")
    assert (given[0], given[2]) == ("// one", "int three;")


def test_a_fault_of_the_program_is_told_with_its_line(rt: acs.Runtime) -> None:
    with pytest.raises(acs.AcsError, match=r"line 3: kernel void k.*\bwrong\b"):
        rt.build("#include <acs_spawn.h>\n\nkernel void k(global int *x) { x[0] = wrong; }\n")


# ---- as tasks ------------------------------------------------------------------------------------


@pytest.fixture
def made(device: Any) -> Any:
    """A maker of runtimes on the scheduler, with their programs."""
    runtimes = []

    def make(spawn: Any, **options: Any) -> tuple[acs.Runtime, acs.Program]:
        rt = acs.Runtime(device, backend="device", spawn=spawn, **options)
        runtimes.append(rt)
        prog = rt.build(SOURCE)
        rt.prebuild(prog.expand, prog.rows, prog.tree, prog.shrink)
        return rt, prog

    yield make
    for rt in runtimes:
        rt.close()


def children(rt: acs.Runtime) -> dict[str, int]:
    found: dict[str, int] = rt.stats()["scheduler"]["children"]
    return {name: many for name, many in found.items() if many}


@pytest.mark.parametrize(("spawn", "options", "settings"), WAYS, ids=str)
def test_random_trees_are_like_their_loops(
    made: Any, spawn: Any, options: dict[str, Any], settings: dict[str, Any]
) -> None:
    rt, prog = made(spawn, **options)
    backend = rt.engine.backend
    backend.settings = backend.settings._replace(**settings)
    for seed in range(FUZZ or 6):
        random_trees(rt, prog, seed)
    found = children(rt)
    if spawn is TINY:
        assert found["spawned"]
        assert found["kept"]
    elif spawn.controller == "always" and spawn.threshold != "auto":
        assert found["spawned"]


def test_a_group_that_has_nothing_to_do_gets_what_another_one_keeps(made: Any, device: Any) -> None:
    n = 200_000
    shared, alone = made("hungry"), made("hungry", groups=1)
    for rt, prog in (shared, alone):
        out = rt.zeros(n, "u4")
        prog.rows((1,), None, out, n)
        assert (out.get() == np.arange(n) + 3).all()
    assert children(alone[0]) == {"kept": n, "all_busy": n}
    found = shared[0].stats()["scheduler"]["children"]
    assert found["spawned"] + found["kept"] == n
    assert found["spawned"] > n / 2 or device.max_compute_units == 1


def test_a_launch_says_what_becomes_of_its_items(made: Any, tmp_path: Path) -> None:
    rt, prog = made(ALWAYS)
    out = rt.zeros((50, 16), "u4")

    def run(spawn: Any) -> tuple[dict[str, int], str]:
        before = Counter(children(rt))
        handle = prog.rows((50,), None, out, 16, spawn=spawn)
        rt.finish()
        return dict(Counter(children(rt)) - before), str(rt.explain(handle))

    assert run("never")[0] == {}
    found, why = run(acs.Spawn("always", threshold=1, at_most=1))
    assert found == {"kept": 800, "too_many": 800}
    assert "0 became children, its groups ran 800 themselves (800 since a launch had as man" in why
    found, why = run(None)
    assert found == {"spawned": 800}
    assert "of items that its epoch spawned, 800 became children;" in why
    assert run(acs.Spawn("always", threshold=17))[0] == {}
    with rt.record() as graph:
        prog.rows((50,), None, out, 16, spawn="never")
        prog.rows((50,), None, out, 16, spawn=acs.Spawn("hungry", 1, 64))
    graph.save(tmp_path / "graph", out=out)
    before = children(rt)
    for one in (graph, rt.load(tmp_path / "graph", out=out)):
        one.replay()
        rt.finish()
        before, new = children(rt), Counter(children(rt)) - Counter(before)
        assert new["spawned"] + new["kept"] == 800
    with pytest.raises(acs.UsageError, match="unknown spawn 'seldom'"):
        prog.rows((50,), None, out, 16, spawn="seldom")


def test_a_function_is_learned_and_the_published_controller_begins_cold(made: Any) -> None:
    n = 40_000
    for spawn in (acs.Spawn("ccqs", 1), acs.Spawn("always")):
        rt, prog = made(spawn, groups=1)
        out = rt.zeros((2, n), "u4")
        flat = out.reshape(2 * n)
        prog.rows((1,), None, flat, 16)
        rt.finish()
        first = children(rt)
        for _ in range(20):
            prog.rows((1,), None, flat, n)
        assert flat.get()[16:n].tolist() == (20 * (np.arange(16, n) + 3)).tolist()
        found = children(rt)
        assert first == {"spawned": 16}  # while nothing is known, a child is made of any number
        if spawn.controller == "ccqs":
            assert found["spawned"] + found.get("slower", 0) == 20 * n + 16
        else:
            assert n <= found["spawned"] <= 20 * n + 16


@pytest.mark.parametrize("spawn", [ALWAYS, TINY], ids=str)
def test_replays_and_loops_spawn_again(made: Any, spawn: Any) -> None:
    rt, prog = made(spawn)
    sums, go = rt.zeros(7, "u4"), rt.array([1], "u4")
    with rt.record() as graph:
        prog.tree((9,), None, sums, 3, 6)
    assert [proof.faults for proof in graph.verify().proofs] == [()]
    for _ in range(5):
        graph.replay()
    wanted = tree(9, 3, 6).astype(np.uint64)
    assert sums.get().tolist() == (5 * wanted).tolist()
    rest = rt.array([20], "u4")
    with rt.record() as step:
        prog.tree((9,), None, sums, 3, 6)
        prog.shrink((1,), None, rest, go)
    handle = step.replay(while_=go, at_most=100)
    assert (handle.rounds, "the device itself reads" in str(handle.explain())) == (20, True)
    assert sums.get().tolist() == (25 * wanted).tolist()
    assert children(rt)["spawned"]


def test_programs_of_uneven_size_are_like_numpy(made: Any) -> None:
    rt, _ = made(Room(ALWAYS, slots=200))
    prog = spawning.build(rt)
    for make, sizes, _ in spawning.UNEVEN.values():
        program = make(rt, prog, sizes.tiny)
        for _ in range(2):
            program.launch()
        program.check()
    found = children(rt)
    assert min(found.values()) > 0
    built = rt.stats()["scheduler"]["schedulers"]
    having = [one["loops"] for one in built if "queens" in one["kernels"]]  # at home, or as a guest
    assert {*having} == {()}


@pytest.mark.parametrize(
    ("spawn", "said"),
    [
        ("often", "unknown spawn 'often'; there are: never, always, hungry, ccqs"),
        (acs.Spawn("always", 0), "expected as threshold 'auto' or 1 to 1,048,576 items"),
        (acs.Spawn("always", "some"), "expected as threshold"),
        (acs.Spawn(at_most=0), "expected 1 to 1,073,741,824 tiles at most"),
        (3, "unknown spawn 3"),
    ],
    ids=str,
)
def test_unknown_ways_to_spawn_are_refused(spawn: Any, said: str) -> None:
    with pytest.raises(acs.UsageError, match=said):
        acs.Runtime(spawn=spawn)


def test_a_source_without_the_header_is_told_of_it(device: cl.Device) -> None:
    source = """void one(uint item, global int *x) { x[item] = 1; }
                kernel void go(global int *x) { ACS_SPAWN(one, 4u, x); }"""
    with acs.Runtime(device, backend="serial") as rt:
        with pytest.raises(BuildError, match=r"needs #include <acs_spawn\.h>"):
            rt.build(source)
        rt.build("#include <acs_spawn.h>\n" + source)


LOOPS = """
#include <acs_spawn.h>
void one(uint item, global int *x, int by) { atomic_add(x, by); }
void who(uint item, global int *x) { atomic_add(x + get_global_id(0), 1); }
void near(uint item, global int *x, private int *y) { atomic_add(x, *y); }
void wide(uint item, global int *x, float8 y) { atomic_add(x, (int)y.s3); }
void large(uint item, global int *x, float4 a, float4 b, float4 c) { atomic_add(x, (int)c.y); }
__attribute__((overloadable)) void over(uint item, global int *x, int by) { atomic_add(x, by); }
__attribute__((overloadable)) void over(uint item, global int *x, float by)
{ atomic_add(x, 10 * (int)by); }
void each(uint item, global int *x, int by) { atomic_add(x, by); }
void all(uint item, global int *x, uint by) { atomic_add(x, by); }
void last(int item, global int *x, int by) { atomic_add(x, by + item); }
kernel void k(global int *x, global const int *by) {
    int y = 2;
    ACS_SPAWN(one, 3u, x, by[1]);
    ACS_SPAWN(who, 3u, x);
    ACS_SPAWN(near, 3u, x, &y);
    ACS_SPAWN(wide, 3u, x, (float8)(2.0f));
    ACS_SPAWN(large, 3u, x, (float4)(1.0f), (float4)(1.0f), (float4)(2.0f));
    ACS_SPAWN(over, 3u, x, y);
    float z = y;
    ACS_SPAWN(over, 3u, x, z);
    ACS_SPAWN(each, 3u, x, y + 5 - (int)acs_child);
    ACS_SPAWN(all, 3u, x, acs_children);
    ACS_SPAWN(last, 3u, x, y + 1);
}
"""


def test_what_cannot_be_kept_for_later_runs_in_a_loop(device: Any) -> None:
    with acs.Runtime(device, backend="device", spawn=ALWAYS) as rt:
        prog = rt.build(LOOPS)
        rt.prebuild(prog.k)
        x = rt.zeros(1, "i4")
        prog.k((1,), None, x, rt.array([5, 7], "i4"))
        assert x.get().tolist() == [3 * 7 + 3 + 6 + 6 + 6 + 6 + 60 + 18 + 9 + 9 + 3]
        assert children(rt) == {"spawned": 3}
        (facts,) = rt.stats()["scheduler"]["schedulers"]
        assert facts["loops"] == (
            "all an argument is another one for each item",
            "each an argument is another one for each item",
            "large takes 64 bytes of arguments, more than 48",
            "near argument y points to neither global nor local memory",
            "one an argument is more than names and numbers",
            "over is overloaded",
            "who asks who the work-item is",
            "wide argument y is a vector of more than 16 bytes",
        )
