"""The data of the page: a record as columns of numbers, small enough for thousands of launches.

Input: a record, findings, estimates. Output: plain values for JSON. A launch is named by its
position in the columns. Each name and each span is stored once. Times are nanoseconds from the
beginning of the block.

Invariant: an unknown time is -1.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from ...records import Found
from ..record import Finding, Record
from ..shares import kind_of, shares
from ..slices import Slice
from .inside import Inside, Item, inside
from .what_if import Estimate

VERSION = 1
UNKNOWN = -1

Table = dict[Hashable, int]
"""Distinct values, each with its position, in the order in which they came."""


def place(value: Hashable, table: Table) -> int:
    """Return the position of a value, which joins the table if it is not there."""
    return table.setdefault(value, len(table))


def columns(
    record: Record, findings: Sequence[Finding], estimates: Sequence[Estimate], notes: Iterable[str]
) -> dict[str, object]:
    """Return all data of the page."""
    places = {one.number: at for at, one in enumerate(record.slices)}
    path, within = record.chain(), inside(record)
    clocks = record.clocks
    return {
        "version": VERSION,
        "title": record.title,
        "about": record.about._replace(noted=Found())._asdict(),
        "whole_ns": record.whole_ns,
        "clock": {
            "device": clocks.clock,
            "comparable": clocks.comparable,
            "error": clocks.error_ns,
        },
        "count": len(record.slices),
        **_Rows(record, within).columns(),
        "runs": within.runs,
        "noted": record.about.noted._replace(runs=(), parts=())._asdict(),
        "edges": _edges(record, places, within),
        "waits": _waits(record),
        "chain": {"ns": path.ns, "launches": [places[number] for number in path.launches]},
        "shares": [one._asdict() for one in shares(record)],
        "findings": [
            {
                "kind": one.kind,
                "text": one.text,
                "cost_ns": one.cost_ns,
                "is_most": one.is_most,
                "launches": [places[number] for number in one.launches if number in places],
            }
            for one in findings
        ],
        "estimates": [one._asdict() for one in estimates],
        "notes": [*notes, *_left_out(within)],
    }


class _Rows:
    """The launches as rows, which name what many of them share by its position in a table."""

    def __init__(self, record: Record, within: Inside) -> None:
        self._record, self._within = record, within
        self._zero = record.whole[0]
        names = "names", "kinds", "where", "phases", "spans", "arguments"
        self._tables: dict[str, Table] = {name: {} for name in names}

    def _place(self, name: str, value: Hashable) -> int:
        return place(value, self._tables[name])

    def columns(self) -> dict[str, object]:
        """Return a column for each field of the rows, and the tables."""
        rows = [self._launch(at, one) for at, one in enumerate(self._record.slices)]
        rows += [self._item(item, rows[item.of]) for item in self._within.items]
        keys = list(rows[0]) if rows else []
        return {
            "launches": {key: [row[key] for row in rows] for key in keys},
            **{name: list(table) for name, table in self._tables.items()},
        }

    def _launch(self, at: int, one: Slice) -> dict[str, object]:
        record, zero = self._record, self._zero
        start, end = record.interval(one)
        if one.clock == "host" and not record.clocks.comparable:
            start = end = zero  # its times are on another clock
        return {
            "number": one.number,
            "name": self._place("names", one.name),
            "kind": self._place("kinds", kind_of(one)),
            "where": self._place("where", record.where[one.number]),
            "phase": self._place("phases", one.phase),
            "device": one.device,
            "lane": one.lane,
            "epoch": one.epoch,
            "passed": one.passed,
            "thread": one.thread,
            "start": start - zero,
            "end": end - zero,
            **_host_times(record, one, zero),
            "groups": one.groups,
            "items": one.items,
            "reads": [self._place("spans", tuple(span)) for span in one.reads],
            "writes": [self._place("spans", tuple(span)) for span in one.writes],
            "arguments": self._place("arguments", one.arguments),
            "begin": self._within.begin[at],
            "finish": self._within.end[at],
            **OF_LAUNCH,
        }

    def _item(self, item: Item, replay: dict[str, object]) -> dict[str, object]:
        """Return a task of a replay, as a launch that the host does not know."""
        part = item.part
        return {
            **replay,
            "name": self._place("names", part.name),
            "kind": self._place("kinds", "kernels"),
            "called": UNKNOWN,
            "handed": UNKNOWN,
            "groups": item.tiles,
            "items": 0,
            "reads": [self._place("spans", tuple(span)) for span in part.reads],
            "writes": [self._place("spans", tuple(span)) for span in part.writes],
            "arguments": self._place("arguments", ()),
            "begin": item.begin,
            "finish": item.end,
            "of": item.of,
            "part": part.launch,
            "band": part.band,
        }


def _left_out(within: Inside) -> list[str]:
    if not within.left_out:
        return []
    return [f"Groups ran {within.left_out} more launches or replays: too many to be shown."]


OF_LAUNCH = {"of": UNKNOWN, "part": 0, "band": UNKNOWN}
"""Columns of a task of a replay: the replay, the launch of the graph, and the band of it."""


def _host_times(record: Record, one: Slice, zero: int) -> dict[str, int]:
    """Return when a call began, how long it took, when the driver got it, and the thread's own
    time."""
    comparable = record.clocks.comparable
    called = one.called_ns - zero if one.called_ns and comparable else UNKNOWN
    handed = record.clocks.on_host(one, one.handed_ns) - zero if one.handed_ns else UNKNOWN
    return {
        "called": called,
        "call": one.hazards_ns + one.submit_ns,
        "handed": handed if comparable else UNKNOWN,
        "own": one.program_ns,
    }


def _edges(record: Record, places: dict[int, int], within: Inside) -> dict[str, object]:
    found = [
        (places[edge.upstream], places[number], edge.kind)
        for number, edges in record.edges.items()
        for edge in edges
        if edge.upstream in places
    ] + within.edges
    kinds: Table = {}
    return {
        "up": [up for up, _, _ in found],
        "down": [down for _, down, _ in found],
        "kind": [place(kind, kinds) for _, _, kind in found],
        "kinds": list(kinds),
    }


def _waits(record: Record) -> dict[str, list[int]]:
    zero = record.whole[0]
    waits = record.waits if record.clocks.comparable else ()
    return {
        "thread": [one.thread for one in waits],
        "start": [one.start_ns - zero for one in waits],
        "end": [one.end_ns - zero for one in waits],
        "number": [one.number for one in waits],
    }
