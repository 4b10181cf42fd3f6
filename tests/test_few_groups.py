"""GrCUDA's six compute the same in few groups; no test here judges a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyopencl as cl
import pytest
from widths import Watched

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks import compare
from acs_cl.benchmarks.peers.published import GRCUDA
from acs_cl.benchmarks.suite import contestants, few_groups, moved
from acs_cl.benchmarks.workloads import catalogue
from acs_cl.benchmarks.workloads.bare import InOrder
from acs_cl.benchmarks.workloads.expert import Queues
from acs_cl.benchmarks.workloads.workload import differences

CATALOGUE = catalogue()


@pytest.mark.parametrize(
    ("sizes", "group", "most", "expected"),
    [
        ((640,), (64,), 3, (192,)),
        ((640,), (64,), 30, (640,)),
        ((256, 100), (64, 1), 8, (256, 2)),
        ((256, 100), (64, 1), 3, (192, 1)),
        ((256, 100, 8), (64, 1, 1), 16, (128, 1, 8)),
        ((640,), (64,), (3, 8), (192,)),
        ((256, 100), (64, 1), (3, 8), (256, 2)),
        ((256, 100, 8), (64, 1, 1), 4, (64, 1, 8)),
    ],
)
def test_rows_are_given_up_before_columns_and_planes_never(
    sizes: Any, group: Any, most: few_groups.Most, expected: Any
) -> None:
    assert few_groups.cut(sizes, group, most) == expected


@pytest.mark.parametrize("name", GRCUDA)
@pytest.mark.parametrize("most", [1, 5])
def test_results_are_those_of_the_reference(name: str, most: int, device: cl.Device) -> None:
    workload = CATALOGUE[name]
    few = few_groups.in_few(workload, "tiny", most)
    size = few.presets["tiny"]
    expected = workload.reference(workload.presets["tiny"], 0)
    assert few.expert is not None
    with acs.Runtime(device) as rt:
        for platform, make in (
            (rt, few.make), (InOrder(device), few.make), (Queues(device), few.expert),
        ):  # fmt: skip
            run = make(platform, size, 0)
            run.reset()
            platform.finish()
            run.step()
            platform.finish()
            assert not differences(few, run.results(), expected)


@pytest.mark.parametrize("name", GRCUDA)
def test_steps_with_transfers_bring_all_that_they_need(name: str, device: cl.Device) -> None:
    workload = CATALOGUE[name]
    size = workload.presets["tiny"]
    expected = workload.reference(size, 0)
    with acs.Runtime(device, prefetch="on") as rt:
        platforms = [
            (moved.Moved(rt, 5, True), workload.make),
            (moved.Moved(InOrder(device), 5, False), workload.make),
            (moved.MovedByHand(Queues(device, lanes=3), 5, 2, True), workload.expert),
        ]
        for platform, make in platforms:
            assert make is not None
            run = moved.Moving(platform, make(platform, size, 0))
            assert not differences(workload, run.checked(), expected)
            platform.forget()
            assert differences(workload, run.checked(), expected)


@pytest.mark.parametrize("name", GRCUDA)
def test_no_launch_has_more_groups_than_planes_demand(name: str) -> None:
    few = few_groups.in_few(CATALOGUE[name], "tiny", 2)
    with acs.Runtime(trace=True) as rt:
        platform = Watched(rt)
        few.make(platform, few.presets["tiny"], 0).step()
        rt.finish()
        groups = [one.groups for one in rt.trace.slices if one.groups]
    assert groups
    assert max(groups) <= (16 if name == "dl" else 2)  # planes of dl are 8 and 16


def test_a_document_has_every_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "few.json"
    words = ["vec", "--preset", "tiny", "--per-unit", "1", "--per-unit", "3", "--json", str(target)]
    compare.main(["few-groups", *words])
    document = json.loads(target.read_text())
    assert list(document["per_unit"]) == ["1", "3"]
    for one in document["per_unit"].values():
        assert set(one["workloads"]["vec"]["rows"]) == {
            "bare",
            "serial",
            "lanes",
            "expert",
            *contestants.experts(devices.choose()),
        }
        assert one["workloads"]["vec"]["failed"] == {}
    assert "groups for a unit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ant"], "'ant' is none of GrCUDA's"),
        (["--per-unit", "0"], "--per-unit 0: expected"),
        (["--backend", "fast"], "no backend 'fast'"),
        (["--runs", "3"], "--runs 3: a median needs 7"),
    ],
)
def test_wrong_words_are_one_message(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        compare.main(["few-groups", *words])
    assert left.value.code == 2
    assert said in capsys.readouterr().err
