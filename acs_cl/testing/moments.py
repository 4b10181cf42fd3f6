"""A call at a named moment inside the runtime, and a process that knows nothing yet.

In: a moment, a limit, or nothing. Out: `with` blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from pyopencl import _cl

from ..access import inference
from ..check import checker, passes
from ..devices import contexts, pocl
from ..host import files, isolated
from ..launch import dispatch, ends, engine, gates, waits
from ..launch.engine import Engine
from ..observe import trace
from ..opencl_c import cache
from ..opencl_c.parse import macros
from ..queue import sampling
from ..scheduler import builds
from .changing import changed

MOMENTS: dict[str, tuple[object, str, bool]] = {
    "before an end is noted": (ends, "retire_one", False),
    "before ends are told": (Engine, "completed", False),
    "after ends are noted": (Engine, "completed", True),
    "before foreign events are looked at": (ends, "look_at_gates", False),
    "before a wait for one of several": (waits, "_wait_for_any", False),
    "before a wait for room goes on": (gates.Patience, "spend", False),
    "before a bypass": (sampling.Section, "begin", False),
}
"""Where each is: what has the function, its name, and whether the moment is behind it."""

LIMITS: dict[str, tuple[object, str]] = {
    "launches that are always checked": (passes, "FIRST"),
    "freed bytes that checks keep": (checker, "QUARANTINE_BYTES"),
    "programs of a context": (contexts, "KEPT"),
    "seconds without room": (gates, "PATIENCE_S"),
    "seconds of a build": (builds, "LONG_BUILD_S"),
    "entries of the cache": (cache, "ENTRIES_MAX"),
    "entries until the cache is trimmed": (cache, "_stores_until_trim"),
}
"""Where each is."""


@contextmanager
def at(moment: str, call: Callable[[], object]) -> Iterator[None]:
    """Call a function at one of `MOMENTS`, each time that it comes."""
    where, name, is_after = MOMENTS[moment]
    before = getattr(where, name)

    def come(*arguments: object) -> object:
        if is_after:
            before(*arguments)
        call()
        return None if is_after else before(*arguments)

    with changed(where, name, come):
        yield


@contextmanager
def interrupted(moment: str, error: BaseException, times: int = 1) -> Iterator[list[int]]:
    """Raise an error at one of `MOMENTS` inside the runtime, the first times that it comes.

    The list has a number for each time that it was raised.
    """
    raised: list[int] = []

    def interrupt() -> None:
        if len(raised) < times:
            raised.append(len(raised) + 1)
            raise error

    with at(moment, interrupt):
        yield raised


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
    """Collect the modules that ran in processes of their own, and whether each ended well."""
    ask = isolated.ask
    found: list[tuple[str, bool]] = []

    def asked(module: str, *arguments: object) -> bool:
        is_well: bool = ask(module, *arguments)  # type: ignore[arg-type]
        found.append((module.rpartition(".")[2], is_well))
        return is_well

    with changed(isolated, "ask", asked):
        yield found


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
        changed(pocl, "_repaired", {}),
    ):
        yield
