"""Several devices: the same programs on one device and on all of them, results compared.

    python -m acs_cl.benchmarks devices                         # two devices of the platform
    python -m acs_cl.benchmarks devices --devices 0 1 2 3 --out devices.json
    python -m acs_cl.benchmarks devices --devices 0 0 --scale 0.01 --only jacobi
    python -m acs_cl.benchmarks devices --suite small           # the workloads of the suite

Input: devices, given as indices; one that comes twice stands for two, for a rehearsal. Output: a
line for each program on two devices and on all, as soon as it is known: milliseconds a step on one
device and on all, copies and bytes of all steps and of the timed ones, launches by device. `--out`
gets a document of these and of copies, for the tables of docs/measurements.md.

A program moves its data to other devices while it runs, once that pays. So programs run for some
seconds before they are timed (`--warm`), and longer if nothing is decided then. A rehearsal on one
device says nothing about speed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter
from typing import NamedTuple

import numpy as np

from ... import Runtime
from ...devices import choose
from ...records import HostArray, Report
from ...several.engine import SeveralEngine
from ..workloads import catalogue
from ..workloads.workload import PRESETS
from . import documents
from .device_programs import PROGRAMS, Step
from .machine import machine
from .statistics import quantile
from .timing import interleave

SAMPLE_MS, MOST_EACH = 40.0, 40
"""Between two waits there are as many steps as take about `SAMPLE_MS`, at most `MOST_EACH`."""

LONGER = 5
"""Up to so many times as long a program runs before it is timed, if the runtime has not decided
yet where its steps run."""

VERSION = 1

COPIES = (4 << 10, 64 << 10, 1 << 20, 4 << 20, 64 << 20, 256 << 20)
"""Bytes of the copies that are timed."""


class How(NamedTuple):
    """How programs are run."""

    devices: Sequence[int]
    scale: float
    steps: int
    warm_s: float
    """How long programs run before they are timed."""
    spread: bool | None
    size: str
    """Of workloads of the suite; empty for the programs of `device_programs`."""


def _workload(name: str, runtime: Runtime, size: str) -> Step:
    one = catalogue()[name]
    made = one.make(runtime, one.presets[size], 1)

    def results() -> HostArray:
        found = made.results()
        return np.concatenate([np.ravel(found[name]).astype(float) for name in sorted(found)])

    return made.step, results


class Made:
    """A program on some devices, and how long its steps took."""

    def __init__(self, name: str, devices: Sequence[int], how: How) -> None:
        several = {"devices": list(devices), "spread": how.spread} if len(devices) > 1 else {}
        only = devices[0] if len(devices) == 1 else None
        self.runtime = Runtime(only, **several)  # type: ignore[arg-type]
        program = _workload(name, self.runtime, how.size) if how.size else None
        self._step, self.result = program or PROGRAMS[name](self.runtime, how.scale)

    def step_ms(self, each: int) -> float:
        """Run some steps, and say how long one took."""
        return _step_ms(self.runtime, self._step, each)

    @property
    def decides(self) -> bool:
        """Tell whether the runtime may soon run the steps elsewhere."""
        engine = self.runtime.engine
        return isinstance(engine, SeveralEngine) and engine.step_plans.is_deciding

    def moved(self) -> tuple[int, int]:
        """Say how many copies there were between devices so far, and of how many bytes."""
        links = [
            link
            for device in self.runtime.stats().get("devices", ())
            for link in device["from"].values()
        ]
        return sum(link["copies"] for link in links), sum(link["bytes"] for link in links)


def _step_ms(runtime: Runtime, step: Callable[[], object], each: int) -> float:
    runtime.finish()
    began = perf_counter()
    for _ in range(each):
        step()
    runtime.finish()
    return (perf_counter() - began) * 1e3 / each


def line(name: str, how: How) -> Report:
    """Compare one device with all, in turns: the results have to be the same."""
    one, every = Made(name, how.devices[:1], how), Made(name, how.devices, how)
    with one.runtime, every.runtime:
        took_ms = min(one.step_ms(1) for _ in range(3))
        each = max(1, min(MOST_EACH, int(SAMPLE_MS / took_ms)))
        began, warm = monotonic(), 0
        while warm < 2 or monotonic() < began + how.warm_s * (LONGER if every.decides else 1):
            every.step_ms(each)
            warm += 1
        for _ in range(warm):  # for the result, which both have to have after as many steps
            one.step_ms(each)
        for _ in range(3):
            every.step_ms(1)
        before = every.moved()
        found = interleave(
            {"one": lambda: one.step_ms(each), "all": lambda: every.step_ms(each)}, how.steps
        )
        copies, nbytes = every.moved()
        np.testing.assert_allclose(every.result(), one.result(), rtol=1e-3, atol=1e-5)
        launches = [device["launches"] for device in every.runtime.stats()["devices"]]
        decided = not every.decides
    one_ms, all_ms = found["one"], found["all"]
    return {
        "program": name,
        "devices": len(how.devices),
        "one_ms": round(median(one_ms), 4),
        "one_quartiles_ms": _quartiles(one_ms),
        "all_ms": round(median(all_ms), 4),
        "all_quartiles_ms": _quartiles(all_ms),
        "times": round(median(one_ms) / median(all_ms), 3),
        "times_at_best": round(min(one_ms) / min(all_ms), 3),
        "steps_between_waits": each,
        "samples": how.steps,
        "copies": copies,
        "bytes": nbytes,
        "copies_timed": copies - before[0],
        "bytes_timed": nbytes - before[1],
        "launches": launches,
        "decided": decided,
    }


def _quartiles(times: Sequence[float]) -> list[float]:
    return [round(quantile(times, share), 4) for share in (0.25, 0.75)]


def document(how: How, names: Sequence[str], within: float) -> Iterator[documents.Document]:
    """Give copies, and programs on two devices and on all, as they are known."""
    found: documents.Document = {
        "acs_cl_devices": VERSION, "machine": machine(choose(how.devices[0])),
        "warm_s": how.warm_s, "samples": how.steps,
        "copies": copies(how.devices, how.steps), "programs": [],
    }  # fmt: skip
    yield found
    until = monotonic() + within
    for many in sorted({2, len(how.devices)}):
        for name in names:
            if monotonic() > until:
                return
            found["programs"].append(line(name, how._replace(devices=how.devices[:many])))
            said = found["programs"][-1].items()
            print("  ".join(f"{key} {value}" for key, value in said), flush=True)
            yield found


def copies(devices: Sequence[int], times: int) -> list[Report]:
    """Time copies of each size from the first device to the second one and back, in turns."""
    found: list[Report] = []
    with Runtime(devices=list(devices[:2]), placement="round_robin") as runtime:
        engine = runtime.engine
        assert isinstance(engine, SeveralEngine)
        for nbytes in COPIES:
            array = runtime.zeros(nbytes, np.uint8)
            took: dict[str, list[float]] = {"there": [], "back": []}
            for _ in range(times + 2):  # the first ones allocate
                for name, source in (("there", 0), ("back", 1)):
                    engine.have(array, source, alone=True)
                    runtime.finish()
                    began = perf_counter()
                    engine.have(array, 1 - source)
                    runtime.finish()
                    took[name].append((perf_counter() - began) * 1e6)
            row: Report = {"bytes": nbytes}
            for name, all_us in took.items():
                middle = median(all_us[2:])
                row[f"{name}_us"] = round(middle, 2)
                row[f"{name}_best_us"] = round(min(all_us[2:]), 2)
                row[f"{name}_GB_s"] = round(nbytes / middle / 1e3, 2)
            found.append(row)
    return found


def main(words: Sequence[str]) -> int:
    """Run the command; the exit code."""
    parser = argparse.ArgumentParser(prog="devices", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--devices", type=int, nargs="+", default=[0, 1], help="indices")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full sizes")
    parser.add_argument("--steps", type=int, default=20, help="times that are taken")
    parser.add_argument("--warm", type=float, default=2.0, help="seconds before times are taken")
    parser.add_argument("--out", type=Path, help="a document of copies and all programs")
    parser.add_argument("--spread", action="store_true", help="cut whatever can be cut")
    parser.add_argument("--suite", choices=PRESETS, help="workloads of the suite, of this size")
    parser.add_argument("--only", nargs="+", help="names of programs or workloads")
    parser.add_argument("--within", type=float, default=600.0, help="seconds; no more begin then")
    args = parser.parse_args(words)
    spread, size = args.spread or None, args.suite or ""
    how = How(args.devices, args.scale, args.steps, args.warm, spread, size)
    there = list(catalogue() if size else PROGRAMS)
    names = args.only or there
    if wrong := set(names) - set(there):
        parser.error(f"unknown: {', '.join(sorted(wrong))}; there are: {', '.join(there)}")
    growing = document(how, names, args.within)
    return documents.exit_code(documents.last_written(growing, args.out), 0)
