"""Memory bandwidth, shared evenly: groups that run together slow each other down.

In: batches of groups with bytes to move. Out: a call when a batch has moved its own. All groups get
the same rate at any time, the device's over their number, and at most what one group can draw.

Since rates are equal, it is enough to count how much every group has been given since the beginning
(`_given`): a batch is through when that has grown by the bytes of one of its groups. So a change of
the number of groups costs one step, whatever runs.

Invariant: counted in whole 2^-20 bytes, rounded down, so never more is moved than the device can.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Generic, TypeVar

from acs_cl.emu.engine import END, Engine
from acs_cl.emu.spec import GpuSpec

Batch = TypeVar("Batch")
"""Groups that are placed and end together, of whatever kind the device has."""

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
        """By what will have been given when they are through."""

    def begin(self, batch: Batch, nbytes: int, groups: int) -> None:
        """`groups` groups begin to move `nbytes` each."""
        self._bring_up_to_date()
        self._sequence += 1
        heappush(self._moving, (self._given + nbytes * SCALE, self._sequence, batch, groups))
        self._groups += groups
        self._plan()

    def _bring_up_to_date(self) -> None:
        self._given += (self.engine.now - self._since) * self._rate
        self._since = self.engine.now

    def _plan(self) -> None:
        """A new rate, and so a new time at which the next is through; plans before it lapse."""
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
