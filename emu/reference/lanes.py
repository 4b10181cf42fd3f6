"""Model which lane the core's `Lanes` picks for a launch, and how many events it waits for.

Input: launches by their numbers, with their upstream, and which of them were reported to have
ended. Output: a lane and a count of waits. The driver's side are two questions: has this launch
ended, and what time is it?
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from typing import NamedTuple

from acs_cl.emu.reference.spread import Spread
from acs_cl.records import Placing


class Placed(NamedTuple):
    """Where a launch goes, and for how many events it waits."""

    lane: int
    waits: int


class Queue:
    """Model one queue: without order, a launch waits for all its upstream in flight."""

    def __init__(self, in_order: bool) -> None:
        self._in_order = in_order
        self.in_flight: dict[int, int] = {}
        """The lane of each launch that nobody has reported yet."""

    def submit(self, number: int, upstream: Sequence[int]) -> Placed:
        """Place a launch."""
        waits = 0 if self._in_order else sum(one in self.in_flight for one in upstream)
        self.in_flight[number] = 0
        return Placed(0, waits)

    def retire(self, number: int) -> None:
        """Take note that a launch was reported."""
        del self.in_flight[number]


DEFAULT = Placing()


class Lanes:
    """Model `lanes` queues in order.

    A launch goes behind an upstream that is the last on its lane, else to the lane with the least
    in flight. Of each other lane it waits for the last upstream there, unless its own lane follows
    that already. `placing` names other policies:
    Opara's is ('disjoint', 'always') with enough lanes, GrCUDA's are those without 'tail' and
    'least'."""

    def __init__(
        self,
        lanes: int,
        has_ended: Callable[[int], bool],
        placing: Placing = DEFAULT,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._placing = placing
        self._clock = clock
        self._continued: set[int] = set()
        self._has_ended = has_ended
        self._queued: list[deque[int]] = [deque() for _ in range(lanes)]
        self._latest = 0
        self._spread = Spread()
        self._places = [0] * lanes
        """Launches that each lane ever had."""
        self._place: dict[int, int] = {}
        self._follows = [[0] * lanes for _ in range(lanes)]
        """Of each lane, the last place on each other one that it follows."""
        self.in_flight: dict[int, int] = {}
        """The lane of each launch that nobody has reported yet."""

    def submit(self, number: int, upstream: Sequence[int], what: Hashable = None) -> Placed:
        """Place a launch. `what` tells it from others, if stretches are to be known again."""
        above = [one for one in upstream if one in self.in_flight]
        lane = self._choose(above)
        last: dict[int, int] = {}
        for one in above:
            if (other := self.in_flight[one]) != lane:
                last[other] = max(last.get(other, 0), self._place[one])
        follows, waits = self._follows[lane], 0
        for other, place in last.items():
            waits += place > follows[other]
            follows[other] = max(follows[other], place)
        self._spread.add(what)
        self.in_flight[number] = lane
        self._places[lane] += 1
        self._place[number] = self._places[lane]
        self._queued[lane].append(number)
        return Placed(lane, waits)

    def retire(self, number: int) -> None:
        """Take note that a launch was reported."""
        self._queued[self.in_flight.pop(number)].remove(number)
        del self._place[number]

    def waited(self) -> None:
        """The host has waited for a launch, and took what was reported."""
        if not self.in_flight and self._spread.is_open:
            self._spread.end(self._clock())

    @property
    def _is_timed(self) -> bool:
        return self._placing == DEFAULT and len(self._queued) > 1

    def _choose(self, upstream: list[int]) -> int:
        if self._placing != DEFAULT:
            return self._by_policy(upstream)
        if self._is_timed and not self._spread.is_open:
            self._spread.begin(self._clock())
        looks = self._spread.looks
        if self._is_timed and looks and looks.is_due():
            looked_at = next(islice(reversed(self.in_flight), looks.back - 1, None), None)
            looks.note(looked_at is None or self._has_ended(looked_at))
        if not self._spread.wide:
            return self._latest
        lane = self._behind_tail(upstream)
        return self._least_used() if lane is None else lane

    def _by_policy(self, upstream: list[int]) -> int:
        after, new, _ = self._placing
        if after == "same" and upstream:
            return self.in_flight[upstream[0]]
        if after == "tail" and (lane := self._behind_tail(upstream)) is not None:
            return lane
        for number in upstream if after == "disjoint" else ():
            if number not in self._continued:
                self._continued.add(number)
                return self.in_flight[number]
        if new == "least":
            return self._least_used()
        idle = [lane for lane, launches in enumerate(self._queued) if not launches]
        if new == "reuse" and idle:
            self._latest = idle[0]
        else:
            self._latest = (self._latest + 1) % len(self._queued)
        return self._latest

    def _behind_tail(self, upstream: list[int]) -> int | None:
        for number in reversed(upstream):
            lane = self.in_flight[number]
            if self._queued[lane][-1] == number:
                return lane
        return None

    def _least_used(self) -> int:
        queued = self._queued
        lanes = [(self._latest + step) % len(queued) for step in range(len(queued))]
        self._latest = min(lanes, key=lambda lane: len(queued[lane]))
        return self._latest
