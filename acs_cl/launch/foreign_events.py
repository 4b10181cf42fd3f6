"""Foreign events: what launches wait for on the host, before a driver sees the launch.

Input: the events in `wait_for=`. Output: which are still open, and whether everything live waits
only for user events. The program sets a user event, so a thread that waits for room before it sets
one would wait forever.

Invariant: a wait for room (`Patience`) ends in an error only if nothing moved for `PATIENCE_S`,
although everything was polled. The launches that are held stay so.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import pyopencl as cl

from .. import core
from ..devices import driver
from ..errors import UsageError, describe
from .books import Books, ForeignEvents

PATIENCE_S = 1.0
"""How long a wait gives other threads to set a user event."""


def events_of(wait_for: Any) -> tuple[cl.Event, ...] | None:
    """Return the foreign events of a call. An iterator is read once."""
    if wait_for is None:
        return None
    try:
        events = tuple(iter(wait_for))
    except (TypeError, cl.Error):  # arrays without dimensions and buffers say so only then
        raise _unfit("a list of ", wait_for) from None
    for foreign in events:
        if not isinstance(foreign, cl.Event):
            raise _unfit("", foreign)
    return events


def _unfit(how: str, got: object) -> UsageError:
    why = "; launches of a runtime follow each other by their bytes: leave it out"
    return UsageError(
        f"wait_for= takes {how}pyopencl.Event objects, got {describe(got)}"
        f"{why if isinstance(got, core.native.Handle) else ''}"
    )


def open_events(wait_for: Sequence[cl.Event]) -> ForeignEvents:
    """Return the foreign events that have not ended well yet."""
    return [foreign for foreign in wait_for if driver.status(foreign) != driver.COMPLETE]


def still_open(events: ForeignEvents) -> tuple[ForeignEvents, int | None]:
    """Return the events still open, and the status of one that failed."""
    left = []
    for foreign in events:
        status = driver.status(foreign)
        if status < 0:
            return [], status
        if status > 0:
            left.append(foreign)
    return left, None


def all_held(books: Books, promised: Sequence[cl.Event] = ()) -> bool:
    """Tell whether nothing live can move before the program sets a user event. `promised`: user
    events that a runtime of this process sets by itself. Called under the lock."""
    if books.backend.in_flight or books.host_tasks.busy or not books.foreign:
        return False
    return all(
        any(_set_by_program(event) and event not in promised for event in events)
        for events in books.foreign.values()
    )


def comes(event: cl.Event) -> bool:
    """Wait until a foreign event has ended, unless that may be up to the program, which does not
    go on meanwhile. A command of another queue may stand behind a user event, too."""
    if driver.status(event) <= driver.COMPLETE:
        return True
    return not _set_by_program(event) and driver.has_come(event, PATIENCE_S)


def _set_by_program(event: cl.Event) -> bool:
    return bool(event.get_info(cl.event_info.COMMAND_TYPE) == cl.command_type.USER)


class Patience:
    """Bounds the wait of one call for room. `call`: what it does, for the error."""

    def __init__(self, call: str) -> None:
        self._call = call
        self._seen: tuple[int, int] | None = None
        self._since = 0.0

    def spend(self, books: Books, promised: Sequence[cl.Event]) -> None:
        """Raise if everything has been held for too long. Called under the lock, right after a poll
        of everything."""
        open_now = sum(map(len, books.foreign.values()))
        seen = (books.number - len(books.table), open_now)
        if seen != self._seen or not all_held(books, promised):
            self._seen, self._since = seen, perf_counter()
        elif perf_counter() - self._since > PATIENCE_S:
            number = next(iter(books.foreign))
            name = books.table.launch(number).command.name
            raise UsageError(
                f"{self._call} waits for launches that all wait for a user event: launch {number} "
                f"({name}) waits by wait_for= for an event that nobody has set; set it before, "
                "or launch less behind it (backlog= says how much is allowed)"
            )
