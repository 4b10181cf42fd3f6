"""Series: consecutive launches of a graph on lanes, which the core makes in one call.

Input: the pieces of a graph, and its launches. Output: `Series` of single launches of kernels, each
bound to its arguments. A replay makes what is unusual by a call for each launch instead.

Invariant: a series crosses no border of a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from typing import NamedTuple

from .. import core
from ..errors import UsageError
from ..launch.commands import KernelCommand
from ..launch.decision import DecidedCommand
from ..records import Command, Pair
from ..scheduler.cutting import TOO_FEW, Single


class Series(NamedTuple):
    """Some pieces that the core launches."""

    stop: int
    """The number of the piece behind the last one."""
    core: core.native.Series


def series_of(
    hazards: core.native.Hazards,
    pieces: Sequence[object],
    launch_of: Callable[[Single], Pair],
    borders: Container[int],
) -> dict[int, Series]:
    """Return the series of a graph by the number of their first piece. `launch_of` returns what a
    single launch does; none goes on over a turn in `borders`."""
    found: dict[int, Series] = {}
    open_ = list[core.native.Prepared]()
    for number, piece in enumerate([*pieces, None]):
        own = _prepared(hazards, piece, launch_of)
        is_border = isinstance(piece, Single) and piece.turn in borders
        if open_ and (own is None or is_border):
            found[number - len(open_)] = Series(number, core.native.Series(tuple(open_)))
            open_ = []
        if own is not None:
            open_.append(own)
    return found


def _prepared(
    hazards: core.native.Hazards,
    piece: object,
    launch_of: Callable[[Single], Pair],
) -> core.native.Prepared | None:
    """Return a launch that the core can make on a lane. None: it is another piece, it may go to the
    scheduler, or it is no plain launch of a kernel."""
    if not isinstance(piece, Single) or piece.reason == TOO_FEW:
        return None
    command, access = launch_of(piece)
    command = _by_itself(command)
    if type(command) is not KernelCommand or command.cut is not None or command.spawn is not None:
        return None
    made = core.native.Prepared(hazards, command, access)
    return made if made.is_plain else None


def _by_itself(command: Command) -> Command:
    """Return the kernel that looks at its flag by itself, for a launch with `when=`. One whose size
    the device decides stays what it is: the core would not look at what its count was."""
    if type(command) is DecidedCommand and not command.is_counted:
        with suppress(UsageError):  # there is none, and the launch says why
            return command.guarded
    return command
