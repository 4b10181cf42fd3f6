"""Counting random programs: what dies, hangs or comes out wrong is told with its seed, and nothing
is counted twice. The processes here only pretend."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import random_batches

PRETENDS = """
import argparse, json, os, signal, sys
parser = argparse.ArgumentParser()
for name in ("--kind", "--device", "--until", "--out"): parser.add_argument(name)
for name in ("--first", "--count"): parser.add_argument(name, type=int)
args = parser.parse_args()
done, wrong = 0, []
def save(seed):
    with open(args.out, "w") as file:
        json.dump({"next": seed, "counts": {"programs": done, "lanes: programs": done},
                   "wrong": wrong, "device": "pretended"}, file)
save(args.first)
for seed in range(args.first, args.first + args.count):
    with open(args.out + ".now", "w") as file: file.write(f"{seed:20}")
    if seed == 7 or (seed == 23 and args.count > 1): os.kill(os.getpid(), signal.SIGSEGV)
    if seed == 47: signal.signal(signal.SIGINT, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGINT)
    if seed == 31: wrong.append({"seed": seed, "what": "pretended"})
    done += 1
    if seed % 5 == 4: save(seed + 1)
save(args.first + args.count)
sys.exit(bool(wrong))
"""


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "pretends.py"
    place.write_text(PRETENDS)
    monkeypatch.setattr(random_batches, "TOOL", place)
    return place


def run(path: Path, *words: str) -> tuple[int, dict[str, Any]]:
    ended = random_batches.main([*words, "--json", str(path)])
    return ended, json.loads(path.read_text())


def test_what_dies_is_run_again_alone_and_counted_once(tool: Path, tmp_path: Path) -> None:
    ended, report = run(tmp_path / "out.json", "--programs", "40", "--processes", "1")
    pool = report["pool"]
    assert ended == 1
    assert pool["programs"] == pool["configurations"]["lanes"]["programs"] == 40
    assert [(one["seed"], one["alone"]) for one in pool["died"]] == [
        (7, False), (7, True), (23, False),
    ]  # fmt: skip
    assert [one["seed"] for one in pool["wrong"]] == [7, 31]
    assert pool["seeds"] == [[0, 7], [8, 41]]


def test_what_ctrl_c_ends_has_not_died(tool: Path, tmp_path: Path) -> None:
    path, words = tmp_path / "out.json", ("--programs", "10", "--first", "45", "--processes", "1")
    ended, report = run(path, *words)
    pool = report["pool"]
    assert ended == 0
    assert not pool["died"]
    assert not pool["wrong"]
    assert pool["seeds"] == [[55, 65]]  # nobody knows how far those before have come


def test_a_run_goes_on_behind_its_seeds_and_reports_add_up(tool: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    run(one, "--programs", "40", "--first", "100", "--processes", "2")
    _, more = run(one, "--programs", "10", "--continue", "--processes", "2")
    assert (more["pool"]["programs"], more["pool"]["seeds"]) == (50, [[100, 150]])
    run(other, "--programs", "5", "--first", "200", "--processes", "1")
    both = tmp_path / "both.json"
    _, whole = run(both, "--merge", str(one), str(other))
    assert (whole["pool"]["programs"], whole["pool"]["seeds"]) == (55, [[100, 150], [200, 205]])
    with pytest.raises(SystemExit, match="in several reports"):
        run(both, "--merge", str(one), str(one))
    other.write_text(json.dumps({**whole, "device": "another"}))
    with pytest.raises(SystemExit, match="another"):
        run(both, "--merge", str(one), str(other))


def test_a_report_of_other_sources_is_not_gone_on_with(tool: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    _, report = run(path, "--programs", "5", "--processes", "1")
    path.write_text(json.dumps({**report, "digest": "another"}))
    with pytest.raises(SystemExit, match="another"):
        run(path, "--programs", "5", "--continue")


def test_nothing_new_begins_when_the_time_is_over(tool: Path, tmp_path: Path) -> None:
    _, report = run(tmp_path / "out.json", "--programs", "5", "--seconds", "0")
    assert "pool" not in report
    assert report["processes"] == os.cpu_count()
    assert report["versions"]["python"] == sys.version.split()[0]
