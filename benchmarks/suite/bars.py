"""Hold a figure against its bar: what it has to reach.

A benchmark's function `bars` makes these rows from what was measured. They are made anew for every
table, so that a bar never depends on the day its figure was measured.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any


def target(
    what: str,
    value: float | str | None,
    sense: str,
    limit: float | str | None,
    unit: str = "",
    around: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A figure beside what it has to reach. `sense`: 'at most', 'below', 'at least' or 'is'.

    A value of None: not measured. A limit of None: nothing has to be reached, and the figure stands
    there to be compared. `around`: a `spread` whose quartiles go along.
    """
    met = limit is None or (value is not None and _SENSES[sense](value, limit))
    return {
        "what": what,
        "value": float(f"{value:.4g}") if isinstance(value, float) else value,
        "unit": unit,
        "sense": sense,
        "limit": limit,
        "met": bool(met),
        "quartiles": [around["p25"], around["p75"]] if around is not None else None,
    }


_SENSES: dict[str, Callable[[Any, Any], bool]] = {
    "at most": operator.le,
    "below": operator.lt,
    "at least": operator.ge,
    "is": operator.eq,
}
