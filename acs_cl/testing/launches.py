"""Launches of a runtime under way, their routes, and a gate that holds launches back.

Input: a runtime, or an object made by one. Output: plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import NamedTuple

import pyopencl as cl

from .. import program as programs
from ..access import inference
from ..devices import driver
from ..errors import UsageError
from ..handle import Handle
from ..kernel import Kernel
from ..memory.array import Array
from ..program import Program, engine_of
from ..queue.queue import Queue
from ..records import Span
from ..runtime import Runtime
from .changing import changed


def runtime_of(owner: Program | Queue) -> Runtime:
    """Return the runtime that made a program, or that a queue launches on."""
    if isinstance(owner, Queue):
        return owner.runtime
    found: Runtime = engine_of(owner).runtime()
    return found


def span_of(array: Array) -> Span:
    """Return the bytes that an array covers, as in the accesses of launches."""
    if array.span is None:
        raise UsageError(f"no one span of bytes covers {array}")
    return array.span


def driver_queues(runtime: Runtime) -> list[cl.CommandQueue]:
    """Return the queues of the driver that a runtime on the host launches on."""
    return list(runtime.engine.backend.queues)


def launched(runtime: Runtime) -> int:
    """Return how many launches there were: the number of the newest one."""
    return int(runtime.stats()["launches"])


def in_flight(runtime: Runtime) -> int:
    """Return how many launches were made whose end the runtime has not noted yet."""
    stats = runtime.stats()
    return int(stats["launches"] - stats["retired"])


def is_in_flight(runtime: Runtime, launch: Handle | cl.Event) -> bool:
    """Return whether one launch is in flight, by its handle or by its event from a queue."""
    number = launch.number if isinstance(launch, Handle) else getattr(launch, "acs_number", 0)
    return number in runtime.engine.table


def made_by_core(runtime: Runtime) -> int:
    """Return how many launches the core has made so far, from its plans of earlier ones."""
    return runtime.engine.table.by_core


@contextmanager
def calls_by_python() -> Iterator[list[str]]:
    """Collect the names of the kernels whose calls the core leaves to Python."""
    found: list[str] = []
    call: Callable[..., object] = vars(Kernel)["_call"]

    def noted(kernel: Kernel, *args: object, **keywords: object) -> object:
        found.append(kernel.name)
        return call(kernel, *args, **keywords)

    with changed(Kernel, "_call", noted):
        yield found


@contextmanager
def planned_by_python(runtime: Runtime) -> Iterator[None]:
    """Have every launch of the block made by Python."""
    table = runtime.engine.table
    before, table.usable = table.usable, False
    try:
        yield
    finally:
        table.usable = before


def is_at_rest(runtime: Runtime) -> bool:
    """Return whether the runtime keeps nothing for any launch: none live, ordered or in the
    window."""
    with runtime.engine.lock:
        return len(runtime.engine.table) == runtime.engine.hazards.live == 0


def seen_complete(queue: Queue) -> int:
    """Return the last launch for which a queue knows that it and all earlier ones have ended."""
    return int(queue.complete)


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Ask again and again until a condition holds; raise `AssertionError` if it never does."""
    until = perf_counter() + seconds
    while not condition():
        assert perf_counter() < until, f"{condition} did not hold within {seconds:g} s"


class Routes(NamedTuple):
    """Number of launches by route."""

    scheduler: int
    lanes: int
    bypass: int


def routes(runtime: Runtime) -> Routes:
    """Count the launches of a runtime by route."""
    stats = runtime.stats()
    inside = stats.get("scheduler", {}).get("tasks", 0)
    return Routes(inside, sum(stats["lanes"].values()), stats["straight"])


class Gate:
    """Holds back launches that name its event in `wait_for`."""

    def __init__(self, context: cl.Context) -> None:
        self.event = cl.UserEvent(context)
        self.is_open = False

    def open(self) -> None:
        """Let the launches run."""
        self._end(cl.command_execution_status.COMPLETE)

    def fail(self, status: int = -5) -> None:
        """End the event with an error, which its launches share."""
        self._end(status)

    def _end(self, status: int) -> None:
        if not self.is_open:
            self.is_open = True
            self.event.set_status(status)


@contextmanager
def hold(runtime: Runtime) -> Iterator[Gate]:
    """Give a gate that is opened at the end of the block, if not before."""
    gate = Gate(runtime.context)
    try:
        yield gate
    finally:
        gate.open()


@contextmanager
def scarce_memory(runtime: Runtime, refusals: int = 2) -> Iterator[None]:
    """Make the device refuse the first allocations of the runtime."""
    reserve = runtime.engine.store.reserve
    refused: list[int] = []

    def scarce(size: int) -> object:
        if len(refused) < refusals:
            refused.append(size)
            raise cl.MemoryError("no more")
        return reserve(size)

    with changed(runtime.engine.store, "reserve", scarce):
        yield


@contextmanager
def no_memory(runtime: Runtime) -> Iterator[None]:
    """Make every allocation of the runtime wait for memory in vain."""
    with changed(runtime.engine.store, "allocate", lambda nbytes, is_live: None):
        yield


class Transfers(NamedTuple):
    """Events by their addresses: of transfers as they were begun, and of each wait."""

    begun: list[int]
    waits: list[list[int]]


@contextmanager
def own_transfers() -> Iterator[Transfers]:
    """Collect the transfers that the library makes for itself in the block, and its waits."""
    found = Transfers([], [])
    wait = driver.wait_for_events

    def noted(transfer: Callable[..., cl.Event]) -> Callable[..., cl.Event]:
        def begin(*arguments: object) -> cl.Event:
            event = transfer(*arguments)
            found.begun.append(event.int_ptr)
            return event

        return begin

    def waited(events: list[cl.Event]) -> None:
        if events:
            found.waits.append([event.int_ptr for event in events])
        wait(events)

    with (
        changed(driver, "read", noted(driver.read)),
        changed(driver, "write", noted(driver.write)),
        changed(driver, "wait_for_events", waited),
    ):
        yield found


def launched_without_events(runtime: Runtime) -> int:
    """Return how many launches the core has made without an event of their own."""
    queues = runtime.engine.backend.core_queues
    return queues.bare if queues is not None else 0


def expect_no_events(runtime: Runtime) -> None:
    """Make the core launch without events from now on, as if none had been needed lately."""
    queues = runtime.engine.backend.core_queues
    if queues is not None:
        queues.unasked_enough = 0


@contextmanager
def untold_programs(arguments: bool = False) -> Iterator[None]:
    """Make the driver hide the program of each kernel, and also its arguments, if asked."""
    with ExitStack() as changes:
        changes.enter_context(changed(programs, "_program_of", lambda kernel: None))
        if arguments:
            changes.enter_context(changed(inference, "from_arg_info", lambda kernel: None))
        yield
