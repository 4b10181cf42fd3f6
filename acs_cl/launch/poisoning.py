"""Poisoning: what a failed launch does to the launches behind it.

In: the books, a launch that failed, was refused, or reads poisoned bytes. Out: the books, in which
those that must not run are doomed, and a launch that never ran has stand-ins.

Invariant: a launch that never ran stays in the hazards until all its upstream has ended, which
stands in for it in the table: who should wait for it waits for its upstream instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyopencl as cl

from .. import core
from ..records import Access, Launch
from .books import Books
from .commands import KernelCommand
from .failures import Failure, lost


def fail(books: Books, launch: Launch, error: BaseException, site: str = "") -> Failure:
    """A launch failed after its call had returned: poison what follows from it."""
    failure = Failure(launch.number, launch.command.name, site, error)
    later = {other.number: other for other in books.table.later(launch.number)}
    launch = _with_what_is_lost(launch, error)
    # what the driver has already fails with what it waits for
    carriers = {n for n, one in later.items() if _carries(one) and not books.is_dispatched(n)}
    reached = books.failures.record(failure, launch.access, _apart(books, later.values()), carriers)
    for number in reached:
        if books.is_dispatched(number):
            books.table.lose(number)
        else:
            books.failures.doomed[number] = failure
    for poisoned in (launch, *(later[number] for number in reached)):
        _keep_foreign(books, poisoned)
    books.note_poison()
    return failure


def meet_poison(books: Books, launch: Launch) -> None:
    """A new launch in a program with failures may read poison."""
    if _carries(launch):
        return
    failure = books.failures.reads_poison(launch.access)
    if failure is not None:
        books.failures.note(launch.number, failure)
        books.failures.doomed[launch.number] = failure
        books.failures.poison.add(launch.access.writes, failure)
        books.note_poison()
        _keep_foreign(books, launch)


def came_through(books: Books, launch: Launch) -> None:
    """A new launch in a program with failures will run: what it overwrites is as good as that is
    from which it comes."""
    poison = books.failures.poison
    if _carries(launch):
        poison.carry(launch.access)
    else:
        poison.overwrite(launch.access.overwrites)
    books.note_poison()


def lose(books: Books, access: Access) -> None:
    """A decision could not be read: all that depends on it is lost with what decides."""
    with books.lock:
        failure = books.failures.reads_poison(access)
        if failure is not None:
            books.failures.poison.add(access.writes, failure)
            books.note_poison()


def stand_in(books: Books, number: int, upstream: tuple[int, ...]) -> None:
    """Launch `number` will never run: until its upstream has ended, that stands in for it."""
    books.table.never_ran(number, upstream)
    if books.user_events:
        books.user_events.complete(number)


def may_be_poisoned(books: Books, access: Access) -> bool:
    """Whether any of these bytes are poisoned, or may be by something that has not run yet."""
    with books.lock:
        poison = books.failures.poison
        if poison and poison.find((*access.reads, *access.writes)) is not None:
            return True
        if not (books.table.held or books.host_tasks.busy):
            return False
        return any(
            launch.access.writes and (launch.command.on_host or launch.number in books.gates)
            for launch in books.table.later(0)
        )


def _carries(launch: Launch) -> bool:
    """Whether a launch runs whatever is poisoned, and carries it to what it writes."""
    return bool(getattr(launch.command, "carries", ""))


def _parts(launch: Launch) -> tuple[Access, ...] | None:
    """The accesses of the launches that a command stands for; None for a single launch."""
    return getattr(launch.command, "accesses", None)


def _with_what_is_lost(launch: Launch, error: BaseException) -> Launch:
    """A failed launch. Of a replay it has the bytes that are lost in place of all that it writes,
    as far as the error says which of its launches did not run."""
    parts, tasks = _parts(launch), getattr(error, "tasks", None)
    if parts is None or tasks is None:
        return launch
    return launch._replace(access=launch.access._replace(writes=lost(parts, tasks)))


def _apart(books: Books, launches: Iterable[Launch]) -> Iterator[Launch]:
    """The same launches, with those that a replay consists of in place of it. One that is held back
    is a whole still: it will not run at all if it reads what is lost."""
    for launch in launches:
        parts = _parts(launch)
        if parts is not None and books.is_dispatched(launch.number):
            for access in parts:
                yield launch._replace(access=access)
        else:
            yield launch


def _keep_foreign(books: Books, launch: Launch) -> None:
    """Foreign memory that a poisoned launch should have written is named by what the driver calls
    it, or by its address: it stays alive while any of it is poisoned, or other memory could get its
    name."""
    command: Any = launch.command
    command = getattr(command, "command", command)  # of one whose times are wanted
    written = {span.base for span in launch.access.writes if span.base < 0}
    if not written or not isinstance(command, KernelCommand):
        return
    for memory in command.pointers[1::2]:
        names = core.native.foreign_spans(memory)
        if not names:
            continue
        kept = memory
        if isinstance(memory, cl.MemoryObject):  # the program may release what it has
            same = type(memory).from_int_ptr(memory.int_ptr, retain=True)
            kept = same, memory, memory.hostbuf
        for name in names:  # of launches here, and on a queue
            if name.base in written:
                books.failures.poison.keep(name, kept)
