"""OpenCL C's built-in functions: what they do to memory, and where work-items meet in them.

Input: a function's name and the number of its arguments. Output: one of '', 'r', 'w', 'rw' for the
memory of each argument, or None for a function that is not in the tables. Invariant: the tables
only have facts of the specification. The caller treats any other function as reading and writing
everything.
"""

from __future__ import annotations

import re

_LOADS = re.compile(r"vloada?(_half)?\d*$|prefetch$|wait_group_events$|printf$|get_fence$"
                    r"|(intel_)?sub_group_block_read\w*$")  # fmt: skip
# The stored value comes first and is no pointer. The other arguments are pointers that get a second
# result.
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
_MEETINGS = re.compile(r"\w*barrier$|(?!get_)\w*(work|sub)_group_|wait_group_events$")


def effects(name: str, count: int) -> tuple[str, ...] | None:
    """Return the effects on each of the `count` arguments' memory. None: not known."""
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


def meets(name: str) -> bool:
    """Tell whether work-items of a group come together in a built-in: all of them call it, or
    none."""
    return bool(_MEETINGS.match(name))


def returns_its_argument(name: str) -> bool:
    """Tell whether a built-in only converts a pointer."""
    return name in _SAME_POINTER


def copies(name: str) -> bool:
    """Tell whether a built-in copies memory as it is, including addresses in it."""
    return bool(_COPIES.match(name) or _TILE_COPIES.match(name))
