"""Graphs saved and loaded: the same launches in another runtime, and no file that does harm."""

from __future__ import annotations

import gc
import io
import json
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from fuzz.kernels import MODES
from fuzz.kernels import SOURCE as STEPS
from fuzz.steps import Step, run
from pyopencl import cltypes
from test_graph import Expected, Recording

import acs_cl as acs

SOURCE = """
typedef struct { float a; int b; char pad[8]; } pair;
kernel void add(global const float *x, global float *y, float a)
{ size_t i = get_global_id(0); y[i] += a * x[i] * N; }
kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }
kernel void native_(global float *x) { x[get_global_id(0)] += 100; }
kernel void native(global float *x) { x[get_global_id(0)] += 100; }
kernel void keep(global const float *x, global uint *count, global float *out)
{ int i = get_global_id(0); if (x[i] > 2) out[atomic_inc(count)] = x[i]; }
kernel void sums(global const float *x, global float *y, local float *part)
{
    size_t i = get_local_id(0);
    part[i] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!i) { float all = 0; for (uint k = 0; k < get_local_size(0); ++k) all += part[k];
              y[get_group_id(0)] += all; }
}
kernel void typed(global float *x, pair p, float4 v) { x[0] = p.a + p.b + v.x + v.w; }
kernel void down(global int *left, global int *go) { *left -= 1; *go = *left > 0; }
kernel void roam(global float *x, global float *y)
{ global float *z = (global float *)((uintptr_t)x ^ 0); z[0] += 1; y[0] = z[0]; }
kernel void both(global float *x, global float *rest)
{ rest[0] += 1; x[0] += rest[0] + 10 * rest[1]; }
kernel void lies(global float *x) { x[get_global_id(0) % 2] += 1; }
"""

PAIR = np.dtype([("a", "f4"), ("b", "i4"), ("pad", "S8")])


def record(rt: acs.Runtime) -> tuple[acs.Graph, dict[str, acs.Array]]:
    """One call of every kind that a file can hold."""
    prog = rt.build(SOURCE, macros={"N": 2})
    x, y = rt.array([[1, 2, 3, 4], [5, 6, 7, 8]], "f4"), rt.zeros((2, 4))
    weights = rt.array([10, 20, 30, 40], "f4")
    count, out, flag = rt.zeros(1, "u4"), rt.zeros(8), rt.zeros(1, "i4")
    prog.lies.access(x="w[0:2]")
    left = rt.array([5], "i4")
    four = cltypes.make_float4(3, 0, 0, 4)  # type: ignore[attr-defined]
    with rt.record() as graph:
        y.fill(1)
        out.fill(np.float32(0))
        count.set(np.zeros(1, "u4"), copy=False)
        prog.add((4,), None, x[0], y[1], 1)
        prog.add((4,), None, weights, y[1], np.float32(0.5))
        prog.add((2,), (1,), weights, y[0], 3.0, offset=1)
        prog.keep((4,), None, x[1], count, out)
        prog.twice((acs.size(count, upto=4),), None, out)
        prog.twice((4,), None, x[0], when=flag)
        rt.launch(cl.Kernel(prog.native, "native"), (1,), None, out[7:])
        prog.sums((4,), (2,), x[0], y[0, :2], cl.LocalMemory(8))
        prog.typed((1,), None, out[6:], np.array((1, 2, b""), PAIR)[()], four)
        prog.lies((2,), None, out[4:], reads=out[4:6], writes=[out[4:6]])
        left.fill(5)
        with acs.loop(flag, at_most=2):
            prog.down((1,), None, left, flag)
        x[:, 1:3].set([[0.5], [0.25]])
        y[:, 3].copy_from(x[:, 0])
    return graph, {"x": x, "y": y, "out": out, "flag": flag}


def after(graph: acs.Graph, arrays: Any, times: int = 2) -> list[bytes]:
    """What the arrays hold after some replays from the same beginning."""
    arrays["x"].set(np.arange(8).reshape(2, 4))
    arrays["flag"].set([1])
    found = []
    for _ in range(times):
        graph.replay()
        values = {name: array.get() for name, array in arrays.items()}
        values["out"][:4].sort()  # they come in any order
        found += [value.tobytes() for value in values.values()]
    return found


@pytest.mark.rotate("make", 3)
def test_a_loaded_graph_does_what_the_saved_one_does(rt: acs.Runtime, tmp_path: Path) -> None:
    with acs.Runtime(backend="serial") as first:
        graph, arrays = record(first)
        graph.save(tmp_path / "step.acs", **arrays)
        expected = after(graph, arrays)
    loaded = rt.load(tmp_path / "step.acs")
    assert len(loaded) == len(graph)
    assert set(loaded.arrays) == set(arrays)
    assert after(loaded, loaded.arrays) == expected
    loaded.save(tmp_path / "again.acs")  # under the same names
    assert after(rt.load(tmp_path / "again.acs"), loaded.arrays) != [], "of its own memory"
    again = rt.load(tmp_path / "again.acs")
    assert after(again, again.arrays) == expected


@pytest.mark.rotate("configuration", 3)
@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_give_in_another_runtime_what_numpy_gives(
    configuration: tuple[str, str], seed: int, device: cl.Device, tmp_path: Path
) -> None:
    rng = random.Random(f"files {seed}")
    names = [*MODES, *MODES, "copy", "fill", "set"]
    steps: list[Step] = [(rng.choice(names), rng.randbytes(11)) for _ in range(rng.randint(1, 30))]
    with acs.Runtime(device, backend="out_of_order") as rt:
        got = Recording(rt, rt.build(STEPS))
        with rt.record() as graph:
            run(steps, got)
        if rng.random() < 0.5:
            graph.replay()  # a file holds what is there when it is saved
        before = [array.get() for array in got.arrays]
        rt.finish()
        graph.save(tmp_path / "random.acs")
        used = {
            f"a{slot}": array for slot, array in enumerate(got.arrays) if _uses(graph, array)
        }  # fmt: skip
        graph.save(tmp_path / "named.acs", **used)
    with acs.Runtime(device, backend=configuration[0], issue=configuration[1]) as rt:
        loaded = rt.load(tmp_path / "named.acs")
        for name, array in loaded.arrays.items():
            array.set(before[int(name[1:])])
        assert len(rt.load(tmp_path / "random.acs")) == len(loaded)
        loaded.replay()
        expected = Expected()
        for target, values in zip(expected.arrays, before, strict=True):
            target[...] = values
        run(steps, expected)
        for slot, (want, _) in enumerate(zip(expected.arrays, before, strict=True)):
            if f"a{slot}" in loaded.arrays:
                assert np.array_equal(loaded.arrays[f"a{slot}"].get(), want), (slot, steps)


def _uses(graph: acs.Graph, array: acs.Array) -> bool:
    assert array.base is not None
    mine = {array.base.number}
    return any(
        mine & {span.base for span in (*one.access.reads, *one.access.writes)}
        for one in graph.handles
    )


@pytest.mark.rotate("make", 3)
def test_loops_are_saved_with_what_they_repeat(rt: acs.Runtime, tmp_path: Path) -> None:
    with acs.Runtime(backend="serial") as first:
        prog = first.build(SOURCE, macros={"N": 1})
        x, left, go, inner, more = (first.zeros(1, "i4") for _ in range(5))
        total = first.zeros(1)
        with first.record() as graph:
            left.fill(3)
            go.fill(1)
            with acs.loop(go, at_most=10):
                inner.fill(4)
                more.fill(1)
                with acs.loop(more, at_most=10):
                    prog.native_((1,), None, total)
                    prog.down((1,), None, inner, more)
                prog.down((1,), None, left, go)
            prog.twice((1,), None, total)
        graph.save(tmp_path / "loops", total=total)
        with pytest.raises(acs.UsageError, match="does not use"):
            graph.save(tmp_path / "other", x=x)
        graph.replay()
        expected = total.get().tolist()
    loaded = rt.load(tmp_path / "loops")
    loaded.replay()
    assert loaded.arrays["total"].get().tolist() == expected == [2 * 100 * 3 * 4]
    loaded.save(tmp_path / "again")
    again = rt.load(tmp_path / "again")
    again.replay()
    assert again.arrays["total"].get().tolist() == expected


def test_memory_without_a_name_keeps_what_it_holds(tmp_path: Path) -> None:
    with acs.Runtime() as rt:
        prog = rt.build(SOURCE, macros={"N": 1})
        weights, y = rt.array([1, 2, 3], "f4"), rt.array([9, 9, 9], "f4")
        with rt.record() as graph:
            prog.add((3,), None, weights, y, 1)
        weights.set([4, 5, 6])
        graph.save(tmp_path / "g", y=y)
        loaded = rt.load(tmp_path / "g")
        loaded.replay()
        assert loaded.arrays["y"].get().tolist() == [4, 5, 6]  # named: zeros, unless set or given
        mine = rt.array([1, 1, 1], "f4")
        rt.load(tmp_path / "g", y=mine).replay()
        assert mine.get().tolist() == [5, 6, 7]


def test_a_loaded_graph_has_a_kernel_once_however_often_it_is_called() -> None:
    with acs.Runtime() as rt, io.BytesIO() as file:
        prog = rt.build(SOURCE, macros={"N": 2})
        x = rt.zeros(4)
        with rt.record() as graph:
            for _ in range(20):
                prog.twice((4,), None, x)
                prog.lies((2,), None, x, reads=x, writes=x)
        graph.save(file, x=x)
        file.seek(0)
        before = number_of(type(prog.twice))
        loaded = rt.load(file)
        assert number_of(type(prog.twice)) - before == 2
        loaded.replay()
        graph.replay()
        assert loaded.arrays["x"].get().tolist() == x.get().tolist()


def number_of(kind: type) -> int:
    """How many objects of a class there are."""
    gc.collect()
    return sum(isinstance(one, kind) for one in gc.get_objects())


@pytest.mark.parametrize("backend", ["out_of_order", "device"])
def test_so_does_what_a_launch_that_may_touch_any_memory_reads(
    backend: str, device: cl.Device, tmp_path: Path
) -> None:
    with acs.Runtime(device, backend=backend) as rt:
        prog = rt.build(SOURCE, macros={"N": 1})
        assert prog.roam.signature.anywhere
        x, y = rt.array([5], "f4"), rt.zeros(1)
        with rt.record() as graph:
            prog.roam((1,), None, x, y)
        graph.save(tmp_path / "g", y=y)
        loaded = rt.load(tmp_path / "g")
        loaded.replay()
        assert loaded.arrays["y"].get().tolist() == [6]


NAMED: dict[str, tuple[Callable[[Any], dict[str, Any]], list[float], bool]] = {
    "a part": (lambda x: {"some": x[:2]}, [101 + 70, 0], True),
    "the other part": (lambda x: {"some": x[2:]}, [1, 0], True),
    "both parts": (lambda x: {"some": x[:2], "rest": x[2:]}, [1, 0], False),
    "all of it": (lambda x: {"some": x}, [1, 0, 1, 0], False),
    "every other number": (lambda x: {"some": x[::2]}, [1 + 70, 1], True),
    "in turns": (lambda x: {"some": x[::2], "rest": x[1::2]}, [1, 1], False),
}
"""Named views of [3, 4, 100, 7], what the first one holds after a replay, and whether the file has
contents of their memory."""


@pytest.mark.parametrize("what", NAMED)
def test_what_no_name_covers_keeps_what_it_holds(what: str, tmp_path: Path) -> None:
    of, expected, is_kept = NAMED[what]
    with acs.Runtime() as rt:
        prog = rt.build(SOURCE, macros={"N": 1})
        x = rt.array([3, 4, 100, 7], "f4")
        with rt.record() as graph:
            prog.both((1,), None, x[:2], x[2:])
        graph.save(tmp_path / "g", **of(x))
        loaded = rt.load(tmp_path / "g")
        loaded.replay()
        assert loaded.arrays["some"].get().tolist() == expected
    with zipfile.ZipFile(tmp_path / "g") as archive:
        (memory,) = json.loads(archive.read("graph.json"))["memory"]
    assert (memory["contents"] is not None) == is_kept


def test_numbers_of_a_loaded_graph_can_be_updated(tmp_path: Path) -> None:
    with acs.Runtime() as rt:
        graph, arrays = record(rt)
        graph.save(tmp_path / "g", **arrays)
        loaded = rt.load(tmp_path / "g")
        assert [one.name for one in loaded.handles] == [one.name for one in graph.handles]
        place = [one.name for one in graph.handles].index("add")
        for one in (graph, loaded):
            one.update(one.handles[place], a=7)
        assert after(loaded, loaded.arrays) == after(graph, arrays)
        graph.save(tmp_path / "h", **arrays)  # with the number that it has now
        other = rt.load(tmp_path / "h")
        assert after(other, other.arrays) == after(loaded, loaded.arrays)


def test_named_arrays_follow_swaps_and_are_saved_by_their_names_again(tmp_path: Path) -> None:
    first, second = tmp_path / "first.acs", tmp_path / "second.acs"
    with acs.Runtime(backend="serial") as rt:
        prog = rt.build(SOURCE, macros={"N": 2})
        x, both = rt.array([1, 2], "f4"), rt.zeros(4)
        with rt.record() as graph:
            prog.add((2,), None, x, both[:2], 1)
            prog.add((2,), None, both[:2], both[2:], 1)
        graph.save(first, x=x, sums=both[:2], totals=both[2:])
    with acs.Runtime(backend="serial") as rt:
        mine = rt.zeros(6)
        graph = rt.load(first, sums=mine[1:3])
        assert graph.arrays["sums"].shape == (2,)
        graph.arrays["x"].set([3, 4])
        graph.replay()
        assert mine.get().tolist() == [0, 6, 8, 12, 16, 0]
        assert graph.arrays["totals"].get().tolist() == [12, 16]  # it moved along
        other = rt.array([5, 6], "f4")
        graph.swap(graph.arrays["x"], other)
        assert graph.arrays["x"] is other
        graph.save(second)
    with acs.Runtime(backend="serial") as rt:
        graph = rt.load(second)
        assert sorted(graph.arrays) == ["sums", "totals", "x"]
        graph.arrays["x"].set([1, 1])
        graph.replay()
        assert graph.arrays["totals"].get().tolist() == [4, 4]


def test_a_path_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with acs.Runtime(backend="serial") as rt:
        graph, named = record(rt)
        (tmp_path / "folder").mkdir()
        with pytest.raises(acs.UsageError, match=r"save: cannot write '.*folder': Is a directory"):
            graph.save(tmp_path / "folder", **named)
        for here in ("", ".", "/"):
            with pytest.raises(acs.UsageError, match="it is a folder"):
                graph.save(here, **named)
        graph.save(tmp_path / "step.acs", **named)


def test_another_process_loads_it_without_the_source(tmp_path: Path) -> None:
    with acs.Runtime() as rt:
        graph, arrays = record(rt)
        graph.save(tmp_path / "g", **arrays)
        after(graph, arrays, times=1)
        expected = arrays["y"].get().tolist()
    program = f"""
import acs_cl as acs, numpy as np
with acs.Runtime() as rt:
    graph = rt.load({str(tmp_path / "g")!r})
    graph.arrays["x"].set(np.arange(8).reshape(2, 4))
    graph.arrays["flag"].set([1])
    graph.replay()
    print(graph.arrays["y"].get().tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == str(expected), done.stderr


# ---- what cannot be saved or loaded --------------------------------------------------------------


def test_what_a_file_cannot_hold_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    with acs.Runtime() as rt:
        prog = rt.build(SOURCE, macros={"N": 1})
        x = rt.zeros(4)
        sampler = cl.Buffer(rt.context, cl.mem_flags.READ_WRITE, 16)

        def refused(what: str, launch: Callable[[], object], **names: Any) -> None:
            with rt.record() as graph:
                launch()
            with pytest.raises(acs.UsageError, match=what):
                graph.save(tmp_path / "g", **names)
            assert not list(tmp_path.iterdir())

        refused("call 1 of the graph is a host task", lambda: rt.call(print, reads=x))
        refused("Buffer", lambda: prog.twice((4,), None, sampler))
        refused("does not use y", lambda: prog.twice((4,), None, x), y=rt.zeros(4))
        refused("expected an array", lambda: prog.twice((4,), None, x), y=3)
        foreign = cl.Program(rt.context, SOURCE).build("-DN=1")
        refused("made of a program|Runtime.build", lambda: _of_binary(rt, foreign, x))
        prog.lies.access(lambda size, local, x: ([x], [x]))
        refused("a function declares", lambda: prog.lies((2,), None, x))


def _of_binary(rt: acs.Runtime, program: cl.Program, x: acs.Array) -> None:
    binaries: Any = program.get_info(cl.program_info.BINARIES)
    again = cl.Program(rt.context, [rt.device], [binaries[0]]).build()
    rt.launch(cl.Kernel(again, "twice"), (4,), None, x)


def test_wrong_names_and_arrays_are_refused(tmp_path: Path) -> None:
    with acs.Runtime() as rt, acs.Runtime() as other:
        graph, arrays = record(rt)
        graph.save(tmp_path / "g", **arrays)
        with pytest.raises(acs.UsageError, match="no array 'z'; it has x, y, out, flag"):
            rt.load(tmp_path / "g", z=rt.zeros(1))
        with pytest.raises(acs.UsageError, match="load: x=: got"):
            rt.load(tmp_path / "g", x=rt.zeros((2, 5)))
        with pytest.raises(acs.UsageError, match="load: x=: got"):
            rt.load(tmp_path / "g", x=other.zeros((2, 4)))
        with pytest.raises(acs.UsageError, match="cannot read"):
            rt.load(tmp_path / "nowhere")
        with rt.record(), pytest.raises(acs.UsageError, match="inside a recording"):
            rt.load(tmp_path / "g")


def test_a_changed_file_is_refused_or_is_another_right_graph(tmp_path: Path) -> None:
    """Every byte counts: a zip has sums over its parts, and what is in them is looked at."""
    rng = random.Random(1)
    with acs.Runtime(backend="serial") as rt:
        graph, arrays = record(rt)
        graph.save(tmp_path / "g", **arrays)
        whole = (tmp_path / "g").read_bytes()
        for _ in range(150):
            cut = bytearray(whole)
            if rng.random() < 0.2:
                del cut[rng.randrange(len(cut)) :]
            else:
                cut[rng.randrange(len(cut))] ^= 1 << rng.randrange(8)
            (tmp_path / "h").write_bytes(cut)
            try:
                loaded = rt.load(tmp_path / "h")
            except acs.AcsError:
                continue
            assert len(loaded) == len(graph)  # of what does not matter, such as a date


def changes(said: Any, rng: random.Random) -> None:
    """One value of a JSON text, somewhere in it, becomes another one."""
    while True:
        keys = list(said) if isinstance(said, dict) else range(len(said))
        if not keys:
            return
        key = rng.choice(list(keys))
        if isinstance(said[key], (dict, list)) and said[key] and rng.random() < 0.9:
            said = said[key]
            continue
        if rng.random() < 0.1:
            del said[key]
        else:
            said[key] = rng.choice(
                [-1, 0, 1, 7, 2**45, 2**63, 2**64, 0.5, "x", "\ud800", "<f4", "|O", None, True, [],
                 {}, [3, 4], {"view": [0, 0, [2], [4], "<f4"]}, {"bytes": [0, 4]}, float("nan")]
            )  # fmt: skip
        return


def test_wrong_files_never_do_harm(tmp_path: Path) -> None:
    """Whole files with wrong contents: an error that names the file or the call, or a graph."""
    rng = random.Random(2)
    refused = 0
    with acs.Runtime(backend="serial") as rt:
        graph, arrays = record(rt)
        graph.save(tmp_path / "g", **arrays)
        with zipfile.ZipFile(tmp_path / "g") as archive:
            text, data = archive.read("graph.json"), archive.read("data")
        for _ in range(250):
            said = json.loads(text)
            for _ in range(rng.choice([1, 1, 2, 5])):
                changes(said, rng)
            with zipfile.ZipFile(tmp_path / "h", "w") as archive:
                archive.writestr("graph.json", json.dumps(said))
                archive.writestr("data", data)
            try:
                rt.load(tmp_path / "h")
            except acs.AcsError:
                refused += 1
        rt.finish()
    assert refused > 100


def test_packed_files_and_objects_are_refused(tmp_path: Path) -> None:
    with acs.Runtime() as rt:
        graph, arrays = record(rt)
        graph.save(tmp_path / "g", **arrays)
        with zipfile.ZipFile(tmp_path / "g") as archive:
            text, data = archive.read("graph.json").decode(), archive.read("data")
        with zipfile.ZipFile(tmp_path / "bomb", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("graph.json", text)
            archive.writestr("data", bytes(10_000_000))
        with pytest.raises(acs.UsageError, match="is packed"):
            rt.load(tmp_path / "bomb")
        with zipfile.ZipFile(tmp_path / "object", "w") as archive:
            archive.writestr("graph.json", text.replace('"<f4"', '"|O"'))
            archive.writestr("data", data)
        with pytest.raises(acs.UsageError, match="object"):
            rt.load(tmp_path / "object")
        with zipfile.ZipFile(tmp_path / "deep", "w") as archive:
            deep = json.loads(text)
            call = next(one for one in deep["calls"] if "kernel" in one)
            call["args"][-1] = json.loads("[" * 900 + "]" * 900)
            archive.writestr("graph.json", json.dumps(deep))
            archive.writestr("data", data)
        with pytest.raises(acs.UsageError, match="more than 8 values in one another"):
            rt.load(tmp_path / "deep")
        with zipfile.ZipFile(tmp_path / "later", "w") as archive:
            archive.writestr("graph.json", text.replace('"acs_cl_graph": 1', '"acs_cl_graph": 2'))
            archive.writestr("data", data)
        with pytest.raises(acs.UsageError, match="version 2"):
            rt.load(tmp_path / "later")
