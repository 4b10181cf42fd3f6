"""The mirrors of memory that checks compare with, kept up to date.

Input: what may have written memory: launches that were checked or let through, transfers, and what
no check sees. Output: mirrors that hold the bytes of memory, of which as few as can be are read.

Invariant: after `settle`, nothing is in flight, and what was noted is in the mirrors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..records import Access, Span
from .case import Case, Trial
from .memory import Interval, Memory

if TYPE_CHECKING:
    from ..launch.engine import Engine


class Mirrors:
    """Notes what was written since the mirrors were last up to date."""

    def __init__(self, engine: Engine, memory: Memory) -> None:
        self._engine = engine
        self._memory = memory
        self._transferred: list[Interval] = []
        """Bytes that transfers wrote."""
        self._passed: set[Span] = set()
        """Writes of launches that were let through."""
        self._stale = False
        """Whether memory may have been written in a way that nobody notes."""
        self._shared = False
        """Whether the program has the address of an array of the runtime."""

    def stale(self) -> None:
        """Note that memory may have been written in a way that nobody notes."""
        self._stale = True

    def shared(self) -> None:
        """Note that from now on the program itself may write an array at any time."""
        self._shared = True

    def transferred(self, writes: Sequence[Interval]) -> None:
        """Note a transfer."""
        self._transferred += writes

    def let_through(self, access: Access) -> None:
        """Note a launch that was let through."""
        self._passed.update(access.writes)

    def checked(self, case: Case, real: Trial, everything: bool) -> None:
        """Take over the bytes that a launch left, or `everything` if it left others, too."""
        if everything:
            self._memory.refresh()
            return
        for index, low, high in case.in_writes:
            window = case.windows[index]
            start, end = window.low + low, window.low + high
            window.region.mirror[start:end] = real.out[index][low:high]
            window.region.changed(start, end)

    def settle(self, may_wait: int = 0) -> None:
        """Drain, and update the mirrors. So many writes of launches that were let through may wait
        where nothing is compared now."""
        if self._engine.table:
            self._engine.drain()
        if len(self._passed) > may_wait:
            self._book()
        if self._stale or self._shared:
            self._memory.refresh()
            self._stale = False
        else:
            self._memory.written([one for one in self._transferred if not one.region.foreign])
            self._memory.refresh(foreign_only=True)
        self._transferred.clear()

    def before_freeing(self) -> None:
        """Take over writes of launches that were let through, before memory of some is gone."""
        if self._passed and self._engine.foreign:
            self._stale = True
        elif self._passed:
            self._engine.drain()
            self._book()

    def _book(self) -> None:
        """Take over writes of launches that were let through. Nothing is in flight."""
        self._memory.written(self._memory.intervals(self._passed))
        self._passed.clear()
        if self._engine.failures.any:
            self._stale = True
