"""The ledger: where the launches are that the device-side scheduler has.

In: launches, as they become tasks of an epoch. Out: the epoch and the task of a launch, and the
launches of an epoch. Pure. The twin in the native core also keeps the books of quick launches:
those that the core makes itself, in epochs and on queues, of which Python knows nothing but their
numbers until it asks.

Invariant: a quick launch is under way as any other for whoever looks at `Launches`; once it is
settled it is one of the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import Any, NamedTuple

from .errors import InternalError
from .records import Access, Launch
from .window import Window


class Ledger:
    """The Python twin: it makes no launches itself."""

    usable = False
    """Whether launches may be quick at all."""
    quick = 0
    """How many quick launches are under way."""
    most = 0
    """Launches under way at most, as quick ones came."""
    generation = 0
    """Kernels that were taught before it changed ask again."""

    def __init__(self) -> None:
        self.number = 0
        """Of the newest launch."""
        self._places: dict[int, tuple[int, int]] = {}
        self._numbers: dict[int, list[int]] = {}

    def __len__(self) -> int:
        """How many launches are in epochs."""
        return len(self._places)

    def put(self, number: int, epoch: int, task: int) -> None:
        """A launch is in an epoch. Epochs count from 1."""
        self._places[number] = epoch, task
        self._numbers.setdefault(epoch, []).append(number)

    def epoch(self, number: int) -> int:
        """The epoch of a launch; 0 where it is in none."""
        return self._places.get(number, (0, 0))[0]

    def task(self, number: int, epoch: int) -> int:
        """The task that a launch is in an epoch; -1 where it is not in that one."""
        place = self._places.get(number)
        return place[1] if place is not None and place[0] == epoch else -1

    def numbers(self, epoch: int) -> list[int]:
        """The launches of an epoch, by task."""
        return list(self._numbers.get(epoch, ()))

    def names(self, epoch: int) -> dict[str, int]:
        """The kernels of the quick launches of an epoch, with how many there are of each."""
        return {}

    def leave(self, epoch: int) -> list[int]:
        """The launches of an epoch are in it no more: those that are not quick."""
        numbers = self._numbers.pop(epoch, [])
        for number in numbers:
            del self._places[number]
        return numbers

    def retire(self, epoch: int) -> list[int]:
        """The quick launches of an epoch that was left have ended; those that were settled
        meanwhile."""
        return []

    def settle(self) -> list[tuple[int, str, tuple[Any, ...], tuple[Any, ...]]]:
        """Number, name, and the spans read and written of all quick launches, which are so no
        more."""
        return []

    def open(self, epoch: int, recorder: Any, scheduler: Any, *limits: int) -> None:
        """Quick launches may go to an epoch: least and most tasks of it, most entries, and at how
        many tasks somebody has to look."""

    def shut(self) -> list[int]:
        """They may not any more. What they made the epoch wait for that is in no epoch."""
        return []

    def oldest_quick(self) -> int:
        """The oldest quick launch; 0: there is none."""
        return 0

    def newest_quick(self, last: int) -> int:
        """The newest up to launch `last`."""
        return 0


class QuickCommand(NamedTuple):
    """What a quick launch did: it is in an epoch or on a queue, and goes nowhere any more."""

    name: str
    on_host: bool = False

    def enqueue(self, queue: Any, wait_for: Any) -> Any:
        """An error."""
        raise InternalError(f"{self.name} is on its way already")


class Launches(dict[int, Launch]):
    """Launches under way, in program order. Their number, and which they are, is true of quick ones
    too; what they are is told of these only after `settle`."""

    def __init__(self, ledger: Any, window: Window) -> None:
        self._ledger = ledger
        self._window = window

    def __len__(self) -> int:
        return super().__len__() + int(self._ledger.quick)

    def __contains__(self, number: object) -> bool:
        return super().__contains__(number) or bool(self._ledger.has_quick(number))

    def __iter__(self) -> Iterator[int]:
        return merge(super().__iter__(), self._ledger.quick_numbers())

    def settle(self) -> None:
        """Make quick launches what others are."""
        if not self._ledger.quick:
            return
        settled = {
            number: Launch(number, QuickCommand(name), Access(reads, writes), ())
            for number, name, reads, writes in self._ledger.settle()
        }
        self._window.adopt(settled)
        settled.update(self.items())
        self.clear()
        self.update(sorted(settled.items()))


def oldest(launches: dict[int, Launch], ledger: Ledger) -> int:
    """The oldest launch under way, without a list of all; 0: there is none."""
    both = next(dict.__iter__(launches), 0), ledger.oldest_quick()
    return min(filter(None, both), default=0)


def newest(launches: dict[int, Launch], ledger: Ledger, last: int) -> int:
    """The newest up to launch `last`, in the same way."""
    own = next((number for number in dict.__reversed__(launches) if number <= last), 0)
    return max(own, ledger.newest_quick(last))
