"""Shares: where the time of a block went, and why nothing ran, moment by moment.

Input: a record. Output: shares, and idle time by its reason. Each moment counts for the first of
these that holds: a kernel is on the device; a transfer is; a host task runs; commands bypass the
runtime; a thread is inside a call that launches; a thread waits; the program does its own work. The
reason of an idle time is a wait of the program, the runtime, the driver, or what is left, which is
the host. The launch that ends it decides.

Invariant: the shares sum to the whole block. Each names the clock it was measured with.
"""

from __future__ import annotations

from collections import Counter

from ..host.intervals import length, minus, union, within
from ..launch.commands import BETWEEN
from ..records import NamedTuple
from .record import Record
from .slices import ALL_BEFORE, AT_ONCE, Slice

BEGINS_NS = 1_000_000
"""A driver that takes longer to begin a launch, though the device is idle, does something else."""

TRANSFERS = ("read", "write", "copy", "fill")


class Share(NamedTuple):
    """A part of the whole time."""

    name: str
    ns: int
    clock: str
    what: str


KINDS = {
    "kernels": "at least one kernel is on the device",
    "transfers": "a transfer is on the device, and no kernel",
    "host tasks": "a host task runs, and the device has nothing to do",
    "bypass": "commands of a queue bypass the runtime; what of that is theirs nobody knows",
    "launching": "the device is idle while a thread is inside a call that launches",
    "waiting": "the device is idle while a thread waits for what has ended, or is about to",
    "own work": "the device is idle while the program does something else",
    "idle": "nothing is on the device; what the host does meanwhile is not known",
}


def kind_of(one: Slice) -> str:
    """Return the share that a launch counts for."""
    if one.passed:
        return "bypass"
    if one.lane == AT_ONCE or one.name.startswith(BETWEEN):
        return "transfers"
    if one.clock == "host":
        return "host tasks"
    return "transfers" if one.name in TRANSFERS and not one.groups else "kernels"


def busy(record: Record) -> dict[str, list[tuple[int, int]]]:
    """Return when launches of each kind ran, as unions on the clock of the whole."""
    found: dict[str, list[tuple[int, int]]] = {}
    for one in record.slices:
        if record.clocks.comparable or one.clock == record.clocks.clock:
            found.setdefault(kind_of(one), []).append(record.interval(one))
    return {kind: union(times) for kind, times in found.items()}


def idle(record: Record) -> list[tuple[int, int]]:
    """Return when nothing ran, neither on the device nor as a host task."""
    ran = [interval for times in busy(record).values() for interval in times]
    return minus([record.whole], union(ran))


def shares(record: Record) -> list[Share]:
    """Return the shares that are not zero, in the order of `KINDS`."""
    if not record.slices:
        return []
    ran, left = busy(record), [record.whole]
    found: list[Share] = []

    def take(kind: str, times: list[tuple[int, int]], clock: str) -> None:
        nonlocal left
        mine = within(left, times)
        if mine:
            found.append(Share(kind, length(mine), clock, KINDS[kind]))
            left = minus(left, mine)

    device = record.clocks.clock
    for kind in ("kernels", "transfers", "host tasks", "bypass"):
        take(kind, ran.get(kind, []), device if kind in ("kernels", "transfers") else "host")
    if record.clocks.comparable:
        launching = [
            (one.called_ns, one.called_ns + one.hazards_ns + one.submit_ns)
            for one in record.slices
            if one.called_ns
        ]
        take("launching", union(launching), "host")
        take("waiting", union((one.start_ns, one.end_ns) for one in record.waits), "host")
        take("own work", left, "host")
    take("idle", left, device)
    return found


class Idle(NamedTuple):
    """Reasons why nothing ran, in nanoseconds."""

    waits: Counter[str]
    """Idle time of the device behind a wait, by the launch or call that was waited for."""
    behind: int
    own: int
    """The part of that in which the program did its own work."""
    held: int
    """Idle time whose next launch had been called already: the runtime held it back."""
    begins: Counter[str]
    """Idle time in which the driver had the next launch and did not begin it, by its name."""
    left: int


def idle_of(record: Record) -> Idle:
    """Attribute the time in which nothing runs, by the launch that ends it. A wait is the cause if
    that launch was called later, and its thread had waited since its previous launch."""
    names: Counter[str] = Counter()
    begins: Counter[str] = Counter()
    behind = own = held = left = 0
    known = {one.number: one.name for one in record.slices}
    starts: dict[int, Slice] = {}
    for one in record.slices:
        starts.setdefault(record.interval(one)[0], one)
    for begin, end in idle(record):
        first = starts.get(end)
        if first is None or not first.called_ns or not record.clocks.comparable:
            left += end - begin
            continue
        handed = record.clocks.on_host(first, first.handed_ns) if first.handed_ns else end
        late = end - max(begin, handed)
        if late > BEGINS_NS:
            begins[first.name] += late
            end -= late
        if first.called_ns <= begin:
            waited = bool(first.handed_ns) and handed > begin
            held += end - begin if waited else 0
            left += 0 if waited else end - begin
        elif first.waits:
            last = first.waits[-1]
            names["all before" if last == ALL_BEFORE else known.get(last, "a launch")] += 1
            behind += end - begin
            own += min(end - begin, first.program_ns)
        else:
            left += end - begin
    return Idle(names, behind, own, held, begins, left)
