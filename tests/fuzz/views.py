"""The arrays of a random program, and views of them, which mean the same for NumPy and acs_cl.

In: small integers. Out: a `View` that any of them stand for. Slots hold one array each. Those
before `BYTES` are of uint32; `BYTES` is seen as uint32 too; the others hold one type each, and are
never seen as another one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Host = np.ndarray[Any, Any]

TYPES = {"i1": "char", "u1": "uchar", "i2": "short", "u2": "ushort", "i4": "int", "i8": "long",
         "u8": "ulong", "f2": "half", "f4": "float", "f8": "double"}  # fmt: skip
"""Of the slots that hold a type of their own; all others there are is uint32."""

WORDS: tuple[tuple[int, ...], ...] = ((96,), (96,), (64,), (8, 12), (8, 12), (40, 30), (500,))
SHAPES = (*WORDS, *[(64,)] * len(TYPES))
BYTES = len(WORDS) - 1
SLOTS = {name: len(WORDS) + index for index, name in enumerate(TYPES)}
"""The slot of each type."""

_DTYPES = [*["u4"] * BYTES, "u1", *TYPES]
LAYOUT = [np.zeros(shape, dtype) for shape, dtype in zip(SHAPES, _DTYPES, strict=True)]
"""Stand-ins for the slots, to find out which views share bytes."""

MODULUS = 1021
"""Floating-point values are integers below it: all arithmetic is exact, in any order."""


class View(NamedTuple):
    """A part of a slot: `kind` says how `numbers` are read."""

    slot: int
    kind: str
    numbers: tuple[int, ...] = ()

    def of(self, array: Any) -> Any:
        """The view of `array`, a NumPy array or one of ours."""
        n = self.numbers
        if self.kind == "flat":  # elements one after another, of BYTES as uint32
            flat = array.reshape(-1)
            if self.slot == BYTES:
                return flat[4 * n[0] : 4 * (n[0] + n[1])].view(np.uint32)
            return flat[n[0] : n[0] + n[1]]
        if self.kind == "bytes":
            flat = array.reshape(-1)
            return (flat if self.slot == BYTES else flat.view(np.uint8))[n[0] : n[0] + n[1]]
        if self.kind == "steps":  # start, how many, step; backwards where that is negative
            flat = array.reshape(-1)
            stop = n[0] + (n[1] - 1) * n[2] + (1 if n[2] > 0 else -1)
            return flat[n[0] : stop if stop >= 0 else None : n[2]]
        if self.kind == "tile":
            return array[n[0] : n[0] + n[2], n[1] : n[1] + n[3]]
        if self.kind == "turned":
            return array.T[n[0] : n[0] + n[2], n[1] : n[1] + n[3]]
        return array

    @property
    def layout(self) -> Host:
        """The view of the slot's stand-in."""
        found: Host = self.of(LAYOUT[self.slot])
        return found


def meet(a: View, b: View) -> bool:
    """Whether two views share a byte."""
    return a.slot == b.slot and bool(np.shares_memory(a.layout, b.layout))


# ---- from small integers to views ----------------------------------------------------------------


def flat_view(slot: int, start: int, length: int) -> View:
    """`length` uint32 elements of a slot, or as many as it has."""
    slot %= len(WORDS)
    count = LAYOUT[slot].nbytes // 4
    length = min(max(1, length), count)
    return View(slot, "flat", (start % (count - length + 1), length))


def typed_view(slot: int, start: int, length: int) -> View:
    """Elements of a slot that has a type of its own."""
    count = LAYOUT[slot].size
    length = min(max(1, length), count)
    return View(slot, "flat", (start % (count - length + 1), length))


def byte_view(slot: int, start: int, length: int) -> View:
    """Bytes at any offset."""
    slot %= len(WORDS)
    count = LAYOUT[slot].nbytes
    length = min(max(1, length), count)
    return View(slot, "bytes", (start % (count - length + 1), length))


def step_view(slot: int, start: int, length: int, step: int) -> View:
    """Every `step`-th element, forwards or backwards."""
    slot = slot % (len(SHAPES) - 1)
    slot += slot >= BYTES
    count = LAYOUT[slot].size
    stride = abs(step) % 5 + 1
    length = min(max(1, length), (count - 1) // stride + 1)
    first = start % (count - (length - 1) * stride)
    if step < 0:
        return View(slot, "steps", (first + (length - 1) * stride, length, -stride))
    return View(slot, "steps", (first, length, stride))


MATRICES = [slot for slot, shape in enumerate(SHAPES) if len(shape) == 2]


def tile_view(slot: int, row: int, column: int, rows: int, columns: int, turned: bool) -> View:
    """A tile of a matrix, or of its transpose."""
    slot = MATRICES[slot % len(MATRICES)]
    height, width = LAYOUT[slot].shape
    if turned:
        height, width = width, height
    rows, columns = min(max(1, rows), height), min(max(1, columns), width)
    numbers = (row % (height - rows + 1), column % (width - columns + 1), rows, columns)
    return View(slot, "turned" if turned else "tile", numbers)


def any_view(choice: int, slot: int, start: int, length: int, step: int) -> View:
    """A view of any kind, for transfers."""
    kind = choice % 7
    if kind == 0:
        return View(slot % len(SHAPES), "whole")
    if kind == 1:
        return flat_view(slot, start, length)
    if kind == 2:
        return byte_view(slot, start, length)
    if kind == 3:
        return step_view(slot, start, length, step - 128)
    if kind == 4:
        return typed_view(len(WORDS) + slot % len(TYPES), start, length)
    return tile_view(slot, start, step, length % 5 + 1, length % 4 + 1, kind == 6)


def values(seed: int, shape: tuple[int, ...], dtype: Any) -> Host:
    """Values that look random and are the same everywhere."""
    count = int(np.prod(shape))
    mixed = (np.arange(count, dtype=np.uint64) + np.uint64(seed)) * np.uint64(2654435761)
    mixed >>= np.uint64(7)
    if np.dtype(dtype).kind == "f":
        mixed %= np.uint64(MODULUS)
    return mixed.astype(dtype).reshape(shape)
