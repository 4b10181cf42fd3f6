"""A picture of programs' progress in their first seconds, beside plain PyOpenCL.

Input: committed figures of `first_second`. Output: a block of Markdown and the SVG file that it
shows, with a small diagram for each workload, state of the caches and device. The text of the file
depends only on the results, so `report --check` can compare it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from acs_cl.benchmarks.suite import documents
from acs_cl.benchmarks.suite.measures.first_second import SIDES, STATES, TENTH_S

NAME = "first_second"
FILE = "measurements/pictures/first-seconds.svg"
"""Path below `docs`, which has the page."""
COLOURS = {"plain": "#6b7280", "ours": "#d97706"}
LABELS = {"plain": "one in-order queue of PyOpenCL", "ours": "acs_cl, 'auto'"}
ABREAST = 4
WIDTH, HEIGHT = 240, 150
"""Size of a diagram with its margins."""
LEFT, TOP, RIGHT, BOTTOM = 12, 24, 12, 24
HEAD = 36


class Diagram(NamedTuple):
    """The curves of one workload."""

    title: str
    steps: Mapping[str, Sequence[float]]
    """Steps done after each tenth of a second, by side."""


def block(results: Path) -> str:
    """Show the picture, if there are results."""
    if not list(_diagrams(results)):
        return "Not measured yet."
    return f"![Steps done over time, of each workload and device]({FILE})"


def picture(results: Path) -> str:
    """Draw all diagrams. Empty: nothing is measured."""
    found = list(_diagrams(results))
    if not found:
        return ""
    rows = -(-len(found) // ABREAST)
    width, height = ABREAST * WIDTH, HEAD + rows * HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for at, side in enumerate(SIDES):
        x = LEFT + at * WIDTH
        lines.append(_line([(x, 18), (x + 24, 18)], COLOURS[side]))
        lines.append(_text(x + 30, 22, LABELS[side]))
    for at, diagram in enumerate(found):
        left, top = at % ABREAST * WIDTH, HEAD + at // ABREAST * HEIGHT
        lines += [f'<g transform="translate({left} {top})">', *_drawn(diagram), "</g>"]
    return "\n".join([*lines, "</svg>", ""])


def _diagrams(results: Path) -> Iterator[Diagram]:
    for document in documents.of_kind(results, documents.FIGURES).values():
        device = documents.short_name(document["machine"])
        rows: Mapping[str, Any] = document["benchmarks"].get(NAME, {}).get("rows", {})
        for name, row in rows.items():
            for state in STATES:
                yield Diagram(f"{name}, {state}; {device}", row[state]["steps"])


def _drawn(diagram: Diagram) -> Iterator[str]:
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    tenths = len(diagram.steps["plain"]) - 1
    most = max(1.0, *(done[-1] for done in diagram.steps.values()))
    yield _text(LEFT, TOP - 8, diagram.title)
    yield (
        f'<rect x="{LEFT}" y="{TOP}" width="{wide}" height="{high}" fill="none" stroke="#d1d5db"/>'
    )
    for side in SIDES:
        points = [
            (LEFT + wide * at / tenths, TOP + high * (1 - done / most))
            for at, done in enumerate(diagram.steps[side])
        ]
        yield _line(points, COLOURS[side])
    yield _text(LEFT, HEIGHT - 8, "0 s")
    yield _text(WIDTH - RIGHT, HEIGHT - 8, f"{tenths * TENTH_S:.1f} s", anchor="end")
    yield _text(WIDTH // 2, HEIGHT - 8, f"up to {most:,.0f} steps", anchor="middle")


def _line(points: Sequence[tuple[float, float]], colour: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="#111827">{escape(text)}</text>'
