"""Every workload computes what its reference computes, on every platform."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.benchmarks.workloads import catalogue
from acs_cl.benchmarks.workloads.bare import InOrder
from acs_cl.benchmarks.workloads.expert import Queues
from acs_cl.benchmarks.workloads.workload import (
    PRESETS,
    Results,
    Workload,
    building_once,
    differences,
    ready,
)

CATALOGUE = catalogue()
PRESET = os.environ.get("ACS_CL_PRESET", "tiny")
SEEDS = (0, 1)
BACKENDS = ("serial", "out_of_order", "lanes", "device", "auto", "emulated")


@cache
def right(name: str, seed: int) -> Results:
    """What a workload has to compute."""
    return CATALOGUE[name].reference(CATALOGUE[name].presets[PRESET], seed)


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
    expected = right(workload.name, seed)
    return differences(workload, first, expected) or differences(workload, run.results(), expected)


def prebuilding(rt: acs.Runtime) -> acs.Runtime:
    """The runtime, which from now on has all kernels of a program in its scheduler, if it has one,
    before they are launched. Else larger and larger ones would be built behind the program."""
    build = rt.build

    def built(*about: Any) -> acs.Program:
        program = build(*about)
        rt.prebuild(*(getattr(program, name) for name in program.kernels))
        return program

    rt.build = built  # type: ignore[method-assign, assignment]
    return rt


@pytest.fixture(scope="module")
def platforms() -> Iterator[Callable[[str, Callable[[], Any]], Any]]:
    """Gives the platform of a name, made once: workloads of a family share their programs, and
    most of the time would go into building them again."""
    made: dict[str, Any] = {}

    def named(name: str, make: Callable[[], Any]) -> Any:
        if name not in made:
            made[name] = building_once(make())
        return made[name]

    yield named
    for platform in made.values():
        if isinstance(platform, acs.Runtime):
            platform.close()


@pytest.mark.rotate("backend", 2)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CATALOGUE)
def test_on_every_backend(name: str, backend: str, platforms: Any) -> None:
    workload = CATALOGUE[name]
    rt = platforms(
        f"{backend} {workload.family}", lambda: prebuilding(acs.Runtime(backend=backend))
    )
    for make in filter(None, (workload.make, workload.host_decided)):
        for seed in SEEDS:
            assert not ran(workload, make, rt, seed)


@pytest.mark.parametrize("name", CATALOGUE)
def test_what_is_inferred_of_its_kernels_is_what_they_touch(name: str, platforms: Any) -> None:
    workload = CATALOGUE[name]
    rt = platforms(
        f"check {workload.family}", lambda: acs.Runtime(backend="serial", check="access,every=1")
    )
    before = rt.stats()["check"]["runs"]
    assert not ran(workload, workload.make, rt, 0)
    report = rt.stats()["check"]
    assert report["runs"] - before >= 10
    for what in ("found", "passed", "unchecked", "unsteady"):
        assert not report[what], what


@pytest.mark.parametrize("name", CATALOGUE)
def test_in_bare_pyopencl(name: str, platforms: Any, context: cl.Context) -> None:
    workload, (device,) = CATALOGUE[name], context.devices
    platform = platforms(f"bare {workload.family}", lambda: InOrder(device, context))
    assert not ran(workload, workload.host_decided or workload.make, platform, 0)
    if workload.expert is not None:
        for seed, lanes in enumerate((16, 3)):
            queues = platforms(
                f"{lanes} {workload.family}", lambda lanes=lanes: Queues(device, context, lanes)
            )
            assert not ran(workload, workload.expert, queues, seed)


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


def test_a_launch_that_is_ready_is_the_launch_on_every_platform(device: cl.Device) -> None:
    source = "kernel void add(global int *x, int by) { x[get_global_id(0)] += by; }"
    with acs.Runtime(device) as rt:
        for platform in (rt, InOrder(device), Queues(device)):
            x = platform.zeros(8, np.int32)
            platform.finish()
            again = ready(platform.build(source).add, (8,), None, x, 3)
            if isinstance(platform, Queues):
                platform.finish()
                first = platform.go(again)
                platform.go(again, [first], on=1)
            else:
                again()
                again()
            platform.finish()
            assert x.get().tolist() == [6] * 8
            if not isinstance(platform, acs.Runtime):  # nothing is looked up in the step
                assert x.buffer in again.args  # type: ignore[attr-defined]


def test_what_is_ready_may_be_told_when(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        x, flags = rt.zeros(8, "i4"), rt.array([0, 1], "u4")
        add = rt.build("kernel void add(global int *x) { x[get_global_id(0)] += 1; }").add
        again = ready(add, (8,), None, x)
        for flag in (0, 1, 1):
            again(when=flags[flag])
        assert x.get().tolist() == [2] * 8
