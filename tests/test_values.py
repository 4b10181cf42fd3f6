"""Structures and vectors by value: the core takes them as it takes numbers, in every form that
Python takes, and leaves the others to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pyopencl.cltypes
import pytest

import acs_cl as acs
from acs_cl import testing

SOURCE = """
typedef struct { int first; float by; short more[3]; } Law;
kernel void obey(global float *y, Law law, int n)
{ int i = get_global_id(0); if (i < n) y[i] += law.first + law.by * law.more[i % 3]; }
kernel void shift(global float *y, float4 from, const uchar16 to)
{ int i = get_global_id(0); y[i] += from.y * to.sf + from.w; }
"""
LAW = np.dtype([("first", "i4"), ("by", "f4"), ("more", "i2", 3)], align=True)
BACKENDS = ("serial", "lanes", "device")


@pytest.fixture(params=BACKENDS)
def rt(request: pytest.FixtureRequest, device: cl.Device) -> Iterator[acs.Runtime]:
    try:
        made = acs.Runtime(device, backend=request.param)
    except acs.UsageError as why:
        pytest.skip(str(why))
    with made:
        yield made


@pytest.fixture
def long_way() -> Iterator[list[str]]:
    """The kernels whose calls went to Python."""
    with inside.calls_by_python() as found:
        yield found


def law(first: int, by: float, *more: int) -> Any:
    return np.array((first, by, more), LAW)


def forms(value: Any) -> list[Any]:
    """Return a value of NumPy in every form that is its bytes."""
    return [value, value[()], value.reshape(1), value.tobytes()]


def test_they_go_the_short_way(rt: acs.Runtime, long_way: list[str]) -> None:
    program = rt.build(SOURCE)
    rt.prebuild(program.obey, program.shift)
    y, want = rt.zeros(9), np.zeros(9, "f4")
    for number in range(12):
        if number == 3:
            before = len(long_way)
        for one in forms(law(number, 0.5, 2, -4, number)):
            program.obey((9,), None, y, one, 7)
            want[:7] += number + 0.5 * np.resize([2, -4, number], 7).astype("f4")
        program.shift((9,), None, y, cl.cltypes.make_float4(0, number, 0, 1), bytes(range(16)))
        program.shift((9,), None, y, np.float32([0, 0.5, 0, 0]), np.arange(16, dtype="u1"))
        want += number * 15 + 1 + 7.5
    assert len(long_way) == before
    assert y.get().tolist() == want.tolist()


def test_truths_of_numpy_are_numbers_as_those_of_python(rt: acs.Runtime) -> None:
    prog = rt.build("kernel void put(global int *x, int a, uchar b, float c) { *x = a + b + c; }")
    x = rt.zeros(1, "i4")
    for one in (True, np.True_, np.bool_(1)):
        x.fill(0)
        prog.put((1,), None, x, one, one, one)
        assert x.get() == [3]


def test_other_forms_give_the_same_by_python(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    y, want = rt.zeros(9), np.zeros(9, "f4")
    turned = law(3, 0.5, 2, 2, 2).astype(LAW.newbyteorder(">"))
    gaps = np.zeros(2, LAW)[::2]
    gaps[0] = turned
    pairs = np.asfortranarray(np.float32([[1, 2], [3, 4]]))  # of a vector: 1, 2, 3, 4
    for _ in range(3):
        for one in (
            turned,
            turned[()],
            gaps,
            bytearray(gaps.tobytes()),
            memoryview(gaps.tobytes()),
        ):
            program.obey((9,), None, y, one, 9)
            want += 4
        for one in (pairs, np.float32([1, 0, 2, 0, 3, 0, 4, 0])[::2]):
            program.shift((9,), None, y, one, np.ones(16, "u1"))
            want += 6
    assert y.get().tolist() == want.tolist()


def test_wrong_ones_are_refused_with_a_plan_as_without(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    rt.prebuild(program.obey)
    y = rt.zeros(9)
    short = np.zeros((), LAW)["more"]
    wrong = (None, 1, "law", short, np.zeros(2, LAW), b"", bytes(17), y, np.float32(1), object())
    said: list[list[str]] = []
    for _ in range(2):
        said.append([])
        for one in wrong:
            with pytest.raises(acs.UsageError, match=r"obey', argument 1 \(Law law\)") as caught:
                program.obey((9,), None, y, one, 9)
            said[-1].append(str(caught.value).split("argument", 1)[1])
        for _ in range(3):
            program.obey((9,), None, y, law(1, 0, 0, 0, 0), 9)
    assert said[0] == said[1]
    assert y.get().tolist() == [6] * 9


def test_each_of_many_launches_has_its_own(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    rt.prebuild(program.obey)
    rows, laws = rt.zeros((6, 9)), np.zeros(6, LAW)
    laws["first"] = range(6)
    for _ in range(3):
        program.obey.launch_many((9,), None, list(rows), laws, 9)
        program.obey.launch_many((9,), None, list(rows), laws[5], 9)
    assert rows.get()[:, 8].tolist() == [3 * number + 15 for number in range(6)]


def test_a_replay_takes_them_anew(rt: acs.Runtime) -> None:
    program = rt.build(SOURCE)
    y = rt.zeros(9)
    with rt.record() as graph:
        handle = program.obey((9,), None, y, law(1, 0, 0, 0, 0), 9)
        program.obey((9,), None, y, law(10, 0, 0, 0, 0), 9)
    graph.replay()
    graph.update(handle, law=law(100, 0, 0, 0, 0))
    graph.replay()
    assert y.get().tolist() == [121] * 9


def test_foreseen_launches_with_other_ones_are_told_apart(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device") as rt:
        program = rt.build(SOURCE)
        rt.prebuild(program.obey)
        rows, want = rt.zeros((4, 9)), 0
        for step in range(60):
            first = 1 if step % 7 else step
            for row in rows:
                program.obey((9,), None, row, law(first, 0, 0, 0, 0), 9)
            want += first
            rt.finish()
        assert rows.get().tolist() == [[want] * 9] * 4


@pytest.mark.parametrize("nbytes", [1016, 1020, 4000])
def test_long_ones_are_launched_by_python_and_by_queues(device: cl.Device, nbytes: int) -> None:
    many = nbytes // 4
    source = f"""typedef struct {{ int a[{many}]; }} Long;
        kernel void add(global int *y, Long from)
        {{ y[get_global_id(0)] += from.a[{many} - 1 - get_global_id(0)]; }}"""
    value = np.array((np.arange(many),), np.dtype([("a", "i4", many)]))
    want = [4 * (many - 1 - i) for i in range(8)]
    context = cl.Context([device])
    with acs.Runtime(context=context) as rt:
        program, y = rt.build(source), rt.zeros(8, "i4")
        for _ in range(4):
            program.add((8,), None, y, value)
        assert y.get().tolist() == want
        queue = acs.Queue(context, runtime=rt, bypass=False)
        kernel = cl.Program(context, source).build().add
        target = cl.Buffer(context, cl.mem_flags.READ_WRITE, 32)
        cl.enqueue_fill_buffer(queue, target, np.int32(0), 0, 32)
        for _ in range(4):
            kernel(queue, (8,), None, target, value)
        found = np.empty(8, "i4")
        cl.enqueue_copy(queue, found, target)
        assert found.tolist() == want
        assert testing.launched(rt) > 8


def test_values_that_are_laid_out_otherwise_say_what_to_give(device: cl.Device) -> None:
    source = """
    typedef struct { char a; int b; } Pair;
    enum Way { ON, OFF };
    kernel void put(global int *x, Pair one, enum Way way) { x[0] = one.b + way; }
    """
    fields = [("a", "i1"), ("b", "i4")]
    as_c, packed = (np.zeros((), np.dtype(fields, align=is_c)) for is_c in (True, False))
    as_c["b"] = 6
    with acs.Runtime(device) as rt:
        x, put = rt.zeros(1, "i4"), rt.build(source).put
        with pytest.raises(
            acs.UsageError, match=r"5 bytes instead of 8; np.dtype\(…, align=True\)"
        ):
            put((1,), None, x, packed, np.int32(1))
        with pytest.raises(acs.UsageError, match=r"such as np.int32\(1\)"):
            put((1,), None, x, as_c, 1)
        put((1,), None, x, as_c, np.int32(1))
        assert x.get() == 7


def test_a_truth_in_an_array_without_axes_is_a_number(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        x = rt.zeros(1, "i4")
        put = rt.build("kernel void put(global int *x, int n) { x[0] += n; }").put
        for one in (np.array(True), np.array(3), True, np.True_):
            put((1,), None, x, one)
        assert x.get() == 6
