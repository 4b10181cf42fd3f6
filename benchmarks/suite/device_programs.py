"""Programs for several devices, which do not know how many devices there are.

Input: a runtime and a share of the full sizes. Output: a step, and its results. Large data is made
on the device, so that a program starts quickly. Parts of each launch touch known ranges: there is
an item or a group for each row or chunk.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ... import Array, Program, Runtime
from ...records import HostArray

Step = tuple[Callable[[], object], Callable[[], HostArray]]
"""One step of a program, and a function that returns its results."""

JACOBI = """
kernel void jacobi(global const float *x, global float *y, int n)
{
    int i = get_global_id(0), j = get_global_id(1);
    if (i > 0 && i < n - 1 && j > 0 && j < n - 1)
        y[j * n + i] = 0.25f * (x[j * n + i - 1] + x[j * n + i + 1]
                                + x[(j - 1) * n + i] + x[(j + 1) * n + i]);
}"""
BLACK_SCHOLES = """
kernel void price(global const float *spot, global float *value)
{
    int i = get_global_id(0);
    float s = spot[i], d = (log(s / 60.0f) + 0.0175f) / 0.1f;
    float n1 = 0.5f * erfc(-d * 0.70710678f), n2 = 0.5f * erfc((0.1f - d) * 0.70710678f);
    value[i] = s * n1 - 60.0f * exp(-0.0125f) * n2;
}"""
PRODUCT = """
kernel void product(global const float *a, global const float *b, global float *c, int n)
{
    local float left[16][17], right[16][17];
    int x = get_local_id(0), y = get_local_id(1);
    int column = get_global_id(0), row = get_global_id(1);
    float sum = 0;
    for (int at = 0; at < n; at += 16) {
        left[y][x] = a[row * n + at + x];
        right[y][x] = b[(at + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 16; k++) sum += left[y][k] * right[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}"""
BODIES = """
kernel void forces(global const float *x, global float *f, int n)
{
    int i = get_global_id(0);
    float4 sum = 0;
    for (int k = 0; k < n; k += 4) {
        float4 d = vload4(0, x + k) - x[i];
        sum += d / (d * d + 0.01f);
    }
    f[i] = sum.x + sum.y + sum.z + sum.w;
}
kernel void move(global float *x, global const float *f, float step)
{ int i = get_global_id(0); x[i] += step * f[i]; }"""
CHUNK, PIECE = 4096, 256
"""Elements that a group adds up, of the long vectors and of the short ones."""
GROUP = 64
"""Items of such a group."""


def _adds(store: str) -> str:
    """Write the end of a kernel whose group of `GROUP` adds up the `sum` of each of its items."""
    return f"""    local float sums_of_items[64];
    sums_of_items[me] = sum;
    for (int reach = 32; reach > 0; reach /= 2) {{
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < reach) sums_of_items[me] += sums_of_items[me + reach];
    }}
    if (me == 0) {store} = sums_of_items[0];
}}"""


VECTORS = (
    """
kernel void square(global const float *x, global float *y)
{ int i = get_global_id(0); y[i] = x[i] * x[i]; }
kernel void differences(global const float *x, global const float *y, global float *sums)
{
    int me = get_local_id(0), part = get_global_id(1);
    float sum = 0;
    for (int k = me; k < 4096; k += 64) sum += x[4096 * part + k] - y[4096 * part + k];
"""
    + _adds("sums[part]")
    + """
kernel void dots(global const float *x, global const float *y, global float *sums)
{
    int me = get_local_id(0), part = get_global_id(1);
    float sum = 0;
    for (int k = me; k < 256; k += 64) sum += x[256 * part + k] * y[256 * part + k];
"""
    + _adds("sums[part]")
    + """
kernel void total(global const float *sums, global float *found, int n)
{
    int me = get_local_id(0);
    float sum = 0;
    for (int k = me; k < n; k += 64) sum += sums[k];
"""
    + _adds("found[0]")
    + """
kernel void ratio(global const float *a, global const float *b, global float *found)
{ found[0] = a[0] / b[0]; }
kernel void add(global float *x, global const float *y, global const float *factor, float sign)
{ int i = get_global_id(0); x[i] += sign * factor[0] * y[i]; }
kernel void scale_and_add(global float *x, global const float *y, global const float *factor)
{ int i = get_global_id(0); x[i] = y[i] + factor[0] * x[i]; }
kernel void divide(global const float *x, global float *y, global const float *by)
{ int i = get_global_id(0); y[i] = x[i] / by[0]; }
"""
)
MATRIX = """
kernel void fill(global float *a, int n)
{
    int i = get_global_id(0), j = get_global_id(1);
    a[j * n + i] = i == j ? 4.0f : 1.0f / (1.0f + (float)(i - j) * (float)(i - j));
}
kernel void times(global const float *a, global const float *x, global float *y, int n)
{
    int me = get_local_id(0), row = get_global_id(1);
    float sum = 0;
    for (int k = me; k < n; k += 64) sum += a[row * n + k] * x[k];
""" + _adds("y[row]")
SPARSE = """
kernel void fill(global int *columns, global float *values, int n)
{
    int k = get_global_id(0), row = get_global_id(1);
    columns[row * 256 + k] = (row + k * (k + 1) / 2) % n;
    values[row * 256 + k] = 1.0f / (1 + k + row % 7);
}
kernel void times(global const int *columns, global const float *values, global const float *x,
                  global float *y)
{
    int me = get_local_id(0), row = get_global_id(1);
    float sum = 0;
    for (int k = me; k < 256; k += 64) sum += values[row * 256 + k] * x[columns[row * 256 + k]];
""" + _adds("y[row]")


def _about(full: float, scale: float, unit: int) -> int:
    """Return a share of the full size, in whole units."""
    return max(unit, int(full * scale) // unit * unit)


def jacobi(runtime: Runtime, scale: float) -> Step:
    """Return sweeps over a square."""
    n = _about(16384, scale**0.5, 32)
    program = runtime.build(JACOBI)
    line = np.random.default_rng(1).random(2 * n, np.float32)
    start = np.lib.stride_tricks.as_strided(line, (n, n), (4, 4))
    pair = [runtime.array(start), runtime.array(start)]

    def step() -> None:
        program.jacobi((n, n), None, pair[0], pair[1], n)
        pair.reverse()

    return step, lambda: pair[0].get()


def black_scholes(runtime: Runtime, scale: float) -> Step:
    """Return ten independent sets of options."""
    n = _about(1 << 27, scale, 64)
    program = runtime.build(BLACK_SCHOLES)
    some = np.random.default_rng(2).uniform(40, 80, min(n, 1 << 20)).astype(np.float32)
    spots = np.resize(some, n)
    sets = [(runtime.array(np.roll(spots, shift)), runtime.empty(n)) for shift in range(10)]

    def step() -> None:
        for spot, value in sets:
            program.price((n,), None, spot, value)

    return step, lambda: np.concatenate([value[: len(some)].get() for _, value in sets])


def product(runtime: Runtime, scale: float) -> Step:
    """Return a product of square matrices, in blocks."""
    n = _about(8192, scale ** (1 / 3), 32)
    program = runtime.build(PRODUCT)
    values = np.random.default_rng(3).integers(-2, 3, (2, n, n), np.int8).astype(np.float32)
    a, b, c = runtime.array(values[0]), runtime.array(values[1]), runtime.empty((n, n))
    return lambda: program.product((n, n), (16, 16), a, b, c, n), lambda: c.get()


def bodies(runtime: Runtime, scale: float) -> Step:
    """Return forces between all pairs, and moves."""
    n = _about(524288, scale**0.5, 64)
    program = runtime.build(BODIES)
    x = runtime.array(np.random.default_rng(4).random(n, np.float32))
    f = runtime.empty(n)

    def step() -> None:
        program.forces((n,), None, x, f, n)
        program.move((n,), None, x, f, 1e-6)

    return step, lambda: x.get()


def vec(runtime: Runtime, scale: float) -> Step:
    """Return the sum of differences of squares."""
    n = _about(1 << 28, scale, CHUNK)
    program = runtime.build(VECTORS)
    some = np.random.default_rng(5).random(min(n, 1 << 20), np.float32)
    x, y = runtime.array(np.resize(some, n)), runtime.array(np.resize(some[::-1], n))
    xx, yy, sums, found = (runtime.empty(size) for size in (n, n, n // CHUNK, 1))

    def step() -> None:
        program.square((n,), None, x, xx)
        program.square((n,), None, y, yy)
        program.differences((GROUP, n // CHUNK), (GROUP, 1), xx, yy, sums)
        program.total((GROUP,), (GROUP,), sums, found, n // CHUNK)

    return step, lambda: sums.get()


def _matrix(runtime: Runtime, n: int) -> tuple[Program, Array]:
    program, a = runtime.build(MATRIX), runtime.empty((n, n))
    program.fill((n, n), None, a, n)
    return program, a


def matrix_vector(runtime: Runtime, scale: float) -> Step:
    """Return a large matrix times a vector."""
    n = _about(46080, scale**0.5, PIECE)
    program, a = _matrix(runtime, n)
    x, y = runtime.array(np.random.default_rng(6).random(n, np.float32)), runtime.empty(n)
    return lambda: program.times((GROUP, n), (GROUP, 1), a, x, y, n), lambda: y.get()


def conjugate_gradients(runtime: Runtime, scale: float) -> Step:
    """Return steps of conjugate gradients on a dense matrix."""
    n = _about(46080, scale**0.5, PIECE)
    matrix, a = _matrix(runtime, n)
    vectors = runtime.build(VECTORS)
    start = np.random.default_rng(7).random(n, np.float32)
    x, r, p = runtime.zeros(n), runtime.array(start), runtime.array(start)
    q, sums = runtime.empty(n), runtime.empty(n // PIECE)
    rr, pq, new, alpha, beta = (runtime.empty(1) for _ in range(5))

    def dot(one: Array, other: Array, found: Array) -> None:
        vectors.dots((GROUP, n // PIECE), (GROUP, 1), one, other, sums)
        vectors.total((GROUP,), (GROUP,), sums, found, n // PIECE)

    dot(r, r, rr)

    def step() -> None:
        nonlocal rr, new
        matrix.times((GROUP, n), (GROUP, 1), a, p, q, n)
        dot(p, q, pq)
        vectors.ratio((1,), None, rr, pq, alpha)
        vectors.add((n,), None, x, p, alpha, 1.0)
        vectors.add((n,), None, r, q, alpha, -1.0)
        dot(r, r, new)
        vectors.ratio((1,), None, new, rr, beta)
        vectors.scale_and_add((n,), None, p, r, beta)
        rr, new = new, rr

    return step, lambda: x.get()


def sparse(runtime: Runtime, scale: float) -> Step:
    """Return a sparse matrix times a vector, which is then normalised."""
    n = _about(1 << 21, scale, PIECE)
    program, vectors = runtime.build(SPARSE), runtime.build(VECTORS)
    columns, values = runtime.empty((n, 256), np.int32), runtime.empty((n, 256))
    program.fill((256, n), None, columns, values, n)
    x, y = runtime.array(np.full(n, 1 / n, np.float32)), runtime.empty(n)
    sums, found = runtime.empty(n // PIECE), runtime.empty(1)

    def step() -> None:
        program.times((GROUP, n), (GROUP, 1), columns, values, x, y)
        vectors.dots((GROUP, n // PIECE), (GROUP, 1), y, y, sums)
        vectors.total((GROUP,), (GROUP,), sums, found, n // PIECE)
        vectors.divide((n,), None, y, x, found)

    return step, lambda: x.get()


PROGRAMS: dict[str, Callable[[Runtime, float], Step]] = {
    "jacobi": jacobi,
    "black_scholes": black_scholes,
    "product": product,
    "bodies": bodies,
    "vec": vec,
    "matrix_vector": matrix_vector,
    "conjugate_gradients": conjugate_gradients,
    "sparse": sparse,
}
