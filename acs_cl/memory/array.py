"""Arrays of a runtime, and views that share their memory.

In: shapes, dtypes, indices. Out: `Array` objects that kernels take as arguments; every transfer
(`get`, `set`, `fill`, `copy_from`) is a launch in program order. A view knows exactly which bytes
it touches, so two columns or tiles of one matrix are independent.

Invariant: an array's `_home` is its runtime while it can be passed to a kernel without further
thought (one rectangle of bytes, a place that starts at its first byte), and None otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import core
from ..devices.driver import Place
from ..errors import UsageError
from ..ranges import spans_of_view
from ..records import Span
from .views import contiguous_strides, index_view, is_contiguous, reshape_view

if TYPE_CHECKING:
    from ..launch.handle import Handle
    from ..runtime import Runtime
    from .blocks import Base

HostArray = np.ndarray[Any, Any]


class Array(core.native.View):
    """Holds elements on the device, or is a view of such memory. `Runtime.array`, `empty` and
    `zeros` make one.

    >>> import acs_cl as acs, numpy as np
    >>> with acs.Runtime() as rt:
    ...     x = rt.array(np.arange(6, dtype="f4").reshape(2, 3))
    ...     column = x[:, 1]        # a view: shares memory, conflicts only where bytes meet
    ...     handle = column.fill(9)
    ...     print(x.get())
    [[0. 9. 2.]
     [3. 9. 5.]]
    """

    __slots__ = ("__weakref__", "_base", "_lead", "_offset", "_span", "shape", "strides")

    _address: int
    _argument: Any
    _home: Runtime | None
    _place: Place | None
    _runtime: Runtime
    _spans: tuple[Span, ...]
    dtype: np.dtype[Any]
    nbytes: int
    size: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def __init__(
        self,
        runtime: Runtime,
        base: Base | None,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> None:
        self._runtime = runtime
        self._base = base
        self._offset = offset
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.size = prod(shape)
        self.nbytes = self.size * dtype.itemsize
        self._home = None
        self._address = 0
        self._argument = None
        self._place = None
        self._lead = 0
        self._spans = ()
        self._span: Span | None = None
        if base is None or not self.nbytes:
            return
        self._spans = spans_of_view(base.number, offset, shape, strides, dtype.itemsize)
        start = min(span.start for span in self._spans)
        end = max(span.end for span in self._spans)
        self._lead = offset - start
        self._place = base.place(start, end - start)
        if len(self._spans) == 1 and not self._lead and not self._place.offset:
            self._span = self._spans[0]
            self._address = base.block.address + start
            self._argument = self._place.memory
            self._home = runtime

    @property
    def runtime(self) -> Runtime:
        """Return the runtime that it belongs to."""
        return self._runtime

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    @property
    def data(self) -> Any:
        """Return the memory as PyOpenCL takes it: an SVM pointer, or a buffer if the array starts
        where the buffer does.

        The runtime does not see commands on other queues: call `finish()` first, or wait for a
        handle.
        """
        place = self._live()._place_or_raise()
        if place.offset:
            raise UsageError("this view starts inside its buffer; copy it, or use its base")
        if self._runtime._checker is not None:
            self._runtime._checker.data_taken(self)
        return place.memory

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        state = "" if self._base is not None else ", freed"
        return f"<acs_cl.Array {self.shape} {self.dtype}{state}>"

    def __getitem__(self, index: Any) -> Array:
        """Make a view: integers, slices, `...`, `None`, as in NumPy. Out of bounds is an error."""
        self._live()
        shape, strides, offset = index_view(index, self.shape, self.strides)
        return self._view(self._offset + offset, shape, strides, self.dtype)

    def __iter__(self) -> Iterator[Array]:
        return map(self.__getitem__, range(len(self)))

    def __setitem__(self, index: Any, value: Any) -> None:
        """Overwrite a part: copy an array of this runtime, fill with a scalar, or set a NumPy
        array.
        """
        view = self[index]
        if isinstance(value, Array):
            view.copy_from(value)
        elif np.ndim(value) == 0:
            view.fill(value)
        else:
            view.set(value)

    def reshape(self, *shape: Any) -> Array:
        """Make a view with another shape of a contiguous array; one length may be -1."""
        self._live()
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        new = reshape_view(self.shape, self.strides, self.dtype.itemsize, tuple(wanted))
        return self._view(
            self._offset, new, contiguous_strides(new, self.dtype.itemsize), self.dtype
        )

    @property
    def T(self) -> Array:  # noqa: N802  NumPy's name
        """Make a view with the dimensions reversed."""
        self._live()
        return self._view(self._offset, self.shape[::-1], self.strides[::-1], self.dtype)

    def view(self, dtype: Any) -> Array:
        """Read the same bytes as another type; the last dimension of a contiguous array adapts."""
        self._live()
        new = np.dtype(dtype)
        if new.itemsize == self.dtype.itemsize:
            return self._view(self._offset, self.shape, self.strides, new)
        last = self.shape[-1] * self.dtype.itemsize if self.shape else 0
        if not self.contiguous or not self.shape or last % new.itemsize:
            raise UsageError(f"a {self.dtype} array of shape {self.shape} cannot be seen as {new}")
        shape = (*self.shape[:-1], last // new.itemsize)
        return self._view(self._offset, shape, contiguous_strides(shape, new.itemsize), new)

    @property
    def contiguous(self) -> bool:
        """Tell whether the elements lie in memory one after another, in C order."""
        return is_contiguous(self.shape, self.strides, self.dtype.itemsize)

    def get(self, out: HostArray | None = None, wait: bool = True) -> Any:
        """Read back. This waits for the writers of these bytes and for nothing else.

        With `wait=False` it returns a `Handle` whose `wait()` gives the NumPy array. Leave `out`
        alone until then.
        """
        runtime = self._live()._runtime
        return runtime._read_now(self, out) if wait else runtime._read(self, out)

    def set(self, source: Any, copy: bool = True) -> Handle:
        """Overwrite with the values of a NumPy array or scalar; broadcast and convert as NumPy
        does.

        `source` is copied at once, so it may change afterwards. `copy=False` is a promise that it
        does not change until the returned handle is done.
        """
        return self._live()._runtime._write(self, source, copy)

    def fill(self, value: Any) -> Handle:
        """Overwrite every element with `value`."""
        return self._live()._runtime._fill(self, value)

    def copy_from(self, source: Array) -> Handle:
        """Overwrite with the elements of another array of the same shape and type."""
        return self._live()._runtime._copy(self, source)

    def free(self) -> None:
        """Give the memory back now; launches in flight still finish with it. Views stop working
        only as they are freed or dropped themselves.
        """
        self._base = None
        self._home = None
        self._argument = None
        self._place = None
        self._spans = ()
        self._span = None

    def _place_or_raise(self) -> Place:
        """Where it is, for the driver."""
        if self._place is None:
            raise UsageError(f"{self!r} has no memory")
        return self._place

    def _overwrites(self) -> tuple[Span, ...]:
        """What is certain to be overwritten when every element is: nothing where the spans are a
        hull with other bytes in it."""
        exact = sum(span.nbytes for span in self._spans) <= self.nbytes
        return self._spans if exact else ()

    def _view(
        self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Array:
        return Array(self._runtime, self._base, offset, shape, strides, dtype)

    def _live(self) -> Array:
        if self._base is None and self.nbytes:
            raise UsageError(f"{self!r}: its memory was given back")
        return self
