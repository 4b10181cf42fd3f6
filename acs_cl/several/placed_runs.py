"""Placed runs: consecutive launches of a graph with their devices, and the copies between them.

Input: launches in program order, each with its device. Output: `Placed`, which a replay follows
step by step. It is made before it is known which device will have which bytes. So bytes that the
launches touch before they write them are `needs`, and a replay first copies those that are missing.
Bytes that the launches have written are copied in each replay to devices that lack them. `left`
says where all written bytes are valid afterwards.

Invariant: a replay and the same launches made one by one leave the same coherence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence

from ..errors import UsageError
from ..launch.commands import KernelCommand, TransferCommand
from ..launch.observers import Cutting
from ..ranges import merged
from ..records import EVERYTHING, Access, Command, NamedTuple, Span
from .device_parts import DevicePart, parts_of
from .known_launches import Assign, Assigned
from .model import Coherence, Parcel, needed
from .policies import Links

MOST = 256
"""A replay makes up to this many launches without asking whether there is room."""

LEARNS = 8
"""A graph is replayed launch by launch at most this often, to learn the times of its kernels."""


class Recorded(NamedTuple):
    """A launch of a graph."""

    command: Command
    access: Access
    cutting: Cutting | None = None
    """How it can be cut, if it might be spread."""

    @property
    def may_be_placed(self) -> bool:
        """Whether its device can be chosen before it is launched."""
        spans = *self.access.reads, *self.access.writes
        is_plain = type(self.command) in (KernelCommand, TransferCommand)
        return is_plain and not any(span.base == EVERYTHING for span in spans)

    def parts(self, devices: int) -> list[DevicePart]:
        """Return the parts into which it can be spread; none if it has to stay whole."""
        if self.cutting is None or not isinstance(self.command, KernelCommand):
            return []
        try:
            return parts_of(self.command, self.access, devices, self.cutting)
        except UsageError:  # an array was freed
            return []


class Chosen(NamedTuple):
    """A launch, or a part of one, with its device."""

    turn: int
    command: Command
    access: Access
    device: int
    reason: str
    took_us: float


class RunStep(NamedTuple):
    """A chosen launch as a replay makes it."""

    chosen: Chosen
    assigned: Assigned
    """The launch on its device."""
    copies: tuple[Parcel, ...]
    """The copies before it."""


class Placed:
    """Holds a placed run. `launch` makes all its launches and returns their numbers; None: they
    have to be made one by one."""

    def __init__(
        self,
        chosen: Sequence[Chosen],
        links: Links,
        assign: Assign,
        launch: Callable[[Placed], list[int] | None],
    ) -> None:
        self.first = chosen[0].turn
        self.places: Sequence[int] = range(self.first, chosen[-1].turn + 1)
        """The places of its launches in the graph, which may keep them in another order."""
        self._assign, self._launch = assign, launch
        self.steps: list[RunStep] = []
        known = Coherence()  # the bytes that these launches have written so far
        needs: list[list[Span]] = [[] for _ in links]
        moved = set()
        for one in chosen:
            spans = [span for span in needed(one.command, one.access) if span.base > 0]
            for span in spans:
                needs[one.device] += known.unwritten(span)
            copies = known.bring(spans, one.device, links, 0)
            for span in one.access.writes:
                if span.base > 0:
                    known.written(span, one.device)
            moved |= {parcel.base for parcel in copies}
            assigned = assign(one.command, one.access, one.device)
            self.steps.append(RunStep(one, assigned, tuple(copies)))
        self.needs = [merged(spans) for spans in needs]
        """The spans that each device needs at the start."""
        self.left = [piece for base in known.bases for piece in known.all_of(base)]
        """Which devices have the written bytes at the end."""
        away = {piece.base for piece in self.left if piece.devices > 1}
        self.away = away | moved
        """The bases that are on more than the first device during the replay."""
        self.home = {piece.base for piece in self.left} - away
        """The bases whose written bytes only the first device has at the end."""
        self.parts = sum(many for many in Counter(one.turn for one in chosen).values() if many > 1)
        """The number of its launches that are parts of another launch."""

    def __len__(self) -> int:
        return len(self.places)

    def replay(self) -> list[int] | None:
        """Make all launches, if they may be made together."""
        return self._launch(self)

    def patch(self, turn: int, command: Command) -> bool:
        """Replace a command by one that touches the same bytes. Tell whether that is possible."""
        if self.parts:
            return False
        at = turn - self.first
        chosen = self.steps[at].chosen._replace(command=command)
        assigned = self._assign(command, chosen.access, chosen.device)
        self.steps[at] = self.steps[at]._replace(chosen=chosen, assigned=assigned)
        return True

    def devices(self) -> list[tuple[int, int]]:
        """Return (turn, device) of its launches. A spread launch is one item for each part."""
        return [(step.chosen.turn, step.chosen.device) for step in self.steps]

    @property
    def copies(self) -> int:
        """The number of copies in each replay."""
        return sum(len(step.copies) for step in self.steps)


def runs(
    recorded: Sequence[Recorded], chosen: Iterable[Chosen], borders: Container[int]
) -> list[list[Chosen] | int]:
    """Cut launches into runs that a replay makes together, and turns of the other launches."""
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
