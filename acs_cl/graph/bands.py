"""Bands of a recorded launch: a piece of the graph that sends them on lanes, and texts about them.

Input: a launch and how it is to be cut; for texts a segment, or the accesses of launches on lanes.
Output: `Parted`, which makes a launch on a lane of each band; text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .. import core
from ..launch.commands import KernelCommand
from ..launch.parts import LanePart, parts_of
from ..records import Access, Command
from ..scheduler.laying import JOINT
from ..scheduler.segment import Segment

if TYPE_CHECKING:
    from ..launch.engine import Engine

MOST_TOLD = 64
"""Bands that are told one by one."""


class Parted:
    """A launch that is in no segment, in parts."""

    def __init__(
        self, engine: Engine, turn: int, access: Access, parts: Sequence[LanePart]
    ) -> None:
        self.first = turn
        self.places: Sequence[int] = (turn,)
        self.parts = parts
        self._engine, self._access = engine, access

    def __len__(self) -> int:
        return 1

    def replay(self) -> list[int] | None:
        """Launch its parts. None: its bytes may be poisoned, so it has to be launched whole."""
        return self._engine.launch_parts(self.parts, self._access)


def parted(engine: Engine, turn: int, command: Command, access: Access) -> Parted | str:
    """Cut a launch into parts, or say why it stays whole. Empty: nobody asked for bands."""
    if not isinstance(command, KernelCommand) or command.cut is None:
        return ""
    if reason := command.cut.reason or engine.uncut:
        return reason
    found = parts_of(command)
    return found if isinstance(found, str) else Parted(engine, turn, access, found)


# ---- texts ---------------------------------------------------------------------------------------


def told(segment: Segment, launch: int) -> str:
    """Say into how many bands a launch is cut, and what each writes and waits for, or why it is not
    cut."""
    laid, cuts = segment.laid, segment.cuts[launch]
    own = laid.tasks[launch]
    if not cuts.bands:
        return f"bands: off, since {cuts.reason}"
    lines = [
        (f"band {number}, tiles {band.tiles}", _waits(segment, task), band.access)
        for number, (task, band) in enumerate(zip(own[:MOST_TOLD], cuts.bands, strict=False))
    ]
    return _listed(len(own), lines, f", since {cuts.reason}" if cuts.reason else "")


def told_parts(touched: Sequence[Sequence[Access]], turn: int, places: Sequence[int]) -> str:
    """Say the same about a launch on lanes, `turn` of a graph. `touched`: accesses of it and of
    those before it, by parts. `places`: the place in the graph of each turn."""
    hazards = core.native.Hazards()
    of: list[tuple[int, int]] = []  # the launch of each number of the hazards, and its part there
    for number, parts in enumerate(touched):
        edges = hazards.enter_many(len(of) + 1, list(parts))
        of += [(number, part) for part in range(len(parts))]
    lines = []
    for number, (access, above) in enumerate(zip(touched[turn][:MOST_TOLD], edges, strict=False)):
        found: dict[int, list[int]] = {}
        for one in above:
            launch, part = of[one - 1]
            found.setdefault(launch, []).append(part)
        waits = _waiting((places[at], len(touched[at]), some) for at, some in sorted(found.items()))
        lines.append((f"band {number}, a launch on a lane", waits, access))
    return _listed(len(touched[turn]), lines)


def _listed(many: int, lines: Sequence[tuple[str, str, Access]], why: str = "") -> str:
    text = [f"bands: {many}{why}"]
    for name, waits, access in lines:
        writes = "; ".join(map(str, access.writes)) or "nothing"
        text.append(f"  {name}: {waits}; writes {writes}")
    if many > len(lines):
        text.append(f"  and {many - len(lines):,} more")
    return "\n".join(text)


def _waits(segment: Segment, task: int) -> str:
    laid = segment.laid
    of: dict[int, list[int]] = {}
    for above in laid.upstream[task]:
        joined = laid.upstream[above] if laid.launches[above] == JOINT else (above,)
        for one in joined:
            of.setdefault(laid.launches[one], []).append(one - laid.tasks[laid.launches[one]].start)
    return _waiting(
        (segment.places[launch], len(laid.tasks[launch]), bands)
        for launch, bands in sorted(of.items())
    )


def _waiting(found: Iterable[tuple[int, int, list[int]]]) -> str:
    """Say for which bands of which launches it waits. `found`: (place, number, bands)."""
    waits = [
        f"{_runs(bands) if many > 1 else ''}launch {place + 1}" for place, many, bands in found
    ]
    return f"waits for {', '.join(waits)}" if waits else "waits for nothing"


def _runs(bands: list[int]) -> str:
    """List numbers of bands, with runs of them in short."""
    runs: list[list[int]] = []
    for band in sorted(bands):
        if runs and band == runs[-1][-1] + 1:
            runs[-1].append(band)
        else:
            runs.append([band])
    text = ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]} to {r[-1]}" for r in runs)
    return f"band{'s' if len(bands) > 1 else ''} {text} of "
