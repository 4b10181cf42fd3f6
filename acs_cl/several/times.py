"""Times: how long launches of a kernel and size take on each device, from some of them.

In: launches, and how long those took whose times were asked for. Out: which launches to time, and
an average for each kernel, size and device. Pure.

To keep the time of a command costs some drivers longer than to launch it. So the first launches of
a kind are timed, then one of some. Those of a device are on one queue, one after another: so but
for the very first of a kind, which nobody can place well before, two are never under way at once.
"""

from __future__ import annotations

from collections.abc import Callable

from ..records import Sizes

Key = tuple[str, Sizes, Sizes | None]
"""What times are kept under: a kernel and its sizes."""

FIRST = 8
"""So many launches of a kind are timed whenever it is possible."""

RARELY = 16
"""Then one of so many."""

MOST = 16384
"""Kinds and devices of which times are kept."""

LATE = 4.0
"""A time so much longer than those before was not the kernel's own."""


class _Kind:
    """What is known of a kind of launch on one device."""

    __slots__ = ("asked", "samples", "since", "took_us")

    def __init__(self) -> None:
        self.samples = self.since = 0
        """Launches that were timed, and those since the last one of them."""
        self.asked = 0
        """The newest launch that was to be timed."""
        self.took_us: float | None = None


class Times:
    """The times of a runtime."""

    def __init__(self, devices: int) -> None:
        self.asked: dict[int, tuple[Key, int]] = {}
        """{launch under way whose time is wanted: what it is kept under}."""
        self._busy = [0] * devices
        """The newest launch of each device that was to be timed, of any kind."""
        self._kinds: dict[tuple[Key, int], _Kind] = {}

    def took_us(self, key: Key | None, device: int) -> float | None:
        """How long such launches take; None: not known."""
        kind = self._kinds.get((key, device)) if key is not None else None
        return kind.took_us if kind is not None else None

    def ask(
        self, number: int, key: Key | None, device: int, is_live: Callable[[int], bool]
    ) -> None:
        """Launch `number` is about to be made: have it timed if that is due. `is_live`: whether a
        launch has not ended."""
        if key is None:
            return
        kind = self._kinds.get((key, device))
        if kind is None:
            if len(self._kinds) >= MOST:
                self._kinds.clear()
                self.asked.clear()
            kind = self._kinds[key, device] = _Kind()
        kind.since += 1
        if is_live(kind.asked if not kind.samples else self._busy[device]):
            return
        if kind.samples < FIRST or kind.since >= RARELY:
            self.asked.pop(kind.asked, None)  # of one that failed before it ran
            kind.since = 0
            kind.asked = self._busy[device] = number
            self.asked[number] = key, device

    def due(self, key: Key, device: int) -> None:
        """Have the next launch of a kind timed."""
        if (kind := self._kinds.get((key, device))) is not None:
            kind.since = RARELY

    def took(self, number: int, took_us: float | None) -> None:
        """Launch `number` took so long; None: nobody knows."""
        kind = self._kinds.get(self.asked.pop(number))
        if kind is None or took_us is None:
            return
        before = kind.took_us if kind.took_us is not None else took_us
        kind.samples += 1
        kind.took_us = 0.75 * before + 0.25 * min(took_us, LATE * before)
