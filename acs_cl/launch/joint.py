"""Handles of several launches: what a replay, `launch_many` or a spread launch gives back.

In: an engine and numbers of launches. Out: `wait`, `done` and `event` of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyopencl as cl

from ..devices.driver import CommandQueue
from ..handle import Handle
from ..records import Access
from .waits import refuse_on_host_task, wait

if TYPE_CHECKING:
    from .engine import Engine


class SeveralHandle(Handle):
    """Several launches under way or done, of which `number` is the last."""

    __slots__ = ("_runs",)
    engine: Engine

    def __init__(
        self, engine: Engine, runs: Sequence[Sequence[int]], name: str, access: Access
    ) -> None:
        super().__init__(engine, runs[-1][-1] if runs and runs[-1] else 0, name, access)
        self._runs = runs

    @property
    def numbers(self) -> tuple[int, ...]:
        """All of them, in order."""
        return tuple(chain.from_iterable(self._runs))

    def wait(self) -> Any:
        """Block until all of it has ended; raises the first failure, in program order."""
        engine = self.engine
        engine.check_open()
        refuse_on_host_task(f"waiting for a {self.name}")
        for number in reversed(self.numbers):
            if number in engine.table:
                wait(engine, number)
        if engine.failures.any:
            for number in self.numbers:
                engine.failures.raise_for_launch(number, f"launch {number} of a {self.name}")

    @property
    def done(self) -> bool:
        """Whether all of it has ended, well or not."""
        return all(self.engine.is_done(number) for number in self._left())

    @property
    def event(self) -> cl.Event:
        """A `pyopencl.Event` that completes with all of it. Flushes."""
        engine = self.engine
        left = self._left()
        if engine.failures.any:
            for number in self.numbers:
                if engine.failures.knows(number):
                    left = [number]
        if len(left) <= 1:
            return engine.event(left[0] if left else self.number)
        events = list({id(event): event for event in map(engine.event, left)}.values())
        # a queue for this alone: on another one it could keep those waiting that it waits for
        queue = CommandQueue(engine.context, engine.device)
        event = cl.enqueue_marker(queue, wait_for=events)
        queue.flush()
        return event

    def _left(self) -> list[int]:
        launches = self.engine.table
        return [number for number in self.numbers if number in launches]


class CutHandle(SeveralHandle):
    """The parts of one launch; or a launch that has none, and why. The core makes them, too."""

    __slots__ = ("_whole",)

    def __init__(
        self, engine: Engine, numbers: Sequence[int], name: str, access: Access, whole: str = ""
    ) -> None:
        super().__init__(engine, (numbers,), name, access)
        self._whole = whole

    @property
    def bands(self) -> str:
        """What is told of them, or why there are none."""
        first, *others = self.numbers
        if not others:
            return f"bands: off, since {self._whole}"
        return f"bands: {1 + len(others)}, launches {first:,} to {others[-1]:,}"


def numbers_of(handle: Handle) -> tuple[int, ...]:
    """The launches that a handle stands for."""
    return handle.numbers if isinstance(handle, SeveralHandle) else (handle.number,)
