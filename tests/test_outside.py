"""Launches that surely leave an array are refused as they are made, and no other launch is."""

from __future__ import annotations

import random
import warnings
from typing import Any, NamedTuple

import inside
import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.errors import CheckWarning

SOURCE = """
kernel void put(global int *x, int by) { x[(int)get_global_id(0) + by] = 7; }
kernel void get(global const int *x, global int *y, int by)
{ int i = get_global_id(0); y[i] = x[i + by]; }
kernel void edge(global const int *x, global int *y)
{ int i = get_global_id(0); int left = x[i - 1]; y[i] = i ? left : 0; }
kernel void groups(global int *x)
{ x[get_group_id(0) * get_local_size(0) + get_local_id(0)] = 7; }
kernel void guarded(global int *x, int n) { int i = get_global_id(0); if (i < n) x[i] = 7; }
kernel void spread(global int *x, int by) { x[(int)get_global_id(0) * by] = 7; }
kernel void fits(global int4 *x) { x[get_global_id(0)].x = 7; }
"""
N = 100
SIZES = r"argument 0 \(int\* x\): the kernel writes element {} \(byte {}\), and the array has 100 "
VIEW = r"element 49 \(byte 196\) of a view that begins at byte 240 of its array"


@pytest.fixture(params=["serial", "lanes", "device", "auto"])
def rt(request: pytest.FixtureRequest, device: cl.Device) -> Any:
    with acs.Runtime(device, backend=request.param) as made:
        yield made


def test_a_write_beyond_the_array_is_refused_each_time(rt: acs.Runtime) -> None:
    prog, x = rt.build(SOURCE), rt.zeros(N, "i4")
    for by, element in ((1, N), (-1, -1), (1000, 1099), (-1000, -1000)):
        for _ in range(2):
            with pytest.raises(acs.UsageError, match=SIZES.format(element, 4 * element)):
                prog.put((N,), None, x, by)
    with pytest.raises(acs.UsageError, match=SIZES.format(127, 508)):
        prog.groups((128,), (32,), x)
    with pytest.raises(acs.UsageError, match=f"{VIEW}, and the array has 100 elements"):
        prog.put((50,), None, x[60:], 0)
    prog.put((N,), None, x, 0)
    prog.put((N - 1,), None, x, 1)
    prog.groups((N,), (25,), x)
    with rt.record() as graph:
        prog.guarded((128,), None, x, N)
        with pytest.raises(acs.UsageError, match="the kernel writes element 100"):
            prog.put((N,), None, x, 1)
    assert len(graph) == 1
    assert (x.get() == 7).all()


def test_so_is_one_behind_launches_on_larger_arrays(rt: acs.Runtime) -> None:
    """The core makes launches of known sizes. It looks whether they fit, too."""
    prog, x = rt.build(SOURCE), rt.zeros(N, "i4")
    small, empty = rt.zeros(N // 2, "i4"), rt.zeros(0, "i4")
    beyond = "the kernel writes element 59 .*, and the array has 50 elements"
    for _ in range(3):
        prog.put((60,), None, x, 0)
        with pytest.raises(acs.UsageError, match=beyond):
            prog.put((60,), None, small, 0)
        with pytest.raises(acs.UsageError, match="has 100 elements"):
            prog.put((60,), None, x[50:], 0)
        prog.put((60,), None, x[40:], 0)
        with pytest.raises(acs.UsageError, match="has no memory"):
            prog.put((60,), None, empty, 0)
    for _ in range(3):
        prog.put((20,), None, x[20:], -10)  # outside of the view, and inside the array
        with pytest.raises(acs.UsageError, match="the kernel writes element -10 "):
            prog.put((20,), None, x, -10)
        with pytest.raises(acs.UsageError, match=r"the kernel writes element -10 .* at byte 20 "):
            prog.put((20,), None, x[5:], -10)
    x.fill(0)
    prog.put.launch_many((60,), None, x, 0, count=3)
    with pytest.raises(acs.UsageError, match=beyond):
        prog.put.launch_many((60,), None, [x, x[40:], small, x], 0)
    assert x.get().tolist() == [7] * N
    assert (small.get() == 0).all()
    flag = rt.zeros(1, "i4")
    prog.put((60,), None, small, 0, when=flag)  # it may not run
    prog.put((60,), None, small, 0, when=flag)
    assert (small.get() == 0).all()


@pytest.mark.parametrize("which", range(3))
def test_a_kernel_that_does_not_know_of_gaps_is_told_of(rt: acs.Runtime, which: int) -> None:
    """The gaps of a view are not its bytes."""
    prog, x, square = rt.build(SOURCE), rt.zeros(N, "i4"), rt.zeros((10, 10), "i4")
    view = (x[::2], square[:, 0], square[2:4, :5])[which]
    with pytest.warns(CheckWarning, match=f"writes .* the view of {view.nbytes} bytes") as told:
        prog.put((view.size,), None, view, 0)
    assert len(told) == 1
    with pytest.warns(CheckWarning, match=f"reads .* the view of {view.nbytes} bytes") as told:
        prog.get((view.size,), None, view, x, 0)
    assert len(told) == 1


def test_it_is_told_of_in_sizes_that_nobody_has_seen(rt: acs.Runtime) -> None:
    """The core makes such launches without Python, and leaves this one to it."""
    prog, x = rt.build(SOURCE), rt.zeros(20 * N, "i4")
    rt.prebuild(prog.put)
    for size in range(200, 300):
        prog.put((size,), None, x, 0)
    with pytest.warns(CheckWarning, match="writes .* the view of 1,240 bytes") as told:
        prog.put((310,), None, x[::2][:310], 0)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckWarning)
        for size in range(320, 340):
            prog.spread((size,), None, x[::2][:size], 2)


def test_who_steps_over_gaps_is_not_told_of(rt: acs.Runtime) -> None:
    prog, square = rt.build(SOURCE), rt.zeros((10, 10), "i4")
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckWarning)
        prog.spread((10,), None, square[:, 3], 10)
        prog.spread((5,), None, square[::2, 4], 20)
        prog.put((5,), None, square[2:4, :5], 0)  # all in its first row
        prog.put((5,), None, square[2:4, :5], 10)
    found = square.get()
    assert (found[:, 3] == 7).all()
    assert found[:, 4].tolist() == [7, 0] + [7] * 3 + [0, 7, 0, 7, 0]


def test_what_only_reads_outside_stays_with_the_core(rt: acs.Runtime) -> None:
    prog, y = rt.build(SOURCE), rt.zeros(N, "i4")
    large, small = rt.array(np.arange(2 * N), "i4"), rt.array(np.arange(N), "i4")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CheckWarning)
        for _ in range(80):
            prog.get((N,), None, large, y, 1)
            prog.get((N,), None, small, y, 1)
    rt.prebuild(prog.get)

    def by_python() -> int:
        with inside.calls_by_python() as long_way:
            for _ in range(30):
                prog.get((N,), None, small, y, 1)
        return len(long_way)

    assert not all(by_python() for _ in range(20))
    assert y.get()[:-1].tolist() == list(range(1, N))


def test_what_is_harmless_or_declared_is_told_of_once_or_not_at_all(rt: acs.Runtime) -> None:
    prog, x, y = rt.build(SOURCE), rt.array(np.arange(N), "i4"), rt.zeros(N, "i4")
    with pytest.warns(CheckWarning, match="the kernel reads element -1 .* 100") as told:  # noqa: PT031
        for size in (N, N - 1, N - 2):
            prog.edge((size,), None, x, y)
    assert len(told) == 1
    assert told[0].filename == __file__
    with pytest.warns(CheckWarning, match="outside of the view of 200 bytes") as told:  # noqa: PT031
        for by in (1, 2):
            prog.put((50,), None, x[:50], by)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckWarning)
        prog.get((50,), None, x[:50], y, 10, reads=x)
        prog.put((50,), None, x[:50], 10, writes=x)
        prog.fits((N // 4,), None, x)
        flag = rt.zeros(1, "i4")
        prog.put((N,), None, x, 1, when=flag)
        prog.put.infer_ranges = False
        prog.put((10,), None, x[:10], 2)


def test_a_launch_without_memory_is_refused_or_told_of(rt: acs.Runtime) -> None:
    """It ended the process: an array without elements is a null pointer."""
    prog, x, y = rt.build(SOURCE), rt.zeros(0, "i4"), rt.zeros(N, "i4")
    for given, name in ((x, r"<acs_cl.Array \(0,\) int32>"), (None, "None"), (y[5:5], "Array")):
        with pytest.raises(acs.UsageError, match=f"writes byte .* of it, and .*{name}.* no memory"):
            prog.put((4,), None, given, 0)
        with pytest.raises(acs.UsageError, match=r"reads byte .* of it, and .* has no memory"):
            prog.get((4,), None, given, y, 0)
    prog.guarded((4,), None, x, 0)
    prog.guarded((4,), None, None, 0)
    with pytest.raises(acs.UsageError, match="every length is at least 1"):
        prog.put(x.shape, None, x, 0)
    assert not y.get().any()


def test_an_array_without_elements_that_may_be_used_is_told_of(device: cl.Device) -> None:
    source = """
    kernel void asked(global int *x, global const int *n)
    { int i = get_global_id(0); if (i < n[0]) x[i] = 7; }
    """
    with acs.Runtime(device) as rt:
        asked, none = rt.build(source).asked, rt.zeros(1, "i4")
        with pytest.warns(CheckWarning, match="has no memory, and the kernel may use some") as told:
            asked((4,), None, rt.zeros(0, "i4"), none)
        assert len(told) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error", CheckWarning)
            asked((4,), None, None, none)  # a null pointer that was asked for


# ---- random kernels ------------------------------------------------------------------------------


class Drawn(NamedTuple):
    """A kernel, the condition of its access, and the index, as functions of two numbers."""

    text: str
    guard: Any
    index: Any


GUARDS = {
    "": lambda i, j: True,
    "if (i < 9)": lambda i, j: i < 9,
    "if (i + j < 12)": lambda i, j: i + j < 12,
    "if (i >= 0)": lambda i, j: True,
    "if (j > 100)": lambda i, j: False,
    "if (i % 3 == 1)": lambda i, j: i % 3 == 1,
    "if (i > 4 && j < 3)": lambda i, j: i > 4 and j < 3,
    "if (i > 4 || j < 3)": lambda i, j: i > 4 or j < 3,
    "if (j) return;": lambda i, j: not j,
    "if (i > 90) return;": lambda i, j: True,
    "for (int k = 0; k < i; k++)": lambda i, j: i > 0,
    "for (int k = 0; k < 3; k++)": lambda i, j: True,
    "switch (i) case 3:": lambda i, j: i == 3,
    "while (i == 90)": lambda i, j: False,
}
BODIES = (
    "x[{}] = 7;",
    "int at = {}; x[at] = 7;",
    "global int *p = x + ({}); *p = 7;",
    "atomic_inc(&x[{}]);",
    "store(x, {});",
    "if (x) {{ x[{}] = 7; }}",
    "*(i < 99 ? x + ({}) : x) = 7;",
)
STORE = "void store(global int *p, int at) { p[at] = 7; }\n"


def draw(chance: random.Random, name: str) -> Drawn:
    a, b, c = chance.randint(-3, 4), chance.randint(-3, 9), chance.randint(-8, 8)
    guard, body = chance.choice(list(GUARDS)), chance.choice(BODIES)
    text = f"""
    kernel void {name}(global int *x)
    {{
      int i = get_global_id(0), j = get_global_id(1);
      {guard} {{ {body.format(f"i * {a} + j * {b} + {c}")} }}
    }}
    """
    return Drawn(text, GUARDS[guard], lambda i, j: i * a + j * b + c)


@pytest.mark.parametrize("seed", range(4))
def test_of_random_kernels_only_wrong_ones_are_refused(seed: int, device: cl.Device) -> None:
    """Beside all of its work-items, one by one. A kernel without any guard is refused if it is
    wrong. Those that are wrong and not refused are not launched."""
    chance = random.Random(seed)
    refused = plain = right = 0
    with acs.Runtime(device, backend="serial") as rt, warnings.catch_warnings():
        warnings.simplefilter("error", CheckWarning)
        kernels = [draw(chance, f"body{number}") for number in range(80)]
        program = rt.build(STORE + "".join(one.text for one in kernels))
        for number, drawn in enumerate(kernels):
            size = chance.randint(1, 12), chance.randint(1, 9)
            local = chance.choice([None, (1, 1), (size[0], 1)])
            offset = chance.choice([None, None, (1, 2)])
            elements = chance.choice([20, 60, 200])
            kernel, x = program[f"body{number}"], rt.zeros(elements, "i4")
            first = offset or (0, 0)
            touched = {
                drawn.index(i, j)
                for i in range(first[0], first[0] + size[0])
                for j in range(first[1], first[1] + size[1])
                if drawn.guard(i, j)
            }
            is_right = all(0 <= one < elements for one in touched)
            bound = kernel._bind(kernel.binder, (x,), (size, local, offset), True, None)[1]
            is_refused = bound.outside is not None
            assert not (is_refused and is_right), drawn.text
            refused += is_refused
            if is_right:
                kernel(size, local, x, offset=offset)
                assert set(np.flatnonzero(x.get()).tolist()) == touched
                right += 1
            elif not any(word in drawn.text for word in ("if", "for ", "while", "switch", "?")):
                plain += 1
                assert is_refused, drawn.text
    print(f"{right} right, {refused} refused")
    assert right > 5
    assert refused > 2
    assert plain
