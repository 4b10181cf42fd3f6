"""Blocks are those of the results, figures stand nowhere else, results are merged whole."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from conftest import Environment

from acs_cl import UsageError
from acs_cl.benchmarks.figures import benchmark_tables, merge, report, tried_tables
from acs_cl.benchmarks.suite import bars, documents, everything, provenance
from acs_cl.benchmarks.suite.measures import first_second, overlap
from acs_cl.benchmarks.suite.statistics import spread

ROOT = Path(__file__).resolve().parent.parent
NOTES = ROOT / "docs" / "notes"

# ---- what is committed ---------------------------------------------------------------------------


def test_every_generated_block_is_what_the_results_say() -> None:
    assert not report.differences()


def test_every_block_is_shown() -> None:
    shown = [name for page in report.pages() for name, _ in report.MARKED.findall(page.read_text())]
    assert sorted(set(shown)) == sorted(report.BLOCKS)


def test_what_was_tried_is_counted_and_what_was_wrong_stands_out(tmp_path: Path) -> None:
    of = {"date": "2026-01-02", "commit": "abc", "device": "pthread-some CPU"}
    alarms = {"seconds": 10.0, "tests": {"passed": 90, "skipped": 9}, "alarms": [{}]}
    seeing = {
        "hangs": {"lanes": {"planted": 20, "named": 20}, "device": {"planted": 20, "named": 18}},
        "bottlenecks": {"all": {"planted": 6, "named": 6}},
        "page": {"launches": 5000, "opened_s": [1.0, 3.0], "median_s": 2.0, "bytes": 700_000},
    }
    total = {"signals": 70, "wrong": 1, "hangs": 0, "errors": 0, "slowest_s": 0.152}
    for name, found in (("alarms", alarms), ("seeing", seeing), ("signals", {"total": total})):
        documents.write(tmp_path / f"{name}.json", of | found)
    text = tried_tables.block(tmp_path)
    where = "PoCL, 2026-01-02, abc"
    for row in (
        f"| tests under a watchdog of 10 s | 90 | **1 false alarms** | {where} |",
        f"| hangs planted on `lanes` | 20 | none | {where} |",
        f"| hangs planted on `device` | 20 | **2 not named** | {where} |",
        f"| programs with a bottleneck | 6 | none | {where} |",
        f"| Ctrl-C in calls that block, heard within 152 ms | 70 | **1 wrong or hung** | {where} |",
    ):
        assert row in text.splitlines()
    assert "5,000 launches opens in 2.00 s" in text
    assert "**missed**" in text


# ---- figures in prose ----------------------------------------------------------------------------

UNITS = r"ns|us|µs|ms|s|seconds?|minutes?|milliseconds?|microseconds?|x|times|%|percent"
FIGURE = re.compile(
    rf"(?<![\w.^])\d[\d,.]*(?:\s+(?:to|and|or)\s+\d[\d,.]*)?\s?(?:{UNITS})(?![\w^/*=-]|\s*\d)"
)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
SOURCED = re.compile(
    r"^<!-- figures: (?:published|.*\d{4}-\d\d(?:-\d\d)?) -->\n.*?^<!-- /figures -->",
    re.DOTALL | re.MULTILINE,
)
"""A table whose mark says where its figures are from: published, or a device and a date."""

EMULATOR, WORKLOADS = "docs/design/emulator.md", "docs/design/workloads.md"
ALLOWED = (
    (WORKLOADS, r"^\| .* % \|", "launches of a graph, counted from its bytes"),
    (WORKLOADS, r"sub-steps of 4 ms", "time within a simulated world"),
    (WORKLOADS, r"of tasks without any kernel", "what CUDASTF published"),
    (WORKLOADS, r"kernels from 0 to 200 us", "what a sweep asks for"),
    (EMULATOR, r"paper's host are known as a sum", "a constant of a modelled device"),
    (EMULATOR, r"paper gives no cost of an update", "a constant of a modelled device"),
    (EMULATOR, r"A node of a CUDA Graph takes", "a constant of a modelled device"),
    (EMULATOR, r"and the paper has graphs spend", "a constant of a modelled device"),
    (EMULATOR, r"one kernel to the next in a stream", "a constant of a modelled device"),
    (EMULATOR, r"^\| .* cycles", "sizes of a modelled unit, which a test works out"),
    (
        EMULATOR,
        r"of any other kernel takes",
        "a constant of the model",
    ),
)
"""Figures in prose that nobody measured here: the page, what the line looks like, and why."""


def allowed(page: str, line: str) -> bool:
    """Whether a line may have figures."""
    return any(page == name and re.search(like, line) for name, like, _ in ALLOWED)


def prose(text: str) -> str:
    """The page without generated blocks, code and sourced tables, lines in their places."""
    for hidden in (report.MARKED, SOURCED, CODE):
        text = hidden.sub(lambda found: "\n" * found[0].count("\n"), text)
    return text


def figures_in(text: str, page: str = "") -> list[tuple[int, str]]:
    """Line numbers and figures, but for what the page may have."""
    return [
        (number, found)
        for number, line in enumerate(prose(text).splitlines(), 1)
        if not allowed(page, line)
        for found in FIGURE.findall(line)
    ]


def test_no_page_has_figures_in_its_prose() -> None:
    """What is typed grows old unseen. Notes of what was tried are dated, and keep theirs."""
    found = []
    for page in report.pages():
        name = page.relative_to(ROOT).as_posix()
        if NOTES in page.parents:
            continue
        text = page.read_text(encoding="utf-8")
        found += [f"{name}:{line}: {figure}" for line, figure in figures_in(text, name)]
    assert not found, "\n".join(found)


def test_notes_with_figures_say_where_they_are_from() -> None:
    for page in sorted(NOTES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if figures_in(text):
            for what in (
                r"^Date: \d{4}-\d\d-\d\d",
                "^Device: .",
                "^Driver: .",
                "^Commit: [0-9a-f]{7}",
            ):
                assert re.search(what, text, re.MULTILINE), f"{page.name} has no line {what!r}"


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("a launch takes 3 us", ["3 us"]),
        ("1.7 to 3.5 times as fast", ["1.7 to 3.5 times"]),
        ("4.6x, and 12 % more", ["4.6x", "12 %"]),
        ("`3 us` and\n```\n3 us\n```\n", []),
        ("<!-- generated: a -->\n3 us\n<!-- /generated -->", []),
        ("<!-- figures: published -->\n| 3 us |\n<!-- /figures -->", []),
        ("<!-- figures: some day -->\n| 3 us |\n<!-- /figures -->", ["3 us"]),
        ("an array of 64 x 64, or 2x2 tiles, int32, 1.2.3", []),
    ],
)
def test_figures_in_prose_are_found(text: str, figures: list[str]) -> None:
    assert [figure for _, figure in figures_in(text)] == figures


# ---- blocks --------------------------------------------------------------------------------------


LAUNCH = "launch and `get` of 4 bytes over bare PyOpenCL, `auto`"


def run_document(**changes: Any) -> dict[str, Any]:
    machine = {
        "device": "Some platform / Some GPU",
        "driver": "1.2",
        "compute_units": 4,
        "cpus": 2,
        "cpu": "some CPU",
        "date": "2026-01-02",
        "commit": "abc",
        "sources": "123",
        "python": "3.11",
        "pyopencl": "2026.1",
        "noise": [{"unrest": 0.02}],
    }
    row = {"ratio": spread([7.0]), "ours": {"tail": 1.5}}
    benchmarks = {"latency": {"rows": {"auto": row}}}
    whole = {documents.FIGURES: documents.VERSION, "quick": False}
    return whole | {"machine": machine | changes, "benchmarks": benchmarks}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A repository with one page, and an empty folder of results."""
    (tmp_path / "README.md").write_text(
        "before\n<!-- generated: figures -->\nold\n<!-- /generated -->\nafter\n", encoding="utf-8"
    )
    (tmp_path / "results").mkdir()
    return tmp_path


def put(site: Path, name: str, document: dict[str, Any]) -> Path:
    path = site / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def places(site: Path) -> list[str]:
    return ["--root", str(site), "--results", str(site / "results")]


def test_blocks_are_written_and_checked(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(site, "results/one.json", run_document())
    assert report.main(["--check", *places(site)]) == 1
    assert "README.md is not what the results say: line 3: has 'old'" in capsys.readouterr().err
    assert report.main(places(site)) == 0
    assert report.main(["--check", *places(site)]) == 0
    text = (site / "README.md").read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert f"| {LAUNCH}: at most 1.30x | **7x** (missed) |" in text
    assert "Some GPU: 2026-01-02, commit abc, machine noise 2%." in text


def test_a_picture_is_drawn_and_checked(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = first_second.compared([[0.1, 0.2, 0.3]], [[0.15, 0.25, 0.35]])
    rows = {"ant": dict.fromkeys(first_second.STATES, row)}
    document = run_document()
    document["benchmarks"] = {"first_second": {"rows": rows}}
    put(site, "results/one.json", document)
    assert report.main(places(site)) == 0
    (path,) = (site / name for name in report.PICTURES)
    drawn = ElementTree.parse(path).getroot()
    texts = [one.text for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert "ant, cold; Some GPU" in texts
    assert "ant, warm; Some GPU" in texts
    lines = list(drawn.iter("{http://www.w3.org/2000/svg}polyline"))
    assert len(lines) == 2 + 2 * len(first_second.STATES)
    assert report.main(["--check", *places(site)]) == 0
    path.write_text(path.read_text("utf-8").replace("ant, cold", "ant, warm"), encoding="utf-8")
    assert report.main(["--check", *places(site)]) == 1
    assert f"{path.name} is not what the results say" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("<!-- generated: figures -->\nno end", "expected pairs of"),
        ("<!-- generated: figure -->\n<!-- /generated -->", "no block is called 'figure'"),
    ],
)
def test_marks_that_cannot_be_used_are_refused(
    site: Path, page: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "README.md").write_text(page, encoding="utf-8")
    assert report.main(places(site)) == 1
    assert f"README.md: {complaint}" in capsys.readouterr().err
    assert (site / "README.md").read_text(encoding="utf-8") == page


def test_a_look_is_no_figure_and_one_device_has_one_result(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(site, "results/one.json", run_document() | {"quick": True})
    assert report.main(places(site)) == 1
    assert "--quick" in capsys.readouterr().err
    for name in ("one", "two"):
        put(site, f"results/{name}.json", run_document())
    assert report.main(places(site)) == 1
    assert "is in another file, too" in capsys.readouterr().err


def test_each_device_has_its_column_and_what_was_not_measured_says_so() -> None:
    other = run_document(device="Other / CPU", driver="3")
    one, two = benchmark_tables.of_benchmark({"a": run_document(), "b": other}, "latency")
    columns = [one, two._replace(rows=[bars.target(LAUNCH, None, "at most", 1.3, "x")])]
    head, _, row, *_ = benchmark_tables._table(columns)[0].splitlines()
    assert head == "| figure, and what it has to be | Some GPU | CPU |"
    assert row == f"| {LAUNCH}: at most 1.30x | **7x** (missed) | not measured |"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0034, "0.0034"), (0.0896, "0.09"), (0.1, "0.10"), (24.534, "24.53"), (1e6, "1,000,000")],
)
def test_small_figures_keep_digits(value: float, text: str) -> None:
    assert documents.number(value) == text


# ---- merging -------------------------------------------------------------------------------------


def take(site: Path, *words: str) -> int:
    return merge.main([*words, *places(site)])


def test_new_results_replace_what_is_there(site: Path) -> None:
    assert take(site, str(put(site, "a.json", run_document()))) == 0
    (path,) = (site / "results").glob("*.json")
    assert path.name == "some-gpu.json"
    new = run_document(commit="def", sources="456")
    new["benchmarks"]["latency"]["rows"]["auto"]["ratio"] = spread([5.0])
    assert take(site, str(put(site, "b.json", new))) == 0
    assert [path] == list((site / "results").glob("*.json"))
    assert "commit def" in (site / "README.md").read_text(encoding="utf-8")


def test_mixed_trees_are_refused_unless_each_part_keeps_its_own(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert take(site, str(put(site, "a.json", run_document()))) == 0
    new = run_document(commit="def", sources="456", date="2026-01-03")
    new["benchmarks"] = {"reductions": {"baseline": "bare", "gain": spread([1.2])}}
    path = str(put(site, "b.json", new))
    before = (site / "README.md").read_text(encoding="utf-8")
    assert take(site, path) == 1
    assert "abc: latency; def: reductions" in capsys.readouterr().err
    assert (site / "README.md").read_text(encoding="utf-8") == before
    assert take(site, path, "--several-commits") == 0
    text = (site / "README.md").read_text(encoding="utf-8")
    for said in ("2026-01-02, commit abc", "2026-01-03, commit def"):
        assert said in text


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"commit": "abc with changes"}, "is of no commit: 'abc with changes'"),
        ({"commit": ""}, "is of no commit: 'not known'"),
    ],
)
def test_figures_of_no_commit_are_refused(
    site: Path, changes: dict[str, Any], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert take(site, str(put(site, "a.json", run_document(**changes)))) == 1
    assert complaint in capsys.readouterr().err
    assert not list((site / "results").glob("*.json"))


# ---- where a commit comes from -------------------------------------------------------------------


def test_a_stamp_is_believed_for_its_own_sources_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: Environment
) -> None:
    now = provenance.digest()
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "benchmarks" / "provenance.py"))
    environment(**{provenance.VARIABLE: None})
    assert provenance.sources() == ("", now)
    environment(**{provenance.VARIABLE: f"abcdef0 {now}\n"})
    assert provenance.sources() == ("abcdef0", now)
    for stamp in (f"abcdef0 {now[:-1]}x", now, "abcdef0"):
        environment(**{provenance.VARIABLE: stamp})
        with pytest.raises(UsageError, match="since these sources run here"):
            provenance.sources()


def test_a_digest_is_of_what_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {name for name, _ in provenance._files()}
    assert {"acs_cl/core.py", "acs_cl.benchmarks/suite/run.py", "acs_cl.emu/engine.py"} <= names
    assert any(name.endswith(".cl") for name in names)
    assert not any("_core" in name for name in names)
    before = provenance.digest()
    changed = tmp_path / "one.py"
    changed.write_text("1\n", encoding="utf-8")
    monkeypatch.setattr(provenance, "_files", lambda: iter([("one", changed)]))
    assert provenance.digest() != before


def test_the_core_says_of_which_sources_it_was_built() -> None:
    assert provenance.core_digest() == provenance.tree_core_digest(ROOT), (
        "the native core is of other sources than this tree: `make venv` builds it"
    )


# ---- bars ----------------------------------------------------------------------------------------


def committed(name: str, kind: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """What was measured of a benchmark on a kind of device, and its rows by what they are of."""
    for document in documents.of_kind(report.RESULTS, documents.FIGURES).values():
        if document["machine"]["kind"] == kind:
            rows = benchmark_tables.rows_of(document, name)
            return document["benchmarks"][name], {row["what"]: row for row in rows}
    raise LookupError(kind)


def test_bars_of_device_time_are_those_of_new_graphs() -> None:
    result, rows = committed("scheduler", "GPU")
    limits = (0.35, 0.06, 0.02, 0.08, 0.25, 1.5)
    for graph, limit in zip(result["graphs"], limits, strict=True):
        what = f"{graph['chains']} x {graph['length']} tasks of {graph['groups']} groups"
        new = rows[f"device time per task, {what}, a new graph"]
        again = rows[f"device time per task, {what}, recorded and replayed"]
        took = [graph[way]["median"] for way in ("device_in_epochs_us", "device_us")]
        assert [new["value"], again["value"]] == pytest.approx(took, rel=1e-3)
        assert (new["limit"], again["limit"]) == (limit, None)
        assert new["met"] is (new["value"] <= limit)


def test_bars_are_there_as_they_were_set() -> None:
    found = {
        "64 chains of 8 kernels over `serial`, `lanes`": ("overlap", 6.0),
        "a hazard check, chains, window 1,024 over 16, inside": ("native", 1.2),
        "a hazard check, random, window 1,024 over 16, inside": ("native", 1.2),
        "longest launch of all while a scheduler is built, above the longest of all without": (
            "builds", 1.0,
        ),
        "64 gates decided on the device, over bare PyOpenCL in order that reads each": (
            "scheduler", 5.0,
        ),
        "host work of a launch above a bare PyOpenCL call, device held, `auto`": ("overhead", 6.0),
        "`from acs_cl import Runtime` in a fresh process, beyond PyOpenCL's own import": (
            "startup", 0.3,
        ),
    }  # fmt: skip
    for what, (name, limit) in found.items():
        assert committed(name, "GPU")[1][what]["limit"] == limit


def test_no_launch_is_delayed_is_said_of_the_longest() -> None:
    result, rows = committed("builds", "GPU")
    longest = result["delays"]["longest_us"]
    own = max(longest["loaded"]["max"], longest["quiet"]["max"])
    ((row,),) = [
        [row] for what, row in rows.items() if what.startswith("longest launch of all while")
    ]
    assert row["value"] == pytest.approx((longest["building"]["max"] - own) / 1e3, abs=0.01)


def test_kernels_whose_times_nobody_knows_are_not_said_to_be_in_flight() -> None:
    row = {"speed_up": {"median": 4.0, "p25": 4.0, "p75": 4.0}, "backend": "lanes"}
    row |= {"in_flight": {"median": 2.0, "p25": 2.0, "p75": 2.0}}
    in_epochs = row | {"in_epochs": {"median": 0.9}}
    machine = {"kind": "GPU", "device": "NVIDIA CUDA / some"}
    found = overlap.bars({"rows": {"auto": in_epochs, "lanes": row}}, machine)
    values = {one["what"]: one["value"] for one in found}
    assert values["kernels in flight, by profiling intervals, `auto`"] is None
    assert values["kernels in flight, by profiling intervals, `lanes`"] == 2.0
    assert 0.9 in values.values()


# ---- everything ----------------------------------------------------------------------------------


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, sources: list[provenance.Sources]) -> list[list[str]]:
    """The commands that would have run; each benchmark writes a document, `latency` fails."""
    commands: list[list[str]] = []

    def ran(words: list[str], seconds: float) -> bool:
        commands.append(words)
        if words[1] == "run":
            if words[2] == "latency":
                return False
            document = run_document()
            document["benchmarks"] = {words[2]: document["benchmarks"]["latency"]}
            Path(words[-1]).write_text(json.dumps(document), encoding="utf-8")
        return True

    monkeypatch.setattr(everything, "_ran", ran)
    monkeypatch.setattr(everything.provenance, "sources", lambda: sources[-1])
    return commands


@pytest.fixture
def sources() -> list[provenance.Sources]:
    """The sources of which `everything` measures: the last of them."""
    return [provenance.Sources("abc", "123")]


def test_everything_is_measured_in_processes_of_their_own(
    measured: list[list[str]], tmp_path: Path
) -> None:
    assert everything.main(["--out", str(tmp_path)]) == 1  # latency failed
    found = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    names = [*everything.FIRST, *everything.LATER]
    assert set(found["benchmarks"]) >= set(names) - {"latency"}
    assert all(one["run"]["commit"] == "abc" for one in found["benchmarks"].values())
    assert [words[1] for words in measured if words[0] == "acs_cl"] == ["bench"]


def test_only_what_is_named_is_measured_and_names_are_checked(
    measured: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert everything.main(["--out", str(tmp_path), "--only", "prediction"]) == 0
    assert [words[2] for words in measured] == ["prediction"]
    del measured[:]
    assert everything.main(["--out", str(tmp_path), "--only", "native", "prediction"]) == 0
    assert {words[2] for words in measured} == {"native", "prediction"}
    assert everything.main(["--out", str(tmp_path), "--only", "predictions"]) == 1
    assert "--only predictions: expected one of bands, bench," in capsys.readouterr().err


@pytest.mark.parametrize("name", ["nvidia-h200.json", "pocl.json"])
def test_everything_that_is_shown_is_measured(name: str) -> None:
    shown = json.loads((ROOT / "benchmarks/results" / name).read_text("utf-8"))["benchmarks"]
    assert set(shown) <= set(everything.NAMES.split(", "))


def test_what_would_end_too_late_is_not_begun(
    measured: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    within = str(everything.MARGIN_S + everything.FIRST["latency"] + 1)
    assert everything.main(["--out", str(tmp_path), "--within", within]) == 1
    assert [words[2] for words in measured] == ["latency"]
    assert "left out: scheduler may take" in capsys.readouterr().out


def test_figures_of_no_commit_are_not_measured(
    measured: list[list[str]], tmp_path: Path, sources: list[provenance.Sources]
) -> None:
    sources.append(provenance.Sources("abc with changes", "123"))
    assert everything.main(["--out", str(tmp_path)]) == 1
    assert not measured
