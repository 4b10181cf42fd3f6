"""Poisoning: what a failed launch does to the launches behind it.

Input: the books, and a launch that failed, was refused, or reads poisoned bytes. Output: launches
that must not run are doomed in the books, and a launch that never ran has stand-ins.

Invariant: a launch that never ran stays in the hazards until all its upstream has ended. In the
table its upstream stands in for it: launches that should follow it follow its upstream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyopencl as cl

from .. import core
from ..records import Access, Launch
from .books import Books
from .commands import KernelCommand
from .failures import Failure, Poison, lost


def fail(
    books: Books, launch: Launch, error: BaseException, site: str = "", by_driver: bool = True
) -> Failure:
    """Poison the launches that depend on a launch that failed after its call had returned.

    `by_driver`: the driver may fail what it has and what waits for this launch. If not, to the
    driver the launch ended well."""
    failure = Failure(launch.number, launch.command.name, site, error)
    later = {other.number: other for other in books.table.later(launch.number)}
    launch = _with_what_is_lost(launch, error)
    carriers = {
        number
        for number, one in later.items()
        if _carries(one) and not (by_driver and books.is_dispatched(number))
    }
    reached = books.failures.record(failure, launch.access, _apart(books, later.values()), carriers)
    for number in (launch.number, *reached):
        books.failures.note_queue(books.table.queue_of(number), number)
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
    """Doom a new launch if it reads poison, in a program with failures."""
    if _carries(launch):
        return
    failure = books.failures.reads_poison(launch.access)
    if failure is not None:
        books.failures.note(launch.number, failure)
        books.failures.note_queue(books.table.queue_of(launch.number), launch.number)
        books.failures.doomed[launch.number] = failure
        books.failures.poison.add(launch.access.writes, failure)
        books.note_poison()
        _keep_foreign(books, launch)


def note_overwrites(books: Books, launch: Launch) -> None:
    """Note that a new launch will run, in a program with failures: bytes that it overwrites are
    poisoned no more, or as far as their source is."""
    poison = books.failures.poison
    if _carries(launch):
        poison.carry(launch.access)
    else:
        poison.overwrite(launch.access.overwrites)
    books.note_poison()


def lose(books: Books, access: Access) -> None:
    """Lose all that depends on a decision that could not be read."""
    with books.lock:
        failure = books.failures.reads_poison(access)
        if failure is not None:
            books.failures.poison.add(access.writes, failure)
            books.note_poison()


def stand_in(books: Books, number: int, upstream: tuple[int, ...]) -> None:
    """Let the upstream of launch `number`, which will never run, stand in for it."""
    books.table.never_ran(number, upstream)
    if books.user_events:
        books.user_events.complete(number)


def may_be_poisoned(books: Books, access: Access) -> bool:
    """Tell whether any of these bytes are poisoned, or may be by a launch that has not run yet."""
    with books.lock:
        poison = books.failures.poison
        if poison and poison.find((*access.reads, *access.writes)) is not None:
            return True
        holds = books.ready_first or books.window is not None
        if holds and books.table.is_counted and _may_follow_counts(books, access):
            return True
        if not (books.table.held or books.host_tasks.busy):
            return False
        return any(
            launch.access.writes and (launch.command.on_host or launch.number in books.foreign)
            for launch in books.table.later(0)
        )


def _may_follow_counts(books: Books, access: Access) -> bool:
    """Tell whether a launch that may be held would be lost if counts in flight are wrong."""
    lost, table = Poison(), books.table
    for launch in table.later(0):
        if table.has_count(launch.number) or lost.find(launch.access.reads) is not None:
            lost.add(launch.access.writes, True)
    return lost.find(access.reads) is not None


def _carries(launch: Launch) -> bool:
    """Tell whether a launch runs whatever is poisoned, and carries poison to what it writes."""
    return bool(getattr(launch.command, "carries", ""))


def _parts(launch: Launch) -> tuple[Access, ...] | None:
    """Return the accesses of a command's launches. None: it is a single launch."""
    return getattr(launch.command, "accesses", None)


def _with_what_is_lost(launch: Launch, error: BaseException) -> Launch:
    """Return a failed launch with its access. For a replay whose error names its failed launches,
    the access has only the bytes that are lost."""
    parts, tasks = _parts(launch), getattr(error, "tasks", None)
    if parts is None or tasks is None:
        return launch
    return launch._replace(access=launch.access._replace(writes=lost(parts, tasks)))


def _apart(books: Books, launches: Iterable[Launch]) -> Iterator[Launch]:
    """Yield the launches, with the parts of a replay in place of it. A replay that is held stays a
    whole: it will not run at all if it reads lost bytes. So does a loop."""
    for launch in launches:
        parts = _parts(launch) if getattr(launch.command, "is_apart", True) else None
        if parts is not None and books.is_dispatched(launch.number):
            for access in parts:
                yield launch._replace(access=access)
        else:
            yield launch


def _keep_foreign(books: Books, launch: Launch) -> None:
    """Keep foreign memory alive that a poisoned launch should have written. Its name is the
    driver's handle or its address, which other memory could get while bytes of it are poisoned."""
    command: Any = launch.command
    command = getattr(command, "command", command)  # of a command that keeps its times
    spans = [span for span in launch.access.writes if span.base < 0]
    if spans and not isinstance(command, KernelCommand):
        for span in spans:
            books.failures.poison.keep(span, command)  # it holds its memory
        return
    written = {span.base for span in spans}
    for memory in command.pointers[1::2] if written else ():
        known = core.native.memory_of(memory, books.store.reserved)
        if known is None or known.span.base not in written:
            continue
        kept = memory
        if isinstance(memory, cl.MemoryObject):  # the program may release its own reference
            same = type(memory).from_int_ptr(memory.int_ptr, retain=True)
            kept = same, memory, memory.hostbuf
        books.failures.poison.keep(known.span, kept)
