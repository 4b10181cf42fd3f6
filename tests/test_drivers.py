"""Another driver at `make test`: Intel's CPU runtime, which reorders independent kernels.

The suites in their short form and a few hostile kernels, each in a process of its own. `make test`
fetches the runtime into build/drivers meanwhile; where it cannot, these are skipped and say why.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from drivers import install, running, suites
from drivers.install import Missing
from drivers.limits import LIMITS
from drivers.suites import Suite
from sampling import SAMPLE
from traps import all_traps

LIMIT_S = 300
"""For one suite, which takes a fraction of that on a machine that does nothing else."""


TRAPS_S = 8
"""No more jobs of traps begin after that."""

STEP_S = 30
"""No step of one takes longer: Intel's compiler never ends on `__attribute__((alias))`."""


@pytest.fixture(scope="module")
def intel() -> install.Environment:
    """What has programs find Intel's runtime."""
    try:
        return install.intel()
    except Missing as missing:
        pytest.skip(f"no runtime of Intel's: {missing}")


@pytest.mark.parametrize("name", suites.SHORT)
def test_intels_runtime_passes(name: str, intel: install.Environment) -> None:
    report = running.run("Intel", suites.SHORT[name], intel, LIMIT_S)
    assert report["not passed"] == {}
    assert "note" not in report
    assert report["passed"] > 5, report


def test_no_trap_catches_intels_runtime(intel: install.Environment, tmp_path: Path) -> None:
    kinds = sorted({trap.name.partition("/")[0] for trap in all_traps() if trap.shares})
    out = tmp_path / "traps.json"
    command = [
        sys.executable, str(suites.TESTS / "traps"), "--device", "0", "--jobs", "1",
        "--together", "16", "--step", "16", "--forms", "replay,when", "--seconds", str(TRAPS_S),
        "--limit", str(STEP_S),
        "--only", f"{kinds[SAMPLE % len(kinds)]}/", "--out", str(out),
    ]  # fmt: skip
    done = subprocess.run(
        command, env={**os.environ, **intel}, timeout=LIMIT_S, check=False, capture_output=True,
        text=True,
    )  # fmt: skip
    assert out.exists(), done.stderr
    found = json.loads(out.read_text("utf-8"))
    assert "Intel(R) OpenCL" in found["device"]
    assert found["wrong"] == [], f"ACS_CL_SAMPLE={SAMPLE}"
    assert found["traps"] - found["skipped"] > 5


def test_a_driver_that_is_not_there_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(Missing, match="there is none for riscv64"):
        install.intel()


def test_every_way_a_test_can_end_is_counted(tmp_path: Path) -> None:
    tests = tmp_path / "test_ends.py"
    tests.write_text(
        "import os, pytest\n"
        "def test_right(): pass\n"
        "def test_wrong(): assert 1 == 2\n"
        "def test_left_out(): pytest.skip('no such thing')\n"
        "def test_ends_the_process(): os._exit(7)\n"
        "def test_after_it(): pass\n"
        "@pytest.fixture\ndef broken(): raise ValueError('no')\n"
        "def test_whose_fixture_fails(broken): pass\n",
        "utf-8",
    )
    suite = Suite((str(tests),), ("--rootdir", str(tmp_path), "-c", "/dev/null"))
    report = running.run("none", suite, {}, 60)
    counts = {how: report[how] for how in ("passed", "failed", "skipped", "crashed")}
    assert counts == {"passed": 2, "failed": 2, "skipped": 1, "crashed": 1}
    assert report["skipped because"] == {"no such thing": 1}
    ends = {test.rpartition("::")[2]: how for test, (how, _) in report["not passed"].items()}
    assert ends == {
        "test_wrong": "failed",
        "test_ends_the_process": "crashed",
        "test_whose_fixture_fails": "failed",
    }


def test_a_test_that_hangs_ends_its_suite(tmp_path: Path) -> None:
    tests = tmp_path / "test_hang.py"
    tests.write_text("import threading\ndef test_for_ever(): threading.Event().wait()\n", "utf-8")
    report = running.run("none", Suite((str(tests),), ("-c", "/dev/null")), {}, 2)
    assert "passed" not in report
    assert report["note"] == "stopped after 2 s"


def test_limits_name_drivers_and_committed_results_hold_no_failures() -> None:
    assert {driver for driver, _, _ in LIMITS} <= install.DRIVERS.keys()
    for path in (install.ROOT / "benchmarks/results/drivers").glob("*.json"):
        document = json.loads(path.read_text("utf-8"))
        for name, report in document["suites"].items():
            assert not report.keys() & {"failed", "crashed", "timed out"}, (path.name, name)
