"""Policies: each chooses the device on which a launch runs.

Input: the bytes that each device lacks, when the data and the devices are ready, and the cost of
moving bytes. Output: the number of a device. Everything here is pure. Times are in microseconds of
the model, on one clock that the caller chooses.

`min_finish` is the default, and the others are baselines. Those with "transfer" in their names are
the policies of GrCUDA, which consider only bytes and bandwidths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..records import NamedTuple

STAYS_US = 100.0
"""A shorter kernel stays where most of its data is, because placing it and moving data takes longer
than another device could save."""


class Link(NamedTuple):
    """The cost of moving bytes from one device to another."""

    latency_us: float
    bytes_per_us: float

    def took_us(self, nbytes: int) -> float:
        """Return how long a copy takes."""
        return self.latency_us + nbytes / self.bytes_per_us if nbytes else 0.0


Links = Sequence[list[Link]]
"""The links by source, then by target."""

ASSUMED = Link(30.0, 10_000.0)
"""The cost of a link that was not measured."""


class Lack(NamedTuple):
    """Bytes that a device lacks, and the devices that have them, as bits."""

    nbytes: int
    devices: int


class Task(NamedTuple):
    """Describes a launch for a policy. `lacks`, `ready_us` and `took_us` have an item for each
    device."""

    lacks: tuple[tuple[Lack, ...], ...]
    ready_us: tuple[float, ...]
    """When the data of each device will be ready; 0: it is ready."""
    took_us: tuple[float | None, ...]
    """How long such launches took on each device; None: not known."""
    whole: int
    """The number of bytes that the launch reads, or may leave unchanged."""

    def lacking(self, device: int) -> int:
        """Return how many bytes a device lacks."""
        return sum(lack.nbytes for lack in self.lacks[device])


class State(NamedTuple):
    """Describes a device for a policy."""

    free_us: float
    """When it will have done all its launches."""
    active: int
    """The number of its launches."""
    held: int
    """The number of bytes of arrays on it."""


Policy = Callable[[Task, Sequence[State], Links, float], int]
"""(task, devices, links, now in us) -> device."""


def nearest(devices: int, target: int, nbytes: int, links: Links) -> int:
    """Return the device from which a copy arrives first."""
    return min(
        members(devices, len(links)),
        key=lambda source: (links[source][target].took_us(nbytes), source),
    )


def members(devices: int, many: int) -> list[int]:
    """Return the numbers of the devices in a set."""
    return [number for number in range(many) if devices >> number & 1]


def at_home(task: Task, states: Sequence[State]) -> int:
    """Choose the device that lacks the fewest bytes. If several do, choose the one with the fewest
    launches, then with the fewest bytes."""
    return min(
        range(len(states)),
        key=lambda d: (task.lacking(d), states[d].active, states[d].held, d),
    )


def min_finish(task: Task, states: Sequence[State], links: Links, now_us: float) -> int:
    """Choose the device on which the launch ends first, if that is earlier than at home by more
    than placing takes. Short and unknown ones stay at home. What is new, and little data of short
    ones, goes to the first device, where the core makes such launches by itself."""
    home = at_home(task, states)
    if task.lacking(0) <= task.lacking(home):
        home = 0
    took = task.took_us[home]
    if took is None:
        return home
    if took < STAYS_US and task.whole:
        arrives = arrives_us(task, 0, links, now_us)
        return 0 if arrives < now_us + STAYS_US else home

    def finish(device: int) -> tuple[float, bool, int]:
        own = task.took_us[device]
        arrives = arrives_us(task, device, links, now_us)
        ends = max(now_us, states[device].free_us, arrives) + (took if own is None else own)
        return ends + STAYS_US * (device != home), device != home, device

    return min(map(finish, range(len(states))))[2]


def min_finish_at_home(task: Task, states: Sequence[State], links: Links, now_us: float) -> int:
    """Choose as `min_finish` does for short launches, and home for all others."""
    home = at_home(task, states)
    took = task.took_us[home]
    is_short = took is not None and took < STAYS_US
    return min_finish(task, states, links, now_us) if is_short else home


def arrives_us(task: Task, device: int, links: Links, now_us: float) -> float:
    """Return when a device could have all data of a launch. Copies begin once it is ready."""
    there = max(now_us, task.ready_us[device])
    for lack in task.lacks[device]:
        source = nearest(lack.devices, device, lack.nbytes, links)
        begins = max(now_us, task.ready_us[source])
        there = max(there, begins) + links[source][device].took_us(lack.nbytes)
    return there


class RoundRobin:
    """Takes one device after the other."""

    def __init__(self) -> None:
        self._next = -1

    def __call__(self, task: Task, states: Sequence[State], links: Links, now_us: float) -> int:
        """Choose the next device."""
        self._next = (self._next + 1) % len(states)
        return self._next


def stream_aware(task: Task, states: Sequence[State], links: Links, now_us: float) -> int:
    """Choose the device with the fewest launches."""
    return min(range(len(states)), key=lambda device: (states[device].active, device))


def min_transfer_size(task: Task, states: Sequence[State], links: Links, now_us: float) -> int:
    """Choose the device that lacks the fewest bytes."""
    return min(range(len(states)), key=lambda device: (task.lacking(device), device))


def minmin_transfer_time(task: Task, states: Sequence[State], links: Links, now_us: float) -> int:
    """Choose the device with the shortest transfers, each from its best source."""
    return _by_transfer_time(task, links, min)


def minmax_transfer_time(task: Task, states: Sequence[State], links: Links, now_us: float) -> int:
    """Choose the device with the shortest transfers, each from its worst source."""
    return _by_transfer_time(task, links, max)


def _by_transfer_time(task: Task, links: Links, pick: Callable[[list[float]], float]) -> int:
    def took_us(device: int) -> tuple[float, int]:
        took = 0.0
        for lack in task.lacks[device]:
            sources = members(lack.devices, len(links))
            took += pick([lack.nbytes / links[one][device].bytes_per_us for one in sources])
        return took, device

    return min(range(len(task.lacks)), key=took_us)


_POLICIES: dict[str, Callable[[], Policy]] = {
    "min_finish": lambda: min_finish,
    "round_robin": RoundRobin,
    "stream_aware": lambda: stream_aware,
    "min_transfer_size": lambda: min_transfer_size,
    "minmin_transfer_time": lambda: minmin_transfer_time,
    "minmax_transfer_time": lambda: minmax_transfer_time,
}

PLACEMENTS = tuple(_POLICIES)


def policy(name: str) -> Policy:
    """Make the policy of a name, one of `PLACEMENTS`."""
    return _POLICIES[name]()
