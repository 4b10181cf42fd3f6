"""Parts of vectors, structures and arrays, and what changes them unseen; counters of loops."""

from __future__ import annotations

import numpy as np

from traps.case import Trap, around, body, i

_PAIR = "typedef struct { int a, b; } P$;"
_MANY = "typedef struct { short s; int t[3]; P$ p; uchar c; int3 v; long l; } M$;"
_BODIES: dict[str, str] = {
    "swizzle to itself": "int4 v = (int4)(n, 5, 6, 7); v.wzyx = v; y[v.w] = 1; y[v.x] = 2;",
    "swizzle of a swizzle": "int4 v = (int4)(n, 5, 6, 7); v.yzw.zx = v.xy; y[v.w] = 1; y[v.y] = 2;",
    "components by number": "int4 v = (int4)(n, 5, 6, 7); v.s1 = 9; v.S3 = 8; y[v.y + v.w] = 1;",
    "halves": "int4 v = (int4)(n, 5, 6, 7); v.hi = v.lo.yx; v.even = 11; y[v.w] = y[v.z] = 1;",
    "half of three": "int3 v = (int3)(n, 5, 6); v.lo = 9; v.hi.x = 12; y[v.x] = y[v.z] = 1;",
    "a subscript": "int4 v = (int4)(n, 5, 6, 7); v[n] = 20; v[1] = 21; y[v.w] = y[v.y] = 1;",
    "by address": "int4 v = 5; int *p = (int *)&v; p[n] = 20; y[v.w] = 1;",
    "by a pointer to a vector": (
        "int4 v = 5; int4 *p = &v; p->w = 20; (*p).x = 9; y[v.w + v.x] = 1;"
    ),
    "by vstore": "int4 v = 5; vstore2((int2)(n, 30), 1, (int *)&v); y[v.w] = 1;",
    "in a helper": "int4 v = 5; v = vectors$(v, n); y[v.x] = y[v.w] = 1;",
    "by a helper with a pointer": "int4 v = 5; by$(&v, n); y[v.x] = y[v.w] = 1;",
    "through a macro": "int2 v = (int2)(n, 5); TURN$(v) = v + 1; y[X$(v)] = 1;",
    "narrow": (
        "uchar2 v = (uchar2)(n + 250, 5); v += (uchar)9; v.y -= 7; y[v.x & 63] = y[v.y & 63] = 1;"
    ),
    "unsigned": "uint2 v = (uint2)(n, 5) - 4u; y[v.x & 63] = 1; y[(v.x >> 28) + 20] = 2;",
    "shifted": "int2 v = (int2)(n, 5) << (int2)(33, 1); y[v.x & 63] = 1; y[v.y] = 2;",
    "compared": "int2 v = (int2)(n, 5) > 4; y[v.y + 9] = 1; y[v.x + 19] = 2;",
    "chosen": "int2 v = n > 2 ? (int2)(n, 5) : (int2)(6, 7); y[v.x] = 1;",
    "chosen by parts": (
        "int2 v = (int2)(n, 5) > 4 ? (int2)(9, 10) : (int2)(11, 12); y[v.x] = y[v.y] = 1;"
    ),
    "converted": "int2 v = convert_int2_sat((long2)(n, 1L << 40)); y[v.x] = 1; y[v.y >> 27] = 2;",
    "seen as others": "int2 v = as_int2((short4)(n, 1, 5, 0)); y[v.x & 63] = 1; y[v.y] = 2;",
    "in a loop": "int2 v = (int2)(n, 5); for (int k = 0; k < 3; k++) { y[v.x] = k; v = v.yx + k; }",
    "in a switch": (
        "int2 v = (int2)(n, 5); switch (n) { case 3: v.x = 9; case 4: v.y = 8; } y[v.x + v.y] "
        "= 1;"
    ),
    "effects in order": (
        "int k = n; int2 v = (int2)(k, k++); v += (int2)(k++, k); y[v.x + v.y] = 1;"
    ),
    "an assignment as a value": (
        "int2 v, w; w = (v = (int2)(n, 5)).yx; y[w.x] = 1; (v = w).x++; y[v.x] = 2;"
    ),
    "a structure by value": "P$ p = { n, 5 }; given$(p); y[p.a] = 1; y[given$(p)] = 2;",
    "a structure copied": "P$ p = { n, 5 }, q = p; p.a = 9; y[q.a] = 1; q = p; y[q.a] = 2;",
    "a structure by address": "P$ p = { n, 5 }; P$ *q = &p; q->b = 9; y[p.b] = 1;",
    "a member by address": (
        "P$ p = { n, 5 }; int *q = &p.b; *q = 9; q[-1] = 11; y[p.b] = y[p.a] = 1;"
    ),
    "named values": "P$ p = {.b = n, .a = 9 }; y[p.a] = 1; P$ q = { n }; y[q.b] = 2;",
    "without brackets": "M$ m = { 1, 2, n, 9, 10, 11, 12 }; y[m.t[1]] = y[m.p.b] = y[m.c] = 1;",
    "a structure in memory": "P$ p = *(global P$ *)y; y[p.a & 63] = 1; ((global P$ *)y)[n].b = 2;",
    "a union inside": (
        "struct { union { int i; short s[2]; }; int b; } u; u.i = n; u.s[0] = 9; u.b = 7; "
        "y[u.i] = y[u.b] = 1;"
    ),
    "an array": "int t[4] = { n, 5, 6 }; t[n & 3] = 20; y[t[0]] = y[t[3]] = 1;",
    "an array as a pointer": "int t[4] = { n, 5, 6 }; int *p = t + 1; *p = 20; y[t[1]] = 1;",
    "rows of an array": (
        "int t[2][2] = { { n, 5 }, { 6, 7 } }; int *p = t[1]; p[1] = 20; y[t[1][1]] = 1;"
    ),
    "a way behind an array": (
        "int t[2][2] = { { n, 5 }, { 6, 7 } }; t[0][n - 1] = 20; y[t[1][0]] = 1;"
    ),
    "a shadow": "int2 v = (int2)(n, 5); { int2 v = (int2)(9, 10); y[v.x] = 1; } y[v.x] = 2;",
    "jumped over": (
        "switch (n) { int2 v; case 3: v = (int2)(9, 10); y[v.x] = 1; break; default: v.x = 4; "
        "y[v.x] = 2; }"
    ),
    "counting twice": (
        "int j = 0; for (int k = 0; k < n; k++) { y[j] = 1; j++; if (k == 1) j += 3; j++; }"
    ),
    "a counter by address": (
        "int j = 0; int *p = &j; for (int k = 0; k < n; k++, j++) { y[j] = 1; *p += 2; }"
    ),
    "a skipped counter": (
        "int j = 0; for (int k = 0; k < 9; k++) { if (k & 1) continue; y[j] = 1; j += 2; }"
    ),
    "a pointer that moves twice": (
        "global int *p = y; for (int k = 0; k < n; k++) { *p++ = 1; if (k == 1) p += 5; }"
    ),
    "a pointer in two loops": (
        "global int *p = y; for (int k = 0; k < 3; k++) { for (int m = 0; m < n; m++) *p++ = "
        "1; p += 2; }"
    ),
    "a pointer that comes back": (
        "global int *p = y + n; for (int k = 0; k < 3; k++) { *p = 1; p += 4; } *p = 2; p -= "
        "7; *p = 3;"
    ),
    "a narrow counter": "for (uchar k = 250; k > 3; k++) y[k & 63] = 1;",
    "a short counter": (
        "short k = 32760; while (k > 0) { y[k & 15] = 1; k += 3; } y[(k >> 12) + 30] = 2;"
    ),
    "down through zero": "for (uint k = n; k < 50; k--) y[k] = 1;",
    "never the same": "int k = 0; while (k != 9) { y[k] = 1; k += 3; }",
    "the last one": (
        "int k = 0; for (; k < n; k++) if (k == 2) break; y[k + 10] = 1; while (k--) ; y[k + "
        "20] = 2;"
    ),
    "once at least": "int k = n + 9; do { y[k] = 1; k++; } while (k < n); y[k + 3] = 2;",
    "halved": (
        "for (int k = 40; k; k >>= 1) y[k] = 1; for (int k = -3; k < -1; k >>= 1) { y[k + 60] "
        "= 1; if (k < -1) break; }"
    ),
    "doubled": (
        "for (char k = 1; k > 0; k *= 2) y[k & 63] = 1; for (int k = n; k < 60; k <<= 1) y[k] "
        "= 2;"
    ),
    "a bound that moves": (
        "int e = 3; for (int k = 0; k != e; k++) { y[k] = 1; if (k == 1) e = 9; }"
    ),
    "without brackets, the last ones": (
        "struct { P$ p; int c; } m = { 1, n }; int t[2][2] = { 1, n }; M$ o = { 1, 2, n }; y[m.c "
        "+ 10] = y[t[1][0] + 20] = y[o.p.a + 30] = 1;"
    ),
    "without brackets in a structure": (
        "struct { int a, t[2], b; } m = { 1, 2, n }; y[m.b + 10] = 1;"
    ),
    "without brackets around two": "P$ p[2] = { 1, n }; y[p[1].a + 10] = 1;",
    "without brackets around a vector": (
        "struct { int2 v, w; } m = { { 1, n }, 2 }; y[m.w.x + 10] = y[m.v.y + 20] = 1;"
    ),
    "without brackets around a union": (
        "struct { U$ u; int a, b; } m = { 1.0f, n, 20 }; struct { V$ v; int a, b; } o = "
        "{ (P$){ 7, 8 }, n, 30 }; y[m.a] = y[o.a] = 1;"
    ),
    "components for the compiler": (
        "int4 v = (int4)(n, 5, 6, 7); int t[sizeof(v.x)]; y[v.y] = 1; "
        '_Static_assert(sizeof(v.z) == 4, ""); y[v.w + 10] = 1;'
    ),
    "an element of components": (
        "int4 v = (int4)(n, 5, 6, 7); v.yx[1] = 20; y[v.x] = 1; y[v.y + 30] = 1;"
    ),
    "an element of later components": (
        "int4 v = (int4)(n, 5, 6, 7); (v.yx)[0] = 20; y[v.x] = 1; y[v.yzw[1] + 30] = 1;"
    ),
    "true in a vector": "bool b = n > 2; int2 v = (int2)b; y[v.x + 9] = 1; v = 5 - v; y[v.y] = 1;",
    "true becomes a vector": "int2 v; v = (bool)n; y[v.y + 9] = 1; v += (bool)n; y[v.y + 19] = 1;",
    "true as bits": "uint2 v = (uint2)(bool)n; y[v.x >> 26] = 1;",
    "halved with a sign": (
        "uint i = 0x80000000u + n; for (int k = 0; k < 3; k++) { y[i >> 28] = 1; i = (int)i >> 1; }"
    ),
    "divided with a sign": (
        "uint i = 0xfffffff0u + n; do { y[i >> 26] = 1; i = (int)i / 9; } while (i > 5 && i < "
        "0xfffffffeu);"
    ),
    "from where it must not come": (
        "int i = n; do { y[i] = 1; i++; if (i >= n + 10) break; } while (i != n);"
    ),
    "down from where it must not come": (
        "int i = n + 9; do { y[i] = 1; i--; if (i < 0) break; } while (i != n + 9);"
    ),
    "left in a step": (
        "int j = 0; for (int r = 0; r < n; r++) { for (int k = 0; k < 9; ({ if (k == n) break; "
        "k++; })) j++; y[j] = 1; }"
    ),
    "left before a loop": (
        "int j = 0; for (int r = 0; r < 5; r++) { for (int k = ({ if (r == n) break; 0; }); "
        "k < 2; k++) j++; } y[j] = 1;"
    ),
    "a distance that moves": "int s = 1; for (int k = 0; k < 30; k += s) { y[k] = 1; s += n; }",
}  # fmt: skip
_HELPERS = f"""{_PAIR} {_MANY}
typedef struct {{ float f; union {{ int i; }} w; }} U$;
typedef struct {{ P$ p; union {{ int i; }} w; }} V$;
#define TURN$(v) (v).yx
#define X$(v) v.x
int4 vectors$(int4 v, int n) {{ v.xw = v.wx + n; if (v.x > 6) return v; v.y = 2; return v.wzyx; }}
void by$(int4 *v, int n) {{ v->x = n + 20; (*v).w = 30; }}
int given$(P$ p) {{ p.a += 2; P$ *q = &p; q->a++; return p.a; }}"""

_WORDS = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], "i4")
_GIVEN: list[Trap] = [
    body("a vector by value", "y[v.x + v.w] = 1; v.x = 20; y[v.x] = 2;", _WORDS[:4],
         params="int4 v"),
    body("three by value", "y[v.x] = 1; y[v.z] = 2;", _WORDS[4:8], params="int3 v"),
    body("small ones by value", "y[v.s0] = 1; y[v.s7] = 2;",
         np.arange(3, 19, 2, dtype="u1"), params="uchar8 v"),
    around("a structure given", f"{_PAIR} {_MANY}",
           "y[m.t[1]] = 1; y[m.p.b + m.v.z] = 2; y[m.l & 63] = 3;",
           np.arange(1, 17, dtype="i4"), params="M$ m"),
    around("a structure given and changed", f"{_PAIR}", "y[p.a] = 1; p.a += 3; y[p.a + 20] = 2;",
           _WORDS[:2], params="P$ p", size=(1,), local=(1,)),
    around("a packed structure given",
           "typedef struct __attribute__((packed)) { uchar c; int a; short s; } K$;",
           "y[k.a & 63] = 1; y[k.s & 63] = 2;", np.arange(1, 8, dtype="u1"), params="K$ k"),
    around("a structure to a helper", f"{_PAIR} int of$(P$ p, int b) {{ p.b += b; return p.b; }}",
           "y[of$(p, 3)] = 1; y[p.b] = 2;", _WORDS[:2], params="P$ p"),
]  # fmt: skip

TRAPS: list[Trap] = [
    *(around(name, _HELPERS, text, i(3), params="int n") for name, text in _BODIES.items()),
    *_GIVEN,
    body("members of elements", "global int4 *p = (global int4 *)y; p[2].z = 1; p[3].xw = p[1].zy; "
         "p[n + 1].s1 += 2; ((global int *)&p[5])[n] = 3;", i(3), params="int n"),
    around("arrays in elements", "typedef struct { int c; int t[3]; } E$;",
           "global E$ *e = (global E$ *)y; e[n].t[1] = 2; e[1].t[n] = 3; e->t[-1] = 4;",
           i(3), params="int n"),
]  # fmt: skip
