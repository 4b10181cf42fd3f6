"""Record batches of launches through a runtime and by PyOpenCL, and time both.

`held`: queues are stopped by a user event while launches are recorded, so that only the host's work
is timed. `free`: the device runs earlier launches meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import pyopencl as cl

from acs_cl.benchmarks.suite.timing import while_held
from acs_cl.benchmarks.suite.tiny import ONE, Bare, Ours

LAUNCHES = 255  # in one sample, and pairs of arrays

Calls = Sequence[tuple[Any, ...]]


class Sample(NamedTuple):
    """Microseconds per launch. `host_us`: recording and, if the device was held, retiring."""

    host_us: float
    retire_us: float
    end_us: float


class Side(NamedTuple):
    """One of the two compared: how to record a batch, and how to wait for it."""

    record: Callable[[Calls], None]
    finish: Callable[[], None]
    queues: Sequence[cl.CommandQueue]
    batches: Sequence[Calls]

    @property
    def scale(self) -> float:
        """Return the factor from seconds for all batches to microseconds per launch."""
        return 1e6 / sum(map(len, self.batches))


def ours_side(ours: Ours, batch: int) -> Side:
    """Make our side."""
    kernel, runtime = ours.kernel, ours.runtime

    def record(batch: Calls) -> None:
        for x, y in batch:
            kernel(ONE, ONE, x, y, 3)

    # No public function stops a runtime's device, so this uses private ones.
    queues = runtime.engine.backend.queues
    return Side(record, runtime.finish, queues, split(calls_of(ours.array), batch))


def bare_side(bare: Bare, batch: int) -> Side:
    """Make PyOpenCL's side."""
    kernel, queues = bare.kernel, bare.queues
    calls: Calls = [
        (queues[number % len(queues)], x, y) for number, (x, y) in enumerate(calls_of(bare.array))
    ]

    def record(batch: Calls) -> None:
        for queue, x, y in batch:
            kernel(queue, ONE, ONE, x, y, 3)

    return Side(record, bare.finish, queues, split(calls, batch))


def calls_of(array: Callable[[], Any]) -> Calls:
    """Return two arrays for each launch."""
    return [(array(), array()) for _ in range(LAUNCHES)]


def split(calls: Calls, batch: int) -> Sequence[Calls]:
    """Split into batches of equal length; an incomplete batch is left out."""
    return [calls[first : first + batch] for first in range(0, len(calls) - batch + 1, batch)]


def held(side: Side) -> Callable[[], Sample]:
    """Record with the queues stopped; let them run to their end; then time the remaining work."""

    def sample() -> Sample:
        recording = retiring = 0.0
        for batch in side.batches:
            took = while_held(side.queues, partial(side.record, batch), side.finish)
            recording += took[0]
            retiring += took[1]
        return Sample((recording + retiring) * side.scale, retiring * side.scale, 0.0)

    return sample


def free(side: Side) -> Callable[[], Sample]:
    """Record while the device runs, then wait for it."""

    def sample() -> Sample:
        recording = whole = 0.0
        for batch in side.batches:
            start = perf_counter()
            side.record(batch)
            recording += perf_counter() - start
            side.finish()
            whole += perf_counter() - start
        return Sample(recording * side.scale, 0.0, whole * side.scale)

    return sample
