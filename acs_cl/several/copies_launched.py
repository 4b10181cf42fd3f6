"""Copies that are launched: each is two launches, since events do not cross contexts.

Input: bytes of a base that one device has and another one lacks. Output: two launches for each
chunk. One reads into staging memory of the host, which is pinned, and the other one writes from
there. One chunk is read while the chunk before it is written. What is the same when a copy comes
again is kept, and the core makes both halves then.

Invariant: a half follows the last launches that use its bytes, and the write follows the read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import pyopencl as cl

from .. import core
from ..devices import driver
from ..devices.driver import Events, Place
from ..launch.commands import BETWEEN, TransferCommand
from ..memory.array import HostArray
from ..memory.blocks import Block
from ..records import STAGING, Access, NamedTuple, interval
from .arrays import ArrayEngine
from .copies_at_once import SMALL, Move
from .memory import real_base
from .model import CHUNK, Parcel

MOST_KNOWN = 4096
"""Largest number of copies of which is kept what the core knows of them."""

MOST = {SMALL: 64, 8 * SMALL: 32, CHUNK: 8}
"""Largest number of pieces of each size: so many copies are under way before one has to wait."""


Side = tuple[int, Block]
"""A device, and the block of an array there."""


class Slot:
    """A piece of staging memory."""

    __slots__ = ("base", "host", "span", "stage")

    def __init__(self, base: int, host: HostArray, hazards: core.native.Hazards) -> None:
        self.base, self.host = base, host
        self.span = interval(base, 0, host.nbytes)
        self.stage = core.native.Stage(hazards, int(host.ctypes.data), self.span)
        """What the core knows of it."""


class Staging:
    """Holds the staging memory of a runtime. `allocate` returns pinned memory."""

    def __init__(self, allocate: Callable[[int], HostArray], hazards: core.native.Hazards) -> None:
        self._allocate, self._hazards = allocate, hazards
        self._slots: dict[int, deque[Slot]] = {size: deque() for size in MOST}
        """The pieces by size; the one that was taken longest ago comes first."""

    def take(self, nbytes: int, is_used: Callable[[int], bool]) -> tuple[Slot, bool]:
        """Return staging memory for a chunk, and whether a launch in flight still uses it. If so,
        the next one has to wait for that launch."""
        size = min(size for size in MOST if nbytes <= size)
        slots = self._slots[size]
        in_use = not slots or is_used(slots[0].base)
        if in_use and len(slots) < MOST[size]:
            many = sum(map(len, self._slots.values()))
            slots.append(Slot(STAGING + many, self._allocate(size), self._hazards))
            return slots[-1], False
        slots.rotate(-1)
        return slots[-1], in_use


class SecondHalf(TransferCommand):
    """The second half of a copy, which writes once the first one, on another device, has read."""

    read: Callable[[], cl.Event | None]
    """Returns the event of the first half; None: it has ended."""

    def enqueue(self, queue: cl.CommandQueue, wait_for: Events) -> cl.Event:
        """Start the transfer, behind an event of its own context."""
        event = self.read()
        if event is None:
            return driver.write(queue, self.target, self.source, wait_for)
        crossed = cl.UserEvent(queue.context)
        core.native.bridge(event.int_ptr, crossed.int_ptr)
        return driver.write(queue, self.target, self.source, [*(wait_for or ()), crossed])


class Halves:
    """Makes the commands of the two halves of a copy."""

    def __init__(
        self, engine: ArrayEngine, parcel: Parcel, slot: Slot, sides: Sequence[Side]
    ) -> None:
        self._engine, self._parcel, self._sides = engine, parcel, sides
        self._host = slot.host[: parcel.end - parcel.start]
        self.first = engine.number + 1
        """The number of the first half."""

    def read(self) -> TransferCommand:
        """Return the first half."""
        return TransferCommand("read", self._host, self._place(0), carries=said(self._parcel))

    def write(self) -> SecondHalf:
        """Return the second half."""
        half = SecondHalf("write", self._place(1), self._host, carries=said(self._parcel))
        half.read = partial(self._engine.backend.event, self.first)
        return half

    def _place(self, side: int) -> Place:
        (device, block), start = self._sides[side], self._parcel.start
        return self._engine.store.stores[device].place(block, start, self._host.nbytes)


class Between(NamedTuple):
    """What is the same each time that a copy comes again."""

    core: core.native.Crossing
    why: str
    access: Access
    """What it reads on one device and writes on the other one."""
    sides: tuple[Side, Side]
    """Both devices, and the block of each."""
    moves: dict[int, Move]
    """The copy for the core, if it is made at once, by its turn among those made together."""


class Crossings:
    """Launches copies of an engine. `have_ended` waits for launches, or tells that it cannot."""

    def __init__(
        self,
        engine: ArrayEngine,
        staging: Staging,
        place: Callable[[Block, int], tuple[int, int]],
        have_ended: Callable[[Iterable[int]], bool],
    ) -> None:
        self._engine, self._staging = engine, staging
        self._place, self._have_ended = place, have_ended
        self._known: dict[Parcel, Between] = {}

    def launch(self, parcel: Parcel) -> None:
        """Launch both halves of a copy. The core makes them, if there is nothing unusual."""
        engine, source, target = self._engine, parcel.source, parcel.target
        slot, in_use = self._staging.take(parcel.end - parcel.start, engine.hazards.is_used)
        if in_use:  # too many copies are under way: wait, unless the program has to do something
            in_use = not self._have_ended(engine.hazards.users(slot.base))
        known = self.of(parcel)
        halves = Halves(engine, parcel, slot, known.sides)
        first = halves.first
        engine.backend.assign_all(first, (source, target), (known.why, known.why))
        if in_use or engine.tracer is not None:
            staged, written = (slot.span,), known.access.writes
            self._enter(halves.read(), Access(known.access.reads, staged, staged), in_use)
            self._enter(halves.write(), Access(staged, written, written), False)
            return
        there, here = engine.lanes_of(source), engine.lanes_of(target)
        made = known.core.launch(there, here, slot.stage, halves.read, halves.write)
        engine.follow_up(made, many=2)
        if made == -first:
            engine.follow_up(known.core.write(here, slot.stage, halves.write, there, first))

    def of(self, parcel: Parcel) -> Between:
        """Return what is known of a copy."""
        found = self._known.get(parcel)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            found = self._known[parcel] = self._between(parcel)
        return found

    def forget(self, base: int) -> None:
        """Forget a base that was freed."""
        for parcel in [parcel for parcel in self._known if parcel.base == base]:
            del self._known[parcel]

    def _enter(self, half: TransferCommand, access: Access, waits_on_host: bool) -> None:
        engine = self._engine
        if engine.tracer is not None:
            engine.tracer.launches_more()
        engine.enter(half, access, waits_on_host=waits_on_host, started_ns=engine.now_ns())

    def _between(self, parcel: Parcel) -> Between:
        engine, (base, start, end, *devices) = self._engine, parcel
        blocks, nbytes = engine.blocks[base], end - start
        source, target = ((one, engine.have_part(blocks, one)) for one in devices)
        read, written = (interval(real_base(base, one), start, nbytes) for one in devices)
        crossing = core.native.Crossing(
            engine.hazards, engine.store.is_svm, self._place(source[1], start),
            self._place(target[1], start), nbytes, read, written,
        )  # fmt: skip
        why = f"{said(parcel)}, copies {nbytes:,} bytes of base {base}"
        return Between(crossing, why, Access((read,), (written,)), (source, target), {})


def said(parcel: Parcel) -> str:
    """Say in words between which devices a copy is."""
    return f"{BETWEEN}{parcel.source} to {parcel.target}"
