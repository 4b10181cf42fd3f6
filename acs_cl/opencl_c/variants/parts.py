"""A variant of one kernel for a part of a launch, which is launched with a global offset.

Input: a program's source and options, and a kernel. Output: the source of the parts, or why the
kernel has to be launched whole. OpenCL's ids of work-items count from the offset on, but ids of
groups do not. So a kernel that asks for group ids gets them from a function that adds the groups
before.

Invariant: a kernel sees the same ids and sizes in a part as in the whole launch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyopencl as cl

from acs_cl.opencl_c.parse import clang
from acs_cl.opencl_c.parse.clang import CannotParse
from acs_cl.opencl_c.parse.preprocess import unit_with
from acs_cl.opencl_c.variants.guards import reached

from ...records import NamedTuple

_GROUPS = """\
size_t acs_group_id(uint d) { return get_group_id(d) + get_global_offset(d) / get_local_size(d); }
#define get_group_id acs_group_id
"""
_CHANGED = re.compile(r"get_(num_groups|global_size|global_offset|\w+_linear_id)$")
"""Calls whose values differ in a part of a launch and cannot be corrected."""
_GROUPED = re.compile(
    r"get_(group|local|enqueued|sub_group|num_sub)\w+|work_group_\w+|(intel_)?sub_group_\w+|barrier"
)
"""Calls that depend on the group size."""


class OfParts(NamedTuple):
    """The source and properties of a launch's parts."""

    source: str
    """Their source, if not the kernel's own."""
    reason: str
    """Why there cannot be parts, or ''."""
    groups: str
    """A call in them that depends on the group size, or ''."""


def of_parts(source: str, options: Sequence[str], device: cl.Device | None, kernel: str) -> OfParts:
    """Find out whether parts of a launch see the same values as the whole."""
    try:
        with clang.LOCK:
            unit = unit_with(source, options, device, kernel)
            functions = reached(unit, kernel)
    except CannotParse as error:
        return OfParts("", f"its source cannot be read: {error.reason}", "")
    calls = {name for function in functions.values() for name, _ in function.calls}
    for name in sorted(calls - functions.keys()):
        if _CHANGED.match(name) and name != "get_local_linear_id":
            return OfParts("", f"it calls {name}", "")
    groups = next(filter(_GROUPED.match, sorted(calls)), "")
    return OfParts(f"{_GROUPS}{unit.source}" if "get_group_id" in calls else "", "", groups)
