"""Edges that may be unnecessary, and the time that a block would take without them.

Input: a record. Output: findings. Three kinds of edges may go without a change of the results.
First, two views share a small part of their bytes, and the kernel does not need these. Second, a
launch overwrites bytes that another one used, and could write elsewhere. Third, an argument counts
as written because its mode was not known. Only the program knows whether an edge may go, so each
finding says 'if'.

Invariant: when an edge goes, the edges that it implied stay. If these are too many to search for,
the edge stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from ..records import EVERYTHING, Access, NamedTuple, Span
from .edges import Edge, Meeting, access_of, by_bytes, meetings
from .record import Finding, Record
from .slices import Slice

SMALL = 0.5
"""Views that share less than this part of the smaller one overlap only at their ends."""
MOST_CLASSES = 5
"""Classes of edges that are tried, the ones with the largest possible gain first."""
MOST_IMPLIED = 64
"""Launches that are searched for the edges that one edge implied."""
MOST_PAIRS = 60_000
"""Comparisons of launches that are not alike, in total. They take a few seconds."""
LEAST = 0.05
"""Smallest gain of a finding, as a share of the whole time."""


class Class(NamedTuple):
    """Edges to launches of one kernel, for one argument and one reason. `earlier`: the kernel that
    they come from, where views overlap."""

    why: str
    """'overlap' or 'overwrite'."""
    later: str
    argument: str
    earlier: str


class Doubtful(NamedTuple):
    """An edge that may go: its launches, the first bytes shared, the size of the smaller view."""

    upstream: int
    launch: int
    meeting: Meeting
    of_bytes: int


class Doubt(NamedTuple):
    """The order of two launches: the kind of hazard, if any, and the class, if it may go."""

    kind: str
    one: Class | None
    meeting: Meeting | None
    of_bytes: int


def false_edges(record: Record, longest: int, wall: int) -> Iterator[Finding]:
    """Compute the gain without each class of edges. `longest`: the chain with all edges."""
    pairs = _Pairs(record.slices)
    found = _classes(record, pairs)
    promising = []
    # at best: the edges that these implied are not searched for
    for one, doubtful in found.items():
        gone = {(each.upstream, each.launch) for each in doubtful}
        gain = longest - record.chain(_left(record, gone)).ns
        if gain > LEAST * wall:
            promising.append((gain, one))
    for _, one in sorted(promising, reverse=True)[:MOST_CLASSES]:
        edges = _without_class(record, pairs, one, found[one])
        left = record.chain(edges).ns
        if longest - left > LEAST * wall:
            yield _finding(record, one, found[one], edges, (longest, left))
    yield from _never_written(record, longest)


def _left(record: Record, gone: Collection[tuple[int, int]]) -> dict[int, list[Edge]]:
    """Return the edges without those that are `gone`."""
    return {
        number: [edge for edge in edges if (edge.upstream, number) not in gone]
        for number, edges in record.edges.items()
    }


def _finding(
    record: Record,
    one: Class,
    found: list[Doubtful],
    edges: dict[int, list[Edge]],
    chains: tuple[int, int],
) -> Finding:
    longest, left = chains
    first = found[0]
    low, high = first.meeting.bytes
    named = f" ({one.argument})" if one.argument else ""
    where = f"{first.meeting.kind} on bytes {low}..{high} of base {first.meeting.base}{named}"
    would = f"without that the longest chain takes {left / 1e6:.3g} of {longest / 1e6:.3g} ms"
    if one.why == "overlap":
        kind = "false-dependency"
        text = (
            f"{kind}: {one.later!r} follows {one.earlier!r} {len(found)} times only since their "
            f"views overlap by {high - low} of {first.of_bytes} bytes, {where}; {would}: if a "
            "kernel does not need them, make views that do not overlap, or say reads= and writes="
        )
    else:
        kind = "buffer-reuse"
        names = {slice_.number: slice_.name for slice_ in record.slices}
        users = Counter(names[doubtful.upstream] for doubtful in found)
        text = (
            f"{kind}: {one.later!r} waits {len(found)} times to overwrite what "
            f"{' and '.join(repr(name) for name, _ in users.most_common(2))} used, {where}; "
            f"{would}: let the launches take turns with a second array"
        )
    launches = first.upstream, first.launch
    return Finding(kind, text, longest - left, launches, name=one.later, edges=edges)


# ---- classes of edges ----------------------------------------------------------------------------


class _Pairs:
    """The order of two launches, computed once for launches that are alike."""

    def __init__(self, slices: Sequence[Slice]) -> None:
        alike: dict[tuple[object, ...], int] = {}
        self._known = {one.number: one for one in slices}
        self._alike = {
            one.number: alike.setdefault(
                (one.name, one.arguments, one.reads, one.writes), len(alike)
            )
            for one in slices
        }
        self._found: dict[tuple[int, int], Doubt] = {}

    @property
    def enough(self) -> bool:
        """Tell whether the limit of comparisons is reached."""
        return len(self._found) > MOST_PAIRS

    def __contains__(self, number: int) -> bool:
        return number in self._known

    def doubt(self, earlier: int, later: int) -> Doubt:
        """Compare two launches, given by their numbers."""
        key = self._alike[earlier], self._alike[later]
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = _doubt(self._known[earlier], self._known[later])
        return found


def _classes(record: Record, pairs: _Pairs) -> dict[Class, list[Doubtful]]:
    """Return the edges that may go, by class."""
    found: dict[Class, list[Doubtful]] = {}
    for number, edges in record.edges.items():
        for edge in edges:
            if edge.upstream not in pairs:
                continue
            doubt = pairs.doubt(edge.upstream, number)
            if doubt.one is not None and doubt.meeting is not None:
                doubtful = Doubtful(edge.upstream, number, doubt.meeting, doubt.of_bytes)
                found.setdefault(doubt.one, []).append(doubtful)
    return found


def _doubt(earlier: Slice, later: Slice) -> Doubt:
    """Find the hazard that orders two launches, and why the edge may go."""
    met = meetings(access_of(earlier), access_of(later))
    if not met:
        return Doubt("", None, None, 0)
    first = met[0]
    if any(one.base == EVERYTHING for one in met):
        return Doubt(first.kind, None, None, 0)
    parts = [_part(earlier, later, one) for one in met]
    argument = ", ".join(name for name, _, base in later.arguments if base == first.base)
    one = None
    if all(small for _, small in parts):
        one = Class("overlap", later.name, argument, earlier.name)
    elif all(meeting.kind != "RAW" for meeting in met):
        one = Class("overwrite", later.name, argument, "")
    return Doubt(first.kind, one, first, parts[0][0])


def _part(earlier: Slice, later: Slice, meeting: Meeting) -> tuple[int, bool]:
    """Return the bytes of the smaller view, and whether the two share only a small part of it."""
    ours, theirs = _sides(access_of(earlier), access_of(later), meeting.kind)
    pairs = [
        (a, b)
        for a in ours
        for b in theirs
        if a.base == b.base == meeting.base and a.start < b.end and b.start < a.end
    ]
    size = min((min(a.nbytes, b.nbytes) for a, b in pairs), default=0)
    if any(a.rows > 1 or b.rows > 1 for a, b in pairs):
        return size, False
    shared = sum(min(a.end, b.end) - max(a.start, b.start) for a, b in pairs)
    return size, 0 < shared < SMALL * size


def _sides(earlier: Access, later: Access, kind: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    ours = earlier.reads if kind == "WAR" else earlier.writes
    return ours, later.reads if kind == "RAW" else later.writes


def _without_class(
    record: Record, pairs: _Pairs, one: Class, found: Sequence[Doubtful]
) -> dict[int, list[Edge]]:
    """Return the remaining edges, with those that the removed edges implied."""
    gone = {(doubtful.upstream, doubtful.launch) for doubtful in found}
    edges = _left(record, gone)
    for upstream, number in sorted(gone):
        implied = _implied(record, pairs, one, upstream, number)
        if implied is None:
            implied = [edge for edge in record.edges[number] if edge.upstream == upstream]
        edges[number] = list(dict.fromkeys([*edges[number], *implied]))
    return edges


def _implied(
    record: Record, pairs: _Pairs, one: Class, upstream: int, later: int
) -> list[Edge] | None:
    """Return the edges to a launch that the edge from `upstream` implied. None: there are too many
    to search for."""
    seen = {upstream}
    open_ = [upstream]
    found = []
    while open_:
        for edge in record.edges[open_.pop()]:
            if edge.upstream in seen or edge.upstream not in pairs:
                continue
            seen.add(edge.upstream)
            if len(seen) > MOST_IMPLIED or pairs.enough:
                return None
            doubt = pairs.doubt(edge.upstream, later)
            if doubt.kind and doubt.one != one:
                found.append(Edge(edge.upstream, doubt.kind))
            else:
                open_.append(edge.upstream)
    return found


# ---- arguments that count as written -------------------------------------------------------------


def _never_written(record: Record, longest: int) -> Iterator[Finding]:
    """Find arguments that count as written only since their mode is not known, and the gain if they
    are only read."""
    slices = record.slices
    doubtful: Counter[tuple[str, str]] = Counter()
    for one in slices:
        for name, mode, _ in one.arguments:
            others = any("w" in way for other, way, _ in one.arguments if other != name)
            if mode == "rw" and others:  # a kernel without any output would be useless
                doubtful[one.name, name] += 1
    count = sum(map(len, record.edges.values()))
    found = []
    for kernel, name in doubtful:
        left = by_bytes(
            {one.number: Access(one.reads, _without(one, kernel, name)) for one in slices}
        )
        gone = count - sum(map(len, left.values()))
        if gone > 0:
            found.append((gone, kernel, name, left))
    for gone, kernel, name, left in sorted(found, key=lambda one: one[:3], reverse=True):
        text = (
            f"{name} of {kernel} counts as written: if it never is, {gone} of {count} edges would "
            f'go: make it const, or prog.{kernel}.access({name}="r")'
        )
        cost = longest - record.chain(left).ns
        number = next(one.number for one in slices if one.name == kernel)
        yield Finding("counts-as-written", text, cost, (number,), name=kernel, edges=left)


def _without(one: Slice, kernel: str, name: str) -> tuple[Span, ...]:
    """Return the bytes that a launch writes if one argument of its kernel is only read."""
    if one.name != kernel:
        return one.writes
    kept = {base for other, mode, base in one.arguments if other != name and "w" in mode}
    gone = {base for other, _, base in one.arguments if other == name} - kept
    return tuple(span for span in one.writes if span.base not in gone)
