"""Model what an epoch takes in sections: those of one run in order, beside the host's launches.

Input: tasks in program order, edges among them, and the times of the whole epoch. Output: seconds
from its first launch to its end. The core's code is `acs_cl/_core/epoch/sections.hpp`.

Invariant: a section begins when it was sent and the one before has ended, and a longest chain of
tasks takes the share of the device's time that it has of the epoch's longest chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SECTION_S = 20e-6
"""What each section costs the host, and the device again."""

Edge = tuple[int, int]


def longest_chain(edges: Iterable[Edge], first: int, end: int) -> int:
    """Return how many tasks of `first <= task < end` follow one another at most."""
    behind = dict.fromkeys(range(first, end), 1)
    for above, below in sorted(edges, key=lambda edge: edge[1]):
        if above in behind and below in behind:
            behind[below] = max(behind[below], behind[above] + 1)
    return max(behind.values())


def takes_s(ends: Sequence[int], edges: Sequence[Edge], host_s: float, device_s: float) -> float:
    """Return the seconds of an epoch whose sections end behind so many tasks."""
    tasks = ends[-1]
    launch_s = max(0.0, host_s - SECTION_S) / tasks
    link_s = max(0.0, device_s - SECTION_S) / longest_chain(edges, 0, tasks)
    first, sent_s, ended_s = 0, 0.0, 0.0
    for end in ends:
        sent_s += launch_s * (end - first) + SECTION_S
        ended_s = max(sent_s, ended_s) + SECTION_S + link_s * longest_chain(edges, first, end)
        first = end
    return ended_s
