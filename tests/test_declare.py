"""Declarations of a kernel: the rectangles are what the text says, and mistakes are pointed at."""

from __future__ import annotations

import itertools
import random
import re
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools
import pytest

import acs_cl as acs
from acs_cl import core
from acs_cl.access.arguments import ALL
from acs_cl.access.declared import parse
from acs_cl.access.signature import Parameter
from acs_cl.records import interval

PARAMETERS = [
    Parameter("x", "float*", "global", True, "float", 4, 0, False, "rw", ""),
    Parameter("n", "int", "private", False, "", 0, 4, False, "", ""),
    Parameter("width", "unsigned int", "private", False, "", 0, 4, False, "", ""),
    Parameter("scale", "float", "private", False, "", 0, 4, False, "", ""),
]


Rectangle = tuple[int, int, int, int]
Sizes = tuple[int, ...]


def ranges(
    text: str, size: Sizes, offset: Sizes | None = None, limit: int = 4000, element: int = 1,
    **scalars: int,
) -> tuple[list[Rectangle], list[Rectangle]]:  # fmt: skip
    return parse(text, PARAMETERS).ranges(size, offset, scalars, element, limit)[:2]


def covered(rectangles: list[Rectangle]) -> set[int]:
    return {
        start + row * pitch + i
        for start, pitch, rows, width in rectangles
        for row in range(rows)
        for i in range(width)
    }


@pytest.mark.parametrize(
    ("text", "size", "reads", "writes"),
    [
        ("r", (8,), [(0, 4000, 1, 4000)], []),
        ("rw", (8,), [(0, 4000, 1, 4000)], [(0, 4000, 1, 4000)]),
        ("w[gid]", (8,), [], [(0, 8, 1, 8)]),
        ("w[4*gid:4*gid+4]", (8,), [], [(0, 32, 1, 32)]),
        ("w[4*gid]", (8,), [], [(0, 4, 8, 1)]),
        ("r[0:n], w[gid + n]", (8,), [(0, 10, 1, 10)], [(10, 8, 1, 8)]),
        ("r[gsize - 1 - gid]", (8,), [(0, 8, 1, 8)], []),
        ("r[gid0 + width*gid1]", (8, 4), [(0, 20, 4, 8)], []),
        ("r[width*gid0 + gid1]", (8, 4), [(0, 20, 8, 4)], []),
        ("r[8*gid1 + gid0]", (8, 4), [(0, 32, 1, 32)], []),
        ("r[3*gid0 + 24*gid1]", (8, 4), [(0, 3, 32, 1)], []),
        ("r[100*gid0 + 7*gid1]", (4, 2), [(0, 308, 1, 308)], []),
        ("r[gid:n]", (8,), [(0, 10, 1, 10)], []),
        ("r[n:n]", (8,), [], []),
        ("r[2*gid:2*gid - 1]", (8,), [], []),
        ("r[n//3 % 2 + max(1, n, 7) - min(n, 2)]", (1,), [(9, 1, 1, 1)], []),
        ("r[-(-gid) + +1]", (2,), [(1, 2, 1, 2)], []),
        ("r[gid2]", (8,), [(0, 1, 1, 1)], []),
        ("r[gsize2*gid0]", (8,), [(0, 8, 1, 8)], []),
        ("r[gid]", (0,), [], []),
    ],
)  # fmt: skip
def test_declarations_mean_rectangles(
    text: str, size: Sizes, reads: list[Rectangle], writes: list[Rectangle]
) -> None:
    assert ranges(text, size, n=10, width=20) == (reads, writes)


def test_units_are_elements_and_results_are_bytes() -> None:
    assert ranges("w[2*gid]", (3,), (1,), element=16) == ([], [(32, 32, 3, 16)])


def test_what_passes_the_end_is_cut_off() -> None:
    def found(text: str, limit: int) -> list[Sizes]:
        reads, _ = ranges(text, (64,), limit=limit)
        return sorted(span[1:] for span in core.native.cut(interval(1, 0, limit), reads))

    assert found("r[gid]", 50) == [(0, 50, 1, 50)]
    assert found("r[10*gid:10*gid+4]", 40) == [(0, 10, 4, 4)]
    assert found("r[10*gid:10*gid+4]", 32) == [(0, 10, 3, 4), (30, 2, 1, 2)]
    assert found("r[10*gid:10*gid+4]", 12) == [(0, 4, 1, 4), (10, 2, 1, 2)]


@pytest.mark.parametrize("name", ["from", "in", "lambda", "None"])
def test_parameters_may_be_called_like_words_of_python(name: str) -> None:
    own = Parameter(name, "int", "private", False, "", 0, 4, False, "", "")
    found = parse(f"r[{name}:{name} + n], w[2*{name}]", [*PARAMETERS, own])
    assert found.ranges((1,), None, {name: 5, "n": 3}, 1, 40)[:2] == (
        [(5, 3, 1, 3)],
        [(10, 1, 1, 1)],
    )
    assert [clause.text for clause in found.clauses] == [f"r[{name}:{name} + n]", f"w[2*{name}]"]
    with pytest.raises(ValueError, match="invalid syntax"):
        parse("r[if]", [*PARAMETERS, own])


def test_very_many_operators_are_an_error_like_others() -> None:
    with pytest.raises(ValueError, match="too many"):
        parse(f"r[{'-' * 3000}1]", PARAMETERS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("r[gid - 1]", "starts 1 bytes before the argument"),
        ("r[n + 4000]", "starts at byte 4010, the argument has 4000 bytes"),
        ("r[n // (n - 10)]", "division by zero"),
    ],
)
def test_leaving_the_argument_is_an_error_of_the_launch(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        ranges(text, (8,), n=10)


@pytest.mark.parametrize("seed", range(200))
def test_rectangles_cover_every_work_item_and_are_exact_where_one_can_be(seed: int) -> None:
    chance = random.Random(seed)
    factors = [chance.choice([0, 1, 2, 3, 5, 8, 40, -1, -4]) for _ in range(3)]
    size = tuple(chance.randrange(1, 5) for _ in range(chance.randrange(1, 4)))
    offset = tuple(chance.randrange(3) for _ in size)
    width = chance.randrange(1, 6)
    index = "500 + " + " + ".join(f"{f}*gid{axis}" for axis, f in enumerate(factors))
    declared = parse(f"w[{index}:{index} + {width}]", PARAMETERS)
    _, rectangles, sure = declared.ranges(size, offset, {}, 1, 4000)
    exact: set[int] = set()
    for gids in itertools.product(*(range(o, o + s) for o, s in zip(offset, size, strict=True))):
        start = 500 + sum(f * g for f, g in zip(factors, gids, strict=False))
        exact.update(range(start, start + width))
    got = covered(rectangles)
    assert got >= exact
    assert (min(got), max(got)) == (min(exact), max(exact))
    if sum(1 for f, s in zip(factors, size, strict=False) if f and s > 1) <= 1:
        assert got == exact
    assert sure in ([], rectangles)
    assert bool(sure) == (got == exact)


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("q[gid]", 0, "expected r, w or rw"),
        ("", 0, "expected r, w or rw"),
        ("w[4*foo:8]", 4, "unknown name 'foo'"),
        ("w[scale]", 2, "'scale' is not an integer"),
        ("w[x]", 2, "'x' is not an integer"),
        ("w[lid]", 2, "unknown name 'lid'"),
        ("r[gid*gid]", 2, "affine"),
        ("r[gid // 2]", 2, "//"),
        ("r[n % gid]", 2, "%"),
        ("r[min(gid, 2)]", 2, "min"),
        ("r[gid", 1, "never closed"),
        ("r[2 +]", 5, "invalid syntax"),
        ("r[gid] w", 7, "invalid syntax"),
        ("r[gid], 2", 8, "expected r, w or rw"),
        ("r[gid:]", 0, "from:to"),
        ("r[gid & 1]", 2, "unexpected operator"),
        ("r['x']", 2, "expected a number"),
        ("r[__import__('os')]", 2, "unknown name '__import__'"),
    ],
)
def test_mistakes_are_pointed_at(text: str, column: int, reason: str) -> None:
    with pytest.raises(ValueError, match=r"\^$") as caught:
        parse(text, PARAMETERS)
    message, shown, caret = str(caught.value).split("\n")
    assert re.search(reason, message), message
    assert shown == "  " + text
    assert caret.index("^") == column + 2


def test_a_mode_sums_up_the_clauses() -> None:
    assert parse("w[gid], r[gid + 1]", PARAMETERS).mode == "rw"
    assert parse("w", PARAMETERS).mode == "w"


STENCIL = """
kernel void three(global const int *x, global int *y)
{ int i = get_global_id(0); y[i] = x[i - 1] + x[i] + x[i + 1]; }
kernel void put(global int *y) { y[3 * get_global_id(0) + 10 * get_global_id(1)] = 7; }
kernel void one(global int *y) { y[0] = 1; }
kernel void row(global int *y) { y[get_global_id(0)] = 1; }
"""


def test_what_a_launch_names_replaces_that_argument_only(device: cl.Device) -> None:
    """The other one may be a view of the same array, or other memory that a program allocated."""
    with acs.Runtime(device) as rt:
        three = rt.build(STENCIL).three
        planes = rt.zeros((2, 34), "i4")
        x, y = planes[0, 1:33], planes[1, 1:33]
        access = three((32,), None, x, y, reads=planes[0]).access
        assert (access.reads, access.writes) == (planes[0].spans, y.spans)
        access = three((32,), None, x, y, writes=planes[1]).access
        assert (access.reads, access.writes) == (x.spans, planes[1].spans)
        access = three((30,), None, planes[0, 1:], planes[0, 2:], reads=planes[0, :2]).access
        assert planes[0, 2:32].spans[0] in access.writes  # either argument may have written it
        three.access(lambda *of: ([planes[0]], []))
        access = three((32,), None, x, y).access
        assert (access.reads, access.writes) == (planes[0].spans, y.spans)


def test_named_memory_of_the_program_leaves_other_memory_of_it_alone(device: cl.Device) -> None:
    if not device.svm_capabilities & cl.device_svm_capabilities.COARSE_GRAIN_BUFFER:
        pytest.skip("the device has no shared virtual memory")
    with acs.Runtime(device) as rt:
        queue = cl.CommandQueue(rt.context)
        allocator = cl.tools.SVMAllocator(rt.context, queue=queue)
        x, y = (cl.array.zeros(queue, 34, np.int32, allocator=allocator) for _ in range(2))
        queue.finish()
        three = rt.build(STENCIL).three
        plain, named = (three((32,), None, x, y, **with_) for with_ in ({}, {"reads": x}))
        assert named.access.writes == plain.access.writes != ()
        rt.finish()


def test_a_declared_write_that_is_a_hull_does_not_end_poison(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        program = rt.build(STENCIL)
        program.put.access(y="w[3*gid0+10*gid1]")
        program.one.access(y="w")
        program.row.access(y="w[gid]")
        y, z = rt.zeros(14, "i4"), rt.zeros((6, 6, 6), "i4")
        rt.call(lambda *of: 1 / 0, writes=[y, z])
        program.put((2, 2), None, y)
        program.one((1,), None, z[::2, ::2, ::2])
        for array in (y, z[1]):
            with pytest.raises(acs.PoisonedError):
                array.get()
        program.row((14,), None, y)  # all of it
        assert y.get().tolist() == [1] * 14


def test_gaps_of_other_libraries_arrays_are_not_overwritten(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        one = rt.build(STENCIL).one
        queue = cl.CommandQueue(rt.context)
        cube = cl.array.zeros(queue, (20, 20, 20), np.int32)
        queue.finish()
        for _ in range(2):
            access = one((1,), None, cube, writes=cube).access
            assert access.overwrites == access.writes != ()
            access = one((1,), None, cube[::2, ::2, ::2], writes=cube[::2, ::2, ::2]).access
            assert (access.overwrites, len(access.writes)) == ((), 1)
        one.access(y="w")
        assert one((1,), None, cube).access.overwrites
        assert not one((1,), None, cube[::2, ::2, ::2]).access.overwrites


def test_ranges_of_memory_that_may_be_any_are_all_memory(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        row = rt.build(STENCIL).row.access(y="w[gid+1]")
        x = rt.zeros(16, "i4")
        rt.finish()
        assert row((4,), None, x.data).access.writes == ALL


SPREAD = """
kernel void spread(global const int *at, global int *y, global int *count)
{ int i = get_global_id(0); y[at[i]] += 1; if (!i) *count += 1; }
kernel void set(global int *y, int a) { y[get_global_id(0)] = a; }
"""
LAUNCHES = 40


@pytest.mark.parametrize("backend", ["serial", "out_of_order", "lanes", "device"])
def test_launches_that_say_what_they_touch_go_the_short_way(
    device: cl.Device, backend: str
) -> None:
    """What they say differs, while their arguments do not. One that says nothing comes between."""
    try:
        rt = acs.Runtime(device, backend=backend)
    except acs.UsageError as why:
        pytest.skip(str(why))
    with rt, inside.calls_by_python() as long_way:
        program = rt.build(SPREAD)
        rt.prebuild(program.spread)
        y, count = rt.zeros((4, 8), "i4"), rt.zeros(1, "i4")
        flags = rt.array([0, 1], "i4")
        at = [rt.array(8 * row + np.arange(8), "i4") for row in range(4)]
        asked: list[dict[str, Any]] = [
            {"reads": (at[0], y[0], count), "writes": [y[0], count]},
            {"reads": y[1], "writes": y[1]},
            {},
            {"reads": [y[3]], "writes": (y[3],), "when": flags[0]},
            {"reads": [y[3]], "writes": (y[3],), "when": flags[1]},
            {"reads": []},
            {"reads": None, "writes": None},
        ]
        rows = (0, 1, 2, 3, 3, 2, 2)

        def step() -> list[Any]:
            return [
                program.spread((8,), None, at[row], y, count, **keywords)
                for row, keywords in zip(rows, asked, strict=True)
            ]

        for _ in range(3):
            step()
        rt.finish()
        before = len(long_way)
        for _ in range(LAUNCHES):
            made = [one.access for one in step()]
            assert set(made[0].writes) == {*y[0].spans, *count.spans}
            assert made[0].reads == (*at[0].spans, *y[0].spans, *count.spans)
            assert set(made[1].writes) == {*y[1].spans, *count.spans}
            assert set(made[1].reads) == {*at[1].spans, *y[1].spans, *count.spans}
            for one in (made[2], made[5], made[6]):
                assert set(one.writes) == {*y.spans, *count.spans}
            assert set(made[3].writes) == {*y[3].spans, *count.spans}
        assert len(long_way) - before < LAUNCHES
        turns = LAUNCHES + 3
        assert y.get().tolist() == [[n * turns] * 8 for n in (1, 1, 3, 1)]
        assert count.get().tolist() == [6 * turns]


def test_wrong_ones_are_refused_after_right_ones_as_before(device: cl.Device) -> None:
    said = []
    with acs.Runtime(device) as rt, acs.Runtime(device) as other:
        program = rt.build(SPREAD)
        at, y, count = rt.array(range(8), "i4"), rt.zeros(8, "i4"), rt.zeros(1, "i4")
        freed = rt.zeros(8, "i4")
        freed.free()
        wrong = [
            {"writes": at},
            {"writes": [y, at]},
            {"reads": freed},
            {"writes": [freed]},
            {"reads": other.zeros(8, "i4")},
            {"reads": [y, None]},
            {"writes": 3},
            {"reads": np.zeros(8, "i4")},
        ]
        for _ in range(2):
            for keywords in wrong:
                with pytest.raises(acs.UsageError) as caught:
                    program.spread((8,), None, at, y, count, **keywords)
                said.append(re.sub(r"launch \d+", "launch", str(caught.value)))
            for _ in range(3):
                program.spread((8,), None, at, y, count, reads=[at, y], writes=y)
        assert said[: len(wrong)] == said[len(wrong) :]
        assert y.get().tolist() == [6] * 8


def test_a_declared_write_ends_poison_on_every_way(device: cl.Device) -> None:
    """Once the core has made such launches by itself. A part of it, what may be skipped, and what
    is read as well do not end it."""
    with acs.Runtime(device) as rt:
        program = rt.build(SPREAD)
        y, flag = rt.zeros(8, "i4"), rt.array([1], "i4")
        asked: list[tuple[dict[str, Any], bool]] = [
            ({"writes": y}, True),
            ({"writes": [y[:4], y[4:]]}, True),
            ({"writes": y[:4]}, False),
            ({"writes": y[::2]}, False),
            ({"writes": y, "reads": y}, False),
            ({"writes": y, "when": flag}, False),
        ]
        for keywords, ends in asked:
            for _ in range(3):
                program.set((8,), None, y, 1, **keywords)
            rt.finish()
            gate = cl.UserEvent(rt.context)

            def fails(*of: object) -> None:
                raise ValueError("no")

            rt.call(fails, writes=y, wait_for=[gate])
            program.set((8,), None, y, 2, **keywords)  # behind what will have failed
            gate.set_status(cl.command_execution_status.COMPLETE)
            if ends:
                assert y.get().tolist() == [2] * 8, keywords
                with pytest.raises(acs.PoisonedError):
                    rt.finish()  # nobody has reported it
            else:
                with pytest.raises(acs.PoisonedError):
                    y.get()
            y.fill(0)


def test_what_leaves_its_array_is_judged_after_a_launch_that_said_what_it_touches(
    device: cl.Device,
) -> None:
    with acs.Runtime(device) as rt:
        program = rt.build(SPREAD)
        y, pool = rt.zeros(8, "i4"), rt.zeros(64, "i4")
        for _ in range(3):
            program.set((16,), None, pool[:8], 1, writes=pool[:16])
        with pytest.raises(acs.UsageError, match="the kernel writes element 15"):
            program.set((16,), None, y, 1)
