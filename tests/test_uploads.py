"""Uploads that go ahead of launches, and what launches touch by GrCUDA's rules.

Long uploads do not wait for launches that use their targets. Whatever a program does, the device
has what the host had when it called `set`.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs

N = 1 << 18
"""Elements of an array whose uploads are long."""

SOURCE = """
kernel void add(global const int *x, global int *y, int n) {
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) y[i] += x[i];
}
kernel void scale(global int *x, int factor) { x[get_global_id(0)] *= factor; }
"""

BACKENDS = ("lanes", "out_of_order", "auto", "device")


@pytest.fixture(params=BACKENDS)
def ahead(request: pytest.FixtureRequest, device: cl.Device) -> Iterator[acs.Runtime]:
    """Runtimes whose long uploads go ahead."""
    with acs.Runtime(device, backend=request.param, prefetch="on") as rt:
        yield rt


def landings(rt: acs.Runtime) -> int:
    """Count the bases that have a place where uploads land."""
    return len(rt.engine.ahead)


@pytest.fixture
def held(ahead: acs.Runtime) -> Iterator[tuple[acs.Runtime, Any, Any, cl.UserEvent]]:
    """A long array with a launch on it that waits for an event, and its kernel."""
    program, event = ahead.build(SOURCE), cl.UserEvent(ahead.context)
    x = ahead.array(np.ones(N, np.int32))
    ahead.finish()
    program.scale((N,), None, x, 3, wait_for=[event])
    yield ahead, program, x, event
    if event.get_info(cl.event_info.COMMAND_EXECUTION_STATUS):
        event.set_status(cl.command_execution_status.COMPLETE)


def test_a_long_upload_does_not_wait_and_its_source_may_change(held: Any) -> None:
    rt, program, x, event = held
    before, values = x.get(wait=False), np.arange(N, dtype=np.int32)
    upload = x.set(values)
    values[:] = -1
    program.scale((N,), None, x, 2)
    after = x.get(wait=False)
    assert landings(rt) == 1
    assert not upload.done
    event.set_status(cl.command_execution_status.COMPLETE)
    assert (before.wait() == 3).all()
    assert np.array_equal(after.wait(), 2 * np.arange(N))


def test_parts_of_an_array_land_in_one_place(held: Any) -> None:
    rt, _, x, event = held
    for part in range(2):
        half = x[part * N // 2 : (part + 1) * N // 2]
        half.set(np.full(N // 2, part + 5, np.int32))
    assert landings(rt) == 0, "half a mebibyte is short"
    values = np.empty((2, N // 2), np.int32)
    for value in (8, 9):  # the second one has to wait for the copy of the first
        values[:] = value
        x.reshape(2, N // 2).set(values)
    values[:] = -1
    assert landings(rt) == 1
    event.set_status(cl.command_execution_status.COMPLETE)
    assert (x.get() == 9).all()


def test_one_element_may_be_set_behind_launches(held: Any) -> None:
    """Values without a dimension have bytes, but no length."""
    rt, program, x, event = held
    program.scale((N,), None, x, 2)
    x[3].set(np.array(5, np.int32))
    x[4].set(7)
    with rt.record() as graph:
        program.scale((N,), None, x, 2)
        x[5].set(np.array(9, np.int32))
    graph.replay()
    event.set_status(cl.command_execution_status.COMPLETE)
    assert x[:7].get().tolist() == [12, 12, 12, 10, 14, 9, 12]


class Full:
    """A store that has no room left."""

    def __init__(self, store: Any) -> None:
        self.store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def allocate(self, nbytes: int, is_live: Any) -> None:
        """Give nothing."""


def test_without_room_an_upload_waits(held: Any) -> None:
    rt, _, x, event = held
    rt.engine.store = Full(rt.engine.store)
    x.set(np.full(N, 7, np.int32))
    assert landings(rt) == 0
    rt.engine.store = rt.engine.store.store
    event.set_status(cl.command_execution_status.COMPLETE)
    assert (x.get() == 7).all()


def test_where_uploads_landed_goes_with_the_array(held: Any) -> None:
    rt, _, x, event = held
    x.set(np.zeros(N, np.int32))
    in_use = rt.engine.store.in_use_bytes
    event.set_status(cl.command_execution_status.COMPLETE)
    rt.finish()
    number = x.base.number
    x.free()
    gc.collect()
    rt.empty(4)
    assert number not in rt.engine.ahead
    rt.empty(4)
    assert rt.engine.store.in_use_bytes <= in_use - 2 * 4 * N + 4096


def test_an_upload_over_what_failed_brings_it_back(ahead: acs.Runtime) -> None:
    x, event = ahead.zeros(N, np.int32), cl.UserEvent(ahead.context)

    def fails(values: Any) -> None:
        raise ValueError("on purpose")

    ahead.call(fails, writes=x, wait_for=[event])
    x.set(np.full(N, 4, np.int32))
    assert landings(ahead) == 1
    event.set_status(cl.command_execution_status.COMPLETE)
    assert (x.get() == 4).all()
    with pytest.raises(acs.AcsError, match="on purpose"):
        ahead.finish()


@pytest.mark.parametrize("seed", range(3))
def test_random_rounds(ahead: acs.Runtime, seed: int) -> None:
    choose, n = random.Random(seed), N
    program = ahead.build(SOURCE)
    model = [np.full(n, step, np.int32) for step in range(4)]
    arrays = [ahead.array(values) for values in model]
    pinned = ahead.pinned((n,), np.int32)
    promised = None
    reads = []
    for step in range(80):
        at, other = choose.sample(range(4), 2)
        start = choose.choice([0, 0, n // 2, 3])
        way = choose.randrange(6)
        if way < 2:
            values = np.full(n - start, step, np.int32)
            arrays[at][start:].set(values)
            model[at][start:] = step
            values[:] = -7
        elif way == 2:
            if promised is not None:
                promised.wait()
            pinned[:] = step
            promised = arrays[at].set(pinned, copy=False)
            model[at][:] = step
        elif way == 3:
            program.scale((n,), None, arrays[at], 3)
            model[at] *= 3
        elif way == 4:
            program.add((64,), None, arrays[other], arrays[at], n)
            model[at] += model[other]
        else:
            reads.append((arrays[at].get(wait=False), model[at].copy()))
    for read, values in reads:
        assert np.array_equal(read.wait(), values)
    for array, values in zip(arrays, model, strict=True):
        assert np.array_equal(array.get(), values)


def test_long_uploads_have_a_lane_of_their_own(device: cl.Device) -> None:
    with acs.Runtime(device, backend="lanes", lanes=2, prefetch="on") as rt:
        program = rt.build(SOURCE)
        x, y = rt.empty(N, np.int32), rt.empty(N, np.int32)
        hosts = [rt.pinned((N,), np.int32) for _ in range(2)]
        for value, (array, host) in enumerate(zip((x, y), hosts, strict=True)):
            host[:] = value + 1
            array.set(host, copy=False)
        x[:16].fill(5)  # a short one, behind the long one
        program.add((64,), None, x, y, N)
        expected = np.full(N, 3)
        expected[:16] = 7
        assert np.array_equal(y.get(), expected)
        assert rt.engine.backend.lane_counts().used[2] == 2
        assert rt.engine.backend.lanes == 3
        event = cl.UserEvent(rt.context)
        program.scale((N,), None, x, 2, wait_for=[event])
        with rt.record() as graph:
            x.set(hosts[1], copy=False)
            program.scale((N,), None, x, 2)
        graph.replay()  # which follows a launch, so that others would wait behind it
        y.set(hosts[0], copy=False)
        assert rt.engine.backend.lane_counts().used[2] == 3
        event.set_status(cl.command_execution_status.COMPLETE)
        assert (x.get() == 4).all()
        assert (y.get() == 1).all()
        graph.replay()
        assert (x.get() == 4).all()
        assert rt.engine.backend.lane_counts().used[2] == 4


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_long_uploads_are_copied_by_threads(device: cl.Device, memory: str) -> None:
    """Pieces have 2 MiB: some are not full, and some are used again."""
    with acs.Runtime(device, backend="lanes", memory=memory, prefetch="on") as rt:
        uploads = rt.engine.backend.lanes - 1
        base = rt.zeros(36 * N + 5, np.int32)
        for turn, (start, length) in enumerate([(0, N), (3, 16 * N + 1), (5, 36 * N), (1, 17 * N)]):
            rt.finish()
            values = np.arange(turn, turn + length, dtype=np.int32)
            upload = base[start : start + length].set(values)
            values[:] = -1
            upload.wait()
            assert rt.engine.backend.lane_counts().used[uploads] == turn + 1
            found = base[start : start + length].get()
            assert np.array_equal(found, np.arange(turn, turn + length, dtype=np.int32))
        assert base[0].get() == 0


def test_threads_upload_at_the_same_time(device: cl.Device) -> None:
    with acs.Runtime(device, backend="lanes", prefetch="on") as rt:
        scale = rt.build(SOURCE).scale
        arrays = [rt.empty(17 * N, np.int32) for _ in range(3)]

        def rounds(which: int) -> bool:
            host, right = np.empty(17 * N, np.int32), True
            for turn in range(4):
                host[:] = 100 * which + turn
                arrays[which].set(host)
                host[:] = -1
                scale((17 * N,), None, arrays[which], 2)
                right &= bool((arrays[which].get() == 2 * (100 * which + turn)).all())
            return right

        with ThreadPoolExecutor(3) as pool:
            assert all(pool.map(rounds, range(3)))


def test_off_a_cpu_keeps_uploads_where_they_are(device: cl.Device) -> None:
    for prefetch in ("off", *(["auto"] if device.type & cl.device_type.CPU else [])):
        with acs.Runtime(device, backend="lanes", lanes=2, prefetch=prefetch) as rt:
            assert rt.engine.backend.lanes == 2
            assert not rt.engine.prefetches


@pytest.mark.parametrize(
    ("dependencies", "edges"), [("exact", []), ("with-const", [1]), ("no-const", [1, 2])]
)
def test_dependencies_by_arguments(device: cl.Device, dependencies: str, edges: list[int]) -> None:
    """Two launches write apart, and read the same: GrCUDA's rules order them."""
    source = """
    kernel void some(global const int *x, global int *y, int at) {
        y[at] = x[at];
    }"""
    with acs.Runtime(device, backend="serial", trace=True, dependencies=dependencies) as rt:
        some = rt.build(source).some
        x, y, z = rt.array(np.arange(8, dtype=np.int32)), rt.zeros(8, "i4"), rt.zeros(8, "i4")
        rt.finish()
        rt.trace.clear()
        for array, at in ((y, 1), (y, 5), (z, 2)):
            some((1,), None, x, array, at)
        assert y.get().tolist() == [0, 1, 0, 0, 0, 5, 0, 0]
        first, second, third = [one for one in rt.trace.slices if one.name == "some"]
        hazards = acs.core.native.Hazards()
        found = [hazards.enter(one.number, one.reads, one.writes) for one in (first, second, third)]
        assert not found[0]
        assert [index for index, one in enumerate(found) if one] == edges


def test_unknown_policies_are_named(device: cl.Device) -> None:
    with pytest.raises(acs.UsageError, match="unknown prefetch 'early'; there are: auto, on, off"):
        acs.Runtime(device, prefetch="early")
    with pytest.raises(acs.UsageError, match="unknown dependencies 'const'; there are: exact"):
        acs.Runtime(device, dependencies="const")
