"""Which kernels are together in one scheduler.

In: kernels that were asked for, and those that are launched in turn. Out: sets of kernels, each to
be built into a scheduler. Nothing is built here.

A set has one group size and one list of build options, and a few kernels at most, since compilers
take long for large ones. A kernel is at home in one set. In others it may be a guest, so that an
epoch need not end where it comes: a kernel that may be cut anywhere is one wherever there is room.
What is full gets a second set beside it. The kernels of one program are launched in turn: those at
home in the full one are guests in the second, which then runs all of them. Where kernels that are
launched in turn come to live in several sets of a size nevertheless, `gather` makes one of all of
them, if they are not too many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from .built import Scheduler
from .task import Body, Unfit

if TYPE_CHECKING:
    from ..devices.driver import Origin
    from ..opencl_c.functions.translation import Function

MOST_BODIES = 16
"""Kernels in one scheduler: drivers take long for big switches (an H200's 3 s for 16, 27 s for
64)."""

MOST_LOOPED_BODIES = 6
"""The same where the compiler turns the work-items of a group into loops: with PoCL 3.0, barriers
of 16 kernels in one switch crash the compiler."""

MOST_SCHEDULERS = 8
"""Sets of kernels that a program has at most."""

MOST_ALIKE = 2
"""Those of one size that kernels are at home in: each kernel that comes has one built anew."""

ARENA_BYTES = 4096
"""Local memory that a scheduler has at least, so that the next kernel needs no new one."""

OFTEN, RARELY = 64, 1 << 20
"""Epochs that are cut before somebody looks which kernels are launched in turn; twice as many each
time, up to so many, when there were as many looks as there may be schedulers."""

Options: TypeAlias = tuple[str, ...]
Translated: TypeAlias = "tuple[Function, str]"
"""A kernel as a function, and its program's text."""


class KernelSet:
    """Kernels of one group size and one list of options. `most`: so many of them."""

    def __init__(self, group: int, options: Options, most: int) -> None:
        self.group = group
        self.options = options
        self.most = most
        self.functions: dict[Origin, Translated] = {}
        """In the order of asking."""
        self.guests: set[Origin] = set()
        """Those of them that are at home in other sets."""
        self.arena_bytes = ARENA_BYTES
        self.built: Scheduler | None = None
        self.stale = False
        self.is_gathered = False
        """Whether it is for kernels that are launched in turn; all are at home elsewhere."""
        self.is_slow = False
        """Whether it took so long to build that it takes no more."""
        self.enough_groups = 0
        """Groups that have to run at the same time, or it is not worth having."""

    @property
    def has_room(self) -> bool:
        """Whether it takes one more kernel."""
        is_open = not (self.is_gathered or self.is_slow)
        return is_open and len(self.functions) < self.most

    def put(self, origin: Origin, translated: Translated, is_guest: bool = False) -> None:
        """Take a kernel."""
        self.functions[origin] = translated
        self.arena_bytes = max(self.arena_bytes, translated[0].local_bytes)
        self.stale = True
        if is_guest:
            self.guests.add(origin)

    def make_room(self) -> None:
        """Give up a guest, if only that makes room."""
        if len(self.functions) == self.most and self.guests and not self.is_gathered:
            newest = next(one for one in reversed(self.functions) if one in self.guests)
            self.guests.discard(newest)
            del self.functions[newest]

    def runs(self, origin: Origin) -> bool:
        """Whether it is built with a kernel."""
        return self.built is not None and origin in self.built.bodies


class KernelSets:
    """All sets of a runtime. `is_looped`: the compiler turns the work-items of a group into
    loops."""

    def __init__(self, is_looped: bool) -> None:
        self._is_looped = is_looped
        self._all: list[KernelSet] = []

    def __iter__(self) -> Iterator[KernelSet]:
        return iter(tuple(self._all))  # which a thread adds to

    def bodies(
        self, origin: Origin, options: Options, group: int | None
    ) -> list[tuple[Scheduler, Body]]:
        """What runs a kernel, in groups of that size where one is given: each scheduler that is
        built with it, and its part there. Gathered ones come first, the newest of them before the
        others; then the one where it is at home, then those where it is a guest."""
        found = [
            one
            for one in self
            if one.options == options and group in (None, one.group) and one.runs(origin)
        ]
        found.reverse()
        found.sort(key=lambda one: (not one.is_gathered, origin in one.guests))
        return [(one.built, one.built.bodies[origin]) for one in found if one.built is not None]

    def enter(
        self, origin: Origin, translated: Translated, group: int, options: Options, tiled: bool
    ) -> None:
        """Give a kernel a home, in groups of a size. `tiled`: it may be cut anywhere, so that it
        may be a guest elsewhere. Raises `Unfit`."""
        others = [one for one in self._all if one.options == options and one.group != group]
        if not any(origin in one.functions for one in self._of(group, options)):
            home = self._with_room(group, options)
            if not home.functions:
                self._invite_siblings(home, translated[1])
            home.put(origin, translated)
            if not tiled:
                for other in others:
                    for known, pair in list(other.functions.items()):
                        is_new = known not in home.functions and pair[0].tiled
                        if is_new and len(home.functions) < home.most - 1:
                            home.put(known, pair, is_guest=True)
        if tiled:
            for other in others:
                if origin not in other.functions and other.has_room:
                    other.put(origin, translated, is_guest=True)

    def gather(self, launched: Sequence[tuple[Origin, int, Options]]) -> None:
        """Kernels that are launched in turn, with their group size and options, get a set of their
        own for each size where one could have them all, and none has."""
        alike: dict[tuple[int, Options], list[Origin]] = {}
        for origin, group, options in launched:
            alike.setdefault((group, options), []).append(origin)
        for (group, options), origins in alike.items():
            there = self._of(group, options)
            homes = [next((one for one in there if one.runs(at)), None) for at in origins]
            together = any(all(at in one.functions for at in origins) for one in there)
            if together or None in homes or len(origins) > self._most(group):
                continue
            if len(self._all) >= MOST_SCHEDULERS and not self._drop_one(there, set(origins)):
                continue
            made = KernelSet(group, options, self._most(group))
            made.is_gathered = True
            for origin, home in zip(origins, homes, strict=True):
                assert home is not None
                assert home.built is not None
                made.put(origin, home.functions[origin], is_guest=True)
                made.arena_bytes = max(made.arena_bytes, home.arena_bytes)
                made.enough_groups = max(made.enough_groups, home.built.limits.groups // 2 + 1)
            self._all.append(made)

    def drop(self, one: KernelSet) -> None:
        """Have a set no more."""
        self._all.remove(one)

    def _of(self, group: int, options: Options) -> list[KernelSet]:
        return [one for one in self._all if (one.group, one.options) == (group, options)]

    def _with_room(self, group: int, options: Options) -> KernelSet:
        """The newest set of a size, if there is room, or a new one. Raises `Unfit`."""
        there = [one for one in self._of(group, options) if not one.is_gathered]
        for one in reversed(there):
            one.make_room()
            if one.has_room:
                return one
        if len(there) >= MOST_ALIKE:
            many = sum(len(one.functions) for one in there)
            raise Unfit(f"its schedulers have {many} kernels already")
        if len(self._all) >= MOST_SCHEDULERS:
            raise Unfit(f"the program has {MOST_SCHEDULERS} schedulers already")
        self._all.append(KernelSet(group, options, self._most(group)))
        return self._all[-1]

    def _invite_siblings(self, home: KernelSet, text: str) -> None:
        """Kernels of one program that are at home in other sets of a size are guests in a new one,
        unless they took long to build."""
        for other in self._of(home.group, home.options):
            for origin, pair in other.functions.items():
                is_new = pair[1] == text and origin not in home.functions
                if is_new and not other.is_slow and len(home.functions) < home.most - 1:
                    home.put(origin, pair, is_guest=True)

    def _drop_one(self, among: Sequence[KernelSet], origins: set[Origin]) -> bool:
        """Make room for a set: the oldest one goes that was gathered, and has other kernels."""
        for one in among:
            if one.is_gathered and not origins >= one.guests:
                self.drop(one)
                return True
        return False

    def _most(self, group: int) -> int:
        return MOST_LOOPED_BODIES if self._is_looped and group > 1 else MOST_BODIES


class Step(Enum):
    """What to do about epochs that are cut."""

    NOTHING = "nothing"
    WATCH = "watch"
    """Take note of the kernels that are launched."""
    GATHER = "gather"
    """Have them in one scheduler."""


class CutCount:
    """Tells by the number of epochs that are cut when kernels should be gathered: where every
    second epoch is cut. Launches are watched for as long as that took to be seen."""

    def __init__(self) -> None:
        self._needed = OFTEN
        self._gathers = self._cuts = self._epochs = 0
        self._watches = False

    def look(self, cuts: int, epochs: int) -> Step:
        """So many epochs were sent so far, and so many of them were cut."""
        if cuts - self._cuts < self._needed:
            return Step.NOTHING
        is_often = 2 * (cuts - self._cuts) >= epochs - self._epochs
        self._cuts, self._epochs = cuts, epochs
        if self._watches:
            self._watches = False
            self._gathers += 1
            if self._gathers >= MOST_SCHEDULERS:
                self._needed = min(2 * self._needed, RARELY)
            return Step.GATHER
        self._watches = is_often
        return Step.WATCH if is_often else Step.NOTHING
