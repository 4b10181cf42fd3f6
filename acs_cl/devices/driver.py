"""The few functions of PyOpenCL that the hot path uses, in one place.

Input: PyOpenCL objects. Output: PyOpenCL events. PyOpenCL's public entry points (`Kernel.__call__`,
`enqueue_copy`) convert and dispatch on every call, which costs more than the driver does. The
functions below are the ones that they end in. They have kept their names since PyOpenCL 2022 and
are used here only.

A **place** is memory in the driver's form: an `SVMPointer`, or a `Buffer` with a byte offset.
Invariant: nothing here blocks, except functions whose names begin with `wait_`.
"""

# Long because: what the runtime uses of PyOpenCL is in one place.

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl
from pyopencl import _cl

from .. import core
from ..errors import DeviceError, OutOfMemory
from ..records import DType, HostArray, NamedTuple
from .invokers import invokers_later

COMPLETE = int(cl.command_execution_status.COMPLETE)

Events: TypeAlias = Sequence[cl.Event] | None

Origin: TypeAlias = tuple[str, tuple[str, ...], str]
"""Source, build options and name of a kernel."""

STATUS = cl.event_info.COMMAND_EXECUTION_STATUS

PATTERNS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Bytes that the pattern of a fill may have."""

enqueue_kernel: Callable[..., cl.Event] = _cl.enqueue_nd_range_kernel
"""(queue, kernel, global size, local size, offset, wait for, False, False), by position only."""

# PyOpenCL's own functions, even while `interception` has replaced them: a replacement may wait for
# launches of the program, and with them for events that it sets later
CommandQueue = _cl.CommandQueue
_read = _cl._enqueue_read_buffer
_write = _cl._enqueue_write_buffer
_copy = _cl._enqueue_copy_buffer
_fill = _cl._enqueue_fill_buffer
_svm_copy = _cl._enqueue_svm_memcpy
_svm_fill = _cl._enqueue_svm_memfill
_map = _cl.enqueue_map_buffer
_marker = _cl._enqueue_marker_with_wait_list


class Offers(dict[tuple[object, ...], Any]):
    """Where a kernel runs, by its sizes. It can be remembered without being kept, unlike kernels of
    PyOpenCL."""

    __slots__ = ("__weakref__",)


OFTEN = 1 << 62
"""More launches than any that a kernel has to have before it is worth a scheduler."""


class OwnKernel(cl.Kernel):
    """A kernel that keeps its current arguments alive until it has new ones.

    OpenCL does not retain a kernel's arguments. NVIDIA's driver (seen with 580) may confuse a new
    sub-buffer with a released one that had the same handle, and run on the old memory. `origin`:
    source, options and name, if known. `text`: those of another text, if that is built. `offers`:
    by sizes, the scheduler that runs it and its body there. `owner`: the program's kernel that it
    is a form of, if any; nobody launches it without that. `queued`: the core's own kernel for it,
    once it was launched there. `signature`: its signature, once known. `token`: its key in the
    books of checks, which must not keep it alive. `twins`: itself, built in other contexts.
    """

    __slots__ = (
        "current", "launched", "offers", "origin", "owner", "queued", "reason", "rest", "signature",
        "text", "token", "twins",
    )  # fmt: skip

    # the originals: `interception` replaces them for kernels of the program
    _set_arg_multi: Callable[[Sequence[object]], None] = vars(cl.Kernel)["_set_arg_multi"]
    _set_arg_buf_multi: Callable[[Sequence[object]], None] = vars(cl.Kernel)["_set_arg_buf_multi"]

    def __init__(self, *arguments: Any) -> None:
        with invokers_later():
            super().__init__(*arguments)
        self._begin()

    def _begin(self) -> None:
        self.launched = 0
        """Launches since a scheduler was last asked for the kernel. Below zero: it rests."""
        self.reason = "its kernel was not launched often yet"
        """Why no scheduler has it."""
        self.rest = 32
        """For how many launches that reason holds, next time, before it is asked again."""
        self.offers = Offers()
        self.origin: Origin | None = None
        self.text: Origin | None = None
        self.owner: weakref.ref[object] | None = None
        self.queued: object = None
        self.signature: object = None
        self.token: int | None = None
        self.twins: dict[cl.Context, OwnKernel] | None = None

    def ask_at_once(self) -> None:
        """Have a scheduler asked for it from its first launch on, and again soon while there is
        none."""
        self.launched, self.rest = OFTEN, 1

    current: Sequence[object]
    """Its current arguments."""


def own_clone(kernel: cl.Kernel) -> Any:
    """Make a kernel of ours from one whose program is not known. PyOpenCL makes an `OwnKernel` only
    from a program, so this is a plain kernel with the same attributes."""
    clone: Any = kernel.clone()
    OwnKernel._begin(clone)
    for name in ("_set_arg_multi", "_set_arg_buf_multi"):
        setattr(clone, name, vars(OwnKernel)[name].__get__(clone))
    return clone


def set_arguments(kernel: OwnKernel, pointers: Sequence[object], values: Sequence[object]) -> None:
    """Set arguments: memory, then values as bytes. Both lists alternate index and argument."""
    kernel._set_arg_multi(pointers)
    kernel.current = pointers
    kernel._set_arg_buf_multi(values)


def run(
    queue: cl.CommandQueue, kernel: cl.Kernel, items: int, group: int, wait_for: Events = None
) -> cl.Event:
    """Launch a kernel of one axis. Its arguments are set."""
    return enqueue_kernel(queue, kernel, (items,), (group,), None, wait_for, False, False)


FUNCTIONS = (
    "clSetKernelArg", "clSetKernelArgSVMPointer", "clEnqueueNDRangeKernel", "clGetEventInfo",
    "clReleaseEvent", "clFlush", "clGetKernelInfo", "clCreateKernel", "clReleaseKernel",
    "clEnqueueMarkerWithWaitList", "clEnqueueReadBuffer", "clEnqueueSVMMemcpy", "clRetainEvent",
    "clWaitForEvents", "clEnqueueWriteBuffer", "clGetCommandQueueInfo", "clGetDeviceInfo",
    "clEnqueueCopyBuffer", "clEnqueueFillBuffer", "clEnqueueSVMMemFill", "clSetEventCallback",
    "clGetMemObjectInfo", "clSetKernelExecInfo", "clFinish",
    "clSetUserEventStatus", "clCreateUserEvent", "clGetProgramInfo", "clGetProgramBuildInfo",
    "clGetImageInfo",
)  # fmt: skip


def functions() -> list[int]:
    """Return the addresses of the functions that the core calls, in its order. PyOpenCL's extension
    module is linked with the loader, so these are PyOpenCL's own functions."""
    loader = ctypes.CDLL(_cl.__file__)
    return [ctypes.cast(loader[name], ctypes.c_void_p).value or 0 for name in FUNCTIONS]


core.native.open_driver(functions())


def declare_svm(kernel: cl.Kernel, addresses: Sequence[int]) -> None:
    """Tell the driver which allocations a kernel may reach by pointers in memory, all at once.
    PyOpenCL has no such call."""
    status = core.native.declare_memory(kernel.int_ptr, addresses)
    if status:
        raise cl.RuntimeError(f"clSetKernelExecInfo failed with {status}")


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """Make an error of ours of what the driver refuses in the block. `what`: what that was for."""
    try:
        yield
    except cl.Error as error:
        kind = OutOfMemory if isinstance(error, cl.MemoryError) else DeviceError
        raise kind(f"{what}: {error}") from error


class Place(NamedTuple):
    """Memory on the device: `memory` is an SVM pointer (offset 0) or a buffer."""

    memory: Any
    offset: int
    nbytes: int


def is_svm(memory: object) -> bool:
    """Tell whether the driver takes it as an SVM pointer."""
    return isinstance(memory, cl.SVMPointer)


def read(queue: cl.CommandQueue, host: HostArray, place: Place, wait_for: Events) -> cl.Event:
    """Copy from device to host. `host` is contiguous and stays alive until the event."""
    if is_svm(place.memory):
        return _svm_copy(queue, False, cl.SVM(host), place.memory, wait_for)
    return _read(queue, place.memory, host, place.offset, wait_for, False)


def write(queue: cl.CommandQueue, place: Place, host: HostArray, wait_for: Events) -> cl.Event:
    """Copy from host to device. `host` is contiguous and does not change until the event."""
    if is_svm(place.memory):
        return _svm_copy(queue, False, place.memory, cl.SVM(host), wait_for)
    return _write(queue, place.memory, host, place.offset, wait_for, False)


def copy(queue: cl.CommandQueue, target: Place, source: Place, wait_for: Events) -> cl.Event:
    """Copy `source.nbytes` bytes on the device; the two do not overlap."""
    if is_svm(target.memory) and is_svm(source.memory):
        return _svm_copy(queue, False, target.memory, source.memory, wait_for)
    return _copy(
        queue, source.memory, target.memory, source.nbytes, source.offset, target.offset, wait_for
    )


def fill(queue: cl.CommandQueue, place: Place, pattern: HostArray, wait_for: Events) -> cl.Event:
    """Repeat a pattern over a place."""
    if is_svm(place.memory):
        return _svm_fill(queue, place.memory, pattern, byte_count=place.nbytes, wait_for=wait_for)
    return _fill(queue, place.memory, pattern, place.offset, place.nbytes, wait_for)


def like(context: cl.Context, place: Place) -> Place:
    """Make memory of the same kind as that of a place, so that a command can copy it there."""
    flags = cl.mem_flags.READ_WRITE
    if is_svm(place.memory):
        return Place(cl.SVMAllocation(context, place.nbytes, 0, flags), 0, place.nbytes)
    return Place(cl.Buffer(context, flags, place.nbytes), 0, place.nbytes)


def marker(queue: cl.CommandQueue, wait_for: Events) -> cl.Event:
    """Make an event that ends with others."""
    return _marker(queue, wait_for)


def buffer_of(context: cl.Context, values: HostArray) -> cl.Buffer:
    """Make a buffer with the bytes of an array."""
    return cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=values)


def wait_for_pinned(queue: cl.CommandQueue, shape: tuple[int, ...], dtype: DType) -> HostArray:
    """Return host memory that the driver allocated for fast transfers, mapped while the array
    lives.

    Dropping the array unmaps it, maybe after the last use of everything else. So it has an in-order
    queue of its own. Intel's CPU runtime waits for ever if an out-of-order queue is released while
    a command on it runs.
    """
    queue = CommandQueue(queue.context, queue.device)
    flags = cl.mem_flags.ALLOC_HOST_PTR | cl.mem_flags.READ_WRITE
    nbytes = prod(shape) * dtype.itemsize
    both: Any = cl.map_flags.READ | cl.map_flags.WRITE
    with refusals(f"{nbytes:,} bytes of the host for transfers"):
        buffer = cl.Buffer(queue.context, flags, nbytes)
        mapped: Any = _map(queue, buffer, both, 0, shape, dtype)
    array: HostArray = mapped[0]
    return array


def pinned_pieces(queue: cl.CommandQueue, many: int, nbytes: int) -> list[HostArray]:
    """Return pieces of such memory, in one allocation. Empty: the driver refuses."""
    try:
        return list(wait_for_pinned(queue, (many, nbytes), np.dtype(np.uint8)))
    except (DeviceError, MemoryError):
        return []


def status(event: cl.Event) -> int:
    """Return 0 when complete, a negative number when failed, a positive one while under way."""
    return event.get_info(STATUS)  # type: ignore[return-value]


def wait_for_event(event: cl.Event) -> int:
    """Block until the event ended; return its status. Other threads run meanwhile, and signals are
    handled. Its commands were flushed."""
    core.native.wait_for_event(event.int_ptr)
    return status(event)


def has_come(event: cl.Event, within_s: float) -> bool:
    """Block until the event has ended, but no longer than that. Return whether it has."""
    return core.native.wait_for_event(event.int_ptr, within_s)


def wait_for_events(events: Sequence[cl.Event]) -> None:
    """Block until all of them ended. PoCL frees a command's resources a moment after the next one
    may begin. Waiting for each event meets that less often than waiting for the last one alone."""
    for event in events:
        wait_for_event(event)
