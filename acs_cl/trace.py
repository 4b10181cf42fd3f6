"""The timeline of a runtime: what was launched when, and what ran when, with the clock of each
time.

In: the runtime's reports as launches are made and end. Out: records, a summary (host time per
stage, overlap), and JSON Lines. Device times come from profiling events, host times from
`perf_counter`.

Invariant: every interval names its clock; `overlap` refuses to mix clocks.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import prod
from pathlib import Path
from threading import get_ident
from typing import Any, NamedTuple

import pyopencl as cl

from .records import Launch, Span
from .timeline import in_flight

VERSION = 2


class Slice(NamedTuple):
    """One launch as it ran. `clock` is 'device', 'host' or 'model'; stages are host nanoseconds.
    `upstream` is what it waited for: launches that had ended when it was made are not in it, but
    `reads` and `writes` tell those edges, too."""

    number: int
    name: str
    lane: int
    clock: str
    start_ns: int
    end_ns: int
    upstream: tuple[int, ...]
    groups: int
    hazards_ns: int
    submit_ns: int
    items: int = 0
    """Work-items of a group; 0 where the driver chose, and for what is no kernel."""
    reads: tuple[Span, ...] = ()
    writes: tuple[Span, ...] = ()
    phase: str = ""
    """What the program called the part that it belongs to."""
    arguments: tuple[tuple[str, str, int], ...] = ()
    """Name, mode and base of a kernel's memory, where they are known."""


class Trace:
    """Slices in the order in which launches ended. `phase`: what launches from now on belong to."""

    def __init__(self) -> None:
        self.slices: list[Slice] = []
        self._phases: dict[int, str] = {}
        """{thread: the phase that it is in}."""
        self._stages: dict[int, tuple[int, int, str]] = {}

    def enter(self, phase: str) -> str:
        """The phase of this thread from now on; gives the one before."""
        before = self._phases.get(get_ident(), "")
        self._phases[get_ident()] = phase
        return before

    def launched(self, number: int, started_ns: int, entered_ns: int, submitted_ns: int) -> None:
        """A launch call has run through its stages."""
        phase = self._phases.get(get_ident(), "")
        self._stages[number] = entered_ns - started_ns, submitted_ns - entered_ns, phase

    def ended(self, launch: Launch, lane: int, event: Any) -> None:
        """A device command has ended; its event has the times."""
        event = getattr(launch.command, "kernel_event", None) or event
        try:
            start, end = event.profile.start, event.profile.end
        except cl.Error:
            return  # failed commands have no profile
        self._add(launch, lane, getattr(event, "clock", "device"), start, end)

    def ran_on_host(self, launch: Launch, start_ns: int, end_ns: int) -> None:
        """A host task has ended."""
        self._add(launch, -1, "host", start_ns, end_ns)

    def _add(self, launch: Launch, lane: int, clock: str, start_ns: int, end_ns: int) -> None:
        hazards_ns, submit_ns, phase = self._stages.pop(launch.number, (0, 0, ""))
        groups, items = _groups(launch)
        self.slices.append(
            Slice(
                launch.number,
                launch.command.name,
                lane,
                clock,
                start_ns,
                end_ns,
                launch.upstream,
                groups,
                hazards_ns,
                submit_ns,
                items,
                launch.access.reads,
                launch.access.writes,
                phase,
                _arguments(launch),
            )
        )

    def clear(self) -> None:
        """Forget what was traced so far."""
        self.slices.clear()

    def overlap(self, clock: str | None = None) -> float:
        """Launches in flight on average while any is: summed durations over their union. Without a
        `clock`: those of the device, real or modelled."""
        if clock is None:
            clock = next((s.clock for s in self.slices if s.clock != "host"), "device")
        return overlap([one for one in self.slices if one.clock == clock])

    def summary(self) -> dict[str, Any]:
        """Overlap on the device, and host nanoseconds per launch by stage (medians)."""
        hazards = sorted(s.hazards_ns for s in self.slices)
        submit = sorted(s.submit_ns for s in self.slices)
        return {
            "slices": len(self.slices),
            "overlap": round(self.overlap(), 3),
            "host_ns_median": {
                "hazards": hazards[len(hazards) // 2] if hazards else 0,
                "submit": submit[len(submit) // 2] if submit else 0,
            },
        }

    def save(self, path: str | Path) -> None:
        """Write JSON Lines: a header with the version and clocks, then one line a slice."""
        lines = [
            json.dumps(
                {"acs_cl_trace": VERSION, "clocks": ["device", "host", "model"], "unit": "ns"}
            )
        ]
        lines += [json.dumps(slice_._asdict()) for slice_ in self.slices]
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def overlap(slices: Sequence[Slice]) -> float:
    """The same for some slices, which have one clock."""
    return in_flight([(one.start_ns, one.end_ns) for one in slices])


def _arguments(launch: Launch) -> tuple[tuple[str, str, int], ...]:
    """Names, modes and bases of a kernel's memory: where each argument is one span of what is read,
    and one of what is written, as its mode says, which is so unless the call said otherwise."""
    command = launch.command
    command = getattr(command, "plain", command)
    signature = getattr(getattr(command, "kernel", None), "signature", None)
    if signature is None:
        return ()
    memory = [one for one in signature.parameters if one.mode]
    reads, writes = launch.access.reads, launch.access.writes
    named = []
    for way, spans in (("r", reads), ("w", writes)):
        mine = [one for one in memory if way in one.mode]
        if len(mine) != len(spans):
            return ()
        named += [(one.name, one.mode, span.base) for one, span in zip(mine, spans, strict=True)]
    return tuple(dict.fromkeys(named))


def _groups(launch: Launch) -> tuple[int, int]:
    """Work-groups of a kernel and work-items of each; zeros for other commands and where the driver
    chose the size."""
    local = getattr(launch.command, "local_size", None)
    if not local:
        return 0, 0
    groups = 1
    for items, size in zip(launch.command.global_size, local, strict=True):  # type: ignore[attr-defined]
        groups *= -(-items // size)
    return groups, prod(local)
