"""Ends: what the scheduler and the lanes beside it report, and what is learnt of it.

Input: launches that ended on lanes, and epochs that ended. Output: ends in the order of launches,
their errors, and times for the choice between scheduler and lanes.

Invariant: a launch is reported behind all that it followed. So lanes are polled before epochs and
after them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from time import perf_counter

import pyopencl as cl

from .. import core
from ..host.threads import need_stack
from ..launch.backend import DECIDED, End, Ended
from ..records import Key
from .notes import NOTED, NOTES, Book, Noted
from .policy import AS_RULED, Choice
from .sender import Epoch, Sender

REMEMBERED = 8192
"""How many launches have kept for `explain` what became of the items that they spawned."""


class Ends:
    """Takes what ended on one device. `choice`: the rule that learns from it, if there is one."""

    def __init__(self, sender: Sender, table: core.native.Table, choice: Choice | None) -> None:
        self._sender, self._table, self._choice = sender, table, choice
        self.book = Book()
        """What groups of the scheduler ran."""
        self.timed: dict[int, Key] = {}
        """Launches on lanes whose times the choice wants."""
        self.errors: dict[int, BaseException] = {}
        """Of launches whose error the driver's status does not tell."""
        self.lost: list[tuple[int, BaseException]] = []
        """Launches that never reached a lane, and why."""
        self.children: dict[int, str] = {}
        """What happened to spawned items, by the launch whose epoch spawned them."""
        self._ended: Ended = []
        """What the caller has not taken yet."""

    def collect(self, poll: Callable[[], Ended]) -> Ended:
        """Poll lanes, then epochs, then lanes again. The second poll of the lanes finds every
        launch that an ended epoch followed. Epochs with launches of the core's own are reported
        behind all others. The list is always the same one, and the caller empties it."""
        ended, sender = self._ended, self._sender
        self._from_lanes(poll())
        if not sender.has_sent:
            return ended
        need_stack()
        epoch = sender.take_ended()
        if epoch is None:
            return ended
        while epoch is not None:
            one_by_one = self._end(epoch)
            ended += one_by_one
            if len(one_by_one) < epoch.recorder.tasks + epoch.foreseen + epoch.is_replay:
                ended.append(End(0, 0, epoch, -1, epoch.number))
            epoch = sender.take_ended()
        self._from_lanes(poll())
        ended.sort(key=lambda one: (one.epoch, one.number))
        return ended

    def _from_lanes(self, ended: Ended) -> None:
        """Take launches that ended on lanes, and note their times. Add launches that never reached
        a lane."""
        timed = self.timed
        if timed and self._choice is not None:
            for end in ended:
                key = timed.pop(end.number, None)
                if key is None or end.status < 0:
                    continue
                with suppress(cl.Error):  # some drivers have no times of a command
                    times = end.event.profile
                    self._choice.timed_on_lane(key, (times.end - times.start) / 1e3)
                    self._table.generation += 1
        if self.lost:
            for number, error in self.lost:
                self.errors[number] = error
                self._ended.append(End(number, DECIDED, None, -1))
            self.lost.clear()
        self._ended += ended
        ended.clear()

    def _end(self, epoch: Epoch) -> Ended:
        """Return the ends of an epoch's launches. If it failed, each launch has its error."""
        which, table = epoch.number, self._table
        if epoch.scheduler.notes is not None:
            self._note(epoch)
        status, broken, failures = self._sender.outcome(epoch, partial(table.of_epoch, which))
        is_bad = broken is not None or bool(failures)
        choice = self._choice
        if not is_bad and choice is not None and choice.way == AS_RULED and epoch.is_judged:
            self._judge(epoch, choice)
        if broken is not None and epoch.resident is not None:
            table.drop(epoch.resident)
        if any(epoch.children):
            self.children.update(dict.fromkeys(table.of_epoch(which), str(epoch.children)))
            forget_oldest(self.children)
        ended: Ended = []
        for number in table.leave(which, is_bad):
            error = broken if broken is not None else failures.get(number)
            if error is not None:
                self.errors[number] = error
            ended.append(End(number, status if error is None else min(status, DECIDED), epoch, -1))
        return ended

    def _note(self, epoch: Epoch) -> None:
        """Keep the notes of an epoch that has ended."""
        times, segment = epoch.profile, epoch.segment
        if epoch.event is None or times is None:
            return
        upto, numbers = int(epoch.status[NOTED]), self._table.of_epoch(epoch.number)
        parts = None if segment is None else segment.parts
        noted = Noted(epoch.scheduler.notes, upto - epoch.launches, upto, *times, numbers, parts)
        self.book.ended(noted, int(epoch.status[NOTES]))
        if self.book.is_large and not self._sender.has_sent:
            self.book.keep()

    def _judge(self, epoch: Epoch, choice: Choice) -> None:
        """Give the rule the time of an epoch. It may then send these kernels to lanes."""
        tasks = epoch.recorder.tasks + epoch.foreseen
        if not epoch.is_clocked:
            choice.seen_by_program((perf_counter() - epoch.sent) * 1e6, tasks)
            return
        took = epoch.device_us(choice.on_cpu)
        if took is not None:
            names, number = partial(self._names, epoch), self._table.number
            if choice.timed_by_device(took, tasks, epoch.counts.width, number, names):
                self._table.generation += 1

    def _names(self, epoch: Epoch) -> Counter[str]:
        """Count the launches of each kernel in an epoch."""
        found = Counter(self._table.names(epoch.number))
        return found + epoch.names if epoch.names else found


def forget_oldest(where: dict[int, str]) -> None:
    """Drop half of the entries when there are twice as many as needed. To drop one at a time would
    be slow: Python finds the first key of a dictionary only behind all that were deleted before
    it."""
    if len(where) >= 2 * REMEMBERED:
        for number in list(islice(where, len(where) - REMEMBERED)):
            del where[number]
