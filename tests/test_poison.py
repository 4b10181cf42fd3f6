"""Poison against a model of single bytes, worked out anew in program order after each step.

The model: a launch that failed, or reads a byte that never came to be, leaves all bytes it writes
poisoned; any other makes the bytes good that it overwrites completely. What failed when, in real
time, must not matter: failures come in any order, also after later launches have retired.
"""

from __future__ import annotations

import weakref
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acs_cl.emu.reference.hazards import Hazards
from acs_cl.errors import PoisonedError
from acs_cl.launch.failures import Failure, Failures, Poison, lost
from acs_cl.records import EVERYTHING, Access, Launch, Span


class Nothing:
    """A command for launches that no backend sees."""

    name = "nothing"
    on_host = False

    def enqueue(self, queue: object, wait_for: object) -> None:
        raise AssertionError


NOTHING = Nothing()


class Memory:
    """Something that can be held."""


def plain(base: int, start: int, width: int) -> Span:
    return Span(base, start, width, 1, width)


def bytes_of(spans: tuple[Span, ...]) -> set[tuple[int, int]]:
    return {
        (span.base, span.start + row * span.pitch + byte)
        for span in spans
        for row in range(span.rows)
        for byte in range(span.width)
    }


class Program:
    """Launches, failures and retirements as the runtime reports them, and the model beside it."""

    def __init__(self) -> None:
        self.hazards = Hazards()
        self.failures = Failures()
        self.access: dict[int, Access] = {}
        self.upstream: dict[int, tuple[int, ...]] = {}
        self.live: dict[int, Launch] = {}
        self.failed: set[int] = set()
        self.carriers: set[int] = set()

    def launch(self, access: Access, carries: bool = False) -> None:
        number = len(self.access) + 1
        self.access[number] = access
        upstream = tuple(self.hazards.enter(number, access.reads, access.writes))
        self.upstream[number] = upstream
        self.live[number] = Launch(number, NOTHING, access, upstream)
        failure = self.failures.reads_poison(access)
        if carries:
            self.carriers.add(number)
            self.failures.poison.carry(access)
        elif failure is not None:
            self.failures.note(number, failure)
            self.failures.poison.add(access.writes, failure)
        else:
            self.failures.poison.overwrite(access.overwrites)

    def fail(self, choice: int) -> None:
        """Any live launch that is not poisoned: those behind foreign events fail at any time."""
        able = [number for number in self.live if not self.failures.knows(number)]
        if able:
            number = able[choice % len(able)]
            self.failed.add(number)
            failure = Failure(number, "test", "", RuntimeError(f"launch {number}"))
            later = [launch for other, launch in self.live.items() if other > number]
            self.failures.record(failure, self.access[number], later, self.carriers)

    def retire(self, choice: int) -> None:
        able = [n for n in self.live if not any(u in self.live for u in self.upstream[n])]
        if able:
            number = able[choice % len(able)]
            del self.live[number]
            self.hazards.retire(number)

    def check(self) -> None:
        poisoned: set[tuple[int, int]] = set()
        for number, access in self.access.items():
            reached = bool(bytes_of(access.reads) & poisoned) and number not in self.carriers
            if number in self.carriers - self.failed:
                (source,), (target,) = access.reads, access.writes
                poisoned -= bytes_of(access.writes)
                poisoned |= {
                    (target.base, target.start + byte)
                    for byte in range(min(source.width, target.width))
                    if (source.base, source.start + byte) in poisoned
                }
            elif reached or number in self.failed:
                poisoned |= bytes_of(access.writes)
            else:
                poisoned -= bytes_of(access.overwrites)
            assert self.failures.knows(number) == (reached or number in self.failed), number
        for base in range(1, 4):
            for byte in range(40):
                found = self.failures.poison.find((plain(base, byte, 1),))
                assert (found is not None) == ((base, byte) in poisoned), (base, byte)


@st.composite
def spans(draw: st.DrawFn) -> Span:
    base, start = draw(st.integers(1, 3)), draw(st.integers(0, 16))
    rows = draw(st.sampled_from((1, 1, 1, 3)))
    if rows == 1:
        return plain(base, start, draw(st.sampled_from((1, 3, 4, 8, 16))))
    return Span(base, start, 6, rows, draw(st.integers(1, 6)))


@st.composite
def accesses(draw: st.DrawFn) -> Access:
    """Overwrites are among the writes and never among the reads."""
    reads = tuple(draw(st.lists(spans(), max_size=2)))
    writes = tuple(draw(st.lists(spans(), max_size=2)))
    sure = tuple(span for span in writes if draw(st.booleans()))
    return Access(reads, writes, sure)


@st.composite
def copies(draw: st.DrawFn) -> tuple[str, Access]:
    """Of some bytes to another base. Half of a copy has all of a staging place on one side."""
    bases = draw(st.permutations((1, 2, 3)))
    width = draw(st.sampled_from((1, 4, 8, 16)))
    widths = draw(st.sampled_from([(width, width), (width, 20), (20, width)]))
    source, target = (
        plain(base, draw(st.integers(0, 16)), one)
        for base, one in zip(bases[:2], widths, strict=True)
    )
    return "copy", Access((source,), (target,), (target,))


steps = st.one_of(
    copies(),
    accesses(),
    accesses(),
    accesses(),
    st.tuples(st.just("fail"), st.integers(0, 99)),
    st.tuples(st.just("retire"), st.integers(0, 99)),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(steps, max_size=14))
def test_poison_is_exact_in_program_order(program: list[Access | tuple[str, Any]]) -> None:
    runner = Program()
    for step in program:
        if isinstance(step, Access):
            runner.launch(step)
        elif step[0] == "copy":
            runner.launch(step[1], carries=True)
        elif step[0] == "fail":
            runner.fail(step[1])
        else:
            runner.retire(step[1])
        runner.check()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.booleans(), spans()), max_size=12))
def test_poisoned_bytes_are_what_was_added_and_not_overwritten(
    program: list[tuple[bool, Span]],
) -> None:
    poison = Poison()
    expected: set[tuple[int, int]] = set()
    for added, span in program:
        if added:
            poison.add((span,), "failure")
            expected |= bytes_of((span,))
        else:
            poison.overwrite((span,))
            expected -= bytes_of((span,))
        assert bool(poison) == bool(expected)
    for base in range(1, 4):
        for byte in range(40):
            assert bool(poison.find((plain(base, byte, 1),))) == ((base, byte) in expected)


def test_poison_names_the_latest_failure_of_a_byte_and_ends_with_its_memory() -> None:
    poison = Poison()
    poison.add((plain(1, 0, 8),), "first")
    poison.add((plain(1, 4, 8),), "second")
    assert poison.find((plain(1, 0, 4),)) == "first"
    assert poison.find((plain(1, 5, 1),)) == "second"
    assert poison.find((plain(EVERYTHING, 0, 1),)) is not None
    assert poison.find((plain(2, 0, 64),)) is None
    poison.forget(1, (), set[int]().__contains__)
    assert not poison


@pytest.mark.parametrize("rows", [3, 100_000])
def test_poison_is_exact_however_many_rows_there_are(rows: int) -> None:
    """Work on pairs of rows would take hours here."""
    poison = Poison()
    columns = [Span(1, 4 * column, 16, rows, 4) for column in range(4)]
    poison.add((plain(1, 0, 16 * rows),), "all")
    poison.overwrite((columns[1],))
    poison.add((columns[2],), "column")
    assert [poison.find((one,)) for one in columns] == ["all", None, "column", "all"]
    poison.carry(Access((plain(1, 0, 16 * rows),), (plain(2, 8, 16 * rows),)))
    moved = [one._replace(base=2, start=one.start + 8) for one in columns]
    assert [poison.find((one,)) for one in moved] == ["all", None, "column", "all"]
    last = columns[3]._replace(start=columns[3].end - 4, rows=1)
    poison.overwrite(columns[:3])
    poison.overwrite((columns[3]._replace(rows=rows - 1),))
    assert poison.find(columns[:3]) is None
    assert poison.find((last,)) == "all"
    poison.forget(2, (), set[int]().__contains__)
    poison.overwrite((last,))
    assert not poison


def test_failed_columns_reach_readers_of_their_bytes_alone() -> None:
    column, next_one = (Span(1, 4 * at, 8, 100_000, 4) for at in range(2))
    later = [
        (2, Access((next_one,), (plain(2, 0, 4),))),
        (3, Access((column,), (plain(3, 0, 4),))),
        (4, Access((), (next_one,), (next_one,))),
    ]
    poison = Poison()
    assert poison.follow(later, "failure", (column,)) == [3]
    assert poison.find((next_one, plain(2, 0, 4))) is None
    written = [Access((), (column,)), Access((), (next_one,), (next_one,))]
    assert sum(span.nbytes for span in lost(written, {0})) == column.nbytes


def test_memory_is_kept_while_any_of_it_is_poisoned() -> None:
    poison = Poison()
    memory, other = Memory(), Memory()
    kept, dropped = weakref.ref(memory), weakref.ref(other)
    poison.add((plain(-5, 0, 8),), "failure")
    poison.keep(plain(-5, 0, 64), memory)
    poison.keep(plain(-6, 0, 64), other)
    del memory, other
    assert dropped() is None, "none of it is poisoned"
    poison.add((plain(-5, 0, 8), plain(-7, 0, 8)), "again")
    poison.overwrite((plain(-5, 0, 7),))
    assert kept() is not None
    poison.overwrite((plain(-5, 7, 1),))
    assert kept() is None


def test_only_reads_spread_poison() -> None:
    poison = Poison()
    x, y, z = plain(1, 0, 8), plain(2, 0, 8), plain(3, 0, 8)
    later = [
        (2, Access((y,), (x,))),  # writes poisoned bytes, perhaps not all: nothing is healed
        (3, Access((x,), (y,))),
        (4, Access((), (x,), (x,))),  # overwrites them
        (5, Access((x,), (z,))),
    ]
    assert poison.follow(later, "failure", (x,)) == [3]
    assert poison.find((y,)) == "failure"
    assert poison.find((x,)) is None
    assert poison.find((z,)) is None


def failed(number: int) -> Failure:
    return Failure(number, f"kernel{number}", "program.py:7", ValueError(f"because {number}"))


def test_each_failure_surfaces_once() -> None:
    failures = Failures()
    failures.record(failed(3), Access((), (plain(1, 0, 4),)), [])
    failures.record(failed(2), Access((), (plain(2, 0, 4),)), [])
    with pytest.raises(PoisonedError, match=r"launch 2 \(kernel2, .*program.py:7.*1 more failed"):
        failures.raise_untold()
    failures.raise_untold()
    with pytest.raises(PoisonedError, match="launch 3") as caught:  # bytes stay poisoned
        failures.raise_for_bytes((plain(1, 3, 1),), "what get() reads")
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_failure_told_by_a_wait_is_not_told_again_by_finish() -> None:
    failures = Failures()
    later = [Launch(5, NOTHING, Access((plain(1, 0, 4),), ()), ())]
    assert failures.record(failed(4), Access((), (plain(1, 0, 4),)), later) == [5]
    with pytest.raises(PoisonedError, match=r"launch 5 .*is poisoned: launch 4"):
        failures.raise_for_launch(5, "launch 5 (reader)")
    failures.raise_untold()


def test_what_any_memory_should_have_got_is_lost_where_the_program_has_its_address() -> None:
    poison, anything = Poison(), Span(EVERYTHING, 0, 1, 1, 1)
    seen, unseen = plain(1, 0, 64), plain(2, 0, 64)
    poison.addressed[1] = seen
    poison.add((anything,), "failure")
    assert poison.find((seen,)) == "failure"
    assert poison.find((unseen,)) is None
    poison.overwrite((seen,))
    reached = poison.follow([(2, Access((anything,), (anything,)))], "other", (unseen,))
    assert (reached, poison.find((seen,))) == ([2], "other")
    poison.forget(1, (), lambda _: False)
    poison.add((anything,), "third")
    assert poison.find((seen,)) is None
