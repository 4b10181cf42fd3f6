"""Steps: recognises that a program repeats the same launches, and times ways to run them.

Input: launches in program order, each as an object that is the same whenever the launch comes
again; the moments at which a step begins, and ways to run it. Output: the launches of a step, once
two steps in a row were the same; then, when another way holds. The model knows little of the host
and of links, so the clock decides: a step is timed at home, and again in each way that is tried.
The fastest one is kept. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

from ..records import NamedTuple
from .known_launches import Known

T = TypeVar("T")

MOST = 2048
"""Longest sequence in which a step is looked for."""

MARKS = 8
"""A launch may come up to this many times in a step that is found by it."""

Plan = dict[Known, int]
"""{launch: its device, `SPREAD` or `ON_EACH`}."""


class Steps(Generic[T]):
    """Looks for a step that is repeated."""

    def __init__(self) -> None:
        self._seen: list[T | None] = []
        self._places: dict[T, deque[int]] = {}

    def note(self, one: T | None) -> None:
        """Note the next launch. None stands for one that never comes again."""
        self._seen.append(one)

    def repeated(self, one: T) -> list[T] | None:
        """Return the step that has come twice, if the next launch, `one`, would begin another one
        like it. Call this before the launch is noted, and not for every launch."""
        seen, end = self._seen, len(self._seen)
        places = self._places.setdefault(one, deque(maxlen=MARKS))
        found = None
        for place in reversed(places):
            step = seen[place:end]
            if 2 * len(step) > end:
                break
            if seen[place - len(step) : place] == step and None not in step:
                found = [launch for launch in step if launch is not None]
                break
        places.append(end)
        return found


class Limits(NamedTuple):
    """Numbers that planning goes by."""

    whole_us: float = 25.0
    """What the host takes for a launch on one device."""
    part_us: float = 75.0
    """What it takes for a part of one, or for a copy between devices."""
    gains: float = 0.95
    """A way that takes more than this share of the time at home is not tried."""
    keeps: float = 0.98
    """A way that was tried is better if it takes at most this share of the best time so far."""
    near: float = 1.15
    """Once a way is better than home, others are tried that take up to so many times as long as the
    fastest one on the model."""
    moves: float = 8.0
    """But only if moving their data takes less than so many periods."""
    periods: int = 16
    """A step is timed over at least so many periods, from one moment at which nothing is under way
    to another one."""
    shortest_us: float = 50_000.0
    """Or over two periods that take so long."""
    longest: int = 512
    """Without such moments it is timed over so many."""
    settles: int = 8
    """Number of periods for which data may still be moved, before a step is timed again."""


LIMITS = Limits()


class Clock:
    """Times a step by the moments at which it begins."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._began_us: float | None = None
        self._periods = 0

    def passed(self, now_us: float, is_idle: bool) -> float | None:
        """Note that the step begins. Return how long a period takes, once that is known."""
        if self._began_us is None:
            if is_idle or self._periods >= self._limits.longest:
                self._began_us, self._periods = now_us, 0
            else:
                self._periods += 1
            return None
        self._periods += 1
        took_us, limits = now_us - self._began_us, self._limits
        is_long = self._periods >= 2 and took_us >= limits.shortest_us
        is_long = is_long or self._periods >= limits.periods
        if (is_idle and is_long) or self._periods >= limits.longest:
            return took_us / self._periods
        return None


class Step:
    """A step that is repeated, with a way to run it that may be faster than at home."""

    def __init__(
        self, launches: Sequence[Known], home: Plan, model_us: float, limits: Limits = LIMITS
    ) -> None:
        self.launches, self.home, self._limits = launches, home, limits
        self.model_us = model_us
        """How long a period takes at home on the model."""
        self.tried: list[Plan] = []
        self.way: Plan = {}
        """The way that is considered, or tried."""
        self.best: Plan = {}
        """The fastest way that was tried. Empty: none was faster than at home."""
        self._due = self._came = self._settles = self._slow = 0
        self._clock = Clock(self._limits)
        self._best_us: float | None = None
        """How long a period takes in the best way so far, or at home. None: not known yet."""
        self._home_us: float | None = None
        """How long one took when the step was timed at home for the first time of two. A stall in
        one of them would make any other way seem better."""
        self._is_tried = False

    def consider(self, way: Plan, due: int) -> None:
        """Try a way once the step has come `due` times, so that moving the data pays."""
        self.way, self._due, self._came = way, due, 0
        self._is_tried, self._clock, self._slow = False, Clock(self._limits), 0

    def passed(self, now_us: float, is_idle: bool) -> str:
        """Note that the step begins. Return what is decided now: to "try" the way, that it is
        "better" than all before, or "worse"."""
        self._came += 1
        if self._settles:
            self._settles -= 1
            return ""
        took_us = self._clock.passed(now_us, is_idle)
        if self._is_tried:
            return self._judged(took_us) if took_us is not None else ""
        if self._best_us is None and took_us is not None:
            if self._home_us is not None:
                self._best_us = min(self._home_us, took_us)
            self._home_us, self._clock = took_us, Clock(self._limits)
        if self._best_us is None or self._came < self._due:
            return ""
        self.tried.append(self.way)
        self._is_tried, self._clock, self._settles = True, Clock(self._limits), self._limits.settles
        return "try"

    def _judged(self, took_us: float) -> str:
        """Compare the way that is tried with the best one. It is worse if it was slow twice."""
        assert self._best_us is not None
        if took_us <= self._limits.keeps * self._best_us:
            self.best, self._best_us = self.way, took_us
            return "better"
        self._slow, self._clock = self._slow + 1, Clock(self._limits)
        return "worse" if self._slow == 2 else ""
