"""Ctrl-C at chosen moments, which no clock decides.

In: an expression, or the name of a function. Out: SIGINT in the main thread, as it comes there.
"""

from __future__ import annotations

import _thread
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Ctrl:
    """`-Ctrl()` is Ctrl-C that Python hears of at the next call."""

    def __neg__(self) -> None: ...

    __neg__ = staticmethod(_thread.interrupt_main)  # type: ignore[assignment]  # noqa: F811


@contextmanager
def interrupted(function: str, turn: int) -> Iterator[list[int]]:
    """Send Ctrl-C at the `turn`th call of a function of that name, or call of C's in it.

    The list has these turns so far.
    """
    turns: list[int] = []

    def look(frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_return") and frame.f_code.co_name == function:
            turns.append(len(turns) + 1)
            if turns[-1] == turn:
                signal.raise_signal(signal.SIGINT)

    sys.setprofile(look)
    try:
        yield turns
    finally:
        sys.setprofile(None)
