"""The check `uninitialised`: launches read only bytes that were written before.

Input: the bytes that launches read and write. Output: the first unwritten byte that a transfer
reads, and the record of written bytes. A kernel is judged by trials, as its declarations are. It
may have an array with unwritten bytes if it does not read these.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .case import Case, Trial
from .memory import Interval, Region


def first_unwritten(reads: Sequence[Interval]) -> tuple[Region, int] | None:
    """Return the first byte in `reads` that was never written."""
    for region, low, high in reads:
        unwritten = region.unwritten[low:high]
        if unwritten.any():
            return region, low + int(np.argmax(unwritten))
    return None


def note_written(case: Case, real: Trial, trials: Sequence[Trial]) -> None:
    """Mark a kernel's declared writes as written, except the bytes that it left alone."""
    if trials:
        for (index, low, high), alone in case.left_alone(real, trials[0]):
            window = case.windows[index]
            window.region.unwritten[window.low + low : window.low + high] &= alone
        return
    for one in case.writes:
        one.region.unwritten[one.low : one.high] = False
