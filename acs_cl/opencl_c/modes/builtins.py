"""What the built-in functions of OpenCL C do to the memory that their pointer arguments point to.

In: a function's name and the number of its arguments. Out: one of '', 'r', 'w', 'rw' for each
argument, or None for a function that is not in the tables. Invariant: a name is only in a table
if the specification says so; everything else is for the caller to treat as read and written.
"""

from __future__ import annotations

import re

_LOADS = re.compile(r"vloada?(_half)?\d*$|prefetch$|wait_group_events$|printf$|get_fence$"
                    r"|(intel_)?sub_group_block_read\w*$")  # fmt: skip
# The value that is stored comes first and is no pointer; the rest of these write what they are
# given to put a second result in.
_STORES = re.compile(
    r"vstorea?(_half)?\d*(_rt[ezpn])?$|(intel_)?sub_group_block_write\w*$"
    r"|(native_|half_)?sincos$|fract$|modf$|frexp$|remquo$|lgamma_r$"
    r"|atomic_(store(_explicit)?|init)$"
)
_UPDATES = re.compile(
    r"atom(ic)?_(add|sub|xchg|inc|dec|cmpxchg|min|max|and|or|xor)$"
    r"|atomic_(exchange|fetch_\w+|compare_exchange_(strong|weak)|flag_test_and_set|flag_clear)"
    r"(_explicit)?$"
)
_COPIES = re.compile(r"async_work_group_(strided_)?copy$")
_TILE_COPIES = re.compile(r"async_work_group_copy_[23]D[23]D$")
_SAME_POINTER = frozenset({"to_global", "to_local", "to_private"})
_ATOMIC_LOADS = re.compile(r"atomic_load(_explicit)?$")


def effects(name: str, count: int) -> tuple[str, ...] | None:
    """What a built-in does to each of its `count` arguments' memory, None if it is not known."""
    if _LOADS.match(name) or _ATOMIC_LOADS.match(name):
        return ("r",) * count
    if _STORES.match(name):
        return ("w",) * count
    if _UPDATES.match(name):
        return ("rw",) * count
    if _COPIES.match(name):
        return ("w", "r", *("",) * (count - 2))
    if _TILE_COPIES.match(name):
        return ("w", "", "r", *("",) * (count - 3))
    return None


def returns_its_argument(name: str) -> bool:
    """Whether a built-in only converts a pointer."""
    return name in _SAME_POINTER


def copies(name: str) -> bool:
    """Whether a built-in copies memory as it is, with whatever addresses are in it."""
    return bool(_COPIES.match(name) or _TILE_COPIES.match(name))
