"""Kernel sets: which kernels are together in one scheduler.

Input: kernels that were asked for, and kernels that are launched in turn. Output: sets of kernels,
each to be built into a scheduler. Nothing is built here.

A set has one group size and one list of build options. It has few kernels, because compilers take
long for large ones. A kernel is at home in one set. It may be a guest in other sets, so that an
epoch need not end at its launch. A kernel that may be cut anywhere is a guest wherever there is
room.

When a set is full, a second one is made. Kernels of one program are launched in turn, so those of
the full set are guests in the second one, which then runs all of them. If kernels that are launched
in turn still live in several sets of one size, `gather` makes one set of them, if they are not too
many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from .built import Scheduler
from .task import Body, Unfit

if TYPE_CHECKING:
    from ..devices.driver import Origin
    from ..opencl_c.functions.translated import Function

MOST_BODIES = 16
"""Kernels in one scheduler. Drivers take long for large switches: an H200's takes 3 s for 16
kernels, 27 s for 64."""

MOST_LOOPED_BODIES = 6
"""`MOST_BODIES` where the compiler turns the work-items of a group into loops. With PoCL 3.0,
barriers of 16 kernels in one switch crash the compiler."""

MOST_SCHEDULERS = 8
"""Sets of kernels that a program has at most."""

MOST_ALIKE = 2
"""Sets of one size that kernels are at home in. Each new kernel makes one of them build again."""

ARENA_BYTES = 4096
"""Local memory that a scheduler has at least, so that the next kernel needs no new build."""

OFTEN, RARELY = 64, 1 << 20
"""Epochs that are cut before the launched kernels are watched. The number doubles each time, up to
`RARELY`, after as many gatherings as there may be schedulers."""

Options: TypeAlias = tuple[str, ...]
Translated: TypeAlias = "tuple[Function, str]"
"""A kernel as a function, and the text of its program."""


class KernelSet:
    """Holds kernels of one group size and one list of options, at most `most` of them."""

    def __init__(self, group: int, options: Options, most: int) -> None:
        self.group = group
        self.options = options
        self.most = most
        self.functions: dict[Origin, Translated] = {}
        """In the order of asking."""
        self.guests: set[Origin] = set()
        """Kernels of the set that are at home in other sets."""
        self.arena_bytes = ARENA_BYTES
        self.built: Scheduler | None = None
        self.stale = False
        self.is_gathered = False
        """Whether it is for kernels that are launched in turn, and at home in other sets."""
        self.is_slow = False
        """Whether it takes no more kernels, because its build took too long."""
        self.enough_groups = 0
        """Groups that have to run at the same time. With fewer, the set is not worth having."""

    @property
    def has_room(self) -> bool:
        """Tell whether it takes one more kernel."""
        is_open = not (self.is_gathered or self.is_slow)
        return is_open and len(self.functions) < self.most

    def put(self, origin: Origin, translated: Translated, is_guest: bool = False) -> None:
        """Add a kernel."""
        self.functions[origin] = translated
        self.arena_bytes = max(self.arena_bytes, translated[0].local_bytes)
        self.stale = True
        if is_guest:
            self.guests.add(origin)

    def make_room(self) -> None:
        """Drop a guest if the set is full."""
        if len(self.functions) == self.most and self.guests and not self.is_gathered:
            newest = next(one for one in reversed(self.functions) if one in self.guests)
            self.guests.discard(newest)
            del self.functions[newest]

    def runs(self, origin: Origin) -> bool:
        """Tell whether it is built with a kernel."""
        return self.built is not None and origin in self.built.bodies


class KernelSets:
    """Holds all sets of a runtime. `is_looped`: compilers turn work-items of a group into loops."""

    def __init__(self, is_looped: bool) -> None:
        self._is_looped = is_looped
        self._all: list[KernelSet] = []

    def __iter__(self) -> Iterator[KernelSet]:
        return iter(tuple(self._all))  # a copy, because a thread adds to the list

    def bodies(
        self, origin: Origin, options: Options, group: int | None
    ) -> list[tuple[Scheduler, Body]]:
        """Return each scheduler that is built with a kernel, and the body there. `group`: only
        groups of that size. Gathered sets come first, the newest before the others. Then comes its
        home, then the sets where it is a guest."""
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
        """Give a kernel a home, in groups of a size. `tiled`: it may be cut anywhere, so it may
        also be a guest elsewhere. Raises `Unfit`."""
        others = [one for one in self._all if one.options == options and one.group != group]
        if not any(origin in one.functions for one in self._of(group, options)):
            home = self._with_room(group, options)
            if not home.functions:
                self._invite_siblings(home, translated[1])
            home.put(origin, translated)
            if not tiled:
                for known, pair in [pair for one in others for pair in one.functions.items()]:
                    is_new = known not in home.functions and pair[0].tiled
                    if is_new and len(home.functions) < home.most - 1:
                        home.put(known, pair, is_guest=True)
        if tiled:
            for other in others:
                if origin not in other.functions and other.has_room:
                    other.put(origin, translated, is_guest=True)

    def are_home(self, origin: Origin, group: int, options: Options) -> bool:
        """Tell whether a kernel has a home, in groups of a size."""
        return self._home(origin, group, options) is not None

    def _home(self, origin: Origin, group: int, options: Options) -> KernelSet | None:
        there = (one for one in self._of(group, options) if origin not in one.guests)
        return next((one for one in there if origin in one.functions), None)

    def bring(
        self,
        origin: Origin,
        other: Origin,
        translated: Translated,
        group: int,
        options: Options,
        is_guest: bool,
    ) -> None:
        """Put another kernel into the home of one, if there is room. One that has a home already
        is a guest there."""
        home = self._home(origin, group, options)
        if home is not None and other not in home.functions and home.has_room:
            home.put(other, translated, is_guest or self.are_home(other, group, options))

    def gather(self, launched: Sequence[tuple[Origin, int, Options]]) -> None:
        """Make a set for kernels that are launched in turn, for each size where one set could have
        all and none has. `launched`: each kernel with its group size and options."""
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
        """Remove a set."""
        self._all.remove(one)

    def _of(self, group: int, options: Options) -> list[KernelSet]:
        return [one for one in self._all if (one.group, one.options) == (group, options)]

    def _with_room(self, group: int, options: Options) -> KernelSet:
        """Return the newest set of a size if it has room, or a new one. Raises `Unfit`."""
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
        """Make kernels of one program guests in a new set, if they are at home in others of that
        size. Kernels that took long to build are left out."""
        for other in self._of(home.group, home.options):
            for origin, pair in other.functions.items():
                is_new = pair[1] == text and origin not in home.functions
                if is_new and not other.is_slow and len(home.functions) < home.most - 1:
                    home.put(origin, pair, is_guest=True)

    def _drop_one(self, among: Sequence[KernelSet], origins: set[Origin]) -> bool:
        """Remove the oldest gathered set that has other kernels, to make room for a new one."""
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
    """Note which kernels are launched."""
    GATHER = "gather"
    """Bring them into one scheduler."""


class CutCount:
    """Decides when kernels should be gathered: when every second epoch is cut. Launches are watched
    for as many cut epochs as it took to see that."""

    def __init__(self) -> None:
        self._needed = OFTEN
        self._gathers = self._cuts = self._epochs = 0
        self._watches = False

    def step_after(self, cuts: int, epochs: int) -> Step:
        """Say what to do after `epochs` were sent, `cuts` of them cut."""
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
