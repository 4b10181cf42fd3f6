"""gprMax: a dipole above a half-space, solved by finite differences on the device."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gprMax
import h5py
import numpy as np


def programs() -> dict[str, Callable[[], list[Any]]]:
    """A trace of some hundred steps."""

    def scene() -> Any:
        made = gprMax.Scene()
        for one in (
            gprMax.Title(name="half-space"),
            gprMax.Domain(p1=(0.08, 0.08, 0.08)),
            gprMax.Discretisation(p1=(0.002, 0.002, 0.002)),
            gprMax.TimeWindow(iterations=200),
            gprMax.Material(er=6, se=0.01, mr=1, sm=0, id="ground"),
            gprMax.Box(p1=(0, 0, 0), p2=(0.08, 0.08, 0.04), material_id="ground"),
            gprMax.Waveform(wave_type="ricker", amp=1, freq=2e9, id="pulse"),
            gprMax.HertzianDipole(p1=(0.03, 0.04, 0.05), polarisation="z", waveform_id="pulse"),
            gprMax.Rx(p1=(0.05, 0.04, 0.05)),
        ):
            made.add(one)
        return made

    def solve() -> list[Any]:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            out = Path(folder, "trace.h5")
            gprMax.run(scenes=[scene()], outputfile=str(out), opencl=[0], hide_progress_bars=True)
            with h5py.File(out) as found:
                received = found["rxs/rx1"]
                return [np.array(received[name]) for name in sorted(received)]

    return {"half-space": solve}
