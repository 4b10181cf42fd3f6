"""``acs-cl demo``: a filter whose launches depend on the picture, serial and concurrent.

In: the options ``device``, ``backend``, ``out`` and ``quick``. Out: a table on stdout, a PNG with both
timelines, and the exit code: 1 if a result differs from NumPy's.

Invariant: nothing is timed before its result was compared; times come from runs that take turns and trace
nothing, timelines from runs of their own.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from contextlib import ExitStack
from importlib.util import find_spec
from typing import NamedTuple, TextIO

import numpy as np

from . import Runtime, devices
from .demo_filter import SCENES, TILE, Filter, Pixels, Treatments, reference
from .errors import UsageError
from .pictures import Panel, Run, draw
from .trace import Slice

OUT = "acs-cl-demo.png"
TOLERANCE = 0.01
"""In grey levels of 255; the reference computes in double precision."""


class Size(NamedTuple):
    """How much is done: tiles along a side of each picture, and timed runs."""

    tiles: int
    runs: int


FULL, QUICK = Size(8, 9), Size(5, 5)


class Timeline(NamedTuple):
    """One traced run: what `pictures` draws, and launches in flight by the device's clock."""

    slices: list[Slice]
    overlap: float


class Outcome(NamedTuple):
    """What one backend did with one picture."""

    backend: str
    launches: int
    edges: int
    time_s: float
    timeline: Timeline


class Mismatch(Exception):
    """A result is not what NumPy computes."""


def main(args: argparse.Namespace) -> int:
    """Run the demo; the exit code."""
    if os.environ.get("ACS_CL_BACKEND"):
        raise UsageError(
            "ACS_CL_BACKEND is set, and the demo compares backends: unset it, use --backend NAME"
        )
    drawn = find_spec("matplotlib") is not None
    if args.out and not drawn:
        raise UsageError("--out needs matplotlib: pip install 'acs_cl[plots]'")
    size = QUICK if args.quick else FULL
    device = devices.choose(args.device)
    bar = Bar(sys.stderr, len(SCENES) * (1 + 2 * (2 + size.runs)))
    panels = []
    rows = []
    try:
        with ExitStack() as stack:
            ...
    except Mismatch as wrong:
        bar.end()
        print(f"acs-cl demo: WRONG RESULT: {wrong}", file=sys.stderr)
        return 1
