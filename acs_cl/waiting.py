"""Waits that a signal can end, where there is no native core: `_core/waiting.cpp` and `lock.cpp`
are the twins, and say why.

In: a driver's event, or a lock that is held. Out: whether what was waited for has come. A driver's
wait cannot be left, so a thread waits in the driver, and the main one for that thread.

Invariant: `Lock.wait` gives the lock back while it waits, and has it again when it returns or
raises. Signals are not put off while a lock is held: only the native core does that.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import pyopencl as cl

_STATUS = cl.event_info.COMMAND_EXECUTION_STATUS


def wait_for_event(event: Any, seconds: float = -1) -> bool:
    """Block until an event has ended, for so many seconds at most; below 0: without end."""
    if event.get_info(_STATUS) <= 0:
        return True
    done = threading.Event()

    def wait() -> None:
        with contextlib.suppress(cl.Error):
            event.wait()
        done.set()

    threading.Thread(target=wait, name="acs_cl wait", daemon=True).start()
    return done.wait(None if seconds < 0 else seconds)


class Lock:
    """As the core's, but for signals."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._moved = threading.Condition(self._lock)
        self.acquire = self._lock.acquire
        self.release = self._lock.release
        self.notify = self._moved.notify_all

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def _is_owned(self) -> bool:
        return self._lock._is_owned()  # type: ignore[attr-defined, no-any-return]

    def wait(self, event: int = 0, seconds: float = -1) -> bool:
        """Until an event, given by its handle, has ended; without one until somebody notifies."""
        if not event:
            return self._moved.wait(None if seconds < 0 else seconds)
        state = self._lock._release_save()  # type: ignore[attr-defined]
        try:
            return wait_for_event(cl.Event.from_int_ptr(event, True), seconds)
        finally:
            self._lock._acquire_restore(state)  # type: ignore[attr-defined]
