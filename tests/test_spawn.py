"""Spawned items, on every backend: what they write, in trees too, and what a launch touches.

The oracle is the plain loop that the macro stands for, and NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import acs_cl as acs
from acs_cl.opencl_c.kernel_files import with_spawn_header

pytestmark = pytest.mark.rotate("make", 4)

SOURCE = """
#include <acs_spawn.h>
void visit(uint item, global const int *to, global int *seen, uint first)
{ atomic_inc(&seen[to[first + item]]); }
kernel void expand(global const int *row, global const int *to, global int *seen) {
    const uint from = get_global_id(0), first = row[from];
    ACS_SPAWN(visit, row[from + 1] - first, to, seen, first);
}
void put(uint item, global uint *out, uint at, float2 more)
{ out[at * 16u + item] += at + item + (uint)more.y; }
kernel void rows(global uint *out, uint n) {
    const uint at = get_global_id(0);
    ACS_SPAWN(put, n, out, at, (float2)(1.0f, 3.0f));
}
void leaf(uint item, global uint *sums, uint at, ulong by)
{ atomic_add(&sums[at % 7u], (uint)by + item); }
void branch(uint item, global uint *sums, uint at)
{ ACS_SPAWN(leaf, item % 5u, sums, at + item, 3ul); }
void bough(uint item, global uint *sums, uint at, uint n) {
    if (item & 1u)
        ACS_SPAWN(branch, n, sums, at);
    else
        ACS_SPAWN(leaf, n + item, sums, at, 5ul);
}
kernel void tree(global uint *sums, uint wide, uint n) {
    const uint at = get_global_id(0);
    ACS_SPAWN(bough, wide + at % 3u, sums, at, n);
}
"""


def graph(vertices: int, seed: int) -> tuple[Any, Any]:
    """Vertices with up to 40 neighbours: where each row begins, and the neighbours."""
    rng = np.random.default_rng(seed)
    row = np.concatenate(([0], rng.integers(0, 40, vertices).cumsum())).astype("i4")
    return row, rng.integers(0, vertices, row[-1]).astype("i4")


def tree(items: int, wide: int, n: int) -> Any:
    """What `tree` adds up."""
    sums = np.zeros(7, np.uint64)
    for at in range(items):
        for bough in range(wide + at % 3):
            if bough & 1:
                for branch in range(n):
                    for leaf in range(branch % 5):
                        sums[(at + branch) % 7] += 3 + leaf
            else:
                for leaf in range(n + bough):
                    sums[at % 7] += 5 + leaf
    return sums.astype("u4")


@pytest.fixture
def prog(rt: acs.Runtime) -> acs.Program:
    built = rt.build(SOURCE)
    rt.prebuild(built.expand, built.rows, built.tree)
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
        rt.build("#include <acs_spawn.h>\n\nkernel void k(global int *x) { wrong(); }\n")
