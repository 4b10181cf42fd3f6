"""The kernel that copies between views with gaps.

Input: a shape and two sets of strides in bytes. Output: a kernel, its global size and the values to
set. Work-item i copies element i, word by word, between two strided views. Dimensions that can be
merged are merged first.
"""

from __future__ import annotations

import numpy as np

from ..devices.build import build
from ..devices.driver import OwnKernel
from ..errors import UsageError
from .books import Books

DIMENSIONS = 5
"""Dimensions that the kernel can count, after merging."""

_WORDS = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}


def _source(word: str) -> str:
    lengths = "".join(f", long n{d}, long t{d}, long s{d}" for d in range(DIMENSIONS))
    steps = "".join(
        f"    t += (i % n{d}) * t{d}; s += (i % n{d}) * s{d}; i /= n{d};\n"
        for d in range(DIMENSIONS)
    )
    return (
        f"kernel void elements(global {word} *target, global const {word} *source, int words"
        f"{lengths}, long target_start, long source_start)\n"
        "{\n"
        "    long i = get_global_id(0), t = target_start, s = source_start;\n"
        f"{steps}"
        "    for (int w = 0; w < words; ++w)\n"
        "        target[t + w] = source[s + w];\n"
        "}\n"
    )


def element_kernel(
    books: Books,
    unit: int,
    words: int,
    shape: tuple[int, ...],
    target_strides: tuple[int, ...],
    source_strides: tuple[int, ...],
) -> tuple[OwnKernel, tuple[int, ...], list[object]]:
    """Return the kernel, its global size, and all its values except the two offsets (in words of
    `unit` bytes)."""
    rows = merged(shape, target_strides, source_strides)
    if len(rows) > DIMENSIONS:
        raise UsageError(
            f"a view of shape {shape} with gaps in {len(rows)} dimensions: at most {DIMENSIONS}"
        )
    rows += [(1, 0, 0)] * (DIMENSIONS - len(rows))
    values: list[object] = [2, np.int32(words).tobytes()]
    size = 1
    for dimension, (length, target, source) in enumerate(rows):
        size *= length
        numbers = (length, target // unit, source // unit)
        for place, number in enumerate(numbers):
            values += (3 + 3 * dimension + place, np.int64(number).tobytes())
    with books.lock:
        kernel = books.element_copies.get(unit)
        if kernel is None:
            program = build(books.context, books.device, _source(_WORDS[unit]), ())
            kernel = books.element_copies[unit] = OwnKernel(program, "elements")
    return kernel, (size,), values


def merged(
    shape: tuple[int, ...], target: tuple[int, ...], source: tuple[int, ...]
) -> list[tuple[int, int, int]]:
    """Return (length, target stride, source stride), innermost first, merged if both allow it."""
    rows: list[tuple[int, int, int]] = []
    for length, t, s in zip(reversed(shape), reversed(target), reversed(source), strict=True):
        if length == 1:
            continue
        if rows:
            inner, inner_t, inner_s = rows[-1]
            if t == inner * inner_t and s == inner * inner_s:
                rows[-1] = (inner * length, inner_t, inner_s)
                continue
        rows.append((length, t, s))
    return rows
