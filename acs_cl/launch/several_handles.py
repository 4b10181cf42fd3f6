"""Handles of several launches: of a replay, of `launch_many` or of a launch in parts.

Input: an engine and numbers of launches. Output: `wait`, `done` and `event` for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyopencl as cl

from ..devices import driver
from ..handle import Handle
from ..records import Access
from .waits import refuse_on_host_task

if TYPE_CHECKING:
    from .engine import Engine


class SeveralHandle(Handle):
    """Stands for several launches. `number` is the last of them."""

    __slots__ = ("_runs",)
    engine: Engine

    def __init__(
        self, engine: Engine, runs: Sequence[Sequence[int]], name: str, access: Access,
        result: object = None,
    ) -> None:  # fmt: skip
        super().__init__(engine, runs[-1][-1] if runs and runs[-1] else 0, name, access, result)
        self._runs = runs

    @property
    def numbers(self) -> tuple[int, ...]:
        """Return all their numbers, in order."""
        return tuple(chain.from_iterable(self._runs))

    def wait(self) -> Any:
        """Block until all launches have ended. Raises the first failure, in program order. Returns
        what a read in several pieces has read."""
        engine = self.engine
        refuse_on_host_task("waiting for launches")
        engine.wait_for_all(self.numbers)
        engine.waited()
        if engine.failures.any:
            for number in self.numbers:
                engine.failures.raise_for_launch(number, f"launch {number} ({self.name})")
        return self._result() if callable(self._result) else self._result

    @property
    def done(self) -> bool:
        """Tell whether all launches have ended, well or not."""
        return all(self.engine.is_done(number) for number in self._left())

    @property
    def event(self) -> cl.Event:
        """Return a `pyopencl.Event` that completes with all launches. Flushes."""
        engine = self.engine
        left = self._left()
        if (failed := self._failed()) is not None:
            left = [failed]
        if len(left) <= 1:
            return engine.event(left[0] if left else self.number)
        events = list({id(event): event for event in map(engine.event, left)}.values())
        # a queue of its own: on another one the marker could hold up commands that it waits for
        queue = driver.CommandQueue(engine.context, engine.device)
        try:
            event = driver.marker(queue, events)
        except cl.Error:
            failed = self._failed()
            if failed is None:
                raise
            return engine.event(failed)  # meanwhile; a driver may refuse a marker behind its event
        queue.flush()
        return event

    def _failed(self) -> int | None:
        """Return the last of its launches that failed, or None."""
        failures = self.engine.failures
        if not failures.any:
            return None
        return next((one for one in reversed(self.numbers) if failures.knows(one)), None)

    def _left(self) -> list[int]:
        launches = self.engine.table
        return [number for number in self.numbers if number in launches]


class CutHandle(SeveralHandle):
    """Stands for the parts of one launch, or for a whole launch, with the reason. The core makes
    these, too."""

    __slots__ = ("_whole",)

    def __init__(
        self, engine: Engine, numbers: Sequence[int], name: str, access: Access, whole: str = ""
    ) -> None:
        super().__init__(engine, (numbers,), name, access)
        self._whole = whole

    @property
    def bands(self) -> str:
        """Say how many bands there are, or why there are none."""
        first, *others = self.numbers
        if not others:
            return f"bands: off, since {self._whole}"
        return f"bands: {1 + len(others)}, launches {first:,} to {others[-1]:,}"


def numbers_of(handle: Handle) -> tuple[int, ...]:
    """Return the launches that a handle stands for."""
    return handle.numbers if isinstance(handle, SeveralHandle) else (handle.number,)
