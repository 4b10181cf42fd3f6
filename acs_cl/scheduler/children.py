"""Children: memory that holds spawned items until they run, and what the scheduler learns of them.

Input: a scheduler. Output: a pool for it. Invariants: a pool belongs to one scheduler, which runs
one epoch at a time. The contents of its units are useless after the epoch; what was learned of
functions stays. The results are the same with any controller, and with a full pool.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyopencl as cl

from ..devices.driver import OwnKernel
from ..launch.spawning import MOST_THRESHOLD, Spawn
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
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    pool = cl.Buffer(context, flags, hostbuf=fresh)
    native._set_arg_multi((POOL_INDEX, pool))
    return pool
