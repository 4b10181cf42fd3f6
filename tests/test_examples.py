"""The programs and notebooks of examples/ run, are short, and check their own results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyopencl as cl
import pytest

FOLDER = Path(__file__).resolve().parent.parent / "examples"
EXAMPLES = sorted([*FOLDER.glob("*.py"), *FOLDER.glob("*.ipynb")])
LONGEST = 80  # lines
SECONDS = 600


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda program: program.stem)
def test_an_example_runs_and_is_short(program: Path, tmp_path: Path, device: cl.Device) -> None:
    text = code_of(program)
    assert len(text.splitlines()) <= LONGEST
    assert "\nassert " in text, "an example shows that its result is right"
    environment = {name: text for name, text in os.environ.items() if name != "ACS_CL_BACKEND"}
    done = subprocess.run(
        [sys.executable, *([str(program)] if program.suffix == ".py" else ["-c", text])],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def code_of(program: Path) -> str:
    """A program, or the cells of a notebook one after the other."""
    text = program.read_text(encoding="utf-8")
    if program.suffix == ".py":
        return text
    cells = json.loads(text)["cells"]
    return "\n\n".join("".join(one["source"]) for one in cells if one["cell_type"] == "code")


def test_there_are_examples() -> None:
    assert 8 <= len(EXAMPLES) <= 16


def test_notebooks_hold_no_results() -> None:
    for notebook in FOLDER.glob("*.ipynb"):
        cells = json.loads(notebook.read_text("utf-8"))["cells"]
        assert cells[0]["cell_type"] == "markdown", "a notebook says what it is for"
        assert not any(one.get("outputs") or one.get("execution_count") for one in cells)
