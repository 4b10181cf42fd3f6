"""Launches of a runtime: who plans them, on which queues they go, and a device without memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, NamedTuple

import pyopencl as cl

from acs_cl import program as programs
from acs_cl import transfers, versions
from acs_cl.access import inference
from acs_cl.devices import driver
from acs_cl.devices.build import build
from acs_cl.kernel import Kernel
from acs_cl.queue import refusals
from acs_cl.queue.queue import Queue
from acs_cl.records import Launch
from acs_cl.runtime import Runtime
from acs_cl.testing import Gate, hold
from acs_cl.testing.changing import changed


def driver_queues(runtime: Runtime) -> list[cl.CommandQueue]:
    """Return the queues of the driver that a runtime on the host launches on."""
    return list(runtime.engine.backend.queues)


HELD_S = 60.0
"""After so long what is held goes on by itself: who waits for it all the same fails, and does not
hang."""


@contextmanager
def held_by_driver(runtime: Runtime) -> Iterator[Gate]:
    """Have the driver hold what it gets until a gate is opened, at the end of the block at the
    latest. Of what is launched there nothing has ended, however busy the machine is."""
    backend = runtime.engine.backend
    with hold(runtime) as gate:
        for queue in (*backend.queues, *getattr(getattr(backend, "lanes", 0), "queues", ())):
            cl.enqueue_barrier(queue, wait_for=[gate.event])
            queue.flush()
        timer = threading.Timer(HELD_S, gate.open)
        timer.start()
        try:
            yield gate
        finally:
            timer.cancel()


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
def reads_by_python() -> Iterator[list[object]]:
    """Collect the arrays whose reads the core leaves to Python."""
    found: list[object] = []
    read = transfers.read

    def noted(engine: Any, array: Any, out: object) -> Any:
        found.append(array)
        return read(engine, array, out)

    with changed(transfers, "read", noted):
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


def seen_complete(queue: Queue) -> int:
    """Return the last launch for which a queue knows that it and all earlier ones have ended."""
    return int(queue.told.complete)


@contextmanager
def scarce_events() -> Iterator[list[bool]]:
    """Have runtimes that are made in the block fail to make each third event of the driver for
    Python, while the list holds something."""
    real, calls, are_scarce = cl.Event.from_int_ptr, list[int](), list[bool]()

    def made(pointer: int, retain: bool = True) -> cl.Event:
        calls.append(pointer)
        if are_scarce and len(calls) % 3 == 0:
            raise MemoryError("there is no room for an event")
        return real(pointer, retain)

    with changed(cl.Event, "from_int_ptr", made):
        yield are_scarce


@contextmanager
def scarce_memory(runtime: Runtime) -> Iterator[None]:
    """Make the device refuse the first two allocations of the runtime."""
    reserve = runtime.engine.store.reserve
    refused: list[int] = []

    def scarce(size: int) -> object:
        if len(refused) < 2:
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


@contextmanager
def refusing(runtime: Runtime, error: Exception) -> Iterator[None]:
    """Make the backend refuse every launch that Python plans."""

    def refuse(_: object) -> None:
        raise error

    with changed(runtime.engine.backend, "submit", refuse):
        yield


@contextmanager
def kernels_of_two_threads() -> Iterator[None]:
    """Have two threads that make a kernel, or a version of one, do so at once: each begins to make
    it before the other one has it, and neither goes on before both have it."""
    both = threading.Barrier(2)

    def together(function: Callable[..., Any], *args: Any) -> Any:
        both.wait(30)
        result = function(*args)
        both.wait(30)
        return result

    def met(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: together(function, *args)

    with (
        changed(programs, "OwnKernel", met(driver.OwnKernel)),
        changed(versions, "build", met(build)),
        changed(versions.Versions, "native", met(versions.Versions.native)),
    ):
        yield


@contextmanager
def uneven_groups(runtime: Runtime | None = None) -> Iterator[None]:
    """Count the device of a runtime, or those of all queues, as one that takes groups of different
    sizes."""
    with (
        changed(refusals, "has_rests", lambda device: True)
        if runtime is None
        else changed(runtime.engine.sizes, "_whole_groups", False)
    ):
        yield


def everything_taken() -> AbstractContextManager[None]:
    """Let the driver say that it takes each wrong call on which drivers differ."""
    return changed(refusals, "refusal", lambda context, which: None)


def small_groups() -> AbstractContextManager[None]:
    """Make the driver name groups of one work-item as the largest that a kernel takes."""
    ask: Callable[..., object] = cl.Kernel.get_work_group_info

    def told(kernel: cl.Kernel, what: int, device: cl.Device) -> object:
        is_size = what == cl.kernel_work_group_info.WORK_GROUP_SIZE
        return 1 if is_size else ask(kernel, what, device)

    return changed(cl.Kernel, "get_work_group_info", told)


@contextmanager
def steps_of_lanes(runtime: Runtime) -> Iterator[list[str]]:
    """Collect what a runtime does with the driver's queues: "submit" a launch, or "flush" all."""
    backend, found = runtime.engine.backend, list[str]()
    submit, flush = backend.submit, backend.flush

    def submitted(launch: Launch) -> None:
        found.append("submit")
        submit(launch)

    def flushed() -> None:
        flush()
        found.append("flush")

    with changed(backend, "submit", submitted), changed(backend, "flush", flushed):
        yield found


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


def untold_options() -> AbstractContextManager[None]:
    """Make the driver hide the options of each program, as some do of programs from binaries."""
    return changed(programs, "_told_options", lambda engine, program: "")


@contextmanager
def refused_markers(before: Callable[[], object]) -> Iterator[None]:
    """Refuse markers behind events that failed, by their status, as NVIDIA's driver does. `before`:
    what happens right before each marker."""
    enqueue = driver.marker

    def marker(queue: cl.CommandQueue, wait_for: list[cl.Event]) -> cl.Event:
        before()
        if any(event.command_execution_status < 0 for event in wait_for):
            raise cl.RuntimeError("it waits for an event that failed")
        return enqueue(queue, wait_for)

    with changed(driver, "marker", marker):
        yield
