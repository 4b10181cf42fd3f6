"""Programs that take long to build: no launch, no graph and no end of a program waits for that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event

import inside
import numpy as np
import pyopencl as cl
import pytest
from inside import Scheduler

import acs_cl as acs
from acs_cl import devices
from acs_cl.host import isolated
from acs_cl.host.output import say
from acs_cl.opencl_c.functions.translated import CannotTranslate
from acs_cl.opencl_c.modes import bodies, outline
from acs_cl.opencl_c.modes.meetings import Meetings
from acs_cl.opencl_c.parse import clang
from acs_cl.scheduler.apart import Apart
from acs_cl.testing.changing import changed

SOURCE = """
kernel void inc(global uint *x) { x[get_global_id(0)] += 1; }
kernel void less(global uint *x, global uint *n) { x[get_global_id(0)] += 2; *n -= 1; }
"""


@pytest.fixture
def goes_on(own_cache: Path) -> Iterator[Event]:
    """What ends builds. All programs are large."""
    with inside.slow_builds() as event:
        yield event


@pytest.fixture
def rt(device: cl.Device, scheduler: None, goes_on: Event) -> Iterator[acs.Runtime]:
    """A runtime on backend 'device'."""
    with acs.Runtime(device, backend="device") as runtime:
        yield runtime
        goes_on.set()


def test_a_graph_goes_to_lanes_until_its_scheduler_is_built(
    rt: acs.Runtime, goes_on: Event
) -> None:
    program, x = rt.build(SOURCE), rt.zeros(8, "u4")
    with rt.record() as graph:
        for _ in range(4):
            program.inc((8,), None, x)
    assert "its scheduler is not built yet: 4" in str(graph.explain())
    graph.replay()
    assert x.get().tolist() == [4] * 8
    assert Scheduler(rt).tasks == 0
    goes_on.set()
    rt.prebuild(program.inc)
    graph.replay()
    assert x.get().tolist() == [8] * 8
    assert "segments: 1, of 4 launches" in str(graph.explain())
    pieces = graph.pieces
    graph.replay()
    assert graph.pieces == pieces, "it is cut once more, not each time"


def test_a_loop_is_driven_by_the_host_until_its_scheduler_is_built(
    rt: acs.Runtime, goes_on: Event
) -> None:
    program, x, left = rt.build(SOURCE), rt.zeros(1, "u4"), rt.array(np.array([3], "u4"))
    with rt.record() as graph:
        program.less((1,), None, x, left)
    assert graph.replay(while_=left, at_most=9).rounds == 3
    assert "the host reads the word" in str(graph.explain())
    goes_on.set()
    rt.prebuild(program.less)
    left.fill(2)
    assert graph.replay(while_=left, at_most=9).rounds == 2
    assert x.get().tolist() == [10]
    assert "the device itself reads the word" in str(graph.explain())


def test_a_graph_waits_for_a_small_one_only_so_long(rt: acs.Runtime, goes_on: Event) -> None:
    program, x = rt.build(SOURCE), rt.zeros(8, "u4")

    def slow(build: Callable[..., object]) -> Callable[..., object]:
        return lambda *_: goes_on.wait() and 1 / 0

    with inside.build_step("build", slow), inside.waits_of_graphs(0.05):
        with rt.record() as graph:
            program.inc((8,), None, x)
        graph.replay()
        assert x.get().tolist() == [1] * 8
        goes_on.set()


def test_a_wait_that_lasts_says_for_what(
    rt: acs.Runtime, goes_on: Event, capsys: pytest.CaptureFixture[str]
) -> None:
    program = rt.build(SOURCE)

    def told(text: str) -> None:
        say(text)
        goes_on.set()

    with inside.waits_for_builds(told):
        rt.prebuild(program.inc, program.less)
    expected = "acs_cl: waiting for a scheduler for inc, less, 120 s at most\n"
    assert capsys.readouterr().err == expected


def test_a_graph_that_waits_no_longer_says_where_it_goes(
    rt: acs.Runtime, goes_on: Event, capsys: pytest.CaptureFixture[str]
) -> None:
    program, x = rt.build(SOURCE), rt.zeros(8, "u4")
    with inside.waits_for_builds(say), inside.waits_of_graphs(0.05), rt.record() as graph:
        program.inc((8,), None, x)
    expected = "acs_cl: a graph goes to lanes until there is a scheduler for inc\n"
    assert capsys.readouterr().err == expected
    graph.replay()
    assert x.get().tolist() == [1] * 8


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have no notes")
def test_an_interrupted_wait_says_for_what(rt: acs.Runtime, goes_on: Event) -> None:
    program = rt.build(SOURCE)
    interrupts = inside.waits_for_builds(lambda _: signal.raise_signal(signal.SIGINT))
    with interrupts, pytest.raises(KeyboardInterrupt) as caught:
        rt.prebuild(program.inc)
    assert caught.value.__notes__ == ["acs_cl: interrupted while waiting for a scheduler for inc"]
    x = rt.zeros(8, "u4")
    program.inc((8,), None, x)
    assert x.get().tolist() == [1] * 8


def test_the_process_finds_what_a_source_includes_from_the_current_folder(
    device: cl.Device, own_cache: Path, tmp_path: Path
) -> None:
    source = '#include "here.h"\nkernel void k(global int *x) { x[0] = HERE; }'
    before = os.getcwd()
    with closing(Apart(device, isolated.MODEST)) as apart:
        for number in (1, 2):
            folder = tmp_path / str(number)
            folder.mkdir()
            (folder / "here.h").write_text(f"#define HERE {number}7\n")
            os.chdir(folder)
            try:
                found = apart.translate(source, ["-I."], "k_")
            finally:
                os.chdir(before)
            assert found is not None
            assert f"{number}7" in found.text
            assert found.functions["k"].symbol.startswith("k_")


def test_the_process_says_why_a_source_cannot_be_translated(own_cache: Path) -> None:
    source = "kernel void k(global int *x) { int acs_ctx = 1; x[0] = acs_ctx; }"
    with (
        closing(Apart(devices.choose(), isolated.MODEST)) as apart,
        pytest.raises(CannotTranslate, match="the reserved name acs_ctx"),
    ):
        apart.translate(source, [], "k_")


STOPS = """
from acs_cl.host import isolated

class Order(dict):
    def items(self):  # as it is written
        isolated.stop()
        return super().items()

helper = isolated.Helper("acs_cl.scheduler.apart", isolated.MODEST)
try:
    print(helper.ask(Order(more="than a pipe holds" * 100_000)))
except isolated.TooLate:
    print("stopped")
"""


def test_a_program_that_ends_while_it_tells_a_helper_does_not_do_the_work_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STOPS], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("stopped\n", "", 0)


def test_only_who_insists_has_a_prompt_process(rt: acs.Runtime, goes_on: Event) -> None:
    """A graph goes on without its scheduler, and its kernels need the cores."""
    asked: list[isolated.Manners] = []
    both = Event()

    def compiled(apart: Apart, *_: object) -> bool:
        asked.append(apart.manners)
        if len(asked) == 2:
            both.set()
        return False

    program, x = rt.build(SOURCE), rt.zeros(8, "u4")
    with changed(Apart, "compile", compiled):
        rt.prebuild(program.inc)
        with rt.record():
            program.less((1,), None, x, x)
        assert both.wait(100)
    assert asked[0] == isolated.PROMPT
    assert asked[1] != isolated.PROMPT


# ---- reading -------------------------------------------------------------------------------------


def test_a_tree_is_searched_for_words_only_if_macros_can_make_them(device: cl.Device) -> None:
    """A mining program's tree of 600,000 nodes took 4 s each time."""
    source = """
    #define PUT(a, b) x[0] = a ## b
    kernel void k(global int *x) { PUT(get_global_, id)(0); }
    """
    searched: list[object] = []

    def search(cursor: object) -> set[str]:
        searched.append(cursor)
        return set()

    with changed(clang, "_joined_words", search):
        clang.parse(source, (), device)
        assert not searched
        clang.parse(f"// t un i on\n{source}", (), device)
        assert not searched, "comments are no words"
        clang.parse(f"#define ANY(un, i, on) 1\n{source}", (), device)
        assert searched


def test_loops_inside_of_loops_are_asked_for_barriers_once(device: cl.Device) -> None:
    depth = 40
    body = "x[i] += 1; barrier(CLK_LOCAL_MEM_FENCE);"
    for _ in range(depth):
        body = f"do {{ {body} if (x[i] == 7) x[i] = 3; }} while (0);"
    source = f"kernel void k(global int *x) {{ int i = get_global_id(0); {body} }}"
    asked: list[object] = []

    def calls(self: Meetings, node: object) -> object:
        asked.append(node)
        return real(self, node)

    real = vars(Meetings)["_calls"]
    unit = clang.parse(source, (), device)
    with changed(Meetings, "_calls", calls):
        outline.outline(bodies.analyse(unit, unit.kernels["k"]))
    assert len(asked) == len(set(asked))
