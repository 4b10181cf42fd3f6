"""Afterwards: what happens at the end of a `with` block, whatever signals come.

Input: a class that says in `_steps` what has to happen. Output: a `with` block.

Invariant: at the end of the block each step has been made. What a signal's handler raises comes
behind that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from .. import core

if TYPE_CHECKING:
    from types import TracebackType

MOST_TRIES = 8
"""A step is made again so many times, if a signal's handler ends it."""


class Afterwards:
    """Makes steps at the end of a `with` block."""

    _raised: BaseException | None = None

    def _steps(self) -> Iterable[Callable[[], object]]:
        """Return the steps."""
        return ()

    def _ended(self) -> None:
        """Go on behind the steps, if no handler has raised meanwhile."""

    def __enter__(self) -> None:
        self._raised = None

    def _make(self) -> None:
        """Make the steps. The part of `__exit__` in which signals come only where a step waits."""
        for step in self._steps():
            for _ in range(MOST_TRIES):
                try:
                    step()
                    break
                except BaseException as error:  # a signal's handler may raise anything
                    self._raised = error

    def _end(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._raised is not None:
            raise self._raised
        self._ended()

    __exit__ = core.native.Leaving(_make, _end)
