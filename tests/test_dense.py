"""Dense workloads compute what NumPy computes: whole, in bands of several cuts, and by hand."""

from __future__ import annotations

from typing import Any

import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.benchmarks.workloads import dense, expert
from acs_cl.benchmarks.workloads.workload import Workload, building_once, differences

SEED = 5


@pytest.fixture(scope="module")
def runtime(device: cl.Device) -> Any:
    with acs.Runtime(device, backend="device") as rt:
        yield building_once(rt)


@pytest.mark.parametrize("workload", dense.WORKLOADS, ids=lambda one: one.name)
def test_results_are_those_of_numpy(runtime: Any, device: cl.Device, workload: Workload) -> None:
    size = workload.presets["tiny"]
    expected = workload.reference(size, SEED)
    made: Any = workload.make(runtime, size, SEED)
    runtime.prebuild(*(getattr(made.program, one.kernel) for one in made.launches))
    for bands in ("off", 4, acs.Row(1)):
        made.reset()
        with runtime.record() as graph:
            handle = made.step(bands=bands)
        graph.replay()
        assert not differences(workload, made.results(), expected)
        assert ("bands: " in str(runtime.explain(handle))) == (bands != "off")
    assert workload.expert is not None
    platform = building_once(expert.Queues(device, lanes=2))
    by_hand: Any = workload.expert(platform, size, SEED)
    platform.finish()
    by_hand.step()
    platform.finish()
    assert not differences(workload, by_hand.results(), expected)
