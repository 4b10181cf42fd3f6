"""GrCUDA's six workloads in few groups, as its own benchmarks launch them.

Input: the most groups of a launch on a compute unit, a preset. Output: the document of `acs-cl
bench` for each such number.

The workloads have a work-item for each element, so a kernel of a large array fills a card by itself
and leaves nothing to gain. GrCUDA's benchmarks (github.com/necst/grcuda, in
`projects/resources/python/benchmark/benchmark_wrapper.py`) launch most kernels as 8 blocks of 32
work-items for a multiprocessor, 4 groups of 64, and let each work-item loop. Such a kernel takes
longer, and leaves room beside it. Here kernels are built with STRIDED, and launches cut.

Invariant: the program, its inputs and its reference are those of the workload; every contestant of
a number launches the same groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

from acs_cl.benchmarks.suite import contest
from acs_cl.benchmarks.suite.contestants import Plan
from acs_cl.benchmarks.suite.progress import say
from acs_cl.benchmarks.workloads.workload import Run, Workload

VERSION = 1
PER_UNIT = (1, 4, 16)
"""Groups of a launch for a compute unit. GrCUDA's are 4, except for its pricings, which fill it."""

Most = int | tuple[int, int]


class Few:
    """A platform whose launches have at most `most` groups: one limit, or one for each number of
    dimensions. Its kernels loop."""

    def __init__(self, platform: Any, most: Most) -> None:
        self._platform = platform
        self._most = most

    def __getattr__(self, name: str) -> Any:
        return getattr(self._platform, name)

    def build(self, source: str) -> Any:
        """Build the program, its kernels with loops."""
        return _Program(self, self._platform.build(source, macros={"STRIDED": 1}))

    def launch(self, kernel: Any, global_size: Any, local_size: Any, *args: Any, **how: Any) -> Any:
        """Launch for an expert."""
        sizes = cut(global_size, local_size, self._most)
        return self._platform.launch(kernel.whole, sizes, local_size, *args, **how)

    def call(self, whole: Any, global_size: Any, local_size: Any, args: tuple[Any, ...]) -> Any:
        """Launch for a program."""
        return whole(cut(global_size, local_size, self._most), local_size, *args)


class _Program:
    def __init__(self, few: Few, program: Any) -> None:
        self._few, self._program = few, program

    def __getattr__(self, name: str) -> Any:
        kernel = _Kernel(self._few, getattr(self._program, name))
        setattr(self, name, kernel)
        return kernel


class _Kernel:
    def __init__(self, few: Few, whole: Any) -> None:
        self._few, self.whole = few, whole

    def __call__(self, global_size: Any, local_size: Any, *args: Any) -> Any:
        return self._few.call(self.whole, global_size, local_size, args)


def cut(global_size: Sequence[int], local_size: Sequence[int], most: Most) -> tuple[int, ...]:
    """Return the global size of a launch of at most `most` groups, as far as its first two
    dimensions allow: rows are given up before columns."""
    if not isinstance(most, int):
        most = most[len(global_size) > 1]
    groups = [size // group for size, group in zip(global_size, local_size, strict=True)]
    planes = groups[2] if len(groups) > 2 else 1
    groups[0] = min(groups[0], max(1, most // planes))
    if len(groups) > 1:
        groups[1] = min(groups[1], max(1, most // (planes * groups[0])))
    return tuple(size * group for size, group in zip(groups, local_size, strict=True))


def in_few(workload: Workload, preset: str, most: int) -> Workload:
    """Return the workload with sums over fewer groups, whose number is part of its size."""
    size = workload.presets[preset]
    if "groups" in size._fields:
        size = size._replace(groups=min(size.groups, most))

    def made(make: Any) -> Any:
        def run(platform: Any, size: Any, seed: int) -> Run:
            found: Run = make(Few(platform, most), size, seed)
            return found

        return run

    expert = None if workload.expert is None else made(workload.expert)
    return workload._replace(presets={preset: size}, make=made(workload.make), expert=expert)


def growing(plan: Plan, per_unit: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Return all documents by number, after each workload."""
    start = perf_counter()
    found: dict[str, Any] = {}
    for number in per_unit:
        most = number * int(plan.device.max_compute_units)
        cut_down = [in_few(workload, plan.preset, most) for workload in plan.workloads]
        left_s = plan.within_s - (perf_counter() - start)
        some = plan._replace(workloads=cut_down, within_s=left_s)
        for document in contest.growing(some, say):
            found[str(number)] = document
            yield {"acs_cl_few_groups": VERSION, "per_unit": found}
