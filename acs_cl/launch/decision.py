"""Decisions on the device: whether a launch runs, and how many work-items it has. Both are read
from device memory when the launch starts.

Input: a kernel command without its decision, and the bytes that decide. Output: a `DecidedCommand`
in two ways. `plain` and `decision` are for a backend that decides by itself. `guarded` is for
queues: a variant of the kernel (`opencl_c.variants.guards`) that leaves at once if it should not
run. The core makes most of these launches by itself (`_core/driver/counts.hpp`).

Invariant: when a launch has ended, the host knows whether its count was allowed, and asks once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl

from .. import core
from ..access.cuts import Cut
from ..devices.driver import Events, Place, buffer_of, read
from ..devices.probe.facts import svm
from ..errors import DeviceError
from ..records import Command, Key, NamedTuple, Span
from .commands import KernelCommand

WIDTH = 4
"""Bytes of a value that decides."""

FLAGS = np.dtype(np.uint32), np.dtype(np.int32)
"""Types of such values."""

LARGEST = 2**31 - 1

WORDS = 64
"""Words for wrong counts that are made at one time."""

MOST_WORDS = 4096


class Cell(NamedTuple):
    """Bytes on the device that decide: a uint32, or an int32 if `signed`."""

    place: Place
    span: Span
    signed: bool


class Decision(NamedTuple):
    """The values that decide about a launch.

    `when`: it runs only if this is not zero. `count`: its global size in the first dimension, from
    0 (nothing runs) to `upto`, and a multiple of `group`. That is the local size there, or 1 if
    none was given. Without a count, `upto` is the global size. A launch that is skipped does not
    read its count. Each value is read once for all groups, before any of them writes.
    """

    when: Cell | None
    count: Cell | None  # type: ignore[assignment]  # not a tuple's count
    upto: int
    group: int


class Bound(NamedTuple):
    """What a count may be."""

    upto: int
    group: int
    is_signed: bool

    def error(self, number: int, name: str, got: int | None) -> DeviceError:
        """Return the error for a count of `got`. None: nobody knows it."""
        upto, group, is_signed = self
        start = f"launch {number} of kernel {name!r} did not run: its count on the device is "
        if got is None:
            return DeviceError(
                f"{start}not one of 0 to {upto}, or not a multiple of local size {group}"
            )
        if is_signed and got > LARGEST:
            got -= 1 << 32
        expected = f"0 to {upto}" if not 0 <= got <= upto else f"a multiple of local size {group}"
        return DeviceError(f"{start}{got}, expected {expected}")


class WrongCountError(DeviceError):
    """A count was not allowed. `got`: the count, if known. `bound`: what it may be, where the
    launch does not tell. Code that knows the launch makes the user's error of it."""

    def __init__(self, got: int | None, bound: Bound | None = None) -> None:
        super().__init__(f"its count on the device is {got}, which is not allowed")
        self.got = got
        self.bound = bound


class Fault:
    """A word on the device for a count that a guarded kernel refuses. It is zero until then, and is
    read back behind each launch that uses it."""

    __slots__ = ("host", "kernel_event", "place")

    def __init__(self, context: cl.Context) -> None:
        self.host = np.zeros(1, np.uint32)
        self.place = Place(buffer_of(context, self.host), 0, WIDTH)
        self.kernel_event: cl.Event | None = None


class DecidedCommand:
    """A kernel that decides on the device. `plain`: the command without the decision, with the
    upper bound as global size. `make`: returns the variant for a queue, and its fault word, when a
    queue gets the launch. `pool`: takes the word back."""

    __slots__ = ("_guarded", "_make", "decision", "fault", "plain", "pool")
    on_host = False

    def __init__(
        self,
        plain: KernelCommand,
        decision: Decision,
        make: Callable[[], tuple[KernelCommand, Fault | None]],
        pool: list[Fault],
    ) -> None:
        self.plain = plain
        self.decision = decision
        self.pool = pool
        self.fault: Fault | None = None
        self._make: Callable[[], tuple[KernelCommand, Fault | None]] | None = make
        self._guarded: KernelCommand | None = None

    @property
    def cut(self) -> Cut | None:
        """Return how it is to be cut into bands, or why it is not."""
        return self.plain.cut

    @property
    def guarded(self) -> KernelCommand:
        """Return the variant for a queue."""
        if self._make is not None:
            self._guarded, self.fault = self._make()
            self._make = None  # it may hold an object that holds this one
        assert self._guarded is not None
        return self._guarded

    @property
    def variant(self) -> Any:
        """Return the guarded kernel, once a queue has needed it."""
        return None if self._guarded is None else self._guarded.kernel

    @property
    def is_counted(self) -> bool:
        """Tell whether its end may show that its count was wrong."""
        return self.decision.count is not None

    @property
    def name(self) -> str:
        """Return the kernel's name."""
        return self.plain.name

    @property
    def global_size(self) -> tuple[int, ...]:
        """Return the largest size it may have."""
        return self.plain.global_size

    @property
    def local_size(self) -> tuple[int, ...] | None:
        """Return the local size as it was given."""
        return self.plain.local_size

    @property
    def kernel_event(self) -> cl.Event | None:
        """Return the kernel's own event, if another one stands for the launch."""
        return self.fault.kernel_event if self.fault is not None else None

    def enqueue(self, queue: cl.CommandQueue, wait_for: Events) -> Any:
        """Enqueue the guarded kernel, and a read of its fault word behind it."""
        event = self.guarded.enqueue(queue, wait_for)
        fault = self.fault
        if fault is None:
            return event
        fault.kernel_event = event
        return read(queue, fault.host, fault.place, [event])

    def error(self, number: int) -> DeviceError | None:
        """Return what was wrong with the count of this launch, which has ended. If nothing was,
        others get its word on the device."""
        fault = self.fault
        if fault is None:
            return None
        fault.kernel_event = None
        got = int(fault.host[0])
        if not got:
            self.pool.append(fault)
            return None
        return self.wrong(number, got)

    def wrong(self, number: int, got: int | None) -> DeviceError:
        """Return the error for a count of `got`."""
        _, count, upto, group = self.decision
        return Bound(upto, group, count is not None and count.signed).error(number, self.name, got)


def parts_of(command: Command) -> tuple[Command, Decision | None]:
    """Split a command into the command without its decision, and the decision."""
    if type(command) is DecidedCommand:
        return command.plain, command.decision
    return command, None


def plain_kernel(command: object) -> KernelCommand | None:
    """Return the kernel of a command, without its decision. None: it is no kernel."""
    if type(command) is DecidedCommand:
        return command.plain
    return command if type(command) is KernelCommand else None


def key_of(command: Command) -> Key | None:
    """Return what a kernel shares with the launches that count as alike. None: it is no kernel."""
    kernel = plain_kernel(command)
    return None if kernel is None else kernel.key


def has_words(device: cl.Device) -> bool:
    """Tell whether the host sees memory of the device without a transfer."""
    return svm(device) in ("fine", "system")


def words_for(queues: core.native.Queues, context: cl.Context, device: cl.Device) -> bool:
    """Make sure that the core has free words, where kernels of its launches store counts that are
    not allowed. Return False if the host does not see memory of the device without a transfer, or
    enough words are in use: Python then makes these launches, with a read behind each."""
    if queues.free_words:
        return True
    if queues.words >= MOST_WORDS or not has_words(device):
        return False
    flags = cl.svm_mem_flags
    both = flags.READ_WRITE | flags.SVM_FINE_GRAIN_BUFFER
    memory = cl.SVMAllocation(context, WORDS * WIDTH, 0, both)
    start = int(memory.svm_ptr)
    for at in range(0, WORDS * WIDTH, WIDTH):
        queues.add_word(cl.SVM(memory.buf[at : at + WIDTH]), start + at)
    return True
