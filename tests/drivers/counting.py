"""Inside pytest: write down how each test ended, at once, so that a crash loses nothing.

Loaded by `-p drivers.counting`; `ACS_CL_OUTCOME` names the file, a JSON record a line.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

OUTCOME = "ACS_CL_OUTCOME"


def _write(*record: str) -> None:
    with Path(os.environ[OUTCOME]).open("a", encoding="utf-8") as out:
        out.write(json.dumps(record) + "\n")


def pytest_runtest_logstart(nodeid: str, location: Any) -> None:
    """A test begins."""
    _write("started", nodeid, "")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Each of its three parts: what is worst counts."""
    if report.when == "call" or report.outcome != "passed":
        why = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)  # its path is this machine's
            why = str(report.longrepr) if crash is None else f"line {crash.lineno}: {crash.message}"
        _write(report.outcome, report.nodeid, why[-300:])


def pytest_runtest_logfinish(nodeid: str, location: Any) -> None:
    """A test is over."""
    _write("finished", nodeid, "")
