"""Profile: what each launch of a graph asks of its device, measured once.

Input: recorded launches, and a function that runs one that is no simple kernel. Output: a `Profile`
with the time of each launch alone and its costs.

Times are kept by kernel (source, options, sizes, numbers, bytes) and by device, beside those of the
doctor. A program that records the same launches again needs no run.

Invariant: each launch runs alone, after the end of the one before. Afterwards arrays have their
contents back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyopencl as cl

from ..devices import key
from ..devices.driver import CommandQueue, wait_for_event
from ..devices.probe.balance import balance
from ..devices.probe.balance import kept as kept_balance
from ..host import files
from ..host.digest import digest
from ..launch.commands import HostCommand, KernelCommand
from ..records import Access, Command, HostArray, Pair
from .contents import Contents
from .costs import Profile, bytes_of, profile_of

if TYPE_CHECKING:
    from ..launch.engine import Engine
    from ..memory.array import Array

FORMAT = 1
_KIND = "profile"
MOST_KEPT = 4096
"""Launches whose times are kept on disk."""

RUNS = 3


def known(engine: Engine, launches: Sequence[Pair]) -> Profile | None:
    """Return a profile from times on disk. None: something is missing. Runs nothing."""
    rates = kept_balance(engine.device)
    if rates is None:
        return None
    times = _kept_times(engine, launches)
    if any(us is None for us in times):
        return None
    return profile_of(engine.device, launches, [us or 0.0 for us in times], rates)


def measured(
    engine: Engine,
    launches: Sequence[Pair],
    kept: Sequence[tuple[Array, HostArray]],
    run: Callable[[int], int],
) -> Profile:
    """Run all launches alone, `RUNS` times, and put back what was `kept`. `run`: launches the one
    at a place in the ordinary way, and returns its number."""
    rates = balance(engine.device, engine.context)
    with Contents(engine, kept):
        taken = [_times(engine, launches, run) for _ in range(RUNS)]
    times = [min(all_of_one) for all_of_one in zip(*taken, strict=True)]
    names = [name_of(engine.device, *launch) for launch in launches]
    least: dict[str, float] = {}
    for name, us in zip(names, times, strict=True):
        if name:
            least[name] = min(us, least.get(name, us))
    for name, us in least.items():
        files.keep(_KIND, name, FORMAT, {"us": us})
    files.trim(_KIND, MOST_KEPT)
    times = [least.get(name, us) for name, us in zip(names, times, strict=True)]
    return profile_of(engine.device, launches, times, rates)


# ---- times ---------------------------------------------------------------------------------------


def _times(engine: Engine, launches: Sequence[Pair], run: Callable[[int], int]) -> list[float]:
    queue = CommandQueue(
        engine.context, engine.device, cl.command_queue_properties.PROFILING_ENABLE
    )
    found = []
    for place, (command, access) in enumerate(launches):
        if type(command) is KernelCommand:
            found.append(_alone_us(engine, command, access, queue))
        else:
            engine.wait_quietly(run(place))
            found.append(0.0)
    return found


def _alone_us(
    engine: Engine, command: KernelCommand, access: Access, queue: cl.CommandQueue
) -> float:
    """Time one kernel while nothing else is in flight."""
    engine.drain()
    with engine.lock:
        engine.come_to_rest()
        made = engine.taken_home(command, access)
        engine.come_to_rest()
        event = made.enqueue(queue, None)
        queue.flush()
        try:
            wait_for_event(event)
        except BaseException:  # a signal: whoever uses this memory next has to wait for the kernel
            task = HostCommand(command.name, _nothing, (), (), "measured by a profile")
            engine.launch(task, access, [event])
            raise
    return float(event.profile.end - event.profile.start) / 1e3


def _nothing() -> None:
    """Do nothing, behind a kernel."""


# ---- on disk -------------------------------------------------------------------------------------


def _kept_times(engine: Engine, launches: Sequence[Pair]) -> list[float | None]:
    read: dict[str, float | None] = {}
    found: list[float | None] = []
    for command, access in launches:
        if type(command) is not KernelCommand:
            found.append(0.0)
            continue
        name = name_of(engine.device, command, access)
        if name not in read:
            read[name] = _read(name)
        found.append(read[name])
    return found


def _read(name: str) -> float | None:
    us = files.kept(_KIND, name, FORMAT, lambda found: float(found["us"])) if name else None
    return us if us is not None and 0 <= us < float("inf") else None


def name_of(device: cl.Device, command: Command, access: Access) -> str:
    """Return the file name of a kernel at a size. Empty: it is unknown which kernel it is."""
    if type(command) is not KernelCommand or getattr(command.kernel, "origin", None) is None:
        return ""
    numbers = [value.hex() for value in map(bytes, command.values[1::2])]
    sizes = command.global_size, command.local_size, command.offset
    parts = (key(device), command.kernel.origin, sizes, numbers, bytes_of(access))
    return digest(repr(parts), 32) + ".json"
