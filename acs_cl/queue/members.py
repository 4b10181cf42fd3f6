"""Members: the queues of a runtime whose commands bypass it together.

Some programs interleave several queues, and each command waits for one on another queue. Some
have a queue without order, and each command waits for the one before. Their commands could not run
at the same time, whichever queues they are on. So a runtime has one bypass for all its queues.

A queue in order that is the only one keeps the driver's own queue. In a *joint* bypass, commands of
all members go to one more queue of the driver, which is in order.

Input: queues as they are made, left and collected. Output: whose commands the bypass takes, the
driver's queue for them, and the queue that the program gave a command to.

Invariant: a member whose next command has to be tracked is not taken. So that command ends the
bypass, and comes behind it.
"""

from __future__ import annotations

import weakref

import pyopencl as cl
from pyopencl import _cl

from .. import core
from ..records import NamedTuple, Protocol
from .commands import TrackedQueue


class Candidate(TrackedQueue, Protocol):
    """An `acs.Queue` whose commands may bypass the runtime."""

    @property
    def owes(self) -> bool:
        """Return whether its next command has to do more than other commands, or to wait."""


class Member(NamedTuple):
    """A queue, as long as it is there."""

    queue: weakref.ref[Candidate]
    pointer: int
    is_in_order: bool


_joint: weakref.WeakValueDictionary[int, Members] = weakref.WeakValueDictionary()
"""{handle of a driver's queue for joint bypasses: the members}."""


class Members(core.native.Bypass):
    """The queues that share a bypass. The core knows those that it takes commands of."""

    def __init__(
        self,
        first: cl.CommandQueue,
        pointer: int,
        keeps_times: bool,
        behind: int,
        most_apart: int,
    ) -> None:
        super().__init__(pointer, behind, most_apart)
        self._all: dict[int, Member] = {}
        """By their numbers in the launch table."""
        self._made_like = first.context, first.device
        self._keeps_times = keeps_times
        self._shared: cl.CommandQueue | None = None
        self.native = _cl.CommandQueue.from_int_ptr(pointer, True)
        """PyOpenCL's object for the driver's queue that the commands go to."""

    def enter(self, queue: Candidate, number: int, pointer: int, is_in_order: bool) -> None:
        """Note a new queue. It is taken when a bypass begins."""
        self._all[number] = Member(weakref.ref(queue), pointer, is_in_order)

    def give_up(self, number: int) -> None:
        """Note that a queue is gone, or that the program is done with it. A finalizer may call
        this anywhere."""
        self._all.pop(number, None)
        self.leave(number)

    def has_all(self, numbers: set[int]) -> bool:
        """Tell whether all of these queues, by their numbers, are members."""
        return numbers <= self._all.keys()

    def taken(self) -> list[Candidate]:
        """Return the queues whose commands the bypass takes."""
        return [queue for _, queue, _ in self._living() if self.takes(queue)]

    def _living(self) -> list[tuple[int, Candidate, Member]]:
        found = [(number, one.queue(), one) for number, one in list(self._all.items())]
        return [(number, queue, one) for number, queue, one in found if queue is not None]

    def gather(self, first: Candidate) -> bool:
        """Take the commands of all members that can be taken, and choose the driver's queue. False:
        those of `first` cannot be taken, or the driver makes no more queues. Nothing has changed
        then."""
        living = self._living()
        taken = [
            (queue, number, one.is_in_order)
            for number, queue, one in living
            if not (queue.owes or queue.unmaps)
        ]
        if all(queue is not first for queue, _, _ in taken):
            return False
        if len(living) == 1 and living[0][2].is_in_order:
            pointer = living[0][2].pointer
            self.native = _cl.CommandQueue.from_int_ptr(pointer, True)
            self.go_to(pointer, taken)
            return True
        if self._shared is None and not self._make():
            return False
        assert self._shared is not None, "it was made"
        self.native = self._shared
        self.go_to(self._shared.int_ptr, taken)
        self.join_in(self._shared)
        return True

    def _make(self) -> bool:
        """Make the driver's queue for joint bypasses. False: the driver makes none."""
        times = cl.command_queue_properties.PROFILING_ENABLE
        more = (times,) if self._keeps_times else ()
        try:
            self._shared = _cl.CommandQueue(*self._made_like, *more)
        except cl.Error:
            return False
        _joint[self._shared.int_ptr] = self
        return True

    def command_queue_of(self, event: cl.Event) -> object:
        """Return the queue that the program gave the command of an event to. None: it is gone."""
        member = self._all.get(self.maker(event.int_ptr))
        return member.queue() if member is not None else None


def command_queue_of(event: cl.Event, found: object) -> object:
    """Return the program's queue of a command. `found`: the driver's."""
    members = _joint.get(found.int_ptr) if isinstance(found, cl.CommandQueue) else None
    return (members.command_queue_of(event) if members is not None else None) or found
