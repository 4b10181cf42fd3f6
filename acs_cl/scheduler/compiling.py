"""Compiling a scheduler: with what the compiler tells of it, and with its first launch, which some
drivers compile at; and before that in a process of its own, where a driver that compiles lets
nobody else of the process launch.

In: a scheduler's kernel, or its text and what it is built with. Out: a program, and what the driver
has now, in memory or on disk. Invariant: a process that fails costs time and nothing else; the
driver then compiles here. One that takes too long is stopped, and nobody asks the driver for the
same here: NVIDIA's compiler never ends on some kernels, and nobody could launch meanwhile.

PoCL 3.0 compiles a kernel at its first launch, in one of the threads that run kernels, and any
launch of the process that comes meanwhile waits: 270 to 450 ms for a scheduler of 16 kernels. With
NVIDIA's driver (580, an H200) commands waited for up to a second. What another process has compiled
both find on disk, in some milliseconds.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from struct import pack
from typing import Any

import pyopencl as cl

from .. import devices
from ..devices.build import build
from ..devices.driver import CommandQueue, OwnKernel, set_arguments
from ..host import isolated
from ..opencl_c import registers
from . import layout
from .children import give_pool
from .notes import TIMED, Notes

NAME = "acs_scheduler"
"""Of the kernel."""

NICE = 5
"""How far the process stands back behind the program."""


@functools.cache
def launch_arguments(
    block: int = 0, turns: int = 1 << 30, polls: int = 0, slice_ns: int = 0, mode: int = 0
) -> tuple[int | bytes, ...]:
    """What the scheduler takes behind its region: indices and bytes in turns."""
    numbers = ((block, "I"), (turns, "I"), (polls, "I"), (slice_ns, "Q"), (mode, "I"))
    return tuple(
        part
        for index, (number, code) in enumerate(numbers, 1)
        for part in (index, pack("<" + code, number))
    )


def build_told(
    context: Any, device: Any, source: str, words: Sequence[str], tier: str
) -> tuple[Any, int | None]:
    """A program, and the registers of a work-item, where the compiler tells: with more groups than
    there is room for, those outside wait for those inside to leave."""
    if tier != "ptx":
        return build(context, device, source, words), None
    program, found = registers.build_told(context, device, source, words)
    return program, next(iter(found.values()), None)


def warm_up(context: Any, device: Any, native: Any, group: int, notes: Any = None) -> None:
    """Launch a scheduler with an epoch of nothing. `notes`: of one in its timed form."""
    image = layout.Recorder().image(64)
    queue = CommandQueue(context, device)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    region = cl.Buffer(context, flags, hostbuf=image.words)
    set_arguments(native, (0, region), launch_arguments())
    pool = give_pool(context, native, 1, notes is not None)
    if notes is not None:
        notes.give(native)
    cl.enqueue_nd_range_kernel(queue, native, (group,), (group,)).wait()
    del pool  # which had to live until now


def warm_up_apart(device: Any, source: str, options: Sequence[str], group: int, tier: str) -> bool:
    """The same in a process of its own, which builds the scheduler first; whether it says that it
    did. Raises `TooLate`."""
    order = {"source": source, "options": list(options), "group": group, "tier": tier}
    return isolated.ask(__spec__.name, {**order, "position": devices.devices().index(device)})


def main(order: dict[str, Any]) -> int:
    """Build and launch: the process."""
    if hasattr(os, "nice"):
        os.nice(NICE)
    device = devices.devices()[order["position"]]
    devices.repair(device)
    context = cl.Context([device])
    program, _ = build_told(context, device, order["source"], order["options"], order["tier"])
    notes = Notes(context, device, program) if TIMED in order["options"] else None
    warm_up(context, device, OwnKernel(program, NAME), order["group"], notes)
    return 0
