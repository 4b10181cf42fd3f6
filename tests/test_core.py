"""The native core against its models in Python: the same programs on both, edge by edge.

`ACS_CL_FUZZ=n` asks for n programs in all instead of 300; the seed of one that differs is in its
name. What runs on each alone is with the tests of the stage (`test_hazards.py` and others).
"""

from __future__ import annotations

import gc
import os
import random
import struct
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import acs_cl.runtime  # noqa: F401  which tells the core of arrays and handles
from acs_cl import core
from acs_cl.devices.driver import Place
from acs_cl.emu.reference.footprints import ReplayHazards
from acs_cl.emu.reference.hazards import REMEMBERED
from acs_cl.launch.commands import KernelCommand
from acs_cl.memory.array import Array
from acs_cl.ranges import overlap
from acs_cl.records import EVERYTHING, Access, Span
from acs_cl.scheduler import layout

EACH = 30
FUZZ = int(os.environ.get("ACS_CL_FUZZ", "300"))


def plain(base: int, start: int, width: int) -> Span:
    return Span(base, start, width, 1, width)


class Both:
    """A random program on both. After each step everything that can be asked is the same."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.python, self.native = ReplayHazards(), core.native.Hazards()
        self.replaying = self.rng.choice((0.0, 0.02, 0.1))
        self.bases = [1, 2, -3]
        self.newest_base = 3
        self.pitches = self.rng.choice(((4, 4, 6, 8), (40, 40, 40, 64), (3, 5, 7, 9, 11, 13, 40)))
        self.number = 0
        self.live: list[int] = []
        self.footprints: list[tuple[Any, Any]] = []

    def span(self) -> Span:
        rng = self.rng
        base = rng.choice(self.bases)
        if rng.random() < 0.6:
            return plain(base, rng.randrange(rng.choice((24, 400))), rng.choice((1, 4, 8, 32)))
        if rng.random() < 0.05:  # an address space
            return plain(base, 0, 1 << 63)
        pitch = rng.choice(self.pitches)
        start, rows = rng.randrange(-9, 6 * pitch), rng.choice((2, 4, 7))
        return Span(base, start, pitch, rows, rng.randint(1, rng.choice((2, pitch, pitch + 2))))

    def spans(self, most: int) -> list[Span]:
        return [self.span() for _ in range(self.rng.randint(0, most))]

    def step(self) -> None:
        choice = self.rng.random()
        if choice < 0.5:
            self.launch()
        elif choice < 0.5 + self.replaying:
            self.replay()
        elif choice < 0.98:
            self.retire()
        else:
            self.recycle()
        for name in ("live", "spans", "pruned", "edges"):
            assert getattr(self.python, name) == getattr(self.native, name), name

    def same(self, edges: dict[int, str], native: dict[int, str]) -> None:
        assert list(edges.items()) == list(native.items()), f"launch {self.number}"
        self.live.append(self.number)

    def launch(self) -> None:
        rng = self.rng
        self.number += REMEMBERED + 7 if rng.random() < 0.01 else rng.choice((1, 1, 1, 4))
        reads, writes = self.spans(3), self.spans(2)
        sharers = self.python.sharers(reads, writes)
        assert sharers == self.native.sharers(reads, writes), f"before launch {self.number}"
        if rng.random() < 0.01:
            rng.choice((reads, writes)).append(Span(EVERYTHING, 0, 1, 1, 1))
        enter = self.python.enter, self.native.enter
        self.same(*(one(self.number, reads, writes) for one in enter))

    def replay(self) -> None:
        rng, known = self.rng, self.footprints
        if not known or rng.random() < 0.3:
            before = rng.choice(known) if known and rng.random() < 0.3 else (None, None)
            spans = self.spans(4), self.spans(3)
            known.append(
                (self.python.footprint(*spans, before[0]), self.native.footprint(*spans, before[1]))
            )
            del before
            if len(known) > 3:
                del known[rng.randrange(3)]
        self.number += 1
        ours, theirs = rng.choice(known)
        assert ours.record == theirs.record
        if rng.random() < 0.2:
            base = rng.choice(self.bases)
            moved = [(span, rng.random() < 0.5) for span in self.spans(3)]
            self.python.move(ours, base, moved)
            self.native.move(theirs, base, moved)
        self.same(
            self.python.enter_footprint(self.number, ours),
            self.native.enter_footprint(self.number, theirs),
        )

    def retire(self) -> None:
        if self.live:
            number = self.live.pop(self.rng.randrange(min(len(self.live), 30)))
            for one in (self.python, self.native):
                one.retire(number)
                assert not one.is_live(number)

    def recycle(self) -> None:
        which = self.rng.randrange(3)
        users = self.python.users(self.bases[which])
        assert users == self.native.users(self.bases[which])
        self.newest_base += 1
        for one in (self.python, self.native):
            one.forget(self.bases[which])
            one.inherit(self.newest_base, users)
        self.bases[which] = self.newest_base


@pytest.mark.parametrize("part", range(EACH))
def test_edges_of_random_programs_are_the_same(part: int) -> None:
    for seed in range(part, FUZZ, EACH):
        both = Both(seed)
        for _ in range(1500 if seed % 10 == 0 else 200):
            both.step()


@pytest.mark.parametrize("seed", [330, 1020, 2419])
def test_edges_of_programs_that_once_differed_are_the_same(seed: int) -> None:
    both = Both(seed)
    for _ in range(1500):
        both.step()


def test_a_window_of_thousands_is_the_same() -> None:
    """Masks of many words, tables that grow, chains that prune far back."""
    rng = random.Random(1)
    python, native = ReplayHazards(), core.native.Hazards()
    live: list[int] = []
    for number in range(1, 6000):
        reads = [plain(rng.randint(1, 300), 0, 8) for _ in range(3)]
        writes = [plain(rng.randint(1, 300), 0, 8) for _ in range(2)]
        assert python.enter(number, reads, writes) == native.enter(number, reads, writes)
        live.append(number)
        if len(live) > 2500:
            oldest = live.pop(0) if number % 7 else live.pop()
            python.retire(oldest)
            native.retire(oldest)
    assert (python.edges, python.pruned) == (native.edges, native.pruned)


def test_neighbours_of_a_wide_span_are_not_listed_anew_for_each_of_them() -> None:
    """Two spans cover all tiles. Launches on one put tiles to sleep, of which the other still had
    all: each tile that woke had it list all of them again."""
    native, tiles = core.native.Hazards(), [plain(1, 16 * tile, 16) for tile in range(256)]
    one, other = plain(1, 0, 16 * 256), plain(1, 0, 16 * 256 + 4)
    number = 0
    for span in (*tiles, one, other):
        number += 1
        native.enter(number, (), (span,))
    for ended in range(number):
        native.retire(ended + 1)
    for _ in range(4):
        before = native.listed
        for span in (*[one] * 8, *tiles):
            number += 1
            native.enter(number, (), (span,))
            native.retire(number)
        assert native.looks_at(other) >= len(tiles)
        assert native.listed - before <= 4 * len(tiles)


def test_nothing_is_held_longer_than_it_has_to_be() -> None:
    """Over 100,000 launches with new spans, references of kept ones come back to what they were."""
    kept = [plain(base, 0, 64) for base in range(1, 9)]
    reads = tuple(kept)
    before = [sys.getrefcount(span) for span in kept]
    gc.collect()
    nothing = sys.getrefcount(None)
    native = core.native.Hazards()

    def launches(native: Any, first: int, many: int) -> None:
        for number in range(first, first + many):
            native.enter(number, reads, (plain(1 + number % 8, 64 + number % 999, 8),))
            if number > 16:
                native.retire(number - 16)

    launches(native, 1, 10_000)
    gc.collect()
    tracemalloc.start()
    try:
        start, _ = tracemalloc.get_traced_memory()
        launches(native, 10_001, 100_000)
        gc.collect()
        end, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # what it remembers of spans may be full of other ones than before: it is bounded
    assert end - start < 2048 * 400, f"{end - start} bytes more"
    held = [sys.getrefcount(span) for span in kept]
    assert all(now <= was + 1 for now, was in zip(held, before, strict=True))
    del native
    assert [sys.getrefcount(span) for span in kept] == before
    assert abs(sys.getrefcount(None) - nothing) < 100


def test_tasks_that_make_no_sense_are_refused() -> None:
    native = layout.Recorder()
    head = layout.head(0, 1, 4, 4, 4, 0)
    native.add(head, b"", None, ())
    for other in (1, -1, 1 << 40):
        with pytest.raises(IndexError):
            native.add(head, b"", None, (other,))
    for record, blob in ((head, None), (head + bytes(64), b""), (b"", b"")):
        with pytest.raises(ValueError, match="128 bytes"):
            native.add(record, blob, None, ())
    for wrong in (1, "text", bytearray(8)):
        with pytest.raises((TypeError, RuntimeError)):
            native.add(head, wrong, None, ())
    assert native.tasks == 1


def test_what_is_not_a_span_is_refused() -> None:
    native = core.native.Hazards()
    for wrong in (None, (1, 2), [1, 0, 4, 1, 4], "spans"):
        with pytest.raises(TypeError, match="expected a span"):
            native.enter(1, [wrong], [])
    with pytest.raises(TypeError):
        native.enter(1, [(1, 0, 4.5, 1, 4)], [])
    with pytest.raises(TypeError):
        native.enter(1, None, [])
    assert native.live == 0


def test_launches_enter_in_order() -> None:
    native = core.native.Hazards()
    native.enter(5, [], [])
    with pytest.raises(ValueError, match="in order"):
        native.enter(5, [], [])


def test_a_footprint_of_other_hazards_is_refused() -> None:
    first, second = core.native.Hazards(), core.native.Hazards()
    footprint = first.footprint([], [plain(1, 0, 4)])
    with pytest.raises(ValueError, match="belongs to"):
        second.enter_footprint(1, footprint)
    del first  # a footprint may live longer than what it was made by
    del footprint


@pytest.mark.parametrize(
    ("core_found", "what"),
    [
        ("None", "has no native core that loads"),
        ("types.ModuleType('acs_cl._core')", "was not built"),
        ("types.SimpleNamespace(INTERFACE=1)", "was built from other sources (interface 1,"),
    ],
    ids=["none", "sources", "stale"],
)
def test_without_the_core_an_import_says_what_to_do(core_found: str, what: str) -> None:
    code = (
        f"import sys, types; sys.modules['acs_cl._core'] = {core_found}; from acs_cl import Runtime"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: ")
    for words in (what, "install a wheel", "C++17 compiler", "Python's headers", "make venv"):
        assert words in last


def test_sources_that_hide_an_installation_say_so(tmp_path: Path) -> None:
    """As after `pip install .`, if Python is started where that was done."""
    (tmp_path / "acs_cl").mkdir()
    (tmp_path / "acs_cl" / "core.py").touch()
    code = (
        "import sys, types; sys.modules['acs_cl._core'] = types.ModuleType('acs_cl._core')\n"
        f"import acs_cl; sys.path.append({str(tmp_path)!r}); acs_cl.Runtime"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    last = done.stderr.splitlines()[-1]
    assert f"hides the acs_cl that is installed in {tmp_path / 'acs_cl'}; start Python in" in last
    assert "C++17" not in last


# ---- launches of the core's own, without a device ----------------------------------------------


class Base:
    """Memory of nobody's, for arrays."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.nbytes = 256
        self.block = self
        self.address = number << 20
        self.memory = None
        self.offset = 0

    def place(self, start: int, nbytes: int) -> Place:
        return Place(self, 0, nbytes)


class Places:
    """Where launches are, as the table knows it."""

    def __init__(self) -> None:
        self.number = 0
        self.tasks: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return sum(map(len, self.tasks.values()))

    def put(self, number: int, epoch: int, task: int) -> None:
        numbers = self.tasks.setdefault(epoch, [])
        assert task == len(numbers)
        numbers.append(number)

    def epoch(self, number: int) -> int:
        return next((epoch for epoch, numbers in self.tasks.items() if number in numbers), 0)

    def task(self, number: int, epoch: int) -> int:
        numbers = self.tasks.get(epoch, [])
        return numbers.index(number) if number in numbers else -1

    def numbers(self, epoch: int) -> list[int]:
        return self.tasks.get(epoch, [])

    def leave(self, epoch: int) -> list[int]:
        return self.tasks.pop(epoch, [])


PLAIN = core.native.Binder([], None, [], None, ())


class Fake(core.native.Caller):
    """A kernel and its runtime; what is not plain is counted."""

    def __init__(self) -> None:
        self.engine: Any = self
        self.long_way = 0
        self.kept: list[int] = []

    def _call(self, *args: Any, **keywords: Any) -> None:
        self.long_way += 1

    def poll(self) -> None:
        """Nothing is due."""

    def take_over(self, number: int, goes_on: bool) -> None:
        self.kept.append(number)  # it is in the table, where an epoch was to take it


def read_by(x: Array, y: Array, when: Array | None) -> tuple[Any, ...]:
    """What a launch on `x` and `y` reads."""
    return (x.span, y.span) if when is None else (x.span, y.span, when.span)


def overlaps(when: Array, y: Array) -> bool:
    a, b = when.span, y.span
    assert a is not None
    assert b is not None
    return a.base == b.base and overlap(a, b)


LAYOUTS = {  # bytes of the arguments: where each is in a record, and all of them without it
    24: ((("P", 64, "r"), ("P", 72, "rw"), ("f", 80, ""), ("i", 84, "")), "<QQfi"),
    88: ((("P", 64, "r"), ("P", 72, "rw"), ("f", 80, ""), ("i", 148, "")), "<QQf64xi"),
}


def packed(head: bytes, nbytes: int, *arguments: Any) -> tuple[bytes, bytes | None]:
    """A record with its arguments, or its head and the arguments."""
    blob = struct.pack(LAYOUTS[nbytes][1], *arguments)
    return (head, blob) if nbytes > 64 else (head + blob + bytes(64 - nbytes), None)


@pytest.mark.parametrize("part", range(EACH))
def test_launches_of_the_core_in_random_programs_are_the_same(part: int) -> None:
    """As tasks, edge by edge and word by word, over several epochs, however they end."""
    for seed in range(part, FUZZ, EACH):
        rng = random.Random(seed)
        kernel, native, python = Fake(), core.native.Table(), Places()
        hazards, expected, lock = core.native.Hazards(), ReplayHazards(), core.native.Lock()
        native.join(hazards, lock, 10_000, None, False, False)
        native.usable = True
        bases = [Base(number) for number in range(1, 5)]
        arrays = [
            Array(kernel, rng.choice(bases), 4 * rng.randrange(8), (n,), (4,), np.dtype("f4"))
            for n in (1, 2, 8, 8)
            for _ in range(4)
        ]
        nbytes = rng.choice(list(LAYOUTS))
        head = layout.head(0, 1, 8, 8, 1, nbytes)
        wide = Array(kernel, bases[0], 0, (1,), (8,), np.dtype("u8"))
        flags = [
            Array(kernel, rng.choice(bases), 4 * rng.randrange(32), (1,), (4,), np.dtype(kind))
            for kind in ("u4", "i4")
            for _ in range(4)
        ]
        scheduler = object()
        parameters = [
            (code, mode, struct.calcsize(f"={code}") if code != "P" else 8, at)
            for code, at, mode in LAYOUTS[nbytes][0]
        ]
        core.native.plan(kernel, native, "fake", parameters, PLAIN, None, (nbytes, 0), 0)
        for index in range(len(parameters)):
            core.native.plan_elements(kernel, index, None)
        core.native.plan_sizes(kernel, (8,), None, None, [(scheduler, 0, head, None, None)], None)
        live: list[tuple[int, list[int]]] = []
        handles: list[Any] = []
        made: dict[int, Access] = {}
        for epoch in range(1, 6):
            ours, theirs = layout.Recorder(), layout.Recorder()
            native.open(epoch, ours, scheduler, 0, 1 << 20, 1 << 20, rng.choice((0, 5)))
            numbers = []
            for _ in range(rng.choice((1, 10, 60))):
                x, y = rng.choice(arrays), rng.choice(arrays)
                a, n = rng.choice((rng.random(), 3, np.float32(0.5))), rng.randint(-9, 9)
                when = rng.choice(flags) if rng.random() < 0.4 else None
                if when is not None and overlaps(when, y):
                    before, asked = native.number, kernel.long_way
                    kernel((8,), None, x, y, a, n, when=when)
                    assert (native.number, kernel.long_way) == (before, asked + 1)
                    when = None
                if rng.random() < 0.1:
                    before = native.number
                    wrong = rng.choice(((x, y, 1.0, 1 << 40), (x, 3, 1.0, 1), (x, y, 1.0)))
                    kernel((8,), None, *wrong)
                    kernel((9,), None, x, y, 1.0, 1)
                    kernel((8,), None, x, y, 1.0, 1, reads=[3])
                    for flag in (arrays[0], wide, 3, None if when is None else [when]):
                        if flag is not None:
                            kernel((8,), None, x, y, 1.0, 1, when=flag)
                    kernel((8,), None, x, y, 1.0, 1, when=flags[0], reads=[3])
                    assert native.number == before
                if rng.random() < 0.5:
                    keyword = {} if when is None and rng.random() < 0.5 else {"when": when}
                    handles.append(kernel((8,), None, x, y, a, n, **keyword))
                    assert handles[-1].access.writes == (y.span,)
                    assert handles[-1].access.reads == read_by(x, y, when)
                else:
                    columns = [(x, False), ([y], True), (np.array([a], "f4"), True), ([n], True)]
                    decides = when is not None and rng.choice(((when, False), ([when], True)))
                    keywords = {"when": decides} if decides else {}
                    sizes = [((8,), False), (None, False)]
                    parts = core.native.launch_many(kernel, sizes, columns, keywords, 1)
                    (many,), at, error = parts
                    assert (many.many, at, error) == (1, 1, None)
                    assert (many.reads, many.writes) == (list(read_by(x, y, when)), [y.span])
                number = python.number = python.number + 1
                assert native.number == number
                made[number] = Access(read_by(x, y, when), (y.span,))
                found = expected.enter(number, read_by(x, y, when), (y.span,))
                inside = [python.task(other, epoch) for other in found]
                inside = [task for task in inside if task >= 0]
                record, blob = packed(head, nbytes, x.address, y.address, a, n)
                if when is not None:
                    record = layout.with_when(record, when.address)
                python.put(number, epoch, theirs.add(record, blob, None, inside))
                numbers.append(number)
            assert native.shut() == []
            live.append((epoch, numbers))
            assert native.of_epoch(epoch) == python.numbers(epoch) == numbers
            assert native.epoch(numbers[-1]) == python.epoch(numbers[-1]) == epoch
            assert ours.image(4).words.tolist() == theirs.image(4).words.tolist()
            assert ours.entries == theirs.entries
            assert (hazards.edges, hazards.pruned) == (expected.edges, expected.pruned)
            flying = [one for _, some in live for one in some]
            assert native.live() == flying
            assert {*map(native.state, flying)} <= {"executing"}
            assert native.oldest() == min(flying, default=0)
            for last in (0, *rng.sample(range(native.number + 2), min(3, native.number))):
                assert native.newest(last) == max((n for n in flying if n <= last), default=0)
            while live and rng.random() < 0.6:
                ended, numbers = live.pop(0)
                python.leave(ended)
                if rng.random() < 0.3:  # something of it has failed: each is told
                    assert native.leave(ended, True) == numbers
                    for number in rng.sample(numbers, len(numbers)):
                        native.end(number, rng.random() < 0.5)
                else:
                    assert native.leave(ended) == []
                    native.end_epoch(ended)
                for number in numbers:
                    expected.retire(number)
            assert native.in_epochs == len(python)
            assert hazards.live == expected.live == len(native)
        records = native.later(0)
        assert [one.number for one in records] == [one for _, some in live for one in some]
        assert all(one.access == made[one.number] for one in records)
        assert {(one.command.name, one.upstream) for one in records} <= {("fake", ())}
        assert native.by_core == native.number
        assert not kernel.kept
        native.recording(1)
        before = kernel.long_way
        kernel((8,), None, arrays[0], arrays[0], 1.0, 1)
        assert kernel.long_way == before + 1
        core.native.forget(kernel)
        kernel.engine = None


def test_what_is_taught_has_to_fit() -> None:
    kernel, table = Fake(), core.native.Table()
    for wrong in (
        ("P", "r", 8, 124),
        ("i", "", 4, 60),
        ("i", "", 8, 64),
        ("x", "", 4, 64),
        ("", "", 4, 64),
        ("ii", "", 4, 64),
        ("L", "", 4, 126),
    ):
        with pytest.raises(ValueError, match="does not fit"):
            core.native.plan(kernel, table, "fake", [wrong], PLAIN, None, (64, 0), 0)
    body = core.native.Binder([("i", "", 4, 1)], [([], [], [], [])], [(0, 0, "i")], None, ())
    with pytest.raises(ValueError, match="numbers only"):
        core.native.plan(kernel, table, "fake", [("P", "r", 8, 0)], body, None, None, 0)
    with pytest.raises(TypeError):
        core.native.plan(object(), table, "fake", [], PLAIN, None, None, 0)
    assert not core.native.is_planned(kernel, False)
    one = kernel, table, "fake", [("P", "r", 8, 0)], PLAIN, None, None
    core.native.plan(*one, 0)
    assert core.native.is_planned(kernel, False)
    core.native.forget(kernel)
    core.native.plan(*one, 0)  # made of what held before
    assert not core.native.is_planned(kernel, False)
    core.native.plan(*one, kernel.forgets)
    assert core.native.is_planned(kernel, False)
    core.native.forget(kernel)
    kernel.engine = None


def test_declared_ranges_that_nobody_has_evaluated_are_not_known() -> None:
    """To ask for them ended the process."""
    needed = [(0, 0, "P"), (1, 0, "i")]
    told = core.native.Binder([("P", "w", 8, 1), ("i", "", 4, 1)], None, needed, None, ())
    with pytest.raises(ValueError, match="only a bind evaluates ranges"):
        told.reached((10,), None, None, [400, 3], None)


@pytest.mark.parametrize("step", [sys.maxsize, -sys.maxsize, 1 << 62, 3])
def test_a_step_beyond_the_array_has_the_stride_that_numpy_gives_it(step: int) -> None:
    numbers = np.arange(8, dtype=np.int64)
    view = numbers[::step]
    found = core.native.index_view(slice(None, None, step), numbers.shape, numbers.strides)
    offset = view.__array_interface__["data"][0] - numbers.__array_interface__["data"][0]
    assert found == (view.shape, view.strides, offset)


def test_launches_that_are_made_together_stay_when_the_caller_changes_its_list() -> None:
    hazards, access = core.native.Hazards(), Access((plain(1, 0, 8),), (plain(2, 0, 8),))
    command = KernelCommand("k", None, (8,), None, (), (), None)
    prepared = core.native.Prepared(hazards, command, access, None)
    alone = sys.getrefcount(prepared)
    launches = [(prepared, 0, access.reads, access.writes)]
    together = core.native.Together(launches)
    launches.clear()
    assert sys.getrefcount(prepared) == alone + 1
    del together
    assert sys.getrefcount(prepared) == alone
