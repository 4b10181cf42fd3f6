"""The timeline of a runtime: when launches were made and when they ran, with the clock of each
time.

Input: the runtime's reports about launches: made, waited for, ended. Output: records, a summary
(host time per stage, overlap), and JSON Lines. Device times come from profiling events, host times
from `perf_counter`.

The time of a thread outside calls of the library is the program's own. It is added to the thread's
next launch, together with the waits since the previous one.

Invariant: every interval names its clock, and `overlap` refuses to mix clocks. If only the time of
several launches together is known, each of them says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import get_ident
from time import perf_counter_ns

import pyopencl as cl

from ..errors import UnreadableError
from ..host import output
from ..records import Found, Launch, ReplayTask, Report, Run
from .clocks import on_one_clock
from .commands import arguments_of, name_of, sizes_of
from .slices import ALL_BEFORE, AT_ONCE, BYPASS, Slice, Wait, overlap
from .thread_time import ThreadTime

VERSION = 5


class Trace:
    """Slices in the order in which launches ended. `phase`: the phase of launches from now on."""

    def __init__(self) -> None:
        self.slices: list[Slice] = []
        self.waits: list[Wait] = []
        self.device_of: Callable[[int], int] = lambda number: -1
        """Returns which of several devices a launch ran on."""
        self.found = Found()
        """Notes of the scheduler's groups."""
        self._phases: dict[int, str] = {}
        """{thread: its phase}."""
        self._threads: dict[int, ThreadTime] = {}
        self._stages: dict[int, tuple[int, int, str, int]] = {}
        self._before: dict[int, tuple[int, tuple[int, ...], int]] = {}
        """{launch: own work, waits and number of its thread before it}."""

    def __repr__(self) -> str:
        return f"<acs_cl timeline, launches: {len(self.slices)}>"

    def enter(self, phase: str) -> str:
        """Set the phase of this thread; return the previous one."""
        before = self._phases.get(get_ident(), "")
        self._phases[get_ident()] = phase
        return before

    def _thread(self) -> ThreadTime:
        found = self._threads.get(get_ident())
        if found is None:
            found = self._threads[get_ident()] = ThreadTime(len(self._threads))
        return found

    def called(self) -> None:
        """Note that the program calls the library. A launch or a wait comes later."""
        one = self._thread()
        one.count(now := perf_counter_ns())
        one.called_ns, one.inside = now, True

    def waited(self, number: int = ALL_BEFORE) -> None:
        """Note that the program knows of the end of a launch, and goes on."""
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
        """Note that the program asked whether a launch has ended. Time between two such questions
        about one launch counts as waiting."""
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
        """Note that a launch is in the hazards; return the time."""
        one = self._thread()
        one.count(started_ns)
        self._before[number] = one.own_ns, tuple(one.waited), one.number
        one.own_ns, one.waited, one.polls = 0, {}, 0
        return perf_counter_ns()

    def launched(self, number: int, started_ns: int, entered_ns: int) -> None:
        """Note that a launch call is through all its stages."""
        now, one = perf_counter_ns(), self._thread()
        phase = self._phases.get(get_ident(), "")
        self._stages[number] = entered_ns - started_ns, now - entered_ns, phase, started_ns
        one.left_ns, one.inside, one.called_ns = now, False, 0

    def launches_more(self) -> None:
        """Count the time from now to the next launch for the library, not the program."""
        self._thread().inside = True

    def forget_times(self) -> None:
        """Drop the time of each thread up to its next launch."""
        for one in list(self._threads.values()):
            one.forget()

    def ended(self, launch: Launch, lane: int, event: object) -> None:
        """Note the end of a device command, whose event has the times."""
        began = getattr(launch.command, "began_ns", 0)
        if began:  # the program's own time between those commands is not known either
            _, waits, thread = self._before.get(launch.number, (0, (), 0))
            self._before[launch.number] = 0, waits, thread
            self._add(launch, BYPASS, "host", began, perf_counter_ns())
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

    def copied_at_once(self, launch: Launch, start_ns: int, end_ns: int) -> None:
        """Note a copy between devices that the core made by itself."""
        self._add(launch, AT_ONCE, "host", start_ns, end_ns)

    def noted(self, found: Found) -> None:
        """Note the runs in the scheduler's groups of launches that have ended."""
        by_launch: dict[int, list[Run]] = {}
        for run in found.runs:
            by_launch.setdefault(run.number, []).append(run)
        parts = dict(found.parts)
        for place, one in enumerate(self.slices):
            if mine := by_launch.get(one.number):
                runs = (*one.runs, *sorted(mine, key=began))
                own = parts.get(one.number, one.parts)
                self.slices[place] = one._replace(runs=runs, parts=own)
        self.found = self.found.and_those(found._replace(runs=(), parts=()))

    def ran_on_host(self, launch: Launch, start_ns: int, end_ns: int) -> None:
        """Note the end of a host task."""
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
                name_of(launch.command),
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
                self.device_of(launch.number) if lane >= 0 else -1,
            )
        )

    def clear(self) -> None:
        """Forget the trace so far."""
        self.slices.clear()
        self.waits.clear()
        self.found = Found()
        self.forget_times()

    def overlap(self, clock: str | None = None) -> float:
        """Return the average number of launches in flight while there is one: summed durations over
        their union. An epoch counts as one launch. Without a `clock`: that of the device, real or
        modelled."""
        if clock is None:
            clock = next((s.clock for s in self.slices if s.clock != "host"), "device")
        return overlap(on_one_clock([one for one in self.slices if one.clock == clock]))

    def summary(self) -> Report:
        """Return the overlap on the device, and host nanoseconds per launch by stage (medians)."""
        hazards = sorted(s.hazards_ns for s in self.slices)
        submit = sorted(s.submit_ns for s in self.slices)
        return {
            "slices": len(self.slices),
            "overlap": round(self.overlap(), 3),
            "in_epochs": sum(s.epoch > 0 for s in self.slices),
            "epochs": len({s.epoch for s in self.slices} - {0}),
            "bypassed": sum(s.passed for s in self.slices),
            "host_ns_median": {
                "hazards": hazards[len(hazards) // 2] if hazards else 0,
                "submit": submit[len(submit) // 2] if submit else 0,
            },
        }

    def save(self, path: str | Path) -> None:
        """Write JSON Lines: a header with the version and clocks, then one line a slice."""
        slices = list(self.slices)
        parts: list[Sequence[ReplayTask]] = []
        head = {
            "acs_cl_trace": VERSION,
            "clocks": ["device", "host", "model"],
            "unit": "ns",
            "launches": len(slices),
            "waits": list(self.waits),
            "noted": self.found._asdict() | {"parts": parts},
        }
        lines = [json.dumps(one) for one in (head, *plain(slices, parts))]
        output.write(path, "\n".join(lines) + "\n", "timeline")


def began(run: Run) -> int:
    """Return when a group began a run."""
    return run.start_ns


def plain(slices: Sequence[Slice], parts: list[Sequence[ReplayTask]]) -> list[Report]:
    """Return slices in their form for files. A slice has the position in `parts` of its replay's
    tasks, plus one."""
    places: dict[int, int] = {}
    found = []
    for one in slices:
        place = places.setdefault(id(one.parts), len(parts) + 1) if one.parts else 0
        if place > len(parts):
            parts.append(one.parts)
        found.append(one._asdict() | {"parts": place})
    return found


def timeline(tracer: object) -> Trace:
    """Return the trace of a runtime; raise if it has none."""
    if not isinstance(tracer, Trace):
        raise UnreadableError("nothing was traced: make the runtime with trace=True")
    return tracer
