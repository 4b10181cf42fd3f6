"""``acs-cl demo``: a filter whose launches depend on the picture, serial and concurrent.

Input: the options ``device``, ``backend``, ``out`` and ``quick``. Output: a table on stdout, a PNG
with both timelines, and the exit code: 1 if a result differs from NumPy's.

Invariant: every result is compared. Times come from interleaved runs. Timelines, edges and overlap
come from separate runs, because tracing costs time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np

from acs_cl import Runtime, __version__, devices
from acs_cl.benchmarks.figures.timelines import Panel, Run, draw
from acs_cl.benchmarks.workloads.treatments import (
    SCENES,
    TILE,
    Filter,
    Pixels,
    Treatment,
    Treatments,
    reference,
)
from acs_cl.errors import AcsError, UsageError
from acs_cl.host.environment import variable
from acs_cl.host.progress import Progress
from acs_cl.observe.slices import Slice

PICTURE = "acs-cl-demo.png"
TOLERANCE = 0.01
"""In grey levels, of which there are 256. NumPy computes in double precision."""


class Size(NamedTuple):
    """Tiles along each side of a picture, and timed runs."""

    tiles: int
    runs: int


FULL, QUICK = Size(8, 9), Size(5, 5)


class WrongResultError(AcsError):
    """The device's result differs from NumPy's."""


class Side(NamedTuple):
    """One of the two compared: a filter for times and one for timelines."""

    name: str
    timed: Filter
    traced: Filter
    runtime: Runtime
    """The runtime that traces."""


class Outcome(NamedTuple):
    """The results of one side with one picture."""

    side: str
    launches: int
    edges: int
    median_s: float
    slices: list[Slice]
    overlap: float


def main(args: argparse.Namespace) -> int:
    """Run the demo; return the exit code."""
    if variable("ACS_CL_BACKEND"):
        raise UsageError("the demo compares backends: unset ACS_CL_BACKEND, use --backend NAME")
    out = Path(args.out or PICTURE)
    can_draw = find_spec("matplotlib") is not None
    if args.out and not can_draw:
        raise UsageError("--out needs matplotlib: pip install 'acs_cl[plots]'")
    if not out.parent.is_dir():
        raise UsageError(f"--out {out}: there is no folder {out.parent}")
    size = QUICK if args.quick else FULL
    said: list[str] = []
    rows: list[list[object]] = []
    panels: list[Panel] = []
    device = devices.choose(args.device)
    print(f"acs_cl {__version__} on {devices.describe(device)}")
    others = busy(os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0, os.cpu_count() or 1)
    with ExitStack() as stack:
        step = _steps(stack, len(SCENES) * (2 * size.runs + 7))
        sides = [
            _side(stack, device, backend, size.tiles * TILE)
            for backend in ("serial", args.backend or "auto")
        ]
        print(sides[1].runtime.plan.why)
        for name, scene in SCENES.items():
            picture = scene(size.tiles * TILE)
            step(f"{name} in NumPy")
            expected, treatments = reference(picture)
            outcomes = _compare(sides, name, picture, expected, size.runs, step)
            rows += _rows(name, outcomes)
            panels.append(_panel(name, picture, treatments, outcomes))
            said.append(f"  {name}: {_words(treatments)}")
    print("\nWhich kernels run on a tile of a picture depends on what is in it:", *said, sep="\n")
    print(f"\n{_table(rows)}")
    print("(in flight: launches that run at a time, on average, by the device's clock)")
    print(others, end="")
    print(f"Every result is NumPy's, to within {TOLERANCE} of 255 grey levels.")
    if can_draw:
        draw(panels, out, f"acs-cl demo on {devices.full_name(device)}")
        print(f"The timelines are in {out}.")
    else:
        print("No picture: it needs matplotlib (pip install 'acs_cl[plots]').")
    return 0


def busy(load: float, processors: int) -> str:
    """Say what else runs, since a speed-up on busy processors means little."""
    if load < processors / 2:
        return ""
    return (
        f"(other programs kept the machine busy, with a load of {load:.1f} on {processors} "
        "processors: expect higher speed-ups without them)\n"
    )


Step = Callable[[str], None]
"""Gets the name of the next step."""


def _steps(stack: ExitStack, total: int) -> Step:
    """Draw a bar until the stack closes, on a terminal."""
    say, done = Progress(), count()
    stack.callback(say.end)
    return lambda what: say(what, next(done) / total) if sys.stderr.isatty() else None


def _side(stack: ExitStack, device: devices.Spec, backend: str, pixels: int) -> Side:
    timed = stack.enter_context(Runtime(device, backend=backend))
    traced = stack.enter_context(Runtime(device, backend=backend, trace=True))
    name = timed.plan.backend + (" (auto)" if backend == "auto" else "")
    return Side(name, Filter(timed, pixels), Filter(traced, pixels), traced)


def _compare(
    sides: list[Side], name: str, picture: Pixels, expected: Pixels, runs: int, step: Step
) -> list[Outcome]:
    """Run one picture on both sides."""

    def run(side: Side, work: Filter) -> float:
        step(f"{name}, {side.name}")
        start = time.perf_counter()
        result, _ = work.run(picture)
        took_s = time.perf_counter() - start
        worst = float(np.abs(result - expected).max())
        if not worst <= TOLERANCE:  # also if it is not a number
            raise WrongResultError(
                f"{name} on {side.name} is {worst:.3g} grey levels off NumPy's result"
            )
        return took_s

    outcomes = []
    for side in sides:
        run(side, side.timed)  # the first launch of a kernel may still compile
        run(side, side.traced)
    times = [[run(side, side.timed) for side in sides] for _ in range(runs)]
    for side, took_s in zip(sides, zip(*times, strict=True), strict=True):
        side.runtime.finish()
        side.runtime.trace.clear()
        edges = _edges(side)
        run(side, side.traced)
        side.runtime.finish()
        outcomes.append(
            Outcome(
                side.name,
                len(side.traced.launched),
                _edges(side) - edges,
                statistics.median(took_s),
                list(side.runtime.trace.slices),
                side.runtime.trace.overlap(),
            )
        )
    return outcomes


def _edges(side: Side) -> int:
    edges: dict[str, int] = side.runtime.stats()["edges"]
    return sum(edges.values())


# ---- output --------------------------------------------------------------------------------------


def _words(treatments: Treatments) -> str:
    counted = Counter(treatments.values()).most_common()
    each = (f"{count} {_in_words(treatment)}" for treatment, count in counted)
    return f"{len(treatments)} tiles, of these {', '.join(each)}"


def _in_words(treatment: Treatment) -> str:
    parts = (f"{name} x{n}" if n > 1 else name for name, n in Counter(treatment).items())
    return " + ".join(parts)


def _rows(name: str, outcomes: list[Outcome]) -> list[list[object]]:
    base_s = outcomes[0].median_s
    return [
        [
            name,
            one.side,
            one.launches,
            one.edges,
            f"{one.median_s * 1e3:.1f}",
            f"{base_s / one.median_s:.2f}",
            f"{one.overlap:.2f}",
        ]
        for one in outcomes
    ]


def _table(rows: list[list[object]]) -> str:
    from tabulate import tabulate  # only commands draw tables

    heads = ["picture", "backend", "launches", "edges", "median ms", "speed-up", "in flight"]
    return str(tabulate(rows, heads, disable_numparse=True, colalign=["left"] * 2 + ["right"] * 5))


LETTERS = {"smooth": "s", "denoise": "d", "sharpen": "+"}


def _panel(name: str, picture: Pixels, treatments: Treatments, outcomes: list[Outcome]) -> Panel:
    marks = [
        ((column + 0.5) * TILE, (row + 0.5) * TILE, "".join(LETTERS[one] for one in treatment))
        for (row, column), treatment in treatments.items()
    ]
    runs = [
        Run(f"{one.side}: {one.overlap:.2f} launches in flight", one.slices) for one in outcomes
    ]
    letters = ", ".join(f"{letter} {kernel}" for kernel, letter in LETTERS.items())
    title = f"{name}: {outcomes[0].launches} launches, by what each tile needs ({letters})"
    return Panel(title, runs, picture, marks)
