"""Contents: what arrays had before trials, and get back behind them.

Input: the launches of a graph, and the arrays that it uses. Output: a `with` block for trials.

Invariant: at the end of the block arrays have their contents back, whatever signals come. What a
signal's handler raises comes behind that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import core
from ..memory.array import Array
from ..ranges import merged
from ..records import HostArray, Pair

if TYPE_CHECKING:
    from types import TracebackType

    from ..launch.engine import Engine

MOST_TRIES = 8
"""An upload is made again so many times, if a signal's handler ends it."""


class Contents:
    """Gives arrays back what they had, at the end of a `with` block."""

    def __init__(self, engine: Engine, saved: Sequence[tuple[Array, HostArray]]) -> None:
        self._engine = engine
        self._saved = saved
        self._raised: BaseException | None = None

    def __enter__(self) -> None:
        self._raised = None

    def _put_back(self) -> None:
        """Upload all. The part of `__exit__` in which signals come only where an upload waits."""
        for part, values in self._saved:
            for _ in range(MOST_TRIES):
                try:
                    part.set(values)
                    break
                except BaseException as error:  # a signal's handler may raise anything
                    self._raised = error

    def _end(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Raise what came meanwhile, or wait for the uploads."""
        if self._raised is not None:
            raise self._raised
        self._engine.drain()

    __exit__ = core.native.Leaving(_put_back, _end)


def saved(launches: Sequence[Pair], arrays: Sequence[Array]) -> list[tuple[Array, HostArray]]:
    """Return the bytes of the program's arrays that the launches overwrite."""
    written = [span for _, access in launches for span in access.writes]
    by_base = {array.base.number: array for array in arrays if array.base is not None}
    found = []
    for number, array in by_base.items():
        for one in merged(span for span in written if span.base == number):
            shape = (one.end - one.start,)
            part = array.view_at(one.start, shape, (1,), np.dtype(np.uint8))
            found.append((part, part.get()))
    return found
