"""Sequences: orders of launches in which each one comes after its upstream.

Input: the upstream of each launch, and lots (random numbers). Output: an order. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from random import Random

HELD_BACK = 0.2
"""Share of launches that are held back while others are ready."""


def lots(random: Random, count: int) -> list[float]:
    """Draw a lot for each launch."""
    return [random.random() + (count if random.random() < HELD_BACK else 0) for _ in range(count)]


def legal(upstream: Sequence[Sequence[int]], lots: Sequence[float]) -> list[int]:
    """Return an order in which each launch comes after its upstream, the lowest lot first."""
    left = [len(some) for some in upstream]
    after: list[list[int]] = [[] for _ in upstream]
    for index, some in enumerate(upstream):
        for other in some:
            after[other].append(index)
    ready: list[tuple[float, int]] = []
    for index, count in enumerate(left):
        if not count:
            heappush(ready, (lots[index], index))
    return list(_drawn(ready, left, after, lots))


def _drawn(
    ready: list[tuple[float, int]],
    left: list[int],
    after: Sequence[Sequence[int]],
    lots: Sequence[float],
) -> Iterator[int]:
    while ready:
        _, index = heappop(ready)
        yield index
        for other in after[index]:
            left[other] -= 1
            if not left[other]:
                heappush(ready, (lots[other], other))
