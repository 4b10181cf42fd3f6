"""The engine of several devices: it chooses a device for each launch, and brings the data there.

Input: launches in program order. Output: the same launches, each on a device, behind copies of the
bytes that are missing there. The coherence changes under the runtime's lock in program order. So it
says where bytes will be valid after all launches so far.

Invariants: hazards know the memory of each device under its own base numbers, so a launch waits for
copies and for launches on its device only. Bytes are never copied to a device that has them.
"""

# Long because: launches, replays and reads in pieces work on the same books under one lock.

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from functools import partial
from time import perf_counter, perf_counter_ns

import pyopencl as cl

from .. import core
from ..devices.driver import Place
from ..errors import OutOfMemory
from ..handle import Handle
from ..launch.books import Parts
from ..launch.commands import KernelCommand, TransferCommand
from ..launch.decision import key_of
from ..launch.engine import Calls
from ..launch.foreign_events import open_events
from ..launch.observers import AccessOf, Cutting, Unplaced
from ..launch.several_handles import SeveralHandle
from ..memory.array import Array
from ..records import EVERYTHING, Access, Command, Key, interval
from . import device_commands, policies
from .arrays import ArrayEngine
from .copies import PREFETCH, Copies
from .device_commands import Twins
from .device_parts import LEAST_US
from .kernel_times import Times
from .known_launches import Assigned, Group, Known, KnownLaunches, bases_of
from .memory import AnyPart
from .model import Parcel, Piece, needed
from .placed_runs import LEARNS, Chosen, Placed, Recorded, RunStep, runs
from .placer import AT_HOME, Placer
from .step_plans import ON_EACH, SPREAD, StepPlans
from .steps import Plan
from .team import Team

MOST_PIECES = 64
"""A read of more pieces than this first copies all of them to one device."""

LOOKED_AT = 1024
"""The core makes this many short launches before one of them is measured again."""


class SeveralEngine(ArrayEngine):
    """Makes launches on several devices."""

    def __init__(self, parts: Parts, calls: Calls, team: Team) -> None:
        super().__init__(parts, calls, team)
        self.twins = Twins(team.contexts, team.devices)
        self.copies = Copies(self)
        many = len(team.devices)
        self.placed_on = [0] * many
        """The number of launches of the program on each device."""
        self.known = KnownLaunches()
        self.times = Times(many)
        self._plans = team.placement == "min_finish"
        self._wants_times = self._plans or team.spread is None
        self.placer = Placer(
            team.placement, self.model, self.times, team.links, self.store.stores,
            self.backend, self.table, self.copies.copier,
        )  # fmt: skip
        self.spread = team.spread
        self._are_alike = len({(one.name, one.driver_version) for one in team.devices}) == 1
        """Whether all devices compute the same, bit by bit."""
        self.step_plans = StepPlans(
            self.times, self.placer.tried, self._leave_all, self.placer.ask_links,
            self._allocating_us, self.copies.forget_wanted,
        )  # fmt: skip
        self.parts = 0
        """The number of launches that were parts of a spread launch."""
        self.repeated = 0
        """The number of launches that each device made."""
        self.replayed = 0
        """The number of launches of graphs that had their devices before the replay."""
        self.places_after = 1, LEARNS
        """A graph is placed for good after this many replays, at least and at most."""
        self.stepped: Callable[[RunStep], None] | None = None
        """Receives each launch of a replay. For tests."""
        self.makes: Callable[[Group, Sequence[Parcel]], None] | None = None
        """Receives launches that the core makes together, and the copies made for them. Told before
        what they write is noted. For tests."""
        self.forgets += [self.known.forget, self.step_plans.forget, self.copies.forget]
        self.backend.timed, self.backend.asked = self.times.took, self.times.asked
        self.backend.staying = self._staying
        self._has_core = False
        """Whether the core makes short launches on the first device."""

    def open(self) -> None:
        """Take calls from now on. The core makes short launches by itself if all their data is only
        on the first device, because its queues are there."""
        super().open()
        team = self.team
        stays = team.placement == "min_finish" and team.spread is not True and self.store.is_svm
        self._has_core = self.table.usable = self.table.usable and stays
        self.table.predict(False)

    def _staying(self, key: Key) -> int:
        """Return how many launches like the last one the core may make."""
        took = self.times.of(key)[0]
        if took is None or took >= policies.STAYS_US:
            return 0
        self.times.due(key, 0)
        return LOOKED_AT

    # ---- a launch --------------------------------------------------------------------------------

    def launch(
        self,
        command: Command,
        access: Access,
        wait_for: Sequence[cl.Event] | None = None,
        result: object = None,
        footprint: core.native.Footprint | None = None,
        after: Sequence[int] = (),
    ) -> Handle:
        """Choose a device for a launch, copy what the device lacks, and launch there. `footprint`
        says nothing here, since it knows the memory of one device."""
        if (recorder := self.recorder()) is not None:
            return recorder.take(command, access, wait_for)
        if self.checker is not None and self.checker.takes(access):
            return self.checker.launch(command, access, wait_for, result, after)
        with self.lock:
            started_ns = self._starts()
            self.make_room()
            if isinstance(command, TransferCommand) and command.name == "read":
                pieces = self._pieces_of_read(command, access)
                if len(pieces) > 1:
                    return self._read_pieces(command, access, pieces, wait_for, result, after)
            known = self._known(command, access)
            planned = self._planned(known)
            return self._launch(known, wait_for, result, started_ns, planned, after)

    def launch_kernel(
        self,
        command: KernelCommand,
        access: Access,
        cutting: Cutting,
        wait_for: Sequence[cl.Event] | None,
    ) -> Handle:
        """Launch a kernel in parts on all devices, if it can be cut and that pays; else whole. A
        recording keeps how it can be cut."""
        if self.spread is False or self.checker is not None:
            return self.launch(command, access, wait_for)
        if (recorder := self.recorder()) is not None:
            return recorder.take(command, access, wait_for, cutting)
        with self.lock:
            started_ns = self._starts()
            self.make_room()
            known = self.known.find(command, access)
            if self.spread or (self._plans and self.step_plans.may_cut(known)):
                known.cut(len(self.placed_on), cutting, self._are_alike)
            device = self._planned(known)
            if device in (SPREAD, ON_EACH) and self.any_may_be_poisoned():
                device = None  # a launch that reads poison has to run nowhere
            if device == SPREAD and known.parts:
                return self._launch_parts(known, cutting.access_of, wait_for)
            if device == ON_EACH:
                return self._launch_on_each(known, wait_for)
            return self._launch(known, wait_for, None, started_ns, device)

    def _planned(self, known: Known) -> int | None:
        """Return the device of a launch of a step that is repeated, `SPREAD` or `ON_EACH`."""
        if self.spread:
            return SPREAD
        if not self._plans or self.checker is not None:
            return None
        waited_us = None if len(self.table) else self.waited_us
        return self.step_plans.device_of(known, self.now_us(), waited_us)

    def _leave_all(self) -> None:
        """Stop the core from making launches by itself, so that all of them are seen here."""
        for base in self.blocks:
            self.leave(base)

    def _allocating_us(self, way: Plan) -> float:
        """Return how long the drivers take for the memory that a way to run a step needs."""
        lacking: dict[tuple[int, int], int] = {}
        for known, place in way.items():
            for device in range(len(self.placed_on)) if place < 0 else (place,):
                for base in known.bases & self.blocks.keys():
                    if self.blocks[base].parts[device] is None:
                        lacking[base, device] = self.blocks[base].size
        return sum(self.store.part_us(device, size) for (_, device), size in lacking.items())

    def _known(self, command: Command, access: Access) -> Known:
        """Return what is known of a launch. Checks look beyond what a launch says of itself."""
        return Known(command, access) if self.checker else self.known.find(command, access)

    def _launch(
        self,
        known: Known,
        wait_for: Sequence[cl.Event] | None,
        result: object,
        started_ns: int,
        planned: int | None = None,
        after: Sequence[int] = (),
    ) -> Handle:
        """Launch on the planned device, else on the one that the policy chooses."""
        if planned is None or planned < 0 or known.pinned:
            device, reason = self.placer.place(known, perf_counter() * 1e6)
        else:
            device, reason = planned, "the step that is repeated is fastest so"
        if known.key is None:
            one = known.assigned(device, self._assigned)
            (number,) = self._launch_on([one], [reason], wait_for, started_ns, after)
        else:
            group = known.whole(device, reason, self._assigned)
            (number,) = self._launch_together(group, wait_for, started_ns, after)
        return Handle(self, number, known.command.name, known.access, result)

    def _launch_parts(
        self, known: Known, access_of: AccessOf, wait_for: Sequence[cl.Event] | None
    ) -> Handle:
        """Launch the parts of a launch, each on its device."""
        group = known.in_parts(self.copies.wanted(known.access), access_of, self._assigned)
        numbers = self._launch_together(group, wait_for)
        self.parts += len(numbers)
        return SeveralHandle(self, (numbers,), known.command.name, known.access)

    def _launch_on_each(self, known: Known, wait_for: Sequence[cl.Event] | None) -> Handle:
        """Make a launch on each device. All then have what it writes."""
        group = known.by_each(len(self.placed_on), self._assigned)
        numbers = self._launch_together(group, wait_for)
        self.repeated += 1
        return SeveralHandle(self, (numbers,), known.command.name, known.access)

    def _launch_together(
        self,
        group: Group,
        wait_for: Sequence[cl.Event] | None,
        started_ns: int = 0,
        after: Sequence[int] = (),
    ) -> Sequence[int]:
        """Make launches behind the copies that their devices need. The core makes them, unless
        there is something unusual about them. The caller holds the lock. `after`: launches that
        they follow whatever their bytes."""
        model, asks = self.model, self._wants_times and not group.rests
        is_unusual = group.core is None or wait_for or after or self.tracer is not None
        if is_unusual or asks or not group.took_us:
            if asks:
                group.ask(self.times)
            numbers = self._launch_on(group.launches, group.reasons, wait_for, started_ns, after)
            if group.is_on_each:
                model.written_by_each(group.launches[0].access.writes)
            group.asked(self.times)
            return numbers
        assert group.core is not None
        group.rests -= 1
        copies = group.core.bring(model.coherence, self.team.links, PREFETCH)
        if copies:
            self.copies.make(copies, max(group.took_us))
        if self.makes is not None:
            self.makes(group, copies)
        for base in group.away - self.left:
            self.leave(base)
        lanes = [one.core_queues for one in self.backend.backends]
        now_us, numbers = perf_counter() * 1e6, list[int]()
        while (at := len(numbers)) < len(group.launches):
            first = self.number + 1
            self.backend.assign_all(first, group.devices[at:], group.reasons[at:])
            made = group.core.launch(at, model.coherence, model.clock, lanes, now_us, group.took_us)
            numbers += range(first, abs(made) + 1)
            self.follow_up(made, continues=len(numbers) > 1, many=len(numbers) - at)
            if made < 0:  # only now, since a launch that the driver refused writes nothing
                turn = len(numbers) - 1
                one, took_us = group.launches[turn], group.took_us[turn]
                self.written(one.access.writes, one.device)
                self._runs(one.access, one.device, now_us, took_us, -made)
        if group.is_on_each:
            model.written_by_each(group.launches[0].access.writes)
        for device in group.devices:
            self.placed_on[device] += 1
        if group.is_home:
            self._take_up(group.launches[0])
        return numbers

    def _starts(self) -> int:
        """Begin a call of the program. Return the time if calls are traced."""
        if self.tracer is None:
            return 0
        self.tracer.device_of = self.backend.device_of
        return perf_counter_ns()

    def _assigned(self, command: Command, access: Access, device: int) -> Assigned:
        """Make all that a launch on a device needs, except its data."""
        spans, bases = needed(command, access), bases_of(access)
        if self.checker is not None:  # also bring the bytes beside the declared ones
            whole = [interval(one, 0, self.blocks[one].size) for one in bases & self.blocks.keys()]
            spans = *spans, *whole
        bound, real = self._bound(command, device), self.real(access, device)
        prepared = self._prepared(bound, real)
        return Assigned(device, access, key_of(command), spans, bases, bound, real, prepared)

    def _prepared(self, command: Command, real: Access) -> core.native.Prepared | None:
        """Return what the core needs to make a launch; None: it cannot."""
        if not isinstance(command, KernelCommand) or self.checker is not None:
            return None
        made = core.native.Prepared(self.hazards, command, real)
        return made if made.is_plain else None

    def _launch_on(
        self,
        launches: Sequence[Assigned],
        reasons: Sequence[str],
        wait_for: Sequence[cl.Event] | None,
        started_ns: int = 0,
        after: Sequence[int] = (),
    ) -> list[int]:
        """Make launches, none of which touches what another one writes, behind the copies that
        their devices need. The caller holds the lock. `after`: launches that they follow whatever
        their bytes."""
        self.copies.bring(
            [(one.spans, one.device) for one in launches],
            max(self.times.slowest_us(one.key) or 0.0 for one in launches),
        )
        numbers = list[int]()
        for one, reason in zip(launches, reasons, strict=True):
            number = self.number + 1
            if self._wants_times:
                self.times.ask(number, one.key, one.device, self.table.__contains__)
            self.backend.assign(number, one.device, reason)
            is_usual = not (wait_for or after) and number not in self.times.asked
            prepared = one.prepared if is_usual else None
            if not self._by_core(prepared, one.device, bool(numbers)):
                foreign = open_events(wait_for) if wait_for else None
                if self.tracer is not None:
                    self.tracer.launches_more()  # the launch follows a copy, or a part of itself
                self.enter(
                    one.command, one.real, foreign, after=after, continues=bool(numbers),
                    started_ns=started_ns or self.now_ns(),
                )  # fmt: skip
            numbers.append(number)
            if one.command.on_host:
                self.on_host.append(number)
            self._launched(one, number)
            if self.checker is not None:  # checks look at the first device
                self.copies.bring([(one.access.writes, 0)])
        return numbers

    def _by_core(
        self, prepared: core.native.Prepared | None, device: int, continues: bool = False
    ) -> int:
        """Have the core make a launch, and return its number. 0: Python has to make it, since it is
        traced, or the core cannot. `continues`: as for `enter`."""
        if prepared is None or self.tracer is not None:
            return 0
        return self.follow_up(prepared.launch(self.lanes_of(device)), continues)

    def _place_on(self, device: int, part: AnyPart) -> Place:
        self.have_part(part.blocks, device)
        return self.store.place_on(part, device)

    def _bound(self, command: Command, device: int) -> Command:
        """Return the command for a device."""
        return device_commands.bound(
            command, partial(self._place_on, device), lambda one: self.twins.kernel(one, device)
        )

    def at_home(self, command: Command) -> Command:
        """Return the command for the first device."""
        with self.lock:
            return self._bound(command, 0)

    def taken_home(self, command: Command, access: Access) -> Command:
        """Bind a command to the first device, and take what it touches there."""
        with self.lock:
            self.copies.bring([(needed(command, access), 0)])
            self.written(access.writes, 0)
        return self.at_home(command)

    # ---- recorded graphs -------------------------------------------------------------------------

    def placed(
        self, launches: Sequence[Unplaced], borders: Container[int], replays: int
    ) -> list[Placed | int] | None:
        """Place the launches of a graph. Return placed runs, and the turns of launches that each
        replay places. None: the times of some kernels are not known yet."""
        least, most = self.places_after
        if replays < least:
            return None
        recorded = [Recorded(*one) for one in launches]
        keys = {key for one in recorded if (key := key_of(one.command)) is not None}
        with self.lock:
            if self._wants_times and replays < most and not all(map(self.times.slowest_us, keys)):
                return None
            least_us = 0.0 if self.spread else LEAST_US
            parts = {
                turn: parts
                for turn, one in enumerate(recorded)
                if one.cutting is not None
                and (self.times.slowest_us(key_of(one.command)) or 0.0) >= least_us
                and (parts := one.parts(len(self.placed_on)))
            }
            known = [Known(one.command, one.access) for one in recorded]
            trial = self.placer.tried(known, parts)
            if parts and not self.spread:
                whole = self.placer.tried(known, {})
                trial = whole if whole.steady_us <= trial.steady_us else trial
            try:
                found = runs(recorded, trial.chosen, borders)
                return [piece for run in found for piece in self._run_of(run)]
            except OutOfMemory:
                return list(range(len(recorded)))

    def _run_of(self, run: list[Chosen] | int) -> list[Placed | int]:
        """Turn a run into items of a replay. The core makes runs of short launches by itself."""
        if isinstance(run, int):
            return [run]
        if self._has_core and not any(
            one.device or one.took_us >= policies.STAYS_US for one in run
        ):
            return [one.turn for one in run]
        links = self.team.links
        return [Placed(run, links, self._assigned, self._replay)]

    def _replay(self, run: Placed) -> list[int] | None:
        """Launch a run of a graph."""
        model, numbers = self.model, list[int]()
        with self.lock:
            if run.parts and self.any_may_be_poisoned():
                return None
            started_ns = self._starts()
            self.make_room()
            self.copies.bring((spans, device) for device, spans in enumerate(run.needs))
            for base in run.away:
                self.leave(base)
            now_us = perf_counter() * 1e6
            try:
                for chosen, one, copies in run.steps:
                    for parcel in copies:
                        self.copies.count(parcel)
                    self.copies.send(copies)
                    if self.tracer is not None:
                        self.tracer.launches_more()
                        started_ns = perf_counter_ns()
                    device = chosen.device
                    self.backend.assign(self.number + 1, device, chosen.reason)
                    number = self._by_core(one.prepared, device)
                    if not number:
                        number = self.enter(one.command, one.real, started_ns=started_ns).number
                    numbers.append(number)
                    self._runs(chosen.access, device, now_us, chosen.took_us, number)
                    self.placed_on[device] += 1
                    if self.stepped is not None:
                        self.stepped(run.steps[len(numbers) - 1])
            except BaseException:
                self._broke_off(run, len(numbers))
                raise
            for piece in run.left:
                model.coherence.put(piece)
            for base in run.home & self.left if self.table.usable else ():
                self.take_up(base)
            self.parts += run.parts
            self.replayed += len(run)
        return numbers

    def _broke_off(self, run: Placed, made: int) -> None:
        """Note what a run has written before one of its launches was refused."""
        for step in run.steps[:made]:
            self.written(step.chosen.access.writes, step.chosen.device)

    def _pieces_of_read(self, command: TransferCommand, access: Access) -> list[Piece]:
        """Return the pieces of a read with their devices, if no device has all of it."""
        (span,) = access.reads
        if span.base <= EVERYTHING or not isinstance(command.source, Place):
            return []
        pieces = self.model.coherence.cover(span)
        return pieces if len(pieces) <= MOST_PIECES else []

    def _read_pieces(
        self,
        command: TransferCommand,
        access: Access,
        pieces: Sequence[Piece],
        wait_for: Sequence[cl.Event] | None,
        result: object,
        after: Sequence[int],
    ) -> Handle:
        """Read each piece from its device, directly into the host's memory."""
        (span,), place, launches = access.reads, command.source, []
        for piece in pieces:
            at = piece.start - span.start
            device = policies.members(piece.devices, len(self.placed_on))[0]
            part = TransferCommand(
                "read",
                command.target[at : at + piece.nbytes],
                Place(place.memory.sub(at, piece.nbytes), 0, piece.nbytes)
                if self.store.stores[0].is_svm
                else Place(place.memory, place.offset + at, piece.nbytes),
            )
            reads = Access((piece.span,), ())
            launches.append(self._assigned(part, reads, device))
        reasons = [AT_HOME] * len(launches)
        numbers = tuple(self._launch_on(launches, reasons, wait_for, after=after))
        return SeveralHandle(self, (numbers,), command.name, access, result)

    def make_room(self) -> None:
        """Wait for room now, because nothing may come between a launch and its copies."""
        self.check_open()
        super().make_room()
        if self.backend.remembers_many:
            self.backend.forget_before(self.table.oldest() or self.number)

    def _runs(
        self, access: Access, device: int, now_us: float, took_us: float, number: int
    ) -> None:
        """Have a launch begin on the model's clock once its device is free."""
        start_us = max(now_us, self.model.clock.free_us[device])
        self.model.clock.runs(access.writes, device, start_us, took_us, number)

    def _launched(self, one: Assigned, number: int) -> None:
        """Note what a launch changes in the coherence and on the model's clock."""
        device = one.device
        self.written(one.access.writes, device)
        if not device:
            self._take_up(one)
        self.placed_on[device] += 1
        now_us, free_us = perf_counter() * 1e6, self.model.clock.free_us[device]
        if self.backend.backends[device].in_flight <= 1:
            free_us = now_us
        took_us = self.times.of(one.key)[device] or 0.0
        self.model.clock.runs(one.access.writes, device, max(free_us, now_us), took_us, number)

    def _take_up(self, one: Assigned) -> None:
        """Let the core make launches like one on the first device, if that alone has the data."""
        if self.left and self.table.usable and not self.step_plans.is_watching:
            for base in one.bases & self.left:
                self.take_up(base)

    def have(self, array: Array, device: int, alone: bool = False) -> None:
        """Copy to a device what it lacks of an array. `alone`: no other device keeps the array."""
        spans = array.live().spans
        with self.lock:
            self.make_room()
            self.copies.bring([(spans, device)])
            if alone:
                self.written(spans, device)

    # ---- asking ----------------------------------------------------------------------------------

    def about_devices(self) -> list[dict[str, object]]:
        """Return what each device has done."""
        found: list[dict[str, object]] = []
        for number, device in enumerate(self.team.devices):
            store = self.store.stores[number]
            moved = {
                source: {"copies": row[number][0], "bytes": row[number][1]}
                for source, row in enumerate(self.copies.moved)
                if row[number][0]
            }
            found.append(
                {
                    "name": device.name.strip(),
                    "launches": self.placed_on[number],
                    "reserved_bytes": store.reserved_bytes,
                    "in_use_bytes": store.in_use_bytes,
                    "from": moved,
                }
            )
        return found

    def __repr__(self) -> str:
        names = Counter(device.name.strip() for device in self.team.devices)
        text = ", ".join(f"{many} x {name}" for name, many in names.items())
        closed = ", closed" if self.state == "closed" else ""
        return f"<acs_cl.Runtime {self.plan.backend} on {text}{closed}>"
