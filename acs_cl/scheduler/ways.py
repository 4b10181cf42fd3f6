"""Ways: which of a few ways to do the same work is the quickest, found by doing it in each of them.

Input: how long each piece of work took, in the way that it was told to take. Output: the way of the
next piece, and at the end the quickest one. The module is pure: numbers in, a number out.

Way 0 is the usual one. Another has to be clearly quicker to take its place. Ways take turns, some
pieces each, since a machine may be slower at one time than at another. Pieces are compared only
with pieces of their own kind, as a program may do different things in turn. Where they seem to be
of one kind, a turn has to hold the same of each. So a mean counts, without the longest times.
"""

from __future__ import annotations

from math import ceil

from ..records import NamedTuple

GAIN = 0.97
"""What another way has to take of the usual one's time."""

HOPELESS, SURE = 1.25, 3
"""A way that takes so many times as long as the usual one has no further turn, once so many pieces
say that."""


FAR, IN_A_ROW = 2.0, 4
"""So many pieces in a row that each take so many times as long are enough, even untimed ones."""


class Turns(NamedTuple):
    """How ways take turns."""

    rounds: int
    """Turns of each way."""
    pieces: int = 1
    """Pieces of a turn that are timed, at least."""
    us: float = 0.0
    """Time of a turn at least."""
    settles: int = 0
    """Pieces at the begin of a turn that are not timed: what is kept for a way is made anew."""
    learns: int = 0
    """More of them at the begin of its first turn."""
    least: int = 1
    """Pieces of a kind in both ways, from which on they are compared."""
    share: float = 0.75
    """Which share of the times counts, the shortest ones: other programs only add to times. Half of
    them, if all pieces are surely alike."""


class Ways:
    """Holds the times of `many` ways, and chooses one."""

    def __init__(self, many: int, turns: Turns) -> None:
        self._turns = turns
        self.way = 0
        """The way of the next piece."""
        self.is_over = many < 2
        self._left = dict.fromkeys(range(many), turns.rounds)
        """Turns that each way has left. One without hope is not in it."""
        self._took: list[dict[int, list[float]]] = [{} for _ in range(many)]
        """Of each way: {kind of piece: times by its size}."""
        self._sizes: dict[int, float] = {}
        """{kind: size of all its pieces}."""
        self._begin_turn()

    def _begin_turn(self) -> None:
        turns = self._turns
        is_first = self._left[self.way] == turns.rounds
        self._unsettled = turns.settles + (turns.learns if is_first else 0)
        self._pieces, self._us, self._far = 0, 0.0, 0

    def took(self, us: float, size: float = 1.0, kind: int = 0) -> None:
        """Take the time of the last piece of work, which was done in the present way."""
        if self.is_over:
            return
        if self.way and self._is_far(us / size, kind):
            self.give_up()
            return
        if self._unsettled:
            self._unsettled -= 1
            return
        self._took[self.way].setdefault(kind, []).append(us / size)
        self._sizes[kind] = self._sizes.get(kind, 0.0) + size
        self._pieces, self._us = self._pieces + 1, self._us + us
        if self._pieces >= self._turns.pieces and self._us >= self._turns.us:
            self._left[self.way] -= 1
            ratio = self.ratio(self.way, SURE) if self.way else None
            if ratio is not None and ratio > HOPELESS:
                self.give_up()
            else:
                self._go_on()

    def _is_far(self, took: float, kind: int) -> bool:
        """Tell whether pieces take so much longer than the usual way that no more are needed."""
        firsts = self._took[0].get(kind)
        if firsts:
            self._far = self._far + 1 if took > FAR * self._typical(firsts) else 0
        return self._far >= IN_A_ROW

    def _typical(self, times: list[float]) -> float:
        """Return the mean of the shortest times."""
        shortest = sorted(times)[: ceil(len(times) * self._turns.share)]
        return sum(shortest) / len(shortest)

    def give_up(self) -> None:
        """Leave the present way for good, such as one that cannot be tried."""
        if self.way:
            del self._left[self.way]
            self._go_on()

    def ratio(self, way: int, least: int = 0) -> float | None:
        """Return the time of a way divided by that of the usual one. None: too little is known.
        `least`: pieces of a kind, if it takes more of them."""
        least = max(least, self._turns.least)
        own = usual = 0.0
        for kind, times in self._took[way].items():
            firsts = self._took[0].get(kind, [])
            if min(len(times), len(firsts)) >= least:
                own += self._sizes[kind] * self._typical(times)
                usual += self._sizes[kind] * self._typical(firsts)
        return own / usual if usual else None

    def _go_on(self) -> None:
        """Give the next way its turn. If all have had theirs, choose."""
        most = max(self._left.values())
        if not most or len(self._left) == 1:
            ratios = {way: self.ratio(way) for way in self._left if way}
            quick = {way: ratio for way, ratio in ratios.items() if ratio and ratio < GAIN}
            self.way, self.is_over = min(quick, key=lambda way: quick[way], default=0), True
            return
        self.way = next(way for way, left in self._left.items() if left == most)
        self._begin_turn()
