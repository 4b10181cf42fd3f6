"""Ends: the way back of a launch.

In: the books, and what the backend or the core's queues have seen to end. Out: hazards without
these launches, room in the window, failures, and whatever became ready on its way to the backend.

Invariant: the backend tells of each end once, and each is taken note of once, whatever is raised
meanwhile.
"""

from __future__ import annotations

from typing import Any

import pyopencl as cl

from ..devices.contexts import forget_context
from ..errors import DeviceError
from ..records import Launch
from .backend import DECIDED, Ended
from .books import Books
from .decision import DecidedCommand, WrongCountError
from .dispatch import dispatch, driver_error, go_on, send_what_there_is
from .gates import look_at_gates
from .poisoning import fail, let_skipped_end


def retire(books: Books, ended: Ended) -> bool:
    """The backend reports ended launches: free their slots, dispatch what waited for them. It tells
    of each once, so that what an exception keeps from its turn is kept in `reported`."""
    reported = books.reported
    reported.extend(ended)
    moved = bool(reported)
    while reported:
        one = reported.popleft()
        try:
            retire_one(books, *one)
        except BaseException:
            if one[0] <= 0 or one[0] in books.launches:
                reported.appendleft(one)
            raise
    if moved and books.window.waiting:
        send_what_there_is(books)
    return moved


def retire_one(books: Books, number: int, status: int, event: Any, lane: int) -> None:
    """Take note of one end. 0: quick launches have ended; negative: those of that epoch."""
    if number < 0:
        settled = books.ledger.retire(-number)
        books.reported.extendleft((one, 0, event, -1) for one in (0, *reversed(settled)))
        return
    if not number:
        _let_others_in(books)
        return
    if status < 0 and books.ledger.quick:
        books.launches.settle()
    launch = books.launches.pop(number)
    try:
        if status < 0:
            fail(books, launch, _what_ended(books, launch, status))
        if books.tracer is not None:
            books.tracer.ended(launch, lane, event)
        command = launch.command
        if books.counted:
            books.counted.discard(number)
        if type(command) is DecidedCommand and (error := command.error(number)) is not None:
            fail(books, launch, error)
    finally:  # whatever was raised, it has ended
        books.hazards.retire(number)
        handed_out = books.window.done(number)
        if handed_out or books.skipped or books.user_events:
            go_on(books, number, handed_out)


def _let_others_in(books: Books) -> None:
    """Quick launches have ended, of which the window and stand-ins learn only now."""
    if books.window.waiting:
        dispatch(books, books.window.admit())
    if books.skipped:
        let_skipped_end(books)


def _what_ended(books: Books, launch: Launch, status: int) -> BaseException:
    error = books.backend.error(launch.number, status)
    if error is None or status > DECIDED:
        forget_context(books.context)
    if isinstance(error, WrongCountError) and isinstance(launch.command, DecidedCommand):
        return launch.command.wrong(launch.number, error.got)
    if isinstance(error, cl.Error):
        return driver_error(launch, error)
    return error or DeviceError(f"the device reports status {status}")


def pump(books: Books) -> tuple[bool, bool]:
    """Move everything along that can move. Whether launches are still held, and whether any
    moved."""
    moved = retire(books, books.backend.poll())
    for number, gates in list(books.gates.items()):
        left, failed = look_at_gates(gates)
        if failed is not None:
            books.failures.doomed[number] = fail(
                books, books.launches[number], DeviceError(f"a foreign event failed: {failed}")
            )
        if failed is not None or not left:
            del books.gates[number]
            dispatch(books, books.window.open_gate(number))
            moved = True
        else:
            books.gates[number] = left
    held = bool(books.window.held)
    if moved:
        books.lock.notify()
    if held or (moved and not books.backend.unsent):
        books.backend.flush()
    # an epoch that waits to be sent needs a look now and then, whatever else moves
    return held or books.backend.unsent, moved and held


def give_up_gated(books: Books) -> None:
    """Launches that wait for another library's event fail: the runtime is about to close."""
    pump(books)
    for number in list(books.gates):
        del books.gates[number]
        error = DeviceError("the runtime was closed before the event it waits for came")
        books.failures.doomed[number] = fail(books, books.launches[number], error)
        dispatch(books, books.window.open_gate(number))
