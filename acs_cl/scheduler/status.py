"""Where the status of epochs lands on the host.

In: whether the driver copies by way of memory that it has pinned, as those of GPUs do. Out: arrays
of words for a read, in such memory. A read of 640 bytes into other memory ends some 50 us later on
an H200, and its call takes 8 us more.

Invariant: an array belongs to one epoch from `take` until `give`, which comes behind the event of
the read. What is too long, or one too many at a time, lands in memory of NumPy's.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from ..devices import driver

Words = npt.NDArray[np.uint32]

PLACES, LONGEST = 8, 1024
"""Arrays at a time, and words of each."""


class Landings:
    """Arrays for reads. `pinned`: worth having."""

    def __init__(self, pinned: bool) -> None:
        self._free: list[Words] = []
        self._taken: dict[int, tuple[Words, Words]] = {}
        self._wanted = pinned

    @property
    def taken(self) -> int:
        """Arrays in pinned memory that epochs have."""
        return len(self._taken)

    @property
    def free(self) -> int:
        """Arrays in pinned memory that no epoch has."""
        return len(self._free)

    def take(self, queue: cl.CommandQueue, words: int) -> Words:
        """An array of so many words for a read on this queue."""
        if self._wanted:
            self._wanted = False
            self._free = _pinned(queue)
        if words > LONGEST or not self._free:
            return np.empty(words, np.uint32)
        place = self._free.pop()
        array = place[:words]
        self._taken[id(array)] = array, place
        return array

    def give(self, array: Words) -> None:
        """It is not needed any more."""
        if id(array) in self._taken:
            _, place = self._taken.pop(id(array))
            self._free.append(place)

    def let_go(self) -> None:
        """Of the memory; what is taken keeps it."""
        self._free.clear()
        self._wanted = False


def _pinned(queue: cl.CommandQueue) -> list[Words]:
    """Arrays in one piece of memory; none where the driver refuses."""
    try:
        return list(driver.wait_for_pinned(queue, (PLACES, LONGEST), np.dtype(np.uint32)))
    except (cl.Error, MemoryError):
        return []
