"""The device-side scheduler as a backend: launches are collected in epochs, and an epoch is sent as
one upload and one launch of a kernel that runs all of it.

In: launches. Out: their completions, whole epochs at a time. What the scheduler cannot run, or not
yet, goes to lanes: a host backend beside it, with the hazards between the two kept by whole events.

Invariants:
- Epochs are convex: whatever waits for the open epoch on a lane sends it, so nothing recorded later
  into the same epoch can wait for that.
- Epochs run in the order in which they were sent, on one in-order queue at a time; an epoch waits
  for lanes by their events, a lane for an epoch by the event behind its last command. That one says
  that the epoch is finished: the last launch of the scheduler in it is one that leaves only when it
  is.
"""

# Long because: the two ways of a launch, and what keeps them in order, are one decision.

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from math import prod
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

import pyopencl as cl

from .. import core
from ..backends.queues import open_queues
from ..devices.driver import CommandQueue, Origin, OwnKernel
from ..errors import DeviceError
from ..launch.backend import DECIDED, Backend, BandHeads, End, Ended, Snapshot
from ..launch.commands import KernelCommand
from ..launch.decision import parts_of
from ..memory.blocks import Store
from ..records import Command, Found, Launch, Report
from .builds import Schedulers
from .built import Scheduler
from .kernel_sets import CutCount, Step
from .laying import heads_of
from .notes import NOTED, Book, Noted
from .policy import FEW, HOT, LONGEST_REST, Choice, Key
from .segment import SegmentCommand
from .segment import Settings as SegmentSettings
from .sender import Epoch, Sender, Settings
from .task import MOST_HEADS, NO_ADDRESS, Body, NeedsArena, Task, Unfit, sizes_of

if TYPE_CHECKING:
    from .cutting import Cutter

OPEN_S = 0.001
"""How long an epoch stays open at most while the device has less than two to work on."""

ATTENDED_S = 0.001
"""How long somebody looks at an epoch to which nothing comes."""

UNSURE_S = 0.004
"""The same where it goes to lanes if it stays small: so many launches by Python may take as long as
that on a slow host."""

DISSOLVED = f"its epoch had fewer than {FEW} tasks"
FEW_COME = f"fewer than {FEW} launches were under way at a time so far"

REMEMBERED = 8192
"""Launches on lanes whose reason is kept for `explain`."""

ON_HOST = "it is a host task"


Head: TypeAlias = tuple[Scheduler, int, bytes, bytes | None]
"""A scheduler, its local memory, how records of a size begin there, and their shape."""


class Device(Backend):
    """Epochs for the scheduler, and lanes for the rest."""

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
            self.name = lanes.name  # which has the scheduler beside it
        self._store = store
        self._schedulers = Schedulers(
            context, device, tier, settings.groups, settings.watched, settings.room, settings.timed
        )
        self._book = Book()
        on_cpu = bool(device.type & cl.device_type.CPU)
        self._sender = Sender(self.queues[0], lanes, store, tier, on_cpu, settings, table, FEW)
        self._table = table
        self._errors: dict[int, BaseException] = {}
        self._lost: list[tuple[int, BaseException]] = []
        self._choice = choice
        """The rule by which launches go to the scheduler; None: all that can."""
        self._clocked = self._clockless = self.queues
        """The queue with the times of its commands, and the one without, if there are two."""
        if choice is not None and not on_cpu and not lanes.profiling:
            self._clockless = [CommandQueue(context, device)]
        self._commands: list[Launch] = []
        """The launches of the open epoch, where it may go to lanes as a whole."""
        self._timed: dict[int, Key] = {}
        self._where: dict[int, str] = {}
        self._children: dict[int, str] = {}
        """What became of items that were spawned in the epochs of launches."""
        self._offered: list[OwnKernel] = []
        self._builds = 0
        self._together = False
        self._cut_count = CutCount()
        self.reasons: dict[str, int] = {}
        """Why launches went to lanes, and how many."""

    # ---- submitting ----------------------------------------------------------------------------

    @property
    def schedulers(self) -> Schedulers:
        """What is built, and what can be."""
        return self._schedulers

    @property
    def settings(self) -> Settings:
        """How epochs are run."""
        return self._sender.settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self._sender.settings = settings
        self._table.forget_epochs()

    @property
    def choice(self) -> Choice | None:
        """The rule by which launches go to the scheduler; None: all that can."""
        return self._choice

    @property
    def sender(self) -> Sender:
        """What sends epochs."""
        return self._sender

    @property
    def newest(self) -> Epoch | None:
        """The newest epoch that was sent and is not known to have ended."""
        newest: Epoch | None = self._sender.newest
        return newest

    @property
    def open_epoch(self) -> Epoch | None:
        """The epoch that launches go to at the moment."""
        epoch: Epoch | None = self._sender.open
        return epoch

    @property
    def waits(self) -> int:
        """Launches on lanes that epochs were made to wait for."""
        return self._sender.waits

    @property
    def epochs_sent(self) -> int:
        """Epochs that were sent."""
        return self._sender.epochs_sent

    def keep_open(self, tasks: int = 0) -> None:
        """Let the open epoch grow to so many tasks, or until it is asked for, whatever those before
        it held."""
        self._sender.grow_to(tasks)

    @property
    def counters(self) -> dict[str, int]:
        """Tasks, epochs, launches of the scheduler, and how often an epoch was cut short."""
        epoch = self._sender.open
        waiting = epoch.recorder.tasks if epoch is not None else 0
        return {
            "tasks": self._sender.tasks_sent + waiting,
            "epochs": self._sender.epochs_sent,
            "launches": self._sender.launches,
            "cuts": self._sender.cuts,
        }

    def where(self, number: int) -> str:
        """Where a launch ran, or runs, and why, ending in '; '."""
        reason = self._where.get(number)
        if reason == ON_HOST:
            return "on the host; "
        if reason is not None:
            return f"on a lane: {reason}; "
        if number in self._children:
            return f"in the scheduler on the device; {self._children[number]}; "
        if self._table.was_foreseen(number):
            return "in the scheduler on the device, in an epoch that came as foreseen; "
        if self._table.epoch(number) or not self._where or number >= next(iter(self._where)):
            return "in the scheduler on the device; "
        return "in the scheduler on the device, or on a lane, too long ago to tell; "

    def passes_by(self, number: int) -> None:
        """Told, or it would be taken for one in the scheduler."""
        self._where[number] = ON_HOST
        forget_oldest(self._where)

    def join(self, table: core.native.Table) -> None:
        """The core makes launches for both by itself."""
        table.tell(self.reasons, self._where)
        self._sender.by_itself = self._choice is None
        self._sender.join()
        self.lanes.join(table)

    @property
    def core_queues(self) -> core.native.Queues | None:
        """Those of the lanes."""
        return self.lanes.core_queues

    def stays(self, number: int, kernel: OwnKernel, key: Key) -> tuple[int, int, str | None]:
        """Some launches at a time, where the last one took a lane: what keeps a kernel there may
        change."""
        reason, choice, left, until = self._where.get(number), self._choice, HOT, 0
        if kernel.origin is None:  # no scheduler can have it
            return -1, 0, reason
        if reason is None or (choice is not None and choice.wants_time(key)):
            return 0, 0, None
        if choice is not None:
            rests_until, _ = choice.left_alone(number, key[0])
            if rests_until:
                until = rests_until - 1
            elif reason is DISSOLVED:  # the next one need not be
                return 0, 0, None
            elif kernel.launched < HOT:
                left, kernel.launched = HOT - kernel.launched, HOT
        return left, until, reason

    def from_queues(self, ended: Ended) -> Ended:
        """Some may have been timed; and epochs that they followed end before them."""
        looks = iter((ended[:], []))
        ended[:] = self._collect(lambda: next(looks))
        return ended  # the same list: whoever takes note of them empties it

    def look(self) -> None:
        """An epoch may be full."""
        self._come_together()
        self._keep_together()
        self.send_if_due()
        forget_oldest(self._where)

    def about(self) -> Report:
        """Counters, reasons and schedulers, in plain values."""
        return {
            **self.counters,
            "on_lanes": dict(self.reasons),
            "builds": self._schedulers.builds,
            "predicted": self._table.forecasts(),
            "children": self._sender.children._asdict(),
            "schedulers": [facts._asdict() for facts in self._schedulers.facts()],
        }

    @property
    def unsent(self) -> bool:
        """Whether launches wait for an epoch to be sent."""
        return self._sender.unsent

    @property
    def is_attended(self) -> bool:
        """Whether launches may come to an epoch without anybody's being told."""
        epoch = self._sender.open
        return self.unsent or (epoch is not None and epoch.attended > 0)

    def submit(self, launch: Launch, behind: list[cl.Event] | None = None) -> None:
        """Into the open epoch, or to a lane."""
        if self._table.is_complete:  # and not sent yet
            self.send()
        command = launch.command
        if type(command) is SegmentCommand:
            self._replay(launch.number, launch.upstream, command)
            return
        self._look_again()
        if type(command) is KernelCommand and command.lane:
            self._to_lane(launch, command.lane)
            return
        choice = self._choice
        if choice and (reason := _at_once(choice, launch.number, command)) is not None:
            self._to_lane(launch, reason)
            return
        offer = _offer(command)
        try:
            scheduler, task = self._task(command, offer)
            refusal = self._refusal(_key(command), task.tiles, scheduler)
            if refusal is not None:
                raise Unfit(refusal)
        except Unfit as unfit:
            if choice is not None and offer is None and type(command) is KernelCommand:
                _look_away(command.kernel, unfit.reason)
            self._to_lane(launch, unfit.reason)
            return
        epoch = self._sender.open
        if epoch is not None and epoch.scheduler is not scheduler:
            found = self._as_guest(command, scheduler, epoch.scheduler)
            if found is not None:
                scheduler, task = epoch.scheduler, found
                command, _ = parts_of(command)
                assert type(command) is KernelCommand
                self._keep_offer(command, scheduler, scheduler.bodies[command.kernel.origin])
        if epoch is None or epoch.scheduler is not scheduler:
            self._cut()
            trusted = self._choice is None or self._choice.trusts
            epoch = self._sender.open_for(scheduler, trusted)
        table = self._table
        inside = []
        for upstream in launch.upstream:
            at = table.task(upstream, epoch.number)
            if at >= 0:
                inside.append(at)
            else:
                self._sender.follow(epoch, upstream)
        at = epoch.recorder.add(task.head, task.blob, task.shape, inside)
        table.put(launch.number, epoch.number, at)
        if epoch.names is None:
            epoch.names = Counter()
        epoch.names[command.name] += 1
        if not epoch.trusted and at < FEW:
            self._commands.append(launch)
        self.send_if_due()

    def _as_guest(self, command: Command, home: Scheduler, other: Scheduler) -> Task | None:
        """What a launch is in another scheduler, if it may as well run there: so that the epoch
        needs no cut. One that fills the device has its tiles as its own scheduler cuts them: on an
        H200 such a task took twice as long in groups of 64 as in groups of 256."""
        command, decision = parts_of(command)
        assert type(command) is KernelCommand
        origin = command.kernel.origin
        if decision is not None and decision.count is not None:
            return None
        if not self._schedulers.may_ride(origin, home, other):
            return None
        try:
            task = other.bodies[origin].made(command, decision, self._store.owns)
        except Unfit:  # it has less local memory
            return None
        is_alike = other.limits.group == home.limits.group
        return task if is_alike or 2 * task.tiles <= other.limits.groups else None

    def attend(self) -> None:
        """Look at the open epoch now and then, though it has no tasks."""
        epoch = self._sender.open
        if epoch is not None and not epoch.attended:
            self._sender.attend()

    def heads(self, command: KernelCommand) -> list[Head]:
        """How records of launches like one that was a task of a scheduler begin, there and in all
        others where they may as well run. None, if they do not go to it without further thought."""
        offer = _offer(command)
        if offer is None:
            return []
        scheduler, body = offer
        found = body.heads.get(sizes_of(command))
        if found is None or self._refusal(_key(command), found[2], scheduler) is not None:
            return []
        heads = [(scheduler, body.limits.arena_bytes, *found[:2])]
        for other in self._schedulers.built():
            task = None if other is scheduler else self._as_guest(command, scheduler, other)
            if task is not None:
                heads.append((other, other.limits.arena_bytes, task.head, task.shape))
        return heads

    def bands(self, command: KernelCommand) -> BandHeads | None:
        """How records of the bands of such launches begin in the scheduler of their kernel.
        None: it does not have them, or not yet."""
        try:
            scheduler, body = self._body(command)
            task = body.made(command, None, self._store.owns)
        except Unfit:
            return None
        found = task.cuts
        if not found.bands or self._refusal(_key(command), task.tiles, scheduler) is not None:
            return None
        boxes = [band.boxes for band in found.bands]
        heads = [*zip(boxes, heads_of(task), strict=True)]
        return BandHeads(scheduler, body.limits.arena_bytes, task.shape, found.unit, heads)

    def _refusal(self, key: Key | None, tiles: int, scheduler: Scheduler) -> str | None:
        """Why the next launch of a kernel and its sizes should take a lane, if it should."""
        if self._choice is None:
            return None
        return self._choice.refusal(self._table.number, key, tiles, scheduler.limits.groups)

    def _task(
        self, command: Command, offer: tuple[Scheduler, Body] | None
    ) -> tuple[Scheduler, Task]:
        """The task that a launch is. Raises `Unfit`."""
        command, decision = parts_of(command)
        if type(command) is not KernelCommand:
            raise Unfit(f"a {command.name} runs on a lane")
        scheduler, body = offer or self._body(command)
        try:
            task = body.made(command, decision, self._store.owns)
        except NeedsArena as more:
            self._schedulers.enlarge(scheduler, more.nbytes)
            raise
        if offer is None:
            self._keep_offer(command, scheduler, body)
        return scheduler, task

    def _keep_offer(self, command: KernelCommand, scheduler: Scheduler, body: Body) -> None:
        """From now on launches of a kernel at these sizes are at home there."""
        offers = command.kernel.offers
        if not offers:
            self._offered.append(command.kernel)
        elif len(offers) >= MOST_HEADS:  # a program whose sizes never repeat
            offers.clear()
        offers[sizes_of(command)] = scheduler, body

    def _body(self, command: KernelCommand) -> tuple[Scheduler, Body]:
        origin = getattr(command.kernel, "origin", None)
        if origin is None:
            raise Unfit(NO_ADDRESS)
        why = "" if self._come_together() else FEW_COME
        return self._schedulers.find(origin, prod(command.local_size or (0,)), why)

    def _keep_together(self) -> None:
        """Have kernels in one scheduler that are launched in turn and are in several: there epochs
        are cut. For a while each kernel's next launch comes to Python, which tells what they
        are."""
        self._look_again()
        step = self._cut_count.look(self._sender.cuts, self._sender.epochs_sent)
        if step is Step.WATCH:
            self._schedulers.watch()
            self._forget_offers()
        elif step is Step.GATHER:
            self._schedulers.gather()

    def _come_together(self) -> bool:
        """Whether so many launches were under way at a time that an epoch of them is worth being
        sent. Else nothing is built: the driver's compiler would keep launches waiting."""
        if not self._together and (self._choice is None or len(self._table) >= FEW):
            self._together = True
            self._table.generation += 1
        return self._together

    def _to_lane(self, launch: Launch, reason: str) -> None:
        """Behind its upstream, epochs included: an epoch that it waits for is sent first."""
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        number = launch.number
        self._where[number] = reason
        forget_oldest(self._where)
        command = launch.command
        if self._choice is not None and self._choice.on_cpu:
            key = _key(command)
            if key is not None and self._choice.wants_time(key) and _has_origin(command):
                self._timed[number] = key
        extra = None
        if self._sender.has_any:
            extra = self._epochs_above(launch)
        self.lanes.submit(launch, extra)

    def _epochs_above(self, launch: Launch) -> list[cl.Event] | None:
        """The events of the epochs that a launch on a lane waits for; they are sent."""
        extra = []
        for number in launch.upstream:
            epoch = self._sender.find(self._table.epoch(number))
            if epoch is not None:
                if epoch is self._sender.open:
                    self._cut()
                if epoch.event is not None and epoch.event not in extra:
                    extra.append(epoch.event)
        return extra or None

    def _replay(self, number: int, upstream: Sequence[int], command: SegmentCommand) -> None:
        """A recorded segment, as an epoch of its own behind the open one. What the driver refuses
        here is its failure."""
        self._cut()
        sender = self._sender
        epoch = sender.new_epoch(command.segment.scheduler, True)
        epoch.segment, epoch.is_plain = command.segment, False
        for other in upstream:
            sender.follow(epoch, other)
        self._table.put(number, epoch.number, 0)
        self._choose_queue()
        epoch.is_clocked = self.queues is self._clocked
        sender.push(epoch)
        sender.tasks_sent += len(command.segment)
        sender.send_segment(epoch, command)

    # ---- sending -------------------------------------------------------------------------------

    def _choose_queue(self) -> None:
        """The one that keeps times only where somebody wants to know. Epochs run in order, so that
        it is changed when none is under way."""
        choice = self._choice
        if choice is None or self._sender.has_sent or self._clocked is self._clockless:
            return
        wanted = self._clocked if choice.doubts else self._clockless
        if self.queues is not wanted and self.queues in (self._clocked, self._clockless):
            self.queues = wanted
            self._sender.requeue(wanted[0], self.lanes)

    def send_if_due(self) -> None:
        """Send the open epoch if it is full, or if it has some tasks and the device none."""
        epoch = self._sender.open
        if epoch is None or not self.unsent:
            return
        if not epoch.attended:
            self._sender.attend()
        epoch.opened = epoch.opened or perf_counter()
        if self._sender.is_due():
            self.send()

    def _cut(self) -> None:
        """Send the open epoch before its time."""
        self._sender.cuts += self.unsent
        self.send()

    def send(self) -> None:
        """Send the open epoch. What the driver refuses here is the failure of all its launches. The
        next one is open at once, where it will be sent whatever comes: launches that the core makes
        need not stop for it. Who looked at this one now and then does so for the next."""
        sender, choice = self._sender, self._choice
        if not sender.unsent:
            return
        if choice is not None:
            epoch, few = sender.open, self._commands
            if not self._table.is_complete:  # else it came as foreseen
                self._commands = []
                newest = self._table.of_epoch(epoch.number)[-1]
                if not choice.epoch(epoch.recorder.tasks, newest, epoch.trusted):
                    sender.shut()
                    self._dissolve(epoch, few)
                    return
            self._choose_queue()
            epoch.is_clocked = self.queues is self._clocked
        sender.send_open(choice is None or choice.trusts)

    def _look_again(self) -> None:
        """Where there are new schedulers, what was offered may be in a newer one now, and what the
        core sends to lanes in one of them."""
        if self._builds == self._schedulers.builds:
            return
        self._builds = self._schedulers.builds
        self._forget_offers()
        if self._choice is not None:
            self._choice.look_again(self._builds)

    def _forget_offers(self) -> None:
        """Have Python look for each kernel's scheduler again, at its next launch."""
        for native in self._offered:
            native.offers = {}
        self._offered.clear()
        self._table.generation += 1

    def _dissolve(self, epoch: Epoch, launches: list[Launch]) -> None:
        """An epoch too small to be sent: its launches take lanes."""
        self._table.leave(epoch.number)
        for launch in launches:
            try:
                self._to_lane(launch, DISSOLVED)
            except Exception as error:  # whatever it is, it is the launch's
                self._lost.append((launch.number, DeviceError(str(error))))

    # ---- what has ended ------------------------------------------------------------------------

    @property
    def has_epochs(self) -> bool:
        """Whether epochs were sent that nobody has seen to end."""
        return self._sender.has_sent

    @property
    def in_flight(self) -> int:
        """Launches submitted and not yet reported."""
        return self._table.in_epochs + self.lanes.in_flight

    def event(self, number: int) -> cl.Event | None:
        """The event of a launch: of its lane's command, or of its epoch, which is sent for it."""
        epoch: Epoch | None = self._sender.find(self._table.epoch(number))
        if epoch is None:
            return self.lanes.event(number)
        if epoch is self._sender.open:
            self.send()
            if not self._table.epoch(number):
                return self.lanes.event(number)
        return epoch.event

    def oldest(self) -> cl.Event | None:
        """An event to wait for before looking again."""
        self.send()
        for epoch in self._sender.sent:
            event: cl.Event | None = epoch.event
            if event is not None:
                return event
        return self.lanes.oldest()

    def poll(self, most: int = 64) -> Ended:
        """Launches that have ended. An epoch that was open for long enough is sent."""
        self._keep_together()
        epoch = self._sender.open
        if epoch is not None and epoch.recorder.tasks:
            most_s = OPEN_S if epoch.trusted and not self._table.follows else UNSURE_S
            if not epoch.opened:
                epoch.opened = perf_counter()
                if not epoch.attended:
                    self._sender.attend()
            elif perf_counter() - epoch.opened > most_s and self._sender.in_hand < 2:
                self.send()
        elif self._table.is_complete:  # and nobody else sends it
            self.send()
        elif epoch is not None and epoch.attended and perf_counter() - epoch.attended > ATTENDED_S:
            self._sender.leave_alone()
        return self._collect(lambda: self.lanes.poll(most))

    def poll_up_to(self, number: int) -> Ended:
        """The same, for a caller who waits for a launch."""
        return self._collect(lambda: self.lanes.poll_up_to(number))

    def _collect(self, poll: Callable[[], Ended]) -> Ended:
        """Two looks at the lanes, one on each side of the look at the epochs: whatever an epoch
        that ended waited for has been seen to end. Epochs with launches of the core's own are
        reported behind all others."""
        ended = self._from_lanes(poll())
        epoch = self._sender.take_ended()
        if epoch is None:
            return ended
        whole: Ended = []
        while epoch is not None:
            one_by_one = self._end(epoch)
            ended += one_by_one
            if len(one_by_one) < epoch.recorder.tasks + epoch.foreseen:
                whole.append(End(0, 0, epoch, -1, epoch.number))
            epoch = self._sender.take_ended()
        ended += self._from_lanes(poll())
        ended.sort(key=lambda one: one.number)
        return ended + whole

    def _from_lanes(self, ended: Ended) -> Ended:
        """What has ended on lanes: launches to be timed, and those that never came there."""
        timed = self._timed
        if timed and self._choice is not None:
            for end in ended:
                key = timed.pop(end.number, None)
                if key is not None and end.status >= 0:
                    took = end.event.profile.end - end.event.profile.start
                    self._choice.timed(key, took / 1e3)
                    self._table.generation += 1
        if self._lost:
            for number, error in self._lost:
                self._errors[number] = error
                ended.append(End(number, DECIDED, None, -1))
            self._lost.clear()
        return ended

    def _end(self, epoch: Epoch) -> Ended:
        """An epoch has ended: what became of its launches. If that was bad, each is told."""
        which, table = epoch.number, self._table
        if epoch.scheduler.notes is not None:
            self._note(epoch)
        status, broken, failures = self._sender.outcome(epoch, partial(table.of_epoch, which))
        is_bad = broken is not None or bool(failures)
        if not is_bad and self._choice is not None and epoch.segment is None:
            self._look_at(epoch, self._choice)
        if broken is not None and epoch.resident is not None:
            table.drop(epoch.resident)
        if any(epoch.children):
            self._children.update(dict.fromkeys(table.of_epoch(which), str(epoch.children)))
            forget_oldest(self._children)
        ended: Ended = []
        for number in table.leave(which, is_bad):
            error = broken if broken is not None else failures.get(number)
            if error is not None:
                self._errors[number] = error
            ended.append(End(number, status if error is None else min(status, DECIDED), epoch, -1))
        return ended

    def _note(self, epoch: Epoch) -> None:
        """Remember what the notes tell of an epoch that has ended."""
        times, segment = epoch.profile, epoch.segment
        if epoch.event is None or times is None:
            return
        upto, numbers = int(epoch.status[NOTED]), self._table.of_epoch(epoch.number)
        parts = None if segment is None else segment.parts
        noted = Noted(epoch.scheduler.notes, upto - epoch.launches, upto, *times, numbers, parts)
        self._book.ended(noted, epoch.counts.tasks)
        if self._book.is_large and not self._sender.has_sent:
            self._book.keep()

    def _look_at(self, epoch: Epoch, choice: Choice) -> None:
        """How long an epoch took may say that its kernels belong to lanes."""
        tasks = epoch.recorder.tasks + epoch.foreseen
        if not epoch.is_clocked:
            choice.saw((perf_counter() - epoch.sent) * 1e6, tasks)
            return
        took = epoch.device_us(choice.on_cpu)
        if took is not None:
            names, number = partial(self._names, epoch), self._table.number
            if choice.took(took, tasks, epoch.counts.width, number, names):
                self._table.generation += 1

    def _names(self, epoch: Epoch) -> Counter[str]:
        """Of the kernels in it, with how many launches of each there are."""
        found = Counter(self._table.names(epoch.number))
        return found + epoch.names if epoch.names else found

    def time_tasks(self, on: bool) -> None:
        """Use timed schedulers from now on, or the usual ones."""
        self._schedulers.time(on)
        if on:
            self._book.begin(one.notes for one in self._schedulers.built() if one.notes is not None)

    def noted(self) -> Found | None:
        """What groups of the scheduler ran of launches that have ended."""
        if self._sender.has_sent:
            return None
        return self._book.take()._replace(untimed=self._schedulers.untimed())

    def snapshot(self) -> Snapshot | None:
        """What the oldest epoch on the device does, read by a queue that is not busy with it."""
        from .snapshot import snapshot

        epoch = next((one for one in self._sender.sent if one.event is not None), None)
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
        """What ended a launch, where the driver's status does not tell."""
        return self._errors.pop(number, None) or self.lanes.error(number, status)

    # ---- the rest ------------------------------------------------------------------------------

    def cutter(self) -> Cutter:
        """What cuts recorded launches into segments for this backend. Graphs arrange them."""
        from .cutting import Cutter

        settings, choice = self.settings, self._choice
        how = SegmentSettings(
            settings.window, settings.stale,
            settings.gang and self._sender.polls > 0, 1 if choice is None else FEW,
        )  # fmt: skip

        def refusal(command: Command, task: Task, groups: int) -> str | None:
            if choice is None:
                return None
            if task.cuts.bands and choice.on_cpu:
                return None  # on a CPU they gain more than lanes
            return choice.refusal(self._table.number, _key(command), task.tiles, groups)

        return Cutter(self.queues[0].context, self._schedulers, self._store, how, refusal)

    def prepare(self, kernels: list[tuple[Origin, int]]) -> None:
        """Have kernels built into schedulers, and wait for it."""
        for origin, group in kernels:
            self._schedulers.ask(origin, group)
        self._schedulers.wait()

    def requeue(
        self, lanes: Backend, queues: list[cl.CommandQueue] | None = None
    ) -> tuple[Backend, list[cl.CommandQueue]]:
        """Other lanes, and queues that go with them; gives those before. Nothing is in flight."""
        before = self.lanes, self.queues
        if queues is None:
            old = self.queues[0]
            timed = cl.command_queue_properties.PROFILING_ENABLE
            queues = [CommandQueue(old.context, old.device, properties=timed)]
        self.lanes, self.queues, self.profiling = lanes, queues, lanes.profiling
        self._sender.requeue(queues[0], lanes)
        return before

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
        self._sender.shut()
        self.lanes.close()
        self._sender.let_go_of_all()


def forget_oldest(where: dict[int, str]) -> None:
    """Half of what is remembered, when that is twice as much as it has to be: the first key of a
    dictionary is found behind all that were taken out before."""
    if len(where) >= 2 * REMEMBERED:
        for number in list(islice(where, len(where) - REMEMBERED)):
            del where[number]


def _at_once(choice: Choice, number: int, command: Command) -> str | None:
    """Why a launch takes a lane without further thought, if it does."""
    until, why = choice.left_alone(number, command.name)
    if until:
        return why
    if type(command) is KernelCommand and command.kernel.launched < HOT and _offer(command) is None:
        command.kernel.launched += 1
        reason: str = command.kernel.reason
        return reason
    return None


def _offer(command: Command) -> tuple[Scheduler, Body] | None:
    """The scheduler that the kernel of a launch was in before at these sizes, and its body
    there."""
    command, _ = parts_of(command)
    if type(command) is not KernelCommand:
        return None
    offers: dict[tuple[object, ...], tuple[Scheduler, Body]] = getattr(command.kernel, "offers", {})
    return offers.get(sizes_of(command))


def _look_away(kernel: OwnKernel, reason: str) -> None:
    """What keeps a kernel on lanes now will do so for its next launches, for twice as many each
    time: to ask takes as long as some launches. What changes for all has them asked anew."""
    kernel.launched = HOT - kernel.stays
    kernel.stays = min(2 * kernel.stays, LONGEST_REST)
    kernel.reason = reason


def _has_origin(command: Command) -> bool:
    """Whether a scheduler could have the kernel of a launch."""
    return type(command) is not KernelCommand or command.kernel.origin is not None


def _key(command: Command) -> Key | None:
    """A kernel and its sizes: what launches are alike for. None for other commands."""
    command, _ = parts_of(command)
    if type(command) is KernelCommand:
        return command.name, command.global_size, command.local_size
    return None
