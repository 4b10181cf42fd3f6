"""The scheduler kernel in Oclgrind, which finds accesses outside of buffers, reads of what was
never written, and races. It knows nothing of order that passes from group to group through atomics,
so races are looked for where one group runs everything.

It is found where Debian's package puts it, or by `ACS_CL_OCLGRIND`, the path of its driver.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
DRIVER = Path(os.environ.get("ACS_CL_OCLGRIND", "/usr/lib/oclgrind/liboclgrind-rt-icd.so"))


@pytest.mark.parametrize(
    ("groups", "checks"),
    [("1", ("UNINITIALIZED", "DATA_RACES")), ("2", ()), ("3", ("UNINITIALIZED",)), ("4", ())],
)
def test_oclgrind_has_nothing_to_report(
    tmp_path: Path, groups: str, checks: tuple[str, ...]
) -> None:
    if not DRIVER.exists():
        pytest.skip(f"no Oclgrind at {DRIVER}")
    (tmp_path / "grind.icd").write_text(f"{DRIVER}\n")
    environment = {key: value for key, value in os.environ.items() if key != "PYOPENCL_CTX"}
    environment |= {f"OCLGRIND_{check}": "1" for check in checks}
    environment["OCL_ICD_VENDORS"] = str(tmp_path)
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(HERE / "grind.py"), groups],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["right"] * 12
