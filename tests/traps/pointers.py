"""Where a pointer leads: bytes of `void`, detours through integers and memory, odd dereferences."""

from __future__ import annotations

from traps.case import Local, Trap, around, body, i, mem

# `p` begins as `y`; what is written through it afterwards is one int. `at` is 5, `n` is 3.
_VOID = {
    "plus": "p = p + 4 * at;",
    "minus": "p = p + 80; p = p - 4 * at;",
    "add": "p += 4 * at;",
    "subtract": "p += 100; p -= 4 * at;",
    "up": "p += 7; p++;",
    "up first": "p += 3; ++p;",
    "down": "p += 21; p--;",
    "down first": "p += 13; --p;",
    "other side": "p = 4 * at + p;",
    "negative": "p += 40; p += -4 * at;",
    "loop": "for (int j = 0; j < 4 * at; j++) p++;",
    "loop by step": "for (int j = 0; j < n; j++) p += 8;",
    "ternary": "p = at > 3 ? p + 4 * at : p;",
    "comma": "p = (at++, p + 4 * at);",
    "while": "while (p < (global void *)(y + at)) p += 4;",
    "address": "global void **q = 0; p = p + 12; (void)q;",
    "chain": "p = p + 4; p = p + 8; p = p - 4; p = p + at * 8;",
    "by char": "p = (global void *)((global char *)p + 4) + 4 * at;",
    "by number of its size": "p += sizeof(void) * 4 * at;",
    "by a byte's size": "p += sizeof(*p) * 44;",
    "group": "p += 4 * get_global_id(0) + 16;",
}

_VOIDS = [
    body(
        f"void {way} {name}",
        f"global void *p = y; {step} {use}",
        i(5),
        i(3),
        params="int at, int n",
    )
    for name, step in _VOID.items()
    for way, use in (("write", "*(global int *)p = 7;"), ("read", "y[60] = *(global int *)p + 1;"))
]

_HELPED_VOIDS = [
    around(
        "void helper moves",
        "global void *at$(global void *p, int bytes) { return p + bytes; }",
        "*(global int *)at$(y, 48) = 7;",
    ),
    around(
        "void helper writes",
        "void put$(global void *p, int bytes) { p -= bytes; *(global int *)(p + 100) = 3; }",
        "put$(y, 60);",
    ),
    around(
        "const void helper reads",
        "int get$(const global void *p) { return *(const global int *)(p + 36); }",
        "y[2] = get$(y + 1) ^ 1;",
    ),
    around(
        "void helper by address",
        "void move$(global void **p) { *p += 20; }",
        "global void *p = y; move$(&p); *(global int *)p = 1;",
    ),
    around(
        "void pointer in a structure",
        "typedef struct { global void *p; } S$;",
        "S$ s; s.p = y; s.p += 28; *(global int *)s.p = 1;",
    ),
    Trap(
        "void parameter",
        "kernel void k$(global void *p, int at) { *(global int *)(p + 4 * at) = 9; }",
        (mem(), i(11)),
    ),
    Trap(
        "const void parameter",
        "kernel void k$(global const void *p, global int *z)"
        " { p = p + 44; z[1] = *(global const int *)p + 1; }",
        (mem(), mem()),
    ),
    Trap(
        "distance of void pointers",
        "kernel void k$(global void *p, global int *z)"
        " { global void *q = p + 40; z[q - p] = 1; z[(q + 3) - p] = 2; }",
        (mem(), mem()),
    ),
    Trap(
        "void of constant",
        "kernel void k$(constant void *p, global int *z)"
        " { p += 8; z[3] = *(constant int *)p ^ 5; }",
        (mem(), mem()),
    ),
    Trap(
        "void of local",
        "kernel void k$(global int *y, local void *t) { local void *q = t + 8;"
        " *(local int *)q = y[9]; barrier(CLK_LOCAL_MEM_FENCE); y[4] = *(local int *)(t + 8) +"
        " 1; }",
        (mem(), Local(64)),
    ),
    body(
        "void of private",
        "int a[8]; for (int j = 0; j < 8; j++) a[j] = 3 * j;"
        " void *q = a; q += 20; y[*(int *)q] = 1;",
    ),
    body("sizeof void", "y[sizeof(void) * 5] = 2; y[sizeof(void) + 20] = 1;"),
    body("alignof void", "y[__alignof__(int) * 3] = 2;"),
]

# Each leads to y[9] or thereabouts.
_DETOURS = {
    "size_t": "size_t a = (size_t)y; a += 36; *(global int *)a = 1;",
    "ulong and back twice": (
        "ulong a = (ulong)y + 4; long b = (long)(global int *)a + 32; *(global int *)b = 1;"
    ),
    "xor": "size_t a = (size_t)y, m = 0x5a5a5a5a5aul; a ^= m; a ^= m; ((global int *)a)[9] = 1;",
    "halves": (
        "ulong a = (ulong)y; uint lo = (uint)a, hi = (uint)(a >> 32);"
        " ulong b = ((ulong)hi << 32) | lo; ((global int *)b)[9] = 1;"
    ),
    "as_uint2": "uint2 v = as_uint2((ulong)y); v.x += 0; ((global int *)as_ulong(v))[9] = 1;",
    "as_double": "double d = as_double((ulong)y); ((global int *)as_ulong(d))[9] = 1;",
    "bits": (
        "ulong a = (ulong)y, b = 0; for (int j = 0; j < 64; j++) b |= a & (1ul << j);"
        " ((global int *)b)[9] = 1;"
    ),
    "bytes": (
        "ulong a = (ulong)y, b = 0; uchar *s = (uchar *)&a, *t = (uchar *)&b;"
        " for (int j = 0; j < 8; j++) t[j] = s[j]; ((global int *)b)[9] = 1;"
    ),
    "uchar8": "uchar8 v = as_uchar8((ulong)y); ((global int *)as_ulong(v.s01234567))[9] = 1;",
    "private array": "ulong a[4]; a[2] = (ulong)y; ((global int *)a[get_global_id(0) + 2])[9] = 1;",
    "pointer bytes": (
        "global int *p = y; global int *q; uchar *s = (uchar *)&p, *t = (uchar *)&q;"
        " for (int j = 0; j < 8; j++) t[j] = s[j]; q[9] = 1;"
    ),
    "pointer seen as number": "global int *p = y; ulong *s = (ulong *)&p; *s += 36; *p = 1;",
    "number seen as pointer": (
        "ulong a = (ulong)y + 36; global int **p = (global int **)&a; **p = 1;"
    ),
    "distance": (
        "long d = (global char *)(y + 9) - (global char *)y;"
        " *(global int *)((global char *)y + d) = 1;"
    ),
    "select": "size_t a = select((ulong)z, (ulong)y, (ulong)-1 << 63); ((global int *)a)[9] = 1;",
    "min of two": "ulong a = min((ulong)y, ~0ul); ((global int *)a)[9] = 1;",
    "times": "ulong a = (ulong)y * 3; a *= 0xaaaaaaaaaaaaaaabul; ((global int *)a)[9] = 1;",
    "not not": "ulong a = ~(ulong)y; ((global int *)~a)[9] = 1;",
    "minus": "ulong a = 0 - (ulong)y; ((global int *)(0 - a))[9] = 1;",
    "rotate": "ulong a = rotate((ulong)y, 13ul); ((global int *)rotate(a, 51ul))[9] = 1;",
    "memcpy": "global int *q; global int *p = y; __builtin_memcpy(&q, &p, sizeof p); q[9] = 1;",
    "vector of addresses": "ulong2 v = (ulong2)((ulong)z, (ulong)y); ((global int *)v.y)[9] = 1;",
    "swizzled": (
        "ulong4 v = (ulong4)((ulong)z); v.zx = (ulong2)((ulong)y); ((global int *)v.z)[9] = 1;"
    ),
    "vload of private": (
        "ulong a[2] = {(ulong)z, (ulong)y}; ulong2 v = vload2(0, a); ((global int *)v.s1)[9] = 1;"
    ),
    "null plus": "global char *p = (global char *)0 + (size_t)y; ((global int *)p)[9] = 1;",
    "float4": (
        "float2 f = as_float2((ulong)y); float4 g = f.xyxy; ((global int *)as_ulong(g.zw))[9] = 1;"
    ),
    "comparison chooses": (
        "ulong a = (ulong)y, b = (ulong)z; ((global int *)(a != b ? a : b))[9] = 1;"
    ),
    "branch on bits": (
        "ulong a = (ulong)y, b = 0; for (int j = 0; j < 64; j++)"
        " if (a >> j & 1) b += 1ul << j; ((global int *)b)[9] = 1;"
    ),
}

_THROUGH_NUMBERS = [
    Trap(
        f"detour {name}",
        f"kernel void k$(global int *y, global int *z) {{ {text} }}",
        (mem(), mem(seed=3)),
    )
    for name, text in _DETOURS.items()
]

_WALKS = {
    "index first": "3[y] = 1;",
    "negative index": "global int *p = y + 20; p[-7] = 1; (-3)[p] = 2;",
    "address of": "(&y[5])[2] = 1; *&y[9] = 2; &*y; (&*y)[11] = 3;",
    "variable as an array": "global int *p = y + 3; (&p)[0][4] = 1; *(&p)[0] = 2;",
    "rows": "global int (*m)[8] = (global int (*)[8])y; m[2][3] = 1; (*(m + 4))[1] = 2;",
    "rows by typedef": (
        "typedef int row[8]; global row *m = (global row *)y; m++; (*m)[5] = 1;"
        " m += 2; m[1][1] = 1;"
    ),
    "rows of rows": (
        "typedef int cube[4][4]; global cube *m = (global cube *)y; m[1][2][3] = 1;"
        " (*m)[3][1] = 4; m[2][0][0] = y[1];"
    ),
    "row out of its row": "global int (*m)[8] = (global int (*)[8])y; m[1][-3] = 1; m[0][30] = 2;",
    "address of a row": (
        "global int (*m)[8] = (global int (*)[8])y; global int (*q)[8] = &m[2];"
        " (*q)[1] = 1; *(*(q + 1) + 2) = 3;"
    ),
    "bytes": "global char *c = (global char *)y; c[37] = 1; c += 50; *c-- = 2; *c = 3;",
    "shorts": "global ushort *c = (global ushort *)y; c[37] = 1; *++c = 2; c[at] = 3;",
    "longs": "global long *c = (global long *)y; c[3]++; c[at] = 1;",
    "doubles": "global double *c = (global double *)(y + 8); c[at] = 1.0;",
    "float4s": (
        "global float4 *c = (global float4 *)y; c[2].z = 1; c[3] = (float4)(1);"
        " ((global float *)&c[5])[1] = 2;"
    ),
    "int3s": "global int3 *c = (global int3 *)y; c[2].z = 1; c[3] = (int3)(1); c++; c->x = 1;",
    "int16s": "global int16 *c = (global int16 *)y; c[1].sF = 1; c[2].sa3 = (int2)(4, 5);",
    "uchar3": "global uchar3 *c = (global uchar3 *)y; c[9].z = 1; c += 20; *c = (uchar3)(2);",
    "loop by pointer": "for (global int *p = y + 2; p != y + at; ++p) *p = 1;",
    "loop by less": "global int *e = y + 2 * at; for (global int *p = y; p < e; p += 3) *p = 1;",
    "loop downwards": "global int *p = y + 20; while (p-- > y + at) *p = 1;",
    "loop by other": "global int *p = y, *q = y + 30; while (p < q) { *p++ = 1; *--q = 2; }",
    "post and pre": "global int *p = y; *p++ = 1; *++p = 2; *p-- = 3; (*p)++; ++*p; *(p += 7) = 4;",
    "index changes": "int j = 3; y[j++] = j; y[++j] = j; y[j += 9] = 1; y[j--] = y[--j];",
    "index in index": "y[y[at] & 7] = 1; y[(y[3] & 7) + (y[4] & 3)] = 2;",
    "ternary of two": "*(at > 2 ? y + 5 : z + 5) = 1; *(at > 9 ? y + 6 : z + 6) = 1;",
    "ternary by data": "*(y[0] & 1 ? y + 9 : z + 11) = 1;",
    "comma": "*(at++, y + at) = 1; (y++, y)[2] = 3;",
    "swap": (
        "global int *p = y, *q = z; for (int j = 0; j < 3; j++)"
        " { global int *t = p; p = q; q = t; *p++ = j; }"
    ),
    "array of pointers": "global int *a[2] = {y, z}; a[at & 1][7] = 1; *a[0] = 2;",
    "array of pointers by data": "global int *a[2] = {y, z + 1}; a[y[1] & 1][7] = 1;",
    "array of pointers moved": (
        "global int *a[3]; for (int j = 0; j < 3; j++) a[j] = y + 5 * j;"
        " a[2] += 3; *a[2] = 1; a[1][1] = 2;"
    ),
    "pointer to pointer": "global int *p = y; global int **q = &p; *q += 6; **q = 1; (*q)[3] = 2;",
    "pointer to pointer to pointer": (
        "global int *p = y, **q = &p, ***r = &q; **r = z; p[3] = 2; **r += 3; ***r = 4;"
    ),
    "pointer assigned in a condition": "global int *p; if ((p = y + at)) *p = 1;",
    "pointer assigned in an argument": (
        "global int *p = z; y[0] = max((int)((p = y + 3) != 0), 0); *p = 5;"
    ),
    "pointer as truth": "if (y && z) y[4] = 1; if (!y) z[4] = 1; y[y != 0] = 2;",
    "chained assignment": "global int *p, *q; p = q = y + 7; *q++ = 1; *p = 2; *q = 3;",
    "self": "global int *p = y; p = p + (p - y) + 8; p += p - y; *p = 1;",
    "compound literal": "(global int *[]){y, z}[1][5] = 1; *(global int *){y + 4} = 2;",
    "const away": "const global int *c = y; *(global int *)(c + 3) = 1; ((global int *)z)[2] = *c;",
    "volatile": "volatile global int *v = y; v[3] = 1; v[4]++; *(volatile global int *)&z[2];",
    "volatile pointer": "global int *volatile v = y; v += 3; *v = 1;",
    "restrict": (
        "global int *restrict p = y + 2; global int *restrict q = y + 12; *p = 1; q[1] = *p;"
    ),
    "overlapping types": "global char *c = (global char *)(y + at); *(global short *)(c + 1) = 7;",
    "vector by index": "int8 v = *(global int8 *)y; y[v.s3 & 15] = v.s7;",
    "sum of both": "y[(z + 10) - (z + 4)] = 1;",
    "pointer minus char pointers": "y[((global char *)&y[5] - (global char *)y)] = 1;",
    "bool index": "y[at > 2] = 1; y[!(at > 2) + 6] = 2; y[!!at * 9] = 3;",
    "far and back": "global int *p = y + 0x4000000000000000l; p -= 0x3ffffffffffffffdl; *p = 1;",
    "wrapped address": "y[0x4000000000000003l] = 1; *(y + 0x8000000000000005ul * 2) = 2;",
    "array parameter": "global int *p = &y[0]; *(p + at * 2 + 1) = *(p + at) + *(at + p);",
    "typedef pointer": "typedef global int *ip; ip p = y + 1, q = z + 2; *p = *q + 1;",
    "pointer in a for": "global int *p = y; for (int j = 0; j < 3; j++, p += 2) *p = 1; p[1] = 2;",
    "pointer kept in a loop": (
        "global int *last = y; for (int j = 0; j < 4; j++) { *last = j; last = y + 3 * j + 1; }"
    ),
    "pointer in a do": "global int *p = y; do { p += 3; *p = 1; } while (p < y + 10);",
    "pointer in a switch": (
        "global int *p = y; switch (at) { case 5: p = z; case 6: p += 3; break;"
        " default: p += 9; } *p = 1;"
    ),
    "conditional pointer": "global int *p = y; if (y[0] & 1) p = z; p[6] = 1;",
    "conditional move": "global int *p = y; if (y[0] & 1) p += 5; p[6] = 1;",
    "struct of two": "struct { global int *a, *b; } s = {y, z}; s.a += 2; *s.a = 1; s.b[3] = 2;",
    "struct copied": "struct { global int *a; int n; } s = {y, 4}, t; t = s; t.a[t.n] = 1;",
    "struct by pointer": "struct { int n; global int *a; } s, *t = &s; t->a = y + 1; t->a[5] = 1;",
    "struct of arrays": (
        "struct { global int *a[2]; } s; s.a[0] = y; s.a[1] = z; s.a[at & 1][2] = 1;"
    ),
    "inner struct": (
        "struct { struct { global int *a; } in[2]; } s; s.in[1].a = y; s.in[1].a[2] = 1;"
    ),
    "designated": "struct { global int *a, *b; } s = {.b = y, .a = z}; s.b[2] = 1;",
    "designated by a place": "global int *t[3] = {[2] = y + 1, [0] = z}; t[2][4] = 1;",
    "designated of old": "struct { global int *a, *b; } s = {b: y, a: z}; s.b[2] = 1;",
    "designated in a literal": (
        "struct s { global int *a; int n; }; *((struct s){.n = at, .a = y + 3}).a = 1;"
    ),
    "extension": "global int *p = __extension__ (y + 3); p[1] = 1; *(__extension__ z) = 2;",
    "extension of a place": "__extension__ y = z; y[at] = 1; (__extension__ at)++; y[at] = 2;",
    "choice is a place": (
        "int k = 3; _Generic(at, int: k) = 9; y[k] = 1; __builtin_choose_expr(1, k, at)++;"
        " y[k] = 2; _Generic(at, int: y) = z; y[3] = 4;"
    ),
    "choice has an address": (
        "int k = 3, *q = &_Generic(at, int: k); *q = 9; y[k] = 1;"
        " global int **r = &__builtin_choose_expr(1, y, z); *r = z; y[3] = 4;"
    ),
}

_PLAIN_WALKS = [
    Trap(
        f"walk {name}",
        f"kernel void k$(global int *y, global int *z, int at) {{ {text} }}",
        (mem(), mem(seed=5), i(5)),
    )
    for name, text in _WALKS.items()
]

_UNIONS = {
    "pointer and number": "union { global int *p; ulong a; } u; u.p = y; u.a += 20; *u.p = 1;",
    "pointer and bytes": (
        "union { global int *p; uchar b[8]; } u, v; u.p = y;"
        " for (int j = 0; j < 8; j++) v.b[j] = u.b[j]; v.p[6] = 1;"
    ),
    "two pointers": "union { global int *p; global char *c; } u; u.p = y; u.c += 9; *u.c = 1;",
    "pointer and vector": (
        "union { global int *p; uint2 v; } u; u.p = y; uint2 w = u.v; u.p = z; u.v = w; u.p[4] = 1;"
    ),
    "array of unions": (
        "union { global int *p; ulong a; } u[2]; u[0].p = z; u[1].a = (ulong)y; u[1].p[3] = 1;"
    ),
    "unnamed in a structure": (
        "struct { int n; union { global int *p; long a; }; } s; s.p = y; s.a += 12; *s.p = 1;"
    ),
    "numbers": "union { int n; uchar b[4]; } u; u.n = 0x01020304; y[u.b[0]] = 1; y[u.b[3]] = 2;",
    "float and int": "union { float f; int n; } u; u.f = 1.0f; y[u.n >> 28] = 1;",
    "memory": (
        "union U { int n; char c[8]; }; global union U *u = (global union U *)y;"
        " u[2].c[6] = 1; u[at].n = 2;"
    ),
}

TRAPS: list[Trap] = [
    *_VOIDS,
    *_HELPED_VOIDS,
    *_THROUGH_NUMBERS,
    *_PLAIN_WALKS,
    *(
        Trap(
            f"union {name}",
            f"kernel void k(global int *y, global int *z, int at) {{ {text} }}",
            (mem(), mem(seed=5), i(5)),
        )
        for name, text in _UNIONS.items()
    ),
]
