"""Measure everything that docs/measurements.md shows, within so many seconds.

    python -m acs_cl.benchmarks everything --out FOLDER --within 540 --device NVIDIA

Input: a device, and sources of a commit. Output: documents in a folder, `figures.json`,
`bench.json` and on a GPU `bench-more.json`, for `merge`, from their first part on.

Each benchmark runs in a process of its own, so that one that fails or hangs costs only itself. One
that would probably end too late is left out, and named. The exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from acs_cl import AcsError, UsageError, devices
from acs_cl.benchmarks.peers.published import GRCUDA, TWELVE
from acs_cl.benchmarks.suite import documents, provenance
from acs_cl.benchmarks.suite.documents import Document, ResultError
from acs_cl.benchmarks.suite.joining import merged
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.workloads import catalogue
from acs_cl.host.progress import duration

FIRST = {"overlap": 10, "scheduler": 60, "latency": 5, "builds": 60, "overhead": 60}
FIRST |= {"native": 60, "startup": 60}
"""The most important benchmarks, and the longest known time of each in seconds."""
LATER = {"bands": 30, "queue": 60, "tiles": 45, "replay": 25, "taskbench": 35, "reductions": 10}
LATER |= {"memory": 35, "prediction": 60}
ON_CPU = {"checking": 45, "dask": 40, "first_second": 280}
ON_GPU = {"orders": 150, "transfers": 120, "networks": 200, "first_second": 280}
"""Benchmarks for CPU devices, and for GPUs."""

PRESETS, RUNS = {True: "small", False: "paper"}, {True: 11, False: 7}  # by "is a CPU"
BENCH = "bench"
MARGIN_S, LEAST_S = 5.0, 20.0
NAMES = ", ".join(sorted({BENCH, *FIRST, *LATER, *ON_CPU, *ON_GPU}))


class Round(NamedTuple):
    """Options of the measurement."""

    device: str
    on_cpu: bool
    out: Path
    deadline: float
    """End of the time, by `perf_counter`."""

    @property
    def left_s(self) -> float:
        """Return seconds until the deadline."""
        return self.deadline - perf_counter()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="benchmarks everything", description=__doc__.split("\n")[0]
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="FOLDER")
    add("--within", type=float, default=540.0, metavar="S", help="seconds, at most (540)")
    add("--device", metavar="SPEC", help="index, or a part of 'platform name / device name'")
    add("--only", action="extend", nargs="+", metavar="NAME", help="some of these: " + NAMES)
    args = parser.parse_args(argv)
    begin = perf_counter()
    try:
        unknown = set(args.only or ()) - set(NAMES.split(", "))
        if unknown:
            raise UsageError(f"--only {', '.join(sorted(unknown))}: expected one of {NAMES}")
        found = provenance.sources()
        if found.changed:
            raise UsageError(f"figures need sources of a commit, these are {found.commit!r}")
        device = devices.choose(args.device)
        args.out.mkdir(parents=True, exist_ok=True)
    except (AcsError, OSError) as error:
        print(f"everything: {error}", file=sys.stderr)
        return 1
    settings = Settings(device)
    deadline = begin + args.within - MARGIN_S
    asked = Round(str(settings.position), settings.on_cpu, args.out, deadline)
    print(f"{found.commit} {found.digest} on {devices.full_name(device)}", flush=True)
    try:
        failed = _all(asked, args.only)
    except KeyboardInterrupt:
        print(f"everything: interrupted; {args.out} has what was measured", file=sys.stderr)
        return documents.INTERRUPTED
    except ResultError as error:
        print(f"everything: {error}", file=sys.stderr)
        return 1
    print(f"{perf_counter() - begin:.0f} s; failed: {', '.join(failed) or 'nothing'}", flush=True)
    return int(bool(failed))


def _all(asked: Round, only: Sequence[str] | None) -> list[str]:
    """Run everything; return what failed or was left out."""
    parts: list[tuple[str, Document]] = []

    def figures(names: Mapping[str, int]) -> list[str]:
        failed = []
        wanted = {name: s for name, s in names.items() if not only or name in only}
        for index, (name, seconds) in enumerate(wanted.items(), 1):
            print(
                f"== {index} of {len(wanted)}: {name}, at most {seconds} s; "
                f"{duration(max(asked.left_s, 0))} left for all",
                flush=True,
            )
            document = _figure(asked, name, seconds)
            if document is None:
                failed.append(name)
                continue
            parts.append((name, document))
            documents.write(asked.out / "figures.json", merged(None, parts, several=False))
        return failed

    def bench(file: str, workloads: Sequence[str]) -> list[str]:
        return [] if only and BENCH not in only else _bench(asked, file, workloads)

    if asked.on_cpu:
        return figures(FIRST | LATER | ON_CPU) + bench("bench.json", list(catalogue()))
    failed = figures(FIRST) + bench("bench.json", TWELVE)
    return failed + figures(LATER) + bench("bench-more.json", GRCUDA) + figures(ON_GPU)


def _figure(asked: Round, name: str, seconds: int) -> Document | None:
    """Return one benchmark's document. None: it failed, or there is no time for it."""
    if asked.left_s < seconds:
        print(f"left out: {name} may take {seconds} s, {asked.left_s:.0f} s are left", flush=True)
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{name}.json")
        words = ["acs_cl.benchmarks", "run", name, "--device", asked.device, "--json", str(path)]
        if not _ran(words, asked.left_s):
            return None
        return documents.read(path)


def _bench(asked: Round, file: str, workloads: Sequence[str]) -> list[str]:
    """Run some workloads; the document names those without time."""
    words = ["acs_cl", BENCH, *workloads, "--device", asked.device]
    words += ["--preset", PRESETS[asked.on_cpu], "--runs", str(RUNS[asked.on_cpu])]
    left_s = asked.left_s
    if left_s < LEAST_S:
        print(f"left out: {file}, {left_s:.0f} s are left", flush=True)
        return [file]
    words += ["--within", f"{left_s - MARGIN_S:.0f}", "--json", str(asked.out / file)]
    return [] if _ran(words, left_s) else [file]


def _ran(words: Sequence[str], seconds: float) -> bool:
    """Run a module; return whether it ended in time, without an error."""
    begin = perf_counter()
    try:
        code = subprocess.run(
            [sys.executable, "-m", *words], timeout=max(1.0, seconds), check=False
        ).returncode
    except subprocess.TimeoutExpired:
        code = -1
    took_s = perf_counter() - begin
    print(f"-- {' '.join(words[:3])}: {took_s:.1f} s, exit code {code}", flush=True)
    return code == 0
