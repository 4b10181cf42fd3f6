"""Shares: where the time of a block went. They sum to the whole.

Input: a record. Output: shares. Each moment counts for the first of these that holds: a kernel is
on the device; a transfer is; a host task runs; commands bypass the runtime; a thread is inside a
call that launches; a thread waits; the program does its own work.

Invariant: the shares sum to the whole block. Each names the clock it was measured with.
"""

from __future__ import annotations

from typing import NamedTuple

from ..host.intervals import length, minus, union, within
from ..launch.commands import BETWEEN
from .record import Record
from .slices import AT_ONCE, Slice

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
