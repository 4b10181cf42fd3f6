"""Series: consecutive launches of a graph on lanes, which the core makes in one call.

Input: the pieces of a graph, and its launches. Output: `Series` of single launches of kernels, each
bound to its arguments. A replay makes what is unusual by a call for each launch instead.

Invariant: a series crosses no border of a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from .. import core
from ..errors import UsageError
from ..launch.commands import KernelCommand
from ..launch.decision import DecidedCommand
from ..records import Access, Command, NamedTuple
from ..scheduler.cutting import TOO_FEW, Single
from .calls import name_in_graph

LaunchOf = Callable[[Single], tuple[int, Command, Access]]
"""Returns the place of a single launch in its graph, and what it does."""

Counted = tuple[int, int, int, bool]
"""The argument that takes a word for a wrong count, and what the count may be."""


class Series(NamedTuple):
    """Some pieces that the core launches."""

    stop: int
    """The number of the piece behind the last one."""
    core: core.native.Series


def series_of(
    hazards: core.native.Hazards,
    pieces: Sequence[object],
    launch_of: LaunchOf,
    borders: Container[int],
    has_word: Callable[[], bool],
) -> dict[int, Series]:
    """Return the series of a graph by the number of their first piece. None goes on over a turn in
    `borders`. `has_word`: tells whether the core has a word for a wrong count."""
    found: dict[int, Series] = {}
    open_ = list[core.native.Prepared]()
    for number, piece in enumerate([*pieces, None]):
        own = _prepared(hazards, piece, launch_of, has_word)
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
    launch_of: LaunchOf,
    has_word: Callable[[], bool],
) -> core.native.Prepared | None:
    """Return a launch that the core can make on a lane. None: it is another piece, it may go to the
    scheduler, or it is no plain launch of a kernel."""
    if not isinstance(piece, Single) or piece.reason == TOO_FEW:
        return None
    place, command, access = launch_of(piece)
    counted = None
    if type(command) is DecidedCommand:
        command, counted = _by_itself(command, place)
        if counted is not None and not has_word():
            return None
    if type(command) is not KernelCommand or command.cut is not None or command.spawn is not None:
        return None
    made = core.native.Prepared(hazards, command, access, counted)
    return made if made.is_plain else None


def _by_itself(command: DecidedCommand, place: int) -> tuple[Command, Counted | None]:
    """Return the kernel that looks at its flag and its count by itself, without memory for a wrong
    count: the core gives it a word at each launch."""
    try:
        guarded = command.guarded
    except UsageError:  # there is none, and the launch says why
        return command, None
    if command.fault is None:
        return guarded, None
    _, count, upto, group = command.decision
    pointers, memory = guarded.pointers, command.fault.place.memory
    at = next(at for at in range(0, len(pointers), 2) if pointers[at + 1] is memory)
    own = guarded._replace(
        name=name_in_graph(command, place), pointers=pointers[:at] + pointers[at + 2 :]
    )
    return own, (pointers[at], upto, group, count is not None and count.signed)
