"""User events: they are given out for launches that have no event of the driver.

Input: numbers of launches. Output: events that complete when these end. Invariant: an event that
was given out completes exactly once, with -1 if its launch failed or never ran.
"""

from __future__ import annotations

import pyopencl as cl

from .. import core
from ..devices import driver
from .failures import Failures


class UserEvents(dict[int, cl.UserEvent]):
    """{launch in flight: the event that was given out for it}."""

    def __init__(self, context: cl.Context, failures: Failures) -> None:
        self._context = context
        self._failures = failures

    def give(self, number: int, is_live: bool) -> cl.UserEvent:
        """Return the event for a launch. It is complete already if the launch has ended."""
        event = self.get(number)
        if event is None:
            event = cl.UserEvent(self._context)
            if is_live:
                self[number] = event
            else:
                event.set_status(self._status(number))
        return event

    def complete(self, number: int) -> None:
        """Complete the event of a launch that has ended."""
        event = self.pop(number, None)
        if event is not None:
            event.set_status(self._status(number))

    def complete_ended(self, table: core.native.Table) -> None:
        """Complete the events of launches that are over: the core does not tell all ends."""
        for number in [one for one in self if one not in table]:
            self.complete(number)

    def _status(self, number: int) -> int:
        return -1 if self._failures.knows(number) else driver.COMPLETE
