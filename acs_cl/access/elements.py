"""Elements: whether an array's dtype is what a kernel's pointer points to.

Input: a parameter and a dtype. Output: what to write instead, or nothing. Pure.

A kernel may read any bytes as anything, so no call is refused. But `rt.array([1, 2, 3])` has 64-bit
integers, and a kernel that takes `int *` would get other numbers without a word.
"""

from __future__ import annotations

import numpy as np

from ..records import DType
from .scalars import code_of
from .signature import Parameter


def mismatch(parameter: Parameter, dtype: DType) -> str:
    """Say that a kernel's pointer is to other numbers than those of an array. Vectors, structures
    and bytes are for anything, and unsigned words for whatever has their size."""
    code = code_of(parameter.element)
    if code is None or code in "bB" or dtype.kind not in "iuf":
        return ""
    wanted = np.dtype(code)
    is_same = (dtype.kind == "f") == (wanted.kind == "f") or wanted.kind == "u"
    if dtype.itemsize == wanted.itemsize and is_same:
        return ""
    return (
        f"its elements are {dtype}, and the kernel takes their bytes for {wanted}; make the array "
        f"with dtype {wanted.name!r}, or pass x.view({wanted.name!r}) if that is meant"
    )
