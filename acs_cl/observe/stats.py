"""Statistics of a runtime: counters kept by the stages, put together on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyopencl as cl

from .. import core
from .about import About

if TYPE_CHECKING:
    from ..runtime import Runtime
    from .record import Traced


class Stats:
    """The counters that no stage keeps itself."""

    def __init__(self) -> None:
        self.backlog_waits = 0
        self.replays = 0
        self.segments = 0
        """Launches that were a segment of a replay."""
        self.straight = 0
        """Commands of queues that went to the driver's own queue."""
        self.not_plain = 0
        """Calls whose arguments or sizes the generated code did not take."""

    def report(self, runtime: Runtime) -> dict[str, Any]:
        """Everything, in plain values. Called under the runtime's lock."""
        hazards, window, backend = runtime._hazards, runtime._window, runtime._backend
        report: dict[str, Any] = {
            "backend": backend.name,
            "core": core.ABOUT,
            "issue": runtime.options.issue,
            "why": runtime.plan.why,
            "launches": runtime._number,
            "replays": self.replays,
            "segments": self.segments,
            "straight": self.straight + sum(one.passed for one in runtime._sections),
            "retired": runtime._number - len(runtime._launches),
            "failed": runtime._failures.count,
            "edges": dict(hazards.edges),
            "edges_pruned": hazards.pruned,
            "event_waits": backend.waits,
            "live_spans": hazards.spans,
            "window": {
                "size": window.size,
                "occupied": window.occupied,
                "held": window.held,
                "most_occupied": max(window.most, runtime._ledger.most),
            },
            "backlog_waits": self.backlog_waits,
            "calls_not_plain": self.not_plain,
            "lanes": dict(sorted(backend.used.items())),
            "memory": {
                "kind": runtime.plan.memory,
                "reserved_bytes": runtime._store.reserved_bytes,
                "in_use_bytes": runtime._store.in_use_bytes,
            },
        }
        about = backend.about()
        if about:
            report["emulated" if backend.name == "emulated" else "scheduler"] = about
        if runtime._checker is not None:
            report["check"] = runtime._checker.report()
        if runtime._trace is not None:
            report["timed"] = runtime._trace.summary()
        return report


def about(runtime: Runtime) -> About:
    """Ask a runtime. The block has no times yet."""
    window, backend, checker = runtime._window, runtime._backend, runtime._checker
    said = checker.report() if checker is not None else {}
    return About(
        backend=backend.name,
        device=runtime.device.name.strip(),
        why=runtime.plan.why,
        issue=runtime.options.issue,
        window=window.size or 0,
        full=window.full,
        lanes=len(backend.queues),
        units=runtime.device.max_compute_units,
        is_cpu=bool(runtime.device.type & cl.device_type.CPU),
        checks=said.get("modes", ""),
        found=tuple(said.get("said", ())),
    )


def traced(runtime: Runtime) -> Traced:
    """Copy what a runtime traced, which may go on afterwards."""
    trace = runtime.trace
    with runtime._lock:
        return tuple(trace.slices), tuple(trace.waits), about(runtime)
