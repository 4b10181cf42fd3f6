"""Meetings: the bytes that two launches share, where at least one of them writes.

Input: the accesses of two launches, the earlier one first. Output: meetings, by the arithmetic of
the hazards. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from ..ranges import overlap, shared_bytes
from ..records import EVERYTHING, Access, Span


class Meeting(NamedTuple):
    """Bytes that two launches share, where one of them writes. `bytes`: the first interval."""

    kind: str
    base: int
    bytes: tuple[int, int]


def meetings(earlier: Access, later: Access) -> list[Meeting]:
    """Return the bytes that order two launches."""
    found = []
    for kind, ours, theirs in (
        ("RAW", earlier.writes, later.reads),
        ("WAR", earlier.reads, later.writes),
        ("WAW", earlier.writes, later.writes),
    ):
        for a in ours:
            for b in theirs:
                meeting = _meet(kind, a, b)
                if meeting is not None:
                    found.append(meeting)
    everything = [
        span
        for access in (earlier, later)
        for span in (*access.reads, *access.writes)
        if span.base == EVERYTHING
    ]
    if everything and not found:
        found.append(Meeting("any", EVERYTHING, (0, 0)))
    return found


def _meet(kind: str, a: Span, b: Span) -> Meeting | None:
    if a.base != b.base or a.base == EVERYTHING or not overlap(a, b):
        return None
    shared = shared_bytes(a, b) or (max(a.start, b.start), min(a.end, b.end))
    return Meeting(kind, a.base, shared)
