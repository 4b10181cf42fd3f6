"""Coherence: on which devices the bytes of each base are valid.

Input: the spans that launches read, write and copy. Output: the pieces that a device lacks, and the
devices that have them. A set of devices is an integer, with one bit for each device.

Invariants: the intervals of a base are disjoint, in order, and cover all of it. Neighbours differ.
Bytes that were never written are valid nowhere, and missing nowhere. The model, which looks at each
byte, is `emu/reference/coherence.py`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from ..records import Span, interval

MOST_ROWS = 512
"""A span with more rows than this counts as all bytes from its first to its last one."""


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


class _Line:
    """The bytes of one base: `masks[i]` holds from `edges[i]` up to the next edge."""

    __slots__ = ("edges", "masks")

    def __init__(self) -> None:
        self.edges = [0]
        self.masks = [0]

    def cut(self, at: int) -> int:
        """Return the place of the interval that begins at a byte, cutting there if needed."""
        place = bisect_right(self.edges, at) - 1
        if self.edges[place] == at:
            return place
        self.edges.insert(place + 1, at)
        self.masks.insert(place + 1, self.masks[place])
        return place + 1

    def join(self, first: int, last: int) -> None:
        """Join equal neighbours, from place `first` to place `last`."""
        for place in range(min(last, len(self.masks) - 1), max(first, 1) - 1, -1):
            if self.masks[place] == self.masks[place - 1]:
                del self.edges[place], self.masks[place]

    def put(self, start: int, end: int, mask: int) -> None:
        """Give an interval one set of devices."""
        first, last = self.cut(start), self.cut(end)
        self.edges[first:last], self.masks[first:last] = [start], [mask]
        self.join(first, first + 1)

    def add(self, start: int, end: int, mask: int) -> None:
        """Add devices to the bytes of an interval that were written."""
        first, last = self.cut(start), self.cut(end)
        self.masks[first:last] = [one and one | mask for one in self.masks[first:last]]
        self.join(first, last)

    def drop(self, start: int, end: int, mask: int) -> None:
        """Take devices away from all of an interval."""
        first, last = self.cut(start), self.cut(end)
        self.masks[first:last] = [one & ~mask for one in self.masks[first:last]]
        self.join(first, last)

    def only(self, start: int, end: int) -> int:
        """Return the devices of an interval that has one set of them; -1 if it has several sets."""
        place = bisect_right(self.edges, start) - 1
        behind = place + 1
        is_one = behind == len(self.edges) or end <= self.edges[behind]
        return self.masks[place] if is_one else -1

    def within(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield the intervals that meet some bytes, cut to these bytes."""
        place = bisect_right(self.edges, start) - 1
        while place < len(self.edges) and self.edges[place] < end:
            behind = self.edges[place + 1] if place + 1 < len(self.edges) else end
            yield max(start, self.edges[place]), min(end, behind), self.masks[place]
            place += 1


class Coherence:
    """Knows for all bytes of a runtime on which devices they are valid."""

    def __init__(self) -> None:
        self._lines: dict[int, _Line] = {}

    def missing(self, span: Span, device: int) -> list[Piece]:
        """Return the written bytes of a span that are not valid on a device, in order."""
        line, bit = self._lines.get(span.base), 1 << device
        if line is None:
            return []
        first = bisect_right(line.edges, span.start) - 1
        for mask in line.masks[first : bisect_left(line.edges, span.end, first + 1)]:
            if mask and not mask & bit:
                break
        else:
            return []
        found: list[Piece] = []
        for start, end in rows_of(span):
            for begin, stop, mask in line.within(start, end):
                if not mask or mask & bit:
                    continue
                if found and found[-1].end == begin and found[-1].devices == mask:
                    found[-1] = found[-1]._replace(end=stop)
                else:
                    found.append(Piece(span.base, begin, stop, mask))
        return found

    def run(self, piece: Piece, source: int, device: int, end: int) -> int:
        """Return how far, up to `end`, the bytes behind a piece can be copied with it. `source` has
        to have them, unless they were never written, and `device` has to lack them."""
        reach = piece.end
        for _, stop, mask in self._lines[piece.base].within(piece.end, end):
            if mask and (mask & 1 << device or not mask & 1 << source):
                break
            reach = stop
        return reach

    def cover(self, span: Span) -> list[Piece]:
        """Cut an interval into as few pieces as possible, each valid as a whole on some device."""
        line = self._lines.get(span.base) or _Line()
        found = [Piece(span.base, span.start, span.start, -1)]
        for start, end, mask in line.within(span.start, span.end):
            both = found[-1].devices & (mask or -1)
            if both:
                found[-1] = found[-1]._replace(end=end, devices=both)
            else:
                found.append(Piece(span.base, start, end, mask))
        return found

    def everywhere(self, span: Span) -> int:
        """Return the devices that have all written bytes of a span; 0 if none was written."""
        found = -1
        line = self._lines.get(span.base)
        for start, end in rows_of(span) if line is not None else ():
            for _, _, mask in line.within(start, end) if line is not None else ():
                found &= mask or -1
        return 0 if found == -1 else found

    def unwritten(self, span: Span) -> list[Span]:
        """Return the parts of a span that were never written."""
        line = self._lines.get(span.base) or _Line()
        return [
            interval(span.base, begin, stop - begin)
            for start, end in rows_of(span)
            for begin, stop, mask in line.within(start, end)
            if not mask
        ]

    def moved(self, piece: Piece, device: int) -> None:
        """Note that a piece was copied to a device."""
        self._lines[piece.base].add(piece.start, piece.end, 1 << device)

    def lost(self, piece: Piece, device: int) -> None:
        """Note that a device did not get a copy after all."""
        self._lines[piece.base].drop(piece.start, piece.end, 1 << device)

    def put(self, piece: Piece) -> None:
        """Note that exactly these devices have a piece."""
        line = self._lines.setdefault(piece.base, _Line())
        if line.only(piece.start, piece.end) != piece.devices:
            line.put(piece.start, piece.end, piece.devices)

    def written(self, span: Span, device: int) -> None:
        """Note that a launch on a device may have written a span, so no other device has it now."""
        mask = 1 << device
        line = self._lines.setdefault(span.base, _Line())
        if line.only(span.start, span.end) == mask:
            return
        for start, end in rows_of(span):
            line.put(start, end, mask)

    def settle(self, base: int, nbytes: int) -> bool:
        """Tell whether only the first device has bytes of a base. If so, count all as written."""
        line = self._lines.setdefault(base, _Line())
        if max(line.masks) > 1:
            return False
        line.put(0, nbytes, 1)
        return True

    def forget(self, base: int) -> None:
        """Forget a base."""
        self._lines.pop(base, None)

    def all_of(self, base: int) -> list[Piece]:
        """Return the written pieces of a base with their devices."""
        line = self._lines.get(base)
        if line is None:
            return []
        found = line.within(0, line.edges[-1])
        return [Piece(base, start, end, mask) for start, end, mask in found if mask]

    @property
    def bases(self) -> list[int]:
        """The bases with at least one interval."""
        return list(self._lines)

    def copy(self) -> Coherence:
        """Return a copy that can be changed by itself."""
        other = Coherence()
        for base in self._lines:
            for piece in self.all_of(base):
                other.put(piece)
        return other

    @property
    def intervals(self) -> int:
        """The number of intervals of all bases."""
        return sum(len(line.edges) for line in self._lines.values())


def is_widened(span: Span) -> bool:
    """Tell whether more bytes count for a span than it has."""
    return span.rows > MOST_ROWS and span.pitch != span.width


def rows_of(span: Span) -> Iterator[tuple[int, int]]:
    """Yield the intervals that count for a span."""
    if span.rows == 1 or span.pitch == span.width or span.rows > MOST_ROWS:
        yield span.start, span.end
        return
    for row in range(span.rows):
        start = span.start + row * span.pitch
        yield start, start + span.width
