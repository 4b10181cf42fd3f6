"""Small kernels in the forms that programs write, each with a launch, and what is measured of it.

In: nothing. Out: `CASES`; for each, the bytes that a run touches and those that are inferred.
Arrays have elements of four bytes, which are measured one by one: an element counts as written if
a run leaves another value there, and as read if changing it changes another result.
"""
# Long because: one list of kernels.

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from acs_cl import devices
from acs_cl.access.binder import binder
from acs_cl.access.inference import from_source


class A(NamedTuple):
    """An array of so many words."""

    words: int


class Case(NamedTuple):
    """A kernel, its launch, and the form that it is an example of."""

    name: str
    form: str
    source: str
    sizes: tuple[int, ...]
    local: tuple[int, ...] | None
    arguments: tuple[Any, ...]
    is_exact: bool = True
    """Whether just the touched bytes can be inferred."""


def i4(*values: int) -> Any:
    """Make a vector or the words of a structure."""
    return np.array(values, "i4")


def i8(*values: int) -> Any:
    """Make words of eight bytes."""
    return np.array(values, "i8")


_PARAM = "typedef struct { long dims[4]; long strides[4]; long offset; } KParam;\n"
_INFO = "typedef struct { int w, h, pitch, first; } Info;\n"
_PARTICLE = "typedef struct { int x, y, z, m; int vx, vy, vz, id; } Particle;\n"

CASES: list[Case] = []


def _add(form: str, name: str, source: str, sizes: Any, local: Any, *arguments: Any,
         is_exact: bool = True) -> None:  # fmt: skip
    CASES.append(Case(name, form, source, sizes, local, arguments, is_exact))


# fmt: off

# ---- (a) numbers in structures and vectors that are passed by value

_add("a", "copy of a sub-array", _PARAM
    + """
kernel void k(global int *out, const KParam outp, global const int *in, const KParam inp,
    int groups_x) {
    int zz = get_group_id(0) / groups_x;
    int gx = get_group_id(0) - groups_x * zz;
    int x = get_local_id(0) + gx * get_local_size(0), y = get_global_id(1);
    if (x >= outp.dims[0] || y >= outp.dims[1] || zz >= outp.dims[2]) return;
    out[x + y * outp.strides[1] + zz * outp.strides[2] + outp.offset] =
        in[inp.offset + x * inp.strides[0] + y * inp.strides[1] + zz * inp.strides[2]];
}""",
     (16, 4), (8, 4), A(256), i8(6, 4, 1, 1, 1, 16, 64, 64, 5), A(256), i8(6, 4, 1, 1, 1, 8,
     32, 32, 3), 2)
_add("a", "an offset of two", """
kernel void k(global int *a, int2 offset, int pitch) {
    int x = get_global_id(0) + offset.x, y = get_global_id(1) + offset.y;
    a[y * pitch + x] += 1; }""",
     (8, 4), None, A(512), i4(3, 2), 32)
_add("a", "a size of four", """
kernel void k(global int *y, global const int *x, uint4 size) {
    uint i = get_global_id(0);
    if (i < size.x * size.y) y[i + size.z] = x[i + size.w]; }""",
     (64,), None, A(128), A(128), np.array([5, 7, 3, 20], "u4"))
_add("a", "fields of a structure", _INFO
    + """
kernel void k(global int *to, global const int *of, Info at) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x < at.w && y < at.h) to[at.first + y * at.pitch + x] = of[y * at.w + x]; }""",
     (16, 8), (8, 4), A(256), A(256), i4(10, 5, 24, 7))
_add("a", "a structure in a helper", _INFO
    + """
int place(Info at, int x, int y) { return at.first + y * at.pitch + x; }
kernel void k(global int *to, Info at) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x < at.w && y < at.h) to[place(at, x, y)] = 1; }""",
     (16, 8), None, A(256), i4(10, 5, 24, 7))
_add("a", "a range of two numbers", """
kernel void k(global int *a, int2 range) {
    for (int i = range.x + get_global_id(0); i < range.y;
        i += get_global_size(0)) a[i] += 3; }""",
     (8,), None, A(200), i4(17, 90))
_add("a", "a structure with shorts", """
typedef struct { short x, y; uchar w, h; int base; } Box;
kernel void k(global int *a, Box box) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x < box.w && y < box.h) a[box.base + (y + box.y) * 16 + x + box.x] = 1; }""",
     (8, 8), None, A(256), np.frombuffer(np.array([2, 3], "i2").tobytes() + bytes([5, 4, 0,
     0])[:2] + bytes(2) + np.array([6], "i4").tobytes(), "u1"))
_add("a", "a structure in a structure", """
typedef struct { int2 lo, hi; } Rect;
typedef struct { Rect of; int pitch; int pad; } Area;
kernel void k(global int *a, Area area) {
    int x = get_global_id(0) + area.of.lo.x, y = get_global_id(1) + area.of.lo.y;
    if (x < area.of.hi.x && y < area.of.hi.y) a[y * area.pitch + x] = 1; }""",
     (16, 8), None, A(256), i4(2, 1, 9, 6, 16, 0))

# ---- (b) positions in vectors

_add("b", "a position of two", """
kernel void k(global int *out, global const int *in, int w) {
    int2 pos = (int2)(get_global_id(0), get_global_id(1));
    out[pos.y * w + pos.x] = in[pos.y * w + pos.x]; }""",
     (8, 4), None, A(256), A(256), 32)
_add("b", "a position of four, in braces", """
kernel void k(global int *out, int w, int h) {
    int4 pos = { get_global_id(0), get_global_id(1), get_global_id(2), 0 };
    out[pos.x + w * (pos.y + h * pos.z)] = 1; }""",
     (4, 3, 2), None, A(256), 8, 5,
     is_exact=False)
_add("b", "a position and an offset", """
kernel void k(global int *out, int2 offset, int w) {
    int2 pos = (int2)(get_global_id(0), get_global_id(1)) + offset;
    out[pos.y * w + pos.x] = 1; }""",
     (8, 4), None, A(512), i4(3, 2), 32)
_add("b", "a clamped neighbour", """
kernel void k(global int *out, global const int *in, int w, int h) {
    int2 pos = (int2)(get_global_id(0), get_global_id(1));
    int2 to = clamp(pos + (int2)(1, 0), (int2)(0), (int2)(w - 1, h - 1));
    out[pos.y * w + pos.x] = in[to.y * w + to.x]; }""",
     (8, 4), None, A(128), A(128), 16, 4)
_add("b", "swapped components", """
kernel void k(global int *out, int w) {
    int2 p = (int2)(get_global_id(0), get_global_id(1));
    p.xy = p.yx;
    out[p.y * w + p.x] = 1; }""",
     (8, 4), None, A(256), 16)
_add("b", "tiles of a group", """
kernel void k(global int *out, global const int *in, int w) {
    const int2 tile = (int2)(get_group_id(0), get_group_id(1)) * (int2)(4, 2);
    const int2 at = tile + (int2)(get_local_id(0), get_local_id(1));
    out[at.y * w + at.x] = in[at.x + at.y * w]; }""",
     (8, 4), (4, 2), A(256), A(256), 32)
_add("b", "components by number", """
kernel void k(global int *out, int w) {
    uint3 p; p.s0 = get_global_id(0); p.s1 = get_global_id(1); p.s2 = p.s0 + p.s1 * w;
    out[p.s2] = 1; }""",
     (8, 4), None, A(256), 32)
_add("b", "a position from a helper", """
int2 here(int dx) { return (int2)(get_global_id(0) + dx, get_global_id(1)); }
kernel void k(global int *out, int w, int dx) { int2 p = here(dx); out[p.y * w + p.x] = 1;
    }""",
     (8, 4), None, A(256), 32, 5)
_add("b", "an index array", """
kernel void k(global int *out, int s0, int s1, int s2) {
    int id[3]; id[0] = get_global_id(0); id[1] = get_global_id(1); id[2] = get_global_id(2);
    out[id[0] * s0 + id[1] * s1 + id[2] * s2] = 1; }""",
     (4, 3, 2), None, A(256), 1, 8, 40,
     is_exact=False)
_add("b", "a structure as a variable", """
typedef struct { int row, col; } Place;
kernel void k(global int *out, int w) {
    Place p = { get_global_id(1), get_global_id(0) };
    Place q = p; q.row += 2;
    out[q.row * w + q.col] = 1; }""",
     (8, 4), None, A(256), 32)
_add("b", "a macro with components", """
#define AT(a, p, w) a[(p).y * (w) + (p).x]
kernel void k(global int *out, global const int *in, int w) {
    int2 p = (int2)(get_global_id(0), get_global_id(1));
    AT(out, p, w) = AT(in, p, w); }""",
     (8, 4), None, A(256), A(256), 32)
_add("b", "converted components", """
kernel void k(global int *out, int w) {
    uint2 g = (uint2)(get_global_id(0), get_global_id(1));
    int2 p = convert_int2(g) + 1;
    out[mad24(p.y, w, p.x)] = 1; }""",
     (8, 4), None, A(256), 32)

# ---- (c) loops

_add("c", "a loop without a beginning", """
kernel void k(global int *y, global const int *x, int n) {
    int k = get_global_id(0);
    for (; k < n; k += get_global_size(0)) y[k] = x[k]; }""",
     (8,), None, A(128), A(128), 50)
_add("c", "a rest behind an unrolled loop", """
kernel void k(global int *y, global const int *x, int n) {
    int k = 0, sum = 0;
    for (; k + 4 <= n; k += 4) sum += x[k] + x[k + 1] + x[k + 2] + x[k + 3];
    for (; k < n; k++) sum += x[k];
    y[get_global_id(0)] = sum; }""",
     (4,), None, A(16), A(128), 50)
_add("c", "two counters", """
kernel void k(global int *y, global const int *x, int n, int s) {
    int i, j, sum = 0, g = get_global_id(0);
    for (i = 0, j = g; i < n; i++, j += s) sum += x[j];
    y[g] = sum; }""",
     (8,), None, A(16), A(256), 5, 32)
_add("c", "a counter that the body moves", """
kernel void k(global int *y, global const int *x, int n, int s) {
    int g = get_global_id(0), j = g, sum = 0;
    for (int i = 0; i < n; i++) { sum += x[j]; j += s; }
    y[g] = sum; }""",
     (8,), None, A(16), A(256), 5, 32)
_add("c", "a pointer that the body moves", """
kernel void k(global int *y, global const int *x, int n, int s) {
    int g = get_global_id(0), sum = 0;
    x += g;
    for (int i = 0; i < n; i++) { sum += *x; x += s; }
    y[g] = sum; }""",
     (8,), None, A(16), A(256), 5, 32)
_add("c", "a pointer in the step", """
kernel void k(global int *y, int n) {
    global int *p = y + get_global_id(0) * n;
    for (int i = 0; i < n; ++i, ++p) *p = i; }""",
     (8,), None, A(256), 9)
_add("c", "counting down", """
kernel void k(global int *y, global const int *x, int n) {
    int sum = 0;
    for (int i = n - 1; i >= 0; --i) sum += x[i];
    y[get_global_id(0)] = sum; }""",
     (4,), None, A(16), A(128), 40)
_add("c", "counting down in the condition", """
kernel void k(global int *y, global const int *x, int n) {
    int sum = 0, i = n;
    while (i-- > 0) sum += x[i];
    y[get_global_id(0)] = sum; }""",
     (4,), None, A(16), A(128), 40)
_add("c", "doubling", """
kernel void k(global int *y, int n) {
    for (int s = 1; s < n; s <<= 1) y[s] = 1; }""",
     (1,), None, A(128), 50, is_exact=False)
_add("c", "halving", """
kernel void k(global int *y, int n) {
    int g = get_global_id(0);
    for (int s = n / 2; s > 0; s >>= 1) if (g < s) y[g] += y[g + s]; }""",
     (1,), None, A(128), 64, is_exact=False)
_add("c", "do and while", """
kernel void k(global int *y, global const int *x, int n) {
    int i = 0, sum = 0;
    do { sum += x[i]; i++; } while (i < n);
    y[get_global_id(0)] = sum; }""",
     (4,), None, A(16), A(128), 40)
_add("c", "for ever, with a way out", """
kernel void k(global int *y, int n) {
    int i = get_global_id(0);
    for (;;) { if (i >= n) break; y[i] = 1; i += get_global_size(0); } }""",
     (8,), None, A(128), 50)
_add("c", "two steps at the end", """
kernel void k(global int *y, global const int *x, int n, int s) {
    int i = 0, j = get_global_id(0), sum = 0;
    while (i < n) { sum += x[j]; i++; j += s; }
    y[get_global_id(0)] = sum; }""",
     (8,), None, A(16), A(256), 5, 32)
_add("c", "until it is the end", """
kernel void k(global int *y, int n) {
    for (int i = 0; i != n; ++i) y[get_global_id(0) * n + i] = i; }""",
     (8,), None, A(256), 9)
_add("c", "a declared counter, set in front", """
kernel void k(global int *y, int n) {
    int i, w = get_global_size(0);
    i = get_global_id(0);
    while (i < n) { y[i] = 2; i = i + w; } }""",
     (8,), None, A(128), 50)
_add("c", "a matrix product with moving pointers", """
kernel void k(global const int *a, global const int *b, global int *c, int n, int lda,
    int ldb, int ldc) {
    int row = get_global_id(0), col = get_global_id(1), sum = 0;
    a += row * lda; b += col; c += row * ldc + col;
    for (int k = 0; k < n; k++) { sum += a[k] * b[0]; b += ldb; }
    *c = sum; }""",
     (4, 4), None, A(128), A(128), A(128), 5, 16, 16, 16)

# ---- (d) queries and arithmetic

_add("d", "a linear number", """
kernel void k(global int *y) { y[get_global_linear_id()] = 1; }""",
     (8, 4), None, A(128))
_add("d", "a linear number in the group", """
kernel void k(global int *y) {
    y[get_group_id(0) * 32 + get_local_linear_id()] = 1; }""",
     (16, 2), (8, 2), A(128))
_add("d", "groups and sizes", """
kernel void k(global int *y) {
    int group = get_group_id(1) * get_num_groups(0) + get_group_id(0);
    y[group * get_local_size(0) * get_local_size(1) + get_local_id(1) * get_local_size(0) +
      get_local_id(0)] = 1; }""",
     (16, 4), (4, 2), A(128))
_add("d", "products of 24 bits", """
kernel void k(global int *y, int w) {
    y[mad24((int)get_global_id(1), w, (int)get_global_id(0))] = mul24(2, 3); }""",
     (8, 4), None, A(256), 32)
_add("d", "edges with min and max", """
kernel void k(global int *y, global const int *x, int w) {
    int i = get_global_id(0);
    y[i] = x[max(i - 1, 0)] + x[i] + x[min(i + 1, w - 1)]; }""",
     (16,), None, A(64), A(64), 16)
_add("d", "select", """
kernel void k(global int *y, global const int *x, int w) {
    int i = get_global_id(0);
    y[i] = x[select(i + 1, 0, i == w - 1)]; }""",
     (16,), None, A(64), A(64), 16)
_add("d", "a ring by a mask", """
kernel void k(global int *y, global const int *x, int n) {
    int i = get_global_id(0);
    y[i] = x[(i + 1) & (n - 1)]; }""",
     (16,), None, A(64), A(64), 16)
_add("d", "a ring by a rest", """
kernel void k(global int *y, global const int *x, int n) {
    int i = get_global_id(0);
    y[i] = x[(i + n - 1) % n]; }""",
     (16,), None, A(64), A(64), 16)
_add("d", "rows and columns of a number", """
kernel void k(global int *y, global const int *x, int w, int pitch) {
    int i = get_global_id(0), row = i / w, col = i % w;
    y[row * pitch + col] = x[i]; }""",
     (32,), None, A(256), A(64), 8, 32)
_add("d", "shifts", """
kernel void k(global int *y) {
    int i = get_global_id(0), row = i >> 3, col = i & 7;
    y[(row << 5) + col] = 1; }""",
     (32,), None, A(256))
_add("d", "three reasons to leave", """
kernel void k(global int *y, int w, int h, int d) {
    int x = get_global_id(0), r = get_global_id(1), z = get_global_id(2);
    if (x >= w || r >= h || z >= d) return;
    y[(z * 8 + r) * 8 + x] = 1; }""",
     (8, 4, 4), None, A(512), 5, 3, 2,
     is_exact=False)
_add("d", "a border by conditions", """
kernel void k(global int *y, global const int *x, int w, int h) {
    int c = get_global_id(0), r = get_global_id(1);
    if (c > 0 && c < w - 1 && r > 0 && r < h - 1) y[r * w + c] = x[(r - 1) * w + c] + x[r *
        w + c - 1]; }""",
     (8, 8), None, A(128), A(128), 8, 8)
_add("d", "a distance", """
kernel void k(global int *y, int mid) { int i = get_global_id(0); y[abs(i - mid)] = 1; }""",
     (8,), None, A(64), 3)
_add("d", "a ternary", """
kernel void k(global int *y, global const int *x, int w) {
    int i = get_global_id(0);
    int left = i > 0 ? i - 1 : 0;
    y[i] = x[left]; }""",
     (16,), None, A(64), A(64), 16)
_add("d", "groups that the driver chooses", """
kernel void k(global int *y, int n) {
    int i = get_group_id(0) * get_local_size(0) + get_local_id(0);
    if (i < n) y[i] = 1; }""",
     (32,), None, A(128), 20)

# ---- (e) vectors in memory, pointers, structures

_add("e", "vload and vstore", """
kernel void k(global int *y, global const int *x, int from) {
    int i = get_global_id(0);
    vstore4(vload4(i, x + from), i, y); }""",
     (8,), None, A(128), A(128), 8)
_add("e", "a cast to vectors", """
kernel void k(global int *y, global const int *x, int n) {
    int i = get_global_id(0);
    if (i < n / 4) ((global int4 *)y)[i] = ((global const int4 *)x)[i]; }""",
     (16,), None, A(128), A(128), 40)
_add("e", "a pointer to a row", """
kernel void k(global int *y, global const int *x, int w) {
    int r = get_global_id(1), c = get_global_id(0);
    global int *to = y + r * w; global const int *of = x + r * w;
    to[c] = of[c + 1]; }""",
     (8, 4), None, A(256), A(256), 32)
_add("e", "a row from a helper", """
global int *row(global int *a, int r, int w) { return a + r * w; }
kernel void k(global int *y, int w, int first) { row(y, get_global_id(1) + first,
    w)[get_global_id(0)] = 1; }""",
     (8, 4), None, A(512), 32, 3)
_add("e", "one member of structures", _PARTICLE
    + """
kernel void k(global Particle *p, global int *y) {
    int i = get_global_id(0);
    y[i] = p[i].x + p[i].y + p[i].z; }""",
     (8,), None, A(128), A(64))
_add("e", "members that are changed", _PARTICLE
    + """
kernel void k(global Particle *p, int dt) {
    global Particle *one = &p[get_global_id(0)];
    one->x += one->vx * dt; one->y += one->vy * dt; }""",
     (8,), None, A(128), 3)
_add("e", "a matrix by macros", """
#define A2(i, j) a[(i) * lda + (j)]
#define B2(i, j) b[(j) * ldb + (i)]
kernel void k(global const int *a, global int *b, int lda, int ldb) {
    int i = get_global_id(0), j = get_global_id(1);
    B2(i, j) = A2(i, j); }""",
     (4, 6), None, A(256), A(256), 32, 16)
_add("e", "rows of an array type", """
kernel void k(global int (*a)[16]) { a[get_global_id(1)][get_global_id(0)] = 1; }""",
     (8, 4), None, A(256))
_add("e", "an array in a structure", """
typedef struct { int count; int item[7]; } Bin;
kernel void k(global Bin *bins, int slot) { bins[get_global_id(0)].item[slot] = 1; }""",
     (8,), None, A(128), 2)
_add("e", "a complex number", """
kernel void k(global int2 *y, global const int2 *x, int n) {
    int i = get_global_id(0);
    int2 one = x[i], other = x[i + n / 2];
    y[i] = one + other; y[i + n / 2] = one - other; }""",
     (8,), None, A(128), A(128), 16)

# ---- (f), (g): what stands beside

_add("f", "a static assertion", """
kernel void k(global int *y, int n) {
    _Static_assert(sizeof(int) == 4, "int");
    int i = get_global_id(0); if (i < n) y[i] = 1; }""",
     (16,), None, A(64), 10)
_add("g", "a transposition with a border", """
#define TILE 4
int id(int group, int inner) { return group * TILE + inner; }
kernel void k(const int one, const int two, const int ld, const int offset,
    global const int *src,
              const int to_one, const int to_two, const int to_ld, const int to_offset,
                  global int *dest) {
    local int tile[TILE][TILE + 1];
    for (int w1 = 0; w1 < 1; ++w1) for (int w2 = 0; w2 < 1; ++w2) {
        const int id1 = id(get_group_id(1), get_local_id(0)), id2 = id(get_group_id(0),
            get_local_id(1));
        if (id1 < one && id2 < two) tile[get_local_id(1)][get_local_id(0)] = src[id2 * ld +
            id1 + offset];
        else tile[get_local_id(1)][get_local_id(0)] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int x = get_global_id(0), y = get_global_id(1);
    if (x < to_one && y < to_two) dest[y * to_ld + x + to_offset] =
        tile[get_local_id(0)][get_local_id(1)];
}""",
     (8, 8), (4, 4), 6, 6, 16, 3, A(256), 7, 7, 16, 2, A(256))
_add("g", "a reduction by groups", """
kernel void k(global int *out, global const int *in, int n, local int *t) {
    int l = get_local_id(0), i = get_global_id(0);
    t[l] = i < n ? in[i] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = get_local_size(0) / 2; s > 0; s >>= 1) {
        if (l < s) t[l] += t[l + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0) out[get_group_id(0)] = t[0]; }""",
     (32,), (8,), A(64), A(128), 27, cl.LocalMemory(32))
_add("g", "im2col", """
kernel void k(int n, global const int *im, int height, int width, int ksize, int pad,
    int stride,
              int height_col, int width_col, global int *col) {
    int index = get_global_id(0);
    for (; index < n; index += get_global_size(0)) {
        int w_out = index % width_col, h_index = index / width_col;
        int h_out = h_index % height_col, channel_in = h_index / height_col;
        int channel_out = channel_in * ksize * ksize;
        int h_in = h_out * stride - pad, w_in = w_out * stride - pad;
        global int *to = col + (channel_out * height_col + h_out) * width_col + w_out;
        global const int *of = im + (channel_in * height + h_in) * width + w_in;
        for (int i = 0; i < ksize; ++i) for (int j = 0; j < ksize; ++j) {
            int h = h_in + i, w = w_in + j;
            *to = (h >= 0 && w >= 0 && h < height && w < width) ? of[i * width + j] : 0;
            to += height_col * width_col;
        }
    } }""",
     (16,), None, 16, A(64), 4, 4, 3, 1, 1, 4, 4, A(512), is_exact=False)

# fmt: on


# ---- what is measured and inferred


def _options(case: Case) -> list[str]:
    return ["-cl-std=CL2.0"] if "linear_id" in case.source else []


def values_of(case: Case) -> list[Any]:
    """Return the arguments as a launch takes them, but for arrays."""
    return [np.int32(one) if isinstance(one, int) else one for one in case.arguments]


def measured(case: Case, queue: cl.CommandQueue) -> dict[int, tuple[set[int], set[int]]]:
    """Return the bytes of each array that a launch reads and writes, by parameter."""
    context = queue.context
    kernel = cl.Kernel(cl.Program(context, case.source).build(["-w", *_options(case)]), "k")
    rng = np.random.default_rng(1)
    start = {at: rng.integers(1, 2**30, one.words, "i4") for at, one in enumerate(case.arguments)
             if isinstance(one, A)}  # fmt: skip
    buffers = {at: cl.Buffer(context, 0, one.nbytes) for at, one in start.items()}
    given = [buffers.get(at, one) for at, one in enumerate(values_of(case))]

    def run(memory: dict[int, Any]) -> dict[int, Any]:
        for at, one in memory.items():
            cl.enqueue_copy(queue, buffers[at], one, is_blocking=False)
        kernel(queue, case.sizes, case.local, *given)
        out = {at: np.empty_like(one) for at, one in memory.items()}
        for at, one in out.items():
            cl.enqueue_copy(queue, one, buffers[at])
        return out

    other = {at: one ^ 0x2A5A5A5A for at, one in start.items()}
    first, second = run(start), run(other)
    written = {at: (first[at] != start[at]) | (second[at] != other[at]) for at in start}
    found = {}
    for at, one in start.items():
        reads = set()
        for word in range(len(one)):
            changed = {**start, at: one.copy()}
            changed[at][word] ^= 0x15A5A5A5
            after = run(changed)
            differs = {of: after[of] != first[of] for of in start}
            if not written[at][word]:
                differs[at][word] = False
            if any(part.any() for part in differs.values()):
                reads.add(word)
        words = set(np.flatnonzero(written[at]).tolist())
        found[at] = _bytes_of(reads), _bytes_of(words)
    return found


def _bytes_of(words: set[int]) -> set[int]:
    return {4 * word + byte for word in words for byte in range(4)}


def inferred(case: Case) -> tuple[dict[int, tuple[set[int], set[int]]], str]:
    """Return the bytes of each array that are inferred, and why there is no outline."""
    signature = from_source(case.source, "k", _options(case), None)
    made = binder(signature)
    arguments = [np.asarray(one).tobytes() if not isinstance(one, (A, cl.LocalMemory)) else b""
                 for one in values_of(case)]  # fmt: skip
    numbers = []
    for one in made.numbers:
        index, offset, code = one if isinstance(one, tuple) else (one, 0, "i")
        numbers.append(int(np.frombuffer(arguments[index], code or "i", 1, offset)[0]))
    found: dict[int, tuple[set[int], set[int]]] = {}
    reached = made.reached(case.sizes, case.local, None, numbers, None) if made.has_ranges else {}
    for index, one in enumerate(case.arguments):
        if isinstance(one, A):
            own, nbytes = reached.get(index), 4 * one.words
            none: tuple[Any, Any] = ((), ()) if signature.outline else (None, None)
            of = (own.reads, own.writes) if own else none
            mode = signature.parameters[index].mode
            reads, writes = (
                _within(part, nbytes) if letter in mode else set()
                for letter, part in zip("rw", of, strict=True)
            )
            found[index] = reads, writes
    return found, signature.unclear


def _within(rectangles: Any, nbytes: int) -> set[int]:
    if rectangles is None:
        return set(range(nbytes))
    return {
        byte
        for start, pitch, rows, width in rectangles
        for row in range(rows)
        for byte in range(max(start + row * pitch, 0), min(start + row * pitch + width, nbytes))
    }


def main() -> None:
    """Print a line for each kernel: its form, and bytes inferred and touched."""
    context = cl.Context([devices.choose()])
    queue = cl.CommandQueue(context)
    exact: dict[str, list[int]] = {}
    for case in CASES:
        if len(sys.argv) > 1 and sys.argv[1] not in case.name:
            continue
        seen = measured(case, queue)
        found, why = inferred(case)
        cells, misses = [], 0
        for at, both in seen.items():
            for letter, real, said in zip("rw", both, found[at], strict=True):
                misses += len(real - said)
                if real or said:
                    whole = len(said) == 4 * case.arguments[at].words and real != said
                    cells.append(f"{letter}{at} {'all ' if whole else ''}{len(said)}/{len(real)}")
        is_exact = all(tuple(both) == tuple(found[at]) for at, both in seen.items())
        count = exact.setdefault(case.form, [0, 0, 0])
        count[0] += 1
        count[1] += is_exact
        count[2] += any(" all " in f" {cell}" or "all" in cell for cell in cells)
        print(f"{case.form} {case.name:42} {'exact' if is_exact else '     '} "
              f"{', '.join(cells)} {'MISSES ' + str(misses) if misses else ''} {why}")  # fmt: skip
    for form, (many, same, whole) in exact.items():
        print(f"({form}): {many} kernels, {same} exact, {whole} with a whole argument")


if __name__ == "__main__":
    main()
