"""Launches of a runtime under way, their routes, and a gate that holds launches back.

Input: a runtime, or an object made by one. Output: plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

import pyopencl as cl

from ..errors import UsageError
from ..handle import Handle
from ..memory.array import Array
from ..program import Program, engine_of
from ..queue.queue import Queue
from ..records import NamedTuple, Span
from ..runtime import Runtime


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


def is_at_rest(runtime: Runtime) -> bool:
    """Return whether the runtime keeps nothing for any launch: none live, ordered or in the
    window."""
    with runtime.engine.lock:
        return len(runtime.engine.table) == runtime.engine.hazards.live == 0


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
    return Routes(inside, sum(stats["lanes"].values()), stats["bypassed"])


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
