"""Model the prediction of epochs: which epochs are remembered, followed, foreseen and sent.

Input: launches of one program in order, and events between them. Output: epochs as they are sent,
and whether each came as foreseen. A launch is a pair: the constant part (kernel, sizes, arrays) and
its numbers, which may differ. The core's code is `acs_cl/_core/epoch/forecast.hpp`;
docs/design/prediction.md gives the purpose.

Invariant: the launches of all epochs, one after another, are the launches of the program, each once
and with its own numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

LEAST, OFTEN, MOST_LOST, MOST_GAINED, MOST_EPOCHS, REST = 8, 3, 4, 4, 32, 256
"""Least tasks of a remembered epoch; times it must come to be kept; lost epochs until it is
forgotten; most gained epochs that count; most remembered epochs; and epochs collected without
prediction after one that lost much."""


class Launch(NamedTuple):
    """One launch of a program."""

    kind: Hashable
    numbers: tuple[float, ...] = ()


class Sent(NamedTuple):
    """An epoch that was sent."""

    launches: tuple[Launch, ...]
    foreseen: bool
    patched: int
    """Launches whose numbers were written before it."""


class Known:
    """A remembered epoch, with its latest numbers."""

    def __init__(self, launches: Sequence[Launch]) -> None:
        self.launches = list(launches)
        self.came = 1
        self.gained = 0
        self.is_kept = False
        self.changed: set[int] = set()
        self.next: Known | None = None

    def __len__(self) -> int:
        return len(self.launches)

    def take(self, at: int, launch: Launch) -> None:
        """Take the numbers of a launch that equals task `at`."""
        if self.launches[at].numbers != launch.numbers:
            self.launches[at] = launch
            if self.is_kept:
                self.changed.add(at)

    def begins_like(self, launches: Sequence[Launch]) -> bool:
        """Tell whether it begins with equal launches."""
        return len(self) >= len(launches) and all(
            mine.kind == other.kind for mine, other in zip(self.launches, launches, strict=False)
        )


class Forecast:
    """Takes launches, returns epochs."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.given_up = 0
        self._remembered: list[Known] = []
        self._tasks: list[Launch] = []
        self._known: Known | None = None
        self._last: Known | None = None
        self._matched = 0
        self._counts = False
        self._is_complete = False
        self._costly: dict[Hashable, list[int]] = {}
        """{first launch of epochs that lost much: epochs left without prediction, and how many next
        time}."""
        self._rests = False

    def launch(self, launch: Launch) -> None:
        """Take a launch that the core makes."""
        if self._is_complete:
            self.send()
        if not self._tasks and not self._counts:
            self._open(launch)
        if self._known is not None:
            self._compare(launch)
        if not self._counts:
            self._tasks.append(launch)

    def foreign(self, launch: Launch) -> None:
        """Take a launch that is not made by the core."""
        self.settle()
        self._tasks.append(launch)
        self._known = self._last = None

    def settle(self) -> None:
        """Record counted launches, or send them as foreseen, when the lock is taken."""
        known = self._known
        if not self._counts or known is None:
            return
        begun = known.launches[: self._matched]
        kept = (one for one in self._remembered if one.is_kept and one.begins_like(begun))
        whole = [one for one in (known, *kept) if len(one) == self._matched]
        if whole:
            self._hand_over(known, whole[0])
            self._known, self._is_complete = whole[0], True
            return
        self._give_up(known)

    def _give_up(self, known: Known) -> None:
        self._counts = False
        self._tasks = known.launches[: self._matched]
        self.given_up += self._matched
        known.gained -= self._matched
        if known.gained > -MOST_LOST * len(known):
            return
        self._remembered.remove(known)
        first = known.launches[:1]
        if not any(one.is_kept and one.begins_like(first) for one in self._remembered):
            rests = self._costly.setdefault(first[0].kind, [0, REST])
            rests[:] = rests[1], 2 * rests[1]

    def _hand_over(self, known: Known, other: Known) -> None:
        """Go on with another epoch, which takes over the numbers of counted launches."""
        for at in range(self._matched):
            other.take(at, known.launches[at])

    def send(self, by_core: bool = True) -> None:
        """Send the open epoch: it is complete, or awaited. `by_core`: the core made all its
        launches."""
        known = self._known
        if self._counts and known is not None and self._matched == len(known):
            self.sent.append(Sent(tuple(known.launches), True, len(known.changed)))
            known.changed.clear()
            known.gained = min(known.gained + len(known), MOST_GAINED * len(known))
            self._follow_up(known)
        else:
            self.settle()
            if not self._tasks:
                return
            self.sent.append(Sent(tuple(self._tasks), False, 0))
            if by_core and len(self._tasks) >= LEAST and not self._rests:
                self._follow_up(self._remember())
            else:
                self._last = None
        self._tasks, self._known, self._matched = [], None, 0
        self._counts = self._is_complete = self._rests = False

    def _open(self, launch: Launch) -> None:
        """Predict the next epoch: the last one's successor, or the newest with this beginning."""
        self._matched = 0
        rests = self._costly.get(launch.kind)
        self._rests = rests is not None and rests[0] > 0
        if rests is not None and self._rests:
            rests[0] -= 1
            return
        following = self._last.next if self._last is not None else None
        fits = [one for one in self._remembered if one.begins_like([launch])]
        if following in fits:
            self._known = following
        else:
            self._known = next(iter(fits), None)
        self._counts = self._known is not None and self._known.is_kept

    def _compare(self, launch: Launch) -> None:
        known = self._known
        assert known is not None
        if self._matched == len(known) or known.launches[self._matched].kind != launch.kind:
            other = self._another(known, launch)
            if self._counts and not (other is not None and other.is_kept):
                self._give_up(known)
            if other is not None and self._counts:
                self._hand_over(known, other)
            self._known = known = other
        if known is None:
            return
        if self._counts:
            known.take(self._matched, launch)
        self._matched += 1

    def _another(self, known: Known, launch: Launch) -> Known | None:
        """Return an epoch that equals `known` up to here, and goes on with this launch."""
        begun = [*known.launches[: self._matched], launch]
        found = [one for one in self._remembered if one is not known and one.begins_like(begun)]
        kept = [one for one in found if one.is_kept]
        return next(iter(kept if self._counts and kept else found), None)

    def _remember(self) -> Known:
        """Remember an epoch that was collected."""
        for known in self._remembered:
            if len(known) == len(self._tasks) and known.begins_like(self._tasks):
                known.came += 1
                if not known.is_kept:
                    for at, launch in enumerate(self._tasks):
                        known.take(at, launch)
                known.is_kept = known.is_kept or known.came >= OFTEN
                return known
        made = Known(self._tasks)
        self._remembered.insert(0, made)
        del self._remembered[MOST_EPOCHS:]
        return made

    def _follow_up(self, known: Known) -> None:
        if self._last is not None:
            self._last.next = known
        self._last = known
        if known in self._remembered:
            self._remembered.remove(known)
            self._remembered.insert(0, known)
