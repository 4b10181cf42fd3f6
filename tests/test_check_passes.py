"""Launches that checks let through: those that are proven, or left to chance; nothing else is."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from test_check import BACKENDS, make

import acs_cl as acs
from acs_cl.check.passes import FIRST
from acs_cl.errors import CheckError, CheckWarning

SOURCE = """
kernel void add(global const int *x, global int *y, int n, int from)
{ int i = get_global_id(0); if (i < n) y[from + i] += x[i]; }
kernel void put(global const int *which, global int *y)
{ y[which[get_global_id(0)]] = 1; }
kernel void some(global const int *x, global int *y)
{ int i = get_global_id(0); if (x[i] < 4) y[i] = x[i]; }
"""
MANY = 40


@pytest.fixture(params=BACKENDS, ids="-".join)
def options(request: pytest.FixtureRequest, device: cl.Device) -> dict[str, Any]:
    backend, issue, memory = request.param
    return {"device": device, "backend": backend, "issue": issue, "memory": memory}


def passed(rt: acs.Runtime) -> int:
    found: int = rt.stats()["check"]["passed"]
    return found


@pytest.mark.parametrize(
    "check", ["access", "order", "uninitialised", "access,order,uninitialised"]
)
def test_what_is_proven_is_let_through_and_does_the_same(
    check: str, options: dict[str, Any]
) -> None:
    with warnings.catch_warnings(), make(options, check) as rt:
        warnings.simplefilter("error", CheckWarning)
        prog = rt.build(SOURCE)
        x, y = rt.array(np.arange(32, dtype="i4")), rt.zeros(64, "i4")
        for turn in range(MANY):
            prog.add((32,), None, x, y, 32, 32 * (turn % 2))
            if turn % 8 == 7:
                x.copy_from(y[:32])
                rt.finish()
        expected, other = np.zeros(64, "i4"), np.arange(32, dtype="i4")
        for turn in range(MANY):
            expected[32 * (turn % 2) :][:32] += other
            if turn % 8 == 7:
                other = expected[:32].copy()
        np.testing.assert_array_equal(y.get(), expected)
        report = rt.stats()["check"]
        assert report["found"] == 0
        assert MANY - report["passed"] <= 2 * FIRST + (8 if check == "order" else 0)


def test_all_are_looked_at_where_that_is_asked_for(options: dict[str, Any]) -> None:
    with make(options, "access,order,every=1") as rt:
        add = rt.build(SOURCE).add
        x, y = rt.zeros(32, "i4"), rt.zeros(32, "i4")
        for _ in range(MANY):
            add((32,), None, x, y, 32, 0)
        rt.finish()
        assert passed(rt) == 0
        assert rt.stats()["check"]["orders"] > 0


def test_nothing_is_proven_without_inference(
    device: cl.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACS_CL_RANGES", "off")
    with acs.Runtime(device, check="access") as rt:
        add = rt.build(SOURCE).add
        x, y = rt.zeros(32, "i4"), rt.zeros(32, "i4")
        for _ in range(MANY):
            add((32,), None, x, y, 32, 0)
        assert passed(rt) == 0


def test_an_index_from_memory_is_looked_at_each_time(options: dict[str, Any]) -> None:
    with make(options, "access") as rt:
        put = rt.build(SOURCE).put
        which, y = rt.array(np.arange(16, dtype="i4")), rt.zeros(32, "i4")
        for _ in range(MANY):
            put((16,), None, which, y[:16])
        assert passed(rt) == 0
        which[3:4].set(np.full(1, 20, "i4"))
        with pytest.raises(CheckError) as caught:
            put((16,), None, which, y[:16])
        found = caught.value.finding
        assert (found.launch, found.argument, found.first_byte) == (MANY + 4, 1, 80)


def test_one_wrong_number_is_found_behind_many_launches(options: dict[str, Any]) -> None:
    with make(options, "access") as rt:
        add = rt.build(SOURCE).add
        x, y = rt.array(np.arange(1, 65, dtype="i4")), rt.zeros(64, "i4")
        for _ in range(MANY):
            add((32,), None, x[:16], y[:32], 16, 16)
        assert passed(rt) == MANY - FIRST
        with pytest.raises(CheckError) as caught:
            add((32,), None, x[:16], y[:32], 16, 17)
        found = caught.value.finding
        assert (found.kind, found.argument, found.first_byte) == ("write", 1, 128)
        add((32,), None, x[:16], y[:32], 16, 16)
        with pytest.raises(CheckError) as caught:
            add((32,), None, x[:16], y[:32], 17, 0)
        found = caught.value.finding
        assert (found.kind, found.argument, found.first_byte) == ("read", 0, 64)


def test_one_short_declaration_is_found_behind_many_launches(options: dict[str, Any]) -> None:
    with make(options, "access") as rt:
        add = rt.build(SOURCE).add
        x, y = rt.array(np.arange(1, 33, dtype="i4")), rt.zeros(32, "i4")
        for _ in range(MANY):
            add((32,), None, x, y, 32, 0, reads=[x, y], writes=y)
        assert passed(rt) > 0
        with pytest.raises(CheckError) as caught:
            add((32,), None, x, y, 32, 0, reads=[x[:31], y], writes=y)
        found = caught.value.finding
        assert (found.kind, found.argument, found.first_byte) == ("read", 0, 124)


def test_orders_with_launches_that_are_let_through(options: dict[str, Any]) -> None:
    """What is proven is run again all the same where it is among launches that are not."""
    with make(options, "order=1") as rt:
        prog = rt.build(SOURCE)
        x, y, z = rt.array(np.arange(32, dtype="i4")), rt.zeros(32, "i4"), rt.zeros(32, "i4")
        for _ in range(MANY):
            prog.add((32,), None, x, y[:16], 16, 0)
        rt.finish()
        y.fill(0)
        for _ in range(3):
            prog.add((32,), None, x, y[:16], 16, 0)
        rt.finish()
        assert passed(rt) >= 3
        with pytest.raises(CheckError) as caught:  # noqa: PT012
            prog.add((32,), None, x, y[:16], 16, 0)
            prog.some((32,), None, y, z, reads=y[16:])
            rt.finish()
        assert (caught.value.finding.kernel, caught.value.finding.argument) == ("some", 0)


def test_an_array_that_goes_after_launches_that_were_let_through(options: dict[str, Any]) -> None:
    with warnings.catch_warnings(), make(options, "access,order") as rt:
        warnings.simplefilter("error", CheckWarning)
        prog = rt.build(SOURCE)
        x = rt.array(np.arange(32, dtype="i4"))
        for _ in range(6):
            y = rt.zeros(32, "i4")
            for _ in range(FIRST + 4):
                prog.add((32,), None, x, y, 32, 0)
            del y
            prog.put((8,), None, x[:8], rt.zeros(32, "i4"))
            assert x.get()[5] == 5
        assert passed(rt) > 20
        assert rt.stats()["check"]["found"] == 0


def test_bytes_that_nobody_wrote_are_looked_for_in_what_is_proven(options: dict[str, Any]) -> None:
    with make(options, "uninitialised") as rt:
        some = rt.build(SOURCE).some
        x, y = rt.array(np.arange(32, dtype="i4")), rt.empty(32, "i4")
        for _ in range(MANY):
            some((32,), None, x, y)
        assert passed(rt) == 0, "it never writes all of y"
        some((32,), None, y[:4], x[:4], reads=y[:4])
        with pytest.warns(CheckWarning, match="byte 0 of argument 0"):
            some((4,), None, y[8:12], x[8:12])


def test_one_in_so_many_is_looked_at(options: dict[str, Any]) -> None:
    with make(options, "access,every=8") as rt:
        put = rt.build(SOURCE).put
        which, y = rt.array(np.arange(16, dtype="i4")), rt.zeros(32, "i4")
        for _ in range(10 * MANY):
            put((16,), None, which, y)
        looked = 10 * MANY - passed(rt)
        assert FIRST + 20 < looked < FIRST + 90
        assert y.get()[:17].tolist() == [1] * 16 + [0]
        other = rt.build(SOURCE).put
        with pytest.raises(CheckError) as caught:
            other((16,), None, which, y[:15])
        assert caught.value.finding.first_byte == 60
