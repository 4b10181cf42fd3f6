"""Bars: compare a figure with the value that it has to reach.

A benchmark's function `bars` makes these rows from its measurements. They are made again for every
table, so that a bar never depends on the day of the measurement.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any


def target(
    what: str,
    value: float | str | Mapping[str, Any] | None,
    sense: str,
    limit: float | str | None,
    unit: str = "",
) -> dict[str, Any]:
    """Return a figure with its bar. `sense`: 'at most', 'below', 'at least' or 'is'.

    `value`: a figure, or a `spread`, which gives its median and its quartiles. None: not measured.
    `limit` None: there is no bar, and the figure is for comparison.
    """
    quartiles = None
    if isinstance(value, Mapping):
        quartiles, value = [value["p25"], value["p75"]], value["median"]
    met = limit is None or (value is not None and _SENSES[sense](value, limit))
    return {
        "what": what,
        "value": float(f"{value:.4g}") if isinstance(value, float) else value,
        "unit": unit,
        "sense": sense,
        "limit": limit,
        "met": bool(met),
        "quartiles": quartiles,
    }


_SENSES: dict[str, Callable[[Any, Any], bool]] = {
    "at most": operator.le,
    "below": operator.lt,
    "at least": operator.ge,
    "is": operator.eq,
}
