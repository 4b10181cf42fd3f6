"""Every workload computes what its reference computes, on every platform."""

from __future__ import annotations

import os
from typing import Any

import pyopencl as cl
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


def building_once(platform: Any) -> Any:
    """The platform, which gives the same program for the same text: else it compiles most of the
    time, the schedulers of each program anew."""
    programs: dict[tuple[str, str], Any] = {}
    build = platform.build

    def built(source: str, options: Any = (), macros: Any = None) -> Any:
        key = source, repr((options, macros))
        if key not in programs:
            programs[key] = build(source, options=options, macros=macros)
        return programs[key]

    platform.build = built
    return platform


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CATALOGUE)
def test_on_every_backend(name: str, backend: str) -> None:
    workload = CATALOGUE[name]
    with acs.Runtime(backend=backend) as rt:
        building_once(rt)
        for make in filter(None, (workload.make, workload.host_decided)):
            for seed in SEEDS:
                assert not ran(workload, make, rt, seed)


@pytest.mark.parametrize("name", CATALOGUE)
def test_what_is_inferred_of_its_kernels_is_what_they_touch(name: str) -> None:
    workload = CATALOGUE[name]
    with acs.Runtime(backend="serial", check="access,every=1") as rt:
        assert not ran(workload, workload.make, building_once(rt), 0)
        report = rt.stats()["check"]
    assert report["runs"] >= 10
    for what in ("found", "passed", "unchecked", "unsteady"):
        assert not report[what], what


@pytest.mark.parametrize("name", CATALOGUE)
def test_in_bare_pyopencl(name: str) -> None:
    workload = CATALOGUE[name]
    device = devices.choose()
    context = cl.Context([device])
    platform = building_once(InOrder(device, context))
    assert not ran(workload, workload.host_decided or workload.make, platform, 0)
    if workload.expert is not None:
        for seed, lanes in enumerate((16, 3)):
            platform = Queues(device, context, lanes=lanes)
            assert not ran(workload, workload.expert, platform, seed)


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
