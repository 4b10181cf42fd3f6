"""Dispatch: launches that are ready go to the backend, or to a thread of the host.

In: the books, whose table has what is ready, in order. Out: calls of the backend; launches that
must not run end here.
"""

from __future__ import annotations

from time import perf_counter_ns

import pyopencl as cl

from ..devices.driver import CommandQueue
from ..errors import AcsError, DeviceError, OutOfMemory, UsageError
from ..records import Launch
from .books import Books
from .commands import HostCommand, KernelCommand
from .decision import DecidedCommand
from .poisoning import fail, stand_in


def dispatch(books: Books, number: int = 0, own: int = 0) -> None:
    """Hand launches that are ready to the backend or to a thread, launch `number` first; those that
    must not run end here. `own`: that of the user's own call. What the driver refuses of it is
    raised, and it is as if the launch had never been."""
    table = books.table
    number = number or table.next_ready()
    while number:
        launch = table.launch(number)
        if books.failures.doomed.pop(number, None) is not None:
            stand_in(books, number, launch.upstream)
        elif launch.command.on_host:
            _run_on_host(books, launch)
        else:
            _submit(books, launch, number == own)
        number = table.next_ready()


def _submit(books: Books, launch: Launch, is_own: bool) -> None:
    """Give a launch to the backend."""
    if books.table.has_stand_ins:
        launch = launch._replace(upstream=books.table.expand(launch.upstream))
    try:
        books.backend.submit(launch)
    except Exception as error:  # or the launch would be waited for for ever
        if not is_own:
            fail(books, launch, driver_error(launch, error))
        stand_in(books, launch.number, launch.upstream)
        if is_own:
            dispatch(books)
            raise driver_error(launch, error) from error
    else:
        books.table.start(launch.number)


def send_what_there_is(books: Books) -> None:
    """The window is full: no epoch that is open now gets more launches before others end."""
    if books.backend.unsent:
        books.backend.flush()


def go_on(books: Books, number: int) -> None:
    """A launch has ended: others may be concerned."""
    if books.user_events:
        books.user_events.complete(number)
    if books.table.has_ready:
        dispatch(books)


def _run_on_host(books: Books, launch: Launch) -> None:
    command = launch.command
    assert isinstance(command, HostCommand)
    queue = books.host_queue
    if queue is None:
        queue = books.host_queue = CommandQueue(books.context, books.device)

    def task() -> None:
        error: BaseException | None = None
        started_ns = perf_counter_ns()
        try:
            command.run(queue)
        except BaseException as caught:  # whatever it is, it is the task's
            error = caught
        with books.lock:
            if error is not None:
                fail(books, launch, error, command.site)
            if books.tracer is not None:
                books.tracer.ran_on_host(launch, started_ns, perf_counter_ns())
            books.table.end(launch.number, error is not None)
            go_on(books, launch.number)
            books.lock.notify()

    books.table.start(launch.number)
    books.backend.flush()
    books.host_tasks.run(task)
    books.progress.start()


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
