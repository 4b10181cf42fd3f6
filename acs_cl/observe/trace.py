"""The timeline of a runtime: what was launched when, and what ran when, with the clock of each
time.

In: the runtime's reports as launches are made, waited for, and end. Out: records, a summary (host
time per stage, overlap), and JSON Lines. Device times come from profiling events, host times from
`perf_counter`.

What a thread does outside of calls of the library is its own time; it goes to its next launch, as
what it has waited for since the last one does.

Invariant: every interval names its clock; `overlap` refuses to mix clocks. Where only the time of
several launches together is known, each says so.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from threading import get_ident
from time import perf_counter_ns
from typing import NamedTuple

import pyopencl as cl

from ..errors import UsageError
from ..host.intervals import in_flight
from ..host.thread_time import ThreadTime
from ..records import Launch, Report, Span
from .commands import arguments_of, sizes_of

VERSION = 5
ALL_BEFORE = 0
"""In `waits`: everything launched before."""
STRAIGHT = -2
"""The lane of commands that went straight to the driver; host tasks and epochs have -1."""


class Wait(NamedTuple):
    """What a thread of the program waited for, and when, on the host's clock."""

    thread: int
    start_ns: int
    end_ns: int
    number: int
    """A launch, or ALL_BEFORE."""


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
    program_ns: int = 0
    """What its thread did by itself since its last launch, on the host's clock; without what it
    waited."""
    waits: tuple[int, ...] = ()
    """Launches that its thread has waited for, or seen ended, since its last launch, or
    ALL_BEFORE."""
    thread: int = 0
    """Which launched it, in the order of their first launches."""
    epoch: int = 0
    """Not 0: it ran in this epoch of the scheduler on the device, and its times are those of the
    whole epoch. When a task began or ended in there nobody knows."""
    passed: int = 0
    """Not 0: it stands for so many commands of a queue that went straight to the driver, whose
    times nobody took. Its own are the host's: from the first of them to when it saw their end."""
    called_ns: int = 0
    """When its call began, on the host's clock; 0 where nobody knows."""
    handed_ns: int = 0
    """When the driver got it, on the clock of its times; 0 where nobody knows."""
    seen_ns: int = 0
    """When the host saw that it had ended, on the host's clock; 0 where nobody knows."""


class Trace:
    """Slices in the order in which launches ended. `phase`: what launches from now on belong to."""

    def __init__(self) -> None:
        self.slices: list[Slice] = []
        self.waits: list[Wait] = []
        self._phases: dict[int, str] = {}
        """{thread: the phase that it is in}."""
        self._threads: dict[int, ThreadTime] = {}
        self._stages: dict[int, tuple[int, int, str, int]] = {}
        self._before: dict[int, tuple[int, tuple[int, ...], int]] = {}
        """{launch: what its thread did before it}."""

    def enter(self, phase: str) -> str:
        """The phase of this thread from now on; gives the one before."""
        before = self._phases.get(get_ident(), "")
        self._phases[get_ident()] = phase
        return before

    def _thread(self) -> ThreadTime:
        found = self._threads.get(get_ident())
        if found is None:
            found = self._threads[get_ident()] = ThreadTime(len(self._threads))
        return found

    def called(self) -> None:
        """The program calls the library, which has some way to go to a launch or a wait."""
        one = self._thread()
        one.count(now := perf_counter_ns())
        one.called_ns, one.inside = now, True

    def waited(self, number: int = ALL_BEFORE) -> None:
        """The program knows that a launch has ended, and goes on."""
        one = self._thread()
        if number == ALL_BEFORE:
            one.waited = {ALL_BEFORE: None}
        elif ALL_BEFORE not in one.waited:
            one.waited[number] = None
        now = perf_counter_ns()
        if one.called_ns:
            self.waits.append(Wait(one.number, one.called_ns, now, number))
        one.left_ns, one.inside, one.called_ns = now, False, 0

    def polled(self, number: int, done: bool) -> None:
        """The program has asked whether a launch has ended. What it does between two such questions
        about one launch is waiting."""
        one = self._thread()
        one.count(now := perf_counter_ns())
        if done:
            if one.polls == number:
                one.own_ns, one.polls = one.before_ns, 0
                one.called_ns = one.polled_ns
            self.waited(number)
        elif one.polls != number:
            one.polls, one.before_ns, one.polled_ns = number, one.own_ns, now

    def entered(self, number: int, started_ns: int) -> int:
        """A launch is in the hazards; the time."""
        one = self._thread()
        one.count(started_ns)
        self._before[number] = one.own_ns, tuple(one.waited), one.number
        one.own_ns, one.waited, one.polls = 0, {}, 0
        return perf_counter_ns()

    def launched(self, number: int, started_ns: int, entered_ns: int) -> None:
        """A launch call has run through its stages."""
        now, one = perf_counter_ns(), self._thread()
        phase = self._phases.get(get_ident(), "")
        self._stages[number] = entered_ns - started_ns, now - entered_ns, phase, started_ns
        one.left_ns, one.inside, one.called_ns = now, False, 0

    def goes_on(self) -> None:
        """What the library does from now on to the next launch is its own, too."""
        self._thread().inside = True

    def forget_times(self) -> None:
        """What threads do from here to their next launches is nobody's."""
        for one in list(self._threads.values()):
            one.forget()

    def ended(self, launch: Launch, lane: int, event: object) -> None:
        """A device command has ended; its event has the times."""
        began = getattr(launch.command, "began_ns", 0)
        if began:  # what the program did by itself between those commands is not known either
            _, waits, thread = self._before.get(launch.number, (0, (), 0))
            self._before[launch.number] = 0, waits, thread
            self._add(launch, STRAIGHT, "host", began, perf_counter_ns())
            return
        timed = getattr(launch.command, "kernel_event", None) or event
        try:
            times = getattr(timed, "profile", None)
            start, end = (times.start, times.end) if times is not None else (0, 0)
            handed = getattr(times, "queued", 0)
        except cl.Error:
            times = None
        if times is None:  # failed commands have no profile
            self._before.pop(launch.number, None)
            return
        clock, epoch = getattr(event, "clock", "device"), getattr(event, "shared", 0)
        self._add(launch, lane, clock, start, end, epoch, handed)

    def ran_on_host(self, launch: Launch, start_ns: int, end_ns: int) -> None:
        """A host task has ended."""
        self._add(launch, -1, "host", start_ns, end_ns)

    def _add(
        self,
        launch: Launch,
        lane: int,
        clock: str,
        start_ns: int,
        end_ns: int,
        epoch: int = 0,
        handed_ns: int = 0,
    ) -> None:
        stages = self._stages.pop(launch.number, (0, 0, "", 0))
        hazards_ns, submit_ns, phase, called_ns = stages
        before = self._before.pop(launch.number, (0, (), 0))
        groups, items = sizes_of(launch.command)
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
                arguments_of(launch),
                *before,
                epoch,
                getattr(launch.command, "passed", 0),
                called_ns,
                handed_ns,
                perf_counter_ns(),
            )
        )

    def clear(self) -> None:
        """Forget what was traced so far."""
        self.slices.clear()
        self.waits.clear()
        self.forget_times()

    def overlap(self, clock: str | None = None) -> float:
        """Launches in flight on average while any is: summed durations over their union. An epoch
        counts as one launch. Without a `clock`: those of the device, real or modelled."""
        if clock is None:
            clock = next((s.clock for s in self.slices if s.clock != "host"), "device")
        return overlap([one for one in self.slices if one.clock == clock])

    def summary(self) -> Report:
        """Overlap on the device, and host nanoseconds per launch by stage (medians)."""
        hazards = sorted(s.hazards_ns for s in self.slices)
        submit = sorted(s.submit_ns for s in self.slices)
        return {
            "slices": len(self.slices),
            "overlap": round(self.overlap(), 3),
            "in_epochs": sum(s.epoch > 0 for s in self.slices),
            "epochs": len({s.epoch for s in self.slices} - {0}),
            "straight": sum(s.passed for s in self.slices),
            "host_ns_median": {
                "hazards": hazards[len(hazards) // 2] if hazards else 0,
                "submit": submit[len(submit) // 2] if submit else 0,
            },
        }

    def save(self, path: str | Path) -> None:
        """Write JSON Lines: a header with the version and clocks, then one line a slice."""
        slices = list(self.slices)
        head = {
            "acs_cl_trace": VERSION,
            "clocks": ["device", "host", "model"],
            "unit": "ns",
            "launches": len(slices),
            "waits": list(self.waits),
        }
        lines = [json.dumps(head), *(json.dumps(slice_._asdict()) for slice_ in slices)]
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def timeline(tracer: object) -> Trace:
    """The trace of a runtime; `UsageError` if it has none."""
    if not isinstance(tracer, Trace):
        raise UsageError("nothing was traced: make the runtime with trace=True")
    return tracer


def overlap(slices: Sequence[Slice]) -> float:
    """The same for some slices, which have one clock."""
    return in_flight([(one.start_ns, one.end_ns) for one in once(slices)])


def once(slices: Sequence[Slice]) -> list[Slice]:
    """Slices with times of their own, and one for each epoch, whose time counts once."""
    return list({one.epoch or -one.number: one for one in slices}.values())
