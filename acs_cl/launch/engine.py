"""The engine: the machinery of one runtime, and the steps of a launch.

Input: commands with their accesses, from any thread of the program. Output: launches on a backend,
in an order that keeps the meaning of program order for every byte. `launch` takes a launch through
number, hazards, poison, window and backend. `ends.retire` takes its end back through backend,
hazards and window, to the launches that became ready.

Invariants (all under `lock`, except that waiting for the device never holds it):
- Numbers are given in the order in which calls take the lock, so each thread's own order is kept.
- A launch that never ran (poisoned, or refused by the driver) stays live until all its upstream has
  ended. Launches that should follow it follow its upstream instead.
- Arrays are never held: commands keep the driver's objects, and `Block.users` guards memory in
  flight.
"""

# Long because: besides the way of a launch, all that the rooms above ask of the machinery is here.

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from threading import get_ident
from time import perf_counter, perf_counter_ns
from typing import Any

import pyopencl as cl

from .. import core
from ..devices import driver
from ..devices.driver import Events
from ..errors import UsageError
from ..handle import Handle
from ..host.threads import Poller, on_host_task
from ..memory.array import Array, Transfers
from ..memory.blocks import Base
from ..memory.views import contiguous_strides
from ..records import Access, Command, DType, HostArray, Protocol, Sizes, Span, interval
from . import bases, waits
from .backend import Backend, Ended
from .books import Books, ForeignEvents, Parts
from .commands import KernelCommand
from .decision import words_for
from .dispatch import dispatch, send_what_there_is
from .ends import pump, retire
from .foreign_events import Patience, open_events
from .observers import Checker, Cutting, Recorder, Together, Unplaced
from .parts import LanePart
from .poisoning import lose, may_be_poisoned, meet_poison, note_overwrites

POLL_EVERY = 32
"""Launches between two polls."""


class OpenBypass(Protocol):
    """Commands that queues gave to the driver in bypass. They become one launch when another
    command comes."""

    takes_more: bool
    """Whether the next commands of the queues may join them."""

    @property
    def passed(self) -> int:
        """Return how many commands there are."""

    def end(self, engine: Engine, by_own: bool) -> None:
        """Make a launch of them. `by_own`: a command of the same queues ends them."""


class Moves(Protocol):
    """Fills, copies and writes that are launches of kernels. None: they have to be made in another
    way."""

    def fill(self, array: Array, element: HostArray) -> Handle | None:
        """Fill an array."""

    def copy(self, target: Array, source: Array, wait_for: Events = None) -> Handle | None:
        """Copy between arrays of one shape that share no bytes."""

    def write(self, array: Array, values: HostArray) -> Handle | None:
        """Write values of the host to an array in one piece. They may change behind the call."""

    def spread(self, target: Array, source: Array, strides: Sizes) -> Handle:
        """Copy from a source that has these strides."""


class Calls(Transfers, Protocol):
    """Functions of higher modules for arrays and kernels, which know only the engine."""

    def collected(self, engine: Engine) -> None:
        """Clean up an engine that is no longer used."""

    def runtime(self, engine: Engine) -> object:
        """Return the runtime that the program holds."""

    def moves(self, engine: Engine) -> Moves:
        """Return what makes fills and copies that are launches of kernels."""

    def launch_many(self, kernel: Any, *how: object) -> Any:
        """Launch a kernel many times."""

    def as_tuned(self, engine: Engine, command: Command, access: Access) -> Command:
        """Cut a launch in the way that was tuned on this device, if the library chooses the cut."""


class Engine(Books):
    """Launches on one device. Arrays, kernels and handles keep it alive."""

    is_several = False
    """Whether there are several devices."""

    def __init__(self, parts: Parts, calls: Calls) -> None:
        super().__init__(parts)
        self.calls = calls
        self.bypasses: list[OpenBypass] = []
        self.now_us: Callable[[], float] = lambda: perf_counter() * 1e6
        """Tells the time of replays, and of steps on several devices."""
        self.waited_us = 0.0
        """When the last wait of the program ended."""
        self._waited_behind = 0
        """The newest launch at that time. 0: not all had ended."""
        self.guarded: dict[tuple[str, tuple[str, ...]], cl.Program] = {}
        """Built variants that decide on the device, by source and options."""
        self._seen = 0
        """The newest launch when the progress thread asked last."""
        self.progress = Poller(self.pump, self.program_polls, self.lock)

    def check(self, checker: Checker) -> None:
        """Have all launches checked, from the first one on."""
        self.checker = checker

    def open(self) -> None:
        """Take calls from now on. The core makes launches by itself, except in unusual cases."""
        table = self.table
        table.join(
            self.hazards, self.lock, self.backlog, self.window, self.ready_first,
            self.backend.in_order,
        )  # fmt: skip
        self.backend.join(table)
        if self.store.is_seen and not self.is_several and self.backend.core_queues is not None:
            self.backend.core_queues.see(self.store.reserved)
        if self.tracer is not None:
            table.log()
        table.usable = (
            self.options.plans
            and self.plan.backend != "emulated"
            and self.tracer is None
            and self.checker is None
        )
        table.predict(table.usable and self.options.predict)
        self.state, self.is_closed = "", False

    def __del__(self) -> None:
        if not getattr(self, "is_closed", True):
            self.calls.collected(self)

    def __repr__(self) -> str:
        closed = ", closed" if self.state == "closed" else ""
        return f"<acs_cl.Runtime {self.plan.backend} on {self.device.name.strip()}{closed}>"

    # ---- the way of a launch -------------------------------------------------------------------

    def launch(
        self,
        command: Command,
        access: Access,
        wait_for: Sequence[cl.Event] | None = None,
        result: object = None,
        footprint: core.native.Footprint | None = None,
        after: Sequence[int] = (),
    ) -> Handle:
        """Launch a command. `access`: the bytes it touches. `wait_for`: foreign events before it.
        `result`: what its handle returns. `footprint`: its access, prepared. `after`: launches that
        it follows whatever their bytes."""
        if self.recorders and (recorder := self.recorders.get(get_ident())) is not None:
            return recorder.take(command, access, wait_for)
        if self.checker is not None and self.checker.takes(access):
            return self.checker.launch(command, access, wait_for, result, after)
        with self.lock:
            if self.state:
                self.check_open()
            if self.bypasses:
                self.end_bypasses()
            started_ns = perf_counter_ns() if self.tracer is not None else 0
            self.make_room()
            foreign = open_events(wait_for) if wait_for else None
            return self.enter(command, access, foreign, result, footprint, after, started_ns)

    def launch_parts(
        self, parts: Sequence[LanePart], access: Access, wait_for: Sequence[cl.Event] | None = None
    ) -> list[int] | None:
        """Launch the parts of a launch and return their numbers. `access`: of the whole launch.
        None: launch it whole, because with poisoned bytes it has to fail as a whole."""
        with self.lock:
            if self.state:
                self.check_open()
            if self.bypasses:
                self.end_bypasses()
            self.make_room()
            if self.may_be_poisoned(access):
                return None
            numbers: list[int] = []
            for command, touched, *_ in parts:
                if self.tracer is not None and numbers:
                    self.tracer.launches_more()
                started_ns = perf_counter_ns() if self.tracer is not None else 0
                foreign = open_events(wait_for) if wait_for else None
                handle = self.enter(
                    command, touched, foreign, started_ns=started_ns, continues=bool(numbers)
                )
                numbers.append(handle.number)
            return numbers

    @property
    def uncut(self) -> str:
        """Say why lanes have no parts of launches. Empty: they have."""
        if self.is_several:
            return "only one device has them"
        if self.checker is not None:
            return "checks look at whole launches"
        if self.backend.in_order:
            return f"backend {self.plan.backend!r} runs one launch after another"
        return ""

    def make_room(self) -> None:
        """Wait until there is room for one more launch. Called under the lock."""
        if self.table.has_returned:
            bases.take_back(self)
        if len(self.table) >= self.backlog:
            waits.wait_for_half(self)
            self.check_open()

    def enter(
        self,
        command: Command,
        access: Access,
        foreign: ForeignEvents | None = None,
        result: object = None,
        footprint: core.native.Footprint | None = None,
        after: Sequence[int] = (),
        started_ns: int = 0,
        waits_on_host: bool = False,
        continues: bool = False,
    ) -> Handle:
        """Give a launch its number, find its upstream, and hand it over. Called under the lock.
        `waits_on_host`: it is held until all its upstream has ended. `continues`: it continues
        earlier launches of the same call, so a refusal of the driver is its failure."""
        table, tracer, on_host = self.table, self.tracer, command.on_host
        number, is_ready = table.take(
            command, access, footprint, after, blocks_on_host=on_host, has_foreign=bool(foreign),
            waits_on_host=waits_on_host or on_host or self.ready_first,
            counted=getattr(command, "is_counted", False),
        )  # fmt: skip
        entered_ns = tracer.entered(number, started_ns) if tracer is not None else 0
        if foreign:
            self.foreign[number] = foreign
        try:
            self._hand_over(number, is_ready, continues)
        except BaseException:
            table.withdraw(number)
            raise
        if tracer is not None:
            tracer.launched(number, started_ns, entered_ns)
        return Handle(self, number, command.name, access, result)

    def _hand_over(self, number: int, is_ready: bool, continues: bool) -> None:
        """Take the newest launch on from the table. `is_ready`: this has to dispatch it."""
        if self.failures.any:
            meet_poison(self, self.table.launch(number))
        if is_ready or self.table.has_ready:
            dispatch(self, number if is_ready else 0, own=0 if continues else number)
        # only now: a launch that the driver refused overwrites nothing
        if self.failures.any and not self.failures.knows(number):
            note_overwrites(self, self.table.launch(number))
        self._after_newest(number)

    def _after_newest(self, number: int) -> None:
        """Poll, send or start the thread that polls, if that is due after the newest launch."""
        table = self.table
        is_held = table.state(number) in ("held", "pending")
        # foreign events are checked seldom, since each launch may have many
        if number % POLL_EVERY == 0 or (is_held and not self.foreign):
            pump(self)
        if table.outside:
            send_what_there_is(self)
        if (is_held and table.held) or self.backend.unsent:
            self.progress.start()

    def end_bypasses(self, own: OpenBypass | None = None) -> None:
        """Make launches of the commands in bypass. Called under the lock. `own`: of the queues of
        which one has a command that ends them."""
        while self.bypasses:
            self.bypasses[0].end(self, by_own=self.bypasses[0] is own)
            self._waited_behind = 0  # nobody heard of waits meanwhile

    # ---- the way back --------------------------------------------------------------------------

    def poll(self) -> None:
        """Poll, and do what is due. The core asks for it now and then, and where an epoch is full
        or nobody attends to one whose launches were only counted."""
        with self.lock:
            if self.table.wants_attention:  # launches were only counted, and stay so
                self.backend.attend()
                self.progress.start()
            elif not self.state:
                self.backend.catch_up()
                pump(self)
                if self.backend.unsent:
                    self.progress.start()

    def hear(self, ended: Ended) -> None:
        """Take launches that the core saw end."""
        with self.lock:
            if retire(self, self.backend.from_queues(ended)):
                self.lock.notify()

    def take_over(self, number: int, continues: bool = False) -> None:
        """Go on with a launch of the core's that is in the table because no lane took it.
        `continues`: as for `enter`."""
        with self.lock:
            self._hand_over(number, is_ready=False, continues=continues)

    def launch_series(self, series: core.native.Series, at: int, many: int) -> list[int]:
        """Make `many` launches of a series on lanes, from the one at `at` on, as far as nothing is
        unusual. Return their numbers."""
        numbers = list[int]()
        queues = self.backend.core_queues
        if queues is None or self.tracer is not None or self.checker is not None:
            return numbers
        with self.lock:
            while len(numbers) < many:
                self.make_room()
                first, most = self.number + 1, min(POLL_EVERY, many - len(numbers))
                made = series.launch(at + len(numbers), most, queues)
                if not made:
                    if queues.words and not queues.free_words and self.has_word():
                        continue  # all words were in use
                    break
                numbers += range(first, abs(made) + 1)
                self.follow_up(made, many=abs(made) + 1 - first)
        return numbers

    def has_word(self) -> bool:
        """Tell whether the core has a word for a wrong count. If all are in use, make more."""
        queues = self.backend.core_queues
        return queues is not None and words_for(queues, self.context, self.device)

    def replay_segment(
        self, command: Command, access: Access, footprint: core.native.Footprint
    ) -> int:
        """Have the core replay a segment of a graph, if nothing is unusual. Return its launch, or
        0. `access`: the bytes that it touches. `footprint`: the same, prepared."""
        with self.lock:
            self.make_room()
            made = self.backend.replay(command, access, footprint)
            return self.follow_up(made) if made else 0

    def follow_up(self, made: int, continues: bool = False, many: int = 1) -> int:
        """Go on with a launch that the core has made, the last of `many`, and return its number. It
        made `-number`: no lane took it, and it is in the table. `continues`: it continues earlier
        launches of its call."""
        if made < 0:
            self.take_over(-made, continues)
        elif made % POLL_EVERY < many:
            self.pump()
        return abs(made)

    def pump(self) -> tuple[bool, bool]:
        """Move along what can move. Return whether it has to be called again, and whether anything
        moved. Called under the lock."""
        return pump(self)

    def program_polls(self) -> bool:
        """Tell whether launches came since the last call, and only an open epoch needs a poll. Then
        the program polls by itself. Called without the lock."""
        before, self._seen = self._seen, self.table.number
        return before != self._seen and not (self.table.held or self.foreign)

    # ---- waiting -------------------------------------------------------------------------------

    def sync(self) -> None:
        """Let checks look back, because the program waits or learns what has ended."""
        if self.checker is not None:
            self.checker.sync()

    @property
    def rests(self) -> bool:
        """Tell whether the program waited for all launches before, and the backend heard of it."""
        return not len(self.table) and self._waited_behind == self.number and not self.state

    def waited(self) -> None:
        """Note when the program goes on, since steps and replays are timed without its pauses.
        Another wait in a pause does not end it."""
        if self._waited_behind != self.number and not self.state:
            least = self.backend.least_step
            if least and self.number - self._waited_behind >= least:
                self._end_step(least)
            else:
                self._goes_on()

    def has_read(self) -> None:
        """Note the same behind a read of the core's, or another command of a queue that the program
        waited for. One alone is no step, and may take 2 us."""
        number = self.table.number
        if self._waited_behind + 1 == number:
            self._waited_behind = number
        else:
            self.waited()

    def _goes_on(self) -> None:
        """Note that the program goes on now."""
        self.waited_us = self.now_us()
        self._waited_behind = 0 if len(self.table) else self.number

    def _end_step(self, least: int) -> None:
        """Tell the backend of a step, if nothing was in flight when it began, nor is now. Another
        thread may have ended it meanwhile."""
        with self.lock:
            if len(self.table):
                self.pump()
            behind = self._waited_behind
            launches = self.number - behind
            if behind and launches >= least and not len(self.table):
                self.backend.stepped(self.now_us() - self.waited_us, launches)
            self._goes_on()

    def wait(self, number: int, name: str) -> None:
        """Block until a launch has ended. Raise if it failed or never could run. A host task may
        not call it even after the end: the speed of the device must not decide. After `close` it
        tells the outcome as before."""
        waits.refuse_on_host_task("waiting for a launch")
        self.sync()
        waits.wait(self, number)
        self.waited()
        if self.failures.any:
            self.failures.raise_for_launch(number, f"launch {number} ({name})")

    def wait_quietly(self, number: int) -> None:
        """Wait without raising the failure of the launch."""
        if not on_host_task():
            self.sync()
            waits.wait(self, number)

    def wait_for_all(self, numbers: Sequence[int]) -> None:
        """Wait for launches without raising their failures. The last one is waited for first, since
        the others have mostly ended then."""
        if not on_host_task():
            self.sync()
            for number in reversed(numbers):
                if number in self.table:
                    waits.wait(self, number)

    def was_interrupted(self, error: BaseException) -> None:
        """Add to an exception of a signal what the core waited for. The core calls it."""
        if isinstance(error, KeyboardInterrupt):
            with self.lock:
                waits.tell_interrupted(self, error)

    def is_done(self, number: int) -> bool:
        """Tell whether a launch has ended. Polls, as programs that ask repeatedly expect."""
        self.sync()
        return waits.is_done(self, number)

    def event(self, number: int) -> cl.Event:
        """Return an event that completes with a launch."""
        self.sync()
        return waits.event(self, number)

    def drain(
        self,
        gives_up: bool = False,
        patience: Patience | None = None,
        until: float | None = None,
    ) -> bool:
        """Wait until everything launched or given to the driver so far has ended: `waits.drain`."""
        is_plain = until is None and not (gives_up or self.bypasses or self.leave_measure)
        # mostly few launches are in flight, and the core alone can wait for the newest of them
        if is_plain and (self.rests or waits.has_waited_for_newest(self)):
            self.waited()
            return True
        with self.lock:
            self.end_bypasses()
            has_ended = waits.drain(self, gives_up, patience, until)
            if has_ended and self.leave_measure is not None and not len(self.table):
                leave, self.leave_measure = self.leave_measure, None
                leave()
            self.waited()
            return has_ended

    def come_to_rest(self) -> None:
        """Wait until nothing is in flight. Called under the lock, and kept: no other thread
        launches before the caller releases it."""
        while newest := self.table.newest(self.number):
            event = self.backend.to_wait_for(newest)
            if event is None:  # others have to move it along, who take the lock
                self.drain()
                continue
            self.backend.flush()
            driver.wait_for_event(event)
            retire(self, self.backend.poll_up_to(self.number))

    # ---- calls of the program --------------------------------------------------------------------

    def called(self) -> None:
        """Note that the program made a call that becomes a launch."""
        if self.tracer is not None:
            self.tracer.called()

    def recorder(self) -> Recorder | None:
        """Return what captures the calls of this thread, for a graph."""
        return self.recorders.get(get_ident()) if self.recorders else None

    def refuse_in_recording(self, what: str) -> None:
        """Raise if this thread records: nothing of a recording has run."""
        if self.recorders and get_ident() in self.recorders:
            raise UsageError(
                f"{what} inside a recording: nothing of it has run; do it after a replay"
            )

    def cutter(self, way: int) -> Any:
        """Return the backend's cutter of graphs. None with checks, which need each launch. `way`:
        as for the backend."""
        return None if self.checker is not None else self.backend.cutter(way)

    def retime(self, on: bool, kept: Any = None) -> Any:
        """Use queues that keep times, or those from before. Return what puts these back. Called
        under the lock, with nothing in flight."""
        backend = self.backend
        if not on:
            self.table.usable, before = kept
            if isinstance(before, Backend):
                backend.close()
                self.backend = before
            elif before is not None:
                backend.requeue(*before)
            return None
        usable, self.table.usable = self.table.usable, False
        if backend.profiling or not backend.may_retime:
            return usable, None
        fresh = self.timed_queues()
        fresh.join(self.table)
        before = backend.requeue(fresh)
        if before is None:
            before, self.backend = backend, fresh
        return usable, before

    def gather_runs(self) -> None:
        """Give the timeline the runs of groups of the scheduler, if no epoch is in flight."""
        with self.lock:
            if self.tracer is not None and (found := self.backend.noted()) is not None:
                self.tracer.noted(found)

    # ---- arrays ----------------------------------------------------------------------------------

    def runtime(self) -> Any:
        """Return the runtime that the program holds."""
        return self.calls.runtime(self)

    def moves(self) -> Moves:
        """Return what makes fills and copies that are launches of kernels."""
        return self.calls.moves(self)

    def new_array(self, shape: tuple[int, ...], dtype: DType) -> Array:
        """Make an array with undefined contents."""
        nbytes = dtype.itemsize
        for length in shape:
            nbytes *= length
        base = self.new_base(nbytes) if nbytes else None
        if self.checker is not None and base is not None:
            self.checker.allocated(base, dtype)
        return Array(self, base, 0, shape, contiguous_strides(shape, dtype.itemsize), dtype)

    def new_base(self, nbytes: int) -> Base:
        """Allocate memory. If none is left, wait for everything in flight, and try again."""
        for attempt in range(2):
            with self.lock:
                base = bases.allocate(self, nbytes)
                if base is not None:
                    if (recorder := self.recorder()) is not None:
                        recorder.keep(base)
                    return base
            if attempt == 0 and not on_host_task():
                self.drain(patience=Patience(f"an allocation of {nbytes:,} bytes"))
                with self.lock:
                    self.ahead.clear()
                    bases.take_back(self)
                    self.store.release_unused(self.hazards.is_live)
        raise bases.none_left(self, nbytes)

    def is_used(self, base: int) -> bool:
        """Tell whether launches in flight use a base."""
        return self.hazards.is_used(base)

    def raise_for_bytes(self, spans: Sequence[Span], what: str) -> None:
        """Raise if bytes are poisoned."""
        with self.lock:
            self.failures.raise_for_bytes(spans, what)

    def may_be_poisoned(self, access: Access) -> bool:
        """Tell whether any of these bytes are poisoned, or may be by a launch that has not run
        yet."""
        return may_be_poisoned(self, access)

    def lose(self, access: Access) -> None:
        """Lose all that is written, since what is read is poisoned and nobody knows it."""
        lose(self, access)

    def launch_kernel(
        self,
        command: KernelCommand,
        access: Access,
        cutting: Cutting,
        wait_for: Sequence[cl.Event] | None,
    ) -> Handle:
        """Launch a kernel, on several devices in parts if that pays."""
        return self.launch(command, access, wait_for)

    def placed(
        self, launches: Sequence[Unplaced], borders: Container[int], replays: int
    ) -> Sequence[Together | int] | None:
        """Place the launches of a graph on several devices, after `replays` replays. Return placed
        runs, and the turns of single launches. None: not yet, or never."""
        return None

    def at_home(self, command: Command) -> Command:
        """Return the command for the first device, where checks look at memory."""
        return command

    def taken_home(self, command: Command, access: Access) -> Command:
        """Return the command for whoever enqueues it on the first device. What it needs is there,
        or launches in flight copy it."""
        return command

    def about_devices(self) -> list[dict[str, object]]:
        """Report what each of several devices has done."""
        return []

    def tell_address(self, array: Array) -> None:
        """Note that the program has the address of an array, and may use it unseen."""
        base = array.base
        if base is not None:
            with self.lock:
                whole = interval(base.number, 0, base.nbytes)
                self.failures.poison.addressed[base.number] = whole
        if self.checker is not None:
            self.checker.data_taken(array)
