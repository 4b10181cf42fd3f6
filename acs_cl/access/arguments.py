"""Access: from the arguments of a launch to the bytes it reads and writes.

In: arguments as the user gave them (arrays, views, PyOpenCL buffers, arrays, SVM, images) and what
the kernel may do to each. Out: the arguments as the driver takes them, and an `Access`.

Foreign memory is named by what identifies it to the driver, so that two Python objects for the same
memory meet: a sub-buffer by its parent and offset, shared virtual memory by address.
Invariant: what cannot be known is read-write on the whole of its buffer, never "no conflict".
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from .. import core
from ..errors import UsageError
from ..memory.array import Array, Home
from ..records import EVERYTHING, Access, Span, interval

ADDRESS_SPACE = -1
"""Base number of foreign shared virtual memory; its spans start at addresses."""

ALL = (interval(EVERYTHING, 0, 1),)


class Resolved(NamedTuple):
    """One memory argument: for the driver, its bytes, and a byte offset only the kernel can add."""

    argument: object
    spans: tuple[Span, ...]
    offset: int = 0


def resolve(home: Home, value: object) -> Resolved | None:
    """Memory behind an argument; None if it is not memory. Usage errors for memory that cannot be
    used."""
    if isinstance(value, Array):
        return _resolve_array(home, value)
    if isinstance(value, cl.SVMPointer):
        own = home.store.owns(int(value.svm_ptr))
        return Resolved(value, ALL if own else (_svm_span(value),))
    if isinstance(value, cl.MemoryObjectHolder):
        span = _object_span(value)
        return Resolved(value, ALL if home.store.owns(-span.base) else (span,))
    if hasattr(value, "base_data") and hasattr(value, "strides"):
        return _resolve_pyopencl_array(home, value)
    return None


def _usable(home: Home, array: Array) -> Array:
    """An array of this runtime that still has its memory."""
    if array.engine is not home:
        raise UsageError("it belongs to another runtime; get() it and make an array of this one")
    if array.nbytes and array.base is None:
        raise UsageError("its memory was given back")
    return array


def _resolve_array(home: Home, array: Array) -> Resolved:
    if not _usable(home, array).nbytes:
        return Resolved(None, ())
    if array.lead:
        raise UsageError("a view with negative strides cannot be passed to a kernel; copy it first")
    place = array.where()
    return Resolved(place.memory, array.spans, place.offset)


def _resolve_pyopencl_array(home: Home, array: Any) -> Resolved:
    data, offset = array.base_data, array.offset
    if data is None or not array.nbytes:
        return Resolved(None, ())
    if isinstance(data, cl.SVMPointer):
        start = data.svm_ptr + offset
        spans = core.native.spans_of_view(
            ADDRESS_SPACE, start, array.shape, array.strides, array.dtype.itemsize
        )
        if home.store.owns(int(data.svm_ptr)):
            spans = ALL
        if not offset:
            return Resolved(data, spans)
        return Resolved(cl.SVM(data.buf[offset:]), spans)
    whole = _object_span(data)
    if whole is ALL[0] or home.store.owns(-whole.base):
        return Resolved(data, ALL, offset)
    spans = core.native.spans_of_view(
        whole.base, whole.start + offset, array.shape, array.strides, array.dtype.itemsize
    )
    return Resolved(data, spans, offset)


def _object_span(memory: cl.MemoryObjectHolder) -> Span:
    """All of a memory object, as bytes of the one that it is a part of: a sub-buffer of its buffer,
    an image of the buffer below it. Intel's runtime does not tell that one once the program has
    released it: such a part may be any memory."""
    size = max(1, int(memory.size))
    try:
        parent = parent_of(memory)
    except cl.Error:
        return ALL[0]
    if parent is None:
        return interval(_number(memory), 0, size)
    whole = _object_span(parent)
    if whole is ALL[0] or not isinstance(memory, cl.Buffer):  # its rows may be apart
        return whole
    return interval(whole.base, int(memory.offset), size)


def parent_of(memory: cl.MemoryObjectHolder) -> cl.MemoryObjectHolder | None:
    """What a sub-buffer is a part of, or an image lies on; None if it is nothing of the kind."""
    parent = memory.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT)
    return parent if isinstance(parent, cl.MemoryObjectHolder) else None


def _svm_span(pointer: cl.SVMPointer) -> Span:
    size = pointer.size
    if size is None:  # an address without an extent may reach anything foreign
        return interval(ADDRESS_SPACE, 0, 1 << 63)
    return interval(ADDRESS_SPACE, int(pointer.svm_ptr), int(size))


def _number(memory: cl.MemoryObjectHolder) -> int:
    return -int(memory.int_ptr)


def foreign_span(memory: object) -> Span | None:
    """All of what a driver's argument stands for, as hazards name it; None if it is not memory."""
    if isinstance(memory, cl.SVMPointer):
        return _svm_span(memory)
    return _object_span(memory) if isinstance(memory, cl.MemoryObjectHolder) else None


def span_by_address(memory: object, span: Span) -> Span | None:
    """The same bytes of a buffer on the program's own memory by where that is, as SVM is named, and
    transfers; None for others."""
    if not isinstance(memory, cl.MemoryObjectHolder) or span is ALL[0]:
        return None
    parent = parent_of(memory)
    address = host_address(memory if parent is None else parent)
    return span._replace(base=ADDRESS_SPACE, start=address + span.start) if address else None


def host_address(buffer: cl.MemoryObjectHolder) -> int:
    """0 for memory that is not the program's."""
    if buffer.flags & cl.mem_flags.USE_HOST_PTR:
        with contextlib.suppress(cl.Error, AttributeError):
            return int(buffer.get_host_array((int(buffer.size),), np.dtype(np.uint8)).ctypes.data)
    return 0


def describe(value: object) -> str:
    """An argument in an error message: its type, and its value where that is short."""
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    if isinstance(value, np.ndarray):
        return f"{name} of shape {value.shape}"
    text = repr(value)
    return f"{name} {text}" if len(text) <= 40 else name


def declared(
    home: Home, given: object, keyword: str, command: str
) -> tuple[tuple[object, ...], tuple[Span, ...], tuple[Span, ...]]:
    """The memory named by `reads=` or `writes=`: the objects, their bytes, and those of their bytes
    that are exactly theirs (a view of many dimensions may stand for its hull)."""
    if given is None:
        return (), (), ()
    if isinstance(given, (str, bytes, Array)) or not isinstance(given, Iterable):
        given = (given,)
    objects = tuple(given)
    spans: list[Span] = []
    exact: list[Span] = []
    for value in objects:
        try:
            if isinstance(value, Array):
                spans += _usable(home, value).spans
                exact += value.overwrites()
                continue
            found = resolve(home, value)
        except UsageError as error:
            raise UsageError(f"{command}: {keyword}= names {value!r}: {error}") from None
        if found is None:
            raise UsageError(
                f"{command}: {keyword}= takes arrays, views and buffers, got {describe(value)}"
            )
        spans += found.spans
        exact += found.spans
    return objects, tuple(spans), tuple(exact)


def replace(
    inferred: Access, reads: Sequence[Span], writes: Sequence[Span], exact: Sequence[Span]
) -> Access:
    """Put declared spans in place of what was inferred for the bases they name, no others. The
    `exact` ones among the writes are sure to be overwritten."""
    named = {span.base for span in (*reads, *writes)}
    return Access(
        (*(span for span in inferred.reads if span.base not in named), *reads),
        (*(span for span in inferred.writes if span.base not in named), *writes),
        tuple(span for span in exact if span not in reads),
    )
