"""Pictures of sweeps: speed-up over the baseline, one picture for each number that was varied.

In: what `sweeps.measure` found. Out: PNG files; a line for each contestant with its quartiles, and
below it launches per second. matplotlib is loaded when something is drawn, and never opens a
window.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acs_cl import UsageError
from acs_cl.benchmarks.sweeps import UNITS, grouped

COLOURS = {
    "bare": "#9aa0a6",
    "serial": "#9aa0a6",
    "expert": "#2b2b2b",
    "out_of_order": "#72b7b2",
    "lanes": "#4c78a8",
    "lanes, ready_first": "#b279a2",
    "device": "#f58518",
    "auto": "#54a24b",
}
BY_POWERS = ("window", "lanes", "groups")
"""Whose values double or so from one to the next."""


def draw(result: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write `sweep-<parameter>.png` for each; where they are."""
    try:
        from matplotlib.figure import Figure  # without pyplot: no window, whatever is configured
    except ImportError as error:
        raise UsageError(
            f"a picture needs matplotlib ({error}): pip install 'acs_cl[plots]'"
        ) from None
    folder.mkdir(parents=True, exist_ok=True)
    there = result["machine"]
    paths = []
    for parameter, by_value in grouped(result).items():
        figure: Any = Figure(figsize=(8.0, 6.4), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        for name in dict.fromkeys(name for rows in by_value.values() for name in rows):
            _line(upper, lower, name, by_value)
        upper.axhline(1, color="#2b2b2b", lw=0.6, ls=":")
        upper.set_ylabel("times faster than the baseline")
        lower.set_ylabel("launches/s")
        lower.set_yscale("log")
        lower.set_xlabel(f"{parameter} ({UNITS[parameter]})")
        if parameter in BY_POWERS:
            lower.set_xscale("log", base=2)
        lower.set_xticks(list(by_value), [f"{value:,}" for value in by_value])
        lower.minorticks_off()
        for axes in (upper, lower):
            axes.grid(lw=0.3)
        upper.legend(fontsize=8, ncols=3)
        upper.set_title(f"{there['device']}, {there['date']}", fontsize=10, loc="left")
        path = folder / f"sweep-{parameter}.png"
        figure.savefig(path, dpi=120)
        paths.append(path)
    return paths


def _line(
    upper: Any, lower: Any, name: str, by_value: Mapping[int, Mapping[str, Mapping[str, Any]]]
) -> None:
    points = [
        (value, rows[name])
        for value, rows in by_value.items()
        if name in rows and "failed" not in rows[name]
    ]
    if not points:
        return
    values = [value for value, _ in points]
    colour = COLOURS.get(name, "#9d755d")
    style = "--" if name in ("bare", "serial", "expert") else "-"
    upper.plot(
        values, [row["speed_up"] for _, row in points], style, marker="o", ms=3.5, color=colour,
        label=name,
    )  # fmt: skip
    low, high = zip(*(row["quartiles"] for _, row in points), strict=True)
    upper.fill_between(values, low, high, color=colour, alpha=0.15, lw=0)
    rates = [row["launches_per_s"] for _, row in points]
    lower.plot(values, rates, style, marker="o", ms=3.5, color=colour)
