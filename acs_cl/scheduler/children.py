"""Children: memory that holds spawned items until they run, and what became of them.

Input: a scheduler, or what an epoch of it left. Output: a pool for it, or counts.

Invariants: a pool belongs to one scheduler, which runs one epoch at a time. The contents of its
units are useless after the epoch; what was learned of functions stays. The results are the same
with any controller, and with a full pool.
"""

from __future__ import annotations

import numpy as np
import pyopencl as cl

from ..devices.driver import OwnKernel, buffer_of
from ..launch.spawning import MOST_THRESHOLD, Spawn
from ..records import NamedTuple
from . import layout

POOL_INDEX = 6
"""Index of the pool among the arguments of a scheduler that has one."""

LEAST = 64
"""Items of a child that is worth a task, while its function is unknown. A task costs about as much
as running some ten of the simplest items."""

MOST_LEAST = MOST_THRESHOLD


class Room(NamedTuple):
    """How a scheduler treats spawned items if a launch does not say it, and its room for them."""

    spawn: Spawn = Spawn()
    units: int = layout.POOL_UNITS
    slots: int = layout.CHILD_SLOTS


ROOM = Room()


def give_pool(
    context: cl.Context, native: OwnKernel, groups: int, notes: bool = False
) -> cl.Buffer | None:
    """Give a scheduler its pool, if it takes one: learned values, units, and a list for each group.
    `notes`: its last argument is the memory for notes."""
    if native.num_args <= POOL_INDEX + notes:
        return None
    units = layout.LEARNED_UNITS + layout.POOL_UNITS + layout.LISTED * groups
    fresh = np.zeros(units * layout.UNIT_BYTES // 4, np.uint32)
    pool = buffer_of(context, fresh)
    native._set_arg_multi((POOL_INDEX, pool))
    return pool


class Children(NamedTuple):
    """Counts spawned items that were not run at once."""

    spawned: int = 0
    """Items that became tasks."""
    kept: int = 0
    """Items that the group whose tile spawned them ran itself, for one of these four reasons:"""
    all_busy: int = 0
    """all groups had work;"""
    no_room: int = 0
    """the pool or the ring was full;"""
    too_many: int = 0
    """their launch already had as many unfinished tiles as it may have;"""
    slower: int = 0
    """a child would have taken longer."""

    def and_those(self, others: Children) -> Children:
        """Add the counts of `others`."""
        return Children(*(a + b for a, b in zip(self, others, strict=True)))

    def __str__(self) -> str:
        why = ", ".join(
            f"{many:,} since {reason}"
            for many, reason in zip(self[2:], REASONS, strict=True)
            if many
        )
        ran = f", its groups ran {self.kept:,} themselves ({why})" if self.kept else ""
        return f"of items that its epoch spawned, {self.spawned:,} became children{ran}"


REASONS = (
    "all groups had work",
    "there was no room",
    "a launch had as many tiles as it may have",
    "children would have taken longer",
)


def children_of(status: layout.Words) -> Children:
    """Read the counts of one epoch from its status buffer."""
    kept = status[layout.KEPT : layout.KEPT + layout.REASONS].tolist()
    return Children(int(status[layout.SPAWNED]), sum(kept), *kept)
