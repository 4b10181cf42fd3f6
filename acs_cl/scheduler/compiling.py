"""Compiling a scheduler, in a process of its own where compiling would stop other launches.

A driver may let no other thread of the process launch while it compiles. PoCL 3.0 compiles a kernel
at its first launch, in a thread that runs kernels. Any other launch of the process waits for it:
270 to 450 ms for a scheduler of 16 kernels. With NVIDIA's driver (580, an H200) commands waited for
up to a second. Both find on disk what another process compiled, in some milliseconds.

Input: a scheduler's kernel, or its text and build options. Output: a program, compiled in memory or
on disk. A first launch is part of it, because some drivers compile then.

Invariant: a process that fails costs only time; the driver then compiles here. A process that takes
too long is stopped, and the same text is not built here: NVIDIA's compiler never ends on some
kernels, and no launch would be possible meanwhile.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from struct import pack
from typing import Any

import pyopencl as cl

from .. import devices
from ..devices.build import build
from ..devices.driver import CommandQueue, OwnKernel, set_arguments
from ..host import isolated
from ..host.digest import digest
from ..opencl_c import cache, registers
from . import layout
from .children import give_pool
from .kept_sets import KeptSet, KeptSets, read_set
from .notes import TIMED, Notes

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
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    region = cl.Buffer(context, flags, hostbuf=image.words)
    set_arguments(native, (0, region), launch_arguments())
    pool = give_pool(context, native, 1, notes is not None)
    if notes is not None:
        notes.give(native)
    cl.enqueue_nd_range_kernel(queue, native, (group,), (group,)).wait()
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


def warm_up_apart(
    device: cl.Device,
    source: str,
    options: Sequence[str],
    group: int,
    tier: str,
    manners: isolated.Manners,
    kept: KeptSet | None = None,
) -> bool:
    """Build and launch in a process of its own: the driver keeps the result on disk. Tell whether
    that went well. `kept`: the set to keep then, since the program may have ended. Raises
    `TooLate`."""
    order = {"source": source, "options": list(options), "group": group, "tier": tier}
    order |= {"position": devices.devices().index(device), "kept": kept}
    return isolated.ask(__spec__.name, order, manners=manners)


def main(order: dict[str, Any]) -> int:
    """Build and launch. This is the main function of the process."""
    device = devices.devices()[order["position"]]
    devices.repair(device)
    context = cl.Context([device])
    program, _ = build_told(context, device, order["source"], order["options"], order["tier"])
    notes = Notes(context, device, program) if TIMED in order["options"] else None
    warm_up(context, device, OwnKernel(program, NAME), order["group"], notes)
    keep_note(note_of(device, order["source"], order["options"], order["group"]))
    if order["kept"] is not None:
        KeptSets(device, order["tier"]).keep(read_set(order["kept"]), order["group"])
    return 0
