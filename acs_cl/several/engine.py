"""The engine of several devices: it chooses a device for each launch, and brings the data there.

Input: launches in program order. Output: the same launches, each on a device, behind copies of the
bytes that are missing there. The coherence changes under the runtime's lock in program order. So it
says where bytes will be valid after all launches so far.

Invariants: hazards know the memory of each device under its own base numbers, so a launch waits for
copies and for launches on its device only. Bytes are never copied to a device that has them.
"""

# Long because: placing, copying and launching of one launch are one step under one lock.

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from time import perf_counter, perf_counter_ns
from typing import NamedTuple

import numpy as np
import pyopencl as cl

from .. import core
from ..devices import driver
from ..devices.driver import Place
from ..errors import OutOfMemory, UsageError
from ..handle import Handle
from ..launch import bases
from ..launch.books import Parts
from ..launch.commands import BETWEEN, KernelCommand, TransferCommand
from ..launch.ends import pump
from ..launch.engine import Calls, Engine
from ..launch.gates import open_events
from ..launch.joint import SeveralHandle
from ..launch.observers import AccessOf, Checker, Unplaced
from ..memory.array import Array, HostArray
from ..memory.blocks import Base, Block
from ..records import EVERYTHING, Access, Command, Launch, Span, interval
from . import binding, placement
from .backend import Several
from .coherence import Piece
from .copier import TOGETHER, Copier, Move
from .links import measured
from .memory import AnyPart, Blocks, Everywhere, real_base
from .model import Model, Parcel, key_of, needed, parcels
from .placed import LEARNS, Chosen, Placed, Recorded, Step, runs
from .placement import ASSUMED, Links, Owed, State
from .spreading import LEAST_US, are_apart, cut, hindrance
from .spreading import Part as PartOf
from .staging import CHUNK, Staging
from .times import Key, Times
from .twins import Twins

PREFETCH = 64 << 10
"""A copy takes along the bytes between two pieces, up to this many, if its target lacks them."""

MOST_PIECES = 64
"""A read of more pieces than this first copies all of them to one device."""

AT_HOME = "its data is there"

WAITS_US = 500.0
"""A copy is made at once if its bytes will be ready within this time, or within the time of the
launch that needs them."""


ENOUGH = 0.9
"""A launch whose parts take longer than this share of its own time stays whole."""

LOOKED_AT = 1024
"""The core makes this many short launches before one of them is measured again."""


class Team(NamedTuple):
    """Holds the devices of a runtime, and how launches are placed on them."""

    contexts: Sequence[cl.Context]
    devices: Sequence[cl.Device]
    backend: Several
    store: Everywhere
    links: Links
    placement: str
    spread: bool | None


class Assigned(NamedTuple):
    """A launch with its device, whose data may not be there yet."""

    device: int
    reason: str
    access: Access
    key: Key | None
    spans: Sequence[Span]
    """The spans that must be valid before."""
    command: Command
    """The command for its device."""
    real: Access
    """The access with the base numbers of its device."""


class ReadHandle(SeveralHandle):
    """Handle of a read that is made in several pieces."""

    __slots__ = ("_value",)

    def __init__(
        self, engine: Engine, numbers: tuple[int, ...], name: str, access: Access, value: object
    ) -> None:
        super().__init__(engine, (numbers,), name, access)
        self._value = value

    def wait(self) -> object:
        """Block until all pieces are there, and return the values."""
        super().wait()
        return self._value() if callable(self._value) else self._value


class SeveralEngine(Engine):
    """Makes launches on several devices."""

    is_several = True
    backend: Several
    store: Everywhere

    def __init__(self, parts: Parts, calls: Calls, team: Team) -> None:
        super().__init__(parts, calls)
        self.team = team
        self.model = Model(len(team.devices))
        self.policy = placement.policy(team.placement)
        self.twins = Twins(team.contexts, team.devices)
        self.staging = Staging(self._pinned)
        self.copier = Copier(team.contexts, team.devices, self.store.is_svm, self._pinned)
        self.parcels: Callable[[Parcel], None] | None = None
        """Receives each copy. For tests."""
        many = len(team.devices)
        self.moved = [[[0, 0] for _ in range(many)] for _ in range(many)]
        """The number of copies and of bytes, by source and target."""
        self.placed_on = [0] * many
        """The number of launches of the program on each device."""
        self._blocks: dict[int, Blocks] = {}
        self.times = Times(many)
        self._wants_times = team.placement == "min_finish" or team.spread is None
        self.spread = team.spread
        self.owed = Owed()
        self._knows_links = ASSUMED not in (
            link for i, row in enumerate(team.links) for j, link in enumerate(row) if i != j
        )
        self._indivisible: set[Key | None] = set()
        """Kinds of launches that take as long in parts."""
        self.apart = 0
        """How often data was moved apart so that a launch could be spread."""
        self._spread_apart: set[int] = set()
        """Bases that spread launches have touched: others that do may find their data apart."""
        self.parts = 0
        """The number of launches that were parts of a spread launch."""
        self.replayed = 0
        """The number of launches of graphs that had their devices before the replay."""
        self.places_after = 1, LEARNS
        """A graph is placed for good after this many replays, at least and at most."""
        self.stepped: Callable[[Step], None] | None = None
        """Receives each launch of a replay. For tests."""
        self.store.freed = self._freed
        self.backend.timed, self.backend.asked = self.times.took, self.times.asked
        self.backend.staying = self._staying
        self._on_host: list[int] = []
        """Host tasks that may not have ended."""
        self._has_core = False
        """Whether the core makes short launches on the first device."""
        self._left: set[int] = set()
        """The bases whose launches the core leaves to this engine."""

    def check(self, checker: Checker) -> None:
        """Have launches checked. The first device then always has all memory."""
        self.checker = checker
        self.store.is_all_at_home = True

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
        took = self.times.took_us(key, 0)
        if took is None or took >= placement.STAYS_US:
            return 0
        self.times.due(key, 0)
        return LOOKED_AT

    def _leave(self, base: int) -> None:
        """Stop the core from making launches on a base, before another device gets its bytes."""
        if base not in self._left:
            self._left.add(base)
            self.hazards.leave(base)

    def _take_up(self, base: int) -> None:
        """Let the core make launches that touch a base, if only the first device has it."""
        blocks = self._blocks[base]
        if blocks.address and self.model.coherence.settle(base, blocks.size):
            self._left.discard(base)
            self.hazards.take_up(base)

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
        """Choose a device for a launch, copy what the device lacks, and launch there."""
        if (graph := self.recorder()) is not None:
            return graph.take(command, access, wait_for)
        if self.checker is not None and self.checker.takes(access):
            return self.checker.launch(command, access, wait_for, result)
        with self.lock:
            started_ns = self._starts()
            self.make_room()
            if isinstance(command, TransferCommand) and command.name == "read":
                pieces = self._pieces_of_read(command, access)
                if len(pieces) > 1:
                    return self._read_pieces(command, access, pieces, wait_for, result)
            now_us = perf_counter() * 1e6
            device, reason = self._place(command, access, self.model, self._states(), now_us)
            assigned = self._assigned(device, reason, command, access)
            (number,) = self._launch_on([assigned], wait_for, started_ns)
        return Handle(self, number, command.name, access, result)

    def _starts(self) -> int:
        """Begin a call of the program. Return the time if calls are traced."""
        if self.tracer is None:
            return 0
        self.tracer.device_of = self.backend.device_of
        return perf_counter_ns()

    def _assigned(self, device: int, reason: str, command: Command, access: Access) -> Assigned:
        """Make all that a launch on a device needs, except its data."""
        spans = needed(command, access)
        if self.checker is not None:  # also bring the bytes beside the declared ones
            named = {span.base for span in (*access.reads, *access.writes)} & self._blocks.keys()
            spans = *spans, *(interval(base, 0, self._blocks[base].size) for base in named)
        bound, real = self._bound(command, device), self._real(access, device)
        return Assigned(device, reason, access, key_of(command), spans, bound, real)

    def _launch_on(
        self,
        launches: Sequence[Assigned],
        wait_for: Sequence[cl.Event] | None,
        started_ns: int = 0,
    ) -> list[int]:
        """Make launches, none of which touches what another one writes, behind the copies that
        their devices need. The caller holds the lock."""
        self._bring(
            [(span, one.device) for one in launches for span in one.spans],
            max(self._took_us(one.key) or 0.0 for one in launches),
            {span.base for one in launches for span in one.access.writes},
        )
        numbers = []
        for device, reason, access, key, _, command, real in launches:
            gates = open_events(wait_for) if wait_for else None
            if self._wants_times:
                self.times.ask(self.number + 1, key, device, self.table.__contains__)
            self.backend.assign(self.number + 1, device, reason)
            if self.tracer is not None:
                self.tracer.goes_on()  # the launch follows a copy, or a part of itself
            began_ns = started_ns or self._now_ns()
            numbers.append(self.enter(command, real, gates, started_ns=began_ns).number)
            if command.on_host:
                self._on_host.append(numbers[-1])
            self._launched(access, device, key)
            if self.checker is not None:  # checks look at the first device
                self._bring([(span, 0) for span in access.writes])
        return numbers

    def _bound(self, command: Command, device: int) -> Command:
        """Return the command for a device."""
        return binding.bound(
            command, partial(self._place_on, device), lambda one: self.twins.kernel(one, device)
        )

    def at_home(self, command: Command) -> Command:
        """Return the command for the first device."""
        with self.lock:
            return self._bound(command, 0)

    def taken_home(self, command: Command, access: Access) -> Command:
        """Bind a command to the first device, and take what it touches there."""
        with self.lock:
            self._bring([(span, 0) for span in needed(command, access)])
            self._written(access.writes, 0)
        return self.at_home(command)

    # ---- launches in parts -----------------------------------------------------------------------

    def launch_spread(
        self,
        command: KernelCommand,
        access: Access,
        source: str,
        access_of: AccessOf,
        wait_for: Sequence[cl.Event] | None,
    ) -> Handle | None:
        """Launch a kernel in parts on all devices, if it can be cut and that pays. A recording
        keeps how it can be cut. None: the caller has to launch it whole."""
        if self.spread is False or self.checker is not None:
            return None
        if (graph := self.recorder()) is not None:
            return graph.take(command, access, wait_for, (source, access_of))
        key, many = key_of(command), len(self.placed_on)
        whole_us = self._took_us(key) or 0.0
        bases = {span.base for span in (*access.reads, *access.writes)}
        like = key, frozenset(bases)
        back_us = self._goes_back_us(access.writes)
        gains_us = max(0.0, self._spreading_gains_us(whole_us) - back_us)
        if self.spread is None:
            if whole_us < LEAST_US or key in self._indivisible:
                return None
            may_be_apart = not self._spread_apart.isdisjoint(bases)
            if not may_be_apart and not self.owed.is_due(like, gains_us, self.apart):
                return None
        if hindrance(source, command):
            return None
        parts = cut(command, many, access_of)
        if len(parts) < 2 or not are_apart(parts):
            return None
        with self.lock:
            self.make_room()
            if self._may_be_poisoned():
                return None
            if self.spread is None:
                self._ask_links()
                part_us = self._part_us(parts, whole_us)
                if part_us > ENOUGH * whole_us:
                    self._indivisible.add(key)
                    return None
                moves_us = self._moves_us(parts)
                is_apart = max(moves_us) + part_us + back_us < whole_us
                if not is_apart and not self.owed.pays(like, gains_us, sum(moves_us)):
                    return None
                self.apart += not is_apart
                self._spread_apart |= bases
            numbers = self._launch_on(
                [
                    self._assigned(device, _part(device, parts), *part)
                    for device, part in enumerate(parts)
                ],
                wait_for,
            )
            self.parts += len(parts)
        return SeveralHandle(self, (tuple(numbers),), command.name, access)

    def _part_us(self, parts: Sequence[PartOf], whole_us: float) -> float:
        """Return how long the longest part takes. Until parts were timed, each is assumed to take
        its share. A launch that does not fill a device takes as long in parts."""
        share_us = whole_us / len(parts)
        return max(self._took_us(key_of(one.command)) or share_us for one in parts)

    def _goes_back_us(self, writes: Sequence[Span]) -> float:
        """Return how long it would take to bring together again what the parts of a launch write,
        where the launches that read it were on one device before."""
        took_us, away = 0.0, 1 - 1 / len(self.placed_on)
        for base in {span.base for span in writes} & self.model.pulled.keys():
            to, nbytes = self.model.pulled[base]
            source = 0 if to else 1
            took_us += self.team.links[source][to].took_us(int(nbytes * away))
        return took_us

    def _spreading_gains_us(self, whole_us: float) -> float:
        """How much time a device would save if a launch was in parts. Nothing where all devices
        have about as much to do."""
        work_us = self.model.work_us
        gap_us = max(work_us) - min(work_us)
        return whole_us * (1 - 1 / len(work_us)) if gap_us > whole_us else 0.0

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
            if self._wants_times and replays < most and not all(map(self._took_us, keys)):
                return None
            least_us = 0.0 if self.spread else LEAST_US
            parts = {
                turn: parts
                for turn, one in enumerate(recorded)
                if one.cutting is not None
                and (self._took_us(key_of(one.command)) or 0.0) >= least_us
                and (parts := one.parts(len(self.placed_on)))
            }
            chosen, ends_us = self._tried(recorded, parts)
            if parts and not self.spread:
                whole, whole_ends_us = self._tried(recorded, {})
                if whole_ends_us <= ends_us:
                    chosen = whole
            try:
                return [
                    piece for run in runs(recorded, chosen, borders) for piece in self._run_of(run)
                ]
            except OutOfMemory:
                return list(range(len(recorded)))

    def _took_us(self, key: Key | None) -> float | None:
        """Return how long launches of a kernel take on the slowest device."""
        return max((one for one in self._times_of(key) if one is not None), default=None)

    def _times_of(self, key: Key | None) -> tuple[float | None, ...]:
        return tuple(self.times.took_us(key, device) for device in range(len(self.placed_on)))

    def _tried(
        self, recorded: Sequence[Recorded], parts: Mapping[int, Sequence[PartOf]]
    ) -> tuple[list[Chosen], float]:
        """Place launches one after another by the policy. Return them and the time at which all
        would have ended. This is done twice: the second pass counts, because it finds the data
        where the first one left it."""
        links, many = self.team.links, len(self.placed_on)
        model = Model(many, self.model.coherence.copy())
        held = [store.in_use_bytes for store in self.store.stores]
        chosen: list[Chosen] = []
        for _ in range(2):
            chosen, active = [], [0] * many
            model.free_us, model.ready_us = [0.0] * many, {}
            for turn, one in enumerate(recorded):
                whole_us = self._took_us(key_of(one.command)) or 0.0
                if cut := parts.get(turn, ()):
                    some = [
                        Chosen(turn, *part, device, _part(device, cut), whole_us / len(cut))
                        for device, part in enumerate(cut)
                    ]
                else:
                    states = list(map(State, model.free_us, active, held, model.work_us))
                    found = self._place(one.command, one.access, model, states, 0.0)
                    some = [Chosen(turn, one.command, one.access, *found, whole_us)]
                for launch in some:
                    active[launch.device] += 1
                    model.brings(
                        launch.command, launch.access, launch.device, links, launch.took_us
                    )
                chosen += some
        return chosen, max(model.free_us)

    def _run_of(self, run: list[Chosen] | int) -> list[Placed | int]:
        """Turn a run into items of a replay. The core makes runs of short launches by itself."""
        if isinstance(run, int):
            return [run]
        if self._has_core and not any(
            one.device or one.took_us >= placement.STAYS_US for one in run
        ):
            return [one.turn for one in run]
        return [Placed(run, self.team.links, self._bound, self._real, self._replay)]

    def _replay(self, run: Placed) -> list[int] | None:
        """Launch a run of a graph."""
        model, numbers = self.model, list[int]()
        with self.lock:
            if run.parts and self._may_be_poisoned():
                return None
            started_ns = self._starts()
            self.make_room()
            self._bring([(span, device) for device, all in enumerate(run.needs) for span in all])
            for base in run.away:
                self._leave(base)
            now_us = perf_counter() * 1e6
            try:
                for chosen, command, access, copies in run.steps:
                    for parcel in copies:
                        self._count_copy(parcel)
                    self._send(copies)
                    if self.tracer is not None:
                        self.tracer.goes_on()
                        started_ns = perf_counter_ns()
                    device = chosen.device
                    self.backend.assign(self.number + 1, device, chosen.reason)
                    numbers.append(self.enter(command, access, started_ns=started_ns).number)
                    start_us = max(now_us, model.free_us[device])
                    model.runs(chosen.access.writes, device, start_us, chosen.took_us)
                    self.placed_on[device] += 1
                    if self.stepped is not None:
                        self.stepped(run.steps[len(numbers) - 1])
            except BaseException:
                self._broke_off(run, len(numbers))
                raise
            for piece in run.left:
                model.coherence.put(piece)
            for base in run.home & self._left if self.table.usable else ():
                self._take_up(base)
            self.parts += run.parts
            self.replayed += len(run)
        return numbers

    def _broke_off(self, run: Placed, made: int) -> None:
        """Note what a run has written before one of its launches was refused."""
        for step in run.steps[:made]:
            self._written(step.chosen.access.writes, step.chosen.device)

    def _ask_links(self) -> None:
        """Measure the links before they matter for the first time."""
        if self._knows_links:
            return
        self._knows_links = True
        with suppress(OutOfMemory):
            for (source, target), link in measured(self.copier, self.store.stores).items():
                self.team.links[source][target] = link

    def _may_be_poisoned(self) -> bool:
        """Tell whether bytes are poisoned, or may become so by a launch that has not run yet. A
        launch that reads poison does not run at all, but its parts could not know that."""
        if self.failures.poison:
            return True
        self._on_host = [number for number in self._on_host if number in self.table]
        return bool(self._on_host) or any(number in self.table for number in self.gates)

    def _moves_us(self, parts: Sequence[PartOf]) -> list[float]:
        """Return how long the copies for each part take."""
        found = []
        for device, part in enumerate(parts):
            coherence = self.model.coherence
            pieces = [piece for span in needed(*part) for piece in coherence.missing(span, device)]
            links = self.team.links
            took = 0.0
            for piece in pieces:
                source = placement.nearest(piece.devices, device, piece.nbytes, links)
                took += links[source][device].took_us(piece.nbytes)
            found.append(took)
        return found

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
    ) -> Handle:
        """Read each piece from its device, directly into the host's memory."""
        (span,), place, launches = access.reads, command.source, []
        for piece in pieces:
            at = piece.start - span.start
            device = placement.members(piece.devices, len(self.placed_on))[0]
            part = TransferCommand(
                "read",
                command.target[at : at + piece.nbytes],
                Place(place.memory.sub(at, piece.nbytes), 0, piece.nbytes)
                if self.store.stores[0].is_svm
                else Place(place.memory, place.offset + at, piece.nbytes),
            )
            reads = Access((_span_of(piece),), ())
            launches.append(self._assigned(device, AT_HOME, part, reads))
        numbers = tuple(self._launch_on(launches, wait_for))
        return ReadHandle(self, numbers, command.name, access, result)

    def make_room(self) -> None:
        """Wait for room now, because nothing may come between a launch and its copies."""
        self.check_open()
        super().make_room()
        self.backend.forget_before(self.table.oldest() or self.number)

    def _place(
        self,
        command: Command,
        access: Access,
        model: Model,
        states: Sequence[State],
        now_us: float,
    ) -> tuple[int, str]:
        """Choose the device of a launch, and say why."""
        if reason := binding.pinned_because(command, access):
            return 0, reason
        if isinstance(command, TransferCommand) and not access.reads:
            return self._place_of_write(access, model, states)
        times, spans = self._times_of(key_of(command)), needed(command, access)
        if self._stays_short(times, spans, model):
            return 0, AT_HOME
        if any(took is not None and took >= LEAST_US for took in times):
            self._ask_links()
        task = model.task(spans, times, access.writes)
        if isinstance(command, TransferCommand):
            return placement.at_home(task, states), AT_HOME
        chosen = self.policy(task, states, self.team.links, now_us)
        model.chose(task, chosen)
        return chosen, f"placed by {self.team.placement}"

    def _stays_short(
        self, times: Sequence[float | None], spans: Sequence[Span], model: Model
    ) -> bool:
        """Whether a launch is known to be short, and the first device has all it needs: what
        `min_finish` would say, without asking it."""
        took = times[0]
        if took is None or took >= placement.STAYS_US or self.policy is not placement.min_finish:
            return False
        return not any(span.base > 0 and model.coherence.missing(span, 0) for span in spans)

    def _place_of_write(
        self, access: Access, model: Model, states: Sequence[State]
    ) -> tuple[int, str]:
        """Choose the device of values from the host: where the array is, or with most room."""
        holders = [model.coherence.everywhere(span) for span in access.writes]
        for device in range(len(states)):
            if holders and all(mask >> device & 1 for mask in holders):
                return device, AT_HOME
        if self.table.usable:
            return 0, "short launches that use it will be there"
        least = min(range(len(states)), key=lambda device: (states[device].held, device))
        return least, "it has the fewest bytes"

    def _states(self) -> list[State]:
        return [
            State(free, backend.in_flight, store.in_use_bytes, work)
            for free, backend, store, work in zip(
                self.model.free_us,
                self.backend.backends,
                self.store.stores,
                self.model.work_us,
                strict=True,
            )
        ]

    def _launched(self, access: Access, device: int, key: Key | None) -> None:
        """Note what a launch changes in the coherence and on the model's clock."""
        self._written(access.writes, device)
        if not device and self._left and self.table.usable:
            for base in {span.base for span in (*access.reads, *access.writes)} & self._left:
                self._take_up(base)
        self.placed_on[device] += 1
        now_us, free_us = perf_counter() * 1e6, self.model.free_us[device]
        if self.backend.backends[device].in_flight <= 1:
            free_us = now_us
        took = self.times.took_us(key, device) or 0.0
        self.model.runs(access.writes, device, max(free_us, now_us), took)

    def _written(self, spans: Sequence[Span], device: int) -> None:
        """Note that only this device has these bytes from now on."""
        for span in spans:
            if span.base == EVERYTHING:
                for number in list(self._blocks):
                    self._written(list(map(_span_of, self.model.coherence.all_of(number))), device)
            elif span.base > 0:
                if device:
                    self._leave(span.base)
                self.model.coherence.written(span, device)

    # ---- memory ----------------------------------------------------------------------------------

    def new_base(self, nbytes: int) -> Base:
        """Allocate memory that no device has yet."""
        base = super().new_base(nbytes)
        assert isinstance(base.block, Blocks)
        base.block.number = base.number
        self._blocks[base.number] = base.block
        self._leave(base.number)
        if self.checker is not None:  # checks give it contents
            self.model.coherence.written(interval(base.number, 0, base.block.size), 0)
        return base

    def is_used(self, base: int) -> bool:
        """Tell whether launches in flight use a base on any device."""
        devices = range(len(self.placed_on))
        return any(self.hazards.users(real_base(base, device)) for device in devices)

    def raise_for_bytes(self, spans: Sequence[Span], what: str) -> None:
        """Do nothing here: only the launch that reads knows which device has the bytes."""

    def tell_address(self, array: Array) -> None:
        """Refuse, because an array on several devices has several addresses."""
        raise UsageError(
            "data: with several devices an array has no one place; get() it, or use one device"
        )

    def _freed(self, blocks: Blocks, device: int) -> tuple[int, ...]:
        """Forget a part of a block that was freed. Return the launches that may still use it."""
        self._blocks.pop(blocks.number, None)
        self._spread_apart.discard(blocks.number)
        self._left.discard(blocks.number)
        self.model.coherence.forget(blocks.number)
        self.model.ready_us.pop((blocks.number, device), None)
        self.model.pulled.pop(blocks.number, None)
        real = real_base(blocks.number, device)
        users = self.hazards.users(real)
        self.hazards.forget(real)
        self.failures.poison.forget(real)
        self.note_poison()
        return users

    def _place_on(self, device: int, part: AnyPart) -> Place:
        self._have_part(part.blocks, device)
        return self.store.place_on(part, device)

    def _have_part(self, blocks: Blocks, device: int) -> Block:
        """Return the block of an array on a device; make it if there is none yet."""
        if (known := blocks.parts[device]) is not None:
            return known
        block, is_new = self.store.part(blocks, device, self.hazards.is_live)
        if block is None:
            bases.take_back(self)
            self.store.release_unused()
            block, is_new = self.store.part(blocks, device, self.hazards.is_live)
        if block is None:
            store = self.store.stores[device]
            raise OutOfMemory(
                f"no {blocks.size:,} bytes left on device {device} "
                f"({self.team.devices[device].name.strip()}; {store.reserved_bytes:,} reserved, "
                f"{store.in_use_bytes:,} in arrays)"
            )
        if is_new and block.users:
            self.hazards.inherit(real_base(blocks.number, device), block.users)
        return block

    def _real(self, access: Access, device: int) -> Access:
        """Return the access with the base numbers of a device."""
        if not device:
            return access

        def there(spans: tuple[Span, ...]) -> tuple[Span, ...]:
            return tuple(one._replace(base=real_base(one.base, device)) for one in spans)

        return Access(there(access.reads), there(access.writes), there(access.overwrites))

    def have(self, array: Array, device: int, alone: bool = False) -> None:
        """Copy to a device what it lacks of an array. `alone`: no other device keeps the array."""
        spans = array.live().spans
        with self.lock:
            self.make_room()
            self._bring([(span, device) for span in spans])
            if alone:
                self._written(spans, device)

    # ---- copies ----------------------------------------------------------------------------------

    def _bring(
        self,
        wanted: Sequence[tuple[Span, int]],
        waits_us: float = WAITS_US,
        written: Container[int] = (),
    ) -> None:
        """Copy what devices lack of some spans. Wait up to `waits_us` for bytes that a launch at
        their source is still writing."""
        parcels: list[Parcel] = []
        try:
            for span, device in wanted:
                for parcel in self._lacking(span, device):
                    self._count_copy(parcel)
                    self.model.pulls(parcel, written)
                    if any(parcel.follows(one) for one in parcels):
                        self._send(parcels, waits_us)
                        parcels = []
                    parcels.append(parcel)
            self._send(parcels, waits_us)
        except BaseException:
            for base, start, end, _, device in parcels:
                self.model.coherence.lost(Piece(base, start, end, 0), device)
            raise

    def _lacking(self, span: Span, device: int) -> Iterator[Parcel]:
        """Yield the copies of what a device lacks of a span."""
        coherence, links = self.model.coherence, self.team.links
        if span.base == EVERYTHING:
            for number in list(self._blocks):
                for piece in coherence.all_of(number):
                    yield from parcels(coherence, _span_of(piece), device, links, PREFETCH)
        elif span.base > 0:
            yield from parcels(coherence, span, device, links, PREFETCH)

    def _send(self, copies: Sequence[Parcel], waits_us: float = WAITS_US) -> None:
        """Copy, at once or by launches."""
        for first in range(0, len(copies), TOGETHER):
            some = copies[first : first + TOGETHER]
            made = self._carry(some, max(waits_us, WAITS_US))
            for parcel in some:
                if parcel not in made:
                    for start in range(parcel.start, parcel.end, CHUNK):
                        end = min(parcel.end, start + CHUNK)
                        self._copy(parcel._replace(start=start, end=end))
                if parcel.target:
                    self._leave(parcel.base)

    def _carry(self, copies: Sequence[Parcel], waits_us: float) -> Sequence[Parcel]:
        """Make copies at once and beside each other, if the launches before them have ended or will
        soon. Return the copies made; the others have to be launched."""
        if not copies or self.failures.any or self._may_be_poisoned():
            return ()
        until_us = perf_counter() * 1e6 + waits_us
        began_ns, events = self._now_ns(), list[cl.Event]()
        made, launches, moves = list[Parcel](), list[Launch](), list[Move]()
        for parcel in copies:
            if self.model.ready_us.get((parcel.base, parcel.source), 0.0) > until_us:
                continue
            launch, move = self._carried(parcel, len(moves))
            found = self._under_way(launch.upstream)
            if found is not None:
                events += found
                made.append(parcel)
                launches.append(launch)
                moves.append(move)
        if events:
            self.backend.flush()
        if not made or any(driver.wait_for_event(event) < 0 for event in events):
            return ()
        copied_ns = self._now_ns()
        self.copier.make(moves)
        for launch in launches if self.tracer is not None else ():
            assert self.tracer is not None
            entered_ns = self.tracer.entered(launch.number, began_ns)
            self.tracer.launched(launch.number, began_ns, entered_ns)
            self.tracer.copied_at_once(launch, copied_ns, perf_counter_ns())
            self.tracer.goes_on()
            began_ns = perf_counter_ns()
        return made

    def _carried(self, parcel: Parcel, turn: int) -> tuple[Launch, Move]:
        """Return the launch for a copy at once, with its upstream, and the core's arguments."""
        base, start, end, source, target = parcel
        blocks, nbytes = self._blocks[base], end - start
        there, here = (self._have_part(blocks, device) for device in (source, target))
        move = self.copier.move((source, there), (target, here), start, nbytes, turn)
        spans = [(interval(real_base(base, one), start, nbytes),) for one in (source, target)]
        number, found = 0, tuple[int, ...]()
        if len(self.table) or self.tracer is not None:
            number = self.table.number = self.table.number + 1
            found = tuple(self.hazards.enter(number, spans[0], spans[1]) or ())
            self.hazards.retire(number)  # the next launches follow it anyway
            if self.table.has_stand_ins:
                found = tuple(self.table.expand(found))
        command = TransferCommand("copy", None, None, carries=_said(parcel))
        return Launch(number, command, Access(*spans), found), move

    def _under_way(self, numbers: Iterable[int]) -> list[cl.Event] | None:
        """Return events of launches that have not ended. None: the driver lacks some of them."""
        found = []
        for number in numbers:
            state = self.table.state(number)
            event = self.backend.event(number) if state == "executing" else None
            if event is not None:
                found.append(event)
            elif state is not None:
                return None
        return found

    def _now_ns(self) -> int:
        return perf_counter_ns() if self.tracer is not None else 0

    def _count_copy(self, parcel: Parcel) -> None:
        count = self.moved[parcel.source][parcel.target]
        count[0] += 1
        count[1] += parcel.end - parcel.start
        if self.parcels is not None:
            self.parcels(parcel)

    def _copy(self, parcel: Parcel) -> None:
        """Launch both halves of a copy."""
        base, start, end, source, target = parcel
        nbytes, blocks = end - start, self._blocks[base]
        for device in (source, target):
            self._have_part(blocks, device)
        slot, in_use = self.staging.take(nbytes, lambda one: bool(self.hazards.users(one)))
        host, staged = slot.host[:nbytes], (slot.span(nbytes),)

        def place(device: int) -> Place:
            block = blocks.parts[device]
            assert block is not None
            return self.store.stores[device].place(block, start, nbytes)

        def real(device: int) -> tuple[Span, ...]:
            return (interval(real_base(base, device), start, nbytes),)

        why, said = f"copies {nbytes:,} bytes of base {base}", _said(parcel)
        read = TransferCommand("read", host, place(source), carries=said)
        write = TransferCommand("write", place(target), host, carries=said)
        there = real(target)
        for half, device, access, patient in (
            (read, source, Access(real(source), staged, staged), in_use),
            (write, target, Access(staged, there, there), True),
        ):
            if self.tracer is not None:
                self.tracer.goes_on()
            self.backend.assign(self.number + 1, device, f"{said}, {why}")
            now_ns = self._now_ns()
            number = self.enter(half, access, patient=patient, started_ns=now_ns).number
            if half is read:
                self._tell_of(number)

    def _tell_of(self, number: int) -> None:
        """Let a thread poll as soon as the first half of a copy has ended."""
        event = self.backend.event(number)
        if event is not None:
            self.backend.flush()
            self.host_tasks.run(partial(self._see, event))

    def _see(self, event: cl.Event) -> None:
        driver.wait_for_event(event)
        with self.lock:
            if not self.state:
                pump(self)

    def _pinned(self, nbytes: int) -> HostArray:
        return driver.wait_for_pinned(self.backend.queues[0], (nbytes,), np.dtype(np.uint8))

    # ---- asking ----------------------------------------------------------------------------------

    def about_devices(self) -> list[dict[str, object]]:
        """Return what each device has done."""
        found: list[dict[str, object]] = []
        for number, device in enumerate(self.team.devices):
            store = self.store.stores[number]
            moved = {
                source: {"copies": row[number][0], "bytes": row[number][1]}
                for source, row in enumerate(self.moved)
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
        return f"<acs_cl.Runtime {self.plan.backend} on {text}>"


def _part(device: int, cut: Sequence[PartOf]) -> str:
    return f"part {device + 1} of {len(cut)} of it"


def _said(parcel: Parcel) -> str:
    return f"{BETWEEN}{parcel.source} to {parcel.target}"


def _span_of(piece: Piece) -> Span:
    return interval(piece.base, piece.start, piece.nbytes)
