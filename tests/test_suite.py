"""`acs-cl bench`: what is wrong is not timed, what moved is named, bounds are lower limits."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from conftest import Environment

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks.figures import (
    bench_changes,
    bench_plots,
    bench_tables,
    bench_targets,
    report,
    workload_tables,
)
from acs_cl.benchmarks.suite import (
    bench_documents,
    contest,
    contestants,
    options,
    settings,
    timing,
    traced_bounds,
)
from acs_cl.benchmarks.suite.bounds import Bound, Device, bound, fastest
from acs_cl.benchmarks.suite.documents import ResultError
from acs_cl.benchmarks.workloads import catalogue
from acs_cl.errors import UsageError
from acs_cl.observe.slices import Slice
from acs_cl.records import Span
from acs_cl.tools import cli


@pytest.fixture(autouse=True)
def no_overrides(environment: Environment) -> None:
    for name in settings.OVERRIDES:
        environment(**{name: None})


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    vec = catalogue()["vec"]
    plan = contestants.Plan(devices.choose(), [vec], "tiny", ["serial", "lanes", "auto"])
    shares: list[float] = []
    found = contest.measure(plan, lambda text, share: shares.append(share))
    assert shares == sorted(shares)
    assert 0 <= shares[0] < shares[-1] < 1
    return found


def test_a_document_describes_itself(document: dict[str, Any]) -> None:
    assert json.loads(json.dumps(document)) == document
    assert document["about"]
    assert document["machine"]["driver"]
    entry = document["workloads"]["vec"]
    assert entry["failed"] == {}
    experts = set(contestants.experts(devices.choose()))
    assert {f"expert, {lanes} lanes" for lanes in (2, 4, 8, 16)} | {"expert, 1 lane"} <= experts
    there = {"bare", "serial", "lanes", "auto", "auto, later", "replay", "expert"}
    assert set(entry["rows"]) == there | experts
    tried = [entry["rows"][name]["ms"]["median"] for name in (*experts, "bare")]
    assert entry["rows"]["expert"]["ms"]["median"] == min(tried)
    assert entry["baseline"] in ("bare", "serial")
    assert entry["rows"][entry["baseline"]]["speedup"]["median"] == 1
    row = entry["rows"]["lanes"]
    assert row["ms"]["samples"] == row["behind_ms"]["samples"] == 7
    assert row["ms"] != row["behind_ms"]  # of other steps: those before them
    assert (entry["bound"]["launches"], entry["bound"]["edges"], entry["bound"]["depth"]) == (
        4,
        3,
        3,
    )
    assert entry["bound"]["groups"]["max"] == 16
    assert entry["where"]["lanes"]["backend"] == "lanes"


def test_tables_have_all_of_it(document: dict[str, Any]) -> None:
    text = bench_tables.overview(document)
    for name in ("vec", "bare", "serial", "lanes", "expert"):
        assert name in text
    said = bench_tables.details(document)
    assert any(limit in said for limit in ("critical path", "work"))
    said = bench_tables.contenders(document)
    row = document["workloads"]["vec"]["rows"]["lanes"]
    assert f"{row['launches_per_s']:,}" in said
    assert f" {row['behind_ms']['median']:.2f} " in said
    assert f"{row['speedup']['p25']:.2f} to {row['speedup']['p75']:.2f}" in said
    assert f"{row['host_us_per_launch']:.2f}" in said
    share = bench_tables.of_bound(document["workloads"]["vec"], "lanes")
    assert share is None or f" {share:.2f} " in said
    assert document["machine"]["driver"] in bench_tables.footer(document)
    for unrest, warns in ((0.02, False), (1.5, True)):
        noisy = copy.deepcopy(document)
        noisy["workloads"]["vec"]["run"]["unrest"] = unrest
        assert ("was busy (noise of 150%)" in bench_tables.warning(noisy)) == warns
    together = bench_tables.collected([document])
    assert document["machine"]["date"] in together
    other = copy.deepcopy(document)
    other["machine"]["environment"] = {"POCL_AFFINITY": "1"}
    assert ", POCL_AFFINITY=1; acs_cl" in bench_tables.footer(other)
    assert "(1 of 6)" in together  # a family's mean is one of all its members, or says so


def test_where_the_host_may_decide_it_does_so_on_each_of_its_backends() -> None:
    ant = catalogue()["ant"]
    there = ["serial", "lanes", "device", "auto"]
    plan = contestants.Plan(devices.choose(), [ant], "tiny", there)
    runtimes: list[acs.Runtime] = []
    makers = contestants._makers(plan, ant, runtimes)
    assert list(makers) == [
        "bare", *there, "auto, later", "host gates", "lanes, host gates", "replay",
        *contestants.experts(plan.device),
    ]  # fmt: skip
    assert ant.host_decided is not None
    for name in ("serial", "host gates", "lanes, host gates", "lanes"):
        contestant = makers[name]()
        assert isinstance(contestant.run, ant.host_decided) == (name != "lanes")  # type: ignore[arg-type]
        asked = {"serial": "serial", "host gates": "auto"}.get(name, "lanes")
        assert contestant.platform.options.backend == asked
    for runtime in runtimes:
        runtime.close()


def test_what_is_wrong_is_reported_and_not_timed() -> None:
    vec = catalogue()["vec"]

    def wrong(size: Any, seed: int) -> dict[str, Any]:
        return {"total": np.array([7.0])}

    plan = contestants.Plan(devices.choose(), [vec._replace(reference=wrong)], "tiny", ["serial"])
    document = contest.measure(plan, lambda text, share: None)
    entry = document["workloads"]["vec"]
    assert set(entry["failed"]) == {"bare", "serial", *contestants.experts(plan.device)}
    assert "total[0] is" in entry["failed"]["bare"]
    assert entry["rows"] == {}
    assert "failed" in bench_tables.overview(document)
    assert len(bench_tables.failures(document)) == len(entry["failed"])


def test_what_would_end_too_late_is_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "some.json"
    words = ["bench", "vec", "bs", "--preset", "tiny", "--backend", "lanes", "--json", str(path)]
    assert cli.main([*words, "--within", "0.001"]) == 0
    assert "left out for want of time: bs" in capsys.readouterr().out
    found = bench_documents.load(path)
    assert (list(found["workloads"]), found["left_out"]) == (["vec"], ["bs"])
    once = contest.one

    def cut(plan: Any, workload: Any, *rest: Any) -> Any:
        if workload.name == "bs":
            raise KeyboardInterrupt
        return once(plan, workload, *rest)

    monkeypatch.setattr(contest, "one", cut)
    path.unlink()
    assert cli.main(words) == 130
    found = bench_documents.load(path)  # what was done is there
    assert (list(found["workloads"]), found["left_out"]) == (["vec"], ["bs"])


def test_one_more_is_begun_while_there_is_time_for_the_longest() -> None:
    times = iter([0.0, 1.0, 4.0, 6.0, 8.0])
    # the second one takes 3, so that the fourth may end at 11
    deadline = timing.Deadline(10.0, lambda: next(times))
    assert [deadline.has_time() for _ in range(4)] == [True, True, True, False]


def test_only_what_moved_beyond_the_spread_is_named(document: dict[str, Any]) -> None:
    document = copy.deepcopy(document)
    steady = document["workloads"]["vec"]["rows"]["lanes"]["speedup"]
    steady.update(dict.fromkeys(steady, 1.0))  # a busy machine may have spread it a hundredfold
    assert bench_changes.moved(document, document) == []
    other = copy.deepcopy(document)
    row = other["workloads"]["vec"]["rows"]["lanes"]["speedup"]
    row.update({key: value / 100 for key, value in row.items()})
    found = bench_changes.moved(document, other)
    assert [(name, way) for _, name, _, _, way in found] == [("lanes", "slower")]
    assert "slower" in bench_changes.comparison(document, other)
    assert [line[-1] for line in bench_changes.moved(other, document)] == ["faster"]
    other["workloads"]["vec"]["failed"]["expert"] = "no"
    assert "fails" in [line[-1] for line in bench_changes.moved(document, other)]


def test_bound_is_the_longer_of_path_and_work_with_launches_free() -> None:
    def slice_(number: int, ms: float, groups: int, reads: int, writes: int) -> Slice:
        def span(base: int) -> tuple[Span, ...]:
            return (Span(base, 0, 4, 1, 4),) if base else ()

        times = ("device", 0, int(ms * 1e6))
        ways = (span(reads), span(writes))
        return Slice(number, "k", 0, *times, (), groups, 0, 0, 64, *ways)

    cpu = Device(units=2, capacity=2)
    pair = [slice_(1, 2, 1, 0, 1), slice_(2, 2, 1, 0, 2)]
    found = bound(pair, cpu)
    assert (found.edges, found.depth, found.critical_ms, found.work_ms) == (0, 1, 2, 2)
    chain = [slice_(1, 2, 1, 0, 1), slice_(2, 3, 1, 1, 2)]
    found = bound(chain, cpu)
    assert (found.edges, found.depth, found.critical_ms, found.work_ms) == (1, 2, 5, 2.5)
    assert (found.least_ms, found.limit) == (5, "critical path")
    wide = [slice_(1, 2, 8, 0, 1), slice_(2, 2, 8, 0, 2)]
    assert bound(wide, cpu).work_ms == 4
    assert bound(wide, Device(units=2, capacity=16)).work_ms == 2  # half of it was free
    found = bound(chain, Device(units=2, capacity=2, empty_us=1500))
    assert (found.critical_ms, found.work_ms, found.busy_ms) == (2, 1, 5)
    assert bound([], cpu).least_ms == 0
    moves = [slice_(number, 2, 0, 0, number) for number in (1, 2, 3)]
    moves = [one._replace(name="write" if one.number < 3 else "read") for one in moves]
    found = bound([*moves, slice_(4, 3, 1, 1, 4)], cpu)  # which follows the first one
    assert (found.critical_ms, found.work_ms, found.moved_ms) == (5, 1.5, 4)
    found = bound([*moves, moves[0]._replace(number=4, writes=())], cpu)
    assert (found.least_ms, found.limit) == (6, "transfers")
    narrow = [slice_(1, 2.5, 8, 0, 1), slice_(2, 5, 8, 0, 2)]  # of the first, half a unit waited
    found = bound(wide, cpu, narrow)
    assert (found.work_ms, found.busy_ms, found.unit_ms) == (1.25 + 2, 4, 7.5)


def test_a_bound_that_something_measured_goes_below_is_taken_back() -> None:
    found = Bound(1, 0, 1, 2.0, 1.0, 0.0, 2.0, 0.1, {}, None)
    assert found.held(2.0)["least_ms"] == 2.0
    assert found.held(None)["least_ms"] == 2.0
    refuted = found.held(1.9)
    assert (refuted["least_ms"], refuted["refuted_by_ms"]) == (None, 1.9)
    entry = {"bound": refuted, "rows": {"lanes": {"ms": {"median": 1.9}}}}
    assert bench_tables.bound_ms(entry) == bench_tables.REFUTED
    assert bench_tables.of_bound(entry, "lanes") is None


@pytest.mark.parametrize("path", sorted(report.RESULTS.glob("bench-*.json")), ids=lambda p: p.stem)
def test_nothing_that_is_committed_goes_below_its_bound(path: Path) -> None:
    for name, entry in bench_documents.load(path)["workloads"].items():
        least_ms = bench_tables.bound_ms(entry)
        if isinstance(least_ms, float):
            fastest = min(row["ms"]["median"] for row in entry["rows"].values())
            assert fastest >= least_ms, name


def test_an_expert_keeps_the_best_that_was_tried() -> None:
    def row(ms: float) -> dict[str, Any]:
        return {"ms": {"median": ms}, "speedup": {"median": 1 / ms}}

    rows = {"bare": row(2.0), "lanes": row(1.5), "expert, 1 lane": row(3.0)}
    assert contestants.best_expert({"lanes": row(1.5), "bare": row(2.0)}) is None
    assert contestants.best_expert(rows) == "bare"
    rows["expert, 4 lanes"] = row(1.0)
    entry = {"rows": rows, "failed": {}}
    assert contestants.best_expert(rows) == "expert, 4 lanes"
    assert bench_tables.over_expert(entry, "lanes") == pytest.approx(1 / 1.5)
    assert bench_tables.speedup(entry, "expert") == 1.0


def test_work_is_measured_on_one_unit_of_a_cpu(device: cl.Device) -> None:
    unit = traced_bounds.one_unit(device)
    if unit is None:
        pytest.skip("the device does not let go of one compute unit")
    assert unit.max_compute_units == 1
    assert traced_bounds.one_unit(device) == unit
    vec = catalogue()["vec"]
    limits, overlap = traced_bounds.bounded(
        device, traced_bounds.Program(vec, vec.presets["tiny"], 0)
    )
    assert overlap >= 1
    if device.type & cl.device_type.CPU:
        assert limits.unit_ms is not None
        assert limits.work_ms <= limits.unit_ms / device.max_compute_units


def test_the_command_writes_shows_compares_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "one.json"
    words = ["bench", "vec", "--preset", "tiny", "--backend", "lanes"]
    assert cli.main([*words, "--json", str(path), "--plots", str(tmp_path / "p")]) == 0
    assert "vec" in capsys.readouterr().out
    assert {one.name for one in (tmp_path / "p").iterdir()} == {"speedups.png", "launch-cost.png"}
    assert cli.main(["bench", "--show", str(path)]) == 0
    assert cli.main(["bench", "--collect", str(tmp_path)]) == 0
    assert "pipelines" in capsys.readouterr().out
    cli.main([*words, "--compare", str(path)])
    said = capsys.readouterr().out
    assert "moved" in said or "speed-up before" in said
    assert cli.main(["bench", "--list"]) == 0
    assert "differences of squares" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["nothing"], "no workload or family is called 'nothing'"),
        (["--backend", "fast"], "no backend 'fast'"),
        (["--runs", "3"], "needs 7"),
        (["--json", "/nowhere/at/all.json"], "no such folder"),
        (["--compare", "nowhere.json"], "cannot be read"),
        (["--collect", "nowhere"], "no such folder"),
        (["--json", "."], "expected a file"),
        (["--plots", __file__], "expected a folder"),
        (["--seed", "-1"], "expected 0 or more"),
        (["--within", "0"], "--within 0: expected seconds"),
        (["vec", "--show", "one.json"], "--show does not go with WORKLOAD"),
        (["--collect", ".", "--plots", "p"], "--collect does not go with --plots"),
        (["--sweep", "lanes", "--compare", "a.json"], "--sweep does not go with --compare"),
    ],
)
def test_wrong_words_are_one_message(
    words: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", *words]) == 1
    assert what in capsys.readouterr().err


def test_a_result_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"acs_cl_benchmarks": 1}', encoding="utf-8")
    with pytest.raises(UsageError, match="expected what acs-cl bench --json writes"):
        bench_documents.load(path)
    path.write_text('{"acs_cl_bench": 1, "machine": {}}', encoding="utf-8")
    with pytest.raises(UsageError, match="it lacks preset, runs, seed, workloads"):
        bench_documents.load(path)


@pytest.mark.parametrize(
    ("place", "value", "what"),
    [
        ("machine", {}, "machine lacks acs_cl, commit"),
        ("machine.noise", [], r"machine\.noise: expected a list of at least one, got \[\]"),
        ("machine.noise", [1], r"machine\.noise\[0\]: expected an object, got 1"),
        ("workloads", [1], r"workloads: expected an object, got \[1\]"),
        ("workloads.vec", {}, r"workloads\.vec lacks baseline, bound"),
        ("workloads.vec.rows.auto", {"ms": 1}, r"workloads\.vec\.rows\.auto lacks host_us"),
        ("workloads.vec.bound.least_ms", "no", r"bound\.least_ms: got 'no', a str"),
        ("workloads.vec.failed.auto", True, r"failed\.auto: got True, a bool"),
        ("workloads.vec.baseline", "nobody", "no row of its baseline 'nobody'"),
    ],
)
def test_a_damaged_result_is_one_message_that_says_where(
    document: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    place: str,
    value: Any,
    what: str,
) -> None:
    broken = copy.deepcopy(document)
    *above, name = place.split(".")
    inside = broken
    for one in above:
        inside = inside[one]
    inside[name] = value
    (tmp_path / "good.json").write_text(json.dumps(document), encoding="utf-8")
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(broken), encoding="utf-8")
    with pytest.raises(UsageError, match=what):
        bench_documents.load(path)
    assert cli.main(["bench", "--collect", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "passed over bad.json" in said.err
    assert "1 of 6" in said.out


@pytest.mark.parametrize("path", sorted(report.RESULTS.glob("bench-*.json")), ids=lambda p: p.stem)
def test_committed_results_are_whole_and_right(path: Path) -> None:
    found = bench_documents.load(path)
    assert not bench_tables.failures(found)
    others = ("synthetic", "opara")  # which benchmarks of their own measure
    assert set(found["workloads"]) >= {
        name for name, one in catalogue().items() if one.family not in others
    }
    rows = [row for entry in found["workloads"].values() for row in entry["rows"].values()]
    assert min(row["ms"]["samples"] for row in rows) >= options.LEAST_RUNS
    assert all(entry["bound"]["groups"]["max"] >= 1 for entry in found["workloads"].values())
    assert len(bench_targets.targets(found)) >= 5


def test_only_results_with_something_in_common_are_compared(document: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="the old result has none of img; it has vec"):
        bench_documents.check_alike(document, document["preset"], document["seed"], ["img"])
    other = copy.deepcopy(document)
    other["workloads"]["img"] = other["workloads"]["vec"]
    other["machine"]["driver"] = "another"
    said = bench_changes.comparison(document, other)
    assert "Not in the old result: img." in said
    assert "The old result is one of another device" in said
    assert "Nothing moved" in said


def test_what_falls_short_is_named_with_its_figure(document: dict[str, Any]) -> None:
    found = {**copy.deepcopy(document), "preset": "small"}
    found["machine"]["kind"] = "CPU"
    rows = found["workloads"]["vec"]["rows"]
    found["workloads"]["vec"]["bound"]["least_ms"] = 4.5
    for name in set(rows) - {"serial", "lanes", "auto", "bare", "expert"}:
        del rows[name]
    for name, times, ms in (
        ("serial", 1.0, 8.0), ("bare", 1.0, 8.0), ("lanes", 1.5, 6.0), ("auto", 0.9, 5.0),
        ("expert", 1.6, 3.0),
    ):  # fmt: skip
        around = {"p25": times - 0.1, "median": times, "p75": times + 0.1}
        rows[name] |= {"speedup": around, "ms": {"median": ms}}
    by_name = {one.what: one for one in bench_targets.targets(found)}
    short = {what: (dict(one.values), one.short) for what, one in by_name.items()}
    assert short == {
        "share of the bound, the best of ours": ({"vec": 0.9}, []),
        "share of the bound, `auto`": ({"vec": 0.9}, []),
        "over the baseline, the best of ours": ({"vec": 1.5}, []),
        "over the baseline, `auto`": ({"vec": 0.9}, ["vec"]),
        "over the expert's, the best of the host's backends": ({"vec": 0.5}, ["vec"]),
    }
    said = bench_targets.text(found)
    refuted = copy.deepcopy(found)
    refuted["workloads"]["vec"]["bound"]["least_ms"] = None
    assert "share of the bound (refuted: vec), `auto`" in bench_targets.text(refuted)
    assert "vec 0.90 (0.80 to 1.00)" in said
    assert "vec 0.50 (0.47 to 0.53)" in said
    assert bench_targets.text({**found, "preset": "tiny"}).count("\n") == 2  # the expert's alone
    found["machine"]["kind"] = "GPU"
    found["workloads"]["vec"]["bound"] |= {"busy_ms": 0.05, "launches": 4}
    short_kernels = bench_targets.targets(found)[-1]
    assert (short_kernels.values, short_kernels.short) == ({"vec": 0.6}, ["vec"])


def test_pictures_have_rows_of_a_few_workloads(document: dict[str, Any]) -> None:
    pytest.importorskip("matplotlib")
    many = {f"w{number}": document["workloads"]["vec"] for number in range(23)}
    _, rows = bench_plots._figure({**document, "workloads": many})
    assert [len(shown) for _, shown in rows] == [8, 8, 7]
    assert [name for _, shown in rows for name in shown] == list(many)
    assert bench_plots.ticks(0.3, 30) == [0.5, 1, 2, 5, 10, 20]
    assert bench_plots.ticks(0.45, 2.2) == pytest.approx([0.5, 0.7, 1, 1.5, 2])
    assert bench_plots.ticks(7000, 18500) == [7000, 8000, 9000, 10000, 12000, 14000, 16000, 18000]


def test_results_of_another_size_are_not_compared(
    document: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / name for name in ("a.json", "b.json")]
    for path, preset in zip(paths, ("tiny", "small"), strict=True):
        path.write_text(json.dumps({**document, "preset": preset}), encoding="utf-8")
    words = ["bench", "--show", str(paths[0]), "--compare"]
    assert cli.main([*words, str(paths[1])]) == 1
    assert "the old result has preset small, not tiny" in capsys.readouterr().err
    assert cli.main([*words, str(paths[0])]) == 0
    assert "Nothing moved" in capsys.readouterr().out
    assert cli.main(["bench", "vec", "--preset", "small", "--compare", str(paths[0])]) == 1
    assert "has preset tiny, not small" in capsys.readouterr().err


def test_a_result_that_is_wrong_in_the_end_is_not_timed() -> None:
    vec = catalogue()["vec"]

    class Tired:
        """Right for as many results as are checked beforehand."""

        def __init__(self, run: Any) -> None:
            self.run, self.left = run, 3
            self.reset, self.step = run.reset, run.step

        def results(self) -> Any:
            self.left -= 1
            return {name: values + (self.left < 0) for name, values in self.run.results().items()}

    def make(platform: Any, size: Any, seed: int) -> Any:
        run = vec.make(platform, size, seed)
        return run if isinstance(platform, acs.Runtime) else Tired(run)

    plan = contestants.Plan(
        devices.choose(), [vec._replace(make=make, replayable=False)], "tiny", ["serial"]
    )
    entry = contest.measure(plan, lambda text, share: None)["workloads"]["vec"]
    assert set(entry["rows"]) == {"serial", "expert", *contestants.experts(plan.device)}
    assert set(entry["failed"]) == {"bare"}
    assert "after it was timed: total[0] is" in entry["failed"]["bare"]


def test_the_shortest_time_of_each_kernel_counts() -> None:
    def slices(*lengths: int) -> list[Slice]:
        times = [(7 * at, 7 * at + length) for at, length in enumerate(lengths)]
        return [
            Slice(at, "k", 0, "device", *one, (), 1, 0, 0, 64, (), ())
            for at, one in enumerate(times)
        ]

    found = fastest([slices(5, 2), slices(3), slices(4, 3)])
    assert [(one.start_ns, one.end_ns) for one in found] == [(0, 4), (7, 9)]


def test_the_tables_of_workloads_are_of_a_folder_and_refuse_failures(
    document: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    table = workload_tables.workloads(tmp_path)
    assert "| vec" in table
    assert "lanes" in table
    assert document["machine"]["driver"] in table
    other = copy.deepcopy(document)
    other["workloads"]["vec"]["failed"]["lanes"] = "wrong"
    path.write_text(json.dumps(other), encoding="utf-8")
    with pytest.raises(ResultError, match="vec, lanes: wrong"):
        workload_tables.workloads(tmp_path)
