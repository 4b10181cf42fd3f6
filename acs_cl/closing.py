"""The life of a runtime: forks and closing.

Input: engines. Output: nothing. With a time limit: whether the engine was closed before it.

Invariant: nothing waits for something that cannot come. Closing gives up launches that wait for
foreign events, and a forked child refuses every call.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyopencl as cl

from . import core
from .devices import contexts
from .errors import PoisonedError, UsageError
from .launch import bases
from .launch.books import registered
from .launch.engine import Engine
from .launch.waits import FORKED, refuse_on_host_task

_timelines: Counter[str] = Counter()
"""How many timelines this process has written, by the path that was asked for."""


def engines() -> list[Engine]:
    """Return the engines of this process."""
    return [one for one in registered() if isinstance(one, Engine)]


def _after_fork() -> None:
    core.use_this_thread()
    if engines():
        contexts.inherit(engines())
    for engine in engines():
        engine.state, engine.is_closed = FORKED, True
        engine.table.usable = False
        for bypass in engine.bypasses:
            bypass.takes_more = False
        engine.lock = core.native.Lock()  # a thread that is not in this process may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def close(
    engine: Engine,
    quiet: bool,
    until: float | None = None,
    tells: Callable[[Exception], None] | None = None,
) -> bool:
    """Finish and release. `quiet`: raise nothing, for garbage collection, exit and other errors.
    `until`: as for `drain`. `tells`: takes what is not raised. Return False if a launch was in
    flight then; the engine is not closed."""
    if engine.is_closed:
        return True
    if not quiet:
        refuse_on_host_task("close")
    found: Exception | None = None
    try:
        if not engine.state:  # else an earlier call came so far, and no further in its time
            try:
                engine.sync()
            except Exception as error:  # a finding of a check, raised after all is released
                found = error
            if not engine.drain(gives_up=True, until=until):
                return False
            if engine.checker is not None and (tells or not quiet):
                try:
                    engine.checker.close()
                except Exception as error:  # a warning that the program made an error
                    found = found or error
            _shut(engine)
        # launches that other threads and host tasks made meanwhile
        if not engine.drain(gives_up=True, until=until):
            return False
        engine.gather_runs()
        with engine.lock:
            if engine.is_closed:  # another thread was faster
                return True
            engine.is_closed = True
            engine.backend.close()
            bases.take_back(engine)
            engine.table.is_closed = True
            engine.store.close()
        if engine.tracer is not None and engine.options.trace_file:
            try:
                engine.tracer.save(_next(engine.options.trace_file))
            except UsageError as error:  # a full disk: failures are to be told all the same
                found = found or error
    except cl.Error as error:
        _shut(engine)
        engine.is_closed = True
        if not quiet:
            raise
        found = found or error
    engine.programs.clear()
    engine.user_events.clear()
    if not quiet:
        if found is not None:
            raise found
        engine.failures.raise_untold()
    elif tells is not None:
        _tell_all(engine, found, tells)
    return True


def _tell_all(engine: Engine, found: Exception | None, tells: Callable[[Exception], None]) -> None:
    """Tell what was found, and the first failure. What was given up here is nobody's fault."""
    if found is not None:
        tells(found)
    try:
        engine.failures.raise_untold(given_up=False)
    except PoisonedError as error:
        tells(error)


def _next(path: str) -> str:
    """Return the file for the next timeline: numbered, if it is not the first one there."""
    _timelines[path] += 1
    count = _timelines[path]
    return path if count == 1 else str(Path(path).with_stem(f"{Path(path).stem}-{count}"))


def _shut(engine: Engine) -> None:
    """Take no more launches."""
    with engine.lock:
        engine.end_bypasses()
        engine.state = "closed"
        engine.table.usable = False
    if engine.watchdog is not None:
        engine.watchdog.stop()
