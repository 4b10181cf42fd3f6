"""Dispatch: launches that are ready go to the backend, or to a thread of the host.

Input: the books, whose table has the ready launches in order. Output: calls of the backend.
Launches that must not run end here.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter_ns

import pyopencl as cl

from ..devices.driver import CommandQueue, Place, is_svm
from ..errors import AcsError, DeviceError, OutOfMemory, UsageError
from ..memory.blocks import Store
from ..records import Launch
from .books import Books
from .commands import HostCommand, KernelCommand, NoVariantError
from .decision import DecidedCommand
from .poisoning import fail, stand_in


def dispatch(books: Books, number: int = 0, own: int = 0) -> None:
    """Hand ready launches to the backend or to a thread, launch `number` first. Launches that must
    not run end here. `own`: the launch of the user's call. If the driver refuses it, the error is
    raised, and the launch never was."""
    table = books.table
    number = number or table.next_ready()
    while number:
        try:
            launch = table.launch(number)
            if number in books.failures.doomed:
                stand_in(books, number, launch.upstream)
                del books.failures.doomed[number]
            elif launch.command.on_host:
                _run_on_host(books, launch)
            else:
                _submit(books, launch, number == own)
        except BaseException:  # there may be no stack left, not even for the way of an error
            if number != own:
                table.put_back(number)
            raise
        number = table.next_ready()


def _submit(books: Books, launch: Launch, is_own: bool) -> None:
    """Give a launch to the backend."""
    if books.table.has_stand_ins:
        launch = launch._replace(upstream=books.table.expand(launch.upstream))
    try:
        books.backend.submit(launch)
    except Exception as error:
        try:
            refusal = driver_error(books, launch, error)
            if not is_own:
                fail(books, launch, refusal)
        finally:  # otherwise waits for the launch would never end
            stand_in(books, launch.number, launch.upstream)
        if is_own:
            dispatch(books)
            raise refusal from error
    else:
        books.table.start(launch.number)


def send_what_there_is(books: Books) -> None:
    """Send the open epoch, because the window is full: no more launches come before others end."""
    if books.backend.unsent:
        books.backend.flush()


def after_end(books: Books, number: int) -> None:
    """Tell of a launch that has ended, and hand out those that became ready."""
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

    books.backend.flush()
    books.host_tasks.run(partial(_host_task, books, launch, queue))  # it ends under our lock
    books.table.start(launch.number)
    books.progress.start()


def _host_task(books: Books, launch: Launch, queue: CommandQueue) -> None:
    """Run a host task, and note its end. It is no closure, since the frames of an error are kept,
    and would keep its arrays."""
    command, error = launch.command, None
    assert isinstance(command, HostCommand)
    started_ns = perf_counter_ns()
    try:
        command.run(queue, partial(_sees, books.store))
    except BaseException as caught:  # any error is the task's own
        error = caught
    with books.lock:
        if error is not None:
            fail(books, launch, error, command.site)
        if books.tracer is not None:
            books.tracer.ran_on_host(launch, started_ns, perf_counter_ns())
        books.table.end(launch.number, error is not None)
        after_end(books, launch.number)
        books.lock.notify()


def _sees(store: Store, place: Place) -> bool:
    """Tell whether the host may read and write these bytes without a command. Those of foreign
    memory it may not: it may be coarse-grained."""
    return store.is_seen and is_svm(place.memory) and store.owns(int(place.memory.svm_ptr))


def driver_error(books: Books, launch: Launch, error: BaseException) -> AcsError:
    """Make an error of a driver's refusal, with the launch, the kernel and the sizes."""
    command = launch.command
    if isinstance(error, NoVariantError):  # one is made when a queue gets the launch
        return error.of_launch(launch.number, command.name)
    where = f"launch {launch.number} ({command.name})"
    if isinstance(command, (KernelCommand, DecidedCommand)):
        where += f" of global size {command.global_size}, local size {command.local_size}"
    message = f"{where}: {error}"
    if isinstance(command, KernelCommand) and isinstance(error, cl.Error):
        hint = _of_limits(books.device, command, error)
        if hint:
            return UsageError(message.rstrip(": ") + hint)
    if isinstance(error, cl.MemoryError):
        return OutOfMemory(message)
    if isinstance(error, cl.LogicError) or not isinstance(error, cl.Error):
        return UsageError(message)
    return DeviceError(message)


def _of_limits(device: cl.Device, command: KernelCommand, error: cl.Error) -> str:
    """Say which limit a refused launch is beyond. Drivers differ in what they take, so that only
    those which refuse are believed."""
    info, code = cl.kernel_work_group_info, getattr(error, "code", None)  # not every one has a code
    try:
        if code == cl.status_code.INVALID_WORK_GROUP_SIZE:
            required = command.kernel.get_work_group_info(info.COMPILE_WORK_GROUP_SIZE, device)
            if any(required):
                found = tuple(required)[: len(command.global_size)]
                return f"; the kernel requires local size {found}"
        if code == cl.status_code.INVALID_ARG_SIZE and any(
            isinstance(one, cl.LocalMemory) and not one.size for one in command.pointers[1::2]
        ):
            return "; an argument is local memory of 0 bytes, give it 1 at least"
        if code == cl.status_code.OUT_OF_RESOURCES:
            asked = int(command.kernel.get_work_group_info(info.LOCAL_MEM_SIZE, device))
            there = int(device.local_mem_size)
            if asked > there:
                return f"; it takes {asked:,} bytes of local memory, this device has {there:,}"
    except cl.Error:  # a device that is lost has no limits
        pass
    return ""
