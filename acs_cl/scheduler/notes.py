"""Notes: which group ran which tile of an epoch, and when.

Input: a scheduler in its timed form, and the epochs that it ran. Output: runs of launches in
groups, on the clock of the driver's events. A timed scheduler writes a note for each tile into
memory of its own. The host reads it when the scheduler has no epoch.

The device has a clock of its own: nanoseconds, ticks of some length, or a count that tells only the
order. The clock is matched with the driver's by two facts. A kernel reads it between its own start
and end, and no tile begins before its epoch or ends after it.

Invariant: notes that do not fit are counted, so that a loss is always reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyopencl as cl

from ..devices import driver
from ..devices.driver import CommandQueue, OwnKernel
from ..records import Found, NamedTuple, ReplayTask, Run
from . import layout
from .layout import Longs

TIMED = "-DACS_TIMED=1"
"""The option by which a scheduler is built in its timed form."""

CLOCK = "acs_read_clock"
"""A kernel of the timed form, which reads the clock."""

MOST = 1 << 17
"""Tiles that one scheduler can note until the host reads: 4 MiB."""

USED, DROPPED, ENTRIES, HEADER, WORDS = 0, 2, 4, 32, 8
REFERENCE, GROUP, LAUNCH, ROOT = range(4)
NANOSECONDS, TICKS, ORDER = 1, 2, 3
CLOCKS = {NANOSECONDS: "ns", TICKS: "ticks", ORDER: "order"}
READS = 32
"""How often the kernel reads the clock between its first and its last value."""

NOTED, NOTES = 105, 106
"""Indices in the status buffer: how many launches of the scheduler the notes tell of so far, and
how many entries these took."""

ZERO = np.zeros(1, np.uint32)


class Anchor(NamedTuple):
    """A value of the device's clock, and the driver's times before and after it."""

    at: int
    first_ns: int
    last_ns: int


class Noted(NamedTuple):
    """An epoch that a timed scheduler ran."""

    notes: Notes
    launch: int
    """How many launches of its scheduler came before; `upto` counts its own too. 0: no notes."""
    upto: int
    start_ns: int
    end_ns: int
    numbers: Sequence[int]
    """The launch of each task; for a replay, its own number."""
    parts: Callable[[], Sequence[ReplayTask]] | None
    """For a replay: returns its tasks."""


class Notes:
    """Holds the memory of one scheduler's notes, and its clock."""

    def __init__(
        self, context: cl.Context, device: cl.Device, program: Any, room: int = MOST
    ) -> None:
        self.room = room
        timed = cl.command_queue_properties.PROFILING_ENABLE
        self._queue = CommandQueue(context, device, properties=timed)
        fresh = np.zeros(HEADER + room * WORDS, np.uint32)
        fresh[ENTRIES] = room
        self.memory = driver.buffer_of(context, fresh)
        self._told = cl.Buffer(context, cl.mem_flags.READ_WRITE, 64)
        self._clock = OwnKernel(program, CLOCK)
        self._clock._set_arg_multi((0, self.memory, 1, self._told))
        self.kind, self.cost = 0, 0.0
        """The kind of its clock, and how long a note takes in the units of the clock."""
        self._began: Anchor | None = None

    def give(self, native: OwnKernel) -> None:
        """Make the memory the last argument of a scheduler."""
        native._set_arg_multi((native.num_args - 1, self.memory))

    def begin(self) -> None:
        """Forget all notes. The scheduler must have no epoch."""
        self._began = self._look()
        self._clear(self.room)

    def take(self) -> tuple[layout.Words, int, list[Anchor]]:
        """Return the notes since the last call, how many did not fit, and the clock before and
        after. The scheduler must have no epoch."""
        head = np.empty(HEADER, np.uint32)
        self._read(head, 0)
        used = min(int(head[USED]), self.room)
        entries = np.empty((used, WORDS), np.uint32)
        if used:
            self._read(entries, 4 * HEADER)
        now = self._look()
        anchors = [now] if self._began is None else [self._began, now]
        self._began = now
        self._clear(used)
        return entries[entries[:, REFERENCE] != 0], int(head[DROPPED]), anchors

    def _read(self, into: layout.Words, at: int) -> None:
        place = driver.Place(self.memory, at, into.nbytes)
        driver.wait_for_event(driver.read(self._queue, into, place, None))

    def _clear(self, entries: int) -> None:
        """Clear the notes. The number of entries in the header stays."""
        for at, words in ((0, ENTRIES), (HEADER, entries * WORDS)):
            if words:
                place = driver.Place(self.memory, 4 * at, 4 * words)
                driver.fill(self._queue, place, ZERO, None).wait()

    def _look(self) -> Anchor:
        event = driver.run(self._queue, self._clock, 1, 1)
        told = np.empty(4, np.uint64)
        driver.wait_for_event(
            driver.read(self._queue, told, driver.Place(self._told, 0, told.nbytes), None)
        )
        kind, first, last, _ = (int(one) for one in told)
        self.kind, self.cost = kind, (last - first) / READS
        times = event.profile
        return Anchor(first, times.start, times.end)


class Book:
    """Keeps the epochs that timed schedulers of a backend ran, until their notes are read."""

    def __init__(self) -> None:
        self._epochs: list[Noted] = []
        self._kept = Found()
        self.is_large = False
        """There may soon be no room for notes."""

    def ended(self, epoch: Noted, entries: int) -> None:
        """Add an epoch that has ended. Behind it, notes of its scheduler have so many entries."""
        if epoch.upto:
            self._epochs.append(epoch)
            self.is_large |= entries > epoch.notes.room // 4

    def begin(self, all_notes: Iterable[Notes]) -> None:
        """Forget everything before now. Here and below, no epoch may be in flight."""
        self._epochs, self.is_large, self._kept = [], False, Found()
        for notes in all_notes:
            notes.begin()

    def keep(self) -> None:
        """Read the notes now, and keep them for `take`."""
        by_notes: dict[int, list[Noted]] = {}
        for one in self._epochs:
            by_notes.setdefault(id(one.notes), []).append(one)
        self._epochs, self.is_large = [], False
        for epochs in by_notes.values():
            self._kept = self._kept.and_those(found_in(epochs, *epochs[0].notes.take()))

    def take(self) -> Found:
        """Return what ended epochs ran since the last call, or since the beginning."""
        self.keep()
        found, self._kept = self._kept, Found()
        return found


def found_in(
    epochs: Sequence[Noted],
    entries: layout.Words,
    dropped: int,
    anchors: Sequence[Anchor],
) -> Found:
    """Return the runs of the epochs of one scheduler."""
    notes = epochs[0].notes
    launch = entries[:, LAUNCH].astype(np.int64)
    of = np.searchsorted(np.array([one.upto for one in epochs]), launch, side="right")
    first = np.array([*(one.launch for one in epochs), np.iinfo(np.int64).max])
    known = launch >= first[of]
    entries, of = entries[known], of[known]
    wide = entries.astype(np.int64)
    began, ended = wide[:, 4] | wide[:, 5] << 32, wide[:, 6] | wide[:, 7] << 32
    if notes.kind == ORDER:
        start, end, error, rate = *_in_order(epochs, of, began, ended), 0, 0.0
    else:
        start, end, error, rate = _in_time(notes.kind, epochs, of, began, ended, anchors)
    runs = _runs(epochs, wide, of, start, end)
    replays = [(one.numbers[0], one.parts) for one in epochs if one.parts is not None]
    made = {tell: tuple(tell()) for _, tell in replays}
    parts = tuple((number, made[tell]) for number, tell in replays)
    return Found(runs, parts, CLOCKS[notes.kind], error, dropped, notes.cost * rate)


def _in_time(
    kind: int,
    epochs: Sequence[Noted],
    of: Longs,
    began: Longs,
    ended: Longs,
    anchors: Sequence[Anchor],
) -> tuple[Longs, Longs, int, float]:
    """Convert times of the device's clock to the clock of events. Return starts, ends, the possible
    error, and nanoseconds of a tick. Times count from the first read of the clock: NVIDIA's events
    have 19 digits, a float 16."""
    first, last = anchors[0], anchors[-1]
    rate = 1.0
    if kind == TICKS and last.at > first.at:
        rate = (last.first_ns + last.last_ns - first.first_ns - first.last_ns) / 2.0
        rate /= last.at - first.at
    zero, zero_ns = first.at, first.first_ns
    lows = [one.first_ns - zero_ns - (one.at - zero) * rate for one in anchors]
    highs = [one.last_ns - zero_ns - (one.at - zero) * rate for one in anchors]
    starts = np.array([one.start_ns - zero_ns for one in epochs])
    ends = np.array([one.end_ns - zero_ns for one in epochs])
    if len(of):
        lows.append(float((starts[of] - (began - zero) * rate).max()))
        highs.append(float((ends[of] - (ended - zero) * rate).min()))
    low, high = max(lows), min(highs)
    offset = (low + high) / 2
    start = np.rint((began - zero) * rate + offset).astype(np.int64)
    end = np.rint((ended - zero) * rate + offset).astype(np.int64)
    if len(of):  # because of rounding, and clocks that drift
        start, end = np.clip(start, starts[of], ends[of]), np.clip(end, starts[of], ends[of])
    return start + zero_ns, end + zero_ns, int(abs(high - low) / 2) + 1, rate


def _in_order(
    epochs: Sequence[Noted], of: Longs, began: Longs, ended: Longs
) -> tuple[Longs, Longs]:
    """Spread the order evenly over each epoch, for a device without a clock."""
    start, end = began.copy(), ended.copy()
    for place, one in enumerate(epochs):
        mine = np.flatnonzero(of == place)
        if len(mine):
            low, high = began[mine].min(), ended[mine].max()
            step = (one.end_ns - one.start_ns) / max(1, int(high - low))
            start[mine] = one.start_ns + np.rint((began[mine] - low) * step).astype(np.int64)
            end[mine] = one.start_ns + np.rint((ended[mine] - low) * step).astype(np.int64)
    return start, end


def _runs(
    epochs: Sequence[Noted], entries: Longs, of: Longs, start: Longs, end: Longs
) -> list[Run]:
    """Make a run of each tile, or of consecutive tiles of a task that one group ran."""
    order = np.lexsort((start, entries[:, GROUP], of))
    runs: list[Run] = []
    before = None
    for at in order.tolist():
        epoch = epochs[int(of[at])]
        reference, root = int(entries[at, REFERENCE]), int(entries[at, ROOT])
        task = (root or reference & layout.TASK_MASK) - 1
        group, is_child = int(entries[at, GROUP]), bool(root)
        if task >= len(epoch.numbers) and epoch.parts is None:
            continue
        same = int(of[at]), group, task, is_child
        if same == before:
            runs[-1] = runs[-1]._replace(end_ns=int(end[at]), tiles=runs[-1].tiles + 1)
            continue
        before = same
        is_replay = epoch.parts is not None
        number, part = (epoch.numbers[0], task) if is_replay else (epoch.numbers[task], -1)
        runs.append(Run(number, part, group, int(start[at]), int(end[at]), 1, is_child))
    return runs
