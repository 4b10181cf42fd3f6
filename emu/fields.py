"""Values in the lines of a file, checked before they are used.

Input: a line, or an object of one and a key. Output: a number, a list of launches, spans; or a
`ValueError` with the found and the expected value. The caller adds the line's number.

Invariant: a returned value has its type and its limits, so later code does not check again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from acs_cl.records import EVERYTHING, Span, interval

MOST = (1 << 63) - 1
"""Limit of any number: more nanoseconds or bytes mean a broken file."""


def object_of(line: str) -> dict[str, Any]:
    """Return the object in a line. Each of its keys appears once."""
    try:
        found = json.loads(line, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error}): {line.strip()[:60]!r}") from None
    if not isinstance(found, dict):
        raise ValueError(f"expected an object, got {line.strip()[:60]!r}")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"{next(key for key in keys if keys.count(key) > 1)!r} is there twice")
    return found


def known(found: dict[str, Any], keys: set[str]) -> None:
    """Check that there are no other keys."""
    unknown = sorted(found.keys() - keys)
    if unknown:
        raise ValueError(f"unknown: {', '.join(unknown)}; known are {', '.join(sorted(keys))}")


def one_of(found: dict[str, Any], key: str, values: Sequence[str]) -> str:
    """Return one of some words."""
    value = found.get(key)
    if value not in values:
        raise ValueError(f"'{key}' has to be one of {', '.join(values)}, got {value!r}")
    return str(value)


def text(found: dict[str, Any], key: str) -> str:
    """Return any text."""
    value = found.get(key)
    if not isinstance(value, str):
        raise ValueError(f"'{key}' has to be a text, got {value!r}")
    return value


def number(found: dict[str, Any], key: str) -> int:
    """Return a whole number from 0."""
    value = found.get(key)
    if not _is_number(value):
        raise ValueError(f"'{key}' has to be a whole number from 0, below 2^63, got {value!r}")
    assert isinstance(value, int)
    return value


def launches(found: dict[str, Any], key: str) -> tuple[int, ...]:
    """Return a list of launch numbers; empty by default."""
    values = found.get(key, [])
    if not isinstance(values, list) or not all(map(_is_number, values)):
        raise ValueError(f"'{key}' has to be a list of launch numbers, got {values!r}")
    return tuple(values)


def spans(found: dict[str, Any], key: str) -> tuple[Span, ...]:
    """Return a list of spans; empty by default."""
    values = found.get(key, [])
    if not isinstance(values, list):
        raise ValueError(f"'{key}' has to be a list of spans, got {values!r}")
    return tuple(_span(key, value) for value in values)


def _span(key: str, values: Any) -> Span:
    """Return a span from five numbers, or from [0] for unknown memory."""
    if values == [EVERYTHING]:
        return interval(EVERYTHING, 0, 1)
    if not isinstance(values, list) or len(values) != 5 or not all(map(_is_number, values)):
        raise ValueError(f"'{key}': a span is [base, start, pitch, rows, width], got {values!r}")
    span = Span(*values)
    if span.base != EVERYTHING and not (span.rows and 0 < span.width <= span.pitch):
        raise ValueError(f"'{key}': a span has rows, and 0 < width <= pitch, got {values!r}")
    return span


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST
