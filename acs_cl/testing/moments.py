"""A call at a named moment inside the runtime.

Input: a moment, and a call or an error. Output: `with` blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from ..launch import ends, foreign_events, waits
from ..launch.engine import Engine
from ..queue.bypass import Bypass
from .changing import changed

MOMENTS: dict[str, tuple[object, str, bool]] = {
    "before an end is noted": (ends, "retire_one", False),
    "before ends are told": (Engine, "poll hear", False),
    "after ends are noted": (Engine, "poll hear", True),
    "before foreign events are looked at": (ends, "still_open", False),
    "before a wait for one of several": (waits, "_wait_for_any", False),
    "before a wait for room goes on": (foreign_events.Patience, "spend", False),
    "before a bypass": (Bypass, "begin", False),
}
"""Where each is: what has the functions, their names, and whether the moment is behind them."""


@contextmanager
def at(moment: str, call: Callable[[], object]) -> Iterator[None]:
    """Call a function at one of `MOMENTS`, each time that it comes."""
    where, names, is_after = MOMENTS[moment]

    def replaced(before: Callable[..., object]) -> Callable[..., object]:
        def come(*arguments: object) -> object:
            if is_after:
                before(*arguments)
            call()
            return None if is_after else before(*arguments)

        return come

    with ExitStack() as stack:
        for name in names.split():
            stack.enter_context(changed(where, name, replaced(getattr(where, name))))
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
