"""Slices: launches as they were observed, one after another or in epochs.

In: what a timeline noted. Out: plain values, and how many of them ran at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..host.intervals import in_flight
from ..records import Part, Run, Span

ALL_BEFORE = 0
"""In `waits`: everything launched before."""
STRAIGHT = -2
"""The lane of commands that went straight to the driver; host tasks and epochs have -1."""
AT_ONCE = -3
"""The lane of copies between devices that the core made by itself."""


class Wait(NamedTuple):
    """What a thread of the program waited for, and when, on the host's clock."""

    thread: int
    start_ns: int
    end_ns: int
    number: int
    """A launch, or ALL_BEFORE."""


class Slice(NamedTuple):
    """One launch as it ran. `clock` is 'device', 'host' or 'model'; stages are host nanoseconds.
    `upstream` is what it waited for: launches that had ended when it was made are not in it, but
    `reads` and `writes` tell those edges, too."""

    number: int
    name: str
    lane: int
    clock: str
    start_ns: int
    end_ns: int
    upstream: tuple[int, ...]
    groups: int
    hazards_ns: int
    submit_ns: int
    items: int = 0
    """Work-items of a group; 0 where the driver chose, and for what is no kernel."""
    reads: tuple[Span, ...] = ()
    writes: tuple[Span, ...] = ()
    phase: str = ""
    """What the program called the part that it belongs to."""
    arguments: tuple[tuple[str, str, int], ...] = ()
    """Name, mode and base of a kernel's memory, where they are known."""
    program_ns: int = 0
    """What its thread did by itself since its last launch, on the host's clock; without what it
    waited."""
    waits: tuple[int, ...] = ()
    """Launches that its thread has waited for, or seen ended, since its last launch, or
    ALL_BEFORE."""
    thread: int = 0
    """Which launched it, in the order of their first launches."""
    epoch: int = 0
    """Not 0: it ran in this epoch of the scheduler on the device, and its times are those of the
    whole epoch. `runs` tell when a task began and ended in there, if its groups noted that."""
    passed: int = 0
    """Not 0: it stands for so many commands of a queue that went straight to the driver, whose
    times nobody took. Its own are the host's: from the first of them to when it saw their end."""
    called_ns: int = 0
    """When its call began, on the host's clock; 0 where nobody knows."""
    handed_ns: int = 0
    """When the driver got it, on the clock of its times; 0 where nobody knows."""
    seen_ns: int = 0
    """When the host saw that it had ended, on the host's clock; 0 where nobody knows."""
    device: int = -1
    """Of several: where it ran, and whose clock that of the device is. -1: there is one."""
    runs: tuple[Run, ...] = ()
    """What groups of the scheduler ran of it, where they noted that."""
    parts: tuple[Part, ...] = ()
    """Of a replay: the tasks that these runs are of."""


def on_device(one: Slice, what: str) -> str:
    """A place on the device of a launch, where there are several."""
    return what if one.device < 0 else f"device {one.device}, {what}"


def overlap(slices: Sequence[Slice]) -> float:
    """The same for some slices, which have one clock."""
    return in_flight([(one.start_ns, one.end_ns) for one in once(slices)])


def once(slices: Sequence[Slice]) -> list[Slice]:
    """Slices with times of their own, and one for each epoch, whose time counts once."""
    return list({one.epoch or -one.number: one for one in slices}.values())
