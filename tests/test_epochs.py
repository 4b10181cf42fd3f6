"""Epochs as words, against a slow model that says the same in plain Python; and a reader of words
that runs them, one tile at a time and in any order.

The model knows tasks as (tiles, upstream) and nothing of words; graphs are random, with their seeds
in the names of the tests.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

from acs_cl.scheduler import layout
from acs_cl.scheduler.orders import ORDERS

SPARE = 128
SEEDS = range(12)


class Node(NamedTuple):
    """A task as the model knows it."""

    tiles: int
    upstream: tuple[int, ...]


def graph(seed: int) -> list[Node]:
    """Chains, fans, layers and noise, all with some wide tasks."""
    rng = random.Random(seed)
    n = rng.choice((1, 2, 31, 32, 33, 64, 100, 257))
    wide = rng.choice((0.0, 0.2, 1.0))
    kind = rng.choice(("chains", "noise", "layers", "lonely", "star"))
    chains, width = rng.randint(1, 8), rng.randint(1, 9)
    nodes = []
    for task in range(n):
        upstream: set[int] = set()
        if kind == "chains" and task >= chains:
            upstream = {task - chains} | ({rng.randrange(task)} if rng.random() < 0.1 else set())
        elif kind == "noise" and task:
            upstream = {rng.randrange(task) for _ in range(rng.randint(0, 4))}
        elif kind == "layers" and task >= width:
            first = task // width * width - width
            upstream = {first + rng.randrange(width) for _ in range(rng.randint(1, 3))}
        elif kind == "star" and task:
            upstream = {0} if task < n - 1 else set(range(n - 1))
        tiles = rng.choice((2, 3, 16, 17, 40)) if rng.random() < wide else 1
        order = list(upstream)
        rng.shuffle(order)
        nodes.append(Node(tiles, tuple(order)))
    return nodes


def record(nodes: list[Node]) -> layout.Recorder:
    recorder = layout.Recorder()
    for number, node in enumerate(nodes):
        head = layout.head(number % 5, node.tiles, 10 * node.tiles, 10, 1, 8)
        place = recorder.add(head, number.to_bytes(8, "little"), None, node.upstream)
        assert place == number
    return recorder


# ---- the model -----------------------------------------------------------------------------------


def height(nodes: list[Node], task: int, known: dict[int, int]) -> int:
    """Edges on the longest way from a task to an end."""
    if task not in known:
        below = [t for t, node in enumerate(nodes) if task in node.upstream]
        known[task] = max((1 + height(nodes, t, known) for t in below), default=0)
    return known[task]


def depth(nodes: list[Node]) -> list[int]:
    """Edges on the longest way to a task."""
    found: list[int] = []
    for node in nodes:
        found.append(max((1 + found[other] for other in node.upstream), default=0))
    return found


class Model:
    """What the words of a graph have to say."""

    def __init__(self, nodes: list[Node], order: str, window: int, gang: bool) -> None:
        n = len(nodes)
        known: dict[int, int] = {}
        if order == "critical_path":
            for task in reversed(range(n)):
                height(nodes, task, known)
        elif order == "narrow_first":
            known = {task: int(node.tiles == 1) for task, node in enumerate(nodes)}
        elif order == "opara":
            known = {task: -node.tiles for task, node in enumerate(nodes)}
        rank = {task: (-known.get(task, 0), task) for task in range(n)}
        self.counts = [len(node.upstream) for node in nodes]
        slots = n
        if window:
            slots = min(window, n)
        self.heirs: dict[int, int] = {}
        if not window:
            for task in sorted(range(n), key=rank.__getitem__):
                if len(nodes[task].upstream) == 1:
                    self.heirs.setdefault(nodes[task].upstream[0], task)
        for heir in self.heirs.values():
            self.counts[heir] = 0
        self.successors = [
            sorted(
                (t for t, node in enumerate(nodes) if task in node.upstream
                 and self.heirs.get(task) != t),
                key=rank.__getitem__,
            )
            for task in range(n)
        ]  # fmt: skip
        self.fused = {
            task
            for task, heir in self.heirs.items()
            if nodes[task].tiles == nodes[heir].tiles == 1 and not self.successors[task]
        }
        self.alike = {
            task
            for task in self.fused
            if (self.heirs[task] - task) % 5 == 0 and not self.successors[self.heirs[task]]
        }
        self.gang = {
            task
            for task, heir in self.heirs.items()
            if gang and nodes[task].tiles > 1 and nodes[heir].tiles > 1
        }
        initial = [task for task in range(slots) if not nodes[task].upstream]
        self.entries = [
            (task, tile)
            for task in sorted(initial, key=rank.__getitem__)
            for tile in range(nodes[task].tiles)
        ]
        for task in range(slots, n):
            self.counts[task] += 1


class Read:
    """The words of an image, taken apart by the layout in kernels_cl/descriptor.h."""

    def __init__(self, image: layout.Image, block: int = 0) -> None:
        w = self.words = image.words
        assert w.dtype == np.uint32
        assert w[0] == 0xAC500003
        (_, self.n, self.records, self.list, self.edges, blocks, self.block_words, self.mask,
         self.initial, self.n_initial, self.counts, self.window, free, self.total, loop,
         ) = map(int, w[:15])  # fmt: skip
        assert self.total == len(w)
        assert loop == free == 0
        assert blocks == image.block
        self.block = blocks + block * self.block_words
        self.rows = -(-self.n // 32)
        self.count_at = self.block + 192
        self.left_at = self.count_at + 32 * self.rows
        self.queue_at = self.left_at + 32 * self.rows

    def record(self, task: int) -> list[int]:
        at = self.records + 32 * task
        return [int(word) for word in self.words[at : at + 32]]

    def place(self, task: int) -> int:
        return (task & 31) * self.rows + (task >> 5)

    def slot(self, ticket: int) -> int:
        ticket &= self.mask
        return self.queue_at + (ticket & 31) * ((self.mask + 1) >> 5) + (ticket >> 5)

    def successors(self, task: int) -> list[int]:
        record = self.record(task)
        at = self.list + record[2]
        return [int(word) for word in self.words[at : at + record[3]]]


OPTIONS = [
    ("first_in", 0, True),
    ("first_in", 0, False),
    ("critical_path", 0, True),
    ("narrow_first", 0, True),
    ("opara", 0, True),
    ("first_in", 1, True),
    ("first_in", 5, True),
    ("critical_path", 32, True),
    ("first_in", 1000, True),
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_words_say_what_the_slow_model_says(seed: int, options: tuple[str, int, bool]) -> None:
    order, window, gang = options
    nodes = graph(seed)
    n = len(nodes)
    model = Model(nodes, *options)
    image = record(nodes).image(SPARE, ORDERS[order], window, gang=gang)
    read = Read(image)
    assert (read.n, read.window) == (n, window)
    assert image.tasks == n
    check = 0
    for word in map(int, read.words[:15]):
        check = ((check ^ word) * 16777619) % 2**32
    for task, node in enumerate(nodes):
        body, heir, _, _, tiles, items, tile_items, args, shape, local = read.record(task)[:10]
        last = node.tiles - 1
        heir_task = model.heirs.get(task)
        assert body & 0xFF == task % 5
        assert body >> 16 == 2
        assert bool(body & 0x100) == (task in model.fused)
        assert bool(body & 0x2000) == (task in model.alike)
        assert bool(body & 0x200) == (task in model.gang)
        assert body & 0x400
        assert (tiles, items, tile_items, args, shape, local) == (
            node.tiles, 10 * node.tiles, 10, 0, 0, 1,
        )  # fmt: skip
        assert read.record(task)[16:18] == [task, 0]
        assert heir == (
            0 if heir_task is None else (nodes[heir_task].tiles - 1) << 20 | (heir_task + 1)
        )
        assert read.successors(task) == [
            (nodes[other].tiles - 1) << 20 | (other + 1) for other in model.successors[task]
        ]
        assert read.words[15] == check
        assert read.words[read.counts + task] == model.counts[task]
        assert read.words[read.count_at + read.place(task)] == model.counts[task]
        assert read.words[read.left_at + read.place(task)] == last + 1
    assert read.edges == sum(map(len, model.successors))
    entries = [tile << 20 | (task + 1) for task, tile in model.entries]
    assert read.words[read.initial : read.initial + read.n_initial].tolist() == entries
    slots = [int(read.words[read.slot(ticket)]) for ticket in range(read.mask + 1)]
    assert slots == entries + [0] * (read.mask + 1 - len(entries))
    block = read.words[read.block : read.block + 192]
    expected = np.zeros(192, np.uint32)
    expected[32], expected[64] = len(entries), n
    assert block.tolist() == expected.tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_sections_are_aligned_apart_and_inside(seed: int) -> None:
    nodes = graph(seed)
    read = Read(record(nodes).image(SPARE, blocks=2))
    every = sum(node.tiles for node in nodes)
    sections = [
        (0, 32),
        (read.records, 32 * read.n),
        (read.list, read.edges),
        (read.initial, read.n_initial),
        (read.counts, read.n),
        (read.block, 2 * read.block_words),
    ]
    ends = [at + length for at, length in sections]
    assert all(end <= start for end, (start, _) in zip(ends, sections[1:], strict=False))
    assert ends[-1] == read.total
    assert read.block % 32 == read.block_words % 32 == read.records % 4 == 0
    assert (read.mask + 1) & read.mask == 0
    # a launch gives out fewer tickets than the ring has slots
    assert read.mask + 1 >= max(32, every + SPARE + read.n_initial)
    assert read.queue_at + read.mask + 1 <= read.block + read.block_words


def test_places_of_tasks_are_distinct_and_neighbours_lie_apart() -> None:
    for n in (1, 2, 31, 32, 33, 1000, 4096):
        places = layout.task_places(n).tolist()
        assert len(set(places)) == n
        assert max(places) < 32 * -(-n // 32)
        assert all(abs(a - b) >= -(-n // 32) for a, b in pairwise(places))


@pytest.mark.parametrize("seed", SEEDS)
def test_width_is_no_less_than_what_can_be_ready_at_once(seed: int) -> None:
    nodes = graph(seed)
    image = record(nodes).image(SPARE)
    depths = depth(nodes)
    widest = max(
        sum(node.tiles for node, d in zip(nodes, depths, strict=True) if d == level)
        for level in set(depths)
    )
    assert widest <= image.width <= sum(node.tiles for node in nodes)
    rng = random.Random(seed)
    for _ in range(3):  # and of all that is ready in some order or other
        ended: set[int] = set()
        while len(ended) < len(nodes):
            ready = [
                t for t, one in enumerate(nodes) if t not in ended and ended >= {*one.upstream}
            ]
            assert sum(nodes[t].tiles for t in ready) <= image.width
            ended.add(rng.choice(ready))


@pytest.mark.parametrize(
    ("tiles", "width"),
    [((1, 1, 1), 1), ((16,) * 5, 16), ((3, 1, 3), 3), ((1, 4, 9), 9), ((40, 2, 2), 40)],
)
def test_of_a_chain_one_task_is_ready_at_a_time(tiles: tuple[int, ...], width: int) -> None:
    nodes = [Node(n, (task - 1,) if task else ()) for task, n in enumerate(tiles)]
    assert record(nodes).image(SPARE).width == width
    beside = [Node(node.tiles, tuple(one + 3 for one in node.upstream)) for node in nodes]
    assert record([*(Node(7, ()),) * 3, *beside]).image(SPARE).width == 21 + width


def test_of_a_wavefront_a_row_of_tiles_is_ready_at_a_time() -> None:
    side = 12
    nodes = [
        Node(1, tuple(at - back for back in (side, 1, side + 1)
                      if (at >= side or back == 1) and (at % side or back == side)))
        for at in range(side * side)
    ]  # fmt: skip
    for order in ORDERS.values():
        assert record(nodes).image(SPARE, order).width == side


def test_of_a_factorisation_as_many_as_there_are_updates_of_its_first_column() -> None:
    """Cholesky of tiles: all that the first column's solves make ready, and no more."""
    side = 9
    nodes: list[Node] = []
    wrote: dict[tuple[int, int], int] = {}

    def add(*used: tuple[int, int]) -> None:
        nodes.append(Node(1, tuple({wrote[one] for one in used if one in wrote})))
        wrote[used[-1]] = len(nodes) - 1

    for k in range(side):
        add((k, k))
        for i in range(k + 1, side):
            add((k, k), (i, k))
        for i in range(k + 1, side):
            for j in range(k + 1, i + 1):
                add((i, k), (j, k), (i, j))
    assert record(nodes).image(SPARE).width <= side * (side - 1) // 2


def test_a_wide_task_goes_on_the_chain_of_a_wide_one() -> None:
    nodes = [Node(40, ()), Node(1, ()), Node(40, (0, 1))]
    assert record(nodes).image(SPARE).width == 41


def test_an_epoch_of_nothing_is_whole() -> None:
    read = Read(layout.Recorder().image(SPARE))
    assert (read.n, read.edges, read.n_initial) == (0, 0, 0)
    assert read.words[read.block + 64] == 0


# ---- arguments and shapes ------------------------------------------------------------------------


def test_arguments_and_shapes_are_where_records_say() -> None:
    rng = random.Random(7)
    recorder = layout.Recorder()
    blobs, shapes = [], []
    for _task in range(50):
        blob = rng.randbytes(rng.choice((0, 4, 60, 64, 65, 68, 200, 1024)))
        size = rng.choice(((8, 4), (4, 4, 4), (16,)))
        shape = layout.shape(size, (1,) * len(size), rng.choice((None, (3,) * len(size))))
        shape = shape if rng.random() < 0.5 else None
        head = layout.head(1, 1, 16, 16, 1, len(blob), shape is not None)
        recorder.add(head, blob, shape, ())
        blobs.append(blob)
        shapes.append(shape)
    read = Read(recorder.image(SPARE))
    for task, (blob, shape) in enumerate(zip(blobs, shapes, strict=True)):
        record = read.record(task)
        args, where = record[7], record[8]
        assert record[0] >> 16 == -(-len(blob) // 4)
        at = 4 * (args or read.records + 32 * task + 16)
        assert at % 16 == 0
        assert bool(args) == (len(blob) > 64)
        assert read.words.tobytes()[at : at + len(blob)] == blob
        assert bool(where) == (shape is not None)
        if shape is not None:
            assert read.words.tobytes()[4 * where : 4 * where + len(shape)] == shape
            assert where + 10 <= read.total
        assert bool(record[0] & layout.PLAIN) == (not args and not where)


def test_equal_shapes_are_stored_once() -> None:
    sizes = []
    for count in (1, 100):
        recorder = layout.Recorder()
        for _ in range(count):
            shape = layout.shape((8, 4), (2, 2), None)
            recorder.add(layout.head(0, 1, 32, 32, 4, 0, True), b"", shape, ())
        read = Read(recorder.image(SPARE))
        sizes.append(read.initial - read.list)
    assert sizes[0] == sizes[1] < 16


def test_shapes_fill_the_dimensions_that_are_not_there() -> None:
    words = np.frombuffer(layout.shape((6, 4), (3, 2), (1, 0)), np.uint32).tolist()
    assert words == [6, 4, 1, 3, 2, 1, 1, 0, 0, 2]
    words = np.frombuffer(layout.shape((5,), (1,), None), np.uint32).tolist()
    assert words == [5, 1, 1, 1, 1, 1, 0, 0, 0, 1]


def test_decisions_are_two_words_each() -> None:
    head = layout.head(3, 1, 8, 8, 1, 16, False, 0x123456789A, 0xFEDCBA9876, 77)
    words = np.frombuffer(head, np.uint32).tolist()
    assert words[10:16] == [0x3456789A, 0x12, 0xDCBA9876, 0xFE, 77, 0]
    assert not words[0] & layout.PLAIN


# ---- a reader that runs the words ----------------------------------------------------------------


class Runner:
    """Runs the words one tile at a time, as one group would that takes any entry it likes."""

    def __init__(self, read: Read, rng: random.Random) -> None:
        self.read, self.rng = read, rng
        self.count = [int(read.words[read.count_at + read.place(t)]) for t in range(read.n)]
        self.left = [int(read.words[read.left_at + read.place(t)]) for t in range(read.n)]
        self.ready = [int(read.words[read.slot(ticket)]) for ticket in range(read.n_initial)]
        self.ran: list[tuple[int, int]] = []
        self.ended: set[int] = set()
        self.inserted = min(read.window, read.n) if read.window else read.n

    def publish(self, reference: int) -> None:
        for tile in range((reference >> 20) + 1):
            self.ready.append(tile << 20 | (reference & 0xFFFFF))

    def count_down(self, reference: int) -> None:
        task = (reference & 0xFFFFF) - 1
        assert self.count[task] > 0
        self.count[task] -= 1
        if not self.count[task]:
            self.publish(reference)

    def insert(self) -> None:
        """The window: new tasks in order, where there is a slot."""
        read = self.read
        while self.inserted < read.n:
            if self.inserted - len(self.ended) >= read.window:
                return
            tiles = read.record(self.inserted)[4]
            self.inserted += 1
            self.count_down((tiles - 1) << 20 | self.inserted)

    def run(self) -> None:
        read = self.read
        while self.ready:
            entry = self.ready.pop(self.rng.randrange(len(self.ready)))
            while entry:
                task, tile = (entry & 0xFFFFF) - 1, entry >> 20
                record = read.record(task)
                self.ran.append((task, tile))
                if read.window:
                    assert task < self.inserted
                self.left[task] -= 1
                entry = 0
                if self.left[task]:
                    continue
                self.ended.add(task)
                if record[0] & 0x100:  # fused: nobody else is told
                    entry = record[1]
                    continue
                for reference in read.successors(task):
                    self.count_down(reference)
                if record[1]:
                    self.publish(record[1])
                if read.window:
                    self.insert()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_run_in_any_order_every_tile_runs_once_behind_its_upstream(
    seed: int, options: tuple[str, int, bool]
) -> None:
    order, window, gang = options
    nodes = graph(seed)
    read = Read(record(nodes).image(SPARE, ORDERS[order], window, gang=gang))
    runner = Runner(read, random.Random(seed))
    runner.run()
    every = [(task, tile) for task, node in enumerate(nodes) for tile in range(node.tiles)]
    assert sorted(runner.ran) == every
    last: dict[int, int] = {}
    first: dict[int, int] = {}
    for at, (task, _) in enumerate(runner.ran):
        last[task] = at
        first.setdefault(task, at)
    for task, node in enumerate(nodes):
        assert all(last[other] < first[task] for other in node.upstream)


def test_a_larger_window_than_the_epoch_is_no_window_for_who_is_ready() -> None:
    nodes = [Node(1, ())] * 40
    read = Read(record(nodes).image(SPARE, window=1000))
    assert read.n_initial == 40


# ---- limits --------------------------------------------------------------------------------------


def test_most_tasks_and_tiles_have_references_of_their_own() -> None:
    nodes: list[Any] = [Node(layout.MOST_TILES, ()), Node(layout.MOST_TILES, (0,)), Node(1, (0, 1))]
    image = record(nodes).image(SPARE)
    read = Read(image)
    assert read.record(0)[1] == 0xFFF << 20 | 2
    assert read.successors(0) == [3]
    entries = read.words[read.initial : read.initial + read.n_initial]
    assert len(set(entries.tolist())) == layout.MOST_TILES
    assert layout.MOST_TASKS + 1 < 1 << layout.TASK_BITS
    # the entry that would look like an abandoned slot is never made
    assert (layout.MOST_TILES - 1) << 20 | layout.MOST_TASKS != 0xFFFFFFFF


def test_blocks_of_more_words_than_the_header_can_name_are_refused() -> None:
    """Tiles below the limit may need a ring of twice as many slots, and each block has one."""
    recorder, task = layout.Recorder(), np.zeros(32, np.uint32)
    task[4] = 0xFFFF  # tiles
    for number in range((1 << 14) + 1):
        recorder.add(task.tobytes(), None, None, [number - 1] if number else [])
    assert 1 << 30 < recorder.entries < 1 << 31
    with pytest.raises(ValueError, match="too many tiles"):
        recorder.image(SPARE, blocks=2)
