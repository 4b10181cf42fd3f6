"""Statistics of a runtime: counters kept by the stages, put together on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import core

if TYPE_CHECKING:
    from ..runtime import Runtime


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
