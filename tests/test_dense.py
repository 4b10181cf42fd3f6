"""Dense workloads compute what NumPy computes: whole, in bands of several cuts, and by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.benchmarks.workloads import dense, expert
from acs_cl.benchmarks.workloads.workload import building_once, differences

SEED = 5


@pytest.fixture(scope="module")
def runtime(device: cl.Device) -> Iterator[Any]:
    with acs.Runtime(device, backend="device") as rt:
        yield building_once(rt)


@pytest.fixture(scope="module")
def made(runtime: Any) -> dict[str, Any]:
    """All of them, whose kernels are built into schedulers at once."""
    found = {one.name: one.make(runtime, one.presets["tiny"], SEED) for one in dense.WORKLOADS}
    runtime.prebuild(*(
        getattr(one.program, launch.kernel) for one in found.values() for launch in one.launches
    ))  # fmt: skip
    return found


@pytest.fixture(scope="module")
def queues(device: cl.Device) -> Any:
    return building_once(expert.Queues(device, lanes=2))


@pytest.mark.parametrize("name", [one.name for one in dense.WORKLOADS])
def test_results_are_those_of_numpy(
    runtime: Any, made: dict[str, Any], queues: Any, name: str
) -> None:
    workload = next(one for one in dense.WORKLOADS if one.name == name)
    size = workload.presets["tiny"]
    expected = workload.reference(size, SEED)
    case = made[name]
    for bands in ("off", 4, acs.Row(1)):
        case.reset()
        with runtime.record() as graph:
            handle = case.step(bands=bands)
        graph.replay()
        assert not differences(workload, case.results(), expected)
        assert ("bands: " in str(runtime.explain(handle))) == (bands != "off")
    assert workload.expert is not None
    by_hand: Any = workload.expert(queues, size, SEED)
    queues.finish()
    by_hand.step()
    queues.finish()
    assert not differences(workload, by_hand.results(), expected)
