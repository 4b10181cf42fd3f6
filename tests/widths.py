"""How many launches of a workload can be in flight at once.

In: a workload's program, run on a `Watched` runtime, or what comes after what. Out: its launches,
and the largest number of them of which none comes after another, however far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import acs_cl as acs
from acs_cl.benchmarks.workloads.inference import Inference, Model


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
    """From the bytes that launches touch."""
    return widest(len(handles), lambda a, b: runtime.explain(handles[a], handles[b]).ordered)


def edges_of(runtime: acs.Runtime, model: Model) -> list[list[int]]:
    """For each layer of a network, the earlier layers that the runtime has it follow."""
    platform = Watched(runtime)
    Inference(platform, model).step()
    handles = platform.handles[1:-1]  # less the copies of image and result
    return [
        [place for place, before in enumerate(handles[:at]) if runtime.explain(before, one).ordered]
        for at, one in enumerate(handles)
    ]


def widest(count: int, ordered: Callable[[int, int], bool]) -> int:
    """By Dilworth's theorem: all, less the pairs of a largest matching along the order. Of two that
    are `ordered` the first one has the smaller number."""
    after: list[set[int]] = [set() for _ in range(count)]  # of each, all that come after it
    for number in reversed(range(count)):
        for later in range(number + 1, count):
            if later not in after[number] and ordered(number, later):
                after[number] |= {later} | after[later]
    matched: dict[int, int] = {}

    def augment(number: int, seen: set[int]) -> bool:
        for later in after[number] - seen:
            if later in seen:
                continue
            seen.add(later)
            if later not in matched or augment(matched[later], seen):
                matched[later] = number
                return True
        return False

    return count - sum(augment(number, set()) for number in range(count))
