"""Bands under checks: a recorded launch is checked band by band, each against its own access.

Input: a launch of a kernel that is to be cut. Output: its bands, each with its access and a
function that runs it, in the scheduler or on a lane. Of a launch of many bands a part is checked,
another part each time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pyopencl as cl

from ..launch import parts
from ..launch.commands import KernelCommand
from ..records import Access, NamedTuple
from ..scheduler.policy import AS_RULED

if TYPE_CHECKING:
    from ..launch.engine import Engine

MOST_LOOKED_AT = 8
"""Most bands of a launch that are checked at a time."""


class CheckedBand(NamedTuple):
    """A band of a launch."""

    name: str
    access: Access
    run: Callable[[cl.CommandQueue], cl.Event]


def parts_of(
    engine: Engine, command: KernelCommand, access: Access, turn: int
) -> list[CheckedBand]:
    """Return the bands of a launch to check. If it has many, `turn` selects them."""
    if command.cut is None or command.cut.touched is None:
        return []
    cutter = engine.backend.cutter(AS_RULED)
    found = cutter.parts(command, access) if cutter is not None else []
    lanes = parts.parts_of(command) if not found and not engine.backend.in_order else ""
    if not isinstance(lanes, str):
        found = [(one.access, partial(_run, one.command)) for one in lanes]
    apart = -(-len(found) // MOST_LOOKED_AT)
    return [
        CheckedBand(f"band {number} of {len(found)}", *one)
        for number, one in enumerate(found)
        if (number + turn) % apart == 0
    ]


def _run(command: KernelCommand, queue: cl.CommandQueue) -> cl.Event:
    event: cl.Event = command.enqueue(queue, None)
    return event
