"""Steps that a program completes in its first seconds, beside the same program on plain PyOpenCL.

Input: a device. Output: for some workloads, with empty caches and with full ones, the steps done
after each tenth of a second: ours on the default backend, over one in-order queue of PyOpenCL. Each
program runs in a fresh process. Its clock begins when it chooses its device, and it runs until
`LASTS_S` after its first step. So building its kernels counts, and so does the other work of
`auto`: it measures the device, builds schedulers in the background, and changes to them.
Only then does it wait for the builds that have not ended, so that a program with full caches finds
all of them.

A *valley* is a tenth of a second, after the first step of both, in which less was done than on the
plain queue. A step under way counts in proportion. Each tenth has the median of the rounds.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.measures.startup import caches
from acs_cl.benchmarks.suite.processes import fresh_python
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import quantile
from acs_cl.benchmarks.workloads import catalogue
from acs_cl.benchmarks.workloads.bare import InOrder

ROUNDS = {False: 3, True: 1}  # by "is quick"
PRESET = {False: "small", True: "tiny"}
NAMES = {False: ("chains", "stencil", "layers", "ant", "squeezenet", "vec"), True: ("chains",)}
"""One of each family."""

LASTS_S = {False: 1.5, True: 0.4}
TENTH_S = 0.1
LEAST = 0.9
WORST = {
    "least": "steps of a fresh process in its worst tenth of a second",
    "least_all": "steps of a fresh process since its beginning, at the worst moment",
}
STATES, SIDES = ("cold", "warm"), ("plain", "ours")
PROGRAM = "from acs_cl.benchmarks.suite.measures.first_second import program; program()"

Curve = Sequence[float]
"""Steps done after each tenth of a second, the first of them at 0."""


def measure(settings: Settings) -> dict[str, Any]:
    """Measure curves of each workload, with cold caches and with warm ones."""
    rows: dict[str, Any] = {}
    for name in NAMES[settings.quick]:
        ends: dict[tuple[str, str], list[Sequence[float]]] = {}
        for turn in range(ROUNDS[settings.quick]):
            sides = SIDES[:: 1 if turn % 2 else -1]
            with tempfile.TemporaryDirectory() as folder:
                for state, side in product(STATES, sides):
                    words = [side, name, PRESET[settings.quick], str(settings.position)]
                    words.append(str(LASTS_S[settings.quick]))
                    printed, _ = fresh_python(["-c", PROGRAM, *words], **caches(Path(folder, side)))
                    ends.setdefault((state, side), []).append(json.loads(printed))
        rows[name] = {state: compared(*(ends[state, side] for side in SIDES)) for state in STATES}
        said = (f"{state} {rows[name][state]['least']}" for state in STATES)
        print(f"  {name}: least tenth of a second {', '.join(said)}", flush=True)
    return {"rows": rows, "tenth_s": TENTH_S}


def compared(plain: Sequence[Sequence[float]], ours: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Compare the times at which steps ended, of both sides in each round."""
    sides = {"plain": plain, "ours": ours}
    until = min(ends[-1] for ends in (*plain, *ours))
    steps = {side: _median(rounds, until) for side, rounds in sides.items()}
    first_s = {side: quantile([ends[0] for ends in rounds], 0.5) for side, rounds in sides.items()}
    since = ceil(max(first_s.values()) / TENTH_S)
    tenths = {side: np.diff(done)[since:] for side, done in steps.items()}
    began = steps["plain"] >= 1
    return {
        "first_s": {side: round(taken, 4) for side, taken in first_s.items()},
        "steps": {side: [round(float(n), 3) for n in done] for side, done in steps.items()},
        "from_s": round(since * TENTH_S, 3),
        "ratios": (ratios := _ratios(tenths["ours"], tenths["plain"])),
        "least": min(ratios, default=None),
        "least_all": min(_ratios(steps["ours"][began], steps["plain"][began]), default=None),
    }


def curve(ends: Sequence[float], until: float) -> Curve:
    """Return the steps done after each tenth, from the times at which steps ended."""
    moments = np.arange(int(until / TENTH_S) + 1) * TENTH_S
    return list(np.interp(moments, [0.0, *ends], np.arange(len(ends) + 1)))


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare the results with their bars."""
    found = []
    for state, (key, what) in product(STATES, WORST.items()):
        least = {name: row[state][key] for name, row in result["rows"].items()}
        there = {name: value for name, value in least.items() if value is not None}
        worst = min(there, key=there.__getitem__, default="none")
        said = f"{what}, over a plain queue, {state} caches (worst workload: {worst})"
        found.append(target(said, there.get(worst), "at least", LEAST, "x"))
    return found


def program() -> None:
    """Run one workload in this process until its time is over; print when its steps ended."""
    side, name, preset, position, lasts_s = sys.argv[1:]
    workload = catalogue()[name]
    size = workload.presets[preset]
    make = workload.make if side == "ours" else workload.host_decided or workload.make
    ends: list[float] = []
    start = perf_counter()
    device = devices.devices()[int(position)]
    platform: Any = acs.Runtime(device) if side == "ours" else InOrder(device)
    run = make(platform, size, 0)
    while not ends or ends[-1] < ends[0] + float(lasts_s):
        run.step()
        platform.finish()
        ends.append(perf_counter() - start)
    if side == "ours":
        platform.prebuild()  # what is being built is in the caches then
    print(json.dumps([round(end, 6) for end in ends]))


def _ratios(over: Iterable[float], under: Iterable[float]) -> list[float]:
    return [round(float(a / b), 3) for a, b in zip(over, under, strict=True)]


def _median(rounds: Sequence[Sequence[float]], until: float) -> np.ndarray[Any, Any]:
    return np.median([curve(ends, until) for ends in rounds], axis=0)
