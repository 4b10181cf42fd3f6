"""Random trees of spawned items, and the loops that they stand for.

In: a seed. Out: launches whose items spawn items, two deep, of random width, some of which wait for
each other; what they write is compared with the plain loop. `WAYS` is what they are run with: each
controller, one group alone, and a pool and a ring that are soon full.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from typing import Any

import numpy as np

import acs_cl as acs
from acs_cl.scheduler.children import Room

SOURCE = """
#include <acs_spawn.h>
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
ROWS, WIDE = 20, 16
SHAPES = [(1, 1, 1), (3, 2, 30), (40, 3, 4), (7, 9, 9), (1, 0, 5), (2, 40, 2), (130, 1, 3)]
"""Work-items, items of each, and items of those."""

ALWAYS = acs.Spawn("always", 1)
TINY = Room(ALWAYS, units=300, slots=24)
"""A pool and a ring that are soon full."""

WAYS: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    (ALWAYS, {}, {}),
    (ALWAYS, {"groups": 1}, {}),
    (acs.Spawn("always", 8), {"groups": 3}, {"turns": 2}),
    (acs.Spawn("hungry", 1), {}, {"polls": 1 << 14}),
    (ALWAYS, {"window": 2}, {}),
    (acs.Spawn("ccqs", 1, 8), {}, {}),
    (acs.Spawn("always"), {}, {}),
    (TINY, {}, {}),
    (TINY, {"groups": 1}, {"turns": 1}),
]
"""How items are spawned, options of the runtime, and settings of its scheduler."""


@cache
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


def random_trees(rt: acs.Runtime, prog: acs.Program, seed: int) -> int:
    """Launches that wait for each other now and then, against the loop; how many trees."""
    rng, trees = random.Random(seed), 0
    rows = [rt.zeros(7, "u4") for _ in range(4)]
    wanted = [np.zeros(7, np.uint64) for _ in rows]
    out, rounds = rt.zeros((ROWS, WIDE), "u4"), 0
    for _ in range(rng.randrange(4, 16)):
        if rng.random() < 0.2:
            prog.rows((ROWS,), None, out, WIDE)
            rounds += 1
            continue
        at, shape = rng.randrange(4), rng.choice(SHAPES)
        prog.tree((shape[0],), None, rows[at], *shape[1:])
        wanted[at] += tree(*shape)
        trees += 1
    for row, want in zip(rows, wanted, strict=True):
        assert row.get().tolist() == want.tolist()
    at, item = np.indices((ROWS, WIDE))
    assert (out.get() == rounds * (at + item + 3)).all()
    return trees


class Ways:
    """Runtimes of a process, one for each of `WAYS` and one without a scheduler."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._made: dict[int, tuple[acs.Runtime, acs.Program]] = {}

    def one(self, seed: int) -> Counter[str]:
        """Run what a seed stands for; an `AssertionError` says what is wrong."""
        rt, prog = self._way(seed % (len(WAYS) + 1))
        before = children(rt)
        trees = random_trees(rt, prog, seed)
        counts = children(rt)
        counts.subtract(before)
        return Counter({"trees": trees, **{f"items {name}": n for name, n in counts.items() if n}})

    def _way(self, way: int) -> tuple[acs.Runtime, acs.Program]:
        if way not in self._made:
            if way == len(WAYS):
                rt = acs.Runtime(self._device, backend="lanes")
            else:
                spawn, options, settings = WAYS[way]
                rt = acs.Runtime(self._device, backend="device", spawn=spawn, **options)
                backend = rt.engine.backend
                backend.settings = backend.settings._replace(**settings)
            prog = rt.build(SOURCE)
            rt.prebuild(prog.rows, prog.tree)
            self._made[way] = rt, prog
        return self._made[way]


def configuration_of(seed: int) -> str:
    """What a seed is run with."""
    way = seed % (len(WAYS) + 1)
    return "lanes" if way == len(WAYS) else str(WAYS[way])


def children(rt: acs.Runtime) -> Counter[str]:
    """What became of items, as the scheduler counts it."""
    return Counter(rt.stats().get("scheduler", {}).get("children", {}))
