"""The engine: actions in the order of their times, in integer nanoseconds.

Input: actions with their due times, and a priority for equal times. Output: calls of these actions,
and the time, `now`. A `Server` does one thing after another.

Invariant: actions are called in the order `(time, priority, sequence)`, where the sequence is that
of their arrival. Nothing is ever due in the past. The engine uses no clock and no chance, so the
actions alone decide the result.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from acs_cl.errors import InternalError

END, ISSUE, HOST = 0, 1, 2
"""Priorities at one time: first launches end, then the device begins new ones, then the host goes
on."""


class Engine:
    """The heap of due actions.

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
        """Return how many actions were called."""
        return self._sequence - len(self._due)

    def at(self, time: int, priority: int, action: Callable[[Any], None], what: Any) -> None:
        """Call `action(what)` at `time`."""
        if time < self.now:
            raise InternalError(f"an action is due at {time} ns, and it is {self.now} ns already")
        self._sequence += 1
        heappush(self._due, (time, priority, self._sequence, action, what))

    def after(self, ns: int, priority: int, action: Callable[[Any], None], what: Any) -> None:
        """Call `action(what)` after a time; immediately if it is zero."""
        if ns:
            self.at(self.now + ns, priority, action, what)
        else:
            action(what)

    def is_due_now(self, priority: int) -> bool:
        """Tell whether an action of a lower priority number is still due at this time."""
        return bool(self._due) and self._due[0][0] == self.now and self._due[0][1] < priority

    def step(self) -> bool:
        """Call the next action. False: there is none."""
        if not self._due:
            return False
        self.now, _, _, action, what = heappop(self._due)
        action(what)
        return True

    def run(self) -> None:
        """Call all due actions, and the ones that these add."""
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
        """Return when a request is done that comes now and takes `takes_ns`."""
        now = self.engine.now
        self._free_ns = (self._free_ns if self._free_ns > now else now) + takes_ns
        self.busy_ns += takes_ns
        return self._free_ns
