"""Watched launches: the device notes each access beyond what is declared, and no other."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from random_c.meaning import DTYPES
from random_launches import ARRAYS, PROGRAMS, Launch, Pool
from sampling import SAMPLE

import acs_cl as acs
from acs_cl.check.bounds import Bounds
from acs_cl.check.findings import Who
from acs_cl.devices.build import build
from acs_cl.devices.facts import CannotParse
from acs_cl.launch.commands import KernelCommand
from acs_cl.opencl_c.variants.edits import changed
from acs_cl.opencl_c.variants.watched import watching
from acs_cl.program import Program
from acs_cl.records import Access, Span
from acs_cl.testing import span_of

POOLS = max(4, int(os.environ.get("ACS_CL_FUZZ", "0")) // PROGRAMS)
SEEDS = (1, *range(POOLS * SAMPLE + 2, POOLS * (SAMPLE + 1) + 1))
"""The first is always the same, and has enough of each kind whatever the others have."""


class Bench:
    """A checked runtime whose watch is asked directly."""

    def __init__(self, device: Any) -> None:
        self.runtime = acs.Runtime(device, backend="serial", check="access")
        self.checker: Any = self.runtime.engine.checker
        self.watch = self.checker._watch

    def command(self, kernel: Any, sizes: Any, *args: Any, offset: Any = None) -> KernelCommand:
        native, bound = kernel._bind(kernel.binder, args, (*sizes, offset), False, None)
        self.checker._take_notes()
        return KernelCommand(kernel.name, native, *sizes, bound.pointers, bound.values, offset)

    def strays(self, command: KernelCommand, access: Access) -> bool | None:
        """Run a launch watched. Whether something was noted; None where it cannot be watched."""
        watched = self.watch.of(command, access)
        if watched is None:
            return None
        watched.enqueue(self.checker.memory.queue, None)
        self.checker.memory.queue.finish()
        noted = self.watch.strayed()
        self.watch._dropped.clear()  # each is watched again
        assert noted in ([], [command.name])
        return bool(noted)


@pytest.fixture
def bench(device: cl.Device) -> Iterator[Bench]:
    made = Bench(device)
    yield made
    made.runtime.close()


def span(array: acs.Array, low: int, high: int) -> Span:
    width = max(1, (high - low)) * array.dtype.itemsize
    return Span(span_of(array).base, low * array.dtype.itemsize, width, 1, width)


# ---- one access after the other ------------------------------------------------------------------

KERNELS = {
    "y[i] = x[i];": ("x", "y"),
    "y[i] += 1;": ("y", "y"),
    "y[i]++;": ("y", "y"),
    "--y[i];": ("y", "y"),
    "y[i] = -y[i];": ("y", "y"),
    "(y)[i] = (x[(i)]);": ("x", "y"),
    "y[x[i]] = 1;": ("x", "y"),
    "if (i > 100 && x[i]) y[i] = 1;": ("", ""),
    "y[i] = i < 100 ? 5 : x[i];": ("", "y"),
    "atomic_inc(&y[i]);": ("y", "y"),
    "atomic_add(y + i, 1);": ("y", "y"),
    "atomic_add(y, x[i]);": ("x0", "0"),
    "*y = x[i];": ("x", "0"),
    "y[i] = sizeof(x[0]);": ("", "y"),
    "y[i] = *x;": ("0", "y"),
    "int2 v = vload2(i / 2, x); y[i] = v.x;": ("x", "y"),
    "vstore2(1, i / 2, y);": ("", "y"),
    "vstore2(1, 0, y + (i & 6));": ("", "y"),
    "vstore2(vload2(0, x + (i & 6)), x[i] / 2, y);": ("x", "y"),
    "global const int *p = x; y[i] = p[i];": ("x", "y"),
    "y[i] = (x + 1)[i - 1];": ("x", "y"),
    "y[i] = *(x + i);": ("x", "y"),
    "global int *p = &y[i]; *p = 1;": ("", "y"),
    "global int *p = y; p += i; *p++ = 1;": ("", "y"),
    "y[i] = of(x, i);": ("x", "y"),
    "put(y, of(x, of(x, i)));": ("x", "0"),
    "global const int *t[2] = {x, x + 1}; y[i] = t[0][i] + *t[0];": ("x", "y"),
    "((global pair *)y)[i / 2].b = 1;": ("", "7"),
    "((global pair *)y + i / 2)->a = ((global const pair *)x)[i / 2].b;": ("7", "0"),
    "(*((global pair *)y + i / 2)).b += 1;": ("y7", "7"),
    "((global int2 *)y)[i / 2].y = 1; ((global int2 *)y + i / 2)->x += 2;": ("y", "y"),
    "((global box *)y)->a[i] = ((global const box *)x)->a[i];": ("x", "y"),
    "local int l[8]; l[i] = x[i]; barrier(CLK_LOCAL_MEM_FENCE); y[i] = l[7 - i];": ("x", "y"),
    "int l[8]; for (int j = 0; j < 8; j++) l[j] = j; y[l[i]] = 1;": ("", "y"),
    "__extension__ y[i] = 1; *(__extension__ y) = 2;": ("", "y"),
    "y[i] = i[x];": None,
    "y[i] = as_int(x[i]);": None,
    "float f; f = fract((float)i, (global float *)(y + i));": None,
}
"""Bodies, and which of the elements 0 to 7 of x they read and of y they write, where x[i] is i:
letters for all of them, an end for those among which it is, and not the other one. None: not every
access can be seen."""
ENDS = ("0", "7")

SOURCE = """
typedef struct {{ int a, b; }} pair;
typedef struct {{ int a[16]; }} box;
int of(global const int *p, int i) {{ return p[i]; }}
void put(global int *p, int v);
void put(global int *p, int v) {{ *p = v; }}
kernel void body(global const int *x, global int *y) {{ int i = get_global_id(0); {} }}
"""


@pytest.mark.parametrize("body", KERNELS)
def test_what_is_touched_is_noted_where_it_is_not_declared(bench: Bench, body: str) -> None:
    kernel = bench.runtime.build(SOURCE.format(body)).body
    x = bench.runtime.array(np.arange(16, dtype="i4"))
    y = bench.runtime.zeros(16, "i4")
    command = bench.command(kernel, ((8,), None), x, y)
    all_of = Access((span(x, 0, 16), span(y, 0, 16)), (span(y, 0, 16),))
    expected = KERNELS[body]
    if expected is None:
        assert bench.strays(command, all_of) is None
        return
    assert bench.strays(command, all_of) is False
    reads, writes = expected
    for low, high, element in ((0, 7, 7), (1, 8, 0), (0, 8, None), (1, 16, 0)):
        inside = element is None
        x_only = Access((span(x, low, high), span(y, 0, 16)), (span(y, 0, 16),))
        y_only = Access((span(x, 0, 16), span(y, low, high)), (span(y, 0, 16),))
        y_written = Access((span(x, 0, 16), span(y, 0, 16)), (span(y, low, high),))
        x_read = reads == f"{element}" if reads in ENDS else "x" in reads and not inside
        assert bench.strays(command, x_only) is x_read
        at = writes == f"{element}" if writes in ENDS else not inside
        assert bench.strays(command, y_only) is (reads in ("y", "x0", "y7") and at)
        assert bench.strays(command, y_written) is (bool(writes) and at)


@pytest.mark.parametrize("kind", ["uint", "long", "ulong", "size_t", "short", "uchar"])
def test_indices_of_any_type_are_compared_as_they_are_used(bench: Bench, kind: str) -> None:
    kernel = bench.runtime.build(
        "kernel void body(global int *y, long at) { y[(%s)at] = 7; }" % kind  # noqa: UP031
    ).body
    y = bench.runtime.zeros(512, "i4")
    whole, some = span(y, 0, 512), Access((), (span(y, 0, 4),))
    for at in (0, 3, 4, 200, 258):
        command = bench.command(kernel, ((1,), None), y, at)
        used = at & 0xFF if kind == "uchar" else at
        assert bench.strays(command, Access((whole,), (whole,))) is False
        assert bench.strays(command, some) is (used > 3)
        assert y.get()[used] == 7


# ---- random kernels ------------------------------------------------------------------------------


def _built(bench: Bench, device: cl.Device, pool: Pool) -> Program:
    native = build(bench.runtime.context, device, pool.source, ["-w"])
    return Program(bench.runtime.engine, native, pool.source, ())


def test_random_kernels_do_the_same_and_what_they_touch_is_noted(
    bench: Bench, device: cl.Device
) -> None:
    """Beside the oracle, which knows each element that a launch reads and writes."""
    seen = noted = others = 0
    arrays = [bench.runtime.zeros(count, DTYPES[name]) for name, count in ARRAYS]
    for seed in SEEDS:
        pool, chance = Pool(seed), random.Random(seed)
        program = _built(bench, device, pool)
        for number in range(PROGRAMS):
            drawn = pool.program(number)
            for array, values in zip(arrays, drawn.begin, strict=True):
                array.set(values)
            bench.runtime.finish()
            for launch in drawn.launches:
                kernel = getattr(program, pool.kernels[launch.kernel].name)
                access = _declared(chance, arrays, launch)
                command = _command(bench, pool, kernel, arrays, launch)
                strays = bench.strays(command, access)
                if strays is None:
                    others += 1
                    command.enqueue(bench.checker.memory.queue, None).wait()
                else:
                    expected = _beyond(arrays, launch, access)
                    assert strays is expected, (seed, number, launch, access)
                    seen, noted = seen + 1, noted + strays
            for array, right in zip(arrays, drawn.end, strict=True):
                np.testing.assert_array_equal(array.get(), right)
    print(f"{seen} launches watched, of which {noted} touched more; {others} not watched")
    assert seen > 20 * POOLS
    assert seen // 10 < noted < seen


class Memory:
    """What `Bounds` asks of a case: runs follow each other, from whatever the one before left."""

    before: Any = None

    def run(self, values: Any, start: Any) -> None:
        start().wait()


def test_of_random_kernels_the_lowest_byte_outside_is_found(
    bench: Bench, device: cl.Device
) -> None:
    """Writes that are not declared, beside the oracle. What is outside stays as it was."""
    found = others = 0
    queue = bench.checker.memory.queue
    bounds = Bounds(
        bench.runtime.context, bench.checker.memory, bench.watch,
        lambda command: command.enqueue(queue, None),
    )  # fmt: skip
    arrays = [bench.runtime.zeros(count, DTYPES[name]) for name, count in ARRAYS]
    for seed in SEEDS:
        pool, chance = Pool(seed), random.Random(seed)
        program = _built(bench, device, pool)
        for number in range(PROGRAMS):
            drawn = pool.program(number)
            if not drawn.launches:
                continue
            launch, begin = drawn.launches[0], drawn.begin
            for array, values in zip(arrays, begin, strict=True):
                array.set(values)
            bench.runtime.finish()
            kernel = getattr(program, pool.kernels[launch.kernel].name)
            access = _declared(chance, arrays, launch)
            command = _command(bench, pool, kernel, arrays, launch)
            if bench.watch.variant(command) is None:
                continue
            stray: dict[int, set[int]] = {}
            for array, elements in launch.touched.writes.items():
                low, high = _limits(arrays[array], access)
                stray[array] = {one for one in elements if not low <= one < high}
            wrong = bounds.wrong(Memory(), command, access, Who(1, command.name, "here"))  # type: ignore[arg-type]
            if wrong is None:
                assert not any(stray.values()), (seed, number)
                others += 1
                continue
            assert wrong.kind == "write", (seed, number)
            assert wrong.argument is not None
            assert wrong.first_byte is not None
            array, first, _ = launch.views[wrong.argument]
            element = first + wrong.first_byte // arrays[array].dtype.itemsize
            assert element in stray[array], (seed, number, wrong)
            if [one[0] for one in launch.views].count(array) == 1:  # else another view has it
                assert element == min(stray[array]), (seed, number, wrong)
            for index, (some, values) in enumerate(zip(arrays, begin, strict=True)):
                now, outside = some.get(), sorted(stray.get(index, ()))
                np.testing.assert_array_equal(now[outside], values[outside])
            found += 1
    print(f"{found} launches outside, {others} inside")
    assert found > POOLS
    assert others > POOLS


def _limits(array: acs.Array, access: Access) -> tuple[int, int]:
    """The elements of an array that may be written, from the first to the last."""
    size = array.dtype.itemsize
    own = [one for one in access.writes if one.base == span_of(array).base]
    return min([one.start // size for one in own], default=0), max(
        [one.end // size for one in own], default=0
    )


def _command(
    bench: Bench, pool: Pool, kernel: Any, arrays: list[acs.Array], launch: Launch
) -> KernelCommand:
    two = launch.sizes[1] > 1
    sizes = launch.sizes if two else launch.sizes[:1], (pool.local, 1) if two else (pool.local,)
    offset = launch.offset if two else launch.offset[:1]
    views = [arrays[array][low : low + count] for array, low, count in launch.views]
    return bench.command(
        kernel, sizes, *views, *launch.numbers, offset=offset if any(offset) else None
    )


def _declared(chance: random.Random, arrays: list[acs.Array], launch: Launch) -> Access:
    """What is touched, of each array all elements from the first to the last, sometimes with too
    few of them."""

    def spans(touched: dict[int, set[int]]) -> tuple[Span, ...]:
        found = []
        for array, elements in touched.items():
            if elements:
                low, high = min(elements), max(elements) + 1
                if chance.random() < 0.2:
                    low, high = sorted((chance.randint(low, high), chance.randint(low, high)))
                if low < high:
                    found.append(span(arrays[array], low, high))
        return tuple(found)

    return Access(spans(launch.touched.reads), spans(launch.touched.writes))


def _beyond(arrays: list[acs.Array], launch: Launch, access: Access) -> bool:
    numbers = [span_of(array).base for array in arrays]
    for touched, spans in (
        (launch.touched.reads, access.reads), (launch.touched.writes, access.writes)
    ):  # fmt: skip
        for array, elements in touched.items():
            size = arrays[array].dtype.itemsize
            for element in elements:
                if not any(
                    one.base == numbers[array] and one.start <= element * size < one.end
                    for one in spans
                ):
                    return True
    return False


# ---- what cannot be watched ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "kernel void k(int n) { }",
        "kernel void l(global int *x) { x[0] = 1; } kernel void k(global int *x) { l(x); }",
        "kernel void k(global int (*x)[4]) { x[0][1] = 1; }",
        "kernel void k(global int *x, local int *l) { async_work_group_copy(l, x, 4, 0); }",
    ],
)
def test_accesses_that_cannot_be_seen_are_refused(device: cl.Device, source: str) -> None:
    with pytest.raises(CannotParse):
        watching(source, [], device, "k")


def test_a_text_of_very_many_edits_is_made_at_once() -> None:
    """Adding to a text again and again would copy terabytes."""
    many = 500_000
    edits = [(7 * at, 7 * at + 1, "y") for at in range(many)]
    assert changed(b"x = 1;\n" * many, 0, 7 * many, edits) == "y = 1;\n" * many


def test_helpers_that_call_helpers_many_times_are_read_once(device: cl.Device) -> None:
    helpers = "int f0(int i) { return i + 1; }"
    for level in range(1, 15):
        calls = " + ".join([f"f{level - 1}(i)"] * 8)
        helpers += f" int f{level}(int i) {{ return {calls}; }}"
    source = f"{helpers} kernel void k(global int *x, int n) {{ x[0] = f14(n); }}"
    assert watching(source, (), device, "k").limited == [0]


def test_macros_helpers_attributes_and_structures_are_understood(bench: Bench) -> None:
    kernel = bench.runtime.build(
        """
        #define AT(p, i) p[(i) + SHIFT]
        #define SHIFT 1
        typedef struct { int a; float4 b; } pair;
        int twice(int v) { return 2 * v; }
        kernel __attribute__((reqd_work_group_size(4, 1, 1)))
        void k(global const int *restrict x, constant int *c, local int *l, global pair *y)
        {
          const int i = get_global_id(0);
          l[get_local_id(0)] = twice(AT(x, i));
          barrier(CLK_LOCAL_MEM_FENCE);
          y[i].a = l[3 - get_local_id(0)] + c[0];
          y[i].b.y = 1.5f;
        }
        """
    ).k
    rt = bench.runtime
    x, c, y = rt.array(np.arange(9, dtype="i4")), rt.array([100], "i4"), rt.zeros(8 * 8, "i4")
    command = bench.command(kernel, ((8,), (4,)), x, c, cl.LocalMemory(16), y)
    reads, writes = (span(x, 1, 9), span(c, 0, 1)), (span(y, 0, 64),)
    assert bench.strays(command, Access(reads, writes)) is False
    found = y.get().reshape(8, 8)
    assert found[:, 0].tolist() == [108, 106, 104, 102, 116, 114, 112, 110]
    assert (found[:, 5].view("f4") == 1.5).all()
    assert bench.strays(command, Access((span(x, 1, 8), reads[1]), writes)) is True
    assert bench.strays(command, Access((span(x, 2, 9), reads[1]), writes)) is True
    assert bench.strays(command, Access(reads[:1], writes)) is True
    assert bench.strays(command, Access(reads, (span(y, 0, 60),))) is True


def test_a_parameter_that_is_changed_through_a_choice_may_lead_elsewhere(device: cl.Device) -> None:
    source = "kernel void k(global int *x, global int *y) { _Generic(1, int: x) = y; x[3] = 4; }"
    with acs.Runtime(device, backend="serial", check="access,every=1") as rt:
        x, y = rt.zeros(8, "i4"), rt.zeros(8, "i4")
        rt.build(source).k((1,), None, x, y)
        assert y.get().tolist() == [0, 0, 0, 4, 0, 0, 0, 0]
        assert not x.get().any()
