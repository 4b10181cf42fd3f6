"""Spawning, simulated: flat, plain dynamic parallelism, CCQS, and tasks of our scheduler.

Input: the items that each work-item of a launch finds, the cost of an item, a device. Output:
nanoseconds by each method. All of it is simulated, on the model's clock.

- `flat`: a work-item runs its items one after the other; a group takes as long as its longest.
- `dynamic`: each call of many items becomes a kernel. Kernels that groups launch begin one after
  the other, some time later.
- `ccqs`: as `dynamic`, but only if SPAWN's controller expects the kernel to end before the
  work-item would.
- `tasks`: this project's scheduler. The calls of a group become one task if another group is idle.
  Else all lanes of the group run them.
- `ideal`: all items on all lanes, evenly: a bound.

Invariants: every item is run once, and no method ends before `ideal`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush, heapreplace
from math import inf
from random import Random
from typing import NamedTuple

from acs_cl.errors import UsageError

MOST_ITEMS = 1 << 28
WAYS = ("flat", "dynamic", "ccqs", "tasks", "ideal")


class Parts(NamedTuple):
    """A device, in nanoseconds. `launch` is CUDA's device launch as measured on an H200."""

    places: int = 528
    """Groups that run at a time."""
    lanes: int = 256
    item: int = 200
    """Time of an item, in one lane."""
    begin: int = 1000
    """Time of a group before its first item."""
    launch: int = 20_800
    """Time from a launch by the device to the first group of the kernel."""
    gap: int = 400
    """Time from one such kernel to the next."""
    make: int = 2_000
    """Time to make a task, for the group that makes it."""
    threshold: int = 64
    """Least items of a call that becomes a kernel or a task."""


class Tile(NamedTuple):
    """A group of a child."""

    ready: int
    passes: int
    """Number of items of its longest lane."""


def skewed(parents: int, mean: int, skew: float, seed: int) -> list[int]:
    """Return the items that work-items find: few for most, very many for some."""
    if min(parents, mean) < 1 or parents * mean > MOST_ITEMS or not 1 < skew < inf:
        raise UsageError(
            f"expected parents, a mean and a finite skew above 1, {MOST_ITEMS:,} items at most"
        )
    draw = Random(seed).paretovariate
    return [int(draw(skew) * mean * (skew - 1) / skew) for _ in range(parents)]


def simulated(calls: Sequence[int], parts: Parts, way: str) -> int:
    """Return the time of a launch whose work-items find these numbers of items.

    >>> even, skewed = [8] * 1024, [8] * 1023 + [8192]
    >>> one = Parts(places=4)
    >>> simulated(even, one, "flat") == simulated(even, one, "tasks")
    True
    >>> simulated(skewed, one, "tasks") < simulated(skewed, one, "flat") / 4
    True
    """
    if way not in WAYS:
        raise UsageError(f"unknown way {way!r}; there are: {', '.join(WAYS)}")
    if min(parts) < 1:
        raise UsageError(f"expected numbers of at least 1, not {parts}")
    if way == "ideal":
        each = -(-sum(calls) // (parts.places * parts.lanes))
        return parts.begin + parts.item * each
    groups = [calls[at : at + parts.lanes] for at in range(0, len(calls), parts.lanes)]
    return _Run(parts, way, groups).end


class _Run:
    """Groups begin on the place that is free first: ready children, then the launch's own in
    order."""

    def __init__(self, parts: Parts, way: str, groups: Sequence[Sequence[int]]) -> None:
        self._parts, self._way = parts, way
        self._free = [0] * parts.places
        self._waiting: list[tuple[int, int, Tile]] = []
        self._made = self._next_launch = 0
        self._seen, self._passes = 0, 0
        """Groups of children that have begun, and the sum of their passes."""
        self._parents = deque(groups)
        self.end = 0
        while self._parents or self._waiting:
            now = self._free[0]
            if self._parents and not (self._waiting and self._waiting[0][0] <= now):
                ends = now + self._parent(self._parents.popleft(), now)
            else:
                _, _, tile = heappop(self._waiting)
                self._seen, self._passes = self._seen + 1, self._passes + tile.passes
                ends = max(now, tile.ready) + parts.begin + tile.passes * parts.item
            heapreplace(self._free, ends)
            self.end = max(self.end, ends)

    def _parent(self, calls: Sequence[int], now: int) -> int:
        """Give away items that a group does not run itself; return its time for the rest."""
        parts = self._parts
        large = [n for n in calls if n >= parts.threshold and self._way != "flat"]
        passes = max((n for n in calls if n < parts.threshold or self._way == "flat"), default=0)
        took = parts.begin + passes * parts.item
        if self._way == "tasks":
            return took + self._task(sum(large), now + took)
        longest = 0
        for n in large:
            if self._way == "dynamic" or self._is_worth(n, now):
                self._kernel(n, now + parts.begin)
            else:
                longest = max(longest, n)
        return max(took, parts.begin + longest * parts.item)

    def _is_worth(self, n: int, now: int) -> bool:
        """Compare as published: waiting items and the child, at the throughput of children's groups
        so far, against the items in the work-item. True while no child has begun."""
        parts = self._parts
        if not self._seen:
            return True
        group = parts.begin + parts.item * self._passes / self._seen
        ahead = len(self._waiting) + -(-n // parts.lanes)
        return parts.launch + group * ahead / parts.places <= n * parts.item

    def _kernel(self, n: int, now: int) -> None:
        parts = self._parts
        begins = max(now + parts.launch, self._next_launch)
        self._next_launch = begins + parts.gap
        for _ in range(0, n, parts.lanes):
            self._give(Tile(begins, 1))

    def _task(self, items: int, now: int) -> int:
        """Make tiles of items if a place will be free by then; return the group's time for it."""
        parts = self._parts
        if not items:
            return 0
        free = sum(one <= now for one in self._free) - len(self._parents) - len(self._waiting)
        passes = -(-items // parts.lanes)
        if free <= 0:
            return passes * parts.item
        each = -(-passes // (8 * free))
        for first in range(0, passes, each):
            self._give(Tile(now + parts.make, min(each, passes - first)))
        return parts.make

    def _give(self, tile: Tile) -> None:
        self._made += 1
        heappush(self._waiting, (tile.ready, self._made, tile))
