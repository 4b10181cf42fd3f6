"""The arguments that PyOpenCL's setters gave a kernel, remembered until a launch needs them.

Input: calls that set a kernel's arguments. Output: replacements of these setters, and a kernel's
arguments at the moment of a launch. Setters are called at every command of a program, so the core
does the usual cases itself (`_core/queue/kernel_arguments.cpp`).

Invariant: the arguments that are remembered are those that the kernel was given. A tuple is kept
and read later only if nothing in it can change. Where several objects set arguments of one kernel
of the driver (`Kernel.from_int_ptr`), none of them knows its arguments.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import _cl

from .. import core
from ..plans import ArgumentValues
from .calls import Original
from .slab import Slab

MULTI, BYTES, PACKED = range(3)
"""PyOpenCL's setters that take a tuple: of objects, of bytes, or of numbers to be packed."""

STEPS = (2, 2, 3)
"""Items for each argument in their tuples. A setter that takes an index and an argument has
none."""

_OBJECTS = (cl.MemoryObjectHolder, cl.SVMPointer, cl.LocalMemory, cl.Sampler, cl.CommandQueue)

_STEADY = (
    type(None), bool, int, float, bytes, cl.Buffer, _cl.PooledBuffer, cl.Image, cl.LocalMemory,
    cl.Sampler, cl.SVM, cl.SVMAllocation, _cl.PooledSVM, Slab,
    *(np.dtype(code).type for code in "?bBhHiIlLqQefdFD"),
)  # fmt: skip
"""Types whose objects never change."""

_VALUES = (np.void, np.ndarray)
"""Types of structures and vectors by value, which are copied as they are set."""

_noting = threading.RLock()
"""Held while arguments are read, so that older ones of one thread do not replace newer ones of
another."""

_generation = 0
"""Counts how often the remembering of arguments began. Arguments from before may be out of date."""


def begin_noting() -> None:
    """Forget the arguments that kernels were given so far."""
    global _generation
    _generation += 1
    core.native.begin_noting(KernelArguments, _STEADY, _VALUES)


class KernelArguments(core.native.KernelArguments):
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


_READ: tuple[Callable[[KernelArguments, tuple[Any, ...]], None], ...] = (
    KernelArguments._objects,
    KernelArguments._bytes,
    KernelArguments._packed,
)

SETTERS: dict[str, Callable[..., None]] = {
    "_set_arg_multi": KernelArguments._objects,
    "_set_arg_buf_multi": KernelArguments._bytes,
    "_set_arg_buf_pack_multi": KernelArguments._packed,
    "_set_arg_buf": KernelArguments.put_bytes,
    "_set_arg_null": lambda known, index: known.put(index, None),
    "_set_arg_svm": KernelArguments.put,
    "set_arg": KernelArguments.put,
}
"""Methods of PyOpenCL's kernels that set arguments, and the functions that note these."""


def arguments_of(kernel: object) -> ArgumentValues | None:
    """Return the known arguments of a kernel. None: none are known. Threads may share a kernel, as
    arrays of PyOpenCL do, so a command asks before it waits for anything."""
    known: KernelArguments | None = getattr(kernel, "acs_arguments", None)
    if known is None or known.generation != _generation:
        if not isinstance(kernel, cl.Kernel) or kernel.num_args:
            return None
        bare: Any = kernel  # it has no parameters, so that no setter is ever called
        known = bare.acs_arguments = KernelArguments(bare)
    if known.is_shared:
        return None
    with _noting:
        known.settle()
        return ArgumentValues(known.pointers.copy(), known.values.copy())


def setter(name: str, original: Original) -> Original:
    """Return the replacement of a method that sets arguments of a kernel."""
    read = SETTERS[name]

    def note(known: KernelArguments, *args: object) -> None:
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
            known = self.acs_arguments = KernelArguments(self)
        note(known, *args)

    if read in _READ:
        which = _READ.index(read)
        return core.native.Setter(original, setter, note, which, STEPS[which])
    if read is KernelArguments.put:  # an index and an argument
        return core.native.Setter(original, setter, note, MULTI, 0)
    return setter
