"""Clocks of devices, compared with the host's clock and with one another.

Input: launches that were observed. Output: how far a clock is ahead of the host's, and launches of
several devices with times on one clock. A command is queued after its call began, and ends before
the host sees its end. So each launch bounds the distance between both clocks.

Invariant: a comparison of two clocks always comes with its possible error. The model's clock cannot
be compared with the host's.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..records import NamedTuple
from .slices import Slice


class Clocks(NamedTuple):
    """The clock of the device and its distance from the host's. It is `ahead_ns` ahead, with an
    error of at most `error_ns`. None: not known."""

    clock: str
    ahead_ns: int | None
    error_ns: int

    @property
    def comparable(self) -> bool:
        """Tell whether times of the device can be compared with times of the host."""
        return self.ahead_ns is not None

    def on_host(self, one: Slice, ns: int) -> int:
        """Return a time of a launch on the host's clock, where the distance is known."""
        return ns if one.clock == "host" or self.ahead_ns is None else ns - self.ahead_ns


def clocks_of(slices: Sequence[Slice]) -> Clocks:
    """Compare the device's clock with the host's."""
    timed = [one for one in slices if one.clock != "host"]
    if not timed:
        return Clocks("host", 0, 0)
    several = [[one for one in timed if one.device == device] for device in _devices(timed)]
    found = [_of_device(some) for some in several]
    return found[0]._replace(error_ns=max(one.error_ns for one in found))


def on_one_clock(slices: Sequence[Slice]) -> list[Slice]:
    """Convert the times of all devices to the clock of the first one. Launches of a device keep
    their times if its distance from the host's clock is not known."""
    timed = [one for one in slices if one.clock == "device"]
    devices = _devices(timed)
    if len(devices) < 2:
        return list(slices)
    ahead = {
        device: _of_device([one for one in timed if one.device == device]).ahead_ns
        for device in devices
    }
    first = ahead[devices[0]]
    by = {
        device: first - one if first is not None and one is not None else 0
        for device, one in ahead.items()
    }
    return [_moved(one, by[one.device]) if one.clock == "device" else one for one in slices]


def _moved(one: Slice, by: int) -> Slice:
    handed = one.handed_ns and one.handed_ns + by
    return one._replace(start_ns=one.start_ns + by, end_ns=one.end_ns + by, handed_ns=handed)


def _devices(timed: Sequence[Slice]) -> list[int]:
    return sorted({one.device for one in timed})


def _of_device(timed: Sequence[Slice]) -> Clocks:
    clock = timed[0].clock
    seen = [one for one in timed if one.called_ns and one.seen_ns]
    if clock != "device" or not seen:
        return Clocks(clock, None, 0)
    # a launch was handed over in its call, unless another one came closer to its own call
    first = min(seen, key=lambda one: (one.handed_ns or one.start_ns) - one.called_ns)
    most = (first.handed_ns or first.start_ns) - first.called_ns
    least = max(one.end_ns - one.seen_ns for one in seen)
    if first.handed_ns:
        least = max(least, most - first.hazards_ns - first.submit_ns)
    return Clocks(clock, (most + least) // 2, abs(most - least) // 2 + 1)
