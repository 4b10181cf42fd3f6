"""Parted launches: a replay makes a launch on a lane of each band.

Input: a launch that is in no segment, and how it is to be cut. Output: `Parted`, a piece of the
graph. A replay launches it whole if its bytes may be poisoned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..launch.commands import KernelCommand
from ..launch.parts import Part, parts_of
from ..records import Access, Command

if TYPE_CHECKING:
    from ..launch.engine import Engine


class Parted:
    """A launch in parts."""

    def __init__(self, engine: Engine, turn: int, access: Access, parts: Sequence[Part]) -> None:
        self.first = turn
        self.places: Sequence[int] = (turn,)
        self.parts = parts
        self._engine, self._access = engine, access

    def __len__(self) -> int:
        return 1

    def replay(self) -> list[int] | None:
        """Launch its parts. None: it has to be launched whole."""
        return self._engine.launch_parts(self.parts, self._access)


def parted(engine: Engine, turn: int, command: Command, access: Access) -> Parted | str:
    """Cut a launch into parts, or say why it stays whole. Empty: nobody asked for bands."""
    cut = command.cut if isinstance(command, KernelCommand) else None
    if cut is None or not isinstance(command, KernelCommand):
        return ""
    if reason := cut.reason or engine.uncut:
        return reason
    found = parts_of(command)
    return found if isinstance(found, str) else Parted(engine, turn, access, found)
