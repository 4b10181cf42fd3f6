"""Synthetic graphs: their parameters are exact, their edges are those that the library finds, and
every platform computes them to the bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import acs_cl as acs
from acs_cl import core, devices
from acs_cl.benchmarks.workloads import graphs, shapes, synthetic
from acs_cl.benchmarks.workloads.bare import InOrder
from acs_cl.benchmarks.workloads.expert import Queues
from acs_cl.benchmarks.workloads.graphs import GROUP, Graph, Region
from acs_cl.benchmarks.workloads.workload import differences
from acs_cl.emu.reference.hazards import Hazards
from acs_cl.ranges import overlap
from acs_cl.records import Span

SIZES: dict[str, Any] = {w.name: w.presets["tiny"] for w in synthetic.WORKLOADS}
BY_NAME = {w.name: w for w in synthetic.WORKLOADS}
BACKENDS = ("serial", "out_of_order", "lanes", "device", "auto")


def span(region: Region) -> Span:
    pitch = region.pitch if region.rows > 1 else region.width
    start, width = 4 * region.start, 4 * region.width
    return Span(region.array + 1, start, 4 * pitch, region.rows, width)


def found_by(hazards: Any, graph: Graph) -> list[tuple[int, ...]]:
    """The edges that the library's own index finds while nothing retires."""
    found = []
    for number, task in enumerate(graph.tasks, 1):
        into = span(task.writes)
        reads = [span(region) for region in task.reads] + [into] * task.updates
        upstream = hazards.enter(number, reads, [into]) or ()
        found.append(tuple(sorted(other - 1 for other in upstream)))
    return found


# ---- parameters ----------------------------------------------------------------------------------


def test_equal_seeds_give_equal_graphs_and_others_give_others() -> None:
    for name, size in SIZES.items():
        assert size.graph(3) == size.graph(3), name
        assert graphs.edges(size.graph(3)) == graphs.edges(size.graph(3)), name
    for name in ("layers", "random", "strided", "aliasing"):
        assert SIZES[name].graph(0).tasks != SIZES[name].graph(1).tasks, name


def test_every_task_has_an_item_for_each_element_it_writes() -> None:
    for workload in synthetic.WORKLOADS:
        for preset, size in workload.presets.items():
            graph = size.graph(0)
            for task in graph.tasks:
                where = (workload.name, preset, task)
                assert task.writes.size == GROUP * task.groups, where
                assert task.span <= task.writes.size, where
                for region in (*task.reads, task.writes):
                    assert region.size >= 1, where
                    assert 0 <= region.start < region.end <= graph.arrays[region.array], where
                for region in task.reads:
                    assert region.array != task.writes.array or not graphs.meet(
                        region, task.writes
                    ), where


def test_chains_are_as_many_and_as_long_as_said() -> None:
    graph = shapes.Chains(5, 7, groups=3, rounds=11).graph(0)
    assert len(graph.tasks) == 35
    assert graph.arrays == (3 * GROUP,) * 5
    assert {(task.groups, task.rounds) for task in graph.tasks} == {(3, 11)}
    expected = [() for _ in range(5)] + [(number - 5,) for number in range(5, 35)]
    assert graphs.edges(graph) == expected


def test_layers_have_their_width_depth_fan_in_groups_and_rounds() -> None:
    graph = shapes.Layers(16, 30, 3, groups=(1, 5), rounds=(10, 90)).graph(4)
    assert len(graph.tasks) == 16 * 30
    assert {len(task.reads) for task in graph.tasks[:16]} == {0}
    assert {len({r.array for r in task.reads}) for task in graph.tasks[16:]} == {3}
    assert {task.groups for task in graph.tasks} == {1, 2, 3, 4, 5}
    rounds = [task.rounds for task in graph.tasks]
    assert 10 <= min(rounds) < 15
    assert 85 < max(rounds) <= 90
    for number, task in enumerate(graph.tasks):
        layer = number // 16
        assert all(region.array // 16 == (layer + 1) % 2 for region in task.reads)
        assert task.writes.array == layer % 2 * 16 + number % 16
    assert {t.groups for t in shapes.Layers(4, 2, 1, (200, 200)).graph(0).tasks} == {200}


def test_patterns_of_task_bench_are_64_wide_and_16_deep_in_both_greater_presets() -> None:
    for pattern in shapes.PATTERNS:
        for preset in ("small", "paper"):
            size = BY_NAME[pattern].presets[preset]
            assert (size.width, size.steps) == (64, 16)


@pytest.mark.parametrize("pattern", shapes.PATTERNS)
def test_patterns_of_task_bench_have_their_edges(pattern: str) -> None:
    width, steps = 8, 6
    graph = shapes.TaskBench(pattern, width, steps).graph(0)
    reads = [tuple(region.array for region in task.reads) for task in graph.tasks]
    assert [task.writes.array for task in graph.tasks] == list(range(len(graph.tasks)))
    assert [tuple(sorted(of)) for of in reads] == graphs.edges(graph)
    if pattern == "tree":
        assert len(graph.tasks) == 1 + 2 + 4 + 8 + 4 + 2
        assert reads[:4] == [(), (0,), (0,), (1,)]
        return
    assert len(graph.tasks) == width * steps
    for number, of in enumerate(reads):
        step, i = divmod(number, width)
        if pattern == "random":
            assert len(of) in ((1, 2) if step else (0,))
            assert all(other // width == step - 1 for other in of)
            continue
        distance = [1, 2, 4, 1, 2][step - 1]
        places = {
            "trivial": [],
            "stencil": [i - 1, i, i + 1],
            "fft": [i - distance, i, i + distance],
            "sweep": [i - 1, i],
        }[pattern]
        inside = [place for place in places if 0 <= place < width and step]
        assert of == tuple((step - 1) * width + place for place in inside)


def test_adversarial_graphs_are_what_they_are_called() -> None:
    one = shapes.OneArray(6).graph(0)
    assert graphs.edges(one) == [(), (0,), (1,), (2,), (3,), (4,)]
    assert {task.writes for task in one.tasks} == {Region(0, 0, GROUP)}
    many = graphs.edges(shapes.ReadMany(3, 2).graph(0))
    assert many == [(), (), (), (0, 1, 2), (3,), (3,), (3,), (4, 5, 6)]
    full = graphs.edges(shapes.FullWindow(3, 2, 2).graph(0))
    assert full == [(), (0,), (1,), (), (), (2,), (5,), (6,), (3,), (4,)]
    strided = shapes.Strided(32, 2).graph(0)
    bands = [task.writes for task in strided.tasks if task.writes.rows > 1]
    assert not any(graphs.meet(a, b) for a in bands[:32] for b in bands[:32] if a != b)
    aliasing = shapes.Aliasing(60, 512).graph(0)
    starts = {task.writes.start % 32 for task in aliasing.tasks}
    assert len(starts) > 16  # no alignment that a driver would ask for


def test_sizes_that_make_no_sense_are_refused() -> None:
    for size, words in (
        (shapes.Layers(8, 2, 5), "fan-in"),
        (shapes.Layers(2, 2, 3), "fan-in of 1 to 2"),
        (shapes.TaskBench("nothing"), "nothing"),
        (shapes.Strided(8, 1), "got 8 of 4"),
        (shapes.Aliasing(3, 100), "256"),
    ):
        with pytest.raises(acs.UsageError, match=words):
            size.graph(0)  # type: ignore[attr-defined]


# ---- edges and the reference ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", SIZES)
def test_edges_are_those_that_hazards_find(name: str, seed: int) -> None:
    graph = SIZES[name].graph(seed)
    expected = graphs.edges(graph)
    assert found_by(Hazards(), graph) == expected
    assert found_by(core.native.Hazards(), graph) == expected


@pytest.mark.parametrize("name", ["strided", "aliasing", "layers"])
def test_regions_meet_where_spans_overlap(name: str) -> None:
    tasks = SIZES[name].graph(5).tasks
    regions = list({region for task in tasks for region in (*task.reads, task.writes)})
    pairs = [(a, b) for a in regions for b in regions if a.array == b.array]
    assert {graphs.meet(a, b) for a, b in pairs} == {True, False} or name == "layers"
    for a, b in pairs:
        shares = not set(a.places().tolist()).isdisjoint(b.places().tolist())
        assert graphs.meet(a, b) == shares == overlap(span(a), span(b))


def test_rounds_at_once_are_the_rounds_one_by_one() -> None:
    values = np.array([0, 1, 2, 0x80000000, 0xFFFFFFFF, 123456789], np.uint32)
    one_by_one = values
    for rounds in range(40):
        assert np.array_equal(graphs.stir(values, rounds), one_by_one)
        one_by_one = graphs.stir_once(one_by_one)
    assert np.array_equal(graphs.stir(graphs.stir(values, 4096), 1905), graphs.stir(values, 6001))


def shows(graph: Graph, order: Sequence[int]) -> bool:
    """Whether the tasks in another order compute something else."""
    arrays = graph.contents()
    for number in order:
        graphs.run(graph.tasks[number], number, arrays)
    right = graphs.computed(graph)
    return any(not np.array_equal(a, b) for a, b in zip(arrays, right, strict=True))


@pytest.mark.parametrize("name", SIZES)
def test_any_edge_that_is_missed_shows(name: str) -> None:
    """A task runs right before the last one that it has to wait for; each task that waits."""
    graph = SIZES[name].graph(0)
    numbers = list(range(len(graph.tasks)))
    seen = []
    for number, upstream in enumerate(graphs.edges(graph)):
        if not upstream:
            continue
        other = upstream[-1]
        order = [*numbers[:other], number, *numbers[other:number], *numbers[number + 1 :]]
        seen.append(shows(graph, order))
    assert all(seen), f"{sum(seen)} of {len(seen)}"
    assert seen or name == "trivial"


# ---- on devices ----------------------------------------------------------------------------------


def step_and_compare(workload: Any, size: Any, make: Any, platform: Any, seed: int) -> str:
    run = make(platform, size, seed)
    run.step()
    platform.finish()
    return differences(workload, run.results(), synthetic.reference(size, seed))


@pytest.mark.parametrize("backend", BACKENDS)
def test_random_graphs_are_exact_on_every_backend(backend: str) -> None:
    """Stress: many seeds and shapes on one runtime."""
    with acs.Runtime(backend=backend) as rt:
        for seed in range(6):
            for size in (
                shapes.Layers(5, 6, 1 + seed % 4, (1, 3), (0, 30)),
                shapes.Layers(9, 4, 1 + seed % 3, (1, 1), (0, 2)),
                shapes.Aliasing(24, 300 + 17 * seed),
                shapes.Strided(16, 1, width=(8, 16)[seed % 2]),
                shapes.ReadMany(1 + seed, 3),
            ):
                wrong = step_and_compare(BY_NAME["layers"], size, synthetic.Synthetic, rt, seed)
                assert not wrong, (size, seed)


@pytest.mark.parametrize(
    "options", [{"window": 4}, {"issue": "ready_first"}, {"memory": "buffers"}]
)
@pytest.mark.parametrize("name", ["layers", "strided", "aliasing", "full-window"])
def test_options_change_no_result(name: str, options: dict[str, Any]) -> None:
    with acs.Runtime(backend="lanes", **options) as rt:
        for seed in range(3):
            assert not step_and_compare(BY_NAME[name], SIZES[name], synthetic.Synthetic, rt, seed)


@pytest.mark.parametrize("lanes", [2, 5])
@pytest.mark.parametrize("name", ["layers", "stencil", "read-many", "strided", "aliasing"])
def test_events_of_the_known_edges_suffice(name: str, lanes: int) -> None:
    queues = Queues(devices.choose(), lanes=lanes)
    for seed in range(3):
        assert not step_and_compare(
            BY_NAME[name], SIZES[name], synthetic.SyntheticByHand, queues, seed
        )


def test_a_view_is_a_view_where_there_are_views() -> None:
    """In bare PyOpenCL kernels add the beginning themselves, elsewhere it is the view's."""
    size = SIZES["aliasing"]
    bare = synthetic.Synthetic(InOrder(devices.choose()), size, 0)
    with acs.Runtime(backend="serial") as rt:
        ours = synthetic.Synthetic(rt, size, 0)
        assert {argument.shape for *_, (argument, *_) in ours.calls} == {(GROUP,)}
    leads = [arguments[-8 if len(arguments) > 7 else -3] for *_, arguments in bare.calls]
    assert leads != [arguments[-8 if len(arguments) > 7 else -3] for *_, arguments in ours.calls]
