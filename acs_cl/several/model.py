"""The model: where bytes are valid, and when devices and their data will be ready.

Input: launches in program order, each with its device. Output: what a policy needs to know of the
next launch, and the pieces that its device lacks. The engine has one model of all launches; to
place a graph, it tries its launches on another. Times are in microseconds, on a clock that the
caller chooses. Pure.

The coherence says on which devices the bytes of each base are valid. A set of devices is an
integer, with one bit for each device. The core keeps it: `_core/several/coherence.hpp`. Invariants:
the intervals of a base are disjoint, in order, and cover all of it. Neighbours differ. Bytes that
were never written are valid nowhere, and missing nowhere. Its own model, which looks at each byte,
is `emu/reference/coherence.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import core
from ..launch.commands import KernelCommand
from ..launch.decision import DecidedCommand
from ..records import Access, Command, NamedTuple, Span, interval
from .policies import Links, Task, arrives_us

MOST_ROWS = core.native.MOST_ROWS
"""A span with more rows than this counts as all bytes from its first to its last one."""

CHUNK = 4 << 20
"""Size of a chunk in bytes. While one is written the next one is read. But each costs the host, so
on two H200s smaller ones took longer (driver 580)."""

Coherence = core.native.Coherence


class Piece(NamedTuple):
    """Bytes of one base, and the devices that have them."""

    base: int
    start: int
    end: int
    devices: int

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.end - self.start

    @property
    def span(self) -> Span:
        """Its bytes."""
        return interval(self.base, self.start, self.nbytes)


class Parcel(NamedTuple):
    """One copy between devices."""

    base: int
    start: int
    end: int
    source: int
    target: int

    def chunks(self) -> list[Parcel]:
        """Return the chunks in which launches make it."""
        return [
            self._replace(start=start, end=min(self.end, start + CHUNK))
            for start in range(self.start, self.end, CHUNK)
        ]

    def follows(self, other: Parcel) -> bool:
        """Tell whether it copies bytes that another copy brings."""
        return (
            (self.base, self.source) == (other.base, other.target)
            and self.start < other.end and other.start < self.end
        )  # fmt: skip


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


def is_widened(span: Span) -> bool:
    """Tell whether more bytes count for a span than it has."""
    return span.rows > MOST_ROWS and span.pitch != span.width
