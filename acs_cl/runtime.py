"""The runtime: it is what a program holds, and puts the parts of the library together.

Input: calls of the program. Output: programs, arrays, handles, graphs, reports. The work is done
elsewhere: `launch.engine` is the machinery, and has the state.

Invariant: arrays, kernels and handles keep the engine alive, not the runtime. So a runtime has no
state of its own. If the program has dropped it, another one can stand for the same engine.
"""

# Long because: it is all that a program is promised of a runtime, with examples.

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyopencl as cl

# modules that a program may never need (recording, tracing, explaining) are imported later, because
# imports here make every start slower
from . import at_exit, closing, core, plans, transfers
from .calls import Calls, made
from .configuration import BACKENDS, create, create_emulated, plan
from .devices import Spec, kind
from .devices.build import build, driver_options, macro_options, words_of
from .devices.contexts import context_for
from .errors import UsageError, describe, no_attribute, no_copy, offered, refuse_options, truth
from .handle import Handle
from .host.call_sites import caller
from .host.replaced import need_threads
from .kernel import Kernel, origin_of
from .launch import bases
from .launch.books import Parts, register
from .launch.engine import Engine
from .launch.foreign_events import events_of
from .launch.moves import Moves
from .launch.several_handles import CutHandle
from .launch.waits import refuse_on_host_task
from .memory.array import Array
from .memory.blocks import store_for
from .memory.values import new_values, zero_of
from .memory.views import normal_dtype, normal_shape
from .options import BACKLOG, options, prefetches, scheduler_settings, spawning
from .program import Program, adopted_kernel, own_kernels, source_text
from .records import HostArray, Options, Plan, Report
from .scheduler.backend import Device
from .scheduler.policy import Choice

plans.use(Handle, CutHandle)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from .graph.graph import Graph
    from .launch.backend import Backend
    from .launch.observers import Tracer
    from .observe.explain import Explanation
    from .observe.measure import Measure
    from .observe.trace import Trace
    from .scheduler.sender import Settings


class Runtime:
    """Runs launches on one device in program order, and independent ones at the same time.

    - `device`: None, an index, a part of its name, or a `pyopencl.Device`. Or pass a `context`.
    - `backend`: 'auto', 'serial', 'out_of_order', 'lanes', 'device' or 'emulated'.
    - `issue`: when launches go to the device. 'eager': at once. 'ready_first': when all launches
      that they follow have ended.
    - `window`: how many launches the runtime watches at one time. None: no bound.
    - `lanes`: queues of backend 'lanes'. `lane_after`, `lane_new`: how launches choose one.
    - `backlog`: number of launches in flight at which the next one waits.
    - `memory`: memory of arrays, 'svm' or 'buffers'.
    - `devices`: several devices, as `[0, 1]` or `"all"`. `placement`: how launches are placed.
      `spread`: whether one launch may be cut and run on all of them. None: where that pays.
    - `trace`: record a timeline. `profiling`: the driver's queues keep times from the start.
    - `check`: 'access', 'order', 'uninitialised', 'leaks', or several of them.
    - `watchdog_s`: if nothing ends for so many seconds, report what runs.
    - `groups`, `slice_ms`: for the scheduler on the device.
    - `order`: which of several ready launches goes first, in recorded graphs and in the scheduler.
    - `predict`: recognise steps that repeat, and keep them on the device.
    - `prefetch`: let long uploads go ahead of launches that use their targets: 'auto', 'on' or
      'off'.
    - `dependencies`: what a launch is taken to touch of its arguments: 'exact', or GrCUDA's
      'with-const' and 'no-const'.
    - `bands`: how launches are cut into parts: 'early' (recorded ones of which a part may begin
      early), a number, 'auto', 'off', `acs.Row()`, `acs.Tile(rows, columns)` or
      `acs.Strided(parts)`.
    - `spawn`: what happens to items that kernels spawn: 'hungry', 'always', 'never', 'ccqs', or an
      `acs.Spawn`.
    - `emulate`: for backend 'emulated', a mapping with `machine`, `policy` and `durations`.

    The reference of options describes each in full.

    >>> import acs_cl as acs
    >>> with acs.Runtime() as rt:
    ...     prog = rt.build('''kernel void saxpy(global const float *x, global float *y, float a)
    ...                        { int i = get_global_id(0); y[i] += a * x[i]; }''')
    ...     x, y = rt.array([1, 2, 3], "f4"), rt.zeros(3, "f4")
    ...     handle = prog.saxpy((3,), None, x, y, 2)
    ...     print(y.get())
    [2. 4. 6.]
    """

    def __new__(cls, *words: object, **options: object) -> Runtime:
        """Refuse options that there are not, and say which one may be meant."""
        if cls.__init__ is Runtime.__init__:
            refuse_options(options, option_names())
        return super().__new__(cls)

    def __init__(
        self,
        device: Spec = None,
        *,
        context: cl.Context | None = None,
        backend: str = "auto",
        issue: str = "eager",
        window: int | None = None,
        lanes: int | None = None,
        backlog: int = BACKLOG,
        memory: str | None = None,
        trace: bool = False,
        check: object = None,
        watchdog_s: float | None = None,
        groups: int | None = None,
        slice_ms: float = 50.0,
        order: str = "first_in",
        lane_after: str = "auto",
        lane_new: str = "auto",
        predict: bool = True,
        prefetch: str = "off",
        dependencies: str = "exact",
        bands: object = "early",
        spawn: object = "hungry",
        emulate: Mapping[str, object] | None = None,
        profiling: bool = False,
        devices: object = None,
        placement: str = "min_finish",
        spread: bool | None = None,
    ) -> None:
        profiling = truth("profiling", profiling)
        if spread is not None:
            spread = truth("spread", spread, "True, False, or None: where that pays")
        given = Options(
            backend, issue, window, lanes, backlog, memory, trace, order=order,
            watchdog_s=watchdog_s, predict=predict, bands=bands, prefetch=prefetch,
            dependencies=dependencies,
        )  # fmt: skip
        asked = options(given, check)
        if emulate is not None and "emulated" not in (backend, asked.backend):
            raise UsageError(f"emulate= is for backend='emulated', got backend={backend!r}")
        children = spawning(spawn)
        lanes_by = lane_after, lane_new
        if devices is not None:
            alone = {"device": device, "context": context, "emulate": emulate}
            self._open_several(devices, placement, spread, asked, lanes_by, alone)
            return
        if isinstance(device, str) and device in BACKENDS and device != "device":
            raise UsageError(f"{device!r} is no device but a backend: write backend={device!r}")
        for name, is_asked in (("placement", placement != "min_finish"), ("spread", spread)):
            if is_asked:
                raise UsageError(f"{name}= is for several devices; name them in devices=")
        used_context, used_device = context_for(device, context)
        planned = plan(used_device, asked, lanes_by)

        def settings(window: int | None) -> Settings:
            return scheduler_settings(
                groups, slice_ms, order, window, bool(asked.watchdog_s), asked.trace, children
            )

        self._open_one(used_context, used_device, asked, planned, emulate, profiling, settings)

    def _open_one(
        self,
        context: cl.Context,
        device: cl.Device,
        asked: Options,
        planned: Plan,
        emulate: Mapping[str, object] | None,
        profiling: bool,
        settings: Callable[[int | None], Settings],
    ) -> None:
        """Put the parts together for one device. `settings`: of a scheduler on the device, with its
        window."""
        on_cpu, mixes = kind(device) == "CPU", planned.scheduler == "mix"
        store, table = store_for(context, device, planned.memory), core.native.Table()
        uploads = prefetches(asked.prefetch, on_cpu)
        queues = partial(
            create, planned.host, context, device, planned.lanes,
            planned.placing._replace(uploads=uploads),
        )  # fmt: skip
        if planned.backend == "emulated":
            runs: Backend = create_emulated(context, device, emulate)
        else:
            runs = queues(asked.trace or profiling or (mixes and on_cpu))
        if planned.scheduler != "no":
            inside = asked.window if planned.backend == "device" else None  # it has its own
            choice = Choice(on_cpu, device.max_compute_units) if mixes else None
            runs = Device(
                context, device, runs, store, planned.tier, settings(inside), choice, table
            )
        parts = Parts(
            context, device, asked, planned, store, runs, table,
            _tracer() if asked.trace else None, partial(queues, True),
        )  # fmt: skip
        engine = Engine(parts, _Calls(self))
        engine.prefetches = uploads and not runs.in_order
        self._open(engine, asked)

    def _open(self, engine: Engine, asked: Options) -> None:
        """Take calls from now on, with checks and a watchdog if they are asked for."""
        self._engine = engine
        if asked.check:
            from .check.checker import Checker

            engine.check(Checker(engine, asked.check))
        engine.open()
        if asked.watchdog_s:
            from .launch.watchdog import Watchdog

            engine.watchdog = dog = Watchdog(engine, asked.watchdog_s)
            dog.start()
        register(engine)

    def _open_several(
        self,
        devices: object,
        placement: str,
        spread: bool | None,
        asked: Options,
        lanes_by: tuple[str, str],
        given: Mapping[str, object],
    ) -> None:
        """Put the parts together for several devices."""
        from .several import team as several
        from .several.engine import SeveralEngine

        for name, value in given.items():
            if value is not None:
                raise UsageError(f"{name}= takes one device; name all of them in devices=")
        several.check(asked, placement)
        chosen = several.chosen(devices)
        planned = several.planned(plan(chosen[0], asked, lanes_by), len(chosen))
        team = several.open_team(chosen, planned, placement, spread, asked.trace)
        parts = Parts(
            team.contexts[0], chosen[0], asked, planned, team.store, team.backend,
            core.native.Table(), _tracer() if asked.trace else None, team.backend.with_times,
        )  # fmt: skip
        self._open(SeveralEngine(parts, _Calls(self), team), asked)

    # what `help`, and a shell that completes keywords, show of a call of the class
    __new__.__wrapped__ = __init__  # type: ignore[attr-defined]

    if not TYPE_CHECKING:  # a type checker would take any name then
        __getattr__ = no_attribute

    __dir__ = offered

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse options, which hold from the beginning, and names that mean nothing. A class that
        inherits may have names of its own."""
        kind = type(self)
        if name in option_names():
            raise AttributeError(
                f"the {name} of a runtime cannot be set: it is chosen when one is made, as "
                f"acs.Runtime({name}=…)"
            )
        if kind is Runtime and name != "_engine" and not hasattr(kind, name):
            raise AttributeError(f"a runtime has no attribute {name!r} that can be set")
        super().__setattr__(name, value)

    _moves: Moves | None = None
    """Kept here, since its kernels keep the engine alive."""

    @property
    def engine(self) -> Engine:
        """Return the machinery, for the library's own modules and for tests."""
        return self._engine

    @property
    def context(self) -> cl.Context:
        """Return the OpenCL context."""
        return self._engine.context

    @property
    def device(self) -> cl.Device:
        """Return the OpenCL device."""
        return self._engine.device

    @property
    def options(self) -> Options:
        """Return the options that the program gave."""
        return self._engine.options

    @property
    def plan(self) -> Plan:
        """Return the backend, lanes and memory in use, and the reason."""
        return self._engine.plan

    # ---- programs and arrays -------------------------------------------------------------------

    def build(
        self,
        source: str | Path,
        options: Sequence[str] = (),
        macros: Mapping[str, object] | None = None,
    ) -> Program:
        """Build OpenCL C from a text, or from a file if it is a path or ends in '.cl'.

        `options` of the compiler are a list or one text. `macros` become `-D` options, so their
        values have no blanks. Returns a `Program`, whose attributes are its kernels. Raises
        `BuildError` with the compiler's log if it does not build.

        >>> import acs_cl as acs
        >>> with acs.Runtime() as rt:
        ...     prog = rt.build("kernel void put(global int *x) { *x = N; }", macros={"N": 4})
        ...     print(prog.kernels)
        ('put',)
        """
        self._engine.check_open()
        text = source_text(source)
        words = driver_options(self.context, [*words_of(options), *macro_options(macros)])
        return Program(self._engine, build(self.context, self.device, text, words), text, words)

    def empty(self, shape: object, dtype: DTypeLike = np.float32) -> Array:
        """Make an array with undefined contents. `shape`: an integer or integers. Raises
        `OutOfMemory` if the device has no room."""
        self._engine.check_open()
        return self._engine.new_array(normal_shape(shape), normal_dtype(dtype))

    def zeros(self, shape: object, dtype: DTypeLike = np.float32) -> Array:
        """Make an array of zeros."""
        array = self.empty(shape, dtype)
        array.fill(zero_of(array.dtype))
        return array

    def array(self, values: ArrayLike, dtype: DTypeLike | None = None) -> Array:
        """Make an array with the values of a NumPy array, or of anything `numpy.asarray` takes.

        Without `dtype`, numbers of NumPy keep their own, in lists, too. Floats of Python become
        float32, and integers of Python int64: write `rt.array([1, 2, 3], "i4")` for a kernel that
        takes `int *`. Raises `UsageError` for values that the dtype cannot hold, as `set` does.
        """
        host = new_values(values, None if dtype is None else normal_dtype(dtype))
        array = self.empty(host.shape, host.dtype)
        array.set(host)
        return array

    def pinned(self, shape: object, dtype: DTypeLike = np.float32) -> HostArray:
        """Make a NumPy array in host memory that the device copies from and to at full speed."""
        self._engine.check_open()
        return transfers.pinned(self._engine, normal_shape(shape), normal_dtype(dtype))

    def prebuild(self, *kernels: object) -> None:
        """Build kernels into the scheduler of backend 'device' now, and wait for it.

        Otherwise kernels are built while the program runs. Give a kernel that works in groups with
        its local size: `rt.prebuild(prog.step, (prog.reduce, (64,)))`. Other backends do nothing.
        """
        self._engine.check_open()
        engine = self._engine
        engine.backend.prepare([origin_of(engine, kernel) for kernel in kernels])

    # ---- launching -----------------------------------------------------------------------------

    def launch(
        self,
        kernel: Kernel | cl.Kernel,
        global_size: object,
        local_size: object,
        *args: object,
        **keywords: Any,
    ) -> Handle:
        """Launch any `pyopencl.Kernel` of this context (or one of ours), as a kernel's call does.

        The kernel is cloned, so what `set_arg` gave the original one stays.
        """
        self._engine.check_open()
        if not isinstance(kernel, Kernel):
            kernel = adopted_kernel(self._engine, kernel)
        elif kernel.engine is not self._engine:
            raise UsageError(
                f"launch: kernel {kernel.name!r} belongs to another runtime; launch it there, or "
                "build its program with this one"
            )
        handle: Handle = kernel(global_size, local_size, *args, **keywords)
        return handle

    def call(
        self,
        function: Callable[..., object],
        reads: object = None,
        writes: object = None,
        wait_for: Sequence[cl.Event] | None = None,
    ) -> Handle:
        """Run a Python function as a host task, in a thread, when its inputs are ready.

        The function gets a NumPy copy of each array in `reads`, then one for each in `writes`,
        and stores results in place: `y[:] = 2 * x`. All of these are copied back. So an array in
        `writes` alone comes with undefined contents, and each element has to be stored; one in
        both comes once, with its values. What the function returns is what `wait()` of the handle
        gives. If it raises, the arrays in `writes` are poisoned.

        >>> import acs_cl as acs
        >>> with acs.Runtime() as rt:
        ...     x, y = rt.array([1.0, 2.0]), rt.zeros(2)
        ...     def double(x, y):
        ...         y[:] = 2 * x
        ...         return x.sum()
        ...     print(rt.call(double, reads=x, writes=y).wait(), y.get())
        3.0 [2. 4.]
        """
        self._engine.check_open()
        if not callable(function):
            raise UsageError(f"a host task has to be callable, got {type(function).__name__}")
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            raise UsageError(
                f"host task {function.__name__!r}: a call of it runs nothing, since it is async or "
                "yields; give a plain function"
            )
        need_threads("rt.call")
        events = events_of(wait_for)
        return made(transfers.host_task, self._engine, function, reads, writes, events, caller())

    def record(self) -> Graph:
        """Capture the launches of this thread in `with rt.record() as graph:`, without running
        them.

        `graph.replay()` runs all of them.
        """
        from .graph.graph import Graph

        self._engine.check_open()
        return Graph(self._engine)

    def load(self, path: str | Path | IO[bytes], /, **arrays: Array) -> Graph:
        """Make a graph from a file that `Graph.save` wrote.

        Its named arrays are `graph.arrays`. Arrays that are given here, of the same shape and
        dtype, replace them. The bytes that launches touch are inferred again, for this device.

        A file holds kernels. The driver builds them and replays run them, so load only files that
        you trust.
        """
        from .graph.files import read
        from .graph.loading import load

        self._engine.check_open()
        self._engine.refuse_in_recording("load")
        return load(self._engine, read(path), self.build, self.empty, arrays)

    def finish(self) -> None:
        """Wait for everything launched so far. Raise the first failure not reported before."""
        engine = self._engine
        engine.check_open()
        engine.refuse_in_recording("finish")
        refuse_on_host_task("finish")
        tracer = engine.tracer
        if tracer is not None:
            tracer.called()
        engine.sync()
        engine.drain()
        if tracer is not None:
            tracer.waited()
        engine.failures.raise_untold()

    def flush(self) -> None:
        """Make sure that the device starts on everything it can."""
        engine = self._engine
        engine.check_open()
        if not len(engine.table):
            return
        with engine.lock:
            if engine.table.held or engine.foreign:  # else there is nothing to move along
                engine.pump()
            engine.backend.flush()

    def close(self) -> None:
        """Finish, then release queues and memory. Launches that still wait for foreign events are
        given up. It may be called twice."""
        self._engine.refuse_in_recording("close")
        closing.close(self._engine, quiet=False)

    def __enter__(self) -> Runtime:
        self._engine.check_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        at_exit.leave(self._engine, kind)

    def __repr__(self) -> str:
        return repr(self._engine)

    def __reduce__(self) -> NoReturn:
        no_copy(self, "a runtime", "each process makes its own")

    # ---- asking --------------------------------------------------------------------------------

    def stats(self) -> Report:
        """Return counts as a dict: 'launches', 'edges' by kind, 'lanes', 'memory', and others.

        'why' is the reason for the backend.
        """
        from .observe.stats import report

        with self._engine.lock:
            self._note_ends()
            bases.take_back(self._engine)  # memory that nobody has any more is not in use
            return report(self._engine)

    def explain(self, first: Handle, second: Handle | None = None) -> Explanation:
        """Say which bytes order two launches, or that nothing does.

        For one launch, say where it runs and why, and what was inferred for each of its arguments.
        If it does not run yet, say what it waits for.
        """
        from .graph.handles import RecordedHandle, ReplayHandle
        from .observe.explain import explain

        if second is None and isinstance(first, (RecordedHandle, ReplayHandle)):
            return first.explain()
        for one in (first,) if second is None else (first, second):
            if not isinstance(one, Handle):
                from .graph.graph import Graph

                hint = "; replay() of it returns one" if isinstance(one, Graph) else ""
                raise UsageError(f"explain takes handles of launches, got {describe(one)}{hint}")
            if one.engine is not self._engine:
                raise UsageError(f"explain: launch {one.number} ({one.name}) is of another runtime")
        if first is second:
            raise UsageError("explain: both are the same launch; explain(a) tells about one")
        with self._engine.lock:
            self._note_ends()
        return explain(self._engine, first, second)

    def _note_ends(self) -> None:
        """Poll, if any epoch was sent: the core may have waited for one without telling. With lanes
        alone there is no poll, because it would change the edges."""
        if not self._engine.state and self._engine.backend.has_epochs:
            self._engine.pump()

    @property
    def trace(self) -> Trace:
        """Return the timeline, if the runtime was made with `trace=True`."""
        from .observe.trace import timeline

        self._engine.gather_runs()
        return timeline(self._engine.tracer)

    def measure(self) -> Measure:
        """Measure the block `with rt.measure() as m:`.

        Both ends of the block wait for everything launched so far. Afterwards use `print(m)`,
        `m.phases`, `m.explain("merge#3")`, `m.advice()`, `m.report("step.html")` or
        `m.save("step.json")`.
        """
        self._engine.check_open()
        self._engine.refuse_in_recording("measure")
        from .observe.measure import Measure

        return Measure(self._engine)

    def dag(self, path: str | Path) -> None:
        """Write the graph of launches that were traced and have ended: '.dot', '.graphml' or
        '.json'.

        Nodes are launches with their sizes, routes and times. Edges have kinds and bytes. A
        recorded graph and a measured block have the same method, and need no `trace=True`.
        """
        from .observe.dag import of_slices, save

        save(of_slices(self.trace.slices), path)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Name the launches of this thread in the block, for measurements and traces."""
        tracer = self._engine.tracer
        if tracer is None:
            yield
            return
        before = tracer.enter(str(name))
        try:
            yield
        finally:
            tracer.enter(before)


def option_names() -> set[str]:
    """Return the names of all options of a runtime."""
    return {"device", *(Runtime.__init__.__kwdefaults__ or ())}


class _Calls(Calls):
    """Also knows the runtime of an engine: the program's own one while it is alive."""

    def __init__(self, runtime: Runtime) -> None:
        self._kind = type(runtime)
        self._runtime = weakref.ref(runtime)
        self._moves: Callable[[], Moves | None] = lambda: None

    def runtime(self, engine: Engine) -> Runtime:
        """Return the runtime that the program holds."""
        found = self._runtime()
        if found is None:
            found = object.__new__(self._kind)
            found._engine = engine
            self._runtime = weakref.ref(found)
        return found

    def moves(self, engine: Engine) -> Moves:
        """Return what makes moves by kernels."""
        found = self._moves()
        if found is None:
            found = Moves(engine, partial(own_kernels, engine, "moves.cl"))
            self.runtime(engine)._moves, self._moves = found, weakref.ref(found)
        return found


def _tracer() -> Tracer:
    from .observe.trace import Trace

    return Trace()
