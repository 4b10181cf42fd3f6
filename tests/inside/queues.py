"""Which queues there are, when they sample and try, and who plans their commands."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

from acs_cl import core
from acs_cl.backends.queues import HostQueues
from acs_cl.kernel import Kernel
from acs_cl.queue import bypass, commands, patch, runtimes, trials
from acs_cl.queue.calls import Original
from acs_cl.queue.queue import Queue
from acs_cl.testing.changing import changed

TRANSFERS = ("_enqueue_read_buffer", "_enqueue_write_buffer")
"""Functions of PyOpenCL whose calls the core makes by itself once it has their plans."""


@contextmanager
def trials_say(verdict: Callable[[bool], bool | None]) -> Iterator[None]:
    """Make queues choose bypass or tracking by `verdict` at each wait for results.

    It gets whether they bypass now, and returns True for bypass, False for tracking, None for no
    change.
    """

    def stretch(_: object, bypassed: bool, __: int, ___: float) -> bool | None:
        return verdict(bypassed)

    with changed(trials.Trials, "stretch", stretch), changed(bypass, "STRETCH", 16):
        yield


@contextmanager
def endless_sample() -> Iterator[None]:
    """Make queues sample the overlap of their launches all the time, without a verdict."""
    with changed(bypass, "SAMPLED", 1 << 30):
        yield


@contextmanager
def when_lanes_end(queue: Queue, told: Callable[[], None]) -> Iterator[None]:
    """Have `told` called when the lanes of a queue have been waited for, and go."""
    close, own = HostQueues.close, id(queue.runtime.engine.backend)
    del queue  # it may go meanwhile

    def closed(self: HostQueues) -> None:
        close(self)
        if id(self) == own:
            told()

    with changed(HostQueues, "close", closed):
        yield


def waits_at_once(queue: Queue) -> bool:
    """Tell whether a queue waits for what it tells its program is complete, since others look."""
    return queue.told.is_shared


def have_unkept_words() -> bool:
    """Tell whether queues told programs something that a command elsewhere would wait for."""
    return bool(core.native.words_to_keep())


def interrupted_waits_of_queues() -> AbstractContextManager[None]:
    """Have a signal end each wait by which queues keep their word."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    return changed(runtimes, "wait", interrupted)


@contextmanager
def long_first_wait_of_queues() -> Iterator[tuple[threading.Event, threading.Event]]:
    """Have the first wait by which queues keep their word set one event, and go on with another."""
    begun, goes_on, wait = threading.Event(), threading.Event(), vars(runtimes)["wait"]

    def waits(*about: Any) -> None:
        if not begun.is_set():
            begun.set()
            goes_on.wait()
        wait(*about)

    with changed(runtimes, "wait", waits):
        yield begun, goes_on


def plan_every_command(queue: Queue) -> Queue:
    """Make Python plan each command of a queue anew; usually the core remembers plans."""
    queue.tracker = None
    return queue


class Planned(NamedTuple):
    """Commands planned by Python, by the names of kernels and of PyOpenCL's functions."""

    kernels: list[str]
    transfers: list[str]


@contextmanager
def planned_commands() -> Iterator[Planned]:
    """Collect the commands of queues that Python plans in the block."""
    found = Planned([], [])
    described = commands.described

    def kernel(queue: Queue, own: Kernel, *rest: Any) -> object:
        found.kernels.append(own.name)
        return described(queue, own, *rest)

    def transfer(name: str, before: Original) -> Original:
        def counted(*arguments: object, **keywords: object) -> object:
            found.transfers.append(name)
            return before(*arguments, **keywords)

        return counted

    kept = {name: commands.HANDLERS[name] for name in TRANSFERS}
    with changed(commands, "described", kernel):
        commands.HANDLERS.update({name: transfer(name, kept[name]) for name in kept})
        try:
            yield found
        finally:
            commands.HANDLERS.update(kept)


def users() -> list[int]:
    """Return the runtimes that have queues at the moment, by `id`."""
    return runtimes.with_queues()


def are_calls_replaced() -> bool:
    """Return whether functions of PyOpenCL are replaced, because queues are alive."""
    return patch.is_entered()
