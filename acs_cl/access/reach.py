"""How far a launch reaches into each argument: an outline run for its sizes and numbers.

In: an outline (`opencl_c.modes.outline`), the sizes, offset and integer arguments of a launch. Out:
for each pointer parameter the byte rectangles that it may read and write, from its first byte on,
or None for all of it, with the reason. Pure. The core runs it: `_core/access/reach.cpp` says how.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from acs_cl import core
from acs_cl.ranges import Rectangle

MOST_RECTANGLES = 4
"""Of one argument, read or written; more are taken as their hull."""

Groups = tuple[tuple[int, int], ...]
"""Of each axis the first group that runs, and the one behind the last."""


class Reached(NamedTuple):
    """What a launch may do to one argument; None is all of it, for the reason given."""

    reads: tuple[Rectangle, ...] | None
    writes: tuple[Rectangle, ...] | None
    why: str = ""


class Launch(NamedTuple):
    """What of a launch an outline may ask for. `local`: None where the driver picks it. `groups`:
    the groups that run, where only a band of them does; it needs `local`."""

    sizes: tuple[int, ...]
    local: tuple[int, ...] | None
    offset: tuple[int, ...] | None
    numbers: Mapping[int, int]  # integer arguments, by parameter
    groups: Groups | None = None


def reach(outline: core.native.Outline, launch: Launch) -> dict[int, Reached] | None:
    """What a launch may touch of each argument that it touches at all; None where nobody can say in
    a bearable time."""
    found = outline.reach(
        launch.sizes, launch.local, launch.offset, dict(launch.numbers), launch.groups
    )
    return None if found is None else {index: Reached(*one) for index, one in found.items()}
