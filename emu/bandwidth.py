"""Memory bandwidth, shared evenly: groups that run together slow each other down.

Input: batches of groups with bytes to move. Output: a call when a batch has moved its bytes. All
groups have the same rate: the device's rate divided by their number, and at most the rate of one
group.

Since rates are equal, one count is enough: the bytes that each group could have moved since the
beginning (`_given`). A batch ends when this has grown by the bytes of one of its groups. So a
change of the number of groups costs one step, whatever runs.

Invariant: counts are whole 2^-20 bytes, rounded down, so the device never moves too much.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Generic, TypeVar

from acs_cl.emu.engine import END, Engine
from acs_cl.emu.spec import GpuSpec

Batch = TypeVar("Batch")
"""Groups that are placed and end together, of any kind that the device has."""

SCALE = 1 << 20


class Bandwidth(Generic[Batch]):
    """The memory of a device in an engine."""

    def __init__(self, engine: Engine, spec: GpuSpec, through: Callable[[Batch], None]) -> None:
        self.engine = engine
        self._through = through
        self._most = spec.bytes_per_ns * SCALE
        self._of_one = spec.group_bytes_per_cycle * spec.clock_mhz * SCALE // 1000
        self._given = 0
        self._groups = 0
        self._rate = 0
        self._since = 0
        self._sequence = 0
        self._moving: list[tuple[int, int, Batch, int]] = []
        """Sorted by the value of `_given` at their ends."""

    def begin(self, batch: Batch, nbytes: int, groups: int) -> None:
        """Let `groups` groups begin to move `nbytes` each."""
        self._bring_up_to_date()
        self._sequence += 1
        heappush(self._moving, (self._given + nbytes * SCALE, self._sequence, batch, groups))
        self._groups += groups
        self._plan()

    def _bring_up_to_date(self) -> None:
        self._given += (self.engine.now - self._since) * self._rate
        self._since = self.engine.now

    def _plan(self) -> None:
        """Compute the new rate, and so the time of the next end. Earlier plans lapse."""
        self._sequence += 1
        if self._moving:
            self._rate = min(self._of_one, self._most // self._groups)
            wait_ns = max(0, -(-(self._moving[0][0] - self._given) // self._rate))
            self.engine.at(self.engine.now + wait_ns, END, self._look, self._sequence)
        else:
            self._rate = 0

    def _look(self, plan: int) -> None:
        if plan != self._sequence:
            return
        self._bring_up_to_date()
        while self._moving and self._moving[0][0] <= self._given:
            _, _, batch, groups = heappop(self._moving)
            self._groups -= groups
            self._through(batch)
        self._plan()
