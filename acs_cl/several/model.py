"""The model: where bytes will be valid, and when devices and their data will be ready.

Input: launches in program order, each with its device. Output: what a policy needs to know of the
next launch. The engine has one model of all launches; to place a graph, it tries its launches on
another. Times are in microseconds, on a clock that the caller chooses. Pure.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from ..launch.commands import KernelCommand
from ..launch.decision import DecidedCommand
from ..records import Access, Command, Span
from .coherence import Coherence, Parcel, is_widened
from .placement import Links, Task, arrives_us
from .times import Key

MOST = 4096
"""Launches whose ends are kept, before those that have ended are forgotten."""


class Model:
    """Knows where the data is, and when each device is free."""

    def __init__(self, devices: int, coherence: Coherence | None = None) -> None:
        self.coherence = Coherence() if coherence is None else coherence
        self.free_us = [0.0] * devices
        """When each device will have done all its launches."""
        self.work_us = [0.0] * devices
        """How long the launches of each device take together, since data was moved between them."""
        self.pulled: dict[int, tuple[int, int]] = {}
        """{base: the device that last had to get bytes of it to read them, and how many}."""
        self.ready_us: dict[tuple[int, int], float] = {}
        """{base, device: when its last writer on that device will have ended}."""
        self._ends_us: dict[int, float] = {}
        """{launch that may not have ended: when it will have}."""

    def task(
        self,
        needed: Sequence[Span],
        took_us: tuple[float | None, ...] = (),
        writes: Sequence[Span] = (),
    ) -> Task:
        """Describe a launch for a policy. `took_us` is its known time on each device."""
        ready = [0.0] * len(self.free_us)
        for span in needed:
            for device, there_us in enumerate(ready):
                ready[device] = max(there_us, self.ready_us.get((span.base, device), 0.0))
        pulls: tuple[tuple[int, int], ...] = ()
        if self.pulled:
            bases = dict.fromkeys(span.base for span in writes)
            pulls = tuple(self.pulled[base] for base in bases if base in self.pulled)
        whole = sum(span.nbytes for span in needed)
        lacks = self.coherence.lacking(needed, len(ready))
        return Task(lacks, tuple(ready), took_us, whole, pulls)

    def chose(self, task: Task, device: int) -> None:
        """Note the device of a launch. If data has to be moved there, work is added up anew."""
        if task.lacking(device) > min(map(task.lacking, range(len(self.work_us)))):
            self.work_us = [0.0] * len(self.work_us)

    def pulls(self, parcel: Parcel, written: Container[int]) -> None:
        """Note a copy for a launch that writes some bases. Only a copy that is read alone tells
        where the data is wanted."""
        if parcel.base not in written:
            self.pulled[parcel.base] = parcel.target, parcel.end - parcel.start

    def brings(
        self, command: Command, access: Access, device: int, links: Links, took_us: float
    ) -> None:
        """Note that a launch begins on a device, once the device is free and has its data."""
        spans = needed(command, access)
        start_us = max(self.free_us[device], arrives_us(self.task(spans), device, links, 0.0))
        self.coherence.bring(spans, device, links, 0)
        self.runs(access.writes, device, start_us, took_us)
        for span in access.writes:
            if span.base > 0:
                self.coherence.written(span, device)

    def ended_us(self, numbers: Iterable[int]) -> float:
        """Return when some launches will have ended; 0: they have."""
        return max((self._ends_us.get(number, 0.0) for number in numbers), default=0.0)

    def runs(
        self, writes: Sequence[Span], device: int, start_us: float, took_us: float, number: int = 0
    ) -> None:
        """Note that a launch begins at a time, one with a number if it is really made."""
        ends = self.free_us[device] = start_us + took_us
        if number:
            if len(self._ends_us) >= MOST:
                self._ends_us = {one: at for one, at in self._ends_us.items() if at > start_us}
            self._ends_us[number] = ends
        self.work_us[device] += took_us
        for span in writes:
            self.ready_us[span.base, device] = ends


def needed(command: Command, access: Access) -> tuple[Span, ...]:
    """Return the spans that must be valid before a launch: all that it touches, except those it
    overwrites. A kernel overwrites nothing for sure, because it need not write all that it
    declares."""
    if isinstance(command, (KernelCommand, DecidedCommand)):
        return tuple(dict.fromkeys((*access.reads, *access.writes)))
    sure = {span for span in access.overwrites if not is_widened(span)}
    return (*access.reads, *(span for span in access.writes if span not in sure))


def key_of(command: Command) -> Key | None:
    """Return the key of a kernel's times; None for other commands."""
    if isinstance(command, DecidedCommand):
        command = command.plain
    if isinstance(command, KernelCommand):
        return command.name, command.global_size, command.local_size
    return None
