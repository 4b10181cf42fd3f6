"""Runtimes of queues: queues of one context and device share one, and it goes with the last.

Input: queues as they are made, and as they are collected. Output: the runtime of a new queue; who
shares a context with another runtime; the end of a runtime that no queue has any more.

Invariant: what the program of a queue was told is complete is complete when the queue is gone.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import pyopencl as cl

from .. import core
from ..errors import UsageError
from ..host.threads import on_host_task
from ..launch.books import promised
from ..launch.engine import Engine
from ..launch.foreign_events import all_held
from ..launch.waits import TICK_S, wait
from ..records import HostArray, Protocol
from ..runtime import Runtime
from . import patch
from .bypass import Bypass

_lock = threading.RLock()
_shared: weakref.WeakValueDictionary[tuple[int, int, bool], Runtime] = weakref.WeakValueDictionary()
"""{context, device, profiling: the runtime of the queues made for these}."""

_bypasses: weakref.WeakKeyDictionary[Engine, Bypass] = weakref.WeakKeyDictionary()
"""{the engine of a runtime: the bypass of its queues}."""

_users: dict[int, set[int]] = {}
"""{id of a runtime: its queues, by their hashes}. A finalizer may change it on this thread at any
moment. So no code may read it, compute, and write it back."""

Options: TypeAlias = dict[str, Any]

defaults: Options = {}
"""Options of the runtimes that queues make for themselves."""


class Told:
    """What the program of a queue was told: that is complete, or has to be where somebody looks who
    cannot wait for single launches. It outlives the queue."""

    __slots__ = ("complete", "is_shared", "kept")

    def __init__(self) -> None:
        self.complete = self.kept = 0
        """The last launch that the program was told is complete, and the last one for which that
        was made true."""
        self.is_shared = False
        """Whether a queue of another runtime may look at any moment, so that the word is kept at
        once."""


def chosen(
    context: cl.Context,
    device: cl.Device,
    keeps_times: bool,
    given: Runtime | None,
    options: Options,
) -> Runtime:
    """Return the runtime of a new queue: the one that the program gave, a new one with its options,
    or the one that queues of this context and device share."""
    if given is not None:
        _refuse_that_of_others(given, context, device)
        return given
    if options:
        return Runtime(device, context=context, profiling=keeps_times, **options)
    key = (context.int_ptr, device.int_ptr, keeps_times)
    with _lock:
        runtime = _shared.get(key)
        # a runtime without queues is about to go: another thread may be closing it
        if runtime is None or runtime.engine.state or not _users.get(id(runtime)):
            runtime = Runtime(device, context=context, profiling=keeps_times, **defaults)
            _shared[key] = runtime
        return runtime


def _refuse_that_of_others(runtime: Runtime, context: cl.Context, device: cl.Device) -> None:
    """Refuse a runtime that is closed, or that a queue of this context and device cannot have."""
    runtime.engine.check_open()
    if runtime.context != context or runtime.device != device:
        raise UsageError("runtime= is of another context or device; give the queue runtime.context")


def enter(runtime: Runtime, key: int) -> None:
    """Note that a queue, by its hash, has a runtime."""
    with _lock:
        _users.setdefault(id(runtime), set()).add(key)


def bypass_for(queue: cl.CommandQueue, pointer: int, keeps_times: bool, engine: Engine) -> Bypass:
    """Return the bypass that a new queue shares with those that its runtime has."""
    with _lock:
        found = _bypasses.get(engine)
        if found is None:
            # the scheduler on the device takes no launch that is to be timed
            by_overlap = engine.options.backend != "device" or keeps_times
            found = _bypasses[engine] = Bypass(queue, pointer, keeps_times, by_overlap)
        return found


class Sharing(Protocol):
    """A queue in whose context another runtime has queues."""

    def keep_word(self) -> None:
        """Make complete what the program was told is complete."""


def note_sharing() -> list[Sharing]:
    """Note which queues have a context in which another runtime has queues: these know nothing of
    the launches of the other. Return those of which this is new."""
    with _lock:
        queues, runtimes = patch.living(), defaultdict[int, set[int]](set)
        for one in queues:
            runtimes[one.runtime.context.int_ptr].add(id(one.runtime))
        new: list[Sharing] = []
        for one in queues:
            is_shared = len(runtimes[one.runtime.context.int_ptr]) > 1
            if is_shared and not one.told.is_shared:
                new.append(one)
            one.told.is_shared = is_shared
        return new


def keep_word(engine: Engine, queue: int, told: Told) -> None:
    """Wait for everything that the program of a queue, by its number, was told is complete."""
    if (complete := told.complete) > told.kept and not engine.is_closed:
        for one in reversed(engine.table.of_queue(queue, complete, False)):
            wait(engine, one)
        told.kept = max(told.kept, complete)  # only now: a signal may end the wait


def with_queues() -> list[int]:
    """Return the runtimes that have queues, by `id`."""
    return list(_users)


def leave(
    key: int,
    number: int,
    runtime: Runtime,
    bypass: Bypass | None,
    own: bool,
    unmaps: deque[tuple[HostArray, core.native.Memory]],
    keeps: Callable[[], None],
) -> None:
    """Clean up after a queue was collected; with the last one its own runtime goes. What its
    program was told is complete is complete then (`keeps`): nobody else would wait for it. This may
    be called anywhere. If this thread is inside the runtime, another thread does the rest."""
    # PyOpenCL unmaps what is dropped. The runtime still waits for that: on Intel's CPU runtime
    # nothing begins any more once a queue without order was released while a command on it ran.
    unmaps.clear()
    if bypass is not None:
        bypass.give_up(number)
    patch.leave(key)
    with _lock:
        users = _users.get(id(runtime), set())
        users.discard(key)
        if not users:
            _users.pop(id(runtime), None)
    if not users:
        note_sharing()
    rest = partial(_let_go, runtime.engine, keeps, own and not users)
    if not runtime.engine.lock.is_owned() and not on_host_task():
        rest()
        return
    with contextlib.suppress(RuntimeError):  # no thread can start while the interpreter ends
        threading.Thread(target=rest, name="acs_cl end of a queue").start()


def _let_go(engine: Engine, keeps: Callable[[], None], is_last: bool) -> None:
    """Keep the word of a queue that is gone, and with the last one release its own runtime."""
    keeps()
    patch.has_kept(keeps)
    if is_last:
        _end_gates(engine)
        engine.programs.clear()  # their kernels hold the runtime


def _end_gates(engine: Engine) -> None:
    """Run commands that wait for other queues, although their queue is gone. Closing would drop
    them. Commands that wait for user events may never come."""
    with engine.lock:
        while engine.foreign and not engine.state and not all_held(engine, promised()):
            engine.pump()
            engine.lock.wait(0, TICK_S)
