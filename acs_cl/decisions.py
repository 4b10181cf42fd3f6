"""Decisions on the device: whether a launch runs, and how many work-items it has, read from device
memory when its turn comes.

In: the kernel command that a launch would be without its decision, and the bytes that decide. Out:
a `DecidedCommand` in both forms: `plain` and `decision` for a backend that decides by itself,
`guarded` for queues, a variant of the kernel (`translate.guards`) that leaves at once where it
should not run.

Invariant: when a launch has ended, the host knows whether its count broke the rules, and asks once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from .commands import KernelCommand
from .driver import Events, Place, read
from .errors import DeviceError
from .records import Span

WIDTH = 4
"""Bytes of a value that decides."""

LARGEST = 2**31 - 1


class Cell(NamedTuple):
    """Bytes on the device that decide: a uint32, or an int32 if `signed`."""

    place: Place
    span: Span
    signed: bool


class Decision(NamedTuple):
    """What a launch looks at, for whoever runs it.

    `when`: it runs only if this is not zero. `count`: its global size in the first dimension, from
    0 (nothing runs) to `upto`, and a multiple of `group`, which is the local size there, or 1 where
    none was given. A launch that is skipped does not look at its count. Without a count `upto` is
    the global size. Each is looked at once for all groups, before any of them writes.
    """

    when: Cell | None
    count: Cell | None  # type: ignore[assignment]  # not a tuple's count
    upto: int
    group: int


class Fault:
    """Where a guarded kernel leaves a count that it cannot have: a word on the device, zero until
    then, and the same word as read back behind each launch that uses it."""

    __slots__ = ("host", "kernel_event", "place")

    def __init__(self, context: Any) -> None:
        self.host = np.zeros(1, np.uint32)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        self.place = Place(cl.Buffer(context, flags, hostbuf=self.host), 0, WIDTH)
        self.kernel_event: Any = None


class _Decided(NamedTuple):
    plain: KernelCommand
    decision: Decision
    guarded: KernelCommand
    fault: Fault | None
    pool: list[Fault]


class DecidedCommand(_Decided):
    """A kernel that decides on the device. `plain` is the command without the decision, its global
    size the upper bound; `guarded` is the variant, for a queue."""

    __slots__ = ()
    on_host = False

    @property
    def name(self) -> str:
        """The kernel's."""
        return self.plain.name

    @property
    def global_size(self) -> tuple[int, ...]:
        """The most it may have."""
        return self.plain.global_size

    @property
    def local_size(self) -> tuple[int, ...] | None:
        """As it was given."""
        return self.plain.local_size

    @property
    def kernel_event(self) -> Any:
        """The kernel's own event, where another one stands for the launch."""
        return self.fault.kernel_event if self.fault is not None else None

    def enqueue(self, queue: Any, wait_for: Events) -> Any:
        """The guarded kernel, and behind it what became of its count."""
        event = self.guarded.enqueue(queue, wait_for)
        fault = self.fault
        if fault is None:
            return event
        fault.kernel_event = event
        return read(queue, fault.host, fault.place, [event])

    def error(self, number: int) -> DeviceError | None:
        """What was wrong with the count of this launch, which has ended. Its word on the device is
        given to others if nothing was."""
        fault = self.fault
        if fault is None:
            return None
        fault.kernel_event = None
        got = int(fault.host[0])
        if not got:
            self.pool.append(fault)
            return None
        _, count, upto, group = self.decision
        if count is not None and count.signed and got > LARGEST:
            got -= 1 << 32
        expected = f"0 to {upto}" if not 0 <= got <= upto else f"a multiple of local size {group}"
        return DeviceError(
            f"launch {number} of kernel {self.name!r} did not run: its count on the device is "
            f"{got}, expected {expected}"
        )
