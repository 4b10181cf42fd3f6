"""Times of kernels: how long one of some sizes takes on each device. Only some are measured.

Input: launches, and how long the measured ones took. Output: which launches to measure, and the
median of the newest for each kernel, size and device. Pure.

A median, since the first launch of a kernel may take a hundred times as long as others: drivers
load its code then, and make the memory that it touches.

With some drivers, keeping the time of a command costs more than launching it. So the first launches
of a kind are measured, later a few. The measured ones of a device are on one queue. Two are never
in flight at once, except for the first of a kind, which cannot be placed well before its time is
known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from statistics import median_low

from ..records import Key

FIRST = 8
"""Number of first launches of a kind that are measured if possible. Later, the newest so many
count."""

RARELY = 64
"""Later, one of this many launches is measured."""

MOST = 16384
"""Largest number of kinds and devices whose times are kept."""


class _Kind:
    """Holds the times of one kind of launch on one device."""

    __slots__ = ("asked", "newest_us", "samples", "since")

    def __init__(self) -> None:
        self.samples = self.since = 0
        """The numbers of measured launches, and of launches since the last of them."""
        self.asked = 0
        """The newest launch that was to be measured."""
        self.newest_us: deque[float] = deque(maxlen=FIRST)


class Times:
    """Holds the times of a runtime."""

    def __init__(self, devices: int) -> None:
        self.first = FIRST
        """Number of first launches of a kind that are measured."""
        self.asked: dict[int, tuple[Key, int]] = {}
        """{launch in flight whose time is wanted: its key and device}."""
        self._busy = [0] * devices
        """The newest launch of each device that was to be measured, of any kind."""
        self._kinds: dict[tuple[Key, int], _Kind] = {}
        self._took: dict[Key, tuple[float | None, ...]] = {}
        """By kind: how long its launches took on each device."""
        self._unknown: tuple[float | None, ...] = (None,) * devices

    def of(self, key: Key | None) -> tuple[float | None, ...]:
        """Return how long such launches take on each device; None: not known."""
        return self._took.get(key, self._unknown) if key is not None else self._unknown

    def slowest_us(self, key: Key | None) -> float | None:
        """Return how long such launches take on the slowest device."""
        return max((one for one in self.of(key) if one is not None), default=None)

    def ask(
        self, number: int, key: Key | None, device: int, is_live: Callable[[int], bool]
    ) -> None:
        """Have launch `number`, which is about to be made, measured if that is due. `is_live` tells
        whether a launch has not ended."""
        if key is None:
            return
        kind = self._kinds.get((key, device))
        if kind is None:
            if len(self._kinds) >= MOST:
                self._kinds.clear()
                self._took.clear()
                self.asked.clear()
            kind = self._kinds[key, device] = _Kind()
        kind.since += 1
        if is_live(kind.asked if not kind.samples else self._busy[device]):
            return
        if kind.samples < self.first or kind.since >= RARELY:
            self.asked.pop(kind.asked, None)  # it failed before it ran
            kind.since = 0
            kind.asked = self._busy[device] = number
            self.asked[number] = key, device

    def due(self, key: Key, device: int) -> None:
        """Have the next launch of a kind measured."""
        if (kind := self._kinds.get((key, device))) is not None:
            kind.since = RARELY

    def is_due(self, key: Key | None, device: int) -> bool:
        """Tell whether the next launch of a kind is to be measured."""
        kind = self._kinds.get((key, device)) if key is not None else None
        return kind is not None and (kind.samples < self.first or kind.since >= RARELY)

    def took(self, number: int, took_us: float | None) -> None:
        """Note how long launch `number` took; None: not known."""
        key, device = self.asked.pop(number)
        kind = self._kinds.get((key, device))
        if kind is None or took_us is None:
            return
        kind.samples += 1
        kind.newest_us.append(took_us)
        known = self._took.get(key, self._unknown)
        self._took[key] = (*known[:device], median_low(kind.newest_us), *known[device + 1 :])
