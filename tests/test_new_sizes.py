"""Launches of sizes that a kernel never had: the core makes them on lanes by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyopencl as cl
import pytest
from inside.scheduler import Scheduler

import acs_cl as acs
from acs_cl import testing
from acs_cl.errors import CheckWarning
from acs_cl.scheduler import layout

SOURCE = """
kernel void put(global uint *x, uint a) { x[get_global_id(0)] = a; }
kernel void add(global const uint *x, global uint *y, uint n)
{ size_t i = get_global_id(0); if (i < n) y[i] += x[i]; }
kernel void ahead(global const uint *x, global uint *y) { y[0] = x[get_global_size(0)]; }
kernel void square(global uint *x)
{ x[get_global_id(1) * get_global_size(0) + get_global_id(0)] += 1; }
kernel void groups(global uint *x) { x[get_global_id(0)] = get_local_size(0); }
kernel __attribute__((reqd_work_group_size(4, 1, 1))) void fours(global uint *x)
{ x[get_global_id(0)] = get_local_size(0); }
"""
BACKENDS = "serial", "out_of_order", "lanes", "device"


@pytest.fixture(params=BACKENDS)
def rt(request: pytest.FixtureRequest, device: cl.Device) -> Iterator[acs.Runtime]:
    with acs.Runtime(device, backend=request.param) as made:
        yield made


@pytest.fixture
def prog(rt: acs.Runtime) -> acs.Program:
    """The program, whose kernels are in a scheduler if there is one."""
    prog = rt.build(SOURCE)
    rt.prebuild(*(prog[name] for name in prog.kernels if name != "groups"), (prog.groups, (8,)))
    return prog


@contextmanager
def by_python(rt: acs.Runtime) -> Iterator[list[int]]:
    """Tell how many launches of the block the core did not make by itself."""
    table, found = rt.engine.table, list[int]()
    before = table.number - testing.made_by_core(rt)
    yield found
    found.append(table.number - testing.made_by_core(rt) - before)


def test_the_core_makes_launches_of_new_sizes(rt: acs.Runtime, prog: acs.Program) -> None:
    x, y = rt.array(np.arange(500), "u4"), rt.zeros(500, "u4")
    want = np.zeros(500, "u4")
    by_python = {}
    with testing.open_epochs():  # a thread that sends one has the runtime's lock for a moment
        for n in range(400, 500):
            before = testing.made_by_core(rt)
            handle = prog.add((n,), None, x, y, n - 3)
            want[: n - 3] += np.arange(n - 3, dtype="u4")
            if testing.made_by_core(rt) == before:
                by_python[n] = str(rt.explain(handle))
    assert list(by_python) == [400], by_python
    assert (y.get() == want).all()


def test_what_they_touch_goes_by_their_size(device: cl.Device) -> None:
    """Launches whose arrays overlap, and whose bytes do not, are independent."""
    with acs.Runtime(device, backend="lanes", trace=False) as rt:
        prog, x = rt.build(SOURCE), rt.zeros(1000, "u4")
        prog.put((1,), None, x, 1)
        rt.finish()
        before = rt.stats()["edges"]["WAW"]
        with by_python(rt) as found:
            for n in range(2, 30):
                prog.put((n,), None, x[n * 30 :], n)  # of each view, its first n elements
        assert found == [0]
        assert rt.stats()["edges"]["WAW"] == before
        assert x.get()[30 * 20 : 30 * 21].tolist() == [20] * 20 + [0] * 10


def test_a_size_that_leaves_its_array_is_refused_each_time(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x = rt.zeros(64, "u4")
    prog.put((32,), None, x, 1)
    for _ in range(2):
        with pytest.raises(acs.UsageError, match="byte 256"):
            prog.put((65,), None, x, 2)
    for n in (64, 63):
        prog.put((n,), None, x, n)
    assert x.get().tolist() == [63] * 63 + [64]


def test_a_size_that_reads_behind_its_array_is_warned_of(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x, y = rt.zeros(64, "u4"), rt.zeros(1, "u4")
    prog.ahead((10,), None, x, y)
    prog.ahead((63,), None, x, y)
    with pytest.warns(CheckWarning, match="byte 256"):
        prog.ahead((64,), None, x, y)


def test_sizes_that_no_device_takes_are_refused_as_before(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x = rt.zeros(64, "u4")
    prog.groups((32,), (8,), x)
    with by_python(rt) as found:
        prog.groups((48,), (8,), x)
        prog.groups((8,), (8,), x)
    assert found == [0]
    assert x.get().tolist() == [8] * 48 + [0] * 16
    with by_python(rt) as found:
        with pytest.raises(acs.UsageError, match="not a multiple"):
            prog.groups((36,), (8,), x)
        with pytest.raises(acs.UsageError, match="takes"):
            prog.groups((1 << 20,), (1 << 20,), x)
        prog.groups((64,), (16,), x)  # a local size that is new
        with pytest.raises(acs.UsageError, match="lengths"):
            prog.groups((8, 8), (8,), x)
        with pytest.raises(acs.UsageError):
            prog.groups((0,), None, x)
        with pytest.raises(acs.UsageError):
            prog.groups((-8,), (8,), x)
    assert found == [1]
    assert x.get().tolist() == [16] * 64


def test_a_kernel_that_requires_a_local_size_keeps_it(rt: acs.Runtime, prog: acs.Program) -> None:
    x = rt.zeros(64, "u4")
    prog.fours((8,), None, x)
    with by_python(rt) as found:
        prog.fours((12,), None, x)
        prog.fours((16,), (4,), x)
        with pytest.raises(acs.UsageError, match="not a multiple"):
            prog.fours((18,), None, x)
        with pytest.raises(acs.UsageError, match="requires"):
            prog.fours((18,), (2,), x)
    assert found == [0]
    assert x.get().tolist() == [4] * 16 + [0] * 48


def test_other_numbers_of_axes_are_new_sizes_too(rt: acs.Runtime, prog: acs.Program) -> None:
    x = rt.zeros(64, "u4")
    prog.square((4, 2), None, x)
    with by_python(rt) as found:
        prog.square((8, 8), None, x)
        prog.square((8, 8, 1), None, x)
        prog.square((64,), None, x)
    assert found == [3 if rt.plan.backend == "device" else 0]  # Python makes tasks of several axes
    assert x.get().tolist() == [4] * 8 + [3] * 56


@pytest.mark.parametrize("window", [None, 3])
def test_tasks_of_new_sizes_are_those_that_python_makes(
    device: cl.Device, window: int | None
) -> None:
    """Their tiles are the same, word by word, however many epochs they came in."""
    sizes = [1, 7, 255, 256, 257, 1000, 4096, 4097, 12_345, 1 << 16, (1 << 20) + 1, 1 << 21]
    words = [layout.TILES, layout.ITEMS, layout.TILE_ITEMS, layout.LOCAL]
    found = []
    for plans in (True, False):
        tasks = list[list[int]]()

        def note(image: layout.Image, tasks: list[list[int]] = tasks) -> None:
            end = layout.HEADER_WORDS + image.tasks * layout.RECORD_WORDS
            records = image.words[layout.HEADER_WORDS : end].reshape(-1, layout.RECORD_WORDS)
            tasks.extend(records[:, words].tolist())

        with acs.Runtime(device, backend="device", window=window) as rt:
            rt.engine.table.usable = plans
            prog, x = rt.build(SOURCE), rt.zeros(1 << 21, "u4")
            rt.prebuild(prog.put)
            prog.put((64,), None, x, 1)
            rt.finish()
            Scheduler(rt).change_words(note)
            rt.engine.backend.keep_open(100)
            with by_python(rt) as calls:
                for n in sizes:
                    prog.put((n,), None, x, n)
            rt.finish()
            assert calls == [0 if plans else len(sizes)]
            assert (x.get() == 1 << 21).all()
        found.append(tasks)
    assert [task[1] for task in found[0]] == sizes
    assert found[0] == found[1]


def test_many_launches_of_new_sizes_are_one_loop_of_the_core(
    rt: acs.Runtime, prog: acs.Program
) -> None:
    x = rt.zeros((100, 100), "u4")
    rows = [x[row] for row in range(100)]
    prog.put((1,), None, rows[0], 1)
    with by_python(rt) as found:
        prog.put.launch_many([(1 + row,) for row in range(100)], None, rows, list(range(100)))
    assert found == [0]
    want = np.arange(100)[:, None] * (np.arange(100)[None, :] <= np.arange(100)[:, None])
    assert (x.get() == want).all()


def test_bands_are_decided_by_size(device: cl.Device) -> None:
    with acs.Runtime(device, backend="lanes", bands=4) as rt:
        prog, x = rt.build(SOURCE), rt.zeros(64, "u4")
        prog.groups((8,), (8,), x)
        with by_python(rt) as found:
            handle = prog.groups((64,), (8,), x)
        assert found == [4]
        assert "4" in str(rt.explain(handle))
        assert x.get().tolist() == [8] * 64


def test_beside_a_scheduler_larger_ones_stay_on_lanes(device: cl.Device) -> None:
    """A size that fills the device does so in all larger ones. A smaller one is asked about."""
    with acs.Runtime(device, backend="auto") as rt:
        if not hasattr(rt.engine.backend, "schedulers"):
            pytest.skip("no scheduler beside the lanes")
        prog, large = rt.build(SOURCE), 1 << 17
        rt.prebuild(prog.put)
        x = rt.zeros(2 * large, "u4")
        for _ in range(100):  # enough in flight for an epoch
            prog.put((large,), None, x, 1)
        prog.put((large + 1,), None, x, 1)  # if the other one was measured, its time told
        with by_python(rt) as found:
            for n in range(2, 11):
                handle = prog.put((large + n,), None, x, n)
        assert found == [0]
        assert "it fills the device by itself" in str(rt.explain(handle))
        with by_python(rt) as found:
            prog.put((large - 1,), None, x, 11)
        assert found == [1]
        assert x.get()[large - 2 : large + 11].tolist() == [11, *[10] * 11, 0]
