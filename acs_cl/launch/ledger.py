"""Launches under way: those that Python knows, and those that only the core knows.

The core keeps the books of the launches that it made itself ("quick" ones), in epochs and on
queues. Python knows nothing of them but their numbers until it asks. In: the core's `Ledger`. Out:
one dictionary of all launches.

Invariant: a quick launch is under way as any other for whoever looks at `Launches`; once it is
settled it is one of the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import Any, NamedTuple

from .. import core
from ..errors import InternalError
from ..records import Access, Launch
from .window import Window


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

    def __init__(self, ledger: core.native.Ledger, window: Window) -> None:
        self._ledger = ledger
        self._window = window

    def __len__(self) -> int:
        return super().__len__() + self._ledger.quick

    def __contains__(self, number: object) -> bool:
        return super().__contains__(number) or self._ledger.has_quick(number)  # type: ignore[arg-type]

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


def oldest(launches: dict[int, Launch], ledger: core.native.Ledger) -> int:
    """The oldest launch under way, without a list of all; 0: there is none."""
    both = next(dict.__iter__(launches), 0), ledger.oldest_quick()
    return min(filter(None, both), default=0)


def newest(launches: dict[int, Launch], ledger: core.native.Ledger, last: int) -> int:
    """The newest up to launch `last`, in the same way."""
    own = next((number for number in dict.__reversed__(launches) if number <= last), 0)
    return max(own, ledger.newest_quick(last))
