"""Built: programs that PyOpenCL built while there was an `acs.Queue`, and their sources.

In: each program, as PyOpenCL's `Program.build` has built it. Out: its source, by the handle of the
program. Intel's CPU runtime forgets the program of a kernel once its owner has released it, and
drivers forget the source of a program that came from PyOpenCL's cache of binaries. Without the
source every argument of a kernel counts as read and written.

Invariant: a program that is noted is alive, so that its handle is not another's.
"""

from __future__ import annotations

import threading
from typing import Any

KEPT = 1024
"""Programs that are kept alive; the oldest goes first."""

_lock = threading.Lock()
_programs: dict[int, Any] = {}


def note(program: Any) -> None:
    """Keep a program, and remember its source."""
    handle = program.int_ptr
    with _lock:
        _programs.pop(handle, None)
        if len(_programs) >= KEPT:
            del _programs[next(iter(_programs))]
        _programs[handle] = program


def forget() -> None:
    """Let all of them go."""
    with _lock:
        _programs.clear()


def source_of(handle: int) -> str:
    """Give the source of the program with this handle, empty if it was not noted."""
    source = getattr(_programs.get(handle), "_source", "")
    return source.decode(errors="replace") if isinstance(source, bytes) else source
