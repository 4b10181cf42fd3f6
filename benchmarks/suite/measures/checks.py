"""Time the hazard check alone: a part of `native`.

Input: none from the device. Output: nanoseconds of a check, for windows of 16 to 1,024 live
launches with 6 or 10 segments each, half of them written. The core calls it as for its own launches
(`inside`), from Python's spans, with edges in C++. That includes the retirement of the launch that
leaves the window. There are two shapes:

- `chains`: every launch waits for one that is half a window before it;
- `random`: segments are drawn from as many as the launches in the window have. So a launch's
  conflicts do not depend on the window.

The paper gives 410 ns for a window of 16 with 6 segments, and 1,640 ns for 32 with 10.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from acs_cl import core
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import spread
from acs_cl.benchmarks.suite.timing import interleave
from acs_cl.records import Access, Span, interval

WINDOWS = ((16, 6), (32, 10), (1024, 6))
LIMITS_NS = {(16, 6): 100, (32, 10): 200}
FLAT = 1.2
"""A check is flat if a window of 1,024 takes at most this many times as long as one of 16."""

ROUNDS = {False: 41, True: 3}  # by "is quick"
LAUNCHES, ACCESSES = 16384, 4096  # in one sample


def chains(window: int, segments: int) -> list[Access]:
    """Make half as many chains as there are slots, and a launch of each in turn."""
    half = window // 2
    each = [_prepared(range(chain * segments, (chain + 1) * segments)) for chain in range(half)]
    return [each[number % half] for number in range(ACCESSES)]


def scattered(window: int, segments: int) -> list[Access]:
    """Choose any segments of many."""
    rng = random.Random(7)
    spans = [_span(number) for number in range(window * segments)]
    half = segments // 2
    drawn = [rng.sample(spans, segments) for _ in range(ACCESSES)]
    return [Access(tuple(some[:half]), tuple(some[half:])) for some in drawn]


SHAPES: dict[str, Callable[[int, int], list[Access]]] = {"chains": chains, "random": scattered}


def measure(settings: Settings) -> dict[str, Any]:
    """Measure nanoseconds: all shapes and windows, interleaved."""
    samplers: dict[str, Callable[[], float]] = {}
    for shape, make in SHAPES.items():
        for window, segments in WINDOWS:
            checks = Checks(window, make(window, segments))
            samplers[_name(shape, window, segments)] = checks.sample
    for sampler in samplers.values():
        sampler()
    samples = interleave(samplers, ROUNDS[settings.quick])
    return {name: spread(values, 1) for name, values in samples.items()}


class Checks:
    """Launches that enter and leave, with `window` of them live."""

    def __init__(self, window: int, accesses: list[Access]) -> None:
        self.hazards = core.native.Hazards()
        self.window, self.accesses = window, accesses
        self.number = 0

    def sample(self) -> float:
        """Return nanoseconds for one check."""
        took_ns = 0.0
        for _ in range(LAUNCHES // ACCESSES):
            took_ns += self.hazards._measure(self.number + 1, self.accesses, self.window)
            self.number += ACCESSES
        return took_ns / LAUNCHES


def targets_of(check_ns: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the figures with their bars."""
    targets: list[dict[str, Any]] = []
    for shape in SHAPES:
        for place, limit in LIMITS_NS.items():
            name = _name(shape, *place)
            took = check_ns[name]
            targets.append(target(f"a hazard check, {name}", took, "at most", limit, "ns"))
        least, most = (check_ns[_name(shape, window, 6)]["median"] for window in (16, 1024))
        what = f"a hazard check, {shape}, window 1,024 over 16, inside"
        targets.append(target(what, most / least, "at most", FLAT, "x"))
    return targets


def _name(shape: str, window: int, segments: int) -> str:
    return f"{shape}, window {window}, {segments} segments, inside"


def _prepared(numbers: range) -> Access:
    spans = [_span(number) for number in numbers]
    half = len(spans) // 2
    return Access(tuple(spans[:half]), tuple(spans[half:]))


def _span(number: int) -> Span:
    return interval(number + 1, 0, 4096)
