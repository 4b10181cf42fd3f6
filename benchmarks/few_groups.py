"""GrCUDA's six in few groups, as its own benchmarks launch them.

In: how many groups a compute unit has of a launch at most, a preset. Out: the document of `acs-cl
bench` for each such number, and a table of means beside the published one.

The workloads have a work-item for each element, so that a kernel of a large array fills a card by
itself and leaves nothing to gain. GrCUDA's benchmarks (github.com/necst/grcuda, in
`projects/resources/python/benchmark/benchmark_wrapper.py`) launch most kernels as 8 blocks of 32
work-items for a multiprocessor, 4 groups of 64, and let each work-item loop: such a kernel takes
longer, and leaves room beside it. Here kernels are built with STRIDED, and launches cut.

    python -m acs_cl.benchmarks.few_groups --per-unit 4 --preset paper --json out.json

Invariant: the program, its inputs and its reference are those of the workload; every contestant of
a number launches the same groups.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any

from acs_cl import UsageError, devices
from acs_cl.benchmarks import suite, suite_tables
from acs_cl.benchmarks.harness import host_backends
from acs_cl.benchmarks.published import GRCUDA, GRCUDA_MEAN
from acs_cl.benchmarks.suite_cli import LEAST_RUNS, say
from acs_cl.benchmarks.workloads import catalogue
from acs_cl.benchmarks.workloads.workload import PRESETS, Run, Workload

VERSION = 1
PER_UNIT = (1, 4, 16)
"""Groups of a launch for a compute unit. GrCUDA's are 4, but for its pricings, which fill it."""


class Few:
    """A platform whose launches have `most` groups at most. Its kernels loop."""

    def __init__(self, platform: Any, most: int) -> None:
        self._platform = platform
        self._most = most

    def __getattr__(self, name: str) -> Any:
        return getattr(self._platform, name)

    def build(self, source: str) -> Any:
        """The program, its kernels with loops."""
        return _Program(self._platform.build(source, macros={"STRIDED": 1}), self._most)

    def launch(self, kernel: Any, global_size: Any, local_size: Any, *args: Any, **how: Any) -> Any:
        """An expert's."""
        sizes = cut(global_size, local_size, self._most)
        return self._platform.launch(kernel.whole, sizes, local_size, *args, **how)


class _Program:
    def __init__(self, program: Any, most: int) -> None:
        self._program = program
        self._most = most

    def __getattr__(self, name: str) -> Any:
        kernel = _Kernel(getattr(self._program, name), self._most)
        setattr(self, name, kernel)
        return kernel


class _Kernel:
    def __init__(self, whole: Any, most: int) -> None:
        self.whole = whole
        self._most = most

    def __call__(self, global_size: Any, local_size: Any, *args: Any) -> Any:
        return self.whole(cut(global_size, local_size, self._most), local_size, *args)


def cut(global_size: Sequence[int], local_size: Sequence[int], most: int) -> tuple[int, ...]:
    """The global size of a launch of `most` groups at most, as far as its first two dimensions
    allow: rows are given up before columns."""
    groups = [size // group for size, group in zip(global_size, local_size, strict=True)]
    planes = groups[2] if len(groups) > 2 else 1
    groups[0] = min(groups[0], max(1, most // planes))
    if len(groups) > 1:
        groups[1] = min(groups[1], max(1, most // (planes * groups[0])))
    return tuple(size * group for size, group in zip(groups, local_size, strict=True))


def in_few(workload: Workload, preset: str, most: int) -> Workload:
    """The same workload; sums over groups, whose number is part of its size, are over fewer."""
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


def growing(plan: suite.Plan, per_unit: Sequence[int]) -> Iterator[dict[str, Any]]:
    """All documents by number, after each workload."""
    start = perf_counter()
    found: dict[str, Any] = {}
    for number in per_unit:
        most = number * int(plan.device.max_compute_units)
        cut_down = [in_few(workload, plan.preset, most) for workload in plan.workloads]
        left_s = plan.within_s - (perf_counter() - start)
        some = plan._replace(workloads=cut_down, within_s=left_s)
        for document in suite.growing(some, say):
            found[str(number)] = document
            yield {"acs_cl_few_groups": VERSION, "per_unit": found}


def text(document: Mapping[str, Any], style: str = "simple") -> str:
    """Times of the baseline, and speed-ups of the others, by number."""
    rows: list[list[Any]] = []
    parts = []
    for number, one in document["per_unit"].items():
        names = [name for name in suite_tables.contestants(one) if name not in suite.BASELINES]
        for name, entry in one["workloads"].items():
            base = entry["rows"].get(entry["baseline"])
            took = base["ms"]["median"] if base else None
            least_ms = suite_tables.bound_ms(entry)
            most = took / least_ms if took and isinstance(least_ms, float) else None
            speed = [suite_tables.speedup(entry, other) for other in names]
            rows.append([number, name, took, most, *speed])
        means = [suite_tables.mean_of(one, GRCUDA, name) for name in names]
        rows.append([number, f"mean, published {GRCUDA_MEAN}", None, None, *means])
        parts = [*suite_tables.failures(one), suite_tables.footer(one)]
    head = ["groups for a unit", "workload", "baseline ms", "bound", *names]
    return "\n\n".join([suite_tables.table(rows, head, style), *parts])


def planned(args: argparse.Namespace) -> suite.Plan:
    """What the options ask for."""
    device = devices.choose(args.device)
    there = [*host_backends(device), "device", "auto"]
    asked = args.backend or ["lanes"]
    for name in asked:
        if name not in there:
            raise UsageError(f"no backend {name!r} on this device: {', '.join(there)}")
    wrong = [name for name in args.workloads if name not in GRCUDA]
    if wrong:
        raise UsageError(f"{wrong[0]!r} is none of GrCUDA's: {', '.join(GRCUDA)}")
    if min(args.per_unit or PER_UNIT) < 1:
        raise UsageError(f"--per-unit {min(args.per_unit)}: expected at least one group")
    if args.runs < LEAST_RUNS:
        raise UsageError(f"--runs {args.runs}: a median needs {LEAST_RUNS} at least")
    some = [catalogue()[name] for name in args.workloads or GRCUDA]
    backends = [name for name in there if name in asked or name == suite.SERIAL]
    return suite.Plan(device, some, args.preset, backends, args.runs, 0, args.within)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="GrCUDA's six in few groups")
    add = parser.add_argument
    add("workloads", nargs="*", metavar="WORKLOAD", help="without any: all six")
    add("--per-unit", type=int, action="append", metavar="N", help="may be given several times")
    add("--preset", choices=PRESETS, default="paper")
    add("--device", metavar="SPEC")
    add("--backend", action="append", metavar="NAME", help="may be given several times (lanes)")
    add("--runs", type=int, default=LEAST_RUNS)
    add("--within", type=float, default=inf, metavar="S", help="leave out what would end later")
    add("--json", type=Path, metavar="FILE", help="written after each workload")
    args = parser.parse_args(argv)
    try:
        for document in growing(planned(args), args.per_unit or PER_UNIT):
            if args.json:
                args.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    except UsageError as error:
        parser.exit(2, f"{error}\n")
    say("", 1.0)
    print(text(document))


if __name__ == "__main__":
    main()
