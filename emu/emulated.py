"""A backend of a device that does not exist: the emulator decides when each launch begins and ends.

In the order of the model, launches really run, one after another, on the real device.

Input: launches, and `Emulate` (machine, policy, durations of kernels). Output: their completions,
on the model's clock. The program's own time between launches counts as nothing. While it waits for
a launch, the model goes on to the end of that launch.

Durations are declared (nanoseconds of a group, by kernel), or come from an earlier timeline, or are
guessed; `about` says how many were guessed. A program chooses its groups for the real device. One
that fits no unit of the modelled device counts as several that do; `about` says for how many
launches.

Invariants:
- A launch that runs first on the real queue began first in the model. So an order that the modelled
  hardware must not choose gives wrong results for real.
- A launch is reported as ended when the model has ended it. It is not reported before the program
  has waited for it, polled for it twice, or made launches whose calls took until then. The time of
  the report depends on the real queue; the model's times do not.
"""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any, NamedTuple

import pyopencl as cl

from acs_cl import core
from acs_cl.backends.queues import open_queues
from acs_cl.devices.driver import STATUS, status
from acs_cl.emu.emulate import GROUP, Emulate
from acs_cl.emu.live import Live
from acs_cl.emu.machines import MACHINES
from acs_cl.emu.spec import Machine
from acs_cl.emu.trace import KERNEL, Entry
from acs_cl.errors import DeviceError
from acs_cl.launch.backend import Backend, End, Ended, LaneCounts
from acs_cl.records import Launch, Report

GUESS_NS = 5_000
"""Time of a group of a kernel about which nothing is said, of the order of the paper's."""

BYTES_PER_NS = 12
"""Rate of a transfer: PCIe 3.0 with 16 lanes, as the paper's host has it, reaches some 12 GB/s."""
TRANSFER_NS = 1_000

REFUSED = -9002
"""Status of a launch that the real driver refused."""

RUNNING = int(cl.command_execution_status.RUNNING)


class _Profile(NamedTuple):
    start: int
    end: int


class ModelEvent:
    """Stands for a launch: what a runtime uses of `pyopencl.Event`, on the model's clock."""

    clock = "model"

    def __init__(self, backend: Emulated, number: int) -> None:
        self._backend = backend
        self.number = number
        self.real: cl.Event | None = None
        self.is_over = False
        """In the model."""
        self.status = RUNNING
        self.start_ns = self.end_ns = 0

    @property
    def profile(self) -> _Profile:
        """Return when it began and ended, in the model."""
        return _Profile(self.start_ns, self.end_ns)

    def get_info(self, what: object) -> int:
        """Return its status."""
        if what != STATUS:
            raise DeviceError(f"an emulated launch has a status, and no {what}")
        return self._backend.status(self)


class Emulated(Backend):
    """One modelled device, and a real in-order queue."""

    name = "emulated"
    may_retime = False  # its times are the model's

    def __init__(self, context: cl.Context, device: cl.Device, settings: Emulate) -> None:
        super().__init__(open_queues(context, device, 1, False), False)
        self._events: dict[int, ModelEvent] = {}
        self.settings = settings
        self.machine: Machine = MACHINES[settings.machine]
        self.guessed = self.divided = 0
        self._live = Live(settings.policy, self.machine, self._began, self._has_ended)
        self._live.model.gpu.on_start = self._runs
        self._lock = core.native.Lock()
        """Of the model: events are waited for without the runtime's lock."""
        self._places: dict[int, int] = {}
        """{launch: its number in the model}."""
        self._launches: dict[int, tuple[Launch, ModelEvent]] = {}
        """{number in the model: the launch, until it is reported}."""
        self._over: list[int] = []
        """Numbers in the model, ended and not reported."""
        self._errors: dict[int, BaseException] = {}
        self._is_news = False
        self._is_flushed = True

    # ---- in --------------------------------------------------------------------------------------

    def submit(self, launch: Launch, behind: list[cl.Event] | None = None) -> None:
        """Add a launch to the model."""
        with self._lock:
            place = len(self._live.entries) + 1
            places = self._places
            upstream = sorted(places[number] for number in launch.upstream if number in places)
            event = ModelEvent(self, launch.number)
            places[launch.number] = place
            self._launches[place] = launch, event
            self._events[launch.number] = event
            self._live.add(self._entry(place, launch, tuple(upstream)))
            self._is_news = True

    def _entry(self, place: int, launch: Launch, upstream: tuple[int, ...]) -> Entry:
        command, access = launch.command, launch.access
        segments = max(1, len(access.reads) + len(access.writes))
        global_size = getattr(command, "global_size", None)
        if global_size is None:
            nbytes = max((span.nbytes for span in (*access.reads, *access.writes)), default=0)
            ns = TRANSFER_NS + nbytes // BYTES_PER_NS
            kind = command.name if command.name in ("copy", "fill", "read", "write") else "copy"
            return Entry(place, command.name, kind, upstream, segments=segments, total_ns=ns)
        local = getattr(command, "local_size", None)
        items = prod(local) if local else GROUP
        groups = max(1, -(-prod(global_size) // items))
        total_ns = self.settings.measured.get((command.name, groups, items))
        pieces = -(-items // self.machine.gpu.threads)
        self.divided += pieces > 1
        groups, items = groups * pieces, -(-items // pieces)
        entry = Entry(
            place, command.name, KERNEL, upstream, groups=groups, items=items, segments=segments
        )
        if total_ns is not None:
            return entry._replace(total_ns=total_ns)
        declared = self.settings.durations.get(command.name)
        self.guessed += declared is None
        return entry._replace(group_ns=declared or GUESS_NS)

    # ---- the model -------------------------------------------------------------------------------

    def _began(self, place: int) -> None:
        """Enqueue a launch that has begun in the model."""
        launch, event = self._launches[place]
        self._is_flushed = False
        try:
            event.real = launch.command.enqueue(self.queues[0], None)
        except Exception as error:  # any error is the launch's own failure
            self._errors[launch.number] = error

    def _runs(self, place: int, time_ns: int) -> None:
        self._launches[place][1].start_ns = time_ns

    def _has_ended(self, place: int) -> None:
        event = self._launches[place][1]
        event.is_over = True
        event.end_ns = self._live.now
        self._over.append(place)

    def advance(self, number: int) -> None:
        """Move the model on to the end of a launch."""
        with self._lock:
            place = self._places.get(number)
            if place is not None:
                self._live.wait(place)

    def to_wait_for(self, number: int) -> cl.Event | None:
        """Move the model to the end of a launch, and return its real event. None: it was
        refused."""
        self.advance(number)
        event = self._events.get(number)
        if not self._is_flushed:
            self.queues[0].flush()
            self._is_flushed = True
        return None if event is None else event.real

    def oldest(self) -> cl.Event | None:
        """Do that for the oldest launch."""
        number = next(iter(self._events), None)
        return None if number is None else self.to_wait_for(number)

    def status(self, event: ModelEvent) -> int:
        """Return the real status of a launch, once it is over in the model."""
        with self._lock:
            place = self._places.get(event.number)
            if place is not None and event.is_over:
                self._settle(place)
            return event.status

    def _settle(self, place: int) -> bool:
        """Note the real status of a launch that the model ended. Return whether it really ended."""
        launch, event = self._launches[place]
        if event.status > 0:
            real = None if launch.number in self._errors else event.real
            event.status = REFUSED if real is None else status(real)
        return event.status <= 0

    # ---- out -------------------------------------------------------------------------------------

    def event(self, number: int) -> Any:
        """Return the model's event of a launch in flight, or None."""
        return self._events.get(number)

    @property
    def in_flight(self) -> int:
        """Return how many launches were submitted and not yet reported."""
        return len(self._events)

    def poll(self, most: int = 64) -> Ended:
        """Return launches that ended while the program made its launches. If it has made none since
        the last poll, it waits for something: the model moves on to the next end."""
        with self._lock:
            if self._is_news:
                self._live.catch_up()
            elif not self._over:
                self._live.to_next_end()
            self._is_news = False
            return self._reported()

    def poll_up_to(self, number: int) -> Ended:
        """Return everything that has ended."""
        with self._lock:
            return self._reported()

    def _reported(self) -> Ended:
        ended: Ended = []
        behind: list[int] = []
        for place in self._over:
            # in the order of the model's ends, so nothing comes before its upstream
            if behind or not self._settle(place):
                behind.append(place)
                continue
            launch, event = self._launches.pop(place)
            del self._places[launch.number], self._events[launch.number]
            ended.append(End(launch.number, event.status, event, 0))
        self._over = behind
        if behind and not self._is_flushed:  # some drivers begin nothing before a flush
            self.queues[0].flush()
            self._is_flushed = True
        ended.sort(key=lambda one: one.number)
        return ended

    def error(self, number: int, status: int) -> BaseException | None:
        """Return the error of the driver, or of the device."""
        found = self._errors.pop(number, None)
        return found if found is not None else super().error(number, status)

    def event_for_others(self, number: int) -> cl.Event | None:
        """Return the real event. The model moves on to the end of the launch."""
        event = self._events.get(number)
        if event is None:
            return None
        self.advance(number)
        return event.real

    def lane_counts(self) -> LaneCounts:
        """Return how many launches its one queue has had."""
        return LaneCounts(1, +Counter({0: len(self._live.entries)}))

    def flush(self) -> None:
        """Do nothing: the modelled device needs no flush."""

    def wait_all(self) -> None:
        """Move on to the end of everything."""
        with self._lock:
            for place in list(self._launches):
                self._live.wait(place)
        super().wait_all()

    def about(self) -> Report:
        """Report the modelled machine, and the simulated run so far."""
        with self._lock:
            return {
                "simulated": True,
                "machine": self.machine.name,
                "policy": self._live.name,
                "model_us": self._live.now / 1e3,
                "guessed": self.guessed,
                "divided": self.divided,
                "host_us": {name: ns / 1e3 for name, ns in sorted(self._live.model.ledger.items())},
            }

    def where(self, number: int) -> str:
        """Say that it is simulated."""
        return f"simulated on {self.machine.name}, {self._live.name}; "
