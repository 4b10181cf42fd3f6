"""Commands whose reader leaves early end in silence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from acs_cl.host.pipes import LEFT, quietly

PROGRAM = "import sys; print('much\\n' * 100_000)"
WORDS = {
    "help": ["acs_cl", "--help"],
    "emu": ["acs_cl", "emu", "compare", "--width", "4", "--steps", "4", "--json"],
    "emu by itself": ["acs_cl.emu", "run", "ideal", "--width", "4", "--steps", "4"],
    "bench": ["acs_cl", "bench", "--list"],
    "doctor": ["acs_cl", "doctor", "--json"],
    "demo": ["acs_cl", "demo", "--quick"],
    "run": ["acs_cl", "run", "--out", "report.txt", "program.py"],
}


def left_alone(words: list[str], folder: Path, both: bool = False) -> tuple[int, str]:
    """Exit code and stderr of a command that writes to a pipe which nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    # with it the parser's help meets the pipe by itself, says nothing, and leaves with 0
    there = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", *words], stdout=writer, cwd=folder, env=there, text=True,
            timeout=300, stderr=writer if both else subprocess.PIPE,
        )  # fmt: skip
    finally:
        os.close(writer)
    return done.returncode, done.stderr or ""


@pytest.mark.parametrize("what", WORDS)
def test_a_command_that_nobody_reads_ends_in_silence(what: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    code, said = left_alone(WORDS[what], tmp_path)
    assert code == LEFT
    assert "Traceback" not in said
    assert "BrokenPipe" not in said


def test_so_does_one_whose_errors_nobody_reads(tmp_path: Path) -> None:
    code, _ = left_alone(["acs_cl", "emu", "run", "nothing"], tmp_path, both=True)
    assert code == LEFT


def test_a_command_that_is_read_to_its_end_has_its_own_code() -> None:
    assert quietly(lambda: 3) == 3


def test_a_program_may_close_its_output(tmp_path: Path) -> None:
    program = "import sys; print('said'); sys.stdout.close()"
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "acs_cl", "run", "program.py"], capture_output=True, cwd=tmp_path,
        text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "said\n")
    assert done.stderr == (
        "acs-cl run: the program made no queue of PyOpenCL's; one that makes an acs_cl.Runtime has "
        "its measure()\n"
    )


def test_another_broken_pipe_is_an_error() -> None:
    def fails() -> int:
        raise BrokenPipeError("a worker's")

    with pytest.raises(BrokenPipeError, match="a worker's"):
        quietly(fails)
