"""Memory of several devices: each array has a block on every device that needs it.

Input: sizes, as for the store of one device. Output: blocks, whose parts are made when a device
needs them. An `ArrayPart` stands for some of their bytes until the launch has its device.

Invariant: a part of a block has its own base number, under which the hazards know it. Launches on
different devices never touch the same memory; only copies have spans on two devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyopencl as cl

from ..devices.driver import Place
from ..errors import OutOfMemory
from ..memory.array import HostArray
from ..memory.blocks import Block, Store
from ..records import APART


def real_base(base: int, device: int) -> int:
    """Return the base number of the bytes of a base on one device."""
    return base + device * APART


if TYPE_CHECKING:
    _SVM = cl.SVM[HostArray]
else:  # cl.SVM is generic only for the type checker
    _SVM = cl.SVM


class Blocks(Block):
    """Holds a block on each device. A block is made when its device needs it; on the first device
    it is made at once, unless it is very large."""

    __slots__ = ("number", "parts")

    def __init__(self, size: int, devices: int, home: Block | None) -> None:
        super().__init__(None, 0, size, home.address if home is not None else 0)
        self.number = 0
        """The number of the base."""
        self.parts: list[Block | None] = [home, *(None for _ in range(devices - 1))]

    @property
    def home(self) -> Block:
        """The block on the first device. It exists whenever checks are on."""
        assert self.parts[0] is not None
        return self.parts[0]


class ArrayPart:
    """Stands for bytes of an array on the device that its launch will get."""

    __slots__ = ("blocks", "nbytes", "places", "start")

    def __init__(self, blocks: Blocks, start: int, nbytes: int) -> None:
        self.blocks = blocks
        self.start = start
        self.nbytes = nbytes
        self.places: list[Place | None] = [None] * len(blocks.parts)

    def sub(self, start: int, nbytes: int) -> ArrayPart:
        """Return a part for some of its bytes."""
        return ArrayPart(self.blocks, self.start + start, nbytes)


class SvmPart(_SVM):
    """An `ArrayPart` of shared virtual memory. The driver sees the memory of the first device, if
    there is any, so that the core can make launches there."""

    def __init__(self, blocks: Blocks, start: int, nbytes: int) -> None:
        home, memory = blocks.parts[0], _NOTHING
        if home is not None:
            memory = home.memory[home.offset + start : home.offset + start + nbytes]
        super().__init__(memory)
        self.blocks = blocks
        self.start = start
        self.nbytes = nbytes
        self.places: list[Place | None] = [None] * len(blocks.parts)

    def sub(self, start: int, nbytes: int) -> SvmPart:
        """Return a part for some of its bytes."""
        return SvmPart(self.blocks, self.start + start, nbytes)


AnyPart = ArrayPart | SvmPart

_NOTHING = np.empty(1, np.uint8)


class Everywhere(Store):
    """Makes blocks from the stores of several devices."""

    def __init__(self, context: cl.Context, device: cl.Device, stores: Sequence[Store]) -> None:
        super().__init__(context, device)
        self.stores = stores
        self.is_svm = stores[0].is_svm
        self.largest = min(one.largest for one in stores)
        self.most_at_home = self.largest // 8, int(device.global_mem_size) // 2
        """The largest size of one block, and of all, that the first device gets in advance."""
        self.is_all_at_home = False
        """Whether the first device has every block, as checks need it."""
        for one in stores:
            self.reserved.include(one.reserved)
        self.freed: Callable[[Blocks, int], tuple[int, ...]] = lambda blocks, device: ()
        """Forgets a part, and returns the launches that may still use it."""

    def allocate(self, nbytes: int, is_live: Callable[[int], bool]) -> Blocks | None:
        """Allocate blocks, with a part on the first device if there is room."""
        if nbytes > self.largest:
            raise OutOfMemory(
                f"an array of {nbytes:,} bytes: one of these devices allows at most "
                f"{self.largest:,} in one"
            )
        first, (most, most_of_all) = self.stores[0], self.most_at_home
        home = None
        has_room = self.is_svm and nbytes <= most and first.in_use_bytes + nbytes <= most_of_all
        if has_room or self.is_all_at_home:
            home = first.allocate(nbytes, is_live)
            if home is None and self.is_all_at_home:
                return None
        made = Blocks(nbytes, len(self.stores), home)
        if home is not None:
            made.users = home.users
            self._count()
        return made

    def part(
        self, blocks: Blocks, device: int, is_live: Callable[[int], bool]
    ) -> tuple[Block | None, bool]:
        """Return the block on a device, and whether it is new; None if no memory is left."""
        found = blocks.parts[device]
        if found is not None:
            return found, False
        found = blocks.parts[device] = self.stores[device].allocate(blocks.size, is_live)
        self._count()
        return found, True

    def part_us(self, device: int, size: int) -> float:
        """Return how long the driver of a device would take to allocate a block."""
        if self.stores[device].has_free(size):
            return 0.0
        return size * max(store.us_per_byte for store in self.stores)

    def free(self, block: Block, users: tuple[int, ...]) -> None:
        """Return the parts to the stores of their devices."""
        assert isinstance(block, Blocks)
        for device, part in enumerate(block.parts):
            live = self.freed(block, device)
            if part is not None:  # the first one has the array's own base number
                self.stores[device].free(part, live if device else users)
        self._count()

    def release_unused(self, is_live: Callable[[int], bool]) -> None:
        """Return memory that nothing uses to the drivers."""
        for store in self.stores:
            store.release_unused(is_live)
        self._count()

    def close(self) -> None:
        """Let go of the memory of all devices."""
        for store in self.stores:
            store.close()

    def place(self, block: Block, offset: int, nbytes: int) -> Place:
        """Return the place of some bytes: a part of them; for buffers, the whole and an offset."""
        assert isinstance(block, Blocks)
        if self.is_svm:
            return Place(SvmPart(block, offset, nbytes), 0, nbytes)
        return Place(ArrayPart(block, 0, block.size), offset, nbytes)

    def place_on(self, part: AnyPart, device: int) -> Place:
        """Return the place of a part on a device that has its block."""
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
