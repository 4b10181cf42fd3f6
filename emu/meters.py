"""Meters of a run while it goes on: levels, and amounts over time.

Input: changes, with the model's time. Output: averages, and a row of numbers to draw.

Invariant: memory is limited for runs of any length; total amounts are exact.
"""

from __future__ import annotations

from acs_cl.emu.engine import Engine

BINS = 1024


class Meter:
    """A level: the present value, the largest one, and its sum over time."""

    __slots__ = ("_engine", "_since", "busy_ns", "most", "series", "total", "value")

    def __init__(self, engine: Engine, series: Series | None = None) -> None:
        self._engine = engine
        self.series = series
        """Receives the level over time."""
        self._since = 0
        self.value = self.most = self.total = 0
        self.busy_ns = 0
        """Time above zero."""

    def add(self, change: int) -> None:
        """Change the level now."""
        now = self._engine.now
        if self.value:
            passed = now - self._since
            self.total += self.value * passed
            self.busy_ns += passed
            if self.series is not None:
                self.series.add(self._since, now, self.value)
        self._since = now
        self.value += change
        if self.value > self.most:
            self.most = self.value


class Series:
    """Amounts over time in `BINS` bins, which double their width when the run gets longer."""

    def __init__(self) -> None:
        self.width_ns = 1
        self.bins = [0] * BINS

    def add(self, start_ns: int, end_ns: int, level: int) -> None:
        """Add `level` from one time to a later one."""
        if end_ns > self.width_ns * BINS:
            self._reach(end_ns)
        width = self.width_ns
        place = start_ns // width
        if end_ns <= (place + 1) * width:  # the usual case in a long run
            self.bins[place] += level * (end_ns - start_ns)
            return
        while start_ns < end_ns:
            place = start_ns // width
            until = min(end_ns, (place + 1) * width)
            self.bins[place] += level * (until - start_ns)
            start_ns = until

    def _reach(self, end_ns: int) -> None:
        while end_ns > self.width_ns * BINS:
            self.bins = [a + b for a, b in zip(self.bins[::2], self.bins[1::2], strict=True)]
            self.bins += [0] * (BINS // 2)
            self.width_ns *= 2

    def levels(self, end_ns: int) -> list[tuple[int, float]]:
        """Return start and average level of each bin until `end_ns`."""
        self._reach(end_ns)
        used = -(-end_ns // self.width_ns)
        return [(n * self.width_ns, self.bins[n] / self.width_ns) for n in range(used)]
