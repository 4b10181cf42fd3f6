"""Shapes and strides: what NumPy's basic indexing and reshaping do, without memory behind it.

In: an index or a new shape, with the shape and strides (in bytes) it applies to. Out: new ones and
the byte offset.
"""

from __future__ import annotations

from math import prod
from operator import index as as_integer
from typing import Any

from ..errors import UsageError

Shape = tuple[int, ...]


def normal_shape(shape: Any) -> Shape:
    """An integer or a sequence of integers as a tuple; no negative lengths."""
    try:
        result = (
            (as_integer(shape),) if hasattr(shape, "__index__") else tuple(map(as_integer, shape))
        )
    except TypeError:
        raise UsageError(f"shape {shape!r}: expected an integer or integers") from None
    if any(length < 0 for length in result):
        raise UsageError(f"shape {result}: an array cannot have a negative length")
    return result


def contiguous_strides(shape: Shape, itemsize: int) -> Shape:
    """Strides in C order."""
    strides = []
    step = itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= max(1, length)
    return tuple(reversed(strides))


def is_contiguous(shape: Shape, strides: Shape, itemsize: int) -> bool:
    """Whether the elements lie one after another in C order; lengths of 1 do not matter."""
    step = itemsize
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length == 0:
            return True
        if length != 1 and stride != step:
            return False
        step *= length
    return True


def index_view(index: object, shape: Shape, strides: Shape) -> tuple[Shape, Shape, int]:
    """Basic indexing: the view's shape, strides and byte offset."""
    items = index if isinstance(index, tuple) else (index,)
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > len(shape):
        raise UsageError(f"{used} indices into an array of shape {shape}")
    if sum(item is Ellipsis for item in items) > 1:
        raise UsageError("an index can have only one '...'")
    if not any(item is Ellipsis for item in items):
        items = (*items, Ellipsis)
    new_shape: list[int] = []
    new_strides: list[int] = []
    offset = 0
    axis = 0
    for item in items:
        if item is Ellipsis:
            skip = len(shape) - used
            new_shape += shape[axis : axis + skip]
            new_strides += strides[axis : axis + skip]
            axis += skip
        elif item is None:
            new_shape.append(1)
            new_strides.append(0)
        elif isinstance(item, slice):
            length, step, start = _slice(item, shape[axis])
            new_shape.append(length)
            new_strides.append(strides[axis] * step)
            offset += start * strides[axis] if length else 0
            axis += 1
        else:
            offset += _position(item, shape[axis], axis) * strides[axis]
            axis += 1
    return tuple(new_shape), tuple(new_strides), offset


def _slice(item: slice, length: int) -> tuple[int, int, int]:
    """Length, step and start. Unlike NumPy's, an explicit bound beyond the end is an error: a slice
    cut short in silence would be a launch on fewer bytes than its kernel touches."""
    for bound in (item.start, item.stop):
        if bound is not None and not -length <= as_integer(bound) <= length:
            raise UsageError(f"slice {item.start}:{item.stop} is out of bounds for length {length}")
    try:
        start, stop, step = item.indices(length)
    except (TypeError, ValueError) as error:
        raise UsageError(f"slice {item}: {error}") from None
    return len(range(start, stop, step)), step, start


def _position(item: Any, length: int, axis: int) -> int:
    try:
        position = as_integer(item)
    except TypeError:
        raise UsageError(
            f"index {item!r}: views take integers, slices, '...' and None; no masks or lists"
        ) from None
    if not -length <= position < length:
        raise UsageError(f"index {position} is out of bounds for axis {axis} of length {length}")
    return position % length


def reshape_view(shape: Shape, strides: Shape, itemsize: int, wanted: Shape) -> Shape:
    """The new shape, with -1 worked out."""
    if not is_contiguous(shape, strides, itemsize):
        raise UsageError(
            f"a view of shape {shape} that is not contiguous cannot be reshaped in place"
        )
    size = prod(shape)
    unknown = [axis for axis, length in enumerate(wanted) if length == -1]
    known = prod(length for length in wanted if length != -1)
    if len(unknown) == 1 and known and size % known == 0:
        wanted = tuple(size // known if length == -1 else length for length in wanted)
    elif unknown or prod(wanted) != size or any(length < 0 for length in wanted):
        raise UsageError(f"shape {shape} cannot become {wanted}")
    return wanted
