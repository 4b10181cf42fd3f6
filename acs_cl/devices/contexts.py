"""The contexts that runtimes share, and the programs built in them.

Runtimes made without a context share one for each device, as long as the process lives: drivers
have room for few, and take long to make one. The last few dozens of programs built there are kept,
so another runtime does not compile them again. (PoCL takes 16 ms for the smallest one, even from
its cache on disk.)
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable

import pyopencl as cl
from pyopencl import _cl

from .. import devices
from ..errors import UsageError

FORKED = (
    "the process that this one was forked from had used OpenCL, and a driver's threads do not come "
    "along: calls would wait for ever; start the process with 'spawn' (multiprocessing), or fork "
    "before the first runtime is made"
)
KEPT = 64
"""Programs of a shared context."""


class Shared:
    """One shared context and its programs. Any thread may use it."""

    def __init__(self, device: cl.Device) -> None:
        self.context = cl.Context([device])
        self._programs: OrderedDict[Hashable, _cl._Program] = OrderedDict()
        self._lock = threading.RLock()

    def find(self, key: Hashable) -> _cl._Program | None:
        """Return the program kept under `key`, or None."""
        with self._lock:
            found = self._programs.get(key)
            if found is not None:
                self._programs.move_to_end(key)
            return found

    def keep(self, key: Hashable, program: _cl._Program) -> None:
        """Keep a program, and drop the one that was unused for the longest time."""
        with self._lock:
            self._programs[key] = program
            if len(self._programs) > KEPT:
                self._programs.popitem(last=False)


_shared: dict[tuple[int, int], Shared] = {}
"""{device, and the number of its context: the shared context}."""

_given: dict[int, weakref.ref[cl.Context]] = {}
"""{device: the context that the program last made a runtime with}."""

_lock = threading.RLock()  # the collector may call code of the program, which comes here again

_used = False
"""Whether this process has asked a driver for anything. From then on the driver's threads are
there, whatever becomes of runtimes and contexts."""


def context_for(device: devices.Spec, context: cl.Context | None) -> tuple[cl.Context, cl.Device]:
    """Return the context and device to use. Without a context: the shared one of a device. With
    one: its only device, or the named one."""
    begin_use()
    if context is None:
        chosen = devices.choose(device)
        return shared_context(chosen), chosen
    if not isinstance(context, cl.Context):
        raise UsageError(f"context= takes a pyopencl.Context, got {type(context).__name__}")
    there = context.devices
    if device is None and len(there) == 1:
        chosen = there[0]
    elif device is None:
        names = ", ".join(one.name.strip() for one in there)
        raise UsageError(f"the context has {len(there)} devices ({names}); say which by device=")
    else:
        chosen = devices.choose(device)
        if chosen not in there:
            raise UsageError(f"{chosen.name.strip()} is not a device of the context given")
    devices.repair(chosen)
    with _lock:
        _given[chosen.int_ptr] = weakref.ref(context)
    return context, chosen


def begin_use() -> None:
    """Note that this process uses a driver. Raises if a process that it was forked from has."""
    global _used
    if _inherited:
        raise UsageError(FORKED)
    _used = True


def context_to_ask(device: cl.Device) -> cl.Context:
    """Return a context in which to ask a device's compiler. It is the shared one or the program's,
    if there is one, since a new one takes long to make. Else it is temporary, since it takes memory
    of a GPU."""
    devices.repair(device)
    with _lock:
        one, given = _shared.get((device.int_ptr, 0)), _given.get(device.int_ptr)
    context = one.context if one is not None else given() if given is not None else None
    return cl.Context([device]) if context is None else context


def shared(context: cl.Context) -> Shared | None:
    """Return the shared state of this context. None: it is not a shared one."""
    with _lock:
        return next((one for one in _shared.values() if one.context == context), None)


def forget_context(context: cl.Context) -> None:
    """Stop sharing a context after a command failed on the device, which may have broken it."""
    with _lock:
        for key in [key for key, one in _shared.items() if one.context == context]:
            del _shared[key]
        for device in [device for device, of in _given.items() if of() in (context, None)]:
            del _given[device]


def shared_context(device: cl.Device, copy: int = 0) -> cl.Context:
    """Return the shared context of a device. `copy`: its number, if one device stands for
    several."""
    with _lock:
        one = _shared.get((device.int_ptr, copy))
        if one is None:
            one = _shared.setdefault((device.int_ptr, copy), Shared(device))
        return one.context


def _after_fork() -> None:
    """Mark the driver's objects as the parent's: this process never uses or releases them."""
    global _shared, _given, _lock
    if _used:
        _inherited.append(_shared)
    _shared, _given, _lock = {}, {}, threading.RLock()


def inherit(objects: object) -> None:
    """Keep the driver's objects of a forked process, and refuse to use the driver there."""
    _inherited.append(objects)


_inherited: list[object] = []

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
