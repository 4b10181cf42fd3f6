"""Commands: the work of launches, in the form that a queue takes.

Input: resolved arguments (places, bytes, host arrays). Output: `enqueue(queue, wait_for)` puts the
command on a queue and returns its event. A command holds everything that must stay alive while it
runs, but no `Array`: an array that the program drops may be recycled while launches use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl

from ..access.cuts import Cut
from ..devices import driver
from ..devices.driver import Events, Place, enqueue_kernel
from ..errors import DeviceError, InternalError, UsageError
from ..records import HostArray, Key, NamedTuple
from .spawning import Spawn

BETWEEN = "copy from device "
"""How the names of copies between devices begin."""


class NoVariantError(UsageError):
    """Says that a kernel has no variant for a launch. A variant may be made long after the call, or
    for a graph. So who knows the launch's number makes the error of it."""

    def __init__(self, kernel: str, why: str) -> None:
        super().__init__(f"kernel {kernel!r}: {why}")
        self._why = why

    def of_launch(self, number: int, name: str) -> UsageError:
        """Return the error of launch `number`, which has this name."""
        return UsageError(f"launch {number} of kernel {name!r}: {self._why}")


class _Kernel(NamedTuple):
    name: str
    kernel: Any
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    pointers: tuple[Any, ...]
    values: tuple[Any, ...]
    offset: tuple[int, ...] | None
    cut: Cut | None = None
    """For a recorded launch: how it is cut into bands."""
    spawn: Spawn | None = None
    """How its spawned items are treated. None: as the runtime was asked to."""
    lane: str = ""
    """Why it goes to a lane in any case. Empty: it need not."""


class KernelCommand(_Kernel):
    """A kernel with its arguments. `pointers` and `values` alternate index and object or bytes."""

    __slots__ = ()
    on_host = False
    is_counted = False

    @property
    def key(self) -> Key:
        """Return what it shares with the launches that count as alike."""
        return self.name, self.global_size, self.local_size

    def enqueue(self, queue: cl.CommandQueue, wait_for: Events) -> Any:
        """Set the arguments and enqueue. The runtime's lock makes the two one step."""
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
        """Refuse: it was enqueued already."""
        raise InternalError(f"{self.name} is on its way already")


class TransferCommand(NamedTuple):
    """A transfer of bytes in one piece, to the device or from it. Host memory is the command's own,
    or the caller promised not to change it."""

    name: str
    """"read", "write", "copy" or "fill": a function of `devices.driver`."""
    target: Any
    source: Any
    """Places, or arrays of the host. For a fill, the element that is repeated."""
    on_host: bool = False
    carries: str = ""
    """The copy between devices of which this is a half. It runs even if bytes are poisoned, and
    poisons the same bytes of its target."""

    def enqueue(self, queue: cl.CommandQueue, wait_for: Events) -> Any:
        """Start the transfer."""
        return getattr(driver, self.name)(queue, self.target, self.source, wait_for)


_Pair: TypeAlias = tuple[Place, HostArray]


class HostCommand:
    """A Python function, with NumPy copies of what it reads and NumPy arrays for what it writes."""

    __slots__ = ("function", "name", "reads", "result", "site", "writes")
    on_host = True

    def __init__(
        self,
        name: str,
        function: Callable[..., object],
        reads: Sequence[_Pair],
        writes: Sequence[_Pair],
        site: str,
    ) -> None:
        self.name = name
        self.function = function
        self.reads = reads
        self.writes = writes
        self.site = site
        self.result: object = None

    def enqueue(self, queue: cl.CommandQueue, wait_for: Events) -> Any:
        """Refuse: host tasks are run, not enqueued."""
        raise TypeError(f"{self.name} runs on the host")

    def run(self, queue: cl.CommandQueue, sees: Callable[[Place], bool]) -> None:
        """Read the inputs, call the function, write its outputs. Runs on a thread of its own, after
        all upstream. `sees`: tells whether the host sees memory without a command."""
        for place, host in filter(_has_bytes, self.reads):
            if sees(place):
                np.copyto(bytes_of(host), _seen(place))
            else:
                _check(driver.wait_for_event(driver.read(queue, host, place, None)), self.name)
        self.result = self.function(*_given(self.reads, self.writes))
        for place, host in filter(_has_bytes, self.writes):
            if sees(place):
                np.copyto(_seen(place), bytes_of(host))
            else:
                _check(driver.wait_for_event(driver.write(queue, place, host, None)), self.name)


def _given(reads: Sequence[_Pair], writes: Sequence[_Pair]) -> list[HostArray]:
    """Return what a host task is called with. An array that is read and written comes once."""
    read = [host for _, host in reads]
    known = set(map(id, read))
    return read + [host for _, host in writes if id(host) not in known]


def check_takes(
    function: Callable[..., object], name: str, reads: Sequence[_Pair], writes: Sequence[_Pair]
) -> None:
    """Refuse a function that does not take so many arrays. Some built-in ones do not tell."""
    many = len(_given(reads, writes))
    try:
        takes = signature(function)
    except (TypeError, ValueError):
        return
    try:
        takes.bind(*(None,) * many)
    except TypeError:
        raise UsageError(
            f"host task {name!r} takes {takes}, and gets {many} arrays: one for each in reads=, "
            "then one for each in writes= that is not in reads="
        ) from None


def _seen(place: Place) -> HostArray:
    return np.frombuffer(place.memory.mem, np.uint8, place.nbytes)


def bytes_of(host: HostArray) -> HostArray:
    """Return the bytes of contiguous host memory."""
    return host.reshape(-1).view(np.uint8)


def _has_bytes(pair: _Pair) -> bool:
    return pair[1].nbytes > 0


def _check(status: int, name: str) -> None:
    if status < 0:
        raise DeviceError(f"copying the data of host task {name!r} failed with status {status}")
