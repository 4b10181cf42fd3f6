"""Solve a sparse system by conjugate gradients until it has converged; the host waits once.

One step is recorded. The device repeats it as long as a kernel leaves `go` at 1. Look at
`replay(while_=go)`: the host reads nothing in between.
"""

import numpy as np

import acs_cl as acs

SOURCE = """
kernel void multiply(global const float *p, global float *q, int n)  /* q = A p */
{
    int i = get_global_id(0);
    q[i] = 2.1f * p[i] - (i > 0 ? p[i - 1] : 0) - (i + 1 < n ? p[i + 1] : 0);
}
kernel void length_of_step(global const float *p, global const float *q, global float *state, int n)
{
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += p[i] * q[i];
    state[1] = state[0] / sum;
}
kernel void advance(global const float *state, global const float *p, global const float *q,
                    global float *x, global float *r)
{
    int i = get_global_id(0);
    x[i] += state[1] * p[i];
    r[i] -= state[1] * q[i];
}
kernel void judge(global const float *r, global float *state, global int *go, int n, float small)
{
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += r[i] * r[i];
    state[2] = sum / state[0];
    state[0] = sum;
    *go = sum > small;
}
kernel void redirect(global const float *state, global const float *r, global float *p)
{ int i = get_global_id(0); p[i] = r[i] + state[2] * p[i]; }
"""
N = 512
b = np.sin(np.arange(N)).astype(np.float32)

with acs.Runtime() as rt:
    prog = rt.build(SOURCE)
    x, q, r, p = rt.zeros(N), rt.zeros(N), rt.array(b), rt.array(b)
    state, go = rt.array([b @ b, 0, 0], "f4"), rt.array([1], "i4")
    with rt.record() as step:
        prog.multiply((N,), None, p, q, N)
        prog.length_of_step((1,), None, p, q, state, N)
        prog.advance((N,), None, state, p, q, x, r)
        prog.judge((1,), None, r, state, go, N, 1e-8 * float(b @ b))
        prog.redirect((N,), None, state, r, p)
    solved = step.replay(while_=go, at_most=10 * N)
    rounds, found = solved.rounds, x.get()

matrix = 2.1 * np.eye(N) - np.eye(N, k=1) - np.eye(N, k=-1)
assert 0 < rounds < 10 * N
assert np.abs(matrix @ found - b).max() < 1e-2
print(f"converged after {rounds} rounds")
