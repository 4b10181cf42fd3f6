"""Edges between launches that were observed, the bytes that they share, and the longest chain.

Input: accesses, or slices in program order. Output: the upstream of each launch, each with the kind
of hazard; meetings, the bytes that order two launches; the chain. Edges are computed again from the
bytes. So they include edges to launches that had ended when the later launch was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .. import core
from ..ranges import overlap, shared_bytes
from ..records import EVERYTHING, Access, NamedTuple, Span, base_text
from .slices import Slice

OTHER = "other"
"""The kind of an edge without shared bytes."""
WITHOUT_BYTES = "memory changed hands, or the program asked for that order"


class Meeting(NamedTuple):
    """Bytes that two launches share, where one of them writes. `bytes`: the first interval."""

    kind: str
    base: int
    bytes: tuple[int, int]

    def __str__(self) -> str:
        if self.base == EVERYTHING:
            return "all memory"
        return f"{self.kind} on bytes {self.bytes[0]}..{self.bytes[1]} of {base_text(self.base)}"


class Edge(NamedTuple):
    """One launch behind another, and the kind of the hazard."""

    upstream: int
    kind: str


Edges = Mapping[int, Sequence[Edge]]


class Chain(NamedTuple):
    """Launches that wait for one another, the first one first, and the sum of their times."""

    ns: int
    launches: tuple[int, ...]


def edges_of(slices: Iterable[Slice]) -> dict[int, list[Edge]]:
    """Return the edges of each launch. A launch may wait for one with which it shares no byte. On
    one queue in program order such waits do not show."""
    slices = list(slices)
    known = {one.number: access_of(one) for one in slices}
    edges = by_bytes(known)
    if all(one.upstream in ((), (one.number - 1,)) for one in slices):
        return edges
    for one in slices:
        found = {edge.upstream for edge in edges[one.number]}
        for upstream in one.upstream:
            if upstream in found or upstream not in known:
                continue
            if not meetings(known[upstream], known[one.number]):
                edges[one.number].append(Edge(upstream, OTHER))
    return edges


def by_bytes(accesses: Mapping[int, Access]) -> dict[int, list[Edge]]:
    """Return the edges that the bytes of numbered launches make."""
    hazards = core.native.Hazards()
    return {
        number: [Edge(*one) for one in hazards.enter(number, access.reads, access.writes).items()]
        for number, access in accesses.items()
    }


def access_of(one: Slice) -> Access:
    """Return the access of a launch."""
    return Access(one.reads, one.writes)


def chain(slices: Sequence[Slice], edges: Edges) -> Chain:
    """Return the longest chain. An epoch is one link, because the times of the waits inside it are
    not known."""
    links = {one.number: -one.epoch or one.number for one in slices}
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    behind: dict[int, int] = {}
    last = {links[one.number]: one.number for one in slices}
    longest = 0
    for one in slices:
        link = links[one.number]
        start = starts.get(link, 0)
        for edge in edges[one.number]:
            other = links.get(edge.upstream, link)
            if other != link and ends[other] > start:
                start, behind[link] = ends[other], other
        starts[link], ends[link] = start, start + one.end_ns - one.start_ns
        if not longest or ends[link] > ends[longest]:
            longest = link
    path: dict[int, None] = {}
    at = longest
    while at and last[at] not in path:  # a file may have an epoch before and behind a launch
        path[last[at]] = None
        at = behind.get(at, 0)
    return Chain(ends.get(longest, 0), tuple(reversed(path)))


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
    if everything:
        found.append(Meeting("any", EVERYTHING, (0, 0)))
    return found


def _meet(kind: str, a: Span, b: Span) -> Meeting | None:
    if a.base != b.base or a.base == EVERYTHING or not overlap(a, b):
        return None
    shared = shared_bytes(a, b) or (max(a.start, b.start), min(a.end, b.end))
    return Meeting(kind, a.base, shared)
