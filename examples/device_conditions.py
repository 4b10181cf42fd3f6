"""Repeat a step until it has converged, without reading anything back in between.

The device decides: `when=` runs a launch only while a flag is set, and a kernel clears the flag.
The host launches the most steps there can be; those behind the last one are skipped. Look at the
loop: it waits for nothing. `solve_until_converged.py` records one step instead.
"""

import numpy as np

import acs_cl as acs

SOURCE = """
kernel void newton(global const float *x, global float *root)
{ int i = get_global_id(0); root[i] = 0.5f * (root[i] + x[i] / root[i]); }

kernel void clear(global int *go) { *go = 0; }

kernel void check(global const float *x, global const float *root, global int *go)
{
    int i = get_global_id(0);
    if (fabs(root[i] * root[i] - x[i]) > 1e-4f * x[i]) *go = 1;  /* many may write the same */
}

kernel void count(global int *steps) { *steps += 1; }
"""
N, MOST = 1024, 40

with acs.Runtime() as rt:
    prog = rt.build(SOURCE)
    x = rt.array(np.linspace(1, 1e6, N), "f4")
    root = rt.array(np.ones(N), "f4")
    go, steps = rt.array([1], "i4"), rt.zeros(1, "i4")
    decided = rt.zeros(1, "i4")  # what `go` was when the step began
    for _ in range(MOST):
        decided.copy_from(go)
        prog.newton((N,), None, x, root, when=decided)
        prog.count((1,), None, steps, when=decided)
        prog.clear((1,), None, go, when=decided)
        prog.check((N,), None, x, root, go, when=decided)
    taken, roots = int(steps.get()[0]), root.get()

assert np.allclose(roots, np.sqrt(np.linspace(1, 1e6, N)), rtol=1e-3)
assert 0 < taken < MOST
print(f"converged after {taken} of at most {MOST} steps; the host waited once")
