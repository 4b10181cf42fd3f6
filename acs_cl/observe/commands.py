"""What a command tells of itself: names of a kernel's memory, and its sizes.

In: launches, commands. Out: plain values, for timelines.
"""

from __future__ import annotations

from math import prod

from ..records import Command, Launch


def arguments_of(launch: Launch) -> tuple[tuple[str, str, int], ...]:
    """Names, modes and bases of a kernel's memory: where each argument is one span of what is read,
    and one of what is written, as its mode says, which is so unless the call said otherwise."""
    command = getattr(launch.command, "plain", launch.command)
    signature = getattr(getattr(command, "kernel", None), "signature", None)
    if signature is None:
        return ()
    memory = [one for one in signature.parameters if one.mode]
    reads, writes = launch.access.reads, launch.access.writes
    named = []
    for way, spans in (("r", reads), ("w", writes)):
        mine = [one for one in memory if way in one.mode]
        if len(mine) != len(spans):
            return ()
        named += [(one.name, one.mode, span.base) for one, span in zip(mine, spans, strict=True)]
    return tuple(dict.fromkeys(named))


def name_of(command: Command) -> str:
    """What a command is called: both halves of a copy between devices are that copy."""
    carries: str = getattr(command, "carries", "")
    return carries or command.name


def sizes_of(command: Command) -> tuple[int, int]:
    """Work-groups of a kernel and work-items of each; zeros for other commands and where the driver
    chose the size."""
    local = getattr(command, "local_size", None)
    if not local:
        return 0, 0
    groups = 1
    for items, size in zip(getattr(command, "global_size", ()), local, strict=True):
        groups *= -(-items // size)
    return groups, prod(local)
