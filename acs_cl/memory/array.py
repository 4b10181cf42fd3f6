"""Arrays of a runtime, and views that share their memory.

Input: shapes, dtypes, indices. Output: `Array` objects that kernels take as arguments. Every
transfer (`get`, `set`, `fill`, `copy_from`) is a launch in program order. A view knows exactly
which bytes it touches, so two columns or tiles of one matrix are independent.

Invariant: an array's `home` is its runtime if it is a simple kernel argument: one rectangle of
bytes, in a place that starts at its first byte. Otherwise it is None.
"""

# Long because: an array has the operators of NumPy's that it refuses, each with what to write.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn, overload

import numpy as np
import numpy.typing as npt

from .. import core
from ..devices.driver import Place
from ..errors import (
    UnreadableError,
    UsageError,
    no_attribute,
    no_copy,
    offered,
    refuse_making,
)
from ..records import DType, Protocol, Span
from ..records import HostArray as HostArray
from .values import values_of
from .views import (
    contiguous_strides,
    index_view,
    integers,
    is_contiguous,
    normal_dtype,
    reshape_view,
)

indexed = core.native.indexed  # a program may make a view for each launch

if TYPE_CHECKING:
    import pyopencl as cl

    from ..handle import Handle
    from .blocks import Base, Store


LAYOUT: dict[object, str] = {np.shape: "shape", np.ndim: "ndim", np.size: "size"}
"""Functions of NumPy that need no values, with the attribute that they return."""

PARTS = 6
"""What an array is made of: the parameters of its `__init__`."""

_new = core.native.View.__new__

VALUES = int, float, complex, list, tuple
"""Types of Python whose values an array might be compared with."""


class Transfers(Protocol):
    """Functions of higher modules that move the contents of arrays, by the engine of a runtime."""

    def read_now(self, engine: Any, array: Array, out: object) -> HostArray:
        """Read an array back, and wait for it."""

    def core_reads(
        self, engine: Any, array: Array, host: HostArray, behind: Sequence[int] | None = None
    ) -> bool:
        """Have the core read an array back, and wait for it. False: it did not."""

    def read(self, engine: Any, array: Array, out: object) -> Handle:
        """Read an array back."""

    def write(self, engine: Any, array: Array, source: object, copy: bool) -> Handle:
        """Overwrite an array with host values."""

    def fill(self, engine: Any, array: Array, value: object) -> Handle:
        """Overwrite every element of an array."""

    def copy(self, engine: Any, target: Array, source: Array) -> Handle:
        """Overwrite an array with another one."""


class Home(Protocol):
    """The engine of a runtime, as arrays use it."""

    store: Store
    context: cl.Context

    @property
    def calls(self) -> Transfers:
        """Return the transfers of arrays."""

    def runtime(self) -> object:
        """Return the runtime that the program holds."""

    def tell_address(self, array: Array) -> None:
        """Note that the program has the address of an array, and may use it unseen."""


class Array(core.native.View):
    """Holds elements on the device, or is a view of such memory.

    `Runtime.array`, `empty` and `zeros` make one.

    >>> import acs_cl as acs, numpy as np
    >>> with acs.Runtime() as rt:
    ...     x = rt.array(np.arange(6, dtype="f4").reshape(2, 3))
    ...     column = x[:, 1]        # a view: shares memory, conflicts only where bytes meet
    ...     handle = column.fill(9)
    ...     print(x.get())
    [[0. 9. 2.]
     [3. 9. 5.]]
    """

    __slots__ = ("__weakref__",)

    home: Home | None
    is_inside: bool
    """It would be a simple kernel argument, but starts inside its buffer."""
    place: Place | None
    engine: Home
    base: Base | None
    dtype: DType

    def __new__(cls, *parts: object) -> Array:
        """Refuse what a program may try."""
        # only that is asked: a program may make an array for each launch
        if len(parts) != PARTS:
            refuse_making(cls, ())
        return _new(cls)

    def __init__(
        self,
        engine: Home,
        base: Base | None,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: DType,
    ) -> None:
        ground = None
        if base is not None:
            block = base.block
            ground = base.number, block.address, base.memory, block.offset, base.place
        core.native.lay_out(
            self, engine, base, ground, offset, shape, strides, dtype, dtype.itemsize
        )

    @property
    def runtime(self) -> Any:
        """Return the runtime that it belongs to."""
        return self.engine.runtime()

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    @property
    def data(self) -> Any:
        """Return the memory for PyOpenCL: an SVM pointer, or a buffer if the array starts where it
        does.

        The runtime does not see commands on other queues: call `finish()` first, or wait for a
        handle.
        """
        try:
            place = self.live().where()
            if place.offset:
                raise UsageError("this view starts inside its buffer; copy it, or use its base")
            self.engine.tell_address(self)
        except UsageError as error:
            raise UnreadableError(str(error)) from None
        return place.memory

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        state = "" if self.base is not None or not self.nbytes else ", freed"
        return f"<acs_cl.Array {self.shape} {self.dtype}{state}>"

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise UsageError(
            f"{self!r}: its values are on the device, and NumPy would take it for a sequence of "
            "arrays; get() waits for them and copies them to the host"
        )

    def __array_function__(
        self, function: object, types: object, args: Sequence[object], keywords: object
    ) -> object:
        """Refuse NumPy's functions of values. `np.array_equal` would take the error of `__array__`
        for a difference, and return False."""
        if function in LAYOUT and args and args[0] is self and len(args) == 1:
            return getattr(self, LAYOUT[function])
        return self.__array__()

    def __reduce__(self) -> NoReturn:
        no_copy(
            self, "memory of a device",
            "send what get() returns, or copy_from() it into another array",
        )  # fmt: skip

    def __format__(self, spec: str) -> str:
        if spec:
            self._compute()
        return repr(self)

    def _compute(self, other: object = None) -> NoReturn:
        raise UsageError(
            f"{self!r}: its values are on the device; launch a kernel that computes with them, or "
            "get() them"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _compute
    __rtruediv__ = __neg__ = __float__ = __int__ = __bool__ = _compute
    __matmul__ = __rmatmul__ = __pow__ = __rpow__ = __mod__ = __rmod__ = __floordiv__ = _compute
    __rfloordiv__ = __and__ = __rand__ = __or__ = __ror__ = __invert__ = __abs__ = _compute
    __lt__ = __le__ = __gt__ = __ge__ = _compute
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        """Tell whether it is the same array object, as keys of dicts need it. Nobody can compare
        values here, so another array, and whatever has values, are refused."""
        if self is other:
            return True
        if isinstance(other, VALUES) or hasattr(other, "__array__") or hasattr(other, "dtype"):
            raise UsageError(
                f"{self!r}: its values are on the device; compare those that get() returns, as "
                "x.get() == y.get(), or ask whether `x is y`"
            )
        return False

    if not TYPE_CHECKING:  # a type checker would take any name then
        __getattr__ = no_attribute

    __dir__ = offered

    def __getitem__(self, index: object) -> Array:
        """Make a view: integers, slices, `...`, `None`, as in NumPy. Out of bounds is an error."""
        view: Array | None = indexed(self, index)
        if view is not None:
            return view
        self.live()
        shape, strides, offset = index_view(index, self.shape, self.strides)
        return self.view_at(self.offset + offset, shape, strides, self.dtype)

    def __iter__(self) -> Iterator[Array]:
        return map(self.__getitem__, range(len(self)))

    def __setitem__(self, index: object, value: Any) -> None:
        """Overwrite a part with an array of this runtime, a scalar, or a NumPy array."""
        view = self[index]
        if isinstance(value, Array):
            view.copy_from(value)
        elif values_of(value).ndim == 0:
            view.fill(value)
        else:
            view.set(value)

    def reshape(self, *shape: Any) -> Array:
        """Make a view with another shape of a contiguous array; one length may be -1."""
        self.live()
        wanted = integers(shape[0] if len(shape) == 1 else shape)
        new = reshape_view(self.shape, self.strides, self.dtype.itemsize, wanted)
        return self.view_at(
            self.offset, new, contiguous_strides(new, self.dtype.itemsize), self.dtype
        )

    @property
    def T(self) -> Array:  # noqa: N802  NumPy's name
        """Make a view with the dimensions reversed."""
        try:
            self.live()
        except UsageError as error:
            raise UnreadableError(str(error)) from None
        return self.view_at(self.offset, self.shape[::-1], self.strides[::-1], self.dtype)

    def view(self, dtype: npt.DTypeLike) -> Array:
        """Read the same bytes as another type; the last dimension of a contiguous array adapts."""
        self.live()
        new = normal_dtype(dtype)
        if new.itemsize == self.dtype.itemsize:
            return self.view_at(self.offset, self.shape, self.strides, new)
        last = self.shape[-1] * self.dtype.itemsize if self.shape else 0
        if not self.contiguous or not self.shape or last % new.itemsize:
            why = f"its last axis has {last:,} bytes, and an element {new.itemsize}"
            if not self.contiguous:
                why = "its elements lie apart; view the whole array, and then take a part"
            elif not self.shape:
                why = "it has no axis that could become longer; reshape(1) gives it one"
            raise UsageError(
                f"a {self.dtype} array of shape {self.shape} cannot be seen as {new}: {why}"
            )
        shape = (*self.shape[:-1], last // new.itemsize)
        return self.view_at(self.offset, shape, contiguous_strides(shape, new.itemsize), new)

    @property
    def contiguous(self) -> bool:
        """Tell whether the elements lie in memory one after another, in C order."""
        return is_contiguous(self.shape, self.strides, self.dtype.itemsize)

    @overload
    def get(self, out: HostArray | None = None, wait: Literal[True] = True) -> HostArray: ...

    @overload
    def get(self, out: HostArray | None = None, *, wait: Literal[False]) -> Handle: ...

    def get(self, out: HostArray | None = None, wait: bool = True) -> HostArray | Handle:
        """Read back. This waits only for the writers of these bytes.

        `out` is a NumPy array of the same shape and dtype, which is filled and returned. Raises
        `PoisonedError` if a launch that should have written these bytes failed.

        With `wait=False` it returns a `Handle` whose `wait()` gives the NumPy array. Do not use
        `out` until then.
        """
        engine = self.live().engine
        read = engine.calls.read_now if wait else engine.calls.read
        return read(engine, self, out)

    def set(self, source: object, copy: bool = True) -> Handle:
        """Overwrite with the values of a NumPy array or scalar. Broadcast as NumPy does. Raises
        `UsageError` if the values do not fit the dtype.

        `source` is copied at once, so it may change afterwards. `copy=False` promises that it does
        not change until the returned handle is done.
        """
        engine = self.live().engine
        return engine.calls.write(engine, self, source, copy)

    def fill(self, value: object) -> Handle:
        """Overwrite every element with `value`. Raises `UsageError` if the dtype cannot hold it."""
        engine = self.live().engine
        return engine.calls.fill(engine, self, value)

    def copy_from(self, source: Array) -> Handle:
        """Overwrite with the elements of another array of the same shape and type."""
        engine = self.live().engine
        return engine.calls.copy(engine, self, source)

    def free(self) -> None:
        """Release the memory now. Launches in flight still finish with it. Views keep working until
        they are freed or dropped themselves."""
        core.native.release(self)

    def where(self) -> Place:
        """Return its place for the driver. Raise `UsageError` if it has no memory."""
        if self.place is None:
            raise UsageError(f"{self!r} has no memory")
        return self.place

    def overwrites(self) -> tuple[Span, ...]:
        """Return the bytes that are certainly overwritten if every element is. Empty: the spans are
        a hull with other bytes in it."""
        exact = sum(span.nbytes for span in self.spans) <= self.nbytes
        return self.spans if exact else ()

    def view_at(
        self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType
    ) -> Array:
        """Make a view of the same memory, `offset` bytes behind its beginning."""
        return Array(self.engine, self.base, offset, shape, strides, dtype)

    def live(self) -> Array:
        """Return the array. Raise `UsageError` if its memory was released."""
        if self.base is None and self.nbytes:
            raise UsageError(f"{self!r}: its memory was given back by free(); make another array")
        return self
