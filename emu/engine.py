"""The engine: actions in the order of their times, in integer nanoseconds.

In: actions with the time at which they are due, and a priority for those due at the same time. Out:
calls of these actions, and the time, `now`. A `Server` is whatever does one thing after another.

Invariant: actions are called in the order `(time, priority, sequence)`, where the sequence is that
in which they were handed in; nothing is ever due in the past. The engine knows no clock and no
chance, so what is handed in alone decides what comes out.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from acs_cl.errors import InternalError

END, ISSUE, HOST = 0, 1, 2
"""Priorities: at one time all that ends has ended before the device looks for what it can begin,
and then the host goes on."""


class Engine:
    """The heap of what is due.

    >>> engine = Engine()
    >>> engine.at(20, HOST, print, "third")
    >>> engine.at(10, HOST, print, "second")
    >>> engine.at(10, END, print, "first")
    >>> engine.run()
    first
    second
    third
    >>> engine.now
    20
    """

    def __init__(self) -> None:
        self.now = 0
        self._sequence = 0
        self._due: list[tuple[int, int, int, Callable[[Any], None], Any]] = []

    @property
    def steps(self) -> int:
        """How many actions were called."""
        return self._sequence - len(self._due)

    def at(self, time: int, priority: int, action: Callable[[Any], None], what: Any) -> None:
        """Call `action(what)` at `time`."""
        if time < self.now:
            raise InternalError(f"an action is due at {time} ns, and it is {self.now} ns already")
        self._sequence += 1
        heappush(self._due, (time, priority, self._sequence, action, what))

    def after(self, ns: int, priority: int, action: Callable[[Any], None], what: Any) -> None:
        """Call `action(what)` so long from now; at once where that is no time."""
        if ns:
            self.at(self.now + ns, priority, action, what)
        else:
            action(what)

    def is_due_now(self, priority: int) -> bool:
        """Whether anything of a lower priority number is still to be done at this time."""
        return bool(self._due) and self._due[0][0] == self.now and self._due[0][1] < priority

    def step(self) -> bool:
        """Do what is due next; False if nothing is."""
        if not self._due:
            return False
        self.now, _, _, action, what = heappop(self._due)
        action(what)
        return True

    def run(self) -> None:
        """Do all that is due, and what that makes due."""
        due = self._due
        while due:
            self.now, _, _, action, what = heappop(due)
            action(what)


class Server:
    """Does one thing after another: a lock, a dispatcher, the window unit."""

    __slots__ = ("_free_ns", "busy_ns", "engine")

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.busy_ns = 0
        self._free_ns = 0

    def serve(self, takes_ns: int) -> int:
        """The time at which something that comes now and takes so long is through."""
        now = self.engine.now
        self._free_ns = (self._free_ns if self._free_ns > now else now) + takes_ns
        self.busy_ns += takes_ns
        return self._free_ns
