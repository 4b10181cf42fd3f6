"""Figures of the core: hazard checks, launches for the scheduler, the host backends.

Input: a device. Output: the figures of `checks`, `recording`, `views` and `enqueue`, which describe
them, in one run. Other figures of the core are in `queue` (unmodified programs), `taskbench`,
`overlap` and `memory` (a million launches).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acs_cl import core
from acs_cl.benchmarks.suite.measures import checks, enqueue, recording, views
from acs_cl.benchmarks.suite.settings import Settings


def measure(settings: Settings) -> dict[str, Any]:
    """Measure one after another: comparisons are within each of them."""
    host = enqueue.measure(settings)
    record = recording.measure(settings)
    on_views = views.measure(settings)
    check_ns = checks.measure(settings)
    rows = {"check_ns": check_ns, "record": record, "views": on_views, "host": host}
    return {"core": core.ABOUT, "rows": rows}


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare the results with their bars."""
    rows = result["rows"]
    return [
        *checks.targets_of(rows["check_ns"]),
        *recording.targets_of(machine["kind"] == "CPU", rows["record"]),
        *views.targets_of(rows.get("views", {})),
        *enqueue.targets_of(rows["host"]),
    ]
