"""Control whether queues bypass the runtime, and whether Python or the core plans their commands.

Input: the wanted state of a block. Output: `with` blocks, and the present state of queues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from ..kernel import Kernel
from ..queue import commands, patch, sampling, trials
from ..queue import queue as queue_module
from ..queue.calls import Original
from ..queue.queue import Queue
from ..runtime import Runtime
from .changing import changed

TRANSFERS = ("_enqueue_read_buffer", "_enqueue_write_buffer")
"""Functions of PyOpenCL whose calls the core makes by itself once it has their plans."""

ALWAYS = 1e9
"""A limit for the overlap of launches that no program exceeds."""


@contextmanager
def bypass(always: bool, short: bool = True, again: bool = False) -> Iterator[None]:
    """Make queues send commands to the driver as they are after each sample of overlap, or never.

    `short`: a sample is three launches. `again`: a queue takes another sample all the time.
    """
    values: dict[str, float] = {"ENOUGH": ALWAYS * always}
    if always and short:
        values |= {"LOOKED": 3, "AGAIN": 2, "BEHIND": 2 if again else 10_000, "REST": 0}
    with ExitStack() as put_back:
        for name, value in values.items():
            put_back.enter_context(changed(sampling, name, value))
        put_back.enter_context(changed(trials, "STRETCHES", 1 << 30))
        yield


@contextmanager
def trials_say(verdict: Callable[[bool], bool | None]) -> Iterator[None]:
    """Make queues choose bypass or tracking by `verdict` at each wait for results.

    It gets whether they bypass now, and returns True for bypass, False for tracking, None for no
    change.
    """

    def stretch(_: object, bypassed: bool, __: int, ___: float) -> bool | None:
        return verdict(bypassed)

    with changed(trials.Trials, "stretch", stretch), changed(sampling, "STRETCH", 16):
        yield


@contextmanager
def endless_sample() -> Iterator[None]:
    """Make queues sample the overlap of their launches all the time, without a verdict."""
    with changed(sampling, "LOOKED", 1 << 30):
        yield


def is_bypassing(queue: Queue) -> bool:
    """Return whether commands of a queue go to the driver as they are at the moment."""
    return queue.section is not None and bool(queue.section.passing)


def bypassed(queue: Queue) -> int:
    """Return how many commands of a queue went to the driver as they are."""
    return queue.section.passed if queue.section is not None else 0


def has_open_bypass(runtime: Runtime) -> bool:
    """Return whether commands of any queue are one launch to the runtime at the moment."""
    return any(section.passing for section in runtime.engine.sections)


def plan_every_command(queue: Queue) -> Queue:
    """Make Python plan each command of a queue anew; usually the core remembers plans."""
    queue.joining = None
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
    return queue_module.with_queues()


def are_calls_replaced() -> bool:
    """Return whether functions of PyOpenCL are replaced, because queues are alive."""
    return patch.is_entered()
