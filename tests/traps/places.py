"""Where a store lands: vectors and structures by parts, rows of rows, pointers that two ways"
" lead to.

Every trap moves a place in several ways at once, so that a part which is taken for another shows.
"""

from __future__ import annotations

import numpy as np

from traps.case import Image, Local, Same, Trap, body, holding, i, mem, some_bytes

# `n` is 13.
_VECTORS = {
    "swizzles": (
        "global int4 *p = (global int4 *)y; p[1].yw = (int2)(1, 2); p->hi = (int2)(3, 4);"
        " (*(p + n % 5)).odd = (int2)(5, 6); p[6].s3 = p[7].s10.x;"
    ),
    "swizzles of three": (
        "global int3 *p = (global int3 *)y; p[1] = (int3)(1, 2, 3); p[2].z = 4;"
        " p[n % 4 + 2].xz = p[9].zx; p->y = 1;"
    ),
    "moves": (
        "global int4 *p = (global int4 *)y; *p++ = (int4)(1); (p++)->x = 2; (*++p).w = 3;"
        " p[1].y = p[-1].z; (--p)->xy = 5;"
    ),
    "element by address": (
        "global int4 *p = (global int4 *)y + 2; ((global int *)&p[1])[1] = 4;"
        " ((global int2 *)(p + 2))->y = 9; (1 + (global int *)&p[3])[n % 3] = 9;"
    ),
    "three shorts": (
        "global short3 *p = (global short3 *)y; p[5] = (short3)(1, 2, 3);"
        " vstore3((short3)(4, 5, 6), 5, (global short *)y);"
        " vstore3((short3)(n), n, (global short *)y + 1);"
    ),
    "halves read": (
        "y[60] = vload_half(n, (global half *)y) + vload_half3(n, (global half *)y + 3).z * 9"
        " + vloada_half3(n + 1, (global half *)y).y + vloada_half4(2, (global half *)y + 4).w;"
    ),
    "odd stores": (
        "vstore2((int2)(1, 2), n, y + 1); vstore8((uchar8)(3), n, (global uchar *)y + 1);"
        " vstore4((char4)(7), -1, (global char *)y + 101);"
        " vstore16((char16)(n), n % 3, 3 + (global char *)y);"
    ),
    "unsigned index": (
        "uint k = 3; vstore2((int2)(1, 2), k - 2, y); vstore2((int2)(1, 2), (uchar)(k + 255), y"
        " + 9);"
        " int m = -1; vstore2((int2)(3), m, y + 30);"
    ),
    "effects": (
        "int k = 1; vstore2((int2)(1), k++, y + 10); global int *p = y + 20;"
        " vstore2((int2)(2), 1, p++); vstore2((int2)(2), k, p += 9); *p = 3;"
    ),
    "shuffled": (
        "int4 v = (int4)(n, 5, 20, 40); int4 w = __builtin_shufflevector(v, v, 3, 2, 1, 0);"
        " y[w.x] = 1; v.xy = v.wz; y[v.x] = 3; v.s0 += 2; y[v.s0] = 1; v[n & 3] = 20; y[v.y] = 2;"
    ),
}

_ROWS = {
    "of four": (
        "global int (*a)[4] = (global int (*)[4])y; a[n % 5][2] = 1; (*a)[9] = 2; (*(a + 3))[1]"
        " = 3;"
        " a[2][-3] = 4; *(*(a + 1) + 7) = 5; (&a[10])[0][1] = 5; (&a[2][1])[30] = 2;"
    ),
    "of rows": (
        "global int (*a)[2][4] = (global int (*)[2][4])y; a[n % 5][1][2] = 1; (*a[2])[1] = 2;"
        " a[0][5][3] = 3; global int (*b)[4] = a[6]; b[1][3] = 5; *b[-2] = 5;"
    ),
    "in structures": (
        "struct t { char c; int a[3]; }; struct s { struct t t[2]; short h; };"
        " global struct s *p = (global struct s *)y; p[1].t[1].a[2] = 1; p[n % 4].h = 2;"
        " (p + 3)->t->a[1] = 3; p->t[n & 1].c = 4; p[2].t[3].c = 5;"
    ),
    "copies": (
        "struct s { int a, b; char c; }; global struct s *p = (global struct s *)y; p[3] = p[1];"
        " struct s l = p[5]; p[n % 5] = l; *(p + 1) = (struct s){1, 2, 3}; struct s *q = &l; q->a ="
        " n; p[2].b = q->a; p[0] = n > 3 ? p[4] : p[2];"
    ),
    "unions": (
        "union u { int i; uchar b[4]; int2 v; }; global union u *p = (global union u *)y; p[3].b[2]"
        " = 1; p[5].v.y = 2; p[n % 9].i = 3; p[8].v = (int2)(4, 5); p[10].b[n] = 1;"
    ),
}

_POINTERS = {
    "through char": (
        "global char *c = (global char *)y + n; *(global int4 *)(c + 3) = (int4)(1);"
        " ((global short *)c)[5] = 2; *(global int *)&c[-5] = 3; (*(global long *)(c + 40))++;"
    ),
    "compared": (
        "global int *p = y, *e = y + n; while (p < e) p++; *p = 1; for (p = y + 20; p != y + 25;"
        " ++p)"
        " *p = 2; if (p > y) p = y + 50; *p = 4; if (y < p) *(y + 60) = 2;"
    ),
    "joined": (
        "global int *p = y; if (n > 20) p += 5; else p += 20; *p = 1; p = y + 40; if (n > 5) { p++;"
        " if (n > 10) p++; } *p = 3; (n & 1 ? &y[n] : &y[3])[1] = 4;"
    ),
    "kept, then moved": (
        "global int *p = y, *q = p; p += 9; *q = 1; q = p++; *q = 2; *p = 3; global int *r = (q"
        " += 5,"
        " q); *r = 4; r = q = p = y + 50; p++; q += 2; r[3] = 1; *p = 2; *q = 3;"
    ),
    "in a union": (
        "union u { global int *p; global char *c; } v; v.p = y; v.c += 12; *v.p = 1; v.p++; v.c[n]"
        " = 2;"
    ),
    "in an array of structures": (
        "struct s { global int *p; int n; } s[2]; s[0].p = y + 3; s[1].p = s[0].p + 20; s[1].n = 4;"
        " s[1].p[s[1].n] = 1; s[0].p++; *s[0].p = 2; struct s *q = s + 1; (q--)->p[5] = 2; q->p[1]"
        " = 1;"
    ),
    "in nested initialisers": (
        "struct s { global int *p[2]; struct { global int *q; } t; } s = {.t.q = y + 40, .p ="
        " {[1] ="
        " y + 20}}; *s.p[1] = 1; *s.t.q = 2; global int *a[3] = {[2] = y + 50}; *a[2] = 3;"
    ),
    "numbers by address": (
        "int k[1] = {3}; k[0] = 20; y[*k] = 1; int m = 7; *(&m) = 9; y[m] = 2; *&m += 30; y[m] = 3;"
        " (*(char *)&m) = 2; y[m & 63] = 4;"
    ),
    "atomics": (
        "int k = atomic_add(&y[n], 1); y[k & 63] = 1; global int *p = y; atomic_inc(p++); *p = 4;"
        " atomic_add(p += 9, n++); *p = 3; y[n] = 5; atom_inc((global ulong *)(y + 40));"
    ),
}

_GROUPS = {
    "strided copy": (
        "local int t[4]; t[get_local_id(0)] = n; barrier(CLK_LOCAL_MEM_FENCE); event_t e ="
        " async_work_group_strided_copy(y + get_group_id(0), t, 4, (size_t)n, 0);"
        " wait_group_events(1, &e);"
    ),
    "copy of a counted length": (
        "local int t[8]; t[get_local_id(0)] = 1; t[get_local_id(0) + 4] = 2;"
        " barrier(CLK_LOCAL_MEM_FENCE); uint many = n - 8 + get_group_id(0); event_t e ="
        " async_work_group_copy(y + 20 * get_group_id(0), t, many, 0); wait_group_events(1, &e);"
    ),
    "copy of nothing": (
        "local int t[4]; t[get_local_id(0)] = 1; barrier(CLK_LOCAL_MEM_FENCE); event_t e ="
        " async_work_group_copy(y + 60, t, n - 13, 0); wait_group_events(1, &e); y[3] = 1;"
    ),
    "last turn": (
        "uint l = get_local_id(0); for (uint s = get_local_size(0) / 2; s; s >>= 1) { if (l < s)"
        " y[l + s * 4] = s; barrier(CLK_GLOBAL_MEM_FENCE); } if (!l) y[50 + get_group_id(0)] = n;"
    ),
    "by the last item": (
        "if (get_local_id(0) + 1 == get_local_size(0)) for (int k = 0; k < 3; k++)"
        " y[get_group_id(0) * 9 + k * n % 7] = k;"
    ),
    "below the offset": (
        "size_t g = get_global_id(0) - get_global_offset(0); y[g * 2] = 1; y[(int)g - 1 + n] = 2;"
    ),
}

_IMAGE = Image((8, 2), some_bytes(64, 5))

TRAPS: list[Trap] = [
    *(
        body(f"{family} {name}", text, i(13), params="int n")
        for family, traps in (("vector", _VECTORS), ("row", _ROWS), ("pointer", _POINTERS))
        for name, text in traps.items()
    ),
    *(
        body(f"group {name}", text, i(13), params="int n", size=(8,), local=(4,))
        for name, text in _GROUPS.items()
    ),
    body(
        "group below an offset", _GROUPS["below the offset"], i(13), params="int n", size=(8,),
        local=(4,), offset=(5,),
    ),
    Trap(
        "numbers of a structure",
        "struct at$ { char c; int from; short step[3]; long n; }; kernel void k$(global int *y,"
        " struct at$ s) { for (int k = 0; k < s.n; k++) y[s.from + k * s.step[1]] = s.c; }",
        (
            mem(),
            np.array(
                (-1, 5, (0, 3, -1), 4),
                np.dtype(
                    [("c", "i1"), ("from", "i4"), ("step", "i2", 3), ("n", "i8")], align=True
                ),
            ),
        ),
    ),
    Trap(
        "one memory as two types",
        "kernel void k$(global int *y, global uchar *c, int n) { y[c[n] & 31] = 1; c[n * 4 + 130]"
        " = n; }",
        (mem(), Same(0), i(13)),
    ),
    Trap(
        "one memory, index from itself",
        "kernel void k$(global const int *x, global int *y, local int *l) { int g ="
        " get_global_id(0); l[get_local_id(0)] = x[g]; barrier(CLK_LOCAL_MEM_FENCE); y[40 +"
        " (l[3 - get_local_id(0)] & 7)] = 1; }",
        (holding(range(8), count=64), Same(0), Local(16)),
        size=(8,),
        local=(4,),
    ),
    Trap(
        "image row by row",
        "constant sampler_t s$ = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP |"
        " CLK_FILTER_NEAREST; kernel void k$(read_only image2d_t m, global int *y) { int2 at ="
        " (int2)(get_global_id(0), get_global_id(1)); y[at.y * 8 + at.x] = read_imageui(m, s$, at +"
        " 1).x; }",
        (_IMAGE, mem()),
        size=(8, 2),
        local=(4, 1),
    ),
]  # fmt: skip
