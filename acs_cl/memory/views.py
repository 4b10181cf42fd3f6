"""Shapes and strides: NumPy's basic indexing and reshaping, without memory behind it.

Input: an index or a new shape, with the shape and strides (in bytes) that it applies to. Output:
new ones and the byte offset.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from operator import index as as_integer
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core import native
from ..errors import UsageError, whole
from ..records import DType

Shape = tuple[int, ...]


def integers(shape: Any) -> Shape:
    """Return an integer or some integers as a tuple."""
    one = whole(shape)
    if one is not None:
        return (one,)
    try:
        if isinstance(shape, Iterable):
            return tuple(map(as_integer, shape))
    except TypeError:  # of one of them
        pass
    raise UsageError(f"shape {shape!r}: expected an integer or integers")


def normal_shape(shape: Any) -> Shape:
    """Return an integer or some integers as a tuple. Negative lengths are refused."""
    result = integers(shape)
    if any(length < 0 for length in result):
        raise UsageError(f"shape {result}: an array cannot have a negative length")
    return result


def normal_dtype(dtype: npt.DTypeLike) -> DType:
    """Return a type of elements as NumPy has it. None is float32, which is OpenCL's default.
    Python objects are refused."""
    try:
        result = np.dtype(np.float32 if dtype is None else dtype)
    except (TypeError, ValueError) as error:
        hint = "name one of NumPy's, such as 'f4' or np.int32"
        if isinstance(dtype, int):
            hint += "; the lengths of a shape go in a tuple"
        raise UsageError(f"dtype {dtype!r}: {error}; {hint}") from None
    if result.subdtype is not None:
        raise UsageError(f"dtype {dtype!r}: elements are no arrays; give the array more dimensions")
    if not result.itemsize:
        raise UsageError(f"dtype {dtype!r}: its elements have no bytes")
    if result.hasobject:
        raise UsageError(f"dtype {result}: Python objects cannot live on a device")
    if result.kind == "U":
        raise UsageError(
            f"dtype {result}: OpenCL C has no text; pass its bytes, as np.frombuffer(…, 'u1')"
        )
    if not result.isnative:
        other = "" if result.names else f"name {result.str[1:]!r}, or "
        raise UsageError(
            f"dtype {result.str!r}: a kernel would read its bytes in the wrong order; {other}"
            "convert the values first, with values.astype(values.dtype.newbyteorder('='))"
        )
    return result


def contiguous_strides(shape: Shape, itemsize: int) -> Shape:
    """Return strides in C order."""
    strides = []
    step = itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= max(1, length)
    return tuple(reversed(strides))


def is_contiguous(shape: Shape, strides: Shape, itemsize: int) -> bool:
    """Tell whether the elements lie one after another in C order. Lengths of 1 do not matter, and
    of no elements any strides do."""
    if len(shape) == 1:
        return strides[0] == itemsize or shape[0] < 2
    step = itemsize
    if 0 in shape:
        return True
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != step:
            return False
        step *= length
    return True


def index_view(index: object, shape: Shape, strides: Shape) -> tuple[Shape, Shape, int]:
    """Return a view's shape, strides and byte offset, for basic indexing."""
    found = native.index_view(index, shape, strides)
    if found is None:
        items = index if isinstance(index, tuple) else (index,)
        raise UsageError(_refusal(items, shape))
    return found


def _refusal(items: tuple[object, ...], shape: Shape) -> str:
    """Say why these are no index of an array of this shape."""
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > len(shape):
        return f"{used} indices into an array of shape {shape}"
    if sum(item is Ellipsis for item in items) > 1:
        return "an index can have only one '...'"
    axis = 0
    for item in items:
        if item is Ellipsis:
            axis += len(shape) - used
        elif item is not None:
            if isinstance(item, slice):
                why = _of_slice(item, shape[axis])
            else:
                why = _of_position(item, shape[axis], axis)
            if why:
                return why
            axis += 1
    return f"index {items!r} into an array of shape {shape}"


def _of_slice(item: slice, length: int) -> str:
    """Say why a slice is wrong. Unlike with NumPy, a bound beyond the end is an error. A slice cut
    short in silence would be a launch on fewer bytes than its kernel touches."""
    try:
        for bound in (item.start, item.stop):
            if bound is not None and not -length <= as_integer(bound) <= length:
                return f"slice {item.start}:{item.stop} is out of bounds for length {length}"
        item.indices(length)
    except (TypeError, ValueError) as error:
        return f"slice {item.start}:{item.stop}:{item.step}: {error}"
    return ""


def _of_position(item: object, length: int, axis: int) -> str:
    is_bool = isinstance(item, bool) or getattr(item, "dtype", None) == np.bool_
    is_mask = is_bool or getattr(item, "ndim", 0) > 0
    position = None if is_mask else whole(item)
    if position is None:
        field = f"; a field of records is get()[{item!r}]" if isinstance(item, str) else ""
        return (
            f"index {item!r}: views take integers, slices, '...' and None; no masks or lists{field}"
        )
    if not -length <= position < length:
        return f"index {position} is out of bounds for axis {axis} of length {length}"
    return ""


def reshape_view(shape: Shape, strides: Shape, itemsize: int, wanted: Shape) -> Shape:
    """Return the new shape, with -1 worked out."""
    if not is_contiguous(shape, strides, itemsize):
        raise UsageError(
            f"a view of shape {shape} that is not contiguous cannot be reshaped in place; reshape "
            "the whole array before, or copy_from() the view into an array of its own"
        )
    size = prod(shape)
    unknown = [axis for axis, length in enumerate(wanted) if length == -1]
    known = prod(length for length in wanted if length != -1)
    if len(unknown) == 1 and known and size % known == 0:
        wanted = tuple(size // known if length == -1 else length for length in wanted)
    elif unknown or prod(wanted) != size or any(length < 0 for length in wanted):
        raise UsageError(f"shape {shape}, of {size:,} elements, cannot become {wanted}")
    return wanted
