"""Bands that run: recorded launches in parts, on the scheduler of the device."""

from __future__ import annotations

import io
import os
import random
from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from inside import Scheduler, marked
from random_bands import Machine, check

import acs_cl as acs
from acs_cl.access.cuts import Cut
from acs_cl.devices.pocl import mixes_machine_code
from acs_cl.launch.commands import KernelCommand
from acs_cl.launch.parts import parts_of
from acs_cl.records import Access
from acs_cl.scheduler import layout
from acs_cl.scheduler.segment import Segment

PROGRAMS = max(12, int(os.environ.get("ACS_CL_FUZZ", "300")) // 24)


@pytest.fixture(scope="module", params=["device", "lanes"])
def machine(request: pytest.FixtureRequest, device: cl.Device) -> Iterator[Machine]:
    made = Machine(device, backend=request.param)
    made.prebuild()
    yield made
    made.rt.close()


@pytest.fixture(scope="module")
def oracle(device: cl.Device) -> Iterator[Machine]:
    made = Machine(device, backend="serial")
    yield made
    made.rt.close()


def test_random_programs_in_bands_give_what_whole_launches_give(
    machine: Machine, oracle: Machine
) -> None:
    cut = launches = 0
    for seed in range(PROGRAMS):
        counts = check(machine, oracle, seed)
        cut, launches = cut + counts["cut"], launches + counts["launches"]
    assert cut > launches // 3, (cut, launches)


@pytest.mark.parametrize(
    ("platform", "driver", "mixes"),
    [
        ("Portable Computing Language", "3.0-rc2", True),
        ("Portable Computing Language", "5.0", True),
        ("Portable Computing Language", "6.0", False),
        ("Portable Computing Language", "main", True),
        ("NVIDIA CUDA", "580.159.04", False),
    ],
)
def test_bands_have_machine_code_of_their_own_where_the_driver_mixes_it(
    platform: str, driver: str, mixes: bool
) -> None:
    """The whole launch and the first band have no offset, the others have one."""
    named = SimpleNamespace(name=platform)
    assert mixes_machine_code(SimpleNamespace(platform=named, driver_version=driver)) is mixes


def test_the_first_band_is_launched_with_the_kernel_itself() -> None:
    """The others have an offset, and perhaps a kernel that knows of it."""
    nothing = Access((), ())
    itself, other = object(), object()
    cut = Cut(4, lambda groups, local: nothing, "", ("put",), lambda *has: other, {})
    whole = KernelCommand("put", itself, (64,), (16,), (), (), None, cut)
    found = parts_of(whole)
    assert not isinstance(found, str)
    assert [(one.command.kernel, one.command.offset) for one in found] == [
        (itself, (0,)),
        (other, (16,)),
        (other, (32,)),
        (other, (48,)),
    ]


@pytest.mark.parametrize("backend", ["lanes", "device"])
def test_launches_on_lanes_have_their_bands_there(device: cl.Device, backend: str) -> None:
    """Recorded or not, and with ids of groups that are those of the whole launch."""
    n, values = 1024, np.arange(1024, dtype="u4")
    with acs.Runtime(device, backend=backend) as rt:
        prog = rt.build(LANES, macros={"MUCH": int(device.local_mem_size) * 5 // 32})
        x, y, z = rt.array(values), rt.zeros(n, "u4"), rt.zeros(n, "u4")
        with rt.record() as graph:
            first = prog.turned((n,), (16,), x, y, 7, bands=4)
            second = prog.turned((n,), (16,), y, z, 8, bands=acs.Row(32))
            prog.turned((n,), (16,), y, z, 9, bands=acs.Row(32))
        graph.replay().wait()
        expected = turned(values, 7)
        np.testing.assert_array_equal(z.get(), turned(expected, 9))
        lines = bands_of(rt.explain(second))
        assert [line.split(";")[0] for line in lines] == [
            f"  band {at}, a launch on a lane: waits for bands {2 * at} to {2 * at + 1} of launch 1"
            for at in range(2)
        ]
        graph.update(first, a=3)
        graph.swap(z, y2 := rt.zeros(n, "u4"))
        graph.replay().wait()
        np.testing.assert_array_equal(y2.get(), turned(turned(values, 3), 9))
        handle = prog.turned((n,), (16,), x, y, 5, bands=4)
        assert f"bands: 4, launches {handle.number - 3} to {handle.number}" in str(
            rt.explain(handle)
        )
        handle.wait()
        np.testing.assert_array_equal(y.get(), turned(values, 5))
        why = {
            "it calls get_global_size": prog.total((n,), (16,), x, z, bands=4),
            "it calls barrier, and no local size": prog.turned((n,), None, x, z, 1, bands=4),
            "nobody has tuned it": prog.turned((n,), (16,), x, z, 1, bands="auto"),
            "it has an offset, and asks": prog.turned(
                (n - 16,), (16,), x, z, 1, bands=4, offset=(16,)
            ),
        }
        for reason, handle in why.items():
            if backend == "lanes":
                assert f"bands: off, since {reason}" in str(rt.explain(handle))


def test_a_launch_in_parts_fails_as_a_whole(device: cl.Device) -> None:
    """Where bytes of it are poisoned it is launched whole; what it should have written is lost."""
    with acs.Runtime(device, backend="lanes") as rt:
        prog = rt.build(SWEEP)
        x, y = rt.zeros(N, "f4"), rt.zeros(N, "f4")
        with rt.record() as graph:
            prog.sweep((N,), None, x, y, N, bands=4)
        with pytest.raises(acs.AcsError, match="division by zero"):
            rt.call(lambda _: 1 / 0, writes=[x[:4]]).wait()
        handle = prog.sweep((N,), None, x, y, N, bands=4)
        assert "bands: off, since bytes of it are poisoned" in str(rt.explain(handle))
        for wrong in (handle, graph.replay()):
            with pytest.raises(acs.AcsError):
                wrong.wait()
        with pytest.raises(acs.AcsError):
            y[3000:].get()


def test_a_part_that_the_driver_refuses_is_the_failure_of_the_launch(device: cl.Device) -> None:
    """Those before it have run by then, so that it cannot be as if nothing had been."""
    with acs.Runtime(device, backend="lanes") as rt:
        prog = rt.build(SWEEP)
        x, y = rt.zeros(N, "f4"), rt.zeros(N, "f4")
        backend, refused = rt.engine.backend, iter((False, False, True, False))
        submit = backend.submit

        def refuse(*launch: Any) -> None:
            if next(refused):
                raise cl.MemoryError("refused for the test")
            submit(*launch)

        backend.submit = refuse  # type: ignore[method-assign]
        handle = prog.sweep((N,), None, x, y, N, bands=4)
        backend.submit = submit  # type: ignore[method-assign]
        with pytest.raises(acs.AcsError, match="refused for the test"):
            handle.wait()
        with pytest.raises(acs.PoisonedError):
            y.get()
        assert not y[: N // 2].get().any()


def turned(values: Any, a: int) -> Any:
    """What the kernel makes."""
    groups = values.reshape(-1, 16)
    return (groups[:, ::-1] * 3 + a * np.arange(len(groups))[:, None]).astype("u4").ravel()


LANES = """
kernel void turned(global const uint *x, global uint *y, uint a)
{ local uint part[MUCH]; uint g = get_group_id(0), l = get_local_id(0);
  part[l] = x[g * 16u + l]; barrier(CLK_LOCAL_MEM_FENCE);
  y[g * 16u + l] = part[(15u - l) & 15u] * 3u + a * g; }
kernel void total(global const uint *x, global uint *y)
{ uint i = get_global_id(0); y[i] = x[i] + (uint)get_global_size(0); }
"""


def test_a_program_that_has_a_name_of_ours_stays_whole(device: cl.Device) -> None:
    with acs.Runtime(device, backend="lanes") as rt:
        prog = rt.build(
            "size_t acs_group_id(uint d) { return 2; }\n"
            "kernel void put(global uint *x) { uint i = get_global_id(0);\n"
            "  x[i] = get_group_id(0) + acs_group_id(0); }"
        )
        x = rt.zeros(8, "u4")
        handle = prog.put((8,), (4,), x, bands=2)
        assert "its version for parts does not build" in str(rt.explain(handle))
        assert x.get().tolist() == [2] * 4 + [3] * 4


def test_bands_of_a_launch_like_one_before_are_those(sweeps: Sweeps) -> None:
    rt, prog = sweeps
    x, y = rt.zeros(N, "f4"), rt.zeros(N, "f4")
    with rt.record() as graph:
        for n, bands in ((N, 4), (N, 4), (N - 1, 4), (N, 5)):
            prog.sweep((N,), None, x, y, n, bands=bands)
    (segment,) = graph.pieces
    assert isinstance(segment, Segment)
    first, *others = segment.cuts
    assert [cuts is first for cuts in others] == [True, False, False]


Sweeps = tuple[acs.Runtime, acs.Program]

SWEEP = """
kernel void sweep(global const float *x, global float *y, int n)
{ int i = get_global_id(0); if (i > 0 && i < n - 1) y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3; }
kernel void gather(global const int *at, global const float *x, global float *y)
{ int i = get_global_id(0); y[i] = x[at[i]]; }
kernel void scatter(global const int *at, global const float *x, global float *y)
{ int i = get_global_id(0); y[at[i]] = x[i]; }
kernel void down(global int *left) { if (get_global_id(0) == 0) *left -= 1; }
"""
N = 4096


def bands_of(told: object) -> list[str]:
    """What is told of each band of a launch."""
    return [line for line in str(told).splitlines() if line.startswith("  band ")]


@pytest.fixture(scope="module")
def sweeps(device: cl.Device) -> Iterator[Sweeps]:
    with acs.Runtime(device, backend="device") as rt:
        yield rt, rt.build(SWEEP)


def two_sweeps(rt: acs.Runtime, prog: acs.Program) -> tuple[acs.Graph, acs.Handle]:
    """There and back, in bands; the handle is of the second one."""
    x, y = rt.zeros(N, "f4"), rt.zeros(N, "f4")
    with rt.record() as graph:
        prog.sweep((N,), None, x, y, N, bands=4)
        handle = prog.sweep((N,), None, y, x, N, bands=4)
    return graph, handle


def test_a_band_of_a_sweep_waits_for_its_neighbours(sweeps: Sweeps) -> None:
    rt, prog = sweeps
    graph, handle = two_sweeps(rt, prog)
    told = rt.explain(handle)
    assert "bands: 4" in str(told)
    waits = [line.split(": waits for ")[1].split(" of ")[0] for line in bands_of(told)]
    assert waits == ["bands 0 to 1", "bands 0 to 2", "bands 1 to 3", "bands 2 to 3"]
    assert f"writes bytes 4..{N} of" in bands_of(told)[0]
    graph.verify()


def test_bands_that_need_all_of_another_launch_wait_for_one_task(sweeps: Sweeps) -> None:
    rt, prog = sweeps
    values = np.arange(N, dtype="f4")
    at, x, y = rt.array(np.arange(N)[::-1].copy(), "i4"), rt.array(values), rt.zeros(N, "f4")
    z = rt.zeros(N, "f4")
    with rt.record() as graph:
        prog.sweep((N,), None, x, y, N, bands=8)
        handle = prog.gather((N,), None, at, y, z, bands=8)
    (segment,) = graph.pieces
    assert len(segment.laid.launches) == 17  # type: ignore[union-attr]
    lines = bands_of(rt.explain(handle))
    assert len(lines) == 8
    assert all("waits for bands 0 to 7 of launch 1" in line for line in lines)
    graph.replay()
    want = values.copy()
    want[1:-1] = (values[:-2] + values[1:-1] + values[2:]) / 3
    want[[0, -1]] = 0
    np.testing.assert_allclose(z.get(), want[::-1], rtol=1e-6)


def test_what_cannot_be_cut_says_why(device: cl.Device, sweeps: Sweeps) -> None:
    rt, prog = sweeps
    at, x, y = rt.zeros(N, "i4"), rt.zeros(N, "f4"), rt.zeros(N, "f4")
    flag = rt.array([1], "i4")
    with rt.record() as graph:
        told = {
            "its bands write the same bytes": prog.scatter((N,), None, at, x, y, bands=4),
            "whether it runs": prog.sweep((N,), None, x, y, N, bands=4, when=flag),
            "reads= or writes=": prog.sweep((N,), None, x, y, N, bands=4, writes=[y]),
            "it has one tile": prog.sweep((64,), None, x, y, 64, bands="auto"),
            "it has one band": prog.sweep((1,), None, x, y, 1, bands=4),
        }
        plain = prog.sweep((N,), None, x, y, N)
    for reason, handle in told.items():
        assert f"bands: off, since {reason}" in str(rt.explain(handle)), rt.explain(handle)
    assert "bands" not in str(rt.explain(plain))
    graph.replay().wait()
    with acs.Runtime(device, backend="serial", bands=4) as other:
        prog = other.build(SWEEP)
        x, y = other.zeros(N, "f4"), other.zeros(N, "f4")
        with other.record() as graph:
            handle = prog.sweep((N,), None, x, y, N)
        assert "bands: off, since backend 'serial' runs one" in str(other.explain(handle))
        graph.close()
        with pytest.raises(
            acs.UsageError, match="bands='rows': expected 'early', 'auto', 'off', 'lanes' or 1"
        ):
            prog.sweep((N,), None, x, y, N, bands="rows")
        handle = prog.sweep((N,), None, x, y, N, bands=4)
        handle.wait()
        assert "bands: off, since backend 'serial' runs one" in str(other.explain(handle))
    said = "bands=0: expected 'early', 'auto', 'off', 'lanes' or 1"
    with pytest.raises(acs.UsageError, match=said):
        acs.Runtime(device, bands=0)


@pytest.mark.parametrize(("bands", "is_cut"), [("auto", False), (6, True), ("rows", True)])
def test_what_fills_a_gpu_is_cut_only_where_somebody_asked(
    device: cl.Device, bands: Any, is_cut: bool
) -> None:
    """A lane gives it all registers and groups that suit it. On a CPU bands gain beside lanes."""
    with acs.Runtime(device) as rt:
        scheduler = Scheduler(rt)
        if scheduler.policy is None:
            pytest.skip("auto uses the scheduler for all that it can")
        prog = rt.build(SWEEP)
        rt.prebuild(prog.sweep)
        groups = rt.stats()["scheduler"]["schedulers"][0]["resident_groups"]
        n = groups * 4096
        x, y = rt.zeros(n, "f4"), rt.zeros(n, "f4")
        if bands == "rows":  # at most some 200
            bands = acs.Row(max(1024, n // 200))
        for on_cpu in (True, False) if scheduler.policy.on_cpu else (False,):
            scheduler.policy.on_cpu = on_cpu
            with rt.record() as graph:
                for _ in range(24):
                    prog.sweep((n,), None, x, y, n, bands=bands)
                    handle = prog.sweep((n,), None, y, x, n, bands=bands)
            graph.replay().wait()
            assert bool(bands_of(rt.explain(handle))) == (on_cpu or is_cut)


def test_a_kernel_too_heavy_for_schedulers_has_its_bands_on_lanes(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device") as rt:
        prog = rt.build(
            """kernel void mirror(global const uint *x, global uint *y, uint a)
            { local uint part[HALF]; uint i = get_global_id(0);
              part[i % HALF] = x[i]; barrier(CLK_LOCAL_MEM_FENCE); y[i] = part[i % HALF] * 3u + a; }
            kernel void light(global uint *x, uint a) { x[get_global_id(0)] += a; }""",
            macros={"HALF": int(device.local_mem_size) * 5 // 32},
        )
        x, y = rt.array(np.arange(64, dtype="u4")), rt.zeros(64, "u4")
        for bands in ("off", "auto", 4):
            with rt.record() as graph:
                prog.mirror((64,), (1,), x, y, 1, bands=bands)
                handle = prog.mirror((64,), (1,), y, x, 2, bands=bands)
                prog.light((64,), None, x, 1)
            if bands == 4:
                graph.verify()
            graph.replay().wait()
            told = str(rt.explain(handle))
            assert told.count("a launch on a lane") == (4 if bands == 4 else 0), told
        assert not any("mirror" in one.facts.kernels for one in Scheduler(rt).built)
        wanted = np.arange(64, dtype="u4")
        for _ in range(3):
            wanted = (wanted * 3 + 1) * 3 + 2 + 1
        np.testing.assert_array_equal(x.get(), wanted.astype("u4"))


def test_bands_in_a_loop_on_the_device(sweeps: Sweeps) -> None:
    rt, prog = sweeps
    values = np.random.default_rng(3).random(N, "f4")
    found = []
    for bands in ("off", 5):
        x, y, left = rt.array(values), rt.array(values), rt.array([7], "i4")
        with rt.record() as graph:
            prog.sweep((N,), None, x, y, N, bands=bands)
            prog.sweep((N,), None, y, x, N, bands=bands)
            prog.down((1,), None, left)
        for again in range(2):
            left.set(np.array([7 + again], "i4"))
            assert graph.replay(while_=left, at_most=20).rounds == 7 + again
        assert "the device itself reads the word" in str(graph.explain())
        found.append(x.get())
    np.testing.assert_array_equal(found[0], found[1])


def test_a_wrong_edge_between_bands_is_found(sweeps: Sweeps) -> None:
    """By `verify`, which compares the words on the device with the bytes of each band."""
    graph, _ = two_sweeps(*sweeps)
    (segment,) = graph.pieces
    assert isinstance(segment, Segment)
    other = segment.laid.accesses[2]
    segment.laid.accesses[2] = other._replace(writes=segment.laid.accesses[0].writes)
    with pytest.raises(acs.errors.InternalError, match="nothing orders them"):
        graph.verify()
    segment.laid.accesses[2] = other
    graph.verify()


@pytest.mark.parametrize("bands", [4, "auto", acs.Row(1024)], ids=str)
def test_a_file_keeps_bands(sweeps: Sweeps, bands: Any) -> None:
    rt, prog = sweeps
    x, y = rt.zeros(N, "f4"), rt.zeros(N, "f4")
    with rt.record() as graph:
        prog.sweep((N,), None, x, y, N, bands=bands)
        handle = prog.sweep((N,), None, y, x, N, bands=bands)
    file = io.BytesIO()
    graph.save(file, x=x, y=y)
    file.seek(0)
    loaded = rt.load(file)
    explained = str(rt.explain(handle))
    assert bands_of(rt.explain(handle)) or (bands == "auto" and "groups to spare" in explained)
    assert str(rt.explain(loaded.handles[1])).count("  band ") == len(bands_of(rt.explain(handle)))


@pytest.mark.parametrize(
    ("company", "ran"),
    [
        (0, [1, 1, 0, 2, 2, 0]),  # it keeps what it made ready
        (2, [1, 1, 1, 2, 0, 0]),  # it gives that away once one other waits, not two
    ],
)
def test_a_group_gives_bands_away_where_fewer_wait_than_groups_run(
    device: cl.Device, company: int, ran: list[int]
) -> None:
    """One group runs four bands of two launches of three."""
    with acs.Runtime(backend="device") as rt:
        prog = rt.build(
            """kernel void first(global int *x) { x[get_global_id(0)] = 1; }
            kernel void second(global const int *x, global int *y)
            { int i = get_global_id(0); y[i] = x[i] + 1; }"""
        )
        scheduler = Scheduler(rt)
        n = 3 * 256
        x, y = rt.zeros(n, "i4"), rt.zeros(n, "i4")
        with rt.record() as graph:
            prog.first((n,), (256,), x, bands=3)
            prog.second((n,), (256,), x, y, bands=3)
        rt.finish()
        with scheduler.cut_short(4, company), pytest.raises(acs.AcsError, match="left 2 tasks"):
            graph.replay().wait()
        queue = cl.CommandQueue(rt.context)
        found = np.empty((2, n), "i4")
        for row, array in zip(found, (x, y), strict=True):
            cl.enqueue_copy(queue, row, array.data)
        queue.finish()
        assert found.reshape(6, 256).max(axis=1).tolist() == ran


def mark_as_alike(image: layout.Image) -> None:
    """Say of each fused task that its heir is a like one. Builds run an image of no tasks."""
    if not image.tasks:
        return
    end = layout.HEADER_WORDS + image.tasks * layout.RECORD_WORDS
    bodies = image.words[layout.HEADER_WORDS : end : layout.RECORD_WORDS]
    fused, alike = bodies & np.uint32(layout.FUSED), bodies & np.uint32(layout.ALIKE)
    assert 0 < np.count_nonzero(alike) < np.count_nonzero(fused)
    bodies |= fused * np.uint32(layout.ALIKE // layout.FUSED)


@pytest.mark.parametrize("wrong", [False, True], ids=["", "all are marked as alike"])
def test_chains_of_tasks_that_differ_in_anything_or_nothing(device: cl.Device, wrong: bool) -> None:
    """A group goes through such a chain by itself; what it keeps of one task must hold for the
    next. It looks whether that is so even if the record says so."""
    seen: list[layout.Image] = []
    marks = marked(mark_as_alike, seen) if wrong else nullcontext()
    with acs.Runtime(backend="device") as rt, marks:
        prog = rt.build(
            """kernel void add(global uint *x, uint a) { x[get_global_id(0)] += a; }
            kernel void mul(global uint *x, uint a) { x[get_global_id(0)] *= 2 * a + 1; }
            kernel void big(global uint *x, ulong8 a) { x[get_global_id(0)] += a.s1 ^ a.s7; }
            kernel void wide(global uint *x, uint a)
            { x[get_global_id(1) * get_global_size(0) + get_global_id(0)] ^= a; }
            kernel void take(global const uint *x, global uint *y, uint a)
            { y[get_global_id(0)] += x[get_global_id(0)] ^ a; }"""
        )
        rng = random.Random(7)
        x, y = rt.zeros(256, "u4"), rt.zeros(256, "u4")
        with rt.record() as graph:
            wanted, beside = np.zeros(256, "u4"), np.zeros(256, "u4")
            for step in range(400):
                name = rng.choice(("add", "add", "add", "mul", "mul", "big", "wide", "take"))
                n = rng.choice((256, 256, 256, 128))
                kernel, some = getattr(prog, name), wanted[:n]
                if name == "big":
                    kernel((n,), (64,), x, np.arange(step, step + 8, dtype="u8"))
                    some += np.uint32((step + 1) ^ (step + 7))
                elif name == "wide":
                    kernel((16, n // 16), (16, 4), x, step)
                    some ^= np.uint32(step)
                elif name == "take":
                    kernel((n,), (64,), x, y, step)
                    beside[:n] += some ^ np.uint32(step)
                else:
                    kernel((n,), (64,), x, step)
                    some[:] = some + step if name == "add" else some * (2 * step + 1)
        if not wrong:
            graph.verify()
        graph.replay()
        assert [image.tasks for image in seen if image.tasks] == [400] * wrong
        np.testing.assert_array_equal(x.get(), wanted)
        np.testing.assert_array_equal(y.get(), beside)
