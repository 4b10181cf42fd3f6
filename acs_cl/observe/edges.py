"""Edges between launches that were observed, and the chains that they make.

Input: slices in program order. Output: the upstream of each launch, each with the kind of hazard,
and the longest chain. Edges are computed again from the bytes. So they include edges to launches
that had ended when the later launch was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .. import core
from ..records import Access
from .meetings import meetings
from .slices import Slice

OTHER = "other"
"""The kind of an edge without shared bytes."""
WITHOUT_BYTES = "memory changed hands, or the program asked for that order"


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
    hazards = core.native.Hazards()
    known = {one.number: one for one in slices}
    in_order = all(one.upstream in ((), (one.number - 1,)) for one in slices)
    edges = {}
    for one in slices:
        found = hazards.enter(one.number, one.reads, one.writes)
        edges[one.number] = [Edge(upstream, kind) for upstream, kind in found.items()]
        for upstream in () if in_order else one.upstream:
            other = known.get(upstream)
            if upstream not in found and other is not None and not _share(other, one):
                edges[one.number].append(Edge(upstream, OTHER))
    return edges


def _share(earlier: Slice, later: Slice) -> bool:
    return bool(meetings(access_of(earlier), access_of(later)))


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
    path = []
    at = longest
    while at:
        path.append(last[at])
        at = behind.get(at, 0)
    return Chain(ends.get(longest, 0), tuple(reversed(path)))
