"""The life of a runtime and of its launches: waiting, events, gates, forks, closing.

In: a runtime, under its lock or not as each function says. Out: nothing, or events. Functions here
wait for the device; none holds the lock while it does.

Invariant: nothing waits for what cannot come: closing gives up launches that are gated on foreign
events, host tasks may not wait for launches, and a forked child refuses every call.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyopencl as cl

from . import core
from .access.arguments import foreign_span, span_by_address
from .devices import driver
from .errors import DeviceError, UsageError
from .host.threads import on_host_task
from .launch.commands import KernelCommand
from .launch.failures import Failure
from .launch.gates import Patience, all_held
from .launch.ledger import newest, oldest

if TYPE_CHECKING:
    from .records import Launch
    from .runtime import Runtime

_runtimes: weakref.WeakSet[Runtime] = weakref.WeakSet()

TICK_S = 0.01
"""How long a wait for something that is not on the device yet goes without looking."""

FORKED = "of another process: it cannot be used after a fork; make a new one here"


def register(runtime: Runtime) -> None:
    """Remember a runtime for interpreter exit and forks."""
    _runtimes.add(runtime)


def all_runtimes() -> list[Runtime]:
    """Those there are. While another thread makes one a weak set cannot be gone through."""
    while True:
        with contextlib.suppress(RuntimeError):
            return list(_runtimes)


def _after_fork() -> None:
    core.use_this_thread()
    for runtime in all_runtimes():
        runtime._state = FORKED
        runtime._ledger.usable = False
        for section in runtime._sections:
            section.passing = False
        runtime._lock = core.native.Lock()  # a thread that is not in this process may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def refuse_on_host_task(what: str) -> None:
    """A host task that waits could wait for itself."""
    if on_host_task():
        raise UsageError(
            f"{what} inside a host task: it could wait for itself; name what it needs in reads="
        )


def wait(runtime: Runtime, number: int) -> None:
    """Block until launch `number` has ended."""
    trace = runtime._trace
    if trace is None:
        _wait(runtime, number)
        return
    trace.called()
    _wait(runtime, number)
    trace.waited(number)


def _wait(runtime: Runtime, number: int) -> None:
    lock, backend = runtime._lock, runtime._backend
    with lock:
        if number not in runtime._launches:
            return
        refuse_on_host_task("waiting for a launch")
        event = backend.to_wait_for(number)
        while event is None:
            runtime._pump()
            if number not in runtime._launches:
                return
            event = backend.to_wait_for(number)
            if event is None:
                lock.wait(0, TICK_S)
        backend.flush()
        lock.wait(event.int_ptr)
        runtime._retire(backend.poll_up_to(number))


def is_done(runtime: Runtime, number: int) -> bool:
    """Whether launch `number` has ended; moves things along, as polling programs expect."""
    done = _is_done(runtime, number)
    if runtime._trace is not None:
        runtime._trace.polled(number, done)
    return done


def _is_done(runtime: Runtime, number: int) -> bool:
    with runtime._lock:
        if number not in runtime._launches:
            return True
        if runtime._state:
            return False
        runtime._pump()
        event = runtime._backend.event(number)
        if event is not None:
            runtime._backend.flush()
            return driver.status(event) <= 0
        return number not in runtime._launches


def event(runtime: Runtime, number: int) -> Any:
    """An event for launch `number`: its own, or a user event that is completed with it."""
    with runtime._lock:
        if number in runtime._launches or runtime._state is FORKED:
            runtime._check_open()
            runtime._pump()
        found = runtime._backend.event_for_others(number)
        if found is not None:
            runtime._backend.flush()
            return found
        user_event = runtime._user_events.get(number)
        if user_event is None:
            user_event = cl.UserEvent(runtime.context)
            if number in runtime._launches:
                runtime._user_events[number] = user_event
            else:
                user_event.set_status(_status(runtime, number))
        return user_event


def complete_user_event(runtime: Runtime, number: int) -> None:
    """Launch `number` has ended: so has the event that was handed out for it."""
    user_event = runtime._user_events.pop(number, None)
    if user_event is not None:
        user_event.set_status(_status(runtime, number))


def _status(runtime: Runtime, number: int) -> int:
    """How a launch ended, as an event says it."""
    return -1 if runtime._failures.knows(number) else driver.COMPLETE


def wait_for_half(runtime: Runtime) -> None:
    """The backlog is full: wait until half of it has retired. Called under the lock."""
    runtime._pump()
    if len(runtime._launches) < runtime._backlog or on_host_task():
        return
    runtime._stats.backlog_waits += 1
    patience = Patience(f"launch {runtime._number + 1}, for which the backlog has no room,")
    while (too_many := len(runtime._launches) - runtime._backlog // 2) > 0:
        if len(runtime._launches) < runtime._backlog and all_held(runtime):
            return
        _wait_for_any(runtime, next(islice(runtime._launches, too_many - 1, None)), patience)
        runtime._retire(runtime._backend.poll(runtime._backlog))


def drain(
    runtime: Runtime,
    gives_up: bool = False,
    patience: Patience | None = None,
    until: float | None = None,
) -> bool:
    """Wait until everything launched before this call has ended. `gives_up`: what waits for another
    library's event fails instead. `patience`: what waits for the program itself is an error.
    `until`: a time on `perf_counter` at which waiting ends; False if that came first."""
    with runtime._lock:
        if runtime._sections:
            runtime._end_sections()
        last = runtime._number
        launches, ledger = runtime._launches, runtime._ledger
        while 0 < oldest(launches, ledger) <= last:
            if gives_up:
                _give_up_gated(runtime)
            left_s = -1.0 if until is None else until - perf_counter()
            if until is not None and left_s <= 0:
                return False
            _wait_for_any(runtime, newest(launches, ledger, last), patience, left_s)
            runtime._retire(runtime._backend.poll_up_to(runtime._number))
    return True


def _wait_for_any(
    runtime: Runtime, best: int, patience: Patience | None, seconds: float = -1
) -> None:
    """Let the lock go until something may have ended: launch `best`, for a thread that wakes up for
    each one takes time from a CPU's kernels, or the oldest while others are held and have to be
    moved along."""
    runtime._pump()
    backend = runtime._backend
    event = None if runtime._window.held else backend.to_wait_for(best)
    if event is None:
        event = backend.oldest()
    if event is not None:
        backend.flush()
        runtime._lock.wait(event.int_ptr, seconds)
    elif runtime._launches:
        if patience is not None:
            patience.spend(runtime, _promised())
        runtime._lock.wait(0, TICK_S)


def keep_foreign(runtime: Runtime, launch: Launch) -> None:
    """Foreign memory that a poisoned launch should have written is named by what the driver calls
    it, or by its address: it stays alive while any of it is poisoned, or other memory could get its
    name."""
    command: Any = launch.command
    command = getattr(command, "command", command)  # of one whose times are wanted
    written = {span.base for span in launch.access.writes if span.base < 0}
    if not written or not isinstance(command, KernelCommand):
        return
    for memory in command.pointers[1::2]:
        span = foreign_span(memory)
        if span is None:
            continue
        kept = memory
        if isinstance(memory, cl.MemoryObject):  # the program may release what it has
            same = type(memory).from_int_ptr(memory.int_ptr, retain=True)
            kept = same, memory, memory.hostbuf
        for name in (span, span_by_address(memory, span)):  # of launches here, and on a queue
            if name is not None and name.base in written:
                runtime._failures.poison.keep(name, kept)


def _promised() -> list[Any]:
    """User events that runtimes of this process have handed out and will set."""
    return [event for runtime in all_runtimes() for event in list(runtime._user_events.values())]


def close(runtime: Runtime, quiet: bool, until: float | None = None) -> bool:
    """Finish and let go. `quiet`: raise nothing, for garbage collection, exit and other errors.
    `until`: as for `drain`; False if something was still under way then, and it is not closed."""
    if getattr(runtime, "_state", "closed"):
        return True
    if not quiet:
        refuse_on_host_task("close")
    found: Exception | None = None
    try:
        try:
            runtime._sync()
        except Exception as error:  # what a check found comes after everything is let go
            found = error
        if not drain(runtime, gives_up=True, until=until):
            return False
        if runtime._checker is not None and not quiet:
            runtime._checker.close()
        _shut(runtime)
        # what other threads and host tasks launched meanwhile
        if not drain(runtime, gives_up=True, until=until):
            return False
        with runtime._lock:
            runtime._backend.close()
        if runtime._trace is not None and runtime.options.trace_file:
            runtime._trace.save(runtime.options.trace_file)
    except cl.Error:
        _shut(runtime)
        if not quiet:
            raise
    runtime._programs.clear()
    runtime._user_events.clear()
    if not quiet:
        if found is not None:
            raise found
        runtime._failures.raise_untold()
    return True


def _shut(runtime: Runtime) -> None:
    """No more launches."""
    with runtime._lock:
        runtime._end_sections()
        runtime._state = "closed"
        runtime._ledger.usable = False


def _give_up_gated(runtime: Runtime) -> None:
    runtime._pump()
    for number in list(runtime._gates):
        del runtime._gates[number]
        error = DeviceError("the runtime was closed before the event it waits for came")
        failure: Failure = runtime._fail(runtime._launches[number], error)
        runtime._failures.doomed[number] = failure
        runtime._dispatch(runtime._window.open_gate(number))
