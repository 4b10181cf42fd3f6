"""A pool of in-order queues with events across them, for drivers that overlap only between queues.

A launch goes behind an upstream that is the last on its lane, where the queue's own order is its
wait: most edges of a chain need no event. Else it takes the lane with the least in flight, the
latest one if that is idle, since drivers are quickest where they were last. It waits for upstream
on other lanes by event; such a lane is flushed first, since a driver may not start on a queue that
was never flushed while another queue waits for it for ever.

Where kernels have ended before the next but one is launched, lanes overlap nothing, and an event
across them costs some drivers as much as a launch: then all go to one lane (`Spread`).
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Any

from ..driver import STATUS
from ..records import Launch
from .base import Backend, Ended

VOTES, MOST_VOTES = 4, 1024
"""Looks that find the device waiting until one lane is enough, twice as many after each time that
it was not, and at most."""

STEADY = 256
"""Launches on one lane after which that was right."""


class Spread:
    """Whether launches are spread over lanes, from looks at whether a launch some launches ago has
    ended."""

    def __init__(self) -> None:
        self.wide = True
        self._votes = 0
        self._needed = VOTES
        self._stretch = 0
        self._launches = 0

    @property
    def back(self) -> int:
        """Which launch in flight is looked at: the newest is 1."""
        return 2 if self.wide else 4

    def is_due(self) -> bool:
        """Whether a launch that comes should look."""
        self._launches += 1
        return self._launches % (8 if self.wide else 4) == 0

    def note(self, ended: bool) -> None:
        """What a look has found."""
        if not self.wide:
            self._stretch += 4
            if ended and self._stretch >= STEADY:
                self._needed = VOTES
            if not ended:
                self.wide = True
                self._needed = min(2 * self._needed, MOST_VOTES)
                self._votes = 0
            return
        self._votes = self._votes + 1 if ended else 0
        if self._votes >= self._needed:
            self.wide = False
            self._stretch = 0


class Lanes(Backend):
    """`lanes` in-order queues."""

    name = "lanes"

    def __init__(self, context: Any, device: Any, lanes: int, profiling: bool) -> None:
        super().__init__(context, device, lanes, profiling)
        self._lane: dict[int, int] = {}
        self._queued: list[deque[int]] = [deque() for _ in range(lanes)]
        self._unflushed = [False] * lanes
        self._latest = 0
        self._spread = Spread()

    def submit(self, launch: Launch, behind: list[Any] | None = None) -> None:
        """On a parent's lane where it is the last one there, else where least is in flight."""
        lanes = self._lane
        upstream = [number for number in launch.upstream if number in lanes]
        chosen = self._choose(upstream)
        wait_for = behind
        if upstream:
            events = self._events
            wait_for = list(behind) if behind else []
            for number in upstream:
                lane = lanes[number]
                if lane != chosen:
                    wait_for.append(events[number])
                    if self._unflushed[lane]:
                        self.queues[lane].flush()
                        self._unflushed[lane] = False
            self.waits += len(wait_for)
        self._events[launch.number] = launch.command.enqueue(self.queues[chosen], wait_for)
        lanes[launch.number] = chosen
        self._queued[chosen].append(launch.number)
        self._unflushed[chosen] = True
        self.used[chosen] += 1

    def _choose(self, upstream: list[int]) -> int:
        queued = self._queued
        if len(queued) > 1 and self._spread.is_due():
            self._spread.note(self._has_ended(self._spread.back))
        if not self._spread.wide:
            return self._latest
        for number in reversed(upstream):
            lane = self._lane[number]
            if queued[lane][-1] == number:
                return lane
        start = self._latest
        best, least = start, len(queued[start])
        if least:
            for step in range(1, len(queued)):
                lane = (start + step) % len(queued)
                if len(queued[lane]) < least:
                    best, least = lane, len(queued[lane])
                    if not least:
                        break
        self._latest = best
        return best

    def _has_ended(self, back: int) -> bool:
        """Whether the launch that is so many ago, of those in flight, has."""
        event = next(islice(reversed(self._events.values()), back - 1, None), None)
        return event is None or event.get_info(STATUS) <= 0

    def poll(self, most: int = 64) -> Ended:
        """Ended launches in program order, all that there are.

        A look that finds nothing more has seen all that is upstream of what the looks before it
        found, so that no launch is reported before its upstream.
        """
        ended: Ended = []
        while self._collect(ended):
            pass
        ended.sort(key=lambda one: one[0])
        return ended

    def poll_up_to(self, number: int) -> Ended:
        """The heads of the lanes tell; a lane behind its head is not looked at."""
        return self.poll()

    def _collect(self, ended: Ended) -> bool:
        """Take what has ended off the heads of the lanes; whether there was any."""
        events = self._events
        before = len(ended)
        for lane, queued in enumerate(self._queued):
            while queued:
                number = queued[0]
                state = events[number].get_info(STATUS)
                if state > 0:
                    break
                queued.popleft()
                ended.append((number, state, events.pop(number), lane))
                del self._lane[number]
        return len(ended) > before

    def flush(self) -> None:
        """Flush the lanes that have something new."""
        for lane, unflushed in enumerate(self._unflushed):
            if unflushed:
                self.queues[lane].flush()
                self._unflushed[lane] = False
