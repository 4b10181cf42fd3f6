"""What the native core is held to: hazard checks, launches for the scheduler, the host backends.

In: a device. Out: the figures of `checks`, `recording`, `views` and `enqueue`, which say what
each of them is, in one run. What else is asked of the core is measured by `queue` (unmodified
programs), `taskbench`, `overlap` and `memory` (a million launches).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acs_cl import core
from acs_cl.benchmarks.suite.measures import checks, enqueue, recording, views
from acs_cl.benchmarks.suite.settings import Settings


def measure(settings: Settings) -> dict[str, Any]:
    """One after another: what is compared is within each of them."""
    host = enqueue.measure(settings)
    record = recording.measure(settings)
    on_views = views.measure(settings)
    check_ns = checks.measure(settings)
    rows = {"check_ns": check_ns, "record": record, "views": on_views, "host": host["rows"]}
    return {"core": core.ABOUT, "rows": rows}


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What was measured beside what it has to reach."""
    rows = result["rows"]
    return [
        *checks.targets_of(rows["check_ns"]),
        *recording.targets_of(machine["kind"] == "CPU", rows["record"]),
        *views.targets_of(rows.get("views", {})),
        *enqueue.targets_of(rows["host"]),
    ]
