"""The backend of several devices: it has the lanes of each of them.

Input: launches, each with its device. Output: the ends of the launches, and how long they took.

Invariant: a device never hears of a launch on another device. A launch with an upstream elsewhere
is held on the host until it may start. So each launch here waits for launches of its own device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from contextlib import suppress

import pyopencl as cl

from .. import core
from ..backends.queues import HostQueues
from ..devices.driver import OwnKernel
from ..launch.backend import Backend, Ended, LaneCounts, Lease
from ..records import Key, Launch

REMEMBERED = 4096
"""How many ended launches the backend still knows the device of."""


class Several(Backend):
    """Sends each launch to the backend of its device."""

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
        self._ended: Ended = []
        """What the caller has not taken yet."""
        self.asked: Container[int] = ()
        """The launches whose times are wanted."""
        self.staying: Callable[[Key], int] = lambda key: 0
        """Returns how many launches of a kernel and sizes the core may make by itself."""
        self.timed: Callable[[int, float | None], None] = lambda number, took_us: None
        """Receives the time of such a launch; None: the driver has no time."""

    def with_times(self) -> Several:
        """Return a backend of the same devices whose lanes keep the times of all commands."""
        other = Several(self._timed_lanes(), self._names, self._timed_lanes)
        other._device, other._reasons = self._device, self._reasons
        other.asked, other.staying, other.timed = self.asked, self.staying, self.timed
        return other

    def device_of(self, number: int) -> int:
        """Return the device of a launch."""
        return self._device.get(number, 0)

    def assign(self, number: int, device: int, reason: str) -> None:
        """Note the device of a launch before it is submitted."""
        self._device[number] = device
        self._reasons[number] = reason

    def assign_all(self, first: int, devices: Sequence[int], reasons: Sequence[str]) -> None:
        """Note the devices of launches from `first` on."""
        self._device.update(enumerate(devices, first))
        self._reasons.update(enumerate(reasons, first))

    @property
    def remembers_many(self) -> bool:
        """Whether it knows the devices of many launches, most of which ended long ago."""
        return len(self._device) > 2 * REMEMBERED

    def forget_before(self, oldest: int) -> None:
        """Forget launches that ended long ago."""
        for number in [one for one in self._device if one < oldest - REMEMBERED]:
            del self._device[number], self._reasons[number]

    def where(self, number: int) -> str:
        """Return on which device a launch runs, and why, in words."""
        device = self._device.get(number)
        if device is None:
            return f"on device 0 ({self._names[0]}): it is short, and its data is there; "
        return f"on device {device} ({self._names[device]}): {self._reasons[number]}; "

    def submit(self, launch: Launch, behind: list[cl.Event] | None = None) -> None:
        """Put a launch on a queue of its device."""
        backend = self.backends[self._device.get(launch.number, 0)]
        is_timed = launch.number in self.asked
        submit = backend.submit_timed if is_timed else backend.submit
        submit(launch, behind)

    def join(self, table: core.native.Table) -> None:
        """Let the backend of each device keep its launches in the table."""
        for backend in self.backends:
            backend.join(table)

    @property
    def core_queues(self) -> core.native.Queues | None:
        """The queues of the first device, where the core may make launches."""
        return self.backends[0].core_queues

    def lease(self, number: int, kernel: OwnKernel, key: Key) -> Lease:
        """Return how many launches of a kernel may stay on the first device: short ones."""
        return Lease(self.staying(key))

    def from_queues(self, ended: Ended) -> Ended:
        """Report the launches of the first device that the core saw end."""
        return self._all([ended])

    def lane_counts(self) -> LaneCounts:
        """Return those of all devices together. The lanes of the first one come first."""
        counts, used, first = [one.lane_counts() for one in self.backends], Counter[int](), 0
        for backend, of_device in zip(self.backends, counts, strict=True):
            used.update({first + lane: many for lane, many in of_device.used.items()})
            first += backend.lanes
        waits, narrow = sum(one.waits for one in counts), sum(one.on_one_lane for one in counts)
        return LaneCounts(len(self.queues), used, waits, narrow)

    @property
    def in_flight(self) -> int:
        """The number of launches that were submitted and are not yet reported."""
        return sum(one.in_flight for one in self.backends)

    def event(self, number: int) -> cl.Event | None:
        """Return the event of a launch in flight."""
        return self.backends[self._device.get(number, 0)].event(number)

    def event_for_others(self, number: int) -> cl.Event | None:
        """Return the event of a launch of the first device: it belongs to the runtime's context."""
        return None if self._device.get(number, 0) else self.event(number)

    def poll(self, most: int = 64) -> Ended:
        """Report the launches that have ended on any device."""
        return self._all([one.poll(most) for one in self.backends])

    def poll_up_to(self, number: int) -> Ended:
        """Report the launches that have ended, for a caller that waits for launch `number`."""
        return self._all([one.poll_up_to(number) for one in self.backends])

    def _all(self, ended: list[Ended]) -> Ended:
        for some in ended:
            for end in some:
                if end.number not in self.asked:
                    continue
                took_us = None
                with suppress(cl.Error):  # some drivers have no times of a command
                    times = end.event.profile
                    took_us = (times.end - times.start) / 1e3
                self.timed(end.number, took_us)
            self._ended += some
            some.clear()
        self._ended.sort(key=lambda end: end.number)
        return self._ended

    def oldest(self) -> cl.Event | None:
        """Return an event of a device that has launches, of another device at each call."""
        for step in range(len(self.backends)):
            at = (self._left + step) % len(self.backends)
            found: cl.Event | None = self.backends[at].oldest()
            if found is not None:
                self._left = at + 1
                return found
        return None

    def error(self, number: int, status: int) -> BaseException | None:
        """Return the error of a launch. Its device may keep the count that it refused."""
        return self.backends[self._device.get(number, 0)].error(number, status)

    def flush(self) -> None:
        """Start all launches on every device."""
        for backend in self.backends:
            backend.flush()

    def close(self) -> None:
        """Wait for all launches, then release the events."""
        for backend in self.backends:
            backend.close()
