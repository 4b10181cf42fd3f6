"""Which way a kernel goes: loops, switches, guards, early ends, side effects in conditions."""

from __future__ import annotations

from traps.case import Trap, i, mem

_TEXTS = {
    "switch falls through": (
        "switch (n) { case 3: y[3] = 1; case 5: y[5] = 1; case 6: y[6] = 1; break;"
        " case 7: y[7] = 1; }"
    ),
    "switch default first": (
        "switch (n) { default: y[1] = 1; case 9: y[2] = 1; break; case 8: y[3] = 1; }"
    ),
    "switch default in the middle": (
        "switch (n) { case 1: y[1] = 1; default: y[2] = 2; case 3: y[3] = 3; }"
    ),
    "switch of ranges": "switch (n) { case 1 ... 4: y[1] = 1; break; case 5 ... 9: y[2] = 1; }",
    "switch on a char": (
        "switch ((char)(n + 250)) { case -1: y[1] = 1; break; case 255 - 256 + 0x100: y[9] = 1;"
        " break; default: y[2] = 1; }"
    ),
    "switch on a long": (
        "switch ((long)n << 32) { case 0: y[1] = 1; break; case 5l << 32: y[2] = 1; }"
    ),
    "switch on an unsigned": "switch (n - 6u) { case -1: y[1] = 1; break; default: y[2] = 1; }",
    "switch on data": (
        "switch (y[0] & 3) { case 0: y[9] = 1; break; case 1: y[12] = 1; default: y[20] = 2; }"
    ),
    "switch with a variable": (
        "switch (n) { int j; case 5: j = 7; y[j] = 1; break; case 6: j = 8; y[j] = 2; }"
    ),
    "switch jumps over a declaration": (
        "switch (n) { ulong j; case 5: j = ~0ul; case 6: if (j > 1ul << 63) y[7] = 1; }"
    ),
    "switch jumps over a value": (
        "switch (n) { case 4: ; ulong j = 3; y[j] = 2; break; case 5: j = ~0ul; case 6:"
        " if (n == 5 && j > 1ul << 63) y[7] = 1; }"
    ),
    "switch sets an index": (
        "int j = 1; switch (n) { case 5: j = 7; case 6: j += 2; break; case 7: j = 40; } y[j] = 1;"
    ),
    "switch by fallthrough only": (
        "int j = 1; switch (n) { case 4: j = 20; case 5: j++; case 6: j++; } y[j] = 1;"
    ),
    "switch in a loop": (
        "for (int j = 0; j < 6; j++) switch (j) { case 2: continue; case 4: goto_ = 3; break;"
        " default: y[j + goto_] = 1; }"
    ),
    "continue in a switch": (
        "for (int j = 0; j < 6; j++) { switch (j & 1) { case 1: continue; } y[j * 3] = 1; }"
    ),
    "switch without a block": "switch (n) case 5: y[4] = 1;",
    "switch with a nested case": "switch (n) { case 4: { y[1] = 1; case 5: y[2] = 1; } y[3] = 1; }",
    "Duff": (
        "int c = n; int j = 0; switch (c % 4) { case 0: do { y[j++] = 1; case 3: y[j++] = 2;"
        " case 2: y[j++] = 3; case 1: y[j++] = 4; } while ((c -= 4) > 0); }"
    ),
    "switch of a switch": (
        "switch (n) { case 5: switch (n + 1) { case 6: y[6] = 1; break; } y[7] = 1; break;"
        " default: y[8] = 1; }"
    ),
    "switch of an empty": "switch (y[2]++) { } y[4] = 1;",
    "switch side effect": "switch (y[n] = 3) { case 3: y[9] = 1; }",
    "goto forward": "if (n > 3) goto out; y[1] = 1; out: y[2] = 1;",
    "goto back": "int j = 0; again: y[j * 3] = 1; if (++j < 4) goto again;",
    "goto into a block": "if (n > 3) goto in; { y[1] = 1; in: y[2] = 1; }",
    "goto out of loops": (
        "for (int a = 0; a < 4; a++) for (int b = 0; b < 4; b++)"
        " { if (a * b == 2) goto out; y[a * 4 + b] = 1; } out: y[40] = 1;"
    ),
    "label unused": "here: __attribute__((unused)); y[n] = 1;",
    "break in a while": (
        "int j = 0; while (1) { y[j] = 1; if (j > n) break; j += 2; } y[j + 20] = 2;"
    ),
    "continue in a for": "for (int j = 0; j < 9; j++) { if (j & 1) continue; y[j] = 1; }",
    "continue in a do": "int j = 0; do { if (j == 2) continue; y[j] = 1; } while (++j < n);",
    "for without a condition": "for (int j = 3;; j++) { if (j > n) break; y[j] = 1; }",
    "for without a step": "for (int j = 3; j < n + 3;) { y[j] = 1; j += 2; }",
    "for without anything": "int j = 0; for (;;) { y[j] = 1; if (j++ >= n) break; }",
    "for without a start": "int j = 2; for (; j < n; j++) y[j] = 1; y[j + 9] = 2;",
    "for with two counters": (
        "for (int a = 0, b = 30; a < b; a += 3, b -= 4) { y[a] = 1; y[b] = 2; }"
    ),
    "for with an effect in its condition": "for (int j = 0; (y[j + 8] = j) < n; j++) y[j] = 1;",
    "for with an effect in its start": (
        "int j; for (y[1] = 2, j = 3; j < 6; y[j + 20] = 1, j++) y[j] = 3;"
    ),
    "for whose counter is changed": "for (int j = 0; j < 12; j++) { y[j] = 1; j += j & 2; }",
    "for whose counter is changed by pointer": (
        "int j; int *p = &j; for (j = 0; j < 12; j++) { y[j] = 1; *p += 2; }"
    ),
    "for whose bound changes": (
        "int m = 4; for (int j = 0; j < m; j++) { y[j] = 1; if (j == 2) m = 9; }"
    ),
    "for whose step changes": "int s = 1; for (int j = 0; j < 30; j += s) { y[j] = 1; s++; }",
    "for with not equal": "for (int j = 0; j != 12; j += 3) y[j] = 1;",
    "for downwards": (
        "for (int j = 12; j >= 0; j -= 5) y[j] = 1; for (int j = 20; j > 15; --j) y[j] = 2;"
    ),
    "for by a negative step": "int s = -3; for (int j = 20; j > 9; j += s) y[j] = 1;",
    "for by a subtraction of a negative": "int s = -3; for (int j = 5; j < 20; j -= s) y[j] = 1;",
    "for by a product": "for (int j = 1; j < 60; j *= 2) y[j] = 1;",
    "for by an expression": "for (int j = 1; j < 60; j = j + j / 2 + 1) y[j] = 1;",
    "for without turns": (
        "for (int j = 9; j < 5; j++) y[j] = 1; for (int j = 9; j < 9; j++) y[j] = 1; y[n] = 2;"
    ),
    "for by a variable of the loop": (
        "for (int j = 0, s = 4; j < 20; j += s, s--) { y[j] = 1; if (s < 2) break; }"
    ),
    "for with a shadowed counter": (
        "for (int j = 0; j < 3; j++) { int j = 20; y[j] = 1; j++; y[j] = 2; }"
    ),
    "for of for of for": (
        "for (int a = 0; a < 2; a++) for (int b = 0; b < 3; b++) for (int c = 0; c < 2; c++)"
        " y[a * 20 + b * 5 + c] = 1;"
    ),
    "for with a counter from outside": "int j; for (j = 0; j < n; j++); y[j * 3] = 1;",
    "for ended by data": "for (int j = 0; j < 9 && y[j + 20] != 77; j++) y[j] = 1;",
    "for with a char": "for (char j = -3; j < 3; j++) y[j + 3] = 1;",
    "while with an effect": "int j = 0; while (y[j++] = 7, j < 5) y[j + 10] = 1;",
    "while counts down": "int j = 5; while (j--) y[j * 2] = 1; y[j + 30] = 2;",
    "while counts down first": "int j = 5; while (--j) y[j * 2] = 1; y[j + 30] = 2;",
    "while of two": "int a = 0, b = 9; while (a < b) { y[a++] = 1; y[b-- + 20] = 2; }",
    "while on data": "int j = 0; while (j < 8 && (y[j] & 1)) j++; y[j + 16] = 1;",
    "do once": "int j = 7; do y[j] = 1; while (0); do { y[9] = 1; break; } while (1);",
    "do counts": "int j = 0; do { y[j] = 1; } while (j++ < 4); y[j + 20] = 2;",
    "do with an effect": "int j = 0; do y[j] = 1; while ((j += 3) < 12); y[j + 9] = 2;",
    "and skips": "int j = 0; if (n > 9 && (y[j = 3] = 1)) ; y[j + 5] = 1;",
    "or skips": "int j = 0; if (n > 3 || (y[j = 3] = 1)) y[j + 5] = 1;",
    "and of effects": (
        "int j = 1; (void)(n > 3 && (j = 9)); y[j] = 1; (void)(n > 30 && (j = 12)); y[j + 1] = 1;"
    ),
    "or of effects": (
        "int j = 1; (void)(n > 3 || (j = 9)); y[j] = 1; (void)(n > 30 || (j = 12)); y[j + 1] = 1;"
    ),
    "not of and": "int j = n; if (!(j > 3 && j < 9)) y[1] = 1; else y[j] = 2;",
    "De Morgan": (
        "int j = y[0] & 31; if (!(j < 4 || j > 9)) y[j] = 1; if (!(j >= 4) && !(j == 2)) y[j + 40]"
        " = 1;"
    ),
    "guard on data": "int j = y[0]; if (j > 3 && j < 9) y[j] = 1;",
    "guard on data reversed": "int j = y[0]; if (3 < j) if (9 > j) y[j] = 1;",
    "guard unsigned": "uint j = y[0]; if (j < 9) y[j] = 1; if (j - 3 < 4) y[j + 20] = 2;",
    "guard by return": "int j = y[0] & 63; if (j >= 10) return; y[j] = 1;",
    "guard by continue": "for (int j = 0; j < 60; j++) { if (j % 7) continue; y[j] = 1; }",
    "guard by ternary": "int j = y[0]; y[j < 0 ? 0 : j > 9 ? 9 : j] = 1;",
    "guard by min": "int j = y[0]; y[min(max(j, 3), 12)] = 1;",
    "guard by equal": "int j = y[0]; if (j == n) y[j] = 1; else y[60] = 1;",
    "guard by not equal": "int j = y[0] & 7; if (j != 0) y[j - 1] = 1; if (j != 7) y[j + 21] = 1;",
    "guard of a sum": "int a = y[0] & 15, b = y[1] & 15; if (a + b < 12) y[a + b] = 1;",
    "guard of a difference": (
        "int a = y[0] & 15, b = y[1] & 15; if (a > b) y[a - b] = 1; if (a - b < 0) y[b - a + 20]"
        " = 1;"
    ),
    "guard of a product": "int a = y[0] & 15; if (a * 3 < 20) y[a * 3] = 1;",
    "guard of a square": "int a = y[0] & 15; if (a * a < 50) y[a] = 1;",
    "guard kept too long": "int j = y[0] & 31; if (j < 5) { y[j] = 1; j += 20; } y[j] = 2;",
    "guard changed inside": "int j = y[0] & 31; if (j++ < 5) y[j] = 1; if (--j > 20) y[j] = 2;",
    "guard of a copy": "int j = y[0] & 31, c = j; if (c < 5) y[j] = 1; c = 40; y[c] = 2;",
    "guard of a copy changed": "int j = y[0] & 31, c = j; j = 50; if (c < 5) y[j] = 1;",
    "guard by bool": "int j = y[0]; bool in = j >= 0 && j < 9; if (in) y[j] = 1;",
    "guard by number": "int j = y[0]; int in = (j >= 0) & (j < 9); if (in) y[j] = 1;",
    "guard by product": "int j = y[0]; int in = j >= 0 && j < 9; y[j * in] = 1;",
    "guard by mask": "int j = y[0]; y[j & -(j >= 0 && j < 9)] = 1;",
    "guard by pointer": "global int *p = y + (y[0] & 63); if (p < y + 9) *p = 1;",
    "guard in a helper's value": "int j = y[0]; if (clamp(j, 0, 9) == j) y[j] = 1;",
    "assignment as condition": "int j; if (j = n - 5) y[1] = 1; else y[j + 2] = 1;",
    "comma as condition": "int j = 0; if (j += 3, j > 2) y[j] = 1;",
    "empty statements": ";;; if (n); else; y[2] = 1;; { } { ; }",
    "else belongs to": "if (n > 9) if (n > 3) y[1] = 1; else y[2] = 1; y[3] = 1;",
    "else if": (
        "if (n == 1) y[1] = 1; else if (n == 5) y[2] = 1; else if (n == 6) y[3] = 1; else y[4] = 1;"
    ),
    "return in a loop": "for (int j = 0; ; j++) { if (j == n) return; y[j] = 1; }",
    "return first": "if (n == 5) { y[1] = 1; return; } y[2] = 1;",
    "code behind return": "y[1] = 1; return; y[2] = 1;",
    "code behind a loop without end": (
        "for (int j = 0;; j++) { y[j] = 1; if (j > 3) return; } y[60] = 1;"
    ),
    "nested ternary": (
        "int j = n > 3 ? n > 4 ? n > 5 ? 1 : 2 : 3 : 4; y[j] = 1; y[n > 3 ? n : 60] = 1;"
    ),
    "ternary with effects": (
        "int j = 0; n > 3 ? (j = 7) : (j = 8); y[j] = 1; (n > 3 ? y : y + 20)[1] = 2;"
    ),
    "ternary as a statement": (
        "n > 3 ? (y[3] = 1) : (y[4] = 1); n < 3 ? (void)(y[5] = 1) : (void)(y[6] = 1);"
    ),
    "effects in an index": "int j = 0; y[j++] = j++; y[j] = 5;",
    "effect where it adds": "int j = 3; y[j++] += 1; y[j] = 2;",
    "effects in pointers that change": (
        "global int *p = y; *p++ += 3; (*++p)++; --*p++; p[1] ^= 5; ++*(p += 4); *p = 1;"
    ),
    "effect in a member that changes": (
        "struct { int a, b; } global *s = (void global *)y; int j = 2; s[j++].b |= 9; s[j].a--;"
    ),
    "effect in a vector that changes": (
        "int j = 1; ((global int4 *)y)[j++].z += 7; ((global int2 *)y)[j++].y++; y[j] = 1;"
    ),
    "commas in a place that changes": "int j = 1; y[j += 2, j] *= 3; y[(j += 30, j)]--; y[j] = 1;",
    "effect in an atomic's place": (
        "int j = 4; atomic_inc(&y[j++]); global int *p = y + j; atomic_add(p++, 3);"
        " atomic_or(p, 9);"
    ),
    "effect in a place inside a place": "int j = 0; y[y[y[j++]++ & 7]++ & 7]++; y[j] = 3;",
    "effect in a private array that changes": "int t[4] = {0}, j = 0; t[j++] += 2; y[j] = t[0];",
    "effects in a sizeof": "int j = 3; y[sizeof(j++) + j] = 1;",
    "effects in a condition twice": (
        "int j = 0; if (j++ == 0 && j++ == 1 || j++ == 9) y[j] = 1; else y[j + 9] = 1;"
    ),
    "loop in a loop's condition": (
        "int a = 0; while (a < 3) { int b = 0; while (b <= a) y[a * 9 + b++] = 1; a++; }"
    ),
    "break out of one": (
        "for (int a = 0; a < 3; a++) for (int b = 0; b < 9; b++) { if (b > a) break; y[a * 9 + b] ="
        " 1; }"
    ),
    "nested counters": (
        "int c = 0; for (int a = 0; a < 3; a++) for (int b = 0; b < 3; b++) y[c++ * 4] = 1;"
    ),
    "value from the last turn": (
        "int last = 0; for (int j = 0; j < 5; j++) { y[last] = 1; last = j * 7; } y[last + 1] = 2;"
    ),
    "value from the turn before the last": (
        "int a = 1, b = 2; for (int j = 0; j < 4; j++) { int t = a; a = b; b = t + 9; }"
        " y[a] = 1; y[b] = 2;"
    ),
    "set in a loop that does not run": (
        "int j = 4; for (int t = 0; t < n - 5; t++) j = 9; y[j] = 1;"
    ),
    "set in a loop that breaks": (
        "int j = 0; for (int t = 0; t < 9; t++) { j = t; if (t == 4) break; } y[j] = 1;"
    ),
    "set in both": "int j; if (y[0] & 1) j = 3; else j = 12; y[j] = 1; y[j + 1] = 2;",
    "set in one": "int j = 3; if (y[0] & 1) j = 40; y[j] = 1;",
    "set in a ternary": "int j = 3; y[0] & 1 ? (j = 40) : 0; y[j] = 1;",
    "choice of vectors with effects": (
        "int j = n; int4 v = vload4(0, y) > n ? (int4)(j++) : (int4)(j++ + 9); y[j] = v.x;"
    ),
    "choice of vectors that writes": (
        "int2 v = (int2)(n) > 3 ? (int2)(y[9] = 1) : (int2)(y[12] = 2); y[20] = v.x;"
    ),
    "set in a condition": "int j = 3; if ((j = 8) > n) y[j] = 1;",
    "infinite by mistake": "for (uint j = 5; j < 6; --j) y[j] = 1;",
    "zero length": "for (int j = 0; j < n * 0; j++) y[j] = 1; y[7] = 2;",
    "deep": "int j = 0;" + " if (n > 0) {" * 40 + " j++; y[j] = 1; " + "}" * 40,
    "long": "int j = 0;" + "".join(f" if (n == {a}) j += {a};" for a in range(60)) + " y[j] = 1;",
    "deep expression": "y[" + "(" * 60 + "n" + " + 0)" * 60 + "] = 1;",
    "assume": "__builtin_assume(n == 5); y[n] = 1;",
    "expect": "int j = 2; if (__builtin_expect(j++ > 1, 0)) y[j] = 1; else y[j + 9] = 1;",
    "unreachable": "if (n != 5) __builtin_unreachable(); y[n] = 1;",
    "constant_p": "int j = 2; if (__builtin_constant_p(j++)) y[1] = 1; y[j] = 2;",
    "unroll": '_Pragma("unroll 4") for (int j = 0; j < n; j++) y[j * 2] = 1;',
    "unroll hint": (
        "__attribute__((opencl_unroll_hint(2))) for (int j = 0; j < n; j++) y[j * 2] = 1;"
    ),
}
_TEXTS["switch in a loop"] = "int goto_ = 0; " + _TEXTS["switch in a loop"]

_STATEMENTS = {
    "statement expression": "y[({ int t = n; t * 2; })] = 1;",
    "statement expression writes": "int j = ({ y[9] = 1; n + 1; }); y[j] = 2;",
    "statement expression that breaks": (
        "int j = 0; while (({ if (j > 3) break; y[j] = 1; 1; })) j++; y[j + 9] = 2;"
    ),
    "statement expression that continues": (
        "for (int j = 0; j < 6; j++) y[({ if (j & 1) continue; j; })] = 1;"
    ),
    "statement expression that returns": (
        "y[({ if (n > 4) { y[3] = 1; return; } 7; })] = 1; y[8] = 2;"
    ),
    "statement expression of a pointer": (
        "*({ global int *p = y; p += n; p; }) = 1; ({ y + 9; })[2] = 2;"
    ),
    "statement expression shadows": "int j = 3; y[({ int j = 8; j++; j; })] = 1; y[j] = 2;",
    "statement expression in a loop": (
        "for (int j = ({ y[30] = 1; 2; }); ({ y[31] = j; j < 5; }); ({ y[32] = 2; j++; }))"
        " y[j] = 1;"
    ),
    "statement expression with a loop": (
        "y[({ int s = 0; for (int j = 0; j < 5; j++) s += j; s; })] = 1;"
    ),
    "statement expression with a switch": (
        "y[({ int s; switch (n) { case 5: s = 4; break; default: s = 9; } s; })] = 1;"
    ),
    "statement expression of nothing": "({ y[4] = 1; }); (void)({ }); y[5] = 2;",
    "statement expression in a condition": (
        "if (({ int t = n > 3; y[11] = t; t; }) && ({ y[12] = 1; 0; })) y[13] = 1; else y[14] = 1;"
    ),
    "statement expression in a ternary": (
        "y[n > 3 ? ({ y[20] = 1; 5; }) : ({ y[21] = 1; 6; })] = 1;"
    ),
    "statement expression with a label": "y[({ int t = n; if (t) goto o; t = 9; o: t; })] = 1;",
    "min by statement expression": "y[({ int a_ = (n), b_ = (9); a_ < b_ ? a_ : b_; })] = 1;",
}

TRAPS: list[Trap] = [
    Trap(name, f"kernel void k$(global int *y, int n) {{ {text} }}", (mem(), i(5)))
    for name, text in {**_TEXTS, **_STATEMENTS}.items()
]
