"""Recordings: what a graph holds of the program's calls.

Input: calls as they are captured, and the launches that each makes. Output: consecutive launches,
by calls, by loops, and as pairs of command and access. Pure, except for the memory that calls hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy

from ..memory.array import Array
from ..records import Access, Pair
from .calls import Call, Recorded, union
from .loops import Loop


class Recording:
    """The calls of a graph, their launches, and the loops around them."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.places: list[range] = []
        """The places of the launches of each call."""
        self.launches: list[Recorded] = []
        self.users: dict[int, set[int]] = {}
        """{base: the calls that use it}."""
        self.loops: list[Loop] = []
        """Outermost loops in program order; while recording, the loops in the innermost open
        one."""
        self._unions: dict[range, Access] = {}
        """What consecutive calls touch, as asked. A loop asks at each replay."""
        self.named: Mapping[str, Array] = {}
        """The named arrays of a graph that was loaded."""

    def add(self, call: Call, launches: Sequence[Recorded]) -> None:
        """Add a call behind all others."""
        self._unions.clear()
        for array in call.arrays():
            if array.base is not None:
                self.users.setdefault(array.base.number, set()).add(len(self.calls))
        self.calls.append(call)
        self.places.append(range(len(self.launches), len(self.launches) + len(launches)))
        self.launches += launches

    def take_back(self, first: int) -> None:
        """Drop this call and all behind it."""
        self._unions.clear()
        if first < len(self.places):
            del self.launches[self.places[first].start :]
        del self.calls[first:], self.places[first:]
        for base, users in list(self.users.items()):
            self.users[base] = {number for number in users if number < first}

    def changed(self, calls: Mapping[int, Call], made: Mapping[int, list[Recorded]]) -> Recording:
        """Return a recording with other calls, and the launches that these make."""
        new = Recording()
        new.users, new.loops, new.named = self.users, self.loops, self.named
        new.calls, new.places, new.launches = [*self.calls], self.places, [*self.launches]
        for number, call in calls.items():
            new.calls[number] = call
        if all(len(several) == len(self.places[number]) for number, several in made.items()):
            for number, several in made.items():
                places = self.places[number]
                new.launches[places.start : places.stop] = several
            return new
        new.places, new.launches = [], []
        for number in range(len(self.places)):
            several = made[number] if number in made else self.of_call(number)
            new.places.append(range(len(new.launches), len(new.launches) + len(several)))
            new.launches += several
        return new

    def moved(self, base: int, to: int, loops: list[Loop], named: Mapping[str, Array]) -> Recording:
        """Return a recording whose calls use another base, with other loops and named arrays."""
        new = copy(self)
        new.loops, new.named, new.users = loops, named, {**self.users}
        used = new.users.pop(base)  # pop first: both may be one base
        new.users[to] = used | new.users.get(to, set())
        return new

    # ---- parts of it ---------------------------------------------------------------------------

    def of_call(self, number: int) -> list[Recorded]:
        """Return the launches of a call."""
        places = self.places[number]
        return self.launches[places.start : places.stop]

    def launches_of(self, calls: range) -> range:
        """Return the places of the launches of consecutive calls."""
        if not calls:
            return range(0)
        return range(self.places[calls.start].start, self.places[calls.stop - 1].stop)

    def pairs(self, places: range | None = None) -> list[Pair]:
        """Return consecutive launches, or all, in the form for cutters, orders and profiles."""
        launches = self.launches if places is None else self.launches[places.start : places.stop]
        return [(one.command, one.access) for one in launches]

    def accesses(self, calls: range) -> list[Access]:
        """Return the accesses of the launches of consecutive calls."""
        return [access for _, access in self.pairs(self.launches_of(calls))]

    @property
    def all_calls(self) -> range:
        """Return the numbers of all calls."""
        return range(len(self.calls))

    def union_of(self, calls: range) -> Access:
        """Return the union of these accesses."""
        found = self._unions.get(calls)
        if found is None:
            found = self._unions[calls] = union(self.accesses(calls))
        return found

    def borders(self) -> set[int]:
        """Return the launches at which a loop begins or has ended."""
        found = set()
        for outer in self.loops:
            for loop in (outer, *outer.all_inner):
                body = self.launches_of(loop.calls)
                found |= {body.start, body.stop}
        return found

    def arrays(self) -> list[Array]:
        """Return the arrays among the arguments of all calls."""
        return [array for call in self.calls for array in call.arrays()]
