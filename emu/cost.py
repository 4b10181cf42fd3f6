"""Costs of a launch on the device: resources of a group, its time, and bounds of all runs.

Input: entries of a trace and a device. Output: for each launch a `Need` (the resources of a group,
its own time, its bytes), and the two bounds of a whole trace.

The time of a group is one of three. It may be given (`group_ns`). It may be measured: `total_ns` of
the launch alone on such a device, spread over the rounds of its groups there. Else it is a
roofline: its flops at its share of a unit's rate, or the dependent steps of its work-items,
whichever is longer. Its bytes take part of the shared bandwidth meanwhile (`gpu.py`).

Invariant: no schedule on the device is shorter than `critical_path_ns` or `work_ns`.
"""

from __future__ import annotations

from typing import NamedTuple

from acs_cl.emu.spec import GpuSpec
from acs_cl.emu.trace import ALL_BEFORE, HOST, KERNEL, Entry, Trace
from acs_cl.errors import UsageError


class Need(NamedTuple):
    """Needs of one group of a launch: resources of its unit, and time."""

    threads: int
    registers: int
    local_bytes: int
    fit: int
    """Groups that fit on an empty unit."""
    packed: int
    """All resources of one group, as one number."""
    ns: int
    bytes: int


BITS = 32
GUARDS = sum(1 << (BITS + (BITS + 1) * place) for place in range(4))


def packed(groups: int, threads: int, registers: int, local_bytes: int) -> int:
    """Pack four numbers into one, with a bit between them, to add, subtract and multiply them as
    one. With the `GUARDS` set, a subtraction that does not fit clears the guard above."""
    number = 0
    for value in (local_bytes, registers, threads, groups):
        number = number << (BITS + 1) | value
    return number


def unpacked(number: int) -> tuple[int, ...]:
    """Return the four numbers, without guards."""
    return tuple(number >> ((BITS + 1) * place) & ((1 << BITS) - 1) for place in range(4))


class Costs:
    """Needs of launches on one device."""

    def __init__(self, spec: GpuSpec) -> None:
        self.spec = spec
        self._shapes: dict[tuple[int, ...], tuple[int, int, int, int, int]] = {}

    def need(self, entry: Entry) -> Need:
        """Return the needs of a group. Raise `UsageError` if it fits no unit or its time is not
        known."""
        key = entry.items, entry.registers, entry.local_bytes
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = self._shape(entry)
        return Need(*shape, *self._time(entry, shape[3]))

    def _shape(self, entry: Entry) -> tuple[int, int, int, int, int]:
        spec = self.spec
        threads = -(-entry.items // spec.warp) * spec.warp
        registers = threads * entry.registers if spec.registers else 0
        local_bytes = entry.local_bytes if spec.local_bytes else 0
        fit = min(spec.groups, spec.threads // threads)
        if registers:
            fit = min(fit, spec.registers // registers)
        if local_bytes:
            fit = min(fit, spec.local_bytes // local_bytes)
        if not fit:
            raise UsageError(
                f"launch {entry.number} ({entry.name}): a group of {threads} threads,"
                f" {registers} registers and {local_bytes} bytes fits no unit of {spec.name}"
            )
        together = packed(1, threads, registers, local_bytes)
        return threads, registers, local_bytes, fit, together

    def _time(self, entry: Entry, fit: int) -> tuple[int, int]:
        spec = self.spec
        nbytes = entry.bytes if spec.bytes_per_ns else 0
        if entry.group_ns:
            return entry.group_ns, nbytes
        if entry.total_ns:
            return -(-entry.total_ns // -(-entry.groups // (fit * spec.units))), nbytes
        if not spec.flops_per_cycle or not spec.bytes_per_ns:
            raise UsageError(
                f"launch {entry.number} ({entry.name}) says flops and bytes, and {spec.name} has no"
                " roofline: give group_ns or total_ns"
            )
        beside = min(fit, -(-entry.groups // spec.units))
        cycles = -(-entry.flops * beside // spec.flops_per_cycle)
        latency = entry.steps * spec.step_cycles + entry.rounds * spec.load_cycles
        cycles = max(cycles, latency)
        return -(-cycles * 1000 // spec.clock_mhz), nbytes

    def alone_ns(self, entry: Entry) -> int:
        """Return the least time of the whole launch on an empty device."""
        if entry.kind != KERNEL:
            return entry.total_ns
        need = self.need(entry)
        ns = need.ns * -(-entry.groups // (need.fit * self.spec.units))
        if need.bytes:
            ns = max(ns, self._transfer_ns(need.bytes * entry.groups), self._group_ns(need.bytes))
        return ns

    def _transfer_ns(self, nbytes: int) -> int:
        return -(-nbytes // self.spec.bytes_per_ns)

    def _group_ns(self, nbytes: int) -> int:
        cycles = nbytes // self.spec.group_bytes_per_cycle
        return cycles * 1000 // self.spec.clock_mhz


def critical_path_ns(trace: Trace, spec: GpuSpec) -> int:
    """Return the longest chain of launches, each alone on the device, with the program's waits."""
    costs = Costs(spec)
    ends = [0] * (len(trace.entries) + 1)
    program = longest = 0
    for entry in trace.entries:
        for other in entry.waits:
            program = max(program, longest if other == ALL_BEFORE else ends[other])
        program += entry.host_ns
        start = program
        for other in entry.upstream:
            if ends[other] > start:
                start = ends[other]
        end = ends[entry.number] = start + costs.alone_ns(entry)
        longest = max(longest, end)
    return longest


def work_ns(trace: Trace, spec: GpuSpec) -> int:
    """Return the time of all work at full use of the busiest resource: groups, threads, registers,
    local memory, bandwidth, the engine for copies, the thread for host tasks."""
    costs = Costs(spec)
    used = dict.fromkeys(("groups", "threads", "registers", "local_bytes", "bytes"), 0)
    apart = {"copies": 0, "host": 0}
    for entry in trace.entries:
        if entry.kind != KERNEL:
            apart["host" if entry.kind == HOST else "copies"] += entry.total_ns
            continue
        need = costs.need(entry)
        unit_ns = need.ns * entry.groups
        used["groups"] += unit_ns
        used["threads"] += unit_ns * need.threads
        used["registers"] += unit_ns * need.registers
        used["local_bytes"] += unit_ns * need.local_bytes
        used["bytes"] += need.bytes * entry.groups
    least = max(apart.values())
    for name in ("groups", "threads", "registers", "local_bytes"):
        limit = getattr(spec, name) * spec.units
        if limit:
            least = max(least, -(-used[name] // limit))
    return max(least, -(-used["bytes"] // spec.bytes_per_ns)) if spec.bytes_per_ns else least
