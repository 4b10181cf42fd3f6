"""The runtime: the one place where the stages meet.

In: calls of the program, from any of its threads. Out: launches on a backend, in an order that
keeps what program order means for every byte. The way of a launch is `_launch`: number, poison,
hazards, window, backend; the way back is `_retire`: backend, hazards, window, and whatever became
ready.

Invariants (all under `_lock`, except that waiting for the device never holds it):
- Numbers are given in the order in which calls take the lock, so each thread's own order is kept.
- A launch that never ran (poisoned, refused by the driver) stays live until all its upstream has
  ended, and `_skipped` stands in for it: who should wait for it waits for its upstream instead.
- Arrays are never held: commands keep the driver's objects, memory in flight is guarded by
`Block.users`.
"""

# Long because: it composes all stages and owns the lock; each stage's work is in its own file.

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import get_ident
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np
import pyopencl as cl

# what a program may never ask for (recording, tracing, explaining) is imported where it is asked
# for: its start waits for all that is imported here
from . import at_exit, core, factory, plans, transfers, waiting
from .configuration import plan
from .devices import kind
from .devices.build import build, driver_options, macro_options, read_source
from .devices.contexts import context_for, forget_context
from .devices.driver import CommandQueue
from .errors import AcsError, DeviceError, OutOfMemory, UsageError
from .host.call_sites import caller
from .host.threads import HostTasks, Progress, on_host_task
from .kernel import Kernel, origin_of
from .launch.commands import HostCommand, KernelCommand
from .launch.decision import DecidedCommand, WrongCountError
from .launch.failures import Failure, Failures
from .launch.gates import Patience, look_at_gates, open_events
from .launch.handle import Handle
from .launch.ledger import Launches
from .launch.sizes import Sizes
from .launch.skipped import Skipped
from .launch.window import Window
from .memory.array import Array
from .memory.blocks import Base, Block, store_for
from .memory.views import contiguous_strides, normal_shape
from .observe.stats import Stats
from .options import BACKLOG, options, scheduler_settings
from .program import Program, adopted_kernel
from .reading import finish_read, read_now
from .records import Access, Command, Launch
from .scheduler.policy import Choice
from .scheduler.segment import apart, failed, is_counted

plans.use(Handle)

if TYPE_CHECKING:
    from .graph.graph import Graph
    from .observe.explain import Explanation
    from .observe.measure import Measure
    from .observe.trace import Trace

_new = tuple.__new__
"""Makes a named tuple without the Python-level call that its constructor is."""

POLL_EVERY = 32
"""Launches between two looks at what has ended."""


class Runtime:
    """Runs launches on one device in program order; independent ones run at the same time.

    - `device`: None, an index, a part of its name, or a `pyopencl.Device`; or pass a `context`.
    - `backend`: 'auto', 'serial', 'out_of_order', 'lanes', 'device' or 'emulated'.
    - `issue`: 'eager' or 'ready_first'.
    - `window`: how many launches may be in it; None is without bound.
    - `lanes`: queues of the backend 'lanes'.
    - `backlog`: launches in flight at which the next one waits.
    - `memory`: 'svm' or 'buffers'.
    - `trace`: record a timeline.
    - `check`: 'access', 'order', 'uninitialised', 'leaks', or several of them.
    - `groups`, `slice_ms`, `order`: for the scheduler on the device.
    - `emulate`: for 'emulated', a mapping with `machine`, `policy` and `durations`.

    The reference of options has each of them in full.

    >>> import acs_cl as acs
    >>> with acs.Runtime() as rt:
    ...     prog = rt.build('''kernel void saxpy(global const float *x, global float *y, float a)
    ...                        { int i = get_global_id(0); y[i] += a * x[i]; }''')
    ...     x, y = rt.array([1, 2, 3], "f4"), rt.zeros(3, "f4")
    ...     handle = prog.saxpy((3,), None, x, y, 2)
    ...     print(y.get())
    [2. 4. 6.]
    """

    def __init__(
        self,
        device: Any = None,
        *,
        context: Any = None,
        backend: str = "auto",
        issue: str = "eager",
        window: int | None = None,
        lanes: int | None = None,
        backlog: int = BACKLOG,
        memory: str | None = None,
        trace: bool = False,
        check: Any = None,
        groups: int | None = None,
        slice_ms: float = 50.0,
        order: str = "first_in",
        emulate: Mapping[str, Any] | None = None,
        profiling: bool = False,
    ) -> None:
        self._state = "not started"
        self.options = options(backend, issue, window, lanes, backlog, memory, trace, check)
        self.context, self.device = context_for(device, context)
        self.plan = plan(self.device, self.options)
        self._sizes = Sizes(self.device)
        self._store = store_for(self.context, self.device, self.plan.memory)
        if self.plan.backend == "emulated":
            self._backend = factory.create_emulated(self.context, self.device, emulate)
        else:
            self._backend = factory.create(
                self.plan.host, self.context, self.device, self.plan.lanes,
                self.options.trace
                or profiling
                or (self.plan.scheduler == "mix" and kind(self.device) == "CPU"),
            )  # fmt: skip
        self._ledger = core.native.Ledger()
        on_device = self.plan.backend == "device"  # which has a window of its own
        if self.plan.scheduler != "no":
            inside = self.options.window if on_device else None
            self._backend = factory.create_device(
                self._backend, self.context, self.device, self._store, self.plan.tier,
                scheduler_settings(groups, slice_ms, order, inside),
                Choice(kind(self.device) == "CPU", self.device.max_compute_units)
                if self.plan.scheduler == "mix"
                else None,
                self._ledger,
            )  # fmt: skip
        # on one in-order queue only the oldest can run, so that holding others back gains nothing
        self._ready_first = issue == "ready_first" and not self._backend.in_order
        self._lock = core.native.Lock()
        self._hazards = core.native.Hazards()
        self._window = Window(None if on_device else self.options.window)
        self._failures = Failures()
        self._trace: Trace | None = None
        if self.options.trace:
            from .observe.trace import Trace

            self._trace = Trace()
        self._stats = Stats()
        self._progress = Progress(self._pump, self._goes_on, self._lock)
        self._seen = 0
        """The newest launch when the thread asked last."""
        self._host_tasks = HostTasks()
        self._host_queue: Any = None
        self._bases = 0
        self._launches = Launches(self._ledger, self._window)
        self._ended: deque[tuple[int, int, Any, int]] = deque()
        """What the backend has told of, and nobody has taken note of yet."""
        self._skipped = Skipped()
        self._gates: dict[int, list[Any]] = {}
        self._user_events: dict[int, Any] = {}
        self._returned: deque[tuple[int, Block]] = deque()
        self._programs: dict[Any, Any] = {}
        self._kernels: WeakSet[Any] = WeakSet()
        """Those whose signature is known, for explanations."""
        self._recorders: dict[int, Graph] = {}
        """{thread: what it records at the moment}."""
        self._counted: set[int] = set()
        """Launches with a count on the device, which may turn out wrong when they have ended."""
        self._backlog = self.options.backlog
        self._measuring: Measure | None = None
        self._sections: list[Any] = []
        """Commands of a queue that are one launch, once somebody else comes."""
        self._checker: Any = None
        if self.options.check:
            from .check.checker import Checker

            self._checker = Checker(self, self.options.check)
        self._have_quick_launches(self._backend)
        self._state = ""
        waiting.register(self)

    # ---- programs and arrays -------------------------------------------------------------------

    def build(
        self,
        source: str | Path,
        options: Sequence[str] = (),
        macros: Mapping[str, Any] | None = None,
    ) -> Program:
        """Build OpenCL C: text, or a path to it. `macros` become `-D` options."""
        self._check_open()
        text = read_source(source)
        words = driver_options(self.context, [*options, *macro_options(macros)])
        return Program(self, build(self.context, self.device, text, words), text, words)

    def empty(self, shape: Any, dtype: Any = np.float32) -> Array:
        """Make an array with undefined contents."""
        self._check_open()
        return self._new_array(normal_shape(shape), np.dtype(dtype))

    def zeros(self, shape: Any, dtype: Any = np.float32) -> Array:
        """Make an array of zeros."""
        array = self.empty(shape, dtype)
        array.fill(0)
        return array

    def array(self, values: Any, dtype: Any = None) -> Array:
        """Make an array with the values of a NumPy array, or of what `numpy.asarray` makes one
        from.
        """
        host = np.asarray(values, dtype=dtype, order="C")
        if host.dtype == np.float64 and dtype is None and not hasattr(values, "dtype"):
            host = host.astype(np.float32)  # Python floats: OpenCL's own default precision
        array = self.empty(host.shape, host.dtype)
        array.set(host)
        return array

    def pinned(self, shape: Any, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
        """Make a NumPy array in host memory that the device copies from and to at full speed."""
        self._check_open()
        return transfers.pinned(self, normal_shape(shape), np.dtype(dtype))

    def prebuild(self, *kernels: Any) -> None:
        """Build kernels into the scheduler of backend 'device' now, and wait for it. Otherwise that
        happens behind the program's back.

        Give a kernel that works in groups with its local size: `rt.prebuild(prog.step,
        (prog.reduce, (64,)))`. Other backends do nothing.
        """
        self._check_open()
        if isinstance(self._backend, factory.Device):
            self._backend.prepare([origin_of(self, kernel) for kernel in kernels])

    # ---- launching -----------------------------------------------------------------------------

    def launch(
        self, kernel: Any, global_size: Any, local_size: Any, *args: Any, **keywords: Any
    ) -> Handle:
        """Launch any `pyopencl.Kernel` (or one of ours), with the keywords of a kernel's call."""
        self._check_open()
        if not isinstance(kernel, Kernel):
            kernel = adopted_kernel(self, kernel)
        handle: Handle = kernel(global_size, local_size, *args, **keywords)
        return handle

    def call(
        self,
        function: Callable[..., Any],
        reads: Any = None,
        writes: Any = None,
        wait_for: Sequence[Any] | None = None,
    ) -> Handle:
        """Run a Python function as a host task, in a thread, when what it reads is there.

        The function gets a NumPy array for each array in `reads` (a copy), then for each in
        `writes`, whose contents are stored afterwards. An array in both comes once, with its
        values.
        """
        self._check_open()
        if not callable(function):
            raise UsageError(f"a host task has to be callable, got {type(function).__name__}")
        self._called()
        task = transfers.host_task
        if (graph := self._recorder()) is not None:
            return graph._capture(task, self, function, reads, writes, wait_for, caller())
        return task(self, function, reads, writes, wait_for, caller())

    def record(self) -> Graph:
        """Capture what this thread launches in `with rt.record() as graph:`, and run nothing of it.
        `graph.replay()` runs all of it.
        """
        from .graph.graph import Graph

        self._check_open()
        return Graph(self)

    def finish(self) -> None:
        """Wait for everything launched so far. Raise the first failure not reported before."""
        self._check_open()
        self._refuse_in_recording("finish")
        waiting.refuse_on_host_task("finish")
        trace = self._trace
        if trace is not None:
            trace.called()
        self._sync()
        waiting.drain(self)
        if trace is not None:
            trace.waited()
        self._failures.raise_untold()

    def flush(self) -> None:
        """Make sure that the device gets to work on everything it can."""
        self._check_open()
        with self._lock:
            self._pump()
            self._backend.flush()

    def close(self) -> None:
        """Finish, then release queues and memory. Launches that still wait for another library's
        event are given up. May be called twice.
        """
        self._refuse_in_recording("close")
        waiting.close(self, quiet=False)

    def __enter__(self) -> Runtime:
        self._check_open()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        at_exit.leave(self, kind)

    def __del__(self) -> None:
        at_exit.collected(self)

    def __repr__(self) -> str:
        return f"<acs_cl.Runtime {self.plan.backend} on {self.device.name.strip()}>"

    # ---- asking --------------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """Count launches, edges by kind, pruned edges, window occupancy, lanes, memory, overlap."""
        with self._lock:
            return self._stats.report(self)

    def explain(self, first: Handle, second: Handle | None = None) -> Explanation:
        """Say which bytes order two launches, or that nothing does.

        Of one launch, say where it runs and why, and what was inferred for each of its arguments.
        """
        from .graph.handles import RecordedHandle, ReplayHandle
        from .observe.explain import explain

        if second is None and isinstance(first, (RecordedHandle, ReplayHandle)):
            return first._explain()
        for one in (first,) if second is None else (first, second):
            if not isinstance(one, Handle):
                raise UsageError(f"explain takes what launches gave, got {type(one).__name__}")
        if second is None:
            from .observe.reasons import reasons

            return explain(self, first, None, reasons(self._kernels, first.name, first.access))
        return explain(self, first, second)

    @property
    def trace(self) -> Trace:
        """Return the timeline, if the runtime was made with `trace=True`."""
        if self._trace is None:
            raise UsageError("nothing was traced: make the runtime with trace=True")
        return self._trace

    def measure(self) -> Measure:
        """Measure what happens in `with rt.measure() as m:`.

        Afterwards `print(m)`, `m.phases`, `m.explain("merge#3")`, `m.advice()`,
        `m.report("step.html")` and `m.save("step.json")` tell. Both ends of the block wait for
        everything launched so far.
        """
        self._check_open()
        self._refuse_in_recording("measure")
        from .observe.measure import Measure

        return Measure(self)

    def dag(self, path: str | Path) -> None:
        """Write the graph of what was traced, and has ended: '.dot', '.graphml' or '.json'.

        Nodes are launches with their sizes, routes and times, edges have kinds and bytes. A
        recorded graph and a measured block have the same method, and need no `trace=True`.
        """
        from .observe.dag import of_slices, save

        save(of_slices(self.trace.slices), path)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Name the launches of this thread in the block, for measurements and traces."""
        trace = self._trace
        if trace is None:
            yield
            return
        before = trace.enter(str(name))
        try:
            yield
        finally:
            trace.enter(before)

    def _retime(self, on: bool, kept: Any = None) -> Any:
        """Queues that keep the times of their commands, or again those from before. Called when
        nothing is under way, under the lock; gives what to put back."""
        backend = self._backend
        if not on:
            usable, before = kept
            if before is not None and isinstance(backend, factory.Device):
                backend.requeue(*before)
            elif before is not None:
                backend.close()
                self._backend = before
            self._ledger.usable = usable
            return None
        usable, self._ledger.usable = self._ledger.usable, False
        if backend.profiling or not backend.may_retime:
            return usable, None
        fresh = factory.create(self.plan.host, self.context, self.device, self.plan.lanes, True)
        if isinstance(backend, factory.Device):
            return usable, backend.requeue(fresh)
        self._backend = fresh
        return usable, backend

    # ---- quick launches ------------------------------------------------------------------------

    def _have_quick_launches(self, backend: Any) -> None:
        """The core may make launches by itself, where nothing is unusual. What has to be empty for
        that is emptied and filled again, never replaced."""
        ledger, window = self._ledger, self._window
        window.elsewhere = lambda: ledger.quick
        backend.join(ledger)
        if isinstance(backend, factory.Device):
            backend.settle = self._launches.settle
        unusual: list[Any] = [
            self._recorders, self._returned, self._skipped, self._failures.poison.bases,
            self._sections, window.waiting, self._counted,
        ]  # fmt: skip
        if backend.in_order:  # behind one that is held, all are
            unusual.append(window.watched)
        ledger.join(
            self._hazards, self._lock, self._launches, window.slots, window.watched, unusual,
            self._backlog, window.size, self._ready_first,
        )  # fmt: skip
        ledger.usable = (
            self.options.plans
            and self.plan.backend != "emulated"
            and self._trace is None
            and self._checker is None
        )

    def _settle(self) -> None:
        """Make quick launches what others are."""
        self._launches.settle()

    def _completed(self, ended: factory.Ended | None = None) -> None:
        """Take note of launches that the core's queues have seen to end. None: the core makes
        launches by itself, and it is time to look what is due, and what has ended."""
        with self._lock:
            if ended is not None:
                if self._retire(self._backend.from_queues(ended)):
                    self._lock.notify()
            elif not self._state:
                self._backend.look()
                self._pump()
                if self._backend.unsent:
                    self._progress.start()

    @property
    def _number(self) -> int:
        """Of the newest launch."""
        return self._ledger.number

    # ---- the way of a launch -------------------------------------------------------------------

    def _launch(
        self,
        command: Command,
        access: Access,
        wait_for: Sequence[Any] | None = None,
        result: Any = None,
        footprint: core.native.Footprint | None = None,
        after: Sequence[int] = (),
    ) -> Handle:
        if self._recorders and (graph := self._recorders.get(get_ident())) is not None:
            return graph._take(command, access, wait_for)
        if self._checker is not None and self._checker.takes(access):
            handle: Handle = self._checker.launch(command, access, wait_for, result)
            return handle
        with self._lock:
            if self._state:
                self._check_open()
            if self._sections:
                self._end_sections()
            trace = self._trace
            started_ns = perf_counter_ns() if trace is not None else 0
            if self._returned:
                self._take_back()
            if len(self._launches) >= self._backlog:
                waiting.wait_for_half(self)
                self._check_open()
            gates = open_events(wait_for) if wait_for else None
            number = self._ledger.number = self._ledger.number + 1
            if footprint is None:
                found = self._hazards.enter(number, access.reads, access.writes)
            else:
                found = self._hazards.enter_footprint(number, footprint)
            if self._backend.in_order:
                upstream: tuple[int, ...] = (number - 1,) if number > 1 else ()
            else:
                upstream = tuple(found) if found else ()
                if after:
                    more = (n for n in after if n in self._launches or n in self._skipped)
                    upstream = tuple(dict.fromkeys((*upstream, *more)))
            entered_ns = trace.entered(number, started_ns) if trace is not None else 0
            handle = self._hand_over(number, command, access, upstream, gates, result)
            if trace is not None:
                trace.launched(number, started_ns, entered_ns)
            return handle

    def _hand_over(
        self,
        number: int,
        command: Command,
        access: Access,
        upstream: tuple[int, ...],
        gates: list[Any] | None = None,
        result: Any = None,
    ) -> Handle:
        """A launch is in the hazards: into the window, and on to where it runs."""
        with self._lock:
            if self._skipped:
                upstream = self._skipped.expand(upstream)
            launch = self._launches[number] = _new(Launch, (number, command, access, upstream))
            if self._failures.any:
                self._meet_poison(launch)
            if is_counted(command):
                self._counted.add(number)
            on_host = command.on_host
            patient = on_host or self._ready_first
            if patient and self._ledger.quick:  # the window has to know what it waits for
                self._settle()
            if gates:
                self._gates[number] = gates
            handed_out = self._window.insert(number, upstream, on_host, bool(gates), patient)
            if handed_out and (on_host or number in self._failures.doomed):
                self._dispatch(handed_out)
            elif handed_out:
                try:
                    self._backend.submit(launch)
                except Exception as error:  # or the launch would be waited for for ever
                    raise self._refused(launch, error) from error
            # only now: what the driver refused overwrites nothing
            if self._failures.any and not self._failures.knows(number):
                self._failures.poison.overwrite(access.overwrites)
            # gates are looked at seldom, since each of them may have a launch for each event
            if number % POLL_EVERY == 0 or not (handed_out or self._gates):
                self._pump()
            if self._window.waiting:
                self._send_what_there_is()
            if (not handed_out and self._window.held) or self._backend.unsent:
                self._progress.start()
        return Handle(self, number, command.name, access, result)

    def _send_what_there_is(self) -> None:
        """The window is full: no epoch that is open now gets more launches before others end."""
        if self._backend.unsent:
            self._backend.flush()

    def _end_sections(self, own: Any = None) -> None:
        """Make launches of what queues gave to the driver. Called under the lock. `own`: the
        section of the queue whose command ends them."""
        while self._sections:
            self._sections[0].end(self, by_own=self._sections[0] is own)

    def _launch_many(self, kernel: Kernel, *how: Any) -> Any:
        from .graph.many import launch_many

        self._check_open()
        return launch_many(kernel, *how)

    def _refused(self, launch: Launch, error: BaseException) -> AcsError:
        """The driver refused a launch in the user's own call: it is raised there, and it is as if
        the launch had never been."""
        self._stand_in(launch.number, launch.upstream)
        self._dispatch(self._window.done(launch.number))
        return driver_error(launch, error)

    def _dispatch(self, handed_out: list[int]) -> None:
        """Hand launches to the backend or to a thread; those that must not run end here."""
        queue = deque(handed_out)
        while queue:
            number = queue.popleft()
            launch = self._launches[number]
            failure = self._failures.doomed.pop(number, None)
            if failure is None and launch.command.on_host:
                self._run_on_host(launch)
                continue
            if failure is None:
                if self._skipped:
                    launch = launch._replace(upstream=self._skipped.expand(launch.upstream))
                try:
                    self._backend.submit(launch)
                    continue
                except Exception as error:  # or the launch would be waited for for ever
                    self._fail(launch, driver_error(launch, error))
            self._stand_in(number, launch.upstream)
            queue.extend(self._window.done(number))

    def _retire(self, ended: factory.Ended) -> bool:
        """The backend reports ended launches: free their slots, dispatch what waited for them. It
        tells of each once, so that what an exception keeps from its turn is kept here."""
        reported = self._ended
        reported.extend(ended)
        moved = bool(reported)
        while reported:
            one = reported.popleft()
            try:
                self._retire_one(*one)
            except BaseException:
                if one[0] <= 0 or one[0] in self._launches:
                    reported.appendleft(one)
                raise
        if moved and self._window.waiting:
            self._send_what_there_is()
        return moved

    def _retire_one(self, number: int, status: int, event: Any, lane: int) -> None:
        if number < 0:  # quick launches in an epoch
            settled = self._ledger.retire(-number)
            self._ended.extendleft((one, 0, event, -1) for one in (0, *reversed(settled)))
            return
        if not number:  # quick launches
            self._let_others_in()
            return
        if status < 0 and self._ledger.quick:
            self._settle()
        launch = self._launches.pop(number)
        try:
            if status < 0:
                self._fail(launch, self._what_ended(launch, status))
            if self._trace is not None:
                self._trace.ended(launch, lane, event)
            command = launch.command
            if self._counted:
                self._counted.discard(number)
            if type(command) is DecidedCommand and (error := command.error(number)) is not None:
                self._fail(launch, error)
        finally:  # whatever was raised, it has ended
            self._hazards.retire(number)
            handed_out = self._window.done(number)
            if handed_out or self._skipped or self._user_events:
                self._after(number, handed_out)

    def _let_others_in(self) -> None:
        """Quick launches have ended, of which the window and stand-ins learn only now."""
        if self._window.waiting:
            self._dispatch(self._window.admit())
        if self._skipped:
            self._let_skipped_end()

    def _let_skipped_end(self) -> None:
        """Those whose upstream has ended need no stand-in any more."""
        for other in self._skipped.ended(self._launches):
            self._hazards.retire(other)

    def _what_ended(self, launch: Launch, status: int) -> BaseException:
        error = self._backend.error(launch.number, status)
        if error is None or status > factory.DECIDED:
            forget_context(self.context)
        if isinstance(error, WrongCountError) and isinstance(launch.command, DecidedCommand):
            return launch.command.wrong(launch.number, error.got)
        if isinstance(error, cl.Error):
            return driver_error(launch, error)
        return error or DeviceError(f"the device reports status {status}")

    def _after(self, number: int, handed_out: list[int]) -> None:
        """A launch has ended, and others are concerned."""
        if self._user_events:
            waiting.complete_user_event(self, number)
        if handed_out:
            self._dispatch(handed_out)
        if self._skipped:
            self._let_skipped_end()

    def _run_on_host(self, launch: Launch) -> None:
        command = launch.command
        assert isinstance(command, HostCommand)
        if self._host_queue is None:
            self._host_queue = CommandQueue(self.context, self.device)

        def task() -> None:
            error: BaseException | None = None
            started_ns = perf_counter_ns()
            try:
                command.run(self._host_queue)
            except BaseException as caught:  # whatever it is, it is the task's
                error = caught
            with self._lock:
                self._launches.pop(launch.number)
                if error is not None:
                    self._fail(launch, error, command.site)
                if self._trace is not None:
                    self._trace.ran_on_host(launch, started_ns, perf_counter_ns())
                self._hazards.retire(launch.number)
                self._after(launch.number, self._window.done(launch.number))
                self._lock.notify()

        self._backend.flush()
        self._host_tasks.run(task)
        self._progress.start()

    def _pump(self) -> tuple[bool, bool]:
        """Move everything along that can move. Whether launches are still held, and whether any
        moved."""
        moved = self._retire(self._backend.poll())
        for number, gates in list(self._gates.items()):
            left, failed = look_at_gates(gates)
            if failed is not None:
                self._failures.doomed[number] = self._fail(
                    self._launches[number], DeviceError(f"a foreign event failed: {failed}")
                )
            if failed is not None or not left:
                del self._gates[number]
                self._dispatch(self._window.open_gate(number))
                moved = True
            else:
                self._gates[number] = left
        held = bool(self._window.held)
        if moved:
            self._lock.notify()
        if held or (moved and not self._backend.unsent):
            self._backend.flush()
        # an epoch that waits to be sent needs a look now and then, whatever else moves
        return held or self._backend.unsent, moved and held

    def _goes_on(self) -> bool:
        """Whether launches have come since this was asked, and nothing but an open epoch needs a
        look: the program looks after that itself. Asked without the lock."""
        before, self._seen = self._seen, self._ledger.number
        return before != self._seen and not (self._window.held or self._gates)

    # ---- failures ------------------------------------------------------------------------------

    def _fail(self, launch: Launch, error: BaseException, site: str = "") -> Failure:
        """A launch failed after its call had returned: poison what follows from it."""
        if self._ledger.quick:
            self._settle()
        failure = Failure(launch.number, launch.command.name, site, error)
        later = (other for number, other in self._launches.items() if number > launch.number)
        launch = failed(launch, error)
        reached = self._failures.record(failure, launch.access, apart(later, self._was_dispatched))
        for number in reached:
            if number not in self._window or not self._was_dispatched(number):
                self._failures.doomed[number] = failure
        for poisoned in (launch, *(self._launches[number] for number in reached)):
            waiting.keep_foreign(self, poisoned)
        return failure

    def _was_dispatched(self, number: int) -> bool:
        return self._backend.event(number) is not None

    def _meet_poison(self, launch: Launch) -> None:
        """A new launch in a program with failures may read poison."""
        failure = self._failures.reads_poison(launch.access)
        if failure is not None:
            self._failures.note(launch.number, failure)
            self._failures.doomed[launch.number] = failure
            self._failures.poison.add(launch.access.writes, failure)
            waiting.keep_foreign(self, launch)

    def _stand_in(self, number: int, upstream: tuple[int, ...]) -> None:
        """Launch `number` will never run: until its upstream has ended, that stands in for it."""
        self._launches.pop(number)
        self._counted.discard(number)
        if self._user_events:
            waiting.complete_user_event(self, number)
        if not self._skipped.add(number, upstream, self._launches):
            self._hazards.retire(number)

    # ---- waiting -------------------------------------------------------------------------------

    def _sync(self) -> None:
        """The program waits, or learns what is done: checks look back."""
        if self._checker is not None:
            self._checker.sync()

    def _wait(self, number: int, name: str) -> None:
        self._check_open()
        self._sync()
        waiting.wait(self, number)
        if self._failures.any:
            self._failures.raise_for_launch(number, f"launch {number} ({name})")

    def _wait_quietly(self, number: int) -> None:
        """Wait without raising what became of the launch."""
        if not on_host_task():
            self._sync()
            waiting.wait(self, number)

    def _is_done(self, number: int) -> bool:
        self._sync()
        return waiting.is_done(self, number)

    def _event(self, number: int) -> Any:
        self._sync()
        return waiting.event(self, number)

    # ---- transfers and memory --------------------------------------------------------------------

    def _called(self) -> None:
        """The program has called the library, and a launch comes of it."""
        if self._trace is not None:
            self._trace.called()

    def _read(self, array: Array, out: Any) -> Handle:
        self._called()
        self._refuse_in_recording("get")
        return transfers.read(self, array, out)

    def _read_now(self, array: Array, out: Any) -> Any:
        self._called()
        self._refuse_in_recording("get")
        return read_now(self, array, out)

    def _finish_read(
        self, number: int, upstream: tuple[int, ...], array: Array, host: Any
    ) -> Handle:
        return finish_read(self, number, upstream, array, host)

    def _write(self, array: Array, source: Any, copy: bool) -> Handle:
        self._called()
        if (graph := self._recorder()) is None:
            return transfers.write(self, array, source, copy)
        if copy:  # once, by the graph
            return graph._capture(transfers.write, self, array, source, False)
        return graph._capture(partial(transfers.write, source=source, copied=False), self, array)

    def _fill(self, array: Array, value: Any) -> Handle:
        self._called()
        if (graph := self._recorder()) is not None:
            return graph._capture(transfers.fill, self, array, value)
        return transfers.fill(self, array, value)

    def _copy(self, target: Array, source: Array) -> Handle:
        self._called()
        if (graph := self._recorder()) is not None:
            return graph._capture(transfers.copy, self, target, source)
        return transfers.copy(self, target, source)

    # ---- graphs --------------------------------------------------------------------------------

    def _recorder(self) -> Graph | None:
        """The graph that captures the calls of this thread."""
        return self._recorders.get(get_ident()) if self._recorders else None

    def _refuse_in_recording(self, what: str) -> None:
        if self._recorders and get_ident() in self._recorders:
            raise UsageError(
                f"{what} inside a recording: nothing of it has run; do it after a replay"
            )

    def _cutter(self) -> Any:
        """What cuts graphs into segments, where the backend runs these; checks want each launch."""
        if self._checker is not None or not isinstance(self._backend, factory.Device):
            return None
        return self._backend.cutter()

    def _may_be_poisoned(self, access: Access) -> bool:
        """Whether any of these bytes are poisoned, or may be by something that has not run yet."""
        with self._lock:
            poison = self._failures.poison
            if poison and poison.find((*access.reads, *access.writes)) is not None:
                return True
            if not (self._window.held or self._host_tasks.busy):
                return False
            return any(
                launch.access.writes and (launch.command.on_host or number in self._gates)
                for number, launch in self._launches.items()
            )

    def _new_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        if dtype.hasobject:
            raise UsageError(f"dtype {dtype}: Python objects cannot live on a device")
        nbytes = dtype.itemsize
        for length in shape:
            nbytes *= length
        base = self._new_base(nbytes) if nbytes else None
        if self._checker is not None and base is not None:
            self._checker.allocated(base, dtype)
        return Array(self, base, 0, shape, contiguous_strides(shape, dtype.itemsize), dtype)

    def _new_base(self, nbytes: int) -> Base:
        for attempt in range(2):
            with self._lock:
                if self._returned:
                    self._take_back()
                guard = self._checker.guard if self._checker is not None else 0
                block = self._store.allocate(nbytes + guard, self._hazards.is_live)
                if block is not None:
                    number = self._bases = self._bases + 1
                    if block.users:
                        self._hazards.inherit(number, block.users)
                    base = Base(number, nbytes, block, self._store, self._returned)
                    if (graph := self._recorder()) is not None:
                        graph._keep(base)
                    return base
            if attempt == 0 and not on_host_task():
                waiting.drain(self, patience=Patience(f"an allocation of {nbytes:,} bytes"))
                with self._lock:
                    self._take_back()
                    self._store.release_unused()
        raise OutOfMemory(
            f"no {nbytes:,} bytes left on {self.device.name.strip()} "
            f"({self._store.reserved_bytes:,} reserved, {self._store.in_use_bytes:,} in arrays)"
        )

    def _take_back(self) -> None:
        """Blocks of dropped arrays: their hazards become a list of launches the next owner waits
        for."""
        while self._returned:
            number, block = self._returned.popleft()
            users = self._hazards.users(number)
            self._hazards.forget(number)
            self._failures.poison.forget(number)
            if self._checker is None:
                self._store.free(block, users)
                continue
            for old, old_users in self._checker.freed(number, block, users):
                self._store.free(old, old_users)

    def _check_open(self) -> None:
        if self._state:
            raise UsageError(f"the runtime is {self._state}")


def driver_error(launch: Launch, error: BaseException) -> AcsError:
    """What the driver refused, with the launch, the kernel and the sizes."""
    command = launch.command
    where = f"launch {launch.number} ({command.name})"
    if isinstance(command, (KernelCommand, DecidedCommand)):
        where += f" of global size {command.global_size}, local size {command.local_size}"
    message = f"{where}: {error}"
    if isinstance(error, cl.MemoryError):
        return OutOfMemory(message)
    if isinstance(error, cl.LogicError) or not isinstance(error, cl.Error):
        return UsageError(message)
    return DeviceError(message)
