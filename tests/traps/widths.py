"""How wide a type is: what OpenCL C fixes, what it reserves, and what an enumeration takes.

The parser and a driver may give a reserved type different sizes, and both are right.
"""

from __future__ import annotations

from traps.case import Trap, body, i

# `n` is 13.
_RESERVED = {
    "shift": "unsigned long long a = 1ul << 63; a *= 2; y[(int)(a >> 60) + 3 & 63] = 1;",
    "negative": (
        "unsigned long long a = -1; y[(int)(a >> 64) & 63] = 1; y[(int)(a >> 125) + 20] = 2;"
    ),
    "literal": "y[(int)((18446744073709551615ull + 3) >> 60)] = 1;",
    "literal product": "y[(int)((9223372036854775807ll * 2 + 9) >> 60) & 63] = 1;",
    "size": "y[sizeof(long long)] = 1; y[sizeof(1ll) + 20] = 2; y[sizeof(1ull) + 40] = 3;",
    "pointer": "global long long *p = (global long long *)y; p[3] = 7;",
    "pointer moves": "global unsigned long long *p = (global long long *)y; p += 2; *p++ = 7;",
    "structure": (
        "struct s { long long a; int b; }; global struct s *p = (global struct s *)y; p[1].b = 7;"
    ),
    "array": "global long long (*p)[2] = (global long long (*)[2])y; p[1][1] = n;",
    "other order": "global long unsigned int long *p = (global long unsigned long *)y; p[2] = 7;",
    "typedef": "typedef long long wide; global wide *p = (global wide *)y; p[2] = 7;",
    "decimal": "y[(int)(18446744073709551615 >> 60)] = 2; y[(18446744073709551615 > 0) + 20] = 3;",
    "of 128 bits": "__int128 a = 1; a <<= 70; y[(int)(a >> 66)] = 1;",
    "long double": "y[sizeof(long double)] = 1;",
}

_FIXED = {
    "floats": "y[sizeof(1.0)] = 1; y[sizeof(1.0f) + 20] = 2; y[sizeof(half) + 40] = 1;",
    "characters": "y[sizeof('a')] = 1; y[sizeof('ab') + 20] = 1; y[sizeof(\"abc\") + 40] = 2;",
    "truth": "y[sizeof(bool)] = 1; y[sizeof(1 < 2) + 20] = 1; y[sizeof(!1) + 30] = 2;",
    "pointers": "y[sizeof(y)] = 1; y[sizeof(local int *) + 20] = 1; y[sizeof(&y[1] - y) + 40] = 1;",
    "events": "y[sizeof(event_t)] = 1;",
    "samplers": "y[sizeof(sampler_t)] = 1;",
    "alignments": "y[__alignof__(int3)] = 1; y[__alignof__(y[0]) + 40] = 2;",
    "vectors": "y[sizeof(char3)] = 1; y[sizeof(short3) + 20] = 2; y[vec_step(int3) + 40] = 3;",
    "effects that are not evaluated": (
        "int k = 3; y[sizeof(k++)] = 1; y[k] = 2; y[sizeof(y[k = 40]) + 20] = 3; y[k + 1] = 4;"
    ),
    "hexadecimal": (
        "y[(0xffffffff > -1) + 1] = 1; y[(0x7fffffff > -1) + 10] = 1; y[(0xffffffffff > -1) + 20]"
        " = 1; y[(4294967295 > -1) + 30] = 1; y[(037777777777 > -1) + 40] = 2;"
    ),
    "suffixes": (
        "y[(1u - 2 > 0) + 1] = 1; y[(1ul - 2 > 0) + 10] = 1; y[(1l - 2u > 0) + 20] = 1;"
        " y[(1U - 2l > 0) + 30] = 1; y[('a' - 98u > 0) + 40] = 1;"
    ),
    "choice of values": (
        "y[_Generic(n, int: 3, long: 4)] = 1; y[_Generic((char)n, int: 13, char: 14)] = 1;"
        " int k = 30; y[_Generic(k++, int: 40)] = 1; y[k] = 2;"
    ),
    "choice of pointers": (
        "global int *q = y; *_Generic(q++, global int *: y + 9) = 2; *q = 3;"
        " global int *p = __builtin_choose_expr(1, y + 20, y); *p = 2;"
        " int k = 5; y[__builtin_choose_expr(0, k++, 9)] = 1; y[k + 30] = 2;"
    ),
    "overflow told": (
        "int c; bool o = __builtin_mul_overflow(n, 1 << 30, &c); y[o + 3] = 1;"
        " y[(c >> 28) + 20] = 2; y[40] = __builtin_add_overflow(n, 5, &y[n]);"
    ),
    "no name of a type": (
        "__auto_type p = y; p += 3; *p = 1; __auto_type q = &y[n]; *q = 2; __auto_type k = n * 3;"
        " y[k] = 1; __auto_type c = (char)200; y[c + 90] = 2;"
    ),
}

_ENUMERATIONS = {
    "size": (
        "enum e { A }; enum f { B = 0x7fffffffffffl }; y[sizeof(enum e)] = 1;"
        " y[sizeof(enum f) + 20] = 1; y[sizeof(A) + 40] = 1; y[sizeof(B) + 50] = 1;"
    ),
    "pointer": "enum f { B = 0x7fffffffffffl }; global enum f *p = (global enum f *)y; p[4] = B;",
    "negative compared": (
        "enum e { A = 5 }; enum e v = (enum e)-1; y[(v < A) + 5] = 1; y[(v > 0) + 20] = 1;"
    ),
    "unsigned": (
        "enum e { A = 5, B = 0xffffffff }; y[(B > 0) + 5] = 1; y[(B + 9) & 63] = 2;"
        " y[(long)B + 9 & 63] = 3; y[((B + 1) >> 32) + 30] = 1;"
    ),
    "mixed": (
        "enum e { A = -5, B = 0xffffffff }; y[(B > 0) + 5] = 1; y[(B + 9) & 63] = 2;"
        " y[(A > 0) + 20] = 3; y[((B + 1) >> 28) + 30] = 1;"
    ),
    "long": (
        "enum e { A = 0x100000000, B }; y[(B >> 32) + 5] = 1; y[(A < B) + 9] = 2; y[(int)B + 20]"
        " = 3;"
    ),
    "shifted": (
        "enum e { A = 1u << 31 }; y[(A >> 29) + 5] = 1; y[(A < 0) + 20] = 2; y[(-A > 0) + 40] = 3;"
    ),
    "all bits": "enum e { A = 0xffffffffffffffff }; y[(A >> 60) + 5] = 1; y[(A < 0) + 40] = 2;",
}

TRAPS: list[Trap] = [
    body(f"{family} {name}", text, i(13), params="int n")
    for family, traps in (
        ("reserved", _RESERVED),
        ("fixed", _FIXED),
        ("enumeration", _ENUMERATIONS),
    )
    for name, text in traps.items()
]
