"""Refusals: what is wrong with a command that has to wait on the host, said before it waits.

Input: a command that is about to be held. Output: nothing, or the error that a plain queue would
raise in the call. PyOpenCL itself looks at the arguments: it makes the call on a queue that does
not exist, so the driver gets nothing. What drivers check is checked here, after OpenCL's
specification.

Invariant: a command that its driver takes is not refused here. Where drivers differ, this one is
asked (`driver_checks`), or a check is left out. The driver then refuses the command later, and
`Queue.finish` says so. One check is made whatever the driver says: a rectangle that leaves its
memory is refused, since Intel's runtime would read and write what lies behind it.
"""

# Long because: each of OpenCL's commands has checks of its own, and they are read side by side.

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise, product
from typing import Any, NoReturn, TypeAlias, cast

import numpy as np
import pyopencl as cl
from numpy.typing import DTypeLike
from pyopencl import _cl

from ..devices.driver import PATTERNS
from ..launch.commands import KernelCommand
from ..launch.engine import Engine
from ..launch.sizes import has_rests, may_have_rests
from ..program import options_of
from ..records import Sizes
from .calls import COMMANDS, Call, Given, KernelAsItIs
from .driver_checks import refusal

CODES = cl.status_code
_FLAGS, _INFO, _IMAGE, _MAPS = cl.mem_flags, cl.mem_info, cl.image_info, cl.map_flags
_MIGRATIONS = cl.mem_migration_flags.HOST | cl.mem_migration_flags.CONTENT_UNDEFINED

Triple = tuple[int, int, int]
Memory: TypeAlias = cl.MemoryObjectHolder
Some: TypeAlias = Sequence[int]
"""Origins, regions and pitches, of which the last ones may be left out."""


def refuse(code: int, routine: str) -> NoReturn:
    """Raise PyOpenCL's error for a status of the driver."""
    kind: type[cl.Error] = cl.LogicError if code <= CODES.INVALID_VALUE else cl.RuntimeError
    raise kind(_cl._ErrorRecord(msg="", code=code, routine=routine))


def refuse_wrong(engine: Engine, command: object, wait_for: Iterable[cl.Event]) -> None:
    """Raise if a command that may not go to the driver at once is wrong."""
    check: Callable[..., None]
    used: list[Any]
    if isinstance(command, (KernelCommand, KernelAsItIs)):
        routine, check, used = LAUNCH, _launch, [command.kernel]
        given: Given = {"kernel": command.kernel, "engine": engine}
        given |= {"global_size": command.global_size, "local_size": command.local_size}
    elif isinstance(command, Call) and command.function.__name__ in COMMANDS:
        routine, check = CHECKS.get(command.function.__name__, ("", _nothing))
        used, given = list(_memory(command.given.values())), command.given
    else:
        return
    if not isinstance(command, KernelCommand):  # of that, all was looked at
        _ask_pyopencl(command)
    if any(one.context != engine.context for one in (*used, *wait_for)):
        refuse(CODES.INVALID_CONTEXT, routine)
    check(routine, **given)


def _memory(values: Iterable[object]) -> Iterator[Memory]:
    for value in values:
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(one, cl.MemoryObjectHolder):
                yield one


def _ask_pyopencl(command: Call | KernelAsItIs) -> None:
    """Raise what PyOpenCL says of a call before it calls the driver."""
    try:
        command.function(**command.given, queue=_nowhere())
    except cl.LogicError as error:
        if error.code != CODES.INVALID_COMMAND_QUEUE:
            raise


@cache
def _nowhere() -> cl.CommandQueue:
    """Return the queue with handle 0, which every call of OpenCL refuses. It is never released,
    because that would be refused too, with a warning."""
    queue = _cl.CommandQueue.from_int_ptr(0, False)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(queue))
    return queue


# ---- kernels -------------------------------------------------------------------------------------

LAUNCH = "clEnqueueNDRangeKernel"


def takes_empty(device: cl.Device) -> bool:
    """Tell whether a launch without work items is none (OpenCL 2.1), rather than an error."""
    return _version(device) >= (2, 1)


def _version(device: cl.Device) -> tuple[int, int]:
    major, minor = device.version.split()[1].split(".")[:2]  # "OpenCL 3.0 …"
    return int(major), int(minor)


def _launch(
    routine: str, engine: Engine, kernel: cl.Kernel, global_size: Sizes, local_size: Sizes | None
) -> None:
    device, info = engine.device, cl.kernel_work_group_info
    if not 1 <= len(global_size) <= device.max_work_item_dimensions:
        refuse(CODES.INVALID_WORK_DIMENSION, routine)
    if not all(global_size) and not takes_empty(device):
        refuse(CODES.INVALID_GLOBAL_WORK_SIZE, routine)
    if local_size is None or not all(global_size):
        return
    # not by WORK_GROUP_SIZE of the kernel: Rusticl names less there than it takes
    if not 1 <= math.prod(local_size) <= device.max_work_group_size:
        refuse(CODES.INVALID_WORK_GROUP_SIZE, routine)
    if any(map(operator.gt, local_size, device.max_work_item_sizes)):
        refuse(CODES.INVALID_WORK_ITEM_SIZE, routine)
    required = kernel.get_work_group_info(info.COMPILE_WORK_GROUP_SIZE, device)
    differs = any(required) and tuple(required) != (*local_size, 1, 1)[:3]
    if differs or (
        any(map(operator.mod, global_size, local_size))
        and not (has_rests(device) and may_have_rests(options_of(engine, kernel)))
    ):
        refuse(CODES.INVALID_WORK_GROUP_SIZE, routine)


# ---- buffers -------------------------------------------------------------------------------------


def _within(routine: str, memory: Memory, offset: int, nbytes: int) -> None:
    if offset + nbytes > memory.size:
        refuse(CODES.INVALID_VALUE, routine)


def _bytes_of(host: object) -> int:
    return memoryview(cast("bytes", host)).nbytes


def _host_may(routine: str, memory: Memory, *, read: bool = False, write: bool = False) -> None:
    """Raise if the host promised not to do that."""
    if _is_kept_from_host(memory, read, write):
        refuse(CODES.INVALID_OPERATION, routine)


def _is_kept_from_host(memory: Memory, read: bool, write: bool) -> bool:
    refused = int(_FLAGS.HOST_NO_ACCESS)
    refused |= (_FLAGS.HOST_WRITE_ONLY if read else 0) | (_FLAGS.HOST_READ_ONLY if write else 0)
    return (read or write) and bool(memory.flags & refused)


def _place(memory: Memory) -> tuple[int, int]:
    """Return which buffer a buffer is part of, and where it starts there."""
    parent = cast("Memory | None", memory.get_info(_INFO.ASSOCIATED_MEMOBJECT))
    offset = memory.get_info(_INFO.OFFSET) if parent else 0
    return (parent or memory).int_ptr, cast("int", offset)


def _read(routine: str, mem: Memory, hostbuf: object, src_offset: int = 0, **_: object) -> None:
    _host_may(routine, mem, read=True)
    _within(routine, mem, src_offset, _bytes_of(hostbuf))


def _write(routine: str, mem: Memory, hostbuf: object, dst_offset: int = 0, **_: object) -> None:
    _host_may(routine, mem, write=True)
    _within(routine, mem, dst_offset, _bytes_of(hostbuf))


def _copy(
    routine: str, src: Memory, dst: Memory, byte_count: int = -1, src_offset: int = 0,
    dst_offset: int = 0,
) -> None:  # fmt: skip
    nbytes = min(src.size, dst.size) if byte_count < 0 else byte_count
    _within(routine, src, src_offset, nbytes)
    _within(routine, dst, dst_offset, nbytes)
    (one, start), (other, begin) = _place(src), _place(dst)
    if one == other and abs(start + src_offset - begin - dst_offset) < nbytes:
        _refuse_overlap(routine, src, dst)


def _refuse_overlap(routine: str, src: Memory, dst: Memory) -> None:
    """Raise because of places that overlap. Of rectangles in parts no driver is asked: PoCL 3.0
    crashes on any copy of them."""
    if src == dst:
        refuse(CODES.MEM_COPY_OVERLAP, routine)
    _as_the_driver(routine, src, "copy between parts that overlap")


def _as_the_driver(routine: str, memory: Memory, which: str) -> None:
    """Raise if the driver refuses a call of this kind, and what it raises."""
    code = refusal(memory.context, which)
    if code is not None:
        refuse(code, routine)


def _fill(routine: str, mem: Memory, pattern: object, offset: int, size: int) -> None:
    _within(routine, mem, offset, size)
    width = _bytes_of(pattern)
    if width not in PATTERNS or offset % width or size % width:
        refuse(CODES.INVALID_VALUE, routine)


def _svm_copy(
    routine: str, dst: cl.SVMPointer, src: cl.SVMPointer, byte_count: int | None = None, **_: object
) -> None:
    nbytes = min(dst.size or 0, src.size or 0) if byte_count is None else byte_count
    if abs(dst.svm_ptr - src.svm_ptr) < nbytes:
        refuse(CODES.MEM_COPY_OVERLAP, routine)


def _svm_fill(routine: str, pattern: object, **_: object) -> None:
    if _bytes_of(pattern) not in PATTERNS:
        refuse(CODES.INVALID_VALUE, routine)


def _migrate(routine: str, mem_objects: Sequence[Memory], flags: int = 0, **_: object) -> None:
    if not mem_objects or flags & ~_MIGRATIONS:
        refuse(CODES.INVALID_VALUE, routine)


def _nothing(routine: str, **_: object) -> None:
    """Accept what remains: it is for the driver to say."""


# ---- rectangles ----------------------------------------------------------------------------------


class _Rectangle:
    """A rectangle in memory: its bytes from the first to behind the last, and its pitches."""

    def __init__(self, routine: str, origin: Some, region: Triple, pitches: Some | None) -> None:
        self.region = region
        row, slice_ = _triple(pitches, 0)[:2]
        if 0 in region or 0 < row < region[0]:
            refuse(CODES.INVALID_VALUE, routine)
        row = row or region[0]
        if slice_ and (slice_ < region[1] * row or slice_ % row):
            refuse(CODES.INVALID_VALUE, routine)
        self.steps = 1, row, slice_ or region[1] * row
        self.start = sum(map(int.__mul__, _triple(origin, 0), self.steps))
        self.nbytes = 1 + sum(
            (many - 1) * step for many, step in zip(region, self.steps, strict=True)
        )

    def rows(self, shift: int) -> Iterable[int]:
        """Yield where its rows start, `shift` bytes later."""
        _, rows, slices = self.region
        for z, y in product(range(slices), range(rows)):
            yield shift + self.start + y * self.steps[1] + z * self.steps[2]


def _triple(given: Some | None, otherwise: int) -> Triple:
    found = [int(one) for one in given or ()]
    x, y, z = (found + [otherwise] * 3)[:3]
    return x, y, z


def _with_host(
    routine: str, mem: Memory, buffer_origin: Some, host_origin: Some, region: Some,
    buffer_pitches: Some | None = None, host_pitches: Some | None = None, **_: object,
) -> None:  # fmt: skip
    reads = "Read" in routine
    _host_may(routine, mem, read=reads, write=not reads)
    here = _Rectangle(routine, buffer_origin, _triple(region, 1), buffer_pitches)
    _Rectangle(routine, host_origin, _triple(region, 1), host_pitches)
    _within(routine, mem, here.start, here.nbytes)


def _copy_rectangle(
    routine: str, src: Memory, dst: Memory, src_origin: Some, dst_origin: Some, region: Some,
    src_pitches: Some | None = None, dst_pitches: Some | None = None,
) -> None:  # fmt: skip
    source = _Rectangle(routine, src_origin, _triple(region, 1), src_pitches)
    target = _Rectangle(routine, dst_origin, _triple(region, 1), dst_pitches)
    _within(routine, src, source.start, source.nbytes)
    _within(routine, dst, target.start, target.nbytes)
    (one, shift), (other, there) = _place(src), _place(dst)
    if src == dst and source.steps != target.steps:
        _as_the_driver(routine, src, "copy a rectangle by two pitches")
    far = abs(shift + source.start - there - target.start)
    if one != other or far >= max(source.nbytes, target.nbytes):
        return
    width, starts = source.region[0], sorted((*source.rows(shift), *target.rows(there)))
    if any(right - left < width for left, right in pairwise(starts)):
        _refuse_overlap(routine, src, dst)


# ---- images --------------------------------------------------------------------------------------


def _ask(image: cl.Image, what: cl.image_info) -> int:
    return cast("int", image.get_image_info(what))


def _extents(image: cl.Image) -> Triple:
    kinds, kind = cl.mem_object_type, image.type
    width, height, depth, many = (
        _ask(image, one) for one in (_IMAGE.WIDTH, _IMAGE.HEIGHT, _IMAGE.DEPTH, _IMAGE.ARRAY_SIZE)
    )
    if kind == kinds.IMAGE1D_ARRAY:
        return width, many, 1
    if kind == kinds.IMAGE2D_ARRAY:
        return width, height, many
    return width, max(height, 1), max(depth, 1)


def _inside(routine: str, image: cl.Image, origin: Some, region: Some) -> None:
    for start, many, there in zip(
        _triple(origin, 0), _triple(region, 1), _extents(image), strict=True
    ):
        if start + many > there:
            refuse(CODES.INVALID_VALUE, routine)


def _image_bytes(image: cl.Image, region: Some) -> int:
    return int(math.prod(_triple(region, 1)) * _ask(image, _IMAGE.ELEMENT_SIZE))


def _image(routine: str, mem: cl.Image, origin: Some, region: Some, **_: object) -> None:
    _host_may(routine, mem, read="Read" in routine, write="Write" in routine)
    _inside(routine, mem, origin, region)


def _copy_image(
    routine: str, src: cl.Image, dest: cl.Image, src_origin: Some, dest_origin: Some, region: Some
) -> None:
    if src.format != dest.format:
        refuse(CODES.IMAGE_FORMAT_MISMATCH, routine)
    _inside(routine, src, src_origin, region)
    _inside(routine, dest, dest_origin, region)
    apart = map(int.__sub__, _triple(src_origin, 0), _triple(dest_origin, 0))
    if src == dest and all(
        abs(far) < many for far, many in zip(apart, _triple(region, 1), strict=True)
    ):
        refuse(CODES.MEM_COPY_OVERLAP, routine)


def _image_to_buffer(
    routine: str, src: cl.Image, dest: Memory, origin: Some, region: Some, offset: int
) -> None:
    _inside(routine, src, origin, region)
    _within(routine, dest, offset, _image_bytes(src, region))


def _buffer_to_image(
    routine: str, src: Memory, dest: cl.Image, offset: int, origin: Some, region: Some
) -> None:
    _inside(routine, dest, origin, region)
    _within(routine, src, offset, _image_bytes(dest, region))


# ---- maps ----------------------------------------------------------------------------------------


def _map_flags(routine: str, memory: Memory, flags: int, hidden: str) -> None:
    """Raise if the host promised not to do that: drivers have two codes for it."""
    writes = bool(flags & (_MAPS.WRITE | _MAPS.WRITE_INVALIDATE_REGION))
    if _is_kept_from_host(memory, bool(flags & _MAPS.READ), writes):
        _as_the_driver(routine, memory, hidden)


def _map_buffer(
    routine: str, buf: Memory, flags: int, offset: int, shape: Some | int, dtype: DTypeLike,
    strides: object = None,
    **_: object,
) -> None:  # fmt: skip
    _map_flags(routine, buf, flags, "map what is hidden")
    if strides is None:
        many = shape if isinstance(shape, Iterable) else (shape,)
        nbytes = math.prod(map(int, many)) * np.dtype(dtype).itemsize
        if not nbytes:
            _as_the_driver(routine, buf, "map nothing")
        _within(routine, buf, offset, nbytes)


def _map_image(
    routine: str, img: cl.Image, flags: int, origin: Some, region: Some, **_: object
) -> None:
    _map_flags(routine, img, flags, "map an image that is hidden")
    _inside(routine, img, origin, region)


CHECKS: dict[str, tuple[str, Callable[..., None]]] = {
    "_enqueue_read_buffer": ("clEnqueueReadBuffer", _read),
    "_enqueue_write_buffer": ("clEnqueueWriteBuffer", _write),
    "_enqueue_copy_buffer": ("clEnqueueCopyBuffer", _copy),
    "_enqueue_fill_buffer": ("clEnqueueFillBuffer", _fill),
    "_enqueue_read_buffer_rect": ("clEnqueueReadBufferRect", _with_host),
    "_enqueue_write_buffer_rect": ("clEnqueueWriteBufferRect", _with_host),
    "_enqueue_copy_buffer_rect": ("clEnqueueCopyBufferRect", _copy_rectangle),
    "_enqueue_read_image": ("clEnqueueReadImage", _image),
    "_enqueue_write_image": ("clEnqueueWriteImage", _image),
    "enqueue_fill_image": ("clEnqueueFillImage", _image),
    "_enqueue_copy_image": ("clEnqueueCopyImage", _copy_image),
    "_enqueue_copy_image_to_buffer": ("clEnqueueCopyImageToBuffer", _image_to_buffer),
    "_enqueue_copy_buffer_to_image": ("clEnqueueCopyBufferToImage", _buffer_to_image),
    "enqueue_map_buffer": ("clEnqueueMapBuffer", _map_buffer),
    "enqueue_map_image": ("clEnqueueMapImage", _map_image),
    "_enqueue_svm_memcpy": ("clEnqueueSVMMemcpy", _svm_copy),
    "_enqueue_svm_memfill": ("clEnqueueSVMMemFill", _svm_fill),
    "enqueue_migrate_mem_objects": ("clEnqueueMigrateMemObjects", _migrate),
    "_enqueue_marker_with_wait_list": ("clEnqueueMarkerWithWaitList", _nothing),
}
"""{PyOpenCL's function: OpenCL's function, and what that checks}."""
