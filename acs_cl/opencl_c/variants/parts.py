"""A variant of one kernel for a part of a launch, which is launched with a global offset.

In: a program's source and options, and a kernel. Out: what the kernel is launched from, or why it
has to be launched whole. OpenCL's ids of work-items count from the offset on, and ids of groups do
not. So a kernel that asks for the latter gets them from a function that adds the groups before.

Invariant: what a kernel learns in a part of a launch is what it learns in the launch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import pyopencl as cl

from acs_cl.opencl_c.parse import clang
from acs_cl.opencl_c.parse.clang import CannotParse
from acs_cl.opencl_c.parse.preprocess import unit_with
from acs_cl.opencl_c.variants.guards import reached

_GROUPS = """\
size_t acs_group_id(uint d) { return get_group_id(d) + get_global_offset(d) / get_local_size(d); }
#define get_group_id acs_group_id
"""
_CHANGED = re.compile(r"get_(num_groups|global_size|global_offset|\w+_linear_id)$")
"""What a part has another one of, and nothing brings back."""
_GROUPED = re.compile(
    r"get_(group|local|enqueued|sub_group|num_sub)\w+|work_group_\w+|(intel_)?sub_group_\w+|barrier"
)
"""What depends on how large groups are."""


class OfParts(NamedTuple):
    """How parts of a launch are launched."""

    source: str
    """From what, if not from the kernel itself."""
    reason: str
    """Why they cannot be."""
    groups: str
    """What they ask for that depends on how large groups are."""


def of_parts(source: str, options: Sequence[str], device: cl.Device | None, kernel: str) -> OfParts:
    """Find out whether parts of a launch know what the whole would."""
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
