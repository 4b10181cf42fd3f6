"""Calls of PyOpenCL's functions that are made later.

Input: a function that takes a queue, and its arguments. Output: a command for the runtime. The
command makes the call on a queue of the backend, behind the events that the runtime gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyopencl as cl
from pyopencl import _cl

from ..devices.driver import Events
from ..records import Command, NamedTuple, Sizes

Parameters: TypeAlias = tuple[str, ...]

Original: TypeAlias = Callable[..., Any]
"""A function of PyOpenCL, the original or a replacement."""

Given: TypeAlias = dict[str, Any]
"""Its arguments, by the names of its parameters."""

_TRACKED = {
    "enqueue_nd_range_kernel": "queue kernel global_work_size local_work_size global_work_offset"
    " wait_for g_times_l allow_empty_ndrange",
    "_enqueue_read_buffer": "queue mem hostbuf src_offset wait_for is_blocking",
    "_enqueue_write_buffer": "queue mem hostbuf dst_offset wait_for is_blocking",
    "_enqueue_copy_buffer": "queue src dst byte_count src_offset dst_offset wait_for",
    "_enqueue_fill_buffer": "queue mem pattern offset size wait_for",
    "_enqueue_svm_memcpy": "queue is_blocking dst src wait_for byte_count",
    "_enqueue_svm_memfill": "queue dst pattern byte_count wait_for",
    "_enqueue_marker_with_wait_list": "queue wait_for",
    "_enqueue_barrier_with_wait_list": "queue wait_for",
    "_enqueue_read_image": "queue mem origin region hostbuf row_pitch slice_pitch wait_for"
    " is_blocking",
    "_enqueue_write_image": "queue mem origin region hostbuf row_pitch slice_pitch wait_for"
    " is_blocking",
    "_enqueue_copy_image": "queue src dest src_origin dest_origin region wait_for",
    "_enqueue_copy_image_to_buffer": "queue src dest origin region offset wait_for",
    "_enqueue_copy_buffer_to_image": "queue src dest offset origin region wait_for",
    "enqueue_fill_image": "queue mem color origin region wait_for",
    "_enqueue_read_buffer_rect": "queue mem hostbuf buffer_origin host_origin region buffer_pitches"
    " host_pitches wait_for is_blocking",
    "_enqueue_write_buffer_rect": "queue mem hostbuf buffer_origin host_origin region"
    " buffer_pitches host_pitches wait_for is_blocking",
    "_enqueue_copy_buffer_rect": "queue src dst src_origin dst_origin region src_pitches"
    " dst_pitches wait_for",
    "enqueue_map_buffer": "queue buf flags offset shape dtype order strides wait_for is_blocking",
    "enqueue_map_image": "queue img flags origin region shape dtype order strides wait_for"
    " is_blocking",
    "unmap_native": "mapped queue wait_for",
    "_enqueue_svm_map": "queue is_blocking flags svm wait_for size",
    "_enqueue_svm_unmap": "queue svm wait_for",
    "enqueue_svm_free": "svm queue wait_for",
}
"""Functions that take a queue, with the names of their parameters: those of which the core makes
launches when they are tracked, in its order."""

_OTHERS = {
    "_enqueue_svm_migrate_mem": "queue svms flags wait_for",
    "enqueue_migrate_mem_objects": "queue mem_objects flags wait_for",
    "_enqueue_marker": "queue",
    "_enqueue_barrier": "queue",
    "_enqueue_wait_for_events": "queue wait_for",
    "enqueue_copy_buffer_p2p_amd": "platform queue src dst byte_count wait_for",
    "enqueue_acquire_gl_objects": "queue mem_objects wait_for",
    "enqueue_release_gl_objects": "queue mem_objects wait_for",
}
"""The same for all others of PyOpenCL's."""

_OWN = "unmap_native", "enqueue_svm_free"
"""Functions of our own, for what PyOpenCL does by methods."""

TRACKED = {name: number for number, name in enumerate(_TRACKED, 1)}
"""The core's numbers of these functions."""

_PARAMETERS: dict[str, Parameters] = {
    name: tuple(names.split()) for name, names in {**_TRACKED, **_OTHERS}.items()
}
UNMAP, FREE = map(_PARAMETERS.__getitem__, _OWN)

COMMANDS = {name: names for name, names in _PARAMETERS.items() if name not in _OWN}
"""PyOpenCL's functions that take a queue, with the names of their parameters."""


def parameters_of(name: str) -> Parameters:
    """Return the names of a function's parameters. Empty: they are not known."""
    return _PARAMETERS.get(name, ())


KINDS: Any = cl.command_type
_ODD = {"nd_range_kernel": "NDRANGE_KERNEL", "unmap_native": "UNMAP_MEM_OBJECT"}


def kind_of(name: str) -> int:
    """Return the kind of the events of a function."""
    word = name.strip("_").removeprefix("enqueue_").removesuffix("_with_wait_list")
    kind: int = getattr(KINDS, _ODD.get(word, word.upper()), KINDS.TASK)
    return kind


_MARK = _cl._enqueue_marker_with_wait_list


class Call:
    """A call of one of PyOpenCL's functions that is made later. `returned`: its result. `event`:
    the event in that."""

    __slots__ = ("event", "function", "given", "name", "returned", "takes_events")
    on_host = False

    def __init__(self, name: str, function: Original, given: Given, takes_events: bool) -> None:
        self.name = name
        self.function = function
        self.given = given
        self.takes_events = takes_events
        self.returned: Any = None
        self.event: cl.Event | None = None

    def enqueue(self, queue: cl.CommandQueue, wait_for: Events) -> cl.Event | None:
        """Make the call on a queue of the backend."""
        given = {**self.given, "queue": queue}
        if self.takes_events:
            given["wait_for"] = wait_for
        elif wait_for:
            cl.wait_for_events(wait_for)
        returned = self.returned = self.function(**given)
        self.event = returned[1] if isinstance(returned, tuple) else returned
        return self.event


class KernelAsItIs(NamedTuple):
    """A kernel of the program with the arguments that it has, which are unknown here."""

    name: str
    function: Original
    given: Given
    """All arguments of the call but the queue and the wait list."""
    global_size: Sizes
    local_size: Sizes | None
    """What the sizes in `given` mean."""
    on_host: bool = False

    @property
    def kernel(self) -> cl.Kernel:
        """Return the kernel."""
        found: cl.Kernel = self.given["kernel"]
        return found

    def enqueue(self, queue: cl.CommandQueue, wait_for: Events) -> Any:
        """Enqueue it."""
        return self.function(**self.given, queue=queue, wait_for=wait_for)


class Watched:
    """A command that may be held, and that keeps its event for its times."""

    __slots__ = ("command", "event", "name")
    on_host = False

    def __init__(self, command: Command) -> None:
        self.command = command
        self.name = command.name
        self.event: cl.Event | None = None

    def known(self) -> cl.Event | None:
        """Return its event, once it has one."""
        return self.event

    def enqueue(self, queue: cl.CommandQueue, wait_for: Events) -> cl.Event | None:
        """Enqueue it, and keep its event."""
        self.event = self.command.enqueue(queue, wait_for)
        return self.event


def marker_call() -> Call:
    """Make a command that only ends behind what it follows, as markers and barriers do."""
    return Call("marker", _MARK, {}, True)


def call_of(name: str, original: Original, args: tuple[object, ...]) -> Call:
    """Make a command that the core has bound, from all its arguments. None: the argument was left
    out."""
    given = {
        parameter: value
        for parameter, value in zip(parameters_of(original.__name__), args, strict=True)
        if parameter not in ("queue", "wait_for") and value is not None
    }
    if "is_blocking" in given:
        given["is_blocking"] = False
    return Call(name, original, given, True)
