"""The three host backends in the native core, of which `acs_cl/_core/queues.hpp` is the twin.

In: a host backend, which has made its queues. Out: one that keeps the same contract: the core picks
lanes, sets arguments, enqueues and keeps the events. Every command but a plain kernel, and what the
driver refuses, goes by the command's own `enqueue`.

Invariant: the same launches wait for the same events as in the backend that it stands for.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyopencl as cl

from .. import core
from ..commands import KernelCommand
from .base import Backend, Ended

_CLASSES = (cl.SVMPointer, cl.MemoryObjectHolder, cl.LocalMemory, cl.Sampler, KernelCommand)


def kept(backend: Backend) -> Backend:
    """The backend, or one in the core that does the same."""
    return Native(backend) if core.NATIVE else backend


class Native(Backend):
    """A backend of Python's, kept by the core."""

    def __init__(self, twin: Backend) -> None:
        self.name = twin.name
        self.in_order = twin.in_order
        self.profiling = twin.profiling
        self.queues = twin.queues
        self._kept: Any = core.queues()(
            self.queues, self.name == "out_of_order", self.profiling, _CLASSES,
            cl.Event.from_int_ptr,
        )  # fmt: skip
        # the core's own, without a call of Python's between
        self.submit = self._kept.submit  # type: ignore[method-assign]
        self.event = self._kept.event  # type: ignore[method-assign]

    def join(self, ledger: Any) -> None:
        """The core makes launches by itself, and keeps their books in `ledger`."""
        self._kept.join(ledger)

    @property
    def quick_queues(self) -> Any:
        """The core's queues."""
        return self._kept

    @property
    def waits(self) -> int:  # type: ignore[override]
        """Events that launches were made to wait for."""
        waits: int = self._kept.waits
        return waits

    @property
    def used(self) -> Counter[int]:  # type: ignore[override]
        """Launches by lane."""
        return +Counter(dict(enumerate(self._kept.used())))

    @property
    def in_flight(self) -> int:
        """Launches submitted and not yet reported."""
        in_flight: int = self._kept.in_flight
        return in_flight

    def poll(self, most: int = 64) -> Ended:
        """Ended launches in program order, of the `most` oldest of a queue."""
        ended: Ended = self._kept.poll(most)
        return ended

    def poll_up_to(self, number: int) -> Ended:
        """The same, for a caller who waits for launch `number`."""
        ended: Ended = self._kept.poll_up_to(number)
        return ended

    def oldest(self) -> Any:
        """An event of the driver to wait for before looking again, or None."""
        return self._kept.oldest()

    def flush(self) -> None:
        """Flush the lanes that have something new."""
        self._kept.flush()

    def close(self) -> None:
        """Wait, then let go of the events."""
        self.wait_all()
        self._kept.forget()
