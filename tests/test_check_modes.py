"""The switch of the checks: what can be asked for, what a wrong word says, what is off when off."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
from random import Random
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from check_programs import SOURCE
from conftest import Environment

import acs_cl as acs
from acs_cl.check.checker import Checker
from acs_cl.check.memory import SvmRegion
from acs_cl.check.order import legal, lots
from acs_cl.check.patterns import marked, rolled, swapped, word
from acs_cl.errors import CheckError, CheckWarning
from acs_cl.options import modes
from acs_cl.records import Modes


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, Modes()),
        ("", Modes()),
        ("access", Modes(access=True)),
        ("access, order=7", Modes(access=True, order=True, seed=7)),
        (["leaks", "uninitialised"], Modes(uninitialised=True, leaks=True)),
        ("access,every=16", Modes(access=True, every=16)),
    ],
)
def test_words_become_modes(given: object, expected: Modes) -> None:
    assert modes(given) == expected
    assert modes(str(expected)) == expected


@pytest.mark.parametrize(
    "given",
    [
        "acess",
        "access=2",
        "order=x",
        ["order=-1"],
        "every=0",
        "every",
        True,
        3,
        "order=" + "1" * 9999,
    ],
)
def test_a_wrong_word_is_an_error_that_lists_the_right_ones(given: object) -> None:
    with pytest.raises(acs.UsageError, match=r"check=.*(access, order|seed)"):
        acs.Runtime(check=given)


@pytest.mark.parametrize("given", ["off", "None", ["access", "0"]])
def test_a_word_for_no_checks_says_to_leave_it_out(given: object) -> None:
    with pytest.raises(acs.UsageError, match=r"; for none, leave it out$"):
        acs.Runtime(check=given)


def test_the_environment_adds_checks(device: cl.Device, environment: Environment) -> None:
    environment(ACS_CL_CHECK="access,order=3")
    with acs.Runtime(device, check="leaks") as rt:
        assert rt.options.check == Modes(access=True, order=True, leaks=True, seed=3)
    environment(ACS_CL_CHECK="acess")
    with pytest.raises(acs.UsageError, match="ACS_CL_CHECK="):
        acs.Runtime(device)


def test_nothing_of_the_checks_is_loaded_where_they_are_off() -> None:
    code = (
        "import sys, acs_cl as acs\n"
        "with acs.Runtime() as rt:\n"
        "    rt.zeros(4).get()\n"
        "    assert rt.engine.checker is None and 'check' not in rt.stats()\n"
        "print([name for name in sys.modules if name.startswith('acs_cl.check.')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.strip() == "[]"


def test_stats_say_what_checks_did_and_cost(device: cl.Device) -> None:
    with acs.Runtime(device, check="access,order=1") as rt:
        prog = rt.build(SOURCE)
        x, y = rt.array(range(64), "f4"), rt.zeros(64)
        prog.twice((32,), None, x[:32])
        prog.add((32,), None, x[32:], y[:32])
        rt.finish()
        report = rt.stats()["check"]
    assert report["modes"] == "access,order=1"
    assert report["launches"] == 4
    assert report["orders"] >= 1
    assert report["runs"] > 4
    assert report["seconds"] > 0


def test_the_error_says_everything_in_fields(device: cl.Device) -> None:
    with acs.Runtime(device, check="access") as rt:
        prog = rt.build(SOURCE)
        x = rt.zeros(64)
        with pytest.raises(CheckError) as caught:
            prog.twice((33,), None, x[:32])
        found = caught.value.finding
        assert found.kind == "write"
        assert (found.launch, found.kernel) == (2, "twice")
        assert (found.argument, found.parameter, found.first_byte) == (0, "x", 128)
        assert "test_check_modes.py" in found.site
        assert str(found) == str(caught.value)
        # the program may go on: nothing else is accused afterwards
        prog.twice((32,), None, x[:32])
        assert not x[:32].get().any()


@pytest.mark.parametrize("is_base_older", [False, True])
def test_leaks_lists_what_is_alive_with_its_lines(device: cl.Device, is_base_older: bool) -> None:
    rt = acs.Runtime(device, check="leaks")
    kept, dropped = rt.zeros((4, 4)), rt.zeros(8)
    if is_base_older:  # the collector lists the young first
        gc.collect()
    view = kept[1:]
    handle = kept.fill(1)
    del dropped
    with pytest.warns(CheckWarning) as told:
        rt.close()
    text = str(told[0].message)
    assert "1 array (64 bytes) is alive" in text
    assert "(4, 4) float32, made at" in text
    assert f"launch {handle.number} (fill), made at" in text
    assert text.count("test_check_modes.py") == 2
    assert view.shape == (3, 4)


def test_a_leak_that_is_an_error_is_raised_behind_the_end(device: cl.Device) -> None:
    """As under `python -W error`."""
    rt = acs.Runtime(device, check="leaks")
    x = rt.zeros(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CheckWarning, match="alive"):
            rt.close()
        assert rt.engine.is_closed
        rt.close()
    with pytest.raises(acs.UsageError, match="closed"):
        x.get()


@pytest.mark.parametrize("rows", [1000, 70_000])
def test_bytes_between_declared_ones_are_not_declared(rows: int, device: cl.Device) -> None:
    source = """
    kernel void columns(global float *x)
    { size_t i = get_global_id(0); x[4 * i + 1] = 1; if (i == 5) x[4 * i + 2] = 1; }
    """
    with acs.Runtime(device, check="access") as rt:
        x = rt.zeros((rows, 4))
        with pytest.raises(CheckError, match="writes"):
            rt.build(source).columns((rows,), None, x, reads=[], writes=[x[:, 1]]).wait()


@pytest.mark.parametrize("many", [False, True])
def test_a_wait_for_several_launches_takes_over_what_the_program_changes_next(
    many: bool, device: cl.Device
) -> None:
    """After it the program may write to what it gave to `set`."""
    with acs.Runtime(device, check="access") as rt:
        add = rt.build(
            "kernel void add(global float *x, float a) { x[get_global_id(0)] += a; }"
        ).add
        x, values = rt.zeros(256), np.ones(256, "f4")
        x.set(values, copy=False)
        handle = add.launch_many((256,), None, x, [1, 2]) if many else add((256,), None, x, 3)
        handle.wait()
        values[:] = 7
        assert (x.get() == 4).all()


STRAYS = """
import gc, sys
import acs_cl as acs
rt = acs.Runtime(check=sys.argv[1])
prog = rt.build("kernel void put(global int *x, global const int *at, int k) { x[at[k]] = k; }")
x, at = rt.zeros(64, "i4"), rt.array([0] * 10 + [40], "i4")
for k in range(11):
    prog.put((1,), None, x, at, k, writes=x[:8])
if "collected" in sys.argv:
    del rt, prog, x, at
    gc.collect()
elif "fails" in sys.argv:
    sys.exit(7)
"""


@pytest.mark.parametrize(
    ("check", "ending", "code", "said"),
    [
        ("access", "", 1, "acs_cl: CheckError: launch "),
        ("access", "fails", 7, "acs_cl: CheckError: launch "),
        ("access", "collected", 0, "acs_cl: CheckError: launch "),
        ("leaks", "", 0, "CheckWarning: 2 arrays (300 bytes) are alive at close:"),
        ("leaks", "collected", 0, ""),
    ],
)
def test_what_is_found_while_a_runtime_closes_by_itself_is_told(
    check: str, ending: str, code: int, said: str, device: cl.Device
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STRAYS, check, ending], capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip
    assert said in done.stderr if said else not done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == code, done.stderr


def test_nothing_is_told_where_nothing_is_left(device: cl.Device) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckWarning)
        with acs.Runtime(device, check="leaks") as rt:
            x = rt.zeros(8)
            x.fill(3).wait()
            del x


def test_an_unsteady_kernel_is_told_of_and_not_accused(
    device: cl.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run beside the backend leaves another number, as atomics may."""
    run = Checker._run
    runs: list[int] = []

    def unsteady(checker: Checker, command: object) -> Any:
        event = run(checker, command)
        event.wait()
        runs.append(1)
        part = checker.memory.parts[2]
        part.region.store(part.low, np.full(4, len(runs), np.uint8))
        return event

    monkeypatch.setattr(Checker, "_run", unsteady)
    with acs.Runtime(device, backend="serial", check="access") as rt:
        prog = rt.build(SOURCE)
        x, y = rt.array(range(8), "f4"), rt.zeros(8)
        with pytest.warns(CheckWarning, match="'add', .*not the same each time"):
            prog.add((8,), None, x, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error", CheckWarning)  # once is enough
            prog.add((8,), None, x, y)
        assert y.get()[1] == 2  # what the backend gave
        assert rt.stats()["check"]["unsteady"] == ["add"]
        assert rt.stats()["check"]["found"] == 0


@pytest.mark.parametrize("seed", range(5))
def test_orders_are_legal_and_the_same_for_a_seed(seed: int) -> None:
    upstream = [[], [0], [], [1, 2], [2], [], [5, 0]]
    first = legal(upstream, lots(Random(seed), len(upstream)))
    assert first == legal(upstream, lots(Random(seed), len(upstream)))
    assert sorted(first) == list(range(len(upstream)))
    for index, some in enumerate(upstream):
        assert all(first.index(other) < first.index(index) for other in some)
    latest = legal(upstream, [float(-index) for index in range(len(upstream))])
    assert latest == [5, 2, 4, 0, 6, 1, 3]


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "f2", "f4", "f8"])
def test_other_values_differ_in_each_element_and_are_small(kind: str) -> None:
    values = np.random.default_rng(1).integers(0, 256, 163, np.uint8)
    values[:40] = 0
    size = word(kind)
    whole = len(values) // size * size
    for change in (swapped, marked, rolled):
        other = change(values, kind)
        assert len(other) == len(values)
        same = (other == values)[:whole].reshape(-1, size).all(1)
        assert not same.any(), change.__name__
        assert not (other == values)[whole:].any(), change.__name__
    numbers = swapped(values, kind)[:whole].view(kind.replace("i", "u"))
    assert set(numbers.tolist()) <= {0, 1}


def test_memory_that_may_go_back_to_the_driver_is_watched_no_more(
    device: cl.Device,
) -> None:
    """Large arrays have allocations of their own, and on a CPU begin somewhere inside them."""
    with (
        inside.limit("freed bytes that checks keep", 0),
        acs.Runtime(device, backend="serial", check="access") as rt,
    ):
        twice = rt.build(SOURCE).twice

        def regions() -> int:
            rt.zeros(4).get()  # whatever was noted is taken over
            assert rt.engine.checker is not None
            return len(rt.engine.checker.memory.regions)

        before = regions()
        for _ in range(2):
            x = rt.zeros(10 << 20)
            twice((64,), None, x[:64])
            assert x[:64].get().tolist() == [0] * 64
            assert regions() == before + 1
            del x
            assert regions() == before


def test_a_thousand_small_arrays_do_not_move_what_is_known_of_a_slab_each_time(
    context: cl.Context,
) -> None:
    memory = np.arange(1 << 16, dtype="u2").view("u1")
    region = SvmRegion(
        cl.CommandQueue(context), memory, len(memory), memory.ctypes.data, False, True
    )
    places = set()
    for top in range(128, len(memory) + 1, 128):
        region.grow(top)
        places.add((region.mirror.ctypes.data, region.other.ctypes.data))
    assert (region.mirror == memory).all()
    assert (region.other == swapped(memory, "i4")).all()
    assert not region.unwritten.any()
    assert len(places) <= 12
