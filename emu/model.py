"""One run of a trace under a policy: the common part of all policies.

Input: a trace whose upstream is known (`trace.resolved`), a machine. Output: an `Outcome`. A policy
is a subclass. It defines a launch's cost for the program (`cost`), whether there is room for one
more (`room`), and reactions to a new launch (`launched`) and to an end (`ended`). It hands launches
to the device with `begin`.

Invariant: every launch begins once and ends once. A launch that begins before the end of its
upstream is an error of the policy, which each run detects. Times are the model's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from acs_cl.emu.engine import HOST, Engine
from acs_cl.emu.gpu import Gpu
from acs_cl.emu.host import Program
from acs_cl.emu.meters import Meter, Series
from acs_cl.emu.spec import GpuSpec, Machine
from acs_cl.emu.trace import Entry, Trace
from acs_cl.errors import InternalError, UsageError


class Outcome(NamedTuple):
    """A finished run. All of it is simulated."""

    policy: str
    trace: str
    machine: str
    launches: int
    makespan_ns: int
    """From the first call until the program knows that all has ended."""
    busy_ns: int
    """Time with a kernel on the device."""
    kernels_in_flight: float
    """Average while there is one."""
    most_in_flight: int
    occupancy: float
    """Threads in use over all threads, during the whole makespan."""
    achieved_occupancy: float
    """Threads in use while a unit has work: the profilers' `achieved occupancy`."""
    units_busy: float
    """Units with work over all units, during the whole makespan. Useful on a CPU, where a unit has
    one group at a time."""
    window_slots: float
    """Slots in use, on average until the last launch ended. 0: no window."""
    overheads_ns: dict[str, int]
    """Time of the host's threads and the window unit, by activity."""
    occupied: list[tuple[int, float]]
    """Threads in use over time, or units (`GpuSpec.whole`)."""
    window: list[tuple[int, float]]
    """Launches in the window over time. Empty: no window."""
    steps: int


class Model:
    """Base of the policies. With `log`, placements and times of launches are kept."""

    name = ""

    def __init__(self, trace: Trace, machine: Machine, log: bool = False) -> None:
        if trace.edges != "upstream":
            raise UsageError("this trace is ordered by spans: resolve it first")
        self.trace, self.machine = trace, machine
        self.host = machine.host
        self.entries = trace.entries
        self.engine = Engine()
        self.gpu = Gpu(self.engine, self.device(), self._ended, log)
        self._window_series = Series()
        self.window = Meter(self.engine, self._window_series)
        self.ledger: Counter[str] = Counter()
        self.program = Program(
            self.engine,
            trace.entries,
            self.wait_ns(),
            self.ledger,
            self.cost,
            self.room,
            self.launched,
            self.paused,
        )
        self.begun = bytearray(len(trace.entries) + 1)
        self.on_begin: Callable[[int], None] | None = None
        self.on_end: Callable[[int], None] | None = None
        """Called when launches begin and end."""
        self.last_end_ns = 0
        self.end_ns = 0

    # ---- defined by a policy ---------------------------------------------------------------------

    def device(self) -> GpuSpec:
        """Return the device. A policy may change it."""
        return self.machine.gpu

    def wait_ns(self) -> int:
        """Return the time from the end of a launch to the program that waits for it."""
        return self.host.sync_ns

    def cost(self, entry: Entry) -> int:
        """Return the program's time for the call that makes a launch."""
        raise NotImplementedError

    def room(self) -> bool:
        """Tell whether the program may make one more launch."""
        return True

    def launched(self, entry: Entry) -> None:
        """Note that the call has returned."""
        raise NotImplementedError

    def ended(self, number: int) -> None:
        """Note that a launch has ended on the device."""
        raise NotImplementedError

    def paused(self) -> None:
        """Note that the program waits for launches, or has made all."""

    # ---- used by a policy ------------------------------------------------------------------------

    def book(self, name: str, ns: int) -> int:
        """Write time into the ledger; return it."""
        if ns:
            self.ledger[name] += ns
        return ns

    def begin(self, number: int) -> None:
        """Let the device run a launch from now on."""
        entry = self.entries[number - 1]
        if self.begun[number]:
            raise InternalError(f"{self.name} began launch {number} twice")
        self.begun[number] = 1
        ended = self.program.ended
        for other in entry.upstream:
            if not ended[other]:
                raise InternalError(f"{self.name} began launch {number} beside {other}")
        if self.on_begin is not None:
            self.on_begin(number)
        self.gpu.start(entry)

    def begin_in(self, delay_ns: int, number: int) -> None:
        """Call `begin` after a delay."""
        self.engine.after(delay_ns, HOST, self.begin, number)

    def _ended(self, number: int) -> None:
        self.last_end_ns = self.engine.now
        self.program.end(number)
        if self.on_end is not None:
            self.on_end(number)
        self.ended(number)

    # ---- the run ---------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Run from the first launch to the last end."""
        self.program.begin()
        self.engine.run()
        if self.program.unfinished:
            raise InternalError(f"{self.name} left {self.program.unfinished} launches undone")
        self.end_ns = max(self.end_ns, self.last_end_ns + self.wait_ns())
        self.window.add(0)
        gpu, makespan = self.gpu, max(1, self.end_ns)
        flights, threads = gpu.in_flight, self.machine.gpu.threads
        return Outcome(
            policy=self.name,
            trace=self.trace.name,
            machine=self.machine.name,
            launches=len(self.entries),
            makespan_ns=self.end_ns,
            busy_ns=flights.busy_ns,
            kernels_in_flight=flights.total / max(1, flights.busy_ns),
            most_in_flight=flights.most,
            occupancy=gpu.thread_ns / (threads * gpu.spec.units * makespan),
            achieved_occupancy=gpu.thread_ns / (threads * max(1, gpu.active_ns)),
            units_busy=gpu.active_ns / (gpu.spec.units * makespan),
            window_slots=self.window.total / max(1, self.last_end_ns),
            overheads_ns=dict(sorted(self.ledger.items())),
            occupied=gpu.occupied.levels(self.last_end_ns),
            window=self._window_series.levels(self.last_end_ns) if self.window.most else [],
            steps=self.engine.steps,
        )
