"""What a kernel really touches: it is run on plain PyOpenCL with bytes flipped before each run.

In: a built kernel and a trap. Out: the memory it leaves, and the bytes of each argument that it was
seen to read and to write. A byte is written if a run leaves another value there than it found. It
is read if flipping it changes anything else, or itself other than by being left alone.
Invariant: what is reported was seen; a read that changes nothing is not reported.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from traps.case import Buffer, Image, Local, Same, Trap

Bytes = np.ndarray[Any, Any]
Memory = list[Bytes]
Run = Callable[[Memory], Memory]


class Measured(NamedTuple):
    """`left`: the contents of the buffers after a run; `reads` and `writes`: positions in each."""

    left: Memory
    reads: list[set[int]]
    writes: list[set[int]]


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
    return cl.Image(context, flags, form, shape=(image.width, image.height), hostbuf=data)


def plainly(queue: cl.CommandQueue, kernel: cl.Kernel, trap: Trap) -> Run:
    """A function that runs the kernel on given memory, and gives the memory afterwards."""
    places: list[Any] = []
    regions: list[dict[str, Any]] = []
    for argument in trap.args:
        if isinstance(argument, Buffer):
            places.append(cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, len(argument.data)))
            regions.append({})
        elif isinstance(argument, Image):
            places.append(make_image(queue.context, argument))
            regions.append({"origin": (0, 0), "region": (argument.width, argument.height)})
    kernel.set_args(*arguments(trap, places))

    def run(memory: Memory) -> Memory:
        for place, values, region in zip(places, memory, regions, strict=True):
            cl.enqueue_copy(queue, place, values, is_blocking=False, **region)
        cl.enqueue_nd_range_kernel(queue, kernel, trap.size, trap.local, trap.offset)
        left = [np.empty_like(values) for values in memory]
        for place, values, region in zip(places, left, regions, strict=True):
            cl.enqueue_copy(queue, values, place, **region)
        queue.finish()
        return left

    return run


class _Look:
    """The runs of one kernel so far."""

    def __init__(self, run: Run, memory: Memory) -> None:
        self.run, self.memory = run, memory
        self.left = run(memory)
        if any((a != b).any() for a, b in zip(self.left, run(memory), strict=True)):
            raise Unsteady
        self.reads: list[set[int]] = [set() for _ in memory]
        self.writes: list[set[int]] = [set() for _ in memory]
        self.note_writes(memory, self.left)

    def note_writes(self, before: Memory, after: Memory) -> None:
        for found, old, new in zip(self.writes, before, after, strict=True):
            found.update(np.nonzero(old != new)[0].tolist())

    def matters(self, index: int, low: int, high: int, mask: Bytes) -> bool:
        """Whether flipping the bytes from `low` to `high` of an argument changes anything."""
        changed = list(self.memory)
        changed[index] = self.memory[index].copy()
        changed[index][low:high] ^= mask[low:high]
        after = self.run(changed)
        self.note_writes(changed, after)
        for at, (new, old) in enumerate(zip(after, self.left, strict=True)):
            differs = new != old
            if at == index:
                alone = (new == changed[at]) & (self.memory[at] == old)
                differs[low:high] &= ~alone[low:high]
            if differs.any():
                return True
        return False

    def search(self, index: int, low: int, high: int, mask: Bytes) -> None:
        """Note which bytes matter, by halves of what does."""
        if not self.matters(index, low, high, mask):
            return
        if high - low == 1:
            self.reads[index].add(low)
            return
        middle = (low + high) // 2
        self.search(index, low, middle, mask)
        self.search(index, middle, high, mask)


def measure(run: Run, memory: Memory, step: int) -> Measured:
    """What is touched. Bytes are flipped `step` at a time first, then fewer where that matters."""
    look = _Look(run, memory)
    chance = random.Random(1)
    for index, values in enumerate(memory):
        several = np.array([chance.randrange(1, 256) for _ in values], np.uint8)
        for mask in (several, np.full_like(values, 0xFF), np.full_like(values, 1)):
            for low in range(0, len(values), step):
                look.search(index, low, min(low + step, len(values)), mask)
    return Measured(look.left, look.reads, look.writes)
