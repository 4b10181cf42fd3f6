"""Queues: a subclass of PyOpenCL's queue, for programs that are not to be changed.

Input: PyOpenCL's commands on an `acs.Queue` (`patch` intercepts them, `commands` knows their
accesses). Output: launches of `queue.runtime` (`runtimes` chooses and ends it), and events.

Invariants, which are all that a program can tell of an in-order queue:
- Every command finds the bytes that it touches as the commands before it left them, on this queue
  and on others that share its runtime. Any other queue finds what the host saw to be complete.
- The host sees commands complete in order. Once one was seen to be complete (`wait`, a status, a
  callback, a blocking call, another library's wait list), so are all before it. For that the launch
  table remembers which commands in flight the host can look behind.
- A foreign event in a wait list holds all later commands of the queue too.
"""

# Long because: events, order and memory are all there is of a queue, and each is short.

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from types import TracebackType
from typing import Any
from warnings import warn

import numpy as np
import pyopencl as cl
from pyopencl import _cl

from .. import core
from ..access.called import Arguments
from ..devices.driver import Events, status
from ..errors import AcsError, OutOfMemory, UsageError, describe, offered, refuse_options, truth
from ..launch.commands import KernelCommand
from ..launch.foreign_events import all_held
from ..launch.waits import TICK_S, refuse_on_host_task, wait
from ..records import Access, Command, HostArray, interval
from ..runtime import Runtime, option_names
from . import patch, runtimes
from .bypass import Bypass, is_free
from .calls import KINDS, Call, Given, Original, Watched, marker_call
from .commands import (
    HANDLERS,
    NOTHING,
    Unclear,
    anything,
    kernel,
    unmap_dropped,
)
from .events import QueueEvent, Timed, event_of, native_error
from .kernel_arguments import arguments_of
from .refusals import refuse_wrong
from .slab import Slab

HELD_S = 2.0
"""Longest time that user events may hold a map, which has to give an address at once."""

watchers: list[Callable[[Queue], None]] = []
"""Called with each queue that is made, while `acs-cl run` runs a program."""


class Queue(cl.CommandQueue):
    """Runs independent commands of a PyOpenCL program at the same time.

    It is a `pyopencl.CommandQueue`: a program enqueues as before, `pyopencl.array` included, and
    gets the results of an in-order queue. The queue finds out which bytes each command touches.

    Queues of one context and device share a runtime, so hazards between them are kept. `runtime=`
    names another runtime, and keywords of `Runtime` make a new one. Commands bypass the runtime
    where tracking them does not pay. `bypass=False` tracks all commands.

    >>> import numpy as np, pyopencl as cl, pyopencl.array
    >>> import acs_cl as acs
    >>> context = cl.create_some_context(interactive=False)
    >>> queue = acs.Queue(context)
    >>> x = cl.array.to_device(queue, np.arange(4, dtype="f4"))
    >>> y = cl.array.zeros(queue, 4, "f4") + 1
    >>> print((x + y).get(), queue.runtime.stats()["launches"] > 0)
    [1. 2. 3. 4.] True
    """

    bypass: Bypass | None = None
    """Runs its commands in bypass, where that is possible."""

    __dir__ = offered

    def __init__(
        self,
        context: cl.Context,
        device: cl.Device | None = None,
        properties: Any = None,
        *,
        runtime: Runtime | None = None,
        bypass: bool = True,
        **options: Any,
    ) -> None:
        wanted: Any = 0 if properties is None else properties
        _refuse_wrong_arguments(context, device, wanted, runtime, options)
        bypass = truth("bypass", bypass)
        super().__init__(context, device, wanted)
        modes = cl.command_queue_properties
        given: Any = self.get_info(cl.command_queue_info.PROPERTIES)
        self._in_order = not given & int(modes.OUT_OF_ORDER_EXEC_MODE_ENABLE)
        self.keeps_times = bool(given & int(modes.PROFILING_ENABLE))
        self._pointer: int = _POINTER.__get__(self)
        where: Any = self.get_info(cl.command_queue_info.DEVICE)
        self._runtime = runtimes.chosen(context, where, self.keeps_times, runtime, options)
        self._engine = self._runtime.engine
        self._number = self._engine.table.new_queue()
        """Its own number in the launch table."""
        self.told = runtimes.Told()
        self._behind: list[int] = []
        """Launches that all later ones follow."""
        self._foreign: list[cl.Event] = []
        """Foreign events that all later launches wait for."""
        self.unmaps: deque[tuple[HostArray, core.native.Memory]] = deque()
        """Mapped memory that was dropped."""
        self.deferred: deque[tuple[Call, Access]] = deque()
        self._odd: set[str] = set()
        """"exposed": another library may have put commands on the driver's queue. "left": its
        `with` block has ended."""
        self._holds = self._engine.ready_first or self._engine.window is not None
        self._holds |= self._runtime.plan.backend == "emulated"
        """Whether launches may be held later, even if none is now."""
        self.not_understood: Counter[str] = Counter()
        """Commands that waited for everything, because their access is unknown."""
        is_own = runtime is None
        self._keeps = partial(runtimes.keep_word, self._engine, self._number, self.told)
        """Keeps the word, even when the queue is gone."""
        runtimes.enter(self._runtime, hash(self))
        try:
            self._begin(bypass and is_own)
        except BaseException:
            self._end(is_own)()
            raise
        last = weakref.finalize(self, self._end(is_own))
        last.atexit = False
        for told in watchers:
            told(self)

    def _begin(self, may_bypass: bool) -> None:
        """Take commands from now on."""
        if may_bypass and not self._holds and is_free(self._engine):
            times = self.keeps_times
            self.bypass = runtimes.bypass_for(self, self._pointer, times, self._engine)
            self.bypass.enter(self, self._number, self._pointer, self._in_order)
        if self._engine.bypasses:  # of other queues, whose commands come before ours
            with self._engine.lock:
                self._engine.end_bypasses(self.bypass)
        self.tracker = self._new_tracker()
        patch.enter(self, self._keeps)
        for one in runtimes.note_sharing():
            one.keep_word()

    def _end(self, is_own: bool) -> Callable[[], None]:
        """Return what cleans up after the queue, even when it is gone."""
        return partial(
            runtimes.leave, hash(self), self._number, self._runtime, self.bypass, is_own,
            self.unmaps, self._keeps,
        )  # fmt: skip

    def _new_tracker(self) -> core.native.Tracker | None:
        """Make the object that launches the queue's kernels in the core. None: Python makes all."""
        engine = self._engine
        queues = engine.backend.core_queues
        if not engine.options.plans or queues is None or self._holds:
            return None
        empty = self._foreign, self.unmaps, self.deferred, self._odd
        return core.native.Tracker(
            self, engine, engine.table, queues, engine.store.reserved, self._number, self.bypass,
            empty, self._behind, self._in_order, engine.backend.in_order, self.keeps_times,
            engine.backend.least_step > 0,
        )  # fmt: skip

    # ---- what PyOpenCL's queues have -------------------------------------------------------------

    def finish(self) -> None:
        """Wait for everything enqueued so far."""
        self.resumes_bypass()
        bypass = self.bypass
        if bypass is not None and bypass.open and not self._engine.is_closed:
            bypass.wait_until_idle()
            _FINISH(bypass.native)
            if bypass.takes_more and bypass.takes(self) and not self._engine.failures.any:
                self._waited()
                return
        self._warn_if_left()
        self._collect()
        self.settle(self._last, everything=True)
        self._waited()

    @core.native.flush_by
    def flush(self) -> None:
        """Let the device start on everything enqueued so far."""
        self._warn_if_left()
        if self.bypass is not None and self.bypass.open:
            _FLUSH(self.bypass.native)
        self._collect()
        try:
            self._runtime.flush()
        except AcsError as error:
            raise native_error(error) from None

    def __enter__(self) -> Queue:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.finish()
        self._odd.add("left")
        if self.bypass is not None:
            self.bypass.give_up(self._number)

    @property
    def int_ptr(self) -> int:
        """Return the driver's handle.

        Another library may enqueue commands with it that are not seen here. So this waits for
        everything so far, and the next command waits for what that library enqueued.
        """
        self.finish()
        self._odd.add("exposed")
        if self.bypass is not None and self.bypass.is_joint:  # that is on another driver's queue
            self.bypass.leave(self._number)
        self.not_understood["handle given out (int_ptr)"] += 1
        return self._pointer

    @staticmethod
    def from_int_ptr(int_ptr_value: int, retain: bool = True) -> cl.CommandQueue:
        """Return the queue with this handle: ours, if it is one of ours."""
        native = _cl.CommandQueue.from_int_ptr(int_ptr_value, retain)
        return patch.ours(native) or native

    def __repr__(self) -> str:
        return f"<acs_cl.Queue of {self._runtime!r}>"

    # ---- additions to PyOpenCL's queue -----------------------------------------------------------

    @property
    def runtime(self) -> Runtime:
        """Return the runtime that makes launches of the commands."""
        return self._runtime

    def allocator(self, nbytes: int) -> cl.Buffer | Slab | None:
        """Return memory of the runtime, for `allocator=` of `pyopencl.array`.

        It is shared virtual memory if the runtime has that, which the scheduler on the device can
        use. Otherwise it is a buffer.
        """
        if nbytes <= 0:
            return None
        engine = self._engine
        if not engine.store.is_svm:
            return cl.Buffer(engine.context, cl.mem_flags.READ_WRITE, nbytes)
        try:
            base = engine.new_base(nbytes)
            memory = base.place(0, nbytes).memory.mem
            if memory.nbytes < nbytes:
                raise OutOfMemory(f"no {nbytes:,} bytes left on the first of several devices")
        except OutOfMemory as error:
            record = _cl._ErrorRecord(
                msg=str(error), code=cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE, routine=""
            )
            raise cl.MemoryError(record) from None
        if engine.checker is not None:
            engine.checker.allocated(base, np.dtype(np.int32))  # whatever the program keeps there
        slab = Slab(memory)
        slab.acs_base = base
        span = interval(base.number, 0, nbytes)
        slab.acs_span = core.native.new_memory(span, engine.store.reserved)
        return slab

    # ---- the way of a command --------------------------------------------------------------------

    def _command(
        self, name: str, original: Original, args: Arguments, keywords: Given, given: Given | None
    ) -> object:
        """Handle a call of one of PyOpenCL's functions with this queue."""
        handler = HANDLERS.get(name)
        if given is not None:
            given.update(keywords)
            given.pop("queue", None)
            if handler is kernel:  # before the lock: a thread may set them meanwhile
                handler = partial(kernel, given=arguments_of(given.get("kernel")))
        if self.bypass is not None and self.bypass.open:
            with self._engine.lock:
                own = self.bypass if self.bypass.takes_this_thread else None
                self._engine.end_bypasses(own)
        if given is None:
            return self._serially(name, original, args, keywords)
        if isinstance(given.get("wait_for"), Iterator):  # it can be read once only
            given["wait_for"] = tuple(given["wait_for"])
        if handler is not None:
            try:
                return handler(self, original, **given)
            except Unclear:
                pass
        return anything(self, original, given)

    def submit(
        self,
        command: Command,
        access: Access,
        wait_for: Events = None,
        kind: int = KINDS.TASK,
        seen: bool = False,
        blocks: bool = False,
        keeps: object = None,
        after: tuple[int, ...] = (),
    ) -> QueueEvent:
        """Make a launch of a command. `seen`: the host can look behind it without another command.
        `blocks`: wait for it. `keeps`: its event keeps this alive. `after`: launches that it
        follows."""
        engine = self._engine
        engine.refuse_in_recording("a command on a queue")
        engine.called()
        if self.unmaps or self.deferred or self._odd:
            self._collect()
        self._warn_if_left()
        own, foreign = self._upstream(wait_for)
        after += own
        held = bool(foreign) or self._holds or engine.table.held > 0
        if held or engine.failures.any:  # the driver may get it later, or never
            refuse_wrong(engine, command, foreign)
        watched: Watched | None = None
        if held:
            command = _kept(command)
        if self.keeps_times:  # it may end and lose its event before the program asks
            command = watched = Watched(command)
        try:
            handle = engine.launch(command, access, foreign or None, after=after)
        except AcsError as error:
            raise native_error(error) from None
        number = handle.number
        if foreign and self._in_order:
            self._foreign[:] = foreign
        self._note(number, seen)
        timed: Timed = None if watched is None else watched.known
        event = event_of(self, number, kind, keeps, timed)
        if blocks:
            self.settle(number)
        bypass = self.bypass
        if bypass is None:
            return event
        if bypass.wants(number, engine):
            self._begin_bypass(bypass)
        elif blocks:
            self._waited()
        return event

    def _upstream(self, wait_for: Events) -> tuple[tuple[int, ...], list[cl.Event]]:
        """Return the launches that a command follows whatever their bytes, and foreign events."""
        after = tuple(self._still_behind()) if self._behind else ()
        own, foreign = self._split(wait_for) if wait_for else ((), [])
        if self._foreign:
            self._foreign[:] = self._still_open()
            foreign = [*self._foreign, *foreign]
        return (*after, *own), foreign

    def _waited(self) -> None:
        """End a stretch of commands, because the host has waited for results."""
        bypass = self.bypass
        wanted = None if bypass is None else bypass.prefers_bypass()
        if bypass is None or wanted is None:
            return
        if wanted:
            self._begin_bypass(bypass)
            if bypass.takes_more:
                bypass.stay_in_bypass()
        else:
            bypass.stay_tracked()

    def _note(self, number: int, seen: bool) -> None:
        """Assign a launch to the queue."""
        with self._engine.lock:
            self._engine.table.assign(number, self._number, seen)
            if self._engine.failures.any:  # it may have failed by now
                self._engine.failures.note_queue(self._number, number)
            if self.bypass is not None:
                self.bypass.commands += 1

    # ---- the way of a kernel that the core launches ----------------------------------------------

    def see_to(self, due: core.native.Due) -> None:
        """Do what is due behind a command of the core: a wait, or the end of a sample or
        stretch."""
        if due.settles:
            self.settle(due.settles)
        if due.is_sampled and self.bypass is not None and self.bypass.decides():
            self._begin_bypass(self.bypass)
        if due.has_waited:
            self._waited()

    def _begin_bypass(self, bypass: Bypass) -> None:
        """Let the next commands bypass the runtime, if there is no work in flight of anybody else
        that they may overlap with."""
        with self._engine.lock:
            bypass.begin(self._engine, self, self._number)

    @property
    def owes(self) -> bool:
        """Return whether the next command has to do more than other commands, or to wait."""
        self._foreign[:] = self._still_open()
        return bool(self._foreign or self.deferred or self._odd)

    def stop_bypass(self) -> None:
        """End the bypass, because something has to be done before the next command."""
        if self.bypass is not None:
            self.bypass.pauses = self.bypass.takes_more = False

    def pause_bypass(self) -> None:
        """Have the next command do something first that may bypass the runtime, too."""
        bypass = self.bypass
        if bypass is not None and bypass.takes_more and bypass.takes(self):
            bypass.pauses, bypass.takes_more = True, False

    def resumes_bypass(self) -> bool:
        """Unmap what was dropped meanwhile, in a bypass that paused for it. Tell whether the next
        command may bypass the runtime again."""
        bypass = self.bypass
        if bypass is None or not bypass.pauses:
            return False
        with self._engine.lock:
            is_open = bypass.open and bypass.pauses and not self._engine.state
            taken = bypass.taken()
            if not is_open or self not in taken or any(one.owes for one in taken):
                return False
            bypass.pauses, bypass.takes_more = False, True
        for one in taken:
            while one.unmaps:
                unmap_dropped(one)
        return bool(bypass.takes_more)

    def _warn_if_left(self) -> None:
        if "left" in self._odd:
            warn(
                "Command queue used after exit of context manager.",
                cl.CommandQueueUsedAfterExit,
                stacklevel=4,
            )

    @property
    def _last(self) -> int:
        return self._engine.table.newest_of(self._number)

    def _split(self, wait_for: Sequence[cl.Event]) -> tuple[tuple[int, ...], list[cl.Event]]:
        """Split a wait list into launches of this runtime and foreign events."""
        own: list[int] = []
        foreign: list[cl.Event] = []
        # launches before this one on the same queue are left out: it follows them anyway, and
        # arrays of PyOpenCL name all of them
        mine = self if self._in_order and not self.keeps_times else None
        for event in wait_for:
            if type(event) is not QueueEvent:
                if not isinstance(event, cl.Event):
                    _WAIT((event,))  # PyOpenCL says what it is not
                # all that comes follows the launch that stands for commands in bypass
                if self.bypass is None or not self.bypass.is_under_way(event.int_ptr):
                    foreign.append(event)
                continue
            other = event.acs_queue
            if other is mine:
                continue
            if other.runtime is not self._runtime:
                foreign.append(event.acs_native())
                continue
            own.append(event.acs_number)
            if other is not self:  # the host can look behind these, too
                own += other.seen_up_to(event.acs_number)
        return tuple(own), foreign

    def _still_open(self) -> list[cl.Event]:
        """Return the foreign events that later commands still wait for."""
        return [event for event in self._foreign if status(event) > 0]

    def may_be_held(self, wait_for: Events) -> bool:
        """Tell whether a command may have to wait on the host for its turn."""
        foreign = self._split(wait_for)[1] if wait_for else ()
        return bool(foreign or self._foreign or self._holds or self._engine.table.held)

    def follows_others(self, wait_for: Events) -> bool:
        """Tell whether a command follows more than the order of the queue."""
        return bool(self._still_behind()) or any(self._split(wait_for or ()))

    def mark(self, wait_for: Events, kind: int, for_all: bool = False) -> QueueEvent:
        """Launch a marker or a barrier. On an in-order queue it is behind everything before."""
        live: tuple[int, ...] = ()
        if self._in_order or not wait_for:
            live = tuple(self._live_up_to(self._last))
        event = self.submit(marker_call(), NOTHING, wait_for, kind, after=live)
        if for_all and (wait_for or not self._in_order):
            self._behind[:] = (event.acs_number,)
            if wait_for and not self._in_order:
                self._foreign += self._split(wait_for)[1]
        return event

    def _serially(self, name: str, original: Original, args: Arguments, keywords: Given) -> object:
        """Run a function of PyOpenCL that is unknown here, with nothing beside it."""
        self.not_understood[name.strip("_")] += 1
        self.finish()
        result = original(*args, **keywords)
        super().finish()
        return result

    # ---- what is in flight -----------------------------------------------------------------------

    def _still_behind(self) -> list[int]:
        """Return launches in flight that all later ones follow."""
        launches = self._engine.table
        self._behind[:] = [number for number in self._behind if number in launches]
        return self._behind

    def seen_up_to(self, number: int) -> list[int]:
        """Return the launches of this queue, up to `number`, that the host can look behind."""
        if not self._in_order:
            return []
        return self._engine.table.of_queue(self._number, number, True)

    def settle(self, number: int, everything: bool = False) -> bool:
        """Wait for a launch, and for what the host may look at after it, or for all before it.
        Return whether a second wait for it could not tell more, as one could where checks look back
        later."""
        engine = self._engine
        try:
            refuse_on_host_task("waiting for a command")
            engine.sync()
            if not engine.rests:
                waits = self._live_up_to(number) if everything else self.seen_up_to(number)
                wait(engine, number)
                for one in reversed(waits):
                    if one in engine.table:  # most have ended by now
                        wait(engine, one)
                engine.waited()
        except AcsError as error:
            raise native_error(error) from None
        self.pretend(number)
        if engine.failures.any:
            self._raise_failed(0 if everything else number)
        bypass = self.bypass
        if bypass is not None and bypass.goes_on and not len(engine.table):
            bypass.goes_on = False
            self._begin_bypass(bypass)
        return engine.checker is None

    def _live_up_to(self, number: int) -> list[int]:
        return self._engine.table.of_queue(self._number, number, False)

    def _raise_failed(self, number: int) -> None:
        """Raise if a launch failed. 0: if some of the queue did since this was asked last."""
        failures = self._engine.failures
        try:
            if number:
                failures.raise_for_launch(number, f"launch {number}")
            else:
                failures.raise_for_queue(self._number)
        except AcsError as error:
            raise native_error(error) from error

    def settle_host(self) -> None:
        """Wait for the commands in flight that use memory of the program."""
        for one in self.seen_up_to(self._last):
            wait(self._engine, one)

    def pretend(self, number: int) -> None:
        """Let the program believe from now on that everything up to this launch is complete."""
        if self._in_order and number > self.told.complete:
            self.told.complete = number
            core.native.give_word()
            if self.told.is_shared:
                self.keep_word()

    def keep_word(self) -> None:
        """Wait for everything that the program was told is complete. Needed before an operation
        that cannot wait for single launches."""
        self._keeps()

    def status(self, number: int) -> int:
        """Return the status of a launch, as an in-order queue would."""
        engine = self._engine
        if number <= self.told.complete:
            wait(engine, number)
        done = engine.is_done(number) and all(map(engine.is_done, self.seen_up_to(number)))
        if not done:
            event = engine.backend.event(number)
            if event is None:
                return int(cl.command_execution_status.QUEUED)
            # its own command may be done, while one that the host can look behind is not
            return max(status(event), int(cl.command_execution_status.RUNNING))
        self.pretend(number)
        return -1 if engine.failures.knows(number) else 0

    def native_event(self, number: int) -> cl.Event:
        """Make an event of the driver that completes with a launch and with all before it."""
        live = tuple(self._live_up_to(number)) if self._in_order else ()
        if len(live) > 1 or (live and live[0] != number):
            marker = self.submit(marker_call(), NOTHING, after=live)
            number = marker.acs_number
        return self._engine.event(number)

    def wait_until_submitted(self, number: int) -> None:
        """Wait until a launch is on the device, or has ended."""
        engine, until = self._engine, perf_counter() + HELD_S
        while True:
            with engine.lock:
                engine.pump()
                if number not in engine.table or engine.backend.event(number) is not None:
                    return
                engine.lock.wait(0, TICK_S)
            if perf_counter() > until and all_held(engine):
                raise UsageError(
                    "a map has to give an address at once, and it waits for a user event that "
                    "nobody has set; set it before, or leave the map out of its way"
                )

    def _collect(self) -> None:
        """Do what finalizers left, and wait for what another library may have enqueued."""
        while self.unmaps:
            unmap_dropped(self)
        while self.deferred:
            command, access = self.deferred.popleft()
            self.submit(command, access, seen=True)
        if "exposed" in self._odd:
            self._odd.discard("exposed")
            super().finish()

    def sample_anew(self) -> None:
        """Begin another sample, because the last commands do not show how fast the program is."""
        if self.bypass is not None:
            self.bypass.sample_anew()


_POINTER: Any = _cl.CommandQueue.int_ptr
_FINISH = _cl.CommandQueue.finish
_FLUSH = _cl.CommandQueue.flush
_WAIT = _cl.wait_for_events


def _refuse_wrong_arguments(
    context: object,
    device: object,
    properties: object,
    runtime: object,
    options: Mapping[str, object],
) -> None:
    """Refuse arguments of a new queue that PyOpenCL or a driver would understand as others."""
    if not isinstance(context, cl.Context):
        raise UsageError(
            f"a queue takes a pyopencl.Context, got {describe(context)}; of a runtime that is "
            "rt.context, with runtime=rt"
        )
    if isinstance(properties, str):
        raise UsageError(
            f"properties={properties!r}: expected pyopencl.command_queue_properties, such as "
            "PROFILING_ENABLE"
        )
    on_device = cl.command_queue_properties.ON_DEVICE
    if isinstance(properties, int) and properties & on_device:  # PoCL would end the process
        raise UsageError("properties: a queue ON_DEVICE takes no commands of the host")
    if device is not None and not isinstance(device, cl.Device):
        raise UsageError(
            f"device: expected a pyopencl.Device, got {describe(device)}; properties come "
            "after it, and a runtime goes by runtime="
        )
    if runtime is not None and not isinstance(runtime, Runtime):
        raise UsageError(f"runtime= takes an acs_cl.Runtime, got {describe(runtime)}")
    own = {"properties", "runtime", "bypass"}
    refuse_options(options, option_names() - {"devices"} | own)
    if options and runtime is not None:
        raise UsageError(f"runtime= has its own options; leave out {', '.join(options)}")


def _kept(command: Command) -> Command:
    """Keep what a waiting command uses: a queue's program may release it meanwhile."""
    if type(command) is KernelCommand:
        pointers = tuple(map(_retained, command.pointers))
        return command._replace(pointers=pointers)
    if type(command) is Call:
        command.given = {name: _retained(value) for name, value in command.given.items()}
    return command


def _retained(value: object) -> object:
    if isinstance(value, cl.MemoryObject):
        found: Any = type(value).from_int_ptr(value.int_ptr, retain=True)
        found.acs_keeps = value.hostbuf
        return found
    return value
