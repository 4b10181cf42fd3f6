"""Built-in functions that touch memory, and those whose result becomes an index."""

from __future__ import annotations

from traps.case import Trap, i, mem

_WIDTHS = (2, 3, 4, 8, 16)
_TYPES = ("char", "ushort", "int", "float", "long")


_ALONE = {"vstore16 of int", "vstore16 of float", "vstore8 of long"}
"""These share no program: LLVM 12 in PoCL has no end with them on a CPU with AVX-512."""


def _vectors() -> dict[str, str]:
    texts = {}
    for kind in _TYPES:
        for width in _WIDTHS:
            p = f"global {kind} *p = (global {kind} *)y;"
            size = {"char": 1, "ushort": 2, "int": 4, "float": 4, "long": 8}[kind] * width
            at = min(2, 128 // size - 1)
            texts[f"vload{width} of {kind}"] = (
                f"{p} {kind}{width} v = vload{width}({at}, p); y[63] = v.s{width - 1:x} == 3;"
            )
            texts[f"vstore{width} of {kind}"] = (
                f"{p} vstore{width}(({kind}{width})(n), {at}, p + 1);"
            )
    for width in ("", *map(str, _WIDTHS)):
        p = "global half *p = (global half *)y;"
        value = f"(float{width})(n)" if width else "(float)n"
        count = int(width or 1)
        texts[f"vload_half{width}"] = (
            f"{p} y[63] = {'vload_half' + width}(2, p){'.s0' if width else ''} > 1;"
        )
        texts[f"vstore_half{width}"] = f"{p} vstore_half{width}({value}, 2, p);"
        texts[f"vstore_half{width} rounded"] = f"{p} vstore_half{width}_rte({value}, 1, p + 3);"
        if width:
            texts[f"vloada_half{width}"] = (
                f"{p} y[63] = vloada_half{width}(2, p).s{count - 1:x} > 1;"
            )
            # of three, Intel's runtime stores a fourth, of no value in particular
            ends = " ((global ushort *)y)[11] = 1;" if count == 3 else ""
            texts[f"vstorea_half{width}"] = f"{p} vstorea_half{width}({value}, 2, p);{ends}"
    return texts


_ATOMICS = {
    f"atomic_{name}": (
        f"atomic_{name}(&y[n]{', 3' if name not in ('inc', 'dec') else ''}); y[n + 20] ="
        f" atomic_{name}((volatile global int *)y + 9{', 5' if name not in ('inc', 'dec') else ''})"
        " & 1;"
    )
    for name in ("add", "sub", "xchg", "inc", "dec", "min", "max", "and", "or", "xor")
}

_OTHERS = {
    "atomic_cmpxchg": "atomic_cmpxchg(y + n, y[3], 7);",
    "atom_add": "atom_add(y + n, 7); atom_inc(&y[9]);",
    "atomic_xchg of a float": "atomic_xchg((global float *)y + n, 7.0f);",
    "atomic unsigned": "atomic_max((global uint *)y + n, 7u);",
    "atomic by index": "y[(atomic_inc(&y[3]) & 7) + 20] = 1;",
    "atomic in a condition": "if (atomic_or(&y[3], 1) & 1) y[4] = 1; else y[5] = 1;",
    "atomic of a long": "atom_add((global long *)y + 3, 5l);",
    "sync builtin": "__sync_fetch_and_add(y + n, 3);",
    "atomic builtin": "__atomic_store_n(y + n, 3, 0); y[9] = __atomic_load_n(y + 3, 0) + 1;",
    "C11 builtin": "__c11_atomic_fetch_add((global _Atomic int *)y + n, 3, 0);",
    "memcpy": "__builtin_memcpy(y + n, y + 20, 12);",
    "memcpy to private": "int t[4]; __builtin_memcpy(t, y + n, 16); y[30] = t[2] + 1;",
    "memset": "__builtin_memset(y + n, 7, 10);",
    "memmove": "__builtin_memmove(y + n, y + n + 1, 8);",
    "memcpy of bytes": "__builtin_memcpy((global char *)y + 3, (global char *)y + 30, n);",
    "structure copy": (
        "typedef struct { int a[5]; } s; *(global s *)(y + n) = *(global s *)(y + 20);"
    ),
    "prefetch builtin": "__builtin_prefetch(y + n); y[3] = 1;",
    "overflow": "(void)__builtin_sadd_overflow(n, 3, &n); y[n] = 1;",
    "overflow to memory": "int t; y[20] = __builtin_add_overflow(n, 3, &t); y[t] = 1;",
    "nontemporal": (
        "__builtin_nontemporal_store(3, y + n); y[9] = __builtin_nontemporal_load(y + 3) + 1;"
    ),
    "assume aligned": "global int *p = (global int *)__builtin_assume_aligned(y, 4); p[n] = 1;",
    "shuffle": (
        "int4 v = vload4(0, y); y[shuffle((int4)(9, 8, 7, 6), (uint4)(n - 4)).s2] = 1; y[20] ="
        " v.s0;"
    ),
    "shuffle2": "y[shuffle2((int2)(1, 2), (int2)(3, n), (uint2)(3, 0)).x] = 1;",
    "convertvector": "int2 v = __builtin_convertvector((float2)(3.5f, 9.1f), int2); y[v.y] = 1;",
    "sincos": "global float *p = (global float *)y; y[9] = sincos(1.0f, p + n) > 0;",
    "fract": "global float *p = (global float *)y; float f = fract(2.75f, &p[n]); y[9] = f > 0;",
    "modf": "global float *p = (global float *)y; modf(2.75f, p + n);",
    "frexp": "frexp(20.0f, y + n); global int4 *p = (global int4 *)y; frexp((float4)(3), p + 5);",
    "remquo": "remquo(20.0f, 3.0f, y + n);",
    "lgamma_r": "lgamma_r(2.5f, y + n);",
    "sincos of vectors": "sincos((float4)(1), (global float4 *)y + 2);",
    "frexp to private": "int e; frexp(20.0f, &e); y[e] = 1;",
    "fract to private": "float w; fract(7.75f, &w); y[(int)w] = 1;",
    "remquo to private": "int q; remquo(20.0f, 3.0f, &q); y[q] = 1;",
    "modf to private": "float w; modf(-7.75f, &w); y[(int)-w] = 1;",
    "as_float4": "float4 v = as_float4(vload4(1, y)); y[as_int4(v).x & 7] = 1;",
    "isequal": (
        "y[isequal(1.0f, (float)n) + 3] = 1; y[-isequal((float2)(n), (float2)(5)).x + 9] = 2;"
    ),
    "signbit": "y[signbit(-1.0f) + 3] = 1; y[ilogb(9.0f) + 9] = 2;",
    "nan": "y[isnan(nan(5u)) + 3] = 1; y[isinf(INFINITY) + 9] = 2;",
    "rounding": (
        "y[(int)rint(2.5f)] = 1; y[(int)round(2.5f) + 9] = 2; y[(int)trunc(-2.5f) + 20] = 3;"
        " y[convert_int_rte(2.5f) + 30] = 4;"
    ),
    "fma": "y[(int)fma(2.0f, 3.0f, (float)n)] = 1;",
    "dot": (
        "y[(int)dot((float4)(1, 2, 3, 4), (float4)(1))] = 1; y[(int)cross((float3)(1, 0, 0),"
        " (float3)(0, 9, 0)).z] = 2;"
    ),
    "mix": (
        "y[(int)mix(3.0f, 9.0f, 0.5f)] = 1; y[(int)step(2.0f, 3.0f) + 9] = 2;"
        " y[(int)smoothstep(0.0f, 1.0f, 2.0f) + 20] = 3;"
    ),
    "length": (
        "y[(int)length((float2)(3, 4))] = 1; y[(int)distance((float2)(0), (float2)(6, 8))] = 2;"
    ),
    "pown": "y[(int)pown(2.0f, n)] = 1; y[(int)exp2((float)n - 1)] = 2;",
    "bit counts": "y[popcount((uchar)255)] = 1; y[clz((short)1)] = 2; ",
    "printf of a pointer's string": (
        'constant char *s = "abc"; printf("%s %d %v4d\\n", s, y[n], vload4(2, y)); y[3] = 1;'
    ),
    "printf with an effect": 'int j = n; printf("%d\\n", y[j++] = 3); y[j] = 1;',
    "wait of none": "event_t e = 0; y[n] = 1;",
    "nan payload": "float f = as_float(0x7fc00005); y[as_int(f) & 15] = 1;",
    "vector comparison as an index": (
        "int4 m = vload4(0, y) > (int4)(0); y[-(m.x + m.y + m.z + m.w) + 9] = 1;"
    ),
    "select of vectors": (
        "int2 v = select((int2)(3, 4), (int2)(9, 20), (int2)(-1, 0)); y[v.x] = 1; y[v.y] = 2;"
    ),
    "any of data": "y[any(vload4(0, y) < 0) ? 9 : 20] = 1;",
    "work-group functions": "y[work_group_all(n) + 3] = 1;",
    "sub-group functions": "y[get_sub_group_size() + 3] = 1;",
    "unknown function": "y[n] = 1;",
    "three args": "y[clamp(n, 9, 3) & 63] = 1;",
    "clamp with an effect": (
        "int j = n; y[clamp(j++, 3, 50)] = 1; y[clamp(40, 3, j++)] = 2; y[j] = 3;"
    ),
    "mad": (
        "y[(int)mad(2.0f, 3.0f, (float)n)] = 1; y[mad_hi(1 << 20, 1 << 20, n) & 63] = 2;"
        " y[mad_sat((uchar)9, (uchar)9, (uchar)200) >> 2] = 3;"
    ),
    "maximum of three": "y[max(max(n, 3), 9)] = 1; y[max((int2)(3, n), 4).y + 20] = 2;",
    "fmin": (
        "y[(int)fmin((float)n, 9.0f)] = 1; y[(int)fmax((float)n, 9.0f)] = 2; y[(int)min(3.5f, 9.0f)"
        " + 20] = 3; y[(int)clamp(99.0f, 1.0f, 30.0f)] = 4;"
    ),
    "min of mixed": "y[min((char)n, (char)-3) + 9] = 1; y[max((ulong)n, (ulong)7)] = 2;",
}

_VALUES = {
    "abs of the least": "y[abs(l) & 63] = 1; y[abs(l) >> 28] = 2; y[(abs(l) >> 27) + n] = 3;",
    "abs is unsigned": "y[(abs(l) > 0) + 3] = 1; y[(abs(m) - 2 < 0) + 9] = 2; y[-abs(m) & 31] = 3;",
    "abs as an int": "y[((int)abs(l) < 0) + 3] = 1; y[(int)abs(l) % 7 + 20] = 2;",
    "abs in a loop": "for (uint k = abs(l); k < abs(l) + 3; k++) y[k & 63] = 1;",
    "abs below a bound": "for (int k = l; abs(k) > n; k /= 16) y[abs(k) & 31] = k;",
    "abs of narrow types": (
        "y[abs((char)-128) >> 2] = 1; y[abs((short)-32768) >> 10] = 2; y[abs((long)l) >> 26] = 3;"
    ),
    "least of abs": (
        "y[min(abs(l), 5u)] = 1; y[max(abs(m), 9u)] = 2; y[clamp(abs(l), 1u, 20u)] = 3;"
    ),
    "abs_diff": "y[abs_diff(l, m) & 31] = 1; y[abs_diff(m, l) >> 27] = 2; y[abs_diff(-n, n)] = 3;",
    "hadd": "y[hadd(l, m) & 31] = 1; y[rhadd(m, n) + 20] = 2; y[hadd(~0u, 3u) >> 27] = 3;",
    "mul_hi of signs": "y[mul_hi(l, m) + 9] = 1; y[mul_hi((uint)l, (uint)m) >> 26] = 2;",
    "mul_hi of narrow types": (
        "y[mul_hi((short)-3, (short)n) + 9] = 1; y[mul_hi((uchar)200, (uchar)99)] = 2;"
    ),
    "mad_hi wraps": "y[mad_hi(l, l, 1 << 30) & 63] = 1; y[mad_hi((uint)m, (uint)m, 9u) + 1] = 2;",
    "add_sat": "y[add_sat(l, m) >> 26 & 63] = 1; y[add_sat((uchar)n, (uchar)255) >> 3] = 2;",
    "sub_sat": (
        "y[sub_sat((uint)n, 9u)] = 1; y[sub_sat(l, 1) & 63] = 2; "
        "y[sub_sat((char)-128, (char)n) + 150] = 3;"
    ),
    "mad_sat": "y[mad_sat(1 << 20, 1 << 20, l) >> 26] = 1; y[mad_sat((uint)n, ~0u, 3u) >> 27] = 2;",
    "clz of ends": "y[clz(0)] = 1; y[clz(l) + 3] = 2; y[clz((uchar)n)] = 3; y[clz((long)n)] = 4;",
    "popcount of signs": (
        "y[popcount(m)] = 1; y[popcount((char)m) + 1] = 2; y[popcount(l) + 9] = 3;"
    ),
    "rotate by more": (
        "y[rotate((uint)l, 37u)] = 1; y[rotate(n, -1) & 63] = 2; "
        "y[rotate((uchar)129, (uchar)9)] = 3;"
    ),
    "upsample of signs": (
        "y[upsample((short)-1, (ushort)n) & 63] = 1; y[upsample((char)m, (uchar)250) + 20] = 2;"
    ),
    "mul24 of signs": "y[mul24(m, -n)] = 1; y[mul24(-3, n) + 20] = 2; y[mad24(m, n, 30)] = 3;",
    "convert_uchar_sat": "y[convert_uchar_sat(m)] = 1; y[convert_uchar_sat(300 + n) >> 3] = 2;",
    "convert_char_sat": "y[convert_char_sat(l) + 130] = 1; y[convert_char_sat(900u) >> 2] = 2;",
    "convert_uint_sat": (
        "y[convert_uint_sat(-1.5f)] = 1; y[convert_uint_sat(m) + 9] = 2; "
        "y[convert_uint_sat(1e20f) >> 27] = 3;"
    ),
    "convert_int_sat": (
        "y[convert_int_sat(1e20f) >> 26] = 1; y[convert_int_sat((long)l * 9) & 63] = 2;"
    ),
    "convert_int_sat_rtn": (
        "y[convert_int_sat_rtn(-0.5f) + 9] = 1; y[convert_int_sat_rtp(2.1f)] = 2;"
    ),
    "convert_short_sat": "y[convert_short_sat(l) & 63] = 1; y[convert_ushort_sat(m) + 9] = 2;",
    "convert without sat": "y[convert_uchar(n + 256)] = 1; y[convert_char(n + 256) + 9] = 2;",
    "convert of vectors": (
        "uchar4 v = convert_uchar4_sat((int4)(l, m, n, 60)); y[v.x + v.y] = 1; y[v.w] = 2;"
    ),
    "as_uint": "y[as_uint(l) >> 27] = 1; y[(as_uint(m) > 3u) + 20] = 2;",
    "as_char": "y[as_char((uchar)250) + 9] = 1; y[as_uchar((char)m) >> 3] = 2;",
    "as_uchar4": "y[as_uchar4(l).w >> 2] = 1; y[as_uchar4(n).x] = 2; y[as_short2(m).y + 9] = 3;",
    "as_int of a float": "y[as_int(-0.0f) >> 30 & 63] = 1; y[as_uint(1.0f) >> 27] = 2;",
    "select of an unsigned": "y[select(3u, 9u, (uint)l >> 31)] = 1; y[select(20, 30, n)] = 2;",
    "bitselect of signs": (
        "y[bitselect(m, n, 63) & 63] = 1; y[bitselect(0u, ~0u, (uint)l) >> 27] = 2;"
    ),
    "isgreater of ints": "y[isgreater((float)n, (float)l) + 3] = 1; y[signbit((float)m) + 9] = 2;",
    "a result kept too narrow": (
        "char c = abs(200 + n); y[c + 90] = 1; uchar u = clz(0) * 9; y[u & 63] = 2;"
    ),
    "a result with a sign": (
        "int k = abs(l); y[k >> 31 & 63] = 1; y[(k < 0) + 9] = 2; uint v = abs(l); y[v >> 31] = 3;"
    ),
}
"""What results are. The least int and the one below zero come as arguments: PoCL's own `abs` of the
first gives anything where it is a constant."""

TRAPS: list[Trap] = [
    Trap(
        name,
        f"kernel void {'k' if name in _ALONE else 'k$'}(global int *y, int n) {{ {text} }}",
        (mem(), i(5)),
    )
    for name, text in {**_vectors(), **_ATOMICS, **_OTHERS}.items()
] + [
    Trap(
        name,
        f"kernel void k$(global int *y, int n, int l, int m) {{ {text} }}",
        (mem(256), i(5), i(-(2**31)), i(-1)),
    )
    for name, text in _VALUES.items()
]
