"""Recorded graphs on several devices: launches that have their devices before they are replayed."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from fuzz.several import Looked, engine_of, team

import acs_cl as acs
from acs_cl.launch.commands import KernelCommand
from acs_cl.records import Access, interval
from acs_cl.several.model import Coherence, Parcel
from acs_cl.several.placed_runs import LEARNS, MOST

ADD = """
kernel void add(global const float *x, global float *y, float a)
{ int i = get_global_id(0); y[i] += a * x[i]; }
kernel void count(global uint *left, global float *y)
{ left[0] -= 1; y[0] += 1; }
"""
N = 64


def places(runtime: acs.Runtime, devices: Sequence[int]) -> None:
    """Place launches of kernels on these devices in turns, in each graph from its first replay
    on."""
    engine, turn = engine_of(runtime), iter(range(1 << 30))
    engine.placer.policy = lambda *of: devices[next(turn) % len(devices)]
    engine.places_after = 0, 0


@pytest.fixture(params=["svm", "buffers"])
def two(request: pytest.FixtureRequest, device: cl.Device) -> Iterator[acs.Runtime]:
    options: dict[str, Any] = {"spread": False, "memory": request.param}
    with acs.Runtime(devices=team(device, 2), **options) as runtime:
        places(runtime, [0, 1])
        yield runtime


@pytest.fixture
def add(two: acs.Runtime) -> Callable[..., acs.Handle]:
    prog = two.build(ADD)
    return lambda x, y, a=1, **more: prog.add((x.size,), None, x, y, a, **more)


def test_a_replay_is_right_wherever_the_data_is_and_leaves_the_truth(
    two: acs.Runtime, add: Callable[..., acs.Handle]
) -> None:
    engine = engine_of(two)
    looked = engine.model.coherence = Looked(2)
    engine.copies.told, engine.stepped = looked.copied, looked.stepped
    engine.makes = looked.makes
    x, y, z = (two.array(np.full(N, k), "f4") for k in (1, 2, 3))
    with two.record() as graph:
        add(x, y)
        add(y, z)  # on the other device: y is copied in each replay
        z[: N // 2].fill(5)
        x.copy_from(z)
    lower = [np.full(N, k, "f4") for k in (1, 2, 3)]
    for turn in range(6):
        for array in (x, y, z):
            engine.have(array[turn:], turn // 2 % 2, alone=True)
        if turn == 4:
            y.set(np.zeros(N))
            lower[1] = np.zeros(N, "f4")
        graph.replay()
        lower[1] = lower[1] + lower[0]
        lower[2] = lower[2] + lower[1]
        lower[2][: N // 2] = 5
        lower[0] = lower[2].copy()
        if turn % 2:
            continue
        for array, value in zip((x, y, z), lower, strict=True):
            np.testing.assert_array_equal(array.get(), value)
    assert engine.replayed == 24
    assert not looked.twice


def test_what_no_launch_of_a_graph_writes_is_copied_once(
    two: acs.Runtime, add: Callable[..., acs.Handle]
) -> None:
    x, ys = two.array(np.ones(N), "f4"), [two.zeros(N) for _ in range(4)]
    with two.record() as graph:
        for y in ys:
            add(x, y)
    seen: list[Parcel] = []
    engine_of(two).copies.told = seen.append
    for _ in range(5):
        graph.replay()
    assert [y.get()[0] for y in ys] == [5] * 4
    assert len([one for one in seen if x.base is not None and one.base == x.base.number]) == 1
    for y in ys[1::2]:
        assert all(one.target == 1 or one.base != y.base.number for one in seen if y.base)


def test_a_graph_says_where_its_launches_run(
    two: acs.Runtime, add: Callable[..., acs.Handle], tmp_path: Path
) -> None:
    x, y, z = (two.zeros(N) for _ in range(3))
    with two.record() as graph:
        first = add(x, y)
        add(y, z)
        two.call(lambda values: None, reads=z)
    assert "each replay places them" in str(graph.explain())
    replay = graph.replay()
    text = "1 on device 0, 1 on device 1; copies between devices in each replay: 1"
    assert text in str(graph.explain())
    assert "by themselves: 1" in str(replay.explain())
    graph.dag(tmp_path / "one.dot")
    assert {"device 0", "device 1"} <= set((tmp_path / "one.dot").read_text().replace('"', "\n")
                                           .replace("\\n", "\n").split("\n"))  # fmt: skip
    numbers = replay.numbers
    assert "on device 0" in str(
        two.explain(acs.Handle(two.engine, numbers[0], "add", first.access))
    )
    assert [one["launches"] for one in two.stats()["devices"]][1] >= 1


def test_numbers_and_arrays_of_a_placed_graph_change(
    two: acs.Runtime, add: Callable[..., acs.Handle]
) -> None:
    x, y, other = two.array(np.ones(N), "f4"), two.zeros(N), two.zeros(N)
    with two.record() as graph:
        add(x, y)
        step = add(x, y)
    graph.replay()
    graph.update(step, a=10)
    assert "device 1" in str(graph.explain())  # it need not be placed again
    graph.replay()
    graph.swap(y, other)
    graph.replay()
    assert (y.get()[0], other.get()[0]) == (13, 11)


def test_a_graph_from_a_file_is_placed(two: acs.Runtime, add: Callable[..., acs.Handle]) -> None:
    x, y = two.array(np.ones(N), "f4"), two.zeros(N)
    with two.record() as graph:
        add(x, y)
        add(x, y, 2)
    graph.replay()
    with io.BytesIO() as file:
        graph.save(file, y=y)
        loaded = two.load(io.BytesIO(file.getvalue()))
    for _ in range(3):
        loaded.replay()
    assert loaded.arrays["y"].get()[0] == 9
    assert "1 on device 0, 1 on device 1" in str(loaded.explain())


def test_loops_repeat_placed_launches(two: acs.Runtime) -> None:
    prog = two.build(ADD)
    left, y, z = two.array([3], "u4"), two.zeros(N), two.zeros(N)
    with two.record() as graph:
        prog.add((N,), None, y, z, 1)
        with acs.loop(left, at_most=9):
            prog.count((1,), None, left, y)
            prog.add((N,), None, y, z, 1)
        prog.add((N,), None, y, z, 10)
    graph.replay()
    assert (y.get()[0], z.get()[0]) == (3, 1 + 2 + 3 + 30)
    assert engine_of(two).replayed >= 7
    left.set(np.array([2], "u4"))
    assert graph.replay(while_=left, at_most=5).rounds == 1


def test_launches_that_cannot_be_placed_before_are_placed_by_each_replay(
    two: acs.Runtime, add: Callable[..., acs.Handle]
) -> None:
    x, y, flag = two.array(np.ones(N), "f4"), two.zeros(N), two.zeros(1, "u4")
    seen: list[float] = []
    with two.record() as graph:
        add(x, y)
        add(x, y, 100, when=flag)
        add(x, y)
        two.call(lambda values: seen.append(float(values[0])), reads=y)
        two.build(ADD).add.launch_many((N,), None, x, y, [1, 2, 3])
    for _ in range(3):
        graph.replay()
    two.finish()
    assert y.get()[0] == 24
    assert seen == [2, 10, 18]
    assert "on device 1" in str(graph.explain())
    assert "by themselves: " in str(graph.explain())


def test_a_long_graph_is_several_runs(two: acs.Runtime, add: Callable[..., acs.Handle]) -> None:
    x, y = two.array(np.ones(1), "f4"), two.zeros(1)
    with two.record() as graph:
        for _ in range(MOST + 40):
            add(x, y)
    graph.replay()
    assert [len(piece) for piece in graph.pieces] == [MOST, 40]  # type: ignore[arg-type]
    assert y.get()[0] == MOST + 40


def test_what_was_launched_before_one_was_refused_is_known(
    two: acs.Runtime, add: Callable[..., acs.Handle]
) -> None:
    engine = engine_of(two)
    places(two, [1])
    x, y = two.array(np.ones(N), "f4"), two.zeros(N)
    with two.record() as graph:
        add(x, y)
        add(y, x)
    graph.replay()
    lanes_of, made = engine.lanes_of, iter(range(9))

    def refusing(device: int) -> Any:
        if next(made) == 1:
            raise acs.DeviceError("no")
        return lanes_of(device)

    y.set(np.zeros(N))
    engine.lanes_of = refusing  # type: ignore[method-assign]
    with pytest.raises(acs.DeviceError):
        graph.replay()
    engine.lanes_of = lanes_of  # type: ignore[method-assign]
    assert y.get()[0] == x.get()[0] == 2


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_a_launch_that_was_refused_leaves_all_devices_their_bytes(
    device: cl.Device, memory: Any
) -> None:
    """Its device counted as the only one that has what it writes, so that these were copied."""

    def fail(bad: object) -> None:
        raise ValueError

    options: dict[str, Any] = {"placement": "round_robin", "spread": False, "memory": memory}
    with acs.Runtime(devices=team(device, 2), **options) as rt:
        engine, prog, seen = engine_of(rt), rt.build(ADD), list[Parcel]()
        places(rt, [1])
        x, y, bad = rt.array(np.ones(N), "f4"), rt.zeros(N), rt.zeros(N)
        for _ in range(3):
            prog.add((N,), None, x, y, 1)
        rt.call(fail, writes=bad)
        with pytest.raises(acs.PoisonedError):
            rt.finish()
        prog.add((N,), None, x, y, 1)  # no lane of the core takes it, since there is poison
        engine.have(y, 0)
        free_us = list(engine.model.clock.free_us)
        refused = inside.refusing(rt, acs.DeviceError("not today"))
        with refused, pytest.raises(acs.AcsError, match="not today"):
            prog.add((N,), None, x, y, 1)
        assert engine.model.clock.free_us == free_us
        engine.copies.told = seen.append
        engine.have(y, 0)
        assert not seen
        assert y.get()[0] == 4
        prog.add((N,), None, x, y, 1)
        engine.have(y, 0)
        assert len(seen) == 1
        assert y.get()[0] == 5


def test_checked_graphs_are_launched_one_by_one(device: cl.Device) -> None:
    with acs.Runtime(devices=team(device, 2), check="access") as rt:
        places(rt, [0, 1])
        prog = rt.build(ADD)
        x, y = rt.array(np.ones(N), "f4"), rt.zeros(N)
        with rt.record() as graph:
            prog.add((N,), None, x, y, 1)
        graph.replay()
        assert y.get()[0] == 1
        assert not engine_of(rt).replayed


# ---- by the model --------------------------------------------------------------------------------


def teach(runtime: acs.Runtime, took_us: float, sizes: Sequence[int] = (N,)) -> None:
    """Have kernel `add` take so long on both devices."""
    times = engine_of(runtime).times
    for device in range(2):
        for size in sizes:
            number = -1 - device
            times.ask(number, ("add", (size,), None), device, lambda one: False)
            times.took(number, took_us)


def test_min_finish_places_a_graph_once_it_knows_how_long_kernels_take(device: cl.Device) -> None:
    with acs.Runtime(devices=team(device, 2), spread=False) as rt:
        engine, prog = engine_of(rt), rt.build(ADD)
        pairs = [(rt.array(np.ones(N), "f4"), rt.zeros(N)) for _ in range(4)]
        with rt.record() as graph:
            for _ in range(2):
                for x, y in pairs:
                    prog.add((N,), None, x, y, 1)
        unknown = KernelCommand("add", None, (N,), None, (), (), None), Access((), ()), None
        assert engine.placed([unknown], (), LEARNS - 1) is None
        teach(rt, 5000.0)
        graph.replay()
        assert "each replay places them, until" in str(graph.explain())
        graph.replay()
        assert "4 on device 0, 4 on device 1; copies between devices in each replay: 0" in str(
            graph.explain()
        )
        assert [y.get()[0] for _, y in pairs] == [4] * 4


def test_short_launches_of_a_graph_stay_with_the_core(device: cl.Device) -> None:
    with acs.Runtime(devices=team(device, 2), memory="svm", spread=False) as rt:
        teach(rt, 3.0)
        prog = rt.build(ADD)
        x, y = rt.array(np.ones(N), "f4"), rt.zeros(N)
        with rt.record() as graph:
            prog.add((N,), None, x, y, 1)
        for _ in range(4):
            graph.replay()
        assert y.get()[0] == 4
        assert not engine_of(rt).replayed
        assert "until" not in str(graph.explain())


@pytest.mark.parametrize("fails", [False, True], ids=["", "poisoned"])
def test_launches_of_a_graph_are_spread_where_the_model_says_that_it_pays(
    device: cl.Device, fails: bool
) -> None:
    size = 1 << 12
    with acs.Runtime(devices=team(device, 2)) as rt:
        engine, prog = engine_of(rt), rt.build(ADD)
        x, y = rt.array(np.ones(size), "f4"), rt.zeros(size)
        teach(rt, 90_000.0, [size])
        with rt.record() as graph:
            for _ in range(3):
                prog.add((size,), None, x, y, 1)
        graph.replay()
        before = engine.parts
        graph.replay()
        assert engine.parts == before + 6
        assert "3 on device 0, 3 on device 1; copies between devices in each replay: 0" in str(
            graph.explain()
        )
        assert y.get().tolist() == [6] * size
        if fails:

            def wrong(values: Any) -> None:
                raise ValueError("no")

            rt.call(wrong, writes=x[:8])
            graph.replay()
            with pytest.raises(acs.PoisonedError):
                y[size - 8 :].get()
            with contextlib.suppress(acs.AcsError):
                rt.finish()


def test_bytes_that_nobody_wrote_are_known() -> None:
    known = Coherence()
    known.written(interval(1, 4, 4), 0)
    found = known.unwritten(interval(1, 0, 12))
    assert [(one.start, one.end) for one in found] == [(0, 4), (8, 12)]
    other = known.copy()
    other.written(interval(1, 0, 12), 1)
    assert known.all_of(1) == known.copy().all_of(1) != other.all_of(1)
