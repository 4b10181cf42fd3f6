"""Claims about time, on a machine that has other work, too."""

from __future__ import annotations

from collections.abc import Callable


def undisturbed(claim: Callable[[], None], tries: int = 8) -> None:
    """Make a claim about times until it holds once.

    Other work on the machine may hold up any of two sides, and makes none quicker. So a claim that
    holds in one try is true, and one that fails in all of them is not.
    """
    for left in reversed(range(tries)):
        try:
            claim()
        except AssertionError:
            if not left:
                raise
        else:
            return
