"""Children: what becomes of the items that tasks spawn, and the memory that they are kept in.

In: what a program asked for. Out: the word of a record that says it, and a pool for a scheduler.
Invariant: a pool is of one scheduler, which runs one epoch at a time; what is in it is of no use
when that has ended. With any controller, and with a pool that is full, the results are the same.
"""

from __future__ import annotations

from typing import NamedTuple

import pyopencl as cl

from ..devices.driver import OwnKernel
from . import layout

POOL_INDEX = 6
"""Of the pool among the arguments of a scheduler that has one."""

LEAST = 64
"""Items of a child that is worth a task, if nobody says: a task costs about as much as running some
ten of the simplest."""

MOST_LEAST = (1 << 30) - 1

CONTROLLERS = {"never": 0, "always": 1, "hungry": 2}
"""By the names that a program gives, as the scheduler knows them: `never` runs all items in their
task, `always` makes tasks of them while there is room, `hungry` if a group looks for work."""


class Spawn(NamedTuple):
    """What is done with items that tasks spawn."""

    controller: str = "hungry"
    least: int = LEAST
    """Fewer items of one call are run at once, in a loop."""
    units: int = layout.POOL_UNITS
    slots: int = layout.CHILD_SLOTS

    @property
    def word(self) -> int:
        """As a record has it; 0: nothing is spawned."""
        controller = CONTROLLERS[self.controller]
        return self.least << 2 | controller if controller else 0


DEFAULT = Spawn()


def give_pool(context: cl.Context, native: OwnKernel, groups: int) -> cl.Buffer | None:
    """Give a scheduler its pool, if it takes one: units, then the list of each group."""
    if native.num_args <= POOL_INDEX:
        return None
    units = layout.POOL_UNITS + layout.LISTED * groups
    pool = cl.Buffer(context, cl.mem_flags.READ_WRITE, units * layout.UNIT_BYTES)
    native._set_arg_multi((POOL_INDEX, pool))
    return pool
