"""The kernels of mixed programs: in OpenCL C, in NumPy, and which elements they touch.

In: a name. Out: `KERNELS[name]`. `lengths(o, n, m, k)` is how many elements each argument needs for
work-items o to o + n, m rows of them, and numbers k. `reach` gives slices that are surely read and
surely written, of views or of masks with the same layout. `run` computes on NumPy views.

All numbers are unsigned and wrap, so that host and device compute the same bits.
"""

# Long because: a kernel, its meaning and its reach are read side by side.

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Host = np.ndarray[Any, Any]
GROUP = 8

HOW = np.dtype(
    {"names": ["first", "count", "by", "at"], "formats": ["i4", "i4", "u2", ("i4", 2)],
     "offsets": [0, 4, 8, 16], "itemsize": 24}
)  # fmt: skip
PART = np.dtype(
    {"names": ["a", "b", "c", "d", "e"], "formats": ["u4", "u2", "u2", ("u1", 4), "u4"],
     "offsets": [0, 4, 6, 8, 12], "itemsize": 16}
)  # fmt: skip

SOURCE = """
typedef struct { int first; int count; ushort by; int2 at; } How;
typedef struct { uint a; ushort b, c; uchar d[4]; uint e; } Part;

kernel void blend(global const uint *x, global uint *y, uint a)
{ size_t i = get_global_id(0); y[i] = y[i] * 5u + x[i] + a; }
kernel void put(global uint *y, uint a)
{ size_t i = get_global_id(0); y[i] = a + (uint)i * 7u; }
kernel void stir(global uint *x, uint a)
{ size_t i = get_global_id(0); x[i] = x[i] * 3u + a; }
kernel void fork(global const uint *x, global uint *u, global uint *v, uint a)
{ size_t i = get_global_id(0); u[i] = x[i] ^ a; v[i] += x[i]; }
kernel void octets(global const uchar *x, global uchar *y, uint a)
{ size_t i = get_global_id(0); y[i] = x[i] * 7 + a; }
kernel void shorts(global ushort *x, global const uchar *y, uint a)
{ size_t i = get_global_id(0); x[i] = x[i] * 3 + y[2 * i] + a; }
kernel void longs(global ulong *x, global const uint *y, ulong a)
{ size_t i = get_global_id(0); x[i] = x[i] * 5 + y[2 * i + 1] + a; }
kernel void signs(global const short *x, global short *y, int a)
{ int i = get_global_id(0); y[i] = (short)((x[i] >> 1) ^ a); }
kernel void reals(global const uint *x, global float *y, float f)
{ int i = get_global_id(0); y[i] = (float)(x[i] & 1023u) * f; }
kernel void ruled(global const uint *x, global uint *y, How k)
{ int i = get_global_id(0); if (i >= k.count) return;
  y[k.first + i * k.by] += x[k.at.x + i] + (uint)k.at.y; }
kernel void boxed(global uint *y, int4 box, uint pitch, uint a)
{ int c = box.x + (int)get_global_id(0), r = box.y + (int)get_global_id(1);
  if (c < box.z && r < box.w) y[r * (int)pitch + c] = y[r * (int)pitch + c] * 3u + a; }
kernel void rows(global const uint *x, global uint *y, int n, int pitch)
{ int i = get_global_id(0); global const uint *p = x + i * pitch; uint sum = 0;
  for (int j = 0; j < n; ++j) sum = sum * 3u + *p++;
  y[i * pitch] += sum; }
kernel void down(global const uint *x, global uint *y, int n, int pitch)
{ int i = get_global_id(0); uint sum = 0; int j = n;
  while (j-- > 0) sum = sum * 3u + x[j * pitch + i];
  y[i] ^= sum; }
kernel void tile(global uint *x, uint pitch, uint a)
{ size_t i = get_global_id(1) * pitch + get_global_id(0); x[i] = x[i] * 3u + a; }
kernel void tiles(global const uint *x, global uint *y, uint xp, uint yp)
{ size_t i = get_global_id(0), j = get_global_id(1); y[j * yp + i] = x[j * xp + i] + 2u; }
kernel void bits(global const uchar *x, global uint *y)
{ int i = get_global_id(0); y[i] = y[i] << 1 | ((x[i >> 3] >> (i & 7)) & 1u); }
kernel void fields(global uint *x, int shift, int width, uint a)
{ size_t i = get_global_id(0); uint mask = ((1u << width) - 1u) << shift;
  x[i] = (x[i] & ~mask) | ((a << shift) & mask); }
kernel void parts(global Part *p, uint v)
{ int i = get_global_id(0); p[i].b += (ushort)(p[i].a + v); p[i].d[1] = (uchar)v; }
kernel void quads(global const uint4 *x, global uint4 *y, uint a)
{ size_t i = get_global_id(0); y[i] = x[i].wzyx + y[i] * a; }
kernel void turn(global const uint *x, global uint *y, uint a)
{ local uint kept[8]; size_t i = get_global_id(0), l = get_local_id(0);
  kept[l] = x[i] + a; barrier(CLK_LOCAL_MEM_FENCE); y[i] = kept[7 - l] * 3u; }
kernel void pick(global const uint *x, global const uint *at, global uint *y, uint n)
{ size_t i = get_global_id(0); y[i] += x[at[i] % n]; }
kernel void tally(global const uint *x, global uint *y, uint n)
{ atomic_add(y + x[get_global_id(0)] % n, 1u); }
kernel void slow(global uint *x, uint turns)
{ uint v = x[0]; for (uint i = 0; i < turns; ++i) v = v * 1664525u + 1013904223u; x[0] = v; }
kernel void within(global uint *x, uint first, uint a)
{ size_t i = first + get_global_id(0); x[i] = x[i] * 5u + a; }
kernel void over(global uint *x, uint first, uint a)
{ size_t i = first + get_global_id(0); x[i] = a * (uint)(i - first + 1); }
kernel void flag(global const uint *x, global uint *go, uint a)
{ go[0] = (x[0] >> (a & 31u)) & 1u; }
kernel void tell(global const uint *x, global uint *count, uint most)
{ count[0] = (x[0] >> 3) % (most + 1u); }
kernel void decide(global const uint *x, global uint *state, global uint *go, uint most)
{ state[0] += 1u; go[0] = state[0] % 8u < most && (x[0] & 15u) != 3u; }
"""
SPAWNING = """
#include <acs_spawn.h>
void gift(uint item, global uint *y, uint n, uint from)
{ atomic_add(&y[(from * 5u + item) % n], from + item + 1u); }
kernel void give(global const uint *x, global uint *y, uint n)
{ uint i = get_global_id(0), many = x[i] & 15u; ACS_SPAWN(gift, many, y, n, i); }
"""

Reach = tuple[list[Any], list[Any]]
TURNS = [1, 9, 300, 3000, 100_000, 100_000, 1_000_000]
"""Of a kernel that takes long."""
FEWER_TURNS = {"rusticl": 60_000}
"""{platform: after how many it leaves a loop}. llvmpipe does after 65,535."""


class Kernel(NamedTuple):
    """One kernel. `views`: a dtype and a mode for each array. `numbers`: names, and how they are
    drawn. `plain`: item i touches element i alone, so that offsets, counts and bands are welcome.
    """

    views: tuple[tuple[str, str], ...]
    numbers: Callable[[random.Random, int, int], tuple[Any, ...]]
    names: tuple[str, ...]
    lengths: Callable[[int, int, int, Any], tuple[int, ...]]
    reach: Callable[[Any, int, int, int, Any], Reach]
    run: Callable[[Any, int, int, int, Any], None]
    plain: bool = False
    axes: int = 1
    items: int = 0
    """Work-items, where there is no choice."""
    group: int = 0
    whole: bool = False
    """It is given all of an array, and its first view is what it touches of it."""


def _u(value: int) -> Any:
    return np.uint32(value & 0xFFFFFFFF)


def _one(chance: random.Random, n: int, m: int) -> tuple[Any, ...]:
    return (chance.randrange(1000),)


def _none(chance: random.Random, n: int, m: int) -> tuple[Any, ...]:
    return ()


def _flat(modes: str) -> Callable[..., Reach]:
    """Element i of each argument: `r`, `w` or `b` for both."""

    def reach(v: Any, o: int, n: int, m: int, k: Any) -> Reach:
        now = [view[o : o + n] for view in v]
        return (
            [view for view, mode in zip(now, modes, strict=True) if mode in "rb"],
            [view for view, mode in zip(now, modes, strict=True) if mode in "wb"],
        )

    return reach


def _same(count: int) -> Callable[..., tuple[int, ...]]:
    return lambda o, n, m, k: (o + n,) * count


def _simple(
    views: tuple[tuple[str, str], ...],
    run: Callable[..., None],
    numbers: Any = _one,
    names: tuple[str, ...] = ("a",),
    **more: Any,
) -> Kernel:
    modes = "".join("b" if mode == "rw" else mode for _, mode in views)

    def on_slices(v: Any, o: int, n: int, m: int, k: Any) -> None:
        run([view[o : o + n] for view in v], np.arange(o, o + n, dtype=np.uint32), k)

    return Kernel(
        views, numbers, names, _same(len(views)), _flat(modes), on_slices,
        **{"plain": True, **more},
    )  # fmt: skip


def _set(y: Host, values: Any) -> None:
    y[...] = values.astype(y.dtype) if hasattr(values, "astype") else values


def _blend(v: Any, i: Host, k: Any) -> None:
    v[1][...] = v[1] * _u(5) + v[0] + _u(k[0])


def _fork(v: Any, i: Host, k: Any) -> None:
    v[1][...] = v[0] ^ _u(k[0])
    v[2][...] += v[0]


def _turn(v: Any, i: Host, k: Any) -> None:
    v[1][...] = ((v[0] + _u(k[0])).reshape(-1, GROUP)[:, ::-1] * _u(3)).ravel()


def _quads(v: Any, i: Host, k: Any) -> None:
    raise NotImplementedError


def _how(chance: random.Random, n: int, m: int) -> tuple[Any, ...]:
    how = np.zeros((), HOW)
    how["first"], how["count"] = chance.randrange(6), chance.choice([n, n, n - 1, n // 2, 0, n + 3])
    how["by"], how["at"] = chance.choice([1, 1, 2, 3]), [chance.randrange(5), chance.randrange(99)]
    return (how,)


def _ruled_n(n: int, k: Any) -> tuple[int, int, int, int]:
    how = k[0]
    return int(how["first"]), max(0, min(n, int(how["count"]))), int(how["by"]), int(how["at"][0])


def _ruled_lengths(o: int, n: int, m: int, k: Any) -> tuple[int, ...]:
    first, n, by, at = _ruled_n(n, k)
    return at + max(n, 1), first + max(n - 1, 0) * by + 1


def _ruled_reach(v: Any, o: int, n: int, m: int, k: Any) -> Reach:
    first, n, by, at = _ruled_n(n, k)
    y = v[1][first : first + max(0, (n - 1) * by + 1) if n else first : by]
    return [v[0][at : at + n], y], [y]


def _ruled(v: Any, o: int, n: int, m: int, k: Any) -> None:
    (x, y), _ = _ruled_reach(v, o, n, m, k)
    y[...] += x + _u(int(k[0]["at"][1]))


def _box(chance: random.Random, n: int, m: int) -> tuple[Any, ...]:
    x, y = chance.randrange(3), chance.randrange(3)
    right, below = x + chance.choice([n, n, n - 1]), y + chance.choice([m, m, m - 1])
    pitch = x + n + chance.randrange(3)
    return np.array([x, y, right, below], "i4"), pitch, chance.randrange(1000)


def _boxed_reach(v: Any, o: int, n: int, m: int, k: Any) -> Reach:
    (x, y, right, below), pitch, _ = k
    n, m = max(0, min(n, int(right - x))), max(0, min(m, int(below - y)))
    first = int(y * pitch + x)
    rows = [v[0][first + r * pitch : first + r * pitch + n] for r in range(m)]
    return rows, rows


def _boxed(v: Any, o: int, n: int, m: int, k: Any) -> None:
    for row in _boxed_reach(v, o, n, m, k)[0]:
        row[...] = row * _u(3) + _u(k[2])


def _rows_numbers(chance: random.Random, n: int, m: int) -> tuple[Any, ...]:
    width = chance.choice([0, 1, 2, 3, 5])
    return width, max(1, width) + chance.randrange(3)


def _rows_reach(v: Any, o: int, n: int, m: int, k: Any) -> Reach:
    width, pitch = k
    y = v[1][: (n - 1) * pitch + 1 : pitch]
    return [*[v[0][i * pitch : i * pitch + width] for i in range(n)], y], [y]


def _rows(v: Any, o: int, n: int, m: int, k: Any) -> None:
    width, pitch = k
    for i in range(n):
        total = 0
        for value in v[0][i * pitch : i * pitch + width]:
            total = total * 3 + int(value)
        v[1][i * pitch] += _u(total)


def _down_numbers(chance: random.Random, n: int, m: int) -> tuple[Any, ...]:
    return chance.choice([0, 1, 2, 4]), n + chance.randrange(3)


def _down_reach(v: Any, o: int, n: int, m: int, k: Any) -> Reach:
    count, pitch = k
    return [*[v[0][j * pitch : j * pitch + n] for j in range(count)], v[1][:n]], [v[1][:n]]


def _down(v: Any, o: int, n: int, m: int, k: Any) -> None:
    count, pitch = k
    total = np.zeros(n, np.uint32)
    for j in reversed(range(count)):
        total = total * _u(3) + v[0][j * pitch : j * pitch + n]
    v[1][:n] ^= total


def _bits_reach(v: Any, o: int, n: int, m: int, k: Any) -> Reach:
    return [v[0][: (n + 7) // 8], v[1][:n]], [v[1][:n]]


def _bits(v: Any, o: int, n: int, m: int, k: Any) -> None:
    bits = np.unpackbits(np.ascontiguousarray(v[0][: (n + 7) // 8]), bitorder="little")[:n]
    v[1][:n] = (v[1][:n] << _u(1)) | bits


def _fields(v: Any, i: Host, k: Any) -> None:
    shift, width, a = k
    mask = ((1 << width) - 1) << shift
    v[0][...] = (v[0] & _u(~mask)) | _u((a << shift) & mask)


def _field_numbers(chance: random.Random, n: int, m: int) -> tuple[Any, ...]:
    return chance.randrange(20), chance.randrange(1, 10), chance.randrange(1 << 12)


def _parts_of(view: Any, n: int) -> Any:
    return view[: 4 * n].view(PART)


def _parts_reach(v: Any, o: int, n: int, m: int, k: Any) -> Reach:
    p = _parts_of(v[0], n)
    return [p["a"], p["b"]], [p["b"], p["d"][:, 1]]


def _parts(v: Any, o: int, n: int, m: int, k: Any) -> None:
    p = _parts_of(v[0], n)
    p["b"] += (p["a"] + _u(k[0])).astype(np.uint16)
    p["d"][:, 1] = k[0] & 255


def _quads_reach(v: Any, o: int, n: int, m: int, k: Any) -> Reach:
    x, y = (view[4 * o : 4 * (o + n)] for view in v)
    return [x, y], [y]


def _quads_run(v: Any, o: int, n: int, m: int, k: Any) -> None:
    (x, y), _ = _quads_reach(v, o, n, m, k)
    y[...] = x.reshape(-1, 4)[:, ::-1].ravel() + y * _u(k[0])


def _two_reach(v: Any, o: int, n: int, m: int, k: Any) -> Reach:
    """`shorts` and `longs`: every other element of the second argument."""
    first = 1 if v[1].dtype.itemsize == 4 else 0
    x = v[0][o : o + n]
    return [x, v[1][2 * o + first : 2 * (o + n) + first : 2]], [x]


def _shorts(v: Any, o: int, n: int, m: int, k: Any) -> None:
    (x, y), _ = _two_reach(v, o, n, m, k)
    _set(x, x.astype(np.uint64) * np.uint64(3) + y + np.uint64(k[0]))


def _longs(v: Any, o: int, n: int, m: int, k: Any) -> None:
    (x, y), _ = _two_reach(v, o, n, m, k)
    x[...] = x * np.uint64(5) + y.astype(np.uint64) + np.uint64(k[0])


def _pick_reach(v: Any, o: int, n: int, m: int, k: Any) -> Reach:
    return [v[1][:n], v[2][:n]], [v[2][:n]]


def _pick(v: Any, o: int, n: int, m: int, k: Any) -> None:
    v[2][:n] += v[0][v[1][:n] % _u(k[0])]


def _tally_reach(v: Any, o: int, n: int, m: int, k: Any) -> Reach:
    return [v[0][:n]], [v[1][:0]]


def _tally(v: Any, o: int, n: int, m: int, k: Any) -> None:
    np.add.at(v[1], v[0][:n] % _u(k[0]), _u(1))


def _slow(v: Any, i: Host, k: Any) -> None:
    by, more = 1, 0  # of the turns so far: value * by + more
    for bit in f"{k[0]:b}":
        by, more = by * by, more * by + more
        if bit == "1":
            by, more = by * 1664525, more * 1664525 + 1013904223
        by, more = by & 0xFFFFFFFF, more & 0xFFFFFFFF
    v[0][0] = _u(int(v[0][0]) * by + more)


def _give(v: Any, o: int, n: int, m: int, k: Any) -> None:
    for i in range(n):
        for item in range(int(v[0][i]) & 15):
            v[1][(i * 5 + item) % k[0]] += _u(i + item + 1)


def _decide(v: Any, i: Host, k: Any) -> None:
    v[1][...] += _u(1)
    v[2][...] = int(v[1][0]) % 8 < k[0] and int(v[0][0]) & 15 != 3


def _tile_reach(v: Any, o: int, n: int, m: int, k: Any) -> Reach:
    """Of views of two axes."""
    return [view[:m, :n] for view in v], [v[-1][:m, :n]]


def _tile(v: Any, o: int, n: int, m: int, k: Any) -> None:
    v[0][:m, :n] = v[0][:m, :n] * _u(3) + _u(k[1])


def _tiles(v: Any, o: int, n: int, m: int, k: Any) -> None:
    v[1][:m, :n] = v[0][:m, :n] + _u(2)


R, W, B = ("u4", "r"), ("u4", "w"), ("u4", "rw")
KERNELS: dict[str, Kernel] = {
    "blend": _simple((R, B), _blend),
    "put": _simple((W,), lambda v, i, k: _set(v[0], i * _u(7) + _u(k[0]))),
    "stir": _simple((B,), lambda v, i, k: _set(v[0], v[0] * _u(3) + _u(k[0]))),
    "fork": _simple((R, W, B), _fork),
    "octets": _simple(
        (("u1", "r"), ("u1", "w")),
        lambda v, i, k: _set(v[1], v[0].astype(np.uint32) * _u(7) + _u(k[0])),
    ),
    "shorts": Kernel(
        (("u2", "rw"), ("u1", "r")), _one, ("a",), lambda o, n, m, k: (o + n, 2 * (o + n)),
        _two_reach, _shorts, plain=True,
    ),
    "longs": Kernel(
        (("u8", "rw"), R), _one, ("a",), lambda o, n, m, k: (o + n, 2 * (o + n)),
        _two_reach, _longs, plain=True,
    ),
    "signs": _simple(
        (("i2", "r"), ("i2", "w")),
        lambda v, i, k: _set(v[1], (v[0].astype(np.int32) >> 1) ^ np.int32(k[0])),
    ),
    "reals": _simple(
        (R, ("f4", "w")), lambda v, i, k: _set(v[1], (v[0] & _u(1023)) * np.float64(k[0])),
        lambda chance, n, m: (float(chance.randrange(-9, 99)),), ("f",),
    ),
    "ruled": Kernel((R, B), _how, ("k",), _ruled_lengths, _ruled_reach, _ruled),
    "boxed": Kernel(
        (B,), _box, ("box", "pitch", "a"),
        lambda o, n, m, k: (int((k[0][1] + m - 1) * k[1] + k[0][0] + n),), _boxed_reach, _boxed,
        axes=2,
    ),
    "rows": Kernel(
        (R, B), _rows_numbers, ("n", "pitch"),
        lambda o, n, m, k: ((n - 1) * k[1] + max(1, k[0]), (n - 1) * k[1] + 1), _rows_reach, _rows,
    ),
    "down": Kernel(
        (R, B), _down_numbers, ("n", "pitch"),
        lambda o, n, m, k: (max(0, k[0] - 1) * k[1] + n, n), _down_reach, _down,
    ),
    "tile": Kernel((B,), lambda c, n, m: (0, c.randrange(1000)), ("pitch", "a"),
                   lambda o, n, m, k: (0,), _tile_reach, _tile, axes=2),
    "tiles": Kernel((R, W), lambda c, n, m: (0, 0), ("xp", "yp"), lambda o, n, m, k: (0, 0),
                    lambda v, o, n, m, k: ([v[0][:m, :n]], [v[1][:m, :n]]), _tiles, axes=2),
    "bits": Kernel((("u1", "r"), B), _none, (), lambda o, n, m, k: ((n + 7) // 8, n), _bits_reach,
                   _bits),
    "fields": _simple((B,), _fields, _field_numbers, ("shift", "width", "a")),
    "parts": Kernel((B,), _one, ("v",), lambda o, n, m, k: (4 * n,), _parts_reach, _parts),
    "quads": Kernel((R, B), _one, ("a",), lambda o, n, m, k: (4 * (o + n),) * 2, _quads_reach,
                    _quads_run, plain=True),
    "turn": _simple((R, W), _turn, group=GROUP, plain=False),
    "pick": Kernel((R, R, B), lambda c, n, m: (c.randrange(1, 20),), ("n",),
                   lambda o, n, m, k: (k[0], n, n), _pick_reach, _pick),
    "tally": Kernel((R, B), lambda c, n, m: (c.randrange(1, 20),), ("n",),
                    lambda o, n, m, k: (n, k[0]), _tally_reach, _tally),
    "slow": _simple((B,), _slow, lambda c, n, m: (c.choice(TURNS),), ("turns",), items=1,
                    plain=False),
    "within": _simple((B,), lambda v, i, k: _set(v[0], v[0] * _u(5) + _u(k[1])),
                      lambda c, n, m: (0, c.randrange(1000)), ("first", "a"), plain=False,
                      whole=True),
    "over": _simple((W,), lambda v, i, k: _set(v[0], (i + _u(1)) * _u(k[1])),
                    lambda c, n, m: (0, c.randrange(1000)), ("first", "a"), plain=False,
                    whole=True),
    "flag": _simple((R, W), lambda v, i, k: _set(v[1], (v[0] >> _u(k[0] & 31)) & _u(1)), items=1,
                    plain=False),
    "tell": _simple((R, W), lambda v, i, k: _set(v[1], (v[0] >> _u(3)) % _u(k[0] + 1)),
                    lambda c, n, m: (c.choice([0, 3, 8, 16]),), ("most",), items=1, plain=False),
    "decide": _simple((R, B, W), _decide, lambda c, n, m: (c.randrange(6),), ("most",), items=1,
                      plain=False),
    "give": Kernel((R, B), lambda c, n, m: (c.randrange(1, 24),), ("n",),
                   lambda o, n, m, k: (n, k[0]), _tally_reach, _give),
}  # fmt: skip
CHANGEABLE = {"a", "v", "f", "turns", "k", "box", "shift", "width"}
"""Numbers that may change without a need for other views."""
