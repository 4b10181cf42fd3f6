"""Pictures of timelines, with one bar for each launch.

Input: panels. Each has runs, whose slices come from `acs_cl.observe.trace`, and maybe an image.
Output: a PNG. All runs of a picture share one scale, and each begins at its own first start. A
colour means the same kernel everywhere. A run on several lanes has a row for each. A run on one
queue gets the fewest rows in which no bar covers another.

Invariant: intervals of different clocks are never drawn together. matplotlib is loaded only for
drawing, and never opens a window.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy.typing as npt

from acs_cl.errors import UsageError
from acs_cl.host.intervals import packed
from acs_cl.observe.slices import Slice, on_device

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#eeca3b", "#9d755d")
TRANSFERS = {"read": "#3d3d3d", "write": "#6b6b6b", "fill": "#979797", "copy": "#bdbdbd"}
INK, PALE = "#2b2b2b", "#f4f4f2"

# Inches.
WIDTH, EDGE = 14.0, 0.25
ROW, MOST_ROWS_HIGH = 0.30, 2.6
LABEL, HEAD, FOOT, TITLE, LEGEND = 0.24, 0.34, 0.5, 0.5, 0.34
ROW_NAMES = 0.62
"""Space to the left of a timeline for the names of its rows."""


class Run(NamedTuple):
    """One timeline."""

    label: str
    slices: Sequence[Slice]


class Panel(NamedTuple):
    """Timelines that belong together. `image`: rows of grey levels from 0 to 255. `marks`: short
    texts to put on it, at (x, y) in pixels."""

    title: str
    runs: Sequence[Run]
    image: npt.ArrayLike | None = None
    marks: Sequence[tuple[float, float, str]] = ()


def rows_of(slices: Sequence[Slice]) -> list[tuple[str, list[Slice]]]:
    """Return slices by row, with the row's name. Rows are the lanes, if there are several. Else the
    slices are packed so that none covers another."""
    ordered = sorted(slices, key=lambda one: (one.start_ns, one.end_ns))
    lanes = sorted({(one.device, one.lane) for one in ordered})
    if len(lanes) > 1:
        together = [[one for one in ordered if (one.device, one.lane) == lane] for lane in lanes]
        return [(on_device(some[0], f"lane {some[0].lane}"), some) for some in together]
    rows = packed(ordered, lambda one: (one.start_ns, one.end_ns))
    return [("queue" if number == 0 else "", row) for number, row in enumerate(rows)]


def draw(panels: Sequence[Panel], path: str | Path, title: str) -> None:
    """Write the picture to `path`."""
    slices = [one for panel in panels for run in panel.runs for one in run.slices]
    clocks = {one.clock for one in slices}
    if len(clocks) != 1 or not all(run.slices for panel in panels for run in panel.runs):
        raise UsageError(f"a timeline needs slices, of one clock; got {sorted(clocks) or 'none'}")
    try:
        from matplotlib.figure import Figure  # without pyplot: no window, in any configuration
    except ImportError as error:
        raise UsageError(
            f"a picture needs matplotlib ({error}): pip install 'acs_cl[plots]'"
        ) from None
    colours = _colours(slices)
    longest_ms = max(_length_ns(run) for panel in panels for run in panel.runs) / 1e6
    height = TITLE + LEGEND + sum(_height(panel) for panel in panels) + EDGE
    sheet = _Sheet(Figure(figsize=(WIDTH, height), facecolor="white"), WIDTH, height)
    sheet.figure.text(EDGE / WIDTH, 1 - 0.3 / height, title, fontsize=13, color=INK, va="center")
    _legend(sheet, TITLE, colours)
    top = TITLE + LEGEND
    for panel in panels:
        _panel(sheet, top, panel, colours, longest_ms, clocks.copy().pop())
        top += _height(panel)
    try:
        sheet.figure.savefig(path, dpi=110, format="png")
    except OSError as error:
        raise UsageError(f"the picture cannot be written: {error}") from None


class _Sheet(NamedTuple):
    """A figure with positions in inches from its upper left corner."""

    figure: Figure
    width: float
    height: float

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Add axes at a position, without the usual frame."""
        below = self.height - top - height
        place = (left / self.width, below / self.height, width / self.width, height / self.height)
        axes = self.figure.add_axes(place)
        axes.set_frame_on(False)
        axes.tick_params(length=0, labelsize=8, labelcolor=INK)
        return axes


def _height(panel: Panel) -> float:
    return HEAD + sum(LABEL + _rows_height(run) for run in panel.runs) + FOOT


def _rows_height(run: Run) -> float:
    return min(MOST_ROWS_HIGH, ROW * len(rows_of(run.slices)))


def _panel(
    sheet: _Sheet, top: float, panel: Panel, colours: dict[str, str], longest_ms: float, clock: str
) -> None:
    sheet.figure.text(
        EDGE / sheet.width, 1 - (top + 0.14) / sheet.height, panel.title, fontsize=10.5, color=INK,
        weight="bold", va="center",
    )  # fmt: skip
    left = EDGE
    if panel.image is not None:
        side = _height(panel) - HEAD - 0.2
        _image(sheet.axes(left, top + HEAD, side, side), panel)
        left += side + 0.1
    left += ROW_NAMES
    at = top + HEAD
    for run in panel.runs:
        high = _rows_height(run)
        axes = sheet.axes(left, at + LABEL, sheet.width - left - EDGE, high)
        _timeline(axes, run, colours, longest_ms)
        at += LABEL + high
        if run is panel.runs[-1]:
            axes.set_xlabel(f"ms, {clock} clock", fontsize=8, color=INK, loc="right", labelpad=1)
        else:
            axes.tick_params(labelbottom=False)


def _timeline(axes: Axes, run: Run, colours: dict[str, str], longest_ms: float) -> None:
    rows = rows_of(run.slices)
    begin = min(one.start_ns for one in run.slices)
    for number, (_, row) in enumerate(rows):
        axes.broken_barh(
            [((one.start_ns - begin) / 1e6, (one.end_ns - one.start_ns) / 1e6) for one in row],
            (number - 0.42, 0.84),
            facecolors=[colours[one.name] for one in row],
            edgecolors="white",
            linewidth=0.25,
        )
    axes.set_facecolor(PALE)
    axes.patch.set_visible(True)
    axes.set_frame_on(True)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.grid(axis="x", color="white", linewidth=1)
    axes.set_axisbelow(True)
    axes.set_xlim(0, longest_ms * 1.005)
    axes.set_ylim(len(rows) - 0.45, -0.55)
    named = [(number, name) for number, (name, _) in enumerate(rows) if name]
    if len(named) > 16:
        named = named[:: len(named) // 8]
    axes.set_yticks([number for number, _ in named], [name for _, name in named])
    axes.set_title(run.label, loc="left", fontsize=9, color=INK, pad=3)


def _image(axes: Axes, panel: Panel) -> None:
    assert panel.image is not None
    axes.imshow(panel.image, cmap="gray", vmin=0, vmax=255, aspect="equal")
    axes.set_xticks([])
    axes.set_yticks([])
    for x, y, text in panel.marks:
        axes.text(
            x, y, text, fontsize=5.5, color="white", ha="center", va="center", family="monospace",
            bbox={"facecolor": INK, "alpha": 0.6, "linewidth": 0, "boxstyle": "round,pad=0.15"},
        )  # fmt: skip


def _legend(sheet: _Sheet, top: float, colours: dict[str, str]) -> None:
    axes = sheet.axes(EDGE, top, sheet.width - 2 * EDGE, 0.2)
    axes.axis("off")
    axes.set_xlim(0, sheet.width - 2 * EDGE)
    axes.set_ylim(0, 1)
    x = 0.0
    for name, colour in colours.items():
        axes.broken_barh([(x, 0.2)], (0.15, 0.7), facecolors=colour)
        axes.text(x + 0.27, 0.5, name, fontsize=9, color=INK, va="center")
        x += 0.55 + 0.085 * len(name)


def _colours(slices: Iterable[Slice]) -> dict[str, str]:
    """Return a colour for each name: kernels by their first start, then transfers in greys."""
    names = dict.fromkeys(one.name for one in sorted(slices, key=lambda one: one.number))
    kernels = [name for name in names if name not in TRANSFERS]
    colours = {name: PALETTE[index % len(PALETTE)] for index, name in enumerate(kernels)}
    return colours | {name: grey for name, grey in TRANSFERS.items() if name in names}


def _length_ns(run: Run) -> int:
    return max(one.end_ns for one in run.slices) - min(one.start_ns for one in run.slices)
