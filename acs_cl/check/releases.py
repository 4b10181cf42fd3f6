"""Releases: memory objects that the program has released by PyOpenCL's own method.

Input: calls of `MemoryObject.release` while a listener lives. Output: the objects, to each
listener. The driver's reference count cannot tell: a thread of the driver drops its references to a
command's memory a moment after the command is seen to have ended.

Invariant: PyOpenCL's method is replaced only while a listener lives.
"""

from __future__ import annotations

import threading
import weakref
from typing import Protocol

import pyopencl as cl


class Listener(Protocol):
    """Is told of released objects."""

    def heard_of_release(self, memory: object) -> None:
        """Note that the program has released this object."""


_lock = threading.RLock()
_original = cl.MemoryObject.release
_listeners: weakref.WeakSet[Listener] = weakref.WeakSet()


def listen(listener: Listener) -> None:
    """Tell `listener` of releases for as long as it lives."""
    with _lock:
        _listeners.add(listener)
        if cl.MemoryObject.release is _original:
            cl.MemoryObject.release = _release  # type: ignore[method-assign]
    weakref.finalize(listener, _let_go)


def _release(self: cl.MemoryObject) -> None:
    _original(self)
    with _lock:
        listeners = list(_listeners)
    for listener in listeners:
        listener.heard_of_release(self)


_release.__name__ = "release"
_release.__doc__ = _original.__doc__


def _let_go() -> None:
    """Restore PyOpenCL's method after the last listener, unless other code has replaced it."""
    with _lock:
        if not list(_listeners) and cl.MemoryObject.release is _release:
            cl.MemoryObject.release = _original  # type: ignore[method-assign]
