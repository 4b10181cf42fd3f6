"""The contract of a backend, and what the three host backends share.

In: `submit(launch)`, in an order in which upstream comes first. Out: `poll()`, the launches that
ended since the last call, with their status (0, or the driver's negative error). The shared part
keeps the events of launches in flight and drops them as soon as they are seen to have ended.

Invariant: an ended launch is reported once, and never before everything upstream of it.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice, takewhile
from typing import Any

import pyopencl as cl

from ..driver import STATUS, CommandQueue
from ..errors import DeviceError
from ..records import Launch

Ended = list[tuple[int, int, Any, int]]
"""(launch number, status, event, lane)."""


class Backend:
    """One device's queues."""

    name = ""
    decides = False
    """Whether it decides on the device by itself, without a variant of the kernel."""
    may_retime = True
    """Whether it makes sense to give it queues that keep times."""
    in_order = False
    """Whether launches run in program order whatever their upstream is."""

    def __init__(self, context: Any, device: Any, lanes: int, profiling: bool) -> None:
        self.profiling = profiling
        properties: Any = self._properties()
        if profiling:
            properties |= int(cl.command_queue_properties.PROFILING_ENABLE)
        self.queues = [CommandQueue(context, device, properties=properties) for _ in range(lanes)]
        self._events: dict[int, Any] = {}
        self.waits = 0
        """Events that launches were made to wait for."""
        self.used: Counter[int] = Counter()
        """Launches by lane."""

    def _properties(self) -> int:
        return 0

    @property
    def unsent(self) -> bool:
        """Whether something submitted waits for more to come before the device sees it."""
        return False

    def submit(self, launch: Launch, behind: list[Any] | None = None) -> None:
        """Put a launch on a queue, behind its upstream, and behind events of other queues. Raises
        what the driver raises."""
        raise NotImplementedError

    @property
    def quick_queues(self) -> Any:
        """The core's queues, to which it may make launches by itself; None where there are none."""
        return None

    def stays(self, number: int, kernel: Any, key: Any) -> tuple[int, int, str | None]:
        """Launch `number` came: how many like it, of `key`, will go to a queue without further
        thought (-1: all), up to which launch (0: any), and why if that is asked for."""
        return -1, 0, None

    def from_queues(self, ended: Ended) -> Ended:
        """What the core's queues have told of somebody else, as `poll` would tell it."""
        return ended

    def join(self, ledger: Any) -> None:
        """The core makes launches by itself, and keeps their books in `ledger`."""

    def look(self) -> None:
        """Now and then, between launches of the core's own."""

    def where(self, number: int) -> str:
        """Where a launch runs and why, ending in '; ', if there is a choice for each."""
        return ""

    def passes_by(self, number: int) -> None:
        """Launch `number` is a host task, and never comes here: for `where`."""

    def about(self) -> dict[str, Any]:
        """What this backend counts beyond what all do."""
        return {}

    def error(self, number: int, status: int) -> BaseException | None:
        """What ended launch `number`, reported with `status`, if it did not end well. Asked
        once."""
        return DeviceError(f"the device reports status {status}") if status < 0 else None

    def event(self, number: int) -> Any:
        """The event of a launch in flight, or None when it has been seen to end."""
        return self._events.get(number)

    def to_wait_for(self, number: int) -> Any:
        """An event of the driver that ends with a launch in flight, or None."""
        return self.event(number)

    def event_for_others(self, number: int) -> Any:
        """The same as a `pyopencl.Event` that another library can wait for."""
        return self.event(number)

    @property
    def in_flight(self) -> int:
        """Launches submitted and not yet reported."""
        return len(self._events)

    def poll(self, most: int = 64) -> Ended:
        """Those of the `most` oldest launches in flight that have ended, in program order."""
        return self._ended(list(islice(self._events.items(), most)))

    def poll_up_to(self, number: int) -> Ended:
        """Those launches in flight up to `number` in program order that have ended."""
        return self._ended(list(takewhile(lambda item: item[0] <= number, self._events.items())))

    def oldest(self) -> Any:
        """An event of the driver to wait for before looking again, or None."""
        return next(iter(self._events.values()), None)

    def _ended(self, candidates: list[tuple[int, Any]]) -> Ended:
        """Newest first: whatever is upstream of one seen to have ended has then ended too, so that
        no launch is reported before its upstream."""
        events = self._events
        ended: Ended = []
        candidates.reverse()
        for number, event in candidates:
            state = event.get_info(STATUS)
            if state <= 0:
                ended.append((number, state, event, 0))
                del events[number]
        ended.reverse()
        return ended

    def flush(self) -> None:
        """Make sure that the device starts on everything submitted."""
        for queue in self.queues:
            queue.flush()

    def wait_all(self) -> None:
        """Block until everything submitted has ended."""
        for queue in self.queues:
            queue.finish()

    def close(self) -> None:
        """Wait, then let go of the queues."""
        self.wait_all()
        self._events.clear()
