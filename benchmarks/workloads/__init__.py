"""Workloads: a module for each family, with the NumPy reference that results are checked against.

Input: names. Output: `Workload` records, of which `catalogue` has all.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from acs_cl import UsageError
from acs_cl.benchmarks.workloads.workload import Workload

MODULES = (
    *("pipelines", "images", "links", "learning", "branches"),
    *("rigid", "static", "dynamic", "pairs", "networks", "synthetic"),
)


def catalogue() -> dict[str, Workload]:
    """Return all workloads by name, one family after the other."""
    found: dict[str, Workload] = {}
    for module in MODULES:
        for workload in import_module(f"acs_cl.benchmarks.workloads.{module}").WORKLOADS:
            found[workload.name] = workload
    return found


def chosen(names: Iterable[str]) -> list[Workload]:
    """Give workloads by name or family, in the order of the catalogue; without names, all."""
    there, names = catalogue(), set(names)
    families = {workload.family for workload in there.values()}
    for name in names - there.keys() - families:
        raise UsageError(
            f"no workload or family is called {name!r}; there are the families "
            f"{', '.join(sorted(families))} and the workloads {', '.join(there)}"
        )
    return [one for one in there.values() if not names or {one.name, one.family} & names]
