"""Compiling a scheduler, and the note that the driver has it on disk.

A driver may let no other thread of the process launch while it compiles. PoCL 3.0 compiles a kernel
at its first launch, in a thread that runs kernels. Any other launch of the process waits for it:
270 to 450 ms for a scheduler of 16 kernels. With NVIDIA's driver (580, an H200) commands waited for
up to a second. Both find on disk what another process compiled (`apart`), in some milliseconds.

Input: a scheduler's text and build options, or its kernel. Output: a program, compiled in memory or
on disk. A first launch is part of it, because some drivers compile then.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from struct import pack
from typing import Any

import pyopencl as cl

from ..devices.build import build
from ..devices.driver import CommandQueue, buffer_of, run, set_arguments
from ..host.digest import digest
from ..opencl_c import cache, registers
from . import layout
from .children import give_pool

NAME = "acs_scheduler"
"""Name of the kernel."""


@functools.cache
def launch_arguments(
    block: int = 0, turns: int = 1 << 30, polls: int = 0, slice_ns: int = 0, mode: int = 0
) -> tuple[int | bytes, ...]:
    """Return the arguments of the scheduler behind its region: index and bytes in turn."""
    numbers = ((block, "I"), (turns, "I"), (polls, "I"), (slice_ns, "Q"), (mode, "I"))
    return tuple(
        part
        for index, (number, code) in enumerate(numbers, 1)
        for part in (index, pack("<" + code, number))
    )


def build_told(
    context: Any, device: Any, source: str, words: Sequence[str], tier: str
) -> tuple[Any, int | None]:
    """Build a program, and return the registers of a work-item if the compiler tells. They limit
    the groups: those outside would wait for those inside to leave."""
    if tier != "ptx":
        return build(context, device, source, words), None
    program, found = registers.build_told(context, device, source, words)
    return program, next(iter(found.values()), None)


def warm_up(context: Any, device: Any, native: Any, group: int, notes: Any = None) -> None:
    """Launch a scheduler with an empty epoch. `notes`: of one in its timed form."""
    image = layout.Recorder().image(64)
    queue = CommandQueue(context, device)
    region = buffer_of(context, image.words)
    set_arguments(native, (0, region), launch_arguments())
    pool = give_pool(context, native, 1, notes is not None)
    if notes is not None:
        notes.give(native)
    run(queue, native, group, group).wait()
    del pool  # it had to live until now


def note_of(device: cl.Device, source: str, options: Sequence[str], group: int) -> str:
    """Return the name of the note that the driver has a program on disk."""
    about = [source, *options, str(group), device.name, device.driver_version]
    return digest("\0".join(["compiled", *about]))


def is_compiled(note: str) -> bool:
    """Tell whether there is such a note."""
    return cache.load(note) is not None


def keep_note(note: str) -> None:
    """Note that the driver has a program on disk."""
    cache.store(note, {})
