"""The device-side scheduler as a backend: launches are collected in epochs, and an epoch is sent as
one upload and one launch of a kernel that runs all of it.

In: launches. Out: their completions, whole epochs at a time. What the scheduler cannot run, or not
yet, goes to lanes: a host backend beside it, with the hazards between the two kept by whole events.

Invariants:
- Epochs are convex: whatever waits for the open epoch on a lane sends it, so nothing recorded later
  into the same epoch can wait for that.
- Epochs run in the order in which they were sent, on one in-order queue; an epoch waits for lanes
  by their events, a lane for an epoch by the event behind its last command. That one says that the
  epoch is finished: the last launch of the scheduler in it is one that leaves only when it is.
- The words of an epoch, and the memory that its status is read into, live until that event.
"""

# Long because: the life of an epoch is told in one place.

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from .. import driver, epochs
from ..choice import FEW, HOT, Choice
from ..commands import KernelCommand
from ..cutting import Cutter
from ..decisions import DecidedCommand, WrongCountError
from ..driver import STATUS
from ..errors import DeviceError, InternalError
from ..memory import Store
from ..records import Launch
from ..schedulers import Scheduler, Schedulers, launch_arguments
from ..segments import Segment, SegmentCommand
from ..segments import Settings as SegmentSettings
from ..tasks import Body, NeedsArena, Task, TaskCommand, Unfit
from .base import Backend, Ended

MOST_TASKS = 4096
"""Tasks of an epoch: sent when there are so many."""

MOST_ENTRIES = 1 << 18
"""Tiles of an epoch, which is what its ready queue has to hold."""

FIRST_LOOK = 64
"""Tasks at which an epoch is sent if the device is idle; twice as many each time after that, since
every epoch costs the host as much as recording some tens of launches."""

OPEN_S = 0.001
"""How long an epoch stays open at most while the device has less than two to work on."""

POLLS = 256
"""Looks at a queue slot before a group leaves: some 200 us on an H200. Groups that wait keep
kernels on lanes from the compute units."""

SPARE_REGIONS = 4

CLEANS, MAY_NARROW = 1, 2

DECIDED = -9001
"""Status of a launch whose count on the device was refused."""


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
    stale: int = epochs.MOST_TASKS
    gang: bool = True


REMEMBERED = 8192
"""Launches on lanes whose reason is kept for `explain`."""


class Epoch:
    """Launches handed to the scheduler at once."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.recorder = epochs.Recorder()
        self.index: dict[int, int] = {}
        self.wait_for: list[Any] = []
        self.entries = 0
        self.opened = perf_counter()
        self.event: Any = None
        self.error: BaseException | None = None
        self.region: Any = None
        self.words: Any = None
        self.status: Any = None
        self.counts: Any = None
        self.sent = 0.0
        self.kernel_event: Any = None
        self.segment: Segment | None = None
        """What it replays, if it was not collected."""


class Device(Backend):
    """Epochs for the scheduler, and lanes for the rest."""

    name = "device"
    decides = True

    def __init__(
        self,
        context: Any,
        device: Any,
        lanes: Backend,
        store: Store,
        tier: str,
        settings: Settings,
        choice: Choice | None,
    ) -> None:
        super().__init__(context, device, 1, lanes.profiling)
        self.lanes = lanes
        if choice is not None:
            self.name = lanes.name  # which has the scheduler beside it
        self.settings = settings
        self._context = context
        self._device = device
        self._store = store
        self._schedulers = Schedulers(context, device, tier, settings.groups, lambda: None)
        self._cpu = bool(device.type & cl.device_type.CPU)
        self._polls = settings.polls if settings.polls is not None else 0 if self._cpu else POLLS
        self._open: Epoch | None = None
        self._sent: deque[Epoch] = deque()
        self._epoch_of: dict[int, Epoch] = {}
        self._regions: list[Any] = []
        self._next_look = FIRST_LOOK
        self._task_s = 50e-6
        self._errors: dict[int, BaseException] = {}
        self._lost: list[tuple[int, BaseException]] = []
        self._choice = choice
        """The rule by which launches go to the scheduler; None: all that can."""
        self._commands: list[Launch] = []
        """The launches of the open epoch, where it may go to lanes as a whole."""
        self._timed: dict[int, Any] = {}
        self._where: dict[int, str] = {}
        self._offered: list[Any] = []
        self._builds = 0
        self.cuts = 0
        self.launches = 0
        self.tasks_sent = 0
        self.epochs_sent = 0
        self.reasons: dict[str, int] = {}
        """Why launches went to lanes, and how many."""

    # ---- submitting ----------------------------------------------------------------------------

    @property
    def schedulers(self) -> Schedulers:
        """What is built, and what can be."""
        return self._schedulers

    @property
    def counters(self) -> dict[str, int]:
        """Tasks, epochs, launches of the scheduler, and how often an epoch was cut short."""
        waiting = self._open.recorder.tasks if self._open is not None else 0
        return {
            "tasks": self.tasks_sent + waiting,
            "epochs": self.epochs_sent,
            "launches": self.launches,
            "cuts": self.cuts,
        }

    def where(self, number: int) -> str:
        """Where a launch ran, or runs, and why, ending in '; '."""
        reason = self._where.get(number)
        if reason is not None:
            return f"on a lane: {reason}; "
        if number in self._epoch_of or not self._where or number >= next(iter(self._where)):
            return "in the scheduler on the device; "
        return "in the scheduler on the device, or on a lane, too long ago to tell; "

    def about(self) -> dict[str, Any]:
        """Counters, reasons and schedulers, in plain values."""
        return {
            **self.counters,
            "on_lanes": dict(self.reasons),
            "builds": self._schedulers.builds,
            "schedulers": [facts._asdict() for facts in self._schedulers.facts()],
        }

    @property
    def unsent(self) -> bool:
        """Whether launches wait for an epoch to be sent."""
        return self._open is not None

    def submit(self, launch: Launch, behind: list[Any] | None = None) -> None:
        """Into the open epoch, or to a lane."""
        command = launch.command
        if type(command) is SegmentCommand:
            self._replay(launch.number, launch.upstream, command)
            return
        choice = self._choice
        if choice is not None and (reason := _at_once(choice, launch.number, command)) is not None:
            self._to_lane(launch, reason)
            return
        try:
            if type(command) is TaskCommand:
                scheduler, record, blob, shape, tiles = command[1:6]
            else:
                scheduler, task = self._task(command)
                record, blob, shape, tiles = task
            if choice is not None:
                key = _key(command)
                refusal = choice.refusal(key, tiles, scheduler.limits.groups)
                if refusal is not None:
                    raise Unfit(refusal)
        except Unfit as unfit:
            if choice is not None and type(command) is KernelCommand:
                _look_away(command.kernel, unfit.reason)
            self._to_lane(launch, unfit.reason)
            return
        epoch = self._open
        if epoch is None or epoch.scheduler is not scheduler:
            if epoch is not None:
                self.cuts += 1
                self.send()
            epoch = self._open = Epoch(scheduler)
            if not self._sent:
                self._next_look = FIRST_LOOK
        number, index = launch.number, epoch.index
        inside = []
        for upstream in launch.upstream:
            at = index.get(upstream)
            if at is not None:
                inside.append(at)
            elif upstream not in self._epoch_of:
                event = self.lanes.event(upstream)
                if event is not None:
                    epoch.wait_for.append(event)
                    self.waits += 1
        at = index[number] = epoch.recorder.add(record, blob, shape, inside)
        if choice is not None and at < FEW:
            self._commands.append(launch)
        epoch.entries += tiles
        self._epoch_of[number] = epoch
        if at + 1 >= self.settings.most_tasks or epoch.entries >= MOST_ENTRIES:
            self.send()
        elif at + 1 == self._next_look:
            if not self._in_hand():
                self.send()
                self._next_look = min(2 * self._next_look, MOST_TASKS)
            else:
                self._next_look = at + 1 + FIRST_LOOK

    def _task(self, command: Any) -> tuple[Scheduler, Task]:
        """The long way to a task. Raises `Unfit`."""
        decision = None
        if type(command) is DecidedCommand:
            command, decision = command.plain, command.decision
        elif type(command) is not KernelCommand:
            raise Unfit(f"a {command.name} runs on a lane")
        scheduler, body = self._body(command)
        try:
            if decision is not None:
                return scheduler, body.decided(command, decision, self._store.owns)
            task = body.task(command, self._store.owns)
        except NeedsArena as more:
            self._schedulers.enlarge(scheduler, more.nbytes)
            raise
        native = command.kernel
        if native.offer is None:
            native.offer = scheduler, body
            self._offered.append(native)
        return scheduler, task

    def _body(self, command: KernelCommand) -> tuple[Scheduler, Body]:
        origin = getattr(command.kernel, "origin", None)
        if origin is None:
            raise Unfit("its arguments are not all memory of this runtime")
        group = 1
        for length in command.local_size or (0,):
            group *= length
        return self._schedulers.find(origin, group)

    def _to_lane(self, launch: Launch, reason: str) -> None:
        """Behind its upstream, epochs included: an epoch that it waits for is sent first."""
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        number = launch.number
        self._where[number] = reason
        if len(self._where) > REMEMBERED:
            del self._where[next(iter(self._where))]
        command = launch.command
        if type(command) is TaskCommand:
            launch = launch._replace(command=command.plain())
        if self._choice is not None and self._choice.on_cpu:
            key = _key(command)
            if key is not None and self._choice.wants_time(key):
                self._timed[number] = key
        extra = None
        if self._epoch_of:
            extra = self._epochs_above(launch)
        self.lanes.submit(launch, extra)

    def _epochs_above(self, launch: Launch) -> list[Any] | None:
        """The events of the epochs that a launch on a lane waits for; they are sent."""
        extra = []
        for number in launch.upstream:
            epoch = self._epoch_of.get(number)
            if epoch is not None:
                if epoch is self._open:
                    self.cuts += 1
                    self.send()
                if epoch.event is not None and epoch.event not in extra:
                    extra.append(epoch.event)
        return extra or None

    def _replay(self, number: int, upstream: Sequence[int], command: SegmentCommand) -> None:
        """A recorded segment, as an epoch of its own behind the open one. What the driver refuses
        here is its failure."""
        if self._open is not None:
            self.cuts += 1
            self.send()
        epoch = Epoch(command.segment.scheduler)
        epoch.index[number] = 0
        epoch.segment = command.segment
        for other in upstream:
            event = self.lanes.event(other) if other not in self._epoch_of else None
            if event is not None:
                epoch.wait_for.append(event)
                self.waits += 1
        self._epoch_of[number] = epoch
        self._sent.append(epoch)
        self.tasks_sent += len(command.segment)
        try:
            self._enqueue_replay(epoch, command)
        except (cl.Error, MemoryError) as error:
            epoch.error = DeviceError(f"the scheduler was not launched: {error}")

    def _enqueue_replay(self, epoch: Epoch, command: SegmentCommand) -> None:
        """Changed words, the launch, and what became of it: no upload."""
        segment, queue = command.segment, self.queues[0]
        image, levels = segment.image, self._schedulers.tier == "levels"
        which = 0 if levels else segment.turn()
        block = 4 * (image.block + which * image.block_words)
        epoch.counts, epoch.region = image, segment.region
        wait_for = [event for event in epoch.wait_for if event.get_info(STATUS) > 0] or None
        if wait_for:
            self.lanes.flush()
        epoch.wait_for.clear()
        writes = [(4 * at, words) for at, words in segment.take_changes(command.version)]
        if levels:  # which clean nothing
            writes.append((block, segment.fresh))
        epoch.words = writes
        for start, words in writes:
            place = driver.Place(segment.region, start, words.nbytes)
            driver.write(queue, place, words, wait_for)
            wait_for = None
        epoch.scheduler.declare(self._store.generation, self._store.allocations())
        if levels:
            self._launch_levels(epoch, image)
        else:
            self._launch(epoch, image, epoch.scheduler.limits.groups, which, CLEANS, wait_for)
        epoch.status = np.empty(segment.status_words, np.uint32)
        at = driver.Place(segment.region, block, epoch.status.nbytes)
        epoch.event = driver.read(queue, epoch.status, at, None)
        queue.flush()
        epoch.sent = perf_counter()

    def _in_hand(self) -> int:
        """Epochs that the device has not finished. While it has two, nothing is gained by sending
        another one."""
        return sum(e.event is not None and e.event.get_info(STATUS) > 0 for e in self._sent)

    # ---- sending -------------------------------------------------------------------------------

    def send(self) -> None:
        """Send the open epoch. What the driver refuses here is the failure of all its launches."""
        epoch, self._open = self._open, None
        if epoch is None:
            return
        if self._choice is not None:
            few, self._commands = self._commands, []
            if not self._choice.epoch(epoch.recorder.tasks, next(reversed(epoch.index))):
                self._dissolve(epoch, few)
                return
        self._sent.append(epoch)
        self.epochs_sent += 1
        self.tasks_sent += epoch.recorder.tasks
        if self._builds != self._schedulers.builds:  # what was offered may be in a newer one now
            self._builds = self._schedulers.builds
            for native in self._offered:
                native.offer = None
            self._offered.clear()
        try:
            self._enqueue(epoch)
        except (cl.Error, MemoryError) as error:
            epoch.error = DeviceError(f"the scheduler was not launched: {error}")

    def _dissolve(self, epoch: Epoch, launches: list[Launch]) -> None:
        """An epoch too small to be sent: its launches take lanes."""
        for number in epoch.index:
            del self._epoch_of[number]
        for launch in launches:
            try:
                self._to_lane(launch, f"its epoch had fewer than {FEW} tasks")
            except Exception as error:
                self._lost.append((launch.number, DeviceError(str(error))))

    def _enqueue(self, epoch: Epoch) -> None:
        scheduler, settings, queue = epoch.scheduler, self.settings, self.queues[0]
        groups = min(scheduler.limits.groups, epoch.entries)
        spare = 2 * (self._slices(epoch.recorder.tasks, groups) + 1) * groups + 64
        image = epoch.recorder.image(
            spare, epochs.ORDERS[settings.order], settings.window, settings.stale,
            gang=settings.gang and self._polls > 0, with_levels=self._schedulers.tier == "levels",
        )  # fmt: skip
        epoch.words = image.words
        epoch.region = self._region(image.words.nbytes)
        epoch.status = np.empty(epochs.STATUS_WORDS, np.uint32)
        wait_for = [event for event in epoch.wait_for if event.get_info(STATUS) > 0] or None
        if wait_for:
            self.lanes.flush()
        epoch.wait_for.clear()
        scheduler.declare(self._store.generation, self._store.allocations())
        upload = driver.write(
            queue, driver.Place(epoch.region, 0, image.words.nbytes), image.words, wait_for
        )
        del upload
        if self._schedulers.tier == "levels":
            self._launch_levels(epoch, image)
        else:
            self._launch(epoch, image, groups)
        at = driver.Place(epoch.region, 4 * image.block, epoch.status.nbytes)
        epoch.event = driver.read(queue, epoch.status, at, None)
        epoch.counts = image
        queue.flush()
        epoch.sent = perf_counter()

    def _launch(
        self,
        epoch: Epoch,
        image: epochs.Image,
        groups: int,
        block: int = 0,
        cleans: int = 0,
        wait_for: list[Any] | None = None,
    ) -> None:
        """Launches that may leave work, where there is reason to, and one that leaves none. The
        first of them waits, and cleans."""
        settings = self.settings
        group = epoch.scheduler.limits.group
        groups = max(1, min(groups, image.width))
        slices = self._slices(image.tasks, groups)
        mode = MAY_NARROW if groups > 1 else 0
        kernel = epoch.scheduler.native
        for left in range(slices, -1, -1):
            values = launch_arguments(
                block, settings.turns if left else 1 << 30, self._polls,
                int(settings.slice_s * 1e9) if left else 0, (mode if left else 0) | cleans,
            )  # fmt: skip
            driver.set_arguments(kernel, (0, epoch.region), values)
            event = driver.enqueue_kernel(
                self.queues[0], kernel, (groups * group,), (group,), None, wait_for, False, False
            )
            cleans, wait_for = 0, None
            self.launches += 1
            if epoch.kernel_event is None:
                epoch.kernel_event = event

    def _slices(self, tasks: int, groups: int) -> int:
        """Launches before the one that leaves only when all is done."""
        settings = self.settings
        if settings.turns < tasks:
            return 1
        if tasks * self._task_s > settings.slice_s / 2:
            return min(16, 1 + int(tasks * self._task_s / settings.slice_s))
        # on a CPU groups leave as soon as there is nothing for them: come back once
        return 1 if self._cpu and groups > 1 else 0

    def _launch_levels(self, epoch: Epoch, image: epochs.Image) -> None:
        kernel, group = epoch.scheduler.native, epoch.scheduler.limits.group
        for first, count in image.levels:
            driver.set_arguments(kernel, (0, epoch.region), (1, first.to_bytes(4, "little")))
            epoch.kernel_event = driver.enqueue_kernel(
                self.queues[0], kernel, (count * group,), (group,), None, None, False, False
            )
            self.launches += 1

    def _region(self, nbytes: int) -> Any:
        for index, region in enumerate(self._regions):
            if nbytes <= region.size <= 4 * nbytes + (1 << 20):
                return self._regions.pop(index)
        size = 1 << max(16, (nbytes - 1).bit_length())
        return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size)

    # ---- what has ended ------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """Launches submitted and not yet reported."""
        return len(self._epoch_of) + self.lanes.in_flight

    def event(self, number: int) -> Any:
        """The event of a launch: of its lane's command, or of its epoch, which is sent for it."""
        epoch = self._epoch_of.get(number)
        if epoch is None:
            return self.lanes.event(number)
        if epoch is self._open:
            self.send()
            if number not in self._epoch_of:
                return self.lanes.event(number)
        return epoch.event

    def oldest(self) -> Any:
        """An event to wait for before looking again."""
        self.send()
        for epoch in self._sent:
            if epoch.event is not None:
                return epoch.event
        return self.lanes.oldest()

    def poll(self, most: int = 64) -> Ended:
        """Launches that have ended. An epoch that was open for long enough is sent."""
        epoch = self._open
        if epoch is not None and perf_counter() - epoch.opened > OPEN_S and self._in_hand() < 2:
            self.send()
        return self._collect(lambda: self.lanes.poll(most))

    def poll_up_to(self, number: int) -> Ended:
        """The same, for a caller who waits for a launch."""
        return self._collect(lambda: self.lanes.poll_up_to(number))

    def _collect(self, poll: Callable[[], Ended]) -> Ended:
        """Two looks at the lanes, one on each side of the look at the epochs: whatever an epoch
        that ended waited for has been seen to end."""
        ended = self._from_lanes(poll())
        sent = self._sent
        done = False
        while sent and (sent[0].event is None or sent[0].event.get_info(STATUS) <= 0):
            ended += self._end(sent.popleft())
            done = True
        if done:
            ended += self._from_lanes(poll())
            ended.sort(key=lambda one: one[0])
        return ended

    def _from_lanes(self, ended: Ended) -> Ended:
        """What has ended on lanes: launches to be timed, and those that never came there."""
        timed = self._timed
        if timed and self._choice is not None:
            for number, status, event, _ in ended:
                key = timed.pop(number, None)
                if key is not None and status >= 0:
                    took = event.profile.end - event.profile.start
                    self._choice.timed(key, took / 1e3)
        if self._lost:
            for number, error in self._lost:
                self._errors[number] = error
                ended.append((number, DECIDED, None, -1))
            self._lost.clear()
        return ended

    def _end(self, epoch: Epoch) -> Ended:
        """An epoch has ended: what became of its launches."""
        status = int(epoch.event.get_info(STATUS)) if epoch.event is not None else -1
        failures: dict[int, BaseException] = {}
        broken = epoch.error
        if broken is None and status < 0:
            broken = DeviceError(f"the device reports status {status}")
        if broken is None:
            fault = int(epoch.status[epochs.FAULT])
            if fault in epochs.FAULTS:
                broken = InternalError(
                    f"the scheduler stopped: {epochs.FAULTS[fault]} "
                    f"(task {int(epoch.status[epochs.FAULT + 1])})"
                )
            elif int(epoch.status[epochs.UNFINISHED]):
                left = int(epoch.status[epochs.UNFINISHED])
                broken = InternalError(f"the scheduler left {left} tasks, none of them ready")
            elif fault and epoch.segment is not None:
                failures = {next(iter(epoch.index)): epoch.segment.refused(epoch.status)}
            elif fault:
                failures = self._refused(epoch)
            spare = epoch.segment is None and epoch.region is not None
            if spare and len(self._regions) < SPARE_REGIONS:
                self._regions.append(epoch.region)
        tasks = len(epoch.index) if epoch.segment is None else len(epoch.segment)
        if broken is not None and epoch.segment is not None:
            epoch.segment.broken = True
        if broken is None and tasks >= FIRST_LOOK:
            each = (perf_counter() - epoch.sent) / tasks
            self._task_s = min(each, (self._task_s + each) / 2)
        ended: Ended = []
        for number in epoch.index:
            del self._epoch_of[number]
            error = broken if broken is not None else failures.get(number)
            if error is not None:
                self._errors[number] = error
            ended.append(
                (number, status if error is None else min(status, DECIDED), epoch.kernel_event, -1)
            )
        return ended

    def _refused(self, epoch: Epoch) -> dict[int, BaseException]:
        """Which launches' counts were refused."""
        image: epochs.Image = epoch.counts
        state = np.empty(64 * -(-image.tasks // 32), np.uint32)
        at = driver.Place(epoch.region, 4 * (image.block + epochs.STATE_WORD), state.nbytes)
        driver.wait_for_event(driver.read(self.queues[0], state, at, None))
        values = state[epochs.task_places(image.tasks)]
        numbers = list(epoch.index)
        told = epochs.told_counts(epoch.status)
        return {
            numbers[task]: WrongCountError(told.get(task))
            for task in np.flatnonzero(values >= epochs.FAULTY).tolist()
        }

    def error(self, number: int, status: int) -> BaseException | None:
        """What ended a launch, where the driver's status does not tell."""
        return self._errors.pop(number, None) or self.lanes.error(number, status)

    # ---- the rest ------------------------------------------------------------------------------

    def cutter(self) -> Cutter:
        """What cuts recorded launches into segments for this backend."""
        settings, choice = self.settings, self._choice
        how = SegmentSettings(
            epochs.ORDERS[settings.order], settings.window, settings.stale,
            settings.gang and self._polls > 0, 1 if choice is None else FEW,
        )  # fmt: skip

        def refusal(command: Any, tiles: int, groups: int) -> str | None:
            return None if choice is None else choice.refusal(_key(command), tiles, groups)

        return Cutter(self._context, self._schedulers, self._store.owns, how, refusal)

    def prepare(self, kernels: list[tuple[Any, int]]) -> None:
        """Have kernels built into schedulers, and wait for it."""
        for origin, group in kernels:
            self._schedulers.ask(origin, group)
        self._schedulers.wait()

    def flush(self) -> None:
        """Send what there is."""
        self.send()  # which flushes
        self.lanes.flush()

    def wait_all(self) -> None:
        """Block until everything submitted has ended."""
        self.send()
        self.queues[0].finish()
        self.lanes.wait_all()

    def close(self) -> None:
        """Wait, then let go of the queues."""
        self._schedulers.close()
        self.wait_all()
        self.lanes.close()
        self._regions.clear()
        self._sent.clear()
        self._epoch_of.clear()


def _at_once(choice: Choice, number: int, command: Any) -> str | None:
    """Why a launch takes a lane without further thought, if it does."""
    if number < choice.resting_until:
        return "epochs were too small lately to be worth sending"
    if type(command) is KernelCommand and command.kernel.launched < HOT:
        command.kernel.launched += 1
        reason: str = command.kernel.reason
        return reason
    return None


def _look_away(kernel: Any, reason: str) -> None:
    """What keeps a kernel on lanes now will do so for its next launches: no need to ask each
    time."""
    kernel.launched = 0
    kernel.reason = reason


def _key(command: Any) -> Any:
    """A kernel and its sizes: what launches are alike for. None for other commands."""
    if type(command) is DecidedCommand:
        command = command.plain
    if type(command) is TaskCommand:
        return command.name, command.global_size, command.local_size
    if type(command) is KernelCommand:
        return command.name, command.global_size, command.local_size
    return None
