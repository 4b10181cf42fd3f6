"""Tuning: orders, and cuts of pairs of kernels, are tried, and stay where they are clearly faster.

What takes how long is said by the test: here nothing is measured but that it can be.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from conftest import Environment
from inside import compared_by

import acs_cl as acs
from acs_cl.graph.tuning import Gain
from acs_cl.scheduler.segment import Segment
from acs_cl.tools import cli

SOURCE = """
kernel void one(global const int *x, global int *y) { int i = get_global_id(0); y[i] = x[i] + 1; }
kernel void two(global const int *x, global int *y) { int i = get_global_id(0); y[i] = 2 * x[i]; }
kernel void add(global int *x) { x[get_global_id(0)] += 1; }
"""
N = 2048
Says = Callable[[Callable[[str], float]], None]


@pytest.fixture(scope="module")
def made(device: cl.Device) -> Iterator[tuple[acs.Runtime, acs.Program]]:
    with acs.Runtime(backend="device") as rt:
        yield rt, rt.build(SOURCE)


@pytest.fixture
def says(environment: Environment, tmp_path: Any) -> Iterator[Says]:
    """Has the comparison of two graphs say what a function makes of how the second one is cut."""
    environment(ACS_CL_CACHE=str(tmp_path))

    with ExitStack() as stack:

        def put(speed: Callable[[str], float]) -> None:
            def compared(one: Any, other: Any) -> Gain:
                one.replay().wait()
                other.replay().wait()
                gain = speed(cuts_of(other)) / speed(cuts_of(one))
                return Gain(gain, gain)

            stack.enter_context(compared_by(compared))

        yield put


def cuts_of(graph: acs.Graph) -> str:
    """Into how many bands each launch is cut."""
    found: list[int] = []
    for piece in graph.pieces:
        found += [len(cuts.bands) for cuts in piece.cuts] if isinstance(piece, Segment) else []
        found += [] if isinstance(piece, Segment) else [len(getattr(piece, "parts", ()))]
    return " ".join(map(str, found))


def record(made: tuple[acs.Runtime, acs.Program], **how: Any) -> tuple[acs.Graph, list[acs.Handle]]:
    rt, prog = made
    x, y, z = (rt.array(np.arange(N), "i4") for _ in range(3))
    with rt.record() as graph:
        handles = [
            prog.one((N,), (256,), x, y, **how),
            prog.two((N,), (256,), y, z, **how),
            prog.two((N,), (256,), z, x, **how),
        ]
    return graph, handles


def test_the_fastest_cut_of_a_pair_stays_and_auto_takes_it_up(
    made: tuple[acs.Runtime, acs.Program], says: Says
) -> None:
    says(lambda cuts: {"4 4 4": 1.5, "0 4 4": 1.2}.get(cuts, 1.0))
    graph, _ = record(made)
    found = graph.tune()
    assert (found.cuts, found.gain.median) == ({"one": "4", "two": "4"}, 1.5)
    assert [one.names for one in found.tried] == [("one", "two"), ("two", "two")]
    assert "one and two: 4 (" in str(found)
    assert str(found).startswith("1.50 times as fast as untuned")
    assert cuts_of(graph) == "4 4 4"
    graph.verify()
    assert cuts_of(record(made, bands="auto")[0]) == "4 4 4"
    assert cuts_of(record(made)[0]) == "0 0 0"  # off, unless it is asked for


def test_launches_on_lanes_are_tuned_too(device: cl.Device, says: Says) -> None:
    """Recorded, from the next replay on, and those that are not recorded."""
    with acs.Runtime(device, backend="lanes") as rt:
        made = rt, rt.build(SOURCE)
        says(lambda cuts: {"4 4 4": 1.5, "0 4 4": 1.2}.get(cuts, 1.0))
        graph, _ = record(made)
        graph.tune()
        assert cuts_of(graph) == cuts_of(record(made, bands="auto")[0]) == "4 4 4"
        x, y = (rt.array(np.arange(N), "i4") for _ in range(2))
        for bands, told in (("auto", "bands: 4, launches"), ("off", "")):
            handle = made[1].one((N,), (256,), x, y, bands=bands)
            assert told in str(rt.explain(handle))
            assert ("bands" in str(rt.explain(handle))) == bool(told)
        graph.replay().wait()
        assert y.get()[7] == 8


def branches(rt: acs.Runtime, prog: acs.Program) -> acs.Graph:
    """A graph of a short branch, a chain of ten, and a launch behind both."""
    x, y, z = (rt.array(np.arange(N), "i4") for _ in range(3))
    with rt.record() as graph:
        prog.add((N,), (256,), x)
        for _ in range(10):
            prog.add((N,), (256,), y)
        prog.one((N,), (256,), x, z)
        prog.one((N,), (256,), y, x)
    return graph


def order_of(graph: acs.Graph) -> list[int]:
    """The launches in the order of the scheduler's words."""
    return [place for piece in graph.pieces if isinstance(piece, Segment) for place in piece.places]


def is_long_first(graph: acs.Graph) -> bool:
    """Whether the long branch begins before the short one."""
    return order_of(graph)[:1] == [1]


def by_order(speed: float) -> Callable[[Any, Any], Gain]:
    """Say that the long branch first is so many times as fast."""

    def compared(one: Any, other: Any) -> Gain:
        gain = speed ** (is_long_first(other) - is_long_first(one))
        return Gain(gain, gain)

    return compared


def test_the_fastest_order_stays_and_auto_takes_it_up(
    device: cl.Device, environment: Environment, tmp_path: Any
) -> None:
    environment(ACS_CL_CACHE=str(tmp_path))
    with acs.Runtime(device, backend="device", order="auto") as rt:
        prog = rt.build(SOURCE)
        graph = branches(rt, prog)
        assert order_of(graph) == [*range(13)]  # nothing was tuned yet
        with compared_by(by_order(1.4)):
            found = graph.tune()
        assert found.order != "first_in"
        assert (found.orders[found.order].median, found.gain.median) == (1.4, 1.4)
        assert f"order: {found.order} (tried, over the best before: " in str(found)
        assert set(found.cuts.values()) == {"off"}
        assert is_long_first(graph)
        graph.verify()
        rows = rt.zeros(N, "i4"), rt.zeros(N, "i4")
        with rt.record() as other:
            for row in rows:
                prog.add((N,), (256,), row)
        assert order_of(other) == [0, 1]  # of another graph nothing is known
    with acs.Runtime(device, backend="device") as rt:
        graph = branches(rt, rt.build(SOURCE))
        assert order_of(graph) == [*range(13)]
        graph.arrange("auto")
        assert is_long_first(graph)
        graph.replay().wait()
        with compared_by(by_order(0.5)):  # tuned anew, it is not the best any more
            assert graph.tune().order == "first_in"
        assert order_of(graph) == [*range(13)]
        again = branches(rt, rt.build(SOURCE))
        again.arrange("auto")
        assert order_of(again) == [*range(13)]


@pytest.mark.parametrize("said", ["'fastest'", "[1]", "{}", "None"])
def test_a_kept_order_that_is_none_counts_as_unknown(
    said: str, device: cl.Device, environment: Environment, tmp_path: Path
) -> None:
    environment(ACS_CL_CACHE=str(tmp_path))
    with acs.Runtime(device, backend="device", order="auto") as rt:
        graph = branches(rt, rt.build(SOURCE))
        with compared_by(by_order(1.4)):
            found = graph.tune().order
        (kept,) = (tmp_path / "orders").iterdir()
        document = json.loads(kept.read_text("utf-8"))
        assert document["order"] == found
        kept.write_text(json.dumps({**document, "order": ast.literal_eval(said)}), "utf-8")
        assert order_of(branches(rt, rt.build(SOURCE))) == [*range(13)]


def test_an_order_that_is_not_clearly_faster_or_does_not_differ_is_left(
    made: tuple[acs.Runtime, acs.Program], environment: Environment, tmp_path: Any
) -> None:
    environment(ACS_CL_CACHE=str(tmp_path))
    graph = branches(*made)
    with compared_by(by_order(1.015)):
        found = graph.tune()
    assert found.order == "first_in"
    assert "critical_path" in found.orders
    assert order_of(graph) == [*range(13)]
    chain, _ = record(made)
    with compared_by(by_order(1.4)):
        assert chain.tune().orders == {}


def are_on_lanes(graph: acs.Graph) -> bool:
    return not any(isinstance(piece, Segment) for piece in graph.pieces)


def test_launches_that_are_faster_on_lanes_leave_the_scheduler(
    made: tuple[acs.Runtime, acs.Program], environment: Environment, tmp_path: Any
) -> None:
    environment(ACS_CL_CACHE=str(tmp_path))

    def compared(one: Any, other: Any) -> Gain:
        gain = (1.5 if are_on_lanes(other) else 1.0) / (1.5 if are_on_lanes(one) else 1.0)
        return Gain(gain, gain)

    rt, prog = made
    graph, _ = record(made)
    assert not are_on_lanes(graph)
    with compared_by(compared):
        found = graph.tune()
    assert found.cuts == {"one": "lanes", "two": "lanes"}
    assert are_on_lanes(graph)
    graph.replay().wait()
    assert "bands='lanes' was asked for" in str(graph.explain())
    again, _ = record(made, bands="auto")
    assert are_on_lanes(again)
    assert "lanes were faster than the scheduler" in str(again.explain())
    assert not are_on_lanes(record(made)[0])
    x, y = rt.array(np.arange(N), "i4"), rt.zeros(N, "i4")
    for bands, told in (("lanes", "on a lane: bands='lanes'"), ("off", "in the scheduler")) * 2:
        handle = prog.one((N,), (256,), x, y, bands=bands)
        assert told in str(rt.explain(handle))
        handle = prog.one((N,), (256,), x, y)
        assert "in the scheduler" in str(rt.explain(handle))
    np.testing.assert_array_equal(y.get(), np.arange(N) + 1)


@pytest.mark.parametrize("backend", ["serial", "lanes", "emulated"])
def test_where_there_are_only_lanes_that_is_nothing_to_try(
    device: cl.Device, backend: str, environment: Environment, tmp_path: Any
) -> None:
    environment(ACS_CL_CACHE=str(tmp_path))
    with acs.Runtime(device, backend=backend) as rt:
        graph, _ = record((rt, rt.build(SOURCE)), bands="lanes")
        found = graph.tune()
        assert all("lanes" not in one.gains for one in found.tried)
        graph.replay().wait()


def test_what_was_found_before_ctrl_c_is_kept(
    made: tuple[acs.Runtime, acs.Program], says: Says
) -> None:
    def speed(cuts: str) -> float:
        if cuts == "4 4 4":
            raise KeyboardInterrupt
        return {"2 2 2": 1.5}.get(cuts, 1.0)

    says(speed)
    graph, _ = record(made)
    with pytest.raises(KeyboardInterrupt):
        graph.tune()
    again, _ = record(made, bands="auto")
    assert "2" in cuts_of(again)


def test_nothing_that_is_not_clearly_faster_stays(
    made: tuple[acs.Runtime, acs.Program], says: Says
) -> None:
    says(lambda cuts: 1.0 if cuts == "0 0 0" else 1.015)
    graph, _ = record(made, bands=8)
    assert "8" in cuts_of(graph)
    found = graph.tune()
    assert set(found.cuts.values()) == {"off"}
    assert found.gain == Gain(1.0, 1.0)
    assert "8 1.01x" in str(found)
    assert str(found).endswith("; none was clearly quicker in the whole graph)")
    assert cuts_of(graph) == "0 0 0"
    again, handles = record(made, bands="auto")
    assert cuts_of(again) == "0 0 0"
    told = str(made[0].explain(handles[0]))
    assert "bands: off, since it was tuned, and whole launches were faster" in told


def test_pairs_that_gain_alone_and_not_together_stay_whole(
    made: tuple[acs.Runtime, acs.Program], says: Says
) -> None:
    gains = iter([Gain(1.3, 1.2), *[Gain(1.0, 0.9)] * 13, Gain(1.01, 1.0)])
    graph, _ = record(made)
    with compared_by(lambda one, other: next(gains)):
        found = graph.tune()
    assert set(found.cuts.values()) == {"off"}
    assert all(one.kept == "" for one in found.tried)
    assert next(gains, None) is None


def test_arrays_have_what_they_had_and_time_is_bounded(
    made: tuple[acs.Runtime, acs.Program], says: Says
) -> None:
    rt, prog = made
    x = rt.array(np.arange(N), "i4")
    others = copied, filled, stored, made_by_host = [rt.zeros(4, "i4") for _ in range(4)]
    with rt.record() as graph:
        for _ in range(3):
            prog.add((N,), (256,), x)
        copied.copy_from(x[:4])
        filled[1:3] = 7
        stored.set([1, 2, 3, 4])
        rt.call(lambda out: out.fill(9), writes=made_by_host)
    graph.replay()
    before = [other.get() for other in others]
    for other in others[1:]:
        other.fill(5)
    before[1:] = [other.get() for other in others[1:]]
    found = graph.tune(1e-9)  # no time for anything
    assert [one.gains for one in found.tried] == [{}]
    graph.tune()  # which measures
    np.testing.assert_array_equal(x.get(), np.arange(N) + 3)
    np.testing.assert_array_equal([other.get() for other in others], before)
    graph.replay()
    np.testing.assert_array_equal(x.get(), np.arange(N) + 6)


def test_what_cannot_be_tuned_says_why(
    made: tuple[acs.Runtime, acs.Program], says: Says, device: cl.Device
) -> None:
    rt, prog = made
    x, left = rt.zeros(N, "i4"), rt.array([2], "i4")
    with rt.record() as graph, acs.loop(left, at_most=3):
        prog.add((N,), (256,), x)
        prog.add((1,), (1,), left)
    with pytest.raises(acs.UsageError, match="the graph has loops, which are not tuned"):
        graph.tune()
    buffer = cl.Buffer(rt.context, cl.mem_flags.READ_WRITE, x.nbytes)
    with rt.record() as foreign:
        x.fill(1)
        prog.add((N,), (256,), buffer)
    with pytest.raises(
        acs.UsageError, match=r"tune: launch 2 \(add\) writes memory that is not an"
    ):
        foreign.tune()
    graph.close()
    with pytest.raises(acs.UsageError, match="tune: the graph is closed"):
        graph.tune()


PROGRAM = """
import sys
import acs_cl as acs
with acs.Runtime() as rt:
    prog = rt.build("kernel void add(global int *x) { x[get_global_id(0)] += 1; }")
    x, left = rt.zeros(1024, "i4"), rt.array([2], "i4")
    with rt.record() as graph:
        for _ in range(2):
            prog.add((1024,), (256,), x)
    with rt.record() as loop, acs.loop(left, at_most=2):
        prog.add((1,), (1,), left)
    for again in range(2):
        graph.replay()
        loop.replay()
    assert (x.get() == 4).all()
sys.exit(int(sys.argv[1]))
"""


def test_the_graphs_of_a_program_are_tuned_from_outside(
    device: cl.Device, environment: Environment, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    environment(ACS_CL_CACHE=str(tmp_path), PYOPENCL_CTX=None)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    assert cli.main(["tune", "--backend", "device", str(program), "3"]) == 3
    said = capfd.readouterr().err
    assert 'acs-cl tune: for graphs with order="auto", launches with bands="auto"\n' in said
    assert "[  0%] add: bands=lanes\n" in said
    assert said.count("times as fast as untuned\nadd: ") == 1  # once, not the loop
    stopped = PROGRAM.replace("sys.exit(int(sys.argv[1]))", "raise KeyboardInterrupt")
    program.write_text(stopped)
    done = subprocess.run(
        [sys.executable, "-m", "acs_cl", "tune", "--backend", "device", program],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert "acs-cl tune: interrupted\nacs-cl tune: for graphs" in done.stderr
    program.write_text("")
    assert cli.main(["tune", str(program), "--backend", "device"]) == 0
    said = capfd.readouterr().err
    assert "--backend went to the program: options of ours come before its name" in said
    assert "replayed no graph that can be tuned" in said
    assert cli.main(["tune", str(tmp_path / "none.py")]) == 1
