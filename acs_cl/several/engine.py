"""The engine of several devices: each launch gets a device, and its data gets there first.

In: launches in program order, as for one device. Out: the same launches, each on a device, with
copies before them of what is missing there. The coherence is changed under the runtime's lock in
program order, so it says where bytes will be valid when the launches so far have ended.

Invariants: hazards know the memory of each device under base numbers of its own, so that a launch
waits for launches on its device and for copies alone. Nothing is copied to a device that has it.
"""

# Long because: placing, copying and launching of one launch are one step under one lock.

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from threading import get_ident
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pyopencl as cl

from .. import core
from ..devices import driver
from ..devices.driver import Place
from ..errors import OutOfMemory, UsageError
from ..handle import Handle
from ..launch import bases, waits
from ..launch.books import Parts
from ..launch.commands import KernelCommand, TransferCommand
from ..launch.decision import DecidedCommand
from ..launch.ends import pump
from ..launch.engine import Calls, Engine
from ..launch.gates import open_events
from ..memory.array import Array, HostArray
from ..memory.blocks import Base
from ..records import EVERYTHING, Access, Command, Span
from . import binding, placement
from .backend import Several
from .coherence import Coherence, Piece, is_widened
from .memory import Blocks, Everywhere, Part, real_base
from .placement import Lack, Links, State, Task
from .staging import CHUNK, Staging
from .twins import Twins

PREFETCH = 64 << 10
"""A copy takes along what lies between two pieces, up to this many bytes, if its target lacks
that."""

Key = tuple[str, tuple[int, ...], tuple[int, ...] | None] | None
"""What times are kept under: a kernel and its sizes."""

AT_HOME = "its data is there"


class Parcel(NamedTuple):
    """One copy between devices, for those that count them."""

    base: int
    start: int
    end: int
    source: int
    target: int


class Team(NamedTuple):
    """The devices of a runtime, and how launches are placed on them."""

    contexts: Sequence[cl.Context]
    devices: Sequence[cl.Device]
    backend: Several
    store: Everywhere
    links: Links
    placement: str


class SeveralEngine(Engine):
    """Launches on several devices."""

    backend: Several
    store: Everywhere

    def __init__(self, parts: Parts, calls: Calls, team: Team) -> None:
        super().__init__(parts, calls)
        self.team = team
        self.coherence = Coherence()
        self.policy = placement.policy(team.placement)
        self.twins = Twins(team.contexts, team.devices)
        self.staging = Staging(self._pinned)
        self.parcels: Callable[[Parcel], None] | None = None
        """Is told of each copy. For tests."""
        many = len(team.devices)
        self.moved = [[[0, 0] for _ in range(many)] for _ in range(many)]
        """Copies and bytes, by source and target."""
        self.placed = [0] * many
        """Launches of the program, by device."""
        self._blocks: dict[int, Blocks] = {}
        self._times: dict[tuple[Key, int], float] = {}
        """{what is launched, device: how long it took, in us}."""
        self._timing: dict[int, Key] = {}
        """{launch under way: what its time is kept under}."""
        self._free_us = [0.0] * many
        self._ready_us: dict[tuple[int, int], float] = {}
        """{base, device: when its last writer there will have ended}."""
        self.store.freed = self._freed
        self.backend.timed = self._timed

    def open(self) -> None:
        """Take calls from now on. The core makes no launches by itself: it knows one device."""
        super().open()
        self.table.usable = False
        self.table.predict(False)

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
        """Place a launch, copy what its device lacks, and launch it there."""
        if self.recorders and (graph := self.recorders.get(get_ident())) is not None:
            return graph.take(command, access, wait_for)
        with self.lock:
            self._make_room()
            gates = open_events(wait_for) if wait_for else None
            device, reason = self._place(command, access)
            self._bring(access, device)
            made = binding.bound(
                command, partial(self._place_on, device), lambda one: self.twins.kernel(one, device)
            )
            real = self._real(access, device)
            self._timing[self.number + 1] = _key(command)
            self.backend.assign(self.number + 1, device, reason)
            handle = self.enter(made, real, gates, result, None, after)
            self._launched(access, device, _key(command))
        return Handle(self, handle.number, handle.name, access, result)

    def _make_room(self) -> None:
        """Wait for room now: between the copies of a launch and the launch nothing may come."""
        self.check_open()
        if self.table.has_returned:
            bases.take_back(self)
        if len(self.table) >= self.backlog:
            waits.wait_for_half(self)
            self.check_open()
        self.backend.forget_before(self.table.oldest() or self.number)
        if len(self._timing) > 2 * self.backlog:
            self._timing = {n: key for n, key in self._timing.items() if n in self.table}

    def _place(self, command: Command, access: Access) -> tuple[int, str]:
        if reason := binding.pinned_because(command, access):
            return 0, reason
        states = self._states()
        if isinstance(command, TransferCommand) and not access.reads:
            return self._place_of_write(access, states)
        task = self._task(command, access)
        if isinstance(command, TransferCommand):
            return placement.at_home(task, states), AT_HOME
        chosen = self.policy(task, states, self.team.links, perf_counter() * 1e6)
        return chosen, f"placed by {self.team.placement}"

    def _place_of_write(self, access: Access, states: list[State]) -> tuple[int, str]:
        """Values from the host go where the array was, or where there is most room."""
        holders = [self.coherence.everywhere(span) for span in access.writes]
        for device in range(len(states)):
            if holders and all(mask >> device & 1 for mask in holders):
                return device, AT_HOME
        least = min(range(len(states)), key=lambda device: (states[device].held, device))
        return least, "it has the fewest bytes"

    def _states(self) -> list[State]:
        return [
            State(free, backend.in_flight, store.in_use_bytes)
            for free, backend, store in zip(
                self._free_us, self.backend.backends, self.store.stores, strict=True
            )
        ]

    def _task(self, command: Command, access: Access) -> Task:
        """What a policy knows of a launch."""
        needed, key = _needed(access), _key(command)
        named = {span.base for span in needed}
        devices = range(len(self.placed))
        lacks = tuple(
            tuple(
                Lack(piece.nbytes, piece.devices)
                for span in needed
                for piece in self.coherence.missing(span, device)
            )
            for device in devices
        )
        ready = tuple(
            max((self._ready_us.get((base, device), 0.0) for base in named), default=0.0)
            for device in devices
        )
        took = tuple(self._times.get((key, device)) for device in devices)
        return Task(lacks, ready, took, sum(span.nbytes for span in needed))

    def _launched(self, access: Access, device: int, key: Key) -> None:
        """Note what a launch does to coherence and to the model's clock."""
        for span in access.writes:
            if span.base == EVERYTHING:
                for number in list(self._blocks):
                    for piece in self.coherence.all_of(number):
                        self.coherence.written(_span_of(piece), device)
            elif span.base > 0:
                self.coherence.written(span, device)
        self.placed[device] += 1
        now_us = perf_counter() * 1e6
        if self.backend.backends[device].in_flight <= 1:
            self._free_us[device] = now_us
        took = self._times.get((key, device), 0.0)
        self._free_us[device] = max(self._free_us[device], now_us) + took
        for span in access.writes:
            self._ready_us[span.base, device] = self._free_us[device]

    def _timed(self, number: int, device: int, took_us: float) -> None:
        key = self._timing.pop(number, None)
        if key is not None:
            before = self._times.get((key, device), took_us)
            self._times[key, device] = 0.75 * before + 0.25 * took_us

    # ---- memory ----------------------------------------------------------------------------------

    def new_base(self, nbytes: int) -> Base:
        """Allocate memory that no device has yet."""
        base = super().new_base(nbytes)
        assert isinstance(base.block, Blocks)
        base.block.number = base.number
        self._blocks[base.number] = base.block
        return base

    def is_used(self, base: int) -> bool:
        """Whether launches in flight use a base, on any device."""
        devices = range(len(self.placed))
        return any(self.hazards.users(real_base(base, device)) for device in devices)

    def raise_for_bytes(self, spans: Sequence[Span], what: str) -> None:
        """Leave it to the launch that reads: only that knows which device has the bytes."""

    def tell_address(self, array: Array) -> None:
        """Refuse: there is no one address."""
        raise UsageError(
            "data: with several devices an array has no one place; get() it, or use one device"
        )

    def _freed(self, blocks: Blocks, device: int) -> tuple[int, ...]:
        """A part of a block comes back."""
        self._blocks.pop(blocks.number, None)
        self.coherence.forget(blocks.number)
        self._ready_us.pop((blocks.number, device), None)
        real = real_base(blocks.number, device)
        users = self.hazards.users(real)
        self.hazards.forget(real)
        self.failures.poison.forget(real)
        self.note_poison()
        return users

    def _place_on(self, device: int, part: Part) -> Place:
        self._have_part(part.blocks, device)
        return self.store.place_on(part, device)

    def _have_part(self, blocks: Blocks, device: int) -> None:
        """Make the block of an array on a device, if there is none yet."""
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

    def _real(self, access: Access, device: int) -> Access:
        """The access with the base numbers of a device."""
        if not device:
            return access

        def there(spans: tuple[Span, ...]) -> tuple[Span, ...]:
            return tuple(one._replace(base=real_base(one.base, device)) for one in spans)

        return Access(there(access.reads), there(access.writes), there(access.overwrites))

    def have(self, array: Array, device: int, alone: bool = False) -> None:
        """Copy to a device what it lacks of an array. `alone`: no other counts as having it."""
        access = Access(array.live().spans, ())
        with self.lock:
            self._make_room()
            self._bring(access, device)
            for span in access.reads if alone else ():
                self.coherence.written(span, device)

    # ---- copies ----------------------------------------------------------------------------------

    def _bring(self, access: Access, device: int) -> None:
        """Copy what a launch needs and its device lacks."""
        for span in _needed(access):
            if span.base == EVERYTHING:
                for number in list(self._blocks):
                    for piece in self.coherence.all_of(number):
                        self._bring_span(_span_of(piece), device)
            elif span.base > 0:
                self._bring_span(span, device)

    def _bring_span(self, span: Span, device: int) -> None:
        pieces = deque(self.coherence.missing(span, device))
        while pieces:
            piece = pieces.popleft()
            source = placement.nearest(piece.devices, device, piece.nbytes, self.team.links)
            while pieces and pieces[0].devices >> source & 1:
                begins = pieces[0].start
                if begins - piece.end > PREFETCH:
                    break
                if self.coherence.run(piece, source, device, begins) < begins:
                    break
                piece = piece._replace(end=pieces.popleft().end)
            for start in range(piece.start, piece.end, CHUNK):
                self._copy(Parcel(span.base, start, min(piece.end, start + CHUNK), source, device))
            self.coherence.moved(piece, device)

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
            return (Span(real_base(base, device), start, nbytes, 1, nbytes),)

        why = f"copies {nbytes:,} bytes of base {base} from device {source} to device {target}"
        read = TransferCommand("read", host, place(source))
        self.backend.assign(self.number + 1, source, why)
        number = self.enter(read, Access(real(source), staged, staged), patient=in_use).number
        self._tell_of(number)
        write = TransferCommand("write", place(target), host)
        self.backend.assign(self.number + 1, target, why)
        there = real(target)
        self.enter(write, Access(staged, there, there), patient=True)
        count = self.moved[source][target]
        count[0] += 1
        count[1] += nbytes
        if self.parcels is not None:
            self.parcels(parcel)

    def _tell_of(self, number: int) -> None:
        """Have a thread move things along as soon as the first half of a copy has ended."""
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

    def refuse_on_several(self, what: str) -> None:
        """Raise: times of several devices are of several clocks."""
        raise UsageError(f"{what} takes one device: each has a clock of its own")

    def about_devices(self) -> list[dict[str, object]]:
        """Say what each device has done."""
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
                    "launches": self.placed[number],
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


def _needed(access: Access) -> tuple[Span, ...]:
    """What has to be valid before a launch: all that it touches, but for what it overwrites."""
    sure = {span for span in access.overwrites if not is_widened(span)}
    return (*access.reads, *(span for span in access.writes if span not in sure))


def _span_of(piece: Piece) -> Span:
    return Span(piece.base, piece.start, piece.nbytes, 1, piece.nbytes)


def _key(command: Command) -> Key:
    """What times are kept under."""
    if isinstance(command, DecidedCommand):
        command = command.plain
    if isinstance(command, KernelCommand):
        return command.name, command.global_size, command.local_size
    return None
