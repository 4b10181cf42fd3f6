"""Memory that the program must leave alone while launches may use it.

That is foreign buffers, and host memory of transfers without a copy. Input: launches, calls of
`MemoryObject.release`, and the moments at which the program waits. Output: changes that came too
early. Two buffers on the same host memory are found by their addresses. Launches that use them are
ordered, but OpenCL leaves open what the one sees of the other.

The driver's reference count cannot tell what the program released: a thread of the driver drops its
references to a command's memory a moment after the command is seen to have ended. Invariant:
PyOpenCL's method is replaced only while a `Foreign` lives.
"""

from __future__ import annotations

import threading
import weakref
import zlib
from collections.abc import Sequence

import pyopencl as cl

from ..errors import Finding
from ..records import HostArray, NamedTuple
from .case import Argument
from .findings import ALIAS, FREED, HOST, Where, Who, finding
from .memory import BufferRegion, Interval, Region
from .naming import where


class Use(NamedTuple):
    """A use of foreign bytes by a launch."""

    who: Who
    interval: Interval
    writes: bool


class Promise(NamedTuple):
    """Host memory that a transfer reads, and its checksum at the launch."""

    who: Who
    host: HostArray
    checksum: int


class Held(NamedTuple):
    """A foreign buffer, and the first launch that used it since the program last waited."""

    memory: object
    who: Who
    argument: Argument


class Foreign:
    """The foreign memory used since the program last waited."""

    def __init__(self) -> None:
        self._uses: list[Use] = []
        self._held: dict[int, Held] = {}
        self._released: list[Held] = []
        self._promises: list[Promise] = []
        _listen(self)

    def promise(self, who: Who, host: HostArray) -> None:
        """Note that a transfer from host memory was launched."""
        self._promises.append(Promise(who, host, zlib.crc32(host.data)))

    def broken(self, task: Who | None = None) -> Finding | None:
        """Return the first transfer whose host memory has changed since, by this host task or by
        the program. Forget all transfers."""
        promises, self._promises = self._promises, []
        for who, host, checksum in promises:
            if zlib.crc32(host.data) == checksum:
                continue
            transfer = f"launch {who.launch} ({who.name}), at {who.site}"
            if task is not None:
                text = f"{task}: changes host memory that {transfer}, was promised (copy=False)"
                return finding(HOST, task, None, text)
            return finding(
                HOST, who, None,
                f"{transfer}: the host memory it reads was changed before anybody waited for the "
                "launch; copy=False is a promise not to",
            )  # fmt: skip
        return None

    def hold(self, region: Region, memory: object, who: Who, argument: Argument) -> None:
        """Note that a launch uses a foreign buffer. The program may drop it, but not release it."""
        if isinstance(region, BufferRegion) and region.foreign:
            self._held.setdefault(id(memory), Held(memory, who, argument))

    def heard_of_release(self, memory: object) -> None:
        """Note that the program has released a buffer, on any thread."""
        held = self._held.get(id(memory))
        if held is not None:
            self._released.append(held)

    def released(self) -> Finding | None:
        """Return the first launch whose buffer was released since, and forget all of them."""
        self._held.clear()
        released, self._released = self._released, []
        if not released:
            return None
        _, who, argument = min(released, key=lambda held: held.who.launch)
        return finding(
            FREED, who, Where(argument.number, argument.parameter, 0, ""),
            f"{who}: the buffer of argument {argument.number} ({argument.type_name} "
            f"{argument.parameter}) was released before anybody waited for the launch; wait "
            "for it, or leave releasing to Python",
        )  # fmt: skip

    def meet(
        self,
        who: Who,
        arguments: Sequence[Argument],
        used: Sequence[tuple[Interval, bool]],
    ) -> Finding | None:
        """Note that a launch uses these bytes (with: is it a write). Report bytes that an earlier
        launch used by another buffer, if one of the two writes. Shared virtual memory and a buffer
        on it are the same for OpenCL, too."""
        new = [
            Use(who, *one)
            for one in used
            if isinstance(one[0].region, BufferRegion)
            and one[0].region.foreign
            and one[0].region.address
        ]
        for one in new:
            for other in self._uses:
                if (one.writes or other.writes) and _share(one.interval, other.interval):
                    byte = where(arguments, one.interval.region, one.interval.low)
                    return finding(
                        ALIAS, who, byte,
                        f"{who}: argument {byte.argument} ({byte.parameter}) is host memory that "
                        f"{other.who} uses by another buffer, and OpenCL does not say what either "
                        "sees of the other; use one buffer, or wait in between",
                    )  # fmt: skip
        self._uses += new
        return None

    def waited(self) -> None:
        """Note that the program waited: all earlier launches are done."""
        self._uses.clear()


def _share(one: Interval, other: Interval) -> bool:
    """Tell whether two regions share bytes of the host."""
    if one.region is other.region:
        return False
    first, second = one.region.address, other.region.address
    return first + one.low < second + other.high and second + other.low < first + one.high


# ---- releases by PyOpenCL's own method -----------------------------------------------------------

_lock = threading.RLock()
_original = cl.MemoryObject.release
_listeners: weakref.WeakSet[Foreign] = weakref.WeakSet()


def _listen(listener: Foreign) -> None:
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
