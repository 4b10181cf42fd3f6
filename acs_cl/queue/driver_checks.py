"""Driver checks: whether a driver refuses wrong calls on which drivers differ. It is asked itself.

Input: a context, and which wrong call. Output: the status with which the driver refuses that call,
or None if it takes it. Each call is made once for a device, on a plain queue and on memory that
nobody else has, and only when a program has made such a call. No call leaves its memory, so nothing
is damaged where a driver does not look.

Invariant: nothing here waits for a command, since the device may be busy for long.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyopencl as cl
from pyopencl import _cl

from ..devices.driver import CommandQueue
from ..devices.probe.facts import NVIDIA

CODES = cl.status_code
_BYTE = np.dtype(np.uint8)

# PyOpenCL's own functions, even while those are replaced: they would count these calls
_copy = _cl._enqueue_copy_buffer
_copy_rectangle = _cl._enqueue_copy_buffer_rect
_map = cl.enqueue_map_buffer
_map_image = cl.enqueue_map_image

_said: dict[tuple[cl.Device, str], int | None] = {}


def refusal(context: cl.Context, which: str) -> int | None:
    """Return with which status the driver refuses one of `CALLS`, or None if it takes it. NVIDIA's
    driver is not asked about parts that overlap: they may end the process."""
    device = context.devices[0]
    key = device, which
    if key not in _said:
        call, specified = CALLS[which]
        if call is _copy_parts and NVIDIA in device.platform.name:
            return specified
        try:
            call(CommandQueue(context, device))
        except cl.Error as error:  # above that are shortages, which say nothing of the call
            _said[key] = error.code if error.code <= CODES.INVALID_VALUE else specified
        else:
            _said[key] = None
    return _said[key]


def _buffer(queue: cl.CommandQueue, nbytes: int, flags: int = 0) -> cl.Buffer:
    return cl.Buffer(queue.context, cl.mem_flags.READ_WRITE | flags, nbytes)


def _copy_parts(queue: cl.CommandQueue) -> None:
    step = max(queue.device.mem_base_addr_align // 8, 64)
    whole = _buffer(queue, 3 * step)
    low, high = (whole.get_sub_region(start, 2 * step) for start in (0, step))
    _copy(queue, low, high, byte_count=2 * step)


def _copy_by_two_pitches(queue: cl.CommandQueue) -> None:
    """Copy between rectangles that do not overlap."""
    whole = _buffer(queue, 256)
    _copy_rectangle(queue, whole, whole, (0, 0, 0), (0, 2, 0), (16, 2, 1), (32, 0), (64, 0))


def _map_nothing(queue: cl.CommandQueue) -> None:
    _map(queue, _buffer(queue, 64), cl.map_flags.READ, 0, (0,), _BYTE, is_blocking=False)


def _map_hidden(queue: cl.CommandQueue) -> None:
    hidden = _buffer(queue, 64, cl.mem_flags.HOST_NO_ACCESS)
    _map(queue, hidden, cl.map_flags.READ, 0, (64,), _BYTE, is_blocking=False)


def _map_hidden_image(queue: cl.CommandQueue) -> None:
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.HOST_NO_ACCESS
    form = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNSIGNED_INT8)
    # older PyOpenCL has only the class
    make = getattr(cl, "create_image" if hasattr(cl, "create_image") else "Image")
    hidden = make(queue.context, flags, form, shape=(8, 8))
    _map_image(
        queue, hidden, cl.map_flags.READ, (0, 0), (8, 8), (8, 8, 4), _BYTE, is_blocking=False
    )


CALLS: dict[str, tuple[Callable[[cl.CommandQueue], None], int]] = {
    "copy between parts that overlap": (_copy_parts, CODES.MEM_COPY_OVERLAP),
    "copy a rectangle by two pitches": (_copy_by_two_pitches, CODES.INVALID_VALUE),
    "map nothing": (_map_nothing, CODES.INVALID_VALUE),
    "map what is hidden": (_map_hidden, CODES.INVALID_OPERATION),
    "map an image that is hidden": (_map_hidden_image, CODES.INVALID_OPERATION),
}
"""{a wrong call: how it is made, and how it is refused by OpenCL's specification}."""
