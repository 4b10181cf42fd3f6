"""Known launches: what is the same each time that a launch comes again.

Input: a launch with its access. Output: what it needs, the command for each device, and its parts,
which are made together.
A program that repeats its steps makes the same launches again. Then only where their data is has to
be looked up. A launch is the same if kernel, sizes, values, memory and access are the same.

Invariant: nothing here depends on where data is. A base that is freed takes along the launches that
touch it, because its number and its memory may come again. Kernels of programs that are gone, whose
code may be large, are dropped when other launches come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .. import core
from ..launch.commands import KernelCommand
from ..launch.decision import key_of
from ..launch.observers import AccessOf, Cutting
from ..records import EVERYTHING, Access, Command, Key, NamedTuple, Span
from . import device_commands
from .device_parts import DevicePart, border_first, parts_of
from .kernel_times import RARELY, Times
from .memory import AnyPart
from .model import needed

LEAST, MOST = 64, 4096
"""So many launches are kept without a look at which of their kernels are gone, and at most."""

MOST_CUTS = 16
"""How often a launch is cut anew because other bytes of it are wanted."""

Wanted = tuple[tuple[Span, ...], ...]
"""By device: which bytes that a launch writes there other devices want soon."""


class Assigned(NamedTuple):
    """A launch with its device, whose data may not be there yet."""

    device: int
    access: Access
    key: Key | None
    """The key of its times."""
    spans: Sequence[Span]
    """The spans that must be valid before."""
    bases: frozenset[int]
    """The numbers of the memory that it touches."""
    command: Command
    """The command for its device."""
    real: Access
    """The access with the base numbers of its device."""
    prepared: core.native.Prepared | None
    """The launch for the core, if that can make it."""


Assign = Callable[[Command, Access, int], Assigned]
"""(command, access, device) -> the launch on that device."""

EACH_TEXT = "each device makes it, since all need what it writes"


class Group:
    """Launches that are made together, none of which touches what another one writes: the parts of
    a launch, all of it on each device (`on_each`), or one alone. `reasons`: why each of them is on
    its device."""

    __slots__ = (
        "away", "core", "devices", "is_due", "is_home", "is_on_each", "launches", "reasons",
        "rests", "took_us",
    )  # fmt: skip

    def __init__(
        self, launches: Sequence[Assigned], reasons: Sequence[str], on_each: bool = False
    ) -> None:
        self.launches, self.reasons, self.is_on_each = launches, reasons, on_each
        self.devices = [one.device for one in launches]
        many = len(launches)
        self.is_home = self.devices == [0]
        """Whether it is one launch, on the first device."""
        self.away = frozenset(
            span.base for one in launches if one.device for span in one.access.writes
        )
        """The bases of which other devices than the first one write bytes."""
        prepared = [
            (one.prepared, one.device, one.spans, one.access.writes)
            for one in launches if one.prepared is not None
        ]  # fmt: skip
        self.core: core.native.Together | None = None
        """The launches for the core, if it can make all of them."""
        if len(prepared) == many:
            self.core = core.native.Together(tuple(prepared))
        self.took_us: list[float] = []
        """How long each of them takes; 0: not known."""
        self.rests = 0
        """How often they are made before a time of them is wanted again."""
        self.is_due = False
        """Whether their times are wanted because all were made so often."""

    def ask(self, times: Times) -> None:
        """Have the next times of them measured that are due."""
        if self.is_due:
            self.is_due = False
            for one in self.launches:
                if one.key is not None:
                    times.due(one.key, one.device)

    def asked(self, times: Times) -> None:
        """Look up how long they take, and when that is wanted again."""
        self.took_us = [times.of(one.key)[one.device] or 0.0 for one in self.launches]
        is_wanted = any(times.is_due(one.key, one.device) for one in self.launches)
        self.rests = 0 if is_wanted else RARELY - 1
        self.is_due = not is_wanted


def part_text(turn: int, many: int) -> str:
    """Say why a part of a spread launch is on its device."""
    return f"part {turn + 1} of {many} of it"


class Known:
    """A launch, and what was found out about it."""

    __slots__ = (
        "access", "alone", "bases", "command", "cuts", "key", "on", "on_each", "parts", "pinned",
        "repeats", "spans", "spread", "wanted",
    )  # fmt: skip

    def __init__(self, command: Command, access: Access) -> None:
        self.command, self.access = command, access
        self.key = key_of(command)
        self.spans = needed(command, access)
        self.bases = bases_of(access)
        self.pinned = device_commands.pinned_because(command, access)
        """Why it has to run on the first device. Empty: it need not."""
        self.on: dict[int, Assigned] = {}
        self.parts: Sequence[DevicePart] | None = None
        """The parts in which it can run on all devices; none if it cannot. None: not known."""
        self.repeats = False
        """Whether each device could make all of it, with the same result."""
        self.wanted: Wanted | None = None
        """Which bytes that it writes other devices wanted soon, when it was cut."""
        self.cuts = 0
        self.alone: dict[int, Group] = {}
        """The launch alone, by device."""
        self.spread: Group | None = None
        """Its parts on their devices, once it ran in parts."""
        self.on_each: Group | None = None
        """The launch on each device, once all made it."""

    def assigned(self, device: int, assign: Assign) -> Assigned:
        """Return it on a device."""
        if device not in self.on:
            self.on[device] = assign(self.command, self.access, device)
        return self.on[device]

    def in_parts(self, wanted: Wanted, access_of: AccessOf, assign: Assign) -> Group:
        """Return its parts on their devices. What other devices want soon comes first."""
        if self.spread is None or (wanted != self.wanted and self.cuts < MOST_CUTS):
            self.wanted, self.cuts = wanted, self.cuts + 1
            borders, rests = list[Assigned](), list[Assigned]()
            for device, part in enumerate(self.parts or ()):
                spans = wanted[device]
                *some, rest = border_first(part, spans, access_of) if spans else [part]
                borders += [assign(one.command, one.access, device) for one in some]
                rests.append(assign(rest.command, rest.access, device))
            parts = [*borders, *rests]
            texts = [part_text(turn, len(parts)) for turn in range(len(parts))]
            self.spread = Group(parts, texts)
        return self.spread

    def by_each(self, devices: int, assign: Assign) -> Group:
        """Return it on each device."""
        if self.on_each is None:
            launches = [self.assigned(one, assign) for one in range(devices)]
            self.on_each = Group(launches, [EACH_TEXT] * devices, on_each=True)
        return self.on_each

    def whole(self, device: int, reason: str, assign: Assign) -> Group:
        """Return it on one device."""
        found = self.alone.get(device)
        if found is None:
            found = self.alone[device] = Group([self.assigned(device, assign)], [reason])
        elif found.reasons[0] != reason:
            found.reasons = [reason]
        return found

    def cut(self, many: int, cutting: Cutting, are_alike: bool) -> None:
        """Find out in which parts it can run on `many` devices, and whether each could make all of
        it. `are_alike`: these devices compute the same."""
        if self.parts is not None:
            return
        assert isinstance(self.command, KernelCommand)
        self.parts = parts_of(self.command, self.access, many, cutting)
        spans = *self.access.reads, *self.access.writes
        self.repeats = (
            are_alike and not self.pinned and cutting.repeats()
            and all(span.base > EVERYTHING for span in spans)
            and all(span.rows == 1 for span in self.access.writes)
        )  # fmt: skip


class KnownLaunches:
    """Keeps launches of kernels that may come again."""

    def __init__(self) -> None:
        self._known: dict[object, Known] = {}
        self._touching: dict[int, set[object]] = {}
        """{base: the keys of launches that touch it}. They are the keys of `_known`."""
        self._most = LEAST

    def find(self, command: Command, access: Access) -> Known:
        """Return what is known of a launch, which may be nothing yet."""
        key = _key(command, access)
        try:
            found = self._known.get(key)
        except TypeError:  # an argument of another kind, which has no hash
            key = found = None
        if key is None:
            return Known(command, access)
        if found is None:
            if any(span.base <= EVERYTHING for spans in access for span in spans):
                return Known(command, access)
            if len(self._known) >= self._most:
                self._make_room()
            found = self._known[key] = Known(command, access)
            for base in found.bases:
                self._touching.setdefault(base, set()).add(key)
        return found

    def forget(self, base: int) -> None:
        """Forget the launches that touch a base."""
        for key in list(self._touching.get(base, ())):
            self._drop(key)

    def _make_room(self) -> None:
        """Forget the launches of kernels that are gone; all of them, if too many are left."""
        for key, known in list(self._known.items()):
            assert isinstance(known.command, KernelCommand)
            owner = known.command.kernel.owner
            if owner is not None and owner() is None:
                self._drop(key)
        if len(self._known) >= MOST:
            self._known.clear()
            self._touching.clear()
        self._most = min(MOST, max(LEAST, 2 * len(self._known)))

    def _drop(self, key: object) -> None:
        for base in self._known.pop(key).bases:
            keys = self._touching[base]
            keys.discard(key)
            if not keys:
                del self._touching[base]


def bases_of(access: Access) -> frozenset[int]:
    """Return the numbers of the memory that a launch touches."""
    return frozenset(span.base for span in (*access.reads, *access.writes))


def _key(command: Command, access: Access) -> object:
    """Return what makes a launch the same as another one; None: it is not kept."""
    if not isinstance(command, KernelCommand):
        return None
    _, kernel, global_size, local_size, pointers, values, offset, cut, spawn, lane = command
    if cut is not None or spawn is not None or lane:
        return None
    memory = [
        (one.blocks.number, one.start, one.nbytes)
        for one in pointers[1::2]
        if isinstance(one, AnyPart)
    ]
    if 2 * len(memory) != len(pointers):
        return None
    return kernel, global_size, local_size, tuple(memory), pointers[::2], values, offset, access
