"""Slices: launches as they were observed, alone or in epochs.

Input: the notes of a timeline. Output: plain values, and how many of them ran at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..host.intervals import in_flight
from ..records import NamedTuple, ReplayTask, Run, Span

ALL_BEFORE = 0
"""In `waits`: everything launched before."""
BYPASS = -2
"""The lane of commands in bypass. Host tasks and epochs have -1."""
AT_ONCE = -3
"""The lane of copies between devices that the core made by itself."""


class Wait(NamedTuple):
    """A wait of a thread of the program: for which launch, and when, on the host's clock."""

    thread: int
    start_ns: int
    end_ns: int
    number: int
    """A launch, or ALL_BEFORE."""


class Slice(NamedTuple):
    """One launch as it ran. `clock` is 'device', 'host' or 'model'; stages are host nanoseconds.
    `upstream` leaves out launches that had ended when it was made; `reads` and `writes` tell those
    edges, too."""

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
    """Work-items of a group. 0: the driver chose the size, or it is no kernel."""
    reads: tuple[Span, ...] = ()
    writes: tuple[Span, ...] = ()
    phase: str = ""
    """The program's name for the phase that it belongs to."""
    arguments: tuple[tuple[str, str, int], ...] = ()
    """Name, mode and base of the kernel's memory arguments, where they are known."""
    program_ns: int = 0
    """Own work of its thread since its previous launch, without waits, on the host's clock."""
    waits: tuple[int, ...] = ()
    """Launches that its thread waited for, or saw ended, since its previous one, or ALL_BEFORE."""
    thread: int = 0
    """The thread that launched it, numbered in the order of first launches."""
    epoch: int = 0
    """The epoch on the device that it ran in. 0: none. Its times are those of the whole epoch.
    `runs` tell when its task began and ended there, if its groups noted that."""
    passed: int = 0
    """Not 0: the slice stands for this many commands in bypass, whose own times were not taken. Its
    times are the host's: from the first command until the host saw their end."""
    called_ns: int = 0
    """When its call began, on the host's clock. 0: not known."""
    handed_ns: int = 0
    """When the driver got it, on the clock of its times. 0: not known."""
    seen_ns: int = 0
    """When the host saw that it had ended, on the host's clock. 0: not known."""
    device: int = -1
    """The device of several that it ran on, whose clock its times have. -1: there is only one."""
    runs: tuple[Run, ...] = ()
    """Its runs in groups of the scheduler, where they noted these."""
    parts: tuple[ReplayTask, ...] = ()
    """The tasks of a replay that these runs belong to."""


def on_device(one: Slice, what: str) -> str:
    """Name a place on the device of a launch, where there are several devices."""
    return what if one.device < 0 else f"device {one.device}, {what}"


def overlap(slices: Sequence[Slice]) -> float:
    """Return how many slices of one clock ran at a time, on average."""
    return in_flight([(one.start_ns, one.end_ns) for one in once(slices)])


def once(slices: Sequence[Slice]) -> list[Slice]:
    """Return slices with times of their own, and one for each epoch, to count its time once."""
    return list({one.epoch or -one.number: one for one in slices}.values())
