"""Foreign programs: those that PyOpenCL built while there was an `acs.Queue`, and their sources.

Input: each program, after PyOpenCL's `Program.build`. Output: its source, by the handle of the
program. Without the source every argument of a kernel counts as read and written. Intel's CPU
runtime forgets the program of a kernel after its owner has released it. Drivers forget the source
of a program from PyOpenCL's cache of binaries.

Only the newest programs are kept alive. Of others the source is known while the program has them.
"""

from __future__ import annotations

import threading
from collections import deque
from weakref import WeakValueDictionary

import pyopencl as cl

KEPT = 64
"""The newest programs, which are kept alive: those whose kernels may not have been launched yet."""

_lock = threading.Lock()
_newest: deque[cl.Program] = deque(maxlen=KEPT)
_programs: WeakValueDictionary[int, cl.Program] = WeakValueDictionary()


def note(program: cl.Program) -> None:
    """Keep a program, and remember its source."""
    with _lock:
        _newest.append(program)
        _programs[program.int_ptr] = program


def forget() -> None:
    """Release all of them."""
    with _lock:
        _newest.clear()
        _programs.clear()


def source_of(handle: int) -> str:
    """Return the source of the program with this handle. Empty: it was not noted."""
    source = getattr(_programs.get(handle), "_source", "")
    return source.decode(errors="replace") if isinstance(source, bytes) else source


def is_held(program: cl.Program | None) -> bool:
    """Tell whether a program that was noted still has its Python object."""
    return program is not None and program.int_ptr in _programs
