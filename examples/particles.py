"""Particles in cells of different weight: each cell is a launch, and only neighbours wait.

A cell pushes its own particles, then gathers what left its neighbours. Cells that are far apart run
at the same time; no line says which. Look at `energy[i : i + 1]`: a view of one element, so that
cells do not wait for each other there.
"""

import numpy as np

import acs_cl as acs

SOURCE = """
kernel void push(global float2 *state, float dt)  /* x is place, y is speed */
{
    int i = get_global_id(0);
    float2 s = state[i];
    s.y -= dt * s.x;
    s.x += dt * s.y;
    state[i] = s;
}

kernel void gather(global const float2 *left, int lefts, global const float2 *own, int owns,
                   global const float2 *right, int rights, global float *energy)
{
    float sum = 0;
    for (int i = 0; i < lefts; ++i) sum += 0.25f * dot(left[i], left[i]);
    for (int i = 0; i < owns; ++i) sum += 0.5f * dot(own[i], own[i]);
    for (int i = 0; i < rights; ++i) sum += 0.25f * dot(right[i], right[i]);
    energy[0] = sum;
}
"""
CELLS, STEPS, DT = 12, 20, np.float32(0.05)

random = np.random.default_rng(7)
counts = [int(n) for n in random.integers(8, 200, CELLS)]
start = [random.standard_normal((n, 2), dtype="f4") for n in counts]

with acs.Runtime() as rt:
    prog = rt.build(SOURCE)
    cells = [rt.array(values) for values in start]
    energy = rt.zeros(CELLS)
    for _ in range(STEPS):
        for cell, count in zip(cells, counts, strict=True):
            prog.push((count,), None, cell, DT)
        for i in range(CELLS):
            near = [i - 1, i, (i + 1) % CELLS]
            args = [value for j in near for value in (cells[j], counts[j])]
            prog.gather((1,), None, *args, energy[i : i + 1])
    found = energy.get()
    stats = rt.stats()

for values in start:
    for _ in range(STEPS):
        values[:, 1] -= DT * values[:, 0]
        values[:, 0] += DT * values[:, 1]
own = np.array([(values**2).sum() for values in start])
expected = 0.5 * own + 0.25 * (np.roll(own, 1) + np.roll(own, -1))
assert np.allclose(found, expected, rtol=1e-4)
print(f"{stats['launches']} launches of {CELLS} cells, energy {found.sum():.1f}; as NumPy has it")
