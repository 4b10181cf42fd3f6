"""What a name means: functions of a source beside built-in ones, and words that macros make.

A call of `min` takes the best of all functions of that name, the source's among them. A word such
as `union` need not stand in the text.
"""

from __future__ import annotations

from traps.case import Trap, around, i, mem

_OWN = "__attribute__((overloadable))"

# `n` is 13.
_FUNCTIONS = {
    "min of other types": (
        f"int {_OWN} min(int a, char b) {{ return a + b; }}",
        "y[min(n, (char)2)] = 1; y[min(n, 20)] = 2;",
    ),
    "min without a mark": (
        "int min(int a, char b) { return a + b; }",
        "y[min(n, (char)2)] = 1; y[min(n, 20)] = 2;",
    ),
    "clamp": (
        f"int {_OWN} clamp(char a, short b, int c) {{ return 40; }}",
        "y[clamp((char)1, (short)2, 3)] = 3; y[clamp(n, 5, 9)] = 3;",
    ),
    "abs only declared": (f"int {_OWN} abs(float a);", "y[abs(-n)] = 1;"),
    "vload": (
        f"int {_OWN} vload2(int a, global int *b, int c) {{ return 5; }}",
        "y[vload2(3, y, 3)] = 1; y[vload2(3, y).x & 63] = 2;",
    ),
    "conversion": (
        f"int {_OWN} convert_uchar(global int *p) {{ return 5; }}",
        "y[convert_uchar(y)] = 1; y[convert_uchar(n + 256)] = 2;",
    ),
    "variables": (
        "",
        "int min = 3; y[min] = 1; int get_local_id = 9; y[get_local_id] = 2;"
        " { int (abs) = 20; y[abs] = 3; }",
    ),
    "macros of built-ins": (
        "#define get_global_id(x) (get_local_id(x) + 7)\n#define min max",
        "y[get_global_id(0)] = 1; y[min(n, 20)] = 2;",
    ),
    "enumeration in a block": (
        "",
        "enum { m = 20 }; { enum { m = 30 }; y[m] = 2; } y[m] = 3;",
    ),
}

_WORDS = {
    "union of two parts": (
        "#define U uni##on",
        "U { global int *p; ulong n; } u; u.n = ((global ulong *)y)[0]; if (n > 90) *u.p = 3;"
        " u.p = y; *u.p = 1; u.n += 12; *u.p = 1;",
    ),
    "typeof of two parts": (
        "#define T __type##of__\nvoid f(global int p[4], int n) { T(p) q = p + n; *q = 1; q += 3;"
        " T(&p[1]) r = q; *r = 2; }",
        "f(y, n); f(y + 20, 2);",
    ),
    "recursive": (
        "#define g(x) g2(x)\n#define g2(x) g(x + 1)\nint (g)(int x) { return x * 3; }\n"
        "int (g2)(int x) { return x + 9; }",
        "y[g(4)] = 1; y[g2(4)] = 2;",
    ),
    "over lines": (
        "#define A 3 \\\n + 4\n",
        "int k = A; y[k] = 1; // comment \\\n y[30] = 2;\n y[2\\\n0] = 3; int long_na\\\nme = 9;"
        " y[long_name] = 3;",
    ),
    "digraphs": ("%:define A 3\n", "y<:A:> = 1; y<: n :> = 2; <% int k = 20; y<:k:> = 3; %>"),
    "lines told": (
        '#line 1000 "other.cl"\n#define L __LINE__\n#line 5\n',
        "y[__LINE__] = 1;\n y[L] = 2;\n#line 40\n y[__LINE__] = 3;\n#line 1\n y[L + 50] = 4;",
    ),
}

TRAPS: list[Trap] = [
    *(
        around(f"{family} {name}", before, text, i(13), params="int n")
        for family, traps in (("function", _FUNCTIONS), ("word", _WORDS))
        for name, (before, text) in traps.items()
    ),
    Trap(
        "word union by an option",
        "U u { global int *p; ulong n; }; kernel void k(global int *y, int n) { U u u; u.n ="
        " ((global ulong *)y)[n]; if (n > 90) *u.p = 3; y[3] = 1; }",
        (mem(), i(13)),
        options=("-DU=union",),
    ),
    Trap(
        "word typeof by an option",
        "kernel void k(global int y[4], int n) { T(y) p = y + 3; *p = 1; T(&y[1]) q = &y[n]; *q"
        " = 2; p += 9; *p = 1; }",
        (mem(), i(13)),
        options=("-DT=__typeof__",),
    ),
]
