"""The first launch of a scheduler, which some drivers compile at, done beforehand; and before that
in a process of its own, where a driver that compiles lets nobody else of the process launch.

In: a scheduler's kernel, or its text and what it is built with. Out: nothing but what the driver
has now, in memory or on disk. Invariant: a process that fails, or takes too long, costs time and
nothing else; the driver then compiles here.

PoCL 3.0 compiles a kernel at its first launch, in one of the threads that run kernels, and any
launch of the process that comes meanwhile waits: 270 to 450 ms for a scheduler of 16 kernels. What
another process has compiled it finds on disk, in some milliseconds.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from struct import pack
from typing import Any

import pyopencl as cl

from . import devices, epochs
from .building import build
from .driver import CommandQueue, OwnKernel, set_arguments

NAME = "acs_scheduler"
"""Of the kernel."""

NICE = 5
"""How far the process stands back behind the program."""


@functools.cache
def launch_arguments(
    block: int = 0, turns: int = 1 << 30, polls: int = 0, slice_ns: int = 0, mode: int = 0
) -> tuple[Any, ...]:
    """What the scheduler takes behind its region: indices and bytes in turns."""
    numbers = ((block, "I"), (turns, "I"), (polls, "I"), (slice_ns, "Q"), (mode, "I"))
    return tuple(
        part
        for index, (number, code) in enumerate(numbers, 1)
        for part in (index, pack("<" + code, number))
    )


def warm_up(context: Any, device: Any, native: Any, group: int) -> None:
    """Launch a scheduler with an epoch of nothing."""
    image = epochs.Recorder().image(64)
    queue = CommandQueue(context, device)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    region = cl.Buffer(context, flags, hostbuf=image.words)
    set_arguments(native, (0, region), launch_arguments())
    cl.enqueue_nd_range_kernel(queue, native, (group,), (group,)).wait()


def warm_up_apart(device: Any, source: str, options: Sequence[str], group: int) -> bool:
    """The same in a process of its own, which builds the scheduler first; whether it says that it
    did."""
    from .translate import worker

    order = {"source": source, "options": list(options), "group": group}
    return worker.ask(__spec__.name, {**order, "position": devices.devices().index(device)})


def main() -> int:
    """The process."""
    import json
    import os
    import sys

    if hasattr(os, "nice"):
        os.nice(NICE)
    order: dict[str, Any] = json.load(sys.stdin)
    device = devices.devices()[order["position"]]
    devices.repair(device)
    context = cl.Context([device])
    program = build(context, device, order["source"], order["options"])
    warm_up(context, device, OwnKernel(program, NAME), order["group"])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
