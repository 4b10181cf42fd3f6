"""Advice: sentences about what limits a block and what would help, each with its figure.

Input: a record. Output: findings, sorted by cost, the largest first. `cost_ns` is about how much
time a finding costs. The emulator's estimate of a change is separate (`report.what_if`).

Invariant: each finding has its figure. Findings about the host need a device clock that can be
compared with the host's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from ..host.intervals import length, minus, single, union, within
from ..records import NamedTuple
from .false_edges import false_edges
from .record import Finding, Record
from .shares import Idle, busy, idle_of, kind_of, shares
from .slices import Slice, once, overlap

MOST = 0.8
"""From this share of the time on, an activity limits the program."""
LEAST = 0.05
"""A finding that costs less than this share is left out."""
LONG = 3
"""A kernel is long if it takes this many times as long as the others."""


class _Block(NamedTuple):
    """Figures that several findings need."""

    record: Record
    wall: int
    kernels: Sequence[Slice]
    busy: int
    """Time in which the device ran something."""
    total: int
    """Sum of the times of all launches on the device."""
    chain: int
    links: tuple[int, ...]
    in_flight: float
    idle: Idle

    @property
    def room(self) -> int:
        """Estimate the time saved if ready launches ran side by side. Compute units for their
        groups limit it."""
        units = self.record.about.units
        work = sum(
            (one.end_ns - one.start_ns)
            * (min(1.0, one.groups / units) if units and one.groups else 1)
            for one in once(self.kernels)
        )
        return max(0, self.busy - max(self.chain, int(work)))


def findings(record: Record) -> list[Finding]:
    """Return all findings, the most expensive first."""
    if not record.slices:
        return []
    kernels = [one for one in record.slices if one.clock != "host"]
    path = record.chain()
    on_device = union(record.interval(one) for one in kernels)
    block = _Block(
        record,
        record.whole_ns,
        kernels,
        length(on_device),
        sum(one.end_ns - one.start_ns for one in once(kernels)),
        path.ns,
        path.launches,
        overlap(kernels),
        idle_of(record),
    )
    found = [
        *_of_the_host(block),
        *_transfers(block),
        *_chain(block),
        *_window(block),
        *_lanes(block),
        *false_edges(record, path.ns, block.wall),
    ]
    return sorted(found, key=lambda one: -one.cost_ns)


# ---- the host ------------------------------------------------------------------------------------


def _of_the_host(block: _Block) -> Iterator[Finding]:
    record, wall = block.record, block.wall
    if record.clocks.clock == "model":
        return
    waits, behind, own, _, begins, nothing = block.idle
    if behind > LEAST * wall:
        names = ", ".join(f"{name} ({count})" for name, count in waits.most_common(3))
        yield Finding(
            "blocking",
            f"blocking: {waits.total()} times the program waits before it goes on, for {names}, "
            f"and the device is idle for {_ms(behind)} of {_ms(wall)} ms behind that, "
            f"{_ms(own)} ms of them since the program does its own work: wait less often, read "
            "later what is not needed at once, or decide on the device (when=)",
            behind,
            change="no waits",
            is_most=own > 0,
        )
    if begins.total() > LEAST * wall:
        names = ", ".join(f"{name} {_ms(ns)} ms" for name, ns in begins.most_common(3))
        yield Finding(
            "driver-bound",
            f"driver-bound: for {_ms(begins.total())} of {_ms(wall)} ms the driver had a launch "
            f"and did not begin it, though the device was idle ({names}): many drivers compile "
            "a kernel at its first launch, so run the block once before you measure it",
            begins.total(),
        )
    yield from _host_tasks(block)
    if nothing > (1 - MOST) * wall and block.kernels:
        host = sum(one.hazards_ns + one.submit_ns for one in record.slices)
        count = len(record.slices)
        helps = "record what repeats (rt.record), batch (launch_many), or make larger kernels"
        if 2 * record.about.replayed >= count:
            helps = "most are replayed already: record more at a time, or make larger kernels"
        yield Finding(
            "host-bound",
            f"host-bound: the device is idle {nothing / wall:.0%} of the time; the program takes "
            f"{wall / 1e3 / count:.1f} us for each of {count} launches, {host / 1e3 / count:.1f} us"
            f" of it in hazards and handing over: {helps}",
            nothing,
        )


def _host_tasks(block: _Block) -> Iterator[Finding]:
    alone = next((one.ns for one in shares(block.record) if one.name == "host tasks"), 0)
    if alone <= LEAST * block.wall:
        return
    tasks = [one for one in block.record.slices if kind_of(one) == "host tasks"]
    times: Counter[str] = Counter()
    for one in tasks:
        times[one.name] += one.end_ns - one.start_ns
    name, took = times.most_common(1)[0]
    mine = [one for one in tasks if one.name == name]
    yield Finding(
        "host-task",
        f"host-task: {len(mine)} host tasks {name!r} take {_ms(took / len(mine))} ms each, and the "
        f"device has nothing to do for {_ms(alone)} of {_ms(block.wall)} ms meanwhile: make it a "
        "kernel, make it faster, or let it read less so that launches beside it need not wait",
        alone,
        _longest(mine),
        change="no host tasks",
    )


# ---- the device ----------------------------------------------------------------------------------


def _transfers(block: _Block) -> Iterator[Finding]:
    record = block.record
    mine = [one for one in record.slices if kind_of(one) == "transfers"]
    ran = busy(record)
    alone = minus(ran.get("transfers", []), ran.get("kernels", []))
    cost = length(alone)
    if cost <= LEAST * block.wall or not ran.get("kernels"):
        return
    nbytes = sum(span.nbytes for one in mine for span in (one.reads or one.writes))
    took = sum(one.end_ns - one.start_ns for one in mine)
    beside = length(within(ran["transfers"], ran["kernels"]))
    counts = Counter(one.name for one in mine)
    kinds = f"transfers ({', '.join(f'{name} {count}' for name, count in counts.most_common())})"
    yield Finding(
        "transfer-bound",
        f"transfer-bound: {kinds} move {nbytes / 1e6:.2f} MB in {_ms(took)} ms; for {_ms(cost)} of "
        f"{_ms(block.wall)} ms nothing but transfers is on the device, and for {_ms(beside)} ms "
        "kernels run beside them: keep "
        "data there between steps, move less, or transfer what is independent of the kernels",
        cost,
        _longest(mine),
        change="no transfers",
    )


def _chain(block: _Block) -> Iterator[Finding]:
    if not block.kernels or block.chain <= MOST * block.wall:
        return
    yield from _long(block)
    timed = block.record.slices if block.record.clocks.comparable else block.kernels
    width = sum(one.end_ns - one.start_ns for one in once(timed)) / block.chain
    yield Finding(
        "chain-bound",
        f"chain-bound: launches that wait for one another take {block.chain / 1e6:.2f} of "
        f"{block.wall / 1e6:.2f} ms: no more than {width:.1f} launches can be in flight",
        0,
        block.links[:1] + block.links[-1:],
    )


def _long(block: _Block) -> Iterator[Finding]:
    """Find kernels that make up most of the chain and take far longer than others."""
    kernels = [one for one in block.kernels if kind_of(one) == "kernels" and not one.epoch]
    known = {one.number: one for one in kernels}
    links = [known[number] for number in block.links if number in known]
    times: Counter[str] = Counter()
    for one in links:
        times[one.name] += one.end_ns - one.start_ns
    if not times:
        return
    name, took = times.most_common(1)[0]
    mine = [one for one in kernels if one.name == name]
    others = [one.end_ns - one.start_ns for one in kernels if one.name != name]
    each = took / sum(one.name == name for one in links)
    if took < block.chain / 2 or not others or each < LONG * median(others):
        return
    record = block.record
    beside = union(record.interval(one) for one in block.kernels if one.name != name)
    alone = length(minus(single(map(record.interval, mine)), beside))
    groups, units = max(one.groups for one in mine), record.about.units
    used = min(1.0, groups / units) if groups and units else 0.5
    some = f"{groups} work-group{'s' if groups > 1 else ''}"
    has = f", with {some} on {units} units" if groups and units else ""
    yield Finding(
        "long-kernel",
        f"long-kernel: {name!r} takes {_ms(took)} ms of the {_ms(block.chain)} ms that launches "
        f"wait for one another, {_ms(each)} ms each time{has}, and for {_ms(alone)} ms nothing "
        "runs beside it: split it, give it more groups, or make what follows need less of it",
        int(alone * (1 - used)),
        _longest(mine),
        change="split",
        name=name,
    )


# ---- window and lanes ----------------------------------------------------------------------------


def _window(block: _Block) -> Iterator[Finding]:
    about = block.record.about
    if about.full and about.window:
        yield Finding(
            "window-bound",
            f"window-bound: {about.full} of {len(block.record.slices)} launches found the window "
            f"of {about.window} full: window=None, or a larger one",
            block.room + block.idle.held,
        )


def _lanes(block: _Block) -> Iterator[Finding]:
    about, lanes = block.record.about, block.record.about.lanes
    width = block.total / block.chain if block.chain else 0.0
    if 2 * about.on_one_lane > len(block.record.slices):
        return  # more lanes would not be quicker
    if about.backend == "lanes" and block.in_flight > MOST * lanes and width > 1.2 * lanes:
        yield Finding(
            "lane-bound",
            f"lane-bound: {block.in_flight:.1f} launches are in flight on {lanes} lanes, and there "
            f"is work for {width:.1f} side by side: lanes={2 * lanes}",
            0 if about.full else block.room,
        )


def _longest(slices: Sequence[Slice]) -> tuple[int, ...]:
    """Return the number of the longest slice."""
    return (max(slices, key=lambda one: one.end_ns - one.start_ns).number,)


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3g}" if ns < 1e9 else f"{ns / 1e6:.0f}"
