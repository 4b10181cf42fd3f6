"""Interception: it replaces PyOpenCL's functions while there is an `acs.Queue`.

Input: calls of the functions of `pyopencl._cl` in which every command of a PyOpenCL program ends,
and of the methods that set a kernel's arguments or build a program. Output: commands on an
`acs.Queue` go to that queue's `_command`; on any other queue they do what they always did.

Invariants:
- Functions are replaced only while a queue of ours lives (`enter`). With the last queue all are put
  back (`leave`), except those that other code has replaced since.
- A replacement that other code kept works as the original from then on. With the next queue it
  works as a replacement again.
- Programs that are built meanwhile are noted (`foreign_programs`), since drivers forget their
  sources.
- A kernel remembers its arguments while functions are replaced. Arguments that were set before, or
  by a call that failed, are unknown, and the kernel says so.
"""

# Long because: PyOpenCL's functions have to be named, each with its parameters.

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyopencl as cl
from pyopencl import _cl

from .. import core
from ..devices import advice, foreign_programs
from ..devices.driver import Events
from .calls import (
    COMMANDS,
    FREE,
    TRACKED,
    Original,
    Parameters,
    Watched,
    call_of,
    kind_of,
    marker_call,
)
from .commands import MAPS
from .events import QueueEvent, native_error, native_events
from .kernel_arguments import SETTERS, begin_noting, setter
from .members import command_queue_of

seen_elsewhere: Counter[str] = Counter()
"""Counts commands on queues that are not ours, while there were some of ours."""

_lock = threading.RLock()
_queues: dict[int, weakref.ref[Any]] = {}
"""{hash of a queue, which is that of the driver's: the queue}."""

_words: set[Callable[[], None]] = set()
"""What keeps the words of queues. A queue that is gone is here until that is done."""

_replaced: list[tuple[object, str, object, object]] = []
"""(where, name, original, replacement)."""

_kept = 0


def is_entered() -> bool:
    """Tell whether queues are alive, so that functions are replaced."""
    return bool(_queues)


def enter(queue: cl.CommandQueue, keeps: Callable[[], None]) -> None:
    """Note a new queue of ours. The first one replaces PyOpenCL's functions. `keeps`: makes
    complete what its program was told is complete."""
    with _lock:
        _words.add(keeps)
        _queues[hash(queue)] = weakref.ref(queue)
        core.native.note_queue(hash(queue), True)
        if not _replaced:
            _replace_all()


def leave(key: int) -> None:
    """Note that the queue with this hash is gone. What it told its program is kept later."""
    with _lock:
        _queues.pop(key, None)
        core.native.note_queue(key, False)


def has_kept(keeps: Callable[[], None]) -> None:
    """Note that all is complete that the program of a queue was told, and the queue is gone. The
    last one puts everything back."""
    with _lock:
        _words.discard(keeps)
        _put_back_if_unused()


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Keep functions replaced in the block even without a queue. A program that takes some of them
    by name then takes the replacements."""
    global _kept
    with _lock:
        _kept += 1
        if not _replaced:
            _replace_all()
    try:
        yield
    finally:
        with _lock:
            _kept -= 1
            _put_back_if_unused()


def living() -> list[Any]:
    """Return our queues."""
    with _lock:
        found = [reference() for reference in _queues.values()]
    return [one for one in found if one is not None]


def ours(queue: object) -> Any:
    """Return our queue behind a queue object, which may be another Python object for it. None: it
    is not one of ours."""
    try:
        found = _queues.get(hash(queue))
    except TypeError:  # not a queue at all: PyOpenCL says so
        return None
    return found() if found is not None else None


def _replace_all() -> None:
    begin_noting()
    core.native.use_events((cl.Event, cl.NannyEvent, QueueEvent, cl.Event.from_int_ptr))
    kinds = tuple(map(kind_of, TRACKED))
    core.native.use_kinds(kinds, native_error, call_of, marker_call, Watched, MAPS)
    core.native.use_queues(cl.CommandQueue, seen_elsewhere)
    names = {name for name in dir(_cl) if "enqueue" in name} | {"wait_for_events"}
    for name in sorted(names):
        original = getattr(_cl, name)
        if name == "wait_for_events":
            replacement = _waiting(original)
        else:
            replacement = _command(name, original, COMMANDS.get(name))
        for where in (_cl, cl):
            if getattr(where, name, None) is original:
                _replace(where, name, original, replacement)
    for name in SETTERS:
        original = getattr(cl.Kernel, name)
        replacement = _named(setter(name, original), original, name)
        _replace(cl.Kernel, name, original, replacement)
    _replace(cl.Event, "from_int_ptr", cl.Event.from_int_ptr, vars(QueueEvent)["from_int_ptr"])
    asked = vars(cl.Event)["get_info"]
    _replace(cl.Event, "get_info", asked, _named(_asking(asked), asked, "get_info"))
    read = vars(cl.Event)["command_queue"]
    _replace(cl.Event, "command_queue", read, property(_queue_asking(read.fget)))
    _replace(cl.Program, "build", cl.Program.build, _building(cl.Program.build))
    for name, replacement in _releases(cl.SVMAllocation).items():
        original = getattr(cl.SVMAllocation, name)
        _replace(cl.SVMAllocation, name, original, _named(replacement, original, name))


def _replace(where: object, name: str, original: object, replacement: object) -> None:
    setattr(where, name, replacement)
    _replaced.append((where, name, original, replacement))


def _put_back_if_unused() -> None:
    if _queues or _words or _kept:
        return
    for where, name, original, replacement in _replaced:
        if vars(where).get(name) is replacement:
            setattr(where, name, original)
    _replaced.clear()
    foreign_programs.forget()


def _named(replacement: Original, original: Original, name: str) -> Original:
    replacement.__name__ = name
    replacement.__doc__ = original.__doc__
    return replacement


def _keep_words() -> None:
    """Wait for all that programs were told is complete, before an operation that cannot wait for
    our launches."""
    given = core.native.words_to_keep()
    if not given:
        return
    for keep in list(_words):
        keep()
    core.native.note_kept(given)  # only now: another thread must not go on before


def _command(name: str, original: Original, parameters: Parameters | None) -> Original:
    """Return the replacement of a function of PyOpenCL that takes a queue."""
    position = parameters.index("queue") if parameters else 0
    waits = parameters.index("wait_for") if parameters and "wait_for" in parameters else -1

    def otherwise(*args: Any, **keywords: Any) -> object:
        queue = args[position] if len(args) > position else keywords.get("queue")
        found = ours(queue)
        if found is not None and found.resumes_bypass():
            return replacement(*args, **keywords)
        if found is not None:
            given = dict(zip(parameters, args, strict=False)) if parameters else None
            return found._command(name, original, args, keywords, given)
        seen_elsewhere[name] += 1
        _keep_words()
        if "wait_for" in keywords:
            keywords["wait_for"] = native_events(keywords["wait_for"])
        elif 0 <= waits < len(args):
            args = (*args[:waits], native_events(args[waits]), *args[waits + 1 :])
        return original(*args, **keywords)

    replacement = otherwise if parameters is None else _of_core(original, otherwise, parameters)
    return _named(replacement, original, name)


def _of_core(original: Original, otherwise: Original, parameters: Parameters) -> Original:
    """Return a replacement by the core, which lets a command bypass the runtime, makes a launch of
    it, or waits for events. An unusual call goes to `otherwise`."""
    queue, waits, blocks = (
        parameters.index(name) if name in parameters else -1
        for name in ("queue", "wait_for", "is_blocking")
    )
    names = tuple(map(sys.intern, parameters))
    tracked = TRACKED.get(original.__name__, 0)
    return core.native.Command(original, otherwise, names, queue, waits, blocks, tracked)


def _asking(original: Original) -> Original:
    """Return the replacement of `Event.get_info`."""

    def get_info(self: cl.Event, what: cl.event_info) -> object:
        found = original(self, what)
        return command_queue_of(self, found) if what == cl.event_info.COMMAND_QUEUE else found

    return get_info


def _queue_asking(original: Original) -> Original:
    """Return the replacement of what reads `Event.command_queue`."""

    def command_queue(self: cl.Event) -> object:
        return command_queue_of(self, original(self))

    return command_queue


def _building(original: Original) -> Original:
    """Return the replacement of `Program.build`."""

    @functools.wraps(original)
    def build(
        self: cl.Program, options: Sequence[str] | None = None, *args: object, **keywords: object
    ) -> object:
        if isinstance(options, Iterator):  # it can be read once only
            options = tuple(options)
        try:
            found = original(self, options, *args, **keywords)
        except cl.Error as error:
            if (hint := advice(str(error))) and sys.version_info >= (3, 11):
                error.add_note(hint.strip())
            raise
        if _replaced:
            foreign_programs.note(self, options)
        return found

    return build


def _releases(allocation: type[cl.SVMAllocation]) -> dict[str, Original]:
    """Return the replacements of the methods that free shared memory. PyOpenCL lets the driver's
    own queue free it, which does not know our launches."""
    at_once, behind = allocation.release, allocation.enqueue_release

    def enqueue_svm_free(
        svm: cl.SVMAllocation, queue: cl.CommandQueue, wait_for: Events = None
    ) -> cl.Event:
        return behind(svm, queue, wait_for)

    enqueue = _command("enqueue_svm_free", enqueue_svm_free, FREE)

    def enqueue_release(
        self: cl.SVMAllocation, queue: object = None, wait_for: Events = None
    ) -> object:
        queue = self._queue if queue is None else queue
        return enqueue(self, ours(queue) or queue, wait_for)

    def release(self: cl.SVMAllocation) -> None:
        if self._queue is not None:
            enqueue_release(self)
            return
        _keep_words()
        at_once(self)

    return {"release": release, "enqueue_release": enqueue_release}


def _waiting(original: Original) -> Original:
    """Return the replacement of `wait_for_events`."""

    def wait_for_events(events: Sequence[cl.Event]) -> None:
        others = []
        for event in events:
            if type(event) is QueueEvent:
                event.wait()
            else:
                others.append(event)
        if others or not events:
            original(others)

    replacement = _of_core(original, wait_for_events, ("wait_for",))
    return _named(replacement, original, "wait_for_events")
