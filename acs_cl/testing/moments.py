"""A call at a named moment inside the runtime.

Input: a moment, and a call or an error. Output: `with` blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..launch import ends, gates, waits
from ..launch.engine import Engine
from ..queue.bypass import Bypass
from .changing import changed

MOMENTS: dict[str, tuple[object, str, bool]] = {
    "before an end is noted": (ends, "retire_one", False),
    "before ends are told": (Engine, "completed", False),
    "after ends are noted": (Engine, "completed", True),
    "before foreign events are looked at": (ends, "look_at_gates", False),
    "before a wait for one of several": (waits, "_wait_for_any", False),
    "before a wait for room goes on": (gates.Patience, "spend", False),
    "before a bypass": (Bypass, "begin", False),
}
"""Where each is: what has the function, its name, and whether the moment is behind it."""


@contextmanager
def at(moment: str, call: Callable[[], object]) -> Iterator[None]:
    """Call a function at one of `MOMENTS`, each time that it comes."""
    where, name, is_after = MOMENTS[moment]
    before = getattr(where, name)

    def come(*arguments: object) -> object:
        if is_after:
            before(*arguments)
        call()
        return None if is_after else before(*arguments)

    with changed(where, name, come):
        yield


@contextmanager
def interrupted(moment: str, error: BaseException, times: int = 1) -> Iterator[list[int]]:
    """Raise an error at one of `MOMENTS` inside the runtime, the first times that it comes.

    The list has a number for each time that it was raised.
    """
    raised: list[int] = []

    def interrupt() -> None:
        if len(raised) < times:
            raised.append(len(raised) + 1)
            raise error

    with at(moment, interrupt):
        yield raised
