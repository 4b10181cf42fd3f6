"""The programs of examples/ run, are short, and check their own results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyopencl as cl
import pytest

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.py"))
LONGEST = 60  # lines
SECONDS = 120


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda program: program.stem)
def test_an_example_runs_and_is_short(program: Path, tmp_path: Path, device: cl.Device) -> None:
    text = program.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    assert "\nassert " in text, "an example shows that its result is right"
    environment = {name: text for name, text in os.environ.items() if name != "ACS_CL_BACKEND"}
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_there_are_examples() -> None:
    assert 4 <= len(EXAMPLES) <= 8
