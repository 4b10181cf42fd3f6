"""A device that does not exist, as a backend: the emulator decides when a launch begins and ends,
and in that order the launches really run, one after another, on the device that there is.

In: launches, and `Emulate` (which machine, which policy, how long kernels take). Out: their
completions, on the model's clock. The program's own time between launches counts as nothing; while
it waits for a launch the model goes on to the end of that.

Durations are declared (nanoseconds of a group, by kernel), or come from a timeline that was
measured before, or are guessed; `about` says how many were.

Invariants:
- What runs first on the real queue began first in the model, so that an order the modelled hardware
  must not choose gives wrong results for real.
- A launch is reported as ended when the model has ended it, and not before the program has waited
  for it, polled for it twice, or has made launches whose calls took until then. When it is reported
  after that depends on the real queue; the model's times do not.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import pyopencl as cl

from .. import core
from ..devices.driver import STATUS, status
from ..emu.live import Live
from ..emu.machines import MACHINES
from ..emu.spec import Machine
from ..emu.trace import KERNEL, Entry
from ..errors import DeviceError
from ..launch.backend import Backend, End, Ended
from ..records import Launch, Report
from .emulate import GROUP, Emulate
from .queues import open_queues

GUESS_NS = 5_000
"""Of a group of a kernel that nobody has said anything about: of the order of the paper's."""

BYTES_PER_NS = 12
"""Of a transfer: PCIe 3.0 with 16 lanes, as the paper's host has it, reaches some 12 GB/s."""
TRANSFER_NS = 1_000

REFUSED = -9002
"""Status of a launch that the real driver refused when its turn came."""

RUNNING = int(cl.command_execution_status.RUNNING)


class _Profile(NamedTuple):
    start: int
    end: int


class ModelEvent:
    """What stands for a launch: as much of a `pyopencl.Event` as a runtime looks at, on the model's
    clock."""

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
        """When it began and ended, in the model."""
        return _Profile(self.start_ns, self.end_ns)

    def get_info(self, what: object) -> int:
        """Its status."""
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
        self.guessed = 0
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
        """Tell the model."""
        with self._lock:
            place = len(self._live.entries) + 1
            places = self._places
            upstream = sorted(places[number] for number in launch.upstream if number in places)
            event = ModelEvent(self, launch.number)
            places[launch.number] = place
            self._launches[place] = launch, event
            self._events[launch.number] = event
            self._live.add(self._entry(place, launch, tuple(upstream)))
            self._used[0] += 1
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
        entry = Entry(
            place, command.name, KERNEL, upstream, groups=groups, items=items, segments=segments
        )
        total_ns = self.settings.measured.get((command.name, groups, items))
        if total_ns is not None:
            return entry._replace(total_ns=total_ns)
        declared = self.settings.durations.get(command.name)
        self.guessed += declared is None
        return entry._replace(group_ns=declared or GUESS_NS)

    # ---- the model -------------------------------------------------------------------------------

    def _began(self, place: int) -> None:
        """In the model a launch has begun: so it does on the queue."""
        launch, event = self._launches[place]
        self._is_flushed = False
        try:
            event.real = launch.command.enqueue(self.queues[0], None)
        except Exception as error:  # the launch's own failure, whatever it is
            self._errors[launch.number] = error

    def _runs(self, place: int, time_ns: int) -> None:
        self._launches[place][1].start_ns = time_ns

    def _has_ended(self, place: int) -> None:
        event = self._launches[place][1]
        event.is_over = True
        event.end_ns = self._live.now
        self._over.append(place)

    def advance(self, number: int) -> None:
        """On to the end of a launch in the model."""
        with self._lock:
            place = self._places.get(number)
            if place is not None:
                self._live.wait(place)

    def to_wait_for(self, number: int) -> cl.Event | None:
        """The real event of a launch that the model has gone on to the end of; None where that was
        refused."""
        self.advance(number)
        event = self._events.get(number)
        if not self._is_flushed:
            self.queues[0].flush()
            self._is_flushed = True
        return None if event is None else event.real

    def oldest(self) -> cl.Event | None:
        """The same of the oldest launch."""
        number = next(iter(self._events), None)
        return None if number is None else self.to_wait_for(number)

    def status(self, event: ModelEvent) -> int:
        """Of a launch: what it came to for real, once it is over in the model."""
        with self._lock:
            place = self._places.get(event.number)
            if place is not None and event.is_over:
                self._settle(place)
            return event.status

    def _settle(self, place: int) -> bool:
        """What a launch that is over in the model came to for real; whether it has come to that."""
        launch, event = self._launches[place]
        if event.status > 0:
            real = None if launch.number in self._errors else event.real
            event.status = REFUSED if real is None else status(real)
        return event.status <= 0

    # ---- out -------------------------------------------------------------------------------------

    def event(self, number: int) -> Any:
        """The model's event of a launch in flight, or None."""
        return self._events.get(number)

    @property
    def in_flight(self) -> int:
        """Launches submitted and not yet reported."""
        return len(self._events)

    def poll(self, most: int = 64) -> Ended:
        """What ended while the program made its launches; if it has made none since the last look,
        it waits for something: on to the next end."""
        with self._lock:
            if self._is_news:
                self._live.catch_up()
            elif not self._over:
                self._live.to_next_end()
            self._is_news = False
            return self._reported()

    def poll_up_to(self, number: int) -> Ended:
        """All that has ended."""
        with self._lock:
            return self._reported()

    def _reported(self) -> Ended:
        ended: Ended = []
        behind: list[int] = []
        for place in self._over:
            # in the order of the model's ends: nothing before what is upstream of it
            if behind or not self._settle(place):
                behind.append(place)
                continue
            launch, event = self._launches.pop(place)
            del self._places[launch.number], self._events[launch.number]
            ended.append(End(launch.number, event.status, event, 0))
        self._over = behind
        if behind and not self._is_flushed:  # some drivers begin nothing before they are told
            self.queues[0].flush()
            self._is_flushed = True
        ended.sort(key=lambda one: one.number)
        return ended

    def error(self, number: int, status: int) -> BaseException | None:
        """What the driver said, or the device."""
        found = self._errors.pop(number, None)
        return found if found is not None else super().error(number, status)

    def event_for_others(self, number: int) -> cl.Event | None:
        """The real event: the model goes on to the end of the launch."""
        event = self._events.get(number)
        if event is None:
            return None
        self.advance(number)
        return event.real

    def flush(self) -> None:
        """The modelled device needs no telling."""

    def wait_all(self) -> None:
        """On to the end of everything."""
        with self._lock:
            for place in list(self._launches):
                self._live.wait(place)
        super().wait_all()

    def about(self) -> Report:
        """The modelled machine, and what is simulated of the run so far."""
        with self._lock:
            return {
                "simulated": True,
                "machine": self.machine.name,
                "policy": self._live.name,
                "model_us": self._live.now / 1e3,
                "guessed": self.guessed,
                "host_us": {name: ns / 1e3 for name, ns in sorted(self._live.model.ledger.items())},
            }

    def where(self, number: int) -> str:
        """Simulated."""
        return f"simulated on {self.machine.name}, {self._live.name}; "
