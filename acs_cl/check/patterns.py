"""Patterns: other values for bytes whose values should not matter.

Input: bytes, and the kind of their elements ('f4', 'i8', …). Output: as many bytes. Pure.

A kernel that wrongly reads such a byte may use it as an index, a length or an offset. So other
values are small, or come from elsewhere in the same memory. Invariant: no element of `swapped` or
`marked` equals the one it replaces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..records import DType

Bytes = npt.NDArray[np.uint8]

ONES = {"f2": 0x3C00, "f4": 0x3F800000, "f8": 0x3FF0000000000000}
"""The bits of 1.0."""

MARKS = 7
"""`marked` uses this many values, from 2 on."""


def kind_of(dtype: DType) -> str:
    """Return the kind of a dtype's elements, for these functions."""
    size = dtype.itemsize
    if dtype.kind == "c":
        return f"f{size // 2}"
    if dtype.kind == "f" and size in (2, 4, 8):
        return f"f{size}"
    return f"i{size}" if dtype.kind in "iub" and size in (1, 2, 4, 8) else "i4"


def kind_of_element(element: str, nbytes: int) -> str:
    """Return the kind of an OpenCL type, such as 'float4'."""
    scalar = element.split()[-1].rstrip("0123456789") if element else ""
    sizes = {"float": "f4", "double": "f8", "half": "f2", "char": "i1", "uchar": "i1",
             "bool": "i1", "short": "i2", "ushort": "i2", "long": "i8", "ulong": "i8",
             "int": "i4", "uint": "i4"}  # fmt: skip
    return sizes.get(scalar, f"i{nbytes}" if nbytes in (1, 2, 8) else "i4")


def word(kind: str) -> int:
    """Return the bytes of an element."""
    return int(kind[1])


def _split(values: Bytes, kind: str) -> tuple[npt.NDArray[Any], Bytes]:
    """Return the whole elements as unsigned numbers, and the bytes after them."""
    size = word(kind)
    whole = len(values) // size * size
    return values[:whole].view(f"u{size}"), values[whole:]


def _joined(words: npt.NDArray[Any], rest: Bytes) -> Bytes:
    body: Bytes = np.ascontiguousarray(words).view(np.uint8)
    return np.concatenate((body, rest)) if len(rest) else body


def swapped(values: Bytes, kind: str) -> Bytes:
    """Replace zeros by ones, and all other elements by zero."""
    words, rest = _split(values, kind)
    one = words.dtype.type(ONES.get(kind, 1))
    return _joined((words == 0) * one, (rest == 0).astype(np.uint8))


def marked(values: Bytes, kind: str) -> Bytes:
    """Number the elements two, three, four, … by place, so that they look like no copy."""
    words, rest = _split(values, kind)
    size = word(kind)
    numbers = 2 + np.arange(len(words)) % MARKS
    if kind in ONES:
        new: Any = numbers.astype(kind)
        new[new.view(words.dtype) == words] += 0.5
        new = new.view(words.dtype)
    else:
        new = numbers.astype(f"u{size}")
        new[new == words] += 1
    tail = np.full(len(rest), 2, np.uint8)
    tail[tail == rest] += 1
    return _joined(new, tail)


def rolled(values: Bytes, kind: str) -> Bytes:
    """Replace each element by the previous one, or by one nearby that differs."""
    words, rest = _split(values, kind)
    new = np.roll(words, 1)
    same = new == words
    if same.any():
        new[same] = _split(nudged(values, kind), kind)[0][same]
    return _joined(new, rest ^ np.uint8(1))


def nudged(values: Bytes, kind: str) -> Bytes:
    """Add one to floating point, and flip the lowest bit of integers."""
    words, rest = _split(values, kind)
    if kind in ONES:
        with np.errstate(all="ignore"):
            new = (words.view(kind) + np.ones(1, kind)).view(words.dtype)
        new = np.where(new == words, words ^ words.dtype.type(1), new)
    else:
        new = words ^ words.dtype.type(1)
    return _joined(new, rest ^ np.uint8(1))
