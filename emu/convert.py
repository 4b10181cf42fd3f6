"""From the timeline that a runtime saves to a trace for the emulator, as far as it goes.

In: the JSON Lines of `acs_cl.trace.Trace.save`. Out: a trace in program order with the measured
time of each launch, and sentences about what the timeline does not tell.

Invariant: nothing is made up in silence. Edges come from the bytes that launches read and wrote, so
those to launches that had ended when their dependant was made are there too; but a launch without
times, which failed, is missing with its edges. Waits and the program's own time are there as far as
one thread made all launches. What is guessed stands in the sentences.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from acs_cl.emu.trace import ALL_BEFORE, HOST, KERNEL, KINDS, Entry, Trace
from acs_cl.errors import UsageError
from acs_cl.records import Span
from acs_cl.trace import VERSION

READABLE = (2, VERSION)
"""Version 2 knew nothing of what the program did."""
TIMELINE = "acs_cl_trace"
FIELDS = ("number", "name", "clock", "start_ns", "end_ns", "groups", "items", "reads", "writes")
TRANSFERS = set(KINDS) - {KERNEL, HOST}


def is_timeline(path: str | Path) -> bool:
    """Whether a file begins as a timeline does."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            start = file.read(200)
    except (OSError, UnicodeDecodeError):
        return False
    return start.startswith((f'{{"{TIMELINE}"', '{"traceEvents"'))


def from_timeline(path: str | Path, items: int) -> tuple[Trace, list[str]]:
    """The trace, and what is missing in it. `items` is how many work-items a group is taken to
    have, since the timeline does not tell."""
    path = Path(path)
    try:
        lines = _lines(path.read_text(encoding="utf-8"))
        head = json.loads(lines[0]) if lines else {}
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"{path.name}: cannot be read as a timeline: {error}") from error
    if not isinstance(head, dict) or head.get(TIMELINE) not in READABLE:
        raise UsageError(f"{path.name}, line 1: expected a head with {TIMELINE!r}: {VERSION}")
    slices = [_slice(line, f"{path.name}, line {count}") for count, line in enumerate(lines[1:], 2)]
    slices.sort(key=lambda one: int(one["number"]))
    places = {one["number"]: place for place, one in enumerate(slices, 1)}
    if len(places) != len(slices):
        raise UsageError(f"{path.name}: a launch is there twice")
    entries = [_entry(one, places[one["number"]], items) for one in slices]
    if len({one["thread"] for one in slices}) == 1:
        entries = [_with_program(*both, places) for both in zip(entries, slices, strict=True)]
    whole = not slices or places[slices[-1]["number"]] == slices[-1]["number"]
    trace = Trace(path.stem, entries, "device", edges="spans", complete=whole)
    return trace, _missing(slices, items, head[TIMELINE])


def _lines(text: str) -> list[str]:
    """Head and slices, a line each: also those in what `rt.measure().save` writes for viewers."""
    if text.startswith('{"traceEvents"'):
        inside = json.loads(text)["acs_cl"]
        slices = inside.pop("slices")
        return [json.dumps(inside), *(json.dumps(one) for one in slices)]
    return text.splitlines()


def _slice(line: str, where: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
        short = [field for field in FIELDS if field not in found]
        if short:
            raise ValueError(f"there is no {', '.join(short)}")
        if found["end_ns"] < found["start_ns"]:
            raise ValueError(f"it ends at {found['end_ns']}, before it starts")
        for way in ("reads", "writes"):
            found[way] = tuple(Span(*map(int, span)) for span in found[way])
        for field in ("program_ns", "thread"):
            found[field] = int(found.get(field, 0))
        found["waits"] = tuple(map(int, found.get("waits", ())))
        if found["program_ns"] < 0:
            raise ValueError(f"the program took {found['program_ns']} before it")
    except (ValueError, TypeError) as error:
        raise UsageError(f"{where}: not a slice: {error}") from None
    assert isinstance(found, dict)
    return found


def _entry(one: dict[str, Any], number: int, items: int) -> Entry:
    name = one["name"]
    kind = HOST if one["clock"] == "host" else name if name in TRANSFERS else KERNEL
    total_ns = max(1, one["end_ns"] - one["start_ns"])
    entry = Entry(number, name, kind, total_ns=total_ns, reads=one["reads"], writes=one["writes"])
    if kind == KERNEL:
        return entry._replace(groups=one["groups"] or 1, items=one["items"] or items)
    return entry


def _with_program(entry: Entry, one: dict[str, Any], places: dict[int, int]) -> Entry:
    """With what the program did before the launch. A wait for one that is not in the timeline was
    for one before it, or for one that failed."""
    waits = (places.get(number, -1) if number else ALL_BEFORE for number in one["waits"])
    known = tuple(dict.fromkeys(place for place in waits if ALL_BEFORE <= place < entry.number))
    return entry._replace(host_ns=one["program_ns"], waits=known)


def _missing(slices: list[dict[str, Any]], items: int, version: int) -> list[str]:
    """What a reader of the trace has to know, each a sentence."""
    unsized = sum(not one["groups"] and one["clock"] != "host" for one in slices)
    last = slices[-1]["number"] if slices else 0
    said = [
        "No registers or local memory are known, nor whose groups cannot be cut into others.",
        "Durations are those of launches beside others, where they overlapped.",
        "A kernel of the user's that is called copy, fill, read or write is taken for a transfer.",
    ]
    if version < VERSION:
        said.append("What the program waited for, and did between launches, is not in it.")
    threads = len({one["thread"] for one in slices})
    if threads > 1:
        said.append(
            f"{threads} threads made launches, and the emulator has one: what they waited for and"
            " did between launches is left out."
        )
    if unsized:
        said.append(
            f"{unsized} launches do not say how many groups they have; kernels get one of {items}."
        )
    if last > len(slices):
        said.append(f"{last - len(slices)} launches have no times, since they failed or never ran.")
    return said
