"""Placed launches: consecutive launches of a graph, each with its device, and the copies between.

In: launches in program order, each with its device. Out: `Placed`, which a replay goes through step
by step. Which device has what at its start is not known when it is made. So bytes that the launches
touch before they write them are `needs`: what is missing of these then is copied first. Bytes that
the launches have written are copied where another device lacks them, in each replay. `left` is
where all that was written is valid afterwards.

Invariant: a replay leaves the coherence as launching the same launches, on the same devices, does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from typing import NamedTuple

from ..errors import UsageError
from ..launch.commands import KernelCommand, TransferCommand
from ..launch.observers import AccessOf
from ..ranges import merged
from ..records import EVERYTHING, Access, Command, Span
from .coherence import Coherence
from .model import Parcel, needed, parcels
from .placement import Links
from .spreading import Part, are_apart, cut, hindrance

MOST = 256
"""Launches that a replay makes without looking whether there is room for them."""

LEARNS = 8
"""Replays at most that go launch by launch, so that the times of kernels are learnt."""


class Recorded(NamedTuple):
    """A launch of a graph."""

    command: Command
    access: Access
    cutting: tuple[str, AccessOf] | None = None
    """Its source, and what a part of it touches, where it might be spread."""

    @property
    def may_be_placed(self) -> bool:
        """Whether its device can be chosen before it is launched."""
        spans = *self.access.reads, *self.access.writes
        is_plain = type(self.command) in (KernelCommand, TransferCommand)
        return is_plain and not any(span.base == EVERYTHING for span in spans)

    def parts(self, devices: int) -> list[Part]:
        """The parts that it could be spread in; none if it has to stay whole."""
        if self.cutting is None or not isinstance(self.command, KernelCommand):
            return []
        source, access_of = self.cutting
        if hindrance(source, self.command):
            return []
        try:
            parts = cut(self.command, devices, access_of)
        except UsageError:  # an array that is gone
            return []
        return parts if len(parts) > 1 and are_apart(parts) else []


class Chosen(NamedTuple):
    """A launch, or a part of one, with its device."""

    turn: int
    command: Command
    access: Access
    device: int
    reason: str
    took_us: float


class Step(NamedTuple):
    """The same as a replay launches it."""

    chosen: Chosen
    command: Command
    """For its device."""
    access: Access
    """With the base numbers of its device."""
    copies: tuple[Parcel, ...]
    """They come before it."""


class Placed:
    """Launches of a graph, with their devices. `launch` makes all of them, and gives their numbers,
    or None where they have to go one by one; `bind` makes the command of one for its device."""

    def __init__(
        self,
        chosen: Sequence[Chosen],
        links: Links,
        bind: Callable[[Command, int], Command],
        real: Callable[[Access, int], Access],
        launch: Callable[[Placed], list[int] | None],
    ) -> None:
        self.first = chosen[0].turn
        self.places: Sequence[int] = range(self.first, chosen[-1].turn + 1)
        """Where its launches are in the graph, which may have them in another order."""
        self._bind, self._launch = bind, launch
        self.steps: list[Step] = []
        known = Coherence()  # what these launches have written so far
        needs: list[list[Span]] = [[] for _ in links]
        moved = set()
        for one in chosen:
            copies: list[Parcel] = []
            for span in needed(one.command, one.access):
                if span.base > 0:
                    needs[one.device] += known.unwritten(span)
                    copies += parcels(known, span, one.device, links, 0)
            for span in one.access.writes:
                if span.base > 0:
                    known.written(span, one.device)
            moved |= {parcel.base for parcel in copies}
            command, access = bind(one.command, one.device), real(one.access, one.device)
            self.steps.append(Step(one, command, access, tuple(copies)))
        self.needs = [merged(spans) for spans in needs]
        """What each device has to have at the start."""
        self.left = [piece for base in known.bases for piece in known.all_of(base)]
        """Who has at the end what was written."""
        away = {piece.base for piece in self.left if piece.devices > 1}
        self.away = away | moved
        """Bases that are on more than the first device meanwhile."""
        self.home = {piece.base for piece in self.left} - away
        """Bases whose written bytes only the first device has at the end."""
        self.parts = sum(many for many in Counter(one.turn for one in chosen).values() if many > 1)
        """How many of its launches are parts of one of the graph's."""

    def __len__(self) -> int:
        return len(self.places)

    def replay(self) -> list[int] | None:
        """Make all of them, if they may be made in one go."""
        return self._launch(self)

    def patch(self, turn: int, command: Command) -> bool:
        """Put another command, which touches the same, in the place of one; say if that can be."""
        if self.parts:
            return False
        at = turn - self.first
        chosen = self.steps[at].chosen._replace(command=command)
        bound = self._bind(command, chosen.device)
        self.steps[at] = self.steps[at]._replace(chosen=chosen, command=bound)
        return True

    def devices(self) -> list[tuple[int, int]]:
        """List its launches with their devices: turns, each as often as it has parts."""
        return [(step.chosen.turn, step.chosen.device) for step in self.steps]

    @property
    def copies(self) -> int:
        """Count the copies of each replay."""
        return sum(len(step.copies) for step in self.steps)


def runs(
    recorded: Sequence[Recorded], chosen: Iterable[Chosen], borders: Container[int]
) -> list[list[Chosen] | int]:
    """Cut launches with their devices into runs that a replay may make in one go, and those that go
    by themselves, as their turns."""
    found: list[list[Chosen] | int] = []
    before = -1
    for one in chosen:
        if not recorded[one.turn].may_be_placed:
            found.append(one.turn)
        elif one.turn == before and isinstance(found[-1], list):
            found[-1].append(one)
        elif (
            found and isinstance(found[-1], list) and one.turn not in borders
            and len(found[-1]) < MOST
        ):  # fmt: skip
            found[-1].append(one)
        else:
            found.append([one])
        before = one.turn
    return found
