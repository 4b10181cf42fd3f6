"""Run the suites on drivers, and write what came of it as JSON.

    PYTHONPATH=tests python -m drivers --out benchmarks/results/drivers
    PYTHONPATH=tests python -m drivers "at hand" --short      # a GPU: nothing is fetched

Each driver has a file of its own, so that runs on other machines stand beside each other.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from acs_cl.benchmarks.suite.provenance import sources
from drivers.install import DRIVERS, ROOT, Missing
from drivers.limits import LIMITS
from drivers.running import Report, run
from drivers.suites import LONG, SHORT

OUT = ROOT / "benchmarks" / "results" / "drivers"
KIND = "acs_cl_drivers"
ENDS = ("passed", "failed", "limit", "skipped", "crashed", "timed out")

DEVICE = """
import json
from acs_cl import devices
d = devices.choose()
print(json.dumps({"platform": d.platform.name.strip(), "version": d.version.strip(),
    "device": d.name.strip(), "driver": d.driver_version.strip(), "units": d.max_compute_units}))
"""


def about(environment: Mapping[str, str]) -> dict[str, Any]:
    """The device that is there with a driver."""
    done = subprocess.run(
        [sys.executable, "-c", DEVICE], env={**os.environ, **environment}, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise Missing(f"it has no device: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Run the tool; exit code 1 if anything failed that is not a known limit."""
    parser = argparse.ArgumentParser(prog="drivers", description="the suites on drivers")
    parser.add_argument("drivers", nargs="*", help=f"some of {', '.join(DRIVERS)}")
    parser.add_argument("--short", action="store_true", help="the form of `make test`")
    parser.add_argument("--suite", action="append", default=[], help="only these suites")
    parser.add_argument("--out", type=Path, default=None, help=f"folder, for instance {OUT}")
    parser.add_argument("--limit-s", type=float, default=3600.0, help="for one suite")
    args = parser.parse_args(words)
    bad = 0
    for name in args.drivers or [name for name in DRIVERS if name != "at hand"]:
        try:
            environment = DRIVERS[name]()
            device = about(environment)
        except Missing as missing:
            print(f"{name} is not here: {missing}", flush=True)
            continue
        suites = SHORT if args.short else LONG
        reports: dict[str, Report] = {}
        for suite in (one for one in suites if not args.suite or one in args.suite):
            if not suites[suite].there:
                print(f"{name}: no files of {suite}", flush=True)
                continue
            report = reports[suite] = run(name, suites[suite], environment, args.limit_s)
            print(f"{name}, {device['device']}: {suite}: {in_words(report)}", flush=True)
            for test, (how, why) in report["not passed"].items():
                print(f"    {how}: {test}: {why}", flush=True)
            bad += sum(report.get(how, 0) for how in ("failed", "crashed", "timed out"))
            bad += bool(report.get("note"))
        if args.out is not None:
            _write(args.out, name, device, reports)
    return int(bad > 0)


def in_words(report: Report) -> str:
    """Counts, and how long it took."""
    counts = ", ".join(f"{report[how]:,} {how}" for how in ENDS if how in report)
    return f"{counts}, {report['seconds']} s {report.get('note', '')}".strip()


def _write(folder: Path, name: str, device: dict[str, Any], reports: dict[str, Report]) -> None:
    of = sources()
    document: dict[str, Any] = {
        KIND: 1,
        "name": name,
        **device,
        "date": datetime.date.today().isoformat(),
        "commit": of.commit,
        "sources": of.digest,
        "python": platform.python_version(),
        "pyopencl": version("pyopencl"),
        "suites": reports,
        "limits": [[part, cause] for driver, part, cause in LIMITS if driver == name],
    }
    folder.mkdir(parents=True, exist_ok=True)
    where = name if name != "at hand" else f"{device['device']}"
    path = folder / f"{'-'.join(where.lower().split())}.json"
    if path.exists():  # suites of the same sources stand beside each other
        before = json.loads(path.read_text(encoding="utf-8"))
        if before["sources"] == of.digest and before["driver"] == device["driver"]:
            document["suites"] = {**before["suites"], **reports}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"written to {path}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
