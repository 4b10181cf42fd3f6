"""Known launches: what is the same each time that a launch comes again.

Input: a launch with its access. Output: what it needs, the command for each device, and its parts.
A program that repeats its steps makes the same launches again. Then only where their data is has to
be looked up. A launch is the same if kernel, sizes, values, memory and access are the same.

Invariant: nothing here depends on where data is. A base that is freed takes along the launches that
touch it, because its number and its memory may come again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from .. import core
from ..launch.commands import KernelCommand
from ..launch.observers import AccessOf, Cutting
from ..records import EVERYTHING, Access, Command, Span
from . import binding
from .memory import Part, SvmPart
from .model import key_of, needed
from .spreading import Part as PartOf
from .spreading import border_first, parts_of
from .times import Key

MOST = 4096
"""Largest number of launches that are kept."""

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


class Known:
    """A launch, and what was found out about it."""

    __slots__ = (
        "access", "bases", "command", "cuts", "key", "on", "parts", "pinned", "repeats", "spans",
        "spread", "wanted",
    )  # fmt: skip

    def __init__(self, command: Command, access: Access) -> None:
        self.command, self.access = command, access
        self.key = key_of(command)
        self.spans = needed(command, access)
        self.bases = bases_of(access)
        self.pinned = binding.pinned_because(command, access)
        """Why it has to run on the first device. Empty: it need not."""
        self.on: dict[int, Assigned] = {}
        self.parts: Sequence[PartOf] | None = None
        """The parts in which it can run on all devices; none if it cannot. None: not known."""
        self.repeats = False
        """Whether each device could make all of it, with the same result."""
        self.wanted: Wanted | None = None
        """Which bytes that it writes other devices wanted soon, when it was cut."""
        self.cuts = 0
        self.spread: list[Assigned] = []
        """Its parts on their devices, once it ran in parts."""

    def assigned(self, device: int, assign: Assign) -> Assigned:
        """Return it on a device."""
        if device not in self.on:
            self.on[device] = assign(self.command, self.access, device)
        return self.on[device]

    def in_parts(self, wanted: Wanted, access_of: AccessOf, assign: Assign) -> list[Assigned]:
        """Return its parts on their devices. What other devices want soon comes first."""
        if wanted != self.wanted and self.cuts < MOST_CUTS:
            self.wanted, self.cuts = wanted, self.cuts + 1
            borders, rests = list[Assigned](), list[Assigned]()
            for device, part in enumerate(self.parts or ()):
                spans = wanted[device]
                *some, rest = border_first(part, spans, access_of) if spans else [part]
                borders += [assign(one.command, one.access, device) for one in some]
                rests.append(assign(rest.command, rest.access, device))
            self.spread = [*borders, *rests]
        return self.spread

    def cut(self, many: int, cutting: Cutting, are_alike: bool) -> None:
        """Find out in which parts it can run on `many` devices, and whether each could make all of
        it. `are_alike`: these devices compute the same."""
        if self.parts is not None:
            return
        assert isinstance(self.command, KernelCommand)
        self.parts = parts_of(self.command, many, cutting)
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
        """{base: the keys of launches that touch it}."""

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
            if len(self._known) >= MOST:
                self._known.clear()
                self._touching.clear()
            found = self._known[key] = Known(command, access)
            for base in found.bases:
                self._touching.setdefault(base, set()).add(key)
        return found

    def forget(self, base: int) -> None:
        """Forget the launches that touch a base."""
        for key in self._touching.pop(base, ()):
            self._known.pop(key, None)


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
    memory = []
    for one in pointers[1::2]:
        if not isinstance(one, (SvmPart, Part)):
            return None
        memory.append((one.blocks.number, one.start, one.nbytes))
    if any(span.base <= EVERYTHING for spans in access for span in spans):
        return None
    return kernel, global_size, local_size, tuple(memory), pointers[::2], values, offset, access
