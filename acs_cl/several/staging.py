"""Staging: copies between devices, through pinned memory of the host.

Input: bytes of a base that one device has and another lacks. Output: two launches for each chunk.
One reads it into staging memory, and one writes it from there once that has ended: events do not
cross contexts, so `copies` bridges them. One chunk is read while the chunk before it is written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from .. import core
from ..memory.array import HostArray
from ..records import STAGING, interval
from .coherence import CHUNK

SMALL = 64 << 10
"""Size of the smallest pieces of staging memory."""

MOST = {SMALL: 64, 8 * SMALL: 32, CHUNK: 8}
"""Largest number of pieces of each size: so many copies are under way before one has to wait."""


class Slot:
    """A piece of staging memory."""

    __slots__ = ("base", "host", "span", "stage")

    def __init__(self, base: int, host: HostArray, hazards: core.native.Hazards) -> None:
        self.base, self.host = base, host
        self.span = interval(base, 0, host.nbytes)
        self.stage = core.native.Stage(hazards, int(host.ctypes.data), self.span)
        """What the core knows of it."""


class Staging:
    """Holds the staging memory of a runtime. `allocate` returns pinned memory."""

    def __init__(self, allocate: Callable[[int], HostArray], hazards: core.native.Hazards) -> None:
        self._allocate, self._hazards = allocate, hazards
        self._slots: dict[int, deque[Slot]] = {size: deque() for size in MOST}
        """The pieces by size; the one that was taken longest ago comes first."""

    def take(self, nbytes: int, is_used: Callable[[int], bool]) -> tuple[Slot, bool]:
        """Return staging memory for a chunk, and whether a launch in flight still uses it. If so,
        the next one has to wait for that launch."""
        size = min(size for size in MOST if nbytes <= size)
        slots = self._slots[size]
        in_use = not slots or is_used(slots[0].base)
        if in_use and len(slots) < MOST[size]:
            many = sum(map(len, self._slots.values()))
            slots.append(Slot(STAGING + many, self._allocate(size), self._hazards))
            return slots[-1], False
        slots.rotate(-1)
        return slots[-1], in_use
