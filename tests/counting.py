"""What a piece of work takes, without a clock.

In: a function. Out: how many functions of Python it calls.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def calls(work: Callable[[], object]) -> int:
    many = 0

    def look(frame: FrameType, event: str, argument: object) -> None:
        nonlocal many
        many += event == "call"

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return many
