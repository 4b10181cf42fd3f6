"""The text of a scheduler: its kernels, the functions that it can call, and the switch over them.

Input: a memory-model tier, a group size, device functions. Output: OpenCL C and build options.
Pure. Invariant: the place of a body in the list is its number in the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..opencl_c.kernel_files import kernel_source
from ..opencl_c.registers import VERBOSE
from ..records import NamedTuple
from . import layout
from .children import LEAST, MOST_LEAST, ROOM, Room

TIERS = {"c11": "ACS_TIER_C11", "ptx": "ACS_TIER_PTX"}


class Body(NamedTuple):
    """A function that the switch calls. `tiled`: its items may be cut anywhere."""

    symbol: str
    tiled: bool


def scheduler_source(
    tier: str,
    group: int,
    arena_bytes: int,
    args_bytes: int,
    bodies: Sequence[Body],
    texts: Sequence[str],
    steady: bool,
    children: Sequence[str] = (),
    room: Room = ROOM,
    places: int = layout.MOST_TASKS,
) -> str:
    """Return the program.

    - `group`: work-items of its groups.
    - `arena_bytes`: local memory of the bodies.
    - `steady`: the compiler turns work-items into loops.
    - `children`: functions whose items become tasks, numbered behind the bodies.
    - `room`: room for children.
    - `places`: groups that run at the same time at most.
    """
    numbers = {child: number for number, child in enumerate(children, len(bodies))}
    space = "__global" if group == 1 else "__local"
    macros = {
        TIERS[tier]: "",
        "ACS_GROUP": group,
        "ACS_BODIES": len(bodies) + len(numbers),
        "ACS_SPAWNS": int(bool(numbers)),
        "ACS_POOL_UNITS": f"{room.units}u",
        "ACS_CHILD_SLOTS": f"{room.slots}u",
        "ACS_LISTED": f"{layout.LISTED}u",
        "ACS_LEAST": f"{LEAST}u",
        "ACS_MOST_LEAST": f"{MOST_LEAST}u",
        "ACS_PLACES": f"{places}u",
        "ACS_MOST_CHILD_TILES": f"{layout.MOST_CHILD_TILES}u",
        **{f"{child}_number": f"{number}u" for child, number in numbers.items()},
        "ACS_ARENA": max(16, -(-arena_bytes // 16) * 16),
        "ACS_ARGS_WORDS": max(16, -(-args_bytes // 16) * 4),
        "ACS_BIG_ARGS": int(args_bytes > 64),
        "ACS_STEADY": int(steady and group > 1),
        "ACS_RECORD": space,
        "ACS_BLOB": space,
        "ACS_CONTEXT": "const acs_context *acs_ctx",
        "ACS_PASS": "acs_ctx",
    }
    parts = [
        *(f"#define {name} {value}" for name, value in macros.items()),
        *(kernel_source(name) for name in ("memory_model.h", "descriptor.h", "context.h")),
        *texts,
        kernel_source("work.h"),
        _switch(bodies, numbers),
        kernel_source("scheduler.cl"),
    ]
    return "\n".join(parts)


def _switch(bodies: Sequence[Body], children: Mapping[str, int]) -> str:
    cases = "\n".join(
        [
            f"    case {number}: ACS_{'TILED' if body.tiled else 'GROUPED'}({body.symbol}) break;"
            for number, body in enumerate(bodies)
        ]
        + [f"    case {number}: ACS_CHILD({child}) break;" for child, number in children.items()]
    )
    return (
        "inline void acs_run(uint body, const acs_tile *tile, acs_context context, uint lane,\n"
        "                    ACS_BLOB const uchar *blob, __local uchar *arena) {\n"
        f"    switch (body) {{\n{cases}\n    }}\n}}\n"
    )


def build_options(tier: str, options: Sequence[str]) -> list[str]:
    """Return the build options of the bodies' programs, with the language version that the tier
    needs. Warnings are off where compilers print them on the terminal: a user cannot mend this
    text. NVIDIA's compiler tells registers in the same way, and only when asked."""
    others = [word for word in options if not word.startswith("-cl-std=")]
    asked = [word for word in options if word.startswith("-cl-std=")]
    if tier == "c11":
        return [*others, "-cl-std=CL3.0", "-w"]
    return [*others, *asked, VERBOSE if tier == "ptx" else "-w"]
