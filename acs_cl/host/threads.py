"""Threads: one moves held launches along, a few run host tasks, and one is a clock.

Input: `Engine.pump` (still needed? moved anything?), called under the runtime's lock. Output:
nothing. Threads exist only while they have work. So a program without host tasks, foreign events,
`ready_first` or a full window has no thread of ours. They keep the runtime alive only while they
work.

Every thread of ours begins by `start`, so that the end of the program ends them all. If the
interpreter ends one inside the core, or inside a compiler, the process crashes.
"""

# Long because: all threads begin and end in one way.

from __future__ import annotations

import atexit
import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from time import perf_counter, sleep

try:  # `queue` loads its other kinds of queues, too
    from _queue import Empty, SimpleQueue
except ImportError:  # another interpreter
    from queue import Empty, SimpleQueue

from .. import core
from ..records import Protocol
from .replaced import need_threads

SHORTEST_SLEEP_S = 50e-6
LONGEST_SLEEP_S = 2e-3
IDLE_S = 0.2
"""How long a thread stays without work, so that short tasks do not start a thread each."""

HOST_THREADS = 4

LAST_S = 1.0
"""How long an ending program waits for each thread, and the interpreter for one in a compiler."""

TICK_S = 0.1
"""How long a join lasts before it tests again whether it is too late."""

FAILED = 1
"""Exit status of a program that has to be ended by force."""

_leaves = threading.Event()
"""The program ends, and needs no more threads."""

stops: list[Callable[[], None]] = []
"""Called when the program ends: they stop what its threads may wait for."""


class Worker(Protocol):
    """Owns threads that must end by themselves, because they may be in any code."""

    def close(self) -> None:
        """Ask its threads to end soon."""

    @property
    def is_late(self) -> bool:
        """Tell whether waiting for them should stop."""


_threads: dict[threading.Thread, Worker | None] = {}

FRAMES = 25
"""More than is needed to start a thread, to begin with a task, or to hand on what has ended. If a
`RecursionError` came in the middle of it, something would be waited for for ever."""


def start(work: Callable[[], object], name: str, worker: Worker | None = None) -> threading.Thread:
    """Run some work in a thread. An ending program waits a moment for it; for a worker's thread it
    waits until `is_late`. If a worker's thread has not ended then, drivers do nothing at exit."""

    def run() -> None:
        try:
            work()
        finally:
            _threads.pop(threading.current_thread(), None)

    need_stack()
    need_threads(name)
    thread = threading.Thread(target=run, name=name, daemon=True)
    _threads[thread] = worker
    try:
        thread.start()
    except RuntimeError:  # an ending interpreter starts none, nor does a machine with too many
        del _threads[thread]
        raise
    return thread


def need_stack() -> None:
    """Raise a `RecursionError` now, if there is no stack for `FRAMES` frames."""
    core.native.need_stack(FRAMES)


@atexit.register
def _end_threads() -> None:
    _leaves.set()
    threads = [one for one in _threads.items() if one[0].is_alive()]
    for one in {worker for _, worker in threads if worker is not None}:
        one.close()
    for stop in stops:
        stop()
    with contextlib.suppress(KeyboardInterrupt):  # an interrupted user waits no longer
        for thread, worker in threads:
            thread.join(LAST_S)
            while worker is not None and thread.is_alive() and not worker.is_late:
                thread.join(TICK_S)
    if any(thread.is_alive() for thread, worker in threads if worker is not None):
        core.native.end_process(LAST_S, FAILED, "any", threads)


@contextlib.contextmanager
def turns(wanted: bool = True) -> Iterator[None]:
    """Let the calling thread have the GIL in turns with threads that launch. Otherwise each file
    that it reads, and each command to a driver, would cost it 5 ms beside them. If not `wanted`,
    it goes without turns for a while, since it only waits."""
    did = core.native.want_turns(wanted)
    try:
        yield
    finally:
        core.native.want_turns(did)


on_host_task = core.native.on_host_task
"""Tells whether the calling thread runs a host task: it must not wait for launches."""


class Poller:
    """Polls while launches are held, since there may be no API call to dispatch them.
    `program_polls`: whether the program has launched since the last question, and so polls by
    itself."""

    def __init__(
        self,
        pump: Callable[[], tuple[bool, bool]],
        program_polls: Callable[[], bool],
        lock: AbstractContextManager[object],
    ) -> None:
        self._pump = weakref.WeakMethod(pump)
        self._program_polls = weakref.WeakMethod(program_polls)
        self._lock = lock
        self._running = False
        # weak, so that an unused runtime goes at once; the thread holds it while it works

    @property
    def is_running(self) -> bool:
        """Tell whether there is a thread at the moment."""
        return self._running

    def start(self) -> None:
        """Start the thread, if there is none. Called under the lock."""
        if not self._running:
            pump, program_polls = self._pump(), self._program_polls()
            assert pump is not None
            assert program_polls is not None
            self._running = True
            try:
                start(partial(self._poll, pump, program_polls), "acs_cl progress")
            except RuntimeError:  # calls of the program move launches along, and try again
                self._running = False

    def _poll(
        self, pump: Callable[[], tuple[bool, bool]], program_polls: Callable[[], bool]
    ) -> None:
        pause = SHORTEST_SLEEP_S
        idle_since = None
        while not _leaves.is_set():
            if not program_polls():  # else a poll would only delay the program
                with self._lock:
                    try:
                        needed, moved = pump()
                    except BaseException:  # the next launch that needs it starts it again
                        self._running = False
                        raise
                    if moved:
                        pause = SHORTEST_SLEEP_S
                    if needed:
                        idle_since = None
                    elif idle_since is None:
                        idle_since = perf_counter()
                    elif perf_counter() - idle_since > IDLE_S:
                        self._running = False
                        return
            sleep(pause)
            pause = min(pause * 1.5, LONGEST_SLEEP_S)


class Clock:
    """Calls a method every so many seconds, until it returns False, its object is gone or somebody
    closes the clock. An error is told as one that ends a thread, and the calls go on."""

    def __init__(self, name: str, seconds: float, call: Callable[[], bool]) -> None:
        self._name = name
        self._seconds = seconds
        self._call = weakref.WeakMethod(call)
        # an event would not do: the collector may close the clock in the middle of its wait
        self._ends: SimpleQueue[None] = SimpleQueue()

    def start(self) -> None:
        """Start the calls."""
        start(self._run, self._name, self)

    def close(self) -> None:
        """End the thread. It makes no more calls."""
        self._ends.put(None)

    @property
    def is_late(self) -> bool:
        """Wait no longer for its thread than for others at the end of the program."""
        return True

    def _rests(self) -> bool:
        """Wait until the next call. Return False if there is none."""
        try:
            self._ends.get(timeout=self._seconds)
        except Empty:
            return True
        return False

    def _run(self) -> None:
        while self._rests():
            call = self._call()
            if call is None:
                return
            try:
                goes_on = call()
            except Exception as error:  # of a driver, or a bug: later calls may do better
                thread = threading.current_thread()
                told = threading.ExceptHookArgs((type(error), error, error.__traceback__, thread))
                threading.excepthook(told)
                goes_on = True
            if not goes_on:
                return
            del call


class HostTasks:
    """Up to `HOST_THREADS` threads that run tasks in order of arrival. Where no thread can be
    started, tasks run in a thread that waits for them."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = 0
        self._busy = 0
        # the collector may call code of the program, which comes here again
        self._lock = threading.RLock()

    @property
    def busy(self) -> bool:
        """Tell whether any task is running or waiting."""
        return self._busy > 0

    def run(self, task: Callable[[], None]) -> None:
        """Run `task` soon; it must not raise."""
        need_stack()
        with self._lock:
            self._busy += 1
            self._queue.put(task)
            if self._threads < min(self._busy, HOST_THREADS):
                self._threads += 1
                try:
                    start(self._work, "acs_cl host task", self)
                except RuntimeError:  # others run it, or who waits for it
                    self._threads -= 1

    @property
    def need_help(self) -> bool:
        """Tell whether tasks wait for a thread that could not be started."""
        return self._busy > 0 and not self._threads

    def help(self) -> None:
        """Run a task in the calling thread, which waits for it."""
        need_stack()
        with contextlib.suppress(Empty):
            task = self._queue.get_nowait()
            if task is not None:
                core.native.mark_host_task(True)
                try:
                    self._run(task)
                finally:
                    core.native.mark_host_task(False)

    def close(self) -> None:
        """End threads without a task."""
        for _ in range(HOST_THREADS):
            self._queue.put(None)

    @property
    def is_late(self) -> bool:
        """Do not wait for tasks: runtimes have waited for theirs."""
        return True

    def _work(self) -> None:
        core.native.mark_host_task(True)
        while True:
            try:
                task = self._queue.get(timeout=IDLE_S)
            except Empty:
                with self._lock:
                    if not self._queue.empty():
                        continue
                    self._threads -= 1
                    return
            if task is None:
                return
            with turns():
                self._run(task)
            del task

    def _run(self, task: Callable[[], None]) -> None:
        task()
        del task  # the frames of a task's error know this frame, and are kept
        with self._lock:
            self._busy -= 1
