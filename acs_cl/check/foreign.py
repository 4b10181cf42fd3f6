"""Memory that the program must leave alone while launches may use it.

That is foreign buffers, and host memory of transfers without a copy. Input: launches, and the
moments at which the program waits. Output: changes that came too early. Two foreign objects for the
same host memory are found by their addresses.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

from ..records import HostArray
from .case import Argument
from .findings import Who
from .memory import BufferRegion, Interval, Region
from .releases import listen


class Use(NamedTuple):
    """A use of foreign bytes by a launch."""

    who: Who
    interval: Interval
    writes: bool
    by_address: bool
    """Whether hazards know the bytes by address, and so order objects that share them."""


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
        listen(self)

    def promise(self, who: Who, host: HostArray) -> None:
        """Note that a transfer from host memory was launched."""
        self._promises.append(Promise(who, host, zlib.crc32(host.data)))

    def broken(self) -> Who | None:
        """Return the first transfer whose host memory has changed since. Forget all transfers."""
        promises, self._promises = self._promises, []
        return next(
            (one.who for one in promises if zlib.crc32(one.host.data) != one.checksum), None
        )

    def hold(self, region: Region, memory: object, who: Who, argument: Argument) -> None:
        """Note that a launch uses a foreign buffer. The program may drop it, but not release it."""
        if isinstance(region, BufferRegion) and region.foreign:
            self._held.setdefault(id(memory), Held(memory, who, argument))

    def heard_of_release(self, memory: object) -> None:
        """Note that the program has released a buffer, on any thread."""
        held = self._held.get(id(memory))
        if held is not None:
            self._released.append(held)

    def released(self) -> Held | None:
        """Return the first launch whose buffer was released since, and forget all of them."""
        self._held.clear()
        released, self._released = self._released, []
        return min(released, key=lambda held: held.who.launch, default=None)

    def meet(
        self, who: Who, used: Sequence[tuple[Interval, bool, bool]]
    ) -> tuple[Interval, Use] | None:
        """Note that a launch uses these bytes (with: is it a write, is it by address). Return bytes
        that an earlier launch used by another object, if one of the two writes and nothing orders
        them."""
        new = [Use(who, *one) for one in used if one[0].region.foreign and one[0].region.address]
        for one in new:
            for other in self._uses:
                if one.by_address and other.by_address:
                    continue
                if (one.writes or other.writes) and _share(one.interval, other.interval):
                    return one.interval, other
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
