"""Copies that are made at once: the core makes them, and waits for them.

Input: memory of two devices, and a number of bytes. Output: the copied bytes. A copy goes through
pinned memory of the host, because contexts share no other memory. Copies that are made beside each
other go through different memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

import pyopencl as cl

from .. import core
from ..devices import driver
from ..errors import DeviceError
from ..memory.array import HostArray
from ..memory.blocks import Block
from .model import CHUNK

SMALL = 64 << 10
"""Size of the smallest pieces of the host's memory that copies go through."""

AT_ONCE = 4
"""Number of chunks of one copy in flight at one time."""

TOGETHER = 12
"""Largest number of copies beside each other: one for each pair of four devices."""

Side = tuple[int, int, int]
"""A queue, memory and an offset, in the form for the core."""

Move = tuple[Side, Side, int, tuple[int, int, int]]
"""Source, target, number of bytes, and the memory that they go through."""


class Copier:
    """Makes copies between the devices of a runtime. `allocate` returns pinned memory."""

    def __init__(
        self,
        contexts: Sequence[cl.Context],
        devices: Sequence[cl.Device],
        is_svm: bool,
        allocate: Callable[[int], HostArray],
    ) -> None:
        self._contexts, self._devices, self._is_svm = contexts, devices, is_svm
        self._allocate = allocate
        self._queues: dict[int, tuple[cl.CommandQueue, int]] = {}
        self._through: dict[tuple[int, int], tuple[HostArray, int]] = {}
        """The memory of copies, by the size of its slots and the turn of the copy."""

    def move(
        self,
        source: tuple[int, Block],
        target: tuple[int, Block],
        start: int,
        nbytes: int,
        turn: int,
    ) -> Move:
        """Describe copy `turn` of some made together; it begins at `start` of both blocks."""
        through = self._memory(nbytes, turn)
        return self._side(*source, start), self._side(*target, start), nbytes, through

    def make(self, moves: Sequence[Move]) -> float:
        """Make copies, and return how many microseconds they took."""
        began = perf_counter()
        status = core.native.carry(moves, self._is_svm)
        if status < 0:
            raise DeviceError(f"a copy between devices failed with status {status}")
        return (perf_counter() - began) * 1e6

    def place(self, block: Block, start: int) -> tuple[int, int]:
        """Return a place in memory for the core: an address, or a buffer with an offset."""
        if self._is_svm:
            return block.address + start, 0
        return block.memory.int_ptr, block.offset + start

    def _side(self, device: int, block: Block, start: int) -> Side:
        return self._queue(device), *self.place(block, start)

    def _queue(self, device: int) -> int:
        """Return a device's own queue. Keeping times would double those of short copies."""
        if device not in self._queues:
            queue = driver.CommandQueue(self._contexts[device], self._devices[device])
            self._queues[device] = queue, queue.int_ptr
        return self._queues[device][1]

    def _memory(self, nbytes: int, turn: int) -> tuple[int, int, int]:
        """Return memory of the host: its address, the size of a slot, and the number of slots."""
        size, many = (SMALL, 1) if nbytes <= SMALL else (CHUNK, AT_ONCE)
        if (size, turn) not in self._through:
            memory = self._allocate(many * size)
            self._through[size, turn] = memory, int(memory.ctypes.data)
        return self._through[size, turn][1], size, many
