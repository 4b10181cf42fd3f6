"""Fills and copies that are launches of kernels: same bytes, same meaning, no cut."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from counting import calls

import acs_cl as acs
from acs_cl.launch.moves import SHORT_BYTES
from acs_cl.scheduler import policy, steps
from acs_cl.testing.changing import changed
from acs_cl.testing.scheduler import Scheduler, open_epochs

SOURCE = """
kernel void up(global float *x) { x[get_global_id(0)] += 1; }
kernel void sum(global const float *x, global float *y)
{ size_t i = get_global_id(0); y[i] += x[i]; }
kernel void count(global int *left, global int *go) { *left -= 1; *go = *left > 0; }
"""
BACKENDS = "serial", "out_of_order", "lanes", "device", "auto"
SHAPES = (1,), (5,), (64,), (8, 8), (3, 5), (4, 1, 6), (2, 3, 4, 5), (3, 2, 2, 3, 3), (0,), (1, 1)
DTYPES = "?", "i1", "u2", "f2", "i4", "f4", "u8", "f8", "c8", "c16", "M8[s]", "S3"
STEPS = slice(None), slice(1, None), slice(None, None, 2), slice(1, None, 3), slice(None, None, -1)


def element(choose: random.Random, dtype: np.dtype[Any]) -> Any:
    """A value of the dtype."""
    if dtype.kind in "MS":
        return np.frombuffer(choose.randbytes(dtype.itemsize), dtype)[0]
    return dtype.type(choose.choice([0, 1, 3, 0.5, -1] if dtype.kind in "fc" else [0, 1, 3]))


def moves(rt: acs.Runtime, choose: random.Random) -> list[tuple[Any, Any]]:
    """Make fills and copies between views of arrays of one dtype; the arrays, with their values."""
    dtype, shape = np.dtype(choose.choice(DTYPES)), choose.choice(SHAPES)
    arrays = [(rt.zeros(shape, dtype), np.zeros(shape, dtype)) for _ in range(2)]
    arrays.append((rt.zeros(257, dtype), np.zeros(257, dtype)))
    for _ in range(6):
        index = tuple(choose.choice(STEPS if length > 1 else STEPS[:1]) for length in shape)
        (one, first), (two, second) = choose.sample(arrays[:2], 2)
        at = choose.randrange(8)
        if choose.random() < 0.5:
            value = element(choose, dtype)
            (one[index].set if choose.random() < 0.3 else one[index].fill)(value)
            first[index] = value
            arrays[2][0][at : 2 * at].fill(value)
            arrays[2][1][at : 2 * at] = value
        else:
            one[index].copy_from(two[index])
            first[index] = second[index]
            arrays[2][0][at : at + 8].copy_from(arrays[2][0][100:116:2])
            arrays[2][1][at : at + 8] = arrays[2][1][100:116:2]
    return arrays


@pytest.mark.parametrize(
    ("backend", "memory"),
    [(one, "svm") for one in BACKENDS] + [(one, "buffers") for one in BACKENDS[:3]],
)
def test_moves_are_those_of_numpy(
    device: cl.Device, scheduler: None, backend: str, memory: str
) -> None:
    """Views of all kinds, new and recorded."""
    choose = random.Random(f"{backend} {memory}")
    with acs.Runtime(device, backend=backend, memory=memory) as rt:
        for _ in range(25):
            seed = choose.random()
            found = moves(rt, random.Random(seed))
            with rt.record() as graph:
                recorded = moves(rt, random.Random(seed))
            graph.replay()
            graph.replay()
            for (array, values), (again, _) in zip(found, recorded, strict=True):
                assert array.get().tobytes() == values.tobytes()
                assert again.get().tobytes() == values.tobytes()


FILLED: dict[str, Callable[[Any, Any], Any]] = {
    "fill": lambda x, y: y.fill(2),
    "copy": lambda x, y: y.copy_from(x),
    "fill with gaps": lambda x, y: y[::2].fill(2),
    "copy with gaps": lambda x, y: y[1::2].copy_from(x[::2]),
    "copy backwards": lambda x, y: y[::-1].copy_from(x),
    "copy along five axes": lambda x, y: y.reshape(2, 2, 2, 2, 4).T.copy_from(
        x.reshape(4, 2, 2, 2, 2)
    ),
    "copy to odd places": lambda x, y: y.view("u1")[1:-3].view("f4")[::2].copy_from(x[:32]),
}


WRITTEN: dict[str, Callable[[Any, Any], Any]] = {
    "write": lambda x, y: y[8:40].set(np.arange(32) / 7),
    "write of one": lambda x, y: y[5].set(3.5),
    "write of odd bytes": lambda x, y: y.view("u1")[4:9].set([0, 0, 32, 65, 7]),
    "write with gaps": lambda x, y: y[::3].set(np.arange(22)),
}


@pytest.mark.parametrize("what", [*FILLED, *WRITTEN])
def test_a_move_cuts_no_recorded_graph(device: cl.Device, scheduler: None, what: str) -> None:
    """It was launched by the host, between two segments."""
    with acs.Runtime(device, backend="device") as rt:
        prog, x, y = rt.build(SOURCE), rt.zeros(64), rt.zeros(64)
        with rt.record() as graph:
            for _ in range(3):
                prog.up((64,), None, x)
                {**FILLED, **WRITTEN}[what](x, y)
                prog.sum((64,), None, x, y)
        rt.prebuild()
        graph.replay().wait()
        before = rt.stats()["segments"]
        graph.replay().wait()
        assert rt.stats()["segments"] - before == 1


@pytest.mark.parametrize("backend", ["device", "auto"])
@pytest.mark.parametrize("what", [*FILLED, *WRITTEN])
def test_a_move_joins_an_open_epoch(
    device: cl.Device, scheduler: None, what: str, backend: str
) -> None:
    """It was a command of the driver, between two epochs. How long kernels take does not count
    here, nor how long the host does."""
    with (
        open_epochs(),
        changed(policy, "SAVED_US", 1e9),
        changed(steps, "FIRST_US", 1e18),
        acs.Runtime(device, backend=backend) as rt,
    ):
        prog, x, y = rt.build(SOURCE), rt.zeros(64), rt.zeros(64)
        moved = {**FILLED, **WRITTEN}[what]

        def step() -> int:
            before = rt.stats()["scheduler"]["epochs"]
            Scheduler(rt).keep_open()
            for _ in range(8):
                prog.up((64,), None, x)
                moved(x, y)
                prog.sum((64,), None, x, y)
            rt.finish()
            return int(rt.stats()["scheduler"]["epochs"]) - before

        for _ in range(2):  # the kernel of moves is known once there was an epoch to join
            for _ in range(20):
                step()
            rt.prebuild()
        step()
        assert step() == 1
        with acs.Runtime(device, backend="serial") as plain:
            again, u, v = plain.build(SOURCE), plain.array(x.get()), plain.array(y.get())
            for _ in range(8):
                again.up((64,), None, u)
                moved(u, v)
                again.sum((64,), None, u, v)
            expected = u.get(), v.get()
        step()
        assert (x.get() == expected[0]).all()
        assert (y.get() == expected[1]).all()


def test_a_move_opens_no_epoch(device: cl.Device, scheduler: None) -> None:
    with acs.Runtime(device, backend="device") as rt:
        prog, x, y = rt.build(SOURCE), rt.zeros(64), rt.zeros(64)
        for _ in range(2):  # the first time there is no scheduler for an epoch yet
            for _ in range(20):
                prog.up((64,), None, x)
                y.fill(2)
                rt.finish()
            rt.prebuild()
        assert rt.engine.moves().kernels
        before = rt.stats()["scheduler"]["epochs"]
        for _ in range(5):
            y.fill(3)
            x.copy_from(y)
            rt.finish()
        assert rt.stats()["scheduler"]["epochs"] == before


def test_the_device_runs_a_loop_with_moves(device: cl.Device, scheduler: None) -> None:
    """The host drove it."""
    with acs.Runtime(device, backend="device") as rt:
        prog, x, y = rt.build(SOURCE), rt.zeros(64), rt.zeros(64)
        left, go = rt.array([7], "i4"), rt.array([1], "i4")
        with rt.record() as graph:
            prog.up((64,), None, x)
            y.fill(5)
            y[::4].copy_from(x[:16])
            y[1].set(9)
            prog.count((1,), None, left, go)
        rt.prebuild()
        handle = graph.replay(while_=go, at_most=100)
        handle.wait()
        assert handle.rounds == 7
        expected = np.full(64, 5, "f4")
        expected[::4], expected[1] = 7, 9
        assert (y.get() == expected).all()
        assert "the device itself reads the word" in str(handle.explain())


@pytest.mark.parametrize("backend", BACKENDS)
def test_moves_end_poison(device: cl.Device, scheduler: None, backend: str) -> None:
    """By a kernel that is known to write all of its target. Other kernels may leave bytes."""

    def fails(*_: object) -> None:
        raise RuntimeError("planted")

    with acs.Runtime(device, backend=backend) as rt:
        x, source = rt.zeros((8, 8)), rt.array(np.arange(64, dtype="f4").reshape(8, 8))
        ends: list[Callable[[], Any]] = [
            lambda: x.fill(1),
            lambda: x.copy_from(source),
            lambda: (x[:4].fill(1), x[4:, :3].fill(1), x[4:, 3:].copy_from(source[4:, 3:])),
            lambda: (x[:, ::2].copy_from(source[:, ::2]), x[:, 1::2].fill(3)),
        ]
        for end in ends:
            for is_recorded in (True, False):
                with pytest.raises(RuntimeError, match="planted"):
                    rt.call(fails, writes=[x]).wait()
                if is_recorded:
                    with rt.record() as graph:
                        end()
                    graph.replay()
                else:
                    end()
                x.get()


def test_the_driver_makes_moves_that_are_not_recorded_and_long_ones(device: cl.Device) -> None:
    """A move by itself is no reason for an epoch, and takes no build."""
    with acs.Runtime(device) as rt:
        kernels: Any = rt.engine.moves()
        x, long = rt.zeros(64), rt.zeros(SHORT_BYTES // 4 + 1)
        x.fill(3)
        with rt.record() as graph:
            long.fill(4)
        assert not kernels.kernels
        with rt.record() as other:
            x.fill(5)
        assert list(kernels.kernels) == [("fill", 4, ""), ("copy", 4, ""), ("write", 4, "")]
        graph.replay()
        other.replay()
        assert (long.get() == 4).all()
        assert (x.get() == 5).all()


def test_to_leave_a_move_to_the_driver_takes_few_calls(device: cl.Device) -> None:
    """A fill took half as long again while it was prepared as a launch of a kernel first."""
    with acs.Runtime(device, backend="lanes") as rt:
        x, y, values = rt.zeros(16), rt.zeros(16), np.ones(16, "f4")
        works = [lambda: x.fill(2), lambda: y.copy_from(x), lambda: y.set(values)]
        for work in works:
            work()
        found = [calls(work) for work in works]
    assert all(many <= most for many, most in zip(found, (21, 22, 33), strict=True)), found


def test_the_kernels_of_moves_keep_no_runtime_alive(device: cl.Device) -> None:
    """The runtime has them: the engine, which they keep, only knows them."""

    def used() -> weakref.ref[Any]:
        rt = acs.Runtime(device)
        x = rt.zeros((8, 8))
        x[:, 1].fill(3)
        assert x.get()[3, 1] == 3
        return weakref.ref(rt.engine)

    gc.collect()
    gc.disable()
    try:
        assert used()() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("memory", ["svm", "buffers"])
@pytest.mark.parametrize("dtype", ["u2", "f4", "f8", "c16", "V32"])
def test_fills_begin_anywhere(device: cl.Device, dtype: str, memory: str) -> None:
    """A driver repeats a pattern only from a multiple of its size on, and refused others."""
    wanted = np.frombuffer(bytes(range(1, 1 + np.dtype(dtype).itemsize)), dtype)
    with acs.Runtime(device, backend="lanes", memory=memory) as rt:
        for many in (2, SHORT_BYTES):
            nbytes = many * wanted.itemsize
            x = rt.zeros(nbytes + 2, "u1")
            view = x[1:-1].view(dtype)
            with rt.record() as graph:
                view.fill(wanted[0])
            expected = np.pad(np.frombuffer(wanted.tobytes() * many, "u1"), 1)
            for fill in (partial(view.fill, wanted[0]), graph.replay):
                x.set(0)
                fill()
                assert (x.get() == expected).all()


def test_a_move_may_have_more_elements_than_a_uint_counts(device: cl.Device) -> None:
    """As lengths that a uint cannot hold."""
    with acs.Runtime(device, backend="lanes") as rt:
        x = rt.zeros(2, "u1")
        long = x.view_at(0, (2**32,), (2,), x.dtype)  # no such memory is there, and nothing runs
        with rt.record() as graph:
            long.fill(1)
        assert len(graph) == 1


def test_moves_go_on_where_the_program_holds_only_an_array(device: cl.Device) -> None:
    """The kernels went with the runtime, and are made again."""

    def made() -> acs.Array:
        return acs.Runtime(device).zeros((4, 4))

    x = made()
    x[:, 1].fill(3)
    x[::-1, 2].copy_from(x[:, 1])
    assert (x.get() == [0, 3, 3, 0]).all()
