"""Tuning: it finds by trying in which order the launches of a graph go, and how they are cut.

Input: the calls of a graph. Output: a `Tuning`: the orders tried, the cuts into bands tried for
each pair of dependent kernels, and what is best of both. Whole launches are tried in the scheduler
and on lanes.

`kept_tunings` keeps results on disk, also if the graph is best as it was.

Invariant: an order or a cut stays only if replays with it were clearly faster than the best before.
In the end the whole graph has to be clearly faster than untuned, or it stays as it was, with whole
launches. Afterwards arrays have their contents back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from .. import core
from ..access.cuts import EARLY, Policy
from ..access.policies import Row
from ..records import HostArray, NamedTuple, Pair, Protocol
from .calls import Call
from .contents import Contents
from .kept_tunings import LANES, bands_of, keep_cuts, keep_order
from .profile import name_of

if TYPE_CHECKING:
    from ..launch.engine import Engine
    from ..memory.array import Array

OFF = "off"
TRIED: tuple[int | str | Policy, ...] = (LANES, Row(), 2, 4, 8, 16, 32)
ROUNDS = 9
LEAST_GAIN = 1.02
"""A cut has to be this many times as fast by the median, and faster by the first quartile."""


class Waiting(Protocol):
    """A handle of a replay."""

    def wait(self) -> object:
        """Wait for its end."""


class Replayed(Protocol):
    """A graph whose replays are timed."""

    def replay(self) -> Waiting:
        """Run it."""


class Gain(NamedTuple):
    """How many times as fast replays were as others, interleaved."""

    median: float
    p25: float

    @property
    def is_clear(self) -> bool:
        """Tell whether it is more than machine noise."""
        return self.median >= LEAST_GAIN and self.p25 > 1


class Tried(NamedTuple):
    """The cuts tried for a pair of kernels."""

    names: tuple[str, str]
    gains: Mapping[str, Gain]
    """By cut, over the best before."""
    kept: str
    """The cut that both kernels got. Empty: they stayed as they were."""


class Tuning(NamedTuple):
    """The result of tuning."""

    tried: tuple[Tried, ...]
    cuts: Mapping[str, str]
    """How each kernel is cut. If it has several sizes, the last one."""
    gain: Gain
    """Of the whole graph, over the same untuned: whole launches, in the order that it had."""
    order: str
    """In which order launches go."""
    orders: Mapping[str, Gain]
    """By other orders that were tried, over the best before."""

    def __str__(self) -> str:
        lines = [f"{self.gain.median:.2f} times as fast as untuned"]
        if self.orders:
            lines.append(f"order: {self.order}{_said(self.orders)}")
        for names, gains, kept in self.tried:
            who = " and ".join(dict.fromkeys(names))
            lines.append(f"{who}: {kept or OFF}{_said(gains, bool(kept))}")
        return "\n".join(lines)


def _said(gains: Mapping[str, Gain], is_one_kept: bool = True) -> str:
    if not gains:
        return " (for want of time not tried)"
    said = ", ".join(f"{one} {gain.median:.2f}x" for one, gain in gains.items())
    why = "" if is_one_kept else "; none was clearly quicker in the whole graph"
    return f" (tried, over the best before: {said}{why})"


class Orders(NamedTuple):
    """The orders that a graph can be tried in."""

    now: str
    others: Sequence[str]
    launches: Sequence[Pair]
    """All of them, by which the best one is kept."""


class Kind(NamedTuple):
    """A kernel at a size."""

    file: str
    name: str


def tuned(
    engine: Engine,
    calls: Sequence[Call],
    launches: Mapping[int, Pair],
    orders: Orders,
    record: Callable[[Sequence[Call], str], Replayed],
    kept: Sequence[tuple[Array, HostArray]],
    within_s: float,
    tell: Callable[[str, float], None],
) -> tuple[Tuning, dict[int, str]]:
    """Try orders, and cuts of all pairs, as far as time allows. Return the result, and the cut of
    each call.

    - `launches`: of calls that are one launch of a kernel.
    - `record`: makes a graph of calls, in an order.
    - `kept`: what the arrays get back.
    - `tell`: gets the present trial, and the share of the work done.

    Ctrl-C ends the trials; results until then are kept.
    """
    kinds = {
        number: Kind(file, launch[0].name)
        for number, launch in launches.items()
        if (file := name_of(engine.device, *launch))
    }
    interrupted: KeyboardInterrupt | None = None
    with Contents(engine, kept):
        has_scheduler = engine.plan.scheduler != "no"
        trials = _Trials(calls, kinds, orders, record, within_s, tell)
        try:
            trials.try_orders()
            trials.try_cuts(pairs(launches, kinds), TRIED if has_scheduler else TRIED[1:])
        except KeyboardInterrupt as stop:
            interrupted = stop
        gain = trials.judged()
    keep_cuts({kind.file: said for kind, said in trials.cuts.items()})
    keep_order(engine.device, orders.launches, trials.order)
    engine.tunings += 1
    engine.table.generation += 1
    if interrupted is not None:
        raise interrupted
    by_name = {kind.name: said for kind, said in trials.cuts.items()}
    found = Tuning(tuple(trials.tried), by_name, gain, trials.order, trials.orders)
    return found, {number: trials.cuts[kind] for number, kind in kinds.items()}


class _Trials:
    """Trials of one graph, and what is best so far: an order, and the cut of each kernel. Without
    any trial all launches are whole, in the order that the graph has."""

    def __init__(
        self,
        calls: Sequence[Call],
        kinds: Mapping[int, Kind],
        orders: Orders,
        record: Callable[[Sequence[Call], str], Replayed],
        within_s: float,
        tell: Callable[[str, float], None],
    ) -> None:
        self._calls, self._kinds, self._known = calls, kinds, orders
        self._record, self._tell = record, tell
        self._end = perf_counter() + within_s
        self.cuts: dict[Kind, str] = dict.fromkeys(kinds.values(), OFF)
        self.order = orders.now
        self.tried: list[Tried] = []
        self.orders: dict[str, Gain] = {}
        self._untuned = self._best = self._recorded(self.cuts, self.order)

    def _recorded(self, cuts: Mapping[Kind, str], order: str) -> Replayed:
        return self._record(cut(self._calls, self._kinds, cuts), order)

    def _try(self, cuts: dict[Kind, str], order: str) -> Gain:
        """Compare a way with the best so far. It becomes the best if it is clearly faster."""
        graph = self._recorded(cuts, order)
        gain = compared(self._best, graph)
        if gain.is_clear:
            self._best, self.cuts, self.order = graph, cuts, order
        return gain

    def try_orders(self) -> None:
        """Try all other orders, as far as time allows."""
        for order in self._known.others:
            if perf_counter() > self._end:
                break
            self._tell(f"order={order}", 0.0)
            self.orders[order] = self._try(self.cuts, order)

    def try_cuts(
        self, both: Sequence[tuple[Kind, Kind]], candidates: Sequence[int | str | Policy]
    ) -> None:
        """Try all cuts of each pair, as far as time allows."""
        for place, pair in enumerate(both):
            names = pair[0].name, pair[1].name
            gains: dict[str, Gain] = {}
            self.tried.append(Tried(names, gains, ""))
            for turn, candidate in enumerate(map(str, candidates)):
                if perf_counter() > self._end:
                    break
                share = (place + turn / len(candidates)) / len(both)
                self._tell(f"{' and '.join(dict.fromkeys(names))}: bands={candidate}", share)
                cuts = {**self.cuts, **dict.fromkeys(pair, candidate)}
                gains[candidate] = self._try(cuts, self.order)
                if self.cuts is cuts:
                    self.tried[-1] = self.tried[-1]._replace(kept=candidate)

    def judged(self) -> Gain:
        """Return the gain of the whole graph. If it is not clear, the graph stays as it was."""
        gain = Gain(1.0, 1.0)
        if self._best is not self._untuned:
            gain = compared(self._untuned, self._best)
        if gain.is_clear:
            return gain
        self.cuts, self.order = dict.fromkeys(self.cuts, OFF), self._known.now
        self.tried = [one._replace(kept="") for one in self.tried]
        return Gain(1.0, 1.0)


def pairs(launches: Mapping[int, Pair], kinds: Mapping[int, Kind]) -> list[tuple[Kind, Kind]]:
    """Return pairs of kernels of which one waits for the other, the most frequent first."""
    hazards = core.native.Hazards()
    many: dict[tuple[Kind, Kind], int] = {}
    numbers = [number for number in launches if number in kinds]
    for at, number in enumerate(numbers, 1):
        access = launches[number][1]
        for other in hazards.enter(at, access.reads, access.writes):
            pair = kinds[numbers[other - 1]], kinds[number]
            many[pair] = many.get(pair, 0) + 1
    return sorted(many, key=lambda pair: -many[pair])


def cut(calls: Sequence[Call], kinds: Mapping[int, Kind], cuts: Mapping[Kind, str]) -> list[Call]:
    """Return the calls with the cut of each kernel."""
    return [
        with_bands(call, cuts[kinds[number]]) if number in kinds else call
        for number, call in enumerate(calls)
    ]


def with_bands(call: Call, said: str) -> Call:
    """Return the call with a cut. Whole launches are cut where a part of them may begin early."""
    keywords = {**call.keywords, "bands": EARLY if said == OFF else bands_of(said)}
    return call._replace(keywords=keywords, owned=(), is_plain=False)


def compared(one: Replayed, other: Replayed) -> Gain:
    """Return how many times as fast the other is, interleaved."""
    ratios = []
    for _ in range(1 + ROUNDS):
        took = list(_times(one, other))
        ratios.append(took[0] / took[1])
    return Gain(*map(float, np.quantile(ratios[1:], (0.5, 0.25))))  # the first replays upload


def _times(*graphs: Replayed) -> Iterator[float]:
    for graph in graphs:
        start = perf_counter()
        graph.replay().wait()
        yield perf_counter() - start
