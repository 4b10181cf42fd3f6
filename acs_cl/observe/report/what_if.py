"""Estimates of what would help: the emulator runs the block again with one thing changed.

Input: a record and its findings. Output: estimates, each with the model's time without the change
and with it. Everything here is simulated. The model has the measured times of the launches, their
edges, and the work and waits of the program. Its machine has as many units as the device.

Invariant: both times of an estimate are the model's. They are never compared with measured times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...emu.convert import checked, of_slices
from ...emu.machines import MACHINES
from ...emu.policies import simulate
from ...emu.spec import Machine
from ...emu.trace import HOST, KERNEL, Entry, Trace
from ...records import NamedTuple
from ..edges import Edges
from ..record import Finding, Record

MOST, MOST_GROUPS = 20_000, 5_000_000
"""Most launches, and most groups of all of them; the model takes too long for more."""
ITEMS = 256
"""Work-items of a group where the driver chose the size."""
WIDE = 1024
"""Slots of a window that is never full."""


class Estimate(NamedTuple):
    """A change, and the model's time for the block without it and with it. `finding`: the position
    of its finding. -1: a change that any program may try."""

    change: str
    policy: str
    before_ns: int
    after_ns: int
    machine: str
    finding: int = -1


class _Model(NamedTuple):
    """The block as the emulator sees it."""

    trace: Trace
    machine: Machine
    policy: str
    lanes: int
    window: int

    def run(self, trace: Trace | None = None, policy: str = "") -> int:
        """Return the time of the block on the model."""
        return simulate(policy or self.policy, trace or self.trace, self.machine).makespan_ns

    def changed(self, change: Callable[[Entry], Entry]) -> Trace:
        """Return the trace with changed entries."""
        return self.trace._replace(entries=[change(one) for one in self.trace.entries])


def estimates(record: Record, findings: Sequence[Finding]) -> list[Estimate]:
    """Estimate the changes of the findings, and a few general ones. The largest gain comes
    first."""
    if not record.slices or is_too_long(record) or is_of_several(record):
        return []
    model = _model(record)
    before = model.run()
    found: dict[str, Estimate] = {}

    def add(name: str, policy: str, before_ns: int, after_ns: int, finding: int = -1) -> None:
        one = Estimate(name, policy, before_ns, after_ns, model.machine.name, finding)
        found.setdefault(name, one)

    kinds = {one.kind: place for place, one in enumerate(findings)}
    for place, one in enumerate(findings):
        changed = _changed(model, record, one)
        if changed is not None:
            name, trace = changed
            add(name, model.policy, before, model.run(trace), place)
    if model.window:
        small, wide = (f"acs_sw(N={n}, threads={model.lanes})" for n in (model.window, WIDE))
        times = model.run(policy=small), model.run(policy=wide)
        add("a window without bound", "acs_sw", *times, kinds.get("window-bound", -1))
    for name, policy, kind in (
        (f"twice the lanes ({2 * model.lanes})", f"streams(S={2 * model.lanes})", "lane-bound"),
        ("the scheduler on the device (backend='device')", "on_device", ""),
        ("recorded once and replayed (rt.record)", "cuda_replay", "host-bound"),
        ("a host that takes no time, and every edge known", "ideal", ""),
    ):
        if policy != model.policy:
            add(name, policy, before, model.run(policy=policy), kinds.get(kind, -1))
    quick = model.changed(lambda one: one._replace(host_ns=0))
    add("no work of the program's own between launches", model.policy, before, model.run(quick))
    return sorted(found.values(), key=lambda one: one.after_ns / max(1, one.before_ns))


def is_too_long(record: Record) -> bool:
    """Tell whether the model would take minutes for the block."""
    return len(record.slices) > MOST or sum(one.groups for one in record.slices) > MOST_GROUPS


def is_of_several(record: Record) -> bool:
    """Tell whether the block ran on several devices, which the emulator does not support."""
    return any(one.device > 0 for one in record.slices)


def _model(record: Record) -> _Model:
    slices = checked([one._asdict() for one in record.slices])
    trace = of_slices(slices, record.title or "block", ITEMS)
    about = record.about
    lanes = max(1, about.lanes)
    base = MACHINES["cpu2" if about.is_cpu or not about.device else "h200-acs_cl"]
    units = about.units or base.gpu.units
    most = base.gpu.threads
    upstream, local = (
        _upstream(record, record.edges),
        {one.name: one.local_bytes for one in about.kernels},
    )
    entries = [
        one._replace(
            items=min(one.items, most),
            upstream=upstream[one.number],
            segments=len(one.reads) + len(one.writes),
            local_bytes=min(local.get(one.name, 0), base.gpu.local_bytes) * (one.kind == KERNEL),
            reads=(),
            writes=(),
        )
        for one in trace.entries
    ]
    trace = trace._replace(entries=entries, edges="upstream")
    name = f"{base.name} with {units} units"
    machine = base._replace(name=name, gpu=base.gpu._replace(units=units))
    policy = {"serial": "serial", "device": "on_device"}.get(about.backend, f"streams(S={lanes})")
    if about.backend == "out_of_order":
        lanes, policy = 32, "streams(S=32)"
    return _Model(trace, machine, policy, lanes, about.window)


def _upstream(record: Record, edges: Edges) -> dict[int, tuple[int, ...]]:
    """Return the upstream of each launch, by positions from 1, as the emulator numbers them."""
    places = {one.number: place for place, one in enumerate(record.slices, 1)}
    return {
        places[number]: tuple({places[edge.upstream] for edge in all_ if edge.upstream in places})
        for number, all_ in edges.items()
    }


def _split(one: Entry, units: int) -> Entry:
    """Split the work of an entry into as many groups as there are units."""
    if one.kind != KERNEL or one.groups >= units:
        return one
    each = max(1, one.total_ns * one.groups // units)
    return one._replace(groups=units, group_ns=each, total_ns=0)


def _changed(model: _Model, record: Record, finding: Finding) -> tuple[str, Trace] | None:
    """Return a finding's change as text, and the trace with it."""
    if finding.change == "no waits":
        return "no waits before the end", model.changed(lambda one: one._replace(waits=()))
    if finding.change == "no host tasks":
        return "host tasks that take no time", model.changed(
            lambda one: one._replace(total_ns=1) if one.kind == HOST else one
        )
    if finding.change == "no transfers":
        return "transfers that take no time", model.changed(
            lambda one: one if one.kind in (KERNEL, HOST) else one._replace(total_ns=1)
        )
    if finding.change == "split":
        return f"{finding.name} split over all units", model.changed(
            lambda one: _split(one, model.machine.gpu.units) if one.name == finding.name else one
        )
    if finding.edges is not None:
        left = _upstream(record, finding.edges)
        return f"without such edges: {finding.kind} of {finding.name}", model.changed(
            lambda one: one._replace(upstream=left[one.number])
        )
    return None
