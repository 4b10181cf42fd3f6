"""What a reader is shown, counted: hangs and bottlenecks that are named, and how fast a page opens.

    python tests/seeing.py --out seeing.json

In: the tests that plant things, all of them, and Chromium for the page. Out: JSON: how many were
planted and named on each backend, and a page of a measured step, opened several times.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any
from xml.etree import ElementTree

import numpy as np
from browser import Page, chromium
from test_watchdog import BACKENDS

import acs_cl as acs
from acs_cl.benchmarks.suite import documents, provenance

TESTS = Path(__file__).resolve().parent
HANGS = "test_watchdog.py::test_what_hangs_is_named"
BOTTLENECKS = "test_report_page.py::test_the_page_names_first_what_was_planted"
LAUNCHES, ARRAYS, TIMES = 5000, 50, 5
SOURCE = """
kernel void turn(global uint *x)
{ int i = get_global_id(0); for (int k = 0; k < 200; ++k) x[i] = x[i] * 3 + 1; }
"""


def planted(test: str) -> dict[str, dict[str, int]]:
    """Run a test with everything that it plants; how much of it was named, by backend."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "ends.xml")
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={out}",
             str(TESTS / test)],
            env=os.environ | {"ACS_CL_EVERY": "1"}, check=False,
        )  # fmt: skip
        return counted(out)


def counted(path: Path) -> dict[str, dict[str, int]]:
    """Count what a JUnit file says of each backend."""
    found: dict[str, dict[str, int]] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        first = case.get("name", "").partition("[")[2].partition("-")[0]
        where = first if first in BACKENDS else "all"
        counts = found.setdefault(where, {"planted": 0, "named": 0})
        counts["planted"] += 1
        counts["named"] += not len(case.findall("failure") + case.findall("error"))
        assert case.find("skipped") is None, case.get("name")
    return found


def page() -> dict[str, Any]:
    """Measure a step, write its page, and open that several times."""
    with acs.Runtime() as rt, tempfile.TemporaryDirectory() as folder:
        prog = rt.build(SOURCE)
        arrays = [rt.zeros(64, np.uint32) for _ in range(ARRAYS)]
        for x in arrays:
            prog.turn((64,), (64,), x)
        rt.finish()
        with rt.measure() as m:
            for launch in range(LAUNCHES):
                prog.turn((64,), (64,), arrays[launch % ARRAYS])
        path = Path(folder, "page.html")
        m.report(path)
        opened = []
        with Page() as browser:
            for _ in range(TIMES):
                browser.open(path)
                assert browser.js("acs.count") >= LAUNCHES
                opened.append(round(browser.opened_s, 3))
        return {
            "launches": LAUNCHES, "opened_s": opened, "median_s": median(opened),
            "bytes": path.stat().st_size,
        }  # fmt: skip


def main() -> int:
    """Count everything; 1 if something was not named."""
    parser = argparse.ArgumentParser(prog="python tests/seeing.py", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if chromium() is None:
        parser.error("there is no Chromium on the PATH")
    with acs.Runtime() as rt:
        device, driver = rt.device.name, rt.device.driver_version
    report = {
        "what": "what is planted and named, and a page that opens",
        "date": datetime.now(timezone.utc).date().isoformat(), **provenance.sources().plain(),
        "device": device, "driver": driver, "load": round(os.getloadavg()[0], 1),
        "page": page(), "hangs": planted(HANGS), "bottlenecks": planted(BOTTLENECKS),
    }  # fmt: skip
    documents.write(args.out, report)
    return int(any(
        one["named"] < one["planted"]
        for kind in ("hangs", "bottlenecks") for one in report[kind].values()
    ))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
