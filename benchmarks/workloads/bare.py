"""Make PyOpenCL by itself a platform for workloads: the baseline, and the ground for experts.

Input: the calls of `workload.Platform`. Output: typed kernel calls on one in-order queue.
`expert.Queues` takes the same programs and arrays to several queues.

Invariant: nothing here is slower than the code that a PyOpenCL user would write. Kernels know the
types of their values beforehand, views are sub-buffers that are made once, and only `get` and
`finish` wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
import pyopencl as cl

from acs_cl import UsageError, devices

_INFO = cl.kernel_arg_info
_TYPES = {"int": "i4", "uint": "u4", "long": "i8", "ulong": "u8", "float": "f4", "double": "f8"}
_POINTERS = (cl.kernel_arg_address_qualifier.GLOBAL, cl.kernel_arg_address_qualifier.CONSTANT)


class BareArray:
    """A buffer, or a contiguous part of one, with a shape and a type."""

    def __init__(
        self, queue: Any, buffer: Any, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self._queue = queue
        self.buffer = buffer
        self.shape = shape
        self.dtype = dtype
        self.nbytes = prod(shape) * dtype.itemsize
        self._parts: dict[tuple[int, int], Any] = {}

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: int | slice | tuple[int, ...]) -> BareArray:
        """Return a view: by leading indices, or by a slice with step 1 of the first dimension."""
        if isinstance(index, slice):
            start, stop, step = index.indices(self.shape[0])
            if step != 1:
                raise UsageError("views of bare arrays are contiguous")
            row = self.nbytes // self.shape[0]
            shape = (stop - start, *self.shape[1:])
            return self._part(start * row, (stop - start) * row, shape)
        where = index if isinstance(index, tuple) else (index,)
        shape = self.shape[len(where) :]
        nbytes = prod(shape) * self.dtype.itemsize
        place = int(np.ravel_multi_index(where, self.shape[: len(where)]))
        return self._part(place * nbytes, nbytes, shape)

    def reshape(self, *shape: int) -> BareArray:
        """Return the same elements in another shape."""
        return BareArray(self._queue, self.buffer, shape, self.dtype)

    def get(self) -> Any:
        """Read back; blocks."""
        host = np.empty(self.shape, self.dtype)
        cl.enqueue_copy(self._queue, host, self.buffer)
        return host

    def set(self, values: Any) -> None:
        """Overwrite all elements with host values."""
        host = np.ascontiguousarray(np.broadcast_to(values, self.shape), dtype=self.dtype)
        cl.enqueue_copy(self._queue, self.buffer, host)

    def fill(self, value: Any) -> None:
        """Overwrite every element with one value."""
        cl.enqueue_fill_buffer(self._queue, self.buffer, self.dtype.type(value), 0, self.nbytes)

    def copy_from(self, source: BareArray) -> None:
        """Overwrite all elements with those of another array."""
        cl.enqueue_copy(self._queue, self.buffer, source.buffer, byte_count=self.nbytes)

    def _part(self, start: int, nbytes: int, shape: tuple[int, ...]) -> BareArray:
        if (start, nbytes) == (0, self.buffer.size):
            return BareArray(self._queue, self.buffer, shape, self.dtype)
        part = self._parts.get((start, nbytes))
        if part is None:
            part = self._parts[start, nbytes] = self.buffer.get_sub_region(start, nbytes)
        return BareArray(self._queue, part, shape, self.dtype)


class BareKernel:
    """A typed kernel; calling it enqueues it."""

    def __init__(self, queue: Any, kernel: Any) -> None:
        self._queue = queue
        self.native = kernel
        kernel.set_scalar_arg_dtypes([_dtype(kernel, n) for n in range(kernel.num_args)])

    def __call__(
        self,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...] | None,
        *args: Any,
        reads: Any = None,
        writes: Any = None,
    ) -> Any:
        """Enqueue; gives the event. What is declared about accesses has no use here."""
        return self.native(self._queue, global_size, local_size, *plain(args))

    def ready(self, global_size: Any, local_size: Any, *args: Any) -> partial[Any]:
        """Prepare the same launch for many times."""
        return partial(self.native, self._queue, global_size, local_size, *plain(args))


class BareProgram:
    """A built program; its kernels are attributes."""

    def __init__(self, queue: Any, program: Any) -> None:
        self._queue = queue
        self._program = program
        self._kernels: dict[str, BareKernel] = {}

    def __getattr__(self, name: str) -> BareKernel:
        kernel = self._kernels.get(name)
        if kernel is None:
            kernel = BareKernel(self._queue, cl.Kernel(self._program, name))
            self._kernels[name] = kernel
        return kernel


class InOrder:
    """A platform: one in-order queue."""

    def __init__(self, device: Any, context: Any = None) -> None:
        devices.repair(device)
        self.device = device
        self.context = context or cl.Context([device])
        self.queue: Any = cl.CommandQueue(self.context, device)

    def build(
        self, source: str, options: Sequence[str] = (), macros: Mapping[str, Any] | None = None
    ) -> BareProgram:
        """Build a program from its source."""
        words = [*options, *(f"-D{name}={value}" for name, value in (macros or {}).items())]
        # on Intel's runtime a program from PyOpenCL's cache has no information on parameters
        words.append("-cl-kernel-arg-info")
        program = cl.Program(self.context, source).build(words, cache_dir=False)  # type: ignore[arg-type]
        return BareProgram(self.queue, program)

    def empty(self, shape: Any, dtype: Any = np.float32) -> BareArray:
        """Make an array with undefined contents."""
        lengths = shape if isinstance(shape, tuple) else (int(shape),)
        kind = np.dtype(dtype)
        nbytes = prod(lengths) * kind.itemsize
        buffer = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, nbytes)
        return BareArray(self.queue, buffer, lengths, kind)

    def zeros(self, shape: Any, dtype: Any = np.float32) -> BareArray:
        """Make an array of zeros."""
        array = self.empty(shape, dtype)
        array.fill(0)
        return array

    def array(self, values: Any, dtype: Any = None) -> BareArray:
        """Make an array with the values of a NumPy array."""
        host = np.asarray(values, dtype=dtype, order="C")
        array = self.empty(host.shape, host.dtype)
        array.set(host)
        return array

    def finish(self) -> None:
        """Wait for everything."""
        self.queue.finish()


def plain(args: Sequence[Any]) -> list[Any]:
    """Return arguments as PyOpenCL takes them."""
    return [arg.buffer if arg.__class__ is BareArray else arg for arg in args]


def _dtype(kernel: Any, position: int) -> Any:
    """Return the type of a value parameter. None: it is memory."""
    if kernel.get_arg_info(position, _INFO.ADDRESS_QUALIFIER) in _POINTERS:
        return None
    return np.dtype(_TYPES[kernel.get_arg_info(position, _INFO.TYPE_NAME)])
