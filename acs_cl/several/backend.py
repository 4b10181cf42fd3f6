"""The backend of several devices: the lanes of each.

In: launches, each with the device that it was placed on. Out: their ends, and how long they took.

Invariant: a device is never told of a launch on another one. What crosses devices is held on the
host until it may start, so a launch that comes here waits for launches of its own device only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from contextlib import suppress

import pyopencl as cl

from .. import core
from ..backends.queues import HostQueues
from ..devices.driver import OwnKernel
from ..launch.backend import Backend, Ended
from ..records import Launch
from .times import Key

REMEMBERED = 4096
"""Launches that are over and of which it is known where they ran."""


class Several(Backend):
    """A backend for each device."""

    def __init__(
        self,
        backends: Sequence[HostQueues],
        names: Sequence[str],
        timed_lanes: Callable[[], Sequence[HostQueues]],
    ) -> None:
        queues = [queue for one in backends for queue in one.queues]
        super().__init__(queues, backends[0].profiling)
        self._timed_lanes = timed_lanes
        self.name = backends[0].name
        self.backends = backends
        self._names = names
        self._device: dict[int, int] = {}
        self._reasons: dict[int, str] = {}
        self._left = 0
        self.asked: Container[int] = ()
        """Launches whose times are asked for."""
        self.staying: Callable[[Key], int] = lambda key: 0
        """Says how many launches of a kernel and sizes the core may make by itself."""
        self.timed: Callable[[int, float | None], None] = lambda number, took_us: None
        """Is told how long such a launch took; None: nobody knows."""

    def with_times(self) -> Several:
        """The same devices with lanes that keep the times of all commands."""
        other = Several(self._timed_lanes(), self._names, self._timed_lanes)
        other._device, other._reasons = self._device, self._reasons
        other.asked, other.staying, other.timed = self.asked, self.staying, self.timed
        return other

    def device_of(self, number: int) -> int:
        """Say on which device a launch is."""
        return self._device.get(number, 0)

    def assign(self, number: int, device: int, reason: str) -> None:
        """Say where a launch will run, before it is handed over."""
        self._device[number] = device
        self._reasons[number] = reason

    def forget_before(self, oldest: int) -> None:
        """Forget launches that were over long ago."""
        if len(self._device) > 2 * REMEMBERED:
            for number in [one for one in self._device if one < oldest - REMEMBERED]:
                del self._device[number], self._reasons[number]

    def where(self, number: int) -> str:
        """Say where a launch runs and why."""
        device = self._device.get(number)
        if device is None:
            return f"on device 0 ({self._names[0]}): it is short, and its data is there; "
        return f"on device {device} ({self._names[device]}): {self._reasons[number]}; "

    def submit(self, launch: Launch, behind: list[cl.Event] | None = None) -> None:
        """Put a launch on a queue of its device."""
        device = self._device.get(launch.number, 0)
        upstream = tuple(one for one in launch.upstream if self._device.get(one, 0) == device)
        backend = self.backends[device]
        is_timed = launch.number in self.asked
        submit = backend.submit_timed if is_timed else backend.submit
        submit(launch._replace(upstream=upstream), behind)

    def join(self, table: core.native.Table) -> None:
        """Keep launches in the table."""
        for backend in self.backends:
            backend.join(table)

    @property
    def core_queues(self) -> core.native.Queues | None:
        """Those of the first device, where the core may make launches."""
        return self.backends[0].core_queues

    def stays(self, number: int, kernel: OwnKernel, key: Key) -> tuple[int, int, str | None]:
        """Short launches stay on the first device."""
        return self.staying(key), 0, None

    def from_queues(self, ended: Ended) -> Ended:
        """What the core has seen to end on the first device."""
        return self._all([ended])

    @property
    def waits(self) -> int:
        """Events that launches were made to wait for."""
        return sum(one.waits for one in self.backends)

    @property
    def used(self) -> Counter[int]:
        """Launches by lane, those of the first device first."""
        found: Counter[int] = Counter()
        first = 0
        for backend in self.backends:
            found.update({first + lane: many for lane, many in backend.used.items()})
            first += backend.lanes
        return found

    @property
    def in_flight(self) -> int:
        """Launches submitted and not yet reported."""
        return sum(one.in_flight for one in self.backends)

    def event(self, number: int) -> cl.Event | None:
        """The event of a launch in flight."""
        return self.backends[self._device.get(number, 0)].event(number)

    def event_for_others(self, number: int) -> cl.Event | None:
        """Only events of the first device are of the runtime's context."""
        return None if self._device.get(number, 0) else self.event(number)

    def poll(self, most: int = 64) -> Ended:
        """What has ended, on any device."""
        return self._all([one.poll(most) for one in self.backends])

    def poll_up_to(self, number: int) -> Ended:
        """The same, for a caller who waits for launch `number`."""
        return self._all([one.poll_up_to(number) for one in self.backends])

    def _all(self, ended: list[Ended]) -> Ended:
        for some in ended:
            for end in some:
                if end.number not in self.asked:
                    continue
                took_us = None
                with suppress(cl.Error):  # a driver that has no times of a command
                    times = end.event.profile
                    took_us = (times.end - times.start) / 1e3
                self.timed(end.number, took_us)
        return sorted((end for some in ended for end in some), key=lambda end: end.number)

    def oldest(self) -> cl.Event | None:
        """An event of a device that has something to do, of another one each time."""
        for step in range(len(self.backends)):
            at = (self._left + step) % len(self.backends)
            found: cl.Event | None = self.backends[at].oldest()
            if found is not None:
                self._left = at + 1
                return found
        return None

    def flush(self) -> None:
        """Start everything on every device."""
        for backend in self.backends:
            backend.flush()

    def close(self) -> None:
        """Wait, then let go of the events."""
        for backend in self.backends:
            backend.close()
