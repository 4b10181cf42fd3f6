"""Kernels that leave their arrays are named before they are launched, and no other kernel is."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from test_check import BACKENDS, make, options_of

import acs_cl as acs
from acs_cl.errors import CheckError, CheckWarning

SOURCE = """
constant int table[4] = {1, 2, 3, 4};
typedef struct { int a, b; float4 c; } record;
void put(global int *p, int at) { p[at] = 1; }
kernel void ahead(global int *x, int by) { x[(int)get_global_id(0) + by] = 7; }
kernel void anywhere(global int *x, ulong at) { x[at] = 7; }
kernel void back(global int *x) { x[99 - 2 * (int)get_global_id(0)] = 7; }
kernel void get(global const int *x, global int *y, int by)
{ int i = get_global_id(0); y[i] = x[i + by]; }
kernel void twice(global int *x, global int *y, int by)
{ int i = get_global_id(0); x[i] = 1; y[i + by] = 1; }
kernel void moved(global int *x, int by)
{ global int *p = x + by; p += get_global_id(0); *p++ = 1; }
kernel void helped(global int *x, int by) { put(x, get_global_id(0) + by); }
kernel void counted(global int *x, int by) { atomic_inc(&x[(int)get_global_id(0) + by]); }
kernel void fours(global int *x, int by) { vstore4((int4)(7), get_global_id(0) + by, x); }
kernel void scatter(global const int *at, global int *x) { x[at[get_global_id(0)]] = 7; }
kernel void plane(global int *x, int pitch)
{ x[get_global_id(1) * pitch + get_global_id(0)] = 7; }

kernel void guarded(global int *x, int n) { int i = get_global_id(0); if (i < n) x[i] = 7; }
kernel void early(global int *x, int n)
{ int i = get_global_id(0); if (i >= n) return; for (int k = i; k < n; k += n) x[k] = 7; }
kernel void chosen(global int *x, global const int *y, int n)
{ int i = get_global_id(0); int v = i < n ? y[i] : 7; if (!(i < n && x[i] == v)) return; x[i] = 7; }
kernel void asked(global int *x, global const int *n)
{ int i = get_global_id(0); if (i < n[0]) x[i] = 7; }
kernel void rolled(global int *x, int n) { x[(get_global_id(0) + 3) % n] = 7; }
kernel void known(global int *x, int n)
{ int i = get_global_id(0); if (i < n) x[i] = table[i % 4] + table[3]; }
kernel void part(global record *r) { r[get_global_id(0)].b = 7; }
kernel void picked(global record *r, global const int *at, global const int *y)
{ int i = get_global_id(0); if (i < 9) r[i].b = y[at[i]]; }
kernel void spare(global int *x, global const int *y, int n)
{ int i = get_global_id(0); if (x) x[0] = 7; if (y && i < n) x[i] = y[i]; }
"""

N = 100

WRONG: dict[str, tuple[str, tuple[Any, ...], str, int, int | None, tuple[int, ...]]] = {
    "all of it": ("ahead", ("x", 1000), "write", 0, 4000, (0,)),
    "one element": ("ahead", ("x", 1), "write", 0, 4 * N, (N - 1,)),
    "in front": ("ahead", ("x", -4), "write", 0, -16, (0,)),
    "far behind": ("ahead", ("x", 90_000_000), "write", 0, 360_000_000, (0,)),
    # the distance overflowed, and the launch crashed; then it was told as byte 2147483646
    "as far as a pointer goes": ("anywhere", ("x", (1 << 61) - 1), "write", 0, None, (0,)),
    "far in front": ("ahead", ("x", -90_000_000), "write", 0, -360_000_000, (0,)),
    "the lowest by the last": ("back", ("x",), "write", 0, -396, (N - 1,)),
    "read": ("get", ("x", "y", 1), "read", 0, 4 * N, (N - 1,)),
    "read far away": ("get", ("x", "y", -80_000_000), "read", 0, -320_000_000, (0,)),
    "another argument": ("twice", ("x", "y", "between"), "write", 1, 0, (0,)),
    "a pointer that moves": ("moved", ("x", 60), "write", 0, 4 * N, (N - 60,)),
    "a helper": ("helped", ("x", 2), "write", 0, 4 * N, (N - 2,)),
    "an atomic": ("counted", ("x", 3), "write", 0, 4 * N, (N - 3,)),
    "vectors": ("fours", ("x", -70), "write", 0, -1120, (0,)),
    "an index from memory": ("scatter", ("far", "x"), "write", 1, 4000, (17,)),
    "a view, inside the array": ("ahead", ("view", 5), "write", 0, 4 * 50, (45,)),
    "a view, outside of the array": ("ahead", ("view", 90), "write", 0, 4 * 90, (0,)),
}
"""Kernel, arguments, and what has to be named: kind, argument, first byte, work-item. None: a byte
that is too far away to be counted."""


@pytest.fixture(params=BACKENDS, ids="-".join)
def options(request: pytest.FixtureRequest, device: cl.Device) -> dict[str, Any]:
    return options_of(request.param, device, device=device)


class Arrays:
    """Arrays with others around them, whose values have to stay."""

    def __init__(self, rt: acs.Runtime) -> None:
        self.before = rt.array(np.arange(5000), "i4")
        self.x = rt.array(np.full(N, 3), "i4")
        self.y = rt.array(np.full(N, 4), "i4")
        self.after = rt.array(np.arange(5000), "i4")
        self.view = self.x[20:70]
        far = np.arange(N)
        far[17] = 1000
        self.far = rt.array(far, "i4")

    def of(self, words: tuple[Any, ...]) -> list[Any]:
        named = {"between": (self.x.address - self.y.address) // 4}
        return [
            (named[one] if one in named else getattr(self, one)) if isinstance(one, str) else one
            for one in words
        ]

    def are_as_before(self) -> bool:
        return bool(
            (self.before.get() == np.arange(5000)).all()
            and (self.after.get() == np.arange(5000)).all()
            and (self.x.get() == 3).all()
            and (self.y.get() == 4).all()
        )


@pytest.mark.rotate("options", 4)
@pytest.mark.parametrize("what", WRONG)
def test_a_kernel_that_leaves_its_arrays_is_named_and_nothing_is_changed(
    what: str, options: dict[str, Any]
) -> None:
    name, words, kind, argument, byte, item = WRONG[what]
    with make(options, "access") as rt:
        arrays = Arrays(rt)
        if what == "another argument":
            if not arrays.x.address:
                pytest.skip("arrays have no distance")
            byte = arrays.x.address - arrays.y.address
        kernel, launches = rt.build(SOURCE)[name], rt.stats()["launches"]
        line = inspect.currentframe().f_lineno + 2  # type: ignore[union-attr]
        with pytest.raises(CheckError) as caught:
            kernel((N if "view" not in words else 50,), None, *arrays.of(words))
        found = caught.value.finding
        assert (found.kind, found.kernel, found.argument) == (kind, name, argument)
        assert (found.first_byte, found.work_item) == (byte, item)
        assert found.site == f"{__file__}:{line}"
        where = "a byte some 2 GiB or further behind" if byte is None else f"byte {byte} of"
        assert f"work-item {item} {kind}s {where} argument {argument} (" in found.text
        if what == "a view, inside the array":
            of_view = " outside of its view of 200 bytes," * (options["memory"] == "svm")
            assert f"its element 50,{of_view} or byte 280 of the array made at" in found.text
        else:
            assert "outside of the array of 400 bytes made at" in found.text
        assert rt.stats()["launches"] == launches
        assert arrays.are_as_before()


CONSTANTS = """
constant int table[4] = {1, 2, 3, 4};
constant float4 other[3] = {(float4)(1), (float4)(2), (float4)(3)};
int of(int i) { return table[i]; }
int through(int i) { return of(i); }
kernel void direct(global int *x, int by) { int i = get_global_id(0); x[i] = table[i + by]; }
kernel void moved(global int *x, int by)
{ constant int *p = table + by; int i = get_global_id(0); x[i] = p[i]; }
kernel void helped(global int *x, int by) { int i = get_global_id(0); x[i] = through(i + by); }
kernel void vectors(global int *x, int by)
{ int i = get_global_id(0); x[i] = (int)other[i + by].y + table[i]; }
kernel void beside(global int *x, constant int *c, int by)
{ int i = get_global_id(0); x[i] = c[i] + table[i + by]; }
"""


@pytest.mark.rotate("options", 3)
@pytest.mark.parametrize(
    ("name", "by", "constant", "byte", "item"),
    [
        ("direct", 3, "table", 16, (1,)),
        ("direct", 90_000_000, "table", 360_000_000, (0,)),  # the launch crashed
        ("moved", 4, "table", 16, (0,)),
        ("helped", 3, "table", 16, (1,)),
        ("vectors", 2, "other", 48, (1,)),
        ("vectors", -9, "other", -144, (0,)),
        ("beside", 3, "table", 16, (1,)),
    ],
)
def test_a_constant_of_the_program_that_a_kernel_leaves_is_named(
    name: str, by: int, constant: str, byte: int, item: tuple[int, ...], options: dict[str, Any]
) -> None:
    """Ranges say nothing about constants, so such a kernel was proven right; or another array was
    named."""
    with make(options, "access") as rt:
        kernel, x = rt.build(CONSTANTS)[name], rt.zeros(2, "i4")
        more = [rt.array([1, 2], "i4")] * (name == "beside")
        for _ in range(2):
            kernel((2,), None, x, *more, 0)
        before = x.get()
        with pytest.raises(CheckError, match=f"the constant '{constant}' of its program") as caught:
            kernel((2,), None, x, *more, by)
        found = caught.value.finding
        assert (found.kind, found.argument, found.parameter) == ("read", None, constant)
        assert (found.first_byte, found.work_item) == (byte, item)
        assert (x.get() == before).all()


RIGHT: dict[str, tuple[str, tuple[Any, ...]]] = {
    "a condition": ("guarded", ("x", N)),
    "a return": ("early", ("x", N)),
    "a choice": ("chosen", ("x", "y", N)),
    "a number from memory": ("asked", ("x", "few")),
    "a remainder": ("rolled", ("x", N)),
    "constants of the program": ("known", ("x", N)),
    "a member of a last part": ("part", ("tail",)),
    "a member behind an index from memory": ("picked", ("tail", "zeros", "x")),
    "a pointer that may be null": ("spare", ("x", None, N)),
}


@pytest.mark.rotate("options", 3)
@pytest.mark.parametrize("what", RIGHT)
def test_a_kernel_that_stays_inside_is_not_accused(what: str, options: dict[str, Any]) -> None:
    """Its range may be a hull that reaches further, or unknown. Many launches, since later ones are
    let through; and with a size that is rounded up."""
    name, words = RIGHT[what]
    with make(options, "access") as rt, warnings.catch_warnings():
        warnings.simplefilter("error", CheckWarning)
        given: dict[str, Any] = {
            "x": rt.array(np.full(N, 3), "i4"), "y": rt.array(np.full(N, 3), "i4"),
            "few": rt.array([N], "i4"), "tail": rt.zeros(8 * 8 + 2, "i4"),
            "zeros": rt.zeros(N, "i4"),
        }  # fmt: skip
        size = 9 if name == "part" else 128
        kernel = rt.build(SOURCE)[name]
        for _ in range(8):
            kernel((size,), None, *(given[one] if isinstance(one, str) else one for one in words))
        rt.finish()
        assert rt.stats()["check"]["found"] == 0
        assert rt.stats()["check"]["launches"] >= 8
        if name not in ("part", "known", "spare", "picked"):
            assert (given["x"].get() == 7).all()


def test_a_launch_that_is_let_through_is_named_where_the_program_waits(
    options: dict[str, Any],
) -> None:
    with make(options, "access") as rt:
        prog, at = rt.build(SOURCE), rt.array(np.arange(16), "i4")
        x = rt.zeros(16, "i4")
        for _ in range(6):
            prog.scatter((16,), None, at, x)
        at[3:4].set([500])
        with pytest.raises(CheckError, match=r"\(3,\) writes byte 2000 of") as caught:  # noqa: PT012
            prog.scatter((16,), None, at, x)
            rt.finish()
        assert caught.value.finding.work_item == (3,)


@pytest.mark.parametrize(
    ("pitch", "offset", "byte", "item"),
    [(17, None, 512, (9, 7)), (16, (2, 1), 512, (16, 7)), (64, None, 512, (0, 2))],
)
def test_a_work_item_of_several_dimensions_is_named_with_its_offset(
    pitch: int, offset: tuple[int, int] | None, byte: int, item: tuple[int, int], device: cl.Device
) -> None:
    with acs.Runtime(device, backend="serial", check="access") as rt:
        prog, x = rt.build(SOURCE), rt.zeros((8, 16), "i4")
        prog.plane((16, 8), (4, 2), x, 16)
        with pytest.raises(CheckError) as caught:
            prog.plane((16, 8), None, x, pitch, offset=offset)
        found = caught.value.finding
        assert (found.first_byte, found.work_item) == (byte, item)
        assert (x.get() == 7).all()


@pytest.mark.parametrize("backend", ["serial", "lanes", "device", "emulated"])
def test_a_size_from_the_device_and_a_launch_that_is_skipped(
    backend: str, device: cl.Device
) -> None:
    with acs.Runtime(device, backend=backend, check="access") as rt:
        prog, x = rt.build(SOURCE), rt.zeros(N, "i4")
        count, flags = rt.array([N, N + 1], "u4"), rt.array([0, 1], "u4")
        prog.ahead((acs.size(count[:1], upto=512),), None, x, 0)
        prog.ahead((512,), None, x, 0, when=flags[:1])
        assert (x.get() == 7).all()
        with pytest.raises(CheckError) as caught:
            prog.ahead((acs.size(count[1:], upto=512),), None, x, 0)
        assert caught.value.finding.work_item == (N,)
        with pytest.raises(CheckError, match=f"work-item \\({N},\\) writes"):
            prog.ahead((512,), None, x, 0, when=flags[1:])


def test_a_launch_that_memory_of_the_program_decides(device: cl.Device) -> None:
    with acs.Runtime(device, backend="serial", check="access") as rt:
        prog, x = rt.build(SOURCE), rt.zeros(N, "i4")
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        no, yes = (cl.Buffer(rt.context, flags, hostbuf=np.array([n], "u4")) for n in (0, 1))
        for flag in (no, yes):
            prog.asked((N,), None, x, flag)  # by which the checks know it
        prog.ahead((512,), None, x, 0, when=no)
        assert x.get().tolist() == [7] + [0] * (N - 1)
        with pytest.raises(CheckError, match=f"work-item \\({N},\\) writes"):
            prog.ahead((512,), None, x, 0, when=yes)


def test_a_recorded_launch_is_named_at_its_replay(options: dict[str, Any]) -> None:
    with make(options, "access") as rt:
        prog, x = rt.build(SOURCE), rt.zeros(N, "i4")
        with rt.record() as graph:
            prog.ahead((N,), None, x, 1)
        with pytest.raises(CheckError, match=f"byte {4 * N} of argument 0"):
            graph.replay()
        assert not x.get().any()


def test_an_array_without_elements_and_none_are_named(options: dict[str, Any]) -> None:
    with make(options, "access") as rt:
        prog = rt.build(SOURCE)
        for given in (rt.zeros(0, "i4"), None):
            with pytest.raises(CheckError, match="which has no memory: it is None or an array"):
                prog.ahead((4,), None, given, 0)
            prog.guarded((4,), None, given, 0)
        assert rt.stats()["check"]["found"] == 2


def test_a_foreign_buffer_is_left_on_a_queue(context: cl.Context) -> None:
    flags = cl.mem_flags.READ_WRITE
    queue = acs.Queue(context, backend="serial", check="access")
    buffer, other = (cl.Buffer(context, flags, 4 * N) for _ in range(2))
    cl.enqueue_fill_buffer(queue, other, np.int32(3), 0, 4 * N)
    program = cl.Program(context, SOURCE).build()
    ahead = cl.Kernel(program, "ahead")
    ahead(queue, (N,), None, buffer, np.int32(0))
    with pytest.raises((acs.AcsError, cl.Error), match=r"outside of the foreign buffer of 400"):
        ahead(queue, (N,), None, buffer, np.int32(2))
    host = np.empty(N, "i4")
    cl.enqueue_copy(queue, host, other)
    assert (host == 3).all()
    queue.runtime.close()


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_an_array_by_its_address_may_be_written_on_a_queue(device: cl.Device, memory: str) -> None:
    """Such a launch counts with any memory. It is named where it leaves its array."""
    with acs.Runtime(device, backend="lanes", memory=memory, check="access") as rt:
        queue, x = acs.Queue(rt.context, runtime=rt), rt.zeros(N, "i4")
        ahead = cl.Kernel(rt.build(SOURCE).native, "ahead")
        for _ in range(2):
            ahead(queue, (N,), None, x.data, np.int32(0))
        assert (x.get() == 7).all()
        with pytest.raises(cl.Error, match=f"writes byte {4 * N} of argument 0"):
            ahead(queue, (N,), None, x.data, np.int32(1))


def test_what_cannot_be_watched_is_compared_as_before(device: cl.Device) -> None:
    source = "kernel void k(global int *x) { (get_global_id(0) + 1)[x] = 7; }"
    with acs.Runtime(device, backend="serial", check="access") as rt:
        prog, x = rt.build(source), rt.zeros(N, "i4")
        with pytest.raises(CheckError, match="behind the end of the array") as caught:
            prog.k((N,), None, x)
        assert caught.value.finding.work_item is None


def test_what_is_proven_does_not_run_once_more(device: cl.Device) -> None:
    with acs.Runtime(device, backend="serial", check="access,every=1") as rt:
        prog, x, y = rt.build(SOURCE), rt.zeros(N, "i4"), rt.array([N], "i4")
        counts = []
        for launch in (
            lambda: prog.guarded((128,), None, x, N), lambda: prog.asked((128,), None, x, y),
        ):  # fmt: skip
            for _ in range(4):  # the first of a kernel have more trials
                before = rt.stats()["check"]["runs"]
                launch()
            counts.append(rt.stats()["check"]["runs"] - before)
        assert counts == [1, 2]


def test_what_is_proven_does_not_run_once_more_in_bands(device: cl.Device) -> None:
    """Its bands are no part of the proof. Each of the three runs alone, too."""
    with acs.Runtime(device, backend="lanes", bands=3, check="access,every=1") as rt:
        prog, x = rt.build(SOURCE), rt.zeros(N, "i4")
        for _ in range(4):
            before = rt.stats()["check"]["runs"]
            prog.guarded((96,), (8,), x, N)
        assert rt.stats()["check"]["runs"] - before == 1 + 3 * 3
