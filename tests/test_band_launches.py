"""Bands of launches that are not recorded: the core makes those of a known plan by itself.

What it makes is held against what Python makes, and against whole launches.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from inside import launching
from random_bands import Machine, random_program

import acs_cl as acs
from acs_cl import testing
from acs_cl.launch.parts import IS_PART
from acs_cl.scheduler.backend import Device as SchedulerBackend
from acs_cl.testing.changing import changed

PROGRAMS = max(8, int(os.environ.get("ACS_CL_FUZZ", "300")) // 30)
N = 4096
SOURCE = """
kernel void sweep(global const float *x, global float *y, int n)
{ int i = get_global_id(0); if (i > 0 && i < n - 1) y[i] = (x[i - 1] + x[i] + x[i + 1]) * 0.25f; }
kernel void twice(global const float *x, global float *y, int n)
{ int i = get_global_id(0); if (i < n) y[i] = 2 * x[i] + get_group_id(0); }
"""


def swept(x: Any) -> Any:
    """What a sweep makes of `x`."""
    y = np.zeros_like(x)
    y[1:-1] = (x[:-2] + x[1:-1] + x[2:]) * np.float32(0.25)
    return y


@pytest.fixture(params=["lanes", "out_of_order"])
def made(request: pytest.FixtureRequest, device: cl.Device) -> Iterator[Any]:
    with acs.Runtime(device, backend=request.param) as rt:
        yield rt, rt.build(SOURCE)


@pytest.fixture(params=["lanes", "device"])
def either(request: pytest.FixtureRequest, device: cl.Device) -> Iterator[Any]:
    """On lanes, or as tasks of the scheduler."""
    with acs.Runtime(device, backend=request.param) as rt:
        prog = rt.build(SOURCE)
        if request.param == "device":
            rt.prebuild(prog.sweep, (prog.sweep, 16), prog.twice)
        yield rt, prog


def by_core(rt: acs.Runtime, launch: Any, *args: Any, **said: Any) -> tuple[int, Any]:
    """How many launches of a call the core made, and its handle."""
    before = testing.made_by_core(rt)
    handle = launch(*args, **said)
    return testing.made_by_core(rt) - before, handle


@pytest.mark.parametrize(
    ("bands", "local", "many"), [(4, None, 4), (5, (16,), 5), (acs.Row(32), (16,), 8)], ids=str
)
def test_the_core_makes_bands_like_earlier_ones(
    either: Any, bands: Any, local: Any, many: int
) -> None:
    rt, prog = either
    values = np.random.default_rng(1).random(N, "f4")
    x, y, z = rt.array(values), rt.zeros(N, "f4"), rt.zeros(N, "f4")
    cut = {"bands": bands}
    assert by_core(rt, prog.sweep, (N,), local, x, y, N, **cut)[0] == 0
    for source, target, n in ((x, y, N), (y, z, N), (x, y, N - 1), (x, y, N)):
        count, handle = by_core(rt, prog.sweep, (N,), local, source, target, n, **cut)
        assert count == many
        last = handle.number
        told = str(rt.explain(handle))
        assert f"bands: {many}, launches {last - many + 1} to {last}" in told
        assert f"writes bytes 4..{4 * (n - 1)} of" in told
        handle.wait()
        assert handle.done
    np.testing.assert_array_equal(y.get(), swept(values))
    np.testing.assert_array_equal(z.get(), swept(swept(values)))
    # another cut of the same launch, or none, is another matter
    assert by_core(rt, prog.sweep, (N,), local, x, y, N)[0] == 0
    assert by_core(rt, prog.sweep, (N,), local, x, y, N)[0] == 1
    assert by_core(rt, prog.sweep, (N,), local, x, y, N, bands="off")[0] == 0
    assert by_core(rt, prog.sweep, (N,), local, x, y, N, bands=3)[0] == 0
    assert by_core(rt, prog.sweep, (N,), local, x, y, N, **cut)[0] == many


def test_bands_by_default_are_the_cores_too(device: cl.Device) -> None:
    with acs.Runtime(device, backend="lanes", bands=3) as rt:
        prog = rt.build(SOURCE)
        x, y, flag = rt.zeros(N, "f4"), rt.zeros(N, "f4"), rt.array([1], "i4")
        prog.twice((N,), (16,), x, y, N, bands="off")
        prog.twice((N,), (16,), x, y, N, when=flag)
        assert by_core(rt, prog.twice, (N,), (16,), x, y, N)[0] == 0
        assert by_core(rt, prog.twice, (N,), (16,), x, y, N)[0] == 3
        assert by_core(rt, prog.twice, (N,), (16,), x, y, N, bands=None)[0] == 3
        np.testing.assert_array_equal(y.get(), np.arange(N, dtype="f4") // 16)


def test_bands_of_the_cores_have_bytes_of_their_own(either: Any) -> None:
    rt, prog = either
    x, y, z = (rt.zeros(N, "f4") for _ in range(3))
    for _ in range(2):
        prog.sweep((N,), None, x, y, N, bands=4)
        handle = prog.sweep((N,), None, y, z, N, bands=4)
    for own, number in enumerate(handle.numbers):
        launch = rt.engine.table.launch(number)
        if launch is not None:  # it has not ended
            assert [span.start // N for span in launch.access.writes] == [own]


def test_bands_that_would_write_the_same_bytes_stay_whole(either: Any) -> None:
    """That depends on the arrays: of a view with gaps all counts."""
    rt, prog = either
    x, y = rt.zeros(N, "f4"), rt.zeros(N, "f4")
    wide = rt.zeros((2, 2 * N), "f4")
    for _ in range(2):
        handle = prog.sweep((N,), None, x, y, N, bands=4)
    assert "bands: 4" in str(rt.explain(handle))
    handle = prog.sweep((N,), None, x, wide[:, : N // 2], N, bands=4)
    assert "bands: off, since" in str(rt.explain(handle))
    assert by_core(rt, prog.sweep, (N,), None, x, y, N, bands=4)[0] == 4


def test_what_may_be_poisoned_is_launched_whole(either: Any) -> None:
    rt, prog = either
    x, y = rt.zeros(N, "f4"), rt.zeros(N, "f4")
    for _ in range(2):
        prog.sweep((N,), None, x, y, N, bands=4)
    rt.finish()
    goes = threading.Event()

    def fail(_: Any) -> None:
        goes.wait(60)
        raise ZeroDivisionError

    failing = rt.call(fail, writes=[x[:4]])
    held = prog.sweep((N,), None, x, y, N, bands=4)
    goes.set()
    with pytest.raises(acs.AcsError):
        failing.wait()
    again = prog.sweep((N,), None, x, y, N, bands=4)
    for handle in (held, again):
        assert "bands: off, since bytes of it are poisoned" in str(rt.explain(handle))
        with pytest.raises(acs.AcsError):
            handle.wait()


@contextmanager
def refusing(turns: set[int]) -> Iterator[list[int]]:
    """Have the driver refuse some of the core's launches, by their turn; give how many there
    were."""
    seen = [0]

    def made(real: Callable[..., int]) -> Callable[..., int]:
        def launch(*what: Any) -> int:
            seen[0] += 1
            refused = seen[0] - 1 in turns
            return int(cl.status_code.OUT_OF_RESOURCES) if refused else int(real(*what))

        return launch

    with launching(made):
        yield seen


@pytest.mark.parametrize("turn", range(4))
def test_a_band_that_the_driver_refuses_the_core_goes_on_as_a_record(made: Any, turn: int) -> None:
    rt, prog = made
    values = np.random.default_rng(2).random(N, "f4")
    x, y = rt.array(values), rt.zeros(N, "f4")
    prog.sweep((N,), None, x, y, N, bands=4).wait()
    y.fill(0).wait()
    with refusing({turn, turn + 1}):  # Python tries again, by the same queues first
        count, handle = by_core(rt, prog.sweep, (N,), None, x, y, N, bands=4)
    assert count == 3
    assert len(handle.numbers) == 4
    handle.wait()
    np.testing.assert_array_equal(y.get(), swept(values))


@pytest.mark.parametrize("turn", [0, 2])
def test_a_band_that_everybody_refuses_fails_the_launch(made: Any, turn: int) -> None:
    """The first one as if nothing had been; others have bands that run."""
    rt, prog = made
    x, y = rt.array(np.ones(N, "f4")), rt.zeros(N, "f4")
    prog.sweep((N,), None, x, y, N, bands=4).wait()
    y.fill(0).wait()

    def refuse(launch: Any, *_: Any) -> None:
        if not refused:
            refused.append(launch.number)
            raise cl.MemoryError("refused for the test")
        submit(launch)

    refused: list[int] = []
    submit = rt.engine.backend.submit
    with changed(rt.engine.backend, "submit", refuse), refusing({turn}):
        if not turn:
            with pytest.raises(acs.AcsError, match="refused for the test"):
                prog.sweep((N,), None, x, y, N, bands=4)
            return
        handle = prog.sweep((N,), None, x, y, N, bands=4)
    assert refused == [handle.numbers[turn]]
    with pytest.raises(acs.AcsError, match="refused for the test"):
        handle.wait()
    with pytest.raises(acs.PoisonedError):
        y.get()
    assert y[8 : N // 2].get().all()
    assert y[3 * N // 4 : N - 8].get().all()


def test_epochs_of_bands_come_as_foreseen_and_end_with_launches(device: cl.Device) -> None:
    """Those that repeat stay on the device; some have other cuts of the same launches."""
    found = []
    for backend in ("device", "serial"):
        with acs.Runtime(device, backend=backend) as rt:
            prog = rt.build(SOURCE)
            if backend == "device":
                rt.prebuild(prog.sweep)
            x, y = rt.array(np.random.default_rng(4).random(N, "f4")), rt.zeros(N, "f4")
            for step in range(40):
                for turn in range(12):
                    bands = 8 if turn % 2 or step % 7 else 5
                    source, target = (y, x) if turn % 2 else (x, y)
                    prog.sweep((N,), None, source, target, N, bands=bands)
                rt.finish()
            found.append(x.get())
            if backend == "device":
                assert rt.stats()["scheduler"]["predicted"]["epochs"] > 3
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_bands_beyond_the_window_come_in_turn(device: cl.Device) -> None:
    with acs.Runtime(device, backend="lanes", window=3) as rt:
        prog = rt.build(SOURCE)
        values = np.random.default_rng(3).random(N, "f4")
        x, y = rt.array(values), rt.zeros(N, "f4")
        for _ in range(20):
            prog.sweep((N,), None, x, y, N, bands=8)
            prog.sweep((N,), None, y, x, N, bands=8)
            values = swept(swept(values))
            rt.finish()
            x[0:1].fill(0), x[N - 1 :].fill(0)
        np.testing.assert_allclose(x.get(), values, rtol=1e-6)


@pytest.mark.parametrize("backend", ["lanes", "out_of_order", "device", "auto"])
def test_random_programs_launched_again_and_again_in_bands(device: cl.Device, backend: str) -> None:
    machine, oracle = Machine(device, backend=backend), Machine(device, backend="serial")
    machine.prebuild()
    with machine.rt, oracle.rt:
        count = 0
        for seed in range(PROGRAMS):
            rng = random.Random(seed)
            program = random_program(rng)
            wanted, arrays = oracle.arrays(program, seed), machine.arrays(program, seed)
            for _ in range(4):
                for step in program.steps:
                    numbers = (*step.numbers[:-1], rng.randrange(1, 3))
                    used = [
                        ((at + rng.randrange(2)) % program.arrays, start)
                        for at, start in step.arrays
                    ]
                    step = step._replace(numbers=numbers)
                    if len({at for at, _ in used}) == len(used):
                        step = step._replace(arrays=tuple(used))
                    count += by_core(machine.rt, machine.launch, step, arrays, True)[0]
                    oracle.launch(step, wanted, False)
            for got, want in zip(arrays, wanted, strict=True):
                np.testing.assert_array_equal(got.get(), want.get(), f"seed {seed}: {program}")
        assert count > 10 * PROGRAMS or backend == "auto", count


@pytest.mark.parametrize("backend", ["device", "auto"])
def test_the_first_bands_of_a_kind_are_all_on_lanes(device: cl.Device, backend: str) -> None:
    """Some could go nowhere else, and one in the scheduler would end its epoch each time."""
    with acs.Runtime(device, backend=backend) as rt:
        if not isinstance(rt.engine.backend, SchedulerBackend):
            pytest.skip("auto has no scheduler here")
        prog = rt.build(SOURCE)
        rt.prebuild(prog.sweep)
        x, y = rt.zeros(N, "f4"), rt.zeros(N, "f4")
        handle = prog.sweep((N,), None, x, y, N, bands=4)
        for number in handle.numbers:
            assert rt.engine.backend.where(number) == f"on a lane: {IS_PART}; "


def test_bands_of_an_epoch_that_is_refused_fail(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device") as rt:
        prog = rt.build(SOURCE)
        rt.prebuild(prog.sweep)
        x, y = rt.zeros(N, "f4"), rt.zeros(N, "f4")
        for _ in range(2):
            prog.sweep((N,), None, x, y, N, bands=4).wait()
        with inside.Scheduler(rt).refusing():
            count, handle = by_core(rt, prog.sweep, (N,), None, x, y, N, bands=4)
            assert count == 4
            with pytest.raises(acs.AcsError, match="OUT_OF_RESOURCES"):
                handle.wait()
        assert handle.done
        whole = prog.sweep((N,), None, y, x, N, bands=4)
        assert "bands: off, since bytes of it are poisoned" in str(rt.explain(whole))
        with pytest.raises(acs.PoisonedError):
            whole.wait()
        with pytest.raises(acs.PoisonedError):  # of the other bands
            rt.finish()
