"""Waits: the program waits for launches, or for room.

Input: the books, and what is waited for. Output: nothing, or events. Functions here wait for the
device, and none holds the lock meanwhile.

Invariant: nothing waits for something that cannot come. Host tasks may not wait for launches. A
wait for room ends in an error if only the program itself could end it.
"""

from __future__ import annotations

from time import perf_counter

import pyopencl as cl

from ..devices import driver
from ..errors import UsageError
from ..host.threads import on_host_task
from ..records import Launch
from .books import Books, promised
from .ends import give_up_behind_foreign, pump, retire
from .foreign_events import Patience, all_held

TICK_S = 0.01
"""How often a wait checks for something that is not on the device yet."""

FEW = 4
"""Launches in flight up to which one is waited for without a poll of the others. Of more, some have
often ended, and waking up for each takes longer than a poll."""

NAMED = 8
"""Launches of a kind that a report names."""

FORKED = (
    "of another process: it cannot be used after a fork; start processes with multiprocessing's "
    "'spawn'"
)


def refuse_on_host_task(what: str) -> None:
    """Raise in a host task, because it could wait for itself."""
    if on_host_task():
        raise UsageError(
            f"{what} inside a host task: it could wait for itself; name what it needs in reads="
        )


def wait(books: Books, number: int) -> None:
    """Block until launch `number` has ended."""
    if books.state:
        if books.state is FORKED:  # nothing ends here
            books.check_open()
        if number not in books.table:  # closed: the driver's queues are gone
            return
    tracer = books.tracer
    if tracer is None:
        _wait(books, number)
        return
    tracer.called()
    _wait(books, number)
    tracer.waited(number)


def _wait(books: Books, number: int) -> None:
    if _has_waited(books, number):
        return
    with books.lock:
        event = _event_for(books, number)
        if event is not None:
            books.backend.flush()
            _wait_for(books, event)
        if event is not None or not books.table:  # the backend hears of all waits
            retire(books, books.backend.poll_up_to(number))


def _has_waited(books: Books, number: int) -> bool:
    """Have the core wait for a launch, unless something is unusual. It sends no open epoch, which
    would begin later than it can."""
    queues = books.backend.core_queues
    if queues is None or books.watchdog is not None or books.backend.unsent:
        return False
    return queues.wait(books, number)


def has_waited_for_newest(books: Books) -> bool:
    """Have the core wait for the newest launch, if few are in flight. Called without the lock. It
    is ahead of a wait for all. Return whether that has nothing left to do."""
    table = books.table
    if 0 < len(table) <= FEW and not books.lock.is_owned() and not on_host_task():
        return _has_waited(books, table.number) and not table
    return False


def _event_for(books: Books, number: int) -> cl.Event | None:
    """Return an event of the driver that ends with a launch, once there is one. None: the launch
    has ended."""
    began = perf_counter()
    if number not in books.table:
        return None
    refuse_on_host_task("waiting for a launch")
    event = books.backend.to_wait_for(number)
    while event is None:
        pump(books)
        if number not in books.table:
            return None
        event = books.backend.to_wait_for(number)
        if event is None:
            _tick(books, began)
    return event


def _wait_for(books: Books, event: cl.Event | None, seconds: float = -1) -> None:
    """Wait without the lock until an event has ended, if there is one, or for `seconds`."""
    try:
        if event is None or books.watchdog is None:
            books.lock.wait(event.int_ptr if event is not None else 0, seconds)
        else:
            books.watchdog.wait(books, event, seconds)
    except KeyboardInterrupt as error:
        tell_interrupted(books, error)
        raise


def _tick(books: Books, began: float) -> None:
    """Release the lock for a moment, in a wait since `began` for something not on the device."""
    if books.host_tasks.need_help:
        _run_host_task(books)
        return
    if books.watchdog is not None:
        books.watchdog.bark(began)
    _wait_for(books, None, TICK_S)


def _run_host_task(books: Books) -> None:
    """Run a host task in this thread, without the lock, since no thread can be started for it."""
    levels = 0
    while books.lock.is_owned():
        books.lock.release()
        levels += 1
    try:
        books.host_tasks.help()
    finally:
        for _ in range(levels):
            books.lock.acquire()


def under_way(books: Books) -> str:
    """Name the oldest launches in flight, and how many more there are. Called under the lock."""
    launches = books.table.later(0)
    names = [named(launch) for launch in launches[:NAMED]]
    if len(launches) > NAMED:
        names.append(f"{len(launches) - NAMED} more")
    return ", ".join(names) or "nothing known"


def named(launch: Launch) -> str:
    """Name a launch."""
    site = getattr(launch.command, "site", "")
    return f"launch {launch.number} ({launch.command.name}{f', {site}' if site else ''})"


def tell_interrupted(books: Books, error: KeyboardInterrupt) -> None:
    """Add the launches in flight to the traceback of Ctrl-C. Python 3.10 has no such notes. Called
    under the lock."""
    if hasattr(error, "add_note"):
        error.add_note(f"acs_cl: interrupted while waiting for {under_way(books)} ({books!r})")


def is_done(books: Books, number: int) -> bool:
    """Tell whether launch `number` has ended. Polls, as programs that ask repeatedly expect."""
    done = _is_done(books, number)
    if books.tracer is not None:
        books.tracer.polled(number, done)
    return done


def _is_done(books: Books, number: int) -> bool:
    with books.lock:
        if number not in books.table:
            return True
        if books.state:
            if books.state is FORKED:  # who asks until it has ended would ask for ever
                books.check_open()
            return False
        pump(books)
        event = books.backend.event(number)
        if event is not None:
            books.backend.flush()
            return driver.status(event) <= 0
        return number not in books.table


def event(books: Books, number: int) -> cl.Event:
    """Return an event for launch `number`: its own, or a user event that completes with it."""
    with books.lock:
        if number in books.table or books.state is FORKED:
            books.check_open()
            pump(books)
        found = books.backend.event_for_others(number)
        books.backend.flush()
        if found is not None:
            return found
        given = books.user_events.give(number, number in books.table)
        if books.user_events:  # code that waits for it asks the driver, and polls nothing here
            books.progress.start()
        return given


def wait_for_half(books: Books) -> None:
    """Wait until half of a full backlog has retired. Called under the lock."""
    pump(books)
    if len(books.table) < books.backlog or on_host_task():
        return
    books.counts.backlog_waits += 1
    began = perf_counter()
    patience = Patience(f"launch {books.number + 1}, for which the backlog has no room,")
    while (too_many := len(books.table) - books.backlog // 2) > 0:
        if len(books.table) < books.backlog and all_held(books):
            return
        _wait_for_any(books, books.table.nth(too_many - 1), patience, began)
        retire(books, books.backend.poll(books.backlog))


def drain(
    books: Books,
    gives_up: bool = False,
    patience: Patience | None = None,
    until: float | None = None,
) -> bool:
    """Wait until everything launched before this call has ended. Called under the lock. `gives_up`:
    launches that wait for foreign events fail instead. `patience`: a launch that waits for the
    program itself is an error. `until`: a time on `perf_counter`; False is returned if it came
    first."""
    last, began = books.number, perf_counter()
    table = books.table
    if not table:  # the device was quicker; the backend hears of the wait all the same
        retire(books, books.backend.poll_up_to(last))
    takes_newest = False
    while 0 < table.oldest() <= last:
        # From both ends in turn: what waited together starts in either order (PoCL: newest first).
        takes_newest = not takes_newest
        if gives_up:
            give_up_behind_foreign(books)
        left_s = -1.0 if until is None else until - perf_counter()
        if until is not None and left_s <= 0:
            return False
        best = table.newest(last) if takes_newest else table.oldest()
        _wait_for_any(books, best, patience, began, left_s)
        retire(books, books.backend.poll_up_to(books.number))
    return True


def _wait_for_any(
    books: Books, best: int, patience: Patience | None, began: float, seconds: float = -1
) -> None:
    """Release the lock until something may have ended. That is launch `best`, since a thread that
    wakes up for each launch takes time from a CPU's kernels. While others are held and have to be
    moved along, it is the oldest launch."""
    backend, table = books.backend, books.table
    are_few = not table.held and len(table) <= FEW
    event = backend.to_wait_for(best) if are_few else None
    if event is None:
        pump(books)
        event = None if table.held else backend.to_wait_for(best)
    if event is None:
        event = backend.oldest()
    if event is not None:
        backend.flush()
        _wait_for(books, event, seconds)
    elif len(table):
        if patience is not None:
            patience.spend(books, promised())
        _tick(books, began)
