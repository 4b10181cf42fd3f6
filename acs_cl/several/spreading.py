"""Spreading: one launch becomes several on several devices, each with some of its groups.

Input: a launch of a kernel, and the access of a part of it. Output: the parts, or why it stays
whole. A part is the same kernel with a global offset and fewer work-items. So the body may not ask
for values that these change: the numbers of groups, and the global size.

Invariants: no part touches what another one writes. The parts are whole groups, and together all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from ..launch.commands import KernelCommand
from ..launch.observers import AccessOf
from ..ranges import overlap
from ..records import EVERYTHING, Access, Span

LEAST_US = 200.0
"""A shorter launch is not spread."""

_CHANGED = re.compile(
    r"get_(?:group_id|num_groups|global_size|global_offset|enqueued_local_size|\w+_linear_id)\b"
    r"|\bprintf\b|#\s*include|##"
)
"""Matches words that a global offset and a smaller size change, or that may hide such a word."""
_LOCAL = re.compile(r"get_local_\w+|\blocal\b|\b__local\b|\bbarrier\b")
"""Matches words that depend on the group size which the driver chooses."""

UNIT = 64
"""A part of a launch without a local size has a multiple of this many work-items."""


class Part(NamedTuple):
    """Some of the groups of a launch."""

    command: KernelCommand
    access: Access


def hindrance(source: str, command: KernelCommand) -> str:
    """Say why a launch cannot be cut, before its access is known; empty if it can."""
    if command.offset is not None and any(command.offset):
        return "it has an offset"
    origin = command.kernel.origin
    return _hindrance_of(source, origin[1] if origin else (), command.local_size is None)


@lru_cache(maxsize=512)
def _hindrance_of(source: str, options: tuple[str, ...], is_local_free: bool) -> str:
    if found := _CHANGED.search(" ".join((source, *options))):
        return f"its source has {found[0].strip()}"
    if is_local_free and (found := _LOCAL.search(source)):
        return f"its source has {found[0]}, and it has no local size"
    return ""


def cut(command: KernelCommand, many: int, access_of: AccessOf) -> list[Part]:
    """Cut a launch along its slowest axis into at most `many` parts of nearly equal size."""
    sizes, local = command.global_size, command.local_size
    axis = len(sizes) - 1
    unit = local[axis] if local else UNIT if axis == 0 else 1
    units = -(-sizes[axis] // unit)
    parts = min(many, units)
    edges = [min(sizes[axis], units * at // parts * unit) for at in range(parts)] + [sizes[axis]]
    found = []
    for begin, end in pairwise(edges):
        size = (*sizes[:axis], end - begin)
        offset = (*(0 for _ in sizes[:axis]), begin)
        found.append(
            Part(command._replace(global_size=size, offset=offset), access_of(size, offset))
        )
    return found


def are_apart(parts: Sequence[Part]) -> bool:
    """Tell whether parts touch memory of the runtime only, and none touches another's writes."""
    for one in parts:
        if any(span.base <= EVERYTHING for span in (*one.access.reads, *one.access.writes)):
            return False
        for other in parts:
            if other is not one and _meet(
                one.access.writes, (*other.access.writes, *other.access.reads)
            ):
                return False
    return True


def _meet(some: Sequence[Span], others: Sequence[Span]) -> bool:
    return any(a.base == b.base and overlap(a, b) for a in some for b in others)
