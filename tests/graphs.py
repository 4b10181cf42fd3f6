"""Random graphs of launches whose results tell of every missing edge, and which count every run.

A task mixes up to three rows that earlier tasks wrote into its own row, item against mirrored item,
so that all tiles of a task have to wait for all tiles of those before it; and adds one to a counter
for each of its items. Some work in groups, with barriers and local memory. `expected` is NumPy.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import cltypes

import acs_cl as acs
from acs_cl.testing import runtime_of

NONE = 0xFFFFFFFF

SOURCE = """
uint mixed(global const uint *v, uint row, uint up, uint size, uint i, uint sum)
{ return up == 0xFFFFFFFFu ? sum : sum * 5u + v[up * row + (size - 1 - i % size)]; }

#define PARAMETERS global uint *v, global uint *hits, uint row, uint t, \\
    uint a, uint b, uint c, uint size_a, uint size_b, uint size_c
#define FROM(up, sum) mixed(v, row, up, size_##up, i, sum)
#define VALUE FROM(c, FROM(b, FROM(a, t * 7u + i)))

kernel void node(PARAMETERS)
{ uint i = get_global_id(0); atomic_inc(hits + t * row + i); v[t * row + i] = VALUE; }

kernel void big(PARAMETERS, ulong8 pad)
{ uint i = get_global_id(0); atomic_inc(hits + t * row + i);
  v[t * row + i] = VALUE + (uint)pad.s7; }

kernel void flat(PARAMETERS)
{ uint i = get_global_id(1) * get_global_size(0) + get_global_id(0);
  atomic_inc(hits + t * row + i); v[t * row + i] = VALUE; }

kernel void turn(PARAMETERS)
{ local uint tile[64];
  uint i = get_global_id(0), l = get_local_id(0);
  tile[l] = VALUE; atomic_inc(hits + t * row + i);
  barrier(CLK_LOCAL_MEM_FENCE);
  v[t * row + i] = tile[get_local_size(0) - 1 - l]; }

kernel void swap(PARAMETERS, local uint *tile)
{ uint i = get_global_id(0), l = get_local_id(0);
  tile[l] = VALUE; atomic_inc(hits + t * row + i);
  barrier(CLK_LOCAL_MEM_FENCE);
  v[t * row + i] = tile[get_local_size(0) - 1 - l]; }

kernel void aside(PARAMETERS)
{ uint i = get_global_id(0); atomic_inc(hits + t * row + i); v[t * row + i] = VALUE;
  if (t == 0xFFFFFFFFu) printf("never"); }
"""

TILED = ("node", "big", "flat")
GROUPED = ("turn", "swap")
LANE = "aside"
"""It prints, which the scheduler cannot."""


class Task(NamedTuple):
    """A launch: `upstream` are at most three tasks before it."""

    kernel: str
    size: int
    local: int
    upstream: tuple[int, ...]


def graph(
    rng: random.Random,
    n: int,
    *,
    kernels: tuple[str, ...] = ("node",),
    sizes: tuple[int, ...] = (1, 1, 1, 5, 64),
    locals_: tuple[int, ...] = (4,),
    chains: int = 0,
    lanes: float = 0.0,
    upstream: int = 3,
) -> list[Task]:
    """Random tasks. `chains`: so many rows of dependants; `lanes`: how often it is one for them."""
    tasks = []
    for number in range(n):
        kernel = rng.choice(kernels) if rng.random() >= lanes else LANE
        size, local = rng.choice(sizes), 0
        if kernel in GROUPED:
            local = rng.choice(locals_)
            size = -(-size // local) * local
        ups = {rng.randrange(number) for _ in range(rng.randint(0, upstream))} if number else set()
        if chains:
            ups = {number - chains} if number >= chains else set()
        tasks.append(Task(kernel, size, local, tuple(sorted(ups))))
    return tasks


def row_of(tasks: list[Task]) -> int:
    return max(task.size for task in tasks)


def expected(tasks: list[Task]) -> np.ndarray[Any, Any]:
    """The rows that NumPy computes, one task after another."""
    v = np.zeros((len(tasks), row_of(tasks)), np.uint32)
    for number, task in enumerate(tasks):
        i = np.arange(task.size, dtype=np.uint32)
        value = i + np.uint32(number * 7 & 0xFFFFFFFF)
        for up in task.upstream:
            size = tasks[up].size
            value = value * np.uint32(5) + v[up][size - 1 - i % np.uint32(size)]
        if task.kernel == "big":
            value = value + np.uint32(9)
        if task.kernel in GROUPED:
            value = value.reshape(-1, task.local)[:, ::-1].reshape(-1)
        v[number, : task.size] = value
    return v


class Run:
    """The launches of a graph, on arrays of its own."""

    def __init__(self, program: acs.Program, tasks: list[Task]) -> None:
        self.program, self.tasks = program, tasks
        self.row = row_of(tasks)
        rt: acs.Runtime = runtime_of(program)
        self.v = rt.zeros((len(tasks), self.row), "u4")
        self.hits = rt.zeros((len(tasks), self.row), "u4")

    def launch(self, number: int, **more: Any) -> acs.Handle:
        """One task."""
        task = self.tasks[number]
        ups = [*task.upstream, NONE, NONE, NONE][:3]
        sizes = [self.tasks[up].size if up != NONE else 1 for up in ups]
        extra: list[Any] = []
        size: tuple[int, ...] = (task.size,)
        if task.kernel == "big":
            extra = [cltypes.make_ulong8(1, 2, 3, 4, 5, 6, 7, 9)]
        elif task.kernel == "swap":
            extra = [cl.LocalMemory(4 * task.local)]
        elif task.kernel == "flat":
            width = next(w for w in (8, 4, 2, 1) if task.size % w == 0)
            size = (width, task.size // width)
        handle: acs.Handle = getattr(self.program, task.kernel)(
            size, (task.local,) if task.local else None,
            self.v, self.hits, self.row, number, *ups, *sizes, *extra,
            reads=[self.v[up, : self.tasks[up].size] for up in task.upstream],
            writes=[self.v[number, : task.size], self.hits[number]],
            **more,
        )  # fmt: skip
        return handle

    def launch_all(self) -> Run:
        """All of them."""
        for number in range(len(self.tasks)):
            self.launch(number)
        return self

    def check(self) -> None:
        """Every value is NumPy's, and every item ran exactly once."""
        hits, v = self.hits.get(), self.v.get()
        for number, task in enumerate(self.tasks):
            ran = hits[number]
            assert (ran[: task.size] == 1).all(), (number, task, ran.tolist())
            assert not ran[task.size :].any(), (number, task, ran.tolist())
        wrong = np.flatnonzero((v != expected(self.tasks)).any(axis=1))
        assert not len(wrong), (wrong[:5].tolist(), [self.tasks[i] for i in wrong[:5]])


def prebuild(
    program: acs.Program,
    *locals_: int,
    more: tuple[str, ...] = (),
    grouped: tuple[tuple[str, int], ...] = (),
) -> None:
    """All that can be in a scheduler, groups in each of these sizes, and have the rest refused; by
    one build for each size of groups."""
    rt: acs.Runtime = runtime_of(program)
    rt.prebuild(
        *(getattr(program, name) for name in (*TILED, LANE, *more)),
        *((getattr(program, name), (size,)) for name in GROUPED for size in locals_),
        *((getattr(program, name), (size,)) for name, size in grouped),
    )
