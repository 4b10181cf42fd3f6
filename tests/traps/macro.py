"""Macros: what is expanded, in which order, and what stands side by side afterwards."""

from __future__ import annotations

from traps.case import Trap, i, mem

# Definitions, then the body of a kernel of `y` and `n`, which is 5.
_MACROS: dict[str, tuple[str, str]] = {
    "minus of a minus": ("#define F(x) -x", "int j = n; y[F(-j) + 3] = 1; y[j + 20] = 2;"),
    "minus of a minus in a chain": (
        "#define F(x) -x\n#define G(x) F(-x)",
        "int j = n; y[G(j) + 3] = 1; y[j + 20] = 2;",
    ),
    "plus and plus": ("#define P +", "int a = n, b = 2; y[a+P+b] = 1; y[a] = 2; y[b + 30] = 3;"),
    "minus and minus": (
        "#define M -",
        "int a = n, b = 2; y[a -M b + 9] = 1; y[a-M-M b + 20] = 2; y[a] = 3; y[b + 40] = 4;",
    ),
    "and of an address": ("#define A &", "int a = n, b = 6; y[a &A a] = 1; y[b] = 2;"),
    "less and less": ("#define L <", "int a = n; y[(a <L 3) + 9] = 1;"),
    "over a dereference": (
        "#define D *p",
        "int t = 2, *p = &t; int a = 8; y[a /D] = 1; /* */ y[a] = 2;",
    ),
    "over over": ("#define O /", "int a = n; y[a O/* c */ 2] = 1; y[9] = 2;"),
    "equal and equal": ("#define E =", "int a = 3; a E n; y[a] = 1; y[(a E= n) + 20] = 2;"),
    "dot and digit": ("#define X 1", "float f = X .5f + 2; y[(int)f] = 1;"),
    "digit and name": ("#define e5 + 3", "y[1 e5] = 1;"),
    "arrow apart": ("#define G >", "struct s { int a; } t = {5}, *p = &t; y[p -G a] = 1;"),
    "increment apart": ("#define P +", "int a = n; y[P P a] = 1; y[a] = 2; y[-P-a] = 3;"),
    "minus argument": ("#define F(x) (n -x)", "y[F(-3)] = 1; y[n + 20] = 2;"),
    "minus empty": ("#define N", "int a = n; y[-N-a] = 1; y[a + 20] = 2; y[+N+a + 9] = 3;"),
    "plus of a parameter": (
        "#define F(a, b) a +b",
        "int a = n, b = 2; y[F(a, +b)] = 1; y[b + 20] = 2;",
    ),
    "string in a comment": ("#define F(x) x", "y[F(3)] = 1; // \"\n y[4] = 2; /* ' */ y[5] = 3;"),
    "comment in a string": (
        "#define F(x) sizeof(x)",
        'y[F("/*")] = 1; y[F("//") + 9] = 2; /* */ y[20] = 3;',
    ),
    "argument with commas": ("#define F(a, b) a + b", "y[F((1, 2), 3)] = 1; y[F(n, (n, 7))] = 2;"),
    "argument over lines": ("#define F(a, b) a + b", "y[F(1\n,\n2)] = 1; y[F\n(n,\n 7)] = 2;"),
    "argument with a directive": ("#define F(a) a", "y[F(\n#if 0\n30\n#else\n4\n#endif\n)] = 1;"),
    "empty argument": ("#define F(a, b) 3 a b", "y[F(,)] = 1; y[F(+ 1,)] = 2; y[F(, + 2)] = 3;"),
    "name without parentheses": (
        "#define f(x) 30",
        "int f = 4; y[f] = 1; y[(f)] = 2; y[f + f (1)] = 3;",
    ),
    "parentheses by a macro": (
        "#define f(x) x + 1\n#define O (\n#define g f",
        "int f = 7; y[g (3)] = 1; y[f] = 2;",
    ),
    "call by rescanning": ("#define f(x) x + 2\n#define g f(", "y[g 3)] = 1; y[g n) + 9] = 2;"),
    "call from the rest": ("#define f(x) x + 2\n#define g(x) f", "y[g(9)(3)] = 1;"),
    "call in a call": ("#define f(x) (x * 2)", "y[f(f(n))] = 1; y[f(f)(1)] = 2;"),
    "self": ("#define n (n + 4)", "y[n] = 1;"),
    "mutual": ("#define a b + 1\n#define b a + 2", "int b = 3, a = 9; y[b] = 1; y[a] = 2;"),
    "self by parameter": ("#define f(x) x(1)", 'y[3] = 1; y[sizeof("f(f)")] = 2;'),
    "self in an argument": ("#define f(x) x + f", "int f = 3; y[f(2)] = 1; y[f(f(1))] = 2;"),
    "order of expansion": (
        "#define x 3\n#define f(a) f(x * (a))\n#undef x\n#define x 2\n#define g f",
        'int t = 0; y[sizeof("g") + x] = 1;',
    ),
    "standard's example": (
        (
            "#define x 3\n#define f(a) h(x * (a))\n#undef x\n#define x 2\n#define g h\n#define z"
            " z[0]\n#define h(a) (a + 1)\n#define m(a) a(w)\n#define w 0,1"
        ),
        "y[f(3)] = 1; y[g(x + 4)] = 2; y[(m(h) , 9)] = 1;",
    ),
    "paste": (
        "#define P(a, b) a##b",
        "int ab = 7; y[P(a, b)] = 1; y[P(1, 2)] = 2; y[P(0x, 9)] = 3;",
    ),
    "paste before expansion": (
        "#define x 9\n#define P(a, b) a##b\n#define Q(a, b) P(a, b)\n#define xx 20\n#define x1 8",
        "y[P(x, 1)] = 1; y[P(x, x)] = 2; y[Q(x, 1) & 63] = 3;",
    ),
    "paste to a macro": ("#define P(a, b) a##b\n#define AB 9", "y[P(A, B)] = 1;"),
    "paste of operators": (
        "#define P(a, b) a##b",
        "int a = n; y[a P(+, +)] = 1; y[a] = 2; a P(-, =) 2; y[a] = 3; y[a P(<, <) 2] = 4;",
    ),
    "paste of nothing": (
        "#define P(a, b) a##b",
        "int a = 4; y[P(a,)] = 1; y[P(,a) + 9] = 2; y[3 P(,) + 1] = 3;",
    ),
    "paste of three": (
        "#define P(a, b, c) a##b##c",
        "int abc = 7; y[P(a, b, c)] = 1; y[P(1, , 2)] = 2;",
    ),
    "paste with space": (
        "#define P(a, b) a ## b\n#define Q(a) x ##a",
        "int ab = 7, x1 = 9; y[P(a , b)] = 1; y[Q( 1 )] = 2;",
    ),
    "paste with a digraph": ("#define P(a, b) a %:%: b", "int ab = 7; y[P(a, b)] = 1;"),
    "paste of a suffix": ("#define U(x) x##u", "y[U(4) - 5u > 0] = 1; y[U(7)] = 2;"),
    "paste in an object": ("#define P a ## b", "int ab = 7; y[P] = 1;"),
    "string of an argument": (
        "#define S(x) #x",
        "y[sizeof(S(abc))] = 1; y[sizeof(S(a  b)) + 9] = 2; y[sizeof(S( a\t\t)) + 20] = 3;",
    ),
    "string of a string": (
        "#define S(x) #x",
        'y[sizeof(S("a\\n"))] = 1; y[sizeof(S(\'"\')) + 20] = 2;',
    ),
    "string of nothing": ("#define S(x) #x", "y[sizeof(S())] = 1;"),
    "string of a macro": (
        "#define S(x) #x\n#define T(x) S(x)\n#define Q 12345",
        "y[sizeof(S(Q))] = 1; y[sizeof(T(Q)) + 9] = 2;",
    ),
    "string with a comment": (
        "#define S(x) #x",
        "y[sizeof(S(a/* long comment */b))] = 1; y[sizeof(S(a // b\n)) + 20] = 2;",
    ),
    "string of operators": (
        "#define S(x) #x",
        "y[sizeof(S(a+b))] = 1; y[sizeof(S(a + b)) + 9] = 2; y[sizeof(S(a ,b)) + 20] = 3;",
    ),
    "string over lines": ("#define S(x) #x", "y[sizeof(S(a\n\n   b))] = 1;"),
    "string of an expansion's space": (
        "#define S(x) #x\n#define T(x) S(x)\n#define F(a) a+a\n#define E",
        "y[sizeof(T(F(1)))] = 1; y[sizeof(T(-F(-1))) + 20] = 2; y[sizeof(T(1 E 2)) + 40] = 3;",
    ),
    "string of a variadic": (
        "#define S(...) #__VA_ARGS__",
        "y[sizeof(S(a, b,c))] = 1; y[sizeof(S()) + 20] = 2;",
    ),
    "string of a backslash": (
        "#define S(x) #x",
        "y[sizeof(S('\\\\'))] = 1; y[sizeof(S(\"\\\\\")) + 20] = 2;",
    ),
    "strings side by side": (
        '#define A "ab"',
        'y[sizeof(A "c" A)] = 1; constant char *t = "ab" "cd"; y[t[3] & 31] = 2;',
    ),
    "variadic": (
        "#define F(a, ...) a + G(__VA_ARGS__)\n#define G(b, c) b * c",
        "y[F(1, 2, 3)] = 1;",
    ),
    "variadic of none": ("#define F(a, ...) (a __VA_ARGS__)", "y[F(7)] = 1; y[F(7, + 2)] = 2;"),
    "variadic comma": (
        (
            "#define F(a, ...) G(a, ##__VA_ARGS__)\n#define G(...) H(__VA_ARGS__, 3, 2, 1)\n#define"
            " H(a, b, c, d, ...) d"
        ),
        "y[F(9)] = 1; y[F(9, 8) + 20] = 2; y[F(9, 8, 7) + 40] = 3;",
    ),
    "variadic optional": (
        "#define F(a, ...) (a __VA_OPT__(+) __VA_ARGS__)",
        "y[F(7)] = 1; y[F(7, 2)] = 2;",
    ),
    "variadic named": ("#define F(a, b...) (a + (0, ##b))", "y[F(7)] = 1; y[F(7, 2, 3)] = 2;"),
    "count of arguments": (
        "#define C(...) D(__VA_ARGS__, 4, 3, 2, 1)\n#define D(a, b, c, d, e, ...) e",
        "y[C(a)] = 1; y[C(a, b, c) + 9] = 2;",
    ),
    "counter": ("#define C __COUNTER__", "y[C] = 1; y[C + 9] = 2; y[C + 20] = 3;"),
    "counter in an argument": (
        "#define F(x) x + x\n#define G(x) F(x)",
        "y[F(__COUNTER__)] = 1; y[G(__COUNTER__) + 9] = 2; y[__COUNTER__ + 20] = 3;",
    ),
    "line": ("", "y[__LINE__] = 1;\ny[__LINE__ + 9] = 2;\n\n\ny[__LINE__ + 20] = 3;"),
    "line in an argument": (
        "#define F(x) x",
        "y[F(__LINE__\n\n)] = 1; y[F(\n\n__LINE__) + 9] = 2; y[__LINE__ + 20] = 3;",
    ),
    "line in a macro": ("#define L __LINE__", "y[L] = 1;\n\ny[L + 9] = 2;"),
    "line in a macro over lines": (
        "#define F(a, b) a + __LINE__ + b",
        "y[F(1,\n2)] = 1; y[F(\n1,\n\n2)\n] = 2;",
    ),
    "line continued": ("", "y[__LI\\\nNE__] = 1; y[\\\n\\\n__LINE__ + 20] = 2;"),
    "line set": ("", '\n#line 9\ny[__LINE__] = 1;\n#line 30 "x.cl"\ny[__LINE__] = 2;\n'),
    "line set by a marker": ("", '\n# 9 "x.cl"\ny[__LINE__] = 1;\n'),
    "line behind a comment": (
        "",
        "/*\n\n*/ y[__LINE__] = 1; // \\\n y[40] = 1;\n y[__LINE__ + 20] = 2;",
    ),
    "line behind a skipped part": ("", "\n#if 0\n\n\n#endif\ny[__LINE__] = 1;"),
    "file": ('#line 5 "abc"', "y[sizeof(__FILE__)] = 1;"),
    "function's name": ("", "y[sizeof(__func__)] = 1; y[__func__[0] & 31] = 2;"),
    "function's name otherwise": (
        "",
        "y[sizeof(__FUNCTION__)] = 1; y[sizeof(__PRETTY_FUNCTION__) & 31] = 2;",
    ),
    "function's name in a helper": (
        "int f(void) { return sizeof(__func__); }\nint fff(void) { return sizeof(__func__) + 9; }",
        "y[f()] = 1; y[fff()] = 2;",
    ),
    "include level": ("", "y[__INCLUDE_LEVEL__ + 3] = 1;"),
    "keyword": ("#define int long", "int j = n; y[sizeof(j)] = 1; y[sizeof(int) + 20] = 2;"),
    "type": ("#define uint uchar", "uint j = 250; j += n + 4; y[j] = 1; y[sizeof(uint) + 20] = 2;"),
    "size type": ("#define size_t uchar", "size_t j = 250; j += n + 4; y[j] = 1;"),
    "if": ("#define if while", "int j = n; if (j-- > 2) y[j] = 1;"),
    "for": ("#define for(x) for (int x = 0; x < 4; x++)", "for(j) y[j * 3] = 1;"),
    "return": ("#define return y[7] = 1; return", "if (n > 3) { return; } y[9] = 1;"),
    "return with a test": ("#define return if (n > 9) return", "return; y[9] = 1;"),
    "built-in": (
        "#define get_global_id(x) (x + 4)",
        "y[get_global_id(0)] = 1; y[get_global_id(1) + 20] = 2;",
    ),
    "built-in size": ("#define get_global_size(x) 7", "y[get_global_size(0)] = 1;"),
    "built-in min": ("#define min(a, b) a + b", "y[min(3, n)] = 1; y[(min)(3, n) + 20] = 2;"),
    "global": ("#define M global", "M int *p = y; p[n] = 1;"),
    "global as something": (
        "#undef global\n#define global_ __global",
        "global_ int *p = y; p[n] = 1;",
    ),
    "sizeof": ("#define sizeof(x) 9", "y[sizeof(int)] = 1;"),
    "true": ("#define true 7", "y[true] = 1; y[false + 9] = 2;"),
    "braces": (
        "#define BEGIN {\n#define END }",
        "if (n > 9) BEGIN y[1] = 1; y[2] = 1; END y[3] = 1;",
    ),
    "unbalanced": ("#define O if (n) { y[7] = 1;\n#define C }", "O y[8] = 1; C y[9] = 1;"),
    "semicolons": ("#define S y[7] = 1;", "if (n > 9) S y[9] = 2; S; ; S"),
    "whole statement": (
        "#define SET(a, b) do { y[a] = (b); } while (0)",
        "if (n > 9) SET(1, 2); else SET(7, 8);",
    ),
    "swap": (
        "#define SWAP(t, a, b) { t c_ = a; a = b; b = c_; }",
        "int a = 3, b = n; SWAP(int, a, b) y[a] = 1; y[b + 20] = 2;",
    ),
    "twice evaluated": (
        "#define MAX(a, b) ((a) > (b) ? (a) : (b))",
        "int j = n; y[MAX(j++, 3)] = 1; y[j] = 2;",
    ),
    "precedence": (
        "#define T(x) x * 2\n#define U a + b",
        "int a = 3, b = 4; y[T(1 + 2)] = 1; y[U * 2] = 2; y[2 * U] = 3;",
    ),
    "x macros": (
        "#define LIST X(3) X(9) X(20)",
        "\n#define X(a) y[a] = a;\nLIST\n#undef X\n#define X(a) + a\ny[0 LIST] = 1;",
    ),
    "repetition": ("#define R(x) x x\n#define Q(x) R(R(x))", "int j = 0; Q(y[j += 3] = 1;)"),
    "deferred": (
        "#define E()\n#define D(x) x E()\n#define A() 7\n#define X(x) x",
        "y[X(D(A)())] = 1;",
    ),
    "conditional by paste": (
        (
            "#define IF(c) P(IF_, c)\n#define P(a, b) a##b\n#define IF_1(t, e) t\n#define IF_0(t,"
            " e) e\n#define C 1"
        ),
        "y[IF(C)(7, 30)] = 1; y[IF(0)(40, 9)] = 2;",
    ),
    "table": ("#define T0 3\n#define T1 9\n#define T(i) T##i", "y[T(0)] = 1; y[T(1)] = 2;"),
    "redefined on the way": (
        "#define Q 3",
        "y[Q] = 1;\n#undef Q\n#define Q 9\ny[Q] = 2;\n#undef Q\nint Q = 20; y[Q] = 3;",
    ),
    "pushed on the way": (
        "#define Q 3",
        (
            '\n#pragma push_macro("Q")\n#undef Q\n#define Q 9\ny[Q] = 1;\n#pragma'
            ' pop_macro("Q")\ny[Q] = 2;'
        ),
    ),
    "pragma in a macro": (
        '#define U _Pragma("unroll") for (int j = 0; j < 3; j++)',
        "U y[j * 5] = 1; U y[j + 30] = 2;",
    ),
    "pragma of an argument": (
        "#define U(n) _Pragma(#n)",
        "U(unroll 2) for (int j = 0; j < 3; j++) y[j * 5] = 1;",
    ),
    "attribute": ("#define A __attribute__((unused))", "A int j = 7; y[j] = 1;"),
    "characters": (
        "#define Q 'a'",
        "y[Q - 90] = 1; y['\\'' - 30] = 2; y['\"' - 20] = 3; y['/'] = 4;",
    ),
    "semicolon in characters": (
        "#define F(x) x",
        "y[F(';')] = 1; y[F(',')] = 2; y[F(')')] = 3; y[F('(')] = 4;",
    ),
    "floating suffix": ("#define F(x) x##f", "y[(int)F(7.5)] = 1; y[(int)F(1e1)] = 2;"),
    "floats": (
        "#define Q 1e+1",
        "y[(int)Q] = 1; y[(int)(0x1p3 + 1)] = 2; y[(int)(.5e1f + 20)] = 3; y[(int)1.e1 + 30] = 4;",
    ),
    "number and sign": ("#define e 3", "y[0x1 +e] = 1; y[2+e + 9] = 2; y[0xe + 1] = 3;"),
    "dollar": ("#define D a$b", "int a$b = 7; y[D] = 1;"),
    "underscores": ("#define __my_at 7\n#define _At 9", "y[__my_at] = 1; y[_At] = 2;"),
    "empty": ("#define EMPTY\n#define E2()", "y EMPTY [EMPTY 7 E2()] EMPTY = E2() 1 EMPTY;"),
    "long": ("#define L " + " + ".join(["1"] * 50), "y[L] = 1;"),
    "deep": (
        "#define Q0 7\n" + "".join(f"#define Q{a} Q{a - 1}\n" for a in range(1, 60)),
        "y[Q59] = 1;",
    ),
    "wide": (
        "#define F(" + ", ".join(f"a{k}" for k in range(30)) + ") a29 + a3",
        "y[F(" + ", ".join(map(str, range(30))) + ")] = 1;",
    ),
    "recursive length": (
        "#define A B B\n#define B C C\n#define C D D\n#define D + 1",
        "y[0 A] = 1;",
    ),
    "comment as space": ("#define Q/**/7\n#define F(x)/* */x", "y[Q] = 1; y[F(9)] = 2;"),
    "continued": ("#define Q \\\n 7 \\\n + 2", "y[Q] = 1;"),
    "continued in a name": ("#define LO\\\nNG 7", "y[LONG] = 1; y[LO\\\nNG + 20] = 2;"),
    "continued comment": ("#define Q 7 // nothing \\\n + 20", "y[Q] = 1;"),
    "defined in a body": ("", "\n#define Q 7\ny[Q] = 1;\n#undef Q\n"),
    "type in a body": ("", "typedef short t; t j = 70000; y[(uchar)j & 63] = 1;"),
    "kernel's name": (
        "#define OTHER(x) kernel void x##_(global int *y) { y[0] = 1; }\nOTHER(k) OTHER(kk)",
        "y[n] = 1;",
    ),
    "compiler's names in the text": (
        "",
        "y[__OPENCL_C_VERSION__ / 100 + 3] = 1; y[__clang_major__ + 9] = 2;",
    ),
    "compiler's names in a helper": (
        "int f(void) { return __clang_major__ + __OPENCL_VERSION__ / 100; }",
        "y[f()] = 1;",
    ),
    "compiler's numbers": (
        "",
        (
            "y[__SIZEOF_LONG__] = 1; y[__CHAR_BIT__ + 9] = 2; y[__INT_MAX__ / 100000000] = 3;"
            " y[__GNUC__ + 30] = 4;"
        ),
    ),
    "compiler's types": (
        "",
        (
            "__SIZE_TYPE__ a = n; __INT32_TYPE__ b = 9; __UINT8_TYPE__ c = 250 + n + 11; y[a] = 1;"
            " y[b] = 2; y[c] = 3; y[sizeof(__PTRDIFF_TYPE__) + 30] = 4;"
        ),
    ),
    "unused names of the compiler": (
        "#define NOT_USED __x86_64__\n#define ALSO(x) __clang_##x",
        "y[n] = 1;",
    ),
    "used names of the compiler": ("#define Q __x86_64__ + 3", "y[Q] = 1;"),
    "image macros": (
        "",
        (
            "y[CLK_NORMALIZED_COORDS_FALSE + 3] = 1; y[(CLK_FILTER_NEAREST | CLK_ADDRESS_NONE) &"
            " 63] = 2;"
        ),
    ),
    "as_type": (
        "#define CAST(t, x) as_##t(x)",
        "y[CAST(int, 1.0f) >> 24] = 1; y[CAST(uint, n)] = 2;",
    ),
    "convert": (
        "#define C(t) convert_##t##_sat",
        "y[C(uchar)(n * 100) & 63] = 1; y[C(char)(-n * 100) + 140 & 63] = 2;",
    ),
    "vload": (
        "#define N 3\n#define J(a, b) a##b\n#define V(n) J(vload, n)\n#define T(n) J(int, n)",
        "T(N) v = V(N)(2, y); y[20] = v.s2 + 1;",
    ),
}

_WHOLE = {
    "kernel by a macro": (
        "#define KERNEL(name) kernel void name(global int *y, int n) { y[n] = 1; }\nKERNEL(k)\n"
    ),
    "kernel of parts": (
        "#define HEAD kernel void\n#define ARGS (global int *y, int n)\n#define BODY { y[n] = 1;"
        " y[9] = 2; }\nHEAD k ARGS BODY\n"
    ),
    "kernel's name pasted": (
        "#define P(a) k##a\nkernel void P()(global int *y, int n) { y[n] = 1; }\n"
    ),
    "kernel's name by a macro": (
        "#define NAME k\nkernel void NAME(global int *y, int n) { y[n] = 1; }\n"
    ),
    "parameters by a macro": (
        "#define P(t, x) global t *x\nkernel void k(P(int, y), int n) { y[n] = 1; }\n"
    ),
    "two kernels by a macro": (
        "#define K(name, at) kernel void name(global int *y, int n) { y[at] = 1; }\nK(j, 3) K(k, n"
        " + 2) K(l, 9)\n"
    ),
    "two kernels on a line": (
        "kernel void j(global int *y) { y[0] = 1; } kernel void k(global int *y, int n) { y[n] = 1;"
        " } kernel void l(global int *y) { y[2] = 1; }"
    ),
    "kernel in a condition": (
        "#ifdef NOT\nkernel void k(global int *y, int n) { y[3] = 1; }\n#else\nkernel void k(global"
        " int *y, int n) { y[n] = 1; }\n#endif\n"
    ),
    "kernel split by a condition": (
        "kernel void k(\n#if 1\nglobal int *y,\n#else\nglobal float *y,\n#endif\nint n) {\n#if"
        " 0\n}\n#else\ny[n] = 1; }\n#endif\n"
    ),
    "brace in a condition": (
        "kernel void k(global int *y, int n) {\n#if 0\nif (n > 9) {\n#else\nif (n > 3)"
        " {\n#endif\ny[n] = 1; } }\n"
    ),
    "attributes by a macro": (
        "#define R(x) __attribute__((reqd_work_group_size(x, 1, 1)))\nR(1) kernel void k(global int"
        " *y, int n) { y[n] = 1; }\n"
    ),
    "closing parenthesis in a macro": (
        "#define C )\nkernel void k(global int *y, int n C { y[n] = 1; }\n"
    ),
    "closing brace in a macro": (
        "#define E }\nkernel void k(global int *y, int n) { if (n) { y[n] = 1; E y[9] = 2; E\n"
    ),
    "parenthesis in a string": (
        "kernel void k(global int *y, int n) { constant char *s = \")}\"; y[s[0] & 15] = 1; y[')']"
        " = 2; }\n"
    ),
    "parenthesis in a comment": (
        "kernel void k(global int *y /* ) { */, int n // )\n) { y[n] = 1; /* } */ y[9] = 2; //"
        " }\n}\n"
    ),
    "no line's end": "kernel void k(global int *y, int n) { y[n] = 1; }",
    "line's end in a comment": "kernel void k(global int *y, int n) { y[n] = 1; } // end",
    "typedef by a macro": (
        "#define T typedef\nT uchar index;\nkernel void k(global int *y, int n) { index j = n +"
        " 300; y[j & 63] = 1; }\n"
    ),
    "generic by macros": (
        "#define DEF(T) void set_##T(global T *p, int n) { p[n] = 1; }\nDEF(int) DEF(char)"
        " DEF(short)\nkernel void k(global int *y, int n) { set_int(y, n); set_char((global char"
        " *)y, 50); set_short((global short *)y, 60); }\n"
    ),
}

TRAPS: list[Trap] = [
    *(
        Trap(name, f"{before}\nkernel void k(global int *y, int n) {{ {text} }}\n", (mem(), i(5)))
        for name, (before, text) in _MACROS.items()
    ),
    *(Trap(name, source, (mem(), i(5))) for name, source in _WHOLE.items()),
]
