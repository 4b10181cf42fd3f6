"""Measure a part of a program: what it did, where its time went, and what would make it faster.

Input: a runtime, between the two ends of `with rt.measure() as m`; phases that the program names by
`with rt.phase("contacts")`. Output: tables, explanations, advice, and a file for timeline viewers.

Queues usually do not keep the times of their commands; inside the block they do. So both ends wait
for everything launched so far, and change the queues. Launches cost more while they are measured,
so host times are upper limits.

Invariant: every sentence of advice has the figure it rests on.
"""

# Long because: a table, an explanation and advice are three readings of the same slices.

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from .. import core
from ..errors import UsageError
from ..host import output
from ..host.intervals import packed
from ..host.output import Printer
from ..records import Found, NamedTuple, ReplayTask, Report
from .about import About, Needs
from .advice import findings
from .clocks import on_one_clock
from .edges import WITHOUT_BYTES, Edge, access_of, edges_of, meetings
from .record import ON_A_QUEUE, Record, place_of, record
from .slices import AT_ONCE, BYPASS, Slice, on_device, once, overlap
from .stats import about, needs
from .trace import VERSION, Trace, plain

if TYPE_CHECKING:
    from ..launch.engine import Engine

MOST_ROWS = 3
"""From this many slices with equal times on, one bar stands for all: an epoch."""


class Phase(NamedTuple):
    """The launches of one phase. Times are milliseconds; `host_us` is microseconds."""

    name: str
    launches: int
    edges: int
    device_ms: float
    """Sum of the times of all launches. The time of an epoch counts once."""
    in_flight: float
    """Launches at a time, on average while there is one. An epoch counts as one."""
    host_us: float
    """Host time of one launch: hazards and handing over."""
    where: dict[str, int]
    """Number of launches by the place where they ran."""


class Measure:
    """A block, made by `Runtime.measure`. Its results are there when the `with` block has ended."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._trace: Trace | None = None
        self._before: Any = None
        self._has_left = False
        self._wall_ns = 0
        self._about = About()
        self.slices: list[Slice] = []
        """Launches in program order."""
        self.edges: dict[int, list[Edge]] = {}
        self._where: dict[int, str] = {}

    # ---- the block -------------------------------------------------------------------------------

    def __enter__(self) -> Measure:
        engine = self._engine
        if self._trace is not None:
            raise UsageError("measure: a block is measured once")
        engine.drain()
        try:
            with engine.lock:
                if engine.measuring is not None:
                    raise UsageError(
                        "measure inside measure: end the first block, or name a part by phase()"
                    )
                engine.come_to_rest()
                engine.gather_runs()
                engine.backend.time_tasks(True)
                self._trace = Trace()
                self._before = engine.tracer, engine.retime(True)
                engine.tracer = self._trace
                engine.measuring = self
                self._about = About(
                    full=engine.table.full,
                    on_one_lane=engine.backend.lane_counts().on_one_lane,
                    replayed=engine.counts.replayed,
                )
            self._began_ns = perf_counter_ns()
            return self  # from here on `__exit__` hears of a signal
        except BaseException:
            self._give_up()
            raise

    def _ends(self) -> None:
        """Leave the block at the next wait for all, in case a signal comes before `_end`."""
        self._engine.leave_measure = self._leave

    def _end(self, kind: object, error: object, trace: object) -> None:
        engine, mine = self._engine, self._trace
        assert mine is not None
        try:
            engine.leave_measure = None
            mine.called()
            engine.drain()
            mine.waited()
            self._wall_ns = perf_counter_ns() - self._began_ns
            kernels = needs(engine)
            with engine.lock:
                engine.come_to_rest()
                engine.gather_runs()
                self._where = {
                    one.number: _place(one, engine.backend.where(one.number)) for one in mine.slices
                }
                self._about = self._known(self._about, kernels)
                self._leave()
        except BaseException:
            self._give_up()
            raise
        self.slices = on_one_clock(sorted(mine.slices, key=lambda one: one.number))
        if isinstance(engine.tracer, Trace):
            engine.tracer.slices += mine.slices
            engine.tracer.waits += mine.waits
            engine.tracer.noted(mine.found)
            engine.tracer.forget_times()
        self.edges = edges_of(self.slices)

    __exit__ = core.native.Leaving(_ends, _end)

    def _give_up(self) -> None:
        """Measure no more. What still runs uses the queues that keep times."""
        engine = self._engine
        with engine.lock:
            if engine.measuring is self:
                engine.tracer, engine.measuring = self._before[0], None
                engine.leave_measure = self._leave

    def _leave(self) -> None:
        """Go on as before the block, once. Called under the lock, with nothing in flight."""
        engine = self._engine
        if not self._has_left:
            self._has_left = True
            engine.backend.time_tasks(False)
            engine.tracer, backend = self._before
            engine.retime(False, backend)
            engine.measuring = None

    def _known(self, before: About, kernels: tuple[Needs, ...]) -> About:
        """Return facts about the block. `before`: what was counted before it."""
        known = about(self._engine, kernels)
        ended_ns = self._began_ns + self._wall_ns
        noted = self._trace.found if self._trace is not None else Found()
        return known._replace(
            full=known.full - before.full,
            on_one_lane=known.on_one_lane - before.on_one_lane,
            replayed=known.replayed - before.replayed,
            began_ns=self._began_ns,
            ended_ns=ended_ns,
            noted=noted,
        )

    # ---- tables ----------------------------------------------------------------------------------

    @property
    def wall_ms(self) -> float:
        """Return the time from the beginning of the block to the end of its last launch."""
        return self._wall_ns / 1e6

    @property
    def phases(self) -> list[Phase]:
        """Return a row for each phase, in order of their beginnings. '': launches of no phase."""
        names = dict.fromkeys(one.phase for one in self._done())
        return [
            self._phase(name, [one for one in self.slices if one.phase == name]) for name in names
        ]

    def _phase(self, name: str, slices: Sequence[Slice]) -> Phase:
        return Phase(
            name=name,
            launches=len(slices),
            edges=sum(len(self.edges[one.number]) for one in slices),
            device_ms=sum(one.end_ns - one.start_ns for one in once(slices)) / 1e6,
            in_flight=overlap([one for one in slices if one.lane != AT_ONCE]),
            host_us=sum(one.hazards_ns + one.submit_ns for one in slices) / 1e3 / len(slices),
            where=dict(Counter(self._where[one.number] for one in slices)),
        )

    def __repr__(self) -> str:
        return f"<acs_cl measured block, launches: {len(self.slices)}>"

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        """Show what `print` does."""
        printer.text(str(self))

    def __str__(self) -> str:
        """Return the table of phases, and the advice."""
        head = f"{'phase':<20} {'launches':>8} {'edges':>6} {'device ms':>10} {'in flight':>9}"
        lines = [f"{head} {'host us':>8}  where"]
        for one in self.phases:
            where = ", ".join(f"{count} {place}" for place, count in one.where.items())
            lines.append(
                f"{one.name or '(none)':<20} {one.launches:>8} {one.edges:>6} "
                f"{one.device_ms:>10.3f} {one.in_flight:>9.2f} {one.host_us:>8.2f}  {where}"
            )
        lines.append(f"{self.wall_ms:.3f} ms in all; {self._engine.plan.why}")
        return "\n".join([*lines, *(f"- {sentence}" for sentence in self.advice())])

    # ---- explanations ----------------------------------------------------------------------------

    def explain(self, what: str | int) -> str:
        """Explain what one launch waited for, and which bytes ordered it. 'merge#3' is the third
        launch of merge; a number is that launch."""
        one = self._find(what)
        place = self._where[one.number]
        start, end = one.start_ns, one.end_ns
        if one.epoch and one.runs:
            start, end = min(run.start_ns for run in one.runs), max(run.end_ns for run in one.runs)
        took = f"{(end - start) / 1e3:.1f} us"
        took += " with all of its epoch" if one.epoch and not one.runs else ""
        lines = [f"{self._called(one)}, {place}, {took}"]
        known = {slice_.number: slice_ for slice_ in self.slices}
        for edge in self.edges[one.number]:
            other = known[edge.upstream]
            met = meetings(access_of(other), access_of(one))
            bytes_ = "; ".join(f"{meeting}{_of_argument(one, meeting.base)}" for meeting in met)
            lines.append(f"  behind {self._called(other)}: {bytes_ or WITHOUT_BYTES}")
        if not self.edges[one.number]:
            lines.append("  behind nothing that was measured")
        return "\n".join(lines)

    def _find(self, what: str | int) -> Slice:
        slices = self._done()
        if not isinstance(what, (int, str)):
            raise UsageError(f"expected a launch's number, or a kernel's name, got {what!r}")
        if isinstance(what, int):
            found = [one for one in slices if one.number == what]
        else:
            name, _, count = what.partition("#")
            same = [one for one in slices if one.name == name]
            index = int(count) if count.isdecimal() else 1 if not count else 0
            found = same[index - 1 : index] if index else []
            if not found and same:
                raise UsageError(f"{what!r}: {name} was launched {len(same)} times in this block")
        if not found:
            names = ", ".join(sorted({one.name for one in slices})) or "none"
            raise UsageError(f"{what!r} was not launched in this block; its launches: {names}")
        return found[0]

    def _called(self, one: Slice) -> str:
        same = [other.number for other in self.slices if other.name == one.name]
        return f"{one.name}#{same.index(one.number) + 1} (launch {one.number})"

    # ---- advice ----------------------------------------------------------------------------------

    def advice(self) -> list[str]:
        """Say what limits the block and what would help, each with its figure, the most expensive
        first. Empty: nothing was launched, or nothing stands out."""
        return [one.text for one in findings(self.record())]

    def record(self, title: str = "") -> Record:
        """Return all known facts about the block, in plain values."""
        slices, waits = self._done(), self._trace.waits if self._trace is not None else []
        return record(title, slices, waits, self._about, self._where)

    # ---- files -----------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write a timeline in the format of Chrome's trace viewer, which Perfetto and the emulator
        read. It has a track for each lane, and arrows from the upstream of each launch."""
        slices = self._done()
        parts: list[Sequence[ReplayTask]] = []
        plain_slices = plain(self.slices, parts)
        document = {
            "traceEvents": list(_events(slices, self._where, _arrows(slices, self.edges))),
            "displayTimeUnit": "ns",
            "acs_cl": {
                "acs_cl_trace": VERSION,
                "about": self._about._replace(noted=Found())._asdict(),
                "waits": self._trace.waits if self._trace is not None else [],
                "noted": self._about.noted._asdict() | {"parts": parts},
                "slices": plain_slices,
            },
        }
        output.write(path, json.dumps(document) + "\n", "timeline")

    def report(self, path: str | Path, title: str = "", what_if: bool = True) -> None:
        """Write one HTML page that needs no network: timeline, graph, advice, and why two
        launches did not overlap. `what_if`: ask the emulator what would help, which may take some
        seconds."""
        from .report.page import write

        to = output.path_of(path, "report")
        write(self.record(str(title or to.stem)), to, what_if)

    def dag(self, path: str | Path) -> None:
        """Write the graph of the block's launches, as `Runtime.dag` does."""
        from .dag import of_slices, save

        save(of_slices(self._done(), self._where), path)

    def _done(self) -> list[Slice]:
        if self._engine.measuring is self or self._trace is None:
            raise UsageError("measure: the block has not ended; ask after it")
        return self.slices


def _place(one: Slice, where: str) -> str:
    """Return where a launch ran, without the reason."""
    said = where.rstrip("; ").partition(":")[0]
    is_of_several = one.device >= 0 or one.lane == AT_ONCE
    return place_of(one) if is_of_several else said or ON_A_QUEUE


def _of_argument(one: Slice, base: int) -> str:
    names = [name for name, _, number in one.arguments if number == base]
    return f" ({', '.join(names)})" if names else ""


class Arrow(NamedTuple):
    """One end of an arrow at a launch. `kind` is the viewer's: 's' at its start."""

    id: int
    kind: str


def _arrows(slices: Sequence[Slice], edges: dict[int, list[Edge]]) -> dict[int, list[Arrow]]:
    """Return the ends of arrows, by launch, on one clock. A viewer needs a start before an end."""
    known = {one.number: one for one in slices}
    arrows: dict[int, list[Arrow]] = {}
    count = 0
    for one in slices:
        for edge in edges.get(one.number, ()):
            other = known[edge.upstream]
            if other.clock == one.clock and other.start_ns < one.start_ns:
                count += 1
                arrows.setdefault(other.number, []).append(Arrow(count, "s"))
                arrows.setdefault(one.number, []).append(Arrow(count, "f"))
    return arrows


def _events(
    slices: Sequence[Slice], where: dict[int, str], arrows: dict[int, list[Arrow]]
) -> Iterator[Report]:
    """Make the viewer's events, in microseconds from the first event of each clock. Each clock is a
    process, and each lane a thread. A lane gets more threads where its slices overlap."""
    clocks = sorted({one.clock for one in slices})
    for process, clock in enumerate(clocks, 1):
        mine = [one for one in slices if one.clock == clock]
        zero = min(one.start_ns for one in mine)
        yield _named("process_name", process, 0, f"{clock} clock")
        thread = 0
        for lane in sorted({(one.device, one.lane) for one in mine}):
            merged = _merged([one for one in mine if (one.device, one.lane) == lane])
            rows = packed(merged, lambda one: (one[1][0].start_ns, _end_ns(one[1][0])))
            for row, together in enumerate(rows):
                thread += 1
                label = _track(together[0][1][0])
                label += f" ({row + 1})" if len(rows) > 1 else ""
                yield _named("thread_name", process, thread, label)
                for name, group in together:
                    begin = (group[0].start_ns - zero) / 1e3
                    place = {"pid": process, "tid": thread, "ts": begin}
                    yield _drawn(name, group, place, where)
                    for end in [end for one in group for end in arrows.get(one.number, ())]:
                        head = {"name": "waits", "cat": "order", "ph": end.kind, "id": end.id}
                        yield {**head, **place, "bp": "e"}


def _drawn(name: str, group: list[Slice], place: Report, where: dict[int, str]) -> Report:
    """Return the event of one slice, or of several with the same times."""
    one = group[0]
    return {
        "name": name,
        "cat": one.phase or "launch",
        "ph": "X",
        **place,
        "dur": (_end_ns(one) - one.start_ns) / 1e3,
        "args": {
            "launches": [other.number for other in group],
            "upstream": list(one.upstream) if len(group) == 1 else [],
            "groups": one.groups,
            "where": where[one.number],
            "epoch": one.epoch,
        },
    }


def _track(one: Slice) -> str:
    """Return the name of a slice's row."""
    if one.lane == BYPASS:
        return "bypass"
    if one.lane == AT_ONCE:
        return "copies between devices"
    if one.lane < 0:
        return "host tasks" if one.clock == "host" else "epochs of the scheduler"
    return on_device(one, f"lane {one.lane}")


def _named(what: str, process: int, thread: int, name: str) -> Report:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _merged(slices: Sequence[Slice]) -> list[tuple[str, list[Slice]]]:
    """Group slices by their times. Slices with equal times ran in one epoch."""
    same: dict[tuple[int, int], list[Slice]] = {}
    for one in sorted(slices, key=lambda one: (one.start_ns, one.number)):
        same.setdefault((one.start_ns, one.end_ns), []).append(one)
    merged = []
    for group in same.values():
        if len(group) >= MOST_ROWS:
            merged.append((f"{len(group)} launches", group))
        else:
            merged += [(one.name, [one]) for one in group]
    return merged


def _end_ns(one: Slice) -> int:
    """Return the drawn end of a slice. It has at least some length, because viewers confuse an
    empty slice with the next one."""
    return max(one.end_ns, one.start_ns + 1)
