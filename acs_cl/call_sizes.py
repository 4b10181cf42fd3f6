"""Sizes of a call, as plain integers.

Input: global size, local size and offset as somebody wrote them: tuples, lists, one integer, or
integers of NumPy. The first length of a global size may be `acs.size`. Output: tuples of Python's
integers, because drivers divide by them, or an error that names what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .access import hints
from .access.called import Called
from .conditions import size
from .errors import UsageError, describe, whole
from .launch.sizes import MOST


def global_size_of(kernel: Called, given: object) -> tuple[Any, ...]:
    """Return a global size. Only its first length may be `acs.size`."""
    return _lengths(kernel, given, "global_size", "global size", decides=True)


def local_size_of(kernel: Called, given: object) -> tuple[int, ...] | None:
    """Return a local size. None: the driver chooses."""
    return None if given is None else _lengths(kernel, given, "local_size", "local size")


def offset_of(kernel: Called, given: object) -> tuple[int, ...] | None:
    """Return a global offset. None: there is none."""
    if given is None:
        return None
    found = integers(given, "offset", kernel.name)
    if not found or any(type(one) is size for one in found):
        raise UsageError(f"{kernel.label()}: offset {given!r}: it takes one to three integers")
    if any(not 0 <= one <= MOST for one in found):
        raise UsageError(
            f"{kernel.label()}: offset {found}: each number is at least 0, and below 2**64"
        )
    return found


def _lengths(
    kernel: Called, given: object, keyword: str, what: str, decides: bool = False
) -> tuple[Any, ...]:
    lengths = given if type(given) is tuple else integers(given, keyword, kernel.name)
    for length in lengths:
        if length.__class__ is not int or not 0 < length <= MOST:
            return tuple(
                _length(kernel, lengths, one, what, decides and not index)
                for index, one in enumerate(lengths)
            )
    return lengths


def _length(
    kernel: Called, lengths: tuple[object, ...], length: object, what: str, decides: bool
) -> Any:
    """Return a length that is not plain. `decides`: it may be `acs.size`."""
    if type(length) is size:
        if decides:
            return length
        raise UsageError(
            f"{kernel.label()}: {what} {lengths}: only the first length of a global size can be "
            "acs.size"
        )
    try:
        plain = _whole(length)
    except (AttributeError, TypeError):
        hint = "; // divides integers" if isinstance(length, float) else ""
        raise UsageError(
            f"{kernel.label()}: {what} {lengths}: every length is an integer, got "
            f"{describe(length)}{hint}"
        ) from None
    if plain < 1:
        raise UsageError(f"{kernel.label()}: {what} {lengths}: every length is at least 1")
    if plain > MOST:
        raise UsageError(f"{kernel.label()}: {what} {lengths}: a length has 64 bits at most")
    return plain


def integers(value: object, what: str, kernel: str) -> tuple[Any, ...]:
    """Return one integer or several as a tuple, in which `acs.size` is left as it is."""
    try:
        if type(value) is size:
            return (value,)  # `Deciding` puts its bound there
        if (one := whole(value)) is not None:
            return (one,)
        if not isinstance(value, Iterable):
            raise TypeError
        return tuple(one if type(one) is size else _whole(one) for one in value)
    except (TypeError, AttributeError):
        raise UsageError(
            f"kernel {kernel!r}: {what} takes one to three integers, "
            f"got {describe(value)}{hints.of_sizes(value, what)}"
        ) from None


def _whole(number: object) -> int:
    """Convert an integer of Python, NumPy or others. A bool is none."""
    found = whole(number)
    if found is None:
        raise TypeError
    return found
