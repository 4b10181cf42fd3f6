"""Compare two runs of ``acs-cl bench``: changes beyond the spread of both.

Input: documents as `contest.measure` makes them. Output: rows, and text for a terminal.
"""

from __future__ import annotations

from typing import Any

from acs_cl.benchmarks.figures.bench_tables import Document, table


def moved(old: Document, new: Document) -> list[list[Any]]:
    """Return contestants that are faster or slower than before, beyond the spread of both: the
    quartiles of their speed-ups do not meet."""
    rows: list[list[Any]] = []
    for workload, entry in new["workloads"].items():
        before = old["workloads"].get(workload)
        if before is None:
            continue
        for name, row in entry["rows"].items():
            was = before["rows"].get(name)
            if was is None:
                continue
            one, other = was["speedup"], row["speedup"]
            if other["p25"] > one["p75"] or other["p75"] < one["p25"]:
                way = "faster" if other["median"] > one["median"] else "slower"
                rows.append([workload, name, one["median"], other["median"], way])
        for name in sorted(set(entry["failed"]) ^ set(before["failed"])):
            rows.append(
                [workload, name, None, None, "fails" if name in entry["failed"] else "runs"]
            )
    return rows


def comparison(old: Document, new: Document) -> str:
    """Return the changes as a table, after the parts that cannot be compared."""
    parts = []
    before, now = (f"{one['machine']['device']}, driver {one['machine']['driver']}"
                   for one in (old, new))  # fmt: skip
    if before != now:
        parts.append(f"The old result is one of another device: {before}, not {now}.")
    strange = [name for name in new["workloads"] if name not in old["workloads"]]
    if strange:
        parts.append(f"Not in the old result: {', '.join(strange)}.")
    rows = moved(old, new)
    head = ["workload", "contestant", "speed-up before", "now", ""]
    parts.append(table(rows, head) if rows else "Nothing moved beyond the spread.")
    return "\n".join(parts)
