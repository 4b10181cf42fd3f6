"""Several devices: one memory, one program order, and nothing copied twice.

Two or three contexts of one device stand for devices where there are no more.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import random
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from conftest import Environment
from fuzz.several import CONFIGURATIONS, Looked, Ways, engine_of, team

import acs_cl as acs
from acs_cl import testing
from acs_cl.benchmarks.suite import device_programs, devices
from acs_cl.errors import CheckError
from acs_cl.launch.commands import KernelCommand
from acs_cl.memory.blocks import Block
from acs_cl.observe.edges import edges_of
from acs_cl.observe.record import load
from acs_cl.observe.report.page import page
from acs_cl.observe.shares import shares
from acs_cl.observe.slices import AT_ONCE
from acs_cl.records import Access, HostArray, Span, interval
from acs_cl.several import device_parts, policies
from acs_cl.several.copies_launched import MOST
from acs_cl.several.engine import SeveralEngine
from acs_cl.several.kernel_times import FIRST, RARELY, Times
from acs_cl.several.known_launches import Known, KnownLaunches
from acs_cl.several.links import links_of
from acs_cl.several.model import MOST_ROWS, Coherence, Parcel, Piece
from acs_cl.several.policies import Lack, Link, State, Task
from acs_cl.several.step_plans import ON_EACH
from acs_cl.several.steps import LIMITS, Clock, Limits, Step, Steps
from acs_cl.several.steps import MOST as MOST_SEEN
from acs_cl.tools.doctor import links_between

EACH = max(6, int(os.environ.get("ACS_CL_FUZZ", "0")) // len(CONFIGURATIONS))
"""Programs of each configuration."""

SLOW = """
kernel void slow(global float *x, uint n)
{ volatile uint at = 0; while (at < n) at++; x[0] = at; }
"""
ADD = """
kernel void add(global const float *x, global float *y, float a)
{ int i = get_global_id(0); y[i] += a * x[i]; }
"""


@pytest.fixture
def two(device: cl.Device) -> Iterator[acs.Runtime]:
    with acs.Runtime(devices=team(device, 2), placement="round_robin") as runtime:
        yield runtime


# ---- coherence -----------------------------------------------------------------------------------


def any_span(chance: random.Random, base: int, size: int) -> Span:
    if chance.random() < 0.5:
        start = chance.randrange(size)
        width = chance.randint(1, size - start)
        return Span(base, start, width, 1, width)
    pitch = chance.randint(2, 12)
    rows = chance.randint(2, size // pitch - 1)
    width = chance.randint(1, pitch)
    return Span(base, chance.randint(0, size - rows * pitch), pitch, rows, width)


@pytest.mark.parametrize("devices", [2, 3, 5])
def test_coherence_is_that_of_single_bytes(devices: int) -> None:
    chance = random.Random(devices)
    for _ in range(40):
        known = Looked(devices)
        for _ in range(60):
            span, device = any_span(chance, chance.randrange(1, 3), 64), chance.randrange(devices)
            if chance.random() < 0.4:
                known.written(span, device)
                continue
            for piece in known.missing(span, device):
                if chance.random() < 0.8:
                    known.moved(piece, device)
        if chance.random() < 0.3:
            known.forget(1)
        for base, line in known.model.valid.items():
            pieces = known.cover(Span(base, 0, len(line), 1, len(line)))
            assert [p.start for p in pieces[1:]] == [p.end for p in pieces[:-1]]
            assert sum(p.nbytes for p in pieces) == len(line)
            for piece in pieces:
                inside = [one for one in line[piece.start : piece.end] if one]
                holders = set(range(devices)).intersection(*inside)
                assert holders == {d for d in range(devices) if piece.devices >> d & 1}
            for device in range(devices):
                every = [at for at, one in enumerate(line) if one and device not in one]
                found = known.missing(Span(base, 0, len(line), 1, len(line)), device)
                assert [at for p in found for at in range(p.start, p.end)] == every


def test_a_copy_of_what_is_there_already_is_counted() -> None:
    known = Looked(2)
    known.written(interval(1, 0, 16), 0)
    known.copied(Parcel(1, 4, 12, 0, 1))
    assert known.twice == 0
    for piece in known.missing(interval(1, 4, 8), 1):
        known.moved(piece, 1)
    known.copied(Parcel(1, 8, 16, 0, 1))
    assert known.twice == 4
    known.written(interval(1, 8, 4), 0)
    known.copied(Parcel(1, 8, 12, 0, 1))
    assert known.twice == 4


def test_bytes_that_were_written_alike_are_one_interval_again() -> None:
    known = Coherence()
    whole = Span(1, 0, 1000, 1, 1000)
    for start in range(0, 1000, 10):
        known.written(Span(1, start, 10, 1, 10), start // 10 % 2)
    many = known.intervals
    for piece in known.missing(whole, 0):
        known.moved(piece, 0)
    known.written(whole, 1)
    assert known.intervals == 2 < many
    known.forget(1)
    assert known.intervals == 0


def test_a_span_of_very_many_rows_counts_as_all_between_them() -> None:
    known = Coherence()
    known.written(Span(1, 0, 8 * MOST_ROWS, 1, 8 * MOST_ROWS * 2), 0)
    column = Span(1, 0, 8, 2 * MOST_ROWS, 4)
    found = known.missing(column, 1)
    assert found == [Piece(1, 0, column.end, 1)]


# ---- placement -----------------------------------------------------------------------------------

NOW = 1000.0
LINKS = [[Link(10.0, 1000.0)] * 3 for _ in range(3)]


def task(lacks: Sequence[int], took: float | None = 500.0, ready: Sequence[float] = ()) -> Task:
    """A launch that lacks so many bytes on each device, which the others have."""
    devices = range(len(lacks))
    holders = sum(1 << d for d in devices if not lacks[d])
    return Task(
        tuple((Lack(one, holders),) if one else () for one in lacks),
        tuple(ready) or (0.0,) * len(lacks),
        (took,) * len(lacks),
        max(lacks),
    )


def states(*free: float, active: Sequence[int] = (0, 0, 0)) -> list[State]:
    return [State(one, active[d], 0) for d, one in enumerate(free)]


@pytest.mark.parametrize(
    ("asked", "there", "expected"),
    [
        # nothing to move: the first that is free
        (task([0, 0]), states(5000.0, NOW), 1),
        # at home, while moving takes longer than waiting
        (task([0, 900_000]), states(NOW + 800, NOW), 0),
        # away, once the queue at home is longer than that, and than what placing takes
        (task([0, 900_000]), states(NOW + 1000, NOW), 0),
        (task([0, 900_000]), states(NOW + 1100, NOW), 1),
        # in a chain the data is not ready elsewhere either
        (task([0, 900_000], ready=[NOW + 5000, 0]), states(NOW + 5000, NOW), 0),
        # short ones stay, and so do unknown ones
        (task([0, 100], took=2.0), states(NOW + 9000, NOW), 0),
        (task([0, 100], took=None), states(NOW + 9000, NOW), 0),
        # little data of short ones goes to the first device; not if it is late, or large
        (task([100, 0], took=2.0), states(NOW, NOW), 0),
        (task([100, 0], took=2.0, ready=[0.0, NOW + 5000]), states(NOW, NOW), 1),
        (task([900_000, 0], took=2.0), states(NOW, NOW), 1),
        # new data is made on the first device
        (task([0, 0], took=None), states(NOW, NOW, active=(3, 1, 0)), 0),
        # of three, the one with all of it
        (task([100_000, 0, 100_000]), states(NOW, NOW, NOW), 1),
    ],
)
def test_min_finish_weighs_waiting_against_moving(
    asked: Task, there: list[State], expected: int
) -> None:
    links = [row[: len(there)] for row in LINKS[: len(there)]]
    assert policies.min_finish(asked, there, links, NOW) == expected


def test_baselines_look_at_what_their_names_say() -> None:
    slow, fast = Link(0.0, 10.0), Link(0.0, 1000.0)
    links = [[fast, slow, fast], [slow, fast, fast], [fast, fast, fast]]
    there = states(NOW, NOW, NOW, active=(4, 1, 2))
    asked = Task(
        ((Lack(600, 0b110),), (Lack(500, 0b101),), (Lack(700, 0b011),)), (0.0,) * 3, (1.0,) * 3, 0
    )

    def chosen(name: str) -> int:
        return policies.policy(name)(asked, there, links, NOW)

    assert chosen("stream_aware") == 1
    assert chosen("min_transfer_size") == 1  # 500 bytes
    assert chosen("minmin_transfer_time") == 1  # 500 bytes by the fast link from device 2
    assert chosen("minmax_transfer_time") == 2  # the only one without a slow link
    turns = policies.policy("round_robin")
    assert [turns(asked, there, links, NOW) for _ in range(4)] == [0, 1, 2, 0]


def test_few_launches_of_a_kind_are_timed_and_never_two_at_once() -> None:
    times, live, timed = Times(2), set[int](), 0
    key = "k", (64,), None

    def launch(number: int) -> bool:
        live.add(number)
        times.ask(number, key, 0, live.__contains__)
        return number in times.asked

    def end(took_us: float | None) -> None:
        for number in list(times.asked):
            times.took(number, took_us)
        live.clear()

    for number in range(10, 1000):
        timed += launch(number)
        assert len(times.asked) <= 1
        if number % 3 == 0:
            end(50.0)
    assert FIRST < timed <= 1000 // RARELY + FIRST
    assert times.of(key) == (50, None)
    end(50.0)
    times.due(key, 0)
    assert launch(1000)
    assert not launch(1001)  # the one before is under way
    end(None)  # a driver that has no time of it
    times.due(key, 0)
    assert launch(1002)
    live.clear()  # it never ran
    times.due(key, 0)
    assert launch(1003)
    assert list(times.asked) == [1003]
    end(1e6)  # late: something else held it
    assert times.of(key)[0] == 50


def test_a_first_launch_that_takes_long_does_not_count_for_long() -> None:
    """Drivers load a kernel's code and make memory at its first launch."""
    times, key = Times(1), ("k", (64,), None)
    medians = []
    for number, took_us in enumerate([8000.0, 11.0, 900.0, 10.0, 11.0, *[30.0] * 8], 1):
        times.ask(number, key, 0, {number}.__contains__)
        times.due(key, 0)
        times.took(number, took_us)
        medians.append(times.of(key)[0])
    assert medians == [8000, 11, 900, 11, 11, 11, 30, 30, 30, 30, 30, 30, 30]


def test_the_first_launch_of_each_kind_is_timed_whatever_is_under_way() -> None:
    times, live = Times(1), set[int]()
    for number in range(1, 41):
        live.add(number)
        times.ask(number, (f"k{number % 20}", (64,), None), 0, live.__contains__)
    assert list(times.asked) == list(range(1, 21))
    for number in range(1, 21):
        times.took(number, 3.0)
    assert all(times.of((f"k{kind}", (64,), None))[0] == 3 for kind in range(20))


def test_lanes_of_several_devices_keep_no_times(device: cl.Device) -> None:
    keeps = cl.command_queue_properties.PROFILING_ENABLE
    with acs.Runtime(devices=team(device, 2), backend="lanes", spread=False) as rt:
        engine, prog = engine_of(rt), rt.build(ADD)
        assert not any(queue.properties & keeps for queue in engine.backend.queues)
        x, y = rt.array(np.ones(64), "f4"), rt.zeros(64)
        for k in range(4):
            prog.add((64,), None, x, y, k)
            rt.finish()
        assert engine.times.of(("add", (64,), None))[0]
        assert y.get()[0] == 6
        assert sum(rt.stats()["lanes"].values()) >= 6


@pytest.mark.parametrize("name", policies.PLACEMENTS)
def test_every_policy_runs_programs_and_is_told(device: cl.Device, name: str) -> None:
    with acs.Runtime(devices=team(device, 2), placement=name) as rt:
        prog = rt.build(ADD)
        x, ys = rt.array(np.arange(64), "f4"), [rt.zeros(64) for _ in range(3)]
        for k in range(6):
            handle = prog.add((64,), None, x, ys[k % 3], k)
            prog.add((64,), None, ys[k % 3], ys[(k + 1) % 3], 1)
        sums = [0, 0, 0]
        for k in range(6):
            sums[k % 3] += k
            sums[(k + 1) % 3] += sums[k % 3]
        for y, total in zip(ys, sums, strict=True):
            assert y.get().tolist() == [total * i for i in range(64)]
        assert name == "min_finish" or f"placed by {name}" in str(rt.explain(handle))
    assert repr(rt).endswith(", closed>")


# ---- programs ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ways(device: cl.Device) -> Iterator[Ways]:
    made = Ways(device)
    yield made
    made.close()


@pytest.mark.rotate("configuration", 3)
@pytest.mark.parametrize("configuration", range(len(CONFIGURATIONS)))
def test_random_programs_at_random_places_give_what_numpy_gives(
    ways: Ways, configuration: int
) -> None:
    seeds = range(configuration, configuration + EACH * len(CONFIGURATIONS), len(CONFIGURATIONS))
    counts = [ways.one(seed) for seed in seeds]
    assert sum(one["copies"] for one in counts) > 0
    assert {one["bytes copied twice"] for one in counts} == {0}


def test_a_loop_on_two_devices_is_one_memory(two: acs.Runtime) -> None:
    prog = two.build(ADD)
    x, y = two.array(np.arange(1000), "f4"), two.zeros(1000, "f4")
    for _ in range(10):
        prog.add((1000,), None, x, y, 1)
    prog.add((500,), None, x[500:], y[500:], 2)
    expected = np.arange(1000, dtype="f4") * 10
    expected[500:] += 2 * np.arange(500, 1000)
    np.testing.assert_array_equal(y.get(), expected)
    y[::2].fill(5)
    expected[::2] = 5
    np.testing.assert_array_equal(y.get(), expected)
    assert np.array_equal(y[100:200:3].get(), expected[100:200:3])


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_checks_look_at_one_memory_wherever_launches_run(device: cl.Device, memory: str) -> None:
    with acs.Runtime(devices=team(device, 2), memory=memory, check="access,order") as rt:
        engine, prog = engine_of(rt), rt.build(ADD)
        x, y = rt.array(np.ones(64), "f4"), rt.array(np.ones(64), "f4")
        engine.placer.policy = lambda *of: 1
        for _ in range(6):
            prog.add((64,), None, x, y, 1)
        rt.finish()
        assert engine.placed_on[1] == 6
        assert rt.stats()["check"]["found"] == 0
        prog.add((64,), None, x, y, 1, reads=x, writes=y[:60])
        with pytest.raises(CheckError, match="does not declare it"):
            rt.finish()


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_more_copies_than_pieces_of_staging_memory(device: cl.Device, memory: str) -> None:
    steps = 3 * max(MOST.values())
    with acs.Runtime(devices=team(device, 2), placement="round_robin", memory=memory) as rt:
        prog = rt.build(ADD)
        sizes = 64, 1 << 15  # of a small piece, and of a larger one
        pairs = [(rt.array(np.ones(one), "f4"), rt.zeros(one)) for one in sizes]
        for _ in range(steps):
            for x, y in (*pairs, pairs[0]):  # three, so that each pair changes its device
                prog.add(x.shape, None, x, y, 1)
        copies = sum(many for row in engine_of(rt).copies.moved for many, _ in row)
        assert copies >= 2 * (steps - 1)
        assert set(pairs[0][1].get()) == {2 * steps}
        assert set(pairs[1][1].get()) == {steps}


def test_the_check_of_orders_finds_what_was_not_copied(device: cl.Device) -> None:
    with acs.Runtime(devices=team(device, 2), check="order=1") as rt:
        engine, prog = engine_of(rt), rt.build(ADD)
        x, y, z = (rt.array(np.ones(64), "f4") for _ in range(3))
        for target in (1, 0, 1):
            engine.placer.policy = lambda *of, target=target: target
            prog.add((64,), None, x, y, 1)
        rt.finish()
        bring = engine.copies.bring

        def forgetful(wanted: Sequence[tuple[Sequence[Span], int]], *others: Any) -> None:
            bring([(spans, to) for spans, to in wanted if not to], *others)

        engine.copies.bring = forgetful  # type: ignore[method-assign]
        for target in (0, 1):
            engine.placer.policy = lambda *of, target=target: target
            prog.add((64,), None, x, y, 1)
            prog.add((64,), None, x, z, 1)  # else there is one order alone
        with pytest.raises(CheckError, match="comes out otherwise"):
            rt.finish()


def test_what_a_kernel_declares_and_does_not_write_stays(two: acs.Runtime) -> None:
    prog = two.build("kernel void put(global float *y) { y[2 * get_global_id(0)] = 7; }")
    y = two.array(np.arange(32), "f4")
    for _ in range(3):  # on one device, and on the other one
        prog.put((16,), None, y, writes=y)
    assert y.get()[1::2].tolist() == list(range(1, 32, 2))


def test_what_was_copied_once_is_there(two: acs.Runtime) -> None:
    prog = two.build(ADD)
    x, ys = two.array(np.ones(10), "f4"), [two.zeros(10, "f4") for _ in range(20)]
    seen: list[int] = []
    engine_of(two).copies.told = lambda parcel: seen.append(parcel.base)
    for y in ys:
        prog.add((10,), None, x, y, 1)
    two.finish()
    assert x.base is not None
    assert seen.count(x.base.number) == 1


def test_the_core_makes_short_launches_where_the_first_device_alone_has_their_data(
    device: cl.Device,
) -> None:
    with acs.Runtime(devices=team(device, 2), memory="svm", spread=False) as rt:
        engine, prog = engine_of(rt), rt.build(ADD)
        x, y, far = (rt.array(np.ones(100), "f4") for _ in range(3))
        engine.times.of = (  # type: ignore[method-assign]
            lambda key: (1.0,) * 2  # short, however busy the machine is
        )

        def ten(target: acs.Array) -> int:
            for _ in range(2):  # the first one makes the plan
                prog.add((100,), None, x, target, 1)
                rt.finish()
            until = time.perf_counter() + 10  # the core leaves to Python what comes beside a thread
            while engine.progress.is_running and time.perf_counter() < until:
                time.sleep(0.001)
            before = sum(engine.placed_on)
            for _ in range(10):
                prog.add((100,), None, x, target, 1)
            return sum(engine.placed_on) - before

        assert ten(y) == 0
        assert ten(y[:100]) == 0
        assert y.get()[0] == 25
        engine.placer.policy = lambda *of: 0
        engine.have(far, 1, alone=True)
        assert ten(far) == 0  # the one before them brings it back
        assert far.get()[0] == 13
        engine.placer.policy = lambda *of: 1
        engine.have(y, 1)  # two devices have it: the next launch is placed, and the one behind it
        assert ten(y) == 10
        assert "on device 1" in str(rt.explain(prog.add((100,), None, x, y, 1)))
        assert y.get()[0] == 38
        z = rt.empty(100)
        engine.placer.policy = lambda *of: 0
        prog.add((100,), None, x, z, 1)
        z.fill(2)  # a transfer of the core's
        engine.have(z, 1, alone=True)
        assert z.get().tolist() == [2] * 100


def test_a_wrong_count_of_the_cores_own_launches_is_told_as_any_other(device: cl.Device) -> None:
    source = "kernel void up(global uint *x) { x[get_global_id(0)] += 1; }"
    with acs.Runtime(devices=team(device, 2), spread=False) as rt:
        prog, counts = rt.build(source), rt.array([16, 17], "u4")
        x, y = rt.zeros(16, "u4"), rt.zeros(16, "u4")
        engine_of(rt).times.of = (  # type: ignore[method-assign]
            lambda key: (1.0,) * 2  # so the core makes them, on the first device
        )
        for _ in range(10):
            prog.up((acs.size(counts[0:1], upto=16),), None, x)
            wrong = prog.up((acs.size(counts[1:2], upto=16),), None, y)
            with pytest.raises(acs.PoisonedError, match=r"kernel .up. did not run: .* is 17"):
                wrong.wait()
            y.fill(0)
        assert x.get().tolist() == [10] * 16


def test_a_copy_of_some_lost_bytes_loses_no_others(device: cl.Device) -> None:
    source = """
    kernel void up(global uint *x) { x[get_global_id(0)] += 1; }
    kernel void copy(global const uint *x, global uint *y)
    { size_t i = get_global_id(0); y[i] = x[i]; }
    """
    with acs.Runtime(devices=team(device, 2), spread=False) as rt:
        engine, prog, wrong = engine_of(rt), rt.build(source), rt.array([9], "u4")
        x, y, z = rt.zeros(64, "u4"), rt.zeros(64, "u4"), rt.zeros(64, "u4")
        for one in x, y, z:
            engine.have(one, 0, alone=True)
        engine.placer.policy = lambda *of: 1
        prog.up((acs.size(wrong, upto=8),), None, x[:8])  # the first device looks at its count
        prog.copy((32,), None, x[:32], y[:32])  # these are copied to the other device
        assert "on device 1" in str(rt.explain(prog.copy((24,), None, x[8:32], z[:24])))
        prog.copy((16,), None, x[32:48], z[32:48])
        assert z.get().tolist() == [0] * 64
        for lost in x[:8], y[:8], y[24:32]:
            with pytest.raises(acs.PoisonedError, match="its count on the device is 9"):
                lost.get()
        assert not x[8:].get().any()


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_copies_are_made_at_once_unless_their_data_comes_late(
    device: cl.Device, memory: str
) -> None:
    with acs.Runtime(devices=team(device, 2), memory=memory, spread=False) as rt:
        engine, prog = engine_of(rt), rt.build(ADD)
        many = (9 << 20) // 4 + 5  # some chunks, each slot more than once, and a part of one
        values = np.arange(many, dtype="f4")
        x, y = rt.array(values), rt.array(np.ones(64), "f4")
        rt.finish()
        for target in (1, 0, 1):
            engine.have(x[3:], target, alone=True)
            engine.have(x, target, alone=True)
            assert not len(engine.table)  # nothing was launched
        np.testing.assert_array_equal(x.get(), values)
        gate = cl.UserEvent(rt.context)
        engine.placer.policy = lambda *of: 0
        prog.add((64,), None, x, y, 1, wait_for=[gate])
        engine.have(y, 1)  # behind what waits for the program: the copy has to be launched
        assert len(engine.table) >= 3
        gate.set_status(cl.command_execution_status.COMPLETE)
        engine.have(y, 1, alone=True)
        assert y.get().sum() == 64 + values[:64].sum()


@pytest.mark.parametrize("memory", ["svm", "buffers"])
@pytest.mark.parametrize("backend", ["serial", "out_of_order", "lanes"])
def test_the_core_makes_launches_and_copies_that_come_again(
    device: cl.Device, memory: str, backend: str
) -> None:
    """Each launch is where the one before was not, so that its data has to be copied."""
    many = {"placement": "round_robin", "memory": memory, "backend": backend}
    with acs.Runtime(devices=team(device, 2), **many) as rt:
        engine, prog = engine_of(rt), rt.build(ADD)
        x, y = rt.array(np.ones(1000), "f4"), rt.array(np.zeros(1000), "f4")
        for _ in range(10):
            prog.add((1000,), None, x, y, 1)
        rt.finish()
        gate, before = cl.UserEvent(rt.context), engine.table.by_core
        prog.add((1000,), None, x, y, 1, wait_for=[gate])
        for _ in range(30):
            prog.add((1000,), None, x, y, 1)
        assert engine.table.held > 30  # copies, too
        gate.set_status(0)
        rt.finish()
        for _ in range(30):
            prog.add((1000,), None, x, y, 1)
        rt.finish()
        assert engine.table.by_core - before > 30
        assert y.get().tolist() == [71.0] * 1000


def test_a_queue_of_pyopencl_and_a_runtime_of_several_devices_are_one_program(
    two: acs.Runtime,
) -> None:
    queue = acs.Queue(two.context, runtime=two)
    add = cl.Kernel(cl.Program(two.context, ADD).build(), "add")
    x, y = (
        cl.array.empty(queue, 100, np.float32, allocator=queue.allocator).fill(k) for k in (1, 2)
    )
    w, ours = two.zeros(100), two.build(ADD)
    for _ in range(6):
        add(queue, (100,), None, x.data, y.data, np.float32(1))
        ours.add((100,), None, y, w, 1)  # on the first device, where the queue's memory is
        ours.add((100,), None, w, w, 0)
    assert y.get()[0] == 8
    assert w.get()[99] == sum(range(3, 9))


def test_memory_of_the_program_is_the_same_for_a_queue_and_several_devices(
    two: acs.Runtime,
) -> None:
    queue, ours = acs.Queue(two.context, runtime=two), two.build(SLOW)
    slow = cl.Kernel(cl.Program(two.context, SLOW).build(), "slow")
    flags, found = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR, np.empty(1, np.float32)
    shared = cl.Buffer(two.context, flags, hostbuf=np.zeros(1, np.float32))
    for _ in range(3):
        slow(queue, (1,), None, shared, np.uint32(1 << 25))
        ours.slow((1,), None, shared, 1)
        two.finish()
        cl.enqueue_copy(queue, found, shared)
        assert found[0] == 1
        ours.slow((1,), None, shared, 1 << 25)
        slow(queue, (1,), None, shared, np.uint32(1))
        queue.finish()
        cl.enqueue_copy(queue, found, shared)
        assert found[0] == 1


def test_commands_that_touch_no_common_bytes_keep_their_order_on_several_devices(
    two: acs.Runtime,
) -> None:
    queue, other = (acs.Queue(two.context, runtime=two) for _ in range(2))
    slow = cl.Kernel(cl.Program(two.context, SLOW).build(), "slow")
    a, b = (cl.Buffer(two.context, cl.mem_flags.READ_WRITE, 4) for _ in range(2))
    slow(queue, (1,), None, a, np.uint32(1))
    queue.finish()
    for behind in (
        lambda before: cl.enqueue_marker(queue),
        lambda before: slow(other, (1,), None, b, np.uint32(1), wait_for=[before]),
    ):
        before = slow(queue, (1,), None, a, np.uint32(1 << 25))
        cl.Event.wait(behind(before).acs_native())
        assert engine_of(two).is_done(before.acs_number)


def test_arrays_that_the_first_device_has_no_room_for_are_made_where_they_are_needed(
    two: acs.Runtime,
) -> None:
    engine, prog = engine_of(two), two.build(ADD)
    engine.store.most_at_home = 0, 0
    queue = acs.Queue(two.context, runtime=two)
    with pytest.raises(cl.MemoryError, match="no 1,000 bytes left on the first"):
        queue.allocator(1000)
    x, y = two.array(np.ones(100), "f4"), two.zeros(100)
    for _ in range(5):
        prog.add((90,), None, x[10:], y[10:], 2)
    assert y.get().tolist() == [0] * 10 + [10] * 90


def test_graphs_replay_on_all_devices(two: acs.Runtime) -> None:
    prog = two.build(ADD)
    x, y, z = (two.array(np.full(64, k), "f4") for k in (1, 2, 3))
    with two.record() as graph:
        prog.add((64,), None, x, y, 1)
        step = prog.add((64,), None, y, z, 1)
        x.copy_from(z)
    values = [1.0, 2.0, 3.0]
    for k in range(6):
        graph.update(step, a=k)
        graph.replay()
        values[1] += values[0]
        values[2] += k * values[1]
        values[0] = values[2]
    for array, value in zip((x, y, z), values, strict=True):
        np.testing.assert_array_equal(array.get(), np.full(64, value, "f4"))
    assert all(one["launches"] for one in two.stats()["devices"])


def test_stats_and_explain_say_where_a_launch_ran_and_what_moved(two: acs.Runtime) -> None:
    prog = two.build(ADD)
    x, y = two.array(np.ones(1000), "f4"), two.zeros(1000, "f4")
    handles = [prog.add((1000,), None, x, y, 1) for _ in range(2)]
    assert {f"on device {d} (" in str(two.explain(h)) for h in handles for d in range(2)} == {
        True, False,
    }  # fmt: skip
    assert "placed by round_robin" in str(two.explain(handles[0]))
    first, second = two.stats()["devices"]
    assert first["launches"] + second["launches"] == 4
    assert second["from"][0]["bytes"] + first["from"].get(1, {"bytes": 0})["bytes"] >= 8000
    assert "RAW" in str(two.explain(*handles))


def test_a_timeline_has_a_row_for_each_lane_of_each_device_and_the_copies_between(
    device: cl.Device, tmp_path: Path
) -> None:
    with acs.Runtime(devices=team(device, 2), trace=True, spread=False) as rt:
        engine, prog = engine_of(rt), rt.build(ADD)
        x, y = rt.array(np.ones(64), "f4"), rt.array(np.ones(64), "f4")
        engine.placer.policy = lambda *of: 0
        prog.add((64,), None, x, y, 1)
        rt.finish()
        engine.placer.policy = lambda *of: 1
        last = prog.add((64,), None, x, y, 1)  # both arrays are copied, at once
        rt.finish()
        gate = cl.UserEvent(rt.context)
        engine.placer.policy = lambda *of: 0
        gated = prog.add((64,), None, x, y, 1, wait_for=[gate])
        engine.placer.policy = lambda *of: 1
        behind = prog.add((64,), None, y, x, 1)  # its copy has to be launched
        gate.set_status(cl.command_execution_status.COMPLETE)
        rt.finish()
        slices = {one.number: one for one in rt.trace.slices}
        rt.trace.save(tmp_path / "two.jsonl")
        found = load(tmp_path / "two.jsonl")
        there = found.where
        assert there[last.number].startswith("device 1, lane ")
        assert there[gated.number].startswith("device 0, lane ")
        at_once = [one for one in slices.values() if one.lane == AT_ONCE]
        assert {one.name for one in at_once} == {
            "copy from device 0 to 1",
            "copy from device 1 to 0",
        }
        assert {there[one.number] for one in at_once} == {"between devices"}
        halves = [one for one in slices.values() if one.lane >= 0 and one.name.startswith("copy")]
        assert [one.device for one in sorted(halves)][-2:] == [0, 1]
        edges = {n: [edge.upstream for edge in some] for n, some in edges_of(found.slices).items()}
        write = max(one.number for one in halves)
        assert edges[behind.number] == [write]  # it follows the copy, which follows what was gated
        assert gated.number in edges[edges[write][0]]
        assert found.clocks.comparable
        assert {"transfers", "kernels"} <= {one.name for one in shares(found)}
        assert rt.trace.overlap() >= 1
        text = page(found, what_if=False)
        assert "copy from device 0 to 1" in text
        assert y.get()[0] == 4


def test_a_block_on_several_devices_is_measured(two: acs.Runtime, tmp_path: Path) -> None:
    keeps = cl.command_queue_properties.PROFILING_ENABLE
    engine, prog = engine_of(two), two.build(ADD)
    x, y = two.array(np.ones(64), "f4"), two.array(np.ones(64), "f4")
    kept = [queue.properties & keeps for queue in engine.backend.queues]
    with two.measure() as block:
        assert all(queue.properties & keeps for queue in engine.backend.queues)
        with two.phase("adding"):
            for _ in range(4):
                prog.add((64,), None, x, y, 1)
    assert [queue.properties & keeps for queue in engine.backend.queues] == kept
    (phase,) = [one for one in block.phases if one.name == "adding"]
    assert {name[:8] for name in phase.where} == {"device 0", "device 1", "between "}
    assert "behind copy from device" in block.explain("add#2")
    assert "base" in block.explain("add#2")
    block.save(tmp_path / "two.json")
    tracks = {
        event["args"]["name"]
        for event in json.loads((tmp_path / "two.json").read_text())["traceEvents"]
        if event["name"] == "thread_name"
    }
    assert {"device 0, lane 0", "device 1, lane 0"} <= tracks
    assert any(name.startswith("copies between devices") for name in tracks)  # some at a time
    block.dag(tmp_path / "two.dot")
    assert "between devices" in (tmp_path / "two.dot").read_text()
    for _ in range(3):
        prog.add((64,), None, x, y, 1)
    assert y.get()[0] == 8


def test_a_host_task_and_a_decision_see_what_every_device_wrote(two: acs.Runtime) -> None:
    prog = two.build(ADD)
    x, y = two.array(np.ones(100), "f4"), two.zeros(100, "f4")
    flag, count = two.zeros(1, "u4"), two.array([50], "u4")
    seen: list[float] = []
    for k in range(6):
        prog.add((100,), None, x, y, 1)
        two.call(lambda values: seen.append(float(values[0])), reads=y)
        prog.add((100,), None, x, y, 100, when=flag)
        prog.add((acs.size(count, upto=100),), None, x, y, 1)
        two.call(lambda values, k=k: values.fill(k), writes=x)
    two.finish()
    expected, y_at = [], 0.0
    for k in range(6):
        value = 1.0 if not k else k - 1.0
        expected.append(y_at + value)
        y_at += 2 * value
    assert seen == expected


def test_whoever_waits_for_an_event_of_another_device_need_not_look_after_it(
    two: acs.Runtime,
) -> None:
    """The driver's own wait hears of its end, though no call of ours comes along."""
    prog = two.build(
        "kernel void spin(global uint *x, uint rounds) {"
        "  uint y = x[0];"
        "  for (uint i = 0; i < rounds; ++i) y = y * 3u + 1u ^ y >> 7; x[0] = y; }"
    )
    arrays = [two.zeros(1, "u4") for _ in range(4)]
    two.finish()
    cl.wait_for_events([prog.spin((1,), None, x, 1 << 23).event for x in arrays])
    assert len({int(x.get()[0]) for x in arrays}) == 1


def test_events_of_every_device_are_of_the_runtimes_context(two: acs.Runtime) -> None:
    prog = two.build(ADD)
    x, y = two.array(np.ones(100), "f4"), two.zeros(100, "f4")
    events = [prog.add((100,), None, x, y, 1).event for _ in range(4)]
    cl.wait_for_events(events)
    assert y.get()[0] == 4


def test_links_are_measured_and_believed_again(
    device: cl.Device, tmp_path: Path, environment: Environment
) -> None:
    environment(ACS_CL_CACHE=str(tmp_path))
    pair = team(device, 2)
    assert links_of(pair)[0][1] is policies.ASSUMED
    found = links_between(pair, fresh=False)
    assert set(found) == {(0, 1), (1, 0)}
    assert all(link.latency_us > 0 and link.bytes_per_us > 0 for link in found.values())
    kept = links_of(pair)[1][0]
    assert kept == found[1, 0]  # equal devices share a link, the one measured last
    assert links_between(pair, fresh=False)[1, 0] == kept
    for file in tmp_path.rglob("*.json"):
        file.write_text(file.read_text().replace("1", "x"))
    assert links_of(pair)[0][1] is policies.ASSUMED


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_memory_is_not_given_out_again_under_a_launch(device: cl.Device, memory: str) -> None:
    with acs.Runtime(devices=team(device, 2), placement="round_robin", memory=memory) as rt:
        prog = rt.build(ADD)
        for _ in range(2):  # once for each device
            gate = cl.UserEvent(rt.context)
            x, y = rt.array(np.ones(1000), "f4"), rt.array(np.zeros(1000), "f4")
            prog.add((1000,), None, x, y, 1, wait_for=[gate])
            del y
            others = [rt.array(np.full(1000, k), "f4") for k in range(4)]
            gate.set_status(0)
            for k, other in enumerate(others):
                np.testing.assert_array_equal(other.get(), np.full(1000, k, "f4"))


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_memory_of_a_launch_in_flight_does_not_go_back_where_there_is_no_room(
    device: cl.Device, memory: str
) -> None:
    with acs.Runtime(devices=team(device, 2), placement="round_robin", memory=memory) as rt:
        prog, store = rt.build(SLOW), engine_of(rt).store.stores[1]
        reserve, release, is_live = store.reserve, store.release, rt.engine.hazards.is_live
        were_live: list[bool] = []

        def release_one(block: Block) -> bool:
            were_live.append(any(map(is_live, block.users)))
            return release(block)

        def reserve_one(size: int) -> Block:
            if store.reserved_bytes + size > 80 << 20:
                raise cl.MemoryError("no room")
            return reserve(size)

        for turns in (10, 1 << 27):  # the driver loads the kernel at first
            both = [rt.array(np.ones((36 + turns % 3) << 18), "f4") for _ in range(2)]
            for x in both:  # one of them on the second device
                prog.slow((1,), None, x, np.uint32(turns))
        store.reserve = reserve_one  # type: ignore[method-assign]
        store.release = release_one  # type: ignore[method-assign]
        under_way = testing.in_flight(rt)
        del both, x
        # both may go to the second device, if its launch ends first: there is room for two of them
        others = [rt.array(np.full(28 << 18, k), "f4") for k in range(2)]
        for y in others:
            prog.slow((1,), None, y, np.uint32(10))
        assert under_way
        assert were_live
        assert not any(were_live)
        for k, y in enumerate(others):
            np.testing.assert_array_equal(y.get()[:3], [10, k, k])


# ---- spread launches -----------------------------------------------------------------------------

SPREAD = """
kernel void blur(global const float *x, global float *y, int n)
{
    int i = get_global_id(0), j = get_global_id(1);
    if (i > 0 && i < n - 1 && j > 0 && j < n - 1)
        y[j * n + i] = x[j * n + i - 1] + x[j * n + i + 1] + x[j * n + i - n] + x[j * n + i + n];
}
kernel void all_to_one(global const int *x, global int *y)
{ atomic_add(y, x[get_global_id(0)]); }
"""
LOCAL = """
kernel void turned(global const float *x, global float *y, local float *part)
{
    int i = get_local_id(0), n = get_local_size(0);
    part[i] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    y[get_global_id(0)] = part[n - 1 - i];
}
"""
GROUPS = "kernel void put(global int *x) { x[get_group_id(0) * 4 + get_local_id(0)] = 7; }"


def test_a_stencil_is_spread_and_only_its_halos_move(device: cl.Device) -> None:
    n, steps = 96, 6
    start = np.random.default_rng(3).integers(0, 9, (n, n)).astype("f4")
    expected, other = start.copy(), start.copy()
    for _ in range(steps):
        inner = expected[1:-1, :-2] + expected[1:-1, 2:] + expected[:-2, 1:-1] + expected[2:, 1:-1]
        other[1:-1, 1:-1] = inner
        expected, other = other, expected
    with acs.Runtime(devices=team(device, 3), spread=True) as rt:
        prog = rt.build(SPREAD)
        x, y = rt.array(start), rt.array(start)
        for _ in range(2):
            prog.blur((n, n), None, x, y, n)
            x, y = y, x
        copied, parts = list[int](), [engine_of(rt).parts]
        engine_of(rt).copies.told = lambda parcel: copied.append(parcel.end - parcel.start)
        for _ in range(steps - 2):
            handle = prog.blur((n, n), None, x, y, n)
            parts.append(engine_of(rt).parts)
            x, y = y, x
        assert parts[0] < 2 * 7
        assert [after - before for before, after in pairwise(parts[1:])] == [7] * (steps - 3)
        np.testing.assert_array_equal(x.get(wait=False).wait(), expected)  # straight from each
        assert sum(copied) <= (steps - 2) * 4 * n * 4  # four rows a step
        handle.wait()
        assert handle.done
        cl.wait_for_events([handle.event])
        assert "part 7 of 7" in str(rt.explain(handle))


KERNELS: Any = object(), object()
"""Of a launch, and of its parts with an offset."""


def test_the_part_at_the_beginning_is_launched_with_the_kernel_itself() -> None:
    """The others have an offset, which some drivers mix with launches that have none."""
    command = KernelCommand("blur", KERNELS[0], (16, 48), (1, 1), (), (), None)
    parts = device_parts.cut(command, KERNELS, 2, rows)
    first = device_parts.border_first(parts[0], [interval(2, 16 * 23, 16)], rows)
    second = device_parts.border_first(parts[1], [interval(2, 16 * 24, 16)], rows)
    begins = [(one.command.offset[1], one.command.kernel) for one in (*parts, *first, *second)]
    assert [begin for begin, _ in begins] == [0, 24, 23, 0, 24, 25]
    assert all(kernel is KERNELS[begin > 0] for begin, kernel in begins)


def test_a_border_may_be_as_large_as_the_largest_one() -> None:
    command = KernelCommand("blur", None, (16, 48), None, (), (), (0, 0))
    part = device_parts.DevicePart(command, rows((16, 48), (0, 0)), KERNELS)
    found = device_parts.border_first(part, [interval(2, 16 * 5, 16)], rows)  # the sixth of six
    assert [one.command.global_size[1] for one in found] == [6, 42]


def rows(size: Sequence[int], offset: Sequence[int]) -> Access:
    """The access of some rows of a stencil over 64 x 16 bytes, from base 1 to base 2."""
    first, last = offset[-1], offset[-1] + size[-1]
    above, below = max(first - 1, 0), min(last + 1, 64)
    read = interval(1, 16 * above, 16 * (below - above))
    return Access((read,), (interval(2, 16 * first, 16 * (last - first)),))


@pytest.mark.parametrize(
    ("wanted", "cuts"),
    [
        ([interval(2, 16 * 47, 16)], [(47, 48), (16, 47)]),
        ([interval(2, 16 * 16, 40)], [(16, 20), (20, 48)]),  # three rows: of 1, 2, 4
        ([interval(2, 16 * 16, 16), interval(2, 16 * 46, 32)], [(16, 17), (46, 48), (17, 46)]),
        ([interval(2, 16 * 16, 16 * 8)], [(16, 48)]),  # a quarter of it
        ([interval(2, 16 * 30, 16)], [(16, 48)]),  # in its middle
        ([interval(1, 16 * 16, 16)], [(16, 48)]),  # it does not write that
    ],
)
def test_what_another_device_wants_soon_is_run_first(
    wanted: list[Span], cuts: list[tuple[int, int]]
) -> None:
    command = KernelCommand("blur", None, (16, 32), None, (), (), (0, 16))
    part = device_parts.DevicePart(command, rows((16, 32), (0, 16)), KERNELS)
    found = device_parts.border_first(part, wanted, rows)
    ends = [(one.command.offset[1], one.command.global_size[1]) for one in found]
    assert [(first, first + many) for first, many in ends] == cuts
    assert all(one.access == rows(*one.command[2:3], one.command.offset) for one in found)


def test_groups_stay_whole_and_sums_of_all_are_not_spread(device: cl.Device) -> None:
    with acs.Runtime(devices=team(device, 2), spread=True) as rt:
        prog, local, groups = rt.build(SPREAD), rt.build(LOCAL), rt.build(GROUPS)
        x, y = rt.array(range(24), "f4"), rt.zeros(24)
        local.turned((24,), (8,), x, y, cl.LocalMemory(32))
        assert engine_of(rt).parts == 2
        assert y.get().tolist() == [7 - i + 16 * (i // 8) for i in range(24)]
        total, numbers = rt.zeros(1, "i4"), rt.array(range(200), "i4")
        prog.all_to_one((200,), None, numbers, total)
        assert total.get()[0] == sum(range(200))
        z = rt.zeros(200, "i4")
        groups.put((200,), (4,), z)
        assert (z.get() == 7).all()
        said = "kernel void put(global int *x) { x[get_global_id(0)] = MANY; }"
        rt.build(said, macros={"MANY": "get_global_size(0)"}).put((200,), (4,), z)
        assert (z.get() == 200).all()  # what it asks for is in its options
        assert engine_of(rt).parts == 2


def test_a_flag_that_only_the_first_device_has_is_read_there(two: acs.Runtime) -> None:
    queue, prog = acs.Queue(two.context, runtime=two), two.build(ADD)
    x, y = two.array(np.ones(64), "f4"), two.zeros(64)
    flag = cl.array.to_device(queue, np.ones(1, "i4"), allocator=queue.allocator)
    for _ in range(4):
        handle = prog.add((64,), None, x, y, 1, when=flag.base_data)
        assert "device 0" in str(two.explain(handle))
    assert y.get().tolist() == [4] * 64


@pytest.mark.parametrize("is_recorded", [False, True])
def test_what_only_the_first_device_can_use_is_not_spread(
    device: cl.Device, is_recorded: bool
) -> None:
    """A queue's allocator gives memory of the runtime that other devices cannot use; so is a
    sampler of the first one's."""
    look = "kernel void look(global float *y, sampler_t how) { y[get_global_id(0)] += 2; }"
    with acs.Runtime(devices=team(device, 2), spread=True) as rt:
        engine, prog = engine_of(rt), rt.build(ADD + look)
        engine.places_after = 0, 0
        queue = acs.Queue(rt.context, runtime=rt)
        x, y = rt.array(np.arange(256), "f4"), rt.zeros(256)
        theirs = cl.array.zeros(queue, 256, np.float32, allocator=queue.allocator)
        modes = cl.addressing_mode.NONE, cl.filter_mode.NEAREST
        how = cl.Sampler(rt.context, False, *modes)

        def launch() -> None:
            prog.add((256,), None, x, theirs, 1)
            prog.look((256,), None, y, how)

        if is_recorded:
            with rt.record() as graph:
                launch()
        for _ in range(3):
            graph.replay() if is_recorded else launch()
        assert theirs.get().tolist() == [3 * i for i in range(256)]
        assert y.get().tolist() == [6] * 256
        assert not engine.parts


def test_replays_wait_for_all_parts(device: cl.Device) -> None:
    with acs.Runtime(devices=team(device, 2), spread=True) as rt:
        prog = rt.build(ADD)
        x, y = rt.array(np.ones(1 << 16), "f4"), rt.zeros(1 << 16)
        with rt.record() as graph:
            prog.add((1 << 16,), None, x, y, 1)
        replay = graph.replay()
        replay.wait()
        assert not len(rt.engine.table)
        assert engine_of(rt).parts == 2
        many = prog.add.launch_many((1 << 16,), None, x, y, [1, 2])
        many.wait()
        assert not len(rt.engine.table)
        assert (y.get() == 4).all()


@pytest.mark.parametrize("waits", [False, True], ids=["runs", "waits"])
def test_a_launch_in_parts_that_reads_poison_runs_in_no_part(
    device: cl.Device, waits: bool
) -> None:
    def fails(values: np.ndarray[Any, Any]) -> None:
        raise ValueError("no")

    with acs.Runtime(devices=team(device, 2), spread=True) as rt:
        prog = rt.build(ADD)
        x, y = rt.array(np.ones(1000), "f4"), rt.zeros(1000)
        if waits:  # the task is not with a thread yet
            rt.build(SLOW).slow((1,), None, x, 1 << 26)
        rt.call(fails, writes=x[:8])
        prog.add((1000,), None, x, y, 1)
        with pytest.raises(acs.PoisonedError):
            y[900:].get()
        with contextlib.suppress(acs.AcsError):
            rt.finish()


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "to_come"])
def test_a_copy_takes_poison_along_byte_by_byte(two: acs.Runtime, is_known: bool) -> None:
    comes = threading.Event()

    def fails(values: np.ndarray[Any, Any]) -> None:
        assert comes.wait(10)
        raise ValueError("no")

    x = two.array(np.arange(1000), "f4")
    failed = two.call(fails, writes=x[16:24])
    if is_known:
        comes.set()
        with pytest.raises(acs.PoisonedError):
            failed.wait()
    engine_of(two).have(x, 1, alone=True)
    comes.set()
    assert x[:16].get().tolist() == list(range(16))
    assert x[24:].get().tolist() == list(range(24, 1000))
    with pytest.raises(acs.PoisonedError):
        x[:17].get()
    engine_of(two).have(x, 0, alone=True)  # and back
    with pytest.raises(acs.PoisonedError):
        x[23:].get()
    x[16:24].set(np.zeros(8))
    assert x.get().sum() == sum(range(1000)) - sum(range(16, 24))


def test_a_lost_word_loses_what_its_loop_writes_on_whichever_device(two: acs.Runtime) -> None:
    prog = two.build("kernel void count(global uint *x, global uint *go) { x[0]++; go[0]--; }")
    x, go = two.array([7], "u4"), two.array([9], "u4")
    with two.record() as graph:
        prog.count((1,), None, x, go)
    two.call(lambda go: 1 / 0, writes=go)
    engine_of(two).have(go, 1, alone=True)
    with pytest.raises(acs.PoisonedError, match="division"):
        graph.replay(while_=go, at_most=3).wait()
    with pytest.raises(acs.PoisonedError, match="division"):
        x.get()
    with pytest.raises(acs.UsageError, match="have failed"):
        graph.profile()
    x.fill(0)
    go.fill(2)
    assert graph.replay(while_=go, at_most=3).rounds == 2
    assert x.get().tolist() == [2]


# ---- planning ------------------------------------------------------------------------------------


def test_launches_on_memory_that_goes_are_forgotten_whatever_else_they_touch() -> None:
    """An array that stayed kept the keys of all that touched it once, without end."""
    found, stays = KnownLaunches(), interval(1, 0, 8)

    class Kernel:
        """A kernel that nobody launches."""

    kernel = Kernel()
    held = weakref.ref(kernel)
    for number in (2, 3):
        spans = stays, interval(number, 0, 8)
        found.find(KernelCommand("k", kernel, (8,), None, (), (), None), Access(spans, spans))
    del kernel
    found.forget(2)
    gc.collect()
    assert held() is not None
    found.forget(3)
    gc.collect()
    assert held() is None


def test_a_step_is_known_once_it_has_come_twice() -> None:
    steps: Steps[str] = Steps()
    for one in "xaabcab":
        steps.repeated(one)
        steps.note(one)
    assert steps.repeated("c") is None  # "cab" came once
    for one in "cab":
        steps.note(one)
    assert steps.repeated("c") == ["c", "a", "b"]


def test_what_never_comes_again_is_in_no_step() -> None:
    steps: Steps[str] = Steps()
    for one in ("a", None, "a", None):
        assert steps.repeated("a") is None
        steps.note(one)
    assert steps.repeated("a") is None


def test_a_step_may_begin_with_a_launch_that_comes_several_times() -> None:
    steps: Steps[str] = Steps()
    found = []
    for one in "aab" * 3:
        found.append(steps.repeated(one))
        steps.note(one)
    assert found[6] == ["a", "a", "b"]
    assert not any(found[:6])


def test_a_step_is_timed_between_moments_at_which_nothing_is_under_way() -> None:
    clock = Clock()
    assert clock.passed(0.0, False) is None  # something is under way: nobody knows since when
    assert clock.passed(1.0, True) is None
    for turn in range(1, LIMITS.periods + 4):
        assert clock.passed(1.0 + 10.0 * turn, False) is None
    assert clock.passed(1.0 + 10.0 * (LIMITS.periods + 4), True) == 10.0
    clock = Clock()  # long steps are timed over two
    assert clock.passed(0.0, True) is None
    assert clock.passed(LIMITS.shortest_us, True) is None
    assert clock.passed(2 * LIMITS.shortest_us, True) == LIMITS.shortest_us


def launches_take(
    engine: SeveralEngine, took_us: Mapping[Any, float], others_us: float = 500.0
) -> None:
    """Have launches of some sizes take so long on each of two devices, as far as planning knows."""
    engine.times.of = (  # type: ignore[method-assign]
        lambda key: (took_us.get(key[1], others_us) if key else None,) * 2
    )


def decides(step: Step, period_us: float, many: int) -> str:
    """What a step decides while it comes so many times, and nothing is under way in between."""
    verdicts = (step.passed(turn * period_us, True) for turn in range(many))
    return next(filter(None, verdicts), "")


@pytest.mark.parametrize(
    ("period_us", "verdict"), [(600.0, "better"), (990.0, "worse"), (1500.0, "worse")]
)
def test_what_is_no_faster_by_the_clock_is_taken_back(period_us: float, verdict: str) -> None:
    step = Step([], {}, 1000.0)
    step.consider({}, 40)
    assert not decides(step, 1000.0, 39)  # it does not pay yet
    assert decides(step, 1000.0, 1) == "try"
    assert decides(step, period_us, LIMITS.settles + 2 * (LIMITS.periods + 1)) == verdict


@pytest.mark.parametrize("stall_at", range(0, 40, 3))
def test_a_stall_at_home_makes_no_slower_way_better(stall_at: int) -> None:
    step = Step([], {}, 1000.0)
    step.consider({}, 40)
    now_us, verdict = 0.0, ""
    for turn in range(200):
        now_us += 2e6 if turn == stall_at else 1000.0
        if (verdict := step.passed(now_us, True)) == "try":
            break
    assert verdict == "try"
    for _ in range(LIMITS.settles + 2 * (LIMITS.periods + 1)):
        now_us += 1200.0
        if verdict := step.passed(now_us, True):
            break
    assert verdict == "worse"


@pytest.mark.parametrize(
    ("period_us", "host_us", "pause_us", "stays"),
    [
        (100.0, 0.0, 0.0, True),
        (100.0, 0.0, 10_000.0, True),  # pauses, in which the program does something else
        (10_000.0, 0.0, 0.0, False),
        (100.0, 10_000.0, 0.0, False),  # the host is slow, so that nothing is under way
    ],
)
def test_a_program_whose_parts_are_slow_by_the_clock_ends_up_at_home(
    device: cl.Device,
    period_us: float,
    host_us: float,
    pause_us: float,
    stays: bool,
) -> None:
    """The model says that parts take half of the time, and the clock something else."""
    now_us = 0.0
    with acs.Runtime(devices=team(device, 2)) as rt:
        engine, prog = engine_of(rt), rt.build(ADD)
        x, y = rt.array(np.ones(4096), "f4"), rt.zeros(4096)
        engine.now_us = lambda: now_us
        took_us = {(4096,): 1000.0}
        launches_take(engine, took_us)
        parts, before = list[int](), 0
        for turn in range(200):
            prog.add((4096,), None, x, y, 1)
            parts.append(engine.parts - before)
            before = engine.parts
            now_us += period_us if parts[-1] else 1000.0
            while len(engine.table) > 0:
                engine.pump()
            now_us += host_us if parts[-1] else 0.0
            if turn % 4 == 3:
                rt.finish()
                now_us += pause_us if parts[-1] else 0.0
                rt.finish()  # in case that something is left from the pause
        assert 2 in parts
        assert parts[-1] == (2 if stays else 0)
        assert stays or parts.count(2) < 80
        assert y.get()[0] == 200


@pytest.mark.parametrize("on_each_us", [400.0, 700.0])
def test_of_ways_that_the_model_finds_alike_the_clock_chooses(
    device: cl.Device, on_each_us: float
) -> None:
    """The short launch at the end is spread on the model. By the clock it may be faster if each
    device makes all of it."""
    now_us = 0.0
    with acs.Runtime(devices=team(device, 2)) as rt:
        engine, prog = engine_of(rt), rt.build(ADD)
        engine.step_plans.limits = LIMITS._replace(whole_us=0.0, part_us=0.0)
        x, y, z = rt.array(np.ones(4096), "f4"), rt.zeros(4096), rt.zeros(512)
        engine.now_us = lambda: now_us
        took_us = {(4096,): 1000.0, (2048,): 500.0, (512,): 40.0, (256,): 20.0}
        launches_take(engine, took_us)
        ways, spread, each = list[tuple[int, int]](), 0, 0
        for _ in range(300):
            prog.add((4096,), None, x, y, 1)
            prog.add((512,), None, x[:512], z, 1)
            ways.append((engine.parts - spread, engine.repeated - each))
            spread, each = engine.parts, engine.repeated
            now_us += {(0, 0): 1000.0, (2, 1): on_each_us}.get(ways[-1], 600.0)
            rt.finish()
        assert (4, 0) in ways
        assert set(ways[-100:]) == {(2, 1) if on_each_us < 600 else (4, 0)}
        assert y.get()[0] == z.get()[0] == 300


@pytest.mark.parametrize(("ms_per_mib", "at_most"), [(0.0, 60), (20.0, 60), (4000.0, 1200)])
def test_a_step_stays_at_home_until_memory_elsewhere_would_have_paid(
    device: cl.Device, ms_per_mib: float, at_most: int
) -> None:
    now_us = 0.0
    with acs.Runtime(devices=team(device, 2)) as rt:
        engine, prog = engine_of(rt), rt.build(ADD)
        n = 1 << 18
        x, y = rt.array(np.ones(n), "f4"), rt.zeros(n)
        engine.now_us = lambda: now_us
        took_us = {(n,): 16e3}
        launches_take(engine, took_us, 8e3)
        engine.placer.ask_links()
        for store in engine.store.stores:
            store.us_per_byte = ms_per_mib * 1e3 / (1 << 20)
        turns = 0
        while not engine.parts:
            prog.add((n,), None, x, y, 1)
            now_us += 16e3
            rt.finish()
            turns += 1
            assert turns <= at_most
        pays_after = 2 * ms_per_mib / 8  # for two arrays, with 8 ms gained by each step
        assert turns >= pays_after
        assert y.get()[0] == turns


def test_a_step_that_goes_home_takes_its_short_launches_along(device: cl.Device) -> None:
    """They were spread with the long one, although they have no place of their own at home."""
    now_us = 0.0
    with acs.Runtime(devices=team(device, 2)) as rt:
        engine, prog = engine_of(rt), rt.build(ADD)
        engine.step_plans.limits = LIMITS._replace(whole_us=0.0, part_us=0.0)
        x, y, z = rt.array(np.ones(4096), "f4"), rt.zeros(4096), rt.zeros(512)
        engine.now_us = lambda: now_us
        took_us = {(4096,): 1000.0, (2048,): 500.0, (512,): 40.0, (256,): 20.0}
        launches_take(engine, took_us)
        spread, before, bytes_before = list[int](), 0, 0
        for _ in range(300):
            prog.add((4096,), None, x, y, 1)
            prog.add((512,), None, x[:512], z, 1)
            spread.append(engine.parts + 2 * engine.repeated - before)
            before = engine.parts + 2 * engine.repeated
            now_us += 2000.0 if spread[-1] else 1000.0
            bytes_before = moved(engine) if len(spread) < 250 else bytes_before
            rt.finish()
        assert max(spread) == 4
        assert spread[-50:] == [0] * 50
        assert moved(engine) == bytes_before
        assert y.get()[0] == z.get()[0] == 300


@pytest.mark.parametrize("grows_at", [0, 20, 60, 100])
def test_a_launch_that_becomes_longer_leaves_its_step_as_it_is(
    device: cl.Device, grows_at: int
) -> None:
    """It is too short for a plan at first. Later it is not, and begins the same step elsewhere."""
    now_us = 0.0
    with acs.Runtime(devices=team(device, 2)) as rt:
        engine, prog = engine_of(rt), rt.build(ADD)
        x, y, z = rt.array(np.ones(4096), "f4"), rt.zeros(4096), rt.zeros(64)
        engine.now_us = lambda: now_us
        took_us: dict[Any, float] = {(4096,): 1000.0, (2048,): 500.0, (64,): 10.0}
        launches_take(engine, took_us)
        parts, before = list[int](), 0
        for turn in range(300):
            if turn == grows_at:
                took_us[64,] = 150.0
            prog.add((4096,), None, x, y, 1)
            prog.add((64,), None, y[:64], z, 1)
            parts.append(engine.parts - before)
            before = engine.parts
            now_us += 600.0 if parts[-1] else 1000.0
            while len(engine.table) > 0:
                engine.pump()
            if turn % 4 == 3:
                rt.finish()
        assert len(set(parts[-100:])) == 1
        # a GPU may give a launch that was long from the begin a part of the step of its own
        assert parts[-1] == 2 or (
            parts[-1] == 3 and not grows_at and not device.type & cl.device_type.CPU
        )
        assert y.get()[0] == 300


@pytest.mark.parametrize(("part_us", "is_spread"), [(500.0, True), (1000.0, False)])
def test_a_launch_whose_parts_take_as_long_stays_whole(
    device: cl.Device, part_us: float, is_spread: bool
) -> None:
    with acs.Runtime(devices=team(device, 2)) as rt:
        engine, prog = engine_of(rt), rt.build(ADD)
        x, y = rt.array(np.ones(256), "f4"), rt.zeros(256)
        took_us = {(256,): 1000.0}
        launches_take(engine, took_us, part_us)
        for _ in range(60):
            prog.add((256,), None, x, y, 1)
            rt.finish()
        assert (engine.parts > 0) == is_spread
        assert y.get()[0] == 60


def test_a_step_with_a_new_array_is_planned_anew(device: cl.Device) -> None:
    with acs.Runtime(devices=team(device, 2)) as rt:
        engine, prog = engine_of(rt), rt.build(ADD)
        engine.step_plans.limits = Limits(whole_us=0.0, part_us=0.0, keeps=1e9, shortest_us=0.0)
        took_us = {(256,): 1000.0}
        launches_take(engine, took_us)
        x = rt.array(np.ones(256), "f4")
        for steps in (5, 60, 60):  # the first one ends before it is known where it runs best
            y, before = rt.zeros(256), engine.parts
            for _ in range(steps):
                prog.add((256,), None, x, y, 1)
                rt.finish()
            assert (engine.parts > before) == (steps == 60)
            assert y.get().tolist() == [steps] * 256


def test_a_program_that_frees_an_array_each_step_is_not_watched_for_ever(
    device: cl.Device,
) -> None:
    with acs.Runtime(devices=team(device, 2)) as rt:
        engine, prog = engine_of(rt), rt.build(ADD)
        engine.times.of = lambda key: (1000.0,) * 2  # type: ignore[method-assign]
        x, watched = rt.array(np.ones(64), "f4"), list[bool]()
        for _ in range(4 * MOST_SEEN // 8):
            y = rt.zeros(64)
            for k in range(8):
                prog.add((64,), None, x, y, k)
            watched.append(engine.step_plans.is_watching)
        assert any(watched)
        assert not watched[-1]
        assert y.get().tolist() == [sum(range(8))] * 64


# What kernels of `device_programs` take on an H200.
TOOK_US = {
    "square": 500,
    "differences": 1050,
    "total": 20,
    "jacobi": 940,
    "times": 2000,
    "dots": 12,
    "ratio": 5,
    "add": 6,
    "scale_and_add": 6,
    "divide": 10,
    "fill": 1000,
    "price": 1170,
}


@pytest.mark.parametrize("many", [2, 4])
@pytest.mark.parametrize(
    ("name", "spread", "repeats"),
    [
        ("vec", 3, False),  # both squares and their differences
        ("conjugate_gradients", 1, True),  # each device adds up the sums of all
        ("sparse", 1, True),
        ("jacobi", 1, False),
        ("black_scholes", 0, False),  # whole sets are on each device
    ],
)
def test_a_program_comes_to_rest_where_it_runs_best(
    device: cl.Device, name: str, spread: int, repeats: bool, many: int
) -> None:
    with acs.Runtime(devices=team(device, many)) as rt:
        engine, scale, whole = engine_of(rt), 0.0005, dict[str, int]()
        # the clock knows this device only, and it is about the devices, not the host
        engine.step_plans.limits = Limits(
            whole_us=0.0, part_us=0.0, keeps=1e9, near=0.0, shortest_us=0.0
        )
        if name == "black_scholes":  # its kernels are long
            scale /= 5
        step, result = device_programs.PROGRAMS[name](rt, scale)

        def took_us(key: Any) -> tuple[float | None, ...]:
            if not key:
                return (None,) * many
            items = int(np.prod(key[1]))
            whole[key[0]] = max(items, whole.get(key[0], 0))
            return (TOOK_US[key[0]] * items / whole[key[0]],) * many

        engine.times.of = took_us  # type: ignore[method-assign]
        step()
        for row in engine.team.links:
            row[:] = [Link(22.0, 42_000.0 * scale)] * many
        steps = 1
        for _ in range(12):
            before = engine.parts
            for _ in range(24):
                step()
            rt.finish()
            steps += 24
            if spread and engine.parts - before >= 24 * spread * many:
                break
        parts, bytes_moved = list[int](), list[int]()
        on_each, repeated = list(engine.placed_on), engine.repeated
        for _ in range(3):
            before, moved_before = engine.parts, moved(engine)
            for _ in range(4):
                step()
            rt.finish()
            steps += 4
            parts.append(engine.parts - before)
            bytes_moved.append(moved(engine) - moved_before)
        assert min(parts) >= 4 * spread * many  # borders may come on top
        assert len(set(bytes_moved)) == 1  # the same each time: no array goes to and fro
        on_each = [now - then for now, then in zip(engine.placed_on, on_each, strict=True)]
        assert min(on_each) >= 12 * max(1, 2 * (not spread))
        assert (engine.repeated > repeated) == repeats
        with acs.Runtime(device) as alone:
            same, expected = device_programs.PROGRAMS[name](alone, scale)
            for _ in range(steps):
                same()
            np.testing.assert_array_equal(result(), expected())


@pytest.mark.parametrize(
    ("body", "repeats"),
    [
        ("y[i] = x[i] + 1;", True),
        ("y[i] += x[i];", True),
        ("atomic_add((global int *)y, i);", True),
        ("y[i] = atomic_inc((global int *)x);", False),  # each item gets another number
        ('if (!i) printf("once\\n"); y[i] = x[i];', False),
        ("y[i] = x[(int)x[i]];", True),
        ("((global float *)(ulong)y)[i] = x[i];", False),  # nobody knows what it does
    ],
)
def test_what_each_device_may_make(device: cl.Device, body: str, repeats: bool) -> None:
    source = (
        f"kernel void k(global float *x, global float *y) {{ int i = get_global_id(0); {body} }}"
    )
    seen = list[Known]()
    with acs.Runtime(devices=team(device, 2)) as rt:
        engine = engine_of(rt)

        def device_of(known: Known, *times: float | None) -> int | None:
            seen.append(known)
            return ON_EACH if known.repeats else None

        engine.step_plans.may_cut = lambda known: True  # type: ignore[method-assign]
        engine.step_plans.device_of = device_of  # type: ignore[method-assign]
        x, y = rt.zeros(64), rt.zeros(64)
        handle = rt.build(source).k((64,), None, x, y)
        handle.wait()
        kernel = next(one for one in seen if one.command.name == "k")
        assert kernel.repeats == repeats
        assert engine.repeated == repeats
        assert ("each device makes it" in str(rt.explain(handle))) == repeats
        spans = handle.access.writes
        assert engine.model.coherence.is_there(spans, 1) == repeats
        assert engine.model.coherence.is_there(spans, 0)


def moved(engine: SeveralEngine) -> int:
    """How many bytes were copied between devices."""
    return sum(nbytes for row in engine.copies.moved for _, nbytes in row)


def test_the_benchmark_compares_results_of_one_and_of_several(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert (
        devices.main(["--devices", "0", "0", "--scale", "0.00001", "--steps", "4", "--spread"]) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(devices.PROGRAMS)
    assert all("copies" in line for line in lines)


def test_the_document_of_the_benchmark_has_the_programs_that_were_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    small = ["--devices", "0", "0", "--scale", "0.00001", "--steps", "2", "--warm", "0"]
    out = tmp_path / "devices.json"
    assert devices.main([*small, "--only", "jacobi", "vec", "--out", str(out)]) == 0
    found = json.loads(out.read_text("utf-8"))["programs"]
    assert [one["program"] for one in found] == ["jacobi", "vec"]
    with pytest.raises(SystemExit):
        devices.main(["--only", "jacoby", "--out", str(out)])
    assert "there are: jacobi" in capsys.readouterr().err


# ---- wrong use -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"devices": "both"}, 'expected "all", or a list'),
        ({"devices": []}, 'expected "all", or a list'),
        ({"devices": 2}, 'expected "all", or a list'),
        ({"devices": b"all"}, 'expected "all", or a list'),
        ({"devices": [0, 99]}, r"devices\[1\]: device index 99 is out of range"),
        ({"devices": [0, True]}, r"devices\[1\]: a device is given as"),
        ({"devices": [0] * 17}, "at most 16"),
        ({"devices": [0, 0], "placement": "best"}, "unknown placement 'best'"),
        ({"placement": "round_robin"}, "placement= is for several devices; name them in devices="),
        ({"spread": True}, "spread= is for several devices"),
        ({"devices": [0, 0], "spread": "no"}, "spread='no': expected True, False, or None"),
        ({"devices": [0, 0], "device": 0}, "device= takes one device"),
        ({"devices": [0, 0], "backend": "device"}, "backend='device' takes one device"),
    ],
)
def test_wrong_devices_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(acs.UsageError, match=message):
        acs.Runtime(**options)


def test_an_array_on_several_devices_has_no_address(two: acs.Runtime) -> None:
    x = two.zeros(10)
    with pytest.raises(acs.UsageError, match="several devices"):
        _ = x.data


def test_a_copy_that_the_core_makes_heals_its_target(device: cl.Device) -> None:
    """A copy of a view with gaps is a kernel, and overwrites all of its target."""

    def fails(y: HostArray) -> None:
        raise ValueError("planted")

    with acs.Runtime(devices=[device, device]) as rt:
        x, y = rt.array(np.arange(16), "u4"), rt.zeros(8, "u4")
        for _ in range(
            4 * RARELY
        ):  # most of these launches are not timed, so that the core makes them
            y.copy_from(x[::2])
        rt.finish()
        for _ in range(8):
            task = rt.call(fails, writes=y)
            with pytest.raises(acs.PoisonedError):
                task.wait()
            y.copy_from(x[::2])
            assert y.get().tolist() == list(range(0, 16, 2))
