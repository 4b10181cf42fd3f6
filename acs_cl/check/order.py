"""The check `order`: every legal order of launches gives the bytes of program order.

Input: the launches between two moments at which the program waits, and the memory before them.
Output: an error, if a legal order gives other bytes. If a watched launch touched undeclared bytes,
each launch is checked from that memory. The backend runs the launches as usual. The orders run
beside it, one launch after another, so the same seed always finds the same error.

An order is legal if launches keep their places that share a declared byte, one of them writing. The
first order runs the latest ready launch first. The others are random, and hold some launches back
while others are ready. Invariant: afterwards memory is as the backend left it. The backend alone
runs host tasks, once; an order stores the bytes that they stored.
"""

# Long because: a batch is kept, run and blamed on one state.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from random import Random
from typing import Any
from zlib import crc32

import pyopencl as cl

from .. import core
from ..access.arguments import ADDRESS_SPACE
from ..devices import driver
from ..errors import Finding
from ..launch.commands import (
    HostCommand,
    TransferCommand,
)
from ..launch.decision import DecidedCommand, plain_kernel
from ..records import EVERYTHING, Access, Command, HostArray, NamedTuple, Span
from . import findings
from .access import judged
from .case import Case, PutBack
from .findings import Where, Who, finding
from .memory import Interval, Region, common, load_all, merged, store_all
from .naming import arguments_of, signature_of, where
from .passes import Let
from .patterns import Bytes

ORDERS = 2
"""Orders tried for each batch."""

HELD_BACK = 0.2
"""Share of launches that a random order holds back while others are ready."""

MOST = 256
"""Most launches of a batch."""

KEPT_BYTES = 16 << 20
"""Most memory that is kept at the start of a batch which exists for watched launches."""

State = dict[int, Bytes]
"""{id of a region: its bytes}."""


class Entry(NamedTuple):
    """A launch of a batch, with its bytes by regions."""

    who: Who
    command: Command
    access: Access
    reads: list[Interval]
    writes: list[Interval]
    placed: Access


class Later(NamedTuple):
    """A launch known to do what it declares. Its bytes are looked up only if needed."""

    who: Who
    command: Command
    access: Access


class Looked(NamedTuple):
    """The result of checking each launch: an error, or else the launches without a clear outcome,
    and the bytes that may depend on them."""

    found: Finding | None
    doubtful: list[tuple[Who, str]]
    open: list[Interval]


class Batch:
    """The launches since the program last waited. Nothing is run again if all of them are known to
    do what they declare: legal orders cannot differ then. If watched launches noted something, each
    launch is checked. `ordered`: orders are tried. Else the batch exists for watched launches, and
    begins with the first one."""

    def __init__(self, checker: Any, seed: int, ordered: bool) -> None:
        self._checker = checker
        self._random = Random(seed)
        self._ordered = ordered
        self._entries: list[Entry | Later] = []
        self._doubtful = False
        """Whether a launch in it may do something undeclared."""
        self._hosts: list[tuple[HostArray, int]] = []
        """Host memory that was the source of a copy, and its checksum then."""
        self._start: State = {}
        self._regions: dict[int, Region] = {}
        self._spoiled = False
        self._watched = self._lost = False
        """Whether it has watched launches, and whether an abandoned batch had some."""
        self._noted: list[str] = []
        """Kernels of watched launches that touched undeclared bytes."""
        self._changes = 0
        self.orders = 0

    @property
    def empty(self) -> bool:
        """Tell whether no launch has to be judged since the program last waited."""
        return not self._entries

    @property
    def takes_watched(self) -> bool:
        """Tell whether a launch that notes something could be checked later."""
        checker = self._checker
        if checker.engine.failures.any:
            return False
        if self._entries:
            return not self._spoiled
        return self._ordered or checker.memory.nbytes <= KEPT_BYTES

    def before(self, command: Command, access: Access, let: Let) -> None:
        """Keep the memory before a launch. One that is known uses no foreign memory."""
        memory = self._checker.memory
        if len(self._entries) >= MOST:
            self.end()
        if let.is_known and self._entries and memory.changes == self._changes:
            return
        self._changes = memory.changes
        if not self._entries:
            self._drain()
            self._start.clear()
            self._regions.clear()
            self._hosts.clear()
            self._spoiled = self._doubtful = False
        kernel = None if let.is_known else plain_kernel(command)
        arguments = [] if kernel is None else arguments_of(kernel, memory)
        used = [one.region for one in memory.intervals((*access.reads, *access.writes))]
        for region in memory.beside([*used, *(one.region for one in arguments)]):
            known = self._start.get(id(region))
            if known is None or len(known) < region.top:
                new = region.load(0, region.top).copy()
                if known is not None:
                    new[: len(known)] = known
                self._start[id(region)] = new
                self._regions[id(region)] = region

    def filled(self, region: Region, low: int, values: Bytes) -> None:
        """Note that a new array was filled."""
        known = self._start.get(id(region))
        if known is not None and low + len(values) <= len(known):
            known[low : low + len(values)] = values

    def add(self, number: int, command: Command, access: Access, site: str, let: Let) -> None:
        """Add a launch that was made."""
        later = Later(Who(number, command.name, site, command.on_host), command, access)
        self._watched |= let is Let.WATCHED
        if let.is_known or self._is_plain_transfer(command):
            self._entries.append(later)
        else:
            self._doubtful = True
            self._entries.append(self._entry(later))

    def _is_plain_transfer(self, command: Command) -> bool:
        """Tell whether a command's result does not depend on orders, if the host's memory stays the
        same."""
        if self._checker.modes.every == 1:
            return False
        if self._ordered and isinstance(command, TransferCommand) and command.name == "write":
            host = command.source
            self._hosts.append((host, crc32(host.data)))
        return isinstance(command, TransferCommand)

    def _entry(self, one: Entry | Later) -> Entry:
        if isinstance(one, Entry):
            return one
        memory, access = self._checker.memory, one.access
        placed = access.moved(self._placed)
        return Entry(*one, memory.read(access), memory.intervals(access.writes), placed)

    def look_up(self) -> None:
        """Look up all bytes, because an array is about to go."""
        self._entries = [self._entry(one) for one in self._entries]

    def spoil(self) -> None:
        """Note a launch that cannot run again: this batch is not judged."""
        self._spoiled = True

    def end(self) -> None:
        """Judge the batch."""
        if self._entries:
            self._judge()

    def end_if_noted(self) -> None:
        """Judge at once if a watched launch has noted something. Later steps assume that memory is
        as launches declared it."""
        if self._watched and not self._checker.engine.foreign:
            self._drain()
            self._noted += self._checker.strayed()
            if self._noted:
                self.end()

    def _judge(self) -> None:
        checker, engine = self._checker, self._checker.engine
        given, self._entries = self._entries, []
        doubtful = self._doubtful or any(crc32(host.data) != before for host, before in self._hosts)
        doubtful = doubtful and self._ordered and len(given) > 1
        if engine.foreign:
            self._lost |= self._watched
            return
        if not (doubtful or self._watched):
            return
        self._drain()  # now it is known whether host tasks have launched something
        strayed: list[str] = []
        lost = self._spoiled or engine.failures.any
        if self._watched:
            strayed, self._noted = [*self._noted, *checker.strayed()], []
            lost |= self._lost
            self._watched = self._lost = False
        if lost and strayed:
            checker.findings.leave_open(given[0].who, given[-1].who, strayed)
        if lost or not (doubtful or strayed):
            return
        entries = [self._entry(one) for one in given]
        real = self._state()
        checker.mirrors.stale()
        with PutBack(self._put, real):
            found = self._wrong_order(entries, real) if doubtful else None
            if found is None and strayed:
                found = self._looked_at(entries).found
        checker.mirrors.stale()
        checker.findings.fail_if(found)

    def _wrong_order(self, entries: Sequence[Entry], real: State) -> Finding | None:
        """Return the error, if an order gives other bytes."""
        upstream = _upstream(entries)
        orders = [legal(upstream, [float(-index) for index in range(len(entries))])]
        orders += [legal(upstream, lots(self._random, len(entries))) for _ in range(ORDERS - 1)]
        program = list(range(len(entries)))
        orders = [order for order in orders if order != program]
        if not orders:
            return None
        serial = self._run(entries, program)
        wrong = None if _same(real, serial) else real
        for order in orders:
            if wrong is None:
                again = self._run(entries, order)
                self.orders += 1
                wrong = None if _same(again, serial) else again
        if wrong is not None:
            return self._name(entries, serial, {key: some.copy() for key, some in wrong.items()})
        if not self._checker.looks:
            self._right(entries)
        return None

    def _right(self, entries: Sequence[Entry]) -> None:
        """Note that orders found no error in them."""
        for entry in entries:
            kernel = plain_kernel(entry.command)
            if kernel is not None and type(entry.command) is not DecidedCommand:
                self._checker.right(kernel)

    # ---- running -------------------------------------------------------------------------------

    def _run(self, entries: Sequence[Entry], order: Sequence[int]) -> State:
        self._put(self._start)
        for index in order:
            self._one(entries[index].command)
        self._checker.memory.queue.finish()
        return self._state()

    def _one(self, command: Command) -> Any:
        """Run a command behind all others; return its event. A host task is replaced by its
        stores."""
        checker = self._checker
        checker.runs += 1
        queue = checker.memory.queue
        if isinstance(command, HostCommand):
            for place, host in command.writes:
                if host.nbytes:
                    driver.write(queue, place, host.reshape(-1).view("u1"), None)
            return None
        with checker.engine.lock:
            event: cl.Event = command.enqueue(queue, None)
        return event

    def _state(self) -> State:
        places = [Interval(one, 0, len(self._start[key])) for key, one in self._regions.items()]
        now = load_all(places)
        return {key: one.copy() for key, one in zip(self._regions, now, strict=True)}

    def _put(self, state: State) -> None:
        self._checker.memory.settle()
        store_all((region, 0, state[key]) for key, region in self._regions.items())

    def _drain(self) -> None:
        engine = self._checker.engine
        if len(engine.table) and not engine.foreign:
            engine.drain()

    # ---- naming --------------------------------------------------------------------------------

    def _name(self, entries: Sequence[Entry], serial: State, wrong: State) -> Finding | None:
        """Find the launch that does something undeclared. Bytes that may depend on an unsteady
        launch accuse no other launch."""
        looked = self._looked_at(entries)
        if looked.found is not None:
            return looked.found
        for one in looked.open:
            wrong[id(one.region)][one.low : one.high] = serial[id(one.region)][one.low : one.high]
        if looked.doubtful and _same(wrong, serial):
            self._checker.findings.warn_of_unsteady(*looked.doubtful[0])
            return None
        return self._last_writer(entries, serial, wrong)

    def _looked_at(self, entries: Sequence[Entry]) -> Looked:
        """Check each launch as the check `access` does, in program order."""
        memory = self._checker.memory
        self._put(self._start)
        doubtful: list[tuple[Who, str]] = []
        open_: list[Interval] = []
        for entry in entries:
            kernel, unsteady = plain_kernel(entry.command), False
            if kernel is None:
                self._one(entry.command)
                memory.queue.finish()
            else:
                memory.refresh()
                arguments, signature = arguments_of(kernel, memory), signature_of(kernel)
                run = partial(self._one, entry.command)
                case = Case(memory, entry.reads, entry.writes, arguments, run, signature)
                found = self._checker.beyond(case, kernel, entry.command, entry.access, entry.who)
                if found is not None:
                    return Looked(found, [], [])
                found, unsteady, real = judged(case, entry.who, entry.access)
                if found is not None:
                    return Looked(found, [], [])
                case.put(real.out)
                why = signature.unsteady if signature is not None else ""
                unsteady = unsteady or bool(why)
                if unsteady:
                    doubtful.append((entry.who, why))
            if unsteady or common(open_, entry.reads):
                open_ = merged([*open_, *entry.writes])
        return Looked(None, doubtful, open_)

    def _last_writer(self, entries: Sequence[Entry], serial: State, wrong: State) -> Finding | None:
        """Name the launch that should have written the differing bytes. No kernel is wrong by
        itself."""
        for key, region in self._regions.items():
            differs = (serial[key] != wrong[key]).nonzero()[0]
            for byte in differs[:1].tolist():
                entry = next(
                    (one for one in reversed(entries) if _has(one.writes, region, byte)),
                    entries[-1],
                )
                kernel = plain_kernel(entry.command)
                arguments = arguments_of(kernel, self._checker.memory) if kernel else []
                spot: Where = where(arguments, region, byte)
                return finding(
                    findings.ORDER, entry.who, spot,
                    f"{entry.who}: {spot.text} comes out otherwise in another legal order of "
                    f"launches {entries[0].who.launch} to {entries[-1].who.launch} than in "
                    "program order: one of them, or a host task, touches what it does not declare",
                )  # fmt: skip
        return None

    # ---- orders --------------------------------------------------------------------------------

    def _placed(self, span: Span) -> Span:
        """Replace the base of a span by its region, so that arrays that used the same memory in
        turn conflict. Bytes by address conflict without this."""
        if span.base in (EVERYTHING, ADDRESS_SPACE):
            return span
        found = self._checker.memory.place(span)
        if found is None:
            return span
        region, start = found
        return span._replace(base=1 + list(self._regions).index(id(region)), start=start)


def _upstream(entries: Sequence[Entry]) -> list[list[int]]:
    """Return the upstream of each entry."""
    hazards = core.native.Hazards()
    return [
        [other - 1 for other in hazards.enter(number, entry.placed.reads, entry.placed.writes)]
        for number, entry in enumerate(entries, 1)
    ]


def _same(one: State, other: State) -> bool:
    return all(bool((one[key] == other[key]).all()) for key in one)


def _has(some: Sequence[Interval], region: Region, byte: int) -> bool:
    return any(one.region is region and one.low <= byte < one.high for one in some)


def lots(random: Random, count: int) -> list[float]:
    """Draw a lot for each launch."""
    return [random.random() + (count if random.random() < HELD_BACK else 0) for _ in range(count)]


def legal(upstream: Sequence[Sequence[int]], lots: Sequence[float]) -> list[int]:
    """Return an order in which each launch comes after its upstream, the lowest lot first."""
    left = [len(some) for some in upstream]
    after: list[list[int]] = [[] for _ in upstream]
    for index, some in enumerate(upstream):
        for other in some:
            after[other].append(index)
    ready: list[tuple[float, int]] = []
    for index, count in enumerate(left):
        if not count:
            heappush(ready, (lots[index], index))
    return list(_drawn(ready, left, after, lots))


def _drawn(
    ready: list[tuple[float, int]],
    left: list[int],
    after: Sequence[Sequence[int]],
    lots: Sequence[float],
) -> Iterator[int]:
    while ready:
        _, index = heappop(ready)
        yield index
        for other in after[index]:
            left[other] -= 1
            if not left[other]:
                heappush(ready, (lots[other], other))
