"""Values for arrays: from what a program gives to elements of a dtype, without a silent loss.

Input: numbers, lists, NumPy arrays. Output: NumPy arrays. Integers become integers of another kind
if all of them fit. Floats become floats of fewer digits, but not infinite. Pure.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import UsageError, describe
from ..records import DType, HostArray


def values_of(source: Any, dtype: DType | None = None) -> HostArray:
    """Return what a program gave as an array of NumPy."""
    try:
        return np.asarray(source, dtype=dtype, order="C")
    except UsageError:  # an array on the device
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(f"no values for an array: {describe(source)}: {error}") from None


def check(values: HostArray, dtype: DType) -> None:
    """Refuse values that another dtype cannot hold."""
    if values.dtype == dtype:
        return
    if {values.dtype.kind, dtype.kind} <= set("iu"):
        if np.can_cast(values.dtype, dtype, "safe") or not values.size:
            return
        least, most, holds = int(values.min()), int(values.max()), np.iinfo(dtype)
        if least < holds.min or most > holds.max:
            wrong = least if least < holds.min else most
            raise UsageError(
                f"value {wrong} does not fit {dtype}, which holds {holds.min} to {holds.max}"
            )
    elif not np.can_cast(values.dtype, dtype, "same_kind"):
        raise UsageError(
            f"values of dtype {values.dtype} cannot become {dtype} safely; convert them "
            f"first, with .astype({dtype.name!r})"
        )


def converted(values: HostArray, dtype: DType) -> HostArray:
    """Convert values that were checked. A number that would become infinite is an error."""
    if values.dtype == dtype:
        return np.ascontiguousarray(values)
    try:
        with np.errstate(over="raise"):
            return np.ascontiguousarray(values, dtype=dtype)
    except FloatingPointError:
        raise UsageError(
            f"a value of dtype {values.dtype} is too large for {dtype}; use an array of "
            f"{values.dtype}, or write inf"
        ) from None


def element_of(value: Any, dtype: DType) -> HostArray:
    """Return one element for `fill`."""
    try:
        found = np.asarray(value)
        if dtype.kind in "iufc":
            check(found, dtype)
            return converted(found, dtype).reshape(1)
        return np.array([value], dtype=dtype).reshape(1)
    except (TypeError, ValueError, OverflowError) as error:
        why = f": {error}" if isinstance(error, UsageError) else ""
        raise UsageError(f"fill({describe(value)}): not one value of dtype {dtype}{why}") from None
