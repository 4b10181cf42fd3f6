"""Kernels as applications have them: in groups, on several axes, and on more memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from traps.case import Local, Same, Trap, holding, i, mem

# On 8 work-items in groups of 4: `g`, `l`, `b` and `e` are its numbers, and the size.
_GROUPS: dict[str, str] = {
    "sum over a group": (
        "local int t[4]; t[l] = y[g]; barrier(CLK_LOCAL_MEM_FENCE); for (int s = 2; s > 0; s >>= 1)"
        " { if (l < s) t[l] += t[l + s]; barrier(CLK_LOCAL_MEM_FENCE); } if (!l) y[b + 40] = t[0];"
    ),
    "scan over a group": (
        "local int t[2][4]; int in = 0; t[0][l] = y[g]; barrier(CLK_LOCAL_MEM_FENCE); for (int s ="
        " 1; s < 4; s *= 2) { t[1 - in][l] = l >= s ? t[in][l] + t[in][l - s] : t[in][l]; in = 1 -"
        " in; barrier(CLK_LOCAL_MEM_FENCE); } y[g + 20] = t[in][l];"
    ),
    "bitonic step": (
        "int s = 2, p = g ^ s; if (p > g) { int u = y[g], v = y[p]; if ((u > v) == !(g & 4)) { y[g]"
        " = v; y[p] = u; } else y[p] = v + 1; }"
    ),
    "halo": (
        "local int t[6]; t[l + 1] = y[g]; if (l == 0) t[0] = g ? y[g - 1] : 0; if (l == 3) t[5] ="
        " g + 1 < e ? y[g + 1] : 0; barrier(CLK_LOCAL_MEM_FENCE); y[g + 20] = t[l] + t[l + 2];"
    ),
    "histogram by groups": (
        "local int h[8]; h[l] = h[l + 4] = 0; barrier(CLK_LOCAL_MEM_FENCE); atomic_inc(&h[y[g] &"
        " 7]); barrier(CLK_LOCAL_MEM_FENCE); atomic_add(&y[l + 40], h[l]); atomic_add(&y[l + 44],"
        " h[l + 4]);"
    ),
    "transpose by a tile": (
        "local int t[4][5]; for (int k = 0; k < 4; k++) t[k][l] = y[16 * b + 4 * k + l];"
        " barrier(CLK_LOCAL_MEM_FENCE); for (int k = 0; k < 4; k++) y[16 * b + 4 * k + l] ="
        " t[l][k];"
    ),
    "butterfly": (
        "int s = 4, k = g & (s - 1), j = (g / s) * 2 * s + k; int u = y[j], v = y[j + s]; y[j] = u"
        " + v; y[j + s] = u - v;"
    ),
    "grid stride with a tail": (
        "for (int k = 4 * g; k < 46; k += 4 * e) { int r = min(4, 46 - k); for (int j = 0; j < r;"
        " j++) y[k + j] = r; }"
    ),
    "grid stride backwards": "for (int k = 50 - g; k >= 3; k -= e) y[k] = g;",
    "blocks of work": (
        "int per = (50 + (int)e - 1) / (int)e, from = g * per, to = min(from + per, 50); for (int k"
        " = from; k < to; k++) y[k] = g;"
    ),
    "uneven shares": (
        "int q = 45 / (int)e, r = 45 % (int)e, from = g * q + min(g, r), many = q + (g < r); for"
        " (int k = 0; k < many; k++) y[from + k] = many;"
    ),
    "rows of a triangle": "for (int k = 0; k <= g; k++) y[g * (g + 1) / 2 + k] = g;",
    "diagonal": "for (int k = 0; k < 8; k++) y[(g + k) % 8 * 8 + k] = g;",
    "checkerboard": "for (int k = g & 1; k < 8; k += 2) y[g * 8 + k] = k;",
    "last item has more": "y[g] = 1; if (g == e - 1) for (int k = e; k < 20; k++) y[k] = 2;",
    "group decides": "if (b) y[20 + l] = 1; else y[l * 5] = 2;",
    "two of each pair": "if (g & 1) y[g - 1] = 1; else y[g + 21] = 2;",
    "local pointer by a condition": (
        "local int t[8]; local int *p = l & 1 ? t : t + 4; p[l] = g; barrier(CLK_LOCAL_MEM_FENCE);"
        " y[20 + g] = t[l & 1 ? l : l + 4]; y[t[1] + 40] = 5;"
    ),
    "local pointers change places": (
        "local int t[4], u[4]; local int *p = t, *q = u; for (int k = 0; k < 3; k++) { p[l] = k +"
        " l; barrier(CLK_LOCAL_MEM_FENCE); local int *s = p; p = q; q = s; } y[g] = q[3 - l];"
    ),
    "group copy to a part": (
        "local int t[4]; event_t v = async_work_group_copy(t, y + 4 * b + 2, 4, 0);"
        " wait_group_events(1, &v); barrier(CLK_LOCAL_MEM_FENCE); y[20 + g] = t[3 - l];"
    ),
    "group copies in a loop": (
        "local int t[4]; for (int k = 0; k < 2; k++) { event_t v = async_work_group_copy(t, y + 8 *"
        " k + 4 * b, 4, 0); wait_group_events(1, &v); y[20 + 8 * k + g] = t[l];"
        " barrier(CLK_LOCAL_MEM_FENCE); }"
    ),
    "linear ids": (
        "y[get_global_linear_id() * 2] = 1; y[get_local_linear_id() * 2 + 8 * b + 21] = 2;"
    ),
    "index by what a neighbour wrote": (
        "local int t[4]; t[l] = (l * 7 + 3) & 3; barrier(CLK_LOCAL_MEM_FENCE); y[t[3 - l] * 8 + b]"
        " = 1;"
    ),
    "item number kept narrow": (
        "uchar c = g * 40; y[c & 63] = 1; char d = g * 40; y[(d >> 2) + 32] = 1;"
    ),
    "item number as a float": "float f = g * 0.75f; y[(int)f] = 1; y[(int)(f + 30.5f)] = 1;",
    "unsigned distance": (
        "uint d = g - 3u; if (d < 3u) y[d] = 1; else if (d > 9u) y[20 + (d & 7)] = 2; else y[40 +"
        " d] = 3;"
    ),
    "distance as an int": (
        "int d = (int)g - 3; if (d < 0) y[d + 10] = 1; else y[20 + d / 2 * 2 + (d & 1)] = 2;"
    ),
    "many guards": (
        "if (g < 2) return; if (g == 5) { y[50] = 1; return; } for (int k = 0; k < 4; k++) { if (k"
        " == g - 2) return; y[g * 4 + k] = 1; } y[g] = 2;"
    ),
    "loop that ends by an item": (
        "int k = g; do { y[k + 8 * (k / 8)] = 1; k += 8; } while (k < 24);"
    ),
    "printf in between": 'if (g == 3) printf("%d\\n", y[g + 9]); y[g * 3] = 1;',
}
_GROUPS_HEAD = (
    "int g = get_global_id(0), l = get_local_id(0), b = get_group_id(0); uint e = "
    "get_global_size(0);"
)

# Two or three axes: size, local size, offset, body; `X`, `Y` and `W` are the ids.
_Size = tuple[int, ...]
_AXES: dict[str, tuple[_Size, _Size, _Size | None, str]] = {
    "tile with an offset": ((3, 2), (1, 1), (2, 1), "y[Y * 8 + X] = X;"),
    "tile without its offset": (
        (3, 2),
        (3, 1),
        (2, 1),
        "y[(Y - get_global_offset(1)) * 3 + X - get_global_offset(0)] = 1;",
    ),
    "linear id with an offset": ((3, 2), (1, 2), (5, 3), "y[get_global_linear_id() + 20] = 1;"),
    "group with an offset": (
        (4, 2),
        (2, 1),
        (3, 1),
        ("y[get_group_id(1) * 16 + get_group_id(0) * 4 + get_local_id(0)] = 1;"),
    ),
    "three axes with an offset": (
        (2, 2, 2),
        (1, 1, 2),
        (1, 0, 2),
        "y[W * 12 + Y * 5 + X] = 1;",
    ),
    "swapped axes": ((4, 2), (2, 2), (0, 4), "y[X * 9 + Y] = 1;"),
    "guard of two axes": (
        (5, 4),
        (5, 1),
        (1, 1),
        ("if (X + Y > 6 || X * Y == 6) return; y[Y * 8 + X] = 1;"),
    ),
    "guard by size and offset": (
        (5, 4),
        (1, 1),
        (1, 2),
        "if (X == get_global_offset(0) + get_global_size(0) - 1) return; y[Y * 8 + X] = 1;",
    ),
    "offset alone": ((4,), (2,), (7,), "y[X] = 1; y[X - get_global_offset(0) + 20] = 2;"),
    "offset and a stride": (
        (4,),
        (4,),
        (3,),
        "for (int k = X; k < 40; k += get_global_size(0)) y[k] = 1;",
    ),
    "offset in a helper": ((4,), (1,), (5,), "y[where$(3)] = 1;"),
    "five points": (
        (4, 3),
        (1, 1),
        (1, 1),
        "y[(Y * 6 + X) + 30] = y[Y * 6 + X - 1] + y[Y * 6 + X + 1] + y[(Y - 1) * 6 + X] + y[(Y + 1)"
        " * 6 + X];",
    ),
    "down by two": (
        (4, 4),
        (2, 2),
        None,
        ("y[(Y / 2 * 2) * 4 + X / 2 * 2 + (Y & 1) * 4 + (X & 1) + 8] = 1;"),
    ),
    "rows of groups": (
        (4, 4),
        (2, 2),
        None,
        "y[(get_group_id(1) * get_num_groups(0) + get_group_id(0)) * 4 + get_local_id(1) *"
        " get_local_size(0) + get_local_id(0)] = 1;",
    ),
    "rest and quotient of one id": (
        (12,),
        (4,),
        (4,),
        ("int r = X / 5, c = X % 5; y[c * 8 + r] = 1;"),
    ),
    "negative of an offset": ((4,), (1,), (9,), "int k = (int)X - 12; y[k < 0 ? k + 30 : k] = 1;"),
    "volume": (
        (2, 3, 2),
        (2, 1, 1),
        None,
        "for (int k = 0; k < 2; k++) y[((W * 3 + Y) * 2 + X) * 2 + k] = k;",
    ),
    "linear id of three": (
        (2, 3, 2),
        (1, 3, 1),
        (1, 2, 3),
        ("y[get_global_linear_id() * 2 + 1] = get_local_linear_id();"),
    ),
    "pitch by a size": ((4, 3), (4, 1), None, "y[Y * (get_global_size(0) + 1) + X] = 1;"),
    "offset by data": ((4,), (1,), (2,), "int k = y[X] & 3; y[X * 4 + k + 20] = 1;"),
}

# More memory: parameters, their arguments, the body.
_MEMORY: dict[str, tuple[str, tuple[Any, ...], str]] = {
    "saxpy of views that are one": (
        "global int *x, global const int *z",
        (Same(0), Same(0)),
        ("for (int k = 0; k < 9; k++) x[k + 9] = 3 * z[k] + y[k];"),
    ),
    "restrict that lies": ("global int *restrict x", (Same(0),), "y[3] = 1; x[4] = y[3] + 1;"),
    "one const of three": (
        "global const int *a, global int *b, constant int *c",
        (Same(0), Same(0), Same(0)),
        "b[9] = a[8] + c[7]; y[6] = 1;",
    ),
    "sparse rows": (
        "global const int *from, global const int *at, int n",
        (holding([0, 2, 3, 7, 9]), holding([3, 9, 1, 40, 41, 42, 43, 7, 7]), i(4)),
        "for (int r = 0; r < n; r++) for (int k = from[r] & 7; k < (from[r + 1] & 7); k++) y[at[k]"
        " & 63] = r;",
    ),
    "gather": (
        "global const int *at, global const int *z, int n",
        (holding([3, 9, 1, 40]), mem(seed=5), i(4)),
        "for (int k = 0; k < n; k++) y[k] = z[at[k] & 63] + 1;",
    ),
    "arrays of a structure of arrays": (
        "global float *p, int n",
        (mem(60, 4, 3), i(12)),
        "global float *px = p, *py = px + n, *pz = py + n; for (int k = 0; k < 3; k++) { px[k] ="
        " 1; py[2 * k] = 2; pz[n - 1 - k] = 3; }",
    ),
    "header and body": (
        "global uint *file",
        (holding([2, 40, 9, 7], "u4", 64),),
        "uint many = file[0] & 3, at = file[1] & 31; for (uint k = 0; k < many; k++) file[at + k] ="
        " 7; y[many] = 1;",
    ),
    "long sizes": (
        "long rows, long pitch, ulong from",
        (np.int64(4), np.int64(9), np.uint64(2)),
        "for (long r = 0; r < rows; r++) for (ulong c = from; c < from + 3; c++) y[r * pitch + c] ="
        " 1;",
    ),
    "short sizes": (
        "short rows, uchar pitch, char from",
        (np.int16(3), np.uint8(17), np.int8(-2)),
        "for (short r = 0; r < rows; r++) y[r * pitch + from + 5] = 1; uchar p = pitch * 16; y[p &"
        " 63] = 2;",
    ),
    "end instead of many": (
        "int from, int to",
        (i(7), i(19)),
        ("for (int k = to; --k >= from;) y[k] = 1; y[to - from] = 2;"),
    ),
    "negative many": (
        "int n",
        (i(-4),),
        ("for (int k = 0; k < n; k++) y[k] = 1; for (int k = 0; k > n; k--) y[k + 20] = 1;"),
    ),
    "many of zero": (
        "uint n",
        (np.uint32(0),),
        ("for (uint k = 0; k < n - 1u && k < 3u << 30; k += 1u << 30) y[k >> 26] = 1;"),
    ),
    "float limit": (
        "float limit",
        (np.float32(4.5),),
        ("for (int k = 0; k < limit; k++) y[k] = 1; y[(int)ceil(limit) + 9] = 2;"),
    ),
    "bytes between ints": (
        "global uchar *b, int n",
        (mem(256, 1, 7), i(9)),
        "global int *w = (global int *)(b + 4 * n); w[2] = 1; b[w[3] & 31] = 2; *(global ushort"
        " *)(b + 2 * n) = 3;",
    ),
    "copies of structures": (
        "global struct Q$ *q, int n",
        (mem(64, 4, 3), i(3)),
        "struct Q$ t = q[n]; t.b[1] = t.a; q[n + 1] = t; q->b[2] = 5; y[q[2].c.y & 63] = 1;",
    ),
    "vectors by value": (
        "int2 size, int4 o",
        (np.array([3, 7], "i4"), np.array([1, 2, 40, 50], "i4")),
        "for (int k = 0; k < size.x; k++) y[k * size.y] = 1; y[o.z] = 2; y[o.s3 + o.lo.y] = 3;",
    ),
    "vector as rows": (
        "global int3 *v",
        (mem(64, 4, 3),),
        ("v[2] = (int3)(1, 2, 3); v[4].y = 3; vstore3((int3)(7), 9, (global int *)v);"),
    ),
    "halves": (
        "global half *h, int n",
        (mem(64, 2, 3), i(5)),
        (
            "vstore_half(3.0f, n, h); vstore_half3((float3)(2), 4, h); "
            "vstorea_half2((float2)(1), 20, h);"
        ),
    ),
    "local argument as two": (
        "local int *t, int n",
        (Local(64), i(3)),
        "local int *a = t, *b = t + 8; local char *c = (local char *)(b + 4); a[n] = y[n]; b[n] ="
        " a[n] + 1; c[n] = 7; y[(b[n] & 7) + c[n]] = 1;",
    ),
    "double and long": (
        "global double *d, global long *l, int n",
        (mem(16, 8, 3), mem(16, 8, 4), i(3)),
        "d[n] = 1; l[n + 1] = l[2] + 1; ((global int *)l)[2 * n + 3] = 1; y[9] = (int)(d[n] > 0);",
    ),
}
_MEMORY_BEFORE = "struct Q$ { int a; short b[4]; int2 c; };\n"

TRAPS: list[Trap] = [
    *(
        Trap(
            f"groups {name}",
            f"kernel void k$(global int *y) {{ {_GROUPS_HEAD} {text} }}",
            (mem(),),
            size=(8,),
            local=(4,),
        )
        for name, text in _GROUPS.items()
    ),
    *(
        Trap(
            f"axes {name}",
            "size_t where$(uint by) { return get_global_id(0) * by - get_global_offset(0); }\n"
            "kernel void k$(global int *y) { size_t X = get_global_id(0), Y = get_global_id(1), W ="
            f" get_global_id(2); {text} }}",
            (mem(),),
            size=size,
            local=local,
            offset=offset,
        )
        for name, (size, local, offset, text) in _AXES.items()
    ),
    *(
        Trap(
            f"memory {name}",
            f"{_MEMORY_BEFORE}kernel void k$(global int *y, {parameters}) {{ {text} }}",
            (mem(), *args),
        )
        for name, (parameters, args, text) in _MEMORY.items()
    ),
]
