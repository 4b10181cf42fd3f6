"""Workloads: a module for each family, with the NumPy reference that results are checked against.

In: names. Out: `Workload` records, of which `catalogue` has all.
"""

from __future__ import annotations

from importlib import import_module

from acs_cl.benchmarks.workloads.workload import Workload

MODULES = (
    *("pipelines", "images", "links", "learning", "branches"),
    *("rigid", "static", "dynamic", "synthetic"),
)


def catalogue() -> dict[str, Workload]:
    """All workloads by name, families one after the other."""
    found: dict[str, Workload] = {}
    for module in MODULES:
        for workload in import_module(f"acs_cl.benchmarks.workloads.{module}").WORKLOADS:
            found[workload.name] = workload
    return found
