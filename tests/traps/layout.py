"""Where the members of structures are: packed, aligned, flexible, in bits, in unions."""

from __future__ import annotations

from traps.case import Buffer, Trap, i, mem, some_bytes

# A structure `S$`, and what is done with `global S$ *s`, which points to 256 bytes.
_STRUCTURES: dict[str, tuple[str, str]] = {
    "plain": ("typedef struct { int a; float b; } S$;", "s[3].b = 1; s->a = 2; (*(s + 7)).a = 3;"),
    "padding": (
        "typedef struct { char a; int b; char c; } S$;",
        "s[2].b = 1; s[5].c = 2; s[7].a = 1;",
    ),
    "packed": (
        "typedef struct __attribute__((packed)) { char a; int b; char c; } S$;",
        "s[2].b = 1; s[5].c = 2; s[9].a = 1;",
    ),
    "packed member": (
        "typedef struct { char a; int b __attribute__((packed)); short c; } S$;",
        "s[2].b = 1; s[5].c = 2; s[n].a = 1;",
    ),
    "packed behind": (
        "typedef struct { char a; long b; } __attribute__((packed)) S$;",
        "s[3].b = -1; s[9].a++;",
    ),
    "aligned": (
        "typedef struct { int a; } __attribute__((aligned(16))) S$;",
        "s[3].a = 1; s[n].a = 2;",
    ),
    "aligned member": (
        "typedef struct { char a; int b __attribute__((aligned(32))); } S$;",
        "s[2].b = 1; s[1].a = 2;",
    ),
    "aligned most": (
        "typedef struct { char a; } __attribute__((aligned)) S$;",
        "s[3].a = 1; s[n].a = 2;",
    ),
    "aligned typedef": (
        "typedef int I$ __attribute__((aligned(8))); typedef struct { char a; I$ b; } S$;",
        "s[3].b = 1; s[n].a = 2;",
    ),
    "less aligned typedef": (
        "typedef int I$ __attribute__((aligned(2))); typedef struct { char a; I$ b; } S$;",
        "s[3].b = 1; s[n].a = 2;",
    ),
    "aligned by a size": (
        "typedef struct { char a; } __attribute__((aligned(sizeof(double4)))) S$;",
        "s[n].a = 2;",
    ),
    "pragma pack": (
        "#pragma pack(push, 1)\ntypedef struct { char a; int b; } S$;\n#pragma pack(pop)\n",
        "s[7].b = 1; s[11].a = 1;",
    ),
    "pragma pack two": (
        "#pragma pack(2)\ntypedef struct { char a; long b; } S$;\n#pragma pack()\n",
        "s[7].b = 1; s[11].a = 1;",
    ),
    "pragma pack by macro": (
        (
            '#define P _Pragma("pack(push, 1)")\nP typedef struct { char a; int b; } S$;\n'
            '_Pragma("pack(pop)")\n'
        ),
        "s[7].b = 1; s[11].a = 1;",
    ),
    "bits": (
        "typedef struct { int a : 3; uint b : 13; int c : 20; char d; } S$;",
        "s[2].b = n; s[3].c = 1; s[4].a = 2; s[5].d = 1;",
    ),
    "bits that cross": (
        "typedef struct { uint a : 30; uint b : 30; uint c : 4; } S$;",
        "s[2].b = n; s[4].c = 1; y[60] = s[7].a;",
    ),
    "bits packed": (
        "typedef struct __attribute__((packed)) { uint a : 5; uint b : 30; } S$;",
        "s[2].b = n; s[4].a = 1;",
    ),
    "bits of nothing": (
        "typedef struct { char a : 4; int : 0; char b : 4; } S$;",
        "s[2].b = 1; s[4].a = 1;",
    ),
    "bits of a long": (
        "typedef struct { ulong a : 40; ulong b : 24; } S$;",
        "s[2].b = 1; s[4].a = 1; y[61] = s[6].b;",
    ),
    "sign of bits": (
        "typedef struct { int a : 3; uint b : 3; } S$;",
        "s->a = 7; s->b = 7; y[s->a + 9] = 1; y[s->b + 20] = 2;",
    ),
    "char3": (
        "typedef struct { char3 a; char b; } S$;",
        "s[2].a = (char3)(1); s[4].b = 2; s[5].a.z = 3;",
    ),
    "float3": (
        "typedef struct { float3 a; float b; } S$;",
        "s[2].a = (float3)(1); s[4].b = 2; s[5].a.y = 3;",
    ),
    "double2": ("typedef struct { char c; double2 a; } S$;", "s[2].a.y = 1; s[4].c = 2;"),
    "int16": ("typedef struct { int c; int16 a; } S$;", "s[1].a.s7 = 1; s[0].c = 2;"),
    "flexible": ("typedef struct { int n; char d[]; } S$;", "s->d[n] = 3; s->d[100] = 4;"),
    "flexible ints": ("typedef struct { char n; int d[]; } S$;", "s->d[n] = 3; y[2] = s->d[40];"),
    "flexible floats": (
        "typedef struct { long n; float d[]; } S$;",
        "for (int j = 0; j < n; j++) s->d[j * 2] = 3;",
    ),
    "flexible behind padding": (
        "typedef struct { long n; char m; char d[]; } S$;",
        "s->d[0] = 3; s->d[n] = 4; s->d[7] = 1;",
    ),
    "flexible by address": (
        "typedef struct { int n; short d[]; } S$;",
        "global short *p = s->d; p[n] = 1; *(&s->d[1] + 8) = 2;",
    ),
    "flexible of structures": (
        "typedef struct { int n; struct { char a; int b; } d[]; } S$;",
        "s->d[n].b = 1; s->d[7].a = 2;",
    ),
    "flexible read": ("typedef struct { int n; char d[]; } S$;", "y[60] = s->d[n] + s->d[31];"),
    "zero length": ("typedef struct { int n; char d[0]; } S$;", "s->d[n] = 3; s->d[90] = 4;"),
    "zero length ints": (
        "typedef struct { short n; int d[0]; } S$;",
        "s->d[n] = 3; y[60] = s->d[n + 9];",
    ),
    "zero length first": (
        "typedef struct { int d[0]; int n; } S$;",
        "s->d[n] = 3; s[7].d[2] = 1; s[9].n = 2;",
    ),
    "one as flexible": ("typedef struct { int n; char d[1]; } S$;", "s->d[n] = 3; s->d[70] = 4;"),
    "flexible in the last member": (
        "struct I$ { int n; int d[]; }; typedef struct { long m; struct I$ in; } S$;",
        "s->in.d[n] = 3; s->in.d[20] = 4;",
    ),
    "empty": (
        "typedef struct { } E$; typedef struct { E$ e; int a; } S$;",
        "s[3].a = 1; global E$ *e = (global E$ *)s; e += 5; *(global int *)e = 9;",
    ),
    "array of nothing": (
        "typedef int S$[0];",
        "global S$ *t = (global S$ *)y; t += 5; (*t)[9] = 1;",
    ),
    "arrays": (
        "typedef struct { int a[3]; char b[5]; } S$;",
        "s[2].a[1] = 1; s[3].b[n & 3] = 2; s[1].b[4] = 3;",
    ),
    "array beyond its end": (
        "typedef struct { int a[3]; int b[4]; } S$;",
        "s[1].a[n] = 1; s[2].b[-2] = 2;",
    ),
    "arrays of arrays": (
        "typedef struct { short a[2][3]; } S$;",
        "s[2].a[1][2] = 1; s[3].a[0][n] = 2;",
    ),
    "inner": (
        "typedef struct { struct { char a; short b; } in[2]; int c; } S$;",
        "s[3].in[1].b = 1; s[4].c = 2;",
    ),
    "inner by pointer": (
        "struct I$ { char a; short b; }; typedef struct { int c; struct I$ in; } S$;",
        "global struct I$ *p = &s[3].in; p->b = 1; p[2].a = 2; (--p)->b = 4;",
    ),
    "unnamed": (
        "typedef struct { char a; struct { short b; long c; }; } S$;",
        "s[3].b = 1; s[2].c = 2;",
    ),
    "member address": (
        "typedef struct { char a; int b, c; } S$;",
        "global int *p = &s[2].b; p[1] = 1; *(p + n) = 2;",
    ),
    "container of": (
        "typedef struct { char a; int b, c; } S$;",
        (
            "global int *p = &s[2].c; global S$ *t = (global S$ *)((global char *)p -"
            " __builtin_offsetof(S$, c)); t->a = 1; t[1].b = 2;"
        ),
    ),
    "offset of": (
        "typedef struct { char a; int b[4]; long c; } S$;",
        "y[__builtin_offsetof(S$, c)] = 1; y[__builtin_offsetof(S$, b[3])] = 2;",
    ),
    "offset of one element": (
        "typedef struct { char a; int b[9]; } S$;",
        "y[__builtin_offsetof(S$, b[2])] = 1; y[__builtin_offsetof(S$, b[n]) + 20] = 2;",
    ),
    "offset by null": (
        "typedef struct { char a; short b; long c; } S$;",
        "y[(size_t)&((S$ *)0)->c] = 1; y[(size_t)&((S$ *)0)[2].b] = 2;",
    ),
    "assigned whole": ("typedef struct { char a; int b[3]; } S$;", "s[4] = s[1]; s[n] = *s;"),
    "copied to private": (
        "typedef struct { char a; int b[3]; } S$;",
        "S$ t = s[2]; t.b[1]++; s[7] = t;",
    ),
    "literal": ("typedef struct { char a; int b; } S$;", "s[3] = (S$){1, 2}; s[4] = (S$){.b = 5};"),
    "compound on a member": (
        "typedef struct { char a; int b; } S$;",
        "s[3].b += 2; s[4].a++; --s[5].b; s[6].a <<= 1;",
    ),
    "comparison of members": (
        "typedef struct { char a; int b; } S$;",
        "if (s[3].b > s[4].a) s[9].b = 1; else s[9].a = 1;",
    ),
    "size in an index": (
        "typedef struct { char a; int b; char c; } S$;",
        "y[sizeof(S$)] = 1; y[sizeof(s->b) + 20] = 2; y[sizeof *s + 30] = 3;",
    ),
    "size of an array of them": (
        "typedef struct { char a[3]; } S$;",
        "y[sizeof(S$[5])] = 1; y[sizeof(S$) * 2] = 2;",
    ),
    "alignment in an index": (
        "typedef struct { char a; double3 b; } S$;",
        "y[__alignof__(S$)] = 1; y[_Alignof(int3) + 40] = 2;",
    ),
    "enumeration member": (
        "enum E$ { A$, B$ = 300 }; typedef struct { char c; enum E$ e; char d; } S$;",
        "s[3].e = B$; s[4].d = 1;",
    ),
    "packed enumeration": (
        (
            "enum __attribute__((packed)) E$ { A$, B$ = 3 }; typedef struct { char c; enum E$ e;"
            " char d; } S$;"
        ),
        "s[3].e = B$; s[4].d = 1; y[sizeof(enum E$) + 50] = 1;",
    ),
    "bool member": (
        "typedef struct { bool a; int b; } S$;",
        "s[3].a = n; s[4].b = 2; y[60] = sizeof(S$);",
    ),
    "size_t member": ("typedef struct { char c; size_t a; } S$;", "s[3].a = n; s[4].c = 2;"),
    "vector by attribute": (
        "typedef int S$ __attribute__((ext_vector_type(8)));",
        "s[3].s7 = n; s[4] = (S$)(2);",
    ),
    "vector of bytes by attribute": (
        "typedef char S$ __attribute__((vector_size(16)));",
        "s[3][7] = n; s[4] = s[5];",
    ),
    "mode": (
        "typedef int H$ __attribute__((mode(HI))); typedef struct { H$ a, b; } S$;",
        "s[3].b = n; s[14].a = 2;",
    ),
    "mode of an index": (
        "typedef unsigned S$ __attribute__((mode(QI)));",
        "S$ j = 250 + n + 10; y[j] = 1; s[77] = 2;",
    ),
    "transparent union": ("typedef union { int a; char b[7]; } S$;", "s[3].b[6] = 1; s[4].a = 2;"),
    "union of structures": (
        "typedef union { struct { char a; int b; } p; struct { long c; char d; } q; } S$;",
        "s[3].p.b = 1; s[4].q.d = 2;",
    ),
    "declared twice": (
        "struct S$; typedef struct S$ S$; struct S$ { char a; int b; };",
        "s[3].b = 1;",
    ),
    "shadowed": (
        "typedef struct { char a; int b; } S$;",
        (
            "{ typedef struct { long a[3]; } S$; global S$ *t = (global S$ *)y; t[4].a[1] = 7; }"
            " s[3].b = 1;"
        ),
    ),
    "through a macro": (
        "#define M$(t, m) t m;\ntypedef struct { M$(char, a) M$(int, b) } S$;\n",
        "s[3].b = 1;",
    ),
    "half members": (
        "typedef struct { char a; half b; } S$;",
        "vstore_half(1.0f, 0, &s[5].b); vstore_half(2.0f, 3, &s[n].b);",
    ),
    "pointer member sizes": (
        "typedef struct { char a; global int *p; } S$;",
        "y[sizeof(S$)] = 1; y[__builtin_offsetof(S$, p)] = 2;",
    ),
}

_PROGRAMS = {
    "two views of one memory": (
        "struct A { int x[4]; }; struct B { char c[16]; };"
        "kernel void k(global struct A *a, global struct B *b, int n)"
        " { a[n].x[1] = 1; b[n + 1].c[7] = 2; }"
    ),
    "volatile structure": (
        "struct A { volatile int x[4]; char c; };"
        "kernel void k(global struct A *a, volatile global struct A *b, int n)"
        " { a[n].x[1] = 1; b[n + 1].c = 2; b->x[2]++; }"
    ),
    "pointer to an array of structures": (
        "struct A { short c; int x; }; typedef struct A rows[3];"
        "kernel void k(global rows *a, global struct A (*b)[2], int n)"
        " { a[2][n].x = 1; (*a)[1].c = 3; b[n][1].c = 2; }"
    ),
}

TRAPS: list[Trap] = [
    *(
        Trap(
            name,
            f"{before}\nkernel void k$(global int *y, int n)\n"
            f"{{ global S$ *s = (global S$ *)y; {text} }}",
            (mem(), i(5)),
        )
        for name, (before, text) in _STRUCTURES.items()
    ),
    *(
        Trap(name, source, (Buffer(some_bytes(256)), Buffer(some_bytes(256, 1)), i(2)))
        for name, source in _PROGRAMS.items()
    ),
]
