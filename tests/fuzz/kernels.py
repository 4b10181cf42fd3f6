"""The kernels of random programs, in OpenCL C and in NumPy, and what they do to their pointers.

All arithmetic is on unsigned integers, which wrap around alike everywhere; what is stored in a
floating-point type is cut to an integer below `views.MODULUS`, so that nothing is ever rounded.
A pool of kernels that is built once has all types; what varies is how they are launched.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.views import MODULUS, TYPES, Host

GROUP = 8
"""Work-items of a group of the kernels that work in groups."""
HEADERS = str(Path(__file__).parent)
"""The folder of what `INCLUDING` includes."""

_BASE = """
kernel void affine(global const uint *x, global uint *y, uint a)
{ size_t i = get_global_id(0); y[i] = x[i] * 3 + a; }

kernel void add(global const uint *x, global uint *y, uint a)
{ size_t i = get_global_id(0); y[i] += a * x[i]; }

kernel void stir(global uint *x, uint a)
{ size_t i = get_global_id(0); x[i] = x[i] * a + (uint)i; }

kernel void fork(global const uint *x, global uint *u, global uint *v, uint a)
{ size_t i = get_global_id(0); u[i] = x[i] ^ a; v[i] += x[i]; }

kernel void flip(global const uint *x, global uint *y, uint n)
{ size_t i = get_global_id(0); y[i] = x[n - 1 - i] + 1; }

kernel void total(global const uint *x, global uint *y, uint n)
{ uint sum = 0; for (uint i = 0; i < n; ++i) sum = sum * 5 + x[i]; y[0] = sum; }

kernel void every(global uint *x, uint step)
{ size_t i = get_global_id(0) * step; x[i] += step; }

kernel void evens(global uint *y, uint a)
{ size_t i = get_global_id(0); if (i % 2 == 0) y[i] = a + (uint)i; }

kernel void slow(global uint *x, uint rounds)
{ uint v = x[0]; for (uint i = 0; i < rounds; ++i) v = v * 1664525u + 1013904223u; x[0] = v; }

kernel void octets(global const uchar *x, global uchar *y, uint a)
{ size_t i = get_global_id(0); y[i] = x[i] * 7 + a; }

kernel void tile(global uint *x, uint pitch, uint a)
{ size_t i = get_global_id(1) * pitch + get_global_id(0); x[i] = x[i] * 3 + a; }

kernel void tiles(global const uint *x, global uint *y, uint x_pitch, uint y_pitch)
{ size_t i = get_global_id(0), j = get_global_id(1); y[j * y_pitch + i] = x[j * x_pitch + i] + 2; }

kernel void within(global uint *x, uint first, uint a)
{ size_t i = first + get_global_id(0); x[i] = x[i] * 5 + a; }

kernel void part(global uint *x, uint a, uint n)
{ size_t i = get_global_id(0); if (i < n) x[i] = x[i] * a + n; }

kernel void pick(global const uint *x, global const uint *at, global uint *y, uint n)
{ size_t i = get_global_id(0); y[i] += x[at[i] % n]; }

kernel void tally(global const uint *x, global uint *y, uint n)
{ atomic_add(y + x[get_global_id(0)] % n, 1u); }

kernel void turn(global const uint *x, global uint *y, local uint *kept, uint a)
{ size_t i = get_global_id(0), l = get_local_id(0), n = get_local_size(0);
  kept[l] = x[i] + a; barrier(CLK_LOCAL_MEM_FENCE); y[i] = kept[n - 1 - l] * 3; }
"""


def _typed(name: str, spelled: str) -> str:
    load, store = "(ulong)(long)x[i]", f"y[i] = ({spelled})(v)"
    if name[0] == "f":
        store = f"y[i] = ({spelled})(v % {MODULUS})"
    old = load.replace("x[", "y[")
    if name == "f2":  # that half is a type of its own cannot be taken for granted
        load, old = (f"(ulong)(long)vload_half(i, {p})" for p in "xy")
        store = f"vstore_half((float)(v % {MODULUS}), i, y)"
    return f"""
kernel void into_{name}(global const uint *x, global {spelled} *y, uint a)
{{ size_t i = get_global_id(0); ulong v = {old} * 5 + x[i] * (ulong)3 + a; {store}; }}

kernel void from_{name}(global const {spelled} *x, global uint *y, uint a)
{{ size_t i = get_global_id(0); y[i] = y[i] * 7 + (uint)({load}) + a; }}
"""


SOURCE = _BASE + "".join(_typed(name, spelled) for name, spelled in TYPES.items())
"""What every driver builds, and the scheduler takes."""

IMAGES = """
constant sampler_t exactly = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
kernel void draw(write_only image2d_t image, uint a)
{ int i = get_global_id(0), j = get_global_id(1);
  write_imageui(image, (int2)(i, j), (uint4)(a * (i + 10 * j + 1))); }
kernel void look(read_only image2d_t image, global uint *y, int row)
{ int i = get_global_id(0); y[i] += read_imageui(image, exactly, (int2)(i, row)).x; }
"""
INCLUDING = '#include "mixed.h"\nkernel void mixed(global uint *x, uint a) { MIXED(x, a); }\n'
KEEPING = """
global uint kept[32];
kernel void forget(global uint *y) { kept[get_global_id(0)] = 0; }
kernel void keep(global uint *y, uint a)
{ size_t i = get_global_id(0); kept[i] = kept[i] * 3 + a + y[i]; y[i] ^= kept[i]; }
"""
"""Variables of the program, where the driver has them."""

MODES: dict[str, tuple[str, ...]] = {
    "affine": ("r", "w"), "add": ("r", "rw"), "stir": ("rw",), "fork": ("r", "w", "rw"),
    "flip": ("r", "w"), "total": ("r", "w"), "every": ("rw",), "evens": ("w",), "slow": ("rw",),
    "octets": ("r", "w"), "tile": ("rw",), "tiles": ("r", "w"), "within": ("rw",),
    "part": ("rw",), "pick": ("r", "r", "rw"), "tally": ("r", "rw"), "turn": ("r", "w"),
    **{f"into_{name}": ("r", "rw") for name in TYPES},
    **{f"from_{name}": ("r", "rw") for name in TYPES},
}  # fmt: skip
"""What each kernel does to its global pointers, and what inference has to find."""

IN_GROUPS = frozenset({"turn"})
"""Kernels whose work-items wait for each other."""
TOGETHER = (
    [name for name in MODES if "_" not in name],
    [name for name in MODES if "_" in name and name[-1] != "8"],
    ["turn", *(name for name in MODES if name[-1] == "8"), "stir", "part", "evens", "tally"],
)
"""Kernels that go into a scheduler on the device, which has no room for all of them."""
UPDATED = {name: "n" if name == "part" else "a" for name in MODES
           if name not in ("flip", "total", "every", "slow", "tiles", "pick", "tally")}  # fmt: skip
"""The last number of each kernel that may become any other one, by its name there."""


def wide(a: int) -> np.uint32:
    """A number as a kernel has it."""
    return np.uint32(a & 0xFFFFFFFF)


def _total(x: Host, y: Host, n: int) -> None:
    value = 0
    for one in x[:n].tolist():
        value = (value * 5 + one) & 0xFFFFFFFF
    y[0] = value


def _slow(x: Host, rounds: int) -> None:
    value = int(x[0])
    for _ in range(rounds):
        value = (value * 1664525 + 1013904223) & 0xFFFFFFFF
    x[0] = value


def _fork(x: Host, u: Host, v: Host, a: int) -> None:
    u[...], v[...] = x ^ wide(a), v + x


def _evens(y: Host, a: int) -> None:
    y[::2] = np.arange(0, len(y), 2, dtype=np.uint32) + wide(a)


def _assign(target: Host, values: Any) -> None:
    target[...] = values


def _part(x: Host, n: int, a: int) -> None:
    x[:n] = x[:n] * wide(a) + wide(n)


def _tally(x: Host, y: Host, n: int) -> None:
    np.add.at(y, x % np.uint32(n), np.uint32(1))


def _turn(x: Host, y: Host, a: int) -> None:
    groups = (x + wide(a)).reshape(-1, GROUP)[:, ::-1]
    y[...] = (groups * np.uint32(3)).reshape(-1)


def unsigned(values: Host) -> Host:
    """Values of any type as a kernel computes with them."""
    return values.astype(np.int64).view(np.uint64)


def _into(x: Host, y: Host, a: int) -> None:
    # NumPy 1 computes an array with a number in the array's type
    found = unsigned(y) * np.uint64(5) + x.astype(np.uint64) * np.uint64(3) + np.uint64(a)
    y[...] = (found % np.uint64(MODULUS) if y.dtype.kind == "f" else found).astype(y.dtype)


def _from(x: Host, y: Host, a: int) -> None:
    y[...] = y * np.uint32(7) + unsigned(x).astype(np.uint32) + wide(a)


NUMPY: dict[str, Callable[..., None]] = {
    "affine": lambda x, y, a: _assign(y, x * np.uint32(3) + wide(a)),
    "add": lambda x, y, a: _assign(y, y + wide(a) * x),
    "stir": lambda x, a: _assign(x, x * wide(a) + np.arange(len(x), dtype=np.uint32)),
    "fork": _fork,
    "flip": lambda x, y, n: _assign(y, x[::-1] + np.uint32(1)),
    "total": _total,
    "every": lambda x, step: _assign(x[::step], x[::step] + np.uint32(step)),
    "evens": _evens,
    "slow": _slow,
    "octets": lambda x, y, a: _assign(y, x * np.uint8(7) + np.uint8(a & 255)),
    "tile": lambda x, a: _assign(x, x * np.uint32(3) + wide(a)),
    "tiles": lambda x, y: _assign(y, x + np.uint32(2)),
    "within": lambda x, a: _assign(x, x * np.uint32(5) + wide(a)),
    "pick": lambda x, at, y, n: _assign(y, y + x[at % np.uint32(n)]),
    "tally": _tally,
    "turn": _turn,
    **{f"into_{name}": _into for name in TYPES},
    **{f"from_{name}": _from for name in TYPES},
}  # fmt: skip


def run_in_numpy(name: str, views: list[Host], numbers: tuple[int, ...]) -> None:
    """What a launch does."""
    if name == "part":
        _part(views[0], numbers[1], numbers[0])
    else:
        NUMPY[name](*views, *(() if name == "tiles" else numbers[-1:]))
