"""What is under way in a runtime, by which route it went, and a gate that holds launches back.

In: a runtime, or what was made by one. Out: plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import NamedTuple

import pyopencl as cl

from ..launch.handle import Handle
from ..program import Program
from ..queue.queue import Queue
from ..runtime import Runtime


def runtime_of(owner: Program | Queue) -> Runtime:
    """Return the runtime that made a program, or that a queue launches on."""
    return owner.runtime if isinstance(owner, Queue) else owner._runtime


def launched(runtime: Runtime) -> int:
    """Return how many launches there were: the number of the newest one."""
    return int(runtime.stats()["launches"])


def in_flight(runtime: Runtime) -> int:
    """Return how many launches were made whose end the runtime has not taken note of."""
    stats = runtime.stats()
    return int(stats["launches"] - stats["retired"])


def is_in_flight(runtime: Runtime, launch: Handle | cl.Event) -> bool:
    """Return whether one launch is, by its handle or by the event that a queue gave for it."""
    number = launch.number if isinstance(launch, Handle) else getattr(launch, "_acs_number", 0)
    return number in runtime._launches


def is_at_rest(runtime: Runtime) -> bool:
    """Return whether nothing is kept for any launch: none is live, ordered, or in the window."""
    with runtime._lock:
        return len(runtime._launches) == runtime._hazards.live == len(runtime._window) == 0


def seen_complete(queue: Queue) -> int:
    """Return up to which launch a queue knows that all have ended."""
    return int(queue._complete)


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Ask again and again until something holds; an `AssertionError` if it never does."""
    until = perf_counter() + seconds
    while not condition():
        assert perf_counter() < until, f"{condition} did not hold within {seconds:g} s"


class Routes(NamedTuple):
    """How many launches took which route."""

    scheduler: int
    lanes: int
    bypass: int


def routes(runtime: Runtime) -> Routes:
    """Count the launches of a runtime by where they went."""
    stats = runtime.stats()
    inside = stats.get("scheduler", {}).get("tasks", 0)
    return Routes(inside, sum(stats["lanes"].values()), stats["straight"])


class Gate:
    """Holds launches back that name its event in `wait_for`."""

    def __init__(self, context: cl.Context) -> None:
        self.event = cl.UserEvent(context)
        self.is_open = False

    def open(self) -> None:
        """Let them run."""
        self._end(cl.command_execution_status.COMPLETE)

    def fail(self, status: int = -5) -> None:
        """End the event with an error, which those launches then share."""
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
