"""Images and arrays of them, beside numbers in structures and vectors; their sizes in indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from traps.case import Image, Trap, around, i, some_bytes

_PICTURE = Image((8, 6), some_bytes(192, 3))
_BLOCK = Image((4, 3, 5), some_bytes(240, 5))
_PICTURES = Image((4, 3, 5), some_bytes(240, 7), is_array=True)

_HELPERS = """
typedef struct { short pad; int2 at; int3 far; uchar c; long l; } Where$;
typedef struct { int x, y, w, h; } Box$;
constant sampler_t near$ = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
constant sampler_t edge$ = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE |
    CLK_FILTER_NEAREST;
uint at$(read_only image2d_t z, int2 p) { return read_imageui(z, near$, p).x; }
int2 size$(read_only image2d_t z) { return get_image_dim(z) - 1; }
void paint$(write_only image2d_t z, Box$ b, uint v)
{
    for (int r = b.y; r < b.y + b.h; r++)
        for (int c = b.x; c < b.x + b.w; c++) write_imageui(z, (int2)(c, r), (uint4)(v));
}
"""
_G = "int g = get_global_id(0); "
_BOX = np.array([2, 1, 3, 4], "i4")
_WHERE = np.zeros((), np.dtype({
    "names": ["pad", "at", "far", "c", "l"],
    "formats": ["i2", ("i4", 2), ("i4", 4), "u1", "i8"],
    "offsets": [0, 8, 16, 32, 40], "itemsize": 48,
}))  # fmt: skip
_WHERE["at"], _WHERE["far"], _WHERE["c"], _WHERE["l"] = (3, 2), (1, 2, 4, 0), 7, 9

# What the body is, the parameters behind `y`, their arguments, and what else the launch has.
_CASES: dict[str, tuple[str, str, tuple[Any, ...], dict[str, Any]]] = {
    # sizes in indices
    "width in an index": ("read_only image2d_t z", "y[get_image_width(z) - 1] = 1;",
                          (_PICTURE,), {}),
    "sizes in a vector": ("read_only image2d_t z", "int2 d = get_image_dim(z); y[d.x + d.y] = 1;",
                          (_PICTURE,), {}),
    "sizes by a helper": ("read_only image2d_t z", "int2 d = size$(z).yx; y[d.x] = 1; y[d.y] = 2;",
                          (_PICTURE,), {}),
    "size bounds a loop": (
        "read_only image2d_t z",
        "for (int k = 0; k < get_image_height(z); k++) y[k * 8] = at$(z, (int2)(k, k));",
        (_PICTURE,), {}),
    "size guards": (
        "read_only image2d_t z",
        f"{_G} if (g >= get_image_width(z)) return; y[g + 3] = at$(z, (int2)(g, 1));",
        (_PICTURE,), {"size": (16,), "local": (4,)}),
    "row by row": (
        "read_only image2d_t z",
        "int2 p = (int2)(get_global_id(0), get_global_id(1)); "
        "y[p.y * get_image_width(z) + p.x] = at$(z, p.yx);",
        (_PICTURE,), {"size": (8, 6), "local": (4, 2)}),
    "sizes of a block": (
        "read_only image3d_t z",
        "int4 d = get_image_dim(z); y[d.x + d.y * 2 + d.z * 3 + d.w] = get_image_depth(z);",
        (_BLOCK,), {}),
    "number of pictures": (
        "read_only image2d_array_t z",
        "size_t many = get_image_array_size(z); y[many * get_image_height(z)] = 1;",
        (_PICTURES,), {}),
    "order and type": (
        "read_only image2d_t z",
        "y[get_image_channel_order(z) == CLK_RGBA ? 5 : 6] = "
        "get_image_channel_data_type(z) == CLK_UNSIGNED_INT8;", (_PICTURE,), {}),
    # positions from structures and vectors
    "at a vector": ("read_only image2d_t z, int2 p", "y[p.x + p.y] = at$(z, p);",
                    (_PICTURE, np.array([5, 3], "i4")), {}),
    "at a member": ("read_only image2d_t z, Where$ w", "y[w.at.y + w.c] = at$(z, w.at.yx);",
                    (_PICTURE, _WHERE), {}),
    "at three": (
        "read_only image3d_t z, Where$ w",
        "y[w.far.z + w.l] = read_imageui(z, near$, (int4)(w.far, 0)).z;", (_BLOCK, _WHERE), {}),
    "structure between images": (
        "read_only image2d_t z, Where$ w, write_only image2d_t o, int n",
        "write_imageui(o, w.at, (uint4)(n, w.c, w.l, at$(z, w.at))); y[w.c + n] = 4;",
        (_PICTURE, _WHERE, Image((8, 6), some_bytes(192, 9)), i(3)), {}),
    "box painted": ("write_only image2d_t z, Box$ b", "paint$(z, b, 9); y[b.x * b.h] = 1;",
                    (_PICTURE, _BOX), {}),
    "box moved": ("write_only image2d_t z, Box$ b",
                  "Box$ o = b; o.x += 1; o.w -= 2; paint$(z, o, 9); y[o.x + o.w] = b.x;",
                  (_PICTURE, _BOX), {}),
    "position from a pixel": ("read_only image2d_t z", "y[at$(z, (int2)(1, 2)) & 63] = 1;",
                              (_PICTURE,), {}),
    "pixel as a vector": (
        "read_only image2d_t z",
        "uint4 v = read_imageui(z, near$, (int2)(2, 2)); v = min(v, 30u); y[v.x] = 1; v.yx = v.zw; "
        "y[v.y + 30] = 2;", (_PICTURE,), {}),
    "pixels in a loop": (
        "read_only image2d_t z, int n",
        "uint s = 0; int2 p = 0; for (; p.x < n; p.x++) { s += at$(z, p); p.y = p.x / 2; } "
        "y[p.x + p.y] = s;", (_PICTURE, i(6)), {}),
    # kinds
    "block read": ("read_only image3d_t z, int n",
                   "y[n] = read_imageui(z, near$, (int4)(1, 2, n, 0)).x;", (_BLOCK, i(4)), {}),
    "pictures read": ("read_only image2d_array_t z, int n",
                      "y[n] = read_imageui(z, near$, (int4)(1, 2, n, 0)).x;",
                      (_PICTURES, i(4)), {}),
    "pictures written": ("write_only image2d_array_t z, int n",
                         "write_imageui(z, (int4)(1, 2, n, 0), (uint4)(7)); y[n] = 2;",
                         (_PICTURES, i(4)), {}),
    "no sampler": ("read_only image2d_t z, int n", "y[n] = read_imageui(z, (int2)(n, 2)).w;",
                   (_PICTURE, i(4)), {}),
    "a sampler inside": (
        "read_only image2d_t z, int n",
        "const sampler_t s = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_REPEAT | "
        "CLK_FILTER_NEAREST; y[n] = read_imageui(z, s, (float2)(0.3f, 0.6f)).x;",
        (_PICTURE, i(4)), {}),
    "outside": ("read_only image2d_t z, int n",
                "y[n] = at$(z, (int2)(-3, n)) + read_imageui(z, edge$, (int2)(90, n)).x;",
                (_PICTURE, i(4)), {}),
    "written outside": ("write_only image2d_t z, int n",
                        "write_imageui(z, (int2)(n, 2), (uint4)(3)); y[n] = 1;",
                        (_PICTURE, i(4)), {}),
    "two of one memory apart": (
        "read_only image2d_t z, write_only image2d_t o",
        "int2 p = (int2)(get_global_id(0), get_global_id(1)); "
        "write_imageui(o, p, read_imageui(z, edge$, p + 1)); y[p.x] = 1;",
        (_PICTURE, Image((8, 6), some_bytes(192, 9))), {"size": (8, 6), "local": (8, 1)}),
    "given twice": (
        "read_only image2d_t z, read_only image2d_t o",
        "y[at$(z, (int2)(1, 1)) & 31] = at$(o, (int2)(2, 2));",
        (_PICTURE, Image((4, 4), some_bytes(64, 9))), {}),
    "old names": ("__read_only image2d_t z, __write_only image2d_t o",
                  "write_imageui(o, (int2)(1, 1), read_imageui(z, near$, (int2)(2, 3))); y[1] = 1;",
                  (_PICTURE, Image((4, 4), some_bytes(64, 9))), {}),
    "without an access": ("image2d_t z, int n", "y[n] = at$(z, (int2)(n, 2));",
                          (_PICTURE, i(4)), {}),
    "not used": ("read_only image2d_t z, int n", "y[n] = 1;", (_PICTURE, i(4)), {}),
    "only asked": ("write_only image2d_t z, int n", "y[n + get_image_width(z)] = 1;",
                   (_PICTURE, i(4)), {}),
    "behind local memory": (
        "read_only image2d_t z",
        f"local uint t[8]; {_G} int l = get_local_id(0); t[l] = at$(z, (int2)(g & 7, 1)); "
        "barrier(CLK_LOCAL_MEM_FENCE); y[g] = t[7 - l];",
        (_PICTURE,), {"size": (16,), "local": (8,)}),
    "by a typedef": ("Picture$ z, int n", "y[n] = at$(z, (int2)(n, 2));", (_PICTURE, i(4)), {}),
    "by a macro": ("PICTURE$ z, int n", "y[n] = at$(z, (int2)(n, 2));", (_PICTURE, i(4)), {}),
}  # fmt: skip
_TYPES = "typedef read_only image2d_t Picture$;\n#define PICTURE$ __read_only image2d_t\n"

# Reads and writes of one image need OpenCL C 2.
_BOTH: dict[str, tuple[str, str, tuple[Any, ...], dict[str, Any]]] = {
    "read and written": (
        "read_write image2d_t z, int n",
        "uint4 v = read_imageui(z, (int2)(n, 2)); write_imageui(z, (int2)(n, 3), v + 1); "
        "y[n] = v.x;", (_PICTURE, i(4)), {}),
    "read and written by items": (
        "read_write image2d_t z, Box$ b",
        "int2 p = (int2)(get_global_id(0), get_global_id(1)); if (p.x < b.w) "
        "write_imageui(z, p, read_imageui(z, p) + (uint4)(b.h)); y[p.x + 8 * p.y] = b.x;",
        (_PICTURE, _BOX), {"size": (8, 6), "local": (4, 3)}),
    "both, only read": ("read_write image2d_t z, int n", "y[n] = read_imageui(z, (int2)(n, 2)).x;",
                        (_PICTURE, i(4)), {}),
    "both, only written": ("read_write image2d_t z, int n",
                           "write_imageui(z, (int2)(n, 3), (uint4)(1, 2, 3, 4)); y[n] = 3;",
                           (_PICTURE, i(4)), {}),
    "both of a block": (
        "read_write image3d_t z, Where$ w",
        "int4 p = (int4)(w.far.xyz, 0); write_imageui(z, p, read_imageui(z, p).wzyx); "
        "y[w.far.z] = 3;", (_BLOCK, _WHERE), {}),
    "both in a helper": (
        "read_write image2d_t z, int n", "turn$(z, (int2)(n, 1)); y[n + 1] = 3;",
        (_PICTURE, i(4)), {}),
    "generic pointer beside an image": (
        "read_only image2d_t z, int n",
        "int t[8]; int *p = (int *)y; if (n > 2) p = t; vstore2((int2)(n, 5), 0, p); "
        "y[vload2(0, p).y] = at$(z, (int2)(n, 2));", (_PICTURE, i(4)), {}),
    "both of pictures": (
        "read_write image2d_array_t z, int n",
        "int4 p = (int4)(1, 2, n, 0); write_imageui(z, p, read_imageui(z, p) ^ 3u); y[n] = 3;",
        (_PICTURES, i(4)), {}),
}  # fmt: skip
_BOTH_HELPERS = (
    "void turn$(read_write image2d_t z, int2 p)\n"
    "{ uint4 v = read_imageui(z, p); write_imageui(z, p.yx, v.wzyx); }\n"
)

TRAPS: list[Trap] = [
    *(around(name, _HELPERS + _TYPES, f"{text}", *args, params=params, **more)
      for name, (params, text, args, more) in _CASES.items()),
    *(around(name, _HELPERS + _BOTH_HELPERS, f"{text}", *args, params=params,
             options=("-cl-std=CL2.0",), **more)
      for name, (params, text, args, more) in _BOTH.items()),
]  # fmt: skip
