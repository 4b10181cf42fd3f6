"""Sweeps run, say who was wrong, and are drawn; no test here judges a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.benchmarks.figures import sweep_plots, sweep_tables
from acs_cl.benchmarks.suite import sweeps
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.workloads.graphs import GROUP
from acs_cl.benchmarks.workloads.synthetic import Synthetic

SMALL = {"window": (1, 8), "lanes": (2, 3), "length": (0, 30), "groups": (1, 3)}


EXTENT = sweeps.Extent(SMALL, width=4, rounds=3, pace=sweeps.Pace(5.0, 0.5))


@pytest.fixture
def small(device: cl.Device) -> Settings:
    return Settings(device)


def test_ranges_are_those_that_were_asked_for() -> None:
    ends = {name: (values[0], values[-1]) for name, values in sweeps.VALUES.items()}
    assert ends == {"window": (1, 256), "lanes": (1, 32), "length": (0, 200), "groups": (1, 200)}


def test_graphs_differ_in_the_one_number() -> None:
    pace = sweeps.Pace(5.0, 0.5)
    plain = sweeps.graph_of("window", 7, pace, on_cpu=False)
    assert plain == sweeps.graph_of("lanes", 3, pace, on_cpu=False)
    assert plain.rounds == (30, 30)
    assert sweeps.graph_of("length", 0, pace, on_cpu=False) == plain._replace(rounds=(0, 0))
    assert sweeps.graph_of("length", 200, pace, on_cpu=False).rounds == (390, 390)
    wide = sweeps.graph_of("groups", 200, pace, on_cpu=False)
    assert wide == plain._replace(groups=(200, 200))
    assert {task.writes.size for task in wide.graph(0).tasks} == {200 * GROUP}


def test_pace_is_what_the_device_takes(context: cl.Context, device: cl.Device) -> None:
    pace = sweeps.measured_pace(context, device)
    assert pace.idle_us > 0
    assert pace.rounds(0) == 0
    assert pace.rounds(pace.idle_us + 1000 * pace.round_us) == pytest.approx(1000, abs=1)


@pytest.mark.parametrize("name", SMALL)
def test_a_sweep_has_a_row_for_each_value_and_contestant(
    name: str, small: Settings, tmp_path: Path
) -> None:
    found = json.loads(json.dumps(sweeps.measure(small, [name], quick=False, extent=EXTENT)))
    by_value = sweep_tables.grouped(found)[name]
    assert tuple(by_value) == SMALL[name]
    for value, rows in by_value.items():
        assert list(rows) == list(sweeps.contestants(small, name, value))
        for row in rows.values():
            assert "failed" not in row, row
            low, high = row["quartiles"]
            assert 0 < low <= row["speed_up"] <= high
            assert row["launches"] == 4 * sweeps.DEPTH[small.on_cpu]
            assert row["launches_per_s"] > 0
        (baseline,) = {row["baseline"] for row in rows.values()}
        assert rows[baseline]["quartiles"] == [1.0, 1.0]
    text = sweep_tables.text(found)
    assert all(f"\n{value:,} " in text for value in SMALL[name])
    (path,) = sweep_plots.draw(found, tmp_path / "deep")
    assert path.name == f"sweep-{name}.png"
    assert path.read_bytes()[:4] == b"\x89PNG"


def test_wrong_results_have_no_figures(
    small: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = sweeps._is_right

    def not_on_two_lanes(run: Synthetic, expected: Any) -> bool:
        runtime = getattr(run.arrays[0], "runtime", None)
        wrong = isinstance(runtime, acs.Runtime) and runtime.plan.lanes == 2
        return right(run, expected + np.uint32(wrong))

    monkeypatch.setattr(sweeps, "_is_right", not_on_two_lanes)
    found = sweeps.measure(small, ["lanes"], quick=False, extent=EXTENT)
    two, three = sweep_tables.grouped(found)["lanes"].values()
    assert "reference" in two["lanes"]["failed"]
    assert "speed_up" not in two["lanes"]
    assert "speed_up" in three["lanes"]
    assert "failed" in sweep_tables.text(found)
    assert sweep_plots.draw(found, tmp_path)


def test_values_without_time_are_left_out(small: Settings) -> None:
    names = ["lanes", "groups"]
    *_, found = sweeps.growing(small, names, False, lambda text, share: None, 1e-3, EXTENT)
    assert [row["value"] for row in found["rows"][:1]] == [2]
    assert {row["parameter"] for row in found["rows"]} == {"lanes"}
    assert found["left_out"] == ["lanes 3", "groups 1", "groups 3"]
    assert "left out for want of time: lanes 3, groups 1" in sweep_tables.text(found)


def test_unknown_sweeps_are_refused(small: Settings) -> None:
    with pytest.raises(acs.UsageError, match="'weight'; there are window, lanes"):
        sweeps.measure(small, ["window", "weight"], quick=True, extent=EXTENT)
