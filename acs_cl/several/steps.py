"""Steps: recognises that a program repeats the same launches.

Input: launches in program order, each as an object that is the same whenever the launch comes
again. Output: the launches of a step, once two steps in a row were the same. Pure.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")

MOST = 2048
"""Longest sequence in which a step is looked for."""

MARKS = 8
"""A launch may come up to this many times in a step that is found by it."""


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
