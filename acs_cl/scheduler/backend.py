"""The device backend: it collects launches in epochs, and the scheduler on the device runs each
epoch.

An epoch costs one upload and one launch of the scheduler's kernel. A launch that the scheduler
cannot run, or not yet, goes to a lane. Lanes belong to a second backend on the host. Hazards
between the scheduler and the lanes are kept by the events of whole epochs.

Input: launches. Output: their completions, a whole epoch at a time.

Invariants:
- Epochs are convex: a launch on a lane that follows the open epoch sends that epoch first. So
  nothing recorded later in the same epoch can follow the launch on the lane.
- Epochs run in the order in which they were sent, on one in-order queue at a time.
- An epoch waits for lanes by their events. A lane waits for an epoch by the event behind its last
  command. That event means that the epoch is finished, because the last launch of the scheduler
  leaves only then.
"""

# Long because: the two ways of a launch, and what keeps them in order, are one decision.

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod
from time import perf_counter
from typing import TYPE_CHECKING

import pyopencl as cl

from .. import core
from ..backends.queues import open_queues
from ..devices.driver import CommandQueue, Origin, OwnKernel
from ..errors import DeviceError
from ..launch.backend import (
    ALL,
    NO_ITEMS,
    Backend,
    BandHeads,
    Ended,
    LaneCounts,
    Lease,
    Snapshot,
)
from ..launch.commands import KernelCommand
from ..launch.decision import DecidedCommand, has_words, key_of, plain_kernel
from ..memory.blocks import Store
from ..records import Access, Command, Found, Key, Launch, Report
from .builds import Schedulers
from .built import Scheduler
from .ends import Ends
from .homes import Head, Homes, keep_on_lanes, offer_of
from .maker import Maker
from .policy import FILLS, HOT, IN_SCHEDULER, ON_LANES, Choice
from .segment import SegmentCommand
from .segment import Settings as SegmentSettings
from .sender import Epoch, Sender, Settings
from .steps import BY_RULES, FEW_IN_STEP, Steps
from .task import Body, Task, Unfit

if TYPE_CHECKING:
    from .cutting import Cutter

OPEN_S = 0.001
"""How long an epoch stays open at most while the device has fewer than two epochs to run."""

ATTENDED_S = 0.001
"""How long the open epoch is polled when no launch comes to it."""

UNSURE_S = 0.004
"""`OPEN_S` for an epoch that goes to lanes if it stays small. Python needs that long for so many
launches on a slow host."""

RETURNED = "its epoch had too few tasks to be worth sending"

ON_HOST = "on the host"


class Device(Backend):
    """Sends launches to the scheduler in epochs, and other launches to lanes."""

    name = "device"
    decides = True

    def __init__(
        self,
        context: cl.Context,
        device: cl.Device,
        lanes: Backend,
        store: Store,
        tier: str,
        settings: Settings,
        choice: Choice | None,
        table: core.native.Table,
    ) -> None:
        timed = lanes.profiling or choice is not None
        super().__init__(open_queues(context, device, 1, timed), lanes.profiling)
        self.lanes = lanes
        if choice is not None:
            self.name = lanes.name  # the backend of the lanes, with the scheduler beside it
        self._store = store
        how = settings.groups, settings.watched, settings.room, settings.timed
        self.schedulers = Schedulers(Maker(context, device, tier, *how))
        on_cpu = bool(device.type & cl.device_type.CPU)
        self._few = 1 if choice is None else choice.few
        """Tasks from which on an epoch is sent, even though it may go to lanes."""
        self.sender = Sender(self.queues[0], lanes, store, on_cpu, settings, table, self._few)
        self._table = table
        self._ends = Ends(self.sender, table, choice)
        self.choice = choice
        """The rule that chooses between scheduler and lanes. None: all that can go to the
        scheduler."""
        self._lanes_count: bool | None = None
        """Whether the core makes launches with counts on lanes. None: not asked yet."""
        self._clocked = self._clockless = self.queues
        """The queue that keeps the times of its commands, and the other one, if there are two."""
        if choice is not None and not on_cpu and not lanes.profiling:
            self._clockless = [CommandQueue(context, device)]
        self._commands: list[Launch] = []
        """The launches of the open epoch, if the whole epoch may still go to lanes."""
        self._reasons = core.native.Reasons()
        """Why launches went to lanes, and how many."""
        self._homes = Homes(self.schedulers, store, choice, table, self._reasons)
        self._steps = Steps(choice, self.schedulers) if choice is not None else None
        if self._steps is not None:
            self.least_step = self._few if on_cpu else FEW_IN_STEP

    # ---- submitting ----------------------------------------------------------------------------

    @property
    def reasons(self) -> dict[str, int]:
        """Return how many launches went to lanes, by reason."""
        return self._reasons.counts()

    @property
    def settings(self) -> Settings:
        """Return the settings by which epochs run."""
        return self.sender.settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self.sender.settings = settings
        self._table.forget_epochs()

    def lane_counts(self) -> LaneCounts:
        """Return that of the lanes, with the launches there that epochs had to wait for."""
        return self.lanes.lane_counts()._replace(waits=self.sender.waits)

    def keep_open(self, tasks: int = 0) -> None:
        """Let the open epoch grow to that many tasks, or until it is asked for, however large
        earlier epochs were."""
        self.sender.grow_to(tasks)

    @property
    def counters(self) -> dict[str, int]:
        """Count tasks, epochs, launches of the scheduler, and epochs that were sent early."""
        epoch = self.sender.open
        waiting = epoch.recorder.tasks if epoch is not None else 0
        return {
            "tasks": self.sender.tasks_sent + waiting,
            "epochs": self.sender.epochs_sent,
            "launches": self.sender.launches,
            "cuts": self.sender.cuts,
        }

    def where(self, number: int) -> str:
        """Say where a launch ran, or runs, and why. The text ends in '; '."""
        reason = self._reasons.of(number)
        if reason == ON_HOST:
            return f"{ON_HOST}; "
        if reason is not None:
            return f"on a lane: {reason}; "
        if number in self._ends.children:
            return f"in the scheduler on the device; {self._ends.children[number]}; "
        if self._table.was_foreseen(number):
            return "in the scheduler on the device, in an epoch that came as foreseen; "
        if self._table.epoch(number) or self._reasons.reaches(number):
            return "in the scheduler on the device; "
        return "in the scheduler on the device, or on a lane, too long ago to tell; "

    def passes_by(self, number: int) -> None:
        """Note a host task. Otherwise `where` would say that the scheduler ran it."""
        self._reasons.keep(number, ON_HOST)

    def join(self, table: core.native.Table) -> None:
        """Let the core make launches by itself, for the scheduler and for the lanes."""
        table.tell(self._reasons)
        self.sender.by_itself = self.choice is None
        self.sender.join()
        self.lanes.join(table)

    @property
    def core_queues(self) -> core.native.Queues | None:
        """Return the queues of the lanes."""
        return self.lanes.core_queues

    def lease(self, number: int, kernel: OwnKernel, key: Key) -> Lease:
        """Return the lease of a kernel whose last launch took a lane. It is short, because the
        reason may change, unless it is known until when it holds."""
        reason, choice, left = self._reasons.of(number), self.choice, HOT
        if kernel.origin is None:  # no scheduler can have it
            return Lease(ALL, 0, reason, 0)
        if reason is None:
            return Lease(0)
        items = prod(key[1]) if reason == FILLS else NO_ITEMS  # larger ones do, too
        if choice is not None:
            if choice.wants_time(key) and reason != FILLS:
                return Lease(0)
            rests_until, _ = choice.on_lanes_until(number, key[0])
            if rests_until:
                return Lease(ALL, rests_until - 1, reason, 0)
            if reason is RETURNED:  # the next one need not be
                return Lease(0)
            if reason == choice.takes_long(key):  # if that changes, everything is asked again
                return Lease(ALL, 0, reason, NO_ITEMS)
            if kernel.launched < HOT:
                left, kernel.launched = HOT - kernel.launched, HOT
        return Lease(left, 0, reason, items)

    def from_queues(self, ended: Ended) -> Ended:
        """Take launches that ended on lanes. Some need their time noted, and the epochs that they
        followed end before them."""
        return self._ends.collect(lambda: ended)

    def catch_up(self) -> None:
        """Gather kernels that are launched in turn, and send the open epoch if it is full."""
        self._homes.has_enough_in_flight()
        self._homes.keep_together(self.sender.cuts, self.sender.epochs_sent)
        self.send_if_due()

    def stepped(self, us: float, launches: int) -> None:
        """Take a step. Have everything planned anew if launches go another way from now on."""
        steps, choice = self._steps, self.choice
        if steps is None or choice is None or not steps.ended(us, launches, self.sender.tasks_sent):
            return
        self._table.generation += 1
        # nothing is decided about epochs then, as on the backend without lanes
        self.sender.by_itself = choice.last_was_large = choice.way == IN_SCHEDULER

    def about(self) -> Report:
        """Report counters, reasons and schedulers in plain values."""
        return {
            **self.counters,
            "on_lanes": self.reasons,
            "builds": self.schedulers.builds,
            "predicted": self._table.forecasts(),
            "steps": self._steps.told if self._steps is not None else BY_RULES,
            "children": self.sender.children._asdict(),
            "schedulers": [facts._asdict() for facts in self.schedulers.facts()],
        }

    @property
    def unsent(self) -> bool:
        """Tell whether launches wait for an epoch to be sent."""
        return self.sender.unsent

    @property
    def is_attended(self) -> bool:
        """Tell whether the core may add launches to an epoch without telling Python."""
        epoch = self.sender.open
        return self.unsent or (epoch is not None and epoch.attended > 0)

    def submit(self, launch: Launch, behind: list[cl.Event] | None = None) -> None:
        """Put a launch into the open epoch, or on a lane."""
        if self._table.is_complete:  # it has all its launches, but was not sent yet
            self.send()
        command = launch.command
        if type(command) is SegmentCommand:
            self._replay(launch.number, launch.upstream, command)
            return
        self._homes.built_anew()
        plain = plain_kernel(command)
        reason = self._reason_for_lane(launch, plain)
        if reason is None:
            offer = offer_of(command)
            try:
                scheduler, task = self._task(command, offer)
            except Unfit as unfit:
                reason = unfit.reason
                if self.choice is not None and offer is None and plain is not None:
                    keep_on_lanes(plain.kernel, reason)
            else:
                self._record(launch, scheduler, task)
                return
        self._to_lane(launch, reason)

    def _reason_for_lane(self, launch: Launch, plain: KernelCommand | None) -> str | None:
        """Say why a launch goes to a lane, whatever its task would be. None: it need not."""
        command = launch.command
        if type(command) is KernelCommand and command.lane:
            return command.lane
        if self.choice is not None and type(command) is DecidedCommand and command.is_counted:
            if self._lanes_count is None:
                self._lanes_count = has_words(self.queues[0].device)
            if self._lanes_count:
                self.choice.counted(launch.number)
        return self._at_once(self.choice, launch, plain) if self.choice else None

    def _at_once(self, choice: Choice, launch: Launch, plain: KernelCommand | None) -> str | None:
        """Return why a launch takes a lane without a further decision. None: it needs one."""
        until, why = choice.on_lanes_until(launch.number, launch.command.name)
        if until:
            return why
        if plain is None or offer_of(plain) is not None:
            return None
        kernel = plain.kernel
        if kernel.launched >= HOT:
            return choice.takes_long(plain.key)
        if not kernel.launched and kernel.origin is not None:
            self.schedulers.launched.see(kernel.origin)
        kernel.launched += 1
        reason: str = kernel.reason
        return reason

    def _task(
        self, command: Command, offer: tuple[Scheduler, Body] | None
    ) -> tuple[Scheduler, Task]:
        """Return the task of a launch, and the scheduler that runs it: that of the open epoch, if
        it can. Raise `Unfit` if none does."""
        homes = self._homes
        scheduler, task = homes.task(command, offer)
        refusal = homes.refusal(key_of(command), task.tiles, scheduler)
        if refusal is not None:
            raise Unfit(refusal)
        epoch = self.sender.open
        if epoch is not None and epoch.scheduler is not scheduler:
            found = homes.shared_task(command, scheduler, epoch.scheduler)
            if found is not None:
                return epoch.scheduler, found
        return scheduler, task

    def _record(self, launch: Launch, scheduler: Scheduler, task: Task) -> None:
        """Put a task into the open epoch, or into a new one if that is another scheduler's."""
        epoch = self.sender.open
        if epoch is None or epoch.scheduler is not scheduler:
            self._cut()
            is_sent_anyway = self.choice is None or self.choice.last_was_large
            epoch = self.sender.open_for(scheduler, is_sent_anyway)
        table = self._table
        inside = []
        for upstream in launch.upstream:
            at = table.task(upstream, epoch.number)
            if at >= 0:
                inside.append(at)
            else:
                self.sender.follow(epoch, upstream)
        at = epoch.recorder.add(task.head, task.blob, task.shape, inside)
        table.put(launch.number, epoch.number, at)
        if epoch.names is None:
            epoch.names = Counter()
        epoch.names[launch.command.name] += 1
        if not epoch.is_sent_anyway and at < self._few:
            self._commands.append(launch)
        self.send_if_due()

    def heads(self, command: KernelCommand) -> list[Head]:
        """Return how records of such launches begin, in the schedulers that can run them."""
        return self._homes.heads(command)

    def bands(self, command: KernelCommand) -> BandHeads | None:
        """Return how records of the bands of such launches begin in the scheduler of their
        kernel."""
        return self._homes.bands(command)

    def attend(self) -> None:
        """Let the open epoch be polled, even though it has no tasks yet."""
        epoch = self.sender.open
        if epoch is not None and not epoch.attended:
            self.sender.attend()

    def _to_lane(self, launch: Launch, reason: str) -> None:
        """Launch on a lane, behind its upstream. An epoch in its upstream is sent first."""
        number = launch.number
        self._reasons.note(number, reason)
        command = launch.command
        if self.choice is not None and self.choice.on_cpu:
            key = key_of(command)
            if key is not None and self.choice.wants_time(key) and _has_origin(command):
                self._ends.timed[number] = key
        extra = None
        if self.sender.has_any:
            extra = self._epochs_above(launch)
        self.lanes.submit(launch, extra)

    def _epochs_above(self, launch: Launch) -> list[cl.Event] | None:
        """Send the epochs that a launch on a lane follows, and return their events."""
        extra = []
        for number in launch.upstream:
            epoch = self.sender.find(self._table.epoch(number))
            if epoch is not None:
                if epoch is self.sender.open:
                    self._cut()
                    if self.choice is not None and self.choice.cut(key_of(launch.command)):
                        self._table.generation += 1
                if epoch.event is not None and epoch.event not in extra:
                    extra.append(epoch.event)
        return extra or None

    def _replay(self, number: int, upstream: Sequence[int], command: SegmentCommand) -> None:
        """Send a recorded segment as an epoch of its own, behind the open one. If that does not
        work, the segment fails."""
        self._cut()
        sender = self.sender
        epoch = sender.new_epoch(command.segment.scheduler, True)
        epoch.segment, epoch.is_judged = command.segment, False
        epoch.is_plain = command.run is None and not command.is_counted
        for other in upstream:
            sender.follow(epoch, other)
        self._table.put(number, epoch.number, 0)
        self._choose_queue()
        epoch.is_clocked = self.queues is self._clocked
        sender.tasks_sent += len(command.segment)
        sender.push(epoch)
        try:
            sender.send_segment(epoch, command)
        except Exception as error:  # it was pushed, so it has to end
            epoch.error = error

    def replay(self, command: Command, access: Access, footprint: core.native.Footprint) -> int:
        """Have the core send a recorded segment, behind the open epoch. Return its launch. 0:
        something is unusual, so that it has to be launched like others."""
        assert isinstance(command, SegmentCommand)
        segment = command.segment
        if segment.counted:
            return 0
        if self.choice is not None:  # it decides about the open epoch, too
            self._cut()
            self._choose_queue()
        number = self.sender.replay(
            segment.scheduler, command, access, footprint, segment.resident,
            segment.changes(command.version),
        )  # fmt: skip
        if number:
            segment.has_written(command.version)
        return number

    # ---- sending -------------------------------------------------------------------------------

    def _choose_queue(self) -> None:
        """Use the queue that keeps times only while the choice needs timing. Epochs run in order,
        so the queue changes only when no epoch is in flight."""
        choice = self.choice
        if choice is None or self.sender.has_sent or self._clocked is self._clockless:
            return
        wanted = self._clocked if choice.needs_timing else self._clockless
        if self.queues is not wanted and self.queues in (self._clocked, self._clockless):
            self.queues = wanted
            self.sender.requeue(wanted[0], self.lanes)

    def send_if_due(self) -> None:
        """Send the open epoch if it is full, or if it has some tasks and the device has none."""
        epoch = self.sender.open
        if epoch is None or not self.unsent:
            return
        if not epoch.attended:
            self.sender.attend()
        epoch.opened = epoch.opened or perf_counter()
        if self.sender.is_due():
            self.send()

    def _cut(self) -> None:
        """Send the open epoch early."""
        self.sender.cuts += self.unsent
        self.send()

    def send(self) -> None:
        """Send the open epoch and open the next one. If the driver refuses, all launches of the
        epoch fail. The next epoch is opened at once if it will be sent whatever its size. Then
        launches of the core need not stop for it. If this epoch was polled, the next one is polled
        too."""
        sender, choice = self.sender, self.choice
        if not sender.unsent:
            return
        if choice is not None:
            epoch, few = sender.open, self._commands
            if not self._table.is_complete:  # otherwise the epoch was foreseen
                self._commands = []
                newest = self._table.of_epoch(epoch.number)[-1]
                if not choice.epoch(epoch.recorder.tasks, newest, epoch.is_sent_anyway):
                    sender.shut()
                    self._return_to_lanes(epoch, few)
                    return
            self._choose_queue()
            epoch.is_clocked = self.queues is self._clocked
            epoch.is_judged = choice.judges_next()
        sender.send_open(choice is None or choice.last_was_large)

    def _return_to_lanes(self, epoch: Epoch, launches: list[Launch]) -> None:
        """Return the launches of an epoch to lanes, because it is too small to be sent."""
        self._table.leave(epoch.number)
        for launch in launches:
            try:
                self._to_lane(launch, RETURNED)
            except Exception as error:  # any error is the launch's own
                self._ends.lost.append((launch.number, DeviceError(str(error))))

    # ---- what has ended ------------------------------------------------------------------------

    @property
    def has_epochs(self) -> bool:
        """Tell whether epochs were sent and not yet seen to end."""
        return self.sender.has_sent

    @property
    def in_flight(self) -> int:
        """Return how many launches were submitted and not yet reported."""
        return self._table.in_epochs + self.lanes.in_flight

    def event(self, number: int) -> cl.Event | None:
        """Return the event of a launch: that of its command on a lane, or of its epoch, sent
        first."""
        epoch: Epoch | None = self.sender.find(self._table.epoch(number))
        if epoch is None:
            return self.lanes.event(number)
        if epoch is self.sender.open:
            self.send()
            if not self._table.epoch(number):
                return self.lanes.event(number)
        return epoch.event

    def oldest(self) -> cl.Event | None:
        """Return an event to wait for before the next poll."""
        self.send()
        for epoch in self.sender.sent:
            event: cl.Event | None = epoch.event
            if event is not None:
                return event
        return self.lanes.oldest()

    def poll(self, most: int = 64) -> Ended:
        """Return launches that have ended. Send the epoch that was open for long enough."""
        self._homes.keep_together(self.sender.cuts, self.sender.epochs_sent)
        epoch = self.sender.open
        if epoch is not None and epoch.recorder.tasks:
            most_s = OPEN_S if epoch.is_sent_anyway and not self._table.follows else UNSURE_S
            if not epoch.opened:
                epoch.opened = perf_counter()
                if not epoch.attended:
                    self.sender.attend()
            elif perf_counter() - epoch.opened > most_s and self.sender.in_hand < 2:
                self.send()
        elif self._table.is_complete:  # no other code sends it
            self.send()
        elif epoch is not None and epoch.attended and perf_counter() - epoch.attended > ATTENDED_S:
            self.sender.leave_alone()
        return self._ends.collect(lambda: self.lanes.poll(most))

    def poll_up_to(self, number: int) -> Ended:
        """Return launches that have ended, for a caller that waits for launch `number`."""
        return self._ends.collect(lambda: self.lanes.poll_up_to(number))

    def time_tasks(self, on: bool) -> None:
        """Use schedulers that note times from now on, or the usual ones."""
        self.schedulers.time(on)
        if on:
            built = self.schedulers.built()
            self._ends.book.begin(one.notes for one in built if one.notes is not None)

    def noted(self) -> Found | None:
        """Return what groups of the scheduler ran, for launches that have ended."""
        if self.sender.has_sent:
            return None
        return self._ends.book.take()._replace(untimed=self.schedulers.untimed())

    def snapshot(self) -> Snapshot | None:
        """Read the state of the oldest epoch on the device, by a queue that is not busy with it."""
        from .snapshot import snapshot

        epoch = next((one for one in self.sender.sent if one.event is not None), None)
        if epoch is None:
            return None
        numbers = self._table.of_epoch(epoch.number)

        def name(task: int) -> str:
            segment = epoch.segment
            if segment is not None:
                return f"{segment.name(task)}, replayed by launch {numbers[0]}"
            launch = self._table.launch(numbers[task])
            return f"launch {numbers[task]} ({launch.command.name if launch else 'ended'})"

        return snapshot(self.queues[0], epoch, name)

    def error(self, number: int, status: int) -> BaseException | None:
        """Return the error of a launch, where the driver's status does not tell it."""
        return self._ends.errors.pop(number, None) or self.lanes.error(number, status)

    # ---- the rest ------------------------------------------------------------------------------

    @property
    def is_mixed(self) -> bool:
        """Tell whether it has a policy."""
        return self.choice is not None

    @property
    def tries_loops(self) -> bool:
        """Tell whether the policy may be wrong about loops: on a CPU."""
        return self.choice is not None and self.choice.on_cpu

    def cutter(self, way: int) -> Cutter | None:
        """Return this backend's cutter, which cuts recorded launches into segments, for graphs.
        `way`: as for any backend."""
        if way == ON_LANES:
            return None
        from .cutting import Cutter

        choice = self.choice
        few = 1 if way == IN_SCHEDULER else self._few
        how = SegmentSettings(self.settings.window, self.sender.polls > 0, few)

        def refusal(command: Command, task: Task, groups: int) -> str | None:
            if choice is None or way == IN_SCHEDULER:
                return None
            if task.cuts.bands and choice.on_cpu:
                return None  # on a CPU bands gain more than lanes do
            return choice.ruled(self._table.number, key_of(command), task.tiles, groups)

        return Cutter(self.queues[0].context, self.schedulers, self._store, how, refusal)

    def prepare(self, kernels: list[tuple[Origin, int]]) -> None:
        """Build kernels into schedulers, and wait for the builds."""
        for origin, group in kernels:
            self.schedulers.ask(origin, group)
        self.schedulers.wait()

    def requeue(
        self, lanes: Backend, queues: list[cl.CommandQueue] | None = None
    ) -> tuple[Backend, list[cl.CommandQueue]]:
        """Change to other lanes and queues. Return the ones before. Nothing may be in flight."""
        before = self.lanes, self.queues
        if queues is None:
            old = self.queues[0]
            timed = cl.command_queue_properties.PROFILING_ENABLE
            queues = [CommandQueue(old.context, old.device, properties=timed)]
        self.lanes, self.queues, self.profiling = lanes, queues, lanes.profiling
        self.sender.requeue(queues[0], lanes)
        return before

    def flush(self) -> None:
        """Send the open epoch and flush the lanes."""
        self.send()  # this also flushes
        self.lanes.flush()

    def wait_all(self) -> None:
        """Block until everything submitted has ended."""
        self.send()
        self.queues[0].finish()
        self.lanes.wait_all()

    def close(self) -> None:
        """Wait, then release the queues."""
        self.schedulers.close()
        self.wait_all()
        self.sender.shut()
        self.lanes.close()
        self._table.forget_epochs()
        self.sender.let_go_of_all()


def _has_origin(command: Command) -> bool:
    """Tell whether a scheduler could have the kernel of a launch."""
    return type(command) is not KernelCommand or command.kernel.origin is not None
