"""Epochs on their way: from recorded tasks, or a recorded segment, to commands on a queue, and from
what came back to what became of the launches.

In: epochs that take no more tasks. Out: an event behind everything of an epoch, and later its
outcome. An epoch is one upload, launches of the scheduler, and a read-back of its status; a segment
is on the device already and needs no upload.

Invariants: the last launch of the scheduler in an epoch leaves only when the epoch is finished; its
launches before may leave work. The words of an epoch, and the memory that its status is read into,
live until its event.
"""

# Long because: what is enqueued for an epoch, and what is made of it afterwards, belong together.

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from struct import pack
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from .. import core
from ..devices import driver
from ..errors import DeviceError, InternalError
from ..launch.backend import Backend
from ..launch.decision import WrongCountError
from ..memory.blocks import Store
from . import layout
from .builds import Scheduler
from .children import ROOM, Room
from .compiling import launch_arguments
from .orders import ORDERS
from .resident import Foreseen, Resident, Writes
from .rounds import LoopRun
from .segment import MOST_LAUNCHES, Segment, SegmentCommand
from .status import Landings

MOST_TASKS = 4096
"""Tasks of an epoch: sent when there are so many."""

POLLS = 1 << 15
"""Looks at a queue slot before a group leaves: some 40 ms on an H200, about a slice. Groups that
wait keep kernels on lanes from the compute units; but those that left are missing when a wide level
of the graph comes. With 256 looks a network of 478 kernels took four times as long. With 4096, and
no rest between them, groups of a wavefront of tiles had left before there was work for them."""

SPARE_BYTES = 1 << 24
"""Memory for epochs to come that is kept. On an H200 the first write into new memory takes 9 us
more than later ones; a program that sends many epochs before it waits needs some for each."""

TIMED_TASKS = 64
"""Tasks of an epoch from which the time of a task is told."""

LOOP_POLLS = 1 << 10
"""The same in loops on a CPU, where groups leave an epoch at once: what a narrow part of a round
sends away is missing in the wide parts of all rounds behind it."""

CLEANS, MAY_NARROW, COMPANY_AT = 1, 2, 8
"""The bits of a launch's mode; above the last one, how many groups run at a time."""


class Children(NamedTuple):
    """What became of items that were spawned, and that were not run at once."""

    spawned: int = 0
    """In tasks."""
    kept: int = 0
    """By the group whose tile spawned them. Of these:"""
    all_busy: int = 0
    """since all groups had work;"""
    no_room: int = 0
    """since the pool or the ring was full;"""
    too_many: int = 0
    """since their launch had as many tiles unfinished as it may have;"""
    slower: int = 0
    """since a child would have taken longer."""

    def and_those(self, others: Children) -> Children:
        """Both together."""
        return Children(*(a + b for a, b in zip(self, others, strict=True)))

    def __str__(self) -> str:
        why = ", ".join(
            f"{many:,} since {reason}"
            for many, reason in zip(self[2:], REASONS, strict=True)
            if many
        )
        ran = f", its groups ran {self.kept:,} themselves ({why})" if self.kept else ""
        return f"of items that its epoch spawned, {self.spawned:,} became children{ran}"


REASONS = (
    "all groups had work",
    "there was no room",
    "a launch had as many tiles as it may have",
    "children would have taken longer",
)


def children_of(status: layout.Words) -> Children:
    """What became of the items of one epoch."""
    kept = status[layout.KEPT : layout.KEPT + layout.REASONS].tolist()
    return Children(int(status[layout.SPAWNED]), sum(kept), *kept)


class Settings(NamedTuple):
    """How epochs are run; tests make them extreme."""

    groups: int | None = None
    """Groups of a scheduler at most."""
    slice_s: float = 0.05
    turns: int = 1 << 30
    """Tasks that a group runs in one launch of the scheduler, but for the last launch of an
    epoch."""
    polls: int | None = None
    most_tasks: int = MOST_TASKS
    order: str = "first_in"
    window: int = 0
    stale: int = layout.MOST_TASKS
    gang: bool = True
    watched: bool = False
    """Whether tasks note in memory that they have started and ended."""
    room: Room = ROOM


class Times(NamedTuple):
    """As an event has them, in nanoseconds."""

    start: int
    end: int


class Epoch:
    """Launches handed to the scheduler at once. The table has which they are, by its number."""

    def __init__(self, scheduler: Scheduler, number: int) -> None:
        self.scheduler = scheduler
        self.number = number
        self.recorder = layout.Recorder()
        self.trusted = True
        """Whether it is sent however small it is."""
        self.wait_for: list[cl.Event] = []
        self.opened = 0.0
        """When its first task was seen; 0: none was."""
        self.attended = 0.0
        """Since when somebody looks at it now and then; 0: nobody does, and its first task wakes
        who sends it."""
        self.event: cl.Event | None = None
        self.error: BaseException | None = None
        self.region: Any = None
        self.words: Writes = []
        """What the driver uploads, until the end."""
        self.status: Any = None
        self.counts: Any = None
        self.sent = 0.0
        self.kernel_event: cl.Event | None = None
        """Of the first launch of the scheduler."""
        self.last_event: cl.Event | None = None
        """Of its last one."""
        self.launches = 0
        """Of the scheduler."""
        self.block = self.groups = 0
        """Which of its blocks the device uses, and the groups of a launch."""
        self.late_reads: list[tuple[Any, layout.Words]] = []
        """Reads of its words that had not ended when nobody waited any longer."""
        self.is_clocked = True
        """Whether its queue keeps times."""
        self.names: Counter[str] = Counter()
        """Of the kernels in it, but for launches that the core made."""
        self.segment: Segment | Resident | None = None
        """What it replays, if it was not collected; or where it stays."""
        self.foreseen = 0
        """Its launches, if these came as foreseen and were not collected."""
        self.children = Children()
        self.run: LoopRun | None = None
        """Of a loop: what tells how many rounds it had."""

    def __del__(self) -> None:
        """Wait: the driver reads `words` and writes `status` until the end."""
        if self.event is not None and driver.status(self.event) > 0:
            driver.wait_for_event(self.event)

    @property
    def shared(self) -> int:
        """What tells launches that have the times of one epoch in common; 0: these are a launch's
        own."""
        return 0 if self.segment is not None else self.number

    @property
    def profile(self) -> Times | None:
        """From the start of the first launch of the scheduler to the end of the last."""
        first, last = self.kernel_event, self.last_event
        if first is None or last is None:
            return None
        return Times(first.profile.start, last.profile.end)

    def device_us(self, on_cpu: bool) -> float | None:
        """How long the device had it, if the scheduler ran once for it. On a CPU it may run twice
        for any epoch: from the first to the end of all."""
        first, last = self.kernel_event, self.event if on_cpu else self.kernel_event
        most = 2 if on_cpu else 1
        if first is None or last is None or self.launches > most:
            return None
        end = last.profile.start if on_cpu else last.profile.end  # of what reads the outcome
        return (end - first.profile.start) / 1e3


class Outcome(NamedTuple):
    """What became of an epoch: `broken` for all its launches, `failures` for some of them."""

    status: int
    broken: BaseException | None
    failures: dict[int, BaseException]


class Sender:
    """Sends the epochs of one queue. `lanes` is flushed where an epoch waits for it."""

    def __init__(
        self,
        queue: cl.CommandQueue,
        lanes: Backend,
        store: Store,
        tier: str,
        on_cpu: bool,
        settings: Settings,
    ) -> None:
        self.settings = settings
        self.launches = 0
        """Of schedulers."""
        self.children = Children()
        """Of all epochs that have ended."""
        self.requeue(queue, lanes)
        self._store = store
        self._levels = tier == "levels"
        self._cpu = on_cpu
        self._units = int(queue.device.max_compute_units) if on_cpu else 0
        """How many groups run at a time, where that is not all that are launched."""
        self._regions: list[Any] = []
        self._spare_bytes = 0
        self.landings = Landings(pinned=not on_cpu)
        self._task_s = 50e-6

    @property
    def polls(self) -> int:
        """Looks of a group at a queue slot; the same in all launches of an epoch."""
        if self.settings.polls is not None:
            return self.settings.polls
        return 0 if self._cpu else POLLS

    def send(self, epoch: Epoch, command: SegmentCommand | Foreseen | None = None) -> None:
        """Upload and launch what was collected, or launch again what `command` says. What the
        driver refuses is the failure of all launches in it; what it took before has ended then."""
        with _refusals(epoch):
            if command is None:
                self._send_collected(epoch)
            elif isinstance(command, Foreseen):
                self._send_again(epoch, command.segment, command.writes)
            else:
                segment, epoch.run = command.segment, command.run
                writes = [(4 * at, words) for at, words in segment.take_changes(command.version)]
                self._send_again(epoch, segment, writes)

    def send_and_keep(self, epoch: Epoch) -> layout.Words | None:
        """Send what was collected, in a region where it stays: its words up to where its blocks
        begin. None where the driver refuses."""
        with _refusals(epoch):
            groups = min(epoch.scheduler.limits.groups, epoch.recorder.width)
            blocks = 1 if self._levels else 2
            spare = 2 * MOST_LAUNCHES * groups + 64 + epoch.scheduler.limits.child_slots
            image = self._image(epoch, spare, blocks)
            flags, nbytes = cl.mem_flags.READ_WRITE, image.words.nbytes
            epoch.region = cl.Buffer(self._queue.context, flags, nbytes)
            epoch.segment = Resident(image, epoch.region)
            cleans = 0 if self._levels else CLEANS
            whole = [(0, image.words)]
            self._enqueue(epoch, image, whole, groups, layout.STATUS_WORDS, 0, cleans)
            return image.words[: image.block]
        return None

    def requeue(self, queue: cl.CommandQueue, lanes: Backend) -> None:
        """Use others from now on."""
        self._queue, self._lanes = queue, lanes
        self._pointer: int = queue.int_ptr
        self.is_timed = bool(queue.properties & cl.command_queue_properties.PROFILING_ENABLE)

    def let_go(self) -> None:
        """Of memory for epochs to come."""
        self._regions.clear()
        self._spare_bytes = 0
        self.landings.let_go()

    def _send_collected(self, epoch: Epoch) -> None:
        groups = min(epoch.scheduler.limits.groups, epoch.recorder.width)
        spare = 2 * (self._slices(epoch.recorder.tasks, groups) + 1) * groups + 64
        image = self._image(epoch, spare + epoch.scheduler.limits.child_slots)
        epoch.region = self._region(image.words.nbytes)
        self._enqueue(epoch, image, [(0, image.words)], groups, layout.STATUS_WORDS)

    def _image(self, epoch: Epoch, spare: int, blocks: int = 1) -> layout.Image:
        """What was collected, as words."""
        settings = self.settings
        return epoch.recorder.image(
            spare, ORDERS[settings.order], settings.window, settings.stale, blocks,
            settings.gang and self.polls > 0, self._levels,
        )  # fmt: skip

    def _send_again(self, epoch: Epoch, segment: Segment | Resident, writes: Writes) -> None:
        """No upload but of changed words."""
        image, groups = segment.image, epoch.scheduler.limits.groups
        epoch.region = segment.region
        if self._levels:  # which clean nothing, and so use one block only
            fresh = [*writes, (4 * image.block, segment.fresh)]
            self._enqueue(epoch, image, fresh, groups, segment.status_words)
        else:
            which = segment.turn()
            self._enqueue(epoch, image, writes, groups, segment.status_words, which, CLEANS)

    def _enqueue(
        self,
        epoch: Epoch,
        image: layout.Image,
        writes: Writes,
        groups: int,
        status_words: int,
        which: int = 0,
        cleans: int = 0,
    ) -> None:
        """Words to their places in the region, the launches in block `which`, what became of it."""
        queue, events = self._queue, epoch.wait_for
        wait_for = [event for event in events if driver.status(event) > 0]
        if wait_for:
            self._lanes.flush()
        epoch.counts, epoch.words = image, writes
        epoch.status = self.landings.take(queue, status_words)
        scheduler = epoch.scheduler
        scheduler.declare(self._store.generation, self._store.allocations)
        rounds = epoch.run.expected if epoch.run is not None else 0
        stays = rounds > 0 or scheduler.pool is not None
        launches = self.launches_of(image, groups, which, cleans, rounds, stays)
        self.launches += len(launches)
        epoch.block, epoch.groups = which, launches[0][0]
        epoch.launches += len(launches)
        failed, taken, *made = core.native.send_epoch(
            self._pointer, scheduler.queued, epoch.region, scheduler.limits.group,
            [event.int_ptr for event in wait_for], list(writes), launches,
            4 * (image.block + which * image.block_words), epoch.status, self.is_timed,
        )  # fmt: skip
        events.clear()
        first, last, end = (_event(pointer) for pointer in made)
        epoch.kernel_event, epoch.last_event, epoch.event = first, last or first, end
        epoch.sent = perf_counter()
        if failed:
            if taken:
                with contextlib.suppress(cl.Error):
                    queue.finish()
            names: Any = cl.status_code
            raise cl.RuntimeError(f"the driver reports {names.to_string(failed)}")

    def launches_of(
        self,
        image: layout.Image,
        groups: int,
        block: int,
        cleans: int,
        rounds: int = 0,
        stays: bool = False,
    ) -> list[tuple[int, tuple[int | bytes, ...]]]:
        """Groups and arguments of each launch: one for each level; or launches that may leave work,
        where there is reason to, and one that leaves none. The first of these cleans. `rounds`: of
        a loop, about how many there will be. `stays`: work comes while groups look for it."""
        if self._levels:
            return [(count, (1, pack("<I", first))) for first, count in image.levels]
        settings = self.settings
        groups = max(1, min(groups, image.width))
        mode = MAY_NARROW if groups > 1 else 0
        together = min(groups, self._units or groups)
        if 1 < together < image.width:  # then bands are given away where few wait
            mode |= together << COMPANY_AT
        found = []
        polls = max(self.polls, LOOP_POLLS) if stays and settings.polls is None else self.polls
        slices = self._slices(image.tasks * max(rounds, 1), 1 if rounds else groups)
        for left in range(slices, -1, -1):
            values = launch_arguments(
                block, settings.turns if left else 1 << 30, polls,
                int(settings.slice_s * 1e9) if left else 0, (mode if left else 0) | cleans,
            )  # fmt: skip
            found.append((groups, values))
            cleans = 0
        return found

    def _slices(self, tasks: int, groups: int) -> int:
        """Launches before the one that leaves only when all is done."""
        settings = self.settings
        if settings.turns < tasks:
            return 1
        if tasks * self._task_s > settings.slice_s / 2:
            return min(MOST_LAUNCHES - 1, 1 + int(tasks * self._task_s / settings.slice_s))
        # on a CPU groups leave as soon as there is nothing for them: come back once
        return 1 if self._cpu and groups > 1 else 0

    def _region(self, nbytes: int) -> Any:
        for index, region in enumerate(self._regions):
            if nbytes <= region.size <= 4 * nbytes + (1 << 20):
                self._spare_bytes -= region.size
                return self._regions.pop(index)
        size = 1 << max(16, (nbytes - 1).bit_length())
        return cl.Buffer(self._queue.context, cl.mem_flags.READ_WRITE, size)

    def _keep(self, region: Any) -> None:
        """For an epoch to come; the newest is the first to be taken."""
        if self._spare_bytes + region.size <= SPARE_BYTES:
            self._spare_bytes += region.size
            self._regions.insert(0, region)

    def outcome(self, epoch: Epoch, numbers: Callable[[], list[int]]) -> Outcome:
        """Of an epoch whose event has ended, or which has none. `numbers`: its launches by task."""
        status = driver.status(epoch.event) if epoch.event is not None else -1
        failures: dict[int, BaseException] = {}
        broken = epoch.error
        if broken is None and status < 0:
            broken = DeviceError(f"the device reports status {status}")
        if broken is None:
            if epoch.run is not None:
                epoch.run.rounds = int(epoch.status[layout.ROUND])
            if epoch.run is not None and isinstance(epoch.segment, Segment):
                epoch.segment.expected = max(epoch.run.rounds, 1)
            epoch.children = children_of(epoch.status)
            self.children = self.children.and_those(epoch.children)
            fault = int(epoch.status[layout.FAULT])
            if fault in layout.FAULTS:
                broken = InternalError(
                    f"the scheduler stopped: {layout.FAULTS[fault]} "
                    f"(task {int(epoch.status[layout.FAULT + 1])})"
                )
            elif int(epoch.status[layout.UNFINISHED]):
                left = int(epoch.status[layout.UNFINISHED])
                broken = InternalError(f"the scheduler left {left} tasks, none of them ready")
            elif fault and isinstance(epoch.segment, Segment):
                failures = {numbers()[0]: epoch.segment.refused(epoch.status)}
            elif fault:
                failures = self._refused(epoch, numbers())
            if epoch.segment is None and epoch.region is not None:
                self._keep(epoch.region)
        tasks = epoch.recorder.tasks if epoch.segment is None else len(epoch.segment)
        tasks *= 1 if epoch.run is None else epoch.run.rounds
        if broken is not None and epoch.segment is not None:
            epoch.segment.broken = True
        self.landings.give(epoch.status)
        if broken is None and tasks >= TIMED_TASKS:
            each = (perf_counter() - epoch.sent) / tasks
            self._task_s = min(each, (self._task_s + each) / 2)
        return Outcome(status, broken, failures)

    def _refused(self, epoch: Epoch, numbers: list[int]) -> dict[int, BaseException]:
        """Which launches' counts were refused."""
        image: layout.Image = epoch.counts
        state = np.empty(64 * -(-image.tasks // 32), np.uint32)
        at = driver.Place(epoch.region, 4 * (image.block + layout.STATE_WORD), state.nbytes)
        driver.wait_for_event(driver.read(self._queue, state, at, None))
        values = state[layout.task_places(image.tasks)]
        told = layout.told_counts(epoch.status)
        return {
            numbers[task]: WrongCountError(told.get(task))
            for task in np.flatnonzero(values >= layout.FAULTY).tolist()
        }


@contextlib.contextmanager
def _refusals(epoch: Epoch) -> Iterator[None]:
    """What the driver refuses is the failure of the epoch."""
    try:
        yield
    except (cl.Error, MemoryError) as error:
        epoch.error = DeviceError(f"the scheduler was not launched: {error}")


def _event(pointer: int) -> cl.Event | None:
    """The event at an address, which has it from now on; None where there is none."""
    return cl.Event.from_int_ptr(pointer, False) if pointer else None
