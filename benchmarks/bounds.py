"""How fast a program could be on a device: its critical path, its work, and what its launches cost.

In: slices of traced runs on backend `serial`, where each kernel has the device to itself, and what
one launch costs the host in bare PyOpenCL. Out: a `Bound`.

A kernel of fewer groups than the device has compute units leaves the others to other kernels, so
its work is its time in that proportion; one with more has it all. Where the device lets go of one
compute unit, the same run there tells it better: units that wait for the last group of a kernel,
or to be woken for the next one, do other kernels' work meanwhile. On a CPU device the host program
and the kernels share the cores, so that launches are work there as well.

Invariant: edges are those of the bytes in the slices, found by the library's own definition of a
hazard, with nothing forgotten; a bound is a lower limit for the time of any schedule of these
launches, as long as kernels beside each other are no faster than alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from acs_cl.benchmarks.harness import quantile
from acs_cl.footprints import ReplayHazards
from acs_cl.trace import Slice


class Bound(NamedTuple):
    """Milliseconds, but for the counts."""

    launches: int
    edges: int
    depth: int
    """Launches on the longest chain."""
    critical_ms: float
    work_ms: float
    launching_ms: float
    busy_ms: float
    """All kernels one after the other."""
    groups: dict[str, float]
    """Of the kernels: quantiles, and the share of those that are smaller than the device."""
    unit_ms: float | None
    """All kernels one after the other on one compute unit, where that was measured."""

    @property
    def least_ms(self) -> float:
        """No schedule is faster."""
        return max(self.critical_ms, self.work_ms, self.launching_ms)

    @property
    def limit(self) -> str:
        """Which of the three it is."""
        named = {
            "critical path": self.critical_ms,
            "work": self.work_ms,
            "launches": self.launching_ms,
        }
        return max(named, key=lambda name: named[name])

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {**self._asdict(), "least_ms": self.least_ms, "limit": self.limit}


def bound(
    slices: Sequence[Slice],
    units: int,
    launch_us: float,
    shared: bool,
    narrow: Sequence[Slice] = (),
) -> Bound:
    """The bound of one step. `units`: compute units of the device; `shared`: whether the host
    program runs on them; `narrow`: the same launches on one of them."""
    slices = sorted(slices, key=lambda one: one.number)
    on_one = [_ms(one) for one in sorted(narrow, key=lambda one: one.number)]
    hazards = ReplayHazards()
    ends: dict[int, tuple[float, int]] = {}
    edges = 0
    busy = work = 0.0
    for place, one in enumerate(slices):
        took = _ms(one)
        upstream = hazards.enter(one.number, one.reads, one.writes)
        edges += len(upstream)
        before = [ends[number] for number in upstream]
        ends[one.number] = (
            took + max((end for end, _ in before), default=0.0),
            1 + max((depth for _, depth in before), default=0),
        )
        busy += took
        share = took * min(one.groups or 1, units) / units
        work += min(share, on_one[place] / units) if on_one else share
    launching = len(slices) * launch_us / 1e3
    kernels = [one.groups for one in slices if one.groups]
    return Bound(
        launches=len(slices),
        edges=edges,
        depth=max((depth for _, depth in ends.values()), default=0),
        critical_ms=max((end for end, _ in ends.values()), default=0.0),
        work_ms=work + launching / units if shared else work,
        launching_ms=launching,
        busy_ms=busy,
        groups=_groups(kernels, units),
        unit_ms=sum(on_one) if on_one else None,
    )


def _ms(one: Slice) -> float:
    return (one.end_ns - one.start_ns) / 1e6


def fastest(runs: Sequence[Sequence[Slice]]) -> list[Slice]:
    """The last of several runs of the same launches, each launch with its shortest time."""
    runs = [sorted(run, key=lambda one: one.number) for run in runs]
    last = runs[-1]
    alike = [run for run in runs if [one.name for one in run] == [one.name for one in last]]
    return [
        one._replace(end_ns=one.start_ns + min(same.end_ns - same.start_ns for same in all_of_it))
        for one, all_of_it in zip(last, zip(*alike, strict=True), strict=True)
    ]


def _groups(kernels: Sequence[int], units: int) -> dict[str, float]:
    if not kernels:
        return {}
    shares = {"p10": 0.1, "median": 0.5, "p90": 0.9, "max": 1.0}
    figures = {name: quantile(kernels, share) for name, share in shares.items()}
    smaller = sum(groups < units for groups in kernels)
    few = sum(groups <= 9 for groups in kernels)
    return {
        **figures,
        "smaller_than_device": round(smaller / len(kernels), 3),
        "at_most_9": round(few / len(kernels), 3),
    }
