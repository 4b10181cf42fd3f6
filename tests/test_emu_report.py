"""What the emulator tells: tables, JSON, pictures, and its command line."""

from __future__ import annotations

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import Enter
from emu_runs import SMALL, random_trace

from acs_cl.benchmarks.validation import emulator_speed
from acs_cl.emu import plots
from acs_cl.emu.cli import command_line
from acs_cl.emu.generate import generate
from acs_cl.emu.machines import MACHINES
from acs_cl.emu.plots import SPENT, draw
from acs_cl.emu.policies import ALL
from acs_cl.emu.report import compare, comparison_text, plain, sweep, sweep_text
from acs_cl.emu.spec import WindowSpec
from acs_cl.emu.trace import HEAD_KEYS, KEYS, Entry, Trace, parse
from acs_cl.emu.window_unit import estimate
from acs_cl.errors import UsageError
from acs_cl.observe.slices import Slice
from acs_cl.observe.trace import VERSION
from acs_cl.tools.cli import main

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("design/emulator.md", "reference/formats.md")
DOCS = "\n".join((ROOT / "docs" / page).read_text("utf-8") for page in PAGES)
SPEED = Path(emulator_speed.__file__).parents[1] / "results" / "emulator-speed.json"
GRAPH = ["--graph", "fft", "--width", "4", "--steps", "5"]


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command that goes well prints."""
    assert command_line(words) == 0
    return capsys.readouterr().out


def test_a_comparison_has_all_policies_the_bounds_and_says_simulated() -> None:
    found = compare(random_trace(3), SMALL)
    assert [outcome.policy.partition("(")[0] for outcome in found.outcomes] == list(ALL)
    text = comparison_text(found)
    assert text.startswith("Simulated (model clock)")
    assert "bound: critical path" in text
    assert "bound: work" in text
    assert "missing" not in text
    document = plain(found)
    assert document["simulated"] is True
    assert document["clock"] == "model"
    assert json.loads(json.dumps(document)) == document


def test_a_policy_that_is_named_twice_is_run_once() -> None:
    texts = ["acs_hw", "acs_hw(N=32)", "serial", "acs_hw(bits=6)", "acs_hw"]
    names = [outcome.policy for outcome in compare(random_trace(3), SMALL, texts).outcomes]
    assert names == ["serial", "acs_hw(N=32, M=32)", "acs_hw(N=32, M=32, bits=6)"]


def test_a_trace_with_missing_edges_says_so() -> None:
    found = compare(random_trace(3)._replace(complete=False), SMALL, ["ideal"])
    assert "Edges are known to be missing" in comparison_text(found)


@pytest.mark.parametrize(
    ("policy", "axis"),
    [("acs_hw(M=9)", "N"), ("acs_hw", "M"), ("acs_sw(N=4, threads=2)", "threads"),
     ("streams", "S"), ("serial", "units"), ("ideal", "units"), ("acs_hw", "clock_mhz"),
     ("acs_sw", "latency_ns"), ("acs_sw", "sync_ns"), ("serial", "launch_ns"),
     ("on_device", "record_ns"), ("on_device", "slower_few")],
)  # fmt: skip
def test_a_sweep_varies_one_number(policy: str, axis: str) -> None:
    found = sweep(random_trace(4), SMALL, policy, axis, [1, 2, 8])
    assert len(found.outcomes) == len(found.serial) == 3
    assert found.outcomes[0].policy.partition("(")[0] == policy.partition("(")[0]
    if axis in ("N", "M", "threads", "S"):
        assert f"{axis}=2" in found.outcomes[1].policy
        assert found.serial[0] == found.serial[1]
    text = sweep_text(found)
    assert text.startswith("Simulated (model clock)")
    assert f"by {axis}" in text


def test_what_cannot_be_varied_is_refused() -> None:
    with pytest.raises(UsageError, match="serial has no 'N'; vary units"):
        sweep(random_trace(4), SMALL, "serial", "N", [1])


def test_the_window_over_time_has_the_average_that_is_told() -> None:
    for outcome in compare(generate("fft", 8, 12), MACHINES["paper"]).outcomes:
        width = outcome.window[1][0] if outcome.window else 0
        total = sum(level for _, level in outcome.window) * width
        end_ns = outcome.makespan_ns - MACHINES["paper"].host.sync_ns
        if outcome.policy.startswith("acs_hw"):
            assert total / end_ns == pytest.approx(outcome.window_slots, rel=0.01)
        assert bool(outcome.window) == bool(outcome.window_slots)


def test_pictures_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    trace = random_trace(5)
    draw(compare(trace, SMALL, ["acs_hw", "ideal"]), tmp_path / "a.png")
    draw(sweep(trace, SMALL, "acs_hw", "N", [1, 4]), tmp_path / "b.png")
    for name in ("a.png", "b.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_a_comparison_has_a_strip_for_each_policy_all_on_one_scale() -> None:
    figures = pytest.importorskip("matplotlib.figure")
    for policies, windows in ((["acs_hw", "ideal"], 1), (["ideal"], 0)):
        figure = figures.Figure()
        found = compare(generate("fft", 8, 40), MACHINES["paper"], policies)
        plots._comparison(figure, found)
        names = [outcome.policy for outcome in found.outcomes]
        strips = figure.axes[1 : 1 + len(names)]
        assert [axes.get_ylabel() for axes in strips] == names
        assert len(figure.axes) == 2 + len(names) + windows
        assert len({(axes.get_xlim(), axes.get_ylim()) for axes in strips}) == 1


def test_a_device_with_a_group_a_unit_is_as_full_as_its_units() -> None:
    """Groups of one work-item keep a thread of a CPU as busy as large ones."""
    for name, counted, threads in (("cpu2", "units", 1), ("paper", "threads", 32)):
        machine = MACHINES[name]
        trace = Trace("one", [Entry(1, "k", groups=1, items=1, group_ns=9_000)])
        found = compare(trace, machine, [])
        assert found.whole[0] == counted
        outcome = found.outcomes[0]
        bin_ns = outcome.occupied[1][0]
        assert sum(level for _, level in outcome.occupied) * bin_ns == 9_000 * threads
        assert max(level for _, level in outcome.occupied) <= found.whole[1]


def test_a_sweep_is_drawn_from_the_least_value_to_the_most() -> None:
    figures = pytest.importorskip("matplotlib.figure")
    figure = figures.Figure()
    plots._sweep(figure, sweep(generate("fft", 8, 8), MACHINES["paper"], "serial", "units", [8, 2]))
    assert list(figure.axes[0].lines[0].get_xdata()) == [2, 8]


@pytest.mark.parametrize("count", [1, 2, 127, 128, 129, 1000, 1024])
def test_a_level_drawn_in_fewer_steps_has_the_same_average(count: int) -> None:
    levels = [(1_000 * place, float(place * 37 % 11)) for place in range(count)]
    times, means = plots._averages(levels)
    assert len(times) == len(means) <= plots.POINTS + 1
    if count > 1:
        assert times[-1] == count / 1_000
        drawn = sum(mean * (b - a) for mean, (a, b) in zip(means, pairwise(times), strict=False))
        assert drawn == pytest.approx(sum(level for _, level in levels) / 1_000)


def test_the_command_line_runs_compares_and_sweeps(capsys: pytest.CaptureFixture[str]) -> None:
    one = said(["run", "acs_hw(N=8, M=16)", *GRAPH], capsys)
    assert "acs_hw(N=8, M=16)" in one
    assert "serial" in one
    assert "streams" not in one
    several = said(["compare", *GRAPH, "--machine", "h200"], capsys)
    assert "on machine 'h200'" in several
    assert all(name in several for name in ALL)
    swept = said(["sweep", "acs_hw", "N", "1", "2", *GRAPH, "--json"], capsys)
    assert json.loads(swept)["values"] == [1, 2]


def test_a_trace_that_was_made_is_run_from_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By spans, too: the same edges, so the same times."""
    texts = []
    for extra in ([], ["--spans"]):
        path = str(tmp_path / f"made{len(extra)}.jsonl")
        assert "20 launches" in said(["make", *GRAPH, *extra, "--out", path], capsys)
        texts.append(said(["compare", "--trace", path, "serial", "ideal"], capsys))
    assert texts[0].splitlines()[4] == texts[1].splitlines()[4]
    assert generate("fft", 4, 5).name in texts[0]


def test_a_timeline_is_converted_with_its_gaps_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "timeline.jsonl"
    one = {"name": "k", "clock": "device", "start_ns": 0, "end_ns": 9, "groups": 3, "items": 8}
    there = [one | {"number": number, "reads": [], "writes": []} for number in (1, 3)]
    lines = [{"acs_cl_trace": 2}, *there]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    out = str(tmp_path / "trace.jsonl")
    assert "What it does not tell" in said(["convert", str(path), "--out", out], capsys)
    text = said(["compare", "--trace", out, "ideal"], capsys)
    assert "known to be missing" in text
    assert "as long here as where the trace was measured" in text
    # the timeline itself is taken, too, and says the same
    assert command_line(["compare", "--trace", str(path), "ideal"]) == 0
    caught = capsys.readouterr()
    assert "What it does not tell" in caught.err
    assert caught.out.splitlines()[2:] == text.splitlines()[2:]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["run", "nothing"], "no policy is called"),
        (["run", "step.json"], "a trace is named by --trace"),
        (["run", "serial", "--machine", "abacus"], "no machine is called"),
        (["run", "serial", "--trace", "nowhere.jsonl"], "cannot be read"),
        (["run", "serial", "--groups", "3", "2"], "the lower first"),
        (["run", "serial", "--groups", "1", f"{1 << 31}"], "from 1 to 2,147,483,647"),
        (["run", "serial", "--width", "0"], "at least 1"),
        (["run", "serial", "--width", "10000000", "--steps", "2"], "at most 16,777,216 launches"),
        (["run", f"acs_sw(N={'9' * 5000})"], "numbers from 1 to 1,048,576"),
        (["run", "serial", "--png", "nowhere/a.png"], "there is no such folder"),
        (["run", "serial", "--png", "."], "cannot be written"),
        (["make", "--out", "nowhere/a.jsonl"], "there is no such folder"),
        (["make", "--out", "."], "cannot be written"),
        (["sweep", "acs_hw(N=4", "N", "2"], "no policy is called 'acs_hw(N=4'"),
        (["convert", "a.jsonl", "--out", "b.jsonl", "--items", "0"], "--items is at least 1"),
        (
            ["sweep", "acs_hw", "units", "1", "0"],
            "units has to be from 1 to 1,048,576, got 0",
        ),
        (
            ["sweep", "acs_hw", "sync_ns", "-1"],
            "sync_ns has to be from 0 to 9,223,372,036,854,775,807, got -1",
        ),
        (["unit", "--slots", "0"], "N and M are at least 1, got 0 and 32"),
        (["unit", "--distance", "300"], "M = 300 needs 9 bits"),
        (
            ["sweep", "acs_hw", "sync_ns", f"{1 << 63}"],
            "sync_ns has to be from 0 to 9,223,372,036,854,775,807",
        ),
        (["unit", "--bits", "0"], "an id has 1 to 64 bits, got 0"),
        (["unit", "--bits", "65"], "an id has 1 to 64 bits, got 65"),
        (["unit", "--clock-mhz", "0"], "--clock-mhz is at least 1, got 0"),
    ],
)
def test_a_wrong_option_is_one_message(
    words: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line(words) == 1
    caught = capsys.readouterr()
    assert what in caught.err
    assert not caught.out


def test_what_time_goes_to_has_a_colour_of_its_own() -> None:
    names: set[str] = set()
    for seed in range(6):
        for outcome in compare(
            random_trace(seed), SMALL, [*ALL, "acs_sw(N=2, threads=2)"]
        ).outcomes:
            names |= set(outcome.overheads_ns)
    assert names <= set(SPENT)
    assert len(names) > 10


def test_units_of_all_combinations_are_estimated(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["unit", "--slots", "16", "64", "--distance", "32", "100", "--bits", "8", "10"]
    lines = said(words, capsys).splitlines()
    assert lines[0] == "Estimated: window units at 1,400 MHz"
    assert len([line for line in lines if line.split()[:1] in (["16"], ["64"])]) == 8
    found = json.loads(said([*words, "--json", "--clock-mhz", "640"], capsys))
    assert found["estimated"]
    for one in found["units"]:
        spec = WindowSpec(one["slots"], one["distance"], one["id_bits"], one["clock_mhz"])
        assert one == {**spec._asdict(), **estimate(spec)._asdict()}
    assert [one["insert_ns"] for one in found["units"]] == [25] * 4 + [100] * 4


def test_every_machine_runs() -> None:
    trace = generate("layers", 6, 8)
    for machine in MACHINES.values():
        found = compare(trace, machine, ALL)
        assert all(outcome.makespan_ns for outcome in found.outcomes)


# ---- the emulator's pages ------------------------------------------------------------------------


def block(kind: str) -> str:
    """The first block of a kind."""
    found = re.search(rf"^```{kind}\n(.*?)^```", DOCS, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_python_of_the_docs_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block("python"), "emulator.md", "exec"), {"__name__": "docs"})
    assert "acs_sw(N=32, threads=8)" in capsys.readouterr().out


def test_the_trace_of_the_docs_is_one() -> None:
    assert len(parse(block("json").splitlines(), "emulator.md").entries) == 3


def test_the_docs_know_every_key_of_a_trace() -> None:
    known = set(re.findall(r"`([\w-]+)(?:\([\w, ]*\))?`", DOCS))
    assert known >= KEYS | HEAD_KEYS
    assert known >= set(ALL) | set(MACHINES)


def test_the_docs_know_every_key_of_a_timeline() -> None:
    assert set(re.findall(r"`(\w+)`", DOCS)) >= set(Slice._fields)
    assert f'{{"acs_cl_trace": {VERSION}, ' in DOCS


def test_the_commands_of_the_docs_are_commands(
    tmp_path: Path, enter: Enter, capsys: pytest.CaptureFixture[str]
) -> None:
    enter(tmp_path)
    (tmp_path / "program.jsonl").write_text(block("json"), encoding="utf-8")
    lines = re.findall(r"^acs-cl emu (.*)$", DOCS, re.MULTILINE)
    assert len(lines) == 6
    for line in lines:
        assert main(["emu", *shlex.split(line.partition("#")[0])]) == 0
        assert capsys.readouterr().out


def test_the_docs_have_the_sizes_of_units() -> None:
    row = r"^\| (\d+) \| (\d+) bits \| ([\d,]+) bytes \| ([\d,]+) um² \| (\d+) cycles, (\d+) ns \|"
    rows = re.findall(row, DOCS, re.MULTILINE)
    assert len(rows) == 4
    for slots, bits, sram, area, cycles, ns in rows:
        unit = estimate(WindowSpec(int(slots), id_bits=int(bits)))
        assert unit.sram_bytes == int(sram.replace(",", ""))
        assert unit.cells_um2 == int(area.replace(",", ""))
        assert (unit.insert_cycles, unit.insert_ns) == (int(cycles), int(ns))


def test_the_committed_speeds_are_within_their_limits() -> None:
    document = json.loads(SPEED.read_text(encoding="utf-8"))
    assert set(document["runs"]) == set(emulator_speed.NAMES)
    for run in document["runs"].values():
        assert run["launches"] > 990_000
        assert run["processor_s"] <= emulator_speed.MOST_S
        assert run["most_mib"] <= emulator_speed.MOST_MIB


def test_the_speed_of_policies_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "speed.json")
    words = ["acs_hw(N=4)", "bounds", "--launches", "500", "--json", path]
    assert emulator_speed.main(words) == 0
    assert "| `acs_hw(N=4)` |" in capsys.readouterr().out
    runs = json.loads(Path(path).read_text(encoding="utf-8"))["runs"]
    assert runs["acs_hw(N=4)"]["steps"] > runs["bounds"]["steps"] == 0
    assert emulator_speed.main(["acs_xw"]) == 1
    assert "no policy is called" in capsys.readouterr().err
