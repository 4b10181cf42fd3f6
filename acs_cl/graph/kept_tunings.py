"""What tuning has found, kept on disk by device, beside the doctor's measurements.

Input: the cuts of kernels and the orders of graphs, from `graph.tune()`. Output: the same for later
launches with `bands="auto"` and graphs with `order="auto"`. A kernel is known by its source,
options, sizes, numbers and bytes, a graph by its kernels and edges. What cannot be read or believed
counts as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyopencl as cl

from ..access.cuts import AUTO, WORDS, Cut, Policy, asked
from ..access.policies import policy
from ..devices import key
from ..host import files
from ..host.digest import digest
from ..launch.commands import KernelCommand
from ..records import Access, Command, Pair, Report
from ..scheduler.orders import ORDERS
from .arranging import tasks_of
from .profile import name_of

FORMAT = 1
_CUTS, _ORDERS = "bands", "orders"
MOST_KEPT = 4096
"""Kernels at a size whose cuts are kept, and graphs whose orders are."""

LANES = "lanes"
WHOLE = "it was tuned, and whole launches were faster on this device"
ON_LANES = "it was tuned, and lanes were faster than the scheduler on this device"


def keep_cuts(cuts: Mapping[str, str]) -> None:
    """Keep cuts, by the file of the kernel at a size."""
    for file, said in cuts.items():
        files.keep(_CUTS, file, FORMAT, {"bands": said})
    files.trim(_CUTS, MOST_KEPT)


def keep_order(device: cl.Device, launches: Sequence[Pair], order: str) -> None:
    """Keep the order of a graph."""
    files.keep(_ORDERS, _file_of_graph(device, launches), FORMAT, {"order": order})
    files.trim(_ORDERS, MOST_KEPT)


def tuned_order(device: cl.Device, launches: Sequence[Pair]) -> str:
    """Return the order that is kept for a graph. Program order, if there is none."""
    file = _file_of_graph(device, launches)
    order = files.kept(_ORDERS, file, FORMAT, lambda found: str(found["order"]))
    return order if order in ORDERS else "first_in"


def _file_of_graph(device: cl.Device, launches: Sequence[Pair]) -> str:
    names = [name_of(device, *launch) or launch[0].name for launch in launches]
    tasks = tasks_of(launches)
    return digest(repr((key(device), names, tasks.upstream, tasks.downstream)), 32) + ".json"


def bands_of(said: str) -> int | str | Policy:
    """Return a cut as programs write it, from its text."""
    return int(said) if said.isdigit() else policy(said)


def as_tuned(device: cl.Device, command: Command, access: Access) -> Command:
    """Cut a launch in the way that was tuned on this device, if the library chooses the cut."""
    file = name_of(device, command, access)
    said = files.kept(_CUTS, file, FORMAT, _read) if file else None
    if not said or type(command) is not KernelCommand or command.cut is None:
        return command
    if said in WORDS:
        lane = ON_LANES if said == LANES else ""
        return command._replace(cut=Cut(AUTO, None, WHOLE), lane=lane)
    return command._replace(cut=command.cut._replace(bands=asked(bands_of(said))))


def _read(kept: Report) -> str:
    """Read a kept cut. Raises if it is none."""
    said = str(kept["bands"])
    asked(bands_of(said))
    return said
