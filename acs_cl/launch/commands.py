"""Commands: what launches do, in the form that a queue takes.

In: resolved arguments (places, bytes, host arrays). Out: `enqueue(queue, wait_for)` puts the
command on a queue and gives back its event. A command holds everything that must stay alive while
it runs, and no `Array`: an array the program drops may be recycled although launches that use it
are in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyopencl as cl

from ..access.cuts import Cut
from ..devices import driver
from ..devices.driver import Events, Place, enqueue_kernel
from ..errors import DeviceError, InternalError
from ..records import HostArray
from .spawning import Spawn

BETWEEN = "copy from device "
"""How the names of copies between devices begin."""


class _Kernel(NamedTuple):
    name: str
    kernel: Any
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    pointers: tuple[Any, ...]
    values: tuple[Any, ...]
    offset: tuple[int, ...] | None
    cut: Cut | None = None
    """Of a recorded launch: how it is cut into bands."""
    spawn: Spawn | None = None
    """What becomes of items that it spawns; None: what the runtime was asked for."""
    lane: str = ""
    """Why it goes to a lane, whatever else could have it."""


class KernelCommand(_Kernel):
    """A kernel with its arguments: `pointers` and `values` alternate index and object, and values
    are bytes already."""

    __slots__ = ()
    on_host = False
    is_counted = False

    def enqueue(self, queue: cl.CommandQueue, wait_for: Events) -> Any:
        """Set the arguments and enqueue; the runtime's lock makes the two one step."""
        _, kernel, global_size, local_size, pointers, values, offset, *_ = self
        if pointers:
            kernel._set_arg_multi(pointers)
            kernel.current = pointers
        if values:
            kernel._set_arg_buf_multi(values)
        return enqueue_kernel(
            queue, kernel, global_size, local_size, offset, wait_for, False, False
        )


class CoreCommand(NamedTuple):
    """A launch that the core made: it has been enqueued, and only its name is kept."""

    name: str
    on_host: bool = False

    def enqueue(self, queue: cl.CommandQueue, wait_for: Events) -> Any:
        """Refuse: it is on its way already."""
        raise InternalError(f"{self.name} is on its way already")


class TransferCommand(NamedTuple):
    """Bytes in one piece, to the device or from it. Host memory is the command's own, or the caller
    promised to leave it alone."""

    name: str
    """"read", "write", "copy" or "fill": a function of `devices.driver`."""
    target: Any
    source: Any
    """Places, or arrays of the host; of a fill, the element that is repeated."""
    on_host: bool = False
    carries: str = ""
    """Which copy between devices it is a half of. That runs even if bytes are poisoned, and poisons
    the same ones of its target."""

    def enqueue(self, queue: cl.CommandQueue, wait_for: Events) -> Any:
        """Start the transfer."""
        return getattr(driver, self.name)(queue, self.target, self.source, wait_for)


class HostCommand:
    """A Python function, with NumPy copies of what it reads and NumPy arrays for what it writes."""

    __slots__ = ("function", "name", "reads", "result", "site", "writes")
    on_host = True

    def __init__(
        self,
        name: str,
        function: Callable[..., object],
        reads: Sequence[tuple[Place, HostArray]],
        writes: Sequence[tuple[Place, HostArray]],
        site: str,
    ) -> None:
        self.name = name
        self.function = function
        self.reads = reads
        self.writes = writes
        self.site = site
        self.result: object = None

    def enqueue(self, queue: cl.CommandQueue, wait_for: Events) -> Any:
        """Host tasks are run, not enqueued."""
        raise TypeError(f"{self.name} runs on the host")

    def run(self, queue: cl.CommandQueue) -> None:
        """Fetch, call, store; on a thread of its own, after everything it waits for."""
        for place, host in filter(_has_bytes, self.reads):
            _check(driver.wait_for_event(driver.read(queue, host, place, None)), self.name)
        arrays = {id(host): host for _, host in (*self.reads, *self.writes)}
        self.result = self.function(*arrays.values())
        for place, host in filter(_has_bytes, self.writes):
            _check(driver.wait_for_event(driver.write(queue, place, host, None)), self.name)


def _has_bytes(pair: tuple[Place, HostArray]) -> bool:
    return pair[1].nbytes > 0


def _check(status: int, name: str) -> None:
    if status < 0:
        raise DeviceError(f"copying the data of host task {name!r} failed with status {status}")
