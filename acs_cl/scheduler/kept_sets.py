"""Which kernels were together in a scheduler when the program ran before.

Input: the sets that were built, with their kernels by program and name, and the kernels that had
been launched by then. Output: the set of a kernel that is asked for in a later process, if that
launches the same kernels. All of it is kept on disk.

A scheduler is compiled for its set of kernels. A kernel is asked for once it is hot, and a set
grows by what was asked for meanwhile. So each run would come by other sets on its way to the same
last one, and the driver would compile each of them. If the last set is made at once, the driver
has it already.

Programs may share a source and use other parts of it. A set of the wrong program would fill the
scheduler with kernels that never come. So it counts only if it knows all that were launched, and if
half of it was.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from time import perf_counter, sleep
from typing import TYPE_CHECKING, TypeAlias

import pyopencl as cl

from ..host.digest import digest
from ..opencl_c import cache
from ..records import NamedTuple

if TYPE_CHECKING:
    from ..devices.driver import Origin
    from .kernel_sets import KernelSet

_FORMAT = 2  # raise it when the record changes

MOST_SETS = 8
"""Sets that are kept for the kernels of one program with one group size."""


class Name(NamedTuple):
    """A kernel. `program`: a digest of its source and options."""

    program: str
    kernel: str


class KeptSet(NamedTuple):
    """A set that was built."""

    home: tuple[Name, ...]
    """Kernels at home in it."""
    guests: tuple[Name, ...]
    launched: tuple[Name, ...]
    """What had been launched when it was built, of these programs."""

    def share_of(self, launched: Collection[Name]) -> float:
        """Return which share of its kernels was launched. 0: others were, too."""
        members = {*self.home, *self.guests}
        programs = {name.program for name in members}
        known = {name for name in launched if name.program in programs}
        return len(members & known) / len(members) if known <= set(self.launched) else 0.0

    def holds(self, other: KeptSet) -> bool:
        """Tell whether it has all that another one has."""
        mine, its = {*self.home, *self.guests}, {*other.home, *other.guests}
        return mine >= its and set(self.launched) >= set(other.launched)


Program: TypeAlias = tuple[str, tuple[str, ...]]
"""A source and options."""

NONE = KeptSet((), (), ())
LEAST_SHARE = 0.5

MOST_SEEN = 1024
"""Kernels that are known to be launched."""

SETTLED_S, SETTLES_S = 0.01, 0.1
"""A program that launched no new kernel for so long has launched all of a step. This is waited for
at most that long, where an earlier run has left sets."""


def digest_of(program: Program) -> str:
    """Return what stands for a program."""
    return digest(repr(program))


def made_set(home: Iterable[Name], guests: Iterable[Name], launched: Iterable[Name]) -> KeptSet:
    """Make what is to be kept of a set."""
    home, guests = tuple(sorted(home)), tuple(sorted(guests))
    programs = {name.program for name in (*home, *guests)}
    return KeptSet(
        home, guests, tuple(sorted(name for name in launched if name.program in programs))
    )


class KeptSets:
    """Holds the sets of a device and a tier, as far as their programs were asked for."""

    def __init__(self, device: cl.Device, tier: str) -> None:
        self._about = [device.name, device.driver_version, tier]
        self._known: dict[tuple[str, int], list[KeptSet]] = {}

    def has_any(self, name: Name, group: int) -> bool:
        """Tell whether a kernel was at home in a set."""
        return any(name in one.home for one in self._sets(name.program, group))

    def of(self, name: Name, group: int, launched: Collection[Name]) -> KeptSet:
        """Return the set that a kernel was at home in, if it suits what was launched. If there are
        several, the one of which most was."""
        shares = [
            (one.share_of(launched), one)
            for one in self._sets(name.program, group)
            if name in one.home
        ]
        share, best = max(shares, key=lambda pair: pair[0], default=(0.0, NONE))
        return best if share >= LEAST_SHARE else NONE

    def keep(self, new: KeptSet, group: int) -> None:
        """Keep a set that was built, instead of those of which it has all."""
        for program in {name.program for name in new.home}:
            before = self._sets(program, group)
            if new not in before:
                after = [new, *(one for one in before if not new.holds(one))][:MOST_SETS]
                self._known[program, group] = after
                cache.store(self._name(program, group), {"sets": after})

    def _sets(self, program: str, group: int) -> list[KeptSet]:
        found = self._known.get((program, group))
        if found is None:
            record = cache.load(self._name(program, group)) or {}
            found = self._known[program, group] = _from(record.get("sets"))
        return found

    def _name(self, program: str, group: int) -> str:
        return digest(json.dumps(["sets", _FORMAT, program, group, *self._about]))


class Launched:
    """Knows the kernels that a program launches, and which of them were together before."""

    def __init__(self, device: cl.Device, tier: str) -> None:
        self._kept = KeptSets(device, tier)
        self._seen: dict[Origin, None] = {}
        self._digests: dict[Program, str] = {}

    def see(self, origin: Origin) -> None:
        """Note that a kernel was launched."""
        if len(self._seen) < MOST_SEEN:  # a program may make new kernels all the time
            self._seen[origin] = None

    def with_it(self, origin: Origin, group: int) -> list[tuple[Origin, bool]]:
        """Return the kernels that were in a set with one, and whether as guests. Only those whose
        programs were launched. May wait for a moment."""
        name = self._name_of(origin)
        if not self._kept.has_any(name, group):
            return []
        self._let_settle()
        self.see(origin)
        launched = {self._name_of(one): one for one in self._seen.copy()}
        programs = {one.program: at[:2] for one, at in launched.items()}
        kept = self._kept.of(name, group, launched)
        return [
            ((*programs[one.program], one.kernel), one in kept.guests)
            for one in (*kept.home, *kept.guests)
            if one.program in programs
        ]

    def about(self, there: KernelSet) -> KeptSet:
        """Return what is to be kept of a set."""
        home = [one for one in there.functions if one not in there.guests]
        names = (map(self._name_of, origins) for origins in (home, there.guests, self._seen.copy()))
        return made_set(*names)

    def keep(self, there: KernelSet) -> None:
        """Keep a set that was built."""
        self._kept.keep(self.about(there), there.group)

    def _let_settle(self) -> None:
        """Wait until no kernels are launched that are new, but not for long. They tell which set is
        the right one."""
        until, before = perf_counter() + SETTLES_S, -1
        while before != len(self._seen) and perf_counter() < until:
            before = len(self._seen)
            sleep(SETTLED_S)

    def _name_of(self, origin: Origin) -> Name:
        source, options, kernel = origin
        program = source, options
        found = self._digests.get(program)
        if found is None:
            found = self._digests[program] = digest_of(program)
        return Name(found, kernel)


def read_set(parts: object) -> KeptSet:
    """Return a set from what JSON has of it. Raises `TypeError` or `ValueError`."""
    home, guests, launched = map(_names, _items(parts))
    if not home:
        raise ValueError
    return KeptSet(home, guests, launched)


def _from(sets: object) -> list[KeptSet]:
    try:
        return [read_set(one) for one in _items(sets)]
    except (TypeError, ValueError):
        return []


def _names(listed: object) -> tuple[Name, ...]:
    return tuple(Name(*map(_text, _items(one))) for one in _items(listed))


def _text(what: object) -> str:
    if not isinstance(what, str):
        raise TypeError
    return what


def _items(what: object) -> list[object]:
    if not isinstance(what, list | tuple):
        raise TypeError
    return list(what)
