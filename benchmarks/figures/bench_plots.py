"""Pictures of the results of ``acs-cl bench``.

Input: a document of `contest.measure`. Output: PNG files: speed-ups for each workload with a line
of the bound, and the host's cost of a launch. matplotlib is loaded only for drawing, and never
opens a window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from acs_cl import UsageError
from acs_cl.benchmarks.figures.bench_tables import contestants

COLOURS = {
    "bare": "#9aa0a6",
    "serial": "#2b2b2b",
    "out_of_order": "#72b7b2",
    "lanes": "#4c78a8",
    "device": "#f58518",
    "auto": "#54a24b",
    "host gates": "#eeca3b",
    "out_of_order, host gates": "#bfe0dd",
    "lanes, host gates": "#aec7e8",
    "replay": "#e45756",
    "expert": "#9d755d",
}
"""Colours, the same in every picture."""
OTHER = "#b279a2"
SPREAD = 0.8
"""Share of the room between two workloads."""
ABREAST = 11
"""Most workloads in a row."""
TICKS = ((1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9))
"""Ticks within a power of ten; the first that give some lines are used."""
LEAST_TICKS = 4

Rows = list[tuple[Any, dict[str, Any]]]
"""Axes, and their workloads."""


def ticks(least: float, most: float) -> list[float]:
    """Return round numbers on a scale by powers."""
    for bases in TICKS:
        all_of_them = (base * 10.0**power for power in range(-3, 8) for base in bases)
        found = [tick for tick in all_of_them if least <= tick <= most]
        if len(found) >= LEAST_TICKS:
            break
    return found


def check() -> None:
    """Raise `UsageError` without matplotlib."""
    if find_spec("matplotlib") is None:
        raise UsageError("pictures need matplotlib: pip install 'acs_cl[plots]'")


def draw(document: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the pictures; return their paths."""
    check()
    folder.mkdir(parents=True, exist_ok=True)
    return [_speedups(document, folder), _costs(document, folder)]


def _speedups(document: Mapping[str, Any], folder: Path) -> Path:
    """Draw bars from the baseline: faster ones go up, slower ones down."""
    figure, rows = _figure(document)
    names = contestants(document)
    ends = [0.5, 2.0]
    for axes, workloads in rows:
        for turn, name in enumerate(names):
            ends += _bars(axes, workloads, name, turn, len(names))
        bounds = [
            (index, entry["rows"][entry["baseline"]]["ms"]["median"] / entry["bound"]["least_ms"])
            for index, entry in enumerate(workloads.values())
            if entry["rows"] and entry["bound"]["least_ms"]
        ]
        if bounds:
            lefts, rights = ([index + side for index, _ in bounds] for side in (-0.45, 0.45))
            most = [times for _, times in bounds]
            axes.hlines(most, lefts, rights, colors="#2b2b2b", lw=1.4, label="bound")
            ends += most
        axes.axhline(1, color="#2b2b2b", lw=0.8)
        axes.set_ylabel("times faster than the baseline")
    return _saved(figure, rows, document, folder / "speedups.png", ends)


def _bars(axes: Any, workloads: Mapping[str, Any], name: str, turn: int, count: int) -> list[float]:
    """Draw the bars of one contestant; return their ends, with spread."""
    places, heights, below, above, ends = [], [], [], [], []
    for index, entry in enumerate(workloads.values()):
        place = _place(index, turn, count)
        row = entry["rows"].get(name)
        if name in entry["failed"]:
            axes.annotate("failed", (place, 1), rotation=90, fontsize=6, ha="center")
        if row is None:
            continue
        found = row["speedup"]
        places.append(place)
        heights.append(found["median"])
        below.append(found["median"] - found["p25"])
        above.append(found["p75"] - found["median"])
        ends += [found["p25"], found["p75"]]
    if not places:
        return []
    axes.bar(
        places, [height - 1 for height in heights], SPREAD / count, bottom=1,
        yerr=[below, above], label=name, color=COLOURS.get(name, OTHER),
        error_kw={"elinewidth": 0.7, "ecolor": "#555555"},
    )  # fmt: skip
    return ends


def _costs(document: Mapping[str, Any], folder: Path) -> Path:
    figure, rows = _figure(document)
    names = contestants(document)
    ends: list[float] = []
    for axes, workloads in rows:
        for turn, name in enumerate(names):
            found = [
                (_place(index, turn, len(names)), entry["rows"][name]["host_us_per_launch"])
                for index, entry in enumerate(workloads.values())
                if name in entry["rows"]
            ]
            if found:
                places, costs = zip(*found, strict=True)
                axes.plot(places, costs, "o", ms=4, label=name, color=COLOURS.get(name, OTHER))
                ends += costs
        for index in range(1, len(workloads)):
            axes.axvline(index - 0.5, color="#cccccc", lw=0.5)
        axes.set_ylabel("host us for a launch")
    return _saved(figure, rows, document, folder / "launch-cost.png", ends)


def _place(index: int, turn: int, count: int) -> float:
    """Return the position of a contestant, beside the others of its workload."""
    return index - SPREAD / 2 + (turn + 0.5) * SPREAD / count


def _figure(document: Mapping[str, Any]) -> tuple[Any, Rows]:
    """Make a picture, with axes for a few workloads each."""
    from matplotlib.figure import Figure

    names = list(document["workloads"])
    count = max(1, -(-len(names) // ABREAST))
    abreast = -(-len(names) // count)
    figure: Any = Figure(layout="constrained")
    figure.set_size_inches(max(7.0, 1.1 * abreast), 1.2 + 3.6 * count)
    column = figure.subplots(count, 1, squeeze=False)[:, 0]
    parts = [names[turn * abreast : (turn + 1) * abreast] for turn in range(count)]
    rows = [
        (axes, {name: document["workloads"][name] for name in part})
        for axes, part in zip(column, parts, strict=True)
    ]
    return figure, rows


def _saved(
    figure: Any, rows: Rows, document: Mapping[str, Any], path: Path, ends: Sequence[float]
) -> Path:
    """Save the picture. `ends`: values that it has to show. All rows share a scale that goes a
    little beyond, by powers."""
    there = document["machine"]
    least, most = 0.8 * min(ends, default=1.0), 1.25 * max(ends, default=1.0)
    lines = ticks(least, most)
    labels: dict[str, Any] = {}
    for axes, workloads in rows:
        axes.set_yscale("log")
        axes.set_ylim(least, most)
        axes.set_yticks(lines, [f"{line:g}" for line in lines])
        axes.minorticks_off()
        axes.set_xticks(range(len(workloads)), workloads)
        axes.tick_params(axis="x", length=0)
        axes.set_xlim(-0.6, max(len(part) for _, part in rows) - 0.4)
        axes.set_axisbelow(True)
        axes.grid(axis="y", lw=0.3)
        handles, names = axes.get_legend_handles_labels()
        labels |= dict(zip(names, handles, strict=True))
    figure.legend(labels.values(), labels, loc="outside lower center", fontsize=8, ncols=5)
    unrest = max(one["unrest"] for one in there["noise"])
    rows[0][0].set_title(
        f"{there['device']}, driver {there['driver']}, {there['date']}\n"
        f"preset {document['preset']}, medians and quartiles of {document['runs']} interleaved runs"
        f", machine noise {unrest:.0%}",
        fontsize=10, loc="left",
    )  # fmt: skip
    figure.savefig(path, dpi=120)
    return path
