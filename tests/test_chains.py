"""Chains of recorded launches that are cut into bands, since each part of them follows one part."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator

import chain_programs
import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.access.cuts import EACH_TILE
from acs_cl.records import Access, Span
from acs_cl.scheduler.bands import Band, Cuts
from acs_cl.scheduler.chains import LEAST_LINKS, cut_chains
from acs_cl.scheduler.task import Task

ITEMS, GROUPS, LINKS = 64, 8, 12
N = ITEMS * GROUPS
PROGRAMS = max(24, int(os.environ.get("ACS_CL_FUZZ", "300")) // 10)

SOURCE = """
kernel void grow(global uint *x, uint a) { int i = get_global_id(0); x[i] = x[i] * 3 + a; }
kernel void copy(global const uint *x, global uint *y, uint a)
{ int i = get_global_id(0); y[i] = x[i] * 5 + a; }
kernel void near(global const uint *x, global uint *y, uint n)
{ int i = get_global_id(0); y[i] = x[i] + (i > 0 ? x[i - 1] : 0) + (i + 1 < n ? x[i + 1] : 0); }
kernel void more(global uint *n, global uint *go, uint most) { *n += 1; *go = *n < most; }
kernel void sum(global const uint *x, global uint *y, uint n)
{ uint s = 0; for (uint i = 0; i < n; i++) s += x[i]; y[get_global_id(0)] = s; }
"""

Made = tuple[acs.Runtime, acs.Program]


@pytest.fixture(scope="module")
def made(device: cl.Device) -> Iterator[Made]:
    with acs.Runtime(device, backend="device") as rt:
        yield rt, rt.build(SOURCE)


def cut_in(graph: acs.Graph) -> int:
    """Return how many launches of a graph are cut."""
    lines = [line for line in str(graph.explain()).splitlines() if "cut into bands" in line]
    return int(lines[0].rpartition(":")[2]) if lines else 0


def test_a_chain_on_one_array_is_cut(made: Made) -> None:
    rt, prog = made
    x = rt.array(np.arange(N), "u4")
    with rt.record() as graph:
        handles = [prog.grow((N,), (ITEMS,), x, link) for link in range(LINKS)]
    assert cut_in(graph) == LINKS
    told = str(rt.explain(handles[5]))
    assert "each part of it follows one part of the launch before" in told
    graph.verify()
    graph.replay()
    graph.update(handles[3], a=100)
    graph.replay()
    graph.verify()
    values = np.arange(N, dtype=np.uint32)
    for third in (3, 100):
        for link in range(LINKS):
            values = values * np.uint32(3) + np.uint32(third if link == 3 else link)
    assert (x.get() == values).all()


def test_a_chain_goes_through_arrays_that_are_used_again(made: Made) -> None:
    rt, prog = made
    arrays = [rt.array(np.arange(N), "u4"), rt.zeros(N, "u4"), rt.zeros(N, "u4")]
    other, total = rt.array(np.arange(N), "u4"), rt.zeros(ITEMS, "u4")
    with rt.record() as graph:
        for link in range(LINKS):
            prog.copy((N,), (ITEMS,), arrays[link % 3], arrays[(link + 1) % 3], link)
        prog.sum((ITEMS,), (ITEMS,), arrays[LINKS % 3], total, N)
    assert cut_in(graph) == LINKS
    graph.replay()
    graph.swap(arrays[0], other)
    assert cut_in(graph) == LINKS
    graph.replay()
    values = np.arange(N, dtype=np.uint32)
    for link in range(LINKS):
        values = values * np.uint32(5) + np.uint32(link)
    assert (other.get() == values).all()
    assert (total.get() == values.sum(dtype=np.uint32)).all()


@pytest.mark.parametrize("is_inner", [False, True])
def test_rounds_of_a_loop_go_in_bands(made: Made, is_inner: bool) -> None:
    rt, prog = made
    x, rounds, go = rt.array(np.arange(N), "u4"), rt.zeros(1, "u4"), rt.array([1], "u4")

    def body() -> contextlib.AbstractContextManager[object]:
        return acs.loop(go, at_most=9) if is_inner else contextlib.nullcontext()

    with rt.record() as graph, body():
        handles = [prog.grow((N,), (ITEMS,), x, link) for link in range(LINKS)]
        prog.more((1,), None, rounds, go, 4)
    for third in (3, 50):
        rounds.fill(0)
        go.fill(1)
        before = x.get()
        graph.update(handles[3], a=third)
        handle = graph.replay() if is_inner else graph.replay(while_=go, at_most=9)
        handle.wait()
        assert is_inner or handle.rounds == 4
        for _ in range(4):
            for link in range(LINKS):
                before = before * np.uint32(3) + np.uint32(third if link == 3 else link)
        assert (x.get() == before).all()


def test_chains_that_need_neighbours_stay_whole(made: Made) -> None:
    rt, prog = made
    x, y = rt.array(np.arange(N), "u4"), rt.zeros(N, "u4")
    with rt.record() as graph:
        for link in range(LINKS):
            prog.near((N,), (ITEMS,), (x, y)[link % 2], (y, x)[link % 2], N)
    assert cut_in(graph) == 0


def test_short_chains_and_what_was_asked_for_stay(made: Made) -> None:
    rt, prog = made
    x = rt.array(np.arange(N), "u4")
    with rt.record() as short:
        for link in range(LEAST_LINKS):
            prog.grow((N,), (ITEMS,), x, link)
    assert cut_in(short) == 0
    with rt.record() as asked:
        for link in range(LINKS):
            prog.grow((N,), (ITEMS,), x, link, bands="off")
    assert cut_in(asked) == 0


def test_a_wide_graph_stays_whole(made: Made) -> None:
    rt, prog = made
    arrays = [rt.zeros(N, "u4") for _ in range(2 * 1024 // GROUPS)]
    with rt.record() as graph:
        for link in range(3):
            for x in arrays:
                prog.grow((N,), (ITEMS,), x, link)
    assert cut_in(graph) == 0


def test_random_programs_give_what_whole_launches_give(device: cl.Device, made: Made) -> None:
    ours = made[0], made[0].build(chain_programs.SOURCE)
    with acs.Runtime(device, backend="serial") as rt:
        other = rt, rt.build(chain_programs.SOURCE)
        cut = sum(chain_programs.compared(ours, other, seed, True) for seed in range(PROGRAMS))
    assert cut > PROGRAMS // 8


# ---- the choice --------------------------------------------------------------------------------


def whole(tiles: int = 4) -> Task:
    return Task(b"", b"", None, tiles)


def of_one_array(at: int, many: int) -> Task:
    """Return a launch whose bands each change a part of one array."""
    assert many == EACH_TILE
    parts = [(Span(1, 8 * n, 8, 1, 8),) for n in range(4)]
    bands = tuple(Band(n, 1, Access(part, part, part)) for n, part in enumerate(parts))
    return whole()._replace(cuts=Cuts(bands, ""))


def chosen(tasks: list[Task], edges: list[list[int]], groups: int = 32) -> list[int]:
    """Return the places of the launches that are cut."""
    found = cut_chains(tasks, edges, of_one_array, groups)
    assert len(found) == len(tasks)
    return [at for at, task in enumerate(found) if task.cuts.bands]


def test_a_chain_needs_links_for_each_edge_to_others() -> None:
    for links in range(10):
        chain = [[at - 1] if at else [] for at in range(links + 1)]
        alone = chosen([whole() for _ in chain], chain)
        assert alone == (list(range(links + 1)) if links >= LEAST_LINKS else [])
        behind = [[], *[[at + 1 for at in above] or [0] for above in chain], [links + 1]]
        tasks = [whole(1), *[whole() for _ in chain], whole(1)]
        expected = list(range(1, links + 2)) if links >= 2 * LEAST_LINKS else []
        assert chosen(tasks, behind) == expected


def test_launches_of_other_sizes_end_a_chain() -> None:
    edges = [[at - 1] if at else [] for at in range(20)]
    tasks = [whole(4 if at < 10 else 5) for at in range(20)]
    assert chosen(tasks, edges) == list(range(20))
    tasks = [whole(40 if at < 10 else 4) for at in range(20)]
    assert chosen(tasks, edges) == list(range(10, 20)), "more tiles than the device runs"
    tasks = [whole(1 if at < 10 else 4) for at in range(20)]
    assert chosen(tasks, edges) == list(range(10, 20)), "one tile"


def test_where_bands_do_not_follow_each_other_a_chain_ends() -> None:
    edges = [[at - 1] if at else [] for at in range(30)]
    tried: list[int] = []

    def cut(at: int, many: int) -> Task | None:
        tried.append(at)
        if at == 10:
            return None
        task = of_one_array(at, many)
        if at == 20:  # the parts are in the opposite order
            bands = task.cuts.bands
            mirrored = [
                band._replace(access=other.access)
                for band, other in zip(bands, reversed(bands), strict=True)
            ]
            return task._replace(cuts=Cuts(tuple(mirrored), ""))
        return task

    found = cut_chains([whole() for _ in edges], edges, cut, 32)
    places = [at for at, task in enumerate(found) if task.cuts.bands]
    assert 10 not in places
    assert {*range(10), *range(11, 20)} <= {*places}
    # launch 20 is cut as the first one of a chain, or not at all; never behind launch 19
    assert len(tried) <= 2 * len(edges)


def test_each_link_of_a_random_graph_that_is_cut_has_one_launch_before_it() -> None:
    cut = 0
    for seed in range(200):
        rng = random.Random(seed)
        edges: list[list[int]] = [[]]
        for at in range(1, 40):
            above = {at - 1} if rng.random() < 0.8 else {rng.randrange(at)}
            if rng.random() < 0.1:
                above.add(rng.randrange(at))
            edges.append(sorted(above))
        tasks = [whole(rng.choice((1, 4, 4, 4, 4, 4, 4))) for _ in edges]
        places = chosen(tasks, edges)
        cut += len(places)
        for at in places:
            assert tasks[at].tiles == 4
            beside = [one for one in edges[at] if one in places]
            followers = [one for one in places if at in edges[one]]
            assert beside or followers, "a chain of one"
    assert cut > 1000
