"""Traps: hostile kernels, each of which tempts the inference or a rewritten form to be wrong.

In: nothing. Out: `all_traps`, a list of `Trap`s from the modules beside this one, one a family.
What a kernel really touches is measured on plain PyOpenCL (`measuring`), and compared with what a
launch says and with what each rewritten form computes (`trying`), in processes of their own
(`processes`).
"""

from __future__ import annotations

import importlib

from traps.case import Trap

FAMILIES = (
    "pointers",
    "integers",
    "control",
    "layout",
    "calls",
    "builtin",
    "forms",
    "parameters",
    "directives",
    "macro",
    "spelling",
    "applied",
    "grids",
    "mixed",
    "widths",
    "naming",
    "places",
    "parts",
    "images",
)


def all_traps() -> list[Trap]:
    """Every trap, in the order of the families. Names are unique."""
    traps = [
        trap._replace(name=f"{family}/{trap.name}")
        for family in FAMILIES
        for trap in importlib.import_module(f"traps.{family}").TRAPS
    ]
    names = [trap.name for trap in traps]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"traps of the same name: {sorted(twice)}")
    return traps
