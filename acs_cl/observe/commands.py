"""Facts about a command: the names of a kernel's memory arguments, and its sizes.

Input: launches, commands. Output: plain values, for timelines.
"""

from __future__ import annotations

from math import prod

from ..records import Command, Launch


def arguments_of(launch: Launch) -> tuple[tuple[str, str, int], ...]:
    """Return names, modes and bases of a kernel's memory arguments. It needs one span read and one
    written for each argument, as its mode says. Else: no names."""
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
    """Return the name of a command. Both halves of a copy between devices have one name."""
    carries: str = getattr(command, "carries", "")
    return carries or command.name


def sizes_of(command: Command) -> tuple[int, int]:
    """Return a kernel's work-groups and the work-items of each. Zeros: another command, or a size
    chosen by the driver."""
    local = getattr(command, "local_size", None)
    if not local:
        return 0, 0
    groups = 1
    for items, size in zip(getattr(command, "global_size", ()), local, strict=True):
        groups *= -(-items // size)
    return groups, prod(local)
