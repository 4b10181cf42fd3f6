"""Built-in functions that return whole numbers which an outline can compute.

Input: a function's name, the type of its result, and the types and values of its arguments. Output:
an operation of the outline, or None for a function that is not one of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from acs_cl.opencl_c.modes.values import has_effect
from acs_cl.opencl_c.outlines import Made
from acs_cl.opencl_c.parse import nodes as n

Compute: TypeAlias = Callable[[int, Sequence[Made]], Made]

QUERIES = frozenset(
    {"get_global_id", "get_local_id", "get_group_id", "get_global_size", "get_local_size",
     "get_num_groups", "get_global_offset", "get_enqueued_local_size", "get_work_dim"}
)  # fmt: skip
"""Functions that return where a work-item is, or sizes of the launch."""
IMAGE_SIZES = {
    f"get_image_{name}": part.offset
    for name, part in zip(("width", "height", "depth", "array_size"), n.IMAGE_PARTS, strict=True)
}
"""Functions that return a size of an image, and which of its numbers that is."""
_LINEAR = {
    "get_global_linear_id": ("get_global_id", "get_global_offset", "get_global_size"),
    "get_local_linear_id": ("get_local_id", "", "get_local_size"),
}
_CONVERTS = re.compile(r"(convert|as)_u?(char|short|int|long)\d*(_rt[ezpn])?$")
_OF_ALIKE: dict[tuple[str, int], Compute] = {
    ("min", 2): lambda kind, values: ["mm", "min", kind, *values],
    ("max", 2): lambda kind, values: ["mm", "max", kind, *values],
    ("clamp", 3): lambda kind, values: ["clamp", kind, *values],
    ("mul24", 2): lambda kind, values: ["24", kind, *values],
    ("mad24", 3): lambda kind, values: ["b", "+", kind, ["24", kind, *values[:2]], values[2]],
}
"""By name and number of arguments, which have the type of the result. Of vectors these functions do
the same to each component."""


def of_alike(name: str, count: int) -> Compute | None:
    """Return how to compute a function whose arguments have the type of its result."""
    return _OF_ALIKE.get((name, count))


def is_conversion(name: str) -> bool:
    """Tell whether a function only converts integers, or vectors of them by component."""
    return bool(_CONVERTS.match(name))


def converted(kind: int, of: int, value: Made) -> Made:
    """Return an integer of one type as another."""
    return value if of == kind else ["c", kind, value]


def of_one(name: str, kind: int, of: int, value: Made) -> Made | None:
    """Return the result for one integer, whose type need not be that of the result."""
    if is_conversion(name):
        return converted(kind, of, value)
    if name == "abs" and not has_effect(value):
        is_up = ["cmp", ">=", value, ["k", 0]]
        found = ["c", kind, ["?:", is_up, value, ["neg", 64, value]]]
        if of < 32:
            return found
        # The least number has no counterpart in its type. Of what is made of that, drivers differ.
        is_least = ["cmp", "==", value, ["k", -(1 << of - 1)]]
        return ["?:", is_least, ["?", kind], found]
    return None


def linear(name: str) -> Made | None:
    """Return a work-item's number as if there were one axis."""
    if name not in _LINEAR:
        return None
    number, offset, size = _LINEAR[name]
    found: Made = ["k", 0]
    for axis in (2, 1, 0):
        own = _query(number, axis)
        if offset:
            own = ["b", "-", -64, own, _query(offset, axis)]
        found = ["b", "+", -64, ["b", "*", -64, found, _query(size, axis)], own]
    return found


def _query(name: str, axis: int) -> Made:
    return ["q", name, ["k", axis], -64]
