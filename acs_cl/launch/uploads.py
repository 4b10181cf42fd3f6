"""Uploads of many bytes: where they land, and whether they would start at once.

Input: an array that the host writes. Output: where its values go first. Invariant: launches that
use the array see program order, because a launch of its own copies to it what landed elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import core
from ..memory.array import Array
from . import bases

if TYPE_CHECKING:
    from .engine import Engine

AHEAD_BYTES = core.native.UPLOAD_BYTES
"""Bytes from which on an upload does not wait for launches that use its target."""


def beside(engine: Engine, array: Array) -> Array | None:
    """Return where an upload lands that should not wait for launches that use its target. A copy on
    the device follows. Each base has one such place, so the next upload waits for that copy. None:
    it goes to the array itself, because nothing uses that, or there is no more room."""
    base = array.base
    if base is None or array.nbytes < AHEAD_BYTES or not engine.prefetches:
        return None
    if engine.checker is not None or engine.recorder() is not None:
        return None
    with engine.lock:
        engine.pump()
        if not engine.is_used(base.number):
            return None
        ahead = engine.ahead.get(base.number) or bases.allocate(engine, base.nbytes)
        if ahead is None:
            return None
        engine.ahead[base.number] = ahead
    return Array(engine, ahead, array.offset, array.shape, array.strides, array.dtype)


def is_next(engine: Engine, array: Array) -> bool:
    """Tell whether a transfer to this array would start at once. Code must not wait for one that is
    held, for example by an event that this thread sets later."""
    with engine.lock:
        engine.pump()
        if engine.backend.in_order or engine.options.window is not None:
            return not len(engine.table)
        return array.base is None or not engine.is_used(array.base.number)
