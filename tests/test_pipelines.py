"""Pipelines are as wide as their definitions say, and compute what they are named after."""

from __future__ import annotations

import math

import numpy as np
import pytest
from widths import Watched, width

import acs_cl as acs
from acs_cl.benchmarks.workloads import catalogue, learning, links, pipelines
from acs_cl.benchmarks.workloads.workload import Workload

CATALOGUE = catalogue()


def watched(rt: acs.Runtime, workload: Workload) -> Watched:
    """One step."""
    platform = Watched(rt)
    workload.make(platform, workload.presets["tiny"], 0).step()
    return platform


@pytest.mark.parametrize(
    ("name", "launches", "expected"),
    [("vec", 4, 2), ("bs", 10, 10), ("img", 13, 4), ("ml", 10, 2), ("hits", 40, 2), ("dl", 9, 2)],
)
def test_as_many_run_side_by_side_as_defined(name: str, launches: int, expected: int) -> None:
    with acs.Runtime() as rt:
        handles = watched(rt, CATALOGUE[name]).handles
        assert len(handles) == launches
        assert width(rt, handles) == expected


def test_values_of_hubs_are_kept_until_the_other_branch_has_read_them() -> None:
    with acs.Runtime() as rt:
        handles = watched(rt, CATALOGUE["hits"]).handles
        gathered_authorities, divided_hubs = handles[0], handles[7]
        assert (gathered_authorities.name, divided_hubs.name) == ("gather", "divide_by_root")
        found = rt.explain(gathered_authorities, divided_hubs)
        assert [meeting.kind for meeting in found.meetings] == ["WAR"]


def test_prices_are_those_of_the_normal_distribution() -> None:
    share = np.linspace(30, 90, 100)
    root = pipelines.VOLATILITY * math.sqrt(pipelines.YEARS)
    discounted = pipelines.STRIKE * math.exp(-pipelines.RATE * pipelines.YEARS)
    for spot, price in zip(share, pipelines.prices(share), strict=True):
        d = math.log(spot / discounted) / root + root / 2
        exact = spot * _normal(d) - discounted * _normal(d - root)
        assert price == pytest.approx(exact, abs=2e-5)


def _normal(d: float) -> float:
    return 0.5 * math.erfc(-d / math.sqrt(2))


def test_links_turned_round_are_the_same_links() -> None:
    found = links.linked(links.HitsSize(50, 1), 3)
    start, column = links.columns_of(found)
    turned = sorted(
        (int(node), to)
        for to in range(50)
        for node in column[start[to] : start[to + 1]]
    )  # fmt: skip
    assert turned == sorted((node, int(to)) for node in range(50) for to in found[node])


def test_classifiers_do_not_all_choose_one_class() -> None:
    found = learning.reference(learning.MlSize(300), 0)
    chosen = (found["ridge"] + found["bayes"]).argmax(axis=0)
    assert len(np.unique(chosen)) > 3
    assert np.ptp(found["bayes"]) > 0.05  # both have a say
    assert np.ptp(found["ridge"]) > 0.05
