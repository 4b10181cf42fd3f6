"""Traces: the launches of a program, in program order, as the emulator reads them.

Input: JSON Lines of version 3 (`docs/reference/formats.md` has the format), or entries made by a
program. Output: a `Trace` of frozen entries, or the file. `resolved` computes the upstream from the
bytes that launches read and write, with the library's own definition of a hazard.

Invariant: a file is read as a whole or not at all. An error names the first wrong line, with the
found and the expected value. A file that was cut short has fewer lines than its head says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from acs_cl.core import native
from acs_cl.emu import fields
from acs_cl.errors import UsageError
from acs_cl.host import output
from acs_cl.records import Span

VERSION, BEFORE_WHOLE = 3, 2
READABLE = (1, BEFORE_WHOLE, VERSION)
"""Version 1 had no ALL_BEFORE among waits, and version 2 none of `OURS`; all else is equal. A trace
without these is written as version 2."""
HEAD = "acs_cl_emu_trace"
KERNEL, HOST = "kernel", "host"
KINDS = (KERNEL, HOST, "copy", "fill", "read", "write")
ALL_BEFORE = 0
"""Among `waits`: everything before."""
MOST_GROUPS = (1 << 31) - 1
"""CUDA's limit of a grid in x. A kernel of this size takes millions of steps, not a day."""
CLOCKS = ("model", "device", "host")
EDGES = ("upstream", "spans")


class Entry(NamedTuple):
    """One command. Its time is one of three: `group_ns` for each group of a kernel, `total_ns` for
    all of it, or an estimate. The estimate uses `flops` and `bytes` of each group, and the
    dependent `steps` and `rounds` of each work-item. Zero is 'not known'."""

    number: int
    name: str
    kind: str = KERNEL
    upstream: tuple[int, ...] = ()
    waits: tuple[int, ...] = ()
    """Launches that the program waits for, by a blocking read for instance, before it launches
    this. ALL_BEFORE: everything."""
    groups: int = 0
    items: int = 0
    """Work-items of a group."""
    registers: int = 0
    """Registers of a work-item."""
    local_bytes: int = 0
    """Local memory of a group."""
    group_ns: int = 0
    total_ns: int = 0
    flops: int = 0
    bytes: int = 0
    steps: int = 0
    """Arithmetic operations of a work-item, each of which needs the previous one."""
    rounds: int = 0
    """Loads of a work-item, each of which needs the previous one."""
    host_ns: int = 0
    """Own work of the program before this launch."""
    segments: int = 0
    """Ranges that a hazard check compares."""
    whole_groups: int = 0
    """1: the work-items of a group work together, so they must not be cut into other groups."""
    on_lane: int = 0
    """1: this project's scheduler on the device cannot run it."""
    reads: tuple[Span, ...] = ()
    writes: tuple[Span, ...] = ()


class Trace(NamedTuple):
    """A program's launches. `edges`: they are ordered by lists of 'upstream' launches or by
    'spans'. `complete`: False if edges are known to be missing."""

    name: str
    entries: Sequence[Entry]
    clock: str = "model"
    edges: str = "upstream"
    complete: bool = True


ROOFLINE = ("flops", "steps", "rounds")
WORK = ("group_ns", "total_ns", "bytes", *ROOFLINE)
OURS = ("whole_groups", "on_lane")
NUMBERS = ("groups", "items", "registers", "local_bytes", "host_ns", "segments", *WORK, *OURS)
KEYS = {"number", "name", "kind", "upstream", "waits", "reads", "writes", *NUMBERS}
HEAD_KEYS = {HEAD, "name", "launches", "clock", "unit", "edges", "complete"}


def resolved(trace: Trace) -> Trace:
    """Return the trace with upstream lists instead of spans, and with segments counted."""
    if trace.edges == "upstream":
        return trace
    hazards = native.Hazards()
    entries = []
    for entry in trace.entries:
        upstream = tuple(sorted(hazards.enter(entry.number, entry.reads, entry.writes)))
        segments = entry.segments or len(entry.reads) + len(entry.writes)
        entries.append(entry._replace(upstream=upstream, segments=segments, reads=(), writes=()))
    return trace._replace(entries=entries, edges="upstream")


# ---- files ---------------------------------------------------------------------------------------


def save(trace: Trace, path: str | Path) -> None:
    """Write JSON Lines, which `load` reads back equal. A wrong trace is not written."""
    refuse_wrong(trace, str(path))
    output.write(path, "".join(line + "\n" for line in lines_of(trace)), "trace")


def refuse_wrong(trace: Trace, where: str) -> None:
    """Raise `UsageError` if an entry is wrong. `where`: the name of the trace in errors."""
    for entry in trace.entries:
        try:
            check(entry, trace.edges)
        except ValueError as error:
            raise UsageError(f"{where}, launch {entry.number} {entry.name!r}: {error}") from None


def lines_of(trace: Trace) -> Iterable[str]:
    """Return the lines of a file, the head first."""
    ours = any(entry.whole_groups or entry.on_lane for entry in trace.entries)
    head = {
        HEAD: VERSION if ours else BEFORE_WHOLE,
        "name": trace.name,
        "launches": len(trace.entries),
        "clock": trace.clock,
        "unit": "ns",
        "edges": trace.edges,
        "complete": trace.complete,
    }
    yield json.dumps(head)
    for entry in trace.entries:
        said = {key: value for key, value in entry._asdict().items() if value or key == "number"}
        if trace.edges == "spans":
            said["reads"], said["writes"] = entry.reads, entry.writes
        else:
            said["upstream"] = entry.upstream
        yield json.dumps(said)


def load(path: str | Path) -> Trace:
    """Read a file; raise `UsageError` with the first wrong line."""
    path = Path(path)
    try:
        with path.open(encoding="utf-8") as file:
            return parse(file, path.name)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path}: cannot be read as a trace: {why}") from error


def parse(lines: Iterable[str], where: str) -> Trace:
    """Make a trace from its lines. `where`: their name in errors."""
    numbered = enumerate(lines, 1)
    count, first = next(numbered, (1, ""))
    try:
        trace, launches = _head(fields.object_of(first))
        entries: list[Entry] = []
        for count, line in numbered:  # noqa: B007  the error names it
            entries.append(_entry(fields.object_of(line), len(entries) + 1, trace.edges))
        if len(entries) != launches:
            raise ValueError(f"the head promises {launches} launches, got {len(entries)}")
    except ValueError as error:
        raise UsageError(f"{where}, line {count}: {error}") from None
    return trace._replace(entries=entries)


def _head(found: dict[str, Any]) -> tuple[Trace, int]:
    version = found.get(HEAD)
    if version not in READABLE or isinstance(version, bool):
        raise ValueError(f"expected a head with {HEAD!r}: {VERSION}, got {version!r}")
    fields.known(found, HEAD_KEYS)
    clock, edges = (
        fields.one_of(found, key, words) for key, words in (("clock", CLOCKS), ("edges", EDGES))
    )
    fields.one_of(found, "unit", ("ns",))
    name, complete = fields.text(found, "name"), found.get("complete", True)
    if not isinstance(complete, bool):
        raise ValueError(f"'complete' has to be true or false, got {complete!r}")
    return Trace(name, (), clock, edges, complete), fields.number(found, "launches")


def _entry(found: dict[str, Any], number: int, edges: str) -> Entry:
    fields.known(found, KEYS)
    if fields.number(found, "number") != number:
        raise ValueError(f"expected launch number {number}, got {found['number']}")
    wanted = {"reads", "writes"} if edges == "spans" else {"upstream"}
    if found.keys() & {"reads", "writes", "upstream"} != wanted:
        raise ValueError(f"a trace ordered by {edges} has {sorted(wanted)} in each line, no others")
    values = {key: fields.number(found, key) for key in NUMBERS if key in found}
    entry = Entry(
        number,
        fields.text(found, "name"),
        found.get("kind", KERNEL),
        fields.launches(found, "upstream"),
        fields.launches(found, "waits"),
        reads=fields.spans(found, "reads"),
        writes=fields.spans(found, "writes"),
        **values,
    )
    check(entry, edges)
    return entry


def check(entry: Entry, edges: str) -> None:
    """Raise `ValueError` if the entry is impossible or incomplete."""
    if entry.kind not in KINDS:
        raise ValueError(f"'kind' has to be one of {', '.join(KINDS)}, got {entry.kind!r}")
    for key, launches, least in (
        ("upstream", entry.upstream, 1),
        ("waits", entry.waits, ALL_BEFORE),
    ):
        if any(not least <= other < entry.number for other in launches):
            raise ValueError(f"'{key}' of launch {entry.number} names {list(launches)}, not before")
        if len(set(launches)) != len(launches):
            raise ValueError(f"'{key}' names a launch twice: {list(launches)}")
    if edges == "upstream" and (entry.reads or entry.writes):
        raise ValueError("this trace is ordered by upstream, got spans")
    for key in NUMBERS:
        if getattr(entry, key) > fields.MOST:
            raise ValueError(f"'{key}' has to be below 2^63, got {getattr(entry, key):,}")
    said = [key for key in ("group_ns", "total_ns") if getattr(entry, key)]
    if not {entry.whole_groups, entry.on_lane} <= {0, 1}:
        raise ValueError(f"{' and '.join(map(repr, OURS))} are 0 or 1")
    if entry.kind == KERNEL:
        if not 1 <= entry.groups <= MOST_GROUPS or entry.items < 1:
            raise ValueError(
                f"a kernel needs 'groups' from 1 to {MOST_GROUPS:,} and 'items' of at least 1, got"
                f" {entry.groups:,} and {entry.items:,}"
            )
        roofline = any(getattr(entry, key) for key in ROOFLINE)
        if len(said) > 1 or (roofline and said):
            raise ValueError(
                "a kernel takes 'group_ns', or 'total_ns', or what 'flops', 'steps', 'rounds' say"
            )
        if not said and not roofline and not entry.bytes:
            raise ValueError("nothing says how long the kernel takes")
    elif said != ["total_ns"] or entry.groups or any(getattr(entry, key) for key in ROOFLINE):
        raise ValueError(f"a {entry.kind} has 'total_ns', and no groups or flops")
