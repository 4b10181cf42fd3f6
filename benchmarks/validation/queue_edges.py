"""Measure how much more kernels take in a queue than their profiles say, over a whole run.

Input: a device. Output: samples of a known chain of kernels, of several lengths, with profiles and
without; `edges` joins them.

A queue without profiles runs kernels differently from the profiled queue of a recorded step. On a
GPU a profiled program launches so slowly that each kernel finds the device idle, where it takes
longer. On a CPU the time between two kernels depends on their length. So links are timed in a full
queue without profiles, behind a kernel that lasts until all of them are launched.

Invariant: nothing of a workload is measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl.benchmarks.suite.measures.overlap import SOURCE
from acs_cl.benchmarks.suite.statistics import quantile
from acs_cl.benchmarks.suite.timing import no_collection

LENGTHS_US = (0, 4, 12, 25, 50, 150)
"""Of a link, about."""
LINKS = (32, 160)
"""What the longer chain takes more than the shorter is that of the links between."""
MARGIN = 4
"""The kernel before lasts so many times as long as launching takes."""
WARM = 3
ROUNDS = 5_000
"""Of a link that tells how long a round is."""
LINK = (32,)
"""Work-items of a link, of the kernel that the overlap benchmark has too."""


class Times(NamedTuple):
    """Nanoseconds of one length: of both chains, and of a link by its profile."""

    short: float
    long: float
    lasts: float


class Chains:
    """Links one behind another on `serial`, without profiles and with them."""

    def __init__(self, plain: acs.Runtime, profiled: acs.Runtime) -> None:
        self._plain, self._profiled = _Side(plain), _Side(profiled)
        self._profiled.lasts(ROUNDS)
        a_round = self._profiled.lasts(ROUNDS) / ROUNDS
        self._rounds = [round(length * 1000 / a_round) for length in LENGTHS_US]
        for _ in range(WARM):
            launching, _ = self._plain.takes(LINKS[1], 0, 0)
        self._hold = round(MARGIN * launching / a_round)

    def sample(self) -> list[Times]:
        """Take a sample of each length."""
        plain, found = self._plain, []
        with no_collection():
            for rounds in self._rounds:
                short, long = (plain.takes(links, rounds, self._hold)[1] for links in LINKS)
                found.append(Times(short, long, self._profiled.lasts(rounds)))
        return found


@contextmanager
def chains(device: cl.Device) -> Iterator[Chains]:
    """Make the chains, ready for samples."""
    with (
        acs.Runtime(device, backend="serial") as plain,
        acs.Runtime(device, backend="serial", trace=True) as profiled,
    ):
        yield Chains(plain, profiled)


def edges(samples: Sequence[Sequence[Times]]) -> list[tuple[int, int]]:
    """Return medians: the length of a link by its profile, and how much more it takes in a full
    queue without profiles. That may be less than nothing."""
    found = []
    for same in zip(*samples, strict=True):
        short, long, lasts = (quantile(times, 0.5) for times in zip(*same, strict=True))
        found.append((round(lasts), round((long - short) / (LINKS[1] - LINKS[0]) - lasts)))
    return sorted(found)


class _Side:
    def __init__(self, runtime: acs.Runtime) -> None:
        self.runtime = runtime
        self.link: Any = runtime.build(SOURCE).work
        self.y, self.before = (runtime.zeros(LINK[0], np.uint32) for _ in range(2))

    def lasts(self, rounds: int) -> float:
        """Return nanoseconds of a link, by its profile."""
        self.runtime.finish()
        self.runtime.trace.clear()
        for _ in range(LINKS[1]):
            self.link(LINK, LINK, self.y, rounds)
        self.runtime.finish()
        slices = sorted(self.runtime.trace.slices, key=lambda one: one.number)
        return quantile([one.end_ns - one.start_ns for one in slices[LINKS[0] :]], 0.5)

    def takes(self, links: int, rounds: int, hold: int) -> tuple[float, float]:
        """Return nanoseconds to launch some links behind a longer one, and to the end of all."""
        self.runtime.finish()
        start = perf_counter()
        self.link(LINK, LINK, self.before, hold)
        for _ in range(links):
            self.link(LINK, LINK, self.y, rounds)
        launched = perf_counter()
        self.runtime.finish()
        return (launched - start) * 1e9, (perf_counter() - start) * 1e9
