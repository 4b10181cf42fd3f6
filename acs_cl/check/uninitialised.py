"""The check `uninitialised`: nobody reads a byte that nobody wrote.

In: what launches read and write. Out: the first unwritten byte that a transfer reads, and the books
on which bytes were written. A kernel is judged by trials, like its declarations: an array of which
it does not read the unwritten part is no concern.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .case import Case, Trial
from .memory import Interval, Region


def first_unwritten(reads: Sequence[Interval]) -> tuple[Region, int] | None:
    """The first byte in `reads` that nobody wrote."""
    for region, low, high in reads:
        unwritten = region.unwritten[low:high]
        if unwritten.any():
            return region, low + int(np.argmax(unwritten))
    return None


def note_written(case: Case, real: Trial, trials: Sequence[Trial]) -> None:
    """A kernel has run: what it declares as written is, but for bytes that it left alone."""
    if trials:
        for (index, low, high), alone in case.left_alone(real, trials[0]):
            window = case.windows[index]
            window.region.unwritten[window.low + low : window.low + high] &= alone
        return
    for one in case.writes:
        one.region.unwritten[one.low : one.high] = False
