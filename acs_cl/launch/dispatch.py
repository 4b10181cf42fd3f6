"""Dispatch: launches that the window hands out go to the backend, or to a thread of the host.

In: the books, and numbers of launches in the order in which the window hands them out. Out: calls
of the backend; launches that must not run end here.
"""

from __future__ import annotations

from collections import deque
from time import perf_counter_ns

import pyopencl as cl

from ..devices.driver import CommandQueue
from ..errors import AcsError, DeviceError, OutOfMemory, UsageError
from ..records import Launch
from .books import Books
from .commands import HostCommand, KernelCommand
from .decision import DecidedCommand
from .poisoning import fail, let_skipped_end, stand_in


def dispatch(books: Books, handed_out: list[int]) -> None:
    """Hand launches to the backend or to a thread; those that must not run end here."""
    queue = deque(handed_out)
    while queue:
        number = queue.popleft()
        launch = books.launches[number]
        failure = books.failures.doomed.pop(number, None)
        if failure is None and launch.command.on_host:
            _run_on_host(books, launch)
            continue
        if failure is None:
            if books.skipped:
                launch = launch._replace(upstream=books.skipped.expand(launch.upstream))
            try:
                books.backend.submit(launch)
                continue
            except Exception as error:  # or the launch would be waited for for ever
                fail(books, launch, driver_error(launch, error))
        stand_in(books, number, launch.upstream)
        queue.extend(books.window.done(number))


def refused(books: Books, launch: Launch, error: BaseException) -> AcsError:
    """The driver refused a launch in the user's own call: it is raised there, and it is as if the
    launch had never been."""
    stand_in(books, launch.number, launch.upstream)
    dispatch(books, books.window.done(launch.number))
    return driver_error(launch, error)


def send_what_there_is(books: Books) -> None:
    """The window is full: no epoch that is open now gets more launches before others end."""
    if books.backend.unsent:
        books.backend.flush()


def go_on(books: Books, number: int, handed_out: list[int]) -> None:
    """A launch has ended, and others are concerned."""
    if books.user_events:
        books.user_events.complete(number)
    if handed_out:
        dispatch(books, handed_out)
    if books.skipped:
        let_skipped_end(books)


def _run_on_host(books: Books, launch: Launch) -> None:
    command = launch.command
    assert isinstance(command, HostCommand)
    if books.host_queue is None:
        books.host_queue = CommandQueue(books.context, books.device)

    def task() -> None:
        error: BaseException | None = None
        started_ns = perf_counter_ns()
        try:
            command.run(books.host_queue)
        except BaseException as caught:  # whatever it is, it is the task's
            error = caught
        with books.lock:
            books.launches.pop(launch.number)
            if error is not None:
                fail(books, launch, error, command.site)
            if books.tracer is not None:
                books.tracer.ran_on_host(launch, started_ns, perf_counter_ns())
            books.hazards.retire(launch.number)
            go_on(books, launch.number, books.window.done(launch.number))
            books.lock.notify()

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
