"""What an index is: conversions, wrapping, signs, shifts and divisions of every integer type.

The arguments of a launch are known to the inference, so most of these are computed by it to one
element, and a rule of C that it gets wrong shows as a missed byte.
"""

from __future__ import annotations

import numpy as np

from traps.case import Trap, body, i, mem

TYPES = {
    "char": "i1",
    "uchar": "u1",
    "short": "i2",
    "ushort": "u2",
    "int": "i4",
    "uint": "u4",
    "long": "i8",
    "ulong": "u8",
}
_OPERATORS = {
    "plus": "+",
    "minus": "-",
    "times": "*",
    "over": "/",
    "rest": "%",
    "and": "&",
    "or": "|",
    "xor": "^",
    "left": "<<",
    "right": ">>",
}
_A = (-1, 200, -32768, 2**31 - 1)
_B = (3, -7, 77, 29)


def _fold(value: str, place: int) -> str:
    """A store at an element that shows the whole value, in the place's own 29 elements."""
    text = (
        f"ulong u{place} = (ulong)({value}); u{place} ^= u{place} >> 32; u{place} ^= u{place} >> 9;"
    )
    return f"{text} y[{29 * place} + u{place} % 29] = 1; "


def _known(kind: str, name: str, sign: str) -> Trap:
    """`a OP b` and `a OP= b`, of one type and of mixed ones, with values that are known."""
    text = ""
    for place, (a, b) in enumerate(zip(_A, _B, strict=True)):
        other = list(TYPES)[(list(TYPES).index(kind) + 3 * place) % 8]
        text += f"{kind} a{place} = (int)({a}) + n; {other} b{place} = (int)({b}) + n; "
        if sign in ("/", "%"):
            text += f"b{place} |= 1; "
        elif sign in ("<<", ">>"):
            text += f"b{place} &= {(7, 31, 15, 40)[place]}; "
        if place % 2:
            text += f"a{place} {sign}= b{place}; " + _fold(f"a{place}", place)
        else:
            text += _fold(f"a{place} {sign} b{place}", place)
    return Trap(
        f"{kind} {name}", f"kernel void k$(global int *y, int n) {{ {text} }}", (mem(116), i(0))
    )


_KNOWN = [_known(kind, name, sign) for kind in TYPES for name, sign in _OPERATORS.items()]


def _ranged(kind: str, name: str, expression: str) -> Trap:
    """A value of each work-item, kept in a type that may be too narrow for it."""
    text = f"int g = get_global_id(0); {kind} v = {expression}; y[(uint)(v) % 61u] = 7;"
    return Trap(
        f"{kind} of {name}",
        f"kernel void k$(global int *y, int n) {{ {text} }}",
        (mem(64), i(70)),
        size=(6,),
    )


_EXPRESSIONS = {
    "id times": "g * 77",
    "id minus": "g - 3",
    "id shifted": "g << 6",
    "id and argument": "g * n + 40",
    "complement": "~g",
    "negated": "-g * 50",
}
_RANGED = [
    _ranged(kind, name, expression)
    for kind in ("char", "uchar", "short", "uint", "ulong")
    for name, expression in _EXPRESSIONS.items()
]

# y has 320 elements here, so that a byte is always a good index.
_NARROW = {
    "uchar wraps up": "uchar j = n; j += 100; y[j] = 1;",
    "uchar wraps down": "uchar j = 0; j--; y[j] = 1; --j; y[j] = 2;",
    "uchar counter wraps": "uchar j = 250; for (int t = 0; t < 12; t++) y[j++] = 1;",
    "char counter wraps": "char j = 120; for (int t = 0; t < 12; t++) { y[j + 128] = 1; j++; }",
    "uchar loop never leaves": "for (uchar j = 250; j >= 246; j--) y[j] = 1;",
    "uchar loop ends by wrapping": "for (uchar j = 250; j > 5; j++) y[j] = 1;",
    "loop to zero unsigned": "for (uint j = 6; j-- > 0;) y[j * 3] = 1;",
    "loop below zero unsigned": "for (uint j = 6; j < 7; j--) y[j * 3] = 1;",
    "step skips the end": "for (uchar j = 0; j < 250; j += 60) y[j] = 1;",
    "step wraps before the end": (
        "uchar c = 0; for (uchar j = 10; j != 4; j += 50) { y[j] = 1; if (++c > 9) break; }"
    ),
    "xor with minus one": "int j = n ^ -1; y[-j] = 1; y[(uchar)j] = 2;",
    "signed and unsigned compared": "int j = -1; if (j < 5u) y[1] = 1; else y[200] = 1;",
    "long and uint compared": "long j = -1; if (j < 5u) y[1] = 1; else y[200] = 1;",
    "ushort and int compared": (
        "ushort j = -1; if (j < 0) y[1] = 1; if (j == -1) y[2] = 1; if (j > 65534) y[201] = 2;"
    ),
    "char literal sign": "y['\\xff' + 9] = 1; y[(uchar)'\\x80'] = 2;",
    "many characters": "y['ab' & 255] = 1;",
    "octal": "y[010] = 1; y['\\101'] = 2; y[0x1f] = 3; y[0b101] = 4;",
    "suffixes": "y[-1u + 9] = 1; y[(-1ul) + 11ul] = 2; y[0xffffffff + 12] = 1; y[5uL] = 3;",
    "hexadecimal is unsigned": "y[(0x80000000 >> 28)] = 1; y[(-0x80000000 > 0) + 20] = 2;",
    "decimal is long": "y[(2147483648 >> 28)] = 1; y[(-2147483648 < 0) + 30] = 2;",
    "shift by more than there is": (
        "int s = 33; y[1 << s] = 1; y[(1 << 34) + 40] = 2; y[(256 >> s) & 255] = 3;"
    ),
    "shift by a negative": "int s = -30; y[1 << s] = 1; y[(int)(1u << s) + 100] = 2;",
    "shift of a char": "uchar c = 0xf0; y[c << 0 & 255] = 1; c <<= 2; y[c] = 2; c >>= 3; y[c] = 3;",
    "shift of a long": "long v = 5; v <<= 40; y[v >> 38] = 1; uint w = 1; y[(w << 40) >> 1] = 2;",
    "arithmetic shift": "int v = -256; y[(v >> 4) + 30] = 1; y[(uint)v >> 24] = 2;",
    "division rounds to zero": (
        "int a = -7; y[a / 2 + 10] = 1; y[a % 4 + 20] = 2; y[7 / -2 + 30] = 3; y[7 % -4 + 40] = 4;"
    ),
    "division of the least": "int a = 0x80000000; y[(a / 16777216) + 150] = 1;",
    "unsigned division of a negative": "int a = -8; uint b = 3; y[a / b >> 26] = 1; y[a % b] = 2;",
    "promotion of uchar": (
        "uchar a = 200, b = 100; y[a + b] = 1; y[(uchar)(a + b)] = 2; y[a - b] = 3;"
        " y[(a - b - 101) + 50] = 4;"
    ),
    "promotion of ushort": "ushort a = 65535, b = 65535; y[(a * b) >> 24 & 255] = 1;",
    "complement of uchar": "uchar a = 3; y[(~a) + 9] = 1; y[(uchar)~a] = 2; y[!a + 7] = 3;",
    "negated unsigned": (
        "uint a = 5; y[-a + 20] = 1; y[-a >> 26] = 2; ulong b = -a; y[b >> 26] = 3;"
    ),
    "negated uchar": "uchar a = 5; y[-a + 20] = 1; a = -a; y[a] = 2;",
    "int to ulong": "int a = -3; ulong b = a; y[b + 10] = 1; y[(uint)a - 0xfffffff0u] = 2;",
    "uint to long": "uint a = -3; long b = a; y[b >> 26] = 1; y[(int)a + 10] = 2;",
    "through float": "float f = n * 1.5f; y[(int)f] = 1; y[(int)-f + 250] = 2;",
    "through double": "double f = n; y[(int)(f * 1.25)] = 1; uchar c = f; y[c] = 2;",
    "float to uchar": "uchar c = 99.9f; y[c] = 1; c += 0.7f; y[c] = 2; c *= 1.5f; y[c] = 3;",
    "integer times float": (
        "int j = 10; j *= 1.5f; y[j] = 1; j += 2.9; y[j] = 2; j /= 0.5f; y[j] = 3;"
    ),
    "convert with saturation": (
        "y[convert_uchar_sat(n * 9)] = 1; y[convert_uchar(n)] = 2; y[convert_uchar_sat(-n)] = 3;"
    ),
    "convert with rounding": "y[convert_int_rtp(n + 0.1f)] = 1; y[convert_int_rtn(-0.1f) + 9] = 2;",
    "as_int": "y[as_int(1.0f) >> 24] = 1; y[as_uint(-n) >> 25] = 2; y[as_uchar4(n).x] = 3;",
    "bool of two": "bool b = 2; y[b] = 1; b += 5; y[b + 10] = 2; b = 0.25f; y[b + 20] = 3;",
    "bool arithmetic": (
        "bool b = n; b--; y[b + 5] = 1; b ^= 1; y[b + 8] = 2; b = -1; y[b + 11] = 3;"
    ),
    "bool shifted": "bool b = 1; y[b << 5] = 1; y[-b + 20] = 2; y[~b + 30] = 3;",
    "comparison is an int": "y[(n > 3) + (n > 4) + 8] = 1; y[-(n < 9999) + 20] = 2;",
    "comparison of vectors": "int2 v = (int2)(n, 1) > 5; y[v.x + 9] = 1; y[v.y + 19] = 2;",
    "truth of vectors": "y[any((int2)(0, -1) < 0)] = 1; y[all((int2)(0, -1) < 0) + 9] = 2;",
    "not of not": "y[!!n] = 1; y[!n + 9] = 2; y[-!n + 20] = 3;",
    "mul24 of wide": "y[(uchar)mul24(n << 24, 3)] = 1; y[(uchar)mul24(-n, 2)] = 2;",
    "mad24": "y[mad24(n, 2, 5)] = 1; y[(uchar)mad24(n, 2u > 1 ? 3 : 4, -500)] = 2;",
    "mul_hi": "y[mul_hi((uint)n << 20, 4096u)] = 1; y[mul_hi(n, -n) + 2] = 2;",
    "min and max of signs": "y[min(n, -1) + 9] = 1; y[max((uint)n, (uint)-1) >> 24] = 2;",
    "clamp": (
        "y[clamp(n, 3, 50)] = 1; y[clamp(-n, 3, 50)] = 2; y[clamp((uchar)n, (uchar)9, (uchar)12)]"
        " = 3;"
    ),
    "abs": "y[abs(-n)] = 1; y[abs_diff(n, -9)] = 2; y[abs((char)-128)] = 3;",
    "add_sat": "y[add_sat((uchar)n, (uchar)200)] = 1; y[sub_sat((uchar)n, (uchar)200)] = 2;",
    "hadd": "y[hadd(n, 5)] = 1; y[rhadd((uchar)n, (uchar)255)] = 2;",
    "clz": "y[clz(n)] = 1; y[popcount(n)] = 2; y[clz((uchar)3) + 100] = 3;",
    "rotate": "y[rotate((uchar)n, (uchar)3)] = 1; y[rotate(n, 31) >> 24 & 255] = 2;",
    "upsample": "y[upsample((uchar)0, (uchar)n)] = 1;",
    "bitselect": "y[bitselect(n, 255, 15)] = 1; y[select(n, 7, n > 4)] = 2;",
    "int3 sum": "int3 v = (int3)(n, 2, 3); y[v.x + v.z] = 1; v.x -= n; y[v.x] = 2;",
    "vector subscript": "int4 v = (int4)(1, 2, 3, n); y[v.s3] = 1; y[((int *)&v)[1]] = 2;",
    "compound of a narrow": (
        "short s = 300; s *= 300; y[(uchar)s] = 1; s /= 7; y[(uchar)s] = 2;"
        " s ^= 0x55; y[(uchar)s] = 3;"
    ),
    "assignment gives the narrow": "uchar c; int j = c = n + 300; y[j] = 1; y[(c = 513)] = 2;",
    "assignment in an index": "int j; y[j = n] = 1; y[j += 3] = 2; y[(j = 4, j + 1)] = 3;",
    "increment of a narrow": (
        "uchar c = 255; y[c++] = 1; y[c] = 2; y[--c] = 3; char d = 127; y[++d + 128] = 4;"
    ),
    "compound of an assignment": "int j = n, l; j -= l = 3; y[j & 255] = 1; y[l] = 2;",
    "compound shift by long": "uchar c = 3; c <<= 1l; y[c] = 1; int j = 1; j <<= 5ul; y[j] = 2;",
    "uchar times itself": "uchar c = 15; c *= c; y[c] = 1; c *= c; y[c] = 2;",
    "ternary of types": "y[(n ? -1 : 0u) >> 24] = 1; y[(n ? (uchar)255 : -1) + 9] = 2;",
    "ternary keeps sign": "long v = n ? -1 : 5u; y[v >> 26 & 255] = 1;",
    "ternary without middle": "y[n ?: 5] = 1; y[(n - 70) ?: 6] = 2;",
    "enumeration": (
        "enum { A = -2, B, C, D = 250, E }; y[C] = 1; y[E] = 2; y[A + 7] = 3; y[-B] = 4;"
    ),
    "enumeration by size": (
        "enum e { X = sizeof(long) * 3, Y = X << 1 }; enum e v = Y; y[v] = 1; y[X + 1] = 2;"
    ),
    "constant that is not": "const int c = n + 1; y[c] = 1; const uchar d = c * 9; y[d] = 2;",
    "volatile index": "volatile int v = n; y[v] = 1; v++; y[v] = 2;",
    "uninitialised then set": "int j; if (n > 3) j = 5; else j = 6; y[j] = 1;",
    "float loop": "for (float f = 0; f < 3; f += 0.5f) y[(int)(f * 10)] = 1;",
    "half away": "y[(int)(n / 2.0f + 0.5f)] = 1;",
    "pointer difference": "y[&y[9] - &y[4]] = 1; y[(uchar)(&y[4] - &y[9])] = 2;",
    "difference in other units": "y[(global char *)&y[9] - (global char *)&y[4]] = 1;",
    "size_t underflow": "size_t s = sizeof(int); y[s - 5 + 9] = 1; y[(s - 5 > 0) + 20] = 2;",
    "unsigned minus in a condition": (
        "uint a = 3, b = 5; if (a - b > 0) y[a - b + 10] = 1; else y[99] = 1;"
    ),
    "unsigned bound minus one": "uint m = 0; for (uint j = 0; j < m - 1 && j < 5; j++) y[j] = 1;",
    "unsigned distance guard": (
        "if ((uint)(n - 60) < 20u) y[n - 60] = 1; if ((uint)(n - 80) > 5u) y[n] = 2;"
    ),
    "char guard": "char c = n * 3; if (c < 0) y[-c] = 1; else y[c] = 2;",
    "large literal": (
        "y[0x100000007l & 255] = 1; y[(int)0x100000009l] = 2; y[(uint)-250 & 255] = 3;"
    ),
    "chain of casts": (
        "y[(uchar)(char)-3] = 1; y[(ushort)(uchar)-3] = 2; y[(int)(char)(uchar)200 + 60] = 3;"
    ),
    "cast of a sum": "y[(uchar)n + 200] = 1; y[(uchar)(n + 200)] = 2; y[(char)(n * 2) + 130] = 3;",
    "index of long long": "y[(long)n * 2] = 1; y[(long)n * n >> 6] = 2;",
    "unsigned index": "y[(uint)n - 1] = 1; global int *p = y + 9; p[(int)(uint)-4] = 2;",
    "char index is signed": (
        "global int *p = y + 130; p[(char)200] = 1; char c = -1; p[c] = 2; p[(char)n] = 3;"
    ),
    "short index is signed": (
        "global int *p = y + 130; short s = 65500; p[s] = 1; ushort u = 9; p[-u] = 2;"
    ),
    "uint index is not": "global int *p = y + 130; uint u = 4; p[-(int)u] = 1; p[(int)-u] = 2;",
    "product of bounds": (
        "for (int a = -2; a < 3; a++) for (int b = -3; b < 2; b++) y[a * b + 10] = 1;"
    ),
    "square": "for (int a = -3; a < 4; a++) y[a * a * 5] = 1;",
    "triangle": "for (int a = 0; a < 5; a++) for (int b = a; b < 5; b++) y[a * 5 + b] = 1;",
    "rest of a sum": "for (int a = 0; a < 20; a++) y[(a * 7 + 3) % 19] = 1;",
    "quotient of a sum": "for (int a = 5; a < 29; a++) y[(a * 7 - 3) / 13] = 1;",
    "rest of a negative": "for (int a = -9; a < 2; a++) y[a % 4 + 5] = 1;",
    "quotient of a negative": "for (int a = -9; a < 2; a++) y[a / 4 + 5] = 1;",
    "right of a negative": "for (int a = -9; a < 2; a++) y[(a >> 2) + 5] = 1;",
    "and of a negative": "for (int a = -9; a < 2; a++) y[(a & 12) + 5] = 1;",
    "or of two": "for (int a = 0; a < 5; a++) y[(a << 2 | 3) + (a ^ 5)] = 1;",
    "xor walk": "for (int a = 0; a < 16; a++) y[a ^ (a >> 1)] = 1;",
    "bit reversal": (
        "for (int a = 0; a < 8; a++) { int r = 0; for (int b = 0; b < 3; b++)"
        " r |= (a >> b & 1) << (2 - b); y[r * 4] = a; }"
    ),
    "gray by step": (
        "for (uint a = 1; a < 256; a <<= 1) y[a] = 1; for (uint a = 255; a; a >>= 1) y[a] = 2;"
    ),
    "product as a step": "for (int a = 1; a < 250; a *= 3) y[a] = 1;",
    "Collatz": "for (int a = 7; a != 1; a = a & 1 ? 3 * a + 1 : a / 2) y[a & 255] = 1;",
    "Fibonacci": "int a = 1, b = 1; while (b < 300) { y[b] = 1; int t = a + b; a = b; b = t; }",
    "random": (
        "uint s = n; for (int j = 0; j < 9; j++) { s = s * 1664525u + 1013904223u; y[s >> 24] ="
        " j; }"
    ),
}

TRAPS: list[Trap] = [
    *_KNOWN,
    *_RANGED,
    *(
        body(name, text, np.int32(70), params="int n")._replace(args=(mem(320), i(70)))
        for name, text in _NARROW.items()
    ),
]
