"""Model how the core's `Spread` decides whether launches go to all lanes or to one.

Input: launches, looks at whether one has ended, waits, and the time. Output: whether the next
launch may go to any lane.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import inf

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

SHORTEST, LONGEST = 32, 1024
"""For how many stretches the quicker way is kept: at first, and at most. Then one goes the other
way. If that is not clearly slower, both are timed again."""

KNOWN = 8
"""How many stretches are known at one time."""


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
        self.misses = 0
        """How often in a row another stretch came."""
        self._quicker = True
        self._state = "timed"
        self._tries = self._left = 0
        self._keep = SHORTEST // 2
        self._least_s = {True: inf, False: inf}

    @property
    def wide(self) -> bool:
        """Say whether it goes to all lanes the next time. While both ways are timed: yes, no, no,
        yes, and so on."""
        if self._state == "timed":
            return self._tries % 4 in (0, 3)
        return self._quicker is (self._state == "kept")

    def note(self, took_s: float) -> None:
        """Note how long it took this time."""
        self.misses = 0
        least, wide = self._least_s, self.wide
        least[wide] = min(least[wide], took_s)
        if self._state == "timed":
            self._decide()
        elif self._state == "kept":
            self._left -= 1
            if not self._left:
                self._state = "asked"
        elif least[wide] > CLEAR * least[self._quicker]:
            self._go_on()
        else:
            self._state, self._tries, self._least_s = "timed", 0, {True: inf, False: inf}

    def _decide(self) -> None:
        least = self._least_s
        self._tries += 1
        is_clear = self._tries == 4 and max(least.values()) > CLEAR * min(least.values())
        if self._tries < 2 * TRIES and not is_clear:
            return
        wide = least[True] < least[False]
        if wide is not self._quicker:
            self._quicker, self._keep = wide, SHORTEST // 2
        self._go_on()

    def _go_on(self) -> None:
        """Keep the quicker way."""
        self._keep = min(2 * self._keep, LONGEST)
        self._state, self._left, self._least_s = "kept", self._keep, {True: inf, False: inf}


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
