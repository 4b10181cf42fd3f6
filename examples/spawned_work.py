"""Breadth-first search whose kernel gives the neighbours of a vertex away, item by item.

Some vertices have thousands of neighbours and most have few. Without `ACS_SPAWN` the work-item of a
large vertex would go through all of them by itself while others wait. Look at `expand`, which gives
away as many items as there are neighbours.
"""

import numpy as np

import acs_cl as acs

SOURCE = """
#include <acs_spawn.h>
void visit(uint item, global const int *to, global int *level, int first, int next)
{ atomic_cmpxchg(&level[to[first + (int)item]], -1, next); }
kernel void expand(global const int *row, global const int *to, global int *level, int now) {
    const int from = get_global_id(0), first = row[from];
    if (level[from] == now)
        ACS_SPAWN(visit, (uint)(row[from + 1] - first), to, level, first, now + 1);
}
"""
VERTICES = 4000

rng = np.random.default_rng(1)
degree = np.where(np.arange(VERTICES) % 500, rng.integers(0, 4, VERTICES), 2000)
row = np.concatenate(([0], degree.cumsum())).astype("i4")
to = rng.integers(0, VERTICES, row[-1]).astype("i4")

with acs.Runtime() as rt:
    prog = rt.build(SOURCE)
    rows, ends = rt.array(row), rt.array(to)
    level = rt.array(np.where(np.arange(VERTICES) == 0, 0, -1).astype("i4"))
    for now in range(8):
        prog.expand((VERTICES,), None, rows, ends, level, now)
    found = level.get()

wanted = np.full(VERTICES, -1)
wanted[0] = 0
for now in range(8):
    for vertex in np.flatnonzero(wanted == now):
        new = to[row[vertex] : row[vertex + 1]]
        wanted[new[wanted[new] < 0]] = now + 1
assert (found == wanted).all()
print("vertices by level:", np.bincount(found + 1).tolist())
