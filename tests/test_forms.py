"""Vectors, structures and all kinds of loops: exact ranges, and the twins that must stay wide."""

from __future__ import annotations

import os
import random
from typing import Any

import affine_programs as programs
import inference_corpus as corpus
import numpy as np
import pyopencl as cl
import pytest
import rich_programs as rich
import value_programs
from test_affine import cut, elements, held, of, reached, record, sizes_of

import acs_cl as acs
from acs_cl.access.bands import Groups
from acs_cl.access.inference import from_source
from acs_cl.opencl_c.parse.unsaid import components

WORDS = 64
"""Elements of x. An index that may be any number reaches all of them."""

HEAD = """
typedef struct { int a, b; } Pair;
typedef struct { Pair p; short s; uchar c; int t[2]; int2 v; } Many;
typedef struct __attribute__((packed)) { uchar c; int a; } Packed;
typedef struct { union { int a; float f; }; int b; } Both;
typedef union { int i; short s[2]; } Either;
typedef struct { int a; struct { int b; union { int c; short d; }; }; } Inner;
void change(int *at) { *at = 9; }
int old_style(a, b) uchar a; int b; { return a + b; }
void change_pair(Pair *at) { at->a = 9; }
int by_value(Pair p) { p.a += 1; return p.a; }
Pair turned(Pair p) { Pair q = { p.b, p.a }; return q; }
int2 swapped(int2 v) { return v.yx; }
int2 early(int2 v) { if (v.x > 3) return v; v.x += 10; return v; }
"""

I = "int i = get_global_id(0);"  # noqa: E741
ALL = range(WORDS)
EXACT: list[tuple[str, Any]] = [
    # parts of vectors
    (f"{I} int2 v = (int2)(i, 5); x[v.x + v.y] = 1;", range(5, 9)),
    (f"{I} int2 v = (int2)(i, 5); v.xy = v.yx; x[v.y] = 1;", range(4)),
    (f"{I} int2 v = (int2)(i, 5); v = v.yx; x[v.s0] = 1;", [5]),
    (f"{I} int4 v = (int4)(i, 5, 7, 9); v.lo = v.hi; x[v.x] = 1; x[v.y] = 1;", [7, 9]),
    (f"{I} int4 v = (int4)(i, 5, 7, 9); v.even = v.odd; x[v.x] = 1; x[v.z] = 1;", [5, 9]),
    (f"{I} int4 v = (int4)(i, 5, 7, 9); v.s3210 = v; x[v.w] = 1;", range(4)),
    (f"{I} int3 v = (int3)(i, 5, 7); x[v.hi.x] = 1;", [7]),
    ("int4 v = (int4)((int2)(1, 2), (int2)(3, 4)); x[v.z] = 1;", [3]),
    ("int2 v = 3; v++; ++v; v -= (int2)(1, 2); x[v.x] = x[v.y] = 1;", [3, 4]),
    ("int2 v = (int2)(3, 4); v[1] = 7; x[v.y] = 1;", [7]),
    ("int2 v = (int2)(3, 4), w; w = v; v.x = 9; x[w.x] = 1;", [3]),
    ("int2 v = (int2)(3, 4); int2 w = -v + 10; x[w.y] = 1;", [6]),
    ("int2 v = (int2)(3, 4); x[(v * 2 + 1).y] = 1;", [9]),
    ("int2 v = min((int2)(3, 40), 20); x[v.y] = 1;", [20]),
    ("int2 v = n > 3 ? (int2)(3, 4) : (int2)(5, 6); x[v.y] = 1;", [4]),
    ("int2 v = swapped((int2)(3, 4)); x[v.x] = 1;", [4]),
    ("x[swapped((int2)(3, 4)).y] = 1;", [3]),
    ("int2 v = early((int2)(n, 4)); x[v.x] = 1;", [5]),
    ("int2 v = early(early((int2)(3, 4))); x[v.x] = 1;", [13]),
    ("uint2 u = (uint2)(3, 4); int2 v = convert_int2(u); x[v.y] = 1;", [4]),
    ("uint2 u = (uint2)(3, 4); int2 v = as_int2(u); x[v.y] = 1;", [4]),
    ("uchar2 v = (uchar2)(250, 4); v += (uchar)3; x[v.x - 250] = 1;", [3]),
    ("long2 v = (long2)(1, 2); v.y += 1L << 40; x[v.y - (1L << 40)] = 1;", [2]),
    (f"{I} int2 v; v.x = i; v.y = 4; if (v.x < 2) x[v.x] = 1; else x[v.y] = 1;", [0, 1, 4]),
    (f"{I} int2 v = (int2)(i, 3); if (i > 1) v.y = 8; x[v.y] = 1;", range(3, 9)),
    ("int2 v = 0; for (v.x = 0; v.x < 5; v.x++) { x[v.x + 2] = 1; }", range(2, 7)),
    ("int i = 1; int2 v = (int2)(i, i++); x[v.x + i] = 1;", [3]),
    ("int2 v = k.v, w; w = v = (int2)(3, 4); x[w.y] = 1;", [4]),
    ("#define LAST .y\n int2 v = (int2)(3, 4); x[v LAST] = 1;", [4]),
    ("#define xx v.y\n int2 v = (int2)(3, 4); x[xx] = 1;", [4]),
    ("#define x y\n int2 v = (int2)(3, 4); a[v.x] = 1;\n#undef x\n", [4]),
    ("uchar4 b = (uchar4)(1); uint u = as_uint(b); int2 v = (int2)(3, 4); x[v.y] = u;", [4]),
    ("short4 b = as_short4((int2)(n)); int2 v = (int2)(3, 4); x[v.y] = b.x;", [4]),
    # structures
    ("Pair p = { 3, 4 }; x[p.b] = 1;", [4]),
    ("Pair p = { 3, 4 }; Pair q = p; p.a = 9; x[q.a] = 1;", [3]),
    ("Pair p = { 3, 4 }; by_value(p); x[p.a] = 1;", [3]),
    ("Pair p = { 3, 4 }; x[by_value(p)] = 1;", [4]),
    ("Pair p = { 3, 4 }; p = turned(p); x[p.a] = 1;", [4]),
    ("Many m = k; m.p.b = 5; m.t[1] = 6; x[m.p.b + m.t[1]] = 1;", [11]),
    ("Many m = k; m.v.y += 2; x[m.v.y] = 1;", [6]),
    ("Many m = k; m.p = turned(m.p); x[m.p.a] = 1;", [2]),
    ("x[k.p.a] = x[k.p.b] = x[k.s] = x[k.c] = x[k.t[0]] = x[k.t[1]] = x[k.v.x] = x[k.v.y] = 1;",
     [1, 2, 3, 4, 7, 8, 3, 4]),
    ("Packed p; p.c = 255; p.a = 6; x[p.a] = 1;", [6]),
    ("Pair p[2]; p[0].a = 4; p[1].a = 5; x[p[1].a] = 1;", [5]),
    ("int t[2][3] = {{1, 2, 3}, {4, 5, 6}}; x[t[1][2]] = 1;", [6]),
    ("int t[3] = {7}; x[t[0]] = 1;", [7]),
    # loops
    ("int i = 2; for (; i < 6; i++) x[i] = 1;", range(2, 6)),
    ("int i = 2; for (; i < 6; ) { x[i] = 1; i += 2; }", [2, 4]),
    ("for (int i = 5; ; i--) { if (i < 2) break; x[i] = 1; }", range(2, 6)),
    ("int i, j; for (i = 0, j = 9; i < 4; i++, j -= 2) x[j] = 1;", [3, 5, 7, 9]),
    ("int j = 1; for (int i = 0; i < 4; i++) { x[j] = 1; j += 3; }", [1, 4, 7, 10]),
    ("global int *p = x + 2; for (int i = 0; i < 4; i++) *p++ = 1;", range(2, 6)),
    ("global int *p = x + 2; for (int i = 0; i < 4; i++, p += 3) *p = 1;", [2, 5, 8, 11]),
    ("global int *p = x + 9; int i = 4; while (i-- > 0) *--p = 1;", range(5, 9)),
    ("int i = 5; while (i--) x[i] = 1;", range(5)),
    ("int i = 0; do x[i] = 1; while (++i < 4);", range(4)),
    ("int i = 3; do { x[i] = 1; i++; } while (i < 2);", [3]),
    ("int i = 0; do { x[i + 1] = 1; i += 2; } while (i < 5);", [1, 3, 5]),
    ("for (int i = 0; i != 5; i++) x[i] = 1;", range(5)),
    ("int i = 6; while (i != 2) { i -= 1; x[i] = 1; }", range(2, 6)),
    ("for (int i = 0; i + 3 < 12; i += 4) x[i] = 1;", [0, 4, 8]),
    ("for (int i = 0; i * 16 < 60; i++) x[i] = 1;", range(4)),
    ("for (uint i = 0; i < 12u / 3u; i++) x[i] = 1;", range(4)),
    ("for (short i = 0; i < 9; i += 3) x[i] = 1;", [0, 3, 6]),
    ("int i = 0; while (true) { if (i >= 5) break; x[i] = 1; i++; }", range(5)),
    ("for (int i = 0; i < 3; i++) for (int j = i; j < 3; j++) x[i * 8 + j] = 1;",
     [*range(3), *range(8, 11), *range(16, 19)]),
    ("int i = 0; for (; i + 4 <= 7; i += 4) x[i] = 1; for (; i < 7; i++) x[i + 20] = 1;",
     [0, 24, 25, 26]),
    # the condition would leave its type if there were many turns, and there is none
    ("int i = n; for (; i + 4096 <= 9; i += 4096) x[0] = 1; x[i] = 1;", [5]),
    ("int i = n; while (i + 64 < n * 2) { x[0] = 1; i += 8; } x[i] = 1;", [5]),
    # what a turn changes more than once
    ("int j = 0; for (int k = 0; k < 3; k++) { x[j] = 1; j += 1; x[j] = 1; j += 2; } x[j + 9] = 1;",
     [0, 1, 3, 4, 6, 7, 18]),
    ("global int *p = x; for (int k = 0; k < 3; k++) { *p++ = 1; *p++ = 1; p += 2; }",
     [0, 1, 4, 5, 8, 9]),
    ("global int *p = x + 40; int c = 3; do { *p = 1; p -= 8; p[1] = 1; p += 3; } while (--c > 0);",
     [40, 33, 35, 28, 30, 23]),
    ("uint j = 9; for (int k = 0; k < 3; k++) { j -= 4u; x[j] = 1; j += 2u; }", [5, 3, 1]),
    ("int j = 0; for (int k = 0; k < 3; k++) { j += 2; for (int c = 0; c < 2; c++) j++; x[j] = 1; "
     "j -= 3; }", [4, 5, 6]),
    # what ends in the middle of a turn
    ("int i = 0; do { x[i] = 1; i += 4; if (i >= 12) break; x[i + 1] = 1; } while (true);",
     [0, 4, 5, 8, 9]),
    (f"{I} int at = i * 8; do {{ x[at] = 1; i += 4; if (i >= 8) break; at += 32; }} while (true);",
     [0, 8, 16, 24, 32, 40, 48, 56]),
    ("int i = 0; for (;; i += 3) { x[i] = 1; if (i >= n) break; }", [0, 3, 6]),
    ("int i = 0; while (1) { x[i] = 1; i += 3; if (i > 8) return; }", [0, 3, 6]),
    ("int i = 1; for (;;) { x[i] = 1; if (i > n) { x[40] = 1; break; } i += 3; }",
     [1, 4, 7, 40]),
    ("int i = 9; do { x[i] = 1; if (i < 3) break; i -= 2; } while (i != 4);", [1, 3, 5, 7, 9]),
    # loops in loops
    ("global int *p = x; for (int r = 0; r < 3; r++) { for (int c = 0; c < 4; c++) *p++ = 1; "
     "p += 4; }", [*range(4), *range(8, 12), *range(16, 20)]),
    ("int j = 2; for (int r = 0; r < 3; r++) for (int c = 0; c < n; c++) { x[j] = 1; j++; }",
     range(2, 17)),
    ("int j = 0; for (int a = 0; a < 2; a++) for (int b = 0; b < 3; b++) { for (int c = 4; c > 0; "
     "c -= 2) x[j++] = 1; j += 3; }", [5 * at + one for at in range(6) for one in range(2)]),
    ("int j = 0; for (int r = 0; r < 3; r++) { for (int c = 0; c < 0; c++) j = j + 1; x[j] = 1; "
     "j += 2; }", [0, 2, 4]),
    # arithmetic
    (f"{I} x[abs(i - 2)] = 1;", range(3)),
    (f"{I} x[select(3, 7, n > 2)] = 1;", [7]),
    (f"{I} x[convert_int(convert_uchar(i)) + as_int(2u)] = 1;", range(2, 6)),
    ("_Static_assert(sizeof(int) == 4, \"int\"); x[n] = 1;", [5]),
]  # fmt: skip

WIDE: list[tuple[str, Any]] = [
    # what changes a part in other ways than by its name
    ("int2 v = (int2)(3, 4); change((int *)&v); x[v.x] = 1;", ALL),
    ("int2 v = (int2)(3, 4); int *p = (int *)&v; p[n - 4] = 7; x[v.y] = 1;", ALL),
    ("int2 v = (int2)(3, 4); vstore2((int2)(8, 9), 0, (int *)&v); x[v.x] = 1;", ALL),
    ("int2 v = (int2)(3, 4); v[n - 4] = 7; x[v.y] = 1;", ALL),
    ("Pair p = { 3, 4 }; change(&p.b); x[p.b] = 1;", ALL),
    ("Pair p = { 3, 4 }; change(&p.b); x[p.a] = 1;", ALL),
    ("Pair p = { 3, 4 }; change_pair(&p); x[p.a] = 1;", ALL),
    ("Pair p = { 3, 4 }; (&p)->a = 7; x[p.a] = 1;", ALL),
    ("Pair p = { 3, 4 }; *(Pair *)&p = turned(p); x[p.a] = 1;", ALL),
    ("Pair p[2]; p[n - 4].a = 5; x[p[1].a] = 1;", ALL),
    ("int t[3] = {1, 2, 3}; *t = 7; x[t[0]] = 1;", ALL),
    ("int t[3] = {1, 2, 3}; int *p = t; p[1] = 7; x[t[1]] = 1;", ALL),
    ("int t[3] = {1, 2, 3}; change(t + 1); x[t[1]] = 1;", ALL),
    ("int t[3] = {1, 2, 3}; change(&t[1]); x[t[1]] = 1;", ALL),
    ("int t[2][2] = {{1, 2}, {3, 4}}; change(t[1]); x[t[1][0]] = 1;", ALL),
    ("int t[3] = {1, 2, 3}; t[n - 4] = 7; x[t[1]] = 1;", ALL),
    ("int t[3] = {1, 2, 3}; x[t[n - 4]] = 1;", ALL),
    ("Either e; e.i = 3; e.s[0] = 7; x[e.i] = 1;", ALL),
    ("Both b; b.a = 3; b.f = 7; x[b.a] = 1;", ALL),
    ("Both b; b.b = 6; b.f = 3; x[b.b] = 1;", ALL),
    ("Inner t; t.a = 3; t.b = 7; x[t.a] = 1;", ALL),
    ("Inner t; t.a = 3; x[t.b] = 1;", ALL),
    ("Inner t; t.a = 3; t.d = 7; x[t.a] = 1;", ALL),
    ("((global Inner *)x)[2].b = 1;", [7]),
    ("global Inner *p = (global Inner *)x + 2; p->d = 1;", [8]),
    ("Pair p = {.b = 3, .a = 4}; x[p.a] = 1;", ALL),
    ("int t[3] = {[1] = 7}; x[t[1]] = 1;", ALL),
    # values of what is in a member, where its brackets are left out
    ("typedef struct { float f; union { int i; } u; } In; struct { In in; int a, b; } s = "
     "{ 1.0f, 3, 7 }; x[s.a] = 1;", [7]),
    ("typedef struct { Pair p; union { int i; } u; } In; struct { In in; int a, b; } s = "
     "{ (Pair){ 3, 4 }, 5, 7 }; x[s.a] = 1;", [7]),
    ("typedef struct { global int *p; union { int i; } u; } In; struct { In in; int a, b; } s = "
     "{ y, 3, 7 }; x[s.a] = 1;", [7]),
    # components that are only asked of the compiler
    ('int4 v = (int4)(1, 3, 7, 9); int t[sizeof(v.x)]; x[v.y] = 1; '
     '_Static_assert(sizeof(v.z) == 4, "");', [3]),
    ("int4 v = (int4)(1, 3, 7, 9); int t[sizeof(v.x)]; x[v.y] = 1; "
     "int s __attribute__((aligned(sizeof(v.z))));", [3]),
    ("\n#define TURN(v) (v).yx\n int2 v = (int2)(3, 9); int t[sizeof((v + 1).x)]; "
     "x[(v + 2).x] = 1; int2 w = TURN(v + 1);", [5]),
    ("int4 v = (int4)(1, 3, 7, 9); int j = v.x ?: 5; x[v.y] = 1; "
     '_Static_assert(sizeof(v.z) + sizeof(v.w) + sizeof(v.z) == 12, "");', [3]),
    ("typedef struct { Pair v; } In; int4 v = (int4)(1, 3, 7, 9); int t[sizeof(v.x)]; x[v.y] = 1; "
     "In in = { .v.b = 7 };", [3]),
    ("Pair p = *(global Pair *)y; x[p.a] = 1;", ALL),
    ("int2 v = *(global int2 *)y; x[v.x] = 1;", ALL),
    ("int2 v = vload2(0, y); x[v.x] = 1;", ALL),
    ("int2 v; x[v.x] = 1;", ALL),
    ("int2 v = (int2)(3, 4); v = v > 3; x[v.y + 1] = 1;", ALL),
    ("int4 v = (int4)(3); v.wzyx.x = 7; x[v.w] = 1;", [7]),
    ("int2 v = (int2)(3, 4); __builtin_choose_expr(1, v, v).x = 7; x[v.x] = 1;", ALL),
    ("short4 b = as_short4((int2)(n)); x[b.y & 63] = 1;", ALL),
    ("int2 v = (int2)(5, 4); v = as_int2(as_uint2(v) - 6u); x[v.x & 63] = 1;", ALL),
    # a macro may hide which of two equal types it is
    ("#define TURN(v) (v).yx\n int2 v = (int2)(3, 4); v = TURN(TURN(v) + 1); x[v.x] = 1;", ALL),
    # a structure that the body changes is shared by a group's work-items on PoCL
    ("x[k.p.a] = 1; k.p.a = 7;", ALL),
    ("Many *m = &k; m->p.a = 7; x[k.p.a] = 1;", ALL),
    # narrow types and signs
    ("uchar2 v = (uchar2)(250, 4); v += (uchar)9; x[v.x & 63] = 1;", [3]),
    ("x[old_style(256 + n, n)] = 1;", [10]),
    ("uint2 v = (uint2)(0, 4); v -= 1u; x[v.x > 63u ? 7 : 8] = 1;", [7]),
    ("short2 v = (short2)(32767, 1); v.x++; x[v.x < 0 ? 7 : 8] = 1;", [7]),
    # loops and choices that change a part
    ("int2 v = (int2)(3, 4); for (int i = 0; i < n; i++) { x[v.x] = 1; v = v.yx; }", ALL),
    ("int2 v = (int2)(3, 4); for (int i = 0; i < n; i++) { x[v.x] = 1; if (y[i]) v.x = i; }", ALL),
    ("Pair p = { 3, 4 }; for (int i = 0; i < n; i++) { x[p.a] = 1; p = turned(p); }", ALL),
    ("Pair p = { 3, 4 }; switch (y[0]) { case 1: p.a = 5; case 2: p.b = 6; } x[p.a] = 1;", ALL),
    # counters that something else changes, or that may be left out
    ("int j = 1; for (int i = 0; i < n; i++) { x[j] = 1; if (y[i]) continue; j += 3; }", ALL),
    ("int j = 1; for (int i = 0; i < n; i++) { x[j] = 1; if (y[i]) j += 3; }", ALL),
    ("int j = 1; for (int i = 0; i < n; i++) { x[j] = 1; y[i] && (j += 3); }", ALL),
    ("int j = 1; for (int i = 0; i < n; i++) { x[j] = 1; j += y[i]; }", ALL),
    ("int j = 1; for (int i = 0; i < n; i++) { x[j] = 1; j += i; }", ALL),
    ("int j = 1, s = 1; for (int i = 0; i < n; i++) { x[j] = 1; j += s; s++; }", ALL),
    ("int j = 1; for (int i = 0; i < n; i++) { x[j] = 1; j += 3; if (y[i]) j = 40; }", ALL),
    ("int j = 1; for (int i = 0; i < n; i++) { x[j] = 1; for (int k = 0; k < y[i]; k++) j++; }",
     ALL),
    ("int j = 1; for (int i = 0; i < n; i++) { x[j] = 1; switch (y[i]) { case 0: j++; } }", ALL),
    ("int j = 1; for (int i = 0; i < n; i++) { x[j] = 1; change(&j); j++; }", ALL),
    ("for (uchar i = 250; i < 256; i++) x[i & 63] = 1;", ALL),
    ("for (uint i = 5; i >= 0; i--) { if (y[i & 1]) break; x[i & 63] = 1; }", ALL),
    ("int i = 0; while (i != 7) { x[i & 63] = 1; i += 2; }", ALL),
    ("int i = 3; for (; i != n; i++) { x[i & 63] = 1; if (y[i & 1]) n = 1; }", ALL),
    ("global int *p = x; for (int i = 0; i < n; i++) { *p = 1; if (y[i]) p += 3; }", ALL),
    ("global int *p = x; for (int i = 0; i < n; i++) { *p = 1; p += i; }", ALL),
    ("global int *p = x; for (int i = 0; i < n; i++) { *p = 1; p = y[i] ? p : p + 1; }", ALL),
    ("global int *p = x; for (int i = 0; i < n; i++) { if (y[i]) continue; *p = 1; p++; }", ALL),
    ("global int *p = x; while (*p) { *p = 1; p++; }", ALL),
    ("int i = 1; for (; i < n; i *= y[0]) x[i] = 1;", range(5)),
    ("int i = 1; for (; i < n; i *= y[0] & 3) x[i & 63] = 1;", ALL),
    ("for (int i = n; ; i >>= 1) { x[i] = 1; if (y[i]) break; }", range(6)),
    ("for (int i = -n; i < 0; i >>= 1) { x[i & 63] = 1; if (y[0]) break; }", ALL),
    ("for (char i = 1; i < 127; i *= 2) { x[i & 63] = 1; if (y[0]) break; }", ALL),
    # loops in loops that do not have the same turns each time
    ("global int *p = x; for (int r = 0; r < 3; r++) { for (int c = 0; c < n; c++) { if (y[c]) "
     "break; *p++ = 1; } p += 4; }", ALL),
    ("global int *p = x; for (int r = 0; r < 3; r++) { for (int c = 0; c < r; c++) *p++ = 1; "
     "p += 4; }", ALL),
    (f"{I} global int *p = x; for (int r = 0; r < 3; r++) {{ for (int c = 0; c < i; c++) *p++ = 1; "
     "p += 4; }", ALL),
    ("global int *p = x; for (int r = 0; r < 3; r++) { if (y[r]) for (int c = 0; c < 2; c++) "
     "*p++ = 1; p += 4; }", ALL),
    ("int j = 0; for (int r = 0; r < 3; r++) { int e = y[r]; for (int c = 0; c < e; c++) j++; "
     "x[j] = 1; }", ALL),
    ("int j = 0; for (int r = 0; r < 3; r++) { for (int c = 0; c != 3; c += 2) j++; x[j] = 1; }",
     ALL),
    ("int j = 0; for (int r = 0; r < 3; r++) { for (int c = 0; c < n; c++) { j++; n--; } "
     "x[j] = 1; }", ALL),
    # turns that are left between changes, also in a loop's own parts
    ("int j = 0; for (int r = 0; r < 3; r++) { for (int i = 0; i < 9; ({ if (i == 3) break; i++; }"
     ")) j++; x[j] = 1; }", [4, 8, 12]),
    ("int j = 0; for (int i = 0; i < 9; ({ j += 1; if (i == 3) break; j += 2; i++; })) ; "
     "x[j] = 1;", [10]),
    ("int j = 0, i = 0; do { } while (({ j += 1; if (i == 3) break; j += 2; i++ < 9; })); "
     "x[j] = 1;", [10]),
    ("int j = 0; for (int r = 0; r < 5; r++) { for (int i = ({ if (r == 2) break; 0; }); i < 2; "
     "i++) j++; } x[j] = 1;", [4]),
    ("int j = 0; int t[sizeof(({ for (; j;) break; 1; }))]; for (j = 3;;) { x[j] = 1; if (j > 1) "
     'break; } _Static_assert(sizeof(({ for (; j;) break; 1; })) == 4, "");', [3]),
    ("int j = 0; for (int k = 0; k < 3; k++) { x[j] = 1; j += 1; if (y[k]) break; j += 2; } "
     "x[j + 20] = 1;", [0, 3, 6, 21, 24, 27, 29]),
    ("int j = 0; for (int k = 0; k < 3; k++) { x[j] = 1; j += 1; if (y[k]) continue; j += 2; }",
     [0, 1, 2, 3, 4, 6]),
    ("int j = 0; for (int k = 0; k < 3; k++) { x[j] = 1; j += 1; if (y[k]) j += 2; }",
     [0, 1, 2, 3, 4, 6]),
    ("int j = 0; for (int k = 0; k < 3; k++) { x[j] = 1; j += 1; j *= 2; }", [0, 2, 6]),
    ("int j = 0; for (int k = 0; k < 3; k++, j += 2) { x[j] = 1; j += 1; }", [0, 3, 6]),
    ("uint j = 1; for (int k = 0; k < 3; k++) { j -= 4u; x[j & 63] = 1; j += 2u; }", [61, 59, 57]),
    ("int j = 0, i = 3; while (i-- > 0) { x[i + 9] = 1; i -= 1; } x[i + 20] = 1;", [11, 9, 18, 19]),
    ("global int *p = x; for (int k = 0; k < 3; k++) { *p++ = 1; if (y[k]) break; *p++ = 1; } "
     "*p = 1;", range(7)),
    ("global int *p = x, *q = x + 9; for (int k = 0; k < 3; k++) { p++; *p = 1; p = q; p += 2; }",
     [1, 12]),
    # ends that hold for some turns only
    ("int i = 0; while (1) { x[i] = 1; if (i++ >= 3) break; }", range(4)),
    ("int i = 0; do { x[i] = 1; i += 1; if (i == 2) continue; if (i >= 5) break; } while (i < 9);",
     range(5)),
    ("int i = 0; do { x[i] = 1; if (i > n) break; i += y[i] & 1 ? 3 : 1; } while (1);", range(9)),
    ("int i = 0; do { x[i] = 1; i += 2; switch (n) { case 5: if (i > 2) break; } } while (i < 9);",
     [0, 2, 4, 6, 8]),
    ("int i = 0; do { x[i] = 1; if (i > 5) break; else i += 2; } while (1);", [0, 2, 4, 6]),
    ("int j = 0; for (int r = 0; r < 3; r++) { do { x[j] = 1; j += 1; if (j > 4) break; } "
     "while (1); j += 2; }", [0, 1, 2, 3, 4, 7, 10]),
    ("int i = 0; do { x[i] = 1; if (y[0]) { if (i > 3) break; } i += 2; } while (i < 9);",
     [0, 2, 4, 6, 8]),
    ("int i = 0, e = 4; while (1) { x[i] = 1; if (i > e) break; i += 2; if (y[0]) e = 9; }",
     [0, 2, 4, 6, 8, 10]),
    ("uint i = 3; for (;; i -= 2u) { x[i & 63] = 1; if (i > 8u) break; }", [3, 1, 63]),
    ("uchar i = 250; while (1) { x[i & 63] = 1; i += 9; if (i > 250) break; }",
     [at & 63 for at in (250, *range(3, 247, 9))]),
    ("uchar i = 3; for (;; i -= 2) { x[i & 63] = 1; if (i > 200) break; }", [3, 1, 63]),
    ("short i = 32760; for (;; i += 5) { x[i & 63] = 1; if (i < 0) break; }", [56, 61, 2]),
    (f"{I} while (1) {{ x[i] = 1; i += 4; if (i > (y[0] & 7) + 9) break; }}", range(17)),
    # conditions that wrap
    ("uint i = n; for (; i - 6u > 5u; i -= 9u) x[i & 63] = 1;", ALL),
    ("int i = n; for (; (uint)(i - 8) > 5u; i -= 16) x[i & 63] = 1;", [5, 53, 37, 21]),
    # behind a loop
    ("int i = 0; for (; i < n; i++) if (y[i]) break; x[i] = 1;", range(7)),
    ("int i = 4; while (i-- > 0) if (y[i]) break; x[i + 1] = 1;", range(6)),
]  # fmt: skip


def written(body: str) -> set[int]:
    """Return the words of x that a body may write, with n = 5 and four work-items."""
    source = (
        f"{HEAD}\nkernel void k(global int *{'a' if '#define x y' in body else 'x'}, "
        f"global int *y, int n, Many k) {{\n{body}\n}}"
    )
    numbers = {"k.p.a": 1, "k.p.b": 2, "k.s": 3, "k.c": 4, "k.t[0]": 7, "k.t[1]": 8, "k.v.x": 3}
    signature = from_source(source, "k", None, None)
    assert signature.outline is not None, signature.unclear
    found = of(signature, (4,), None, None, {"n": 5, "k.v.y": 4, **numbers})
    return elements(next(iter(found.values())).writes, 4, WORDS)


@pytest.mark.parametrize(("body", "expected"), EXACT)
def test_these_are_followed(body: str, expected: Any) -> None:
    assert written(body) == set(expected)


@pytest.mark.parametrize(("body", "expected"), WIDE)
def test_these_are_not_narrowed_further(body: str, expected: Any) -> None:
    assert written(body) >= set(expected)


def test_a_counter_that_differs_between_work_items_narrows_nothing_around_a_barrier() -> None:
    source = """kernel void k(global int *x, int n, int m)
        {{ for (int k = 0; k < m; k += {by})
           {{ if (k >= n) break; x[k] = 1; barrier(CLK_LOCAL_MEM_FENCE); }} }}"""
    for by, many in (("1", 5), ("get_local_id(0) + 1", 40)):
        found = reached(source.format(by=by), "k", (8,), (4,), None, n=5, m=40)
        assert elements(found["x"].writes, 4, WORDS) >= set(range(many))


@pytest.mark.parametrize(
    ("end", "is_narrow"),
    [
        ("min((b + 1) * 16, n)", True),
        ("clamp(n, 0, b * 16 + 16)", True),
        ("(int)(uchar)n & 127", True),
        ("-(-n / (int)get_num_groups(0)) * (b + 1)", True),
        ("min((b + 1) * 16, n - (int)get_local_id(0))", False),
        ("max(b, (int)get_local_id(0)) * 16", False),
    ],
)
def test_what_is_computed_from_common_numbers_is_common_to_a_group(
    end: str, is_narrow: bool
) -> None:
    """A condition around a barrier narrows only then."""
    source = f"""kernel void k(global int *x, int n)
        {{ int b = get_group_id(0), end = {end};
           for (int i = b * 16; i < end; i += 4)
           {{ x[i + (int)get_local_id(0)] = 1; barrier(CLK_LOCAL_MEM_FENCE); }} }}"""
    found = reached(source, "k", (16,), (4,), None, n=40)
    assert (elements(found["x"].writes, 4, 128) != set(range(128))) == is_narrow


def test_only_parts_that_reach_an_address_are_numbers_of_a_launch() -> None:
    source = f"""{HEAD}
        kernel void k(global int *x, Many m, int4 v, int2 unused)
        {{ int j = m.p.b * 2; for (int i = 0; i < v.z; i++) x[m.t[1] + i] = j + v.x; }}"""
    found = reached(source, "k", (1,), None, None, **{"m.t[1]": 3, "v.z": 2})
    assert found["x"].writes == ((12, 8, 1, 8),)
    with acs.Runtime(backend="serial") as rt:
        prog = rt.build(source.replace("Many m", "Pair m").replace("m.p.b", "m.a").replace(
            "m.t[1]", "m.b"))  # fmt: skip
        x = rt.array(range(16), "i4")
        handle = prog.k((1,), None, x, np.array([1, 3], "i4"), np.array([0, 0, 2, 0], "i4"),
                        np.zeros(2, "i4"))  # fmt: skip
        assert "with global size (1,), m.b = 3, v.z = 2" in str(rt.explain(handle))
        assert [one.start for one in handle.access.writes] == [12]
        for first, many in ((5, 1), (9, 4), (9, 4), (0, 16)):
            handle = prog.k((1,), None, x, np.array([1, first], "i4"),
                            np.array([0, 0, many, 0], "i4"), np.zeros(2, "i4"))  # fmt: skip
            (span,) = handle.access.writes
            assert (span.start, span.nbytes) == (4 * first, 4 * many)


@pytest.mark.parametrize("backend", ["serial", "lanes", "device"])
def test_launches_with_other_vectors_are_independent(backend: str) -> None:
    source = """kernel void k(global int *x, int2 at, int value)
        { int2 p = (int2)(get_global_id(0), 0) + at; x[p.y * 8 + p.x] = value; }"""
    with acs.Runtime(backend=backend) as rt:
        prog, x = rt.build(source), rt.zeros(64, "i4")
        handles = [
            prog.k((4,), None, x, np.array([4 * (at % 2), at // 2], "i4"), at + 1)
            for at in range(16)
        ]
        spans = [handle.access.writes[0] for handle in handles]
        assert [one.start for one in spans] == [16 * at for at in range(16)]
        assert x.get().tolist() == [at // 4 + 1 for at in range(64)]


def test_names_of_components() -> None:
    assert components("zyx", 4) == (2, 1, 0)
    assert components("rgb", 4) == (0, 1, 2)
    assert components("sFa0", 16) == (15, 10, 0)
    assert components("hi", 3) == (2, 3)
    assert components("odd", 8) == (1, 3, 5, 7)
    assert components("xq", 4) == ()


@pytest.mark.parametrize("case", corpus.CASES, ids=lambda one: f"{one.form}: {one.name}")
def test_kernels_of_the_corpus(case: corpus.Case, context: cl.Context) -> None:
    queue = cl.CommandQueue(context)
    found, unclear = corpus.inferred(case)
    assert not unclear
    for at, (reads, writes) in corpus.measured(case, queue).items():
        read, changed = found[at]
        assert reads <= read
        assert writes <= changed
        if case.is_exact:
            assert (read, changed) == (reads, writes)


PER_PROGRAM = 10


def random_kernels(form: Any, seeds: list[int], context: cl.Context) -> tuple[int, int]:
    """Record what kernels do, and find it in what is inferred. How many ranges were inferred, and
    how many of them say less than all of the array. `form`: the module that writes them."""
    queue, (device,) = cl.CommandQueue(context), context.devices
    kernels = {seed: form.WRITER(seed).kernel() for seed in seeds}
    text = form.RECORDING_FORM + "\n".join(kernels.values())
    program = cl.Program(context, text).build(["-w"])
    count = less = 0
    for seed, own in kernels.items():
        signature = from_source(form.plain_form(own), f"k{seed}", None, device)
        if signature.outline is None:
            assert "pointer" in signature.unclear, signature.unclear
            assert "union" in form.plain_form(own)  # it may turn a number into a pointer
            continue
        chance = random.Random(seed)
        for turn in range(3):
            sizes, local, offset = sizes_of(chance)
            numbers = {
                "n": chance.choice([0, 1, 5, 13, 20, 64, -2]),
                "m": chance.choice([1, 3, 8, 17, 100, 2**31 - 1, -7]),
                "s": chance.choice([1, 2, 4, 20, 60, -3]),
            }
            more, named = rich.values(chance)
            memory = [np.array([chance.randrange(-4, 90) for _ in range(programs.ELEMENTS)], "i4")
                      for _ in programs.ARRAYS]  # fmt: skip
            bands: list[Groups | None] = [None]
            if local is not None:
                bands += cut(sizes, local, chance.choice([1, 2, 3, 8]))
            kernel = getattr(program, f"k{seed}")
            for band in bands:
                found = of(signature, sizes, local, offset, {**numbers, **named}, band)
                seen = record(kernel, queue, memory, (sizes, local, offset), numbers, band, more)
                where = (
                    f"seed {seed}, turn {turn}: sizes {sizes}, local {local}, offset {offset}, "
                    f"band {band}, {numbers}, {named}\n{own}"
                )
                some, narrower = held(seen, found, where)
                count, less = count + some, less + narrower
    return count, less


@pytest.mark.parametrize("form", [rich, value_programs], ids=["rich", "values"])
@pytest.mark.parametrize("block", range(2))
def test_random_kernels_touch_only_what_is_inferred(
    block: int, form: Any, context: cl.Context
) -> None:
    blocks = int(os.environ.get("ACS_CL_FUZZ", "0")) // (4 * PER_PROGRAM) or 1
    total = narrower = 0
    for one in range(block * blocks, (block + 1) * blocks):
        first = PER_PROGRAM * one
        count, less = random_kernels(form, list(range(first, first + PER_PROGRAM)), context)
        total, narrower = total + count, narrower + less
    assert narrower > total // 10
