"""The scheduler on the device: hold its epochs open, and see its tasks.

Input: a runtime on backend 'device', or on 'auto' if that has a scheduler. Output: a `Scheduler`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import UsageError
from ..runtime import Runtime
from ..scheduler import backend as scheduler_backend
from ..scheduler import sender as scheduler_sender
from .changing import changed

NEVER_S = 1e9
"""Longer than any test."""


@contextmanager
def open_epochs(seconds: float = NEVER_S, tasks: int = 1 << 30) -> Iterator[None]:
    """Keep epochs of runtimes open for this time, or until their results are needed.

    They are sent to an idle device when they have this many tasks.

    If a runtime has sent epochs before, call `Scheduler.keep_open`, too.
    """
    with (
        changed(scheduler_backend, "OPEN_S", seconds),
        changed(scheduler_backend, "UNSURE_S", max(seconds, scheduler_backend.UNSURE_S)),
        changed(scheduler_sender, "FIRST_LOOK", tasks),
    ):
        yield


class Scheduler:
    """The scheduler of a runtime on backend 'device', or of 'auto' if it has one."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        if not isinstance(runtime.engine.backend, scheduler_backend.Device):
            raise UsageError(f"no scheduler beside {runtime.plan.backend}: {runtime.plan.why}")
        self.backend: scheduler_backend.Device = runtime.engine.backend

    @property
    def tasks(self) -> int:
        """Return how many launches went to it."""
        return self.backend.counters["tasks"]

    @property
    def counters(self) -> dict[str, int]:
        """Return tasks, epochs, launches of the scheduler's own kernel, and cuts."""
        return self.backend.counters

    @property
    def reasons(self) -> dict[str, int]:
        """Return the reasons why launches went to lanes, with counts."""
        return self.backend.reasons

    @property
    def has_open_epoch(self) -> bool:
        """Return whether launches wait for an epoch to be sent."""
        return self.backend.unsent

    @property
    def is_building(self) -> bool:
        """Return whether a scheduler is being built at the moment."""
        return self.backend.schedulers.is_busy

    def keep_open(self) -> None:
        """Let the next epoch grow as `open_epochs` says, whatever the earlier ones held."""
        self.backend.keep_open()
