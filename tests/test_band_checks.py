"""Checks of bands: each is run alone, beside what was worked out for it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from inside import bands_touch
from random_bands import Machine, check

from acs_cl.errors import CheckError
from acs_cl.records import Access

N, W, H = 640, 32, 20
LINES = ("scale", "halo", "mirror", "own", "strip", "poses", "team")
FIELDS = ("rows", "turn", "sums")
PLANTS = [*product((*LINES, *FIELDS), ("reads", "writes"), ("begin", "end"))]
ON_LANES = [*product(("halo", "numbered", "blocks"), ("reads", "writes"), ("begin", "end"))]
BANDS = 5
RIGHT = 12
"""Random programs that are right."""


@pytest.fixture(scope="module")
def checked(device: cl.Device) -> Iterator[Machine]:
    machine = Machine(device, backend="device", check="access")
    machine.prebuild()
    yield machine
    machine.rt.close()


@pytest.fixture(scope="module")
def on_lanes(device: cl.Device) -> Iterator[Machine]:
    machine = Machine(device, backend="lanes", check="access")
    yield machine
    machine.rt.close()


def smaller(access: Access, what: str, where: str) -> Access:
    """The same without the first or the last element of what is read or written."""
    spans = [*getattr(access, what)]
    at = 0 if where == "begin" else -1
    one = spans[at]
    if one.rows > 1:
        first = one.start + (one.pitch if where == "begin" else 0)
        spans[at] = one._replace(start=first, rows=one.rows - 1)
    else:
        first = one.start + (4 if where == "begin" else 0)
        spans[at] = one._replace(start=first, width=one.width - 4, pitch=one.width - 4)
    return access._replace(**{what: tuple(spans)})


def replay(machine: Machine, kernel: str) -> None:
    """Record a launch in bands, and replay that."""
    rt, prog = machine.rt, machine.kernels
    values = np.random.default_rng(1).integers(0, 1 << 32, N, "u4")
    arrays: list[Any] = [rt.array(values), rt.array(values[::-1].copy())]
    arrays = arrays[:1] if kernel == "own" else arrays
    size: tuple[int, ...] = (N // {"strip": 4, "poses": 8}.get(kernel, 1),)
    local: Any = (16,)  # of which groups are numbered
    numbers: tuple[int, ...] = (N, 1)
    if kernel in (*FIELDS, "blocks"):
        size, local, numbers = (W, H), (4, 4) if kernel == "blocks" else (8, 2), (W, H, 1)
    with rt.record() as graph:
        getattr(prog, kernel)(size, local, *arrays, *numbers, bands=BANDS)
    graph.replay().wait()
    rt.finish()


@pytest.mark.parametrize(("kernel", "what", "where"), PLANTS)
def test_a_band_that_touches_more_than_was_worked_out_is_named(
    checked: Machine, kernel: str, what: str, where: str
) -> None:
    band = len(f"{kernel} {what} {where}") % BANDS
    seen = []

    def plant(number: int, access: Access) -> Access:
        seen.append(number)
        return smaller(access, what, where) if number == band else access

    says = "writes byte" if what == "writes" else "its outcome depends on byte"
    with bands_touch(plant), pytest.raises(CheckError, match=says) as caught:
        replay(checked, kernel)
    assert f"band {band} of {max(seen) + 1} of launch" in str(caught.value)
    assert repr(kernel) in str(caught.value)


@pytest.mark.parametrize(("kernel", "what", "where"), ON_LANES)
def test_a_band_on_a_lane_is_named_too(
    on_lanes: Machine, kernel: str, what: str, where: str
) -> None:
    test_a_band_that_touches_more_than_was_worked_out_is_named(on_lanes, kernel, what, where)


def test_no_band_is_accused_that_touches_what_was_worked_out(checked: Machine) -> None:
    oracle, before = Machine(backend="serial"), checked.rt.stats()["check"]
    for seed in range(RIGHT):
        check(checked, oracle, seed)
    report = checked.rt.stats()["check"]
    assert report["found"] == before["found"]
    assert report["runs"] - before["runs"] > 3 * (report["launches"] - before["launches"])
    oracle.rt.close()


def test_bands_are_looked_at_while_the_times_of_tasks_are_taken(device: cl.Device) -> None:
    """Then the scheduler has a form of its own."""
    machine = Machine(device, backend="device", check="access", trace=True)
    with machine.rt.measure():
        replay(machine, "scale")
    assert machine.rt.stats()["check"]["runs"] > 3 * BANDS
    machine.rt.close()
