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


class RememberedEpoch:
    """A remembered epoch, with its latest numbers."""

    def __init__(self, launches: Sequence[Launch]) -> None:
        self.launches = list(launches)
        self.came = 1
        self.gained = 0
        self.is_kept = False
        self.changed: set[int] = set()
        self.next: RememberedEpoch | None = None

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
        self._remembered: list[RememberedEpoch] = []
        self._tasks: list[Launch] = []
        self._followed: RememberedEpoch | None = None
        self._last: RememberedEpoch | None = None
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
        if self._followed is not None:
            self._compare(launch)
        if not self._counts:
            self._tasks.append(launch)

    def foreign(self, launch: Launch) -> None:
        """Take a launch that is not made by the core."""
        self.settle()
        self._tasks.append(launch)
        self._followed = self._last = None

    def settle(self) -> None:
        """Record counted launches, or send them as foreseen, when the lock is taken."""
        epoch = self._followed
        if not self._counts or epoch is None:
            return
        begun = epoch.launches[: self._matched]
        kept = (one for one in self._remembered if one.is_kept and one.begins_like(begun))
        whole = [one for one in (epoch, *kept) if len(one) == self._matched]
        if whole:
            self._hand_over(epoch, whole[0])
            self._followed, self._is_complete = whole[0], True
            return
        self._give_up(epoch)

    def _give_up(self, epoch: RememberedEpoch) -> None:
        self._counts = False
        self._tasks = epoch.launches[: self._matched]
        self.given_up += self._matched
        epoch.gained -= self._matched
        if epoch.gained > -MOST_LOST * len(epoch):
            return
        self._remembered.remove(epoch)
        first = epoch.launches[:1]
        if not any(one.is_kept and one.begins_like(first) for one in self._remembered):
            rests = self._costly.setdefault(first[0].kind, [0, REST])
            rests[:] = rests[1], 2 * rests[1]

    def _hand_over(self, epoch: RememberedEpoch, other: RememberedEpoch) -> None:
        """Go on with another epoch, which takes over the numbers of counted launches."""
        for at in range(self._matched):
            other.take(at, epoch.launches[at])

    def send(self, by_core: bool = True) -> None:
        """Send the open epoch: it is complete, or awaited. `by_core`: the core made all its
        launches."""
        epoch = self._followed
        if self._counts and epoch is not None and self._matched == len(epoch):
            self.sent.append(Sent(tuple(epoch.launches), True, len(epoch.changed)))
            epoch.changed.clear()
            epoch.gained = min(epoch.gained + len(epoch), MOST_GAINED * len(epoch))
            self._follow_up(epoch)
        else:
            self.settle()
            if not self._tasks:
                return
            self.sent.append(Sent(tuple(self._tasks), False, 0))
            if by_core and len(self._tasks) >= LEAST and not self._rests:
                self._follow_up(self._remember())
            else:
                self._last = None
        self._tasks, self._followed, self._matched = [], None, 0
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
            self._followed = following
        else:
            self._followed = next(iter(fits), None)
        self._counts = self._followed is not None and self._followed.is_kept

    def _compare(self, launch: Launch) -> None:
        epoch = self._followed
        assert epoch is not None
        if self._matched == len(epoch) or epoch.launches[self._matched].kind != launch.kind:
            other = self._another(epoch, launch)
            if self._counts and not (other is not None and other.is_kept):
                self._give_up(epoch)
            if other is not None and self._counts:
                self._hand_over(epoch, other)
            self._followed = epoch = other
        if epoch is None:
            return
        if self._counts:
            epoch.take(self._matched, launch)
        self._matched += 1

    def _another(self, epoch: RememberedEpoch, launch: Launch) -> RememberedEpoch | None:
        """Return an epoch that equals `epoch` up to here, and goes on with this launch."""
        begun = [*epoch.launches[: self._matched], launch]
        found = [one for one in self._remembered if one is not epoch and one.begins_like(begun)]
        kept = [one for one in found if one.is_kept]
        return next(iter(kept if self._counts and kept else found), None)

    def _remember(self) -> RememberedEpoch:
        """Remember an epoch that was collected."""
        for epoch in self._remembered:
            if len(epoch) == len(self._tasks) and epoch.begins_like(self._tasks):
                epoch.came += 1
                if not epoch.is_kept:
                    for at, launch in enumerate(self._tasks):
                        epoch.take(at, launch)
                epoch.is_kept = epoch.is_kept or epoch.came >= OFTEN
                return epoch
        made = RememberedEpoch(self._tasks)
        self._remembered.insert(0, made)
        del self._remembered[MOST_EPOCHS:]
        return made

    def _follow_up(self, epoch: RememberedEpoch) -> None:
        if self._last is not None:
            self._last.next = epoch
        self._last = epoch
        if epoch in self._remembered:
            self._remembered.remove(epoch)
            self._remembered.insert(0, epoch)
