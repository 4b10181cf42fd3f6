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
    figure.set_size_inches(WIDTH, 3 * ROW)
    speedups, occupancy, overheads = figure.subplots(3, 1)
    serial_ns = found.outcomes[0].makespan_ns
    names = [outcome.policy for outcome in found.outcomes]
    bars = speedups.barh(names, [serial_ns / max(1, one.makespan_ns) for one in found.outcomes])
    speedups.bar_label(bars, fmt="%.2f", fontsize=8)
    bound_ns = max(1, *found.bounds_ns.values())
    speedups.axvline(serial_ns / bound_ns, color="#e45756", linestyle="--", linewidth=1)
    speedups.set_xlabel("speedup over the serial stream; dashed: the bound", fontsize=8)
    speedups.invert_yaxis()
    for outcome in found.outcomes:
        times = [start / 1e6 for start, _ in outcome.occupied]
        occupancy.step(times, [level for _, level in outcome.occupied], where="post",
                       linewidth=0.8, label=outcome.policy)  # fmt: skip
    occupancy.set_xlabel("model time, ms", fontsize=8)
    occupancy.set_ylabel("threads in use", fontsize=8)
    occupancy.legend(fontsize=6)
    _stack(overheads, found, names)


def _stack(axes: Any, found: Comparison, names: list[str]) -> None:
    """What the host's threads and the window unit did, one bar a policy."""
    reached = [0.0] * len(names)
    for name in sorted({name for one in found.outcomes for name in one.overheads_ns}):
        spent = [one.overheads_ns.get(name, 0) / 1e6 for one in found.outcomes]
        axes.barh(names, spent, left=reached, label=name)
        reached = [before + more for before, more in zip(reached, spent, strict=True)]
    axes.set_xlabel("host threads and window unit, ms", fontsize=8)
    axes.invert_yaxis()
    axes.legend(fontsize=6)


def _sweep(figure: Any, found: Sweep) -> None:
    figure.set_size_inches(WIDTH, 2 * ROW)
    speedups, occupancy = figure.subplots(2, 1, sharex=True)
    pairs = zip(found.serial, found.outcomes, strict=True)
    over = [serial.makespan_ns / max(1, outcome.makespan_ns) for serial, outcome in pairs]
    speedups.plot(found.values, over, marker="o")
    speedups.set_ylabel("speedup over the serial stream", fontsize=8)
    achieved = [outcome.achieved_occupancy for outcome in found.outcomes]
    occupancy.plot(found.values, achieved, marker="o", label="achieved occupancy")
    window = [outcome.window_slots for outcome in found.outcomes]
    if any(window):
        slots = occupancy.twinx()
        slots.plot(found.values, window, marker="s", color="#f58518")
        slots.set_ylabel("slots of the window in use (squares)", fontsize=8)
    occupancy.set_ylabel("achieved occupancy (dots)", fontsize=8)
    occupancy.set_xlabel(found.axis, fontsize=8)
