"""Pictures of simulated runs: a comparison, or a sweep, as PNG.

Input: records of `report`. Output: a file. matplotlib is loaded only for drawing, and never opens a
window.

Invariant: a picture says that it is simulated.
"""

from __future__ import annotations

from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import Any

from acs_cl.emu.model import Outcome
from acs_cl.emu.report import Comparison, Sweep
from acs_cl.errors import UsageError

WIDTH, ROW, STRIP = 11.0, 3.2, 0.75  # inches
POINTS = 128
"""Points of a level over time: more would blur."""

SPENT = (
    "program", "launch", "event", "check", "lock", "update", "sync", "build", "record", "epoch",
    "insert (window)", "update (window)", "blocked", "waiting",
)  # fmt: skip
"""Uses of time, each with the same colour in all pictures."""


def draw(found: Comparison | Sweep, path: str | Path) -> None:
    """Write a PNG; `UsageError` without matplotlib."""
    if find_spec("matplotlib") is None:
        raise UsageError("pictures need matplotlib: pip install 'acs_cl[plots]'")
    from matplotlib.figure import Figure

    figure: Any = Figure(layout="constrained")
    if isinstance(found, Comparison):
        _comparison(figure, found)
        title = f"{found.trace}; machine {found.machine}"
    else:
        _sweep(figure, found)
        title = f"{found.trace}; {found.policy} by {found.axis}; machine {found.machine}"
    figure.suptitle(f"Simulated: {title}", fontsize=10)
    try:
        figure.savefig(path, format="png", dpi=110)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error}") from error


def _comparison(figure: Any, found: Comparison) -> None:
    """Draw speed-ups, a strip of occupancy for each policy, windows, and uses of time."""
    inside = [one for one in found.outcomes if one.window]
    bars = 0.8 + 0.3 * len(found.outcomes)
    heights = [bars, *[STRIP] * len(found.outcomes), *[ROW] * bool(inside), bars]
    figure.set_size_inches(WIDTH, sum(heights))
    panels = list(figure.subplots(len(heights), 1, height_ratios=heights))
    names = [outcome.policy for outcome in found.outcomes]
    colors = {name: f"C{place}" for place, name in enumerate(names)}
    _speedups(panels.pop(0), found, names, colors)
    _stack(panels.pop(), found, names)
    end_ms = max(one.makespan_ns for one in found.outcomes) / 1e6
    for panel in panels:
        panel.set_xlim(0, end_ms)
    if inside:
        _windows(panels.pop(), inside, colors)
    for panel, outcome in zip(panels, found.outcomes, strict=True):
        _strip(panel, outcome, found.whole[1], colors[outcome.policy])
        panel.tick_params(labelbottom=panel is panels[-1])
    most = max(panel.get_ylim()[1] for panel in panels)
    for panel in panels:
        panel.set_ylim(0, most)
    panels[0].set_title(f"{found.whole[0]} in use over time, % of the device's", fontsize=8)
    panels[-1].set_xlabel("model time, ms", fontsize=8)


def _speedups(axes: Any, found: Comparison, names: list[str], colors: dict[str, str]) -> None:
    serial_ns = found.outcomes[0].makespan_ns
    over = [serial_ns / max(1, one.makespan_ns) for one in found.outcomes]
    bars = axes.barh(names, over, color=[colors[name] for name in names])
    axes.bar_label(bars, fmt="%.2f", fontsize=8, padding=3)
    bound = serial_ns / max(1, *found.bounds_ns.values())
    axes.axvline(bound, color="black", linestyle="--", linewidth=1)
    axes.set_xlim(0, 1.1 * max(bound, *over))
    axes.set_xlabel(f"speedup over the serial stream; dashed: the bound, {bound:.2f}", fontsize=8)
    axes.invert_yaxis()


def _averages(levels: list[tuple[int, float]]) -> tuple[list[float], list[float]]:
    """Return times in ms and levels, in at most POINTS steps; the last step ends where they end."""
    together = max(1, -(-len(levels) // POINTS))
    parts = [levels[start : start + together] for start in range(0, len(levels), together)]
    times = [part[0][0] / 1e6 for part in parts]
    means = [sum(level for _, level in part) / len(part) for part in parts]
    bin_ns = levels[1][0] - levels[0][0] if len(levels) > 1 else 1
    return [*times, (levels[-1][0] + bin_ns) / 1e6], [*means, means[-1]]


def _strip(axes: Any, outcome: Outcome, whole: int, color: str) -> None:
    """Draw the occupancy of the device under one policy."""
    if outcome.occupied:
        times, means = _averages(outcome.occupied)
        axes.fill_between(times, [100 * n / whole for n in means], step="post", color=color)
    axes.set_ylim(bottom=0)
    axes.locator_params(axis="y", nbins=3)
    axes.tick_params(labelsize=7)
    axes.set_ylabel(outcome.policy, fontsize=8, rotation=0, ha="right", va="center")


def _windows(axes: Any, inside: list[Outcome], colors: dict[str, str]) -> None:
    """Draw launches in windows over time."""
    for outcome in inside:
        times, means = _averages(outcome.window)
        name = outcome.policy
        axes.step(times, means, where="post", linewidth=1.1, label=name, color=colors[name])
    axes.set_yscale("symlog", base=2, linthresh=1)  # a window beside a whole graph
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("launches in the window, or\nin the batch on the device", fontsize=8)
    axes.set_xlabel("model time, ms", fontsize=8)
    _legend(axes)


def _legend(axes: Any) -> None:
    """Put the legend beside the drawing."""
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.005, 1.0), borderaxespad=0)


def _stack(axes: Any, found: Comparison, names: list[str]) -> None:
    """Draw the time of the host's threads and the window unit, one bar a policy."""
    from matplotlib import colormaps

    reached = [0.0] * len(names)
    there = {name for one in found.outcomes for name in one.overheads_ns}
    for name in (*SPENT, *sorted(there - set(SPENT))):
        if name not in there:
            continue
        spent = [one.overheads_ns.get(name, 0) / 1e6 for one in found.outcomes]
        color = colormaps["tab20"](SPENT.index(name)) if name in SPENT else "black"
        axes.barh(names, spent, left=reached, label=name, color=color)
        reached = [before + more for before, more in zip(reached, spent, strict=True)]
    axes.set_xlim(0, 1.05 * max(*reached, 1e-6))
    axes.set_xlabel("host threads and window unit, ms", fontsize=8)
    axes.invert_yaxis()
    if any(reached):
        _legend(axes)


def _sweep(figure: Any, found: Sweep) -> None:
    figure.set_size_inches(WIDTH, 2 * ROW)
    speedups, occupancy = figure.subplots(2, 1, sharex=True)
    runs = sorted(zip(found.values, found.serial, found.outcomes, strict=True), key=itemgetter(0))
    values = [value for value, _, _ in runs]
    over = [serial.makespan_ns / max(1, outcome.makespan_ns) for _, serial, outcome in runs]
    speedups.plot(values, over, marker="o")
    speedups.set_ylabel("speedup over the serial stream", fontsize=8)
    achieved = [100 * outcome.achieved_occupancy for _, _, outcome in runs]
    occupancy.plot(values, achieved, marker="o", label="achieved occupancy")
    for axes, levels in ((speedups, over), (occupancy, achieved)):
        axes.set_ylim(0, 1.1 * max(levels) or 1)  # from zero: small changes look small
        axes.set_xticks(values)
    window = [outcome.window_slots for _, _, outcome in runs]
    if any(window):
        slots = occupancy.twinx()
        slots.plot(  # hollow, so that overlapping marks both show
            values, window, marker="s", markersize=11, markerfacecolor="none",
            linestyle="--", color="#f58518",
        )  # fmt: skip
        slots.set_ylim(0, 1.1 * max(window))
        slots.set_ylabel("slots of the window in use (squares)", fontsize=8)
    occupancy.set_ylabel("achieved occupancy, % (dots)", fontsize=8)
    occupancy.set_xlabel(found.axis, fontsize=8)
