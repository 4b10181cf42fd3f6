"""Device memory of a runtime: blocks that can be given out again while launches still use them.

Input: sizes. Output: `Base` objects, the keys of hazards. The device decides on one of two stores.
`SvmStore` cuts blocks from slabs of shared virtual memory, so a view at any byte offset is just a
pointer. `BufferStore` makes a buffer for each block. It is for devices without SVM, and for drivers
that order kernels by the arguments they share. There a view is the buffer and an offset, which a
variant of the kernel adds.

Invariants: a base that is gone is only noted in the core. A block given out again remembers the
launches that may still use it (`Block.users`), and the new base waits for them. No sub-buffer is
ever made: OpenCL leaves a buffer and its sub-buffer in flight together undefined, their alignment
is the device's, and NVIDIA's driver (580) crashed on programs with many of them.
"""

# Long because: where large blocks begin is a measurement, and it stands here.

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Any, TypeAlias

import pyopencl as cl

from .. import core
from ..devices.driver import Place
from ..devices.probe.facts import svm
from ..errors import OutOfMemory
from .huge_pages import ask_for_huge_pages

Memory: TypeAlias = Any
"""Memory of a driver: a `cl.Buffer`, or an allocation of shared virtual memory or its bytes."""

GRANULE = 256
"""Blocks start and end on multiples of this, so that no two share a cache line."""

FIRST_SLAB = 4 << 20
SLAB = 64 << 20

LARGE = 64 << 10
PAGE = 4096
COLOUR = 7 * GRANULE
"""How much further within a page a large block begins than the one before, on a device that
computes in the host's caches. Sizes of large blocks are multiples of a page, so otherwise all would
begin at the same place in it. A processor that reads and writes at the same index then takes the
reads for reads of what it has just written, as far as the place in a page tells. `normalise` of the
workload `ml` on two CPUs took 18.2 ms so, 13.3 if it wrote 128 bytes further, 16 half a page
further, 17.8 a granule before. Seven granules of sixteen are good for both directions, and keep any
six blocks two granules apart."""

LARGER = 1 << 20
PHASE = 64 << 10
"""Blocks of `LARGER` begin less than a page behind a multiple of this. With rows of 64 KiB the same
kernel took 16 to 17 ms if only the places in a page differ. It took 13 to 15 if the pages are also
the same in their 64 KiB. All of `ml` took 32.2 ms without this, 28.5 with it."""


class Block:
    """A piece of device memory. `users`: earlier launches that may still use it."""

    __slots__ = ("address", "alone", "memory", "offset", "size", "users")

    def __init__(
        self, memory: Memory, offset: int, size: int, address: int = 0, alone: bool = False
    ) -> None:
        self.address = address
        """On the device. 0: it has no address that lasts."""
        self.alone = alone
        """Whether no other block is part of the same allocation of shared memory."""
        self.memory = memory
        self.offset = offset
        self.size = size
        self.users: tuple[int, ...] = ()

    @property
    def home(self) -> Block:
        """Return the part of it that checks look at."""
        return self


class Base:
    """One allocation. Views share it. When the last one is gone, its block comes back.

    There is no finalizer, since Python would drop a Ctrl-C that comes in it, and the block with it.
    """

    __slots__ = ("_loan", "block", "memory", "nbytes", "number", "store")

    def __init__(
        self,
        number: int,
        nbytes: int,
        block: Block,
        store: Store,
        loan: core.native.Loan,
    ) -> None:
        self.number = number
        self.nbytes = nbytes
        self.block = block
        self.memory = block.memory if store.has_addresses else None
        """What the driver has it in, if slices of that are its places. Else `place` is asked."""
        self.store = store
        self._loan = loan

    def place(self, offset: int, nbytes: int) -> Place:
        """Return these bytes in the form for the driver."""
        return self.store.place(self.block, offset, nbytes)


class Store:
    """What both stores have: bins of returned blocks by size, and what to do without memory."""

    is_svm: bool
    is_seen = False  # the host may read and write it without a command
    has_addresses = False  # places are slices of one memory with lasting addresses

    def __init__(self, context: cl.Context, device: cl.Device) -> None:
        self._context = context
        self.largest = int(device.max_mem_alloc_size)
        self._bins: dict[int, deque[Block]] = {}
        self.reserved = core.native.Reserved()
        """Starts of the driver's allocations (addresses, or buffer handles), and their sizes."""
        self.reserved_bytes = 0
        self.in_use_bytes = 0
        self.us_per_byte = 0.0  # how long the driver takes for shared virtual memory

    def allocate(self, nbytes: int, is_live: Callable[[int], bool]) -> Block | None:
        """Return a block of at least `nbytes`, whose new owner has to wait for its `users`. None:
        the driver has no memory left."""
        size = _rounded(nbytes)
        if size > self.largest:
            raise OutOfMemory(
                f"an array of {nbytes:,} bytes: this device allows at most {self.largest:,} in one"
                "; make several smaller ones"
            )
        free = self._bins.get(size)
        block = None
        if free and not any(map(is_live, free[0].users)):
            block = free.popleft()
            block.users = ()
        if block is None:
            block = self._cut(size)
        if block is None and free:
            block = free.popleft()
        if block is None:
            try:
                block = self.reserve(size)
            except (cl.MemoryError, cl.RuntimeError):
                return None
        self.in_use_bytes += size
        return block

    def free(self, block: Block, users: tuple[int, ...]) -> None:
        """Take back a block that `users` may still touch."""
        block.users = users
        self._bins.setdefault(block.size, deque()).append(block)
        self.in_use_bytes -= block.size

    def close(self) -> None:
        """Let go of all memory that no array has. What arrays have goes with them."""
        self._bins.clear()

    def owns(self, address: int) -> bool:
        """Tell whether an address, or the handle of a buffer, is inside memory of this store."""
        return self.reserved.owns(address)

    def _cut(self, size: int) -> Block | None:
        """Return a block from memory that is reserved and was never given out, if there is any."""
        raise NotImplementedError

    def reserve(self, size: int) -> Block:
        """Return a block from the driver."""
        raise NotImplementedError

    def has_free(self, size: int) -> bool:
        """Tell whether a block of this size could be given out again."""
        return bool(self._bins.get(size))

    def release_unused(self, is_live: Callable[[int], bool]) -> None:
        """Return memory to the driver that nothing uses, launches in flight neither."""
        for size, free in list(self._bins.items()):
            kept = deque[Block]()
            for block in free:
                if any(map(is_live, block.users)) or not self.release(block):
                    kept.append(block)
            self._bins[size] = kept

    def release(self, block: Block) -> bool:
        """Return a block to the driver. False: other blocks are part of the same allocation."""
        raise NotImplementedError

    def place(self, block: Block, offset: int, nbytes: int) -> Place:
        """Return `nbytes` at `offset` of the block in the form for the driver."""
        raise NotImplementedError


class SvmStore(Store):
    """Slabs of shared virtual memory: fine-grained on the host's processor, which sees that at no
    cost. Blocks above half a slab get their own. A slab is about as large as all memory before it,
    since NVIDIA's driver reserves as much of the host, and takes half a millisecond for a MiB."""

    is_svm = True
    has_addresses = True

    def __init__(self, context: cl.Context, device: cl.Device) -> None:
        super().__init__(context, device)
        self._slab: Memory = None
        self._address = 0
        self._used = 0
        self._has_caches = bool(device.type & cl.device_type.CPU)
        self.is_seen = self._has_caches and svm(device) in ("fine", "system")
        self._colour = 0

    def _cut(self, size: int) -> Block | None:
        lead = self._lead(size, self._address + self._used)
        if self._slab is None or self._used + lead + size > len(self._slab):
            return None
        self._used += lead
        block = Block(self._slab, self._used, size, self._address + self._used)
        self._used += size
        self._next_colour(size)
        return block

    def close(self) -> None:
        """Let go of the slabs, too."""
        super().close()
        self._slab = None

    def _lead(self, size: int, address: int) -> int:
        """Return how far behind a free address a block of this size begins."""
        return (self._colour - address) % _page(size) if self._is_coloured(size) else 0

    def _is_coloured(self, size: int) -> bool:
        return self._has_caches and LARGE <= size <= self.largest - _page(size)

    def _next_colour(self, size: int) -> None:
        if self._is_coloured(size):
            self._colour = (self._colour + COLOUR) % PAGE

    def reserve(self, size: int) -> Block:
        slab = min(max(FIRST_SLAB, self.reserved_bytes), SLAB)
        room = size + _page(size) if self._is_coloured(size) else size
        if room > slab // 2:
            memory, address = self._allocate_svm(room)
            lead = self._lead(size, address)
            self._next_colour(size)
            return Block(memory, lead, size, address + lead, alone=True)
        self._slab, self._address = self._allocate_svm(min(slab, self.largest))
        self._used = 0
        block = self._cut(size)
        assert block is not None
        return block

    def _allocate_svm(self, size: int) -> tuple[Memory, int]:
        began = perf_counter()
        fine = cl.svm_mem_flags.SVM_FINE_GRAIN_BUFFER if self.is_seen else 0
        memory = cl.SVMAllocation(self._context, size, 0, cl.svm_mem_flags.READ_WRITE | fine)
        self.us_per_byte = (perf_counter() - began) * 1e6 / size
        self.reserved_bytes += size
        address = int(memory.svm_ptr)
        if self._has_caches:
            ask_for_huge_pages(address, size)
        self.reserved.add(address, size)
        return memory.buf, address

    def release(self, block: Block) -> bool:
        if block.alone:
            self.reserved_bytes -= self.reserved.remove(block.address - block.offset)
        return block.alone

    def place(self, block: Block, offset: int, nbytes: int) -> Place:
        start = block.offset + offset
        return Place(cl.SVM(block.memory[start : start + nbytes]), 0, nbytes)


class BufferStore(Store):
    """A buffer for each block."""

    is_svm = False

    def _cut(self, size: int) -> Block | None:
        return None

    def reserve(self, size: int) -> Block:
        buffer = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size)
        self.reserved_bytes += size
        self.reserved.add(int(buffer.int_ptr), 1)
        return Block(buffer, 0, size)

    def release(self, block: Block) -> bool:
        self.reserved_bytes -= block.size
        self.reserved.remove(int(block.memory.int_ptr))
        return True

    def place(self, block: Block, offset: int, nbytes: int) -> Place:
        return Place(block.memory, offset, nbytes)


def _page(size: int) -> int:
    """Return the unit within which large blocks of this size begin at different places."""
    return PHASE if size >= LARGER else PAGE


def _rounded(nbytes: int) -> int:
    """Round up to a size class: eight to an octave, multiples of the granule."""
    granules = max(1, -(-nbytes // GRANULE))
    step = 1 << max(0, granules.bit_length() - 4)
    return -(-granules // step) * step * GRANULE


def store_for(context: cl.Context, device: cl.Device, kind: str) -> Store:
    """Make a store. `kind`: 'svm' or 'buffers'."""
    return SvmStore(context, device) if kind == "svm" else BufferStore(context, device)
