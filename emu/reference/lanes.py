"""Model which lane the core's `Queues` picks for a launch, and how many events it waits for.

Input: launches by their numbers, with their upstream, and which of them were reported to have
ended. Output: a lane and a count of waits. The driver's side are two questions: has this launch
ended, and what time is it?
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from math import inf
from time import perf_counter
from typing import NamedTuple

from acs_cl.records import Placing

Launched = tuple[Hashable, ...]
"""Launches in their order: of each, what tells it from others."""

VOTES, MOST_VOTES = 4, 1024
"""Looks that find the device waiting until one lane is enough, twice as many after each time that
it was not, and at most."""

STEADY = 256
"""Launches on one lane after which that was right."""

TRIES, CLEAR = 4, 1.25
"""How often a stretch is timed on all lanes and on one; half as often if one way takes so many
times as long as the other."""

SHORTEST, LONGEST = 64, 1024
"""For how many stretches the quicker way is kept: at first, and at most."""

KNOWN = 8
"""How many stretches are known at one time."""


class Placed(NamedTuple):
    """Where a launch goes, and for how many events it waits."""

    lane: int
    waits: int


class Looks:
    """Decide whether launches are spread over lanes, from looks at whether a launch some launches
    ago has ended."""

    def __init__(self) -> None:
        self.wide = True
        self._votes = 0
        self._needed = VOTES
        self._narrow = 0
        self._launches = 0

    @property
    def back(self) -> int:
        """Which launch in flight is looked at: the newest is 1."""
        return 2 if self.wide else 4

    def is_due(self) -> bool:
        """Say whether a launch that comes should look."""
        self._launches += 1
        return self._launches % (8 if self.wide else 4) == 0

    def note(self, ended: bool) -> None:
        """Take what a look has found."""
        if not self.wide:
            self._narrow += 4
            if ended and self._narrow >= STEADY:
                self._needed = VOTES
            if not ended:
                self.wide = True
                self._needed = min(2 * self._needed, MOST_VOTES)
                self._votes = 0
            return
        self._votes = self._votes + 1 if ended else 0
        if self._votes >= self._needed:
            self.wide = False
            self._narrow = 0


class Stretch:
    """What is launched between two waits that leave nothing in flight, and how long that takes on
    all lanes and on one. It is expected behind the stretch `behind`."""

    def __init__(self, behind: Launched, launches: Launched) -> None:
        self.behind, self.launches = behind, launches
        self._chosen = True
        self._least_s = {True: inf, False: inf}
        self._tries = self._left = self.misses = 0
        self._keep = SHORTEST

    @property
    def wide(self) -> bool:
        """Say whether it goes to all lanes the next time: yes, no, no, yes, and so on."""
        return self._chosen if self._left else self._tries % 4 in (0, 3)

    def note(self, took_s: float) -> None:
        """Note how long it took this time."""
        self.misses = 0
        if self._left:
            self._left -= 1
            if not self._left:
                self._tries, self._least_s = 0, {True: inf, False: inf}
            return
        least = self._least_s
        least[self.wide] = min(least[self.wide], took_s)
        self._tries += 1
        is_clear = self._tries == 4 and max(least.values()) > CLEAR * min(least.values())
        if self._tries < 2 * TRIES and not is_clear:
            return
        wide = least[True] < least[False]
        self._keep = min(2 * self._keep, LONGEST) if wide == self._chosen else SHORTEST
        self._chosen, self._left = wide, self._keep


class Spread:
    """Decide whether launches are spread over lanes: by times where stretches repeat, else by
    looks."""

    def __init__(self) -> None:
        self._looks = Looks()
        self._timed: list[Stretch] = []
        """The one that was used last comes last."""
        self._expected: Stretch | None = None
        self._last: Launched = ()
        self._launches: list[Hashable] = []
        self._began_s: float | None = None

    @property
    def wide(self) -> bool:
        """Say whether a launch may go to any lane."""
        return (self._expected or self._looks).wide

    @property
    def looks(self) -> Looks | None:
        """Return what looks at launches. None: this stretch is timed."""
        return None if self._expected else self._looks

    @property
    def is_open(self) -> bool:
        """Say whether a stretch has begun."""
        return self._began_s is not None

    def begin(self, now_s: float) -> None:
        """A launch comes, the first one of a stretch."""
        self._began_s, self._launches = now_s, []
        self._expected = self._behind_last()

    def add(self, what: Hashable) -> None:
        """Take a launch of the stretch."""
        self._launches.append(what)
        if self._expected and len(self._launches) > len(self._expected.launches):
            self._miss()

    def end(self, now_s: float) -> None:
        """The host has waited, and nothing is in flight any more."""
        assert self._began_s is not None
        launches = tuple(self._launches)
        if self._expected and self._expected.launches != launches:
            self._miss()
        if self._expected:
            self._expected.note(now_s - self._began_s)
            self._timed.remove(self._expected)
            self._timed.append(self._expected)
        elif not self._behind_last():
            self._timed = [*self._timed, Stretch(self._last, launches)][-KNOWN:]
        self._last, self._expected, self._began_s = launches, None, None

    def _miss(self) -> None:
        assert self._expected is not None
        self._expected.misses += 1
        if self._expected.misses > 1:
            self._timed.remove(self._expected)
        self._expected = None

    def _behind_last(self) -> Stretch | None:
        return next((one for one in self._timed if one.behind == self._last), None)


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
        clock: Callable[[], float] = perf_counter,
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
