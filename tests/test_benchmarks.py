"""The benchmarks run and write what the report reads; no test here judges a time."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyopencl as cl
import pytest
from conftest import Environment

import acs_cl as acs
from acs_cl import benchmarks, devices
from acs_cl.benchmarks.suite import bars, run, settings, timing
from acs_cl.benchmarks.suite.measures import builds, first_second

KEYS = {
    "overhead": {"auto", "rows"},
    "overlap": {"chains", "links", "kernel_us", "rows"},
    "memory": {"launches", "rows"},
    "latency": {"rows"},
    "startup": {"rows", "import_runtime_s"},
    "taskbench": {"rows"},
    "native": {"core", "rows"},
    "reductions": {"launches", "rows", "baseline", "gain", "epochs_of_all_runs"},
    "builds": {"delays", "first_result"},
    "bands": {"rows", "products", "chains"},
    "first_second": {"rows", "tenth_s"},
}
EXTRA = {"overlap": ["--kernel-us", "30"], "memory": ["--launches", "4000"]}


@pytest.fixture(scope="module", autouse=True)
def plain_environment() -> Iterator[None]:
    """Nothing from outside chooses the backend."""
    with pytest.MonkeyPatch.context() as patch:
        for name in settings.OVERRIDES:
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="module", params=sorted(KEYS))
def document(
    request: pytest.FixtureRequest, device: cl.Device, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What `run.py BENCHMARK --quick --json FILE` wrote."""
    name = request.param
    path = tmp_path_factory.mktemp("benchmarks") / "deep" / f"{name}.json"
    spec = str(devices.devices().index(device))
    command = [name, "--quick", "--device", spec, "--json", str(path), *EXTRA.get(name, [])]
    assert run.main(command) == 0
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def test_a_valley_in_the_first_seconds_is_found() -> None:
    """Ten steps a tenth of a second, and three of them in the fifth one."""
    plain = [0.01 * step for step in range(1, 101)]
    ours = [one for one in plain if not 0.4 < one <= 0.5] + [0.43, 0.46, 0.49]
    found = first_second.compared([plain] * 3, [sorted(ours)] * 3)
    assert found["first_s"] == {"plain": 0.01, "ours": 0.01}
    assert found["from_s"] == 0.1
    assert found["ratios"] == pytest.approx([1, 1, 1, 0.3, 1, 1, 1, 1, 1], abs=0.11)
    assert found["least"] == pytest.approx(0.3, abs=0.11)
    assert found["least_all"] == pytest.approx(0.86, abs=0.03)


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        for one in value.values():
            yield from numbers(one)
    elif isinstance(value, list):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, (int, float)):
        yield value


def are_possible(document: dict[str, Any], device: cl.Device) -> None:
    """Judge what no machine's mood explains."""
    ((name, result),) = document["benchmarks"].items()
    rows = result.get("rows", {})
    concurrent = set(settings.Settings(device).backends())
    if name == "overhead":
        assert set(rows) == {f"{b}-{p}" for b in concurrent for p in ("eager", "ready_first")}
        for row in rows.values():
            assert set(row["windows"]) == {"16", "64", "256"}
            end, free = (row["windows"]["256"][how]["ours_us"] for how in ("end", "free"))
            assert end["max"] > free["min"]
    elif name == "overlap":
        assert set(rows) == concurrent | {"auto"}
        assert all(row["in_flight"]["min"] >= 0.99 for row in rows.values())
        assert rows["serial"]["in_flight"]["median"] < 1.2
    elif name == "memory":
        assert set(rows) == {"steady", "handles", "arrays"}
        for row in rows.values():
            assert row["points"][-1]["launches"] == result["launches"] == 4000
            assert all(point["unretired_after_finish"] == 0 for point in row["points"])
            assert row["growth"]["objects"] < 1000
    elif name == "latency":
        assert set(rows) == concurrent | {"auto"}
        assert all(row["ours"]["min"] <= row["ours"]["p99"] for row in rows.values())
    elif name == "taskbench":
        assert set(rows) == {"trivial", "stencil", "fft", "sweep", "tree", "random"}
        for row in rows.values():
            assert set(row["us_per_task"]) == {"device", "auto", "lanes", "hand", "bare"}
    elif name == "native":
        assert set(rows["host"]) == concurrent
        # a difference of two loops, so one of its pairs may be anything on a busy machine
        assert all(took["max"] > 0 for took in rows["check_ns"].values())
        if "refused" not in rows["record"]:
            assert set(rows["record"]) == {"independent", "64 chains", "one chain"}
            for row in rows["record"].values():
                for way in ("loop", "many"):
                    assert 0 < row[way]["call_us"]["min"] < row[way]["end_us"]["max"]
                    assert row[way]["record_us"]["min"] > 0
            assert len(rows["views"]) == 3 * 6
            assert all(row["launch_us"]["min"] > 0 for row in rows["views"].values())
    elif name == "reductions":
        assert set(rows) == concurrent | {"bare", "device", "auto"}
        assert result["epochs_of_all_runs"]["device"] >= result["epochs_of_all_runs"]["runs"]
    elif name == "builds":
        if (delays := result["delays"]) is not None:  # else 'auto' has no scheduler there
            assert delays["launches"]["building"] == delays["launches"]["loaded"] > 0
            assert 0 < delays["build_s"]["min"] < builds.LONGEST_BUILD_S
            for name, us in delays["us"].items():
                assert 0 < us["p50"] <= us["p99"] <= 1.02 * delays["longest_us"][name]["max"]
        assert result["first_result"]["ratio"]["max"] > 0.2
    elif name == "bands":
        for row in (*rows.values(), *result["chains"].values()):
            sides = row.get("ms") or row["us"]
            assert set(sides) >= {"whole", "bands"}
            assert all(took["min"] > 0 for took in sides.values())
    elif name == "first_second":
        for row in rows.values():
            for state in row.values():
                assert all(a <= b for side in state["steps"].values() for a, b in pairwise(side))
                assert len({len(side) for side in state["steps"].values()}) == 1
                assert all(0 < first < 60 for first in state["first_s"].values())
    else:
        assert set(rows) == {"cold", "warm"}
        assert 0.001 < result["import_runtime_s"]["median"] < 10  # the empty package takes less


@pytest.mark.rotate("document", 6)
def test_a_document_has_what_readers_need_and_its_figures_are_possible(
    document: dict[str, Any], device: cl.Device
) -> None:
    ((name, result),) = document["benchmarks"].items()
    assert set(result) == KEYS[name] | {"took_s", "run"}
    assert document["quick"] is True
    assert all(math.isfinite(number) for number in numbers(result))
    rows = run.module_of(name).bars(result, document["machine"])
    assert rows
    for row in rows:
        assert {"what", "value", "unit", "sense", "limit", "met", "quartiles"} <= set(row)
    machine = document["machine"]
    assert all(machine[key] for key in ("device", "driver", "date", "python", "pyopencl", "cpus"))
    assert len(machine["noise"]) == 2
    are_possible(document, device)


def test_no_module_hides_one_of_pythons_from_a_script_beside_it() -> None:
    scripts = Path(benchmarks.__file__).parent
    assert not {path.stem for path in scripts.glob("*.py")} & sys.stdlib_module_names


def test_overrides_from_outside_are_refused(
    environment: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    environment(ACS_CL_BACKEND="serial")
    assert run.main(["latency", "--quick"]) == 1
    assert "ACS_CL_BACKEND" in capsys.readouterr().err


def test_a_round_without_a_build_is_an_error(
    device: cl.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = settings.Settings(device, quick=True)
    with acs.Runtime(device) as runtime:
        if "scheduler" not in runtime.stats():
            pytest.skip("'auto' has no scheduler here")
    monkeypatch.setattr(builds, "LONGEST_BUILD_S", 0.0)
    with pytest.raises(RuntimeError, match="were in no scheduler after 0 s"):
        builds.measure(quick)


def test_rounds_are_as_many_as_the_time_allows() -> None:
    now = 0.0

    def clock() -> float:
        return now

    rounds = []
    for number in timing.rounds_in_time(2, 9, 10.0, clock):
        rounds.append(number)
        now += 3.0
    assert rounds == [0, 1, 2]  # a fourth one would end after 12 s
    for each, many in ((20.0, 2), (0.1, 9)):
        rounds = []
        for number in timing.rounds_in_time(2, 9, 10.0, clock):
            rounds.append(number)
            now += each
        assert len(rounds) == many


def test_turns_rotate_and_nothing_is_collected_meanwhile() -> None:
    import gc

    order: list[str] = []

    def note(name: str) -> bool:
        order.append(name)
        return gc.isenabled()

    samples = timing.interleave({n: lambda n=n: note(n) for n in "abc"}, 3)  # type: ignore[misc]
    assert "".join(order) == "abcbcacab"
    assert samples == {n: [False] * 3 for n in "abc"}
    assert gc.isenabled()


def test_a_step_is_timed_behind_one_of_the_same_contestant() -> None:
    short, long = iter([3, 1]), iter([30, 1])
    assert timing.going_on(lambda: next(short), lambda taken: taken < 20)() == (3, 1)
    assert timing.going_on(lambda: next(long), lambda taken: taken < 20)() == (30, 30)


def test_nothing_is_collected_between_turns_where_none_is_collected_already() -> None:
    import gc

    seen: list[bool] = []
    with timing.no_collection():
        before = gc.get_stats()[2]["collections"]
        timing.interleave({"a": lambda: seen.append(gc.isenabled())}, 3)
        assert gc.get_stats()[2]["collections"] == before
        assert not gc.isenabled()
    assert seen == [False] * 3
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("value", "sense", "limit", "met"),
    [
        (6.0, "at most", 6.0, True),
        (6.1, "at most", 6.0, False),
        (16.0, "below", 16.0, False),
        (1.85, "at least", 1.85, True),
        ("serial", "is", "lanes", False),
    ],
)
def test_targets_are_judged_by_their_sense(
    value: float | str, sense: str, limit: float | str, met: bool
) -> None:
    assert bars.target("it", value, sense, limit)["met"] is met
