"""PyOpenCL's commands as launches, with the access of each.

Input: a call of one of PyOpenCL's functions on an `acs.Queue`. Output: a command and its `Access`
for the queue's runtime. A kernel becomes a `KernelCommand`. Anything else becomes the call itself,
made later on a queue of the backend, behind the events that the runtime gives.

Invariant: an unknown access is read-write on all memory, never "no conflict". A command that this
module does not know in detail waits for all before it, and all after it wait for the command.
"""

# Long because: one function for each of PyOpenCL's commands, and they are read side by side.

from __future__ import annotations

import operator
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, SupportsIndex

import numpy as np
import pyopencl as cl

from .. import core
from ..access.arguments import ALL, Resolved
from ..devices.driver import Events, is_svm
from ..errors import DeviceError
from ..kernel import Kernel as OurKernel
from ..launch.commands import KernelCommand
from ..plans import ArgumentValues, plan_commands
from ..program import adopted_kernel, key_of
from ..records import Access, Command, HostArray, NamedTuple, Protocol, Sizes
from .calls import (
    COMMANDS,
    KINDS,
    TRACKED,
    UNMAP,
    Call,
    Given,
    KernelAsItIs,
    Original,
    kind_of,
    parameters_of,
)
from .events import Ordered, QueueEvent
from .refusals import LAUNCH, refuse, refuse_wrong

EVERYTHING = Access((), ALL)
"""Of a launch that is behind everything, and before all that comes. What it reads is unknown, so
bytes that were lost do not stop it: a plain queue would run it too."""
NOTHING = Access((), ())
MOST_DIMENSIONS = 3
LARGEST = (1 << 63) - 1
"""The largest size; drivers say what they do with larger ones."""


class Unclear(Exception):  # noqa: N818  (an answer, not an error of the user)
    """This module does not understand a call. PyOpenCL may understand it, or says what is wrong."""


Described = tuple[KernelCommand, Access, bool]
"""A command, its access, and whether the host can look behind it."""


class TrackedQueue(Ordered, Protocol):
    """An `acs.Queue`, as its commands know it."""

    tracker: core.native.Tracker | None
    """Lets the core make launches of the queue's kernels. None: Python makes all."""
    keeps_times: bool
    """Whether the program may ask for the times of its commands."""
    unmaps: deque[tuple[HostArray, core.native.Memory]]
    """Mapped memory that was dropped."""
    deferred: deque[tuple[Call, Access]]
    """Commands that finalizers left."""
    not_understood: Counter[str]

    def finish(self) -> None:
        """Wait for everything enqueued so far."""

    def submit(
        self,
        command: Command,
        access: Access,
        wait_for: Events = None,
        kind: int = ...,
        seen: bool = False,
        blocks: bool = False,
        keeps: object = None,
    ) -> QueueEvent:
        """Make a launch of a command."""

    def mark(self, wait_for: Events, kind: int, for_all: bool = False) -> QueueEvent:
        """Launch a marker or a barrier."""

    def may_be_held(self, wait_for: Events) -> bool:
        """Say whether a command may have to wait on the host for its turn."""

    def follows_others(self, wait_for: Events) -> bool:
        """Say whether a command follows more than the order of its queue."""

    def sample_anew(self) -> None:
        """Begin another sample, because the last commands do not show how fast the program is."""

    def settle_host(self) -> None:
        """Wait for the commands in flight that use memory of the program."""

    def pretend(self, number: int) -> None:
        """Let the program believe that everything up to this launch is complete."""

    def wait_until_submitted(self, number: int) -> None:
        """Wait until a launch is on the device, or has ended."""

    def pause_bypass(self) -> None:
        """End the bypass, so that the next command is tracked."""


# ---- kernels -------------------------------------------------------------------------------------


def kernel(
    queue: TrackedQueue,
    original: Original,
    kernel: object,
    global_work_size: Any,
    local_work_size: Any,
    global_work_offset: Any = None,
    wait_for: Events = None,
    g_times_l: bool = False,
    allow_empty_ndrange: bool = False,
    *,
    given: ArgumentValues | None,
) -> QueueEvent:
    """Launch `enqueue_nd_range_kernel`, with the arguments that the kernel had at the call."""
    if not isinstance(kernel, cl.Kernel):
        raise Unclear
    sizes = _sizes(global_work_size, local_work_size, global_work_offset, g_times_l)
    global_size, local_size, _ = sizes
    if not all(global_size) and allow_empty_ndrange:
        return marker(queue, original, wait_for)
    is_empty = 0 in global_size or (local_size is not None and 0 in local_size)
    own = None if is_empty else kernel_of(queue, kernel)
    are_sizes = _are_sizes(*sizes)
    if own and given and given.many == len(own.signature.parameters) and are_sizes:
        command, access, seen = described(queue, own, given, *sizes)
        event = queue.submit(command, access, wait_for, KINDS.NDRANGE_KERNEL, seen=seen)
        # one that is held says nothing of those that are not, and plans of those stay
        if queue.tracker is not None and not queue.may_be_held(wait_for):
            number, is_timed = event.acs_number, queue.keeps_times
            plan_commands(queue.tracker, kernel, own, command, given, number, is_timed)
        return event
    call = {
        "kernel": kernel, "global_work_size": global_work_size,
        "local_work_size": local_work_size, "global_work_offset": global_work_offset,
        "g_times_l": g_times_l, "allow_empty_ndrange": allow_empty_ndrange,
    }  # fmt: skip
    unknown = KernelAsItIs(kernel.function_name, original, call, global_size, local_size)
    if is_empty:  # PoCL 3.0 would divide by zero
        refuse_wrong(queue.runtime.engine, unknown, ())
        return queue.mark(wait_for, KINDS.NDRANGE_KERNEL)
    why = "a kernel with arguments from before"
    if not are_sizes:
        why = "a kernel with sizes of which the driver says what they mean"
    return _unknown_kernel(queue, unknown, wait_for, why)


def _sizes(
    global_size: Iterable[SupportsIndex],
    local_size: Iterable[SupportsIndex] | None,
    offset: Iterable[SupportsIndex] | None,
    multiplies: bool,
) -> tuple[Sizes, Sizes | None, Sizes | None]:
    """Return sizes in work-items. `multiplies`: global size and offset count groups
    (`g_times_l`)."""
    try:
        whole = _integers(global_size)
        local = None if local_size is None else _integers(local_size)
        start = None if offset is None else _integers(offset)
    except TypeError:
        raise Unclear from None
    if multiplies and local is not None:
        dimensions = max(len(whole), len(local))  # the shorter one is filled up
        whole += (1,) * (dimensions - len(whole))
        local += (1,) * (dimensions - len(local))
        whole = tuple(map(operator.mul, whole, local))
        if start is not None and len(start) == dimensions:  # PyOpenCL counts groups there, too
            start = tuple(map(operator.mul, start, local))
    return whole, local, start


def _integers(given: Iterable[SupportsIndex]) -> Sizes:
    """Return sizes as Python's own integers, of any others, such as NumPy's."""
    return tuple([int(operator.index(one)) for one in given])


def _are_sizes(global_size: Sizes, local_size: Sizes | None, offset: Sizes | None) -> bool:
    """Tell whether a kernel can have them, as far as all kernels and drivers agree."""
    others = [one for one in (local_size, offset) if one is not None]
    return (
        1 <= len(global_size) <= MOST_DIMENSIONS
        and all(len(one) == len(global_size) for one in others)
        and all(1 <= one <= LARGEST for one in (*global_size, *(local_size or ())))
        and all(0 <= one <= LARGEST for one in offset or ())
    )


def described(
    queue: TrackedQueue,
    kernel: OurKernel,
    given: ArgumentValues,
    global_size: Sizes,
    local_size: Sizes | None,
    offset: Sizes | None,
) -> Described:
    """Return the command, its access, and whether the host can look behind it."""
    usual: list[object] = []
    kinds: list[bool] = []
    seen = bool(kernel.signature.anywhere)
    for index in range(len(kernel.signature.parameters)):
        memory = given.pointers.get(index)
        if isinstance(memory, cl.CommandQueue):  # its launches on the device are not seen
            seen = True
            usual.append(Resolved(memory, ALL))
            continue
        found = None if memory is None else memory_of(queue, memory)
        if found is None:
            usual.append(given.values.get(index, memory))
            continue
        kinds.append(is_svm(memory))
        seen = seen or found.is_host
        usual.append(Resolved(memory, (found.span,), 0, found.is_placed))
    native = kernel.versions.native(kernel, (), tuple(kinds))
    how = global_size, local_size, offset
    bound = kernel.binder.bind(queue.runtime.engine, *how, usual, True, True)
    assert bound is not None, "usual arguments are bound"
    command = KernelCommand(kernel.name, native, *how[:2], bound.pointers, bound.values, offset)
    return command, bound.access, seen


def kernel_of(queue: TrackedQueue, kernel: cl.Kernel) -> OurKernel | None:
    """Return the runtime's own kernel for a kernel. None: the driver tells too little of it."""
    engine = queue.runtime.engine
    is_new = key_of(kernel) not in engine.programs
    if is_new and kernel.context != engine.context:
        refuse(cl.status_code.INVALID_CONTEXT, LAUNCH)
    try:
        own = adopted_kernel(engine, kernel)
    except DeviceError:
        return None
    if is_new and own.signature:
        queue.sample_anew()
    return own


def _unknown_kernel(
    queue: TrackedQueue, command: KernelAsItIs, wait_for: Events, why: str
) -> QueueEvent:
    """Launch a kernel as the driver takes it, as an access to all memory. If it has to wait, it is
    copied, because the program may change its arguments meanwhile."""
    queue.not_understood[why] += 1
    if queue.may_be_held(wait_for):
        try:
            command = command._replace(given={**command.given, "kernel": command.kernel.clone()})
        except cl.Error:
            queue.finish()
    return queue.submit(command, EVERYTHING, wait_for, KINDS.NDRANGE_KERNEL, seen=True)


# ---- memory --------------------------------------------------------------------------------------


def memory_of(queue: TrackedQueue, memory: object) -> core.native.Memory | None:
    """Return the memory that an argument stands for. None: it is not memory."""
    return core.native.memory_of(memory, queue.runtime.engine.store.reserved)


def host_array(host: Any) -> HostArray:
    """Return the bytes of a Python object, as they lie in memory."""
    if isinstance(host, np.ndarray) and host.flags.forc:
        flat = host.reshape(-1) if host.flags.c_contiguous else host.T.reshape(-1)
        return flat.view(np.uint8) if flat.nbytes else flat
    try:
        return np.frombuffer(memoryview(host), np.uint8)
    except Exception:  # any object may be given here, and any may refuse
        raise Unclear from None


# ---- copies and fills ----------------------------------------------------------------------------


def transfer(queue: TrackedQueue, original: Original, **given: Any) -> QueueEvent:
    """Launch a read, write, copy or fill of a buffer or of shared memory, bound by the core. A
    short write that blocks need not wait for the device. The program only has to get its memory
    back, unless the write tells it that something else has ended."""
    name = original.__name__
    parameters = COMMANDS[name]
    if not given.keys() <= {*parameters}:
        raise Unclear
    engine, wait_for = queue.runtime.engine, given.get("wait_for")
    if "is_blocking" in parameters:
        given.setdefault("is_blocking", True)
    host = host_array(given["hostbuf"]) if "hostbuf" in given else None
    is_busy = len(engine.table) > 0 or queue.may_be_held(wait_for)
    bound = core.native.bind_transfer(
        TRACKED[name], original, tuple(map(given.get, parameters)), host, engine.store.reserved,
        is_busy, not queue.follows_others(wait_for),
    )  # fmt: skip
    if bound is None:
        raise Unclear
    command, spans, kind, seen, blocks, keeps, is_copied = bound
    if is_copied:
        assert host is not None
        queue.settle_host()
        command.given["hostbuf"] = host.copy()
    event = queue.submit(command, Access(*spans), wait_for, kind, seen, blocks, keeps)
    if is_copied:
        queue.pretend(event.acs_number)
    return event


# ---- maps ----------------------------------------------------------------------------------------


class Mapped(cl.MemoryMap):
    """The base of a mapped array. Its release is a command of the queue that mapped it."""

    __slots__ = ("__array_interface__", "_array", "_queue", "acs_native", "acs_span")

    _array: HostArray | None
    _queue: TrackedQueue
    acs_native: cl.MemoryMap
    """PyOpenCL's own object."""
    acs_span: core.native.Memory
    """What unmaps it touches."""

    def release(self, queue: cl.CommandQueue | None = None, wait_for: Events = None) -> Any:
        """Unmap. The array must not be used from here on."""
        array, self._array = self._array, None
        if array is None:
            raise cl.LogicError("the memory was unmapped before")
        if queue is None or hasattr(queue, "submit"):
            return _unmap_command(self, self._queue if queue is None else queue, wait_for)
        self._queue.finish()
        return self.acs_native.release(queue, wait_for)

    def __del__(self) -> None:
        # nothing can be launched here, because a finalizer may run anywhere
        array = self._array
        if array is not None:
            # the array alone has it now: if the queue goes with this, it has to be unmapped before
            del self.acs_native
            self._array = None
            self._queue.unmaps.append((array, self.acs_span))
            self._queue.pause_bypass()


class Dropped(NamedTuple):
    """A mapped array that the program has dropped, as commands that unmap take it."""

    acs_native: Any
    acs_span: core.native.Memory


def unmap_native(mapped: Mapped | Dropped, queue: cl.CommandQueue, wait_for: Events) -> Any:
    """Unmap an array by PyOpenCL's own object."""
    return mapped.acs_native.release(queue, wait_for)


def _unmap_by_record(mapped: Mapped | Dropped, queue: TrackedQueue, wait_for: Events) -> QueueEvent:
    """Unmap an array where the core does not."""
    call, access = Call("unmap", unmap_native, {"mapped": mapped}, True), mapped.acs_span.span
    return queue.submit(call, Access((), (access,)), wait_for, KINDS.UNMAP_MEM_OBJECT, seen=True)


_unmap_command = core.native.Command(
    unmap_native, _unmap_by_record, UNMAP, 1, 2, -1, TRACKED["unmap_native"]
)


def unmap_dropped(queue: TrackedQueue) -> None:
    """Unmap the array that the program has dropped first, by a command of the queue."""
    array, memory = queue.unmaps.popleft()
    _unmap_command(Dropped(array.base, memory), queue, None)


def give_up_map(queue: TrackedQueue, mapping: Call, memory: core.native.Memory) -> None:
    """Unmap what the program does not get, if the map ever runs."""

    def release(queue: cl.CommandQueue, wait_for: Events) -> Any:
        if mapping.returned is None:
            return cl.enqueue_marker(queue, wait_for)
        native: Any = mapping.returned[0].base
        return native.release(queue, wait_for)

    command, access = Call("unmap", release, {}, True), Access((), (memory.span,))
    queue.submit(command, access, None, KINDS.UNMAP_MEM_OBJECT, True)


def map_memory(queue: TrackedQueue, original: Original, **given: Any) -> tuple[object, ...]:
    """Map a buffer or an image. The program needs the driver's answer, so the call is made now."""
    name, kind, access = bound(queue, original, given)
    memory = memory_of(queue, given[COMMANDS[original.__name__][1]])
    assert memory is not None, "it was bound"
    wait_for = given.pop("wait_for", None)
    is_blocking = given.pop("is_blocking", True)
    command = Call(name, original, {**given, "is_blocking": False}, True)
    event = queue.submit(command, access, wait_for, kind, True)
    return await_map(queue, command, event, memory, is_blocking)


def await_map(
    queue: TrackedQueue, mapping: Call, event: QueueEvent, memory: core.native.Memory, waits: bool
) -> tuple[object, ...]:
    """Wait until a map has an address and, if `waits`, until it has ended."""
    try:
        queue.wait_until_submitted(event.acs_number)
        if mapping.returned is None:  # it never ran
            queue.settle(event.acs_number)
        if waits:
            queue.settle(event.acs_number)
    except BaseException:  # it may still run, and the program has nothing to unmap
        give_up_map(queue, mapping, memory)
        raise
    return made_map(queue, mapping.returned, event, memory)


def made_map(
    queue: TrackedQueue, returned: Any, event: QueueEvent, memory: core.native.Memory
) -> tuple[object, ...]:
    """Return what a map gives the program, of what PyOpenCL's function returned."""
    array, _, *more = returned
    mapped: Any = Mapped.__new__(Mapped)
    mapped._array, mapped._queue, mapped.acs_native = array, queue, array.base
    mapped.acs_span = memory
    mapped.__array_interface__ = array.__array_interface__
    return (np.asarray(mapped), event, *more)


MAPS = made_map, await_map, give_up_map
"""Python's parts of a map that the core launches."""


# ---- order ---------------------------------------------------------------------------------------


def marker(queue: TrackedQueue, original: Original, wait_for: Events = None) -> QueueEvent:
    """Launch a marker behind everything so far or, on a queue without order, behind events."""
    return queue.mark(wait_for, KINDS.MARKER)


def barrier(queue: TrackedQueue, original: Original, wait_for: Events = None) -> QueueEvent:
    """Put everything that comes behind everything so far."""
    return queue.mark(wait_for, KINDS.BARRIER, for_all=True)


def wait_for_events(queue: TrackedQueue, original: Original, wait_for: Events = None) -> None:
    """Put everything that comes behind some events."""
    queue.mark(wait_for, KINDS.BARRIER, for_all=True)


# ---- everything else -----------------------------------------------------------------------------


def bound(queue: TrackedQueue, original: Original, given: Given) -> tuple[str, int, Access]:
    """Return the name of a call, the kind of its event, and its access: all bytes of the memory
    that it names, as the core binds it."""
    name = original.__name__
    host = host_array(given["hostbuf"]) if "hostbuf" in given else None
    found = core.native.bind_call(
        TRACKED[name], tuple(map(given.get, parameters_of(name))), host,
        queue.runtime.engine.store.reserved,
    )  # fmt: skip
    if found is None:
        raise Unclear
    return *found[:2], Access(*found[2:])


def call(queue: TrackedQueue, original: Original, **given: Any) -> QueueEvent:
    """Launch a command that counts with all bytes of its memory objects."""
    return _submit(queue, original, *bound(queue, original, given), given)


def given_up(queue: TrackedQueue, original: Original, **given: Any) -> QueueEvent | None:
    """End a map of shared memory or free some, behind everything that uses it. A finalizer may call
    this anywhere in this thread. The object stays until then, because PoCL 3.0 finds in it what to
    free."""
    if not queue.runtime.engine.lock.is_owned():
        return call(queue, original, **given)
    name, _, access = bound(queue, original, given)
    queue.deferred.append((Call(name, original, {"svm": given["svm"]}, True), access))
    return None


def anything(queue: TrackedQueue, original: Original, given: Given) -> QueueEvent:
    """Launch any command that takes a queue and a wait list, as an access to all memory."""
    name = original.__name__.strip("_").removeprefix("enqueue_")
    queue.not_understood[name] += 1
    return _submit(queue, original, name, kind_of(original.__name__), EVERYTHING, given)


def _submit(
    queue: TrackedQueue, original: Original, name: str, kind: int, access: Access, given: Given
) -> QueueEvent:
    """Launch a call unchanged, except that it does not block."""
    wait_for, blocks = given.pop("wait_for", None), False
    if "is_blocking" in parameters_of(original.__name__):
        blocks = bool(given.get("is_blocking", True))
        given["is_blocking"] = False
    keeps = given.get("hostbuf", given.get("svm"))
    command = Call(name, original, given, True)
    return queue.submit(command, access, wait_for, kind, True, blocks, keeps)


TRANSFERS = (
    "_enqueue_read_buffer", "_enqueue_write_buffer", "_enqueue_copy_buffer", "_enqueue_fill_buffer",
    "_enqueue_svm_memcpy", "_enqueue_svm_memfill",
)  # fmt: skip
"""Functions whose bytes the core knows exactly."""

CALLS = (
    "_enqueue_read_buffer_rect", "_enqueue_write_buffer_rect", "_enqueue_copy_buffer_rect",
    "_enqueue_read_image", "_enqueue_write_image", "_enqueue_copy_image",
    "_enqueue_copy_image_to_buffer", "_enqueue_copy_buffer_to_image", "enqueue_fill_image",
    "_enqueue_svm_map",
)  # fmt: skip
"""Functions that count with all bytes of their memory objects."""

HANDLERS: dict[str, Original] = {
    **dict.fromkeys(TRANSFERS, transfer),
    "enqueue_nd_range_kernel": kernel,
    **dict.fromkeys(CALLS, call),
    **dict.fromkeys(("enqueue_map_buffer", "enqueue_map_image"), map_memory),
    **dict.fromkeys(("_enqueue_svm_unmap", "enqueue_svm_free"), given_up),
    "_enqueue_marker": marker,
    "_enqueue_marker_with_wait_list": marker,
    "_enqueue_barrier": barrier,
    "_enqueue_barrier_with_wait_list": barrier,
    "_enqueue_wait_for_events": wait_for_events,
}
"""Handlers by name. A function that is not here touches all memory."""
