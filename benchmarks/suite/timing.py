"""Take times of contestants in one process, interleaved.

Machines change their speed within seconds. So what is compared takes turns, and the order of the
turns rotates. Times are the host's unless their name says otherwise.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import pyopencl as cl

from acs_cl.benchmarks.suite.tiny import typed_kernel, zeroed_buffer

T = TypeVar("T")


@contextmanager
def no_collection() -> Iterator[None]:
    """Collect garbage now, and none inside; nothing at all where none is collected already. Between
    samples that would give a GPU a rest, behind which it is slower for a while."""
    if not gc.isenabled():
        yield
        return
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def while_held(
    queues: Sequence[cl.CommandQueue], record: Callable[[], Any], finish: Callable[[], Any]
) -> tuple[float, float]:
    """Return seconds of the host's work alone: of `record` while the queues are stopped, and of
    `finish` when everything that they held has run."""
    gate = cl.UserEvent(queues[0].context)
    for queue in queues:
        cl.enqueue_barrier(queue, wait_for=[gate])
    start = perf_counter()
    record()
    recording = perf_counter() - start
    gate.set_status(cl.command_execution_status.COMPLETE)
    for queue in queues:
        queue.finish()
    start = perf_counter()
    finish()
    return recording, perf_counter() - start


def timed(
    step: Callable[[], Any],
    finish: Callable[[], Any] = lambda: None,
    scale: float = 1e3,
    steps: int = 1,
) -> Callable[[], float]:
    """Return a function that times some steps, from the first launch to the end of all. It returns
    the seconds of one step times `scale`."""

    def sample() -> float:
        finish()
        start = perf_counter()
        for _ in range(steps):
            step()
        finish()
        return (perf_counter() - start) * scale / steps

    return sample


def interleave(samplers: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Take `rounds` samples of each, in turns. Each round begins with another one."""
    names = list(samplers)
    samples: dict[str, list[T]] = {name: [] for name in names}
    for turn in range(rounds):
        shift = turn % len(names)
        with no_collection():
            for name in names[shift:] + names[:shift]:
                samples[name].append(samplers[name]())
    return samples


def going_on(
    sample: Callable[[], T], is_short: Callable[[T], bool] = lambda _: True
) -> Callable[[], tuple[T, T]]:
    """Return a sampler that takes two samples: behind other contestants, and then behind itself.

    The first one is slowed by what ran before it: caches hold other bytes, and a GPU changes its
    context. A program that goes on with its steps does not meet that. Where the first sample is not
    short, it counts twice.
    """

    def both() -> tuple[T, T]:
        first = sample()
        return first, sample() if is_short(first) else first

    return both


class Deadline:
    """Seconds that a measurement of many parts may take. One more part is begun where another one
    as long as the longest so far would end in time; the first one is always."""

    def __init__(self, within_s: float, clock: Callable[[], float] = perf_counter) -> None:
        self._within_s, self._clock, self._start = within_s, clock, clock()
        self._began: float | None = None
        self._longest = 0.0

    def has_time(self) -> bool:
        """Tell whether there is time for one more part, which begins now."""
        now = self._clock()
        if self._began is not None:
            self._longest = max(self._longest, now - self._began)
            if now - self._start + self._longest > self._within_s:
                return False
        self._began = now
        return True


def device_clock(
    context: cl.Context, device: cl.Device, source: str, name: str, items: int, *values: Any
) -> Callable[[int, int], list[float]]:
    """Return a function that times kernels on the device's own clock. It takes their number and
    their rounds, and returns microseconds. The kernel takes one buffer of words, `values`, and its
    rounds; it runs as one group of `items`."""
    profiled: Any = cl.command_queue_properties.PROFILING_ENABLE
    queue = cl.CommandQueue(context, device, properties=profiled)
    kernel = typed_kernel(queue, source, name, None, *[np.uint32] * (len(values) + 1))
    buffer = zeroed_buffer(queue, items * 4)

    def lengths_us(count: int, rounds: int) -> list[float]:
        found = []
        for _ in range(count):
            event = kernel(queue, (items,), (items,), buffer, *values, rounds)
            event.wait()
            found.append((event.profile.end - event.profile.start) * 1e-3)
        return found

    until = perf_counter() + 0.1  # clocks rise while there is work
    while perf_counter() < until:
        lengths_us(7, 256)
    return lengths_us


def rounds_in_time(
    least: int, most: int, seconds: float, clock: Callable[[], float] = perf_counter
) -> Iterator[int]:
    """Count rounds: at least some, then as long as one more would end in time."""
    deadline = Deadline(seconds, clock)
    for number in range(most):
        if not deadline.has_time() and number >= least:
            return
        yield number
