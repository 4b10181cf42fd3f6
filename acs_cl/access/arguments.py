"""Arguments: from the arguments of a launch to the bytes that it reads and writes.

Input: arguments as the user gave them (arrays, views, PyOpenCL buffers, arrays, SVM, images), and
what the kernel may do to each. Output: the arguments in the form for the driver, and an `Access`.

The core names foreign memory, for launches here and for commands of an `acs.Queue`. Two Python
objects for the same memory meet: a sub-buffer is named by its parent and offset, shared virtual
memory and the program's own memory by address. Invariant: an unknown access is read-write on the
whole of its buffer, never "no conflict".
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyopencl as cl

from .. import core
from ..errors import UsageError, describe
from ..memory.array import Array, Home
from ..records import EVERYTHING, Access, NamedTuple, Span, interval

ADDRESS_SPACE = -1
"""Base number of memory of the program's, shared or its own. Its spans start at addresses."""

ALL: tuple[Span, ...] = (interval(EVERYTHING, 0, 1),)


class Resolved(NamedTuple):
    """One memory argument: the object for the driver, its bytes, and a byte offset that only the
    kernel can add."""

    argument: object
    spans: tuple[Span, ...]
    offset: int = 0
    is_placed: bool = False
    """Whether it begins where its bytes do, if they are one piece."""
    nbytes: int = 1 << 60
    """Bytes of its elements, if its spans may have others."""


def resolve(home: Home, value: object) -> Resolved | None:
    """Return the memory behind an argument. None: it is not memory. Raises `UsageError` for memory
    that cannot be used."""
    if isinstance(value, Array):
        return _resolve_array(home, value)
    if isinstance(value, (cl.SVMPointer, cl.MemoryObjectHolder)):
        known = _known(home, value)
        return Resolved(value, (known.span,), 0, known.is_placed)
    if hasattr(value, "base_data") and hasattr(value, "strides"):
        return _resolve_pyopencl_array(home, value)
    return None


def _usable(home: Home, array: Array) -> Array:
    """Return an array of this runtime that still has its memory."""
    if array.engine is not home:
        raise UsageError("it belongs to another runtime; get() it and make an array of this one")
    if array.nbytes and array.base is None:
        raise UsageError("its memory was given back by free(); make another array")
    return array


def _check_context(home: Home, memory: cl.SVMPointer | cl.MemoryObjectHolder) -> None:
    """Refuse memory of another context. Some drivers accept it and then use it as if it were their
    own. PyOpenCL does not tell the context of shared virtual memory."""
    if not isinstance(memory, cl.MemoryObjectHolder):
        return
    try:
        is_ours = memory.context == home.context
    except cl.LogicError:  # Intel's runtime does not keep the context of memory, and ours is there
        is_ours = False
    if not is_ours:
        raise UsageError(
            "it belongs to another context; make it with the runtime's, rt.context, or the runtime "
            "with context="
        )


def _known(home: Home, memory: cl.SVMPointer | cl.MemoryObjectHolder) -> core.native.Memory:
    """Return what is known of foreign memory."""
    _check_context(home, memory)
    found = core.native.memory_of(memory, home.store.reserved)
    assert found is not None, "it is memory"
    return found


def _resolve_array(home: Home, array: Array) -> Resolved:
    if not _usable(home, array).nbytes:
        return Resolved(None, ())
    if array.lead:
        raise UsageError("a view with negative strides cannot be passed to a kernel; copy it first")
    place = array.where()
    return Resolved(place.memory, array.spans, place.offset, True)


def _resolve_pyopencl_array(home: Home, array: Any) -> Resolved:
    data, offset = array.base_data, array.offset
    if data is None or not array.nbytes:
        return Resolved(None, ())
    known = _known(home, data)
    spans, base = ALL, known.span.base
    if base != EVERYTHING:
        start = offset + (known.span.start if known.is_placed else int(data.svm_ptr))
        spans = core.native.spans_of_view(
            base, start, array.shape, array.strides, array.dtype.itemsize
        )
    if isinstance(data, cl.SVMPointer) and offset:
        data, offset = cl.SVM(data.buf[offset:]), 0
    return Resolved(data, spans, offset, nbytes=int(array.nbytes))


def parent_of(memory: cl.MemoryObjectHolder) -> cl.MemoryObjectHolder | None:
    """Return the buffer that a sub-buffer or an image is a part of, or None."""
    parent = memory.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT)
    return parent if isinstance(parent, cl.MemoryObjectHolder) else None


def host_address(buffer: cl.MemoryObjectHolder) -> int:
    """Return the address of the program's memory behind a buffer. 0: it has none."""
    if buffer.flags & cl.mem_flags.USE_HOST_PTR:
        with contextlib.suppress(cl.Error, AttributeError):
            return int(buffer.get_host_array((int(buffer.size),), np.dtype(np.uint8)).ctypes.data)
    return 0


def declared(
    home: Home, given: object, keyword: str, command: str
) -> tuple[tuple[object, ...], tuple[Span, ...], tuple[Span, ...]]:
    """Return the memory named by `reads=` or `writes=`: the objects, their bytes, and the bytes
    that are exactly theirs (a view of many dimensions may stand for its hull)."""
    if given is None:
        return (), (), ()
    is_one = isinstance(given, (str, bytes, Array, Mapping, np.ndarray))
    if is_one or not isinstance(given, Iterable):
        given = (given,)
    objects = tuple(given)
    spans: list[Span] = []
    exact: list[Span] = []
    for value in objects:
        try:
            found = (
                Resolved(None, _usable(home, value).spans, nbytes=value.nbytes)
                if isinstance(value, Array)  # its strides may be negative
                else resolve(home, value)
            )
        except UsageError as error:
            raise UsageError(f"{command}: {keyword}= names {value!r}: {error}") from None
        if found is None:
            raise UsageError(
                f"{command}: {keyword}= takes arrays, views and buffers, got {describe(value)}"
            )
        spans += found.spans
        if sum(span.nbytes for span in found.spans) <= found.nbytes:
            exact += found.spans
    return objects, tuple(spans), tuple(exact)


def replaced(
    home: Home,
    access: Access,
    spans: Sequence[Sequence[Span] | None],
    named: tuple[object, object],
    command: str,
) -> tuple[Access, tuple[Span, ...]]:
    """Put the memory that `reads=` and `writes=` name in place of what was inferred for the
    arguments of which that is a part. Return the named writes, too. `spans`: of each argument."""
    _, reads, _ = declared(home, named[0], "reads", command)
    _, writes, exact = declared(home, named[1], "writes", command)
    return core.native.replaced(access, spans, reads, writes, exact), writes
