"""Pictures of simulated runs: a comparison, or a sweep, as PNG.

In: what `report` made. Out: a file. matplotlib is loaded when something is drawn, not before, and
never opens a window.

Invariant: a picture says that it is simulated.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from acs_cl.emu.report import Comparison, Sweep
from acs_cl.errors import UsageError

WIDTH, ROW = 11.0, 3.2  # inches
POINTS = 128
"""Of a level over time."""

SPENT = (
    "program", "launch", "event", "check", "lock", "update", "sync", "build", "record", "epoch",
    "insert (window)", "update (window)", "blocked", "waiting",
)  # fmt: skip
"""What time goes to, each with a colour of its own in all pictures."""


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
        title = f"{found.trace}; {found.policy} by {found.axis}"
    figure.suptitle(f"Simulated: {title}", fontsize=10)
    figure.savefig(path, format="png", dpi=110)


def _comparison(figure: Any, found: Comparison) -> None:
    inside = [one for one in found.outcomes if one.window]
    figure.set_size_inches(WIDTH, (4 if inside else 3) * ROW)
    panels = figure.subplots(4 if inside else 3, 1)
    names = [outcome.policy for outcome in found.outcomes]
    colors = {name: f"C{place}" for place, name in enumerate(names)}
    _speedups(panels[0], found, names, colors)
    for outcome in found.outcomes:
        _levels(panels[1], outcome.occupied, outcome.policy, colors)
    panels[1].set_ylabel("threads in use", fontsize=8)
    for outcome in inside:
        _levels(panels[2], outcome.window, outcome.policy, colors)
    if inside:
        panels[2].set_ylabel("launches in the window, or\nbatches on the device", fontsize=8)
        panels[2].sharex(panels[1])
        panels[2].set_yscale("symlog", base=2, linthresh=1)  # a window beside a whole graph
    for panel in panels[1:-1]:
        panel.set_xlabel("model time, ms", fontsize=8)
        panel.set_ylim(bottom=0)
        panel.set_xlim(left=0)
        _legend(panel)
    _stack(panels[-1], found, names)


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


def _levels(axes: Any, levels: list[tuple[int, float]], name: str, colors: dict[str, str]) -> None:
    """A level over time, in POINTS averages: more of them are a smear."""
    together = max(1, -(-len(levels) // POINTS))
    parts = [levels[start : start + together] for start in range(0, len(levels), together)]
    times = [part[0][0] / 1e6 for part in parts]
    means = [sum(level for _, level in part) / len(part) for part in parts]
    axes.step(times, means, where="post", linewidth=1.1, label=name, color=colors[name])


def _legend(axes: Any) -> None:
    """Beside the drawing, where it hides nothing."""
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.005, 1.0), borderaxespad=0)


def _stack(axes: Any, found: Comparison, names: list[str]) -> None:
    """What the host's threads and the window unit did, one bar a policy."""
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
    pairs = zip(found.serial, found.outcomes, strict=True)
    over = [serial.makespan_ns / max(1, outcome.makespan_ns) for serial, outcome in pairs]
    speedups.plot(found.values, over, marker="o")
    speedups.set_ylabel("speedup over the serial stream", fontsize=8)
    achieved = [100 * outcome.achieved_occupancy for outcome in found.outcomes]
    occupancy.plot(found.values, achieved, marker="o", label="achieved occupancy")
    for axes, values in ((speedups, over), (occupancy, achieved)):
        axes.set_ylim(0, 1.1 * max(values) or 1)  # from zero: small changes look small
        axes.set_xticks(found.values)
    window = [outcome.window_slots for outcome in found.outcomes]
    if any(window):
        slots = occupancy.twinx()
        slots.plot(  # hollow: where both lie together, both are seen
            found.values, window, marker="s", markersize=11, markerfacecolor="none",
            linestyle="--", color="#f58518",
        )  # fmt: skip
        slots.set_ylim(0, 1.1 * max(window))
        slots.set_ylabel("slots of the window in use (squares)", fontsize=8)
    occupancy.set_ylabel("achieved occupancy, % (dots)", fontsize=8)
    occupancy.set_xlabel(found.axis, fontsize=8)
