"""Ends: what follows when launches have ended.

Input: the books, and the ends that the backend or the core's queues saw. Output: hazards without
these launches, room in the window, failures, and ready launches on their way to the backend.

Invariant: each end is handled once, whatever is raised meanwhile. So a backend gives its ends in a
list that it keeps, and they are taken out once they are in the books.
"""

from __future__ import annotations

import pyopencl as cl

from .. import core
from ..devices.contexts import forget_context
from ..errors import DeviceError
from ..host.threads import need_stack
from ..records import Launch
from .backend import DECIDED, End, Ended
from .books import Books
from .decision import DecidedCommand, WrongCountError
from .dispatch import after_end, dispatch, driver_error, send_what_there_is
from .foreign_events import still_open
from .poisoning import fail


def retire(books: Books, ended: Ended) -> bool:
    """Handle ended launches, and dispatch the launches that waited for them. Return whether
    anything moved. The backend tells again what is left in `ended`. So it is emptied, and ends that
    an exception interrupts stay in `reported`. Launches of the core may end without a report."""
    reported = books.reported
    if ended or reported:
        need_stack()
    reported.extend(ended)
    ended.clear()
    moved = bool(reported) or books.table.ended != books.ended_before
    while reported:
        end = reported.popleft()
        try:
            retire_one(books, end)
        except BaseException:
            if end.epoch or end.number in books.table:
                reported.appendleft(end)
            raise
    if moved:
        books.ended_before = books.table.ended
        dispatch(books)
        if books.user_events:
            books.user_events.complete_ended(books.table)
            if books.user_events:
                books.backend.flush()  # who waits for them does not come by here
        if books.table.outside:
            send_what_there_is(books)
    return moved


def retire_one(books: Books, end: End) -> None:
    """Handle one end."""
    table, number = books.table, end.number
    if end.epoch:  # of launches that the core made
        table.end_epoch(end.epoch)
        return
    launch = table.launch(number)
    if launch is None:  # a signal came where it had been kept and was not taken out yet
        return
    has_failed = end.status < 0
    try:
        if has_failed:
            error = _what_ended(books, launch, end.status)
            fail(books, launch, error, by_driver=end.status > DECIDED)
        if books.tracer is not None:
            books.tracer.ended(launch, end.lane, end.event)
        command = launch.command
        if type(command) is DecidedCommand and (wrong := command.error(number)) is not None:
            has_failed = True
            fail(books, launch, wrong, by_driver=False)
    finally:  # whatever was raised, it has ended
        table.end(number, has_failed)
        after_end(books, number)


def _what_ended(books: Books, launch: Launch, status: int) -> BaseException:
    error = books.backend.error(launch.number, status)
    if error is None or status > DECIDED:
        forget_context(books.context)
    if isinstance(error, WrongCountError) and isinstance(launch.command, DecidedCommand):
        return launch.command.wrong(launch.number, error.got)
    if isinstance(error, WrongCountError) and error.bound is not None:
        return error.bound.error(launch.number, launch.command.name, error.got)
    if isinstance(error, cl.Error):
        return driver_error(books, launch, error)
    return error or DeviceError(f"the device reports status {status}")


def pump(books: Books) -> tuple[bool, bool]:
    """Move along what can move. Return whether it has to be called again, and whether anything
    moved. It has to if launches are held or others wait for an event of ours."""
    moved = retire(books, books.backend.poll())
    for number, events in list(books.foreign.items()):
        left, failed = still_open(events)
        if len(left) < len(events):
            core.native.let_go(events)
        if failed is not None:
            books.failures.doomed[number] = fail(
                books, books.table.launch(number), DeviceError(f"a foreign event failed: {failed}")
            )
        if failed is not None or not left:
            del books.foreign[number]
            books.table.foreign_ended(number)
            dispatch(books)
            moved = True
        else:
            books.foreign[number] = left
    held = bool(books.table.held)
    if moved:
        books.lock.notify()
    if held or (moved and not books.backend.unsent):
        books.backend.flush()
    # an epoch that waits to be sent needs a poll now and then, whatever else moves
    return held or bool(books.user_events) or books.backend.is_attended, moved and held


def give_up_behind_foreign(books: Books) -> None:
    """Fail launches that wait for foreign events, because the runtime is about to close."""
    pump(books)
    for number in list(books.foreign):
        core.native.let_go(books.foreign.pop(number))
        error = DeviceError("the runtime was closed before the event it waits for came")
        books.failures.doomed[number] = fail(books, books.table.launch(number), error)
        books.failures.given_up.add(number)
        books.table.foreign_ended(number)
        dispatch(books)
