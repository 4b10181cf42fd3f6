"""The contract of a backend, which runs the launches of the engine.

Input: `submit(launch)`, upstream first. Output: `poll()`, the launches that ended since the last
call, with their status (0, or the driver's negative error).

Invariant: an ended launch is reported once, and never before its upstream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyopencl as cl

from .. import core
from ..access.bands import Groups
from ..devices.driver import Origin, OwnKernel
from ..errors import DeviceError
from ..records import Access, Command, Found, Key, Launch, NamedTuple, Report, Sizes
from .commands import KernelCommand

End = core.native.End
Ended = list[core.native.End]
"""Ends to be told, in program order."""

DECIDED = -9001
"""Status of a launch that failed without the device: in the scheduler, or by a refused count."""


class Snapshot(NamedTuple):
    """Describes the work of the device inside one command. `words` change with its progress."""

    lines: tuple[str, ...]
    words: bytes


class BandHeads(NamedTuple):
    """The bands of a launch in a scheduler."""

    scheduler: Any
    arena_bytes: int
    """Local memory of the scheduler."""
    shape: bytes | None
    unit: Sizes
    """Work-items of a group."""
    heads: Sequence[tuple[Sequence[Groups], bytes]]
    """Groups of each band, as boxes, and the start of its record."""


ALL, NO_ITEMS = -1, 1 << 63
"""Launches and work-items of a `Lease` without a limit."""


class Lease(NamedTuple):
    """Says for how long launches of a kernel go to lanes before Python decides again."""

    launches: int
    """How many more. `ALL`: until something changes."""
    last: int = 0
    """The launch where it ends. 0: it has no such end."""
    reason: str | None = None
    """What `explain` says of them."""
    items: int = NO_ITEMS
    """Work-items from which on it is for launches of sizes that nobody has seen, too."""


class LaneCounts(NamedTuple):
    """What a backend counts of its lanes."""

    lanes: int
    """How many there are."""
    used: Counter[int]
    """Launches by lane."""
    waits: int = 0
    """Events that launches had to wait for."""
    on_one_lane: int = 0
    """Launches that went to one lane, because all lanes would not be quicker."""


class Backend:
    """Holds the queues of one device."""

    name = ""
    decides = False
    """Whether it decides on the device by itself, without a variant of the kernel."""
    may_retime = True
    """Whether it makes sense to give it queues that keep times."""
    in_order = False
    """Whether launches run in program order, whatever their upstream is."""
    least_step = 0
    """Launches from which on it wants to know of a step of the program. 0: of none."""

    def __init__(self, queues: list[cl.CommandQueue], profiling: bool) -> None:
        self.queues = queues
        self.profiling = profiling

    def lane_counts(self) -> LaneCounts:
        """Return what it counts of its lanes."""
        raise NotImplementedError

    @property
    def unsent(self) -> bool:
        """Tell whether something submitted waits for more before the device gets it."""
        return False

    @property
    def is_attended(self) -> bool:
        """Tell whether launches may be submitted, without notice, that need a poll soon."""
        return self.unsent

    @property
    def core_queues(self) -> core.native.Queues | None:
        """Return the core's queues, on which it may launch by itself. None: there are none."""
        return None

    def submit(self, launch: Launch, behind: list[cl.Event] | None = None) -> None:
        """Put a launch on a queue, behind its upstream and `behind`. Raises the driver's errors."""
        raise NotImplementedError

    def lease(self, number: int, kernel: OwnKernel, key: Key) -> Lease:
        """Return the lease of a kernel, after launch `number` of `key` came."""
        return Lease(ALL, items=0)

    def heads(self, command: KernelCommand) -> list[Any]:
        """Return how records of such launches begin, in each scheduler that may have them."""
        return []

    def bands(self, command: KernelCommand) -> BandHeads | None:
        """Return how records of the bands of such launches begin. None: they run on lanes."""
        return None

    def from_queues(self, ended: Ended) -> Ended:
        """Complete ends that the core's queues told, as `poll` would tell them."""
        return ended

    def join(self, table: core.native.Table) -> None:
        """Let the core make launches by itself, and keep them in `table`."""

    def prepare(self, kernels: list[tuple[Origin, int]]) -> None:
        """Prepare kernels, given by their origins and group sizes."""

    def replay(self, command: Command, access: Access, footprint: core.native.Footprint) -> int:
        """Have the core replay a segment. Return its launch. 0: it goes the way of others."""
        return 0

    def cutter(self, way: int) -> Any:
        """Return the cutter of graphs into segments. None: there are none, on this backend or in
        this way. `way`: segments have the launches that the policy says, all that they can, or
        none."""
        return None

    @property
    def is_mixed(self) -> bool:
        """Tell whether launches go to a scheduler or to lanes, by a policy that may be wrong."""
        return False

    @property
    def tries_loops(self) -> bool:
        """Tell whether the host may drive the rounds of loops more quickly than the device."""
        return False

    def requeue(self, lanes: Backend, queues: list[cl.CommandQueue] | None = None) -> Any:
        """Use other lanes. Return what puts the earlier ones back. None: this backend has no lanes
        inside, and has to be replaced as a whole. Nothing may be in flight."""
        return None

    def time_tasks(self, on: bool) -> None:
        """Begin or stop to note when tasks inside commands run. Nothing may be in flight."""

    def noted(self) -> Found | None:
        """Return the notes since the last call. None: there are none, or an epoch is in flight."""
        return None

    def stepped(self, us: float, launches: int) -> None:
        """Note a step, if this backend watches steps: what was launched since the last one, and how
        long that took. The program has waited, and nothing is in flight."""

    def catch_up(self) -> None:
        """Do what is due now and then, between launches of the core."""

    def attend(self) -> None:
        """Watch an epoch whose launches were only counted."""

    def where(self, number: int) -> str:
        """Say where a launch runs and why, ending in '; ', if that is decided for each launch."""
        return ""

    def passes_by(self, number: int) -> None:
        """Note that launch `number` is a host task and never comes here, for `where`."""

    def about(self) -> Report:
        """Report what only this backend counts."""
        return {}

    def snapshot(self) -> Snapshot | None:
        """Describe what the oldest epoch on the device does at the moment. None: there is none."""
        return None

    def error(self, number: int, status: int) -> BaseException | None:
        """Return the error of a launch that ended with `status`, once. None: it ended well."""
        return DeviceError(f"the device reports status {status}") if status < 0 else None

    def event(self, number: int) -> cl.Event | None:
        """Return the event of a launch in flight. None: it was seen to end."""
        raise NotImplementedError

    def to_wait_for(self, number: int) -> cl.Event | None:
        """Return an event of the driver that ends with a launch in flight, or None."""
        return self.event(number)

    def event_for_others(self, number: int) -> cl.Event | None:
        """Return the same as a `pyopencl.Event` that another library can wait for."""
        return self.event(number)

    @property
    def has_epochs(self) -> bool:
        """Tell whether a scheduler has launches whose ends only a poll finds."""
        return False

    @property
    def in_flight(self) -> int:
        """Return how many launches were submitted and not yet reported."""
        raise NotImplementedError

    def poll(self, most: int = 64) -> Ended:
        """Return launches that have ended, in program order, at most `most` of a queue. The list
        may be the backend's own: the caller takes them out, else they are told again."""
        raise NotImplementedError

    def poll_up_to(self, number: int) -> Ended:
        """Return launches that have ended, as `poll` does, for a caller that waits for launch
        `number`."""
        raise NotImplementedError

    def oldest(self) -> cl.Event | None:
        """Return an event of the driver to wait for before the next poll, or None."""
        raise NotImplementedError

    def flush(self) -> None:
        """Make sure that the device starts on everything submitted."""
        raise NotImplementedError

    def wait_all(self) -> None:
        """Block until everything submitted has ended."""
        for queue in self.queues:
            queue.finish()

    def close(self) -> None:
        """Wait, then release the queues."""
        self.wait_all()
