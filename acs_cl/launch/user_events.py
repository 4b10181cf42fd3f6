"""User events: what is handed out for a launch that has no event of the driver's.

In: numbers of launches. Out: events that complete when these end. Invariant: an event that was
handed out is completed exactly once, with -1 if its launch failed or never ran.
"""

from __future__ import annotations

import pyopencl as cl

from .. import core
from ..devices import driver
from .failures import Failures


class UserEvents(dict[int, cl.UserEvent]):
    """{launch under way: the event that was handed out for it}."""

    def __init__(self, context: cl.Context, failures: Failures) -> None:
        self._context = context
        self._failures = failures

    def give(self, number: int, is_live: bool) -> cl.UserEvent:
        """The event for a launch, which is complete already unless that is under way."""
        event = self.get(number)
        if event is None:
            event = cl.UserEvent(self._context)
            if is_live:
                self[number] = event
            else:
                event.set_status(self._status(number))
        return event

    def complete(self, number: int) -> None:
        """The launch has ended: so has its event."""
        event = self.pop(number, None)
        if event is not None:
            event.set_status(self._status(number))

    def complete_ended(self, table: core.native.Table) -> None:
        """Complete those of launches that are over: the core does not tell of all."""
        for number in [one for one in self if one not in table]:
            self.complete(number)

    def _status(self, number: int) -> int:
        return -1 if self._failures.knows(number) else driver.COMPLETE
