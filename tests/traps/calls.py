"""Helpers: what they get, what they give back, and what they do to it on the way."""

from __future__ import annotations

from traps.case import Local, Trap, i, mem

# Text at file scope, then the body of a kernel of `y`, `z` and `n`, which is 5.
_HELPERS: dict[str, tuple[str, str]] = {
    "chain of three": (
        (
            "void a$(global int *p) { p[2] = 1; } void b$(global int *p) { a$(p + 3); }"
            "void c$(global int *p) { b$(p + 4); a$(p); }"
        ),
        "c$(y + n);",
    ),
    "pointer comes back": (
        "global int *f$(global int *p, int n) { return p + 2 * n; }",
        "*f$(y, n) = 1; f$(f$(y, 3), 1)[2] = 3;",
    ),
    "one of two comes back": (
        "global int *f$(global int *p, global int *q, int n) { return n > 4 ? q : p; }",
        "f$(y, z, n)[3] = 1;",
    ),
    "one of two by data": (
        "global int *f$(global int *p, global int *q) { if (*p & 1) return q + 1; return p + 2; }",
        "f$(y, z)[3] = 1;",
    ),
    "early ends": (
        "int f$(int n) { if (n > 9) return 1; if (n > 4) return 7; return 3; }",
        "y[f$(n)] = 1; y[f$(n + 9)] = 2; y[f$(0)] = 3;",
    ),
    "ends in a loop": (
        "int f$(int n) { for (int j = 0; j < 20; j++) if (j * j > n) return j; return 50; }",
        "y[f$(n)] = 1;",
    ),
    "falls off its end": (
        (
            "int f$(int n) { if (n > 3) return 7; return 8; } void g$(global int *p) { if (p[0] &"
            " 1) return; p[4] = 1; }"
        ),
        "y[f$(n)] = 1; g$(y);",
    ),
    "changes its parameter": (
        "void f$(global int *p, int n) { p += n; n++; p[n] = 1; }",
        "f$(y, n); f$(y, n + 20); y[n] = 2;",
    ),
    "changes by address": ("void f$(int *n) { *n += 20; }", "int j = n; f$(&j); y[j] = 1;"),
    "changes by address of an element": (
        "void f$(int *n) { n[1] += 20; }",
        "int j[2] = {1, 2}; f$(j); y[j[1]] = 1;",
    ),
    "changes a pointer by address": (
        "void f$(global int **p, int n) { *p += n; }",
        "global int *p = y; f$(&p, n); *p = 1; f$(&p, 3); *p = 2;",
    ),
    "swaps pointers": (
        "void f$(global int **p, global int **q) { global int *t = *p; *p = *q; *q = t; }",
        "global int *p = y, *q = z; f$(&p, &q); p[3] = 1;",
    ),
    "structure by value": (
        "struct S$ { global int *p; int n; }; void f$(struct S$ s) { s.p[s.n] = 1; s.n = 9; }",
        "struct S$ s = {y, n}; f$(s); y[s.n + 1] = 2;",
    ),
    "structure comes back": (
        (
            "struct S$ { global int *p; int n; }; struct S$ f$(global int *p) { struct S$ s = {p +"
            " 2, 3}; return s; }"
        ),
        "struct S$ s = f$(y); s.p[s.n] = 1; f$(y + 9).p[1] = 2;",
    ),
    "structure by address": (
        "struct S$ { global int *p; int n; }; void f$(struct S$ *s) { s->p += s->n; s->n = 1; }",
        "struct S$ s = {y, n}; f$(&s); s.p[s.n] = 1;",
    ),
    "array by address": (
        (
            "int f$(const int *a, int n) { int s = 0; for (int j = 0; j < n; j++) s += a[j]; return"
            " s; }"
        ),
        "int a[5] = {1, 2, 3, 4, 5}; y[f$(a, n)] = 1;",
    ),
    "array parameter": (
        (
            "void f$(global int p[], int n) { p++; p[n] = 1; } void g$(global int p[static 4]) {"
            " p[2] = 1; }"
        ),
        "f$(y, n); g$(y + 20);",
    ),
    "rows parameter": (
        "void f$(global int p[][8], int n) { p[1][n] = 1; p++; p[2][1] = 2; }",
        "f$((global int (*)[8])y, n);",
    ),
    "narrow parameter": (
        "int f$(uchar n) { return n; } int g$(char n) { return n + 128; }",
        "y[f$(n + 250) - 230] = 1; y[f$(-200)] = 2; y[g$(200) & 63] = 3;",
    ),
    "narrow result": (
        "uchar f$(int n) { return n; } short g$(int n) { return n; }",
        "y[f$(n + 250) - 230] = 1; y[f$(-200)] = 2; y[g$(65536 + 9)] = 3;",
    ),
    "bool result": (
        "bool f$(int n) { return n; } bool g$(int n) { return n & 2; }",
        "y[f$(n)] = 1; y[f$(256) + 9] = 2; y[g$(n) + 19] = 3;",
    ),
    "float parameter": (
        "int f$(float x) { return x; } float g$(int n) { return n * 1.5f; }",
        "y[f$(n)] = 1; y[(int)g$(n)] = 2; y[f$(7.9)] = 3;",
    ),
    "unsigned parameter": (
        "int f$(uint n) { return n > 3 ? 7 : 2; }",
        "y[f$(-1)] = 1; y[f$(n - 3)] = 2;",
    ),
    "result dropped": (
        "int f$(global int *p) { *p = 5; return 3; }",
        "f$(y + 2); (void)f$(y + 4); f$(y + 6), f$(y + 8);",
    ),
    "effects in arguments": (
        "int f$(int a, int b) { return a * 10 + b; }",
        "int j = 1; y[f$(j++, 3)] = 1; y[f$(3, j += 2)] = 2; y[j] = 3;",
    ),
    "argument is a call": (
        "int f$(int a) { return a + 1; }",
        "y[f$(f$(f$(n)))] = 1; y[f$(n) * f$(1)] = 2;",
    ),
    "parameter not used": (
        "void f$(global int *p, global int *q) { q[3] = 1; }",
        "f$(y, z); f$(y, y + 9);",
    ),
    "pointer only compared": (
        "int f$(global int *p, global int *q) { return p == q; }",
        "y[f$(y, y)] = 1; y[f$(y, y + 1) + 9] = 2;",
    ),
    "declared before": (
        (
            "void f$(global int *p); void g$(global int *p) { f$(p + 4); } void f$(global int *p) {"
            " p[1] = 1; }"
        ),
        "g$(y); f$(y + 20);",
    ),
    "declared with other names": (
        "void f$(global int *a, int b); void f$(global int *p, int n) { p[n] = 1; }",
        "f$(y, n);",
    ),
    "declared without names": (
        "void f$(global int *, int); void f$(global int *p, int n) { p[n] = 1; }",
        "f$(y, n);",
    ),
    "declared inside": (
        "void f$(global int *p, int n) { p[n] = 1; }",
        "void f$(global int *, int); f$(y, n);",
    ),
    "inline": (
        (
            "inline void f$(global int *p, int n); static inline void g$(global int *p, int n) {"
            " p[n] = 1; }"
        ),
        "g$(y, n);",
    ),
    "static": (
        "static void f$(global int *p, int n) { p[n] = 1; }",
        "f$(y, n); (f$)(y, n + 1); (*f$)(y, n + 2); (&f$)(y, n + 3);",
    ),
    "always inline": (
        "__attribute__((always_inline)) void f$(global int *p, int n) { p[n] = 1; }",
        "f$(y, n);",
    ),
    "never inline": (
        "__attribute__((noinline)) int f$(global int *p, int n) { p[n] = 1; return n + 9; }",
        "y[f$(y, n)] = 2;",
    ),
    "pure and const": (
        (
            "__attribute__((const)) int f$(int n) { return n * 3; } __attribute__((pure)) int"
            " g$(global int *p) { return p[3] & 15; }"
        ),
        "y[f$(n)] = 1; y[g$(y) + 30] = 2;",
    ),
    "overloads": (
        (
            "__attribute__((overloadable)) void f$(global int *p, int n) { p[n] = 1; }"
            "__attribute__((overloadable)) void f$(global int *p, float n) { p[(int)n + 20] = 2; }"
            "__attribute__((overloadable)) void f$(global int *p, uchar n) { p[n + 40] = 3; }"
        ),
        "f$(y, n); f$(y, 3.0f); f$(y, (uchar)7);",
    ),
    "overloads by space": (
        (
            "__attribute__((overloadable)) void f$(global int *p) { p[3] = 1; }"
            "__attribute__((overloadable)) void f$(int *p) { p[0] = 30; }"
        ),
        "int j = 2; f$(&j); f$(y); y[j] = 2;",
    ),
    "overload of a built-in": (
        "__attribute__((overloadable)) int min(global int *p, int n) { p[n] = 1; return n; }",
        "y[min(y, n) + 30] = 2; y[min(n, 3)] = 3;",
    ),
    "kernel calls a kernel": (
        "kernel void other$(global int *p, int n) { p[n + get_global_id(0)] = 1; }",
        "other$(y, n); other$(y + 20, 3);",
    ),
    "kernel calls a kernel by macro": (
        "kernel void other$(global int *p, int n) { p[n] = 1; }\n#define O$ other$\n",
        "O$(y, n);",
    ),
    "helper asks who it is": (
        "int f$(void) { return get_global_id(0) * 3 + get_local_id(0) + get_global_size(0); }",
        "y[f$()] = 1;",
    ),
    "helper loops": (
        "void f$(global int *p, int n) { while (n-- > 0) *p++ = 1; }",
        "f$(y, n); f$(y + 20, n - 2);",
    ),
    "helper loops in a loop": (
        "void f$(global int *p, int n) { for (int j = 0; j < n; j++) p[j] = 1; }",
        "for (int j = 0; j < 4; j++) f$(y + 9 * j, j);",
    ),
    "helper with statics": (
        "constant int T$[4] = {3, 1, 4, 15};",
        "y[T$[n & 3]] = 1; y[T$[3] + 9] = 2;",
    ),
    "helper returns void": ("void f$(global int *p) { return (void)(p[3] = 1); }", "f$(y);"),
    "helper in a condition": (
        "int f$(global int *p) { return p[1] = 4; }",
        "if (f$(y) > 3 && f$(y + 9)) y[20] = 1; else f$(y + 30);",
    ),
    "helper in a loop's parts": (
        "int f$(global int *p, int j) { p[j] = 1; return j; }",
        "for (int j = f$(y, 3); f$(y + 20, j) < 7; j = f$(y + 40, j) + 1) y[j] = 2;",
    ),
    "two functions, one body": (
        (
            "void f$(global int *p, int n) { p[n] = 1; } void (g$)(global int *p, int n) { f$(p, n"
            " + 1); }"
        ),
        "g$(y, n);",
    ),
    "many parameters": (
        (
            "void f$(global int *a, int b, global int *c, long d, uchar e, short f, global char *g)"
            " { a[b] = 1; c[d] = 2; g[e + f] = 3; }"
        ),
        "f$(y, n, z, n + 1, n + 2, n + 3, (global char *)(y + 30));",
    ),
    "const parameter": (
        "void f$(global int *const restrict p, const int n) { p[n] = 1; }",
        "f$(y, n);",
    ),
    "const taken away in a helper": (
        "void f$(const global int *p) { ((global int *)p)[7] = 1; }",
        "f$(y); f$((const global int *)z);",
    ),
    "const taken away by the caller": (
        "void f$(global int *p) { p[7] = 1; }",
        "const global int *c = y; f$((global int *)c);",
    ),
    "volatile parameter": ("void f$(volatile global int *p) { p[7]++; }", "f$(y);"),
    "local in a helper": (
        "void f$(local int *t, global int *p) { t[1] = p[3]; p[4] = t[1] + 1; }",
        "local int t[4]; f$(t, y);",
    ),
    "private in a helper": (
        "void f$(int *t) { for (int j = 0; j < 3; j++) t[j] = j * 7; }",
        "int t[3]; f$(t); y[t[2]] = 1;",
    ),
    "K&R": ("void f$(p, n) global int *p; int n; { p[n] = 1; }", "f$(y, n);"),
    "K&R promotes": ("int f$(n) uchar n; { return n; }", "y[f$(7)] = 1;"),
    "no prototype": ("void f$(); void f$(global int *p, int n) { p[n] = 1; }", "f$(y, n);"),
    "empty parameters": ("int f$() { return 7; }", "y[f$()] = 1;"),
    "typedef of a function": (
        "typedef void F$(global int *, int); F$ f$; void f$(global int *p, int n) { p[n] = 1; }",
        "f$(y, n);",
    ),
    "function typed helper": (
        "typedef int G$(int); G$ g$; int g$(int n) { return n + 3; }",
        "y[g$(n)] = 1;",
    ),
    "assembler name": (
        'void f$(global int *p) __asm__("renamed$"); void f$(global int *p) { p[3] = 1; }',
        "f$(y);",
    ),
    "weak": ("__attribute__((weak)) void f$(global int *p) { p[3] = 1; }", "f$(y);"),
    "cleanup": (
        "void f$(global int **p) { (*p)[9] = 1; }",
        "global int *p __attribute__((cleanup(f$))) = y; z[3] = 1;",
    ),
    "cleanup of a number": (
        "void f$(int *p) { *p = 40; }",
        "int j = 3; { int t __attribute__((cleanup(f$))) = 2; y[t] = 1; } y[j] = 1;",
    ),
    "cleanup in a loop": (
        "void f$(global int **p) { (*p)[1] = 1; }",
        (
            "for (int j = 0; j < 3; j++) { global int *p __attribute__((cleanup(f$))) = y + 4 * j;"
            " if (j == 1) continue; p[20] = 1; }"
        ),
    ),
    "cleanup only": (
        "void f$(global int **p) { **p += 1; }",
        "global int *p __attribute__((__cleanup__(f$))) = y + n;",
    ),
    "cleanup of a structure": (
        "struct S$ { global int *p; }; void f$(struct S$ *s) { s->p[9] = 1; }",
        "struct S$ s __attribute__((cleanup(f$))) = {y};",
    ),
    "named as a variable": (
        "int f$(int n) { return n + 7; }",
        "int t = f$(n); { int f$ = 9; y[f$] = 1; } y[t] = 2;",
    ),
    "parameter named as a helper": (
        "int g$(int n) { return n + 7; } int f$(int g$) { return g$ * 2; }",
        "y[f$(n)] = 1; y[g$(n)] = 2;",
    ),
    "atomic in a helper": (
        "int f$(volatile global int *p) { return atomic_inc(p); }",
        "y[(f$(y + 20) & 7) + 1] = 1;",
    ),
    "barrier in a helper": (
        "void f$(void) { barrier(CLK_GLOBAL_MEM_FENCE); }",
        "y[1] = 1; f$(); y[2] = y[1];",
    ),
    "recursion by macro": (
        "#define f$(x) (f$)(x)\nint (f$)(int n) { return n + 4; }\n",
        "y[f$(n)] = 1; y[f$(f$(n))] = 2;",
    ),
    "pointer and its copy": (
        "void f$(global int *p, global int *q) { *p = 1; q[1] = *p; }",
        "f$(y + 3, y + 3); f$(y + 9, z);",
    ),
    "deep": (
        "int f0$(int n) { return n + 1; }"
        + "".join(f" int f{a}$(int n) {{ return f{a - 1}$(n) + 1; }}" for a in range(1, 25)),
        "y[f24$(n)] = 1;",
    ),
    "wide": (
        "int f0$(int n) { return n + 1; }"
        + "".join(
            f" int f{a}$(int n) {{ return f{a - 1}$(n) + f{a - 1}$(n - 1); }}" for a in range(1, 6)
        ),
        "y[f5$(0) & 63] = 1;",
    ),
    "exponential": (
        "int f0$(int n) { return n & 1; }"
        + "".join(
            f" int f{a}$(int n) {{ return f{a - 1}$(n) + f{a - 1}$(n + 1); }}" for a in range(1, 16)
        ),
        "y[f15$(n) & 63] = 1;",
    ),
}

_WITH_LOCAL = {
    "local argument": (
        "void f$(local int *t, global int *p, int n) { t[n] = p[n]; barrier(CLK_LOCAL_MEM_FENCE);"
        " p[n + 8] = t[3 - n]; }kernel void k$(global int *y, local int *t) { f$(t, y,"
        " get_local_id(0)); }"
    ),
    "local index": (
        "kernel void k$(global int *y, local int *t) { int l = get_local_id(0); t[l] = l * 5;"
        " barrier(CLK_LOCAL_MEM_FENCE); y[t[3 - l]] = 1; }"
    ),
    "local counter": (
        "kernel void k$(global int *y, local int *t) { int l = get_local_id(0); if (!l) *t = 8;"
        " barrier(CLK_LOCAL_MEM_FENCE); y[atomic_inc(t)] = 1; }"
    ),
    "local pointer kept": (
        "kernel void k$(global int *y, local int *t) { local int *p = t + get_local_id(0); *p = 3;"
        " p = t; barrier(CLK_LOCAL_MEM_FENCE); y[p[2] + get_local_id(0)] = 1; }"
    ),
}

_ALIAS = """
void f(global int *p) { p[3] = 1; }
void g(global int *p) __attribute__((alias("f")));
kernel void k(global int *y) { g(y); }
"""
"""Alone in its program: PoCL 3.0 crashes at it, and Intel's compiler never ends."""

TRAPS: list[Trap] = [
    *(
        Trap(
            name,
            f"{before}\nkernel void k$(global int *y, global int *z, int n) {{ {text} }}",
            (mem(), mem(seed=5), i(5)),
        )
        for name, (before, text) in _HELPERS.items()
    ),
    *(
        Trap(name, source, (mem(), Local(64)), size=(4,), local=(4,))
        for name, source in _WITH_LOCAL.items()
    ),
    Trap("alias", _ALIAS, (mem(),)),
]
