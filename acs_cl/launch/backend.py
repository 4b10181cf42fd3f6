"""The contract of a backend: what the engine asks of whoever runs its launches.

In: `submit(launch)`, in an order in which upstream comes first. Out: `poll()`, the launches that
ended since the last call, with their status (0, or the driver's negative error).

Invariant: an ended launch is reported once, and never before everything upstream of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyopencl as cl

from .. import core
from ..access.bands import Groups
from ..devices.driver import Origin, OwnKernel
from ..errors import DeviceError
from ..records import Found, Launch, Report, Sizes
from .commands import KernelCommand

End = core.native.End
Ended = list[core.native.End]
"""What has ended and has to be told, in program order."""

DECIDED = -9001
"""Status of a launch that the device did not fail: the scheduler did, or its count was refused."""


class Snapshot(NamedTuple):
    """Say what the device does inside of one command. `words`: change when it gets further."""

    lines: tuple[str, ...]
    words: bytes


class BandHeads(NamedTuple):
    """The bands of a launch in a scheduler."""

    scheduler: Any
    arena_bytes: int
    """Local memory that it has."""
    shape: bytes | None
    unit: Sizes
    """Work-items of a group."""
    heads: Sequence[tuple[Sequence[Groups], bytes]]
    """Groups of each band, as boxes, and how its record begins."""


class Backend:
    """One device's queues."""

    name = ""
    decides = False
    """Whether it decides on the device by itself, without a variant of the kernel."""
    may_retime = True
    """Whether it makes sense to give it queues that keep times."""
    in_order = False
    """Whether launches run in program order whatever their upstream is."""

    def __init__(self, queues: list[cl.CommandQueue], profiling: bool) -> None:
        self.queues = queues
        self.profiling = profiling
        self._waits = 0
        self._used: Counter[int] = Counter()

    @property
    def waits(self) -> int:
        """Events that launches were made to wait for."""
        return self._waits

    @property
    def used(self) -> Counter[int]:
        """Launches by lane."""
        return self._used

    @property
    def unsent(self) -> bool:
        """Whether something submitted waits for more to come before the device sees it."""
        return False

    @property
    def is_attended(self) -> bool:
        """Whether something may be submitted that somebody has to look at before long, without
        anybody's being told."""
        return self.unsent

    @property
    def core_queues(self) -> core.native.Queues | None:
        """The core's queues, to which it may make launches by itself; None where there are none."""
        return None

    def submit(self, launch: Launch, behind: list[cl.Event] | None = None) -> None:
        """Put a launch on a queue, behind its upstream, and behind events of other queues. Raises
        what the driver raises."""
        raise NotImplementedError

    def stays(
        self, number: int, kernel: OwnKernel, key: tuple[str, Sizes, Sizes | None]
    ) -> tuple[int, int, str | None]:
        """Launch `number` came: how many like it, of `key`, will go to a queue without further
        thought (-1: all), up to which launch (0: any), and why if that is asked for."""
        return -1, 0, None

    def heads(self, command: KernelCommand) -> list[Any]:
        """How records of such launches begin, in each scheduler of its that may have them."""
        return []

    def bands(self, command: KernelCommand) -> BandHeads | None:
        """How records of the bands of such launches begin. None: they are launches on lanes."""
        return None

    def from_queues(self, ended: Ended) -> Ended:
        """What the core's queues have told of somebody else, as `poll` would tell it."""
        return ended

    def join(self, table: core.native.Table) -> None:
        """The core makes launches by itself, and keeps them in `table`."""

    def prepare(self, kernels: list[tuple[Origin, int]]) -> None:
        """Have kernels ready, given by their origins and the sizes of their groups."""

    def cutter(self) -> Any:
        """What cuts graphs into segments, where this runs segments; else None."""
        return None

    def requeue(self, lanes: Backend, queues: list[cl.CommandQueue] | None = None) -> Any:
        """Use other lanes; gives what puts the ones before back. None: there are none inside of
        this backend, and it has to be replaced as a whole. Nothing is in flight."""
        return None

    def time_tasks(self, on: bool) -> None:
        """Note from now on when tasks inside of commands run, or no longer. Nothing is in
        flight."""

    def noted(self) -> Found | None:
        """What was noted since the last time; None: nothing, or something is still under way."""
        return None

    def look(self) -> None:
        """Now and then, between launches of the core's own."""

    def attend(self) -> None:
        """Launches have come of which nobody was told yet."""

    def where(self, number: int) -> str:
        """Where a launch runs and why, ending in '; ', if there is a choice for each."""
        return ""

    def passes_by(self, number: int) -> None:
        """Launch `number` is a host task, and never comes here: for `where`."""

    def about(self) -> Report:
        """What this backend counts beyond what all do."""
        return {}

    def snapshot(self) -> Snapshot | None:
        """What the oldest epoch on the device does at the moment; None where there is none."""
        return None

    def error(self, number: int, status: int) -> BaseException | None:
        """What ended launch `number`, reported with `status`, if it did not end well. Asked
        once."""
        return DeviceError(f"the device reports status {status}") if status < 0 else None

    def event(self, number: int) -> cl.Event | None:
        """The event of a launch in flight, or None when it has been seen to end."""
        raise NotImplementedError

    def to_wait_for(self, number: int) -> cl.Event | None:
        """An event of the driver that ends with a launch in flight, or None."""
        return self.event(number)

    def event_for_others(self, number: int) -> cl.Event | None:
        """The same as a `pyopencl.Event` that another library can wait for."""
        return self.event(number)

    @property
    def has_epochs(self) -> bool:
        """Whether a scheduler has launches of which only a look tells that they have ended."""
        return False

    @property
    def in_flight(self) -> int:
        """Launches submitted and not yet reported."""
        raise NotImplementedError

    def poll(self, most: int = 64) -> Ended:
        """Launches in flight that have ended, in program order; `most` of a queue at a time."""
        raise NotImplementedError

    def poll_up_to(self, number: int) -> Ended:
        """The same, for a caller who waits for launch `number`."""
        raise NotImplementedError

    def oldest(self) -> cl.Event | None:
        """An event of the driver to wait for before looking again, or None."""
        raise NotImplementedError

    def flush(self) -> None:
        """Make sure that the device starts on everything submitted."""
        raise NotImplementedError

    def wait_all(self) -> None:
        """Block until everything submitted has ended."""
        for queue in self.queues:
            queue.finish()

    def close(self) -> None:
        """Wait, then let go of the queues."""
        self.wait_all()
