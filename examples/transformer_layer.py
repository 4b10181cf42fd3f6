"""A small transformer layer, recorded once and replayed for each token sequence.

Heads of attention are independent of each other, and so are the three projections. The recording
knows: nothing but the arrays says it. Look at `writes=part`: heads write columns of one array.
"""

import numpy as np

import acs_cl as acs

SOURCE = """
kernel void product(global const float *a, global const float *b, global float *c, int n)
{
    int row = get_global_id(0), column = get_global_id(1);
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

kernel void attend(global const float *q, global const float *k, global const float *v,
                   global float *out, int tokens, int width, int first, int wide)
{
    int row = get_global_id(0);
    float most = -INFINITY, total = 0, weight[64];
    for (int t = 0; t < tokens; ++t) {
        float dot = 0;
        for (int c = first; c < first + wide; ++c) dot += q[row * width + c] * k[t * width + c];
        weight[t] = dot / sqrt((float)wide);
        most = fmax(most, weight[t]);
    }
    for (int t = 0; t < tokens; ++t) total += weight[t] = exp(weight[t] - most);
    for (int c = first; c < first + wide; ++c) {
        float sum = 0;
        for (int t = 0; t < tokens; ++t) sum += weight[t] * v[t * width + c];
        out[row * width + c] = sum / total;
    }
}

kernel void add_relu(global const float *x, global float *y)
{ int i = get_global_id(0); y[i] = fmax(y[i] + x[i], 0.0f); }
"""
TOKENS, WIDTH, HEADS = 16, 32, 4
WIDE = WIDTH // HEADS

random = np.random.default_rng(5)
weights = [random.standard_normal((WIDTH, WIDTH), dtype="f4") / 6 for _ in range(4)]
inputs = [random.standard_normal((TOKENS, WIDTH), dtype="f4") for _ in range(3)]

with acs.Runtime() as rt:
    prog = rt.build(SOURCE)
    x, q, k, v, mixed, y = (rt.zeros((TOKENS, WIDTH)) for _ in range(6))
    wq, wk, wv, wo = map(rt.array, weights)
    heads = [mixed[:, head * WIDE : (head + 1) * WIDE] for head in range(HEADS)]
    with rt.record() as layer:
        for weight, out in ((wq, q), (wk, k), (wv, v)):
            prog.product((TOKENS, WIDTH), None, x, weight, out, WIDTH)
        for head, part in enumerate(heads):  # each writes columns of its own
            sizes = TOKENS, WIDTH, head * WIDE, WIDE
            prog.attend((TOKENS,), None, q, k, v, mixed, *sizes, writes=part)
        prog.product((TOKENS, WIDTH), None, mixed, wo, y, WIDTH)
        prog.add_relu((TOKENS * WIDTH,), None, x, y)
    found = []
    for tokens in inputs:
        x.set(tokens)
        layer.replay()
        found.append(y.get())


def as_numpy(tokens: np.ndarray) -> np.ndarray:
    q, k, v = (tokens @ weight for weight in weights[:3])
    parts = []
    for first in range(0, WIDTH, WIDE):
        own = slice(first, first + WIDE)
        scores = np.exp(q[:, own] @ k[:, own].T / np.sqrt(WIDE))
        parts.append(scores / scores.sum(1, keepdims=True) @ v[:, own])
    return np.maximum(np.hstack(parts) @ weights[3] + tokens, 0)


assert all(np.allclose(a, as_numpy(b), atol=1e-3) for a, b in zip(found, inputs, strict=True))
print(f"{len(layer)} launches recorded, replayed for {len(inputs)} sequences; as NumPy has it")
