"""Transfers as launches: read, write, fill, copy, host tasks, and pinned host memory.

Input: arrays and host values. Output: handles. The driver copies contiguous memory. Short
fills, copies and writes that it would have to put between other launches, those of a recording or
of an open epoch, are launches of kernels (`launch/moves.py`). So are fills and copies with gaps,
where no byte between elements may be touched.

Invariant: `write` copies host memory before the call returns, unless the caller promised not to
change it. Host memory that `read` returns belongs to the handle until it is done.
"""

# Long because: each kind of transfer ends in one of the same two ways.

from __future__ import annotations

import threading
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .access.arguments import declared
from .devices import driver
from .devices.driver import Events, Place
from .errors import OutOfMemory, UsageError, describe
from .launch.commands import HostCommand, TransferCommand, bytes_of, check_takes
from .launch.several_handles import SeveralHandle
from .launch.uploads import beside, is_next
from .memory.array import Array
from .memory.values import check, converted, element_of, values_for
from .records import Access, DType, Span
from .records import HostArray as HostArray

if TYPE_CHECKING:
    from .handle import Handle
    from .launch.engine import Engine

NOWHERE = Place(None, 0, 0)
"""Place of arrays without elements."""

UNCOPIED_BYTES = 1 << 20
"""Bytes from which on `write` waits for its transfer if nothing is ahead of it, to save a copy."""


def read(engine: Engine, array: Array, out: object) -> Handle:
    """Read back into `out`, or into a new NumPy array."""
    host = target_for(array, out)
    if not array.nbytes:
        return _nothing(engine, "read", host)
    if engine.failures.any:
        engine.raise_for_bytes(array.spans, "what get() reads")
    if not array.contiguous:
        packed = engine.new_array(array.shape, array.dtype)
        copy(engine, packed, array)
        array = packed
    landing = host if host.flags.c_contiguous else np.empty(array.shape, array.dtype)

    left, lock = [landing], threading.Lock()

    def result() -> HostArray:
        with lock:  # once: afterwards `out` is the program's again
            while left:
                host[...] = left.pop()
        return host

    return _move(engine, "read", landing, array, None if landing is host else result)


def _move(
    engine: Engine,
    name: str,
    target: Array | HostArray,
    source: Array | HostArray,
    result: object = None,
) -> Handle:
    """Copy contiguous memory to an array or from one. A source of fewer bytes is a pattern."""
    queues = engine.backend.core_queues
    if queues is not None and result is None:
        handle: Handle | None = queues.transfer(engine, target, source)
        if handle is not None:
            return handle
    if isinstance(target, Array):
        read = source.spans if isinstance(source, Array) else ()
        access = Access(read, target.spans, target.overwrites())
    else:
        assert isinstance(source, Array)
        access, result = Access(source.spans, ()), target if result is None else result
    command = TransferCommand(name, _side(target), _side(source))
    return engine.launch(command, access, None, result)


def _side(of: Array | HostArray) -> Place | HostArray:
    return of.where() if isinstance(of, Array) else bytes_of(of)


def write(engine: Engine, array: Array, source: object, copied: bool) -> Handle:
    """Overwrite an array with host values."""
    if isinstance(source, Array):
        raise UsageError("set() takes host values; copy_from() takes an array of this runtime")
    host = values_for(source, array.dtype)
    try:
        fitting = host if host.shape == array.shape else np.broadcast_to(host, array.shape)
    except ValueError:
        what = f"values of shape {host.shape} do not fit an array of shape {array.shape}"
        raise UsageError(f"{what}; set a part of it, or make an array of their shape") from None
    if not array.nbytes:
        return _nothing(engine, "write")
    check(host, array.dtype)
    ready = converted(fitting, array.dtype)
    if not ready.flags.writeable:
        ready = ready.copy()
    own = ready is not host and not np.may_share_memory(ready, host)
    if not array.contiguous:
        packed = engine.new_array(array.shape, array.dtype)
        _write(engine, packed, ready, copied, own)
        return copy(engine, array, packed)
    return _write(engine, array, ready, copied, own)


def _write(engine: Engine, array: Array, ready: HostArray, copied: bool, own: bool) -> Handle:
    """Write to an array in one piece. `copied`: these values count, whatever the program does with
    them. `own`: the program does not have them."""
    moved = engine.moves().write(array, ready) if copied or own else None
    if moved is not None:
        return moved
    if (second := beside(engine, array)) is not None:
        _upload(engine, second, ready, copied and not own)
        return copy(engine, array, second)
    return _upload(engine, array, ready, copied and not own)


def _upload(engine: Engine, array: Array, ready: HostArray, copied: bool) -> Handle:
    """Have the driver write to an array. `copied`: the program may change these values."""
    is_long, queues = copied and ready.nbytes >= UNCOPIED_BYTES, engine.backend.core_queues
    if is_long and queues and (staged := queues.transfer(engine, array, ready, True)) is not None:
        return staged  # type: ignore[no-any-return]
    waits = is_long and is_next(engine, array)
    if copied and not waits:
        ready = ready.copy()
    handle = _move(engine, "write", array, ready)
    if waits:
        engine.wait_quietly(handle.number)
    return handle


def fill(engine: Engine, array: Array, value: object) -> Handle:
    """Overwrite every element."""
    element = element_of(value, array.dtype)
    if not array.nbytes:
        return _nothing(engine, "fill")
    if array.dtype.itemsize not in driver.PATTERNS:
        return write(engine, array, element.reshape(()), True)
    moves = engine.moves()
    if (handle := moves.fill(array, element)) is not None:
        return handle
    # elsewhere drivers refuse a pattern
    if array.contiguous and not array.offset % array.dtype.itemsize:
        return _move(engine, "fill", array, element)
    single = engine.new_array((1,), array.dtype)
    write(engine, single, element, True)
    return moves.spread(array, single, (0,) * array.ndim)


def copy(engine: Engine, target: Array, source: object) -> Handle:
    """Overwrite an array with another of this runtime."""
    if not isinstance(source, Array):
        hint = "; set() takes values of the host" if isinstance(source, np.ndarray) else ""
        if hasattr(source, "get"):  # such as one of PyOpenCL's
            hint = "; set() takes what its get() returns"
        raise UsageError(f"copy_from takes an array of this runtime, got {describe(source)}{hint}")
    if source.engine is not engine:
        raise UsageError("copy_from: the source belongs to another runtime; use set(source.get())")
    source.live()
    target.live()
    if source.shape != target.shape or source.dtype != target.dtype:
        raise UsageError(
            f"copy_from: got {source.shape} {source.dtype}, expected {target.shape} {target.dtype}"
        )
    if not target.nbytes:
        return _nothing(engine, "copy")
    if source.base is target.base:
        if source.offset == target.offset and source.strides == target.strides:
            return _nothing(engine, "copy")
        apart = engine.new_array(source.shape, source.dtype)
        copy(engine, apart, source)
        source = apart
    return engine.moves().copy(target, source) or _move(engine, "copy", target, source)


def host_task(
    engine: Engine,
    function: Callable[..., Any],
    reads: object,
    writes: object,
    wait_for: Events,
    site: str,
) -> Handle:
    """Run a Python function in program order. Views with gaps are packed before, behind
    `wait_for`, too, and unpacked after. The handle is that of the task and the unpacking."""
    read_arrays = _arrays(engine, reads, "reads")
    write_arrays = _arrays(engine, writes, "writes")
    hosts: dict[tuple[object, ...], HostArray] = {}
    packed: dict[tuple[object, ...], Array] = {}

    def place(array: Array, is_read: bool) -> tuple[Place, HostArray]:
        """Return where its bytes are in one piece, and the host memory for them."""
        key = _identity(array)
        if key not in packed:
            hosts[key], packed[key] = np.empty(array.shape, array.dtype), array
            if not array.contiguous:
                packed[key] = engine.new_array(array.shape, array.dtype)
                if is_read:
                    engine.moves().copy(packed[key], array, wait_for)
        return packed[key].where() if array.nbytes else NOWHERE, hosts[key]

    read_places = [place(array, True) for array in read_arrays]
    write_places = [place(array, False) for array in write_arrays]
    sources = [packed[_identity(array)] for array in read_arrays]
    targets = [packed[_identity(array)] for array in write_arrays]
    read_spans, write_spans = map(_spans, (sources, targets))
    name = getattr(function, "__name__", type(function).__name__)
    check_takes(function, name, read_places, write_places)
    command = HostCommand(name, function, read_places, write_places, site)
    sure = (span for array in targets for span in array.overwrites())
    overwrites = tuple(span for span in sure if span not in read_spans)
    access = Access(read_spans, write_spans, overwrites)
    handle = engine.launch(command, access, wait_for, lambda: command.result)
    engine.backend.passes_by(handle.number)
    pairs = zip(write_arrays, targets, strict=True)
    unpacked = [copy(engine, to, it).number for to, it in pairs if not to.contiguous]
    is_packed = any(not array.contiguous for array in (*read_arrays, *write_arrays))
    if not is_packed or engine.recorder() is not None:
        return handle
    runs, own = ((handle.number, *unpacked),), Access(*map(_spans, (read_arrays, write_arrays)))
    return SeveralHandle(engine, runs, name, own, lambda: command.result)


def pinned(engine: Engine, shape: tuple[int, ...], dtype: DType) -> HostArray:
    """Return host memory for fast transfers. OpenCL has none of no bytes."""
    nbytes, most = prod(shape) * dtype.itemsize, engine.store.largest
    if not nbytes:
        return np.empty(shape, dtype)
    if nbytes > most:
        raise OutOfMemory(f"{nbytes:,} bytes of pinned memory: this device allows at most {most:,}")
    return driver.wait_for_pinned(engine.backend.queues[0], shape, dtype)


def target_for(array: Array, out: object) -> HostArray:
    if out is None:
        return np.empty(array.shape, array.dtype)
    if not isinstance(out, np.ndarray):
        raise UsageError(f"get(out=…) takes a NumPy array, got {describe(out)}")
    if out.shape != array.shape or out.dtype != array.dtype or not out.flags.writeable:
        raise UsageError(
            f"get(out=…): got {out.shape} {out.dtype}"
            f"{'' if out.flags.writeable else ' (read-only)'}, expected {array.shape} {array.dtype}"
        )
    return out


def _arrays(engine: Engine, given: object, keyword: str) -> list[Array]:
    objects, _, _ = declared(engine, given, keyword, "host task")
    others = [value for value in objects if not isinstance(value, Array)]
    if others:
        raise UsageError(f"host task: {keyword}= takes arrays and views, got {describe(others[0])}")
    return [value for value in objects if isinstance(value, Array)]


def _spans(arrays: list[Array]) -> tuple[Span, ...]:
    return tuple(span for array in arrays for span in array.spans)


def _identity(array: Array) -> tuple[object, ...]:
    if not array.nbytes:
        return (id(array),)
    return (id(array.base), array.offset, array.shape, array.strides, array.dtype.str)


def _nothing(engine: Engine, name: str, host: HostArray | None = None) -> Handle:
    """Return a handle of a transfer of no bytes, which has ended."""
    from .handle import Handle

    return Handle(engine, 0, name, Access((), ()), None if host is None else lambda: host)
