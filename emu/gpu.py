"""The device: compute units, the groups on them, the bandwidth they share.

Input: launches that may run (`start`), in the order in which they became ready. Output: calls of
`ended(number)`; how much of the device was used.

Kernels are issued in order and run together. The first in line puts its groups on units with room,
one on each before a second on any. Only when all its groups are placed comes the next one. So a
kernel without room holds back the later ones, as on real parts. Groups that are placed at one time
are one batch and end together. Transfers have an engine of their own and host tasks a thread, each
in order.

Invariants: no unit is ever over one of its limits; every group is placed exactly once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import chain

from acs_cl.emu.bandwidth import Bandwidth
from acs_cl.emu.cost import GUARDS, Costs, Need, packed, unpacked
from acs_cl.emu.engine import END, ISSUE, Engine, Server
from acs_cl.emu.meters import Meter, Series
from acs_cl.emu.spec import GpuSpec
from acs_cl.emu.trace import HOST, KERNEL, Entry

NOTHING = Need(0, 0, 0, 0, 0, 0, 0)

Placement = tuple[int, int, int, int, int]
"""Launch, unit, groups, start, end."""


class _Job:
    """A kernel that was started: groups not placed yet, and groups running."""

    __slots__ = ("left", "need", "number", "running", "started")

    def __init__(self, number: int, need: Need, groups: int) -> None:
        self.number = number
        self.need = need
        self.left = groups
        self.running = 0
        self.started = False


class Batch:
    """Groups of one kernel that began together. `parts`: its own time, and maybe its bytes."""

    __slots__ = ("groups", "job", "parts", "placed", "start_ns")

    def __init__(self, job: _Job, placed: list[tuple[int, int]], groups: int, now: int) -> None:
        self.job = job
        self.placed = placed
        self.groups = groups
        self.start_ns = now
        self.parts = 1


class Gpu:
    """A device in an engine. With `log`, every placement is kept."""

    def __init__(
        self, engine: Engine, spec: GpuSpec, ended: Callable[[int], None], log: bool = False
    ) -> None:
        self.engine, self.spec = engine, spec
        self.costs = Costs(spec)
        self.log: list[Placement] | None = [] if log else None
        self.thread_ns = 0
        self.active_ns = 0
        """Time with at least one group, summed over units."""
        self.in_flight = Meter(engine)
        self.occupied = Series()
        self.on_free: Callable[[], None] | None = None
        """Called when groups have ended."""
        self.on_start: Callable[[int, int], None] | None = None
        """Called for each launch when it first runs: it may have waited for room before."""
        self.closed: set[int] = set()
        """Units that take no groups."""
        self._ended = ended
        self._begin_ns = -(-spec.begin_cycles * 1000 // spec.clock_mhz)
        self._queue: deque[_Job] = deque()
        self._due = False
        self._freed: dict[int, None] | None = None
        """Units that may have room for `_full_for`: all others have none. None: any unit may."""
        self._full_for = NOTHING
        self._turn = 0
        self._empty = GUARDS | packed(spec.groups, spec.threads, spec.registers, spec.local_bytes)
        self._left = [self._empty] * spec.units
        """Free resources of each unit, packed."""
        self._since = [0] * spec.units
        self._by_units = spec.whole[0] == "units"
        self._bandwidth: Bandwidth[Batch] = Bandwidth(engine, spec, self._part)
        self._copies, self._tasks = Server(engine), Server(engine)

    def start(self, entry: Entry) -> None:
        """Note that the launch may run from now on."""
        if entry.kind != KERNEL:
            server = self._tasks if entry.kind == HOST else self._copies
            end = server.serve(entry.total_ns)
            if self.on_start is not None:
                self.on_start(entry.number, end - entry.total_ns)
            self.engine.at(end, END, self._ended, entry.number)
            return
        self.engine.after(self._begin_ns, ISSUE, self._come, entry)

    @property
    def waiting(self) -> int:
        """Return how many groups may run and have no unit yet."""
        return sum(job.left for job in self._queue)

    def close(self, unit: int) -> None:
        """Let an unused unit take no groups from now on."""
        assert self._left[unit] == self._empty, f"groups are on unit {unit}"
        self._left[unit] = GUARDS
        self.closed.add(unit)

    def free_units(self) -> list[int]:
        """Return open units without a group."""
        closed = self.closed
        return [
            unit
            for unit, left in enumerate(self._left)
            if left == self._empty and unit not in closed
        ]

    def open(self) -> None:
        """Let all units take groups."""
        for unit in self.closed:
            self._left[unit] = self._empty
        if self.closed:
            self.closed.clear()
            self._freed = None
            self._look()

    def _come(self, entry: Entry) -> None:
        self._queue.append(_Job(entry.number, self.costs.need(entry), entry.groups))
        self._look()

    def _look(self) -> None:
        """Issue, after all ends of this time."""
        if not self._due:
            self._due = True
            self.engine.at(self.engine.now, ISSUE, self._issue, None)

    def _issue(self, _: None) -> None:
        self._due = False
        queue = self._queue
        while queue:
            job = queue[0]
            if not job.started and self.in_flight.value >= self.spec.kernels:
                return
            placed = self._place(job)
            if placed:
                self._begin(job, placed)
            if job.left:
                self._freed, self._full_for = {}, job.need
                return
            queue.popleft()

    def _place(self, job: _Job) -> list[tuple[int, int]]:
        """Return units and how many groups each takes, as evenly as there is room."""
        units = self._with_room(job.need, job.left)
        if not units:
            return []
        if len(units) == job.left:
            placed = [(unit, 1) for unit in units]
        else:
            rooms = [(unit, self._room(unit, job.need)) for unit in units]
            enough = sum(room for _, room in rooms) > job.left
            placed = _even(rooms, job.left) if enough else rooms
        self._turn = (placed[-1][0] + 1) % self.spec.units
        return placed

    def _with_room(self, need: Need, most: int) -> list[int]:
        """Return units that can take a group, from the end of the last search on."""
        left, one = self._left, need.packed
        found = []
        for unit in self._where(need):
            if (left[unit] - one) & GUARDS == GUARDS:
                found.append(unit)
                if len(found) == most:
                    break
        return found

    def _room(self, unit: int, need: Need) -> int:
        """Return how many groups the unit can take: at least one."""
        left, one = self._left[unit], need.packed
        if (left - 2 * one) & GUARDS != GUARDS:  # on a full device one group ends at a time
            return 1
        pairs = zip(unpacked(left), unpacked(one), strict=True)
        return min(have // use for have, use in pairs if use)

    def _where(self, need: Need) -> Iterable[int]:
        """Return units that may have room. Units without room for a smaller need have none for this
        one."""
        full = self._full_for
        if self._freed is not None:
            if (need.packed | GUARDS) - full.packed & GUARDS == GUARDS:
                return self._freed
            self._freed = None
        return chain(range(self._turn, self.spec.units), range(self._turn))

    def _begin(self, job: _Job, placed: list[tuple[int, int]]) -> None:
        now = self.engine.now
        if not job.started:
            job.started = True
            if self.on_start is not None:
                self.on_start(job.number, now)
            self.in_flight.add(1)
        need, left, empty = job.need, self._left, self._empty
        total = 0
        for unit, count in placed:
            if left[unit] == empty:
                self._since[unit] = now
            left[unit] -= count * need.packed
            total += count
        job.left -= total
        job.running += total
        batch = Batch(job, placed, total, now)
        if need.bytes:
            batch.parts = 2
            self._bandwidth.begin(batch, need.bytes, total)
            self.engine.at(now + need.ns, END, self._part, batch)
        else:
            self.engine.at(now + need.ns, END, self._end, batch)

    def _part(self, batch: Batch) -> None:
        """Note that the batch's time is over, or its bytes are moved: the later of both ends it."""
        batch.parts -= 1
        if not batch.parts:
            self._end(batch)

    def _end(self, batch: Batch) -> None:
        now, job, start = self.engine.now, batch.job, batch.start_ns
        need, left, empty, freed = job.need, self._left, self._empty, self._freed
        for unit, count in batch.placed:
            left[unit] += count * need.packed
            if left[unit] == empty:
                self.active_ns += now - self._since[unit]
            if freed is not None:
                freed[unit] = None
            if self.log is not None:
                self.log.append((job.number, unit, count, start, now))
        threads = batch.groups * need.threads
        self.thread_ns += threads * (now - start)
        self.occupied.add(start, now, batch.groups if self._by_units else threads)
        job.running -= batch.groups
        if not job.left and not job.running:
            self.in_flight.add(-1)
            self._ended(job.number)
        if self.on_free is not None:
            self.on_free()
        if not self._queue or self._due:
            return
        if self.engine.is_due_now(ISSUE):
            self._look()
        else:  # the same without a detour through the heap
            self._issue(None)


def _even(rooms: list[tuple[int, int]], left: int) -> list[tuple[int, int]]:
    """Distribute `left` groups, fewer than there is room for: the same number to each unit with
    room."""
    taken = dict.fromkeys((unit for unit, _ in rooms), 0)
    while left:
        each = max(1, left // len(rooms))
        for unit, room in rooms:
            count = min(each, room - taken[unit], left)
            taken[unit] += count
            left -= count
        rooms = [(unit, room) for unit, room in rooms if taken[unit] < room]
    return [(unit, count) for unit, count in taken.items() if count]
