"""Built: programs that PyOpenCL built while there was an `acs.Queue`, and their sources.

Input: each program, after PyOpenCL's `Program.build`. Output: its source, by the handle of the
program. Without the source every argument of a kernel counts as read and written. Intel's CPU
runtime forgets the program of a kernel after its owner has released it. Drivers forget the source
of a program from PyOpenCL's cache of binaries.

Invariant: a noted program stays alive, so no other program gets its handle.
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
    """Release all of them."""
    with _lock:
        _programs.clear()


def source_of(handle: int) -> str:
    """Return the source of the program with this handle. Empty: it was not noted."""
    source = getattr(_programs.get(handle), "_source", "")
    return source.decode(errors="replace") if isinstance(source, bytes) else source
