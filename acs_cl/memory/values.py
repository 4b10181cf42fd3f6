"""Values for arrays: from what a program gives to elements of a dtype, without a silent loss.

Input: numbers, lists, NumPy arrays. Output: NumPy arrays. Integers become integers of another kind
if all of them fit. Floats become floats of fewer digits, but not infinite, and no integers. A new
array and one that is set take the same values. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import UsageError, describe
from ..records import DType, HostArray

NUMBERS = "biufc"
"""Kinds of dtypes that are numbers."""
PLAIN = frozenset({bool, int, float})
"""Numbers of Python."""
HOLDERS = np.ndarray, list, tuple
"""What masks may be in."""


def values_of(source: Any, dtype: DType | None = None) -> HostArray:
    """Return what a program gave as an array of NumPy."""
    masked = _masked(source)
    if masked is not None:  # NumPy drops the mask in silence
        raise UsageError(
            f"{describe(masked)} has masked values, and memory of a device has no masks; give "
            "filled(value), and the mask as an array of its own"
        )
    if hasattr(source, "get") and hasattr(source, "dtype") and not hasattr(source, "__array__"):
        raise UsageError(  # such as PyOpenCL's arrays
            f"no values for an array: got {describe(source)}, whose values are on a device; give "
            "what its get() returns"
        )
    if dtype is None and type(source) is bytes:  # NumPy cuts zeros off their end, as of text
        raise UsageError(
            f"no values for an array: got {describe(source)}; write np.frombuffer(values, 'u1')"
        )
    try:
        found = np.asarray(source, dtype=dtype, order="C")
    except UsageError:  # an array on the device
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(f"no values for an array: {describe(source)}: {error}") from None
    if found.dtype == object and not found.ndim and isinstance(source, Iterable):
        raise UsageError(f"no values for an array: got {describe(source)}; make a list of it first")
    return found


def _masked(source: object) -> HostArray | None:
    """Return what has masked values: an array, or one in a list, or in lists of lists."""
    if isinstance(source, np.ndarray):
        if type(source) is np.ndarray:
            return None
        mask = np.asarray(getattr(source, "mask", False))
        if mask.dtype.names:  # of records, with a truth for each field
            mask = np.frombuffer(mask.tobytes(), bool)
        return source if mask.any() else None
    if not isinstance(source, (list, tuple)):
        return None
    kinds = {kind for kind in set(map(type, source)) if issubclass(kind, HOLDERS)}
    found = (_masked(one) for one in source if type(one) in kinds) if kinds else ()
    return next((one for one in found if one is not None), None)


def new_values(source: object, dtype: DType | None) -> HostArray:
    """Return the values of a new array. Without a dtype, NumPy's numbers keep their own, and floats
    of Python become float32, which is OpenCL's default."""
    if dtype is None:
        host = values_of(source)
        is_plain = host.dtype == np.float64 and _is_plain(source)
        if host.dtype == object or (is_plain and host.max(initial=0) >= 2.0**63):
            _refuse_wide_integers(source)
        return converted(host, np.dtype(np.float32)) if is_plain else host
    host = values_for(source, dtype)
    check(host, dtype)
    return converted(host, dtype)


def _refuse_wide_integers(source: object) -> None:
    """Refuse integers beyond int64, of which NumPy makes floats or objects."""
    values = _integers(source)
    if values:
        least, most = min(values), max(values)
        known = "'u8'" if least >= 0 and most < 1 << 64 else "one of floats, such as 'f8'"
        raise UsageError(f"integers from {least} to {most} do not fit int64; name a dtype: {known}")


def _integers(source: object) -> list[int]:
    """Return the values if all are integers of Python, else none."""
    values = list(np.asarray(source, dtype=object).flat)
    return values if all(isinstance(one, int) for one in values) else []


def values_for(source: object, dtype: DType) -> HostArray:
    """Return values for an array of some dtype, before they are converted."""
    if dtype.kind not in NUMBERS and not hasattr(source, "dtype"):
        return values_of(source, dtype)  # such as records, which tuples are for
    host = values_of(source)
    if host.dtype == object:  # such as integers of more than 64 bits
        if any(one is None for one in host.flat):  # NumPy makes NaN of it
            gap = ", such as nan" if dtype.kind in "fc" else ""
            raise UsageError(f"None is no value of dtype {dtype}; write a number{gap}")
        large = values_of(source, np.dtype(np.float64) if dtype.kind in "fc" else dtype)
        host = large if dtype.kind in "fc" else host
    elif (
        host.dtype == np.float64 and dtype.kind in "iu" and _is_plain(source) and _integers(source)
    ):
        return values_of(source, dtype)  # NumPy made floats of integers beyond int64
    return host


def _is_plain(source: object) -> bool:
    """Tell whether no number in a list, or in lists of lists, is NumPy's."""
    if not isinstance(source, (list, tuple)):
        return not hasattr(source, "dtype")
    kinds = set(map(type, source))
    if any(issubclass(kind, (np.generic, np.ndarray)) for kind in kinds):
        return False
    return kinds <= PLAIN or all(_is_plain(one) for one in source if type(one) not in PLAIN)


def check(values: HostArray, dtype: DType) -> None:
    """Refuse values that another dtype cannot hold."""
    if values.dtype == dtype or not values.size:
        return
    if {values.dtype.kind, dtype.kind} <= set("iu"):
        if np.can_cast(values.dtype, dtype, "safe"):
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
    if values.dtype == dtype and values.flags.c_contiguous:
        return values
    try:
        with np.errstate(over="raise"):
            return np.asarray(values, dtype=dtype, order="C")
    except FloatingPointError:
        raise UsageError(
            f"a value of dtype {values.dtype} is too large for {dtype}; use an array of "
            f"{values.dtype}, or write inf"
        ) from None


def zero_of(dtype: DType) -> object:
    """Return the element whose bytes are all 0, for `fill`. The number 0 is another one to texts
    and records."""
    return np.zeros((), dtype)[()]


def element_of(value: Any, dtype: DType) -> HostArray:
    """Return one element for `fill`. Numbers of Python come again and again."""
    if type(value) is int:
        return _element_of(value, dtype)
    if type(value) is float:  # 0.0 is equal to -0.0, and its text is not
        return _element_of(value.hex(), dtype)
    return _new_element(value, dtype)


@lru_cache(256)
def _element_of(number: int | str, dtype: DType) -> HostArray:
    value = float.fromhex(number) if isinstance(number, str) else number
    return _new_element(value, dtype)


def _new_element(value: Any, dtype: DType) -> HostArray:
    try:
        if dtype.kind in "iufc":
            found = values_for(value, dtype)
            check(found, dtype)
            return converted(found, dtype).reshape(1)
        return np.array([value], dtype=dtype).reshape(1)
    except (TypeError, ValueError, OverflowError) as error:
        why = f": {error}" if isinstance(error, UsageError) else ""
        raise UsageError(f"fill({describe(value)}): not one value of dtype {dtype}{why}") from None
