"""Define a workload: a computation in three sizes, its program, and its reference in NumPy.

Input: a platform, a size and a seed. Output: a `Run`, whose `step` launches one unit of the
computation (the steps of a simulation, one inference, one pipeline), and `Results` to compare with
those of `reference`. The program is the same text for every platform: an `acs_cl.Runtime` with any
backend, or `bare.InOrder`, which is PyOpenCL by itself. It launches in program order and never
mentions hazards, queues or events. Only an `expert` does.

Invariant: the results of `step` depend on the size and the seed alone, and `reset` restores
everything that a step changes. The caller of a run calls the platform's `finish` after making it,
after `reset` and after `step`, because an expert's queues do not know of earlier work on another
queue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

Results = dict[str, np.ndarray[Any, Any]]
"""Named arrays on the host."""

T = TypeVar("T")

PRESETS = ("tiny", "small", "paper")

PART = 1 << 15
"""Elements of a large array that are worked on at a time."""


class Platform(Protocol):
    """Where a program runs. `acs_cl.Runtime` is one."""

    def build(self, source: str, options: Any = (), macros: Any = None) -> Any:
        """Build a program. Its kernels are attributes, called `(global_size, local_size,
        *args)`."""

    def array(self, values: Any, dtype: Any = None) -> Any:
        """Make an array with these values."""

    def empty(self, shape: Any, dtype: Any = np.float32) -> Any:
        """Make an array with undefined contents."""

    def zeros(self, shape: Any, dtype: Any = np.float32) -> Any:
        """Make an array of zeros."""

    def finish(self) -> None:
        """Wait for everything."""


class Run(Protocol):
    """A program that is ready: built, its arrays filled."""

    def reset(self) -> None:
        """Put back what a step changes."""

    def step(self) -> None:
        """Launch one unit."""

    def results(self) -> Results:
        """Read its results back."""


Make = Callable[[Any, Any, int], Run]
"""(platform, size, seed) -> run."""


class Workload(NamedTuple):
    """One workload. `host_decided` is its twin for platforms on which a kernel cannot take its
    decision from device memory; `expert` is written by hand with queues and events
    (`expert.Queues` is its platform)."""

    name: str
    family: str
    about: str
    presets: Mapping[str, Any]
    make: Make
    reference: Callable[[Any, int], Results]
    expert: Make | None = None
    host_decided: Make | None = None
    replayable: bool = True
    """Whether a step can be recorded and replayed: it reads nothing back in between."""
    rtol: float = 1e-4
    atol: float = 1e-5


def building_once(platform: T) -> T:
    """Let a platform return the same program for the same text from now on. Several runs on it then
    share their kernels, and what is built for these."""
    programs: dict[str, Any] = {}
    build = platform.build  # type: ignore[attr-defined]

    def built(source: str, options: Any = (), macros: Any = None) -> Any:
        key = repr((source, options, macros))
        if key not in programs:
            programs[key] = build(source, options, macros)
        return programs[key]

    platform.build = built  # type: ignore[attr-defined]
    return platform


def ready(
    kernel: Any, global_size: Sequence[int], local_size: Sequence[int] | None, *args: Any
) -> Callable[..., Any]:
    """Prepare a launch that is called many times; `when=` may come then. So a measurement has the
    cost of the launch, not of keeping its arguments."""
    made = getattr(kernel, "ready", None) or partial(partial, kernel)
    found: Callable[..., Any] = made(global_size, local_size, *args)
    return found


def differences(workload: Workload, got: Results, expected: Results) -> str:
    """Say what is wrong with results, in a sentence. Empty: they are right."""
    if got.keys() != expected.keys():
        return f"results {sorted(got)}, expected {sorted(expected)}"
    for name, right in expected.items():
        found = got[name]
        if found.shape != right.shape:
            return f"{name} has shape {found.shape}, expected {right.shape}"
        if not _all_close(workload, found.ravel(), right.ravel()):
            close = np.isclose(found, right, rtol=workload.rtol, atol=workload.atol)
            place = tuple(int(index) for index in np.argwhere(~close)[0])
            return (
                f"{name}{list(place)} is {found[place]}, expected {right[place]} "
                f"({np.count_nonzero(~close)} of {close.size} differ)"
            )
    return ""


def _all_close(workload: Workload, found: Any, right: Any) -> bool:
    """Tell whether all are close. For large arrays that is much faster than finding the ones that
    are not."""

    def part_is(part: slice) -> bool:
        return np.allclose(found[part], right[part], workload.rtol, workload.atol)

    return all(in_parts(part_is, len(right)))


def in_parts(work: Callable[[slice], T], length: int, part: int = PART) -> list[T]:
    """Return the results of `work` for each part of a large array. Parts stay in a processor's
    cache. Several are worked on at a time, because NumPy needs no interpreter while it computes."""
    parts = [slice(start, min(start + part, length)) for start in range(0, length, part)]
    if len(parts) == 1:
        return [work(parts[0])]
    with ThreadPoolExecutor() as pool:
        return list(pool.map(work, parts))
