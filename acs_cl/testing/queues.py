"""Control whether queues bypass the runtime.

Input: the wanted state of a block. Output: `with` blocks, and the present state of queues.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ..queue import bypass as bypassing
from ..queue import trials
from ..queue.queue import Queue
from ..runtime import Runtime
from .changing import changed

ALWAYS = 1e9
"""A limit for the overlap of launches that no program exceeds."""


@contextmanager
def bypass(always: bool, short: bool = True, again: bool = False) -> Iterator[None]:
    """Make queues send commands to the driver as they are after each sample of overlap, or never.

    `short`: a sample is three launches. `again`: a queue takes another sample all the time.
    """
    values: dict[str, float] = {"ENOUGH": ALWAYS * always}
    if always and short:
        values |= {"SAMPLED": 3, "AGAIN": 2, "BEHIND": 2 if again else 10_000, "REST": 0}
    with ExitStack() as put_back:
        for name, value in values.items():
            put_back.enter_context(changed(bypassing, name, value))
        put_back.enter_context(changed(trials, "STRETCHES", 1 << 30))
        yield


def is_bypassing(queue: Queue) -> bool:
    """Return whether commands of a queue go to the driver as they are at the moment."""
    return queue.bypass is not None and bool(queue.bypass.takes_more)


def bypassed(queue: Queue) -> int:
    """Return how many commands of a queue went to the driver as they are."""
    return queue.bypass.passed if queue.bypass is not None else 0


def has_open_bypass(runtime: Runtime) -> bool:
    """Return whether commands of any queue are one launch to the runtime at the moment."""
    return any(one.takes_more for one in runtime.engine.bypasses)
