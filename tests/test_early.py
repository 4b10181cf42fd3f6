"""Recorded launches that are cut into bands because a part of them may begin early."""

from __future__ import annotations

import io
import os
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.access.cuts import TILES
from acs_cl.records import Access, Span
from acs_cl.scheduler.bands import Band, Cuts
from acs_cl.scheduler.early import LEAST_GAIN, cut_early
from acs_cl.scheduler.task import Task

PARTS, ITEMS = 16, 256
N = PARTS * ITEMS
PROGRAMS = max(6, int(os.environ.get("ACS_CL_FUZZ", "300")) // 50)

SOURCE = """
kernel void grow(global uint *x, uint a) { int i = get_global_id(0); x[i] = x[i] * 3 + a; }
kernel void keep(global const uint *x, global uint *y, uint a)
{ int i = get_global_id(0); y[i] = y[i] * 5 + x[i] + a; }
kernel void turn(global const uint *x, global uint *y, uint n)
{ int i = get_global_id(0); y[i] = x[n - 1 - i]; }
"""

Made = tuple[acs.Runtime, acs.Program]


@pytest.fixture(scope="module")
def made(device: cl.Device) -> Iterator[Made]:
    with acs.Runtime(device, backend="device") as rt:
        yield rt, rt.build(SOURCE)


def recorded(made: Made, bands: object = None) -> tuple[acs.Graph, acs.Array, acs.Array, Any]:
    """Record chains of different lengths, a launch that reads what all of them made, and chains
    again, of which the short ones come where the long ones were."""
    rt, prog = made
    said = {} if bands is None else {"bands": bands}
    x, y = rt.array(np.arange(N), "u4"), rt.zeros(N, "u4")
    with rt.record() as graph:
        for turn in range(2):
            for part in range(PARTS):
                for step in range(part + 1 if turn else PARTS - part):
                    prog.grow((ITEMS,), None, x[part * ITEMS : (part + 1) * ITEMS], step)
            if not turn:
                handle = prog.keep((N,), None, x, y, 7, **said)
    return graph, x, y, handle


def expected(x: Any, y: Any, a: int = 7) -> tuple[Any, Any]:
    """Return what a replay makes of these values."""
    x, y = x.copy(), y.copy()
    for turn in range(2):
        for part in range(PARTS):
            own = x[part * ITEMS : (part + 1) * ITEMS]
            for step in range(part + 1 if turn else PARTS - part):
                own[:] = own * np.uint32(3) + np.uint32(step)
        if not turn:
            y[:] = y * np.uint32(5) + x + np.uint32(a)
    return x, y


def bands_of(rt: acs.Runtime, handle: acs.Handle) -> str:
    """Return what an explanation says of bands, without the bands themselves."""
    lines = str(rt.explain(handle)).splitlines()
    return next((line for line in lines if line.startswith("bands")), "")


def test_a_launch_that_waits_for_much_is_cut(made: Made) -> None:
    rt, _ = made
    graph, x, y, handle = recorded(made)
    assert bands_of(rt, handle).endswith("since a part of it may begin early")
    assert "cut into bands: 1" in str(graph.explain())
    graph.verify()
    ours, theirs = x.get(), y.get()
    for _ in range(3):
        graph.replay()
        ours, theirs = expected(ours, theirs)
        assert (x.get() == ours).all()
        assert (y.get() == theirs).all()


@pytest.mark.parametrize("bands", ["off", 3])
def test_what_a_call_says_holds(made: Made, bands: object) -> None:
    rt, _ = made
    graph, x, y, handle = recorded(made, bands)
    assert bands_of(rt, handle) == ("bands: 3" if bands == 3 else "")
    ours, theirs = expected(x.get(), y.get())
    graph.replay()
    assert (x.get() == ours).all()
    assert (y.get() == theirs).all()


def test_a_runtime_can_say_that_nothing_is_cut(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device", bands="off") as rt:
        graph, _, _, handle = recorded((rt, rt.build(SOURCE)))
        assert not bands_of(rt, handle)
        assert "bands" not in str(graph.explain())


def test_launches_stay_cut_with_other_numbers_and_arrays(made: Made) -> None:
    rt, _ = made
    graph, x, y, handle = recorded(made)
    graph.update(handle, a=11)
    z = rt.zeros(N, "u4")
    graph.swap(y, z)
    assert bands_of(rt, handle).endswith("since a part of it may begin early")
    ours, theirs = expected(x.get(), z.get(), 11)
    graph.replay()
    assert (x.get() == ours).all()
    assert (z.get() == theirs).all()
    assert not y.get().any()
    graph.verify()


def test_a_graph_from_a_file_is_cut_as_well(made: Made) -> None:
    rt, _ = made
    graph, x, y, _ = recorded(made)
    file = io.BytesIO()
    graph.save(file, x=x, y=y)
    file.seek(0)
    loaded = rt.load(file)
    assert "cut into bands: 1" in str(loaded.explain())


def test_a_launch_of_which_every_part_waits_as_long_stays_whole(made: Made) -> None:
    rt, prog = made
    x, y = rt.array(np.arange(N), "u4"), rt.zeros(N, "u4")
    with rt.record() as graph:
        for step in range(40):
            for part in range(PARTS):
                prog.grow((ITEMS,), None, x[part * ITEMS : (part + 1) * ITEMS], step)
            prog.keep((N,), None, x, y, 7)
    assert "bands" not in str(graph.explain())


def test_random_programs_give_what_whole_launches_give(device: cl.Device, made: Made) -> None:
    with acs.Runtime(device, backend="serial") as other:
        programs = {"device": made, "serial": (other, other.build(SOURCE))}
        cut = 0
        for seed in range(PROGRAMS):
            found = {}
            for name, (rt, prog) in programs.items():
                rng = random.Random(seed)
                arrays = [rt.array(np.arange(N) * (at + 1), "u4") for at in range(3)]
                with rt.record() as graph:
                    handles = [any_launch(rng, prog, arrays, at // 50) for at in range(150)]
                for again in range(2):
                    graph.replay()
                    graph.update(handles[rng.randrange(len(handles))], a=again)
                graph.replay()
                found[name] = [array.get() for array in arrays]
                if name == "device":
                    cut += "cut into bands" in str(graph.explain())
                    graph.verify()
            assert all(map(np.array_equal, *found.values())), seed
        assert cut > PROGRAMS // 4


def any_launch(
    rng: random.Random, prog: acs.Program, arrays: list[acs.Array], phase: int
) -> acs.Handle:
    """Launch on one part of an array, most often on one of few, or seldom on two whole arrays."""
    if rng.random() < 0.02:
        x, y = rng.sample(arrays, 2)
        return prog.keep((N,), None, x, y, rng.randrange(9))
    part = (5 * phase + int(rng.expovariate(0.7))) % PARTS
    array = arrays[phase % 2 if rng.random() < 0.9 else 2]
    return prog.grow((ITEMS,), None, array[part * ITEMS : (part + 1) * ITEMS], rng.randrange(9))


# ---- the choice --------------------------------------------------------------------------------


def span(start: int, end: int) -> Span:
    return Span(1, start, end - start, 1, end - start)


def depth_of(accesses: list[Access], tasks: list[Task]) -> int:
    """Return the length of the longest chain of tasks, found by comparing each with each."""
    before: list[tuple[Access, int]] = []
    for access, task in zip(accesses, tasks, strict=True):
        own = []
        for touched in [band.access for band in task.cuts.bands] or [access]:
            above = [level for other, level in before if meet(touched, other)]
            own.append((touched, 1 + max(above, default=0)))
        before += own
    return max(level for _, level in before)


def meet(one: Access, other: Access) -> bool:
    def overlap(first: tuple[Span, ...], second: tuple[Span, ...]) -> bool:
        return any(a.start < b.end and b.start < a.end for a in first for b in second)

    return (
        overlap(one.writes, other.writes)
        or overlap(one.writes, other.reads)
        or overlap(one.reads, other.writes)
    )


def test_a_cut_is_kept_only_if_the_longest_chain_becomes_shorter() -> None:
    cut = 0
    for seed in range(80):
        rng = random.Random(seed)
        accesses, tasks = [], []
        for _ in range(120):
            many = rng.choice((1, 1, 1, 1, 1, 16))
            first = 0 if many == 16 else min(15, int(rng.expovariate(0.5)))
            touched = (span(first * 8, (first + many) * 8),)
            written = touched if rng.random() < 0.7 else ()
            accesses.append(Access(touched, written, ()))
            tasks.append(Task(b"", b"", None, many))

        def in_bands(at: int, many: int, accesses: list[Access] = accesses) -> Task | None:
            if at % 7 == 0 or many != TILES:
                return None
            reads, writes, _ = accesses[at]
            parts = [(span(8 * n, 8 * n + 8),) for n in range(16)]
            own = [Access(one if reads else (), one if writes else (), ()) for one in parts]
            bands = tuple(Band(n, 1, one) for n, one in enumerate(own))
            return Task(b"", b"", None, 16, Cuts(bands, ""))

        found = cut_early(accesses, tasks, in_bands, 0)
        assert len(found) == len(tasks)
        if found != tasks:
            cut += 1
            assert depth_of(accesses, tasks) >= LEAST_GAIN * depth_of(accesses, found)
        for at, task in enumerate(found):
            assert task == tasks[at] or (at % 7 and tasks[at].tiles == 16)
    assert cut > 10
