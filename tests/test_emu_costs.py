"""What is said of kernels of rigid bodies is what Oclgrind counts, where there is one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from test_oclgrind import DRIVER

from acs_cl.benchmarks.validation.kernel_work import BUILT_IN, RIGID

HERE = Path(__file__).resolve().parent
ONE_STEP = ("fadd", "fsub", "fmul", "fneg", "fcmp", "select", "sitofp")
CALLED_ONCE = ("judge",)
"""Kernels that ask for one coordinate; all others ask for two."""


def counted(output: str) -> dict[str, Counter[str]]:
    """Instructions by kernel."""
    found: dict[str, Counter[str]] = {}
    kernel = ""
    for line in output.splitlines():
        if head := re.match(r"Instructions executed for kernel '(\w+)'", line):
            kernel = head[1]
        elif row := re.match(r"\s*(\d+) - (?:call _Z\d+)?([a-z_]+2?)", line):
            found.setdefault(kernel, Counter())[row[2]] += int(row[1])
    return found


def steps(kernel: str, count: Counter[str]) -> float:
    """Of a work-item."""
    items = count["get_global_idj"] / (1 if kernel in CALLED_ONCE else 2)
    total = sum(count[name] for name in ONE_STEP) + BUILT_IN["divide"] * count["fdiv"]
    for name, cost in BUILT_IN.items():
        # mangled types of arguments follow: f, ff, fff, Dv3_f
        total += cost * sum(n for key, n in count.items() if re.fullmatch(f"{name}f*", key))
    return total / items


@pytest.mark.parametrize("workload", ["humanoid", "walker2d", "grasp"])
def test_steps_are_those_that_oclgrind_counts(tmp_path: Path, workload: str) -> None:
    if not DRIVER.exists():
        pytest.skip(f"no Oclgrind at {DRIVER}")
    (tmp_path / "grind.icd").write_text(f"{DRIVER}\n")
    environment = {key: value for key, value in os.environ.items() if key != "PYOPENCL_CTX"}
    environment |= {"OCL_ICD_VENDORS": str(tmp_path), "OCLGRIND_INST_COUNTS": "1"}
    done = subprocess.run(
        [sys.executable, str(HERE / "count_steps.py"), workload],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = counted(done.stdout)
    checked = found.keys() - {"accumulate", "begin_again"}  # of which items do different things
    assert len(checked) >= 7
    for kernel in checked:
        assert steps(kernel, found[kernel]) == pytest.approx(RIGID[kernel][0], abs=1), kernel
