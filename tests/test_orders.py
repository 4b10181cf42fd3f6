"""Orders of tasks that are ready at the same time: small graphs with known answers, random ones."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from acs_cl import core
from acs_cl.emu.reference.hazards import Hazards
from acs_cl.records import Access, Span
from acs_cl.scheduler.orders import ORDERS, Ranking, Tasks, Work, priorities, sequence

Upstream = Sequence[Sequence[int]]


def graph(upstream: Upstream, tiles: Sequence[int] = (), work: Sequence[Work] = ()) -> Tasks:
    edges = [(above, task) for task, all_ in enumerate(upstream) for above in all_]
    return Tasks(
        [above for above, _ in edges],
        [task for _, task in edges],
        tiles or [1] * len(upstream),
        work,
    )


def computes(us: float) -> Work:
    return Work(us, 1.0, False)


def waits(us: float) -> Work:
    return Work(us, 1.0, True)


# ---- known answers -------------------------------------------------------------------------------

# The module of GoogLeNet that Opara's paper explains itself with: four branches between an input
# and a concatenation. 0 input; 1 1x1; 2 reduce, 3 3x3; 4 reduce, 5 5x5; 6 pool, 7 1x1; 8 concat.
INCEPTION = [(), (0,), (0,), (2,), (0,), (4,), (0,), (6,), (1, 3, 5, 7)]
DEMANDS = [0.1, 0.4, 0.3, 0.8, 0.2, 0.6, 0.5, 0.35, 0.1]
IS_MEMORY = [1, 0, 0, 0, 0, 0, 1, 0, 1]


def inception() -> Tasks:
    work = [
        Work(10.0, demand, bool(memory))
        for demand, memory in zip(DEMANDS, IS_MEMORY, strict=True)
    ]  # fmt: skip
    return graph(INCEPTION, work=work)


def test_opara_alternates_classes_and_takes_the_smallest_first() -> None:
    # behind the input, which waits for memory, computing is due: the smallest is 4. Then the pool.
    assert sequence(inception(), ORDERS["opara"]) == [0, 4, 6, 2, 7, 1, 5, 3, 8]


def test_opara_without_a_profile_takes_the_fewest_tiles_first() -> None:
    tasks = graph([(), (), (), (1,)], tiles=[8, 4, 1, 2])
    assert sequence(tasks, ORDERS["opara"]) == [2, 1, 3, 0]


def test_computing_first_then_in_turns() -> None:
    work = [computes(9)] * 3 + [waits(9)] * 3
    assert sequence(graph([()] * 6, work=work), ORDERS["opara"]) == [0, 3, 1, 4, 2, 5]


def test_the_rest_of_a_class_goes_on_where_the_other_is_empty() -> None:
    work = [computes(9)] * 4 + [waits(9)]
    assert sequence(graph([()] * 5, work=work), ORDERS["opara"]) == [0, 4, 1, 2, 3]


def test_opara_critical_takes_the_longest_way_of_each_class() -> None:
    # 0 -> 1 -> 2 computes for long; 3 computes alone; 4 and 5 wait for memory, 5 for longer
    work = [computes(5), computes(5), computes(5), computes(7), waits(1), waits(2)]
    tasks = graph([(), (0,), (1,), (), (), ()], work=work)
    assert sequence(tasks, ORDERS["opara_critical"]) == [0, 5, 1, 4, 3, 2]


def test_the_critical_path_counts_tasks_or_the_time_that_was_measured() -> None:
    upstream = [(), (), (0,), (2,)]
    assert sequence(graph(upstream), ORDERS["critical_path"]) == [0, 2, 1, 3]
    work = [computes(1), computes(50), computes(1), computes(1)]
    assert sequence(graph(upstream, work=work), ORDERS["critical_path"]) == [1, 0, 2, 3]


def test_narrow_tasks_go_first() -> None:
    assert sequence(graph([(), (), ()], tiles=[4, 1, 1]), ORDERS["narrow_first"]) == [1, 2, 0]


def test_classes_that_are_not_all_known_do_not_count() -> None:
    work = [Work(1.0, 3.0), Work(1.0, 2.0, True), Work(1.0, 1.0, False)]
    assert sequence(graph([()] * 3, work=work), ORDERS["opara"]) == [2, 1, 0]


# ---- any graph -----------------------------------------------------------------------------------


def random_graph(rng: random.Random) -> Tasks:
    n = rng.choice((0, 1, 7, 60))
    upstream = [
        sorted(rng.sample(range(task), min(task, rng.choice((0, 1, 1, 3))))) for task in range(n)
    ]
    work = [
        Work(rng.choice((0.0, 5.0, 80.0)), rng.random(), rng.choice((True, False)))
        for _ in range(n)
    ]
    return graph(upstream, [rng.randint(1, 5) for _ in range(n)], rng.choice((work, [])))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(20))
def test_each_task_comes_once_and_behind_its_upstream(order: str, seed: int) -> None:
    tasks = random_graph(random.Random(f"orders {seed}"))
    found = sequence(tasks, ORDERS[order])
    place = {task: at for at, task in enumerate(found)}
    assert sorted(found) == list(range(len(tasks.tiles)))
    for above, below in zip(tasks.upstream, tasks.downstream, strict=True):
        assert place[above] < place[below]


def one_by_one(tasks: Tasks, ranking: Ranking) -> list[int]:
    """The oracle: look at all tasks for each that goes next."""
    classes = ranking.classes or [0] * len(tasks.tiles)
    edges = list(zip(tasks.upstream, tasks.downstream, strict=True))
    left, found, turn = list(range(len(tasks.tiles))), [], 0
    while left:
        ready = [one for one in left if not any(b == one and a in left for a, b in edges)]
        due = [one for one in ready if classes[one] == turn] or ready
        task = min(due, key=lambda one: (ranking.keys[one], one))
        left.remove(task)
        found.append(task)
        turn = 1 - classes[task]
    return found


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(20))
def test_a_sequence_is_what_looking_at_all_tasks_gives(order: str, seed: int) -> None:
    tasks = random_graph(random.Random(f"oracle {seed}"))
    ranking = ORDERS[order](tasks)
    expected = list(range(len(tasks.tiles))) if ranking is None else one_by_one(tasks, ranking)
    assert sequence(tasks, ORDERS[order]) == expected


def test_graphs_that_are_none_are_refused() -> None:
    wrong: list[tuple[list[int], list[int], list[float], list[int]]] = [
        ([1], [0], [0.0, 0.0], [0, 0]),
        ([0], [2], [0.0, 0.0], [0, 0]),
        ([0, 0], [1], [0.0, 0.0], [0, 0]),
        ([0], [1], [0.0, 0.0], [0]),
    ]
    for edges in wrong:
        with pytest.raises((ValueError, IndexError)):
            core.native.sequence(*edges)
    with pytest.raises(ValueError, match="in the order of downstream"):
        core.native.heights([0, 0], [2, 1], [0.0] * 3, 1.0)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(10))
def test_priorities_say_the_same_as_the_sequence(order: str, seed: int) -> None:
    tasks = random_graph(random.Random(f"priorities {seed}"))
    found = priorities(tasks, ORDERS[order])
    if found is None:
        assert order == "first_in"
        return
    left = dict.fromkeys(range(len(tasks.tiles)))
    edges = list(zip(tasks.upstream, tasks.downstream, strict=True))
    for task in sequence(tasks, ORDERS[order]):
        ready = [one for one in left if not any(b == one and a in left for a, b in edges)]
        assert found[task] == max(found[one] for one in ready)
        del left[task]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(20))
def test_no_order_changes_what_conflicts(order: str, seed: int) -> None:
    """Launches that touch common bytes, one of them writing, keep their order: by brute force."""
    rng = random.Random(f"conflicts {seed}")
    accesses = [random_access(rng) for _ in range(40)]
    hazards = Hazards()
    upstream = [
        sorted(one - 1 for one in hazards.enter(number, access.reads, access.writes))
        for number, access in enumerate(accesses, 1)
    ]
    work = [Work(rng.random(), rng.random(), rng.choice((True, False))) for _ in accesses]
    found = sequence(graph(upstream, work=work), ORDERS[order])
    place = {task: at for at, task in enumerate(found)}
    for late, access in enumerate(accesses):
        for early in range(late):
            if conflict(accesses[early], access):
                assert place[early] < place[late], (early, late)


def random_access(rng: random.Random) -> Access:
    def spans() -> tuple[Span, ...]:
        return tuple(
            Span(rng.randint(1, 3), start := rng.randrange(0, 60), rng.randint(1, 12), 1,
                 rng.randint(1, 64 - start))
            for _ in range(rng.randint(0, 2))
        )  # fmt: skip

    return Access(spans(), spans())


def conflict(one: Access, other: Access) -> bool:
    pairs = [(a, b) for a in one.writes for b in (*other.reads, *other.writes)]
    pairs += [(a, b) for a in one.reads for b in other.writes]
    return any(a.base == b.base and a.start < b.end and b.start < a.end for a, b in pairs)
