"""Edges that may be none: what would go without them.

In: a record. Out: findings. Three kinds of edges may go without a change of what is computed: those
of views that share a small part of their bytes, where the kernel does not need these; those of a
launch that overwrites what another one used, where it could write elsewhere; and those of an
argument that counts as written since nobody could tell. Only the program knows; so each finding
says 'if'.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from .. import core
from ..records import EVERYTHING, Access, Span
from .edges import access_of, chain
from .explain import Meeting, meetings
from .findings import Finding
from .record import Record
from .trace import Slice

SMALL = 0.5
"""Views that share less than this part of the smaller one overlap at their ends."""
MOST_CLASSES = 12
"""Kinds of edges that are tried, those with most edges first."""
LEAST = 0.05
"""Of the whole time; what would gain less is left out."""


class Class(NamedTuple):
    """Edges alike: between launches of two kernels, for the same reason."""

    earlier: str
    later: str
    kind: str
    argument: str
    why: str
    """'overlap' or 'overwrite'."""


class Example(NamedTuple):
    """One edge of a class: its launches, the bytes they share, and how many those are of."""

    upstream: int
    launch: int
    meeting: Meeting
    of_bytes: int


def false_edges(record: Record, longest: int, wall: int) -> Iterator[Finding]:
    """What would go without each class of edges. `longest`: the chain with all edges."""
    edges, examples = _classes(record)
    common = sorted(edges, key=lambda one: -len(edges[one]))[:MOST_CLASSES]
    for one in common:
        gone = frozenset(edges[one])
        left = chain(record.slices, record.edges, gone).ns
        if longest - left > LEAST * wall:
            yield _finding(one, gone, examples[one], longest, left)
    yield from _never_written(record, longest)


def _finding(
    one: Class, gone: frozenset[tuple[int, int]], example: Example, longest: int, left: int
) -> Finding:
    low, high = example.meeting.bytes
    named = f" ({one.argument})" if one.argument else ""
    where = f"bytes {low}..{high} of base {example.meeting.base}{named}"
    would = f"without these edges the longest chain takes {left / 1e6:.3g} of {longest / 1e6:.3g} ms"
    if one.why == "overlap":
        text = (
            f"false-dependency: {one.later!r} follows {one.earlier!r} {len(gone)} times only since "
            f"their views overlap by {high - low} of {example.of_bytes} bytes, {one.kind} on "
            f"{where}; {would}: if a kernel does not need them, make views that do not overlap, or "
            "say reads= and writes="
        )
    else:
        text = (
            f"buffer-reuse: {one.later!r} waits {len(gone)} times to overwrite what {one.earlier!r}"
            f" used, {one.kind} on {where}; {would}: let them take turns with a second array"
        )
    launches = example.upstream, example.launch
    kind = "false-dependency" if one.why == "overlap" else "buffer-reuse"
    return Finding(kind, text, longest - left, launches, "no such edges", gone=gone)


def _classes(record: Record) -> tuple[dict[Class, list[tuple[int, int]]], dict[Class, Example]]:
    """Edges that may go, by class, and one of each."""
    known = {one.number: one for one in record.slices}
    edges: dict[Class, list[tuple[int, int]]] = {}
    examples: dict[Class, Example] = {}
    for later in record.slices:
        for edge in record.edges[later.number]:
            earlier = known.get(edge.upstream)
            found = earlier and _class(earlier, later)
            if not earlier or not found:
                continue
            one, meeting, of_bytes = found
            edges.setdefault(one, []).append((earlier.number, later.number))
            examples.setdefault(one, Example(earlier.number, later.number, meeting, of_bytes))
    return edges, examples


def _class(earlier: Slice, later: Slice) -> tuple[Class, Meeting, int] | None:
    """Why an edge may go; None where it is needed."""
    met = meetings(access_of(earlier), access_of(later))
    if not met or any(one.base == EVERYTHING for one in met):
        return None
    parts = [(one, *_part(earlier, later, one)) for one in met]
    first, of_bytes, _ = parts[0]
    names = [name for name, _, base in later.arguments if base == first.base]
    head = earlier.name, later.name, first.kind, ", ".join(names)
    if all(small for _, _, small in parts):
        return Class(*head, "overlap"), first, of_bytes
    if all(one.kind != "RAW" for one in met):
        return Class(*head, "overwrite"), first, of_bytes
    return None


def _part(earlier: Slice, later: Slice, meeting: Meeting) -> tuple[int, bool]:
    """Bytes of the smaller view, and whether the two share a small part of it."""
    ours, theirs = _sides(access_of(earlier), access_of(later), meeting.kind)
    sizes = [
        min(a.nbytes, b.nbytes)
        for a in ours
        for b in theirs
        if a.base == b.base == meeting.base and a.start < b.end and b.start < a.end
    ]
    size = min(sizes, default=0)
    shared = sum(
        min(a.end, b.end) - max(a.start, b.start)
        for a in ours
        for b in theirs
        if a.base == b.base == meeting.base and a.rows == b.rows == 1
        and a.start < b.end and b.start < a.end
    )  # fmt: skip
    return size, 0 < shared < SMALL * size


def _sides(earlier: Access, later: Access, kind: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    ours = earlier.reads if kind == "WAR" else earlier.writes
    return ours, later.reads if kind == "RAW" else later.writes


# ---- arguments that count as written -------------------------------------------------------------


def _never_written(record: Record, longest: int) -> Iterator[Finding]:
    """Arguments that are taken for written, since nobody could tell: what would change if they are
    only read."""
    slices = record.slices
    doubtful: Counter[tuple[str, str]] = Counter()
    for one in slices:
        for name, mode, _ in one.arguments:
            if mode == "rw":
                doubtful[one.name, name] += 1
    edges = {(edge.upstream, number) for number, all_ in record.edges.items() for edge in all_}
    found = []
    for kernel, name in doubtful:
        hazards = core.native.Hazards()
        kept = set()
        for one in slices:
            entered = hazards.enter(one.number, one.reads, _without(one, kernel, name))
            kept |= {(upstream, one.number) for upstream in entered}
        if len(kept) < len(edges):
            found.append((len(edges) - len(kept), kernel, name, frozenset(edges - kept)))
    for count, kernel, name, gone in sorted(found, key=lambda one: one[:3], reverse=True):
        cost = longest - chain(slices, record.edges, gone).ns
        text = (
            f"{name} of {kernel} counts as written: if it never is, {count} of {len(edges)} edges "
            f'would go: make it const, or prog.{kernel}.access({name}="r")'
        )
        yield Finding("counts-as-written", text, cost, min(gone), "no such edges", gone=gone)


def _without(one: Slice, kernel: str, name: str) -> tuple[Span, ...]:
    """What a launch writes, if one argument of its kernel is only read."""
    if one.name != kernel:
        return one.writes
    kept = {base for other, mode, base in one.arguments if other != name and "w" in mode}
    gone = {base for other, _, base in one.arguments if other == name} - kept
    return tuple(span for span in one.writes if span.base not in gone)
