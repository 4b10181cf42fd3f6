"""A wavefront and a Cholesky factorisation of tiles: replays by the number of groups, beside CUDA.

Input: a device. Output: for each of the two, microseconds of a replay with the runtime's own number
of groups, and with each number that a program might give as `groups=`; of the same launched anew;
and with a CUDA compiler, of CUDA's stream and graphs in the same run.

In both programs few tiles are ready at a time, so they show the cost of idle groups. Each sample of
the factorisation starts from the same matrix; the wavefront starts from its own result.

Invariant: every runtime's result is compared with NumPy's, and CUDA's sum with theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from time import perf_counter
from typing import Any

import numpy as np

import acs_cl as acs
from acs_cl.benchmarks.peers import cuda_tiles
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import quantile, spread, spreads
from acs_cl.benchmarks.suite.timing import interleave
from acs_cl.benchmarks.workloads.tiles import PROGRAMS

SIZES = {"wavefront": (48, 3), "cholesky": (32, 1)}
SMALL = {"wavefront": (6, 1), "cholesky": (6, 1)}
"""Tiles in a row, and passes over each; the small ones are for CPUs and quick runs."""

GROUPS = (1, 2, 4, 8, 16)
"""Groups of a scheduler that a program might choose, in multiples of half the tiles in a row."""

ROUNDS = {False: 9, True: 3}  # by "is quick"
CHOSEN, ANEW = "as chosen", "anew"
CLOSE = 0.97


def measure(settings: Settings) -> dict[str, Any]:
    """Measure both programs."""
    sizes = SMALL if settings.on_cpu or settings.quick else SIZES
    rounds = ROUNDS[settings.quick]
    cuda = {} if settings.on_cpu else cuda_tiles.measure(sizes, rounds)
    return {
        "rows": {
            make.name: _row(settings, make, *sizes[make.name], rounds, cuda.get(make.name))
            for make in PROGRAMS
        }
    }


def _row(
    settings: Settings, make: Any, tiles: int, passes: int, rounds: int, cuda: Any
) -> dict[str, Any]:
    context = settings.context()
    samplers: dict[str, Callable[[], float]] = {}
    programs = []
    with ExitStack() as stack:
        by_hand = [max(1, tiles // 2) * many for many in GROUPS]
        names = [CHOSEN, ANEW, *map(str, by_hand)]
        for name, groups in zip(names, (None, None, *by_hand), strict=True):
            runtime = stack.enter_context(
                acs.Runtime(context=context, backend="device", groups=groups)
            )
            program = make(runtime, tiles, passes)
            programs.append(program)
            once = _launching(runtime, program)
            if name != ANEW:
                with runtime.record() as graph:
                    program.launch()
                once = _replaying(graph)
            samplers[name] = _timed(runtime, program, once)
        for sampler in samplers.values():
            sampler()
        samples = interleave(samplers, rounds)
        expected = programs[0].expected()
        for program in programs:
            if not np.allclose(program.result(), expected, 1e-3, 1e-3):
                raise RuntimeError(f"{make.name} computed something else than NumPy")
        row = {"tiles": tiles, "launches": len(programs[0].calls), "us": spreads(samples)}
        if cuda is not None:
            ours = float(programs[0].result().astype("f8").sum())
            if not np.isclose(cuda["sum"], ours, 1e-4):
                raise RuntimeError(f"{make.name}: CUDA computed {cuda['sum']}, we did {ours}")
            row["cuda_us"] = spreads(cuda["us"])
            chosen = quantile(samples[CHOSEN], 0.5)
            row["over_cuda"] = spread([chosen / one for one in cuda["us"]["replay"]])
    return row


def _replaying(graph: acs.Graph) -> Callable[[], None]:
    def once() -> None:
        graph.replay().wait()

    return once


def _launching(runtime: acs.Runtime, program: Any) -> Callable[[], None]:
    def once() -> None:
        program.launch()
        runtime.finish()

    return once


def _timed(runtime: acs.Runtime, program: Any, once: Callable[[], Any]) -> Callable[[], float]:
    """Return a function that measures microseconds of one run, from the original matrix."""

    def sample() -> float:
        program.reset()
        runtime.finish()
        start = perf_counter()
        once()
        return (perf_counter() - start) * 1e6

    return sample


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare the results with their bars."""
    found = []
    on_cpu = machine["kind"] == "CPU"
    for name, row in result["rows"].items():
        times = row["us"]
        what = f"replay of a {name} of {row['tiles']} x {row['tiles']} tiles"
        by_hand = {groups: one for groups, one in times.items() if groups not in (CHOSEN, ANEW)}
        best = min(by_hand, key=lambda groups: by_hand[groups]["median"])
        share = by_hand[best]["median"] / times[CHOSEN]["median"]
        found += [
            target(what, times[CHOSEN], "at most", None, "us"),
            target(f"the {name} launched anew", times[ANEW], "at most", None, "us"),
            target(f"its replay with the best `groups=`, {best}, over the one as chosen", share,
                   "at least", None if on_cpu else CLOSE, "x"),
        ]  # fmt: skip
        if "over_cuda" in row:
            over = row["over_cuda"]
            found.append(target(f"{what} over a CUDA Graph's", over, "at most", 1.0, "x"))
    return found
