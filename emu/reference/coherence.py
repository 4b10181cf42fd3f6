"""The model of the coherence in `acs_cl/several/model.py`: a set of devices for each byte.

Input: the same calls. Output: the same answers, found byte by byte. It counts copies of bytes that
a device has already, which must never happen.
"""

from __future__ import annotations

from acs_cl.records import Span


class Bytes:
    """Where each byte of some bases is valid, as sets of devices."""

    def __init__(self, sizes: dict[int, int]) -> None:
        self.valid: dict[int, list[set[int]]] = {
            base: [set() for _ in range(size)] for base, size in sizes.items()
        }
        self.copied_again = 0

    def missing(self, span: Span, device: int) -> list[int]:
        """Return the bytes that were written and are not on a device."""
        line = self.valid[span.base]
        return [at for at in bytes_of(span) if line[at] and device not in line[at]]

    def moved(self, base: int, start: int, end: int, source: int, device: int) -> None:
        """Copy bytes; bytes that were never written stay undefined."""
        for one in self.valid[base][start:end]:
            assert not one or source in one, "copied from where it is not valid"
            self.copied_again += device in one
            if one:
                one.add(device)

    def written(self, span: Span, device: int) -> None:
        """Write bytes."""
        line = self.valid[span.base]
        for at in bytes_of(span):
            line[at] = {device}


def bytes_of(span: Span) -> list[int]:
    """Return the positions of all bytes of a span."""
    return [
        span.start + row * span.pitch + column
        for row in range(span.rows)
        for column in range(span.width)
    ]
