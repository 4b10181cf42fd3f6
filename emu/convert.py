"""Convert the timeline that a runtime saves to a trace for the emulator, as far as possible.

Input: a file of `acs_cl.observe.trace.Trace.save` or `rt.measure().save`. Output: a trace in
program order with the measured time of each launch, and sentences about missing facts.

Invariant: a file is read as a whole or not at all, as in `trace`, and the sentences name every
guess. Edges come from the bytes that launches read and wrote. So they include edges to launches
that had ended when the later launch was made. A failed launch has no times; it is missing, with its
edges. Waits and the program's own time are there as far as one thread made all launches.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from acs_cl.emu import fields
from acs_cl.emu.trace import ALL_BEFORE, CLOCKS, HOST, KERNEL, KINDS, Entry, Trace, refuse_wrong
from acs_cl.errors import UsageError

BEFORE_PROGRAM, BEFORE_EPOCHS, BEFORE_CALLS, VERSION = 2, 3, 4, 5
READABLE = (BEFORE_PROGRAM, BEFORE_EPOCHS, BEFORE_CALLS, VERSION)
"""Version 2 had no work of the program. Version 3 did not mark times of whole epochs. Version 4 had
no beginnings of calls, which the emulator does not need."""
TIMELINE = "acs_cl_trace"
VIEWERS, LAUNCHES = "traceEvents", "launches"
FIELDS = ("number", "name", "clock", "start_ns", "end_ns", "groups", "items", "reads", "writes")
NUMBERS = (
    "number", "start_ns", "end_ns", "groups", "items", "program_ns", "thread", "epoch", "passed"
)  # fmt: skip
FOREIGN = 1 << 40
"""First number for bases of the program's own memory, which has addresses below 0 in a timeline."""
TRANSFERS = set(KINDS) - {KERNEL, HOST}


def is_timeline(path: str | Path) -> bool:
    """Tell whether a file begins like a timeline."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            start = file.read(200)
    except (OSError, UnicodeDecodeError):
        return False
    return start.startswith((f'{{"{TIMELINE}"', f'{{"{VIEWERS}"'))


def from_timeline(path: str | Path, items: int) -> tuple[Trace, list[str]]:
    """Return the trace, and its missing facts. `items`: work-items of a group, if the timeline does
    not tell."""
    head, slices = read_timeline(path)
    trace = of_slices(slices, Path(path).stem, items)
    refuse_wrong(trace, Path(path).name)
    return trace, _missing(slices, items, int(head[TIMELINE]))


def read_timeline(path: str | Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the head of a timeline, and its slices in program order. All values that the emulator
    needs are checked."""
    path = Path(path)
    head, slices = _read(path)
    slices.sort(key=lambda one: int(one["number"]))
    if len({one["number"] for one in slices}) != len(slices):
        raise UsageError(f"{path.name}: a launch is there twice")
    return head, slices


def checked(slices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Check slices of a program, in the form of a file."""
    foreign: dict[int, int] = {}
    return [_slice(one, foreign) for one in json.loads(json.dumps(slices))]


def of_slices(slices: list[dict[str, Any]], name: str, items: int) -> Trace:
    """Make a trace of slices in program order, as `read_timeline` or `checked` return them."""
    places = {one["number"]: place for place, one in enumerate(slices, 1)}
    entries = [_entry(one, places[one["number"]], items) for one in _shared_out(slices)]
    if len({one["thread"] for one in slices}) == 1:
        entries = [_with_program(*both, places) for both in zip(entries, slices, strict=True)]
    return Trace(name, entries, "device", edges="spans", complete=not _lost(slices))


def _lost(slices: list[dict[str, Any]]) -> int:
    """Count missing launches between the first one and the last one."""
    return slices[-1]["number"] - slices[0]["number"] + 1 - len(slices) if slices else 0


# ---- files ---------------------------------------------------------------------------------------


def _read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return head and slices: of lines, or of a file of `rt.measure().save`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path}: cannot be read as a timeline: {why}") from error
    at, found = "line 1", []
    foreign: dict[int, int] = {}
    try:
        first, *lines = text.splitlines() or [""]
        head = fields.object_of(first)
        called = "line"
        if VIEWERS in head:
            head, lines, called = *_inside(head), "slice"
        if head.get(TIMELINE) not in READABLE:
            raise ValueError(f"expected a head with {TIMELINE!r}: {VERSION}")
        for count, line in enumerate(lines, 2 if called == "line" else 1):
            at = f"{called} {count}"
            found.append(_slice(fields.object_of(line), foreign))
        if LAUNCHES in head and fields.number(head, LAUNCHES) != len(found):
            raise ValueError(f"the head promises {head[LAUNCHES]} launches, got {len(found)}")
    except ValueError as error:
        raise UsageError(f"{path.name}, {at}: {error}") from None
    return head, found


def _slice(found: dict[str, Any], foreign: dict[int, int]) -> dict[str, Any]:
    """Check a slice. `foreign`: numbers of the program's own memory."""
    short = [field for field in FIELDS if field not in found]
    try:
        if short:
            raise ValueError(f"there is no {', '.join(short)}")
        fields.text(found, "name")
        fields.one_of(found, "clock", CLOCKS)
        for key in NUMBERS:
            found[key] = fields.number(found, key) if key in found else 0
        if not found["number"]:
            raise ValueError("launches are counted from 1, got number 0")
        if found["end_ns"] < found["start_ns"]:
            raise ValueError(f"it ends at {found['end_ns']}, before it starts")
        for key in ("reads", "writes"):
            for span in found[key] if isinstance(found[key], list) else ():
                if isinstance(span, list) and span and isinstance(span[0], int) and span[0] < 0:
                    span[0] = foreign.setdefault(span[0], FOREIGN + len(foreign))
            found[key] = fields.spans(found, key)
        found["waits"] = fields.launches(found, "waits")
    except ValueError as error:
        raise ValueError(f"not a slice: {error}") from None
    return found


def _inside(document: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return head and lines of a file of `rt.measure().save`."""
    head = document.get("acs_cl")
    slices = head.get("slices") if isinstance(head, dict) else None
    if not isinstance(head, dict) or not isinstance(slices, list):
        raise ValueError("these are events of another program: expected 'acs_cl' with 'slices'")
    return head, [json.dumps(one) for one in slices]


# ---- entries -------------------------------------------------------------------------------------


def _kind(one: dict[str, Any]) -> str:
    name: str = one["name"]
    return HOST if one["clock"] == "host" else name if name in TRANSFERS else KERNEL


def _shared_out(slices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Divide an epoch's time equally among its launches, if only the epoch's time is known."""
    tasks = Counter(one["epoch"] for one in slices)

    def end_ns(one: dict[str, Any]) -> int:
        start, end = int(one["start_ns"]), int(one["end_ns"])
        return start + (end - start) // (tasks[one["epoch"]] if one["epoch"] else 1)

    return [{**one, "end_ns": end_ns(one)} for one in slices]


def _entry(one: dict[str, Any], number: int, items: int) -> Entry:
    name, kind = one["name"], _kind(one)
    total_ns = max(1, one["end_ns"] - one["start_ns"])
    entry = Entry(number, name, kind, total_ns=total_ns, reads=one["reads"], writes=one["writes"])
    if kind == KERNEL:
        return entry._replace(groups=one["groups"] or 1, items=one["items"] or items)
    return entry


def _with_program(entry: Entry, one: dict[str, Any], places: dict[int, int]) -> Entry:
    """Add the program's work before the launch. A wait for a missing launch was for an earlier or a
    failed one."""
    waits = (places.get(number, -1) if number else ALL_BEFORE for number in one["waits"])
    known = tuple(dict.fromkeys(place for place in waits if ALL_BEFORE <= place < entry.number))
    return entry._replace(host_ns=one["program_ns"], waits=known)


def _missing(slices: list[dict[str, Any]], items: int, version: int) -> list[str]:
    """Return sentences about facts that are missing in the trace."""
    unsized = sum(not one["groups"] and _kind(one) == KERNEL for one in slices)
    lost, before = _lost(slices), slices[0]["number"] - 1 if slices else 0
    said = [
        "No registers or local memory are known, nor whose groups cannot be cut into others.",
        "Durations are those of launches beside others, where they overlapped.",
        "A kernel of the user's that is called copy, fill, read or write is taken for a transfer.",
    ]
    if version == BEFORE_PROGRAM:
        said.append("What the program waited for, and did between launches, is not in it.")
    epochs = len({one["epoch"] for one in slices} - {0})
    if epochs:
        tasks = sum(one["epoch"] > 0 for one in slices)
        said.append(
            f"{tasks} launches ran in {epochs} epochs of the scheduler on the device, of which only"
            " the times of the whole are known: each gets an equal part."
        )
    passed = sum(one["passed"] for one in slices)
    if passed:
        said.append(
            f"{passed} commands bypassed the runtime, and are as many tasks of the host as"
            " there were rows of them, with the host's times."
        )
    threads = len({one["thread"] for one in slices})
    if threads > 1:
        said.append(
            f"{threads} threads made launches, and the emulator has one: what they waited for and"
            " did between launches is left out."
        )
    if unsized:
        said.append(
            f"{unsized} kernels do not say how many groups they have, and get one of {items}."
        )
    if before:
        said.append(f"{before} launches before the first are not in it, nor what they did.")
    if lost:
        said.append(f"{lost} launches have no times, since they failed or never ran.")
    return said
