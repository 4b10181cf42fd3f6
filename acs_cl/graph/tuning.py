"""Tuning: it finds by trying how the launches of a graph are best cut into bands.

Input: the calls of a graph. Output: a `Tuning`: the cuts tried for each pair of dependent kernels,
and the final cut of each kernel. Whole launches are tried in the scheduler and on lanes.

Results are kept by kernel (source, options, sizes, numbers, bytes) and by device, beside those of
the doctor, also if whole launches are best. Launches with `bands="auto"` are cut so from then on.

Invariant: a cut stays only if replays with it were clearly faster than the best before. In the end
the whole graph has to be clearly faster than without bands, or all launches stay whole. Afterwards
arrays have their contents back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import pyopencl as cl

from .. import core
from ..access.cuts import AUTO, WORDS, Cut, Policy, Row, asked, policy
from ..host import files
from ..launch.commands import KernelCommand
from ..records import Access, Command, HostArray, Pair
from .calls import Call
from .profile import name_of

if TYPE_CHECKING:
    from ..launch.engine import Engine
    from ..memory.array import Array

FORMAT = 1
_KIND = "bands"
MOST_KEPT = 4096
"""Kernels at a size whose cuts are kept on disk."""

OFF, LANES = "off", "lanes"
TRIED: tuple[int | str | Policy, ...] = (LANES, Row(), 2, 4, 8, 16, 32)
ROUNDS = 9
LEAST_GAIN = 1.02
"""A cut has to be this many times as fast by the median, and faster by the first quartile."""

WHOLE = "it was tuned, and whole launches were faster on this device"
ON_LANES = "it was tuned, and lanes were faster than the scheduler on this device"


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
    """Of the whole graph, over the same without bands."""

    def __str__(self) -> str:
        lines = [f"{self.gain.median:.2f} times as fast as without bands"]
        for names, gains, kept in self.tried:
            said = ", ".join(f"{cut} {gain.median:.2f}x" for cut, gain in gains.items())
            who = " and ".join(dict.fromkeys(names))
            lines.append(f"{who}: {kept or OFF} (tried, over the best before: {said})")
        return "\n".join(lines)


class Kind(NamedTuple):
    """A kernel at a size."""

    file: str
    name: str


def tuned(
    engine: Engine,
    calls: Sequence[Call],
    launches: Mapping[int, Pair],
    record: Callable[[Sequence[Call]], Replayed],
    kept: Sequence[tuple[Array, HostArray]],
    within_s: float,
    tell: Callable[[str, float], None],
) -> tuple[Tuning, dict[int, str]]:
    """Try cuts of all pairs, as far as time allows. Return the result, and the cut of each call.

    - `launches`: of calls that are one launch of a kernel.
    - `record`: makes a graph of calls.
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
    try:
        has_scheduler = engine.plan.scheduler != "no"
        trials = _Trials(calls, kinds, record, TRIED if has_scheduler else TRIED[1:])
        try:
            trials.run(pairs(launches, kinds), within_s, tell)
        except KeyboardInterrupt as stop:
            interrupted = stop
        gain = trials.judged()
    finally:
        engine.drain()
        for part, values in kept:
            part.set(values)
        engine.drain()
    for kind, said in trials.cuts.items():
        files.keep(_KIND, kind.file, FORMAT, {"bands": said})
    files.trim(_KIND, MOST_KEPT)
    engine.tunings += 1
    engine.table.generation += 1
    if interrupted is not None:
        raise interrupted
    by_name = {kind.name: said for kind, said in trials.cuts.items()}
    found = Tuning(tuple(trials.tried), by_name, gain)
    return found, {number: trials.cuts[kind] for number, kind in kinds.items()}


class _Trials:
    """Trials of one graph, and the best cuts so far. Without any trial all launches are whole."""

    def __init__(
        self,
        calls: Sequence[Call],
        kinds: Mapping[int, Kind],
        record: Callable[[Sequence[Call]], Replayed],
        candidates: Sequence[int | str | Policy],
    ) -> None:
        self._calls, self._kinds, self._record = calls, kinds, record
        self._candidates = [str(one) for one in candidates]
        self.cuts: dict[Kind, str] = dict.fromkeys(kinds.values(), OFF)
        self.tried: list[Tried] = []
        self._whole = self._best = self._recorded(self.cuts)

    def _recorded(self, cuts: Mapping[Kind, str]) -> Replayed:
        return self._record(cut(self._calls, self._kinds, cuts))

    def run(
        self,
        both: Sequence[tuple[Kind, Kind]],
        within_s: float,
        tell: Callable[[str, float], None],
    ) -> None:
        """Try all cuts of each pair, as far as time allows. A cut that is clearly faster stays."""
        start = perf_counter()
        for place, pair in enumerate(both):
            names = pair[0].name, pair[1].name
            gains: dict[str, Gain] = {}
            self.tried.append(Tried(names, gains, ""))
            for turn, candidate in enumerate(self._candidates):
                if perf_counter() - start > within_s:
                    break
                share = (place + turn / len(self._candidates)) / len(both)
                tell(f"{' and '.join(dict.fromkeys(names))}: bands={candidate}", share)
                cuts = {**self.cuts, **dict.fromkeys(pair, candidate)}
                graph = self._recorded(cuts)
                gains[candidate] = now = compared(self._best, graph)
                if now.is_clear:
                    self._best, self.cuts = graph, cuts
                    self.tried[-1] = self.tried[-1]._replace(kept=candidate)

    def judged(self) -> Gain:
        """Return the gain of the whole graph. If it is not clear, all launches stay whole."""
        gain = Gain(1.0, 1.0)
        if self._best is not self._whole:
            gain = compared(self._whole, self._best)
        if gain.is_clear:
            return gain
        self.cuts = dict.fromkeys(self.cuts, OFF)
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
    """Return the call with a cut."""
    bands = int(said) if said.isdigit() else policy(said)
    return call._replace(keywords={**call.keywords, "bands": bands}, owned=(), is_plain=False)


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


# ---- on disk -------------------------------------------------------------------------------------


def as_tuned(device: cl.Device, command: Command, access: Access) -> Command:
    """Cut a launch in the way that was tuned on this device, if the library chooses the cut."""
    file = name_of(device, command, access)
    said = _read(file) if file else ""
    if not said or type(command) is not KernelCommand or command.cut is None:
        return command
    if said in WORDS:
        lane = ON_LANES if said == LANES else ""
        return command._replace(cut=Cut(AUTO, None, WHOLE), lane=lane)
    bands = asked(int(said) if said.isdigit() else policy(said))
    return command._replace(cut=command.cut._replace(bands=bands))


def _read(file: str) -> str:
    """Read the kept cut. Empty: there is none."""
    document = files.record(_KIND, file, FORMAT)
    if document is None:
        return ""
    try:
        said = str(document["bands"])
        asked(int(said) if said.isdigit() else policy(said))
    except (ValueError, KeyError, TypeError):
        return ""
    return said
