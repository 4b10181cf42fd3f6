"""Uploads of many bytes: where they land, and whether they would start at once.

In: an array that the host writes. Out: where its values go first. Invariant: whoever uses the array
sees what program order says, since what lands beside it is copied to it by a launch of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import core
from ..memory.array import Array
from . import bases

if TYPE_CHECKING:
    from .engine import Engine

AHEAD_BYTES = core.native.UPLOAD_BYTES
"""From here on an upload does not wait for launches that use its target."""


def beside(engine: Engine, array: Array) -> Array | None:
    """Where an upload lands that should not wait for launches that use its target: a copy on the
    device follows it then. Each base has one such place, so the next upload waits for that copy.
    None: it goes to the array itself, since nothing uses that, or there is no room for another."""
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
    """Whether a transfer to this array would start at once: one that is held, by an event that this
    thread sets later for instance, must not be waited for."""
    with engine.lock:
        engine.pump()
        if engine.backend.in_order or engine.options.window is not None:
            return not len(engine.table)
        return array.base is None or not engine.is_used(array.base.number)
