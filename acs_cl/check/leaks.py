"""The check `leaks`: arrays and handles that are alive when their runtime closes.

Input: a runtime, and the lines at which its arrays and launches were made. Output: a sentence, or
nothing. The garbage collector is asked for live objects, so the running program keeps no list.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeGuard

from ..handle import Handle
from ..memory.array import Array

if TYPE_CHECKING:
    from ..launch.engine import Engine

MOST = 10
"""Most lines of each kind."""

SITES = 1 << 14
"""So many launches are remembered without a look at whose handles are gone."""


class Sites(dict[int, str]):
    """The lines at which launches were made, by their numbers, as long as there are handles."""

    def __init__(self) -> None:
        super().__init__()
        self._most = SITES

    def trim(self, engine: Engine) -> None:
        """Forget launches whose handles are gone, if there are many. Called without any lock: what
        another thread lets go of meanwhile ends here."""
        if len(self) < self._most:
            return
        known = list(self)  # later ones may have no handle yet
        alive = {one.number for one in gc.get_objects() if _is_handle(one, engine)}
        for number in known:
            if number not in alive:
                self.pop(number, None)
        self._most = max(SITES, 2 * len(self))


def _is_handle(one: object, engine: Engine) -> TypeGuard[Handle]:
    return issubclass(type(one), Handle) and one.engine is engine  # type: ignore[attr-defined]


def leaks(engine: Engine, arrays: Mapping[int, str], launches: Mapping[int, str]) -> str:
    """Describe the live objects. `arrays`, `launches`: the lines at which they were made."""
    bases: dict[int, Array] = {}  # the largest view of each: the collector's order means nothing
    handles: list[Handle] = []
    for one in gc.get_objects():
        kind = type(one)
        if kind is Array and one.engine is engine and one.base is not None:
            known = bases.setdefault(one.base.number, one)
            if one.nbytes > known.nbytes:
                bases[one.base.number] = one
        elif _is_handle(one, engine):
            handles.append(one)
    lines = []
    if bases:
        total = sum(array.base.nbytes for array in bases.values() if array.base is not None)
        many = "1 array" if len(bases) == 1 else f"{len(bases)} arrays"
        is_ = "is" if len(bases) == 1 else "are"
        lines.append(f"{many} ({total:,} bytes) {is_} alive at close:")
        for number in sorted(bases)[:MOST]:
            one = bases[number]
            lines.append(f"  {one.shape} {one.dtype}, made at {arrays.get(number, '?')}")
        if len(bases) > MOST:
            lines.append(f"  and {len(bases) - MOST} more")
    if handles:
        handles.sort(key=lambda one: one.number)
        many = "1 handle is" if len(handles) == 1 else f"{len(handles)} handles are"
        lines.append(f"{many} alive at close:")
        for handle in handles[:MOST]:
            site = launches.get(handle.number, "?")
            lines.append(f"  launch {handle.number} ({handle.name}), made at {site}")
        if len(handles) > MOST:
            lines.append(f"  and {len(handles) - MOST} more")
    return "\n".join(lines)
