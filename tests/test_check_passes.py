"""Launches that checks let through: those that are proven, or left to chance; nothing else is."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from conftest import Environment
from test_check import BACKENDS, make, options_of

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
    return options_of(request.param, device, device=device)


def passed(rt: acs.Runtime) -> int:
    found: int = rt.stats()["check"]["passed"]
    return found


def watched(rt: acs.Runtime) -> int:
    found: int = rt.stats()["check"]["watched"]
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


def test_nothing_is_proven_without_inference(device: cl.Device, environment: Environment) -> None:
    environment(ACS_CL_RANGES="off")
    with acs.Runtime(device, backend="serial", check="access") as rt:
        add = rt.build(SOURCE).add
        x, y = rt.zeros(32, "i4"), rt.zeros(32, "i4")
        for _ in range(MANY):
            add((32,), None, x, y, 32, 0)
        assert watched(rt) == passed(rt) == MANY - FIRST


def test_one_wrong_number_is_found_behind_many_launches(options: dict[str, Any]) -> None:
    with make(options, "access") as rt:
        add = rt.build(SOURCE).add
        x, y = rt.array(np.arange(1, 65, dtype="i4")), rt.zeros(64, "i4")
        for _ in range(MANY):
            add((32,), None, x[:16], y[:32], 16, 16)
        assert passed(rt) == MANY - FIRST
        assert watched(rt) == 0
        with pytest.raises(CheckError) as caught:  # noqa: PT012
            add((32,), None, x[:16], y[:32], 16, 17)
            rt.finish()
        found = caught.value.finding
        assert (found.kind, found.argument, found.first_byte) == ("write", 1, 128)
        add((32,), None, x[:16], y[:32], 16, 16)
        with pytest.raises(CheckError) as caught:  # noqa: PT012
            add((32,), None, x[:16], y[:32], 17, 0)
            rt.finish()
        found = caught.value.finding
        assert (found.kind, found.argument, found.first_byte) == ("read", 0, 64)


def test_one_short_declaration_is_found_behind_many_launches(options: dict[str, Any]) -> None:
    with make(options, "access") as rt:
        add = rt.build(SOURCE).add
        x, y = rt.array(np.arange(1, 33, dtype="i4")), rt.zeros(32, "i4")
        for _ in range(MANY):
            add((32,), None, x, y, 32, 0, reads=[x, y], writes=y)
        assert passed(rt) > 0
        with pytest.raises(CheckError) as caught:  # noqa: PT012
            add((32,), None, x, y, 32, 0, reads=[x[:31], y], writes=y)
            rt.finish()
        found = caught.value.finding
        assert (found.kind, found.argument, found.first_byte) == ("read", 0, 124)


# ---- watched launches ----------------------------------------------------------------------------


@pytest.mark.parametrize("check", ["access", "order", "access,order,uninitialised"])
def test_an_index_from_memory_is_watched(check: str, options: dict[str, Any]) -> None:
    with make(options, check) as rt:
        put = rt.build(SOURCE).put
        which, y = rt.array(np.arange(16, dtype="i4")), rt.zeros(32, "i4")
        for turn in range(MANY):
            put((16,), None, which, y[:16])
            if turn % 8 == 7:
                assert y.get()[:16].tolist() == [1] * 16
        looked = FIRST if "access" in check else 8  # a whole batch, before it is judged
        assert passed(rt) == watched(rt) == MANY - looked
        which[3:4].set(np.full(1, 20, "i4"))
        before = rt.stats()["launches"]
        with pytest.raises(CheckError) as caught:  # noqa: PT012
            put((2,), None, which, y[:16])
            put((16,), None, which, y[:16])
            put((2,), None, which, y[:16])
            rt.finish()
        found = caught.value.finding
        assert (found.kind, found.launch) == ("write", before + 2)
        assert (found.argument, found.first_byte) == (1, 80)


def test_what_was_noted_and_does_not_matter_accuses_nobody(options: dict[str, Any]) -> None:
    """A kernel that reads what it does not declare, and makes nothing of it, is not watched any
    more: each of its launches is looked at."""
    source = """
    kernel void some(global const int *x, global const int *at, global int *y)
    { int i = get_global_id(0); int v = x[at[i]]; y[i] = v * (at[i] < 16); }
    """
    with warnings.catch_warnings(), make(options, "access") as rt:
        warnings.simplefilter("error", CheckWarning)
        some = rt.build(source).some
        x, at = rt.array(np.arange(1, 33, dtype="i4")), rt.array(np.arange(16, dtype="i4"))
        y = rt.zeros(16, "i4")
        for turn in range(MANY):
            if turn == 20:
                at[3:4].set(np.full(1, 20, "i4"))
            some((16,), None, x, at, y, reads=[x[:16], at])
            if turn % 4 == 3:
                right = [*range(1, 17)]
                right[3] = 0 if turn >= 20 else 4
                assert y.get().tolist() == right
        assert watched(rt) == 20
        assert rt.stats()["check"]["found"] == 0


def test_rows_of_a_matrix_are_watched(options: dict[str, Any]) -> None:
    source = """
    kernel void turn(global const int *at, global int *y, int pitch)
    { y[get_global_id(1) * pitch + at[get_global_id(0)]] += 1; }
    """
    with make({**options, "memory": "svm"}, "access") as rt:
        turn = rt.build(source).turn
        at, y = rt.array(np.arange(4, dtype="i4")), rt.zeros((8, 16), "i4")
        for _ in range(MANY):
            turn((4, 8), None, at, y[:, 4:8], 16)
        expected = np.zeros((8, 16), "i4")
        expected[:, 4:8] = MANY
        np.testing.assert_array_equal(y.get(), expected)
        assert watched(rt) == MANY - FIRST
        at[2:3].set(np.full(1, 4, "i4"))
        with pytest.raises(CheckError) as caught:  # noqa: PT012
            turn((4, 8), None, at, y[:, 4:8], 16)
            rt.finish()
        found = caught.value.finding
        assert (found.kind, found.argument, found.first_byte) == ("write", 1, 16)


def test_what_was_noted_among_launches_that_cannot_be_run_again_is_told_of(
    device: cl.Device,
) -> None:
    with acs.Runtime(device, backend="lanes", check="access") as rt:
        put = rt.build(SOURCE).put
        which, y = rt.array(np.arange(16, dtype="i4")), rt.zeros(32, "i4")
        for _ in range(FIRST):
            put((16,), None, which, y[:16])
        which[3:4].set(np.full(1, 20, "i4"))
        gate = cl.UserEvent(rt.context)
        put((16,), None, which, y[:16])
        put((16,), None, which, y[16:], wait_for=[gate])
        gate.set_status(cl.command_execution_status.COMPLETE)
        rt.finish()
        with pytest.warns(CheckWarning, match="touched what it does not declare"):
            rt.finish()
        report = rt.stats()["check"]
        assert report["unchecked"]
        assert report["watched"] == 1


@pytest.mark.parametrize("check", ["access", "access,order"])
def test_a_host_task_is_not_accused_of_what_a_watched_launch_did(
    check: str, options: dict[str, Any]
) -> None:
    with make(options, check) as rt:
        put = rt.build(SOURCE).put
        which, y = rt.array(np.arange(16, dtype="i4")), rt.zeros(32, "i4")
        for _ in range(MANY):
            put((16,), None, which, y[:16])
        rt.finish()
        which[3:4].set(np.full(1, 20, "i4"))
        with pytest.raises(CheckError) as caught:  # noqa: PT012
            put((16,), None, which, y[:16])
            rt.call(lambda some: None, reads=which)
            rt.finish()
        assert caught.value.finding.kernel == "put"


@pytest.mark.parametrize("seed", range(4))
def test_with_watching_and_without_the_same_is_found(seed: int, device: cl.Device) -> None:
    """The slow twin is every=1."""
    chance = np.random.default_rng(seed)
    turns = [int(chance.integers(FIRST, MANY)), int(chance.integers(32, 64))]
    found = []
    for check in ("access", "access,every=1"):
        with acs.Runtime(device, backend="out_of_order", check=check) as rt:
            put = rt.build(SOURCE).put
            which, y = rt.array(np.arange(16, dtype="i4")), rt.zeros(64, "i4")
            with pytest.raises(CheckError) as caught:  # noqa: PT012
                for turn in range(MANY):
                    which.set(np.random.default_rng(turn).permutation(16).astype("i4"))
                    if turn == turns[0]:
                        which[5:6].set(np.full(1, turns[1], "i4"))
                    put((16,), None, which, y[:32])
                    y.get()
            found.append(caught.value.finding)
    assert found[0] == found[1]


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
