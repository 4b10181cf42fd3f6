"""Memory of several devices: each array has a block on every device that needs it.

In: sizes, as for the store of one device. Out: blocks whose parts are made when a device needs
them, and `Part`, which stands for some of their bytes on all devices until a launch has its device.

Invariant: a part of a block has a base number of its own, under which the hazards know it. Launches
on different devices never touch the same memory; only copies have spans on two devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyopencl as cl

from ..devices.driver import Place
from ..errors import OutOfMemory
from ..memory.blocks import Block, Store

APART = 1 << 40
"""The numbers of bases on two devices are so far apart."""


def real_base(base: int, device: int) -> int:
    """How hazards call the bytes of a base on one device."""
    return base + device * APART


class Blocks(Block):
    """A piece of memory with a block on each device, made when it is needed."""

    __slots__ = ("number", "parts")

    def __init__(self, size: int, devices: int) -> None:
        super().__init__(None, 0, size)
        self.number = 0
        """The base's."""
        self.parts: list[Block | None] = [None] * devices


class Part:
    """Bytes of an array, on whichever device its launch gets."""

    __slots__ = ("blocks", "nbytes", "places", "start")

    def __init__(self, blocks: Blocks, start: int, nbytes: int) -> None:
        self.blocks = blocks
        self.start = start
        self.nbytes = nbytes
        self.places: list[Place | None] = [None] * len(blocks.parts)

    def sub(self, start: int, nbytes: int) -> Part:
        """Some bytes of it."""
        return Part(self.blocks, self.start + start, nbytes)


class Everywhere(Store):
    """Blocks with parts, of the stores of some devices."""

    is_svm = False  # what a `Part` is not, whatever the stores of the devices have

    def __init__(self, context: cl.Context, device: cl.Device, stores: Sequence[Store]) -> None:
        super().__init__(context, device)
        self.stores = stores
        self.largest = min(one.largest for one in stores)
        self.freed: Callable[[Blocks, int], tuple[int, ...]] = lambda blocks, device: ()
        """Gives the launches that may still use a part, and forgets the part."""

    def allocate(self, nbytes: int, is_live: Callable[[int], bool]) -> Blocks:
        """Blocks without any part."""
        if nbytes > self.largest:
            raise OutOfMemory(
                f"an array of {nbytes:,} bytes: one of these devices allows at most "
                f"{self.largest:,} in one"
            )
        return Blocks(nbytes, len(self.stores))

    def part(
        self, blocks: Blocks, device: int, is_live: Callable[[int], bool]
    ) -> tuple[Block | None, bool]:
        """The block on a device, and whether it is new; None if there is no memory left."""
        found = blocks.parts[device]
        if found is not None:
            return found, False
        found = blocks.parts[device] = self.stores[device].allocate(blocks.size, is_live)
        self._count()
        return found, True

    def free(self, block: Block, users: tuple[int, ...]) -> None:
        """Give the parts back to their devices."""
        assert isinstance(block, Blocks)
        for device, part in enumerate(block.parts):
            live = self.freed(block, device)
            if part is not None:  # the first one's base number is the array's own
                self.stores[device].free(part, live if device else users)
        self._count()

    def release_unused(self) -> None:
        """Give what nobody uses back to the drivers."""
        for store in self.stores:
            store.release_unused()
        self._count()

    def owns(self, address: int) -> bool:
        """Whether memory is of one of the devices' stores."""
        return any(store.owns(address) for store in self.stores)

    def place(self, block: Block, offset: int, nbytes: int) -> Place:
        """The bytes as a part; of buffers, the whole and an offset."""
        assert isinstance(block, Blocks)
        if self.stores[0].is_svm:
            return Place(Part(block, offset, nbytes), 0, nbytes)
        return Place(Part(block, 0, block.size), offset, nbytes)

    def place_on(self, part: Part, device: int) -> Place:
        """Where the bytes of a part are on a device, whose block there is."""
        found = part.places[device]
        if found is None:
            block = part.blocks.parts[device]
            assert block is not None
            found = self.stores[device].place(block, part.start, part.nbytes)
            part.places[device] = found
        return found

    def _count(self) -> None:
        self.reserved_bytes = sum(store.reserved_bytes for store in self.stores)
        self.in_use_bytes = sum(store.in_use_bytes for store in self.stores)
