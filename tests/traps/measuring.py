"""What a kernel really touches: it is run on plain PyOpenCL with bytes flipped before each run.

In: a built kernel and a trap. Out: the memory it leaves, and the bytes of each argument that it was
seen to read and to write. A byte is written if a run leaves another value there than it found. It
is read if flipping it changes anything else, or itself other than by being left alone.
Invariant: what is reported was seen; a read that changes nothing is not reported.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from traps.case import Buffer, Image, Local, Same, Trap

Bytes = np.ndarray[Any, Any]
Memory = list[Bytes]
Run = Callable[[Sequence[Memory]], list[Memory]]
Range = tuple[int, int]


class Measured(NamedTuple):
    """`left`: the contents of the buffers after a run; `reads` and `writes`: positions in each."""

    left: Memory
    reads: list[set[int]]
    writes: list[set[int]]


GUARD = 4096
"""Bytes on either side of a buffer, at least what the start of a part has to be a multiple of."""


AGAIN = 8
"""Bytes that are flipped together when each was flipped by itself before."""


AT_ONCE = 64
"""Runs that are under way together."""


class Stray(Exception):  # noqa: N818  (a fault of the trap, not of the library)
    """The kernel leaves its buffers, where drivers differ."""


class Unsteady(Exception):  # noqa: N818  (about a trap, not an error of the harness)
    """Two runs from the same memory differ."""


def contents(trap: Trap) -> Memory:
    """The memory of a trap before its launch, one array for each of its buffers and images."""
    return [
        np.frombuffer(argument.data, np.uint8).copy()
        for argument in trap.args
        if isinstance(argument, (Buffer, Image))
    ]


def arguments(trap: Trap, memory: list[Any]) -> list[Any]:
    """The arguments of a launch, with `memory` in the place of buffers and images."""
    out: list[Any] = []
    left = iter(memory)
    for argument in trap.args:
        if isinstance(argument, (Buffer, Image)):
            out.append(next(left))
        elif isinstance(argument, Same):
            out.append(out[argument.index])
        elif isinstance(argument, Local):
            out.append(cl.LocalMemory(argument.nbytes))
        else:
            out.append(argument)
    return out


def make_image(context: cl.Context, image: Image) -> cl.Image:
    """An image with its contents."""
    form = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNSIGNED_INT8)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    data = np.frombuffer(image.data, np.uint8).copy()
    return cl.create_image(
        context, flags, form, shape=image.shape, hostbuf=data, is_array=image.is_array
    )


class Guarded:
    """Memory of one buffer on the device, between two guards that belong to nobody."""

    def __init__(self, context: cl.Context, nbytes: int) -> None:
        self.low, self.high = GUARD, GUARD + nbytes
        self.whole = cl.Buffer(context, cl.mem_flags.READ_WRITE, self.high + GUARD)
        self.part = self.whole.get_sub_region(self.low, nbytes)

    def filled(self, values: Bytes, guard: int) -> Bytes:
        """Give all bytes to write for these contents."""
        whole = np.full(self.high + GUARD, guard, np.uint8)
        whole[self.low : self.high] = values
        return whole

    def contents(self, whole: Bytes, guard: int) -> Bytes:
        """Give the contents among all bytes; raise `Stray` if a guard has changed."""
        for name, side in (("before", whole[: self.low]), ("behind", whole[self.high :])):
            places = np.nonzero(side != guard)[0]
            if len(places):
                at = places[0] if name == "behind" else self.low - places[-1]
                raise Stray(f"the trap writes {at} bytes {name} a buffer")
        return whole[self.low : self.high].copy()


class Plain:
    """A kernel of a trap on plain PyOpenCL: called with memories, it gives each as it is after a
    run. All runs are enqueued at once, since waiting for each costs more than the run."""

    def __init__(self, queue: cl.CommandQueue, kernel: cl.Kernel, trap: Trap) -> None:
        self.queue, self.kernel, self.trap = queue, kernel, trap
        self.guard = 0xA5
        self.places = [
            Guarded(queue.context, len(one.data))
            if isinstance(one, Buffer)
            else make_image(queue.context, one)
            for one in trap.args
            if isinstance(one, (Buffer, Image))
        ]
        given = [place.part if isinstance(place, Guarded) else place for place in self.places]
        kernel.set_args(*arguments(trap, given))

    def __call__(self, memories: Sequence[Memory]) -> list[Memory]:
        kept: list[Any] = []  # PyOpenCL waits for a transfer whose event nobody keeps
        whole = [self.begin(memory, kept) for memory in memories]
        self.queue.finish()
        return [
            [
                place.contents(values, self.guard) if isinstance(place, Guarded) else values
                for place, values in zip(self.places, after, strict=True)
            ]
            for after in whole
        ]

    def begin(self, memory: Memory, kept: list[Any]) -> Memory:
        """Enqueue a run; what it leaves is in the bytes that are given once the queue is done."""
        queue, trap = self.queue, self.trap
        for place, values in zip(self.places, memory, strict=True):
            if isinstance(place, Guarded):
                given = place.filled(values, self.guard)
                kept.append(cl.enqueue_copy(queue, place.whole, given, is_blocking=False))
            else:
                given = values.copy()
                kept.append(
                    cl.enqueue_copy(queue, place, given, is_blocking=False, **all_of(place))
                )
        cl.enqueue_nd_range_kernel(queue, self.kernel, trap.size, trap.local, trap.offset)
        left = []
        for place, values in zip(self.places, memory, strict=True):
            if isinstance(place, Guarded):
                left.append(np.empty(place.high + GUARD, np.uint8))
                kept.append(cl.enqueue_copy(queue, left[-1], place.whole, is_blocking=False))
            else:
                left.append(np.empty_like(values))
                kept.append(
                    cl.enqueue_copy(queue, left[-1], place, is_blocking=False, **all_of(place))
                )
        return left

    def stay_inside(self, memory: Memory, left: Memory) -> None:
        """Raise `Stray` where what the kernel leaves depends on bytes outside of its buffers."""
        self.guard ^= 0xFF
        if differ(self([memory])[0], left):
            raise Stray("the trap reads outside of a buffer")


def differ(one: Memory, other: Memory) -> bool:
    """Whether any byte differs."""
    return any((a != b).any() for a, b in zip(one, other, strict=True))


def all_of(image: cl.Image) -> dict[str, Any]:
    """Name all of an image for a transfer."""
    axes = image.width, image.height, image.depth, image.array_size
    region = (*(pixels for pixels in axes if pixels), 1, 1)[:3]
    return {"origin": (0, 0, 0), "region": region}


class _Look:
    """The runs of one kernel so far."""

    def __init__(self, run: Run, memory: Memory) -> None:
        self.run, self.memory = run, memory
        self.left, again = run([memory, memory])
        if differ(self.left, again):
            raise Unsteady
        self.reads: list[set[int]] = [set() for _ in memory]
        self.writes: list[set[int]] = [set() for _ in memory]
        self.note_writes(memory, self.left)

    def note_writes(self, before: Memory, after: Memory) -> None:
        for found, old, new in zip(self.writes, before, after, strict=True):
            found.update(np.nonzero(old != new)[0].tolist())

    def matter(self, index: int, ranges: Sequence[Range], mask: Bytes) -> list[Range]:
        """Give those of some ranges of an argument whose flipped bytes change anything."""
        changed = [self.flipped(index, one, mask) for one in ranges]
        found = []
        for (low, high), before, after in zip(ranges, changed, self.run(changed), strict=True):
            self.note_writes(before, after)
            for at, (new, old) in enumerate(zip(after, self.left, strict=True)):
                differs = new != old
                if at == index:
                    alone = (new == before[at]) & (self.memory[at] == old)
                    differs[low:high] &= ~alone[low:high]
                if differs.any():
                    found.append((low, high))
                    break
        return found

    def flipped(self, index: int, one: Range, mask: Bytes) -> Memory:
        """Give the memory with some bytes of an argument flipped."""
        changed = list(self.memory)
        changed[index] = self.memory[index].copy()
        changed[index][slice(*one)] ^= mask[slice(*one)]
        return changed

    def search(self, index: int, ranges: list[Range], mask: Bytes) -> None:
        """Note which bytes matter, by halves of what does."""
        while ranges:
            halves: list[Range] = []
            for at in range(0, len(ranges), AT_ONCE):
                for low, high in self.matter(index, ranges[at : at + AT_ONCE], mask):
                    if high - low == 1:
                        self.reads[index].add(low)
                    else:
                        middle = (low + high) // 2
                        halves += [(low, middle), (middle, high)]
            ranges = halves


def measure(run: Run, memory: Memory, step: int) -> Measured:
    """Find what is touched. Bytes are flipped `step` at a time first, then fewer where that
    matters; the second and the third time at least `AGAIN` at a time."""
    look = _Look(run, memory)
    chance = random.Random(1)
    for index, values in enumerate(memory):
        size = len(values)
        several = np.array([chance.randrange(1, 256) for _ in values], np.uint8)
        all_bits, one_bit = np.full_like(values, 0xFF), np.full_like(values, 1)
        again = max(step, AGAIN)
        for mask, most in ((several, step), (all_bits, again), (one_bit, again)):
            ranges = [(low, min(low + most, size)) for low in range(0, size, most)]
            look.search(index, ranges, mask)
    return Measured(look.left, look.reads, look.writes)
