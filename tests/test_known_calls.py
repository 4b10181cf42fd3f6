"""Launches of foreseen epochs that are known by their calls, and calls that differ in one thing."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
import pytest
from ctrl_c import Ctrl

import acs_cl as acs
from acs_cl import testing
from acs_cl.emu.reference.forecast import OFTEN

SOURCE = """
kernel void add(global uint *x, uint a) { x[get_global_id(0)] += a; }
kernel void sub(global uint *x, uint a) { x[get_global_id(0)] -= a; }
kernel void bits(global uint *x, float f) { x[get_global_id(0)] ^= as_uint(f); }
kernel void groups(global uint *x, uint a) { x[get_global_id(0)] += a * get_local_size(0); }
"""
ROWS, ITEMS = 10, 4
CHANGED = 6
"""The launch of a step that differs."""

SETTLED = OFTEN + 2
"""Steps after which each call is known."""


class Rows:
    """A runtime, its kernels, an array for each launch of a step, and what NumPy has of them."""

    def __init__(self, runtime: acs.Runtime) -> None:
        self.runtime = runtime
        self.made = runtime.build(SOURCE)
        self.names = ("add", "sub", "bits")
        runtime.prebuild(*(getattr(self.made, name) for name in self.names))
        runtime.prebuild(*((self.made.groups, (group,)) for group in (2, ITEMS)))
        self.rows = [runtime.zeros(ITEMS, "u4") for _ in range(ROWS)]
        self.host = np.zeros((ROWS, ITEMS), "u4")
        self.yes, self.also = (runtime.array([1], "i4") for _ in range(2))
        self.no = runtime.zeros((1,), "i4")

    def step(self, launch: Callable[[Rows, int], object]) -> int:
        """Make a step of which one launch is another one; how many were known by their calls."""
        before = self.known
        for row in range(ROWS):
            (launch if row == CHANGED else usual)(self, row)
        self.runtime.finish()
        return self.known - before

    @property
    def known(self) -> int:
        """How many launches were known by their calls so far."""
        found: int = self.runtime.stats()["scheduler"]["predicted"]["by_call"]
        return found

    def check(self) -> None:
        """Every value."""
        for row, host in zip(self.rows, self.host, strict=True):
            np.testing.assert_array_equal(row.get(), host)


@pytest.fixture
def rows(device: cl.Device) -> Iterator[Rows]:
    with testing.open_epochs(), acs.Runtime(device, backend="device", predict=True) as runtime:
        yield Rows(runtime)


def usual(rows: Rows, row: int, number: Any = 5) -> None:
    rows.made.add((ITEMS,), None, rows.rows[row], number)
    rows.host[row] += np.uint32(number)


def another_kernel(rows: Rows, row: int) -> None:
    rows.made.sub((ITEMS,), None, rows.rows[row], 5)
    rows.host[row] -= np.uint32(5)


def another_size(rows: Rows, row: int) -> None:
    rows.made.add((ITEMS - 1,), None, rows.rows[row], 5)
    rows.host[row, : ITEMS - 1] += np.uint32(5)


def another_row(rows: Rows, row: int) -> None:
    usual(rows, row - 1)


def a_part(rows: Rows, row: int) -> None:
    rows.made.add((2,), None, rows.rows[row][2:], 5)
    rows.host[row, 2:] += np.uint32(5)


def a_new_array(rows: Rows, row: int) -> None:
    """It may lie where the one before did."""
    rows.rows[row] = rows.runtime.array(rows.host[row], "u4")
    usual(rows, row)


def a_keyword(rows: Rows, row: int) -> None:
    rows.made.add((ITEMS,), None, rows.rows[row], 5, when=rows.no)


def number_of_numpy(rows: Rows, row: int) -> None:
    usual(rows, row, np.uint8(5))


def a_view_made_anew(rows: Rows, row: int) -> None:
    rows.made.add((ITEMS,), None, rows.rows[row][:], 5)
    rows.host[row] += np.uint32(5)


DIFFER = (
    lambda rows, row: usual(rows, row, 6),
    another_kernel, another_size, another_row, a_part, a_new_array, a_keyword,
)  # fmt: skip
ALIKE = (usual, number_of_numpy, a_view_made_anew)


@pytest.mark.parametrize("launch", [*DIFFER, *ALIKE])
def test_a_call_that_differs_in_one_thing_is_another_launch(
    rows: Rows, launch: Callable[[Rows, int], None]
) -> None:
    for _ in range(2):
        rows.step(launch)  # from which the core learns its kernel and sizes
    for _ in range(SETTLED):
        rows.step(usual)
    assert rows.step(usual) == ROWS - 1, "all but the first, which opens the epoch"
    known = rows.step(launch)
    assert (known == ROWS - 1) is (launch in ALIKE)
    rows.check()
    for _ in range(SETTLED):
        rows.step(usual)
    assert rows.step(usual) == ROWS - 1
    rows.check()


class Pair(NamedTuple):
    """Two calls for the same row that are alike but for what they say."""

    names: str
    size: tuple[tuple[int, ...] | None, tuple[int, ...] | None]
    numbers: tuple[float, float]


PAIRS = (
    Pair("bits", (None, None), (0.0, -0.0)),
    Pair("bits", (None, None), (1.0, 1.0 + 2**-23)),
    Pair("groups", ((2,), (ITEMS,)), (1, 1)),
)


@pytest.mark.parametrize("pair", PAIRS)
def test_what_is_nearly_alike_is_told_apart(rows: Rows, pair: Pair) -> None:
    def launch(which: int) -> Callable[[Rows, int], None]:
        def made(rows: Rows, row: int) -> None:
            local, number = pair.size[which], pair.numbers[which]
            getattr(rows.made, pair.names)((ITEMS,), local, rows.rows[row], number)
            if pair.names == "bits":
                rows.host[row] ^= np.float32(number).view("u4")
            else:
                assert local is not None
                rows.host[row] += np.uint32(number * local[0])

        return made

    for which in (0,) * SETTLED + (1, 0, 1, 1, 0):
        rows.step(launch(which))
        rows.check()


def test_a_plan_that_is_forgotten_while_a_call_looks(rows: Rows) -> None:
    """The call sends the whole epoch before it, and hears of a signal there. Its handler forgot the
    plan that the call went on with: a null pointer."""
    ctrl, heard = Ctrl(), list[int]()

    def handle(number: int, _: object) -> None:
        heard.append(number)
        rows.made.add.infer_ranges = False

    for _ in range(SETTLED):
        rows.step(usual)
    for row in range(ROWS):
        usual(rows, row)
    table = rows.runtime.engine.table
    with rows.runtime.engine.lock:
        assert table.is_complete, "nothing more comes, so the epoch is whole"
    before = signal.signal(signal.SIGINT, handle)
    try:
        rows.made.add((ITEMS,), None, rows.rows[0], 5 if (-ctrl) is None else 0)
    finally:
        signal.signal(signal.SIGINT, before)
    rows.host[0] += np.uint32(5)
    assert heard == [signal.SIGINT]
    rows.check()


def test_flags_that_decide_are_told_apart(rows: Rows) -> None:
    def launch(flag: acs.Array) -> Callable[[Rows, int], None]:
        def made(rows: Rows, row: int) -> None:
            rows.made.add((ITEMS,), None, rows.rows[row], 5, when=flag)
            rows.host[row] += np.uint32(0 if flag is rows.no else 5)

        return made

    for _ in range(SETTLED):
        rows.step(launch(rows.yes))
    assert rows.step(launch(rows.yes)) == ROWS - 1
    for flag in (rows.no, rows.yes, rows.also, rows.yes):
        rows.step(launch(flag))
        rows.check()
    rows.step(usual)
    rows.check()


def test_a_call_that_is_refused_is_refused_where_it_was_known(rows: Rows) -> None:
    for _ in range(SETTLED):
        rows.step(usual)
    wrong: Sequence[Callable[[], object]] = (
        lambda: rows.made.add((ITEMS,), None, rows.rows[1], 1 << 40),
        lambda: rows.made.add((ITEMS,), None, rows.rows[1], "5"),
        lambda: rows.made.add((ITEMS,), None, rows.rows[1]),
        lambda: rows.made.add((ITEMS,), None, np.zeros(ITEMS, "u4"), 5),
        lambda: rows.made.add((0,), None, rows.rows[1], 5),
    )
    for call in wrong:
        usual(rows, 0)
        with pytest.raises(acs.AcsError):
            call()
    rows.step(usual)
    rows.check()


def test_what_the_handle_of_a_known_call_says_is_as_before(rows: Rows) -> None:
    handles = list[acs.Handle]()
    for _ in range(SETTLED + 1):
        handles = [rows.made.add((ITEMS,), None, row, 1) for row in rows.rows]
        rows.runtime.finish()
    with acs.Runtime(rows.runtime.device, backend="device", predict=False) as plain:
        x = plain.zeros(ITEMS, "u4")
        recorded = plain.build(SOURCE).add((ITEMS,), None, x, 1)
        assert rows.known
        for handle, row in zip(handles, rows.rows, strict=True):
            assert handle.name == recorded.name == "add"
            assert handle.access.reads == handle.access.writes == row.spans
            assert recorded.access.reads == recorded.access.writes == x.spans
            assert len(handle.access.overwrites) == len(recorded.access.overwrites)
    assert all(b.number == a.number + 1 for a, b in pairwise(handles))


def test_arrays_of_known_calls_are_not_kept(rows: Rows) -> None:
    for _ in range(SETTLED):
        rows.step(usual)
    assert rows.step(usual) == ROWS - 1
    gone = weakref.ref(rows.rows[CHANGED])
    del rows.rows[CHANGED]
    assert gone() is None


class Windows:
    """Views of one array, each of which shares bytes with dozens of others."""

    def __init__(self, runtime: acs.Runtime) -> None:
        self.runtime, self.add = runtime, runtime.build(SOURCE).add
        x = runtime.zeros(300, "u4")
        self.views = [x[at : at + 32] for at in range(256)]

    def turn(self) -> int:
        """Use each of them by itself; how many others new ones were compared with."""
        before = self.runtime.engine.hazards.compared
        for view in self.views:
            self.add((32,), None, view, 1)
            self.runtime.finish()
        found: int = self.runtime.engine.hazards.compared - before
        return found


def test_what_is_known_of_views_that_are_used_in_turns_is_kept(device: cl.Device) -> None:
    """Those that came later swept others out of the index, which were looked up again next time."""
    with acs.Runtime(device, backend="serial") as runtime:
        windows = Windows(runtime)
        for _ in range(3):
            windows.turn()
        assert windows.turn() == 0


def test_what_is_known_of_views_stays_when_a_recording_goes(
    device: cl.Device, scheduler: None
) -> None:
    """The span of all views, which a replay has, went out of the index with them."""
    with acs.Runtime(device, backend="device", predict=False) as runtime:
        windows = Windows(runtime)
        for _ in range(2):  # the index has room for all of it the second time
            for _ in range(3):
                windows.turn()
            with runtime.record() as graph:
                for view in windows.views:
                    windows.add((32,), None, view, 1)
            runtime.prebuild()  # else a replay may be launched one by one
            for _ in range(2):
                graph.replay()
                runtime.finish()
            spans = runtime.engine.hazards.spans
            del graph
            gc.collect()
            found = windows.turn()
        assert found == 0
        assert runtime.engine.hazards.spans < spans, "that of the recording is gone"


COUNTS = """
#include <cstdlib>
#include <new>
static thread_local long many;
extern "C" long allocations() { return many; }
void *operator new(std::size_t size) {
    many++;
    if (void *found = std::malloc(size)) return found;
    throw std::bad_alloc();
}
void operator delete(void *place) noexcept { std::free(place); }
void operator delete(void *place, std::size_t) noexcept { std::free(place); }
"""
"""Counts what C++ allocates in a thread."""

LAUNCHES_ONE_BY_ONE = f"""
import ctypes, sys
from itertools import count
import acs_cl as acs
from acs_cl import testing

allocations = ctypes.CDLL(sys.argv[1]).allocations
with testing.open_epochs(), acs.Runtime(backend="device", predict=True) as rt:
    made = rt.build({SOURCE!r})
    rt.prebuild(made.add)
    rows, numbers = [rt.zeros({ITEMS}, "u4") for _ in range({ROWS})], count()
    def step(number):
        took = []
        for row in rows:
            before = allocations()
            made.add(({ITEMS},), None, row, number)
            took.append(allocations() - before)
        rt.finish()
        return took
    for turn in range({SETTLED}):
        step(5)
    print(*step(5))
    step(6)  # which makes room for what the device has to be told
    print(*step(7))
    assert rt.stats()["scheduler"]["predicted"]["by_call"]
"""


def test_a_known_call_with_another_number_allocates_nothing(
    scheduler: None, tmp_path: Path
) -> None:
    """The core made a list of its arrays, and found that it had one like it."""
    compiler = shutil.which("c++")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no C++ compiler, or a system without LD_PRELOAD")
    if "LD_PRELOAD" in os.environ:
        pytest.skip("a sanitizer has memory of its own")
    source, library = tmp_path / "counts.cpp", tmp_path / "counts.so"
    source.write_text(COUNTS, "utf-8")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", source, "-o", library], check=True)
    done = subprocess.run(
        [sys.executable, "-c", LAUNCHES_ONE_BY_ONE, library],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    same, differs = done.stdout.splitlines()
    assert same.split() == differs.split() == ["0"] * ROWS
