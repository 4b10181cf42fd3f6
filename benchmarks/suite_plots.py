"""Pictures of what ``acs-cl bench`` measured.

In: a document of `suite.measure`. Out: PNG files: speed-ups for each workload with the line of what
is possible, and what a launch costs the host. matplotlib is loaded when something is drawn, and
never opens a window.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from acs_cl import UsageError
from acs_cl.benchmarks.suite import BARE
from acs_cl.benchmarks.suite_tables import contestants

COLOURS = ("#9aa0a6", "#4c78a8", "#72b7b2", "#54a24b", "#f58518", "#b279a2", "#e45756", "#9d755d")
SPREAD = 0.8
"""Of the room between two workloads."""


def check() -> None:
    """`UsageError` without matplotlib."""
    if find_spec("matplotlib") is None:
        raise UsageError("pictures need matplotlib: pip install 'acs_cl[plots]'")


def draw(document: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the pictures; where they are."""
    check()
    folder.mkdir(parents=True, exist_ok=True)
    return [_speedups(document, folder), _costs(document, folder)]


def _speedups(document: Mapping[str, Any], folder: Path) -> Path:
    figure, axes = _figure(document)
    workloads = document["workloads"]
    names = contestants(document)
    width = SPREAD / max(len(names), 1)
    for turn, name in enumerate(names):
        places, heights, below, above = [], [], [], []
        for index, entry in enumerate(workloads.values()):
            row = entry["rows"].get(name)
            if row is None:
                continue
            found = row["speedup"]
            places.append(index - SPREAD / 2 + (turn + 0.5) * width)
            heights.append(found["median"])
            below.append(found["median"] - found["p25"])
            above.append(found["p75"] - found["median"])
        axes.bar(
            places, heights, width, yerr=[below, above], label=name,
            color=COLOURS[turn % len(COLOURS)], error_kw={"elinewidth": 0.7, "ecolor": "#555555"},
        )  # fmt: skip
    for index, entry in enumerate(workloads.values()):
        base = entry["rows"].get(entry["baseline"])
        if base and entry["bound"]["least_ms"]:
            most = base["ms"]["median"] / entry["bound"]["least_ms"]
            label = "bound" if index == 0 else None
            axes.hlines(most, index - 0.45, index + 0.45, colors="#2b2b2b", lw=1.4, label=label)
    axes.axhline(1, color="#2b2b2b", lw=0.6, ls=":")
    axes.set_yscale("log")
    axes.set_yticks([0.5, 1, 2, 5, 10, 20, 50], ["0.5", "1", "2", "5", "10", "20", "50"])
    axes.set_ylabel("times faster than the baseline")
    return _saved(figure, axes, document, folder / "speedups.png")


def _costs(document: Mapping[str, Any], folder: Path) -> Path:
    figure, axes = _figure(document)
    names = contestants(document)
    for turn, name in enumerate(names):
        found = [
            (index, entry["rows"][name]["host_us_per_launch"])
            for index, entry in enumerate(document["workloads"].values())
            if name in entry["rows"]
        ]
        if found:
            places, costs = zip(*found, strict=True)
            mark = "_" if name == BARE else "o"
            axes.plot(places, costs, mark, label=name, color=COLOURS[turn % len(COLOURS)])
    axes.set_yscale("log")
    axes.set_ylabel("host us for a launch, until the call has returned")
    return _saved(figure, axes, document, folder / "launch-cost.png")


def _figure(document: Mapping[str, Any]) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure: Any = Figure(layout="constrained")
    figure.set_size_inches(max(7.0, 1.1 * len(document["workloads"])), 5.2)
    return figure, figure.subplots()


def _saved(figure: Any, axes: Any, document: Mapping[str, Any], path: Path) -> Path:
    there = document["machine"]
    axes.set_xticks(
        range(len(document["workloads"])), document["workloads"], rotation=40, ha="right"
    )
    axes.grid(axis="y", lw=0.3)
    axes.legend(fontsize=8, ncols=3)
    axes.set_title(
        f"{there['device']}, preset {document['preset']}, {there['date']}", fontsize=10, loc="left"
    )
    figure.savefig(path, dpi=120)
    return path
