"""Contents: what arrays had before trials, and get back behind them.

Input: the launches of a graph, and the arrays that it uses. Output: a `with` block for trials.

Invariant: at the end of the block arrays have their contents back, whatever signals come. What a
signal's handler raises comes behind that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..host.afterwards import Afterwards
from ..memory.array import Array
from ..ranges import merged
from ..records import HostArray, Pair

if TYPE_CHECKING:
    from ..launch.engine import Engine


class Contents(Afterwards):
    """Gives arrays back what they had, at the end of a `with` block."""

    def __init__(self, engine: Engine, saved: Sequence[tuple[Array, HostArray]]) -> None:
        self._engine = engine
        self._saved = saved

    def _steps(self) -> Iterator[Callable[[], object]]:
        return (partial(part.set, values) for part, values in self._saved)

    def _ended(self) -> None:
        self._engine.drain()


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
