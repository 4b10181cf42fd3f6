"""What a kernel is given: every kind of argument, in every spelling, and the same memory twice."""

from __future__ import annotations

import numpy as np

from traps.case import Image, Local, Same, Trap, holding, i, mem, some_bytes

_PAIR = np.dtype([("a", "i4"), ("b", "f4")])
_MIXED = np.dtype(
    {"names": ["a", "b", "c"], "formats": ["i1", "i4", "i8"], "offsets": [0, 4, 8], "itemsize": 16}
)


def _one(dtype: np.dtype, *values: object) -> object:
    return np.array(tuple(values), dtype)[()]


# Parameters behind `global int *y`, their arguments, and the body.
_CASES: dict[str, tuple[str, tuple[object, ...], str]] = {
    "char": ("char n", (np.int8(-3),), "y[n + 9] = 1;"),
    "uchar": ("uchar n", (np.uint8(63),), "y[n] = 1;"),
    "short": ("short n", (np.int16(-9),), "y[n + 20] = 1;"),
    "ushort": ("ushort n", (np.uint16(65535),), "y[n >> 11] = 1;"),
    "uint": ("uint n", (np.uint32(2**32 - 3),), "y[n + 9] = 1; y[n >> 27] = 2;"),
    "long": ("long n", (np.int64(-(2**40) - 7),), "y[-(n + (1l << 40))] = 1;"),
    "ulong": ("ulong n", (np.uint64(2**64 - 5),), "y[n + 9] = 1; y[n >> 60] = 2;"),
    "float": ("float n", (np.float32(7.9),), "y[(int)n] = 1; y[(int)-n + 20] = 2;"),
    "double": ("double n", (np.float64(9.99),), "y[(int)n] = 1;"),
    "unsigned": ("unsigned n", (np.uint32(5),), "y[n] = 1;"),
    "long long order": ("long unsigned int n", (np.uint64(5),), "y[n] = 1;"),
    "signed char": ("signed char n", (np.int8(-1),), "y[n + 3] = 1;"),
    "bool": ("bool n", (np.int8(1),), "y[n + 3] = 1;"),
    "half": ("half n", (np.float16(5),), "y[(int)(float)n] = 1;"),
    "size_t": ("size_t n", (np.uint64(5),), "y[n] = 1;"),
    "const": ("const int n", (i(5),), "y[n] = 1;"),
    "volatile": ("volatile int n", (i(5),), "y[n] = 1; n++; y[n] = 2;"),
    "changed": ("int n", (i(5),), "n += 4; y[n] = 1; n -= 20; y[n + 20] = 2;"),
    "changed in a loop": ("int n", (i(5),), "for (; n < 20; n += 4) y[n] = 1;"),
    "changed by address": ("int n", (i(5),), "int *p = &n; *p += 4; y[n] = 1;"),
    "typedef": ("index_t$ n", (np.uint8(250),), "n += 9; y[n] = 1;"),
    "enumeration": ("enum E$ n", (np.uint32(5),), "y[n] = 1;"),
    "register": ("register int n", (i(5),), "y[n] = 1;"),
    "int2": ("int2 n", (np.array([3, 9], "i4"),), "y[n.x] = 1; y[n.y] = 2;"),
    "uchar4": ("uchar4 n", (np.array([3, 9, 20, 250], "u1"),), "y[n.z] = 1; y[n.w >> 3] = 2;"),
    "float4": ("float4 n", (np.array([3, 9, 20, 30], "f4"),), "y[(int)n.w] = 1;"),
    "int3": ("int3 n", (np.array([3, 9, 20, 0], "i4"),), "y[n.z] = 1;"),
    "structure": ("struct P$ n", (_one(_PAIR, 5, 9.5),), "y[n.a] = 1; y[(int)n.b] = 2;"),
    "structure with padding": (
        "struct M$ n",
        (_one(_MIXED, -3, 9, 20),),
        "y[n.a + 9] = 1; y[n.b] = 2; y[n.c] = 3;",
    ),
    "structure changed": (
        "struct P$ n",
        (_one(_PAIR, 5, 9.5),),
        "n.a += 3; struct P$ m = n; m.a++; y[m.a] = 1; y[n.a] = 2;",
    ),
    "structure by a helper": ("struct P$ n", (_one(_PAIR, 5, 9.5),), "y[first$(n)] = 1;"),
    "two arrays": ("global int *z", (mem(seed=5),), "z[3] = y[4]; y[5] = z[6] + 1;"),
    "order of arrays": (
        "global int *z, int n, global char *w",
        (mem(seed=5), i(5), mem(64, 1, 7)),
        "z[n] = w[n + 1]; w[n + 2] = y[n + 3];",
    ),
    "const array": ("global const int *z", (mem(seed=5),), "y[3] = z[4] + 1;"),
    "const behind": ("global int const *z", (mem(seed=5),), "y[3] = z[4] + 1;"),
    "const before": ("const global int *z", (mem(seed=5),), "y[3] = z[4] + 1;"),
    "const that is written": ("global const int *z", (mem(seed=5),), "((global int *)z)[3] = 1;"),
    "const that is written by address": (
        "global const int *z",
        (mem(seed=5),),
        "*(global int *)(size_t)&z[3] = 1;",
    ),
    "const pointer": ("global int *const z", (mem(seed=5),), "z[4] = 1;"),
    "restrict": ("global int *restrict z", (mem(seed=5),), "z[4] = y[3] + 1;"),
    "all qualifiers": (
        "const volatile global int *const restrict z",
        (mem(seed=5),),
        "y[3] = z[4] + 1;",
    ),
    "array": ("global int z[]", (mem(seed=5),), "z[4] = 1; z++; *z = 2;"),
    "array of four": ("global int z[4]", (mem(seed=5),), "z[9] = 1;"),
    "array of const": ("global const int z[]", (mem(seed=5),), "y[5] = z[9] + 1;"),
    "rows": ("global int (*z)[8]", (mem(seed=5),), "z[2][3] = 1; (*z)[20] = 2;"),
    "rows as an array": ("global int z[][8]", (mem(seed=5),), "z[2][3] = 1; (*++z)[1] = 2;"),
    "typedef of rows": ("global row$ *z", (mem(seed=5),), "z[2][3] = 1;"),
    "typedef of a pointer": ("ints$ z", (mem(seed=5),), "z[4] = 1;"),
    "typedef of a const pointer": ("cints$ z", (mem(seed=5),), "y[4] = z[9] + 1;"),
    "typedef of an array": ("global row$ z", (mem(seed=5),), "z[4] = 1;"),
    "void": ("global void *z", (mem(seed=5),), "((global char *)z)[37] = 1;"),
    "const void": (
        "global const void *z",
        (mem(seed=5),),
        "y[3] = ((global const short *)z)[37] + 1;",
    ),
    "structure pointer": (
        "global struct P$ *z",
        (mem(seed=5),),
        "z[3].a = 1; z->b = 2; z[7].b += 1;",
    ),
    "pointer to a vector": ("global float3 *z", (mem(seed=5),), "z[3].z = 1; z[9] = (float3)(2);"),
    "char pointer": ("global char *z", (mem(seed=5),), "z[37] = z[38] + 1;"),
    "half pointer": ("global half *z", (mem(seed=5),), "vstore_half(vload_half(5, z) + 1, 9, z);"),
    "double pointer": ("global double *z", (mem(seed=5),), "z[3] = 1; z[5] += 2;"),
    "half read": (
        "global const half *z",
        (mem(seed=5),),
        "y[3] = (int)(vload_half(9, z) * 0) + 4;",
    ),
    "bool pointer": ("global bool *z", (holding([1] * 64, "u1"),), "z[37] = !z[38];"),
    "constant": ("constant int *z", (mem(seed=5),), "y[3] = z[4] + 1;"),
    "constant structure": ("constant struct P$ *z", (mem(seed=5),), "y[3] = z[4].a + 1;"),
    "constant by index": (
        "constant int *z, int n",
        (mem(seed=5), i(5)),
        "for (int j = 0; j < n; j++) y[j] = z[2 * j] + 1;",
    ),
    "local": ("local int *t", (Local(64),), "t[3] = y[4]; y[5] = t[3] + 1;"),
    "local first used": (
        "local int *t, global int *z",
        (Local(64), mem(seed=5)),
        "t[1] = z[2]; z[3] = t[1] + 1;",
    ),
    "local structure": ("local struct P$ *t", (Local(64),), "t[3].a = y[4]; y[5] = t[3].a + 1;"),
    "the same twice": ("global int *z", (Same(0),), "y[3] = 1; z[4] = y[3] + 1; y[5] = z[4];"),
    "the same, one const": ("global const int *z", (Same(0),), "y[3] = z[4] + 1; y[4] = z[3];"),
    "the same, restrict": ("global int *restrict z", (Same(0),), "y[3] = 1; z[9] = 2;"),
    "the same thrice": (
        "global int *z, global char *w",
        (Same(0), Same(0)),
        "y[3] = 1; z[4] = 2; w[80] = z[9];",
    ),
    "not used": ("global int *z, int n", (mem(seed=5), i(5)), "y[3] = 1;"),
    "only its address": ("global int *z", (mem(seed=5),), "y[z != 0] = 1;"),
    "unnamed": ("global int *, int", (mem(seed=5), i(5)), "y[3] = 1;"),
    "sixteen": (
        ", ".join(f"int a{k}" for k in range(16)),
        tuple(i(k) for k in range(16)),
        "y[a15 + a3] = 1; y[a0] = 2;",
    ),
    "twelve arrays": (
        ", ".join(f"global int *a{k}" for k in range(12)),
        tuple(mem(16, 4, k) for k in range(12)),
        "a3[4] = a11[5]; a0[1] = y[2]; y[3] = a7[8] + 1;",
    ),
    "image read": (
        "read_only image2d_t z, int n",
        (Image((4, 4), some_bytes(64)), i(1)),
        (
            "const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE |"
            " CLK_FILTER_NEAREST; y[5] = read_imageui(z, s, (int2)(n, 2)).x + 1;"
        ),
    ),
    "image written": (
        "write_only image2d_t z, int n",
        (Image((4, 4), some_bytes(64)), i(1)),
        "write_imageui(z, (int2)(n, 2), (uint4)(1, 2, 3, 4)); y[3] = 1;",
    ),
    "image asked": (
        "read_only image2d_t z",
        (Image((4, 4), some_bytes(64)),),
        "y[get_image_width(z) + get_image_height(z)] = 1;",
    ),
    "image in a helper": (
        "write_only image2d_t z, int n",
        (Image((4, 4), some_bytes(64)), i(2)),
        "paint$(z, n); y[4] = 1;",
    ),
}

_BEFORE = """
typedef uchar index_t$; enum E$ { A$, B$ = 9 }; struct P$ { int a; float b; };
struct M$ { char a; int b; long c; };
typedef global int *ints$; typedef const global int *cints$; typedef int row$[8];
int first$(struct P$ p) { return p.a; }
"""
_PAINT = (
    "void paint$(write_only image2d_t z, int n) { write_imageui(z, (int2)(n, 2), (uint4)(1, 2, 3,"
    " 4)); }\n"
)

_SPELLED = {
    "K&R": "kernel void k$(y, n) global int *y; int n; { y[n] = 1; }",
    "old types": "kernel void k$(global unsigned *y, signed n) { y[n] = 1; }",
    "comments": (
        "kernel void k$(/* , */ global /* int */ int * /* x */ y /* ) */, // ) {\n int n /* , z */)"
        " { y[n] = 1; }"
    ),
    "parentheses": "kernel void k$(global int (*y), int (n)) { y[n] = 1; }",
    "function parentheses": "kernel void (k$)(global int *y, int n) { y[n] = 1; }",
    "typedef of a kernel": (
        "typedef void T$(global int *, int); kernel T$ k$; kernel void k$(global int *y, int n) {"
        " y[n] = 1; }"
    ),
    "two stars in a typedef": (
        "typedef global int *P$; kernel void k$(P$ y, int n) { P$ *q = &y; (*q)[n] = 1; **q = 2; }"
    ),
    "macro for a comma": (
        "#define COMMA ,\nkernel void k$(global int *y COMMA int n) { y[n] = 1; }\n"
    ),
    "macro for a list": "#define LIST global int *y, int n\nkernel void k$(LIST) { y[n] = 1; }\n",
    "macro for a qualifier": (
        "#define G __global\n#define R restrict\nkernel void k$(G int *R y, int n) { y[n] = 1; }\n"
    ),
    "address space by number": (
        "kernel void k$(global int *y, int n) { y[n] = 1; __attribute__((opencl_global)) int *p = y"
        " + 9; *p = 2; }"
    ),
    "names that are types": "typedef int y$; kernel void k$(global int *y$, int n) { y$[n] = 1; }",
    "names of built-ins": "kernel void k$(global int *min, int max) { min[max] = 1; }",
    "names of vectors": "kernel void k$(global int *float4, int int2) { float4[int2] = 1; }",
    "names of sizes": (
        "kernel void k$(global int *get_global_id, int size_t) { get_global_id[size_t] = 1; }"
    ),
    "names with numbers": (
        "kernel void k$(global int *y0123456789abcdef, int _) { y0123456789abcdef[_] = 1; }"
    ),
    "long name": f"kernel void k$(global int *{'y' * 200}, int n) {{ {'y' * 200}[n] = 1; }}",
}

TRAPS: list[Trap] = [
    *(
        Trap(
            name,
            f"{_BEFORE}{_PAINT * ('paint' in text)}kernel void k$(global int *y, {parameters}) {{"
            f" {text} }}",
            (mem(), *arguments),
        )
        for name, (parameters, arguments, text) in _CASES.items()
    ),
    *(Trap(f"spelled {name}", source, (mem(), i(5))) for name, source in _SPELLED.items()),
    Trap(
        "half values",
        "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\nkernel void k(global half *y, half n) {"
        " y[(int)n] = n; }",
        (mem(), np.float16(5)),
    ),
    Trap("y behind", "kernel void k$(int n, global int *y) { y[n] = 1; }", (i(5), mem())),
    Trap(
        "y between",
        "kernel void k$(int n, global int *y, int m) { y[n + m] = 1; }",
        (i(5), mem(), i(4)),
    ),
]
