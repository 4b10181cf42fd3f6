"""Statistics of a runtime: the counters of its stages, combined on request."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pyopencl as cl

from .. import core
from ..kernel import registers_of
from ..records import Report
from .about import About, Needs

if TYPE_CHECKING:
    from ..launch.engine import Engine
    from .record import Traced


def report(engine: Engine) -> Report:
    """Return all statistics, in plain values. Called under the runtime's lock."""
    hazards, table, backend = engine.hazards, engine.table, engine.backend
    lanes = backend.lane_counts()
    report: Report = {
        "backend": backend.name,
        "core": core.ABOUT,
        "issue": engine.options.issue,
        "why": engine.plan.why,
        "launches": engine.number,
        "replays": engine.counts.replays,
        "segments": engine.counts.segments,
        "bypassed": engine.counts.bypassed + sum(one.passed for one in engine.bypasses),
        "retired": engine.number - len(table),
        "failed": engine.failures.count,
        "edges": dict(hazards.edges),
        "edges_pruned": hazards.pruned,
        "event_waits": lanes.waits,
        "live_spans": hazards.spans,
        "window": {
            "size": engine.window,
            "occupied": table.occupied,
            "held": table.held,
            "most_occupied": table.most,
        },
        "backlog_waits": engine.counts.backlog_waits,
        "calls_not_plain": engine.counts.not_plain,
        "lanes": dict(sorted(lanes.used.items())),
        "on_one_lane": lanes.on_one_lane,
        "by_host": 0 if backend.core_queues is None else backend.core_queues.by_host,
        "memory": {
            "kind": engine.plan.memory,
            "reserved_bytes": engine.store.reserved_bytes,
            "in_use_bytes": engine.store.in_use_bytes,
        },
    }
    if several := engine.about_devices():
        report["devices"] = several
    about = backend.about()
    if about:
        report["emulated" if backend.name == "emulated" else "scheduler"] = about
    if engine.checker is not None:
        report["check"] = engine.checker.report()
    if engine.tracer is not None:
        report["timed"] = engine.tracer.summary()
    return report


def about(engine: Engine, kernels: tuple[Needs, ...]) -> About:
    """Return facts about a runtime, without the block's times. `kernels`: the result of `needs`."""
    backend, checker = engine.backend, engine.checker
    counts = backend.lane_counts()
    said = checker.report() if checker is not None else {}
    return About(
        backend=backend.name,
        device=engine.device.name.strip(),
        why=engine.plan.why,
        issue=engine.options.issue,
        window=engine.window or 0,
        full=engine.table.full,
        replayed=engine.counts.replayed,
        lanes=counts.lanes,
        on_one_lane=counts.on_one_lane,
        units=engine.device.max_compute_units,
        is_cpu=bool(engine.device.type & cl.device_type.CPU),
        checks=said.get("modes", ""),
        found=tuple(said.get("said", ())),
        local_bytes=engine.device.local_mem_size,
        most_items=engine.device.max_work_group_size,
        kernels=kernels,
        registers=_registers(engine.device),
    )


def needs(engine: Engine) -> tuple[Needs, ...]:
    """Return the needs of kernels, by their names. NVIDIA's compiler is asked for registers, once
    for each program. So the runtime's lock has to be free."""
    asked = cl.kernel_work_group_info
    found: dict[str, Needs] = {}
    for kernel in list(engine.kernels):
        told = []
        for what in (asked.LOCAL_MEM_SIZE, asked.PRIVATE_MEM_SIZE, asked.WORK_GROUP_SIZE):
            told.append(0)
            with contextlib.suppress(cl.Error):  # a driver that does not tell
                told[-1] = int(kernel.native.get_work_group_info(what, engine.device))
        before = found.get(kernel.name, Needs(kernel.name))
        found[kernel.name] = Needs(
            kernel.name,
            max(told[0], before.local_bytes),
            max(told[1], before.private_bytes),
            min(told[2] or before.most_items, before.most_items or told[2]),
            max(registers_of(kernel), before.registers),
        )
    return tuple(sorted(found.values()))


def _registers(device: cl.Device) -> int:
    """Return the registers of a compute unit. 0: not known."""
    try:
        return int(device.registers_per_block_nv)
    except (cl.Error, AttributeError):
        return 0


def traced(engine: Engine) -> Traced:
    """Copy the trace of a runtime, which may go on afterwards."""
    from .trace import timeline

    engine.gather_runs()
    trace, kernels = timeline(engine.tracer), needs(engine)
    with engine.lock:
        about_it = about(engine, kernels)._replace(noted=trace.found)
        return tuple(trace.slices), tuple(trace.waits), about_it
