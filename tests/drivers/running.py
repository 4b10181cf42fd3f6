"""Run a suite on a driver, in processes of its own, and count how its tests ended.

A test that ends the process has crashed. What comes after it is run by another process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drivers.counting import OUTCOME
from drivers.limits import LIMITS
from drivers.suites import TESTS, Suite

CRASHES = 12
"""So many of them end a suite."""

Report = dict[str, Any]
Ends = dict[str, tuple[str, str]]
"""How each test ended, and why."""


def run(driver: str, suite: Suite, environment: Mapping[str, str], limit_s: float) -> Report:
    """Run it; the counts, and everything that did not pass, with its reason."""
    began, ends, note = time.monotonic(), Ends(), ""
    for _ in range(CRASHES):
        left = limit_s - (time.monotonic() - began)
        whole = {**os.environ, **environment, **suite.environment}
        found, running, code = _once(suite, whole, left, ends)
        ends |= found
        if running is not None:
            how = ("timed out", "") if code is None else ("crashed", f"status {code}")
            ends[running] = how
        if code is None:
            note = f"stopped after {limit_s:.0f} s"
        elif running is None and code not in (0, 1, 5):
            note = f"pytest ended with {code}"
        if running is None or code is None:
            break
    counts = Counter(_counted(driver, test, how) for test, (how, _) in ends.items())
    report: Report = {**counts, "seconds": round(time.monotonic() - began)}
    report["not passed"] = {
        test: [how, why] for test, (how, why) in ends.items() if how not in ("passed", "skipped")
    }
    skips = Counter(why.removeprefix("Skipped: ") for how, why in ends.values() if how == "skipped")
    report["skipped because"] = dict(skips.most_common())
    return report | ({"note": note} if note else {})


def _counted(driver: str, test: str, how: str) -> str:
    """What it counts as: a failure that is the driver's own, and is known, is a limit."""
    known = any(name == driver and part in test for name, part, _ in LIMITS)
    return "limit" if known and how not in ("passed", "skipped") else how


def _once(
    suite: Suite, environment: dict[str, str], limit_s: float, ended: Ends
) -> tuple[Ends, str | None, int | None]:
    """One process: how tests ended, the test that ended it, and its exit code, None if it was
    stopped."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "outcome")
        command = [
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p",
            "drivers.counting", "--tb=no", *suite.options, *suite.files,
            *(f"--deselect={test}" for test in ended),
        ]  # fmt: skip
        path = os.pathsep.join([str(TESTS), environment.get("PYTHONPATH", "")])
        environment |= {OUTCOME: str(out), "PYTHONPATH": path}
        try:
            code: int | None = subprocess.run(
                command, cwd=TESTS, env=environment, timeout=max(limit_s, 1), check=False,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            code = None
        return (*_read(out), code)


def _read(out: Path) -> tuple[Ends, str | None]:
    ends, running = Ends(), None
    for line in out.read_text("utf-8").splitlines() if out.exists() else ():
        what, test, why = json.loads(line)
        if what == "started":
            running = test
        elif what == "finished":
            running = None
        elif ends.get(test, ("passed",))[0] == "passed":
            ends[test] = (what, why)
    return ends, running
