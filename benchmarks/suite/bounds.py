"""Bounds: how fast a program could be on a device with free launches, by critical path and work.

Input: slices of traced runs on backend `serial`, where each kernel has the device to itself, and
the time of an empty kernel there. Output: a `Bound`.

No measurement may be faster than a bound. So everything that a schedule might save is subtracted:

- the time of an empty kernel from each kernel, since it is the driver's and not work;
- from a kernel's work, the part of the device's *capacity* that its groups leave free. Capacity is
  the number of groups that may run at once. On a GPU a compute unit runs many groups, so a small
  kernel leaves nearly all to others.

If the device offers a single compute unit, the same run there gives a better measure of the work.
On the whole device, units that wait for a kernel's last group, or for the next kernel, could do
other work.

A bound can still be wrong: kernels may find more in caches beside each other than alone. `held`
compares a bound with the measurements, and results leave out a bound that does not hold.

Transfers between host and device use none of the device's capacity, but each direction does one at
a time.

Invariant: edges come from the bytes in the slices, by the library's own definition of a hazard, and
none is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from acs_cl import core
from acs_cl.benchmarks.suite.statistics import quantile
from acs_cl.observe.slices import Slice

DIRECTIONS = ("write", "read")
"""Names of transfers, to the device and from it."""


class Bound(NamedTuple):
    """Milliseconds, except the counts."""

    launches: int
    edges: int
    depth: int
    """Launches on the longest chain."""
    critical_ms: float
    work_ms: float
    moved_ms: float
    """Sum of all transfers in the direction that takes longer."""
    busy_ms: float
    """Sum of all kernels' times, as they are."""
    empty_us: float
    """Time of an empty kernel, which is subtracted from each."""
    groups: dict[str, float]
    """Groups of the kernels: quantiles, and the share of kernels smaller than the device."""
    unit_ms: float | None
    """Sum of all kernels' times on one compute unit, if that was measured."""

    @property
    def least_ms(self) -> float:
        """Return the bound: no schedule is faster."""
        return max(self.critical_ms, self.work_ms, self.moved_ms)

    @property
    def limit(self) -> str:
        """Return which of the three it is."""
        if self.moved_ms > max(self.critical_ms, self.work_ms):
            return "transfers"
        return "critical path" if self.critical_ms >= self.work_ms else "work"

    def held(self, fastest_ms: float | None) -> dict[str, Any]:
        """Return plain values for JSON. A faster measurement, if any, replaces the bound."""
        plain = {**self._asdict(), "least_ms": self.least_ms, "limit": self.limit}
        if fastest_ms is not None and fastest_ms < self.least_ms:
            plain |= {"least_ms": None, "refuted_by_ms": fastest_ms}
        return plain


class Device(NamedTuple):
    """The device that the kernels ran on."""

    units: int
    capacity: int
    """Groups that may run at once on all units, at most."""
    empty_us: float = 0.0


def bound(slices: Sequence[Slice], device: Device, narrow: Sequence[Slice] = ()) -> Bound:
    """Return the bound of one step. `narrow`: the same launches on one of the compute units."""
    slices = sorted(slices, key=lambda one: one.number)
    on_one = [_ms(one) for one in sorted(narrow, key=lambda one: one.number)]
    hazards = core.native.Hazards()
    ends: dict[int, tuple[float, int]] = {}
    edges = 0
    work = 0.0
    moved = dict.fromkeys(DIRECTIONS, 0.0)
    for place, one in enumerate(slices):
        took = max(0.0, _ms(one) - device.empty_us / 1e3)
        upstream = hazards.enter(one.number, one.reads, one.writes)
        edges += len(upstream)
        before = [ends[number] for number in upstream]
        ends[one.number] = (
            took + max((end for end, _ in before), default=0.0),
            1 + max((depth for _, depth in before), default=0),
        )
        if not one.groups and one.name in moved:
            moved[one.name] += took
            continue
        share = took * min(one.groups or 1, device.capacity) / device.capacity
        work += min(share, on_one[place] / device.units) if on_one else share
    kernels = [one.groups for one in slices if one.groups]
    return Bound(
        launches=len(slices),
        edges=edges,
        depth=max((depth for _, depth in ends.values()), default=0),
        critical_ms=max((end for end, _ in ends.values()), default=0.0),
        work_ms=work,
        moved_ms=max(moved.values()),
        busy_ms=sum(map(_ms, slices)),
        empty_us=device.empty_us,
        groups=_groups(kernels, device.units),
        unit_ms=sum(on_one) if on_one else None,
    )


def _ms(one: Slice) -> float:
    return (one.end_ns - one.start_ns) / 1e6


def fastest(runs: Sequence[Sequence[Slice]]) -> list[Slice]:
    """Return the last of several runs of the same launches, each launch with its shortest time."""
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
