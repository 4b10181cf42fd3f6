"""Replacements of PyOpenCL's functions and setters, and the arguments that kernels were given.

Input: functions of PyOpenCL, and calls that set a kernel's arguments. Output: their replacements,
and a kernel's arguments when a launch needs them. Both happen at every command of a program, so the
core does the usual cases itself (`_core/queue/commands.cpp`). Only the core lets commands bypass
the runtime. An unusual command is tracked, and ends the bypass.

Invariant: the arguments that are remembered are those that the kernel was given. A tuple is kept
and read later only if nothing in it can change.
"""

from __future__ import annotations

import struct
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import _cl

from .. import core
from .calls import Original, Parameters, call_of
from .events import QueueEvent, native_error

MULTI, BYTES, PACKED = range(3)
"""PyOpenCL's setters that take a tuple: of objects, of bytes, or of numbers to be packed."""

STEPS = (2, 2, 3)
"""Items for each argument in their tuples. A setter that takes an index and an argument has
none."""

_OBJECTS = (cl.MemoryObjectHolder, cl.SVMPointer, cl.LocalMemory, cl.Sampler, cl.CommandQueue)

_STEADY = (
    type(None), bool, int, float, bytes, cl.Buffer, _cl.PooledBuffer, cl.Image, cl.LocalMemory,
    cl.Sampler, cl.SVM, cl.SVMAllocation, _cl.PooledSVM,
    *(np.dtype(code).type for code in "?bBhHiIlLqQefdFD"),
)  # fmt: skip
"""Types whose objects never change."""

JOINS = {
    name: number
    for number, name in enumerate(
        (
            "enqueue_nd_range_kernel", "_enqueue_read_buffer", "_enqueue_write_buffer",
            "_enqueue_copy_buffer", "_enqueue_fill_buffer", "_enqueue_svm_memcpy",
            "_enqueue_svm_memfill",
        ), 1
    )
}  # fmt: skip
"""Commands that the core makes launches of when they are tracked, by the core's own numbers."""

_noting = threading.RLock()
"""Held while arguments are read, so that older ones of one thread do not replace newer ones of
another."""

_generation = 0
"""Counts how often the remembering of arguments began. Arguments from before may be out of date."""


def begin_noting() -> None:
    """Forget the arguments that kernels were given so far."""
    global _generation
    _generation += 1
    core.native.begin_noting(Arguments, _STEADY)
    core.native.use_events((cl.Event, cl.NannyEvent, QueueEvent, cl.Event.from_int_ptr))
    kinds = cl.command_type
    core.native.use_kinds(
        (
            kinds.NDRANGE_KERNEL, kinds.READ_BUFFER, kinds.WRITE_BUFFER, kinds.COPY_BUFFER,
            kinds.FILL_BUFFER, kinds.SVM_MEMCPY, kinds.SVM_MEMFILL,
        ),
        native_error, call_of,
    )  # fmt: skip


# ---- replacements --------------------------------------------------------------------------------


def command(original: Original, otherwise: Original, parameters: Parameters) -> Original:
    """Replace a function of PyOpenCL by one of the core, which bypasses the runtime or waits for
    events. An unusual call goes to `otherwise`."""
    queue, waits, blocks = (
        parameters.index(name) if name in parameters else -1
        for name in ("queue", "wait_for", "is_blocking")
    )
    names = tuple(map(sys.intern, parameters))
    joins = JOINS.get(original.__name__, 0)
    return core.native.Command(original, otherwise, names, queue, waits, blocks, joins)


# ---- arguments of kernels ------------------------------------------------------------------------


class Arguments(core.native.Given):
    """Holds the arguments that a kernel was given, by index: memory and the like as objects, values
    as bytes."""

    def __init__(self, kernel: cl.Kernel) -> None:
        super().__init__(kernel)
        self.pointers: dict[int, object] = {}
        self.values: dict[int, bytes] = {}

    def settle(self) -> None:
        """Read the tuples that were kept."""
        for which, items in self.take():
            _READ[which](self, items)

    def put(self, index: int, value: object) -> None:
        """Note one argument, as `Kernel.set_arg` takes it."""
        if value is None or isinstance(value, _OBJECTS):
            self.pointers[index] = value
            self.values.pop(index, None)
        else:
            self.put_bytes(index, value)

    def put_bytes(self, index: int, value: Any) -> None:
        """Note one argument by value, as it is now: the object may change later."""
        self.values[index] = value if type(value) is bytes else memoryview(value).tobytes()
        self.pointers.pop(index, None)

    def _objects(self, pairs: tuple[Any, ...]) -> None:
        for at in range(0, len(pairs), 2):
            self.put(pairs[at], pairs[at + 1])

    def _bytes(self, pairs: tuple[Any, ...]) -> None:
        for at in range(0, len(pairs), 2):
            self.put_bytes(pairs[at], pairs[at + 1])

    def _packed(self, triples: tuple[Any, ...]) -> None:
        values, pointers = self.values, self.pointers
        for at in range(0, len(triples), 3):
            code = triples[at + 1]
            if code == b"c":  # to PyOpenCL, this is a character's number
                code = b"b"
            index = triples[at]
            values[index] = struct.pack(code, triples[at + 2])
            if pointers:
                pointers.pop(index, None)


_READ: tuple[Callable[[Arguments, tuple[Any, ...]], None], ...] = (
    Arguments._objects,
    Arguments._bytes,
    Arguments._packed,
)

SETTERS: dict[str, Callable[..., None]] = {
    "_set_arg_multi": Arguments._objects,
    "_set_arg_buf_multi": Arguments._bytes,
    "_set_arg_buf_pack_multi": Arguments._packed,
    "_set_arg_buf": Arguments.put_bytes,
    "_set_arg_null": lambda known, index: known.put(index, None),
    "_set_arg_svm": Arguments.put,
    "set_arg": Arguments.put,
}
"""Methods of PyOpenCL's kernels that set arguments, and the functions that note these."""


class Noted(NamedTuple):
    """The arguments of a kernel at one moment. Later calls of setters do not change them."""

    pointers: dict[int, object]
    values: dict[int, bytes]

    @property
    def many(self) -> int:
        """Return how many arguments are known."""
        return len(self.pointers) + len(self.values)


def arguments_of(kernel: object) -> Noted | None:
    """Return the known arguments of a kernel. None: none are known. Threads may share a kernel, as
    arrays of PyOpenCL do, so a command asks before it waits for anything."""
    known: Arguments | None = getattr(kernel, "acs_arguments", None)
    if known is None or known.generation != _generation:
        return None
    with _noting:
        known.settle()
        return Noted(known.pointers.copy(), known.values.copy())


def setter(name: str, original: Original) -> Original:
    """Return the replacement of a method that sets arguments of a kernel."""
    read = SETTERS[name]

    def note(known: Arguments, *args: object) -> None:
        with _noting:
            known.settle()
            read(known, *args)

    def setter(self: Any, *args: Any) -> None:
        try:
            original(self, *args)
        except BaseException:
            self.acs_arguments = None  # some may have been set
            raise
        known = getattr(self, "acs_arguments", None)
        if known is None or known.generation != _generation:
            known = self.acs_arguments = Arguments(self)
        note(known, *args)

    if read in _READ:
        which = _READ.index(read)
        return core.native.Setter(original, setter, note, which, STEPS[which])
    if name == "set_arg":
        return core.native.Setter(original, setter, note, MULTI, 0)
    return setter
