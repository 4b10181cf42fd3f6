"""Coherence: on which devices the bytes of each base are valid.

Input: the spans that launches read, write and copy. Output: the pieces that a device lacks, and the
devices that have them. A set of devices is an integer, with one bit for each device. The core keeps
it: `_core/several/coherence.hpp`.

Invariants: the intervals of a base are disjoint, in order, and cover all of it. Neighbours differ.
Bytes that were never written are valid nowhere, and missing nowhere. The model, which looks at each
byte, is `emu/reference/coherence.py`.
"""

from __future__ import annotations

from typing import NamedTuple

from .. import core
from ..records import Span, interval

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


def is_widened(span: Span) -> bool:
    """Tell whether more bytes count for a span than it has."""
    return span.rows > MOST_ROWS and span.pitch != span.width
