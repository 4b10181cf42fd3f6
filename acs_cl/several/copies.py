"""Copies: brings bytes to the devices that lack them, before the launches that need them.

Input: spans, and the devices that need them. Output: copies, each from a device that has the
bytes. A copy is made at once, while the program waits, if its bytes are ready. Otherwise it is two
launches: one reads into memory of the host, the other one writes from there. A large copy is worth
waiting for, since it is faster at once.

Invariants: bytes are never copied to a device that has them. A copy follows the last launches that
write its bytes, and what is launched after it on its target follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter, perf_counter_ns

import numpy as np
import pyopencl as cl

from ..devices import driver
from ..launch.commands import TransferCommand
from ..memory.array import HostArray
from ..records import EVERYTHING, Access, Launch, Span, interval
from .arrays import ArrayEngine
from .copies_at_once import TOGETHER, Copier, Move
from .copies_launched import Between, Crossings, Staging, said
from .known_launches import Wanted
from .model import Parcel, Piece

PREFETCH = 64 << 10
"""A copy takes along the bytes between two pieces, up to this many, if its target lacks them."""

SOON = 1 << 20
"""The groups that write bytes which other devices want run first, if these are few: at most so
many in one copy."""

LARGE = 32 << 20
"""A copy of at least this many bytes is made at once even if its bytes are not ready yet."""

WAITS_US = 2000.0
"""But only if they will be within this time, or within the time of the launch that needs them."""


class Copies:
    """Makes the copies of an engine. Its methods are called under the engine's lock."""

    def __init__(self, engine: ArrayEngine) -> None:
        self._engine = engine
        team, many = engine.team, len(engine.team.devices)
        self.copier = Copier(team.contexts, team.devices, engine.store.is_svm, self._pinned)
        self.moved = [[[0, 0] for _ in range(many)] for _ in range(many)]
        """The number of copies and of bytes, by source and target."""
        self._wanted: dict[tuple[int, int], tuple[Span, ...]] = {}
        """{base, device: which of its bytes other devices last got from there}."""
        staging = Staging(self._pinned, engine.hazards)
        self._crossings = Crossings(engine, staging, self.copier.place, self._have_ended)
        self.told: Callable[[Parcel], None] | None = None
        """Receives each copy. For tests."""

    def bring(
        self,
        wanted: Iterable[tuple[Sequence[Span], int]],
        waits_us: float = WAITS_US,
    ) -> None:
        """Copy what devices lack of some spans. Wait up to `waits_us` for bytes that a launch at
        their source is still writing."""
        engine, copies = self._engine, list[Parcel]()
        coherence, links = engine.model.coherence, engine.team.links
        for spans, device in wanted:
            if any(span.base == EVERYTHING for span in spans):
                spans = [*spans, *engine.all_spans()]
            copies += coherence.bring(spans, device, links, PREFETCH)
        if copies:
            self.make(copies, waits_us)

    def make(self, copies: Sequence[Parcel], waits_us: float = WAITS_US) -> None:
        """Make copies of which the coherence knows. Wait as `bring` does."""
        self._want(copies)
        for parcel in copies:
            self.count(parcel)
        sent = 0
        try:
            while sent < len(copies):
                some = _beside_each_other(copies, sent)
                self.send(some, waits_us)
                sent += len(some)
        except BaseException:
            for base, start, end, _, device in copies[sent:]:
                self._engine.model.coherence.lost(Piece(base, start, end, 0), device)
            raise

    def wanted(self, access: Access) -> Wanted:
        """Return which bytes that a launch writes on each device the other ones may soon want: few
        bytes, which they wanted the last time."""
        bases = {span.base: None for span in access.writes}
        return tuple(
            tuple(span for base in bases for span in self._wanted.get((base, device), ()))
            for device in range(len(self.moved))
        )

    def forget_wanted(self) -> None:
        """Forget what devices wanted, since launches will run elsewhere."""
        self._wanted.clear()

    def forget(self, base: int) -> None:
        """Forget a base that was freed."""
        for device in range(len(self.moved)):
            self._wanted.pop((base, device), None)
        self._crossings.forget(base)

    def _want(self, copies: Sequence[Parcel]) -> None:
        found: dict[tuple[int, int], list[Span]] = {}
        for base, start, end, source, _ in copies:
            spans = found.setdefault((base, source), [])
            if end - start <= SOON:
                spans.append(interval(base, start, end - start))
        for key, spans in found.items():
            self._wanted[key] = tuple(spans)

    def send(self, copies: Sequence[Parcel], waits_us: float = WAITS_US) -> None:
        """Copy, at once or by launches. None of the copies follows another one."""
        for first in range(0, len(copies), TOGETHER):
            some = copies[first : first + TOGETHER]
            made = self._carry(some, max(waits_us, WAITS_US))
            for parcel in some:
                if parcel not in made:
                    for chunk in parcel.chunks():
                        self._crossings.launch(chunk)
                if parcel.target:
                    self._engine.leave(parcel.base)
            if len(made) < len(some):  # the devices of the reads may have nothing else to do
                self._engine.backend.flush()

    def count(self, parcel: Parcel) -> None:
        """Count a copy."""
        count = self.moved[parcel.source][parcel.target]
        count[0] += 1
        count[1] += parcel.end - parcel.start
        if self.told is not None:
            self.told(parcel)

    # ---- at once ---------------------------------------------------------------------------------

    def _carry(self, copies: Sequence[Parcel], waits_us: float) -> Sequence[Parcel]:
        """Make copies at once and beside each other, if the launches before them have ended or will
        soon. Return the copies made; the others have to be launched."""
        engine = self._engine
        if engine.failures.any or engine.any_may_be_poisoned():
            return ()
        known = [(one, self._crossings.of(one)) for one in copies]
        free = [
            (parcel, one) for parcel, one in known
            if parcel.end - parcel.start >= LARGE or not one.core.is_used()
        ]  # fmt: skip
        if not free:
            return ()
        until_us = perf_counter() * 1e6 + waits_us
        began_ns, events = engine.now_ns(), list[cl.Event]()
        made, launches, moves = list[Parcel](), list[Launch](), list[Move]()
        for parcel, between in free:
            launch = self._at_once(parcel, between.access)
            if engine.model.clock.ended_us(launch.upstream) > until_us:
                continue
            found = self._under_way(launch.upstream)
            if found is not None:
                events += found
                made.append(parcel)
                launches.append(launch)
                moves.append(self._move(parcel, between, len(moves)))
        if not made or not self._end_well(events):
            return ()
        copied_ns = engine.now_ns()
        self.copier.make(moves)
        tracer = engine.tracer
        for launch in launches if tracer is not None else ():
            assert tracer is not None
            entered_ns = tracer.entered(launch.number, began_ns)
            tracer.launched(launch.number, began_ns, entered_ns)
            tracer.copied_at_once(launch, copied_ns, perf_counter_ns())
            tracer.launches_more()
            began_ns = perf_counter_ns()
        return made

    def _move(self, parcel: Parcel, between: Between, turn: int) -> Move:
        """Return a copy at once for the core, the one at `turn` of some made together."""
        if turn not in between.moves:
            start, nbytes = parcel.start, parcel.end - parcel.start
            between.moves[turn] = self.copier.move(*between.sides, start, nbytes, turn)
        return between.moves[turn]

    def _at_once(self, parcel: Parcel, access: Access) -> Launch:
        """Return the launch for a copy at once, with its upstream."""
        engine = self._engine
        table, number, found = engine.table, 0, tuple[int, ...]()
        if len(table) or engine.tracer is not None:
            number = table.number = table.number + 1
            found = tuple(engine.hazards.enter(number, access.reads, access.writes) or ())
            engine.hazards.retire(number)  # the next launches follow it anyway
            if table.has_stand_ins:
                found = tuple(table.expand(found))
        command = TransferCommand("copy", None, None, carries=said(parcel))
        return Launch(number, command, access, found)

    def _have_ended(self, numbers: Iterable[int]) -> bool:
        """Wait for launches that the driver has. False: it lacks some of them."""
        events = self._under_way(numbers)
        return events is not None and self._end_well(events)

    def _end_well(self, events: Sequence[cl.Event]) -> bool:
        """Wait for events until one has failed, and tell whether none has."""
        if events:
            self._engine.backend.flush()
        return all(driver.wait_for_event(one) >= 0 for one in events)

    def _under_way(self, numbers: Iterable[int]) -> list[cl.Event] | None:
        """Return events of launches that have not ended. None: the driver lacks some of them."""
        engine, found = self._engine, []
        for number in numbers:
            state = engine.table.state(number)
            event = engine.backend.event(number) if state == "executing" else None
            if event is not None:
                found.append(event)
            elif state is not None:
                return None
        return found

    def _pinned(self, nbytes: int) -> HostArray:
        queue = self._engine.backend.queues[0]
        return driver.wait_for_pinned(queue, (nbytes,), np.dtype(np.uint8))


def _beside_each_other(copies: Sequence[Parcel], first: int) -> Sequence[Parcel]:
    """Return copies from `first` on, none of which follows another one."""
    for end in range(first + 1, len(copies)):
        if any(copies[end].follows(one) for one in copies[first:end]):
            return copies[first:end]
    return copies[first:]
