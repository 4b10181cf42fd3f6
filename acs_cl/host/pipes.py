"""Readers that leave early: ``acs-cl emu … | head``.

Input: the work of a command. Output: its exit code, or the one that shells give a program whose
reader left.

Invariant: a broken pipe of stdout or stderr is no error; any other one is.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from typing import TextIO

LEFT = 128 + 13
"""As if SIGPIPE had ended the command."""


def quietly(command: Callable[[], int]) -> int:
    """Run a command until it ends or its reader leaves; return the exit code."""
    try:
        try:
            return command()
        finally:  # also if the parser leaves, after its help
            for stream in _streams():
                stream.flush()
    except BrokenPipeError:
        if not nobody_reads():
            raise
        return LEFT


def nobody_reads() -> bool:
    """Tell whether the reader of stdout or stderr has left. If so, drop the remaining output."""
    broken = [stream for stream in _streams() if _is_broken(stream)]
    for stream in broken:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    return bool(broken)


def _streams() -> list[TextIO]:
    """Return those of both that there are, and that the program has not closed."""
    both = sys.stdout, sys.stderr
    return [one for one in both if one is not None and not getattr(one, "closed", False)]


def _is_broken(stream: TextIO) -> bool:
    try:
        number = stream.fileno()
    except (OSError, ValueError):  # no file, or closed
        return False
    look = select.poll()
    look.register(number, select.POLLOUT)
    return any(found & select.POLLERR for _, found in look.poll(0))
