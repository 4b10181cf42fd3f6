"""Children: the memory that spawned items are kept in until they run, and what is learned of them.

In: a scheduler. Out: a pool for it. Invariants: a pool is of one scheduler, which runs one epoch at
a time. What is in its units is of no use when that has ended; what was learned of functions stays.
With any controller, and with a pool that is full, the results are the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyopencl as cl

from ..devices.driver import OwnKernel
from ..launch.spawning import MOST_THRESHOLD, Spawn
from . import layout

POOL_INDEX = 6
"""Of the pool among the arguments of a scheduler that has one."""

LEAST = 64
"""Items of a child that is worth a task, while nothing is known of its function: a task costs about
as much as running some ten of the simplest."""

MOST_LEAST = MOST_THRESHOLD


class Room(NamedTuple):
    """What a scheduler does with spawned items unless a launch says otherwise, and its room."""

    spawn: Spawn = Spawn()
    units: int = layout.POOL_UNITS
    slots: int = layout.CHILD_SLOTS


ROOM = Room()


def give_pool(
    context: cl.Context, native: OwnKernel, groups: int, notes: bool = False
) -> cl.Buffer | None:
    """Give a scheduler its pool, if it takes one: what is learned, units, a list for each group.
    `notes`: its last argument is for these."""
    if native.num_args <= POOL_INDEX + notes:
        return None
    units = layout.LEARNED_UNITS + layout.POOL_UNITS + layout.LISTED * groups
    fresh = np.zeros(units * layout.UNIT_BYTES // 4, np.uint32)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    pool = cl.Buffer(context, flags, hostbuf=fresh)
    native._set_arg_multi((POOL_INDEX, pool))
    return pool
