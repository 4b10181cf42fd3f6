"""How many launches of a workload can be in flight at once, from the bytes they touch.

In: a workload's program, run on a `Watched` runtime. Out: its launches and `width`, the largest
number of launches of which none comes after another, however far.
"""

from __future__ import annotations

from typing import Any

import acs_cl as acs


class Watched:
    """A platform that keeps the handles of all kernels launched."""

    def __init__(self, runtime: acs.Runtime) -> None:
        self.runtime = runtime
        self.handles: list[acs.Handle] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.runtime, name)

    def build(self, *args: Any, **options: Any) -> Any:
        return _Program(self.runtime.build(*args, **options), self.handles)


class _Program:
    def __init__(self, program: Any, handles: list[acs.Handle]) -> None:
        self._program, self._handles = program, handles

    def __getattr__(self, name: str) -> Any:
        kernel = getattr(self._program, name)

        def launch(*args: Any, **declared: Any) -> acs.Handle:
            handle: acs.Handle = kernel(*args, **declared)
            self._handles.append(handle)
            return handle

        return launch


def width(runtime: acs.Runtime, handles: list[acs.Handle]) -> int:
    """By Dilworth's theorem: launches less the pairs of a largest matching along the order."""
    after: list[set[int]] = []  # of each launch, all that come after it
    for number in reversed(range(len(handles))):
        mine: set[int] = set()
        for later in range(number + 1, len(handles)):
            if later not in mine and runtime.explain(handles[number], handles[later]).ordered:
                mine |= {later} | after[len(handles) - 1 - later]
        after.append(mine)
    after.reverse()
    matched: dict[int, int] = {}

    def augment(number: int, seen: set[int]) -> bool:
        for later in after[number] - seen:
            seen.add(later)
            if later not in matched or augment(matched[later], seen):
                matched[later] = number
                return True
        return False

    return len(handles) - sum(augment(number, set()) for number in range(len(handles)))
