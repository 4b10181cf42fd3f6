"""Other limits, another clock, threads that are not started, compilers that are listened to, and a
process that knows nothing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import sleep

from pyopencl import _cl

from acs_cl.access import inference
from acs_cl.check import checker, leaks, passes
from acs_cl.devices import contexts, pocl
from acs_cl.host import files, isolated
from acs_cl.host.threads import Poller
from acs_cl.launch import dispatch, engine, foreign_events, watchdog
from acs_cl.observe import trace
from acs_cl.opencl_c import cache
from acs_cl.opencl_c.parse import macros
from acs_cl.runtime import Runtime
from acs_cl.scheduler import apart, builds
from acs_cl.testing import wait_until
from acs_cl.testing.changing import changed

LIMITS: dict[str, tuple[object, str]] = {
    "launches that are always checked": (passes, "FIRST"),
    "lines that the check of leaks keeps": (leaks, "SITES"),
    "freed bytes that checks keep": (checker, "QUARANTINE_BYTES"),
    "programs of a context": (contexts, "KEPT"),
    "seconds without room": (foreign_events, "PATIENCE_S"),
    "seconds of a build": (builds, "LONG_BUILD_S"),
    "entries of the cache": (cache, "ENTRIES_MAX"),
    "entries until the cache is trimmed": (cache, "_stores_until_trim"),
}
"""Where each is."""


@contextmanager
def limit(what: str, value: float) -> Iterator[None]:
    """Make one of `LIMITS` another number for a while."""
    where, name = LIMITS[what]
    with changed(where, name, value):
        yield


@contextmanager
def host_clock(read_ns: Callable[[], int]) -> Iterator[None]:
    """Have timelines read another clock than the host's for a while."""
    with ExitStack() as put_back:
        for module in (dispatch, engine, trace):
            put_back.enter_context(changed(module, "perf_counter_ns", read_ns))
        yield


@contextmanager
def watchdog_clock(read: Callable[[], float]) -> Iterator[None]:
    """Have watchdogs read another clock for a while."""
    with changed(watchdog, "perf_counter", read):
        yield


_start = Poller.start


@contextmanager
def unattended() -> Iterator[list[Poller]]:
    """Have no thread of ours move launches along in the block: the calls of the program do. The
    list has each that would have been started.

    Such a thread takes the lock of its runtime now and then. The core leaves what comes meanwhile
    to Python, and gives up what it has foreseen. So tests that count what the core does are
    unattended.
    """
    asked: list[Poller] = []
    with changed(Poller, "start", lambda poller: asked.append(poller)):
        yield asked


@contextmanager
def attended(runtime: Runtime) -> Iterator[None]:
    """Have a thread move the launches of an unattended runtime along from now on, and wait for its
    end behind the block."""
    with changed(Poller, "start", _start):
        runtime.engine.progress.start()
        yield
    wait_until(lambda: not runtime.engine.progress.is_running)


def wait_until_it_stands_still(thread: threading.Thread) -> None:
    """Wait until a thread waits inside the library: it is where it was ten looks ago."""
    seen: list[object] = []

    def stands_still() -> bool:
        sleep(0.01)
        frame = sys._current_frames().get(thread.ident or 0)
        where = frame and (frame.f_code, frame.f_lasti)
        is_inside = frame is not None and "acs_cl" in frame.f_code.co_filename
        seen[:] = [*seen, where] if is_inside and {*seen} <= {where} else []
        return len(seen) == 10

    wait_until(stands_still)


@contextmanager
def compiling(told: Callable[[str], object]) -> Iterator[None]:
    """Tell a function each text that a driver is to compile, in the thread that asks for it.

    What the function raises comes instead of a program.
    """
    build: Callable[..., object] = _cl._Program._build

    def compiled(program: _cl._Program, *arguments: object) -> object:
        told(str(program.get_info(_cl.program_info.SOURCE)))
        return build(program, *arguments)

    with changed(_cl._Program, "_build", compiled):
        yield


@contextmanager
def helpers() -> Iterator[list[tuple[str, bool]]]:
    """Collect what processes of their own were asked for, and whether each order ended well.

    However busy the machine is, they get as much of it as this process.
    """
    ask = isolated.Helper.ask
    found: list[tuple[str, bool]] = []

    def asked(helper: isolated.Helper, order: isolated.Order) -> bool:
        is_well = ask(helper, order, 600.0)
        found.append((order["what"], is_well))
        return is_well

    with (
        changed(isolated.Helper, "ask", asked),
        changed(isolated, "MODEST", isolated.MODEST._replace(lower=0)),
    ):
        yield found


@contextmanager
def during_translations(call: Callable[[], object]) -> Iterator[None]:
    """Call something whenever a source is to be translated in a process of its own, which fails."""

    with changed(apart.Apart, "translate", lambda *_: call() and None):
        yield


@contextmanager
def new_process() -> Iterator[None]:
    """Forget for a while what this process knows about programs and their compiler.

    What is on disk stays known: set ACS_CL_CACHE for another folder.
    """
    with (
        changed(inference, "_programs", {}),
        changed(macros, "_known", {}),
        changed(macros, "_untold", {}),
        changed(files, "_told", set()),
        changed(contexts, "_shared", {}),
        changed(contexts, "_given", {}),
        changed(pocl, "_repaired", {}),
    ):
        yield
