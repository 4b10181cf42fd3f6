"""Interception: what PyOpenCL's functions are replaced by while there is an `acs.Queue`.

In: calls of the functions of `pyopencl._cl` in which every command of a PyOpenCL program ends, and
of the methods that set a kernel's arguments or build a program. Out: commands on an `acs.Queue` go
to that queue's `_command`; on any other queue they do what they always did.

Invariants:
- Nothing is replaced unless a queue of ours lives (`enter`), and all of it is put back with the
  last one (`leave`), but for what somebody else has replaced since then. A replacement that
  somebody kept works as the original from then on, and as a replacement again with the next queue.
- Programs that are built meanwhile are noted (`built`), since drivers forget their sources.
- A kernel remembers the arguments that it was given while functions are replaced. What was set
  before, or by a call that failed, is not known, and then the kernel says so.
"""

# Long because: PyOpenCL's functions have to be named, each with its parameters.

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyopencl as cl
from pyopencl import _cl

from .. import core
from ..devices import built
from ..devices.driver import Events
from .bypass import SETTERS, begin_noting, command, setter
from .calls import COMMANDS, Original, Parameters
from .events import QueueEvent, native_events

_LAUNCHES = {"enqueue_map_buffer", "enqueue_map_image"}
"""What never goes to the driver's own queue as it is: its end would not be seen."""

seen_elsewhere: Counter[str] = Counter()
"""Commands on queues that are not ours, while there were some."""

_lock = threading.RLock()
_queues: dict[int, weakref.ref[Any]] = {}
"""{hash of a queue, which is that of the driver's: the queue}."""

_replaced: list[tuple[object, str, object, object]] = []
"""(where, name, original, replacement)."""

_kept = 0


def is_entered() -> bool:
    """Say whether queues are alive, so that functions are replaced."""
    return bool(_queues)


def enter(queue: cl.CommandQueue) -> None:
    """A queue of ours begins. The first one replaces PyOpenCL's functions."""
    with _lock:
        _queues[hash(queue)] = weakref.ref(queue)
        core.native.note_queue(hash(queue), True)
        if not _replaced:
            _replace_all()


def leave(key: int) -> None:
    """The queue with this hash is gone. The last one puts everything back."""
    with _lock:
        _queues.pop(key, None)
        core.native.note_queue(key, False)
        if not _queues and not _kept:
            _put_back()


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """In the block functions are replaced also while there is no queue, so that a program which
    takes some of them by name takes the replacements."""
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
            if not _queues and not _kept:
                _put_back()


def ours(queue: object) -> Any:
    """Our queue behind a queue object, which may be another Python object for it; None if there is
    none."""
    try:
        found = _queues.get(hash(queue))
    except TypeError:  # not even a queue: PyOpenCL says so
        return None
    return found() if found is not None else None


def _replace_all() -> None:
    begin_noting()
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
    _replace(cl.Program, "build", cl.Program.build, _building(cl.Program.build))
    for name, replacement in _releases(cl.SVMAllocation).items():
        original = getattr(cl.SVMAllocation, name)
        _replace(cl.SVMAllocation, name, original, _named(replacement, original, name))


def _replace(where: object, name: str, original: object, replacement: object) -> None:
    setattr(where, name, replacement)
    _replaced.append((where, name, original, replacement))


def _put_back() -> None:
    for where, name, original, replacement in _replaced:
        if getattr(where, name, None) is replacement:
            setattr(where, name, original)
    _replaced.clear()
    built.forget()


def _named(replacement: Original, original: Original, name: str) -> Original:
    replacement.__name__ = name
    replacement.__doc__ = original.__doc__
    return replacement


def _keep_words() -> None:
    """Somebody does something that cannot be made to wait for launches of ours."""
    if not core.native.take_word():
        return
    try:
        for reference in list(_queues.values()):
            if (queue := reference()) is not None:
                queue.keep_word()
    except BaseException:
        core.native.give_word()  # which is not kept yet
        raise


def _command(name: str, original: Original, parameters: Parameters | None) -> Original:
    """What a function of PyOpenCL's that takes a queue is replaced by."""
    position = parameters.index("queue") if parameters else 0
    waits = parameters.index("wait_for") if parameters and "wait_for" in parameters else -1

    def otherwise(*args: Any, **keywords: Any) -> object:
        queue = args[position] if len(args) > position else keywords.get("queue")
        found = ours(queue)
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

    if parameters is None or name in _LAUNCHES:
        return _named(otherwise, original, name)
    return _named(command(original, otherwise, parameters), original, name)


def _building(original: Original) -> Original:
    """What `Program.build` is replaced by."""

    @functools.wraps(original)
    def build(self: cl.Program, *args: object, **keywords: object) -> object:
        found = original(self, *args, **keywords)
        if _replaced:
            built.note(self)
        return found

    return build


def _releases(allocation: type[cl.SVMAllocation]) -> dict[str, Original]:
    """What the methods of shared memory that give it back are replaced by: PyOpenCL has the
    driver's own queue free it, which knows nothing of our launches."""
    at_once, behind = allocation.release, allocation.enqueue_release

    def enqueue_svm_free(
        svm: cl.SVMAllocation, queue: cl.CommandQueue, wait_for: Events = None
    ) -> cl.Event:
        return behind(svm, queue, wait_for)

    enqueue = _command("enqueue_svm_free", enqueue_svm_free, ("svm", "queue", "wait_for"))

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
    """What `wait_for_events` is replaced by."""

    def wait_for_events(events: Sequence[cl.Event]) -> None:
        others = []
        for event in events:
            if type(event) is QueueEvent:
                event.wait()
            else:
                others.append(event)
        if others or not events:
            original(others)

    replacement = command(original, wait_for_events, ("wait_for",))
    return _named(replacement, original, "wait_for_events")
