"""The model: where bytes will be valid, and when devices and their data will be ready.

Input: launches in program order, each with its device. Output: what a policy needs to know of the
next launch. The engine has one model of all launches; to place a graph, it tries its launches on
another. Times are in microseconds, on a clock that the caller chooses. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import core
from ..launch.commands import KernelCommand
from ..launch.decision import DecidedCommand
from ..records import Access, Command, Span
from .coherence import Coherence, Piece, is_widened
from .placement import Links, Task, arrives_us
from .times import Key

PlacedLaunch = tuple[Command, Access, int, float]
"""A launch with its device and how long it takes there."""


class Model:
    """Knows where the data is, and when each device is free."""

    def __init__(self, devices: int, coherence: Coherence | None = None) -> None:
        self.coherence = Coherence() if coherence is None else coherence
        self.clock = core.native.Clock(devices)
        """When each device will be free, and when its data will be ready."""

    def task(self, needed: Sequence[Span], took_us: tuple[float | None, ...] = ()) -> Task:
        """Describe a launch for a policy. `took_us` is its known time on each device."""
        ready = self.clock.ready_us(needed)
        whole = sum(span.nbytes for span in needed)
        return Task(self.coherence.lacking(needed, len(ready)), ready, took_us, whole)

    def brings(self, parts: Sequence[PlacedLaunch], links: Links, on_each: bool = False) -> int:
        """Note that a launch, or each part of one, begins on its device once the device is free and
        has its data. No part waits for another one. `on_each`: each is the whole launch. Return how
        many copies that takes."""
        starts_us, copies, free_us = [], 0, self.clock.free_us
        for command, access, device, _ in parts:
            spans = needed(command, access)
            arrives = arrives_us(self.task(spans), device, links, 0.0)
            starts_us.append(max(free_us[device], arrives))
            brought = self.coherence.bring(spans, device, links, 0)
            copies += sum(len(parcel.chunks()) for parcel in brought)
        for (_, access, device, took_us), start_us in zip(parts, starts_us, strict=True):
            self.clock.runs(access.writes, device, start_us, took_us)
            for span in access.writes:
                if span.base > 0:
                    self.coherence.written(span, device)
        if on_each:
            self.written_by_each(parts[0][1].writes)
        return copies

    def written_by_each(self, spans: Sequence[Span]) -> None:
        """Note that each device has written these bytes, which are in one row."""
        devices = (1 << len(self.clock.free_us)) - 1
        for span in spans:
            self.coherence.put(Piece(span.base, span.start, span.end, devices))


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
