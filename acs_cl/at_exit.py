"""How a program ends: runtimes at exit, at the end of a `with` block, and after Ctrl-C.

A kernel may never end. A driver's own handlers at exit then wait forever, or free what the kernel
uses, which is a crash. PoCL's do either. A program that was interrupted must end all the same. So
launches in flight get a moment (`GRACE_S`), and then stderr names them. The process ends without
the driver's handlers: by itself, or by force once its main thread has done nothing for `LAST_S`.
Another Ctrl-C ends it at once. Launches that a watchdog has given up are left in the same way.

Input: runtimes, and the reason why they are left. Output: they are closed. Or they are kept forever
with their launches, because the device may still write to their memory.

Invariant: without an interrupt or a watchdog everything is waited for, however long that takes.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from time import perf_counter
from typing import Literal, TypeAlias

from . import closing, core
from .errors import CheckError, PoisonedError, StalledError
from .host.output import say
from .launch.engine import Engine
from .launch.waits import under_way

GRACE_S = 2.0
"""How long launches in flight may take to end after Ctrl-C."""

SHORT_S = 0.1
"""How long of that nothing is printed."""

LAST_S = 1.0
"""How long the interpreter may do nothing before it ends, while a launch still runs."""

INTERRUPTED = 130
"""Exit status of a program that Ctrl-C ended, as in shells."""

FAILED = 1
"""Exit status after a watchdog, if the program never heard of the stall and would report success,
or if it is ended by force; and if a runtime that is closed at exit has a failed launch that the
program never asked for, or a check finds an error then. Otherwise the program's own status
stays."""

GIVEN_UP = KeyboardInterrupt, StalledError
"""Exceptions that end a program without further waiting."""

Own: TypeAlias = Literal["none", "failed", "any"]
"""Which of the program's own exit statuses replace ours."""

interrupted = False
"""Whether Ctrl-C ends the program although it has caught that. Set by code that knows."""

_left: list[Engine] = []
"""Runtimes that were left with launches running."""

_again = False
"""Whether another Ctrl-C came meanwhile."""


def leave(engine: Engine, kind: type[BaseException] | None) -> None:
    """Close an engine at the end of a `with` block. `kind`: of the exception that ended it."""
    if kind is not None and issubclass(kind, GIVEN_UP):
        _close_soon(engine, issubclass(kind, KeyboardInterrupt))
        return
    try:
        closing.close(engine, quiet=kind is not None)
    except StalledError:
        _close_soon(engine, False)
        raise


def collected(engine: Engine) -> None:
    """Close an engine that is no longer used. A finalizer loses exceptions, so an interrupt is
    raised again right after. After an interrupted command the engine gets only a moment."""
    if interrupted:
        with contextlib.suppress(KeyboardInterrupt):  # the interrupt is noted
            _close_soon(engine, True)
        return
    try:
        closing.close(engine, quiet=True, tells=_tell)
    except StalledError:
        _left.append(engine)  # it has said what runs
    except KeyboardInterrupt:
        _left.append(engine)
        import signal  # takes longer to load than this module, and few programs are interrupted

        threading.Timer(0.01, signal.raise_signal, (signal.SIGINT,)).start()


def _close_soon(engine: Engine, is_interrupted: bool) -> None:
    """Close an engine if that takes only a moment. Otherwise say what still runs, and keep it.
    `is_interrupted`: because of Ctrl-C, not of a watchdog."""
    if engine in _left:
        return
    global _again
    closed, why = False, "interrupted" if is_interrupted else "given up"
    try:
        closed = closing.close(engine, quiet=True, until=perf_counter() + SHORT_S)
        if not closed:
            _say(why, f"waiting {GRACE_S:g} s, until another Ctrl-C, for", engine)
            closed = closing.close(engine, quiet=True, until=perf_counter() + GRACE_S)
    except StalledError:
        pass
    except KeyboardInterrupt:
        _again = True
        raise
    finally:
        if not closed:
            _left.append(engine)
            _say(why, "still running:", engine)


def _say(why: str, what: str, engine: Engine) -> None:
    """Name the launches in flight on stderr."""
    with engine.lock:
        launches = under_way(engine)
    say(f"acs_cl: {why}; {what} {launches} ({engine!r})")


def _tell(error: Exception) -> None:
    """Print what nobody can catch."""
    say(f"acs_cl: {type(error).__name__}: {error}")


def _tell_at_the_end(error: Exception) -> None:
    """Print it, and let the program fail: a check has found it wrong, or a launch failed and it
    never asked."""
    _tell(error)
    if isinstance(error, (CheckError, PoisonedError)):
        core.native.fail_at_the_end(FAILED)


def _at_exit(again: bool = False) -> None:
    """Close every runtime. `again`: Ctrl-C came during an earlier call."""
    last = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)  # not at a prompt
    is_interrupted = again or interrupted or isinstance(last, KeyboardInterrupt)
    ends = is_interrupted or isinstance(last, GIVEN_UP)
    is_news = False
    try:
        if not ends:
            for engine in closing.engines():
                if engine not in _left:
                    closing.close(engine, quiet=True, tells=_tell_at_the_end)
    except GIVEN_UP as error:
        ends, is_news, is_interrupted = True, True, isinstance(error, KeyboardInterrupt)
    if ends:
        with contextlib.suppress(KeyboardInterrupt):  # the interrupt is noted
            for engine in closing.engines():
                _close_soon(engine, is_interrupted)
    if _left:
        _end(0 if _again else LAST_S, is_interrupted, is_news)


def _end(seconds: float, is_interrupted: bool, is_news: bool) -> None:
    """End the process while a launch runs that nobody can stop. Handlers at exit get `seconds`,
    except those of drivers, which would free what still runs, or wait for it. `is_news`: the
    program has not heard of it."""
    import signal

    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # any object may be there, and this is the end
            stream.flush()
    if seconds:
        status = INTERRUPTED if is_interrupted else FAILED
        own: Own = "none" if is_interrupted else "failed" if is_news else "any"
        core.native.end_process(seconds, status, own, _left)
    else:  # no Python thread runs while the interpreter ends
        os._exit(INTERRUPTED)


atexit.register(core.native.call_to_the_end, _at_exit)
