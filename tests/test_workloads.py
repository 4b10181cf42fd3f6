"""Every workload computes what its reference computes, on every platform."""

from __future__ import annotations

import os
from typing import Any

import pytest

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks.workloads import catalogue
from acs_cl.benchmarks.workloads.bare import InOrder
from acs_cl.benchmarks.workloads.expert import Queues
from acs_cl.benchmarks.workloads.workload import PRESETS, Workload, differences

CATALOGUE = catalogue()
PRESET = os.environ.get("ACS_CL_PRESET", "tiny")
SEEDS = (0, 1)
BACKENDS = ("serial", "out_of_order", "lanes", "device", "auto")


def ran(workload: Workload, make: Any, platform: Any, seed: int) -> str:
    """What is wrong after two steps from the same beginning."""
    size = workload.presets[PRESET]
    run = make(platform, size, seed)
    platform.finish()
    run.step()
    platform.finish()
    first = run.results()
    run.reset()
    platform.finish()
    run.step()
    platform.finish()
    expected = workload.reference(size, seed)
    return differences(workload, first, expected) or differences(workload, run.results(), expected)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CATALOGUE)
def test_on_every_backend(name: str, backend: str, seed: int) -> None:
    workload = CATALOGUE[name]
    with acs.Runtime(backend=backend) as rt:
        assert not ran(workload, workload.make, rt, seed)
        if workload.host_decided is not None:
            assert not ran(workload, workload.host_decided, rt, seed)


@pytest.mark.parametrize("name", CATALOGUE)
def test_in_bare_pyopencl(name: str) -> None:
    workload = CATALOGUE[name]
    device = devices.choose()
    assert not ran(workload, workload.host_decided or workload.make, InOrder(device), 0)
    if workload.expert is not None:
        assert not ran(workload, workload.expert, Queues(device), 0)
        assert not ran(workload, workload.expert, Queues(device, lanes=3), 1)


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_wrong_result_is_found(name: str) -> None:
    workload = CATALOGUE[name]
    expected = workload.reference(workload.presets["tiny"], 0)
    assert not differences(workload, expected, expected)
    for key, values in expected.items():
        wrong = {**expected, key: values + values.dtype.type(1)}
        assert key in differences(workload, wrong, expected)


def test_every_workload_has_its_sizes_and_a_family() -> None:
    for name, workload in CATALOGUE.items():
        assert name == workload.name
        assert tuple(workload.presets) == PRESETS
        assert workload.about
