"""Progress: a bar with the time left where somebody looks, else lines. Ctrl-C keeps results."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Environment

from acs_cl.benchmarks.suite import bars, documents, run
from acs_cl.emu.generate import generate
from acs_cl.emu.machines import MACHINES
from acs_cl.emu.report import sweep
from acs_cl.host.progress import Progress, duration, left_s
from acs_cl.tools import cli


class Terminal(io.StringIO):
    """Somebody looks at it."""

    def isatty(self) -> bool:
        return True


def test_lines_tell_share_and_time_left() -> None:
    stream = io.StringIO()
    say = Progress(stream)
    say("first", 0.0)
    say("second", 0.5)
    say("", 1.0)
    first, second = stream.getvalue().splitlines()
    assert first == "[  0%] first"
    assert second == "[ 50%, 0 s left] second"


def test_terminal_has_a_bar_that_is_gone_afterwards() -> None:
    stream = Terminal()
    say = Progress(stream)
    say("first", 0.0)
    say("second", 0.5)
    say.hide()
    say("", 1.0)
    assert "second" in stream.getvalue()
    assert "50%|" in stream.getvalue()
    assert "<" in stream.getvalue(), "the time left stands behind the time gone"
    assert not stream.getvalue().rpartition("\r")[2].strip()


def test_terminal_without_tqdm_has_lines() -> None:
    code = (
        "import sys; sys.modules['tqdm'] = None\n"
        "from acs_cl.host.progress import Progress\n"
        "sys.stderr.isatty = lambda: True\n"
        "Progress()('first', 0.25)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[ 25%, 0 s left] first\n"


@pytest.mark.parametrize(
    ("took_s", "share", "left"), [(10, 0.5, 10), (3, 0.75, 1), (5, 1.0, 0), (5, 0.0, None)]
)
def test_time_left_is_in_proportion(took_s: float, share: float, left: float | None) -> None:
    assert left_s(took_s, share) == left


def test_durations_are_for_people() -> None:
    assert [duration(s) for s in (0.2, 59, 61, 3725)] == ["0 s", "59 s", "1:01", "1:02:05"]


# ---- Ctrl-C --------------------------------------------------------------------------------------


def cut_off(after: int) -> Iterator[documents.Document]:
    """Documents, of which the last ones never come."""
    found: dict[str, int] = {}
    for turn in range(10):
        if turn == after:
            raise KeyboardInterrupt
        found[f"turn {turn}"] = turn
        yield {"found": found}


def test_what_was_measured_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "out.json"
    document = documents.last_written(cut_off(3), str(place))
    assert list(document["found"]) == ["turn 0", "turn 1", "turn 2"]
    assert documents.exit_code(document, 0) == 130
    assert json.loads(place.read_text("utf-8")) == document
    assert "interrupted" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_nothing_measured_is_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt):
        documents.last_written(cut_off(0), None)


def test_files_are_whole_at_any_time(tmp_path: Path) -> None:
    place = tmp_path / "out.json"
    documents.write(place, {"old": 1})
    with pytest.raises(TypeError):
        documents.write(place, {"new": object()})
    assert documents.read(place) == {"old": 1}
    documents.write("/dev/null", {"new": 1})


def test_benchmarks_keep_those_that_ended(
    tmp_path: Path, environment: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    class Quick:
        """Measures nothing, and is interrupted the second time."""

        turns = 0

        def measure(self, settings: object) -> dict[str, object]:
            Quick.turns += 1
            if Quick.turns == 2:
                raise KeyboardInterrupt
            return {"answer": 42}

        def bars(self, result: object, there: object) -> list[dict[str, object]]:
            return []

    environment(ACS_CL_CHECK=None, ACS_CL_BACKEND=None, ACS_CL_TRACE=None)
    place = tmp_path / "out.json"
    args = run.parser().parse_args(["all"])
    document = documents.last_written(run.growing(args, lambda name: Quick()), place)
    assert documents.exit_code(document, 0) == 130
    assert list(documents.read(place)["benchmarks"]) == ["overhead"]
    captured = capsys.readouterr()
    assert "\noverhead, " in captured.out
    assert "[  0%] overhead" in captured.err
    run.say.end()


@pytest.mark.parametrize("ends", ["time", "signal"])
def test_a_benchmark_of_parts_keeps_those_that_came(
    ends: str, tmp_path: Path, environment: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    class Parts:
        """Measures a part after another, and is cut off."""

        closed = False

        def growing(self, settings: object) -> Iterator[dict[str, object]]:
            try:
                for part in range(9):
                    if ends == "signal" and part == 2:
                        raise KeyboardInterrupt
                    yield {"parts": part + 1}
            finally:
                Parts.closed = True

        def bars(self, result: Any, there: object) -> list[dict[str, object]]:
            return [bars.target("parts", result["parts"], "at least", 9, "")]

    environment(ACS_CL_CHECK=None, ACS_CL_BACKEND=None, ACS_CL_TRACE=None)
    args = run.parser().parse_args(["spawn", "--within", "1e-9" if ends == "time" else "600"])
    document = documents.last_written(
        run.growing(args, lambda name: Parts()), tmp_path / "out.json"
    )
    assert Parts.closed
    found = documents.read(tmp_path / "out.json")["benchmarks"]["spawn"]
    assert found["run"]["commit"]
    assert ("left_out" in found, found["parts"]) == ((True, 1) if ends == "time" else (False, 2))
    assert documents.exit_code(document, 0) == (130 if ends == "signal" else 0)
    assert f"MISSED parts: {found['parts']}" in capsys.readouterr().out
    run.say.end()


def test_sweep_keeps_the_values_that_were_run() -> None:
    told: list[str] = []

    def say(text: str, share: float) -> None:
        if len(told) == 2:
            raise KeyboardInterrupt
        told.append(text)

    found = sweep(generate("fft", 4, 4), MACHINES["paper"], "acs_hw", "N", [1, 2, 4, 8], say)
    assert found.values == (1, 2)
    assert len(found.outcomes) == len(found.serial) == 2
    assert told == ["N=1", "N=2"]


def test_command_is_interrupted_between_values(tmp_path: Path) -> None:
    graph = ["--graph", "fft", "--width", "64", "--steps", "100"]
    command = [sys.executable, "-m", "acs_cl", "emu", "sweep", *graph, "acs_hw", "N"]
    command += map(str, range(1, 400))
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert running.stderr is not None
    seen = ""
    while "N=2" not in seen and running.poll() is None:
        seen = running.stderr.readline()
    assert running.poll() is None, seen
    os.kill(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert running.returncode == 130, err
    assert "by N" in out
    assert "interrupted" in err


def test_doctor_tells_what_it_measures(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--fresh"]) == 0
    err = capsys.readouterr().err
    assert "measuring" in err
    assert "what overlaps" in err
