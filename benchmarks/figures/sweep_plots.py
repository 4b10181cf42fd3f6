"""Pictures of sweeps: speed-up over the baseline, one picture for each number that was varied.

Input: results of `sweeps.measure`. Output: PNG files; a line for each contestant with its
quartiles, and below it launches per second. matplotlib is loaded only for drawing, and never opens
a window.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acs_cl.benchmarks.figures import bench_plots
from acs_cl.benchmarks.figures.bench_plots import COLOURS, OTHER
from acs_cl.benchmarks.figures.sweep_tables import UNITS, grouped


def draw(result: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write `sweep-<parameter>.png` for each; return their paths."""
    bench_plots.check()
    from matplotlib.figure import Figure  # without pyplot: no window, in any configuration

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
        lower.set_xlabel(f"{parameter} ({UNITS[parameter]})")
        lower.set_xticks(range(len(by_value)), [f"{value:,}" for value in by_value])
        for axes in (upper, lower):
            axes.set_yscale("log")
            least, most = axes.get_ylim()
            lines = bench_plots.ticks(least, most)
            axes.set_yticks(lines, [f"{line:,g}" for line in lines])
            axes.minorticks_off()
            axes.grid(lw=0.3)
        figure.legend(*upper.get_legend_handles_labels(), loc="outside lower center", fontsize=8,
                      ncols=4)  # fmt: skip
        unrest = max(one["unrest"] for one in there["noise"])
        upper.set_title(
            f"{there['device']}, {there['date']}, machine noise {unrest:.0%}",
            fontsize=10, loc="left",
        )  # fmt: skip
        path = folder / f"sweep-{parameter}.png"
        figure.savefig(path, dpi=120)
        paths.append(path)
    return paths


def _line(
    upper: Any, lower: Any, name: str, by_value: Mapping[int, Mapping[str, Mapping[str, Any]]]
) -> None:
    points = [
        (place, rows[name])
        for place, rows in enumerate(by_value.values())
        if name in rows and "failed" not in rows[name]
    ]
    if not points:
        return
    values = [place for place, _ in points]
    colour = COLOURS.get(name, OTHER)
    style = "--" if name in ("bare", "serial", "expert") else "-"
    upper.plot(
        values, [row["speed_up"] for _, row in points], style, marker="o", ms=3.5, color=colour,
        label=name,
    )  # fmt: skip
    low, high = zip(*(row["quartiles"] for _, row in points), strict=True)
    upper.fill_between(values, low, high, color=colour, alpha=0.15, lw=0)
    rates = [row["launches_per_s"] for _, row in points]
    lower.plot(values, rates, style, marker="o", ms=3.5, color=colour)
