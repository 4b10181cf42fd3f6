"""Which kernels were together in a scheduler when the program ran before.

Input: the sets that were built, with their kernels by program and name. Output: when one of these
kernels is asked for in a later process, the others of its set. All of it is kept on disk.

A scheduler is compiled for its set of kernels. A kernel is asked for once it is hot, and a set
grows by what was asked for meanwhile. So each run would come by other sets on its way to the same
last one, and the driver would compile each of them. If the last set is made at once, the driver
has it already.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import pyopencl as cl

from ..host.digest import digest
from ..opencl_c import cache

_FORMAT = 1  # raise it when the record changes

MOST_SETS = 4
"""Sets that are kept for the kernels of one program with one group size."""


class Member(NamedTuple):
    """A kernel of a set. `program`: a digest of its source and options."""

    program: str
    kernel: str
    is_guest: bool


Members: TypeAlias = tuple[Member, ...]


def digest_of(program: tuple[str, tuple[str, ...]]) -> str:
    """Return what stands for a program, which is a source and options."""
    return digest(repr(program))


class KeptSets:
    """Holds the sets of a device and a tier, as far as their programs were asked for."""

    def __init__(self, device: cl.Device, tier: str) -> None:
        self._about = [device.name, device.driver_version, tier]
        self._known: dict[tuple[str, int], list[Members]] = {}

    def of(self, program: str, kernel: str, group: int) -> Members:
        """Return the set that a kernel was at home in, with groups of a size. Empty: none."""
        wanted = Member(program, kernel, False)
        return next((one for one in self._sets(program, group) if wanted in one), ())

    def keep(self, members: Iterable[Member], group: int) -> None:
        """Keep a set that was built. It replaces those that its kernels were at home in before."""
        new = tuple(sorted(members))
        at_home = {member for member in new if not member.is_guest}
        for program in {member.program for member in at_home}:
            before = self._sets(program, group)
            after = [new, *(one for one in before if at_home.isdisjoint(one))][:MOST_SETS]
            if before != after:
                self._known[program, group] = after
                cache.store(self._name(program, group), {"sets": after})

    def _sets(self, program: str, group: int) -> list[Members]:
        found = self._known.get((program, group))
        if found is None:
            record = cache.load(self._name(program, group))
            found = self._known[program, group] = [] if record is None else _from(record)
        return found

    def _name(self, program: str, group: int) -> str:
        return digest(json.dumps(["sets", _FORMAT, program, group, *self._about]))


def _from(record: cache.Record) -> list[Members]:
    try:
        return [_members(one) for one in record["sets"]]
    except (KeyError, TypeError, ValueError):
        return []


def _members(listed: Sequence[Sequence[object]]) -> Members:
    found = []
    for program, kernel, is_guest in listed:
        if not (isinstance(program, str) and isinstance(kernel, str)):
            raise TypeError
        found.append(Member(program, kernel, bool(is_guest)))
    return tuple(found)
