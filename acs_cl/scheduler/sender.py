"""The sender of epochs: it enqueues them, and reads their outcome.

Input: epochs that take no more tasks. Output: an event behind everything of an epoch, and later its
outcome. An epoch is one upload, launches of the scheduler, and a read of its status buffer. A
segment is on the device already and needs no upload.

Invariants: the last launch of the scheduler in an epoch leaves only when the epoch is finished.
Earlier launches may leave work behind. The words of an epoch and its status buffer live until its
event.
"""

# Long because: what is enqueued for an epoch, and what is made of it afterwards, belong together.

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl

from .. import core
from ..devices import driver
from ..errors import DeviceError, InternalError
from ..launch.backend import Backend
from ..launch.decision import WrongCountError
from ..memory.blocks import Store
from ..records import NamedTuple
from . import layout
from .children import ROOM, Children, Room, children_of
from .orders import ORDERS
from .rounds import LoopRun
from .segment import SegmentCommand

MOST_TASKS = 4096
"""Tasks at which an epoch is sent."""

PLACES, LONGEST = 8, 4096
"""How many pieces of pinned memory hold status buffers, and how many bytes each has."""

MOST_ENTRIES = 1 << 18
"""Tiles of an epoch at most, because the ring has to hold all of them."""

FIRST_LOOK = 192
"""Tasks at which an epoch is sent if the device is idle. Later epochs wait for as many tasks as
were sent before, if that is more: each epoch costs the host as much as recording some tens of
launches. On an H200, interleaved, epochs of 192 took rigid bodies 3 to 7 % less than epochs of 128
that doubled each time. Epochs of 256 took the largest 6 % less and the smallest 3 % more."""

POLLS = 1 << 15
"""Polls of a slot of the ring before a group leaves: some 40 ms on an H200, about a slice. Groups
that wait keep kernels on lanes from the compute units. But groups that left are missing when a
wide level of the graph comes. With 256 polls a network of 478 kernels took four times as long.
With 4096, and no rest between them, groups of a wavefront of tiles left before there was work for
them."""

POLLS_ON_CPU = 1 << 13
"""The same on a CPU, about half a millisecond, since others need its few cores. On one core groups
leave at once: nobody could make work for a group that waits."""


class Settings(NamedTuple):
    """Say how epochs are run. Tests use extreme values."""

    groups: int | None = None
    """Groups of a scheduler at most."""
    slice_s: float = 0.05
    turns: int = 1 << 30
    """Tasks that a group runs in one launch of the scheduler, except the last of an epoch."""
    polls: int | None = None
    most_tasks: int = MOST_TASKS
    order: str = "first_in"
    window: int = 0
    watched: bool = False
    """Whether tasks note in memory that they have started and ended."""
    timed: bool = False
    """Whether groups note when they began and ended each tile."""
    room: Room = ROOM


class Times(NamedTuple):
    """Times of an event, in nanoseconds."""

    start: int
    end: int


class Epoch(core.native.Epoch):
    """Holds launches that go to the scheduler by one command. The table has their numbers. The core
    makes epochs. The attributes here are for the few that need them."""

    run: LoopRun | None = None
    """For a loop: tells how many rounds it had."""
    children = Children()
    late_reads: tuple[tuple[Any, layout.Words], ...] = ()
    """Reads of its words that the driver has not ended, though nobody waits for them any more."""
    names: Counter[str] | None = None
    """Counts launches by kernel, without those that the core made."""

    @property
    def event(self) -> cl.Event | None:
        """Return the event of the read behind everything in it."""
        return _event(self._event)

    @property
    def kernel_event(self) -> cl.Event | None:
        """Return the event of the first launch of the scheduler, if the queue keeps times."""
        return _event(self._first)

    @property
    def status(self) -> layout.Words:
        """Return the words that the scheduler left when it ended."""
        return np.frombuffer(self._status, np.uint32)

    @property
    def shared(self) -> int:
        """Return a number shared by launches with the times of one epoch. 0: it has its own
        times."""
        return 0 if self.segment is not None or self.resident is not None else self.number

    @property
    def profile(self) -> Times | None:
        """Return the start of the first launch of the scheduler and the end of the last."""
        first, last = self.kernel_event, _event(self._last)
        if first is None or last is None:
            return None
        with suppress(cl.Error):  # NVIDIA's driver has no times of a command that failed
            return Times(first.profile.start, last.profile.end)
        return None

    def device_us(self, on_cpu: bool) -> float | None:
        """Return the time on the device, if the scheduler ran once for the epoch. On a CPU it may
        run twice for any epoch, so the time is from the first start to the last end."""
        first, last = self.kernel_event, self.event if on_cpu else self.kernel_event
        most = 2 if on_cpu else 1
        if first is None or last is None or self.launches > most:
            return None
        end = last.profile.start if on_cpu else last.profile.end  # of the read of the outcome
        return (end - first.profile.start) / 1e3


class Outcome(NamedTuple):
    """What became of an epoch: `broken` for all its launches, `failures` for some of them."""

    status: int
    broken: BaseException | None
    failures: dict[int, BaseException]


class Sender(core.native.Sender):
    """Sends the epochs of one queue. The core does the common part; this class has the rest."""

    def __init__(
        self,
        queue: cl.CommandQueue,
        lanes: Backend,
        store: Store,
        on_cpu: bool,
        settings: Settings,
        table: core.native.Table,
        few: int,
    ) -> None:
        units = int(queue.device.max_compute_units) if on_cpu else 0
        memory = partial(cl.Buffer, queue.context, cl.mem_flags.READ_WRITE)
        super().__init__(
            table, store.reserved, sys.modules[__name__], (Epoch, layout.Recorder, memory),
            on_cpu, units,
        )  # fmt: skip
        self._units_of_cpu, self._few = units, few
        self.children = Children()
        """Sum over all epochs that have ended."""
        self.requeue(queue, lanes)
        self.settings = settings
        if not on_cpu:
            self.use_pinned()

    @property
    def settings(self) -> Settings:
        """Return the settings by which epochs run."""
        return self._settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self._settings = settings
        self._set(
            self.polls, settings.turns, settings.slice_s, _priorities(settings.order),
            settings.window, settings.most_tasks, MOST_ENTRIES, self._few,
        )  # fmt: skip

    @property
    def polls(self) -> int:
        """Return how often a group polls a slot of the ring in each launch of an epoch."""
        if self.settings.polls is not None:
            return self.settings.polls
        if self._units_of_cpu:
            return POLLS_ON_CPU if self._units_of_cpu > 1 else 0
        return POLLS

    def requeue(self, queue: cl.CommandQueue, lanes: Backend) -> None:
        """Use another queue and other lanes from now on."""
        self._queue = queue
        is_timed = bool(queue.properties & cl.command_queue_properties.PROFILING_ENABLE)
        self._requeue(queue, lanes.core_queues, is_timed)

    def use_pinned(self) -> None:
        """Put status buffers into pinned memory, for devices that copy through it. On an H200 a
        read of 640 bytes into other memory ends some 50 us later, and its call takes 8 us more. A
        status buffer that is too long, or one too many at a time, is in other memory."""
        self.land_in(partial(driver.pinned_pieces, self._queue, PLACES, LONGEST))

    def send_segment(self, epoch: Epoch, command: SegmentCommand) -> None:
        """Launch a recorded segment again. Only changed words are uploaded."""
        segment, epoch.run = command.segment, command.run
        rounds = epoch.run.expected if epoch.run is not None else 0
        writes = segment.changes(command.version)
        self.send_resident(epoch, segment.resident, writes, segment.status_words, rounds)
        segment.has_written(command.version)

    def outcome(self, epoch: Epoch, numbers: Callable[[], list[int]]) -> Outcome:
        """Return the outcome of an epoch whose event has ended, or that has none. `numbers`: its
        launches by task."""
        failures: dict[int, BaseException] = {}
        if self.has_ended_well(epoch):
            return Outcome(0, None, failures)
        event, segment = epoch.event, epoch.segment
        status, broken = driver.status(event) if event is not None else -1, _refusal(epoch)
        if broken is None and event is None:
            broken = InternalError("the scheduler was not launched, and nobody knows why")
        elif broken is None and status < 0:
            broken = DeviceError(f"the device reports status {status}")
        if broken is None:
            found = epoch.status
            if epoch.run is not None:
                epoch.run.rounds = int(found[layout.ROUND])
            if epoch.run is not None and segment is not None:
                segment.expected = max(epoch.run.rounds, 1)
            epoch.children = children_of(found)
            self.children = self.children.and_those(epoch.children)
            fault = int(found[layout.FAULT])
            if fault in layout.FAULTS:
                broken = InternalError(
                    f"the scheduler stopped: {layout.FAULTS[fault]} "
                    f"(task {int(found[layout.FAULT + 1])})"
                )
            elif int(found[layout.UNFINISHED]):
                left = int(found[layout.UNFINISHED])
                broken = InternalError(f"the scheduler left {left} tasks, none of them ready")
            elif fault and segment is not None:
                refused = segment.refused(found)
                if refused is None:
                    task = int(found[layout.FAULT + 1])
                    broken = InternalError(
                        f"the scheduler reports fault {fault} of task {task}, which has no count"
                    )
                else:
                    failures = {numbers()[0]: refused}
            elif fault:
                failures = self._refused(epoch, numbers())
        tasks = epoch.counts.tasks if segment is None else len(segment)
        tasks *= 1 if epoch.run is None else epoch.run.rounds
        kept = epoch.resident if segment is None else segment.resident
        if broken is not None and kept is not None:
            kept.broken = True
        self.let_go(epoch, tasks, broken is None)
        return Outcome(status, broken, failures)

    def _refused(self, epoch: Epoch, numbers: list[int]) -> dict[int, BaseException]:
        """Return an error for each launch whose count was refused."""
        image = epoch.counts
        state = np.empty(64 * -(-image.tasks // 32), np.uint32)
        at = driver.Place(epoch.region, 4 * (image.block + layout.STATE_WORD), state.nbytes)
        driver.wait_for_event(driver.read(self._queue, state, at, None))
        values = state[layout.task_places(image.tasks)]
        told = layout.told_counts(epoch.status)
        return {
            numbers[task]: WrongCountError(told.get(task))
            for task in np.flatnonzero(values >= layout.FAULTY).tolist()
        }


def _priorities(order: str) -> Callable[[layout.Recorder], Sequence[float]] | None:
    """Return the function for priorities of an epoch's tasks. None: tasks go in program order."""
    if order == "first_in":
        return None
    return partial(layout.Recorder.priorities, order=ORDERS[order])


def _refusal(epoch: Epoch) -> BaseException | None:
    """Return the error of an epoch that the driver refused. All its launches fail with it."""
    if epoch.error is None and not epoch.refused:
        return None
    names: Any = cl.status_code
    why = epoch.error or f"the driver reports {names.to_string(epoch.refused)}"
    return DeviceError(f"the scheduler was not launched: {why}")


def _event(pointer: int) -> cl.Event | None:
    """Return the event at an address. None for address 0."""
    return cl.Event.from_int_ptr(pointer) if pointer else None
