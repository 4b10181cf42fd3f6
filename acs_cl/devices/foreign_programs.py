"""Foreign programs: those that PyOpenCL built while there was an `acs.Queue`, and their sources.

Input: each program, after PyOpenCL's `Program.build`. Output: its source and options, by the handle
of the program. Without the source every argument of a kernel counts as read and written. Intel's
CPU runtime forgets the program of a kernel after its owner has released it. Drivers forget the
source of a program from PyOpenCL's cache of binaries, and Rusticl forgets its options too.

Only the newest programs are kept alive. Of others the source is known while the program has them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from weakref import WeakValueDictionary

import pyopencl as cl

KEPT = 64
"""The newest programs, which are kept alive: those whose kernels may not have been launched yet."""

_lock = threading.RLock()  # the collector may call code of the program, which comes here again
_newest: deque[cl.Program] = deque(maxlen=KEPT)
_programs: WeakValueDictionary[int, cl.Program] = WeakValueDictionary()


def note(program: cl.Program, options: str | Sequence[str] | None) -> None:
    """Keep a program, and remember its source and the options that it was built with."""
    told = cl.Program._process_build_options(program.context, options)[0]
    vars(program)["acs_options"] = told
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
    return _text(getattr(_programs.get(handle), "_source", ""))


def options_of(handle: int) -> str:
    """Return the options that PyOpenCL gave the driver. Empty: it gave none, or the program was not
    noted."""
    return _text(getattr(_programs.get(handle), "acs_options", ""))


def _text(told: str | bytes) -> str:
    return told.decode(errors="replace") if isinstance(told, bytes) else told


def is_held(program: cl.Program | None) -> bool:
    """Tell whether a program that was noted still has its Python object."""
    return program is not None and program.int_ptr in _programs
